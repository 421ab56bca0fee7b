"""Monotone loops in words: a whole epoch of such a loop is one call of a kernel, iteration by iteration.

A loop can be in words if it is one that can be computed again (:class:`~syndicate.flow.loop.Restart`), which makes sets
of the monotone kind and keeps nothing else, and if its functions only rearrange, test, or make rows of a known width
(:mod:`syndicate.flow.row_expression`).  What a function says of itself as an expression needs no Python at a row of
small integers; of any other the kernel asks, a batch at a time.

The loop's nodes become **steps**: what only rearranges is the shape in which another step's rows are read.  Where rows
of different origin meet, in a union or a set, and where keys are compared, each part of an element is a column, also
one that is the same in all (:func:`spread`).  Shapes are known when there is something to be shaped; until then a node
has had nothing, and is left out.

What the sets keep is what they keep as dictionaries, the derivations of each element by iteration: so either form goes
on where the other ends.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost" and "Loops".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from syndicate.errors import EndlessLoop
from syndicate.flow.arrangement import Arrangement, TimedArrangement
from syndicate.flow.element import Element, Key, MixedRows, is_rearranging, keys_of, natural
from syndicate.flow.loop import Integral, Loop
from syndicate.flow.node import Carries, Kind, Node, Port, restless
from syndicate.flow.row_expression import Written, expression_of, test_of, width_of
from syndicate.flow.shape import ByRows, Leaf, Shape, leaf, leaves, renamed, row_shape, signature, traced
from syndicate.flow.undo import note_attribute, note_whole
from syndicate.flow.word_state import ArrangedRows, KeptRows
from syndicate.flow.word_tables import Arranged, Fixpoint, Texts, WordTable
from syndicate.flow.zset import Time

if TYPE_CHECKING:
    from syndicate.flow.scope import Step

ALIASES: Final = frozenset({"index_with", "pairs", "keys", "values", "forward"})
_DONE: Final = -1
_BEYOND: Final = -3
_ENDLESS: Final = -4
_UNBOUNDED: Final = 1 << 62


def is_in_words(loop: Loop) -> bool:
    """Whether a loop can be in words."""
    if loop.restart is None or loop.children or loop.traces or loop.always:
        return False
    by_key = {Port(node.id) for node in loop.circuit.imports if node.carries[0] is Carries.INDEXED}
    nodes = loop.circuit.nodes
    inside = [node for node in nodes if node.kind is not Kind.IMPORT]  # the input of an import is a port outside
    return all(map(_can, nodes)) and not any(
        port in by_key and node.op != "join" for node in inside for port in node.inputs
    )


def _can(node: Node) -> bool:
    params = node.params
    match node.op:
        case "map":
            return is_rearranging(params["function"]) or width_of(params["function"]) is not None
        case "join":
            return is_rearranging(params["function"])
        case "index_with":
            return is_rearranging(params["key"]) and (params["value"] is None or is_rearranging(params["value"]))
        case "distinct":
            carried = node.circuit.nodes[node.inputs[0].node].carries[0]
            return node.carries[0] is carried is Carries.ZSET
    return node.kind is Kind.IMPORT or node.op in ("z1", "filter", "plus", "pairs", "keys", "values", "forward")


def spread(shape: Shape) -> tuple[list[Written], Shape]:
    """The columns and constants of a shape, from left to right, and the shape in which each of them is a column.

    Raises :class:`ByRows` where None is among them, which no column holds.

    >>> parts, shape = spread((leaf(2), ("x", leaf(2)))); parts, signature(shape)
    ([2, ['x'], 2], ('tuple', 0, ('tuple', 1, 2)))
    """
    parts: list[Written] = []

    def each(shape: Shape) -> Shape:
        if type(shape) is tuple:
            return tuple([each(part) for part in shape])
        if shape is None:
            raise ByRows
        parts.append(shape.at if type(shape) is Leaf else [shape])
        return leaf(len(parts) - 1)

    return parts, each(shape)


def _beside(key: Shape, value: Shape, first: int) -> tuple[list[Written], Shape]:
    """The columns of a value that its key has not, and the value's shape over those of the key and then these."""
    places: dict[int, int] = {}
    for number, part in enumerate(spread(key)[0]):
        if type(part) is int:
            places.setdefault(part, number)
    parts = [at for at in dict.fromkeys(leaves(value)) if at not in places]
    places.update((at, first + number) for number, at in enumerate(parts))
    return parts, renamed(value, places)


