"""Loops in words, where kernels run: the same as by rows, whatever comes and goes, and steps that leave no trace."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syndicate.flow.local_engine
import syndicate.flow.loop
from syndicate import native
from syndicate.errors import EndlessLoop, StepFailed, SyndicateError
from syndicate.flow import Circuit, rearranges
from syndicate.flow.comparison import differ
from syndicate.flow.row_expression import RowExpression, expressed
from syndicate.flow.stream import Stream
from syndicate.flow.word_loop import LoopRows
from tests.strategies import examples
from tests.syndicate.flow.circuits import deltas
from tests.syndicate.flow.oracle import check
from tests.syndicate.flow.test_columnar import first, second
from tests.syndicate.flow.test_word_tables import BUDGETS, Stop, contents, fail, outcome

pytestmark = pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first step on, unless a test says otherwise."""
    monkeypatch.setattr(syndicate.flow.local_engine, "SOME_ROWS", -1)


def ends(_key: Any, left: Any, right: Any) -> Any:
    """The first part of one, the second of the other."""
    return left[0], right[1]


MOVING = [rearranges(function) for function in (ends, lambda k, a, b: (k, b[0]), lambda k, a, b: (a[1], "x"))]
SWAPPED = rearranges(lambda row: (row[1], row[0]))
TWICE = rearranges(lambda row: (row[0], row[0]))
MARKED = rearranges(lambda row: ("x", row[1]))
ITSELF = rearranges(lambda row: row)
INTEGER = RowExpression("row", (("part", 0), ("+", ("part", 1), [1])))


def more(row: Any) -> Any:
    """One more, of integers below a bound."""
    return (row[0], row[1] + 1 if type(row[1]) is int else row[1])


def below(row: Any) -> bool:
    """Whether the second part is no integer, or small."""
    return type(row[1]) is not int or row[1] < 5


WRITTEN = expressed(partial(more), INTEGER)
ASKED = expressed(partial(more), RowExpression("row", (("part", 0), None)))
BELOW = expressed(partial(below), RowExpression("test", (("<", ("part", 1), [5]),)))
UNLIKE = expressed(lambda row: differ(row[0], row[1]), RowExpression("test", (("!=", ("part", 0), ("part", 1)),)))

UNARY: tuple[Callable[[Stream], Stream], ...] = (
    lambda s: s.map(SWAPPED),
    lambda s: s.map(TWICE),
    lambda s: s.map(MARKED),
    lambda s: s.filter(BELOW).map(WRITTEN),
    lambda s: s.filter(below).map(ASKED),
    lambda s: s.filter(lambda row: row[0] != "a"),
    lambda s: s.distinct(),
    lambda s: s.index_with(first, second).pairs(),
    lambda s: s.index_with(second).values(),
)


def joined(a: Stream, b: Stream, rng: random.Random) -> Stream:
    """A join on some part of each."""
    values: list[Any] = [None, ITSELF, SWAPPED]
    move = rng.choice(MOVING)
    keys = (first, second) if move is MOVING[1] or rng.random() < 0.8 else (ITSELF, SWAPPED)
    left, right = a.index_with(rng.choice(keys), rng.choice(values)), b.index_with(rng.choice(keys), rng.choice(values))
    return left.join(right, move)


def grown(rng: random.Random, streams: list[Stream], count: int) -> list[Stream]:
    """More streams of the given ones."""
    pool = list(streams)
    for _ in range(count):
        kind = rng.random()
        one, other = rng.choice(pool), rng.choice(pool)
        pool.append(rng.choice(UNARY)(one) if kind < 0.4 else joined(one, other, rng) if kind < 0.8 else one + other)
    return pool


def circuit(seed: int, *, by_rows: bool = False, unique: bool = True) -> Circuit:
    """Two collections that depend on each other, and what depends on them."""
    rng, c = random.Random(seed), Circuit()
    a, b = c.source("a"), c.source("b", unique=rng.random() < 0.3 and unique)
    outside = [a, b, *grown(rng, [a, b], 2)]

    def bodies(r: dict[str, Stream]) -> dict[str, Stream]:
        pool = grown(rng, [rng.choice(outside), rng.choice(outside), r["p"], r["q"]], 5)
        return {"p": pool[-1] + joined(r["q"], a, rng), "q": pool[-2] + r["p"].filter(UNLIKE) + rng.choice(outside)}

    result = c.recursive_many(["p", "q"], bodies)
    for name, stream in result.items():
        c.sink(name, stream)
    c.sink("behind", joined(result["p"], b, rng))
    if by_rows:
        c.engine.row_budget = inf
    return c


