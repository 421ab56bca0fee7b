"""Nodes: the vertices of a circuit, as data, the circuit that they make, and the order in which they run.

There are six kinds. A node names its inputs by the local ids of nodes of the same circuit; an import names a node of
the circuit above.  The local id is the index in the circuit, the global id the path of local ids from the root: both
are the same in every run that builds the circuit alike, so that snapshots and profiles may refer to them.

A feedback node delays by one tick. It emits what it took in at the previous tick before any other node runs, and takes
in what the others made after all have run; so its input is no dependency within a tick, and a cycle through it is
allowed. A child runs after the nodes that its imports name.

Source: PomoFlow, 2.6 to 2.8; ``docs/design/flow.md``, "Loops".

The static properties of streams: what follows from the circuit alone, before anything runs.

* **flat**: it changes at most once an epoch, at the first iteration: at the root, and in a loop what depends on nothing
  but imports of flat streams.  Flat streams need no times.
* **positive**: no weight of the collection is below 0, as long as none of a source's is.
* **free** (of a loop): all that it computes are sets of the monotone kind, and it keeps nothing else.
* **monotone**: within a loop, what lies behind a node can only grow from one iteration to the next, and as a function
  of what enters the loop.  Such a loop has a least fixed point, however it is reached.
* **steady** (of a loop): no node in it can tell at which iteration another's elements entered.

Source: ``docs/design/flow.md``, "Weights, elements and times", "Distinct" and "Loops".
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from attrs import define, field, frozen

from syndicate.errors import CircuitError, CycleError, EndlessLoop, StepFailed, UnhashableElement
from syndicate.flow.element import Element

# ---------------------------------------------------------------------------------------------------------------- nodes


class Kind(enum.Enum):
    """What a node is for.

    >>> from syndicate.flow import Circuit
    >>> circuit = Circuit()
    >>> circuit.sink("out", circuit.source("in").map(str))
    >>> [(node.kind is Kind.SOURCE, node.op) for node in circuit.nodes]
    [(True, 'source'), (False, 'map'), (False, 'sink')]
    """

    OPERATOR = "operator"
    CHILD = "child"
    FEEDBACK = "feedback"
    IMPORT = "import"
    SINK = "sink"
    SOURCE = "source"


class Carries(enum.Enum):
    """What a stream's values are.

    >>> from syndicate.flow import Circuit
    >>> Circuit().source("in").index_with(str).port, Carries.INDEXED
    (Port(node=1, output=0), <Carries.INDEXED: 'Indexed ZSet'>)
    """

    ZSET = "ZSet"
    INDEXED = "Indexed ZSet"
    TRACE = "Trace"


GlobalId: TypeAlias = tuple[int, ...]


@frozen
class Port:
    """An output of a node: the node's local id and the number of the output, which is 0 except for a child's.

    Made by :class:`~syndicate.flow.circuit.Circuit`.
    """

    node: int
    output: int = 0


@define(eq=False, repr=False)
class Node:
    """One vertex, made by :class:`~syndicate.flow.circuit.Circuit` and the methods of its streams.

    *op* names the operator as the stream's method does; *params* hold the user's functions as given.
    """

    circuit: Netlist
    id: int
    kind: Kind
    op: str
    inputs: list[Port]
    carries: list[Carries]
    params: dict[str, Element] = field(factory=dict)
    name: str = ""
    child: Netlist | None = None

    @property
    def global_id(self) -> GlobalId:
        """The path of local ids from the root."""
        return (*self.circuit.path, self.id)

    @property
    def dependencies(self) -> Iterator[int]:
        """The local ids of the nodes that run before this one within a tick."""
        if self.child is not None:
            return (port.node for node in self.child.imports for port in node.inputs)
        if self.kind in (Kind.FEEDBACK, Kind.IMPORT):
            return iter(())
        return (port.node for port in self.inputs)

    def __str__(self) -> str:
        """What a message calls the node: ``map "halve" (node 3, rules.py:12)``."""
        where = ".".join(map(str, self.global_id))
        name = f' "{self.name}"' if self.name else ""
        place = next(filter(None, map(_place, self.params.values())), "")
        return f"{self.op}{name} (node {where}{place})"

    def __repr__(self) -> str:
        return f"<{self}>"


AS_BEFORE: Final = "The circuit is as it was before this step."


def raised(node: Node, reason: str, element: str) -> StepFailed:
    """The error of a node whose function raised: of what class and text, and at which arguments, if that is known."""
    where = f" at {element}" if element else ""
    return StepFailed(
        f"{node} raised {reason}{where}. {AS_BEFORE}",
        operator=node.op,
        label=node.name,
        element=element,
        reason=reason,
    )


def unhashable(node: Node, reason: str) -> UnhashableElement:
    """The error of a node that met an element which has no identity."""
    return UnhashableElement(f"{node}: {reason}", operator=node.op, label=node.name, reason=reason)


def restless(node: Node, iterations: int) -> EndlessLoop:
    """The error of a loop that did not come to rest."""
    return EndlessLoop(
        f"{node} did not come to rest within {iterations} iterations. Each pass of a loop must end in a distinct "
        "(recursive() adds one), and its functions must not make new elements for ever; a longer way takes limit=...",
        label=node.name,
        iterations=iterations,
    )


def _place(value: Element) -> str:
    code = getattr(value, "__code__", None)
    if code is None:
        return ""
    function = "" if code.co_name == "<lambda>" else f"{code.co_name}, "
    return f", {function}{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """The nodes of one circuit so that each comes after those it depends on, else by id.

    Raises :class:`CycleError` if some depend on each other within one tick.
    """
    missing = [set(node.dependencies) for node in nodes]
    waiting: dict[int, list[int]] = {}
    for node in nodes:
        for needed in missing[node.id]:
            waiting.setdefault(needed, []).append(node.id)
    ready = [node.id for node in nodes if not missing[node.id]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        done = heapq.heappop(ready)
        ordered.append(nodes[done])
        for later in waiting.get(done, ()):
            missing[later].discard(done)
            if not missing[later]:
                heapq.heappush(ready, later)
    if len(ordered) < len(nodes):
        cycle = " -> ".join(str(nodes[i]) for i in _cycle(missing))
        raise CycleError(
            f"a cycle without feedback: {cycle}. Let one edge of it pass through z1() or feedback(), or use recursive()"
        )
    return ordered


def _cycle(missing: Sequence[set[int]]) -> Iterable[int]:
    """One cycle in what is left, from its smallest node back to it."""
    at = next(i for i, needed in enumerate(missing) if needed)
    seen: dict[int, int] = {}
    path: list[int] = []
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = min(i for i in missing[at] if missing[i])
    path = path[seen[at] :][::-1]
    start = path.index(min(path))
    return [*path[start:], *path[:start], path[start]]


@define(eq=False, slots=False)
class Netlist:
    """A circuit as data: its nodes, and where it lies in the circuit around it.

    The root, or the inside of a child *node* of the circuit *above*, whose global id is the *path*.  Engines, drawings,
    snapshots and rewrites read it; what users build and step is a :class:`~syndicate.flow.circuit.Circuit`.
    """

    above: Netlist | None = None
    child_node: Node | None = None
    path: GlobalId = ()
    nodes: list[Node] = field(factory=list, init=False)
    imports: list[Node] = field(factory=list, init=False)
    exports: list[Port] = field(factory=list, init=False)
    sources: dict[str, Node] = field(factory=dict, init=False)
    sinks: dict[str, Node] = field(factory=dict, init=False)

    @property
    def root(self) -> Netlist:
        """The outermost circuit."""
        return self if self.above is None else self.above.root

    @property
    def depth(self) -> int:
        """0 for the root, 1 for a loop in it, and so on."""
        return len(self.path)

    def carries(self, port: Port) -> Carries:
        """What goes through a port."""
        return self.nodes[port.node].carries[port.output]

    def order(self) -> list[Node]:
        """The nodes so that each comes after those it depends on; raises :class:`CycleError`."""
        as_made = True  # what they depend on was there before, but for what was connected later
        for node in self.nodes:
            if not node.inputs and node.op in ("z1", "z1_trace", "forward"):
                raise CircuitError(f"{node} was never connected: call connect(stream) on it")
            as_made = as_made and node.child is None and node.op != "forward"
        return list(self.nodes) if as_made else in_order(self.nodes)

    def walk(self) -> Iterator[Node]:
        """All nodes, those of a child after the child's."""
        for node in self.nodes:
            yield node
            if node.child is not None:
                yield from node.child.walk()

    def find(self, global_id: GlobalId) -> Node:
        """The node with this global id."""
        node = self.root.nodes[global_id[0]]
        for local in global_id[1:]:
            assert node.child is not None
            node = node.child.nodes[local]
        return node


