"""Engine 2 against engine 1: every operator, values of all kinds, random circuits.

By ``small`` a test says where the work is done: small batches in the driver, which costs nothing; with 0 all on Spark;
with 3 deltas in the driver and states in files.
"""

from __future__ import annotations

import datetime as dt
import itertools
import os
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from syndicate import Symbol, record
from syndicate.errors import CircuitError, EngineError, SourceError
from syndicate.flow import Circuit, Columns, Stream, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.element import key_of
from syndicate.plan import Arith, Attr, Compare, NaturalJoin, Program, Projection, Selection
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.batch import SMALL, bucket_of, buckets_of
from syndicate.spark.engine.canonical import from_bytes, to_bytes
from syndicate.spark.engine.rows import added_up, elements_of, table_of
from syndicate.spark.engine.scope import OPERATORS, TICKING
from syndicate.spark.engine.shape import Layout, shape_of, widest
from syndicate.values import Dictionary
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second
from tests.syndicate.spark.engine.alike import alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))
STEPS: list[dict[str, Any]] = [
    {"a": {(1, 2): 1, (2, 3): 2, (1, 1): 1}, "b": {(2, 2): 1, (3, 1): 1}},
    {"a": {(1, 2): -1, (4, 2): 1}, "b": {(1, 1): 3, (3, 1): -1}},
    {"a": {(2, 3): -1, (4, 2): -1}},
]

Case = Callable[[Circuit, Stream, Stream], Any]


def sinks(c: Circuit, **streams: Stream) -> None:
    """A sink for each."""
    for name, stream in streams.items():
        c.sink(name, stream)


def by(stream: Stream) -> Stream:
    """Indexed, in the JVM."""
    return stream.index_with(lambda e: e[0])


def slowly(stream: Stream) -> Stream:
    """Indexed, in Python."""
    return stream.index_with(max, lambda e: (str(e[0]), e[1]))


def chained(c: Circuit, a: Stream, b: Stream) -> None:
    """Each of the linear operators, known as columns or not."""
    c.sink("map", a.map(lambda e: (e[1], e[0] * 2 + 1)))
    c.sink("python map", a.map(lambda e: (str(e), e[0] / 2)))
    c.sink("filter", a.filter(lambda e: e[0] > 1))
    c.sink("python filter", a.filter(lambda e: sum(e) % 2))
    c.sink("flat_map", a.flat_map(lambda e: range(e[0])))
    c.sink("index_with", by(a))
    c.sink("python index_with", slowly(a))
    c.sink("negate", -a)
    c.sink("plus", a + b)
    c.sink("minus", by(a) - by(b))
    c.sink("mixed plus", a.map(str) + b)
    c.sink("forward", forwarded(c, a))


def forwarded(c: Circuit, a: Stream) -> Stream:
    """Built out of order."""
    later = c.forward()
    out = later.map(first)
    later.connect(a)
    return out


def of_keys(c: Circuit, a: Stream, b: Stream) -> None:
    """What is made of indexed streams; what has a source of its own kind."""
    c.sink("pairs", by(a).pairs())
    c.sink("keys", by(a).keys())
    c.sink("values", slowly(a).values())
    c.sink("several", by(a).negate(), a)
    c.sink("constant", c.constant({(1, 2): 2, (7, 7): -1}) + a)
    c.sink("product", a.product(b))


