"""Terms: what a rule says of lattices, ``self.votes.size().gt_eq(2)``, as a tree of method calls.

While a block runs, a variable is a term, and a method of its lattice, called on a term, gives a term.  Which methods
there are, and whether each is a morphism, monotone or neither, the *type* of the receiver says; what a method returns
is read off its annotation.  Where that does not say, a method counts as what the worst of all lattices that have it
says, so that nothing is taken for monotone that may not be.

For the plan a term is one row of one column, made of the variables' rows; what is not monotone about the way in which
a variable is read is marked there, so that strata and points of order see through terms.

>>> from syndicate.bloom.declaration import Declaration, Kind
>>> from syndicate.bloom.rules.term import LatticeTerm
>>> from syndicate.lattice import Set
>>> votes = LatticeTerm("votes", Declaration(Kind.LATTICE, ("value",), 0, lattices={"value": Set}), None)
>>> done = called(called(votes, "size", (), {}), "gt_eq", (2,), {})
>>> str(done), lattice_of(done).__name__, [one.why for one in plan.occurrences(plan_of(done))]
('votes.size().gt_eq(2)', 'Bool', [''])
>>> [one.why for one in plan.occurrences(plan_of(called(done, "reveal", (), {})))]
['reveal()']

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Marks and laws"; ``docs/design/bloom.md``,
"Lattices in programs".

Cells: the variables of a program that are lattices.

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
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NoReturn

from attrs import field, frozen

from syndicate import plan
from syndicate.bloom.declaration import Declaration, Kind, Names, Row, check_operator, here, row_type
from syndicate.bloom.rules.abstract_value import ORDER, Mentioned, captured, kinds, result_lattice, variable_attribute
from syndicate.bloom.rules.monotonicity import ELEMENT, of_elements
from syndicate.bloom.rules.symbols import Column, Head, Marked, Owner, Signed
from syndicate.errors import IllegalRule, SyndicateError, short
from syndicate.lattice import Map, from_collection
from syndicate.lattice.lattice import LATTICES, OPERATORS, Lattice, join
from syndicate.lattice.lattice import Kind as MethodKind
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value

# ---------------------------------------------------------------------------------------------------------------- terms


VALUE: Final = ("value",)

ROWS: Final = frozenset({
    *("map", "flat_map", "group", "argmin", "argmax", "argagg", "reduce", "notin", "exists", "include", "rename"),
    *("alias", "inspected", "each_with_index", "sort"),
})  # fmt: skip
"""What a term does as the rows that it gives, if its lattice has no such method."""


@frozen(eq=False, repr=False)
class TermExpression(plan.Expression):
    """Rows that a term gives: for the plan, something made of *source*, the variables' rows.

    *rows* makes them of the term's value; without it there is one, of the value itself.
    """

    source: plan.Expression
    term: Term
    attributes: Names = field(converter=tuple[str, ...])
    rows: Callable[[Value], list[Value]] | None = None

    def __attrs_post_init__(self) -> None:
        self._has(self.attributes)

    def detail(self) -> str:
        """The term."""
        return str(self.term)


class RightSide(Signed):
    """Rows, or a product of such, on the right of a rule: what a lattice can be made of."""

    def _bare(self, site: str) -> plan.Expression:
        """The rows as plain values, each of one column: what a lattice is to merge."""
        raise NotImplementedError  # abstract: of an expression, and of a product


class RowsTerm(RightSide):
    """Rows that are joined and mapped, as a term becomes: an expression, in :mod:`syndicate.bloom.rules.expression`."""

    def column(self, name: str) -> Column:
        """The column *name*."""
        raise NotImplementedError  # abstract

    def __getattr__(self, name: str) -> Value:
        """A column, where no method is called so."""
        raise AttributeError(name)


class Conversions:
    """How terms become rows, and are joined with others: said by modules that know rows, which import this one."""

    rows: Callable[[Term, Callable[..., Value] | None, Iterable[str] | None, str], RowsTerm]
    """Of :mod:`syndicate.bloom.collection`."""
    product: Callable[[Term, object], RightSide]
    """Of :mod:`syndicate.bloom.rules.expression`."""


conversions = Conversions()


class Term(Signed):
    """A value of a lattice, described."""

    _lattice: type[Lattice] | None
    _site: str

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[Mentioned, MethodKind, str]]:
        """The variables that are read; how; and by which method, if that is not monotone."""
        raise NotImplementedError  # abstract: of a variable, and of a method called

    def _plan(self) -> plan.Expression:
        """What is read, as relational algebra."""
        worst: dict[str, str] = {}
        for cell, _, why in self._leaves():
            worst[cell.tabname] = worst.get(cell.tabname, "") or why
        read: list[plan.Expression] = []
        for name, why in worst.items():
            relation: plan.Expression = plan.Rename(plan.Relation(name, VALUE), {"value": f"value of {name}"})
            read.append(plan.NonMonotone(relation, why) if why else relation)
        return plan.NaturalJoin(*read)

    def to_collection(
        self, function: Callable[..., Value] | None = None, *, columns: Iterable[str] | None = None
    ) -> RowsTerm:
        """Its elements as rows: what *function* makes of each (of a map's key and value); None leaves one out."""
        return conversions.rows(self, function, columns, here())

    def reveal(self) -> Value:
        """The plain value, in a rule: a point of order."""
        return called(self, "reveal", (), {})

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ROWS and (self._lattice is None or name not in self._lattice.methods()):
            return getattr(self.to_collection(), name)
        method_kinds(self, name, here())
        return _BoundMethod(self, name)

    def __add__(self, other: Value) -> CallTerm:
        return called(self, "__add__", (other,), {})

    __radd__ = __add__

    def __sub__(self, other: Value) -> CallTerm:
        return called(self, "__sub__", (other,), {})

    def __mul__(self, other: object) -> RightSide:
        return conversions.product(self, other)

    def __bool__(self) -> bool:
        raise IllegalRule(
            f"{here()}: {self} has no truth in a rule: use when_true(), or a threshold such as gt_eq() as a rule of "
            "its own"
        )

    def _no_target(self, _: object) -> object:
        raise IllegalRule(f"{here()}: only a collection or a lattice can stand on the left of a rule, not {self}")

    __ge__ = __gt__ = __le__ = __lt__ = _no_target

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _PLAIN):
            raise IllegalRule(
                f"{here()}: {self} has no value yet, to compare it with {other!r}: ask a threshold, such as gt_eq() or "
                "contains(), or compare its reveal() in a function of a rule"
            )
        return self is other

    __hash__ = object.__hash__