class LoopProgram:
    """The steps of a loop, made of what is known of its shapes."""

    def __init__(self, loop: Loop, imports: list[Shape]) -> None:
        """*imports* has the shape of what each import has brought, or None."""
        self.loop = loop
        self.nodes = {loop.slots[Port(node.id)]: node for node in loop.circuit.nodes}
        self.shapes: dict[int, Shape] = {}
        self.imports = list(imports)
        self.sets = {at: n for n, at in enumerate(at for at in self.nodes if self.nodes[at].op == "distinct")}
        self.indices = {at: n for n, at in enumerate(at for at in self.nodes if _is_timed(loop, at))}
        self.functions: dict[int, tuple[Node, Shape]] = {}
        self.order = sorted(self.nodes)
        while self._infer():
            pass
        self.numbers: dict[int, int] = {}
        self.indexed: dict[int, int] = {}
        for at in (at for at in self.order if at in self.shapes):
            numbers = [self.numbers] * self._is_step(at) + [self.indexed] * (at in self.indices)
            for each in numbers:
                each[at] = len(self.numbers) + len(self.indexed)
        self.steps = list(self._steps())

    def _is_step(self, at: int) -> bool:
        node = self.nodes[at]
        return node.op not in ALIASES and not (node.op == "map" and is_rearranging(node.params["function"]))

    def _inputs(self, at: int) -> list[int]:
        return [self.loop.slots[port] for port in self.nodes[at].inputs]

    # ------------------------------------------------------------------------------------------------------ shapes

    def _infer(self) -> bool:
        """Learn shapes; whether there was one to learn."""
        before = len(self.shapes)
        for at in self.order:
            shape = self._shape(at)
            if shape is not None:
                self.shapes[at] = shape
        return len(self.shapes) > before

    def _shape(self, at: int) -> Shape:
        node = self.nodes[at]
        if node.kind is Kind.IMPORT:
            return self.imported(self._number(at))
        input_shapes = [self.shapes.get(each) for each in self._inputs(at)]
        incoming = [shape for shape in input_shapes if shape is not None]
        if not incoming or (len(incoming) < len(input_shapes) and node.op != "plus"):
            return None
        params = node.params
        match node.op:
            case "map":
                function = params["function"]
                return traced(function, incoming[0]) if is_rearranging(function) else row_shape(width_of(function) or 0)
            case "index_with":
                value = incoming[0] if params["value"] is None else traced(params["value"], incoming[0])
                return (traced(params["key"], incoming[0]), value)
            case "keys":
                return incoming[0][0]
            case "values":
                return incoming[0][1]
            case "plus":
                shapes = [spread(shape)[1] for shape in incoming]
                if len(shapes) > 1 and signature(shapes[0]) != signature(shapes[1]):
                    raise ByRows
                return shapes[0]
            case "distinct":
                return spread(incoming[0])[1]
            case "join":
                return spread(self._joined(at)[0])[1]
        return incoming[0]

    def imported(self, number: int) -> Shape:
        """What an import brings, as its step gives it."""
        shape = self.imports[number]
        inner = self.loop.imports[number][0]
        return shape if shape is None or self.nodes[inner].carries[0] is Carries.INDEXED else spread(shape)[1]

    def side(self, at: int) -> tuple[Shape, Shape, int, int]:
        """Of an indexed stream: key and value over the columns in which they are kept, and how many of these."""
        key, value = self.shapes[at]
        if at not in self.indices:  # an import
            width = len(set(leaves(key)))
            if signature(spread(key)[1]) != signature(key):
                raise ByRows
            return key, value, width, len(set(leaves((key, value)))) - width
        parts, key_shape = spread(key)
        beside, value_shape = _beside(key, value, len(parts))
        return key_shape, value_shape, len(parts), len(beside)

    def _joined(self, at: int) -> tuple[Shape, list[int]]:
        """What a join makes, over the columns of key, left value and right value; and how many of each."""
        (key, left, width, of_left), (other_key, right, _, of_right) = map(self.side, self._inputs(at))
        if signature(key) != signature(other_key):
            raise ByRows
        names = {number: number if number < width else number + of_left for number in leaves((other_key, right))}
        return traced(self.nodes[at].params["function"], key, left, renamed(right, names)), [width, of_left, of_right]

    # ------------------------------------------------------------------------------------------------------- steps

    def _rows(self, at: int) -> int:
        """The step whose rows a stream has."""
        while at not in self.numbers:
            (at,) = self._inputs(at)
        return self.numbers[at]

    def _once(self, at: int, seen: frozenset[int] = frozenset()) -> bool:
        """Whether no row of a stream comes twice, nor comes when it is there."""
        node = self.nodes[at]
        if at in seen or node.op == "distinct":
            return node.op == "distinct"
        if node.op not in ("z1", "filter") and at in self.numbers:
            return False
        return all(self._once(each, seen | {at}) for each in self._inputs(at))

    def _steps(self) -> Iterator[tuple[Element, ...]]:
        for at in (at for at in self.order if at in self.shapes):
            if at in self.numbers:
                yield self._step(at)
            if at in self.indexed:
                yield self._index(at)

    def _index(self, at: int) -> tuple[Element, ...]:
        key, value = self.shapes[at]
        parts, _ = spread(key)
        beside, _ = _beside(key, value, len(parts))
        (source,) = self._inputs(at)
        used = {part for part in (*parts, *beside) if type(part) is int}
        once = self._once(source) and len(used) == self._width(source)
        return ("index", self._rows(at), [*parts, *beside], once, self.indices[at], len(parts))

    def _width(self, at: int) -> int:
        """How many columns the rows of a stream have, whatever its shape tells of them."""
        while at not in self.numbers or self.nodes[at].op in ("z1", "filter"):
            (at,) = self._inputs(at)
        return len(set(leaves(self.shapes[at])))

    def _number(self, at: int) -> int:
        """Which import it is."""
        return next(number for number, (inner, _) in enumerate(self.loop.imports) if inner == at)

    def _step(self, at: int) -> tuple[Element, ...]:
        node = self.nodes[at]
        if node.kind is Kind.IMPORT:
            number = self._number(at)
            indexed = node.carries[0] is Carries.INDEXED
            return ("flat", number) if indexed else ("import", number, spread(self.imports[number])[0])
        inputs = [(self._rows(each), self.shapes[each]) for each in self._inputs(at) if each in self.shapes]
        rows, shape = inputs[0]
        match node.op:
            case "z1":
                return ("feedback", rows)
            case "filter":
                self.functions[self.numbers[at]] = node, shape
                return ("filter", rows, test_of(node.params["function"], shape))
            case "map":
                self.functions[self.numbers[at]] = node, shape
                return ("make", rows, expression_of(node.params["function"], shape))
            case "plus" if len(inputs) == 1:
                return ("make", rows, spread(shape)[0])
            case "plus":
                return ("plus", rows, spread(shape)[0], inputs[1][0], spread(inputs[1][1])[0])
            case "distinct":
                return ("distinct", rows, spread(shape)[0], self.sets[at])
        joined, widths = self._joined(at)
        return ("join", *map(self._joins, self._inputs(at)), spread(joined)[0], tuple(widths))

    def _joins(self, at: int) -> tuple[bool, int, int]:
        """A side of a join: whether it is an import, its number, and the step that has what arrives."""
        if at in self.indices:
            return False, self.indices[at], self.indexed[at]
        return True, self._number(at), self.numbers[at]


