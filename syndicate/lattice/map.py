"""``lmap``: a map from plain keys to lattice values; merge merges the values of a key that both have.

>>> seen = Map({"ann": Set(["/"])}).merge(Map({"ann": Set(["/faq"]), "bob": Set(["/"])}))
>>> sorted(seen.at("ann", Set).reveal()), seen.key_set(), seen.at("cid", Set), seen.has_key("cid")
(['/', '/faq'], Set(['ann', 'bob']), Set(), Bool(False))
>>> seen.apply("size"), seen.apply("size").apply_morph("gt_eq", 2).filter().key_set()
(Map({'ann': Max(2), 'bob': Max(1)}), Set(['ann']))

Merging costs what is merged in, whatever the size of the map, and so do the merges of its values.  A key with a
bottom is there: ``Map({"k": Max()})`` is more than ``Map()``.

``lt_eq`` is monotone in its argument only: causal delivery asks whether the fixed clock of a message is at or below
the growing clock of its receiver.

Source: Conway et al. 2012, "Builtin lattices"; ``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

from syndicate.errors import LatticeMismatch, LatticeValue, short
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.lattice.extremum import Bool, Max
from syndicate.lattice.lattice import Kind, Lattice, grew, join, monotone, morph, no_lattice, non_monotone, with_content
from syndicate.lattice.sets import EMPTY, Set
from syndicate.lattice.table import NO_ENTRY, Keyed, PersistentMap, PersistentTable, Rows
from syndicate.values.value import Value

L = TypeVar("L", bound=Lattice)


def _maps(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(value,) for value in values]


def _keys(values: Sequence[Value]) -> list[tuple[Value]]:
    return [(natural(key),) for value in values for key in list(value.content.rows())[:1]] + [("none",)]


def _keys_and_classes(values: Sequence[Value]) -> list[tuple[Value, Value]]:
    classes = {key: type(value) for each in values for key, value in each.content.rows().items()}
    return [(natural(key), cls) for key, cls in classes.items()]


def _thresholds(values: Sequence[Value]) -> list[tuple[Value, ...]]:
    return [("gt", 1), ("contains", 1), ("merge", Bool(True))]


class Map(Keyed):
    """A map to lattice values; bottom: empty; merge: of the values, key by key."""

    __slots__ = ()

    wrapper_name = "lmap"

    def __init__(self, content: Mapping[Element, Lattice] | None = None) -> None:
        """Hold a mapping; raises :class:`LatticeValue` for a value that is no lattice value, and
        :class:`LatticeAsKey` for a key that is one.
        """
        if content is None:
            super().__init__(EMPTY)
            return
        if not isinstance(content, Mapping):
            raise self.illegal(content, "a mapping from keys to lattice values")
        rows: Rows = {}
        for key, value in content.items():
            no_lattice(key, "a key of a map")
            if not isinstance(value, Lattice):
                raise self.illegal(
                    value, f"lattice values (that of {short(key)} is not one: wrap it, as in Max({value!r}))"
                )
            rows[key_of(key)] = value
        super().__init__(PersistentTable(rows))

    @classmethod
    def of(cls, element: Element) -> Self:
        """A mapping as it is; a row of two columns is a key and its value."""
        if type(element) is tuple and len(element) == 2:
            key, value = element
            no_lattice(key, "a key of a map")
            return cls(PersistentMap(PersistentTable({key_of(key): value})))
        return cls(element)

    def merge(self, other: Self) -> Self:
        """The union of the keys, with the values of common keys merged."""
        self.same_lattice(other)
        big, small = self._larger_first(other)
        if big.content is small.content:
            return self
        rows = big.content.rows()
        changes: Rows = {}
        for key, value in small.content.rows().items():
            old = rows.get(key, NO_ENTRY)
            if old is NO_ENTRY:
                changes[key] = value
            elif old is not value:
                merged = _joined(key, old, value)
                if grew(old, merged):
                    changes[key] = merged
        return with_content(type(self), big.content.grown(changes)) if changes else big

    def beyond(self, known: Self) -> Self:
        """What each value has beyond that of *known*, where it has anything."""
        if self.content is known.content:
            return self.bottom()
        theirs = known.content.rows()
        fresh: Rows = {}
        for key, value in self.content.rows().items():
            old = theirs.get(key, NO_ENTRY)
            if old is NO_ENTRY:
                fresh[key] = value
            elif old is not value and not value <= old:
                fresh[key] = value.beyond(old)
        return with_content(type(self), PersistentTable(fresh))

    def __le__(self, other: Self) -> bool:
        self.same_lattice(other, "compare")
        if self.content is other.content:
            return True
        theirs = other.content.rows()
        return all(
            (old := theirs.get(key)) is not None and (old is value or value <= old)
            for key, value in self.content.rows().items()
        )

    @morph(argument=Kind.MORPHISM, tries=_maps)
    def intersect(self, other: Self) -> Self:
        """The keys that both have, with their values *merged*."""
        mine, theirs = self._meet(other)
        common = [(key, value, theirs[key]) for key, value in mine.items() if key in theirs]
        return with_content(type(self), PersistentTable({key: _joined(key, a, b) for key, a, b in common}))

    @morph
    def key_set(self) -> Set:
        """The keys."""
        return Set.of_keys(self.content.rows())

    @morph(tries=_keys)
    def has_key(self, key: Element) -> Bool:
        """Whether *key* has a value."""
        return Bool(key_of(key) in self.content.rows())

    key = has_key

    @morph(tries=_keys_and_classes)
    def at(self, key: Element, bottom: type[L] | None = None) -> L:
        """The value of *key*, or else the bottom of the class *bottom*.

        Raises :class:`LatticeValue` if *key* has none and *bottom* was not given, :class:`LatticeMismatch` if it has
        one of another class.
        """
        lattice: L | None = self.content.rows().get(key_of(key))
        if lattice is None:
            if bottom is None:
                raise LatticeValue(f"{short(self)} has no {key!r}, nor do you say what it would be: at({key!r}, Max)")
            return bottom.bottom()
        if bottom is not None and type(lattice) is not bottom:
            raise LatticeMismatch(f"the value of {key!r} is {short(lattice)}, no {bottom.__name__}: ask for that class")
        return lattice

    @morph
    def filter(self) -> Self:
        """The keys whose value, which must be an lbool, is true; raises :class:`LatticeValue`."""
        rows = self.content.rows()
        for key, value in rows.items():
            if type(value) is not Bool:
                raise LatticeValue(
                    f"filter() needs a map to lbool, and the value of {key!r} is {short(value)}: apply a threshold"
                )
        return with_content(type(self), PersistentTable({key: value for key, value in rows.items() if value.content}))

    @morph(tries=_thresholds)
    def apply_morph(self, name: str, *arguments: Value) -> Self:
        """The map of what the values' method *name*, a morphism, returns; raises :class:`LatticeValue`."""
        return self._applied("apply_morph", name, arguments)

    @monotone(tries=_thresholds)
    def apply(self, name: str, *arguments: Value) -> Self:
        """The same with a method that is monotone, or a morphism; raises :class:`LatticeValue`."""
        return self._applied("apply", name, arguments)

    apply_monotone = apply

    @morph(tries=lambda values: [(lambda key: 0,), (lambda key: key,)])
    def project(self, to: Callable[[Value], Element]) -> Self:
        """The map under the keys that *to* makes of these; values that meet there are merged, None leaves a key out."""
        rows: Rows = {}
        for key, value in list(self.content.rows().items()):
            image = to(natural(key))
            if image is not None:
                no_lattice(image, "a key of a map")
                image = key_of(image)
                rows[image] = _joined(image, rows[image], value) if image in rows else value
        return with_content(type(self), PersistentTable(rows))

    @morph(tries=lambda values: [(lambda key, value: (key,),)])
    def to_collection(self, to: Callable[[Value, Value], Element] | None = None) -> list[Element]:
        """What *to* makes of each key and value, None left out; without *to* rows ``(key, value)``."""
        pairs = [(natural(key), value) for key, value in self.content.rows().items()]
        return pairs if to is None else [row for pair in pairs if (row := to(*pair)) is not None]

    @monotone
    def size(self) -> Max:
        """How many keys there are."""
        return with_content(Max, len(self.content))

    @non_monotone(argument=Kind.MONOTONE, tries=_maps)
    def lt_eq(self, other: Self) -> Bool:
        """Whether *other* has all of this: true for ever as *other* grows, but not as this does."""
        return Bool(self <= other)

    def _applied(self, caller: str, name: str, arguments: tuple[Value, ...]) -> Self:
        results: Rows = {}
        for key, value in list(self.content.rows().items()):
            method = type(value).methods().get(name)
            if method is None or not method.kind.is_monotone:
                raise LatticeValue(
                    f"{caller}: {name} is no monotone method of {type(value).__name__}, the value of {key!r}"
                )
            if caller == "apply_morph" and method.kind is not Kind.MORPHISM:
                raise LatticeValue(f"apply_morph: {name} of {type(value).__name__} is monotone only: use apply")
            result = results[key] = getattr(value, name)(*arguments)
            if not isinstance(result, Lattice):
                raise LatticeValue(f"{caller}: {name} returned {short(result)} for {key!r}, which is no lattice value")
        return with_content(type(self), PersistentTable(results))


def _joined(key: Key, a: Lattice, b: Lattice) -> Lattice:
    try:
        return join(a, b)
    except LatticeMismatch as error:
        raise LatticeMismatch(f"at the key {key!r}: {error}") from None
