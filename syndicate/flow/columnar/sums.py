"""Columnar sums: ``distinct``, ``count``, ``sum`` and ``avg``, each a map of keys to integers that are added.

A key is in the head or in the runs, never in both.  A run has each key once, so that what a key had before is one
number from each run.  Of a large change by rows the keys are looked up in the head, all at once, and stay there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from attrs import field, frozen

from syndicate.flow.aggregates import Aggregate
from syndicate.flow.columnar.parts import all_encoded, encoded, plain_keys, weights_of
from syndicate.flow.columnar.sorted_runs import Patience, layered
from syndicate.flow.columnar.table import SAFE, Array, ColumnTable, bits, coded, equal, kind_of, largest, sums
from syndicate.flow.element import Element, Key, is_rearranging, keys_of, naturals
from syndicate.flow.shape import ByRows, Leaf, leaf, traced
from syndicate.flow.undo import note, note_attribute, note_whole

if TYPE_CHECKING:
    from syndicate.flow.scope import Scope

EXACT: Final = 1 << 53
"""Integers below this are doubles, so that one division rounds once."""


@frozen
class Entries:
    """Keys in normal form, sorted by code, each once; and the integers of each."""

    codes: Array
    exact: bool
    keys: ColumnTable
    numbers: list[Array]
    most: list[int] = field(init=False)
    """No number of each is larger."""

    @most.default
    def _most(self) -> list[int]:
        return list(map(largest, self.numbers))

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, keys: ColumnTable, numbers: Sequence[Array]) -> Entries:
        """Keys that may recur.  Raises :class:`ByRows` where two keys have one code, or a sum could be too large."""
        codes, exact = coded(keys.columns, len(keys))
        return _gathered(codes, exact, keys, numbers, np.argsort(codes))

    def taken(self, which: Array) -> Entries:
        """Some of them."""
        return Entries(self.codes[which], self.exact, self.keys.taken(which), [each[which] for each in self.numbers])

    def positions(self, codes: Array, columns: Sequence[Array]) -> tuple[Array, Array]:
        """Where the given keys are, and whether they are there."""
        at = np.searchsorted(self.codes, codes)
        np.minimum(at, len(self.codes) - 1, out=at)
        there = self.codes[at] == codes
        if not self.exact:
            for column, other in zip(columns, self.keys.columns, strict=True):
                there &= equal(bits(column), bits(other)[at])
        return at, there


def _gathered(codes: Array, exact: bool, keys: ColumnTable, numbers: Sequence[Array], order: Array) -> Entries:
    codes = codes[order]
    different = np.concatenate(([True], codes[1:] != codes[:-1])) if len(codes) else np.zeros(0, dtype=bool)
    starts = np.flatnonzero(different)
    if not exact and len(starts) < len(codes):
        near = np.flatnonzero(~different)
        for column in map(bits, keys.columns):
            if not equal(column[order[near]], column[order[near - 1]]).all():
                raise ByRows
    added = [sums(each[order], starts) for each in numbers]
    nonzero = _any(added)
    return Entries(codes[starts][nonzero], exact, keys.taken(order[starts[nonzero]]), [each[nonzero] for each in added])


def _any(numbers: Sequence[Array]) -> Array:
    """Where one of the numbers is not 0."""
    nonzero: Array = numbers[0] != 0
    for each in numbers[1:]:
        nonzero |= each != 0
    return nonzero


def _merged(runs: Sequence[Entries]) -> Entries:
    keys = [run.keys for run in runs]
    columns = [np.concatenate(parts) for parts in zip(*(table.columns for table in keys), strict=True)]
    together = ColumnTable(columns, np.concatenate([table.weights for table in keys]), keys[0].shape)
    numbers = [np.concatenate(parts) for parts in zip(*(run.numbers for run in runs), strict=True)]
    codes = np.concatenate([run.codes for run in runs])
    order = np.argsort(codes, kind="stable")  # what is sorted in stretches is quick to merge
    return _gathered(codes, runs[0].exact, together, numbers, order)


Runs: TypeAlias = list[Entries]


@frozen
class SumForm:
    """How one operator's dictionary is read and written, and what it emits.

    ``numbers`` are those of a batch; ``opened`` and ``closed`` are a dictionary's values as numbers, and back;
    *nothing* is the value of a key that it does not hold.
    """

    key: Callable[[ColumnTable], ColumnTable]
    numbers: Callable[[ColumnTable], list[Array]]
    opened: Callable[[list[Element]], list[Array]]
    closed: Callable[..., list[Element]]
    nothing: Element
    emitted: Callable[[Entries, list[Array], list[Array]], ColumnTable | None]


class SummedRuns:
    """The columnar part of one operator's state."""

    __slots__ = ("engine", "form", "head", "patience", "pulled", "runs", "undo")

    def __init__(self, scope: Scope, head: dict[Key, Element], form: SumForm) -> None:
        self.head = head
        self.form = form
        self.undo = scope.undo
        self.engine = scope.engine
        self.runs: Runs = []
        self.patience = Patience()
        self.pulled = 0

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def step(self, batch: ColumnTable) -> ColumnTable | None:
        """The change of the result.  Raises :class:`ByRows`, and changes nothing."""
        keys = self.form.key(batch).normal()
        if self.runs and self.runs[0].keys.looks() != keys.looks():
            raise ByRows
        entries = Entries.of(keys, self.form.numbers(batch))
        if not (self.runs or self.engine.keeps_columns):
            return self._on_head(entries)
        if self.head:
            self.patience.attempt(len(self.head), lambda: self._push(keys))
        _bounded([entries.most, *(run.most for run in self.runs)])
        old = [np.zeros(len(entries), np.int64) for _ in entries.numbers]
        for run in self.runs:
            at, there = run.positions(entries.codes, entries.keys.columns)
            for total, numbers in zip(old, run.numbers, strict=True):
                np.add(total, numbers[at], out=total, where=there)
        new = [total + numbers for total, numbers in zip(old, entries.numbers, strict=True)]
        delta = self.form.emitted(entries, old, new)
        runs = _appended(self.runs, entries)
        note_attribute(self.undo, self, "runs")
        self.runs = runs
        return delta if delta is not None and len(delta) else None

    def _on_head(self, entries: Entries) -> ColumnTable | None:
        keys = plain_keys(entries.keys.elements(entries.keys.shape))
        before = list(map(self.head.get, keys, repeat(self.form.nothing)))
        old = self.form.opened(before)
        _bounded([entries.most, list(map(largest, old))])
        new = [total + numbers for total, numbers in zip(old, entries.numbers, strict=True)]
        delta = self.form.emitted(entries, old, new)
        self.undo.append((self._write, (keys, before)))
        self._write((keys, self.form.closed(*[numbers.tolist() for numbers in new])))
        return delta if delta is not None and len(delta) else None

    def _write(self, what: tuple[list[Key], list[Element]]) -> None:
        keys, values = what
        head, nothing = self.head, self.form.nothing
        head.update(zip(keys, values, strict=True))
        if nothing in values:
            for key, value in zip(keys, values, strict=True):
                if value == nothing:
                    del head[key]

    def _push(self, like: ColumnTable) -> None:
        columns = all_encoded(naturals(self.head), like.shape, like.columns)
        numbers = self.form.opened(list(self.head.values()))
        keys = ColumnTable(columns, np.ones(len(self.head), np.int64), like.shape)
        runs = _appended(self.runs, Entries.of(keys, numbers))
        note_attribute(self.undo, self, "runs")
        note_whole(self.undo, self.head)
        self.runs = runs
        self.head.clear()

    def pull(self, keys: Iterable[Key]) -> None:
        """Let the head hold some keys, each given once."""
        if not self.runs:
            return
        like = self.runs[0].keys
        columns, elements = encoded(naturals(keys), like.shape, like.columns)
        if not elements:
            return
        codes, _ = coded(columns, len(elements))
        totals = [[0] * len(elements) for _ in self.runs[0].numbers]
        for run in self.runs:
            at, there = run.positions(codes, columns)
            where = np.flatnonzero(there)
            places = at[where]
            for total, numbers in zip(totals, run.numbers, strict=True):
                for place, number in zip(where.tolist(), numbers[places].tolist(), strict=True):
                    total[place] += number
                self.undo.append((_put_back, (numbers, places, numbers[places])))
                numbers[places] = 0
            self.pulled += len(where)
        self._put(dict(zip(keys_of(elements)[0], zip(*totals, strict=True), strict=True)))
        if 2 * self.pulled > sum(map(len, self.runs)):
            note_attribute(self.undo, self, "runs")
            self.runs = [left for run in self.runs if len(left := run.taken(np.flatnonzero(_any(run.numbers))))]
            self.pulled = 0

    def settle(self) -> None:
        """Let the head hold everything."""
        totals: dict[Key, tuple[int, ...]] = {}
        for run in self.runs:
            keys, _ = keys_of(run.keys.elements(run.keys.shape))
            for key, *numbers in zip(keys, *[each.tolist() for each in run.numbers], strict=True):
                old = totals.get(key)
                totals[key] = tuple(numbers if old is None else map(operator.add, old, numbers))
        self._put(totals)
        note_attribute(self.undo, self, "runs")
        self.runs = []

    def _put(self, totals: dict[Key, tuple[int, ...]]) -> None:
        """Put keys with their numbers into the head, which does not hold them."""
        present = [key for key, numbers in totals.items() if any(numbers)]
        numbers = list(zip(*map(totals.__getitem__, present), strict=True))
        if present:
            note(self.undo, self.head, present)
            self.head.update(zip(present, self.form.closed(*numbers), strict=True))


