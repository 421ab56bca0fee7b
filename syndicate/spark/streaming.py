"""A circuit over a streaming DataFrame: each micro-batch is one epoch, and what it changes is asserted, or written.

The path of a micro-batch: Spark calls us back; the circuit makes its step of it (*plan*), and keeps its state, the
micro-batch's number and the changes together (:mod:`syndicate.spark.stream_engine`); the changes of each sink go into
its table, if it has one, and into a journal of what is asserted (*write*, *commit*); then a task of the actor asserts
and retracts them (*send*) and waits for the dataspace (*ack*).  Only then Spark notes the micro-batch as done.

Each of these keeps the number of the micro-batch with what it keeps.  Whenever the process is killed, Spark hands the
same micro-batch over again, and each passes it on or leaves it out, as far as it had come: the engine gives the changes
that it recorded.  At a start, what the journal says is asserted *before* the query starts.

Contract: what is asserted is what the circuit makes of all rows up to some micro-batch, which the dataspace sees in one
turn; a table holds each micro-batch as the batch of the same number.  An engine, a journal, a checkpoint and tables
that do not belong together are refused.

Source: Spark, on Structured Streaming; ``docs/design/spark.md``, "The path of a batch".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import trio
from attrs import define, field, frozen

from syndicate.actors.arguments import expect_ref
from syndicate.actors.verbs import current_facet, react, trio_task
from syndicate.errors import CircuitError, SinkError, SourceError, UnknownStream
from syndicate.flow.circuit import Circuit
from syndicate.flow.element import Element
from syndicate.flow.view import check_sink
from syndicate.hosting import Records
from syndicate.plan import Plan
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.delivery import Delivery, Move
from syndicate.spark.engine.inputs import check_weight
from syndicate.spark.engine.output import Delta
from syndicate.spark.errors import explained
from syndicate.spark.follower import Follower, MicroBatch, check_call
from syndicate.spark.journal import SourceJournal, described
from syndicate.spark.rows import Step
from syndicate.spark.sink import TableColumns, columns_of
from syndicate.spark.sink_table import SinkTable, quoted
from syndicate.spark.spark_connect import refuse_stream
from syndicate.spark.stream_engine import LocalSteps, SinkChange, SparkSteps, Steps
from syndicate.spark.streaming_query import STOPPING, Query, trigger_of
from syndicate.spark.threads import in_thread
from syndicate.values.absent import form_of
from syndicate.values.value import Frozen, Ref

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE_DELTA: Final = 100_000
"""A change of so many rows goes from the engine into a table without coming to the driver, where its columns allow."""

_FITTING: Final = {
    "long": ("int8", "int16", "int32", "int64"),
    "double": ("float", "double"),
    "string": ("string",),
    "binary": ("binary",),
    "boolean": ("bool",),
}


def spark_view(
    ds: Ref,
    frame: Callable[[SparkSession], DataFrame],
    circuit: Circuit | Plan,
    outputs: Mapping[str, type | None],
    *,
    tables: Mapping[str, tuple[str | Path, type]] | None = None,
    source: str | None = None,
    weight: str | None = None,
    state: str | Path | None = None,
    engine: Literal["spark", "local"] = "spark",
    progress: bool = True,
    trigger: Mapping[str, str | bool] | None = None,
    session: SparkSession | None = None,
    keep: bool = False,
    on_end: Callable[[], object] | None = None,
) -> Callable[[], None]:
    """A boot function for ``spawn``: keep in *ds* what *circuit* concludes from the rows of a streaming DataFrame.

    A row is an element of the circuit's source, the tuple of its columns, nulls as None.  What a sink gives is asserted
    while its weight is above 0, and None in it as :data:`~syndicate.values.absent.ABSENT`; equal values of two sinks
    are one
    assertion, whose weights add up.

    Args:
        ds: the dataspace.
        frame: makes the streaming DataFrame from a session, in a worker thread.
        circuit: a circuit, or what ``program.plan()`` gives; it is not changed.
        outputs: for each sink that is asserted a record class, or None if its elements are values already, as for
            :func:`syndicate.views.view`.
        tables: for each sink that is written a directory and its columns, a record class or a schema, as for
            :func:`~syndicate.spark.sink.spark_sink`; every micro-batch is a batch there.
        source: the circuit's source that takes the rows; it may be left out where there is only one.
        weight: the column with the weights of the rows, integers; without it each row counts +1.
        state: a directory that lasts, for the engine, the journal and Spark's checkpoint.  With it a restart goes on
            behind the last micro-batch, whatever moment the last run ended at; without it all begins again.
        engine: where the circuit runs: ``"spark"``, or ``"local"``, in this process, which for small states is faster.
        progress: assert :class:`~syndicate.spark.progress.SparkProgress`, too, with the source's name.
        trigger: as for :func:`~syndicate.spark.source.spark_source`; so are *session*, *keep* and *on_end*.
        session: an open session.
        keep: whether the assertions stay when a stream that was to end has ended.
        on_end: called in a turn of the actor when it has.

    Raises:
        UnknownStream, CircuitError: a name is no sink or source, or of a kind that is not taken here.
        SourceError, SourceJournalError, SinkError, EngineError, StateError, StepFailed: (by the actor, which crashes
            with it) as the source, the sink and the engine raise them.

    Example::

        rooms = Circuit()
        rooms.sink("rooms", rooms.source("readings").index_with(itemgetter(0)).aggregate(aggregates.count))
        spawn(spark_view(ds, readings, rooms, {"rooms": Readings}, state="state/"))
    """
    expect_ref("spark_view", ds)
    check_call(frame, session)
    tuples = isinstance(circuit, Plan)
    if isinstance(circuit, Plan):
        circuit = circuit.circuit
    if not isinstance(circuit, Circuit):
        raise CircuitError(f"spark_view() needs a circuit or a plan, not {circuit!r}")
    if engine not in ("spark", "local"):
        raise CircuitError(f'engine= takes "spark" or "local", not {engine!r}')
    name = _source_of(circuit, source)
    written = {sink: (Path(table[0]), columns_of(table[1], sink)) for sink, table in (tables or {}).items()}
    for sink in (*outputs, *written):
        check_sink(circuit, sink, outputs.get(sink))
    if tables and state is None:
        raise CircuitError("tables= need state=, without which no restart knows which micro-batch they have")
    options = _Options(
        circuit,
        name,
        {sink: Records(sink, cls, tuples=tuples, rows=True) for sink, cls in outputs.items()},
        written,
        weight,
        None if state is None else Path(state),
        engine == "local",
        trigger_of(trigger),
        keep,
        on_end,
    )

    def start() -> None:
        follower = _Follower(Delivery(ds, current_facet()), name, progress, options)
        follower.begin()
        trio_task(follower.run, frame, session)

    def boot() -> None:
        react(start)  # a facet of its own, so that its end is not that of the caller's

    boot.__name__ = f"spark_view({name})"
    return boot


# ---------------------------------------------------------------------------------------------------- what is asked


def _source_of(circuit: Circuit, name: str | None) -> str:
    sources = ", ".join(map(repr, sorted(circuit.sources))) or "none"
    if name is None and len(circuit.sources) == 1:
        (name,) = circuit.sources
    if name is None or name not in circuit.sources:
        raise UnknownStream(f"source= names the source that takes the rows: the circuit has {sources}, not {name!r}")
    if len(circuit.sources) > 1:
        other = min(circuit.sources.keys() - {name})
        raise CircuitError(
            f"the source {other!r} would never get anything, since a stream of rows is one source: make of the others "
            "constants, or filters of it by a column"
        )
    if "key" in circuit.sources[name].params:
        raise CircuitError(f"the source {name!r} has a key, but rows come with weights: make it without key=")
    return name


@frozen
class _Options:
    circuit: Circuit
    source: str
    outputs: Mapping[str, Records]
    tables: Mapping[str, tuple[Path, TableColumns]]
    weight: str | None
    state: Path | None
    local: bool
    trigger: Mapping[str, str | bool]
    keep: bool
    on_end: Callable[[], object] | None


# ---------------------------------------------------------------------------------------------------- at work


@define(eq=False)
class _Follower(Follower):
    """One circuit that follows a stream."""

    options: _Options
    steps: Steps | None = None
    current: CurrentRows = field(factory=CurrentRows)
    journal: SourceJournal | None = None
    tables: dict[str, SinkTable] = field(factory=dict)
    stepping: threading.Lock = field(factory=threading.Lock)

    async def run(self, make: Callable[[SparkSession], DataFrame], session: SparkSession | None) -> bool:
        """Follow the rows; return whether the assertions stay when that has ended."""
        options = self.options
        try:
            opened = await self.opened(session)
            frame = await self.in_thread(self._make, make, opened)
            await self.in_thread(self._begin, opened, abandon=False)
            there = self.current.there()
            last = -1 if self.journal is None else self.journal.last
            if there:
                await self.deliver(MicroBatch([Move(there, [], len(there))], last, 0, time.monotonic()))
            if last >= 0:
                await self.caught_up()
            checkpoint = None if options.state is None else str(options.state / "checkpoint")
            query: Query[MicroBatch] = Query(options.source, options.trigger, "append", checkpoint)
            await query.follow(frame, self._received, self.deliver, self.caught_up)
        finally:
            with trio.move_on_after(STOPPING, shield=True):
                await in_thread(self._end, limiter=self.limiter)
        if options.on_end is not None:
            await self.delivery.in_turn(options.on_end)
        return options.keep

    def _make(self, make: Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
        """Make the frame, and see that it is a stream, and has the weights."""
        frame, weight = self.frame_of(make, session), self.options.weight
        if not frame.isStreaming:
            raise SourceError(
                f"the frame of {self.name!r} is a table, not a stream: make it with readStream, or use spark_source, "
                "and a view of its records"
            )
        refuse_stream(session, self.name)
        if weight is not None:
            check_weight(self.name, frame, weight)
        return frame

    def _begin(self, session: SparkSession) -> None:
        """Open all that is kept, and see that it belongs together."""
        options = self.options
        state = options.state
        circuit, source, weight = options.circuit, options.source, options.weight
        if state is not None:
            state.mkdir(parents=True, exist_ok=True)
            about = described({"source": source, "outputs": sorted(options.outputs), "tables": sorted(options.tables)})
            self.journal = SourceJournal(state / "journal", about)
            self.current = self.journal.current()
        directory = None if state is None else state / "engine"
        if options.local:
            self.steps = LocalSteps(circuit, source, weight, directory)
        else:
            self.steps = SparkSteps(circuit, source, weight, session, directory)
        for name, (to, columns) in options.tables.items():
            self.tables[name] = table = SinkTable(to, columns.schema, session=session)
            last = -1 if self.journal is None else self.journal.last
            if table.batch not in (last, last + 1):
                raise SinkError(
                    f"the table {table.root} ends with batch {table.batch}, and the state in {state} with {last}: put "
                    "back the two that belong together, or remove both to begin again"
                )

    def _end(self) -> None:
        """Close all, once a step that is being made has ended."""
        with self.stepping:
            if self.steps is not None:
                self.steps.close()
            for table in self.tables.values():
                table.close()
            if self.journal is not None:
                self.journal.close()
            self.steps = None

    # ------------------------------------------------------------------------------------------------ a micro-batch

    def _received(self, frame: DataFrame, number: int) -> MicroBatch | None:
        """One epoch: called in Spark's thread."""
        with self.stepping:
            if self.steps is None:  # it has ended: Spark is not to believe that this batch was dealt with
                raise trio.BrokenResourceError
            began, query = time.monotonic(), ""
            if self.journal is not None:
                query = str(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
                if not self.journal.expects(number, query):
                    return None
            self.describe(frame, number)
            changes = self._plan(frame, number)
            for name, table in self.tables.items():
                self._append(table, name, changes.get(name, ()), number)
            step = Step([pair for name, maker in self.options.outputs.items() for pair in _forms(maker, changes, name)])
            adds, removes = self.current.change(step)
            if self.journal is not None:
                self.journal.write(self.current, number, query)
                self.journal.commit()
            return MicroBatch([Move(adds, removes, len(step.changes))], number, len(step.changes), began)

    def _plan(self, frame: DataFrame, number: int) -> Mapping[str, SinkChange]:
        """The circuit's step, which is kept when this returns."""
        assert self.steps is not None
        return self.steps.step(frame, number)

    def _append(self, table: SinkTable, name: str, delta: SinkChange, number: int) -> None:
        """The change of a sink as a batch of its table."""
        if number <= table.batch:
            return
        columns = self.options.tables[name][1]
        frame = _large(delta, columns) if isinstance(delta, Delta) and len(delta) >= LARGE_DELTA else None
        if frame is not None:
            explained(name, table.append, frame, number)
            return
        width, pairs = len(columns.names), _pairs(delta)
        rows = [tuple(map(form_of, row if type(row) is tuple else (row,))) for row, _ in pairs]
        wrong = next((row for row in rows if len(row) != width), None)
        if wrong is not None:
            raise SinkError(
                f"the sink {name!r} gave {wrong!r}, and its table has {width} columns: {', '.join(columns.names)}"
            )
        table.append(columns.table(rows, [weight for _, weight in pairs]), number)


def _pairs(delta: SinkChange) -> list[tuple[Element, int]]:
    return list(delta)


def _forms(maker: Records, changes: Mapping[str, SinkChange], name: str) -> Iterable[tuple[Frozen, int]]:
    return [(maker.form(element), weight) for element, weight in changes.get(name, ())]


def _large(delta: Delta, columns: TableColumns) -> DataFrame | None:
    """A change as Spark has it, with the columns of a table; None if they are not of the same types."""
    layout = delta.layout
    assert layout is not None
    kinds = layout.value if isinstance(layout.value, tuple) else (layout.value,)
    schema = columns.schema
    fits = len(kinds) == len(schema) and all(
        isinstance(kind, str) and str(member.type) in _FITTING.get(kind, ())
        for kind, member in zip(kinds, schema, strict=True)
    )
    if not fits:
        return None
    from pyspark.sql.pandas.types import from_arrow_type

    named = [
        f"CAST({column} AS {from_arrow_type(member.type).simpleString()}) AS {quoted(member.name)}"
        for column, member in zip(layout.values, schema, strict=True)
    ]
    frame: DataFrame = delta.frame.selectExpr(*named, "w AS weight")
    return frame