CASES: dict[str, Case] = {
    "linear": chained,
    "keys": of_keys,
    "join": lambda c, a, b: c.sink("out", by(a).join(by(b))),
    "python join": lambda c, a, b: c.sink("out", slowly(a).join(slowly(b), lambda k, x, y: {"k": k}["k"])),
    "mixed join": lambda c, a, b: c.sink("out", by(a).join(slowly(b))),
    "join_stream": lambda c, a, b: c.sink("out", by(a).join_stream(by(b), ends)),
    "join_trace": lambda c, a, b: c.sink("out", by(a).join_trace(by(b).trace_append().z1_trace(), ends)),
    "semijoin": lambda c, a, b: sinks(c, out=by(a).semijoin(by(b)), anti=by(a).antijoin(by(b))),
    "full join": lambda c, a, b: c.sink("out", by(a).full_join(by(b))),
    "distinct": lambda c, a, b: sinks(c, out=a.distinct(), indexed=by(a).distinct()),
    "distinct_stream": lambda c, a, b: c.sink("out", a.distinct_stream()),
    "distinct_incremental": lambda c, a, b: c.sink("out", a.distinct_incremental(a.untimed_trace_append().z1_trace())),
    "distinct_trace": lambda c, a, b: c.sink("out", by(a).distinct_trace(by(a).trace_append().z1_trace())),
    "consolidate": lambda c, a, b: c.sink("out", by(a).trace_append().consolidate()),
    "traces": lambda c, a, b: c.sink("out", a.trace_append().z1_trace().z1_trace().consolidate()),
    "integrate": lambda c, a, b: sinks(c, out=a.integrate(), back=by(a).integrate().differentiate()),
    "differentiate": lambda c, a, b: c.sink("out", a.differentiate()),
    "z1": lambda c, a, b: c.sink("out", a.z1() + by(b).z1().values()),
    "count": lambda c, a, b: c.sink("out", by(a).aggregate(agg.count)),
    "sum avg": lambda c, a, b: sinks(
        c, sum=by(a).aggregate(agg.sum(second)), avg=by(a).aggregate(agg.avg(lambda e: e[1]))
    ),
    "min max": lambda c, a, b: sinks(
        c, min=by(a).aggregate(agg.min(lambda e: e[1])), max=by(a).aggregate(agg.max)
    ),
    "top user": lambda c, a, b: sinks(
        c, top=slowly(a).aggregate(agg.top_k(2)), user=by(a).aggregate(lambda group: tuple(sorted(group.items())))
    ),
    "aggregate_stream": lambda c, a, b: sinks(
        c, out=by(a).aggregate_stream(agg.sum(lambda e: e[1])), top=by(a).aggregate_stream(agg.max)
    ),
}  # fmt: skip


def circuit_of(case: Case) -> Circuit:
    """The circuit of a case."""
    c, a, b = circuits.two_sources()
    case(c, a, b)
    return c


def test_cases_cover_all_operators() -> None:
    """The cases below, and those of loops, have every operator that there is."""
    used = {node.op for case in CASES.values() for node in circuit_of(case).walk()}
    assert set(OPERATORS) - {"inspect"} <= used
    assert set(OPERATORS) >= TICKING


@pytest.mark.parametrize("case", CASES)
def test_operator(case: str, spark: SparkSession) -> None:
    """Each operator gives the same on both engines at every step, also when deletions come."""
    alike(spark, lambda: circuit_of(CASES[case]), STEPS)


class Named:
    """A circuit whose sinks get a prefix."""

    def __init__(self, circuit: Circuit, prefix: str) -> None:
        self.circuit = circuit
        self.prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return getattr(self.circuit, name)

    def sink(self, name: str, *streams: Stream) -> None:
        """Under its own name."""
        self.circuit.sink(f"{self.prefix}: {name}", *streams)


def together(cases: dict[str, Case]) -> Circuit:
    """All cases in one circuit."""
    c, a, b = circuits.two_sources()
    for name, case in cases.items():
        case(cast("Circuit", Named(c, name)), a, b)
    return c


