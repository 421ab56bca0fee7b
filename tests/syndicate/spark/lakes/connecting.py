"""``python -m tests.syndicate.spark.lakes.connecting URL KIND TABLE JOURNAL``: a table of a lake with Spark Connect.

A sink keeps the table, and a source follows it, both through a server of Spark Connect; somebody else commits between.
It prints a line for each event of the source, in JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import trio
from pyspark.sql import SparkSession

from syndicate import ANY, Ref, assert_, capture, current_facet, dataspace, open_system, record, spawn
from syndicate.spark import Lake, SparkWritten, spark_sink, spark_source
from syndicate.testing import watch
from tests.waiting import until


@record
class Crate:
    """What is in the table."""

    name: str
    pieces: int


async def main(url: str, kind: str, table: str, journal: str) -> None:
    """All of it, in one system: the source has a dataspace of its own."""
    session = SparkSession.builder.remote(url).getOrCreate()
    lake = Lake(kind, table, properties={"delta.enableChangeDataFeed": "true"} if kind == "delta" else {})  # type: ignore[arg-type]  # one of both
    place: dict[str, Any] = {}

    def boot() -> None:
        place["facet"], ds = current_facet(), dataspace()
        place["above"], place["below"] = ds, dataspace()
        place["a"], place["b"] = assert_(ds, Crate("a", 1)), assert_(ds, Crate("b", 2))
        place["written"] = watch(ds, capture(SparkWritten(ANY, ANY, ANY, ANY)))
        spawn(spark_sink(ds, Crate, lake, session=session, every=0.2), linked=True)

    async with open_system(boot) as system:

        async def enter(act: Callable[[], object]) -> None:
            place["facet"].enter(act)
            await system.settle()

        def follow() -> None:
            ds: Ref = place["below"]
            place["seen"] = watch(ds, capture(Crate(ANY, ANY)))
            spawn(
                spark_source(ds, lake, Crate, session=session, journal=journal, every=0.2, key=["name"]),
                linked=True,
            )

        await until(lambda: place.get("written"))
        await enter(follow)
        events = place["seen"]
        await until(lambda: ("+", Crate("b", 2)) in events)
        await enter(lambda: (place["b"].retract(), assert_(place["above"], Crate("b", 3))))
        await until(lambda: ("+", Crate("b", 3)) in events)
        statement = f"INSERT INTO {lake.sql} VALUES ('strange', 9)"
        await trio.to_thread.run_sync(lambda: session.sql(statement).collect())
        await until(lambda: ("+", Crate("strange", 9)) in events)
        await enter(lambda: assert_(place["above"], Crate("c", 4)))  # the sink takes the strange row away
        await until(lambda: ("+", Crate("c", 4)) in events and ("-", Crate("strange", 9)) in events)
        for sign, crate in events:
            print(json.dumps([sign, crate.name, crate.pieces]))
    session.stop()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4])
