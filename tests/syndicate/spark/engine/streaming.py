"""A streaming circuit, stepped: what is given goes into files of its sources, a micro-batch each, and its changes come
back.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syndicate.flow import Circuit, ZSet
from syndicate.flow.node import Carries
from syndicate.flow.zset import IndexedZSet
from syndicate.spark.engine.batch import as_declared
from syndicate.spark.engine.rows import items_of, table_of
from syndicate.spark.engine.shape import Layout
from syndicate.spark.engine.state_pages import from_bytes, to_bytes
from syndicate.spark.engine.streamed import StreamScope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAIR = Layout(("long", "long"))


def wrote(place: Path, number: int, rows: Mapping[Any, int], layout: Layout = PAIR) -> None:
    """A file of rows with weights, whole at once."""
    import pyarrow.parquet as pq

    place.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f"{place.name}.{number}.draft")
    pq.write_table(table_of(list(rows), list(rows.values()), layout), draft)
    draft.rename(place / f"{number:05}.parquet")


def streams(session: SparkSession, circuit: Circuit, place: Path, layout: Layout = PAIR) -> dict[str, Any]:
    """A stream of files for each source."""
    results = {}
    for name in circuit.sources:
        (place / name).mkdir(parents=True, exist_ok=True)
        reader = session.readStream.schema(layout.schema)
        results[name] = (reader.parquet(str(place / name)), "w")
    return results


def packing(name: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The rows of a sink as bytes, with its name, so that all sinks are one query."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            columns = [pa.array([name]), pa.array([to_bytes(pa.Table.from_batches([batch]))])]
            yield pa.record_batch(columns, names=["sink", "rows"])

    return run


class Stepped:
    """All sinks of a circuit in one query, and what they said in each micro-batch."""

    def __init__(
        self, session: SparkSession, circuit: Circuit, place: Path, *, pages: int = 3, layout: Layout = PAIR,
        exact: bool = True,
    ) -> None:  # fmt: skip
        self.circuit = circuit
        self.place = place
        self.layout = layout
        self.steps: list[tuple[int, dict[str, Any]]] = []
        self.scope = StreamScope(circuit, streams(session, circuit, place, layout), pages, exact=exact)
        self.number = sum(1 for name in circuit.sources for _ in (place / name).glob("*.parquet"))
        self.results = {name: self.scope.result(name) for name in circuit.sinks}
        frames = [
            batch.frame.mapInArrow(packing(name), "sink STRING, rows BINARY") for name, batch in self.results.items()
        ]
        writer = functools.reduce(lambda one, other: one.unionAll(other), frames).writeStream.foreachBatch(self._take)
        self.query = writer.option("checkpointLocation", str(place / "checkpoint")).start()

    def _take(self, frame: DataFrame, number: int) -> None:
        results: dict[str, list[Any]] = {name: [] for name in self.circuit.sinks}
        for row in frame.collect():
            layout = self.results[row.sink].layout
            results[row.sink] += items_of(as_declared(from_bytes(row.rows), layout), layout)
        self.steps.append((number, {name: self._zset(name, items) for name, items in results.items()}))

    def _zset(self, name: str, items: list[Any]) -> Any:
        port = self.circuit.sinks[name].inputs[0]
        carries = self.circuit.nodes[port.node].carries[port.output]
        return ZSet(items) if carries is Carries.ZSET else IndexedZSet(items)

    def step(self, deltas: Mapping[str, Mapping[Any, int]]) -> dict[str, Any]:
        """The changes of the sinks."""
        before = len(self.steps)
        for name, rows in deltas.items():
            if rows:
                wrote(self.place / name, self.number, dict(rows.items()), self.layout)
                self.number += 1
        self.query.processAllAvailable()
        empty = {name: self._zset(name, []) for name in self.circuit.sinks}
        some = [empty, *[changes for _, changes in self.steps[before:]]]
        return {name: functools.reduce(operator.add, [changes[name] for changes in some]) for name in empty}

    def stop(self) -> None:
        """End the query."""
        self.query.stop()


def alike(session: SparkSession, build: Callable[[], Circuit], steps: Iterable[Mapping[str, Any]], place: Path) -> None:
    """The same circuit in this process and as a stream: the same changes after each step."""
    local, stepped = build(), Stepped(session, build(), place)
    try:
        for number, deltas in enumerate(steps):
            wanted, result = local.step(deltas), stepped.step(deltas)
            for name in local.sinks:
                assert shown(result[name]) == shown(wanted[name]), f"step {number}, sink {name}, after {deltas}"
    finally:
        stepped.stop()


def shown(change: Any) -> list[str]:
    """Elements and weights, in an order."""
    return sorted(map(repr, change.items()))
