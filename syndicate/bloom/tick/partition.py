"""Partition: which rules of a program are the circuit's, and which are those of what grows.

What **grows** are the lattices, and the collections with lattice values in their rows.  Rules of ``<=`` that have
these on the left are evaluated by :mod:`~syndicate.bloom.tick.lattice_fixpoint`; all others by the circuit, for which
what grows is given.  A part of such a rule that is no join (a negation, a group) is a relation of the circuit that is
made for it; a term in a rule of either kind is a *term relation*, whose rows are given.

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
from syndicate.bloom.rules.term import Term, TermExpression, leaves_of
from syndicate.bloom.tick.lattice_join import Body, body_of
from syndicate.graph import reached
from syndicate.plan.algebra import with_parts

NOW: Final = ("<=", "=")


@frozen(eq=False)
class LatticeRule:
    """A rule whose head grows: its body is a *term*, or a *body* that is a join of rows."""

    rule: Rule
    level: int
    term: Term | None
    body: Body | None


@frozen(eq=False)
class CircuitRule:
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
class Partition:
    """Both parts of a program, and what passes between them."""

    merged: Mapping[str, frozenset[str]]
    lattice_rules: list[LatticeRule] = field(factory=list)
    circuit_rules: list[CircuitRule] = field(factory=list)
    term_relations: dict[str, tuple[TermExpression, int]] = field(factory=dict)
    parts: dict[str, plan.Expression] = field(factory=dict)
    headings: dict[str, Names] = field(factory=dict)
    sites: dict[str, str] = field(factory=dict)
    upstream: dict[str, frozenset[str]] = field(factory=dict)
    shaky: frozenset[str] = frozenset()


def is_partitioned(collections: Iterable[Head], rules: Iterable[Rule], merged: Mapping[str, frozenset[str]]) -> bool:
    """Whether anything in a program grows."""
    return bool(merged) or any(kind_of(one) is Kind.LATTICE for one in collections)


def partitioned(
    collections: Sequence[Head],
    rules: Sequence[Rule],
    program: plan.Program,
    merged: Mapping[str, frozenset[str]],
) -> Partition:
    """The partition of a program with these rules, of which *program* knows the strata."""
    levels = {name: stratum.level for stratum in program.strata() for name in stratum.relations}
    cells = {one.tabname for one in collections if kind_of(one) is Kind.LATTICE}
    partition = Partition(merged)
    names: dict[TermExpression, str] = {}

    def term_relation(expression: TermExpression) -> str:
        if expression not in names:
            name = names[expression] = f"{expression.term} #{len(names)}"
            read = [(levels[cell.tabname], bool(why)) for cell, _, why in leaves_of(expression.term)]
            partition.term_relations[name] = (expression, max((level + firm for level, firm in read), default=0))
            partition.headings[name] = expression.heading
        return names[expression]

    def part(expression: plan.Expression) -> str:
        if isinstance(expression, TermExpression):
            return term_relation(expression)
        name = f"part #{len(partition.parts)} of {rule.head}"
        partition.parts[name] = rebuilt(expression, term_relation)
        partition.sites[name] = rule.site
        partition.headings[name] = expression.heading
        return name

    for rule in rules:
        if rule.head in cells or (rule.op in NOW and rule.head in merged):
            level = levels[rule.target]
            if rule.head in cells and isinstance(rule.body, TermExpression):
                partition.lattice_rules.append(LatticeRule(rule, level, rule.body.term, None))
            else:
                partition.lattice_rules.append(LatticeRule(rule, level, None, body_of(rule.body, part)))
        else:
            body = rebuilt(rule.body, term_relation)
            partition.circuit_rules.append(CircuitRule(rule.head, rule.op, rule.target, body, rule.site))
    _look_up(partition, program)
    return partition


def _look_up(partition: Partition, program: plan.Program) -> None:
    """What each merged collection depends on within a tick, and which of them on what is not monotone."""
    below: dict[str, set[str]] = {}
    whole: set[str] = set()
    for edge in program.edges():
        below.setdefault(edge.head, set()).add(edge.body)
        if edge.why:
            whole.add(edge.head)
    for name in partition.merged:
        partition.upstream[name] = frozenset(reached([name], lambda name: below.get(name, ())))
    partition.shaky = frozenset(name for name, upstream in partition.upstream.items() if upstream & whole)


def rebuilt(expression: plan.Expression, term_relation: Callable[[TermExpression], str]) -> plan.Expression:
    """The expression with a relation in place of each term."""
    if isinstance(expression, TermExpression):
        return plan.Relation(term_relation(expression), expression.heading)
    return with_parts(expression, [rebuilt(part, term_relation) for part in expression.parts()])
