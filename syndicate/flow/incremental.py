"""Incrementalisation: from a query over whole collections to a circuit over their changes.

A query ``Q`` is a circuit that gets a whole collection at each step and gives a whole one: it is built of the linear
operators and the ``_stream`` forms of the others.  Between an integral at each source and a derivative at each sink it
takes changes and gives changes: ``D . Q . I``, which is right and as slow as ``Q``.  Pushing the derivative from the
sinks towards the sources, one operator at a time, makes it fast:

========================  ================================================================================
linear rule               ``D . f . I = f`` for all that is linear and time-invariant (``map``, ``z1``, ...)
bilinear rule             ``D . (a >< b) . I`` is the incremental join: ``join_stream`` becomes ``join``
distinct and aggregate    become their incremental forms, which remember the collection, or the groups
chain rule                ``D . (f . g) . I = (D . f . I) . (D . g . I)``: so each operator can be taken alone
inverse rule              ``D . I`` and ``I . D`` are nothing at all
========================  ================================================================================

What no rule knows (``inspect``, an incremental operator within a query, a loop) keeps its integral before and its
derivative behind it.  A loop over whole collections is written ``x.differentiate()`` ... ``.integrate()`` around
``recursive``, whose inside is incremental already; the inverse rule then leaves the loop alone.

>>> from syndicate.flow import Circuit, ZSet
>>> q = Circuit(); words = q.source("words")
>>> q.sink("lengths", words.map(len).distinct_stream())
>>> rewrite = incremental(q)
>>> [node.op for node in rewrite.literal.nodes], [node.op for node in rewrite.circuit.nodes]
(['source', 'integrate', 'map', 'distinct_stream', 'differentiate', 'sink'], ['source', 'map', 'distinct', 'sink'])
>>> rewrite.circuit.step({"words": {"ann": 1, "bob": 1}})["lengths"]
ZSet({3: 1})

Source: Budiu et al. 2023, on incremental view maintenance; PomoFlow, 2.9.13; ``docs/design/flow.md``, "Queries made
incremental".
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.errors import CircuitError
from syndicate.flow.circuit import Circuit
from syndicate.flow.node import LINEAR, Kind, Netlist, Node, Port
from syndicate.flow.stream import Stream

RENAMED: Final = {
    "join_stream": ("join", "bilinear rule"),
    "distinct_stream": ("distinct", "distinct"),
    "aggregate_stream": ("aggregate", "aggregate"),
}
TIME_INVARIANT: Final = LINEAR - {"inspect"} | {"z1"}


@frozen
class Incremental:
    """A query, the circuit ``D . Q . I`` as it is, the simplified circuit, and which rule was used where."""

    whole: Circuit
    literal: Circuit
    circuit: Circuit
    rules: tuple[str, ...]


def incremental(query: Circuit) -> Incremental:
    """The incremental version of a query over whole collections.

    Raises :class:`CircuitError` if the query has sources with a key, or unique ones, which make changes themselves.
    """
    literal = _Rewriting(query, simplify=False)
    simple = _Rewriting(query, simplify=True)
    return Incremental(query, literal.run(), simple.run(), tuple(simple.rules))


class _Rewriting:
    """Rebuilds a query; each stream has a form over whole collections and one over changes, made when asked for."""

    def __init__(self, query: Circuit, *, simplify: bool) -> None:
        self.query = query
        self.simplify = simplify
        self.circuit = Circuit()
        self.rules: list[str] = []
        self.wholes: dict[Port, Stream] = {}
        self.changes: dict[Port, Stream] = {}
        self.children: dict[int, list[Stream]] = {}
        self.open: list[tuple[Node, Stream, bool]] = []

    def run(self) -> Circuit:
        for node in self.query.order():
            if node.kind is Kind.SOURCE:
                if node.params:
                    raise CircuitError(
                        f"{node} has a key, is unique, or is constant: a query over whole collections is given each of "
                        "them, whole"
                    )
                self.changes[Port(node.id)] = self.circuit.source(node.name)
        for name, sink in self.query.sinks.items():
            self.circuit.sink(name, *[self.change(port) for port in sink.inputs])
        for node in self.query.nodes:
            if node.op == "inspect":
                self.whole(Port(node.id))
        while self.open:
            node, end, whole = self.open.pop()
            end.connect((self.whole if whole else self.change)(node.inputs[0]))
        return self.circuit

    def change(self, port: Port) -> Stream:
        """The stream of changes."""
        if port not in self.changes:
            self.changes[port] = self.new_change(port)
        return self.changes[port]

    def whole(self, port: Port) -> Stream:
        """The stream of whole collections."""
        if port not in self.wholes:
            self.wholes[port] = self.new_whole(port)
        return self.wholes[port]

    def new_change(self, port: Port) -> Stream:
        node = self.query.nodes[port.node]
        if self.simplify:
            if node.op == "integrate":
                self.use("inverse rule", node)
                return self.whole(node.inputs[0])
            if node.op == "differentiate":
                self.use("linear rule", node)
                return self.change(node.inputs[0]).differentiate()
            if node.op == "z1":
                self.use("linear rule", node)
                end = self.circuit.feedback(node.carries[0]).named(node.name)
                self.open.append((node, end, False))
                return end
            if node.op in TIME_INVARIANT:
                self.use("linear rule", node)
                return self.copy(node, node.op, [self.change(each) for each in node.inputs])
            if node.op in RENAMED:
                op, rule = RENAMED[node.op]
                self.use(rule, node)
                return self.copy(node, op, [self.change(each) for each in node.inputs])
        return self.whole(port).differentiate()

    def new_whole(self, port: Port) -> Stream:
        node = self.query.nodes[port.node]
        if node.kind is Kind.SOURCE:
            return self.change(port).integrate()
        if self.simplify and node.op == "differentiate":
            self.use("inverse rule", node)
            return self.change(node.inputs[0])
        if self.simplify and (node.op in TIME_INVARIANT or node.op in RENAMED) and not self.is_small(port):
            return self.change(port).integrate()
        if node.op == "z1":
            end = self.circuit.feedback(node.carries[0]).named(node.name)
            self.open.append((node, end, True))
            return end
        if node.child is not None:
            return self.child(node)[port.output]
        return self.copy(node, node.op, [self.whole(each) for each in node.inputs])

    def is_small(self, port: Port) -> bool:
        """Whether the collections of a stream are changes of others, so that no integral is needed to have them."""
        node = self.query.nodes[port.node]
        if node.op == "differentiate":
            return True
        return node.op in LINEAR | RENAMED.keys() and all(map(self.is_small, node.inputs))

    def use(self, rule: str, node: Node) -> None:
        self.rules.append(f"{rule}: {node}")

    def copy(self, node: Node, op: str, inputs: list[Stream]) -> Stream:
        ports = [stream.port for stream in inputs]
        copied = self.circuit.add(node.kind, op, ports, list(node.carries), dict(node.params), share=op != "inspect")
        copied.name = copied.name or node.name
        return Stream(self.circuit, Port(copied.id))

    def child(self, node: Node) -> list[Stream]:
        """A loop copied as it is, between whole collections."""
        if node.id not in self.children:
            assert node.child is not None
            outer = {each.id: self.whole(each.inputs[0]) for each in node.child.imports}
            self.children[node.id] = copied(node.child, self.circuit, outer)
        return self.children[node.id]


def copied(loop: Netlist, above: Circuit, imports: dict[int, Stream]) -> list[Stream]:
    """A copy of a loop in another circuit, given what its imports become; the streams that it exports."""
    assert loop.child_node is not None
    copy = above.child(loop.child_node.name, **loop.child_node.params)
    streams: dict[Port, Stream] = {}
    ends: list[tuple[Stream, Port]] = []
    for node in loop.order():
        if node.kind is Kind.IMPORT:
            streams[Port(node.id)] = copy.bring(imports[node.id])
        elif node.op in ("z1", "z1_trace", "forward"):
            end = copy.forward(node.carries[0]) if node.op == "forward" else copy.feedback(node.carries[0])
            streams[Port(node.id)] = end.named(node.name)
            ends.append((end, node.inputs[0]))
        elif node.child is not None:
            inner = {each.id: streams[each.inputs[0]] for each in node.child.imports}
            for number, stream in enumerate(copied(node.child, copy, inner)):
                streams[Port(node.id, number)] = stream
        else:
            ports = [streams[port].port for port in node.inputs]
            new = copy.add(node.kind, node.op, ports, list(node.carries), dict(node.params), share=False)
            new.name = node.name
            streams[Port(node.id)] = Stream(copy, Port(new.id))
    for end, port in ends:
        end.connect(streams[port])
    return [copy.export(streams[port]) for port in loop.exports]
