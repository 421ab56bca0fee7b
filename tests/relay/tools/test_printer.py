from __future__ import annotations

import errno
import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.tools.printer import MOST_WAITING, LineStyle, OutputThread, Printer
from syndicate import run
from syndicate.errors import OutputError
from tests.work import PATIENCE


class Slot:
    """An outlet that is full when the test says so."""

    def __init__(self) -> None:
        self.full = False
        self.error: OSError | None = None
        self.text = ""

    def put(self, data: bytes) -> None:
        self.text += data.decode()

    def close(self, seconds: float | None = None) -> bool:
        return True

    @property
    def objects(self) -> list[dict[str, Any]]:
        """What was written, as JSON."""
        return [json.loads(line) for line in self.text.splitlines()]


def printer(slot: Any, **options: Any) -> Printer:
    """One that writes JSON there."""
    return Printer(slot, LineStyle(as_json=True), **options)


def tell(to: Printer, *events: Any) -> None:
    """Some events, in one turn."""

    def boot() -> None:
        for event in events:
            to.tell(*event)

    run(boot)


STEPS = st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["!", "full", "room", "pause", "resume"])), max_size=60)


@given(steps=STEPS, pauses=st.booleans())
def test_the_reader_is_never_wrong_about_what_is_there(steps: list[Any], pauses: bool) -> None:
    """Whatever the reader's pace: what it was shown adds up to what is there, and every event was shown or counted."""
    slot = Slot()
    shown = printer(slot)
    current: dict[int, int] = {}
    total = {"+": 0, "-": 0, "!": 0}

    def boot() -> None:
        for number, step in enumerate(steps, 1):
            if step == "!":
                total["!"] += 1
                shown.tell("!", None, "message")
            elif step == "full":
                slot.full = True
            elif step == "room":
                slot.full = False
                shown.catch_up()
            elif step in ("pause", "resume"):
                if pauses:
                    getattr(shown, step)()
            elif step in current:
                total["-"] += 1
                shown.tell("-", current.pop(step), str(step))
            else:
                current[step] = number
                total["+"] += 1
                shown.tell("+", number, str(step))

    run(boot)
    slot.full = False
    shown.resume()
    shown.close()
    slot.text = "\n".join(line.rpartition("\x1b[K")[2] for line in slot.text.split("\n"))
    there: list[str] = []
    seen = {"+": 0, "-": 0, "!": 0}
    for event in slot.objects:
        if "missed" in event:
            parts = event["asserted"], event["retracted"], event["messages"]
            assert event["missed"] == sum(parts)
            for mark, part in zip("+-!", parts, strict=True):
                seen[mark] += part
            continue
        seen[event["event"]] += 1
        if event["event"] == "+":
            there.append(event["value"])
        elif event["event"] == "-" and not pauses:
            there.remove(event["value"])
    if not pauses:
        assert sorted(there) == sorted(map(str, current))
        assert seen == total
    else:  # what was put off, and went in a pause, was shown neither come nor gone
        assert seen["!"] == total["!"]
        assert seen["-"] == total["-"]


def test_what_is_missed_is_said_before_what_follows() -> None:
    """An assertion that came and went is counted; one that stays is shown, after the line that counts."""
    slot = Slot()
    shown = printer(slot)
    tell(shown, ("+", 1, '"before"'))
    slot.full = True
    tell(shown, ("+", 2, '"short"'), ("!", None, "m"), ("-", 2, '"short"'), ("+", 3, '"long"'), ("-", 1, '"before"'))
    slot.full = False
    tell(shown, ("!", None, "late"))
    shown.catch_up()
    tell(shown, ("!", None, "on time"))
    events = [(event.get("event", event.get("missed")), event.get("value")) for event in slot.objects]
    assert events == [("+", '"before"'), (4, None), ("+", '"long"'), ("-", '"before"'), ("!", "on time")]


def test_a_pause_is_summarised() -> None:
    """What happens in it is counted, by kind, with a status line meanwhile."""
    slot = Slot()
    shown = Printer(slot)  # type: ignore[arg-type]
    shown.pause()
    tell(shown, *[("!", None, "m")] * 1200, ("+", 1, "a"), ("+", 2, "b"), ("-", 1, "a"))
    shown.refresh()
    shown.resume()
    tell(shown, ("!", None, "after"))
    cleared = slot.text.split("\r\x1b[K")[1:]
    assert cleared[:2] == ["-- paused, 0 missed; space resumes --", "-- paused, 1,203 missed; space resumes --"]
    summary, after = cleared[2].splitlines()
    assert summary.endswith("? paused: 1,203 missed (2 asserted, 1 retracted, 1,200 messages)")
    assert after.endswith("! after")


def test_count_ends_it() -> None:
    """After so many that were shown; what comes in the same turn is not."""
    slot = Slot()
    shown = printer(slot, count=2)
    tell(shown, ("!", None, "1"))
    before = shown.done
    tell(shown, ("!", None, "2"), ("!", None, "3"))
    assert (before, shown.done) == (False, True)
    shown.close()
    assert [event["value"] for event in slot.objects] == ["1", "2"]


def test_a_reader_who_does_not_read_blocks_nobody() -> None:
    """A turn never waits; when the reader is back it gets what fits, and gets to know what it missed."""
    reading, written, woken = threading.Event(), bytearray(), threading.Event()

    def write(data: bytes) -> None:
        reading.wait(PATIENCE)
        written.extend(data)

    outlet = OutputThread(write)
    outlet.wake = woken.set
    shown = printer(outlet)
    for _ in range(100):
        tell(shown, *[("!", None, "x" * 1000)] * 20, ("+", object(), "kept"))
    assert len(written) == 0
    reading.set()
    assert woken.wait(PATIENCE)
    shown.catch_up()
    shown.close()
    events = [json.loads(line) for line in written.decode().splitlines()]
    messages = sum(event.get("event") == "!" for event in events)
    missed = sum(event.get("missed", 0) for event in events)
    assert MOST_WAITING < messages * 1000 * 1.1 < MOST_WAITING * 1.2
    assert messages + missed == 2000
    assert sum(event.get("event") == "+" for event in events) == 100


@pytest.mark.parametrize(("number", "raised"), [(errno.EPIPE, False), (errno.ENOSPC, True)])
def test_output_that_fails(number: int, raised: bool) -> None:
    """A reader who has gone is an end like others; a full disk is an error, in one sentence."""
    woken = threading.Event()

    def write(data: bytes) -> None:
        raise OSError(number, "No space left on device")

    outlet = OutputThread(write)
    outlet.wake = woken.set
    shown = printer(outlet)
    tell(shown, ("!", None, "x"))
    assert woken.wait(PATIENCE)
    for act in (shown.catch_up, shown.close):
        if raised:
            with pytest.raises(OutputError, match="cannot write to standard output: No space left on device"):
                act()
        else:
            act()
        assert shown.done
    tell(shown, ("!", None, "y"))
    assert outlet.close(0) is False
