"""Bloom's workloads: each a program, ticked, and its result compared with an oracle that shares nothing with it."""

# ruff: noqa: B015  # a rule, and rows put in, are comparisons to Python

from __future__ import annotations

import gc
import heapq
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from benchmarks.flow_data import closure
from benchmarks.graphs import Edge, graph, more, size
from syndicate.bloom import Bloom, agg, bloom, lmin, lset, scratch, table
from syndicate.lattice import Clock, Map, Max, Set

MORE = 9
"""Ticks with one more edge."""

BATCHES = 20
"""Of merges: their median is the figure."""

Body = Any


class Closure(Bloom):
    """Transitive closure in tables."""

    link = table(["from", "to"])
    path = table(["from", "to"])

    @bloom
    def rules(self: Body) -> None:
        """Links, and a link before a path."""
        self.path <= self.link
        self.path <= (self.link * self.path).pairs(("to", "from"), lambda link, p: (link.from_, p.to))


class Shortest(Bloom):
    """The least cost of each pair, as a lattice in the rows."""

    link = table(["from", "to"], ["cost"])
    path = table(["from", "to"], ["cost"], cost=lmin)

    @bloom
    def rules(self: Body) -> None:
        """The same, with costs."""
        self.path <= self.link
        self.path <= (self.link * self.path).pairs(
            ("to", "from"), lambda link, p: (link.from_, p.to, p.cost + link.cost)
        )


class Sets(Bloom):
    """Transitive closure in sets."""

    link = lset()
    path = lset()

    @bloom
    def rules(self: Body) -> None:
        """Links, and a path before a link."""
        self.path <= self.link
        self.path <= self.path.eqjoin(self.link, {1: 0}, lambda p, link: (p[0], link[1]))


class Insert(Bloom):
    """Rows into a table."""

    item = table(["k"], ["v"])


class Join(Insert):
    """Each joined with one of a hundred others."""

    name = table(["v"], ["name"])
    named = scratch(["k"], ["name"])

    @bloom
    def joined(self: Body) -> None:
        """By the column v."""
        self.named <= (self.item * self.name).pairs(("v", "v"), lambda i, n: (i.k, n.name))


class Group(Insert):
    """Counted by the column v."""

    tally = scratch(["v"], ["count"])

    @bloom
    def counted(self: Body) -> None:
        """The rows themselves."""
        self.tally <= self.item.group(["v"], agg.count())


class Together(Join):
    """Joined, and then counted by name."""

    tally = scratch(["name"], ["count"])

    @bloom
    def counted(self: Body) -> None:
        """What was joined."""
        self.tally <= self.named.group(["name"], agg.count())


TICKED: dict[str, type[Bloom]] = {"insert": Insert, "join": Join, "group": Group, "together": Together}
NAMES = 100


def wrong(what: str) -> SystemExit:
    """A result is not the oracle's."""
    return SystemExit(f"the result is wrong: {what}")


def cost(edge: Edge) -> int:
    """Of an edge: 1 to 10, from its ends alone."""
    return 1 + (7 * edge[0] + 3 * edge[1]) % 10


def least(edges: Iterable[Edge]) -> Iterator[tuple[int, int, int]]:
    """The oracle of the shortest paths, each of one edge at least: Dijkstra from each node."""
    onwards: dict[int, list[Edge]] = {}
    for edge in edges:
        onwards.setdefault(edge[0], []).append(edge)
    for start, first in onwards.items():
        found: dict[int, int] = {}
        ahead = [(cost(edge), edge[1]) for edge in first]
        heapq.heapify(ahead)
        while ahead:
            so_far, node = heapq.heappop(ahead)
            if node not in found:
                found[node] = so_far
                for edge in onwards.get(node, ()):
                    heapq.heappush(ahead, (so_far + cost(edge), edge[1]))
        yield from ((start, end, total) for end, total in found.items())


def _check(workload: str, program: Body, edges: list[Edge]) -> None:
    if workload == "closure":
        right = sorted(map(tuple, program.path)) == sorted(closure([edges], size(edges)))
    else:
        right = sorted((row[0], row[1], row[2].reveal()) for row in program.path) == sorted(least(edges))
    if not right:
        raise wrong(f"{workload} of {len(edges)} edges")


