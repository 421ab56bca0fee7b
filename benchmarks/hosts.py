"""Calls into a system from outside: threads beside anyio's portal, asyncio beside trio.

    $ python -m benchmarks.hosts

Each row is a number of calls, one after the other or many at once, in a fresh system; the rows are taken in turn,
round after round, and the best of each is shown, in calls per second of the clock, since what is measured is mostly
waiting for another thread or for the loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import click
import trio
from anyio.from_thread import start_blocking_portal
from attrs import frozen

from benchmarks.measure import ROOT
from benchmarks.report import surroundings, write
from syndicate import asyncio as hosted
from syndicate import current_facet, dataspace, on_message, open_system, prevent_inert_check, send, spawn
from syndicate.thread import System

CALLS = 3_000
MESSAGES = 60_000


def nothing() -> int:
    """What is called."""
    return 1


def portal_of_ours() -> float:
    """Seconds for CALLS calls of one thread, one after the other."""
    with System() as system:
        begin = time.perf_counter()
        for _ in range(CALLS):
            system.call(nothing)
        return time.perf_counter() - begin


def portal_of_anyio(backend: str) -> float:
    """The same by anyio's BlockingPortal."""
    with start_blocking_portal(backend) as portal:
        begin = time.perf_counter()
        for _ in range(CALLS):
            portal.call(nothing)
        return time.perf_counter() - begin


def portal_with_threads(threads: int) -> float:
    """The same by several threads."""
    with System() as system:

        def work() -> None:
            for _ in range(CALLS // threads):
                system.call(nothing)

        all_threads = [threading.Thread(target=work) for _ in range(threads)]
        begin = time.perf_counter()
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
        return time.perf_counter() - begin


def pipelined() -> float:
    """The same without waiting for each."""
    with System() as system:
        begin = time.perf_counter()
        for future in [system.submit(nothing) for _ in range(CALLS)]:
            future.result()
        return time.perf_counter() - begin


def by_asyncio(many: int) -> float:
    """CALLS calls, *many* at once, of tasks of asyncio."""

    async def main() -> float:
        async with hosted.open_system() as system:
            begin = time.perf_counter()
            if many == 1:
                for _ in range(CALLS):
                    await system.call(nothing)
            else:
                for _ in range(CALLS // many):
                    await asyncio.gather(*(system.call(nothing) for _ in range(many)))
            return time.perf_counter() - begin

    return asyncio.run(main())


def by_trio(many: int) -> float:
    """The same in trio, by `facet.enter` and an event, as a trio program does it."""

    async def main() -> float:
        async with open_system() as system:

            def boot() -> None:
                prevent_inert_check()
                facets.append(current_facet())

            facets: list[object] = []
            system.spawn(boot)
            await system.settle()
            facet = facets[0]

            async def call() -> None:
                done = trio.Event()
                facet.enter(done.set)  # type: ignore[attr-defined]  # a facet
                await done.wait()

            begin = time.perf_counter()
            if many == 1:
                for _ in range(CALLS):
                    await call()
            else:
                for _ in range(CALLS // many):
                    async with trio.open_nursery() as nursery:
                        for _ in range(many):
                            nursery.start_soon(call)
            return time.perf_counter() - begin

    return trio.run(main)


def _flood() -> None:
    ds = dataspace()
    left = MESSAGES

    def server() -> None:
        @on_message(ds, "ping")
        def ping() -> None:
            nonlocal left
            left -= 1
            if left > 0:
                send(ds, "ping")

    spawn(server)
    spawn(partial(send, ds, "ping"))


def messages_by_asyncio() -> float:
    """MESSAGES messages, each caused by the one before."""

    async def main() -> float:
        async with hosted.open_system() as system:
            begin = time.perf_counter()
            system.spawn(_flood)
            await system.settle()
            return time.perf_counter() - begin

    return asyncio.run(main())


def messages_by_trio() -> float:
    """The same in trio."""

    async def main() -> float:
        async with open_system() as system:
            begin = time.perf_counter()
            system.spawn(_flood)
            await system.settle()
            return time.perf_counter() - begin

    return trio.run(main)


@frozen
class Row:
    """So many calls or messages, how they are made, and which rows they are compared with."""

    count: int
    seconds: Callable[[], float]
    beside: tuple[str, ...] = ()


PORTALS: Final = ("anyio's portal, trio", "anyio's portal, asyncio")
ROWS: Final = {
    "a thread's calls, one after the other": Row(CALLS, portal_of_ours, PORTALS),
    "anyio's portal, trio": Row(CALLS, partial(portal_of_anyio, "trio")),
    "anyio's portal, asyncio": Row(CALLS, partial(portal_of_anyio, "asyncio")),
    "a thread's calls, pipelined": Row(CALLS, pipelined),
    "eight threads": Row(CALLS, partial(portal_with_threads, 8)),
    "asyncio, calls one after the other": Row(CALLS, partial(by_asyncio, 1), ("trio, calls one after the other",)),
    "trio, calls one after the other": Row(CALLS, partial(by_trio, 1)),
    "asyncio, 100 at once": Row(CALLS, partial(by_asyncio, 100), ("trio, 100 at once",)),
    "trio, 100 at once": Row(CALLS, partial(by_trio, 100)),
    "asyncio, messages": Row(MESSAGES, messages_by_asyncio, ("trio, messages",)),
    "trio, messages": Row(MESSAGES, messages_by_trio),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
def main(rounds: int, output: Path) -> None:
    """Take the rows in turn, print the best of each, and write it; half a minute."""
    around = surroundings("python -m benchmarks.hosts", rounds, None)
    best = dict.fromkeys(ROWS, float("inf"))
    for _ in range(rounds):
        for name, row in ROWS.items():
            best[name] = min(best[name], row.seconds())
    rates = {name: row.count / best[name] for name, row in ROWS.items()}
    lines = [
        "## Calls from other hosts",
        "",
        f"- {around.date}, `{around.command}`: the best of {rounds} rounds, the rows in turn, by the clock",
        f"- {around.ours} on {around.python}",
        f"- {around.machine}",
        "",
        "| | a second | beside |",
        "|---|---:|---|",
    ]
    for name, row in ROWS.items():
        ratios = ", ".join(f"{rates[name] / rates[other]:.2f} of {other}" for other in row.beside)
        lines.append(f"| {name} | {rates[name]:,.0f} | {ratios} |")
    text = "\n".join(lines) + "\n"
    print(text)
    write(output, "hosts", text)


if __name__ == "__main__":
    main()
