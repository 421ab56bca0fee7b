"""Cells: the variables of a program that are lattices.

In a block of rules a cell is a term: ``self.count <= self.votes.size()``.  Outside, it is its value after the last
tick: ``p.votes.reveal()``, and any method of the lattice, ``p.count.gt_eq(3)``; ``p.votes <= ["ann"]`` and
``p.votes.insert(...)`` give something to be merged in the next tick.

What may be on the right of ``<=``, and of ``<+``, which merges in the next tick: a term of the same lattice; rows,
each of which is made a value by the lattice's constructor (``Lattice.of``), None left out; a plain value.  A row of one
column is that column, any other is one element: the paper's form (Bud unites the columns of a row into an ``lset``).

Source: Conway et al. 2012, "Statements" and "Converting collections into lattices"; ``docs/design/bloom.md``, "Lattices
in programs".
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import NoReturn

from syndicate import plan
from syndicate.bloom.declaration import Declaration, Kind
from syndicate.bloom.row import Row, row_type
from syndicate.bloom.rule import check_operator
from syndicate.bloom.rules.capture import Mentioned
from syndicate.bloom.rules.head import Head, Owner
from syndicate.bloom.rules.mark import Marked
from syndicate.bloom.rules.term import (
    VALUE,
    RightSide,
    Term,
    TermExpression,
    bare_of,
    called,
    lattice_of,
    leaves_of,
    place_of,
    plan_of,
)
from syndicate.bloom.site import here
from syndicate.errors import IllegalRule, SyndicateError
from syndicate.lattice import from_collection
from syndicate.lattice.lattice import Kind as MethodKind
from syndicate.lattice.lattice import Lattice, join
from syndicate.values.value import Value


class Cell(Head, Term, Mentioned):
    """A lattice of a program under a name."""

    _location = None

    def __init__(self, name: str, declaration: Declaration, owner: Owner) -> None:
        """Of a declaration; programs make them."""
        self._name, self._declaration, self._owner = name, declaration, owner
        self._kind: Kind = declaration.kind
        self._columns, self._keys = VALUE, 0
        self._site = declaration.site
        self._lattice: type[Lattice] = declaration.lattices["value"]

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[Cell, MethodKind, str]]:
        yield self, kind, ""

    # --------------------------------------------------------------------------------------------------- rules

    def _take(self, op: str, content: object, site: str) -> None:
        check_operator(op, self._name, self._kind, site)
        self.insert(content)

    def define(self, body: object) -> NoReturn:
        """Refused: a lattice grows, and nobody has all of it."""
        raise IllegalRule(f"{here()}: define() is for a scratch, and {self._name} is a lattice: use <= or <+")

    def _right(self, right: object, site: str) -> plan.Expression:
        if isinstance(right, Term):
            if right._lattice is not None and right._lattice is not self._lattice:
                raise IllegalRule(
                    f"{site}: {self._name} is of the lattice {self._lattice.wrapper_name}, and {right} of "
                    f"{right._lattice.wrapper_name}: both sides must be of one lattice"
                )
            return TermExpression(plan_of(right), right, VALUE)
        if isinstance(right, Marked):
            raise IllegalRule(f"{site}: {right!r} cannot stand on the right of a lattice")
        if isinstance(right, RightSide):
            return bare_of(right, site)
        return plan.Literal(VALUE, [(self._valued(right, site),)])

    def _valued(self, content: Value, site: str) -> Lattice:
        """A plain value, or several, as one of the lattice; raises what the constructor raises, with the place."""
        cls = self._lattice
        try:
            if isinstance(content, Lattice):
                return join(cls.bottom(), content)
            if hasattr(content, "__iter__") and not isinstance(content, (str, bytes, tuple, Mapping)):
                return from_collection(cls, content)
            return cls.bottom() if content is None else from_collection(cls, [content])
        except SyndicateError as error:
            again = copy.copy(error)
            again.args = (f"{site}: {self._name}: {error}", *error.args[1:])
            raise again from error

    # --------------------------------------------------------------------------------------------------- from outside

    def insert(self, content: Value) -> None:
        """Merge a value, or several, in the next tick; raises :class:`LatticeValue`, :class:`LatticeMismatch`."""
        site = here()
        if self._making():
            raise IllegalRule(f"{site}: a block makes rules: write {self._name} <= ..., or use @bootstrap")
        if isinstance(content, Cell):
            content = content.value
        if isinstance(content, (Term, RightSide)):
            raise IllegalRule(f"{site}: outside of a block of rules only values can be given to {self._name}")
        self._owner.merge(self._name, self._valued(content, site))

    def _refused(self, what: str) -> NoReturn:
        raise IllegalRule(f"{here()}: {what}() is for tables, and {self._name} is a lattice, which only grows")

    def delete(self, _: object) -> NoReturn:
        """Refused: a lattice only grows."""
        self._refused("delete")

    def upsert(self, _: object) -> NoReturn:
        """Refused: a lattice only grows."""
        self._refused("upsert")

    # --------------------------------------------------------------------------------------------------- looking

    @property
    def value(self) -> Value:
        """The element of the lattice after the last tick, or, in a function of a rule, as the rule was given it."""
        if self._making():
            raise IllegalRule(f"{here()}: {self._name} has no value while a program is made: call methods on it itself")
        if self._held is not None:
            return self._held
        if self._owner.in_rule():
            raise IllegalRule(f"{here()}: {self.astray()}")
        return self._owner.value(self._name)

    def astray(self) -> str:
        """What is said where a function has the variable from where nobody saw."""
        return (
            f"a function in a rule cannot find {self._name} this way: it would not be called again when that grows. "
            f"Mention it in the function itself, or join with it: (collection * self.{self._name})"
        )

    def reveal(self) -> Value:
        """The plain value; in a rule, a point of order."""
        return called(self, "reveal", (), {}) if self._making() else self.value.reveal()

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_") or self._making():
            return super().__getattr__(name)
        return getattr(self.value, name)

    def __add__(self, other: Value) -> Value:
        return super().__add__(other) if self._making() else self.value + _value_of(other)

    __radd__ = __add__

    def __sub__(self, other: Value) -> Value:
        return super().__sub__(other) if self._making() else self.value - _value_of(other)

    def __iter__(self) -> Iterator[Row]:
        """One row, of the value: as a collection of one column."""
        return iter([tuple.__new__(row_type(VALUE), (self.value,))])

    def __len__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        if self._held is not None and other is not self:
            raise IllegalRule(
                f"{here()}: a function compares {self._name} by ==, and it may still grow: ask a threshold, such as "
                f"gt_eq() or contains(), or {self._name}.reveal()"
            )
        return self is other

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<{self._lattice.wrapper_name} {self._name}>"


class CompletedTerm(Term):
    """A term that is read when it has grown to its fixed point: *why* says what would be wrong before."""

    def __init__(self, term: Term, why: str) -> None:
        """Of a term."""
        self._term, self._why = term, why
        self._lattice = lattice_of(term)
        self._site = place_of(term)

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[Mentioned, MethodKind, str]]:
        for cell, _, why in leaves_of(self._term):
            yield cell, MethodKind.NON_MONOTONE, why or self._why

    def __str__(self) -> str:
        return str(self._term)

    __repr__ = __str__


def _value_of(content: Value) -> Value:
    return content.value if isinstance(content, Cell) else content


def completed_term(term: CompletedTerm) -> Term:
    """The term that is read when it has grown."""
    return term._term
