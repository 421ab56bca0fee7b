"""Functions in rules: the user's lambdas, called with rows, or read once and compiled.

A lambda such as ``lambda ack, buf: (buf.dst, buf.ident, 0)`` moves columns and makes nothing new.  Its byte code shows
it (:func:`picks`), so that it becomes a projection of the algebra, which costs nothing or little, and a wrong column is
found when the program is made.  All others are called for each row.  An exception is reported with the place of the
function and the row.

>>> from syndicate.bloom.rules.symbols import Side
>>> edge = Side(None, "edge", ("a", "b"), ("a", "b"))
>>> picks(lambda e: (e.b, 7), [edge], "rules.py:1")
[('b', 'b'), ('c1', 7)]
>>> picks(lambda e: (e.a + 1,), [edge], "rules.py:1"), result_columns(lambda e: (e.a + 1,), [edge])
(None, ('c0',))

Contract: functions are pure.  What is read off the byte code is what calling would give, since nothing but loads of
columns and constants and the making of one tuple is accepted.

Source: ``docs/design/bloom.md``, "Methods of rows"; ``docs/design/plan.md``, "Functions of rows".

Closures: a function in a rule sees the names of its block as they are when it is called, and not as they were.

A loop that makes rules is where that matters: in ``for n in (1, 2): t <= s.map(lambda row: (n, row.x))`` both functions
see 2.  Python says nothing about it, so this does.

>>> def block():
...     for n in (1, 2):
...         watch(lambda row: (n, row.x), "rules.py:7")
>>> with watching():
...     block()
Traceback (most recent call last):
syndicate.errors.IllegalRule: rules.py:7: a function in this rule uses n, which is another thing later in the block, and that is what it would see. Give it the value: lambda row, n=n: ...

Source: ``docs/design/bloom.md``, "Tools".

Lattice values embedded in rows: the columns that hold some, and plain values made some.

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/lattice.md``, "Lattices and rows".
"""  # noqa: E501

from __future__ import annotations

import dis
import inspect
import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from operator import itemgetter
from types import CellType, FunctionType
from typing import Final, NoReturn, TypeAlias

from syndicate.bloom.declaration import Names, fitted, fitted_all, is_row, plain, row_type
from syndicate.bloom.rules.abstract_value import Mentioned, bound, instructions_of
from syndicate.bloom.rules.monotonicity import RowFunction
from syndicate.bloom.rules.symbols import Head, Side, is_merging, key_count
from syndicate.errors import (
    IllegalRule,
    LatticeAsKey,
    LatticeValue,
    NotAValue,
    RowMisfit,
    RuleFailed,
    SyndicateError,
    short,
)
from syndicate.flow.element import ATOMS_AND_FLOATS
from syndicate.lattice import Bool
from syndicate.lattice.lattice import Lattice, holds_lattice
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value, freeze

# ------------------------------------------------------------------------------------------------------------- closures


_watched: ContextVar[list[tuple[FunctionType, str, list[object]]] | None] = ContextVar("watched", default=None)


@contextmanager
def watching() -> Iterator[None]:
    """While a block runs; raises :class:`IllegalRule` at its end for a function that would see what it did not mean."""
    functions: list[tuple[FunctionType, str, list[object]]] = []
    before = _watched.set(functions)
    try:
        yield
    finally:
        _watched.reset(before)
    for function, site, seen in functions:
        for name, was, now in zip(function.__code__.co_freevars, seen, _contents(function), strict=True):
            if was is not _EMPTY and was is not now and not _equal(was, now):
                raise IllegalRule(
                    f"{site}: a function in this rule uses {name}, which is another thing later in the block, and that "
                    f"is what it would see. Give it the value: lambda row, {name}={name}: ..."
                )


def watch(function: object, site: str) -> None:
    """Remember what a function of the rule at *site* uses of what is around it."""
    functions = _watched.get()
    if functions is not None and isinstance(function, FunctionType) and function.__closure__:
        functions.append((function, site, _contents(function)))


def _equal(was: object, now: object) -> bool:
    """Whether two things are one value, such as a list that a loop makes again each time."""
    try:
        return bool(freeze(was) == freeze(now))
    except NotAValue:
        return False


_EMPTY = object()


def _contents(function: FunctionType) -> list[object]:
    return [_content(cell) for cell in function.__closure__ or ()]


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return _EMPTY


# -------------------------------------------------------------------------------------- lattice values embedded in rows


