from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import Record, Symbol, record
from syndicate.errors import SourceJournalError
from syndicate.spark import journal as module
from syndicate.spark.bulk import BulkRows, bulk_of
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.journal import SourceJournal, described, packed, unpacked
from syndicate.spark.rows import Step
from syndicate.values.value import freeze
from tests.strategies import examples, values


@record
class Box:
    """A row."""

    name: str


ABOUT = described({"record": "Box(name)", "key": []})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is about to let a lock go."""
    monkeypatch.setattr(module, "_PATIENCE", 0.05)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal is to be."""
    return tmp_path / "boxes.journal"


@given(values(refs=False))
def test_forms_as_bytes(value: Any) -> None:
    """Every value without references comes back from its bytes, and equal ones have equal bytes."""
    form = freeze(value)
    assert unpacked(packed(form)) == form
    assert packed(freeze(value)) == packed(form)


def test_odd_names() -> None:
    """Text that is no proper Unicode, which Python knows, is kept too."""
    form = freeze(Record(Symbol("\ud800"), ["\udfff", {"\ud801": b""}]))
    assert unpacked(packed(form)) == form


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("together", [1, 3, 1000])
def test_entries_are_those_of_single_records(
    path: Path, monkeypatch: pytest.MonkeyPatch, keyed: bool, together: int
) -> None:
    """However many entries are put in order together, the file has the bytes and the sum of each record by itself."""
    monkeypatch.setattr(module, "SORTED", together)
    names = [f"name-{number}" for number in range(10)]
    random.Random(7).shuffle(names)
    rows = [(freeze(Record(Symbol("Box"), [name, {"a": [True, -2, 2.5, Symbol("b")]}])), 1) for name in names]
    keys = [(name,) for name in names] if keyed else None
    journal = SourceJournal(path, ABOUT)
    state = journal.current(keyed)
    state.change(Step(rows, keys))
    journal.write(state, 0)
    journal.commit()
    journal.close()
    wanted = [(packed(key), packed(form)) for key, (form, _) in zip(keys or [], rows, strict=keyed)]
    plain = [(*entry, 1) for entry in wanted] if keyed else [(packed(form), None, 1) for form, _ in rows]
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert list(db.execute("SELECT entry, form, weight, crc FROM view ORDER BY entry")) == sorted(
            (*row, zlib.crc32(msgpack.packb(row))) for row in plain
        )


BATCH = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2)), max_size=4)


@settings(max_examples=examples(25))
@given(st.booleans(), st.lists(BATCH, max_size=5), st.randoms())
def test_a_journal_is_what_is_asserted(
    tmp_path_factory: pytest.TempPathFactory, keyed: bool, batches: list[list[tuple[str, int]]], random: Any
) -> None:
    """After any batches, and whenever it is opened again, what it says is asserted is."""
    path = tmp_path_factory.mktemp("journal") / "j"
    journal = SourceJournal(path, ABOUT)
    state, oracle = journal.current(keyed), CurrentRows(keyed=keyed)
    for number, batch in enumerate(batches):
        changes = [(freeze(Record("Box", [name])), weight) for name, weight in dict(batch).items()]
        step = Step(changes, [(name,) for name in dict(batch)] if keyed else None)
        state.change(step)
        oracle.change(step)
        assert journal.expects(number, "q")
        journal.write(state, number, "q", place=str(number), clock=(Symbol("At"), number))
        journal.commit()
        if random.random() < 0.5:
            journal.close()
            journal = SourceJournal(path, ABOUT)
            assert not journal.expects(number, "q")
            state = journal.current(keyed)
            assert (state.weights, state.of_key) == (oracle.weights, oracle.of_key)
            assert (journal.last, journal.place) == (number, str(number))
            assert journal.clock == (Symbol("At"), number)
    journal.close()


def test_what_was_not_committed_is_not_there(path: Path) -> None:
    """The view does not have it, nor the last batch."""
    journal = SourceJournal(path, ABOUT)
    state = journal.current()
    for number, form in enumerate("ab"):
        state.change(Step([(form, 1)]))
        journal.write(state, number)
        if form == "a":
            journal.commit()
    journal.close()
    again = SourceJournal(path, ABOUT)
    assert again.current().weights == {"a": 1}
    assert again.last == 0
    again.close()


def refused(path: Path, about: dict[str, str] = ABOUT) -> str:
    """What is said about a journal that cannot be opened: one sentence, which names it."""
    with pytest.raises(SourceJournalError) as caught, contextlib.closing(SourceJournal(path, about)) as journal:
        journal.current()
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert caught.value.__cause__ is None
    return text


