"""State in Spark's own store, by pages: what runs in the workers of a stateful stream.

Rows are divided by their key into a fixed number of *pages*.  A page is an Arrow table as bytes, one value of Spark's
state store.  A micro-batch reads the pages that its keys fall into, changes them as columns, and writes them back; so a
call of the store is paid a page, not a key.  The rows travel as bytes, too: added up and packed by page before the
shuffle (:class:`Packed`), and unpacked behind it (:class:`Unpacked`).

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
from syndicate.spark.engine.key_lookup import divided, of_keys
from syndicate.spark.engine.rows import added_up, summed, table_of
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
_MARK: Final = b"syndicate"


def to_bytes(table: pa.Table, mark: str = "") -> bytes:
    """A table as a stream of Arrow's."""
    import pyarrow as pa

    table = table.combine_chunks().replace_schema_metadata({_MARK: mark.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
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
class Packed(PythonWorker):
    """The rows of a partition, equal ones added up, as one table for each page; *side* is the input they are for."""

    layout: Layout
    side: int
    weights: tuple[str, ...] = ("w",)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: D102  # the base says it
        import pyarrow as pa
        import pyarrow.compute as pc

        some = [batch for batch in batches if batch.num_rows]
        if not some:
            return
        table = summed(pa.Table.from_batches(some), ["p", *self.columns], self.weights).sort_by("p")
        pages = pc.value_counts(table.column("p").combine_chunks())
        numbers, packed, first = pages.field("values"), [], 0
        for count in pages.field("counts").to_pylist():
            rows = table.slice(first, count)
            packed.append(to_bytes(self.declared(rows)))
            first += count
        sides = pa.array([self.side] * len(packed), pa.int32())
        yield pa.record_batch([numbers, sides, pa.array(packed, pa.binary())], names=["p", "side", "rows"])

    @property
    def columns(self) -> list[str]:
        """What rows are equal by: the key alone, where values are summed up already."""
        return self.layout.columns if self.weights == ("w",) else self.layout.keys

    def declared(self, rows: pa.Table) -> pa.Table:
        """The rows in our types."""
        return as_declared(rows, self.layout) if self.weights == ("w",) else rows.select([*self.columns, *self.weights])


@define
class Unpacked(PythonWorker):
    """The rows in bytes, as columns again."""

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        import pyarrow as pa

        return pa.concat_tables([from_bytes(data) for data in batch.column("rows").to_pylist()])


class PagedOperator(Protocol):
    """What a stateful operator does with the pages of one number: one for each of its inputs."""

    def change(
        self, pages: Sequence[pa.Table | None], deltas: Sequence[pa.Table | None]
    ) -> tuple[list[pa.Table | None], pa.Table]:
        """The pages after the deltas, None where nothing changes, and the rows that come of it."""


@define
class PagedDistinct:
    """``distinct``: the sums of weights."""

    layout: Layout

    def change(  # noqa: D102  # the protocol says it
        self, pages: Sequence[pa.Table | None], deltas: Sequence[pa.Table | None]
    ) -> tuple[list[pa.Table | None], pa.Table]:
        page, delta = _there(pages[0], self.layout), _there(deltas[0], self.layout)
        was, rest = divided(page, delta, self.layout.columns)
        both = before_and_after(delta, was, self.layout)
        return [_beside(rest, _plus(was, delta, self.layout))], appeared_rows(both, self.layout)


@define
class PagedGroups:
    """``aggregate`` of any kind: the values by key, of which the touched groups are made again."""

    layout: Layout
    groups: Groups

    def change(  # noqa: D102  # the protocol says it
        self, pages: Sequence[pa.Table | None], deltas: Sequence[pa.Table | None]
    ) -> tuple[list[pa.Table | None], pa.Table]:
        import pyarrow as pa

        page, delta = _there(pages[0], self.layout), _there(deltas[0], self.layout)
        was, rest = divided(page, delta, self.layout.keys)
        both = before_and_after(delta, was, self.layout)
        batches = list(self.groups.run(by_group(both, self.layout).combine_chunks().to_batches()))
        assert self.groups.out is not None
        changes = pa.Table.from_batches(batches) if batches else table_of([], [], self.groups.out)
        return [_beside(rest, _plus(was, delta, self.layout))], changes


@define
class PagedSums:
    """``count``, ``sum`` and ``avg`` of integers: two sums by key, of the weights and of the weighted values."""

    layout: Layout
    groups: Groups
    form: str

    def change(  # noqa: D102  # the protocol says it
        self, pages: Sequence[pa.Table | None], deltas: Sequence[pa.Table | None]
    ) -> tuple[list[pa.Table | None], pa.Table]:
        import pyarrow as pa
        import pyarrow.compute as pc

        keys, (delta,) = self.layout.keys, deltas
        assert delta is not None
        page = delta.slice(0, 0) if pages[0] is None else pages[0]
        was, rest = divided(page, delta, keys)
        now = summed(pa.concat_tables([was, delta]), keys, ["w", "s"])
        olds, news = self.results(was), self.results(now)
        # The groups that were there are the first in both tables, in the order of the page.
        changed = [i >= len(olds) or olds[i] != value for i, value in enumerate(news)]
        gone = [i for i, value in enumerate(olds) if changed[i] and value is not None]
        come = [i for i, value in enumerate(news) if changed[i] and value is not None]
        rows = self.rows(was.take(pa.array(gone, pa.int64())), [olds[i] for i in gone], -1)
        more = self.rows(now.take(pa.array(come, pa.int64())), [news[i] for i in come], 1)
        left = now.filter(pc.or_(pc.not_equal(now.column("w"), 0), pc.not_equal(now.column("s"), 0)))
        return [_beside(rest, left)], pa.concat_tables([rows, more])

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

    def change(  # noqa: D102  # the protocol says it
        self, pages: Sequence[pa.Table | None], deltas: Sequence[pa.Table | None]
    ) -> tuple[list[pa.Table | None], pa.Table]:
        import pyarrow as pa

        a, b = _there(pages[0], self.left), _there(pages[1], self.right)
        more_a, more_b = _there(deltas[0], self.left), _there(deltas[1], self.right)
        now = _added(a, more_a, self.left)
        met = [met_rows(more_a, of_keys(b, more_a, self.left.keys), self.left, self.right),
               met_rows(of_keys(now, more_b, self.left.keys), more_b, self.left, self.right)]  # fmt: skip
        after = [now if more_a.num_rows else None, _added(b, more_b, self.right) if more_b.num_rows else None]
        return after, pa.concat_tables(met)


def _there(table: pa.Table | None, layout: Layout) -> pa.Table:
    return table_of([], [], layout) if table is None else table


def _added(page: pa.Table, delta: pa.Table, layout: Layout) -> pa.Table:
    """A page after a delta: what has no key of the delta stays as it is."""
    was, rest = divided(page, delta, layout.keys)
    return _beside(rest, _plus(was, delta, layout))


def _beside(rest: pa.Table, rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([rest, rows])


def _plus(page: pa.Table, delta: pa.Table, layout: Layout) -> pa.Table:
    import pyarrow as pa

    return added_up(pa.concat_tables([page, delta]), layout)


@define
class PagedState:
    """What Spark calls for each page that a micro-batch has rows for: a ``StatefulProcessor``."""

    operator: PagedOperator
    inputs: int
    mark: str
    modules: tuple[str, ...]
    stores: list[ValueState] = field(factory=list, init=False)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open a store for each input."""
        worker.begin()
        self.stores = [handle.getValueState(f"side{side}", ROWS) for side in range(self.inputs)]

    def handleInputRows(  # noqa: N802  # Spark's name
        self, key: object, rows: Iterable[Row], timers: object
    ) -> Iterator[Row]:
        """The changes of one page."""
        import pyarrow as pa
        from pyspark.sql import Row

        remember(self.modules)
        sides: list[list[pa.Table]] = [[] for _ in self.stores]
        for row in rows:
            sides[row.side].append(from_bytes(row.rows))
        deltas = [pa.concat_tables(tables) if tables else None for tables in sides]
        held = [store.get() for store in self.stores]
        pages = [None if page is None else from_bytes(page[0], self.mark) for page in held]
        after, changes = self.operator.change(pages, deltas)
        for store, page in zip(self.stores, after, strict=True):
            if page is None:
                continue
            if page.num_rows:
                store.update((to_bytes(page, self.mark),))
            else:
                store.clear()
        if changes.num_rows:
            yield Row(rows=to_bytes(changes))

    def close(self) -> None:
        """Nothing is held."""
