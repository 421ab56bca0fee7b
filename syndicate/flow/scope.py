"""A scope: one circuit, root or loop, made ready to run.

Each node has a position in topological order, and a cell with its batch of the current tick.  Only what has something
to do runs: a batch that is not empty marks the nodes that read it, and a heap of marked positions gives the next one.
So a tick costs what changed, however many nodes the circuit has.

Contract: after a tick all cells are empty, no position is marked, and no work is put aside.

Source: PomoFlow, 2.6 to 2.8; ``docs/design/flow.md``, "Loops".

Blame: at which element a user's function raised, found by asking it again for one element after the other.

Functions are applied to whole batches, where an exception does not say which element it was.  They are pure, so asking
again is harmless, and only a step that has failed pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, TypeAlias

from syndicate.errors import EndlessLoop, InternalError, NotAValue, StepFailed, UnhashableElement
from syndicate.flow.element import Batch, Element, Rows, naturals
from syndicate.flow.measure import Measures
from syndicate.flow.node import Carries, Kind, Netlist, Node, Port, raised, unhashable
from syndicate.flow.operators import MAKERS, Maker
from syndicate.flow.operators.arrangement import NO_ROWS, TimedArrangement
from syndicate.flow.operators.context import Context, Ledger, Step
from syndicate.flow.operators.groups import GroupView
from syndicate.flow.operators.traces import Ageing, Delay, TraceView

# ---------------------------------------------------------------------------------------------------------------- blame

Call: TypeAlias = tuple[Callable[..., Element], tuple[Element, ...]]


def failing_element(scope: Context, node: Node) -> str:
    """What shows the arguments for which the function of a node raises, or nothing where none can be named."""
    for function, arguments in _calls(scope, node):
        try:
            function(*arguments)
        except Exception:
            shown = ", ".join(map(repr, arguments))
            return shown if len(shown) <= 300 else shown[:297] + "..."
    return ""


def _calls(scope: Context, node: Node) -> Iterator[Call]:
    batches = [scope.cells[i] for i in scope.inputs(node)]
    params = node.params
    if node.op in ("map", "filter"):
        yield from ((params["function"], (element,)) for element in naturals(batches[0]))
    elif node.op == "flat_map":
        yield from ((lambda element: list(params["function"](element)), (element,)) for element in naturals(batches[0]))
    elif node.op == "index_with":
        for element in naturals(batches[0]):
            yield params["key"], (element,)
            if params["value"] is not None:
                yield params["value"], (element,)
    elif node.op == "join":
        yield from _join_calls(scope, node, batches)
    elif node.op == "join_stream":
        yield from _pairs(params["function"], batches[0], [(row[0], row[1]) for row in batches[1]], flipped=False)
    elif node.op == "join_trace":
        totals = [(key, value) for key in {row[0] for row in batches[0]} for value in batches[1].totals(key)]
        yield from _pairs(params["function"], batches[0], totals, flipped=False)
    elif node.op.startswith("aggregate") and params["aggregate"].function is None:
        alone = params["aggregate"].of
        yield from ((lambda value: alone({value: 1}), (value,)) for value in naturals(row[1] for row in batches[0]))
    elif node.op.startswith("aggregate"):
        yield from _aggregate_calls(scope, node, batches[0])


def _aggregate_calls(scope: Context, node: Node, rows: Rows) -> Iterator[Call]:
    groups = scope.engine.states.get(node.global_id, [{}])[0]
    for key in dict.fromkeys(row[0] for row in rows):
        if isinstance(groups, dict) and isinstance(groups.get(key), dict):
            yield (lambda key, values: node.params["aggregate"].of(GroupView(values)), (key, groups[key]))


def _join_calls(scope: Context, node: Node, batches: list[Rows]) -> Iterator[Call]:
    function = node.params["function"]
    for this, other, flipped in ((0, 1, False), (1, 0, True)):
        arrangement = scope.arrangement(node.inputs[other])
        rows: list[tuple[Element, Element]] = [(row[0], row[1]) for row in arrangement.rows]
        for key in {row[0] for row in batches[this]}:
            levels: Mapping[Element, object] = arrangement.index.get(key, {})
            for value, inside in levels.items():
                rows += [(key, each) for each in inside] if isinstance(inside, dict) else [(key, value)]
        yield from _pairs(function, batches[this], rows, flipped=flipped)


def _pairs(
    function: Callable[..., Element], rows: Rows, others: list[tuple[Element, Element]], *, flipped: bool
) -> Iterator[Call]:
    for key, value, _ in rows:
        for other_key, other in others:
            if key == other_key:
                left, right = (other, value) if flipped else (value, other)
                yield function, tuple(naturals((key, left, right)))


# -------------------------------------------------------------------------------------------------------------- a scope


EMPTY: Final[dict[Carries, object]] = {Carries.ZSET: {}, Carries.INDEXED: NO_ROWS, Carries.TRACE: None}
STATIC: Final = frozenset({Kind.SOURCE, Kind.IMPORT, Kind.FEEDBACK})


class Engine(Ledger):
    """What a scope asks of the engine that runs it."""

    measures: Measures | None = None

    def make_loop(self, circuit: Netlist, above: Scope, position: int) -> Scope:
        """The scope of a child circuit."""
        raise NotImplementedError  # abstract

    def sink(self, node: Node, cells: Sequence[object], inputs: list[int]) -> Step:
        """The step of a sink."""
        raise NotImplementedError  # abstract


class Scope(Context):
    """One circuit made ready to run; see the module."""

    makers: ClassVar[Mapping[str, Maker]] = MAKERS
    engine: Engine
    above: Scope | None

    def __init__(self, engine: Engine, circuit: Netlist, above: Scope | None = None, position: int = 0) -> None:
        super().__init__(engine, circuit, above, position)
        self.children: list[Scope] = []
        self.traces: dict[int, Delay] = {}
        self._build()
        self.dirty = bytearray(len(self.steps))

    # --------------------------------------------------------------------------------------------------- building

    def _build(self) -> None:
        order = self.circuit.order()
        for node in order:
            outputs = len(node.carries) if node.child is not None else 0
            if node.child is not None or not node.carries:
                self._place(node, Carries.ZSET)
            for output in range(outputs or len(node.carries)):
                self.slots[Port(node.id, output)] = self._place(node, node.carries[output])
        for port in self.slots if self.above is not None else ():  # in order, so that the question never goes deep
            self.is_flat(port)
        at = 0
        for node in order:
            self._make(node, at)
            at += 1 + (len(node.carries) if node.child is not None else 0)
        delays = {id(delay.trace): delay for delay in self.traces.values()}
        for slot, delay in self.traces.items():
            delay.base = delays[id(self.cells[slot].base)]
            if delay.base is not delay:
                self.state(self.nodes[slot], delay.owed)

    def _place(self, node: Node, carries: Carries) -> int:
        self.cells.append(EMPTY[carries])
        self.empties.append(EMPTY[carries])
        self.steps.append(_nothing)
        self.nodes.append(node)
        self.readers.append([])
        self.takers.append(None)
        return len(self.cells) - 1

    def _make(self, node: Node, at: int) -> None:
        if node.child is not None:
            for imported in node.child.imports:
                self.readers[self.slots[imported.inputs[0]]].append(at)
            inner = self.engine.make_loop(node.child, self, at)
            self.children.append(inner)
            self.steps[at] = inner.run_loop
            if inner.always:
                self.always.append(at)
            return
        if node.kind is Kind.FEEDBACK:
            if node.op == "z1_trace":
                slot = self.slots[node.inputs[0]]
                if slot not in self.traces:  # what delays the same is the same
                    self.traces[slot] = Delay()
                self.cells[at] = TraceView(self.state(node, self.traces[slot].trace))
            else:
                self.absorbers.setdefault(self.slots[node.inputs[0]], []).append(at)
            return
        if node.kind in STATIC:
            return
        for i in self.inputs(node):
            if at not in self.readers[i]:
                self.readers[i].append(at)
        if node.kind is Kind.SINK:
            self.steps[at] = self.engine.sink(node, self.cells, self.inputs(node))
            return
        if node.carries[0] is Carries.TRACE:
            self.cells[at] = TraceView(self.cells[self.inputs(node)[-1]].base)
        self.steps[at] = self.makers[node.op](self, node)

    # --------------------------------------------------------------------------------------------------- running

    def run_loop(self) -> None:
        """One tick of the scope around: only a loop has such."""
        raise InternalError("the root of a circuit runs in no other scope")

    def mark(self, position: int) -> None:
        """Let a node run in this tick."""
        if not self.dirty[position]:
            self.dirty[position] = 1
            heappush(self.queue, position)

    def put(self, slot: int, batch: Any) -> None:
        """Give a cell its batch, and mark its readers."""
        self.cells[slot] = batch
        self.touched.append(slot)
        taker = self.takers[slot]
        if taker is not None:
            taker.take(batch)
            if isinstance(taker, TimedArrangement):
                self.closing.append(taker)
            else:
                self.engine.commits.append(taker)
        dirty = self.dirty
        for reader in self.readers[slot]:
            if not dirty[reader]:
                dirty[reader] = 1
                heappush(self.queue, reader)

    def run(self) -> None:
        """Run what is marked, in order."""
        queue, cells, dirty, readers, touched, takers = (
            self.queue, self.cells, self.dirty, self.readers, self.touched, self.takers
        )  # fmt: skip
        measures = self.engine.measures
        steps = self.steps if measures is None else measures.begun(self)
        for position in self.always:
            self.mark(position)
        position = -1
        try:
            while queue:
                position = heappop(queue)
                dirty[position] = 0
                batch = steps[position]()
                if batch:
                    cells[position] = batch
                    touched.append(position)
                    if takers[position] is not None:
                        touched.pop()
                        self.put(position, batch)
                        continue
                    for reader in readers[position]:
                        if not dirty[reader]:
                            dirty[reader] = 1
                            heappush(queue, reader)
        except Exception as error:
            blamed = self._blamed(position, error)
            if blamed is error:  # "raise error from error" would lose its cause
                raise
            raise blamed from error

    def _blamed(self, position: int, error: Exception) -> Exception:
        """The error that the user gets: at which node, at which element."""
        if isinstance(error, (StepFailed, EndlessLoop)) or position < 0:
            return error
        node = self.nodes[position]
        if isinstance(error, (UnhashableElement, NotAValue)):
            return unhashable(node, str(error))
        return raised(node, f"{type(error).__name__}: {error}", failing_element(self, node))

    def finish(self) -> dict[int, Batch]:
        """End a tick: what the feedbacks take in, and empty cells."""
        taken: dict[int, Batch] = {}
        cells, absorbers = self.cells, self.absorbers
        if absorbers:
            for slot in self.touched:
                for feedback in absorbers.get(slot, ()):
                    taken[feedback] = cells[slot]
        if self.traces:
            self._absorb_traces()
        for arrangement in self.closing:
            arrangement.close(self.now, self.undo)
        self.closing.clear()
        self.clear()
        return taken

    def _absorb_traces(self) -> None:
        for slot, delay in self.traces.items():
            delay.arrive(self.cells[slot])
        lacking = [(delay, delay.lacking()) for delay in self.traces.values() if delay.base is not delay]
        for delay in self.traces.values():
            if delay.arrived:
                self.engine.commits.append(Ageing(delay.trace, delay.arrived, self.engine.epoch))
                delay.take_in(self.undo)
        for delay, groups in lacking:
            self.undo.append((delay.restore, delay.owed.groups))
            delay.restore(groups)

    def clear(self) -> None:
        """Empty the cells."""
        cells, empties = self.cells, self.empties
        for slot in self.touched:
            if type(cells[slot]) is TraceView:
                cells[slot] = TraceView(cells[slot].base)
            else:
                cells[slot] = empties[slot]
        self.touched.clear()

    def reset(self) -> None:
        """Forget a tick that failed, wherever it did."""
        for slot, cell in enumerate(self.cells):
            self.cells[slot] = TraceView(cell.base) if type(cell) is TraceView else self.empties[slot]
        self.touched.clear()
        self.queue.clear()
        self.dirty = bytearray(len(self.steps))
        for arrangement in self.closing:
            arrangement.discard()
        self.closing.clear()
        self.agenda.clear()
        for aside in self.asides:
            aside.clear()
        for child in self.children:
            child.reset()


def _nothing() -> None:
    return None
