"""What single mechanisms of ours cost: tables that are generated once they are hot, and tracing.

The other side has neither, so these figures stand alone.
"""

from __future__ import annotations

import itertools
import math
import timeit
from time import perf_counter
from typing import Any

from benchmarks.dataspace import messages
from benchmarks.figure import answer
from syndicate import ANY, Ref, capture
from syndicate.actors.system import System
from syndicate.index.compiled import HOT
from syndicate.index.index import Index
from syndicate.index.skeleton import analyse
from syndicate.values.value import freeze

_ITEMS = 8


def _silent(*event: Any, **named: Any) -> None:
    """Nobody whom the index tells."""


def generation(skeletons: int, count: int) -> dict[str, float]:
    """What a message costs in the index while its table is cold, once it is hot, and what generating the table takes.

    Medians over skeletons that have one constant, one capture and six checks at different places.
    """
    cold, generating, hot = [], [], []
    now = perf_counter
    for constant, captured in itertools.islice(itertools.permutations(range(_ITEMS), 2), skeletons):
        pattern: list[Any] = [ANY] * _ITEMS
        pattern[constant], pattern[captured] = "constant", capture()
        index = Index(_silent)
        index.observe(*analyse(pattern), Ref.unbound())
        form = freeze(["constant"] * _ITEMS)
        first = []
        for _ in range(2 * HOT):
            begun = now()
            index.send(form)
            first.append(now() - begun)
        begun = now()
        for _ in range(count):
            index.send(form)
        hot.append((now() - begun) / count)
        cold.append(_median(first[: HOT // 2]))
        generating.append(max(first))
    gain = _median(cold) - _median(hot)  # none, where somebody else had the processor
    return {
        "ns a message, cold": 1e9 * _median(cold),
        "ns a message, hot": 1e9 * _median(hot),
        "us to generate": 1e6 * _median(generating),
        "messages until it pays": _median(generating) / gain if gain > 0 else math.inf,
    }


def tracing(count: int) -> dict[str, float]:
    """One message a turn to one of 100 observers, that is three turns a message, without and with somebody who listens.

    While nobody listens, what is left of tracing is one test in each turn.  It is too small to be seen in the rate,
    so it is timed by itself, loop included, and shown as a share of a turn.
    """
    off = messages(100, count, batched=False)
    on = messages(100, count, batched=False, tracers=[lambda entry: None])
    tests = timeit.repeat("if turn.tracing is not None: pass", globals={"turn": System().turn}, number=100_000)
    test = min(tests) / 100_000
    turn = 1 / (3 * off)
    return {
        "messages/s, nobody listens": off,
        "messages/s, one listens": on,
        "ns a turn": 1e9 * turn,
        "ns the test": 1e9 * test,
        "% of a turn while nobody listens": 100 * test / turn,
    }


def _median(figures: list[float]) -> float:
    return sorted(figures)[len(figures) // 2]


if __name__ == "__main__":
    answer(generation, tracing)
