"""Log lines that peers can cause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relay.server.log_limits import BURST, PERIOD, Remarks


@given(st.lists(st.tuples(st.floats(0, 5), st.sampled_from(["a", "b"])), max_size=200))
def test_all_that_was_remarked_is_counted_and_few_lines_are_written(steps: list[tuple[float, str]]) -> None:
    """Of each kind no more lines than a burst and one a period; and none is lost, but the last left out."""
    now, written = 0.0, {"a": list[int](), "b": list[int]()}
    remarks = Remarks[str](lambda: now, lambda line, left_out: written[line].append(left_out))
    for pause, kind in steps:
        now += pause
        remarks.remark(kind, kind)
    for kind, lines in written.items():
        said = sum(1 for _, each in steps if each == kind)
        assert len(lines) <= BURST + now / PERIOD
        assert len(lines) + sum(lines) <= said
        assert bool(lines) == bool(said)
