"""Declarations: the kinds of collections, and what is declared of one.

:mod:`syndicate.bloom.schema` has the functions that make them, which stand in the class of a program.

Source: Alvaro et al. 2011a, "State in Bloom"; ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from attrs import field, frozen

from syndicate.bloom.row import Names
from syndicate.bloom.site import here
from syndicate.errors import BloomDeclaration
from syndicate.lattice.lattice import Lattice
from syndicate.values.value import Value


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
    CALLED = "coll_expr"
    LATTICE = "lattice"


TABLES: Final = frozenset({Kind.TABLE, Kind.DURABLE})
SCRATCHES: Final = frozenset({Kind.SCRATCH, Kind.TEMP, Kind.INPUT, Kind.OUTPUT})
SENT: Final = frozenset({Kind.CHANNEL, Kind.LOOPBACK, Kind.STDIO})

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
    """A collection to be: the first *keys* columns are the key, *location* is the index of the one marked ``@``."""

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

    def shape(self) -> tuple[Value, ...]:
        """What must be the same if two modules declare one collection."""
        return (self.kind, self.columns, self.keys, self.location, tuple(sorted(self.lattices.items(), key=str)))