def _put_back(what: tuple[Array, Array, Array]) -> None:
    numbers, places, olds = what
    numbers[places] = olds


def _bounded(bounds: list[list[int]]) -> None:
    """Raise :class:`ByRows` if a sum of numbers with these bounds could leave 64 bits."""
    if any(sum(each) >= SAFE for each in zip(*bounds, strict=True)):
        raise ByRows


def _appended(runs: Runs, entries: Entries) -> Runs:
    if not len(entries):
        return runs
    rest, small = layered(runs, entries)
    entry = _merged(small) if len(small) > 1 else entries
    return [*rest, entry] if len(entry) else rest


# ------------------------------------------------------------------------------------------------------------ operators


def distinct() -> SumForm:
    """``distinct``: the weight of each element."""

    def changed_set(entries: Entries, old: list[Array], new: list[Array]) -> ColumnTable:
        weights = (new[0] > 0).astype(np.int64) - (old[0] > 0)
        changed = np.flatnonzero(weights)
        keys = entries.keys.taken(changed)
        return ColumnTable(keys.columns, weights[changed], keys.shape, once=True)

    return SumForm(lambda batch: batch, lambda batch: [batch.weights], _opened_weights, list, 0, changed_set)


def aggregated(aggregate: Aggregate) -> SumForm | None:
    """``count``, ``sum`` and ``avg``, by what is in a column."""
    by = aggregate.by
    if aggregate.form == "count":
        return SumForm(_key, lambda batch: [batch.weights], _opened_weights, list, 0, _emitter(_first))
    if aggregate.form not in ("sum", "avg") or not (by is None or is_rearranging(by)):
        return None

    def numbers(batch: ColumnTable) -> list[Array]:
        measured = batch.shape[1] if by is None else traced(by, batch.shape[1])
        if type(measured) is not Leaf or kind_of(values := batch.columns[measured.at]) != "i":
            raise ByRows
        if largest(values) * largest(batch.weights) >= SAFE:
            raise ByRows
        return [batch.weights, values * batch.weights]

    result = _second if aggregate.form == "sum" else _mean
    return SumForm(_key, numbers, _opened_sums, _closed_sums, (0, 0, None), _emitter(result))


