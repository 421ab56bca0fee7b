"""Random Bloom programs with lattices and lattice values in rows, in both forms: see ``naive`` and ``programs``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from syndicate.bloom import Bloom, agg, bloom, channel, lbool, lmax, lmin, lset, scratch, table
from syndicate.lattice import Bool, Lattice, Max, Min, Set
from tests.syndicate.bloom import programs
from tests.syndicate.bloom.naive import Body, Env, NaiveRule, Rows

MERGED: dict[str, type[Lattice]] = {"m0": Set, "m1": Max, "m2": Min, "n0": Set, "n1": Max}
"""Tables, and scratches (``n``), of a key and a lattice value."""

CELLS: dict[str, type[Lattice]] = {"cs": Set, "cr": Set, "cx": Max, "cn": Min, "cb": Bool}

KINDS = {
    **{name: kind for name, kind in programs.KINDS.items() if name in ("t0", "k0", "s0", "s1")},
    **{name: "scratch" if name.startswith("n") else "keyed" for name in MERGED},
    **dict.fromkeys(CELLS, "cell"),
}


class LatticeMaker(programs.Maker):
    """Makes bodies of rules."""

    def source(self) -> Body:
        """A collection of plain rows, or what a lattice says."""
        kind = self.rng.randrange(10)
        if kind in (8, 9):
            return self.asked() if kind == 8 else self.called()
        if kind == 0:
            return self.threshold()
        if kind == 1:
            return self.elements()
        if kind == 2:
            return self.mentioned()
        if kind == 3:
            return self.looked_at()
        name = self.rng.choice(["t0", "k0", "s0", "s1"])
        return Body(lambda p: getattr(p, name), lambda env: env[name], frozenset([name]))

    # ------------------------------------------------------------------------------------------------ plain rows

    def threshold(self) -> Body:
        """Keys whose value has passed something."""
        name = self.rng.choice(list(MERGED))
        test = TESTS[MERGED[name]]
        return Body(
            lambda p: getattr(p, name).filter(lambda r: test(r[1])).map(lambda r: (r[0], 1), columns=["a", "b"]),
            lambda env: frozenset((r[0], 1) for r in env[name] if test(r[1]).content),
            frozenset([name]),
        )

    def elements(self) -> Body:
        """The elements of a set, moved, or a row once a condition holds."""
        if self.rng.random() < 0.3:
            return Body(
                lambda p: p.cb.when_true(lambda: [(1, 2), (0, 3)]).to_collection(columns=["a", "b"]),
                lambda env: frozenset([(1, 2), (0, 3)]) if cell(env, "cb").content else frozenset(),
                frozenset(["cb"]),
            )
        name, by = self.rng.choice(["cs", "cr"]), self.rng.randrange(4)
        return Body(
            lambda p: (
                getattr(p, name).project(lambda x: (x + by) % 4).to_collection(lambda x: (x, by), columns=["a", "b"])
            ),
            lambda env: frozenset(((x + by) % 4, by) for x in cell(env, name).reveal()),
            frozenset([name]),
        )

    def mentioned(self) -> Body:
        """Rows that a function lets pass, which mentions a set; or a maximum that is joined."""
        e = self.body(0)
        if self.rng.random() < 0.5:
            return Body(
                lambda p: e.build(p).filter(lambda r: p.cs.contains(r[0])),
                lambda env: frozenset(r for r in e.rows(env) if r[0] in cell(env, "cs").reveal()),
                e.reads | {"cs"},
                e.firm,
            )
        return Body(
            lambda p: (
                (e.build(p).map(lambda r: (r[0], r[1]), columns=["a", "b"]) * p.cx)
                .pairs(lambda r, m: (r.a, 3) if m.value.gt_eq(2).content else None)
                .map(lambda r: (r[0], r[1]), columns=["a", "b"])
            ),
            lambda env: frozenset((r[0], 3) for r in e.rows(env) if cell(env, "cx").gt_eq(2).content),
            e.reads | {"cx"},
            e.firm,
        )

    def asked(self) -> Body:
        """Rows that a function gives, or lets pass, as it finds a variable: it must see all of it, or not."""
        e, n = self.body(0), self.rng.randrange(4)
        see: list[tuple[Callable[[Any, Any], Any], bool]] = [
            (lambda r, x: r if x.lt_eq(n).content else None, True),
            (lambda r, x: None if x.gt_eq(n).content else r, True),
            (lambda r, x: (r[0], 1 if x.gt(n).content else 2), True),
            (lambda r, x: (r[0], x.reveal() or 0), True),
            (lambda r, x: low(x, n).when_true(lambda: r), True),
            (lambda r, x: r if not low(x, n).content or r[0] > n else None, False),
            (lambda r, x: r if x.gt_eq(n).content and x.gt(0).content else None, False),
            (lambda r, x: (r[0], n) if x.gt_eq(n).content or r[1] == n else None, False),
            (lambda r, x: x.gt(n).when_true(lambda: (n, r[0])), False),
        ]
        choice = self.rng.randrange(len(see))
        function, firm = see[choice]
        firm = firm or choice == 5  # monotone, but not by what its methods say of themselves
        return Body(
            lambda p: e.build(p).map(lambda r: function(r, p.cx.value)).map(lambda r: (r[0], r[1]), columns=["a", "b"]),
            lambda env: frozenset(
                (one[0], one[1]) for r in e.rows(env) if (one := function(r, cell(env, "cx"))) is not None
            ),
            *(e.reads | {"cx"}, e.firm | ({"cx"} if firm else frozenset())),
        )

    def called(self) -> Body:
        """The same of a column, or of a set's elements."""
        name = self.rng.choice(list(MERGED))
        match self.rng.randrange(6):
            case 4:
                return Body(
                    lambda p: (
                        (p.m1 * p.n1)
                        .pairs(("v", "v"), lambda r, s: (r.k, s.k))
                        .map(lambda r: (r[0], r[1]), columns=["a", "b"])
                    ),
                    lambda env: frozenset((r[0], s[0]) for r in env["m1"] for s in env["n1"] if r[1] == s[1]),
                    *(frozenset(["m1", "n1"]), frozenset(["m1", "n1"])),
                )
            case 5:
                return Body(
                    lambda p: p.m1.include(1, Max(2)).map(lambda r: (r.k, 0), columns=["a", "b"]),
                    lambda env: frozenset((r[0], 0) for r in env["m1"] if r == (1, Max(2))),
                    *(frozenset(["m1"]), frozenset(["m1"])),
                )
            case 0:
                return Body(
                    lambda p: (
                        getattr(p, name)
                        .flat_map(lambda r: [(r[0], x) for x in revealed(r[1])])
                        .map(lambda r: (r[0], r[1]), columns=["a", "b"])
                    ),
                    lambda env: frozenset((r[0], x) for r in env[name] for x in revealed(r[1])),
                    *(frozenset([name]), frozenset([name])),
                )
            case 1:
                test = TESTS[MERGED[name]]
                return Body(
                    lambda p: (
                        getattr(p, name)
                        .filter(lambda r: not test(r[1]).content)
                        .map(lambda r: (r[0], 2), columns=["a", "b"])
                    ),
                    lambda env: frozenset((r[0], 2) for r in env[name] if not test(r[1]).content),
                    *(frozenset([name]), frozenset([name])),
                )
            case 2:
                e = self.body(0)
                return Body(
                    lambda p: (
                        e.build(p)
                        .flat_map(lambda r: [(x, r[1]) for x in p.cs.reveal() if x != r[0]])
                        .map(lambda r: (r[0], r[1]), columns=["a", "b"])
                    ),
                    lambda env: frozenset(
                        (x, r[1]) for r in e.rows(env) for x in cell(env, "cs").reveal() if x != r[0]
                    ),
                    *(e.reads | {"cs"}, e.firm),
                )
        e = self.body(0)
        return Body(
            lambda p: e.build(p).filter(lambda r: r[0] not in p.cr.reveal()),
            lambda env: frozenset(r for r in e.rows(env) if r[0] not in cell(env, "cr").reveal()),
            *(e.reads | {"cr"}, e.firm | {"cr"}),
        )

    def looked_at(self) -> Body:
        """What is not monotone: counting the rows, a negation of them, or revealing."""
        name = self.rng.choice(list(MERGED))
        match self.rng.randrange(3):
            case 0:
                return Body(
                    lambda p: getattr(p, name).group([], agg.count()).map(lambda r: (r[0] % 4, 0), columns=["a", "b"]),
                    lambda env: frozenset([(len(env[name]) % 4, 0)] if env[name] else []),
                    *(frozenset([name]), frozenset([name])),
                )
            case 1:
                e = self.body(0)
                return Body(
                    lambda p: (
                        e.build(p).map(lambda r: (r[0], r[1]), columns=["a", "b"]).notin(getattr(p, name), ("b", "k"))
                    ),
                    lambda env: frozenset(r for r in e.rows(env) if r[1] not in {row[0] for row in env[name]}),
                    *(e.reads | {name}, e.firm | {name}),
                )
        return Body(
            lambda p: p.cs.reveal().to_collection(lambda x: (x, 2), columns=["a", "b"]),
            lambda env: frozenset((x, 2) for x in cell(env, "cs").reveal()),
            *(frozenset(["cs"]), frozenset(["cs"])),
        )

    # ------------------------------------------------------------------------------------------------ merged rows

    def merged(self, cls: type[Lattice], depth: int = 2) -> Body:
        """Rows of a key and a value of a lattice."""
        names = [name for name, other in MERGED.items() if other is cls]
        name = self.rng.choice(names)
        cells = [one for one, other in CELLS.items() if other is cls]
        one = self.rng.choice(cells)
        match self.rng.randrange(8) if depth else self.rng.randrange(2):
            case 0:
                return Body(lambda p: getattr(p, name), lambda env: env[name], frozenset([name]))
            case 1:
                e = self.body(self.rng.randrange(2))
                return Body(
                    lambda p: e.build(p).map(lambda r: (r[0], value(cls, r[1]))),
                    lambda env: frozenset((r[0], value(cls, r[1])) for r in e.rows(env)),
                    *(e.reads, e.firm),
                )
            case 2 | 3:
                e, m = self.body(self.rng.randrange(2)), self.merged(cls, 0)
                return Body(
                    lambda p: (
                        e.build(p).map(lambda r: (r[0], r[1]), columns=["a", "b"])
                        * m.build(p).map(lambda r: (r[0], r[1]), columns=["k", "v"])
                    ).pairs(("b", "k"), lambda r, s: (r.a, STEPS[cls](s.v))),
                    lambda env: frozenset(
                        (r[0], STEPS[cls](s[1])) for r in e.rows(env) for s in m.rows(env) if r[1] == s[0]
                    ),
                    *(e.reads | m.reads, e.firm | m.firm),
                )
            case 4:
                e = self.body(self.rng.randrange(2))
                return Body(
                    lambda p: _beside(e.build(p), getattr(p, one)),
                    lambda env: frozenset((r[0], cell(env, one)) for r in e.rows(env)),
                    *(e.reads | {one}, e.firm),
                )
            case 5:
                e = self.body(self.rng.randrange(2))
                return Body(
                    lambda p: (getattr(p, name) * e.build(p).map(lambda r: (r[0], r[1]), columns=["a", "b"])).pairs(
                        ("k", "a"), lambda s, r: (r.b, s.v)
                    ),
                    lambda env: frozenset((r[1], s[1]) for r in e.rows(env) for s in env[name] if r[0] == s[0]),
                    *(e.reads | {name}, e.firm),
                )
            case 6:
                test = TESTS[cls]
                return Body(
                    lambda p: getattr(p, name).map(lambda r: (r[0], r[1] if test(r[1]).content else cls.of(1))),
                    lambda env: frozenset((r[0], r[1] if test(r[1]).content else cls.of(1)) for r in env[name]),
                    *(frozenset([name]), frozenset([name])),
                )
        return Body(
            lambda p: getattr(p, name).map(lambda r: ((r[0] + 1) % 4, STEPS[cls](r[1]))),
            lambda env: frozenset(((r[0] + 1) % 4, STEPS[cls](r[1])) for r in env[name]),
            frozenset([name]),
        )

    # ------------------------------------------------------------------------------------------------ lattices

    def term(self, cls: type[Lattice]) -> Body:
        """A value of a lattice; ``rows`` gives it."""
        make = {Set: self.set, Max: self.maximum, Min: self.minimum, Bool: self.condition}[cls]
        return self.folded(cls) if self.rng.random() < 0.35 else make()

    def folded(self, cls: type[Lattice]) -> Body:
        """Rows, each of which is made a value."""
        if cls is not Bool and self.rng.random() < 0.4:
            m = self.merged(cls, 1)
            return Body(
                lambda p: m.build(p).map(lambda r: (r[0], r[1]), columns=["k", "v"]).map(lambda r: r.v),
                lambda env: joined(cls, [r[1] for r in m.rows(env)]),
                *(m.reads, m.firm),
            )
        e = self.body(self.rng.randrange(2))
        make: Callable[[Any], Any] = (lambda x: x > 2) if cls is Bool else lambda x: x
        if self.rng.random() < 0.3:
            n = self.rng.randrange(4)
            return Body(
                lambda p: e.build(p).map(lambda r: None if p.cn.lt(n).content else make(r[1])),
                lambda env: joined(
                    cls, [value(cls, make(r[1])) for r in e.rows(env) if not cell(env, "cn").lt(n).content]
                ),
                *(e.reads | {"cn"}, e.firm | {"cn"}),
            )
        return Body(
            lambda p: e.build(p).map(lambda r: make(r[1])),
            lambda env: joined(cls, [value(cls, make(r[1])) for r in e.rows(env)]),
            *(e.reads, e.firm),
        )

    def set(self) -> Body:
        """Morphisms of sets, nested."""
        a, b, by = self.rng.choice(["cs", "cr"]), self.rng.choice(["cs", "cr"]), self.rng.randrange(4)

        def apply(x: Any, y: Any, how: int) -> Any:
            match how:
                case 0:
                    return x.project(lambda e: (e + by) % 4)
                case 1:
                    return x.merge(y.filter(lambda e: e > 1))
                case 2:
                    return x.intersect(y).project(lambda e: (e + 1) % 4)
                case 3:
                    return x.eqjoin(y, {0: 0} if by > 9 else {}, lambda e, f: (e + f) % 4)
            return x.product(y).project(lambda e: (e[0] + e[1] + by) % 4)

        how = self.rng.randrange(6)
        if how == 5:
            return Body(
                lambda p: getattr(p, a).project(lambda x: (x + by) % 4 if p.cx.lt_eq(by).content else x),
                lambda env: cell(env, a).project(lambda x: (x + by) % 4 if cell(env, "cx").lt_eq(by).content else x),
                *(frozenset([a, "cx"]), frozenset(["cx"])),
            )
        return Body(
            lambda p: apply(getattr(p, a), getattr(p, b), how),
            lambda env: apply(cell(env, a), cell(env, b), how),
            frozenset([a, b]),
        )

    def maximum(self) -> Body:
        """Sizes and sums, no more than 3."""
        if self.rng.random() < 0.5:
            return Body(
                lambda p: p.cs.size().min_of(3), lambda env: cell(env, "cs").size().min_of(3), frozenset(["cs"])
            )
        return Body(
            lambda p: (p.cx + p.cr.size()).min_of(3),
            lambda env: (cell(env, "cx") + cell(env, "cr").size()).min_of(3),
            frozenset(["cx", "cr"]),
        )

    def minimum(self) -> Body:
        """A minimum and one, and more."""
        return Body(lambda p: p.cn + 1, lambda env: cell(env, "cn") + 1, frozenset(["cn"]))

    def condition(self) -> Body:
        """Thresholds; one of them is not monotone."""
        n = self.rng.randrange(4)
        match self.rng.randrange(4):
            case 0:
                return Body(lambda p: p.cx.gt(n), lambda env: cell(env, "cx").gt(n), frozenset(["cx"]))
            case 1:
                return Body(lambda p: p.cr.contains(n), lambda env: cell(env, "cr").contains(n), frozenset(["cr"]))
            case 2:
                return Body(lambda p: p.cn.lt(n), lambda env: cell(env, "cn").lt(n), frozenset(["cn"]))
        reads = frozenset(["cx"])
        return Body(lambda p: p.cx.lt_eq(n), lambda env: cell(env, "cx").lt_eq(n), reads, reads)


