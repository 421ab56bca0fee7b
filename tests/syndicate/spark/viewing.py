"""``python -m tests.syndicate.spark.viewing ADDRESS DIRECTORY ENGINE``: a circuit on a stream that kills itself.

It follows the files in DIRECTORY into the dataspace at ADDRESS and a table in DIRECTORY, with its state there.  ENGINE
is ``spark`` (Spark's stream and Spark's engine) or ``files`` (:mod:`tests.syndicate.spark.microbatches` and the local
engine).  The rest is as in :mod:`tests.syndicate.spark.crashing`.
"""

from __future__ import annotations

import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.compute  # here, so that the forked processes need not
import pyarrow.parquet  # noqa: F401  # as above

from syndicate import Ref
from syndicate.flow import Circuit, aggregates
from syndicate.spark.delivery import Delivery
from syndicate.spark.journal import SourceJournal
from syndicate.spark.sink_table import SinkTable
from syndicate.spark.streaming import _Follower, spark_view
from syndicate.values.record import record
from tests.syndicate.spark.crashing import Steps, follow, install, points, serve, stream
from tests.syndicate.spark.microbatches import Session

STEPS: Steps = {
    "plan": (_Follower, "_plan"),
    "table": (SinkTable, "commit"),
    "write": (SourceJournal, "write"),
    "commit": (SourceJournal, "commit"),
    "send": (Delivery, "send"),
    "ack": (Delivery, "acknowledged"),
}
POINTS = points(STEPS)


@record
class Crates:
    """So many boxes of a name there are."""

    name: str
    count: int


@record
class Kind:
    """There is such a box."""

    name: str
    size: int


def circuit() -> Circuit:
    """Counts by name, and what there is."""
    c = Circuit()
    boxes = c.source("boxes")
    c.sink("counts", boxes.index_with(itemgetter(0)).aggregate(aggregates.count))
    c.sink("kinds", boxes.distinct())
    return c


def start(ds: Ref, place: Path, options: dict[str, Any]) -> None:
    """Start the view, with its state in *place*."""
    spark_view(
        ds,
        lambda session: stream(place, session),
        circuit(),
        {"counts": Crates, "kinds": Kind},
        tables={"kinds": (place / "table", Kind)},
        state=place / "state",
        engine="local" if isinstance(options["session"], Session) else "spark",
        **options,
    )()


def view(address: str, place: Path, engine: str, point: str) -> None:
    """Run the view."""
    if point != "never":
        install(point, STEPS, _Follower)
    follow(address, lambda ds, options: start(ds, place, options), engine)


if __name__ == "__main__":
    serve(view, *sys.argv[1:])
