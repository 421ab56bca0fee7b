"""A circuit whose nodes take tables where they can: see :mod:`syndicate.flow.tables`.

Tables come from sources, and go as far as functions only rearrange: through ``map``, ``filter``, ``index_with`` and the
like to joins, ``distinct``, ``count`` and ``sum``, and from these on.  Where none of these can be reached so, rows stay
rows.  Element other node gets its input as rows, as do loops, and the functions of the user.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.flow.element import ATOMS, Element, Key, MixedRows, Rows, Typed, is_rearranging, key_of, natural
from syndicate.flow.node import Carries, Kind, Node, Port
from syndicate.flow.operators.arrangement import NO_ROWS, Arrangement, add_rows
from syndicate.flow.shape import ByRows, Leaf, Shape, leaf, leaves, renamed, row_shape, signature, traced
from syndicate.flow.tables import Arranged, Kept, Summed, Table, TableZSet, Texts, Weighed, words
from syndicate.flow.undo import Log, note_attribute, note_whole
from syndicate.graph import reached

if TYPE_CHECKING:
    from syndicate.flow.aggregates import Aggregate
    from syndicate.flow.operators.context import Step
    from syndicate.flow.scope import Scope

Change: TypeAlias = Callable[..., Element]
"""A node's step on the batches of its inputs, at least one of which is a table."""

PASSING: Final = frozenset({"pairs", "keys", "values", "forward", "negate", "plus", "minus"})
KEEPING: Final = frozenset({"join", "distinct", "aggregate"})


def tabular(scope: Scope) -> Tabular | None:
    """The root of a circuit made ready for tables; None where no kernel runs, or tables would gain nothing."""
    kernel = words(key_of, Typed, [kind for kind in ATOMS if kind not in (int, str, bytes, type(None))])
    if kernel is None:
        return None
    ports = _ports(scope)
    if not any(scope.circuit.nodes[port.node].op in KEEPING for port in ports):
        return None
    return Tabular(scope, Texts(kernel), ports)


def _ports(scope: Scope) -> set[Port]:
    """The streams that carry tables: those that come from sources by what keeps them so, and lead to what gains."""
    nodes = scope.circuit.nodes
    imported = {each.inputs[0] for node in nodes if node.child is not None for each in node.child.imports}
    ports = {
        port
        for port, slot in scope.slots.items()
        if nodes[port.node].child is None
        and _can(nodes[port.node])
        and slot not in scope.absorbers
        and not (port in imported and scope.takers[slot] is not None)
    }
    while True:
        arranged = {port for node in nodes if node.op == "join" and Port(node.id) not in ports for port in node.inputs}
        fewer = {port for port in ports if port not in arranged and ports.issuperset(nodes[port.node].inputs)}
        if fewer == ports:
            break
        ports = fewer
    gaining = [port.node for port in ports if nodes[port.node].op in KEEPING]
    ahead = set(reached(gaining, lambda number: [port.node for port in nodes[number].inputs]))
    behind = _behind(nodes, set(gaining))
    return {port for port in ports if port.node in ahead or port.node in behind}


def _behind(nodes: list[Node], gaining: set[int]) -> set[int]:
    found = set(gaining)
    for node in nodes:  # in the order in which they were made: inputs first
        if any(port.node in found for port in node.inputs):
            found.add(node.id)
    return found


def _can(node: Node) -> bool:
    """Whether a node gives tables if it is given such."""
    params = node.params
    match node.op:
        case "source":
            return "key" not in params
        case "map" | "join":
            return is_rearranging(params["function"])
        case "filter":
            return True
        case "index_with":
            return is_rearranging(params["key"]) and (params["value"] is None or is_rearranging(params["value"]))
        case "distinct":
            return node.carries[0] is Carries.ZSET
        case "aggregate":
            aggregate: Aggregate = params["aggregate"]
            return aggregate.form in ("count", "sum") and (aggregate.by is None or is_rearranging(aggregate.by))
    return node.op in PASSING


