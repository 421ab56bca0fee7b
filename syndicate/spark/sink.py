"""What is asserted in a dataspace as a table that any Spark job reads: each change a row, and a snapshot beside them.

The path of a change: the dataspace tells the sink in a turn; when that commits, the change is added to what is
*pending*, a sum of weights, in which what came and went meanwhile cancels out.  Once a batch is due, a thread makes
rows of it, *writes* them into a directory, and *commits* them with its manifest (:mod:`syndicate.spark.sink_table`);
meanwhile the next batch gathers.  So a slow disk makes batches larger, and what is pending is never more than the
difference between what is asserted now and what was at the last commit.

No journal is needed.  After a restart, however the last run ended, the sink waits until what is asserted has come back
(:mod:`syndicate.spark.sink`), and writes the difference from what the last commit says: nothing is lost or doubled,
and nobody who reads the table sees a part of it.  If it is stopped before, it leaves the table as it was, unless no row
of it is missing.

Contract: a turn of the dataspace is in one batch as a whole; the changes of all batches up to one add up to what was
there after some turn; a value is in the snapshot while somebody asserts it.  What came and went within one batch leaves
no row.

Source: ``docs/design/spark.md``, "Tables that a sink writes" and "What has not come back has not gone".

Sources that a sink waits for at its start: until they stand, what is missing has not gone.

Each source and view of Spark's says in the dataspace whether it has asserted what was there
(:class:`~syndicate.spark.progress.SparkSource`).  Those that are there and do not stand yet are waited for, for as long
as they need: they come to stand, or end.  One that comes late can be waited for by its name.

Contract: what a source asserted before it says that it is caught up, the sink was notified of before this.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

import attrs
import trio
from attrs import define, field, frozen

from syndicate.actors.arguments import expect_ref
from syndicate.actors.during import observe
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Turn, current
from syndicate.actors.verbs import current_facet, on_stop_or_crash, react, ref, sync, trio_task
from syndicate.errors import SinkError
from syndicate.hosting import pattern_for
from syndicate.index.interest import interest
from syndicate.log import logger
from syndicate.spark.arrow import arrow_schema
from syndicate.spark.columns import ANYTHING, fields_of, hints_of
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.delivery import Delivery
from syndicate.spark.kafka import Kafka
from syndicate.spark.kafka_sink import KafkaTable
from syndicate.spark.lake import Lake, LakeTable
from syndicate.spark.progress import SparkSource
from syndicate.spark.rows import Step
from syndicate.spark.sink_table import WEIGHT, SinkTable
from syndicate.spark.threads import in_thread, note
from syndicate.spark.to_arrow import Misfit, array_of, canonical, check_kind, kind_of
from syndicate.values.pattern import Capture, capture, pattern_of
from syndicate.values.record import is_record_class, record
from syndicate.values.value import Assertion, Frozen, Ref, Value, thaw

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


# --------------------------------------------------------------------------- sources that a sink waits for at its start


def names_of(sources: Sequence[type | str]) -> list[str]:
    """The names of sources that were given as record classes or as names; raises :class:`SinkError`.

    >>> names_of([SparkSource, "readings"])
    ['SparkSource', 'readings']
    """
    if isinstance(sources, str | type) or not all(isinstance(each, str | type) for each in sources):
        raise SinkError(f"sources= takes a list of record classes or names of sources, not {sources!r}")
    return [each if isinstance(each, str) else each.__name__ for each in sources]


class Awaited(Entity):
    """The sources in a dataspace, and those *named*, whether they are there or not."""

    raw = True

    def __init__(self, named: Iterable[str]) -> None:
        self.named = list(named)
        self.sources: dict[Assertion, tuple[str, bool]] = {}
        self.changed = trio.Event()

    def watch(self, ds: Ref) -> None:
        """Observe the sources in *ds*, from the turn that is."""
        pattern = pattern_of(SparkSource(capture(), capture()))
        current("spark_sink").assert_form(current_facet(), ds, interest(pattern, ref(self)))

    def assert_(self, value: Value, handle: Assertion) -> None:
        """A source says what it is."""
        name, standing = thaw(value)
        self.sources[handle] = (name, bool(standing))
        self._tell()

    def retract(self, handle: Assertion) -> None:
        """It says so no more."""
        self.sources.pop(handle, None)
        self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def absent(self) -> list[str]:
        """The names of those that do not stand yet."""
        here = Counter(self.sources.values())
        starting = {name for name, standing in here if not standing}
        return sorted(starting | {name for name in self.named if (name, True) not in here})

    async def asserted(self) -> None:
        """Wait until all stand."""
        while self.absent():
            await self.changed.wait()


# --------------------------------------------------------- what is asserted in a dataspace as a table that any spark jo


T = TypeVar("T")

ENDING: Final = 5.0
"""Seconds that the last batch is waited for when the sink stops."""


@record
class SparkWritten:
    """A sink has committed *batch*: *to* is its directory, *rows* counts the changes since it was started, and *lag* is
    the seconds from the first change of the batch until its commit.
    """

    to: str
    batch: int
    rows: int
    lag: float


def spark_sink(
    ds: Ref,
    pattern: Value,
    to: str | Path | Lake | Kafka,
    *,
    schema: type | pa.Schema | StructType | None = None,
    every: float = 1.0,
    rows: int = 10_000,
    retain: float = 300.0,
    progress: bool = True,
    session: SparkSession | None = None,
    sources: Sequence[type | str] = (),
    grace: float | None = None,
) -> Callable[[], None]:
    """A boot function for ``spawn``: write what matches *pattern* in *ds* into the directory *to*, change by change.

    :func:`~syndicate.spark.sink_table.read_changes` and :func:`~syndicate.spark.sink_table.read_snapshot` read it; the
    layout is described in :mod:`syndicate.spark.sink_table`.  Each capture is a column; values become items of columns
    as the table in :mod:`syndicate.spark.columns` says, the other way round.  What is pending when the sink stops is
    written, within seconds.  A restart writes the difference between what is asserted then and the last commit; if it
    is stopped before all that the table holds has come back, the table stays as it was.

    Args:
        ds: the dataspace.
        pattern: a ``@record`` class, which stands for all its fields, or a pattern with a capture for each column.
        to: the directory of the table, or a :class:`~syndicate.spark.lake.Lake`, a table of Delta's or Iceberg's, which
            holds what is asserted, or a :class:`~syndicate.spark.kafka.Kafka`, a topic with what is asserted by key, at
            least once; both need *session*.  There is one sink to a table or topic.
        schema: the columns, in the order of the captures: a record class, whose annotations are their types, a
            ``pyarrow.Schema``, or Spark's ``StructType``.  It may be left out where *pattern* is a record class, or a
            record whose fields are captures.
        every: seconds for which changes are gathered before they are written.
        rows: so many changes are written at once, but for the first batch, which waits for what is asserted.
        retain: seconds that a file stays after it was replaced, for jobs that read it.
        progress: assert :class:`SparkWritten`.
        session: a Spark session for snapshots of millions of rows; without one they are kept as an older snapshot and
            the changes since.
        sources: record classes, or names, of Spark sources and views that at a start are waited for even if they come
            late.  Those that are in the dataspace are waited for anyhow, until they have asserted all that they know.
        grace: seconds that, at a start, other actors and remote peers have to bring back what they assert, and all have
        to
            draw their conclusions from what sources have brought; then what is missing counts as gone.  By default it
            is *every*.

    Raises:
        SinkError: the columns cannot be determined; (by the actor, which crashes with it) a value fits no column, the
            directory is another sink's, in use or damaged, the disk is full.
        PatternError: the pattern is not one.

    Example::

        spawn(spark_sink(ds, Sensor, to="sensors/"))
    """
    expect_ref("spark_sink", ds)
    columns = _columns_of(pattern, schema)
    if isinstance(to, (Lake, Kafka)) and session is None:
        knows = f"{to.kind} tables" if isinstance(to, Lake) else "topics"
        raise SinkError(f"{to} is written by Spark: give session= one that knows {knows}")
    asked, _ = pattern_for(pattern)
    if not (all(hasattr(each, "__float__") for each in (every, rows, retain)) and every > 0 < rows and retain >= 0):
        raise SinkError(
            f"spark_sink takes positive numbers of seconds and rows, not every={every!r}, rows={rows!r}, "
            f"retain={retain!r}"
        )
    grace = every if grace is None else grace
    if not (hasattr(grace, "__float__") and grace >= 0):
        raise SinkError(f"grace= takes a number of seconds, not {grace!r}")
    names = names_of(sources)

    def start() -> None:
        facet = current_facet()
        awaited = Awaited(names)
        place = to if isinstance(to, (Lake, Kafka)) else Path(to)
        sink = _Sink(facet, ds, place, columns, every, rows, retain, session, progress, awaited, grace)
        observe("spark_sink", ds, asked, _Noted(current("spark_sink"), sink))
        awaited.watch(ds)
        on_stop_or_crash(sink.stopping)
        sync(ds, sink.synced.set)
        trio_task(sink.run)

    def boot() -> None:
        react(start)  # a facet of its own, so that its end is not that of the caller's

    boot.__name__ = f"spark_sink({columns.of})"
    return boot


# ---------------------------------------------------------------------------------------------------- the columns


@frozen
class TableColumns:
    """The columns of a table: a name, a type and an annotation each; *of* is what its rows are called."""

    of: str
    names: Sequence[str]
    kinds: Sequence[object]
    hints: Mapping[str, object]

    @property
    def schema(self) -> pa.Schema:
        """As Arrow has them; raises :class:`SinkError` for a type that Spark does not read."""
        import pyarrow as pa

        kinds = [
            kind if isinstance(kind, pa.DataType) else kind_of(self.hints.get(name, ANYTHING), name)
            for name, kind in zip(self.names, self.kinds, strict=True)
        ]
        for name, kind in zip(self.names, kinds, strict=True):
            check_kind(kind, name)
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    def table(self, rows: Sequence[Sequence[Frozen]], weights: Sequence[int]) -> pa.Table:
        """Rows of frozen forms with their weights; raises :class:`SinkError` if one does not fit."""
        import pyarrow as pa

        schema = self.schema
        items = list(zip(*rows, strict=True)) or [()] * len(self.names)
        arrays = []
        for member, column in zip(schema, items, strict=True):
            try:
                arrays.append(array_of(column, member.type, member.name, self.hints.get(member.name, ANYTHING)))
            except Misfit as misfit:
                shown = ", ".join(
                    f"{name}={thaw(form)!r}" for name, form in zip(self.names, rows[misfit.place], strict=True)
                )
                raise SinkError(
                    f"{self.of}({shown}) does not fit the table: {misfit}; change schema=, or let the pattern take "
                    "only what fits, with capture(int) for instance"
                ) from None
        return pa.table([*arrays, pa.array(weights, pa.int64())], schema=schema.append(pa.field(WEIGHT, pa.int64())))


def columns_of(schema: object, of: str = "the row") -> TableColumns:
    """The columns that *schema* declares; raises :class:`SinkError` if it declares none."""
    if isinstance(schema, type) and is_record_class(schema):
        hints = hints_of(schema)
        names = fields_of(schema)
        return TableColumns(schema.__name__, names, [hints.get(name, ANYTHING) for name in names], hints)
    if hasattr(schema, "fieldNames") and hasattr(schema, "fields"):
        schema = arrow_schema(cast("StructType", schema))
    if hasattr(schema, "names") and hasattr(schema, "types"):
        return TableColumns(of, schema.names, schema.types, {})
    raise SinkError(f"schema= takes a record class, a pyarrow.Schema or a StructType, not {schema!r}")


def _columns_of(pattern: Value, schema: object) -> TableColumns:
    cls = pattern if isinstance(pattern, type) else type(pattern)
    named = cls if hasattr(cls, "__label__") and attrs.has(cls) else None
    _, captures = pattern_for(pattern)
    of = named.__name__ if named is not None else "the row"
    if schema is not None:
        columns = columns_of(schema, of)
        if len(columns.names) != captures:
            raise SinkError(
                f"the pattern captures {captures} values, and schema= has {len(columns.names)} columns: "
                "give one for each"
            )
        return columns
    if named is not None:
        names = fields_of(named)
        if pattern is not named:
            names = [name for name in names if isinstance(getattr(pattern, name), Capture)]
        if len(names) == captures:
            hints = hints_of(named)
            return TableColumns(of, names, [hints.get(name, ANYTHING) for name in names], hints)
    raise SinkError(
        "the columns cannot be told from the pattern: say with schema= what each of its captures is called, and which "
        "type it has"
    )


# ---------------------------------------------------------------------------------------------------- at work


class _Noted(Entity):
    """Gathers the changes of a turn, which count when it commits."""

    raw = True

    def __init__(self, turn: Turn, sink: _Sink) -> None:
        self.turn = turn
        self.sink = sink
        self.forms: dict[Assertion, Frozen] = {}
        self.changes: list[tuple[Frozen, int]] = []

    def assert_(self, value: Value, handle: Assertion) -> None:
        self.forms[handle] = value
        self._note(value, 1)

    def retract(self, handle: Assertion) -> None:
        self._note(self.forms.pop(handle), -1)

    def _note(self, form: Frozen, weight: int) -> None:
        if not self.changes:
            self.turn.afterwards.append(self._count)
        self.changes.append((form, weight))

    def _count(self) -> None:
        changes, self.changes = self.changes, []
        self.sink.note(changes)


@define(eq=False)
class _Sink:
    """One sink at work: what is pending, and what the table holds."""

    facet: Facet
    ds: Ref
    to: Path | Lake | Kafka
    columns: TableColumns
    every: float
    most: int
    retain: float
    session: SparkSession | None
    progress: bool
    awaited: Awaited
    grace: float
    settled: bool = False
    pending: dict[Frozen, int] = field(factory=dict)
    since: float = 0.0
    synced: trio.Event = field(factory=trio.Event)
    due: trio.Event = field(factory=trio.Event)
    full: trio.Event = field(factory=trio.Event)
    table: SinkTable | LakeTable | KafkaTable | None = None
    stood: Sequence[Frozen] = ()
    current: CurrentRows = field(factory=CurrentRows)
    counted: int = 0
    ready: bool = False
    writing: trio.CancelScope | None = None
    ending: trio.CancelScope = field(factory=lambda: trio.CancelScope(shield=True))
    limiter: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1))

    def note(self, changes: Iterable[tuple[Frozen, int]]) -> None:
        """Add what a turn has changed to what is pending."""
        pending = self.pending
        if not pending:
            self.since = time.monotonic()
        for form, weight in changes:
            total = pending.get(form, 0) + weight
            if total:
                pending[form] = total
            else:
                del pending[form]
        if pending:
            self.due.set()
        if len(pending) >= self.most:
            self.full.set()

    async def run(self) -> None:
        """Write batch after batch, until the facet stops; then the last one."""
        shown = Delivery(self.ds, self.facet)
        try:
            with trio.CancelScope(shield=True, deadline=self.ending.deadline) as self.writing:
                await in_thread(self._open, limiter=self.limiter)
                self.ready = True
            await self.synced.wait()
            await self._settle()
            while True:
                written = await self._flush()
                if written is not None and self.progress:
                    await shown.show(written)
                await self.due.wait()
                await self._gather()
        finally:
            self.stopping()
            if self.ready and self.synced.is_set():
                await self._flush()
            if self.table is not None:
                with self.ending:
                    await in_thread(self.table.close, limiter=self.limiter)

    def stopping(self) -> None:
        """From now on, only so long."""
        self.ending.deadline = trio.current_time() + ENDING
        if self.writing is not None:
            self.writing.deadline = self.ending.deadline

    async def _settle(self) -> None:
        """Wait until what is asserted has come back."""
        await trio.sleep(self.grace)
        if absent := self.awaited.absent():
            log = logger(actor=self.facet.actor.name)
            log.info("a sink waits for its sources, and leaves its table as it is", to=str(self.to), sources=absent)
        while self.awaited.absent():
            await self.awaited.asserted()
            await trio.sleep(self.grace)
        self.settled = True

    async def _gather(self) -> None:
        """Wait until the batch is due."""
        with trio.move_on_after(self.every):
            await self.full.wait()

    async def _flush(self) -> SparkWritten | None:
        """Write what is pending as a batch: to its end, unless that takes too long after the facet has stopped."""
        pending, self.pending = self.pending, {}
        since = self.since if pending else time.monotonic()
        self.due, self.full = trio.Event(), trio.Event()
        count: int | None = None
        ready, self.ready = self.ready, False  # after a batch that failed, nothing more is written
        with trio.CancelScope(shield=True, deadline=self.ending.deadline) as self.writing:
            count = await in_thread(self._write, pending, limiter=self.limiter)
            self.ready = ready
        if count is None:
            return None
        self.counted += count
        assert self.table is not None
        return SparkWritten(str(self.to), self.table.batch, self.counted, round(time.monotonic() - since, 3))

    def _open(self) -> None:
        table: SinkTable | LakeTable | KafkaTable
        if self.session is not None:
            note(self.session)
        if isinstance(self.to, Path):
            table = SinkTable(self.to, self.columns.schema, retain=self.retain, session=self.session)
        else:
            assert self.session is not None
            if isinstance(self.to, Lake):
                table = LakeTable(self.to, self.columns.schema, self.session)
            else:
                table = KafkaTable(self.to, self.columns.schema, self.session)
        self.table = table
        self._read(table)

    def _read(self, table: SinkTable | LakeTable | KafkaTable) -> None:
        """See what the table holds."""
        there = table.contents()
        rows = canonical(there.select(self.columns.names), self.columns.hints)
        self.stood = rows
        self.current = CurrentRows(dict(zip(rows, there.column(WEIGHT).to_pylist(), strict=True)))

    def _write(self, pending: Mapping[Frozen, int]) -> int | None:
        """Commit a batch; return how many rows have changed, or None if none has, and it was not the first.

        Before what is asserted has come back nobody knows what has gone: a batch that lacks a row of the table is not
        written, since neither with that row nor without it would the table be what was asserted after a turn.
        """
        table = self.table
        assert table is not None
        batch = self.columns.table([form[1:] for form in pending], list(pending.values()))
        rows = canonical(batch.select(self.columns.names), self.columns.hints)
        if not self.settled and (absent := set(self.stood).difference(rows)):
            log = logger(actor=self.facet.actor.name)
            log.info(
                "a sink was stopped before what was there had come back, and leaves its table as it was",
                to=str(self.to),
                absent=len(absent),
                came=len(rows),
            )
            return None
        changes = [*zip(rows, pending.values(), strict=True)]
        if isinstance(table, LakeTable) and table.overtaken():
            # Somebody else's commit: what is asserted is put in the place of what the table holds now.
            changes += [] if self.stood else self.current.weights.items()
            self._read(table)
        changes += [(row, -1) for row in self.stood]
        self.stood = ()
        adds, removes = self.current.change(Step(changes))
        if not adds and not removes and table.batch >= 0:
            return None
        changed, weights = [*adds, *removes], [1] * len(adds) + [-1] * len(removes)
        table.append(self._taken(batch, rows, changed, weights), table.batch + 1)
        return len(changed)

    def _taken(
        self, batch: pa.Table, rows: Sequence[Frozen], changed: Sequence[Frozen], weights: Sequence[int]
    ) -> pa.Table:
        """The changed rows, out of those that were made already, where all of them were."""
        import pyarrow as pa

        places = {row: place for place, row in enumerate(rows)}
        taken = [places.get(row) for row in changed]
        if None in taken:
            return self.columns.table(changed, weights)
        table = batch.select(self.columns.names).take(pa.array(taken, pa.int64()))
        return table.append_column(WEIGHT, pa.array(weights, pa.int64()))
