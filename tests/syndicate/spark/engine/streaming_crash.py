"""``python -m tests.syndicate.spark.engine.streaming_crash DIRECTORY``: a streaming circuit until it is killed.

Each micro-batch of the two sinks is a file of its number, so that one that is made again takes its own place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from syndicate.flow import Circuit
from syndicate.flow import aggregates as agg
from syndicate.spark import open_session, spark_stream
from tests.syndicate.flow.circuits import first, second
from tests.syndicate.spark.engine.streaming import streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def build() -> Circuit:
    """Sums by key, and a join whose keys are counted: two stateful operators, one behind the other."""
    c = Circuit()
    a, b = c.source("a"), c.source("b")
    index = a.index_with(first)
    c.sink("sums", index.aggregate(agg.sum(second)))
    met = index.join(b.index_with(first), lambda k, x, y: (x[1], y[1]))
    c.sink("met", met.index_with(second).aggregate(agg.count))
    return c


def keeping(place: Path) -> Callable[[DataFrame, int], None]:
    """Write a micro-batch whole at once."""
    place.mkdir(parents=True, exist_ok=True)

    def keep(frame: DataFrame, number: int) -> None:
        import pyarrow.parquet as pq

        draft = place / f"{number}.draft"
        pq.write_table(frame.toArrow(), draft)
        draft.rename(place / f"{number:05}.parquet")

    return keep


def main(directory: str) -> None:
    """Until it is killed."""
    place, circuit = Path(directory), build()
    session = open_session("crash", memory="512m")
    frames = spark_stream(circuit, streams(session, circuit, place), pages=4)
    queries = [
        frame.writeStream.foreachBatch(keeping(place / f"out {name}"))
        .option("checkpointLocation", f"{directory}/checkpoint {name}")
        .start()
        for name, frame in frames.items()
    ]
    print("started", flush=True)
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1])
