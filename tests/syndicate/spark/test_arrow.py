"""Null structs cross the border, however deep, by a table, and a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
import trio

from syndicate import ANY, capture, dataspace, open_system, record, spawn
from syndicate.errors import SourceError
from syndicate.spark import spark_source
from syndicate.spark.arrow import arrow_schema, arrow_table, loosened
from syndicate.spark.columns import forms
from syndicate.testing import watch
from syndicate.values.absent import ABSENT
from syndicate.values.value import Dictionary, freeze
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

P = "named_struct('p', id)"
IF = "CASE WHEN id = 1 THEN {} END"
COLUMNS: dict[str, Any] = {
    IF.format(P): [{"p": 1}, ABSENT],
    IF.format(f"named_struct('q', {P})"): [{"q": {"p": 1}}, ABSENT],
    f"named_struct('q', {IF.format(P)})": [{"q": {"p": 1}}, {"q": ABSENT}],
    f"array({IF.format(P)})": [[{"p": 1}], [ABSENT]],
    IF.format(f"array({P})"): [[{"p": 1}], ABSENT],
    f"map('k', {IF.format(P)})": [{"k": {"p": 1}}, {"k": ABSENT}],
    IF.format(f"map({P}, array({P}))"): [Dictionary([(Dictionary([("p", 1)]), [{"p": 1}])]), ABSENT],
    IF.format("named_struct('p', id, 'q', array(id))"): [{"p": 1, "q": [1]}, ABSENT],
}


@record
class Holder:
    id: int
    st: object


def test_null_structs(spark: SparkSession) -> None:
    """Whatever nests them, and whatever Spark says of their members; two columns of one name are no matter."""
    named = [f"{column} AS c" for column in COLUMNS]
    frame = spark.range(1, 3).selectExpr(*named)
    table = arrow_table("Holder", frame)
    assert table.column_names == ["c"] * len(COLUMNS)
    assert table.schema.types == arrow_schema(frame.schema).types
    for column, items in zip(table.columns, COLUMNS.values(), strict=True):
        assert forms(column, "c") == [freeze(item) for item in items]


def test_a_frame_without_such_structs_is_read_as_it_is(spark: SparkSession) -> None:
    """No cast is added to its plan."""
    frame = spark.range(2).selectExpr("id", "array(id) AS a", "map(id, id) AS m")
    assert arrow_schema(frame.schema).equals(arrow_table("Holder", frame).schema)
    assert loosened(frame) is frame


def test_what_arrow_refuses_names_the_columns(spark: SparkSession) -> None:
    """Arrow's error becomes a sentence with the columns it may be about."""
    frame = spark.range(1, 3).selectExpr("id", IF.format("named_struct('v', parse_json('1'))") + " AS st")
    with pytest.raises(SourceError, match=r"rows of Holder cannot .* nested columns are 'st' \(struct<v:variant>\)"):
        arrow_table("Holder", frame)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_source_of_null_structs(spark: SparkSession, tmp_path: Path, streams: bool) -> None:
    """The rows are asserted, with ABSENT for the struct."""
    (tmp_path / "0.json").write_text("".join(json.dumps({"id": each}) + "\n" for each in (1, 2)))

    def frame(session: SparkSession) -> DataFrame:
        reader = session.readStream if streams else session.read
        struct = IF.format("named_struct('p', 7)")
        return reader.schema("id long").json(str(tmp_path)).selectExpr("id", f"{struct} AS st")

    instances: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        instances.append(watch(ds, capture(Holder(ANY, ANY))))
        instances.append(spawn(spark_source(ds, frame, Holder)))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            await until(lambda: len(instances[0]) == 2 or not instances[1].running)
    assert {mark for mark, _ in instances[0]} == {"+"}
    assert {holder.id: holder.st for _, holder in instances[0]} == {1: Dictionary([("p", 7)]), 2: ABSENT}
