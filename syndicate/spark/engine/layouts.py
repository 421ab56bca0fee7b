"""The layout of each stream of a circuit: found from what the sources have brought, before anything runs.

Layouts pass from inputs to outputs, and from the two sides of a join to each other, since both sides' keys must have
the same columns; in loops until nothing changes.  They only ever get wider, so that what is kept can be read in the
layout of today.  A stream that nothing can have come along yet has none.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from attrs import evolve, frozen

from syndicate.flow.element import Element, rearranges
from syndicate.flow.node import Carries, GlobalId, Kind, Netlist, Node, Port
from syndicate.spark.engine.compile import Traced, Tracer
from syndicate.spark.engine.shape import Layout, Shape, bounded, joined, shape_of, widest

SUMS = ("sum", "avg", "min", "max")
_KINDS = {"sum": ("long",), "avg": ("long",), "min": ("long", "string", "binary"), "max": ("long", "string", "binary")}


@rearranges
def itself(element: Element) -> Element:
    """The element."""
    return element


@frozen
class MeasuredColumn:
    """What an aggregate looks at, as a column, and the kind of its result; None runs in Python."""

    column: str
    kind: str
    result: str


class Layouts:
    """The layouts of one circuit and its loops."""

    def __init__(self, circuit: Netlist) -> None:
        self.circuit = circuit
        self.tracer = Tracer()
        self.by_port: dict[tuple[GlobalId, Port], Layout] = {}
        self.sources: dict[str, Shape] = {}
        self._traced: dict[Hashable, Element] = {}

    def bring(self, source: str, shape: Shape) -> bool:
        """A source has brought elements of a shape: whether that is news."""
        old = self.sources.get(source)
        new = shape if old is None else widest(old, shape)
        self.sources[source] = new
        return new != old

    def of(self, circuit: Netlist, port: Port) -> Layout | None:
        """The layout of a stream."""
        return self.by_port.get((circuit.path, port))

    def find(self) -> None:
        """Let all layouts follow from those of the sources."""
        while self._pass(self.circuit):
            pass

    def slow(self) -> None:
        """From now on all arithmetic is Python's."""
        self.tracer = Tracer(exact=False)
        self._traced.clear()
        self.find()

    def saved(self) -> tuple[Tracer, dict[str, Shape], dict[tuple[GlobalId, Port], Layout]]:
        """All that a step may change."""
        return (self.tracer, dict(self.sources), dict(self.by_port))

    def restore(self, saved: tuple[Tracer, dict[str, Shape], dict[tuple[GlobalId, Port], Layout]]) -> None:
        """The step has not happened."""
        tracer, self.sources, self.by_port = saved
        if tracer is not self.tracer:
            self.tracer = tracer
            self._traced.clear()

    def _pass(self, circuit: Netlist) -> bool:
        news = False
        for node in circuit.order():
            if node.child is not None:
                for imported in node.child.imports:
                    news |= self.put(node.child, Port(imported.id), self.of(circuit, imported.inputs[0]))
                news |= self._pass(node.child)
                for output, port in enumerate(node.child.exports):
                    news |= self.put(circuit, Port(node.id, output), self.of(node.child, port))
            elif node.kind is not Kind.IMPORT and node.carries:
                news |= self.put(circuit, Port(node.id), self._of_node(node))
        return news

    def put(self, circuit: Netlist, port: Port, layout: Layout | None) -> bool:
        """A stream has elements of a layout, too: whether that is news."""
        if layout is None:
            return False
        layout = Layout(bounded(layout.value), None if layout.key is None else bounded(layout.key))
        place = (circuit.path, port)
        old = self.by_port.get(place)
        new = joined(old, layout)
        assert new is not None
        self.by_port[place] = new
        return new != old

    def _of_node(self, node: Node) -> Layout | None:
        if node.op == "source":
            shape = self.sources.get(node.name)
            return None if shape is None else Layout(shape)
        if node.op == "constant":
            elements = list(node.params["zset"])
            return Layout(shape_of(elements)) if elements else None
        inputs = [self.of(node.circuit, port) for port in node.inputs]
        if node.op in ("plus", "minus", "trace_append", "untimed_trace_append"):
            return joined(*inputs)
        if node.op in ("join", "join_stream", "join_trace"):
            return self._of_join(node, inputs)
        first = inputs[0]
        if first is None:
            return None
        if node.op in ("map", "flat_map"):
            traced = self.map(node, first) if node.op == "map" else None
            return Layout("any" if traced is None else traced.shape)
        if node.op == "index_with":
            both = self.index(node, first)
            if both is not None:
                return Layout(both[1].shape, both[0].shape)
            return Layout(first.value if node.params["value"] is None else "any", "any")
        if node.op == "keys":
            return Layout(first.key or ())
        if node.op == "values":
            return Layout(first.value)
        if node.op in ("aggregate", "aggregate_stream"):
            measure = self.measure(node, first)
            assert first.key is not None
            return Layout((first.key, "any" if measure is None else measure.result))
        if node.op in ("distinct_trace", "distinct_incremental"):
            return pairs(joined(first, inputs[1]) or first)
        if node.op in ("pairs", "consolidate"):
            return pairs(first)
        return first

    def _of_join(self, node: Node, inputs: list[Layout | None]) -> Layout | None:
        left, right = inputs
        if left is None or right is None:
            return None
        assert left.key is not None
        if right.key is None:  # a trace of elements alone
            return None
        key = widest(left.key, right.key)
        for port, layout in zip(node.inputs, (left, right), strict=True):
            self.put(node.circuit, port, evolve(layout, key=key))
        traced = self.join(node, evolve(left, key=key), evolve(right, key=key))
        return Layout("any" if traced is None else traced.shape)

    # ----------------------------------------------------------------------------------------------- what is traced

    def _once(self, key: Hashable, make: Callable[[], Element]) -> Element:
        if key not in self._traced:
            self._traced[key] = make()
        return self._traced[key]

    def map(self, node: Node, layout: Layout) -> Traced | None:
        """A map's columns."""
        function, cells = node.params["function"], self.tracer.cells
        traced: Traced | None = self._once(
            (node.global_id, layout), lambda: self.tracer.call(function, (cells("e", layout.value),))
        )
        return traced

    def filter(self, node: Node, layout: Layout) -> str | None:
        """A filter's condition."""
        function, cells = node.params["function"], self.tracer.cells
        test: str | None = self._once(
            (node.global_id, layout), lambda: self.tracer.test(function, (cells("e", layout.value),))
        )
        return test

    def index(self, node: Node, layout: Layout) -> tuple[Traced, Traced] | None:
        """An index's columns, of the key and of the value."""

        def make() -> tuple[Traced, Traced] | None:
            cells = (self.tracer.cells("e", layout.value),)
            key = self.tracer.call(node.params["key"], cells)
            value = self.tracer.call(node.params["value"] or itself, cells)
            return None if key is None or value is None else (key, value)

        functions: tuple[Traced, Traced] | None = self._once((node.global_id, layout), make)
        return functions

    def join(self, node: Node, left: Layout, right: Layout) -> Traced | None:
        """The columns of a join's function."""

        def make() -> Traced | None:
            cells = self.tracer.cells
            assert left.key is not None
            return self.tracer.call(
                node.params["function"], (cells("k", left.key), cells("a", left.value), cells("b", right.value))
            )

        function: Traced | None = self._once((node.global_id, left, right), make)
        return function

    def measure(self, node: Node, layout: Layout) -> MeasuredColumn | None:
        """What an aggregate looks at."""

        def make() -> MeasuredColumn | None:
            aggregate = node.params["aggregate"]
            if aggregate.form == "count":
                return MeasuredColumn("1L", "long", "long")
            if aggregate.form not in SUMS or not self.tracer.exact:
                return None
            traced = self.tracer.call(aggregate.by or itself, (self.tracer.cells("e", layout.value),))
            if traced is None or not isinstance(traced.shape, str) or traced.shape not in _KINDS[aggregate.form]:
                return None
            return MeasuredColumn(
                traced.columns[0], traced.shape, "double" if aggregate.form == "avg" else traced.shape
            )

        measure: MeasuredColumn | None = self._once((node.global_id, layout), make)
        return measure


def pairs(layout: Layout) -> Layout:
    """An indexed stream's elements as pairs."""
    return layout if layout.key is None else Layout((layout.key, layout.value))


def indexed(node: Node, number: int = 0) -> bool:
    """Whether an input of a node is an Indexed ZSet."""
    return node.circuit.carries(node.inputs[number]) is Carries.INDEXED
