"""Schemas: what the class of a program says of its collections, ``table(["key"], ["val"])``.

A declaration is a class attribute of a program; each instance of the program makes a
:class:`~syndicate.bloom.collection.Collection` of it.  Columns before the arrow (the first list) are the key and
determine those of the second list.

>>> channel(["@dst", "src"], ["payload"]).location, table([], ["x"]).keys, table().columns
(0, 0, ('key', 'val'))
>>> channel(["dst", "src"])  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.BloomDeclaration: ...a channel has one column marked @, its location, but this has none: ...

A value column may hold lattice values, which are merged where keys are equal.  To name the lattice of a column,
``table(["from", "to"], ["cost"], cost=lmin)``, is to have plain values made such, and others refused.

Source: Alvaro et al. 2011a, "State in Bloom"; ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.bloom.declaration import Declaration, Kind
from syndicate.bloom.site import here
from syndicate.errors import BloomDeclaration
from syndicate.lattice.lattice import Lattice
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value

if TYPE_CHECKING:
    from syndicate.bloom.collection import Collection


class Schema(Declaration):
    """The declaration of a collection of rows."""

    if TYPE_CHECKING:  # an instance has the collection in its place

        def __get__(self, instance: object, owner: type) -> Collection: ...


_NONE: Final[Mapping[str, object]] = {}
ColumnNames: TypeAlias = Sequence[str] | None


def _declared(kind: Kind, keys: Value, values: Value, lattices: Mapping[str, object] = _NONE, **more: Value) -> Schema:
    site = here()
    if isinstance(keys, str) or isinstance(values, str):
        raise BloomDeclaration(f"{site}: columns are lists of names: {kind.name.lower()}(['key'], ['val'])")
    first = ["key"] if keys is None and values is None else list(keys or ())
    second = ["val"] if keys is None and values is None else list(values or ())
    marked = [at for at, name in enumerate([*first, *second]) if isinstance(name, str) and name.startswith("@")]
    names = [name[1:] if isinstance(name, str) and name.startswith("@") else name for name in [*first, *second]]
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise BloomDeclaration(
                f"{site}: a column's name is an identifier without a leading underscore, not {name!r}"
            )
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise BloomDeclaration(f"{site}: the column {twice[0]!r} is there twice: rename one of the two")
    if kind is Kind.CHANNEL and len(marked) != 1:
        count = "none" if not marked else f"{len(marked)}"
        raise BloomDeclaration(
            f"{site}: a channel has one column marked @, its location, but this has {count}: "
            f"the columns are {listed(names)}. Mark the address: channel(['@{names[0] if names else 'to'}', ...])"
        )
    if kind is not Kind.CHANNEL and marked:
        raise BloomDeclaration(f"{site}: @{names[marked[0]]}: only a channel's column is a location: leave out the @")
    held = dict(_lattice_of(name, given, names, len(first), site) for name, given in lattices.items())
    at = marked[0] if marked else None
    return Schema(kind, tuple(names), len(first), at, site=site, lattices=held, **more)


def _lattice_of(name: str, given: object, names: Sequence[str], keys: int, site: str) -> tuple[str, type[Lattice]]:
    """A column with its lattice, which is given as a class, or as what declares it."""
    column = name[:-1] if name not in names and name.endswith("_") else name
    cls = getattr(given, "lattice", given)
    if column not in names:
        raise BloomDeclaration(f"{site}: there is no column {name!r}{meant(name, names)}; there are {listed(names)}")
    if not isinstance(cls, type) or not issubclass(cls, Lattice):
        raise BloomDeclaration(f"{site}: {name}= takes a lattice, such as lmin or a subclass of Lattice, not {given!r}")
    if names.index(column) < keys:
        raise BloomDeclaration(
            f"{site}: the column {name!r} belongs to the key, and a lattice value, which grows, cannot: put it into "
            "the second list"
        )
    return column, cls


def table(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """Rows that stay until they are deleted."""
    return _declared(Kind.TABLE, keys, values, lattices)


def durable(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A table in the file of ``Program(state=path)``: its rows are there again after the first tick of the next run."""
    return _declared(Kind.DURABLE, keys, values, lattices)


def scratch(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """Rows that are there for one tick."""
    return _declared(Kind.SCRATCH, keys, values, lattices)


def temp(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A scratch; without columns it has those of the first rule that writes it."""
    declared = _declared(Kind.TEMP, keys, values, lattices)
    return declared if keys is not None or values is not None else Schema(Kind.TEMP, site=declared.site)


def interface(direction: str, keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A scratch by which modules meet: ``"input"`` is written from outside, ``"output"`` read there."""
    kinds = {"input": Kind.INPUT, "output": Kind.OUTPUT}
    if direction not in kinds:
        raise BloomDeclaration(f"{here()}: an interface is 'input' or 'output', not {direction!r}")
    return _declared(kinds[direction], keys, values, lattices)


def channel(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """Rows that are sent to the address in the column marked ``@``, and are there for one tick when they arrive.

    Without columns it has ``address`` and ``val``, both of the key, so that messages do not contradict each other.
    """
    return _declared(Kind.CHANNEL, ["@address", "val"] if keys is None and values is None else keys, values, lattices)


def loopback(keys: ColumnNames = None, values: ColumnNames = None, **lattices: object) -> Schema:
    """A channel to the program itself: never in the same tick."""
    return _declared(Kind.LOOPBACK, keys, values, lattices)


def stdio(*, read: bool = False) -> Schema:
    """Lines of a terminal: written by ``<~``; with *read*, where the program runs, standard input's are ``(line,)``."""
    return _declared(Kind.STDIO, ["line"], [], reads=read)


def periodic(period: object = 1.0) -> Schema:
    """A row ``(key, val)``, a number and the time, about every *period* seconds."""
    if not isinstance(period, (int, float)) or isinstance(period, bool) or period <= 0:
        raise BloomDeclaration(f"{here()}: a period is a number of seconds above 0, not {period!r}")
    return _declared(Kind.PERIODIC, ["key"], ["val"], period=float(period))


def file_reader(path: str | Path) -> Schema:
    """The lines of a file, ``(lineno, text)`` from 0, read again when it has changed."""
    return _declared(Kind.FILE, ["lineno"], ["text"], path=Path(path))


def const(keys: ColumnNames = None, values: ColumnNames = None, *, rows: Iterable[Value] = ()) -> Schema:
    """Rows that are always there and that nobody may write."""
    return _declared(Kind.CONST, keys, values, rows=tuple(rows))


def coll_expr(function: Callable[[], Iterable[Value]], keys: ColumnNames = None, values: ColumnNames = None) -> Schema:
    """Rows that *function* gives, which is called at the start of each tick."""
    if not callable(function):
        raise BloomDeclaration(f"{here()}: coll_expr takes a function without arguments, not {function!r}")
    return _declared(Kind.CALLED, keys, values, call=function)
