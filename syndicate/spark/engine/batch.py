"""A batch: what a stream carries in one tick, as columns and a weight.

A batch is in one of three places: a small one in the driver, as an Arrow table, which Spark takes into its plans; a
large one in files; and one that is not computed yet, as Spark's plan for it.  Weights of equal elements may be apart;
whoever must see each element once adds them up.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from attrs import define, evolve

from syndicate.spark.engine.directory import Directory
from syndicate.spark.engine.estimate import expected_rows
from syndicate.spark.engine.rows import added_up, table_of
from syndicate.spark.engine.shape import ANY, SQL, UNIT, VOID, Layout, leaves
from syndicate.spark.engine.workers import Called, Recode
from syndicate.storage.files import remove

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import Table
    from pyspark.sql import DataFrame, SparkSession

SMALL_BATCH: Final = 10_000
"""A batch of up to so many rows is kept in the driver: a plan takes it in within 10 ms, where files take 40 (measured),
and the driver's memory stays flat."""

BUCKET: Final = 50_000
"""So many rows of a large run share a bucket: a bucket is then read in some 10 ms, and a delta reads only its own."""
_MOST_BUCKETS: Final = 256


@define(eq=False)
class Batch:
    """Rows of a layout; exactly one of *table*, *paths* and *plan* is set.

    *rows* is how many there are, None if that is not known yet; *buckets* into how many directories the files are
    divided by key, 0 for none; *apart*: no two rows are of one element, though the rows are not computed yet.
    """

    layout: Layout
    session: SparkSession
    table: Table | None = None
    paths: tuple[Path, ...] = ()
    plan: DataFrame | None = None
    rows: int | None = None
    buckets: int = 0
    apart: bool = False

    @property
    def frame(self) -> DataFrame:
        """As Spark reads it."""
        if self.plan is not None:
            return self.plan
        if self.table is not None:
            self.plan = self.session.createDataFrame(self.table)
            return self.plan
        return self.only(None)

    def only(self, wanted: Iterable[int] | None) -> DataFrame:
        """The rows in some buckets, numbered as if there were :data:`_MOST_BUCKETS`; all, for None."""
        paths = list(map(str, self.places(wanted)))
        reader = self.session.read.schema(self.layout.schema).option("recursiveFileLookup", True)
        if not paths:
            return self.session.createDataFrame([], self.layout.schema)
        return reader.parquet(*paths)

    def places(self, wanted: Iterable[int] | None) -> list[Path]:
        """The directories, or files, of those."""
        if wanted is None or not self.buckets:
            return list(self.paths)
        numbers = sorted({number % self.buckets for number in wanted})
        parts = [path / f"p={number}" for path in self.paths for number in numbers]
        return [path for path in parts if path.is_dir()]

    def select(self, layout: Layout, expressions: Sequence[str]) -> Batch:
        """Other columns of the same rows."""
        return Batch(layout, self.session, plan=self.frame.selectExpr(*expressions))

    def named(self, layout: Layout, columns: Sequence[str]) -> Batch:
        """Some of the columns under the names of another layout."""
        if self.table is not None:
            table = self.table.select([*columns, "w"]).rename_columns([*layout.columns, "w"])
            return Batch(layout, self.session, table=table)
        return self.select(layout, [*[f"{a} AS {b}" for a, b in zip(columns, layout.columns, strict=True)], "w"])

    def negated(self) -> Batch:
        """Opposite weights."""
        if self.table is not None:
            import pyarrow.compute as pc

            weights = pc.negate_checked(self.table.column("w"))
            table = self.table.set_column(self.table.num_columns - 1, "w", weights)
            return Batch(self.layout, self.session, table=table, rows=self.rows)
        return self.select(self.layout, [*self.layout.columns, "-w AS w"])

    def run(self, worker: Callable[..., Iterable[pa.RecordBatch]], layout: Layout) -> Batch:
        """The rows that a worker makes of these; of few, in the driver."""
        if self.table is not None:
            import pyarrow as pa

            batches = list(worker(self.table.combine_chunks().to_batches()))
            return (
                Batch(layout, self.session, table=pa.Table.from_batches(batches)) if batches else nothing(self, layout)
            )
        return Batch(layout, self.session, plan=mapped(self.frame, worker, layout))

    def plus(self, other: Batch) -> Batch:
        """The rows of both, of one layout."""
        if self.table is not None and other.table is not None:
            import pyarrow as pa

            return Batch(self.layout, self.session, table=pa.concat_tables([self.table, other.table]))
        return Batch(self.layout, self.session, plan=self.frame.unionAll(other.frame))


def mapped(frame: DataFrame, worker: Callable[..., Iterable[pa.RecordBatch]], layout: Layout | str) -> DataFrame:
    """Run a worker, whose rows have a layout, or columns as Spark declares them: Spark takes a plain function only."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return iter(worker(batches))

    return frame.mapInArrow(run, layout if isinstance(layout, str) else layout.schema)


_TEXTS: Final = {"long": "CAST({} AS STRING)", "boolean": "CAST({} AS STRING)", "string": "{}", "binary": "hex({})",
                 ANY: "hex({})"}  # fmt: skip
"""What of a leaf's column says its bucket, for Spark; the driver makes the same of a value."""


