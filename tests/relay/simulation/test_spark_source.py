"""The source of Spark's rows and its journal in a world: Spark itself is a stub that keeps what Spark promises.

Everything else is as it is: the query's callback and its handing over, the journal in a real file, the turns.
"""

# ruff: noqa: N802  # the names are Spark's

from __future__ import annotations

import json
import os
import tempfile
from functools import partial
from pathlib import Path

import pytest

from relay import connect
from relay.simulation import World, scenario
from syndicate import Ref, assert_, capture, dataspace, during, record, spawn
from syndicate.outside import outside
from syndicate.simulation.guard import guarded
from syndicate.spark import source
from syndicate.spark.journal import SourceJournal
from syndicate.spark.source import spark_source

pytest.importorskip("pyspark")
pytest.importorskip("pandas")  # before the run, in which datetime is not what C knows

from tests.syndicate.spark.microbatches import Batch, Session, Stream, write_whole

SEEDS = int(os.environ.get("SYNDICATE_SEEDS", "6"))
BATCHES = 8
DISKS = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where real files are: a sync takes no time there."""


@record
class Box:
    """A row: it is asserted as long as its weights come to more than nothing."""

    name: str
    size: int


class Turns(Stream):
    """A query of Spark's without a thread: whoever waits for its end lets it take a micro-batch meanwhile."""

    def start(self) -> Turns:  # type: ignore[override]  # it is its own query
        self.sparkSession.query = "one"
        self.status = {"message": "Initializing sources"}
        self.lastProgress = None
        self.ended = False
        for part in ("offsets", "commits"):
            (self.checkpoint / part).mkdir(parents=True, exist_ok=True)
        return self

    def awaitTermination(self, seconds: float) -> bool:
        """Plan a batch, or take the one that was planned and not committed; call back, and commit."""
        if self.ended:
            return True
        number = len(list((self.checkpoint / "commits").glob("[0-9]*")))
        planned = self.checkpoint / "offsets" / str(number)
        if not planned.exists():
            files = sorted(self.path.glob("*.json"))[number : number + 1]
            if not files:
                self.status = {"message": "Waiting for data to arrive"}
                outside().nap(seconds)
                return False
            write_whole(planned, files[0].name)
        outside().nap(0.05)
        self.callback(Batch(self.sparkSession, [self.path / planned.read_text()]), number)
        outside().nap(0.05)
        write_whole(self.checkpoint / "commits" / str(number), "")
        return False

    def stop(self) -> None:
        self.ended = True


class Files:
    """The real files of one run, and the journals that a process has open, which a kill closes as a system does."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.open: list[SourceJournal] = []
        (place / "rows").mkdir()

    def write(self, number: int) -> None:
        """The rows of a batch: each box comes with one, and goes two later; the middle one has come twice by then."""
        rows = [{"name": "box", "size": number, "w": 1}, {"name": "box", "size": number - 2, "w": -1}]
        write_whole(self.place / "rows" / f"{number}.json", "\n".join(map(json.dumps, rows)))

    def close(self) -> None:
        """What was not committed is lost."""
        while self.open:
            self.open.pop().close()


def feed(address: str, files: Files) -> None:
    """Asserts the rows, in a dataspace of its own and at the broker."""
    files.close()
    ds, session = dataspace(), Session()
    spawn(
        spark_source(
            ds,
            lambda _: Turns(session, files.place / "rows"),  # type: ignore[arg-type, return-value]  # a stub
            to=Box,
            weight="w",
            journal=files.place / "journal",
            checkpoint=files.place / "checkpoint",
            session=session,  # type: ignore[arg-type]
        )
    )

    @connect(address)
    def connected(remote: Ref) -> None:
        @during(ds, Box(capture(str), capture(int)))
        def box(name: str, size: int) -> None:
            assert_(remote, Box(name, size))


@scenario(seeds=SEEDS, until=150.0)
def rows(world: World) -> None:
    """The feed, a broker, and rows that come in eight batches; the files are real ones."""
    place = tempfile.TemporaryDirectory(dir=DISKS)
    world.cleanup(place.cleanup)
    files, patch = Files(Path(place.name)), pytest.MonkeyPatch()
    world.cleanup(files.close)
    world.cleanup(patch.undo)
    patch.setattr(source, "SourceJournal", opened_by(files))
    broker = world.broker("broker")
    world.process("feed", feed, broker.address, files)
    boxes = world.observe(broker, Box("box", capture(int)))
    for number in range(BATCHES):
        world.at(1.0 + number, partial(files.write, number))
    world.faults(cuts=2, kills=2, awaits=2, partitions=1, pauses=1, until=12.0)
    last = {(BATCHES - 2,), (BATCHES - 1,)}
    world.eventually("each batch took effect once", lambda: set(boxes.value) == last, within=90.0)
    world.after_healing("and so it stays", lambda: set(boxes.value) == last)


def opened_by(files: Files) -> type[SourceJournal]:
    """Journals that are noted as open."""

    class Noted(SourceJournal):
        """One."""

        def __init__(self, path: str | Path, about: dict[str, str]) -> None:
            super().__init__(path, about)
            files.open.append(self)

        def commit(self) -> None:
            """A kill may come before."""
            outside().nap(0.02)
            super().commit()

        def close(self) -> None:
            """In order, or as a system does it."""
            if self in files.open:
                files.open.remove(self)
            super().close()

    return Noted


def test_each_batch_takes_effect_once_through_faults() -> None:
    """Whenever the process dies: between a batch's planning, its rows, the journal's commit, its turns and Spark's."""
    fired: set[str] = set()
    with guarded():
        for seed in range(SEEDS):
            outcome = rows.run(seed, closely=not seed)
            assert outcome.held, f"seed {seed}: {outcome.violation}"
            fired.update(outcome.fired)
    assert fired >= {"kill", "cut", "partition", "pause"}


def test_a_seed_is_one_run() -> None:
    """Although there are threads: only one of them runs at a time."""
    assert rows.run(3, traced=True).history.digest() == rows.run(3, traced=True).history.digest()


def test_a_batch_that_is_taken_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kill between the journal's commit and Spark's shows it."""
    monkeypatch.setattr(SourceJournal, "expects", lambda journal, number, query: True)
    assert not all(rows.run(seed).held for seed in range(SEEDS))
