"""Signals: wherever one strikes, it acts between two turns, once, and everything ends in order."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
import trio
import trio.testing

from syndicate import (
    after,
    assert_,
    capture,
    dataspace,
    during,
    field,
    linked_task,
    on_message,
    on_stop,
    on_stop_or_crash,
    open_system,
    prevent_inert_check,
    react,
    run,
    send,
    spawn,
    stop_actor,
)
from syndicate.actors.signals import ENDING
from syndicate.actors.turn import here
from syndicate.values.value import Ref
from tests.inside import index_of

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
each_signal = pytest.mark.parametrize("number", [INT, TERM, HUP])

WORKERS = 5


class Load:
    """Actors that never rest: fields, computed assertions, facets, messages, interests that come and go."""

    def __init__(self) -> None:
        self.stops = [0] * WORKERS
        self.begun = False
        self.ds: Ref

    def boot(self) -> None:
        self.ds = dataspace()
        for i in range(WORKERS):
            spawn(self.worker, i)

    def worker(self, i: int) -> None:
        ds, count = self.ds, field(0)
        assert_(ds, lambda: ["count", i, count.value % 7])

        @on_message(ds, ["tick", i])
        def tick() -> None:
            self.begun = True
            count.value += 1
            if count.value % 5 == 0:
                react(lambda: assert_(ds, ["facet", i, count.value]))
            send(ds, ["tick", i])

        @during(ds, ["count", (i + 1) % WORKERS, capture()])
        def seen(value: int) -> None:
            assert_(ds, ["seen", i, value])
            on_stop(lambda: send(ds, ["gone", i, value]))

        @on_stop_or_crash
        def stopped() -> None:
            self.stops[i] += 1

        send(ds, ["tick", i])

    def check(self) -> None:
        """Each has stopped once, and the index holds nothing any more, and not by accident: it counts right."""
        index = index_of(self.ds)
        assert self.stops == [1] * WORKERS
        assert list(index) == []
        assert index.statistics().tables == 0


@contextmanager
def striking(load: Load, at: int, strike: Callable[[], object]) -> Iterator[None]:
    """Call *strike* when so many lines of the program and of our own code have been run under load."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if not load.begun or "syndicate" not in frame.f_code.co_filename:
            return None if load.begun else trace
        if event == "line":
            lines += 1
            if lines == at:
                sys.settrace(None)
                strike()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def ended_by(number: int, program: Callable[[], object]) -> None:
    """Run a program that the signal ends: by KeyboardInterrupt itself, or by SystemExit with the signal's status."""
    if number == INT:
        with pytest.raises(KeyboardInterrupt) as raised:
            program()
        assert type(raised.value) is KeyboardInterrupt
    else:
        with pytest.raises(SystemExit) as exiting:
            program()
        assert exiting.value.code == 128 + number


@each_signal
@pytest.mark.parametrize("seed", range(25))
def test_a_signal_at_any_moment(number: int, seed: int) -> None:
    """Between any two lines: each stop handler runs exactly once, the index ends empty, nothing else is raised."""
    load = Load()
    before = [signal.getsignal(one) for one in ENDING]
    at = random.Random(seed * 100 + number).randrange(1, 6000)

    def program() -> None:
        with striking(load, at, lambda: signal.raise_signal(number)):
            run(load.boot)

    ended_by(number, program)
    load.check()
    assert [signal.getsignal(one) for one in ENDING] == before


@each_signal
@pytest.mark.parametrize("seed", range(8))
def test_a_signal_at_any_moment_inside_a_trio_program(number: int, seed: int) -> None:
    """The same in the block of ``open_system``, which is cancelled."""
    load = Load()
    at = random.Random(seed * 100 + number).randrange(1, 6000)

    async def main() -> None:
        async with open_system(load.boot):
            await trio.sleep_forever()

    def program() -> None:
        with striking(load, at, lambda: signal.raise_signal(number)):
            trio.run(main)

    ended_by(number, program)
    load.check()