def bucket_of(layout: Layout, columns: Sequence[str], buckets: int = _MOST_BUCKETS) -> str:
    """The bucket of a key, in Spark's SQL."""
    kinds = layout.kinds
    texts = [_TEXTS[kinds[name]].format(name) for name in columns if kinds[name] in _TEXTS]
    return f"CAST(crc32(CAST(concat_ws({', '.join(['chr(1)', *texts])}) AS BINARY)) % {buckets} AS INT)"


def buckets_of(table: pa.Table, layout: Layout, columns: Sequence[str]) -> set[int]:
    """The buckets that the keys in a table fall into."""
    kinds = layout.kinds
    texts = [list(map(_text, table.column(name).to_pylist())) for name in columns if kinds[name] in _TEXTS]
    if not texts:
        return {crc32(b"") % _MOST_BUCKETS}
    groups = set(zip(*texts, strict=True))
    return {crc32(b"\1".join([text for text in each if text is not None])) % _MOST_BUCKETS for each in groups}


def _text(value: object) -> bytes | None:
    if value is None:
        return None
    if type(value) is bytes:
        return value.hex().upper().encode()
    return (str(value).lower() if type(value) is bool else str(value)).encode()


def nothing(batch: Batch, layout: Layout) -> Batch:
    """No rows."""
    return Batch(layout, batch.session, table=table_of([], [], layout))


