"""What works with a session of Spark Connect, in a process that has no other one.

``python -m tests.relay.spark.connecting URL ADDRESS DIRECTORY`` prints an object in JSON: what each part gave.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import trio
from pyspark.sql import SparkSession

from relay.spark import create_views, register
from syndicate import ANY, Ref, capture, dataspace, open_system, record, spawn
from syndicate.errors import SyndicateError
from syndicate.flow import Circuit, aggregates
from syndicate.spark import (
    Feed,
    SparkEngine,
    read_changes,
    read_snapshot,
    spark_sink,
    spark_source,
    spark_stream,
    spark_view,
)
from syndicate.spark.spark_connect import own_session
from syndicate.testing import watch
from tests.relay.spark.brokers import DURABLE
from tests.waiting import until


@record
class Box:
    name: str
    size: int


def data_source(session: SparkSession, address: str, directory: Path) -> Any:
    """Both directions of the format, SQL and a stream."""
    register(session)
    settings = {"address": address, "cap": DURABLE}
    rows = session.createDataFrame([("a", 1), ("b", 2)], "name string, size bigint")
    rows.write.format("syndicate").options(**settings, label="Box").mode("append").save()
    create_views(session, [Box], address, DURABLE)
    boxes = session.sql("SELECT name, size FROM Box WHERE name = 'b'").collect()
    stream = session.readStream.format("syndicate").options(
        **settings, label="Box", log=str(directory / "log"), grace="0"
    )
    frame = stream.option("columns", "name string, size bigint").load().selectExpr("name", "size + 1 AS size", "weight")
    written = frame.writeStream.format("syndicate").options(**settings, label="More")
    query = written.option("checkpointLocation", str(directory / "cp")).trigger(availableNow=True).start()
    query.awaitTermination()
    more = session.read.format("syndicate").options(**settings, pattern="<More $name $size>").load().drop("weight")
    return [[tuple(row) for row in boxes], sorted(tuple(row) for row in more.collect())]


async def table(session: SparkSession, directory: Path) -> Any:
    """A table that is polled, then a feed; and a sink that is read with the session."""
    file = directory / "boxes.csv"
    file.write_text("a,1\nb,2\n")
    seen: list[Any] = []
    to = directory / "sink"

    def frame(of: SparkSession) -> Any:
        return of.read.csv(str(file), schema="name string, size int")

    def feed(of: SparkSession) -> Any:
        return of.createDataFrame(
            [("f", 1, "insert", 1), ("f", 1, "delete", 2), ("g", 1, "insert", 2)],
            "name string, size int, kind string, at int",
        )

    objects: dict[str, Ref] = {}

    def boot() -> None:
        ds = objects["ds"] = dataspace()
        seen.append(watch(ds, capture(Box(ANY, ANY))))
        spawn(spark_source(ds, frame, Box, key=["name"], session=session, every=1))
        spawn(spark_source(ds, feed, Box, changes=Feed("kind", "at"), session=session, every=1))
        spawn(spark_sink(ds, Box, to, every=1, session=session, sources=[Box]))

    async with open_system(boot):
        await until(lambda: seen and ("+", Box("b", 2)) in seen[0])
        file.write_text("a,1\nb,3\n")
        await until(lambda: ("-", Box("b", 2)) in seen[0])
        while ("b", 3) not in await trio.to_thread.run_sync(snapshot, session, to):  # noqa: ASYNC110  # a file's
            await trio.sleep(0.5)
    changed = read_changes(session, to).groupBy("name").sum("weight").collect()
    return [snapshot(session, to), sorted((row[0], row[1]) for row in changed if row[1])]


def snapshot(session: SparkSession, to: Path) -> list[Any]:
    """What the sink says stands."""
    try:
        return sorted((row.name, row["size"]) for row in read_snapshot(session, to).collect())
    except SyndicateError:
        return []


def streamed(session: SparkSession, directory: Path) -> Any:
    """A circuit as a streaming query, with its state on the server: started twice, with a row that goes between."""
    rows, schema = directory / "stream", "name string, size bigint, weight bigint"
    circuit = Circuit()
    circuit.sink("sums", circuit.source("boxes").index_with(itemgetter(0)).aggregate(aggregates.sum(itemgetter(1))))
    results = []
    for batch in ([("a", 1, 1), ("a", 2, 1), ("b", 5, 1)], [("a", 1, -1), ("b", 5, -1)]):
        session.createDataFrame(batch, schema).coalesce(1).write.mode("append").parquet(str(rows))
        frame = session.readStream.schema(schema).parquet(str(rows))
        changes = spark_stream(circuit, {"boxes": (frame, "weight")}, pages=2)["sums"]
        writer = changes.writeStream.format("parquet").option("checkpointLocation", str(directory / "state"))
        writer.trigger(availableNow=True).start(str(directory / "sums")).awaitTermination()
        written = session.read.schema(changes.schema).parquet(str(directory / "sums"))
        current = written.groupBy("e0", "e1").sum("w").where("`sum(w)` <> 0")
        results.append(sorted(tuple(row) for row in current.collect()))
    return results


def beside(session: SparkSession) -> Any:
    """A session of one's own: with the options as they were, and options and views that the other does not have."""
    session.conf.set("spark.syndicate.before", "1")
    own = own_session(session)
    own.conf.set("spark.syndicate.after", "2")
    own.range(1).createOrReplaceTempView("here")
    return {
        "another": own is not session,
        "options": [own.conf.get("spark.syndicate.before"), session.conf.get("spark.syndicate.after", None)],
        "views": [own.catalog.tableExists("here"), session.catalog.tableExists("here")],
        "rows": own.table("here").count(),
    }


async def refused(session: SparkSession) -> Any:
    """What needs a classic session says so."""

    def stream(of: SparkSession) -> Any:
        return of.readStream.format("rate").load().selectExpr("CAST(value AS string) AS name", "value AS size")

    circuit = Circuit()
    circuit.sink("out", circuit.source("boxes").map(lambda box: box))
    said: list[str] = []
    starts: list[Callable[[Ref], Callable[[], None]]] = [
        lambda ds: spark_source(ds, stream, Box, session=session),
        lambda ds: spark_view(ds, stream, circuit, {"out": Box}, session=session),
    ]
    for start in starts:
        try:
            async with open_system(lambda start=start: spawn(start(dataspace()), linked=True)):
                await trio.sleep(60)
        except SyndicateError as error:
            said.append(str(error))
    try:
        SparkEngine(circuit, session)
    except SyndicateError as error:
        said.append(str(error))
    return said


async def main(url: str, address: str, directory: str) -> None:
    """All of it."""
    session = SparkSession.builder.remote(url).getOrCreate()
    there = await trio.to_thread.run_sync(data_source, session, address, Path(directory))
    sums = await trio.to_thread.run_sync(streamed, session, Path(directory))
    results = {"source": there, "streamed": sums, "beside": await trio.to_thread.run_sync(beside, session)}
    results |= {"table": await table(session, Path(directory)), "refused": await refused(session)}
    session.stop()
    print(json.dumps(results))


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
