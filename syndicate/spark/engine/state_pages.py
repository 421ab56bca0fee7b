"""State in Spark's own store, by pages: what runs in the workers of a stateful stream.

Rows are divided by their key into a fixed number of *pages*.  A page is an Arrow table as bytes, one value of Spark's
state store.  A micro-batch reads the pages that its keys fall into; so a call of the store is paid a page, not a key.
What it adds goes into a second value, of what is *recent*, since a page is much to write; the page itself is written
when that has come to an eighth of it.  The rows travel as bytes, too: added up and packed by page before the shuffle
(:class:`Packed`), and unpacked behind it (:class:`Unpacked`).

Contract: a page has the mark of its operator, so that a checkpoint of another circuit is refused and never misread.

Source: ``docs/design/spark.md``, "State in Spark's own store".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from attrs import define, field

from syndicate.errors import SnapshotMismatch
from syndicate.flow.element import Element
from syndicate.spark.engine.batch import as_declared
from syndicate.spark.engine.canonical import remember
from syndicate.spark.engine.groups import appeared_rows, before_and_after, by_group
from syndicate.spark.engine.joins import met_rows
from syndicate.spark.engine.key_lookup import of_keys
from syndicate.spark.engine.rows import summed, table_of, with_weight
from syndicate.spark.engine.shape import Layout
from syndicate.spark.engine.sums import result_of
from syndicate.spark.engine.worker_process import worker
from syndicate.spark.engine.workers import Groups, PythonWorker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, ValueState

PACKED: Final = "p INT, side INT, rows BINARY"
ROWS: Final = "rows BINARY"
RECENT: Final = 8
"""A page is written when what is recent has come to this part of it."""
SMALL_PAGE: Final = 500
"""Rows that are not worth compressing."""
SUMS: Final = ("w", "s")
"""The sums of weights and of weighted values."""
_MARK: Final = b"syndicate"


def to_bytes(table: pa.Table, mark: str = "") -> bytes:
    """A table as a stream of Arrow's."""
    import pyarrow as pa

    table = table.combine_chunks().replace_schema_metadata({_MARK: mark.encode()})
    sink = pa.BufferOutputStream()
    # Spark pickles what it hands over, byte by byte: a page of a megabyte costs tens of milliseconds.
    options = pa.ipc.IpcWriteOptions(compression="zstd" if mark and table.num_rows > SMALL_PAGE else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes, mark: str = "") -> pa.Table:
    """The table again, any column of which may be null; raises :class:`SnapshotMismatch` if it has another mark."""
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    schema = table.schema
    if (schema.metadata or {}).get(_MARK) != mark.encode():
        raise SnapshotMismatch(
            "the checkpoint holds the state of another circuit, of other columns or of another number of pages: give "
            "spark_stream the pages= with which it began (256 or 64 in former versions), or begin with a new checkpoint"
        )
    # A sum may always be null to Arrow, and a row that met no other is no sum: tables of one layout differ in that.
    return table.cast(pa.schema([each.with_nullable(True) for each in schema]))


@define
class PagedInput:
    """The state of one input: rows are equal by their columns, and have one or two weights to add up."""

    layout: Layout
    weights: tuple[str, ...] = ("w",)

    @property
    def columns(self) -> list[str]:
        """What rows are equal by: the key alone, where values are summed up already."""
        return self.layout.columns if self.weights == ("w",) else self.layout.keys

    def nothing(self) -> pa.Table:
        """No rows."""
        import pyarrow as pa

        empty = table_of([], [], self.layout)
        for name in self.weights[1:]:
            empty = empty.append_column(name, pa.array([], pa.int64()))
        return empty.select([*self.columns, *self.weights])

    def added(self, *tables: pa.Table) -> pa.Table:
        """The sums of tables, without rows of no weight."""
        import pyarrow as pa

        return with_weight(summed(pa.concat_tables(tables), self.columns, self.weights), self.weights)


@define
class Packed(PythonWorker):
    """The rows of a partition, equal ones added up, as one table for each page; *number* is that of the input."""

    number: int
    side: PagedInput

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: D102  # the base says it
        import pyarrow as pa
        import pyarrow.compute as pc

        some = [batch for batch in batches if batch.num_rows]
        if not some:
            return
        table = summed(pa.Table.from_batches(some), ["p", *self.side.columns], self.side.weights).sort_by("p")
        pages = pc.value_counts(table.column("p").combine_chunks())
        numbers, packed, first = pages.field("values"), [], 0
        for count in pages.field("counts").to_pylist():
            rows = table.slice(first, count)
            packed.append(to_bytes(self.declared(rows)))
            first += count
        sides = pa.array([self.number] * len(packed), pa.int32())
        yield pa.record_batch([numbers, sides, pa.array(packed, pa.binary())], names=["p", "side", "rows"])

    def declared(self, rows: pa.Table) -> pa.Table:
        """The rows in our types."""
        if self.side.weights == ("w",):
            return as_declared(rows, self.side.layout)
        return rows.select([*self.side.columns, *self.side.weights])


@define
class Unpacked(PythonWorker):
    """The rows in bytes, as columns again."""

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        import pyarrow as pa

        return pa.concat_tables([from_bytes(data) for data in batch.column("rows").to_pylist()])


class PagedOperator(Protocol):
    """What a stateful operator concludes from its pages of one number: one for each of its inputs."""

    def changes(self, pages: Sequence[pa.Table], deltas: Sequence[pa.Table]) -> pa.Table:
        """What comes and goes when *deltas* are added to pages; equal rows of a page may be apart."""


@define
class PagedDistinct:
    """``distinct``: the sums of weights."""

    layout: Layout

    def changes(self, pages: Sequence[pa.Table], deltas: Sequence[pa.Table]) -> pa.Table:  # noqa: D102  # the protocol
        (page,), (delta,) = pages, deltas
        return appeared_rows(
            before_and_after(delta, of_keys(page, delta, self.layout.columns), self.layout), self.layout
        )


