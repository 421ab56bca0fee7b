"""Declarations: the kinds of collections, their schemas, and which rules may write to them.

A declaration is a class attribute of a program; each instance of the program makes a
:class:`~syndicate.bloom.collection.Collection` of it.  Columns before the arrow (the first list) are the key and
determine those of the second list.

>>> channel(["@dst", "src"], ["payload"]).location, table([], ["x"]).keys, table().columns
(0, 0, ('key', 'val'))
>>> channel(["dst", "src"])  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.BloomDeclaration: ...a channel has one column marked @, its location, but this has none: ...

Source: seed 001, "State in Bloom"; reference/bloom.md, 1.1 to 1.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from syndicate.bloom.row import Names
from syndicate.bloom.site import here
from syndicate.errors import BloomDeclaration
from syndicate.plan.heading import listed

if TYPE_CHECKING:
    from syndicate.bloom.collection import Collection


class Kind(Enum):
    """What a collection is: how long its rows live, and who writes them."""

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


TABLES: Final = frozenset({Kind.TABLE, Kind.DURABLE})
SCRATCHES: Final = frozenset({Kind.SCRATCH, Kind.TEMP, Kind.INPUT, Kind.OUTPUT})
SENT: Final = frozenset({Kind.CHANNEL, Kind.LOOPBACK, Kind.STDIO})

OPERATORS: Final[dict[Kind, tuple[str, ...]]] = {
    **dict.fromkeys(TABLES, ("<=", "<+", "<-", "<+-")),
    **dict.fromkeys(SCRATCHES, ("<=", "<+", "=")),
    **dict.fromkeys(SENT, ("<~",)),
    Kind.PERIODIC: (),
    Kind.FILE: (),
    Kind.CONST: (),
}


@frozen(eq=False)
class Declaration:
    """A collection to be: the first *keys* columns are the key, *location* is the index of the one marked ``@``."""

    kind: Kind
    columns: Names = ()
    keys: int = 0
    location: int | None = None
    period: float = 0.0
    path: Path | None = None
    rows: tuple[Any, ...] = ()
    site: str = field(factory=here)

    if TYPE_CHECKING:  # an instance has the collection in its place

        def __get__(self, instance: object, owner: type) -> Collection: ...

    def schema(self) -> tuple[Any, ...]:
        """What must be the same if two modules declare one collection."""
        return (self.kind, self.columns, self.keys, self.location)


def _declared(kind: Kind, keys: Any, values: Any, **more: Any) -> Declaration:
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
            f"the columns are {listed(names)}"
        )
    if kind is not Kind.CHANNEL and marked:
        raise BloomDeclaration(f"{site}: @{names[marked[0]]}: only a channel's column is a location")
    return Declaration(kind, tuple(names), len(first), marked[0] if marked else None, site=site, **more)


def table(keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """Rows that stay until they are deleted."""
    return _declared(Kind.TABLE, keys, values)


def durable(keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """A table in the file of ``Program(state=path)``: its rows are there again after the first tick of the next run."""
    return _declared(Kind.DURABLE, keys, values)


def scratch(keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """Rows that are there for one tick."""
    return _declared(Kind.SCRATCH, keys, values)


def temp(keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """A scratch; without columns it has those of the first rule that writes it."""
    declared = _declared(Kind.TEMP, keys, values)
    return declared if keys is not None or values is not None else Declaration(Kind.TEMP, site=declared.site)


def interface(direction: str, keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """A scratch by which modules meet: ``"input"`` is written from outside, ``"output"`` read there."""
    kinds = {"input": Kind.INPUT, "output": Kind.OUTPUT}
    if direction not in kinds:
        raise BloomDeclaration(f"{here()}: an interface is 'input' or 'output', not {direction!r}")
    return _declared(kinds[direction], keys, values)


def channel(keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """Rows that are sent to the address in the column marked ``@``, and are there for one tick when they arrive."""
    return _declared(
        Kind.CHANNEL,
        ["@address"] if keys is None and values is None else keys,
        ["val"] if keys is None and values is None else values,
    )


def loopback(keys: Sequence[str] | None = None, values: Sequence[str] | None = None) -> Declaration:
    """A channel to the program itself: never in the same tick."""
    return _declared(Kind.LOOPBACK, keys, values)


def stdio() -> Declaration:
    """Lines of a terminal: read as ``(line,)``, written by ``<~``."""
    return _declared(Kind.STDIO, ["line"], [])


def periodic(period: Any = 1.0) -> Declaration:
    """A row ``(key, val)``, a number and the time, about every *period* seconds."""
    if not isinstance(period, (int, float)) or isinstance(period, bool) or period <= 0:
        raise BloomDeclaration(f"{here()}: a period is a number of seconds above 0, not {period!r}")
    return _declared(Kind.PERIODIC, ["key"], ["val"], period=float(period))


def file_reader(path: str | Path) -> Declaration:
    """The lines of a file, ``(lineno, text)`` from 0, read again when it has changed."""
    return _declared(Kind.FILE, ["lineno"], ["text"], path=Path(path))


def const(
    keys: Sequence[str] | None = None, values: Sequence[str] | None = None, *, rows: Iterable[Any] = ()
) -> Declaration:
    """Rows that are always there and that nobody may write."""
    return _declared(Kind.CONST, keys, values, rows=tuple(rows))