@each_signal
@pytest.mark.parametrize("end", ["end", "crash"])
def test_a_signal_while_the_system_ends(number: int, end: str) -> None:
    """It is not lost: all stop in order as they were about to, and then it acts."""
    log: list[str] = []

    def boot() -> None:
        @on_stop_or_crash
        def stopping() -> None:
            signal.raise_signal(number)
            log.append("first")

        def other() -> None:
            prevent_inert_check()
            on_stop(lambda: log.append("other"))

        spawn(other)
        after(0, stop_actor if end == "end" else lambda: 1 / 0)
        if end == "end":
            after(0.01, lambda: None)

    def program() -> None:
        run(boot)

    ended_by(number, program)
    assert sorted(log) == ["first", "other"]


# -------------------------------------------------------------------------------------------- handlers of one's own


@contextmanager
def handling(number: int, handler: Any) -> Iterator[None]:
    """With a handler of the program's own."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@each_signal
def test_a_handler_of_the_programs_own_is_called_between_turns(number: int) -> None:
    """What it does is done; when it returns, everything goes on, and the next signal is a first one again."""
    load, turns = Load(), []

    def handler(came: int, frame: FrameType | None) -> None:
        turns.append((came, here.turn))
        if len(turns) == 3:
            raise ZeroDivisionError

    def program() -> None:
        load.boot()

        async def ask() -> None:
            for _ in range(3):
                await trio.lowlevel.checkpoint()
                signal.raise_signal(number)
                await trio.sleep(0.01)

        linked_task(ask)
        on_message(load.ds, ["tick", 0])(lambda: None)

    with handling(number, handler), pytest.raises(ZeroDivisionError):
        run(program)
    assert turns == [(number, None)] * 3
    load.check()


@pytest.mark.parametrize("seed", range(10))
def test_a_handler_that_exits(seed: int) -> None:
    """``signal(SIGTERM, lambda *_: sys.exit(3))``, as programs have it: it corrupts nothing, wherever it strikes."""
    load = Load()

    def program() -> None:
        with striking(load, random.Random(seed).randrange(1, 6000), lambda: signal.raise_signal(TERM)):
            run(load.boot)

    with handling(TERM, lambda *_: sys.exit(3)), pytest.raises(SystemExit) as raised:
        program()
    assert raised.value.code == 3
    load.check()


@each_signal
def test_what_is_ignored_stays_ignored(number: int) -> None:
    """As in a job in the background, or under nohup."""
    log: list[str] = []

    def boot() -> None:
        signal.raise_signal(number)
        after(0.01, lambda: log.append("went on"))

    with handling(number, signal.SIG_IGN):
        run(boot)
        assert signal.getsignal(number) is signal.SIG_IGN
    assert log == ["went on"]


def test_another_thread_leaves_signals_alone() -> None:
    """Python gives them to the main thread, whose program decides."""
    seen: list[Any] = []

    def boot() -> None:
        seen.append([signal.getsignal(number) for number in ENDING])

    before = [signal.getsignal(number) for number in ENDING]
    thread = threading.Thread(target=run, args=[boot])
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("first", ["inner", "outer"])
async def test_systems_that_overlap_give_signals_back(first: str) -> None:
    """In whatever order they end, what was there before gets what comes meanwhile, and is there afterwards."""
    messages: list[int] = []
    order = ["inner", "outer"] if first == "inner" else ["outer", "inner"]
    over = {name: trio.Event() for name in order}
    gone = {name: trio.Event() for name in order}

    async def system(name: str, task_status: trio.TaskStatus[None]) -> None:
        async with open_system():
            task_status.started()
            await over[name].wait()
        gone[name].set()

    def handler(number: int, frame: FrameType | None) -> None:
        messages.append(number)

    with handling(TERM, handler):
        async with trio.open_nursery() as nursery:
            await nursery.start(system, "outer")
            await nursery.start(system, "inner")
            for n, name in enumerate(order, 1):
                over[name].set()
                await gone[name].wait()
                signal.raise_signal(TERM)
                await trio.testing.wait_all_tasks_blocked()
                assert messages == [TERM] * n
        assert signal.getsignal(TERM) is handler


# ---------------------------------------------------------------------------------------------------- processes


def start(program: str, *, foreground: bool = True) -> subprocess.Popen[str]:
    """A Python program in a process of its own, where Ctrl-C is not ignored."""
    head = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" if foreground else ""
    head += "from syndicate import *\nimport sys, time, trio\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    """Its next line."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip()


WAITING = """
def boot():
    on_stop(lambda: print("stopped", flush=True))
    after(1000, lambda: 0)
    print("up", flush=True)
try:
    run(boot)
finally:
    print("unwound", flush=True)
"""


