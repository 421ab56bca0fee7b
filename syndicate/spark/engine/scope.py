"""A scope: one circuit, root or loop, run on Spark one tick at a time.

The nodes run in topological order; a node without input gives nothing and costs nothing.  What several nodes read, or
what is kept, is computed once and *settled* (:meth:`syndicate.spark.engine.batch.Frames.settled`); everything else is
passed on as Spark's plan, so that a chain of operators is one job.

Source: ``docs/design/flow.md``, "Loops"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from syndicate.errors import CircuitError
from syndicate.flow.circuit import Circuit
from syndicate.flow.node import Carries, Kind, Node, Port
from syndicate.flow.zset import IndexedZSet, ZSet
from syndicate.spark.engine import groups, joins, linear, traces
from syndicate.spark.engine.batch import Batch, as_declared
from syndicate.spark.engine.rows import items_of
from syndicate.spark.engine.shape import Layout
from syndicate.spark.engine.trace import Trace
from syndicate.spark.engine.traces import View, base_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from syndicate.spark.engine.batch import Frames
    from syndicate.spark.engine.engine import SparkEngine
    from syndicate.spark.engine.layouts import Layouts
    from syndicate.spark.engine.loop import Loop

OPERATORS: Final[dict[str, Callable[[Scope, Node], Any]]] = {
    "map": linear.run_map,
    "filter": linear.run_filter,
    "flat_map": linear.run_flat_map,
    "index_with": linear.run_index_with,
    "negate": linear.run_negate,
    "plus": linear.run_plus,
    "minus": linear.run_minus,
    "inspect": linear.run_inspect,
    "pairs": linear.run_pairs,
    "keys": linear.run_keys,
    "values": linear.run_values,
    "forward": linear.run_forward,
    "join": joins.run_join,
    "join_stream": joins.run_join_stream,
    "join_trace": joins.run_join_trace,
    "distinct": groups.run_distinct,
    "distinct_stream": groups.run_distinct_stream,
    "distinct_incremental": groups.run_distinct_trace,
    "distinct_trace": groups.run_distinct_trace,
    "aggregate": groups.run_aggregate,
    "aggregate_stream": groups.run_aggregate_stream,
    "integrate": traces.run_integrate,
    "differentiate": traces.run_differentiate,
    "trace_append": traces.run_trace_append,
    "untimed_trace_append": traces.run_trace_append,
    "consolidate": traces.run_consolidate,
}
"""What runs each operator; the other kinds of node are the scope's own business."""

KEPT: Final = {"distinct": "totals", "integrate": "sum", "differentiate": "previous", "z1": "previous"}
"""What operators keep for themselves."""

TICKING: Final = frozenset({
    "join_stream", "join_trace", "distinct_stream", "distinct_incremental", "aggregate_stream", "integrate",
    "differentiate", "consolidate",
})  # fmt: skip
"""Operators that tell one tick from another: in a loop that is run again in each step they would not mean the same."""