class FrameStore:
    """Makes batches in one session and one directory; without one, of plans alone.

    *epoch* is the step, *bulk* whether it was given much, *written* the files it has made; *asked* counts what Spark
    was asked to compute.  *large* and *few* say who was large, and who was small in spite of a step that was given
    much, the last time.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Directory | None,
        modules: tuple[str, ...] = (),
        *,
        small: int = SMALL_BATCH,
    ) -> None:
        self.small = small
        self.bucket = BUCKET
        self.session = session
        self.directory = directory
        self.modules = modules
        self.epoch = 0
        self.written: list[Path] = []
        self.large: set[object] = set()
        self.few: set[object] = set()
        self.bulk = False
        self.asked = 0
        self.parts = str(session.conf.get("spark.sql.shuffle.partitions"))
        self._compiled: bool | None = None

    def compiled(self, *, on: bool) -> None:
        """Let Spark compile its plans and divide its work, or not: on small tables both cost more than the work."""
        if on != self._compiled:
            self.session.conf.set("spark.sql.codegen.wholeStage", str(on).lower())
            self.session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if on else "NO_CODEGEN")
            self.session.conf.set("spark.sql.shuffle.partitions", self.parts if on else "1")
            self.session.conf.set("spark.sql.leafNodeDefaultParallelism", self.parts if on else "1")
            self._compiled = on

    def local(self, table: pa.Table, layout: Layout) -> Batch | None:
        """A batch of a table in the driver, added up; None if nothing is left."""
        table = added_up(table, layout)
        if not table.num_rows:
            return None
        batch = Batch(layout, self.session, table=table, rows=table.num_rows)
        return batch if table.num_rows <= self.small else self.in_file(batch)

    def in_file(self, batch: Batch) -> Batch:
        """A table of the driver's in a file of its own."""
        import pyarrow.parquet as pq

        path = self.new_path()
        pq.write_table(batch.table, path)
        return Batch(batch.layout, self.session, paths=(path,), rows=batch.rows)

    def new_path(self) -> Path:
        """A path for this step."""
        assert self.directory is not None
        path = self.directory.new(self.epoch)
        self.written.append(path)
        return path

    def settled(self, batch: Batch | None, who: object = None) -> Batch | None:
        """The batch computed and added up, in the driver if it is small, else in files; None if it is empty.

        In a step that was given much, and where *who* was large the last time, it is written at once.  What the driver
        can add up it adds up from the files, so that they are written by one job without a shuffle.
        """
        if batch is None or batch.rows is not None:
            return batch
        if batch.table is not None:
            return self.local(batch.table, batch.layout)
        if who in self.few or not (self.bulk or who in self.large):
            tried = self.tried(batch)
            if tried.table is not None:
                return self.local(tried.table, batch.layout)
            self.few.discard(who)
            self.large.add(who)
            self.compiled(on=self.small > 0)
        written = self.in_files(batch) if batch.apart else self._added_in_files(batch)
        if written is None or (written.rows or 0) <= self.small:
            self.large.discard(who)
            if self.bulk:
                self.few.add(who)
            return self.brought(written)
        return written

    def _added_in_files(self, batch: Batch) -> Batch | None:
        """The batch in files, equal rows added: by the driver, if it can hold them."""
        most = addable(batch.layout)
        expected = expected_rows(batch.frame) if most and self.small else None
        if expected is None or expected > most:
            return self.in_files(added(batch))
        written = self.in_files(batch)
        if written is None:
            return None
        if (written.rows or 0) > most:
            return self.in_files(added(written))
        table = as_declared(read_table(written.paths, [*batch.layout.columns, "w"]), batch.layout)
        sums = added_up(table, batch.layout)
        return written if sums.num_rows == table.num_rows else self.local(sums, batch.layout)

    def tried(self, batch: Batch, *, guessed: bool = False) -> Batch:
        """The batch in the driver, not added up, if it is small; else as it is.

        *guessed*: what Spark expects to be large is not tried.
        """
        if batch.table is not None or not self.small:
            return batch
        if guessed and (expected_rows(batch.frame) or 0) > self.small:
            return batch
        self.asked += 1
        table = batch.frame.limit(self.small + 1).toArrow()
        if table.num_rows > self.small:
            return batch
        return Batch(batch.layout, self.session, table=as_declared(table, batch.layout))

    def brought(self, batch: Batch | None) -> Batch | None:
        """A batch in files with its rows in the driver, too, if they are few."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if batch is None or batch.rows is None or batch.rows > self.small or batch.buckets or batch.table is not None:
            return batch
        named = files(batch.paths)
        tables = [as_declared(pq.ParquetFile(name).read(), batch.layout) for name in named]
        return evolve(batch, table=pa.concat_tables(tables)) if tables else batch

    def in_files(self, batch: Batch, keys: Sequence[str] = (), rows: int = 0) -> Batch | None:
        """The batch in files; of many rows, divided into buckets by *keys*."""
        self.asked += 1
        path = self.new_path()
        buckets = 0
        frame = batch.frame
        if keys and rows > 4 * self.bucket:
            buckets = min(_MOST_BUCKETS, 1 << (rows // self.bucket).bit_length())
            names = batch.layout.columns
            frame = frame.selectExpr(*names, "w", f"{bucket_of(batch.layout, keys, buckets)} AS p").repartition("p")
            frame.write.partitionBy("p").parquet(str(path))
        else:
            frame.write.parquet(str(path))
        count = rows_in(path)
        if not count:
            remove(path)
            return None
        return Batch(batch.layout, self.session, paths=(path,), rows=count, buckets=buckets)

    def aligned(self, batch: Batch, layout: Layout) -> Batch:
        """The same rows in another layout, which holds them."""
        if batch.layout == layout:
            return batch
        olds = [*leaves(batch.layout.key or ()), *leaves(batch.layout.value)]
        news = [*leaves(layout.key or ()), *leaves(layout.value)]
        names = batch.layout.columns
        if (
            batch.table is None
            and names == layout.columns
            and all(old == new or (old == VOID and new != ANY) for old, new in zip(olds, news, strict=True))
        ):
            columns = [
                name if old == new else f"CAST(NULL AS {SQL[new]}) AS {name}"
                for name, old, new in zip(names, olds, news, strict=True)
            ]
            return batch.select(layout, [*columns, "w"])
        recode = Recode(Called("a change of columns"), self.modules, batch.layout, layout)
        if batch.table is not None:
            return evolve(batch.run(recode, layout), rows=batch.rows)
        return batch.run(recode, layout)


def added(batch: Batch) -> Batch:
    """The plan that adds up equal rows."""
    columns = ", ".join(batch.layout.columns)
    from pyspark.sql.functions import expr

    frame = batch.frame.groupBy(*batch.layout.columns).agg(expr("sum(w) AS w")).where("w <> 0")
    assert columns
    return Batch(batch.layout, batch.session, plan=frame)


def as_declared(table: pa.Table, layout: Layout) -> pa.Table:
    """A table from Spark, its columns in our types."""
    import pyarrow as pa

    from syndicate.spark.engine.rows import arrow_type

    kinds = [*leaves(layout.key), *leaves(layout.value)] if layout.key is not None else list(leaves(layout.value))
    fields = [pa.field(name, arrow_type(kind)) for name, kind in zip(layout.columns, kinds, strict=True)]
    return table.select([*layout.columns, "w"]).cast(pa.schema([*fields, pa.field("w", pa.int64())]))


def rows_in(path: Path) -> int:
    """How many rows there are in files, by what their ends say."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(file).num_rows for file in files([path]))


ADDABLE: Final = 8_000_000
"""So many numbers in columns are added up by the driver: a million rows of some columns in 0.2 to 0.6 seconds and 100
MB, where Spark takes 2 seconds of the processors, and a shuffle (measured)."""


def addable(layout: Layout) -> int:
    """How many rows of a layout the driver adds up; fewer of what may be long, none of floats.

    Spark and Arrow do not agree on which floats are equal.
    """
    kinds = set(layout.kinds.values())
    rows = ADDABLE // (len(layout.columns) + 1)
    return 0 if "double" in kinds else rows if kinds <= {"long", "boolean", VOID, UNIT} else rows // 10


def read_table(paths: Iterable[Path], columns: Sequence[str]) -> pa.Table:
    """Some columns of files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa.concat_tables([pq.ParquetFile(name).read(list(columns)) for name in files(paths)])


def files(paths: Iterable[Path]) -> list[str]:
    """All files of some paths, which are files themselves or directories."""
    return [
        str(file)
        for path in paths
        for file in (sorted(path.rglob("*.parquet")) if path.is_dir() else [path] if path.exists() else [])
    ]
