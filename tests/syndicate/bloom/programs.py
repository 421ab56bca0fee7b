"""Random Bloom programs of collections over two small integers, in both forms: see ``naive``."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from syndicate.bloom import Bloom, agg, bloom, channel, scratch, table, values
from tests.syndicate.bloom.naive import Body, Env, NaiveRule, Rows

KINDS = {"t0": "table", "t1": "table", "t2": "table", "k0": "keyed", "s0": "scratch", "s1": "scratch", "s2": "scratch"}


class Maker:
    """Makes bodies of rules."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def source(self) -> Body:
        """A collection."""
        name = self.rng.choice(list(KINDS))
        return Body(lambda p: getattr(p, name), lambda env: env[name], frozenset([name]))

    def body(self, depth: int = 2) -> Body:
        """An expression over rows of two columns."""
        if depth == 0 or self.rng.random() < 0.15:
            return self.source()
        kinds = (
            *(
                "swap",
                "same",
                "step",
                "filter",
                "flat",
                "pairs",
                "pairs",
                "lefts",
                "rights",
                "outer",
                "matches",
                "flatten",
            ),
            *(
                "notin",
                "notin_all",
                "notin_block",
                "group",
                "sum",
                "argmin",
                "exists",
                "literal",
                "self_join",
                "three",
                "reduce",
            ),
            *("index", "include", "seed_join"),
        )
        instance: Body = getattr(self, self.rng.choice(kinds))(depth - 1)
        return instance

    def swap(self, depth: int) -> Body:
        """A lambda that is read as a projection."""
        e = self.body(depth)
        return Body(
            lambda p: e.build(p).map(lambda r: (r[1], r[0])),
            lambda env: _map(e, env, lambda r: (r[1], r[0])),
            e.reads,
            e.firm,
        )

    def same(self, depth: int) -> Body:
        """A constant column."""
        e = self.body(depth)
        return Body(
            lambda p: e.build(p).map(lambda r: (r[0], 1)),
            lambda env: _map(e, env, lambda r: (r[0], 1)),
            e.reads,
            e.firm,
        )

    def step(self, depth: int) -> Body:
        """A lambda that is called, and drops some rows; of a small range, since it may be in a loop."""
        e = self.body(depth)

        def function(r: Any) -> Any:
            return (r[0], (r[1] + 1) % 4) if r[0] != 2 else None

        return Body(
            lambda p: e.build(p).map(function, columns=["a", "b"]), lambda env: _map(e, env, function), e.reads, e.firm
        )

    def filter(self, depth: int) -> Body:
        """A selection."""
        e, bound = self.body(depth), self.rng.randrange(4)
        return Body(
            lambda p: e.build(p).filter(lambda r: r[1] >= bound),
            lambda env: frozenset(r for r in e.rows(env) if r[1] >= bound),
            e.reads,
            e.firm,
        )

    def flat(self, depth: int) -> Body:
        """Several rows of one."""
        e = self.body(depth)

        def function(r: Any) -> Any:
            return [(r[0], n) for n in range(r[1] % 3)]

        return Body(
            lambda p: e.build(p).flat_map(function, columns=["a", "b"]),
            lambda env: frozenset(x for r in e.rows(env) for x in function(r)),
            e.reads,
            e.firm,
        )

    def two(self, depth: int) -> tuple[Body, Body, frozenset[str], frozenset[str]]:
        """Two bodies, and what both read."""
        x, y = self.body(depth), self.body(depth)
        return x, y, x.reads | y.reads, x.firm | y.firm

    def pairs(self, depth: int) -> Body:
        """A join of the first's second column with the second's first, with a function."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: (_ab(x, p) * _cd(y, p)).pairs(("b", "c"), lambda u, r: (u.a, r.d)),
            lambda env: frozenset((u[0], r[1]) for u in x.rows(env) for r in y.rows(env) if u[1] == r[0]),
            reads,
            firm,
        )

    def seed_join(self, depth: int) -> Body:
        """The product without a function, mapped."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: (_ab(x, p) * _cd(y, p)).pairs().map(lambda u, r: (r.d, u.b + 0), columns=["a", "b"]),
            lambda env: frozenset((r[1], u[1]) for u in x.rows(env) for r in y.rows(env)),
            reads,
            firm,
        )

    def lefts(self, depth: int) -> Body:
        """A semijoin."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: (_ab(x, p) * _cd(y, p)).lefts({"a": "d"}),
            lambda env: frozenset(u for u in x.rows(env) if any(u[0] == r[1] for r in y.rows(env))),
            reads,
            firm,
        )

    def rights(self, depth: int) -> Body:
        """The other semijoin."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: (_ab(x, p) * _cd(y, p)).rights({"a": "d"}, {"b": "c"}),
            lambda env: frozenset(r for r in y.rows(env) if any(u == (r[1], r[0]) for u in x.rows(env))),
            reads,
            firm,
        )

    def exists(self, depth: int) -> Body:
        """A semijoin with a function."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: _ab(x, p).exists(_cd(y, p), lambda u, r: u.a < r.d),
            lambda env: frozenset(u for u in x.rows(env) if any(u[0] < r[1] for r in y.rows(env))),
            reads,
            firm,
        )

    def outer(self, depth: int) -> Body:
        """A left outer join; what has no partner has 9."""
        x, y, reads, firm = self.two(depth)

        def rows(env: Env) -> Rows:
            right = y.rows(env)
            pairs = {(u[0], r[1]) for u in x.rows(env) for r in right if u[1] == r[0]}
            return frozenset(pairs | {(u[0], 9) for u in x.rows(env) if not any(u[1] == r[0] for r in right)})

        return Body(
            lambda p: (
                (_ab(x, p) * _cd(y, p))
                .outer(("b", "c"), lambda u, r: (u.a, 9 if r.d is None else r.d))
                .map(lambda r: (r[0], r[1]), columns=["a", "b"])
            ),
            rows,
            reads,
            firm | y.reads,
        )

    def matches(self, depth: int) -> Body:
        """A natural join on one column."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: (_ab(x, p) * _cd(y, p).rename(c="b")).matches(lambda u, r: (u.a, r.d)),
            lambda env: frozenset((u[0], r[1]) for u in x.rows(env) for r in y.rows(env) if u[1] == r[0]),
            reads,
            firm,
        )

    def flatten(self, depth: int) -> Body:
        """Joined rows in one, projected."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: (_ab(x, p) * _ab(y, p)).flatten("a").map(lambda r: (r.b, r.b_1)),
            lambda env: frozenset((u[1], r[1]) for u in x.rows(env) for r in y.rows(env) if u[0] == r[0]),
            reads,
            firm,
        )

    def three(self, depth: int) -> Body:
        """A join of three."""
        x, y, reads, firm = self.two(depth)
        z = self.source()
        return Body(
            lambda p: (_ab(x, p) * _cd(y, p) * z.build(p).map(lambda r: (r[0], r[1]), columns=["e", "f"])).combos(
                ("b", "c"), ("d", "e"), lambda u, m, r: (u.a, r.f)
            ),
            lambda env: frozenset(
                (u[0], r[1])
                for u in x.rows(env)
                for m in y.rows(env)
                for r in z.rows(env)
                if u[1] == m[0] and m[1] == r[0]
            ),
            reads | z.reads,
            firm | z.firm,
        )

    def self_join(self, depth: int) -> Body:
        """A collection with itself, by an alias."""
        e = self.source()

        def build(p: Any) -> Any:
            one = e.build(p)
            other = one.alias()
            return (one * other).pairs(one.b == other.a, lambda u, r: (u.a, r.b))

        return Body(
            build,
            lambda env: frozenset((u[0], r[1]) for u in e.rows(env) for r in e.rows(env) if u[1] == r[0]),
            e.reads,
            e.firm,
        )

    def notin(self, depth: int) -> Body:
        """An antijoin on a column."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: _ab(x, p).notin(_cd(y, p), ("a", "d")),
            lambda env: frozenset(u for u in x.rows(env) if not any(u[0] == r[1] for r in y.rows(env))),
            reads,
            firm | y.reads,
        )

    def notin_all(self, depth: int) -> Body:
        """A difference."""
        x, y, reads, firm = self.two(depth)
        return Body(lambda p: _ab(x, p).notin(_cd(y, p)), lambda env: x.rows(env) - y.rows(env), reads, firm | y.reads)

    def notin_block(self, depth: int) -> Body:
        """An antijoin with a predicate and a function."""
        x, y, reads, firm = self.two(depth)
        return Body(
            lambda p: _ab(x, p).notin(_cd(y, p), ("a", "c"), lambda u, r: u.b < r.d),
            lambda env: frozenset(u for u in x.rows(env) if not any(u[0] == r[0] and u[1] < r[1] for r in y.rows(env))),
            reads,
            firm | y.reads | x.reads,
        )

    def group(self, depth: int) -> Body:
        """A count."""
        e = self.body(depth)

        def rows(env: Env) -> Rows:
            result = e.rows(env)
            return frozenset((k, sum(r[0] == k for r in result)) for k in {r[0] for r in result})

        return Body(lambda p: _ab(e, p).group(["a"], agg.count()), rows, e.reads, e.reads)

    def sum(self, depth: int) -> Body:
        """A sum and a maximum of all, in one group."""
        e = self.body(depth)

        def rows(env: Env) -> Rows:
            result = e.rows(env)
            return frozenset([(sum(r[1] for r in result) % 100, max(r[0] for r in result))]) if result else frozenset()

        return Body(
            lambda p: (
                _ab(e, p)
                .group([], agg.sum("b"), agg.max("a"), then=lambda r: (r[0] % 100, r[1]))
                .map(lambda r: (r[0], r[1]), columns=["a", "b"])
            ),
            rows,
            e.reads,
            e.reads,
        )

    def argmin(self, depth: int) -> Body:
        """The rows with the least second column of each first."""
        e = self.body(depth)

        def rows(env: Env) -> Rows:
            result = e.rows(env)
            return frozenset(r for r in result if r[1] == min(q[1] for q in result if q[0] == r[0]))

        return Body(lambda p: _ab(e, p).argmin(["a"], "b"), rows, e.reads, e.reads)

    def reduce(self, depth: int) -> Body:
        """A fold of all rows, with a row for none."""
        e = self.body(depth)
        return Body(
            lambda p: (
                e.build(p)
                .reduce([(7, 0)], lambda memo, r: [(min(memo[0][0], r[0]), 0)])
                .map(lambda r: (r[0], r[1]), columns=["a", "b"])
            ),
            lambda env: frozenset([(min([7, *(r[0] for r in e.rows(env))]), 0)]),
            e.reads,
            e.reads,
        )

    def index(self, depth: int) -> Body:
        """Rows numbered in their order."""
        e = self.body(depth)
        return Body(
            lambda p: (
                _ab(e, p).each_with_index(lambda r, at: (r.a, at)).map(lambda r: (r[0], r[1]), columns=["a", "b"])
            ),
            lambda env: frozenset((r[0], at) for at, r in enumerate(sorted(e.rows(env)))),
            e.reads,
            e.reads,
        )

    def include(self, depth: int) -> Body:
        """One row, if it is there."""
        e, row = self.body(depth), (self.rng.randrange(3), self.rng.randrange(3))
        return Body(lambda p: _ab(e, p).include(*row), lambda env: e.rows(env) & {row}, e.reads, e.firm)

    def literal(self, depth: int) -> Body:
        """Facts."""
        rows = [(self.rng.randrange(4), self.rng.randrange(4)) for _ in range(2)]
        return Body(lambda p: values(*rows), lambda env: frozenset(rows), frozenset())


