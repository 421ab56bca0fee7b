"""What ``verify`` finds happens live: locations step by themselves, over a network that does what the verdict says.

The locations are those of agents (:class:`~syndicate.dedalus.live.location.Local`), each with its own rules, clock and
state; between them messages are lost and late, a second time or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Model, Program, Verdict
from syndicate.dedalus.ast import Constant
from syndicate.dedalus.live.event_log import EventLog
from syndicate.dedalus.live.location import Local
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.timeline import Message
from tests.strategies import examples

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


STEPS = [
    "q(L, X) :- p(L, X);",
    "q(L, X) :- p(L, X), notin r(L, X);",
    "q(L, X) :- r(L, X), notin p(L, X);",
    "q(L, count<X>) :- p(L, X);",
    "q(L, N) :- p(L, X)@N, X > 1;",
    "p(L, X)@next :- p(L, X);",
    "p(L, X)@next :- p(L, X), notin q(L, X);",
    "p(L, X)@next :- r(L, X);",
    "r(L, X)@next :- r(L, X);",
    "p(L, X + 1)@next :- r(L, X), X < 4;",
]
SENDS = [
    "r(M, X)@async :- p(L, X), member(L, M);",
    "r(M, X)@async :- q(L, X), member(L, M);",
    "r(M, X)@async :- p(L, X), member(L, M), notin r(L, X);",
    "p(M, X)@async :- r(L, X), member(L, M);",
    "p(M, N)@async :- q(L, X)@N, member(L, M);",
    "r(M, X)@async :- q(L, X), member(L, M), X > 1;",
]
PROMISES = [
    'pre(X) :- p("a", X)@1; post(X) :- p("b", X);',
    'pre(X) :- p(_, X); post(X) :- r("c", X);',
    'pre(X) :- p("a", X); post(X) :- r(_, X), p(_, X);',
    'pre(X) :- p("a", X)@1; post(X) :- p("a", X), notin q("b", X);',
]
NEVER = [
    "bad(L) :- q(L, X), r(L, X);",
    'bad("a") :- p("a", X), p("b", X), notin p("c", X);',
    'bad("b") :- r("b", X), notin r("c", X);',
    'bad("c") :- q("c", X), q("a", Y), X != Y;',
]
WRONG = [
    {"eff": 3},
    {"eff": 2, "late": 1},
    {"eff": 0, "late": 2},
    {"eff": 0, "again": 2},
    {"eff": 0, "crashes": 1},
    {"eff": 0, "stops": 1},
    {"eff": 0, "restarts": 1},
    {"eff": 0, "pauses": 1},
    {"eff": 0, "partitions": 1},
    {"eff": 0, "late": 1, "restarts": 1, "costs": {"late": 2}},
]


@st.composite
def located(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A random program of three locations, and a question about it."""
    facts = draw(
        st.lists(st.sampled_from(['p("a", 1)@1;', 'p("b", 2)@1;', 'q("a", 2)@2;', 'p("c", 1)@2;']), min_size=1)
    )
    pieces = [draw(st.lists(st.sampled_from(some), min_size=1, max_size=4, unique=True)) for some in (STEPS, SENDS)]
    never = draw(st.booleans())
    lines = [f"{MEMBERS} persist[member, 2];", *sorted(set(facts)), *pieces[0], *pieces[1]]
    lines.append(draw(st.sampled_from(NEVER if never else PROMISES)))
    bounds: dict[str, Any] = {"eot": 4, "nodes": PLACES, **draw(st.sampled_from(WRONG))}
    return "\n".join(lines), {**bounds, "invariant": "bad"} if never else bounds


def spans_of(model: Model, place: str) -> list[range]:
    """The times at which a location is at work, each instance of it by itself; one that pauses goes on with the
    same.
    """
    end = model.until + 1
    spans = [range(model.start, end)]
    for outage in model.net.down if model.net is not None else ():
        if outage.node == place:
            spans = [range(model.start, outage.since), range(end if outage.to is None else outage.to, end)]
    return spans


