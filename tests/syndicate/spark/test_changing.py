"""Tables that change under the reader: columns that are added, files that go, and commits that are forgotten."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
import trio

from syndicate import ANY, capture, dataspace, open_system, record, spawn
from syndicate.actor import Actor
from syndicate.errors import SourceError
from syndicate.spark import spark_source
from syndicate.system import System
from syndicate.testing import Seen, watch
from tests.syndicate.spark.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@record
class Stock:
    article: str
    pieces: int


class Watched:
    """A source, what an observer saw of it, and what the log says."""

    def __init__(self, system: System, source: Actor, seen: Seen, log: list[Any]) -> None:
        self.system = system
        self.source = source
        self.seen = seen
        self.log = log

    def there(self) -> list[tuple[str, int]]:
        """The rows that stand."""
        standing: list[Any] = []
        for mark, stock in list(self.seen):
            standing.append(stock) if mark == "+" else standing.remove(stock)
        return sorted((stock.article, stock.pieces) for stock in standing)

    async def until(self, *rows: tuple[str, int]) -> None:
        """Wait until these rows stand."""
        await until(lambda: self.there() == sorted(rows) or not self.source.running)
        assert self.source.running, f"the source has ended: {self.source.error!r}"

    async def end(self) -> BaseException | None:
        """Wait for the end of the source; answer its error."""
        await until(lambda: not self.source.running)
        await self.system.settle()
        return self.source.error

    def said(self, event: str) -> list[Any]:
        """The entries of the log that begin so."""
        return [entry for entry in self.log if entry["event"].startswith(event)]


@asynccontextmanager
async def sourced(frame: Callable[[Any], DataFrame], **options: Any) -> AsyncIterator[Watched]:
    """Run a source that looks often beside an observer of its records."""
    made: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        made.append(watch(ds, capture(Stock(ANY, ANY))))
        made.append(spawn(spark_source(ds, frame, Stock, every=0.01, **options), name="source"))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs() as log:
        async with open_system(boot) as system:
            await system.settle()
            yield Watched(system, made[1], made[0], log)


# ---------------------------------------------------------------------------------------------------- columns


async def test_a_column_that_is_added(spark: SparkSession, tmp_path: Path) -> None:
    """It is left out, whatever its type, and the log says so once; a restart beside the journal goes on, too."""
    colours = ["", ", 'red' AS colour", ", 'red' AS colour, interval 1 month AS age"]
    number = [0, 4]

    def frame(session: SparkSession) -> DataFrame:
        return session.sql(f"SELECT 'tea' AS article, {number[1]}L AS pieces{colours[number[0]]}")

    journal = tmp_path / "journal"
    async with sourced(frame, journal=journal) as watched:
        await watched.until(("tea", 4))
        number[:] = [1, 5]
        await watched.until(("tea", 5))
        number[:] = [2, 6]
        await watched.until(("tea", 6))
        number[:] = [2, 7]
        await watched.until(("tea", 7))
        assert [entry["columns"] for entry in watched.said("columns were added")] == [["colour"], ["age"]]
    async with sourced(frame, journal=journal) as watched:
        await watched.until(("tea", 7))
        number[:] = [2, 8]
        await watched.until(("tea", 8))
        assert [entry["columns"] for entry in watched.said("columns were added")] == [["age", "colour"]]
    async with sourced(frame, journal=tmp_path / "other") as watched:
        assert "the rows have columns that no field of Stock takes: colour, age; leave" in str(await watched.end())


async def test_a_column_that_is_needed_stays(spark: SparkSession) -> None:
    """One that goes while the table is followed is an error."""
    columns = ["'tea' AS article, 4L AS pieces", "'tea' AS article, 4L AS count"]
    async with sourced(lambda session: session.sql(f"SELECT {columns[0]}")) as watched:
        await watched.until(("tea", 4))
        columns.pop(0)
        error = await watched.end()
    assert isinstance(error, SourceError)
    assert "the rows have no column 'pieces', which is a field of Stock" in str(error)


# ---------------------------------------------------------------------------------------------------- outages


async def test_a_table_that_is_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    """Its files are away, then its directory is empty, then a file is half there: what stands stands until it is back;
    the log tells of one outage, and of the next one again.
    """
    place = tmp_path / "t"
    looks = []

    def write(path: Path, pieces: int) -> None:
        frame = spark.sql(f"SELECT 'tea' AS article, {pieces}L AS pieces")
        frame.coalesce(1).write.mode("overwrite").parquet(str(path))

    def frame(session: SparkSession) -> DataFrame:
        looks.append(1)
        return session.read.parquet(str(place))

    async def looked() -> None:
        count = len(looks)
        await until(lambda: len(looks) >= count + 2 or not watched.source.running)

    write(place, 1)
    async with sourced(frame) as watched:
        await watched.until(("tea", 1))
        for pieces in (2, 3):
            write(tmp_path / "new", pieces)
            shutil.rmtree(place)
            await looked()
            place.mkdir()
            await looked()
            (place / "part-0.parquet").write_bytes(b"PAR1")
            await looked()
            await watched.until(("tea", pieces - 1))
            (tmp_path / "new").rename(tmp_path / "whole")
            shutil.rmtree(place)
            (tmp_path / "whole").rename(place)
            await watched.until(("tea", pieces))
        assert len(watched.said("a table cannot be read")) == 2
        await until(lambda: len(watched.said("the table can be read again")) == 2)


@pytest.mark.parametrize(
    ("failure", "passes"),
    [
        (lambda session: session.table("no_such_table"), True),
        (lambda session: session.sql("SELECT no_such_column"), False),
        (lambda session: session.sql("SELECT 'tea' AS article, 1L / 0L AS pieces"), False),
        (lambda session: Path("/no/such/file").read_text(), True),
        (lambda session: int("tea"), False),
    ],
)
async def test_what_passes(spark: SparkSession, failure: Callable[[Any], Any], passes: bool) -> None:
    """After a look that succeeded a table may be away; what is wrong with the frame ends the source."""
    failing = [0, 0]

    def frame(session: SparkSession) -> DataFrame:
        if failing[0] > 0:
            failing[0] -= 1
            failing[1] += 1
            return failure(session)  # type: ignore[no-any-return]  # what it gives is never looked at
        return session.sql(f"SELECT 'tea' AS article, {failing[1]}L AS pieces")

    async with sourced(frame) as watched:
        await watched.until(("tea", 0))
        failing[0] = 2
        if passes:
            await watched.until(("tea", 2))
            assert len(watched.said("a table cannot be read")) == 1
        else:
            assert await watched.end() is not None
            assert failing[1] == 1


async def test_a_first_look_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    """What was never there is a mistake in the frame: it is told at once."""
    async with sourced(lambda session: session.read.parquet(str(tmp_path / "no"))) as watched:
        assert "[PATH_NOT_FOUND]" in str(await watched.end())
