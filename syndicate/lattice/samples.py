"""Values to test laws with: small first, so that the first counterexample found is nearly the smallest.

A lattice may have a class method ``samples()`` that returns some of its values.  One that has none is tried with
plain values of many kinds, and whatever its constructor accepts is used: usually enough, since a law that breaks
breaks for small values.  Merges of samples are samples, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from syndicate.errors import SyndicateError
from syndicate.lattice.boolean import Bool
from syndicate.lattice.clock import Clock
from syndicate.lattice.extremum import Max
from syndicate.lattice.lattice import Lattice
from syndicate.lattice.sets import Set
from syndicate.values.value import Symbol, Value

PLAIN: Final[tuple[Value, ...]] = (
    *(0, 1, 2, 3, -1, 7),
    *(True, False, 0.5, 1.0, -0.0, "", "a", "b", "ab", b"a", Symbol("a")),
    *((), (1,), (1, 2), (2, 1), (2, 2), (3, 5), (1, "a"), (1, "b"), (2, "a")),
    *(("a",), ("b", "c"), ("a", "a"), (0.5, 1.5)),
    *(frozenset(), frozenset({1}), frozenset({2}), frozenset({1, 2}), frozenset({2, 3}), frozenset({"a", "b"})),
    *({"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 3}, {1: 1}),
    *({"a": Max(1), "b": Bool(True)}, {"a": Max(2)}, {"b": Bool(False)}, {"c": Set([1])}, {"c": Set([2])}),
    *((Max(1), Set([1])), (Max(2), Set([2])), (Max(1), Set([2])), (Max(3), Set())),
    *((Clock({"a": 1}), Set([1])), (Clock({"a": 2}), Set([2])), (Clock({"b": 1}), Set([3]))),
    *((Clock({"a": 2, "b": 1}), Set([4])), (Clock({"a": 1}), Set([5]))),
)
"""What constructors are tried with."""

REFUSALS: Final = (SyndicateError, TypeError, ValueError, AttributeError, LookupError)
"""What a constructor raises that does not take a value."""


def weight(value: Value) -> tuple[int, str]:
    """How large *value* is to a reader: the length of its text."""
    text = repr(value)
    return len(text), text


def distinct(values: Iterable[Value]) -> list[Value]:
    """The values, each once as its text tells, smallest first (by text: equality is under test)."""
    return sorted({repr(value): value for value in values}.values(), key=weight)


def seeds(cls: type[Lattice], values: Iterable[Value] | None) -> list[Value]:
    """Values of *cls*, smallest first: *values*, or its samples, or what its constructor accepts; and the bottom."""
    if values is not None:
        candidates = list(values)
    elif hasattr(cls, "samples"):
        candidates = list(cls.samples())
    else:
        candidates = list(accepted(cls, PLAIN))
    return distinct([*candidates, cls.bottom()])


def with_merges(values: Sequence[Value], random: Random) -> list[Value]:
    """The values and some merges of them, smallest first."""
    return distinct([*values, *_merges(values, random)])


def accepted(cls: type[Lattice], contents: Iterable[Value]) -> Iterable[Lattice]:
    """Elements of *cls* made of those *contents* that its constructor takes."""
    for content in contents:
        try:
            element = cls(content)
            repr(element)
        except REFUSALS:
            continue
        yield element


def _merges(seeds: Sequence[Value], random: Random) -> Iterable[Lattice]:
    for _ in range(min(40, len(seeds) ** 2)):
        merged = random.choice(seeds)
        for _ in range(random.randint(1, 3)):
            try:
                merged = merged.merge(random.choice(seeds))
            except Exception:  # values that do not go together, or a merge that is broken: the laws will tell
                break
        if isinstance(merged, Lattice):
            yield merged


def tuples(values: Sequence[Value], size: int, examples: int, random: Random) -> Iterable[tuple[Value, ...]]:
    """Tuples of *values*, smallest first: all of the smallest few, then *examples* at random."""
    few = {1: len(values), 2: 14, 3: 7}[size]
    head = values[:few]
    everything: list[tuple[Value, ...]] = [()]
    for _ in range(size):
        everything = [(*chosen, value) for chosen in everything for value in head]
    yield from sorted(everything, key=lambda chosen: sum(weight(value)[0] for value in chosen))
    if size > 1 and len(values) > few:
        for _ in range(examples):
            yield tuple(random.choice(values) for _ in range(size))
