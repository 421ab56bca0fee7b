"""Tables that change under the reader: columns that are added, files that go, and commits that are forgotten."""

from __future__ import annotations

import functools
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
import trio

from syndicate import ANY, capture, dataspace, open_system, record, spawn
from syndicate.actors.actor import Actor
from syndicate.actors.system import System
from syndicate.errors import SourceError
from syndicate.spark import Feed, spark_source
from syndicate.spark import feed_position as module
from syndicate.testing import Seen, watch
from syndicate.values.absent import ABSENT
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@record
class Stock:
    article: str
    pieces: int


@record
class Tick:
    lsn: object


class Watched:
    """A source, what an observer saw of it, and what the log says."""

    def __init__(self, system: System, source: Actor, seen: Seen, ticks: Seen, log: list[Any]) -> None:
        self.system = system
        self.source = source
        self.seen = seen
        self.ticks = ticks
        self.log = log

    def there(self) -> list[tuple[str, int]]:
        """The rows that are there."""
        current: list[Any] = []
        for mark, stock in list(self.seen):
            current.append(stock) if mark == "+" else current.remove(stock)
        return sorted((stock.article, stock.pieces) for stock in current)

    async def until(self, *rows: tuple[str, int]) -> None:
        """Wait until these rows are there."""
        await until(lambda: self.there() == sorted(rows) or not self.source.running)
        assert self.source.running, f"the source has ended: {self.source.error!r}"

    async def end(self) -> BaseException | None:
        """Wait for the end of the source; return its error."""
        await until(lambda: not self.source.running)
        await self.system.settle()
        return self.source.error

    def said(self, event: str) -> list[Any]:
        """The entries of the log that begin so."""
        return [entry for entry in self.log if entry["event"].startswith(event)]


@asynccontextmanager
async def sourced(frame: Callable[[Any], DataFrame], **options: Any) -> AsyncIterator[Watched]:
    """Run a source that looks often beside an observer of its records."""
    instances: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        instances.extend([watch(ds, capture(Stock(ANY, ANY))), watch(ds, capture(Tick(ANY)))])
        instances.append(spawn(spark_source(ds, frame, Stock, **{"every": 0.01, **options}), name="source"))

    with structlog.testing.capture_logs() as log:
        async with open_system(boot) as system:
            await system.settle()
            yield Watched(system, instances[2], instances[0], instances[1], log)


# ---------------------------------------------------------------------------------------------------- columns


@record
class Tea:
    article: str
    grams: int | None
    colour: str | None


async def seen_through(
    frame: Callable[[SparkSession], DataFrame], cls: type, *turns: Callable[[], str], **how: Any
) -> str:
    """After each of *turns*, what it says must stand, and nothing else; how the source has ended, if it has."""
    instances: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        instances.append(watch(ds, capture(Tea(ANY, ANY, ANY))))
        instances.append(spawn(spark_source(ds, frame, cls, every=0.01, **how)))

    def stands(wanted: str) -> bool:
        there: list[str] = []
        for mark, tea in list(instances[0]):
            there.append(str(tea)) if mark == "+" else there.remove(str(tea))
        return there == [wanted] or not instances[1].running

    with trio.fail_after(PATIENCE):
        async with open_system(boot) as system:
            await system.settle()
            for turn in turns:
                await until(functools.partial(stands, turn()))
            if not turns:
                await until(lambda: not instances[1].running)
            return str(instances[1].error)


