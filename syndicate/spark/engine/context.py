"""What an operator on Spark sees of the scope that it runs in: what its inputs carry, and what is kept for it.

The scope itself, which runs the operators, is :class:`syndicate.spark.engine.scope.SparkScope`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.flow.node import Carries, Netlist, Node, Port
from syndicate.flow.zset import IndexedZSet, ZSet
from syndicate.spark.engine.batch import Batch, FrameStore, as_declared
from syndicate.spark.engine.layouts import Layouts
from syndicate.spark.engine.rows import items_of
from syndicate.spark.engine.shape import Layout
from syndicate.spark.engine.sums import GroupSums
from syndicate.spark.engine.trace import StoredTrace, StoredTraceView
from syndicate.values.value import Value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class Shared:
    """What the scopes of one engine share: how it computes, and the traces that are stored but not yet made."""

    session: SparkSession
    frames: FrameStore
    layouts: Layouts
    epoch: int
    iterations: int
    grown: dict[int, bool]
    stored: dict[str, Value]


class TickContext:
    """One circuit's streams in a tick, and the traces of its nodes."""

    def __init__(self, engine: Shared, circuit: Netlist, *, lasting: bool = True) -> None:
        """*lasting*: its traces outlast the step."""
        self.engine = engine
        self.circuit = circuit
        self.lasting = lasting
        self.frames = engine.frames
        self.session = engine.session
        self.layouts = engine.layouts
        self.cells: dict[Port, Batch | None] = {}
        self.views: dict[int, StoredTraceView] = {}
        self.traces: dict[str, StoredTrace] = {}
        self.arrangements: dict[Port, StoredTrace] = {}
        self.sums: dict[int, GroupSums] = {}
        self.readers: dict[Port, int] = {}
        self.delayed: dict[Port, Batch] = {}

    # ----------------------------------------------------------------------------------------------- what is kept

    def make_trace(self, node: Node, name: str, *, keyed: bool = False, lasting: bool | None = None) -> StoredTrace:
        """What a node keeps, by a name that is the same in every run."""
        name = f"{'.'.join(map(str, node.global_id))} {name}"
        trace = StoredTrace(self.frames, name, keyed=keyed, lasting=self.lasting if lasting is None else lasting)
        self.traces[name] = trace
        trace.load(self.engine.stored.pop(name, ()))
        return trace

    def trace(self, node: Node, name: str) -> StoredTrace:
        """The same, once it is made."""
        return self.traces[f"{'.'.join(map(str, node.global_id))} {name}"]

    def arrange(self, port: Port, *, sought: bool = True) -> None:
        """Let a stream's sum be kept, by key: one for all that ask; *sought*: who asks wants the rows of some keys."""
        if port not in self.arrangements:
            node = self.circuit.nodes[port.node]
            self.arrangements[port] = self.make_trace(node, f"index {port.output}", keyed=True)
            self.arrangements[port].sought = False
        self.arrangements[port].sought |= sought

    def arrangement(self, port: Port) -> StoredTrace:
        """The sum of an indexed stream."""
        return self.arrangements[port]

    # ----------------------------------------------------------------------------------------------- what nodes ask

    def layout(self, node: Node) -> Layout:
        """The layout of what a node gives."""
        layout = self.layouts.of(self.circuit, Port(node.id))
        assert layout is not None, node
        return layout

    def input(self, node: Node, number: int = 0) -> Batch | None:
        """What a node reads; computed first, if others read it too."""
        port = node.inputs[number]
        if self.readers[port] > 1:
            return self.settled(port)
        return self.cells.get(port)

    def settled(self, port: Port) -> Batch | None:
        """What a stream carries in this tick, computed and added up."""
        batch = self.cells.get(port)
        if batch is not None and batch.rows is None:
            batch = self.cells[port] = self.frames.settled(batch, (self.circuit.path, port))
        return batch

    def view(self, port: Port) -> StoredTraceView:
        """What a stream of traces carries."""
        return self.views[port.node]

    def shown(self, batch: Batch | None, carries: Carries) -> ZSet | IndexedZSet:
        """A settled batch as the user sees it."""
        items = [] if batch is None else list(items_of(collected(batch), batch.layout))
        return ZSet(items) if carries is Carries.ZSET else IndexedZSet(items)

    def is_first(self) -> bool:
        """Whether this is the first epoch of all."""
        return self.engine.epoch == 0


def collected(batch: Batch) -> pa.Table:
    """A settled batch as a table in the driver, whatever its size."""
    return batch.table if batch.table is not None else as_declared(batch.frame.toArrow(), batch.layout)