class Tabular:
    """The tables of an engine: who takes them, and what is kept in words."""

    __slots__ = ("_old", "_scope", "indexed", "keepers", "ports", "sources", "texts")

    def __init__(self, scope: Scope, texts: Texts, ports: set[Port]) -> None:
        self.texts = texts
        self.ports = ports
        self._scope = scope
        self._old = list(scope.steps)
        self.indexed = {
            slot: scope.circuit.nodes[port.node].carries[port.output] is Carries.INDEXED
            for port, slot in scope.slots.items()
        }
        self.keepers: list[tuple[Node, KeptRows]] = []
        nodes = scope.circuit.nodes
        self.sources: dict[str, Shape] = {
            nodes[port.node].name: None for port in ports if nodes[port.node].kind is Kind.SOURCE
        }
        for port in ports:
            taker = scope.takers[scope.slots[port]]
            if isinstance(taker, Arrangement):
                taker.words = ArrangedRows(texts, scope.undo, taker)
                self.keepers.append((nodes[port.node], taker.words))
        seen: set[int] = set()
        for at, node in enumerate(scope.nodes):
            if node.id not in seen:  # the other places of a loop are its outputs
                seen.add(node.id)
                scope.steps[at] = self._made(scope, node, scope.steps[at])

    def taken(self, name: str, batch: dict[Key, int]) -> Table | None:
        """What a source gives, as a table; None where that cannot be, or is not asked for."""
        if name not in self.sources or not batch:
            return None
        shape = self.sources[name]
        if shape is None:
            first = natural(next(iter(batch)))
            shape = self.sources[name] = row_shape(len(first)) if type(first) is tuple else leaf(0)
        try:
            return self.texts.words.table(batch, self.texts.shape(shape), shape)
        except Exception:  # who takes it by rows says what is wrong with it
            return None

    def give_back(self) -> None:
        """Give room back; between steps."""
        kept = [each for _, keeper in self.keepers if (each := keeper.kept) is not None]
        for each in kept:
            each.give_back()
        self.texts.words.sweep(kept)

    def settle(self) -> None:
        """Let dictionaries hold everything, with a note of it."""
        for _, keeper in self.keepers:
            keeper.settle()

    def end(self) -> None:
        """Go over to dictionaries for good; between steps."""
        for _, keeper in self.keepers:
            keeper.by_rows()
        self._scope.undo.clear()  # here it has happened: all steps take rows from now on
        self._scope.steps[:] = self._old
        for taker in self._scope.takers:
            if isinstance(taker, Arrangement):
                taker.words = None

    # ------------------------------------------------------------------------------------------------------- steps

    def _made(self, scope: Scope, node: Node, old: Step) -> Step:
        if node.kind in (Kind.SOURCE, Kind.IMPORT, Kind.FEEDBACK):
            return old
        ports = node.inputs if node.child is None else [each.inputs[0] for each in node.child.imports]
        slots = [scope.slots[port] for port in ports if port in self.ports]
        if not slots:
            return old
        cells = scope.cells
        rest = self._by_rows(cells, slots, old)
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
                summed = SummedRows(
                    self.texts, scope.undo, scope.engine.states[node.global_id][0], node.params["aggregate"]
                )
                self.keepers.append((node, summed))
                return summed.stepping(cells, slots[0], rest)
        change = self._change(node)

        def step() -> object:
            try:
                return change(*[cells[slot] for slot in slots])
            except Exception:  # by rows it says what it is
                return rest()

        return step

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
        params = node.params
        match node.op:
            case "map":
                return _Shaped(params["function"])
            case "index_with":
                return _Shaped(_pairing(params["key"], params["value"]))
            case "filter":
                function, texts = params["function"], self.texts
                return lambda table: table.taken(bytes(map(bool, map(function, texts.elements(table, table.shape)))))
            case "keys":
                return _Shaped(itemgetter(0))
            case "values":
                return _Shaped(itemgetter(1))
        return _SIMPLE[node.op]

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
                if one.kept is None or other.kept is None:
                    one.ready(other)
                    other.ready(one)
                    if one.kept is None or other.kept is None:
                        return None  # one side has never had anything
                if seen[0] is not one.shape or seen[1] is not other.shape:
                    shape, whole = joined_shape(function, one.shape, other.shape)
                    seen = one.shape, other.shape
                return kernel.join(one.kept, other.kept, shape, whole)
            except (ByRows, OverflowError):
                one.by_rows()
                other.by_rows()
                return rest()

        return step

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
            engine.outputs[name] = TableZSet.lazily(texts, table)
            return None

        return step


# ------------------------------------------------------------------------------------------------------------- shapes


