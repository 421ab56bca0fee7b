"""Topics of a real broker of Kafka's, written by Spark, followed by a source; the broker is killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from syndicate.spark import Kafka
from tests.syndicate.spark.lakes.conftest import JARS
from tests.syndicate.spark.lakes.kafka import KafkaBroker
from tests.syndicate.spark.test_changing import sourced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """It ends with the test."""
    made = KafkaBroker(Path(JARS).parent / "broker" / "jars", tmp_path)
    made.make()
    made.start()
    yield made
    made.kill()


async def test_a_topic(session: SparkSession, broker: KafkaBroker, tmp_path: Path) -> None:
    """Messages and tombstones, a broker that is killed and comes back, a source that is started again."""

    def send(*messages: tuple[str, int | None]) -> None:
        rows = [
            (json.dumps({"article": article}), json.dumps({"article": article, "pieces": pieces}) if pieces else None)
            for article, pieces in messages
        ]
        frame = session.createDataFrame(rows, "key string, value string")
        frame.write.format("kafka").option("kafka.bootstrap.servers", broker.address).option("topic", "stock").save()

    async def sent(*messages: tuple[str, int | None]) -> None:
        await trio.to_thread.run_sync(send, *messages)

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
