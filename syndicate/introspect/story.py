r"""A story: the steps of one or more processes as data, from chronicles or from files.

A file is UTF-8 text, one JSON object a line: the first says what it is, each other one is a step::

    {"chronicle": "syndicate", "version": 1, "process": "chat"}
    {"number": 7, "turn": 3, "at": 0.1, "actor": "chat", "kind": "assert", "value": "[\"hall\"]", "place": ..}

>>> import tempfile
>>> from syndicate import assert_, capture, dataspace, during, run
>>> def boot():
...     ds = dataspace()
...     during(ds, ["lit", capture()])(lambda room: assert_(ds, ["seen", room]))
...     assert_(ds, ["lit", "hall"])
>>> with tempfile.TemporaryDirectory() as folder, written(f"{folder}/lights", process="lights"):
...     run(boot)
...     story = Story.read(f"{folder}/lights")
>>> [str(act) for step in story for act in step.acts if "seen" in str(act)]
['assert ["seen" "hall"]', 'retract ["seen" "hall"]']

Contract: a step is in the file before the next turn begins; who asks a process that runs reads its file.

Source: ``docs/design/introspect.md``.

Where a handler may lead: the labels of the record classes that its code names.

>>> from syndicate import record
>>> @record("lit")
... class Lit:
...     room: str
>>> def switch(room):
...     return lambda: Lit(room)
>>> labels_in(switch)[1]
('lit',)

It is read from the code, not run: what is built elsewhere, or by computed names, is not seen.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from sys import getrefcount
from types import CodeType, FunctionType, MethodType
from typing import Final, TextIO, TypeAlias

from attrs import frozen

from syndicate.actors.chronicle import Act, Chronicle, EventStep, Hop, place_of
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.system import System, following
from syndicate.actors.turn import Entity, Handle
from syndicate.errors import RecordingError, SyndicateError
from syndicate.index.interest import INTEREST
from syndicate.values.record import is_record_class
from syndicate.values.text import parse, unparse, unparse_form
from syndicate.values.value import Ref, Value, freeze, thaw

# --------------------------------------------------------------------------------------------- where a handler may lead


def labels_in(fn: object) -> tuple[str, tuple[str, ...]]:
    """The place of a handler, and what its code may say."""
    while isinstance(fn, (partial, MethodType)):
        fn = fn.func if isinstance(fn, partial) else fn.__func__
    if not isinstance(fn, FunctionType):
        return "", ()
    closed = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    names: dict[str, object] = dict(fn.__globals__)
    for name, cell in closed.items():
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    labels = dict.fromkeys(_labels(fn.__code__, names, 0))
    return place_of(fn.__code__), tuple(labels)


def _labels(code: CodeType, names: dict[str, object], depth: int) -> Iterator[str]:
    for name in (*code.co_names, *code.co_freevars):
        one = names.get(name)
        if is_record_class(one):
            yield str(getattr(one, "__label__", name))
        elif isinstance(one, FunctionType) and depth < 4:
            yield from _labels(one.__code__, {**names, **_closure(one)}, depth + 1)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _labels(constant, names, depth + 1)


def _closure(fn: FunctionType) -> dict[str, object]:
    there: dict[str, object] = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            there[name] = cell.cell_contents
        except ValueError:
            continue
    return there


# -------------------------------------------------------------------------------------------------------------- a story


File: TypeAlias = str | os.PathLike[str]
Key: TypeAlias = tuple[str, int]
"""A step: its process, and its number there."""

VERSION: Final = 1
_SECRET: Final = re.compile(r'\bsig: #x?"[^"]*"')


@frozen(eq=False)
class Done:
    """An act: ``assert``, ``retract``, ``message``, ``sync``, ``enter`` or ``spawn``.

    *id* names an assertion within its process; *stands* whether it was still asserted when the story was made, as far
    as is known.  *target* is a number of the entity, *public* whether that is a dataspace.  Of an interest, *asks* is
    the handler's place, and *leads* what it may say.
    """

    kind: str
    actor: str
    target: int
    public: bool
    value: Value
    id: int
    place: str = ""
    asks: str = ""
    leads: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {text(self.value)}".rstrip()


@frozen(eq=False)
class Happening:
    """A step as data."""

    process: str
    number: int
    turn: int
    at: float
    actor: str
    kind: str
    value: Value
    target: int
    public: bool
    id: int
    place: str
    causes: tuple[int, ...]
    rests: tuple[int, ...]
    hops: tuple[Hop, ...] = ()
    acts: tuple[Done, ...] = ()

    @property
    def key(self) -> Key:
        """By which others refer to it."""
        return self.process, self.number


def text(value: Value) -> str:
    """A value as text, whatever is in it; what opens something, the signature of a capability, is not shown."""
    return _unsigned(unparse(value, _unnamed))


def _unnamed(ref: Ref) -> str:
    return "#:_"


def _unsigned(said: str) -> str:
    return _SECRET.sub('sig: #x""', said) if "sig: #" in said else said


class Story:
    """Happenings in order of time, found by their keys."""

    def __init__(self, happenings: Iterable[Happening]) -> None:
        self._all = sorted(happenings, key=lambda one: one.at)
        self._by_key = {one.key: one for one in self._all}

    @classmethod
    def of(cls, *chronicles: Chronicle) -> Story:
        """What chronicles hold now."""
        happenings: list[Happening] = []
        for chronicle in chronicles:
            writer = Writer(chronicle.name)
            happenings += [writer.happening(step) for step in chronicle.steps()]
        return cls(happenings)

    @classmethod
    def read(cls, *paths: File) -> Story:
        """What is in files; raises :class:`~syndicate.errors.RecordingError`."""
        return cls([one for path in paths for one in _read(path)])

    def __iter__(self) -> Iterator[Happening]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, process: str, number: int) -> Happening | None:
        """One of them, if it is there: it may have been left out, or forgotten."""
        return self._by_key.get((process, number))


FEW: Final = 4096
"""So many entities and assertions a writer keeps beside twice those that others have."""
_ALONE: Final = 2  # the entry here, and the question


class Writer:
    """Makes data of steps: gives numbers to entities and assertions, for as long as anybody has these."""

    def __init__(self, process: str) -> None:
        self.process = process
        self._ids: dict[int, tuple[object, int]] = {}
        self._named = 0  # how many there ever were
        self._room = FEW

    def _id(self, thing: object | None) -> int:
        if thing is None:
            return 0
        entry = self._ids.get(id(thing))
        if entry is None:
            if len(self._ids) >= self._room:
                self._forget()
            self._named += 1
            entry = self._ids[id(thing)] = thing, self._named
        return entry[1]

    def __len__(self) -> int:
        """How many entities and assertions it can still name."""
        return len(self._ids)

    def _forget(self) -> None:
        """Let go of what nobody else has any more, and so nobody names again."""
        self._ids = {key: entry for key, entry in self._ids.items() if getrefcount(entry[0]) > _ALONE}
        self._room = 2 * len(self._ids) + FEW

    def happening(self, step: EventStep) -> Happening:
        """A step as data."""
        entity = step.target and step.target.entity
        return Happening(
            self.process,
            step.number,
            step.turn,
            step.time,
            step.actor,
            step.kind,
            _value(step.target, step.value),
            self._id(entity),
            isinstance(entity, Dataspace),
            self._id(step.handle),
            "" if step.code is None else place_of(step.code),
            step.causes,
            step.rests,
            step.hops,
            tuple([self._done(act) for act in step.acts]),
        )

    def _done(self, act: Act) -> Done:
        entity = act.target and act.target.entity
        asks, leads = _asked(act)
        return Done(
            act.kind,
            getattr(act.actor, "name", ""),
            self._id(entity),
            isinstance(entity, Dataspace),
            _value(act.target, act.value, _was_retracted(act)),
            self._id(act.handle),
            "" if act.code is None else place_of(act.code),
            asks,
            leads,
        )

    def line(self, step: EventStep) -> str:
        """A step as the line of a file.  Cost: a third of :meth:`happening`'s and an encoder's together, for this is
        done while the system waits.
        """
        entity = step.target and step.target.entity
        target, handle = self._id(entity), self._id(step.handle)
        acts = ", ".join([self._act(act) for act in step.acts])
        return (
            f'{{"number": {step.number}, "turn": {step.turn}, "at": {round(step.time, 6)!r}, '
            f'"actor": {_quoted(step.actor)}, "kind": "{step.kind}", "value": {_text(step.target, step.value)}, '
            f'"target": {target}, "public": {_truth(entity)}, "id": {handle}, '
            f'"place": {_place(step.code)}, "causes": {list(step.causes)}, "rests": {list(step.rests)}, '
            f'"hops": {json.dumps(step.hops, ensure_ascii=False) if step.hops else "[]"}, "acts": [{acts}]}}\n'
        )

    def _act(self, act: Act) -> str:
        entity = act.target and act.target.entity
        asks, leads = _asked(act)
        return (
            f'["{act.kind}", {_quoted(getattr(act.actor, "name", ""))}, {self._id(entity)}, {_truth(entity)}, '
            f"{_text(act.target, act.value, _was_retracted(act))}, {self._id(act.handle)}, {_place(act.code)}, "
            f"{_quoted(asks)}, {json.dumps(leads) if leads else '[]'}]"
        )


def _asked(act: Act) -> tuple[str, tuple[str, ...]]:
    """Of an interest, the place of the handler, and what that may say."""
    form = act.value
    if act.kind == "assert" and type(form) is tuple and form and form[0] is INTEREST:
        return labels_in(getattr(form[3].entity, "fn", None))
    return "", ()


def _was_retracted(act: Act) -> bool:
    """Whether the value is the form that a handle keeps."""
    return act.kind == "retract" and type(act.handle) is Handle


def _is_form(target: Ref | None, value: Value, form: bool) -> bool:
    return form or (target is not None and target.raw and value != "")


def _value(target: Ref | None, value: Value, form: bool = False) -> Value:
    if type(value) is Ref and target is None:
        return ""
    return thaw(value) if _is_form(target, value, form) else value


# ---------------------------------------------------------------------------------------------------- lines

_quoted: Final = json.encoder.encode_basestring


def _text(target: Ref | None, value: Value, form: bool = False) -> str:
    """A value's text, as a string of JSON."""
    if type(value) is Ref and target is None:
        value = ""
    return _quoted(_unsigned(unparse_form(value if _is_form(target, value, form) else freeze(value), _unnamed)))


