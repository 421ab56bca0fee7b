"""What a person gets wrong with ``spark_source``, and the one sentence that says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
import trio

from syndicate import dataspace, open_system, record, run, spawn
from syndicate.actors.actor import Actor
from syndicate.errors import SourceError
from syndicate.spark import spark_source
from tests.syndicate.spark.microbatches import Session, Stream
from tests.waiting import until
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@record
class Mug:
    name: str
    size: int


async def mistaken(frame: Callable[[Any], Any], **options: Any) -> str:
    """What the actor ends with: an error of ours, in one line."""
    instances: list[Actor] = []
    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(
            lambda: instances.append(spawn(spark_source(dataspace(), frame, Mug, **options)))
        ) as system:
            await system.settle()
            await until(lambda: not instances[0].running)
    error = instances[0].error
    assert isinstance(error, SourceError)
    assert "\n" not in str(error)
    return str(error)


def jars(session: SparkSession) -> DataFrame:
    """A table of jars."""
    return session.sql("select 'a' as name, 1 as size")


TRIGGER = r'trigger= takes \{"processingTime": "5 seconds"\}, or \{"availableNow": True\} for a stream that ends, not '


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trigger": {"every": "1 second"}}, TRIGGER + r"\{'every': '1 second'\}"),
        ({"trigger": "1 second"}, TRIGGER + "'1 second'"),
        ({"trigger": {"processingTime": 5}}, TRIGGER + r"\{'processingTime': 5\}"),
        ({"trigger": {"availableNow": False}}, TRIGGER),
        ({"trigger": {"processingTime": "1 second", "availableNow": True}}, TRIGGER),
        ({"trigger": {"continuous": "1 second"}}, TRIGGER),
        ({"every": "1"}, "every= takes a positive number of seconds, not '1'"),
        ({"frame": Session()}, "frame= takes a function from a session to a DataFrame, not the Session itself"),
        (
            {"session": "local"},
            r"session= takes a Spark session, not 'local'",
        ),
        ({"changes": "Delta"}, 'changes= takes "delta", "iceberg" or a Feed that names the columns, not \'Delta\''),
        ({"changes": "delta", "weight": "w"}, "changes= says that '_change_type' holds the weights: leave weight= out"),
        (
            {"checkpoint": "c"},
            "checkpoint= alone would lose what is asserted when the process ends: give journal= as well",
        ),
    ],
)
def test_reported_at_the_call(options: dict[str, Any], message: str) -> None:
    """What can be seen by the parameters alone is reported before anything starts."""
    inputs: dict[str, Any] = {"frame": jars, "to": Mug} | options

    def boot() -> None:
        with pytest.raises(SourceError, match=message):
            spark_source(dataspace(), **inputs)

    run(boot)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (lambda s: None, {}, "a session to a DataFrame, but it made None: return the DataFrame"),
        (lambda s: sys.modules[__name__], {}, "but it made a builtins.module: session.createDataFrame makes one of a"),
        (jars, {"key": ["nmae"]},
         "no column 'nmae' (did you mean 'name'?), which key= names; their columns are name, size: select or rename"),
        (jars, {"changes": "delta"}, "no column '_change_type', which changes= names; their columns are name, size"),
        (jars, {"trigger": {"availableNow": True}}, "trigger= is for a stream, but the frame of Mug is a table, which"),
        (jars, {"mode": "append"}, "mode= is for a stream, but the frame of Mug is a table"),
        (jars, {"journal": "j", "checkpoint": "c"}, "checkpoint= is for a stream, but the frame of Mug is a table"),
        (jars, {"journal": "/nowhere/j"}, "the journal /nowhere/j cannot be opened for writing: see that its"),
        (lambda s: s.sql("select 'a' name, 1 size union all select 'a', 2"), {"key": ["name"]},
         "two rows have the key 'a': Mug(name='a', size=1) and Mug(name='a', size=2); give key= the columns that tell"),
        (lambda s: jars(s).selectExpr("*", "binary('x') as lsn"), {"sequence": "lsn"},
         "'lsn' orders the rows of Mug, but is of type binary: make a number, a string, a date or a timestamp of it"),
        (lambda s: s.readStream.format("rate").load().selectExpr("'a' as name", "1 as size"),
         {"trigger": {"processingTime": "soon"}}, "deliver the rows of Mug: [INVALID_INTERVAL_FORMAT"),
    ],
)  # fmt: skip
async def test_reported_by_the_actor(
    spark: SparkSession, frame: Callable[[Any], Any], options: dict[str, Any], message: str
) -> None:
    """What only the frame shows ends the actor, before a row of it is asserted."""
    assert message in await mistaken(frame, **options)


async def test_a_table_that_does_not_look_like_one(spark: SparkSession) -> None:
    """A pandas frame prints as a table of many lines: its type is reported instead."""
    pandas = pytest.importorskip("pandas")
    message = await mistaken(lambda _: pandas.DataFrame({"name": ["a"] * 30, "size": [1] * 30}))
    assert "but it made a pandas" in message
    assert message.endswith("DataFrame: session.createDataFrame makes one of a table")


async def test_a_session_that_was_stopped(tmp_path: Path) -> None:
    """It cannot be used, for a stream or a table: that is said, whatever the frame would have raised."""
    session: Any = Session()
    session.stopped = True
    message = await mistaken(lambda session: Stream(session, tmp_path), session=session, weight="w")
    assert message == "Spark could not deliver the rows of Mug: its session was stopped"


async def test_what_is_ignored_may_be_of_any_type(spark: SparkSession) -> None:
    """A column that is ignored is not asked for a value; it does not even leave Spark."""
    instances: list[Actor] = []
    seen: list[list[str]] = []

    def frame(session: SparkSession) -> DataFrame:
        seen.append(["looked"])
        return jars(session).selectExpr("*", "interval '1' month as odd")

    with trio.fail_after(PATIENCE):
        async with open_system(
            lambda: instances.append(spawn(spark_source(dataspace(), frame, Mug, ignore=["odd"], every=0.01)))
        ) as system:
            await system.settle()
            await until(lambda: len(seen) >= 3 or not instances[0].running)
    assert instances[0].error is None
