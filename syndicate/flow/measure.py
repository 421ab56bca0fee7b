"""Measures: what each node of a watched circuit has cost and given, in all and in the last step.

Nothing here runs while watching is off: an engine that is not watched has no measures, which is asked once a tick.

Source: ``docs/design/flow.md``, "Looking in, and snapshots".
"""

from __future__ import annotations

from collections.abc import Sized
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import define

from syndicate.flow.node import Carries, GlobalId, Kind, Node, Port
from syndicate.flow.trace import TraceView

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step


@define(eq=False)
class Measure:
    """What one node has cost since watching began, in seconds, and how many rows it read and gave.

    Of the last step that it had a part in, ``step``, it knows what it was before.  The time of a loop holds that of its
    nodes.
    """

    reads: tuple[int, ...] = ()
    runs: int = 0
    seconds: float = 0.0
    rows_in: int = 0
    rows: int = 0
    step: int = 0
    before: tuple[int, float, int, int] = (0, 0.0, 0, 0)

    def begin(self, step: int) -> None:
        """It has a part in another step."""
        self.step = step
        self.before = (self.runs, self.seconds, self.rows_in, self.rows)

    def gave(self, step: int, rows: int) -> None:
        """The node gave *rows* without running, as sources and loops do."""
        if self.step != step:
            self.begin(step)
        self.rows += rows

    def last(self, step: int) -> tuple[int, float, int, int]:
        """Runs, seconds, rows in and rows out of a step, the last one of the circuit."""
        if self.step != step:
            return (0, 0.0, 0, 0)
        runs, seconds, rows_in, rows = self.before
        return (self.runs - runs, self.seconds - seconds, self.rows_in - rows_in, self.rows - rows)


class Measures(dict[GlobalId, Measure]):
    """The measures of a circuit: of each node that ran, by its global id; ``places`` has one for each cell."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.places: dict[GlobalId, list[Measure]] = {}
        self.steps: dict[GlobalId, list[Step]] = {}

    def begin(self) -> None:
        """Another step: also one that fails is one, so that its cost is not the next one's."""
        self.step += 1

    def of(self, scope: Scope) -> list[Measure]:
        """The measures of one scope, by position."""
        path = scope.circuit.path
        measures = self.places.get(path)
        if measures is None:
            measures = self.places[path] = [Measure() for _ in scope.cells]
            for place, node in reversed(list(enumerate(scope.nodes))):  # of a loop's places the first is its own
                if node.kind not in (Kind.SOURCE, Kind.IMPORT, Kind.FEEDBACK):
                    rows = (port for port in ports_of(node) if scope.circuit.carries(port) != Carries.TRACE)
                    measures[place].reads = tuple([scope.slots[port] for port in dict.fromkeys(rows)])
        return measures

    def begun(self, scope: Scope) -> list[Step]:
        """The steps of a scope, measured, at the start of a tick: what is in its cells came without them."""
        measures = self.of(scope)
        for slot in scope.touched:
            measures[slot].gave(self.step, size(scope.cells[slot]))
        steps = self.steps.get(scope.circuit.path)
        if steps is None:
            steps = [self._measured(scope, position, measure) for position, measure in enumerate(measures)]
            self.steps[scope.circuit.path] = steps
        return steps

    def _measured(self, scope: Scope, position: int, measure: Measure) -> Step:
        measures, cells, touched, steps, reads = self.of(scope), scope.cells, scope.touched, scope.steps, measure.reads

        def step() -> object:
            if measure.step != self.step:
                measure.begin(self.step)
                if not measure.runs:
                    self[scope.nodes[position].global_id] = measure
            for slot in reads:
                measure.rows_in += len(cells[slot])
            measure.runs += 1
            seen = len(touched)
            start = perf_counter()
            batch = steps[position]()  # not bound: columns put others in their place
            measure.seconds += perf_counter() - start
            if len(touched) > seen:  # a loop gives its outputs itself
                for slot in touched[seen:]:
                    measures[slot].gave(self.step, size(cells[slot]))
            if batch:
                measure.rows += size(batch)
            return batch

        return step


def ports_of(node: Node) -> list[Port]:
    """What a node reads: of a loop, what its imports do."""
    if node.child is None:
        return [] if node.kind is Kind.IMPORT else node.inputs
    return [port for imported in node.child.imports for port in imported.inputs]


def size(batch: Sized | TraceView | None) -> int:
    """How many rows a cell holds; of a trace, those that this tick has added."""
    if isinstance(batch, TraceView):
        return sum(len(values) for groups, _ in batch.added for values in groups.values())
    return 0 if batch is None else len(batch)
