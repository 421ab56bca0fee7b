"""The oracle: a circuit evaluated on whole collections, from scratch, by the definitions.

It reads the same Circuit as the engines and shares no operator code with them: a collection is a dictionary from the
typed form of an element to the element and its weight, and each node is recomputed from its inputs.  The value of a
stream here is the *sum* of the stream's deltas, so that incremental operators are evaluated by what they stand for.
A loop is run from nothing until its feedbacks stay the same.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from syndicate.flow import Circuit, IndexedZSet, Kind, Node, Port, ZSet
from syndicate.flow.node import Netlist
from syndicate.lattice import Lattice
from syndicate.values.value import is_record

Form = Any


def form(value: Any) -> Form:
    """A hashable that differs where the values differ: types count, nan equals itself."""
    if isinstance(value, tuple):
        return ("tuple", *[form(item) for item in value])
    if is_record(value):
        return ("record", value)
    if isinstance(value, Lattice):
        return (type(value).__name__, value)
    return (type(value).__name__, repr(value))


class Bag:
    """A collection: form -> (element, weight), no weight of 0."""

    def __init__(self, pairs: Iterable[tuple[Any, int]] = ()) -> None:
        sums: dict[Form, tuple[Any, int]] = {}
        for element, weight in pairs:
            old = sums.get(form(element))
            sums[form(element)] = (element, weight + (old[1] if old else 0))
        self.entries = {key: entry for key, entry in sums.items() if entry[1]}

    def __iter__(self) -> Any:
        return iter(self.entries.values())

    def weights(self) -> dict[Form, int]:
        """What is compared."""
        return {key: weight for key, (_, weight) in self.entries.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self.weights() == other.weights()

    __hash__ = None  # type: ignore[assignment]  # as Python marks what has none

    def __repr__(self) -> str:
        return f"Bag({list(self)!r})"

    def plus(self, other: Bag, sign: int = 1) -> Bag:
        """The sum, or the difference."""
        return Bag([*self, *((element, sign * weight) for element, weight in other)])


def bag_of(zset: ZSet | IndexedZSet | Mapping[Any, int] | Bag) -> Bag:
    """Any collection as a bag; of an indexed one, its pairs."""
    return zset if isinstance(zset, Bag) else Bag(zset.items())


class Oracle:
    """Keeps the inputs of all steps, and computes what each sink's deltas must add up to."""

    def __init__(self, circuit: Netlist) -> None:
        self.circuit = circuit
        self.inputs: list[dict[str, Bag]] = []
        self.memo: dict[Any, Bag] = {}
        self.rest: dict[Any, int] = {}

    def step(self, deltas: Mapping[str, Any]) -> dict[str, Bag]:
        """The sum of each sink's deltas, this step included."""
        before = self.inputs[-1] if self.inputs else {name: Bag() for name in self.circuit.sources}
        self.inputs.append({name: before[name].plus(bag_of(deltas.get(name, {}))) for name in before})
        now = (len(self.inputs) - 1,)
        return {name: self.value(self.circuit, node.inputs[0], now) for name, node in self.circuit.sinks.items()}

    def value(self, circuit: Netlist, port: Port, time: tuple[int, ...]) -> Bag:
        """The sum of a stream's deltas up to a time."""
        if time[0] < 0 or time[-1] < 0:
            return Bag()
        key = (circuit.path, port, time)
        if key not in self.memo:
            self.memo[key] = self.compute(circuit, circuit.nodes[port.node], port.output, time)
        return self.memo[key]

    def delta(self, circuit: Netlist, port: Port, time: tuple[int, ...]) -> Bag:
        """The batch of one tick, at the root."""
        return self.value(circuit, port, time).plus(self.value(circuit, port, (time[0] - 1,)), -1)

    def compute(self, circuit: Netlist, node: Node, output: int, time: tuple[int, ...]) -> Bag:
        """One node, by the definition of its operator."""
        if node.kind is Kind.SOURCE:
            return self.inputs[time[0]][node.name]
        if node.kind is Kind.IMPORT:
            assert circuit.above is not None
            return self.value(circuit.above, node.inputs[0], time[:-1])
        if node.child is not None:
            last = self.fixpoint(node.child, time)
            return self.value(node.child, node.child.exports[output], (*time, last))
        if node.op == "z1":
            return self.value(circuit, node.inputs[0], (*time[:-1], time[-1] - 1))
        if node.op in ("integrate", "join_stream", "distinct_stream", "aggregate_stream"):
            assert circuit.above is None
            ticks = [(tick,) for tick in range(time[0] + 1)]
            if node.op == "integrate":
                return Bag(itertools.chain(*(self.value(circuit, node.inputs[0], tick) for tick in ticks)))
            each = [
                POINTWISE[node.op[:-7]](node, *[self.delta(circuit, p, tick) for p in node.inputs]) for tick in ticks
            ]
            return Bag(itertools.chain(*each))
        if node.op == "differentiate":
            return self.delta(circuit, node.inputs[0], time)
        return POINTWISE[node.op](node, *[self.value(circuit, port, time) for port in node.inputs])

    def fixpoint(self, child: Netlist, time: tuple[int, ...]) -> int:
        """The iteration from which nothing changes any more."""
        key = (child.path, time)
        if key not in self.rest:
            loops = [Port(node.id) for node in child.nodes if node.op == "z1"]
            at = 0
            while any(self.value(child, p, (*time, at)) != self.value(child, p, (*time, at + 1)) for p in loops):
                at += 1
                assert at < 1000, "the loop of the test does not end"
            self.rest[key] = at
        return self.rest[key]


