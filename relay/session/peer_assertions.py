"""What a peer asserts with us, by the numbers that it chose for them.

There may be only so many, of only so many bytes, and only so many *different* ones of one hash.  Python's hash of a
tuple is fast and not secret enough: a peer can prepare values that all have the same one, and every index that holds n
of them takes n steps for the next.  Equal values, which many actors behind one peer may well assert, count once.

>>> assertions = PeerAssertions(2, 1000)
>>> first = assertions.add(7, ("says", "hello"), [], 300)
>>> assertions.add(8, ("says", "goodbye"), [], 800) is None, assertions.size
(True, 300)
>>> assertions.remove(7) is first, assertions.remove(7), len(assertions), assertions.size
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


class PeerAssertion:
    """An assertion of the peer's: our handle for it, and the references that it holds in place."""

    __slots__ = ("form", "handle", "key", "pins", "size")

    def __init__(self, form: Frozen, pins: list[Crossing], size: int) -> None:
        self.handle: Handle | None = None
        self.pins = pins
        self.form = form
        self.key = hash(form)
        self.size = size


class PeerAssertions:
    """The assertions of one peer: at most *most* of them, and *bytes_* bytes, of which there are ``size``."""

    __slots__ = ("_alike", "_assertions", "_bytes", "_most", "size")

    def __init__(self, most: int, bytes_: int) -> None:
        self._most = most
        self._bytes = bytes_
        self.size = 0
        self._assertions: dict[int, PeerAssertion] = {}
        # By hash: the only assertion that has it, or the forms of all, and how often each is there.
        self._alike: dict[int, PeerAssertion | dict[Frozen, int]] = {}

    def __len__(self) -> int:
        return len(self._assertions)

    def add(self, number: int, form: Frozen, pins: list[Crossing], size: int) -> PeerAssertion | None:
        """Remember an assertion, of *size* bytes; None if there are too many, or they are too large.

        Raises :class:`ProtocolError` for a number that is in use, and for too many of one hash.
        """
        if number in self._assertions:
            raise ProtocolError(f"handle {number} is in use already")
        if len(self._assertions) >= self._most or self.size + size > self._bytes:
            return None
        assertion = PeerAssertion(form, pins, size)
        alike = self._alike.setdefault(assertion.key, assertion)
        if alike is not assertion:
            self._join(assertion, alike)
        self._assertions[number] = assertion
        self.size += size
        return assertion

    def remove(self, number: int) -> PeerAssertion | None:
        """Forget an assertion; None if there is no such number."""
        assertion = self._assertions.pop(number, None)
        if assertion is not None:
            self.size -= assertion.size
            alike = self._alike[assertion.key]
            if alike is assertion:
                del self._alike[assertion.key]
            else:
                self._leave(assertion, alike)  # type: ignore[arg-type]  # else it would be the only one
        return assertion

    def oldest(self, most: int) -> list[tuple[int, PeerAssertion]]:
        """The first *most* assertions, with their numbers."""
        return list(islice(self._assertions.items(), most))

    def _join(self, assertion: PeerAssertion, alike: PeerAssertion | dict[Frozen, int]) -> None:
        if isinstance(alike, PeerAssertion):
            alike = self._alike[assertion.key] = {alike.form: 1}
        if assertion.form not in alike and len(alike) >= ALIKE:
            raise ProtocolError(f"more than {ALIKE} different assertions have one hash: spell them differently")
        alike[assertion.form] = alike.get(assertion.form, 0) + 1

    def _leave(self, assertion: PeerAssertion, alike: dict[Frozen, int]) -> None:
        alike[assertion.form] -= 1
        if not alike[assertion.form]:
            del alike[assertion.form]
            if not alike:
                del self._alike[assertion.key]
