"""Random expressions, programs and changes, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from syndicate import ABSENT
from syndicate import plan as ra
from syndicate.lattice import Set
from syndicate.plan import aggregates as agg
from tests.syndicate.flow.oracle import form

HEADINGS = {
    "r": ("a", "b"),
    "s": ("b", "c"),
    "t": ("c", "a"),
    "u": ("a",),
    "v": ("a", "b", "c"),
    "w": ("a", "b"),
    "x": ("b", "d"),
}
KEYS = {"w": "a", "x": "b"}
ATTRIBUTES = "abcd"
FEW = (0, 1, 2, 3)
ALIKE = (0, 1, True, 1.0, 2, False)
ANY_KIND = (*ALIKE, float("nan"), -0.0, 0.0, -1, -2, 2**70, None, ABSENT, "a", b"a", (1, True), (), frozenset({1}))
"""Values that arithmetic may raise for."""
WIDEST = 8
"""The most attributes of the two sides of a join: the oracle looks at all pairs of their rows."""
NEW = ("compute", "map", "flat_map")
KINDS = (
    *("select", "project", "rename", "union", "natural", "natural", "theta", "equi", "semi", "anti", "minus"),
    *("outer", "group", "fold", "product", "literal", "fixpoint", "mark", *NEW),
)


def some(group: Any) -> Any:
    """A user's aggregate: how many rows, if that is odd."""
    return n if (n := sum(group.values())) % 2 else None


def odd(value: Any) -> bool:
    """A user's predicate."""
    return isinstance(value, int | float) and bool(value % 2)


def twice(value: Any) -> Any:
    """A user's function, of a small range."""
    return (value * 2) % 5 if isinstance(value, int | float) else value


def swap(row: Any) -> Any:
    """A user's function of a row."""
    return (row[-1], row[0])


def size_of(value: Any) -> int:
    """How many elements a set has: a function that nobody marked."""
    return len(value.reveal())


def kind_of(value: Any) -> str:
    """Fewer values than there are."""
    return type(value).__name__


def fan(row: Any) -> Any:
    """A user's function of a row, to several."""
    return [(row[0], n) for n in range(int(row[-1]) % 3 if isinstance(row[-1], int) else 2)]


