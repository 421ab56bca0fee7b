"""Relational algebra as data: what a rule compiles to (PomoRA).

An expression denotes a set of rows over its heading.  Nothing is computed here: a
:class:`~syndicate.plan.lowering.Program` names expressions, orders them and makes one circuit of all.  Expressions are
frozen values; equal ones, wherever they are used in a program, are computed once.

>>> edge = Relation("edge", ("a", "b"))
>>> path = NaturalJoin(edge, Rename(edge, {"a": "b", "b": "c"}))
>>> print(Projection(path, ("a", "c")).explain())
Projection a, c -> (a, c)
  NaturalJoin on b -> (a, b, c)
    Relation edge -> (a, b)
    Rename a=b, b=c -> (b, c)
      Relation edge -> (a, b)
>>> Projection(edge, ("a", "d"))
Traceback (most recent call last):
    ...
syndicate.errors.PlanError: Projection of edge: there is no attribute 'd'; the attributes are 'a', 'b'

Contract: attributes are checked when an expression is made (:class:`PlanError`); after that it makes sense.  Python
functions in expressions are pure.

Source: PomoRA; ``docs/design/plan.md``, "What PomoRA and PomoLogic leave open".

Headings: the attributes of a relation, in order, and what is said of names that do not fit.

A row is a tuple of values in the order of its relation's heading.  Attributes are found by name everywhere in the
algebra; the order only says how rows are written and read.

>>> heading_of("edge", ["src", "dst"])
('src', 'dst')
>>> meant("scr", ("src", "dst"))
" (did you mean 'src'?)"

Source: ``docs/design/plan.md``, "Relations and rules".

Expressions: what all of the algebra has in common, and the two that are made of nothing else.

An expression is a frozen value with a heading.  Equality and hash are of what it is made of; the hash is computed once,
when it is made, so that deep expressions cost no more than flat ones.

>>> edge = Relation("edge", ("a", "b")); edge == Relation("edge", ("a", "b")), edge.heading
(True, ('a', 'b'))
>>> Literal(("n",), [(1,), (1,), (True,)]).rows
[(1,), (True,)]

Source: PomoRA, section 1.1; ``docs/design/plan.md``, "Relations and rules".
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias

from attrs import evolve, field, fields, frozen

from syndicate.errors import PlanError
from syndicate.flow.aggregates import Aggregate, aggregate_of
from syndicate.flow.element import Element, Key, key_of, naturals
from syndicate.plan.scalar import Compare, Condition, Scalar, to_condition, to_scalar

# ------------------------------------------------------------------------------------------------------------- headings


Heading: TypeAlias = tuple[str, ...]


def heading_of(what: str, names: Iterable[Element]) -> Heading:
    """The heading made of *names*; raises :class:`PlanError` where one is no string, empty, or there twice."""
    if isinstance(names, str):
        raise PlanError(f"{what}: a heading is a sequence of names, not the string {names!r}: write ({names!r},)")
    heading = tuple(names)
    seen: set[str] = set()
    for name in heading:
        if not isinstance(name, str) or not name:
            raise PlanError(f"{what}: an attribute's name is a string with something in it, not {name!r}")
        if name in seen:
            raise PlanError(f"{what}: the attribute {name!r} is there twice: rename one of the two")
        seen.add(name)
    return heading


def meant(name: object, names: Iterable[str]) -> str:
    """A hint, if one of *names* looks like what was written; else nothing."""
    close = difflib.get_close_matches(str(name), list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(map(repr, names)) or "none"


# ---------------------------------------------------------------------------------------------------------- expressions


Row: TypeAlias = tuple[Element, ...]


def _to_keys(rows: Iterable[Iterable[Element]]) -> tuple[Key, ...]:
    return tuple(dict.fromkeys(key_of(tuple(row)) for row in rows))


_NO_OPERATORS: Final = frozenset["type[Expression]"]()


@frozen(eq=False, repr=False)
class Expression:
    """What all expressions have: a heading, and parts.  Made by :class:`Product` and the other operators."""

    heading: Heading = field(init=False, default=())
    operators: frozenset[type[Expression]] = field(init=False, default=_NO_OPERATORS)
    """What kinds of expressions it is made of, its own among them."""
    _identity: tuple[Element, ...] = field(init=False, default=())
    _hash: int = field(init=False, default=0)

    def parts(self) -> tuple[Expression, ...]:
        """The expressions that this one is made of."""
        names = _names(type(self))  # type: ignore[arg-type]  # a class has a hash of its own
        return tuple([part for name in names if isinstance(part := getattr(self, name), Expression)])

    def detail(self) -> str:
        """What it does, without its parts."""
        return ""

    def _has(self, heading: Iterable[str]) -> None:
        """Set the heading, and the hash while those of the parts are at hand: so no depth is walked later."""
        names = tuple(heading)
        if not all(type(name) is str and name for name in names) or len(set(names)) < len(names):
            names = heading_of(self.title(), names)  # says what is wrong
        object.__setattr__(self, "heading", names)
        kind = type(self)
        below = [part.operators for part in self.parts()]
        object.__setattr__(self, "operators", _NO_OPERATORS.union((kind,), *below))
        identity = (kind, *[getattr(self, name) for name in _names(kind)])  # type: ignore[arg-type]  # as in parts()
        object.__setattr__(self, "_identity", identity)
        object.__setattr__(self, "_hash", hash(identity))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expression):
            return NotImplemented
        return self._hash == other._hash and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    def _check_reads(self, names: Iterable[str], source: Expression, part: str = "") -> None:
        """Raise :class:`PlanError` if one of *names*, which this expression reads, is no attribute of *source*."""
        heading = source.heading
        for name in names:
            if name not in heading:
                raise PlanError(
                    f"{self.title()}{part}: there is no attribute {name!r}{meant(name, heading)}; the attributes are "
                    f"{listed(heading)}"
                )

    def title(self) -> str:
        """The expression in a message: its kind and what it is of."""
        below = " and ".join(map(_short, self.parts()))
        return f"{type(self).__name__} of {below}" if below else f"{type(self).__name__} {self.detail()}".rstrip()

    def explain(self) -> str:
        """The expression as a tree, one line each."""
        lines: list[str] = []
        pending: list[tuple[int, Expression]] = [(0, self)]
        while pending:
            depth, expression = pending.pop()
            detail = expression.detail()
            name = f"{type(expression).__name__} {detail}" if detail else type(expression).__name__
            lines.append(f"{'  ' * depth}{name} -> ({', '.join(expression.heading)})")
            pending += [(depth + 1, part) for part in reversed(expression.parts())]
        return "\n".join(lines)

    def __repr__(self) -> str:
        inner = [repr(part) for part in self.parts()]
        return f"{type(self).__name__}({', '.join(filter(None, [self.detail(), *inner]))})"


@cache
def _names(kind: type[Expression]) -> tuple[str, ...]:
    """The names of what an expression of a kind is made of."""
    return tuple(one.name for one in fields(kind) if one.init)


def _short(expression: Expression) -> str:
    return expression.name if isinstance(expression, Relation) else type(expression).__name__


def is_expression(what: str, *expressions: object) -> None:
    """Raise :class:`PlanError` for what is not an expression."""
    for one in expressions:
        if not isinstance(one, Expression):
            raise PlanError(f"{what} is made of expressions, not of {one!r}: use Relation(name, heading), or Literal")


@frozen(eq=False, repr=False)
class Relation(Expression):
    """A relation of the program, or the variable of a :class:`Fixpoint`, by name."""

    name: str
    attributes: Heading = field(converter=tuple[str, ...])

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise PlanError(f"a relation's name is a string with something in it, not {self.name!r}")
        self._has(self.attributes)

    def detail(self) -> str:
        """The name."""
        return self.name

    def title(self) -> str:
        """What it is called in a message."""
        return f"relation {self.name}"


@frozen(eq=False, repr=False)
class Literal(Expression):
    """Rows that are always there: facts of a program."""

    attributes: Heading = field(converter=tuple[str, ...])
    keys: tuple[Key, ...] = field(converter=_to_keys)

    @property
    def rows(self) -> list[Row]:
        """The rows, each once."""
        return naturals(self.keys)

    def __attrs_post_init__(self) -> None:
        self._has(self.attributes)
        for row in self.rows:
            if len(row) != len(self.heading):
                raise PlanError(f"Literal: the row {row!r} does not fit the attributes {listed(self.heading)}")

    def detail(self) -> str:
        """The first rows."""
        more = f", and {len(self.keys) - 3} more" if len(self.keys) > 3 else ""
        return ", ".join(map(repr, self.rows[:3])) + more or "nothing"


def walk(*roots: Expression) -> Iterator[Expression]:
    """Each expression in *roots* once, the parts after what is made of them, in no particular order otherwise."""
    seen: set[Expression] = set()
    pending = list(roots)
    while pending:
        expression = pending.pop()
        if expression not in seen:
            seen.add(expression)
            yield expression
            pending += expression.parts()


# ------------------------------------------------------------------------------------------- relational algebra as data


Renaming: TypeAlias = tuple[tuple[str, str], ...]


@frozen(eq=False, repr=False, init=False)
class Selection(Expression):
    """The rows for which all conditions hold; they are asked in order, and the first that does not hold ends it."""

    source: Expression
    conditions: tuple[Condition, ...]

    def __init__(self, source: Expression, *conditions: Condition) -> None:
        """Conditions as in :mod:`syndicate.plan.scalar`."""
        is_expression("Selection", source)
        self.__attrs_init__(source, tuple(map(to_condition, conditions)))
        for condition in self.conditions:
            self._check_reads(condition.attributes(), source, f" by {condition}")
        self._has(source.heading)

    def detail(self) -> str:
        """The conditions."""
        return " and ".join(map(str, self.conditions))


def _columns(columns: Iterable[str | tuple[str, object]]) -> tuple[tuple[str, Scalar], ...]:
    pairs = columns.items() if isinstance(columns, Mapping) else [(c, c) if isinstance(c, str) else c for c in columns]
    return tuple((name, to_scalar(scalar)) for name, scalar in pairs)


@frozen(eq=False, repr=False)
class Projection(Expression):
    """Columns: attributes by name, or pairs of a new name and a scalar (``("total", Arith("*", "n", Attr("price")))``).

    In a pair, a string names an attribute; write ``Const("text")`` for text.
    """

    source: Expression
    columns: tuple[tuple[str, Scalar], ...] = field(converter=_columns)

    def __attrs_post_init__(self) -> None:
        is_expression("Projection", self.source)
        for _, scalar in self.columns:
            self._check_reads(scalar.attributes(), self.source)
        self._has(name for name, _ in self.columns)

    def detail(self) -> str:
        """The columns."""
        return ", ".join(name if str(scalar) == name else f"{name} = {scalar}" for name, scalar in self.columns)


def _renaming(pairs: Mapping[str, str] | Iterable[tuple[str, str]]) -> Renaming:
    return tuple(pairs.items() if isinstance(pairs, Mapping) else pairs)


@frozen(eq=False, repr=False)
class Rename(Expression):
    """Other names for attributes, ``{old: new}``, all at once: ``{"a": "b", "b": "a"}`` exchanges two."""

    source: Expression
    renaming: Renaming = field(converter=_renaming)

    def __attrs_post_init__(self) -> None:
        is_expression("Rename", self.source)
        self._check_reads((old for old, _ in self.renaming), self.source)
        new = dict(self.renaming)
        if len(new) < len(self.renaming):
            heading_of(self.title(), (old for old, _ in self.renaming))  # says what is wrong
        self._has(new.get(name, name) for name in self.source.heading)

    def detail(self) -> str:
        """Old and new names."""
        return ", ".join(f"{old}={new}" for old, new in self.renaming)


@frozen(eq=False, repr=False)
class Map(Expression):
    """``function(row)``, a pure Python function from a row (a tuple) to a row over *attributes*."""

    source: Expression
    attributes: Heading = field(converter=tuple[str, ...])
    function: Callable[[Element], Row]

    def __attrs_post_init__(self) -> None:
        _with_function(self)

    def detail(self) -> str:
        """The function."""
        return getattr(self.function, "__name__", repr(self.function))


@frozen(eq=False, repr=False)
class FlatMap(Expression):
    """All rows of ``function(row)``, a pure Python function from a row to any number of rows over *attributes*."""

    source: Expression
    attributes: Heading = field(converter=tuple[str, ...])
    function: Callable[[Element], Iterable[Row]]

    def __attrs_post_init__(self) -> None:
        _with_function(self)

    def detail(self) -> str:
        """The function."""
        return getattr(self.function, "__name__", repr(self.function))


def _with_function(expression: Map | FlatMap) -> None:
    is_expression(type(expression).__name__, expression.source)
    if not callable(expression.function):
        raise PlanError(f"{expression.title()} needs a function of a row, not {expression.function!r}")
    expression._has(expression.attributes)


def _to_scalars(of: object) -> tuple[Scalar, ...]:
    return tuple(map(to_scalar, of if isinstance(of, (tuple, list)) else (of,)))


@frozen(repr=False)
class Agg:
    """An aggregate of a scalar of each row: ``Agg(aggregates.sum, "price")``.

    *aggregate* is one of :mod:`syndicate.flow.aggregates`, a lattice, whose elements the values are made and merged as
    (``Agg(Min, "price")``), or a function of ``{value: how many rows}``.  With several scalars the value is their
    tuple; with none it is None, which is all that ``count`` needs.
    """

    aggregate: Aggregate = field(converter=aggregate_of)
    of: tuple[Scalar, ...] = field(
        default=(),
        converter=_to_scalars,
    )

    def __attrs_post_init__(self) -> None:
        if not self.of and self.aggregate.form in ("sum", "avg", "min", "max", "top", "lattice"):
            raise PlanError(f"{self.aggregate} is of something: write Agg({self.aggregate}, attribute)")

    def __str__(self) -> str:
        return f"{self.aggregate}({', '.join(map(str, self.of))})"

    __repr__ = __str__


def _aggs(
    aggregates: Mapping[str, object] | Iterable[tuple[str, object]],
) -> tuple[tuple[str, Agg], ...]:
    pairs = aggregates.items() if isinstance(aggregates, Mapping) else aggregates
    return tuple((name, agg if isinstance(agg, Agg) else Agg(agg)) for name, agg in pairs)


@frozen(eq=False, repr=False)
class GroupBy(Expression):
    """A row for each group of rows that agree on the attributes *by*: these, and the aggregates by name.

    Each row of the source counts once.  There is no empty group: nothing at all gives no row, not a count of 0.
    Where a user's aggregate gives None, there is no row.
    """

    source: Expression
    by: Heading = field(converter=tuple[str, ...])
    aggregates: tuple[tuple[str, Agg], ...] = field(converter=_aggs)

    def __attrs_post_init__(self) -> None:
        is_expression("GroupBy", self.source)
        self._check_reads(self.by, self.source)
        for name, agg in self.aggregates:
            for scalar in agg.of:
                self._check_reads(scalar.attributes(), self.source, f", {name} = {agg}")
        if not self.aggregates:
            raise PlanError(f"{self.title()} has no aggregate: use Projection for the groups alone")
        self._has((*self.by, *(name for name, _ in self.aggregates)))

    def detail(self) -> str:
        """The groups and the aggregates."""
        return "; ".join(filter(None, [", ".join(self.by), ", ".join(f"{n} = {a}" for n, a in self.aggregates)]))


@frozen(eq=False, repr=False)
class NonMonotone(Expression):
    """The source itself, marked as read in a way that is not monotone: no recursion may lead through here."""

    source: Expression
    why: str

    def __attrs_post_init__(self) -> None:
        is_expression("NonMonotone", self.source)
        self._has(self.source.heading)

    def detail(self) -> str:
        """The reason."""
        return self.why


# ------------------------------------------------------------------------------------------------------- more operands


def _alike(expression: Expression, operands: tuple[Expression, ...]) -> None:
    first = operands[0].heading
    for other in operands[1:]:
        if set(other.heading) != set(first):
            raise PlanError(
                f"{expression.title()}: the operands need the same attributes, but one has {listed(first)}, the other "
                f"{listed(other.heading)}: project or rename one of them"
            )


@frozen(eq=False, repr=False, init=False)
class Union(Expression):
    """The rows of any of the sources, which have the same attributes, in any order."""

    sources: tuple[Expression, ...]

    def __init__(self, *sources: Expression) -> None:
        """One source or more."""
        is_expression("Union", *sources)
        self.__attrs_init__(sources)
        if not sources:
            raise PlanError("Union of nothing has no attributes: use Literal(attributes, ())")
        _alike(self, sources)
        self._has(sources[0].heading)

    def parts(self) -> tuple[Expression, ...]:
        """The sources."""
        return self.sources


@frozen(eq=False, repr=False)
class Difference(Expression):
    """The rows of the left that are not among those of the right; both have the same attributes, in any order."""

    left: Expression
    right: Expression

    def __attrs_post_init__(self) -> None:
        is_expression("Difference", self.left, self.right)
        _alike(self, (self.left, self.right))
        self._has(self.left.heading)


def _apart(expression: Expression, left: Expression, right: Expression) -> None:
    both = [name for name in left.heading if name in right.heading]
    if both:
        raise PlanError(
            f"{expression.title()}: both sides have {listed(both)}: rename on one side, or use NaturalJoin to equate "
            "them"
        )
    expression._has((*left.heading, *right.heading))


@frozen(eq=False, repr=False)
class Product(Expression):
    """All pairs of rows; the sides have no attribute in common."""

    left: Expression
    right: Expression

    def __attrs_post_init__(self) -> None:
        is_expression("Product", self.left, self.right)
        _apart(self, self.left, self.right)


@frozen(eq=False, repr=False, init=False)
class ThetaJoin(Expression):
    """The pairs of rows for which all conditions hold; the sides have no attribute in common."""

    left: Expression
    right: Expression
    conditions: tuple[Condition, ...]

    def __init__(self, left: Expression, right: Expression, *conditions: Condition) -> None:
        """Equalities between the sides are found by index, other conditions asked of each pair."""
        is_expression("ThetaJoin", left, right)
        self.__attrs_init__(left, right, tuple(map(to_condition, conditions)))
        _apart(self, left, right)
        for condition in self.conditions:
            self._check_reads(condition.attributes(), self, f" by {condition}")

    def detail(self) -> str:
        """The conditions."""
        return " and ".join(map(str, self.conditions))


@frozen(eq=False, repr=False)
class EquiJoin(Expression):
    """The pairs of rows that agree on pairs of attributes, ``{left: right}``; both columns are kept."""

    left: Expression
    right: Expression
    on: Renaming = field(converter=_renaming)

    def __attrs_post_init__(self) -> None:
        is_expression("EquiJoin", self.left, self.right)
        self._check_reads((name for name, _ in self.on), self.left)
        self._check_reads((name for _, name in self.on), self.right)
        _apart(self, self.left, self.right)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What must be equal, as conditions."""
        return tuple(Compare(left, "==", to_scalar(right)) for left, right in self.on)

    def detail(self) -> str:
        """The pairs of attributes."""
        return ", ".join(f"{left}={right}" for left, right in self.on)


