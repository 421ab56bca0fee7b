"""The replay: Spark, the actors and a broker in this process, and the console in a second one.

Everything that waits runs in one trio nursery: Spark in worker threads, the actors in their system, the console as a
child process whose lines are shown as they come.  The same counts by Spark alone run beside the stream, on the core
that the actors leave free.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import trio
from attrs import define, field, frozen

from relay.demo import flights
from relay.demo.flights import Count, Timetable
from relay.demo.tower import Airborne, InTheAir, Over, Today, tower
from relay.server.broker import Broker
from relay.server.console import console
from relay.transport.stdio import APART
from syndicate import Ref, capture, current_facet, dataspace, on_asserted, on_stop_or_crash, open_system, send
from syndicate.actors.facet import Facet
from syndicate.errors import ActorCrashed, ServerMissing, SyndicateError
from syndicate.spark import open_session, spark_source
from syndicate.spark.errors import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

SHOWN: Final = ("<Alarm _ _ _>", '<InTheAir "carrier" "OO" _>')
"""What the console is asked for: what comes often enough to be seen, and rarely enough to be read."""


class Show(Protocol):
    """Where the replay says how it goes."""

    def say(self, text: str) -> None:
        """Something was begun or done."""

    def begin(self, timetable: Timetable) -> None:
        """The replay begins."""

    def today(self, date: str) -> None:
        """It has come to this day."""

    def aloft(self, count: int) -> None:
        """So many flights are in the air."""

    def console_line(self, line: str) -> None:
        """The console, in its process, has printed a line."""


@frozen
class Result:
    """What the actors counted, and what Spark did."""

    timetable: Timetable
    actors: list[Count]
    spark: list[Count]
    tailed: int

    @property
    def differences(self) -> list[tuple[Count | None, Count | None]]:
        """The rows in which they differ: the actors' and Spark's."""
        ours, theirs = ({(c.kind, c.name): c for c in counts} for counts in (self.actors, self.spark))
        return [(ours.get(key), theirs.get(key)) for key in sorted(ours | theirs) if ours.get(key) != theirs.get(key)]


async def replay(data: Path, days: int | None, limit: int, show: Show) -> Result:
    """Replay the flights in the CSV file *data*, of the first *days* or all.

    Raises:
        SourceError, SparkMissing, JavaMissing: as :func:`~syndicate.spark.spark_source` does.
        SyndicateError: one of the actors, or the console, has failed.
    """
    with tempfile.TemporaryDirectory(prefix="syndicate-demo-") as directory:
        replaying = _Replay(show, Path(directory))
        async with open_system(replaying.boot) as system:
            try:  # the nursery is inside the system: the console ends before the broker that it listens to
                async with trio.open_nursery() as nursery:
                    await replaying.run(nursery, data, days, limit)
                    nursery.cancel_scope.cancel()
            except BaseExceptionGroup as group:
                raise _first(group) from None
            await system.settle()
        if replaying.result is None:
            raise ActorCrashed("an actor of the demo has crashed: its error stands above")
        return replaying.result


@define(eq=False)
class _Replay:
    show: Show
    directory: Path
    facet: Facet | None = None
    ds: Ref | None = None
    opened: trio.Event = field(factory=trio.Event)
    address: str = ""
    counted: trio.Event = field(factory=trio.Event)
    actors: list[Count] | None = None
    reckoned: trio.Event = field(factory=trio.Event)
    spark: list[Count] = field(factory=list)
    tailed: int = 0
    result: Result | None = None

    def boot(self) -> None:
        """Be the first actor, whose crash ends the system: the dataspace, the broker, and later the source."""
        self.facet, self.ds = current_facet(), dataspace()
        Broker(["tcp://127.0.0.1:0"], ds=self.ds, opened=self._opened)()
        with suppress(ServerMissing):  # an extra, which the demo works without
            console(self.ds, opened=lambda address: self.show.say(f"Look at it in a browser: {address}"))
        on_asserted(self.ds, Today(capture()))(self.show.today)
        on_asserted(self.ds, InTheAir("all", "flights", capture()))(self.show.aloft)

        @on_stop_or_crash
        def ended() -> None:
            self.opened.set()
            self.counted.set()

    def _opened(self, addresses: list[str]) -> None:
        (self.address,) = addresses
        self.opened.set()

    async def run(self, nursery: trio.Nursery, data: Path, days: int | None, limit: int) -> None:
        """From the start of the console to the result, or until the first actor has crashed."""
        await self.opened.wait()
        if self.facet is None or not self.facet.alive:
            return
        await nursery.start(self._console)
        self.show.say("Starting Spark ...")
        session = await _in_thread(_open)
        self.show.say("Spark reads the flights and puts take-offs and landings in order ...")
        table = await _in_thread(self._read, session, data, days)
        async with trio.open_nursery() as both:  # by the time that one has the rows, they are there for the other
            both.start_soon(_in_thread, flights.write, table, self.directory)
            timetable = await _in_thread(flights.schedule, table, self.directory)
        self.show.begin(timetable)
        self.facet.enter(partial(self._start, session, timetable, limit))
        nursery.start_soon(self._reckon, session, table, limit)
        await self.counted.wait()
        if self.actors is not None:
            if not self.reckoned.is_set():
                self.show.say("Spark still counts the same, alone ...")
                await self.reckoned.wait()
            self.result = Result(timetable, self.actors, self.spark, self.tailed)

    async def _reckon(self, session: SparkSession, table: DataFrame, limit: int) -> None:
        try:
            self.spark = await _in_thread(flights.reckon, table, limit)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):  # or Spark would complain of its own end
                await trio.to_thread.run_sync(session.sparkContext.cancelAllJobs)
            raise
        self.reckoned.set()

    def _read(self, session: SparkSession, data: Path, days: int | None) -> DataFrame:
        return flights.read(session, flights.unpack(data, self.directory), days)

    def _start(self, session: SparkSession, timetable: Timetable, limit: int) -> None:
        assert self.ds is not None
        ds = self.ds
        tower(ds, timetable, limit, self._counted)
        spark_source(
            ds,
            partial(flights.stream, timetable=timetable),
            to=Airborne,
            weight="weight",
            sequence="step",
            clock=Today,
            trigger={"availableNow": True},
            session=session,
            on_end=lambda: send(ds, Over()),
        )()

    def _counted(self, actors: list[Count]) -> None:
        self.actors = actors
        self.counted.set()

    async def _console(self, task_status: trio.TaskStatus[None]) -> None:
        """Run the console until we are cancelled, and show its lines."""
        command = [sys.executable, "-c", "from relay.cli import console_main; console_main()", self.address]
        command += ["--no-reconnect", *(f"--pattern={pattern}" for pattern in SHOWN)]
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=APART,  # Ctrl-C is for us; we end it
        )
        assert process.stdout is not None
        self.show.say(f"A console in a second process, {process.pid}, tails {self.address}: {' '.join(SHOWN)}")
        task_status.started()
        try:
            rest = b""
            async for chunk in process.stdout:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.tailed += 1
                    self.show.console_line(line.decode(errors="replace"))
            code = await process.wait()
            raise SyndicateError(f"the console ended by itself, with exit code {code}: what it said stands above")
        finally:
            if process.returncode is None:
                process.terminate()
            with trio.CancelScope(shield=True):
                await process.wait()
                await process.stdout.aclose()


def _open() -> SparkSession:
    # The count's task takes seconds, and leaves a core to the actors; with slots beside it, the stream's need not wait.
    config = {"spark.sql.shuffle.partitions": 1}  # a dotted name cannot be written as an argument
    return open_session("syndicate demo", cores=3, **config)  # type: ignore[arg-type]  # all in it is for Spark


async def _in_thread(fn: Callable[..., T], *args: object) -> T:
    """Run what waits for Spark in a thread, which is left alone if we are stopped."""
    return await trio.to_thread.run_sync(partial(explained, "the demo", fn, *args), abandon_on_cancel=True)


def _first(group: BaseExceptionGroup) -> BaseException:
    """The first of several errors, whatever it is wrapped in."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
