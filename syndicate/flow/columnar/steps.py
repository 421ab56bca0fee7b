"""A circuit made ready for columns: at the first of them, each node of the root gets a step that takes tables.

A node whose operator or function is not known gets its input as rows, as a loop does.  So does a node whose columnar
step finds that it cannot: see :class:`~.table.ByRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from syndicate.flow.arrangement import Arrangement
from syndicate.flow.columnar import extremes, joins, sums
from syndicate.flow.columnar.table import ColumnarZSet, ColumnTable, bits, joined, kind_of
from syndicate.flow.comparison import where
from syndicate.flow.element import Element, is_rearranging
from syndicate.flow.node import Carries, Kind, Node
from syndicate.flow.shape import ByRows, Leaf, Shape, traced

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope, Step

Columnar: TypeAlias = Callable[..., Any]
"""A node's step on the batches of its inputs, at least one of which is a table."""


class Readied:
    """The columnar parts of an engine's state."""

    __slots__ = ("by_rows", "indexed", "sorted_runs")

    def __init__(self, scope: Scope) -> None:
        self.indexed = {slot: scope.circuit.carries(port) is Carries.INDEXED for port, slot in scope.slots.items()}
        self.sorted_runs: list[tuple[Node, joins.ArrangedRuns | sums.SummedRuns | extremes.ExtremeRuns]] = []
        self.by_rows: set[int] = set(scope.absorbers)
        self._arrange(scope)
        seen: set[int] = set()
        for at, node in enumerate(scope.nodes):
            if node.id not in seen:  # the other places of a loop are its outputs
                seen.add(node.id)
                scope.steps[at] = self._step_of(scope, node, at)

    def settle(self) -> None:
        """Let the heads hold everything."""
        for _, runs in self.sorted_runs:
            runs.settle()

    def _arrange(self, scope: Scope) -> None:
        """Give arrangements sorted_runs, if all who read them know of sorted_runs, and so do those that they are joined
        with.
        """
        nodes = scope.circuit.nodes
        taken = {slot: taker for slot, taker in enumerate(scope.takers) if taker is not None}
        columnar = {
            slot
            for slot, taker in taken.items()
            if isinstance(taker, Arrangement) and slot not in scope.absorbers and scope.nodes[slot].child is None
        }
        for node in nodes:
            if node.child is not None:
                columnar -= {scope.slots[imported.inputs[0]] for imported in node.child.imports}
        readers = [
            ({scope.slots[port] for port in node.inputs}, is_rearranging(node.params["function"]))
            for node in nodes
            if node.op == "join"
        ]
        while wrong := [sides for sides, plain in readers if sides & columnar and not (plain and sides <= columnar)]:
            columnar -= set[int]().union(*wrong)
        for slot, taker in taken.items():
            if slot in columnar and isinstance(taker, Arrangement):
                taker.sorted_runs = joins.ArrangedRuns(taker, scope.engine)
                self.sorted_runs.append((scope.nodes[slot], taker.sorted_runs))
            else:
                self.by_rows.add(slot)

    def _step_of(self, scope: Scope, node: Node, at: int) -> Step:
        old = scope.steps[at]
        if node.kind in (Kind.SOURCE, Kind.IMPORT, Kind.FEEDBACK):
            return old
        ports = node.inputs if node.child is None else [each.inputs[0] for each in node.child.imports]
        slots = [scope.slots[port] for port in ports]
        if node.op == "join":
            step = self._join(scope, node, old)
        elif node.op in ("distinct", "aggregate"):
            step = self._summed(scope, node, old)
        else:
            step = self._either(scope.cells, slots, old, _columnar(scope, node))
        return _as_rows(step, indexed=node.carries[0] is Carries.INDEXED) if at in self.by_rows else step

    def _summed(self, scope: Scope, node: Node, old: Step) -> Step:
        cells, i = scope.cells, scope.inputs(node)[0]
        runs = _summed_runs(scope, node)
        if runs is None:
            return self._either(cells, [i], old, None)
        self.sorted_runs.append((node, runs))
        indexed = node.op == "aggregate"
        rest = self._either(cells, [i], old, None)

        def step() -> object:
            batch = cells[i]
            if isinstance(batch, ColumnTable):
                try:
                    return runs.step(batch)
                except ByRows:
                    if len(runs):
                        rows = batch.rows(indexed=indexed)
                        runs.pull(joins.row_keys(rows) if indexed else rows)
                return rest()
            if len(runs):
                runs.pull(joins.row_keys(batch) if indexed else batch)
            return old()

        return step

    def _either(self, cells: list[Any], slots: list[int], old: Step, columnar: Columnar | None) -> Step:
        """A step that takes tables where it can, else rows; after a failure its cells hold rows, for the blame."""
        indexed = self.indexed
        only = slots[0] if len(slots) == 1 else -1

        def step() -> object:
            if only >= 0 and not isinstance(cells[only], ColumnTable):
                return old()
            tables = [(i, table) for i in slots if isinstance(table := cells[i], ColumnTable)]
            if not tables:
                return old()
            if columnar is not None:
                try:
                    return columnar(*[cells[i] for i in slots])
                except ByRows:
                    pass
            for i, table in tables:
                cells[i] = table.rows(indexed=indexed[i])
            result = old()
            for i, table in tables:
                cells[i] = table
            return result

        return step

    def _join(self, scope: Scope, node: Node, old: Step) -> Step:
        cells, (i, j) = scope.cells, scope.inputs(node)
        left, right = scope.takers[i], scope.takers[j]
        one, other = [each.sorted_runs if isinstance(each, Arrangement) else None for each in (left, right)]
        rest = self._either(cells, [i, j], old, None)
        if not isinstance(one, joins.ArrangedRuns) or not isinstance(other, joins.ArrangedRuns):
            return rest

        def step() -> object:
            a, b = cells[i], cells[j]
            arrays = isinstance(a, ColumnTable) or isinstance(b, ColumnTable)
            if arrays:
                try:
                    return joins.change(node, one, other)
                except ByRows:
                    one.by_rows()
                    other.by_rows()
            if a and other.sorted_runs.runs:
                other.pull(joins.row_keys(_rows_of(a, indexed=True)))
            if b and one.sorted_runs.runs:
                one.pull(joins.row_keys(_rows_of(b, indexed=True)))
            return rest() if arrays else old()

        return step


