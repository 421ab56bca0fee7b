"""Reachability, paths, components and levels, against what follows from the closure of small random graphs."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from syndicate.graph import component_numbers, components, levels, reached, shortest

SIZE = 6
Edges = dict[int, list[tuple[int, int]]]

graphs = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.integers(0, 2)), max_size=3 * SIZE
).map(lambda edges: {node: [(end, more) for start, end, more in edges if start == node] for node in range(SIZE)})


def distances(graph: Edges) -> dict[tuple[int, int], int]:
    """The lengths of the shortest paths, by all paths without a repetition."""
    results = {(node, node): 0 for node in graph}
    for _ in graph:
        for (start, end), length in list(results.items()):
            for after, _ in graph[end]:
                results[start, after] = min(length + 1, results.get((start, after), SIZE))
    return results


@given(graphs, st.sets(st.integers(0, SIZE - 1)))
def test_reached(graph: Edges, starts: set[int]) -> None:
    """What the closure says; in the same order whenever it is asked for."""
    far = distances(graph)
    nodes = reached(starts, lambda node: (end for end, _ in graph[node]))
    assert set(nodes) == {end for start, end in far if start in starts}
    assert list(nodes) == list(reached(starts, lambda node: (end for end, _ in graph[node])))


@given(graphs)
def test_shortest(graph: Edges) -> None:
    """A path of edges that follow each other, as short as any; nothing if there is none."""
    far = distances(graph)
    for start, end in product(graph, graph):
        path = shortest(start, end, lambda node: ((after, (node, after)) for after, _ in graph[node]))
        if path is None:
            assert (start, end) not in far
        else:
            assert len(path) == far[start, end]
            assert [start, *(after for _, after in path)] == [*(before for before, _ in path), end]
            assert all(after in [one for one, _ in graph[before]] for before, after in path)


@given(graphs)
def test_components(graph: Edges) -> None:
    """Two nodes are together if each is reached from the other; what a component leads to was before it."""
    far = distances(graph)
    results = list(components(graph, lambda node: (end for end, _ in graph[node])))
    assert sorted(node for members in results for node in members) == sorted(graph)
    place = component_numbers(graph, lambda node: (end for end, _ in graph[node]))
    assert all(place[node] == number for number, members in enumerate(results) for node in members)
    for one, other in product(graph, graph):
        assert (place[one] == place[other]) == ((one, other) in far and (other, one) in far)
        assert (one, other) not in far or place[other] <= place[one]


@given(graphs)
def test_levels(graph: Edges) -> None:
    """The most along paths that leave components: the least numbers that all such edges allow."""
    far = distances(graph)
    wanted = dict.fromkeys(graph, 0)
    for _ in graph:
        for node in graph:
            for under, more in graph[node]:
                apart = (under, node) not in far
                for one in graph:
                    if apart and (one == node or ((one, node) in far and (node, one) in far)):
                        wanted[one] = max(wanted[one], wanted[under] + more)
    assert levels(graph) == wanted


def test_long_chains() -> None:
    """Nothing recurs: ten thousand nodes in a row are no matter."""
    chain = {node: [(node + 1, 1)] for node in range(10_000)} | {10_000: []}
    assert levels(chain)[0] == 10_000
    assert len(shortest(0, 10_000, lambda node: chain[node]) or ()) == 10_000
    assert len(reached([0], lambda node: [end for end, _ in chain[node]])) == 10_001
