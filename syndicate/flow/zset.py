"""Z-sets: elements with integer weights, the values that streams carry.

A positive weight counts derivations, a negative one deletions; a change of a collection is itself a Z-set, and changes
are added.  :class:`ZSet` and :class:`IndexedZSet` are timeless, since a circuit's clock gives the time; what is kept
over several times is a :class:`syndicate.flow.trace.Trace`, or a :class:`TimedZSet` where PomoFlow writes triples.

Contract: canonical (no weight is 0), immutable, typed identity (``1``, ``1.0`` and ``True`` are three elements; see
:mod:`syndicate.flow.element`).

>>> delta = ZSet({("ann", 1): 1}) + ZSet([(("bob", 2), 2), (("ann", 1), -1)]); delta
ZSet({('bob', 2): 2})
>>> ZSet([(1, 1), (True, 1), (1, 2)]) == ZSet([(True, 1), (1, 3)])
True

Source: PomoFlow, 2.1, 2.2 and 2.4; ``docs/design/flow.md``, "Weights, elements and times".

Time: an epoch at the root, refined by one iteration count for each loop, in product order.

A time of the root circuit is an unsigned integer; a time in a loop is a tuple of them, the epoch first.  Python's ``<``
on tuples is lexicographic and therefore wrong here: the order is by component, a lattice, in which two times may be
incomparable.

>>> before((0, 1), (1, 1)), before((0, 2), (1, 1)), before((1, 1), (2, 0))
(True, False, False)
>>> lub((0, 2), (1, 1)), glb((0, 2), (1, 1)), lub(3, 5)
((1, 2), (0, 1), 5)

Source: PomoFlow, 2.5; ``docs/design/flow.md``, "Weights, elements and times".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Final, TypeAlias

from syndicate.errors import CircuitError, WeightError, short
from syndicate.flow.element import (
    Element,
    Key,
    Mixed,
    MixedRows,
    Rows,
    add_up,
    all_plain,
    in_order,
    key_of,
    keys_of,
    natural,
    naturals,
    negated,
    plus,
    rank,
)

# ----------------------------------------------------------------------------------------------------------------- time


Time: TypeAlias = int | tuple[int, ...]
"""An epoch, or an epoch and one iteration for each level of nesting."""


def parts(time: Time) -> tuple[int, ...]:
    """A time as a tuple; raises :class:`WeightError` where it is not one.

    >>> parts(3), parts((1, 2))
    ((3,), (1, 2))
    """
    result: tuple[int, ...] = time if isinstance(time, tuple) else (time,)
    if not result or not all(type(part) is int and part >= 0 for part in result):
        raise WeightError(
            f"{time!r} is not a time: write an unsigned integer (the epoch), or a tuple of them (epoch, iteration, ...)"
        )
    return result


def before(a: Time, b: Time) -> bool:
    """Whether ``a <= b`` in product order; both have the same number of components."""
    if type(a) is int and type(b) is int:
        return a <= b
    return all(x <= y for x, y in _pairs(a, b))


def lub(a: Time, b: Time) -> Time:
    """The least time that is not before either."""
    if type(a) is int and type(b) is int:
        return max(b, a)
    return tuple([max(y, x) for x, y in _pairs(a, b)])


def glb(a: Time, b: Time) -> Time:
    """The greatest time that is before both."""
    if type(a) is int and type(b) is int:
        return min(b, a)
    return tuple([min(y, x) for x, y in _pairs(a, b)])


def _pairs(a: Time, b: Time) -> list[tuple[int, int]]:
    a, b = parts(a), parts(b)
    if len(a) != len(b):
        raise WeightError(f"the times {a!r} and {b!r} belong to different depths of nesting")
    return list(zip(a, b, strict=True))


# --------------------------------------------------------------------------------------------------------------- z-sets


_SHOWN: Final = 20
"""Elements that a notebook shows."""

Triple: TypeAlias = tuple[Element, Time | None, int]
"""``(element, time, weight)``, as PomoFlow writes Z-sets; the time is None in a timeless one."""


def checked(weights: Iterable[Element]) -> list[int]:
    """Weights, if they are integers; raises :class:`WeightError`."""
    checked_weights = list(weights)
    if set(map(type, checked_weights)) <= {int}:
        return checked_weights
    wrong = next(weight for weight in checked_weights if type(weight) is not int)
    raise WeightError(
        f"the weight {wrong!r} is a {type(wrong).__name__}, not an int: weights count: 1 inserts, -1 deletes"
    )


Given: TypeAlias = "ZSet | Mapping[Element, int] | Iterable[Element]"
"""A change as a user gives it: a ZSet, elements with their weights, or elements alone, each of them once more."""


def delta_of(change: Given, source: str = "a source") -> ZSet:
    """A change as a user gives it, to any source of any engine.

    A list, a set or an iterator holds elements, each of them once more; weights are written ``{element: weight}``, or
    as a ZSet.  Raises :class:`CircuitError` for what is not one of these, :class:`WeightError`,
    :class:`UnhashableElement`.

    >>> delta_of([("a", 1), ("a", 1)]), delta_of({"a": -1})
    (ZSet({('a', 1): 2}), ZSet({'a': -1}))
    """
    if isinstance(change, ZSet):
        return change
    if isinstance(change, Mapping):
        return ZSet(change)
    return ZSet.of(*elements_of(change, source))


def elements_of(change: object, source: str = "a source") -> Iterable[Element]:
    """The elements of a collection without weights, as a user gives it; raises :class:`CircuitError` for any other.

    A tuple or a string is one element, not several, so it is refused, as is what has weights of its own.
    """
    if isinstance(change, IndexedZSet):
        raise CircuitError(f"{source} takes a ZSet, not an IndexedZSet: give its pairs()")
    if isinstance(change, (str, bytes, tuple)) or not isinstance(change, Iterable):
        raise CircuitError(
            f"{source} takes elements in a list, [element, ...], or with weights, {{element: weight}}, where 1 inserts "
            f"and -1 deletes; not {short(change)}"
        )
    return change


def batch_of(pairs_: Mapping[Element, int] | Iterable[tuple[Element, int]]) -> dict[Key, int]:
    """The canonical batch of elements and weights, a mapping or pairs."""
    if type(pairs_) is dict and all_plain(pairs_):
        counts = checked(pairs_.values())
        return dict(pairs_) if 0 not in counts else {element: weight for element, weight in pairs_.items() if weight}
    if isinstance(pairs_, Mapping):
        elements, weights = list(pairs_), checked(pairs_.values())
    else:
        pairs: list[Element] = list(pairs_) if hasattr(pairs_, "__iter__") else [pairs_]
        for pair in pairs:
            if type(pair) is not tuple or len(pair) != 2:
                raise WeightError(
                    f"a ZSet is made of a mapping {{element: weight}} or of pairs (element, weight), not of {pair!r}; "
                    "for elements alone, each once more, there is ZSet.of(*elements)"
                )
        elements, weights = [pair[0] for pair in pairs], checked([pair[1] for pair in pairs])
    keys, typed = keys_of(elements)
    batch: dict[Key, int] = Mixed() if typed else {}
    batch.update(zip(keys, weights, strict=True))
    if len(batch) < len(keys) or 0 in weights:
        batch.clear()
        add_up(batch, zip(keys, weights, strict=True))
    return batch


class ZSet:
    """A finite map from elements to weights, none of them 0.

    >>> ZSet({"a": 1, "b": 2}) + ZSet({"a": -1})
    ZSet({'b': 2})
    """

    __slots__ = ("batch",)
    __hash__ = None  # type: ignore[assignment]  # as Python marks what has none
    batch: dict[Key, int]

    def __init__(self, weights: Mapping[Element, int] | Iterable[tuple[Element, int]] = ()) -> None:
        """Of ``{element: weight}``, or of pairs, in which elements may recur; of elements alone, :meth:`of` makes one.

        Raises :class:`WeightError` if a weight is no ``int``, :class:`UnhashableElement` if an element has no identity.
        """
        self.batch = weights.batch if isinstance(weights, ZSet) else batch_of(weights)

    @classmethod
    def adopt(cls, batch: dict[Key, int]) -> ZSet:
        """Of a canonical batch of the engine's, which nobody changes from now on."""
        zset = object.__new__(cls)
        zset.batch = batch
        return zset

    @classmethod
    def of(cls, *elements: Element) -> ZSet:
        """Each element once more than it occurred before.

        >>> ZSet.of("a", "b", "a")
        ZSet({'a': 2, 'b': 1})
        """
        return cls((element, 1) for element in elements)

    @classmethod
    def from_triples(cls, triples: Iterable[Triple]) -> ZSet:
        """Of triples without time, as PomoFlow writes them.

        >>> ZSet.from_triples([("a", None, 1), ("b", None, 0)])
        ZSet({'a': 1})
        """
        triples = list(triples)
        timed = next((triple for triple in triples if triple[1] is not None), None)
        if timed is not None:
            raise WeightError(f"{timed!r} has a time: use TimedZSet.from_triples, or a Trace")
        return cls((element, weight) for element, _, weight in triples)

    def triples(self) -> list[Triple]:
        """``(element, None, weight)``, by element in the total order."""
        return [(natural(key), None, self.batch[key]) for key in in_order(self.batch)]

    def items(self) -> Iterator[tuple[Element, int]]:
        """Elements and weights, in the order of insertion."""
        if type(self.batch) is dict:
            return iter(self.batch.items())
        return ((natural(key), weight) for key, weight in self.batch.items())

    def in_order(self) -> Iterator[tuple[Element, int]]:
        """Elements and weights, by the total order of elements."""
        return ((natural(key), self.batch[key]) for key in in_order(self.batch))

    def negate(self) -> ZSet:
        """The same elements with opposite weights."""
        return ZSet.adopt(negated(self.batch))

    def distinct(self) -> ZSet:
        """Weight 1 for each element of positive weight.

        >>> ZSet({0: 1, 1: 2, 2: -1}).distinct()
        ZSet({0: 1, 1: 1})
        """
        batch = {key: 1 for key, weight in self.batch.items() if weight > 0}
        return ZSet.adopt(Mixed(batch) if type(self.batch) is Mixed else batch)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.batch) if type(self.batch) is dict else iter(naturals(self.batch))

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, element: Element) -> int:
        """The weight, 0 for what is absent."""
        return self.batch.get(key_of(element), 0)

    def __contains__(self, element: Element) -> bool:
        return key_of(element) in self.batch

    def __eq__(self, other: object) -> bool:
        return self.batch == other.batch if isinstance(other, ZSet) else NotImplemented

    def __add__(self, other: object) -> ZSet:
        if not isinstance(other, ZSet):
            return NotImplemented
        return ZSet.adopt(plus(self.batch, other.batch))

    def __sub__(self, other: object) -> ZSet:
        if not isinstance(other, ZSet):
            return NotImplemented
        return ZSet.adopt(plus(self.batch, negated(other.batch)))

    __neg__ = negate

    def _repr_html_(self) -> str:
        rows = [f"<tr><td>{escape(repr(key)[:200])}</td><td>{weight:+}</td></tr>" for key, weight in self.batch.items()]
        more = f"<p>{len(rows)} elements, the first {_SHOWN} of which are shown</p>" if len(rows) > _SHOWN else ""
        return f"<table><tr><th>element</th><th>weight</th></tr>{''.join(rows[:_SHOWN])}</table>{more}"

    def __repr__(self) -> str:
        return f"ZSet({{{', '.join(f'{key!r}: {weight}' for key, weight in self.batch.items())}}})"


