"""A DataFrame as a source of assertions: each row that is there is a record that is asserted.

A streaming DataFrame is followed: each micro-batch is a delta of rows, and takes effect as one turn, additions before
removals.  Any other DataFrame is polled: it is read again and again, and what differs from the last time is the
delta.  (The difference is taken in this process, which holds all that is asserted anyway; a difference in Spark, by a
signed union, took twice as long.)

The path of a micro-batch: Spark calls us back in a thread of its own; there the rows become frozen forms; they go
over a channel of capacity zero to a task of the actor; this applies them, asks the dataspace to say when it has
handled them, and only then takes the next thing from the channel, which lets the callback return, and Spark begin the
next micro-batch.  So a slow dataspace slows Spark down, and nothing piles up in between.

To stop, the channel is closed *first*, so that a callback that waits fails at once; then the query is stopped, which
would otherwise wait for that callback.

Source: the project's design, 6.7; the reference on Spark, section 3.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import define, field

from syndicate.errors import SourceError
from syndicate.facet import Facet
from syndicate.spark.failure import explained
from syndicate.spark.rows import Rows, Step
from syndicate.spark.session import open_session
from syndicate.spark.standing import Standing
from syndicate.turn import Entity, Handle, current, expect_ref
from syndicate.values import Frozen, Ref, Value
from syndicate.verbs import current_facet, linked_task, react

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

AHEAD: Final = 1000
"""How many rows may be on their way to the dataspace: a remote one would else cost a round trip for each step."""

_opening: Final = threading.Lock()


def spark_source(
    ds: Ref,
    frame: Callable[[SparkSession], DataFrame],
    to: type,
    key: Sequence[str] = (),
    *,
    weight: str | None = None,
    sequence: str | None = None,
    clock: type | None = None,
    every: float = 1.0,
    trigger: Mapping[str, Any] | None = None,
    mode: str | None = None,
    session: SparkSession | None = None,
    keep: bool = False,
    on_end: Callable[[], object] | None = None,
) -> Callable[[], None]:
    """A boot function for ``spawn``: assert in *ds*, for each row of a DataFrame, a record, for as long as the row is
    there.

    Rows become records by column name; the table in :mod:`syndicate.spark.rows` says which value a column's type gives.
    Converters and validators of the record class are not run.  Equal rows are one assertion, which goes with the last
    of them. All is retracted when the stream ends, and when the actor does.  (Called in a turn instead of spawned, it
    works in a facet of the caller's.)

    Args:
        ds: the dataspace.
        frame: makes the DataFrame from a session, in a worker thread.  A streaming one is followed; another one is
            polled, and made anew each time, so that it sees new files.
        to: the ``@record`` class of the assertions.  Its fields are columns of the DataFrame, which may have others.
        key: columns that identify a row: a new row takes the place of the one with its key, in one turn.  In a polled
            DataFrame, two rows with one key are an error.
        weight: the column that says how often a row is added, or, below zero, removed: an integer, or one of
            ``insert``, ``delete``, ``update_preimage``, ``update_postimage``, as in the column ``_change_type`` of a
            change data feed. Without it, each row counts +1.  With *key*, any negative weight removes what has the
            key.
        sequence: the column by which the rows of a micro-batch are ordered.  Rows with the same value in it are one
            step, and one turn; without it, the whole micro-batch is.
        clock: a ``@record`` class whose fields are columns that the sequence determines.  While a step is the latest
            one, the record of it is asserted, in the same turn as the step takes effect.
        every: seconds from one look at a polled DataFrame to the next.
        trigger: when a followed DataFrame makes a micro-batch: keyword arguments of Spark's
            ``DataStreamWriter.trigger``, such as ``{"processingTime": "5 seconds"}``, or ``{"availableNow": True}``
            to end once all that is there was read.
        mode: Spark's output mode of a followed DataFrame: ``"append"``, the default, means that its rows are deltas;
            ``"update"``, the default with *key*, that they replace earlier ones; ``"complete"`` that each micro-batch
            is the whole table.
        session: an open session, instead of the one of this process (:func:`~syndicate.spark.session.open_session`).
        keep: when the stream has ended, let the assertions stay until the actor is stopped.
        on_end: called in a turn of the actor when the stream has ended, after the last step.

    Raises:
        SourceError: (by the actor, which crashes with it) the DataFrame does not fit, or its query failed.
        SparkMissing, JavaMissing: (by the actor) Spark cannot run here.

    Example::

        @record
        class Sensor:
            name: str
            celsius: float

        def sensors(session):
            return session.readStream.schema("name string, celsius double").json("readings/")

        spawn(spark_source(ds, sensors, to=Sensor, key=["name"]))
    """
    expect_ref("spark_source", ds)
    rows = Rows(to, tuple(key) if not isinstance(key, str) else key, weight, sequence, clock)
    if not every > 0:
        raise SourceError(f"every= takes a positive number of seconds, not {every!r}")
    if mode not in (None, "append", "update", "complete"):
        raise SourceError(f'mode= takes "append", "update" or "complete", not {mode!r}')
    if mode == "update" and not key:
        raise SourceError(
            'mode="update" gives the new rows only: name the columns that say which rows they replace, with key='
        )

    if mode == "complete" and sequence is not None:
        raise SourceError('mode="complete" gives whole tables, whose rows have no order: leave sequence= out')

    def start() -> None:
        source = _Source(ds, current_facet(), rows, keep, on_end)
        linked_task(source.run, frame, session, every, dict(trigger or {}), mode or ("update" if key else "append"))

    def boot() -> None:
        react(start)  # a facet of its own, so that its end is not that of the caller's

    boot.__name__ = f"spark_source({rows.name})"
    return boot


class _Closed(Exception):
    """The source has stopped: the callback must not say that it dealt with its micro-batch."""


def _is_news(entry: logging.LogRecord) -> bool:
    """Whether a log entry tells an error of a callback that is not told by the source, too."""
    return not (entry.exc_info and isinstance(entry.exc_info[1], (_Closed, SourceError)))


class _Synced(Entity):
    """Goes on when the dataspace has handled what it was sent."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then

    def message(self, value: Value) -> None:
        self.then()


@define(eq=False)
class _Source:
    """One source at work: what stands, and the handles of what is asserted."""

    ds: Ref
    facet: Facet
    rows: Rows
    keep: bool
    on_end: Callable[[], object] | None
    standing: Standing = field(factory=Standing)
    handles: dict[Frozen, Handle] = field(factory=dict)
    clock: Handle | None = None
    failure: Exception | None = None
    # Of its own: waiting for the end of a query takes a thread all the time, and trio's usual threads are forty.
    limiter: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(3))

    async def run(
        self,
        make: Callable[[SparkSession], DataFrame],
        session: SparkSession | None,
        every: float,
        trigger: dict[str, Any],
        mode: str,
    ) -> bool:
        """Open, follow or poll; the answer says whether the facet shall stay."""
        opened = session or await self._in_thread(_open)
        frame = await self._in_thread(self._make, make, opened)
        if not frame.isStreaming:
            await self._poll(frame, functools.partial(self._make, make, opened), every)
        await self._follow(frame, trigger, mode)
        if self.on_end is not None:
            await self._in_turn(self.on_end)
        return self.keep

    # ------------------------------------------------------------------------------------------------ a stream

    async def _follow(self, frame: DataFrame, trigger: dict[str, Any], mode: str) -> None:
        send, receive = trio.open_memory_channel[list[Step] | None](0)
        checkpoint = tempfile.mkdtemp(prefix="syndicate-checkpoint-")
        query = None
        try:
            query = await self._in_thread(self._start, frame, trigger, mode, checkpoint, send, abandon=False)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._apply_all, receive)
                try:
                    await self._in_thread(query.awaitTermination)
                except SourceError as error:
                    self.failure = self.failure or error
                nursery.cancel_scope.cancel()
        finally:
            receive.close()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_end, query, checkpoint, limiter=self.limiter)
        if self.failure is not None:
            raise self.failure

    def _start(
        self,
        frame: DataFrame,
        trigger: dict[str, Any],
        mode: str,
        checkpoint: str,
        send: trio.MemorySendChannel[list[Step] | None],
    ) -> StreamingQuery:
        token = self.facet.actor.system._token

        def take(batch: DataFrame, number: int) -> None:
            try:
                steps = self._steps(_read(self.rows.name, batch), whole=mode == "complete")
                trio.from_thread.run(send.send, steps, trio_token=token)
                # The task takes this, and we go on, only when it has applied the other.
                trio.from_thread.run(send.send, None, trio_token=token)
            except (trio.BrokenResourceError, trio.RunFinishedError, trio.Cancelled):
                raise _Closed from None
            except Exception as error:
                self.failure = error
                raise

        logging.getLogger("py4j.clientserver").addFilter(_is_news)
        writer = frame.writeStream.foreachBatch(take).outputMode(mode).option("checkpointLocation", checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()

    async def _apply_all(self, receive: trio.MemoryReceiveChannel[list[Step] | None]) -> None:
        async for steps in receive:
            if steps is not None:
                await self._apply(steps)

    def _steps(self, table: pa.Table, whole: bool) -> list[Step]:
        steps = self.rows.steps(table)
        return [self.standing.become(steps)] if whole else steps

    # ------------------------------------------------------------------------------------------------ a table

    async def _poll(self, frame: DataFrame, again: Callable[[], DataFrame], every: float) -> None:
        """Never ends by itself."""
        if self.rows.sequence is not None:
            raise SourceError(
                f"sequence= orders the changes of a stream, but the frame of {self.rows.name} is a table: leave it out"
            )
        before: pa.Table | None = None
        while True:
            due = trio.current_time() + every
            table = await self._in_thread(_read, self.rows.name, frame)
            if before is None or not table.equals(before):
                before = table
                await self._apply(await self._in_thread(self._steps, table, True))
            await trio.sleep_until(due)
            frame = await self._in_thread(again)

    # ------------------------------------------------------------------------------------------------ into the turns

    async def _apply(self, steps: Sequence[Step]) -> None:
        """Take the steps, a turn each, and wait until the dataspace has handled them."""
        done = trio.Event()
        self.facet.enter(lambda: self._take(iter(steps), 0, done))
        await done.wait()

    def _take(self, steps: Iterator[Step], ahead: int, done: trio.Event) -> None:
        """Take one step, in a turn; the next one in another turn."""
        step = next(steps, None)
        turn = current("spark_source")
        if step is not None:
            adds, removes = self.standing.change(step)
            for form in adds:
                self.handles[form] = turn.assert_form(self.facet, self.ds, form)
            if step.clock is not None and (self.clock is None or self.clock.form != step.clock):
                clock, self.clock = self.clock, turn.assert_form(self.facet, self.ds, step.clock)
                if clock is not None:
                    turn.retract(clock)
            for form in removes:
                turn.retract(self.handles.pop(form))
            ahead += len(step.changes)
            if ahead < AHEAD:
                self.facet.enter(lambda: self._take(steps, ahead, done))
                return
        then = done.set if step is None else lambda: self._take(steps, 0, done)
        turn.sync(self.ds, Ref(self.facet, _Synced(then)))

    async def _in_turn(self, fn: Callable[[], object]) -> None:
        done = trio.Event()

        def run() -> None:
            fn()
            done.set()

        self.facet.enter(run)
        await done.wait()

    # ------------------------------------------------------------------------------------------------ Spark, in threads

    async def _in_thread(self, fn: Callable[..., Any], *args: Any, abandon: bool = True, **named: Any) -> Any:
        """Run what waits for Spark; *abandon* says that it may be left alone when the source stops."""
        call = functools.partial(explained, self.rows.name, fn, *args, **named)
        return await trio.to_thread.run_sync(call, abandon_on_cancel=abandon, limiter=self.limiter)

    def _make(self, make: Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
        frame = make(session)
        if not hasattr(frame, "isStreaming"):
            raise SourceError(
                f"the frame of {self.rows.name} must be a function from a session to a DataFrame, but it made {frame!r}"
            )
        self.rows.check(frame.columns)
        return frame


def _open() -> SparkSession:
    with _opening:
        return open_session()


def _read(name: str, frame: DataFrame) -> pa.Table:
    return explained(name, frame.toArrow)


def _end(query: StreamingQuery | None, checkpoint: str) -> None:
    """Stop the query."""
    if query is not None:
        with contextlib.suppress(Exception):  # what it has to say about its end is not news any more
            query.stop()
    shutil.rmtree(checkpoint, ignore_errors=True)