def normal(shape: Shape) -> tuple[list[int], Shape]:
    """The columns of a shape in the order of their first use, and the shape with these alone.

    >>> columns, shape = normal((leaf(3), leaf(1))); columns, signature(shape)
    ([3, 1], ('tuple', 0, 1))
    """
    columns = list(dict.fromkeys(leaves(shape)))
    return columns, renamed(shape, {at: number for number, at in enumerate(columns)})


def consolidated(table: Table) -> Table:
    """Each element once, and none that cancels out."""
    columns, shape = normal(table.shape)
    return table.consolidated(columns, shape)


def joined_shape(function: Callable[..., Element], left: Shape, right: Shape) -> tuple[Shape, bool]:
    """What a function makes of key, left value and right value, and whether it tells all of them.

    Raises :class:`ByRows` where it does more than rearrange, or where the keys of the sides look different.
    """
    if signature(left[0]) != signature(right[0]):
        raise ByRows
    width = len(set(leaves(left[0])))
    first = len(set(leaves(left)))
    names = {at: at if at < width else at - width + first for at in leaves(right)}
    shape = traced(function, left[0], left[1], renamed(right[1], names))
    return shape, len(set(leaves(shape))) == first + len(set(leaves(right))) - width


class _Shaped:
    """What a function that only rearranges makes of tables; it is called once for each shape."""

    __slots__ = ("function", "result", "seen", "whole")

    def __init__(self, function: Callable[[Element], Element]) -> None:
        self.function = function
        self.seen: Shape = None
        self.result: Shape = None
        self.whole = False

    def __call__(self, table: Table) -> Table:
        """The same rows with other elements; raises :class:`ByRows`."""
        if table.shape is not self.seen:
            self.result = traced(self.function, table.shape)
            self.whole = len(set(leaves(self.result))) == table.width
            self.seen = table.shape
        return table.shaped(self.result, self.whole)


def _pairing(key: Callable[[Element], Element], value: Callable[[Element], Element] | None) -> Callable[..., Element]:
    if value is None:
        return lambda element: (key(element), element)
    return lambda element: (key(element), value(element))


def _plus(a: Element, b: Element) -> Element:
    if not a or not b:
        return a or b
    (columns, shape), (others, other) = normal(a.shape), normal(b.shape)
    if signature(shape) != signature(other):
        raise ByRows
    return a.plus(columns, b, others, shape)


def _minus(a: Element, b: Element) -> Element:
    return _plus(a, b.negated()) if b else a


_SIMPLE: Final[dict[str, Change]] = {
    "pairs": lambda table: table.shaped(table.shape, True),  # as pairs it is remembered otherwise
    "forward": lambda table: table,
    "negate": lambda table: table.negated(),
    "plus": _plus,
    "minus": _minus,
}


# --------------------------------------------------------------------------------------------------- what nodes keep


class KeptRows:
    """What a node keeps, in words or, for good, in dictionaries."""

    __slots__ = ("_columns", "_seen", "in_words", "kept", "shape", "texts", "undo")

    kept: Element

    def __init__(self, texts: Texts, undo: Log) -> None:
        self.texts = texts
        self.undo = undo
        self.in_words = True
        self.kept = None
        self.shape: Shape = None
        self._seen: Shape = None
        self._columns: list[int] = []

    def __len__(self) -> int:
        return 0 if self.kept is None else len(self.kept)

    def columns(self, shape: Shape) -> list[int]:
        """The columns of a table in the order of what is kept; raises :class:`ByRows` if it looks otherwise."""
        if shape is not self._seen:
            columns, normalised = normal(shape)
            if self.shape is None:
                self.shape = normalised
            elif signature(self.shape) != signature(normalised):
                raise ByRows
            self._seen, self._columns = shape, columns
        return self._columns

    def settle(self) -> None:
        """Let dictionaries hold everything, with a note of it."""
        if self.kept is not None:
            table = self.filled()
            note_attribute(self.undo, self, "kept")
            self.fill(table)
            self.kept = None

    def filled(self) -> Table:
        """All that is kept, as a table."""
        raise NotImplementedError  # abstract

    def fill(self, table: Table) -> None:
        """Put all that is kept into dictionaries, with a note of it."""
        raise NotImplementedError  # abstract

    def by_rows(self) -> None:
        """Go over to dictionaries for good, with a note of it."""
        if self.in_words:
            self.settle()
            note_attribute(self.undo, self, "in_words")
            self.in_words = False


