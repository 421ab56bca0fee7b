"""Both engines side by side: the same circuit, the same changes, and whether they give the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from syndicate.flow import Circuit
from syndicate.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def shown(change: Any) -> Any:
    """A change in the driver."""
    return tuple(map(shown, change)) if isinstance(change, tuple) else change.to_zset()


def alike(
    session: SparkSession, build: Callable[[], Circuit], steps: Iterable[Mapping[str, Any]], **options: Any
) -> SparkEngine:
    """Run the steps on both engines, and compare each sink after each; the engine, closed."""
    local, spark = build(), build()
    with SparkEngine(spark, session, **options) as engine:
        for number, deltas in enumerate(steps):
            wanted = local.step(deltas)
            result = engine.step(deltas)
            for name in spark.sinks:
                assert shown(result[name]) == wanted[name], f"step {number}, sink {name}, after {deltas}"
    return engine
