"""All that could be true under some faults: a program without variables, each conclusion with all its derivations.

Facts at times are atoms of logic without variables.  An atom's *instances* are the derivations by which it can come
about: the atoms that must be true, those that must be false, and the faults by which the message would be lost.  A
negated atom counts as possible unless it is certain, a message as arriving and as lost.  What is true under a given set
of faults is then found without looking at rules again, and so is why.

A head with aggregates, or a choice, depends on a whole *group* of bindings at once: its members are atoms too.  What is
chosen is not decided here, unless by a seed: all that could be is possible.

>>> from syndicate.dedalus.parse import parse
>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.verify.faults import NumberedFaults
>>> rules = core(parse('s("a", "b")@1; s("b", "b")@1; r(Y)@async :- s(X, Y); q(Y)@async :- s("a", Y);'))
>>> made = ground(rules, NumberedFaults(("a", "b"), 1, 2, 2, 0), [("r", 2), ("q", 2)])
>>> [(made.facts[n], n in made.certain, made.instances[n]) for n in made.blocks[0].atoms]
[(('q', ('b',), 2), False, [GroundRule(true=(), false=(), lost=1, needs=0, group=None)])]
>>> ("r", ("b",), 2) in [made.facts[n] for n in made.certain]
True

Contract: under each set of faults within the budget, the atoms that follow are those of a run under these faults.

Source: Alvaro et al. 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Final, TypeAlias

from attrs import define, field, frozen

from syndicate.dedalus.ast import Atom, Constant, Events, Row, Rule, Value
from syndicate.dedalus.binding import (
    EMPTY,
    Binding,
    Body,
    RowIndex,
    Sent,
    is_grouped,
    rows_of,
    sent_by,
    total,
    value_of,
)
from syndicate.dedalus.desugar import grouped
from syndicate.dedalus.lower import arities, levels
from syndicate.dedalus.net import Outage
from syndicate.dedalus.schedule import Clock, Dependencies
from syndicate.dedalus.solving.clingo_text import fixed
from syndicate.dedalus.verify.choosing import Choosing
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.faults import Crash, Fate, NumberedFaults
from syndicate.errors import Undecided, Unverifiable
from syndicate.garbage_collector import CollectorPause

Fact: TypeAlias = tuple[str, Row, int]
Atoms: TypeAlias = tuple[int, ...]
"""Atoms by their numbers."""

MAX_INSTANCES: Final = 1_000_000
MAX_UNCERTAIN: Final = 12


@define(eq=False)
class BindingGroup:
    """Bindings that make rows of a rule's head together, those of them that are chosen."""

    rule: Rule
    members: tuple[int, ...]
    bindings: list[Binding]
    choosing: Choosing | None = None
    values: list[Row] = field(init=False)

    def __attrs_post_init__(self) -> None:
        names = () if self.choosing is None else self.choosing.dependencies.variables
        self.values = [tuple(binding[name.name] for name in names) for binding in self.bindings]

    def held(self, true: Callable[[int], bool]) -> list[int]:
        """The places of the members that are true."""
        return [at for at, member in enumerate(self.members) if true(member)]

    def outcome(self, held: Sequence[int], chosen: int, faults: NumberedFaults) -> tuple[set[Sent], int]:
        """The rows that there are if these members hold, and the preferences with which there might be others."""
        others = 0
        if self.choosing is not None:
            taken, others = self.choosing.chosen_rows((self.values[at] for at in held), chosen, faults)
            held = [at for at in held if self.values[at] in taken]
        return rows_of(self.rule, [self.bindings[at] for at in held]) if held else set(), others


@frozen
class GroundRule:
    """A derivation of an atom.

    *true* and *false* are atoms, *lost* the faults that lose the message, *needs* the fault without which it is not
    so, *group* the group with the row that it must have.
    """

    true: tuple[int, ...] = ()
    false: tuple[int, ...] = ()
    lost: int = 0
    needs: int = 0
    group: tuple[BindingGroup, Sent] | None = None

    @property
    def certain(self) -> bool:
        """Whether it holds under all faults."""
        return not (self.true or self.false or self.lost or self.needs or self.group)


