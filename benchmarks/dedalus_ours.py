"""Dedalus's workloads, each compared with an oracle or with what is known; and the same by hand, in plain Python."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from benchmarks.closure_side import Closed, measured
from benchmarks.dedalus_cases import COPYING, PLAIN, PUBLIC
from benchmarks.flow_data import closure as oracle
from benchmarks.graphs import Edge, graph, size
from benchmarks.recursion import RULES, Facts, by_hand, facts
from benchmarks.recursion import oracle as expected
from syndicate.dedalus import Program

Row = tuple[int, int]
Events = dict[int, dict[str, list[tuple[int, ...]]]]

FRAMES = """
    p(K, V)@next :- p(K, V), notin del_p(K, V);
    q(V)@next :- q(V);
    r(K, V) :- p(K, V), q(V);
"""
"""State that stays until it is deleted, and a join of it."""

PATHS = """
    path(X, Y) :- edge(X, Y);
    path(X, Z) :- edge(X, Y), path(Y, Z);
"""

VALUES = 1_000
WANTED = 100
"""So many of the values of p are in q: a tenth of its rows is joined."""

SMALL = 5_000

LOOKS = 10
"""How many timesteps of a run are compared."""


def events(facts: int, steps: int, every: int) -> Events:
    """Facts at the first timestep; then, at each so many, one row comes and one that is joined goes."""
    found: Events = {
        1: {
            "p": [(key, key % VALUES) for key in range(facts)],
            "q": [(value,) for value in range(0, VALUES, VALUES // WANTED)],
        }
    }
    for number, time in enumerate(range(every, steps + 1, every)):
        gone = number * WANTED % facts
        found[time] = {"p": [(facts + number, time % VALUES)], "del_p": [(gone, gone % VALUES)]}
    return found


def looks(steps: int) -> list[int]:
    """The timesteps that are compared."""
    return sorted({1, 2, steps, *range(steps // LOOKS, steps + 1, steps // LOOKS)})


def joined(given: Events, time: int) -> list[Row]:
    """The oracle: what the join holds at a time, from when each row came and went."""
    since: dict[Row, int] = {}
    until: dict[Row, int] = {}
    for at, relations in given.items():
        for name, times in (("p", since), ("del_p", until)):
            for row in relations.get(name, ()):
                times.setdefault((row[0], row[1]), at)
    wanted = {value for (value,) in given[1]["q"]}
    return sorted(row for row, at in since.items() if at <= time <= until.get(row, time) and row[1] in wanted)


def frames(engine: str, facts: int, steps: int, every: int) -> dict[str, float]:
    """Seconds from the text and the events to the end of the run."""
    given = events(facts, steps, every)
    run = copied if engine == COPYING else ran
    gc.collect()
    begin = perf_counter()
    at = run(given, steps)
    seconds = perf_counter() - begin
    for time in looks(steps):
        if sorted(at(time)) != joined(given, time):
            raise SystemExit(f"the join is wrong at {time}")
    return {"s": seconds, "joined": len(joined(given, steps))}


def ran(given: Events, steps: int) -> Callable[[int], Iterable[Row]]:
    """By the program."""
    model: Any = Program.parse(FRAMES).run(1, steps, events=given)
    return lambda time: model.at(time)["r"]


def copied(given: Events, steps: int) -> Callable[[int], Iterable[Row]]:
    """By copying all that stays from each timestep to the next."""
    seen: dict[int, list[Row]] = {}
    wanted = set(looks(steps))
    p: set[Any] = set()
    q: set[Any] = set()
    for time in range(1, steps + 1):
        here = given.get(time, {})
        p.update(here.get("p", ()))
        q.update(here.get("q", ()))
        gone = set(here.get("del_p", ()))
        r = [row for row in p if (row[1],) in q]
        if time in wanted:
            seen[time] = r
        p = {row for row in p if row not in gone}
        q = set(q)
    return seen.__getitem__


def closure(engine: str, kind: str, edges: int, nodes: int) -> dict[str, float]:
    """Seconds from the text and the edges to the number of pairs."""
    known = graph(kind, edges, nodes)
    return measured(semi_naive if engine == PLAIN else paths, known, oracle, size(known))


def paths(edges: list[Edge]) -> Closed:
    """By the program, in one timestep."""
    model: Any = Program.parse(PATHS).run(1, 1, events={1: {"edge": edges}})
    return len(model.intervals["path"]), lambda: model.at(1)["path"]


def semi_naive(edges: list[Edge]) -> Closed:
    """By hand: new paths, and an edge onwards, until there is no new path."""
    onwards: dict[int, list[int]] = {}
    for a, b in edges:
        onwards.setdefault(a, []).append(b)
    found, fresh = set(edges), set(edges)
    while fresh:
        fresh = {(a, c) for a, b in fresh for c in onwards.get(b, ())} - found
        found |= fresh
    return len(found), lambda: found


def recursion(engine: str, kind: str, count: int) -> dict[str, float]:
    """Seconds from the text and the facts to the number of rows."""

    def plainly(known: Facts) -> Closed:
        found = by_hand(kind, known)
        return len(found), lambda: found

    def ran_once(known: Facts) -> Closed:
        model: Any = Program.parse(RULES[kind]).run(1, 1, events={1: known})
        return len(model.intervals[kind]), lambda: model.at(1)[kind]

    known = facts(kind, count)
    wanted = expected(kind, known)
    return measured(plainly if engine == PLAIN else ran_once, known, lambda *_: wanted, 0)


def verdict(_engine: str, **case: Any) -> dict[str, float]:
    """Seconds to decide whether faults can break a protocol, and by which smallest ones."""
    program = Program.load(PUBLIC / case["program"])
    gc.collect()
    begin = perf_counter()
    found = program.verify(eot=case["eot"], eff=case["eff"], crashes=case["max_crashes"], nodes=case["nodes"])
    seconds = perf_counter() - begin
    report = found.to_json()
    if any(report[name] != case[name] for name in ("violation_exists", "min_faults", "min_counterexamples")):
        raise SystemExit(f"the verdict is wrong: {found}")
    return {"s": seconds}


def exploration(_engine: str, **case: Any) -> dict[str, float]:
    """Seconds to find all outcomes."""
    program = Program.load(PUBLIC / case["program"])
    relations = None if case["relations"] == "all" else case["relations"]
    confluence = case["mode"] == "confluence"
    options: dict[str, Any] = {"mode": "confluence", "final": case["final"]} if confluence else {"mode": "all-models"}
    if not confluence:
        options["schedule"] = {"default": case["default"]}
    gc.collect()
    begin = perf_counter()
    found = program.explore(case["start"], case["horizon"], relations=relations, **options)
    seconds = perf_counter() - begin
    wanted = case["finals"] if confluence else case["models"]
    made: Any = found.to_json()["finals" if confluence else "models"]
    if _sorted(made) != _sorted(wanted):
        raise SystemExit(f"the outcomes are wrong: {len(made)} of {len(wanted)}")
    return {"s": seconds, "outcomes": len(wanted)}


def _sorted(outcomes: list[Any]) -> list[str]:
    return sorted(json.dumps(outcome, sort_keys=True) for outcome in outcomes)


FUNCTIONS: dict[str, Callable[..., dict[str, float]]] = {
    "frames": frames,
    "closure": closure,
    "recursion": recursion,
    "verdict": verdict,
    "exploration": exploration,
}


def warm() -> None:
    """Run something smaller first: of ours, some modules are imported by the first program and by the first columns."""
    ran(events(SMALL, 20, 10), 20)
    paths(graph("chain", 10, 0))
    recursion("ours", "points", 40)


def main() -> None:
    """Measure what the command line says: a function, an engine, and the arguments of a case as JSON."""
    if sys.argv[2] == "ours":
        warm()
    print(json.dumps(FUNCTIONS[sys.argv[1]](sys.argv[2], **json.loads(sys.argv[3]))))


if __name__ == "__main__":
    main()
