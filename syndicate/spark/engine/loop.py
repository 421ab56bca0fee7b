"""A loop on Spark: a child circuit driven to its fixed point, one tick an iteration.

What a loop computes is a function of the collections that enter it.  Run from nothing it needs no times: iteration 0
gets the whole of the imports, each following one what the feedbacks took in, and each operator is the one of the root,
with the iterations as its steps.  The sum over the iterations is the collection; its difference from that of the step
before is what the loop gives.  That is exact for any loop, also in a loop, whose iterations are then the inner one's
steps.

**The cost switch.**  Where a loop makes sets of the monotone kind and a step only inserts, the old fixed point is on
the way to the new one: the loop goes on from what it has kept, and the step costs the iterations that the insertion
takes. A deletion is never followed: it would need the iteration of each derivation, and each iteration is a round of
Spark jobs, 0.2 to 0.4 s, whatever it finds; computing again needs no more of them.

Source: ``docs/design/flow.md``, "Loops"; ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.errors import EndlessLoop
from syndicate.flow.circuit import Circuit
from syndicate.flow.node import Carries, Port
from syndicate.flow.properties import Nature
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.scope import Scope
from syndicate.spark.engine.trace import Trace

if TYPE_CHECKING:
    from syndicate.spark.engine.engine import SparkEngine


class Loop(Scope):
    """A child circuit made ready to run."""

    def __init__(self, engine: SparkEngine, circuit: Circuit, above: Scope) -> None:
        assert circuit.child_node is not None
        self.node = circuit.child_node
        self.around = above
        self.free = above.above is None and Nature(circuit, Nature(above.circuit)).is_free()
        self.entering: dict[Port, Trace] = {}
        super().__init__(engine, circuit, above, kept=self.free)
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
        totals = self._iterate(dict(deltas)) if grows else self._anew()
        if self.free and not grows:
            self.engine.grown[self.node.id] = all(map(self._is_positive, self.entering.values()))
        return [self._difference(number, total, grows=grows) for number, total in enumerate(totals)]

    def _difference(self, number: int, total: Batch | None, *, grows: bool) -> Batch | None:
        kept = self.results[number]
        old = None if grows else kept.whole()
        change = total
        if old is not None:
            layout = self.layouts.of(self.around.circuit, Port(self.node.id, number))
            assert layout is not None
            less = self.frames.aligned(old.negated(), layout)
            change = less if total is None else self.frames.aligned(total, layout).plus(less)
        change = self.frames.settled(change, (self.node.global_id, number))
        kept.take(change)
        return change

    def _anew(self) -> list[Batch | None]:
        """From nothing."""
        for trace in self.traces.values():
            trace.reset()
        given: dict[Port, Batch | None] = {}
        for port, trace in self.entering.items():
            whole = trace.whole()
            given[port] = self.frames.settled(whole, (self.circuit.path, port, "whole"))
            trace.hidden = True
        return self._iterate(given)

    def _iterate(self, given: dict[Port, Batch | None]) -> list[Batch | None]:
        sums = [Trace(self.frames, "sum", kept=False) for _ in self.circuit.exports]
        limit: int = self.node.params["limit"]
        for _ in range(limit):
            self.engine.iterations += 1
            self.tick(given)
            for number, port in enumerate(self.circuit.exports):
                sums[number].take(self.settled(port))
                sums[number].tick()
            given = dict(self.absorb())
            for trace in self.entering.values():
                trace.hidden = False
                trace.tick()
            if not given:
                return [self._sum(total) for total in sums]
        raise EndlessLoop(
            f"{self.node} did not come to rest within {limit} iterations. Each pass of a loop must end in a "
            "distinct (recursive() adds one), and its functions must not make new elements for ever; a longer "
            "way takes limit=..."
        )

    def put(self, port: Port, batch: Batch | None) -> None:
        """What enters is in its trace already."""
        if port in self.entering:
            self.cells[port] = batch
        else:
            super().put(port, batch)

    def _sum(self, total: Trace) -> Batch | None:
        return self.frames.settled(total.whole(), (self.circuit.path, "sum"))

    def _is_positive(self, trace: Trace) -> bool:
        whole = trace.whole()
        settled = self.frames.settled(whole, (self.circuit.path, "positive"))
        return settled is None or _inserts(settled)


def _inserts(batch: Batch) -> bool:
    """Whether no weight of a settled batch is below 0."""
    if batch.table is not None:
        import pyarrow.compute as pc

        return bool(pc.min(batch.table.column("w")).as_py() > 0)
    return batch.frame.where("w < 0").limit(1).count() == 0