def _map(node: Node, a: Bag) -> Bag:
    return Bag((node.params["function"](element), weight) for element, weight in a)


def _join(node: Node, a: Bag, b: Bag) -> Bag:
    function = node.params["function"]
    return Bag((function(k, v, u), w * x) for (k, v), w in a for (other, u), x in b if form(k) == form(other))


def _index(node: Node, a: Bag) -> Bag:
    key, value = node.params["key"], node.params["value"] or (lambda element: element)
    return Bag(((key(element), value(element)), weight) for element, weight in a)


def _aggregate(node: Node, a: Bag) -> Bag:
    groups: dict[Form, tuple[Any, list[tuple[Any, int]]]] = {}
    for (key, value), weight in a:
        groups.setdefault(form(key), (key, []))[1].append((value, weight))
    rows = ((key, summed_up(node.params["aggregate"], members)) for key, members in groups.values())
    return Bag(((key, result), 1) for key, result in rows if result is not None)


def summed_up(aggregate: Any, members: list[tuple[Any, int]]) -> Any:
    """An aggregate of one group, by its definition."""
    by = aggregate.by or (lambda value: value)
    number = sum(weight for _, weight in members)
    if aggregate.form == "count":
        return number or None
    if aggregate.form in ("sum", "avg"):
        total = sum(Fraction(by(value)) * weight for value, weight in members)
        if not number:
            return None
        if aggregate.form == "avg":
            return float(total / number)
        floats = sum(weight for value, weight in members if isinstance(by(value), float))
        return float(total) if floats else int(total)
    if aggregate.form == "linear":
        total = aggregate.fold.zero
        for value, weight in members:
            for _ in range(abs(weight)):
                total = aggregate.fold.add(total, value, 1 if weight > 0 else -1)
        return aggregate.fold.result(total) if number else None
    if aggregate.form == "user":
        return aggregate.function(dict(members))
    present = [value for value, weight in members if weight > 0]
    if not present:
        return None
    if aggregate.form == "lattice":
        elements = [aggregate.lattice.of(item) for item in map(by, present) if item is not None]
        return functools.reduce(lambda a, b: a.merge(b), elements) if elements else None
    if aggregate.form == "top":
        return tuple(sorted(present, key=by, reverse=True)[: aggregate.size])
    return (min if aggregate.form == "min" else max)(map(by, present))


POINTWISE: dict[str, Callable[..., Bag]] = {
    "map": _map,
    "filter": lambda node, a: Bag((e, w) for e, w in a if node.params["function"](e)),
    "flat_map": lambda node, a: Bag((o, w) for e, w in a for o in node.params["function"](e)),
    "index_with": _index,
    "negate": lambda node, a: Bag((e, -w) for e, w in a),
    "plus": lambda node, a, b: a.plus(b),
    "minus": lambda node, a, b: a.plus(b, -1),
    "inspect": lambda node, a: a,
    "forward": lambda node, a: a,
    "pairs": lambda node, a: a,
    "keys": lambda node, a: Bag((pair[0], w) for pair, w in a),
    "values": lambda node, a: Bag((pair[1], w) for pair, w in a),
    "join": _join,
    "distinct": lambda node, a: Bag((e, 1) for e, w in a if w > 0),
    "aggregate": _aggregate,
}


def check(circuit: Circuit, steps: Iterable[Mapping[str, Any]]) -> None:
    """Run the steps on both, and compare the sum of each sink's deltas after each step."""
    oracle = Oracle(circuit)
    sums = {name: Bag() for name in circuit.sinks}
    for number, deltas in enumerate(steps):
        wanted = oracle.step(deltas)
        out = circuit.step(deltas)
        for name, total in wanted.items():
            sums[name] = sums[name].plus(bag_of(out[name]))
            assert sums[name] == total, (number, name, sums[name].plus(total, -1))
