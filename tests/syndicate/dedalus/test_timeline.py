"""What is true at a time: sorted, unsorted, and row by row, all the same."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.dedalus.ast import Row
from syndicate.dedalus.timeline import Intervals, RowsAtOnce, Timeline, order, writable
from syndicate.errors import FactError
from syndicate.flow.zset import ZSet

values = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -1.5]), st.sampled_from(["", "a", "b"]))
spans = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), max_size=2)


@given(st.dictionaries(st.tuples(values, values), spans, max_size=12), st.integers(1, 5))
def test_views_of_a_time(rows: dict[Row, list[tuple[int, int]]], time: int) -> None:
    """Numbers come before text, by size; a view without an order has the same rows."""
    intervals: Intervals = {"p": {row: tuple(held) for row, held in rows.items()}}
    moment = Timeline(intervals, 1, 5, []).at(time)
    there = [row for row, held in rows.items() if any(since <= time < to for since, to in held)]
    assert moment["p"] == sorted(there, key=order)
    assert sorted(moment.unsorted("p"), key=order) == moment["p"]
    assert [row for row in rows if moment.holds("p", row)] == there


def test_no_such_relation() -> None:
    """Each view says that there is no such relation."""
    moment = Timeline({"p": {}}, 1, 5, []).at(1)
    for look in (lambda: moment["q"], lambda: moment.holds("q", ()), lambda: moment.unsorted("q")):
        with pytest.raises(FactError, match="no relation 'q'"):
            look()


@given(st.sets(st.tuples(values, values), max_size=12), st.tuples(values, values))
def test_rows_at_once(rows: set[Row], other: Row) -> None:
    """Rows that came at once are as a dictionary of them is, for whoever looks first, and however."""
    began = ((1, 4),)
    wanted = dict.fromkeys(rows, began)

    def fresh() -> RowsAtOnce:
        return RowsAtOnce(ZSet(dict.fromkeys(rows, 1)), began)

    assert len(fresh()) == len(wanted)
    assert bool(fresh()) is bool(wanted)
    assert fresh() == wanted == dict(fresh())
    assert set(fresh()) == rows
    assert dict(fresh().items()) == wanted
    assert list(fresh().values()) == list(wanted.values())
    assert fresh().get(other, ()) == wanted.get(other, ())
    assert (other in fresh()) is (other in wanted)
    assert pickle.loads(pickle.dumps(fresh())) == copy.deepcopy(fresh()) == wanted
    assert eval(repr(fresh())) == wanted
    intervals: Intervals = {"p": fresh()}
    before = intervals["p"]
    for row in (*rows, other):
        writable(intervals, "p")[row] = [*began, (5, 6)]
    assert intervals["p"] == before == {row: [*began, (5, 6)] for row in (*rows, other)}
