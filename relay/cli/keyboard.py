r"""The keyboard: keys as they are pressed, on a terminal that is given back as it was found.

The terminal is set to hand over each key at once and not to show it.  Whatever ends the program or stops it for a
while must undo that: the end of a ``with`` block, Ctrl-Z, a second Ctrl-C.  Ctrl-C, Ctrl-Z and Ctrl-\ keep their
meaning.

A program in the background leaves the terminal alone: it belongs to whoever is in the foreground.

Source: ``docs/design/commands.md``, "The console".
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import trio

try:
    import termios
    import tty
except ImportError:  # Windows, where the console shows, and has no keys
    _KEYS = False
else:
    _KEYS = True

from syndicate.actors.signals import at_once

_ESCAPES: Final = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|O.|.)?")
"""Arrows, and keys with Alt."""


class Keyboard:
    """The keys of the terminal that standard input is; within a ``with`` block they can be listened to."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._modes: list[int | list[bytes | int]] | None = None

    @classmethod
    def present(cls) -> bool:
        """Whether there is a person, whose keys can be had: input and output are a terminal."""
        return _KEYS and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()

    def __enter__(self) -> Self:
        at_once.append(self._give_back)
        self._take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._give_back()
        at_once.remove(self._give_back)

    async def listen(self, press: Callable[[str], None]) -> bool:
        """Call *press* with each key, until the terminal is gone."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_signals)
            while True:
                await trio.lowlevel.wait_readable(self._fd)
                if not self._ours:  # what is typed now is for another program
                    await trio.sleep(0.5)
                    continue
                try:
                    typed = os.read(self._fd, 64)
                except OSError:
                    typed = b""
                if not typed:
                    nursery.cancel_scope.cancel()
                    return True
                for key in _ESCAPES.sub(b"", typed).decode(errors="replace"):
                    press(key)

    async def _watch_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGTSTP, signal.SIGCONT, signal.SIGQUIT) as signals:
            async for number in signals:
                if number == signal.SIGTSTP:
                    self._give_back()
                    os.kill(os.getpid(), signal.SIGSTOP)
                    self._take()
                elif number == signal.SIGCONT:
                    self._take()
                else:
                    self._give_back()
                    signal.signal(number, signal.SIG_DFL)
                    os.kill(os.getpid(), number)

    @property
    def _ours(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    def _take(self) -> None:
        with suppress(termios.error):
            if self._modes is None and self._ours:
                self._modes = termios.tcgetattr(self._fd)
                tty.setcbreak(self._fd, termios.TCSANOW)

    def _give_back(self) -> None:
        modes, self._modes = self._modes, None
        with suppress(termios.error):
            if modes is not None and self._ours:
                termios.tcsetattr(self._fd, termios.TCSANOW, modes)
