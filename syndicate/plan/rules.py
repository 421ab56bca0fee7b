"""Rules: named relations, the rules that derive them, and which of them are asked for, as data.

What is compiled and explained is read here; :class:`syndicate.plan.lowering.Program` is what users make.

Source: PomoLogic; ``docs/design/plan.md``, "Relations and rules".

Growth: which attributes hold lattice values that may still grow, and which reads of them are not monotone.

A fold into a lattice (:class:`~syndicate.plan.algebra.GroupBy` with a lattice as its aggregate, or a relation that was
declared with ``lattices=``) does not get more rows as its input grows: it has the same row with a greater value.  Who
passes such a value on, merges it, calls a method that is marked monotone, or asks whether a threshold is reached, need
not wait for the last value.  Who compares it, joins by it, groups by it, calls what nobody marked, or keeps it as a row
beside the next one, must.

>>> from syndicate.lattice import Max
>>> from syndicate.plan.algebra import Agg, GroupBy, Projection, Selection
>>> from syndicate.plan.algebra import Relation
>>> from syndicate.plan.scalar import Call, Compare, Holds
>>> votes = GroupBy(Relation("vote", ("topic", "n")), ("topic",), {"most": Agg(Max, "n")})
>>> growth = Growth({})
>>> growth.of(votes), growth.why(votes), growth.why(Selection(votes, Compare("most", ">", 3)))
({'most': <class 'syndicate.lattice.extremum.Max'>}, '', 'most > 3, and most may grow')
>>> growth.why(Selection(votes, Holds(Max.gt, "most", 3)))
''

Source: Conway et al. 2012, "Monotone functions and morphisms"; ``docs/design/lattice.md``, "Lattices in circuits".

Strata: which relations are computed before which, and where a program waits for all of its input.

A relation depends on those that its rules read.  Reading the right side of a difference or an antijoin, or what is
grouped, is not *monotone*: more rows there may take rows away, so that these must be complete before they are read.
Such a place is a point of order, as CALM analysis calls it; a program without any is confluent.  A fold into a lattice
is not one, as long as its value is read in a monotone way (:mod:`syndicate.plan.rules`).  Relations that depend on each
other are computed together, as one loop; if one of the dependencies in such a component is not monotone, the
rows have no well-defined meaning, and the program is refused with the whole cycle in the message.

>>> p, q = Relation("p", ("x",)), Relation("q", ("x",))
>>> [(found.name, found.why) for found in occurrences(Difference(p, q))]
[('p', ''), ('q', 'right side of a difference')]

Source: PomoLogic, section 2.3; Hellerstein and Alvaro 2020 (the CALM theorem); ``docs/design/plan.md``, "Strata".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs
from attrs import define, field, frozen

from syndicate.errors import PlanError, Unstratifiable
from syndicate.flow.element import Element
from syndicate.graph import components, shortest
from syndicate.lattice import Lattice
from syndicate.lattice.lattice import mark_of
from syndicate.plan.algebra import (
    Agg,
    AntiJoin,
    Difference,
    EquiJoin,
    Expression,
    Fixpoint,
    FlatMap,
    GroupBy,
    Heading,
    Map,
    NaturalJoin,
    NonMonotone,
    Projection,
    Relation,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
    heading_of,
    is_expression,
    listed,
    meant,
    walk,
)
from syndicate.plan.scalar import AllOf, AnyOf, Arith, Attr, Call, Condition, Const, Holds, Scalar

# --------------------------------------------------------------------------------------------------------------- growth


ColumnValue: TypeAlias = type[Lattice] | str | None
"""A lattice, or None if it is not known which; a text where not even that is sure, as of what functions make."""

Growing: TypeAlias = Mapping[str, ColumnValue]
"""Attributes whose values may grow."""

NOTHING: Growing = {}


@define(eq=False)
class Growth:
    """The analysis of expressions over relations of which some columns hold *lattices*."""

    lattices: Mapping[str, Growing]
    _of: dict[Expression, Growing] = field(factory=dict, init=False)

    def of(self, expression: Expression) -> Growing:
        """The attributes of an expression whose values may grow."""
        columns = self._of.get(expression)
        if columns is None:
            columns = self._of[expression] = self.grows(expression)
        return columns

    def why(self, this: Expression) -> str:
        """What is not monotone about how an expression reads values of its parts that may grow; empty if nothing."""
        looks = [(what, name) for what, names in self._looks(this) for name in names]
        return "; ".join(f"{what}, and {name} may grow" for what, name in dict.fromkeys(looks))

    def begins(self, this: Expression) -> bool:
        """Whether values that may grow are made, or read of a relation, by this very expression."""
        if isinstance(this, GroupBy):
            return any(agg.aggregate.form == "lattice" for _, agg in this.aggregates)
        return isinstance(this, Relation) and bool(self.lattices.get(this.name))

    def why_stored(self, body: Expression, heading: Iterable[str]) -> str:
        """Why who keeps these attributes of *body* as they are must wait for its last rows; empty if nothing."""
        growing = [name for name in heading if name in self.of(body)]
        return f"{', '.join(growing)} may grow" if growing else ""

    # --------------------------------------------------------------------------------------------------- what grows

    def grows(self, this: Expression) -> Growing:
        """The same, worked out."""
        match this:
            case Relation():
                return self.lattices.get(this.name, NOTHING)
            case Projection():
                source = self.of(this.source)
                return (
                    {name: kind for name, scalar in this.columns for kind in _kinds(scalar, source)} if source else {}
                )
            case Rename():
                source, new = self.of(this.source), dict(this.renaming)
                return {new.get(name, name): kind for name, kind in source.items()}
            case GroupBy():
                by = {name: kind for name, kind in self.of(this.source).items() if name in this.by}
                folds = {n: a.aggregate.lattice for n, a in this.aggregates if a.aggregate.form == "lattice"}
                return {**by, **{name: _lattice(cls) for name, cls in folds.items()}}
            case Map() | FlatMap() | NonMonotone():
                return NOTHING
        merged: dict[str, ColumnValue] = {}
        for part in this.parts():
            for name, kind in self.of(part).items():
                if name in this.heading:
                    merged[name] = max(merged.get(name, kind), kind, key=_tells)
        return merged

    # --------------------------------------------------------------------------------------------------- who looks

    def _looks(self, this: Expression) -> Iterator[tuple[str, list[str]]]:
        """Places with the attributes that are looked at there; of what grows only."""
        parts = [part for part in this.parts() if self.of(part)]
        if not parts:
            return
        grows = {name: kind for part in parts for name, kind in self.of(part).items()}
        match this:
            case Projection():
                for _, scalar in this.columns:
                    yield str(scalar), _looked(scalar, grows)
            case Selection() | ThetaJoin() | EquiJoin():
                for condition in this.conditions:
                    yield str(condition), _asked(condition, grows)
            case NaturalJoin() | SemiJoin() | AntiJoin():
                shared = [name for name in grows if sum(name in part.heading for part in this.parts()) > 1]
                yield "join", shared
            case Difference():
                yield "difference", list(grows)
            case GroupBy():
                yield "group", [name for name in this.by if name in grows]
                for _, agg in this.aggregates:
                    for scalar in agg.of:
                        names = _looked(scalar, grows)
                        if len(agg.of) > 1 or agg.aggregate.by is not None or agg.aggregate.form != "lattice":
                            names = [name for name in scalar.attributes() if name in grows]
                        yield str(agg), names
            case Map() | FlatMap():
                mark = mark_of(this.function)
                if mark is None or not mark.kind.is_monotone:
                    yield this.detail(), list(grows)
            case Fixpoint():
                yield f"the loop {this.name}", list(grows)


def _tells(kind: object) -> int:
    return 2 if isinstance(kind, type) else int(kind is None)


def _lattice(cls: object) -> type[Lattice] | None:
    return cls if isinstance(cls, type) and issubclass(cls, Lattice) else None


def _kinds(scalar: Scalar, grows: Growing) -> list[ColumnValue]:
    """The lattice of a scalar, in a list; empty if it does not grow, or is looked at where it must be complete."""
    match scalar:
        case Attr():
            return [grows[scalar.name]] if scalar.name in grows else []
        case Const():
            return []
    return [None] if any(name in grows for name in scalar.attributes()) and not _looked(scalar, grows) else []


def _looked(scalar: Scalar, grows: Growing) -> list[str]:
    """The attributes of those that grow that a scalar looks at in a way that is not monotone."""
    match scalar:
        case Attr() | Const():
            return []
        case Call():
            return _called(scalar.function, scalar.arguments, grows)
        case Arith():
            return _called(_operator(scalar, grows), (scalar.left, scalar.right), grows)


def _operator(scalar: Arith, grows: Growing) -> Callable[..., Element] | None:
    kinds = _kinds(scalar.left, grows)
    name = {"+": "__add__", "-": "__sub__"}.get(scalar.op, "")
    return getattr(kinds[0], name, None) if kinds else None


def _called(function: object, arguments: Iterable[Scalar], grows: Growing) -> list[str]:
    mark = mark_of(function)
    names: list[str] = []
    for place, argument in enumerate(arguments):
        kind = None if mark is None else mark.argument if place else mark.kind
        if kind is not None and kind.is_monotone:
            names += _looked(argument, grows)
        else:
            names += [name for name in argument.attributes() if name in grows]
    return names


def _asked(condition: Condition, grows: Growing) -> list[str]:
    """The same of a condition: a test by a method that is marked monotone is a threshold, as are several of them."""
    match condition:
        case Holds():
            return _called(condition.function, condition.arguments, grows)
        case AllOf() | AnyOf():
            return [name for part in condition.parts for name in _asked(part, grows)]
    return [name for name in condition.attributes() if name in grows]


# --------------------------------------------------------------------------------------------------------------- strata


@frozen
class Occurrence:
    """A place where an expression reads a relation.  Made by :func:`occurrences`.

    *why* says what is not monotone about it, if anything.

    >>> from syndicate.plan import AntiJoin, Relation
    >>> [(each.name, each.why) for each in occurrences(AntiJoin(Relation("a", ("x",)), Relation("b", ("x",))))]
    [('a', ''), ('b', 'negation')]
    """

    name: str
    heading: Heading
    why: str


@frozen
class Rule:
    """``head :- body``: the rows of *body* are rows of *head*.  Made by :meth:`Program.rule`.

    *origin* says where it was written, *text* how, if that is known.
    """

    head: str
    body: Expression
    _origin: object = field(eq=False)
    number: int
    _text: object = field(default="", eq=False)

    @property
    def origin(self) -> str:
        """Where it was written."""
        return str(self._origin)

    @property
    def text(self) -> str:
        """How it was written."""
        return str(self._text)

    def __str__(self) -> str:
        origin = self.origin or f"rule {self.number} of {self.head}"
        return f"{origin}: {self.text}" if self.text else origin

    @property
    def label(self) -> str:
        """What the nodes of the circuit are called that compute the body."""
        return f"{self.head} ({self})"


@frozen
class Edge:
    """*head* depends on *body* by a rule.  Made by :func:`occurrences`, for each rule.

    *why* says what is not monotone about it, if anything.
    """

    head: str
    body: str
    why: str
    rule: Rule

    @property
    def monotone(self) -> bool:
        """Whether more of the body can only mean more of the head."""
        return not self.why


@frozen
class Stratum:
    """Relations that are computed together: one, or several that depend on each other.

    Made by :meth:`Program.strata`.

    *level* counts the points of order on the path to here, on the path that has most: Bud's number of a stratum.
    """

    level: int
    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool


def occurrences(expression: Expression, growth: Growth | None = None, kept: Iterable[str] = ()) -> list[Occurrence]:
    """Where an expression reads relations from outside, each place of another kind once.

    *growth* knows which columns of relations may grow; *kept* are the attributes whose values are kept as they are.
    """
    result: dict[Occurrence, None] = {}
    seen: set[tuple[Expression, str, frozenset[str]]] = set()
    pending: list[tuple[Expression, str, frozenset[str]]] = [(expression, "", frozenset())]
    grows = False
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        this, why, bound = at
        if growth is not None and not grows and growth.begins(this):  # most expressions hold nothing that grows
            grows, pending = True, [(expression, growth.why_stored(expression, kept), frozenset())]
            result.clear()
            seen.clear()
            continue
        if isinstance(this, Relation):
            if this.name not in bound:
                result[Occurrence(this.name, this.heading, why)] = None
            continue
        inner = bound | {this.name} if isinstance(this, Fixpoint) else bound
        looked = growth.why(this) if growth is not None and grows else ""
        for part, how in reversed(list(parts_read(this))):
            read = looked if looked and growth is not None and growth.of(part) else ""
            pending.append((part, why or how or read, inner))
    return list(result)


def parts_read(expression: Expression) -> Iterator[tuple[Expression, str]]:
    """The parts, and what is not monotone about how their rows are read (empty if nothing)."""
    match expression:
        case Difference():
            yield expression.left, ""
            yield expression.right, "right side of a difference"
        case AntiJoin():
            yield expression.left, ""
            yield expression.right, "negation"
        case GroupBy():
            whole = [str(agg) for _, agg in expression.aggregates if agg.aggregate.form != "lattice"]
            yield expression.source, ", ".join(whole)
        case NonMonotone():
            yield expression.source, expression.why
        case _:
            for part in expression.parts():
                yield part, ""


def _refusal(wrong: Edge, below: Mapping[str, Sequence[Edge]], members: set[str]) -> Unstratifiable:
    """The error for an edge that is not monotone and lies on a cycle: the shortest such cycle."""
    back = shortest(
        wrong.body, wrong.head, lambda name: ((edge.body, edge) for edge in below[name] if edge.body in members)
    )
    assert back is not None  # they are in one component
    cycle = [wrong, *back]
    route = " -> ".join([*(_step(edge) for edge in cycle), wrong.head])
    rules = "; ".join(dict.fromkeys(str(edge.rule) for edge in cycle))
    return Unstratifiable(
        f"{wrong.head} depends on itself in a way that is not monotone ({wrong.why} of {wrong.body}): {route}. "
        f"The rules are: {rules}. Break the cycle: let one of them take effect in a later step, or leave it out",
        [(edge.head, edge.body, edge.why, str(edge.rule)) for edge in cycle],
    )


def _step(edge: Edge) -> str:
    return f"{edge.head} -[{edge.why}]" if edge.why else edge.head


# ---------------------------------------------------------------------------------------------------------------- rules


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
        declared = self._declare(name, attributes if record is None else _fields(name, record), lattices)
        declared.given = True
        declared.bag = bag
        declared.exact = exact
        if key is not None:
            declared.key, heading = frozenset(key), declared.relation.heading
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
        are one row, in which these values are merged.  A plain value is made an element; None is no value, and there
        is no row before each of these columns has one.  Such a relation may be read by its own rules, as long as they
        read the values in a monotone way.
        """
        return self._declare(name, attributes, lattices).relation

    def rule(self, head: Relation | str, body: Expression, *, origin: object = "", text: object = "") -> Rule:
        """Let the rows of *body* be rows of *head*.

        *origin* and *text* are for messages: a file and a line, and how the rule was written, or what has these as its
        text, which is then made where it is read.  A head given by its name is declared with the body's attributes if
        it is not yet known.
        """
        is_expression("A rule's body", body)
        name = head if isinstance(head, str) else head.name
        if isinstance(head, Relation) or name not in self.declared:
            self._declare(name, body.heading if isinstance(head, str) else head.heading)
        declared = self.declared[name]
        rule = Rule(name, body, origin, len(declared.rules) + 1, text)
        missing = [attribute for attribute in declared.relation.heading if attribute not in body.heading]
        if missing:
            raise PlanError(
                f"{rule}: the body lacks {listed(missing)}{meant(missing[0], body.heading)}; it has "
                f"{listed(body.heading)}, and {name} has {listed(declared.relation.heading)}"
            )
        declared.rules.append(rule)
        self.rules.append(rule)
        return rule

    def labelled(self, label: str) -> Rule | None:
        """The rule whose body a node of that name in the plan's circuit computes, as an error of a step tells it."""
        return next((rule for rule in self.rules if rule.label == label), None)

    def output(self, *names: str | Relation) -> None:
        """Ask for relations; without this, all derived ones are outputs."""
        for output in names:
            name = output.name if isinstance(output, Relation) else output
            self[name]
            self._outputs[name] = None

    def _declare(
        self, name: str, attributes: Iterable[Element], lattices: Mapping[str, type[Lattice]] | None = None
    ) -> Declared:
        heading: Heading = tuple(attributes)
        for column, cls in (lattices or {}).items():
            if column not in heading:
                raise PlanError(
                    f"relation {name}: lattices has {column!r}, which is no attribute{meant(column, heading)}; the "
                    f"attributes are {listed(heading)}"
                )
            if not _is_lattice(cls):
                raise PlanError(f"relation {name}: {column} needs a lattice, a class of syndicate.lattice, not {cls!r}")
        declared = self.declared.get(name)
        if declared is None:
            declared = self.declared[name] = Declared(Relation(name, heading), lattices=dict(lattices or {}))
        elif declared.relation.heading != heading:
            raise PlanError(
                f"relation {name} has the attributes {listed(declared.relation.heading)}: it cannot have "
                f"{listed(heading)} as well"
            )
        elif lattices is not None and declared.lattices != lattices:
            raise PlanError(f"relation {name} is declared already, with other lattices: name them the first time")
        return declared

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
        """Which relation depends on which, by which rule.

        Raises :class:`PlanError` for a rule that reads an unknown relation or one under another heading.
        """
        lattices = {name: declared.lattices for name, declared in self.declared.items() if declared.lattices}
        growth = Growth(lattices)
        edges = []
        for rule in self.rules:
            head = self.declared[rule.head]
            plain = [name for name in head.relation.heading if name not in head.lattices]
            grows = lattices or GroupBy in rule.body.operators
            for one in occurrences(rule.body, growth if grows else None, plain):
                read = self.declared.get(one.name)
                if read is None or read.relation.heading != one.heading:
                    raise self._misread(rule, one)
                edges.append(Edge(rule.head, one.name, one.why, rule))
        return edges

    def points_of_order(self) -> list[Edge]:
        """The dependencies that are not monotone: where a program must know all of its input.  None: confluent."""
        return [edge for edge in self.edges() if not edge.monotone]

    def strata(self) -> list[Stratum]:
        """All relations in the order of evaluation.

        Raises :class:`PlanError` for a rule that reads an unknown relation or one under another heading,
        :class:`Unstratifiable` for a cycle that is not monotone.
        """
        for rule in self.rules:
            if Fixpoint in rule.body.operators:
                self._check_loops(rule)
        below: dict[str, list[Edge]] = {name: [] for name in self.declared}
        for edge in self.edges():
            below[edge.head].append(edge)
        bodies = {head: [edge.body for edge in dependencies] for head, dependencies in below.items()}
        levels: dict[str, int] = {}
        strata = []
        for component in components(bodies, bodies.__getitem__):
            members = set(component)
            inner = [edge for name in component for edge in below[name] if edge.body in members]
            for edge in inner:
                if edge.why:
                    raise _refusal(edge, below, members)
            outer = [edge for name in component for edge in below[name] if edge.body not in members]
            level = max((levels[edge.body] + bool(edge.why) for edge in outer), default=0)
            levels.update(dict.fromkeys(component, level))
            ordered = [name for name in self.declared if name in members] if len(members) > 1 else component
            rules = [rule for name in ordered for rule in self.declared[name].rules]
            strata.append(Stratum(level, tuple(ordered), tuple(rules), bool(inner)))
        return strata

    def _misread(self, rule: Rule, read: Occurrence) -> PlanError:
        """The error for a relation that a rule reads otherwise than it is declared."""
        declared = self.declared.get(read.name)
        if declared is None:
            return PlanError(
                f"{rule} reads {read.name!r}, which is not declared{meant(read.name, self.declared)}: use edb() or "
                "idb()"
            )
        return PlanError(
            f"{rule} reads {read.name} with the attributes {listed(read.heading)}, but it has "
            f"{listed(declared.relation.heading)}: rename them"
        )

    def _check_loops(self, rule: Rule) -> None:
        """Raise for a wrong loop in a rule."""
        for loop in walk(rule.body):
            if not isinstance(loop, Fixpoint):
                continue
            if loop.name in self.declared:
                raise PlanError(f"{rule}: a Fixpoint cannot be called {loop.name}, as a relation is: rename it")
            growth = Growth({name: declared.lattices for name, declared in self.declared.items()})
            for occurrence in occurrences(loop.body, growth, loop.heading):
                if occurrence.name == loop.name and occurrence.why:
                    raise Unstratifiable(
                        f"Fixpoint {loop.name} in {rule}: the body reads {loop.name} in a way that is not "
                        f"monotone ({occurrence.why}): take that part out of the loop",
                        [(loop.name, loop.name, occurrence.why, str(rule))],
                    )

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


def _is_lattice(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Lattice)
