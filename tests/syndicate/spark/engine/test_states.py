"""Values, layouts and states: what is apart stays apart, in the driver, in buckets, in tables of Spark's."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import Symbol, record
from syndicate.errors import CircuitError, EngineError, SourceError
from syndicate.flow import Circuit, Columns, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.element import key_of
from syndicate.plan import Arith, Attr, Compare, NaturalJoin, Program, Projection, Selection
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.batch import SMALL_BATCH, bucket_of, buckets_of
from syndicate.spark.engine.canonical import from_bytes, to_bytes
from syndicate.spark.engine.rows import added_up, elements_of, table_of
from syndicate.spark.engine.shape import Layout, shape_of, widest
from syndicate.values.value import Dictionary
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second
from tests.syndicate.spark.engine.alike import alike
from tests.syndicate.spark.engine.test_engine import STEPS, by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = bool(os.environ.get("SYNDICATE_NIGHTLY"))


@record("engine-point")
class Point:
    x: float
    y: float


VALUES: tuple[Any, ...] = (
    0, 1, 1.0, True, False, 0.0, -0.0, float("nan"), None, "", "1", b"1", 2**70, -(2**63), (), (1,), (True,), ((),
    None), Symbol("s"), Point(1, 2.0), Point(1.0, 2.0), frozenset({1, "a"}), Dictionary({"b": 1, "a": True}),
    Decimal("1.50"), dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "\ud800", "\0\U0001d11e",
)  # fmt: skip


@pytest.mark.parametrize("small", [SMALL_BATCH, 3, 0] if FULL else [SMALL_BATCH, 0])
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


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
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


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
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
        quiet: list[dict[str, Any]] = [{}, {"a": {}}, {"a": ZSet([((1, 2), 1), ((1, 2), -1)])}, {"a": ZSet(), "b": []}]
        for deltas in quiet:
            result = engine.step(deltas)
            assert (len(result["join"]), list(result["sum"]), result["sum"].frame.count()) == (0, [], 0)
        result = engine.step({"a": {(1, 2): 2}})
        assert result["sum"].to_zset() == result["sum"].to_zset() == ZSet({(1, 2): 1})
        assert [tuple(row) for row in result["sum"].frame.collect()] == [(1, 2, 1)]
        assert engine.epoch == 5


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
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
            results = [buckets_of(table.slice(i, 1), layout, names) for i in range(len(elements))]
            assert results == [{bucket} for bucket in asked["".join(names)].to_pylist()]


@pytest.mark.parametrize(
    ("kind", "small"), [*[(kind, 40) for kind in KEYS], *[(kind, 3) for kind in (KEYS if FULL else ["double"])]]
)
def test_states_in_files(kind: str, small: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What small deltas meet of a large state is found in its buckets, whatever the keys are, also by Spark."""
    monkeypatch.setattr("syndicate.spark.engine.key_lookup.SCANNED", 10**6 if small == 40 else 0)
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
            wanted, result = local.step(deltas), engine.step(deltas)
            assert {name: result[name].to_zset() for name in result} == {name: wanted[name] for name in result}
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
            wanted, result = local.step(deltas), engine.step(deltas)
            assert {name: result[name].to_zset() for name in result} == {name: wanted[name] for name in result}
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
        with pytest.raises(
            SourceError, match=r"'b' have no column 'tmies' \(did you mean 'times'\?\) for their weights"
        ):
            engine.step({"b": (right, "tmies")})
        with pytest.raises(SourceError, match="'price' holds the weights of the source 'b', but is of type double"):
            engine.step({"b": (right, "price")})
        with pytest.raises(EngineError, match="a weight in a table that was given is null"):
            engine.step({"a": (left.selectExpr("*", "CAST(NULL AS INT) AS w"), "w")})
        assert engine.epoch == 3


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
    engine = SparkEngine(plan.circuit, spark, small=0)
    on_spark = program.plan(engine=lambda _: engine)
    with engine:
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

    engine.frames.settled = noted  # type: ignore[method-assign]  # to look on
