"""Properties: what must hold in a run, and when it is asked.

``always`` and ``never`` are asked after each turn of any process; ``eventually`` from the moment on at which the last
fault has healed, until it was true once or its time is over; ``after_healing`` at the end, when everything is at rest;
``sometimes`` after each turn, and a whole campaign fails if no run ever saw it.

>>> held = [1]
>>> properties = Properties()
>>> properties.always("one", lambda: len(held) == 1)
>>> properties.look(0.5, healed=False)
>>> held.append(2)
>>> print(properties.look(0.7, healed=False))
always one: broken at 0.700000 s
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import Final

from attrs import define, field, frozen

from syndicate.errors import ScenarioMisuse, SyndicateError

_OURS: Final = tuple([str(Path(__file__).parents[2] / name) for name in ("syndicate", "relay")])

Holds = Callable[[], object]


@frozen
class Violation:
    """A property that was broken: its kind (``always``, ``law``, ``crash``, ..), its name, when, and how.

    Made by :meth:`Scenario.run <relay.simulation.Scenario.run>`.
    """

    kind: str
    name: str
    time: float
    text: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: broken at {self.time:.6f} s{f': {self.text}' if self.text else ''}"


@define
class Eventually:
    """What is yet to become true, within so many seconds after healing."""

    name: str
    holds: Holds
    within: float


@define
class Properties:
    """Those of one run."""

    invariants: list[tuple[str, str, Holds, bool]] = field(factory=list)
    pending: list[Eventually] = field(factory=list)
    last: list[tuple[str, Holds]] = field(factory=list)
    hoped: list[tuple[str, Holds]] = field(factory=list)
    seen: dict[str, bool] = field(factory=dict)
    _names: set[str] = field(factory=set)

    def _name(self, name: str, holds: Holds) -> str:
        if not callable(holds):
            raise ScenarioMisuse(f"the property {name!r} is {holds!r}: give a function, as in lambda: done.value")
        if name in self._names:
            raise ScenarioMisuse(f"two properties are called {name!r}: reports name them, so give each its own")
        self._names.add(name)
        return name

    def always(self, name: str, holds: Holds) -> None:
        """*holds* must be true after each turn."""
        self.invariants.append(("always", self._name(name, holds), holds, True))

    def never(self, name: str, happens: Holds) -> None:
        """*happens* must not be true after any turn."""
        self.invariants.append(("never", self._name(name, happens), happens, False))

    def eventually(self, name: str, holds: Holds, within: float) -> None:
        """*holds* must become true, so many seconds after the last fault has healed at the latest."""
        self.pending.append(Eventually(self._name(name, holds), holds, within))

    def after_healing(self, name: str, holds: Holds) -> None:
        """*holds* must be true when all faults have healed and everything is at rest."""
        self.last.append((self._name(name, holds), holds))

    def sometimes(self, name: str, happens: Holds) -> None:
        """*happens* must be true after some turn of some run of a campaign."""
        self.seen[self._name(name, happens)] = False
        self.hoped.append((name, happens))

    def look(self, now: float, *, healed: bool) -> Violation | None:
        """Ask what is to be asked after a turn.  Who raises does not hold."""
        kind = name = ""
        try:
            for kind, name, holds, wanted in self.invariants:
                if bool(holds()) is not wanted:
                    return Violation(kind, name, now)
            kind = "sometimes"
            for name, happens in self.hoped:
                if not self.seen[name] and happens():
                    self.seen[name] = True
            if healed and self.pending:
                kind, left = "eventually", list[Eventually]()
                for each in self.pending:
                    name = each.name
                    if not each.holds():
                        left.append(each)
                self.pending = left
        except SyndicateError:
            raise
        except Exception as error:
            return Violation(kind, name, now, _raised(error))
        return None

    def late(self, now: float, since: float) -> Violation | None:
        """What has not become true in its time, if anything, when all had healed at *since*."""
        for each in self.pending:
            if now >= since + each.within:
                text = f"not within {each.within:g} s after the last fault had healed, at {since:g} s"
                return Violation("eventually", each.name, now, text)
        return None

    def deadlines(self, since: float) -> list[float]:
        """When it is to be asked whether something is late."""
        return sorted({since + each.within for each in self.pending if each.within < math.inf})

    def at_rest(self, now: float) -> Violation | None:
        """Ask what is to be asked at the end."""
        name = ""
        try:
            for name, holds in self.last:
                if not holds():
                    return Violation("after_healing", name, now)
        except SyndicateError:
            raise
        except Exception as error:
            return Violation("after_healing", name, now, _raised(error))
        return None


def _raised(error: Exception) -> str:
    return f"its function raises {type(error).__name__}: {error}, at {place_of_error(error)}"


def place_of_error(error: BaseException) -> str:
    """The file and the line in which it was raised, or, if that is ours, from which we were called."""
    frames = extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_OURS)] or frames
    return f"{theirs[-1].filename}:{theirs[-1].lineno}"
