"""A sink and its sources start together: nobody who reads the table sees that what is asserted had to come back."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
import trio

from syndicate import ANY, capture, dataspace, open_system, record, spawn
from syndicate.actors.verbs import stop_actor
from syndicate.errors import SinkError
from syndicate.flow.circuit import Circuit
from syndicate.spark import SparkSource, spark_sink, spark_source, spark_view
from syndicate.spark.sink_table import SinkTable
from syndicate.testing import watch
from tests.syndicate.spark.microbatches import Session, Stream
from tests.syndicate.spark.test_sink import Jar, World, sunk
from tests.waiting import until
from tests.work import PATIENCE


@record
class Barrel:
    name: str
    size: int


A, B, C = Jar("a", 1.0), Jar("b", 1.0), Jar("c", 1.0)


async def kept(directory: Path, *jars: Jar) -> None:
    """A table of an earlier run."""
    async with sunk(directory, *jars) as world:
        await world.until(0)


async def waits(world: World) -> None:
    """The sink writes nothing, for longer than it gathers."""
    await trio.sleep(0.2)
    assert world.sink.running
    assert world.written == []
    assert world.rows() == [("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize(
    ("there", "sources"),
    [
        ([SparkSource("Jar", False)], []),
        ([SparkSource("Jar", False), SparkSource("Lid", True)], []),
        ([], [Jar]),
        ([SparkSource("Lid", True)], ["Lid", "Jar"]),
    ],
)
async def test_a_sink_waits(tmp_path: Path, there: list[Any], sources: list[Any]) -> None:
    """For the sources that are there until all their rows are, and for those that were named though they come late;
    then one batch has all that has changed, however small a batch may be.
    """
    await kept(tmp_path, A, B)
    stand = [each for each in there if each.standing]
    async with sunk(tmp_path, *there, sources=sources, rows=1) as world:
        await waits(world)
        world.become(*there, A)
        world.become(*there, A, C)
        await waits(world)
        world.become(*stand, SparkSource("Jar", True), A, C)
        await world.until(1)
        assert world.rows() == [("a", 1.0), ("c", 1.0)]
        assert world.written[0][1].rows == 2


async def test_two_sources_of_one_name(tmp_path: Path) -> None:
    """One that stands says nothing for one that does not."""
    await kept(tmp_path, A, B)
    async with sunk(tmp_path, SparkSource("Jar", False), SparkSource("Jar", True), A) as world:
        await waits(world)
        world.become(SparkSource("Jar", True), A)
        await world.until(1)
        assert world.rows() == [("a", 1.0)]


async def test_a_source_that_ends_instead(tmp_path: Path) -> None:
    """It is waited for no more: what it asserted has gone."""
    await kept(tmp_path, A, B)
    async with sunk(tmp_path, SparkSource("Jar", False), A) as world:
        world.become(A)
        await world.until(1)
        assert world.rows() == [("a", 1.0)]


@pytest.mark.parametrize("why", ["a source that is there", "a source that was named", "its grace", "a slow disk"])
@pytest.mark.parametrize(
    ("before", "came", "after"),
    [
        ([], [A], [A]),
        ([A, B], [A, B], [A, B]),
        ([A, B], [A, B, C], [A, B, C]),
        ([A, B], [A, C], [A, B]),
        ([A, B], [C], [A, B]),
        ([A, B], [], [A, B]),
        ([A], [Jar("a", 2.0)], [A]),
    ],
)
async def test_a_stop_while_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str, before: list[Jar], came: list[Jar], after: list[Jar]
) -> None:
    """The table is what was asserted then or now, and never old rows beside new ones: what came is written if nothing
    of the table is missing, and what is missing may still come.
    """
    waits: dict[str, tuple[list[SparkSource], dict[str, Any]]] = {
        "a source that is there": ([SparkSource("Jar", False)], {}),
        "a source that was named": ([], {"sources": [Jar]}),
        "its grace": ([], {"grace": 3600.0}),
        "a slow disk": ([], {}),
    }
    there, options = waits[why]
    await kept(tmp_path, *before)
    monkeypatch.setattr("syndicate.spark.sink.ENDING", PATIENCE)
    ready = threading.Event()
    real = SinkTable.contents

    def opened(table: SinkTable) -> Any:
        ready.wait()
        return real(table)

    monkeypatch.setattr(SinkTable, "contents", opened)
    async with sunk(tmp_path, *there, *came, **options) as world:
        if why != "a slow disk":
            ready.set()
        world.sink.root.enter(stop_actor)
        await until(lambda: not world.sink.root.alive)
        ready.set()
        assert await world.end() is None
    assert world.rows() == sorted((jar.name, jar.grams) for jar in after)


@pytest.mark.parametrize("options", [{"sources": Jar}, {"sources": "Jar"}, {"sources": [1]}, {"grace": "1"}])
async def test_wrong_use(tmp_path: Path, options: dict[str, Any]) -> None:
    """What is no source and no time is reported at the call."""

    def boot() -> None:
        with pytest.raises(SinkError, match=r"(sources|grace)= takes a "):
            spark_sink(dataspace(), Jar, tmp_path, **options)

    async with open_system(boot) as system:
        await system.settle()


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("kind", ["source", "view"])
async def test_what_a_source_says(tmp_path: Path, kind: str, keeps: bool) -> None:
    """First that not all is there, from the turn that starts it; then, behind all that was asserted, that it is: when
    the stream has no more for now, and after a restart as soon as the journal was read.
    """
    for place in ("in", "none"):
        (tmp_path / place).mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps({"name": f"n{number}", "size": 1}))
    for place in ("in", "none") if keeps else ("in",):
        events = await events_of(tmp_path, place, kind, tmp_path / "kept" if keeps else None)
        assert events[0] == ("+", SparkSource("Barrel", False))
        assert set(events[1:4]) == {("+", Barrel(f"n{number}", 1)) for number in range(3)}
        assert events[4:] == [("+", SparkSource("Barrel", True)), ("-", SparkSource("Barrel", False))]


async def events_of(path: Path, place: str, kind: str, sink_path: Path | None) -> list[Any]:
    """What a source of the files in *place*, or a view of them, says until it stands."""
    instances: list[Any] = []

    def frame(session: Any) -> Any:
        return Stream(session, path / place)

    def boot() -> None:
        ds = dataspace()
        instances.append(watch(ds, capture(ANY)))
        if kind == "source":
            options: Any = {"session": Session(), "progress": False, "ignore": ["w"], "journal": sink_path}
            spawn(spark_source(ds, frame, Barrel, **options))
            return
        circuit = Circuit()
        circuit.sink("out", circuit.source("Barrel").map(lambda row: row[:2]))
        options = {"session": Session(), "progress": False, "engine": "local", "state": sink_path}
        spawn(spark_view(ds, frame, circuit, {"out": Barrel}, **options))

    with trio.fail_after(PATIENCE), structlog.testing.capture_logs():
        async with open_system(boot) as system:
            await system.settle()
            await until(lambda: ("-", SparkSource("Barrel", False)) in instances[0])
            return [(mark, each) for mark, each in instances[0] if isinstance(each, Barrel | SparkSource)]
