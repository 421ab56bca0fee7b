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
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from syndicate import plan
from syndicate.bloom.declaration import Declaration, Kind
from syndicate.bloom.row import Row, row_type
from syndicate.bloom.rule import check_operator
from syndicate.bloom.rules.capture import Mentioned
from syndicate.bloom.rules.head import Head
from syndicate.bloom.rules.mark import Marked
from syndicate.bloom.rules.term import VALUE, Lifted, RightSide, Term, called
from syndicate.bloom.site import here
from syndicate.errors import IllegalRule, ProgramStopped, SyndicateError
from syndicate.lattice import from_collection
from syndicate.lattice.lattice import Lattice, join
from syndicate.lattice.method import Kind as MethodKind
from syndicate.values.value import Value


class Cell(Head, Term, Mentioned):
    """A lattice of a program under a name."""

    _location = None

    def __init__(self, name: str, declaration: Declaration, program: Any) -> None:
        """Of a declaration; programs make them."""
        self._name, self._declaration, self._program = name, declaration, program
        self._kind: Kind = declaration.kind
        self._columns, self._keys = VALUE, 0
        self._site = declaration.site
        self._lattice: type[Lattice] = declaration.lattices["value"]
        self._held: Any = None

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[Cell, MethodKind, str]]:
        yield self, kind, ""

    # --------------------------------------------------------------------------------------------------- rules

    def _take(self, op: str, given: Any, site: str) -> None:
        check_operator(op, self._name, self._kind, site)
        self.insert(given)

    def define(self, body: Any) -> NoReturn:
        """Refused: a lattice grows, and nobody has all of it."""
        raise IllegalRule(f"{here()}: define() is for a scratch, and {self._name} is a lattice: use <= or <+")

    def _right(self, right: Any, site: str) -> plan.Expression:
        if isinstance(right, Term):
            if right._lattice is not None and right._lattice is not self._lattice:
                raise IllegalRule(
                    f"{site}: {self._name} is of the lattice {self._lattice.wrapper_name}, and {right} of "
                    f"{right._lattice.wrapper_name}: both sides must be of one lattice"
                )
            return Lifted(right._plan(), right, VALUE)
        if isinstance(right, Marked) or getattr(type(right), "_kind", None) is not None:
            raise IllegalRule(f"{site}: {right!r} cannot stand on the right of a lattice")
        if isinstance(right, RightSide):
            return right._bare(site)
        return plan.Literal(VALUE, [(self._valued(right, site),)])

    def _valued(self, content: Any, site: str) -> Lattice:
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

    def insert(self, content: Any) -> None:
        """Merge a value, or several, in the next tick; raises :class:`LatticeValue`, :class:`LatticeMismatch`."""
        site = here()
        if self._making():
            raise IllegalRule(f"{site}: a block makes rules: write {self._name} <= ..., or use @bootstrap")
        if isinstance(content, Cell):
            content = content.value
        if isinstance(content, Term) or hasattr(content, "_factor"):
            raise IllegalRule(f"{site}: outside of a block of rules only values can be given to {self._name}")
        value, state = self._valued(content, site), self._program._state_of(self)
        self._program._root._from_outside(lambda: state.insert(value))

    def _refused(self, what: str) -> NoReturn:
        raise IllegalRule(f"{here()}: {what}() is for tables, and {self._name} is a lattice, which only grows")

    def delete(self, _: Any) -> NoReturn:
        """Refused: a lattice only grows."""
        self._refused("delete")

    def upsert(self, _: Any) -> NoReturn:
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
        if self._program._root._in_rule():
            raise IllegalRule(f"{here()}: {self.astray()}")
        return self._seen()

    def _seen(self) -> Any:
        """The value; where another thread runs the program, a copy of its own: a table is not for two threads."""
        state, agent = self._program._state_of(self), self._program._root._agent
        if agent is None or agent.ended or threading.get_ident() == agent.thread:
            return state.value
        try:
            return agent.call(lambda: type(state.value)._rebuilt(*state.value._written()), what="looking")
        except ProgramStopped:
            return state.value

    def astray(self) -> str:
        """What is said where a function has the variable from where nobody saw."""
        return (
            f"a function in a rule cannot find {self._name} this way: it would not be called again when that grows. "
            f"Mention it in the function itself, or join with it: (collection * self.{self._name})"
        )

    def reveal(self) -> Value:
        """The plain value; in a rule, a point of order."""
        return called(self, "reveal", (), {}) if self._making() else self.value.reveal()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._making():
            return super().__getattr__(name)
        return getattr(self.value, name)

    def __add__(self, other: Any) -> Any:
        return super().__add__(other) if self._making() else self.value + _value_of(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
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


class Complete(Term):
    """A term that is read when it has grown to its fixed point: *why* says what would be wrong before."""

    def __init__(self, term: Term, why: str) -> None:
        """Of a term."""
        self._term, self._why = term, why
        self._lattice = term._lattice
        self._site = getattr(term, "_site", "")

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[Mentioned, MethodKind, str]]:
        for cell, _, why in self._term._leaves():
            yield cell, MethodKind.NON_MONOTONE, why or self._why

    def __str__(self) -> str:
        return str(self._term)

    __repr__ = __str__


def _value_of(given: Any) -> Any:
    return given.value if isinstance(given, Cell) else given
