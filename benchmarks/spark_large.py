"""The figures of the streams of :mod:`benchmarks.spark_aggregate` with ten million rows, loaded in ten pieces.

With many keys alone: what a stream keeps of few is the same for any number of rows.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks import spark_aggregate
from syndicate.spark import open_session

SIZE: Final = 10_000_000


def measure(quick: bool, largest: int) -> dict[str, Any]:
    """The figures by the number of keys; of a million rows, if it has to be quick."""
    session = open_session("benchmark of large aggregates", memory="4g", **spark_aggregate.POLLING)
    sizes = [SIZE // 10 if quick else SIZE]
    return spark_aggregate.measured(session, sizes, largest, streams_alone=True)


def table(figures: dict[str, Any]) -> str:
    """The figures in Markdown."""
    return spark_aggregate.table(figures, "Engine 2: the step of an aggregate, states of ten million rows")
