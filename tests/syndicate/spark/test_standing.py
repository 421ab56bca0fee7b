from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.errors import SourceError
from syndicate.spark.rows import Step
from syndicate.spark.standing import Standing

FORM = st.sampled_from("abc")
CHANGES = st.lists(st.tuples(FORM, st.integers(-2, 2)), max_size=6)


@given(st.lists(CHANGES, max_size=8))
def test_crossings_of_zero(steps: list[list[tuple[str, int]]]) -> None:
    """After each step, what was added and not removed is exactly what has a positive sum of weights."""
    standing, sums, there = Standing(), Counter[str](), set[str]()
    for step in steps:
        adds, removes = standing.change(Step(step))
        for form, weight in step:
            sums[form] += weight
        assert not there & set(adds)
        assert there >= set(removes)
        assert not set(adds) & set(removes)
        there = there.union(adds).difference(removes)
        assert there == {form for form, count in sums.items() if count > 0}
        assert standing.weights == {form: count for form, count in sums.items() if count}


@given(st.lists(st.dictionaries(st.integers(0, 3), st.none() | FORM, max_size=4), max_size=8))
def test_keys_replace(steps: list[dict[int, str | None]]) -> None:
    """With keys, what is there after each step are the latest rows of all keys; None removes a key's row."""
    standing, model, there = Standing(), dict[int, str](), set[str]()
    for step in steps:
        changes = [("gone" if form is None else form, -1 if form is None else 1) for form in step.values()]
        adds, removes = standing.change(Step(changes, [(key,) for key in step]))
        for key, form in step.items():
            if form is None:
                model.pop(key, None)
            else:
                model[key] = form
        there = there.union(adds).difference(removes)
        assert there == set(model.values())


def test_an_update_in_one_step() -> None:
    """The old and the new image of a row, in whatever order, are a replacement; an unchanged row is nothing."""
    standing = Standing()
    assert standing.change(Step([("old", 1)], [(1,)])) == (["old"], [])
    assert standing.change(Step([("new", 1), ("old", -1)], [(1,), (1,)])) == (["new"], ["old"])
    assert standing.change(Step([("new", 1), ("new", 1)], [(1,), (1,)])) == ([], [])
    assert standing.change(Step([("whatever", -1)], [(2,)])) == ([], [])


def test_two_rows_of_one_key() -> None:
    """Two different rows of one key in one step are an error: nothing says which is the later one."""
    with pytest.raises(SourceError, match=r"two rows have the key 1, 'x': 'a' and 'b'; name the column .* sequence="):
        Standing().change(Step([("a", 1), ("b", 1)], [(1, "x"), (1, "x")]))
    with pytest.raises(SourceError, match="two rows have the key 1: 'a' and 'b'; give key= the columns"):
        Standing().become([Step([("a", 1), ("b", 1)], [(1,), (1,)])])


@given(st.lists(st.lists(FORM, max_size=6), max_size=6))
def test_snapshots(tables: list[list[str]]) -> None:
    """From one table to the next, exactly the rows that came and went change, duplicates counted."""
    standing, there = Standing(), set[str]()
    for table in tables:
        step = standing.become([Step([(form, 1) for form in table])])
        assert all(weight for _, weight in step.changes)
        adds, removes = standing.change(step)
        there = there.union(adds).difference(removes)
        assert there == set(table)
        assert standing.weights == Counter(table)
