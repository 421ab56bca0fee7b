"""Columnar joins: the matches of sorted runs, and the arrangement's tail that they share.

The change is ``a * B + A * b + a * b``, as by rows, where ``A`` and ``B`` are all runs of a side; or the
new product less the old, where that makes fewer rows.  Of a large change by rows, ``A`` and ``B`` are what the heads
have of its keys, as a run that is gone after the step.

Source: reference/flow.md, sections 3.12 and 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from math import inf
from typing import TYPE_CHECKING, Any, Final

from syndicate.flow.columnar.parts import all_encoded, weights_of
from syndicate.flow.columnar.table import (
    SAFE,
    ByRows,
    Shape,
    Table,
    joined,
    leaves,
    renamed,
    traced,
)
from syndicate.flow.columnar.tail import Patience, Run, Tail, gathered, merged
from syndicate.flow.element import Key, MixedRows, Rows, natural, naturals
from syndicate.flow.operators.arrangement import NO_ROWS, Arrangement, add_rows

if TYPE_CHECKING:
    from syndicate.flow.local import LocalEngine
    from syndicate.flow.node import Node

HALF: Final = 0.5
"""Where both sides change by more than this part of what they are, the new product less the old may be cheaper."""

SAMPLE: Final = 64
"""How many groups of an index an estimate looks at."""

HEAD: Final = 1024
"""A head with more rows than this, and than half of its tail, is pushed into it: rows of both may cancel out."""


class ArrangedTail:
    """The columnar part of an arrangement: what has come as tables, and what comes as one now."""

    __slots__ = ("_run", "_whole", "arrangement", "engine", "patience", "put", "table", "tail")

    def __init__(self, arrangement: Arrangement, engine: LocalEngine) -> None:
        self.arrangement = arrangement
        self.engine = engine
        self.tail = Tail()
        self.table: Table | None = None
        self._run: Run | None = None
        self._whole: Run | None = None
        self.put = 0  # rows put into the head since it was pushed
        self.patience = Patience()

    def __len__(self) -> int:
        return len(self.tail)

    def take(self, batch: Rows | Table) -> Rows:
        """A batch arrives; what is left for the arrangement itself."""
        self._run = self._whole = None
        self.table = batch.normal() if isinstance(batch, Table) else None
        return NO_ROWS if isinstance(batch, Table) else batch

    def run(self) -> Run | None:
        """What arrives now, sorted; None for nothing.  Raises :class:`ByRows` if it is rows, or not as what is kept."""
        if self.arrangement.rows:
            raise ByRows
        if self.table is not None and self._run is None:
            if not self.tail.accepts(self.table):
                raise ByRows
            self._run = Run.of(self.table)
        return self._run

    @property
    def is_headed(self) -> bool:
        """Whether what arrives is to be put into the head."""
        return not (self.tail.runs or self.engine.keeps_columns)

    def runs(self, *met: Run | None) -> list[Run]:
        """All that is kept, or all that has the keys of what is *met*; raises :class:`ByRows`."""
        if self.is_headed:
            return gathered(self.arrangement.index, [run for run in met if run is not None], self.table)
        if self.arrangement.index:
            self.patience.attempt(len(self.arrangement.index), self._push)
        return self.tail.runs

    def share(self, run: Run) -> float:
        """About which part of what is kept a change is."""
        if not self.is_headed:
            return len(run) / (len(self.tail) + 1)
        index = self.arrangement.index
        groups = list(map(len, islice(index.values(), SAMPLE)))
        return len(run) * len(groups) / (sum(groups) * len(index)) if groups else inf

    def whole(self, runs: list[Run]) -> Run:
        """The *runs*, with what arrives; made once where they are all that is kept.  Raises :class:`ByRows`."""
        run = self.run()
        assert run is not None
        if self.is_headed:
            return merged([run, *runs], whole=True)
        if self._whole is None:
            self._whole = merged([run, *runs], whole=True)
        return self._whole

    def _push(self) -> None:
        like = self.tail.runs[0].table if self.tail.runs else self.table
        if like is None:
            raise ByRows
        index = self.arrangement.index
        rows = [(key, value, weight) for key, group in index.items() for value, weight in group.items()]
        pairs = [(natural(key), natural(value)) for key, value, _ in rows]
        columns = all_encoded(pairs, like.shape, like.columns)
        self.tail.append(Run.of(Table(columns, weights_of([row[2] for row in rows]), like.shape)))
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
        self._put(self.tail.take(naturals(keys)))

    def settle(self) -> None:
        """Let the head hold everything."""
        tables = [run.trimmed().table for run in self.tail.runs]
        self.tail.runs = []
        self._put(tables)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """The head holds everything meanwhile."""
        runs = list(self.tail.runs)
        was_empty = not self.arrangement.index
        self.settle()
        try:
            yield
        finally:
            if was_empty:
                self.tail.runs = runs
                self.arrangement.index.clear()
                self.put = 0

    def _put(self, tables: list[Table]) -> None:
        for table in tables:
            rows = table.rows(indexed=True)
            if type(rows) is MixedRows:
                self.arrangement.mixed = True
            add_rows(self.arrangement.index, rows)
            self.put += len(rows)

    def commit(self) -> None:
        """The step has succeeded; rows are put into the head by the arrangement itself."""
        if self.table is not None and self.is_headed:
            self.by_rows()
        if self.table is not None:
            try:
                run = self.run()
                assert run is not None
                if self._whole is not None and not self.arrangement.index:
                    self.tail.runs = [self._whole] if len(self._whole) else []
                else:
                    self.tail.append(run)
                self.discard()
            except ByRows:
                self.by_rows()
        self.put += len(self.arrangement.rows)
        if self.put > HEAD and self.tail.runs and 2 * self.put > len(self.tail):
            try:
                self.runs()
            except ByRows:
                self.settle()

    def discard(self) -> None:
        """The step has failed."""
        self.table = self._run = self._whole = None


def change(node: Node, left: ArrangedTail, right: ArrangedTail) -> Table | None:
    """What a join brings forth; None for nothing.  Raises :class:`ByRows`."""
    a, b = left.run(), right.run()
    much = a is not None and b is not None and min(left.share(a), right.share(b)) > HALF
    met = (a, b) if much else ()
    lefts, rights = left.runs(*met or (b,)) if b else [], right.runs(*met or (a,)) if a else []
    pairs = [(*pair, 1) for pair in _meetings(a, b, rights, lefts)]
    if much:
        was = [(some, others, -1) for some in lefts for others in rights]
        anew = [*was, (left.whole(lefts), right.whole(rights), 1)]
        if _cost(anew) < _cost(pairs):
            pairs = anew
    function = node.params["function"]
    parts = [part for some, others, sign in pairs if (part := _product(function, some, others, sign)) is not None]
    return joined(parts) if parts else None


def _cost(pairs: list[tuple[Run, Run, int]]) -> int:
    return sum([some.meets(others) for some, others, _ in pairs])


def _meetings(a: Run | None, b: Run | None, rights: list[Run], lefts: list[Run]) -> Iterator[tuple[Run, Run]]:
    if a is not None:
        yield from ((a, run) for run in rights)
        if b is not None:
            yield a, b
    if b is not None:
        yield from ((run, b) for run in lefts)


def _product(function: Callable[..., Any], left: Run, right: Run, sign: int) -> Table | None:
    if left.looks() != right.looks():
        raise ByRows
    if len(left) <= len(right):
        i, j = right.matches(left.codes, left.table.columns[: left.width])
        if left.gone:
            kept = left.table.weights[i] != 0
            i, j = i[kept], j[kept]
    else:
        j, i = left.matches(right.codes, right.table.columns[: right.width])
        if right.gone:
            kept = right.table.weights[j] != 0
            i, j = i[kept], j[kept]
    if not len(i):
        return None
    if left.most * right.most >= SAFE:
        raise ByRows
    shape, used = _result_shape(function, left.table, right.table)
    size = len(left.table.columns)
    columns = [left.table.columns[at][i] if at < size else right.table.columns[at - size][j] for at in used]
    return Table(columns, left.table.weights[i] * right.table.weights[j] * sign, shape)


def _result_shape(function: Callable[..., Any], left: Table, right: Table) -> tuple[Shape, list[int]]:
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
