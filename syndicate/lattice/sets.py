"""``lset`` and ``lpset``: sets that grow; the second holds non-negative numbers, so that their sum grows too.

Elements are distinguished by value identity, as in Z-sets: ``Set([1, 1.0, True])`` has three.  To merge costs what is
merged in, whatever the size of the set (:mod:`syndicate.lattice.table`).

>>> votes = Set(["ann", "bob"]).merge(Set(["cid", "ann"])); sorted(votes.reveal()), votes.size().gt_eq(3)
(['ann', 'bob', 'cid'], Bool(True))
>>> sorted(Set([(1, "a"), (2, "b")]).eqjoin(Set([(1, "x"), (1, "y")]), {0: 0}, lambda a, b: (a[1], b[1])).reveal())
[('a', 'x'), ('a', 'y')]
>>> PosSet([3, 4]).sum(), PosSet([0.5]).merge(PosSet([1])).sum().gt(1)
(Max(7), Bool(True))
>>> PosSet([-1])
Traceback (most recent call last):
syndicate.errors.LatticeValue: PosSet (lpset) cannot hold -1: it takes an iterable of non-negative numbers.

``eqjoin`` keeps an index of its argument by the columns joined, which grows with it: a loop that joins what is new
to a large set does not look through the set.

Source: Conway et al. 2012, "Builtin lattices" and "User-defined lattices" (the figure that implements ``lset``);
``docs/design/lattice.md``, "The built-in lattices".

``lbag``: a multiset; merge takes the greater multiplicity of each element, ``+`` adds them.

``+`` is what ``b1 <= b1 + b2`` would be for counting, but merging is idempotent: the same message merged twice does
not count twice.  ``project`` gives the image of an element the *greatest* multiplicity of what maps to it: adding
them, though natural, is no morphism.

>>> a, b = Bag({"x": 2, "y": 1}), Bag({"x": 1, "z": 3})
>>> a.merge(b) == Bag({"x": 2, "y": 1, "z": 3}), a + b == Bag({"x": 3, "y": 1, "z": 3}), a.intersect(b), a.size()
(True, True, Bag({'x': 1}), Max(3))

Source: Conway et al. 2012, "Builtin lattices"; ``docs/design/lattice.md``, "The built-in lattices" and "Where the
published table is corrected".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import starmap
from operator import attrgetter, itemgetter
from typing import Final, Self, TypeVar

from syndicate.errors import LatticeValue, short
from syndicate.flow.element import Element, Key, key_of, keys_of, natural, naturals
from syndicate.lattice.extremum import Bool, Max, is_number
from syndicate.lattice.lattice import (
    LATTICES,
    Kind,
    Lattice,
    hold_lattices,
    holds_lattice,
    monotone,
    morph,
    no_lattice,
    with_content,
)
from syndicate.lattice.table import Counted, PersistentMap, PersistentSet, PersistentTable, Rows, Tabled
from syndicate.values.value import Value

# ----------------------------------------------------------------------------------------------- ``lset`` and ``lpset``


S = TypeVar("S", bound="Set")

EMPTY: Final = PersistentTable({})


def _sets(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value,) for value in values]


def _functions(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(lambda e: 2 if e == 1 else e,), (lambda e: 0,), (lambda e: None if e == 2 else e,)]


def _tests(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(lambda e: e != 1,), (lambda e: False,)]


def _members(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(1,), (2,), (True,), ("a",)]


def _rows_of(elements: Iterable[Element]) -> Rows:
    """The rows of a table for *elements*; raises :class:`UnhashableElement` and :class:`LatticeAsKey`."""
    column = list(elements)
    keys, _ = keys_of(column)
    if hold_lattices(column):
        for element in column:
            if holds_lattice(element):
                no_lattice(element, "an element of a set")
    return dict.fromkeys(keys)


class Set(Tabled):
    """A set; bottom: the empty set; merge: union."""

    __slots__ = ()

    wrapper_name = "lset"

    def __init__(self, content: Iterable[Element] | None = None) -> None:
        """Hold the elements of an iterable; raises :class:`LatticeValue` if it is not one, or text (wrap it in a
        list).
        """
        if content is None:
            super().__init__(EMPTY)
            return
        if isinstance(content, (str, bytes, Mapping)) or not hasattr(content, "__iter__"):
            raise self.illegal(content, f"an iterable of elements; for one element write {type(self).__name__}([...])")
        column = list(content)
        self._check(column)
        super().__init__(PersistentTable(_rows_of(column)))

    @classmethod
    def _check(cls, elements: Sequence[Element]) -> None:
        """Raise :class:`LatticeValue` for an element that this kind of set cannot hold."""

    @classmethod
    def of(cls, element: Element) -> Self:
        """The set of one element, where Bud takes a row apart and unites its columns: for that, use the constructor."""
        return cls([element])

    @classmethod
    def of_keys(cls, keys: Iterable[Key]) -> Self:
        """The set of elements whose keys, as a circuit holds them, are these; they are trusted to be legal."""
        return with_content(cls, PersistentTable(dict.fromkeys(keys)))

    def merge(self, other: Self) -> Self:
        """The union, at the cost of the smaller set if the larger is the newest version of itself."""
        self.same_lattice(other)
        if other.content is self.content:
            return self
        big, small = self._larger_first(other)
        fresh = big._missing(small)
        return with_content(type(self), big.content.grown(fresh)) if fresh else big

    def _missing(self, other: Self) -> Rows:
        """The rows of *other* that are not here."""
        own, rows = self.content.rows(), other.content.rows()
        # Not the difference of the views, which walks through the right side, here the larger.
        return {key: None for key in rows if key not in own}

    def beyond(self, known: Self) -> Self:
        """The elements that *known* has not."""
        fresh = known._missing(self)
        return self if len(fresh) == len(self.content) else with_content(type(self), PersistentTable(fresh))

    def reveal(self) -> PersistentSet:
        """The elements, as an immutable set."""
        return PersistentSet(self.content)

    def keys(self) -> Iterable[Key]:
        """The keys of the elements, as a circuit holds them."""
        return self.content.rows().keys()

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        return self.content is other.content or (
            len(self.content) <= len(other.content) and self.content.rows().keys() <= other.content.rows().keys()
        )

    @morph(argument=Kind.MORPHISM, tries=_sets)
    def intersect(self, other: Self) -> Self:
        """The elements that both have, at the cost of the smaller."""
        mine, theirs = self._meet(other)
        return with_content(type(self), PersistentTable({key: None for key in mine if key in theirs}))

    @morph(argument=Kind.MORPHISM, tries=_sets)
    def product(self, other: Set) -> Set:
        """All pairs ``(a, b)`` of an element of this and one of *other*."""
        return self.eqjoin(other)

    @morph(argument=Kind.MORPHISM, tries=_sets)
    def eqjoin(
        self,
        other: Set,
        columns: Mapping[Value, Value] | Iterable[tuple[Value, Value]] = (),
        to: Callable[[Value, Value], Element] | None = None,
    ) -> Set:
        """What *to* makes of the pairs that agree in *columns*; None, from *to*, leaves a pair out.

        *columns* maps a column of this to one of *other*, each an index, the name of an attribute, or a function of
        an element; without columns it is the product.  Without *to* the pairs themselves are returned.
        """
        if not issubclass(type(other), Set):
            self.same_lattice(other, "join")
        pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
        if pairs:
            left, right = _column([a for a, _ in pairs]), _column([b for _, b in pairs])
            index = other.content.index(tuple(b for _, b in pairs), lambda key: right(natural(key)))
            matches = [
                (element, natural(key))
                for element in naturals(self.content.rows())
                for key in index.get(left(element), ())
            ]
        else:
            theirs = naturals(other.content.rows())
            matches = [(a, b) for a in naturals(self.content.rows()) for b in theirs]
        return _collected(Set, matches if to is None else starmap(to, matches))

    @morph(tries=_functions)
    def project(self, to: Callable[[Value], Element]) -> Self:
        """What *to* makes of each element; None leaves it out."""
        return _collected(type(self), map(to, naturals(self.content.rows())))

    pro = project

    @morph(tries=_tests)
    def filter(self, test: Callable[[Value], object]) -> Self:
        """The elements that pass *test*."""
        rows = self.content.rows()
        return with_content(type(self), PersistentTable({key: None for key in list(rows) if test(natural(key))}))

    @morph(tries=_members)
    def contains(self, element: Element) -> Bool:
        """Whether *element* is in the set."""
        return Bool(key_of(element) in self.content.rows())

    @monotone
    def size(self) -> Max:
        """How many elements there are.  No morphism: two sets of two may make a set of three."""
        return with_content(Max, len(self.content))

    @monotone(tries=lambda values: [([],)])
    def group_count(self, columns: Sequence[Value]) -> Lattice:
        """How many elements there are for each value of *columns*: an lmap of lmax, keyed by the tuple of columns.

        Raises :class:`LatticeValue` for an element without such a column.
        """
        column = _column(list(columns), whole=True)
        counts: dict[Key, int] = {}
        for element in naturals(self.content.rows()):
            group = column(element)
            counts[group] = counts.get(group, 0) + 1
        # By its name, since lmap is made of lset.
        rows = {group: with_content(Max, count) for group, count in counts.items()}
        return with_content(LATTICES["lmap"], PersistentTable(rows))

    def _written(self) -> tuple[Value, ...]:
        return tuple(naturals(self.content.rows()))

    @classmethod
    def _rebuilt(cls, *parts: Value) -> Self:
        return cls(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({naturals(self.content.rows()) or ''})"


class PosSet(Set):
    """A set of non-negative numbers; otherwise like :class:`Set`.  Joins and products return a :class:`Set`."""

    __slots__ = ()

    wrapper_name = "lpset"

    @classmethod
    def _check(cls, elements: Sequence[Element]) -> None:
        for element in elements:
            if not is_number(element) or element < 0 or element == math.inf:
                raise cls.illegal(element, "an iterable of non-negative numbers")

    @monotone
    def sum(self) -> Max:
        """The sum of the numbers: exact if it is whole, else rounded, and upwards where floats have no fractions."""
        numbers = naturals(self.content.rows())
        total = sum(map(Fraction, numbers))
        if total.denominator == 1:
            return Max(total.numerator)
        # Rounded to the nearest, a larger sum could come out below a whole one that was exact.
        return Max(float(total) if total < 2**53 else math.ceil(total))

    pos_sum = sum  # noqa: A003  # the method above is meant


def _collected(cls: type[S], elements: Iterable[Element]) -> S:
    column = [element for element in elements if element is not None]
    cls._check(column)
    return with_content(cls, PersistentTable(_rows_of(column)))


_TEXTS: Final = frozenset({str, bytes})


def _column(names: list[Value], *, whole: bool = False) -> Callable[[Value], Key]:
    """A function from an element to the key of its columns, each an index, an attribute or a function.

    The key is that of their tuple, but of a single column that of itself, unless *whole*: a join has no use for it.
    """
    getters = [
        itemgetter(name) if type(name) is int else attrgetter(name) if type(name) is str else name for name in names
    ]

    single = getters[0] if len(getters) == 1 and not whole else None
    textless = _TEXTS if int in map(type, names) else frozenset[type]()  # whose items are no columns

    def get(element: Value) -> Key:
        try:
            if type(element) in textless:
                raise TypeError(f"a {type(element).__name__} is one value")
            if single is not None:
                return key_of(single(element))
            return key_of(tuple([getter(element) for getter in getters]))
        except (IndexError, TypeError, AttributeError) as error:
            raise LatticeValue(
                f"{short(element)} has no column {short(names[0] if len(names) == 1 else names)}: {error}. "
                "Hold tuples, and count columns from 0."
            ) from error

    return get


# ------------------------------------------------------------------------------------------------------------- ``lbag``


def _bags(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value,) for value in values]


class Bag(Counted):
    """A multiset; bottom: empty; merge: for each element the greater multiplicity."""

    __slots__ = ()

    wrapper_name = "lbag"

    def __init__(self, content: Mapping[Element, int] | None = None) -> None:
        """Hold elements with multiplicities, integers above 0; raises :class:`LatticeValue`."""
        if content is None:
            super().__init__(EMPTY)
            return
        if not isinstance(content, Mapping):
            raise self.illegal(content, "a mapping from elements to how often they occur")
        rows: dict[Key, int] = {}
        for element, count in content.items():
            no_lattice(element, "an element of a bag")
            if type(count) is not int or count < 1:
                raise self.illegal(count, f"integers above 0 as multiplicities (that of {short(element)} is not one)")
            rows[key_of(element)] = count
        super().__init__(PersistentTable(rows))

    @classmethod
    def of(cls, element: Element) -> Self:
        """A mapping as it is; of anything else, the bag that holds it once."""
        return cls(element if isinstance(element, Mapping) else PersistentMap(PersistentTable({key_of(element): 1})))

    @morph(argument=Kind.MORPHISM, tries=_bags)
    def intersect(self, other: Self) -> Self:
        """The lesser multiplicity of each element that both have."""
        mine, theirs = self._meet(other)
        return with_content(
            type(self), PersistentTable({key: min(count, theirs[key]) for key, count in mine.items() if key in theirs})
        )

    @morph(argument=Kind.MORPHISM, tries=_bags)
    def __add__(self, other: Self) -> Self:
        self.same_lattice(other, "add")
        mine, theirs = self.content.rows(), other.content.rows()
        if len(mine) < len(theirs):
            mine, theirs = theirs, mine
        return with_content(
            type(self), PersistentTable({**mine, **{key: count + mine.get(key, 0) for key, count in theirs.items()}})
        )

    @morph(tries=_functions)
    def project(self, to: Callable[[Value], Element]) -> Self:
        """What *to* makes of each element, as often as the most frequent one that became it; None leaves it out."""
        rows: dict[Key, int] = {}
        for key, count in list(self.content.rows().items()):
            image = to(natural(key))
            if image is not None:
                no_lattice(image, "an element of a bag")
                image = key_of(image)
                rows[image] = max(count, rows.get(image, 0))
        return with_content(type(self), PersistentTable(rows))

    @morph(tries=_members)
    def mult(self, element: Element) -> Max:
        """How often *element* occurs: 0 if it does not."""
        return with_content(Max, self.content.rows().get(key_of(element), 0))

    multiplicity = mult

    @morph(tries=_members)
    def contains(self, element: Element) -> Bool:
        """Whether *element* occurs."""
        return Bool(key_of(element) in self.content.rows())

    @monotone
    def size(self) -> Max:
        """The sum of the multiplicities."""
        return with_content(Max, sum(self.content.rows().values()))
