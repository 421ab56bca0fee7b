"""Semi-naive evaluation: an accumulator that knows what is new, and methods applied to no more than that.

A fixed point merges into each lattice again and again.  To apply every method to the whole values each time is naive.
A **morphism** may be applied to what is new alone, because that is what the word promises,

    ``f(old merge new) == f(old) merge f(new)``,

and the left side's lattice has ``f(old)`` merged already.  A method that is only monotone (``size``) must see the whole
value, once it has grown.  With a lattice argument that grows, too, a method that is a morphism in both takes

    ``f(a merge da, b merge db) == f(a, b) merge f(da, b merge db) merge f(a merge da, db)``.

>>> from syndicate.lattice import Set
>>> links = Set([(1, 2), (2, 3), (3, 4)])
>>> paths = Accumulator(Set); paths.add(links)
True
>>> rounds = 0
>>> while (grown := paths.take()) is not None:
...     new = increment("eqjoin", grown, links, {1: 0}, lambda path, link: (path[0], link[1]))
...     rounds += paths.add(new)
>>> sorted(paths.value.reveal()), rounds
([(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)], 2)

What a method returns for the bottom must be merged too, once: give the value itself as the first delta.  The switch
``naive=True`` applies every method to whole values: the oracle.

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Semi-naive evaluation".
"""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import define, frozen

from syndicate.errors import LatticeValue, short
from syndicate.lattice.lattice import Kind, Lattice, grew, join
from syndicate.values.value import Value

L = TypeVar("L", bound=Lattice)


@frozen
class Grown(Generic[L]):
    """A value, and what of it is new since the last look; *delta* merged into the old value gave *value*."""

    value: L
    delta: L


@define(eq=False, init=False)
class Accumulator(Generic[L]):
    """A lattice variable: its value, and what was added since :meth:`take`.

    Adding costs what is added, whatever the size of the value; ``value`` is an immutable snapshot, for nothing.
    """

    lattice: type[L]
    value: L
    _delta: L | None

    def __init__(self, lattice: type[L], value: L | None = None) -> None:
        """A variable of *lattice*, at its bottom or at *value*, all of which is new."""
        self.lattice = lattice
        self.value = lattice.bottom() if value is None else value
        self._delta = self.value

    def add(self, value: L) -> bool:
        """Merge *value*; whether that added anything.  Raises :class:`LatticeMismatch`."""
        self.value.same_lattice(value)
        fresh = value.beyond(self.value)
        merged = join(self.value, fresh)
        if not grew(self.value, merged):
            return False
        self.value = merged
        self._delta = fresh if self._delta is None else join(self._delta, fresh)
        return True

    def take(self) -> Grown[L] | None:
        """What was added since the last call, or None; the first call gives the value, also if it is the bottom."""
        if self._delta is None:
            return None
        grown, self._delta = Grown(self.value, self._delta), None
        return grown


def combine(a: Value, b: Value) -> Value:
    """Two results of a method as one: lattice values merged, rows and sets joined, None is nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Lattice):
        return join(a, b)
    if isinstance(a, list):
        return a + b  # rows: a collection drops what it has
    if isinstance(a, (set, frozenset)):
        return a | b
    if a == b:
        return a
    raise LatticeValue(f"{short(a)} and {short(b)} have no merge: a rule's block must return rows or a lattice value")


def increment(name: str, receiver: Grown[L] | Lattice, *arguments: Value, naive: bool = False) -> Value:
    """What the method *name* adds to its result, when the receiver and arguments that are :class:`Grown` grew.

    A receiver or argument that did not grow is given as it is.  Returns None if nothing grew.  Raises
    :class:`LatticeValue` if the receiver's lattice has no such method.

    >>> from syndicate.lattice import Set
    >>> increment("size", Grown(Set([1, 2]), Set([2]))), increment("contains", Grown(Set([1, 2]), Set([2])), 1)
    (Max(2), Bool(False))
    """
    value = receiver.value if isinstance(receiver, Grown) else receiver
    method = value.methods().get(name)
    if method is None:
        methods = ", ".join(sorted(value.methods()))
        raise LatticeValue(f"{type(value).__name__} has no lattice method {name}: it has {methods}")
    whole = [argument.value if isinstance(argument, Grown) else argument for argument in arguments]
    growing = [place for place, argument in enumerate(arguments) if isinstance(argument, Grown)]
    if not growing and not isinstance(receiver, Grown):
        return None
    if naive or (isinstance(receiver, Grown) and method.kind is not Kind.MORPHISM):
        return getattr(value, name)(*whole)
    if growing and method.argument is not Kind.MORPHISM:
        return getattr(value, name)(*whole)
    result = getattr(receiver.delta, name)(*whole) if isinstance(receiver, Grown) else None
    for place in growing:
        partly = list(whole)
        partly[place] = arguments[place].delta
        result = combine(result, getattr(value, name)(*partly))
    return result
