"""The journal in real SQLite files: what is read was written, also of torn, flipped, full and foreign files."""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
import stat
import struct
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.server.journal import Journal, StateDirectory
from syndicate import Dictionary, Record, Ref, Symbol
from syndicate.errors import JournalDamaged, JournalError, NotAValue, StateError
from syndicate.simulation.disk import PowerCut
from syndicate.values.value import freeze
from tests.strategies import examples, values

FLIPS = int(os.environ.get("SYNDICATE_FLIPS", "300"))
SECTOR = 512

Image = tuple[bytes, bytes]
"""The contents of the file and of its log."""

State = frozenset[Any]


def opened(directory: Path, *, salvage: bool = False) -> Journal:
    """A journal in *directory*, open."""
    journal = Journal(StateDirectory(directory))
    journal.open(salvage=salvage)
    return journal


def state(journal: Journal) -> State:
    """What it recovered."""
    return frozenset(form for _, form in journal.recovered)


def found_in(directory: Path) -> State:
    """What a restart finds."""
    journal = opened(directory)
    journal.close()
    return state(journal)


def image_of(directory: Path) -> Image:
    """What is in the files now."""
    log = directory / "journal.sqlite-wal"
    return (directory / "journal.sqlite").read_bytes(), log.read_bytes() if log.exists() else b""


def restore(image: Image, directory: Path) -> Path:
    """A state directory with these files."""
    directory.mkdir(exist_ok=True)
    (directory / "journal.sqlite").write_bytes(image[0])
    (directory / "journal.sqlite-wal").write_bytes(image[1])
    return directory


# -------------------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("count", [1, 127, 128, 129, 5000])
def test_a_commit_asks_for_many_rows_at_once(tmp_path: Path, count: int) -> None:
    """Each statement takes the interpreter's lock once more: all others wait for that, not for the disk alone."""
    disk = StateDirectory(tmp_path / "state")
    journal = Journal(disk)
    journal.open()
    statements: list[str] = []
    assert disk._db is not None
    disk._db.set_trace_callback(statements.append)
    numbers = [journal.keep(number) for number in range(count)]
    journal.seal()
    journal.write()
    for number in numbers[::2]:
        journal.forget(number)
    journal.keep("last")
    journal.seal()
    journal.write()
    assert len(statements) <= 10 + 3 * (count // 100 + 1)
    journal.close()
    assert found_in(tmp_path / "state") == {*range(1, count, 2), "last"}


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(values(refs=False, wide=True), max_size=5))
def test_every_value_comes_back(tmp_path_factory: pytest.TempPathFactory, survivors: list[Any]) -> None:
    """Whatever is a value without references is the same value after a restart, in the order in which it came."""
    directory = tmp_path_factory.mktemp("state")
    forms = list(dict.fromkeys(map(freeze, survivors)))
    journal = opened(directory)
    for form in forms:
        journal.keep(form)
    journal.seal()
    journal.write()
    journal.close()
    again = opened(directory)
    again.close()
    assert [form for _, form in again.recovered] == forms


def test_a_live_reference_is_refused(tmp_path: Path) -> None:
    """What is bound to this process cannot be stored; nothing of it is noted."""
    journal = opened(tmp_path)
    with pytest.raises(NotAValue):
        journal.keep(freeze(["x", Ref.unbound()]))
    assert not journal.noted
    journal.close()