TESTS: dict[type[Lattice], Callable[[Any], Any]] = {
    Set: lambda v: v.contains(1),
    Max: lambda v: v.gt_eq(2),
    Min: lambda v: v.lt(2),
}
STEPS: dict[type[Lattice], Callable[[Any], Any]] = {
    Set: lambda v: v.project(lambda x: (x + 1) % 4),
    Max: lambda v: (v + 1).min_of(3),
    Min: lambda v: v + 1,
}


def low(x: Any, limit: int) -> Any:
    """Not monotone."""
    return x.lt_eq(limit)


def revealed(x: Any) -> list[Any]:
    """The content of any lattice, as a list: not monotone, for a reader that is given no class."""
    content = x.reveal()
    return sorted(content) if hasattr(content, "__iter__") else [] if content is None else [content]


def _beside(e: Any, mentioned: Any) -> Any:
    return e.map(lambda r: (r[0], mentioned))


def cell(env: Env, name: str) -> Any:
    """The value of a lattice."""
    return env[name]


def value(cls: type[Lattice], inputs: Any) -> Lattice:
    """A plain value as one of a lattice."""
    return cls.of(inputs)


def joined(cls: type[Lattice], values: list[Any]) -> Lattice:
    """All of some values."""
    result = cls.bottom()
    for one in values:
        result = result.merge(one)
    return result


