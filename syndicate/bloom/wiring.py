"""Wiring: the rules of a program as one plan, and its circuit.

A collection is a relation of the plan.  The rules of ``<+``, ``<-``, ``<+-`` and ``<~`` derive relations of their own,
``"buffer <-"``, which nothing reads: so they lie in the last stratum, and no cycle leads through them.

Source: DESIGN, decision 6; reference/bloom.md, 1.8 (stratification).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define

from syndicate import plan
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import TABLES, Kind
from syndicate.bloom.rule import Rule
from syndicate.errors import BloomDeclaration


@define(eq=False)
class Wiring:
    """What a program is compiled to: *program* of the plan, and its *circuit* (None if there is nothing to derive)."""

    program: plan.Program
    circuit: plan.Plan | None
    read: frozenset[str]
    derived: frozenset[str]
    sinks: frozenset[str]


def wired(collections: Iterable[Collection], rules: Sequence[Rule]) -> Wiring:
    """The plan of some rules; raises :class:`syndicate.errors.Unstratifiable`, with the rules of the cycle."""
    known = {one._name: one for one in collections if one._columns or one._kind is not Kind.TEMP}
    _check_definitions(rules)
    program = plan.Program()
    read = frozenset(found.name for rule in rules for found in rule.reads())
    derived = frozenset(rule.head for rule in rules if rule.op in ("<=", "="))
    both = frozenset(rule.head for rule in rules if rule.op == "<+")
    for name, one in known.items():
        if name in read or name in derived or name in both:
            program.edb(name, *one._columns, bag=one._kind not in TABLES and name in both)
    sinks = set(derived) | {name for name in both if known[name]._kind not in TABLES}
    for rule in rules:
        if rule.target not in program.declared:
            program.idb(rule.target, *known[rule.head]._columns)
        program.rule(program[rule.target], rule.body, origin=rule.site)
        sinks.add(rule.target)
    program.strata()
    if not rules:
        return Wiring(program, None, read, derived, frozenset())
    targets = {rule.target for rule in rules if rule.target not in known}
    program.output(*[name for name in known if name in sinks], *sorted(targets))
    return Wiring(program, program.plan(), read, derived, frozenset(sinks))


def _check_definitions(rules: Sequence[Rule]) -> None:
    for one in rules:
        if one.op == "=":
            other = next((rule for rule in rules if rule.head == one.head and rule is not one), None)
            if other is not None:
                raise BloomDeclaration(
                    f"{one.site}: define() gives all rows of {one.head}, but {other.site} writes it too ({other.op}): "
                    "use <= in both"
                )


def steady(collections: Iterable[Collection], rules: Sequence[Rule]) -> frozenset[str]:
    """The tables whose rows, once derived, stay so without being given, as long as nobody outside deletes anything.

    The greatest set of relations that read only each other, in monotone ways, and are not deleted from.
    """
    kinds = {one._name: one._kind for one in collections}
    shrinks = {rule.head for rule in rules if rule.op in ("<-", "<+-")}
    found = {name for name, kind in kinds.items() if kind in (*TABLES, Kind.CONST, Kind.TEMP) and name not in shrinks}
    while True:
        less = {
            name
            for name in found
            if all(
                not one.why and one.name in found
                for rule in rules
                if rule.head == name and rule.op in ("<=", "=")
                for one in rule.reads()
            )
            and not (kinds[name] is Kind.TEMP and any(rule.head == name and rule.op == "<+" for rule in rules))
        }
        if less == found:
            return frozenset(found)
        found = less
