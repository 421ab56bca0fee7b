"""The service: a broker as a process of its own, from its first line to its last.

It opens what the configuration names, says so to the person who started it and to the service manager, and then does
what signals ask for: SIGHUP reads the configuration again; SIGTERM or Ctrl-C brings everything to an end in order,
within ``drain`` seconds; another Ctrl-C ends it at once.

Contract: a configuration that cannot be read again changes nothing but the log.  References, which are secrets, are in
what is announced, once, and never in the log.

Source: ``docs/design/commands.md``, "An end in order".
"""

from __future__ import annotations

import ctypes
import shlex
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import trio

from relay.capabilities.sturdy import DEFAULT as DEFAULT_CAP
from relay.capabilities.sturdy import mint, show
from relay.server.admin import AdminPort
from relay.server.broker import Broker
from relay.server.config import Config
from relay.server.deployment import notify
from relay.server.durable import durable
from relay.server.journal import Journal, StateDirectory
from syndicate import garbage_collector
from syndicate.actors.dataspace import dataspace
from syndicate.actors.signals import end_at_once
from syndicate.actors.verbs import current_facet, linked_task, stop_actor, sync
from syndicate.errors import ConfigError, JournalError
from syndicate.log import configure, logger
from syndicate.native import DESCRIPTION
from syndicate.storage.disk import Commit
from syndicate.values.value import Record, Ref, Symbol


class TimedDisk(StateDirectory):
    """A disk that knows how long it took; ``seconds`` are those of all commits together."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.seconds = 0.0

    def commit(self, changes: Commit) -> None:
        """Make changes durable."""
        began = perf_counter()
        try:
            super().commit(changes)
        finally:
            self.seconds += perf_counter() - began


LARGE_BLOCK: Final = 1 << 18
"""Bytes of a block that does not lie among others, in the heap of the C library."""

_MMAP_THRESHOLD: Final = -3  # of glibc's mallopt


def give_back_large_blocks() -> None:
    """Have the C library give each large block back to the system as soon as it is free.

    glibc does so at first, until one has been freed: from then on blocks of its size are of the heap, which shrinks no
    further than to the last small thing behind them.  So large messages of one peer would be held long after it has
    gone, and those of the next come on top.  Other libraries do not have this call, and need none.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE_BLOCK)


