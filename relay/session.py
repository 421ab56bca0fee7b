"""A session: one peer.  Packets become turns, and turns become packets.

What the peer asserts is asserted here, in the session's facet, so that it is retracted when the facet ends, however
that comes.  What is done here to a reference of the peer's reaches its :class:`Proxy`; all that happens to proxies in
one turn goes out as one Turn packet when that turn has committed.

A session knows no transport.  :meth:`Session.receive` takes packets, in a turn of the session's facet; *transmit* is
given bytes.  Neither waits: who reads and who writes is in :mod:`relay.link`.

Contract: assertions and messages keep their order; each arrives at most once.  A packet with an error in it has no
effect, and ends the session.  A handle that the peer never got is never retracted there.

Source: the reference, sections 5.3 to 5.5; reliability, invariants I17 to I23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from relay.codec import Codec
from relay.membrane import Crossing, Membrane
from relay.packets import A, Entry, Error, Event, M, Packet, R, Turn, write
from relay.packets import S as SYNCED
from syndicate.errors import NotAValue, ProtocolError
from syndicate.event import ASSERT, MESSAGE, RETRACT, SYNC
from syndicate.facet import Facet
from syndicate.log import logger
from syndicate.turn import Entity, Handle, current
from syndicate.values import TRUE, Frozen, Ref, thaw

_PIECE: Final = 1024
"""The most events in a packet of ours: a quarter of what is allowed, so that the other limits are seldom met."""


class Session:
    """One peer.  Lives in the facet that is current when it is made, and ends with it.

    *codec* may come later, with the peer's first byte.  *publish* is what the peer finds under number 0.
    ``reason`` says why the session ended, once it has.
    """

    def __init__(
        self,
        facet: Facet,
        transmit: Callable[[bytes], None],
        *,
        name: str,
        codec: Codec | None = None,
        publish: Ref | None = None,
    ) -> None:
        self.facet = facet
        self.name = name
        self.codec = codec
        self.reason: str | None = None
        self.membrane = Membrane(self._proxy, self._number, Ref(facet, Entity()))
        if publish is not None:
            self.membrane.publish(publish)
        self.last_handle = 0
        self.unsent: set[int] = set()
        self._transmit = transmit
        self._entries: list[Entry] = []
        self._told: dict[int, _Told] = {}

    # ---------------------------------------------------------------------------------------------------- out

    def note(self, oid: int, event: Event) -> None:
        """Add an event to what this turn tells the peer."""
        if not self._entries:
            current("note").afterwards.append(self._flush)
        self._entries.append((oid, event))

    def _flush(self) -> None:
        entries, self._entries = self._entries, []
        for packet in self._packets(entries):
            self._transmit(packet)

    def _packets(self, entries: list[Entry]) -> Iterator[bytes]:
        """The events as one packet, or as several where they are beyond the limits of one."""
        assert self.codec is not None, "there is no proxy before the peer has spoken"
        if len(entries) <= _PIECE:
            try:
                yield self.codec.encode(write(Turn(entries)))
            except NotAValue as e:
                if len(entries) == 1:
                    self._skip(entries[0][1], e)
                    return
            else:
                return
        half = len(entries) // 2
        yield from self._packets(entries[:half])
        yield from self._packets(entries[half:])

    def _skip(self, event: Event, error: NotAValue) -> None:
        if event[0] is A:
            self.unsent.add(event[2])
        self.complain(error)

    def complain(self, error: NotAValue) -> None:
        """Say that something could not be told to the peer; it goes on without."""
        logger(peer=self.name).error("not told to the peer", reason=str(error))

    def _proxy(self, oid: int) -> Ref:
        proxy = Proxy(self, oid)
        proxy.ref = Ref(self.facet, proxy, True)
        return proxy.ref

    def _number(self, ref: Ref) -> int | None:
        proxy = ref.entity
        return proxy.oid if type(proxy) is Proxy and proxy.session is self else None

    # ---------------------------------------------------------------------------------------------------- in

    def receive(self, packet: Packet) -> None:
        """Do what a packet says, in a turn of the session's facet; or do nothing, and raise :class:`ProtocolError`."""
        if type(packet) is Turn:
            # First all that may fail, then all that has effects.
            for kind, target, value, told in [self._understood(oid, event) for oid, event in packet.entries]:
                self._act(kind, target, value, told)
        elif type(packet) is Error:
            self.end(f"the peer gave up: {packet.message}")

    def _understood(self, oid: int, event: Event) -> tuple[int, Ref | None, Frozen, _Told | None]:
        kind = event[0]
        membrane = self.membrane
        if kind is M:
            return MESSAGE, membrane.target(oid), membrane.inward(event[1], None), None
        if kind is A:
            number = event[2]
            if number in self._told:
                raise ProtocolError(f"handle {number} is in use already")
            pins: list[Crossing] = []
            target = membrane.target(oid, pins)
            told = self._told[number] = _Told(pins)
            return ASSERT, target, membrane.inward(event[1], pins), told
        if kind is R:
            # A handle that we do not know is no error: the peer may retract what we have refused.
            return RETRACT, None, None, self._told.pop(event[1], None)
        pins = []
        peer = membrane.inward(event[1], pins)
        return SYNC, membrane.target(oid), Ref(self.facet, _Answer(self, peer, pins), True), None

    def _act(self, kind: int, target: Ref | None, value: Frozen, told: _Told | None) -> None:
        turn = current("receive")
        if kind == RETRACT:
            if told is not None:
                if told.handle is not None:
                    turn.retract(told.handle)
                self.membrane.release(told.pins)
        elif target is None:  # what we do not export, or no longer: nobody is there to hear it
            if kind == SYNC:
                turn.send(value, True)
        elif kind == ASSERT:
            told.handle = turn.assert_form(self.facet, target, value)  # type: ignore[union-attr]
        elif kind == MESSAGE:
            turn.enqueue(target.facet.actor, (MESSAGE, target, value if target.raw else thaw(value), None))
        else:
            turn.sync(target, value)

    # ---------------------------------------------------------------------------------------------------- its end

    def fail(self, error: ProtocolError) -> None:
        """Tell the peer what it did wrong, and end."""
        if self.codec is not None:
            self._transmit(self.codec.encode(write(Error(str(error), TRUE))))
        self.end(f"the peer broke the protocol: {error}")

    def end(self, reason: str) -> None:
        """Stop the session's facet: all that the peer had asserted is retracted."""
        if self.reason is None:
            self.reason = reason
        self.facet.stop(current("end"))

    def __repr__(self) -> str:
        return f"<Session with {self.name}>"