@pytest.mark.parametrize(("number", "status"), [(INT, -INT), (TERM, 128 + TERM), (HUP, 128 + HUP)])
def test_a_program_that_is_asked_to_end(number: int, status: int) -> None:
    """In order, unwound, with the signal's exit status; Ctrl-C is reported in a word, without a traceback."""
    with start(WAITING) as process:
        assert line(process) == "up"
        process.send_signal(number)
        out, err = process.communicate()
    assert out == "stopped\nunwound\n"
    assert err == ("KeyboardInterrupt\n" if number == INT else "")
    assert process.returncode == status


def test_errors_keep_their_tracebacks() -> None:
    """A Ctrl-C that was caught, and then an error: that is reported in full; so is a KeyboardInterrupt of another
    place.
    """
    program = """
    def boot():
        after(1000, lambda: 0)
        print("up", flush=True)
    try:
        run(boot)
    except KeyboardInterrupt:
        print("caught", flush=True)
    {then}
    """
    words = {"1 / 0": "ZeroDivisionError: division by zero", "raise KeyboardInterrupt": "KeyboardInterrupt"}
    for then, last in words.items():
        with start(program.replace("{then}", then)) as process:
            assert line(process) == "up"
            process.send_signal(INT)
            out, err = process.communicate()
        assert out == "caught\n"
        assert err.splitlines()[0] == "Traceback (most recent call last):"
        assert err.splitlines()[-1] == last


STUCK = {
    "turn": """
        def boot():
            on_stop(lambda: print("stopped", flush=True))
            @after(0)
            def endless():
                print("up", flush=True)
                while True: time.sleep(0.01)
        run(boot)
        """,
    "stop handler": """
        def boot():
            after(1000, lambda: 0)
            @on_stop
            def endless():
                print("stopping", flush=True)
                while True: time.sleep(0.01)
            print("up", flush=True)
        run(boot)
        """,
    "task": """
        async def endless():
            with trio.CancelScope(shield=True):
                print("up", flush=True)
                await trio.sleep_forever()
        run(lambda: linked_task(endless))
        """,
    "busy task": """
        async def endless():
            print("up", flush=True)
            while True: time.sleep(0.01)
        run(lambda: linked_task(endless))
        """,
}


@each_signal
@pytest.mark.parametrize("where", STUCK)
def test_what_does_not_end_is_ended_by_a_second_signal(where: str, number: int) -> None:
    """At once, with the signal's status, and a line that says where it was."""
    with start(STUCK[where]) as process:
        assert line(process) == "up"
        process.send_signal(number)
        if where == "stop handler":
            assert line(process) == "stopping"
        while True:
            try:
                process.wait(0.3)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == 128 + number
    assert "stopped" not in out
    assert err.startswith(f"{signal.Signals(number).name} again: ended at once in ")
    assert err.count("\n") == 1
    assert where == "task" or "endless" in err


def test_a_turn_that_does_not_end_in_a_trio_program() -> None:
    """There the second Ctrl-C strikes the turn, as it would strike any code of the program; the rest ends in order."""
    program = """
    def boot():
        spawn(lambda: (prevent_inert_check(), on_stop(lambda: print("stopped", flush=True))))
        @after(0)
        def endless():
            print("up", flush=True)
            while True: time.sleep(0.01)
    async def main():
        async with open_system(boot):
            await trio.sleep_forever()
    trio.run(main)
    """
    with start(program) as process:
        assert line(process) == "up"
        while True:
            process.send_signal(INT)
            try:
                process.wait(0.3)
                break
            except subprocess.TimeoutExpired:
                pass
        out, err = process.communicate()
    assert out == "stopped\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "in endless" in err


def test_two_signals_of_one_moment_are_one() -> None:
    """A service manager sends SIGTERM and SIGHUP, a shell and the system both tell a job that the terminal has gone."""
    with start(WAITING) as process:
        assert line(process) == "up"
        for number in (signal.SIGSTOP, HUP, TERM, signal.SIGCONT):  # both wait for the process, and meet it at once
            process.send_signal(number)
        out, _ = process.communicate()
    assert out == "stopped\nunwound\n"
    assert process.returncode == 128 + HUP
