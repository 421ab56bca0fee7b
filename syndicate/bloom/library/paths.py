"""Shortest paths by a minimum in a column: as links come, and become cheaper, costs go down, and never up.

``cost`` of ``path`` is an ``lmin``: the rows of a pair of places are one row, with the least cost that is known.  In
terms of sets of rows, a path of each cost would be another row, and the least of them an aggregate, which could not be
part of the recursion that it ends: a cycle of links would go on for ever.  What is said of links goes to their lattice
too, so that nothing here waits for anything.

:class:`Routes` also says by which neighbour: a first step is kept with its cost, and replaced by a cheaper one.

>>> p = Paths(); p.link <= [("a", "b", 2), ("b", "c", 2), ("c", "a", 1), ("a", "c", 9)]; p.tick(); p.cost("a", "c")
4
>>> p.link <= [("a", "c", 3)]; p.tick(); p.cost("a", "c"), p.cost("c", "d"), p.calm().confluent
(3, None, True)
>>> q = Routes(); q.link <= [("a", "b", 2), ("b", "c", 2), ("a", "c", 9)]; q.tick(); q.way("a", "c")
['a', 'b', 'c']

Source: Alvaro et al. 2011a (shortest paths); Bud (costs in a lattice column); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import Bloom, bloom, lmin, table
from syndicate.lattice import Min, monotone
from syndicate.values.value import Value


class Paths(Bloom):
    """From each place to each other; costs are numbers of at least 0."""

    link = table(["from", "to"], ["cost"], cost=lmin)
    path = table(["from", "to"], ["cost"], cost=lmin)

    @bloom
    def go_on(self) -> None:
        """A link is a path, and so is a link with a path after it."""
        self.path <= self.link
        self.path <= (self.link * self.path).pairs(
            ("to", "from"), lambda link, path: (link.from_, path.to, link.cost + path.cost)
        )

    def cost(self, start: Value, end: Value) -> Value:
        """The least that is known; None if there is no path."""
        row = self.path[start, end]
        return None if row is None else row.cost.reveal()


class Routes(Paths):
    """The first step too: of equally cheap paths the one with the fewest steps, so that no path goes in a circle."""

    step = table(["from", "to"], ["best"], best=lmin)

    @bloom
    def choose_steps(self) -> None:
        """A cost, how many steps there are, and the first of them: the least in this order."""
        self.step <= self.link.map(lambda link: (link.from_, link.to, _first(link)))
        self.step <= (self.link * self.step).pairs(
            ("to", "from"), lambda link, step: (link.from_, step.to, _after(link, step.best))
        )

    def way(self, start: Value, end: Value) -> list[Value]:
        """The places on the path; none if there is no path."""
        way = [start]
        while way[-1] != end or len(way) == 1:
            row = self.step[way[-1], end]
            if row is None:
                return []
            way.append(row.best.reveal()[2])
        return way


@monotone
def _first(link: Value) -> Min:
    """The cheaper the link, the less."""
    return Min((link.cost.reveal(), 1, link.to))


@monotone
def _after(link: Value, best: Min) -> Min:
    """The cheaper the link and what follows, the less."""
    cost, steps, _ = best.reveal()
    return Min((link.cost.reveal() + cost, steps + 1, link.to))
