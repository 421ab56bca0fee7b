"""A directory that keeps what a sink was given: a table of changes that only grows, and a snapshot of their sum.

Every commit is a *batch*, with a number that grows.  The **changes** are the rows of all batches, each with its
``weight`` (+1: it came, -1: it went) and its ``batch``.  The **snapshot** is their sum: the rows that are there, with
their weights.  Both are Parquet files; ``_manifest.json`` says which of them count:

=============  =========================================================================================================
``batch``      the last one
``columns``    the names of the value columns, and their Arrow types
``changes``    the files of the changes, each with its ``rows``, and the ``first`` and ``last`` batch in it
``snapshot``   a ``file`` with what was there after its ``batch``, null before the first one
=============  =========================================================================================================

:func:`read_changes` and :func:`read_snapshot` give DataFrames of them.  A job without this package does the same: it
reads ``_manifest.json`` and gives the files to ``spark.read.parquet``; while the snapshot's ``batch`` is the table's
(always, up to :data:`SMALL_SNAPSHOT` rows), its file is the whole snapshot, else the changes of later batches are added
up with it.

A batch writes new files, never into old ones; then the manifest, beside the old one, then it is renamed over it.  That
rename is the commit.  What the manifest does not name is an orphan of a process that was killed, and is removed when
the table is opened.  Small files of changes are merged into larger ones; files that were replaced stay for a while
(``retain``), for jobs that read them.  A table is open in one process at a time.

Contract: whenever the process is killed, a reader finds all of a batch or nothing of it; the snapshot that
:func:`read_snapshot` gives is the sum of the changes that :func:`read_changes` gives, if no commit is between the two.

Source: ``docs/design/spark.md``, "Tables that a sink writes".
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EDQUOT, ENOENT, ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict
from uuid import uuid4

from syndicate.errors import SinkError, StateError
from syndicate.spark.columns import forms
from syndicate.spark.errors import explained
from syndicate.storage.files import draft_of, remove, replace, sync, sync_directory
from syndicate.storage.lock import Lock
from syndicate.values.value import Frozen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

VERSION: Final = 1
MANIFEST: Final = "_manifest.json"
"""Spark, and what else reads directories of Parquet files, leaves out names that begin so."""

SMALL_SNAPSHOT: Final = 20_000
"""Up to so many rows the snapshot is written again with each batch: some 20 ms."""
LARGE_SNAPSHOT: Final = 5_000_000
"""From so many rows on it takes a session of Spark's to write the snapshot again; files of changes are not merged."""
FEW_CHANGES: Final = 16
"""So many files of one size are merged into one."""

WEIGHT: Final = "weight"
BATCH: Final = "batch"


class ChangeFile(TypedDict):
    """A file of changes: of the batches from *first* to *last*, merged *level* times."""

    file: str
    rows: int
    first: int
    last: int
    level: int


class SnapshotFile(TypedDict):
    """What is there after a *batch*, in a file; none if there is nothing."""

    file: str | None
    batch: int
    rows: int


class Manifest(TypedDict):
    """What is in the table: the last batch, the names and kinds of its columns, and the files that count.

    Files that are *retired*, each at a time, may still be read by somebody.
    """

    version: int
    batch: int
    columns: dict[str, str]
    schema: str
    changes: list[ChangeFile]
    snapshot: SnapshotFile
    retired: list[tuple[str, float]]