def summed(c: Circuit, a: Stream, b: Stream) -> None:
    """Each operator once, several in a sink: a job of Spark's for each would take minutes."""
    index, other, slow = by(a), by(b), slowly(a)
    later = forwarded(c, b)
    c.sink("linear", a.map(lambda e: (e[1], e[0] * 2 + 1)) + a.filter(lambda e: e[0] > 1) - later.negate())
    c.sink("python", a.map(lambda e: (str(e), 1)) + a.filter(sum) + a.flat_map(lambda e: [e] * e[0]))
    c.sink("keys", index.keys() + slow.keys() + other.values().map(first) + index.pairs().map(first))
    joined = index.join(other, ends) + slow.join(slowly(b), lambda k, x, y: (k, x[1]))
    traced = index.join_trace(other.trace_append().z1_trace(), ends)
    c.sink("joins", joined + traced + index.join_stream(other, ends))
    c.sink("distinct", a.distinct() + a.distinct_stream())
    c.sink("traces", a.distinct_incremental(a.untimed_trace_append().z1_trace()), a.trace_append().consolidate())
    c.sink("timed", a.distinct_trace(a.trace_append().z1_trace()))
    c.sink("sums", index.integrate().differentiate().values() + a.z1())
    c.sink("aggregates", index.aggregate(agg.count) + index.aggregate(agg.sum(second)), index.aggregate(agg.max))
    c.sink("mean", index.aggregate(agg.avg(lambda e: e[1])) + index.aggregate_stream(agg.min(lambda e: e[1])))


@pytest.mark.timeout(1800 if FULL else 300)
def test_operators_on_spark(spark: SparkSession) -> None:
    """The same of all operators at once, with nothing in the driver."""
    assert set(OPERATORS) - {"inspect", "differentiate"} <= {node.op for node in circuit_of(summed).walk()} | {"minus"}
    engine = alike(
        spark, lambda: together(CASES) if FULL else circuit_of(summed), STEPS[: None if FULL else 2], small=0
    )
    assert engine.frames.asked > 30


def test_inspect(spark: SparkSession) -> None:
    """The callback sees each tick's batch, an empty one too."""
    seen: list[Any] = []
    c, a, _ = circuits.two_sources()
    c.sink("out", a.inspect(seen.append))
    with SparkEngine(c, spark) as engine:
        engine.step(STEPS[0])
        engine.step()
    assert seen == [ZSet(STEPS[0]["a"]), ZSet()]


# ------------------------------------------------------------------------------------------------------------- loops


def closure(c: Circuit, a: Stream, b: Stream) -> None:
    """All paths: a loop that only grows, so that insertions are followed."""
    steps = a.index_with(lambda e: e[0])
    c.sink("out", c.recursive(lambda r: a + r.index_with(lambda p: p[1]).join(steps, lambda k, p, e: (p[0], e[1]))))


def blocked(c: Circuit, a: Stream, b: Stream) -> None:
    """A loop with a negation of what the loop itself makes: run anew in each step."""
    c.sink("out", c.recursive(lambda r: a + r.map(lambda e: (e[0] + 1, e[1])).filter(lambda e: e[0] < 4).antijoin(b)))


def by_traces(c: Circuit, a: Stream, b: Stream) -> None:
    """A loop wired by hand of the seed's operators."""
    child = c.child("by hand")
    back = child.feedback()
    reached = child.bring(a).plus(back.map(lambda e: (e[0], min(e[1] + 1, 3))))
    made = reached.distinct_trace(reached.trace_append().z1_trace())
    back.connect(made)
    c.sink("out", child.export(made))


def within(c: Circuit, a: Stream, b: Stream) -> None:
    """A loop in a loop."""

    def body(r: Stream) -> Stream:
        links = r + b
        inner = c.recursive(lambda s: links + s.index_with(second).join(links.index_with(first), ends), name="inner")
        return inner.filter(lambda e: e[0] != e[1]).map(lambda e: (e[0], e[1])) + a

    c.sink("out", c.recursive(body, name="outer"))


CHAIN: list[dict[str, Any]] = [
    {"a": {(0, 1): 1, (1, 2): 1}, "b": {(2, 0): 1}},
    {"a": {(2, 3): 1}},
    {"a": {(1, 2): -1, (3, 1): 1}, "b": {(2, 0): -1}},
]
LOOPS: dict[str, Case] = {"closure": closure, "negation": blocked, "traces": by_traces, "nested": within}


