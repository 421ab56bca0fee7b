"""Columns: the same as by rows, whichever of the two a change comes as, and what came before."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syndicate.flow.local_engine
from syndicate.errors import CircuitError, StepFailed, UnhashableElement, WeightError
from syndicate.flow import Circuit, Columns, Stream, ZSet, rearranges, shape, where
from syndicate.flow import aggregates as agg
from tests.strategies import examples
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import two_sources
from tests.syndicate.flow.oracle import Bag, bag_of, check

np = pytest.importorskip("numpy")

from syndicate.flow.columnar import (  # noqa: E402  # they need numpy
    joins,
    sorted_runs,  # they need numpy
    sums,
    table,
)

first, second = itemgetter(0), itemgetter(1)
swapped = rearranges(lambda pair: (pair[1], pair[0]))
twice = rearranges(lambda pair: (pair[0], pair[0]))
tagged = rearranges(lambda pair: (pair[1], 7))
ends = rearranges(lambda key, left, right: (left[0], right[1]))
others = rearranges(lambda key, left, right: (right[0], key))
SPECIAL = (0.0, -0.0, 1.0, 2.5, float("nan"), -3.25)
VALUES: tuple[tuple[Any, ...], ...] = (
    (0, 1, 2, 3),
    SPECIAL,
    (False, True),
    ("a", "b", "", "a\0"),
    (b"x", None, 1, "a"),
)

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
    lambda s: s.index_with(second).aggregate(agg.count).index_with(second, second).aggregate(agg.max),
    lambda s: s.index_with(first).aggregate(agg.count).index_with(first).aggregate(agg.min(second)),
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
        for name, arranged in present.items():
            left, right = rng.choice(some)
            pairs = []
            for _ in range(rng.randrange(7)):
                if arranged and rng.random() < 0.5:
                    pairs.append((arranged.pop(rng.randrange(len(arranged))), -1))
                    continue
                element = (rng.choice(left), rng.choice(right))
                weight = rng.choice((-1, 1, 2)) if signed else 1
                pairs.append((element, weight))
                arranged.extend([element] * weight)
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
    monkeypatch.setattr(syndicate.flow.local_engine, "SMALL_COLUMNS", 0)


@pytest.fixture(params=[False, True], ids=["codes", "collisions"])
def collisions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with hashes that are nearly all alike."""
    if request.param:

        def weak(columns: Any, length: int) -> Any:
            return table.coded(columns, length)[0] & 1, False

        monkeypatch.setattr(joins, "HEAD", 3)
        monkeypatch.setattr(sorted_runs, "coded", weak)
        monkeypatch.setattr(sums, "coded", weak)


@pytest.mark.usefixtures("eager", "collisions")
@pytest.mark.parametrize("seed", range(60))
def test_random_circuits(seed: int) -> None:
    """After each step, the outputs add up to a batch recomputation."""
    rng = random.Random(seed)
    check(circuit(rng), changes(rng, 14, kinds=1 + seed % 3, signed=False))


