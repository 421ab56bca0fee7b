"""Actors beside asyncio's tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial

import pytest
import trio
import trio.lowlevel

from syndicate import (
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    field,
    linked_task,
    on_message,
    on_stop,
    open_system,
    prevent_inert_check,
    run,
    send,
    spawn,
)
from syndicate import asyncio as hosted
from syndicate.actors.verbs import trio_task
from syndicate.errors import AlreadyRunning, InTurn, NotCallable, SystemStopped
from tests.work import PATIENCE


def test_calls() -> None:
    """Results, errors, undone turns, and refusals."""

    async def main() -> None:
        async with hosted.open_system() as system:
            assert await system.call(lambda a: a + 1, 4) == 5
            count = await system.call(field, 1)

            def fail() -> None:
                count.value = 2
                raise KeyError

            with pytest.raises(KeyError):
                await system.call(fail)
            assert await system.call(lambda: count.value) == 1
            with pytest.raises(NotCallable):
                _ = await system.call(main)
            results = await asyncio.gather(*(system.call(lambda n=n: n) for n in range(100)))
            assert results == list(range(100))
            with pytest.raises(AlreadyRunning, match=r"syndicate\.asyncio"):
                async with open_system():
                    pass
            with pytest.raises(AlreadyRunning, match=r"syndicate\.thread"):
                run(lambda: None)
        with pytest.raises(SystemStopped):
            await system.call(lambda: 5)

    asyncio.run(main())


def test_tasks_timers_and_trio() -> None:
    """Linked tasks are asyncio's, timers fire, and what is written for trio runs as well."""
    seen: list[object] = []

    async def ours() -> bool:
        await asyncio.sleep(0.01)
        seen.append("asyncio")
        return True

    async def theirs() -> bool:
        await trio.sleep(0.01)
        seen.append("trio")
        return True

    async def for_ever() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append("cancelled")

    def boot() -> None:
        prevent_inert_check()
        linked_task(ours)
        trio_task(theirs)
        after(0.02, lambda: seen.append("timer"))
        linked_task(for_ever)
        on_stop(lambda: seen.append("stopped"))

    async def main() -> None:
        async with hosted.open_system(boot):
            with_limit = time.monotonic() + PATIENCE
            while len(seen) < 3 and time.monotonic() < with_limit:  # noqa: ASYNC110  # no event tells that
                await asyncio.sleep(0.01)
        assert sorted(map(str, seen[:3])) == ["asyncio", "timer", "trio"]
        assert seen[3:] == ["stopped", "cancelled"]

    asyncio.run(main())


def test_a_failed_first_actor_cancels_the_block() -> None:
    """Its error comes out, and the task can go on after that."""

    async def main() -> str:
        with pytest.raises(ZeroDivisionError):
            async with hosted.open_system(lambda: after(0.01, lambda: 1 / 0)):
                await asyncio.sleep(3600)
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return "on"

    assert asyncio.run(main()) == "on"


def test_a_cancelled_call() -> None:
    """The task is cancelled; what it has called happens, and the system goes on."""

    async def main() -> None:
        async with hosted.open_system() as system:
            ds = await system.call(dataspace)
            seen: list[int] = []
            await system.call(lambda: on_message(ds, capture())(seen.append))

            async def client() -> None:
                async for event in system.events(ds, ["lit", capture()]):
                    seen.append(event.captures[0])  # noqa: PERF401  # one by one

            task = asyncio.create_task(client())
            await asyncio.sleep(0)
            handle = await system.call(assert_, ds, ["lit", 1])
            while not seen:  # noqa: ASYNC110
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await system.call(handle.retract)
            await system.call(send, ds, 7)
            await system.settle()
            assert seen == [1, 7]

    asyncio.run(main())


def test_the_block_is_cancelled_from_outside() -> None:
    """All actors are stopped in order, and the cancellation goes on."""
    stopped = []

    async def block() -> None:
        async with hosted.open_system() as system:
            await system.call(lambda: (prevent_inert_check(), on_stop(lambda: stopped.append(1))))
            await asyncio.sleep(3600)

    async def main() -> None:
        task = asyncio.create_task(block())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert stopped == [1]


def test_nothing_blocks_the_loop_for_long() -> None:
    """Actors that never rest, and callers that never wait, leave the loop its rounds."""

    def ping(ds: Ref) -> None:
        on_message(ds, "ping")(lambda: send(ds, "ping"))
        send(ds, "ping")

    async def main() -> None:
        async with hosted.open_system() as system:
            ds = await system.call(dataspace)
            await system.call(spawn, ping, ds)
            rounds, calls = 0, 0

            async def call() -> None:
                nonlocal calls
                while True:
                    await system.call(lambda: None)
                    calls += 1

            tasks = [asyncio.create_task(call()) for _ in range(3)]
            while rounds < 30 or calls < 30:
                await asyncio.sleep(0)
                rounds += 1
            for task in tasks:
                task.cancel()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_two_systems_in_a_loop() -> None:
    """Each its own, one trio for both, and again when all have ended."""

    async def main() -> None:
        for _ in range(2):
            async with hosted.open_system() as one, hosted.open_system() as two:
                for system in (one, two):
                    done = asyncio.Event()

                    async def task(done: asyncio.Event = done) -> None:
                        await trio.lowlevel.checkpoint()
                        done.set()

                    await system.call(lambda task=task: trio_task(task))
                    await done.wait()

    asyncio.run(main())


def test_a_call_in_a_turn_is_refused() -> None:
    """Also where asyncio starts tasks eagerly."""

    async def main() -> None:
        async with hosted.open_system() as system:
            coroutine: Coroutine[object, object, int] = system.call(lambda: 5)

            def turn() -> None:
                with pytest.raises(InTurn):
                    coroutine.send(None)

            await system.call(turn)

    asyncio.run(main())


def test_threads_enter() -> None:
    """A facet of a system in asyncio can be entered from any thread."""

    async def main() -> None:
        async with hosted.open_system() as system:
            ds = await system.call(dataspace)

            def begin() -> Callable[[], None]:
                prevent_inert_check()
                facet = current_facet()
                return lambda: facet.enter_from_thread(partial(assert_, ds, ["lit", 1]))

            enter = await system.call(begin)
            await asyncio.to_thread(enter)
            while await system.snapshot(ds, ["lit", capture()]) != [1]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    asyncio.run(main())


PROGRAM = """
import asyncio, sys
from syndicate import on_stop, prevent_inert_check
from syndicate.asyncio import open_system
async def main():
    async with open_system() as system:
        await system.call(lambda: (prevent_inert_check(), on_stop(lambda: print("stopped", flush=True))))
        print("ready", flush=True)
        await asyncio.sleep(3600)
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_signals(number: signal.Signals, status: int) -> None:
    """All actors are stopped in order, and the program ends as the signal wants it."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE)
    assert out == "stopped\n", err
    assert process.returncode == status
