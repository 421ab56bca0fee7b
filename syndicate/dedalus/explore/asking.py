"""What may be asked of an exploration, and what of it makes no sense."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TypedDict

from syndicate.dedalus.ast import Events, Rule
from syndicate.dedalus.explore.explorer import MOST_STEPS, Explorer, Progress
from syndicate.dedalus.explore.outcome import MODES, Mode
from syndicate.dedalus.lower import arities
from syndicate.dedalus.schedule import Clock
from syndicate.dedalus.solving.solver import ENGINES, Engine
from syndicate.errors import FactError, ScheduleError


class Question(TypedDict, total=False):
    """What :meth:`syndicate.dedalus.Program.explore` takes besides what a run takes."""

    relations: Iterable[str] | None
    mode: Mode
    final: int | None
    lossless: bool | None
    limit: int
    progress: Progress | None
    engine: Engine


def explorer(
    rules: Sequence[Rule],
    clock: Clock,
    events: Events,
    *,
    relations: Iterable[str] | None = None,
    mode: Mode = "all-models",
    final: int | None = None,
    lossless: bool | None = None,
    limit: int = MOST_STEPS,
    progress: Progress | None = None,
    engine: Engine = "auto",
) -> Explorer:
    """An exploration that was asked for; raises :class:`ScheduleError`, :class:`FactError`."""
    columns = arities(rules)
    if mode not in MODES:
        raise ScheduleError(f"there is no mode {mode!r}: there are {', '.join(MODES)}")
    if engine not in ENGINES:
        raise ScheduleError(f"there is no engine {engine!r}: there are {', '.join(ENGINES)}")
    final = clock.until if final is None else final
    if not clock.start <= final <= clock.until:
        raise ScheduleError(f"the final time {final} is not within the run, from {clock.start} to {clock.until}")
    asked = sorted(columns) if relations is None else sorted(set(relations))
    for name in asked:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(columns)) or 'none'}"
            raise FactError(f"the program has no relation {name!r}: {hint}")
    net = clock.schedule.net if clock.schedule is not None else None
    if net is not None and net.crash and net.stop == "all":
        raise ScheduleError("exploring knows crashes that stop sending alone: leave out 'stop', or run by seeds")
    whole = mode == "confluence" if lossless is None else lossless
    return Explorer(rules, clock, asked, mode, final, whole, events, limit, progress, engine)