class _Told:
    """An assertion of the peer's: our handle for it, and the references that it holds in place."""

    __slots__ = ("handle", "pins")

    def __init__(self, pins: list[Crossing]) -> None:
        self.handle: Handle | None = None
        self.pins = pins


class Proxy(Entity):
    """A reference of the peer's, here."""

    raw: ClassVar[bool] = True
    ref: Ref

    def __init__(self, session: Session, oid: int) -> None:
        self.session = session
        self.oid = oid
        self._sent: dict[Any, tuple[int, list[Crossing]]] = {}

    def assert_(self, form: Frozen, handle: Any) -> None:
        """Assert it there."""
        session, membrane, pins = self.session, self.session.membrane, list[Crossing]()
        try:
            wire = membrane.outward(form, pins)
        except NotAValue as e:
            membrane.release(pins)
            session.complain(e)
            return
        membrane.use(self.ref, pins)
        session.last_handle = number = session.last_handle + 1
        self._sent[handle] = (number, pins)
        session.note(self.oid, (A, wire, number))

    def retract(self, handle: Any) -> None:
        """Retract it there, if it was ever told."""
        sent = self._sent.pop(handle, None)
        if sent is not None:
            number, pins = sent
            if number in self.session.unsent:
                self.session.unsent.discard(number)
            else:
                self.session.note(self.oid, (R, number))
            self.session.membrane.release(pins)

    def message(self, form: Frozen) -> None:
        """Send it there."""
        session = self.session
        try:
            session.note(self.oid, (M, session.membrane.outward(form, None)))
        except NotAValue as e:
            session.complain(e)

    def sync(self, peer: Ref) -> None:
        """Let the peer answer once it has handled everything before."""
        session, pins = self.session, list[Crossing]()
        echo = Ref(session.facet, _Echo(session, peer, pins), True)
        session.note(self.oid, (SYNCED, session.membrane.outward(echo, pins)))


class _Echo(Entity):
    """Awaits the peer's answer to a sync of ours."""

    raw: ClassVar[bool] = True

    def __init__(self, session: Session, waiting: Ref, pins: list[Crossing]) -> None:
        self.session = session
        self.waiting = waiting
        self.pins = pins

    def message(self, form: Frozen) -> None:
        pins, self.pins = self.pins, []
        if pins:  # only the first counts
            self.session.membrane.release(pins)
            current("sync").send(self.waiting, True)


class _Answer(Entity):
    """Awaits our answer to a sync of the peer's."""

    raw: ClassVar[bool] = True

    def __init__(self, session: Session, peer: Ref, pins: list[Crossing]) -> None:
        self.session = session
        self.peer = peer
        self.pins = pins

    def message(self, form: Frozen) -> None:
        pins, self.pins = self.pins, []
        if pins:
            current("sync").enqueue(
                self.peer.facet.actor, (MESSAGE, self.peer, form if self.peer.raw else thaw(form), None)
            )
            self.session.membrane.release(pins)
