"""Rows of a table as changes of a set of records: an Arrow table in, frozen records with weights out.

Which value an item becomes is decided by the type of its column: see :mod:`syndicate.spark.columns`.  Here it is
decided which columns there must be, which of them are the record, the key, the weight and the order, and which rows
take effect together.

>>> import pyarrow
>>> from syndicate import record
>>> from syndicate.values.value import thaw
>>> @record
... class Box:
...     name: str
...     size: int
>>> table = pyarrow.table({"size": [1, None], "name": ["a", "b"]})
>>> [thaw(form) for step in TableRows(Box).steps(table) for form, weight in step.changes]
[Box(name='a', size=1), Box(name='b', size=Symbol('null'))]

Contract: a column is the record's, the key's, the weight's, the sequence's, the clock's or ignored by name; one that is
none of these is a mistake, and raised before any row is read, unless it came later
(:mod:`syndicate.spark.source`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final

import attrs
from attrs import frozen

from syndicate.errors import SourceError
from syndicate.flow.element import Element
from syndicate.plan.algebra import meant
from syndicate.spark.bulk import BulkRows, bulk_of
from syndicate.spark.change_feed import WORDS
from syndicate.spark.columns import ANYTHING, fields_of, forms, hints_of, records
from syndicate.spark.feed_position import Place
from syndicate.values.record import is_record_class
from syndicate.values.value import Frozen

if TYPE_CHECKING:
    import pyarrow as pa


MANY: Final = 512
"""Rows from which on it pays to let them be columns for as long as possible: an Arrow array has its price as well."""


@frozen
class Step:
    """Rows that take effect together: frozen records with weights, in no order.  ``keys`` are theirs, if rows have
    keys.

    Rows that are all added, without an order, may be columns still: then ``changes`` are
    :class:`~syndicate.spark.bulk.BulkRows`, and ``keys`` are None; their bulk has them.

    ``clock`` is the frozen record that says which step it is, if the source was asked for one; ``place`` is the
    commit in a feed, or the value of the sequence column.
    """

    changes: Sequence[tuple[Frozen, int]]
    keys: Sequence[Frozen] | None = None
    clock: Frozen | None = None
    place: Place | None = None


@frozen
class TableRows:
    """How the rows of a table become records: see :func:`~syndicate.spark.source.spark_source` for the parameters.

    ``words`` are the weights that have names, and ``named`` is the parameter that named the columns of the weights and
    the sequence, in messages, if it is not the usual one.  ``commit`` is the column that names the commits of a feed.
    """

    to: type = attrs.field()
    key: Sequence[str] = ()
    weight: str | None = None
    sequence: str | None = None
    clock: type | None = attrs.field(default=None)
    ignore: Sequence[str] = ()
    words: Mapping[str, int] = WORDS
    named: str | None = None
    commit: str | None = None

    @to.validator
    @clock.validator
    def _is_record(self, attribute: attrs.Attribute[type | None], cls: type | None) -> None:
        if cls is not None and not is_record_class(cls):
            raise SourceError(f"{attribute.name}= takes a class decorated with @record, not {cls!r}")

    def __attrs_post_init__(self) -> None:
        for what, names in (("key", self.key), ("ignore", self.ignore)):
            if isinstance(names, str):
                raise SourceError(f"{what}= takes a list of column names: {what}=[{names!r}]")
        if self.clock is not None and self.sequence is None:
            raise SourceError(
                "clock= shows the step that sequence= counts: name the column by which the rows are ordered, too"
            )

    @property
    def name(self) -> str:
        """What the records are called, in messages."""
        return self.to.__name__

    # ------------------------------------------------------------------------------------------------ the columns

    def check(self, columns: Sequence[str]) -> None:
        """Raise :class:`SourceError` unless each column that is needed is there, once, and each that is there is
        needed.
        """
        counts = Counter(columns)
        for column, need in self._needs():
            if counts[column] != 1:
                there = f"{counts[column]} columns" if column in counts else "no column"
                hint = "" if column in counts else meant(column, columns)
                raise SourceError(
                    f"the rows have {there} {column!r}{hint}, which {need}; their columns are {', '.join(columns)}: "
                    "select or rename them in the frame"
                )
        unknown = self.unknown(columns)
        if unknown:
            are = "a column" if len(unknown) == 1 else "columns"
            raise SourceError(
                f"the rows have {are} that no field of {self.name} takes: {', '.join(unknown)}; leave out what is not "
                f"needed, with select in the frame or with ignore={unknown!r}"
            )

    def unknown(self, columns: Sequence[str]) -> list[str]:
        """The columns that nothing needs and nobody ignores: a mistake at first, and later one that was added."""
        return [column for column in self.spare(columns) if column not in self.ignore]

    def spare(self, columns: Sequence[str]) -> list[str]:
        """The columns that are of no use: they may be of any type."""
        needed = {column for column, _ in self._needs()}
        return [column for column in dict.fromkeys(columns) if column not in needed]

    def _needs(self) -> Iterable[tuple[str, str]]:
        yield from ((name, f"is a field of {self.name}") for name in fields_of(self.to))
        yield from ((name, "key= names") for name in self.key)
        yield from (
            (name, f"{self.named or what}= names")
            for name, what in ((self.weight, "weight"), (self.sequence, "sequence"), (self.commit, "commit"))
            if name
        )
        if self.clock is not None:
            yield from ((name, f"is a field of {self.clock.__name__}") for name in fields_of(self.clock))

    def shape(self, schema: pa.Schema) -> dict[str, str]:
        """The type of each column that becomes values: what must stay the same for as long as the rows are followed.

        Raises:
            SourceError: a column is missing, superfluous, or of a type without a value.
        """
        import pyarrow as pa

        self.check(schema.names)
        for cls in filter(None, (self.to, self.clock)):
            hints = hints_of(cls)
            for name in fields_of(cls):
                forms(pa.array([], schema.field(name).type), name, hints.get(name, ANYTHING))
        for name in self.key:
            forms(pa.array([], schema.field(name).type), name)
        if self.weight is not None:
            kind = schema.field(self.weight).type
            if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise SourceError(
                    f"the column {self.weight!r} holds the weights of {self.name}, but is of type {kind}: "
                    f"weights are integers or one of {', '.join(self.words)}"
                )
        if self.sequence is not None:
            kind = schema.field(self.sequence).type
            if not any(ordered(kind) for ordered in _ordered()):
                raise SourceError(
                    f"the column {self.sequence!r} orders the rows of {self.name}, but is of type {kind}: make a "
                    "number, a string, a date or a timestamp of it in the frame, with hex for instance"
                )
        taken = {*fields_of(self.to), *(fields_of(self.clock) if self.clock else ()), *self.key}
        return {name: str(schema.field(name).type) for name in schema.names if name in taken}

    # ------------------------------------------------------------------------------------------------ the rows

    def steps(self, table: pa.Table, counts: Sequence[int] | None = None) -> list[Step]:
        """The rows of *table* in steps: one for each value of the sequence column, in its order, or else one for all.

        *counts* says how often each row is meant; without it, once.

        Raises:
            SourceError: a column is missing, has a type without a value, or holds a null or a weight that means
            nothing.
        """
        self.check(table.column_names)
        if table.num_rows == 0:
            return []
        if self.sequence is not None:
            import pyarrow.compute as pc

            if pc.any(table.column(self.sequence).is_null(nan_is_null=True)).as_py():
                raise SourceError(
                    f"the column {self.sequence!r} orders the rows of {self.name}, but is null in some of them, or NaN"
                )
            table = table.sort_by(self.sequence)
        elif self.weight is None and counts is None and table.num_rows >= MANY:
            return [Step(BulkRows(bulk_of(self.to, table, self.key)))]
        weights: Iterable[int] = self._weights(table)
        if counts is not None:
            weights = [weight * count for weight, count in zip(weights, counts, strict=True)]
        changes = list(zip(records(self.to, table), weights, strict=True))
        keys = list(zip(*[forms(table.column(name), name) for name in self.key], strict=True)) if self.key else None
        if self.sequence is None:
            return [Step(changes, keys)]
        clocks = None if self.clock is None else records(self.clock, table)
        orders = table.column(self.sequence).to_pylist()
        commits = self._commits(table)
        return [
            Step(
                changes[start:end],
                keys and keys[start:end],
                clocks and clocks[start],
                Place(str(orders[start]), None if commits is None else commits[start]),
            )
            for start, end in _runs(orders)
        ]

    def _commits(self, table: pa.Table) -> list[str] | None:
        """The name of each row's commit, if a column has it."""
        if self.commit is None:
            return None
        column = table.column(self.commit)
        if column.null_count:
            raise SourceError(f"the column {self.commit!r} names the commits of {self.name}, but is null in some rows")
        return [str(commit) for commit in column.to_pylist()]

    def _weights(self, table: pa.Table) -> Iterable[int]:
        """The weight of each row, 1 unless a column says otherwise."""
        if self.weight is None:
            return repeat(1, table.num_rows)
        from pyarrow import types

        column = table.column(self.weight)
        words = column.to_pylist()
        if column.null_count:
            raise SourceError(f"the column {self.weight!r} holds the weights of {self.name}, but is null in some rows")
        if types.is_integer(column.type):
            return list(words)
        weights = [self.words.get(word, 0) for word in words]
        if 0 in weights:
            raise SourceError(
                f"the column {self.weight!r} holds {words[weights.index(0)]!r}, which is no weight: "
                f"weights are integers or one of {', '.join(self.words)}"
            )
        return weights


def _ordered() -> Sequence[Callable[[pa.DataType], bool]]:
    """The types that order rows, and whose items as text mean the same to Spark."""
    from pyarrow import types as t

    return (t.is_integer, t.is_floating, t.is_decimal, t.is_string, t.is_large_string, t.is_date, t.is_timestamp)


def _runs(items: Sequence[Element]) -> Iterable[tuple[int, int]]:
    """Start and end of each run of equal items."""
    start = 0
    for end in range(1, len(items) + 1):
        if end == len(items) or items[end] != items[start]:
            yield start, end
            start = end
