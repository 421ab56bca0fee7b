"""The membrane: which references have crossed between us and one peer, in which direction, and how often.

A reference of ours that is mentioned to the peer gets a number, its *oid*, and is *exported*; on the wire it is
``[0 oid]``, "mine".  A number of the peer's is *imported*: a proxy stands for it here.  What comes home, "yours"
``[1 oid]``, is the very reference that went out (a handler's is wrapped, so that only what it has asked for reaches
it); with caveats, ``[1 oid caveat ...]``, it is that reference attenuated.  The peer is not trusted with caveats of
ours: what we have attenuated, even a reference of the peer's own, is exported like any other, and the caveats are kept
here.

Each mention in an assertion, and each assertion on a reference, counts until it is retracted.  What nobody counts any
more is forgotten, so that an idle connection holds nothing; its number is not used again.

Contract: no input, no output, no clock.  A "yours" that was never exported is one shared inert reference, and nothing
is remembered of it.  A message cannot introduce a reference, for nothing would ever release it.

Source: Syndicate protocol, on membranes; ``docs/design/protocol.md``, "References and membranes".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from operator import is_
from typing import Final, Protocol, Self, TypeVar

from attrs import define

from relay.capabilities.caveats import attenuated
from relay.capabilities.forwarding import Passage, compacted
from relay.protocol.observer import Observer, publish
from relay.protocol.packets import MINE, YOURS, WireRef
from syndicate.actors.turn import foreign
from syndicate.errors import CaveatError, NotAValue, ProtocolError
from syndicate.index.interest import INTEREST, expand
from syndicate.native import kernel
from syndicate.values.value import DICT, SET, Frozen, Ref, Symbol, Tag, order

_FEW: Final = 16
"""The numbers of the references that nearly every connection has."""

_ATOMS: Final = frozenset({str, int, bytes, Symbol, Tag})

Inner = TypeVar("Inner")


@kernel
def crossed(form: Frozen, kind: type[Inner], cross: Callable[[Inner], Frozen], /) -> Frozen:
    """*form* with what *cross* says in place of each part that is a *kind*, a reference on one side; the same object if
    there is none.
    """
    if type(form) is kind:
        return cross(form)
    if type(form) is not tuple or _ATOMS.issuperset(map(type, form)):
        return form
    parts = [crossed(part, kind, cross) if type(part) is tuple or type(part) is kind else part for part in form]
    return form if all(map(is_, parts, form)) else compound(parts)


def compound(parts: list[Frozen]) -> Frozen:
    """The form of a compound of *parts*, references among them: members and keys are in their order."""
    if parts[0] is SET:
        return (SET, *sorted({*parts[1:]}, key=order))
    if parts[0] is DICT:
        pairs = dict(zip(parts[1], parts[2], strict=True))
        keys = sorted(pairs, key=order)
        return (DICT, tuple(keys), tuple([pairs[key] for key in keys]))
    return tuple(parts)


def _wire(whose: int, oid: int) -> WireRef:
    """A reference on the wire; the first of all connections are the same ones."""
    return _first(whose, oid) if 0 <= oid < _FEW else WireRef(whose, oid)


@cache
def _first(whose: int, oid: int) -> WireRef:
    return WireRef(whose, oid)


@define(eq=False)
class Crossing:
    """A reference that has crossed: as the wire has it in what we send, and how many mentions and assertions count.

    *home* is what a mention by the peer means here, if that is not *ref* itself.
    """

    ref: Ref
    wire: WireRef
    count: int = 0
    home: Ref | None = None


class Proxies(Protocol):
    """Who makes what stands for the peer's references, as a session does."""

    def proxy(self, oid: int) -> Ref:
        """The reference that stands for a number of the peer's."""

    def number(self, ref: Ref) -> int | None:
        """Which number it stands for, if it is such a reference."""


class _Nowhere:
    """What stands for the references of a connection that has ended."""

    def proxy(self, oid: int) -> Ref:
        """None does."""
        raise NotAValue("the connection has ended")

    def number(self, ref: Ref) -> int | None:
        """Nor did any."""
        raise NotAValue("the connection has ended")


