"""A loop: a child circuit's scope, which runs to its fixed point within one tick of the scope around it.

Iteration 0 gets the imports; then comes one iteration after the other as long as a feedback has taken something in or
an operator has put work aside for a later iteration.  The loop stops when neither is the case, not at the first
iteration without changes; iterations in which nothing would happen are skipped.  What it exports is the sum over all
iterations.

An iteration that is fed by feedbacks alone goes through its operators in a straight **line**: where a change is one row
in each of a thousand iterations, as along a chain, marking what is to run would cost as much as doing it (measured).

A loop is computed again when that costs less than following a change through it.  Following an insertion costs at most
what a new start does.  A deletion may take away and bring back most of a loop's collection, each element several times,
where a new start would only visit what is left: at a tenth of a graph's edges deleted, following its closure costs 1.6
times as much, at half of them 60 times (measured).  So a loop keeps the sum of its imports, and

* starts again at once if a step deletes more than ``MANY_DELETED`` of them;
* else follows the change, but for no more than its budget of rows, a part of what the last start took; then it goes
  back by the undo log and starts again.  The budget is a tenth of a start where more than ``SOME_DELETED`` are deleted,
  since that far the waste is small, and one and a half where fewer are, since then the start is rarely needed.

A start is a step like others: the old state is kept until it has succeeded, and the difference is what is exported.  It
is offered to free loops (:mod:`syndicate.flow.graph`).

So no step costs more than about 1.2 times what recomputing would.

Source: PomoFlow, 2.8.2 to 2.8.4; ``docs/design/flow.md``, "Loops".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Final, TypeAlias, TypeVar

from attrs import define

from syndicate.flow.arrangement import Arrangement, TimedArrangement
from syndicate.flow.element import Batch, Element, Key, Mixed, MixedRows, Rows, add_up, meet, plus
from syndicate.flow.node import Netlist, Node, Port, restless
from syndicate.flow.operators.elementwise import added_rows, paired, unpaired
from syndicate.flow.operators.growing import GrowingFold
from syndicate.flow.scope import STATIC, AbstractEngine, Cell, Scope, Step
from syndicate.flow.undo import Log, note, note_attribute, note_whole, take_back
from syndicate.flow.zset import Time

SHORT_LINE: Final = 24
"""A loop with more operators than this marks what is to run: most of a line would have nothing to do."""


MANY_DELETED: Final = 0.15
SOME_DELETED: Final = 0.04
SMALL_LOOP: Final = 1000
"""Collections with fewer elements than this are followed whatever is deleted."""


FEW_DERIVED: Final = 512
"""A loop whose nodes give so many rows in a step, or fewer, costs less in dictionaries than tables cost to be made."""


class Outgrown(BaseException):
    """A step is larger than it looked: it is to be taken again, with tables of words.

    No :class:`Exception`, as no node raises it for what it is given.
    """


Place: TypeAlias = tuple[int, Step, int, int, TimedArrangement | None, list[int]]
"""An operator's position, what it does, the one or two cells that it reads, what keeps its batches, its feedbacks."""


B = TypeVar("B", dict[Key, int], Rows)


@define(eq=False)
class Integral:
    """The sum of all that an import has brought in the steps before."""

    total: dict[Key, int]
    batch: Batch | None = None

    def take(self, batch: Batch) -> None:
        """It brings something now."""
        if type(batch) in (Mixed, MixedRows):
            meet(paired(batch), self.total)
        self.batch = batch

    def commit(self, undo: Log) -> None:
        """The step has succeeded."""
        batch = paired(self.batch or {})
        if type(batch) is Mixed and type(self.total) is not Mixed:
            self.total = Mixed(self.total)
        note(undo, self.total, batch)
        add_up(self.total, batch.items())
        self.batch = None

    def discard(self) -> None:
        """It has failed."""
        self.batch = None


