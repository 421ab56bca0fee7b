"""A circuit whose nodes take tables where they can: see :mod:`syndicate.flow.word_tables`.

Tables come from sources, and go as far as functions only rearrange: through ``map``, ``filter``, ``index_with`` and the
like to joins, ``distinct``, ``count sum avg min max`` and loops that can be in words (:mod:`syndicate.flow.word_loop`),
and from these on.  Where none of these can be reached so, rows stay rows.  Each other node gets its input as rows, as
do other loops, and the functions of the user.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.flow.arrangement import Arrangement
from syndicate.flow.element import ATOMS, Element, Key, Typed, is_rearranging, key_of, natural
from syndicate.flow.loop import Loop
from syndicate.flow.node import Carries, Kind, Node, Port
from syndicate.flow.pipeline import STAGED, Pipeline
from syndicate.flow.shape import (
    ByRows,
    Shape,
    joined_shape,
    leaf,
    leaves,
    normal,
    rearranging,
    row_shape,
    several,
    traced,
    united,
)
from syndicate.flow.undo import note_attribute
from syndicate.flow.word_loop import LoopRows, is_in_words
from syndicate.flow.word_state import ArrangedRows, KeptRows, RankedRows, SummedRows, WeighedRows
from syndicate.flow.word_tables import TableZSet, Texts, WordShape, WordTable, words
from syndicate.graph import reached

if TYPE_CHECKING:
    from syndicate.flow.aggregates import Aggregate
    from syndicate.flow.scope import Scope, Step

Change: TypeAlias = Callable[..., Element]
"""A node's step on the batches of its inputs, at least one of which is a table."""

PASSING: Final = frozenset({"pairs", "keys", "values", "forward", "negate", "plus", "minus"})
SUMMED: Final = frozenset({"count", "sum", "avg"})
RANKED: Final = frozenset({"min", "max"})
KEEPING: Final = frozenset({"join", "distinct", "aggregate"})


def tabular(scope: Scope, firsts: Mapping[int, Key]) -> Tabular | None:
    """The root of a circuit made ready for tables, with a note of it; None where they would gain nothing.

    *firsts* has an element of each source that has given any.
    """
    kernel = words(key_of, Typed, [kind for kind in ATOMS if kind not in (int, str, bytes, type(None))])
    if kernel is None:
        return None
    ports = _ports(scope)
    nodes = scope.circuit.nodes
    if not any(nodes[port.node].op in KEEPING or nodes[port.node].child is not None for port in ports):
        return None
    return Tabular(scope, Texts(kernel), ports, firsts)


def _ports(scope: Scope) -> set[Port]:
    """The streams that carry tables: those that come from sources by what keeps them so, and lead to what gains."""
    nodes = scope.circuit.nodes
    loops = {loop.node.id for loop in scope.children if isinstance(loop, Loop) and is_in_words(loop)}
    imported = {
        each.inputs[0]
        for node in nodes
        if node.child is not None and node.id not in loops
        for each in node.child.imports
    }
    ports = {
        port
        for port, slot in scope.slots.items()
        if (_can(nodes[port.node]) if nodes[port.node].child is None else port.node in loops)
        and slot not in scope.absorbers
        and not (port in imported and scope.takers[slot] is not None)
    }
    while True:
        arranged = {port for node in nodes if node.op == "join" and Port(node.id) not in ports for port in node.inputs}
        fewer = {port for port in ports if port not in arranged and ports.issuperset(_needed(scope, nodes[port.node]))}
        if fewer == ports:
            break
        ports = fewer
    by_rows = {port for each in loops - {port.node for port in ports} for port in _needed(scope, nodes[each])}
    if by_rows & ports:
        return set()  # a loop by rows and something in words share an arrangement: all of it by rows
    gaining = [port.node for port in ports if nodes[port.node].op in KEEPING or nodes[port.node].child is not None]
    ahead = set(reached(gaining, lambda number: [port.node for port in inputs_of(nodes[number])]))
    behind = _behind(nodes, set(gaining))
    return {port for port in ports if port.node in ahead or port.node in behind}


def inputs_of(node: Node) -> list[Port]:
    """What a node reads: of a loop, what its imports do."""
    return node.inputs if node.child is None else [each.inputs[0] for each in node.child.imports]