class Scope:
    """One circuit made ready to run; see the module."""

    def __init__(self, engine: SparkEngine, circuit: Circuit, above: Scope | None = None, *, kept: bool = True) -> None:
        """*kept*: its traces outlast the step."""
        self.engine = engine
        self.circuit = circuit
        self.above = above
        self.kept = kept
        self.frames: Frames = engine.frames
        self.session: SparkSession = engine.session
        self.layouts: Layouts = engine.layouts
        self.order = circuit.order()
        self.cells: dict[Port, Batch | None] = {}
        self.views: dict[int, View] = {}
        self.traces: dict[str, Trace] = {}
        self.arrangements: dict[Port, Trace] = {}
        self.loops: dict[int, Loop] = {}
        self.readers: dict[Port, int] = {}
        self.delayed: dict[Port, Batch] = {}
        for node in self.order:
            self._prepare(node)

    def _prepare(self, node: Node) -> None:
        for port in node.inputs if node.kind is not Kind.IMPORT else ():
            self.readers[port] = self.readers.get(port, 0) + 1
        if node.child is not None:
            self.loops[node.id] = self.engine.make_loop(node.child, self)
            for imported in node.child.imports:
                self.readers[imported.inputs[0]] = self.readers.get(imported.inputs[0], 0) + 1
        elif node.op in TICKING and self.above is not None:
            raise CircuitError(
                f"{node} looks at single ticks, which a loop on Spark does not keep: use the incremental operator "
                "(join, distinct, aggregate), take it out of the loop, or run the circuit on the local engine"
            )
        elif node.op == "join":
            for port in node.inputs:
                self.arrange(port)
        elif node.op == "aggregate" and node.params["aggregate"].form != "count":
            self.arrange(node.inputs[0])
        elif node.op == "z1_trace":
            if self.keeper(node) is node:
                self.make_trace(node, "trace", keyed=self._is_keyed(node.inputs[0]))
        elif node.op == "aggregate":
            self.make_trace(node, "counts", keyed=True)
        elif node.op in KEPT and not (node.op == "z1" and self.above is not None):
            self.make_trace(node, KEPT[node.op])
        elif node.op == "source" and "key" in node.params:
            self.make_trace(node, "current", keyed=True)
        elif node.op == "source" and "unique" in node.params:
            self.make_trace(node, "held")

    def keeper(self, node: Node) -> Node:
        """The ``z1_trace`` that keeps what this one is a view of: one that takes in the same is not kept twice."""
        base = base_of(node.inputs[0], self.circuit.nodes[node.inputs[0].node])
        return base if base.op == "z1_trace" and base.inputs == node.inputs else node

    def _is_keyed(self, port: Port) -> bool:
        """Whether a stream of traces is of indexed ones."""
        node, seen = self.circuit.nodes[port.node], set()
        while node.id not in seen:
            seen.add(node.id)
            first = self.circuit.nodes[node.inputs[0].node]
            if node.op in ("trace_append", "untimed_trace_append"):
                return first.carries[node.inputs[0].output] is Carries.INDEXED
            node = first
        return False

    # ----------------------------------------------------------------------------------------------- what is kept

    def make_trace(self, node: Node, name: str, *, keyed: bool = False, kept: bool | None = None) -> Trace:
        """What a node keeps, by a name that is the same in every run."""
        name = f"{'.'.join(map(str, node.global_id))} {name}"
        made = Trace(self.frames, name, keyed=keyed, kept=self.kept if kept is None else kept)
        self.traces[name] = made
        made.load(self.engine.stored.pop(name, ()))
        return made

    def trace(self, node: Node, name: str) -> Trace:
        """The same, once it is made."""
        return self.traces[f"{'.'.join(map(str, node.global_id))} {name}"]

    def arrange(self, port: Port) -> None:
        """Let a stream's sum be kept, by key: one for all that ask."""
        if port not in self.arrangements:
            node = self.circuit.nodes[port.node]
            self.arrangements[port] = self.make_trace(node, f"index {port.output}", keyed=True)

    def arrangement(self, port: Port) -> Trace:
        """The sum of an indexed stream."""
        return self.arrangements[port]

    def all_traces(self) -> list[Trace]:
        """Those of the loops, too."""
        found = list(self.traces.values())
        for loop in self.loops.values():
            found += loop.all_traces()
        return found

    # ----------------------------------------------------------------------------------------------- what nodes ask

    def layout(self, node: Node) -> Layout:
        """The layout of what a node gives."""
        found = self.layouts.of(self.circuit, Port(node.id))
        assert found is not None, node
        return found

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

    def view(self, port: Port) -> View:
        """What a stream of traces carries."""
        return self.views[port.node]

    def shown(self, batch: Batch | None, carries: Carries) -> ZSet | IndexedZSet:
        """A settled batch as the user sees it."""
        items = [] if batch is None else list(items_of(collected(batch), batch.layout))
        return ZSet(items) if carries is Carries.ZSET else IndexedZSet(items)

    def is_first(self) -> bool:
        """Whether this is the first epoch of all."""
        return self.engine.epoch == 0

    # ----------------------------------------------------------------------------------------------- running

    def put(self, port: Port, batch: Batch | None) -> None:
        """Let a stream carry a batch in this tick."""
        if batch is not None:
            layout = self.layouts.of(self.circuit, port)
            assert layout is not None, port
            batch = self.frames.aligned(batch, layout)
        self.cells[port] = batch
        arrangement = self.arrangements.get(port)
        if arrangement is not None:
            arrangement.take(self.settled(port))

    def tick(self, given: dict[Port, Batch | None]) -> None:
        """One tick: *given* is what sources, imports and feedbacks carry."""
        self.cells.clear()
        for node in self.order:
            if node.op == "z1_trace":
                self.views[node.id] = View(self.trace(self.keeper(node), "trace"))
        for port, batch in given.items():
            self.put(port, batch)
        for node in self.order:
            if node.child is not None:
                for output, batch in enumerate(self.loops[node.id].run()):
                    self.put(Port(node.id, output), batch)
            elif node.kind is Kind.OPERATOR:
                self._run(node)

    def _run(self, node: Node) -> None:
        if node.carries[0] is Carries.TRACE:
            port = node.inputs[0]
            self.views[node.id] = self.view(port) if node.op == "forward" else traces.run_trace_append(self, node)
            return
        self.put(Port(node.id), OPERATORS[node.op](self, node))

    def absorb(self) -> dict[Port, Batch]:
        """The tick is over: traces take in what was added; what the feedbacks give in the next tick."""
        taken: dict[Port, Batch] = {}
        for node in self.circuit.nodes:
            if node.op == "z1":
                batch = self.settled(node.inputs[0])
                if batch is not None:
                    taken[Port(node.id)] = batch
        keepers = [node for node in self.circuit.nodes if node.op == "z1_trace" and self.keeper(node) is node]
        views = [(self.trace(node, "trace"), self.view(node.inputs[0]), node) for node in keepers]
        copies = [(own, self._copied(view, node)) for own, view, node in views if view.trace is not own]
        for own, whole in copies:
            own.replace(whole)
        for own, view, _ in views:
            for batch, _ in view.added if view.trace is own else ():
                own.take(batch)
                own.tick()
        for trace in self.traces.values():
            trace.tick()
        return taken

    def _copied(self, view: View, node: Node) -> Batch | None:
        layout = self.layouts.of(self.circuit, node.inputs[0])
        whole = None if layout is None else view.whole(layout)
        return self.frames.settled(whole, (node.global_id, "copy"))


def collected(batch: Batch) -> Any:
    """A settled batch as a table in the driver, whatever its size."""
    return batch.table if batch.table is not None else as_declared(batch.frame.toArrow(), batch.layout)
