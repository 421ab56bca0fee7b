from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.errors import SourceError
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.rows import Step

FORM = st.sampled_from("abc")
CHANGES = st.lists(st.tuples(FORM, st.integers(-2, 2)), max_size=6)


@given(st.lists(CHANGES, max_size=8))
def test_crossings_of_zero(steps: list[list[tuple[str, int]]]) -> None:
    """After each step, what was added and not removed is exactly what has a positive sum of weights."""
    current, sums, there = CurrentRows(), Counter[str](), set[str]()
    for step in steps:
        adds, removes = current.change(Step(step))
        for form, weight in step:
            sums[form] += weight
        assert not there & set(adds)
        assert there >= set(removes)
        assert not set(adds) & set(removes)
        there = there.union(adds).difference(removes)
        assert there == {form for form, count in sums.items() if count > 0}
        assert current.weights == {form: count for form, count in sums.items() if count}


@given(st.lists(st.dictionaries(st.integers(0, 3), st.none() | FORM, max_size=4), max_size=8))
def test_keys_replace(steps: list[dict[int, str | None]]) -> None:
    """With keys, what is there after each step are the latest rows of all keys; None removes a key's row."""
    current, model, there = CurrentRows(keyed=True), dict[int, str](), set[str]()
    for step in steps:
        changes = [("gone" if form is None else form, -1 if form is None else 1) for form in step.values()]
        adds, removes = current.change(Step(changes, [(key,) for key in step]))
        for key, form in step.items():
            if form is None:
                model.pop(key, None)
            else:
                model[key] = form
        there = there.union(adds).difference(removes)
        assert there == set(model.values())


def test_an_update_in_one_step() -> None:
    """The old and the new image of a row, in whatever order, are a replacement; an unchanged row is nothing."""
    current = CurrentRows(keyed=True)
    assert current.change(Step([("old", 1)], [(1,)])) == (["old"], [])
    assert current.change(Step([("new", 1), ("old", -1)], [(1,), (1,)])) == (["new"], ["old"])
    assert current.change(Step([("new", 1), ("new", 1)], [(1,), (1,)])) == ([], [])
    assert current.change(Step([("whatever", -1)], [(2,)])) == ([], [])


def test_two_rows_of_one_key() -> None:
    """Two different rows of one key in one step are an error: nothing says which is the later one."""
    with pytest.raises(SourceError, match=r"two rows have the key 1, 'x': 'a' and 'b'; name the column .* sequence="):
        CurrentRows(keyed=True).change(Step([("a", 1), ("b", 1)], [(1, "x"), (1, "x")]))


@pytest.mark.parametrize("step", [Step([("b", 1)], [(1,)]), Step([("a", 1)], [(1,)]), Step([("b", 2)], [(2,)])])
def test_two_rows_of_one_key_in_a_table(step: Step) -> None:
    """In a table a key is that of one row: a second one, equal or not, is an error, whichever way it is found."""
    current = CurrentRows(keyed=True, table=True)
    current.change(Step([("a", 1)], [(1,)]))
    with pytest.raises(SourceError, match=r"two rows have the key .: .*; give key= the columns"):
        current.change(step)
    with pytest.raises(SourceError, match="two rows have the key 1: 'a' and 'b'; give key= the columns"):
        current.become([Step([("a", 1), ("b", 1)], [(1,), (1,)])])


@given(st.lists(st.dictionaries(st.integers(0, 3), FORM, max_size=4), max_size=8))
def test_snapshots_with_keys(tables: list[dict[int, str]]) -> None:
    """From one table with a key to the next, each key has its row, and rows of several keys are there once."""
    current, there = CurrentRows(keyed=True, table=True), set[str]()
    for table in tables:
        step = current.become([Step([(form, 1) for form in table.values()], [(key,) for key in table])])
        adds, removes = current.change(step)
        there = there.union(adds).difference(removes)
        assert there == set(table.values()) == set(current.there())
        assert current.of_key == {(key,): form for key, form in table.items()}


@given(st.booleans(), st.lists(CHANGES, max_size=6))
def test_what_was_touched(keyed: bool, steps: list[list[tuple[str, int]]]) -> None:
    """Whatever was not touched is as it was: a copy that follows only what was touched stays a copy."""
    current, copy = CurrentRows(keyed=keyed, touched={}), dict[str, object]()
    for step in steps:
        firsts = dict(step)
        current.change(Step(list(firsts.items()), [(form,) for form in firsts] if keyed else None))
        now: dict[str, object] = dict(current.of_key if keyed else current.weights)
        assert current.touched is not None
        for each in current.touched:
            copy.pop(each, None)
            copy |= {each: now[each]} if each in now else {}
        current.touched.clear()
        assert copy == now


@given(st.lists(st.lists(FORM, max_size=6), max_size=6))
def test_snapshots(tables: list[list[str]]) -> None:
    """From one table to the next, exactly the rows that came and went change, duplicates counted."""
    current, there = CurrentRows(), set[str]()
    for table in tables:
        step = current.become([Step([(form, 1) for form in table])])
        assert all(weight for _, weight in step.changes)
        adds, removes = current.change(step)
        there = there.union(adds).difference(removes)
        assert there == set(table)
        assert current.weights == Counter(table)
