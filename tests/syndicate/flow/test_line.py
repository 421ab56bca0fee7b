"""A loop's iterations in a straight line give what marked ones give, and leave no trace when a function raises."""

from __future__ import annotations

import random
from operator import itemgetter
from typing import Any

import pytest

from syndicate.errors import StepFailed
from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow.loop import Loop


class Bomb:
    """A function of rows that raises on some."""

    def __init__(self) -> None:
        self.on: Any = None

    def __call__(self, row: Any) -> Any:
        """The row."""
        if row == self.on:
            raise ZeroDivisionError
        return row


def closure(bomb: Bomb) -> Circuit:
    """Paths of edges."""
    circuit = Circuit()
    edges = circuit.source("edges")
    arranged = edges.index_with(itemgetter(1), itemgetter(0))

    def longer(paths: Stream) -> Stream:
        joined = paths.index_with(itemgetter(0), itemgetter(1)).join(arranged, lambda _, end, start: (start, end))
        return joined.map(bomb).plus(edges)

    circuit.sink("paths", circuit.recursive(longer))
    return circuit


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_raises_in_a_late_iteration(seed: int) -> None:
    """It is taken back, and what follows is as if it had not been tried, and as without lines."""
    rng = random.Random(seed)
    bomb = Bomb()
    tried, marked = closure(bomb), closure(Bomb())
    lines = []

    def unlined(scope: Any) -> None:
        for child in scope.children:
            if isinstance(child, Loop):
                lines.append(child.line)
                child.line = None

    first = ZSet.of(*((n, n + 1) for n in range(20)))
    assert tried.step({"edges": first})["paths"] == marked.step({"edges": first})["paths"]
    unlined(marked.engine.root)
    assert lines
    assert None not in lines
    for step in range(20, 30):
        bomb.on = (rng.randrange(step - 10, step - 3), step + 1)
        change = ZSet.of((step, step + 1))
        with pytest.raises(StepFailed):
            tried.step({"edges": change})
        bomb.on = None
        if rng.random() < 0.5:
            change = change + -ZSet.of((step - 12, step - 11))
        assert tried.step({"edges": change})["paths"] == marked.step({"edges": change})["paths"]
