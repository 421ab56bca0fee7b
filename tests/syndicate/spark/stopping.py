"""Sources and a view in a session that is stopped under them: ``python -m tests.syndicate.spark.stopping``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog.testing
import trio

from syndicate import ANY, capture, dataspace, open_system, record, spawn
from syndicate.actors.actor import Actor
from syndicate.flow import Circuit
from syndicate.spark import open_session, spark_source, spark_view
from syndicate.testing import Seen, watch
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@record
class Row:
    id: int


@record
class Event:
    id: int


@record
class Kind:
    id: int


def table(session: SparkSession) -> DataFrame:
    """Rows to poll."""
    return session.range(1)


def stream(session: SparkSession) -> DataFrame:
    """A row a second."""
    return session.readStream.format("rate").load().selectExpr("value % 2 AS id")


async def main() -> None:
    """Say how each ends."""
    session = open_session(memory="512m")
    kinds = Circuit()
    kinds.sink("kinds", kinds.source("events").distinct())
    seen: list[Seen] = []
    actors: list[Actor] = []

    def boot() -> None:
        ds = dataspace()
        seen.extend(watch(ds, capture(pattern)) for pattern in (Row(ANY), Event(ANY), Kind(ANY)))
        view = spark_view(ds, stream, kinds, {"kinds": Kind}, engine="local", session=session)
        sources = (spark_source(ds, table, Row, session=session), spark_source(ds, stream, Event, session=session))
        actors.extend(map(spawn, (*sources, view)))

    with structlog.testing.capture_logs():
        async with open_system(boot):
            await until(lambda: all(map(len, seen)) or not all(actor.running for actor in actors))
            await trio.to_thread.run_sync(session.stop)
            await until(lambda: not any(actor.running for actor in actors))
    for actor in actors:
        print(actor.error)


if __name__ == "__main__":
    trio.run(main)
