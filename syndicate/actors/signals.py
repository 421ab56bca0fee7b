"""Signals: what the operating system asks of a program in which actors run.

A signal strikes a Python program anywhere, and what its handler raises there leaves half of what was being done.  So
while a system has the main thread, the signals that end programs are only noted where they strike.  They act between
two turns, when everything is whole: all actors are stopped in order, and then the program ends as the signal wants it.

* Ctrl-C (SIGINT) becomes a :class:`KeyboardInterrupt`; SIGTERM and SIGHUP become a :class:`SystemExit` with the status
  that shells show for them, 128 and the number.  Both unwind the program as any error does.
* A handler of the program's own is called between turns as well.  What it raises ends the system; if it returns,
  nothing else happens.
* What is ignored stays so: in a background job Ctrl-C, under nohup the end of the terminal.
* A signal that comes again, because a turn, a task or a stop handler does not end, ends the program at once.  Within
  a tenth of a second it is the same one, for terminals and wrappers often send it twice.

A system in another thread gets no signals: Python gives them to the main thread, whose program ends it.

Source: Python, on ``signal`` and on what asyncio's runner does about a second Ctrl-C; ``docs/design/lifecycle.md``,
"Signals".
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import FrameType, TracebackType
from typing import Final, NoReturn, Self, TypeAlias

from syndicate.log import logger

ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""The signals that end a program; not all systems have all."""

SAME: Final = 0.1
"""Seconds in which a signal that is repeated is the same one."""

Handler: TypeAlias = "Callable[[int, FrameType | None], object] | signal.Handlers | int"
"""What the operating system calls for a signal: a function, or one of its own ways; None: it is not Python's."""

at_once: Final[list[Callable[[], object]]] = []
"""What must be undone even where the program ends at once, such as the mode of a terminal."""


class Signals:
    """Those that come while a ``with`` block runs; :meth:`act` is to be called between turns, where *wake* leads to.
    *busy* says whether this thread is in a turn.

    Has no effect but in the main thread.
    """

    def __init__(self, wake: Callable[[], object], busy: Callable[[], bool]) -> None:
        self.noted: dict[int, None] = {}
        """What has come and was not acted on."""
        self._wake = wake
        self._busy = busy
        self._before: dict[int, Handler] = {}
        self._last = 0.0
        self._ending = False
        self._open = False

    def __enter__(self) -> Self:
        self._open = True
        for number in ENDING:
            before = signal.getsignal(number)
            if before is signal.SIG_IGN or before is None:  # None: a handler that is not Python's
                continue
            try:
                signal.signal(number, self._note)
            except ValueError:  # another thread than the main one
                return self
            self._before[number] = before
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give the signals back; one that came too late to be acted on is acted on now, and comes before *error*."""
        self._open = False
        for number in self._before:
            if signal.getsignal(number) == self._note:
                signal.signal(number, self._beneath(number))
        try:
            self.act()
        except BaseException:
            if isinstance(error, Exception):
                logger().error("a program that was asked to end has failed", exc_info=error)
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        before = self._before[number]
        if not self._open or (not self._busy() and _is_trio(before)):  # trio itself knows where it may strike
            _deliver(number, before, frame)
            return
        now = perf_counter()
        if not self.noted and not self._ending:
            self._last = now
            self.noted[number] = None
            self._wake()
        elif now - self._last < SAME:
            self.noted[number] = None
        elif _is_default(before) or not callable(before):
            end_at_once(number, frame)
        else:
            self.noted.pop(number, None)
            before(number, frame)

    def _beneath(self, number: int) -> Handler:
        """The handler that was there before, though not one of a system that has ended meanwhile."""
        before = self._before[number]
        below = getattr(before, "__self__", None)
        return below._beneath(number) if isinstance(below, Signals) and not below._open else before

    def act(self) -> None:
        """Do what the signals ask for; raises what is to end the program."""
        while self.noted and not self._ending:
            number = next(iter(self.noted))
            del self.noted[number]
            before = self._before[number]
            try:
                if before is signal.default_int_handler:
                    _be_short()
                    raise KeyboardInterrupt
                if not callable(before):  # the system's own way
                    raise SystemExit(128 + number)
                before(number, sys._getframe())
            except BaseException:
                self._ending = True
                raise


def end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End the process with the status of a signal, and say where it was, in one line."""
    for undo in at_once:
        with suppress(Exception):
            undo()
    where = f" in {frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})" if frame else ""
    with suppress(OSError):
        os.write(2, f"{signal.Signals(number).name} again: ended at once{where}\n".encode())
    os._exit(128 + number)


def _deliver(number: int, handler: Handler, frame: FrameType | None) -> None:
    """As if the signal had just come to *handler*."""
    if callable(handler):
        handler(number, frame)
    elif handler is signal.SIG_DFL:
        signal.signal(number, handler)
        signal.raise_signal(number)


def _is_default(handler: object) -> bool:
    return handler is signal.SIG_DFL or handler is signal.default_int_handler


def _is_trio(handler: object) -> bool:
    return getattr(handler, "__module__", "").partition(".")[0] == "trio"


def _be_short() -> None:
    """Report a Ctrl-C that nobody catches in one word: that it came between two turns is of no interest."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _tell


def _tell(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    step = at if kind is KeyboardInterrupt else None
    while step is not None and step.tb_frame.f_code is not Signals.act.__code__:
        step = step.tb_next
    if step is None:
        sys.__excepthook__(kind, error, at)
    else:
        print(kind.__name__, file=sys.stderr)


def interrupt_in(error: BaseException) -> BaseException | None:
    """The Ctrl-C or ``sys.exit()`` that *error* is, or that is in the groups which nurseries make of it.

    >>> interrupt_in(BaseExceptionGroup("", [ValueError(), BaseExceptionGroup("", [SystemExit(3)])]))
    SystemExit(3)
    """
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(interrupt_in, error.exceptions)), None)
    return error if isinstance(error, (KeyboardInterrupt, SystemExit)) else None
