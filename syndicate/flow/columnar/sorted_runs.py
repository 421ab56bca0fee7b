"""Sorted runs: what a node keeps, in sorted tables, each at least four times as long as the next.

A new run is merged with its neighbours while that does not hold, so that there are few of them and each row is moved a
logarithmic number of times.  Rows that cancel out are dropped when a merge takes in all runs.  Rows are taken out of
a run by setting their weights to 0; a run with more such rows than others is written again.

Contract: the weights of a run may be changed in place by its :class:`SortedRuns` alone; its columns never are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import chain, compress
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from syndicate.flow.columnar.parts import encoded, plain_keys, shape_of, take_apart, weights_of
from syndicate.flow.columnar.table import (
    SAFE,
    Array,
    ColumnTable,
    added_up,
    all_differ,
    bits,
    coded,
    equal,
    joined,
    kind_of,
    largest,
    mixed_up,
)
from syndicate.flow.element import Element, Key
from syndicate.flow.shape import ByRows, leaves, signature
from syndicate.flow.undo import Log, note_attribute

if TYPE_CHECKING:
    from syndicate.flow.arrangement import Index

S = TypeVar("S", bound=Sized)

RATIO: Final = 4

FAR: Final = 64
"""A run so many times as long as a change is not parted: to copy its weights would cost more than the change."""


class SortedRun:
    """Rows ``(key, value)`` sorted by the code of the key, whose parts are the first *width* columns."""

    __slots__ = ("codes", "exact", "gone", "most", "once", "table", "width")

    def __init__(self, table: ColumnTable, width: int, codes: Array, *, exact: bool) -> None:
        self.table = table
        self.width = width
        self.codes = codes
        self.exact = exact
        self.gone = 0
        self.most = largest(table.weights)  # no weight is larger
        self.once = self.most == 1 and not table.weights.min() < 0  # each row that is not gone has the weight 1

    @classmethod
    def of(cls, table: ColumnTable) -> SortedRun:
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
        mine, theirs = self.alike(codes)
        if not self.exact and len(mine):
            same = np.ones(len(mine), dtype=bool)
            for column, other in zip(columns, self.table.columns, strict=False):
                same &= equal(bits(column)[mine], bits(other)[theirs])
            if not same.all():
                mine, theirs = mine[same], theirs[same]
        if self.gone:
            present = self.table.weights[theirs] != 0
            mine, theirs = mine[present], theirs[present]
        return mine, theirs

    def alike(self, codes: Array) -> tuple[Array, Array]:
        """Which of the given codes are those of which rows, as two arrays of numbers."""
        low = np.searchsorted(self.codes, codes, "left")
        counts = np.searchsorted(self.codes, codes, "right") - low
        ends = np.cumsum(counts)
        mine = np.repeat(np.arange(len(codes)), counts)
        return mine, np.arange(len(mine)) - np.repeat(ends - counts - low, counts)

    def keys(self) -> list[Key]:
        """The keys, each once.  Raises :class:`ByRows` if one is typed."""
        keys = self.table.shaped(self.table.shape[0])
        if not self.exact:
            return plain_keys(list(dict.fromkeys(keys.elements(keys.shape))))
        first = np.concatenate((self.codes[:1] == self.codes[:1], self.codes[1:] != self.codes[:-1]))
        return plain_keys(keys.taken(first).elements(keys.shape))

    def take(self, codes: Array, columns: Sequence[Array], undo: Log) -> ColumnTable:
        """Take the rows of some keys out, each key given once."""
        _, places = self.matches(codes, columns)
        taken = self.table.taken(places)
        undo.append((self._put_back, (places, taken.weights, self.gone)))
        self.table.weights[places] = 0
        self.gone += len(places)
        return taken

    def _put_back(self, what: tuple[Array, Array, int]) -> None:
        rows, weights, self.gone = what
        self.table.weights[rows] = weights

    def without(self, rows: Array) -> SortedRun:
        """The same without some rows; this run stays as it is."""
        weights = self.table.weights.copy()
        weights[rows] = 0
        run = SortedRun(
            ColumnTable(self.table.columns, weights, self.table.shape), self.width, self.codes, exact=self.exact
        )
        run.gone = self.gone + len(rows)
        return run

    def some(self, rows: Array) -> SortedRun:
        """Some of the rows, by their numbers in rising order, or by a mask."""
        return SortedRun(self.table.taken(rows), self.width, self.codes[rows], exact=self.exact)

    def trimmed(self) -> SortedRun:
        """Without the rows that are gone."""
        return self.some(np.flatnonzero(self.table.weights)) if self.gone else self


Parted: TypeAlias = tuple[SortedRun, SortedRun | None, list[SortedRun]]


def parted(change: SortedRun, runs: Sequence[SortedRun]) -> Parted:
    """A change parted: what it adds to *runs*, what whole rows it takes from them, if any, and what they are then.

    The first two are the change; the last and the first are the *runs* with it.  What is taken from a run that is
    much longer counts as added to it, with its weight below 0.
    """
    table, weights = change.table, change.table.weights
    left = np.flatnonzero((weights < 0) & (weights > -SAFE))
    matches: list[Array] = []
    remaining: list[SortedRun] = []
    for run in runs:
        if not len(left) or len(run) > FAR * len(change):
            remaining.append(run)
            continue
        mine, theirs = _equals(change, left, run)
        remaining.append(run.without(theirs) if len(theirs) else run)
        matches.append(left[mine])
        left = np.delete(left, mine)
    taken = np.concatenate(matches) if matches else left[:0]
    if not len(taken):
        return change, None, remaining
    rest = np.ones(len(table), dtype=bool)
    rest[taken] = False
    return change.some(rest), change.some(~rest), remaining


def _equals(change: SortedRun, some: Array, run: SortedRun) -> tuple[Array, Array]:
    """Which of *some* rows of a change, by their numbers among these, cancel which rows of a run out, one each.

    The first of those that are alike cancels the first out, and so on: that costs what the groups hold, not what pairs
    there are.  Of rows with one code, some may go unnoticed; they cancel out in a merge.
    """
    codes = change.codes[some]
    _, theirs = run.alike(codes[np.flatnonzero(np.diff(codes, prepend=~codes[:1]))])
    theirs = theirs[run.table.weights[theirs] > 0]
    mine, others = _entries(change, some, -1), _entries(run, theirs, 1)
    order, place = np.argsort(mine), np.argsort(others)
    mine, others = mine[order], others[place]
    at = np.searchsorted(others, mine) + np.arange(len(mine)) - np.searchsorted(mine, mine)
    met = np.flatnonzero(at < len(others))
    order, theirs = order[met], theirs[place[at[met]]]
    rows = some[order]
    same = change.table.weights[rows] == -run.table.weights[theirs]
    for column, other in zip(change.table.columns, run.table.columns, strict=True):
        same &= equal(bits(column)[rows], bits(other)[theirs])
    return order[same], theirs[same]


def _entries(run: SortedRun, rows: Array, sign: int) -> Array:
    """A code of each of some rows with its weight."""
    values, _ = coded([column[rows] for column in run.table.columns[run.width :]], len(rows))
    return mixed_up([run.codes[rows], values, sign * run.table.weights[rows]])


def merged(runs: Sequence[SortedRun], *, whole: bool) -> SortedRun:
    """Several runs as one; where these are *whole*, that is all, without what cancels out."""
    runs = [run.trimmed() for run in runs]
    table = joined([run.table for run in runs])
    codes = np.concatenate([run.codes for run in runs])
    rows = np.argsort(codes, kind="stable")  # what is sorted in stretches is quick to merge
    weights = table.weights[rows]
    if whole:
        entries, _ = coded(table.columns[runs[0].width :], len(table))
        entries = mixed_up([codes, entries])
        if not all_differ(entries):
            rows, weights = added_up(table, entries, np.argsort(entries))
            order = np.argsort(codes[rows])
            rows, weights = rows[order], weights[order]
    table, codes = ColumnTable([column[rows] for column in table.columns], weights, table.shape), codes[rows]
    return SortedRun(table, runs[0].width, codes, exact=runs[0].exact)


def gathered(index: Index, met: SortedRun, like: ColumnTable | None, limit: float = inf) -> list[SortedRun]:
    """What an index has of the keys of a run, as a run, or as none if it has nothing.  Raises :class:`ByRows`.

    It looks as the table *like*, or as the values do, if they are integers or tuples of such; it has no more rows than
    the *limit*.
    """
    keys = met.keys()
    groups: list[Element] = list(map(index.get, keys))
    if None in groups:
        present = [group is not None for group in groups]
        keys, groups = list(compress(keys, present)), list(compress(groups, present))
    if not groups:
        return []
    sizes = np.fromiter(map(len, groups), np.int64, len(groups))
    if sizes.sum() > limit:
        raise ByRows
    if like is not None:
        (key_shape, value_shape), kinds = like.shape, list(like.kinds())
    else:
        key_shape, kinds = met.table.shape[0], list(met.table.kinds()[: met.width])
        value_shape = shape_of(next(iter(groups[0])), kinds)
    columns: dict[int, Array] = {}
    take_apart(keys, key_shape, kinds, columns)
    columns = {at: np.repeat(column, sizes) for at, column in columns.items()}
    take_apart(list(chain.from_iterable(groups)), value_shape, kinds, columns)
    weights = weights_of(list(chain.from_iterable(map(dict.values, groups))))
    return [SortedRun.of(ColumnTable([columns[at] for at in range(len(kinds))], weights, (key_shape, value_shape)))]


class SortedRuns:
    """The sorted runs of one arrangement."""

    __slots__ = ("runs", "undo")

    def __init__(self, undo: Log) -> None:
        self.runs: list[SortedRun] = []
        self.undo = undo

    def __len__(self) -> int:
        return sum([len(run) - run.gone for run in self.runs])

    def accepts(self, table: ColumnTable) -> bool:
        """Whether the table looks as what is here."""
        return not self.runs or self.runs[0].table.looks() == table.looks()

    def append(self, change: Parted) -> None:
        """One run more, parted from these.  Raises :class:`ByRows`, and changes nothing, if a weight is too large."""
        run, _, runs = change
        runs = _in_shape(runs)
        rest, small = layered(runs, run)
        merged_run = merged(small, whole=not rest) if len(small) > 1 else run
        note_attribute(self.undo, self, "runs")
        self.runs = [*rest, merged_run] if len(merged_run) else rest

    def take(self, keys: Iterable[Element]) -> list[ColumnTable]:
        """Take all rows of some keys out, each key given once."""
        if not self.runs:
            return []
        run = self.runs[0]
        columns = encoded(keys, run.table.shape[0], run.table.columns[: run.width])
        codes, _ = coded(columns[0], len(columns[1]))
        taken = [run.take(codes, columns[0], self.undo) for run in self.runs] if len(codes) else []
        note_attribute(self.undo, self, "runs")
        self.runs = _in_shape(self.runs)
        return [table for table in taken if len(table)]

    def take_all(self) -> list[ColumnTable]:
        """Take all rows out."""
        tables = [run.trimmed().table for run in self.runs]
        note_attribute(self.undo, self, "runs")
        self.runs = []
        return tables


def layered(runs: Sequence[S], run: S) -> tuple[list[S], list[S]]:
    """The runs that stay as they are when one more comes, and those to be merged with it, itself the first.

    So that each is several times as long as the next: all that is kept is in few runs, and each row is merged seldom.

    >>> layered([range(100), range(8), range(2)], range(1))
    ([range(0, 100)], [range(0, 1), range(0, 2), range(0, 8)])
    """
    small, size, at = [run], len(run), len(runs)
    while at and len(runs[at - 1]) < RATIO * size:
        at -= 1
        small.append(runs[at])
        size += len(runs[at])
    return list(runs[:at]), small


def _in_shape(runs: list[SortedRun]) -> list[SortedRun]:
    """Runs, those written again that have lost more than half of their rows."""
    return [trimmed for run in runs if len(trimmed := run.trimmed() if 2 * run.gone > len(run) else run)]


class Patience:
    """When to try again to push a head into its runs that once could not be: when it has lost half of its entries."""

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
