"""A consumer that hangs, among healthy ones: real processes, SIGSTOP and SIGCONT; a short run of ``relay-stopped``."""

from __future__ import annotations

from benchmarks.stopped import stopped


def test_a_consumer_that_hangs_costs_nobody_else_and_is_right_again() -> None:
    """While one consumer hangs, the others get everything and the broker keeps state and not history; when it goes on
    it has exactly what stands, as have the others.
    """
    found = stopped(
        healthy=6, keys=400, batch=20, padding=800, calm=1.0, during=2.0, laps=5
    )  # raises if any state is wrong
    assert found["keys"] == 400
    assert found["collapsed"] > 0, "nothing had to be kept for it: it was not stopped for long enough"
    assert found["waiting entries"] <= 4 * found["keys"]
    assert found["MiB more at most"] < 64
    assert found["MiB more in the end"] < 64
    assert found["rate kept"] > 0.1
    assert found["s until caught up"] < 15
    assert found["s until right"] < 15
