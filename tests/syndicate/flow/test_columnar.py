"""Columns: the same as by rows, whichever of the two a change comes as, and what came before."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syndicate.flow.local
from syndicate.errors import CircuitError, StepFailed, UnhashableElement, WeightError
from syndicate.flow import Circuit, Columns, Stream, ZSet, rearranges, where
from syndicate.flow import aggregates as agg
from tests.syndicate.flow.circuits import two_sources
from tests.syndicate.flow.oracle import Bag, bag_of, check

np = pytest.importorskip("numpy")

from syndicate.flow.columnar import joins, sums, table, tail  # noqa: E402

first, second = itemgetter(0), itemgetter(1)
swapped = rearranges(lambda pair: (pair[1], pair[0]))
twice = rearranges(lambda pair: (pair[0], pair[0]))
tagged = rearranges(lambda pair: (pair[1], 7))
ends = rearranges(lambda key, left, right: (left[0], right[1]))
others = rearranges(lambda key, left, right: (right[0], key))
SPECIAL = (0.0, -0.0, 1.0, 2.5, float("nan"), -3.25)
VALUES: tuple[tuple[Any, ...], ...] = ((0, 1, 2, 3), SPECIAL, (False, True), ("a", "b", "", "a\0"), (b"x", None, 1, "a"))

UNARY: tuple[Callable[[Stream], Stream], ...] = (
    lambda s: s.map(swapped),
    lambda s: s.map(twice),
    lambda s: s.map(tagged),
    lambda s: s.map(lambda pair: (pair[1], pair[0])),
    lambda s: s.filter(where(0, "!=", 1)),
    lambda s: s.filter(where(1, "==", "a")),
    lambda s: s.filter(lambda pair: pair[0] == pair[1]),
    Stream.distinct,
    Stream.distinct,
    lambda s: s.index_with(first).pairs().map(second),
    lambda s: s.index_with(first, second).distinct().pairs(),
    lambda s: s.index_with(swapped).values(),
    lambda s: s.index_with(twice).keys(),
    lambda s: s.negate(),
    lambda s: s.index_with(first).aggregate(agg.count),
    lambda s: s.index_with(twice).aggregate(agg.count).map(first),
    lambda s: s.index_with(second).aggregate(agg.min(lambda pair: str(pair[0]))),
)
KEYS = (first, second, first, lambda pair: pair[0])
BINARY: tuple[Callable[[Stream, Stream, random.Random], Stream], ...] = (
    lambda a, b, rng: a.index_with(rng.choice(KEYS)).join(b.index_with(rng.choice(KEYS)), rng.choice((ends, others))),
    lambda a, b, rng: a.index_with(first).join(b.index_with(second), ends),
    lambda a, b, rng: a.index_with(swapped).join(b.index_with(swapped), ends),
    lambda a, b, rng: a.index_with(first).join(b.index_with(first), lambda k, x, y: (x[1], y[1])),
    lambda a, b, rng: a + b,
    lambda a, b, rng: a - b,
    lambda a, b, rng: (a + b).distinct(),
    lambda a, b, rng: a.index_with(first).antijoin(b.index_with(second)),
    lambda a, b, rng: a.semijoin(b),
    lambda a, b, rng: a.product(b, lambda x, y: (x[0], y[1])) if rng.random() < 0.3 else a,
)


def circuit(rng: random.Random, size: int = 6) -> Circuit:
    """Known functions and others, in any order, sometimes with a loop or a delay."""
    c, a, b = two_sources()
    pool = [a, b]
    for _ in range(size):
        kind = rng.choice((UNARY, BINARY))
        if kind is UNARY:
            pool.append(rng.choice(UNARY)(rng.choice(pool)))
        else:
            pool.append(rng.choice(BINARY)(rng.choice(pool), rng.choice(pool), rng))
    if rng.random() < 0.3:
        pool.append(pool[-1].z1() + pool[2])
    if rng.random() < 0.3:
        x, y = a.distinct(), rng.choice(pool).distinct()
        pool.append(c.recursive(lambda r: x + r.index_with(second).join(y.index_with(first), ends)))
    for number, stream in enumerate(pool[-5:]):
        c.sink(str(number), stream)
    return c


def changes(rng: random.Random, steps: int, *, kinds: int = 1, signed: bool = True) -> Iterator[dict[str, Any]]:
    """Changes of two sources, each time as rows or as columns, of up to *kinds* kinds of columns."""
    some = [(rng.choice(VALUES), rng.choice(VALUES)) for _ in range(kinds)]
    present: dict[str, list[Any]] = {"a": [], "b": []}
    for _ in range(steps):
        out: dict[str, Any] = {}
        for name, known in present.items():
            left, right = rng.choice(some)
            pairs = []
            for _ in range(rng.randrange(7)):
                if known and rng.random() < 0.5:
                    pairs.append((known.pop(rng.randrange(len(known))), -1))
                    continue
                element = (rng.choice(left), rng.choice(right))
                weight = rng.choice((-1, 1, 2)) if signed else 1
                pairs.append((element, weight))
                known += [element] * weight
            if not pairs:
                continue
            if rng.random() < 0.6:
                columns = [[pair[0][at] for pair in pairs] for at in (0, 1)]
                out[name] = Columns(columns, [pair[1] for pair in pairs])
            else:
                out[name] = ZSet(pairs)
        yield out


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """No change is too small for columns."""
    monkeypatch.setattr(syndicate.flow.local, "SMALL", 0)


@pytest.fixture(params=[False, True], ids=["codes", "collisions"])
def collisions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with hashes that are nearly all alike."""
    if request.param:

        def weak(columns: Any, length: int) -> Any:
            return table.coded(columns, length)[0] & 1, False

        monkeypatch.setattr(joins, "HEAD", 3)
        monkeypatch.setattr(tail, "coded", weak)
        monkeypatch.setattr(sums, "coded", weak)


@pytest.mark.usefixtures("eager", "collisions")
@pytest.mark.parametrize("seed", range(60))
def test_random_circuits(seed: int) -> None:
    """After each step, the outputs add up to a batch recomputation."""
    rng = random.Random(seed)
    check(circuit(rng), changes(rng, 14, kinds=1 + seed % 3, signed=False))


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_any_mixture(rng: random.Random, kinds: int) -> None:
    """The same with what hypothesis finds, and small examples where it fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syndicate.flow.local, "SMALL", 0)
        check(circuit(rng, 3), changes(rng, 8, kinds=kinds, signed=False))