@pytest.mark.parametrize("case", LOOPS)
def test_loops(case: str, spark: SparkSession) -> None:
    """Recursion, nested too, under insertions and deletions."""
    alike(spark, lambda: circuit_of(LOOPS[case]), CHAIN)


@pytest.mark.parametrize("case", LOOPS if FULL else ["closure"])
def test_loops_on_spark(case: str, spark: SparkSession) -> None:
    """The same, all on Spark."""
    alike(spark, lambda: circuit_of(LOOPS[case]), CHAIN if FULL else CHAIN[::2], small=0)


def test_the_cost_switch(spark: SparkSession) -> None:
    """An insertion takes the iterations that it needs; a deletion those of a run from nothing."""
    c = circuit_of(closure)
    engine = SparkEngine(c, spark)
    taken = []
    for deltas in [{"a": {(n, n + 1): 1 for n in range(4)}}, {"a": {(9, 0): 1}}, {"a": {(9, 0): -1}}]:
        before = engine.iterations
        engine.step(deltas)
        taken.append(engine.iterations - before)
    engine.close()
    assert taken == [5, 6, 5]


def test_ticks_in_loops_are_refused(spark: SparkSession) -> None:
    """An operator that looks at single ticks would mean something else in a loop that is run anew."""
    c, a, _ = circuits.two_sources()
    c.sink("out", c.recursive(lambda r: a + r.distinct_stream()))
    with pytest.raises(CircuitError, match=r"distinct_stream .* looks at single ticks.*take it out of the loop"):
        SparkEngine(c, spark)


# ------------------------------------------------------------------------------------------------------ random circuits

KINDS: dict[str, Callable[[random.Random], Circuit]] = {
    "flat": circuits.flat,
    "monotone": circuits.monotone,
    "levelled": circuits.levelled,
    "nested": circuits.nested,
}


@pytest.mark.parametrize("small", [SMALL, 3, 0] if FULL else [SMALL])
@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=20 if FULL else 6,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=not FULL,
)
@given(seed=st.integers(0, 10**6))
@pytest.mark.timeout(3600 if FULL else 240)
def test_random_circuits(kind: str, small: int, spark: SparkSession, seed: int) -> None:
    """Random circuits under random insertions and deletions give the same on both engines at every step."""
    alike(
        spark,
        lambda: KINDS[kind](random.Random(seed)),
        circuits.deltas(random.Random(seed + 1), ["a", "b"], 4 if FULL else 3, negative=kind == "flat"),
        small=small,
    )


# ------------------------------------------------------------------------------------------------- values and layouts


@record("engine-point")
class Point:
    x: float
    y: float


VALUES: tuple[Any, ...] = (
    0, 1, 1.0, True, False, 0.0, -0.0, float("nan"), None, "", "1", b"1", 2**70, -(2**63), (), (1,), (True,), ((),
    None), Symbol("s"), Point(1, 2.0), Point(1.0, 2.0), frozenset({1, "a"}), Dictionary({"b": 1, "a": True}),
    Decimal("1.50"), dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "\ud800", "\0\U0001d11e",
)  # fmt: skip


@pytest.mark.parametrize("small", [SMALL, 3, 0] if FULL else [SMALL, 0])
def test_values_keep_their_identity(small: int, spark: SparkSession) -> None:
    """Values that Python takes for equal are apart, also as keys, in any mixture of types."""

    def build() -> Circuit:
        c, a, _ = circuits.two_sources()
        c.sink("set", a.map(lambda e: (e[0],)).distinct())
        c.sink("count", a.index_with(first, second).aggregate(agg.count))
        return c

    pairs = [((value, number), 1) for number, value in enumerate(VALUES)]
    gone = [(pair, -weight) for pair, weight in pairs]
    alike(spark, build, [{"a": pairs[:2]}, {"a": [*pairs[2:], *pairs]}, {"a": gone}], small=small)


