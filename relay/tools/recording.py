r"""Recordings: what happened in a dataspace, in a file that can be looked at, and played again.

A recording is UTF-8 text, one JSON object a line.  The first says what it is::

    {"recording": "syndicate", "version": 1, "started": "2026-01-01T12:00:00.000000+00:00", "address": "tcp://.."}

Each further line is an event: ``+`` asserted, ``-`` retracted, ``!`` sent.  ``at`` is in seconds from the start; events
of one turn have the same.  ``id`` says which assertion a retraction is of, and ``value`` is Preserves text, with
``#:n`` where the console knew a reference by the number *n*::

    {"at": 0.25, "event": "+", "id": 1, "value": "<Present \"alice\">"}
    {"at": 1.5, "event": "!", "value": "<Says \"alice\" \"hi\">"}
    {"at": 2.0, "event": "-", "id": 1, "value": "<Present \"alice\">"}

Where the console was sent causes (``--why``), an event has that as well, ``"why": ["shop.py:3 sell in till of shop"]``.

So one file recorded in production is a test: :func:`read` it, or let :func:`replayed` do in a dataspace what it says.

>>> import tempfile
>>> from syndicate import Record, capture, dataspace, on_message, run
>>> def boot(path):
...     ds = dataspace()
...     on_message(ds, Record("speaks", [capture(), capture()]))(print)
...     replayed(path, ds)
>>> with tempfile.TemporaryDirectory() as folder:
...     recorder = Recorder(f"{folder}/chat", address="tcp://127.0.0.1:8001")
...     recorder.note("!", None, '<speaks "alice" "hi">')
...     recorder.close()
...     print([event.value for event in read(f"{folder}/chat")])
...     run(boot, f"{folder}/chat")
[Record(Symbol('speaks'), ['alice', 'hi'])]
alice hi

Contract: each turn is in the file before the next begins, so that a recording whose writer was killed is valid up to
its last whole line.  The capability by which it was recorded is not in it.  What somebody has asserted is, be it a
reference that opens something: whoever may observe the dataspace has it anyway, and the file is its owner's only.

Source: ``docs/design/commands.md``, "Recordings".
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

import trio
from attrs import frozen

from syndicate.actors.facet import Facet
from syndicate.actors.turn import Entity, Handle, current
from syndicate.actors.verbs import current_facet, react, send, stop, sync, trio_task
from syndicate.errors import RecordingError, TextError
from syndicate.introspect.story import Done, Happening
from syndicate.outside import outside
from syndicate.values.text import parse, unparse
from syndicate.values.value import Ref, Value

Mark: TypeAlias = Literal["+", "-", "!"]
File: TypeAlias = str | os.PathLike[str]

_VERSION: Final = 1
_LONGEST: Final = 1 << 26
"""Bytes in a line: a file without line ends is no recording."""
_AHEAD: Final = 32
"""How many turns are played before the dataspace must have handled them."""


# ---------------------------------------------------------------------------------------------------- writing


class Recorder:
    """Writes a recording to a new file.  Raises :class:`~syndicate.errors.RecordingError` if that cannot be written.

    ``count`` is the number of events so far.
    """

    def __init__(self, path: File, *, address: str) -> None:
        self.path = Path(path)
        self.count = 0
        self._noted: list[str] = []
        self._last = 0.0
        try:
            if self.path.is_file() and self.path.stat().st_size:
                raise RecordingError(f"{self.path} is there already: remove it, or record to another file")
            self._fd: int | None = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError as e:
            raise RecordingError(f"cannot record to {self.path}: {e.strerror}") from None
        started = outside().wall().isoformat(timespec="microseconds")
        self._began = outside().elapsed()
        self._put(_line({"recording": "syndicate", "version": _VERSION, "started": started, "address": address}))

    def tell(self, mark: Mark, key: int | None, value: str, why: Sequence[str] = ()) -> None:
        """Note an event, given as text, and why: it is written when the running turn commits."""
        if not self._noted:
            current("record").afterwards.append(self.flush)
        self.note(mark, key, value, why)

    def note(self, mark: Mark, key: int | None, value: str, why: Sequence[str] = ()) -> None:
        """Note an event outside any turn."""
        if not self._noted:
            self._last = max(self._last + 1e-6, round(outside().elapsed() - self._began, 6))
        event: dict[str, object] = {"at": round(self._last, 6), "event": mark, "id": key, "value": value}
        if key is None:
            del event["id"]
        if why:
            event["why"] = [*why]
        self._noted.append(_line(event))

    def flush(self) -> None:
        """Write what was noted."""
        noted, self._noted = self._noted, []
        self.count += len(noted)
        self._put("".join(noted))

    def close(self) -> None:
        """Write what was noted, and close the file."""
        try:
            self.flush()
        finally:
            self._close()

    def _put(self, text: str) -> None:
        data = text.encode()
        try:
            while data and self._fd is not None:
                data = data[os.write(self._fd, data) :]
        except OSError as e:
            self._close()
            raise RecordingError(f"cannot record to {self.path}: {e.strerror}") from None

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _line(event: Mapping[str, object]) -> str:
    return json.dumps(event, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------------------------------------------- reading


@frozen
class Header:
    """What the first line says."""

    started: datetime
    address: str

    def when(self, at: float) -> datetime:
        """The time *at* so many seconds from the start."""
        return self.started + timedelta(seconds=at)


@frozen
class RecordedEvent:
    """An event: *at* in seconds from the start, *key* the number of the assertion.

    *bound* says that the value has references in it, which mean nothing now; *why* what led to the event, the last
    cause first, where the console was sent it.
    """

    at: float
    mark: Mark
    key: int | None
    value: Value
    bound: bool = False
    why: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The value as text."""
        return unparse(self.value, lambda ref: f"#:{unparse(ref.entity.name)}")  # type: ignore[attr-defined]  # a name stands for what it was


