"""A session: one peer.  Packets become turns, and turns become packets.

What the peer asserts is asserted here, in the session's facet, so that it is retracted when the facet ends, however
that comes.  What is done here to a reference of the peer's reaches its :class:`Proxy`; all that happens to proxies in
one turn goes out as one packet when that turn has committed, as long as the peer keeps up.  If it does not, what
happens waits in a :class:`~relay.session.backlog.Backlog`, and becomes packets when the peer takes them.

A packet is a turn, and so one atomic patch, in both directions: in none that we send is a retraction before an addition
or a message, and those of programs that do otherwise are put in order here.  One that may tell too many becomes several
turns (:mod:`relay.session.fan_out`), its retractions in the last of them.

A session knows no transport, and waits for nothing.  :meth:`Session.feed` is given bytes, in a turn of the session's
facet; :meth:`Session.take` is asked for packets, at any time; *wake* is called when there are some.  Who reads and who
writes is in :mod:`relay.session.link`.

What was read of a peer is its debt (:mod:`~relay.session.intake`) until it has been handled.  A read may bring
thousands of events: they are done in several turns, between which all others have theirs.

Contract: assertions and messages keep their order; each arrives at most once.  A packet with an error in it has no
effect, and ends the session.  A handle that the peer never got is never retracted there.  Nothing in a turn waits for
the peer; what waits for it is bounded by what is asserted, and by the limits.

Source: Syndicate protocol; ``docs/design/protocol.md``, "Packets and events" and "References and membranes";
``docs/design/relay.md``, "Slow peers" and "Work".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from relay.capabilities.forwarding import growth_before
from relay.protocol.codec import MORE, Codec, Msgpack, codec_for
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import (
    A,
    Error,
    Event,
    Extension,
    M,
    Nop,
    Packet,
    R,
    WireRef,
    liveness,
    read,
    read_entries,
    rhythm,
    write,
)
from relay.protocol.packets import S as SYNCED
from relay.session.backlog import ENTRY, Note, interests_first, weight
from relay.session.causes import PacketTrail
from relay.session.ending import take_back
from relay.session.fan_out import ENOUGH, SOME, Reach, many, stretch
from relay.session.membrane import Crossing, Membrane
from relay.session.outbox import Entry, Outbox, are_too_much
from relay.session.packet_events import Understood, act, divisible, for_a_while, patched, retraction
from relay.session.peer_assertions import PeerAssertions
from relay.session.proxy import Proxy
from relay.session.shared_bytes import said
from relay.session.state import NO_EVENTS, NO_NOTES, NO_PACKETS, PART, State
from relay.session.statistics import Statistics
from relay.session.syncs import Answer, Echo
from relay.session.usual_packets import Done, act_usual, do_usual, say_usual, understand_usual
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Turn, current
from syndicate.actors.turn_slices import let_go
from syndicate.errors import NotAValue, ProtocolError
from syndicate.index.event import ASSERT, ENTER, MESSAGE, RETRACT, SYNC
from syndicate.values.value import SEQ, TRUE, Frozen, Ref, Symbol, Value

_PIECE: Final = 1024
"""The most events that are put into the backlog at once."""

_TAKEN: Final = 256
"""The most events that are taken from the backlog at once: a few milliseconds."""

_INERT: Final = Entity()
"""What hears nothing."""

PING: Final = Msgpack().encode(write(Nop()))
"""A byte, in our own encoding."""

PINGS: Final = 3
"""So many bytes, where no packet has begun and no more come, wake nobody: pings, or the begin of a packet."""

_SHARE: Final = 64
"""The events, or packets, after which a peer lets others have their turns, before its next packet: a millisecond."""


class Session(State):
    """One peer.  Lives in the facet that is current when it is made, and ends with it.
    *codec* may come later, with the peer's first byte.  *publish* is what the peer finds under number 0.  *wake* is
    called when there is something to take, *repaid* when what was fed is done, and when the debt has shrunk, *admitted*
    when a peer that was ``untrusted`` has been given something by the gatekeeper that it finds under number 0; until
    then *charge* is asked whether so many bytes may be held of it.
    """

    __slots__ = ()

    def __init__(
        self,
        facet: Facet,
        wake: Callable[[], object],
        *,
        name: str,
        codec: Codec | None = None,
        publish: Ref | None = None,
        limits: Limits = DEFAULT,
        repaid: Callable[[], object] = int,
        admitted: Callable[[], object] = int,
        charge: Callable[[int], bool] = lambda size: True,
    ) -> None:
        State.__init__(self, facet, name, codec, limits, repaid)
        self.membrane = Membrane(self, Ref(facet, _INERT))
        if publish is not None:
            self.membrane.publish(publish)
        self.untrusted = publish is not None and getattr(publish.entity, "guards", False)
        facet.hooks.append((self._unanswered, True))
        self.outbox = Outbox(limits, self, codec)
        self._wake = wake
        self._repaid = repaid
        self._admitted = admitted
        self._charge = charge
        self._trail = PacketTrail(facet, self)
        if codec is not None and (offer := self._trail.offer()) is not None:
            self.outbox.put(codec.encode(write(offer)))

    # ---------------------------------------------------------------------------------------------------- out

    def note(self, note: Note) -> None:
        """Add an event to what this turn tells the peer."""
        if self._silent:
            return
        if not self._noted:
            current("note").afterwards.append(self._flush)
            self._noted = []
        self._noted.append(note)

    def _flush(self) -> None:
        notes, self._noted = self._noted, NO_NOTES
        if self._silent:
            return
        if self._turns or many(notes) or self.backlog.entries or self.outbox.waiting > self.limits.ahead:
            self._later(notes)
            return
        if self._trail.agreed or not said.say(notes, self.outbox, self.limits):
            events = self.outbox.events
            if not self._say_usual(notes):
                if are_too_much(notes, self.limits):
                    self._later(notes)
                    return
                self._encode(notes)
                if self.outbox.said:
                    self._bound()
            if self.outbox.events > events:  # else what is queued last says something else
                said.remember(notes, self.outbox, self.limits)
        self._wake()

    def _later(self, notes: list[Note]) -> None:
        self._turns.append(notes)
        if not self._going_out:
            self._go_out()

    def _go_out(self) -> None:
        """Let a piece of what has committed go out; others have their turns before the next."""
        cost = self._piece() if self._turns else 0
        self._wake()
        self._going_out = bool(self._turns)
        if self._going_out:
            self.soon(self._go_out, cost)

    def _piece(self) -> int:
        """Weigh or encode a part of what has committed; while the peer is behind, let a piece wait as state.  Returns
        how many events.
        """
        notes, at, limits = self._turns[0], self._at, self.limits
        behind = not self._left and (self.backlog.entries > 0 or self.outbox.waiting > limits.ahead)
        if behind:
            self._sizes = None
            if not at and len(notes) > _PIECE:
                notes[:] = interests_first(notes)
            piece = notes[at : at + _PIECE]
            self.backlog.put(piece)  # until the peer has taken what was encoded
        else:
            if not self._left and not self._weighed(notes, at):
                return PART
            piece = notes[at : at + min(self._left, PART)]
            piece = piece[: stretch([note[2] for note in piece])]
            if not self._say_usual(piece, self._left - len(piece)):
                self._encode(piece, self._left - len(piece))
        self._at = at + len(piece)
        if self._at == len(notes):
            self._turns.pop(0)
            self._at = 0
            let_go(self.facet.actor, notes)
        self._bound()
        return len(piece)

    def _bound(self) -> None:
        if self.burden > self.limits.outbox:
            self.cut("slow-consumer", f"more than {self.limits.outbox} bytes waited for the peer")

    def take(self, most: int, *, hurry: bool = False) -> list[bytes]:
        """Packets to be sent at once, of *most* bytes, or of one packet; those that were taken before have been sent.
        None: there is nothing to be sent, or, without *hurry*, not yet: what has committed is encoded in pieces.
        """
        outbox = self.outbox
        packets = outbox.take(most)
        while not packets and (self.backlog.entries or (self._turns and (hurry or not self.facet.alive))):
            if self.backlog.entries:
                self._encode(self.backlog.take(min(_TAKEN, self.limits.events), most))
            else:
                self._piece()
            packets = outbox.take(most)
        return packets

    def sent(self) -> bool:
        """What was taken has been sent; whether there is nothing more to take."""
        return self.outbox.sent() and not self.behind

    def say(self, packet: Packet) -> None:
        """Let the peer hear something that is about the connection alone."""
        if self.codec is not None and not self._silent:
            self.outbox.put(self.codec.encode(write(packet)))
            self._wake()

    def _say_usual(self, notes: Sequence[Note], left: int = 0) -> bool:
        """Queue them as one packet, or as a part of one of which so many are *left*, if a kernel can do it."""
        codec, outbox = self.codec, self.outbox
        if codec is None or codec.tables is None or outbox.unsent or self._trail.agreed:
            return False
        if outbox.drafts or (self._over and notes[0][0] < RETRACT):
            return False
        usual = say_usual(self.membrane, codec.tables, notes, self.last_handle)
        if usual is None:
            return False
        self.last_handle = usual[1]
        over = notes[-1][0] == RETRACT  # these are the last ones
        if over:
            self.retracts_out += sum([note[0] == RETRACT for note in notes])
        if left or outbox.begun:
            outbox.put_part(usual[0], [note[2] for note in notes], more=left > 0)
        else:
            outbox.put(usual[0], len(notes))
        self._left, self._over = left, over and left > 0
        return True

    def _encode(self, notes: Sequence[Note], left: int = 0) -> None:
        """Queue them, each turn among them as one packet if the limits allow, once none of it are *left*.  References
        cross here.

        An addition or a message that follows a retraction is another turn's: a peer that was slow gets several.
        """
        membrane, over = self.membrane, self._over
        entries, begun = list[Entry](), self.outbox.begun
        if self._trail.agreed and not begun:
            self._trail.leave()
        for kind, proxy, value, handle in notes:
            if over and kind < RETRACT:  # an addition or a message
                if entries or begun:
                    self.outbox.send(entries)
                entries, over, begun = [], False, False
            if kind == RETRACT:
                over = True
                sent = proxy.sent.pop(handle, None)
                if sent is not None:  # else it was never notified of it
                    number, pins, _ = sent
                    membrane.release(pins)
                    self.retracts_out += 1
                    entries.append((SEQ, proxy.oid, (R, number)))
            elif kind == ASSERT:
                pins = []
                self.last_handle = number = self.last_handle + 1
                try:
                    wire = membrane.outward(value, pins)
                except NotAValue as e:
                    membrane.release(pins)
                    pins = []
                    self.outbox.omit(number)
                    self.complain(e)
                else:
                    membrane.use(proxy.ref, pins)
                    entries.append((SEQ, proxy.oid, (A, wire, number)))
                proxy.sent[handle] = number, pins, value
            elif kind == MESSAGE:
                try:
                    entries.append((SEQ, proxy.oid, (M, membrane.outward(value, None))))
                except NotAValue as e:
                    self.complain(e)
            else:
                pins = []
                self.syncs_out += 1
                echo = Ref(self.facet, Echo(self, value, pins), True)
                entries.append((SEQ, proxy.oid, (SYNCED, membrane.outward(echo, pins))))
        self._left, self._over = left, over and left > 0
        if entries or begun:
            self.outbox.send(entries, more=left > 0)
        if self.untrusted and membrane.introduced > 1:
            self.untrusted = False
            self._admitted()
            self._admitted, self._charge = int, bool  # nothing of the lobby is needed any more
        if len(membrane.exports) + len(membrane.imports) > self.limits.oids:
            self.cut("oids", f"more than {self.limits.oids} references are known to both sides")

    def soon(self, piece: Callable[[], None], cost: int = _SHARE) -> None:
        """Do it later; what was done now has notified, or reached, *cost*."""
        self.facet.actor.system.postpone(self.facet.actor, (ENTER, self.facet, piece, None), cost / _SHARE)

    def doubt(self, echo: Value) -> None:
        """A sync goes out whose answer is no success if its actor asserts what the peer could not be notified of."""
        assert isinstance(echo, WireRef)
        crossing = self.membrane.exports.get(echo.oid)
        if crossing is not None and isinstance(crossing.ref.entity, Echo):
            crossing.ref.entity.doubt()

    def check_message(self, oid: int, form: Frozen) -> None:
        """Raise :class:`NotAValue` if a message of this to one of the peer's could not go over the connection."""
        if self.codec is not None and not self._silent:
            self.codec.encode((SEQ, (SEQ, oid, (M, self.membrane.outward(form, None)))))

    def proxy(self, oid: int) -> Ref:
        """The reference that stands for a number of the peer's."""
        return Proxy(self, oid, self.facet).ref

    def number(self, ref: Ref) -> int | None:
        """Which number of the peer's it stands for, if for one."""
        proxy = ref.entity
        return proxy.oid if type(proxy) is Proxy and proxy.session is self else None

    # ---------------------------------------------------------------------------------------------------- in

    def feed(self, data: bytes, done: Done | None = None) -> None:
        """Do what *data*, the next bytes of the peer, say, if that is not *done*; in a turn of the session's facet.

        They were added to ``debt`` before.
        """
        self.bytes_in += len(data)
        self._intake.put(data)
        if not self.busy:
            self.busy = True
            self._packets = self._decoded()
            self._go_on(done)

    def hear(self, data: bytes) -> bool:
        """Take *data* for pings, if it is a few and nothing else, as most of what an idle peer says is; no turn is
        needed for them.  False, and no effect, if it is to be fed.
        """
        codec, intake = self.codec, self._intake
        if not 0 < len(data) <= PINGS or data.strip(PING):
            return False
        if codec is None or codec.name != "msgpack" or codec.partial or intake.pieces or intake.cut:
            return False
        if self.busy or self.untrusted or self._silent or not (self.packets_in and self.facet.alive):
            return False
        self.bytes_in += len(data)
        self.packets_in += len(data)
        self.pings = True
        return True

    def _decoded(self) -> Iterator[Frozen]:
        """The packets in what was fed, one after the other."""
        intake = self._intake
        while intake.pieces:
            data = intake.pieces[0]
            if self.codec is None:
                self.codec = self.outbox.codec = codec_for(data[0], self.limits)
            self._hold(len(data))
            for form in intake.forms(self.codec):
                if form is MORE:
                    self._hold(0)
                yield form
            self._hold(0)
            self._debt.done(intake.done())

    def _go_on(self, done: Done | None = None) -> None:
        """Do what packets say, until it is enough for a turn, or until all is done that was fed.

        Each packet is a turn of the peer's: what comes later does not overtake what it retracts.
        """
        turn = current("feed")
        reach: Reach | None = None
        first: Sequence[Understood] | None = None
        waiting = max(len(self._acts), len(self._entries))  # of a packet that is charged for already, piece by piece
        events, packets = self.events_in, self.packets_in
        if (usual := self._do_usual(turn, done)) is not None:
            if not usual:
                return
            first, reach = usual
        try:
            while self._acts or self._entries or (form := next(self._packets, None)) is not None:
                if self._silent or not self.facet.alive:  # an earlier one was the last
                    return
                if self._entries:
                    self._understand()
                    self.soon(self._go_on, _SHARE)
                    return
                if not self._acts:
                    if form is MORE:
                        self._long = True
                        self.soon(self._go_on, _SHARE)
                        return
                    if turn.late:
                        turn.hand_over()
                    self.receive(form)
                if self._entries:  # more than is understood at once
                    self.soon(self._go_on, _SHARE)
                    return
                acts = self._acts
                if self._dividing or (len(acts) > PART and not self._trail.agreed):
                    self._charge_part(acts)
                    return
                if first is not None or len(acts) > 1:  # one goes at any rate
                    if reach is None:
                        reach = Reach()
                        reach.fitting(first or ())
                    if reach.fitting(acts) < len(acts):
                        if first is None:
                            self._divide(acts)
                        self.soon(self._go_on, ENOUGH if first is None else reach.total)
                        return
                first, self._acts = first or acts, NO_EVENTS
                if acts and self._trail.agreed:
                    self._trail.arrive()
                self._act_all(turn, acts)
                count = max(self.events_in - events, self.packets_in - packets)
                if waiting + count >= _SHARE:
                    self.soon(self._go_on, max(count, _SHARE) + (0 if reach is None else reach.total))
                    return
        except ProtocolError as e:
            self.fail(e)
            return
        self._packets = NO_PACKETS
        self.busy = False
        self._repaid()

    def _do_usual(self, turn: Turn, done: Done | None) -> tuple[()] | tuple[Sequence[Understood], Reach | None] | None:
        """Do the usual packets with which a piece of what was fed begins, if that is not *done*.  None: there are none;
        nothing: that was all, or is enough for a turn; else what has yet to be charged, and what was.
        """
        codec, intake = self.codec, self._intake
        if codec is None or codec.tables is None or codec.partial or intake.begun or not intake.pieces:
            return None
        if self.untrusted or not self.packets_in or self._trail.agreed:
            return None
        if self._silent or not self.facet.alive:
            return ()
        data, at = intake.pieces[0], intake.place
        at, short, packets, events, total, asserted, retracted, only = done or do_usual(
            turn, self.facet, self.membrane, self.assertions, codec.tables, data, at, self._gulp, _SHARE, ENOUGH
        )
        self.packets_in, self.events_in, intake.place = self.packets_in + packets, self.events_in + events, at
        self.asserts_in += asserted + (only is not None and only[0] == ASSERT)
        self.retracts_in += retracted
        if at == len(data) or (short and intake.keeps(at)):
            self._debt.done(intake.done())
            if not intake.pieces:
                self.busy = False
                self._repaid()
                return ()
        elif events >= _SHARE:
            self.soon(self._go_on, events + total)
            return ()
        if not packets:
            return None
        if only is not None:
            return [only], None
        reach = Reach()
        reach.begin(total, asserted)
        return (), reach

    def _charge_part(self, acts: list[Understood]) -> None:
        """Charge the next of many *acts*; do them once all are charged, or part after part if that is too much."""
        if self._dividing:
            self._divide(acts)
            self.soon(self._go_on, ENOUGH)
            return
        reach = self._reach = self._reach or Reach()
        part = acts[reach.count : reach.count + PART]
        fits = reach.fitting(part) == len(part)
        if fits and reach.count == len(acts):
            self._reach = None
            self._act_in_steps(acts, reach.total)
            return
        if not fits:
            self._acts, self._dividing, self._reach = divisible(acts), True, None
        self.soon(self._go_on, _SHARE)

    def _divide(self, acts: list[Understood]) -> None:
        """Do the first part of what is too much for a turn of its own; the rest waits."""
        acts = acts if self._dividing else divisible(acts)
        fitting = max(1, Reach(SOME).fitting(acts[:PART]))
        self._acts = acts[fitting:]
        self._dividing = len(acts) > fitting
        turn = current("receive")
        for event in acts[:fitting]:
            act(event, turn, self.facet, self.membrane)

    def _act_all(self, turn: Turn, acts: list[Understood]) -> None:
        ready = act_usual(turn, self.facet, acts) if len(acts) > 1 else 0
        for event in acts[ready:]:
            act(event, turn, self.facet, self.membrane)

    def _act_in_steps(self, acts: list[Understood], reached: int) -> None:
        """Do *acts*, which reach so many, in one turn, between whose steps others have theirs."""

        def work() -> Iterator[None]:
            if self._acts is not acts:  # the session has ended before the first of them
                return
            self._acts = NO_EVENTS
            for at in range(0, len(acts), PART):
                self._act_all(current("receive"), acts[at : at + PART])
                yield
            self.soon(self._go_on, _SHARE + reached)
            let_go(self.facet.actor, acts)

        step: Event = (ENTER, self.facet, partial(next, work(), None), None)
        self._acts = acts
        self.facet.actor.system.postpone_steps(self.facet.actor, [step] * (len(acts) // PART + 2), reached / _SHARE)

    def receive(self, form: Frozen) -> None:
        """Understand what a packet says, which is done next; or do nothing, and raise :class:`ProtocolError`."""
        self.packets_in += 1
        if self.packets_in == 1 and self.dials:
            self.say(liveness(self.limits.ping, self.limits.idle))
        if type(form) is tuple and form[0] is SEQ:
            count = len(form) - 1
            if count > self.limits.events:
                raise self._exceeded("events", f"a turn of {count} events", self.limits.events)
            self.events_in += count
            self._entries, self._events = form[1:], []
            if count <= PART:
                self._understand()
            return
        packet = read(form)
        if type(packet) is Nop:
            self.pings = True
        elif type(packet) is Extension:
            self._trail.hear(packet, answers=not self.dials)
            times = rhythm(packet)
            if times is not None:
                if not (self.lively or self.dials):
                    self.say(liveness(self.limits.ping, self.limits.idle))
                self.pings = self.lively = True
                self.ping = min(self.limits.ping, times[1] / 3)
        elif type(packet) is Error:
            self.end(f"the peer gave up: {packet.message}")

    def _understand(self) -> None:
        """Understand the next events of a packet, or put the next in their order.  First all that may fail, then all
        that has effects: nothing is done before all of them are understood.
        """
        entries, events = self._entries, self._events
        at = len(events)
        if at < len(entries):
            part = read_entries(entries[at : at + PART])
            part = part[: stretch([event[1] for _, event in part])]
            usual = understand_usual(self.membrane, self.assertions, part) if len(part) > 1 else ()
            self.asserts_in += len(usual)
            events += usual
            events += [self._understood(*each) for each in for_a_while(self.facet.actor.system, part[len(usual) :])]
        if len(events) == len(entries):
            if self._patch is None:
                self._patch = patched(events, self.membrane.release, PART)
            acts = next(self._patch)
            if acts is not None:
                self._acts, self._patch, self._entries, self._events = acts, None, (), NO_EVENTS
                if self._long or len(events) > PART:  # as it came, and as it was understood
                    self._long = False
                    let_go(self.facet.actor, [*events, entries])

    def _understood(self, oid: int, event: Event) -> Understood:
        kind = event[0]
        membrane = self.membrane
        if kind is M:
            return MESSAGE, membrane.target(oid), membrane.inward(event[1], None), None
        if kind is R:
            self.retracts_in += 1
            # A handle that we do not know is no error: the peer may retract what we have refused.
            return retraction(self.assertions.remove(event[1]))
        pins: list[Crossing] = []
        if kind is A:
            target = membrane.target(oid, pins)
            value = membrane.inward(event[1], pins)
            size = ENTRY + weight(event[1]) + (0 if target is None else growth_before(target))
            assertion = self.assertions.add(event[2], value, pins, size)
            self.asserts_in += 1
            if assertion is None:
                full = len(self.assertions) >= self.limits.handles
                limit, most = ("handles", self.limits.handles) if full else ("asserted", self.limits.asserted)
                raise self._exceeded(limit, f"assertion {event[2]}", most)
        else:
            self.syncs_in += 1
            peer = membrane.inward(event[1], pins)
            target, assertion = membrane.target(oid), None
            value = Ref(self.facet, Answer(self, peer, pins), True)
        if len(membrane.exports) + len(membrane.imports) > self.limits.oids:
            raise self._exceeded("oids", "one more reference", self.limits.oids)
        return ASSERT if kind is A else SYNC, target, value, assertion

    def _exceeded(self, limit: str, what: str, most: int) -> ProtocolError:
        self.exceeded = limit
        return ProtocolError(f"{what}, and a peer may have {most} ({limit}): take back what is no longer needed")

    # ---------------------------------------------------------------------------------------------------- its end

    def fail(self, error: ProtocolError) -> None:
        """Tell the peer what it did wrong, and end; in a turn of the session's facet."""
        self._last_words(Error(str(error), TRUE))
        self.end(f"the peer broke the protocol: {error}")

    def cut(self, limit: str, why: str) -> None:
        """End, in a turn soon, because the peer is beyond one of the limits.  May be called at any time."""
        if not self._silent:
            self.exceeded = limit
            self.outbox.clear()
            self._last_words(Error(f"{limit}: {why}", Symbol(limit)))
            self.facet.enter(lambda: self.end(f"{limit}: {why}"))

    def _last_words(self, packet: Packet) -> None:
        """Say it, and nothing else from now on."""
        self.drop_turns()
        self.say(packet)
        self._silent = True

    def end(self, reason: str) -> None:
        """Retract all that the peer had asserted, and stop the session's facet; in a turn of it."""
        if self.reason is None:
            self.reason = reason
        self._silent = True
        if self.codec is not None:
            self.codec.drop()
        self._intake.cut = b""
        self.withdraw(partial(self._stop, 2))

    def _stop(self, hops: int) -> None:
        """Stop the facet when what went with the peer's assertions has gone: in one turn the dataspaces handle the
        retractions, in the next their observers do.  So what was asked of the peer is answered by the end of whoever
        asked, and only those who live on are notified that there is no answer.
        """
        turn = current("end")
        if hops:
            turn.enqueue(self.facet.actor, (ENTER, self.facet, partial(self._stop, hops - 1), None))
        else:
            self.facet.stop(turn)

    def withdraw(self, then: Callable[[], object]) -> None:
        """Retract all that the peer had asserted, in as many turns as that takes, and do *then* in the last."""
        self.drop_packet()
        self.leaving()
        take_back(self, then)

    def _unanswered(self) -> None:
        """The facet stops: the peer will not answer any more."""
        turn = current("end")
        asked, self._asked = self._asked, None
        for waiting, count in () if asked is None else asked.items():
            for _ in range(count):
                turn.send(waiting, False)

    def forget(self) -> None:
        """Let go of everything: the connection is gone.  Whoever still holds a proxy holds nothing else."""
        self._silent = True
        if self.codec is not None:
            self.codec.drop()
        for crossing in self.membrane.imports.values():
            if isinstance(crossing.ref.entity, Proxy):
                crossing.ref.entity.sent.clear()
        self.membrane = Membrane.closed(Ref(self.facet, _INERT))
        self.assertions = PeerAssertions(0, 0)
        self.outbox.forget()
        self._wake = self._repaid = self._admitted = int  # those who hold us: that is no circle any more
        self._charge = bool
        self._trail.forget()
        self.drop_turns()
        self._debt.clear()
        self._intake.clear()
        self.drop_packet()
        self._packets = NO_PACKETS

    def statistics(self) -> Statistics:
        """What has passed, and what is there."""
        return Statistics.of(self)

    def __repr__(self) -> str:
        return f"<Session with {self.name}>"


def session_of(proxy: Proxy) -> Session:
    """The session whose peer a proxy stands for."""
    session = proxy.session
    assert isinstance(session, Session)
    return session
