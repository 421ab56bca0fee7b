"""Standard input and output as a stream: of a child that we start, and of ourselves as somebody's child.

A child's standard error stays ours, so that what it logs is seen.  Who serves over its own standard output must print
nothing else there: :func:`open_stdio` therefore gives everything that is printed from then on to standard error.

Source: syndicate-rs (``--inferior``); ``docs/design/relay.md``, "Transports".
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from typing import Final

import trio

from relay.transport.address import Address
from relay.transport.stream import CHUNK, ByteStream
from syndicate.errors import ConnectError, ListenError

APART: Final = 0 if os.name == "posix" else None
"""The process group of a child that Ctrl-C is not for: a new one, where there are such."""

_PATIENCE: Final = 1.0
"""Seconds for a child to end by itself after SIGTERM, and for its exit code after its last words."""


class ChildStream(ByteStream):
    """The standard streams of a child.  It is ended with its stream: by SIGTERM, and a second later by SIGKILL."""

    def __init__(self, process: trio.Process, name: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(trio.StapledStream(process.stdin, process.stdout), name)
        self.process = process

    async def receive(self, most: int = CHUNK) -> bytes:
        """The next bytes."""
        try:
            data = await super().receive(most)
        except trio.BrokenResourceError:
            await self._look()
            raise
        if not data:
            await self._look()
        return data

    async def _look(self) -> None:
        """See how it has ended."""
        with trio.move_on_after(_PATIENCE):
            code = await self.process.wait()
            if code < 0:
                self.ending = f"its command was ended by {signal.Signals(-code).name}"
            else:
                self.ending = f"its command ended with exit code {code}"

    async def close(self) -> None:
        """End the child."""
        process = self.process
        with trio.CancelScope(shield=True):
            await super().close()
            if process.poll() is None:
                process.terminate()
                with trio.move_on_after(_PATIENCE):
                    await process.wait()
            if process.poll() is None:
                process.kill()
            await process.wait()


async def open_child(address: Address) -> ChildStream:
    """Start the command of *address*; raises :class:`~syndicate.errors.ConnectError`."""
    command = address.command
    if not command:
        raise ConnectError(
            f"{address} names no command to start: write stdio:COMMAND, as in stdio:python -m my_service"
        )
    try:
        process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as e:
        raise ConnectError(f"cannot start {command[0]!r}, of {address}: {e.strerror}") from None
    return ChildStream(process, f"{command[0]} ({process.pid})")


class OwnStream(ByteStream):
    """Our own standard streams, as a stream to whoever started us."""

    def __init__(self, source: int, sink: int) -> None:
        super().__init__(trio.StapledStream(trio.lowlevel.FdStream(sink), trio.lowlevel.FdStream(source)), "the parent")
        self.closed = trio.Event()

    async def close(self) -> None:
        """Close them."""
        try:
            await super().close()
        finally:
            self.closed.set()


def open_stdio() -> OwnStream:
    """Take our standard input and output; raises :class:`~syndicate.errors.ListenError` unless both are pipes or
    sockets.

    From then on, what is printed goes to standard error, and reading standard input finds nothing.
    """
    for fd in (0, 1):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            mode = 0
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            raise ListenError(
                "stdio: is for a program that another one starts, with pipes for standard input and output, as "
                "relay.connect('stdio:COMMAND') does"
            )
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return OwnStream(source, sink)
