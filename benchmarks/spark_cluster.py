"""The figures of :mod:`benchmarks.spark_aggregate` on a small cluster: two workers in processes of their own.

The driver, the workers and Python's workers share the machine, so that what differs is what Spark's division of work
costs: rows and plans travel between processes.  States have at most :data:`MOST` rows: a worker has a gigabyte.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from benchmarks import spark_aggregate
from syndicate.spark import open_session

MOST: Final = 1_000_000
CLUSTER: Final[dict[str, Any]] = {"spark.master": "local-cluster[2,1,1024]", "spark.executor.memory": "1g"}


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures by the size of the state and the number of keys."""
    import pyspark

    session = open_session("benchmark of aggregates, on a cluster", memory="2g", **spark_aggregate.POLLING, **CLUSTER)
    place = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
    try:
        return spark_aggregate.measured(session, [MOST // 10] if quick else [MOST // 10, MOST], largest)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    return spark_aggregate.table(
        figures, f"Engine 2: the step of an aggregate, on two workers (states of at most {MOST:,} rows)"
    )
