"""Tables out and in: what is asserted in a dataspace as pandas, Polars or Arrow, and the rows of a frame as facts.

``to_frame`` has what matches now as a frame; ``follow`` keeps a table of what matches, of which each moment can be had
as a frame; ``from_frame`` asserts a record for each row, and ``replace`` changes only what differs.  In threads,
notebooks and beside asyncio the first is ``system.to_frame``, and the others go through ``system.call``.

>>> from syndicate import after, dataspace, record, run
>>> @record
... class Sensor:
...     name: str
...     value: float
>>> def boot():
...     ds = dataspace()
...     table = follow(ds, Sensor)
...     rows = from_frame(ds, {"name": ["hall", "attic"], "value": [20.5, 18.0]}, to=Sensor)
...     after(0.01, lambda: print(table.columns, sorted(table)))
>>> run(boot)
('name', 'value') [('attic', 18.0), ('hall', 20.5)]

Source: ``docs/design/hosts.md``, "Tables".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast, get_args, overload

import attrs

from syndicate.actors.arguments import expect_ref
from syndicate.actors.during import on_asserted, on_retracted
from syndicate.actors.facet import Facet
from syndicate.actors.portal import Answer, once
from syndicate.actors.turn import Handle, current
from syndicate.actors.verbs import current_facet, react
from syndicate.errors import ArgumentError, NotAValue
from syndicate.values.absent import ABSENT, inward
from syndicate.values.pattern import capture, capture_names, pattern_of
from syndicate.values.record import is_record_class
from syndicate.values.value import Frozen, Ref, Value, freeze

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SHOWN: Final = 20
"""Rows that a notebook shows."""


Kind = Literal["pandas", "polars", "arrow"]
"""The libraries that frames are made for."""


class Table:
    """The rows that match now, in the order in which they came; made by :func:`follow`.

    A snapshot costs a copy of the rows.  In a notebook it shows its first rows.

    >>> len(Table(("name", "value")))
    0
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._rows: dict[Frozen, tuple[Value, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(list(self._rows.values()))

    def _by_column(self) -> dict[str, list[Value]]:
        rows = [inward(row) for row in self]
        return {name: [row[place] for row in rows] for place, name in enumerate(self.columns)}

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame of pandas; what is absent is None."""
        import pandas as pd

        return pd.DataFrame(self._by_column(), columns=list(self.columns))

    def to_polars(self) -> pl.DataFrame:
        """A DataFrame of Polars; what is absent is null."""
        import polars as pl

        return pl.DataFrame(self._by_column(), strict=False)

    def to_arrow(self) -> pa.Table:
        """A table of Arrow; what is absent is null.  Raises Arrow's own error for a column with values of two kinds."""
        import pyarrow as pa

        return pa.table(self._by_column())

    def to(self, kind: Kind) -> pd.DataFrame | pl.DataFrame | pa.Table:
        """The frame of the library *kind*."""
        return {"pandas": self.to_pandas, "polars": self.to_polars, "arrow": self.to_arrow}[kind]()

    def _repr_html_(self) -> str:
        rows = list(self)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(item)[:200])}</td>" for item in row) + "</tr>" for row in rows[:_SHOWN]
        )
        more = f", the first {_SHOWN} of which are shown" if len(rows) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{len(rows)} rows{more}</p>"


def follow(ds: Ref, pattern: Value, columns: Sequence[str] = ()) -> Table:
    """A table of what *pattern* captures, one row for each distinct tuple of captures, as long as the current facet
    lives.  A class of records is the pattern of all its fields, and names the columns; else *columns* do, or they are
    called ``0``, ``1`` and so on.

    Raises:
        NotInTurn: no turn is running.
        ArgumentError: there are more or fewer *columns* than captures.
    """
    expect_ref("follow", ds)
    if is_record_class(pattern):
        names = [each.name for each in attrs.fields(pattern)]
        pattern, columns = pattern(*[capture() for _ in names]), columns or names
    places = len(capture_names(pattern_of(pattern)))
    if columns and len(columns) != places:
        raise ArgumentError(f"follow() got {len(columns)} columns for {places} captures: give a name for each capture")
    if not places:
        raise ArgumentError(f"follow() needs a pattern with a capture, as in Sensor(capture(), ANY), not {pattern!r}")
    table = Table(tuple(columns) or tuple(map(str, range(places))))

    def comes(*row: Value) -> None:
        table._rows[freeze(row)] = row

    def goes(*row: Value) -> None:
        table._rows.pop(freeze(row), None)

    on_asserted(ds, pattern)(comes)
    on_retracted(ds, pattern)(goes)
    return table


