"""Programs that run by themselves, talked to from other threads; ticks by hand; the terminal; the time of a tick."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from syndicate import Ref, dataspace, run
from syndicate.bloom import (
    Bloom,
    bloom,
    bootstrap,
    channel,
    durable,
    interface,
    loopback,
    periodic,
    scratch,
    table,
    values,
)
from syndicate.errors import AlreadyRunning, BloomDeclaration, IllegalRule, NoAnswer, ProgramStopped, RuleFailed
from tests.work import PATIENCE

P = TypeVar("P", bound=Bloom)


class Adder(Bloom):
    """Keeps numbers, tells their double, fails for 13, ends at 0."""

    number = interface("input", ["n"], [])
    double = interface("output", ["n"], [])
    kept = table(["n"], [])
    later = scratch(["n"], [])

    @bloom
    def rules(self) -> None:
        """What it does."""
        self.kept <= self.number
        self.double <= self.number.map(lambda r: (2 * r.n // (r.n != 13),))
        self.later < +self.number
        self.halt <= self.number.filter(lambda r: r.n == 0)


Start = Callable[[P], P]


@pytest.fixture
def start() -> Iterator[Start[Any]]:
    """Runs a program in the background, to be stopped in the end."""
    running: list[Bloom] = []

    def start(program: Any) -> Any:
        program.run_bg()
        running.append(program)
        return program

    yield start
    for program in running:
        program.stop()


def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread brings about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


# ---------------------------------------------------------------------------------------------------- from outside


def test_rows_and_answers(start: Start[Any]) -> None:
    """Rows may be given and looked at from any thread, and answers waited for."""
    p = start(Adder())
    for n in range(1, 6):
        assert p.ask("number", [(n,)], p.double) == [(2 * n,)]
    assert sorted(p.kept) == [(1,), (2,), (3,), (4,), (5,)]
    assert (3,) in p.kept
    assert p.kept[4] == (4,)
    with pytest.raises(NoAnswer, match=r"ask\(\) had no answer of Adder within 0.01 s"):
        p.ask("number", [], "double", timeout=0.01)
    with pytest.raises(BloomDeclaration, match="no collection 'doubel'"):
        p.ask("number", [], "doubel")
    with pytest.raises(BloomDeclaration, match="no collection 'doubel'"):
        p.callback("doubel", print)


def test_many_threads(start: Start[Any]) -> None:
    """Nothing is lost or seen half, whoever gives and looks while it ticks."""
    p = start(Adder())
    wrong: list[Any] = []

    def work(first: int) -> None:
        for n in range(first, first + 50):
            p.number <= [(n,), (-n,)]
            rows = [row.n for row in p.kept]
            if sum(rows) or len(rows) % 2:
                wrong.append(rows)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(p.kept) == 400)
    assert not wrong


def test_sync_do(start: Start[Any]) -> None:
    """What is done between two ticks is seen by the tick after it; what it raises reaches the caller alone."""
    p = start(Adder())

    def give() -> str:
        p.number <= [(1,)]
        assert threading.current_thread().name == "Adder"
        return "done"

    before = p.sync_do(lambda: p.budtime)
    assert p.sync_do(give) == "done"
    assert sorted(p.kept) == [(1,)]
    assert p.sync_do(lambda: p.budtime) >= before + 2
    with pytest.raises(ZeroDivisionError):
        p.sync_do(lambda: 1 // 0)
    assert p.sync_do(lambda: len(p.kept)) == 1
    p.tick()


MODES: dict[str, Callable[[Any], object]] = {
    "sync_do": lambda p: p.sync_do(lambda: p.asked.insert([(1, 1)])),
    "sync_do with two insertions": lambda p: p.sync_do(lambda: (p.asked.insert([(1, 1)]), p.other.insert([(2, 2)]))),
    "async_do": lambda p: p.async_do(lambda: p.asked.insert([(1, 1)])),
    "ask": lambda p: p.ask("asked", [(1, 1)], "answer"),
    "rows": lambda p: p.asked <= [(1, 1)],
    "delivery": lambda p: p.deliver("wire", [(p.address, 1)]),
    "timer": lambda p: p.fire("timer"),
    "tick": lambda p: p.tick(),
    "nothing": lambda p: p.sync_do(lambda: None),
}


class Answering(Bloom):
    """Answers at once, and keeps count."""

    asked = scratch()
    other = scratch()
    answer = scratch()
    wire = channel()
    timer = periodic(1e6)
    kept = table()

    @bloom
    def rules(self) -> None:
        """What it does."""
        self.answer <= self.asked
        self.kept <= self.asked


@pytest.mark.parametrize("mode", MODES)
def test_what_is_asked_for_is_one_tick(mode: str, start: Start[Any]) -> None:
    """However it is asked for; afterwards scratches hold what that tick derived."""
    p = start(Answering())
    p.sync_do(lambda: None)
    before = p.budtime
    MODES[mode](p)
    p.pause()  # after all that this has brought about
    assert p.budtime - before == 1
    if p.kept:
        assert list(p.answer) == [(1, 1)]


def test_a_mistake_of_the_caller_loses_nothing(start: Start[Any]) -> None:
    """What was given before it raised is in the tick that follows."""
    p = start(Answering())

    def give() -> None:
        p.asked <= [(1, 1)]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        p.sync_do(give)
    p.pause()
    assert list(p.kept) == [(1, 1)]


def test_async_do_is_first_in_first_out(start: Start[Any]) -> None:
    """In the order in which they were asked for, and the caller does not wait; by hand, before the next tick."""
    p = start(Adder())
    done: list[int] = []
    held = threading.Event()
    p.async_do(held.wait)
    for n in range(20):
        p.async_do(partial(done.append, n))
    assert done == []
    held.set()
    p.sync_do(lambda: None)
    assert done == list(range(20))

    def more() -> None:
        p.async_do(lambda: done.append(21))
        done.append(20)

    p.sync_do(more)
    p.sync_do(lambda: None)
    assert done[20:] == [20, 21]
    del done[20:]
    q = Adder()
    for n in (2, 1):
        q.async_do(partial(done.append, n))
    assert q.waits()
    q.tick()
    assert done[20:] == [2, 1]


def test_delta_and_shutdown(start: Start[Any]) -> None:
    """Who waits is given the next rows, or notified that the program has stopped."""
    p = start(Adder())
    results: list[Any] = []

    def wait() -> None:
        try:
            results.append(p.delta("double"))
        except ProgramStopped as error:
            results.append(str(error))

    for end in (lambda: p.number.insert([(7,)]), p.stop):
        thread = threading.Thread(target=wait)
        waiting = len(p._agent.waiting)
        thread.start()
        until(lambda: len(p._agent.waiting) > waiting)  # noqa: B023
        end()
        thread.join()
    assert results == [[(14,)], "Adder has stopped: make a new one"]


def test_each_function_of_on_shutdown_is_called() -> None:
    """One that raises keeps no other from it, and reaches whoever stops the program."""

    def fail() -> None:
        raise ValueError(len(called))

    called: list[str] = []
    for failing in (1, 2):
        p = Adder()
        for n in range(3):
            p.on_shutdown(partial(called.append, f"{failing}.{n}"))
            if n < failing:
                p.on_shutdown(fail)
        with pytest.raises(ValueError if failing == 1 else ExceptionGroup):  # its own
            p.stop()
        assert called[-3:] == [f"{failing}.{n}" for n in range(3)]


@pytest.mark.parametrize("end", ["", "raise KeyboardInterrupt", "sys.exit(3)", "p.stop()"])
def test_the_end_of_a_process_stops_what_runs_in_the_background(end: str) -> None:
    """In order: the functions of on_shutdown are called, once, however the main thread came to its end."""
    program = f"""