class SinkTable:
    """The table in a directory, open for writing; made if it is not there.  ``batch`` is the last one, or -1.

    *schema* are the value columns.  *retain* is the seconds that files stay after they were replaced.  With *session*,
    a snapshot of :data:`LARGE_SNAPSHOT` rows and more is written again by a job of Spark's.

    Raises:
        SinkError: (here and in the methods) the directory is in use, cannot be written or is damaged, its columns are
        others, or the disk is full.
    """

    def __init__(
        self, root: str | Path, schema: pa.Schema, *, retain: float = 300.0, session: SparkSession | None = None
    ) -> None:
        self.root = Path(root).absolute()
        self.schema = schema
        self.retain = retain
        self.session = session
        self.names: list[str] = list(schema.names)
        self._check_names()
        self._lock = Lock(self.root / "_lock", 0o666)
        with _explained(self.root):
            for part in ("changes", "snapshot"):
                (self.root / part).mkdir(parents=True, exist_ok=True)
        try:
            self._lock.take(f"the sink's directory {self.root}", "give each a directory of its own")
        except StateError as error:
            raise SinkError(str(error)) from None
        try:
            self.manifest = load(self.root) or self._empty()
            self._check_columns()
            with _explained(self.root):
                self._clean()
        except BaseException:
            self.close()
            raise

    @property
    def batch(self) -> int:
        """The number of the last batch; -1 before the first one."""
        return int(self.manifest["batch"])

    def append(self, rows: pa.Table | DataFrame, batch: int) -> None:
        """One batch: rows with the value columns and ``weight``; rows of Spark's are written by Spark.

        A batch that is in the table already is left out.
        """
        if batch > self.batch:
            self.commit(self.write(rows, batch))

    def write(self, rows: pa.Table | DataFrame, batch: int) -> Manifest:
        """The files of a batch, and the manifest with which it counts."""
        with _explained(self.root):
            changes = list(self.manifest["changes"])
            manifest: Manifest = {**self.manifest, "batch": batch, "changes": changes}
            if (change := self._changed(rows, batch)) is not None:
                changes.append(change)
                while (old := _alike(changes)) is not None:
                    changes[old] = [self._merged(changes[old])]
            manifest["snapshot"] = self._renewed(manifest)
            used = {*_files(manifest)}
            if change is not None and change["file"] not in used:
                remove(self.root / change["file"])
            now = time.time()
            retired = [(file, now) for file in _files(self.manifest) if file not in used and self.retain]
            retired += [(file, at) for file, at in self.manifest["retired"] if 0 <= now - at < self.retain]
            manifest["retired"] = retired
            return manifest

    def commit(self, manifest: Manifest) -> None:
        """Let the batch count; then remove what nobody reads any more."""
        with _explained(self.root):
            before = {*_files(self.manifest), *_retired(self.manifest)}
            for name in {*_files(manifest)} - before:
                sync(self.root / name, ".parquet")
            for part in ("changes", "snapshot"):
                sync_directory(self.root / part)
            replace(self.root / MANIFEST, json.dumps(manifest).encode())
            self.manifest = manifest
            for name in before - {*_files(manifest), *_retired(manifest)}:
                remove(self.root / name)

    def contents(self) -> pa.Table:
        """What is there, with its weights, in the driver: the snapshot and the changes after it."""
        with _explained(self.root):
            return self._summed(self.manifest)

    def close(self) -> None:
        """Let another process open the table."""
        self._lock.release()

    # ------------------------------------------------------------------------------------------------ opening

    def _check_names(self) -> None:
        if not self.names:
            raise SinkError(f"{self.root} would have no columns: let the pattern capture something")
        taken = [name for name in (WEIGHT, BATCH) if name in self.names]
        if taken or len(set(self.names)) < len(self.names):
            wrong = taken[0] if taken else next(name for name in self.names if self.names.count(name) > 1)
            raise SinkError(
                f"a column of {self.root} cannot be called {wrong!r}, since another one is: give other names with "
                "schema="
            )

    def _empty(self) -> Manifest:
        return {
            "version": VERSION,
            "batch": -1,
            "columns": _columns(self.schema),
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "changes": [],
            "snapshot": {"file": None, "batch": -1, "rows": 0},
            "retired": [],
        }

    def _check_columns(self) -> None:
        there, here = self.manifest["columns"], _columns(self.schema)
        if list(there.items()) != list(here.items()):
            raise SinkError(
                f"{self.root} has the columns {_shown(there)}, and here they are {_shown(here)}: give to= another "
                "directory"
            )

    def _clean(self) -> None:
        used = {*_files(self.manifest), *_retired(self.manifest)}
        for part in ("changes", "snapshot"):
            for path in (self.root / part).iterdir():
                if f"{part}/{path.name}" not in used:
                    remove(path)
        remove(draft_of(self.root / MANIFEST))

    # ------------------------------------------------------------------------------------------------ writing

    def _new(self, part: str, batch: int) -> str:
        return f"{part}/{batch:08}-{uuid4().hex[:12]}.parquet"

    def _changed(self, rows: pa.Table | DataFrame, batch: int) -> ChangeFile | None:
        """The file of the changes of one batch; None if nothing has changed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self._new("changes", batch)
        if isinstance(rows, pa.Table):
            count = rows.num_rows
            if count:
                numbers = pa.repeat(pa.scalar(batch, pa.int64()), count)
                pq.write_table(rows.append_column(BATCH, numbers), self.root / file)
        else:
            frame = rows.selectExpr(*map(quoted, [*self.names, WEIGHT]), f"CAST({batch} AS BIGINT) AS {BATCH}")
            frame.write.parquet(str(self.root / file))
            count = sum(pq.read_metadata(path).num_rows for path in parts(self.root / file))
            if not count:
                remove(self.root / file)
        return {"file": file, "rows": count, "first": batch, "last": batch, "level": 0} if count else None

    def _merged(self, olds: Sequence[ChangeFile]) -> ChangeFile:
        """Files of changes as one, a piece at a time."""
        import pyarrow.parquet as pq

        file = self._new("changes", olds[-1]["last"])
        with pq.ParquetWriter(self.root / file, self._stored()) as writer:
            for old in olds:
                for path in parts(self.root / old["file"]):
                    for piece in pq.ParquetFile(path).iter_batches():
                        writer.write_batch(piece.cast(self._stored()))
        rows = sum(old["rows"] for old in olds)
        level = olds[0]["level"] + 1
        return {"file": file, "rows": rows, "first": olds[0]["first"], "last": olds[-1]["last"], "level": level}

    def _stored(self) -> pa.Schema:
        import pyarrow as pa

        schema = self.schema.append(pa.field(WEIGHT, pa.int64()))
        return schema.append(pa.field(BATCH, pa.int64()))

    def _renewed(self, manifest: Manifest) -> SnapshotFile:
        """The snapshot: written again if it is small, or if much has changed since it was."""
        import pyarrow.parquet as pq

        old = manifest["snapshot"]
        later = sum(change["rows"] for change in manifest["changes"] if change["last"] > old["batch"])
        whole = old["rows"] + later
        if not later:
            return {**old, "batch": manifest["batch"]}
        if whole > SMALL_SNAPSHOT and later * 4 < old["rows"]:
            return old
        file = self._new("snapshot", manifest["batch"])
        if whole > LARGE_SNAPSHOT:
            if self.session is None:
                return old
            _snapshot(self.session, self.root, manifest).write.parquet(str(self.root / file))
            rows = sum(pq.read_metadata(path).num_rows for path in parts(self.root / file))
        else:
            table = self._summed(manifest)
            pq.write_table(table, self.root / file)
            rows = table.num_rows
        return {"file": file, "batch": manifest["batch"], "rows": rows}

    def _summed(self, manifest: Manifest) -> pa.Table:
        """The snapshot and the changes after it, added up."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        schema = self.schema.append(pa.field(WEIGHT, pa.int64()))
        base, since = manifest["snapshot"]["file"], manifest["snapshot"]["batch"]
        tables = [] if base is None else [pq.read_table(path).cast(schema) for path in parts(self.root / base)]
        for change in manifest["changes"]:
            if change["last"] > since:
                for path in parts(self.root / change["file"]):
                    rows = pq.read_table(path)
                    tables.append(rows.filter(pc.greater(rows[BATCH], since)).drop_columns([BATCH]).cast(schema))
        return summed(pa.concat_tables(tables)) if tables else schema.empty_table()


