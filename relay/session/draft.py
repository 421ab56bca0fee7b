r"""A draft: a long packet that is written in parts, between which others have their turns, and joined at its end.

Each part is encoded as a packet of its own.  What limits hold for the whole of it is counted here; from the first part
on that has no encoding, entries are kept as what they are, and it is the outbox that finds out which of them has none.

>>> from relay.protocol.codec import Msgpack
>>> codec = Msgpack()
>>> draft = Draft(codec)
>>> for number in (1, 2):
...     draft.put(codec.encode((SEQ, (SEQ, 0, (R, number)))), draft.weigh([None]))
>>> draft.packets() == [codec.encode((SEQ, (SEQ, 0, (R, 1)), (SEQ, 0, (R, 2))))]
True

Contract: no input, no output, no clock.  What is joined is within the limits of a packet; what is not goes in parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from relay.protocol.codec import Codec
from relay.protocol.packets import R, WireRef
from syndicate.errors import NotAValue
from syndicate.values.value import DICT, SEQ, SET, Frozen, Symbol, Value

__all__ = ["SEQ", "Draft", "Entry", "R"]

Entry: TypeAlias = tuple[Value, ...]
"""The frozen form of an entry in a Turn."""

_ENTRY: Final = 6
"""The values that are counted of an entry beside the one that it is about, and the entry's end."""

_REFERENCE: Final = 5
"""Those of a reference without caveats."""


class Draft:
    """The packet: ``entries`` are what is yet to be encoded; ``size`` is how many bytes there are."""

    __slots__ = ("_codec", "_keyed", "_nodes", "_parts", "_symbols", "entries", "size")

    def __init__(self, codec: Codec) -> None:
        self.entries: list[Entry] = []
        self.size = 0
        self._codec = codec
        self._parts: list[bytes] = []
        self._nodes = 1
        self._keyed = 0
        self._symbols: set[Symbol] = set()  # those that may be new to the peer

    def weigh(self, values: Iterable[Frozen]) -> int:
        """How many values are counted, at most, of a part that says *values*; None is what a retraction is about."""
        return sum([_ENTRY + self._codec.ends + (0 if value is None else self._count(value)) for value in values])

    def put(self, part: bytes, nodes: int) -> None:
        """Add a packet that a kernel has written, of so many values."""
        self._parts.append(part)
        self._nodes += nodes
        self.size += len(part)

    def add(self, entries: list[Entry]) -> bool:
        """Add entries; whether they are encoded."""
        form = (SEQ, *entries)
        part = None if self.entries else self._codec.part(form)
        if part is None and not self.entries:
            with suppress(NotAValue):
                part = self._codec.encode(form)
                self._note(form)
        if part is None:
            self.entries += entries
            return False
        self.put(part, sum(map(self._count, entries)))
        return True

    def packets(self, *last: bytes) -> list[bytes]:
        """The packet of all parts, and of the *last* ones; or those, if it is too large."""
        parts = [*self._parts, *last]
        if len(parts) == 1:
            return parts
        packet = self._codec.joined(parts) if parts else b""
        self._note(tuple(self.entries))
        nodes, limits = self._nodes + sum(map(self._count, self.entries)), self._codec.limits
        fits = len(packet) <= limits.frame and nodes <= limits.nodes
        fits = fits and len(self._symbols) <= limits.symbols and self._keyed <= limits.keyed
        return [packet] if parts and fits else parts

    def _note(self, form: Frozen) -> None:
        """Note the symbols in it, and what is in sets and dictionaries: kernels write neither new ones nor these."""
        if type(form) is Symbol:
            self._symbols.add(form)
        elif type(form) is WireRef:
            self._note(form.caveats)
        elif type(form) is tuple:
            if form and (form[0] is SET or form[0] is DICT):
                self._keyed += self._count(form)
            for item in form:
                self._note(item)

    def _count(self, form: Frozen) -> int:
        if type(form) is tuple:
            total = 1 if form and form[0] is SEQ else 1 + self._codec.ends  # whose mark is none of Preserves
            if tuple in map(type, form) or WireRef in map(type, form):
                return total + sum(map(self._count, form))
            return total + len(form)
        if type(form) is WireRef:
            return _REFERENCE + sum(map(self._count, form.caveats))
        return 1
