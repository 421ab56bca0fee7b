"""What a Preserves reader holds of a packet that has not fully arrived: the compounds that are open, and the count.

Both syntaxes read tokens and put them together here, without recursion.  An open compound is a list of what it holds so
far.  The first item says what it is to become: a tag, or of a record its label.  Three kinds are no compounds of the
peer's: ``TOP`` holds the packet, ``ANNOTATION`` ends after one value and is dropped, ``EMBEDDED`` ends after one value
and becomes a reference.  While one of these is innermost, a value that is complete is more than an item of a list.

>>> from relay.protocol.codec.frozen_collection import whole
>>> parts = Assembly(Limits())
>>> parts.open([SEQ]); parts.add(1); parts.open([ANNOTATION]); parts.add("dropped"); parts.add(2); whole(parts.close())
False
False
False
True
>>> parts.packet()
(SEQ, 1, 2)

What ends is put together in parts where that takes long, as a set of many members does, and others have their turns
between two of these.

Contract: every limit is checked before there is more than it allows.

Source: ``docs/design/protocol.md``, "Decoders and their limits".
"""

from __future__ import annotations

from typing import Final

from relay.protocol.codec.frozen_collection import Collections, Parts, collects, sealed
from relay.protocol.codec.preserves_encoding import KNOWN, SHORT
from relay.protocol.limits import ENVELOPE, Limits
from relay.protocol.packets import MINE, YOURS, WireRef
from syndicate.errors import ProtocolError
from syndicate.values.value import BIG, SEQ, SMALL, Frozen, Symbol, Tag, freeze

TOP: Final = Tag("TOP", -1)
ANNOTATION: Final = Tag("ANNOTATION", -1)
EMBEDDED: Final = Tag("EMBEDDED", -1)

NODE: Final = 64
"""Bytes of memory that a value takes which was built of a packet, about: the smallest compounds take as much."""

_EITHER: Final = frozenset({MINE, YOURS})
_DIGITS: Final = 4300
"""More than that Python itself does not read."""