@given(st.recursive(st.sampled_from(VALUES), lambda inner: st.tuples(inner, inner), max_leaves=4))
def test_canonical_bytes(value: Any) -> None:
    """Any element comes back from its bytes as the same element."""
    assert key_of(from_bytes(to_bytes(value))) == key_of(value)


@given(st.lists(st.one_of(st.sampled_from(VALUES), st.tuples(st.integers(), st.text())), min_size=1, max_size=6))
def test_columns_tell_apart_what_is_apart(values: list[Any]) -> None:
    """Elements come back from the columns of their shape, and only equal ones have equal columns."""
    shape = shape_of(values)
    layout = Layout(shape)
    table = table_of(values, [1] * len(values), layout)
    assert list(map(key_of, elements_of(table, "e", shape))) == list(map(key_of, values))
    assert added_up(table, layout).num_rows == len(set(map(key_of, values)))
    wider = widest(shape, shape_of([*values, "x"]))
    assert list(map(key_of, elements_of(table_of(values, [1] * len(values), Layout(wider)), "e", wider))) == list(
        map(key_of, values)
    )


@pytest.mark.parametrize("small", [SMALL, 0])
def test_integers_leave_64_bits(small: int, spark: SparkSession) -> None:
    """Where the JVM's arithmetic ends, Python's goes on: the step is taken again, the state read in new columns."""

    def build() -> Circuit:
        c, a, _ = circuits.two_sources()
        c.sink("map", a.map(lambda e: e[1] * 4).distinct())
        c.sink("sum", by(a).aggregate(agg.sum(lambda e: e[1])))
        return c

    big = 2**62
    steps: list[dict[str, Any]] = [{"a": {(1, 5): 1}}, {"a": {(1, big): 1}}, {"a": {(1, 5): -1, (2, big): 1}}]
    engine = alike(spark, build, steps, small=small)
    assert not engine.layouts.tracer.exact


@pytest.mark.parametrize("small", [SMALL, 0])
def test_weights_leave_64_bits(small: int, spark: SparkSession) -> None:
    """A weight that a column cannot hold, of a sum or a product, fails the step and changes nothing."""
    c, a, b = circuits.two_sources()
    c.sink("total", a.integrate())
    c.sink("join", by(a).join(by(b)))
    big = 2**62
    with SparkEngine(c, spark, small=small) as engine:
        assert engine.step({"a": {(1, 1): big, (2, 2): big}})["total"].to_zset() == ZSet({(1, 1): big, (2, 2): big})
        with pytest.raises(EngineError, match="leaves 64 bits"):
            engine.step({"a": {(1, 1): big}})
        with pytest.raises(EngineError, match="leaves 64 bits"):
            engine.step({"b": {(2, 5): 2}})
        with pytest.raises(CircuitError, match="leaves 64 bits"):
            engine.step({"b": {(2, 5): 2**64}})
        assert engine.layouts.tracer.exact
        assert engine.step({"a": {(1, 1): 1 - big}})["total"].to_zset() == ZSet({(1, 1): 1, (2, 2): big})


def test_nothing_and_twice(spark: SparkSession) -> None:
    """Sources that are never given, empty changes, changes that cancel out, a sink read twice."""
    c, a, b = circuits.two_sources()
    c.sink("join", by(a).join(by(b)))
    c.sink("sum", a.distinct())
    with SparkEngine(c, spark) as engine:
        quiet: list[dict[str, Any]] = [{}, {"a": {}}, {"a": [((1, 2), 1), ((1, 2), -1)]}, {"a": ZSet(), "b": []}]
        for deltas in quiet:
            found = engine.step(deltas)
            assert (len(found["join"]), list(found["sum"]), found["sum"].frame.count()) == (0, [], 0)
        found = engine.step({"a": {(1, 2): 2}})
        assert found["sum"].to_zset() == found["sum"].to_zset() == ZSet({(1, 2): 1})
        assert [tuple(row) for row in found["sum"].frame.collect()] == [(1, 2, 1)]
        assert engine.epoch == 5