def test_the_format(tmp_path: Path) -> None:
    """Format 1, as it is described, read without any code of ours."""
    journal = opened(tmp_path / "state")
    journal.keep(freeze(Record("Present", ["Alice", 1, 2.0, True])))
    journal.seal()
    journal.write()
    journal.keep(freeze([Dictionary([(1, "x"), (True, "y"), ("k", b"z")]), {2, 1.5, "s"}, -(2**64)]))
    journal.keep("gone")
    journal.forget(3)
    journal.seal()
    journal.write()
    journal.close()
    db = sqlite3.connect(tmp_path / "state" / "journal.sqlite")
    [(number, turn, crc, data), (*numbers, other, collection)] = db.execute(
        "SELECT number, turn, crc, data FROM kept ORDER BY number"
    )
    [(epoch, clean, last_turn, last, rows, total, own)] = db.execute(
        "SELECT epoch, clean, turn, number, rows, sum, crc FROM meta"
    )
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()
    assert data.hex(" ") == "95 c7 07 01 50 72 65 73 65 6e 74 a5 41 6c 69 63 65 01 cb 40 00 00 00 00 00 00 00 c3"
    assert (number, turn, crc) == (1, 1, zlib.crc32(struct.pack(">qq", 1, 1) + data))
    assert collection.hex(" ") == (
        "94 c0 97 c7 00 05 c3 a1 79 01 a1 78 a1 6b c4 01 7a 94 c7 00 04 cb 3f f8 00 00 00 00 00 00 02 a1 73 "
        "c7 09 02 ff 00 00 00 00 00 00 00 00"
    )
    assert (*numbers, other) == (2, 2, zlib.crc32(struct.pack(">qq", 2, 2) + collection))
    assert (epoch, clean, last_turn, last, rows, total) == (1, 1, 2, 3, 2, crc + other)
    assert own == zlib.crc32(struct.pack(">6q", epoch, clean, last_turn, last, rows, total))


def test_epochs_and_numbers(tmp_path: Path) -> None:
    """Each opening is a new epoch; a number is not used twice; an orderly end is distinguished from a crash."""
    for epoch in (1, 2, 3):
        journal = opened(tmp_path)
        assert (journal.epoch, journal.clean) == (epoch, epoch != 3)
        assert journal.keep(epoch) == 2 * epoch - 1
        journal.keep("y")
        journal.seal()
        journal.write()
        journal.forget(2 * epoch)
        journal.seal()
        journal.write()
        if epoch == 2:
            journal._disk.close(clean=False)
        else:
            journal.close()


def test_permissions(tmp_path: Path) -> None:
    """Nobody else can read what is kept."""
    journal = opened(tmp_path / "state")
    journal.keep("x")
    journal.seal()
    journal.write()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == dict.fromkeys(["journal.sqlite", "journal.sqlite-wal", "lock"], 0o600)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    journal.close()


# -------------------------------------------------------------------------------------------------------- crashes


def mixed(rng: random.Random, old: bytes, new: bytes, offset: int = 0) -> bytes:
    """*new* as far as the disk got with it: of each sector that differs, the old contents or the new ones."""
    size = rng.choice([len(new), max(len(old), rng.randrange(len(new) + 1))])
    missing = rng.choice([0.0, 0.01, 0.1, 0.9])
    out = bytearray(new[:size])
    for at in range(offset, size, SECTOR):
        until = min(at + SECTOR, size)
        if rng.random() < missing and old[at:until] != new[at:until]:
            out[at:until] = old[at:until].ljust(until - at, b"\0")
    return bytes(out)


def crash_image(rng: random.Random, before: Image, after: Image) -> tuple[Image, bool]:
    """What a crash may leave during a commit, and whether the commit must be in it.

    SQLite writes the head of the log and syncs it, then the log and syncs it, and then perhaps copies from the log to
    the file: what is not synced can be there in part, sector by sector.
    """
    stage = rng.choice(["head", "log", "log", "log", "file"])
    if stage == "file" and before[0] != after[0]:
        return (mixed(rng, before[0], after[0]), after[1]), True
    head = after[1][:32]
    if stage == "head":
        return (before[0], rng.choice([before[1], head + before[1][32:]])), False
    return (before[0], head + mixed(rng, head + before[1][32:], after[1], 32)[32:]), False


