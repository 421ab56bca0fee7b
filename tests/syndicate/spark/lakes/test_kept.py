"""Tables of lakes that a sink keeps: what is asserted, read by others than Spark."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from syndicate import ANY, assert_, dataspace, open_system, record, spawn
from syndicate.actors.verbs import current_facet
from syndicate.errors import SinkError
from syndicate.spark import Kafka, Lake, SparkWritten, spark_sink
from syndicate.spark.lake import LakeTable
from syndicate.testing import settled, watch
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@record
class Jar:
    name: str
    grams: float | None


@record
class Tin:
    name: str
    grams: float | None
    kept: bool


class Kept:
    """A world beside a sink."""

    def __init__(self) -> None:
        self.facet: Any = None
        self.ds: Any = None
        self.sink: Any = None
        self.handles: dict[Any, Any] = {}
        self.written: Any = None

    async def become(self, *values: Any) -> None:
        """Let these be asserted, and no others."""

        def change() -> None:
            for value in values:
                if value not in self.handles:
                    self.handles[value] = assert_(self.ds, value)
            for gone in [value for value in self.handles if value not in values]:
                self.handles.pop(gone).retract()

        self.facet.enter(change)


@asynccontextmanager
async def kept(to: Lake | Kafka, session: SparkSession, *values: Any, of: type = Jar) -> AsyncIterator[Kept]:
    """Run both."""
    stage = Kept()

    def boot() -> None:
        stage.ds, stage.facet = dataspace(), current_facet()
        for value in values:
            stage.handles[value] = assert_(stage.ds, value)
        stage.written = watch(stage.ds, SparkWritten(ANY, ANY, ANY, ANY))
        stage.sink = spawn(spark_sink(stage.ds, of, to, session=session, every=0.2))

    async with open_system(boot) as system:
        await system.settle()
        yield stage


def others(lake: Lake, warehouse: Path) -> list[tuple[Any, ...]]:
    """What delta-rs and pyiceberg read, which share no code with Spark."""
    if lake.kind == "delta":
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            table = DeltaTable(lake.table).to_pyarrow_table()
        except TableNotFoundError:
            return []
    else:
        from pyiceberg.table import StaticTable

        place = warehouse.joinpath(*lake.table.split(".")[1:])
        if not [*place.glob("metadata/v*.metadata.json")]:
            return []
        table = (
            StaticTable.from_metadata(str(max((place / "metadata").glob("v*.metadata.json"), key=_number)))
            .scan()
            .to_arrow()
        )
    return sorted(zip(*table.to_pydict().values(), strict=True), key=repr)


def _number(path: Path) -> int:
    return int(path.name[1:].partition(".")[0])


async def same(lake: Lake, warehouse: Path, stage: Kept, *rows: tuple[Any, ...]) -> None:
    """Wait until others read these rows."""
    with trio.fail_after(PATIENCE):
        while stage.sink.running:
            if await trio.to_thread.run_sync(others, lake, warehouse) == sorted(rows, key=repr):
                return
            await trio.sleep(0.1)
    raise AssertionError(stage.sink.error)


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A table that is not there yet."""
    if request.param == "delta":
        return Lake("delta", f"{tmp_path}/jars")
    return Lake("iceberg", f"warehouse.db.{tmp_path.name.replace('-', '_')}")


@pytest.fixture
def warehouse(session: SparkSession) -> Path:
    """Where Iceberg's tables are."""
    return Path(session.conf.get("spark.sql.catalog.warehouse.warehouse") or "")


async def test_what_is_there(lake: Lake, session: SparkSession, warehouse: Path) -> None:
    """Rows come and go, also nulls; a restart writes the difference; so it does after somebody else's commit."""
    a, b, c = Jar("a", 1.5), Jar("b", 2.0), Jar("it's", 3.0)
    async with kept(lake, session, a, b) as stage:
        await same(lake, warehouse, stage, ("a", 1.5), ("b", 2.0))
        await stage.become(b, c)
        await same(lake, warehouse, stage, ("b", 2.0), ("it's", 3.0))
    async with kept(lake, session, a, c) as stage:
        await same(lake, warehouse, stage, ("a", 1.5), ("it's", 3.0))
        statement = f"DELETE FROM {lake.sql} WHERE name = 'a'"
        await trio.to_thread.run_sync(lambda: session.sql(statement).collect())
        await stage.become(a, b, c)
        await same(lake, warehouse, stage, ("a", 1.5), ("b", 2.0), ("it's", 3.0))


async def test_twice(lake: Lake, session: SparkSession, warehouse: Path) -> None:
    """A batch that is made again, since nobody knows whether its commit took effect, changes nothing."""
    import pyarrow as pa

    schema = pa.schema([("name", pa.string()), ("grams", pa.float64())])
    table = LakeTable(lake, schema, session)
    assert table.contents().num_rows == 0
    rows = pa.table({"name": ["a", "b"], "grams": [1.0, None], "weight": [1, 1]})
    for _ in range(2):
        table.append(rows, 0)
    assert others(lake, warehouse) == [("a", 1.0), ("b", None)]
    gone = pa.table({"name": ["b"], "grams": pa.array([None], pa.float64()), "weight": [-1]})
    for _ in range(2):
        table.append(gone, 1)
    assert others(lake, warehouse) == [("a", 1.0)]