@pytest.mark.parametrize("small", [SMALL, 0])
def test_sources_with_keys(small: int, spark: SparkSession) -> None:
    """New elements replace the old ones of their keys; None deletes."""

    def build() -> Circuit:
        c = Circuit()
        c.sink("out", c.source("rows", key=first).map(second))
        return c

    steps: list[dict[str, Any]] = [
        {"rows": [(1, "a"), (2, "b"), (1, "c")]},
        {"rows": {1: (1, "d"), 2: None, 3: None}},
        {"rows": [("x", 1.5)]},
        {"rows": [(1, "d")]},
    ]
    alike(spark, build, steps, small=small)


KEYS: dict[str, list[Any]] = {
    "long": [None, *range(-3, 5)],
    "double": [None, float("nan"), 0.0, 1.5, -1e300, 2.0],
    "string": [None, "", "a", "\0", "\U0001d11e", "A", "1"],
    "boolean": [True, False, None],
    "any": [None, 1, 1.0, True, "1", b"1", (), (1,)],
}


def test_buckets(spark: SparkSession) -> None:
    """The driver finds the bucket of a key as Spark does."""
    for values in KEYS.values():
        elements = [(value, other) for value in values for other in (*values[:3], None)]
        layout = Layout(shape_of(elements))
        table = table_of(elements, [1] * len(elements), layout)
        columns = [bucket_of(layout, names) + " AS " + "".join(names) for names in (["e0"], ["e1", "e0"])]
        asked = spark.createDataFrame(table).selectExpr(*columns).toArrow()
        for names in (["e0"], ["e1", "e0"]):
            found = [buckets_of(table.slice(i, 1), layout, names) for i in range(len(elements))]
            assert found == [{bucket} for bucket in asked["".join(names)].to_pylist()]


