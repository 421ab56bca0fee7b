"""A consumer that hangs, among healthy ones: real processes, SIGSTOP and SIGCONT; a short run of ``relay-stopped``."""

from __future__ import annotations

from benchmarks.stopped import stopped


def test_a_consumer_that_hangs_costs_nobody_else_and_is_right_again() -> None:
    """While one consumer hangs, the others get everything and the broker keeps state and not history; when it goes on
    it has exactly what is asserted, as have the others.
    """
    result = stopped(
        healthy=6, keys=400, batch=20, padding=800, calm=1.0, during=2.0, laps=5
    )  # raises if any state is wrong
    assert result["keys"] == 400
    assert result["collapsed"] > 0, "nothing had to be kept for it: it was not stopped for long enough"
    assert result["waiting entries"] <= 4 * result["keys"]
    assert result["MiB more at most"] < 64
    assert result["MiB more in the end"] < 64
    assert result["rate kept"] > 0.1
    assert result["s until caught up"] < 15
    assert result["s until right"] < 15
