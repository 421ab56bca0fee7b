"""Databases and topics as origins of a source: a real database in the JVM, and messages as Kafka's reader has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen

from syndicate import dataspace
from syndicate.errors import SourceError
from syndicate.spark import Jdbc, Kafka, Lake, spark_source
from syndicate.testing import settled
from tests.syndicate.spark.test_changing import Stock, sourced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Database:
    """Derby, which comes with Spark."""

    def __init__(self, session: Any, url: str) -> None:
        self.url = url
        self.connection = session._jvm.java.sql.DriverManager.getConnection(f"{url};create=true")

    def say(self, *statements: str) -> None:
        """SQL, each a transaction."""
        for text in statements:
            statement = self.connection.createStatement()
            statement.execute(text)
            statement.close()


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    """With a table of three articles."""
    origin = Database(spark, f"jdbc:derby:{tmp_path}/db")
    origin.say(
        "CREATE TABLE stock (article VARCHAR(20), pieces INT, changed INT, stamp TIMESTAMP)",
        "INSERT INTO stock VALUES ('a', 1, 1, '2026-01-01 00:00:01'), ('b', 2, 2, '2026-01-01 00:00:02')",
        "INSERT INTO stock VALUES ('c', 3, 2, '2026-01-01 00:00:02')",
    )
    yield origin
    origin.connection.close()


ROWS = '(SELECT article AS "article", pieces AS "pieces", changed AS "changed", stamp AS "stamp" FROM stock) AS s'
KEYED: dict[str, Any] = {"key": ["article"], "ignore": ["changed", "stamp"]}


async def test_polled(database: Database) -> None:
    """Each change is found, also a deletion."""
    polled: Any = Jdbc(database.url, ROWS)
    async with sourced(polled, **KEYED) as watched:
        await watched.until(("a", 1), ("b", 2), ("c", 3))
        database.say("DELETE FROM stock WHERE article = 'a'", "UPDATE stock SET pieces = 9 WHERE article = 'b'")
        await watched.until(("b", 9), ("c", 3))


@pytest.mark.parametrize(
    ("column", "values"), [("changed", ["2", "3", "4"]), ("stamp", [f"'2026-01-01 00:00:0{n}'" for n in (2, 3, 4)])]
)
async def test_by_watermark(database: Database, tmp_path: Path, column: str, values: list[str]) -> None:
    """Rows that share the last watermark are found when they come later, and those of while the source was away; what
    does not change is no step; a deletion is not seen.
    """
    followed: Any = Jdbc(database.url, ROWS, watermark=column)
    how = {**KEYED, "journal": tmp_path / "journal"}
    insert = f"INSERT INTO stock (article, pieces, {column}) VALUES "
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 1), ("b", 2), ("c", 3))
        database.say(f"{insert} ('d', 4, {values[0]})")
        await watched.until(("a", 1), ("b", 2), ("c", 3), ("d", 4))
        database.say(f"UPDATE stock SET pieces = 5, {column} = {values[1]} WHERE article = 'd'")
        await watched.until(("a", 1), ("b", 2), ("c", 3), ("d", 5))
        assert len(watched.seen) == 6
    database.say(
        f"UPDATE stock SET pieces = 6, {column} = {values[2]} WHERE article = 'a'",
        "DELETE FROM stock WHERE article = 'b'",
    )
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 6), ("b", 2), ("c", 3), ("d", 5))


async def test_overlap(database: Database) -> None:
    """A row that is committed late, with a lower watermark, as by a clock that is slow, is found within the overlap; a
    later one when it is changed.
    """
    followed: Any = Jdbc(database.url, ROWS, watermark="changed", overlap=2)
    async with sourced(followed, **KEYED) as watched:
        await watched.until(("a", 1), ("b", 2), ("c", 3))
        database.say("INSERT INTO stock (article, pieces, changed) VALUES ('z', 26, 9)")
        await watched.until(("a", 1), ("b", 2), ("c", 3), ("z", 26))
        database.say("INSERT INTO stock (article, pieces, changed) VALUES ('late', 1, 7)")
        await watched.until(("a", 1), ("b", 2), ("c", 3), ("z", 26), ("late", 1))
        rows = [*watched.there(), ("y", 25)]
        database.say("INSERT INTO stock (article, pieces, changed) VALUES ('slow', 1, 6)")
        database.say("INSERT INTO stock (article, pieces, changed) VALUES ('y', 25, 9)")
        await watched.until(*rows)
        database.say("UPDATE stock SET changed = 8 WHERE article = 'slow'")
        await watched.until(*rows, ("slow", 1))


async def test_mistakes_with_databases(database: Database) -> None:
    """Each says what to do; a password is not shown."""
    with pytest.raises(SourceError, match=r"gives a row again when it was changed.*key="):
        Jdbc("jdbc:x", "t", watermark="w", options={"password": "secret"}).check([])
    assert "secret" not in repr(Jdbc("jdbc:x", "t", options={"password": "secret"}))
    followed: Any = Jdbc(database.url, ROWS, watermark="article")
    async with sourced(followed, key=["article"], ignore=["changed", "stamp"]) as watched:
        assert "is of type string: it takes a number or a time" in str(await watched.end())


# ---------------------------------------------------------------------------------------------------- topics


@frozen
class OnDisk(Kafka):
    """A topic whose messages, with key, value and offset, are files."""

    place: Path = Path()

    def read(self, session: SparkSession) -> DataFrame:
        """The stream."""
        return self.rows(session.readStream.schema("key string, value string, offset bigint").json(str(self.place)))

    def send(self, *messages: tuple[object, object]) -> None:
        """Together, as a micro-batch may have them."""
        number = sum(len(path.read_text().splitlines()) for path in self.place.glob("*.json"))
        rows = [
            {"key": key if key is None else json.dumps(key), "value": value if value is None else json.dumps(value)}
            for key, value in messages
        ]
        draft = self.place / f"_{number:04}"
        draft.write_text("".join(json.dumps({**row, "offset": number + at}) + "\n" for at, row in enumerate(rows)))
        draft.rename(self.place / f"{number:04}.json")


@pytest.fixture
def topic(tmp_path: Path) -> Any:
    """Makes one."""
    (tmp_path / "topic").mkdir()
    columns = "article string, pieces bigint"
    return lambda **more: OnDisk("localhost:1", "stock", columns, place=tmp_path / "topic", **more)


def stock(article: str, pieces: int) -> dict[str, object]:
    """A row."""
    return {"article": article, "pieces": pieces}


async def test_a_plain_topic(spark: SparkSession, topic: Any) -> None:
    """Each message adds its row; what is no JSON is an error, and not a row of nulls."""
    followed = topic()
    followed.send((None, stock("a", 1)), (None, stock("b", 2)), (None, stock("a", 1)))
    async with sourced(followed) as watched:
        await watched.until(("a", 1), ("b", 2))
        followed.send((None, {**stock("c", 3), "colour": "red"}))
        await watched.until(("a", 1), ("b", 2), ("c", 3))
        (followed.place / "bad.json").write_text(json.dumps({"value": "{no", "offset": 9}) + "\n")
        assert "Malformed records are detected" in str(await watched.end())


async def test_a_compacted_topic(spark: SparkSession, topic: Any, tmp_path: Path) -> None:
    """A message takes the place of the one with its key, in the order of offsets; one without a value removes it; the
    same after a restart.
    """
    followed = topic()
    key = {"article": "a"}
    followed.send((key, stock("a", 1)), ({"article": "b"}, stock("b", 2)), (key, stock("a", 5)), (key, None))
    how: dict[str, Any] = {"key": ["article"], "journal": tmp_path / "journal"}
    async with sourced(followed, **how) as watched:
        await watched.until(("b", 2))
    followed.send((key, stock("a", 6)), ({"article": "b"}, None))
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 6))


@pytest.mark.parametrize("schemas", [False, True])
async def test_debezium(spark: SparkSession, topic: Any, schemas: bool) -> None:
    """Rows that are read, created, updated and deleted, with what a database tells of the row before: all, or its key;
    tombstones and messages about transactions are nothing.
    """
    followed = topic(format="debezium")

    def change(op: str, before: object, after: object) -> tuple[object, object]:
        article = (after or before)["article"]  # type: ignore[index]  # one is there
        payload = {"op": op, "before": before, "after": after, "source": {"lsn": 1}, "ts_ms": 5}
        key = {"article": article}
        return ({"schema": {}, "payload": key}, {"schema": {}, "payload": payload}) if schemas else (key, payload)

    followed.send(
        change("r", None, stock("a", 1)),
        change("c", None, stock("b", 2)),
        change("c", None, stock("c", 3)),
        change("u", None, stock("b", 4)),
        change("u", stock("b", 4), stock("b", 5)),
        change("d", stock("a", 1), None),
        ({"article": "a"}, None),
        change("d", {"article": "c", "pieces": None}, None),
        change("m", None, stock("x", 1)),
    )
    async with sourced(followed, key=["article"]) as watched:
        await watched.until(("b", 5))


def test_mistakes_with_topics() -> None:
    """Each says what to do."""
    with pytest.raises(SourceError, match="name the columns of the primary key, with key="):
        Kafka("h:1", "orders", "id bigint", format="debezium").check([])
    with pytest.raises(SourceError, match='format= takes "json" or "debezium"'):
        Kafka("h:1", "orders", "id bigint", format="avro")  # type: ignore[arg-type]  # a mistake


async def test_a_session_without_the_reader(spark: SparkSession) -> None:
    """Kafka's reader is a package of its own; Spark says which."""
    followed: Any = Kafka("localhost:1", "orders", "article string, pieces bigint")
    async with sourced(followed) as watched:
        assert "kafka" in str(await watched.end()).lower()
    lake: Any = Lake("delta", "/nowhere/t")
    async with sourced(lake) as watched:
        assert "this session does not know delta tables" in str(await watched.end())


def test_what_an_origin_says_itself() -> None:
    """Its changes are not given beside it."""
    origin: Any = Kafka("h:1", "orders", "article string, pieces bigint")
    with pytest.raises(SourceError, match="says itself what its changes are: leave changes= out"):
        settled(lambda: spark_source(dataspace(), origin, Stock, changes="delta"))
