"""The printer: events as lines, for a reader who may be slow, or look away.

Nothing here waits for whoever reads.  A thread writes; what it has yet to write is bounded.  When that is full, the
printer does for its reader what the relay does for a slow peer: it keeps what the reader *has seen* and what it *should
see*.  Messages are dropped, an assertion that comes and goes is as well, and all of them are counted; as soon as there
is room a line says how many were missed, and after it come the assertions and retractions that were put off.  So the
reader, be it a person or a program, may miss messages and reads how many, and is never wrong for long about what
is there.

A pause is a person's own wish: what happens in it is counted, and not shown afterwards.

Contract: a turn never waits for the output.  What waits is at most ``MOST_WAITING`` bytes, and one line for each
assertion that the console knows of anyway.

Source: ``docs/design/commands.md``, "The console"; ``docs/design/relay.md``, "Slow peers".
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from attrs import define, frozen

from relay.tools.recording import Mark
from syndicate.actors.turn import current
from syndicate.errors import OutputError
from syndicate.outside import outside

MOST_WAITING: Final = 1 << 20
"""Bytes that may wait to be written."""
_PIECE: Final = 1 << 15

_COLOURS: Final = {"+": "\x1b[32m", "-": "\x1b[31m", "!": "\x1b[33m"}
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_CLEAR: Final = "\r\x1b[K"


@define
class Gap:
    """How many events were not shown.

    >>> str(Gap(1200, 3, 1))
    '1,204 missed (1,200 asserted, 3 retracted, 1 message)'
    """

    asserted: int = 0
    retracted: int = 0
    messages: int = 0

    def count(self, mark: Mark) -> None:
        """One more."""
        if mark == "+":
            self.asserted += 1
        elif mark == "-":
            self.retracted += 1
        else:
            self.messages += 1

    @property
    def size(self) -> int:
        """All of them."""
        return self.asserted + self.retracted + self.messages

    def __str__(self) -> str:
        s = "" if self.messages == 1 else "s"
        parts = f"{self.asserted:,} asserted, {self.retracted:,} retracted, {self.messages:,} message{s}"
        return f"{self.size:,} missed ({parts})"


@frozen
class LineStyle:
    """How a line looks."""

    as_json: bool = False
    colours: bool = False

    def event(self, mark: Mark, value: str, when: datetime, why: Sequence[str] = ()) -> str:
        r"""An event, and *why* it happened, the last cause first, if that is known.

        >>> LineStyle(as_json=True).event("!", '<Says "hi">', datetime.fromisoformat("2026-01-02T00:00:00Z"))
        '{"time": "2026-01-02T00:00:00.000+00:00", "event": "!", "value": "<Says \\"hi\\">"}\n'
        """
        if self.as_json:
            return _object(when, {"event": mark, "value": value, **({"why": [*why]} if why else {})})
        causes = "".join([f"    by {each}\n" for each in why])
        if self.colours:
            causes = f"{_DIM}{causes}{_PLAIN}" if causes else ""
            return f"{_DIM}{_clock(when)}{_PLAIN} {_COLOURS[mark]}{mark} {value}{_PLAIN}\n{causes}"
        return f"{_clock(when)} {mark} {value}\n{causes}"

    def missed(self, gap: Gap, why: str = "") -> str:
        """That events were not shown."""
        when = outside().wall()
        if self.as_json:
            detail = {"asserted": gap.asserted, "retracted": gap.retracted, "messages": gap.messages}
            return _object(when, {"missed": gap.size, **detail})
        said = f"{_clock(when)} ? {why}{gap}"
        return f"{_DIM}{said}{_PLAIN}\n" if self.colours else f"{said}\n"


def _object(when: datetime, rest: dict[str, object]) -> str:
    return json.dumps({"time": when.isoformat(timespec="milliseconds"), **rest}, ensure_ascii=False) + "\n"


def _clock(when: datetime) -> str:
    return when.astimezone().strftime("%H:%M:%S.%f")[:-3]


def encoded(text: str, encoding: str) -> bytes:
    r"""The bytes of *text*; what *encoding* has not is escaped as in a string, ``\u20ac``.

    >>> encoded('"\u20ac1"', "ascii"), encoded("\u20ac", "utf-8")
    (b'"\\u20ac1"', b'\xe2\x82\xac')
    """
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return "".join([c if c.isascii() else json.dumps(c)[1:-1] for c in text]).encode(encoding)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, however long that takes."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # somebody who shares the terminal does not want to wait
            select.select([], [fd], [])


class OutputThread:
    """Writes bytes, in a thread of its own, by the function that it is given.

    *wake*, settable, is called in that thread when there is space again and when writing has failed.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.error: OSError | None = None
        self._write = write
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._refused = False
        self._closing = False
        self._changed = threading.Condition()
        # A daemon: a reader who never reads must not keep the program from its end.
        self._thread = threading.Thread(target=self._run, name="printer", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Write *data*, later."""
        with self._changed:
            if self.error is None:
                self._pieces += [data[i : i + _PIECE] for i in range(0, len(data), _PIECE)]
                self._waiting += len(data)
                self._changed.notify_all()

    @property
    def full(self) -> bool:
        """Whether nothing more should be put; who was refused is woken when that has changed."""
        with self._changed:
            self._refused = self._refused or (self._waiting >= MOST_WAITING and self.error is None)
            return self._refused

    def close(self, seconds: float | None = None) -> bool:
        """Wait until all is written, but no longer than *seconds*; whether it was."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(seconds)
        return not self._thread.is_alive() and self.error is None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pieces or self._closing)
                if not self._pieces:
                    return
                piece = self._pieces.pop(0)
            try:
                self._write(piece)
            except OSError as e:
                with self._changed:
                    self.error, self._pieces, self._waiting, self._refused = e, [], 0, False
                self.wake()
                return
            with self._changed:
                self._waiting -= len(piece)
                open_again = self._refused and self._waiting <= MOST_WAITING // 2
                if open_again:
                    self._refused = False
            if open_again:
                self.wake()