class Loop(Scope):
    """A child circuit made ready to run."""

    def __init__(self, engine: AbstractEngine, circuit: Netlist, above: Scope, position: int) -> None:
        super().__init__(engine, circuit, above, position)
        self.around = above
        self.imports = [(self.slots[Port(node.id)], above.slots[node.inputs[0]]) for node in circuit.imports]
        self.exports = [self.slots[port] for port in circuit.exports]
        self.folds = {number: fold for number, port in enumerate(circuit.exports) if (fold := self._fold(port))}
        self.summed = [entry for entry in enumerate(self.exports) if entry[0] not in self.folds]
        self.ports = [position + 1 + number for number in range(len(self.exports))]
        self.restart = Restart.of(self)
        assert circuit.child_node is not None
        self.node = circuit.child_node
        self.line = self._line()

    ports: list[int]

    def schedule(self, when: Time, node: Node) -> None:
        """Let a node run at a later inner time of this epoch."""
        self.schedule_at(when, self.place_of(node))

    def schedule_at(self, when: Time, position: int) -> None:
        """The same of a position; the loops around have to come to that time, too."""
        prefix, iteration = ((), when) if isinstance(when, int) else (when[:-1], when[-1])
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
        totals: Sequence[Batch | None] | None
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
        fed = [at for fed_places in self.absorbers.values() for at in fed_places]
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
        self, batches: list[tuple[int, Batch]], budget: float = inf, *, counted: bool = True
    ) -> tuple[list[Batch | None] | None, int]:
        """The sums of the exports, and, if *counted*, how many rows went through; None if that exceeded the budget."""
        # All of an iteration is here: where it is one row, a call of a part of it would cost as much as the part does.
        for cell in self.begun:
            self.undo.append((cell.restore, cell.value))
            cell.value = {}
        for slot, batch in batches:
            self.put(slot, batch)
        totals: list[Batch | None] = [None] * len(self.exports)
        owned = [False] * len(self.exports)
        prefix = self.prefix
        agenda = self.agenda.setdefault(prefix, {})
        iteration = runs = work = 0
        limit: int = self.node.params["limit"]
        line = None if self.engine.measures is not None else self.line
        cells, empties, taken = self.cells, self.empties, dict[int, Batch]()
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
            for number, slot in self.summed:
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
                raise restless(self.node, limit)
        del self.agenda[prefix]
        for number, (fold, places) in self.folds.items():
            totals[number] = self._grown(fold, places)
        return totals, work

    def _fold(self, port: Port) -> tuple[GrowingFold, list[int]] | None:
        """The fold that an export gives the last rows of, and the operators that these go through."""
        places: list[int] = []
        while (node := self.circuit.nodes[port.node]).op == "map":
            places.insert(0, self.slots[port])
            (port,) = node.inputs
        fold = next((one for one in self.engine.states.get(node.global_id, ()) if type(one) is GrowingFold), None)
        return None if fold is None else (fold, places)

    def _grown(self, fold: GrowingFold, places: list[int]) -> Batch:
        """How the last rows of a fold have changed, as it is exported."""
        batch: Batch = fold.changed()
        for at in places if batch else ():
            (slot,) = self.inputs(self.nodes[at])
            self.cells[slot] = batch
            batch = self.steps[at]()
            self.cells[slot] = self.empties[slot]
        return batch

    def _run_line(self, line: list[Place], batches: dict[int, Batch]) -> dict[int, Batch]:
        """One iteration, in which the feedbacks give *batches*; what they take in."""
        cells, touched, now = self.cells, self.touched, self.now
        closing: list[TimedArrangement] = []
        taken: dict[int, Batch] = {}
        for slot, batch in batches.items():
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
            raise blamed from blamed.__cause__ or error
        for taker in closing:
            taker.close(now, self.undo)
        return taken


