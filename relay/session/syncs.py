"""Syncs across a connection: who awaits the peer's answer, and who awaits ours for the peer."""

from __future__ import annotations

from typing import ClassVar, Protocol

from relay.session.membrane import Crossing, Membrane
from relay.session.proxy import Proxy
from syndicate.actors.turn import UNSENT, Entity, Handle, current
from syndicate.index.bag import Bag
from syndicate.index.event import MESSAGE
from syndicate.values.value import FALSE, Assertion, Frozen, Ref, Value, thaw


class Asking(Protocol):
    """What they need of a session."""

    membrane: Membrane

    @property
    def asked(self) -> Bag:
        """Who waits for the peer's answers."""


class Asker(Entity):
    """Hands on the reply to a sync to *peer*, for which somebody else asserts, and knows what."""

    def __init__(self, peer: Ref) -> None:
        self.peer = peer

    def asserts(self, handle: Assertion) -> bool:
        """Whether *peer*'s actor asserts what the connection knows by *handle*."""
        return isinstance(handle, Handle) and handle.facet.actor is self.peer.facet.actor

    def message(self, value: Value) -> None:
        """The reply."""
        current("sync").send(self.peer, value)


class Echo(Entity):
    """Awaits the peer's answer to a sync of ours; which is no success if it is ``doubtful``: who asked asserts what
    did not go out.
    """

    __slots__ = (
        "doubtful",
        "pins",
        "session",
        "waiting",
    )

    raw: ClassVar[bool] = True

    def __init__(self, session: Asking, waiting: Ref, pins: list[Crossing]) -> None:
        self.session = session
        self.waiting = waiting
        self.pins = pins
        self.doubtful = False

    def doubt(self) -> None:
        """Look at all that the peer was to be notified of, since something could not go: that is a rare case."""
        entity = self.waiting.entity
        asserts = (entity if isinstance(entity, Asker) else Asker(self.waiting)).asserts
        proxies = [crossing.ref.entity for crossing in self.session.membrane.imports.values()]
        self.doubtful = any(
            proxy.unsent(handle) and asserts(handle)
            for proxy in proxies
            if isinstance(proxy, Proxy)
            for handle in proxy.sent
        )

    def message(self, form: Frozen) -> None:
        """The answer."""
        pins, self.pins = self.pins, []
        if pins:  # only the first counts
            self.session.membrane.release(pins)
            self.session.asked.remove(self.waiting)
            current("sync").send(self.waiting, form != FALSE and (UNSENT if self.doubtful else True))


class Answer(Entity):
    """Awaits our answer to a sync of the peer's."""

    __slots__ = (
        "peer",
        "pins",
        "session",
    )

    raw: ClassVar[bool] = True

    def __init__(self, session: Asking, peer: Ref, pins: list[Crossing]) -> None:
        self.session = session
        self.peer = peer
        self.pins = pins

    def message(self, form: Frozen) -> None:
        """The answer."""
        pins, self.pins = self.pins, []
        if pins:
            form = FALSE if form is UNSENT else form
            current("sync").enqueue(
                self.peer.facet.actor, (MESSAGE, self.peer, form if self.peer.raw else thaw(form), None)
            )
            self.session.membrane.release(pins)
