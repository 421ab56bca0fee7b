"""Declarations: the kinds of collections, and what is declared of one.

:mod:`syndicate.bloom.collection` has the functions that make them, which stand in the class of a program.

Source: Alvaro et al. 2011a, "State in Bloom"; ``docs/design/bloom.md``, "Collections and operators".

Rows: what a function in a rule sees of a tuple, and what is made of what it gives.

A row is a tuple whose columns are attributes too; a column whose name is a Python keyword has an underscore after it.
In the circuit, and in a user's hands after a tick, rows are plain tuples, so that a tick does not make objects that
nobody looks at.

>>> link = row_type(("from", "to"))
>>> row = link(("a", "b")); row.to, row.from_, row[0], row == ("a", "b")
('b', 'a', 'a', True)
>>> fitted([1], ("a", "b"), "rules.py:3"), fitted(None, ("a",), "")
((1, None), None)

Contract: a shorter row is filled with None, None is no row, a longer one is refused.

Source: ``docs/design/bloom.md``, "Rows and keys".

Sites: where in a user's file a rule, a function of a rule or a declaration is, for messages.

A user's file is any that is neither of this package nor of Python's library; the programs of ``bloom/library`` are
users as all others.

>>> site_of(lambda: None).count(":")
1

Rules: a collection, an operator and an expression, and where it was written.

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Collections and operators".

Namespaces: a program as its rules know it, an object whose attributes are collections, lattices and modules.

The class of programs is derived from :class:`Namespace`, so that a function which is read finds out that it has a
program before it (:mod:`~syndicate.bloom.rules.abstract_value`), and a block finds what runs it.
"""

from __future__ import annotations

import copy
import keyword
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeGuard

from attrs import field, frozen

from syndicate import plan
from syndicate.errors import BloomDeclaration, IllegalRule, RowMisfit, SyndicateError
from syndicate.lattice.lattice import Lattice
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value

# ----------------------------------------------------------------------------------------------------------------- rows


Names: TypeAlias = tuple[str, ...]


class Row(tuple[Value, ...]):
    """A tuple with columns.

    >>> from syndicate.bloom import Bloom, Row, table
    >>> class Stock(Bloom):
    ...     items = table(["name"], ["count"])
    >>> stock = Stock()
    >>> stock.items.insert([("pen", 3)]); stock.tick()
    >>> for row in stock.items:
    ...     print(row.name, row.count, row == ("pen", 3), isinstance(row, Row))
    pen 3 True True
    """

    __slots__ = ()
    columns_: Names = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Value: ...

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in zip(self.columns_, self, strict=False))
        return f"({inner})"


@cache
def row_type(columns: Names) -> type[Row]:
    """The class of the rows over some columns."""
    body: dict[str, object] = {"__slots__": (), "columns_": columns}
    for place, name in enumerate(columns):
        body[f"{name}_" if keyword.iskeyword(name) else name] = property(itemgetter(place))
    return type("Row", (Row,), body)


_SEQUENCES: Final = frozenset({tuple, list})


def is_row(row: object) -> TypeGuard[Sequence[Value]]:
    """Whether it can be one."""
    return type(row) in _SEQUENCES or isinstance(row, Row)


def plain(row: Iterable[Value]) -> tuple[Value, ...]:
    """The same as nothing but exact tuples, inside as well."""
    return tuple([plain(item) if isinstance(item, (Row, list)) or type(item) is tuple else item for item in row])


def fitted(value: object, columns: Names, site: str) -> tuple[Value, ...] | None:
    """The row that is meant, None for none; raises :class:`RowMisfit`."""
    if value is None:
        return None
    if not is_row(value):
        raise RowMisfit(
            f"{site}: {value!r} is no row: a tuple is needed, of {', '.join(columns)}"
            f"{f', as in ({value!r},)' if isinstance(value, (str, int)) else ''}"
        )
    row = plain(value)
    if len(row) > len(columns):
        raise RowMisfit(f"{site}: {row!r} has {len(row)} columns, but there are {len(columns)}: {', '.join(columns)}")
    return row if len(row) == len(columns) else row + (None,) * (len(columns) - len(row))


