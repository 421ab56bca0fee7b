"""The table of a sink: what is committed, merged, retired; what is wrong with a directory."""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.errors import SinkError
from syndicate.spark import sink_table as table_module
from syndicate.spark.sink_table import MANIFEST, SinkTable, parts, read_changes, read_snapshot, summed
from tests.strategies import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLAT = pa.schema({"name": pa.string(), "size": pa.int64()})
DEEP = pa.schema(
    {
        "m": pa.map_(pa.string(), pa.int64()),
        "s": pa.struct([("x", pa.float64())]),
        "l": pa.list_(pa.string()),
        "d": pa.decimal128(9, 2),
        "t": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("us"),
        "a b.c`": pa.binary(),
    }
)


def rows(schema: pa.Schema, *items: tuple[Any, ...]) -> pa.Table:
    """Rows whose last item is the weight."""
    whole = schema.append(pa.field("weight", pa.int64()))
    return pa.Table.from_pylist([dict(zip(whole.names, item, strict=True)) for item in items], whole)


def manifest(root: Path) -> dict[str, Any]:
    """What counts."""
    report: dict[str, Any] = json.loads((root / MANIFEST).read_text())
    return report


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 1, 2]), st.integers(-2, 2)), max_size=12))
def test_sums(items: list[tuple[Any, ...]]) -> None:
    """Flat and nested rows are added up as a multiset, nulls too."""
    wanted = Counter[Any]()
    for name, size, weight in items:
        wanted[name, size] += weight
    expected = {row: weight for row, weight in wanted.items() if weight}
    flat = summed(rows(FLAT, *items))
    assert {(r["name"], r["size"]): r["weight"] for r in flat.to_pylist()} == expected
    lists = pa.schema({"name": pa.string(), "size": pa.list_(pa.int64())})
    nested = summed(rows(lists, *[(name, [size], weight) for name, size, weight in items]))
    assert {(r["name"], r["size"][0]): r["weight"] for r in nested.to_pylist()} == expected
    assert (flat.num_rows, nested.num_rows) == (len(expected), len(expected))


def test_small_files_are_merged(tmp_path: Path) -> None:
    """After many batches there are few files; what is in them is as it was; what was replaced goes in time."""
    table = SinkTable(tmp_path, FLAT, retain=0.0)
    for number in range(40):
        table.append(rows(FLAT, ("a", number, 1), ("a", number - 1, -1)), number)
    changes = manifest(tmp_path)["changes"]
    assert [(change["level"], change["rows"]) for change in changes] == [(1, 32)] * 2 + [(0, 2)] * 8
    read = [pq.read_table(tmp_path / change["file"]) for change in changes]
    assert pa.concat_tables(read)["batch"].to_pylist() == [n for n in range(40) for _ in "ab"]
    left = {(row["size"], row["weight"]) for row in table.contents().to_pylist()}
    assert left == {(39, 1), (-1, -1)}
    there = {f"changes/{path.name}" for path in (tmp_path / "changes").iterdir()}
    assert there == {change["file"] for change in changes}
    assert len(list((tmp_path / "snapshot").iterdir())) == 1


def test_replaced_files_stay_for_a_while(tmp_path: Path) -> None:
    """A job that has begun to read a snapshot can read it to its end."""
    table = SinkTable(tmp_path, FLAT, retain=60.0)
    table.append(rows(FLAT, ("a", 1, 1)), 0)
    old = manifest(tmp_path)["snapshot"]["file"]
    table.append(rows(FLAT, ("b", 1, 1)), 1)
    table.close()
    SinkTable(tmp_path, FLAT).close()  # a start removes orphans, and this is not one
    assert old != manifest(tmp_path)["snapshot"]["file"]
    assert (tmp_path / old).exists()