@define
class PagedGroups:
    """``aggregate`` of any kind: the values by key, of which the touched groups are made again."""

    layout: Layout
    groups: Groups

    def changes(self, pages: Sequence[pa.Table], deltas: Sequence[pa.Table]) -> pa.Table:  # noqa: D102  # the protocol
        import pyarrow as pa

        (page,), (delta,) = pages, deltas
        both = before_and_after(delta, of_keys(page, delta, self.layout.keys), self.layout)
        batches = list(self.groups.run(by_group(both, self.layout).combine_chunks().to_batches()))
        assert self.groups.out is not None
        return pa.Table.from_batches(batches) if batches else table_of([], [], self.groups.out)


@define
class PagedSums:
    """``count``, ``sum`` and ``avg`` of integers: two sums by key, of the weights and of the weighted values."""

    layout: Layout
    groups: Groups
    form: str

    def changes(self, pages: Sequence[pa.Table], deltas: Sequence[pa.Table]) -> pa.Table:  # noqa: D102  # the protocol
        import pyarrow as pa

        keys, (page,), (delta,) = self.layout.keys, pages, deltas
        was = summed(of_keys(page, delta, keys), keys, SUMS)
        now = summed(pa.concat_tables([was, delta]), keys, SUMS)
        olds, news = self.results(was), self.results(now)
        # The groups that were there are the first in both tables, in the order of the page.
        changed = [i >= len(olds) or olds[i] != value for i, value in enumerate(news)]
        gone = [i for i, value in enumerate(olds) if changed[i] and value is not None]
        come = [i for i, value in enumerate(news) if changed[i] and value is not None]
        rows = self.rows(was.take(pa.array(gone, pa.int64())), [olds[i] for i in gone], -1)
        more = self.rows(now.take(pa.array(come, pa.int64())), [news[i] for i in come], 1)
        return pa.concat_tables([rows, more])

    def results(self, sums: pa.Table) -> list[Element]:
        """The result of each group, None for one without rows."""
        pairs = zip(sums.column("w").to_pylist(), sums.column("s").to_pylist(), strict=True)
        return [result_of(self.form, count, total) for count, total in pairs]

    def rows(self, groups: pa.Table, results: list[Element], weight: int) -> pa.Table:
        """Groups with their results, as rows that come or go."""
        import pyarrow as pa

        out = self.groups.out
        assert out is not None
        kind = pa.float64() if self.form == "avg" else pa.int64()
        weights = pa.array([weight] * len(results), pa.int64())
        keys = groups.select(self.layout.keys).columns
        return pa.table([*keys, pa.array(results, kind), weights], names=[*out.columns, "w"])


@define
class PagedJoin:
    """``join``: both sides by key; what has met, before the function of the join."""

    left: Layout
    right: Layout

    def changes(self, pages: Sequence[pa.Table], deltas: Sequence[pa.Table]) -> pa.Table:  # noqa: D102  # the protocol
        import pyarrow as pa

        (a, b), (more_a, more_b), keys = pages, deltas, self.left.keys
        now = pa.concat_tables([of_keys(a, more_b, keys), of_keys(more_a, more_b, keys)])
        met = [
            met_rows(more_a, of_keys(b, more_a, keys), self.left, self.right),
            met_rows(now, more_b, self.left, self.right),
        ]
        return pa.concat_tables(met)


@define
class PagedState:
    """What Spark calls for each page that a micro-batch has rows for: a ``StatefulProcessor``."""

    operator: PagedOperator
    sides: Sequence[PagedInput]
    mark: str
    modules: tuple[str, ...]
    pages: list[ValueState] = field(factory=list, init=False)
    recent: list[ValueState] = field(factory=list, init=False)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open two stores for each input."""
        worker.begin()
        numbers = range(len(self.sides))
        self.pages = [handle.getValueState(f"side{number}", ROWS) for number in numbers]
        self.recent = [handle.getValueState(f"recent{number}", ROWS) for number in numbers]

    def handleInputRows(  # noqa: N802  # Spark's name
        self, key: object, rows: Iterable[Row], timers: object
    ) -> Iterator[Row]:
        """The changes of one page."""
        import pyarrow as pa
        from pyspark.sql import Row

        remember(self.modules)
        deltas = [side.nothing() for side in self.sides]
        for row in rows:
            deltas[row.side] = pa.concat_tables([deltas[row.side], from_bytes(row.rows)])
        pages = [self._read(store, side) for store, side in zip(self.pages, self.sides, strict=True)]
        recent = [self._read(store, side) for store, side in zip(self.recent, self.sides, strict=True)]
        changes = self.operator.changes([pa.concat_tables(each) for each in zip(pages, recent, strict=True)], deltas)
        for number, side in enumerate(self.sides):
            if deltas[number].num_rows:
                news = side.added(recent[number], deltas[number])
                if news.num_rows * RECENT >= pages[number].num_rows:
                    self._write(self.pages[number], side.added(pages[number], news))
                    news = news.slice(0, 0)
                if news.num_rows or recent[number].num_rows:  # a call of the store is dear
                    self._write(self.recent[number], news)
        if changes.num_rows:
            yield Row(rows=to_bytes(changes))

    def _read(self, store: ValueState, side: PagedInput) -> pa.Table:
        held = store.get()
        return side.nothing() if held is None else from_bytes(held[0], self.mark)

    def _write(self, store: ValueState, rows: pa.Table) -> None:
        if rows.num_rows:
            store.update((to_bytes(rows, self.mark),))
        else:
            store.clear()

    def close(self) -> None:
        """Nothing is held."""