_PLAIN: Final = (int, float, str, bytes, tuple, list, set, frozenset, dict, Lattice)
"""What a value of a lattice could be compared with in a rule."""


class _BoundMethod:
    """A method that is about to be called."""

    def __init__(self, receiver: Term, name: str) -> None:
        self.receiver, self.name = receiver, name

    def __call__(self, *arguments: Value, **named: Value) -> CallTerm:
        return called(self.receiver, self.name, arguments, named)

    def __repr__(self) -> str:
        return f"{self.receiver}.{self.name}"


@frozen(eq=False)
class CalledMethod:
    """A method that is called: of which *receiver*, with which *arguments*, and how it treats its receiver."""

    receiver: Term
    name: str
    arguments: tuple[Value, ...]
    kind: MethodKind
    argument: MethodKind
    captured: Mapping[Mentioned, str]
    """The variables that functions among the arguments mention, and what these must see whole of them."""
    offence: str
    """What such a function must see whole of an element."""

    def leaves(self, kind: MethodKind) -> Iterator[tuple[Mentioned, MethodKind, str]]:
        """The variables that are read, as a term says them."""
        how = {MethodKind.NON_MONOTONE: f"{self.name}()"}
        for part, own in [(self.receiver, self.kind), *((one, self.argument) for one in self.arguments)]:
            if isinstance(part, Term):
                for cell, inner, why in part._leaves():
                    yield cell, max(own, inner, kind, key=ORDER.index), why or how.get(own, "") or self.offence
        for cell, why in self.captured.items():
            yield cell, MethodKind.NON_MONOTONE if why else max(MethodKind.MONOTONE, kind, key=ORDER.index), why

    def __str__(self) -> str:
        if self.name in OPERATORS:
            return f"({self.receiver} {OPERATORS[self.name]} {short(self.arguments[0])})"
        shown = [getattr(one, "__name__", None) if callable(one) else None for one in self.arguments]
        inner = ", ".join(name or short(one) for name, one in zip(shown, self.arguments, strict=True))
        return f"{self.receiver}.{self.name}({inner})"


class CallTerm(Term):
    """A method called on a term."""

    def __init__(self, receiver: Term, name: str, arguments: tuple[Value, ...], site: str) -> None:
        """Of a method that is known; see :func:`called`."""
        self._site = site
        kind, argument = method_kinds(receiver, name, site)
        self._lattice = result_lattice(receiver._lattice, name, arguments)
        variables: dict[Mentioned, str] = {}
        offence = ""
        for one in arguments:
            if callable(one) and not isinstance(one, type):
                reads = of_elements(one, receiver._lattice, test=name == "filter")
                offence = offence or reads.get(ELEMENT, "")
                variables |= {cell: reads.get(variable_attribute(cell), "") for cell in captured(one)}
        self._method = CalledMethod(receiver, name, arguments, kind, argument, variables, offence)

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[Mentioned, MethodKind, str]]:
        return self._method.leaves(kind)

    def __str__(self) -> str:
        return str(self._method)

    __repr__ = __str__