CERTAIN: Final = GroundRule()


@define(eq=False)
class Component:
    """Atoms in an order in which they can be decided; if *loop*, they depend on each other."""

    atoms: list[int]
    loop: bool


@define(eq=False)
class Ground:
    """The program without variables: *instances* by the number of an atom, *blocks* of all that is not certain.

    *choosing* are the groups in which something is chosen; if it is *open*, that matters, and no seed has decided it.
    """

    faults: NumberedFaults
    facts: list[Fact] = field(factory=list)
    numbers: dict[Fact, int] = field(factory=dict)
    instances: list[list[GroundRule]] = field(factory=list)
    certain: set[int] = field(factory=set)
    blocks: list[Component] = field(factory=list)
    choosing: list[BindingGroup] = field(factory=list)
    open: bool = False

    def holds(self, relation: str, row: Row, time: int) -> bool:
        """Whether a row is certain to be there."""
        return self.numbers.get((relation, row, time)) in self.certain

    def cone(self, atoms: Iterable[int]) -> list[Component]:
        """The blocks of what some atoms depend on, without all else."""
        cone: set[int] = set()
        waiting = list(atoms)
        while waiting:
            atom = waiting.pop()
            if atom not in cone:
                cone.add(atom)
                for one in self.instances[atom]:
                    waiting += [*one.true, *one.false, *(one.group[0].members if one.group is not None else ())]
        return [
            Component(left, block.loop)
            for block in self.blocks
            if (left := [atom for atom in block.atoms if atom in cone])
        ]


def ground(
    rules: Sequence[Rule],
    faults: NumberedFaults,
    goals: Iterable[tuple[str, int]],
    events: Events | None = None,
    limit: int = MAX_INSTANCES,
    outages: tuple[str, str] | None = None,
) -> Ground:
    """What could be true of *goals*, relations at times, and of all that they depend on.

    *outages* are the relations that say which nodes are down, and which of them rest.

    Raises :class:`Unverifiable`, :class:`Undecided`, :class:`DedalusArithmetic`.
    """
    events, goals = events or {}, list(goals)
    clock = Clock(faults.start, faults.eot, faults.choices.seed)
    cone = Cone(rules, faults.start, faults.eot, max(faults.late, faults.again), goals)
    inputs = {"crash", *(outages or ()), *(name for rows in events.values() for name in rows)}
    inputs.update(name for name, _ in goals)
    standing = fixed(rules, faults.start, faults.eot, inputs)
    grounding = Grounding(rules, faults, cone, standing, events, outages, clock, not faults.choices.drawn, limit)
    with CollectorPause():
        grounding.run(faults.eot)
        return grounding.ordered()


