"""Durable tables: what a tick changed is there in the next run, whatever becomes of machine and disk, or is refused."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from syndicate import Dictionary, Symbol
from syndicate.bloom import Bloom, bloom, bootstrap, durable, import_module, lmax, scratch
from syndicate.bloom.state.store import StateFile, Store
from syndicate.errors import BloomDeclaration, KeyConflict, StateError
from syndicate.flow.encoding import encoded
from syndicate.simulation.disk import PowerCut, SimulatedDisk
from syndicate.storage.sqlite_wal import damage


class Counts(Bloom):
    """Rows that are kept, replaced and deleted."""

    put = scratch(["k"], ["v"])
    gone = scratch(["k"], ["v"])
    kept = durable(["k"], ["v"])
    seen = durable(["k"], [])

    @bloom
    def keep(self) -> None:
        """All that was put is seen."""
        self.kept < +-self.put
        self.kept < -self.gone
        self.seen <= self.put.map(lambda r: (r.k,))


Rows = tuple[list[Any], list[Any]]
STEPS: list[Callable[[Any], object]] = [
    lambda p: p.put.insert([("a", 1), ("b", True), ("c", 3.0)]),
    lambda p: p.put.insert([("a", 2), ("c", (1, "x"))]),
    lambda p: p.gone.insert([("b", True), ("c", 3.0)]),
    lambda p: p.put.insert([("d", Symbol("s")), ("a", 1)]),
    lambda p: p.seen.delete([("b",)]),
    lambda p: p.gone.insert([("a", 1)]),
    lambda p: p.put.insert([("b", Dictionary([(1, "one"), (True, "yes")]))]),
]


def rows(p: Any) -> Rows:
    """What is in the tables."""
    return sorted(p.kept, key=str), sorted(p.seen, key=str)


def restarted(place: Any) -> Rows:
    """What another run finds."""
    p = Counts(state=place)
    try:
        p.tick()
        return rows(p)
    finally:
        p.close()


def copied(file: Path, to: Path) -> Path:
    """The file and its log as they are on the disk now, as after a crash."""
    to.mkdir(exist_ok=True)
    for path in (file, file.with_name(f"{file.name}-wal")):
        (to / path.name).unlink(missing_ok=True)
        if path.exists():
            shutil.copy(path, to)
    return to / file.name


def test_rows_are_there_again(tmp_path: Path) -> None:
    """After each tick, closed in order or not, another run begins with the rows, distinguished by value identity."""
    p = Counts(state=tmp_path / "state.db")
    for number, step in enumerate(STEPS):
        step(p)
        p.run()
        assert restarted(copied(tmp_path / "state.db", tmp_path / "copy")) == rows(p), number
    wanted = rows(p)
    assert [row.k for row in wanted[0]] == ["b", "c", "d"]
    p.close()
    for _ in range(3):
        assert restarted(tmp_path / "state.db") == wanted


def test_tables_of_modules_and_lattices(tmp_path: Path) -> None:
    """Each has rows of its own, and lattice values come back as such."""

    class Inner(Bloom):
        best = durable(["k"], ["v"], v=lmax)

    class Outer(Bloom):
        best = durable(["k"], ["v"], v=lmax)
        one = import_module(Inner)
        other = import_module(Inner)

    def run(*give: tuple[Any, int]) -> list[Any]:
        p: Any = Outer(state=tmp_path / "state.db")
        for name, v in give:
            (p if name is None else getattr(p, name)).best <= [("k", v)]
        p.run()
        p.tick()
        p.close()
        return [[row.v.reveal() for row in one.best] for one in (p, p.one, p.other)]

    assert run((None, 1), ("one", 5)) == [[1], [5], []]
    assert run((None, 3), ("one", 2), ("other", 7)) == [[3], [5], [7]]
    assert run() == [[3], [5], [7]]


class Both(Bloom):
    """A plain table, one with a lattice, one that is all key, and what follows from them."""

    plain = durable(["k"], ["v"])
    best = durable(["k"], ["v"], v=lmax)
    key = durable(["k", "v"], [])
    follows = durable(["k", "v"], [])

    @bloom
    def rules(self) -> None:
        """Of the plain one."""
        self.follows <= self.plain


class Bootstrapped(Both):
    """Which does the first thing by itself."""

    first: Callable[[Any], object] = staticmethod(lambda p: None)

    @bootstrap
    def begin(self) -> None:
        """As the test says."""
        type(self).first(self)


TABLES = ("plain", "best", "key")
FIRST: dict[str, Callable[[Any], object]] = {
    "nothing": lambda p: None,
    "delete": lambda p: [getattr(p, name).delete([("a", 1)]) for name in TABLES],
    "delete another value": lambda p: [getattr(p, name).delete([("a", 5)]) for name in TABLES],
    "upsert": lambda p: [getattr(p, name).upsert([("a", 3), ("c", 1)]) for name in TABLES],
    "upsert less": lambda p: [getattr(p, name).upsert([("b", 1)]) for name in TABLES],
    "upsert and delete": lambda p: [(t.delete([("a", 1)]), t.upsert([("a", 1)])) for t in (p.plain, p.best, p.key)],
    "insert": lambda p: [getattr(p, name).insert([("a", 1), ("c", 1)]) for name in TABLES],
    "insert more": lambda p: p.best.insert([("a", 7)]),
    "conflict": lambda p: p.plain.insert([("a", 7)]),
    "discard": lambda p: (p.plain.insert([("d", 7)]), p.discard()),
}


@pytest.mark.parametrize("boot", [False, True])
@pytest.mark.parametrize("first", FIRST)
def test_what_is_done_before_the_first_tick(first: str, tmp_path: Path, *, boot: bool) -> None:
    """Is done to the rows of the run before, as it would be after that tick: in the tables and in the file."""

    def run(name: str, cls: type[Both], then: Callable[[Any], object]) -> Any:
        p: Any = Both(state=tmp_path / name)
        for table in (p.plain, p.best, p.key):
            table <= [("a", 1), ("b", 2)]
        p.tick()
        p.close()
        results: list[Any] = []
        for program, act in ((cls, then), (Both, lambda p: p.tick())):
            p = None
            try:
                p = program(state=tmp_path / name)
                act(p)
                p.run()
                tables = (p.plain, p.best, p.key)
            except KeyConflict as error:
                results.append(str(error).partition(". The rules")[0])
            else:
                results.append([sorted((row.k, getattr(row.v, "content", row.v)) for row in one) for one in tables])
            finally:
                if p is not None:
                    p.close()
        return results

    act = FIRST[first]
    cls = type("Made", (Bootstrapped,), {"first": staticmethod(act)}) if boot else Both
    now = run("now.db", cls, lambda p: None if boot else act(p))
    assert now == run("later.db", Both, lambda p: (p.tick(), act(p)))
    assert first != "delete" or now[1] == [[("b", 2)]] * 3


# ------------------------------------------------------------------------------------------------------- power cuts


def run_until(disk: SimulatedDisk, cut: int) -> tuple[list[Rows], int]:
    """Run until there is no power any more; what there was at the start and after each tick, and how often it was
    asked.
    """
    count = 0

    def step(point: str) -> None:
        nonlocal count
        count += 1
        if count == cut:
            raise PowerCut(point)

    disk.step = step
    stood: list[Rows] = [([], [])]
    try:
        p = Counts(state=disk)
        for give in STEPS:
            give(p)
            while p.waits():
                p.tick()
                stood.append(rows(p))
    except PowerCut:
        pass
    return stood, count


def test_power_cuts() -> None:
    """Wherever the power goes, whatever the disk has forgotten of what was not synced: all ticks that returned are
    there, and of the one that did not all or nothing.
    """
    everything, points = run_until(SimulatedDisk(), 0)
    assert points > 3 * len(STEPS)
    for cut in range(1, points + 1):
        disk = SimulatedDisk()
        stood, _ = run_until(disk, cut)
        last = len(stood) - 1
        for image in disk.images():
            result = restarted(image)
            assert result in everything[last : last + 2], cut
            image.locked = False
            assert restarted(image) == result


def test_a_disk_that_fails() -> None:
    """The tick did not happen, and no later one is tried: nobody knows what is on the disk."""

    def fail(point: str) -> None:
        if failing and point == "written, not synced":
            raise StateError("the disk is on fire")

    failing: list[bool] = []
    disk = SimulatedDisk(step=fail)
    p = Counts(state=disk)
    p.put <= [("a", 1)]
    p.run()
    failing.append(True)
    p.put <= [("b", 2)]
    with pytest.raises(StateError, match="the disk is on fire"):
        p.run()
    failing.clear()
    assert rows(p) == ([("a", 1)], [("a",)])
    with pytest.raises(StateError, match="an earlier tick could not be written"):
        p.run()
    p.close()
    assert [restarted(image)[1] for image in disk.images()] == [[("a",)], [("a",), ("b",)]]


# ------------------------------------------------------------------------------------------------------- bad disks


def written(tmp_path: Path, *, closed: bool) -> tuple[Path, list[Rows]]:
    """A file with its log, and what there was after each tick."""
    p = Counts(state=tmp_path / "state.db")
    stood: list[Rows] = [([], [])]
    for step in STEPS:
        step(p)
        while p.waits():
            p.tick()
            stood.append(rows(p))
    if closed:
        p.close()
    file = copied(tmp_path / "state.db", tmp_path / "copy")
    p.close()
    return file, stood


def outcome(file: Path) -> Rows | str:
    """What another run finds, or what it raises."""
    try:
        return restarted(file)
    except StateError as error:
        return str(error)


@pytest.mark.parametrize("part", ["rows", "file", "log"])
def test_flipped_bits(part: str, tmp_path: Path) -> None:
    """A bit that is another is reported, with the file and what is damaged, or makes no difference.  In the log it may
    take back the last commit, as a torn end does, and no other.
    """
    file, stood = written(tmp_path, closed=part != "log")
    log = file.with_name(f"{file.name}-wal")
    target = log if part == "log" else file
    good, other = target.read_bytes(), (log if target is file else file)
    rest = other.read_bytes() if other.exists() else b""
    rng = random.Random(1)
    if part == "rows":
        elements = [("kept", tuple(row)) for row in stood[-1][0]] + [("seen", tuple(row)) for row in stood[-1][1]]
        places = [at for one in elements for data in [encoded(one)] for at in span(good, data)]
    else:
        used = [at for at, byte in enumerate(good) if byte]
        places = [*rng.choices(used, k=200), *rng.choices(range(len(good)), k=50)]
    reports = 0
    for at in places:
        bad = bytearray(good)
        bad[at] ^= 1 << rng.randrange(8)
        target.write_bytes(bad)
        if rest:
            other.write_bytes(rest)
        else:
            other.unlink(missing_ok=True)
        result = outcome(file)
        if isinstance(result, str):
            assert str(file) in result, (at, result)
            assert part != "rows" or "is damaged: row " in result
            reports += 1
        else:
            assert result in (stood[-1:] if part != "log" else stood[-2:]), at
    assert reports == len(places) if part == "rows" else reports > 20


def test_flipped_bits_in_the_heads_of_frames(tmp_path: Path) -> None:
    """Any bit of the head of a frame before the last commit is reported.  In a salt it makes the frame look as if the
    log had ended before it, and in the mark as if it ended no commit.
    """
    file, _ = written(tmp_path, closed=False)
    log = file.with_name(f"{file.name}-wal").read_bytes()
    size = int.from_bytes(log[8:12], "big")
    starts = [*range(32, len(log) - size - 23, size + 24)]
    commits = [number for number, at in enumerate(starts) if any(log[at + 4 : at + 8])]
    assert len(commits) > 2
    for number, at in enumerate(starts[: commits[-2] + 1]):
        for bit in range(number % 8, 128, 8):  # each of the 128 in one frame of eight
            bad = bytearray(log)
            bad[at + bit // 8] ^= 1 << bit % 8
            assert damage(bytes(bad)), (at, bit)
    assert damage(log) is None
    assert damage(log[: starts[commits[-1]]]) is None, "a torn end"


def span(contents: bytes, data: bytes) -> range:
    """Where some bytes are that are there once."""
    assert contents.count(data) == 1
    at = contents.index(data)
    return range(at, at + len(data))


def test_torn_ends(tmp_path: Path) -> None:
    """A log that ends too early has the ticks before; a file that does is refused."""
    file, stood = written(tmp_path, closed=False)
    log = file.with_name(f"{file.name}-wal")
    contents, whole = log.read_bytes(), file.read_bytes()
    results = []
    for length in range(0, len(contents) + 1, 1031):
        file.write_bytes(whole)
        log.write_bytes(contents[:length])
        answer = outcome(file)
        assert not isinstance(answer, str), answer
        results.append(stood.index(answer))
    assert results == sorted(results)
    assert results[-1] >= len(stood) - 2
    good = closed_copy(file, whole, contents)
    for length in range(100, len(good), 997):
        file.write_bytes(good[:length])
        log.unlink(missing_ok=True)
        assert "is damaged" in str(outcome(file)), length


def closed_copy(file: Path, whole: bytes, contents: bytes) -> bytes:
    """The same file with its log taken in."""
    file.write_bytes(whole)
    file.with_name(f"{file.name}-wal").write_bytes(contents)
    restarted(file)
    return file.read_bytes()


# ------------------------------------------------------------------------------------------------------- refused


def test_a_failed_tick_is_not_written(tmp_path: Path) -> None:
    """Neither a broken key nor a full or closed file leaves half a tick behind."""
    p = Counts(state=tmp_path / "state.db")
    p.put <= [("a", 1)]
    p.run()
    p.kept <= [("a", 3), ("z", 3)]
    with pytest.raises(KeyConflict):
        p.tick()
    p.discard()
    p.close()
    p.close()
    p.kept <= [("z", 4)]
    with pytest.raises(StateError, match=r"state.db: it is closed: the tick cannot be written, and did not happen"):
        p.tick()
    assert sorted(p.kept) == [("a", 1)]
    assert restarted(tmp_path / "state.db") == ([("a", 1)], [("a",)])


def test_no_file(tmp_path: Path) -> None:
    """A durable table needs a file, one that can be used."""
    with pytest.raises(BloomDeclaration, match=r"kept is durable: give Counts\(state=PATH\)"):
        Counts()
    with pytest.raises(StateError, match=f"cannot keep state in {tmp_path}: it is a directory: give state= another"):
        Counts(state=tmp_path)
    with pytest.raises(StateError, match=r"cannot keep state in .*: No such file or directory: give state= another"):
        Counts(state=tmp_path / "no" / "state.db")


def test_files_of_others(tmp_path: Path) -> None:
    """A broker's journal, any other database, and what is no database, are refused and left as they are."""
    from relay.server.journal import StateDirectory

    broker = StateDirectory(tmp_path / "broker")
    broker.open()
    broker.load(bytes)
    broker.close()
    with pytest.raises(StateError, match=r"journal.sqlite was not written by syndicate.bloom: give state= another"):
        Counts(state=tmp_path / "broker" / "journal.sqlite")
    db = sqlite3.connect(tmp_path / "any.db")
    db.execute("CREATE TABLE t (x)")
    db.close()
    (tmp_path / "none.db").write_bytes(b"no database" * 1000)
    for name in ("any.db", "none.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StateError, match=rf"{name} is "):
            Counts(state=tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_other_columns(tmp_path: Path) -> None:
    """A table that is declared otherwise than its rows were stored is refused, and one that was left out stays."""

    class Other(Bloom):
        kept = durable(["k"], ["value"])

    class Less(Bloom):
        seen = durable(["k"], [])

    p = Counts(state=tmp_path / "state.db")
    STEPS[0](p)
    p.run()
    wanted = rows(p)
    p.close()
    with pytest.raises(StateError, match="stored rows of kept have the columns k, v, but it is declared with k, value"):
        Other(state=tmp_path / "state.db")
    Less(state=tmp_path / "state.db").close()
    assert restarted(tmp_path / "state.db") == wanted


def test_a_file_is_for_one(tmp_path: Path) -> None:
    """A second program, in this process or another, is refused; after a kill the file is free."""
    file = tmp_path / "state.db"
    p = Counts(state=file)
    with pytest.raises(
        StateError, match=rf"{file} is in use by process \d+, this one: close it or give state= another"
    ):
        Counts(state=file)
    p.close()
    program = (
        "import sys; from tests.syndicate.bloom.state.test_store import Counts\n"
        "p = Counts(state=sys.argv[1]); p.put <= [('a', 1)]; p.run(); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, file],
        cwd=Path(__file__).parents[4],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StateError, match=f"in use by process {other.pid}: stop it or"):
            Counts(state=file)
        other.kill()
        other.wait()
    assert restarted(file) == ([("a", 1)], [("a",)])


def test_a_program_that_was_not_made_gives_the_file_back(tmp_path: Path) -> None:
    """What is refused has no lock."""
    file = tmp_path / "state.db"
    file.write_bytes(b"no database" * 1000)
    make = partial(Store, file)
    for _ in range(2):
        with pytest.raises(StateError, match="is damaged"):
            make()
    disk = StateFile(file)
    disk.open()
    disk.close(clean=False)
