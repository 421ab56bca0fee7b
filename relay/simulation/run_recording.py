"""A run as others can look at it: as a diagram of space and time, and as a recording that the console plays."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final

from attrs import define, evolve, field

from relay.simulation.network import Pipe
from relay.simulation.process import BrokerProcess
from relay.simulation.view import View
from relay.simulation.world import World
from relay.tools import recording
from relay.tools.console import causes_in
from syndicate.errors import ScenarioMisuse
from syndicate.explain.spacetime import Mark, SpaceTime
from syndicate.outside import Outside, replaced
from syndicate.simulation.history import Entry
from syndicate.values.pattern import ANY
from syndicate.values.text import unparse_form
from syndicate.values.value import Frozen

_SHOWN: Final = (
    "starts",
    "is killed",
    "loses its power",
    "stands still",
    "loses",
    "parts",
    "is to end",
    "fails",
    "logs",
)
"""What of the history is marked, beside what is sent."""
_LONGEST: Final = 100
_ALIVE: Final = 2
"""Bytes: what is not longer says only that the sender is there."""


@define(eq=False)
class Lanes:
    """What was sent in a run and what befell it; a listener for :meth:`Scenario.play
    <relay.simulation.Scenario.play>`, which must have every turn in its history.
    """

    _world: World | None = None
    _sent: list[tuple[int, Mark]] = field(factory=list)
    """Each with where in the history it was sent."""

    def listen(self, world: World) -> None:
        """Before the run."""
        self._world = world
        world.network.listener = self._send

    def _send(self, arrival: float, pipe: Pipe, size: int) -> Callable[[bool], None]:
        world = self._world
        assert world is not None
        source, target, at = pipe.source.name, pipe.target.name, len(world.history.entries)
        number = len(self._sent)
        if size <= _ALIVE:
            return lambda there: None
        mark = Mark(_milli(world.now), "message", source, target, f"#{pipe.pair.number}, {size} bytes", (), lost=True)
        self._sent.append((at, mark))

        def arrive(there: bool) -> None:
            if there:
                self._sent[number] = at, evolve(mark, arrive=(_milli(arrival),), lost=False)

        return arrive

    def draw(self, form: str, last: int) -> str:
        """The diagram of the *last* marks, which says how many are left out; times in milliseconds.

        What was said is that of the sender's last turn.
        """
        world = self._world
        assert world is not None
        entries = world.history.entries
        end = next((at for at, each in enumerate(entries, 1) if each.what == "violation"), len(entries))
        entries = entries[:end]  # who is ended after that has not died
        marks = [(at, _worded(mark, entries[:at])) for at, mark in self._sent[-last:]]
        marks += [(at, _mark(each)) for at, each in enumerate(entries) if _is_shown(each)]
        marks.sort(key=lambda mark: (mark[0], mark[1].time))
        drawn = [mark for _, mark in marks[-last:]]
        left = len(marks) + max(0, len(self._sent) - last) - len(drawn)
        if left:
            words = f"{left} marks before this are left out: --last {left + len(drawn)} draws all"
            drawn.insert(0, Mark(drawn[0].time, "arrival", drawn[0].sender, None, words))
        places: dict[Hashable, str] = {name: name for name in world.processes}
        until = _milli(world.now)
        return SpaceTime(places, drawn, {}, until).draw(form)


def _milli(seconds: float) -> int:
    return round(seconds * 1000)


def _is_shown(entry: Entry) -> bool:
    if entry.what == "disk":
        return entry.details[0] == "synced, not answered"
    return entry.what in _SHOWN or entry.what == "violation"


def _mark(entry: Entry) -> Mark:
    words = str(entry).partition(" ")[2][:_LONGEST]
    crash = entry.what in ("is killed", "loses its power", "fails")
    return Mark(_milli(entry.time), "crash" if crash else "arrival", entry.process, None, words)


def _worded(mark: Mark, before: list[Entry]) -> Mark:
    """With what the sender did in its last turn, if that was at the same time."""
    for entry in reversed(before):
        if _milli(entry.time) != mark.time:
            break
        if entry.process == mark.sender and entry.what == "turn":
            said = str(entry).partition("; ")[2]
            if said:
                return evolve(mark, note=f"{mark.note}: {said[:_LONGEST]}" + (", lost" if mark.lost else ""))
    return evolve(mark, note=mark.note + (", lost" if mark.lost else ""))


class _Beginning(Outside):
    """The time at which recordings of simulated runs begin."""

    def time_of_day(self) -> float:
        """The year 2026."""
        return 1_767_225_600.0

    def elapsed(self) -> float:
        """None."""
        return 0.0


class RecordedView(View):
    """What is asserted and sent in the dataspace of a broker, written as it comes, at virtual times; and what led to
    it, if the run is followed.
    """

    def __init__(self, broker: BrokerProcess, path: Path) -> None:
        super().__init__(broker, ANY)
        self.path = path
        self._keys: dict[Frozen, int] = {}
        self._count = 0
        with replaced(_Beginning()):
            self._recorder = recording.Recorder(path, address=broker.address)

    def add(self, form: Frozen) -> None:
        """*form* is there from now on."""
        super().add(form)
        if form in self._current:
            self._count += 1
            self._keys[form] = self._count
            self._note("+", self._count, form)

    def remove(self, form: Frozen) -> None:
        """*form* has gone."""
        super().remove(form)
        key = self._keys.pop(form, None)
        if key is not None:
            self._note("-", key, form)

    def hear(self, form: Frozen) -> None:
        """*form* was sent there."""
        self._note("!", None, form)

    def clear(self) -> None:
        """The broker begins a life: what was asserted before is gone."""
        for form in list(self._keys):
            self.remove(form)
        super().clear()

    def close(self) -> None:
        """The run is over."""
        self._recorder.close()

    def _note(self, mark: recording.Mark, key: int | None, form: Frozen) -> None:
        system = self.broker.system
        self._recorder.note(mark, key, unparse_form(form, str), [] if system is None else causes_in(system))
        self._recorder.flush()


class Recordings:
    """One recording for each broker, in the file *path*, or beside it, if there are several.  A listener as
    :class:`Lanes`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.views: list[RecordedView] = []
        self._path = Path(path)

    def listen(self, world: World) -> None:
        """Before the run; raises :class:`~syndicate.errors.RecordingError`."""
        brokers = [each for each in world.processes.values() if isinstance(each, BrokerProcess)]
        if not brokers:
            raise ScenarioMisuse(f"there is nothing to record in {self._path}: the scenario has no broker")
        for broker in brokers:
            one = self._path.with_name(f"{self._path.stem}-{broker.name}{self._path.suffix}")
            self.views.append(RecordedView(broker, self._path if len(brokers) == 1 else one))
        world.laws.views += self.views

    def close(self) -> None:
        """After the run."""
        for view in self.views:
            view.close()