@define(eq=False)
class Grounding:
    """Rules that are matched one timestep after another, as far as a *cone* needs what they derive."""

    rules: Sequence[Rule]
    faults: NumberedFaults
    cone: Cone
    fixed: Collection[str]
    events: Events
    outages: tuple[str, str] | None
    clock: Clock
    open: bool
    limit: int
    ground: Ground = field(init=False)
    tables: dict[tuple[str, int], RowIndex] = field(factory=dict)
    level: dict[str, int] = field(factory=dict)
    bodies: dict[int, Body] = field(factory=dict)
    reads: dict[int, list[tuple[str, int | None]]] = field(factory=dict)
    grouped: set[int] = field(factory=set)
    keepers: set[int] = field(factory=set)
    heads: list[str] = field(init=False)
    facts_at: dict[int | None, list[tuple[str, Row]]] = field(factory=dict)
    standing: dict[str, list[Row]] = field(factory=dict)
    strata: dict[int, list[tuple[int, int]]] = field(factory=dict)
    later: list[tuple[int, int]] = field(factory=list)
    readers: dict[str, list[int]] = field(factory=dict)
    since: dict[str, int] = field(factory=dict)
    pending: dict[tuple[int, int, int], list[int]] = field(factory=dict)
    count: int = 0

    def __attrs_post_init__(self) -> None:
        self.ground = Ground(self.faults)
        self.level = levels(self.rules)
        self.heads = [rule.head.relation for rule in self.rules]
        for number, rule in enumerate(self.rules):
            name = rule.head.relation
            if rule.fact:
                row = tuple([term.value for term in rule.head.terms if isinstance(term, Constant)])
                at = rule.head.time if isinstance(rule.head.time, int) else None
                if name in self.fixed:
                    self.standing.setdefault(name, []).append(row)
                else:
                    self.facts_at.setdefault(at, []).append((name, row))
            elif name not in self.fixed and (times := self.cone.mask(rule)):
                self._read(number, rule, times)

    def _read(self, number: int, rule: Rule, times: int) -> None:
        """Take note of a rule that matters at some times, which are bits."""
        positive = [atom for atom in rule.atoms if not atom.negated]
        self.reads[number] = [(atom.relation, atom.time if isinstance(atom.time, int) else None) for atom in positive]
        if is_grouped(rule):
            self.grouped.add(number)
        if rule.keeps:
            self.keepers.add(number)
        if rule.kind != "deductive":
            self.later.append((number, times))
            return
        self.strata.setdefault(self.level[rule.head.relation], []).append((number, times))
        for name, _ in self.reads[number]:
            self.readers.setdefault(name, []).append(number)

    def body(self, number: int) -> Body:
        """The body of a rule, which is read when there are rows for it."""
        if (body := self.bodies.get(number)) is None:
            body = self.bodies[number] = Body(self.rules[number])
        return body

    def run(self, last: int) -> None:
        """Match all rules, until the *last* timestep."""
        strata = [rules for _, rules in sorted(self.strata.items())]
        bit = 1
        for time in range(self.faults.start, last + 1):
            self.state_facts(time)
            self.state_faults(time)
            for rules in strata:
                self.deduce(time, [number for number, times in rules if times & bit])
            for number, times in self.later if time < last else ():
                if times & bit and self.ready(number, time):
                    self.apply(number, time)
            bit <<= 1

    def ordered(self) -> Ground:
        """What was found, in an order in which it can be decided."""
        for _, atoms in sorted(self.pending.items()):
            left = [atom for atom in atoms if atom not in self.ground.certain]
            if left:
                self.ground.blocks.append(self.block(left))
        return self.ground

    # ------------------------------------------------------------------------------------------------------- atoms

    def table(self, name: str, time: int) -> RowIndex:
        """What a relation has at a time."""
        return self.tables.get((name, time), EMPTY)

    def new(self, fact: Fact) -> int:
        """The number of an atom that is new."""
        atom = self.ground.numbers[fact] = len(self.ground.facts)
        self.ground.facts.append(fact)
        self.ground.instances.append([])
        name, row, time = fact
        if (table := self.tables.get((name, time))) is None:
            table = self.tables[name, time] = RowIndex()
        table.add(row)
        return atom

    def add(self, fact: Fact, instance: GroundRule, part: int = 1) -> bool:
        """Note a derivation of an atom, whose *part* 0 of a stratum is decided before part 1; whether it is new."""
        atom = self.ground.numbers.get(fact)
        present = atom is not None
        if atom is None:
            atom = self.new(fact)
        elif atom in self.ground.certain:
            return False
        instances = self.ground.instances[atom]
        if instance.certain:
            self.ground.certain.add(atom)
            instances.clear()
            return True
        if instance in instances:
            return False
        self.count += 1
        if self.count > self.limit:
            raise Undecided(f"the faults lead to more than {self.limit} derivations: lower --eot, or the faults")
        instances.append(instance)
        if not present:
            name, _, time = fact
            self.pending.setdefault((time, self.level.get(name, len(self.level)), part), []).append(atom)
        return not present

    def state_facts(self, time: int) -> None:
        """Facts and events."""
        for name in self.standing:
            if self.cone.needs(name, time):
                self.stand(name, time)
        for at in (None, time):
            for name, row in self.facts_at.get(at, ()):
                if self.cone.needs(name, time):
                    self.add((name, row, time), CERTAIN)
        for name, rows in self.events.get(time, {}).items():
            if self.cone.needs(name, time):
                for row in rows:
                    self.add((name, row, time), CERTAIN)

    def state_faults(self, time: int) -> None:
        """What nodes learn of crashes, and of who is down."""
        if self.cone.needs("crash", time) and arities(self.rules).get("crash") == 3:
            for fault, bit in self.faults.bits.items():
                gone = fault.time if isinstance(fault, Crash) else None
                if isinstance(fault, Outage) and fault.to is None:
                    gone = fault.since
                if gone is not None and isinstance(fault, (Crash, Outage)):
                    for node in self.faults.nodes:
                        self.add(("crash", (node, fault.node, gone), time), GroundRule(needs=bit))
        if self.outages is not None:
            down, resting = self.outages
            for outages in self.faults.downs.values():
                for outage, bit in outages:
                    if outage.covers(time):
                        for name in (down, resting) if outage.keeps else (down,):
                            if self.cone.needs(name, time):
                                self.add((name, (outage.node,), time), GroundRule(needs=bit))

    def stand(self, name: str, time: int) -> None:
        """Note what a relation has at all times: these are the same atoms."""
        rows, since = self.standing[name], self.since.setdefault(name, time)
        if since == time:
            for row in rows:
                self.add((name, row, time), CERTAIN)
            return
        self.tables[name, time] = self.tables[name, since]
        for row in rows:
            self.ground.numbers[name, row, time] = self.ground.numbers[name, row, since]

    # ------------------------------------------------------------------------------------------------------- rules

    def deduce(self, time: int, numbers: Sequence[int]) -> None:
        """What follows within a stratum, by these rules."""
        plain = []
        for number in numbers:
            if number not in self.grouped:
                plain.append(number)
            elif self.ready(number, time):
                self.group(number, time)
        waiting = dict.fromkeys([number for number in plain if self.ready(number, time)])
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            if self.apply(number, time):
                waiting.update((reader, None) for reader in self.readers.get(self.heads[number], ()) if reader in plain)

    def ready(self, number: int, time: int) -> bool:
        """Whether there are rows of all that a rule reads: without, it is asked again when there are."""
        for name, at in self.reads[number]:
            table = self.tables.get((name, time if at is None else at))
            if table is None or not table.rows:
                return False
        return True

    def apply(self, number: int, time: int) -> bool:
        """Apply a rule at a time; whether anything is new."""
        if number in self.grouped:
            return self.group(number, time)
        rule, name, new = self.rules[number], self.heads[number], False
        if rule.kind not in SENDING:
            then = time + (rule.kind != "deductive")
            rows = self.persisted_rows(name, time) if number in self.keepers else self.heads_of(number, time)
            for row, true, false in rows:
                new |= self.add((name, row, then), GroundRule(true, false) if true or false else CERTAIN)
            return new
        for binding, true, false in self.satisfied(self.body(number), time):
            row = tuple([value_of(term, binding) for term in rule.head.terms])
            for then, fate in self.fates(rule, row, time, sent_by(rule, row, binding)):
                new |= self.derive((name, row, then), true, false, fate)
        return new

    def derive(self, fact: Fact, true: tuple[int, ...], false: tuple[int, ...], fate: Fate) -> bool:
        """Note that an atom follows from others as a message fares; whether it is new."""
        sure = not (true or false or fate.lost or fate.needs)
        return self.add(fact, CERTAIN if sure else GroundRule(true, false, fate.lost, fate.needs))

    def heads_of(self, number: int, time: int) -> list[tuple[Row, Atoms, Atoms]]:
        """The rows that a rule may derive, with the atoms that are open."""
        columns = self.rules[number].head.terms
        return [
            (tuple([value_of(term, binding) for term in columns]), true, false)
            for binding, true, false in self.satisfied(self.body(number), time)
        ]

    def persisted_rows(self, name: str, time: int) -> list[tuple[Row, Atoms, Atoms]]:
        """The same, of a rule that keeps what is there."""
        numbers, certain, rows = self.ground.numbers, self.ground.certain, self.table(name, time).rows
        if len(certain) == len(self.ground.facts):  # nothing is open
            return [(row, (), ()) for row in rows]
        atoms = [numbers[name, row, time] for row in rows]
        return [(row, () if atom in certain else (atom,), ()) for row, atom in zip(rows, atoms, strict=True)]

    def satisfied(self, body: Body, time: int) -> list[tuple[Binding, Atoms, Atoms]]:
        """The bindings that are possible, with the atoms that are open in each: to be true, to be false."""
        there = self.tables

        def tables(atom: Atom) -> RowIndex:
            return there.get((atom.relation, at(atom)), EMPTY)

        def at(atom: Atom) -> int:
            return atom.time if isinstance(atom.time, int) else time

        plan = body.plan(body.times)
        bindings = plan.found(tables, (time,) * len(body.times))
        absent = [(atom, *plan.absent(atom)) for atom in body.negative if tables(atom).rows]
        numbers, certain = self.ground.numbers, self.ground.certain
        if len(certain) == len(self.ground.facts):  # nothing is open
            for atom, columns, key in absent:
                table = tables(atom)
                bindings = [bound for bound in bindings if not table.find(columns, key(bound))]
            return [(plan.binding(bound), (), ()) for bound in bindings]
        result: list[tuple[Binding, Atoms, Atoms]] = []
        for bound in bindings:
            rows = zip(body.positive, plan.rows(bound), strict=True)
            true = [numbers[atom.relation, row, at(atom)] for atom, row in rows]
            false = [
                numbers[atom.relation, row, at(atom)]
                for atom, columns, key in absent
                for row in tables(atom).find(columns, key(bound))
            ]
            if certain.isdisjoint(false):
                open_ = tuple([n for n in dict.fromkeys(true) if n not in certain])
                result.append((plan.binding(bound), open_, tuple(false)))
        return result

    def fates(self, rule: Rule, row: Row, time: int, sender: Value) -> Iterator[tuple[int, Fate]]:
        """When what a rule derives at a time may be there, as far as anybody asks, and what decides about it."""
        sends = rule.kind in SENDING
        for fate in self.faults.fates(sender, row[0] if row else None, time) if sends else _SURE:
            then = time + (rule.kind != "deductive") + fate.by
            if then <= self.faults.eot and self.cone.needs(rule.head.relation, then):
                yield then, fate

    def group(self, number: int, time: int) -> bool:
        """Apply a rule with aggregates or a choice."""
        rule, body = self.rules[number], self.body(number)
        satisfied = self.satisfied(body, time)
        if not (rule.choices or any(true or false for _, true, false in satisfied)):  # nothing is open
            distinct = {tuple([binding[name] for name in body.names]): binding for binding, _, _ in satisfied}
            rows = rows_of(rule, list(distinct.values()))
            return self.add_outcomes(rule, time, rows, None)
        name, bindings = f"{rule.head.relation} by rule {number}", {}
        for binding, true, false in satisfied:
            row = tuple(binding[column] for column in body.names)
            fact = (name, row, time)
            self.level.setdefault(name, self.level[rule.head.relation] if rule.kind == "deductive" else len(self.level))
            self.add(fact, GroundRule(true, false), part=0)
            bindings[self.ground.numbers[fact]] = binding
        new = False
        for group in self.groups(number, time, bindings):
            sure = self.ground.certain.issuperset(group.members)
            decided = sure and not (group.choosing and group.choosing.open and group.choosing.contested(group.values))
            if group.choosing is not None:
                self.ground.choosing.append(group)
                self.ground.open |= group.choosing.open and bool(group.choosing.contested(group.values))
            new |= self.add_outcomes(rule, time, self.outcomes(group, decided), None if decided else group)
        return new

    def add_outcomes(self, rule: Rule, time: int, rows: Iterable[Sent], group: BindingGroup | None) -> bool:
        """Note what bindings make together, of a *group* that is not decided; whether anything is new."""
        new = False
        for row, sender in sorted(rows, key=repr):
            for then, fate in self.fates(rule, row, time, sender):
                fact = (rule.head.relation, row, then)
                if group is None:
                    new |= self.derive(fact, (), (), fate)
                else:
                    new |= self.add(fact, GroundRule((), (), fate.lost, fate.needs, (group, (row, sender))))
        return new

    def groups(self, number: int, time: int, bindings: Mapping[int, Binding]) -> Iterator[BindingGroup]:
        """The bindings of a rule that must be looked at together: of one group, or of choices that may conflict."""
        rule = self.rules[number]
        parts: dict[object, list[int]] = {}
        choosing = None
        if not rule.choices:
            plain = grouped(rule)[0]
            for member, binding in bindings.items():
                parts.setdefault(tuple(value_of(rule.head.terms[n], binding) for n in plain), []).append(member)
        elif bindings:
            rules = Dependencies(rule.choices)
            values = {n: tuple(binding[name.name] for name in rules.variables) for n, binding in bindings.items()}
            ranked = self.clock.ranked(number, time, set(values.values()))
            choosing = Choosing(number, time, rules, ranked, self.open)
            components = [ranked] if rule.aggregates else rules.components(ranked)
            which = {value: at for at, component in enumerate(components) for value in component}
            for member, value in values.items():
                parts.setdefault(which[value], []).append(member)
        for members in parts.values():
            yield BindingGroup(rule, tuple(members), [bindings[n] for n in members], choosing)

    def outcomes(self, group: BindingGroup, decided: bool) -> set[Sent]:
        """The rows that a group can have, whichever of its uncertain members hold, and whatever is chosen."""
        rule, held = group.rule, group.held(self.ground.certain.__contains__)
        if decided:
            return group.outcome(held, 0, self.faults)[0]
        if not rule.aggregates:  # a choice: any binding may be chosen
            return rows_of(rule, group.bindings)
        sure = [] if rule.choices else [group.bindings[at] for at in held]
        result: set[Sent] = set()
        by_key: dict[Row, list[Binding]] = {}
        for binding in group.bindings:
            key = tuple(value_of(rule.head.terms[n], binding) for n in grouped(rule)[0])
            by_key.setdefault(key, []).append(binding)
        for key, bindings in by_key.items():
            columns = [_outcomes(rule, n, bindings, sure) for n, _ in grouped(rule)[1]]
            for values in product(*columns):
                row: list[Value] = list(values)
                for column, value in zip(grouped(rule)[0], key, strict=True):
                    row.insert(column, value)
                result.add((tuple(row), sent_by(rule, tuple(row))))
        return result

    def block(self, atoms: list[int]) -> Component:
        """Atoms of one stratum in the order of their dependence."""
        inside = set(atoms)
        graph = {
            atom: {n for one in self.ground.instances[atom] for n in one.true if n in inside} for atom in sorted(atoms)
        }
        try:
            return Component(list(TopologicalSorter(graph).static_order()), False)
        except CycleError:
            return Component(sorted(atoms), True)