@overload
def to_frame(
    ds: Ref,
    pattern: Value,
    then: Callable[[pd.DataFrame], object],
    *,
    columns: Sequence[str] = (),
    kind: Literal["pandas"] = "pandas",
) -> None: ...
@overload
def to_frame(
    ds: Ref,
    pattern: Value,
    then: Callable[[pl.DataFrame], object],
    *,
    columns: Sequence[str] = (),
    kind: Literal["polars"],
) -> None: ...
@overload
def to_frame(
    ds: Ref,
    pattern: Value,
    then: Callable[[pa.Table], object],
    *,
    columns: Sequence[str] = (),
    kind: Literal["arrow"],
) -> None: ...
def to_frame(
    ds: Ref, pattern: Value, then: Callable[..., object], *, columns: Sequence[str] = (), kind: Kind = "pandas"
) -> None:
    """Call *then*, once, in a turn of its own, with what *pattern* captures now, as a frame of the library *kind*; what
    this actor has asserted before is in it.  Rows and columns are those of :func:`follow`.

    It costs what matches.  When the connection to *ds* is lost before, *then* is not called.

    >>> from syndicate import dataspace, record, run
    >>> @record
    ... class Sensor:
    ...     name: str
    ...     value: float
    >>> def boot():
    ...     ds = dataspace()
    ...     from_frame(ds, {"name": ["hall", "attic"], "value": [20.5, 18.0]}, to=Sensor)
    ...     to_frame(ds, Sensor, lambda frame: print(frame.sort_values("name").to_dict("list")))
    >>> run(boot)
    {'name': ['attic', 'hall'], 'value': [18.0, 20.5]}

    Raises:
        NotInTurn: no turn is running.
        ArgumentError: *kind* is none of these, or there are more or fewer *columns* than captures.
    """
    expect_kind(kind)

    def on_table(table: Table | None, error: BaseException | None) -> None:
        if table is not None:
            then(table.to(kind))

    react(lambda: table_once(ds, pattern, columns, on_table))


def table_once(ds: Ref, pattern: Value, columns: Sequence[str], answer: Answer[Table]) -> None:
    """In a turn, in a facet of its own: answer with a table of what *pattern* captures now."""
    once(ds, lambda: follow(ds, pattern, columns), answer)


def expect_kind(kind: str) -> None:
    """Raise ArgumentError for a library that no frames are made for."""
    if kind not in get_args(Kind):
        raise ArgumentError(f"to_frame() makes frames of {', '.join(get_args(Kind))}, not of {kind!r}")


class _Frame(Protocol):
    """What pandas, Polars and Arrow have in common here."""

    @property
    def columns(self) -> Iterable[object]: ...


class Rows:
    """The facts of a frame; made by :func:`from_frame`.

    >>> from syndicate import dataspace, record, run
    >>> @record
    ... class Sensor:
    ...     name: str
    ...     value: float
    >>> def boot():
    ...     rows = from_frame(dataspace(), {"name": ["hall"], "value": [20.5]}, to=Sensor)
    ...     print(rows.replace({"name": ["hall", "attic"], "value": [20.5, 18.0]}))   # asserted, retracted
    >>> run(boot)
    (1, 0)
    """

    def __init__(self, ds: Ref, to: type) -> None:
        self._ds = ds
        self._to = to
        self._facet: Facet = current_facet()
        self._handles: dict[Frozen, Handle] = {}

    def __len__(self) -> int:
        return len(self._handles)

    def replace(self, frame: _Frame | Mapping[str, Sequence[Value]]) -> tuple[int, int]:
        """Let the facts be those of *frame*; returns how many came and how many went.  Nobody sees a moment between.

        Raises:
            ArgumentError: the frame has not the columns that the record has fields.
            NotAValue: something in it is no value; then nothing changes.
        """
        turn = current("replace")
        forms: dict[Frozen, None] = {}
        for number, row in enumerate(_rows(frame, self._to)):
            try:
                forms[freeze(self._to(*row))] = None
            except NotAValue as error:
                raise NotAValue(f"row {number}: {error}") from None
        new = [form for form in forms if form not in self._handles]
        old = [form for form in self._handles if form not in forms]
        for form in new:
            self._handles[form] = turn.assert_form(self._facet, self._ds, form)
        for form in old:
            turn.retract(self._handles.pop(form))
        return len(new), len(old)

    def retract(self) -> None:
        """Take all of them back."""
        turn = current("retract")
        for handle in self._handles.values():
            turn.retract(handle)
        self._handles.clear()


def from_frame(ds: Ref, frame: _Frame | Mapping[str, Sequence[Value]], *, to: type) -> Rows:
    """Assert a record of the class *to* for each row of a frame of pandas or Polars, a table of Arrow, or a mapping
    from columns to values, as long as the current facet lives.  Columns are found by the names of the fields, others
    are left out; what is missing is ``ABSENT``, but NaN in a column of floats is NaN.  Equal rows are one fact.

    Raises:
        NotInTurn: no turn is running.
        ArgumentError: *to* is no class of records, or the frame lacks one of its fields.
        NotAValue: something in it is no value.
    """
    expect_ref("from_frame", ds)
    if not is_record_class(to):
        raise ArgumentError(f"from_frame() needs a class of records, made with @record, and not {to!r}")
    rows = Rows(ds, to)
    rows.replace(frame)
    return rows


def _rows(frame: _Frame | Mapping[str, Sequence[Value]], to: type) -> Iterator[tuple[Value, ...]]:
    names = [each.name for each in attrs.fields(to)]
    there = getattr(frame, "column_names", None) or (frame if isinstance(frame, Mapping) else frame.columns)
    present = list(map(str, there))
    missing = [name for name in names if name not in present]
    if missing:
        raise ArgumentError(
            f"the frame has no column {', '.join(missing)}, which {to.__qualname__} has as a field: "
            f"its columns are {', '.join(present)}"
        )
    columns = [_items(cast(Mapping[str, Value], frame)[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise ArgumentError(f"the columns {', '.join(names)} are not of one length")
    for row in zip(*columns, strict=True):
        yield tuple([ABSENT if item is None else item for item in row])


def _items(column: Value) -> list[Value]:
    """The values of a column, as Python's own where it is a column of some library's; None for what is missing."""
    if hasattr(column, "isna") and column.dtype.kind != "f":  # pandas' missing values have many forms
        return [None if gone else item for item, gone in zip(column.tolist(), column.isna(), strict=True)]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)
