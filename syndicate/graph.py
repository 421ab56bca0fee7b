"""Graphs of what depends on what: reachability, shortest paths, components and levels.

Rules, collections and the nodes of circuits depend on each other; strata, cycles and slices are questions to such a
graph.  It is a function that gives the neighbours of a node, or edges to them with something of their own; results are
in an order that follows from that of the arguments alone.  All take time in proportion to the edges.

Source: Tarjan 1972.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
E = TypeVar("E")


def reached(starts: Iterable[N], after: Callable[[N], Iterable[N]]) -> dict[N, None]:
    """The nodes from which one starts, and all that can be come to from them: a set with an order.

    >>> list(reached([3], lambda n: [n // 2] if n else []))
    [3, 1, 0]
    """
    nodes = dict.fromkeys(starts)
    pending = list(nodes)
    while pending:
        for node in after(pending.pop()):
            if node not in nodes:
                nodes[node] = None
                pending.append(node)
    return nodes


def shortest(start: N, end: N, edges: Callable[[N], Iterable[tuple[N, E]]]) -> list[E] | None:
    """The edges of a shortest path, or nothing; *edges* gives neighbours, each with the edge to it."""
    came: dict[N, tuple[N, E] | None] = {start: None}
    pending = deque([start])
    while pending and end not in came:
        node = pending.popleft()
        for neighbour, edge in edges(node):
            if neighbour not in came:
                came[neighbour] = (node, edge)
                pending.append(neighbour)
    if end not in came:
        return None
    path: list[E] = []
    while (step := came[end]) is not None:
        end, edge = step
        path.append(edge)
    return path[::-1]


def components(nodes: Iterable[N], after: Callable[[N], Iterable[N]]) -> Iterator[list[N]]:
    """The strongly connected components, each after those that it leads to (Tarjan's algorithm, without recursion).

    >>> list(components("abc", {"a": "b", "b": "ac", "c": ""}.__getitem__))
    [['c'], ['b', 'a']]
    """
    number: dict[N, int] = {}
    low: dict[N, int] = {}
    unfinished: dict[N, None] = {}
    for root in nodes:
        if root in number:
            continue
        work: list[tuple[N, Iterator[N]]] = [(root, iter(after(root)))]
        number[root] = low[root] = len(number)
        unfinished[root] = None
        while work:
            node, following = work[-1]
            for neighbour in following:
                if neighbour not in number:
                    number[neighbour] = low[neighbour] = len(number)
                    unfinished[neighbour] = None
                    work.append((neighbour, iter(after(neighbour))))
                    break
                if neighbour in unfinished:
                    low[node] = min(low[node], number[neighbour])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component = []
                    while True:
                        member, _ = unfinished.popitem()
                        component.append(member)
                        if member == node:
                            break
                    yield component


def component_numbers(nodes: Iterable[N], after: Callable[[N], Iterable[N]]) -> dict[N, int]:
    """The number of each node's component, which is larger than those of the components that it leads to.

    >>> component_numbers("abc", {"a": "b", "b": "ac", "c": ""}.__getitem__)
    {'c': 0, 'b': 1, 'a': 1}
    """
    return {node: number for number, members in enumerate(components(nodes, after)) for node in members}


def levels(below: Mapping[N, Iterable[tuple[N, int]]]) -> dict[N, int]:
    """For each node the most that edges add up to on a path down from it; those within a component do not count.

    All nodes are keys of *below*; an edge is a node and what it adds.

    >>> levels({"a": [("b", 1), ("c", 0)], "b": [("c", 1)], "c": []})
    {'c': 0, 'b': 1, 'a': 2}
    """
    level: dict[N, int] = {node: 0 for node, edges in below.items() if not edges}
    waiting = {node: edges for node, edges in below.items() if edges}
    while waiting:
        before = len(waiting)
        for node, edges in [*waiting.items()]:
            highest = 0
            for under, more in edges:
                if (there := level.get(under)) is None:
                    break
                highest = max(highest, there + more)
            else:
                level[node] = highest
                del waiting[node]
        if (before - len(waiting)) * 4 < len(waiting):  # so that all of it takes time in proportion to the edges
            break
    for component in components(waiting, lambda node: [under for under, _ in waiting[node] if under in waiting]):
        edges = [edge for node in component for edge in below[node] if edge[0] in level]
        level.update(dict.fromkeys(component, max((level[under] + more for under, more in edges), default=0)))
    return level
