from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio.testing
from hypothesis import given

from relay.tools.recording import Recorder, header, read, replayed
from syndicate import ANY, Record, Ref, after, capture, dataspace, on_message, run, spawn, stop_actor, sync
from syndicate.actors.actor import actor_of
from syndicate.actors.system import system_of
from syndicate.errors import RecordingError
from syndicate.testing import Seen, watch
from syndicate.values.text import parse, unparse
from syndicate.values.value import identical
from tests.strategies import values

Event = tuple[str, int | None, str]


def recorded(path: Path, *turns: Sequence[Event]) -> Path:
    """A recording with these turns."""
    recorder = Recorder(path, address="tcp://127.0.0.1:8001")
    for turn in turns:
        for event in turn:
            recorder.note(*event)  # type: ignore[arg-type]
        recorder.flush()
    recorder.close()
    return path


CHAT: list[list[Event]] = [
    [("+", 1, '<Present "alice">'), ("+", 2, '<Present "bob">')],
    [("!", None, '<Says "alice" "hi">')],
    [("-", 1, '<Present "alice">'), ("!", None, "<Bye #:7>"), ("+", 3, "<Ref #:7>"), ("!", None, '"end"')],
    [("-", 3, "<Ref #:7>")],
]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Events, their turns and their times; values with references are marked, and shown as they were."""
    path = recorded(tmp_path / "chat", *CHAT)
    events = list(read(path))
    assert [(event.mark, event.key, event.text) for event in events] == [event for turn in CHAT for event in turn]
    times = [event.at for event in events]
    assert times == sorted(times)
    assert [times.count(at) for at in dict.fromkeys(times)] == [2, 1, 4, 1]
    assert [event.bound for event in events] == [False] * 4 + [True, True, False, True]
    assert header(path).address == "tcp://127.0.0.1:8001"
    assert path.stat().st_mode & 0o077 == 0


@given(value=values())
def test_values_survive(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a dataspace can hold comes back as the same value."""
    path = recorded(tmp_path_factory.mktemp("r") / "one", [("!", None, unparse(value))])
    [event] = read(path)
    assert event.bound == bool(references(value))
    if not event.bound:
        assert identical(event.value, value)
        assert identical(parse(event.text), value)


def references(value: Any) -> list[Ref]:
    """Those in a value."""
    results: list[Ref] = []

    def note(ref: Ref) -> str:
        results.append(ref)
        return ""

    unparse(value, note)
    return results


def play(path: Path, *, speed: float | None = None, **options: Any) -> tuple[list[Any], Any]:
    """What a dataspace saw of it, with the times at which it did, and the replay's counts."""
    seen: list[Any] = []
    replays = []

    def boot() -> None:
        ds = dataspace()

        def watching() -> None:
            seen.append(watch(ds, capture()))

        def playing() -> None:
            replays.append(replayed(path, ds, speed, then=lambda: after(1, stop_actor), **options))

        spawn(watching, daemon=True)
        spawn(playing)

    run(boot, clock=trio.testing.MockClock(autojump_threshold=0))
    return [event for event in seen[0] if not str(event[1]).startswith("Observe")], replays[0]


def test_a_replay_does_what_was_done(tmp_path: Path) -> None:
    """Asserted, retracted and sent again, in order; at the end what is still asserted goes, in order."""
    seen, replay = play(recorded(tmp_path / "chat", *CHAT, [("+", 9, "1"), ("+", 8, "2")]))
    alice, bob = Record("Present", ["alice"]), Record("Present", ["bob"])
    says = Record("Says", ["alice", "hi"])
    assert seen == [
        ("+", alice),
        ("+", bob),
        ("!", says),
        ("!", "end"),
        ("-", alice),
        ("+", 1),
        ("+", 2),
        ("-", bob),
        ("-", 1),
        ("-", 2),
    ]
    assert (replay.played, replay.skipped) == (7, 2)


def test_a_replay_takes_what_is_wanted(tmp_path: Path) -> None:
    """And counts nothing else."""
    path = recorded(tmp_path / "chat", *CHAT)
    seen, replay = play(path, wanted=lambda value: value == "end")
    assert seen == [("!", "end")]
    assert (replay.played, replay.skipped) == (1, 0)


