"""Rows of a table as values: an Arrow table in, the frozen forms of records out.

Columns are mapped by their Arrow type, a column at a time, never by looking at single Python values: Spark hands the
same column over as different Python objects depending on the way it takes, and a column at a time is several times
faster.

===============================================  ==============================================================
column                                           value
===============================================  ==============================================================
integers, booleans, strings, binary              the same: ``int``, ``bool``, ``str``, ``bytes``
float, double                                    ``float``; as when Spark groups, every NaN is one, and -0.0 is 0.0
decimal                                          ``str``, all digits of its scale: ``"12.30"``
date, time                                       ``str``, ISO 8601: ``"2013-01-01"``, ``"05:17:00"``
timestamp                                        ``str``, ISO 8601 in UTC: ``"2013-01-01T10:17:00Z"``
timestamp without zone                           ``str``, ISO 8601: ``"2013-01-01T05:17:00"``
interval of days and smaller                     ``int``, microseconds
array                                            sequence
struct, map                                      dictionary; the keys of a struct's are strings
null                                             ``Symbol("null")``, here and inside arrays, structs and maps
===============================================  ==============================================================

Text for times and decimals is exact, readable in the console, and the same in every peer's language.

>>> import pyarrow
>>> from syndicate import record
>>> from syndicate.values import thaw
>>> @record
... class Box:
...     name: str
...     size: int
>>> table = pyarrow.table({"size": [1, None], "name": ["a", "b"]})
>>> [thaw(form) for step in Rows(Box).steps(table) for form, weight in step.changes]
[Box(name='a', size=1), Box(name='b', size=Symbol('null'))]

Source: the project's design, 6.7; the reference on Spark, section 6 ("map by schema").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import attrs
from attrs import frozen

from syndicate.errors import SourceError
from syndicate.values import DICT, FALSE, SEQ, TRUE, Frozen, Symbol, freeze, order

if TYPE_CHECKING:
    import pyarrow as pa

NULL: Final = Symbol("null")
"""What stands for a null: no field of a record may be left out."""

CHANGE_TYPES: Final = {"insert": 1, "update_postimage": 1, "update_preimage": -1, "delete": -1}
"""The weights of the words in the column ``_change_type`` of a change data feed."""

_NAN: Final = freeze(float("nan"))
_BOOLEANS: Final = {True: TRUE, False: FALSE, None: NULL}


@frozen
class Step:
    """Rows that take effect together: frozen records with weights, in no order.  ``keys`` are theirs, if rows have
    keys.

    ``clock`` is the frozen record that says which step it is, if the source was asked for one.
    """

    changes: Sequence[tuple[Frozen, int]]
    keys: Sequence[Frozen] | None = None
    clock: Frozen | None = None


@frozen
class Rows:
    """How the rows of a table become records: see :func:`~syndicate.spark.source.spark_source` for the parameters."""

    to: type = attrs.field()
    key: Sequence[str] = ()
    weight: str | None = None
    sequence: str | None = None
    clock: type | None = attrs.field(default=None)

    @to.validator
    @clock.validator
    def _is_record(self, attribute: attrs.Attribute[Any], cls: Any) -> None:
        if cls is not None and not (isinstance(cls, type) and hasattr(cls, "__label__")):
            raise SourceError(f"{attribute.name}= takes a class decorated with @record, not {cls!r}")

    def __attrs_post_init__(self) -> None:
        if isinstance(self.key, str):
            raise SourceError(f"key= takes a list of column names: key=[{self.key!r}]")
        if self.clock is not None and self.sequence is None:
            raise SourceError(
                "clock= shows the step that sequence= counts: name the column by which the rows are ordered, too"
            )

    @property
    def name(self) -> str:
        """What the records are called, in messages."""
        return self.to.__name__

    def check(self, columns: Sequence[str]) -> None:
        """Raise :class:`SourceError` unless each column that is needed is there, once."""
        found = Counter(columns)
        for column, need in self._needs():
            if found[column] != 1:
                there = f"{found[column]} columns" if column in found else "no column"
                raise SourceError(
                    f"the rows have {there} {column!r}, which {need}; their columns are {', '.join(columns)}: "
                    "select or rename them in the frame"
                )

    def _needs(self) -> Iterable[tuple[str, str]]:
        yield from ((name, f"is a field of {self.name}") for name in _fields(self.to))
        yield from ((name, "key= names") for name in self.key)
        yield from (
            (name, f"{what}= names") for name, what in ((self.weight, "weight"), (self.sequence, "sequence")) if name
        )
        if self.clock is not None:
            yield from ((name, f"is a field of {self.clock.__name__}") for name in _fields(self.clock))

    def steps(self, table: pa.Table) -> list[Step]:
        """The rows of *table* in steps: one for each value of the sequence column, in its order, or else one for all.

        Raises:
            SourceError: a column is missing, has a type without a value, or holds a null or a weight that means
            nothing.
        """
        self.check(table.column_names)
        if table.num_rows == 0:
            return []
        if self.sequence is not None:
            if table.column(self.sequence).null_count:
                raise SourceError(
                    f"the column {self.sequence!r} orders the rows of {self.name}, but is null in some of them"
                )
            table = table.sort_by(self.sequence)
        changes = list(zip(_records(self.to, table), self._weights(table), strict=True))
        keys = list(zip(*[forms(table.column(name), name) for name in self.key], strict=True)) if self.key else None
        if self.sequence is None:
            return [Step(changes, keys)]
        clocks = None if self.clock is None else _records(self.clock, table)
        return [
            Step(changes[start:end], keys and keys[start:end], clocks and clocks[start])
            for start, end in _runs(table.column(self.sequence).to_pylist())
        ]

    def _weights(self, table: pa.Table) -> list[int]:
        """The weight of each row."""
        if self.weight is None:
            return [1] * int(table.num_rows)
        from pyarrow import types

        column = table.column(self.weight)
        words = column.to_pylist()
        if column.null_count:
            raise SourceError(f"the column {self.weight!r} holds the weights of {self.name}, but is null in some rows")
        if types.is_integer(column.type):
            return list(words)
        weights = [CHANGE_TYPES.get(word, 0) for word in words]
        if 0 in weights:
            raise SourceError(
                f"the column {self.weight!r} holds {words[weights.index(0)]!r}, which is no weight: "
                f"weights are integers or one of {', '.join(CHANGE_TYPES)}"
            )
        return weights


def _fields(cls: type) -> list[str]:
    return [a.name for a in attrs.fields(cls)]


def _records(cls: type, table: pa.Table) -> list[Frozen]:
    """The frozen form of each row as an instance of *cls*."""
    columns = [forms(table.column(name), name) for name in _fields(cls)]
    label = cls.__label__  # type: ignore[attr-defined]
    return list(zip(repeat(label, table.num_rows), *columns, strict=True))


def _runs(items: Sequence[Any]) -> Iterable[tuple[int, int]]:
    """Start and end of each run of equal items."""
    start = 0
    for end in range(1, len(items) + 1):
        if end == len(items) or items[end] != items[start]:
            yield start, end
            start = end


# ---------------------------------------------------------------------------------------------------- columns


def forms(column: pa.ChunkedArray | pa.Array, name: str) -> list[Frozen]:
    """The frozen form of each item of a column, by the table at the head of this module.

    Raises:
        SourceError: the column *name* is of a type that has no value, or holds a time beyond the years 1 to 9999.
    """
    if hasattr(column, "combine_chunks") and hasattr(column, "num_chunks"):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    try:
        return _array(column, name)
    except (ValueError, OverflowError) as error:  # Arrow's own errors are ValueErrors too
        raise SourceError(f"the column {name!r} of type {column.type} holds what has no value here: {error}") from None


def _array(array: pa.Array, name: str) -> list[Frozen]:
    from pyarrow import types as t

    kind = array.type
    if t.is_boolean(kind):
        return [_BOOLEANS[item] for item in array.to_pylist()]
    if t.is_null(kind):
        return [NULL] * len(array)
    if t.is_dictionary(kind):
        return _array(array.dictionary_decode(), name)
    convert = _convert_atom(kind)
    if convert is not None:
        return convert(array)
    if t.is_map(kind):
        return _maps(array, name)
    if t.is_list(kind) or t.is_large_list(kind):
        items = _array(array.values, name)
        return _spans(array, lambda start, end: (SEQ, *items[start:end]))
    if t.is_struct(kind) and not any((field.metadata or {}).get(b"variant") for field in kind):
        return _structs(array, name)
    raise SourceError(
        f"the column {name!r} is of type {kind}, which has no value: cast it in the frame, to string for instance"
    )


def _convert_atom(kind: pa.DataType) -> Callable[[pa.Array], list[Frozen]] | None:
    """How to convert a column of atoms; None if its items are compound, or of an unknown type."""
    import pyarrow as pa
    from pyarrow import types as t

    if t.is_integer(kind):
        return _plain if kind.bit_width < 64 else lambda array: _each(array, freeze)
    if (
        t.is_string(kind)
        or t.is_large_string(kind)
        or t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_fixed_size_binary(kind)
    ):
        return _plain
    if t.is_floating(kind):
        return lambda array: _each(array, lambda item: _NAN if math.isnan(item) else freeze(item + 0.0))
    if t.is_decimal(kind):
        return lambda array: _each(array, lambda item: format(item, "f"))
    if t.is_date(kind) or t.is_time(kind):
        return lambda array: _each(array, lambda item: item.isoformat())
    if t.is_timestamp(kind) and kind.tz is None:
        return lambda array: _each(array.cast(pa.timestamp("us")), lambda item: item.isoformat())
    if t.is_timestamp(kind):
        return lambda array: _each(array.cast(pa.timestamp("us", "UTC")), lambda item: item.isoformat()[:-6] + "Z")
    if t.is_duration(kind):
        return lambda array: _each(array.cast(pa.duration("us")).cast(pa.int64()), freeze)
    return None


def _plain(array: pa.Array) -> list[Frozen]:
    """Items that are their own frozen forms."""
    items: list[Frozen] = array.to_pylist()
    return [NULL if item is None else item for item in items] if array.null_count else items


def _each(array: pa.Array, convert: Callable[[Any], Frozen]) -> list[Frozen]:
    return [NULL if item is None else convert(item) for item in array.to_pylist()]


def _spans(array: pa.Array, make: Callable[[int, int], Frozen]) -> list[Frozen]:
    """What *make* makes of the span of each item of a list or map column."""
    ends = array.offsets.to_pylist()
    present = array.is_valid().to_pylist()
    return [make(ends[i], ends[i + 1]) if there else NULL for i, there in enumerate(present)]


def _maps(array: pa.MapArray, name: str) -> list[Frozen]:
    pairs = list(zip(_array(array.keys, name), _array(array.items, name), strict=True))

    def make(start: int, end: int) -> Frozen:
        entries = sorted(pairs[start:end], key=lambda pair: order(pair[0]))
        return (DICT, tuple([key for key, _ in entries]), tuple([item for _, item in entries]))

    return _spans(array, make)


def _structs(array: pa.StructArray, name: str) -> list[Frozen]:
    members = sorted(zip([field.name for field in array.type], array.flatten(), strict=True), key=itemgetter(0))
    keys = tuple([key for key, _ in members])
    columns = [_array(member, f"{name}.{key}") for key, member in members]
    items = zip(*columns, strict=True) if columns else repeat((), len(array))
    present = array.is_valid().to_pylist()
    return [(DICT, keys, item) if there else NULL for there, item in zip(present, items, strict=True)]