def scenario(directory: Path, rng: random.Random, commits: int, *, checkpoint: int) -> list[tuple[Image, State]]:
    """The files and the state after each commit of a busy server that was never closed."""
    journal = opened(directory)
    disk: Any = journal._disk
    disk._db.execute(f"PRAGMA wal_autocheckpoint = {checkpoint}")
    survivors: dict[int, Any] = {}
    history: list[tuple[Image, State]] = [(image_of(directory), frozenset())]
    for n in range(commits):
        for _ in range(rng.randrange(1, 4)):
            for _ in range(rng.randrange(1, 6)):
                if survivors and rng.random() < 0.4:
                    number = rng.choice([*survivors])
                    journal.forget(number)
                    del survivors[number]
                else:
                    form = freeze(["value", n, rng.randrange(2**60), "x" * rng.choice([1, 50, 6000])])
                    survivors[journal.keep(form)] = form
            journal.seal()
        journal.write()
        history.append((image_of(directory), frozenset(survivors.values())))
    disk._db.close()
    disk._db = None
    disk.close(clean=False)
    return history


def opened_in_steps(directory: Path) -> tuple[Image, Journal]:
    """The files after recovery, before a new epoch is begun; and the journal, open."""
    disk = StateDirectory(directory)
    empty, images = disk._empty_log, []

    def emptied() -> None:
        empty()
        images.append(image_of(directory))

    disk._empty_log = emptied  # type: ignore[method-assign]
    journal = Journal(disk)
    journal.open()
    return images[0], journal


@pytest.mark.parametrize("seed", range(3))
def test_torn_files(tmp_path: Path, seed: int) -> None:
    """A crash during any commit, with any of its sectors on the disk: the state before it or after it, never another.

    So too if there is another crash while SQLite and we recover from the first.
    """
    rng = random.Random(seed)
    history = scenario(tmp_path / "first", rng, 30, checkpoint=rng.choice([8, 20, 60]))
    outcomes: Counter[str] = Counter()
    copies = iter(range(10_000))
    for (before, old), (after, new) in itertools.pairwise(history):
        assert found_in(restore(after, tmp_path / f"{next(copies)}")) == new, "what was acknowledged is there"
        for _ in range(4):
            image, must = crash_image(rng, before, after)
            place = restore(image, tmp_path / f"{next(copies)}")
            emptied, journal = opened_in_steps(place)
            result = state(journal)
            assert result == new or (result == old and not must)
            outcomes["new" if result == new else "old"] += 1
            begun = image_of(place)
            journal._disk.close(clean=False)
            again = rng.choice(
                [
                    (mixed(rng, image[0], emptied[0]), image[1]),
                    (emptied[0], rng.choice([image[1], b""])),
                    crash_image(rng, emptied, begun)[0],
                ]
            )
            assert found_in(restore(again, tmp_path / f"{next(copies)}")) == result, "recovery is idempotent"
    assert min(outcomes.values()) > 10
    assert len(outcomes) == 2


