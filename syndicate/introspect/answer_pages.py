"""Answers that are windows: a look at what there is, a slice at a time, and the page that is sent of it.

>>> look = Page("a", 0, 1).fill([["apple"], ["pear"], ["fig"]])
>>> try:
...     next(look)
... except StopIteration as end:
...     print(end.value.total, end.value.matched, end.value.value().fields[2])
3 2 [['apple']]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final, TypeAlias

from syndicate.actors.timer import every
from syndicate.actors.verbs import current_facet, send, sync
from syndicate.values.value import Record, Ref, Value

PERIOD: Final = 1.0
"""Seconds between two looks for a question that is asserted."""

WINDOW: Final = 500
"""Rows of one answer."""

STRIDE: Final = 500
"""Values, handles or objects that are looked at in one turn."""

TEXT: Final = 4000
"""Characters of a value's text that are shown."""

Row: TypeAlias = list[Value]
Table: TypeAlias = Callable[[], Iterable[Row]]
"""What makes the rows of one more question, all at once: small ones."""
Survey: TypeAlias = "Generator[None, None, Page]"
"""A look at what there is, a slice at a time; at its end the answer."""


class Page:
    """The window of what a filter lets through, filled by and by."""

    def __init__(self, part: str, start: int, count: int, order: int = 0) -> None:
        """Of rows with *part* in their text; *order* is the number of the column by which they are sorted, from 1 on,
        negative for the largest first; 0 leaves them as they are.
        """
        self.total = 0
        self.matched = 0
        self.part = part
        self.start = start
        self.end = start + min(count, WINDOW)
        self.rows: list[Row] = []
        self._order = order

    def fill(self, rows: Iterable[Row], text: int = 0) -> Survey:
        """Take those of *rows* that are in the window, a slice at a time; the filter looks at the field *text*."""
        for row in self._ordered(rows):
            self.total += 1
            if self.part in str(row[text]):
                if self.start <= self.matched < self.end:
                    self.rows.append(row)
                self.matched += 1
            if self.total % STRIDE == 0:
                yield
        return self

    def _ordered(self, rows: Iterable[Row]) -> Iterable[Row]:
        column = abs(self._order) - 1
        if column < 0:
            return rows
        whole = list(rows)
        if any(column >= len(row) for row in whole):
            return whole
        plain = all(type(row[column]) in (int, float, bool) for row in whole)
        return sorted(
            whole, key=lambda row: row[column] if plain else str(row[column]), reverse=self._order < 0
        )  # fmt: skip

    def value(self) -> Record:
        """As it is sent."""
        return Record("page", [self.total, self.matched, [[cut(item) for item in row] for row in self.rows]])


def cut(item: Value) -> Value:
    """A text as it is shown: its beginning, and how much more there is."""
    if isinstance(item, str) and len(item) > TEXT:
        return f"{item[:TEXT]}<cut {len(item) - TEXT}>"
    return item


class OpenQuestion:
    """One question that is asserted, in a facet of its own."""

    def __init__(self, observer: Ref, survey: Callable[[], Survey]) -> None:
        self._observer = observer
        self._survey = survey
        self._busy = False
        self._last: Record | None = None

    def begin(self) -> None:
        """Look now, and each period."""
        self._facet = current_facet()
        every(PERIOD, self._look)
        self._look()

    def _look(self) -> None:
        if not self._busy:
            self._busy = True
            self._step(self._survey())

    def _step(self, survey: Survey) -> None:
        try:
            next(survey)
        except StopIteration as end:
            self._tell(end.value.value())
        else:
            self._facet.enter(lambda: self._step(survey))

    def _tell(self, page: Record) -> None:
        if page == self._last:
            self._busy = False
            return
        self._last = page
        send(self._observer, page)
        sync(self._observer, self._taken, self._taken)

    def _taken(self) -> None:
        self._busy = False