class LatticeFound(Exception):
    """Raised within a tick: rows of a collection hold lattice values, which nobody knew.  The tick starts again."""

    def __init__(self, name: str, columns: Iterable[str]) -> None:
        """Of a collection, with the columns that hold such."""
        super().__init__(name)
        self.name, self.columns = name, frozenset(columns)


def lattice_columns(row: Sequence[Value], columns: Names, keys: int, where: str) -> list[str]:
    """The columns that hold lattice values; raises :class:`LatticeAsKey` if one belongs to the key."""
    names = [name for name, value in zip(columns, row, strict=True) if holds_lattice(value)]
    for name in names:
        if columns.index(name) < keys:
            raise LatticeAsKey(
                f"{where}: the column {name} belongs to the key and cannot hold {row[columns.index(name)]!r}, which "
                f"may grow: {_remedy(columns, keys)}"
            )
    return names


def _remedy(columns: Names, keys: int) -> str:
    if keys == len(columns):
        return "all columns are the key; name those of lattice values in the second list of the declaration"
    return "put it into a column of the second list, or reveal() it if it is complete"


def coerced_row(
    row: tuple[Value, ...], columns: Names, lattices: Mapping[str, type[Lattice]], where: str
) -> tuple[Value, ...]:
    """The row with plain values made lattice values where the declaration names the lattice."""
    items = list(row)
    for name, cls in lattices.items():
        at = columns.index(name)
        value = items[at]
        if type(value) is not cls:
            try:
                if isinstance(value, Lattice):
                    value.same_lattice(cls.bottom())
                items[at] = cls.bottom() if value is None else cls.of(value)
            except SyndicateError as error:
                several = (
                    isinstance(value, (set, frozenset, list))
                    and f" For several elements write {cls.__name__}({value!r})."
                )
                raise type(error)(f"{where}: column {name}: {error}{several or ''}") from error
            except Exception as error:  # of a user's lattice
                raise LatticeValue(
                    f"{where}: column {name}: {cls.__name__} raised {type(error).__name__} of {short(value)}: {error}"
                ) from error
    return tuple(items)


# --------------------------------------------------------------------------------------------------- functions in rules


Function: TypeAlias = Callable[..., Value]

_PLAIN: Final = frozenset({
    "RESUME", "COPY_FREE_VARS", "LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_ATTR", "LOAD_CONST",
    "LOAD_SMALL_INT", "BUILD_TUPLE", "BUILD_LIST", "LIST_APPEND", "LIST_EXTEND", "LIST_TO_TUPLE", "CALL_INTRINSIC_1",
    "BINARY_SUBSCR", "BINARY_OP", "RETURN_VALUE", "CACHE", "NOP",
})  # fmt: skip
"""What a function consists of that only moves columns; of the operators, the ``+`` of tuples."""


_KNOWN: Final = frozenset({*ATOMS_AND_FLOATS, bool})
"""Types of columns that are no lattice values."""


class _Read(Exception):
    """Cannot be read off."""


class _Pick:
    __slots__ = ("attribute", "column")

    def __init__(self, column: str, attribute: str) -> None:
        self.column = column
        self.attribute = attribute

    def __getattr__(self, name: str) -> NoReturn:
        raise _Read

    def __getitem__(self, at: object) -> NoReturn:
        raise _Read

    def __add__(self, other: object) -> NoReturn:
        raise _Read

    __radd__ = __add__


class _Symbol:
    """Stands for a row while a function is read."""

    def __init__(self, side: Side, site: str) -> None:
        self._side = side
        self._site = site

    def __getattr__(self, name: str) -> _Pick:
        side = self._side
        column = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        if column not in side.columns:
            if hasattr(tuple, name):
                raise _Read
            raise IllegalRule(
                f"{self._site}: {side.name} has no column {name!r}{meant(name, side.columns)}; "
                f"the columns are {listed(side.columns)}"
            )
        return _Pick(column, side.attribute(column))

    def __getitem__(self, at: object) -> _Pick:
        if type(at) is not int or not -len(self._side.columns) <= at < len(self._side.columns):
            raise _Read
        return _Pick(self._side.columns[at], self._side.attributes[at])

    def __iter__(self) -> Iterator[_Pick]:
        return map(_Pick, self._side.columns, self._side.attributes)

    def __add__(self, other: object) -> tuple[Value, ...]:
        return (*self, *_tuple(other))

    def __radd__(self, other: object) -> tuple[Value, ...]:
        return (*_tuple(other), *self)