SENDING: Final = ("async", "later")
_SURE: Final = (Fate(0, 0, 0),)
"""How fares what is not sent."""


# --------------------------------------------------------------------------------------------------------- aggregates


def _outcomes(rule: Rule, column: int, bindings: list[Binding], sure: list[Binding]) -> set[Value]:
    """What an aggregate can come to, if at least the sure ones of the bindings hold."""
    (aggregate,) = [one for n, one in grouped(rule)[1] if n == column]
    fixed = [binding for binding in bindings if binding in sure]
    open_ = [binding for binding in bindings if binding not in sure]
    if aggregate.form == "count":
        return set(range(max(1, len(fixed)), len(bindings) + 1))
    if aggregate.form in ("min", "max"):
        values = {binding[aggregate.of[0].name] for binding in bindings}
        if not fixed:
            return values
        best, name = total(rule, column, fixed), aggregate.of[0].name
        return {value for value in values if total(rule, column, [{name: best}, {name: value}]) == value}
    if len(open_) > MAX_UNCERTAIN:
        raise Unverifiable(
            f"{rule.place}: {rule} sums up {len(open_)} rows that faults may take away, and {MAX_UNCERTAIN} are the "
            "most that are tried in all combinations: count them, or take min or max"
        )
    one = set()
    for taken in product((False, True), repeat=len(open_)):
        members = fixed + [binding for binding, is_in in zip(open_, taken, strict=True) if is_in]
        if members:
            one.add(total(rule, column, members))
    return one