@frozen(eq=False, repr=False, init=False)
class NaturalJoin(Expression):
    """The combinations of rows that agree on all attributes of the same name; where there is none, all combinations.

    Any number of sources; their order says the order of attributes, not that of evaluation.
    """

    sources: tuple[Expression, ...]

    def __init__(self, *sources: Expression) -> None:
        """One source or more."""
        is_expression("NaturalJoin", *sources)
        self.__attrs_init__(sources)
        if not sources:
            raise PlanError("NaturalJoin of nothing: use Literal((), [()]), the relation that has one row of nothing")
        self._has(dict.fromkeys(name for source in sources for name in source.heading))

    def parts(self) -> tuple[Expression, ...]:
        """The sources."""
        return self.sources

    def detail(self) -> str:
        """The shared attributes."""
        shared = [name for name in self.heading if sum(name in source.heading for source in self.sources) > 1]
        return f"on {', '.join(shared)}" if shared else ""


@frozen(eq=False, repr=False)
class SemiJoin(Expression):
    """The rows of the left that agree with a row of the right on the attributes that both have.

    Without such attributes: all rows if the right has any.
    """

    left: Expression
    right: Expression

    def __attrs_post_init__(self) -> None:
        is_expression("SemiJoin", self.left, self.right)
        self._has(self.left.heading)