def _tuple(row: object) -> Iterable[Value]:
    """What may be added to a row, which is a tuple."""
    if type(row) is not tuple and not isinstance(row, _Symbol):
        raise _Read
    return row


def parameters(function: Function, sides: Sequence[Side], site: str) -> bool:
    """Whether *function* takes each side's row by itself, not their tuple; raises :class:`IllegalRule`."""
    signature = _signature(function, site)
    if signature is None:
        return len(sides) == 1
    if _fits(signature, len(sides)):
        return True
    if len(sides) > 1 and _fits(signature, 1) and not _reads_columns(function):
        return False
    names = [side.name for side in sides]
    raise _unfit(
        signature, f"a row of {names[0]}" if len(sides) == 1 else f"{len(sides)} rows, of {' and '.join(names)}", site
    )


def takes(function: Function, number: int, rows: str, site: str) -> None:
    """Raise :class:`IllegalRule` for what cannot be called with so many arguments, which *told* says in words.

    >>> takes(lambda memo: memo, 2, "a memo and a row", "rules.py:3")
    Traceback (most recent call last):
    syndicate.errors.IllegalRule: rules.py:3: the function takes (memo), but here it is called with a memo and a row
    """
    signature = _signature(function, site)
    if signature is not None and not _fits(signature, number):
        raise _unfit(signature, rows, site)


def _unfit(signature: inspect.Signature, arguments: str, site: str) -> IllegalRule:
    return IllegalRule(f"{site}: the function takes {signature}, but here it is called with {arguments}")


def _signature(function: Function, site: str) -> inspect.Signature | None:
    if not callable(function):
        raise IllegalRule(f"{site}: {function!r} is no function of a row")
    watch(function, site)
    if inspect.iscoroutinefunction(function):
        raise IllegalRule(f"{site}: {function.__name__} is async, and a rule does not wait: give a plain function")
    try:
        return inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    except (TypeError, ValueError):
        return None


def _fits(signature: inspect.Signature, number: int) -> bool:
    try:
        signature.bind(*[None] * number)
    except TypeError:
        return False
    return True


def _reads_columns(function: object) -> bool:
    """Whether a function takes something of its first parameter that a tuple does not have.

    >>> _reads_columns(lambda r: r.key), _reads_columns(lambda r: r[0].key), _reads_columns(lambda r: r.index(3))
    (True, False, False)
    """
    if not isinstance(function, FunctionType) or not function.__code__.co_varnames:  # of a method, the first is self
        return False
    code = function.__code__
    first, steps = code.co_varnames[0], [(one.opname, one.argval) for one in instructions_of(code)]
    read = [
        taken
        for (before, what), (after, taken) in pairwise(steps)
        if before.startswith("LOAD_FAST") and what == first and after in ("LOAD_ATTR", "LOAD_METHOD")
    ]
    return ("STORE_FAST", first) not in steps and not set(read) <= set(dir(()))


def picks(
    function: Function, sides: Sequence[Side], site: str, *, closed: bool = False
) -> list[tuple[str, Value]] | None:
    """Columns with their attributes, as ``_Pick``-free pairs, if the function only moves them; else None.

    A pair's second part is an :class:`Attribute`, or a constant.  *closed*: what the function closes over does not
    change, so that it is a constant, too.
    """
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_argcount != len(sides) or code.co_kwonlyargcount or function.__defaults__:
        return None
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR):
        return None
    steps = instructions_of(code)
    if not all(one.opname in _PLAIN or (closed and one.opname == "LOAD_DEREF") for one in steps):
        return None
    if any(one.opname == "BINARY_OP" and one.argrepr != "+" for one in steps):
        return None
    try:
        result = function(*[_Symbol(side, site) for side in sides])
    except IllegalRule:
        raise
    except (_Read, TypeError):  # a row plus what is no tuple, which is reported when there is one
        return None
    if isinstance(result, _Symbol):
        return [(c, Attribute(a)) for c, a in zip(result._side.columns, result._side.attributes, strict=True)]
    if type(result) not in (tuple, list):
        return None
    picked: list[tuple[str, Value]] = []
    for place, one in enumerate(result):
        if type(one) is _Pick:
            picked.append((one.column, Attribute(one.attribute)))
        elif type(one) in (int, str, bytes, bool, float, type(None)):
            picked.append((f"c{place}", one))
        else:
            return None
    return picked


