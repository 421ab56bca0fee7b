"""Columns: ``self.buffer.ident`` in a rule, and equalities of two of them.

>>> a, b = Column(None, "x", "a"), Column(None, "y", "b")
>>> a == b
a.x == b.y
>>> bool(a == b)
Traceback (most recent call last):
syndicate.errors.IllegalRule: a.x == b.y has no truth here: give it to pairs(), lefts(), notin() and their like

Source: ``docs/design/bloom.md``, "Methods of rows".

Operators that rules do not have: who writes one gets an error that says what to write, instead of what Python lacks.

Source: ``docs/design/bloom.md``, "Collections and operators".

Marks: the signs of ``<+``, ``<-``, ``<~`` and ``<+-``, which Python takes for signs of what comes after them.

``t <+ e`` is, to Python, ``t < (+e)``: so ``+e``, ``-e``, ``~e`` and ``+-e`` give a :class:`Marked` expression.  A sign
binds tighter than ``*``, so ``t <+ a * b`` is ``t < ((+a) * b)``: the product of a marked expression keeps the mark and
means what was written; ``t <+ a * +b`` is refused.  Methods bind tighter than signs, so ``t <~ a.map(f)`` needs no
parentheses.

Source: ``docs/design/bloom.md``, "Collections and operators".

Sides: what a function of a rule takes as one row, and where its columns are in the relational algebra.

An expression has one side, a join of n has n: so many rows its functions take.  A column of a side is an attribute of
the algebra's heading; two columns that a join has equated are one attribute.

Heads: what may be on the left of a rule: a collection, or a lattice.

While a program is made, an operator records a rule; afterwards it gives rows, or a value, to the next tick.

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Collections and operators".

Joins: from the rows of several expressions to combinations of them, in the relational algebra.

Each factor's attributes are renamed apart, those that must be equal alike: so a join of any number of factors is one
natural join, which the planner puts in order, and a join of a collection with itself is nothing special.

Source: ``docs/design/bloom.md``, "Methods of rows".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Final, NoReturn, Protocol

from attrs import evolve, frozen

from syndicate import plan
from syndicate.bloom.declaration import OPERATORS, Declaration, Kind, Names, Recorded, Rule, check_operator, here
from syndicate.errors import IllegalRule
from syndicate.flow.element import Key
from syndicate.lattice.lattice import Lattice
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value

# -------------------------------------------------------------------------------------------------------------- columns


@frozen(eq=False, repr=False)
class Column:
    """A column of a collection, or of an expression whose rows are those of one; *of* names it in messages."""

    owner: object
    name: str
    of: str

    no_element: ClassVar[str] = "write a value; in a function of rows, row.column is one"

    def __eq__(self, other: object) -> Value:
        if isinstance(other, (Column, str)):
            return Equality(self, other)
        raise IllegalRule(
            f"{here()}: {self} == {other!r} compares a column with no column: for a value of its rows, write "
            f"{self.of}.filter(lambda row: row.{self.name} == {other!r})"
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.of}.{self.name}"


@frozen(eq=False, repr=False)
class Equality:
    """What a join may ask: that two columns are equal."""

    left: Column | str
    right: Column | str

    def __bool__(self) -> bool:
        raise IllegalRule(f"{self!r} has no truth here: give it to pairs(), lefts(), notin() and their like")

    def __repr__(self) -> str:
        return f"{self.left!r} == {self.right!r}"


# ------------------------------------------------------------------------------------- operators that rules do not have


def _refused(sign: str, remedy: str) -> Callable[[object, object], NoReturn]:
    def refuse(_: object, __: object) -> NoReturn:
        raise IllegalRule(f"{here()}: there is no {sign} of collections in a rule: {remedy}")

    return refuse


_BOTH = "for the rows of both, write a rule for each: t <= a; t <= b"


class NoOperand:
    """What is used in a rule, and takes no operator but ``*`` and the signs."""

    no_element = (
        "in a rule, a literal row may hold a collection, t <= [(1, a)], and follows it, or join with a.nested(); "
        "outside of rules, write frozenset(...) of the rows that are meant"
    )

    __add__ = __radd__ = _refused("+", _BOTH)
    __or__ = __ror__ = _refused("|", _BOTH)
    __sub__ = _refused("-", "for the rows of a that are not in b, write a.notin(b)")
    __and__ = _refused("&", "for the rows that are in both, write (a * b).matches()")
    __lshift__ = _refused("<<", "insert from outside with t.insert(rows), and write a rule with <= or <+")
    __matmul__ = _refused("@", "join with *")


# ---------------------------------------------------------------------------------------------------------------- marks


MARKS: Final = {"+": "<+", "-": "<-", "~": "<~", "+-": "<+-"}


class Signed:
    """What may come after a sign, and be joined."""

    def __mul__(self, other: object) -> Signed:
        raise NotImplementedError  # abstract

    def __pos__(self) -> Marked:
        return Marked("+", self)

    def __neg__(self) -> Marked:
        return Marked("-", self)

    def __invert__(self) -> Marked:
        return Marked("~", self)


class Marked(NoOperand):
    """An expression after a sign: the right side of ``<+``, ``<-``, ``<~`` or ``<+-``."""

    def __init__(self, mark: str, expression: Signed) -> None:
        """A sign and what comes after it: an expression, a product, or a term."""
        self._mark, self._expression = mark, expression

    def __mul__(self, other: object) -> Marked:
        return Marked(self._mark, self._expression * other)

    def __rmul__(self, _: object) -> NoReturn:
        raise astray(self)

    def __pos__(self) -> Marked:
        return self._doubled("+")

    def __neg__(self) -> Marked:
        return self._doubled("-")

    def __invert__(self) -> Marked:
        return self._doubled("~")

    def _doubled(self, mark: str) -> Marked:
        if {mark, self._mark} != {"+", "-"}:
            raise IllegalRule(f"{here()}: there is no operator <{mark}{self._mark}: use <= <+ <- <~ or <+-")
        return Marked("+-", self._expression)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise IllegalRule(
            f"{here()}: the sign of {MARKS[self._mark]} stands before all of the expression, .{name} within it"
        )


def unsigned(marked: Marked) -> tuple[str, Signed]:
    """The sign, and what comes after it."""
    return marked._mark, marked._expression


def astray(marked: Marked) -> IllegalRule:
    """The error for a sign in the wrong place."""
    return IllegalRule(
        f"{here()}: the sign {marked._mark} of {MARKS[marked._mark]} stands before the first factor: write "
        f"t {MARKS[marked._mark]} (a * b).pairs(...)"
    )


# ---------------------------------------------------------------------------------------------------------------- sides


@frozen(eq=False)
class Side:
    """Columns and their attributes; *owner* is whose columns they are, *name* says it in messages.

    *address* is the place of the column that is no payload: a channel's location, else the first; None if all are.
    """

    owner: object
    name: str
    columns: Names
    attributes: Names
    address: int | None = 0

    def attribute(self, column: str) -> str:
        """The attribute of a column."""
        return self.attributes[self.columns.index(column)]


def find(ref: Column | str, sides: Sequence[Side], site: str) -> tuple[int, str]:
    """The index of the side, and the column, that is meant; raises :class:`IllegalRule`."""
    if isinstance(ref, Column):
        places = [at for at, side in enumerate(sides) if side.owner is ref.owner]
        if len(places) > 1:
            raise IllegalRule(
                f"{site}: {ref} may mean any of {len(places)} here: join {ref.of} with {ref.of}.alias(), and qualify "
                "the alias's columns, or write a pair of names such as ('to', 'from')"
            )
        if not places:
            there = ", ".join(side.name for side in sides)
            raise IllegalRule(f"{site}: {ref} belongs to nothing that is read here: there is {there}")
        return places[0], ref.name
    if not isinstance(ref, str):
        raise IllegalRule(f"{site}: {ref!r} is no column: write its name, or collection.column")
    places = [at for at, side in enumerate(sides) if ref in side.columns]
    if not places:
        names = [name for side in sides for name in side.columns]
        raise IllegalRule(f"{site}: there is no column {ref!r}{meant(ref, names)}; the columns are {listed(names)}")
    if len({sides[at].attribute(ref) for at in places}) > 1:
        raise IllegalRule(f"{site}: the column {ref!r} is ambiguous: qualify it, as in collection.{ref}")
    return places[0], ref


def attribute(ref: Column | str, sides: Sequence[Side], site: str) -> str:
    """The attribute that is meant; raises :class:`IllegalRule`."""
    at, column = find(ref, sides, site)
    return sides[at].attribute(column)


# ---------------------------------------------------------------------------------------------------------------- heads


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

    def __le__(self, other: object) -> Recorded | None:
        if self._owner.collecting:
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
        if self._owner.collecting:
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


# ---------------------------------------------------------------------------------------------------------------- joins


Pair = tuple[tuple[int, str], tuple[int, str]]
"""Two sides by index, with a column of each."""


@frozen(eq=False)
class Factor:
    """What is joined: rows of the algebra, and their sides."""

    rows: plan.Expression
    sides: tuple[Side, ...]


def predicates(conditions: Iterable[object], factors: Sequence[Factor], site: str) -> list[Pair]:
    """What users may write as predicates, as pairs; raises :class:`IllegalRule`.

    ``a.x == b.y``, ``(a.x, b.y)``, ``[a.x, b.x, c.x]``, ``("x", "y")``, ``{"x": "y"}``, or ``"x"`` for a
    column that all have.
    """
    sides = [
        evolve(side, attributes=tuple(f"{at}.{name}" for name in side.attributes))
        for at, factor in enumerate(factors)
        for side in factor.sides
    ]
    pairs: list[Pair] = []
    for one in conditions:
        if isinstance(one, Mapping):
            pairs += predicates(list(one.items()), factors, site)
        elif isinstance(one, str):
            places = [(at, one) for at, side in enumerate(sides) if one in side.columns]
            if len(places) < 2:
                find(one, sides, site)
                raise IllegalRule(f"{site}: the column {one!r} is in one of the joined only: write (left, right)")
            pairs += pairwise(places)
        elif isinstance(one, Equality):
            pairs.append(_pair((one.left, one.right), sides, len(factors[0].sides), site))
        elif isinstance(one, (tuple, list)) and one and all(isinstance(ref, (tuple, list, Equality)) for ref in one):
            pairs += predicates(one, factors, site)
        elif isinstance(one, (tuple, list)) and len(one) > 1:
            for pair in pairwise(one):
                pairs.append(_pair(pair, sides, len(factors[0].sides), site))
        else:
            raise IllegalRule(
                f"{site}: {one!r} is no predicate of a join: write a.x == b.y, (a.x, b.y) or {{'x': 'y'}}"
            )
    return pairs


def _pair(pair: tuple[Value, Value], sides: Sequence[Side], first: int, site: str) -> Pair:
    left, right = pair
    if isinstance(left, str) and isinstance(right, str):
        return _names(left, right, sides, first, site)
    if isinstance(left, str) or isinstance(right, str):
        raise IllegalRule(f"{site}: {left!r} and {right!r}: name both columns, or qualify both, as in a.x == b.y")
    one, other = find(left, sides, site), find(right, sides, site)
    if one[0] == other[0]:
        raise IllegalRule(
            f"{site}: {left!r} == {right!r} is about {sides[one[0]].name} alone: use filter(), or an alias() for a "
            "join of a collection with itself"
        )
    return one, other


def _names(left: str, right: str, sides: Sequence[Side], first: int, site: str) -> Pair:
    for name in (left, right):
        if not any(name in side.columns for side in sides):
            find(name, sides, site)
    if len(sides) == 2 or 0 < first < len(sides):
        lefts, rights = list(sides[:first]), list(sides[first:])
        if any(left in side.columns for side in lefts) and any(right in side.columns for side in rights):
            at, other = find(left, lefts, site), find(right, rights, site)
            return at, (other[0] + first, other[1])
        if len(sides) == 2 and right in lefts[0].columns and left in rights[0].columns:
            return (0, right), (1, left)
    one, two = find(left, sides, site), find(right, sides, site)
    if one[0] == two[0]:
        raise IllegalRule(f"{site}: {left!r} and {right!r} are both columns of {sides[one[0]].name}: use filter()")
    return one, two


def apart(factors: Sequence[Factor], pairs: Iterable[Pair]) -> tuple[list[plan.Expression], tuple[Side, ...]]:
    """The factors with attributes renamed apart but for those that are to be equal, and the sides over these."""
    owner = [at for at, factor in enumerate(factors) for _ in factor.sides]
    sides = [side for factor in factors for side in factor.sides]
    classes: dict[str, set[str]] = {}
    for (i, a), (j, b) in pairs:
        left = f"{owner[i]}.{sides[i].attribute(a)}"
        right = f"{owner[j]}.{sides[j].attribute(b)}"
        merged = classes.get(left, {left}) | classes.get(right, {right})
        classes.update(dict.fromkeys(merged, merged))
    rows: list[plan.Expression] = []
    names: dict[str, str] = {}
    for at, factor in enumerate(factors):
        expression = factor.rows
        renaming: dict[str, str] = {}
        for attribute in expression.heading:
            full = f"{at}.{attribute}"
            name = min(classes.get(full, {full}))
            names[full] = name
            twin = next((old for old, new in renaming.items() if new == name), None)
            if twin is not None:  # two columns of one factor are equal: one of them serves for both
                expression = plan.Selection(expression, plan.Compare(twin, "==", plan.Attr(attribute)))
                continue
            renaming[attribute] = name
        if len(renaming) < len(expression.heading):
            expression = plan.Projection(expression, tuple(renaming))
        rows.append(plan.Rename(expression, renaming))
    renamed_sides = tuple(
        evolve(side, attributes=tuple(names[f"{owner[at]}.{attribute}"] for attribute in side.attributes))
        for at, side in enumerate(sides)
    )
    return rows, renamed_sides


def inner(factors: Sequence[Factor], pairs: Iterable[Pair]) -> Factor:
    """The combinations of rows for which the pairs are equal."""
    rows, sides = apart(factors, pairs)
    return Factor(plan.NaturalJoin(*rows), sides)


def semi(left: Factor, right: Factor, pairs: Iterable[Pair]) -> Factor:
    """The rows of the left that match."""
    (ours, theirs), sides = apart([left, right], pairs)
    return Factor(plan.SemiJoin(ours, _shared(ours, theirs)), sides[: len(left.sides)])


def anti(left: Factor, right: Factor, pairs: Iterable[Pair]) -> Factor:
    """The rows of the left that do not match."""
    (ours, theirs), sides = apart([left, right], pairs)
    return Factor(plan.AntiJoin(ours, _shared(ours, theirs)), sides[: len(left.sides)])


def outer(left: Factor, right: Factor, pairs: Iterable[Pair]) -> Factor:
    """The combinations, and the rows of the left that have none, with None on the right."""
    (ours, theirs), sides = apart([left, right], pairs)
    mine, other = sides[: len(left.sides)], sides[len(left.sides) :]
    attributes = dict.fromkeys(a for side in mine for a in side.attributes)
    padded = dict.fromkeys(a for side in other for a in side.attributes)
    both = plan.Projection(
        plan.NaturalJoin(ours, theirs),
        [*((a, plan.Attr(a)) for a in attributes), *((f"right {a}", plan.Attr(a)) for a in padded)],
    )
    alone = plan.Projection(
        plan.AntiJoin(ours, _shared(ours, theirs)),
        [*((a, plan.Attr(a)) for a in attributes), *((f"right {a}", plan.Const(None)) for a in padded)],
    )
    moved = [evolve(side, attributes=tuple(f"right {a}" for a in side.attributes)) for side in other]
    return Factor(plan.Union(both, alone), (*mine, *moved))


def natural(factors: Sequence[Factor], site: str) -> list[Pair]:
    """All columns of the same name, equal."""
    sides = [side for factor in factors for side in factor.sides]
    names = dict.fromkeys(name for side in sides for name in side.columns)
    pairs: list[Pair] = []
    for name in names:
        pairs += pairwise([(at, name) for at, side in enumerate(sides) if name in side.columns])
    if not pairs:
        raise IllegalRule(f"{site}: {', '.join(side.name for side in sides)} have no column in common: use pairs()")
    return pairs


def positional(left: Factor, right: Factor, site: str) -> list[Pair]:
    """First column with first, and so on: whole rows."""
    mine, other = left.sides[0], right.sides[0]
    if len(left.sides) != 1 or len(right.sides) != 1 or len(mine.columns) != len(other.columns):
        raise IllegalRule(
            f"{site}: whole rows of {mine.name} and {other.name} cannot be equal, they differ in width: say which "
            "columns are to match"
        )
    return [((0, a), (1, b)) for a, b in zip(mine.columns, other.columns, strict=True)]


def _shared(ours: plan.Expression, theirs: plan.Expression) -> plan.Expression:
    return plan.Projection(theirs, [name for name in theirs.heading if name in ours.heading])


def distinct_names(names: Iterable[str]) -> Names:
    """The names, those that were there before with a number.

    >>> distinct_names(["a", "b", "a", "a"])
    ('a', 'b', 'a_1', 'a_2')
    """
    result: list[str] = []
    for name in names:
        number, new = 0, name
        while new in result:
            number += 1
            new = f"{name}_{number}"
        result.append(new)
    return tuple(result)


def factor_of(
    rows: plan.Expression,
    name: str = "this expression",
    columns: Names | None = None,
    attributes: Names | None = None,
) -> Factor:
    """Rows with columns of their own: their attributes, unless others are said."""
    shown = rows.heading if columns is None else columns
    return Factor(rows, (Side(object(), name, shown, rows.heading if attributes is None else attributes),))
