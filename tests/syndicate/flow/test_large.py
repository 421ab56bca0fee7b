"""Large changes by rows: worked on as columns, kept in dictionaries, the same as by rows."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syndicate.flow.local_engine
from syndicate.errors import StepFailed, WeightError
from syndicate.flow import Circuit, Columns, Stream, ZSet, rearranges
from syndicate.flow import aggregates as agg
from syndicate.flow.contents import held
from syndicate.flow.local_engine import LARGE_CHANGE
from tests.strategies import examples
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import two_sources
from tests.syndicate.flow.oracle import Bag, bag_of, check
from tests.syndicate.flow.test_columnar import circuit, ends, first, second, swapped

pytest.importorskip("numpy")


@pytest.fixture(autouse=True)
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no kernels run: there tables take changes of any size."""
    monkeypatch.setattr(syndicate.flow.local_engine, "tabular", lambda *_: None)


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change counts as large."""
    monkeypatch.setattr(syndicate.flow.local_engine, "LARGE_CHANGE", 1)


def changes(rng: random.Random, steps: int) -> list[dict[str, dict[Any, int]]]:
    """Changes of pairs of integers, some of them of what is not there, of very different sizes."""
    results = []
    for _ in range(steps):
        sizes = {name: rng.choice((0, 1, 3, 30)) for name in "ab"}
        results.append(
            {
                name: {(rng.randrange(5), rng.randrange(6)): rng.choice((1, 1, 2, -1, -2, 0)) for _ in range(size)}
                for name, size in sizes.items()
            }
        )
    return results


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("seed", range(60))
def test_random_circuits(seed: int) -> None:
    """Circuits of functions that rearrange and others: at each step the same as from scratch."""
    rng = random.Random(seed)
    check(circuit(rng), [{name: ZSet(delta) for name, delta in step.items()} for step in changes(rng, 8)])


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("seed", range(25))
def test_random_circuits_of_other_tests(seed: int) -> None:
    """Circuits with loops, whose elements are sometimes no integers, or look alike."""
    rng = random.Random(seed)
    build = rng.choice((circuits.flat, circuits.monotone, circuits.levelled))
    check(build(rng), circuits.deltas(rng, ["a", "b"], 8, alike=build is circuits.flat))


@settings(max_examples=examples(60), deadline=None)
@given(st.randoms(use_true_random=False))
def test_rows_large_and_small_and_columns(rng: random.Random) -> None:
    """Whatever comes after whatever, and in whatever form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syndicate.flow.local_engine, "SMALL_COLUMNS", 0)

        def given_changes() -> Iterator[dict[str, Any]]:
            for step in changes(rng, 7):
                patch.setattr(syndicate.flow.local_engine, "LARGE_CHANGE", rng.choice((1, 10, 10**9)))
                as_columns = rng.random() < 0.3
                yield {name: in_columns(delta) if as_columns else ZSet(delta) for name, delta in step.items() if delta}

        check(circuit(rng, 5), given_changes())


def in_columns(delta: dict[Any, int]) -> Columns:
    """The same change as columns."""
    return Columns([[key for key, _ in delta], [value for _, value in delta]], list(delta.values()))


def workload() -> tuple[Circuit, Stream]:
    """Each operator that has arrays, and a function that can be made to fail behind them."""
    c, a, b = two_sources()
    keyed = a.index_with(first, second)
    joined = keyed.join(b.index_with(first, second), rearranges(lambda k, x, y: (k, x, y)))
    c.sink("joined", joined)
    for aggregate in (agg.count, agg.sum, agg.avg, agg.min, agg.max):
        c.sink(str(aggregate), keyed.aggregate(aggregate))
    c.sink("set", joined.map(itemgetter(0, 1)).distinct())
    return c, joined


