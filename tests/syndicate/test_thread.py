"""A system in a thread of its own: calls, errors, limits of time, and its end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, Future

import pytest

from syndicate import (
    Ref,
    assert_,
    capture,
    dataspace,
    field,
    on_message,
    on_stop,
    prevent_inert_check,
    query_set,
    send,
)
from syndicate.errors import ActorCrashed, AlreadyRunning, CallTimeout, InTurn, NotCallable, SystemStopped
from syndicate.thread import System
from tests.work import PATIENCE


def test_results_and_errors() -> None:
    """What the function returned, or what it raised, and then the system goes on."""
    with System() as system:
        assert system.call(lambda: 5) == 5
        assert system.call(lambda a, b: a + b, 1, 2) == 3
        with pytest.raises(ZeroDivisionError):
            system.call(lambda: 1 / 0)
        count = system.call(field, 1)

        def fail() -> None:
            count.value = 2
            raise KeyError("x")

        with pytest.raises(KeyError):
            system.call(fail)
        assert system.call(lambda: count.value) == 1
        with pytest.raises(NotCallable, match="async"):
            _ = system.call(_wait)
        with pytest.raises(NotCallable):
            system.call(5)  # type: ignore[arg-type]


async def _wait() -> None:
    """What cannot be called in a turn."""


def test_handles_stay() -> None:
    """What one call asserts, another one retracts; a block asserts for its time."""
    with System() as system:
        ds = system.call(dataspace)
        handle = system.call(assert_, ds, ["lit", 1])
        with system.asserted(ds, ["lit", 2]):
            assert sorted(system.snapshot(ds, ["lit", capture()])) == [1, 2]
        assert system.snapshot(ds, ["lit", capture()]) == [1]
        system.call(handle.retract)
        assert system.snapshot(ds, ["lit", capture()]) == []


def test_threads_at_once() -> None:
    """Nothing is lost between threads: a counter that all raise, and sometimes fail at."""
    with System() as system:
        count = system.call(field, 0)

        def work(number: int) -> None:
            for step in range(50):

                def raise_it(step: int = step) -> None:
                    count.value += 1
                    if step % 5 == number:
                        raise ValueError

                try:
                    system.call(raise_it)
                except ValueError:
                    failed.append(step)

        failed: list[int] = []
        threads = [threading.Thread(target=work, args=[number]) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (system.call(lambda: count.value), len(failed)) == (200, 50)


def test_an_ended_system_raises() -> None:
    """Before the beginning, after the end, and for what waited meanwhile."""
    system = System()
    with pytest.raises(SystemStopped, match="not started"):
        system.call(lambda: 5)
    system.start()
    with pytest.raises(AlreadyRunning):
        system.start()
    busy, go = threading.Event(), threading.Event()

    def block() -> None:
        busy.set()
        go.wait(PATIENCE)

    first = system.submit(block)
    busy.wait(PATIENCE)
    later = [system.submit(lambda: 5) for _ in range(100)]
    closing = threading.Thread(target=system.close)
    closing.start()
    go.set()
    closing.join(PATIENCE)
    assert first.done()
    for future in later:
        try:
            assert future.result(PATIENCE) == 5
        except SystemStopped:
            pass
    for use in (lambda: system.call(lambda: 5), lambda: system.submit(lambda: 5)):
        with pytest.raises(SystemStopped, match="ended"):
            use()
    system.close()


def test_a_limit_of_time() -> None:
    """What has not begun never does; what has goes on."""
    ran: list[int] = []
    with System() as system:
        busy, go = threading.Event(), threading.Event()

        def block() -> int:
            busy.set()
            go.wait(PATIENCE)
            ran.append(1)
            return 1

        first = system.submit(block)
        busy.wait(PATIENCE)
        with pytest.raises(CallTimeout, match="never will"):
            system.call(lambda: ran.append(2), timeout=0.01)
        go.set()
        assert first.result(PATIENCE) == 1
        assert system.call(lambda: list(ran)) == [1]
        with pytest.raises(CallTimeout, match="goes on"):
            system.call(lambda: time.sleep(0.3), timeout=0.1)


def test_cancelled_before_it_starts() -> None:
    """A future that is cancelled."""
    with System() as system:
        busy, go = threading.Event(), threading.Event()
        system.submit(lambda: [act() for act in (busy.set, go.wait)])
        busy.wait(PATIENCE)
        ran: list[int] = []
        future = system.submit(lambda: ran.append(1))
        assert future.cancel()
        go.set()
        system.call(lambda: None)
        assert ran == []
        with pytest.raises(CancelledError):
            future.result()


def test_a_call_from_a_turn_is_refused() -> None:
    """It would wait for itself."""
    with System() as system, pytest.raises(InTurn, match="submit"):
        system.call(lambda: system.call(lambda: 5))


def test_a_handler_that_raises() -> None:
    """What a call has installed may crash; later calls have a new host."""
    with System() as system:
        ds = system.call(dataspace)
        system.call(lambda: on_message(ds, "no")(lambda: 1 / 0))
        answered: Future[object] = system.submit(lambda: (send(ds, "no"), prevent_inert_check()))
        answered.result(PATIENCE)
        for _ in range(100):
            try:
                system.call(lambda: 5)
            except ActorCrashed:  # one that was underway
                continue
        assert system.snapshot(ds, ["lit", capture()]) == []


def test_stopped_in_order() -> None:
    """Stop handlers run when the block ends, and by the exit of the process."""
    stopped = []
    with System() as system:
        system.call(lambda: (on_stop(lambda: stopped.append(1)), prevent_inert_check()))
    assert stopped == [1]
    program = (
        "from syndicate.thread import System; from syndicate import on_stop, prevent_inert_check\n"
        "system = System().start()\n"
        "system.call(lambda: (on_stop(lambda: print('stopped', flush=True)), prevent_inert_check()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("stopped\n", "")


def test_its_first_actor_fails() -> None:
    """Its error comes out at the end of the block, and the system has ended."""

    def boot() -> None:
        raise ValueError("boot")

    with pytest.raises(ValueError, match="boot"), System(boot) as system:  # noqa: PT012
        assert system.join(PATIENCE)
        with pytest.raises(SystemStopped):
            system.call(lambda: 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_is_reported() -> None:
    """A child has no thread of it."""
    program = """
