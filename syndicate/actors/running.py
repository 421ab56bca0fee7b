"""A program of actors: a system from its first actor to its end.

:func:`run` runs a system to its end: when no actor is left but daemons, or when those that are left only wait for
each other, with no task, timer or preventer that could ever wake them.  Threads do not count: one that will call has
to be announced, by a preventer or as a task (``linked_task(trio.to_thread.run_sync, fn)``), for which of the others
holds anything of this system nobody can tell.  :func:`open_system` runs one inside a trio program.

What ends a system with an error: a failure of its first actor, which is its crash or that of an actor it is linked to;
a supervisor that gives up; a signal (:mod:`~syndicate.actors.signals`).  In each case all actors are stopped in order
first.

Source: ``docs/design/lifecycle.md``.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import trio

from syndicate.actors.arguments import expect_function
from syndicate.actors.async_block import async_block
from syndicate.actors.event_loop import asyncio_runs
from syndicate.actors.relay_loading import Console, open_console
from syndicate.actors.signals import interrupt_in
from syndicate.actors.system import System
from syndicate.actors.turn import here
from syndicate.errors import AlreadyRunning
from syndicate.garbage_collector import seldom
from syndicate.log import logger

YOUNG: Final = 25_000
"""New objects between two looks of the garbage collector, while a system runs: batches are many small tuples, which
reference counting frees soon, and the default of 700 looks them over again and again (a quarter of the time of a large
turn, measured).
"""

_ASYNCIO: Final = (
    "() needs trio, and asyncio runs here, as in a notebook or in FastAPI: use `async with "
    "syndicate.asyncio.open_system() as system`, or syndicate.thread.System(), which has a thread of its own"
)


@contextmanager
def _bare_interrupts() -> Iterator[None]:
    """Ctrl-C strikes where it likes, and nurseries wrap it."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise interrupt_in(group) or group from None


@async_block
@trio.lowlevel.enable_ki_protection
async def open_system(
    boot: Callable[..., object] | None = None, *args: object, name: str | None = None, console: bool | str = False
) -> AsyncIterator[System]:
    """An actor system inside a trio program.  Actors are stopped in order when the block ends.

    *boot*, if given, is the first actor, and the block its program: when it fails, the block is cancelled, and its
    error raised.  With ``console=True``, or at a host and port of this machine, pages for a browser show what goes on;
    their address, which is the right to look, is printed to standard error, and is ``system.console``.

    >>> from syndicate import dataspace, send, on_message, capture
    >>> async def main():
    ...     async with open_system() as system:
    ...         def boot():
    ...             ds = dataspace()
    ...             on_message(ds, ["hello", capture()])(print)
    ...             send(ds, ["hello", "world"])
    ...         system.spawn(boot)
    ...         await system.settle()
    >>> trio.run(main)
    world
    """
    if not trio.lowlevel.in_trio_task():
        raise AlreadyRunning(
            "open_system" + _ASYNCIO
            if asyncio_runs()
            else "open_system() is for trio programs: call it in what trio.run(main) runs, or use run(boot)"
        )
    shown = open_console(console)
    system = System()
    with system.signals:
        async with serving(system, boot, *args, name=name, console=shown):
            yield system


@asynccontextmanager
@trio.lowlevel.enable_ki_protection
async def serving(
    system: System,
    boot: Callable[..., object] | None,
    *args: object,
    name: str | None = None,
    console: Console | None = None,
) -> AsyncIterator[None]:
    """The same for a *system* that is there and was not run yet, and without a look at signals."""
    system.embedded = True
    async with _begun(system, boot, args, name, console) as nursery:
        nursery.start_soon(_serve, system, nursery)
        yield


@asynccontextmanager
@trio.lowlevel.enable_ki_protection
async def _begun(
    system: System,
    boot: Callable[..., object] | None,
    args: tuple[object, ...],
    name: str | None,
    console: Console | None,
) -> AsyncIterator[trio.Nursery]:
    """Begin a system; with the block it ends, and what it ends by is raised."""
    error: BaseException | None = None
    with seldom(YOUNG), _bare_interrupts():
        async with trio.open_nursery() as nursery:
            system.attach(nursery)
            try:
                if console is not None:
                    system.show(console)
                if boot is not None:
                    system.first = system.spawn(boot, *args, name=name)
                yield nursery
            except BaseException as e:
                error = e  # raised below, outside the nursery, so that it does not come in an ExceptionGroup
            finally:
                system.stop()
                nursery.cancel_scope.cancel()
                if console is not None:
                    console.close()
    error = ending(system, error)
    if error is not None:
        raise error


def ending(system: System, error: BaseException | None) -> BaseException | None:
    """What a system ends with, where *error* has come out of its pump, or of the program around it."""
    error, failure = system.interrupt or error, system.failure
    if failure is None:
        return error
    if error is None or isinstance(error, trio.Cancelled):  # which the failure itself has led to
        return failure
    if error is not failure and isinstance(failure, Exception) and not system.embedded:
        logger().error("a program that was asked to end has failed", exc_info=failure)
    return error


async def _serve(system: System, nursery: trio.Nursery) -> None:
    try:
        await system.pump()
    except trio.Cancelled:
        raise
    except BaseException as error:
        system.interrupt = error
    nursery.cancel_scope.cancel()


def run(
    boot: Callable[..., object],
    *args: object,
    name: str | None = None,
    clock: trio.abc.Clock | None = None,
    console: bool | str = False,
) -> None:
    """Run ``boot(*args)`` as the first actor of a new system, until the system ends (see the module's text).

    *console* as :func:`open_system` has it; it keeps nothing running.

    Raises what the first actor has failed by: its own error, or that of an actor which it is linked to; others only
    log theirs.  A supervisor that gives up is raised, too.  Ctrl-C, SIGTERM and SIGHUP stop all actors in order:
    then :class:`KeyboardInterrupt` is raised, or :class:`SystemExit`.

    >>> run(lambda: print("hello"))
    hello
    """
    expect_function("run", boot, len(args))
    if here.turn is not None or trio.lowlevel.in_trio_task():
        raise AlreadyRunning(
            "run() makes an event loop of its own, and one is running here: use `async with open_system(boot)` in a "
            "trio program, and spawn(boot) in an actor"
        )
    if asyncio_runs():
        raise AlreadyRunning("run" + _ASYNCIO)
    shown = open_console(console)
    system = System()
    with system.signals:
        trio.run(functools.partial(_main, system, boot, args, name, shown), clock=clock)


async def _main(
    system: System, boot: Callable[..., object], args: tuple[object, ...], name: str | None, console: Console | None
) -> None:
    async with _begun(system, boot, args, name, console):
        await system.pump(until_idle=True)
