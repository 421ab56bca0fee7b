"""A loop: a child circuit's scope, which runs to its fixed point within one tick of the scope around it.

Iteration 0 gets the imports; then comes one iteration after the other as long as a feedback has taken something in or
an operator has put work aside for a later iteration.  The loop stops when neither is the case, not at the first
iteration without changes; iterations in which nothing would happen are skipped.  What it exports is the sum over all
iterations.

Source: seed 003, 2.8.2 to 2.8.4; reference/flow.md, section 7 (delta0, termination, iteration bound).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syndicate.errors import EndlessLoop
from syndicate.flow.element import add_up, plus
from syndicate.flow.node import Node, Port
from syndicate.flow.operators.linear import added_rows
from syndicate.flow.restart import Restart
from syndicate.flow.scope import Scope

if TYPE_CHECKING:
    from syndicate.flow.circuit import Circuit
    from syndicate.flow.local import LocalEngine


class Loop(Scope):
    """A child circuit made ready to run."""

    def __init__(self, engine: LocalEngine, circuit: Circuit, above: Scope, position: int) -> None:
        super().__init__(engine, circuit, above, position)
        self.around = above
        self.imports = [(self.slots[Port(node.id)], above.slots[node.inputs[0]]) for node in circuit.imports]
        self.exports = [self.slots[port] for port in circuit.exports]
        self.ports = [position + 1 + number for number in range(len(self.exports))]
        self.restart = Restart.of(self)
        assert circuit.child_node is not None
        self.node = circuit.child_node

    ports: list[int]

    def schedule(self, when: Any, node: Node) -> None:
        """Let a node run at a later inner time of this epoch."""
        self.schedule_at(when, self.place_of(node))

    def schedule_at(self, when: Any, position: int) -> None:
        """The same of a position; the loops around have to come to that time, too."""
        prefix: Any = () if self.depth == 1 else when[:-1]
        iteration: int = when if self.depth == 1 else when[-1]
        self.agenda.setdefault(prefix, {}).setdefault(iteration, {})[position] = None
        if prefix != self.prefix:
            self.around.schedule_at(prefix if len(prefix) > 1 else prefix[0], self.position)

    def again(self, node: Node) -> None:
        """Let a node run in the next iteration, if this is a loop."""
        self.schedule(self.now + 1 if self.depth == 1 else (*self.now[:-1], self.now[-1] + 1), node)

    def run_loop(self) -> None:
        """One tick of the scope around: iterate until nothing is left to do, then give the sums."""
        self.prefix = self.around.inner()
        batches = [(inner, batch) for inner, outer in self.imports if (batch := self.around.cells[outer])]
        if self.restart is None:
            totals, _ = self.iterate(batches)
        else:
            totals = self.restart.run(batches)
        for slot, total in zip(self.ports, totals or (), strict=False):
            if total:
                self.around.put(slot, total)

    def iterate(self, batches: list[tuple[int, Any]], budget: float = float("inf")) -> tuple[list[Any] | None, int]:
        """The sums of the exports, and how many rows went through; None if that exceeded the budget."""
        for cell in self.begun:
            self.undo.append((cell.restore, cell.value))
            cell.value = {}
        for slot, batch in batches:
            self.put(slot, batch)
        totals: list[Any] = [None] * len(self.exports)
        owned = [False] * len(self.exports)
        prefix = self.prefix
        agenda = self.agenda.setdefault(prefix, {})
        iteration = runs = work = 0
        limit: int = self.node.params["limit"]
        cells, taken = self.cells, dict[int, Any]()
        while True:
            self.now = iteration if self.depth == 1 else (*prefix, iteration)
            for slot, batch in taken.items():
                self.put(slot, batch)
            for position in agenda.pop(iteration, ()):
                self.mark(position)
            self.run()
            for number, slot in enumerate(self.exports):
                if cells[slot]:
                    totals[number], owned[number] = _add(totals[number], cells[slot], owned=owned[number])
            if self.restart is not None:
                work += sum([len(cells[slot]) for slot in self.touched])
                if work > budget:
                    return None, work
            taken = self.finish()
            if taken:
                iteration += 1
            elif agenda:
                iteration = min(agenda)
            else:
                break
            runs += 1
            if runs >= limit:
                raise EndlessLoop(
                    f"{self.node} did not come to rest within {limit} iterations. Each pass of a loop must end in a "
                    "distinct (recursive() adds one), and its functions must not make new elements for ever; a longer "
                    "way takes limit=..."
                )
        del self.agenda[prefix]
        return totals, work


def _add(total: Any, batch: Any, *, owned: bool) -> tuple[Any, bool]:
    """The sum of two batches, in place once the first is ours."""
    if not total:
        return batch, False
    if isinstance(batch, list):
        return added_rows(total, batch), True  # type: ignore[arg-type]
    if owned and type(total) is type(batch) and total.keys().isdisjoint(batch):
        total.update(batch)
        return total, True
    if owned and type(total) is type(batch) and len(batch) < len(total):
        return add_up(total, batch.items()), True
    return plus(total, batch), bool(batch)
