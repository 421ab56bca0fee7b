"""A link: one stream that carries one session.

On a plain socket the one :mod:`~relay.transport.poller` of all links reads, and what a slice of turns has to say is
sent when the slice is over, so that a link has no task as long as nothing has to wait.  Elsewhere it has two, whatever
the number of events: one reads, and hands what a read has brought to the session; one asks the session for packets, and
writes them.  Nothing is read before the session has done all of what was, nor while the peer owes more than it may
(``limits.debt``), so that a peer cannot fill our queue.

Times are kept as they come, and the one :mod:`~relay.session.deadlines` of all links looks at them, at most once in the
shortest of their limits: no timer is set for a packet.

A session that ends says so: what was noted before is still sent, for at most a second, then the end of the stream, and
only when the peer has answered that with its own end is the stream closed.  Otherwise what the peer sent meanwhile
would make the operating system discard what it has not yet read of ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import trio

from relay.protocol.codec import Codec
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import Nop
from relay.session.deadlines import NEVER, deadlines, watch
from relay.session.session import PINGS, Session
from relay.transport import CHUNK, Stream
from relay.transport.poller import AVAILABLE, Poller, polling
from syndicate.actors.actor import Task
from syndicate.actors.system import system_of
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import begin_task, current_facet
from syndicate.index.event import ENTER
from syndicate.values.value import Ref

CLOSING: Final = 1.0
"""Seconds for the last words."""

LITTLE: Final = 1 << 12
"""Bytes that are read at once of who has shown no capability: a question takes less.  Of others, what is more than that
is a piece of long work.
"""

_CHUNKS: Final = 4
"""What goes out at once, without a look at what else is to be done."""

_LOST: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


class Carrying(Task):
    """The task of a link, which begins when something has to wait: until then the poller reads, and what a slice of
    turns says is sent when it is over.
    """

    __slots__ = ("_begun", "_link")

    def __init__(self, link: Link) -> None:
        super().__init__(link.session.facet, Link.run, ())
        self._link = link
        self._begun = False

    def start(self) -> None:
        """Carry the link, if its facet has not ended in the same turn."""
        if not self.facet.alive:
            return
        self.facet.actor.system.expect(1)
        if not self._link.begin(self):
            self.begin()

    def begin(self) -> None:
        """Something has to wait."""
        if not self._begun:
            self._begun = True
            self.facet.actor.system.expect(-1)
            self.args = (self._link,)
            self.facet.actor.system.start_task(self.run)

    def report(self, keep: object, failure: Exception | None) -> None:
        """Let the facet stop behind all others, for it is one of many where a crowd goes."""
        if failure is None and self.facet.alive:
            stop = functools.partial(self._done, keep, failure)
            self.facet.actor.system.postpone(self.facet.actor, (ENTER, self.facet, stop, None))
        else:
            super().report(keep, failure)

    def abort(self) -> None:
        """The last words may have to wait."""
        if self._link.begun:
            self.begin()
        self.scope.cancel()


class Link:
    """A stream and its session.  Made by :func:`open_link`."""

    __slots__ = (
        "_began",
        "_begun",
        "_burdened",
        "_carrying",
        "_clock",
        "_crowded",
        "_dozes",
        "_finishing",
        "_flushing",
        "_frame",
        "_heard",
        "_idle",
        "_left",
        "_limits",
        "_listening",
        "_lost",
        "_opening",
        "_owing",
        "_patience",
        "_paused",
        "_polled",
        "_poller",
        "_probed",
        "_reading",
        "_ready",
        "_repaid",
        "_said",
        "_served",
        "_stream",
        "_waiting",
        "_writing",
        "_written",
        "begun",
        "due",
        "session",
        "step",
    )

    def __init__(self, stream: Stream, limits: Limits, accepted: bool) -> None:
        self.session: Session
        self.begun = False
        self._carrying: Carrying | None = None  # the task, which may yet have to begin
        self._stream = stream
        self._limits = limits
        self._idle = stream.direct  # whether nobody is sending
        self._flushing = False
        self._left: Sequence[bytes] = ()  # what was taken of the session, and could not be sent at once
        self._lost: Exception | None = None
        self._owing = False  # whether what was read is yet to be done
        self._waiting = False  # whether the session has yet to be given it
        self._poller: Poller | None = None  # which reads, if it does
        self._polled = -1  # the descriptor that it waits for, if it does
        self._crowded = False  # whether as one of many untrusted peers
        self._dozes: bool | None = None  # whether a ping alone wakes nobody; not known before the peer pings
        # What the tasks wait for: of an idle connection, nothing.
        self._served: trio.Event | None = None
        self._repaid: trio.Event | None = None
        self._ready: trio.Event | None = None
        self._reading: trio.CancelScope | None = None
        self._writing: trio.CancelScope | None = None
        self._written: trio.Event | None = None
        self._finishing = False
        self._clock = deadlines().clock
        now = self._began = self._clock()
        self._heard = now  # the last bytes of the peer
        self._said = now  # the last bytes that it took
        self._patience = NEVER  # until when it may leave what is being sent
        self._burdened: float | None = None  # since when too much waits for it
        self._opening = now + limits.opening if accepted else NEVER
        self._listening = True
        self._paused = now  # when it was not listened to any more
        self._probed: float | None = None  # when the peer was asked for a sign of life, since it was heard
        self._frame = NEVER  # until when more must come of the packet that has begun
        self.step = self.due = NEVER  # how often the clock asks, and when
        self._begun = -1, 0  # that packet's number, and the bytes of it that had come when this was last put off

    def begin(self, carrying: Carrying) -> bool:
        """Read and write from now on; *carrying* is the task that runs :meth:`run`.  False: that is needed at once."""
        self._carrying, self.begun = carrying, True
        self._watch()
        return self._serve()

    # ---------------------------------------------------------------------------------------------------- the session's

    def wake(self) -> None:
        """There is something to take.  All that a slice of turns has to say goes out when it is over."""
        if self._idle and self._stream.direct:
            if not self._flushing:
                self._flushing = True
                self.session.facet.actor.system.after_slice(self._flush)
        elif self._ready is not None:
            self._ready.set()
        if self._burdened is None and self.session.burden > self._limits.backlog:
            self._burdened = self._clock()

    def _flush(self) -> None:
        """Send what is there without the writer's task, which is for what the stream does not take at once."""
        self._flushing = False
        if not self._idle:
            return
        session = self.session
        try:
            for _ in range(1 if session.behind else _CHUNKS):
                packets = session.take(CHUNK)
                self._relieved()
                if not packets:
                    return
                if len(packets[0]) > CHUNK:  # what a socket does not take of it would be copied
                    self._left = packets
                    break
                self._left = self._stream.send_now(packets)
                self._said = self._clock()
                if self._left:
                    break
                if session.sent():
                    return
        except Exception as e:
            self._idle = False
            self._lose(e)
        else:
            self.wait_to_write()

    def wait_to_write(self) -> None:
        """What is left has to wait until the stream takes it."""
        self._idle = False
        if self._ready is not None:
            self._ready.set()
        else:
            self._begin_to_write()

    def _relieved(self) -> None:
        if self._burdened is not None and self.session.burden <= self._limits.backlog:
            self._burdened = None

    def repaid(self) -> None:
        """What was read is done, or the debt has shrunk."""
        session = self.session
        if not self._owing or self._waiting or session.busy or session.debt > self._limits.debt:
            return
        self._owing = False
        self._listening, self._heard, self._probed = True, self._clock(), None
        if session.ping < self.step:  # the peer has said that it waits for less
            deadlines().remove(self)
            self._watch()
        partial = session.partial
        if partial:  # what is left of it may be no more than pings are
            self._rouse()
        elif self._dozes is None and session.pings and self._poller is not None:
            self._doze()
        if not partial:
            self._frame = NEVER
        elif session.packets_in != self._begun[0] or partial >= self._begun[1] + CHUNK:
            self._frame = self._heard + self._limits.stall
            self._begun = session.packets_in, partial
        else:  # while we do not listen it cannot come
            self._frame += self._heard - self._paused
        if self._repaid is not None:
            self._repaid.set()
        self._poll()

    # ---------------------------------------------------------------------------------------------------- tasks

    async def run(self) -> None:
        """Carry the session to its end."""
        try:
            try:
                if not self._stream.direct:
                    self._begin_to_write()
                if self._lost is None:
                    with trio.CancelScope() as self._reading:
                        await self._read()
            finally:
                self._unserve()
                deadlines().remove(self)
                await self._finish()
            if self._lost is not None and not isinstance(self._lost, _LOST):
                raise self._lost
            gone = trio.Event()
            self.session.soon(functools.partial(self.session.withdraw, gone.set))  # many may end at once
            await gone.wait()
        finally:
            self._carrying, self._lost, self._reading, self._writing = None, None, None, None  # what holds us
            self.session.forget()
            await self._stream.close()

    def _begin_to_write(self) -> None:
        """From now on a task writes."""
        self._writing = trio.CancelScope(shield=True)
        self._written = trio.Event()
        self.session.facet.actor.system.start_task(self._write)

    async def _finish(self) -> None:
        """Send what is there, and the end of the stream, and wait for the peer's own, if the stream takes anything."""
        self._idle, self._finishing = False, True
        if self._lost is not None and self._written is None:
            return
        with trio.CancelScope(shield=True):
            if self._writing is None:
                self._writing = trio.CancelScope(shield=True)
            # The task that writes ends before we do, also where nothing can be sent: nobody else would wake it.
            self._writing.deadline = self._clock() + (CLOSING if self._lost is None else 0.0)
            if self._ready is not None:
                self._ready.set()
            if self._written is None:
                await self._write()
            else:
                await self._written.wait()

    async def _write(self) -> None:
        stream, session = self._stream, self.session
        assert self._writing is not None
        try:
            with self._writing:
                while self._lost is None:
                    packets, self._left = self._left or session.take(CHUNK, hurry=self._finishing), ()
                    self._relieved()
                    if packets:
                        at_once = sum(map(len, packets)) / CHUNK
                        self._patience = self._clock() + self._limits.stall * max(1.0, at_once)
                        await stream.send(packets)
                        self._patience = NEVER
                        self._said = self._clock()
                    elif self._finishing:
                        await stream.send_eof()
                        while await stream.receive():
                            pass
                        break
                    else:
                        self._ready = trio.Event()
                        self._idle = True
                        await self._ready.wait()
                        self._idle = False
        except Exception as e:
            self._lose(e)
        finally:
            self._idle = False
            if self._written is not None:
                self._written.set()

    def _lose(self, error: Exception) -> None:
        """The stream takes nothing any more."""
        self._lost = self._lost or error
        if self._reading is not None:
            self._reading.cancel()
        elif self._carrying is not None:
            self._carrying.begin()

    async def _read(self) -> None:
        session, stream = self.session, self._stream
        try:
            while True:
                if self._poller is not None:
                    self._served = trio.Event()
                    await self._served.wait()
                else:
                    await stream.arrival()
                if self._owing:
                    self._repaid = trio.Event()
                    await self._repaid.wait()
                data = await stream.receive(LITTLE if session.untrusted else CHUNK)
                if not data:
                    return
                self._feed(data)
                self._serve()
        except trio.ClosedResourceError as e:  # we have closed it, and nobody hears last words
            self._lost = self._lost or e
        except trio.BrokenResourceError:
            return

    def _feed(self, data: bytes) -> None:
        session = self.session
        self._listening, self._paused, self._owing = False, self._clock(), True
        session.debt += len(data)
        actor = session.facet.actor
        self._waiting = True
        event = (ENTER, session.facet, functools.partial(self._hand_over, data), None)
        if session.untrusted or len(data) > LITTLE:  # who says little goes first
            actor.system.postpone(actor, event, len(data) / LITTLE)
        else:
            actor.system.schedule_here(actor, event)

    def _hand_over(self, data: bytes) -> None:
        """In a turn of the session's: it is its turn."""
        self._waiting = False
        self.session.feed(data)

    # ---------------------------------------------------------------------------------------------------- the poller

    def _serve(self) -> bool:
        """Let the poller read, until something comes for which one has to wait; False if it cannot."""
        try:
            if not AVAILABLE or self._stream.descriptor < 0:
                return False
            self._poller = polling()
        except (OSError, trio.ClosedResourceError):  # no descriptor is left for it; or it was closed
            return False
        self._poll()
        return self._poller is not None

    def _unserve(self) -> None:
        """It reads no more."""
        if self._poller is not None:
            self._rouse()
            self._unpoll()
            self._poller.leave()
            self._poller = None

    def _poll(self) -> None:
        """Be called when something has come, if that is wanted and not so yet."""
        if self._poller is not None and self._polled < 0:
            try:
                descriptor, self._crowded = self._stream.descriptor, self.session.untrusted
                system = system_of(self.session.facet.actor)
                self._poller.add(descriptor, system, self, crowd=self._crowded)
            except (OSError, trio.ClosedResourceError):  # the task finds out, or waits itself
                self._go_on()
            else:
                self._polled = descriptor

    def _unpoll(self) -> None:
        if self._polled >= 0 and self._poller is not None:
            self._poller.remove(self._polled)
            self._polled = -1

    def _go_on(self) -> None:
        """The task is to go on, as there is something that the poller cannot do."""
        self._unserve()
        if self._served is not None:
            self._served.set()
        elif self._carrying is not None:
            self._carrying.begin()

    def closed(self) -> None:
        """It is about to be closed, and polled no more."""
        self._polled = -1
        self._go_on()

    def arrived(self) -> None:
        """There is something to read, or the end."""
        session = self.session
        if self._owing:
            self._unpoll()  # until all of it is done
            return
        if self._crowded and not session.untrusted:
            self._unpoll()
            self._poll()
        try:
            data = self._stream.receive_now(LITTLE if session.untrusted else CHUNK)
        except _LOST:
            data = None
        if not data:  # the end, or what is shut: the task finds it, too
            self._go_on()
        else:
            self._heed(data)

    def _heed(self, data: bytes) -> None:
        """Let the session have what has come; a ping alone needs no turn, and the next one need wake nobody."""
        if self.session.hear(data):
            self._heard, self._probed = self._clock(), None
            if self._dozes is None:
                self._doze()
        else:
            self._feed(data)

    def _doze(self) -> None:
        """From now on nobody wakes for one or two pings, a byte each: they wait until the clock asks."""
        codec, self._dozes = self.session.codec, False
        if codec is not None and codec.name == "msgpack":
            with suppress(*_LOST):
                self._dozes = self._stream.await_more(PINGS)

    def _rouse(self) -> None:
        """Whatever comes is to wake whoever waits for it."""
        dozes, self._dozes = self._dozes, None
        if dozes:
            with suppress(*_LOST):
                self._stream.await_more(1)

    def _glance(self) -> None:
        """Take what has come, and woken nobody."""
        with suppress(*_LOST):  # the poller gets to know, too
            data = self._stream.receive_now(LITTLE if self.session.untrusted else CHUNK)
            if data:
                self._heed(data)

    # ---------------------------------------------------------------------------------------------------- time

    def _watch(self) -> None:
        """Let the clock ask as often as the shortest limit needs."""
        limits = self._limits
        self.step = min(limits.ping, limits.idle, limits.opening, limits.stall, limits.grace, self.session.ping)
        watch(self)

    def look(self, now: float) -> float:
        """Do what is due; returns when something will be."""
        if self._dozes and self._listening and self._polled >= 0:
            self._glance()
        session, limits = self.session, self._limits
        if session.packets_in and not session.untrusted:
            self._opening = NEVER
        silence = probe = NEVER
        if self._listening and session.pings:
            silence = self._heard + limits.idle
        elif self._listening and session.packets_in and not session.untrusted:
            if self._probed is None:
                probe = self._heard + limits.idle
                if now >= probe:
                    self._probed = probe = NEVER  # without anything to ask, nothing follows
                    session.facet.enter(self._probe)
            else:
                silence = self._probed + limits.idle
        frame = self._frame if self._listening else NEVER
        burden = NEVER if self._burdened is None else self._burdened + limits.grace
        ping = NEVER if session.outbox.waiting else self._said + session.ping
        unknown = self._began + limits.opening if limits.liveness and not session.lively else NEVER
        if now >= self._patience:
            session.cut("stall", f"the peer took nothing for {limits.stall:g} seconds, and something waited for it")
            if self._writing is not None:
                self._writing.cancel()
        elif now >= burden:
            session.cut(
                "slow-consumer", f"more than {limits.backlog} bytes waited for the peer for {limits.grace:g} seconds"
            )
        elif now >= self._opening:
            missing = "capability" if session.untrusted else "packet"
            session.cut("opening", f"no {missing} within {limits.opening:g} seconds")
        elif now >= frame:
            session.cut(
                "stall",
                f"a packet was begun, and no more than {CHUNK} bytes of it came within {limits.stall:g} seconds",
            )
        elif now >= silence:
            why = "the peer pings, and" if session.pings else "the peer has left a sync unanswered, and"
            session.cut("idle", f"{why} was not heard for {limits.idle:g} seconds")
        elif now >= unknown:
            session.cut("liveness", f"within {limits.opening:g} seconds the peer has not said how often it is heard")
        else:
            if now >= ping:
                session.say(Nop())
                self._said, ping = now, now + session.ping
            return min(self._patience, burden, self._opening, frame, silence, unknown, probe, ping)
        return NEVER

    def _probe(self) -> None:
        """Ask for a sign of life, in a turn: by a sync to something of the peer's, which any program replies to."""
        session = self.session
        crossing = next(iter(session.membrane.imports.values()), None)
        if crossing is not None:
            current("probe").sync(crossing.ref, Ref(session.facet, Entity(), True))
            self._probed = self._clock()


def open_link(
    stream: Stream,
    *,
    codec: Codec | None = None,
    publish: Ref | None = None,
    limits: Limits = DEFAULT,
    admitted: Callable[[], None] = lambda: None,
    charge: Callable[[int], bool] = lambda size: True,
) -> Session:
    """Start a session over *stream* in the current facet, which stops when the session ends.

    *codec* is that of who connects; who was connected to leaves it to the peer's first byte.  *publish* is what the
    peer finds under number 0; *admitted* is called when that has given it something, and until then *charge* with the
    bytes that are to be held of it, which returns whether they may be.
    """
    link = Link(stream, limits, accepted=codec is None)
    link.session = Session(
        current_facet(),
        link.wake,
        name=stream.name,
        codec=codec,
        publish=publish,
        limits=limits,
        repaid=link.repaid,
        admitted=admitted,
        charge=charge,
    )
    link.session.connection = stream.connection
    begin_task(Carrying(link))
    return link.session