class ArrangedRows(KeptRows):
    """The rows of an arrangement."""

    __slots__ = ("_table", "arrangement")

    kept: Arranged | None

    def __init__(self, texts: Texts, undo: Log, arrangement: Arrangement) -> None:
        super().__init__(texts, undo)
        self.arrangement = arrangement
        self._table: Table | None = None

    def take(self, batch: Element) -> Rows:
        """A batch arrives; what is left for the arrangement itself."""
        is_table = hasattr(batch, "memo")
        if self.in_words and is_table:
            try:
                columns = self.columns(batch.shape)
                if self.kept is None:
                    self._begin()
                assert self.kept is not None
                self.kept.arrive(batch, columns)
                self._table = batch
                return NO_ROWS
            except (ByRows, OverflowError):
                pass
        if batch:
            self.by_rows()
        rows: Rows = self.texts.rows(batch, indexed=True) if is_table else batch
        return rows

    def _begin(self) -> None:
        """Begin, with what the dictionaries hold; raises :class:`ByRows`."""
        key, value = self.shape
        width = len(set(leaves(key)))
        note_attribute(self.undo, self, "kept")
        kept = self.texts.words.arranged(width, len(set(leaves(self.shape))) - width)
        if self.arrangement.index:
            rows = [
                ((natural(key), natural(value)), weight)
                for key, group in self.arrangement.index.items()
                for value, weight in group.items()
            ]
            table = self.texts.words.table(rows, self.texts.shape((key, value)), self.shape)
            if table is None:
                raise ByRows
            kept.arrive(table, list(range(table.width)))
            kept.commit()
            note_attribute(self.undo, self.arrangement, "index")
            self.arrangement.index = {}
        self.kept = kept

    def ready(self, other: ArrangedRows) -> None:
        """Be in words, if there is anything, because the other side is; raises :class:`ByRows`."""
        if not self.in_words:
            raise ByRows
        if self.kept is None and self.arrangement.index and other.shape is not None:
            value = natural(next(iter(next(iter(self.arrangement.index.values())))))
            key, width = other.shape[0], len(set(leaves(other.shape[0])))
            parts = range(width, width + len(value)) if type(value) is tuple else ()
            self.shape = (key, tuple(map(leaf, parts)) if type(value) is tuple else leaf(width))
            self._begin()

    def filled(self) -> Table:
        """All that is kept, as a table."""
        assert self.kept is not None
        table = self.kept.rows(self.shape)
        assert table is not None
        return table

    def fill(self, table: Table) -> None:
        """Put all that is kept into the arrangement's index, with a note of it; and what has arrived in this step."""
        arrangement = self.arrangement
        rows = self.texts.rows(table, indexed=True)
        index: dict[Key, dict[Key, int]] = {}
        add_rows(index, rows)
        arrangement.mixed = arrangement.mixed or type(rows) is MixedRows
        note_attribute(self.undo, arrangement, "index")
        arrangement.index = index
        if self._table is not None:
            arrived, self._table = self._table, None
            Arrangement.receive(arrangement, self.texts.rows(arrived, indexed=True))

    def commit(self, undo: Log) -> None:
        """The step has succeeded."""
        if self.kept is not None and self._table is not None:
            undo.append((self.kept.take_back, self.kept.version))
            self.kept.commit()
        self._table = None

    def discard(self) -> None:
        """It has failed."""
        self._table = None
        if self.kept is not None:
            self.kept.discard()


class StateRows(KeptRows):
    """What a node keeps in one dictionary."""

    __slots__ = ("state",)

    def __init__(self, texts: Texts, undo: Log, state: dict[Key, Element]) -> None:
        super().__init__(texts, undo)
        self.state = state

    def stepping(self, cells: list[Element], slot: int, rest: Step) -> Step:
        """The step of the node."""
        undo = self.undo

        def step() -> object:
            batch = cells[slot]
            if self.in_words:
                if hasattr(batch, "memo"):
                    try:
                        columns = self.columns(batch.shape)
                        if self.kept is None:
                            self.kept = self._begun()
                        undo.append((self.kept.take_back, self.kept.version))
                        return self.change(batch, columns)
                    except (ByRows, OverflowError):
                        pass
                self.by_rows()
            return rest()

        return step

    def change(self, batch: Table, columns: list[int]) -> Table:
        """A table arrives; what it changes.  Raises :class:`ByRows` or :class:`OverflowError`."""
        raise NotImplementedError  # abstract

    def begun(self) -> Kept:
        """Begin with nothing."""
        raise NotImplementedError  # abstract

    def load(self, kept: Element) -> None:
        """Begin with what the dictionary holds; raises :class:`ByRows`."""
        raise NotImplementedError  # abstract

    def _begun(self) -> Kept:
        note_attribute(self.undo, self, "kept")
        kept = self.begun()
        if self.state:
            self.load(kept)
            note_whole(self.undo, self.state)
            self.state.clear()
        return kept

    def filled(self) -> Table:
        """All that is kept, as a table."""
        table: Table | None = self.kept.rows(self.shape)
        assert table is not None
        return table

    def fill(self, table: Table) -> None:
        """Put all that is kept into the dictionary, with a note of it."""
        self.undo.append((dict.clear, self.state))
        self.state.update(self.entries(table))

    def entries(self, table: Table) -> dict[Key, Element]:
        """What is kept, as the dictionary has it."""
        return self.texts.batch(table)


