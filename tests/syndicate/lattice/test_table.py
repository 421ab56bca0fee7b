from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.lattice import Bag, Map, Max, Set
from syndicate.lattice.table import SMALL_TABLE, PersistentTable
from tests.work import lines, peak

changes = st.dictionaries(st.integers(0, 60), st.integers(0, 3), max_size=12)


@given(changes, st.lists(st.tuples(st.integers(0, 100), changes, st.integers(0, 100)), max_size=25))
def test_versions_are_dictionaries_that_never_change(start: dict[int, int], steps: list[Any]) -> None:
    """Any version may be grown and read, in any order: it holds what a copied dictionary would."""
    start = {
        **dict.fromkeys(range(100, 100 + SMALL_TABLE), 0),
        **start,
    }  # beyond the size up to which versions are copied
    versions = [(PersistentTable(dict(start)), dict(start))]
    for grown, change, read in steps:
        table, model = versions[grown % len(versions)]
        versions.append((table.grown(change), {**model, **change}))
        table, model = versions[read % len(versions)]
        assert table.rows() == model
    for table, model in versions:
        assert len(table) == len(model)
        assert table == PersistentTable(model)
        assert hash(table) == hash(PersistentTable(model))
        assert table.rows() == model


@given(st.lists(st.lists(st.integers(0, 400), max_size=9), max_size=15))
def test_index_grows_with_the_table(batches: list[list[int]]) -> None:
    """An index made early files what came later."""
    table = PersistentTable(dict.fromkeys(range(1000, 1000 + SMALL_TABLE + 1)))
    for batch in batches:
        table.index("last digit", lambda key: key % 10)
        table = table.grown({key: None for key in batch if key not in table.rows()})
    expected: dict[int, list[int]] = {}
    for key in table.rows():
        expected.setdefault(key % 10, []).append(key)
    assert table.index("last digit", lambda key: key % 10) == expected


@given(changes, changes, changes)
def test_hash_is_kept_up_to_date(a: dict[int, int], b: dict[int, int], c: dict[int, int]) -> None:
    """The hash that a grown version derives from the older one's is the one it would compute."""
    table = PersistentTable({**dict.fromkeys(range(100, 200), 0), **a})
    hash(table)
    grown = table.grown(b)
    hash(grown)
    assert hash(grown.grown(c)) == hash(PersistentTable({**dict.fromkeys(range(100, 200), 0), **a, **b, **c}))


def test_old_versions_are_freed() -> None:
    """The newest version keeps no older one alive."""
    old = Set(range(1000))
    watched = weakref.ref(old)
    new = old.merge(Set([-1]))
    del old
    gc.collect()
    assert watched() is None
    assert len(new.reveal()) == 1001


def test_iterating_while_growing() -> None:
    """Who walks through a revealed set sees that version, whatever is merged meanwhile."""
    total = first = Set(range(100))
    seen = 0
    for element in first.reveal():
        total = total.merge(Set([element + 1000]))
        seen += 1
    assert seen == 100
    assert len(total.reveal()) == 200
    assert first == Set(range(100))


def merge_each(big: Any, singles: list[Any]) -> None:
    """What an engine does: merge one by one, and look at the result."""
    for each in singles:
        big = big.merge(each)
        seen = big.has_key(0) if isinstance(big, Map) else big.contains(0)
        assert seen.reveal()


def cost(make: Any, size: int, singles: list[Any]) -> tuple[int, int]:
    """The work, and the most bytes that it takes, from a version that nobody has grown yet."""
    value, other = make(size), make(size)
    return lines(lambda: merge_each(value, singles)), peak(lambda: merge_each(other, singles))


@pytest.mark.parametrize(
    ("make", "singles"),
    [
        (lambda n: Set(range(n)), [Set([-i]) for i in range(1, 501)]),
        (lambda n: Bag(dict.fromkeys(range(n), 1)), [Bag({-i: 2}) for i in range(1, 501)]),
        (lambda n: Map({i: Max(0) for i in range(n)}), [Map({i % 50: Max(i)}) for i in range(1, 501)]),
    ],
    ids=["lset", "lbag", "lmap"],
)
def test_merging_one_costs_one(make: Any, singles: list[Any]) -> None:
    """500 merges of one element cost about the same into 1,000 and into 100,000, not 100 times as much."""
    (work, memory), (large_work, large_memory) = cost(make, 1_000, singles), cost(make, 100_000, singles)
    assert large_work < 1.1 * work + 1_000
    assert large_memory < 3_000_000 < 100 * memory