async def test_fields_ahead_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """With ``evolve="add"`` they are absent until the table has columns for them, beside a journal, too."""
    columns = ["", ", 'red' AS colour", ", 'red' AS colour, 5 AS grams"]
    number = [0]

    def frame(session: SparkSession) -> DataFrame:
        return session.sql(f"SELECT 'tea' AS article{columns[number[0]]}")

    def having(columns: int, grams: object, colour: object) -> Callable[[], str]:
        def turn() -> str:
            number[0] = columns
            return f"Tea(article='tea', grams={grams!r}, colour={colour!r})"

        return turn

    how: dict[str, Any] = {"evolve": "add", "journal": tmp_path / "journal", "session": spark}
    whole = having(2, 5, "red")
    first, second = having(0, ABSENT, ABSENT), having(1, ABSENT, "red")
    assert await seen_through(frame, Tea, first, second, **how) == "None"
    assert await seen_through(frame, Tea, second, whole, **how) == "None"
    number[0] = 0
    missed = await seen_through(frame, Stock, evolve="add", session=spark)  # its field may not be None
    assert "the rows have no column 'pieces'" in missed
    with pytest.raises(SourceError, match='evolve= takes "add" or "refuse"'):
        await seen_through(frame, Tea, evolve="follow")


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
    """Its files are away, then its directory is empty, then a file is half there: what is asserted stays until it is
    back; the log tells of one outage, and of the next one again.
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
    """What was never there is a mistake in the frame: it is reported at once."""
    async with sourced(lambda session: session.read.parquet(str(tmp_path / "no"))) as watched:
        assert "[PATH_NOT_FOUND]" in str(await watched.end())


# ---------------------------------------------------------------------------------------------------- feeds that forget

Change = tuple[str, str, int | None, int | None]
"""An article, what was done to it, the order, and the commit."""

LSN = Feed("op", "lsn", {"c": 1, "d": -1}, ignore=["txid"])
COLUMNS: dict[Any, tuple[str, str, str]] = {
    "iceberg": ("_change_type", "_change_ordinal", "_commit_snapshot_id"),
    "delta": ("_change_type", "_commit_version", "_commit_timestamp"),
    "other": ("op", "lsn", "txid"),
}


class View:
    """A change feed as it is now."""

    def __init__(self, kind: str, *changes: Change) -> None:
        self.columns = ", ".join(COLUMNS[kind])
        self.options = {"changes": LSN if kind == "other" else kind}
        self.changes = list(changes)
        self.looks = 0

    def __call__(self, session: SparkSession) -> DataFrame:
        self.looks += 1
        null: dict[int | None, Any] = {None: "CAST(NULL AS LONG)"}
        rows = [
            f"('{article}', 1L, '{word}', {null.get(at, at)}, {null.get(commit, commit)})"
            for article, word, at, commit in self.changes
        ]
        values = ", ".join(rows or ["('', 1L, 'insert', 0L, 0)"])
        frame = session.sql(f"SELECT * FROM VALUES {values} AS t(article, pieces, {self.columns})")
        return frame if rows else frame.where("false")


def stocks(*articles: str) -> list[tuple[str, int]]:
    """One piece of each."""
    return [(article, 1) for article in articles]


ABC: list[Change] = [("a", "INSERT", 0, 100), ("b", "INSERT", 1, 101), ("c", "INSERT", 2, 102)]


@pytest.mark.parametrize("restart", [False, True])
async def test_ordinals_that_begin_again(spark: SparkSession, tmp_path: Path, restart: bool) -> None:
    """While the place is among the snapshots that are kept, what was committed after it is asserted, and no more."""
    view = View("iceberg", *ABC)
    options: dict[str, Any] = {**view.options, "journal": tmp_path / "journal"}
    async with sourced(view, **options) as watched:
        await watched.until(*stocks("a", "b", "c"))
        if not restart:
            view.changes = [("c", "INSERT", 0, 102), ("d", "INSERT", 1, 103)]
            await watched.until(*stocks("a", "b", "c", "d"))
    view.changes = [("c", "INSERT", 0, 102), ("d", "INSERT", 1, 103), ("a", "DELETE", 2, 104), ("e", "INSERT", 2, 104)]
    async with sourced(view, **options) as watched:
        await watched.until(*stocks("b", "c", "d", "e"))
        view.changes = [("a", "DELETE", 0, 104), ("e", "INSERT", 0, 104), ("f", "INSERT", 1, 105)]
        await watched.until(*stocks("b", "c", "d", "e", "f"))


GONE: list[tuple[str, list[Change], list[Change], str]] = [
    ("iceberg", ABC, [("d", "INSERT", 0, 103)], "_commit_snapshot_id 102, which is not among the 1 commits"),
    (
        "iceberg",
        ABC,
        [(*each, at, at + 200) for at, each in enumerate([("d", "INSERT")] * 5)],
        "not among the 5 commits",
    ),
    ("iceberg", ABC, [], "_commit_snapshot_id 102, which is not among the 0 commits"),
    ("delta", [("a", "insert", 3, 0)], [("c", "insert", 5, 0)], "_commit_version 3, and now the feed goes from 5 to 5"),
    ("delta", [("a", "insert", 3, 0)], [("c", "insert", 0, 0)], "_commit_version 3, and now the feed goes from 0 to 0"),
    (
        "other",
        [("a", "c", 30, 0)],
        [("b", "c", 10, 0), ("c", "c", 20, 0)],
        "lsn 30, and now the feed goes from 10 to 20",
    ),
]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("kind", "before", "after", "message"), GONE)
async def test_a_place_that_has_gone(
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    before: list[Change],
    after: list[Change],
    message: str,
    restart: bool,
) -> None:
    """What was committed in between cannot be known: that is an error, which names the place and the remedy."""
    view = View(kind, *before)
    options: dict[str, Any] = {**view.options, "journal": tmp_path / "journal"}
    async with sourced(view, **options) as watched:
        await watched.until(*stocks(*[article for article, *_ in before]))
        if not restart:
            view.changes = after
            error = await watched.end()
    if restart:
        view.changes = after
        async with sourced(view, **options) as watched:
            error = await watched.end()
    assert isinstance(error, SourceError)
    assert message in str(error)
    assert "give whole= a function that makes a DataFrame of the table" in str(error)


@pytest.mark.parametrize(
    ("kind", "after", "more"),
    [
        ("delta", [], [("b", "insert", 4, 0)]),
        ("delta", [("a", "insert", 3, 0)], [("a", "insert", 3, 0), ("b", "insert", 7, 0)]),
        ("other", [], [("b", "c", 7, 0)]),
    ],
)
async def test_a_place_that_has_not_gone(
    spark: SparkSession, kind: str, after: list[Change], more: list[Change]
) -> None:
    """A feed may begin right behind the place, be empty, and have versions that changed no row."""
    view = View(kind, ("a", "c" if kind == "other" else "insert", 3, 0))
    async with sourced(view, **view.options) as watched:
        await watched.until(*stocks("a"))
        view.changes = after
        looks = view.looks
        await until(lambda: view.looks >= looks + 3 or not watched.source.running)
        view.changes = more
        await watched.until(*stocks("a", "b"))


@pytest.mark.parametrize("key", [[], ["article"]])
@pytest.mark.parametrize("restart", [False, True])
async def test_a_table_that_is_read_as_a_whole(
    spark: SparkSession, tmp_path: Path, key: list[str], restart: bool
) -> None:
    """With whole=, a source begins with the table, and again when its place has gone; then it follows the feed; a
    commit while the table is read is not taken twice.
    """
    view, table = View("iceberg", *ABC[1:]), ["a", "b", "c"]
    raced: list[Change] = []

    def whole(session: SparkSession) -> DataFrame:
        if raced:
            view.changes.append(raced.pop())
            table.append(view.changes[-1][0])
        values = ", ".join(f"('{article}', 1L, 'far away')" for article in table)
        return session.sql(f"SELECT * FROM VALUES {values} AS t(article, pieces, address)")

    options: dict[str, Any] = {**view.options, "journal": tmp_path / "journal", "key": key, "whole": whole}

    def expire() -> None:
        table[:] = ["b", "d"]
        raced.append(("e", "INSERT", 1, 104))
        view.changes = [("d", "INSERT", 0, 103)]

    async def follows(watched: Watched) -> None:
        await watched.until(*stocks("b", "d", "e"))
        assert len(watched.said("the table was read as a whole")) == 1
        view.changes.append(("e", "DELETE", 2, 105))
        await watched.until(*stocks("b", "d"))

    async with sourced(view, **options) as watched:
        await watched.until(*stocks("a", "b", "c"))
        if not restart:
            expire()
            await follows(watched)
    if restart:
        expire()
        async with sourced(view, **options) as watched:
            await follows(watched)


@pytest.mark.parametrize(
    ("when", "instance", "key"),
    [("first", True, []), ("later", True, ["article"]), ("later", False, []), ("restart", True, [])],
)
async def test_a_feed_that_cannot_be_read(
    spark: SparkSession, tmp_path: Path, when: str, instance: bool, key: list[str]
) -> None:
    """Its files are gone, perhaps for good: with whole= the table is looked at in its place, from the first look on,
    until the feed is back; nothing is lost or doubled, whichever commits it has then.
    """
    view, table = View("iceberg", *ABC), ["a", "b", "c"]
    gone = tmp_path / "gone.parquet"
    away = [when == "first"]

    def frame(session: SparkSession) -> DataFrame:
        there = view(session)
        if not away[0]:
            return there
        if instance:
            gone.write_bytes(b"PAR1")
        try:
            return session.read.schema(there.schema).parquet(str(gone))
        finally:
            gone.unlink(missing_ok=True)

    def whole(session: SparkSession) -> DataFrame:
        values = ", ".join(f"('{article}', 1L)" for article in table)
        return session.sql(f"SELECT * FROM VALUES {values} AS t(article, pieces)")

    def change() -> None:
        away[0] = True
        table[:] = ["b", "c", "d"]
        view.changes += [("a", "DELETE", 3, 103), ("d", "INSERT", 3, 103)]

    options: dict[str, Any] = {**view.options, "journal": tmp_path / "journal", "key": key, "whole": whole}
    if when == "restart":
        async with sourced(frame, **options) as watched:
            await watched.until(*stocks("a", "b", "c"))
        change()
    async with sourced(frame, **options) as watched:
        if when != "restart":
            await watched.until(*stocks("a", "b", "c"))
            change()
        await watched.until(*stocks("b", "c", "d"))
        table.append("e")
        await watched.until(*stocks("b", "c", "d", "e"))
        assert len(watched.said("the feed cannot be read, and the table is in its place")) == 1
        assert watched.said("the feed can be read again") == []
        view.changes = [("e", "INSERT", 0, 104)]
        away[0] = False
        await until(lambda: watched.said("the feed can be read again"))
        view.changes.append(("b", "DELETE", 1, 105))
        table.remove("b")
        await watched.until(*stocks("c", "d", "e"))
        away[0] = True
        view.changes.append(("f", "INSERT", 2, 106))
        table.append("f")
        await watched.until(*stocks("c", "d", "e", "f"))
        assert len(watched.said("the feed cannot be read, and the table is in its place")) == 2
    async with sourced(frame, **options) as watched:
        away[0] = False
        view.changes.append(("c", "DELETE", 3, 107))
        table.remove("c")
        await watched.until(*stocks("d", "e", "f"))


async def test_commits_that_go_while_they_are_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the rows lack a commit that there was, the look is repeated."""
    real, calls = module.later, []

    def later(*args: Any) -> Any:
        result = real(*args)
        if result is not None:
            calls.append(result[1])
        return (result[0].where("false"), result[1]) if result is not None and len(calls) < 3 else result

    monkeypatch.setattr("syndicate.spark.source.later", later)
    view = View("iceberg", *ABC[:1])
    async with sourced(view, **view.options) as watched:
        await watched.until(*stocks("a"))
        view.changes = list(ABC)
        await watched.until(*stocks("a", "b", "c"))
        assert calls == [{"101", "102"}] * 3
        assert len(watched.said("a table cannot be read")) == 1


