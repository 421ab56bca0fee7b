"""CALM's verdicts on random programs with lattices: in terms, functions and columns, over channels, sent by timers."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import Bloom, bloom, channel, lbool, lmax, lmin, lset, periodic, scratch, table
from syndicate.bloom.insight.calm import Calm
from syndicate.errors import SyndicateError, Unstratifiable
from syndicate.lattice import Max
from tests.strategies import examples
from tests.syndicate.bloom.insight.outcomes import NODES, Fact, Names, differing, outcome
from tests.syndicate.bloom.lattice_programs import CELLS, MERGED, STEPS, LatticeMaker, value
from tests.syndicate.bloom.naive import Body

TABLES, SCRATCHES, CHANNELS = ("t0", "t1", "m0", "m1", "m2"), ("s0", "s1", "n0", "n1"), ("c0", "g0")
NAMES = (*TABLES, *SCRATCHES, *CHANNELS, *CELLS)
MERGING = {**MERGED, "g0": Max}
MERGED_TABLES = ("t0", "m0", "m2")
LOOKED_AT = Names((*TABLES, *CELLS), (*SCRATCHES, *CHANNELS), ("timer",), MERGING, frozenset(CELLS))
NOWHERE = frozenset[Any]()


@frozen
class Sent:
    """A rule, of which only the surface is needed: there is no evaluator of networks beside this one."""

    head: str
    op: str
    build: Callable[[Any], Any]


class Senders(LatticeMaker):
    """Bodies that also read channels and an input."""

    def source(self) -> Body:
        """A collection, or what is said of lattices."""
        match self.rng.randrange(8):
            case 5 | 6 | 7:
                return self.of("t0", lambda p: p.t0)
            case 0:
                return self.of("c0", lambda p: p.c0.payloads())
            case 1:
                return self.of("in0", lambda p: p.in0)
            case 2 if self.rng.random() < 0.3:
                return self.of("g0", lambda p: p.g0.map(lambda g: (g.k, 1) if g.v.gt_eq(2).content else None))
            case 2:
                n = self.rng.randrange(3)
                return self.of("c0", lambda p: p.c0.payloads().filter(lambda r: p.cx.lt_eq(n)))
        result = super().source()
        return self.source() if "k0" in result.reads else result

    def shallow(self) -> Body:
        """A body."""
        return self.body(self.rng.choice((0, 0, 1)))

    def of(self, name: str, build: Callable[[Any], Any]) -> Body:
        """A body that nobody evaluates."""
        return Body(
            lambda p: build(p).map(lambda r: (r[0], r[1]), columns=["a", "b"]), lambda env: NOWHERE, frozenset([name])
        )

    def gossip(self) -> Callable[[Any], Any]:
        """Rows to the other, sent in some way or other."""
        rng, name = self.rng, self.rng.choice(["m1", "n1", "m1"])
        n = rng.randrange(3)
        forms: list[Callable[[Any], Any]] = [
            lambda p: (p.timer * getattr(p, name)).pairs(lambda t, r: (p.other, r.k, r.v)),
            lambda p: (getattr(p, name) * p.timer).lefts().map(lambda r: (p.other, r.k, r.v)),
            lambda p: (p.timer * getattr(p, name) * p.t0).combos(lambda t, r, u: (p.other, u.a, r.v)),
            lambda p: (p.timer * getattr(p, name)).pairs(lambda t, r: (p.other, (r.k + n) % 4, STEPS[Max](r.v))),
            lambda p: (p.timer * getattr(p, name)).pairs(
                lambda t, r: (p.other, r.k, r.v) if r.v.gt(n).content else None
            ),
            lambda p: (p.timer * getattr(p, name)).pairs(
                lambda t, r: (p.other, r.k, r.v) if r.v.lt_eq(n).content else None
            ),
            lambda p: (p.timer * getattr(p, name)).pairs(lambda t, r: (p.other, t.key % 3, r.v)),
            lambda p: (p.timer * p.cx).pairs(lambda t, x: (p.other, n, x.value)),
            lambda p: (p.c0 * getattr(p, name)).pairs(lambda t, r: (p.other, r.k, r.v)),
            lambda p: (p.timer * p.g0).pairs(lambda t, r: (p.other, r.k, r.v)),
            lambda p: (p.timer * getattr(p, name).notin(p.t0, ("k", "a"))).pairs(lambda t, r: (p.other, r.k, r.v)),
            lambda p: getattr(p, name).map(lambda r: (p.other, r.k, r.v)),
        ]
        return rng.choice(forms[:5] if rng.random() < 0.5 else forms)

    def plain(self) -> Callable[[Any], Any]:
        """Rows that are not merged, sent when a timer fires."""
        rng, name = self.rng, self.rng.choice(["t0", "t1", "s0", "s1"])
        forms: list[Callable[[Any], Any]] = [
            lambda p: (p.timer * getattr(p, name)).rights(),
            lambda p: (getattr(p, name) * p.timer).pairs(lambda r, t: (r.b, r.a)),
            lambda p: (p.timer * getattr(p, name) * p.t1).combos(lambda t, r, u: (u.a, r.b)),
            lambda p: (getattr(p, name) * p.timer).lefts().filter(lambda r: r.a > 1),
            lambda p: (p.timer * getattr(p, name)).pairs(lambda t, r: (r.a, r.b) if p.cx.gt_eq(2) else None),
            lambda p: (p.timer * getattr(p, name)).pairs(lambda t, r: (r.a, t.key % 4)),
            lambda p: (p.timer * getattr(p, name).notin(p.t1, ("a", "b"))).rights(),
            lambda p: (p.timer * p.in0).rights(),
        ]
        return rng.choice(forms[:4] if rng.random() < 0.6 else forms)


def random_rules(rng: random.Random) -> list[Sent]:
    """Some rules; most of them only add."""
    maker, rules = Senders(rng), []
    if rng.random() < 0.7:
        rules.append(Sent("g0", "<~", maker.gossip()))
        rules.append(Sent("m1", "<=", lambda p: p.g0.payloads()))
    if rng.random() < 0.5:
        rules.append(Sent("c0", "<~", maker.plain()))
    if rng.random() < 0.7:
        rules.append(Sent(rng.choice(["t0", "s0"]), "<=", lambda p: p.c0.payloads()))
    if rng.random() < 0.5:
        rules.append(Sent("cx", "<=", lambda p: p.c0.map(lambda c: c.b)))
    for _ in range(rng.randrange(2, 6)):
        head = rng.choice([*TABLES, *SCRATCHES, "c0", *CELLS])
        op = "<+" if rng.random() < 0.1 else "<="
        if head in CELLS:
            body = maker.term(CELLS[head])
        elif head in MERGED:
            body = maker.merged(MERGED[head])
        else:
            body = rng.choice((maker.asked, maker.called, maker.shallow, maker.shallow))()
            if head in ("t0", "t1") and rng.random() < 0.1:
                op = "<-"
        if body.reads & {"k0"}:
            continue
        rules.append(Sent(head, "<~" if head == "c0" else op, body.build))
    return rules


def program(rules: list[Sent]) -> type[Bloom]:
    """The rules as a program; there are two nodes."""

    class Random(Bloom):
        t0 = table(["a", "b"])
        t1 = table(["a", "b"])
        k0 = table(["a"], ["b"])
        s0 = scratch(["a", "b"])
        s1 = scratch(["a", "b"])
        in0 = scratch(["a", "b"])
        m0 = table(["k"], ["v"], v=lset)
        m1 = table(["k"], ["v"], v=lmax)
        m2 = table(["k"], ["v"], v=lmin)
        n0 = scratch(["k"], ["v"], v=lset)
        n1 = scratch(["k"], ["v"], v=lmax)
        cs, cr, cx, cn, cb = lset(), lset(), lmax(), lmin(), lbool()
        c0 = channel(["@to", "a", "b"])
        g0 = channel(["@to", "k"], ["v"], v=lmax)
        timer = periodic(1)

        @property
        def other(self) -> str:
            return "n1" if self.address == "n0" else "n0"

        @bloom
        def rules(self) -> None:
            self.c0 < ~self.in0.map(lambda r: (f"n{(r[0] + r[1]) % 2}", r[0], r[1]), columns=["to", "a", "b"])
            for rule in rules:
                head, body = getattr(self, rule.head), rule.build(self)
                if rule.head == "c0":
                    body = body.map(lambda r: (f"n{(r[0] + r[1]) % 2}", r[0], r[1]), columns=["to", "a", "b"])
                match rule.op:
                    case "<=":
                        head <= body
                    case "<+":
                        head < +body
                    case "<-":
                        head < -body
                    case _:
                        head < ~body

    return Random


def random_facts(rng: random.Random) -> list[Fact]:
    """What comes from outside: the node, the collection, what is given."""
    results: list[Fact] = []
    for _ in range(rng.randrange(3, 9)):
        name, one = rng.choice(["in0", "in0", "in0", "in0", "t1", "m1", "m1", *MERGED_TABLES, *CELLS]), rng.randrange(4)
        row = (rng.randrange(4), one)
        if name in CELLS:
            results.append((rng.choice(NODES), name, value(CELLS[name], one > 1 if name == "cb" else one)))
        else:
            merged = (row[0], value(MERGED[name], one)) if name in MERGED else row
            results.append((rng.choice(NODES), name, merged))
    return results


def diverging(seed: int, runs: int = 3) -> tuple[Calm | None, set[str]]:
    """A program's verdicts, and what of it came out differently over some orders; none where there is no program."""
    rng = random.Random(seed)
    kind = program(random_rules(rng))
    try:
        calm = kind(address="n0").calm()
    except Unstratifiable:
        return None, set()
    facts = random_facts(rng)
    try:
        return calm, differing([outcome(kind, facts, rng.randrange(2**32), LOOKED_AT) for _ in range(runs)])
    except SyndicateError:  # a tick that raises
        return None, set()


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_what_is_called_confluent_is(seed: int) -> None:
    """Over orders, batches, repetitions and firings of timers, it comes out the same."""
    calm, different = diverging(seed)
    if calm is not None:
        assert not {name for name in different if calm[name].confluent}, f"{different}\n{calm}"


def test_the_random_programs_are_of_all_kinds() -> None:
    """The test above sees confluent stores that timers feed, and others that diverge."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        calm, different = diverging(seed, 4)
        if calm is None:
            continue
        for name in NAMES:
            reached = "A" in "".join(calm[name].labels) or "D" in calm[name].labels
            seen[f"{calm[name].verdict}{' different' if name in different else ''}"] += reached
        seen["fed by a timer"] += calm["m1"].confluent and any("resending" in str(one.hazard) for one in calm.points)
        if seen["confluent"] > 50 and seen["diffluent different"] >= 2 and seen["fed by a timer"] > 1:
            break
    else:
        raise AssertionError(seen)
    assert seen["confluent different"] == 0
