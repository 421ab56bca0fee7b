"""What a peer has standing with us: its assertions, by the numbers that it chose for them.

There may be only so many, of only so many bytes, and only so many *different* ones of one hash.  Python's hash of a
tuple is fast and not secret enough: a peer can prepare values that all have the same one, and every index that holds n
of them takes n steps for the next.  Equal values, which many actors behind one peer may well assert, count once.

>>> standing = Standing(2, 1000)
>>> told = standing.add(7, ("says", "hello"), [], 300)
>>> standing.add(8, ("says", "goodbye"), [], 800) is None, standing.size
(True, 300)
>>> standing.remove(7) is told, standing.remove(7), len(standing), standing.size
(True, None, 0, 0)
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from relay.session.membrane import Crossing
from syndicate.actors.turn import Handle
from syndicate.errors import ProtocolError
from syndicate.values.value import Frozen

ALIKE: Final = 1024
"""The different assertions of a peer that may have one hash.  By chance, hardly ever two have; but lists that differ in
nothing but where they have -1 and where -2 all do, for these two have one hash in CPython: all such lists of ten places
are allowed.  The last of so many costs a third of a millisecond, ten times what others do.
"""


class Told:
    """An assertion of the peer's: our handle for it, and the references that it holds in place."""

    __slots__ = ("form", "handle", "key", "pins", "size")

    def __init__(self, form: Frozen, pins: list[Crossing], size: int) -> None:
        self.handle: Handle | None = None
        self.pins = pins
        self.form = form
        self.key = hash(form)
        self.size = size


class Standing:
    """The assertions of one peer: at most *most* of them, and *bytes_* bytes, of which there are ``size``."""

    __slots__ = ("_alike", "_bytes", "_most", "_told", "size")

    def __init__(self, most: int, bytes_: int) -> None:
        self._most = most
        self._bytes = bytes_
        self.size = 0
        self._told: dict[int, Told] = {}
        # By hash: the only assertion that has it, or the forms of all, and how often each is there.
        self._alike: dict[int, Told | dict[Frozen, int]] = {}

    def __len__(self) -> int:
        return len(self._told)

    def add(self, number: int, form: Frozen, pins: list[Crossing], size: int) -> Told | None:
        """Remember an assertion, of *size* bytes; None if there are too many, or they are too large.

        Raises :class:`ProtocolError` for a number that is in use, and for too many of one hash.
        """
        if number in self._told:
            raise ProtocolError(f"handle {number} is in use already")
        if len(self._told) >= self._most or self.size + size > self._bytes:
            return None
        told = Told(form, pins, size)
        alike = self._alike.setdefault(told.key, told)
        if alike is not told:
            self._join(told, alike)
        self._told[number] = told
        self.size += size
        return told

    def remove(self, number: int) -> Told | None:
        """Forget an assertion; None if there is no such number."""
        told = self._told.pop(number, None)
        if told is not None:
            self.size -= told.size
            alike = self._alike[told.key]
            if alike is told:
                del self._alike[told.key]
            else:
                self._leave(told, alike)  # type: ignore[arg-type]  # another Told would be alone
        return told

    def oldest(self, most: int) -> list[tuple[int, Told]]:
        """The first *most* assertions, with their numbers."""
        return list(islice(self._told.items(), most))

    def _join(self, told: Told, alike: Told | dict[Frozen, int]) -> None:
        if isinstance(alike, Told):
            alike = self._alike[told.key] = {alike.form: 1}
        if told.form not in alike and len(alike) >= ALIKE:
            raise ProtocolError(f"more than {ALIKE} different assertions have one hash: spell them differently")
        alike[told.form] = alike.get(told.form, 0) + 1

    def _leave(self, told: Told, alike: dict[Frozen, int]) -> None:
        alike[told.form] -= 1
        if not alike[told.form]:
            del alike[told.form]
            if not alike:
                del self._alike[told.key]