def summed(table: pa.Table) -> pa.Table:
    """Rows with weights: equal ones added up, those of weight 0 left out.

    >>> import pyarrow
    >>> rows = summed(pyarrow.table({"x": [["a"], ["b"], ["a"]], "weight": [1, 1, -1]}))
    >>> rows.to_pylist()
    [{'x': ['b'], 'weight': 1}]
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types as t

    names = [name for name in table.column_names if name != WEIGHT]
    if any(t.is_nested(table.schema.field(name).type) for name in names):
        sums: dict[tuple[Frozen, ...], list[int]] = {}
        columns = zip(*[forms(table.column(name), name) for name in names], strict=True)
        for place, (row, weight) in enumerate(zip(columns, table.column(WEIGHT).to_pylist(), strict=True)):
            sums.setdefault(row, [place, 0])[1] += weight
        left = [(place, weight) for place, weight in sums.values() if weight]
        weights = pa.array([weight for _, weight in left], pa.int64())
        taken = table.select(names).take(pa.array([place for place, _ in left], pa.int64()))
        return taken.append_column(WEIGHT, weights)
    sums_of = table.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    sums_of = sums_of.select([*names, f"{WEIGHT}_sum"]).rename_columns([*names, WEIGHT]).cast(table.schema)
    return sums_of.filter(pc.not_equal(sums_of[WEIGHT], 0))


# ---------------------------------------------------------------------------------------------------- reading


def read_changes(session: SparkSession, root: str | Path) -> DataFrame:
    """All changes of a table as they were committed: the value columns, ``weight`` and ``batch``.

    Raises:
        SinkError: there is no table, or it is damaged.

    Example::

        read_changes(session, "boxes/").groupBy("batch").count().show()
    """
    place, manifest = _opened(root)
    files = [change["file"] for change in manifest["changes"]]
    return explained("a table", _frame, session, place, manifest, files, WEIGHT, BATCH)


def read_snapshot(session: SparkSession, root: str | Path) -> DataFrame:
    """What is in a table after its last commit: the value columns and ``weight``, 1 for what was asserted.

    Raises:
        SinkError: there is no table, or it is damaged.
    """
    place, manifest = _opened(root)
    return explained("a table", _snapshot, session, place, manifest)


def load(root: Path) -> Manifest | None:
    """The manifest of a table; None if there is none.  Raises :class:`SinkError`."""
    try:
        with _explained(root):
            fields = json.loads((root / MANIFEST).read_bytes())
        version = fields["version"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(f"{root}/{MANIFEST} is damaged ({error}): restore it from a copy") from None
    if version != VERSION:
        raise SinkError(f"{root} was written by another release (format {version}): this one knows {VERSION}")
    manifest: Manifest = fields
    return manifest


def _opened(root: str | Path) -> tuple[Path, Manifest]:
    place = Path(root).absolute()
    manifest = load(place)
    if manifest is None:
        raise SinkError(f"{place} holds no table of a sink: it has no {MANIFEST}, which the first commit makes")
    return place, manifest


def _frame(session: SparkSession, root: Path, manifest: Manifest, files: Sequence[str], *more: str) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import LongType, StructField, StructType

    written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(manifest["schema"])))
    schema = StructType([*from_arrow_schema(written).fields, *[StructField(name, LongType()) for name in more]])
    if not files:
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(*[str(root / file) for file in files])


def _snapshot(session: SparkSession, root: Path, manifest: Manifest) -> DataFrame:
    from pyspark.sql import functions as f

    base, since = manifest["snapshot"]["file"], manifest["snapshot"]["batch"]
    frame = _frame(session, root, manifest, [] if base is None else [base], WEIGHT)
    files = [change["file"] for change in manifest["changes"] if change["last"] > since]
    if not files:
        return frame
    later = _frame(session, root, manifest, files, WEIGHT, BATCH)
    both = frame.unionAll(later.where(f.col(BATCH) > since).drop(BATCH))
    columns = [f.col(quoted(name)) for name in manifest["columns"]]
    return both.groupBy(*columns).agg(f.sum(WEIGHT).alias(WEIGHT)).where(f.col(WEIGHT) != 0)


# ---------------------------------------------------------------------------------------------------- files


def _files(manifest: Manifest) -> Iterator[str]:
    yield from (change["file"] for change in manifest["changes"])
    if manifest["snapshot"]["file"] is not None:
        yield manifest["snapshot"]["file"]


def _retired(manifest: Manifest) -> Iterator[str]:
    return (file for file, _ in manifest["retired"])


def _alike(changes: Sequence[ChangeFile]) -> slice | None:
    """The last files of changes, if there are many of one size, and they are not too large together."""
    if len(changes) < FEW_CHANGES or changes[-FEW_CHANGES]["level"] != changes[-1]["level"]:
        return None
    if sum(change["rows"] for change in changes[-FEW_CHANGES:]) > LARGE_SNAPSHOT:
        return None
    return slice(len(changes) - FEW_CHANGES, len(changes))


def parts(path: Path) -> Iterable[Path]:
    """The files of what was written as one: itself, or those that Spark has put into a directory of that name."""
    if not path.exists():
        raise FileNotFoundError(ENOENT, "no such file", str(path))
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def quoted(name: str) -> str:
    """A column's name in Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def _columns(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def _shown(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in columns.items())


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    """Say what is wrong with a directory in a sentence."""
    try:
        yield
    except FileNotFoundError as error:
        if error.filename and str(error.filename).endswith(MANIFEST):
            raise
        raise SinkError(f"{root} has lost {error.filename}, which its manifest names: restore it from a copy") from None
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise SinkError(
                f"the disk with {root} is full: make room, and start the sink again; it writes what is missing"
            ) from None
        raise SinkError(f"{root} cannot be written or read: {error.strerror or error}") from None
    except ValueError as error:
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise SinkError(f"a file in {root} is damaged: {error}") from None
