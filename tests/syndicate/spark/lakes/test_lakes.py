"""Change feeds of real Iceberg and Delta tables: what a source asserts is what a batch read finds, whatever is done to
the table: inserts, updates, deletions, merges, compaction, expiry and vacuum, with the source there or restarted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from syndicate.errors import SourceError
from tests.syndicate.spark.test_changing import Watched, sourced
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """A table of articles with its change feed."""

    kind: str
    made: str
    compaction: str

    def __init__(self, session: SparkSession, home: Path) -> None:
        self.session = session
        self.home = home
        self.name = re.sub(r"\W", "", home.name)

    @property
    def table(self) -> str:
        """The table's name in SQL."""
        raise NotImplementedError

    async def do(self, *statements: str) -> None:
        """SQL in which ``T`` is the table."""
        for statement in statements:
            said = re.sub(r"\bT\b", lambda _: self.table, statement)
            await trio.to_thread.run_sync(self.collect, said)

    def collect(self, statement: str) -> list[Any]:
        """The rows that it gives."""
        return self.session.sql(statement).collect()

    def feed(self, session: SparkSession) -> DataFrame:
        """The changes that the table still tells."""
        raise NotImplementedError

    def whole(self, session: SparkSession) -> DataFrame:
        """The table."""
        return session.table(self.table)

    async def read(self) -> list[tuple[str, int]]:
        """A batch read of it."""
        rows = await trio.to_thread.run_sync(lambda: self.whole(self.session).collect())
        return sorted((row["article"], row["pieces"]) for row in rows)

    async def compact(self) -> None:
        """Write the files again: a commit that changes no row."""
        await self.do(self.compaction)

    async def forget(self) -> None:
        """Let the table forget all but the last commit, and remove the files that only the others need."""
        raise NotImplementedError


class Iceberg(Lake):
    """In a catalog of directories."""

    kind = "iceberg"
    made = "USING iceberg"

    @property
    def table(self) -> str:
        return f"warehouse.db.{self.name}"

    @property
    def compaction(self) -> str:  # type: ignore[override]
        return (
            f"CALL warehouse.system.rewrite_data_files(table => 'db.{self.name}', "
            "options => map('rewrite-all', 'true'))"
        )

    def feed(self, session: SparkSession) -> DataFrame:
        session.sql(
            f"CALL warehouse.system.create_changelog_view(table => 'warehouse.db.{self.name}', "
            f"changelog_view => 'changes_{self.name}', identifier_columns => array('article'))"
        )
        return session.table(f"changes_{self.name}")

    async def forget(self) -> None:
        await self.do(
            f"CALL warehouse.system.expire_snapshots(table => 'db.{self.name}', retain_last => 1, "
            "older_than => TIMESTAMP '2999-01-01 00:00:00')"
        )


class Delta(Lake):
    """In a directory; *first* is the version at which the feed is asked to begin."""

    kind = "delta"
    # No checkpoint: Delta 4.1.0 cannot read its own on Spark 4.1.4, a constructor that it calls has gone.
    made = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.checkpointInterval = 1000)"
    compaction = "OPTIMIZE T"
    first = 0

    @property
    def table(self) -> str:
        return f"delta.`{self.home}/stock`"

    def feed(self, session: SparkSession) -> DataFrame:
        options = {"readChangeFeed": "true", "startingVersion": str(self.first)}
        return session.read.format("delta").options(**options).load(f"{self.home}/stock")

    async def forget(self) -> None:
        await self.do("VACUUM T RETAIN 0 HOURS")
        # VACUUM commits its start and its end, which no feed shows: from there it would seem that some was missed.
        history = await trio.to_thread.run_sync(self.collect, f"DESCRIBE HISTORY {self.table}")
        self.first = max(commit["version"] for commit in history if not commit["operation"].startswith("VACUUM"))


@pytest.fixture(params=[Iceberg, Delta])
async def lake(request: pytest.FixtureRequest, session: SparkSession, tmp_path: Path) -> Lake:
    """A table with three articles."""
    instance: Lake = request.param(session, tmp_path)
    await instance.do(
        f"CREATE TABLE T (article string, pieces int) {instance.made}",
        "INSERT INTO T VALUES ('a', 1), ('b', 2)",
        "INSERT INTO T VALUES ('c', 3)",
    )
    return instance


CHANGES = (
    "INSERT INTO T VALUES ('f', 6), ('g', 7)",
    "UPDATE T SET pieces = 5 WHERE article = 'a'",
    "DELETE FROM T WHERE article = 'b'",
    """MERGE INTO T USING (SELECT 'c' AS article, 7 AS pieces UNION ALL SELECT 'd', 4) AS new ON T.article = new.article
    WHEN MATCHED THEN UPDATE SET pieces = new.pieces WHEN NOT MATCHED THEN INSERT *""",
    "UPDATE T SET pieces = pieces + 1",
    "DELETE FROM T WHERE pieces > 7",
)


