"""Plots: which relations of a program depend on which, drawn as Bloom's programs are.

>>> from syndicate.dedalus import Program
>>> print(plot(Program.parse('persist[p, 1]; p(X) :- q(X); r(X)@async :- p(X), !s(X); q(1)@1;')))
flowchart LR
    classDef order stroke:#c00,stroke-width:2px
    S(("S"))
    T(("T"))
    subgraph stratum0["stratum 0"]
        n0[("p<br/>table")]
        n1["q<br/>scratch"]
        n2>"r<br/>channel"]:::order
        n3["s<br/>scratch"]
    end
    n1 --> n0
    n0 -.-> n2
    n3 -.->|"N: not"| n2
    S --> n1
    S --> n3
    n2 --> T
    linkStyle 2 stroke:#c00

An edge leads from what a rule reads to what it derives: dashed if it is a message, ``+`` in the next timestep, red with
``N`` where the rule waits for all of its input.  A relation whose rows stay is a table; what derives it from itself is
left out.  What depends on no point of order is confluent; whether the rest is, :meth:`Program.explore` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from attrs import frozen

from syndicate.bloom.declaration import Kind
from syndicate.bloom.insight.plot import FORMS, Plot, PlotEdge, PlotNode, draw
from syndicate.dedalus.ast import Atom, Rule
from syndicate.dedalus.explore.influence import Influence
from syndicate.dedalus.lower import arities, levels
from syndicate.graph import components

_SENT: Final = ("async", "later")


@frozen
class _Origin:
    number: int
    site: str


class Ruled(Protocol):
    """What has rules, as :class:`~syndicate.dedalus.Program` has."""

    def core(self) -> Sequence[Rule]:
        """All rules, with nothing left of what is only written shorter."""


def plot(program: Ruled, form: str = FORMS[0], *, name: str = "", collapse: bool = False) -> str:
    """A drawing, as ``mermaid``, ``dot`` or ``json``; with *collapse*, each cycle is one node."""
    return draw(graph_of(program.core(), name, collapse=collapse), form)


def graph_of(rules: Sequence[Rule], name: str, *, collapse: bool = False) -> Plot:
    """The graph of rules."""
    influence = Influence(rules)
    stays = influence.persistent()
    sent = {rule.head.relation for rule in rules if rule.kind in _SENT}
    names = list(arities(rules))
    groups = [[one] for one in names]
    if collapse:
        groups = list(components(names, lambda one: sorted(influence.below.get(one, ()))))
        groups = sorted((sorted(group, key=names.index) for group in groups), key=lambda group: names.index(group[0]))
    at = {member: number for number, group in enumerate(groups) for member in group}
    level = levels(rules)
    waiting = {edge.head for edge in influence.edges if not edge.monotone}
    nodes = []
    for group in groups:
        kinds = [Kind.TABLE if one in stays else Kind.CHANNEL if one in sent else Kind.SCRATCH for one in group]
        ordered = waiting & influence.on(group)
        height = max(level[one] for one in group)
        nodes.append(PlotNode(tuple(group), tuple(kinds), height, (), "unknown" if ordered else "confluent"))
    edges = [*_edges(rules, at, stays), *_outer(rules, at)]
    return Plot(name, tuple(nodes), tuple(edges))


def _edges(rules: Sequence[Rule], at: dict[str, int], stays: set[str]) -> Iterator[PlotEdge]:
    together: dict[tuple[int, int, str, bool, tuple[str, ...]], dict[_Origin, None]] = {}
    for number, rule in enumerate(rules, 1):
        for atom in rule.atoms:
            tail, head = at[atom.relation], at[rule.head.relation]
            why = _why(rule, atom)
            itself = atom.relation == rule.head.relation
            if (itself and rule.kind == "next" and rule.head.relation in stays and not why) or (
                tail == head and not itself and not why
            ):
                continue
            key = (tail, head, "+" if rule.kind == "next" else "", rule.kind in _SENT, why)
            together.setdefault(key, {})[_Origin(number, str(rule.place))] = None
    for (tail, head, op, asynchronous, why), origins in together.items():
        yield PlotEdge(tail, head, op, tuple(origins), asynchronous, why)


def _why(rule: Rule, atom: Atom) -> tuple[str, ...]:
    """What of a body the rule waits for all of."""
    whole = [str(one.form) for one in rule.aggregates] + ["choose"] * bool(rule.choices)
    return tuple(dict.fromkeys(["not"] * atom.negated + whole))


def _outer(rules: Sequence[Rule], at: dict[str, int]) -> Iterator[PlotEdge]:
    """What facts and events bring, and what no rule reads."""
    derived = {rule.head.relation for rule in rules if not rule.fact}
    facts = {rule.head.relation for rule in rules if rule.fact}
    read = {atom.relation for rule in rules for atom in rule.atoms if atom.relation != rule.head.relation}
    ends = {(at[one], "S") for one in at if one in facts or one not in derived}
    ends |= {(at[one], "T") for one in at if one in derived and one not in read}
    for place, end in sorted(ends, key=lambda one: (one[1], one[0])):
        yield PlotEdge("S", place) if end == "S" else PlotEdge(place, "T")
