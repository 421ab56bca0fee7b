"""Which faults a scenario allows, as it says so, and as a command does."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Self

import attrs
from attrs import evolve, frozen

from syndicate.errors import ScenarioMisuse


@frozen
class Allowed:
    """How many of each kind, until when: see :meth:`World.faults <relay.simulation.World.faults>`.

    >>> Allowed.of("kills=2,disk").kills, Allowed.of("kills=2,disk").disk, Allowed.of("none") == Allowed()
    (2, True, True)
    """

    cuts: int = 0
    kills: int = 0
    partitions: int = 0
    pauses: int = 0
    jumps: int = 0
    disk: bool = False
    until: float = 20.0
    awaits: int = 0
    silences: int = 0
    delays: int = 0
    slow_readers: int = 0
    drifts: int = 0
    rot: int = 0

    @classmethod
    def of(cls, text: str) -> Self:
        """What a command says: ``kills=2,cuts=1,disk,until=20``, or ``none``; raises
        :class:`~syndicate.errors.ScenarioMisuse`.
        """
        fields = attrs.fields_dict(cls)
        allowed = cls()
        for part in [] if text == "none" else text.split(","):
            name, _, number = part.strip().partition("=")
            name = name.replace("-", "_")
            if name not in fields:
                nearest = get_close_matches(name, fields, 1)
                rather = f" Do you mean {nearest[0]}?" if nearest else ""
                raise ScenarioMisuse(f"there are no faults {name!r}.{rather} There are {', '.join(fields)}, or none")
            try:
                if name == "disk":
                    allowed = evolve(allowed, disk={"": True, "true": True, "false": False}[number.lower()])
                elif name == "until":
                    allowed = evolve(allowed, until=float(number))
                else:
                    allowed = evolve(allowed, **{name: int(number)})  # type: ignore[arg-type]  # all others are numbers
            except (ValueError, KeyError):
                wanted = "a number of seconds" if name == "until" else "a whole number"
                rather = name if name == "disk" else f"{name}= and {wanted}"
                raise ScenarioMisuse(f"{part.strip()!r}: write {rather}") from None
        return allowed