def _opened_weights(weights: list[int]) -> list[Array]:
    return [weights_of(weights)]


def _opened_sums(entries: list[Element]) -> list[Array]:
    counts, wholes, totals = zip(*entries, strict=True)
    if totals.count(None) < len(totals):
        raise ByRows
    return [weights_of(counts), weights_of(wholes)]


def _closed_sums(counts: list[int], wholes: list[int]) -> list[Element]:
    return list(zip(counts, wholes, repeat(None)))


def _key(batch: ColumnTable) -> ColumnTable:
    return batch.shaped(batch.shape[0])


def _first(numbers: list[Array]) -> Array:
    return numbers[0]


def _second(numbers: list[Array]) -> Array:
    return numbers[1]


def _mean(numbers: list[Array]) -> Array:
    count, whole = numbers
    if max(largest(count), largest(whole)) >= EXACT:
        raise ByRows
    return whole / np.where(count == 0, 1, count)


def _emitter(result: Callable[[list[Array]], Array]) -> Callable[[Entries, list[Array], list[Array]], ColumnTable]:
    def emitter(entries: Entries, old: list[Array], new: list[Array]) -> ColumnTable:
        return emitted(entries.keys, old[0] != 0, result(old), new[0] != 0, result(new))

    return emitter


def emitted(keys: ColumnTable, had: Array, was: Array, has: Array, now: Array) -> ColumnTable:
    """A row ``(key, result)`` out where there was one, a row in where there is one, if they differ."""
    differ = (had != has) | (bits(was) != bits(now))
    gone, come = np.flatnonzero(had & differ), np.flatnonzero(has & differ)
    rows = np.concatenate((gone, come))
    results = np.concatenate((was[gone], now[come]))
    weights = np.concatenate((np.full(len(gone), -1), np.ones(len(come), np.int64)))
    columns = [*(column[rows] for column in keys.columns), results]
    return ColumnTable(columns, weights, (keys.shape, leaf(len(columns) - 1)), once=True)
