"""A scope: one circuit, root or loop, run on Spark one tick at a time.

The nodes run in topological order; a node without input gives nothing and costs nothing.  What several nodes read, or
what is kept, is computed once and *settled* (:meth:`syndicate.spark.engine.batch.FrameStore.settled`); everything else
is passed on as Spark's plan, so that a chain of operators is one job.

A loop is a child circuit driven to its fixed point, one tick an iteration. What it computes is a function of the
collections that enter it. Run from nothing it needs no times: iteration 0 gets the whole of the imports, each following
one what the feedbacks took in, and each operator is the one of the root, with the iterations as its steps. The sum over
the iterations is the collection; its difference from that of the step before is what the loop gives. That is exact for
any loop, also in a loop, whose iterations are then the inner one's steps.

**The cost switch.**  Where a loop makes sets of the monotone kind and a step only inserts, the old fixed point is on
the way to the new one: the loop goes on from what it has kept, and the step costs the iterations that the insertion
takes. A deletion is never followed: it would need the iteration of each derivation, and each iteration is a round of
Spark jobs, 0.2 to 0.4 s, whatever it finds; computing again needs no more of them.

Source: ``docs/design/flow.md``, "Loops"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from syndicate.errors import CircuitError
from syndicate.flow.node import Carries, Kind, Netlist, Node, Port, StaticProperties, restless
from syndicate.spark.engine import groups, joins, linear, trace_operators
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.context import Shared, TickContext
from syndicate.spark.engine.sums import FORMS, GroupSums
from syndicate.spark.engine.trace import StoredTrace, StoredTraceView
from syndicate.spark.engine.trace_operators import base_of

OPERATORS: Final[dict[str, Callable[[TickContext, Node], Batch | StoredTraceView | None]]] = {
    **linear.OPERATORS,
    "inspect": linear.run_inspect,
    "join": joins.run_join,
    "join_stream": joins.run_join_stream,
    "join_trace": joins.run_join_trace,
    "distinct": groups.run_distinct,
    "distinct_stream": groups.run_distinct_stream,
    "distinct_incremental": groups.run_distinct_trace,
    "distinct_trace": groups.run_distinct_trace,
    "aggregate": groups.run_aggregate,
    "aggregate_stream": groups.run_aggregate_stream,
    "integrate": trace_operators.run_integrate,
    "differentiate": trace_operators.run_differentiate,
    "trace_append": trace_operators.run_trace_append,
    "untimed_trace_append": trace_operators.run_trace_append,
    "consolidate": trace_operators.run_consolidate,
}
"""What runs each operator; the other kinds of node are the scope's own business."""

KEPT: Final = {"distinct": "totals", "integrate": "sum", "differentiate": "previous", "z1": "previous"}
"""What operators keep for themselves."""

TICKING: Final = frozenset({
    "join_stream", "join_trace", "distinct_stream", "distinct_incremental", "aggregate_stream", "integrate",
    "differentiate", "consolidate",
})  # fmt: skip
"""Operators that tell one tick from another: in a loop that is run again in each step they would not mean the same."""


class SparkScope(TickContext):
    """One circuit made ready to run; see the module."""

    def __init__(
        self, engine: Shared, circuit: Netlist, above: SparkScope | None = None, *, lasting: bool = True
    ) -> None:
        """*lasting*: its traces outlast the step."""
        super().__init__(engine, circuit, lasting=lasting)
        self.above = above
        self.order = circuit.order()
        self.loops: dict[int, SparkLoop] = {}
        for node in self.order:
            self._prepare(node)

    def _prepare(self, node: Node) -> None:
        for port in node.inputs if node.kind is not Kind.IMPORT else ():
            self.readers[port] = self.readers.get(port, 0) + 1
        if node.child is not None:
            self.loops[node.id] = SparkLoop(self.engine, node.child, self)
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
            summed = self.above is None and node.params["aggregate"].form in FORMS
            self.arrange(node.inputs[0], sought=not summed)
            if summed:
                self.sums[node.id] = GroupSums(node.params["aggregate"])
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

    def all_traces(self) -> list[StoredTrace]:
        """Those of the loops, too."""
        traces_below = list(self.traces.values())
        for loop in self.loops.values():
            traces_below += loop.all_traces()
        return traces_below

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

    def tick(self, inputs: dict[Port, Batch | None]) -> None:
        """One tick: *inputs* is what sources, imports and feedbacks carry."""
        self.cells.clear()
        for node in self.order:
            if node.op == "z1_trace":
                self.views[node.id] = StoredTraceView(self.trace(self.keeper(node), "trace"))
        for port, batch in inputs.items():
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
            self.views[node.id] = (
                self.view(port) if node.op == "forward" else trace_operators.run_trace_append(self, node)
            )
            return
        batch = OPERATORS[node.op](self, node)
        assert not isinstance(batch, StoredTraceView)
        self.put(Port(node.id), batch)

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

    def _copied(self, view: StoredTraceView, node: Node) -> Batch | None:
        layout = self.layouts.of(self.circuit, node.inputs[0])
        whole = None if layout is None else view.whole(layout)
        return self.frames.settled(whole, (node.global_id, "copy"))


