"""Ordering: what the functions of rules must see whole is marked in the rules, where strata and CALM look for it.

A function that asks ``row.cost.lt_eq(5)``, or ``self.count.reveal()``, is right only when the cost, or the count, has
grown to its fixed point: the collection, or the variable, is not read monotonically, as if a term said so.

Which columns hold lattice values is known of those that are declared, of those that did in a tick, and of those that
functions plainly make.

Source: Conway et al. 2012 (stratification); ``docs/design/bloom.md``, "Functions that read lattices".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from attrs import evolve

from syndicate import plan
from syndicate.bloom.rule import Rule
from syndicate.bloom.rules.abstract_value import Unseen
from syndicate.bloom.rules.cell import CompletedTerm
from syndicate.bloom.rules.function import Bare, Fitting, Testing, origin_of
from syndicate.bloom.rules.head import Head, declaration_of, key_count
from syndicate.bloom.rules.reading import PERHAPS, Purpose, Reading, read_origin
from syndicate.bloom.rules.term import VALUE, Term, TermExpression, is_nonmonotone, lattice_of, plan_of
from syndicate.errors import LatticeAsKey
from syndicate.lattice.lattice import Lattice, holds_lattice
from syndicate.plan.algebra import with_parts
from syndicate.plan.rules import Growth, Kind

Known = dict[str, dict[str, Kind]]
"""The columns of each relation that hold lattice values, or may."""


class Kinds(Growth):
    """The attributes of expressions that hold lattice values; with *reading*, also what functions make, or may."""

    def __init__(self, known: Known, reading: Callable[[plan.FlatMap], Reading] | None = None) -> None:
        """*known* are the columns of relations that do."""
        super().__init__(known)
        self.reading = reading

    def grows(self, this: plan.Expression) -> Mapping[str, Kind]:
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

    def __init__(self, known: Known, cells: Mapping[str, Term]) -> None:
        """*known* of the columns that hold lattice values, or may; *cells* are the variables, by name."""
        self.held = {name: dict(columns) for name, columns in known.items()}
        self.known, self.cells = known, cells
        self.kinds = Kinds(known, self.reading)
        self._read: dict[Hashable, Reading] = {}

    def infer(self, rules: Sequence[Rule]) -> None:
        """Learn of columns from what functions make."""
        while True:
            before = {name: dict(columns) for name, columns in self.known.items()}
            self.kinds = Kinds(self.known, self.reading)
            for rule in rules:
                columns = self.known.get(rule.head, {})
                for name, kind in self.kinds.of(rule.body).items():
                    if name in columns and _tells(kind) > _tells(columns[name]):
                        columns[name] = kind
            if before == self.known:
                return

    def spread(self, rules: Sequence[Rule], keys: Mapping[str, int]) -> dict[str, frozenset[str]]:
        """The collections that hold lattice values, with the columns that do; others get some from them, by rules.

        What functions make is not counted: it is seen when they are called.  *keys* says how many columns the key of
        each collection has; raises :class:`LatticeAsKey`, with the rule, where one of these would hold such a value.
        """
        known: Known = {name: dict.fromkeys(VALUE) for name in self.cells}
        for name, columns in self.held.items():
            known[name] = {column: kind for column, kind in columns.items() if kind != PERHAPS}
        before: Known = {}
        while before != known:
            before, kinds = {name: dict(columns) for name, columns in known.items()}, Kinds(known)
            for rule in rules:
                columns = known.setdefault(rule.head, {})
                new = [name for name, kind in kinds.of(rule.body).items() if kind != PERHAPS and name not in columns]
                for name in new if rule.head not in self.cells else ():
                    if rule.body.heading.index(name) < keys[rule.head]:
                        raise LatticeAsKey(
                            f"{rule.site}: {rule.head}: the column {name} belongs to the key and cannot hold a lattice "
                            "value, which may grow: put it into a column of the second list, or reveal() it if it is "
                            "complete"
                        )
                    columns[name] = None
        return {name: frozenset(columns) for name, columns in known.items() if columns and name not in self.cells}

    def ordered(self, rule: Rule) -> Rule:
        """The rule, with what its functions must see whole marked."""
        body = self._marked(rule.body)
        return rule if body is rule.body else evolve(rule, body=body)

    # ------------------------------------------------------------------------------------------------- functions

    def reading(self, expression: plan.FlatMap | plan.Selection) -> Reading:
        """What the functions of an expression read of its source, and what comes out."""
        if isinstance(expression, plan.FlatMap):
            call = expression.function
            if isinstance(call, (Fitting, Bare)):
                return self._of(call, expression.source, Purpose(many=call.many, bare=isinstance(call, Bare)))
            return Reading({}, None)
        offences: dict[str, str] = {}
        for condition in expression.conditions:
            if isinstance(condition, plan.Holds) and isinstance(condition.function, Testing):
                offences |= self._of(condition.function, expression.source, Purpose(test=True)).offences
        return Reading(offences)

    def _of(self, call: object, source: plan.Expression, purpose: Purpose) -> Reading:
        origin = origin_of(call)
        kinds = self.kinds.of(source)
        if origin is None:
            sure = [name for name, kind in kinds.items() if kind != PERHAPS]
            return Reading(dict.fromkeys(sure, Unseen("a function")), None)
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


def _tells(kind: Kind) -> int:
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


def known_columns(collections: Iterable[Head], held: Mapping[str, Iterable[str]]) -> Known:
    """What is known of columns before functions are read; *held* hold lattice values, but nobody says which."""
    result: Known = {}
    for one in collections:
        named: Mapping[str, type[Lattice]] = declaration_of(one).lattices
        own: dict[str, Kind] = dict.fromkeys(one.cols[key_count(one) :], PERHAPS)
        own |= dict.fromkeys(held.get(one.tabname, ()))
        own |= named
        result[one.tabname] = own
    return result
