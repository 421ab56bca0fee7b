"""What nodes keep in words, or, for good, in the dictionaries of their Python form: see
:mod:`syndicate.flow.word_tables`.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from syndicate.flow.arrangement import NO_ROWS, Arrangement, add_rows
from syndicate.flow.element import Element, Key, MixedRows, Rows, key_of, natural
from syndicate.flow.shape import ByRows, Leaf, Shape, leaf, leaves, normal, signature, traced
from syndicate.flow.undo import Log, note_attribute, note_whole
from syndicate.flow.word_tables import Arranged, Kept, Ranked, Summed, Texts, Weighed, WordTable

if TYPE_CHECKING:
    from syndicate.flow.aggregates import Aggregate
    from syndicate.flow.scope import Cell, Step


class KeptRows:
    """What a node keeps, in words or, for good, in dictionaries."""

    __slots__ = ("_columns", "_seen", "in_words", "shape", "store", "texts", "undo")

    store: Element

    def __init__(self, texts: Texts, undo: Log) -> None:
        self.texts = texts
        self.undo = undo
        self.in_words = True
        self.store = None
        self.shape: Shape = None
        self._seen: Shape = None
        self._columns: list[int] = []

    def __len__(self) -> int:
        return 0 if self.store is None else len(self.store)

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

    def start(self) -> None:
        """Be in words from now on, when it is known what rows look like.

        Raises :class:`ByRows` or :class:`OverflowError`.
        """
        raise NotImplementedError  # abstract

    def is_new(self) -> bool:
        """Whether nothing is kept, in words or in dictionaries, nor ever was in words."""
        raise NotImplementedError  # abstract

    def settle(self) -> None:
        """Let dictionaries hold everything, with a note of it."""
        if self.store is not None:
            table = self.filled()
            note_attribute(self.undo, self, "store")
            self.fill(table)
            self.store = None

    def filled(self) -> WordTable:
        """All that is kept, as a table."""
        raise NotImplementedError  # abstract

    def fill(self, table: WordTable) -> None:
        """Put all that is kept into dictionaries, with a note of it."""
        raise NotImplementedError  # abstract

    def by_rows(self) -> None:
        """Go over to dictionaries for good, with a note of it."""
        if self.in_words:
            self.settle()
            note_attribute(self.undo, self, "in_words")
            self.in_words = False


def _shape_like(element: Element, first: int) -> tuple[Shape, int]:
    """The shape of an element, its columns from *first* on, and the number of the next."""
    if type(element) is not tuple:
        return leaf(first), first + 1
    return tuple(map(leaf, range(first, first + len(element)))), first + len(element)


class ArrangedRows(KeptRows):
    """The rows of an arrangement."""

    __slots__ = ("_table", "arrangement")

    store: Arranged | None

    def __init__(self, texts: Texts, undo: Log, arrangement: Arrangement) -> None:
        super().__init__(texts, undo)
        self.arrangement = arrangement
        self._table: WordTable | None = None

    def take(self, batch: Element) -> Rows:
        """A batch arrives; what is left for the arrangement itself."""
        is_table = hasattr(batch, "memo")
        if self.in_words and is_table:
            try:
                columns = self.columns(batch.shape)
                self.start()
                assert self.store is not None
                self.store.arrive(batch, columns)
                self._table = batch
                return NO_ROWS
            except (ByRows, OverflowError):
                pass
        if batch:
            self.by_rows()
        rows: Rows = self.texts.rows(batch, indexed=True) if is_table else batch
        return rows

    def start(self) -> None:
        """Be in words from now on; raises :class:`ByRows` or :class:`OverflowError`."""
        if self.store is not None:
            return
        key, value = self.shape
        width = len(set(leaves(key)))
        note_attribute(self.undo, self, "store")
        store = self.texts.words.arranged(width, len(set(leaves(self.shape))) - width)
        if self.arrangement.index:
            rows = [
                ((natural(key), natural(value)), weight)
                for key, group in self.arrangement.index.items()
                for value, weight in group.items()
            ]
            table = self.texts.words.table(rows, self.texts.shape((key, value)), self.shape)
            if table is None:
                raise ByRows
            store.arrive(table, list(range(table.width)))
            store.commit()
            note_attribute(self.undo, self.arrangement, "index")
            self.arrangement.index = {}
        self.store = store

    def is_new(self) -> bool:
        """Whether nothing is kept, nor ever was in words."""
        return self.store is None and not self.arrangement.index

    def begin(self) -> None:
        """Be in words, if there is anything; raises :class:`ByRows`."""
        if not self.in_words:
            raise ByRows
        if self.store is None and self.arrangement.index:
            if self.shape is None:
                first = next(iter(self.arrangement.index))
                key, parts = _shape_like(natural(first), 0)
                value, _ = _shape_like(natural(next(iter(self.arrangement.index[first]))), parts)
                self.shape = (key, value)
            self.start()

    def ready(self, other: ArrangedRows) -> None:
        """Be in words, if there is anything, because the other side is; raises :class:`ByRows`."""
        if not self.in_words:
            raise ByRows
        if self.store is None and self.arrangement.index and other.shape is not None:
            value = natural(next(iter(next(iter(self.arrangement.index.values())))))
            key, width = other.shape[0], len(set(leaves(other.shape[0])))
            parts = range(width, width + len(value)) if type(value) is tuple else ()
            self.shape = (key, tuple(map(leaf, parts)) if type(value) is tuple else leaf(width))
            self.start()

    def filled(self) -> WordTable:
        """All that is kept, as a table."""
        assert self.store is not None
        table = self.store.rows(self.shape)
        assert table is not None
        return table

    def fill(self, table: WordTable) -> None:
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
        if self.store is not None and self._table is not None:
            undo.append((self.store.take_back, self.store.version))
            self.store.commit()
        self._table = None

    def discard(self) -> None:
        """It has failed."""
        self._table = None
        if self.store is not None:
            self.store.discard()


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
                        self.start()
                        undo.append((self.store.take_back, self.store.version))
                        return self.change(batch, columns)
                    except (ByRows, OverflowError):
                        pass
                self.by_rows()
            return rest()

        return step

    def change(self, batch: WordTable, columns: list[int]) -> WordTable:
        """A table arrives; what it changes.  Raises :class:`ByRows` or :class:`OverflowError`."""
        raise NotImplementedError  # abstract

    def begun(self) -> Kept:
        """Begin with nothing."""
        raise NotImplementedError  # abstract

    def result(self) -> Shape:
        """What the elements look like that the node gives."""
        return self.shape

    def load(self, store: Element) -> None:
        """Begin with what the dictionary holds; raises :class:`ByRows`."""
        raise NotImplementedError  # abstract

    def is_new(self) -> bool:
        """Whether nothing is kept, nor ever was in words."""
        return self.store is None and not self.state

    def start(self) -> None:
        """Be in words from now on; raises :class:`ByRows` or :class:`OverflowError`."""
        if self.store is not None:
            return
        note_attribute(self.undo, self, "store")
        store = self.begun()
        if self.state:
            self.load(store)
            note_whole(self.undo, self.state)
            self.state.clear()
        self.store = store

    def filled(self) -> WordTable:
        """All that is kept, as a table."""
        table: WordTable | None = self.store.rows(self.shape)
        assert table is not None
        return table

    def fill(self, table: WordTable) -> None:
        """Put all that is kept into the dictionary, with a note of it."""
        self.undo.append((dict.clear, self.state))
        self.state.update(self.entries(table))

    def entries(self, table: WordTable) -> dict[Key, Element]:
        """What is kept, as the dictionary has it."""
        return self.texts.batch(table)


class WeighedRows(StateRows):
    """The weights of the elements of a ``distinct``."""

    __slots__ = ()

    store: Weighed | None

    def begun(self) -> Weighed:
        """Begin with nothing."""
        return self.texts.words.weighed(len(set(leaves(self.shape))))

    def change(self, batch: WordTable, columns: list[int]) -> WordTable:
        """What comes and what goes."""
        assert self.store is not None
        return self.store.step(batch, columns, self.shape)

    def load(self, store: Weighed) -> None:
        """Begin with what the dictionary holds; raises :class:`ByRows`."""
        table = self.texts.words.table(list(self.state.items()), self.texts.shape(self.shape), self.shape)
        if table is None:
            raise ByRows
        store.step(table, list(range(table.width)), self.shape)


def _measured(aggregate: Aggregate, value: Shape) -> int:
    """The column of what an aggregate takes of values; raises :class:`ByRows` if it is not a column."""
    if aggregate.by is not None:
        value = traced(aggregate.by, value)
    if type(value) is not Leaf:
        raise ByRows
    at: int = value.at
    return at


class RankedRows(StateRows):
    """The groups of a ``min`` or a ``max``, and the best of each."""

    __slots__ = ("_measure", "aggregate", "results", "typed")

    store: Ranked | None

    def __init__(self, texts: Texts, undo: Log, states: list[Element], aggregate: Aggregate) -> None:
        super().__init__(texts, undo, states[0])
        self.results: dict[Key, Element] = states[1]
        self.typed: Cell = states[2]
        self.aggregate = aggregate
        self._measure = 0

    def columns(self, shape: Shape) -> list[int]:
        """The columns of key and value; raises :class:`ByRows` if the table looks otherwise, or no column is ranked."""
        if shape is not self._seen:
            measure = _measured(self.aggregate, shape[1])
            columns = super().columns(shape)
            self._measure = columns.index(measure)
        return self._columns

    def begun(self) -> Ranked:
        """Begin with nothing."""
        key, _ = self.shape
        width = len(set(leaves(key)))
        others = len(set(leaves(self.shape))) - width
        return self.texts.words.ranked(width, others, self._measure, self.aggregate.form == "min")

    def change(self, batch: WordTable, columns: list[int]) -> WordTable:
        """Old results out, new ones in."""
        assert self.store is not None
        return self.store.step(self.texts.words, batch, columns, self.result())

    def result(self) -> Shape:
        """What the results look like."""
        key, _ = self.shape
        return (key, leaf(len(set(leaves(key)))))

    def load(self, store: Ranked) -> None:
        """Begin with what the dictionaries hold; raises :class:`ByRows`."""
        rows = [
            ((natural(key), natural(value)), weight)
            for key, group in self.state.items()
            for value, weight in group.items()
        ]
        table = self.texts.words.table(rows, self.texts.shape(self.shape), self.shape)
        if table is None:
            raise ByRows
        store.step(self.texts.words, table, list(range(table.width)), self.result())
        note_whole(self.undo, self.results)
        self.results.clear()

    def fill(self, table: WordTable) -> None:
        """Put all that is kept into the dictionaries, with a note of it."""
        assert self.store is not None
        bests = self.store.bests(self.result())
        rows = self.texts.rows(table, indexed=True)
        self.undo.append((self.typed.restore, self.typed.value))
        self.typed.value = self.typed.value or type(rows) is MixedRows
        self.undo += [(dict.clear, self.state), (dict.clear, self.results)]
        add_rows(self.state, rows)
        for key, best in self.texts.elements(bests, bests.shape):
            self.results[key_of(key)] = best


class SummedRows(StateRows):
    """The sums of a ``count``, a ``sum`` or an ``avg``."""

    __slots__ = ("_width", "aggregate", "value")

    store: Summed | None

    def __init__(self, texts: Texts, undo: Log, state: dict[Key, Element], aggregate: Aggregate) -> None:
        super().__init__(texts, undo, state)
        self.aggregate = aggregate
        self.value: int | None = None  # the column that is summed
        self._width = 0

    def columns(self, shape: Shape) -> list[int]:
        """The columns of the key; raises :class:`ByRows` if the table looks otherwise, or the value is no column."""
        if shape is not self._seen:
            key, value = shape
            if self.aggregate.form != "count":
                self.value = _measured(self.aggregate, value)
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
        return self.texts.words.summed(self._width, self.aggregate.form)

    def change(self, batch: WordTable, columns: list[int]) -> WordTable:
        """Old results out, new ones in."""
        assert self.store is not None
        table = self.store.step(self.texts.words, batch, columns, self.value, self.shape)
        if table is None:
            raise OverflowError
        return table

    def load(self, store: Summed) -> None:
        """Begin with what the dictionary holds; raises :class:`ByRows`."""
        rows = [((natural(key), *sums), 1) for key, sums in self._sums()]
        shape = self._all()
        table = self.texts.words.table(rows, self.texts.shape(shape), shape)
        if table is None or not store.load(table):
            raise ByRows

    def _sums(self) -> Iterator[tuple[Key, tuple[int, int]]]:
        if self.aggregate.form == "count":
            return ((key, (number, 0)) for key, number in self.state.items())
        if any(entry[2] is not None for entry in self.state.values()):
            raise ByRows
        return ((key, entry[:2]) for key, entry in self.state.items())

    def _all(self) -> Shape:
        return (self.shape[0], leaf(self._width), leaf(self._width + 1))

    def filled(self) -> WordTable:
        """All keys with the sums of their weights and values."""
        assert self.store is not None
        table = self.store.rows(self._all())
        assert table is not None
        return table

    def entries(self, table: WordTable) -> dict[Key, Element]:
        """What is kept, as the dictionary has it."""
        rows = self.texts.elements(table, table.shape)
        if self.aggregate.form == "count":
            return {key_of(key): number for key, number, _ in rows}
        return {key_of(key): (number, whole, None) for key, number, whole in rows}
