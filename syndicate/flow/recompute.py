"""Restart: a loop that is computed again when that costs less than following a change through it.

Following an insertion costs at most what a new start does.  A deletion may take away and bring back most of a loop's
collection, each element several times, where a new start would only visit what is left: at a tenth of a graph's edges
deleted, following its closure costs 1.6 times as much, at half of them 60 times (measured).  So a loop keeps the sum of
its imports, and

* starts again at once if a step deletes more than ``MANY_DELETED`` of them;
* else follows the change, but for no more than its budget of rows, a part of what the last start took; then it goes
  back by the undo log and starts again.  The budget is a tenth of a start where more than ``SOME_DELETED`` are deleted,
  since that far the waste is small, and one and a half where fewer are, since then the start is rarely needed.

A start is a step like others: the old state is kept until it has succeeded, and the difference is what is exported.  It
is offered to free loops (:mod:`syndicate.flow.properties`).

So no step costs more than about 1.2 times what recomputing would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import define

from syndicate.flow.element import Key, Mixed, MixedRows, add_up, meet
from syndicate.flow.node import Port
from syndicate.flow.operators.arrangement import Arrangement, TimedArrangement
from syndicate.flow.operators.distinct import paired, unpaired
from syndicate.flow.undo import Log, note, note_attribute, note_whole, take_back

if TYPE_CHECKING:
    from syndicate.flow.loop import Loop
    from syndicate.flow.scope import Cell

MANY_DELETED: Final = 0.15
SOME_DELETED: Final = 0.04
SMALL_LOOP: Final = 1000
"""Collections with fewer elements than this are followed whatever is deleted."""


@define(eq=False)
class Integral:
    """The sum of all that an import has brought in the steps before."""

    total: dict[Key, int]
    batch: Any = None

    def take(self, batch: Any) -> None:
        """It brings something now."""
        if type(batch) in (Mixed, MixedRows):
            meet(paired(batch), self.total)
        self.batch = batch

    def commit(self, undo: Log) -> None:
        """The step has succeeded."""
        batch = paired(self.batch)
        if type(batch) is Mixed and type(self.total) is not Mixed:
            self.total = Mixed(self.total)
        note(undo, self.total, batch)
        add_up(self.total, batch.items())
        self.batch = None

    def discard(self) -> None:
        """It has failed."""
        self.batch = None


@define(eq=False)
class Restart:
    """What a loop needs to be computed again, and how it decides."""

    loop: Loop
    integrals: dict[int, Integral]
    derived: list[dict[Key, Any]]
    entered: list[dict[Key, int]]
    arrangements: list[TimedArrangement]
    exported: list[tuple[dict[Key, int], Cell]]
    rows_each: float = 4.0

    @classmethod
    def of(cls, loop: Loop) -> Restart | None:
        """For a loop that can be computed again; None for any other."""
        if not loop.nature.is_free():
            return None
        sets: dict[int, list[Any]] = {}
        arrangements = []
        for node in loop.circuit.nodes:
            kept = loop.engine.states.get(node.global_id, [])
            if node.op == "distinct":
                sets[node.id] = kept[:3]
            arrangements += [state for state in kept if isinstance(state, TimedArrangement)]
        integrals = {
            loop.slots[Port(node.id)]: loop.state(node, Integral({}))
            for node in loop.circuit.imports
            if loop.around.takers[loop.around.slots[node.inputs[0]]] is None
        }
        derived, entered = [kept[0] for kept in sets.values()], [kept[1] for kept in sets.values()]
        return cls(
            loop,
            integrals,
            derived,
            entered,
            arrangements,
            [(sets[port.node][1], sets[port.node][2]) for port in loop.circuit.exports],
        )

    def run(self, batches: list[tuple[int, Any]]) -> list[Any] | None:
        """One epoch of the loop: the sums of its exports."""
        loop = self.loop
        for slot, batch in batches:
            if slot in self.integrals:
                self.integrals[slot].take(batch)
                loop.engine.commits.append(self.integrals[slot])
        size = sum(map(len, self.entered))
        if not size:
            totals, work = loop.iterate(batches)
            self.learn(work)
            return totals
        mark = len(loop.undo)
        budget = self.budget(batches, size)
        if budget:
            totals, _ = loop.iterate(batches, budget, counted=budget < float("inf"))
            if totals is not None:
                return totals
            take_back(loop.undo, mark)
            del loop.undo[mark:]
            loop.reset()
        return self.start()

    def budget(self, batches: list[tuple[int, Any]], size: int) -> float:
        """How many rows a change may take."""
        if size < SMALL_LOOP:
            return float("inf")
        gone = sum([_deleted(batch) for _, batch in batches])
        if not gone:
            return float("inf")
        share = gone / max(1, sum([self.extent(slot, outer) for slot, outer in self.loop.imports]))
        if share > MANY_DELETED:
            return 0.0
        return size * self.rows_each * (0.1 if share > SOME_DELETED else 1.5)

    def extent(self, slot: int, outer: int) -> int:
        """How many rows an import stands for, or keys, which are no more."""
        kept = self.integrals.get(slot)
        taker = self.loop.around.takers[outer]
        return len(kept.total if kept is not None else taker.index if taker is not None else ())

    def start(self) -> list[Any]:
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
        self.learn(work)
        return [
            _difference(total or {}, old, typed=typed.value)
            for total, old, (_, typed) in zip(totals or (), before, self.exported, strict=True)
        ]

    def whole(self, slot: int, outer: int) -> Any:
        """All that an import has brought, this step included."""
        around = self.loop.around
        kept = self.integrals.get(slot)
        if kept is None:
            taker = around.takers[outer]
            assert isinstance(taker, Arrangement)
            return taker.whole()
        batch = paired(kept.batch) if kept.batch else {}
        total = Mixed(kept.total) if Mixed in (type(kept.total), type(batch)) else dict(kept.total)
        add_up(total, batch.items())
        return total if isinstance(around.cells[outer], dict) else unpaired(total)

    def learn(self, work: int) -> None:
        """How many rows a start took for each element."""
        size = sum(map(len, self.entered))
        if size:
            self.rows_each = work / size


def _deleted(batch: Any) -> int:
    weights = batch.values() if isinstance(batch, dict) else [row[2] for row in batch]
    return sum([weight < 0 for weight in weights])


def _difference(total: dict[Key, int], before: dict[Key, int], *, typed: bool) -> dict[Key, int]:
    """The change from one set to another."""
    change: dict[Key, int] = Mixed() if typed else {}
    change.update((key, 1) for key in total if key not in before)
    change.update((key, -1) for key in before if key not in total)
    return change
