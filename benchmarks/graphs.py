"""Graphs to measure on, the same for every side: lists of edges of numbers.

Nothing but Python: each side imports it in a process of its own.

Source: ``docs/design/testing.md``, "How the benchmarks measure".
"""

from __future__ import annotations

import random

Edge = tuple[int, int]

SEED = 42
FANOUT = 15
"""Edges from each node of a directed acyclic graph."""


def graph(kind: str, edges: int, nodes: int) -> list[Edge]:
    """A ``chain``, or a ``random`` graph, or a ``dag``, of so many edges; *nodes* is for the random one.

    >>> graph("chain", 3, 4), len(set(graph("random", 40, 20))), len(graph("dag", 480, 0))
    ([(0, 1), (1, 2), (2, 3)], 40, 480)
    """
    if kind == "chain":
        return [(node, node + 1) for node in range(edges)]
    choose = random.Random(f"{SEED} {kind} {edges} {nodes}")
    if kind == "dag":
        return [
            (node, onwards)
            for node in range(edges // FANOUT)
            for onwards in choose.sample(range(node + 1, node + 1 + 2 * FANOUT), FANOUT)
        ]
    found: dict[Edge, None] = {}
    while len(found) < edges:
        edge = choose.randrange(nodes), choose.randrange(nodes)
        if edge[0] != edge[1]:
            found[edge] = None
    return list(found)


def size(edges: list[Edge]) -> int:
    """One more than the greatest node.

    >>> size([(0, 1), (1, 7)])
    8
    """
    return 1 + max(map(max, edges))


def more(edges: list[Edge], count: int) -> list[Edge]:
    """Edges between the nodes of a graph that it does not have."""
    known, nodes = set(edges), sorted({node for edge in edges for node in edge})
    choose = random.Random(f"{SEED} more")
    found: list[Edge] = []
    while len(found) < count:
        edge = choose.choice(nodes), choose.choice(nodes)
        if edge[0] != edge[1] and edge not in known:
            known.add(edge)
            found.append(edge)
    return found
