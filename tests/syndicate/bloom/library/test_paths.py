"""Shortest paths: the same as of a search of its own, link by link, in any order."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from heapq import heappop, heappush
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom.library.paths import Paths, Routes
from tests.strategies import examples

LINKS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=15)


def search(links: list[tuple[int, int, int]], start: int) -> dict[int, int]:
    """Dijkstra's, for paths of at least one link."""
    results: dict[int, int] = {}
    queue = [(cost, end) for begin, end, cost in links if begin == start]
    queue.sort()
    while queue:
        cost, place = heappop(queue)
        if place not in results:
            results[place] = cost
            for begin, end, more in links:
                if begin == place:
                    heappush(queue, (cost + more, end))
    return results


@given(links=LINKS, batch=st.integers(1, 5))
@settings(max_examples=examples(40), deadline=None)
def test_costs_are_those_of_a_search(links: list[tuple[int, int, int]], batch: int) -> None:
    """Whatever comes with whatever; and after each batch, of what there is by then."""
    p = Paths()
    for at in range(0, len(links), batch):
        p.link <= links[at : at + batch]
        p.tick()
        for start in range(6):
            costs = {end: p.cost(start, end) for end in range(6) if p.cost(start, end) is not None}
            assert costs == search(links[: at + batch], start)


@given(links=LINKS)
@settings(max_examples=examples(25), deadline=None)
def test_routes_cost_what_paths_do(links: list[tuple[int, int, int]]) -> None:
    """A way follows links, and costs as little as there is; links that cost nothing lead nobody in circles."""
    q = Routes()
    q.link <= links
    q.tick()
    least: dict[tuple[int, int], int] = {}
    for start, end, cost in links:
        least[start, end] = min(cost, least.get((start, end), cost))
    for start in range(6):
        for end in range(6):
            way = q.way(start, end)
            assert bool(way) == (q.cost(start, end) is not None)
            if way:
                assert (way[0], way[-1]) == (start, end)
                assert sum(least[a, b] for a, b in pairwise(way)) == q.cost(start, end)


@pytest.mark.parametrize("cls", [Paths, Routes])
def test_paths_need_no_coordination(cls: type[Paths]) -> None:
    """A minimum in a column is monotone: there is no point of order, and one stratum."""
    p = cls()
    assert p.calm().confluent
    assert {p.stratum(one) for one in p.collections()} == {0}


def test_no_route_goes_in_a_circle() -> None:
    """Of equally cheap ways, that with the fewest steps: a circle of links that cost nothing is not taken."""
    q = Routes()
    q.link <= [("a", "b", 0), ("b", "a", 0), ("a", "c", 1), ("b", "c", 1)]
    q.tick()
    row = q.step["a", "c"]
    assert row is not None
    assert row.best.reveal() == (1, 1, "c")
    assert (q.way("a", "c"), q.way("a", "a"), q.way("c", "a")) == (["a", "c"], ["a", "b", "a"], [])