LINEAR: Final = frozenset(
    {
        "map",
        "filter",
        "flat_map",
        "index_with",
        "negate",
        "plus",
        "minus",
        "inspect",
        "pairs",
        "keys",
        "values",
        "forward",
    }
)
"""The operators that are linear and time-invariant: the incremental version of each is itself."""


# ------------------------------------------------------------------------------------- the static properties of streams


MONOTONE: Final = frozenset({
    *("map", "filter", "flat_map", "index_with", "plus", "join", "pairs", "keys", "values", "forward", "distinct"),
    *("inspect", "z1"),
})  # fmt: skip
POSITIVE: Final = frozenset({"distinct", "aggregate", "source", "constant"})
UNFLAT: Final = frozenset({"integrate", "differentiate", "consolidate", "inspect", "join_trace"})


@define(eq=False)
class StaticProperties:
    """The static properties of the streams of one circuit, computed when asked for.

    *above* has those of the circuit around, for a loop.
    """

    circuit: Netlist
    above: StaticProperties | None = None
    _free: bool | None = field(default=None, init=False)
    _flat: dict[Port, bool] = field(factory=dict, init=False)
    _steady: bool | None = field(default=None, init=False)

    def is_flat(self, port: Port) -> bool:
        """Whether a stream changes at most once an epoch, at the first iteration."""
        if self.above is None:
            return True
        flat = self._flat.get(port)
        if flat is None:
            flat = self._flat[port] = self._is_flat(self.circuit.nodes[port.node], self.above)
        return flat

    def _is_flat(self, node: Node, above: StaticProperties) -> bool:
        if node.kind is Kind.FEEDBACK or node.op in UNFLAT:
            return False
        if node.kind is Kind.IMPORT:
            return above.is_flat(node.inputs[0])
        ports = node.inputs if node.child is None else [port for each in node.child.imports for port in each.inputs]
        return all(map(self.is_flat, ports))

    def is_free(self) -> bool:
        """Whether this is a loop in the root that makes sets of the monotone kind, and keeps nothing else."""
        if self._free is None:
            circuit = self.circuit
            exported = [(circuit.nodes[port.node], port.output) for port in circuit.exports]
            self._free = (
                circuit.depth == 1
                and all(map(self._fits, circuit.nodes))
                and all(node.op == "distinct" and node.carries[i] is Carries.ZSET for node, i in exported)
            )
        return self._free

    def _fits(self, node: Node) -> bool:
        if node.op == "join":
            flat = [port for port in node.inputs if self.is_flat(port)]
            return len(flat) < 2 and all(self.circuit.nodes[port.node].kind is Kind.IMPORT for port in flat)
        if node.op == "distinct":
            return not self.is_flat(node.inputs[0]) and self.is_monotone(node)
        return node.kind is Kind.IMPORT or node.op == "z1" or node.op in LINEAR - {"inspect"}

    def is_monotone(self, node: Node) -> bool:
        """Whether all that lies behind a node in this loop can only grow as the iterations go on."""
        pending, seen = list(node.inputs), set()
        while pending:
            port = pending.pop()
            if port in seen:
                continue
            seen.add(port)
            behind = self.circuit.nodes[port.node]
            if self.is_flat(port):
                if not self.is_positive(port):
                    return False
            elif behind.op in MONOTONE:
                pending += behind.inputs
            elif behind.params.get("part") and self.is_flat(self.circuit.nodes[behind.inputs[1].node].inputs[1]):
                pending.append(behind.inputs[0])  # an antijoin with what does not change in the loop
            else:
                return False
        return True

    def is_steady(self) -> bool:
        """Whether nothing in this loop can tell at which iteration an element entered, once it is in.

        What is not monotone can: a negation that runs before an element has come up gives another fixed point than one
        that runs after.
        """
        if self._steady is None:
            self._steady = all(map(self._is_steady, self.circuit.nodes))
        return self._steady

    def _is_steady(self, node: Node) -> bool:
        if node.kind is Kind.IMPORT or node.op in LINEAR or node.op in ("join", "z1"):
            return True
        if node.op == "distinct" and self.is_monotone(node):
            return True
        return all(self.is_flat(Port(node.id, output)) for output in range(len(node.carries)))

    def is_positive(self, port: Port) -> bool:
        """Whether no weight of a collection is below 0, as long as none of a source's is."""
        pending: list[tuple[StaticProperties, Port]] = [(self, port)]
        seen = set()
        while pending:
            properties, port = pending.pop()
            if (properties.circuit.path, port) in seen:
                continue
            seen.add((properties.circuit.path, port))
            node = properties.circuit.nodes[port.node]
            if node.kind is Kind.IMPORT:
                assert properties.above is not None
                pending.append((properties.above, node.inputs[0]))
            elif node.child is not None:
                pending.append((StaticProperties(node.child, properties), node.child.exports[port.output]))
            elif (node.op in MONOTONE and node.op not in POSITIVE) or "part" in node.params:
                pending += [(properties, each) for each in node.inputs]
            elif node.op not in POSITIVE or any(weight < 0 for weight in _constant_weights(node)):
                return False
        return True


def _constant_weights(node: Node) -> Iterable[int]:
    """The weights of a constant."""
    return node.params["zset"].batch.values() if node.op == "constant" else ()
