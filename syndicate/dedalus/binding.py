"""Bodies read as they are written: which rows satisfy a rule, one binding at a time.

Runs go through circuits and never name the rows behind a conclusion.  To explain one, and to ask what other rows could
have led to it, its rule is matched again here, with indexes for the columns that are known.

>>> from syndicate.dedalus.parse import parse
>>> (rule,) = [one for one in parse("p(X) :- q(X, Y), r(Y), X < 9;")]
>>> tables = {"q": RowIndex([(1, 2), (9, 2), (3, 4)]), "r": RowIndex([(2,)])}
>>> [(known, rows) for known, rows in Body(rule).bindings(lambda atom: tables[atom.relation], {})]
[({'X': 1, 'Y': 2}, [(1, 2), (2,)])]

Contract: comparisons without arithmetic are asked as soon as their variables are known, all others last, in the order
of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, cached_property
from operator import itemgetter
from typing import Final, TypeAlias

from attrs import define, evolve, field

from syndicate.dedalus.ast import (
    Aggregate,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
    compute,
    normal,
    variables,
)
from syndicate.dedalus.desugar import grouped
from syndicate.dedalus.lower import sender_of
from syndicate.flow import aggregates
from syndicate.flow.comparison import COMPARING

Binding: TypeAlias = dict[str, Value]
Pattern: TypeAlias = tuple[Value | Wildcard, ...]
"""A row in which ``_`` is any value."""
Sent: TypeAlias = tuple[Row, Value]
"""A row, and who sends it if it is sent."""


FEW_ROWS: Final = 8
"""So many rows need no index."""


class RowIndex:
    """Rows in the order in which they came, found by the columns that are known; a few are looked through."""

    __slots__ = ("_indexes", "rows")

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: dict[Row, None] = dict.fromkeys(rows)
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] | None = None

    def add(self, row: Row) -> bool:
        """Add a row; whether it is new."""
        if row in self.rows:
            return False
        self.rows[row] = None
        for columns, index in self._indexes.items() if self._indexes else ():
            index.setdefault(tuple([row[n] for n in columns]), []).append(row)
        return True

    def find(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows with *key* in *columns*."""
        if not columns:
            return list(self.rows)
        if len(self.rows) <= FEW_ROWS:
            if len(columns) == 1:
                (column,), (value,) = columns, key
                return [row for row in self.rows if row[column] == value]
            return [row for row in self.rows if tuple([row[n] for n in columns]) == key]
        indexes = self._indexes = self._indexes or {}
        index = indexes.get(columns)
        if index is None:
            index = indexes[columns] = {}
            for row in self.rows:
                index.setdefault(tuple([row[n] for n in columns]), []).append(row)
        return list(index.get(key, ()))


Tables: TypeAlias = Callable[[Atom], RowIndex]
"""The rows that an atom of a body reads."""

EMPTY: RowIndex = RowIndex()


def value_of(term: Term | Aggregate, binding: Binding) -> Value:
    """The value of a term whose variables are known; raises :class:`DedalusArithmetic`."""
    match term:
        case Variable():
            return binding[term.name]
        case Constant():
            return term.value
        case Arithmetic():
            return compute(term.op, value_of(term.left, binding), value_of(term.right, binding))
    raise AssertionError(f"{term} has no value")


def compared(goal: Comparison, binding: Binding) -> bool:
    """Whether a comparison holds, as the engine decides it."""
    return COMPARING[goal.op](value_of(goal.left, binding), value_of(goal.right, binding))


def matching(atom: Atom, table: RowIndex, binding: Binding) -> Sequence[Row]:
    """The rows that an atom means once its variables are known; ``_`` is any value, and one not known too."""
    columns, key = [], []
    for column, term in enumerate(atom.terms):
        if isinstance(term, Wildcard) or (isinstance(term, Variable) and term.name not in binding):
            continue
        if isinstance(term, Arithmetic) and any(v.name not in binding for v in variables(term)):
            continue
        columns.append(column)
        key.append(value_of(term, binding))
    return table.find(tuple(columns), tuple(key))


