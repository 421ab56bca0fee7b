"""Methods of lattices that functions in rules call: their strata, cycles and verdicts, as of terms."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, bloom, channel, const, lmap, lmax, lset, periodic, scratch, table
from syndicate.errors import IllegalRule, Unstratifiable
from syndicate.lattice import Max, monotone


class Growing(Bloom):
    """``mx`` grows from 1 to 9 within a tick, and so do the row of ``best`` and the entry of ``per``."""

    got = table(["k", "v"], [])
    step = table(["a", "b"], [])
    mx = lmax()
    best = table(["k"], ["v"], v=lmax)
    loose = table(["k"], ["v"])
    per = lmap()
    twos = const(["k"], ["v"], rows=[("two", Max(2))])
    names = lset()
    flag = lset()
    out = table(["k"], [])
    now_and_then = scratch(["k"], [])

    @bloom
    def grow(self) -> None:
        """Step by step."""
        self.mx <= self.got.map(lambda m: m.v)
        self.mx <= (self.step * self.mx).pairs(lambda s, x: x.value.gt_eq(s.a).when_true(lambda: s.b))
        self.best <= self.got.map(lambda m: (m.k, Max(m.v)))
        self.best <= (self.best * self.step).pairs(lambda b, s: b.v.gt_eq(s.a).when_true(lambda: (b.k, Max(s.b))))
        self.loose <= self.got.map(lambda m: (m.k, Max(m.v)))
        self.loose <= (self.loose * self.step).pairs(lambda b, s: b.v.gt_eq(s.a).when_true(lambda: (b.k, Max(s.b))))
        self.per <= self.best.map(lambda b: {b.k: b.v})
        self.names <= self.got.map(lambda m: m.k)

    def asked(self, limit: int) -> Any:
        """A method that a function calls."""
        return self.mx.lt_eq(limit)


def low(x: Any) -> Any:
    """Not monotone."""
    return x.lt_eq(5)


class Knowing:
    """Gives whatever a variable has."""

    def __init__(self, program: Any) -> None:
        self.program = program

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program.mx, name)


def knowing(p: Any) -> Any:
    """A function that finds a variable in a way that its code does not show, and mentions it in another."""
    box = Knowing(p)
    return lambda m: (m.k,) if p.mx.gt_eq(0).content and box.lt_eq(5).content else None


Rule = Callable[[Any], Any]

READING: dict[str, Rule] = {
    "a variable": lambda p: p.out <= p.got.map(lambda m: p.mx.lt_eq(5).when_true(lambda: (m.k,))),
    "a scratch": lambda p: p.now_and_then <= p.got.map(lambda m: p.mx.lt_eq(5).when_true(lambda: (m.k,))),
    "a test": lambda p: p.out <= p.got.filter(lambda m: p.mx.lt_eq(5)).map(lambda m: (m.k,)),
    "a condition": lambda p: p.out <= p.got.map(lambda m: None if p.mx.gt_eq(6).content else (m.k,)),
    "revealed": lambda p: p.out <= p.got.map(lambda m: (m.k,) if p.mx.reveal() < 6 else None),
    "a lattice": lambda p: p.flag <= p.got.map(lambda m: p.mx.lt_eq(5).when_true(lambda: m.k)),
    "a column": lambda p: p.out <= p.best.map(lambda b: b.v.lt_eq(5).when_true(lambda: (b.k,))),
    "a column into a lattice": lambda p: p.flag <= p.best.map(lambda b: b.v.lt_eq(5).when_true(lambda: b.k)),
    "a column that is not declared": lambda p: p.out <= p.loose.map(lambda b: (b.k,) if low(b.v).content else None),
    "a column in a join": lambda p: (
        p.out <= (p.got * p.best).pairs("k", lambda g, b: (g.k,) if low(b.v).content else None)
    ),
    "a helper": lambda p: p.out <= p.got.map(lambda m: low(p.mx.value).when_true(lambda: (m.k,))),
    "a method": lambda p: (
        p.out <= p.got.map(lambda m: (p.mx is not None and p.asked(5).when_true(lambda: (m.k,))) or None)
    ),
    "partial": lambda p: p.out <= p.got.filter(lambda m: functools.partial(low, p.mx.value)()).map(lambda m: (m.k,)),
    "getattr": lambda p: p.out <= p.got.filter(lambda m: getattr(p.mx, "lt_" + "eq")(5)).map(lambda m: (m.k,)),
    "a default": lambda p: p.out <= p.got.filter(lambda m, mx=p.mx: mx.lt_eq(5)).map(lambda m: (m.k,)),
    "a comprehension": lambda p: p.out <= p.got.flat_map(lambda m: [(k,) for k in (m.k, "z") if p.mx.lt_eq(5).content]),
    "a builtin": lambda p: p.out <= p.got.map(lambda m: (m.k,) if str(p.mx.value) == "Max(1)" else None),
    "a text": lambda p: p.out <= p.got.map(lambda m: (m.k,) if f"{p.mx.value}" == "Max(1)" else None),
    "a function of a function": lambda p: (
        p.out <= p.got.map(lambda m: (m.k, p.mx)).map(lambda r: low(r.c1).when_true(lambda: (r.c0,)))
    ),
    "a method's function": lambda p: p.flag <= p.names.filter(lambda n: p.mx.lt_eq(5).content),
    "a map's values": lambda p: p.out <= p.per.to_collection(lambda k, v: (k,) if v.lt_eq(5).content else None),
    "a map's keys": lambda p: (
        p.out <= p.per.project(lambda k: k if p.mx.lt_eq(5).content else None).to_collection(lambda k, v: (k,))
    ),
    "a join by a lattice": lambda p: p.out <= (p.best * p.twos).pairs(("v", "v"), lambda b, t: (b.k,)),
    "a row with a lattice": lambda p: p.out <= p.best.include("a", Max(2)).map(lambda b: (b.k,)),
    "an object that knows of it": lambda p: p.out <= p.got.map(knowing(p)),
    "an inner function": lambda p: p.out <= p.got.map(lambda m: (lambda: low(p.mx.value))().when_true(lambda: (m.k,))),  # noqa: PLC3002
}


def program(rule: Rule) -> type[Growing]:
    """With one more rule."""

    class Reading(Growing):
        @bloom
        def read(self) -> None:
            rule(self)

    return Reading


def ended(p: Any) -> list[Any]:
    """All that the rule may have written."""
    flag = p.flag.reveal()
    return [*p.out, *p.now_and_then, *(flag or ())]


@pytest.mark.parametrize("semi_naive", [True, False])
@pytest.mark.parametrize("name", READING)
def test_what_is_not_monotone_sees_the_fixed_point(name: str, semi_naive: bool) -> None:
    """At 9, nothing is at most 5: however it ends a function asks."""
    p = program(READING[name])(semi_naive=semi_naive)
    p.step <= [(1, 2), (2, 3), (3, 9)]
    p.got <= [("a", 1)]
    p.tick()
    assert p.mx.reveal() == 9
    assert [row.v.reveal() for row in (*p.best, *p.loose)] == [9, 9]
    assert ended(p) == []


@pytest.mark.parametrize("name", READING)
def test_what_is_not_monotone_is_a_point_of_order(name: str) -> None:
    """Nothing is called confluent that such a function gives; the same without the message is."""
    calm = program(READING[name])().calm()
    for written in ("out", "flag", "now_and_then"):
        rules = [point.rule for point in calm.points if point.rule.head == written]
        assert calm[written].confluent is not bool(rules)
    assert len(calm.points) == 1
    assert calm["mx"].confluent


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("mx", lambda p: p.got.map(lambda m: p.mx.lt_eq(5).when_true(lambda: 7))),
        ("got", lambda p: p.got.map(lambda m: p.mx.lt_eq(5).when_true(lambda: (m.k, 7)))),
        ("got", lambda p: p.got.map(lambda m: (m.k, p.mx.reveal()))),
        ("best", lambda p: p.best.map(lambda b: (b.k, Max(b.v.reveal() + 1)))),
        ("best", lambda p: p.best.filter(lambda b: low(b.v))),
        ("loose", lambda p: p.loose.map(lambda b: (b.k, Max(-b.v.reveal())))),
        ("names", lambda p: p.names.filter(lambda n: not p.names.contains("b").content)),
        ("best", lambda p: p.best.map(lambda b: (b.k, max(b.v, b.v)))),
    ],
)
def test_cycles_are_refused(head: str, body: Rule) -> None:
    """No order of rules gives them a meaning."""
    with pytest.raises(Unstratifiable):
        program(lambda p: getattr(p, head) <= body(p))()


def test_what_nobody_sees_says_how_to_go_on() -> None:
    """It may be monotone, which its author can say."""

    def greatest(x: Any, y: Any) -> Any:
        return max(x, y, key=lambda one: one.reveal())

    with pytest.raises(Unstratifiable, match="mark it @monotone"):
        program(lambda p: p.best <= p.best.map(lambda b: (b.k, greatest(b.v, b.v))))()
    marked = monotone(greatest)
    subject = program(lambda p: p.best <= p.best.map(lambda b: (b.k, marked(b.v, b.v))))()
    assert subject.calm()["best"].confluent


def test_unknown() -> None:
    """What a function does that nobody can see is neither confluent nor said not to be."""
    calm = program(lambda p: p.out <= p.best.map(lambda b: (str(b.v),)))().calm()
    assert calm["out"].verdict == "unknown"
    assert "out: unknown" in str(calm)
    assert "what str() does with best cannot be seen" in str(calm)
    both = program(lambda p: p.out <= p.best.map(lambda b: (str(b.v),) if b.v.lt_eq(3).content else None))()
    assert both.calm()["out"].verdict == "ordered"


MONOTONE: dict[str, Rule] = {
    "threshold": lambda p: p.out <= p.got.map(lambda m: p.mx.gt_eq(5).when_true(lambda: (m.k,))),
    "threshold in a test": lambda p: p.out <= p.got.filter(lambda m: p.mx.gt_eq(5)).map(lambda m: (m.k,)),
    "its content": lambda p: p.out <= p.got.map(lambda m: (m.k,) if p.mx.gt_eq(5).content else None),
    "its value": lambda p: p.out <= p.best.filter(lambda b: b.v.gt_eq(2).reveal()).map(lambda b: (b.k,)),
    "a set's elements": lambda p: p.out <= p.got.flat_map(lambda m: [(n,) for n in p.names.reveal()]),
    "a member": lambda p: p.out <= p.got.filter(lambda m: m.k in p.names.reveal()).map(lambda m: (m.k,)),
    "moved": lambda p: p.best <= p.got.map(lambda m: (m.k, p.mx)),
    "recursion": lambda p: p.best <= (p.best * p.got).pairs(lambda b, g: (g.k, b.v.min_of(8))),
    "a condition in a lattice": lambda p: p.flag <= p.names.project(lambda n: n if p.mx.gt_eq(3).content else None),
}


@pytest.mark.parametrize("name", MONOTONE)
def test_what_is_monotone_stays_confluent(name: str) -> None:
    """Thresholds, membership and what is made of each element wait for nothing."""
    p = program(MONOTONE[name])()
    assert p.calm().points == ()
    assert p.plan.strata()[-1].level == 0


def test_a_table_keeps_what_was_so_and_a_scratch_does_not() -> None:
    """Over ticks as with a term: what a table was given once, it has."""

    class Both(Growing):
        @bloom
        def read(self) -> None:
            self.out <= self.got.map(lambda m: self.mx.lt_eq(5).when_true(lambda: (m.k,)))
            self.now_and_then <= self.got.map(lambda m: self.mx.lt_eq(5).when_true(lambda: (m.k,)))

    p = Both()
    p.got <= [("a", 1)]
    p.tick()
    assert (len(p.out), len(p.now_and_then)) == (1, 1)
    p.got <= [("b", 7)]
    p.tick()
    assert (sorted(p.out), sorted(p.now_and_then)) == ([("a",)], [])


def looking(look: Callable[[Any], Any]) -> Rule:
    """A rule whose function looks into a collection."""
    return lambda p: p.out <= p.got.map(lambda m: (look(p),))


def test_collections_are_not_for_functions() -> None:
    """A function that looks into a collection is refused, with a remedy, however it ends it does."""
    looks: list[Callable[[Any], Any]] = [
        lambda p: len(p.got),
        lambda p: ("a", 1) in p.got,
        lambda p: list(p.got),
        lambda p: p.got["a", 1],
        lambda p: bool(p.got),
        lambda p: [row.k for row in p.got],
    ]
    for look in looks:
        subject = program(looking(look))()
        subject.got <= [("a", 1)]
        with pytest.raises(IllegalRule, match="cannot look into got"):
            subject.tick()


# ------------------------------------------------------------------------------------------------------------- gossip


class Gossip(Bloom):
    """Replicas that send all they have whenever a timer fires."""

    put = channel(["@to", "key"], ["version"], version=lmax)
    gossip = channel(["@to", "key"], ["version"], version=lmax)
    kv = table(["key"], ["version"], version=lmax)
    peer = table(["addr"], [])
    timer = periodic(0.3)
    other = periodic(0.5)
    gone = table(["key"], [])
    log = table(["key", "at"], [])
    seen = scratch(["key"], [])
    out = table(["key"], [])
    hits = lset()

    @bloom
    def take(self) -> None:
        """What comes."""
        self.kv <= self.put.payloads()
        self.kv <= self.gossip.payloads()


SENDING: dict[str, tuple[Rule, str]] = {
    "all": (
        lambda p: p.gossip < ~(p.timer * p.peer * p.kv).combos(lambda t, q, k: (q.addr, k.key, k.version)),
        "confluent",
    ),
    "one by one": (
        lambda p: p.gossip < ~((p.peer * p.timer).lefts() * p.kv).pairs(lambda q, k: (q.addr, k.key, k.version)),
        "confluent",
    ),
    "some": (
        lambda p: (
            p.gossip
            < ~(p.timer * p.peer * p.kv.filter(lambda k: k.version.gt_eq(2))).combos(
                lambda t, q, k: (q.addr, k.key, k.version)
            )
        ),
        "confluent",
    ),
    "when it fired": (
        lambda p: p.gossip < ~(p.timer * p.peer * p.kv).combos(lambda t, q, k: (q.addr, str(t.val), k.version)),
        "diffluent",
    ),
    "if it fired then": (
        lambda p: (
            p.gossip
            < ~(p.timer * p.peer * p.kv).combos(lambda t, q, k: (q.addr, k.key, k.version) if t.val > 3 else None)
        ),
        "diffluent",
    ),
    "a join with its time": (
        lambda p: (
            p.gossip
            < ~(p.timer * p.peer * p.kv).combos((p.timer.key, p.kv.key), lambda t, q, k: (q.addr, k.key, k.version))
        ),
        "diffluent",
    ),
    "two timers": (
        lambda p: p.gossip < ~(p.timer * p.other * p.peer * p.kv).combos(lambda t, o, q, k: (q.addr, k.key, k.version)),
        "diffluent",
    ),
    "in answer": (
        lambda p: p.gossip < ~(p.put * p.peer * p.kv).combos(lambda t, q, k: (q.addr, k.key, k.version)),
        "diffluent",
    ),
    "in answer to a firing": (
        lambda p: p.gossip < ~(p.timer * p.put * p.peer).combos(lambda t, k, q: (q.addr, k.key, k.version)),
        "diffluent",
    ),
    "what is not revealed to be low": (
        lambda p: (
            p.gossip
            < ~(p.timer * p.peer * p.kv).combos(
                lambda t, q, k: (q.addr, k.key, k.version) if low(k.version).content else None
            )
        ),
        "diffluent",
    ),
    "what is not gone": (
        lambda p: (
            p.gossip
            < ~(p.timer * p.peer * p.kv.notin(p.gone, ("key", "key"))).combos(
                lambda t, q, k: (q.addr, k.key, k.version)
            )
        ),
        "ordered",
    ),
    "if nothing came": (
        lambda p: (
            p.gossip
            < ~(p.timer.notin(p.put, lambda t, m: True) * p.peer * p.kv).combos(
                lambda t, q, k: (q.addr, k.key, k.version)
            )
        ),
        "diffluent",
    ),
    "unseen": (
        lambda p: (
            p.gossip < ~(p.timer * p.peer * p.kv).combos(lambda t, q, k: (q.addr, k.key, max(k.version, k.version)))
        ),
        "diffluent",
    ),
}


def gossiping(*rules: Rule) -> type[Gossip]:
    """With some more rules."""

    class Sending(Gossip):
        @bloom
        def send_all(self) -> None:
            for rule in rules:
                rule(self)

    return Sending


@pytest.mark.parametrize("name", SENDING)
def test_resending_what_is_asserted(name: str) -> None:
    """A timer may say when lasting rows go, and nothing else; the traffic itself is still flagged."""
    rule, verdict = SENDING[name]
    calm = gossiping(rule)().calm()
    assert calm["gossip"].verdict == "diffluent" or not calm["kv"].confluent
    if verdict == "confluent":
        assert calm["kv"].confluent
        assert "D" not in calm["kv"].labels
        assert "resending: timer says when rows of" in str(calm)
    else:
        assert not calm["kv"].confluent


RECEIVING: dict[str, tuple[Rule, str, str]] = {
    "a threshold": (
        lambda p: p.hits <= p.kv.map(lambda k: k.key if k.version.gt_eq(2).content else None),
        "hits",
        "confluent",
    ),
    "a passing row": (lambda p: p.seen <= p.gossip.map(lambda g: (g.key,)), "seen", "diffluent"),
    "a count of them": (lambda p: p.out <= p.kv.map(lambda k: (k.version.reveal(),)), "out", "diffluent"),
    "a log of values": (lambda p: p.log <= p.gossip.map(lambda g: (g.key, g.version.reveal())), "log", "diffluent"),
    "a deletion": (lambda p: p.kv < -p.gossip.map(lambda g: (g.key, Max(1))), "kv", "diffluent"),
    "a race": (lambda p: p.out <= (p.gossip * p.put).pairs(lambda g, q: (q.key,)), "out", "diffluent"),
    "a negation": (lambda p: p.out <= p.kv.notin(p.gone, ("key", "key")).map(lambda k: (k.key,)), "out", "diffluent"),
}


@pytest.mark.parametrize("name", RECEIVING)
def test_what_becomes_of_what_is_sent_again(name: str) -> None:
    """Only what takes it in by merging does not notice when it came."""
    rule, written, verdict = RECEIVING[name]
    assert gossiping(SENDING["all"][0], rule)().calm()[written].verdict == verdict


def test_gossip_ends_in_one_state() -> None:
    """What is called confluent is, however the timers fire and whatever is lost on the way."""

    def outcome(seed: int) -> frozenset[Any]:
        nodes = [gossiping(SENDING["all"][0])(address=name) for name in "abc"]
        net = Network(*nodes, seed=seed, loss=0.2, repeat=0.2, delay=3)
        for at, node in enumerate(nodes):
            node.peer <= [(name,) for name in "abc" if name != node.address]
            node.deliver("put", [(node.address, "k", at), (node.address, f"k{at}", 1)])
        for _ in range(8 + seed % 3):
            for node in nodes[: 1 + seed % 3]:
                node.fire("timer")
            net.step()
        net.loss = 0
        for _ in range(3):
            for node in nodes:
                node.fire("timer")
            net.run()
        return frozenset(frozenset((row.key, row.version.reveal()) for row in node.kv) for node in nodes)

    assert {outcome(seed) for seed in range(8)} == {frozenset([frozenset({("k", 2), ("k0", 1), ("k1", 1), ("k2", 1)})])}