class IndexedZSet:
    """A ZSet of pairs ``(key, value)`` that is found by key.

    >>> grouped = IndexedZSet({("a", 1): 1, ("a", 2): 3, ("b", 1): -1}); grouped["a"]
    ZSet({1: 1, 2: 3})
    >>> grouped - IndexedZSet({("a", 2): 3})
    IndexedZSet({('a', 1): 1, ('b', 1): -1})
    """

    __slots__ = ("groups", "typed")
    __hash__ = None  # type: ignore[assignment]  # as Python marks what has none
    groups: dict[Key, dict[Key, int]]
    typed: bool

    def __init__(self, weights: Mapping[tuple[Element, Element], int] | Iterable[tuple[Element, int]] = ()) -> None:
        """Of ``{(key, value): weight}``, or of pairs ``((key, value), weight)``; raises as :class:`ZSet` does."""
        pairs: list[Element] = list(weights.items() if isinstance(weights, Mapping) else weights)
        if not all(
            type(pair) is tuple and len(pair) == 2 and type(pair[0]) is tuple and len(pair[0]) == 2 for pair in pairs
        ):
            raise WeightError("an IndexedZSet is made of {(key, value): weight} or of pairs ((key, value), weight)")
        keys, typed = keys_of([pair[0][0] for pair in pairs])
        values, typed_values = keys_of([pair[0][1] for pair in pairs])
        counts = checked([pair[1] for pair in pairs])
        self.typed = typed or typed_values
        self.groups = grouped(zip(keys, values, counts, strict=True))

    @classmethod
    def adopt(cls, rows: Iterable[tuple[Key, Key, int]]) -> IndexedZSet:
        """Of rows ``(key, value, weight)`` of the engine's."""
        zset = object.__new__(cls)
        zset.typed = not isinstance(rows, Rows) or type(rows) is MixedRows
        zset.groups = grouped(rows)
        return zset

    def rows(self) -> Rows:
        """``(key, value, weight)``, consolidated."""
        rows = ((key, value, weight) for key, group in self.groups.items() for value, weight in group.items())
        return MixedRows(rows) if self.typed else Rows(rows)

    @classmethod
    def from_triples(cls, triples: Iterable[Triple]) -> IndexedZSet:
        """Of ``((key, value), None, weight)``, as PomoFlow writes them."""
        return cls((pair, weight) for pair, _, weight in triples)

    def triples(self) -> list[Triple]:
        """``((key, value), None, weight)``, by key, then by value, in the total order."""
        return [((key, value), None, weight) for (key, value), weight in self.in_order()]

    def items(self) -> Iterator[tuple[tuple[Element, Element], int]]:
        """Pairs and weights, in no particular order."""
        return (((natural(key), natural(value)), weight) for key, value, weight in self.rows())

    def in_order(self) -> Iterator[tuple[tuple[Element, Element], int]]:
        """Pairs and weights, by key, then by value, in the total order."""
        for key in in_order(self.groups):
            group = self.groups[key]
            for value in in_order(group):
                yield (natural(key), natural(value)), group[value]

    def keys(self) -> Iterator[Element]:
        """Each key once."""
        return iter(naturals(self.groups))

    def pairs(self) -> ZSet:
        """The same as a ZSet of pairs."""
        return ZSet(self.items())

    def negate(self) -> IndexedZSet:
        """The same pairs with opposite weights."""
        return IndexedZSet.adopt(MixedRows((key, value, -weight) for key, value, weight in self.rows()))

    def __getitem__(self, key: Element) -> ZSet:
        """The values under a key."""
        group = self.groups.get(key_of(key), {})
        return ZSet.adopt(Mixed(group) if self.typed else group)

    def __iter__(self) -> Iterator[tuple[Element, Element]]:
        return (pair for pair, _ in self.items())

    def __len__(self) -> int:
        return sum(map(len, self.groups.values()))

    def __eq__(self, other: object) -> bool:
        return self.groups == other.groups if isinstance(other, IndexedZSet) else NotImplemented

    def __add__(self, other: object) -> IndexedZSet:
        if not isinstance(other, IndexedZSet):
            return NotImplemented
        return IndexedZSet.adopt(MixedRows([*self.rows(), *other.rows()]))

    def __sub__(self, other: object) -> IndexedZSet:
        if not isinstance(other, IndexedZSet):
            return NotImplemented
        return self + other.negate()

    __neg__ = negate

    def __repr__(self) -> str:
        inner = ", ".join(f"({key!r}, {value!r}): {weight}" for key, value, weight in self.rows())
        return f"IndexedZSet({{{inner}}})"