@pytest.mark.parametrize("speed", [1.0, 4.0, None])
def test_a_replay_keeps_the_times(tmp_path: Path, speed: float | None) -> None:
    """Divided by the speed; None takes no time."""
    path = tmp_path / "slow"
    lines = [
        {"recording": "syndicate", "version": 1, "started": "2026-01-01T00:00:00+00:00", "address": "x"},
        *({"at": at, "event": "!", "value": str(at)} for at in (0, 10, 11, 100)),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    heard: list[tuple[float, int]] = []

    def boot() -> None:
        ds = dataspace()
        began = trio.current_time()
        on_message(ds, capture(int))(lambda value: heard.append((trio.current_time() - began, value)))
        replayed(path, ds, speed, then=stop_actor)

    run(boot, clock=trio.testing.MockClock(autojump_threshold=0))
    assert heard == [(at / speed if speed else 0.0, at) for at in (0, 10, 11, 100)]


def test_a_long_replay_does_not_run_ahead(tmp_path: Path) -> None:
    """The dataspace keeps up, however fast it goes: what waits is bounded."""
    path = recorded(tmp_path / "long", *([("!", None, str(i))] for i in range(2000)))
    waiting: list[int] = []
    heard: list[int] = []

    def boot() -> None:
        ds = dataspace()
        system = system_of(actor_of(ds))

        @on_message(ds, capture(int))
        def number(value: int) -> None:
            waiting.append(len(system.queue))
            heard.append(value)

        replayed(path, ds, then=stop_actor)

    run(boot)
    assert heard == list(range(2000))
    assert max(waiting) < 100


HEADER = '{"recording": "syndicate", "version": 1, "started": "2026-01-01T00:00:00+00:00", "address": "x"}\n'
GOOD = '{"at": 0, "event": "!", "value": "1"}\n'


@pytest.mark.parametrize(
    ("text", "events", "why"),
    [
        ("", 0, "is no recording: its first line"),
        ("\x7fELF\n", 0, "is no recording: its first line"),
        ("[1]\n", 0, "is no recording: its first line"),
        ('{"recording": "other"}\n', 0, "is no recording: its first line"),
        (HEADER[:-1], 0, "line 1 of .* is no whole line"),
        (HEADER.replace("1,", "2,"), 0, "of version 2: this program reads 1"),
        (HEADER + GOOD + '{"at": 0, "ev', 1, "line 3 of .* breaks off"),
        (HEADER + GOOD + "x\n", 1, "line 3 of .* is no event"),
        (HEADER + GOOD + "{}\n", 1, "line 3 of .* is no event"),
        (HEADER + GOOD.replace("0", "-1"), 0, "line 2 of .* is no event"),
        (HEADER + GOOD.replace("0", "NaN"), 0, "line 2 of .* is no event"),
        (HEADER + GOOD.replace("!", "?"), 0, "line 2 of .* is no event"),
        (HEADER + GOOD.replace("!", "+"), 0, "line 2 of .* has no id"),
        (HEADER + GOOD.replace('"1"', "1"), 0, "line 2 of .* is no event"),
        (HEADER + GOOD.replace('"1"', '"<"'), 0, "line 2 of .*: the text ends too early"),
        (HEADER + GOOD.replace('"1"', '"' + "[" * 500 + '"'), 0, "line 2 of .*: nested deeper"),
        (HEADER + "\udcff\n", 0, "line 2 of .* is not text"),
    ],
)
def test_foreign_and_broken_files(tmp_path: Path, text: str, events: int, why: str) -> None:
    """The whole lines before come; then one sentence says which line is wrong."""
    path = tmp_path / "broken"
    path.write_bytes(text.encode(errors="surrogateescape"))
    reading = read(path)
    for _ in range(events):
        next(reading)
    with pytest.raises(RecordingError, match=why):
        next(reading)
    with pytest.raises(RecordingError, match=why):
        run(lambda: replayed(path, dataspace()))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """Neither to be read nor to be written; and one that is there is not overwritten."""
    with pytest.raises(RecordingError, match=r"cannot read the recording .*: No such file"):
        next(read(tmp_path / "missing"))
    with pytest.raises(RecordingError, match=r"cannot read the recording .*: Is a directory"):
        header(tmp_path)
    with pytest.raises(RecordingError, match=r"cannot record to .*: No such file"):
        Recorder(tmp_path / "missing" / "file", address="")
    with pytest.raises(RecordingError, match=r"cannot record to /dev/full: No space left"):
        Recorder("/dev/full", address="")
    (tmp_path / "kept").write_text("precious")
    with pytest.raises(RecordingError, match="is there already"):
        Recorder(tmp_path / "kept", address="")
    assert (tmp_path / "kept").read_text() == "precious"


def test_killed_in_the_middle(tmp_path: Path) -> None:
    """Whoever records may be killed at any time: each turn that it had ended is there."""
    program = textwrap.dedent("""
        import sys
        from relay.tools.recording import Recorder
        recorder = Recorder(sys.argv[1], address="x")
        for i in range(10_000_000):
            recorder.note("!", None, str(i))
            recorder.flush()
            if i == 1000:
                print("many", flush=True)
    """)
    path = tmp_path / "killed"
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    events = []
    try:
        for event in read(path):
            events.append(event.value)  # noqa: PERF401  # an error may follow
    except RecordingError as e:
        assert "breaks off" in str(e)  # noqa: PT017
    assert len(events) > 1000
    assert events == list(range(len(events)))


def test_in_a_program_of_its_own(tmp_path: Path) -> None:
    """As a test would: an actor under test, a recording, and what comes of it."""
    path = recorded(tmp_path / "chat", *CHAT)
    greeted: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        greeted.append(watch(ds, Record("Present", [capture()])))
        on_message(ds, ANY)(lambda: None)
        replayed(path, ds, then=lambda: sync(ds, stop_actor))

    run(boot)
    assert greeted == [[("+", "alice"), ("+", "bob"), ("-", "alice"), ("-", "bob")]]