class SparkLoop(SparkScope):
    """A child circuit made ready to run."""

    def __init__(self, engine: Shared, circuit: Netlist, above: SparkScope) -> None:
        assert circuit.child_node is not None
        self.node = circuit.child_node
        self.around = above
        self.free = above.above is None and StaticProperties(circuit, StaticProperties(above.circuit)).is_free()
        self.entering: dict[Port, StoredTrace] = {}
        super().__init__(engine, circuit, above, lasting=self.free)
        for node in circuit.imports:
            port = Port(node.id)
            if port in self.arrangements:
                self.traces.pop(self.arrangements[port].name)
            keyed = node.carries[0] is Carries.INDEXED
            self.entering[port] = above.make_trace(node, "entering", keyed=keyed)
            if port in self.arrangements:
                self.arrangements[port] = self.entering[port]
        self.results = [above.make_trace(self.node, f"result {i}") for i, _ in enumerate(circuit.exports)]
        self.runs = 0

    def run(self) -> list[Batch | None]:
        """One tick of the scope around: the changes of what is exported."""
        deltas: dict[Port, Batch] = {}
        for node in self.circuit.imports:
            port = Port(node.id)
            batch, layout = self.around.settled(node.inputs[0]), self.layouts.of(self.circuit, port)
            if batch is not None and layout is not None:
                aligned = self.frames.settled(self.frames.aligned(batch, layout), (self.circuit.path, port, "entering"))
                assert aligned is not None
                deltas[port] = aligned
        if not deltas:
            return [None] * len(self.circuit.exports)
        grows = self.free and self.engine.grown.get(self.node.id, False) and all(map(_inserts, deltas.values()))
        for port, batch in deltas.items():
            self.entering[port].take(batch)
        totals = self._iterate(dict(deltas)) if grows else self._recomputed()
        if self.free and not grows:
            self.engine.grown[self.node.id] = all(map(self._is_positive, self.entering.values()))
        return [self._difference(number, total, grows=grows) for number, total in enumerate(totals)]

    def _difference(self, number: int, total: Batch | None, *, grows: bool) -> Batch | None:
        before = self.results[number]
        old = None if grows else before.whole()
        change = total
        if old is not None:
            layout = self.layouts.of(self.around.circuit, Port(self.node.id, number))
            assert layout is not None
            less = self.frames.aligned(old.negated(), layout)
            change = less if total is None else self.frames.aligned(total, layout).plus(less)
        change = self.frames.settled(change, (self.node.global_id, number))
        before.take(change)
        return change

    def _recomputed(self) -> list[Batch | None]:
        """From nothing."""
        for trace in self.traces.values():
            trace.reset()
        inputs: dict[Port, Batch | None] = {}
        for port, trace in self.entering.items():
            whole = trace.whole()
            inputs[port] = self.frames.settled(whole, (self.circuit.path, port, "whole"))
            trace.hidden = True
        return self._iterate(inputs)

    def _iterate(self, inputs: dict[Port, Batch | None]) -> list[Batch | None]:
        sums = [StoredTrace(self.frames, "sum", lasting=False) for _ in self.circuit.exports]
        limit: int = self.node.params["limit"]
        for _ in range(limit):
            self.engine.iterations += 1
            self.tick(inputs)
            for number, port in enumerate(self.circuit.exports):
                sums[number].take(self.settled(port))
                sums[number].tick()
            inputs = dict(self.absorb())
            for trace in self.entering.values():
                trace.hidden = False
                trace.tick()
            if not inputs:
                return [self._sum(total) for total in sums]
        raise restless(self.node, limit)

    def put(self, port: Port, batch: Batch | None) -> None:
        """What enters is in its trace already."""
        if port in self.entering:
            self.cells[port] = batch
        else:
            super().put(port, batch)

    def _sum(self, total: StoredTrace) -> Batch | None:
        return self.frames.settled(total.whole(), (self.circuit.path, "sum"))

    def _is_positive(self, trace: StoredTrace) -> bool:
        whole = trace.whole()
        settled = self.frames.settled(whole, (self.circuit.path, "positive"))
        return settled is None or _inserts(settled)


def _inserts(batch: Batch) -> bool:
    """Whether no weight of a settled batch is below 0."""
    if batch.table is not None:
        import pyarrow.compute as pc

        return bool(pc.min(batch.table.column("w")).as_py() > 0)
    return batch.frame.where("w < 0").limit(1).count() == 0
