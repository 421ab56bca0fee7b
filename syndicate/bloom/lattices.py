"""Lattices in declarations: ``votes = lset()``, for the built-in ones and for any that a user defines.

A lattice that is declared is a variable of a program: at its bottom first, and growing from tick to tick.

>>> from syndicate.bloom import Bloom, bloom, lbool, lmax, lset, scratch
>>> class Quorum(Bloom):
...     vote = scratch(["voter"], []); voters = lset(); count = lmax(); done = lbool()
...     @bloom
...     def rules(self):
...         self.voters <= self.vote.map(lambda v: v.voter)
...         self.count <= self.voters.size()
...         self.done <= self.count.gt_eq(2)
>>> p = Quorum(); p.vote <= [("ann",), ("bob",)]; p.tick(); p.count.reveal(), p.done.reveal()
(2, True)

A lattice of your own, ``class Longest(Lattice)`` with ``wrapper_name = "llongest"``, is declared by
``lattice(Longest)``, or by the function of its keyword, ``from syndicate.bloom import llongest``.  Let
``assert_laws(Longest, [values])`` of :mod:`syndicate.lattice` look for a counterexample first.

Source: Conway et al. 2012, "Language concepts" and "User-defined lattices" (``wrapper_name``);
``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.bloom.declaration import Declaration, Kind
from syndicate.bloom.site import here
from syndicate.errors import BloomDeclaration
from syndicate.lattice import Bag, Bool, Clock, DomPair, LastWriter, Map, Max, Min, Pair, PosSet, Set
from syndicate.lattice.lattice import LATTICES, Lattice
from syndicate.plan.algebra import listed, meant

if TYPE_CHECKING:
    from syndicate.bloom.rules.cell import Cell


class Variable(Declaration):
    """The declaration of a lattice."""

    if TYPE_CHECKING:  # an instance has the variable in its place

        def __get__(self, instance: object, owner: type) -> Cell: ...


class Declaring:
    """Declares variables of one lattice: ``lset()``; as ``cost=lset`` it names the lattice of a column."""

    def __init__(self, lattice: type[Lattice]) -> None:
        """Of a lattice."""
        self.lattice = lattice

    def __call__(self, *values: object) -> Variable:
        """A variable, to be an attribute of a program's class; raises :class:`BloomDeclaration` for *values*."""
        if values:
            raise BloomDeclaration(
                f"{here()}: {self}() takes no value, since a lattice begins at its bottom: merge one in a method "
                "marked @bootstrap, or from outside: p.x <= value"
            )
        return Variable(Kind.LATTICE, ("value",), 0, lattices={"value": self.lattice}, site=here())

    def __repr__(self) -> str:
        return self.lattice.wrapper_name


lbool, lmax, lmin, lset, lpset = Declaring(Bool), Declaring(Max), Declaring(Min), Declaring(Set), Declaring(PosSet)
lbag, lmap, lpair, ldom = Declaring(Bag), Declaring(Map), Declaring(Pair), Declaring(DomPair)
lclock, llww = Declaring(Clock), Declaring(LastWriter)


def lattice(lattice_class: object) -> Variable:
    """A variable of a lattice, which is given by its class or by its keyword.

    Raises :class:`BloomDeclaration` for what is not a lattice.

    >>> lattice("lset").lattices["value"].__name__
    'Set'
    """
    cls = LATTICES.get(lattice_class) if isinstance(lattice_class, str) else lattice_class
    if not isinstance(cls, type) or not issubclass(cls, Lattice) or not hasattr(cls, "wrapper_name"):
        raise BloomDeclaration(
            f"{here()}: {lattice_class!r} is no lattice{meant(lattice_class, LATTICES)}: give a subclass of "
            f"Lattice, or one of {listed(sorted(LATTICES))}"
        )
    return Declaring(cls)()


def declaring(keyword: str) -> Declaring | None:
    """What declares the lattice of a keyword; None if there is no such lattice."""
    cls = LATTICES.get(keyword)
    return None if cls is None else Declaring(cls)
