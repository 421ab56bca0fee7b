"""Wiring: the rules of a program as one plan, and its circuit.

A collection is a relation of the plan.  The rules of ``<+``, ``<-``, ``<+-`` and ``<~`` derive relations of their own,
``"buffer <-"``, which nothing reads: so they lie in the last stratum, and no cycle leads through them.  Where lattices
are in play, the plan of all rules says what the strata are, and the circuit is made of those that are its own
(:mod:`syndicate.bloom.tick.wiring`).

Ordering: what the functions of rules must see whole is marked in the rules, where strata and CALM look for it.

A function that asks ``row.cost.lt_eq(5)``, or ``self.count.reveal()``, is right only when the cost, or the count, has
grown to its fixed point: the collection, or the variable, is not read monotonically, as if a term said so.

Which columns hold lattice values is known of those that are declared, of those that did in a tick, and of those that
functions plainly make.

Source: Conway et al. 2012 (stratification); ``docs/design/bloom.md``, "Functions that read lattices".

Partition: which rules of a program are the circuit's, and which are those of what grows.

What **grows** are the lattices, and the collections with lattice values in their rows.  Rules of ``<=`` that have
these on the left are evaluated by :mod:`~syndicate.bloom.tick.lattice_fixpoint`; all others by the circuit, for which
what grows is given.  A part of such a rule that is no join (a negation, a group) is a relation of the circuit that is
made for it; a term in a rule of either kind is a *term relation*, whose rows are given.

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/bloom.md``, "Lattices in
programs".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from attrs import define, evolve, field, frozen

from syndicate import plan
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import TABLES, Kind, Names, Rule, placing
from syndicate.bloom.rules.abstract_value import Unseen
from syndicate.bloom.rules.function import Bare, Fitting, Testing, origin_of
from syndicate.bloom.rules.monotonicity import PERHAPS, Monotonicity, Purpose, read_origin
from syndicate.bloom.rules.symbols import Head, declaration_of, key_count, kind_of
from syndicate.bloom.rules.term import (
    VALUE,
    CompletedTerm,
    Term,
    TermExpression,
    is_nonmonotone,
    lattice_of,
    leaves_of,
    plan_of,
)
from syndicate.bloom.tick.lattice_term import TermBody, body_of
from syndicate.errors import BloomDeclaration, LatticeAsKey, Unstratifiable
from syndicate.graph import reached
from syndicate.lattice.lattice import Lattice, holds_lattice
from syndicate.plan.algebra import walk, with_parts
from syndicate.plan.rules import ColumnValue, Growth

# ------------------------------------------------------------------------------------------------------------- ordering


LatticeColumns = dict[str, dict[str, ColumnValue]]
"""The columns of each relation that hold lattice values, or may."""


class Kinds(Growth):
    """The attributes of expressions that hold lattice values; with *reading*, also what functions make, or may."""

    def __init__(self, columns: LatticeColumns, reading: Callable[[plan.FlatMap], Monotonicity] | None = None) -> None:
        """*columns* are those of relations that do."""
        super().__init__(columns)
        self.reading = reading

    def grows(self, this: plan.Expression) -> Mapping[str, ColumnValue]:
        """The attributes of an expression that hold lattice values."""
        match this:
            case plan.NonMonotone():
                return self.of(this.source)
            case plan.Literal():
                return {
                    name: next((type(r[at]) for r in this.rows if isinstance(r[at], Lattice)), None)
                    for at, name in enumerate(this.heading)
                    if any(holds_lattice(row[at]) for row in this.rows)
                }
            case TermExpression():
                return dict.fromkeys(this.heading, lattice_of(this.term) if this.rows is None else PERHAPS)
            case plan.FlatMap() if self.reading is not None:
                return self.reading(this).kinds(this.heading)
            case plan.GroupBy() | plan.Map() if self.reading is not None:
                inner = self.of(this.source)
                return {name: inner.get(name, PERHAPS) for name in this.heading}
        return super().grows(this)


class Ordering:
    """Marks rules; a function is read once for each kind of rows."""

    def __init__(self, columns: LatticeColumns, cells: Mapping[str, Term]) -> None:
        """*columns* are those that hold lattice values, or may; *cells* are the variables, by name."""
        self.held = {name: dict(kinds) for name, kinds in columns.items()}
        self.columns, self.cells = columns, cells
        self.kinds = Kinds(columns, self.reading)
        self._read: dict[Hashable, Monotonicity] = {}

    def infer(self, rules: Sequence[Rule]) -> None:
        """Learn of columns from what functions make."""
        while True:
            before = {name: dict(columns) for name, columns in self.columns.items()}
            self.kinds = Kinds(self.columns, self.reading)
            for rule in rules:
                columns = self.columns.get(rule.head, {})
                for name, kind in self.kinds.of(rule.body).items():
                    if name in columns and _tells(kind) > _tells(columns[name]):
                        columns[name] = kind
            if before == self.columns:
                return

    def spread(self, rules: Sequence[Rule], keys: Mapping[str, int]) -> dict[str, frozenset[str]]:
        """The collections that hold lattice values, with the columns that do; others get some from them, by rules.

        What functions make is not counted: it is seen when they are called.  *keys* says how many columns the key of
        each collection has; raises :class:`LatticeAsKey`, with the rule, where one of these would hold such a value.
        """
        lattices: LatticeColumns = {name: dict.fromkeys(VALUE) for name in self.cells}
        for name, columns in self.held.items():
            lattices[name] = {column: kind for column, kind in columns.items() if kind != PERHAPS}
        before: LatticeColumns = {}
        while before != lattices:
            before, kinds = {name: dict(columns) for name, columns in lattices.items()}, Kinds(lattices)
            for rule in rules:
                columns = lattices.setdefault(rule.head, {})
                new = [name for name, kind in kinds.of(rule.body).items() if kind != PERHAPS and name not in columns]
                for name in new if rule.head not in self.cells else ():
                    if rule.body.heading.index(name) < keys[rule.head]:
                        raise LatticeAsKey(
                            f"{rule.site}: {rule.head}: the column {name} belongs to the key and cannot hold a lattice "
                            "value, which may grow: put it into a column of the second list, or reveal() it if it is "
                            "complete"
                        )
                    columns[name] = None
        return {name: frozenset(columns) for name, columns in lattices.items() if columns and name not in self.cells}

    def ordered(self, rule: Rule) -> Rule:
        """The rule, with what its functions must see whole marked."""
        body = self._marked(rule.body)
        return rule if body is rule.body else evolve(rule, body=body)

    # ------------------------------------------------------------------------------------------------- functions

    def reading(self, expression: plan.FlatMap | plan.Selection) -> Monotonicity:
        """What the functions of an expression read of its source, and what comes out."""
        if isinstance(expression, plan.FlatMap):
            call = expression.function
            if isinstance(call, (Fitting, Bare)):
                return self._of(call, expression.source, Purpose(many=call.many, bare=isinstance(call, Bare)))
            return Monotonicity({}, None)
        offences: dict[str, str] = {}
        for condition in expression.conditions:
            if isinstance(condition, plan.Holds) and isinstance(condition.function, Testing):
                offences |= self._of(condition.function, expression.source, Purpose(test=True)).offences
        return Monotonicity(offences)

    def _of(self, call: object, source: plan.Expression, purpose: Purpose) -> Monotonicity:
        origin = origin_of(call)
        kinds = self.kinds.of(source)
        if origin is None:
            sure = [name for name, kind in kinds.items() if kind != PERHAPS]
            return Monotonicity(dict.fromkeys(sure, Unseen("a function")), None)
        key = (origin, purpose, tuple(sorted(kinds.items(), key=lambda one: one[0])))
        if key not in self._read:
            self._read[key] = read_origin(origin, kinds, purpose)
        return self._read[key]

    # ------------------------------------------------------------------------------------------------- marks

    def _marked(self, expression: plan.Expression) -> plan.Expression:
        parts = expression.parts()
        if isinstance(expression, (plan.Relation, plan.Literal, TermExpression)) or not parts:
            return expression
        if isinstance(expression, (plan.FlatMap, plan.Selection)):
            source = self._marked(expression.source)
            offences = {**self._compared(expression), **self.reading(expression).offences}
            mine = {name: why for name, why in offences.items() if name in expression.source.heading}
            return with_parts(expression, [self._firm(source, mine) if mine else source])
        return with_parts(expression, self._matched(expression, [self._marked(part) for part in parts]))

    def _compared(self, expression: plan.FlatMap | plan.Selection) -> dict[str, str]:
        """Attributes with lattice values that a selection compares, without a function."""
        if isinstance(expression, plan.FlatMap):
            return {}
        asked = [one for one in expression.conditions if not isinstance(one, plan.Holds)]
        kinds = self.kinds.of(expression.source)
        return {name: "==" for one in asked for name in one.attributes() if kinds.get(name, PERHAPS) != PERHAPS}

    def _matched(self, expression: plan.Expression, parts: Sequence[plan.Expression]) -> list[plan.Expression]:
        """The parts of a join, marked where lattice values must be equal: what is equal may grow apart."""
        if not isinstance(expression, (plan.NaturalJoin, plan.SemiJoin, plan.AntiJoin)):
            return list(parts)
        names = [name for part in parts for name in part.heading]
        matched = []
        for part in parts:
            grown = [name for name, kind in self.kinds.of(part).items() if kind != PERHAPS and names.count(name) > 1]
            matched.append(self._firm(part, dict.fromkeys(grown, "==")) if grown else part)
        return matched

    def _firm(self, expression: plan.Expression, offences: Mapping[str, str]) -> plan.Expression:
        """The same, where what some attributes come from is marked."""
        targets: dict[plan.Expression, str] = {}
        for name, why in offences.items():
            for one in _origins(expression, name):
                if one not in targets or isinstance(targets[one], Unseen):
                    targets[one] = why
        return self._wrapped(expression, targets)

    def _wrapped(self, expression: plan.Expression, targets: Mapping[plan.Expression, str]) -> plan.Expression:
        if expression in targets:
            why = targets[expression]
            cell = self.cells.get(expression.name) if isinstance(expression, plan.Relation) else None
            if cell is not None:
                term = CompletedTerm(cell, why)
                return TermExpression(plan_of(term), term, VALUE)
            return plan.NonMonotone(expression, why)
        if isinstance(expression, TermExpression) or not expression.parts():
            return expression
        return with_parts(expression, [self._wrapped(part, targets) for part in expression.parts()])


def _tells(kind: ColumnValue) -> int:
    """How much is known of a column: lattice values, perhaps; lattice values; and those of one lattice."""
    return (kind != PERHAPS) + isinstance(kind, type)


def _origins(expression: plan.Expression, name: str) -> Iterable[plan.Expression]:
    """What an attribute comes from: relations, and what makes it again."""
    match expression:
        case plan.Rename():
            old = {new: old for old, new in expression.renaming}
            yield from _origins(expression.source, old.get(name, name))
        case plan.Projection():
            scalar = dict(expression.columns)[name]
            if isinstance(scalar, plan.Attr):
                yield from _origins(expression.source, str(scalar))
            else:
                yield expression
        case plan.Selection():
            yield from _origins(expression.source, name)
        case plan.SemiJoin() | plan.AntiJoin() | plan.Difference():
            yield from _origins(expression.left, name)
        case plan.NaturalJoin() | plan.Union():
            for part in expression.sources:
                if name in part.heading:
                    yield from _origins(part, name)
        case plan.NonMonotone() | plan.Literal():
            pass
        case TermExpression() if is_nonmonotone(expression.term):
            pass
        case _:
            yield expression


def declared_columns(collections: Iterable[Head], held: Mapping[str, Iterable[str]]) -> LatticeColumns:
    """What is known of columns before functions are read; *held* hold lattice values, but nobody says which."""
    result: LatticeColumns = {}
    for one in collections:
        named: Mapping[str, type[Lattice]] = declaration_of(one).lattices
        own: dict[str, ColumnValue] = dict.fromkeys(one.cols[key_count(one) :], PERHAPS)
        own |= dict.fromkeys(held.get(one.tabname, ()))
        own |= named
        result[one.tabname] = own
    return result


# ------------------------------------------------------------------------------------------------------------ partition


NOW: Final = ("<=", "=")


@frozen(eq=False)
class LatticeRule:
    """A rule whose head grows: its body is a *term*, or a *body* that is a join of rows."""

    rule: Rule
    level: int
    term: Term | None
    body: TermBody | None


@define(eq=False)
class SplitProgram:
    """Both parts of a program, and what passes between them."""

    merged: Mapping[str, frozenset[str]]
    lattice_rules: list[LatticeRule] = field(factory=list)
    circuit_rules: list[Rule] = field(factory=list)
    term_relations: dict[str, tuple[TermExpression, int]] = field(factory=dict)
    parts: dict[str, plan.Expression] = field(factory=dict)
    headings: dict[str, Names] = field(factory=dict)
    sites: dict[str, str] = field(factory=dict)
    upstream: dict[str, frozenset[str]] = field(factory=dict)
    shaky: frozenset[str] = frozenset()


def partitioned(
    collections: Sequence[Head],
    rules: Sequence[Rule],
    program: plan.Program,
    merged: Mapping[str, frozenset[str]],
) -> SplitProgram:
    """The partition of a program with these rules, of which *program* knows the strata."""
    levels = {name: stratum.level for stratum in program.strata() for name in stratum.relations}
    cells = {one.tabname for one in collections if kind_of(one) is Kind.LATTICE}
    partition = SplitProgram(merged)
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
            partition.circuit_rules.append(evolve(rule, body=body))
    _look_up(partition, program)
    return partition


def _look_up(partition: SplitProgram, program: plan.Program) -> None:
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


# --------------------------------------------------------------------------------------------------------------- wiring


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
    partition: SplitProgram | None = None
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
    rules = list(rules)
    declared = {one.tabname: one for one in every if one.cols or kind_of(one) is not Kind.TEMP}
    _check_definitions(rules)
    cells = frozenset(one.tabname for one in every if kind_of(one) is Kind.LATTICE)
    named = {name: dict(declaration_of(one).lattices) for name, one in declared.items() if name not in cells}
    held: Mapping[str, frozenset[str]] = {}
    if merged or cells or any(named.values()) or not all(moves_only(rule.body) for rule in rules):
        ordering = Ordering(
            declared_columns(every, merged or {}), {one.tabname: one for one in every if isinstance(one, Term)}
        )
        ordering.infer(rules)
        rules = [ordering.ordered(rule) for rule in rules]
        held = ordering.spread(rules, {name: key_count(one) for name, one in declared.items()})
    program, read, derived, sinks = _program(declared, rules)
    own, compiled, partition = program, rules, None
    if held or cells:
        with _suggesting_marks():
            partition = partitioned(every, rules, program, held)
        parts = [Rule(name, "<=", body, partition.sites[name], "", 0) for name, body in partition.parts.items()]
        compiled = [*partition.circuit_rules, *parts]
        own, read, derived, sinks = _program(declared, compiled, partition)
        read |= {one.name for rule in partition.lattice_rules if rule.body is not None for one in rule.body.inputs}
    circuit = None
    if compiled:
        targets = {rule.target for rule in compiled if rule.target not in declared}
        own.output(*[name for name in declared if name in sinks], *sorted(targets))
        with _suggesting_marks():
            circuit = own.plan()
    return Wiring(program, circuit, read, derived, frozenset(sinks if compiled else ()), partition, named, rules)


def moves_only(body: plan.Expression) -> bool:
    """Whether a rule moves rows, and makes no value: where no lattice comes in, none comes out."""
    return all(
        isinstance(part, (plan.Relation, plan.Rename, plan.NaturalJoin, plan.Union))
        or (
            isinstance(part, plan.Projection)
            and all(
                isinstance(scalar, plan.Attr) or (isinstance(scalar, plan.Const) and not holds_lattice(scalar.value))
                for _, scalar in part.columns
            )
        )
        for part in walk(body)
    )


def _program(
    collections: Mapping[str, Head], rules: Sequence[Rule], partition: SplitProgram | None = None
) -> tuple[plan.Program, frozenset[str], frozenset[str], set[str]]:
    """The rules as a program of the plan, which relations they read, which they derive at once, and its sinks."""
    program = plan.Program()
    read = frozenset(occurrence.name for rule in rules for occurrence in rule.reads())
    derived = frozenset(rule.head for rule in rules if rule.op in NOW)
    deferred = frozenset(rule.head for rule in rules if rule.op == "<+")
    grows = frozenset(partition.merged) if partition is not None else frozenset()
    for name, one in collections.items():
        if name in read or name in derived or name in deferred:
            several = kind_of(one) not in TABLES and name in deferred and name not in grows
            program.edb(name, *one.cols, bag=several, exact=not several)
    if partition is not None:
        for name in partition.term_relations:
            program.edb(name, *partition.headings[name], exact=True)
        for name in partition.parts:
            program.idb(name, *partition.headings[name])
    sinks = set(derived) | {name for name in deferred if kind_of(collections[name]) not in TABLES and name not in grows}
    for rule in rules:
        with placing(rule.site):
            if rule.target not in program.declared:
                program.idb(rule.target, *collections[rule.head].cols)
            program.rule(program[rule.target], rule.body, origin=rule.site)
        sinks.add(rule.target)
    return program, read, derived, sinks


@contextmanager
def _suggesting_marks() -> Iterator[None]:
    """Let a cycle that is refused only since nobody sees what functions do be refused with that remedy."""
    try:
        yield
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
