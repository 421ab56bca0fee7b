"""Rules: named relations, the rules that derive them, and which of them are asked for, as data.

What is compiled and explained is read here; :class:`syndicate.plan.program.Program` is what users make.

Source: PomoLogic; ``docs/design/plan.md``, "Relations and rules".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from attrs import define, field

from syndicate.errors import PlanError
from syndicate.lattice import Lattice
from syndicate.plan.algebra import Agg, GroupBy
from syndicate.plan.expression import Expression, Relation, is_expression
from syndicate.plan.growth import Growing
from syndicate.plan.heading import Heading, heading_of, listed, meant
from syndicate.plan.stratify import Edge, Rule, Stratum, edges, occurrences, strata


@define(eq=False)
class Declared:
    """What a program knows of one relation.

    *key* is a set of attributes on which no two of its rows agree; *bag* says that a row may be given several times,
    *exact* that whoever gives rows sees to it himself that none is.  *lattices* are the columns that hold lattice
    values: rows that agree on all others are one row, whose values are merged.
    """

    relation: Relation
    given: bool = False
    key: frozenset[str] | None = None
    bag: bool = False
    exact: bool = False
    lattices: Mapping[str, type[Lattice]] = field(factory=dict)
    rules: list[Rule] = field(factory=list)

    def merged(self, rows: Expression) -> GroupBy:
        """The rows of the relation, of *rows* that have its heading: those that agree on what is no lattice as one."""
        by = [column for column in self.relation.heading if column not in self.lattices]
        return GroupBy(rows, by, {column: Agg(cls, column) for column, cls in self.lattices.items()})


class Rules:
    """Relations, rules and outputs."""

    def __init__(self) -> None:
        """No relations, no rules."""
        self.declared: dict[str, Declared] = {}
        self.rules: list[Rule] = []
        self._outputs: dict[str, None] = {}

    # --------------------------------------------------------------------------------------------------- declaring

    def edb(
        self,
        name: str,
        *attributes: str | type,
        key: Iterable[str] | None = None,
        bag: bool = False,
        exact: bool = False,
        lattices: Mapping[str, type[Lattice]] | None = None,
    ) -> Relation:
        """A relation whose rows are given from outside: attributes, or a record class for its fields.

        It is a set: a row that is given twice is there once, one deletion takes it away, and to delete what is not
        there changes nothing.  With *bag*, weights are added, and a row is there as long as its weight is above 0.
        *exact* says that what is given are the very changes of a set, 1 for a row that was not there and -1 for one
        that was, which saves keeping the set to make them so.  *key* says that rows that agree on these attributes are
        equal, which saves work.  Nobody checks *exact* and *key*.  With *lattices*, see :meth:`idb`.
        """
        if bag and exact:
            raise PlanError(f"relation {name}: a bag takes every row that is given: leave exact= out")
        record = attributes[0] if len(attributes) == 1 and isinstance(attributes[0], type) else None
        heading = _fields(name, record) if record is not None else heading_of(f"relation {name}", attributes)
        declared = self._declare(name, heading, lattices)
        declared.given = True
        declared.bag = bag
        declared.exact = exact
        if key is not None:
            declared.key = frozenset(key)
            unknown = sorted(declared.key - set(heading))
            if unknown:
                raise PlanError(
                    f"relation {name}: the key has {unknown[0]!r}, which is no attribute"
                    f"{meant(unknown[0], heading)}; the attributes are {listed(heading)}"
                )
        return declared.relation

    def idb(self, name: str, *attributes: str, lattices: Mapping[str, type[Lattice]] | None = None) -> Relation:
        """A relation that rules derive.  Without rules, and if it is not given, it is empty.

        *lattices* names the columns that hold lattice values, ``{"cost": Min}``.  Rows that agree on all other columns
        are one row, in which these values are merged; a plain value is made an element, and a row with None there is
        none.  Such a relation may be read by its own rules, as long as they read the values in a monotone way.
        """
        return self._declare(name, heading_of(f"relation {name}", attributes), lattices).relation

    def rule(self, head: Relation | str, body: Expression, *, origin: str = "", text: str = "") -> Rule:
        """Let the rows of *body* be rows of *head*.

        *origin* and *text* are told in messages: a file and a line, and how the rule was written.  A head given by its
        name is declared with the body's attributes if it is not yet known.
        """
        is_expression("A rule's body", body)
        name = head if isinstance(head, str) else head.name
        if isinstance(head, Relation) or name not in self.declared:
            self._declare(name, body.heading if isinstance(head, str) else head.heading)
        declared = self.declared[name]
        made = Rule(name, body, origin, len(declared.rules) + 1, text)
        missing = [attribute for attribute in declared.relation.heading if attribute not in body.heading]
        if missing:
            raise PlanError(
                f"{made}: the body lacks {listed(missing)}{meant(missing[0], body.heading)}; it has "
                f"{listed(body.heading)}, and {name} has {listed(declared.relation.heading)}"
            )
        declared.rules.append(made)
        self.rules.append(made)
        return made

    def labelled(self, label: str) -> Rule | None:
        """The rule whose body a node of that name in the plan's circuit computes, as an error of a step tells it."""
        return next((rule for rule in self.rules if rule.label == label), None)

    def output(self, *names: str | Relation) -> None:
        """Ask for relations; without this, all derived ones are outputs."""
        for given in names:
            name = given.name if isinstance(given, Relation) else given
            self[name]
            self._outputs[name] = None

    def _declare(self, name: str, heading: Heading, lattices: Mapping[str, type[Lattice]] | None = None) -> Declared:
        for column, cls in (lattices or {}).items():
            if column not in heading:
                raise PlanError(
                    f"relation {name}: lattices has {column!r}, which is no attribute{meant(column, heading)}; the "
                    f"attributes are {listed(heading)}"
                )
            if not _is_lattice(cls):
                raise PlanError(f"relation {name}: {column} needs a lattice, a class of syndicate.lattice, not {cls!r}")
        known = self.declared.get(name)
        if known is None:
            known = self.declared[name] = Declared(Relation(name, heading), lattices=dict(lattices or {}))
        elif known.relation.heading != heading:
            raise PlanError(
                f"relation {name} has the attributes {listed(known.relation.heading)}: it cannot have "
                f"{listed(heading)} as well"
            )
        elif lattices is not None and known.lattices != lattices:
            raise PlanError(f"relation {name} is declared already, with other lattices: name them the first time")
        return known

    # --------------------------------------------------------------------------------------------------- asking

    def __getitem__(self, name: str) -> Relation:
        """The relation of this name; raises :class:`PlanError`."""
        if name not in self.declared:
            raise PlanError(
                f"there is no relation {name!r}{meant(name, self.declared)}; there are {listed(self.declared)}"
            )
        return self.declared[name].relation

    @property
    def outputs(self) -> list[str]:
        """The relations that are asked for."""
        return list(self._outputs) or [name for name, declared in self.declared.items() if declared.rules]

    def edges(self) -> list[Edge]:
        """Which relation depends on which, by which rule."""
        return edges(self.rules, *self._columns())

    def points_of_order(self) -> list[Edge]:
        """The dependencies that are not monotone: where a program must know all of its input.  None: confluent."""
        return [edge for edge in self.edges() if not edge.monotone]

    def strata(self) -> list[Stratum]:
        """All relations in the order of evaluation.

        Raises :class:`PlanError` for a rule that reads an unknown relation or one under another heading,
        :class:`Unstratifiable` for a cycle that is not monotone.
        """
        for rule in self.rules:
            for found in occurrences(rule.body):
                known = self.declared.get(found.name)
                if known is None:
                    raise PlanError(
                        f"{rule} reads {found.name!r}, which is not declared{meant(found.name, self.declared)}: "
                        "use edb() or idb()"
                    )
                if known.relation.heading != found.heading:
                    raise PlanError(
                        f"{rule} reads {found.name} with the attributes {listed(found.heading)}, but it has "
                        f"{listed(known.relation.heading)}: rename them"
                    )
        return strata(self._columns()[0], self.rules, self._columns()[1])

    def _columns(self) -> tuple[dict[str, Heading], dict[str, Growing]]:
        """The heading of each relation, and the columns of some that hold lattice values."""
        declared = self.declared.items()
        return {name: one.relation.heading for name, one in declared}, {n: one.lattices for n, one in declared}

    def explain(self) -> str:
        """The strata, and each rule as a tree."""
        lines = []
        for number, stratum in enumerate(self.strata()):
            recursive = ", recursive" if stratum.recursive else ""
            lines.append(f"stratum {number} (level {stratum.level}{recursive}): {', '.join(stratum.relations)}")
            for rule in stratum.rules:
                lines.append(f"  {rule.head} :- ({rule})")
                lines += [f"    {line}" for line in rule.body.explain().splitlines()]
        return "\n".join(lines)


def _fields(name: str, record: type) -> Heading:
    if not hasattr(record, "__label__"):
        raise PlanError(f"relation {name}: {record.__name__} is no record class: decorate it with @record")
    return heading_of(f"relation {name}", (one.name for one in attrs.fields(record)))


def _is_lattice(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, Lattice)
