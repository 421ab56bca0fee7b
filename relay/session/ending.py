"""How what a peer had asserted goes when its session ends: in as many turns as that takes.

Each part goes with a facet that stops, as all of it would with the session's if it were little: so who tells what is
lost from what is taken back (:mod:`relay.server.durable`) still can.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from relay.session.fan_out import SOME, Reach
from relay.session.membrane import Membrane
from relay.session.packet_events import Understood
from relay.session.peer_assertions import PeerAssertions
from syndicate.actors.facet import Facet
from syndicate.actors.turn import current
from syndicate.index.event import RETRACT

_PART: Final = 64
"""The most assertions that go at once: some tenths of a millisecond."""


class Ending(Protocol):
    """What is needed of a session."""

    facet: Facet
    assertions: PeerAssertions
    membrane: Membrane

    def soon(self, piece: Callable[[], None], cost: int) -> None:
        """Do it later."""


def take_back(session: Ending, then: Callable[[], object]) -> None:
    """Retract all that the peer had asserted, the first part of it now, and do *then* in the last turn of that."""
    assertions, turn = session.assertions, current("end")
    going = assertions.oldest(_PART)
    events: list[Understood] = [(RETRACT, None, None, assertion) for _, assertion in going]
    fitting = Reach(SOME).fitting(events)
    part = Facet(session.facet.actor, session.facet)
    for number, assertion in going[: max(1, fitting)]:
        assertions.remove(number)
        if assertion.handle is not None:
            assertion.handle.pass_to(part)
        session.membrane.release(assertion.pins)
    part.stop(turn)
    if len(assertions):
        session.soon(partial(take_back, session, then), len(going))
    else:
        then()