@pytest.mark.parametrize(
    ("kind", "small"), [*[(kind, 40) for kind in KEYS], *[(kind, 3) for kind in (KEYS if FULL else ["double"])]]
)
def test_states_in_files(kind: str, small: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What small deltas meet of a large state is found in its buckets, whatever the keys are, also by Spark."""
    monkeypatch.setattr("syndicate.spark.engine.near.SCANNED", 10**6 if small == 40 else 0)
    rng = random.Random(kind)

    def build() -> Circuit:
        c, a, b = circuits.two_sources()
        c.sink("join", by(a).join(by(b), ends))
        c.sink("sum", by(a).aggregate(agg.sum(second)))
        c.sink("set", a.map(first).distinct())
        return c

    keys = KEYS[kind]
    steps: list[dict[str, Any]] = [
        {"a": [((rng.choice(keys), n), 1) for n in range(60)], "b": [((key, 0), 1) for key in keys]},
        {"a": [((rng.choice(keys), n), 1) for n in range(70, 73)]},
        {"b": [((keys[0], 0), -1), ((keys[1], 1), 1)]},
    ]
    local = build()
    with SparkEngine(build(), spark, small=small) as engine:
        engine.frames.bucket = 10
        for deltas in steps:
            wanted, found = local.step(deltas), engine.step(deltas)
            assert {name: found[name].to_zset() for name in found} == {name: wanted[name] for name in found}
        assert any(run.buckets for trace in engine.root.all_traces() for run in trace.runs)


def test_everything_in_files(spark: SparkSession, tmp_path: Path) -> None:
    """With nothing kept in the driver, and runs divided into buckets and merged, the changes are the same."""

    def build() -> Circuit:
        c, a, b = circuits.two_sources()
        index = by(a)
        c.sink("join", index.join(by(b), ends))
        c.sink("distinct", a.map(second).distinct())
        c.sink("max", index.aggregate(agg.max(lambda e: e[1])))
        return c

    rng = random.Random(5)
    some: dict[str, Any] = {
        "a": {(rng.randrange(9), rng.randrange(9)): 1 for _ in range(40)},
        "b": {(n, n): 1 for n in range(9)},
    }
    with SparkEngine(build(), spark, state=tmp_path, small=2 if FULL else 0) as engine:
        engine.frames.bucket = 4
        local = build()
        for deltas in [some, *itertools.islice(circuits.deltas(rng, ["a", "b"], 9), 9 if FULL else 1)]:
            wanted, found = local.step(deltas), engine.step(deltas)
            assert {name: found[name].to_zset() for name in found} == {name: wanted[name] for name in found}
        divided = [run for trace in engine.root.all_traces() for run in trace.runs if run.buckets]
        assert divided


# --------------------------------------------------------------------------------------------------- tables of Spark's


def test_tables_in_and_out(spark: SparkSession) -> None:
    """DataFrames in, with weights or without; the change stays a DataFrame of typed columns."""
    c, a, b = circuits.two_sources()
    c.sink("out", by(a).join(by(b), lambda k, x, y: (k, x[1], y[1])))
    left = spark.createDataFrame([(1, "a"), (2, None)], "id int, name string")
    right = spark.createDataFrame([(1, 2.5, 2), (2, -0.0, -1)], "id bigint, price double, times int")
    with SparkEngine(c, spark) as engine:
        out = engine.step({"a": left, "b": (right, "times")})["out"]
        assert out.to_zset() == ZSet({(1, "a", 2.5): 2, (2, None, 0.0): -1})
        assert out.frame.dtypes == [("e0", "bigint"), ("e1", "string"), ("e2", "double"), ("w", "bigint")]
        assert engine.step({"a": Columns([[1], ["b"]])})["out"].to_zset() == ZSet({(1, "b", 2.5): 2})
        dated = spark.createDataFrame([(dt.date(2026, 1, 2), Decimal("1.5"))], "day date, price decimal(4,2)")
        assert list(engine.step({"a": dated})["out"]) == []
        with pytest.raises(SourceError, match=r"'a' got a table whose column 'xs' is of the type array<int>"):
            engine.step({"a": spark.createDataFrame([(1, [2])], "id int, xs array<int>")})


def plan_of(frame: Any) -> str:
    """The physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_columns_stay_in_the_jvm(spark: SparkSession) -> None:
    """A plan's selections, arithmetic, joins and counts need no Python worker; a function that is not known does."""
    program = Program()
    sale, price = program.edb("sale", "shop", "item", "n"), program.edb("price", "item", "cents")
    big = Selection(NaturalJoin(sale, price), Compare("n", ">", 2), Compare("shop", "!=", "x"))
    paid = Projection(big, ("shop", "item", ("paid", Arith("*", "n", Attr("cents")))))
    program.rule("paid", paid)
    plan = program.plan()
    facts: dict[str, list[Any]] = {
        "sale": [("a", "tea", 3), ("x", "tea", 9), ("b", "jam", 1), ("b", "tea", 5)],
        "price": [("tea", 4), ("jam", 7)],
    }
    plans: list[str] = []
    on_spark = program.plan(engine=lambda circuit: SparkEngine(circuit, spark, small=0))
    with on_spark.engine as engine:
        watch(engine, plans)
        assert on_spark.step(facts)["paid"] == plan.step(facts)["paid"] == ZSet.of(("a", "tea", 12), ("b", "tea", 20))
    assert len(plans) > 2
    assert any("Join" in text for text in plans)
    assert not [text for text in plans if "Python" in text or "MapInArrow" in text]
    plans.clear()
    c, a, _ = circuits.two_sources()
    c.sink("out", a.map(str))
    with SparkEngine(c, spark, small=0) as engine:
        watch(engine, plans)
        engine.step(STEPS[0])
    assert any("MapInArrow" in text for text in plans)


def watch(engine: SparkEngine, plans: list[str]) -> None:
    """Note the physical plan of whatever the engine has Spark compute."""
    settled = engine.frames.settled

    def noted(batch: Any, who: object = None) -> Any:
        if batch is not None and batch.rows is None:
            plans.append(plan_of(batch.frame))
        return settled(batch, who)

    engine.frames.settled = noted  # type: ignore[method-assign]