def unified(atom: Atom, row: Pattern) -> Binding | None:
    """The binding under which a head is a row, as far as plain terms and values say; None if it is never that row."""
    binding: Binding = {}
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(value, Wildcard):
            continue
        if isinstance(term, Constant) and term.value != value:
            return None
        if isinstance(term, Variable) and binding.setdefault(term.name, value) != value:
            return None
    return binding


@define(eq=False)
class Body:
    """The body of a rule: its positive atoms, conditions, and what must not be there; *times* name its time.

    *constants* are those of its atoms, of what is compared without arithmetic, and of the head.
    """

    rule: Rule
    positive: list[Atom] = field(init=False, factory=list)
    negative: list[Atom] = field(init=False, factory=list)
    late: list[Comparison] = field(init=False, factory=list)
    early: list[Comparison] = field(init=False, factory=list)
    times: tuple[str, ...] = field(init=False)
    constants: dict[Value, None] = field(init=False, factory=dict)
    _plans: dict[tuple[str, ...], MatchPlan] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.times = tuple([time.name for time in self.rule.times])
        plain = list(self.rule.head.terms)
        for goal in self.rule.body:
            if isinstance(goal, Atom):
                atom = goal
                if goal.negated:
                    self.negative.append(goal)
                else:
                    atom = self._hidden(goal)
                    self.positive.append(atom)
                plain += atom.terms
            elif isinstance(goal, Comparison):
                if any(isinstance(term, Arithmetic) for term in (goal.left, goal.right)):
                    self.late.append(goal)
                else:
                    self.early.append(goal)
                    plain += (goal.left, goal.right)
        self.constants = {term.value: None for term in plain if isinstance(term, Constant)}

    def _hidden(self, atom: Atom) -> Atom:
        """The atom with a variable for each column that is computed, which is compared last."""
        if not any(isinstance(term, Arithmetic) for term in atom.terms):
            return atom
        columns = list(atom.terms)
        for column, term in enumerate(columns):
            if isinstance(term, Arithmetic):
                hidden = Variable(f"={len(self.late)}")
                columns[column] = hidden
                self.late.append(Comparison(hidden, "==", term))
        return evolve(atom, terms=tuple(columns))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The variables of a binding, sorted."""
        bound = {v.name for atom in self.positive for v in variables(*atom.terms)}
        bound.update(self.times)
        return tuple(sorted(name for name in bound if not name.startswith("=")))

    def bindings(self, tables: Tables, start: Binding) -> list[tuple[Binding, list[Row]]]:
        """The bindings that extend *start* and satisfy all but negated atoms, with a row for each positive atom."""
        plan = self.plan(tuple(start))
        return [(plan.binding(one), plan.rows(one)) for one in plan.found(tables, tuple(start.values()))]

    def plan(self, names: tuple[str, ...] = ()) -> MatchPlan:
        """How it is matched if *names* are known."""
        if (plan := self._plans.get(names)) is None:
            plan = self._plans[names] = MatchPlan(self, names)
        return plan


Bound: TypeAlias = Row
"""A binding as one row: the values that were known, the constants of the rule, and the rows of the atoms so far."""
Columns: TypeAlias = Callable[[Bound], Row]


@define(eq=False)
class Lookup:
    """How the rows of a positive atom are found: by a *key* in *columns*, with parts that are the *same*.

    *asked* are the comparisons whose variables are known then.
    """

    atom: Atom
    columns: tuple[int, ...]
    key: Columns
    same: list[tuple[int, int]]
    asked: list[Comparison]

    def longer(self, table: RowIndex, bindings: list[Bound]) -> list[Bound]:
        """What bindings lead to, not yet compared."""
        if columns := self.columns:
            key, find = self.key, table.find
            bindings = [bound + row for bound in bindings for row in find(columns, key(bound))]
        else:
            rows = table.rows
            bindings = [bound + row for bound in bindings for row in rows]
        for one, other in self.same:
            bindings = [bound for bound in bindings if bound[one] == bound[other]]
        return bindings


class MatchPlan:
    """How a body is matched if some *names* are known: which atom comes after which, and where each value stands.

    The atoms of which most is known come first.

    >>> from syndicate.dedalus.parse import parse
    >>> (rule,) = [one for one in parse("p(X, Y, 9) :- q(X, Y), r(Y);")]
    >>> tables = {"q": RowIndex([(1, 2), (9, 2), (3, 4)]), "r": RowIndex([(2,)])}
    >>> plan = Body(rule).plan()
    >>> [plan.columns(rule.head.terms)(one) for one in plan.found(lambda atom: tables[atom.relation], ())]
    [(1, 2, 9), (9, 2, 9)]
    """

    __slots__ = ("_constants", "_late", "_places", "_spans", "first", "steps")

    def __init__(self, body: Body, names: tuple[str, ...]) -> None:
        self._constants = {value: place for place, value in enumerate(body.constants, len(names))}
        self._places = places = {name: place for place, name in enumerate(names)}
        self._late = body.late
        self._spans = [slice(0)] * len(body.positive)
        self.steps: list[Lookup] = []
        self.first, waiting = _ready(body.early, places)
        place, left = len(names) + len(self._constants), list(range(len(body.positive)))
        while left:
            best = left[0] if len(left) == 1 else max(left, key=lambda n: self._known(body.positive[n]))
            left.remove(best)
            atom = body.positive[best]
            columns, key, same = self._found(atom, place)
            asked, waiting = _ready(waiting, places) if waiting else (waiting, waiting)
            self.steps.append(Lookup(atom, columns, key, same, asked))
            self._spans[best] = slice(place, place + len(atom.terms))
            place += len(atom.terms)

    def _known(self, atom: Atom) -> int:
        """How many columns are known."""
        places = self._places
        return sum([(t.name in places) if isinstance(t, Variable) else isinstance(t, Constant) for t in atom.terms])

    def _found(self, atom: Atom, place: int) -> tuple[tuple[int, ...], Columns, list[tuple[int, int]]]:
        """How the rows of an atom are found that are bound from a place on."""
        columns, key, same = [], [], []
        for column, term in enumerate(atom.terms):
            if isinstance(term, Variable):
                there = self._places.setdefault(term.name, place + column)
                if there < place:
                    columns.append(column)
                    key.append(there)
                elif there < place + column:
                    same.append((there, place + column))
            elif isinstance(term, Constant):
                columns.append(column)
                key.append(self._constants[term.value])
        return tuple(columns), _taking(key), same

    def columns(self, terms: Sequence[Term | Aggregate]) -> Columns:
        """What takes the values of terms, which are known when it is called."""
        places = []
        for term in terms:
            if isinstance(term, Variable):
                places.append(self._places[term.name])
            elif isinstance(term, Constant):
                places.append(self._constants[term.value])
            else:
                return lambda bound: tuple([value_of(term, self._whole(bound)) for term in terms])
        return _taking(places)

    def absent(self, atom: Atom) -> tuple[tuple[int, ...], Columns]:
        """The columns of a negated atom that are known at the end, and what takes their values."""
        columns = [column for column, term in enumerate(atom.terms) if self._is_known(term)]
        return tuple(columns), self.columns([atom.terms[column] for column in columns])

    def _is_known(self, term: Term | Aggregate) -> bool:
        if isinstance(term, Variable):
            return term.name in self._places
        if isinstance(term, (Constant, Wildcard)):
            return isinstance(term, Constant)
        return all(variable.name in self._places for variable in variables(term))

    def start(self, values: Row) -> Bound:
        """The binding with which it begins, if these are the values of the names that are known."""
        return (*values, *self._constants)

    def found(self, tables: Tables, values: Row) -> list[Bound]:
        """What satisfies all but negated atoms, if these are the values of the names that are known."""
        bindings = [self.start(values)]
        if self.first:
            bindings = self.compared(self.first, bindings)
        for step in self.steps:
            bindings = step.longer(tables(step.atom), bindings)
            if step.asked:
                bindings = self.compared(step.asked, bindings)
            if not bindings:
                return bindings
        return self.compared(self._late, bindings) if self._late else bindings

    def compared(self, goals: Sequence[Comparison], bindings: list[Bound]) -> list[Bound]:
        """The bindings for which some comparisons hold."""
        for goal in goals:
            sides = self.columns([goal.left, goal.right])
            bindings = [bound for bound in bindings if COMPARING[goal.op](*sides(bound))]
        return bindings

    def _whole(self, bound: Bound) -> Binding:
        return {name: bound[place] for name, place in self._places.items() if place < len(bound)}

    def binding(self, bound: Bound) -> Binding:
        """The values by their names, as far as they are known."""
        binding = self._whole(bound)
        return {name: binding[name] for name in binding if not name.startswith("=")} if self._late else binding

    def rows(self, bound: Bound) -> list[Row]:
        """The rows of the positive atoms, in the order of the body."""
        return [bound[span] for span in self._spans]


def _taking(places: Sequence[int]) -> Columns:
    """What takes the values at some places."""
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda _: ()
    (place,) = places
    return lambda bound: (bound[place],)


def _ready(goals: list[Comparison], bound: Collection[str]) -> tuple[list[Comparison], list[Comparison]]:
    """The comparisons whose variables are known, and the others."""
    ready = [goal for goal in goals if all(variable.name in bound for variable in variables(goal))]
    return ready, [goal for goal in goals if goal not in ready]


# ----------------------------------------------------------------------------------------------- what heads make of it


def is_grouped(rule: Rule) -> bool:
    """Whether what a rule makes depends on several bindings at once."""
    return bool(rule.aggregates or rule.choices)


def sent_by(rule: Rule, row: Row, binding: Binding | None = None) -> Value:
    """Who sends a row; nobody in particular, unless the binding or the row says it."""
    term = sender_of(rule)
    if isinstance(term, Constant):
        return term.value
    if isinstance(term, Variable) and binding is not None:
        return binding[term.name]
    return row[rule.head.terms.index(term)] if term in rule.head.terms else ""


def rows_of(rule: Rule, bindings: list[Binding]) -> set[Sent]:
    """The rows of a head for all its bindings."""
    result: set[Sent] = set()
    if not rule.aggregates:
        for binding in bindings:
            whole_row = tuple(value_of(term, binding) for term in rule.head.terms)
            result.add((whole_row, sent_by(rule, whole_row, binding)))
        return result
    plain, totals = grouped(rule)
    groups: dict[Row, list[Binding]] = {}
    for binding in bindings:
        groups.setdefault(tuple(value_of(rule.head.terms[n], binding) for n in plain), []).append(binding)
    for key, members in groups.items():
        row: list[Value] = [total(rule, n, members) for n, _ in totals]
        for column, value in zip(plain, key, strict=True):
            row.insert(column, value)
        result.add((tuple(row), sent_by(rule, tuple(row))))
    return result


def total(rule: Rule, column: int, members: list[Binding]) -> Value:
    """An aggregate of bindings, as the engine computes it."""
    (aggregate,) = [each for n, each in grouped(rule)[1] if n == column]
    if aggregate.form == "count":
        return len(members)
    name = aggregate.of[0].name
    rows = {(n, binding[name]): 1 for n, binding in enumerate(members)}
    result: Value = _total(aggregate.form).of(rows)
    return normal(result)


@cache
def _total(form: str) -> aggregates.Aggregate:
    total: aggregates.Aggregate = getattr(aggregates, form)(_second)
    return total


def _second(pair: tuple[int, Value]) -> Value:
    return pair[1]
