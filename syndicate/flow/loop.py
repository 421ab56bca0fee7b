"""A loop: a child circuit's scope, which runs to its fixed point within one tick of the scope around it.

Iteration 0 gets the imports; then comes one iteration after the other as long as a feedback has taken something in or
an operator has put work aside for a later iteration.  The loop stops when neither is the case, not at the first
iteration without changes; iterations in which nothing would happen are skipped.  What it exports is the sum over all
iterations.

An iteration that is fed by feedbacks alone goes through its operators in a straight **line**: where a change is one row
in each of a thousand iterations, as along a chain, marking what is to run would cost as much as doing it (measured).

Source: PomoFlow, 2.8.2 to 2.8.4; ``docs/design/flow.md``, "Loops".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from syndicate.errors import EndlessLoop
from syndicate.flow.element import Rows, add_up, plus
from syndicate.flow.node import Node, Port
from syndicate.flow.operators.arrangement import Arrangement
from syndicate.flow.operators.linear import added_rows
from syndicate.flow.recompute import Restart
from syndicate.flow.scope import STATIC, Scope

if TYPE_CHECKING:
    from syndicate.flow.circuit import Circuit
    from syndicate.flow.local import LocalEngine
    from syndicate.flow.operators import Step
    from syndicate.flow.operators.arrangement import TimedArrangement

SHORT_LINE: Final = 24
"""A loop with more operators than this marks what is to run: most of a line would have nothing to do."""


Place: TypeAlias = "tuple[int, Step, int, int, TimedArrangement | None, list[int]]"
"""An operator's position, what it does, the one or two cells that it reads, what keeps its batches, its feedbacks."""


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
        self.line = self._line()

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
            totals, _ = self.iterate(batches, counted=False)
        else:
            totals = self.restart.run(batches)
        for slot, total in zip(self.ports, totals or (), strict=False):
            if total:
                self.around.put(slot, total)

    def _line(self) -> list[Place] | None:
        """The operators in order.

        None if the loop is within another or has one in it, runs something without input, or is long.
        """
        if self.children or self.traces or self.always or self.depth > 1:
            return None
        fed = [at for given in self.absorbers.values() for at in given]
        places = [at for at, node in enumerate(self.nodes) if node.kind not in STATIC]
        if len(places) > SHORT_LINE or any(self.takers[at] is not None for at in fed):
            return None
        line: list[Place] = []
        for at in places:
            read, taker = self.inputs(self.nodes[at]), self.takers[at]
            if not 1 <= len(read) <= 2 or isinstance(taker, Arrangement):
                return None
            line.append((at, self.steps[at], read[0], read[-1], taker, self.absorbers.get(at, [])))
        return line

    def iterate(
        self, batches: list[tuple[int, Any]], budget: float = float("inf"), *, counted: bool = True
    ) -> tuple[list[Any] | None, int]:
        """The sums of the exports, and, if *counted*, how many rows went through; None if that exceeded the budget."""
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
        line = None if self.engine.measures is not None else self.line
        cells, empties, taken = self.cells, self.empties, dict[int, Any]()
        while True:
            self.now = iteration if self.depth == 1 else (*prefix, iteration)
            straight = line if runs and iteration not in agenda else None
            if straight is not None:
                taken = self._run_line(straight, taken)
            else:
                for slot, batch in taken.items():
                    self.put(slot, batch)
                for position in agenda.pop(iteration, ()):
                    self.mark(position)
                self.run()
            for number, slot in enumerate(self.exports):
                if cells[slot]:
                    totals[number], owned[number] = _add(totals[number], cells[slot], owned=owned[number])
            if counted:
                work += sum([len(cells[slot]) for slot in self.touched])
                if work > budget:
                    return None, work
            if straight is not None:
                for slot in self.touched:
                    cells[slot] = empties[slot]
                self.touched.clear()
            else:
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

    def _run_line(self, line: list[Place], given: dict[int, Any]) -> dict[int, Any]:
        """One iteration, of what the feedbacks were *given*; what they take in."""
        cells, touched, now = self.cells, self.touched, self.now
        closing: list[TimedArrangement] = []
        taken: dict[int, Any] = {}
        for slot, batch in given.items():
            cells[slot] = batch
            touched.append(slot)
        position = -1
        try:
            for position, step, left, right, taker, feedbacks in line:
                if (cells[left] or cells[right]) and (batch := step()):
                    cells[position] = batch
                    touched.append(position)
                    if taker is not None:
                        taker.take(batch)
                        closing.append(taker)
                    for feedback in feedbacks:
                        taken[feedback] = batch
        except Exception as error:
            self.closing += closing
            blamed = self._blamed(position, error)
            if blamed is error:
                raise
            raise blamed from error
        for taker in closing:
            taker.close(now, self.undo)
        return taken


def _add(total: Any, batch: Any, *, owned: bool) -> tuple[Any, bool]:
    """The sum of two batches, in place once the first is ours."""
    if not total:
        return batch, False
    if isinstance(batch, list):
        return added_rows(total, cast(Rows, batch)), True
    if owned and type(total) is type(batch) and total.keys().isdisjoint(batch):
        total.update(batch)
        return total, True
    if owned and type(total) is type(batch) and len(batch) < len(total):
        return add_up(total, batch.items()), True
    return plus(total, batch), bool(batch)