def test_orphans_are_removed(tmp_path: Path) -> None:
    """What a process that was killed has left goes at the next start."""
    table = SinkTable(tmp_path, FLAT)
    table.append(rows(FLAT, ("a", 1, 1)), 0)
    table.write(rows(FLAT, ("b", 1, 1)), 1)
    (tmp_path / "_manifest.new").write_text("{half")
    table.close()
    assert len(list((tmp_path / "changes").iterdir())) == 2
    again = SinkTable(tmp_path, FLAT)
    assert again.batch == 0
    assert [len(list((tmp_path / part).iterdir())) for part in ("changes", "snapshot")] == [1, 1]
    assert not (tmp_path / "_manifest.new").exists()


def test_a_batch_counts_once(tmp_path: Path) -> None:
    """The same batch again changes nothing."""
    table = SinkTable(tmp_path, FLAT)
    for _ in range(3):
        table.append(rows(FLAT, ("a", 1, 1)), 4)
    assert (table.batch, table.contents().num_rows) == (4, 1)


def test_a_large_snapshot_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written again only when a quarter of it has changed; what is there is exact all the time."""
    monkeypatch.setattr(table_module, "SMALL_SNAPSHOT", 10)
    table = SinkTable(tmp_path, FLAT)
    table.append(rows(FLAT, *[("a", n, 1) for n in range(40)]), 0)
    for number in range(1, 13):
        table.append(rows(FLAT, ("b", number, 1)), number)
        assert manifest(tmp_path)["snapshot"]["batch"] == (0 if number < 10 else 10)
        assert table.contents().num_rows == 40 + number


def test_spark_reads_it(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of all types, an empty table, a snapshot that is behind, plain paths."""
    import datetime as dt
    from decimal import Decimal

    monkeypatch.setattr(table_module, "SMALL_SNAPSHOT", 2)
    naive = dt.datetime.fromisoformat("2020-01-02T03:04:05")
    row = ({"k": 1}, {"x": 0.5}, ["p", None], Decimal("1.50"), naive.replace(tzinfo=dt.UTC), naive, b"\0")
    other = (None,) * 7
    table = SinkTable(tmp_path / "a table", DEEP)
    with pytest.raises(SinkError, match=f"holds no table of a sink: it has no {MANIFEST}"):
        read_changes(spark, tmp_path / "a table")
    table.append(rows(DEEP), 0)
    assert read_changes(spark, tmp_path / "a table").columns == [*DEEP.names, "weight", "batch"]
    assert read_snapshot(spark, tmp_path / "a table").collect() == []
    many = [({"k": n}, *row[1:], 1) for n in range(2, 13)]
    table.append(rows(DEEP, (*row, 1), *many), 1)
    table.append(rows(DEEP, (*other, 1), (*many[0][:-1], -1)), 2)
    result = manifest(tmp_path / "a table")
    assert (result["batch"], result["snapshot"]["batch"]) == (2, 1)
    snapshot = read_snapshot(spark, tmp_path / "a table").toArrow().to_pylist()
    assert len(snapshot) == 12
    assert {**dict(zip(DEEP.names, other, strict=True)), "weight": 1} in snapshot
    wanted = dict(zip(DEEP.names, row, strict=True), weight=1)
    wanted["m"] = [("k", 1)]
    assert wanted in snapshot
    files = [str(tmp_path / "a table" / change["file"]) for change in result["changes"]]
    assert spark.read.parquet(*files).count() == read_changes(spark, tmp_path / "a table").count() == 14


