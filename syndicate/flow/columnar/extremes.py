"""Columnar ``min`` and ``max``: the rows of the groups that change, gathered from the sorted runs and summed up again.

That costs as much as the groups that change are large; where they are much larger than the change, rows are taken,
whose rankings cost what changed.  A key is in the head or in the runs, never in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from syndicate.flow.aggregates import Aggregate
from syndicate.flow.arrangement import Index, put_rows
from syndicate.flow.columnar.parts import all_encoded, plain_keys, weights_of
from syndicate.flow.columnar.sorted_runs import Patience, SortedRun, SortedRuns, gathered, parted
from syndicate.flow.columnar.sums import Entries, emitted
from syndicate.flow.columnar.table import Array, ColumnTable, joined, kind_of
from syndicate.flow.element import Element, Key, MixedRows, is_rearranging, natural, naturals
from syndicate.flow.operators.groups import GroupView
from syndicate.flow.scope import Cell, Scope
from syndicate.flow.shape import ByRows, Leaf, row_shape, traced
from syndicate.flow.undo import note, note_whole

if TYPE_CHECKING:
    from syndicate.flow.node import Node
    from syndicate.flow.operators.ranking import Ranking

MANY_GATHERED: Final = 32
"""Rows that a changed row may make it gather, on average; beyond, rankings are cheaper."""


def knows(aggregate: Aggregate) -> bool:
    """Whether an aggregate is one of these, by what is in a column."""
    return aggregate.form in ("min", "max") and (aggregate.by is None or is_rearranging(aggregate.by))


class ExtremeRuns:
    """The columnar part of one operator's state."""

    __slots__ = ("aggregate", "caches", "engine", "groups", "patience", "results", "sorted_runs", "typed", "undo")

    def __init__(self, scope: Scope, node: Node) -> None:
        self.groups: Index
        self.results: dict[Key, Element]
        self.typed: Cell
        self.groups, self.results, self.typed = scope.engine.states[node.global_id]
        self.caches = cast("dict[Key, Ranking]", scope.caches[node.id])
        self.aggregate: Aggregate = node.params["aggregate"]
        self.undo = scope.undo
        self.engine = scope.engine
        self.sorted_runs = SortedRuns(scope.undo)
        self.patience = Patience()

    def __len__(self) -> int:
        return len(self.sorted_runs)

    def step(self, batch: ColumnTable) -> ColumnTable | None:
        """The change of the result.  Raises :class:`ByRows`, and changes nothing."""
        table = batch.normal()
        if not self.sorted_runs.accepts(table):
            raise ByRows
        by = self.aggregate.by
        measured = table.shape[1] if by is None else traced(by, table.shape[1])
        if type(measured) is not Leaf or kind_of(table.columns[measured.at]) != "i":
            raise ByRows
        run = SortedRun.of(table)
        keys = ColumnTable(table.columns[: run.width], table.weights, table.shape[0])
        changed = Entries.of(keys, [np.ones(len(table), np.int64)])
        headed = not (self.sorted_runs.runs or self.engine.keeps_columns)
        if self.groups and not headed:
            self.patience.attempt(len(self.groups), lambda: self._push(table))
        runs = gathered(self.groups, run, table, MANY_GATHERED * (len(run) + 1)) if headed else self.sorted_runs.runs
        matches = self._matches(changed, [*runs, run])
        group = np.concatenate([numbers for _, (numbers, _) in matches])
        together = joined([each.table.taken(rows) for each, (_, rows) in matches])
        before = np.arange(len(group)) < len(group) - len(run)
        columns = [*together.columns, group]
        rows = ColumnTable(columns, together.weights, row_shape(len(columns)))
        totals = Entries.of(rows, [together.weights * before, together.weights])
        values, group = totals.keys.columns[measured.at], totals.keys.columns[-1]
        (old, had), (new, has) = (
            self._best(values[present], group[present], len(changed))
            for present in (numbers > 0 for numbers in totals.numbers)
        )
        delta = emitted(changed.keys, had, old, has, new)
        if headed:
            self._put_on_head(run, changed, new, has)
        else:
            self.sorted_runs.append(parted(run, self.sorted_runs.runs))
        return delta if len(delta) else None

    def _matches(self, changed: Entries, runs: list[SortedRun]) -> list[tuple[SortedRun, tuple[Array, Array]]]:
        matches = [(run, run.matches(changed.codes, changed.keys.columns)) for run in runs]
        if sum([len(each[0]) for _, each in matches]) > MANY_GATHERED * len(runs[-1]) + MANY_GATHERED:
            raise ByRows
        return matches

    def _best(self, values: Array, group: Array, groups: int) -> tuple[Array, Array]:
        """The result of each group, and whether it has one."""
        limits = np.iinfo(np.int64)
        best = np.full(groups, limits.max if self.aggregate.form == "min" else limits.min)
        (np.minimum if self.aggregate.form == "min" else np.maximum).at(best, group, values)
        has = np.zeros(groups, dtype=bool)
        has[group] = True
        return best, has

    def _put_on_head(self, run: SortedRun, changed: Entries, new: Array, has: Array) -> None:
        rows = run.table.rows(indexed=True)
        keys = plain_keys(changed.keys.elements(changed.keys.shape))
        if type(rows) is MixedRows:
            raise ByRows
        self.undo.append((self._write, (keys, list(map(self.results.get, keys)))))
        put_rows(self.groups, rows, self.undo)
        results = [result if there else None for result, there in zip(new.tolist(), has.tolist(), strict=True)]
        self._write((keys, results))

    def _write(self, what: tuple[list[Key], list[Element]]) -> None:
        keys, results = what
        for key, result in zip(keys, results, strict=True):
            self.caches.pop(key, None)
            if result is None:
                self.results.pop(key, None)
            else:
                self.results[key] = result

    def _push(self, like: ColumnTable) -> None:
        rows = [(key, value, weight) for key, group in self.groups.items() for value, weight in group.items()]
        columns = all_encoded([(natural(key), natural(value)) for key, value, _ in rows], like.shape, like.columns)
        run = SortedRun.of(ColumnTable(columns, weights_of([row[2] for row in rows]), like.shape))
        self.sorted_runs.append(parted(run, self.sorted_runs.runs))
        self._clear()

    def _clear(self) -> None:
        note_whole(self.undo, self.groups)
        note_whole(self.undo, self.results)
        for each in (self.groups, self.results, self.caches):
            each.clear()

    def pull(self, keys: Iterable[Key]) -> None:
        """Let the head hold some groups, each key given once."""
        self._put(self.sorted_runs.take(naturals(keys)))

    def settle(self) -> None:
        """Let the head hold everything."""
        self._put(self.sorted_runs.take_all())

    def _put(self, tables: list[ColumnTable]) -> None:
        pulled: dict[Key, None] = {}
        for table in tables:
            rows = table.rows(indexed=True)
            if type(rows) is MixedRows:
                self.typed.value = True
            put_rows(self.groups, rows, self.undo)
            pulled.update(dict.fromkeys([row[0] for row in rows]))
        note(self.undo, self.results, pulled)
        for key in pulled:
            group: dict[Key, int] = self.groups.get(key, {})
            result = self.aggregate.of(GroupView(group) if self.typed.value else group)
            if result is not None:
                self.results[key] = result
