"""What follows a Delta table until it is killed: ``python -m .. .flowing WHAT DIRECTORY ADDRESS``.

The table is ``DIRECTORY/from``, of numbers and keys.  WHAT is one of :data:`PROGRAMS`; each runs on a cluster of one
executor, and goes on, after a restart, where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from relay.spark import register
from syndicate import dataspace, linked_task, run, spawn
from syndicate.flow import Circuit, aggregates
from syndicate.spark import Lake, spark_sink, spark_source, spark_stream, spark_view
from syndicate.spark.session import COMPILER
from syndicate.values.record import record
from tests.relay.spark.brokers import DURABLE
from tests.syndicate.spark.lakes.conftest import JARS, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MIDDLE: Final = "warehouse.db.middle"
CLUSTER: Final[dict[str, Any]] = {
    "spark.master": "local-cluster[1,1,600]",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": f"{COMPILER} -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": False,  # a plan of few rows is compiled for longer than it runs
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": False,
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[4]),
    "spark.python.worker.faulthandler.enabled": False,
}
OFTEN: Final[Any] = {"processingTime": "200 milliseconds"}


@record
class Item:
    """A row."""

    n: int
    k: int


@record
class Total:
    """What the numbers of a key add up to."""

    k: int
    total: int


def totals() -> Circuit:
    """Sums by key."""
    c = Circuit()
    c.sink("totals", c.source("items").index_with(itemgetter(1)).aggregate(aggregates.sum(itemgetter(0))))
    return c


def changes(session: SparkSession, place: str) -> DataFrame:
    """The table's changes as a stream, each row with its weight."""
    fed = session.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", "0")
    weight = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1L ELSE -1L END AS weight"
    return fed.load(f"{place}/from").selectExpr("n", "k", weight)


def into_lake(frame: DataFrame, place: str, name: str) -> Any:
    """Start the query that appends to a Delta table."""
    checkpoint = {"checkpointLocation": f"{place}/{name} checkpoint"}
    return frame.writeStream.format("delta").options(**checkpoint).trigger(**OFTEN).start(f"{place}/{name}")


def edges(session: SparkSession, place: str, _address: str) -> None:
    """A source of Delta, a sink into Iceberg, a source of that, and a sink into Delta."""
    session.sql("CREATE NAMESPACE IF NOT EXISTS warehouse.db")
    session.sql(f"CREATE TABLE IF NOT EXISTS {MIDDLE} (n bigint, k bigint) USING iceberg")

    def boot() -> None:
        first, second = dataspace(), dataspace()
        often: dict[str, Any] = {"session": session, "every": 0.2}
        spawn(spark_source(first, Lake("delta", f"{place}/from"), Item, journal=f"{place}/first", **often), linked=True)
        spawn(spark_sink(first, Item, Lake("iceberg", MIDDLE), **often), linked=True)
        spawn(spark_source(second, Lake("iceberg", MIDDLE), Item, journal=f"{place}/second", **often), linked=True)
        spawn(spark_sink(second, Item, Lake("delta", f"{place}/to"), **often), linked=True)

    run(boot)


def rules(session: SparkSession, place: str, _address: str) -> None:
    """A view on the second engine, with a table of its own and a sink; and the circuit as a stream of Spark's."""
    streamed = spark_stream(totals(), {"items": (changes(session, place), "weight")}, pages=4)["totals"]
    query = into_lake(streamed.toDF("k", "total", "weight"), place, "streamed")

    def boot() -> None:
        ds = dataspace()
        spawn(
            spark_view(
                ds, lambda session: changes(session, place), totals(), {"totals": Total}, weight="weight",
                tables={"totals": (f"{place}/table", Total)}, state=f"{place}/state", session=session, trigger=OFTEN,
            ),
            linked=True,
        )  # fmt: skip
        spawn(spark_sink(ds, Total, Lake("delta", f"{place}/viewed"), session=session, every=0.2), linked=True)

        async def beside() -> None:
            await trio.to_thread.run_sync(query.awaitTermination, abandon_on_cancel=True)

        linked_task(beside)

    run(boot)


def exchange(session: SparkSession, place: str, address: str) -> None:
    """The table's changes into a durable broker, and the broker's into a Delta table."""
    register(session)
    broker = {"address": address, "cap": DURABLE, "grace": "0", "pattern": "<Row $n $k>"}
    into = changes(session, place).writeStream.format("syndicate").options(**broker).trigger(**OFTEN)
    one = into.option("checkpointLocation", f"{place}/into").start()
    heard = session.readStream.format("syndicate").options(**broker, log=f"{place}/log")
    other = into_lake(heard.option("columns", "n bigint, k bigint").load().select("n", "k", "weight"), place, "out")
    while one.isActive and other.isActive:
        one.awaitTermination(1)
    print(one.exception(), other.exception(), file=sys.stderr)


PROGRAMS: Final[dict[str, Callable[[SparkSession, str, str], None]]] = {
    "edges": edges,
    "rules": rules,
    "exchange": exchange,
}


def main(what: str, place: str, address: str) -> None:
    """Until it is killed."""
    named = [jar for kind in ("io.*", "org.apache.iceberg*") for jar in Path(JARS).absolute().glob(f"{kind}.jar")]
    jars = ":".join(map(str, named))  # from where they are: each executor would copy them; the others Spark has
    classes = {"spark.jars": "", "spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars}
    session = opened(f"{place}/warehouse", **CLUSTER, **classes)
    print("started", flush=True)
    PROGRAMS[what](session, place, address)


if __name__ == "__main__":
    main(*sys.argv[1:])
