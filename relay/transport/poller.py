"""The poller: one task that waits for all sockets of a program, and lets what has come be done at once.

A task for each connection costs a switch of tasks, and a call of the operating system to be woken again, for every
packet.  Here one epoll object holds all sockets; when some are readable, all of them are read, and the turns of that
are taken on the spot, before anybody else of the program is woken.

Where the system has no epoll, or a stream is no socket itself, its link waits in a task of its own, with the same
effect.

Contract: whoever is added is called whenever there may be something to read, until removed; once for each round, so
that none is before the others.  What it raises is logged, and it is called no more.  Whoever closes a socket says so
first (:func:`closing`): its number may be another one's at once.

Source: ``docs/design/relay.md``, "Wake-ups".
"""

from __future__ import annotations

import functools
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio

from syndicate.actors.system import System
from syndicate.log import logger

Arrived = Callable[[], object]

AVAILABLE: Final = hasattr(select, "epoll")
"""Whether this operating system has what it takes."""


class Poller:
    """Of one trio program.  ``rounds`` counts how often something had come, ``woken`` for how many sockets in all."""

    def __init__(self) -> None:
        self.rounds = self.woken = 0
        self.users = 0
        self._epoll = select.epoll()
        self._watched: dict[int, tuple[System, Arrived, Arrived]] = {}
        self._scope = trio.CancelScope()

    def add(self, descriptor: int, system: System, arrived: Arrived, closed: Arrived) -> None:
        """Call *arrived*, between turns of *system*, whenever there is something to read; *closed* when it is closed
        before it is removed.
        """
        self._epoll.register(descriptor, select.EPOLLIN)
        former = self._watched.get(descriptor)
        self._watched[descriptor] = system, arrived, closed
        if former is not None:  # its socket was closed in silence, and the operating system has given its number away
            former[2]()

    def remove(self, descriptor: int) -> None:
        """Call whoever was added no more."""
        del self._watched[descriptor]
        self._epoll.unregister(descriptor)

    def close(self, descriptor: int) -> None:
        """The socket of this number is about to be closed, if one has it."""
        if descriptor in self._watched:
            closed = self._watched[descriptor][2]
            self.remove(descriptor)
            closed()

    def look(self) -> None:
        """Call those who have something to read, and take their turns."""
        self.rounds += 1
        ready: dict[System, list[int]] = {}
        for descriptor, _ in self._epoll.poll(0):
            ready.setdefault(self._watched[descriptor][0], []).append(descriptor)
        for system, descriptors in ready.items():
            self.woken += len(descriptors)
            system.at_once(functools.partial(self._call, descriptors))

    def _call(self, descriptors: Sequence[int]) -> None:
        for descriptor in descriptors:
            watched = self._watched.get(descriptor)  # one may have removed another
            if watched is not None:
                try:
                    watched[1]()
                except Exception as error:  # it must not take the other connections along
                    self.close(descriptor)
                    logger().error("a connection is read no more", exc_info=error)

    def leave(self) -> None:
        """One user less; the last of them ends it."""
        self.users -= 1
        if not self.users:
            _poller.set(None)
            self._scope.cancel()

    async def run(self) -> None:
        """Wait and look, until nobody uses it any more."""
        try:
            with self._scope:
                while True:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
                    self.look()
        finally:
            self._epoll.close()


_poller: Final = trio.lowlevel.RunVar[Poller | None]("relay.transport.poller", None)


def closing(descriptor: int) -> None:
    """Let whoever waits for something to read from it know that nothing will come."""
    poller = _poller.get()
    if poller is not None:
        poller.close(descriptor)


@contextmanager
def polling() -> Iterator[Poller]:
    """That of the running trio program, while somebody uses it; raises :class:`OSError` where no descriptor is left."""
    poller = _poller.get()
    if poller is None:
        poller = Poller()
        _poller.set(poller)
        trio.lowlevel.spawn_system_task(poller.run, name="relay poller")
    poller.users += 1
    try:
        yield poller
    finally:
        poller.leave()