class Service:
    """A broker as *config* has it.  *announce* is called with what a person should read, once it is ready; *reread*
    gets the configuration again, or raises :class:`~syndicate.errors.ConfigError`.

    It is a boot function, of the first actor of a program.
    """

    def __init__(
        self, config: Config, *, announce: Callable[[list[str]], object], reread: Callable[[], Config]
    ) -> None:
        self.config = config
        self.broker = Broker.configured(config, opened=lambda addresses: self._open.set())
        self._open = trio.Event()
        self._reloading = trio.Lock()
        self._draining = False
        self._announce = announce
        self._reread = reread
        self._port: AdminPort | None = None
        self._disk: TimedDisk | None = None
        self._journal: Journal | None = None
        self._durable: Ref | None = None

    def __call__(self) -> None:
        """Begin."""
        finish = partial(current_facet().enter, stop_actor)
        if self.config.state is not None:
            self._keep(self.config.state)
        if self.config.admin is not None:
            self._port = AdminPort(self.config.admin, self.broker, wrong=self._damage, journal=self._written)
            linked_task(self._port.serve)
        if self._journal is None:
            self.broker()
        linked_task(self._run, finish)

    # ------------------------------------------------------------------------------------------------ what is kept

    def _keep(self, state: Path) -> None:
        """Load what is kept in the directory *state*; the doors are opened after that."""
        self._disk = TimedDisk(state)
        journal = self._journal = Journal(self._disk)
        journal.open(salvage=self.config.salvage)
        for lost in journal.lost:
            logger().warning("lost from the state", what=lost)
        self.broker.ds = ds = dataspace()
        self._durable = face = durable(
            ds,
            journal,
            most=self.config.limits.kept,
            ready=lambda: self.broker({"durable": face}),
            failed=self._unkept,
        )

    def _unkept(self, error: JournalError) -> None:
        """The disk fails: those who keep something are notified, and all others go on."""
        logger().error("nothing is kept any more, until the next start", reason=str(error))
        notify(f"STATUS=degraded: {error}")
        self.broker.refuse("durable", Record(Symbol("disk-failed"), [str(error)]))

    def _damage(self) -> str:
        return f"the journal failed: {self._journal.error}" if self._journal and self._journal.error else ""

    def _written(self) -> dict[str, float]:
        if self._journal is None or self._disk is None:
            return {}
        return {"commits": self._journal.commits, "commit_seconds": self._disk.seconds}

    async def _flush(self) -> None:
        """Wait until all that was handled is on the disk."""
        durable = self._durable
        if durable is not None and not self._damage():
            done = trio.Event()
            self.broker.enter(lambda: sync(durable, done.set))
            await done.wait()

    # ------------------------------------------------------------------------------------------------ what happens

    async def _run(self, finish: Callable[[], None]) -> None:
        again = getattr(signal, "SIGHUP", None)  # which Windows has not
        with trio.open_signal_receiver(*filter(None, (signal.SIGTERM, signal.SIGINT, again))) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._start)
                nursery.start_soon(self._left_alone, finish)
                async for number in signals:
                    if number == again:
                        nursery.start_soon(self._reload)
                    elif not self._draining:
                        nursery.start_soon(self._drain, finish)
                    elif number == signal.SIGINT:
                        end_at_once(number, None)

    async def _left_alone(self, finish: Callable[[], None]) -> None:
        await self.broker.deserted.wait()
        if not self._draining:
            await self._drain(finish)

    async def _start(self) -> None:
        await self._open.wait()
        garbage_collector.ready()
        give_back_large_blocks()
        if self._draining:
            return
        self._announce(self.lines())
        notify("READY=1", "STATUS=listening on " + ", ".join(self.broker.addresses))

    def lines(self) -> list[str]:
        """What a person should read."""
        addresses, key = self.broker.addresses, self.config.key
        first = addresses[0]
        lines = [f"listening on  {address}" for address in addresses]
        lines.append(f"dataspace     {show(mint('syndicate', key))}")
        if self._durable is not None:
            lines.append(f"durable       {show(mint('durable', key))}")
        lines.append(f"watch it      {_console(first, show(mint('syndicate', key)))}")
        if self._port is not None:
            lines.append(f"watch itself  {_console(first, show(mint('admin', self.broker.admin_key)))}")
            lines.append(f"introspect    {self._port.questions}")
            lines.append(f"console       {self._port.console}")
            lines.append(f"health        {self._port.url}")
        lines.append(f"runs as       {DESCRIPTION}")
        return lines

    async def _reload(self) -> None:
        await self._open.wait()
        async with self._reloading:
            if self._draining:
                return
            notify("RELOADING=1")
            try:
                config = self._reread()
            except ConfigError as e:
                for problem in e.problems:
                    logger().error("the configuration is as before", reason=problem)
            else:
                configure(config.log.format, config.log.level)
                await self.broker.reload(config)
                logger().info("the configuration was read again")
            notify("READY=1", "STATUS=listening on " + ", ".join(self.broker.addresses))

    async def _drain(self, finish: Callable[[], None]) -> None:
        self._draining = True
        notify("STOPPING=1")
        if self._open.is_set():
            logger().info("draining", peers=len(self.broker.census.peers))
            async with self._reloading:
                await self.broker.drain(self.broker.config.drain, self._flush)
        finish()


def _console(address: str, cap: str) -> str:
    """The command that watches what *cap* stands for."""
    words = ["syndicate-console", address]
    if cap != DEFAULT_CAP:
        words += ["--cap", cap]
    return shlex.join(words)