def load(rng: random.Random, size: int) -> dict[str, dict[Any, int]]:
    """So many rows for each side."""
    return {name: {(rng.randrange(size // 2), rng.randrange(size)): 1 for _ in range(size)} for name in "ab"}


def states(c: Circuit) -> dict[Any, Any]:
    """A copy of all dictionaries that a circuit keeps."""
    results = {}
    for place, state in held(c.engine).items():
        index = getattr(state, "index", state)
        if isinstance(index, dict):
            results[place] = {key: dict(each) if isinstance(each, dict) else each for key, each in index.items()}
    return results


def test_the_state_stays_in_dictionaries() -> None:
    """After a large change by rows nothing is kept in columns, and all is as after the same change by rows alone."""
    rng = random.Random(4)
    c, _ = workload()
    other, _ = workload()
    for size in (2 * LARGE_CHANGE, 3 * LARGE_CHANGE):
        step = load(rng, size)
        large = c.step(step)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(syndicate.flow.local_engine, "LARGE_CHANGE", 10**9)
            small = other.step(step)
        assert all(bag_of(large[name]) == bag_of(small[name]) for name in c.sinks)
        assert states(c) == states(other)
    assert c.engine.readied is not None
    assert not any(size for _, size in c.engine.in_columns())
    gone = c.step({name: dict.fromkeys(step[name], -1) for name in step})
    assert all(len(changed) for changed in gone.values())


def test_a_large_step_that_fails() -> None:
    """It leaves the circuit as it was, and says at which element the function raised."""
    rng = random.Random(5)
    c, joined = workload()
    last = joined.map(lambda row: 1 // (row[1] - 7))
    c.sink("last", last.distinct())
    step = load(rng, 2 * LARGE_CHANGE)
    step["a"] = {element: 1 for element in step["a"] if element[1] != 7}
    c.step(step)
    before = states(c)
    bad = load(rng, 2 * LARGE_CHANGE)
    bad["a"] = {element: 1 for element in bad["a"] if element[1] != 7} | {(1, 7): 1}
    bad["b"] = {**bad["b"], (1, 1): 1}
    with pytest.raises(StepFailed, match=r"ZeroDivisionError.* at \(1, 7, \d+\)"):
        c.step(bad)
    assert states(c) == before
    del bad["a"][1, 7]
    assert len(c.step(bad)["joined"])


def test_a_given_dictionary_is_not_kept() -> None:
    """Who changes what he gave changes nothing of what he got."""
    c = Circuit()
    rows = c.source("rows")
    c.sink("rows", rows)
    c.sink("counts", rows.index_with(first).aggregate(agg.count))
    inputs = {(number, number): 1 for number in range(2 * LARGE_CHANGE)}
    out = c.step({"rows": inputs})
    inputs.clear()
    assert len(out["rows"]) == len(list(out["counts"])) == 2 * LARGE_CHANGE


@pytest.mark.parametrize("weight", [1.0, True, "1", 1 << 70])
def test_odd_weights(weight: Any) -> None:
    """A weight that is no number is refused; one of more than 64 bits counts."""
    c, _ = workload()
    step = {"a": {(number, number): 1 for number in range(2 * LARGE_CHANGE)} | {(0, 0): weight}}
    if type(weight) is int:
        assert c.step(step)["count"][0, weight] == 1
    else:
        with pytest.raises(WeightError):
            c.step(step)


@pytest.mark.parametrize(
    "odd", [(True, -1), (1.0, -1), (1 << 70, -1), (1,), (1, 2, 3), "ab", b"ab", (1, (2,)), (None, -1)]
)
def test_odd_elements(odd: Any) -> None:
    """One element that does not look as the others: all go by rows, and types count."""
    c = Circuit()
    c.sink("counts", c.source("a").index_with(itemgetter(0)).aggregate(agg.count))
    elements = {(number % 10, number): 1 for number in range(2 * LARGE_CHANGE)}
    counts = c.step({"a": {**elements, odd: 1}})["counts"]
    plain = odd[0] in range(10) and type(odd[0]) is int
    assert counts[odd[0], 1 + plain * LARGE_CHANGE // 5] == 1


def test_large_groups() -> None:
    """Few large groups: the best is found by rankings, and stays right."""
    c = Circuit()
    c.sink("max", c.source("a").index_with(swapped).values().index_with(first, second).aggregate(agg.max))
    c.step({"a": {(0, number): 1 for number in range(90 * LARGE_CHANGE)}})
    assert dict(
        c.step({"a": {(0, 90 * LARGE_CHANGE - 1 - number): -1 for number in range(LARGE_CHANGE)}})["max"].items()
    ) == {
        (0, 90 * LARGE_CHANGE - 1): -1,
        (0, 89 * LARGE_CHANGE - 1): 1,
    }


def test_both_sides_replaced() -> None:
    """Where all of both sides is replaced, the new product less the old is what is made."""
    c, a, b = two_sources()
    c.sink("out", a.index_with(first).join(b.index_with(first), ends))
    old, new = ([(number % LARGE_CHANGE, number + shift) for number in range(2 * LARGE_CHANGE)] for shift in (0, 10**6))
    c.step({name: dict.fromkeys(old, 1) for name in "ab"})
    swap = {**dict.fromkeys(old, -1), **dict.fromkeys(new, 1)}
    out = c.step({"a": swap, "b": swap})["out"]
    for sign, rows in ((-1, old), (1, new)):
        by_key: dict[int, list[tuple[int, int]]] = {}
        for row in rows:
            by_key.setdefault(row[0], []).append(row)
        expected = Bag(((x[0], y[1]), sign) for group in by_key.values() for x in group for y in group)
        assert Bag((element, weight) for element, weight in out.items() if weight * sign > 0) == expected


def test_no_numpy() -> None:
    """Without numpy large changes go by rows."""
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from operator import itemgetter\n"
        "from syndicate.flow import Circuit, aggregates\n"
        "c = Circuit(); c.sink('n', c.source('a').index_with(itemgetter(0)).aggregate(aggregates.count))\n"
        "print(len(c.step({'a': {(n, n): 1 for n in range(5000)}})['n']), c.engine.readied)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5000", "None"]


def test_numpy_is_left_alone_where_it_would_not_pay() -> None:
    """A circuit whose functions are its own business does not import it."""
    program = (
        "import sys\n"
        "from syndicate.flow import Circuit, aggregates\n"
        "c = Circuit(); c.sink('n', c.source('a').index_with(lambda e: e[0]).aggregate(aggregates.count))\n"
        "print(len(c.step({'a': {(n, n): 1 for n in range(5000)}})['n']), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5000", "False"]
