"""Arrangements: an indexed stream's past, found by key; the one memory that all joins on the stream share.

A stream is *flat* if it changes at most once an epoch: at the root, and in a loop what only depends on imports from
the root.  A flat stream's arrangement is ``key -> value -> weight``, and takes the rows of a step when the step has
succeeded: until then they are kept beside it, so that a step that fails leaves no trace.  Any other stream in a loop
has a timed arrangement, ``key -> time -> value -> weight``, where the time is the iteration (or the tuple of
iterations of nested loops).  It needs no epoch: rows of epochs ``e0 < e`` and of ``e`` meet a row of epoch ``e`` at
the same least upper bound.

Contract: canonical; no empty bucket is kept.

Source: McSherry et al. 2020 (one arrangement for all joins on an index); ``docs/design/flow.md``, "Joins".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from syndicate.flow.element import Element, Key, MixedRows, Rows, meet
from syndicate.flow.undo import Log, note_attribute
from syndicate.flow.zset import Time

Index: TypeAlias = dict[Key, dict[Key, int]]
NO_ROWS: Final = Rows()


class Arriving:
    """The rows that an indexed stream brings now, and the same by key for all joins that want them so."""

    __slots__ = ("_grouped", "mixed", "rows")

    def __init__(self) -> None:
        self.mixed = False
        self.rows: Rows = NO_ROWS
        self._grouped: Index | None = None

    def take(self, rows: Rows) -> None:
        """Rows arrive."""
        self.rows = rows
        self._grouped = None
        if type(rows) is MixedRows:
            self.mixed = True

    def grouped(self) -> Index:
        """The rows by key; made once."""
        grouped = self._grouped
        if grouped is None:
            grouped = self._grouped = {}
            add_rows(grouped, self.rows)
        return grouped

    def discard(self) -> None:
        """Forget the rows."""
        self.rows = NO_ROWS
        self._grouped = None


class SortedRuns(Protocol):
    """The columnar part of an arrangement."""

    def take(self, batch: Any) -> Rows:
        """A batch arrives, rows or a table; what is left for the arrangement itself."""

    def commit(self) -> None:
        """The step has succeeded."""

    def discard(self) -> None:
        """It has failed."""


class InWords(Protocol):
    """An arrangement's rows as words."""

    def take(self, batch: Element) -> Rows:
        """A batch arrives, rows or a table; what is left for the arrangement itself."""

    def commit(self, undo: Log) -> None:
        """The step has succeeded."""

    def discard(self) -> None:
        """It has failed."""


class Arrangement(Arriving):
    """The sum of a flat stream's rows, by key, less those of the running step."""

    __slots__ = ("index", "sorted_runs", "words")

    def __init__(self) -> None:
        super().__init__()
        self.index: Index = {}
        self.sorted_runs: SortedRuns | None = None  # where columns come, the columnar part of the sum
        self.words: InWords | None = None  # where tables come, all of the sum, as long as that can be

    def take(self, rows: Any) -> None:
        """Rows arrive, or a table where it may."""
        if self.words is not None:
            rows = self.words.take(rows)
        self.receive(rows if self.sorted_runs is None else self.sorted_runs.take(rows))

    def receive(self, rows: Rows) -> None:
        """Rows arrive."""
        super().take(rows)
        if type(rows) is MixedRows:
            meet_rows(self.grouped(), self.index)

    def commit(self, undo: Log) -> None:
        """The step has succeeded: its rows are of the past now."""
        if self.words is not None:
            self.words.commit(undo)
        if self.sorted_runs is not None:
            self.sorted_runs.commit()
        if self._grouped is not None and not self.index:
            note_attribute(undo, self, "index")
            self.index = self._grouped
        else:
            put_rows(self.index, self.rows, undo)
        self.discard()

    def discard(self) -> None:
        """Forget the rows."""
        super().discard()
        if self.words is not None:
            self.words.discard()
        if self.sorted_runs is not None:
            self.sorted_runs.discard()

    def whole(self) -> Rows:
        """All rows, with those of the running step."""
        past = [(key, value, weight) for key, group in self.index.items() for value, weight in group.items()]
        return (MixedRows if self.mixed else Rows)([*past, *self.rows])