def test_a_journal_of_another_source(path: Path) -> None:
    """A journal belongs to the rows that it was made for."""
    SourceJournal(path, ABOUT).close()
    assert 'of another source, or of one before its rows had changed: its record is "Box(name)", and here' in refused(
        path, described({"record": "Box(name, size)", "key": []})
    )


def test_a_journal_in_use(path: Path) -> None:
    """One source has it at a time, in this process and in others; the lock goes with the process."""
    journal = SourceJournal(path, ABOUT)
    assert f"is in use by process {os.getpid()}, this one: close it or give each source its own" in refused(path)
    program = f"""
from syndicate.errors import SourceJournalError
from syndicate.spark.journal import SourceJournal
try:
    SourceJournal({str(path)!r}, {ABOUT!r})
except SourceJournalError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"is in use by process {os.getpid()}: stop it" in done.stdout
    journal.close()
    SourceJournal(path, ABOUT).close()


def test_no_journal(path: Path) -> None:
    """A file of other content, a database of another program, and a later format are named, and left as they are."""
    path.write_bytes(b"what is this" * 100)
    assert "is damaged: put back a copy together with its checkpoint" in refused(path)
    assert path.read_bytes() == b"what is this" * 100
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE x (y)")
    other.close()
    assert "is no journal of a Spark source: give journal= another path" in refused(path)
    path.unlink()
    SourceJournal(path, ABOUT).close()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    assert f"is of format 99, and this version of syndicate knows {module.FORMAT}" in refused(path)


def test_a_damaged_journal(path: Path) -> None:
    """A journal whose pages were overwritten, or whose entries are no forms, is not believed."""
    journal = SourceJournal(path, ABOUT)
    state = journal.current()
    state.change(Step([(freeze(f"form {number}"), 1) for number in range(2000)]))
    journal.write(state, 0)
    journal.commit()
    journal.close()
    good = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(len(good) // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    assert "is damaged" in refused(path)
    path.write_bytes(good)
    with sqlite3.connect(path) as spoilt:
        spoilt.execute("INSERT INTO view VALUES (x'c1', NULL, 1, 0)")
    spoilt.close()
    assert "is damaged" in refused(path)


def test_a_changed_byte(path: Path) -> None:
    """A byte that a disk has changed may leave a good SQLite file and a good form: it is found nevertheless, in an
    entry, in a weight, and in the number of the last batch.
    """
    journal = SourceJournal(path, ABOUT)
    state = journal.current(keyed=True)
    state.change(Step([("form one", 1)], [("key one",)]))
    journal.write(state, 7, "of one", place="at 7", clock=(Symbol("At"), 7))
    journal.commit()
    journal.close()
    good = path.read_bytes()
    for old, new in ((b"form one", b"form two"), (b"key one", b"key two"), (b"of one", b"of two"), (b"at 7", b"at 6")):
        assert good.count(old) == 1
        path.write_bytes(good.replace(old, new))
        with sqlite3.connect(path) as spoilt:
            assert spoilt.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        spoilt.close()
        assert "is damaged: put back a copy together with its checkpoint" in refused(path)
    for change in ("UPDATE view SET weight = 2", "UPDATE last SET batch = 6", "UPDATE last SET clock = NULL"):
        path.write_bytes(good)
        with sqlite3.connect(path) as spoilt:
            spoilt.execute(change)
        spoilt.close()
        assert "is damaged" in refused(path)
    path.write_bytes(good)
    again = SourceJournal(path, ABOUT)
    assert again.current(keyed=True).of_key == {("key one",): "form one"}
    again.close()


def test_a_changed_bit_of_the_log(path: Path, tmp_path: Path) -> None:
    """After a crash the log holds what was committed: a bit that is another is reported, or takes back the last batch,
    as a torn end does, and no batch before it.
    """
    journal = SourceJournal(path, ABOUT)
    state = journal.current()
    for batch in range(5):
        state.change(Step([(f"form {batch}", 1)]))
        journal.write(state, batch)
        journal.commit()
    log, copy = Path(f"{path}-wal").read_bytes(), tmp_path / "copy"
    whole = path.read_bytes()
    journal.close()
    rng = random.Random(1)
    lasts = []
    for at in rng.sample(range(len(log)), 150):
        bad = bytearray(log)
        bad[at] ^= 1 << rng.randrange(8)
        copy.write_bytes(whole)
        Path(f"{copy}-wal").write_bytes(bad)
        try:
            again = SourceJournal(copy, ABOUT)
        except SourceJournalError as error:
            assert "is damaged" in str(error)  # noqa: PT017  # or there is none
            lasts.append(-1)
            Path(f"{copy}-wal").unlink()
        else:
            lasts.append(again.last)
            again.close()
    assert {-1, 3} <= set(lasts) <= {-1, 3, 4}


def test_a_journal_that_is_closed(path: Path) -> None:
    """A batch that comes when the source has stopped is not in the journal, and nobody is notified of damage."""
    journal = SourceJournal(path, ABOUT)
    state = journal.current()
    journal.write(state, 0)
    journal.close()
    for late in (journal.commit, lambda: journal.write(state, 1)):
        with pytest.raises(SourceJournalError, match="is closed: its source has stopped"):
            late()
    again = SourceJournal(path, ABOUT)
    assert again.last == -1
    again.close()


def test_a_place_where_nothing_can_be(tmp_path: Path) -> None:
    """A directory that is not there, and a directory in the place of the file."""
    for path in (tmp_path / "nowhere" / "j", tmp_path):
        assert "cannot be opened for writing: see that its directory is there and writable" in refused(path)


def test_a_full_disk(path: Path) -> None:
    """A batch that finds no room is not there, and the one after can be."""
    journal = SourceJournal(path, ABOUT)
    pages = journal._one("PRAGMA page_count")[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    state = journal.current()
    state.change(Step([(freeze("x" * 1000 + str(number)), 1) for number in range(100)]))
    with pytest.raises(SourceJournalError, match=r"the disk with the journal .* is full: make room"):
        journal.write(state, 0)
    journal._db.execute("PRAGMA max_page_count = 100000")
    journal.close()
    again = SourceJournal(path, ABOUT)
    assert (again.last, again.current().weights) == (-1, {})
    again.close()


def test_batches_that_do_not_follow(path: Path) -> None:
    """A checkpoint of another query, and one that is ahead, do not belong to the journal."""
    journal = SourceJournal(path, ABOUT)
    with pytest.raises(SourceJournalError, match="ends with batch -1, and the checkpoint goes on with 3"):
        journal.expects(3, "q")
    state = journal.current()
    for number in range(3):
        assert journal.expects(number, "q")
        journal.write(state, number, "q")
        journal.commit()
    assert [journal.expects(number, "q") for number in (2, 3)] == [False, True]
    with pytest.raises(
        SourceJournalError, match="ends with batch 2, and the checkpoint goes back to 1: the checkpoint"
    ):
        journal.expects(1, "q")
    with pytest.raises(SourceJournalError, match=r"the checkpoint is not the one that the journal .* was written with"):
        journal.expects(3, "other")
    with pytest.raises(SourceJournalError, match="ends with batch 2, and the checkpoint goes on with 4: the journal"):
        journal.expects(4, "q")
    journal.close()


def state_of_columns(journal: SourceJournal, rows: int) -> CurrentRows:
    """What a journal has, with rows as columns beside it, which are in its next batch."""
    state = journal.current(bulk=partial(bulk_of, Box))
    table = pa.table({"name": [f"name-{number}" for number in range(rows)]})
    assert state.take(Step(BulkRows(bulk_of(Box, table)))) is not None
    return state


def test_a_journal_without_blocks(path: Path) -> None:
    """A journal of the format before is taken over, with what it says, and holds blocks from then on."""
    journal = SourceJournal(path, ABOUT)
    state = journal.current()
    state.change(Step([("form", 1)]))
    journal.write(state, 0)
    journal.commit()
    journal.close()
    with sqlite3.connect(path) as before:
        before.execute("DROP TABLE blocks")
        before.execute("PRAGMA user_version = 4")
    before.close()
    for batch in (1, 2):
        journal = SourceJournal(path, ABOUT)
        state = state_of_columns(journal, 10)
        assert state.weights == {"form": 1}
        journal.write(state, batch)
        journal.commit()
        journal.close()
    journal = SourceJournal(path, ABOUT)
    there = set(journal.current(bulk=partial(bulk_of, Box)).there())
    assert there == {"form", *[(Symbol("Box"), f"name-{number}") for number in range(10)]}
    journal.close()


def test_a_changed_byte_of_a_block(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are of about the same size, and a byte of one that a disk has changed is found."""
    monkeypatch.setattr(module, "BLOCK_BYTES", 100)
    journal = SourceJournal(path, ABOUT)
    journal.write(state_of_columns(journal, 100), 0)
    journal.commit()
    assert journal._one("SELECT count(*) FROM blocks")[0] > 5
    journal.close()
    good = path.read_bytes()
    assert good.count(b"name-77") == 1
    path.write_bytes(good.replace(b"name-77", b"name-78"))
    again = SourceJournal(path, ABOUT)
    with contextlib.closing(again), pytest.raises(SourceJournalError, match="is damaged"):
        again.current(bulk=partial(bulk_of, Box))
    path.write_bytes(good)
    again = SourceJournal(path, ABOUT)
    assert len(again.current(bulk=partial(bulk_of, Box)).there()) == 100
    again.close()
