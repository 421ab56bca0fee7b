"""``lclock``, a vector clock, and ``llww``, the last writer's value.

A vector clock counts, for each node, the events of it that are known: a map of maxima, with its own methods.  Two
clocks neither of which is at or below the other belong to concurrent events.

>>> a = Clock().tick("ann"); b = Clock().tick("bob"); both = a.merge(b)
>>> both == Clock({"ann": 1, "bob": 1}), a <= both, a.concurrent(b), both.tick("bob").at("bob")
(True, True, True, Max(2))

The last writer wins by its timestamp; of equal timestamps the greater value, by the total order of values, wins, so
that all replicas agree.  What it reveals is not monotone: the value may be replaced.

>>> LastWriter((1, "red")).merge(LastWriter((2, "blue"))).value(), LastWriter((2, "x")).timestamp().gt(1)
('blue', Bool(True))

Source: Conway et al. 2012 (a vector clock is an ``lmap`` of ``lmax``); ``docs/design/lattice.md``, "The built-in
lattices".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from syndicate.errors import NotAValue, PatternError, short
from syndicate.flow.element import Element, Key, key_of, natural, rank
from syndicate.lattice.extremum import Bool, Max, is_comparable, precedes
from syndicate.lattice.lattice import Kind, Lattice, morph, no_lattice, non_monotone, with_content
from syndicate.lattice.map import Map
from syndicate.lattice.sets import EMPTY, Set
from syndicate.lattice.table import Counted, PersistentTable
from syndicate.values.value import Value, freeze


def _clocks(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value,) for value in values]


def _nodes(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(natural(key),) for value in values for key in list(value.content.rows())[:1]] + [("new",)]


class Clock(Counted):
    """A vector clock; bottom: nothing known; merge: for each node the greater count."""

    __slots__ = ()

    wrapper_name = "lclock"

    def __init__(self, content: Mapping[Element, int] | None = None) -> None:
        """Hold counts by node, integers of at least 0 (0 is as good as absent); raises :class:`LatticeValue`."""
        if content is None:
            super().__init__(EMPTY)
            return
        if not isinstance(content, Mapping):
            raise self.illegal(content, "a mapping from nodes to counts")
        rows: dict[Key, int] = {}
        for node, count in content.items():
            no_lattice(node, "a node of a clock")
            if type(count) is not int or count < 0:
                raise self.illegal(count, f"integers of at least 0 (that of {short(node)} is not one)")
            if count:
                rows[key_of(node)] = count
        super().__init__(PersistentTable(rows))

    @morph(tries=_nodes)
    def at(self, node: Element) -> Max:
        """The count of *node*: 0 if nothing is known."""
        return with_content(Max, self.content.rows().get(key_of(node), 0))

    @morph(tries=_nodes)
    def tick(self, node: Element) -> Self:
        """The clock after one more event of *node*."""
        no_lattice(node, "a node of a clock")
        key = key_of(node)
        rows = self.content.rows()
        return with_content(type(self), PersistentTable({**rows, key: rows.get(key, 0) + 1}))

    @morph
    def nodes(self) -> Set:
        """The nodes of which anything is known."""
        return Set.of_keys(self.content.rows())

    @morph
    def as_map(self) -> Map:
        """The clock as the map of maxima that the Bloom^L paper uses."""
        return with_content(
            Map, PersistentTable({node: with_content(Max, count) for node, count in self.content.rows().items()})
        )

    @non_monotone(argument=Kind.MONOTONE, tries=_clocks)
    def lt_eq(self, other: Self) -> Bool:
        """Whether *other* knows all that this does: stays true as *other* grows, not as this does."""
        return Bool(self <= other)

    @non_monotone(tries=_clocks)
    def concurrent(self, other: Self) -> bool:
        """Whether each knows what the other does not."""
        return not self <= other and not other <= self


class LastWriter(Lattice):
    """A value and its timestamp; bottom: never written; merge: the later, of equal ones the greater value."""

    __slots__ = ()

    wrapper_name = "llww"
    content: tuple[Value, Value] | None

    def __init__(self, content: tuple[Value, Value] | None = None) -> None:
        """Hold ``(timestamp, value)``; raises :class:`LatticeValue` if there is no order of either, as of nan."""
        if content is not None:
            if type(content) is not tuple or len(content) != 2:
                raise self.illegal(content, "a pair (timestamp, value)")
            no_lattice(content, "written with last-writer-wins")
            if not is_comparable(content[0]):
                raise self.illegal(content[0], "a timestamp with a total order: a number, text, or a tuple of them")
            try:
                freeze(content[1])
            except (NotAValue, PatternError) as error:
                raise self.illegal(content[1], f"a value that has a place in the order of values ({error})") from None
        super().__init__(content)

    def merge(self, other: Self) -> Self:
        """The later of the two."""
        self.same_lattice(other)
        return other if self <= other and self != other else self

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        if self.content is None or other.content is None:
            return self.content is None
        (mine, a), (theirs, b) = self.content, other.content
        if precedes(mine, theirs) or precedes(theirs, mine):
            return precedes(mine, theirs)
        return bool(rank(a) <= rank(b))

    @morph
    def timestamp(self) -> Max:
        """When it was written last."""
        return Max(None if self.content is None else self.content[0])

    @non_monotone
    def value(self) -> Value:
        """What was written last, None if nothing was."""
        return None if self.content is None else self.content[1]