class Attribute(str):
    """The name of an attribute, where a constant text might stand too."""

    __slots__ = ()


def result_columns(function: Function, sides: Sequence[Side]) -> Names | None:
    """The columns of a function's rows, if all its results are tuples written out, or the rows that it is given."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    rows: dict[str, Names] = {}
    if inspect.isfunction(function) and code.co_argcount == len(sides):
        rows = {name: side.columns for name, side in zip(code.co_varnames, sides, strict=False)}
    headings: set[Names] = set()
    before = None
    steps = [one for one in instructions_of(code) if one.opname not in ("CACHE", "NOP")]
    ends = {one.offset for one in steps if one.opname == "RETURN_VALUE"}
    rows = {name: columns for name, columns in rows.items() if not any(_changes(one, name) for one in steps)}
    for one in steps:
        if one.opname == "RETURN_VALUE" or (one.opname == "JUMP_FORWARD" and one.argval in ends):
            if before is None:
                return None
            if before.opname == "BUILD_TUPLE":
                headings.add(numbered(before.argval))
            elif before.opname.startswith("LOAD_FAST") and before.argval in rows:
                headings.add(rows[before.argval])
            elif before.opname == "LOAD_CONST" and type(before.argval) is tuple:
                headings.add(numbered(len(before.argval)))
            elif before.opname != "LOAD_CONST" or before.argval is not None:
                return None
        elif (one.opname == "RETURN_CONST" and one.argval is not None) or ("JUMP" in one.opname and one.argval in ends):
            return None
        before = one
    if len({len(columns) for columns in headings}) != 1:
        return None
    columns = headings.pop()
    return columns if not headings else numbered(len(columns))


def _changes(one: dis.Instruction, name: str) -> bool:
    return one.opname in ("STORE_FAST", "DELETE_FAST") and one.argval == name


def numbered(width: int) -> Names:
    """The names of columns that nobody has named.

    >>> numbered(2)
    ('c0', 'c1')
    """
    return tuple(f"c{place}" for place in range(width))


def called(
    function: Function, sides: Sequence[Side], heading: Names, site: str, cells: Sequence[Mentioned] = ()
) -> Callable[[Value], Value]:
    """A function of a tuple over *heading* that calls the user's with rows, and with the values of *cells*."""
    spread = parameters(function, sides, site)
    return noted(_called(function, spread, sides, heading, site, cells), RowFunction(function, tuple(sides), spread))


def noted(call: Callable[[Value], Value], origin: RowFunction | None) -> Callable[[Value], Value]:
    """*call*, of which :func:`origin_of` says where it comes from."""
    call.origin = origin  # type: ignore[attr-defined]  # a function takes any attribute
    return call


def origin_of(call: object) -> RowFunction | None:
    """The function of the user's that is called; None if there is none."""
    origin = getattr(getattr(call, "call", call), "origin", None)
    return origin if isinstance(origin, RowFunction) else None


def _called(
    function: Function, spread: bool, sides: Sequence[Side], heading: Names, site: str, cells: Sequence[Mentioned]
) -> Callable[[Value], Value]:
    makers = [_maker(side, heading) for side in sides]
    if cells:
        several = len(makers) > 1 and spread

        def mentioning(row: Value) -> Value:
            rows = tuple([make(row) for make in makers])
            try:
                return function(*rows) if several or len(rows) == 1 else function(rows)
            except Exception as error:
                raise failure(site, error, rows[0] if len(rows) == 1 else rows) from error

        return bound(mentioning, cells, [heading.index(f"value of {cell.tabname}") for cell in cells])
    if len(makers) == 1:
        (only,) = makers

        def call(row: Value) -> Value:
            try:
                return function(only(row))
            except Exception as error:
                raise failure(site, error, only(row)) from error

        return call

    if len(makers) == 2 and spread:
        left, right = makers

        def call_two(row: Value) -> Value:
            a, b = left(row), right(row)
            try:
                return function(a, b)
            except Exception as error:
                raise failure(site, error, (a, b)) from error

        return call_two

    def call_many(row: Value) -> Value:
        rows = tuple([make(row) for make in makers])
        try:
            return function(*rows) if spread else function(rows)
        except Exception as error:
            raise failure(site, error, rows) from error

    return call_many