async def test_commits_without_a_name(spark: SparkSession) -> None:
    """A null among the commits is reported, in the first look and later."""
    for changes in ([], ABC):
        view = View("iceberg", *changes)
        async with sourced(view, **view.options) as watched:
            await watched.until(*stocks(*[article for article, *_ in changes]))
            view.changes = [*changes, ("d", "INSERT", 3, None)]
            error = await watched.end()
            assert "'_commit_snapshot_id' names the commits of Stock" in str(error)
            assert "is null in some rows" in str(error)


@pytest.mark.parametrize("kind", ["iceberg", "delta", "other"])
async def test_changes_without_an_order(spark: SparkSession, kind: str) -> None:
    """A null in the order of a later change is reported, as it is in the first look."""
    word = "c" if kind == "other" else "insert"
    view = View(kind, ("a", word, 3, 100))
    async with sourced(view, **view.options) as watched:
        await watched.until(*stocks("a"))
        view.changes.append(("b", word, None, 101))
        assert "is null in some rows" in str(await watched.end())


async def test_an_empty_feed_with_a_whole_table(spark: SparkSession, tmp_path: Path) -> None:
    """While the feed is empty the table is compared; then there is a place; without whole= there is none before."""
    view, table = View("iceberg", *ABC), ["a", "b", "c"]

    def whole(session: SparkSession) -> DataFrame:
        return session.sql(
            f"SELECT * FROM VALUES {', '.join(f'({each!r}, 1L)' for each in table)} AS t(article, pieces)"
        )

    options: dict[str, Any] = {**view.options, "journal": tmp_path / "journal"}
    async with sourced(view, **options, whole=whole) as watched:
        await watched.until(*stocks("a", "b", "c"))
        table.append("d")
        view.changes = []
        await watched.until(*stocks("a", "b", "c", "d"))
        table.append("e")
        await watched.until(*stocks("a", "b", "c", "d", "e"))
        assert len(watched.said("the table was read as a whole")) == 1
    view.changes = [("f", "INSERT", 0, 110)]
    async with sourced(view, **options) as watched:
        assert "was read as a whole while its feed was empty" in str(await watched.end())
    table.append("f")
    async with sourced(view, **options, whole=whole) as watched:
        await watched.until(*stocks("a", "b", "c", "d", "e", "f"))
        table.clear()
        view.changes.append(("a", "DELETE", 1, 111))
        await watched.until(*stocks("b", "c", "d", "e", "f"))


