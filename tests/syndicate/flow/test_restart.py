"""Loops computed again: the same as followed, whichever way is taken, and taken back like any step."""

from __future__ import annotations

import random
from typing import Any

import pytest

import syndicate.flow.loop
from syndicate.errors import StepFailed
from syndicate.flow import Circuit, ZSet
from syndicate.flow.loop import Restart
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second
from tests.syndicate.flow.oracle import check
from tests.syndicate.flow.test_engine import Trap, contents


def closure() -> tuple[Circuit, Trap]:
    """Paths of a graph, with a trap behind them."""
    c, trap = Circuit(), Trap()
    edges = c.source("a")
    paths = c.recursive(lambda r: edges + r.index_with(second).join(edges.index_with(first), ends))
    c.sink("paths", paths)
    c.sink("trapped", paths.filter(trap))
    return c, trap


def starts(monkeypatch: pytest.MonkeyPatch, small: int, many: float, budget: float) -> list[int]:
    """Let loops start again sooner; counts how often they do."""
    counted: list[int] = []
    start = Restart.start

    def counting(self: Restart) -> Any:
        counted.append(1)
        return start(self)

    def fixed(self: Restart, batches: Any, size: int) -> float:
        result = original(self, batches, size)
        return result if result in (0.0, float("inf")) else budget

    original = Restart.budget
    monkeypatch.setattr(syndicate.flow.loop, "SMALL_LOOP", small)
    monkeypatch.setattr(syndicate.flow.loop, "MANY_DELETED", many)
    monkeypatch.setattr(Restart, "start", counting)
    monkeypatch.setattr(Restart, "budget", fixed)
    return counted


@pytest.mark.parametrize(("many", "budget"), [(-1.0, 0.0), (2.0, 5.0), (2.0, 40.0)], ids=["at once", "soon", "late"])
@pytest.mark.parametrize("seed", range(10))
def test_restarts_change_nothing(seed: int, many: float, budget: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random monotone loops that start again at once, or after having followed a change for a while."""
    counted = starts(monkeypatch, 0, many, budget)
    rng = random.Random(seed)
    check(circuits.monotone(rng), circuits.deltas(rng, ["a", "b"], 12))
    check(closure()[0], circuits.deltas(rng, ["a"], 12, alike=seed % 2 == 0))
    assert counted or budget > 10


@pytest.mark.parametrize("many", [-1.0, 2.0])
def test_a_restart_is_taken_back(many: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails after the loop has started again leaves the old state."""
    counted = starts(monkeypatch, 0, many, 3.0)
    c, trap = closure()
    rng = random.Random(1)
    graph = ZSet.of(*{(rng.randrange(12), rng.randrange(12)) for _ in range(40)})
    c.step({"a": graph})
    before = contents(c)
    trap.armed = True
    with pytest.raises(StepFailed):
        c.step({"a": ZSet(list((-graph).items())[:30])})
    trap.armed = False
    assert counted
    assert contents(c) == before
    assert len(c.step({"a": -graph})["paths"]) == sum(1 for _ in c.step({"a": graph})["paths"])


def test_a_large_deletion_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limits as they are: half of a graph deleted is a start, one edge is not, an insertion never."""
    counted = starts(monkeypatch, syndicate.flow.loop.SMALL_LOOP, syndicate.flow.loop.MANY_DELETED, float("inf"))
    c, _ = closure()
    rng = random.Random(2)
    graph = list({(rng.randrange(60), rng.randrange(60)) for _ in range(150)})
    c.step({"a": ZSet.of(*graph)})
    c.step({"a": {graph[0]: -1}})
    assert not counted
    c.step({"a": ZSet(dict.fromkeys(graph[1:80], -1))})
    assert len(counted) == 1
    c.step({"a": ZSet.of(*graph[:80])})
    assert len(counted) == 1
