"""The static properties of streams: what follows from the circuit alone, before anything runs.

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

from collections.abc import Iterable
from typing import Final

from syndicate.flow.node import LINEAR, Carries, Kind, Netlist, Node, Port

MONOTONE: Final = frozenset({
    *("map", "filter", "flat_map", "index_with", "plus", "join", "pairs", "keys", "values", "forward", "distinct"),
    *("inspect", "z1"),
})  # fmt: skip
POSITIVE: Final = frozenset({"distinct", "aggregate", "source", "constant"})
UNFLAT: Final = frozenset({"integrate", "differentiate", "consolidate", "inspect", "join_trace"})


class StaticProperties:
    """The static properties of the streams of one circuit, computed when asked for."""

    def __init__(self, circuit: Netlist, above: StaticProperties | None = None) -> None:
        """*above* has the properties of the circuit around, for a loop."""
        self.circuit = circuit
        self.above = above
        self._free: bool | None = None
        self._flat: dict[Port, bool] = {}
        self._steady: bool | None = None

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
            elif node.op not in POSITIVE or any(weight < 0 for weight in _given(node)):
                return False
        return True


def _given(node: Node) -> Iterable[int]:
    """The weights of a constant."""
    return node.params["zset"].batch.values() if node.op == "constant" else ()