@frozen(eq=False, repr=False)
class AntiJoin(Expression):
    """The rows of the left that agree with no row of the right on the attributes that both have: negation.

    Without such attributes: all rows if the right has none.
    """

    left: Expression
    right: Expression

    def __attrs_post_init__(self) -> None:
        is_expression("AntiJoin", self.left, self.right)
        self._has(self.left.heading)


@frozen(eq=False, repr=False)
class Fixpoint(Expression):
    """The least relation *name* that is equal to *body*, in which ``Relation(name, attributes)`` denotes it.

    PomoRA's ``while change``.  The body must be monotone in it; :class:`Unstratifiable` otherwise, when a program is
    made of it.
    """

    name: str
    attributes: Heading = field(converter=tuple[str, ...])
    body: Expression

    def __attrs_post_init__(self) -> None:
        is_expression("Fixpoint", self.body)
        self._has(self.attributes)
        if set(self.body.heading) != set(self.attributes):
            raise PlanError(
                f"Fixpoint {self.name}: the body has the attributes {listed(self.body.heading)}, "
                f"{self.name} has {listed(self.attributes)}"
            )

    @property
    def variable(self) -> Relation:
        """The expression that denotes it in the body."""
        return Relation(self.name, self.attributes)

    def detail(self) -> str:
        """The name."""
        return self.name


def with_parts(expression: Expression, parts: Sequence[Expression]) -> Expression:
    """The same operator over other *parts*; the expression itself if these are its own.

    >>> t, u = Relation("t", ("a",)), Relation("u", ("a",))
    >>> with_parts(Rename(t, {"a": "b"}), [u]), with_parts(Union(t, u), [u, u])
    (Rename(a=b, Relation(u)), Union(Relation(u), Relation(u)))
    """
    if all(one is other for one, other in zip(expression.parts(), parts, strict=True)):
        return expression
    match expression:
        case Selection():
            return Selection(parts[0], *expression.conditions)
        case ThetaJoin():
            return ThetaJoin(parts[0], parts[1], *expression.conditions)
        case Union() | NaturalJoin():
            return type(expression)(*parts)
        case Fixpoint():
            return evolve(expression, body=parts[0])
    names = ("source",) if len(parts) == 1 else ("left", "right")
    return evolve(expression, **dict(zip(names, parts, strict=True)))