class WeighedRows(StateRows):
    """The weights of the elements of a ``distinct``."""

    __slots__ = ()

    kept: Weighed | None

    def begun(self) -> Weighed:
        """Begin with nothing."""
        return self.texts.words.weighed(len(set(leaves(self.shape))))

    def change(self, batch: Table, columns: list[int]) -> Table:
        """What comes and what goes."""
        assert self.kept is not None
        return self.kept.step(batch, columns, self.shape)

    def load(self, kept: Weighed) -> None:
        """Begin with what the dictionary holds; raises :class:`ByRows`."""
        table = self.texts.words.table(list(self.state.items()), self.texts.shape(self.shape), self.shape)
        if table is None:
            raise ByRows
        kept.step(table, list(range(table.width)), self.shape)


class SummedRows(StateRows):
    """The sums of a ``count`` or a ``sum``."""

    __slots__ = ("_value", "_width", "aggregate")

    kept: Summed | None

    def __init__(self, texts: Texts, undo: Log, state: dict[Key, Element], aggregate: Aggregate) -> None:
        super().__init__(texts, undo, state)
        self.aggregate = aggregate
        self._value: int | None = None
        self._width = 0

    def columns(self, shape: Shape) -> list[int]:
        """The columns of the key; raises :class:`ByRows` if the table looks otherwise, or the value is no column."""
        if shape is not self._seen:
            key, value = shape
            if self.aggregate.form == "sum":
                if self.aggregate.by is not None:
                    value = traced(self.aggregate.by, value)
                if type(value) is not Leaf:
                    raise ByRows
                self._value = value.at
            columns, normalised = normal(key)
            self._width = len(columns)
            result = (normalised, leaf(self._width))
            if self.shape is None:
                self.shape = result
            elif signature(self.shape) != signature(result):
                raise ByRows
            self._seen, self._columns = shape, columns
        return self._columns

    def begun(self) -> Summed:
        """Begin with nothing."""
        return self.texts.words.summed(self._width, self.aggregate.form == "count")

    def change(self, batch: Table, columns: list[int]) -> Table:
        """Old results out, new ones in."""
        assert self.kept is not None
        table = self.kept.step(batch, columns, self._value, self.shape)
        if table is None:
            raise OverflowError
        return table

    def load(self, kept: Summed) -> None:
        """Begin with what the dictionary holds; raises :class:`ByRows`."""
        rows = [((natural(key), *sums), 1) for key, sums in self._sums()]
        shape = self._all()
        table = self.texts.words.table(rows, self.texts.shape(shape), shape)
        if table is None or not kept.load(table):
            raise ByRows

    def _sums(self) -> Iterator[tuple[Key, tuple[int, int]]]:
        if self.aggregate.form == "count":
            return ((key, (number, 0)) for key, number in self.state.items())
        if any(entry[2] is not None for entry in self.state.values()):
            raise ByRows
        return ((key, entry[:2]) for key, entry in self.state.items())

    def _all(self) -> Shape:
        return (self.shape[0], leaf(self._width), leaf(self._width + 1))

    def filled(self) -> Table:
        """All keys with the sums of their weights and values."""
        assert self.kept is not None
        table = self.kept.rows(self._all())
        assert table is not None
        return table

    def entries(self, table: Table) -> dict[Key, Element]:
        """What is kept, as the dictionary has it."""
        rows = self.texts.elements(table, table.shape)
        if self.aggregate.form == "count":
            return {key_of(key): number for key, number, _ in rows}
        return {key_of(key): (number, whole, None) for key, number, whole in rows}
