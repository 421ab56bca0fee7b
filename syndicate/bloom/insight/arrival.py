"""Arrivals: how the rows of an expression come over the ticks, and where that makes the order of input matter.

Rows are *constant* (the same in every tick), *growing* (once there, always there), or *passing* (there for a tick: a
channel, an input).  What is monotone keeps this.  Two things do not forgive a change of order:

* what is not monotone, of anything that is not constant: it was right only for what was there;
* a join of what is passing with anything that is not constant: the rows meet only if they come in one tick, or the
  right one before: a *race*.

>>> from syndicate.plan import AntiJoin, NaturalJoin, Relation
>>> said, seen = Relation("said", ("a",)), Relation("seen", ("a",))
>>> how = {"said": ArrivalOrder.PASSING, "seen": ArrivalOrder.GROWING}
>>> arrival_of(seen, how).hazards, [str(one) for one in arrival_of(AntiJoin(seen, said), how).hazards]
((), ['negation of said'])
>>> [str(one) for one in arrival_of(NaturalJoin(said, seen), how).hazards]
['race of said with seen']

Contract: without hazards, what a growing expression comes to, and all rows that a passing one ever has, are the same
however the rows that it reads are spread over ticks, repeated or reordered.

Source: Hellerstein and Alvaro 2020 (the CALM theorem); Alvaro et al. 2014 (races); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

from attrs import frozen

from syndicate import plan
from syndicate.bloom.declaration import Seal
from syndicate.bloom.insight.sealed import Finality
from syndicate.explain.derivation import named
from syndicate.plan.rules import parts_read


class ArrivalOrder(IntEnum):
    """How rows come; the greater, the less is known."""

    CONSTANT = 0
    GROWING = 1
    PASSING = 2


@frozen
class Hazard:
    """A place where order matters: *why*, of the collections *of*; in a race, *with* others."""

    why: str
    of: tuple[str, ...]
    with_: tuple[str, ...] = ()

    def __str__(self) -> str:
        meeting = f" with {named(self.with_)}" if self.with_ else ""
        return f"{self.why} of {named(self.of)}{meeting}"


@frozen
class ArrivalAnalysis:
    """How an expression's rows come, which collections it *reads*, and the hazards within."""

    arrival: ArrivalOrder
    reads: tuple[str, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    piecemeal: bool = False
    """Whether lattice values in the rows are merged of what happened to come together, which a function may notice."""


RACE: Final = "race"
PIECEMEAL: Final = "function of merged rows"


def arrival_of(
    expression: plan.Expression,
    arrivals: Mapping[str, ArrivalOrder],
    merging: frozenset[str] = frozenset(),
    seals: Sequence[Seal] = (),
) -> ArrivalAnalysis:
    """How the rows of *expression* come, if those of the collections come as *arrivals* say; some are *merging* rows.

    What *seals* promise is not waited for.
    """
    analyses: dict[plan.Expression, ArrivalAnalysis] = {}
    finality = Finality(seals, lambda part: analyses[part].arrival is ArrivalOrder.CONSTANT)
    pending = [expression]
    while pending:
        this = pending[-1]
        missing = [part for part in this.parts() if part not in analyses]
        if missing:
            pending += missing
            continue
        pending.pop()
        if this not in analyses:
            analyses[this] = _of(this, arrivals, merging, analyses, finality)
    return analyses[expression]


def _of(
    this: plan.Expression,
    arrivals: Mapping[str, ArrivalOrder],
    merging: frozenset[str],
    analyses: Mapping[plan.Expression, ArrivalAnalysis],
    finality: Finality,
) -> ArrivalAnalysis:
    if isinstance(this, plan.Relation):
        arrival = arrivals.get(this.name, ArrivalOrder.CONSTANT)
        return ArrivalAnalysis(arrival, (this.name,), (), arrival is ArrivalOrder.PASSING and this.name in merging)
    parts = [(analyses[part], why) for part, why in parts_read(this)]
    reads = tuple(dict.fromkeys(name for part, _ in parts for name in part.reads))
    hazards = [hazard for part, _ in parts for hazard in part.hazards]
    arrival = max((part.arrival for part, _ in parts), default=ArrivalOrder.CONSTANT)
    piecemeal = any(part.piecemeal for part, _ in parts)
    orders = [
        Hazard(why, analyses[part].reads)
        for part, why in parts_read(this)
        if why and analyses[part].arrival is not ArrivalOrder.CONSTANT and not finality.lifts(this, part)
    ]
    hazards += orders
    if not orders and not finality.of(this).final and len(parts) > 1 and not isinstance(this, plan.Union):
        hazards += _races([part for part, _ in parts])
    if piecemeal and not _only_moves(this):
        hazards.append(Hazard(PIECEMEAL, reads))
    return ArrivalAnalysis(arrival, reads, tuple(dict.fromkeys(hazards)), piecemeal)


def _only_moves(this: plan.Expression) -> bool:
    """Whether it looks into no column."""
    if isinstance(this, plan.Projection):
        return all(isinstance(scalar, (plan.Attr, plan.Const)) for _, scalar in this.columns)
    return isinstance(this, (plan.Rename, plan.Union, plan.NonMonotone))


def _races(parts: Iterable[ArrivalAnalysis]) -> Iterable[Hazard]:
    changing = [part for part in parts if part.arrival is not ArrivalOrder.CONSTANT]
    passing = next((part for part in changing if part.arrival is ArrivalOrder.PASSING), None)
    if passing is not None and len(changing) > 1:
        others = tuple(dict.fromkeys(name for part in changing if part is not passing for name in part.reads))
        yield Hazard(RACE, passing.reads, others)