async def test_beside_another_writer(lake: Lake, session: SparkSession) -> None:
    """A batch is committed whatever else is while it is made, and whoever keeps the table hears of that."""
    import pyarrow as pa

    table = LakeTable(lake, pa.schema([("name", pa.string()), ("grams", pa.float64())]), session)
    other = session.newSession()

    def foreign(name: int) -> None:
        other.sql(f"INSERT INTO {lake.sql} VALUES ('{name}', 2.0)").collect()

    async def others() -> None:
        for name in range(4):
            await trio.to_thread.run_sync(foreign, name)

    def batch(number: int) -> None:
        table.append(pa.table({"name": [f"{number}"], "grams": [1.0], "weight": [1]}), number)

    table.contents()
    batch(0)
    assert not table.overtaken()
    foreign(9)  # as if it came between a look and the commit
    batch(1)
    assert table.overtaken()
    table.contents()
    batch(2)
    assert not table.overtaken()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        for number in range(3, 6):
            await trio.to_thread.run_sync(batch, number)
    there = sorted((row["name"], row["grams"]) for row in table.contents().to_pylist())
    assert there == sorted([*[(f"{n}", 1.0) for n in range(6)], *[(f"{n}", 2.0) for n in (0, 1, 2, 3, 9)]])


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
async def test_two_in_one_session(kind: Any, session: SparkSession, tmp_path: Path) -> None:
    """Each commit of a sink has its run and the batch's number, whatever else the session commits meanwhile."""
    import pyarrow as pa

    name = tmp_path.name.replace("-", "_")
    names = [f"{tmp_path}/{each}" if kind == "delta" else f"warehouse.db.{name}_{each}" for each in ("one", "two")]
    schema = pa.schema([("name", pa.string()), ("grams", pa.float64())])
    tables = [LakeTable(Lake(kind, each), schema, session) for each in names]

    def kept(table: LakeTable, batches: int) -> None:
        for batch in range(batches):
            table.append(pa.table({"name": [f"{batch}"], "grams": [1.0], "weight": [1]}), batch)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, kept, tables[0], 6)
        nursery.start_soon(trio.to_thread.run_sync, kept, tables[1], 4)
    for table, batches in zip(tables, (6, 4), strict=True):
        assert session.table(table.lake.sql).count() == batches
        if kind == "delta":
            notes = session.sql(f"DESCRIBE HISTORY {table.lake.sql}").where("operation = 'MERGE'").collect()
            said = [(note["run"], int(note["batch"])) for note in (json.loads(row["userMetadata"]) for row in notes)]
        else:
            rows = session.table(f"{table.lake.sql}.snapshots").collect()
            said = [(row["summary"]["syndicate.run"], int(row["summary"]["syndicate.batch"])) for row in rows]
        assert sorted(said) == [(table.run, batch) for batch in range(batches)]


async def test_columns(lake: Lake, session: SparkSession, warehouse: Path) -> None:
    """A sink with a further column says what to do, and does it if it may."""
    from attrs import evolve

    async with kept(lake, session, Jar("a", 1.0)) as stage:
        await same(lake, warehouse, stage, ("a", 1.0))
    async with kept(lake, session, Tin("a", 1.0, True), of=Tin) as stage:
        await until(lambda: not stage.sink.running)
        assert isinstance(stage.sink.error, SinkError)
        assert 'evolve="add"' in str(stage.sink.error)
    async with kept(evolve(lake, evolve="add"), session, Tin("a", 1.0, True), of=Tin) as stage:
        await same(lake, warehouse, stage, ("a", 1.0, True))


def test_no_session() -> None:
    """Spark writes such a table."""
    with pytest.raises(SinkError, match="give session= one that knows delta tables"):
        settled(lambda: spark_sink(dataspace(), Jar, Lake("delta", "/t")))


async def test_a_table_whose_making_was_killed(session: SparkSession, tmp_path: Path) -> None:
    """A log without a commit is begun: the sink keeps what is asserted, and the table has the properties of the
    stage's.
    """
    (tmp_path / "table/_delta_log").mkdir(parents=True)
    lake = Lake("delta", f"{tmp_path}/table", properties={"delta.appendOnly": "false"})
    async with kept(lake, session, Jar("salt", 1.5)) as stage:
        await same(lake, tmp_path, stage, ("salt", 1.5))
    shown = session.sql(f"SHOW TBLPROPERTIES {lake.sql}").collect()
    assert ("delta.appendOnly", "false") in [tuple(row) for row in shown]