def options(lake: Lake, tmp_path: Path, **more: Any) -> dict[str, Any]:
    """How such a feed is followed."""
    journal = tmp_path / "journal"
    return {"changes": lake.kind, "session": lake.session, "journal": journal, "every": 0.3, **more}


async def same(watched: Watched, lake: Lake) -> None:
    """What is asserted is what is read."""
    await watched.until(*await lake.read())


@pytest.mark.parametrize("key", [[], ["article"]])
async def test_each_change_is_followed(lake: Lake, tmp_path: Path, key: list[str]) -> None:
    """One after the other; several at once, beside compactions; and those of while the source was away."""
    how = options(lake, tmp_path, key=key)
    async with sourced(lake.feed, **how) as watched:
        await same(watched, lake)
        for change in CHANGES:
            await lake.do(change)
            await same(watched, lake)
        there = len(watched.seen)
        await lake.compact()
        await lake.do("INSERT INTO T VALUES ('h', 8)")
        await same(watched, lake)
        assert len(watched.seen) == there + 1, "a compaction changes nothing"
    await lake.do("DELETE FROM T WHERE article = 'h'", "INSERT INTO T VALUES ('b', 1)")
    await lake.compact()
    await lake.do("UPDATE T SET pieces = 0 WHERE article = 'b'")
    async with sourced(lake.feed, **how) as watched:
        await same(watched, lake)


@pytest.mark.parametrize("restart", [False, True])
async def test_what_is_behind_the_place_is_forgotten(lake: Lake, tmp_path: Path, restart: bool) -> None:
    """A feed that forgets what was before the place goes on, whatever its numbers are then."""
    how = options(lake, tmp_path)
    async with sourced(lake.feed, **how) as watched:
        await same(watched, lake)
        if not restart:
            await lake.forget()
            await lake.do(*CHANGES[:2])
            await same(watched, lake)
    if restart:
        await lake.forget()
        await lake.do(*CHANGES[:2])
    async with sourced(lake.feed, **how) as watched:
        await same(watched, lake)
        assert watched.log == []


async def test_a_place_that_has_gone(lake: Lake, tmp_path: Path) -> None:
    """Expiry past the place is reported with the remedy; with whole= the table is read, and followed from there."""
    how = options(lake, tmp_path)
    async with sourced(lake.feed, **how) as watched:
        await same(watched, lake)
    await lake.do(*CHANGES)
    await lake.compact()
    await lake.do("INSERT INTO T VALUES ('h', 8)")
    await lake.forget()
    async with sourced(lake.feed, **how) as watched:
        error = await watched.end()
    assert isinstance(error, SourceError)
    assert "has gone" in str(error)
    assert "whole=" in str(error)
    async with sourced(lake.feed, whole=lake.whole, **how) as watched:
        await same(watched, lake)
        assert len(watched.said("the table was read as a whole")) == 1
        there = len(watched.seen)
        await lake.do("INSERT INTO T VALUES ('i', 9)")
        await same(watched, lake)
        assert len(watched.seen) == there + 1
        assert len(watched.said("the table was read as a whole")) == 1


async def test_files_of_the_feed_that_are_gone(lake: Lake, tmp_path: Path) -> None:
    """A feed may begin with a commit whose files are removed, and then nobody can read it: the log tells that, and what
    stands stands; with whole= the table is looked at, from the first look on, until the feed can be read again.
    """
    how = options(lake, tmp_path)
    async with sourced(lake.feed, **how) as watched:
        await same(watched, lake)
        before = watched.there()
        await lake.do(*CHANGES)
        await same(watched, lake)
        before = watched.there()
        first = getattr(lake, "first", None)
        await lake.forget()
        if first is not None:
            lake.first = first  # type: ignore[attr-defined]  # a Delta table
        await lake.do("INSERT INTO T VALUES ('h', 8)")
        await until(lambda: watched.said("a table cannot be read"))
        assert watched.there() == before
    for journal in ("journal", "another"):
        async with sourced(lake.feed, whole=lake.whole, **{**how, "journal": tmp_path / journal}) as watched:
            await same(watched, lake)
            await lake.do(f"INSERT INTO T VALUES ('{journal}', 8)", "DELETE FROM T WHERE article = 'h'")
            await same(watched, lake)
            assert len(watched.said("the feed cannot be read, and the table is in its place")) == 1
    async with sourced(lake.feed, whole=lake.whole, **how) as watched:
        await same(watched, lake)
        await lake.compact()
        await lake.forget()
        await lake.do("INSERT INTO T VALUES ('i', 9)")
        await same(watched, lake)
        await until(lambda: watched.said("the feed can be read again"))
        there = len(watched.seen)
        await lake.do("INSERT INTO T VALUES ('j', 9)")
        await same(watched, lake)
        assert len(watched.seen) == there + 1
