"""Tails: what a node keeps, as sorted runs, each at least four times as long as the next.

A new run is merged with its neighbours while that does not hold, so that there are few of them and each row is moved a
logarithmic number of times.  Rows that cancel out are dropped when a merge takes in all runs.  Rows are taken out of
a run by setting their weights to 0; a run with more such rows than others is written anew.

Contract: the weights of a run may be changed in place by its tail alone; its columns never are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from syndicate.flow.columnar.table import (
    SAFE,
    Array,
    ByRows,
    Leaf,
    Shape,
    Table,
    added_up,
    bits,
    coded,
    equal,
    joined,
    kind_of,
    largest,
    leaves,
    mixed_up,
    signature,
)
from syndicate.flow.element import Element, key_of

RATIO: Final = 4
SAMPLE: Final = 1024
"""How many keys an estimate looks at."""

_KINDS: Final[dict[str, type]] = {"i": int, "f": float, "b": bool}
_DTYPES: Final[dict[str, Any]] = {"i": np.int64, "f": np.float64, "b": np.bool_, "o": object}


class Run:
    """Rows ``(key, value)`` sorted by the code of the key, whose parts are the first *width* columns."""

    __slots__ = ("codes", "exact", "gone", "most", "table", "width")

    def __init__(self, table: Table, width: int, codes: Array, *, exact: bool) -> None:
        self.table = table
        self.width = width
        self.codes = codes
        self.exact = exact
        self.gone = 0
        self.most = largest(table.weights)  # no weight is larger

    @classmethod
    def of(cls, table: Table) -> Run:
        """Of a table that is in normal form."""
        width = len(set(leaves(table.shape[0])))
        codes, exact = coded(table.columns[:width], len(table))
        order = np.argsort(codes)
        return cls(table.taken(order), width, codes[order], exact=exact)

    def __len__(self) -> int:
        return len(self.codes)

    def looks(self) -> tuple[Any, str]:
        """What two runs that are joined must share."""
        return signature(self.table.shape[0]), "".join(map(kind_of, self.table.columns[: self.width]))

    def matches(self, codes: Array, columns: Sequence[Array]) -> tuple[Array, Array]:
        """Which of the given keys meet which rows, as two arrays of numbers."""
        low = np.searchsorted(self.codes, codes, "left")
        counts = np.searchsorted(self.codes, codes, "right") - low
        ends = np.cumsum(counts)
        mine = np.repeat(np.arange(len(codes)), counts)
        theirs = np.arange(len(mine)) - np.repeat(ends - counts - low, counts)
        if not self.exact and len(mine):
            same = np.ones(len(mine), dtype=bool)
            for column, other in zip(columns, self.table.columns, strict=False):
                same &= equal(bits(column)[mine], bits(other)[theirs])
            if not same.all():
                mine, theirs = mine[same], theirs[same]
        if self.gone:
            kept = self.table.weights[theirs] != 0
            mine, theirs = mine[kept], theirs[kept]
        return mine, theirs

    def meets(self, other: Run) -> int:
        """About how many rows of the two have keys of one code."""
        some, others = (self, other) if len(self) < len(other) else (other, self)
        every = max(1, len(some) // SAMPLE)
        low, high = (np.searchsorted(others.codes, some.codes[::every], side) for side in ("left", "right"))
        return int((high - low).sum()) * every

    def take(self, codes: Array, columns: Sequence[Array]) -> Table:
        """Take the rows of some keys out, each key given once."""
        _, found = self.matches(codes, columns)
        taken = self.table.taken(found)
        self.table.weights[found] = 0
        self.gone += len(found)
        return taken

    def trimmed(self) -> Run:
        """Without the rows that are gone."""
        kept = np.flatnonzero(self.table.weights)
        return Run(self.table.taken(kept), self.width, self.codes[kept], exact=self.exact)


def merged(runs: Sequence[Run], *, whole: bool) -> Run:
    """Several runs as one; where it is the *whole* tail, without what cancels out."""
    table = joined([run.table for run in runs])
    codes = np.concatenate([run.codes for run in runs])
    if whole:
        entries, _ = coded(table.columns[runs[0].width :], len(table))
        entries = mixed_up([codes, entries])
        rows, weights = added_up(table, entries, np.argsort(entries))
        order = np.argsort(codes[rows])
        rows, weights = rows[order], weights[order]
    else:
        rows = np.argsort(codes, kind="stable")  # what is sorted in stretches is quick to merge
        weights = table.weights[rows]
    table, codes = Table([column[rows] for column in table.columns], weights, table.shape), codes[rows]
    run = Run(table, runs[0].width, codes, exact=runs[0].exact)
    return run.trimmed() if any(each.gone for each in runs) else run


class Tail:
    """The sorted runs of one arrangement."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def __len__(self) -> int:
        return sum([len(run) - run.gone for run in self.runs])

    def accepts(self, table: Table) -> bool:
        """Whether the table looks as what is here."""
        return not self.runs or self.runs[0].table.looks() == table.looks()

    def append(self, run: Run) -> None:
        """One run more.  Raises :class:`ByRows`, and changes nothing, if a weight could leave 64 bits."""
        taken, size, at = [run], len(run), len(self.runs)
        while at and len(self.runs[at - 1]) < RATIO * size:
            at -= 1
            taken.append(self.runs[at])
            size += len(self.runs[at])
        made = merged(taken, whole=at == 0) if len(taken) > 1 else run
        self.runs[at:] = [made] if len(made) else []

    def take(self, keys: Iterable[Element]) -> list[Table]:
        """Take all rows of some keys out, each key given once."""
        if not self.runs:
            return []
        run = self.runs[0]
        columns = encoded(keys, run.table.shape[0], run.table.columns[: run.width])
        codes, _ = coded(columns[0], len(columns[1]))
        taken = [run.take(codes, columns[0]) for run in self.runs] if len(codes) else []
        if any(2 * run.gone > len(run) for run in self.runs):
            runs = [run.trimmed() if 2 * run.gone > len(run) else run for run in self.runs]
            self.runs = [run for run in runs if len(run)]
        return [table for table in taken if len(table)]


