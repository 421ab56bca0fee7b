"""``lbag``: a multiset; merge takes the greater multiplicity of each element, ``+`` adds them.

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

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from syndicate.errors import short
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.lattice.boolean import Bool
from syndicate.lattice.contents import Entries
from syndicate.lattice.counted import Counted
from syndicate.lattice.extremum import Max
from syndicate.lattice.lattice import made, no_lattice
from syndicate.lattice.method import Kind, monotone, morph
from syndicate.lattice.sets import EMPTY
from syndicate.lattice.table import Table
from syndicate.values.value import Value


def _bags(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value,) for value in values]


def _functions(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(lambda e: 2 if e == 1 else e,), (lambda e: 0,), (lambda e: None if e == 2 else e,)]


def _members(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(1,), (2,), (True,), ("a",)]


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
        super().__init__(Table(rows))

    @classmethod
    def of(cls, element: Element) -> Self:
        """A mapping as it is; of anything else, the bag that holds it once."""
        return cls(element if isinstance(element, Mapping) else Entries(Table({key_of(element): 1})))

    @morph(argument=Kind.MORPHISM, tries=_bags)
    def intersect(self, other: Self) -> Self:
        """The lesser multiplicity of each element that both have."""
        mine, theirs = self._meet(other)
        return made(type(self), Table({key: min(count, theirs[key]) for key, count in mine.items() if key in theirs}))

    @morph(argument=Kind.MORPHISM, tries=_bags)
    def __add__(self, other: Self) -> Self:
        self.same_lattice(other, "add")
        mine, theirs = self.content.rows(), other.content.rows()
        if len(mine) < len(theirs):
            mine, theirs = theirs, mine
        return made(type(self), Table({**mine, **{key: count + mine.get(key, 0) for key, count in theirs.items()}}))

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
        return made(type(self), Table(rows))

    @morph(tries=_members)
    def mult(self, element: Element) -> Max:
        """How often *element* occurs: 0 if it does not."""
        return made(Max, self.content.rows().get(key_of(element), 0))

    multiplicity = mult

    @morph(tries=_members)
    def contains(self, element: Element) -> Bool:
        """Whether *element* occurs."""
        return Bool(key_of(element) in self.content.rows())

    @monotone
    def size(self) -> Max:
        """The sum of the multiplicities."""
        return made(Max, sum(self.content.rows().values()))
