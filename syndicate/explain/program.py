"""Programs of the plan explained: what follows from some facts, why, by which derivations, and why something does not.

>>> from syndicate.plan import NaturalJoin, Program, Projection, Rename
>>> p = Program(); edge = p.edb("edge", "a", "b"); path = p.idb("path", "a", "b")
>>> _ = p.rule(path, edge)
>>> longer = NaturalJoin(Rename(edge, {"b": "c"}), Rename(path, {"a": "c"}))
>>> _ = p.rule(path, Projection(longer, ("a", "b")), origin="paths.ded:2")
>>> conclusions = Conclusions(p, {"edge": [(1, 2), (2, 3)]})
>>> print(conclusions.why("path", (1, 3)))
path(1, 3): paths.ded:2
  edge(1, 2): given
  path(2, 3): rule 1 of path
    edge(2, 3): given
>>> print(conclusions.why_not("path", (3, ANY)))
path(3, _) is not there
  rule 1 of path: no edge with a = 3
  paths.ded:2: no edge with a = 3
>>> [len(list(one.walk())) for one in Conclusions(p, {"edge": [(1, 2), (2, 3), (1, 3)]}).all_of("path", (1, 3))]
[2, 4]

A circuit forgets why, which makes it fast: the program is evaluated again for the facts, once, and what is asked for is
searched in the rows.  Each question costs what it reaches.  A fixpoint is a relation of its own there, with one rule.

Contract: what is called given was given; each rule that is named makes its conclusion of the premises, and of the
relations that it reads by negation or grouping as they are.

Source: ``docs/design/explain.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from syndicate.errors import FactError, PlanError
from syndicate.explain.absence import ANY, DEPTH_NOT, WhyNot
from syndicate.explain.derivation import Derivation, Row, said
from syndicate.explain.lack import FailedRule, lacks
from syndicate.explain.proof import Proof, Proofs
from syndicate.explain.witness import Bound, Fact, Grouped, Witnesses, fits
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.plan import Expression, Fixpoint, Plan, Program, Relation, Rule
from syndicate.plan.algebra import with_parts
from syndicate.plan.lowering import Facts
from syndicate.plan.rules import Declared, Rules
from syndicate.values.value import fields_of, is_record


@frozen(eq=False, repr=False)
class Conclusion(Derivation):
    """A row of a program's relation: ``given``, or by a *rule*."""

    premises: tuple[Conclusion, ...] = ()
    groups: tuple[tuple[Grouped, tuple[Conclusion, ...]], ...] = ()
    rule: Rule | None = None

    def because(self) -> str:
        """The rule."""
        return "given" if self.rule is None else str(self.rule)

    def place(self) -> str:
        """Where the rule was written, if that was said."""
        return "" if self.rule is None else self.rule.origin


