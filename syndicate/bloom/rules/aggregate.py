"""Aggregates of ``group``: the paper's and SQL's, and the user's own.

``from syndicate.bloom import agg``, then ``t.group([t.city], agg.sum(t.price), agg.count())``.  Rows that are equal in
all columns are one row, others count each: ``sum`` is SQL's over distinct rows, not over distinct values.

>>> concat = custom("price", init=lambda x: x, trans=lambda memo, x: memo + x, final=lambda memo: memo * 10)
>>> concat.aggregate.of({1: 1, 2: 1}), accum("x").aggregate.of({3: 1}), bool_and("x").aggregate.of({True: 1, 0: 1})
(30, frozenset({3}), False)

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Rows and keys" and "Methods of rows".
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from hashlib import blake2b

from attrs import frozen

from syndicate.bloom.rules.column import Column
from syndicate.errors import RowMisfit
from syndicate.flow import aggregates
from syndicate.flow.aggregates import Aggregate
from syndicate.flow.comparison import natural_order
from syndicate.flow.encoding import encoded
from syndicate.plan.algebra import Agg
from syndicate.values.value import Value

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
