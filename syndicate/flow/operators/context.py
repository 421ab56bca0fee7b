"""What an operator sees of the scope that it runs in, and what all scopes of an engine share.

A maker takes a :class:`Context` and a node.  The scope itself, which builds these and runs them, is
:class:`syndicate.flow.scope.Scope`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from attrs import define

from syndicate.errors import InternalError
from syndicate.flow.element import Batch, Element, Key
from syndicate.flow.node import GlobalId, Kind, Netlist, Node, Port, StaticProperties
from syndicate.flow.operators.arrangement import Arrangement, TimedArrangement
from syndicate.flow.undo import Log
from syndicate.flow.zset import Time, lub

S = TypeVar("S")
A = TypeVar("A", bound=dict[Element, Element] | set[Key])
AnyArrangement: TypeAlias = Arrangement | TimedArrangement
Step: TypeAlias = Callable[[], Any]
"""What a node does in a tick: it reads its cells, and returns its batch, of what it carries."""


@define(eq=False)
class Cell:
    """A value that an operator keeps from tick to tick."""

    value: Element

    def restore(self, value: Element) -> None:
        """What it was."""
        self.value = value


class Commit(Protocol):
    """What takes what is new of a step into the past."""

    def commit(self, undo: Log) -> None:
        """The step has succeeded."""

    def discard(self) -> None:
        """It has failed."""


class Ledger:
    """What the scopes of one engine share.

    ``epoch`` counts the steps done, ``undo`` is the log of the one that runs, and ``commits`` is what it has to commit;
    ``states`` maps the global id of each node to what it keeps, ``outputs`` each sink to what it gives.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.undo: Log = []
        self.commits: list[Commit] = []
        self.states: dict[GlobalId, list[Any]] = {}
        self.outputs: dict[str, Element] = {}
        self.keeps_columns = False  # whether this step brings Columns, and what it brings is kept so


class Context:
    """One circuit's cells, what its nodes keep, and when they run again."""

    def __init__(self, engine: Ledger, circuit: Netlist, above: Context | None = None, position: int = 0) -> None:
        self.engine = engine
        self.circuit = circuit
        self.above = above
        self.position = position
        self.depth: int = circuit.depth
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
