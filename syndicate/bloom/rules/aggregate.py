"""Aggregates of ``group``: the paper's and SQL's, and the user's own.

``from syndicate.bloom import agg``, then ``t.group([t.city], agg.sum(t.price), agg.count())``.  Rows that are equal in
all columns are one row, others count each: ``sum`` is SQL's over distinct rows, not over distinct values.

>>> concat = custom("price", init=lambda x: x, trans=lambda memo, x: memo + x, final=lambda memo: memo * 10)
>>> concat.aggregate.of({1: 1, 2: 1}), accum("x").aggregate.of({3: 1}), bool_and("x").aggregate.of({True: 1, 0: 1})
(30, frozenset({3}), False)

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Rows and keys" and "Methods of rows".

Folds: groups, choices of rows, reductions and numbering, as relational algebra.

All of them must know all of what they read: they are points of order.

Source: Bud; ``docs/design/bloom.md``, "Methods of rows" and "Rows and keys".
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from inspect import isfunction

from attrs import evolve, frozen

from syndicate import plan
from syndicate.bloom.declaration import Names, is_row, plain, row_type
from syndicate.bloom.rules.function import failure, takes
from syndicate.bloom.rules.symbols import Column, Factor, Side, attribute, distinct_names, factor_of
from syndicate.errors import IllegalRule, RowMisfit
from syndicate.flow import aggregates
from syndicate.flow.aggregates import Aggregate
from syndicate.flow.comparison import natural_order
from syndicate.flow.encoding import encoded
from syndicate.plan.algebra import Agg
from syndicate.values.value import Value

# ---------------------------------------------------------------------------------------------- aggregates of ``group``


Ref = Column | str


@frozen
class GroupAggregate:
    """An aggregate of columns; an *exemplary* one chooses among the values, and so can choose rows.

    With *ties* it gives the tuple of the values that it chooses: ``argagg`` takes the rows with any of them, ``group``
    the first.
    """

    name: str
    aggregate: Aggregate
    columns: tuple[Ref, ...] = ()
    exemplary: bool = False
    ties: bool = False


def _user(function: Callable[[Mapping[Value, int]], Value]) -> Aggregate:
    return Agg(function).aggregate


def _all_of(group: Mapping[Value, int]) -> bool:
    return all(group)


def _any_of(group: Mapping[Value, int]) -> bool:
    return any(group)


def count(column: Ref | None = None) -> GroupAggregate:
    """How many rows there are; a *column* changes nothing."""
    return GroupAggregate("count", aggregates.count)


def sum(column: Ref) -> GroupAggregate:  # noqa: A001  # SQL's name
    """The sum over the rows."""
    return GroupAggregate("sum", aggregates.sum, (column,))


def avg(column: Ref) -> GroupAggregate:
    """The mean over the rows, a float."""
    return GroupAggregate("avg", aggregates.avg, (column,))


def min(column: Ref) -> GroupAggregate:  # noqa: A001  # SQL's name
    """The least value."""
    return GroupAggregate("min", aggregates.min, (column,), exemplary=True)


def max(column: Ref) -> GroupAggregate:  # noqa: A001  # SQL's name
    """The greatest value."""
    return GroupAggregate("max", aggregates.max, (column,), exemplary=True)


def choose(column: Ref) -> GroupAggregate:
    """One of the values, always the same of the same values: the least."""
    return GroupAggregate("choose", aggregates.min, (column,), exemplary=True)


def choose_rand(column: Ref, *, seed: int = 0) -> GroupAggregate:
    """One of the values at random, the same for the same *seed* and values, in every run and order.

    Each value draws a number by a keyed hash, and the greatest wins: another value changes the choice only if it wins.

    >>> drawn = {choose_rand("x", seed=seed).aggregate.of({1: 1, 2: 1, 3: 1}) for seed in range(20)}
    >>> fourth = choose_rand("x", seed=4).aggregate
    >>> drawn, fourth.of({3: 1, 1: 1}) == fourth.of({1: 1, 3: 1})
    ({1, 2, 3}, True)
    """
    key = str(seed).encode()

    def drawn(value: Value) -> bytes:
        return blake2b(encoded((value,)), key=key, digest_size=16).digest()

    def chosen(group: Mapping[Value, int]) -> Value:
        return builtins.max(group, key=drawn)

    return GroupAggregate("choose_rand", _user(chosen), (column,), exemplary=True)


def exemplary(column: Ref, trans: Callable[[Value, Value], str], *, name: str = "exemplary") -> GroupAggregate:
    """The user's choice of values: *trans*, of the chosen one and another, says ``ignore``, ``keep`` or ``replace``.

    ``keep`` is a tie: both are chosen.  Values come in their order, the first is chosen at first.

    >>> longest = exemplary("word", lambda best, word: "ignore" if len(word) < len(best) else
    ...                     "keep" if len(word) == len(best) else "replace")
    >>> longest.aggregate.of({"a": 1, "bb": 1, "cc": 1})
    ('bb', 'cc')
    """

    def chosen(group: Mapping[Value, int]) -> tuple[Value, ...]:
        values = sorted(group, key=natural_order)
        best = values[:1]
        for value in values[1:]:
            verdict = trans(best[0], value)
            if verdict not in ("ignore", "keep", "replace"):
                raise RowMisfit(f"{name}: trans says 'ignore', 'keep' or 'replace', not {verdict!r}")
            best = [*best, value] if verdict == "keep" else [value] if verdict == "replace" else best
        return tuple(best)

    return GroupAggregate(name, _user(chosen), (column,), exemplary=True, ties=True)


def bool_and(column: Ref) -> GroupAggregate:
    """Whether all values are true."""
    return GroupAggregate("bool_and", _user(_all_of), (column,), exemplary=True)


def bool_or(column: Ref) -> GroupAggregate:
    """Whether any value is true."""
    return GroupAggregate("bool_or", _user(_any_of), (column,), exemplary=True)


def accum(column: Ref, *more: Ref) -> GroupAggregate:
    """The frozen set of the values; of several columns, of their tuples: rows in a row."""
    return GroupAggregate("accum", _user(frozenset), (column, *more))


def accum_pair(first: Ref, second: Ref) -> GroupAggregate:
    """The frozen set of the pairs."""
    return GroupAggregate("accum_pair", _user(frozenset), (first, second))


def custom(
    *columns: Ref,
    init: Callable[[Value], Value],
    trans: Callable[[Value, Value], Value],
    final: Callable[[Value], Value] = lambda memo: memo,
    name: str = "custom",
    exemplary: bool = False,
) -> GroupAggregate:
    """The user's: from the first value, by *trans* with each further row's, to *final*; values come in their order."""

    def folded(group: Mapping[Value, int]) -> Value:
        values = [value for value in sorted(group, key=natural_order) for _ in range(group[value])]
        memo = init(values[0])
        for value in values[1:]:
            memo = trans(memo, value)
        return final(memo)

    return GroupAggregate(name, _user(folded), columns, exemplary)


# ---------------------------------------------------------------------------------------------------------------- folds


Refs = Sequence[Column | str] | None


def grouped(factor: Factor, keys: Refs, aggregates: Sequence[object], site: str) -> Factor:
    """A row for each group."""
    by = [attribute(key, factor.sides, site) for key in keys or ()]
    names = [key if isinstance(key, str) else key.name for key in keys or ()]
    aggs: list[tuple[str, plan.Agg]] = []
    several: list[GroupAggregate] = []
    for one in aggregates:
        if not isinstance(one, GroupAggregate):
            said = f"agg.{one.__name__} is a function: call it," if isfunction(one) else f"{one!r} is no aggregate:"
            raise IllegalRule(f"{site}: {said} as in agg.sum(column) or agg.count()")
        several.append(one)
        of = tuple(attribute(column, factor.sides, site) for column in one.columns)
        aggs.append((f"{one.name} {len(aggs)}", plan.Agg(one.aggregate, of)))
        names.append("_".join([one.name, *(c if isinstance(c, str) else c.name for c in one.columns)]))
    groups: plan.Expression = plan.GroupBy(factor.rows, by, aggs) if aggs else plan.Projection(factor.rows, by)
    tied = [len(by) + at for at, one in enumerate(several) if one.ties]
    if tied:
        groups = plan.Map(
            groups, groups.heading, lambda row: tuple([v[0] if at in tied else v for at, v in enumerate(row)])
        )
    return factor_of(groups, "group", distinct_names(names), (*by, *(name for name, _ in aggs)))


def chosen(factor: Factor, aggregate: Callable[..., Value], keys: Refs, column: Column | str, site: str) -> Factor:
    """The rows with the chosen value of their group."""
    one = aggregate(column)
    if not isinstance(one, GroupAggregate) or not one.exemplary:
        raise IllegalRule(f"{site}: argagg needs an aggregate that chooses a value, such as agg.min, not {aggregate!r}")
    of = attribute(column, factor.sides, site)
    by = [name for key in keys or () if (name := attribute(key, factor.sides, site)) != of]
    best: plan.Expression = plan.GroupBy(factor.rows, by, [("best", plan.Agg(one.aggregate, of))])
    if one.ties:
        best = plan.FlatMap(best, (*by, "best"), _each)
    return Factor(plan.SemiJoin(factor.rows, plan.Rename(best, {"best": of})), factor.sides)


def reduced(factor: Factor, initial: Value, function: Callable[[Value, Value], Value], site: str) -> plan.Expression:
    """One row of one column: the tuple of the rows that all of them are reduced to."""
    if len(factor.sides) != 1:
        raise IllegalRule(f"{site}: reduce() is for one collection, not for a join: flatten() it before")
    takes(function, 2, "a memo and a row", site)
    (side,) = factor.sides
    call = _Reducing(initial, function, side.columns, site)
    result = plan.GroupBy(factor.rows, (), [("made", plan.Agg(call, side.attributes))])
    none = plan.Literal(("made",), [(call.result(initial),)])
    return plan.Union(result, plan.AntiJoin(none, plan.Projection(factor.rows, ())))


def nested(factor: Factor) -> Factor:
    """One row of one column: the frozen set of all rows, of none the empty one."""
    (side,) = factor.sides

    def nest(group: Mapping[Value, int]) -> frozenset[tuple[Value, ...]]:
        return frozenset(_rows(group, side.columns))

    some = plan.GroupBy(factor.rows, (), [("rows", plan.Agg(nest, side.attributes))])
    none = plan.AntiJoin(plan.Literal(("rows",), [(frozenset(),)]), plan.Projection(factor.rows, ()))
    return factor_of(plan.Union(some, none), f"nested {side.name}")


def with_index(factor: Factor, key: Callable[[Value], Value] | None, site: str) -> Factor:
    """Each row with its index, from 0."""
    if key is not None:
        takes(key, 1, "a row", site)
    (side,) = factor.sides
    number = _Numbering(side.columns, key, site)
    together = plan.GroupBy(factor.rows, (), [("made", plan.Agg(number, side.attributes))])
    rows = plan.FlatMap(together, (*side.columns, "index of row"), _first)
    return Factor(rows, (evolve(side, attributes=side.columns), Side(None, "index", ("index",), ("index of row",))))


def _each(row: Value) -> Value:
    return [(*row[:-1], value) for value in row[-1]]


def _first(row: Value) -> Value:
    return row[0]


def _rows(group: Mapping[Value, int], columns: Names) -> list[tuple[Value, ...]]:
    """The rows of a group: an aggregate of one column sees bare values."""
    return [(one,) for one in group] if len(columns) == 1 else list(group)


class _Reducing:
    __name__ = "reduce"

    def __init__(self, initial: Value, function: Callable[[Value, Value], Value], columns: Names, site: str) -> None:
        self.initial, self.function, self.columns, self.site = initial, function, columns, site

    def __call__(self, group: Mapping[Value, int]) -> Value:
        memo, kind = self.initial, row_type(self.columns)
        for row in sorted(_rows(group, self.columns), key=natural_order):
            try:
                memo = self.function(memo, tuple.__new__(kind, row))
            except Exception as error:
                raise failure(self.site, error, row) from error
        return self.result(memo)

    def result(self, memo: Value) -> tuple[Value, ...]:
        """What is reduced to, as a tuple of rows."""
        if not hasattr(memo, "__iter__") or isinstance(memo, (str, bytes)):
            raise RowMisfit(f"{self.site}: reduce gave {memo!r}, which holds no rows: give a list of tuples")
        rows = memo.items() if isinstance(memo, Mapping) else memo
        return tuple([plain(row) if is_row(row) else row for row in rows])


class _Numbering:
    __name__ = "each_with_index"

    def __init__(self, columns: Names, key: Callable[[Value], Value] | None, site: str) -> None:
        self.columns, self.key, self.site = columns, key, site

    def __call__(self, group: Mapping[Value, int]) -> Value:
        return tuple((*row, at) for at, row in enumerate(sorted(_rows(group, self.columns), key=self._place)))

    def _place(self, row: tuple[Value, ...]) -> Value:
        if self.key is None:
            return natural_order(row)
        try:
            return (natural_order(self.key(tuple.__new__(row_type(self.columns), row))), natural_order(row))
        except Exception as error:
            raise failure(self.site, error, row) from error