def encoded(elements: Iterable[Element], shape: Shape, like: Sequence[Array]) -> tuple[list[Array], list[Element]]:
    """Elements as columns such as *like*, and those of them that can be."""
    kinds = [kind_of(column) for column in like]
    fitting: list[Element] = []
    rows: list[list[Any]] = []
    for element in elements:
        row: list[Any] = [_MISSING] * len(kinds)
        if _fits(element, shape, kinds, row):
            fitting.append(element)
            rows.append(row)
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return [_array(values, kind) for values, kind in zip(columns, kinds, strict=True)], fitting


_MISSING: Final = object()


def _array(values: Sequence[Any], kind: str) -> Array:
    made = np.empty(len(values), dtype=_DTYPES[kind])
    made[:] = values if kind != "o" else [*values]
    return made


def _fits(element: Element, shape: Shape, kinds: Sequence[str], row: list[Any]) -> bool:
    if type(shape) is tuple:
        return (
            type(element) is tuple
            and len(element) == len(shape)
            and all(_fits(part, each, kinds, row) for part, each in zip(element, shape, strict=True))
        )
    if type(shape) is not Leaf:
        return bool(key_of(element) == key_of(shape))
    if row[shape.at] is not _MISSING:
        return bool(key_of(element) == key_of(row[shape.at]))
    row[shape.at] = element
    kind = kinds[shape.at]
    if kind == "i":
        return type(element) is int and -(1 << 63) <= element < 1 << 63
    return (element is not None and key_of(element) is element) if kind == "o" else type(element) is _KINDS[kind]


def all_encoded(elements: Sequence[Element], shape: Shape, like: Sequence[Array]) -> list[Array]:
    """The same of all elements; raises :class:`ByRows` where one cannot be."""
    columns, fitting = encoded(elements, shape, like)
    if len(fitting) < len(elements):
        raise ByRows
    return columns


class Patience:
    """When to try again to push a head into its tail that once could not be: when it has lost half of its entries."""

    __slots__ = ("refused",)

    def __init__(self) -> None:
        self.refused = 0

    def attempt(self, size: int, push: Callable[[], None]) -> None:
        """Push; raises :class:`ByRows`."""
        if self.refused and 2 * size > self.refused:
            raise ByRows
        try:
            push()
        except ByRows:
            self.refused = size
            raise
        self.refused = 0


def weights_of(values: Sequence[int]) -> Array:
    """Integers as an array; raises :class:`ByRows` if one is too large."""
    try:
        made = np.array(values, dtype=np.int64)
    except OverflowError:
        raise ByRows from None
    if largest(made) >= SAFE:
        raise ByRows
    return made