def _needed(scope: Scope, node: Node) -> list[Port]:
    """The inputs that must be tables, for a node to give tables: of a loop, those by key."""
    return [port for port in inputs_of(node) if node.child is None or scope.takers[scope.slots[port]] is not None]


def _behind(nodes: list[Node], gaining: set[int]) -> set[int]:
    ids = set(gaining)
    for node in nodes:  # in the order in which they were made: inputs first
        if any(port.node in ids for port in inputs_of(node)):
            ids.add(node.id)
    return ids


def _can(node: Node) -> bool:
    """Whether a node gives tables if it is given such."""
    params = node.params
    match node.op:
        case "source":
            return "key" not in params
        case "constant":
            return True
        case "map" | "flat_map" | "join":
            return is_rearranging(params["function"])
        case "filter":
            return True
        case "index_with":
            return is_rearranging(params["key"]) and (params["value"] is None or is_rearranging(params["value"]))
        case "distinct":
            return node.carries[0] is Carries.ZSET
        case "aggregate":
            aggregate: Aggregate = params["aggregate"]
            return aggregate.form in SUMMED | RANKED and (aggregate.by is None or is_rearranging(aggregate.by))
    return node.op in PASSING


def _passing(scope: Scope, ports: set[Port]) -> dict[Port, list[str]]:
    """The sources that sinks alone read, which give what they get; the sinks of each."""
    readers: dict[Port, list[Node]] = {port: [] for port in scope.slots}
    for node in scope.circuit.nodes:
        for port in inputs_of(node):
            readers[port].append(node)
    return {
        port: [node.name for node in sinks]
        for port, sinks in readers.items()
        if scope.circuit.nodes[port.node].op == "source" and port not in ports
        and all(node.kind is Kind.SINK and len(node.inputs) == 1 for node in sinks)
    }  # fmt: skip


def _look(elements: Iterable[Key]) -> Shape:
    """What the first of some elements looks like; None without any."""
    for first in elements:
        element = natural(first)
        return row_shape(len(element)) if type(element) is tuple else leaf(0)
    return None