class Assembly:
    """The open compounds of one packet after the other.

    ``items`` is the innermost, ``stack`` those around it.  ``special`` is 0 if the innermost is surely an ordinary
    compound.  ``deepest`` is the number of compounds that may be open.
    """

    __slots__ = ("_collections", "_fresh", "_limits", "deepest", "items", "refs", "special", "stack", "symbols")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._collections = Collections(limits)
        self._fresh = 0
        self.refs: dict[tuple[int, int], WireRef] = {}
        self.symbols: dict[bytes, Symbol] = {}
        self.stack: list[list[Frozen]] = []
        self.items: list[Frozen] = [TOP]
        self.special = 1
        self.deepest = limits.depth + ENVELOPE

    def packet(self) -> Frozen:
        """The packet that is complete; the next one begins."""
        self._fresh = 0
        self._collections.begin()
        if len(self.symbols) > KNOWN:
            self.symbols.clear()
        return self.items.pop()

    # ---------------------------------------------------------------------------------------------------- compounds

    def open(self, items: list[Frozen]) -> None:
        """A compound, or one of the special kinds, begins; raises :class:`ProtocolError` if it is too deep."""
        head = items[0] if items else None
        if head is EMBEDDED:
            self._embed()
        if len(self.stack) >= self.deepest:
            raise self.too_deep()
        self.special += (head is EMBEDDED or head is ANNOTATION) - (not self.stack)
        self.stack.append(self.items)
        self.items = items

    def _embed(self) -> None:
        """A reference and the sequence in it are no levels of the value that holds it; one may be embedded twice."""
        inside = self.deepest - self._limits.depth - ENVELOPE
        if inside and self.items != [EMBEDDED]:
            raise ProtocolError("a reference inside the caveats of a reference")
        if inside > 2:
            raise ProtocolError("a reference embedded three times")
        self.deepest += 2

    def close(self) -> Parts[bool]:
        """The innermost compound ends; says whether the packet is complete."""
        items = self.items
        form = (yield from self.collected(items)) if collects(items) else self.form(items)
        self.items = self.stack.pop()
        if not self.stack:
            self.special += 1
        return self.add(form)

    def collected(self, items: list[Frozen]) -> Parts[Frozen]:
        """The frozen form of a set or dictionary that ends; raises :class:`ProtocolError`."""
        return self._collections.parts(items)

    def form(self, items: list[Frozen]) -> Frozen:
        """That of another compound."""
        if not items:
            raise ProtocolError("a record without a label")
        head = items[0]
        if head is TOP or head is ANNOTATION or head is EMBEDDED:
            raise ProtocolError("an end where a value should be")
        return sealed(tuple(items))

    def add(self, form: Frozen) -> bool:
        """A value that is complete; says whether the packet is."""
        self.items.append(form)
        return self.special > 0 and self.settle()

    def settle(self) -> bool:
        """A value was added where the innermost may be special; says whether the packet is complete."""
        while True:
            head = self.items[0]
            if head is TOP:
                return True
            if head is ANNOTATION:
                self._end()
                return False
            if head is not EMBEDDED:
                return False
            ref = self.reference(self.items[1])
            self._end()
            self.deepest -= 2
            self.items.append(ref)

    def _end(self) -> None:
        self.items = self.stack.pop()
        self.special -= 1 if self.stack else 0

    # ---------------------------------------------------------------------------------------------------- atoms

    def symbol(self, name: bytes) -> Symbol:
        """The symbol of this name, which is none of the known ``symbols``; raises :class:`ProtocolError`."""
        self._fresh += 1
        if self._fresh > self._limits.symbols:
            raise ProtocolError(f"a packet with more than {self._limits.symbols} new symbols")
        symbol = Symbol(name.decode())
        if len(name) <= SHORT:
            self.symbols[name] = symbol
        return symbol

    def integer(self, data: bytes) -> Frozen:
        """The integer of these bytes, two's complement, big-endian; raises :class:`ProtocolError`."""
        if len(data) > self._limits.bignum:
            raise ProtocolError(f"an integer of {len(data)} bytes: at most {self._limits.bignum} are allowed")
        number = int.from_bytes(data, "big", signed=True)
        if -SMALL < number < SMALL and number != -2:
            return number
        return sealed((BIG, data)) if number > 0 and data[0] | data[1] >> 7 else freeze(number)

    def digits(self, text: bytes) -> Frozen:
        """The integer of these decimal digits, with a sign or without; raises :class:`ProtocolError`."""
        most = self._limits.bignum
        if len(text) > min(3 * most, _DIGITS):  # reading them takes quadratic time
            raise ProtocolError(f"an integer of {len(text)} digits: at most {most} bytes of it are allowed")
        number = int(text)
        return self.integer(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))

    def reference(self, content: Frozen) -> WireRef:
        """The reference ``[0 oid]`` or ``[1 oid caveat ...]``, or itself; raises :class:`ProtocolError`."""
        if type(content) is WireRef:
            return content
        if type(content) is tuple and content[0] is SEQ and len(content) > 2:
            _, whose, oid, *caveats = content
            if type(whose) is int and type(oid) is int and oid >= 0:
                if not caveats and whose in _EITHER:
                    return self.refs.get((whose, oid)) or self._reference(whose, oid)
                if whose == YOURS:
                    if len(caveats) > self._limits.caveats:
                        raise ProtocolError(
                            f"a reference with {len(caveats)} caveats: at most {self._limits.caveats} are allowed"
                        )
                    return WireRef(whose, oid, tuple(caveats))
        raise ProtocolError("a reference is #:[0 n], the sender's, or #:[1 n caveat ...], the receiver's")

    def _reference(self, whose: int, oid: int) -> WireRef:
        if len(self.refs) >= KNOWN:
            self.refs.clear()
        ref = self.refs[whose, oid] = WireRef(whose, oid)
        return ref

    # ---------------------------------------------------------------------------------------------------- errors

    def too_deep(self) -> ProtocolError:
        """That too many compounds are open."""
        return ProtocolError(f"more than {self._limits.depth} levels of nesting")

    def too_many(self) -> ProtocolError:
        """That a packet holds too much."""
        return ProtocolError(f"a packet of more than {self._limits.nodes} nested values")

    def too_long(self) -> ProtocolError:
        """That a packet has too many bytes."""
        return ProtocolError(f"a packet of more than {self._limits.frame} bytes")