def failure(site: str, error: BaseException, rows: Value) -> Exception:
    """The error to be reported for one that a function raised."""
    if isinstance(error, (RuleFailed, RowMisfit, IllegalRule, LatticeFound)):
        return error
    return RuleFailed(
        f"{site}: a function in this rule raised {type(error).__name__}: {error}, for {rows!r}", sites=[site]
    )


def _maker(side: Side, heading: Names) -> Callable[[Value], Value]:
    kind = row_type(side.columns)
    new = tuple.__new__
    places = [heading.index(attribute) for attribute in side.attributes]
    if places == list(range(len(heading))):
        return lambda row: new(kind, row)
    if len(places) == 1:
        (at,) = places
        return lambda row: new(kind, (row[at],))
    if not places:
        return lambda row: new(kind, ())
    take = itemgetter(*places)
    return lambda row: new(kind, take(row))


def composed(first: Function, second: Function, many: bool, more: bool, site: str) -> Function:
    """*second*, of a row, after *first*, whose rows have as many columns as they happen to have; gives many rows.

    *many* and *more* say whether the functions give many themselves.
    """
    takes(second, 1, "a row", site)

    def call(row: Value) -> list[Value]:
        outcome = first(row)
        rows: list[Value] = []
        for one in outcome if many else (outcome,):
            if one is not None:
                flat = plain(one) if is_row(one) else (one,)
                middle = tuple.__new__(row_type(tuple(f"c{place}" for place in range(len(flat)))), flat)
                try:
                    result = second(middle)
                    rows.extend(result if more else (result,))
                except Exception as error:
                    raise failure(site, error, middle) from error
        return rows

    return call


class Fitting:
    """From a user's function to one that gives fitted rows: one or none, or with *many* any number."""

    __slots__ = ("call", "columns", "flat", "head", "many", "site", "width")

    def __init__(
        self, call: Callable[[Value], Value], columns: Names, site: str, *, many: bool, head: Head | None = None
    ) -> None:
        self.call = call
        self.head = head
        self.width = len(columns)
        self.flat = _KNOWN
        self.columns = columns
        self.site = site
        self.many = many

    def __call__(self, row: Value) -> Sequence[Value]:
        """The rows for a row."""
        if self.many:
            rows = fitted_all(self.call(row), self.columns, self.site)
            for one in rows:
                if not _KNOWN.issuperset(map(type, one)):
                    self._looked(one)
            return rows
        result = self.call(row)
        if type(result) is tuple and len(result) == self.width and self.flat.issuperset(map(type, result)):
            return (result,)  # as nearly all are
        values = fitted(result, self.columns, self.site)
        if values is None:
            return ()
        if not _KNOWN.issuperset(map(type, values)):
            self._looked(values)
            if self.head is not None and is_merging(self.head):
                self.flat |= {type(one) for one in values if isinstance(one, Lattice)}
        return (values,)

    def _looked(self, row: tuple[Value, ...]) -> None:
        """Raise :class:`LatticeFound` where rows of a collection hold lattice values and nobody knew."""
        head = self.head
        stray = next((one for one in row if isinstance(one, Mentioned)), None)
        if stray is not None:
            raise IllegalRule(f"{self.site}: {stray.astray()}")
        if head is not None and not is_merging(head) and holds_lattice(row):
            raise LatticeFound(
                head.tabname, lattice_columns(row, self.columns, key_count(head), f"{self.site}: {head.tabname}")
            )


class Bare:
    """From a user's function to bare values, each as a row of one column: what a lattice is to merge."""

    __slots__ = ("call", "many")

    def __init__(self, call: Callable[[Value], Value], *, many: bool) -> None:
        self.call, self.many = call, many

    def __call__(self, row: Value) -> Sequence[Value]:
        """The values for a row."""
        result = self.call(row)
        values = list(result) if self.many and result is not None else [result]
        return [(plain(one) if is_row(one) else one,) for one in values if one is not None]


class Testing:
    """A predicate of the user's as one of scalars, in the order of a heading."""

    __slots__ = ("__name__", "call")

    def __init__(self, call: Callable[[Value], Value], site: str) -> None:
        self.call = call
        self.__name__ = f"predicate at {site}"

    def __call__(self, *values: Value) -> bool:
        """Whether it holds for a row; an lbool holds if it is true: a threshold."""
        truth = self.call(values)
        return truth.content if type(truth) is Bool else bool(truth)
