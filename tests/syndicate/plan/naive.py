"""The oracle: relational algebra by its definitions, from scratch, sharing no code with rewriting and lowering.

A relation is a dictionary from the typed form of a row to the row, which is a dictionary of attributes.  A program is
evaluated stratum by stratum; within one, all rules are applied until nothing is new.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from syndicate import plan as ra
from syndicate.lattice import Bool
from syndicate.values.value import freeze, order
from tests.syndicate.flow.oracle import form

Named = dict[str, Any]
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: form(a) == form(b),
    "!=": lambda a, b: form(a) != form(b),
    "<": lambda a, b: size(a) < size(b),
    "<=": lambda a, b: size(a) <= size(b),
    ">": lambda a, b: size(a) > size(b),
    ">=": lambda a, b: size(a) >= size(b),
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def size(value: Any) -> Any:
    """By what values are compared: numbers by size, nan above them, then tuples, then the order of values."""
    if isinstance(value, int | float):
        return (0, value) if value == value else (1,)  # nan
    if isinstance(value, tuple):
        return (2, [size(item) for item in value])
    return (3,) if value is None else (4, order(freeze(value)))


def place(value: Any) -> Any:
    """The order of ``min`` and ``max``: by size, then in the order of values."""
    if isinstance(value, tuple):
        return ((2,), [place(item) for item in value])
    return (size(value), () if value is None else order(freeze(value)))


class Rows:
    """A set of rows, distinguished by value identity."""

    def __init__(self, rows: Iterable[Named] = ()) -> None:
        self.by_form = {form(tuple(row[name] for name in sorted(row))): row for row in rows}

    def __iter__(self) -> Any:
        return iter(self.by_form.values())

    def __len__(self) -> int:
        return len(self.by_form)

    def tuples(self, heading: Iterable[str]) -> set[Any]:
        """Forms of rows as tuples over a heading, to compare."""
        names = list(heading)
        return {form(tuple(row[name] for name in names)) for row in self}


def scalar(term: Any, row: Named) -> Any:
    """The value of a scalar for a row."""
    match term:
        case ra.Attr():
            return row[term.name]
        case ra.Const():
            return term.value
        case ra.Arith():
            return ARITHMETIC[term.op](scalar(term.left, row), scalar(term.right, row))
        case ra.Call():
            return term.function(*[scalar(one, row) for one in term.arguments])
    raise AssertionError(term)


def holds(term: Any, row: Named) -> bool:
    """Whether a condition holds for a row."""
    match term:
        case ra.Compare():
            return OPS[term.op](scalar(term.left, row), scalar(term.right, row))
        case ra.Holds():
            answer = term.function(*[scalar(one, row) for one in term.arguments])
            return answer == Bool(True) if isinstance(answer, Bool) else bool(answer)
        case ra.AllOf():
            return all(holds(part, row) for part in term.parts)
        case ra.AnyOf():
            return any(holds(part, row) for part in term.parts)
        case ra.Not():
            return not holds(term.part, row)
    raise AssertionError(term)


def agree(a: Named, b: Named) -> bool:
    """Whether two rows agree on what both have."""
    return all(form(a[name]) == form(b[name]) for name in a.keys() & b.keys())


def aggregate(agg: Any, rows: list[Named]) -> Any:
    """The aggregate of some rows, None for no row."""
    values: list[Any] = [
        None if not agg.of else scalar(agg.of[0], row) if len(agg.of) == 1 else tuple(scalar(s, row) for s in agg.of)
        for row in rows
    ]
    match agg.aggregate.form:
        case "count":
            return len(values)
        case "sum":
            return sum(values)
        case "min":
            return min(values, key=place)
        case "max":
            return max(values, key=place)
        case "avg":
            return sum(values) / len(values)
    if agg.aggregate.form == "lattice":
        return merged(agg.aggregate, values)
    weights: dict[Any, int] = {}
    for value in values:
        weights[form(value)] = weights.get(form(value), 0) + 1
    return agg.aggregate.function(weights)


def merged(fold: Any, values: Iterable[Any]) -> Any:
    """The merge of values in a lattice, None for no row; without a lattice they are its elements already."""
    if fold.columns:
        columns = [merged(column, own) for column, own in zip(fold.columns, zip(*values, strict=True), strict=True)]
        return None if None in columns else tuple(columns)
    lattice = fold.lattice
    present = [one for one in values if one is not None]
    elements = [one if lattice is None or isinstance(one, lattice) else lattice.of(one) for one in present]
    return functools.reduce(lambda a, b: a.merge(b), elements) if elements else None


def value(this: Any, env: Mapping[str, Rows]) -> Rows:
    """The rows of an expression."""
    match this:
        case ra.Relation():
            return env[this.name]
        case ra.Literal():
            return Rows(dict(zip(this.heading, row, strict=True)) for row in this.rows)
        case ra.Selection():
            return Rows(row for row in value(this.source, env) if all(holds(one, row) for one in this.conditions))
        case ra.Projection():
            return Rows({name: scalar(one, row) for name, one in this.columns} for row in value(this.source, env))
        case ra.Rename():
            new = dict(this.renaming)
            return Rows({new.get(name, name): row[name] for name in row} for row in value(this.source, env))
        case ra.Map():
            return Rows(_given(this, this.function(_tuple(this, row))) for row in value(this.source, env))
        case ra.FlatMap():
            return Rows(
                _given(this, one) for row in value(this.source, env) for one in this.function(_tuple(this, row))
            )
        case ra.Union():
            return Rows(row for source in this.sources for row in value(source, env))
        case ra.Difference():
            gone = value(this.right, env).tuples(this.heading)
            return Rows(row for row in value(this.left, env) if not {*Rows([row]).tuples(this.heading)} & gone)
        case ra.Product() | ra.ThetaJoin() | ra.EquiJoin():
            asked = getattr(this, "conditions", ())
            pairs = ({**a, **b} for a in value(this.left, env) for b in value(this.right, env))
            return Rows(row for row in pairs if all(holds(one, row) for one in asked))
        case ra.NaturalJoin():
            joined: list[Named] = [{}]
            for source in this.sources:
                joined = [{**b, **a} for a, b in itertools.product(joined, value(source, env)) if agree(a, b)]
            return Rows(joined)
        case ra.SemiJoin() | ra.AntiJoin():
            right, wanted = list(value(this.right, env)), isinstance(this, ra.SemiJoin)
            return Rows(row for row in value(this.left, env) if any(agree(row, other) for other in right) == wanted)
        case ra.GroupBy():
            return _grouped(this, value(this.source, env))
        case ra.NonMonotone():
            return value(this.source, env)
        case ra.Fixpoint():
            result = Rows()
            while len(more := value(this.body, {**env, this.name: result})) != len(result):
                result = more
            return result
    raise AssertionError(this)


def _tuple(this: Any, row: Named) -> tuple[Any, ...]:
    return tuple(row[name] for name in this.source.heading)


def _given(this: Any, row: tuple[Any, ...]) -> Named:
    return dict(zip(this.heading, row, strict=True))


def _grouped(this: Any, rows: Rows) -> Rows:
    groups: dict[Any, list[Named]] = {}
    for row in rows:
        groups.setdefault(form(tuple(row[name] for name in this.by)), []).append(row)
    instances = []
    for group in groups.values():
        row = {name: group[0][name] for name in this.by}
        row.update({name: aggregate(agg, group) for name, agg in this.aggregates})
        if None not in [row[name] for name, _ in this.aggregates]:
            instances.append(row)
    return Rows(instances)


def reads(this: Any, *, negative: bool = False) -> Iterable[tuple[str, bool]]:
    """The relations that an expression reads, and whether not in a monotone way."""
    match this:
        case ra.Relation():
            yield this.name, negative
        case ra.Difference() | ra.AntiJoin():
            yield from reads(this.left, negative=negative)
            yield from reads(this.right, negative=True)
        case ra.GroupBy() | ra.NonMonotone():
            yield from reads(this.source, negative=True)
        case ra.Fixpoint():
            yield from ((name, how) for name, how in reads(this.body, negative=negative) if name != this.name)
        case _:
            for part in this.parts():
                yield from reads(part, negative=negative)


def program(of: ra.Program, present: Mapping[str, Iterable[tuple[Any, ...]]]) -> dict[str, set[Any]]:
    """The outputs of a program for some facts, as forms of tuples.

    Of a relation with lattices the rows of one key are one, which grows as rules are applied; which level such a
    program has where is not computed again here.
    """
    names = list(of.declared)
    base = {name: [dict(zip(of[name].heading, row, strict=True)) for row in present.get(name, ())] for name in names}
    level = dict.fromkeys(names, 0)
    if any(one.lattices for one in of.declared.values()):
        level = {name: stratum.level for stratum in of.strata() for name in stratum.relations}
        names = []
    for _ in range(len(names) ** 2 + 1 if names else 0):
        for rule in of.rules:
            for name, negative in reads(rule.body):
                level[rule.head] = max(level[rule.head], level[name] + negative)
    env = {name: _of_relation(of, name, base[name]) for name in base}
    for stratum in sorted(set(level.values())):
        rules = [rule for rule in of.rules if level[rule.head] == stratum]
        while True:
            before = {name: rows.tuples(of[name].heading) for name, rows in env.items()}
            for head in dict.fromkeys(rule.head for rule in rules):
                bodies = [rule.body for rule in rules if rule.head == head]
                new = [{name: row[name] for name in of[head].heading} for body in bodies for row in value(body, env)]
                env[head] = _of_relation(of, head, [*base[head], *env[head], *new])
            if before == {name: rows.tuples(of[name].heading) for name, rows in env.items()}:
                break
    return {name: env[name].tuples(of[name].heading) for name in of.outputs}


def _of_relation(of: ra.Program, name: str, rows: Iterable[Named]) -> Rows:
    lattices = of.declared[name].lattices
    if not lattices:
        return Rows(rows)
    groups: dict[Any, list[Named]] = {}
    by = [column for column in of[name].heading if column not in lattices]
    for row in rows:
        groups.setdefault(form(tuple(row[column] for column in by)), []).append(row)
    folds = {column: ra.aggregates.lattice(cls) for column, cls in lattices.items()}
    whole = [
        {**group[0], **{column: merged(fold, [row[column] for row in group]) for column, fold in folds.items()}}
        for group in groups.values()
    ]
    return Rows(row for row in whole if None not in [row[column] for column in lattices])