def _truth(entity: object) -> str:
    return "true" if isinstance(entity, Dataspace) else "false"


def _place(code: CodeType | None) -> str:
    return '""' if code is None else _quoted(place_of(code))


# ---------------------------------------------------------------------------------------------------- files


def _read(path: File) -> Iterator[Happening]:
    foreign = f"{path} is no chronicle: its first line is not that which `written` or --chronicle writes"
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    except OSError as e:
        raise RecordingError(f"cannot read the chronicle {path}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise RecordingError(foreign) from None
    try:
        head = json.loads(lines[0])
        process, version = str(head["process"]), head["version"]
        if head["chronicle"] != "syndicate":
            raise RecordingError(foreign)
    except (ValueError, KeyError, TypeError, IndexError):
        raise RecordingError(foreign) from None
    if version != VERSION:
        raise RecordingError(f"{path} is a chronicle of version {version!r}: this program reads {VERSION}")
    for number, line in enumerate(lines[1:], 2):
        try:
            yield _happening(process, json.loads(line))
        except (ValueError, KeyError, TypeError, SyndicateError):
            if not line.endswith("\n"):
                return  # the process was killed while it wrote, or writes now
            raise RecordingError(f"line {number} of {path} is no step of a chronicle") from None


def _happening(process: str, said: dict[str, Value]) -> Happening:
    return Happening(
        process,
        int(said["number"]),
        int(said["turn"]),
        float(said["at"]),
        str(said["actor"]),
        str(said["kind"]),
        _parsed(said["value"]),
        int(said["target"]),
        bool(said["public"]),
        int(said["id"]),
        str(said["place"]),
        tuple(said["causes"]),
        tuple(said["rests"]),
        tuple([(str(a), str(b), int(c), str(d)) for a, b, c, d in said["hops"]]),
        tuple([Done(a, b, c, d, _parsed(e), f, g, h, tuple(i)) for a, b, c, d, e, f, g, h, i in said["acts"]]),
    )


def _parsed(value: str) -> Value:
    return parse(value, lambda name: Ref.unbound(Entity()))


def new_file(path: File) -> TextIO:
    """Open a file for text that nobody else may read; raises :class:`~syndicate.errors.RecordingError` if it is there
    already, or cannot be written.
    """
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")
    except FileExistsError:
        raise RecordingError(f"{path} is there already: remove it, or write to another file") from None
    except OSError as e:
        raise RecordingError(f"cannot write to {path}: {e.strerror}") from None


@contextmanager
def written(path: File, *, process: str = "here", every: int = 1) -> Iterator[None]:
    """Write what happens in the actor systems that are opened within, to a new file; *every* as for a chronicle.

    Raises :class:`~syndicate.errors.RecordingError` if that cannot be written.
    """
    with new_file(path) as file:
        file.write(json.dumps({"chronicle": "syndicate", "version": VERSION, "process": process}) + "\n")
        file.flush()

        def follow(system: System) -> None:
            chronicle = Chronicle(system, every=every, most=10_000, name=process)
            writer = Writer(process)

            def write(steps: Sequence[EventStep]) -> None:
                with suppress(ValueError):  # closed: the block has ended, and the system goes on
                    file.write("".join([writer.line(step) for step in steps]))
                    file.flush()

            chronicle.listeners.append(write)

        with followed(follow):
            yield


@contextmanager
def followed(follow: Callable[[System], object]) -> Iterator[None]:
    """Call *follow* with each actor system that is opened within, before its first turn."""
    token = following.set(follow)
    try:
        yield
    finally:
        following.reset(token)


@contextmanager
def chronicled(*, every: int = 1, most: int = 100_000) -> Iterator[list[Chronicle]]:
    """Follow each actor system that is opened within; the result has their chronicles."""
    chronicles: list[Chronicle] = []

    def follow(system: System) -> None:
        life = getattr(system, "life", None)
        name = f"{life.name}.{life.number}" if life is not None else "here" if not chronicles else str(len(chronicles))
        chronicles.append(Chronicle(system, every=every, most=most, name=name))

    with followed(follow):
        yield chronicles


__all__ = ["Done", "Happening", "Story", "chronicled", "followed", "text", "written"]
