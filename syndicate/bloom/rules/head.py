"""Heads: what may be on the left of a rule: a collection, or a lattice.

While a program is made, an operator records a rule; afterwards it gives rows, or a value, to the next tick.

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from syndicate import plan
from syndicate.bloom.declaration import OPERATORS, Declaration, Kind
from syndicate.bloom.row import Names
from syndicate.bloom.rule import Recorded, Rule, check_operator
from syndicate.bloom.rules.mark import Marked, unsigned
from syndicate.bloom.site import here
from syndicate.errors import IllegalRule
from syndicate.flow.element import Key
from syndicate.lattice.lattice import Lattice
from syndicate.values.value import Value


class Owner(Protocol):
    """The program that collections and lattices are of, as they know it; its modules have the same one."""

    collecting: bool
    """Whether blocks are run, so that an operator records a rule."""
    merged: Mapping[str, frozenset[str]]
    """The collections that are known to hold lattice values, with the columns that do."""

    def record(self, head: Head, op: str, body: plan.Expression, site: str) -> Rule:
        """Have one more rule."""

    def in_rule(self) -> bool:
        """Whether a function of a rule is running in this thread."""

    def give(self, name: str, pending: str, rows: Mapping[Key, None]) -> None:
        """Let rows be *inserted*, *deleted*, *upserted* or *posted* with the next tick."""

    def merge(self, name: str, value: Lattice) -> None:
        """Let a lattice grow by a value in the next tick."""

    def notice(self, name: str, columns: Iterable[str]) -> None:
        """Know that rows which were given hold lattice values."""

    def rows(self, name: str) -> Mapping[Key, None]:
        """The rows of a collection after the last tick."""

    def row(self, name: str, key: tuple[Value, ...]) -> Key | None:
        """The one that has a key."""

    def value(self, name: str) -> Lattice:
        """The value of a lattice after the last tick."""


class Head:
    """A collection or a lattice of a program, under a name."""

    _name: str
    _kind: Kind
    _columns: Names
    _keys: int
    _declaration: Declaration
    _owner: Owner

    @property
    def tabname(self) -> str:
        """The name."""
        return self._name

    @property
    def cols(self) -> Names:
        """The names of the columns."""
        return self._columns

    def _making(self) -> bool:
        return self._owner.collecting

    def __le__(self, other: object) -> Recorded | None:
        if self._making():
            if isinstance(other, Marked):
                raise IllegalRule(f"{here()}: {self._name} <= takes no sign {unsigned(other)[0]}: leave it out")
            return self._rule("<=", other)
        self._take("<=", other, here())
        return None

    def __lt__(self, other: object) -> Recorded | None:
        site = here()
        if not isinstance(other, Marked):
            legal = ", ".join(op for op in OPERATORS[self._kind] if op != "=")
            remedy = f"a {self._kind.value} takes {legal}" if legal else f"nobody may write a {self._kind.value}"
            raise IllegalRule(f"{site}: {self._name} < is no operator of rules: {remedy}")
        mark, expression = unsigned(other)
        op = f"<{mark}"
        if self._making():
            return self._rule(op, expression)
        self._take(op, expression, site)
        return None

    def _rule(self, op: str, right: object) -> Recorded:
        site = here()
        check_operator(op, self._name, self._kind, site)
        return Recorded(self._owner.record(self, op, self._right(right, site), site))

    def _right(self, right: object, site: str) -> plan.Expression:
        """The right side, as relational algebra: each of the two has its own."""
        raise NotImplementedError  # abstract

    def _take(self, op: str, content: object, site: str) -> None:
        """Let the next tick see what an operator gave outside of a block."""
        raise NotImplementedError  # abstract


# What is asked of a head that has columns: a method would hide the column of its name.


def kind_of(head: Head) -> Kind:
    """What it is: a table, a scratch, ..."""
    return head._kind


def key_count(head: Head) -> int:
    """How many of its columns, the first ones, are the key."""
    return head._keys


def declaration_of(head: Head) -> Declaration:
    """How it was declared."""
    return head._declaration


def is_merging(head: Head) -> bool:
    """Whether it is known to hold lattice values, so that rows of one key are merged."""
    return head._name in head._owner.merged


def redirect(reads: Head, writes: Head) -> None:
    """Let a rule that is written to one head be a rule for another."""
    reads.__dict__["_rule"] = writes._rule