def loops(c: Circuit) -> list[LoopRows]:
    """The loops of a circuit that can be in words."""
    return [] if c.engine.tables is None else [k for _, k in c.engine.tables.keepers if isinstance(k, LoopRows)]


def kinds(rng: random.Random) -> dict[str, bool]:
    """Of which elements changes are: integers mostly, or what is alike."""
    return {"alike": rng.random() < 0.2}


def cleaned(state: Any) -> Any:
    """What is kept, without what is empty, so that a group that has gone is not there."""
    return {place: each for place, each in state.items() if each}


@pytest.mark.parametrize("before", range(12))
def test_it_does_not_matter_how_nodes_are_numbered(before: int) -> None:
    """Those of a loop and those around it are numbered each by themselves."""
    c = Circuit()
    for number in range(before):
        c.source(f"other {number}")
    a, b, edges = c.source("a"), c.source("b"), c.source("edges").index_with(first)

    def bodies(r: dict[str, Stream]) -> dict[str, Stream]:
        return {"p": a + r["q"].index_with(second).join(edges, MOVING[0]), "q": b + r["p"]}

    c.sink("p", c.recursive_many(["p", "q"], bodies)["p"])
    c.step({"a": [(0, 0)], "b": [(1, 1)], "edges": [(0, 1), (1, 2)]})
    assert loops(c)


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**6))
def test_the_same_as_by_rows(seed: int) -> None:
    """Outputs, errors, derivations that are kept; a failed step leaves nothing; a snapshot of one is the other's."""
    ours, rows = circuit(seed), circuit(seed, by_rows=True)
    rng = random.Random(seed + 1)
    ours.engine.row_budget = rng.choice(BUDGETS)
    for step in deltas(rng, ["a", "b"], 8, **kinds(rng)):
        if rng.random() < 0.3:
            before = contents(ours)
            ours.engine.inspect = fail
            with pytest.raises((StepFailed, Stop)):
                ours.step(step)
            ours.engine.inspect = None
            assert cleaned(contents(ours)) == cleaned(before)
        assert outcome(ours, step) == outcome(rows, step)
        if rng.random() < 0.3:
            assert cleaned(contents(ours)) == cleaned(contents(rows))
        if rng.random() < 0.1:
            try:
                ours.restore(rows.snapshot())
            except SyndicateError:  # an element that no snapshot writes
                continue