class _Then(Entity):
    """What a reference led to when it was recorded."""

    def __init__(self, name: Value) -> None:
        self.name = name


def header(path: File) -> Header:
    """The header of the recording in *path*; raises :class:`~syndicate.errors.RecordingError`."""
    with _open(path) as file:
        return _header(path, file)


def read(path: File) -> Iterator[RecordedEvent]:
    """The events of a recording, one after the other.

    Raises :class:`~syndicate.errors.RecordingError`, with the number of the line, where something else is: where a
    recording breaks off in the middle of a line, after all whole ones.
    """
    with _open(path) as file:
        _header(path, file)
        number = 1
        while line := _next(path, file, number := number + 1):
            yield _event(line, f"line {number} of {path}")


def is_recording(path: File) -> bool:
    """Whether a file is one, by its first line; False if it cannot be read."""
    try:
        header(path)
    except RecordingError:
        return False
    return True


_KINDS: Final = {"+": "assert", "-": "retract", "!": "message"}
_PLACED: Final = re.compile("(.*) in (.*) of (.*)", re.DOTALL)


def recorded_steps(path: File) -> Iterator[Happening]:
    """The events of a recording as steps of a story, for :class:`~syndicate.introspect.Why`: as far as a console was
    sent what led to them.  Raises :class:`~syndicate.errors.RecordingError`.
    """
    head, process, turn, last = header(path), Path(path).name, 0, math.nan
    for number, event in enumerate(read(path), 1):
        turn += event.at != last
        last = event.at
        hops = [match.groups() for why in event.why if (match := _PLACED.fullmatch(why))]
        act = Done(_KINDS[event.mark], "dataspace", 1, True, event.value, event.key or 0)
        yield Happening(
            process,
            number,
            turn,
            event.at,
            f"somebody at {head.when(event.at):%H:%M:%S.%f}"[:-3],
            "recorded",
            "",
            0,
            False,
            0,
            "",
            (),
            (),
            tuple([(there, actor, -at, place) for at, (place, actor, there) in enumerate(hops, 1)]),
            (act,),
        )


def _open(path: File) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as e:
        raise RecordingError(f"cannot read the recording {path}: {e.strerror}") from None


def _next(path: File, file: BinaryIO, number: int) -> str:
    try:
        line = file.readline(_LONGEST).decode()
    except UnicodeDecodeError:
        raise RecordingError(f"line {number} of {path} is not text: this is no recording") from None
    except OSError as e:
        raise RecordingError(f"cannot read the recording {path}: {e.strerror}") from None
    if line and not line.endswith("\n"):
        raise RecordingError(
            f"line {number} of {path} breaks off: what recorded it was killed. All before that line is good"
            if number > 1
            else f"line 1 of {path} is no whole line: this is no recording"
        )
    return line


