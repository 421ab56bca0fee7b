"""Engines of a followed stream: a circuit that takes each micro-batch once, however often Spark hands it over.

``step(frame, number)`` is the circuit's step of micro-batch *number*.  The last number again gives the changes that
were recorded with it, an earlier one none; so what comes behind the engine may be killed between its commit and their
own.

Source: ``docs/design/spark.md``, "The path of a batch" and "The second engine".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from syndicate.errors import SnapshotDamaged, SourceError, StateError
from syndicate.flow import snapshot as snapshots
from syndicate.flow.circuit import Circuit
from syndicate.flow.element import Element
from syndicate.flow.encoding import decoded, encoded
from syndicate.flow.local_engine import LocalEngine
from syndicate.flow.zset import ZSet
from syndicate.spark.arrow import arrow_table
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.inputs import Frame
from syndicate.storage.files import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from syndicate.spark.engine.output import Delta

_STATE: Final = "circuit"


SinkChange: TypeAlias = "Delta | Sequence[tuple[Element, int]]"
"""Elements and weights."""


class Steps(Protocol):
    """An engine in a directory that lasts, or, for None, in a temporary one."""

    def step(self, frame: DataFrame, number: int) -> Mapping[str, SinkChange]:
        """The changes of each sink: pairs of elements and weights."""

    def close(self) -> None:
        """Give the directory back."""


class SparkSteps:
    """A :class:`SparkEngine`, in which the rows stay where they are."""

    def __init__(
        self, circuit: Circuit, source: str, weight: str | None, session: SparkSession, state: Path | None
    ) -> None:
        self.source = source
        self.weight = weight
        self.engine = SparkEngine(circuit, session, state=state)

    def step(self, frame: DataFrame, number: int) -> Mapping[str, SinkChange]:
        """One epoch."""
        change: Frame = frame if self.weight is None else (frame, self.weight)
        return self.engine.step({self.source: change}, epoch=number)

    def close(self) -> None:
        """Give the directory back."""
        self.engine.close()


class LocalSteps:
    """The engine of this process, for states that it can hold: each step writes its snapshot, as large as the state."""

    def __init__(self, circuit: Circuit, source: str, weight: str | None, state: Path | None) -> None:
        self.source = source
        self.weight = weight
        self.path = None if state is None else state / _STATE
        self.engine = LocalEngine(circuit)
        self.batch = -1
        self.recorded: dict[str, list[tuple[Element, int]]] = {}
        if state is not None:
            state.mkdir(parents=True, exist_ok=True)
        if self.path is not None and self.path.exists():
            self._load(self.path, circuit)

    def _load(self, path: Path, circuit: Circuit) -> None:
        try:
            self.batch, recorded, data = decoded(path.read_bytes())
            self.recorded = {name: list(pairs) for name, pairs in recorded}
        except (ValueError, TypeError, LookupError) as error:
            raise SnapshotDamaged(f"{path} holds no state of a circuit ({error}): restore it from a copy") from error
        self.engine = snapshots.restored(circuit, data)

    def step(self, frame: DataFrame, number: int) -> Mapping[str, SinkChange]:
        """One epoch; kept before its changes are sent."""
        if number <= self.batch:
            return self.recorded if number == self.batch else {}
        changed = self.engine.step({self.source: self._rows(frame)})
        changes = {name: list(changed[name].items()) for name in self.engine.circuit.sinks}
        if self.path is not None:
            self._keep(self.path, number, changes)
        self.batch, self.recorded = number, changes
        return changes

    def _keep(self, path: Path, number: int, changes: Mapping[str, SinkChange]) -> None:
        recorded = tuple((name, tuple(pairs)) for name, pairs in changes.items())
        content = encoded((number, recorded, snapshots.snapshot(self.engine)))
        try:
            replace(path, content)
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error.strerror}; the last step is done again") from error

    def _rows(self, frame: DataFrame) -> ZSet:
        table = arrow_table(self.source, frame)
        weights = [1] * table.num_rows
        if self.weight is not None:
            if table.column(self.weight).null_count:
                raise SourceError(
                    f"the column {self.weight!r} holds the weights of the source {self.source!r}, but is null in some "
                    "rows"
                )
            weights = table.column(self.weight).to_pylist()
            table = table.drop_columns([self.weight])
        columns = [
            [item + 0.0 if type(item) is float else item for item in column.to_pylist()] for column in table.columns
        ]
        return ZSet(zip(zip(*columns, strict=True), weights, strict=True))

    def close(self) -> None:
        """Nothing is open."""
