"""Topics of a real broker of Kafka's, written by Spark, followed by a source; the broker is killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from syndicate import record
from syndicate.spark import Kafka
from syndicate.values.absent import ABSENT
from syndicate.values.value import Symbol
from tests.syndicate.spark.lakes.conftest import JARS
from tests.syndicate.spark.lakes.kafka import KafkaBroker
from tests.syndicate.spark.lakes.test_kept import Kept, kept
from tests.syndicate.spark.test_changing import sourced
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """It ends with the test."""
    broker = KafkaBroker(Path(JARS).parent / "broker" / "jars", tmp_path)
    broker.make()
    broker.start()
    yield broker
    broker.kill()


async def send(session: SparkSession, broker: KafkaBroker, *messages: tuple[str, int | None]) -> None:
    """Messages of the topic `stock`; one without pieces is a tombstone."""
    rows = [
        (json.dumps({"article": article}), json.dumps({"article": article, "pieces": pieces}) if pieces else None)
        for article, pieces in messages
    ]

    def write() -> None:
        frame = session.createDataFrame(rows, "key string, value string")
        frame.write.format("kafka").option("kafka.bootstrap.servers", broker.address).option("topic", "stock").save()

    await trio.to_thread.run_sync(write)


async def test_a_topic(session: SparkSession, broker: KafkaBroker, tmp_path: Path) -> None:
    """Messages and tombstones, a broker that is killed and comes back, a source that is started again."""
    sent = partial(send, session, broker)
    followed: Any = Kafka(broker.address, "stock", "article string, pieces bigint")
    how: dict[str, Any] = {"session": session, "key": ["article"], "journal": tmp_path / "journal"}
    await sent(("a", 1), ("b", 2), ("a", 3))
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 3), ("b", 2))
        await sent(("b", None), ("c", 4))
        await watched.until(("a", 3), ("c", 4))
        broker.kill()
        await trio.sleep(1)
        broker.start()
        await sent(("d", 5))
        await watched.until(("a", 3), ("c", 4), ("d", 5))
    await sent(("d", None), ("a", 6))
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 6), ("c", 4))


async def test_a_micro_batch_that_is_repeated(session: SparkSession, broker: KafkaBroker, tmp_path: Path) -> None:
    """A source that was stopped before Spark noted its last micro-batch as done is started again, and goes on."""
    followed: Any = Kafka(broker.address, "stock", "article string, pieces bigint")
    how: dict[str, Any] = {"session": session, "key": ["article"], "journal": tmp_path / "journal"}
    await send(session, broker, ("a", 1))
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 1))
        await send(session, broker, ("b", 2))
        await watched.until(("a", 1), ("b", 2))
    commits = tmp_path / "journal.checkpoint" / "commits"
    last = max(int(each.name) for each in commits.glob("[0-9]*"))
    for each in (commits / f"{last}", commits / f".{last}.crc"):
        each.unlink(missing_ok=True)
    async with sourced(followed, **how) as watched:
        await watched.until(("a", 1), ("b", 2))
        await send(session, broker, ("c", 3))
        await watched.until(("a", 1), ("b", 2), ("c", 3))


@record
class Stock:
    article: str
    pieces: int | Symbol


@asynccontextmanager
async def sunk(to: Kafka, session: SparkSession, *values: Any) -> AsyncIterator[Kept]:
    """A sink into a topic."""
    async with kept(to, session, *values, of=Stock) as stage:
        yield stage


def last_of(session: SparkSession, broker: KafkaBroker, topic: str) -> dict[Any, Any]:
    """The last message of each key, by hand."""
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
    said: dict[Any, Any] = {}
    try:
        rows = reader.load().collect()
    except Exception as error:
        assert "UnknownTopicOrPartition" in str(error)  # noqa: PT017  # nothing was written yet
        return {}
    for row in sorted(rows, key=lambda row: row.offset):
        said[bytes(row.key).decode()] = None if row.value is None else json.loads(bytes(row.value))
    return {key: value for key, value in said.items() if value is not None}


async def test_a_topic_that_is_kept(session: SparkSession, broker: KafkaBroker, tmp_path: Path) -> None:
    """A sink writes what is asserted, by key, across a restart and a broker that is killed; a source reads it back."""
    columns = "article string, pieces bigint"
    topic = Kafka(broker.address, "kept", columns, key=["article"])

    async def said(stage: Kept, **wanted: int | None) -> None:
        rows = {json.dumps({"article": name}, separators=(",", ":")): {"article": name, "pieces": pieces}
                for name, pieces in wanted.items()}  # fmt: skip
        with trio.fail_after(PATIENCE):
            while await trio.to_thread.run_sync(last_of, session, broker, "kept") != rows:
                assert stage.sink.running, stage.sink.error
                await trio.sleep(0.2)

    async with sunk(topic, session, Stock("a", 1), Stock("b", ABSENT)) as stage:
        await said(stage, a=1, b=None)
        await stage.become(Stock("a", 2), Stock("c", 3))
        await said(stage, a=2, c=3)
        broker.kill()
        await stage.become(Stock("a", 2), Stock("d", 4))
        await trio.sleep(1)
        broker.start()
        await said(stage, a=2, d=4)
    async with sunk(topic, session, Stock("a", 2), Stock("e", 5)) as stage:  # d went while nobody wrote
        await said(stage, a=2, e=5)
    read: Any = Kafka(broker.address, "kept", columns)
    async with sourced(read, session=session, key=["article"], journal=tmp_path / "journal") as watched:
        await watched.until(("a", 2), ("e", 5))


async def test_two_rows_of_one_key(session: SparkSession, broker: KafkaBroker) -> None:
    """A key that does not tell rows apart ends the sink: one of them would hide the other."""
    topic = Kafka(broker.address, "twice", "article string, pieces bigint", key=["article"])
    async with sunk(topic, session, Stock("a", 1), Stock("a", 2)) as stage:
        await until(lambda: not stage.sink.running)
        assert "two rows that are asserted have the key" in str(stage.sink.error)
