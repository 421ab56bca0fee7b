"""Expressions: what is on the right of a rule, a description in the relational algebra with columns.

Nothing is computed when a block runs; each method gives a new expression.  Functions of rows take one row for each
side: of a collection one, of a join as many as are joined.

How many rows there are (``length``), and whether some, all, none or one of them pass a test, is answered by rows too:
one row if it holds, none if it does not, to be joined with or mapped.  All of these but ``any`` are points of order.

``t <= a and b``, and the chain ``t <= a <= b``, ask for the truth of something here, and are refused.

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Methods of rows".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import ismethod

from attrs import evolve, frozen

import syndicate.bloom.rules.symbols as joining  # the package has a function of its name
from syndicate import plan
from syndicate.bloom.declaration import Names, fitted_all, here, is_row, plain
from syndicate.bloom.rules import aggregate
from syndicate.bloom.rules.abstract_value import bound, mentioning
from syndicate.bloom.rules.aggregate import Refs, chosen, grouped, nested, reduced, with_index
from syndicate.bloom.rules.function import (
    Attribute,
    Bare,
    Fitting,
    Testing,
    called,
    composed,
    noted,
    numbered,
    origin_of,
    picks,
    result_columns,
    takes,
)
from syndicate.bloom.rules.monotonicity import followed
from syndicate.bloom.rules.symbols import (
    Column,
    Factor,
    Head,
    Marked,
    NoOperand,
    Side,
    astray,
    distinct_names,
    factor_of,
)
from syndicate.bloom.rules.term import (
    VALUE,
    LatticeTerm,
    RightSide,
    RowsTerm,
    Term,
    TermExpression,
    conversions,
    plan_of,
)
from syndicate.errors import IllegalRule, RowMisfit, UnknownColumn
from syndicate.flow.aggregates import count
from syndicate.flow.zset import ZSet
from syndicate.plan.algebra import listed, meant
from syndicate.values.value import Value

Function = Callable[..., Value]
Test = Callable[..., Value]


@frozen(eq=False)
class ComputedRows:
    """A function whose results are the rows, of *columns*, or of those that there are where they go."""

    call: Function
    many: bool
    columns: Names | None


class Expression(RowsTerm, NoOperand):
    """Rows, described; see the module.  Made by :func:`join`, and by the methods of collections."""

    _factor: Factor
    _computed: ComputedRows | None
    _site: str

    def __init__(self, factor: Factor, computed: ComputedRows | None = None, site: str | None = None) -> None:
        """Of a description; users get expressions from collections and from each other."""
        self._factor, self._computed, self._site = factor, computed, site or here()

    # --------------------------------------------------------------------------------------------------- columns

    def column(self, name: str) -> Column:
        """The column *name*, also where a method is called so; raises :class:`UnknownColumn`."""
        return self._column(name)

    def _column(self, name: str) -> Column:
        factor = self._resolved()
        if len(factor.sides) != 1:
            raise UnknownColumn(f"{here()}: a join's columns are those of what is joined: write collection.{name}")
        (side,) = factor.sides
        if name not in side.columns:
            raise UnknownColumn(
                f"{here()}: {side.name} has no column or method {name!r}{meant(name, side.columns)}; "
                f"the columns are {listed(side.columns)}"
            )
        return Column(side.owner, name, side.name)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._column(name.removesuffix("_"))

    def _resolved(self) -> Factor:
        """The rows with their columns; raises :class:`IllegalRule` where nobody knows how many there are."""
        if self._computed is None:
            return self._factor
        if self._computed.columns is None:
            raise IllegalRule(
                f"{self._site}: how many columns do this function's rows have? Say map(function, columns=[...])"
            )
        return self._settled(self._computed.columns)

    def _settled(self, columns: Names) -> Factor:
        assert self._computed is not None
        factor, computed = self._factor, self._computed
        self._factor = factor_of(
            plan.FlatMap(factor.rows, columns, Fitting(computed.call, columns, self._site, many=computed.many))
        )
        self._computed = None
        return self._factor

    def _bare(self, site: str) -> plan.Expression:
        """What a lattice is to merge: whatever a function gives, or the rows, as one column."""
        factor, computed = self._factor, self._computed
        if computed is None:
            whole = self.map(lambda row: row[:])
            factor, computed = whole._factor, whole._computed
        assert computed is not None
        return plan.FlatMap(factor.rows, VALUE, Bare(computed.call, many=computed.many))

    # --------------------------------------------------------------------------------------------------- rows to rows

    def map(self, function: Function, *, columns: Sequence[str] | None = None) -> Expression:
        """What *function* makes of each row: a row, or None for none; *columns* names its columns."""
        return self._mapped(function, columns, many=False)

    pro = map  # noqa: A003  # the method above is meant

    def flat_map(self, function: Function, *, columns: Sequence[str] | None = None) -> Expression:
        """All rows of what *function* makes of each row."""
        return self._mapped(function, columns, many=True)

    def _mapped(self, function: Function, columns: Sequence[str] | None, *, many: bool) -> Expression:
        site = here()
        if self._computed is not None and self._computed.columns is None:
            factor, cells = mentioning(self._factor, function)
            call = composed(self._computed.call, function, self._computed.many, many, site)
            if cells:
                call = bound(call, cells, [factor.rows.heading.index(f"value of {cell.tabname}") for cell in cells])
            before = origin_of(self._computed.call)
            noted(call, None if before is None else followed(before, self._computed.many, function))
            return computed_rows(factor, ComputedRows(call, True, None), site, columns)
        factor = self._resolved()
        moved = None if many else picks(function, factor.sides, site)
        if moved is not None:
            names = distinct_names([name for name, _ in moved]) if columns is None else tuple(columns)
            if len(names) == len(moved):
                return self._moved(factor, names, [value for _, value in moved])
        named = None if many else result_columns(function, factor.sides)
        factor, cells = mentioning(factor, function)
        call = called(function, factor.sides, factor.rows.heading, site, cells)
        return computed_rows(factor, ComputedRows(call, many, named), site, columns)

    def _moved(self, factor: Factor, names: Names, values: Sequence[Value]) -> Expression:
        """Columns of these *names*: attributes and constants; those of one whole side are still that side's."""
        scalars = [plan.Attr(str(one)) if isinstance(one, Attribute) else plan.Const(one) for one in values]
        projected = factor_of(plan.Projection(factor.rows, list(zip(names, scalars, strict=True))))
        whole = [side for side in factor.sides if side.columns == names and list(side.attributes) == values]
        if len(whole) == 1 and all(isinstance(one, Attribute) for one in values):
            owned = evolve(projected.sides[0], owner=whole[0].owner, name=whole[0].name)
            projected = Factor(projected.rows, (owned,))
        return Expression(projected)

    def filter(self, test: Function) -> Expression:
        """The rows for which *test* gives something true."""
        site = here()
        factor, cells = mentioning(self._resolved(), test)
        asked = Testing(called(test, factor.sides, factor.rows.heading, site, cells), site)
        return Expression(Factor(plan.Selection(factor.rows, plan.Holds(asked, *factor.rows.heading)), factor.sides))

    def _column_of(self, rows: plan.Expression, column: str) -> Expression:
        return Expression(factor_of(rows, column))

    def _flat(self) -> Expression:
        """The rows of a join as one row each, with the columns of all sides."""
        factor = self._resolved()
        names = distinct_names([name for side in factor.sides for name in side.columns])
        attributes = tuple(a for side in factor.sides for a in side.attributes)
        return Expression(factor_of(factor.rows, "flatten", names, attributes))

    def _then(self, factor: Factor, function: Function | None) -> Expression:
        made_here = Expression(factor)
        return made_here if function is None else made_here.map(function)

    def inspected(self) -> Expression:
        """Each row as one column of text."""
        return self.map(lambda *rows: (repr(rows[0] if len(rows) == 1 else rows),), columns=["text"])

    def alias(self, name: str = "") -> Expression:
        """The same rows as something else, whose columns have names of their own in a join with itself."""
        (side,) = self._one_side("alias")
        other = Expression(self._factor)
        other._factor = Factor(self._factor.rows, (evolve(side, owner=other, name=name or f"alias of {side.name}"),))
        return other

    def rename(self, **names: str) -> Expression:
        """Other names for columns: ``rename(old="new")``."""
        (side,) = self._one_side("rename")
        for old in names:
            self._column(old)
        columns = tuple(names.get(name, name) for name in side.columns)
        other = Expression(self._factor)
        other._factor = Factor(self._factor.rows, (evolve(side, owner=other, columns=columns),))
        return other

    def payloads(self) -> Expression:
        """The rows of a channel without its location; of a loopback and a terminal all columns, else all but the
        first.
        """
        (side,) = self._one_side("payloads")
        payload_columns = [
            (c, plan.Attr(a))
            for at, (c, a) in enumerate(zip(side.columns, side.attributes, strict=True))
            if at != side.address
        ]
        return Expression(factor_of(plan.Projection(self._factor.rows, payload_columns)))

    def _one_side(self, what: str) -> tuple[Side]:
        factor = self._resolved()
        if len(factor.sides) != 1:
            raise IllegalRule(f"{here()}: {what}() is for one collection, not for a join: flatten() it before")
        return (factor.sides[0],)

    def lefts(self, function: Function | None = None) -> Expression:
        """Of a join, the rows of the first that are in it."""
        return self._rows_of(0, function, "lefts")

    def rights(self, function: Function | None = None) -> Expression:
        """Of a join, the rows of the last that are in it."""
        return self._rows_of(-1, function, "rights")

    def flatten(self) -> Expression:
        """Of a join, its rows with all columns, a name that is there before made distinct (``x_1``)."""
        return self._flat()

    def _rows_of(self, at: int, function: Function | None, what: str) -> Expression:
        factor = self._resolved()
        if len(factor.sides) < 2:
            raise IllegalRule(f"{here()}: {what}() is for a join, and this is of one collection")
        side = factor.sides[at]
        rows = Expression(Factor(plan.Projection(factor.rows, tuple(dict.fromkeys(side.attributes))), (side,)))
        return rows if function is None else rows.map(function)

    # --------------------------------------------------------------------------------------------------- groups

    def group(self, keys: Refs, *aggregates: object, then: Function | None = None) -> Expression:
        """A row for each group: the *keys* and the aggregates (``agg.sum(column)``); no keys: one group."""
        return self._then(grouped(self._resolved(), keys, aggregates, here()), then)

    def argagg(
        self, aggregate: Function, keys: Refs, column: Column | str, *, then: Function | None = None
    ) -> Expression:
        """The rows whose *column* is what *aggregate* (``agg.min``) chose in their group; ties are kept."""
        return self._then(chosen(self._resolved(), aggregate, keys, column, here()), then)

    def argmin(self, keys: Refs, column: Column | str, *, then: Function | None = None) -> Expression:
        """The rows with the least *column* of their group."""
        return self.argagg(aggregate.min, keys, column, then=then)

    def argmax(self, keys: Refs, column: Column | str, *, then: Function | None = None) -> Expression:
        """The rows with the greatest *column* of their group."""
        return self.argagg(aggregate.max, keys, column, then=then)

    def reduce(
        self, initial: Value, function: Callable[[Value, Value], Value], *, columns: Sequence[str] | None = None
    ) -> Expression:
        """The rows of what *function*, of a memo and a row, makes of all rows in their order; of none, *initial*."""
        site = here()
        rows = reduced(self._resolved(), initial, function, site)
        factor = factor_of(rows, "reduce")
        return computed_rows(factor, ComputedRows(lambda row: row[0], True, None), site, columns)

    inject = reduce

    def nested(self) -> Expression:
        """One row with one column, ``rows``: the frozen set of all rows as tuples, also if there are none.

        It costs all of them whenever one changes.  ``flat_map(lambda row: row.rows)`` makes rows of them again.
        """
        self._one_side("nested")
        return Expression(nested(self._resolved()))

    def sort(self, key: Function | None = None) -> Expression:
        """The same rows: a collection has no order of its own.  each_with_index() takes a *key*."""
        return self

    def each_with_index(self, function: Function | None = None, *, key: Function | None = None) -> Expression:
        """Pairs of a row and its index in the order of rows, or by *key*; *function* takes both."""
        self._one_side("each_with_index")
        site = here()
        indexed = with_index(self._resolved(), key, site)
        if function is None:
            return Expression(indexed).map(lambda row, index: (row, index[0]), columns=["row", "index"])
        takes(function, 2, "a row and its index", site)
        return Expression(indexed).map(lambda row, index: function(row, index[0]))

    # --------------------------------------------------------------------------------------------------- two of them

    def _beside(
        self, other: object, on: Sequence[object]
    ) -> tuple[Factor, Factor, list[joining.Pair], Function | None]:
        """Both sides, the attributes in which rows are to agree, all if nothing is said, and a function of both."""
        site = here()
        left, right = self._resolved(), to_expression(other, site)._resolved()
        predicates, function = _apart(on)
        pairs = joining.predicates(predicates, [left, right], site)
        if function is None and not pairs:
            pairs = joining.positional(left, right, site)
        return left, right, pairs, function

    def notin(self, other: object, *on: object) -> Expression:
        """The rows that match none of *other*: as a whole, or by predicates and a function of both."""
        left, right, pairs, function = self._beside(other, on)
        if function is None:
            return Expression(joining.anti(left, right, pairs))
        both = joining.inner([left, right], pairs)
        passed = Expression(both).filter(function)._factor
        sides = both.sides[: len(left.sides)]
        columns = [
            (c, plan.Attr(a))
            for side, new in zip(left.sides, sides, strict=True)
            for c, a in zip(side.attributes, new.attributes, strict=True)
        ]
        matched = plan.Projection(passed.rows, list(dict(columns).items()))
        mine = plan.Projection(left.rows, [name for name, _ in dict(columns).items()])
        return Expression(Factor(plan.Difference(mine, matched), left.sides))

    def exists(self, other: object, *on: object) -> Expression:
        """The rows that match one of *other*: as a whole, or by predicates and a function of both."""
        left, right, pairs, function = self._beside(other, on)
        if function is None:
            return Expression(joining.semi(left, right, pairs))
        both = joining.inner([left, right], pairs)
        sides = both.sides[: len(left.sides)]
        attributes = dict.fromkeys(a for side in sides for a in side.attributes)
        return Expression(
            Factor(plan.Projection(Expression(both).filter(function)._factor.rows, tuple(attributes)), sides)
        )

    def include(self, *row: Value) -> Expression:
        """The one row that is equal to the arguments, if it is there."""
        (side,) = self._one_side("include")
        wanted = fitted_all([row], side.columns, here())[0]
        conditions = [plan.Compare(a, "==", plan.Const(v)) for a, v in zip(side.attributes, wanted, strict=True)]
        return Expression(Factor(plan.Selection(self._factor.rows, *conditions), (side,)))

    # --------------------------------------------------------------------------------------------------- asking

    def _attributes_of(self, test: Test | None = None) -> plan.Expression:
        factor = self._resolved() if test is None else self.filter(test)._resolved()
        return plan.Projection(factor.rows, tuple(dict.fromkeys(a for side in factor.sides for a in side.attributes)))

    def length(self) -> Expression:
        """One row, of how many rows there are: 0 if none."""
        rows = self._attributes_of()
        counted = plan.GroupBy(rows, (), [("length", plan.Agg(count))])
        none = plan.AntiJoin(plan.Literal(("length",), [(0,)]), plan.Projection(rows, ()))
        return self._column_of(plan.Union(counted, none), "length")

    def empty(self) -> Expression:
        """One row, ``(True,)``, if there is none."""
        return self.none()

    def any(self, test: Test | None = None) -> Expression:
        """One row, ``(True,)``, if there is a row that passes."""
        return self._column_of(plan.SemiJoin(_TRUE, plan.Projection(self._attributes_of(test), ())), "holds")

    def none(self, test: Test | None = None) -> Expression:
        """One row, ``(True,)``, if no row passes."""
        return self._column_of(plan.AntiJoin(_TRUE, plan.Projection(self._attributes_of(test), ())), "holds")

    def all(self, test: Test) -> Expression:
        """One row, ``(True,)``, if no row fails to pass."""
        passed, rows = self._attributes_of(test), self._attributes_of()
        failed = plan.Difference(rows, passed)
        return self._column_of(plan.AntiJoin(_TRUE, plan.Projection(failed, ())), "holds")

    def one(self, test: Test | None = None) -> Expression:
        """One row, ``(True,)``, if exactly one row passes."""
        counted = plan.GroupBy(self._attributes_of(test), (), [("length", plan.Agg(count))])
        single = plan.Selection(counted, plan.Compare("length", "==", 1))
        return self._column_of(plan.SemiJoin(_TRUE, plan.Projection(single, ())), "holds")

    def member(self, *row: Value) -> Expression:
        """The same as ``include``."""
        return self.include(*row)

    def on_include(self, row: Value, function: Test) -> Expression:
        """What *function* makes of a row, if it is there."""
        return self.include(*row).map(function)

    def __mul__(self, other: object) -> JoinedSides:
        product: JoinedSides = JoinedSides([self]) * other
        return product

    def __bool__(self) -> bool:
        raise IllegalRule(
            f"{here()}: an expression has no truth while a program is made (and, or, not, if, a chain of comparisons): "
            "use filter(), exists() or notin()"
        )

    def _no_target(self, _: object) -> object:
        raise IllegalRule(
            f"{here()}: only a collection can stand on the left of a rule's operator, and only <= <+ <- <~ <+-"
        )

    __ge__ = __gt__ = __le__ = __lt__ = _no_target


