"""A question to a dataspace as a table: a pattern whose captures are columns, with a name and a type each.

>>> question = Question.of("<Gauge $name <at $room _>>")
>>> question.names
('name', 'room')
>>> from syndicate.values.text import unparse_pattern
>>> unparse_pattern(question.narrowed({"name": "roof"}).pattern)
'<Gauge <$ "roof"> <at $ _>>'

The same pattern says how rows become values, if it leaves nothing open.

>>> template = Question.of('<Gauge $name ["C" $value]>').template()
>>> thaw(template(("roof", 21)))
Record(Symbol('Gauge'), ['roof', ('C', 21)])

Contract: a narrowed question is answered by those answers of the question that have the constants, and no others.

Source: ``docs/design/spark.md``, "The Data Source".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from syndicate.errors import PatternError, SinkError, SourceError, TextError
from syndicate.spark.to_arrow import Misfit, array_of
from syndicate.values.pattern import ANY, Capture, Discard, Group, Kind, Literal, Pattern, capture_names
from syndicate.values.text import parse_pattern, unparse_form
from syndicate.values.value import BIG, BOOL, DICT, DOUBLE, SEQ, Dictionary, Frozen, Symbol, Value, freeze, thaw

if TYPE_CHECKING:
    import pyarrow as pa

LABEL: Final = "label"
VALUE: Final = "value"
"""The columns of whole values: whose label they have, and their text."""


@frozen
class Question:
    """A pattern, the names of its columns, and its text in messages; with a *label*, the rows are the texts of whole
    values that have it.
    """

    pattern: Pattern
    names: tuple[str, ...]
    text: str
    label: str | None = None

    @classmethod
    def of(cls, text: str) -> Question:
        """The question that a pattern's text asks; captures without a name are ``_1``, ``_2`` ...

        Raises :class:`SourceError`.
        """
        try:
            pattern = parse_pattern(text)
        except (TextError, PatternError) as error:
            raise SourceError(
                f"the option pattern={text!r} is no pattern: {error}; it is Preserves text with $name for each column, "
                "as in <Sensor $name $value>"
            ) from None
        named = capture_names(pattern)
        if not named:
            raise SourceError(
                f"the option pattern={text!r} captures nothing, so that there are no columns: write $name where a "
                "column is meant"
            )
        names = tuple([name or f"_{place}" for place, name in enumerate(named, 1)])
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise SourceError(f"the option pattern={text!r} has two columns called {twice[0]}: rename one of them")
        return cls(pattern, names, text)

    @classmethod
    def of_label(cls, label: str) -> Question:
        """The question for all values with a label, whole."""
        return cls(Capture(Group("rec", Symbol(label), ())), (LABEL, VALUE), f"<{label} ...>", label)

    @classmethod
    def of_columns(cls, label: str, names: Sequence[str]) -> Question:
        """The question for records with these fields."""
        entries = tuple([(place, Capture(ANY, name)) for place, name in enumerate(names)])
        return cls(
            Group("rec", Symbol(label), entries), tuple(names), f"<{label} {' '.join(f'${name}' for name in names)}>"
        )

    def rows(self, captured: Sequence[tuple[Frozen, ...]]) -> list[tuple[Frozen, ...]]:
        """What was captured, as items of the columns."""
        if self.label is None:
            return list(captured)
        return [(self.label, unparse_form(form, _no_reference)) for (form,) in captured]

    def narrowed(self, constants: Mapping[str, Value]) -> Question:
        """The same for rows with these values; only for columns of :meth:`open`."""
        if self.label is not None:
            return self
        at = {self.names.index(name): value for name, value in constants.items()}
        return evolve(self, pattern=_narrowed(self.pattern, at, count()))

    def open(self) -> list[str]:
        """The columns that take any value, or any of a class, so that a constant can take their place."""
        captures = [] if self.label is not None else list(_captures(self.pattern))
        return [name for name, each in zip(self.names, captures, strict=False) if isinstance(each, (Discard, Kind))]

    def template(self) -> Callable[[Sequence[Frozen]], Frozen]:
        """What makes a value of a row; raises :class:`SinkError` if the pattern leaves something open."""
        return _template(self.pattern, count(), self.text)


def _no_reference(ref: object) -> str:
    return "#:there"


def _captures(pattern: Pattern) -> Iterator[Pattern]:
    if isinstance(pattern, Capture):
        yield pattern.pattern
        yield from _captures(pattern.pattern)
    elif isinstance(pattern, Group):
        for _, entry in pattern.entries:
            yield from _captures(entry)


def _narrowed(pattern: Pattern, at: Mapping[int, Value], places: Iterator[int]) -> Pattern:
    if isinstance(pattern, Capture):
        place = next(places)
        if place in at:
            return Capture(Literal(at[place]), pattern.name)
        return Capture(_narrowed(pattern.pattern, at, places), pattern.name)
    if isinstance(pattern, Group):
        entries = tuple([(key, _narrowed(entry, at, places)) for key, entry in pattern.entries])
        return Group(pattern.kind, pattern.label, entries)
    return pattern


def _template(pattern: Pattern, places: Iterator[int], text: str) -> Callable[[Sequence[Frozen]], Frozen]:
    if isinstance(pattern, Capture):
        if any(True for _ in _captures(pattern.pattern)):
            raise SinkError(f"the pattern {text} has a capture within a capture: to write, each column is one value")
        place = next(places)
        return lambda row: row[place]
    if isinstance(pattern, Literal):
        form = freeze(pattern.value)
        return lambda row: form
    if isinstance(pattern, Group):
        entries = [(key, _template(entry, places, text)) for key, entry in pattern.entries]
        parts = [part for _, part in entries]
        if pattern.kind == "dict":
            return lambda row: freeze(Dictionary([(key, thaw(part(row))) for key, part in entries]))
        if [key for key, _ in entries] == list(range(len(entries))):
            head: Frozen = SEQ if pattern.kind == "arr" else freeze(pattern.label)
            return lambda row: (head, *[part(row) for part in parts])
    raise SinkError(
        f"the pattern {text} leaves open what is written: each part of it is a $name, a column, or a constant"
    )


# ---------------------------------------------------------------------------------------------------- rows as columns


def table_of(schema: pa.Schema, rows: Sequence[Sequence[Frozen]], mode: str, of: str) -> pa.Table:
    """Rows as a table; raises :class:`SourceError` in the mode FAILFAST if an item does not fit its column.

    PERMISSIVE makes a null of it, and DROPMALFORMED leaves its row out.
    """
    import pyarrow as pa

    items = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays, bad = [], set[int]()
    for member, column in zip(schema, items, strict=True):
        try:
            arrays.append(array_of(column, member.type, member.name))
        except Misfit as misfit:
            if mode == "FAILFAST":
                raise SourceError(
                    f"{of}: {misfit}; give the columns other types, let the pattern take only what fits "
                    '(<$name SignedInteger>), or choose .option("mode", "PERMISSIVE") or "DROPMALFORMED"'
                ) from None
            parts = [_item(each, member) for each in column]
            bad.update(place for place, (_, fits) in enumerate(parts) if not fits)
            arrays.append(pa.concat_arrays([part for part, _ in parts]))
    table = pa.table(arrays, schema=schema)
    if bad and mode == "DROPMALFORMED":
        table = table.filter(pa.array([place not in bad for place in range(table.num_rows)]))
    return table


def _item(form: Frozen, member: pa.Field) -> tuple[pa.Array, bool]:
    import pyarrow as pa

    try:
        return array_of([form], member.type, member.name), True
    except Misfit:
        return pa.nulls(1, member.type), False


def inferred(names: Sequence[str], rows: Sequence[Sequence[Frozen]], of: str) -> pa.Schema:
    """The columns that rows fit; raises :class:`SourceError` if there are no rows, or one has no such column."""
    import pyarrow as pa

    if not rows:
        raise SourceError(
            f"nothing in the dataspace matches {of} now, so that the types of its columns cannot be told: say them, as "
            f'in .option("columns", "{", ".join(f"{name} string" for name in names)}")'
        )
    fields = []
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        kinds = {_kind(form) for form in column} - {"null"}
        if kinds == {"int64", "float64"}:
            kinds = {"float64"}
        if len(kinds) != 1 or None in kinds:
            there = ", ".join(sorted(kind or "compounds" for kind in kinds)) or "nothing but null"
            raise SourceError(
                f"the column {name!r} of {of} holds {there}, of which no one type can be told: say it with "
                '.option("columns", ...), or capture parts of it'
            )
        fields.append(pa.field(name, getattr(pa, str(kinds.pop()))()))
    return pa.schema(fields)


_ATOMS: Final[Mapping[type, str]] = {int: "int64", str: "string", bytes: "binary", float: "float64", bool: "bool_"}


def _kind(form: Frozen) -> str | None:
    if type(form) is tuple and form[0] in (SEQ, DICT):
        return None
    if type(form) is tuple and form[0] in (DOUBLE, BIG, BOOL):
        return _ATOMS[type(thaw(form))]
    if form == Symbol("null"):
        return "null"
    return _ATOMS.get(type(form))


__all__ = ["LABEL", "VALUE", "Question", "inferred", "table_of"]
