"""Heads: what may be on the left of a rule: a collection, or a lattice.

While a program is made, an operator records a rule; afterwards it gives rows, or a value, to the next tick.

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from typing import Any

from syndicate import plan
from syndicate.bloom.declaration import OPERATORS, Declaration, Kind
from syndicate.bloom.row import Names
from syndicate.bloom.rule import Recorded, check_operator
from syndicate.bloom.rules.mark import Marked
from syndicate.bloom.site import here
from syndicate.errors import IllegalRule


class Head:
    """A collection or a lattice of a program, under a name."""

    _name: str
    _kind: Kind
    _columns: Names
    _keys: int
    _declaration: Declaration
    _program: Any

    @property
    def tabname(self) -> str:
        """The name."""
        return self._name

    @property
    def cols(self) -> Names:
        """The names of the columns."""
        return self._columns

    def _making(self) -> bool:
        return self._program is None or bool(self._program._root._collecting)

    def __le__(self, other: Any) -> Any:
        if self._making():
            if isinstance(other, Marked):
                raise IllegalRule(f"{here()}: {self._name} <= takes no sign {other._mark}: leave it out")
            return self._rule("<=", other)
        self._take("<=", other, here())
        return None

    def __lt__(self, other: Any) -> Any:
        site = here()
        if not isinstance(other, Marked):
            legal = ", ".join(op for op in OPERATORS[self._kind] if op != "=")
            remedy = f"a {self._kind.value} takes {legal}" if legal else f"nobody may write a {self._kind.value}"
            raise IllegalRule(f"{site}: {self._name} < is no operator of rules: {remedy}")
        op = f"<{other._mark}"
        if self._making():
            return self._rule(op, other._expression)
        self._take(op, other._expression, site)
        return None

    def _rule(self, op: str, given: Any) -> Recorded:
        site = here()
        check_operator(op, self._name, self._kind, site)
        return Recorded(self._program._record(self, op, self._right(given, site), site))

    def _right(self, given: Any, site: str) -> plan.Expression:
        """The right side, as relational algebra: each of the two has its own."""
        raise NotImplementedError  # abstract

    def _take(self, op: str, given: Any, site: str) -> None:
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
    return head._name in head._program._root._merged
