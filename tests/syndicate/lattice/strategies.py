"""Values of each lattice, for hypothesis, with the look-alikes that Python confuses: 1, 1.0 and True."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from syndicate.flow.element import key_of
from syndicate.lattice import Bag, Bool, Clock, DomPair, LastWriter, Lattice, Map, Max, Min, Pair, PosSet, Set
from syndicate.lattice.table import PersistentMap, PersistentTable

elements = st.sampled_from([0, 1, 1.0, True, 2, 2.0, "a", "b", (1, "a"), (1.0, "a"), (2, "b"), None, -0.0, 0.0])
numbers = st.one_of(st.integers(-9, 9), st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.5]))
positive = st.one_of(st.integers(0, 9), st.sampled_from([0.0, 1.0, 2.5, 2.0**53, 0.25]), st.just(2**53 + 1))


def entries(keys: st.SearchStrategy[Any], values: st.SearchStrategy[Any], size: int = 5) -> st.SearchStrategy[Any]:
    """Mappings keyed by value identity, as no dict can be."""
    pairs = st.lists(st.tuples(keys, values), max_size=size)
    return pairs.map(lambda each: PersistentMap(PersistentTable({key_of(key): value for key, value in each})))


sets = st.lists(elements, max_size=6).map(Set)
bags = entries(elements, st.integers(1, 4)).map(Bag)
clocks = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)).map(Clock)
flat: dict[type[Lattice], st.SearchStrategy[Any]] = {
    Bool: st.sampled_from([Bool(), Bool(True)]),
    Max: st.one_of(st.just(Max()), numbers.map(Max)),
    Min: st.one_of(st.just(Min()), numbers.map(Min)),
    Set: sets,
    PosSet: st.lists(positive, max_size=5).map(PosSet),
    Bag: bags,
    Clock: clocks,
    LastWriter: st.one_of(
        st.just(LastWriter()), st.tuples(numbers, st.sampled_from([1, 1.0, True, "a", (1, 2)])).map(LastWriter)
    ),
}
# A key tells the lattice of its value, as a program's declaration would.
maps = st.fixed_dictionaries({}, optional={"a": flat[Bool], 1: flat[Set], 2.5: flat[Max], "c": clocks}).map(Map)
nested = st.dictionaries(st.sampled_from("xyz"), maps, max_size=3).map(Map)
STRATEGIES: dict[type[Lattice], st.SearchStrategy[Any]] = {
    **flat,
    Map: st.one_of(maps, st.dictionaries(st.sampled_from("xyz"), flat[Bool]).map(Map)),
    Pair: st.one_of(st.just(Pair()), st.tuples(flat[Max], sets).map(Pair)),
    DomPair: st.lists(st.tuples(clocks, sets), max_size=3).map(lambda pairs: merged(DomPair, map(DomPair, pairs))),
}


def merged(cls: type[Any], values: Any) -> Any:
    """All *values* merged."""
    total = cls.bottom()
    for value in values:
        total = total.merge(value)
    return total