@pytest.mark.parametrize(
    ("order", "begins"),
    [
        ("CAST({} AS DECIMAL(20, 3))", "feed"),
        ("CAST({} AS DOUBLE) / 8", "whole"),
        ("format_string('%04X', {})", "feed"),
        ("timestamp_micros(CAST({} AS LONG))", "whole"),
        ("CAST(timestamp_micros(CAST({} AS LONG)) AS TIMESTAMP_NTZ)", "feed"),
        ("date_add(DATE '1999-12-27', {})", "whole"),
    ],
)
async def test_orders_of_every_type(spark: SparkSession, tmp_path: Path, order: str, begins: str) -> None:
    """A place is found again whatever orders the commits, also by a restart, and the clock shows it."""
    changes = {8: "a", 9: "b"}

    def view(session: SparkSession) -> DataFrame:
        values = ", ".join(f"({at}, '{article}', 1L, 'c')" for at, article in changes.items())
        frame = session.sql(f"SELECT * FROM VALUES {values} AS t(at, article, pieces, op)")
        return frame.selectExpr("article", "pieces", "op", f"{order.format('at')} AS lsn")

    def whole(session: SparkSession) -> DataFrame:
        return view(session).select("article", "pieces")

    options: dict[str, Any] = {"changes": Feed("op", "lsn", {"c": 1}), "journal": tmp_path / "journal", "clock": Tick}
    if begins == "whole":
        options["whole"] = whole
    async with sourced(view, **options) as watched:
        await watched.until(*stocks("a", "b"))
        await until(lambda: len(watched.ticks) == (1 if begins == "whole" else 3))
        second = [tick for tick in watched.ticks if tick[0] == "+"][-1]
        changes[10] = "c"
        await watched.until(*stocks("a", "b", "c"))
    changes.update({11: "d", 100: "e"})
    async with sourced(view, **options) as watched:
        await watched.until(*stocks("a", "b", "c", "d", "e"))
        assert not watched.said("the table was read as a whole")
        del changes[100], changes[11], changes[10]
        if begins == "feed":
            assert "has gone: it had come to lsn" in str(await watched.end())
        else:
            await watched.until(*stocks("a", "b"))
            await until(lambda: second in watched.ticks)


async def test_two_commits_at_one_place(spark: SparkSession) -> None:
    """A later commit with the order of the last one would be passed over: that is reported."""
    view = View("iceberg", *ABC)
    async with sourced(view, **view.options) as watched:
        await watched.until(*stocks("a", "b", "c"))
        view.changes.append(("d", "INSERT", 2, 103))
        assert "of Stock are both at _change_ordinal 2: which one is later must be told" in str(await watched.end())


async def test_a_whole_table_that_does_not_fit(spark: SparkSession) -> None:
    """Its columns are of the types that the feed has."""
    view = View("iceberg", *ABC)
    async with sourced(
        view, **view.options, whole=lambda session: session.sql("SELECT 'a' article, 1 pieces")
    ) as watched:
        assert "have columns of different types: pieces; cast them" in str(await watched.end())