def paths(workload: str, kind: str, edges: int) -> dict[str, float]:
    """Seconds from making the program to the end of the first tick; milliseconds of ticks with one more edge.

    A chain gets edges at its end and in front of it, a random graph edges between its nodes, one a tick.
    """
    known = graph(kind, edges, edges // 2)
    if kind == "chain":  # its first node is not 0, so that there can be one in front
        known = [(a + MORE, b + MORE) for a, b in known]
        last = known[-1][1]
        groups = {
            "end": [(last + at, last + at + 1) for at in range(MORE)],
            "front": [(at - 1, at) for at in range(MORE, 0, -1)],
        }
    else:
        groups = {"more": more(known, MORE)}
    row: Callable[[Edge], tuple[int, ...]] = tuple if workload == "closure" else lambda edge: (*edge, cost(edge))
    cls: Callable[[], Body] = Closure if workload == "closure" else Shortest
    given = list(map(row, known))
    gc.collect()
    begin = perf_counter()
    program = cls()
    program.link <= given
    program.tick()
    found: dict[str, float] = {"first": perf_counter() - begin, "facts": len(program.path)}
    _check(workload, program, known)
    for name, fresh in groups.items():
        times = []
        for edge in fresh:
            given = [row(edge)]
            begin = perf_counter()
            program.link <= given
            program.tick()
            times.append((perf_counter() - begin) * 1e3)
        known = known + fresh
        found |= {name: statistics.median(times), f"{name} worst": max(times)}
    _check(workload, program, known)
    return found


def sets(kind: str, edges: int, *, semi_naive: bool) -> dict[str, float]:
    """Seconds from making the program to the end of the first tick."""
    known = graph(kind, edges, 0)
    gc.collect()
    begin = perf_counter()
    program: Body = Sets(semi_naive=semi_naive)
    program.link <= known
    program.tick()
    seconds = perf_counter() - begin
    elements = sorted(program.path.value.reveal())
    if elements != sorted(closure([known], size(known))):
        raise wrong(f"lset of {edges} edges")
    return {"first": seconds, "facts": len(elements)}


def ticks(workload: str, count: int) -> dict[str, float]:
    """Ticks a second, with one row in before each."""
    program: Body = TICKED[workload]()
    if workload in ("join", "together"):
        program.name <= [(v, f"n{v}") for v in range(NAMES)]
    program.tick()
    rows = [(k, k % NAMES) for k in range(count)]
    gc.collect()
    begin = perf_counter()
    for row in rows:
        program.item <= [row]
        program.tick()
    seconds = perf_counter() - begin
    right = sorted(map(tuple, program.item)) == rows
    if workload in ("join", "together"):
        right &= sorted(map(tuple, program.named)) == [(k, f"n{v}") for k, v in rows]
    if workload in ("group", "together"):
        of = Counter(f"n{v}" if workload == "together" else v for _, v in rows)
        right &= sorted(map(tuple, program.tally)) == sorted(of.items())
    if not right:
        raise wrong(f"{workload} after {count} ticks")
    return {"ticks": count / seconds}


def merges(lattice: str, entries: int, count: int) -> dict[str, float]:
    """Microseconds to merge one more element, or a greater value of one key, into a value of so many entries.

    Of ``clock``: to compare it with one that is greater in the last entry.
    """
    value: Any
    others: list[Any]
    good = False
    if lattice == "set":
        value, others = Set(range(entries)), [Set([entries + at]) for at in range(count)]
    elif lattice == "map":
        value = Map({key: Max(0) for key in range(entries)})
        others = [Map({at % entries: Max(1 + at)}) for at in range(count)]
    else:
        value = Clock(dict.fromkeys(range(entries), 1))
        others = [value.tick(entries - 1)] * count
    times = []
    gc.collect()
    for start in range(0, count, count // BATCHES):
        batch = others[start : start + count // BATCHES]
        begin = perf_counter()
        if lattice == "clock":
            good = all(value <= one and not one <= value for one in batch)
        else:
            for one in batch:
                value = value.merge(one)
        times.append((perf_counter() - begin) / len(batch) * 1e6)
    if lattice == "set":
        right = set(value.reveal()) == set(range(entries + count))
    elif lattice == "clock":
        right = good
    else:
        last = {at % entries: 1 + at for at in range(count)}
        right = {key: one.reveal() for key, one in value.reveal().items()} == dict.fromkeys(range(entries), 0) | last
    if not right:
        raise wrong(f"{lattice} of {entries}")
    return {"us": statistics.median(times)}


FUNCTIONS: dict[str, Callable[..., dict[str, float]]] = {"paths": paths, "sets": sets, "ticks": ticks, "merges": merges}


def main() -> None:
    """Measure what the command line says: a function, and its arguments as JSON."""
    print(json.dumps(FUNCTIONS[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