def merged_rows(rows: Rows) -> Rows:
    """One row for each key."""
    results: dict[Any, Any] = {}
    for key, one in rows:
        results[key] = results[key].merge(one) if key in results else one
    return frozenset(results.items())


def random_rules(rng: random.Random) -> list[NaiveRule]:
    """Some rules, mostly of lattices."""
    maker, rules = LatticeMaker(rng), []
    for _ in range(rng.randrange(2, 9)):
        head = rng.choice([*KINDS, *MERGED, *CELLS, "wire"])
        if head in CELLS:
            rules.append(NaiveRule(head, rng.choice(["<=", "<=", "<=", "<+"]), maker.term(CELLS[head])))
        elif head in MERGED:
            ops = ("<=", "<=", "<+") if KINDS[head] == "scratch" else ("<=", "<=", "<=", "<+", "<-", "<+-")
            rules.append(NaiveRule(head, rng.choice(ops), maker.merged(MERGED[head])))
        else:
            ops_of: dict[str, tuple[str, ...]] = {"table": ("<=", "<+", "<-"), "keyed": ("<+-", "<-"), "wire": ("<~",)}
            ops_of["scratch"] = ("<=", "<=", "<+")
            op = rng.choice(ops_of[KINDS.get(head, "wire")])
            rules.append(NaiveRule(head, op, maker.body(rng.randrange(3))))
    return rules


def program(rules: list[NaiveRule], *, declared: bool) -> type[Bloom]:
    """The same as a Bloom program; *declared* names the lattices of columns."""
    named: list[dict[str, Any]] = [{"v": one} if declared else {} for one in (lset, lmax, lmin)]

    class Random(Bloom):
        t0 = table(["a", "b"])
        k0 = table(["a"], ["b"])
        s0 = scratch(["a", "b"])
        s1 = scratch(["a", "b"])
        m0 = table(["k"], ["v"], **named[0])
        m1 = table(["k"], ["v"], **named[1])
        m2 = table(["k"], ["v"], **named[2])
        n0 = scratch(["k"], ["v"], **named[0])
        n1 = scratch(["k"], ["v"], **named[1])
        cs, cr, cx, cn, cb = lset(), lset(), lmax(), lmin(), lbool()
        wire = channel(["@a", "b"])

        @bloom
        def rules(self) -> None:
            programs.state_rules(self, rules)

    return Random