import os, sys, warnings
warnings.simplefilter("ignore")
from syndicate.thread import System
with System() as system:
    child = os.fork()
    if not child:
        try:
            system.call(lambda: 5)
        except Exception as error:
            print(type(error).__name__, "fork" in str(error), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout == "SystemStopped True\n"


def test_views_and_events() -> None:
    """What matches, now and as it changes; an overflow is reported."""

    def emit(ds: Ref) -> None:
        for number in range(10):
            send(ds, ["said", number])

    with System() as system:
        ds = system.call(dataspace)
        view = system.query(ds, ["lit", capture()])
        assert (view.value, view.connected) == ([], True)
        with system.asserted(ds, ["lit", 1]):
            assert view.wait(lambda value: 1 in value, PATIENCE) == [1]
        assert view.wait(lambda value: not value, PATIENCE) == []
        with pytest.raises(CallTimeout):
            view.wait(lambda value: "never" in value, 0.01)
        with system.events(ds, ["said", capture()], limit=3) as events:
            system.call(emit, ds)
            first = [events.take(PATIENCE) for _ in range(3)]
            assert [event.captures for event in first if event] == [(0,), (1,), (2,)]
            system.call(send, ds, ["said", "more"])
            last = events.take(PATIENCE)
            assert last is not None
            assert (last.kind, last.captures, last.overflow) == ("!", ("more",), 7)
        view.close()
        assert system.call(lambda: query_set(ds, capture()).value) is not None
