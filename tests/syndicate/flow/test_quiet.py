"""What happens where nothing changes: quiet epochs, quiet sinks, loops that never are."""

from __future__ import annotations

from typing import Any

import pytest

from syndicate.errors import EndlessLoop
from syndicate.flow import Circuit, ZSet
from tests.syndicate.flow.circuits import two_sources


def test_a_quiet_sink() -> None:
    """It gives an empty ZSet, by index and by get(); what is no sink gives the default."""
    c, a, b = two_sources()
    c.sink("a", a)
    c.sink("b", b.index_with(lambda n: n))
    c.sink("both", a, b)
    out = c.step({})
    assert list(out) == []
    assert out.get("a") == out["a"] == ZSet()
    assert len(out.get("b")) == 0
    assert out.get("both") == (ZSet(), ZSet())
    assert out.get("c") is None
    assert out.get("c", 7) == 7
    assert c.step({"a": {1: 1}}).get("a") == ZSet({1: 1})


@pytest.mark.parametrize("depth", [1, 2])
def test_inspect_in_a_loop(depth: int) -> None:
    """It sees each tick of the loop: iteration 0 of a quiet epoch, too; so does what gives a whole trace."""
    c = Circuit()
    seen: list[Any] = []
    wholes: list[Any] = []

    def body(r: Any) -> Any:
        if depth == 2:
            return c.recursive(lambda s: watched(s) + r) + r
        return watched(r)

    def watched(r: Any) -> Any:
        a.trace_append().consolidate().inspect(wholes.append)
        return a + r.inspect(seen.append)

    a = c.source("a")
    c.sink("out", c.recursive(body))
    for epoch in range(3):
        seen.clear()
        wholes.clear()
        out = c.step({"a": {1: 1}} if epoch == 0 else {})
        assert len(out["out"]) == (epoch == 0)
        assert seen[0] == ZSet()
        assert wholes[0] == ZSet({1: 1})
        assert len(seen) == 1 or epoch == 0


def test_the_bound_of_a_loop() -> None:
    """A loop without end is reported after ten thousand iterations, unless a longer one is asked for."""
    c = Circuit()
    a = c.source("a")
    c.sink("out", c.recursive(lambda r: a + r.map(lambda n: n + 1)))
    with pytest.raises(EndlessLoop, match=r"within 10000 iterations.*limit="):
        c.step({"a": {1: 1}})
    assert c.engine.epoch == 0
