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
from typing import TypeAlias

from attrs import define, evolve, field, frozen

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
    terms,
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


class RowIndex:
    """Rows in the order in which they came, found by the columns that are known."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: dict[Row, None] = dict.fromkeys(rows)
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def add(self, row: Row) -> bool:
        """Add a row; whether it is new."""
        if row in self.rows:
            return False
        self.rows[row] = None
        for columns, index in self._indexes.items():
            index.setdefault(tuple(row[n] for n in columns), []).append(row)
        return True

    def find(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows with *key* in *columns*."""
        if not columns:
            return list(self.rows)
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = {}
            for row in self.rows:
                index.setdefault(tuple(row[n] for n in columns), []).append(row)
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

    *against* says how the rows of negated atoms are found, once all variables are known.
    """

    rule: Rule
    positive: list[Atom] = field(init=False)
    negative: list[Atom] = field(init=False)
    late: list[Comparison] = field(init=False)
    early: list[Comparison] = field(init=False)
    times: tuple[str, ...] = field(init=False)
    against: list[Lookup] = field(init=False)
    _orders: dict[frozenset[str], tuple[list[Comparison], list[Lookup]]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.positive, self.negative, self.late, self.early = [], [], [], []
        self.times = tuple(time.name for time in self.rule.times)
        for goal in self.rule.body:
            match goal:
                case Atom() if goal.negated:
                    self.negative.append(goal)
                case Atom():
                    columns = list(goal.terms)
                    for column, term in enumerate(columns):
                        if isinstance(term, Arithmetic):
                            hidden = Variable(f"={len(self.late)}")
                            columns[column] = hidden
                            self.late.append(Comparison(hidden, "==", term))
                    plain = columns == list(goal.terms)
                    self.positive.append(goal if plain else evolve(goal, terms=tuple(columns)))
                case Comparison() if any(isinstance(term, Arithmetic) for term in terms(goal)):
                    self.late.append(goal)
                case Comparison():
                    self.early.append(goal)
        self.against = self._against()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The variables of a binding, sorted."""
        bound = {v.name for atom in self.positive for v in variables(*atom.terms)}
        bound.update(self.times)
        return tuple(sorted(name for name in bound if not name.startswith("=")))

    def _against(self) -> list[Lookup]:
        if not self.negative:
            return []
        bound = {*self.names, *self.times}
        lookups = []
        for number, atom in enumerate(self.negative):
            keys = [
                (column, term)
                for column, term in enumerate(atom.terms)
                if not isinstance(term, Wildcard) and bound.issuperset([name.name for name in variables(term)])
            ]
            lookups.append(Lookup(number, atom, tuple([n for n, _ in keys]), [term for _, term in keys], [], []))
        return lookups

    def bindings(self, tables: Tables, start: Binding) -> list[tuple[Binding, list[Row]]]:
        """The bindings that extend *start* and satisfy all but negated atoms, with a row for each positive atom."""
        first, lookups = self.order(frozenset(start))
        result: list[tuple[Binding, list[Row]]] = []
        if all(compared(goal, start) for goal in first):
            self._extend(tables, start, lookups, [()] * len(self.positive), result)
        return result

    def order(self, names: frozenset[str]) -> tuple[list[Comparison], list[Lookup]]:
        """The comparisons to ask if *names* are known, and the positive atoms, those of which most is known first."""
        if (order := self._orders.get(names)) is None:
            order = self._orders[names] = self._order(set(names))
        return order

    def _order(self, bound: set[str]) -> tuple[list[Comparison], list[Lookup]]:
        first = [goal for goal in self.early if _all_bound(goal, bound)]
        left, waiting = list(range(len(self.positive))), [goal for goal in self.early if goal not in first]
        lookups = []
        while left:
            best = left[0]
            if len(left) > 1:
                best = max(left, key=lambda n: sum([_is_bound(t, bound) for t in self.positive[n].terms]))
            left.remove(best)
            atom = self.positive[best]
            columns, key, new = [], [], []
            for column, term in enumerate(atom.terms):
                if _is_bound(term, bound):
                    columns.append(column)
                    key.append(term)
                elif isinstance(term, Variable):
                    new.append((column, term.name))
            bound.update([name for _, name in new])
            ready = [goal for goal in waiting if _all_bound(goal, bound)] if waiting else waiting
            waiting = [goal for goal in waiting if goal not in ready]
            lookups.append(Lookup(best, atom, tuple(columns), key, new, ready))
        return first, lookups

    def _extend(
        self,
        tables: Tables,
        binding: Binding,
        lookups: list[Lookup],
        rows: list[Row],
        result: list[tuple[Binding, list[Row]]],
    ) -> None:
        if not lookups:
            if self.late:
                if not all(compared(goal, binding) for goal in self.late):
                    return
                binding = {name: value for name, value in binding.items() if not name.startswith("=")}
            result.append((binding, rows.copy()))
            return
        lookup, after = lookups[0], lookups[1:]
        for row, longer in lookup.fitting(tables(lookup.atom), binding):
            if not lookup.asked or all(compared(goal, longer) for goal in lookup.asked):
                rows[lookup.number] = row
                self._extend(tables, longer, after, rows, result)


@frozen
class Lookup:
    """How the rows of a positive atom are found: by *key* in *columns*, which bind what is *new*.

    *number* is the atom's among the positive ones; *asked* are the comparisons whose variables are known then.
    """

    number: int
    atom: Atom
    columns: tuple[int, ...]
    key: list[Term | Aggregate]
    new: list[tuple[int, str]]
    asked: list[Comparison]

    def candidates(self, table: RowIndex, binding: Binding) -> Sequence[Row]:
        """The rows that have the key."""
        if not table.rows:
            return ()
        return table.find(self.columns, tuple([value_of(term, binding) for term in self.key]))

    def fitting(self, table: RowIndex, binding: Binding) -> list[tuple[Row, Binding]]:
        """The rows that fit, each with the binding that it leads to."""
        result = []
        for row in self.candidates(table, binding):
            longer = dict(binding)
            for column, name in self.new:
                if longer.setdefault(name, row[column]) != row[column]:
                    break
            else:
                result.append((row, longer))
        return result


def _all_bound(goal: Comparison, bound: Collection[str]) -> bool:
    return all(variable.name in bound for variable in variables(goal))


def _is_bound(term: Term | Aggregate, bound: Collection[str]) -> bool:
    return isinstance(term, Constant) or (isinstance(term, Variable) and term.name in bound)


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