def test_spark_writes_it(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large batch, and a large snapshot, are written by jobs of Spark's, and merged and read as others are."""
    monkeypatch.setattr(table_module, "LARGE_SNAPSHOT", 100)
    table = SinkTable(tmp_path, FLAT, session=spark, retain=0.0)
    table.append(rows(FLAT, ("a", 7, 1)), 0)
    table.append(spark.range(200).selectExpr("'a' AS name", "id AS size", "1L AS weight"), 1)
    result = manifest(tmp_path)
    assert (result["snapshot"]["batch"], result["snapshot"]["rows"]) == (1, 200)
    assert len(list(parts(tmp_path / result["snapshot"]["file"]))) >= 1
    table.append(spark.range(0).selectExpr("'a' AS name", "id AS size", "1L AS weight"), 2)
    table.append(rows(FLAT, ("a", 7, -2)), 3)
    assert table.contents().num_rows == read_snapshot(spark, tmp_path).count() == 199
    assert read_changes(spark, tmp_path).count() == 202


def _other_columns(root: Path) -> None:
    SinkTable(root, pa.schema({"name": pa.string(), "size": pa.string()})).append(
        rows(pa.schema({"name": pa.string(), "size": pa.string()})), 0
    )


def _damaged(root: Path) -> None:
    (root / MANIFEST).write_text("{")


def _newer(root: Path) -> None:
    (root / MANIFEST).write_text('{"version": 2}')


def _lost(root: Path) -> None:
    table = SinkTable(root, FLAT)
    table.append(rows(FLAT, ("a", 1, 1)), 0)
    (root / str(table.manifest["snapshot"]["file"])).unlink()


def _garbled(root: Path) -> None:
    table = SinkTable(root, FLAT)
    table.append(rows(FLAT, ("a", 1, 1)), 0)
    (root / str(table.manifest["snapshot"]["file"])).write_text("no parquet")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_other_columns, "columns name: string, size: string, and here they are name: string, size: int64: give"),
        (_damaged, "_manifest.json is damaged .* restore it from a copy"),
        (_newer, r"written by another release \(format 2\): this one knows 1"),
        (_lost, "has lost .*parquet, which its manifest names: restore it"),
        (_garbled, "a file in .* is damaged: "),
    ],
)
def test_what_is_wrong_with_a_directory(tmp_path: Path, harm: Callable[[Path], None], said: str) -> None:
    """Each is reported in a sentence."""
    harm(tmp_path)
    with pytest.raises(SinkError, match=said):
        _unlocked(tmp_path).contents()


def _unlocked(root: Path) -> SinkTable:
    """The table again, as another process opens it that finds no lock."""
    (root / "_lock").unlink(missing_ok=True)
    return SinkTable(root, FLAT)


def test_two_sinks(tmp_path: Path) -> None:
    """A directory takes one sink at a time."""
    first = SinkTable(tmp_path, FLAT)
    with pytest.raises(SinkError, match=r"in use by process \d+, this one: close it or give each a"):
        SinkTable(tmp_path, FLAT)
    first.close()
    SinkTable(tmp_path, FLAT).close()


def test_names(tmp_path: Path) -> None:
    """The columns of the table's own are not taken, and no name twice."""
    for names in (["weight"], ["batch", "x"], ["x", "x"]):
        with pytest.raises(SinkError, match=f"cannot be called '{names[0]}'"):
            SinkTable(tmp_path, pa.schema([(name, pa.int64()) for name in names]))
    with pytest.raises(SinkError, match="would have no columns"):
        SinkTable(tmp_path, pa.schema([]))


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, and what was committed before is there."""
    table = SinkTable(tmp_path, FLAT)
    table.append(rows(FLAT, ("a", 1, 1)), 0)

    def full(*inputs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        with pytest.raises(SinkError, match=r"the disk with .* is full: make room, and start the sink again"):
            table.append(rows(FLAT, ("b", 1, 1)), 1)
    table.close()
    assert SinkTable(tmp_path, FLAT).contents().num_rows == 1


def test_a_real_full_disk() -> None:
    """The device that is always full says the same."""
    with (
        pytest.raises(SinkError, match="is full"),
        table_module._explained(Path("/dev/full")),
        Path("/dev/full").open("w") as file,
    ):
        file.write("x" * 100000)


def test_no_directory(tmp_path: Path) -> None:
    """A path that is a file is no directory."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="file cannot be written or read"):
        SinkTable(tmp_path / "file", FLAT)