class Tabular:
    """The tables of an engine: who takes them, and what is kept in words."""

    __slots__ = ("_old", "_scope", "_word_shapes", "indexed", "keepers", "pipeline", "ports", "sources", "texts")

    def __init__(self, scope: Scope, texts: Texts, ports: set[Port], firsts: Mapping[int, Key]) -> None:
        self.texts = texts
        self.ports = ports
        self._scope = scope
        self._old = list(scope.steps)
        scope.undo.append((self._put_back, self._old))
        self.indexed = {slot: scope.circuit.carries(port) is Carries.INDEXED for port, slot in scope.slots.items()}
        self.keepers: list[tuple[Node, KeptRows]] = []
        nodes = scope.circuit.nodes
        self.sources: dict[int, Shape] = {
            slot: _look(
                nodes[port.node].params["zset"].batch if nodes[port.node].op == "constant"
                else [firsts[slot]] if slot in firsts
                else ()
            )
            for port in ports
            if nodes[port.node].kind is Kind.SOURCE
            for slot in (scope.slots[port],)
        }  # fmt: skip
        self._word_shapes: dict[int, WordShape] = {}  # what elements of a source look like, as the kernel reads it
        for port in ports:
            taker = scope.takers[scope.slots[port]]
            if isinstance(taker, Arrangement):
                note_attribute(scope.undo, taker, "words")
                taker.words = ArrangedRows(texts, scope.undo, taker)
                self.keepers.append((nodes[port.node], taker.words))
        seen: set[int] = set()
        for at, node in enumerate(scope.nodes):
            if node.id not in seen:  # the other places of a loop are its outputs
                seen.add(node.id)
                scope.steps[at] = self._step_of(scope, node, scope.steps[at])
        passing = _passing(scope, ports)
        is_one = not scope.children and ports.issuperset(scope.slots.keys() - passing)
        is_one = is_one and all(node.op in STAGED for node in nodes)
        shown = {scope.slots[port]: names for port, names in passing.items()}
        self.pipeline = Pipeline(scope, texts, self.sources, self.keepers, shown) if is_one else None

    def taken(self, slot: int, batch: dict[Key, int]) -> WordTable | None:
        """What a source gives into its cell, as a table; None where that cannot be, or is not asked for."""
        if slot not in self.sources or not batch:
            return None
        shape = self.sources[slot]
        if shape is None:
            shape = self.sources[slot] = _look(batch)
        try:
            word_shape = self._word_shapes.get(slot)
            if word_shape is None:
                word_shape = self._word_shapes[slot] = self.texts.shape(shape)
            return self.texts.words.table(batch, word_shape, shape)
        except Exception:  # who takes it by rows says what is wrong with it
            return None

    def give_back(self) -> None:
        """Give memory back; between steps."""
        stores = [each for _, keeper in self.keepers if (each := keeper.store) is not None]
        for each in stores:
            each.give_back()
        self.texts.words.sweep(stores)

    def settle(self) -> None:
        """Let dictionaries hold everything, with a note of it."""
        if self.pipeline is not None:
            self.pipeline.stages = None
        for _, keeper in self.keepers:
            keeper.settle()

    def end(self) -> None:
        """Go over to dictionaries for good; between steps."""
        for _, keeper in self.keepers:
            keeper.by_rows()
        self._scope.undo.clear()  # here it has happened: all steps take rows from now on
        self._put_back(self._old)
        for taker in self._scope.takers:
            if isinstance(taker, Arrangement):
                taker.words = None

    def _put_back(self, steps: list[Step]) -> None:
        self._scope.steps[:] = steps  # in place: who measures them has the list

    # ------------------------------------------------------------------------------------------------------- steps

    def _step_of(self, scope: Scope, node: Node, old: Step) -> Step:
        if node.kind in (Kind.SOURCE, Kind.IMPORT, Kind.FEEDBACK):
            return old
        slots = [scope.slots[port] for port in inputs_of(node) if port in self.ports]
        cells = scope.cells
        rest = self._by_rows(cells, slots, old) if slots else old
        if node.child is not None and Port(node.id) in self.ports:
            return self._loop(scope, node, rest)
        if not slots:
            return old
        if node.kind is Kind.SINK:
            return self._sink(scope, node, rest)
        if Port(node.id) not in self.ports:
            return rest
        match node.op:
            case "join":
                return self._join(scope, node, rest)
            case "distinct":
                weighed = WeighedRows(self.texts, scope.undo, scope.engine.states[node.global_id][0])
                self.keepers.append((node, weighed))
                return weighed.stepping(cells, slots[0], rest)
            case "aggregate":
                return self._aggregate(scope, node).stepping(cells, slots[0], rest)
        change = self._change(node)

        def step() -> object:
            try:
                return change(*[cells[slot] for slot in slots])
            except Exception:  # by rows it says what it is
                return rest()

        return step

    def _aggregate(self, scope: Scope, node: Node) -> SummedRows | RankedRows:
        states, aggregate = scope.engine.states[node.global_id], node.params["aggregate"]
        rows = (
            RankedRows(self.texts, scope.undo, states, aggregate) if aggregate.form in RANKED
            else SummedRows(self.texts, scope.undo, states[0], aggregate)
        )  # fmt: skip
        self.keepers.append((node, rows))
        return rows

    def _by_rows(self, cells: list[Element], slots: list[int], old: Step) -> Step:
        """A step that takes rows; after a failure its cells hold rows, for the blame."""
        indexed, texts = self.indexed, self.texts

        def step() -> object:
            tables = [(i, cells[i]) for i in slots if hasattr(cells[i], "memo")]
            for i, table in tables:
                cells[i] = texts.rows(table, indexed=indexed[i])
            result = old()
            for i, table in tables:
                cells[i] = table
            return result

        return step

    def _change(self, node: Node) -> Change:
        """What a node that keeps nothing makes of tables."""
        function = rearranging(node.op, node.params)
        if function is not None:
            return _Shaped(function)
        match node.op:
            case "filter":
                test, texts = node.params["function"], self.texts
                return lambda table: table.taken(bytes(map(bool, map(test, texts.elements(table, table.shape)))))
            case "flat_map":
                several_of = node.params["function"]
                return _Gathered(self.texts, lambda shape: [(0, each) for each in several(several_of, shape)])
            case "negate":
                return lambda table: table.negated()
        plus = _Gathered(self.texts, lambda a, b: [(0, a), (1, b)])
        minus = node.op == "minus"
        return lambda a, b: plus(a, b.negated() if b and minus else b)

    def _join(self, scope: Scope, node: Node, rest: Step) -> Step:
        i, j = scope.inputs(node)
        left, right = scope.takers[i], scope.takers[j]
        assert isinstance(left, Arrangement)
        assert isinstance(right, Arrangement)
        one, other = left.words, right.words
        assert isinstance(one, ArrangedRows)
        assert isinstance(other, ArrangedRows)
        function, kernel = node.params["function"], self.texts.words
        seen: tuple[Shape, Shape] = (None, None)
        shape: Shape = None
        whole = False

        def step() -> object:
            nonlocal seen, shape, whole
            try:
                if one.store is None or other.store is None:
                    one.ready(other)
                    other.ready(one)
                    if one.store is None or other.store is None:
                        return None  # one side has never had anything
                if seen[0] is not one.shape or seen[1] is not other.shape:
                    shape, whole = joined_shape(function, one.shape, other.shape)
                    seen = one.shape, other.shape
                return kernel.join(one.store, other.store, shape, whole)
            except (ByRows, OverflowError):
                one.by_rows()
                other.by_rows()
                return rest()

        return step

    def _loop(self, scope: Scope, node: Node, rest: Step) -> Step:
        (loop,) = (loop for loop in scope.children if isinstance(loop, Loop) and loop.node is node)
        rows = LoopRows(self.texts, loop, rest)
        self.keepers.append((node, rows))
        return rows.step

    def _sink(self, scope: Scope, node: Node, rest: Step) -> Step:
        cells, slots, texts, name, engine = scope.cells, scope.inputs(node), self.texts, node.name, scope.engine
        if len(slots) != 1 or self.indexed[slots[0]]:
            return rest
        slot = slots[0]

        def step() -> object:
            table = cells[slot]
            if not hasattr(table, "memo"):
                return rest()
            if not table.once:
                table = consolidated(table)
                if not table:
                    return None  # what cancels out is no change
            texts.words.show(table)
            engine.outputs[name] = TableZSet.lazily(texts, table, texts.shape(table.shape))
            return None

        return step