class Printer:
    """Shows events.  ``done`` says that *count* of them were shown, or that nobody reads them any more."""

    def __init__(
        self,
        outlet: OutputThread,
        layout: LineStyle | None = None,
        *,
        encoding: str = "utf-8",
        count: int | None = None,
    ) -> None:
        self.outlet = outlet
        self.done = False
        self._layout = layout or LineStyle()
        self._encoding = encoding
        self._left = count
        self._lines: list[str] = []
        self._gap = Gap()
        self._late: dict[int | None, tuple[Mark, str]] = {}
        self._pause: Gap | None = None
        self._status = ""

    def tell(self, mark: Mark, key: int | None, value: str, why: Sequence[str] = ()) -> None:
        """Note an event, *key* being the number of the assertion: its line is put out when the running turn commits."""
        if self.done:
            return
        if self._pause is not None:
            self._pause.count(mark)
            if mark == "-":
                self._late.pop(key, None)
        elif self._late or self._gap.size or self.outlet.full:
            self._put_off(mark, key, value)
        else:
            if not self._lines:
                current("show").afterwards.append(self._flush)
            self._lines.append(self._shown(mark, value, why))

    def catch_up(self) -> None:
        """Show what was put off, as far as there is space; raises :class:`~syndicate.errors.OutputError`."""
        error = self.outlet.error
        if error is not None:
            self.done = True
            if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                raise OutputError(f"cannot write to standard output: {error.strerror}") from error
        if self._pause is not None:
            return
        self._flush()
        if self._gap.size:
            gap, self._gap = self._gap, Gap()
            self._put(self._layout.missed(gap))
        while self._late and not self.outlet.full and not self.done:
            key = next(iter(self._late))
            self._put(self._shown(*self._late.pop(key)))

    def close(self, seconds: float | None = None) -> None:
        """Wait until all is written, what was put off too, but no longer than *seconds*.

        Raises :class:`~syndicate.errors.OutputError`.
        """
        if self._pause is not None and self._status:
            self._put(_CLEAR)
        if seconds is None:
            late, self._late = self._late, {}
            text = self._layout.missed(self._gap) if self._gap.size and not self.done else ""
            self._put(text + "".join([self._shown(*event) for event in late.values() if not self.done]))
        if not self.outlet.close(seconds):
            self.catch_up()

    def _put_off(self, mark: Mark, key: int | None, value: str) -> None:
        late = self._late.get(key)
        if mark == "!":
            self._gap.count(mark)
        elif late is not None and late[0] == "+":
            del self._late[key]
            self._gap.count("+")
            self._gap.count("-")
        else:
            self._late[key] = (mark, value)

    def _shown(self, mark: Mark, value: str, why: Sequence[str] = ()) -> str:
        if self._left is not None:
            self._left -= 1
            self.done = self._left <= 0
        return self._layout.event(mark, value, outside().wall(), why)

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._put("".join(lines))

    def _put(self, text: str) -> None:
        self.outlet.put(encoded(text, self._encoding))

    # ------------------------------------------------------------------------------------------------ a person's wishes

    @property
    def paused(self) -> bool:
        """Whether events are only counted."""
        return self._pause is not None

    def pause(self) -> None:
        """Count events instead of showing them."""
        if self._pause is None:
            self._flush()
            self._pause = Gap()
            self.refresh()

    def resume(self) -> None:
        """Say what was missed, and show events again."""
        if self._pause is not None:
            gap, self._pause, self._status = self._pause, None, ""
            self._put(_CLEAR + self._layout.missed(gap, "paused: "))
            self.catch_up()

    def refresh(self) -> None:
        """Bring the status line up to date."""
        if self._pause is not None:
            status = f"-- paused, {self._pause.size:,} missed; space resumes --"
            if status != self._status and not self.outlet.full:
                self._status = status
                self._put(_CLEAR + status)

    def notice(self, text: str) -> None:
        """A line that is no event."""
        self._put(f"{_CLEAR}{text}\n{self._status}")
