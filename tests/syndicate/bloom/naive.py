"""Bloom by its definition: every tick recomputes everything, over plain sets.  The oracle of the incremental ticks.

A program is data here: collections by kind, and rules whose bodies are :class:`Body`, each with a function that builds
the same expression in Bloom's surface and one that says, of all rows, what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field, frozen

Rows = frozenset[tuple[Any, ...]]
Env = Mapping[str, Rows]


@frozen
class Body:
    """The right side of a rule: what it is, what it reads, and what of that it reads in a way that is not monotone."""

    build: Callable[[Any], Any]
    rows: Callable[[Env], Any]
    reads: frozenset[str]
    firm: frozenset[str] = frozenset()


@frozen
class NaiveRule:
    """``head op body``."""

    head: str
    op: str
    body: Body


class KeyClash(Exception):
    """Two rows with one key."""


class Cyclic(Exception):
    """No strata."""


@define
class Naive:
    """A program between two ticks; *kinds* are ``table``, ``keyed`` (by its first column), ``scratch`` and ``cell``.

    *joins* say, of collections with lattice values and of lattices, how what comes together is made one.
    """

    kinds: dict[str, str]
    rules: list[NaiveRule]
    joins: dict[str, Callable[[Any, Any], Any]] = field(factory=dict)
    stored: dict[str, Any] = field(factory=dict)
    later: dict[tuple[str, str], Rows] = field(factory=dict)
    sent: Rows = frozenset()

    def tick(self, inputs: Mapping[tuple[str, str], Rows]) -> dict[str, Rows]:
        """The rows of all collections after a tick, in which rows are given from outside by collection and operator."""
        now: dict[str, Rows] = {}
        for name, kind in self.kinds.items():

            def both(op: str, name: str = name) -> Rows:
                return self.later.get((name, op), frozenset()) | inputs.get((name, op), frozenset())

            if kind == "cell":
                now[name] = self.stored[name]
                for some in (self.later, inputs):
                    if (name, "<+") in some:
                        now[name] = self.joins[name](now[name], some[name, "<+"])
                continue
            if kind == "scratch":
                now[name] = self.joined(name, frozenset(), both("<+"))
                continue
            replaced = {row[0] for row in both("<+-")}
            gone = {row for row in self.stored.get(name, frozenset()) if kind == "keyed" and row[0] in replaced}
            stored = self.stored.get(name, frozenset()) - both("<-") - gone
            now[name] = self.joined(name, stored, both("<+") | both("<+-"))
        for level in range(max(self.levels().values(), default=0) + 1):
            instant = [rule for rule in self.rules if rule.op == "<=" and self.levels()[rule.head] == level]
            while True:
                before = dict(now)
                for rule in instant:
                    now[rule.head] = self.joined(rule.head, now[rule.head], rule.body.rows(now))
                if now == before:
                    break
        for name, kind in self.kinds.items():
            if kind == "keyed" and name not in self.joins and len({row[0] for row in now[name]}) < len(now[name]):
                raise KeyClash(name)
        later: dict[tuple[str, str], Rows] = {}
        for rule in self.rules:
            if rule.op != "<=":
                instance, at = rule.body.rows(now), (rule.head, rule.op)
                if at in later:
                    together = self.joins[rule.head] if self.kinds.get(rule.head) == "cell" else frozenset.union
                    instance = together(later[at], instance)
                later[at] = instance
        self.sent = later.pop(("wire", "<~"), frozenset())
        self.later, self.stored = later, {name: rows for name, rows in now.items() if self.kinds[name] != "scratch"}
        return now

    def joined(self, name: str, old: Any, new: Any) -> Any:
        """What is in a collection or a lattice, with what comes to it."""
        return self.joins[name](old, new) if name in self.joins else old | new

    def levels(self) -> dict[str, int]:
        """The stratum of each collection; raises :class:`Cyclic`."""
        levels = dict.fromkeys(self.kinds, 0)
        instant = [rule for rule in self.rules if rule.op == "<="]
        for _ in range(len(levels) * len(levels) + 2):
            before = dict(levels)
            for rule in instant:
                for read in rule.body.reads:
                    levels[rule.head] = max(levels[rule.head], levels[read] + (read in rule.body.firm))
            if levels == before:
                return levels
        raise Cyclic