# ------------------------------------------------------------------------------------------------------------- shapes


def consolidated(table: WordTable) -> WordTable:
    """Each element once, and none that cancels out."""
    columns, shape = normal(table.shape)
    return table.consolidated(columns, shape)


class _Shaped:
    """What a function that only rearranges makes of tables; it is called once for each shape."""

    __slots__ = ("function", "result", "seen", "whole")

    def __init__(self, function: Callable[[Element], Element]) -> None:
        self.function = function
        self.seen: Shape = None
        self.result: Shape = None
        self.whole = False

    def __call__(self, table: WordTable) -> WordTable:
        """The same rows with other elements; raises :class:`ByRows`."""
        if table.shape is not self.seen:
            self.result = traced(self.function, table.shape)
            self.whole = len(set(leaves(self.result))) == table.width
            self.seen = table.shape
        return table.shaped(self.result, self.whole)


class _Gathered:
    """Tables one after the other, as which elements of which of them; the function is called once for each shape."""

    __slots__ = ("columns", "parts", "places", "result", "seen", "texts")

    def __init__(self, texts: Texts, parts: Callable[..., list[tuple[int, Shape]]]) -> None:
        self.texts = texts
        self.parts = parts
        self.seen: list[Shape] = []
        self.places: list[int] = []
        self.columns: list[list[Element]] = []
        self.result: Shape = None

    def __call__(self, *tables: Element) -> Element:
        """All their rows; raises :class:`ByRows`."""
        there = [table for table in tables if table]
        if len(there) < len(tables):
            return there[0] if there else None  # of two at most
        shapes = [table.shape for table in tables]
        if len(self.seen) != len(shapes) or any(a is not b for a, b in zip(self.seen, shapes, strict=True)):
            parts = self.parts(*shapes)
            self.places = [at for at, _ in parts]
            self.columns, self.result = united([shape for _, shape in parts])
            self.seen = shapes
        rows = [(tables[at], columns) for at, columns in zip(self.places, self.columns, strict=True)]
        return self.texts.words.gathered(rows, self.result)
