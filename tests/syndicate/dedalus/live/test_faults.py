"""What ``verify`` finds happens live: locations step by themselves, over a network that does what the verdict says.

The locations are those of agents (:class:`~syndicate.dedalus.live.local.Local`), each with its own rules, clock and
state; between them messages are lost and late, a second time or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from syndicate.dedalus import Model, Program, Verdict
from syndicate.dedalus.live.event_log import EventLog
from syndicate.dedalus.live.local import Local
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.timeline import Message

DATA = Path(__file__).parents[3] / "data" / "dedalus"
PLACES = ("a", "b", "c")
MEMBERS = " ".join(f'member("{one}", "{two}")@1;' for one in PLACES for two in PLACES if one != two)
BROADCAST = f"""
    include "std/broadcast";
    {MEMBERS} broadcast_send("a", "hi")@1;
    pre(X) :- broadcast_log("a", X); post(X) :- broadcast_log("b", X), broadcast_log("c", X);
"""
COUNTED = f"""
    {MEMBERS} say("a")@1; said(M)@async :- say(L), member(L, M);
    n(M, 1)@next :- said(M), notin n(M, _); n(M, X + 1)@next :- n(M, X), said(M);
    n(M, X)@next :- n(M, X), notin said(M);
    bad(M) :- n(M, X), X > 1;
"""
RELAY = f"""
    {MEMBERS} log("a", "hi")@1; persist[log, 2]; log(M, X)@async :- log(L, X), member(L, M);
    pre(X) :- log("b", X); post(X) :- log("b", X), log("c", X);
"""
TIMERS = f"""
    {MEMBERS} persist[member, 2]; begin("c")@1; left(L, 4)@async :- begin(C), member(C, L);
    left(L, N - 1)@next :- left(L, N), N > 0; rung(L) :- left(L, 0); persist[rung, 1];
    set(M, L)@async :- left(L, 4), member(L, M); persist[set, 2];
    heard(M, L)@async :- rung(L), member(L, M); persist[heard, 2];
    bad("c") :- heard("c", "a"), set("c", "b"), notin heard("c", "b");
"""
FOUND: dict[str, tuple[str, dict[str, Any]]] = {
    "3PC, one late": (
        (DATA / "three_phase.ded").read_text(),
        {"eot": 12, "eff": 0, "late": 1, "nodes": ["C", "a", "b", "d"], "invariant": "split"},
    ),
    "broadcast, loss": (
        BROADCAST,
        {"eot": 4, "eff": 3, "nodes": PLACES},
    ),
    "broadcast, a crash": (
        BROADCAST,
        {"eot": 4, "eff": 0, "crashes": 1, "nodes": PLACES},
    ),
    "broadcast, parted": (
        BROADCAST,
        {"eot": 4, "eff": 0, "partitions": 1, "nodes": PLACES},
    ),
    "broadcast, a stop": (BROADCAST, {"eot": 4, "eff": 0, "stops": 1, "nodes": PLACES}),
    "broadcast, a restart": (BROADCAST, {"eot": 5, "eff": 0, "restarts": 1, "nodes": PLACES}),
    "broadcast, a pause": (BROADCAST, {"eot": 5, "eff": 0, "pauses": 1, "nodes": PLACES}),
    "timers, a restart": (TIMERS, {"eot": 8, "eff": 0, "restarts": 1, "nodes": PLACES, "invariant": "bad"}),
    "timers, a pause": (TIMERS, {"eot": 8, "eff": 0, "pauses": 1, "nodes": PLACES, "invariant": "bad"}),
    "relay, loss to the end": (RELAY, {"eot": 4, "eff": 5, "nodes": PLACES}),
    "twice": (COUNTED, {"eot": 5, "eff": 0, "again": 2, "nodes": PLACES, "invariant": "bad"}),
}


def lives_of(model: Model, place: str) -> list[range]:
    """The times at which a location is at work, each life of it by itself; one that pauses goes on with the same."""
    end = model.until + 1
    lives = [range(model.start, end)]
    for outage in model.net.down if model.net is not None else ():
        if outage.node == place:
            lives = [range(model.start, outage.since), range(end if outage.to is None else outage.to, end)]
    return lives


def differing(
    placement: Placement, model: Model, specification: list[str], logs: dict[str, list[EventLog]]
) -> list[tuple[object, ...]]:
    """Where locations that were at work had something else than a run has."""
    found: list[tuple[object, ...]] = []
    for place, recorded in logs.items():
        for life, log in zip(lives_of(model, place), [*recorded, recorded[-1]], strict=False):
            for time in life:
                for name, rows in model.at(time).items():
                    told = sorted((row for row in rows if placement.of(name, row) in (None, place)), key=repr)
                    here = name in placement.arities and name not in specification
                    if here and told != log.at(name, time):
                        found.append((time, name, place, told, log.at(name, time)))
    return found


def happened(
    program: Program, verdict: Verdict, places: Iterable[str], specification: list[str]
) -> list[tuple[object, ...]]:
    """What differs at the locations, that step apart while the network does what a counterexample says."""
    placement = Placement(program.statements, specification)
    locations = {place: [Local(placement, place, recorded=True)] for place in places}
    keeping = {outage.node for outage in verdict.net.down if outage.keeps}
    coming: dict[int, list[Message]] = {}
    for time in range(verdict.model.start, verdict.model.until + 1):
        for place, lives in locations.items():
            if time == lives_of(verdict.model, place)[-1].start > verdict.model.start and place not in keeping:
                lives.append(Local(placement, place, start=time, recorded=True))
        for message in coming.pop(time, []):
            locations[str(message.row[0])][-1].arrive(message.relation, message.row, message.sent)
        for place, lives in locations.items():
            if not any(time in life for life in lives_of(verdict.model, place)):
                continue
            for message in lives[-1].step(time):
                receiver = message.row[0]
                if not verdict.net.lost(place, receiver, time):
                    due = [time + 1 + by for by in verdict.net.delays(place, receiver, time)]
                    for at in verdict.net.received(receiver, due):
                        coming.setdefault(at, []).append(message)
    logs = {place: [one.event_log() for one in lives] for place, lives in locations.items()}
    return differing(placement, verdict.model, specification, logs)


def specification_of(program: Program, bounds: dict[str, Any]) -> list[str]:
    """The relations that look at all locations."""
    names = [bounds["invariant"]] if "invariant" in bounds else ["pre", "post"]
    return sorted({*names, *({"verdict", "split", "pre", "post"} & {rule.head.relation for rule in program.core()})})


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_happens_live(name: str) -> None:
    """At each location and time there is what the counterexample's run has, down to the row that breaks it."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    text, bounds = FOUND[name]
    program = Program.parse(text)
    verdict = program.verify(**bounds)
    assert verdict.violation_exists
    assert happened(program, verdict, bounds["nodes"], specification_of(program, bounds)) == []
