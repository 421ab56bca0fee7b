"""The events of a packet: what a packet of a peer's says, in the order in which a turn does it.

A packet is one atomic patch: additions and messages in their order, then retractions, then replies to syncs.  Our own
programs send it like that; those of others, which may retract first, are put in order here, and done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final, TypeAlias

from relay.protocol.observer import heard
from relay.protocol.packets import Entry
from relay.session.backlog import interests_first
from relay.session.membrane import Crossing, Membrane
from relay.session.peer_assertions import PeerAssertion
from syndicate.actors.facet import AbstractSystem, Facet
from syndicate.actors.turn import Turn
from syndicate.index.event import ASSERT, MESSAGE, RETRACT, SYNC
from syndicate.values.value import TRUE, Frozen, Ref, thaw

Understood: TypeAlias = tuple[int, Ref | None, Frozen, PeerAssertion | None]
"""An event of the peer's: its kind, its target here, its value as we have it, and the assertion that it is about.  Of a
retraction the value is :data:`BRIEF` if the same turn asserts it.
"""

BRIEF: Final = TRUE


WHILE: Final = 0.0003
"""Seconds after which others are looked at: an event may hold thousands of nested values in caveats, or none."""


_SEEN: Final = 8
"""The parts of events that are only looked at in the time in which one is done."""


def for_a_while(system: AbstractSystem, entries: Sequence[Entry]) -> Iterator[Entry]:
    """As many of *entries*, from the first, as are taken within ``WHILE``; at least one.

    Where the clock is a simulated one, all of them: it goes on with each look, and kernels look less often.
    """
    if system.stopwatch is not None:
        yield from entries
        return
    ends = perf_counter() + WHILE
    for entry in entries:
        yield entry
        if perf_counter() > ends:
            break


def divisible(events: Iterable[Understood]) -> list[Understood]:
    """The *events* of a packet in the order in which they may be several turns: what asserts and sends, interests
    first; then what retracts; then syncs.
    """
    return interests_first(sorted(events, key=_place))


def _place(event: Understood) -> int:
    return 2 if event[0] == SYNC else event[0] == RETRACT


def patched(
    events: list[Understood], release: Callable[[Iterable[Crossing]], object], most: int
) -> Iterator[list[Understood] | None]:
    """What is to be done for the *events* of a packet: additions and messages, then retractions, then syncs.  It comes
    last: before it there is None after each *most* of them, where others may have their turns.

    Where nothing is asserted after a retraction they are as they were; else *release* gets back what is held twice.

    A value that is retracted and asserted again, at the same target, has never gone: our handle for it is from now
    on the new one's.  An observer of ours, which is notified of a value once, would else hear of it twice.  Where the
    turn also says something to that target it may be about the value (``<forget V>``), and so the target gets both.
    """
    seen = _SEEN * most
    parts = [events[first : first + seen] for first in range(0, len(events), seen)] if len(events) > seen else [events]
    if not (yield from _replacing(parts)):
        yield events
        return
    spoken = set[Ref | None]()
    for part in parts:
        spoken.update([target for kind, target, _, _ in part if kind == MESSAGE])
        if len(events) > most:
            yield None
    gone: dict[tuple[Ref | None, Frozen], list[PeerAssertion]] = {}
    acts, syncs = list[Understood](), list[Understood]()
    places = dict[PeerAssertion, int]()  # of what this turn asserts
    for first in range(0, len(events), most):
        if first:
            yield None
        for event in events[first : first + most]:
            kind, target, value, assertion = event
            if kind == SYNC:
                syncs.append(event)
            elif assertion is None:
                acts.append(event)
            elif kind == ASSERT and target not in spoken and (alike := gone.get((target, value))):
                old = alike.pop()
                if old in places:
                    places[assertion] = at = places.pop(old)
                    acts[at] = event
                else:
                    assertion.handle = old.handle
                release(old.pins)
            elif kind == ASSERT:
                places[assertion] = len(acts)
                acts.append(event)
            else:
                gone.setdefault((_home(assertion, places, acts), assertion.form), []).append(assertion)
    going = list[Understood]()
    for count, assertions in enumerate(gone.values(), 1):
        going += [retraction(assertion) for assertion in assertions]
        if count % most == 0:
            yield None
    yield [*acts, *going, *syncs]


def retraction(assertion: PeerAssertion | None) -> Understood:
    """That of an assertion, before the packet is done: what has no handle yet was asserted by it."""
    return RETRACT, None, BRIEF if assertion is not None and assertion.handle is None else None, assertion


def _home(assertion: PeerAssertion, places: Mapping[PeerAssertion, int], acts: Sequence[Understood]) -> Ref | None:
    """The target of what is retracted, which the same turn may have asserted."""
    if assertion in places:
        return acts[places[assertion]][1]
    return None if assertion.handle is None else assertion.handle.target


def _replacing(parts: list[list[Understood]]) -> Generator[None, None, bool]:
    """Whether something is asserted after a retraction; None before each part, if there are several."""
    replaces = retracted = False
    for part in parts:
        if len(parts) > 1:  # to understand the last of them was one, too
            yield None
        replaces = replaces or _replaces(part, retracted)
        retracted = retracted or (len(parts) > 1 and RETRACT in [event[0] for event in part])
    return replaces


def _replaces(events: list[Understood], retracted: bool) -> bool:
    """Whether something is asserted after a retraction, or at all where something is *retracted* already."""
    for event in events:
        if event[0] == RETRACT:
            retracted = True
        elif retracted and event[0] == ASSERT:
            return True
    return False


def act(event: Understood, turn: Turn, facet: Facet, membrane: Membrane) -> None:
    """Do what an *event* of the peer's says, whose session lives in *facet*."""
    kind, target, value, assertion = event
    if kind == RETRACT:
        if assertion is not None:
            if assertion.handle is not None:
                assertion.handle.brief = value is BRIEF  # in time: what the turn asserts is not yet handed over
                turn.retract(assertion.handle)
            membrane.release(assertion.pins)
    elif target is None:  # what we do not export, or no longer: nobody is there to hear it
        if kind == SYNC:
            turn.send(value, True)
    elif kind != SYNC and not heard(target, value):
        pass
    elif kind == ASSERT:
        assertion.handle = turn.assert_form(facet, target, value)  # type: ignore[union-attr]  # not None where asserted
    elif kind == MESSAGE:
        turn.enqueue(target.facet.actor, (MESSAGE, target, value if target.raw else thaw(value), None))
    else:
        turn.sync(target, value)