@pytest.mark.timeout(900 + FLIPS // 10)
def test_flipped_bits(tmp_path: Path) -> None:
    """One flipped bit anywhere: refused, or the last commit is cut off, or it did not matter; nothing else is served.

    (Of two commits, if the bit is among the few that say to which run of the log the last frame belongs.)
    """
    rng = random.Random(7)
    history = scenario(tmp_path / "first", rng, 30, checkpoint=60)
    states = [state for _, state in history]
    file, log = history[-1][0]
    assert len(log) > 50_000
    assert len(file) > 50_000
    outcomes: Counter[str] = Counter()
    place = tmp_path / "flipped"
    for _ in range(FLIPS):
        which = rng.random() < 0.5
        contents = bytearray(file if which else log)
        contents[rng.randrange(len(contents))] ^= 1 << rng.randrange(8)
        restore((bytes(contents), log) if which else (file, bytes(contents)), place)
        try:
            journal = opened(place)
        except JournalError:
            outcomes["refused"] += 1
            continue
        assert state(journal) in states[-3:]
        outcomes["whole" if state(journal) == states[-1] else "cut"] += 1
        journal._disk.close(clean=False)
    print(f"{FLIPS} flips: {dict(outcomes)}")
    assert len(outcomes) == 3


# -------------------------------------------------------------------------------------------------------- salvage


def damaged(directory: Path) -> tuple[int, bytes]:
    """A directory with a hundred values, one of which has a flipped bit; where that is, and the damaged file."""
    journal = opened(directory)
    for n in range(100):
        journal.keep(freeze(["value", f"number-{n:04}-"]))
        journal.seal()
    journal.write()
    journal.close()
    file = directory / "journal.sqlite"
    contents = bytearray(file.read_bytes())
    contents[contents.index(b"number-0042-") + 3] ^= 4
    file.write_bytes(contents)
    return 43, bytes(contents)


ALL_BUT_ONE = frozenset(freeze(["value", f"number-{n:04}-"]) for n in range(100) if n != 42)


def test_a_damaged_row_is_refused_and_salvaged(tmp_path: Path) -> None:
    """The refusal names file, row and remedy; a salvage keeps the rest, lists what is lost, and keeps the old file."""
    row, contents = damaged(tmp_path)
    for _ in range(2):
        with pytest.raises(JournalDamaged) as refused:
            opened(tmp_path)
        assert f"{tmp_path}/journal.sqlite is damaged: row {row}" in str(refused.value)
        assert "--salvage" in str(refused.value)
    journal = opened(tmp_path, salvage=True)
    assert state(journal) == ALL_BUT_ONE
    assert [line for line in journal.lost if f"row {row}" in line]
    assert [line for line in journal.lost if "1 of 100 rows" in line]
    assert (tmp_path / "damaged-1" / "journal.sqlite").read_bytes() == contents
    assert journal.keep("new") == 101
    journal.seal()
    journal.write()
    journal.close()
    journal = opened(tmp_path, salvage=True)
    assert state(journal) == ALL_BUT_ONE | {"new"}
    assert (journal.lost, journal.epoch) == ([], 3)
    journal.close()
    assert not (tmp_path / "damaged-2").exists()


def test_a_damaged_log_is_no_torn_log(tmp_path: Path) -> None:
    """Where commits follow the damage they are not silently taken back; the refusal changes nothing."""
    history = scenario(tmp_path / "first", random.Random(1), 10, checkpoint=1000)
    file, log = history[-1][0]
    flipped = bytearray(log)
    flipped[len(log) // 2] ^= 1
    place = restore((file, bytes(flipped)), tmp_path / "flipped")
    for _ in range(2):
        with pytest.raises(JournalDamaged, match=r"frame \d+ of its log .* at least \d later commits would be lost"):
            opened(place)
        assert image_of(place) == (file, bytes(flipped))
    journal = opened(place, salvage=True)
    assert state(journal) in [state for _, state in history[1:-1]]
    assert "later commits" in journal.lost[0]
    journal.close()


@pytest.mark.parametrize("step", ["_build", "_replace"])
def test_a_salvage_that_is_cut_short(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash during a salvage loses nothing: it is begun again, or finished, by the next start."""
    damaged(tmp_path)
    whole: Callable[..., Any] = getattr(StateDirectory, step)

    def cut(disk: StateDirectory, *args: Any) -> None:
        if step == "_build":
            whole(disk, *args)
        else:
            disk._wal.unlink(missing_ok=True)
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(StateDirectory, step, cut)
        with pytest.raises(PowerCut):
            opened(tmp_path, salvage=True)
    journal = opened(tmp_path, salvage=step == "_build")
    assert state(journal) == ALL_BUT_ONE
    journal.close()


def test_random_salvages(tmp_path: Path) -> None:
    """Whatever is damaged, a salvage starts, and gives back only what was once kept."""
    rng = random.Random(5)
    history = scenario(tmp_path / "first", rng, 20, checkpoint=30)
    ever = frozenset().union(*[state for _, state in history])
    saved = 0
    for n in range(60):
        image = [bytearray(part) for part in history[-1][0]]
        for _ in range(rng.choice([1, 3, 30])):
            part = rng.choice(image)
            at = rng.choice([rng.randrange(len(part)), rng.randrange(200)])
            part[at] ^= 1 << rng.randrange(8)
        place = restore((bytes(image[0]), bytes(image[1])), tmp_path / f"{n}")
        try:
            journal = opened(place, salvage=True)
        except JournalDamaged:
            raise
        except JournalError:  # the very number of the format is damaged
            continue
        assert state(journal) <= ever
        saved += bool(journal.recovered)
        journal.close()
        assert found_in(place) == state(journal)
    assert saved > 20


# -------------------------------------------------------------------------------------------------------- failures


def test_a_full_disk_is_final(tmp_path: Path) -> None:
    """SQLite's own "disk is full" ends the journal; what was committed before is there, what was not is not."""
    journal = opened(tmp_path)
    journal.keep("before")
    journal.seal()
    journal.write()
    disk: Any = journal._disk
    disk._db.execute("PRAGMA max_page_count = 8")
    journal.keep("x" * 100_000)
    journal.seal()
    with pytest.raises(JournalError, match=r"full.*SQLITE_FULL.*make room on the disk"):
        journal.write()
    assert journal.error is not None
    assert not journal.settled(Ref.unbound())
    journal.close()
    assert found_in(tmp_path) == {"before"}


def test_a_directory_is_for_one(tmp_path: Path) -> None:
    """A second server, in this process or another, gets to know by whom the directory is used; after a kill it is
    free.
    """
    journal = opened(tmp_path)
    with pytest.raises(StateError, match=f"state directory {tmp_path} is in use by process {os.getpid()}, this one: "):
        opened(tmp_path)
    journal.close()
    program = (
        "import sys; from tests.relay.server.test_journal import opened, Path\n"
        "journal = opened(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StateError, match=f"in use by process {other.pid}:"):
            opened(tmp_path)
        other.kill()
        other.wait()
        assert found_in(tmp_path) == frozenset()


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    """A file, a place that cannot be written, a parent that is not there: one line that names it and the remedy."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=f"cannot keep state in {tmp_path}/file: it is a file. Give --state a dir"):
        opened(tmp_path / "file")
    with pytest.raises(StateError, match=r"cannot keep state in /proc/nowhere: .*Give --state a directory"):
        opened(Path("/proc/nowhere"))
    with pytest.raises(StateError, match=r"No such file or directory"):
        opened(tmp_path / "no" / "where")


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    """Another format, another database, no database, half of one: refused, and left as they are."""
    journal = opened(tmp_path)
    journal.close()
    file = tmp_path / "journal.sqlite"
    good = file.read_bytes()
    db = sqlite3.connect(file)
    db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(JournalError, match=r"journal.sqlite is of format 7, and this version .* knows 1"):
        opened(tmp_path)
    for contents in (b"", b"this is not a database, by any means" * 100, good[:5000]):
        file.write_bytes(contents)
        for path in tmp_path.glob("*-wal"):
            path.unlink()
        with pytest.raises(JournalError, match=r"damaged|format 0"):
            opened(tmp_path)
    file.unlink()
    (tmp_path / "journal.sqlite-wal").write_bytes(b"x")
    with pytest.raises(JournalDamaged, match=r"journal.sqlite is missing, although journal.sqlite-wal is there"):
        opened(tmp_path)


def test_symbols_stay_symbols(tmp_path: Path) -> None:
    """A value decoded from the disk is what the index knows: its symbols are the interned ones."""
    journal = opened(tmp_path)
    journal.keep((Symbol("a"), "a"))
    journal.seal()
    journal.write()
    journal.close()
    [form] = found_in(tmp_path)
    assert form[0] is Symbol("a")