def _is_timed(loop: Loop, at: int) -> bool:
    return isinstance(loop.takers[at], TimedArrangement)


class LoopRows(KeptRows):
    """What a loop keeps, in words."""

    __slots__ = ("_before", "_imports", "_is_current", "_program", "loop", "rest")

    store: Fixpoint | None

    def __init__(self, texts: Texts, loop: Loop, rest: Step) -> None:
        """*rest* is the step of the loop where it is not in words."""
        super().__init__(texts, loop.undo)
        self.loop = loop
        self.rest = rest
        self._imports: list[Shape] = [None] * len(loop.imports)
        self._program: LoopProgram | None = None
        self._is_current = False
        self._before = 0

    # ------------------------------------------------------------------------------------------------------ a step

    def step(self) -> object:
        """The step of the loop."""
        if self.in_words and self.loop.engine.measures is None:
            try:
                self._step()
                return None
            except EndlessLoop:
                raise
            except Exception:  # by rows it says what it is
                if self.store is not None:
                    self.store.take_back(self._before)
        self.by_rows()
        for _, outer in self.loop.imports:
            taker = self.loop.around.takers[outer]
            if isinstance(taker, Arrangement) and isinstance(taker.words, ArrangedRows):
                taker.words.by_rows()
        return self.rest()

    def _step(self) -> None:
        loop, restart = self.loop, self.loop.restart
        assert restart is not None
        cells = [loop.around.cells[outer] for _, outer in loop.imports]
        takers = [loop.around.takers[outer] for _, outer in loop.imports]
        if self.store is not None:
            self._before = self.store.version
        flats = [self._flat(number, taker) for number, taker in enumerate(takers)]
        tables = [None if taker is not None else self._table(n, cells[n]) for n, taker in enumerate(takers)]
        store, program = self._ready()
        self._before = store.version
        self.undo.append((store.take_back, store.version))
        size = store.size()
        budget = float("inf")
        if size:
            gone = sum(cell.gone() for cell in (*cells, *tables) if hasattr(cell, "memo"))
            budget = restart.allowed(size, gone, lambda: self._extent(store, flats))
        if not (budget and self._run(store, program, tables, flats, budget)):
            store.take_back(self._before)
            self._run(store, program, tables, flats, float("inf"), again=True)
            restart.learn(store.work, store.size())
        elif not size:
            restart.learn(store.work, store.size())
        for slot, port in zip(loop.ports, loop.circuit.exports, strict=True):
            at = loop.slots[port]
            changes = store.changes(program.sets[at], program.shapes[at]) if at in program.shapes else None
            if changes:
                loop.around.put(slot, changes)

    def _run(
        self,
        store: Fixpoint,
        program: LoopProgram,
        tables: list[WordTable | None],
        flats: list[Arranged | None],
        budget: float,
        *,
        again: bool = False,
    ) -> bool:
        """One epoch; whether it kept to its budget of rows."""
        limit: int = self.loop.node.params["limit"]
        rows = _UNBOUNDED if budget == float("inf") else int(budget)
        what, table = store.begin(tables, flats, again, rows, limit)
        while what not in (_DONE, _BEYOND, _ENDLESS):
            what, table = store.go_on(flats, None if table is None else self._asked(program, what, table))
        if what == _ENDLESS:
            raise restless(self.loop.node, limit)
        return what == _DONE

    def _asked(self, program: LoopProgram, step: int, table: WordTable) -> WordTable:
        """What a function of the user makes of rows."""
        node, shape = program.functions[step]
        function: Callable[[Element], Element] = node.params["function"]
        elements = self.texts.elements(table, shape)
        if node.op == "filter":
            return table.taken(bytes(map(bool, map(function, elements))))
        result_shape = row_shape(width_of(function) or 0)
        pairs = list(zip(map(function, elements), table.weights(0, len(table)), strict=True))
        result = self.texts.words.table(pairs, self.texts.shape(result_shape), result_shape)
        if result is None:
            raise ByRows
        return result

    def _extent(self, store: Fixpoint, flats: list[Arranged | None]) -> int:
        """How many rows the imports stand for."""
        return sum(store.extent(number) if flat is None else len(flat) for number, flat in enumerate(flats))

    # ------------------------------------------------------------------------------------------------ what is given

    def _flat(self, number: int, taker: object) -> Arranged | None:
        """The arrangement of an import by key."""
        if taker is None:
            return None
        words = taker.words if isinstance(taker, Arrangement) else None
        if not isinstance(words, ArrangedRows):
            raise ByRows
        words.begin()
        self._learn(number, words.shape)
        return words.store

    def _table(self, number: int, batch: Element) -> WordTable | None:
        """What another import brings."""
        if not batch:
            return None
        if not hasattr(batch, "memo"):
            shape = self._shape_of(natural(next(iter(batch))))
            batch = self.texts.words.table(batch, self.texts.shape(shape), shape)
            if batch is None:
                raise ByRows
        self._learn(number, batch.shape)
        table: WordTable = batch
        return table

    @staticmethod
    def _shape_of(element: Element) -> Shape:
        return row_shape(len(element)) if type(element) is tuple else leaf(0)

    def _learn(self, number: int, shape: Shape) -> None:
        """What an import brings looks so."""
        if shape is not None and shape is not self._imports[number]:
            self._imports[number] = shape
            self._is_current = False

    def _ready(self) -> tuple[Fixpoint, LoopProgram]:
        """What is kept, and what is to be done with it; raises :class:`ByRows`."""
        words, store, program = self.texts.words, self.store, self._program
        if store is None:
            self._learn_from_integrals()
        if store is None or program is None or not self._is_current:
            fresh = LoopProgram(self.loop, self._imports)
            if program is not None:
                for at, shape in program.shapes.items():
                    if signature(spread(shape)[1]) != signature(spread(fresh.shapes[at])[1]):
                        raise ByRows
            begun = words.fixpoint() if store is None else store
            words.program(begun, fresh.steps)
            self._program, self._is_current = fresh, True
            if store is None:
                self._load(begun, fresh)
                note_attribute(self.undo, self, "store")
                self.store = begun
            return begun, fresh
        return store, program

    # ---------------------------------------------------------------------------------------- as dictionaries have it

    def _learn_from_integrals(self) -> None:
        assert self.loop.restart is not None
        for number, (slot, _) in enumerate(self.loop.imports):
            integral = self.loop.restart.integrals.get(slot)
            if integral is not None and integral.total and self._imports[number] is None:
                self._learn(number, self._shape_of(natural(next(iter(integral.total)))))

    def _states(self, program: LoopProgram) -> Iterator[tuple[int, int, list[Element]]]:
        """Of each set: where it is, its number, and what its node keeps in dictionaries."""
        for at, number in program.sets.items():
            yield at, number, self.loop.engine.states[program.nodes[at].global_id]

    def _totals(self) -> Iterator[tuple[int, Integral]]:
        """Of each import that is not by key: its number, and what it has brought."""
        assert self.loop.restart is not None
        for number, (slot, _) in enumerate(self.loop.imports):
            integral = self.loop.restart.integrals.get(slot)
            if integral is not None:
                yield number, integral

    def _as_table(self, pairs: list[tuple[Element, int]], shape: Shape) -> WordTable:
        table = None if shape is None else self.texts.words.table(pairs, self.texts.shape(shape), shape)
        if table is None:
            raise ByRows
        return table

    def _load(self, store: Fixpoint, program: LoopProgram) -> None:
        """Begin with what the dictionaries hold, and empty them; raises :class:`ByRows`."""
        emptied: list[dict[Key, Element]] = []
        for at, number, (derived, entered, *_) in self._states(program):
            if derived:
                table = self._as_table([(key, 1) for key in derived], program.shapes.get(at))
                store.load_set(number, table, list(map(list, derived.values())), [entered.get(k, -1) for k in derived])
                emptied += [derived, entered]
        for at, number in program.indices.items():
            taker = self.loop.takers[at]
            assert isinstance(taker, TimedArrangement)
            rows: list[tuple[Element, int, Element]] = [
                ((natural(key), natural(value)), weight, time)
                for key, levels in taker.index.items()
                for time, group in levels.items()
                for value, weight in group.items()
            ]
            if rows:
                shape = program.side(at)[:2] if at in program.shapes else None
                store.load_index(number, self._as_table([row[:2] for row in rows], shape), [row[2] for row in rows])
                emptied.append(taker.index)
        for number, integral in self._totals():
            if integral.total:
                store.load_total(number, self._as_table(list(integral.total.items()), program.imported(number)))
                emptied.append(integral.total)
        for each in emptied:
            note_whole(self.undo, each)
            each.clear()

    def settle(self) -> None:
        """Let dictionaries hold everything, with a note of it."""
        store, program = self.store, self._program
        if store is not None and program is not None:
            note_attribute(self.undo, self, "store")
            self.store = None
            for at, number, states in self._states(program):
                if at in program.shapes:
                    self._fill_set(*store.set(number, program.shapes[at]), states)
            for at, number in program.indices.items():
                if at in program.shapes:
                    self._fill_index(*store.index(number, program.side(at)[:2]), self.loop.takers[at])
            for number, integral in self._totals():
                shape = program.imported(number)
                if shape is not None:
                    batch = self.texts.batch(store.total(number, shape))
                    note_attribute(self.undo, integral, "total")
                    integral.total = batch

    def _fill_set(self, table: WordTable, profiles: list[list[int]], entered: list[int], states: list[Element]) -> None:
        keys, typed = keys_of(self.texts.elements(table, table.shape))
        for state in states[:2]:
            self.undo.append((dict.clear, state))
        states[0].update(zip(keys, map(tuple, profiles), strict=True))
        states[1].update((key, at) for key, at in zip(keys, entered, strict=True) if at >= 0)
        states[2].value = states[2].value or typed

    def _fill_index(self, table: WordTable, times: list[int], taker: object) -> None:
        assert isinstance(taker, TimedArrangement)
        rows = self.texts.rows(table, indexed=True)
        index: dict[Key, dict[Time, dict[Key, int]]] = {}
        for (key, value, weight), time in zip(rows, times, strict=True):
            index.setdefault(key, {}).setdefault(time, {})[value] = weight
        note_attribute(self.undo, taker, "index")
        taker.index = index
        taker.mixed = taker.mixed or type(rows) is MixedRows
