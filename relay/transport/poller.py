"""The poller: one task that waits for all sockets of a program, and lets what has come be done at once.

Between the steps of other tasks it looks, too, when the last time is a while ago: they may be many at once.

A task for each connection costs a switch of tasks, and a call of the operating system to be woken again, for every
packet.  Here one epoll object holds all sockets; when some are readable, all of them are read, and the turns of that
are taken on the spot, before anybody else of the program is woken.  It holds what trio waits for, too, so that one call
of the operating system waits for both and says what has come.

Where the system has no epoll, or a stream is no socket itself, its link waits in a task of its own, with the same
effect.

Contract: whoever is added is called whenever there may be something to read, until removed; once for each round, so
that none is before the others.  What it raises is logged, and it is called no more.  Whoever closes a socket says so
first (:func:`closing`): its number may be another one's at once.

Source: ``docs/design/relay.md``, "Wake-ups".
"""

from __future__ import annotations

import functools
import re
import select
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Final, Protocol, Self, TypeAlias

import trio

from syndicate.actors.event_loop import asyncio_runs
from syndicate.actors.system import SLICE, System
from syndicate.log import logger
from syndicate.native import kernel


class SocketReader(Protocol):
    """Who reads a socket."""

    def arrived(self) -> object:
        """There may be something to read."""

    def closed(self) -> object:
        """It is closed, or about to be, and read no more."""


Watched: TypeAlias = "tuple[System, SocketReader, tuple[select.epoll, ...]]"
"""Whose turns it brings, who reads it, and where it is."""

AVAILABLE: Final = hasattr(select, "epoll")
"""Whether this operating system has what it takes."""


STAY: Final = 0.01
"""Seconds for which what comes next is waited for here at most, when all that had come is done: an answer to what was
sent, say.  A round of trio's loop costs as much as a packet.  What trio waits for is waited for here, too; only a new
deadline that is nearer than the others may be noticed so much too late.
"""

AWHILE: Final = 0.0003
"""Seconds after which sockets are looked at between two steps of tasks."""

CROWD: Final = 4
"""The most of a crowd that are called at once."""


@kernel
def make_round(poller: Poller, watched: Mapping[int, Watched], ready: Sequence[tuple[int, int]], /) -> bool | None:
    """Let those be called who have something *ready*, all of one system, and take their turns, as :meth:`Poller.look`
    does; whether all is done that there was.

    None, which is always right: nothing was done.
    """
    return None


@kernel
def make_rounds(poller: Poller, watched: Mapping[int, Watched], number: int, others: int, seconds: float, /) -> bool:
    """Look, and wait for more, as :meth:`Poller._serve` does: *number* is that of the poller's epoll object.

    True if that was done to its end; False if the caller is to go on.
    """
    return False