def _rows_of(batch: Any, *, indexed: bool) -> Any:
    return batch.rows(indexed=indexed) if isinstance(batch, ColumnTable) else batch


def _as_rows(step: Step, *, indexed: bool) -> Step:
    return lambda: _rows_of(step(), indexed=indexed)


def _summed_runs(scope: Scope, node: Node) -> sums.SummedRuns | extremes.ExtremeRuns | None:
    if not scope.is_flat(node.inputs[0]):
        return None
    if node.op == "distinct":
        form = sums.distinct() if node.carries[0] is Carries.ZSET else None
    elif extremes.knows(node.params["aggregate"]):
        return extremes.ExtremeRuns(scope, node)
    else:
        form = sums.aggregated(node.params["aggregate"])
    return None if form is None else sums.SummedRuns(scope, scope.engine.states[node.global_id][0], form)


class _Traced:
    """The shape that a function makes of a shape, found once."""

    __slots__ = ("function", "result", "seen")

    def __init__(self, function: Callable[[Element], Element]) -> None:
        self.function = function
        self.seen: Shape = None
        self.result: Shape = None

    def __call__(self, shape: Shape) -> Shape:
        """The shape; raises :class:`ByRows`."""
        if self.seen is not shape or shape is None:
            if not is_rearranging(self.function):
                raise ByRows
            self.result = traced(self.function, shape)
            self.seen = shape
        return self.result


def _columnar(scope: Scope, node: Node) -> Columnar | None:
    """How a node that keeps nothing takes tables, if it can."""
    if node.kind is Kind.SINK:
        return _sink(scope, node)
    if node.kind is not Kind.OPERATOR:
        return None
    if node.op == "map":
        shaped = _Traced(node.params["function"])
        return lambda table: table.shaped(shaped(table.shape))
    if node.op == "filter" and isinstance(node.params["function"], where):
        predicate = node.params["function"]
        return lambda table: table.taken(_mask(predicate, table))
    if node.op == "index_with":
        return _index(node.params["key"], node.params["value"])
    return _SIMPLE.get(node.op)


def _index(key: Callable[[Element], Element], value: Element) -> Columnar:
    keys, values = _Traced(key), None if value is None else _Traced(value)

    def index(table: ColumnTable) -> ColumnTable:
        shape = table.shape
        return table.shaped((keys(shape), shape if values is None else values(shape)))

    return index


def _mask(predicate: where, table: ColumnTable) -> Any:
    shape = table.shape
    try:
        part = shape if predicate.column is None else shape[predicate.column]
    except (TypeError, IndexError):
        raise ByRows from None
    if type(part) is not Leaf:
        raise ByRows
    column, constant, function = table.columns[part.at], predicate.constant, predicate.function
    kind = kind_of(column)
    if kind == "o":
        try:
            return np.fromiter((function(value, constant) for value in column.tolist()), bool, len(column))
        except Exception:
            raise ByRows from None
    if kind == "i" and type(constant) is int and -(1 << 63) <= constant < 1 << 63:
        return _ARRAYS[predicate.comparison](column, constant)
    if kind == "f" and type(constant) is float and constant == constant:  # noqa: PLR0124  # nan
        if predicate.comparison in ("==", "!="):
            return _ARRAYS[predicate.comparison](bits(column), np.float64(constant).view(np.int64))
        mask = _ARRAYS[predicate.comparison](column, constant)
        return mask | np.isnan(column) if predicate.comparison in (">", ">=") else mask
    raise ByRows


_ARRAYS: Final[dict[str, Callable[[Element, Element], Element]]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal
}  # fmt: skip
"""The comparisons of two numbers of one type; ``nan`` apart, and but for the two zeros."""


def _plus(a: Any, b: Any) -> Any:
    if not (isinstance(a, ColumnTable) and isinstance(b, ColumnTable)):
        if a and b:
            raise ByRows
        return a or b
    a, b = a.normal(), b.normal()
    if a.looks() != b.looks():
        raise ByRows
    return joined([a, b])


def _negate(table: ColumnTable) -> ColumnTable:
    return ColumnTable(table.columns, -table.weights, table.shape)


def _minus(a: Any, b: Any) -> Any:
    if isinstance(b, ColumnTable):
        return _plus(a, _negate(b))
    if b:
        raise ByRows
    return a


_SIMPLE: Final[dict[str, Columnar]] = {
    "pairs": lambda table: table,
    "forward": lambda table: table,
    "keys": lambda table: table.shaped(table.shape[0]),
    "values": lambda table: table.shaped(table.shape[1]),
    "negate": _negate,
    "plus": _plus,
    "minus": _minus,
}


def _sink(scope: Scope, node: Node) -> Columnar | None:
    if len(node.inputs) != 1 or scope.circuit.carries(node.inputs[0]) is not Carries.ZSET:
        return None

    def sink(table: ColumnTable) -> None:
        if table.weights.min() < 0 < table.weights.max():
            table = table.consolidated()  # so that a sink with no change is not among the outputs
            if not len(table):
                return
        scope.engine.outputs[node.name] = ColumnarZSet.lazily(table)

    return sink
