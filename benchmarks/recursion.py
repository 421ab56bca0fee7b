"""Same generation and points-to: rules, random inputs and oracles, the same for every side.

Nothing but Python: each side imports it in a process of its own.  The oracles share nothing with any side: who is of
one generation has the same depth in a tree; what variables point to are words of bits that grow until nothing changes.

Source: ``docs/design/testing.md``, "How the benchmarks measure".
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

Facts = dict[str, list[tuple[int, ...]]]

FIELDS = 4
SEED = 42

RULES = {
    "same": """
        same(X, Y) :- parent(P, X), parent(P, Y), X != Y;
        same(X, Y) :- parent(A, X), same(A, B), parent(B, Y);
    """,
    "points": """
        points(V, O) :- new(V, O);
        points(V, O) :- copy(V, W), points(W, O);
        field(O, F, P) :- store(V, F, W), points(V, O), points(W, P);
        points(V, P) :- load(V, W, F), points(W, O), field(O, F, P);
    """,
}
"""By the relation that is asked for; Dedalus's, and with full stops clingo's."""


def facts(kind: str, count: int) -> Facts:
    """For ``same`` a tree of so many nodes, for ``points`` a program of so many variables.

    >>> facts("same", 4)["parent"], sorted(facts("points", 40))
    ([(0, 1), (0, 2), (0, 3)], ['copy', 'load', 'new', 'store'])
    """
    choose = random.Random(f"{SEED} {kind} {count}")
    if kind == "same":
        return {
            "parent": [(choose.randrange(max(0, node // 2 - 3), (node + 1) // 2), node) for node in range(1, count)]
        }
    variables = range(count)

    def some(share: float, *ranges: range) -> list[tuple[int, ...]]:
        drawn = (tuple(map(choose.choice, ranges)) for _ in range(int(count * share)))
        return list(dict.fromkeys(drawn))

    fields = range(FIELDS)
    return {
        "new": [(variable, number) for number, variable in enumerate(variables[::5])],
        "copy": some(1.0, variables, variables),
        "store": some(0.15, variables, fields, variables),
        "load": some(0.15, variables, variables, fields),
    }


def oracle(kind: str, known: Facts) -> set[tuple[int, int]]:
    """What is to come out."""
    return _generations(known) if kind == "same" else _pointers(known)


def _generations(known: Facts) -> set[tuple[int, int]]:
    depth = {0: 0}
    for parent, child in known["parent"]:
        depth[child] = depth[parent] + 1
    levels = defaultdict(list)
    for node, level in depth.items():
        levels[level].append(node)
    return {(x, y) for nodes in levels.values() for x in nodes for y in nodes if x != y}


def _pointers(known: Facts) -> set[tuple[int, int]]:
    points: dict[int, int] = defaultdict(int)
    content: dict[tuple[int, int], int] = defaultdict(int)
    for variable, number in known["new"]:
        points[variable] |= 1 << number
    before: object = None
    while before != (total := sum(map(int.bit_count, points.values())) + sum(map(int.bit_count, content.values()))):
        before = total
        for to, source in known["copy"]:
            points[to] |= points[source]
        for base, name, source in known["store"]:
            for number in _bits(points[base]):
                content[number, name] |= points[source]
        for to, base, name in known["load"]:
            for number in _bits(points[base]):
                points[to] |= content[number, name]
    return {(variable, number) for variable, bits in points.items() for number in _bits(bits)}


def _bits(word: int) -> list[int]:
    return [number for number in range(word.bit_length()) if word >> number & 1]


# ------------------------------------------------------------------------------------------------------------ by hand


def by_hand(kind: str, known: Facts) -> set[tuple[int, int]]:
    """The same in plain Python, semi-naive, with dictionaries and sets."""
    return same(known) if kind == "same" else points(known)


def same(known: Facts) -> set[tuple[int, int]]:
    """Children of the same, then children of two that are of one generation."""
    children: dict[int, list[int]] = {}
    for parent, child in known["parent"]:
        children.setdefault(parent, []).append(child)
    fresh = {(x, y) for those in children.values() for x in those for y in those if x != y}
    found = set(fresh)
    while fresh:
        fresh = {(x, y) for a, b in fresh for x in children.get(a, ()) for y in children.get(b, ())} - found
        found |= fresh
    return found


def points(known: Facts) -> set[tuple[int, int]]:
    """What a variable newly points to goes where it is copied, stored and loaded."""
    targets, bases, values, loads = (defaultdict(list) for _ in range(4))
    for to, source in known["copy"]:
        targets[source].append(to)
    for base, name, source in known["store"]:
        bases[base].append((name, source))
        values[source].append((base, name))
    for to, base, name in known["load"]:
        loads[base].append((to, name))
    points: dict[int, set[int]] = defaultdict(set)
    content: dict[tuple[int, int], set[int]] = defaultdict(set)
    readers: dict[tuple[int, int], set[int]] = defaultdict(set)
    waiting: list[tuple[int, ...]] = []

    def put(variable: int, number: int) -> None:
        if number not in points[variable]:
            points[variable].add(number)
            waiting.append((variable, number))

    def fill(holder: int, name: int, number: int) -> None:
        if number not in content[holder, name]:
            content[holder, name].add(number)
            for reader in readers[holder, name]:
                put(reader, number)

    for variable, number in known["new"]:
        put(variable, number)
    while waiting:
        variable, number = waiting.pop()
        for to in targets[variable]:
            put(to, number)
        for name, source in bases[variable]:
            for stored in tuple(points[source]):
                fill(number, name, stored)
        for base, name in values[variable]:
            for holder in tuple(points[base]):
                fill(holder, name, number)
        for to, name in loads[variable]:
            readers[number, name].add(to)
            for stored in tuple(content[number, name]):
                put(to, stored)
    return {(variable, number) for variable, numbers in points.items() for number in numbers}


# -------------------------------------------------------------------------------------------------------------- a side


def side(engine: Callable[[str, Facts], tuple[int, Callable[[], Iterable[Iterable[int]]]]], measured: Any) -> None:
    """Measure what the command line says, and print the figures as JSON; *measured* is ``closure_side.measured``."""
    arguments = json.loads(sys.argv[1])
    kind, known = arguments["kind"], facts(arguments["kind"], arguments["count"])
    wanted = oracle(kind, known)
    print(json.dumps(measured(lambda facts: engine(kind, facts), known, lambda *_: wanted, 0)), flush=True)