class Membrane:
    """The references between us and one peer, whose *proxies* somebody makes; *inert* stands for what the peer only
    believes to have from us.
    """

    __slots__ = (
        "_crossings",
        "_inert",
        "_next",
        "_proxies",
        "exports",
        "imports",
    )

    def __init__(self, proxies: Proxies, inert: Ref) -> None:
        self.exports: dict[int, Crossing] = {}
        self.imports: dict[int, Crossing] = {}
        self._crossings: dict[Ref, Crossing] = {}
        self._proxies = proxies
        self._inert = inert
        self._next = 0

    @classmethod
    def closed(cls, inert: Ref) -> Self:
        """One through which nothing crosses any more."""
        return cls(_Nowhere(), inert)

    @property
    def introduced(self) -> int:
        """How many references of ours the peer has been given so far."""
        return self._next

    # ---------------------------------------------------------------------------------------------------- beginnings

    def publish(self, ref: Ref) -> None:
        """Export *ref* for ever, under the next number; done first, that is 0, where peers expect the gatekeeper."""
        self._export(ref).count += 1

    def expect(self, oid: int) -> Ref:
        """Import, for ever, what the peer is known to publish."""
        crossing = self._import(oid)
        crossing.count += 1
        return crossing.ref

    # ---------------------------------------------------------------------------------------------------- out

    def outward(self, form: Frozen, pins: list[Crossing] | None) -> Frozen:
        """*form* as the peer gets it.  Its references are counted, and added to *pins*.

        Without *pins*, as in a message, nothing may be introduced: raises :class:`NotAValue`.
        """
        if type(form) is tuple and form[0] is INTEREST:
            form = self._published(form)
        return crossed(form, Ref, partial(self._leave, pins))

    def _published(self, form: Frozen) -> Frozen:
        # An observer of the peer's own goes back to it as it is, unless there are classes for us to filter by.
        _, skeleton, _, observer = form
        comes_home = type(observer.entity) is Observer or self._proxies.number(observer) is not None
        return expand(form) if comes_home and not any(name for _, name in skeleton.checks) else publish(form)[0]

    def _leave(self, pins: list[Crossing] | None, ref: Ref) -> WireRef:
        crossing = self._crossings.get(ref)
        if pins is None:
            if crossing is not None:
                return crossing.wire
            oid = self._proxies.number(ref)
            if oid is not None:
                return WireRef(YOURS, oid)
            raise NotAValue(
                "a message cannot introduce a reference to a peer, for nothing would release it: assert something that "
                f"holds {ref!r} for as long as the peer is to use it"
            )
        if crossing is None:
            crossing = self._export(ref)
        crossing.count += 1
        pins.append(crossing)
        return crossing.wire

    def use(self, ref: Ref, pins: list[Crossing]) -> None:
        """Count an assertion on *ref*, one of the peer's."""
        crossing = self._crossings.get(ref) or self._export(ref)
        crossing.count += 1
        pins.append(crossing)

    # ---------------------------------------------------------------------------------------------------- in

    def inward(self, form: Frozen, pins: list[Crossing] | None) -> Frozen:
        """What we get for *form*, which is as the peer sent it.  Its references are counted, and added to *pins*.

        Without *pins*, as in a message, nothing may be introduced: raises :class:`ProtocolError`.
        """
        try:
            return compacted(crossed(form, WireRef, partial(self._arrive, pins)))
        except NotAValue as e:
            raise ProtocolError(f"an Observe that is not one: {e}") from e

    def _arrive(self, pins: list[Crossing] | None, wire: WireRef) -> Ref:
        if wire.whose == YOURS:
            crossing = self.exports.get(wire.oid)
            if crossing is None:
                return self._inert
        else:
            crossing = self.imports.get(wire.oid)
            if crossing is None:
                if pins is None:
                    raise ProtocolError("a message introduces a reference: assert what holds it first")
                crossing = self._import(wire.oid)
        if pins is not None:
            crossing.count += 1
            pins.append(crossing)
        ref = crossing.home or crossing.ref
        return self._narrowed(ref, wire.caveats) if wire.caveats else ref

    def _narrowed(self, ref: Ref, caveats: tuple[Frozen, ...]) -> Ref:
        try:
            return attenuated(ref, caveats)
        except CaveatError as e:
            raise ProtocolError(f"a reference whose caveats cannot be kept: {e}") from e

    def target(self, oid: int, pins: list[Crossing] | None = None) -> Ref | None:
        """What the peer means by *oid* as an event's target, counted if there are *pins*; None if it is not known."""
        crossing = self.exports.get(oid)
        if crossing is None:
            return None
        if pins is not None:
            crossing.count += 1
            pins.append(crossing)
        return crossing.ref

    # ---------------------------------------------------------------------------------------------------- ends

    def release(self, pins: Iterable[Crossing]) -> None:
        """Count back; forget what no longer counts."""
        for crossing in pins:
            crossing.count -= 1
            if not crossing.count:
                # Only if it is the one that is known by this number and reference: another may have taken its place.
                table = self.exports if crossing.wire.whose == MINE else self.imports
                if table.get(crossing.wire.oid) is crossing:
                    del table[crossing.wire.oid]
                for ref in (crossing.ref, crossing.home):
                    if ref is not None and self._crossings.get(ref) is crossing:
                        del self._crossings[ref]

    def _export(self, ref: Ref) -> Crossing:
        oid = self._proxies.number(ref)
        if oid is not None:  # a proxy that was forgotten here, and kept by somebody
            return self.imports.get(oid) or self._cross(self.imports, Crossing(ref, _wire(YOURS, oid)))
        bound: bool = ref.facet is not None  # as Ref.unbound() is not
        if bound and ref.facet.actor.system is not self._inert.facet.actor.system:
            raise NotAValue(f"{ref!r} cannot cross: {foreign(ref.facet.actor)}")
        self._next += 1
        crossing = self._cross(self.exports, Crossing(ref, _wire(MINE, self._next - 1)))
        if getattr(ref.entity, "asked", None) is not None:
            # A handler's: what the peer has others tell it must be what it has asked for, as well.
            crossing.home = Ref(ref.facet, Passage(ref), True)
            self._crossings[crossing.home] = crossing
        return crossing

    def _import(self, oid: int) -> Crossing:
        return self._cross(self.imports, Crossing(self._proxies.proxy(oid), _wire(YOURS, oid)))

    def _cross(self, table: dict[int, Crossing], crossing: Crossing) -> Crossing:
        table[crossing.wire.oid] = self._crossings[crossing.ref] = crossing
        return crossing

    def __repr__(self) -> str:
        return f"<Membrane of {len(self.exports)} exports and {len(self.imports)} imports>"