def method_kinds(receiver: Term, name: str, site: str) -> tuple[MethodKind, MethodKind]:
    """How a method treats its receiver and its arguments; raises :class:`IllegalRule` if there is none."""
    cls = receiver._lattice
    pair = kinds(cls, name)
    if pair is None:
        classes = list(LATTICES.values()) if cls is None else [cls]
        names = sorted({m.symbol for one in classes for m in one.methods().values()})
        whose = "any lattice" if cls is None else f"{receiver}, of the lattice {cls.wrapper_name}"
        raise IllegalRule(
            f"{site}: there is no method {name!r} of {whose}{meant(name, names)}; there are {listed(names)}"
        )
    return pair


def called(receiver: Term, name: str, arguments: tuple[Value, ...], named: Mapping[str, Value]) -> CallTerm:
    """The term of a method call; raises :class:`IllegalRule`."""
    site = here()
    if named:
        method_kinds(receiver, name, site)
        function = next(getattr(c, name) for c in [receiver._lattice, *LATTICES.values()] if hasattr(c, name))
        try:
            bound = inspect.signature(function).bind(None, *arguments, **named)
        except TypeError as error:
            raise IllegalRule(f"{site}: {receiver}.{name}(): {error}") from error
        bound.apply_defaults()
        arguments = bound.args[1:]
    return CallTerm(receiver, name, tuple(arguments), site)


# What other modules ask of a term: a method would hide the method of a lattice that has its name.


def lattice_of(term: Term) -> type[Lattice] | None:
    """The lattice of its value, if it is known."""
    return term._lattice


def place_of(term: Term) -> str:
    """Where it is written."""
    return getattr(term, "_site", "")


def plan_of(term: Term) -> plan.Expression:
    """What it reads, as relational algebra."""
    return term._plan()


def leaves_of(term: Term) -> Iterator[tuple[Mentioned, MethodKind, str]]:
    """The variables that it reads; how; and by which method, if that is not monotone."""
    return term._leaves()


def is_nonmonotone(term: Term) -> bool:
    """Whether anything about it is not monotone."""
    return any(why for _, _, why in term._leaves())


def bare_of(right: RightSide, site: str) -> plan.Expression:
    """Rows as plain values, each of one column: what a lattice is to merge."""
    return right._bare(site)


def method_of(call: CallTerm) -> CalledMethod:
    """What is called."""
    return call._method


def has_entries(term: Term) -> bool:
    """Whether its elements are pairs of a key and a value."""
    return term._lattice is not None and issubclass(term._lattice, Map)


# ---------------------------------------------------------------------------------------------------------------- cells


class LatticeTerm(Head, Term, Mentioned):
    """A lattice of a program under a name."""

    _location = None

    def __init__(self, name: str, declaration: Declaration, owner: Owner) -> None:
        """Of a declaration; programs make them."""
        self._name, self._declaration, self._owner = name, declaration, owner
        self._kind: Kind = declaration.kind
        self._columns, self._keys = VALUE, 0
        self._site = declaration.site
        self._lattice: type[Lattice] = declaration.lattices["value"]

    def _leaves(self, kind: MethodKind = MethodKind.MORPHISM) -> Iterator[tuple[LatticeTerm, MethodKind, str]]:
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
        if self._owner.collecting:
            raise IllegalRule(f"{site}: a block makes rules: write {self._name} <= ..., or use @bootstrap")
        if isinstance(content, LatticeTerm):
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
        if self._owner.collecting:
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
        return called(self, "reveal", (), {}) if self._owner.collecting else self.value.reveal()

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_") or self._owner.collecting:
            return super().__getattr__(name)
        return getattr(self.value, name)

    def __add__(self, other: Value) -> Value:
        return super().__add__(other) if self._owner.collecting else self.value + _value_of(other)

    __radd__ = __add__

    def __sub__(self, other: Value) -> Value:
        return super().__sub__(other) if self._owner.collecting else self.value - _value_of(other)

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
        return super().__eq__(other) if self._owner.collecting else self is other

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
    return content.value if isinstance(content, LatticeTerm) else content


def completed_term(term: CompletedTerm) -> Term:
    """The term that is read when it has grown."""
    return term._term
