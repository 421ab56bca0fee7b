"""The patch: what a packet of a peer's says, in the order in which a turn does it.

A packet is one atomic patch: additions and messages in their order, then retractions, then replies to syncs.  Our own
programs send it like that; those of others, which may retract first, are put in order here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeAlias

from relay.session.membrane import Crossing
from relay.session.peer_assertions import PeerAssertion
from syndicate.index.event import ASSERT, MESSAGE, RETRACT, SYNC
from syndicate.values.value import Frozen, Ref

Understood: TypeAlias = tuple[int, Ref | None, Frozen, PeerAssertion | None]
"""An event of the peer's: its kind, its target here, its value as we have it, and the assertion that it is about."""


def place(event: Understood) -> int:
    """Where an event is in its turn: what retracts comes after what asserts and sends, and a sync after all."""
    return 2 if event[0] == SYNC else event[0] == RETRACT


def patched(events: list[Understood], release: Callable[[Iterable[Crossing]], object]) -> list[Understood]:
    """What is to be done for the *events* of a packet: additions and messages, then retractions, then syncs.

    Where nothing is asserted after a retraction they are as they were; else *release* gets back what is held twice.

    A value that is retracted and asserted again, at the same target, has never gone: our handle for it is from now
    on the new one's.  An observer of ours, which is notified of a value once, would else hear of it twice.  Where the
    turn also says something to that target it may be about the value (``<forget V>``), and so the target gets both.
    """
    if not _replaces(events):
        return events
    spoken = {target for kind, target, _, _ in events if kind == MESSAGE}
    gone: dict[tuple[Ref | None, Frozen], list[PeerAssertion]] = {}
    acts = list[Understood]()
    places = dict[PeerAssertion, int]()  # of what this turn asserts
    for event in events:
        kind, target, value, assertion = event
        if assertion is None:
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
            home = (
                acts[places[assertion]][1]
                if assertion in places
                else None
                if assertion.handle is None
                else assertion.handle.target
            )
            gone.setdefault((home, assertion.form), []).append(assertion)
    acts.extend([(RETRACT, None, None, assertion) for assertion in chain.from_iterable(gone.values())])
    return sorted(acts, key=place)


def _replaces(events: list[Understood]) -> bool:
    """Whether something is asserted after a retraction."""
    retracted = False
    for event in events:
        if event[0] == RETRACT:
            retracted = True
        elif retracted and event[0] == ASSERT:
            return True
    return False
