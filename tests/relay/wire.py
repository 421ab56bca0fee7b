"""Two sessions that face each other in one actor system, with bytes between them and no sockets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from relay.codec import Msgpack
from relay.packets import Packet, Turn, read, write
from relay.session import Session
from syndicate import Ref, prevent_inert_check, spawn
from syndicate.errors import ProtocolError
from syndicate.facet import Facet
from syndicate.system import System
from syndicate.testing import settled
from syndicate.turn import current


class End:
    """One end: an actor with a session; ``facet`` is where a test acts, ``sent`` the packets that it has sent."""

    session: Session
    facet: Facet
    peer: End

    def __init__(self, name: str) -> None:
        self.name = name
        self.published: Ref | None = None
        self.sent: list[Packet] = []

    def boot(self) -> None:
        """Be an actor."""
        facet = current("boot").facet
        assert facet is not None
        prevent_inert_check()
        self.facet = facet
        self.session = Session(facet, self.transmit, name=self.name, codec=Msgpack(), publish=self.published)

    def transmit(self, data: bytes) -> None:
        """Let the other end have it."""
        for form in Msgpack().feed(data):
            self.sent.append(read(form))
        self.peer.facet.enter(partial(self.peer.take, data))

    def take(self, data: bytes) -> None:
        """Do what a link does."""
        assert self.session.codec is not None
        try:
            for form in self.session.codec.feed(data):
                self.session.receive(read(form))
        except ProtocolError as e:
            self.session.fail(e)

    def inject(self, packet: Packet) -> None:
        """Get a packet that the other end never sent."""
        self.facet.enter(partial(self.take, Msgpack().encode(write(packet))))

    @property
    def events(self) -> list[Any]:
        """The events that it has sent, without their targets."""
        return [event for packet in self.sent if isinstance(packet, Turn) for _, event in packet.entries]

    @property
    def crossings(self) -> tuple[int, int, int, int]:
        """Exports, imports, the peer's handles, and our handles that the peer knows."""
        membrane = self.session.membrane
        proxies = [crossing.ref.entity for crossing in membrane.imports.values()]
        return len(membrane.exports), len(membrane.imports), len(self.session._told), sum(len(p._sent) for p in proxies)


class Wire:
    """Both ends.  The right one publishes what *publish* makes, in a third actor that outlives the sessions.

    ``remote`` is the left one's reference to it.
    """

    def __init__(self, publish: Callable[[], Ref]) -> None:
        self.publish = publish
        self.left, self.right = End("left"), End("right")
        self.left.peer, self.right.peer = self.right, self.left
        self.system: System = settled(self._boot)
        self.remote = self.left.session.membrane.expect(0)

    def _boot(self) -> None:
        prevent_inert_check()
        self.right.published = self.publish()
        spawn(self.left.boot, name="left")
        spawn(self.right.boot, name="right")

    def act(self, end: End, fn: Callable[[], object]) -> None:
        """Run *fn* in an end's facet, and all that it causes."""
        end.facet.enter(fn)
        self.system.drain()