_TRUE = plan.Literal(("holds",), [(True,)])


class JoinedSides(RightSide, NoOperand):
    """``a * b * c``: what is joined, before it is said how."""

    def __init__(self, factors: Sequence[Expression]) -> None:
        """Of expressions; users write ``a * b``."""
        self._factors = list(factors)

    def __mul__(self, other: object) -> JoinedSides:
        if isinstance(other, Marked):
            raise astray(other)
        more = other._factors if isinstance(other, JoinedSides) else [to_expression(other, here())]
        return JoinedSides([*self._factors, *more])

    def _bare(self, site: str) -> plan.Expression:
        return self.pairs()._bare(site)

    def __getattr__(self, name: str) -> Value:
        """What nothing is said of here is done with all combinations."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.pairs(), name)

    def _all(self) -> list[Factor]:
        return [one._resolved() for one in self._factors]

    def pairs(self, *on: object) -> Expression:
        """The combinations for which the predicates hold; a function, if it comes last, makes rows of them."""
        predicates, function = _apart(on)
        factors, site = self._all(), here()
        joined = Expression(joining.inner(factors, joining.predicates(predicates, factors, site)))
        return joined if function is None else joined.map(function)

    combos = pairs

    def matches(self, function: Function | None = None) -> Expression:
        """The combinations that agree in all columns of the same name."""
        factors = self._all()
        joined = Expression(joining.inner(factors, joining.natural(factors, here())))
        return joined if function is None else joined.map(function)

    def lefts(self, *on: object) -> Expression:
        """The rows of the first that match the others."""
        return self._one_of(0, on, "lefts")

    def rights(self, *on: object) -> Expression:
        """The rows of the last that match the others."""
        return self._one_of(len(self._factors) - 1, on, "rights")

    def _one_of(self, at: int, on: Sequence[object], what: str) -> Expression:
        predicates, function = _apart(on)
        factors, site = self._all(), here()
        if len(factors) != 2:
            raise IllegalRule(
                f"{site}: {what}() is for a join of two, not of {len(factors)}: use pairs() with a function"
            )
        pairs = joining.predicates(predicates, factors, site)
        if at:
            wide = len(factors[0].sides)
            narrow = len(factors[1].sides)
            moved = [tuple(sorted(((i + narrow) if i < wide else i - wide, c) for i, c in pair)) for pair in pairs]
            matched = Expression(joining.semi(factors[1], factors[0], [(a, b) for a, b in moved]))
        else:
            matched = Expression(joining.semi(factors[0], factors[1], pairs))
        return matched if function is None else matched.map(function)

    def outer(self, *on: object) -> Expression:
        """The combinations of two, and the rows of the left that have none, with a row of None on the right."""
        predicates, function = _apart(on)
        factors, site = self._all(), here()
        if len(factors) != 2:
            raise IllegalRule(f"{site}: outer() is for a join of two, not of {len(factors)}")
        joined = Expression(joining.outer(factors[0], factors[1], joining.predicates(predicates, factors, site)))
        return joined if function is None else joined.map(function)

    def flatten(self, *on: object) -> Expression:
        """The combinations as rows with all columns, a name that is there before made distinct (``x_1``)."""
        return self.pairs(*on)._flat()

    def __bool__(self) -> bool:
        return bool(self._factors[0])


# ------------------------------------------------------------------------------------------------------- makers

conversions.product = lambda term, other: to_expression(term, here()) * other


def computed_rows(factor: Factor, computed: ComputedRows, site: str, columns: Iterable[str] | None) -> Expression:
    """The rows of a function, over *columns*, or over those that there are where they go."""
    expression = Expression(factor, computed, site)
    if columns is not None:
        expression._settled(tuple(columns))
    return expression


def values(*rows: Value) -> Expression:
    """Rows that are always there: ``values((1, 2), (3, 4))``.

    Where a row holds a lattice, or a term, it follows what that is; where it holds a collection, or an expression, the
    frozen set of the rows of that (:meth:`Expression.nested`).

    >>> values((1, 2), (3,))._resolved().rows
    Literal((1, 2), (3, None))
    """
    site = here()
    for row in rows:
        if not is_row(row):
            raise RowMisfit(f"{site}: {row!r} is no row: write values(({row!r},))")
    width = max((len(row) for row in rows), default=0)
    names = numbered(width)
    padded = [(*row, *(None,) * (width - len(row))) for row in rows]
    following: list[Sequence[Value]] = []
    fixed: list[Sequence[Value]] = []
    for row in padded:
        (following if any(isinstance(part, _FOLLOWED) for part in row) else fixed).append(row)
    bodies: list[plan.Expression] = [_following(row, names, site) for row in following]
    if fixed or not bodies:
        bodies.append(plan.Literal(names, [*map(plain, fixed)]))
    return Expression(factor_of(plan.Union(*bodies) if len(bodies) > 1 else bodies[0], "values"))


_FOLLOWED = (Term, Expression, JoinedSides)


def _following(row: Sequence[Value], names: Names, site: str) -> plan.Expression:
    """A literal row that holds variables and collections, as the product of what they are."""
    fixed = [(name, part) for name, part in zip(names, row, strict=True) if not isinstance(part, _FOLLOWED)]
    parts: list[plan.Expression] = [plan.Literal([name for name, _ in fixed], [plain(part for _, part in fixed)])]
    for name, part in zip(names, row, strict=True):
        if isinstance(part, _FOLLOWED):
            one = to_expression(part, site)
            rows = (one if isinstance(part, Term) else one.nested())._resolved().rows
            parts.append(plan.Rename(rows, {rows.heading[0]: name}))
    return plan.Projection(plan.NaturalJoin(*parts), names)


def join_of(relations: Sequence[object], *on: object) -> Expression:
    """The paper's form: ``join([a, b, c], [a.x, b.x], [b.y, c.y])``; the columns of each list are equal.

    >>> from syndicate.bloom import Bloom, bloom, join, scratch, table
    >>> class Graph(Bloom):
    ...     edges = table(["a", "b"])
    ...     cities = table(["name"], ["country"])
    ...     abroad = scratch(["a", "b"])
    ...     @bloom
    ...     def rules(self):
    ...         two = join([self.edges, self.cities], [self.edges.b, self.cities.name])
    ...         self.abroad <= two.map(lambda edge, city: (edge.a, city.country))
    >>> graph = Graph()
    >>> graph.edges.insert([("Rome", "Paris")]); graph.cities.insert([("Paris", "France")])
    >>> graph.tick(); print(sorted(graph.abroad))
    [(a='Rome', b='France')]
    """
    if not isinstance(relations, (list, tuple)) or len(relations) < 2:
        raise IllegalRule(f"{here()}: join takes a list of two collections or more: join([a, b], [a.x, b.x])")
    product = JoinedSides([to_expression(relations[0], here())])
    for other in relations[1:]:
        product = product * other
    return product.pairs(*on)


def to_expression(source: object, site: str) -> Expression:
    """What may be used where an expression is needed; raises :class:`IllegalRule`, :class:`RowMisfit`.

    A lattice, or a term, is one row of its value here, so that it can be joined with.
    """
    if isinstance(source, Expression):
        return source
    if isinstance(source, LatticeTerm):
        return Expression(Factor(plan.Relation(source.tabname, VALUE), (Side(source, source.tabname, VALUE, VALUE),)))
    if isinstance(source, Term):
        return Expression(factor_of(TermExpression(plan_of(source), source, VALUE), str(source)))
    if isinstance(source, JoinedSides):
        return source.pairs()
    if isinstance(source, Marked):
        raise astray(source)
    if isinstance(source, (list, tuple, set, frozenset, dict, ZSet)):
        return values(*(source.items() if isinstance(source, dict) else source))
    if isinstance(source, Column):
        raise IllegalRule(
            f"{site}: {source!r} is a column: for its values, write map(lambda row: (row.{source.name},))"
        )
    if ismethod(source):
        raise IllegalRule(f"{site}: {source.__name__} is a method here: call it, as in {source.__name__}(...)")
    raise RowMisfit(f"{site}: {source!r} holds no rows: use a collection, an expression, or values((1, 2), ...)")


def body_of(expression: Expression, columns: Names, name: str, site: str, head: Head) -> plan.Expression:
    """The rows over the columns of the collection *name*, which is *head*; raises :class:`IllegalRule`."""
    computed = expression._computed
    if computed is not None:
        call = Fitting(computed.call, columns, site, many=computed.many, head=head)
        return plan.FlatMap(expression._factor.rows, columns, call)
    factor = expression._resolved()
    if len(factor.sides) > 1:  # Bud's: a tuple of rows
        if len(factor.sides) > len(columns):
            raise IllegalRule(
                f"{site}: rows of a join of {len(factor.sides)} do not fit {name} ({', '.join(columns)}): give "
                "the join a function, or flatten() it"
            )
        return body_of(expression.map(lambda *rows: rows), columns, name, site, head)
    (side,) = factor.sides
    if len(side.columns) > len(columns):
        raise IllegalRule(
            f"{site}: the rows have {len(side.columns)} columns ({', '.join(side.columns)}), more than {name} "
            f"has {len(columns)}: {', '.join(columns)}"
        )
    scalars = [plan.Attr(a) for a in side.attributes]
    padding = [plan.Const(None)] * (len(columns) - len(scalars))
    return plan.Projection(factor.rows, list(zip(columns, [*scalars, *padding], strict=True)))


def literal_of(source: Expression | JoinedSides, site: str) -> list[Value] | None:
    """The rows, where they are written out; None where they are not."""
    body = to_expression(source, site)._factor.rows
    return list(body.rows) if isinstance(body, plan.Literal) else None


def _apart(on: Sequence[object]) -> tuple[Sequence[object], Function | None]:
    """Predicates, and the function that may come last."""
    if on and callable(on[-1]) and not isinstance(on[-1], Column):
        return on[:-1], on[-1]
    return on, None