def grouped(rows: Iterable[tuple[Key, Key, int]]) -> dict[Key, dict[Key, int]]:
    """Rows by key, consolidated: no weight of 0, no empty group."""
    groups: dict[Key, dict[Key, int]] = {}
    for key, value, weight in rows:
        group = groups.get(key)
        if group is None:
            if weight:
                groups[key] = {value: weight}
            continue
        total = group.get(value, 0) + weight
        if total:
            group[value] = total
        elif value in group:
            del group[value]
            if not group:
                del groups[key]
    return groups


class TimedZSet:
    """A ZSet whose elements have times: one timeless ZSet for each time.

    Streams carry one time a tick and so do without; this is for PomoFlow's notation, and for what spans several ticks.

    >>> batch = TimedZSet.from_triples([(0, 0, 1), (1, 0, 2), (2, 1, -3)])
    >>> batch.each(ZSet.negate).triples()
    [(0, 0, -1), (1, 0, -2), (2, 1, 3)]
    """

    __slots__ = ("at",)
    __hash__ = None  # type: ignore[assignment]  # as Python marks what has none

    def __init__(self, at: Mapping[Time, ZSet]) -> None:
        """Of ``{time: ZSet}``; raises :class:`WeightError` where a time is not one."""
        self.at: dict[Time, ZSet] = {time: zset for time, zset in at.items() if parts(time) and len(zset)}

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[Element, Time, int]]) -> TimedZSet:
        """Of ``(element, time, weight)``, as PomoFlow writes them."""
        at: dict[Time, list[tuple[Element, int]]] = {}
        for element, time, weight in triples:
            at.setdefault(time, []).append((element, weight))
        return cls({time: ZSet(pairs) for time, pairs in at.items()})

    def triples(self) -> list[tuple[Element, Time, int]]:
        """``(element, time, weight)``, by element, then by time."""
        triples = [(element, time, weight) for time, zset in self.at.items() for element, weight in zset.items()]
        return sorted(triples, key=lambda triple: (rank(triple[0]), parts(triple[1])))

    def each(self, function: Callable[[ZSet], ZSet]) -> TimedZSet:
        """*function* applied at each time."""
        return TimedZSet({time: function(zset) for time, zset in self.at.items()})

    def __add__(self, other: TimedZSet) -> TimedZSet:
        times = self.at.keys() | other.at.keys()
        return TimedZSet({time: self.at.get(time, ZSet()) + other.at.get(time, ZSet()) for time in times})

    def negate(self) -> TimedZSet:
        """The same elements and times with opposite weights."""
        return self.each(ZSet.negate)

    def __sub__(self, other: TimedZSet) -> TimedZSet:
        return self + other.negate()

    def __eq__(self, other: object) -> bool:
        return self.at == other.at if isinstance(other, TimedZSet) else NotImplemented

    def __repr__(self) -> str:
        return f"TimedZSet({self.triples()!r})"