class Conclusions(Proofs[Rule, Conclusion]):
    """What follows from *facts* by a program."""

    def __init__(self, program: Rules | Plan, facts: Mapping[str, Facts] | None = None) -> None:
        """Facts by relation, as :func:`syndicate.plan.evaluate` takes them; evaluates the program once."""
        self.program = _Lifting(program.program if isinstance(program, Plan) else program).program
        plan = self.program.plan()
        changes = {name: plan.delta(name, change) for name, change in (facts or {}).items()}
        self.facts = {
            name: {key_of(row) for row, weight in change.items() if weight > 0} for name, change in changes.items()
        }
        rows = plan.step(changes)
        contents: dict[str, dict[Key, object]] = {
            name: {key_of(row): None for row, weight in rows[name].items() if weight > 0}
            for name in self.program.declared
        }
        rules: dict[str, list[Rule]] = {}
        for rule in self.program.rules:
            rules.setdefault(rule.head, []).append(rule)
        super().__init__(Witnesses(contents), rules)

    def why(self, relation: str, row: Element) -> Conclusion:
        """A derivation of a row; raises :class:`FactError` if it is not there."""
        fact = self._fact(relation, row)
        if not self.search.prove(fact):
            raise _unproven(fact)
        return self.tree(fact)

    def all_of(self, relation: str, row: Element) -> Iterator[Conclusion]:
        """A derivation for each alternative by which a rule makes a row, or it is given; none uses the row itself."""
        return self.every(self._fact(relation, row))

    def why_not(self, relation: str, row: Element, *, depth: int = DEPTH_NOT) -> WhyNot:
        """What each rule lacks to make a row, in which ``ANY`` is any value, *depth* levels of missing premises."""
        return self._why_not(relation, self._values(relation, row), depth, set())

    # --------------------------------------------------------------------------------------------------------- proofs

    def base_proof(self, fact: Fact) -> Proof[Rule] | None:
        """The facts are given."""
        return Proof("given") if fact.row in self.facts.get(fact.name, ()) else None

    def otherwise(self, fact: Fact) -> None:
        """All others are by rules."""
        return

    def bound(self, fact: Fact, rule: Rule) -> Bound:
        """By name: a body has its attributes in any order."""
        return dict(zip(self.program[fact.name].heading, natural(fact.row), strict=True))

    def derivation(
        self,
        fact: Fact,
        proof: Proof[Rule],
        premises: tuple[Conclusion, ...],
        groups: tuple[tuple[Grouped, tuple[Conclusion, ...]], ...],
    ) -> Conclusion:
        """A conclusion."""
        return Conclusion(
            fact.name,
            natural(fact.row),
            proof.how,
            premises=premises,
            conditions=proof.absences,
            groups=groups,
            rule=proof.rule,
        )

    # -------------------------------------------------------------------------------------------------- what is asked

    def _values(self, relation: str, row: Element) -> Bound:
        heading = self.program[relation].heading
        values: Row = fields_of(row) if is_record(row) else row
        if type(values) is not tuple or len(values) != len(heading):
            raise FactError(
                f"{row!r} is no row of {relation}: a tuple of {len(heading)} is needed: {', '.join(heading)}"
            )
        return {name: value for name, value in zip(heading, values, strict=True) if value is not ANY}

    def _fact(self, relation: str, row: Element) -> Fact:
        bound = self._values(relation, row)
        if len(bound) == len(self.program[relation].heading):
            fact = Fact(relation, key_of(tuple(bound.values())))
            if fact.row in self.witnesses.contents[relation]:
                return fact
        raise FactError(f"{said(relation, self._pattern(relation, bound))} is not there: ask why_not")

    def _pattern(self, relation: str, bound: Bound) -> Row:
        return tuple(bound.get(name, ANY) for name in self.program[relation].heading)

    def _why_not(self, relation: str, bound: Bound, depth: int, asked: set[tuple[str, Key]]) -> WhyNot:
        heading, row = self.program[relation].heading, self._pattern(relation, bound)
        if any(fits(natural(key), heading, bound) for key in self.witnesses.contents[relation]):
            return WhyNot(relation, row, there=True)
        asked.add((relation, key_of(row)))
        attempts = [
            self._deeper(attempt, depth, asked)
            for rule in self.rules.get(relation, ())
            for attempt in FailedRule.of(rule, str(rule), rule.origin, lacks(self.witnesses, rule.body, bound))
        ]
        return WhyNot(relation, row, tuple(attempts))

    def _deeper(self, attempt: FailedRule, depth: int, asked: set[tuple[str, Key]]) -> FailedRule:
        """With the reason why what is missing is, if rules could have made it."""
        missing = None if attempt.lack is None else attempt.lack.absence
        if missing is None or depth <= 1:
            return attempt
        (name, *_), bound = missing.collections, dict(missing.where)
        if not self.rules.get(name) or (name, key_of(self._pattern(name, bound))) in asked:
            return attempt
        return evolve(attempt, because=self._why_not(name, bound, depth - 1, asked))


class _Lifting:
    """The same program, asked for all of its relations, with a relation of its own for each fixpoint."""

    def __init__(self, program: Rules) -> None:
        self.program = Program()
        heads = {name: name for name in program.declared}
        for name, declared in program.declared.items():
            if declared.given:
                self.program.edb(name, *declared.relation.heading, bag=declared.bag, exact=declared.exact)
            else:
                self.program.idb(name, *declared.relation.heading)
            if declared.lattices:
                heads[name] = self._merged(program, declared)
        for rule in program.rules:
            self.program.rule(heads[rule.head], self.lifted(rule.body, {}), origin=rule.origin, text=rule.text)
        self.program.output(*self.program.declared)

    def _merged(self, program: Rules, declared: Declared) -> str:
        """The name of a relation that has the rows of one with lattices as they are before they are merged."""
        name = declared.relation.name
        if declared.given or any(one.recursive and name in one.relations for one in program.strata()):
            raise PlanError(
                f"{name} has lattices, and {'is given' if declared.given else 'depends on itself'}: what its values "
                "are merged of is not kept. Ask for reasons in a program without such a relation"
            )
        rows = self.program.idb(f"{name}, row by row", *declared.relation.heading)
        self.program.rule(name, declared.merged(rows), origin=f"{', '.join(declared.lattices)} merged")
        return rows.name

    def lifted(self, this: Expression, variables: Mapping[str, Relation]) -> Expression:
        """An expression in which relations stand for fixpoints, and *variables* for those around it."""
        if isinstance(this, Relation):
            return variables.get(this.name, this)
        if isinstance(this, Fixpoint):
            name = this.name
            while name in self.program.declared:
                name += "'"
            relation = self.program.idb(name, *this.attributes)
            self.program.rule(name, self.lifted(this.body, {**variables, this.name: relation}))
            return relation
        return with_parts(this, [self.lifted(part, variables) for part in this.parts()])


def _unproven(fact: Fact) -> PlanError:
    return PlanError(
        f"{said(fact.name, natural(fact.row))} is there, but no rule makes it when functions are called again: let "
        "them be pure"
    )
