"""Two sessions that face each other in one actor system, with bytes between them and no sockets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from relay.protocol.codec import Codec, Msgpack
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import Packet, TurnPacket, read, write
from relay.session.proxy import Proxy
from relay.session.session import Session
from syndicate import Ref, prevent_inert_check, spawn
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import current
from syndicate.testing import settled


class End:
    """One end: an actor with a session; ``facet`` is where a test acts, ``sent`` the packets that it has sent.

    While it is ``blocked`` the other end takes nothing of it.
    """

    session: Session
    facet: Facet
    peer: End

    def __init__(self, name: str, limits: Limits, codec: Callable[[Limits], Codec] = Msgpack) -> None:
        self.name = name
        self.limits = limits
        self.codec = codec
        self.published: Ref | None = None
        self.sent: list[Packet] = []
        self.blocked = False
        self._heard = codec(DEFAULT)

    def boot(self) -> None:
        """Be an actor."""
        facet = current("boot").facet
        assert facet is not None
        prevent_inert_check()
        self.facet = facet
        self.session = Session(
            facet, self.wake, name=self.name, codec=self.codec(self.limits), publish=self.published, limits=self.limits
        )

    def wake(self) -> None:
        """Let the other end have what there is."""
        while not self.blocked and self.step():
            pass

    def step(self, most: int = 1 << 16) -> bool:
        """Let the other end have some of it; False if there is nothing."""
        packets = self.session.take(most)
        for data in packets:
            self.sent.extend(map(read, self._heard.feed(data)))
        if packets:
            self.peer.hear(b"".join(packets))
        return bool(packets)

    def hear(self, data: bytes) -> None:
        """Do what a link does."""
        self.session.debt += len(data)
        self.facet.enter(partial(self.session.feed, data))

    def inject(self, packet: Packet) -> None:
        """Get a packet that the other end never sent."""
        self.hear(self.codec(DEFAULT).encode(write(packet)))

    @property
    def events(self) -> list[Any]:
        """The events that it has sent, without their targets."""
        return [event for packet in self.sent if isinstance(packet, TurnPacket) for _, event in packet.entries]

    @property
    def crossings(self) -> tuple[int, int, int, int]:
        """Exports, imports, the peer's handles, and our handles that the peer knows."""
        membrane = self.session.membrane
        proxies = [crossing.ref.entity for crossing in membrane.imports.values()]
        sent = sum(len(proxy.sent) for proxy in proxies if isinstance(proxy, Proxy))
        return len(membrane.exports), len(membrane.imports), len(self.session.assertions), sent


class Wire:
    """Both ends.  The right one publishes what *publish* makes, in a third actor that outlives the sessions.

    ``remote`` is the left one's reference to it.
    """

    def __init__(
        self, publish: Callable[[], Ref], limits: Limits = DEFAULT, codec: Callable[[Limits], Codec] = Msgpack
    ) -> None:
        self.publish = publish
        self.left, self.right = End("left", limits, codec), End("right", limits, codec)
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