class Maker:
    """Makes expressions over given relations; those in *loose* are not read in a way that is not monotone."""

    def __init__(
        self,
        rng: random.Random,
        firm: Sequence[ra.Expression],
        loose: Sequence[ra.Expression] = (),
        kinds: Sequence[str] = KINDS,
        values: Sequence[Any] = ALIKE,
    ) -> None:
        self.rng = rng
        self.values = values
        self.counting = values is not ANY_KIND
        self.kinds = kinds
        self.firm = list(firm)
        self.loose = list(loose)
        self.made = 0

    def any(self, depth: int, *, firm: bool = False, closed: bool = False) -> ra.Expression:
        """Some expression; *closed* makes no values that are not there already."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            relations = self.firm if firm or not self.loose or rng.random() < 0.3 else self.loose
            return rng.choice(relations)
        kind = rng.choice([kind for kind in self.kinds if not (closed and kind in NEW)])
        make = getattr(self, f"_{kind}", None)
        one = self.any(depth - 1, firm=firm or kind in ("group", "fold", "mark"), closed=closed)
        if make is not None:
            instance: ra.Expression = make(one, depth, firm=firm, closed=closed)
            return instance
        other = self.any(depth - 1, firm=firm or kind in ("anti", "minus", "outer"), closed=closed)
        match kind:
            case "union":
                return ra.Union(one, self.shaped(other, one.heading))
            case "minus":
                return ra.Difference(one, self.shaped(other, one.heading))
            case _ if len(one.heading) + len(other.heading) > WIDEST:
                return one
            case "semi":
                return ra.SemiJoin(one, other)
            case "anti":
                return ra.AntiJoin(one, other)
            case "outer":
                rest = [(name, ra.Const(3)) for name in other.heading if name not in one.heading]
                alone = ra.Projection(ra.AntiJoin(one, other), [*one.heading, *rest])
                return ra.Union(ra.NaturalJoin(one, other), alone)
            case "natural":
                third = self.any(depth - 2, firm=firm, closed=closed)
                joined = ra.NaturalJoin(one, other)
                wide = len(joined.heading) + len(third.heading) > WIDEST
                return joined if wide or rng.random() < 0.6 else ra.NaturalJoin(one, other, third)
        other = ra.Rename(other, {name: self.fresh() for name in other.heading if name in one.heading})
        if kind == "product" or not one.heading or not other.heading:
            return ra.Product(one, other)
        if kind == "equi":
            return ra.EquiJoin(one, other, {rng.choice(one.heading): rng.choice(other.heading)})
        return ra.ThetaJoin(
            one, other, *[self.condition((*one.heading, *other.heading)) for _ in range(rng.randrange(3))]
        )

    def fresh(self) -> str:
        """A name that nothing has."""
        self.made += 1
        return f"n{self.made}"

    def shaped(self, expression: ra.Expression, heading: Sequence[str]) -> ra.Expression:
        """The expression made to have a heading, in another order."""
        names = self.rng.sample(heading, len(heading))
        return ra.Projection(expression, [(name, self.source(expression.heading, name)) for name in names])

    def source(self, heading: Sequence[str], name: str) -> Any:
        """A column."""
        if name in heading and self.rng.random() < 0.7:
            return name
        return self.rng.choice([*heading, ra.Const(self.rng.randrange(3))])

    def condition(self, heading: Sequence[str], depth: int = 2) -> Any:
        """Some condition."""
        rng = self.rng
        if not heading:
            return ra.AnyOf(*[ra.AllOf()] * rng.randrange(2))
        kind = rng.choice(("const", "attr", "attr", "const", "test", "not", "any", "all")[: 8 if depth else 5])
        match kind:
            case "not":
                return ra.Not(self.condition(heading, depth - 1))
            case "any":
                return ra.AnyOf(*[self.condition(heading, depth - 1) for _ in range(rng.randrange(3))])
            case "all":
                return ra.AllOf(*[self.condition(heading, depth - 1) for _ in range(rng.randrange(3))])
            case "test":
                return ra.Holds(odd, rng.choice(heading))
        right = ra.Attr(rng.choice(heading)) if kind == "attr" else rng.choice(self.values)
        left: Any = rng.choice(heading)
        if rng.random() < 0.2:
            left = rng.choice([self.computed(left), ra.Call(twice, left), ra.Const(1)])
        return ra.Compare(left, rng.choice(("==", "==", "!=", "<", "<=", ">", ">=")), right)

    def computed(self, name: str) -> Any:
        """A scalar that makes another value of a column's."""
        if not self.counting:
            return ra.Call(twice, name)
        return self.rng.choice([ra.Arith("%", ra.Arith("+", name, 1), 4), ra.Call(twice, name)])

    def _select(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        return ra.Selection(one, *[self.condition(one.heading) for _ in range(self.rng.randrange(1, 3))])

    def _project(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        names = self.rng.sample(one.heading, self.rng.randrange(len(one.heading) + 1))
        more = [("d", ra.Const(self.rng.choice(self.values)))] if "d" not in names and self.rng.random() < 0.3 else []
        return ra.Projection(one, [*names, *more])

    def _compute(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        if not one.heading:
            return one
        name = self.rng.choice(one.heading)
        survivors = [other for other in one.heading if other != "d" and self.rng.random() < 0.7]
        return ra.Projection(one, [*survivors, ("d", self.computed(name))])

    def _rename(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        names = self.rng.sample([*dict.fromkeys([*ATTRIBUTES, *one.heading])], len(one.heading))
        return ra.Rename(one, dict(zip(one.heading, names, strict=True)))

    def _group(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        if not one.heading:
            return one
        by = self.rng.sample(one.heading, self.rng.randrange(min(3, len(one.heading) + 1)))
        of = self.rng.choice(one.heading)
        aggregates = [agg.count, ra.Agg(agg.min, of), ra.Agg(agg.max, of), ra.Agg(some, one.heading)]
        if self.counting:
            aggregates.append(ra.Agg(agg.sum, of))
        names = [name for name in "defgh" if name not in by]
        chosen = self.rng.sample(aggregates, self.rng.randrange(1, 4))
        return ra.GroupBy(one, by, dict(zip(names, chosen, strict=False)))

    def _fold(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        if not one.heading:
            return one
        by = self.rng.sample(one.heading, self.rng.randrange(min(3, len(one.heading) + 1)))
        name = next(name for name in "defgh" if name not in by)
        sets = ra.GroupBy(one, by, {name: ra.Agg(Set, self.rng.choice(one.heading))})
        morphism: ra.Expression = ra.Projection(sets, [*by, (name, ra.Call(Set.project, name, ra.Const(kind_of)))])
        return ra.Projection(self.rng.choice([sets, morphism]), [*by, (name, ra.Call(size_of, name))])

    def _map(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        return ra.Map(one, ("a", "b"), swap) if one.heading else one

    def _flat_map(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        return ra.FlatMap(one, ("b", "c"), fan) if one.heading else one

    def _literal(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        return ra.Literal(("a", "b"), [(self.rng.choice(self.values), self.rng.randrange(3)) for _ in range(3)])

    def _mark(self, one: ra.Expression, depth: int, **how: bool) -> ra.Expression:
        return ra.NonMonotone(one, "marked")

    def _fixpoint(self, one: ra.Expression, depth: int, *, firm: bool, closed: bool) -> ra.Expression:
        if not one.heading:
            return one
        variable = ra.Relation(self.fresh(), one.heading)
        saved = self.loose, self.firm
        self.loose = [variable, *([] if firm else self.loose)]
        body = self.any(depth - 1, closed=True)
        self.loose, self.firm = saved
        first = self.shaped(one, one.heading)
        return ra.Fixpoint(variable.name, one.heading, ra.Union(first, self.shaped(body, one.heading)))


def given_relations(program: ra.Program) -> list[ra.Expression]:
    """The relations whose rows come from outside."""
    return [program.edb(name, *heading, key=KEYS.get(name)) for name, heading in HEADINGS.items()]


def random_program(rng: random.Random, *, recursive: bool = True, values: Sequence[Any] = ALIKE) -> ra.Program:
    """A program of three layers; relations of one depend on each other, and on absence only in layers below."""
    program = ra.Program()
    relations = given_relations(program)
    for layer in range(3):
        heads = [program.idb(f"p{layer}{n}", *rng.choice(list(HEADINGS.values()))) for n in range(rng.randrange(1, 3))]
        maker = Maker(rng, relations, heads if recursive else [], values=values)
        for head in heads:
            for _ in range(rng.randrange(1, 4)):
                body = maker.any(rng.randrange(1, 4), closed=recursive)
                program.rule(head, maker.shaped(body, head.heading))
        relations = [*relations, *heads]
    if rng.random() < 0.3:  # given and derived
        program.rule("u", maker.shaped(ra.Relation("r", ("a", "b")), ("a",)))
    return program


def changes(rng: random.Random, steps: int, values: Sequence[Any] = FEW) -> Iterator[dict[str, dict[Any, int]]]:
    """Inserts of what is not there, deletes of what is; and of what a set does not notice, some too."""
    present: dict[str, dict[Any, Any]] = {name: {} for name in HEADINGS}
    for _ in range(steps):
        out: dict[str, Any] = {}
        for name, heading in HEADINGS.items():
            facts, delta = present[name], {}
            for _ in range(rng.randrange(5)):
                if facts and rng.random() < 0.45:
                    key = rng.choice(list(facts))
                    if key not in delta:
                        delta[key] = (facts.pop(key), -1)
                    continue
                row = tuple(rng.choice(values) for _ in heading)
                if name in KEYS and any(form(row[0]) == form(other[0]) for other in facts.values()):
                    continue
                if form(row) not in facts and form(row) not in delta:
                    facts[form(row)] = row
                    delta[form(row)] = (row, 1)
            for _ in range(rng.randrange(3)):  # there already, or not there at all
                row = tuple(rng.choice(values) for _ in heading)
                if form(row) not in delta:
                    known_row = facts.get(form(row))
                    delta[form(row)] = (
                        (row, -rng.randrange(1, 3)) if known_row is None else (known_row, rng.randrange(1, 3))
                    )
            if delta:
                out[name] = [(row, weight * rng.choice((1, 1, 2))) for row, weight in delta.values()]
        yield out