def _header(path: File, file: BinaryIO) -> Header:
    foreign = f"{path} is no recording: its first line is not that which `syndicate-console --record` writes"
    try:
        said = json.loads(_next(path, file, 1))
        if said["recording"] != "syndicate":
            raise RecordingError(foreign)
        if said["version"] != _VERSION:
            raise RecordingError(f"{path} is a recording of version {said['version']!r}: this program reads {_VERSION}")
        return Header(datetime.fromisoformat(said["started"]), str(said["address"]))
    except RecordingError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RecordingError(foreign) from None


def _event(line: str, where: str) -> RecordedEvent:
    bound = []

    def embedded(name: Value) -> Ref:
        bound.append(name)
        return Ref.unbound(_Then(name))

    try:
        said = json.loads(line)
        at, mark, key = said["at"], said["event"], said.get("id")
        value = parse(said["value"], embedded)
        why = tuple(map(str, said.get("why", ())))
    except TextError as e:
        raise RecordingError(f"{where}: {e}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RecordingError(f"{where} is no event of a recording") from None
    if type(at) not in (int, float) or not 0 <= at < 1e12 or mark not in ("+", "-", "!"):
        raise RecordingError(f"{where} is no event of a recording")
    if (type(key) is not int) if mark != "!" else key is not None:
        raise RecordingError(f"{where} has no id, by which a retraction knows its assertion")
    return RecordedEvent(float(at), mark, key, value, bool(bound), why)


# ---------------------------------------------------------------------------------------------------- playing


class Replay:
    """A recording that is being played.  ``played`` and ``skipped`` count its events so far."""

    def __init__(self, path: File, ds: Ref, speed: float | None, wanted: Callable[[Value], bool]) -> None:
        self.played = 0
        self.skipped = 0
        self._path = path
        self._ds = ds
        self._speed = speed
        self._wanted = wanted
        self._handles: dict[int | None, Handle] = {}

    async def run(self, facet: Facet) -> None:
        """Play it in *facet*."""
        began = trio.current_time()
        for turns, (at, events) in enumerate(groupby(read(self._path), lambda event: event.at), 1):
            if self._speed is not None:
                await trio.sleep_until(began + at / self._speed)
            facet.enter(partial(self._act, list(events)))
            if turns % _AHEAD == 0:
                await self._handled(facet)
        await self._handled(facet)

    async def _handled(self, facet: Facet) -> None:
        """Wait until the dataspace has done all of it."""
        done = trio.Event()
        facet.enter(lambda: sync(self._ds, done.set))
        await done.wait()

    def _act(self, events: list[RecordedEvent]) -> None:
        for event in events:
            if event.mark == "-":
                handle = self._handles.pop(event.key, None)
                if handle is not None:
                    self.played += 1
                    handle.retract()
            elif self._wanted(event.value):
                if event.bound:
                    self.skipped += 1
                    continue
                self.played += 1
                if event.mark == "!":
                    send(self._ds, event.value)
                else:
                    self._handles[event.key] = current("replay").assert_(self._ds, event.value)


def replayed(
    path: File,
    ds: Ref,
    speed: float | None = None,
    *,
    wanted: Callable[[Value], bool] = lambda value: True,
    then: Callable[[], object] = lambda: None,
) -> Replay:
    """Do in *ds* what the recording in *path* says, in a facet of the current one.

    *speed* 1.0 keeps the recorded times, 2.0 halves them, None waits for nothing; what was one turn is one turn again.
    Values with references in them are skipped and counted, and so not played are those that are not *wanted*.  At the
    end what is still asserted is retracted, in the order in which it was asserted; *then* is called when the dataspace
    has handled that.

    Raises :class:`~syndicate.errors.RecordingError`, for what is wrong in its head; what is wrong further
    down is raised in the actor.
    """
    header(path)
    replay = Replay(path, ds, speed, wanted)
    outer = current_facet()

    @react
    def playing() -> None:
        inner = current_facet()

        async def run() -> bool:
            await replay.run(inner)
            inner.enter(lambda: stop(inner, lambda: outer.enter(lambda: sync(ds, then))))
            return True

        trio_task(run)

    return replay
