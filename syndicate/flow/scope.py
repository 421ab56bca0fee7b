"""A scope: one circuit, root or loop, made ready to run; what its operators see of it, and what all share of an engine.

Each node has a position in topological order, and a cell with its batch of the current tick.  Only what has something
to do runs: a batch that is not empty marks the nodes that read it, and a heap of marked positions gives the next one.
So a tick costs what changed, however many nodes the circuit has.

A maker of an operator (:mod:`syndicate.flow.operators`) takes a scope and a node, and asks the scope for cells, for
what the node keeps from step to step, and to run again.

Contract: after a tick all cells are empty, no position is marked, and no work is put aside.

Source: PomoFlow, 2.6 to 2.8; ``docs/design/flow.md``, "Loops".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from attrs import define

from syndicate.errors import EndlessLoop, InternalError, NotAValue, StepFailed, UnhashableElement
from syndicate.flow.arrangement import NO_ROWS, Arrangement, TimedArrangement
from syndicate.flow.element import Batch, Element, Key
from syndicate.flow.node import Carries, GlobalId, Kind, Netlist, Node, Port, StaticProperties, raised, unhashable
from syndicate.flow.trace import Ageing, DelayedTrace, TraceView
from syndicate.flow.undo import Log
from syndicate.flow.zset import Time, lub

S = TypeVar("S")
A = TypeVar("A", bound=dict[Element, Element] | set[Key])
AnyArrangement: TypeAlias = Arrangement | TimedArrangement
Step: TypeAlias = Callable[[], Any]
"""What a node does in a tick: it reads its cells, and returns its batch, of what it carries."""
Maker: TypeAlias = "Callable[[Scope, Node], Step]"
"""What makes the step of an operator."""


@define(eq=False)
class Cell:
    """A value that an operator keeps from tick to tick."""

    value: Element

    def restore(self, value: Element) -> None:
        """What it was."""
        self.value = value


class Committable(Protocol):
    """What takes what is new of a step into the past."""

    def commit(self, undo: Log) -> None:
        """The step has succeeded."""

    def discard(self) -> None:
        """It has failed."""


EMPTY: Final[dict[Carries, object]] = {Carries.ZSET: {}, Carries.INDEXED: NO_ROWS, Carries.TRACE: None}
STATIC: Final = frozenset({Kind.SOURCE, Kind.IMPORT, Kind.FEEDBACK})


class Measuring(Protocol):
    """What measures the steps of a watched circuit."""

    def begun(self, scope: Scope) -> list[Step]:
        """The steps of a scope, measured, at the start of a tick."""


class AbstractEngine:
    """What the scopes of one engine share, and what they ask of it.

    ``row_budget`` is how many rows may yet come before there are tables of words: infinite, once there are, or where
    there will be none.  ``epoch`` counts the steps done, ``undo`` is the log of the one that runs, and ``commits`` is
    what it has to commit; ``states`` maps the global id of each node to what it keeps, ``outputs`` each sink to what it
    gives.  ``makers`` make the steps of operators at the root, ``loop_makers`` in loops.
    """

    measures: Measuring | None = None
    row_budget: float
    epoch: int
    undo: Log
    commits: list[Committable]
    states: dict[GlobalId, list[Element]]
    outputs: dict[str, Element]
    keeps_columns: bool
    """Whether this step brings Columns, and what it brings is kept so."""
    is_inspected: bool = False
    """Whether a node is there for what its function does, so that no step may be taken again for speed alone."""
    makers: Mapping[str, Maker]
    loop_makers: Mapping[str, Maker]

    def make_loop(self, circuit: Netlist, above: Scope, position: int) -> Scope:
        """The scope of a child circuit."""
        raise NotImplementedError  # abstract

    def sink(self, node: Node, cells: Sequence[object], inputs: list[int]) -> Step:
        """The step of a sink."""
        raise NotImplementedError  # abstract

    def failing_element(self, scope: Scope, node: Node, error: Exception) -> tuple[str, Exception]:
        """What shows the arguments for which the function of a node raises such an error, and the one that it raises
        there; nothing, and *error*, where none can be named.
        """
        raise NotImplementedError  # abstract


class Scope:
    """One circuit made ready to run; see the module."""

    def __init__(self, engine: AbstractEngine, circuit: Netlist, above: Scope | None = None, position: int = 0) -> None:
        self.engine = engine
        self.circuit = circuit
        self.above = above
        self.position = position
        self.depth: int = 0 if above is None else above.depth + 1
        self.undo: Log = engine.undo
        self.prefix: tuple[int, ...] = ()
        self.now: Any = 0  # an iteration, or in nested loops a tuple of them, as each reader knows
        self.lub: Callable[[Element, Element], Element] = max if self.depth < 2 else lub
        self.cells: list[Any] = []
        self.empties: list[object] = []
        self.steps: list[Step] = []
        self.nodes: list[Node] = []
        self.readers: list[list[int]] = []
        self.takers: list[AnyArrangement | None] = []
        self.slots: dict[Port, int] = {}
        self.always: list[int] = []
        self.absorbers: dict[int, list[int]] = {}
        self.begun: list[Cell] = []
        self.caches: dict[int, dict[Element, Element] | set[Key]] = {}
        self.asides: list[dict[Element, Element] | set[Key]] = []
        self.queue: list[int] = []
        self.touched: list[int] = []
        self.closing: list[TimedArrangement] = []
        self.delayed: dict[int, Batch] = {}
        self.agenda: dict[tuple[int, ...], dict[int, dict[int, None]]] = {}
        self.properties: StaticProperties = StaticProperties(circuit, None if above is None else above.properties)
        self.is_flat = self.properties.is_flat
        self.children: list[Scope] = []
        self.traces: dict[int, DelayedTrace] = {}
        self._build()
        self.dirty = bytearray(len(self.steps))

    # ------------------------------------------------------------------------------------ what an operator asks for

    def inputs(self, node: Node) -> list[int]:
        """The cells that a node reads."""
        return [self.slots[port] for port in node.inputs]

    def place_of(self, node: Node) -> int:
        """The position of an operator."""
        return self.slots[Port(node.id)]

    def state(self, node: Node, state: S) -> S:
        """Register what a node keeps from step to step, under its global id."""
        self.engine.states.setdefault(node.global_id, []).append(state)
        return state

    def cell(self, node: Node, value: Element) -> Cell:
        """A value that is emptied at the start of each epoch, if this is a loop."""
        cell = self.state(node, Cell(value))
        if self.depth:
            self.begun.append(cell)
        return cell

    def flag(self, node: Node) -> Cell:
        """Whether a node has ever seen typed keys: it then has to expect them among what it keeps."""
        return self.state(node, Cell(False))

    def history(self, node: Node, history: S) -> S:
        """A history that is merged into the past when a step has succeeded."""
        return self.state(node, history)

    def cache(self, node: Node, cache: A) -> A:
        """Register what a node can make again from what it keeps: it is emptied when that is taken over by columns."""
        self.caches[node.id] = cache
        return cache

    def put_aside(self, node: Node) -> dict[Element, Element]:
        """A place for work of later iterations; :meth:`schedule` lets the node run then."""
        return self.passing({})

    def passing(self, aside: A) -> A:
        """Something that is empty between steps, and is emptied when a step fails."""
        self.asides.append(aside)
        return aside

    def run_always(self, node: Node) -> None:
        """Let a node run in each tick, also without input."""
        self.always.append(self.place_of(node))

    def arrangement(self, port: Port) -> AnyArrangement:
        """The memory of an indexed stream, one for all that ask."""
        node = self.circuit.nodes[port.node]
        if node.kind is Kind.IMPORT and self.is_flat(port):
            assert self.above is not None
            return self.above.arrangement(node.inputs[0])
        slot = self.slots[port]
        taker = self.takers[slot]
        if taker is None:
            taker = self.takers[slot] = self.state(node, Arrangement() if self.is_flat(port) else TimedArrangement())
        return taker

    def schedule(self, when: Time, node: Node) -> None:
        """Let a node run at a later inner time of this epoch: only a loop has such."""
        raise InternalError(f"{node} has work for a later iteration, but is in no loop")

    def schedule_at(self, when: Time, position: int) -> None:
        """The same of a position."""
        self.schedule(when, self.nodes[position])

    def again(self, node: Node) -> None:
        """Let a node run in the next iteration, if this is a loop."""

    def inner(self) -> tuple[int, ...]:
        """The iterations of all loops around here, the outermost first."""
        if self.depth == 0:
            return ()
        return (self.now,) if self.depth == 1 else self.now

    def time(self) -> Time:
        """The epoch, refined by the iterations."""
        return (self.engine.epoch, *self.inner()) if self.depth else self.engine.epoch

    # --------------------------------------------------------------------------------------------------- building

    def _build(self) -> None:
        places: list[int] = []
        for node in self.circuit.order():
            places.append(len(self.cells))
            own = node.child is not None or not node.carries  # a loop runs at a place before those of its outputs
            empties = [EMPTY[kind] for kind in ((Carries.ZSET, *node.carries) if own else node.carries)]
            first = len(self.cells) + own
            self.slots.update({Port(node.id, output): first + output for output in range(len(node.carries))})
            self.cells += empties
            self.empties += empties
            self.steps += [_nothing] * len(empties)
            self.nodes += [node] * len(empties)
            self.readers += [[] for _ in empties]
            self.takers += [None] * len(empties)
        for port in self.slots if self.above is not None else ():  # in order, so that the question never goes deep
            self.is_flat(port)
        for at in places:
            self._make(self.nodes[at], at)
        delays = {id(delay.trace): delay for delay in self.traces.values()}
        for slot, delay in self.traces.items():
            delay.base = delays[id(self.cells[slot].base)]
            if delay.base is not delay:
                self.state(self.nodes[slot], delay.owed)

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
                    self.traces[slot] = DelayedTrace()
                self.cells[at] = TraceView(self.state(node, self.traces[slot].trace))
            else:
                self.absorbers.setdefault(self.slots[node.inputs[0]], []).append(at)
            return
        if node.kind in STATIC:
            return
        inputs = self.inputs(node)
        for i in inputs:
            if at not in self.readers[i]:
                self.readers[i].append(at)
        if node.kind is Kind.SINK:
            self.steps[at] = self.engine.sink(node, self.cells, inputs)
            return
        if node.carries[0] is Carries.TRACE:
            self.cells[at] = TraceView(self.cells[inputs[-1]].base)
        makers = self.engine.loop_makers if self.depth else self.engine.makers
        self.steps[at] = makers[node.op](self, node)

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
            raise blamed from blamed.__cause__ or error

    def _blamed(self, position: int, error: Exception) -> Exception:
        """The error that the user gets: at which node, at which element."""
        if isinstance(error, (StepFailed, EndlessLoop)) or position < 0:
            return error
        node = self.nodes[position]
        if isinstance(error, (UnhashableElement, NotAValue)):
            return unhashable(node, str(error))
        shown, cause = self.engine.failing_element(self, node, error)
        blamed = raised(node, f"{type(cause).__name__}: {cause}", shown)
        blamed.__cause__ = cause
        return blamed

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
        empties = self.empties
        for slot in self.touched:
            if type(cells[slot]) is TraceView:
                cells[slot] = TraceView(cells[slot].base)
            else:
                cells[slot] = empties[slot]
        self.touched.clear()
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
