"""Traces, and views of them with what is to come."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from syndicate.flow import Trace, ZSet
from syndicate.flow.trace import NO_VALUE, TraceView

entries = st.tuples(
    st.sampled_from(["a", "b", "c"]), st.sampled_from([NO_VALUE, "x", "y"]), st.integers(0, 2), st.integers(-2, 2)
)


@given(
    st.lists(entries, max_size=12), st.lists(st.tuples(st.integers(0, 2), st.lists(entries, max_size=5)), max_size=3)
)
def test_a_view_is_the_trace_with_what_is_added(survivors: list[Any], batches: list[tuple[int, list[Any]]]) -> None:
    """Whatever is added, at times that the trace holds already as at others: as if it had been added to the trace."""
    base, whole = Trace(), Trace()
    for key, value, time, weight in survivors:
        base.add(key, value, time, weight)
        whole.add(key, value, time, weight)
    before = base.tuples()
    added: list[tuple[dict[Any, dict[Any, int]], int]] = []
    for time, changes in batches:
        groups: dict[Any, dict[Any, int]] = {}
        for key, value, _, weight in changes:
            group = groups.setdefault(key, {})
            group[value] = group.get(value, 0) + weight
            whole.add(key, value, time, weight)
        added.append((groups, time))
    view = TraceView(base, tuple(added))
    for key in "abc":
        totals = {}
        for value in (NO_VALUE, "x", "y"):
            expected = whole.groups.get(key, {}).get(value, {})
            assert {time: weight for time, weight in view.times(key, value).items() if weight} == expected
            assert view.total(key, value) == sum(expected.values())
            totals[value] = sum(expected.values())
        assert view.totals(key) == {value: weight for value, weight in totals.items() if weight}
    assert ZSet.adopt(view.consolidated()) == whole.consolidate()
    assert base.tuples() == before, "the trace itself has not changed"
