"""Lattices made of two: ``lpair``, component by component, and ``ldom``, where the greater key wins.

A **pair** merges both components.  Its bottom holds none, since it cannot know of which classes they would be.

A **dominating pair** is a value under a key that says how recent it is: a write to a key-value store, under a vector
clock.  The published form is one pair: the greater key wins whole, equal and incomparable keys merge both components.
That is not associative: if ``k3 > k1`` and ``k2`` is concurrent to both, the value of ``k1`` is lost or kept depending
on the order of merging.  So ours holds the *versions* that no other dominates, each under its key; one, as long as
writers have seen what they overwrite.  The published pair is what ``key()`` and ``value()`` return, and equals it
wherever that is well defined.

>>> from syndicate.lattice import Clock, Set
>>> first = DomPair((Clock({"a": 1}), Set(["milk"])))
>>> later, other = DomPair((Clock({"a": 2}), Set(["tea"]))), DomPair((Clock({"b": 1}), Set(["jam"])))
>>> first.merge(later).value(Set), first.merge(later).merge(other).key(Clock) == Clock({"a": 2, "b": 1})
(Set(['tea']), True)
>>> sorted(first.merge(other).merge(later).value(Set).reveal()), len(first.merge(other).merge(later).reveal())
(['jam', 'tea'], 2)

Source: Hydro, for pairs and dominating pairs; Conway et al. 2012, for the store; ``docs/design/lattice.md``, "Where the
published table is corrected".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Self, TypeVar

from syndicate.errors import LatticeMismatch
from syndicate.flow.element import Key, key_of, natural, naturals
from syndicate.lattice.lattice import Lattice, grew, join, morph, non_monotone, with_content
from syndicate.lattice.table import Keyed, PersistentTable
from syndicate.values.value import Value

L = TypeVar("L", bound=Lattice)


def _classes(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(type(value.content[0]),) for value in values if value.content][:1]


def _second_classes(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(type(value.content[1]),) for value in values if value.content][:1]


def _key_classes(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(type(natural(key)),) for value in values for key in value.content.rows()][:1]


def _is_pair(content: Value) -> bool:
    return type(content) is tuple and len(content) == 2 and all(isinstance(each, Lattice) for each in content)


class Pair(Lattice):
    """Two lattice values; bottom: none yet; merge: of each component."""

    __slots__ = ()

    wrapper_name = "lpair"
    content: tuple[Lattice, Lattice] | None

    def __init__(self, content: tuple[Lattice, Lattice] | None = None) -> None:
        """Hold two lattice values; raises :class:`LatticeValue`."""
        if content is not None and not _is_pair(content):
            raise self.illegal(content, "a tuple of two lattice values")
        super().__init__(content)

    def merge(self, other: Self) -> Self:
        """The pair of the merged components."""
        self.same_lattice(other)
        if self.content is None or other.content is None:
            return self if other.content is None else other
        (a, b), (c, d) = self.content, other.content
        first, second = join(a, c), join(b, d)
        return with_content(type(self), (first, second)) if grew(a, first) or grew(b, second) else self

    def beyond(self, known: Self) -> Self:
        """What each component has beyond that of *known*."""
        if self.content is None or known.content is None or self <= known:
            return self.bottom() if self <= known else self
        (a, b), (c, d) = self.content, known.content
        return with_content(type(self), (a.beyond(c), b.beyond(d)))

    @property
    def is_bottom(self) -> bool:
        """Whether there are no components."""
        return self.content is None

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        if self.content is None or other.content is None:
            return self.content is None
        return bool(self.content[0] <= other.content[0] and self.content[1] <= other.content[1])

    @morph(tries=_classes)
    def first(self, bottom: type[L]) -> L:
        """The first component, of class *bottom*, or its bottom."""
        return _component(self.content, 0, bottom)

    @morph(tries=_second_classes)
    def second(self, bottom: type[L]) -> L:
        """The second component, of class *bottom*, or its bottom."""
        return _component(self.content, 1, bottom)


def _component(content: tuple[Lattice, Lattice] | None, place: int, bottom: type[L]) -> L:
    if content is None:
        return bottom.bottom()
    component = content[place]
    if type(component) is not bottom:
        raise LatticeMismatch(
            f"component {place} of the pair is {component!r}, no {bottom.__name__}: ask for that class"
        )
    return component


class DomPair(Keyed):
    """Values under keys, both lattice values; bottom: none; merge: what no greater key dominates, equal keys merged."""

    __slots__ = ()

    wrapper_name = "ldom"

    def __init__(self, content: tuple[Lattice, Lattice] | Mapping[Lattice, Lattice] | None = None) -> None:
        """Hold one version, ``(key, value)``, or several as a mapping; raises :class:`LatticeValue`."""
        if content is None:
            pairs: list[tuple[Value, Value]] = []
        elif isinstance(content, Mapping):
            pairs = list(content.items())
        else:
            pairs = [content]
        for pair in pairs:
            if not _is_pair(pair):
                raise self.illegal(pair, "a tuple (key, value) of lattice values, or a mapping of such")
        super().__init__(PersistentTable(_undominated(pairs)))

    def merge(self, other: Self) -> Self:
        """The versions of both that no key of either exceeds."""
        self.same_lattice(other)
        mine = self.content.rows()
        rows = _undominated([*self._written(), *other._written()])
        if rows.keys() == mine.keys() and not any(grew(mine[key], value) for key, value in rows.items()):
            return self
        return with_content(type(self), PersistentTable(rows))

    @morph(tries=_key_classes)
    def key(self, bottom: type[L]) -> L:
        """The keys of all versions merged, of class *bottom*: what the next writer must exceed."""
        return _merged(naturals(self.content.rows()), bottom)

    @non_monotone
    def value(self, bottom: type[L]) -> L:
        """The values of the versions merged, of class *bottom*; what is dominated is gone, so this may shrink."""
        return _merged(list(self.content.rows().values()), bottom)

    @classmethod
    def _rebuilt(cls, *parts: Value) -> Self:
        return with_content(cls, PersistentTable(_undominated(list(parts))))


def _undominated(pairs: list[tuple[Value, Value]]) -> dict[Key, Value]:
    rows: dict[Key, Value] = {}
    for each, value in pairs:
        key = key_of(each)
        rows[key] = join(rows[key], value) if key in rows else value
    if len(rows) > 1:
        keys = naturals(rows)
        rows = {key: value for key, value in rows.items() if not any(natural(key) < each for each in keys)}
    return rows


def _merged(values: list[Value], bottom: type[L]) -> L:
    for value in values:
        if type(value) is not bottom:
            raise LatticeMismatch(f"a version holds {value!r}, no {bottom.__name__}: ask for that class")
    return reduce(join, values, bottom.bottom())
