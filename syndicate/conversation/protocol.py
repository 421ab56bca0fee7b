"""Protocols: which records make up a conversation, and who says and who hears which.

>>> from syndicate import record
>>> @record("lamp-on")
... class On:
...     room: str
>>> @record("switch")
... class Switch:
...     room: str
>>> class Lamps(Protocol):
...     lamp = role(asserts=[On], hears=[Switch])
...     hand = role(sends=[Switch], observes=[On])
>>> @Lamps.lamp
... def lamp(ds, room): ...
>>> Lamps.lamp
Lamps.lamp: asserts On, hears Switch

A function that is decorated with a role plays it.  Nothing changes when it runs; ``syndicate check`` reads the text,
and tells what the function says or hears beyond its role, and what of its role it does not do.  A role that no function
plays is played by another program: what it says counts as said.

Source: ``docs/design/conversation.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from syndicate.errors import RecordDefinition
from syndicate.values.record import is_record_class
from syndicate.values.value import conversions

F = TypeVar("F", bound=Callable[..., object])


class Role:
    """What one side of a conversation says and hears; a decorator of the functions that play it.

    Made by :func:`role`.
    """

    def __init__(self, parts: dict[str, tuple[type, ...]]) -> None:
        self.parts = parts
        self.name = "role"

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"

    def __call__(self, fn: F) -> F:
        """The function itself, which plays the role."""
        return fn

    def __repr__(self) -> str:
        said = [f"{part} {', '.join(each.__name__ for each in kinds)}" for part, kinds in self.parts.items() if kinds]
        return f"{self.name}: {', '.join(said)}"


class Protocol:
    """The base of protocols: a class whose attributes are roles."""


def role(
    *,
    asserts: Sequence[type] = (),
    observes: Sequence[type] = (),
    sends: Sequence[type] = (),
    hears: Sequence[type] = (),
) -> Role:
    """A role: classes of records that who plays it asserts and observes, as assertions, and sends and hears, as
    messages.

    Raises:
        RecordDefinition: one of them is no class of records.
    """
    parts = {"asserts": tuple(asserts), "observes": tuple(observes), "sends": tuple(sends), "hears": tuple(hears)}
    for part, kinds in parts.items():
        for kind in kinds:
            if not is_record_class(kind) and kind not in conversions:
                raise RecordDefinition(f"role({part}=[..]) takes classes made by @record, and not {kind!r}")
    return Role(parts)
