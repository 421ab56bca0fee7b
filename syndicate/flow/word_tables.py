"""Tables: batches of words, where native kernels run.

A **word** is 64 bits: a small integer is its own word, any other part of an element has a number, so that two parts are
the same (:func:`~syndicate.flow.element.key_of`) if and only if their words are equal.  A table holds rows of words,
and a :mod:`~syndicate.flow.shape` that says how its elements are made of them.  Functions that only rearrange give it
another shape; joins, ``distinct``, ``count``, ``sum``, ``avg``, ``min`` and ``max`` work on the words, and keep them;
elements become Python's tuples again where a sink, a function of the user, or a node that knows no tables reads them.

What a node keeps is in words or in the dictionaries of its Python form, never in both.  It begins in dictionaries, is
in words once a circuit has tables and one comes to it, and goes over to dictionaries for good when something comes that
is no table, or when integers of 64 bits are not enough; all it says and raises is what the Python form says and raises.

This module names what the kernel :func:`words` makes.  :mod:`syndicate.flow.word_circuit` puts it to work.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost"; ``docs/design/native.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, Protocol, TypeAlias

from syndicate.flow.element import Element, Key, MixedRows, Rows, all_plain, collect, keys_of
from syndicate.flow.shape import Leaf, Shape
from syndicate.flow.zset import ZSet
from syndicate.native import kernel


class WordShape(Protocol):
    """A shape as a kernel reads it."""


class WordTable(Protocol):
    """A batch of words.  Immutable, but for what is remembered of it."""

    shape: Shape
    once: bool
    width: int
    memo: Element

    def __len__(self) -> int: ...

    def shaped(self, shape: Shape, whole: bool) -> WordTable:  # a kernel takes no names
        """Other elements of the same rows; *whole* if they tell all columns."""

    def gone(self) -> int:
        """How many of its weights are below 0."""

    def taken(self, which: bytes) -> WordTable:
        """Those rows for which a byte is not 0."""

    def weights(self, start: int, stop: int) -> list[int]:
        """The weights of some rows."""

    def negated(self) -> WordTable:
        """The same with opposite weights."""

    def consolidated(self, columns: list[int], shape: Shape) -> WordTable:
        """Some columns in this order, each row once."""


class Kept(Protocol):
    """What a node keeps in words; a step can be taken back until the next."""

    version: int

    def __len__(self) -> int: ...

    def take_back(self, version: int) -> None:
        """Be as at a version: the last, or the one before."""

    def give_back(self) -> None:
        """Give memory back; between steps."""

    def rows(self, shape: Shape) -> WordTable | None:
        """All of it as a table; None where that cannot be."""


class Arranged(Kept, Protocol):
    """The rows of a stream by key."""

    def arrive(self, table: WordTable, columns: list[int]) -> None:
        """Rows arrive, whose keys and values these columns are; raises :class:`OverflowError`."""

    def arrived(self, shape: Shape) -> WordTable:
        """What has arrived."""

    def commit(self) -> None:
        """It is of the past now."""

    def discard(self) -> None:
        """Forget it."""


class Weighed(Kept, Protocol):
    """The weights of elements."""

    def step(self, table: WordTable, columns: list[int], shape: Shape) -> WordTable:
        """Add a table; what comes and what goes.  Raises :class:`OverflowError`, and changes nothing then."""


class Summed(Kept, Protocol):
    """By key, the sum of the weights, and of the values."""

    def load(self, table: WordTable) -> bool:
        """Begin with rows of key, sum of weights and sum of values; whether they are all small integers."""

    def step(  # a kernel takes no names
        self, words: Words, table: WordTable, keys: list[int], value: int | None, shape: Shape
    ) -> WordTable | None:
        """Add a table; old rows out, new ones in.  None, and nothing is changed, where words are not enough."""


class Ranked(Kept, Protocol):
    """By key, all values, and the least or greatest of what one column has."""

    def step(self, words: Words, table: WordTable, columns: list[int], shape: Shape) -> WordTable:
        """Add a table, whose keys and values these columns are; old rows out, new ones in.

        Raises :class:`OverflowError`, and changes nothing, where a weight is too large, or where what is compared is
        not all numbers, all texts, or all bytes.
        """

    def bests(self, shape: Shape) -> WordTable:
        """The least or greatest of each key, of those values whose weight is above 0."""


class Fixpoint(Kept, Protocol):
    """A monotone loop; what it does is described by :meth:`Words.program`."""

    work: int
    """How many rows the nodes gave in the step that has ended."""

    def begin(  # a kernel takes no names
        self, imports: list[WordTable | None], flats: list[Arranged | None], again: bool, budget: int, limit: int
    ) -> tuple[int, WordTable | None]:
        """Begin a step with what imports bring, some of them by key; *again*: compute all of it from nothing.

        What comes next: the number of a step whose function is to be asked of a table, or -1 at the end, -2 after a
        pause, -3 where it takes more rows than *budget*, -4 where it takes as many iterations as *limit*.  Raises
        :class:`OverflowError`.
        """

    def go_on(self, flats: list[Arranged | None], answer: WordTable | None) -> tuple[int, WordTable | None]:
        """Go on, with what a function has made of the rows it was asked of."""

    def changes(self, number: int, shape: Shape) -> WordTable | None:
        """What this step has changed of a set."""

    def size(self) -> int:
        """How many elements its sets have."""

    def extent(self, number: int) -> int:
        """How many elements an import has brought."""

    def set(self, number: int, shape: Shape) -> tuple[WordTable, list[list[int]], list[int]]:
        """The elements of a set, their derivations, each a time and a weight, and since when they are in it, or -1."""

    def load_set(self, number: int, table: WordTable, profiles: list[list[int]], entered: list[int]) -> None:
        """Begin with such."""

    def index(self, number: int, shape: Shape) -> tuple[WordTable, list[int]]:
        """The rows of an arrangement, and their times."""

    def load_index(self, number: int, table: WordTable, times: list[int]) -> None:
        """Begin with such."""

    def total(self, number: int, shape: Shape) -> WordTable:
        """All that an import has brought."""

    def load_total(self, number: int, table: WordTable) -> None:
        """Begin with such."""


class Stages(Protocol):
    """A step of a circuit in one call: each batch has a place."""

    def keep(  # a kernel takes no names
        self, at: int, columns: list[int], once: bool, store: Kept, to: int, value: int | None
    ) -> None:
        """A batch is kept, of which these columns are what *store* takes; *once*: no row of it recurs.

        *to* is the place of what comes of it; *value* the column of what is summed.
        """

    def join(self, left: Arranged, right: Arranged, to: int) -> None:
        """What arrives at two sides is joined."""

    def gather(self, parts: list[tuple[int, list[Element]]], to: int) -> None:
        """Batches one after the other, of each such columns: numbers, and constants in lists."""

    def show(self, at: int, columns: list[int] | None, shape: Shape) -> None:
        """A batch is given out, of which these columns are taken, each row once; None: all, where no row recurs."""

    def versions(self) -> list[int]:
        """The versions of all that is kept."""

    def take_back(self, versions: list[int]) -> None:
        """Let all that is kept be as at these versions."""

    def run(self, batches: list[tuple[int, Element]]) -> list[WordTable | None] | None:
        """A step with such batches, each at its place; what is given out, in order.

        None, and nothing is changed, where a batch is no table, or a node has to take rows.
        """


class Words(Protocol):
    """The words of the elements of one circuit; as many as it is long stand for what is no small integer."""

    def __len__(self) -> int: ...

    def shape(self, written: Element) -> WordShape:
        """What elements look like: nested tuples of the numbers of columns, and of constants, each in a list."""

    def table(self, batch: Mapping[Key, int] | list[tuple[Key, int]], shape: WordShape, row: Shape) -> WordTable | None:
        """A batch as a table; None where an element looks otherwise, or a weight is no small integer."""

    def elements(self, table: WordTable, shape: WordShape, start: int, stop: int) -> list[Element]:
        """The elements of some rows of a table, or what of them this shape tells."""

    def items(self, table: WordTable, shape: WordShape) -> Iterator[tuple[Element, int]]:
        """Elements and weights of a table, one after the other."""

    def batch(self, table: WordTable, shape: WordShape) -> dict[Key, int] | None:
        """A table in which no row recurs as a canonical batch; None where an element may be no key by itself."""

    def arranged(self, key_width: int, width: int) -> Arranged:
        """For keys and values of so many words."""

    def weighed(self, width: int) -> Weighed:
        """For elements of so many words."""

    def summed(self, width: int, form: str) -> Summed:
        """For keys of so many words; *form*: ``count``, ``sum`` or ``avg``."""

    def ranked(self, key_width: int, width: int, measure: int, least: bool) -> Ranked:  # a kernel takes no names
        """For keys and values of so many words, ranked by a column of both."""

    def fixpoint(self) -> Fixpoint:
        """A monotone loop."""

    def program(self, fixpoint: Fixpoint, steps: list[tuple[Element, ...]]) -> None:
        """Tell a loop what to do: see :mod:`syndicate.flow.word_loop`."""

    def pipeline(self, places: int) -> Stages:
        """A step of a circuit in one call, whose batches have so many places."""

    def join(self, left: Arranged, right: Arranged, shape: Shape, whole: bool) -> WordTable:
        """What two sides give because of what arrives: key, left value, right value.  Raises :class:`OverflowError`."""

    def gathered(self, parts: list[tuple[WordTable, list[Element]]], shape: Shape) -> WordTable:
        """Tables one after the other, of each such columns: numbers, and constants in lists."""

    def show(self, table: WordTable) -> None:
        """Somebody may keep this table for long."""

    def sweep(self, keepers: list[Kept]) -> None:
        """Forget what words stand for that nobody has any more, where there are many new ones; between steps."""


_CHUNK: Final = 64
"""So many elements are made at once: what nobody keeps is then made where the last ones were, which is near, and there
are never enough of it for the collector to look."""

Makes: TypeAlias = Callable[[Element], Key]


@kernel
def words(key_of: Makes, typed: type, plain: list[type]) -> Words | None:
    """The words of a circuit; None where no kernel runs: rows are then taken one by one, in Python.

    *key_of* names an element, by itself or by an object of the class *typed*; elements of the classes *plain* name
    themselves, beside integers, strings and bytes.
    """
    return None


def written(shape: Shape) -> Element:
    """A shape as :meth:`Words.shape` reads it.

    >>> from syndicate.flow.shape import leaf
    >>> written((leaf(1), ("x", leaf(0))))
    (1, (['x'], 0))
    """
    if type(shape) is tuple:
        return tuple(map(written, shape))
    return shape.at if type(shape) is Leaf else [shape]


class Texts:
    """The words of one circuit, and the shapes that it has read."""

    __slots__ = ("read", "words")

    def __init__(self, words: Words) -> None:
        self.words = words
        self.read: dict[int, tuple[Shape, WordShape]] = {}

    def shape(self, shape: Shape) -> WordShape:
        """A shape as the kernel reads it; shapes are few, and made once."""
        entry = self.read.get(id(shape))
        if entry is None:
            if len(self.read) > 1000:
                self.read.clear()
            entry = self.read[id(shape)] = (shape, self.words.shape(written(shape)))
        return entry[1]

    def elements(self, table: WordTable, shape: Shape) -> list[Element]:
        """The elements of a table, or what of them this shape tells."""
        return self.words.elements(table, self.shape(shape), 0, len(table))

    def each(self, table: WordTable) -> Iterator[Element]:
        """The elements, made a few at a time: what nobody keeps takes no memory then."""
        elements, shape = self.words.elements, self.shape(table.shape)
        return chain.from_iterable(elements(table, shape, at, at + _CHUNK) for at in range(0, len(table), _CHUNK))

    def rows(self, table: WordTable, *, indexed: bool) -> Element:
        """A table as other operators take it: a canonical batch, or rows if the stream is *indexed*; made once."""
        rows = table.memo
        if rows is None:
            rows = table.memo = self._rows(table) if indexed else self.batch(table)
        return rows

    def batch(self, table: WordTable) -> dict[Key, int]:
        """A table as a canonical batch."""
        batch = self.words.batch(table, self.shape(table.shape))
        if batch is not None:
            return batch
        elements = self.elements(table, table.shape)
        if table.once and all_plain(elements):
            return dict(zip(elements, table.weights(0, len(table)), strict=True))
        return collect(elements, table.weights(0, len(table)))

    def _rows(self, table: WordTable) -> Rows:
        key, value = table.shape
        keys, typed = keys_of(self.elements(table, key))
        values, others = keys_of(self.elements(table, value))
        return (MixedRows if typed or others else Rows)(zip(keys, values, table.weights(0, len(table)), strict=True))


class TableZSet(ZSet):
    """What a sink gives of a table in which no element recurs: its elements are made when they are looked at."""

    __slots__ = ("_batch", "_shape", "_table", "_texts")

    _batch: dict[Key, int] | None
    _shape: WordShape
    _table: WordTable
    _texts: Texts

    @classmethod
    def lazily(cls, texts: Texts, table: WordTable, shape: WordShape) -> TableZSet:
        """Of a table that is shown (:meth:`Words.show`), whose elements look so."""
        lazy = object.__new__(cls)
        lazy._texts, lazy._table, lazy._shape, lazy._batch = texts, table, shape, None
        return lazy

    def items(self) -> Iterator[tuple[Element, int]]:
        """Elements and weights."""
        if self._batch is not None:
            return super().items()
        return self._texts.words.items(self._table, self._shape)

    def __iter__(self) -> Iterator[Element]:
        return super().__iter__() if self._batch is not None else self._texts.each(self._table)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def batch(self) -> dict[Key, int]:  # type: ignore[override]  # there an attribute
        """The elements and weights, made now if they have not been."""
        if self._batch is None:
            self._batch = self._texts.rows(self._table, indexed=False)
        return self._batch