import sys
from syndicate.bloom import Bloom, periodic
class P(Bloom):
    timer = periodic(1)
p = P(); p.on_shutdown(lambda: print("shutdown", flush=True)); p.run_bg(); print("up", flush=True)
{end}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "up\nshutdown\n"


def test_by_hand() -> None:
    """Without anybody to run it, the same functions tick."""
    p = Adder()
    assert p.sync_do(lambda: p.number.insert([(2,)])) is None
    assert list(p.double) == [(4,)]
    p.number <= [(3,)]
    assert p.delta("double") == [(6,)]
    with pytest.raises(IllegalRule, match="nothing came out of double"):
        p.delta("double")
    with pytest.raises(ZeroDivisionError):
        p.sync_do(lambda: 1 // 0)


# ---------------------------------------------------------------------------------------------------- begin and end


def test_a_life(start: Start[Any]) -> None:
    """It runs once, pauses, goes on, and stops once, whoever says so; before it was started, too."""
    p = start(Adder())
    ended: list[str] = []
    p.on_shutdown(lambda: ended.append("first"))
    p.on_shutdown(lambda: ended.append("never"))()
    with pytest.raises(AlreadyRunning, match=r"run_bg\(\): Adder runs already"):
        p.run_bg()
    with pytest.raises(AlreadyRunning):
        p.run_fg()
    p.pause()
    p.number <= [(1,)]
    assert p.sync_do(lambda: 0) == 0
    ticks = p.budtime
    assert sorted(p.kept) == [(1,)]
    p.number <= [(2,)]
    time.sleep(0.02)
    assert (p.budtime, len(p.kept)) == (ticks, 1)
    p.tick()
    assert (p.budtime, len(p.kept)) == (ticks + 1, 2)
    p.run_bg()
    p.number <= [(3,)]
    until(lambda: len(p.kept) == 3)
    p.stop()
    p.stop()
    assert ended == ["first"]
    assert not p._thread.is_alive()
    assert len(p.kept) == 3
    waits = (p.tick, lambda: p.ask("number", [], "double"), lambda: p.sync_do(print), lambda: p.async_do(print))
    for act in (p.run_bg, p.run_fg, *waits, lambda: p.number.insert([(1,)])):
        with pytest.raises(ProgramStopped, match="Adder has stopped: make a new one"):
            act()
    q = Adder()
    q.on_shutdown(lambda: ended.append("second"))
    q.stop()
    q.stop()
    assert ended == ["first", "second"]
    for act in (q.run_bg, q.tick, lambda: q.ask("number", [], "double"), lambda: q.number.insert([(1,)])):
        with pytest.raises(ProgramStopped):
            act()


def test_halt_ends_it(start: Start[Any]) -> None:
    """A row in `halt` is a stop from within; in the foreground it lets the caller go on."""
    p = start(Adder())
    p.number <= [(0,)]
    p._thread.join(PATIENCE)
    assert (p.halted, p._agent.ended) == (True, True)
    q = Adder()
    q.number <= [(5,)]
    q.callback("later", lambda rows: q.number.insert([(row.n - 1,) for row in rows]))
    q.run_fg()
    assert sorted(row.n for row in q.kept) == [0, 1, 2, 3, 4, 5]


def test_an_end_that_was_asked_for(start: Start[Any]) -> None:
    """Who lets it end between two ticks, or by a tick, has the answer."""
    p = start(Adder())
    assert p.sync_do(lambda: p.number.insert([(0,)]) or "asked") == "asked"
    with pytest.raises(ProgramStopped):
        p.sync_do(lambda: None)
    q = start(Adder())
    assert q.sync_do(q.stop) is None
    assert q._agent.ended


def test_stop_from_within() -> None:
    """A callback may stop the program."""
    p = Adder()
    p.number <= [(5,)]
    p.callback("double", lambda _: p.stop())
    p.run_fg()
    assert len(p.kept) == 1


def test_an_error_ends_it(start: Start[Any], logs: list[MutableMapping[str, Any]]) -> None:
    """A rule that raises is logged and raised at all who ask; in the foreground it is raised."""
    p = start(Adder())
    p.number <= [(13,)]
    p._thread.join(PATIENCE)
    assert [(line["event"], line["actor"]) for line in logs] == [("a program crashed", "Adder")]
    with pytest.raises(ProgramStopped, match=r"test_running\.py:\d+: a function in this rule raised ZeroDivisionError"):
        p.sync_do(lambda: None)
    q = start(Adder())
    with pytest.raises(RuleFailed, match=r"test_running\.py:\d+"):
        q.sync_do(lambda: q.number.insert([(13,)]))
    r = Adder()
    r.number <= [(13,)]
    with pytest.raises(RuleFailed, match=r"test_running\.py:\d+"):
        r.run_fg()


def test_stop_closes_the_file(tmp_path: Path) -> None:
    """The next program finds the rows of durable tables."""

    class Kept(Adder):
        ever = durable(["n"], [])

        @bloom
        def keep(self) -> None:
            self.ever <= self.number

    p = Kept(state=tmp_path / "kept.db")
    p.run_bg()
    p.ask("number", [(4,)], "double")
    p.stop()
    q = Kept(state=tmp_path / "kept.db")
    q.tick()
    assert sorted(q.ever) == [(4,)]
    q.stop()


def test_timers_in_the_background(start: Start[Any]) -> None:
    """They fire by themselves, also while it is paused, and no more once it has stopped."""

    class Ticker(Bloom):
        timer = periodic(0.01)
        seen = table(["key"], ["tick"])

        @bloom
        def rules(self) -> None:
            self.seen <= (self.timer * self.now).pairs(lambda t, now: (t.key, now.tick))

    p = start(Ticker())
    until(lambda: len(p.seen) > 2)
    p.pause()
    before = len(p.seen)
    time.sleep(0.1)
    assert len(p.seen) == before
    p.tick()
    fired = [row.tick for row in p.seen]
    assert fired.count(max(fired)) > 2  # rows of one tick
    p.stop()
    before = len(p.seen)
    time.sleep(0.03)
    assert len(p.seen) == before


# ---------------------------------------------------------------------------------------------------- the terminal

READER = """
from syndicate.bloom import Bloom, bloom, stdio
class Shout(Bloom):
    term = stdio(read=True)
    @bloom
    def rules(self):
        self.term < ~self.term.map(lambda t: (t.line.upper(),))
        self.halt <= self.term.filter(lambda t: t.line == "end")
Shout(write=lambda line: print(line, flush=True)).run_fg()
"""


@pytest.mark.parametrize("kind", ["pipe", "file", "terminal"])
def test_lines_are_read(kind: str, tmp_path: Path) -> None:
    """Each line is a row, from a pipe, a file or a terminal, and the process ends although nobody types."""
    text = b"one\ntwo\ntwo\nend\n"
    master = -1
    if kind == "pipe":
        inputs, into = os.pipe()
        os.write(into, text)
    elif kind == "file":
        (tmp_path / "lines").write_bytes(text)
        inputs = into = os.open(tmp_path / "lines", os.O_RDONLY)
    else:
        master, inputs = pty.openpty()
        os.write(master, text)
        into = master
    command = [sys.executable, "-W", "error", "-c", READER]
    done = subprocess.run(command, stdin=inputs, capture_output=True, timeout=PATIENCE, check=False)
    for fd in {inputs, into}:
        os.close(fd)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.split() == [b"ONE", b"TWO", b"TWO", b"END"]


def test_nobody_reads_without_being_asked() -> None:
    """A terminal that is only written leaves standard input alone."""
    program = READER.replace("stdio(read=True)", "stdio()").replace("run_fg()", "run_bg(); print(input())")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=b"mine\n", capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"mine\n", b"")