def differing(
    placement: Placement, model: Model, specification: list[str], logs: dict[str, list[EventLog]]
) -> list[tuple[object, ...]]:
    """Where locations that were at work had something else than a run has."""
    results: list[tuple[object, ...]] = []
    for place, recorded in logs.items():
        for span, log in zip(spans_of(model, place), [*recorded, recorded[-1]], strict=False):
            for time in span:
                for name, rows in model.at(time).items():
                    expected = sorted((row for row in rows if placement.of(name, row) in (None, place)), key=repr)
                    here = name in placement.arities and name not in specification
                    if here and expected != log.at(name, time):
                        results.append((time, name, place, expected, log.at(name, time)))
    return results


def happened(
    program: Program, verdict: Verdict, places: Iterable[str], specification: list[str]
) -> list[tuple[object, ...]]:
    """What differs at the locations, that step apart while the network does what a counterexample says."""
    placement = Placement(program.statements, specification)
    locations = {place: [Local(placement, place, recorded=True)] for place in places}
    keeping = {outage.node for outage in verdict.net.down if outage.keeps}
    coming: dict[int, list[Message]] = {}
    for time in range(verdict.model.start, verdict.model.until + 1):
        for place, spans in locations.items():
            if time == spans_of(verdict.model, place)[-1].start > verdict.model.start and place not in keeping:
                spans.append(Local(placement, place, start=time, recorded=True))
        for message in coming.pop(time, []):
            locations[str(message.row[0])][-1].arrive(message.relation, message.row, message.sent)
        for place, spans in locations.items():
            if not any(time in span for span in spans_of(verdict.model, place)):
                continue
            for message in spans[-1].step(time):
                receiver = message.row[0]
                if not verdict.net.lost(place, receiver, time):
                    due = [time + 1 + by for by in verdict.net.delays(place, receiver, time)]
                    for at in verdict.net.received(receiver, due):
                        coming.setdefault(at, []).append(message)
    logs = {place: [one.event_log() for one in spans] for place, spans in locations.items()}
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


def waited_for(program: Program, verdict: Verdict) -> bool:
    """Whether a fact with a time comes while its location stands still: there a live clock waits for it."""
    heads = [rule.head for rule in program.core() if rule.fact and rule.head.terms]
    current = [(Constant(one.node), one) for one in verdict.net.down if one.keeps]
    return any(
        head.terms[0] == node and isinstance(head.time, int) and one.covers(head.time)
        for head in heads
        for node, one in current
    )


def repeated(text: str, bounds: dict[str, Any]) -> tuple[Program, Verdict] | None:
    """A program and a verdict with a counterexample, which `run` repeats, and which is drawn; None if there is none."""
    program = Program.parse(text)
    if program.check():
        return None
    verdict = program.verify(**bounds)
    if not verdict.violation_exists:
        return None
    again = program.run(1, bounds["eot"], schedule=json.loads(json.dumps(verdict.schedule())))
    assert again.to_json() == verdict.model.to_json()
    for one in verdict.broken:
        assert again.at(one.time).holds(one.relation, one.row) is one.never
    for picture in (verdict.model.diagram(), verdict.model.diagram("svg")):
        assert all(place in picture for place in bounds["nodes"])
    return program, verdict


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(located())
def test_what_is_found_of_random_programs_happens_live(asked: tuple[str, dict[str, Any]]) -> None:
    """Each counterexample is repeated by `run` and by locations that step by themselves, and is drawn."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    text, bounds = asked
    if (there := repeated(text, bounds)) is not None:
        event(f"broken by {sorted({word.partition('(')[0] for word in there[1].min_counterexamples[0]})}")
        if not waited_for(*there):
            assert happened(*there, bounds["nodes"], specification_of(there[0], bounds)) == []