def _map(e: Body, env: Env, function: Any) -> Rows:
    return frozenset(instance for row in e.rows(env) if (instance := function(row)) is not None)


def _ab(e: Body, p: Any) -> Any:
    return e.build(p).map(lambda r: (r[0], r[1]), columns=["a", "b"])


def _cd(e: Body, p: Any) -> Any:
    return e.build(p).map(lambda r: (r[0], r[1]), columns=["c", "d"])


def random_rules(rng: random.Random) -> list[NaiveRule]:
    """Some rules with all operators."""
    maker, rules = Maker(rng), []
    for _ in range(rng.randrange(2, 9)):
        head = rng.choice([*KINDS, "wire"])
        ops = {
            "table": ("<=", "<=", "<+", "<-"),
            "keyed": ("<+-", "<-", "<+-"),
            "scratch": ("<=", "<=", "<+"),
            "wire": ("<~",),
        }
        rules.append(NaiveRule(head, rng.choice(ops[KINDS.get(head, "wire")]), maker.body(rng.randrange(3))))
    return rules


def state_rules(program: Bloom, rules: list[NaiveRule]) -> None:
    """The same in Bloom, in a method of a program that is marked so."""
    for rule in rules:
        head, body = getattr(program, rule.head), rule.body.build(program)
        match rule.op:
            case "<=":
                head <= body  # noqa: B015
            case "<+":
                head < +body  # noqa: B015
            case "<-":
                head < -body  # noqa: B015
            case "<+-":
                head < +-body  # noqa: B015
            case "<~":
                head < ~body  # noqa: B015


def give(program: Bloom, inputs: Mapping[tuple[str, str], Any]) -> None:
    """Rows from outside for the next tick, by collection and operator."""
    for (name, op), rows in inputs.items():
        collection = program.collection(name)
        {"<+": collection.insert, "<-": collection.delete, "<+-": collection.upsert}[op](rows)


def program(rules: list[NaiveRule]) -> type[Bloom]:
    """The same as a Bloom program."""

    class Random(Bloom):
        t0 = table(["a", "b"])
        t1 = table(["a", "b"])
        t2 = table(["a", "b"])
        k0 = table(["a"], ["b"])
        s0 = scratch(["a", "b"])
        s1 = scratch(["a", "b"])
        s2 = scratch(["a", "b"])
        wire = channel(["@a", "b"])

        @bloom
        def rules(self) -> None:
            state_rules(self, rules)

    return Random