def meet_rows(arrived: Index, groups: Mapping[Key, Collection[Key]]) -> None:
    """Look up what has arrived, before anything is changed: see :func:`~syndicate.flow.element.meet`."""
    for key, group in arrived.items():
        old = groups.get(key)
        if old:
            meet(group, old)


def add_rows(index: Index, rows: Iterable[tuple[Key, Key, int]]) -> None:
    """Add rows to an index, which stays canonical."""
    get = index.get
    for key, value, weight in rows:
        group = get(key)
        if group is None:
            index[key] = {value: weight}
            continue
        total = group.get(value, 0) + weight
        if total:
            group[value] = total
        else:
            del group[value]
            if not group:
                del index[key]


def put_rows(index: Index, rows: Rows, undo: Log) -> None:
    """The same, with a note of the weight that each row meets; of a first load none is needed."""
    if not index:
        undo.append((dict.clear, index))
        add_rows(index, rows)
        return
    olds: list[int | None] = []
    undo.append((_take_rows_back, (index, rows, olds)))
    get, save = index.get, olds.append
    for key, value, weight in rows:
        group = get(key)
        if group is None:
            save(None)
            index[key] = {value: weight}
            continue
        old = group.get(value)
        save(old)
        if old is None:
            group[value] = weight
        elif total := old + weight:
            group[value] = total
        else:
            del group[value]
            if not group:
                del index[key]


def _take_rows_back(what: tuple[Index, Rows, list[int | None]]) -> None:
    index, rows, olds = what
    for (key, value, _), old in zip(reversed(rows[: len(olds)]), reversed(olds), strict=True):
        group = index.setdefault(key, {})
        if old is None:
            group.pop(value, None)
        else:
            group[value] = old
        if not group:
            del index[key]


class TimedArrangement(Arriving):
    """The rows of a stream in a loop, by key and time, less those of the running iteration."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        super().__init__()
        self.index: dict[Key, dict[Time, dict[Key, int]]] = {}

    def close(self, time: Time, undo: Log) -> None:
        """The iteration is over: the rows are of the past now."""
        rows = self.rows
        if type(rows) is MixedRows:
            meet_rows(
                self.grouped(), {key: self.index[key].get(time, ()) for key in self.grouped() if key in self.index}
            )
        self.add(rows, time, undo)
        self.discard()

    def add(self, rows: Rows, time: Time, undo: Log) -> None:
        """Add rows at a time, with a note of the weight that each meets."""
        index = self.index
        olds: list[int | None] = []
        undo.append((self.take_back, (rows, time, olds)))
        get, save = index.get, olds.append
        for key, value, weight in rows:
            levels = get(key)
            if levels is None:
                save(None)
                index[key] = {time: {value: weight}}
                continue
            group = levels.get(time)
            if group is None:
                save(None)
                levels[time] = {value: weight}
                continue
            old = group.get(value)
            save(old)
            if old is None:
                group[value] = weight
            elif total := old + weight:
                group[value] = total
            else:
                del group[value]
                if not group:
                    del levels[time]
                    if not levels:
                        del index[key]

    def take_back(self, what: tuple[Rows, Time, list[int | None]]) -> None:
        """Put back what some rows met."""
        rows, time, olds = what
        index = self.index
        for (key, value, _), old in zip(reversed(rows[: len(olds)]), reversed(olds), strict=True):
            levels = index.setdefault(key, {})
            group = levels.setdefault(time, {})
            if old is None:
                group.pop(value, None)
            else:
                group[value] = old
            if not group:
                del levels[time]
                if not levels:
                    del index[key]
