"""Columnar joins: the matches of sorted runs, and the runs of an arrangement that they share.

The change is ``a * B + A * b + a * b``, as by rows, where ``A`` and ``B`` are all runs of a side.  Where both sides
change, each change is what it takes away, ``a'``, and what it adds, ``a"``; with ``A'`` and ``B'`` being what stays,
the same is ``a * B' + A' * b + a" * b" - a' * b'``, in which no row of two sets comes twice or cancels out, unless the
change is small beside what is kept (:data:`~.sorted_runs.FAR`).  Of a large change by rows, ``A`` and ``B`` are what
the heads have of its keys, as a run that is gone after the step.

Source: ``docs/design/flow.md``, "Joins" and "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from syndicate.flow.arrangement import NO_ROWS, Arrangement, put_rows
from syndicate.flow.columnar.parts import all_encoded, weights_of
from syndicate.flow.columnar.sorted_runs import Parted, Patience, SortedRun, SortedRuns, gathered, parted
from syndicate.flow.columnar.table import SAFE, Array, ColumnTable
from syndicate.flow.element import Element, Key, Rows, natural, naturals
from syndicate.flow.shape import ByRows, Shape, leaves, renamed, traced
from syndicate.flow.undo import note_whole

if TYPE_CHECKING:
    from syndicate.flow.node import Node
    from syndicate.flow.scope import AbstractEngine

HEAD: Final = 1024
"""A head with more rows than this, and than half of its runs, is pushed into them: rows of both may cancel out."""


class ArrangedRuns:
    """The columnar part of an arrangement: what has come as tables, and what comes as one now."""

    __slots__ = ("_parted", "_run", "arrangement", "engine", "patience", "put", "sorted_runs", "table")

    def __init__(self, arrangement: Arrangement, engine: AbstractEngine) -> None:
        self.arrangement = arrangement
        self.engine = engine
        self.sorted_runs = SortedRuns(engine.undo)
        self.table: ColumnTable | None = None
        self._run: SortedRun | None = None
        self._parted: tuple[list[SortedRun], Parted] | None = None  # and of which runs
        self.put = 0  # rows put into the head since it was pushed
        self.patience = Patience()

    def __len__(self) -> int:
        return len(self.sorted_runs)

    def take(self, batch: Rows | ColumnTable) -> Rows:
        """A batch arrives; what is left for the arrangement itself."""
        self._run = self._parted = None
        self.table = batch.normal() if isinstance(batch, ColumnTable) else None
        return NO_ROWS if isinstance(batch, ColumnTable) else batch

    def run(self) -> SortedRun | None:
        """What arrives now, sorted; None for nothing.  Raises :class:`ByRows` if it is rows, or not as what is kept."""
        if self.arrangement.rows:
            raise ByRows
        if self.table is not None and self._run is None:
            if not self.sorted_runs.accepts(self.table):
                raise ByRows
            self._run = SortedRun.of(self.table)
        return self._run

    @property
    def is_headed(self) -> bool:
        """Whether what arrives is to be put into the head."""
        return not (self.sorted_runs.runs or self.engine.keeps_columns)

    def runs(self, met: SortedRun | None = None) -> list[SortedRun]:
        """All that is kept, or all that has the keys of what is *met*; raises :class:`ByRows`."""
        if met is not None and self.is_headed:
            return gathered(self.arrangement.index, met, self.table)
        if self.arrangement.index:
            self.patience.attempt(len(self.arrangement.index), self._push)
        return self.sorted_runs.runs

    def parted(self, run: SortedRun, runs: list[SortedRun]) -> Parted:
        """What arrives and what is kept, parted; see there."""
        if runs is not self.sorted_runs.runs:
            return parted(run, runs)
        if self._parted is None or self._parted[0] is not runs:
            self._parted = runs, parted(run, runs)
        return self._parted[1]

    def _push(self) -> None:
        like = self.sorted_runs.runs[0].table if self.sorted_runs.runs else self.table
        if like is None:
            raise ByRows
        index = self.arrangement.index
        rows = [(key, value, weight) for key, group in index.items() for value, weight in group.items()]
        pairs = [(natural(key), natural(value)) for key, value, _ in rows]
        columns = all_encoded(pairs, like.shape, like.columns)
        run = SortedRun.of(ColumnTable(columns, weights_of([row[2] for row in rows]), like.shape))
        self.sorted_runs.append(parted(run, self.sorted_runs.runs))
        note_whole(self.engine.undo, index)
        index.clear()
        self.put = 0

    def by_rows(self) -> None:
        """Let what arrives be rows."""
        if self.table is not None:
            table = self.table if self._run is None else self._run.table  # by key, so that no bucket is met twice
            rows = table.rows(indexed=True)
            self.discard()
            Arrangement.take(self.arrangement, rows)

    def pull(self, keys: list[Key]) -> None:
        """Let the head hold all rows of some keys, each given once."""
        self._put(self.sorted_runs.take(naturals(keys)))

    def settle(self) -> None:
        """Let the head hold everything."""
        self._put(self.sorted_runs.take_all())

    def _put(self, tables: list[ColumnTable]) -> None:
        for table in tables:
            if not table.is_plain:
                self.arrangement.mixed = True
            put_rows(self.arrangement.index, Rows(table.each_row()), self.engine.undo)
            self.put += len(table)

    def commit(self) -> None:
        """The step has succeeded; rows are put into the head by the arrangement itself."""
        if self.table is not None and self.is_headed:
            self._put([self.table if self._run is None else self._run.table])  # by key: no bucket is met twice
            self.discard()
        if self.table is not None:
            try:
                run = self.run()
                assert run is not None
                self.sorted_runs.append(self.parted(run, self.sorted_runs.runs))
                self.discard()
            except ByRows:
                self.by_rows()
        self.put += len(self.arrangement.rows)
        if self.put > HEAD and self.sorted_runs.runs and 2 * self.put > len(self.sorted_runs):
            try:
                self.runs()
            except ByRows:
                self.settle()

    def discard(self) -> None:
        """The step has failed."""
        self.table = self._run = self._parted = None


def change(node: Node, left: ArrangedRuns, right: ArrangedRuns) -> ColumnTable | None:
    """What a join brings forth; None for nothing.  Raises :class:`ByRows`."""
    a, b = left.run(), right.run()
    lefts, rights = left.runs(b) if b else [], right.runs(a) if a else []
    pairs: list[tuple[SortedRun, SortedRun, int]] = []
    if a and b:
        more_left, less_left, lefts = left.parted(a, lefts)
        more_right, less_right, rights = right.parted(b, rights)
        pairs.append((more_left, more_right, 1))
        if less_left and less_right:
            pairs.append((less_left, less_right, -1))
    if a:
        pairs += [(a, run, 1) for run in rights]
    if b:
        pairs += [(run, b, 1) for run in lefts]
    products = [product for pair in pairs if len((product := _Product.of(*pair)).left)]
    return _joined(node.params["function"], products) if products else None


@frozen
class _Product:
    """Pairs of rows of two runs, by their numbers, and a sign of the product of their weights."""

    runs: tuple[SortedRun, SortedRun]
    left: Array
    right: Array
    sign: int

    @classmethod
    def of(cls, left: SortedRun, right: SortedRun, sign: int) -> _Product:
        """All pairs whose keys are alike.  Raises :class:`ByRows`."""
        if left.looks() != right.looks() or left.most * right.most >= SAFE:
            raise ByRows
        return cls((left, right), *_pairs(left, right), sign)

    def take(self, at: int, into: Array) -> None:
        """Put a column, counted through both tables, into a new one."""
        left, right = (run.table.columns for run in self.runs)
        column, rows = (left[at], self.left) if at < len(left) else (right[at - len(left)], self.right)
        np.take(column, rows, out=into, mode="clip")  # no number is out of bounds; numpy is slower where it asks

    def weights(self, into: Array) -> None:
        """Put the weights into a column."""
        into[:] = self.sign
        for run, rows in zip(self.runs, (self.left, self.right), strict=True):
            if not run.once:
                into *= run.table.weights[rows]


def _joined(function: Callable[..., Element], products: Sequence[_Product]) -> ColumnTable:
    """What a function makes of all pairs: each column at once, since to copy it would cost as much as to make it."""
    left, right = (run.table for run in products[0].runs)
    ends = np.cumsum([0, *(len(product.left) for product in products)]).tolist()
    shape, used = _result_shape(function, left, right)
    sources = [*left.columns, *right.columns]
    columns = [np.empty(ends[-1], sources[at].dtype) for at in used]
    weights = np.empty(ends[-1], np.int64)
    for product, start, end in zip(products, ends, ends[1:], strict=False):
        for at, column in zip(used, columns, strict=True):
            product.take(at, column[start:end])
        product.weights(weights[start:end])
    return ColumnTable(columns, weights, shape)


def _pairs(left: SortedRun, right: SortedRun) -> tuple[Array, Array]:
    if len(left) <= len(right):
        i, j = right.matches(left.codes, left.table.columns[: left.width])
        if left.gone:
            present = left.table.weights[i] != 0
            i, j = i[present], j[present]
    else:
        j, i = left.matches(right.codes, right.table.columns[: right.width])
        if right.gone:
            present = right.table.weights[j] != 0
            i, j = i[present], j[present]
    return i, j


def _result_shape(function: Callable[..., Element], left: ColumnTable, right: ColumnTable) -> tuple[Shape, list[int]]:
    size = len(left.columns)
    names = {at: at + size for at in range(len(right.columns))}
    key, value = left.shape
    shape = traced(function, key, value, renamed(right.shape[1], names))
    width = len(set(leaves(key)))
    # A key's column is the same on both sides.
    names = {at: at - size if size <= at < size + width else at for at in range(size + len(right.columns))}
    shape = renamed(shape, names)
    used = list(dict.fromkeys(leaves(shape)))
    return renamed(shape, {at: number for number, at in enumerate(used)}), used


def row_keys(*batches: Any) -> list[Key]:
    """The keys of rows, each once."""
    return list(dict.fromkeys([row[0] for row in chain(*batches)]))
