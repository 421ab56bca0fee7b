"""What ``verify`` finds happens live: locations step by themselves, over a network that does what the verdict says.

The locations are those of agents (:class:`~syndicate.dedalus.live.local.Local`), each with its own rules, clock and
state; between them messages are lost and late, a second time or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from syndicate.dedalus import Program, Verdict
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
    "relay, loss to the end": (RELAY, {"eot": 4, "eff": 5, "nodes": PLACES}),
    "twice": (COUNTED, {"eot": 5, "eff": 0, "again": 2, "nodes": PLACES, "invariant": "bad"}),
}


def happened(program: Program, verdict: Verdict, places: Iterable[str], specification: list[str]) -> list[Any]:
    """What is at the locations, at each time, that step apart while the network does what a counterexample says."""
    placement = Placement(program.statements, specification)
    until = verdict.model.until
    locations = {place: Local(placement, place, recorded=True) for place in places}
    coming: dict[int, list[Message]] = {}
    for time in range(verdict.model.start, until + 1):
        for message in coming.pop(time, []):
            locations[str(message.row[0])].arrive(message.relation, message.row, message.sent)
        for place, one in locations.items():
            for message in one.step(time):
                receiver = message.row[0]
                if not verdict.net.lost(place, receiver, time):
                    for by in verdict.net.delays(place, receiver, time):
                        coming.setdefault(time + 1 + by, []).append(message)
    found = []
    for time in range(verdict.model.start, until + 1):
        for name, rows in verdict.model.at(time).items():
            if name in specification:
                continue
            for place, one in locations.items():
                told = sorted((row for row in rows if placement.of(name, row) in (None, place)), key=repr)
                if told != one.event_log().at(name, time):
                    found.append((time, name, place, told, one.event_log().at(name, time)))
    return found


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
