"""Terms: what a rule says of lattices, ``self.votes.size().gt_eq(2)``, as a tree of method calls.

While a block runs, a variable is a term, and a method of its lattice, called on a term, gives a term.  Which methods
there are, and whether each is a morphism, monotone or neither, the *type* of the receiver says; what a method returns
is read off its annotation.  Where that does not say, a method counts as what the worst of all lattices that have it
says, so that nothing is taken for monotone that may not be.

For the plan a term is one row of one column, made of the variables' rows; what is not monotone about the way in which
a variable is read is marked there, so that strata and points of order see through terms.

>>> from syndicate.bloom.declaration import Declaration, Kind
>>> from syndicate.bloom.rules.cell import Cell
>>> from syndicate.lattice import Set
>>> votes = Cell("votes", Declaration(Kind.LATTICE, ("value",), 0, lattices={"value": Set}), None)
>>> done = called(called(votes, "size", (), {}), "gt_eq", (2,), {})
>>> str(done), lattice_of(done).__name__, [one.why for one in plan.occurrences(plan_of(done))]
('votes.size().gt_eq(2)', 'Bool', [''])
>>> [one.why for one in plan.occurrences(plan_of(called(done, "reveal", (), {})))]
['reveal()']

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Marks and laws"; ``docs/design/bloom.md``,
"Lattices in programs".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from attrs import field, frozen

from syndicate import plan
from syndicate.bloom.row import Names
from syndicate.bloom.rules.abstract_value import variable_attribute
from syndicate.bloom.rules.capture import Mentioned, captured
from syndicate.bloom.rules.column import Column
from syndicate.bloom.rules.mark import Signed
from syndicate.bloom.rules.method_result import ORDER, kinds, result_lattice
from syndicate.bloom.rules.reading import ELEMENT, of_elements
from syndicate.bloom.site import here
from syndicate.errors import IllegalRule, short
from syndicate.lattice import Map
from syndicate.lattice.lattice import LATTICES, OPERATORS, Kind, Lattice
from syndicate.plan.algebra import listed, meant, to_names
from syndicate.values.value import Value

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
    attributes: Names = field(converter=to_names)
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


class Rows(RightSide):
    """Rows that are joined and mapped, as a term becomes: an expression, in :mod:`syndicate.bloom.rules.expression`."""

    def column(self, name: str) -> Column:
        """The column *name*."""
        raise NotImplementedError  # abstract

    def __getattr__(self, name: str) -> Value:
        """A column, where no method is called so."""
        raise AttributeError(name)


class Conversions:
    """How terms become rows, and are joined with others: said by modules that know rows, which import this one."""

    rows: Callable[[Term, Callable[..., Value] | None, Iterable[str] | None, str], Rows]
    """Of :mod:`syndicate.bloom.rules.term_rows`."""
    product: Callable[[Term, object], RightSide]
    """Of :mod:`syndicate.bloom.rules.expression`."""


conversions = Conversions()


class Term(Signed):
    """A value of a lattice, described."""

    _lattice: type[Lattice] | None
    _site: str

    def _leaves(self, kind: Kind = Kind.MORPHISM) -> Iterator[tuple[Mentioned, Kind, str]]:
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
    ) -> Rows:
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
        known(self, name, here())
        return _Bound(self, name)

    def __add__(self, other: Value) -> Call:
        return called(self, "__add__", (other,), {})

    __radd__ = __add__

    def __sub__(self, other: Value) -> Call:
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
    __hash__ = object.__hash__


class _Bound:
    """A method that is about to be called."""

    def __init__(self, receiver: Term, name: str) -> None:
        self.receiver, self.name = receiver, name

    def __call__(self, *arguments: Value, **named: Value) -> Call:
        return called(self.receiver, self.name, arguments, named)

    def __repr__(self) -> str:
        return f"{self.receiver}.{self.name}"


@frozen(eq=False)
class CalledMethod:
    """A method that is called: of which *receiver*, with which *arguments*, and how it treats its receiver."""

    receiver: Term
    name: str
    arguments: tuple[Value, ...]
    kind: Kind
    argument: Kind
    captured: Mapping[Mentioned, str]
    """The variables that functions among the arguments mention, and what these must see whole of them."""
    offence: str
    """What such a function must see whole of an element."""

    def leaves(self, kind: Kind) -> Iterator[tuple[Mentioned, Kind, str]]:
        """The variables that are read, as a term says them."""
        how = {Kind.NON_MONOTONE: f"{self.name}()"}
        for part, own in [(self.receiver, self.kind), *((one, self.argument) for one in self.arguments)]:
            if isinstance(part, Term):
                for cell, inner, why in part._leaves():
                    yield cell, max(own, inner, kind, key=ORDER.index), why or how.get(own, "") or self.offence
        for cell, why in self.captured.items():
            yield cell, Kind.NON_MONOTONE if why else max(Kind.MONOTONE, kind, key=ORDER.index), why

    def __str__(self) -> str:
        if self.name in OPERATORS:
            return f"({self.receiver} {OPERATORS[self.name]} {short(self.arguments[0])})"
        shown = [getattr(one, "__name__", None) if callable(one) else None for one in self.arguments]
        inner = ", ".join(name or short(one) for name, one in zip(shown, self.arguments, strict=True))
        return f"{self.receiver}.{self.name}({inner})"


class Call(Term):
    """A method called on a term."""

    def __init__(self, receiver: Term, name: str, arguments: tuple[Value, ...], site: str) -> None:
        """Of a method that is known; see :func:`called`."""
        self._site = site
        kind, argument = known(receiver, name, site)
        self._lattice = result_lattice(receiver._lattice, name, arguments)
        variables: dict[Mentioned, str] = {}
        offence = ""
        for one in arguments:
            if callable(one) and not isinstance(one, type):
                reads = of_elements(one, receiver._lattice, test=name == "filter")
                offence = offence or reads.get(ELEMENT, "")
                variables |= {cell: reads.get(variable_attribute(cell), "") for cell in captured(one)}
        self._method = CalledMethod(receiver, name, arguments, kind, argument, variables, offence)

    def _leaves(self, kind: Kind = Kind.MORPHISM) -> Iterator[tuple[Mentioned, Kind, str]]:
        return self._method.leaves(kind)

    def __str__(self) -> str:
        return str(self._method)

    __repr__ = __str__


def known(receiver: Term, name: str, site: str) -> tuple[Kind, Kind]:
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


def called(receiver: Term, name: str, arguments: tuple[Value, ...], named: Mapping[str, Value]) -> Call:
    """The term of a method call; raises :class:`IllegalRule`."""
    site = here()
    if named:
        known(receiver, name, site)
        function = next(getattr(c, name) for c in [receiver._lattice, *LATTICES.values()] if hasattr(c, name))
        try:
            bound = inspect.signature(function).bind(None, *arguments, **named)
        except TypeError as error:
            raise IllegalRule(f"{site}: {receiver}.{name}(): {error}") from error
        bound.apply_defaults()
        arguments = bound.args[1:]
    return Call(receiver, name, tuple(arguments), site)


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


def leaves_of(term: Term) -> Iterator[tuple[Mentioned, Kind, str]]:
    """The variables that it reads; how; and by which method, if that is not monotone."""
    return term._leaves()


def is_nonmonotone(term: Term) -> bool:
    """Whether anything about it is not monotone."""
    return any(why for _, _, why in term._leaves())


def bare_of(right: RightSide, site: str) -> plan.Expression:
    """Rows as plain values, each of one column: what a lattice is to merge."""
    return right._bare(site)


def method_of(call: Call) -> CalledMethod:
    """What is called."""
    return call._method


def has_entries(term: Term) -> bool:
    """Whether its elements are pairs of a key and a value."""
    return term._lattice is not None and issubclass(term._lattice, Map)
