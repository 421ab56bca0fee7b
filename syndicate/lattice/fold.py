"""Between collections and lattices: folding rows into a lattice, a lattice as rows, lattice values inside rows.

Folding.  A rule ``votes <= ballots`` with a lattice on the left makes each element of the collection a lattice element
(:meth:`Lattice.of`) and merges them; None is skipped.  The paper says that an element becomes a singleton set; Bud
unites the *columns* of its rows instead.  Ours is the paper's: a row of two columns is one element, a row of a single
column means its column, and ``from_collection(Set, chain.from_iterable(rows))`` is Bud's.

>>> from syndicate.lattice import Max, Min, Set
>>> from_collection(Max, [(3,), (5,), (4,)]), from_collection(Set, [("ann", 1), None]), from_collection(Max, [])
(Max(5), Set([('ann', 1)]), Max())

Embedding.  Rows that agree on the key and in all columns that hold no lattice value are one row, whose lattice values
are merged; this may happen during a fixed point, since whatever reads them before it is monotone.

>>> merge_rows([("a", "b", Min(20)), ("a", "b", Min(21)), ("b", "a", Min(5))], key=2)
[('a', 'b', Min(20)), ('b', 'a', Min(5))]
>>> merge_rows([("a", 1), ("a", 2)], key=1)  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.KeyConflict: two rows with the key ('a',) differ in column 1: 1 and 2. Only lattice values...

Source: Conway et al. 2012, "Integration with set-oriented logic"; ``docs/design/lattice.md``, "Lattices and rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TypeAlias, TypeVar

from syndicate.errors import KeyConflict, LatticeValue, short
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.lattice.lattice import Lattice, grew, holds_lattice, join, no_lattice
from syndicate.lattice.sets import Set
from syndicate.values.value import Value

L = TypeVar("L", bound=Lattice)

Row: TypeAlias = tuple[Value, ...]
KeyColumns: TypeAlias = int | Sequence[int]
"""How many leading columns are the key, or which columns are."""


def from_collection(cls: type[L], elements: Iterable[Element]) -> L:
    """The elements of a collection, folded into an element of *cls*; raises what :meth:`Lattice.of` raises."""
    column = [
        element[0] if type(element) is tuple and len(element) == 1 else element
        for element in elements
        if element is not None
    ]
    column = [element for element in column if element is not None]
    if issubclass(cls, Set):
        return cls(column)
    return reduce(join, map(cls.of, column), cls.bottom())


def to_collection(value: Lattice) -> list[Row]:
    """A lattice that is a collection, as rows: of a set its elements, of a bag or map its keys and values.

    Raises :class:`LatticeValue` for a lattice that is no collection: embed its value in a row instead.

    >>> to_collection(Set([1, (2, 3)]))
    [(1,), (2, 3)]
    """
    if isinstance(value, Set):
        return [element if type(element) is tuple else (element,) for element in map(natural, value.keys())]
    rows = getattr(value.content, "rows", None)
    if rows is None:
        raise LatticeValue(
            f"{short(value)} is no collection, and cannot be the rows of one: embed it in a row, as in "
            f"(key, {short(value)}), or write a condition with when_true(lambda: [row])"
        )
    return [(natural(key), item) for key, item in rows().items()]


def key_indexes(key: KeyColumns) -> tuple[int, ...]:
    """The indexes of the key columns."""
    return tuple(range(key)) if isinstance(key, int) else tuple(key)


def check_key(row: Row, key: Sequence[int]) -> None:
    """Raise :class:`LatticeAsKey` if a key column of *row* holds a lattice value."""
    for place in key:
        if holds_lattice(row[place]):
            no_lattice(row[place], f"column {place} of {short(row)}, which belongs to the key")


def merge_row(old: Row, new: Row, key: Sequence[int] = ()) -> Row:
    """One row for two with one key: *old* itself if *new* adds nothing; raises :class:`KeyConflict`.

    *key* is only for the error's text.
    """
    if len(old) != len(new):
        raise KeyConflict(
            f"two rows with one key have {len(old)} and {len(new)} columns: {short(old)} and {short(new)}"
        )
    merged: list[Value] | None = None
    for place, (mine, theirs) in enumerate(zip(old, new, strict=True)):
        if mine is theirs:
            continue
        if isinstance(mine, Lattice) and isinstance(theirs, Lattice):
            both = join(mine, theirs)
            if grew(mine, both):
                merged = list(old) if merged is None else merged
                merged[place] = both
        elif key_of(mine) != key_of(theirs):
            raise KeyConflict(
                f"two rows with the key {tuple(old[i] for i in key)!r} differ in column {place}: {short(mine)} and "
                f"{short(theirs)}. Only lattice values are merged; make the column part of the key, or a lattice."
            )
    return old if merged is None else tuple(merged)


def merge_rows(rows: Iterable[Row], key: KeyColumns) -> list[Row]:
    """The rows, one for each key, in the order of first appearance, with their lattice values merged.

    Raises :class:`KeyConflict` if rows with one key differ in a column that holds no lattice value, and
    :class:`LatticeAsKey` if a key column holds one.
    """
    columns = key_indexes(key)
    held: dict[Key, Row] = {}
    for row in rows:
        check_key(row, columns)
        at = key_of(row[:key] if isinstance(key, int) else tuple([row[i] for i in columns]))
        old = held.get(at)
        held[at] = row if old is None else merge_row(old, row, columns)
    return list(held.values())