# ---------------------------------------------------------------------------------------------------- the time


def test_the_time_of_a_tick() -> None:
    """`budtime` counts from 0; `bud_clock` is one time in all of a tick, also in `now`, and none outside."""

    class Timed(Bloom):
        go = loopback(["n"], [])
        seen = table(["tick"], ["time"])

        @bootstrap
        def begin(self) -> None:
            assert self.budtime == 0
            self.go.insert([(0,)])

        @bloom
        def rules(self) -> None:
            self.seen <= (self.go * self.now).pairs(lambda _, now: (now.tick, now.time))

    clock = iter(range(100, 200))
    p = Timed(clock=lambda: float(next(clock)))
    times: list[Any] = []
    p.callback("seen", lambda rows: times.append((p.budtime, p.bud_clock, p.bud_clock, max(r.time for r in rows))))
    p.tick()
    assert p.budtime == 1
    assert times == [(1, 100.0, 100.0, 100.0)]
    with pytest.raises(IllegalRule, match="bud_clock is the time of a tick, and there is none now"):
        assert p.bud_clock


@pytest.mark.parametrize(("what", "column"), [("budtime", "tick"), ("bud_clock", "time")])
def test_no_time_in_a_rule(what: str, column: str) -> None:
    """A function of a rule would be called with one time only: it is refused, with the place and what to do."""

    class Late(Bloom):
        s = scratch(["n"], [])
        t = table(["n", "time"], [])

        @bloom
        def rules(self) -> None:
            self.t <= self.s.map(lambda r: (r.n, getattr(self, what)))

    class Early(Late):
        @bloom
        def rules(self) -> None:
            self.t <= values((1, getattr(self, what)))

    p = Late()
    p.s <= [(1,)]
    with pytest.raises(IllegalRule, match=rf"test_running\.py:\d+: {what} cannot be used in a rule.*now\.{column}"):
        p.tick()
    with pytest.raises(IllegalRule, match=rf"test_running\.py:\d+: {what} cannot be used in a rule"):
        Early()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("mode", ["actor", "foreground"])
def test_signals_shut_a_program_down(number: signal.Signals, mode: str) -> None:
    """As after stop(): on_shutdown is called once, in an actor and in the foreground; then the signal's error comes."""
    log: list[str] = []

    def watched(*ds: Ref) -> Adder:
        p = Adder(*ds)
        p.on_shutdown(lambda: log.append("shut down"))
        p.callback("double", lambda rows: signal.raise_signal(number))
        p.number <= [(1,)]
        return p

    def program() -> None:
        if mode == "foreground":
            watched().run_fg()
        else:
            run(lambda: watched(dataspace()))

    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit):
        program()
    assert log == ["shut down"]