def fitted_all(source: object, columns: Names, site: str) -> list[tuple[Value, ...]]:
    """Rows of anything that holds some: of a mapping, its pairs; raises :class:`RowMisfit`."""
    if isinstance(source, (str, bytes)) or not hasattr(source, "__iter__"):
        raise RowMisfit(f"{site}: {source!r} holds no rows: give an iterable of tuples, of {', '.join(columns)}")
    rows = source.items() if hasattr(source, "items") else source
    if type(source) is tuple and source and not any(is_row(one) or one is None for one in source):
        raise RowMisfit(f"{site}: {source!r} is one row: give a list of rows, [{source!r}]")
    return [row for one in rows if (row := fitted(one, columns, site)) is not None]


# ---------------------------------------------------------------------------------------------------------------- sites


_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_LIBRARY: Final = str(Path(__file__).parent / "library") + os.sep


_MADE: Final = "<attrs generated"
"""The names of the files with the constructors of our classes begin so."""


_PYTHON: Final = str(Path(os.__file__).parent) + os.sep
_INSTALLED: Final = tuple(f"{_PYTHON}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


@cache
def is_users(file: str) -> bool:
    """Whether a file is a user's."""
    if file.startswith((_OURS, _MADE)):
        return file.startswith(_LIBRARY)
    return not file.startswith(_PYTHON) or file.startswith(_INSTALLED)


_WRITTEN: Final[ContextVar[str]] = ContextVar("where what is done was written, if not in Python", default="")


@contextmanager
def written_at(site: str) -> Iterator[None]:
    """What is done in here was written at *site*, a line of a file that is not in Python.

    >>> with written_at("rows.jsonl:3"):
    ...     here()
    'rows.jsonl:3'
    """
    token = _WRITTEN.set(site)
    try:
        yield
    finally:
        _WRITTEN.reset(token)


def here() -> str:
    """The file and line of the innermost caller that is a user's."""
    if site := _WRITTEN.get():
        return site
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(error: BaseException, otherwise: str = "") -> str:
    """The file and line of a user's at which an error was raised: the innermost; *otherwise* if there is none."""
    place, trace = _WRITTEN.get(), None if _WRITTEN.get() else error.__traceback__
    while trace is not None:
        if is_users(name := trace.tb_frame.f_code.co_filename):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place or otherwise or here()


@contextmanager
def placing(site: str = "") -> Iterator[None]:
    """A user's mistake that is raised in here is raised with its place: *site*, or the user's line that led to it.

    >>> with placing("rules.py:3"):
    ...     raise SyndicateError("two columns have one name")
    Traceback (most recent call last):
    syndicate.errors.SyndicateError: rules.py:3: two columns have one name
    """
    try:
        yield
    except SyndicateError as error:
        place(error, site)
        raise


def place(error: SyndicateError, site: str = "") -> None:
    """Let an error name its place, if it does not yet: *site*, or the user's line that led to it."""
    where, text = site or raised_at(error), str(error)
    if f"{where.rpartition(':')[0]}:" not in text:
        error.args = (f"{where}: {text}", *error.args[1:])


def placed(error: SyndicateError, where: str) -> SyndicateError:
    """The same error, with the place in a rule.

    >>> placed(SyndicateError("it cannot be."), "rules.py:3")
    SyndicateError('rules.py:3: it cannot be. The tick did not happen')
    """
    again = copy.copy(error)
    again.args = (f"{where}: {str(error).rstrip('.')}. The tick did not happen", *error.args[1:])
    return again


def site_of(function: Callable[..., Value]) -> str:
    """The file and line at which a function begins."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else here()


# --------------------------------------------------------------------------------------------------------- declarations


class Kind(Enum):
    """What a collection is: how long its rows live, and who writes them.

    >>> from syndicate.bloom import Kind, table
    >>> table(["name"]).kind is Kind.TABLE
    True
    """

    TABLE = "table"
    DURABLE = "durable table"
    SCRATCH = "scratch"
    TEMP = "temp"
    INPUT = "input interface"
    OUTPUT = "output interface"
    CHANNEL = "channel"
    LOOPBACK = "loopback"
    STDIO = "stdio"
    PERIODIC = "periodic"
    FILE = "file_reader"
    CONST = "const"
    CALLED = "coll_expr"
    LATTICE = "lattice"


TABLES: Final = frozenset({Kind.TABLE, Kind.DURABLE})
SCRATCHES: Final = frozenset({Kind.SCRATCH, Kind.TEMP, Kind.INPUT, Kind.OUTPUT})
SENT: Final = frozenset({Kind.CHANNEL, Kind.LOOPBACK, Kind.STDIO})

TAKING: Final = {"<-": "deletion", "<+-": "replacement"}
"""Operators that take rows away, and what that is called."""

OPERATORS: Final[dict[Kind, tuple[str, ...]]] = {
    **dict.fromkeys(TABLES, ("<=", "<+", "<-", "<+-")),
    **dict.fromkeys(SCRATCHES, ("<=", "<+", "=")),
    **dict.fromkeys(SENT, ("<~",)),
    Kind.PERIODIC: (),
    Kind.FILE: (),
    Kind.CALLED: (),
    Kind.CONST: (),
    Kind.LATTICE: ("<=", "<+"),
}


@frozen(eq=False)
class Declaration:
    """A collection to be: the first *keys* columns are the key, *location* is the index of the one marked ``@``.

    Made by :func:`table` and the other declarations.
    """

    kind: Kind
    columns: Names = ()
    keys: int = 0
    location: int | None = None
    period: float = 0.0
    path: Path | None = None
    rows: tuple[Value, ...] = ()
    call: Callable[[], Iterable[Value]] | None = None
    reads: bool = False
    lattices: Mapping[str, type[Lattice]] = field(factory=dict)
    site: str = field(factory=here)

    @property
    def key_cols(self) -> Names:
        """The names of the columns that are the key."""
        return self.schema[0]

    @property
    def val_cols(self) -> Names:
        """The names of the other columns."""
        return self.schema[1]

    @property
    def schema(self) -> tuple[Names, Names]:
        """The columns as they are declared, so that another may have them: ``copy = scratch(*link.schema)``."""
        if not self.columns:
            raise BloomDeclaration(f"{here()}: a temp without columns has no schema before a rule writes it")
        return self.columns[: self.keys], self.columns[self.keys :]

    if not TYPE_CHECKING:  # each kind says what a program has in its place

        def __get__(self, instance: object, owner: type) -> Declaration:
            """The declaration, of a class; a program has the collection in its place, what is no program has none."""
            if instance is None:
                return self
            raise unmade(owner, self.site)

    def shape(self) -> tuple[Value, ...]:
        """What must be the same if two modules declare one collection."""
        return (self.kind, self.columns, self.keys, self.location, tuple(sorted(self.lattices.items(), key=str)))


@frozen(eq=False)
class SealDeclaration:
    """A seal to be: of two collections of one class, with pairs of their columns."""

    of: Declaration
    by: Declaration
    columns: tuple[tuple[str, str], ...]
    site: str


@frozen
class Seal:
    """Of the table *of* all rows are there that have the values of some columns, once *by* has a row with these.

    *columns* are pairs, one of each; none at all: once *by* has any row.
    """

    of: str
    by: str
    columns: tuple[tuple[str, str], ...]
    site: str

    def __str__(self) -> str:
        what = " and ".join(one for one, _ in self.columns)
        return f"{self.site}: {self.of} is complete{f' for a {what}' if what else ''} once {self.by} says so"


def seal(of: object, by: object, columns: Iterable[str | tuple[str, str]] | None = None) -> SealDeclaration:
    """Promise that a table is complete: once *by* has a row, no row of *of* comes or goes that has the same *columns*.

    So what must see all of it need not wait for anything else, and :meth:`Bloom.calm` knows: it is a punctuation, or
    seal.  Who breaks the promise makes the tick fail (:class:`RowMisfit`).  *columns* are names, or pairs of one name
    of each; if not given, the names that both have; none, ``[]``: any row of *by* says that all is there.

    >>> from syndicate.bloom import Bloom, agg, bloom, channel, table
    >>> class Till(Bloom):
    ...     sold = channel(["@to", "day", "number"], ["price"]); closed = channel(["@to", "day"])
    ...     sales = table(["day", "number"], ["price"]); total = table(["day"], ["sum"])
    ...     days = seal(sales, closed)
    ...     @bloom
    ...     def rules(self):
    ...         self.sales <= self.sold.payloads()
    ...         self.total <= (self.sales * self.closed).lefts(("day", "day")).group(["day"], agg.sum("price"))
    >>> till = Till(); till.calm()["total"].verdict
    'confluent'
    >>> till.deliver("sold", [("localhost", 1, 1, 30), ("localhost", 1, 2, 12)]); till.tick()
    >>> till.deliver("closed", [("localhost", 1)]); till.tick(); sorted(till.total)
    [(day=1, sum=42)]
    >>> till.deliver("sold", [("localhost", 1, 3, 5)]); till.tick()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    syndicate.errors.RowMisfit: ...: sales is sealed for day = 1, by closed, and (1, 3, 5) comes after that...

    Raises :class:`BloomDeclaration` for what is no table of plain rows, and for columns that are not there.
    """
    site = here()
    of, by = _plain_rows(of, site), _plain_rows(by, site)
    if of.kind not in TABLES:
        raise BloomDeclaration(f"{site}: what is sealed is a table, which keeps its rows, and not a {of.kind.value}")
    if columns is None:
        address = () if by.location is None else by.columns[by.location : by.location + 1]
        columns = [name for name in of.columns if name in by.columns and name not in address]
        if not columns:
            raise BloomDeclaration(f"{site}: the two have no column of one name: say which belong together, or []")
    pairs = tuple((one, one) if isinstance(one, str) else (one[0], one[1]) for one in columns)
    for declared, names in ((of, [one for one, _ in pairs]), (by, [one for _, one in pairs])):
        for name in names:
            if name not in declared.columns:
                raise BloomDeclaration(
                    f"{site}: there is no column {name!r}{meant(name, declared.columns)}; the columns are "
                    f"{listed(declared.columns)}"
                )
    return SealDeclaration(of, by, pairs, site)


def _plain_rows(one: object, site: str) -> Declaration:
    if not isinstance(one, Declaration) or one.kind is Kind.LATTICE or one.lattices:
        raise BloomDeclaration(f"{site}: a seal is about two collections of plain rows in this class, not {one!r}")
    return one


# ---------------------------------------------------------------------------------------------------------------- rules


MEANING = {
    "=": "define(): all of it, in this tick",
    "<=": "<=: in this tick",
    "<+": "<+: in the next tick",
    "<-": "<-: deleted in the next tick",
    "<+-": "<+-: replaces the row of its key in the next tick",
    "<~": "<~: sent, at some later time",
}


@frozen(eq=False)
class Rule:
    """``head <op> body``; *block* is the method that has it, *number* its place in the program, from 1.

    Made by :func:`bloom`.
    """

    head: str
    op: str
    body: plan.Expression
    site: str
    block: str
    number: int

    @property
    def target(self) -> str:
        """The relation of the plan that it derives: the collection itself, or one of what is to come of it."""
        return self.head if self.op in ("<=", "=") else f"{self.head} {self.op}"

    def reads(self) -> list[plan.Occurrence]:
        """The collections that are read, and what is not monotone about it."""
        return plan.occurrences(self.body)

    def __str__(self) -> str:
        read = ", ".join(dict.fromkeys(one.name for one in self.reads())) or "values"
        return f"{self.site}: {self.head} {self.op} {read}"


def check_operator(op: str, name: str, kind: Kind, site: str) -> None:
    """Raise :class:`IllegalRule` where a collection of this kind takes no such rule."""
    legal = OPERATORS[kind]
    if op in legal:
        return
    if legal:
        remedy = f"a {kind.value} takes {'; '.join(MEANING[one] for one in legal)}"
        if kind is Kind.LATTICE:
            remedy += ". It only grows, and is sent as a column of a channel's row"
    else:
        remedy = f"no rule may write a {kind.value}: write to a table or a scratch, and join it with {name}"
    raise IllegalRule(f"{site}: {name} is a {kind.value}, which cannot stand on the left of {op}: {remedy}")


@frozen(eq=False)
class Recorded:
    """What an operator gives while a program is made, of the rule that it recorded: nothing to go on with."""

    rule: Rule

    def __bool__(self) -> bool:
        raise IllegalRule(
            f"{self.rule.site}: a rule has no truth: write each rule as a statement of its own, not t <= a <= b, "
            "nor with and, or, not"
        )


# ----------------------------------------------------------------------------------------------------------- namespaces


class BlockRunner(Protocol):
    """What runs the blocks of a program."""

    def run(self, cls: type, block: Callable[[], object]) -> None:
        """Run a block of a class, which may run one of an ancestor."""


class Namespace:
    """A program, or a module of one."""

    _blocks: BlockRunner


def unmade(cls: type, site: str) -> BloomDeclaration:
    """The error for who reads a collection, or runs a block, of what no program was made of; *site* declares it."""
    if issubclass(cls, Namespace):
        return BloomDeclaration(f"{cls.__name__} is not made: its __init__ must call super().__init__(**options)")
    return BloomDeclaration(f"{site}: {cls.__name__} is no program: derive it from Bloom, class {cls.__name__}(Bloom)")


def run_block(program: Namespace, cls: type, block: Callable[[], object]) -> None:
    """Run a block of a program, which a class of its ancestors has."""
    program._blocks.run(cls, block)
