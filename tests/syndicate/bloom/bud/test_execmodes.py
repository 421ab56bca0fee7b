"""Ways of running: by hand, in the background, paused, ended by signals (Bud's tc_execmodes)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, bootstrap, channel, loopback, scratch, table, values
from syndicate.errors import AlreadyRunning
from tests.work import PATIENCE


class Vacuous(Bloom):
    """Has nothing to do."""


class ThreePhases(Bloom):
    """Counts by a loopback, then by a scratch of the next tick, then by a loopback again."""

    first, second = loopback(), loopback()
    slow = scratch([], ["v"])
    first_done, slow_done, second_done = (scratch([], ["v"]) for _ in range(3))

    @bootstrap
    def begin(self) -> None:
        """The first."""
        self.first < ~values(("foo", 1))

    @bloom
    def rules(self) -> None:
        """Each until it is done."""
        self.first < ~self.first.map(lambda t: (t.key, t.val + 1) if t.val < 50 else None)
        self.first_done <= self.first.map(lambda t: (t.val,) if t.val >= 50 else None)
        self.slow < +self.slow.map(lambda s: (s.v + 1,) if s.v < 3 else None)
        self.slow_done <= self.slow.filter(lambda s: s.v >= 3)
        self.second < ~self.slow_done.map(lambda t: ("foo", 0))
        self.second < ~self.second.map(lambda t: (t.key, t.val + 1) if t.val < 17 else None)
        self.second_done <= self.second.map(lambda t: (t.val,) if t.val >= 17 else None)


def test_by_itself_by_hand_and_by_itself_again() -> None:
    """A paused program is ticked by hand, one step each, and goes on where it was."""
    p = ThreePhases()
    results: SimpleQueue[Any] = SimpleQueue()
    end = p.callback("first_done", results.put)
    p.run_bg()
    assert results.get() == [(50,)]
    p.pause()
    end()
    p.slow <= [(1,)]
    seen = []
    for _ in range(3):
        p.tick()
        seen.append((list(p.slow), list(p.slow_done)))
    assert seen == [([(1,)], []), ([(2,)], []), ([(3,)], [(3,)])]
    p.callback("second_done", results.put)
    p.run_bg()
    assert results.get() == [(17,)]
    p.stop()
    assert results.empty()


def test_starts_and_stops() -> None:
    """Stopping again, or what never ran, has no effect; starting again is refused."""
    never = Vacuous()
    p = Vacuous()
    before = set(threading.enumerate())  # others of this process may end meanwhile
    p.run_bg()
    (running,) = set(threading.enumerate()) - before
    for _ in range(5):
        with pytest.raises(AlreadyRunning):
            p.run_bg()
        never.stop()
    assert set(threading.enumerate()) <= before | {running}
    assert running.is_alive()
    for _ in range(5):
        p.stop()
    assert not running.is_alive()


def test_foreground_and_background_at_once() -> None:
    """Programs do not share how they run."""
    a, b = Vacuous(), ThreePhases()
    runs = threading.Event()
    b.callback("first_done", lambda rows: runs.set())
    a.run_bg()
    thread = threading.Thread(target=b.run_fg)
    thread.start()
    runs.wait()
    a.stop()
    assert thread.is_alive()
    b.stop()
    thread.join()


def test_an_address_of_its_own() -> None:
    """A program has an address before it runs, and keeps it."""

    class Wired(Bloom):
        wire, seen = channel(["@to", "n"]), table(["n"])

        @bloom
        def rules(self) -> None:
            self.seen <= self.wire.payloads()

    p = Wired(address="me:7")
    assert p.address == "me:7"
    p.wire < ~values(("me:7", 1))
    p.run()
    assert list(p.seen) == [(1,)]


CHILD = """
import sys
from syndicate.bloom import Bloom, bloom, periodic, scratch

class Vacuous(Bloom):
    pass

class Ready(Bloom):
    timer = periodic(0.01)
    told = scratch(["text"])
    @bloom
    def rules(self):
        self.told <= self.timer.map(lambda t: ("ready",))

p = Ready()
p.callback("told", lambda rows: print("ready", flush=True))
p.on_shutdown(lambda: print("shut down", flush=True))
if "parent" in sys.argv:
    Vacuous().run_bg()
if "background" in sys.argv:
    import threading
    p.run_bg()
    threading.Event().wait()
p.run_fg()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("mode", [["foreground"], ["foreground", "parent"]])
def test_signals_of_another_process(number: signal.Signals, mode: list[str]) -> None:
    """The functions of on_shutdown are called once, and the process ends by itself, with a status."""
    with subprocess.Popen([sys.executable, "-c", CHILD, *mode], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        rest = process.stdout.read().splitlines()
        assert [line for line in rest if line != "ready"] == ["shut down"]
        assert process.wait(PATIENCE) in (128 + number, -number, 1)