@settings(max_examples=examples(60), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_any_mixture(rng: random.Random, kinds: int) -> None:
    """The same with what hypothesis finds, and small examples where it fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syndicate.flow.local_engine, "SMALL_COLUMNS", 0)
        check(circuit(rng, 3), changes(rng, 8, kinds=kinds, signed=False))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("build", [circuits.flat, circuits.monotone, circuits.levelled, circuits.nested])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_circuits_of_the_oracle(
    build: Callable[[random.Random], Circuit], alike: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The circuits of the other tests, with loops, when some of their functions are known and some changes columns."""
    for function in (circuits.first, circuits.second, circuits.ends, circuits.others):
        monkeypatch.setattr(function, "rearranges", True, raising=False)
    rng = random.Random(seed)
    c = build(rng)
    alike = alike and build is circuits.monotone
    steps = circuits.deltas(rng, ["a", "b"], 8, alike=alike, negative=build is circuits.flat)
    check(c, [{name: as_columns(z) if rng.random() < 0.6 else z for name, z in step.items()} for step in steps])


def as_columns(zset: ZSet) -> Columns:
    """Pairs as columns."""
    lefts, rights = ([pair[at] for pair in zset] for at in (0, 1))
    return Columns([lefts, rights], [weight for _, weight in zset.items()])


@pytest.mark.usefixtures("eager", "collisions")
@pytest.mark.parametrize("seed", range(30))
def test_negative_collections(seed: int) -> None:
    """Deletions of what is not there, and joins where much changes on both sides."""
    rng = random.Random(seed)
    c, a, b = two_sources()
    c.sink("join", a.index_with(first).join(b.index_with(second), ends))
    c.sink("self", a.index_with(first).join(a.index_with(first), others).distinct())
    c.sink("count", (a - b).index_with(first).aggregate(agg.count))
    c.sink("anti", a.distinct().antijoin(b))
    check(c, changes(rng, 25, kinds=1 + seed % 2))


NUMBERS: tuple[agg.Aggregate, ...] = (
    agg.count, agg.sum, agg.avg, agg.min, agg.max, agg.sum(first), agg.avg(second), agg.max(second), agg.top_k(2),
    agg.min(swapped), agg.max(first)
)  # fmt: skip


@pytest.mark.usefixtures("eager", "collisions")
@pytest.mark.parametrize("aggregate", NUMBERS, ids=str)
@pytest.mark.parametrize("signed", [False, True])
def test_aggregates(aggregate: agg.Aggregate, signed: bool) -> None:
    """Groups come, change and go, by rows and by columns."""
    c, a, _ = two_sources()
    value = None if aggregate.by is not None else second
    c.sink("out", a.index_with(first, value).aggregate(aggregate))
    for seed in range(4):
        rng = random.Random(seed)
        some = [(rng.randrange(5), rng.randrange(-4, 5)) for _ in range(12)]
        steps = []
        present: list[Any] = []
        for _ in range(30):
            pairs = [
                (rng.choice(some), rng.choice((1, 1, -1, 3) if signed else (1, 2))) for _ in range(rng.randrange(6))
            ]
            if not signed:
                pairs += [(present.pop(), -1) for _ in range(rng.randrange(len(present) + 1))]
                present += [pair for pair, weight in pairs for _ in range(max(weight, 0))]
                rng.shuffle(present)
            columns = Columns([[p[0] for p, _ in pairs], [p[1] for p, _ in pairs]], [w for _, w in pairs])
            steps.append({"a": columns if rng.random() < 0.7 else ZSet(pairs)})
        twin, source, _ = two_sources()
        twin.sink("out", source.index_with(first, value).aggregate(aggregate))
        check(twin, steps)


@pytest.mark.usefixtures("eager", "collisions")
@pytest.mark.parametrize("seed", range(20))
def test_failed_steps_and_snapshots(seed: int) -> None:
    """A step that fails changes nothing, and a snapshot at any step goes on the same, whatever is in columns."""

    def build() -> tuple[Circuit, list[bool]]:
        rng = random.Random(seed)
        c = circuit(rng, 5)
        failing = [False]

        def fail(pair: Any) -> Any:
            if failing[0]:
                raise ValueError("as asked")
            return pair

        for name, node in list(c.sinks.items()):
            stream = Stream(c, node.inputs[0])
            c.sink(f"{name}!", stream.map(fail))
        return c, failing

    rng = random.Random(seed)
    (c, failing), (twin, _) = build(), build()
    for deltas, wrong in zip(changes(rng, 12, kinds=2), changes(random.Random(-seed), 12, kinds=2), strict=True):
        failing[0], message = True, "as asked"
        try:
            assert not c.step(wrong)
        except StepFailed as error:
            message = str(error)
        else:
            twin.step(wrong)
        assert "as asked" in message
        failing[0] = False
        if rng.random() < 0.2:
            data = c.snapshot()
            c, failing = build()
            c.restore(data)
        mine, theirs = c.step(deltas), twin.step(deltas)
        assert {name: bag_of(z) for name, z in mine.items()} == {name: bag_of(z) for name, z in theirs.items()}


def numbers(low: int, high: int, weight: int = 1) -> Columns:
    """Pairs of integers."""
    at = np.arange(low, high)
    return Columns([at // 3, at], np.full(high - low, weight))


def kept(c: Circuit) -> int:
    """How many rows the sorted runs hold, and the heads."""
    readied = c.engine.readied
    assert readied is not None
    total = 0
    for _, each in readied.sorted_runs:
        if isinstance(each, joins.ArrangedRuns):
            total += sum(map(len, each.sorted_runs.runs)) + sum(map(len, each.arrangement.index.values()))
        elif isinstance(each, sums.SummedRuns):
            total += sum(map(len, each.runs)) + len(each.head)
        else:
            total += sum(map(len, each.sorted_runs.runs)) + sum(map(len, each.groups.values())) + len(each.results)
    return total


@pytest.mark.parametrize("by_rows", [False, True])
def test_memory_returns(by_rows: bool) -> None:
    """After inverse changes, by columns or a few rows at a time, nothing is kept."""
    c, a, b = two_sources()
    c.sink("join", a.index_with(first).join(b.index_with(first), ends).index_with(first).aggregate(agg.count))
    c.sink("sum", a.index_with(first, second).aggregate(agg.sum))
    c.sink("max", b.index_with(first, second).aggregate(agg.max))
    c.sink("set", b.distinct())
    for at in range(0, 6000, 2000):
        c.step({"a": numbers(at, at + 2000), "b": numbers(at, at + 2000)})
    assert kept(c) > 20_000
    size = 50 if by_rows else 500
    for at in range(0, 6000, size):
        gone = numbers(at, at + size, -1)
        c.step({name: ZSet(gone.items()) if by_rows else gone for name in "ab"})
    assert kept(c) <= (2 * joins.HEAD if by_rows else 0)
    assert c.step({"a": numbers(0, 90), "b": numbers(0, 90)})["set"] == ZSet(numbers(0, 90).items())
    assert len(c.state("set")) == 90


def test_memory_returns_unasked() -> None:
    """Rows that delete what is in columns do so in the end, though no join ever asks for their keys."""
    c, a, b = two_sources()
    c.sink("join", a.index_with(first).join(b.index_with(first), ends))
    c.step({"a": numbers(0, 6000)})
    for at in range(0, 6000, 50):
        c.step({"a": ZSet(numbers(at, at + 50, -1).items())})
    assert kept(c) <= 2 * joins.HEAD


def test_looking_on() -> None:
    """Who reads a circuit sees what is in columns, and leaves it there."""
    instances = []
    for change in (numbers(0, 3000), ZSet(numbers(0, 3000).items())):
        c, a, b = two_sources()
        c.watch()
        c.sink("join", a.index_with(first).join(b.index_with(first), ends))
        c.sink("max", a.index_with(first, second).aggregate(agg.max).named("max"))
        c.sink("sum", a.index_with(first, second).aggregate(agg.sum))
        c.sink("set", b.distinct())
        c.step({"a": change, "b": change})
        c.step({"a": change})
        instances.append(c)
    one, other = instances
    assert one.engine.readied is not None
    before = kept(one)
    for name in ("set", "sum", "max"):
        assert one.state(name) == other.state(name)
    assert len(one.snapshot()) > 10_000
    assert kept(one) == before
    assert all(len(each) for _, each in one.engine.readied.sorted_runs)
    mine, theirs = ({line.node: line for line in c.profile().lines} for c in instances)
    assert mine.keys() == theirs.keys()
    for node, line in mine.items():
        assert line.runs == theirs[node].runs
        assert line.entries == theirs[node].entries or "max" in line.label  # no results


def test_few_runs() -> None:
    """Many changes make few runs, and a growing state of columns does not slow a step by what it is."""
    c, a, b = two_sources()
    c.sink("join", a.index_with(first).join(b.index_with(first), ends))
    for at in range(0, 20_000, 100):
        c.step({"a": numbers(at, at + 100), "b": numbers(at, at + 100)})
    assert c.engine.readied is not None
    for _, each in c.engine.readied.sorted_runs:
        assert isinstance(each, joins.ArrangedRuns)
        assert len(each.sorted_runs.runs) <= 6
        assert len(each.sorted_runs) == 20_000


@pytest.mark.usefixtures("eager")
def test_beyond_64_bits() -> None:
    """Sums that leave 64 bits are exact, since they go by rows; and come back."""
    c, a, b = two_sources()
    c.sink("sum", a.index_with(first, second).aggregate(agg.sum))
    c.sink("join", a.index_with(first).join(b.index_with(first), rearranges(lambda k, x, y: k)))
    c.sink("set", a.map(first).distinct())
    big = 2**62
    steps: list[dict[str, Any]] = [
        {"a": Columns([[5] * 8, [1] * 8], [2**61] * 8)},
        {"a": Columns([[5] * 8, [1] * 8], [-(2**61)] * 8)},
        {"a": Columns([[1, 1], [big, big - 1]])},
        {"a": Columns([[1, 2], [big + 5, 3]]), "b": Columns([[1, 2], [3, 4]], [2**40, 2**40])},
        {"a": Columns([[1, 2], [7, 3]], [2**40, 2**61])},
        {"a": Columns([[2, 3], [3, 4]], [2**61, 1])},
        {"a": Columns([[2, 2], [3, 3]], [2**61, 2**61])},
        {"a": Columns([[2, 1], [3, 7]], [-(2**62), -(2**40)]), "b": Columns([[1, 2], [3, 4]], [-(2**40), 2**60])},
        {"a": Columns([[4] * 5, [2**61] * 5])},
        {"a": Columns([[5] * 8, [1] * 8], [2**61] * 8)},
        {"a": Columns([[5] * 8, [1] * 8], [-(2**61)] * 8)},
        *[{"a": Columns([[6], [1]], [weight])} for weight in [2**61] * 5 + [-(2**61)] * 5],
        {"b": Columns([[4, 5, 6], [3, 3, 3]])},
        {"a": Columns([[2**63, 2], [1, 3]])},
    ]
    check(c, steps)


def test_what_a_sink_gives() -> None:
    """A ZSet like any other, made when it is looked at; a sink without a change is not among the outputs."""
    c, a, b = two_sources()
    c.sink("both", a + b)
    c.sink("pairs", a.index_with(first))
    out = c.step({"a": numbers(0, 100)})
    assert out["both"] == ZSet(numbers(0, 100).items()) == ZSet(out["both"])
    assert (3, 9) in out["both"]
    assert len(out["pairs"]) == 100
    assert (out["both"] - ZSet(numbers(0, 100).items())) == ZSet()
    assert "both" not in c.step({"a": numbers(0, 100), "b": numbers(0, 100, -1)})


def test_sources_of_columns() -> None:
    """Arrays, lists, mappings, frames; each becomes the elements that it shows, of the right types."""
    rows = {(1, "a"): 1, (2, "b"): 1}
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for given_columns in (
        [[1, 2], ["a", "b"]],
        {"n": np.array([1, 2], np.uint8), "s": np.array(["a", "b"])},
        pandas.DataFrame({"n": [1, 2], "s": ["a", "b"]}),
        pyarrow.table({"n": [1, 2], "s": ["a", "b"]}),
    ):
        assert ZSet(Columns(given_columns).items()) == ZSet(rows)
    for values in ([1, 2], [1.0, float("nan")], [True, False], ["a", None], [2**64, 1], [(1, 2), 3], [1, True]):
        c = Circuit()
        c.sink("out", c.source("s"))
        repeated = values * 40
        column = np.empty(80, dtype=object)
        column[:] = repeated
        assert bag_of(c.step({"s": Columns(column)})["out"]) == Bag((value, 1) for value in repeated)


def test_arrays_are_copied() -> None:
    """What the caller does with an array afterwards is no concern of the circuit."""
    mine = np.arange(100)
    c = Circuit()
    c.sink("out", c.source("s").distinct())
    columns = Columns([mine, mine])
    mine[:] = 0
    assert len(c.step({"s": columns})["out"]) == 100
    assert not c.step({"s": columns})


WRONG: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (lambda: Columns([[1, 2], [3]]), CircuitError, "2, 1 rows"),
    (lambda: Columns([]), CircuitError, "a column at least"),
    (lambda: Columns("ab"), CircuitError, "takes arrays"),
    (lambda: Columns(["ab"]), CircuitError, "an array or a list"),
    (lambda: Columns([[1]], [1.5]), WeightError, "must be integers"),
    (lambda: Columns([[1]], [True]), WeightError, "must be integers"),
    (lambda: Columns([[1]], [1, 2]), CircuitError, "2 weights"),
    (lambda: Columns([np.ones((2, 2))]), CircuitError, "one dimension"),
    (lambda: Columns([np.array(["2020-01-01"], dtype="datetime64[D]")]), CircuitError, "no elements of its own"),
    (lambda: Columns([np.ma.masked_array([1], [True])]), CircuitError, "masked"),
    (lambda: where(0, "~", 1), CircuitError, "where"),
)


@pytest.mark.parametrize(("wrong", "error", "text"), WRONG)
def test_wrong_columns(wrong: Callable[[], object], error: type[Exception], text: str) -> None:
    """What is no column, or no weight, is refused at once."""
    with pytest.raises(error, match=text):
        wrong()


def test_wrong_for_the_source() -> None:
    """A source with a key takes no weights; an element without identity is named."""
    c = Circuit()
    c.sink("out", c.source("s", key=first))
    with pytest.raises(CircuitError, match="has a key"):
        c.step({"s": numbers(0, 100)})
    c = Circuit()
    c.sink("out", c.source("s"))
    with pytest.raises(UnhashableElement):
        c.step({"s": Columns([[[1]] * 100])})


def test_functions_that_look() -> None:
    """A function that is marked, and looks at values nevertheless, is run row by row, as is one that fails."""
    c = Circuit()
    s = c.source("s")
    c.sink("larger", s.map(rearranges(lambda pair: max(*pair))))
    c.sink("kinds", s.map(rearranges(lambda pair: pair[0] if isinstance(pair[0], int) else pair[1])))
    c.sink("index", s.index_with(rearranges(lambda pair: pair[1] or pair[0])).keys())
    out = c.step({"s": numbers(0, 100)})
    assert out["larger"] == ZSet.of(*range(100))
    assert out["kinds"] == ZSet((n // 3, 1) for n in range(100))
    assert out["index"] == ZSet.of(*(n or n // 3 for n in range(100)))
    wrong = Circuit()
    wrong.sink("out", wrong.source("s").map(itemgetter(5)))
    with pytest.raises(StepFailed, match=r"IndexError.*at \(0, 0\)"):
        wrong.step({"s": numbers(0, 100)})


def test_lazily_imported() -> None:
    """Importing the flow imports no numpy, nor does a circuit without columns."""
    program = (
        "import sys; from syndicate.flow import Circuit; c = Circuit(); c.sink('o', c.source('s').distinct());"
        "c.step({'s': {1: 1}}); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("eager")
def test_nothing_in_columns() -> None:
    """A column with None goes by rows, so that a marked function may ask for it."""
    c, a, b = two_sources()
    arranged = rearranges(lambda key, left, right: left[1] if right[1] is None else right[1])
    c.sink("out", a.index_with(first).join(b.index_with(first), arranged))
    steps = [{"a": Columns([[1, 2], ["x", "y"]]), "b": Columns([[1, 2], ["z", None]])}]
    check(c, [*steps, {"b": ZSet.of((1, None))}, *steps, {"a": Columns([[1, 2], ["v", "w"]])}])


def test_who_looks_through_all_objects_is_not_disturbed() -> None:
    """Names of columns, which refuse to be looked at by a function that is traced, do so only then."""
    c = Circuit()
    c.sink("out", c.source("in").index_with(itemgetter(0)).aggregate(agg.count))
    c.step({"in": Columns([list(range(100)), list(range(100))])})
    name = shape.leaf(0)
    kinds: list[type] = [shape.Leaf, tuple]
    assert [isinstance(name, kind) for kind in kinds] == [True, False]
    assert sum(isinstance(thing, shape.Leaf) for thing in [*gc.get_objects(), name]) >= 1


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("large", [1, 10**9], ids=["rows", "columns"])
@pytest.mark.parametrize("seed", range(10))
def test_a_join_of_sets_makes_no_row_twice(seed: int, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What both sides take away and add meets in such a way that nothing is added up, and nothing cancels out."""
    monkeypatch.setattr(syndicate.flow.local_engine, "LARGE_CHANGE", large)
    for module in (table, sorted_runs):
        monkeypatch.setattr(module, "added_up", None)
    rng = random.Random(seed)
    c, a, b = two_sources()
    triple = rearranges(lambda key, left, right: (key, left, right))
    c.sink("out", a.index_with(first, second).join(b.index_with(first, second), triple))
    every = [(key, value) for key in range(4) for value in range(20)]
    present: dict[str, set[Any]] = {"a": set(), "b": set()}

    def steps() -> Iterator[dict[str, Any]]:
        for _ in range(8):
            step = {}
            for name, arranged in present.items():
                flipped = rng.sample(every, rng.randrange(1, 60))
                delta = {element: -1 if element in arranged else 1 for element in flipped}
                arranged.symmetric_difference_update(flipped)
                columns = Columns([[e[at] for e in delta] for at in (0, 1)], list(delta.values()))
                step[name] = ZSet(delta) if large == 1 else columns
            yield step

    check(c, steps())


@pytest.mark.parametrize(
    ("rows", "group", "deleted", "limit"),
    [(5000, 5000, 1000, 20_000_000), (200_000, 1, 100, 800_000)],
    ids=["group", "run"],
)
def test_a_deletion_costs_little(rows: int, group: int, deleted: int, limit: int) -> None:
    """Deletions are not met with each row of a large group, and no column of a much larger run is copied."""
    c, a, b = two_sources()
    c.sink("out", a.index_with(second).join(b.index_with(first), ends))
    every, few = np.arange(rows), np.arange(1000)
    c.step({"a": Columns([every, every // group], [1] * rows), "b": Columns([few, few], [1] * 1000)})
    tracemalloc.start()
    try:
        out = c.step({"a": Columns([every[:deleted], every[:deleted] // group], [-1] * deleted)})["out"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(out) == deleted
    assert peak < limit
