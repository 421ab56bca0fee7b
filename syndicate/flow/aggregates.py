"""Aggregates: what a group of an indexed stream is summed up to.

An aggregate is data: engines choose how to keep it up to date by its *form*; :meth:`Aggregate.of` says what
it is, for one whole group.  ``count``, ``sum`` and ``avg`` are linear: they weigh each value with its weight, and a
group has no row if its weights add up to 0.  ``min``, ``max`` and ``top_k`` look at the values of positive weight,
each once, and a group without such has no row.  So no group ever shows a count of 0.

Called with a function, ``sum`` and its like take what the function makes of each value: ``sum(lambda row: row[2])``.
Floats and decimals are summed exactly, and floats rounded once, so that the order of changes does not matter and a
retraction leaves nothing behind.  A user's aggregate is :func:`linear` if a change of the group is all that it needs,
and so costs what ``sum`` does whatever the group's size; or else a function of the group, ``{value: weight}``
(:func:`user`), where None means no row.  Both must be pure.  A class of lattices is an aggregate as well: the values of
positive weight, each made an element of it, are merged (:func:`lattice`), or tuples column by column
(:func:`product`).

>>> sum(lambda row: row[1]).of({("a", 2): 1, ("b", 5): 2}), min.of({3: 1, 2: -1}), count.of({})
(12, 3, None)
>>> top_k(2, lambda row: row[1]).of({("a", 2): 1, ("b", 5): 1, ("c", 3): 1})
(('b', 5), ('c', 3))

Source: Budiu et al. 2023, on grouping and aggregation; ``docs/design/flow.md``, "Aggregates of one's own".
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Inexact, localcontext
from operator import is_
from typing import Final, Protocol, Self, TypeAlias, cast

from attrs import evolve, field, frozen

from syndicate.errors import CircuitError
from syndicate.flow.comparison import natural_order
from syndicate.flow.element import Element, key_of, rank

Group: TypeAlias = Mapping[Element, int]
"""The values of a group with their weights, none of them 0."""

_ORDERED: Final = frozenset({int, str, bytes})  # whose own order is the natural one
LINEAR: Final = frozenset({"count", "sum", "avg", "linear"})


@frozen
class Fold:
    """What a linear aggregate keeps of a group: a total that begins at *zero*, changed by *add*, shown by *result*.

    Made by :func:`linear`.
    """

    zero: Element
    add: Callable[[Element, Element, int], Element]
    result: Callable[[Element], Element] | None = None

    def shown(self, number: int, total: Element) -> Element:
        """The result for a group of so many values; None for no row."""
        if not number:
            return None
        return total if self.result is None else self.result(total)


class Merging(Protocol):
    """Elements with a merge that is associative, commutative and idempotent, as those of a lattice are."""

    @classmethod
    def of(cls, element: Element, /) -> Self:
        """The element for one value of a group."""
        ...

    def merge(self, other: Self, /) -> Self:
        """The least upper bound of the two."""
        ...


@frozen
class Aggregate:
    """What is computed of a group: *form* is ``count sum avg min max top lattice linear`` or ``user``.

    Made by :func:`top_k` and the like; ``count`` is one.
    *lattice* is the class of what the values of a group are made; without one they are such elements already.  With
    *columns* they are tuples of these.
    """

    form: str
    by: Callable[[Element], Element] | None = None
    function: Callable[[Group], Element] | None = None
    size: int = 0
    name: str = field(default="")
    fold: Fold | None = None
    lattice: type[Merging] | None = None
    columns: tuple[Aggregate, ...] = ()

    def __call__(self, by: Callable[[Element], Element]) -> Aggregate:
        """The same of what *by* makes of each value."""
        if self.form in ("user", "linear", "top", "count") or self.by is not None or self.columns:
            raise CircuitError(f"{self} takes no function: index_with(key, value) chooses what is aggregated")
        if not callable(by):
            raise CircuitError(f"{self} takes a function of each value, not {by!r}: {self}(lambda row: row[1])")
        return evolve(self, by=by)

    def of(self, group: Group) -> Element:
        """The result for one group, None for no row."""
        if self.function is not None:
            return self.function(group)
        by = self.by
        if self.form in LINEAR:
            number = builtins.sum(group.values())
            if self.form == "count" or not number:
                return number or None
            if self.fold is not None:
                folded = self.fold.zero
                for value, weight in group.items():
                    folded = self.fold.add(folded, value, weight)
                return self.fold.shown(number, folded)
            total = Total()
            for value, weight in group.items():
                total.add(value if by is None else by(value), weight)
            return total.result() if self.form == "sum" else total.mean(number)
        present = [value for value, weight in group.items() if weight > 0]
        if self.form == "lattice":
            return shown(self.merged(None, present))
        if not present:
            return None
        if self.form == "top":
            return tuple(sorted(present, key=self.place)[: self.size])
        measures = present if by is None else list(map(by, present))
        kinds = set(map(type, measures))
        if len(kinds) == 1 and kinds <= _ORDERED:
            return (builtins.min if self.form == "min" else builtins.max)(measures)
        best = builtins.min(present, key=self.place)
        return best if by is None else by(best)

    def merged(self, so_far: Element, values: Iterable[Element]) -> Element:
        """*so_far* with more values of a group merged into it; None where there is nothing, and for None.

        Of tuples, columns in which there is nothing yet have None: see :func:`shown`.
        """
        for value in values:
            element = self.element(value)
            if element is not None:
                so_far = element if so_far is None else both(so_far, element)
        return so_far

    def element(self, value: Element) -> Element:
        """The element of the lattice for one value; None for None."""
        if self.columns:
            return tuple([column.element(one) for column, one in zip(self.columns, value, strict=True)])
        if self.by is not None:
            value = self.by(value)
        if value is None or self.lattice is None or isinstance(value, self.lattice):
            return value
        return self.lattice.of(value)

    def place(self, value: Element) -> tuple[Element, ...]:
        """The sort key by which the first value is the best."""
        by = self.by
        measure = natural_order(value if by is None else by(value))
        if self.form != "min":
            measure = Descending(measure)
        return (measure,) if by is None else (measure, rank(value))

    def __str__(self) -> str:
        return self.name or self.form


def both(one: Element, other: Element) -> Element:
    """The merge of two elements, of tuples column by column, where None adds nothing; *one* if *other* adds nothing."""
    if type(one) is not tuple:
        return one.merge(other)
    merged = tuple(
        [
            mine if theirs is None or theirs is mine else theirs if mine is None else both(mine, theirs)
            for mine, theirs in zip(one, other, strict=True)
        ]
    )
    return one if all(map(is_, merged, one)) else merged


def shown(element: Element) -> Element:
    """What a fold shows of an element: None for no row, as for a tuple of which a column has nothing yet."""
    return None if type(element) is tuple and any(shown(column) is None for column in element) else element


class Descending:
    """A sort key turned round."""

    __slots__ = ("key",)

    def __init__(self, key: Element) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.key == other.key

    __hash__ = None  # type: ignore[assignment]  # as Python marks what has none


_EXACT: Final = Context(prec=2500, traps=[Inexact])
"""Decimals of any sensible size add up exactly; where they do not, better an error than a rest that stays for ever."""

_UNIT: Final = 1074
"""All doubles are multiples of 2**-1074."""


class Total:
    """A sum of numbers with weights from which each can be taken away again exactly."""

    __slots__ = ("floats", "odd", "other", "scaled", "whole")

    def __init__(self) -> None:
        self.whole = 0
        self.floats = 0
        self.scaled = 0
        self.odd: dict[str, int] = {}
        self.other: Element = 0

    def add(self, value: Element, weight: int) -> None:
        """Add *value* *weight* times."""
        kind = type(value)
        if kind is int or kind is bool:
            self.whole += value * weight
        elif kind is float:
            self.floats += weight
            try:
                numerator, denominator = value.as_integer_ratio()
            except (ValueError, OverflowError):
                self.odd[repr(value)] = self.odd.get(repr(value), 0) + weight
            else:
                self.scaled += (numerator << _UNIT + 1 - denominator.bit_length()) * weight
        else:
            with localcontext(_EXACT):
                self.other = self.other + value * weight

    @classmethod
    def of(cls, whole: int) -> Total:
        """A total of integers that add up to *whole*."""
        total = cls()
        total.whole = whole
        return total

    def plus(self, whole: int) -> Total:
        """A new total with *whole* more."""
        return self.plus_total(Total.of(whole))

    def plus_total(self, other: Total) -> Total:
        """The sum of two, a new one."""
        total = Total()
        total.whole = self.whole + other.whole
        total.floats = self.floats + other.floats
        total.scaled = self.scaled + other.scaled
        with localcontext(_EXACT):
            total.other = self.other + other.other
        total.odd = dict(self.odd)
        for name, weight in other.odd.items():
            total.odd[name] = total.odd.get(name, 0) + weight
            if not total.odd[name]:
                del total.odd[name]
        return total

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return bool(self.whole or self.floats or self.scaled or self.odd or self.other)

    def result(self) -> Element:
        """The sum: an ``int`` where all numbers were, else rounded once to a ``float``."""
        if not self.floats and not self.scaled:
            with localcontext(_EXACT):
                return self.whole + self.other if self.other else self.whole
        return _rounded(self._numerator(), 1 << _UNIT, self.odd) + self.other

    def mean(self, number: int) -> Element:
        """The sum over *number*, rounded once."""
        if self.other:
            return self.result() / number
        return _rounded(self._numerator(), number << _UNIT, self.odd)

    def _numerator(self) -> int:
        return self.scaled + (self.whole << _UNIT)


def _rounded(numerator: int, denominator: int, odd: Mapping[str, int]) -> float:
    present = {name for name, weight in odd.items() if weight}
    if present:
        return float(present.pop()) if len(present) == 1 else float("nan")
    if denominator < 0:  # else nothing over something negative would be -0.0
        numerator, denominator = -numerator, -denominator
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


count: Final = Aggregate("count")
sum: Final = Aggregate("sum")  # noqa: A001  # the contract's name
avg: Final = Aggregate("avg")
min: Final = Aggregate("min")  # noqa: A001  # the same
max: Final = Aggregate("max")  # noqa: A001  # the same


def top_k(size: int, by: Callable[[Element], Element] | None = None) -> Aggregate:
    """The *size* greatest values (by *by*), the greatest first, as one tuple; ties by the order of values.

    >>> from syndicate.flow import Circuit, ZSet
    >>> circuit = Circuit()
    >>> circuit.sink("best", circuit.source("scores").index_with(lambda score: "all").aggregate(top_k(2)))
    >>> circuit.step({"scores": ZSet({3: 1, 9: 1, 5: 1})})["best"]
    ZSet({('all', (9, 5)): 1})
    """
    if type(size) is not int or size < 1:
        raise CircuitError(f"top_k needs how many values to keep, 1 or more, not {size!r}")
    return Aggregate("top", by, size=size)


def lattice(cls: type[Merging] | None = None) -> Aggregate:
    """The values of positive weight as elements of a lattice, merged.

    None is left out, and a group without elements has no row.  What comes is merged into what there is; when a value
    goes, those that are left are merged again, in a large group only along the path from that value to the root of a
    tree.  ``stream.aggregate(Min)`` means the same.  Without a class the values are elements of some lattice already.

    >>> from syndicate.lattice import Min, Set
    >>> lattice(Min).of({5: 1, 3: 2, 2: -1}), lattice(Set)(lambda row: row[0]).of({("a", 1): 1})
    (Min(3), Set(['a']))
    """
    if cls is not None and not _is_lattice(cls):
        raise CircuitError(f"lattice() takes a class with of() and merge(), as syndicate.lattice has, not {cls!r}")
    return Aggregate("lattice", name="lattice" if cls is None else cls.__name__, lattice=cls)


def product(*columns: Aggregate | type[Merging]) -> Aggregate:
    """Several folds into lattices as one, of tuples: the product of lattices is one.

    A column in which a value is None adds nothing, and a group has a row once each column has an element.

    >>> from syndicate.lattice import Max, Min
    >>> extent = product(Min, Max)
    >>> extent.of({(5, 5): 1, (3, None): 1}), extent.of({(3, None): 1})
    ((Min(3), Max(5)), None)
    """
    folds = tuple(map(aggregate_of, columns))
    for fold in folds:
        if fold.form != "lattice":
            raise CircuitError(f"product() is of folds into lattices, such as Min or lattice(Min), and not of {fold}")
    return Aggregate("lattice", name=f"({', '.join(map(str, folds))})", columns=folds)


def _is_lattice(cls: object) -> bool:
    return isinstance(cls, type) and callable(getattr(cls, "of", None)) and callable(getattr(cls, "merge", None))


def linear(
    add: Callable[[Element, Element, int], Element],
    zero: Element = 0,
    result: Callable[[Element], Element] | None = None,
    *,
    name: str = "",
) -> Aggregate:
    """An aggregate that needs only what changes in a group, as ``sum`` does: a row costs the same in any group.

    *add(total, value, weight)* gives the total with a value *weight* times more, or less where that is below 0; *zero*
    is the total of nothing; *result(total)* is what is shown, None for no row.  Totals are elements, never changed in
    place.  The order of additions must not matter, and what is added and taken away must leave nothing: of floats that
    is not so, but of ``fractions.Fraction`` or of integers.

    >>> def add(total, n, weight):
    ...     return (total[0] + weight, total[1] + n * n * weight)
    >>> mean_of_squares = linear(add, (0, 0), lambda total: total[1] / total[0])
    >>> mean_of_squares.of({1: 1, 3: 1}), mean_of_squares.of({})
    (5.0, None)
    """
    functions: dict[str, object] = {"add": add} if result is None else {"add": add, "result": result}
    for what, function in functions.items():
        if not callable(function):
            raise CircuitError(f"a linear aggregate needs a function for {what}=, not {function!r}")
    key_of(zero)
    return Aggregate("linear", name=name or getattr(add, "__name__", "linear"), fold=Fold(zero, add, result))


def user(function: Callable[[Group], Element], name: str = "") -> Aggregate:
    """A function of a group, ``{value: weight}``, as an aggregate; it must be pure, and None means no row.

    >>> user(lambda group: ",".join(sorted(group))).of({"b": 1, "a": 2})
    'a,b'
    """
    return Aggregate("user", function=function, name=name or getattr(function, "__name__", "user"))


def aggregate_of(aggregate: object) -> Aggregate:
    """An aggregate as the user writes it: one of these, a class of lattices, or a function."""
    if isinstance(aggregate, Aggregate):
        return aggregate
    builtin: dict[object, Aggregate] = {builtins.sum: sum, builtins.min: min, builtins.max: max}
    if aggregate in builtin:
        return builtin[aggregate]
    if _is_lattice(aggregate):
        return lattice(cast("type[Merging]", aggregate))
    makers: tuple[Element, ...] = (top_k, user, linear, lattice, product)
    if aggregate in makers or not callable(aggregate):
        raise CircuitError(
            f"{aggregate!r} is no aggregate: use one of syndicate.flow.aggregates, or a function of a group"
        )
    return user(aggregate)
