"""A program that ends in the middle of a query: ``python -m tests.syndicate.spark.leaving SECONDS``.

The query takes so many seconds, and the interpreter takes a while to go: long enough for one of 8 seconds to end
meanwhile.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from syndicate import after, dataspace, record, run, spawn, stop_actor
from syndicate.spark import open_session, spark_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

begun = threading.Event()


@record
class Row:
    id: int


class Last:
    """What goes last takes its time."""

    def __del__(self) -> None:
        time.sleep(12)


def slow(session: SparkSession) -> DataFrame:
    """A row, for which one waits."""
    begun.set()
    park = f"reflect('java.util.concurrent.locks.LockSupport', 'parkNanos', id + {sys.argv[1]}000000000L)"
    return session.range(1).selectExpr(f"if({park} IS NULL, id, id) AS id")


def boot() -> None:
    """Look at the table, and end soon."""
    spawn(spark_source(dataspace(), slow, Row, session=open_session(memory="512m")), linked=True)

    def look() -> None:
        after(4 if begun.is_set() else 0.1, stop_actor if begun.is_set() else look)

    look()


if __name__ == "__main__":
    last = Last()
    run(boot)
