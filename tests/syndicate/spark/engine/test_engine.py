"""Engine 2 against engine 1: every operator, values of all kinds, random circuits.

By ``small`` a test says where the work is done: small batches in the driver, which costs nothing; with 0 all on Spark;
with 3 deltas in the driver and states in files.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from syndicate.errors import CircuitError
from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow import aggregates as agg
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.batch import SMALL_BATCH
from syndicate.spark.engine.scope import OPERATORS, TICKING
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


@pytest.mark.timeout(1800 if FULL else 900)
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
    """A loop with a negation of what the loop itself makes: run again in each step."""
    c.sink("out", c.recursive(lambda r: a + r.map(lambda e: (e[0] + 1, e[1])).filter(lambda e: e[0] < 4).antijoin(b)))


def by_traces(c: Circuit, a: Stream, b: Stream) -> None:
    """A loop wired by hand of PomoFlow's operators."""
    child = c.child("by hand")
    back = child.feedback()
    reached = child.bring(a).plus(back.map(lambda e: (e[0], min(e[1] + 1, 3))))
    distinct = reached.distinct_trace(reached.trace_append().z1_trace())
    back.connect(distinct)
    c.sink("out", child.export(distinct))


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


def test_a_loop_widens_what_enters(spark: SparkSession) -> None:
    """What a loop joins with keys of other types enters it in wider columns, from a file, too."""

    def build() -> Circuit:
        c, a, b = circuits.two_sources()
        steps = a.index_with(first)
        c.sink("out", c.recursive(lambda r: b + r.index_with(second).join(steps, lambda k, p, e: (p[0], e[1]))))
        return c

    alike(spark, build, [{"a": {(0, "x"): 1, (1, "y"): 1}, "b": {(7, 0): 1}}], small=1)


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
    """An operator that looks at single ticks would mean something else in a loop that is run again."""
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


@pytest.mark.parametrize("small", [SMALL_BATCH, 3, 0] if FULL else [SMALL_BATCH])
@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=20 if FULL else 6,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=not FULL,
)
@given(seed=st.integers(0, 10**6))
@pytest.mark.timeout(3600 if FULL else 900)
def test_random_circuits(kind: str, small: int, spark: SparkSession, seed: int) -> None:
    """Random circuits under random insertions and deletions give the same on both engines at every step."""
    alike(
        spark,
        lambda: KINDS[kind](random.Random(seed)),
        circuits.deltas(random.Random(seed + 1), ["a", "b"], 4 if FULL else 3, negative=kind == "flat"),
        small=small,
    )