class Poller(trio.abc.Instrument):
    """Of one trio program.  ``rounds`` counts how often something had come, ``woken`` for how many sockets in all."""

    def __init__(self) -> None:
        self.rounds = self.woken = 0
        self.users = 0
        self._due: set[trio.lowlevel.Task] = set()  # which are to go on
        self._looked = 0.0  # when it was looked last
        self._task: trio.lowlevel.Task | None = None  # which waits
        self._epoll = select.epoll()  # which is looked at
        self._bell = select.epoll()  # which wakes trio: it has the same, but for trio's, since none may hold itself
        self._others = -1  # the epoll object that trio waits for
        self._crowd = select.epoll()  # what is in it is looked at by the few
        self._gate = self._crowd.fileno()
        _register(self._gate, (self._bell, self._epoll))
        self._watched: dict[int, Watched] = {}
        self._scope = trio.CancelScope()

    def add(self, descriptor: int, system: System, reader: SocketReader, *, crowd: bool = False) -> None:
        """Tell *reader*, between turns of *system*, whenever there is something to read, and when it is closed before
        it is removed.  Of a *crowd* only a few are called at once, behind all others.
        """
        places = (self._crowd,) if crowd else (self._bell, self._epoll)
        _register(descriptor, places)
        former = self._watched.get(descriptor)
        self._watched[descriptor] = system, reader, places
        if former is not None:  # its socket was closed in silence, and the operating system has given its number away
            former[1].closed()

    def remove(self, descriptor: int) -> None:
        """Call whoever was added no more."""
        for each in self._watched.pop(descriptor)[2]:
            each.unregister(descriptor)

    def close(self, descriptor: int) -> None:
        """The socket of this number is about to be closed, if one has it."""
        if descriptor in self._watched:
            reader = self._watched[descriptor][1]
            self.remove(descriptor)
            reader.closed()

    @property
    def ended(self) -> bool:
        """Whether nobody uses it any more."""
        return self._epoll.closed

    def look(self, *, crowd: bool = True) -> bool:
        """Call those who have something to read, and take their turns; returns whether all is done that there was.
        Without *crowd* those of it are left for the next look.

        A system asks between its turns, also at its end, when nobody uses the poller any more: nothing has come then.
        """
        return self.ended or self._round(self._epoll.poll(0), crowd=crowd)

    def _round(self, ready: Sequence[tuple[int, int]], *, crowd: bool = True) -> bool:
        """The same, of what is *ready* in the epoll object."""
        self._looked = perf_counter()
        crowds = crowd and any(number == self._gate for number, _ in ready)
        ready = [each for each in ready if each[0] not in (self._gate, self._others)]
        ready += self._crowd.poll(0, CROWD) if crowds else []
        if not ready:
            return True
        self.rounds += 1
        self.woken += len(ready)
        done = make_round(self, self._watched, ready)
        if done is not None:
            return done
        systems: dict[System, list[int]] = {}
        for descriptor, _ in ready:
            systems.setdefault(self._watched[descriptor][0], []).append(descriptor)
        done = True
        for system, descriptors in systems.items():
            system.inlet = self.look
            done = system.at_once(functools.partial(self.call, descriptors)) and done
        return done

    def call(self, descriptors: Sequence[int]) -> None:
        """Call those who have something to read."""
        for descriptor in descriptors:
            watched = self._watched.get(descriptor)  # one may have removed another
            if watched is not None:
                try:
                    watched[1].arrived()
                except Exception as error:
                    self.fail(descriptor, error)

    def fail(self, descriptor: int, error: Exception) -> None:
        """Whoever waits for it has raised *error*, which must not take the other connections along."""
        self.close(descriptor)
        logger().error("a connection is read no more", exc_info=error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.leave()

    def leave(self) -> None:
        """One user less; the last of them ends it."""
        self.users -= 1
        if not self.users:
            _poller.set(None)
            self._scope.cancel()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Trio calls it: a task is to go on in the next round of its loop."""
        self._due.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Trio calls it: a task goes on."""
        self._due.discard(task)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Trio calls it: a task has done what it could without a wait, and others are next.  A crowd waits for them:
        who comes must not outrun those who go.
        """
        own = self._task
        if own is not None and task is not own and perf_counter() > self._looked + AWHILE:
            own.context.run(self.look, crowd=False)

    async def run(self) -> None:
        """Wait and look, until nobody uses it any more."""
        number, self._task = self._bell.fileno(), trio.lowlevel.current_task()
        trio.lowlevel.add_instrument(self)
        try:
            with self._scope:
                await trio.lowlevel.checkpoint()  # of who was to go on before, nothing was heard
                await trio.lowlevel.wait_readable(number)
                if not asyncio_runs():  # of which trio is a guest: nobody here knows what that loop waits for
                    self._hold(_who_waits_for(number))
                while True:
                    self._serve()
                    await trio.lowlevel.wait_readable(number)
        finally:
            trio.lowlevel.remove_instrument(self)
            for each in (self._epoll, self._bell, self._crowd):
                each.close()

    def _hold(self, others: int) -> None:
        """Wait for the epoll object that trio waits for, too, if its number is known and the system allows it."""
        with suppress(OSError):
            if others >= 0:
                self._epoll.register(others, select.EPOLLIN)
                self._others = others

    def _serve(self) -> None:
        """Look as long as something comes and nobody else has anything to do; wait for that, too, if it is known what
        trio waits for.
        """
        others, seconds, wait = self._others, SLICE, 0.0
        if others >= 0:
            seconds = min(STAY, trio.lowlevel.current_statistics().seconds_to_next_deadline)
        if make_rounds(self, self._watched, self._epoll.fileno(), others, seconds):
            return
        ends = perf_counter() + seconds
        while ready := self._epoll.poll(wait):
            done = self._round(ready)
            left = ends - perf_counter()
            if not done or self._due or left <= 0 or (others, select.EPOLLIN) in ready:
                return
            wait = left if others >= 0 else 0.0


def _register(descriptor: int, places: Sequence[select.epoll]) -> None:
    """Put it into all of these, or, with an error of the operating system's, into none."""
    for number, place in enumerate(places):
        try:
            place.register(descriptor, select.EPOLLIN)
        except OSError:
            for former in places[:number]:
                former.unregister(descriptor)
            raise


def _who_waits_for(descriptor: int) -> int:
    """The epoll object that holds another one of this number: the one that trio waits for, if a task of trio's waits
    for it; -1 where the operating system does not tell.
    """
    entry = re.compile(rf"^tfd:\s+{descriptor} ", re.MULTILINE)
    for path in Path("/proc/self/fdinfo").glob("*"):
        with suppress(OSError):  # closed meanwhile
            if entry.search(path.read_text()):
                return int(path.name)
    return -1


_poller: Final = trio.lowlevel.RunVar[Poller | None]("relay.transport.poller", None)


def closing(descriptor: int) -> None:
    """Let whoever waits for something to read from it know that nothing will come."""
    poller = _poller.get()
    if poller is not None:
        poller.close(descriptor)


def polling() -> Poller:
    """That of the running trio program, with a user more, until that one leaves; raises :class:`OSError` where no
    descriptor is left.
    """
    poller = _poller.get()
    if poller is None:
        poller = Poller()
        _poller.set(poller)
        trio.lowlevel.spawn_system_task(poller.run, name="relay poller")
    poller.users += 1
    return poller
