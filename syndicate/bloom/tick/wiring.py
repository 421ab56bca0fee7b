"""Wiring: the rules of a program as one plan, and its circuit.

A collection is a relation of the plan.  The rules of ``<+``, ``<-``, ``<+-`` and ``<~`` derive relations of their own,
``"buffer <-"``, which nothing reads: so they lie in the last stratum, and no cycle leads through them.  Where lattices
are in play, the plan of all rules says what the strata are, and the circuit is made of those that are its own
(:mod:`syndicate.bloom.tick.partition`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field

from syndicate import plan
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import TABLES, Kind
from syndicate.bloom.rule import Rule
from syndicate.bloom.rules.abstract_value import Unseen
from syndicate.bloom.rules.head import Head, declaration_of, key_count, kind_of
from syndicate.bloom.rules.term import Term
from syndicate.bloom.site import placing
from syndicate.bloom.tick.ordering import Ordering, known_columns
from syndicate.bloom.tick.partition import CircuitRule, Partition, is_partitioned, partitioned
from syndicate.errors import BloomDeclaration, Unstratifiable
from syndicate.lattice.lattice import Lattice


@define(eq=False)
class Wiring:
    """What a program is compiled to: *program* of the plan, and its *circuit* (None if there is nothing to derive).

    *partition* is there if anything grows.
    """

    program: plan.Program
    circuit: plan.Plan | None
    read: frozenset[str]
    derived: frozenset[str]
    sinks: frozenset[str]
    partition: Partition | None = None
    lattices: Mapping[str, Mapping[str, type[Lattice]]] = field(factory=dict)
    rules: list[Rule] = field(factory=list)
    """The rules, in which is marked what their functions must see whole."""

    @property
    def merged(self) -> Mapping[str, frozenset[str]]:
        """The collections that hold lattice values, with the columns that do."""
        return {} if self.partition is None else self.partition.merged


def wired(
    collections: Iterable[Collection], rules: Sequence[Rule], merged: Mapping[str, frozenset[str]] | None = None
) -> Wiring:
    """The plan of some rules; raises :class:`syndicate.errors.Unstratifiable`, with the rules of the cycle.

    *merged* are the collections that are known to hold lattice values, with the columns that do.
    """
    every: list[Head] = list(collections)
    known = {one.tabname: one for one in every if one.cols or kind_of(one) is not Kind.TEMP}
    _check_definitions(rules)
    cells = frozenset(one.tabname for one in every if kind_of(one) is Kind.LATTICE)
    named = {name: dict(declaration_of(one).lattices) for name, one in known.items() if name not in cells}
    ordering = Ordering(
        known_columns(every, merged or {}), {one.tabname: one for one in every if isinstance(one, Term)}
    )
    ordering.infer(rules)
    rules = [ordering.ordered(rule) for rule in rules]
    held = ordering.spread(rules, {name: key_count(one) for name, one in known.items()})
    rules_ = [CircuitRule(rule.head, rule.op, rule.target, rule.body, rule.site) for rule in rules]
    if not is_partitioned(every, rules, held):
        program, sinks = _program(known, rules_)
        _check_strata(program)
        wiring = _wiring(program, program, known, rules_, sinks)
        wiring.rules = rules
        return wiring
    program, _ = _program(known, rules_)
    _check_strata(program)
    partition = partitioned(every, rules, program, held)
    parts = [CircuitRule(name, "<=", name, body, partition.sites[name]) for name, body in partition.parts.items()]
    own, sinks = _program(known, [*partition.circuit_rules, *parts], partition)
    wiring = _wiring(program, own, known, [*partition.circuit_rules, *parts], sinks, partition)
    wiring.lattices, wiring.rules = named, rules
    return wiring


def _program(
    collections: Mapping[str, Head], rules: Sequence[CircuitRule], partition: Partition | None = None
) -> tuple[plan.Program, set[str]]:
    program = plan.Program()
    read, derived = _read(rules), _derived(rules)
    both = frozenset(rule.head for rule in rules if rule.op == "<+")
    grows = frozenset(partition.merged) if partition is not None else frozenset()
    for name, one in collections.items():
        if name in read or name in derived or name in both:
            several = kind_of(one) not in TABLES and name in both and name not in grows
            program.edb(name, *one.cols, bag=several, exact=not several)
    if partition is not None:
        for name in partition.term_relations:
            program.edb(name, *partition.headings[name], exact=True)
        for name in partition.parts:
            program.idb(name, *partition.headings[name])
    sinks = set(derived) | {name for name in both if kind_of(collections[name]) not in TABLES and name not in grows}
    for rule in rules:
        with placing(rule.site):
            if rule.target not in program.declared:
                program.idb(rule.target, *collections[rule.head].cols)
            program.rule(program[rule.target], rule.body, origin=rule.site)
        sinks.add(rule.target)
    return program, sinks


def _read(rules: Iterable[CircuitRule]) -> frozenset[str]:
    return frozenset(found.name for rule in rules for found in rule.reads())


def _derived(rules: Iterable[CircuitRule]) -> frozenset[str]:
    return frozenset(rule.head for rule in rules if rule.op in ("<=", "="))


def _wiring(
    program: plan.Program,
    own: plan.Program,
    collections: Mapping[str, Head],
    rules: Sequence[CircuitRule],
    sinks: set[str],
    partition: Partition | None = None,
) -> Wiring:
    read, derived = _read(rules), _derived(rules)
    if partition is not None:
        read |= {one.name for rule in partition.lattice_rules if rule.body is not None for one in rule.body.inputs}
    if not rules:
        return Wiring(program, None, read, derived, frozenset(), partition)
    targets = {rule.target for rule in rules if rule.target not in collections}
    own.output(*[name for name in collections if name in sinks], *sorted(targets))
    return Wiring(program, own.plan(), read, derived, frozenset(sinks), partition)


def _check_strata(program: plan.Program) -> None:
    """Raise :class:`syndicate.errors.Unstratifiable`; where nobody sees what a function does, with that remedy."""
    try:
        program.strata()
    except Unstratifiable as error:
        unseen = [why for _, _, why, _ in error.cycle if why]
        if not all(isinstance(why, Unseen) for why in unseen):
            raise
        raise Unstratifiable(
            f"{error}. What {' and '.join(dict.fromkeys(unseen))} does with lattice values cannot be seen: if it is "
            "monotone, mark it @monotone (of syndicate.lattice), or a function around it",
            error.cycle,
        ) from None


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
    kinds = {one.tabname: kind_of(one) for one in collections}
    shrinks = {rule.head for rule in rules if rule.op in ("<-", "<+-")}
    names = {name for name, kind in kinds.items() if kind in (*TABLES, Kind.CONST, Kind.TEMP) and name not in shrinks}
    while True:
        less = {
            name
            for name in names
            if all(
                not one.why and one.name in names
                for rule in rules
                if rule.head == name and rule.op in ("<=", "=")
                for one in rule.reads()
            )
            and not (kinds[name] is Kind.TEMP and any(rule.head == name and rule.op == "<+" for rule in rules))
        }
        if less == names:
            return frozenset(names)
        names = less