@define(eq=False)
class Restart:
    """What a loop needs to be computed again, and how it decides."""

    loop: Loop
    integrals: dict[int, Integral]
    derived: list[dict[Key, Element]]
    entered: list[dict[Key, int]]
    arrangements: list[TimedArrangement]
    exported: list[tuple[dict[Key, int], Cell]]
    rows_each: float = 4.0

    @classmethod
    def of(cls, loop: Loop) -> Restart | None:
        """For a loop that can be computed again; None for any other."""
        if not loop.properties.is_free():
            return None
        sets: dict[int, list[Element]] = {}
        arrangements = []
        for node in loop.circuit.nodes:
            states = loop.engine.states.get(node.global_id, [])
            if node.op == "distinct":
                sets[node.id] = states[:3]
            arrangements += [state for state in states if isinstance(state, TimedArrangement)]
        integrals = {
            loop.slots[Port(node.id)]: loop.state(node, Integral({}))
            for node in loop.circuit.imports
            if loop.around.takers[loop.around.slots[node.inputs[0]]] is None
        }
        derived, entered = [states[0] for states in sets.values()], [states[1] for states in sets.values()]
        return cls(
            loop,
            integrals,
            derived,
            entered,
            arrangements,
            [(sets[port.node][1], sets[port.node][2]) for port in loop.circuit.exports],
        )

    def run(self, batches: list[tuple[int, Batch]]) -> Sequence[Batch | None] | None:
        """One epoch of the loop: the sums of its exports."""
        loop = self.loop
        for slot, batch in batches:
            if slot in self.integrals:
                self.integrals[slot].take(batch)
                loop.engine.commits.append(self.integrals[slot])
        few = inf if loop.engine.measures is not None or loop.engine.row_budget == inf else FEW_DERIVED
        size = sum(map(len, self.entered))
        if not size:
            totals, work = loop.iterate(batches, few)
            if totals is None:
                raise Outgrown
            self.learn(work, sum(map(len, self.entered)))
            return totals
        mark = len(loop.undo)
        budget = self.budget(batches, size)
        if budget:
            most = min(budget, few)
            totals, _ = loop.iterate(batches, most, counted=most < inf)
            if totals is not None:
                return totals
            if most < budget:
                raise Outgrown
            take_back(loop.undo, mark)
            del loop.undo[mark:]
            loop.reset()
        return self.start()

    def budget(self, batches: list[tuple[int, Batch]], size: int) -> float:
        """How many rows a change may take."""
        gone = sum([_deleted(batch) for _, batch in batches]) if size >= SMALL_LOOP else 0
        return self.allowed(size, gone, lambda: sum([self.extent(slot, outer) for slot, outer in self.loop.imports]))

    def allowed(self, size: int, gone: int, extent: Callable[[], int]) -> float:
        """How many rows a change may take that deletes so many of the imports', *extent* of which there are."""
        if size < SMALL_LOOP or not gone:
            return inf
        share = gone / max(1, extent())
        if share > MANY_DELETED:
            return 0.0
        return size * self.rows_each * (0.1 if share > SOME_DELETED else 1.5)

    def extent(self, slot: int, outer: int) -> int:
        """How many rows an import stands for, or keys, which are no more."""
        integral = self.integrals.get(slot)
        taker = self.loop.around.takers[outer]
        return len(integral.total if integral is not None else taker.index if taker is not None else ())

    def start(self) -> Sequence[Batch | None]:
        """Compute the loop from nothing, and give the difference."""
        loop, undo = self.loop, self.loop.undo
        before = [dict(old) for old, _ in self.exported]
        for state in (*self.derived, *self.entered):
            note_whole(undo, state)
            state.clear()
        for arrangement in self.arrangements:
            note_attribute(undo, arrangement, "index")
            arrangement.index = {}
        totals, work = loop.iterate([(slot, self.whole(slot, outer)) for slot, outer in loop.imports])
        self.learn(work, sum(map(len, self.entered)))
        return [
            _difference(paired(total or {}), old, typed=typed.value)
            for total, old, (_, typed) in zip(totals or (), before, self.exported, strict=True)
        ]

    def whole(self, slot: int, outer: int) -> Batch:
        """All that an import has brought, this step included."""
        around = self.loop.around
        integral = self.integrals.get(slot)
        if integral is None:
            taker = around.takers[outer]
            assert isinstance(taker, Arrangement)
            return taker.whole()
        batch = paired(integral.batch) if integral.batch else {}
        total = Mixed(integral.total) if Mixed in (type(integral.total), type(batch)) else dict(integral.total)
        add_up(total, batch.items())
        return total if isinstance(around.cells[outer], dict) else unpaired(total)

    def learn(self, work: int, size: int) -> None:
        """How many rows a start took for each of *size* elements."""
        if size:
            self.rows_each = work / size


def _deleted(batch: Batch) -> int:
    weights = batch.values() if isinstance(batch, dict) else [row[2] for row in batch]
    return sum([weight < 0 for weight in weights])


def _difference(total: dict[Key, int], before: dict[Key, int], *, typed: bool) -> dict[Key, int]:
    """The change from one set to another."""
    change: dict[Key, int] = Mixed() if typed else {}
    change.update((key, 1) for key in total if key not in before)
    change.update((key, -1) for key in before if key not in total)
    return change


def _add(total: B | None, batch: B, *, owned: bool) -> tuple[B, bool]:
    """The sum of two batches, in place once the first is ours."""
    if not total:
        return batch, False
    if isinstance(batch, list):
        return added_rows(total, batch), True
    if owned and type(total) is type(batch) and total.keys().isdisjoint(batch):
        total.update(batch)
        return total, True
    if owned and type(total) is type(batch) and len(batch) < len(total):
        return add_up(total, batch.items()), True
    return plus(total, batch), bool(batch)
