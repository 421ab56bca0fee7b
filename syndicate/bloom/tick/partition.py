"""Division: which rules of a program are the circuit's, and which are those of what grows.

What **grows** are the lattices, and the collections with lattice values in their rows.  Rules of ``<=`` that have
these on the left are evaluated by :mod:`~syndicate.bloom.tick.lattice_fixpoint`; all others by the circuit, for which
what grows
is given. A part of a growing rule that is no join (a negation, a group) is a relation of the circuit's that is made
for it; a term in a rule of either kind is an *outlet*, whose rows are given.

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/bloom.md``, "Lattices in
programs".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from syndicate import plan
from syndicate.bloom.declaration import Kind
from syndicate.bloom.row import Names
from syndicate.bloom.rule import Rule
from syndicate.bloom.rules.head import Head, kind_of
from syndicate.bloom.rules.term import Lifted, Term, leaves_of
from syndicate.bloom.tick.lattice_join import Flow, flow_of
from syndicate.bloom.tick.over import over
from syndicate.graph import reached

NOW: Final = ("<=", "=")


@frozen(eq=False)
class Growing:
    """A rule whose head grows: its body is a *term*, or a *flow* of rows."""

    rule: Rule
    level: int
    term: Term | None
    flow: Flow | None


@frozen(eq=False)
class Given:
    """A rule of the circuit."""

    head: str
    op: str
    target: str
    body: plan.Expression
    site: str

    def reads(self) -> list[plan.Occurrence]:
        """The relations that are read."""
        return plan.occurrences(self.body)


@define(eq=False)
class Division:
    """Both parts of a program, and what passes between them."""

    merged: Mapping[str, frozenset[str]]
    growing: list[Growing] = field(factory=list)
    given: list[Given] = field(factory=list)
    outlets: dict[str, tuple[Lifted, int]] = field(factory=dict)
    parts: dict[str, plan.Expression] = field(factory=dict)
    headings: dict[str, Names] = field(factory=dict)
    sites: dict[str, str] = field(factory=dict)
    upstream: dict[str, frozenset[str]] = field(factory=dict)
    shaky: frozenset[str] = frozenset()


def is_divided(collections: Iterable[Head], rules: Iterable[Rule], merged: Mapping[str, frozenset[str]]) -> bool:
    """Whether anything in a program grows."""
    return bool(merged) or any(kind_of(one) is Kind.LATTICE for one in collections)


def divided(
    collections: Sequence[Head],
    rules: Sequence[Rule],
    program: plan.Program,
    merged: Mapping[str, frozenset[str]],
) -> Division:
    """The division of a program with these rules, of which *program* knows the strata."""
    levels = {name: stratum.level for stratum in program.strata() for name in stratum.relations}
    cells = {one.tabname for one in collections if kind_of(one) is Kind.LATTICE}
    division = Division(merged)
    names: dict[Lifted, str] = {}

    def outlet(lifted: Lifted) -> str:
        if lifted not in names:
            name = names[lifted] = f"{lifted.term} #{len(names)}"
            read = [(levels[cell.tabname], bool(why)) for cell, _, why in leaves_of(lifted.term)]
            division.outlets[name] = (lifted, max((level + firm for level, firm in read), default=0))
            division.headings[name] = lifted.heading
        return names[lifted]

    def part(expression: plan.Expression) -> str:
        if isinstance(expression, Lifted):
            return outlet(expression)
        name = f"part #{len(division.parts)} of {rule.head}"
        division.parts[name] = rebuilt(expression, outlet)
        division.sites[name] = rule.site
        division.headings[name] = expression.heading
        return name

    for rule in rules:
        if rule.head in cells or (rule.op in NOW and rule.head in merged):
            level = levels[rule.target]
            if rule.head in cells and isinstance(rule.body, Lifted):
                division.growing.append(Growing(rule, level, rule.body.term, None))
            else:
                division.growing.append(Growing(rule, level, None, flow_of(rule.body, part)))
        else:
            body = rebuilt(rule.body, outlet)
            division.given.append(Given(rule.head, rule.op, rule.target, body, rule.site))
    _look_up(division, program)
    return division


def _look_up(division: Division, program: plan.Program) -> None:
    """What each merged collection depends on within a tick, and which of them on what is not monotone."""
    below: dict[str, set[str]] = {}
    whole: set[str] = set()
    for edge in program.edges():
        below.setdefault(edge.head, set()).add(edge.body)
        if edge.why:
            whole.add(edge.head)
    for name in division.merged:
        division.upstream[name] = frozenset(reached([name], lambda name: below.get(name, ())))
    division.shaky = frozenset(name for name, upstream in division.upstream.items() if upstream & whole)


def rebuilt(expression: plan.Expression, outlet: Callable[[Lifted], str]) -> plan.Expression:
    """The expression with a relation in place of each term."""
    if isinstance(expression, Lifted):
        return plan.Relation(outlet(expression), expression.heading)
    return over(expression, [rebuilt(part, outlet) for part in expression.parts()])
