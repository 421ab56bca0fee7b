from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.errors import KeyConflict, LatticeAsKey, LatticeMismatch, LatticeValue
from syndicate.lattice import (
    Bag,
    Bool,
    Lattice,
    Map,
    Max,
    Min,
    Set,
    from_collection,
    merge_row,
    merge_rows,
    to_collection,
)
from tests.syndicate.lattice.strategies import STRATEGIES, merged


@pytest.mark.parametrize(
    ("cls", "rows", "expected"),
    [
        (Bool, [(False,), (True,)], Bool(True)),
        (Max, [(3,), (5,), None, (4,)], Max(5)),
        (Min, [3, 5], Min(3)),
        (Set, [("a", 1), ("b",), "c", None], Set([("a", 1), "b", "c"])),
        (Bag, ["a", {"a": 2}, ("b", 1)], Bag({"a": 2, ("b", 1): 1})),
        (Map, [("a", Max(1)), ("a", Max(2)), {"b": Max(3)}], Map({"a": Max(2), "b": Max(3)})),
        (Max, [], Max()),
    ],
)
def test_from_collection(cls: type[Lattice], rows: list[Any], expected: Lattice) -> None:
    """Each element becomes a lattice element, and these are merged; None is skipped ("Converting collections")."""
    assert from_collection(cls, rows) == expected


def test_buds_form_of_the_fold() -> None:
    """Uniting the columns, as Bud does, is one word away."""
    assert from_collection(Set, chain.from_iterable([(3, 4), (5, 4)])) == Set([3, 4, 5])


def test_to_collection() -> None:
    """Sets, bags and maps are rows; what is no collection says what to do."""
    assert sorted(to_collection(Set(["a", "b"]))) == [("a",), ("b",)]
    assert to_collection(Set([(1, 2)])) == [(1, 2)]
    assert to_collection(Bag({"a": 2})) == [("a", 2)]
    assert to_collection(Map({"a": Max(2)})) == [("a", Max(2))]
    for value in (Max(1), Bool(True)):
        with pytest.raises(LatticeValue, match=r"is no collection.* embed it in a row"):
            to_collection(value)


rows = st.lists(st.tuples(st.sampled_from("abc"), STRATEGIES[Max], STRATEGIES[Set]), max_size=12)


@given(rows, st.randoms(use_true_random=False))
def test_merge_rows_in_any_order(given_rows: list[Any], random: Any) -> None:
    """Rows of one key become one, whose lattice columns are all merged, in whatever order and how often they come."""
    shuffled = given_rows + given_rows[:3]
    random.shuffle(shuffled)
    expected = {
        key: (
            key,
            merged(Max, [r[1] for r in given_rows if r[0] == key]),
            merged(Set, [r[2] for r in given_rows if r[0] == key]),
        )
        for key in {row[0] for row in given_rows}
    }
    assert {row[0]: row for row in merge_rows(shuffled, key=1)} == expected


def test_key_columns_by_index() -> None:
    """The key may be any columns, and look-alikes are different keys."""
    assert merge_rows([(Max(1), "k"), (Max(2), "k"), (Max(3), 1), (Max(4), True)], key=[1]) == [
        (Max(2), "k"),
        (Max(3), 1),
        (Max(4), True),
    ]


def test_conflicts() -> None:
    """Plain columns must agree, lattice columns must be of one lattice, and no lattice may be in the key."""
    with pytest.raises(KeyConflict, match=r"two rows with the key \('a',\) differ in column 1: 1 and 1\.0"):
        merge_rows([("a", 1, Max(1)), ("a", 1.0, Max(2))], key=1)
    with pytest.raises(LatticeMismatch, match="cannot merge"):
        merge_rows([("a", Max(1)), ("a", Min(1))], key=1)
    with pytest.raises(KeyConflict, match="differ in column 1"):
        merge_rows([("a", Max(1)), ("a", 1)], key=1)
    with pytest.raises(LatticeAsKey, match=r"Max\(1\) cannot be column 0 of \(Max\(1\), 2\), which belongs to the key"):
        merge_rows([(Max(1), 2)], key=1)
    with pytest.raises(KeyConflict, match="2 and 3 columns"):
        merge_rows([("a", 1), ("a", 1, 2)], key=1)


def test_merge_row_says_by_identity_that_nothing_is_new() -> None:
    """The engine's fixed point asks ``is``."""
    old = ("a", Max(3), Set([1]))
    assert merge_row(old, ("a", Max(2), Set([1]))) is old
    assert merge_row(old, ("a", Max(4), Set())) == ("a", Max(4), Set([1]))