@pytest.mark.parametrize("many", [-1.0, 2.0], ids=["at once", "after a while"])
@pytest.mark.parametrize("seed", range(40))
def test_computed_again(seed: int, many: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that starts again, at once or after it has followed a change for a while, gives the same."""
    monkeypatch.setattr(syndicate.flow.loop, "SMALL_LOOP", 0)
    monkeypatch.setattr(syndicate.flow.loop, "MANY_DELETED", many)
    monkeypatch.setattr(syndicate.flow.loop, "SOME_DELETED", -1.0)
    ours, rows = circuit(seed), circuit(seed, by_rows=True)
    rng = random.Random(seed)
    ours.engine.row_budget = rng.choice(BUDGETS)
    for step in deltas(rng, ["a", "b"], 10):
        if rng.random() < 0.3:
            ours.engine.inspect = fail
            with pytest.raises((StepFailed, Stop)):
                ours.step(step)
            ours.engine.inspect = None
        assert outcome(ours, step) == outcome(rows, step)


@pytest.mark.parametrize("seed", range(40))
def test_the_same_as_from_scratch(seed: int) -> None:
    """After each step, the outputs add up to a batch recomputation."""
    check(circuit(seed, unique=False), deltas(random.Random(seed), ["a", "b"], 8, negative=False))


def test_most_loops_are_in_words() -> None:
    """What is compared here is the kernel, not rows with rows."""
    results = [circuit(seed) for seed in range(40)]
    for seed, c in enumerate(results):
        for step in deltas(random.Random(seed), ["a", "b"], 6):
            c.step(step)
    assert sum(loop.store is not None for c in results for loop in loops(c)) > 20


def closure(limit: int = 10_000) -> Circuit:
    """Paths of a graph."""
    c = Circuit()
    edges = c.source("a")
    by_target = edges.index_with(second)
    move = rearranges(lambda _, path, edge: (edge[0], path[1]))
    paths = c.recursive(lambda r: edges + r.index_with(first).join(by_target, move), limit=limit)
    c.sink("paths", paths)
    return c


def reached(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The oracle."""
    result, fresh = set(edges), set(edges)
    while fresh:
        fresh = {(a, d) for a, b in fresh for c, d in edges if b == c} - result
        result |= fresh
    return result


@pytest.mark.parametrize("seed", range(6))
def test_a_closure_of_some_size(seed: int) -> None:
    """Keys of many values, many derivations of each: edges come and go, also most of them at once."""
    c, rng = closure(), random.Random(seed)
    edges: set[tuple[int, int]] = set()
    paths: set[tuple[int, int]] = set()
    for size in (60, 1, 1, 5, 40, 2, 30, 1):
        change: dict[tuple[int, int], int] = {}
        for _ in range(size):
            edge = rng.randrange(40), rng.randrange(40)
            if rng.random() < 0.5 and edges:
                edge = rng.choice(sorted(edges))
            change[edge] = -1 if edge in edges else 1
        edges ^= set(change)
        out = c.step({"a": change})["paths"]
        paths = {*paths, *(row for row, w in out.items() if w > 0)} - {row for row, w in out.items() if w < 0}
        assert paths == reached(edges)
    (loop,) = loops(c)
    assert loop.store is not None
    c.step({"a": dict.fromkeys(edges, -1)})
    assert len(loop) == 0


def test_a_loop_that_never_rests() -> None:
    """It is the same error as by rows, and the step leaves no trace."""
    c = Circuit()
    numbers = c.source("a")
    forever = expressed(lambda row: (row[0], row[1] + 1), INTEGER)
    c.sink("out", c.recursive(lambda r: numbers + r.map(forever), name="forever", limit=50))
    for _ in range(2):
        with pytest.raises(EndlessLoop, match="forever"):
            c.step({"a": {(0, 0): 1}})
    assert len(c.step({"a": {(0, 0): -1}})["out"]) == 0


def test_a_function_that_raises() -> None:
    """The element is named, as by rows; what was there stays, and the loop is in words when it goes on."""

    def odd(row: Any) -> bool:
        if row[1] == 3:
            raise ValueError("three")
        return bool(row[1] < 10)

    c = Circuit()
    numbers = c.source("a")
    c.sink("out", c.recursive(lambda r: numbers + r.filter(odd).map(WRITTEN)))
    assert len(c.step({"a": {(0, 8): 1}})["out"]) == 3
    with pytest.raises(StepFailed, match=r"three at \(1, 3\)"):
        c.step({"a": {(1, 1): 1}})
    assert len(c.step({"a": {(0, 8): -1}})["out"]) == 3
    (loop,) = loops(c)
    assert loop.store is not None
    assert len(loop) == 0


def test_numbers_beyond_small_ones() -> None:
    """Sums that no word holds are made by the function itself."""
    c = Circuit()
    numbers = c.source("a")
    doubled = expressed(lambda row: (row[0], row[1] * 2), RowExpression("row", (("part", 0), ("*", ("part", 1), [2]))))
    small = expressed(lambda row: row[1] < 2**70, RowExpression("test", (("<", ("part", 1), [2**70]),)))
    c.sink("out", c.recursive(lambda r: numbers + r.filter(small).map(doubled)))
    out = c.step({"a": {("a", 1): 1}})["out"]
    assert {row[1] for row, _ in out.items()} == {2**power for power in range(71)}


def test_a_watched_circuit_goes_by_rows() -> None:
    """Its nodes are measured one by one."""
    c = closure()
    c.step({"a": {(1, 2): 1, (2, 3): 1}})
    c.watch()
    assert dict(c.step({"a": {(3, 4): 1}})["paths"].items()) == {(3, 4): 1, (2, 4): 1, (1, 4): 1}
    assert "join" in str(c.profile())
