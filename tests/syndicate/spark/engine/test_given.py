"""What a step of Spark's is given is read as the local engine reads it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.errors import CircuitError
from syndicate.flow import Circuit, Columns, ZSet, where
from syndicate.flow import aggregates as agg
from syndicate.flow.comparison import COMPARING
from syndicate.flow.element import key_of, natural
from syndicate.plan import Program
from syndicate.spark.engine import SparkEngine
from syndicate.spark.engine.batch import SMALL_BATCH
from syndicate.spark.engine.inputs import shape_of_given, table_of_arrays
from syndicate.spark.engine.rows import added_up, items_of
from syndicate.spark.engine.shape import ANY, Layout, shape_of
from tests.syndicate.flow.circuits import LINEAR
from tests.syndicate.flow.test_comparison import NUMBERS, OTHERS
from tests.syndicate.flow.test_given import EDGES
from tests.syndicate.spark.engine.alike import alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plain() -> Circuit:
    """A source of both kinds."""
    c = Circuit()
    c.sink("out", c.source("e"))
    c.sink("keyed", c.source("k", key=itemgetter(0)))
    return c


def test_a_list_holds_elements(spark: SparkSession) -> None:
    """Pairs are elements; each occurrence counts."""
    alike(spark, plain, [{"e": EDGES, "k": EDGES}, {"e": [*EDGES, EDGES[0]], "k": [(1, 5)]}, {"e": {(1, 2): -3}}])


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
def test_predicates(small: int, spark: SparkSession) -> None:
    """A predicate means on Spark what it means here, of columns of one type and of many."""

    def build() -> Circuit:
        c = Circuit()
        for kind in ("long", "double", "mixed"):
            rows = c.source(kind)
            for op in COMPARING if small else ("==", "<="):
                for constant in (1, 1.0, True, 0.0, -0.0, float("nan"), "1", (1,)):
                    c.sink(f"{kind} {op} {constant!r}", rows.filter(where(0, op, constant)))
        return c

    steps: list[dict[str, Any]] = [
        {"long": [(number,) for number in (-1, 0, 1, 2)], "double": [(1.0,), (0.0,), (float("nan"),), (2.5,)]},
        {"mixed": [(value,) for value in NUMBERS + OTHERS]},
    ]
    alike(spark, build, steps if small else steps[:1], small=small)


PARTS = (
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(),
    st.text(st.characters(), max_size=2),
    st.sampled_from([None, 1, 1.0, "1", (), 2**70]),
)


@given(st.data(), st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), st.integers(1, 5))
def test_columns_are_what_their_rows_are(data: st.DataObject, parts: list[Any], length: int) -> None:
    """The same shape and the same elements, whether columns are taken as they are or as rows."""
    columns = [data.draw(st.lists(part, min_size=length, max_size=length)) for part in parts]
    change = Columns(columns, data.draw(st.lists(st.integers(1, 3), min_size=length, max_size=length)))
    shape = shape_of_given("a", change)
    rows = [natural(key) for key in change.batch()]
    assert shape == shape_of(rows)
    for layout in (Layout(shape), Layout(tuple([ANY] * len(columns)))):
        table = table_of_arrays(change.arrays, change.weights, layout)
        assert table is not None
        results = {key_of(element): weight for element, weight in items_of(added_up(table, layout), layout)}
        assert results == {key_of(natural(key)): weight for key, weight in change.batch().items()}
    assert table_of_arrays(change.arrays, change.weights, Layout(ANY)) is None


def test_linear_aggregates(spark: SparkSession) -> None:
    """The user's total, of whole groups."""

    def build() -> Circuit:
        c = Circuit()
        c.sink("out", c.source("r").index_with(itemgetter(0)).aggregate(LINEAR))
        return c

    alike(spark, build, [{"r": EDGES}, {"r": [(1, 5), (1, 5), (2, 2)]}, {"r": {(1, 5): -2, (1, 2): -1}}])


@pytest.mark.parametrize("inputs", [None, 3, "ab", (1, 2)], ids=repr)
def test_what_is_no_change_is_refused(inputs: Any, spark: SparkSession) -> None:
    """As locally; the engine goes on."""
    with SparkEngine(plain(), spark) as engine:
        for name in ("e", "k"):
            with pytest.raises(CircuitError, match="takes"):
                engine.step({name: inputs})
        assert dict(engine.step({"e": EDGES})["out"].to_zset().items()) == dict.fromkeys(EDGES, 1)


@pytest.mark.parametrize("small", [SMALL_BATCH, 0])
def test_unique_sources(small: int, spark: SparkSession) -> None:
    """A set, in the driver and on Spark: what is there comes no second time, what is not does not go."""

    def build() -> Circuit:
        c = Circuit()
        facts = c.source("r", unique=True)
        c.sink("out", facts)
        c.sink("number", facts.index_with(lambda row: row[0]).aggregate(agg.count))
        return c

    steps: list[dict[str, Any]] = [
        {"r": [(1, 2), (1, 2), (2, 3)]}, {"r": {(1, 2): 3, (2, 3): -2, (9, 9): -1}}, {},
        {"r": {(1, 2): -1, (2, 3): 1}}, {"r": {(1, 2): -1, ("x", 2.0): 2}}, {"r": [("x", 2.0), ("x", 2), (True, 1)]},
    ]  # fmt: skip
    alike(spark, build, steps, small=small)


def test_a_table_into_a_set(spark: SparkSession) -> None:
    """Rows of a DataFrame, with weights and without."""
    c = Circuit()
    c.sink("out", c.source("r", unique=True))
    with SparkEngine(c, spark, small=0) as engine:
        frame = spark.createDataFrame([(1, 2), (1, 2), (3, 4)], "a long, b long")
        assert engine.step({"r": frame})["out"].to_zset() == ZSet.of((1, 2), (3, 4))
        weighed = spark.createDataFrame([(1, 2, -5), (5, 6, 2), (7, 8, -1), (3, 4, 1)], "a long, b long, w long")
        assert engine.step({"r": (weighed, "w")})["out"].to_zset() == ZSet({(1, 2): -1, (5, 6): 1})


def test_a_plan_on_spark(spark: SparkSession) -> None:
    """Facts too."""
    program = Program()
    program.rule("out", program.edb("e", "a", "b"))
    plan = program.plan(engine=lambda circuit: SparkEngine(circuit, spark))
    assert dict(plan.step({"e": EDGES})["out"].items()) == dict.fromkeys(EDGES, 1)
    plan.close()
