"""Retries: what goes until it is acknowledged is confluent, and called so; not where one of the rules breaks that."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from attrs import astuple, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import Bloom, agg, bloom, channel, import_module, interface, periodic, scratch, table
from syndicate.bloom.insight.calm import Calm
from syndicate.bloom.library.delivery import Reliable
from syndicate.bloom.library.shopper import Shopper
from syndicate.errors import KeyConflict
from tests.strategies import examples
from tests.syndicate.bloom.insight.outcomes import NODES, Fact, Names, differing, outcome

NAMES = Names(
    end=("buf", "taken", "done", "other"), ever=("met", "seen", "s0", "got", "pipe", "ack"), timers=("timer", "clock")
)

Rules: TypeAlias = Callable[[Any], list[tuple[str, str, Any]]]
"""Of a program: heads, operators and bodies."""

KEY = ("dst", "src", "n")


def all_of(row: Any) -> Any:
    """A function that moves all columns."""
    return (row.dst, row.src, row.n, row.v)


def met(p: Any, *by: str) -> Any:
    """What is acknowledged, by these columns."""
    return (p.buf * p.ack).lefts(*(by or KEY))


def due(p: Any) -> Any:
    """What is to go again."""
    return p.buf.notin(p.taken, *((name, name) for name in KEY)) if p.noted else p.buf


PUT: dict[str, Rules] = {
    "given": lambda p: [("buf", "<=", p.given)],
    "later": lambda p: [("buf", "<+", p.given)],
    "kept": lambda p: [("buf", "<=", p.log)],
    "nothing": lambda p: [],
    "some": lambda p: [("buf", "<=", p.given.filter(lambda g: g.n > 0))],
    "echo": lambda p: [("buf", "<=", p.given), ("buf", "<+", met(p))],
    "both": lambda p: [("buf", "<=", p.given), ("buf", "<=", p.more)],
    "own": lambda p: [("buf", "<=", p.given.map(lambda g: (g.dst, g.src, g.n, p.rank)))],
    "mine": lambda p: [("buf", "<=", p.given.map(lambda g: (g.dst, p.address, g.n, g.v)))],
}
ONCE: dict[str, Rules] = {
    "never": lambda p: [],
    "given": lambda p: [("pipe", "<~", p.given)],
    "other": lambda p: [("pipe", "<~", p.more)],
    "changed": lambda p: [("pipe", "<~", p.given.map(lambda g: (g.dst, g.src, g.n, g.v + 1)))],
}
AGAIN: dict[str, Rules] = {
    "all": lambda p: [("pipe", "<~", (due(p) * p.timer).lefts())],
    "pairs": lambda p: [("pipe", "<~", (p.timer * due(p)).pairs(lambda t, b: (b.dst, b.src, b.n, b.v)))],
    "some": lambda p: [("pipe", "<~", (due(p) * p.timer).lefts().filter(lambda b: b.v > 1))],
    "timed": lambda p: [("pipe", "<~", (due(p) * p.timer).pairs(lambda b, t: (b.dst, b.src, b.n, t.key % 2)))],
    "me": lambda p: [("pipe", "<~", (due(p) * p.timer).pairs(lambda b, t: (b.dst, p.address, b.n, b.v)))],
    "at once": lambda p: [
        ("pipe", "<~", (due(p) * p.timer * p.clock).combos(lambda b, t, c: (b.dst, b.src, b.n, b.v)))
    ],
    "fixed": lambda p: [("pipe", "<~", (due(p) * p.timer).pairs(lambda b, t: ("n1", p.address, b.n, b.v)))],
}
REPLY: dict[str, Rules] = {
    "right": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.src, q.dst, q.n, 0)))],
    "me": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.src, p.address, q.n, 0)))],
    "by chance": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.src, "n0", q.n, 0)))],
    "crossed": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.dst, q.src, q.n, 0)))],
    "some": lambda p: [("ack", "<~", p.pipe.filter(lambda q: q.v > 1).map(lambda q: (q.src, q.dst, q.n, 0)))],
    "whole": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.src, q.dst, q.n, q.v)))],
    "also": lambda p: [*REPLY["right"](p), ("ack", "<~", p.more.map(lambda m: (m.src, m.dst, m.n, 0)))],
}
END: dict[str, Rules] = {
    "ack": lambda p: [("buf", "<-", met(p))],
    "whole": lambda p: [("buf", "<-", met(p, *KEY, "v"))],
    "wide": lambda p: [("buf", "<-", met(p, "src", "n"))],
    "narrow": lambda p: [("buf", "<-", met(p).filter(lambda b: b.v > 1))],
    "early": lambda p: [("buf", "<-", (p.buf * p.pipe).lefts("n"))],
    "twice": lambda p: [("buf", "<-", met(p)), ("buf", "<-", (p.buf * p.more).lefts("n"))],
    "noted": lambda p: [("taken", "<=", p.ack.map(lambda a: (a.dst, a.src, a.n)))],
}
MEET: dict[str, Rules] = {
    "ack": lambda p: [("met", "<=", met(p))],
    "nothing": lambda p: [],
    "narrow": lambda p: [("met", "<=", met(p, *KEY, "v"))],
    "wide": lambda p: [("met", "<=", met(p, "n"))],
    "filtered": lambda p: [("met", "<=", met(p).filter(lambda b: b.v > 1))],
    "of ack": lambda p: [
        (
            "met",
            "<=",
            (p.buf * p.ack).pairs(*((name, name) for name in KEY), lambda b, a: (b.dst, b.src, b.n, a.v)),
        )
    ],
    "deletes": lambda p: [("other", "<-", met(p))],
    "replaces": lambda p: [("other", "<+-", met(p).map(lambda b: (b.dst, b.src, 0, b.v)))],
}
READ: dict[str, Rules] = {
    "copy": lambda p: [("s0", "<=", p.buf.map(lambda b: (b.n, b.v)))],
    "join": lambda p: [("s0", "<=", (p.buf * p.other).pairs(("n", "n"), lambda b, o: (b.v, o.v)))],
    "count": lambda p: [("s0", "<=", p.buf.group(["n"], agg.count()))],
    "absent": lambda p: [("s0", "<=", p.other.notin(p.buf, ("n", "n")).map(lambda o: (o.n, o.v)))],
}
PARTS = {"put": PUT, "once": ONCE, "again": AGAIN, "reply": REPLY, "end": END, "meet": MEET, "read": READ}


@frozen
class Choice:
    """Which form each part of a program has."""

    put: str = "given"
    once: str = "never"
    again: str = "all"
    reply: str = "right"
    end: str = "ack"
    meet: str = "ack"
    read: str = "copy"

    def __str__(self) -> str:
        return "-".join(astuple(self)).replace(" ", "_")


def random_choice(rng: random.Random) -> Choice:
    """Mostly of what is right."""
    chosen = {part: rng.choice([*forms]) for part, forms in PARTS.items() if rng.random() < 0.4}
    if rng.random() < 0.2:
        chosen = {"meet": "narrow", **chosen, "reply": "whole", "end": "whole"}
    return Choice(**chosen)


def program(of: Choice) -> type[Bloom]:
    """Rows of *given* go from node to node until they are acknowledged, in these forms."""

    class Retrying(Bloom):
        given = scratch([*KEY], ["v"])
        more = scratch([*KEY], ["v"])
        log = table([*KEY], ["v"])
        other = table([*KEY], ["v"])
        buf = table([*KEY], ["v"])
        taken = table([*KEY], [])
        done = table([*KEY], ["v"])
        pipe = channel(["@dst", "src", "n", "v"], [])
        ack = channel(["@src", "dst", "n", "v"], [])
        met = scratch([*KEY, "v"], [])
        seen = scratch([*KEY, "v"], [])
        got = scratch([*KEY, "v"], [])
        s0 = scratch(["a", "b"], [])
        timer = periodic(1)
        clock = periodic(1)
        noted = of.end == "noted"

        @property
        def rank(self) -> int:
            return NODES.index(self.address)

        @bloom
        def rules(self) -> None:
            self.log <= self.given
            self.got <= self.pipe.map(all_of)
            self.done <= self.met.map(all_of)
            self.seen <= self.buf.map(all_of)
            for part, forms in PARTS.items():
                for name, op, body in forms[getattr(of, part)](self):
                    head = getattr(self, name)
                    match op:
                        case "<=":
                            head <= body
                        case "<+":
                            head < +body
                        case "<-":
                            head < -body
                        case "<+-":
                            head < +-body
                        case _:
                            head < ~body

    return Retrying


def random_facts(rng: random.Random) -> list[Fact]:
    """Rows whose key says what else is in them; most are given to where they are from."""
    facts: list[Fact] = []
    for _ in range(rng.randrange(2, 9)):
        node, dst, n = rng.choice(NODES), rng.choice(NODES), rng.randrange(4)
        src = node if rng.random() < 0.85 else rng.choice(NODES)
        row = (dst, src, n, (2 * n + (dst < src)) % 5)
        facts.append((node, rng.choice(("given", "given", "given", "given", "buf", "other", "more")), row))
    return facts


def tried(seed: int, runs: int = 3) -> tuple[Calm | None, set[str]]:
    """The verdicts of a random program, and what of it came out differently over some orders; none where one raises."""
    rng = random.Random(seed)
    kind, facts = program(random_choice(rng)), random_facts(rng)
    calm = kind(address="n0").calm()
    try:
        return calm, differing([outcome(kind, facts, rng.randrange(2**32), NAMES) for _ in range(runs)])
    except KeyConflict:
        return None, set()


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_what_is_called_confluent_is(seed: int) -> None:
    """Over orders, batches, repetitions and firings of timers, it comes out the same."""
    calm, different = tried(seed)
    if calm is not None:
        assert not {name for name in different if calm[name].confluent}, f"{different}\n{calm}"


RIGHT = [
    Choice(),
    Choice(put="later", again="pairs"),
    Choice(once="given"),
    Choice(put="nothing"),
    Choice(reply="me"),
    Choice(reply="whole", end="whole", put="some", meet="narrow"),
    Choice(reply="whole", end="whole", put="both", meet="nothing"),
    Choice(end="noted", meet="nothing"),
    Choice(end="noted", meet="nothing", again="pairs", read="join"),
    Choice(meet="filtered"),
]


@pytest.mark.parametrize("of", RIGHT, ids=str)
def test_what_is_right_is_seen(of: Choice) -> None:
    """No false alarm: what goes until it is acknowledged is no point of order."""
    calm = program(of)(address="n0").calm()
    assert [str(point) for point in calm.points] == []
    assert calm.confluent
    (retry,) = calm.retries
    assert (retry.table, retry.channel, retry.ack, retry.taken) == ("buf", "pipe", "ack", of.end != "noted")
    assert f"retry: {retry}" in str(calm)


WRONG = {
    Choice(meet="deletes"): "other",
    Choice(meet="replaces"): "other",
    Choice(meet="wide"): "met",
    Choice(reply="by chance"): "pipe",
    Choice(put="own"): "pipe",
}


@pytest.mark.parametrize("of", WRONG, ids=str)
def test_what_a_race_decides_is_seen(of: Choice) -> None:
    """A rule that takes rows from elsewhere, or by fewer columns; an address that only this program has."""
    assert program(of)(address="n0").calm()[WRONG[of]].verdict == "diffluent"


def test_the_random_programs_are_of_all_kinds() -> None:
    """The test above sees retries that are confluent, and programs that a rule breaks, which differ."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        calm, different = tried(seed, 4)
        if calm is not None:
            seen["confluent"] += bool(calm.retries) and calm["met"].confluent and calm["pipe"].confluent
            seen["differs"] += bool(different & {"met", "buf", "pipe"})
        if seen["confluent"] >= 4 and seen["differs"] >= 4:
            return
    raise AssertionError(seen)


def test_the_library() -> None:
    """Reliable delivery is confluent; a shopper alone does not see who acknowledges."""
    assert Reliable(address="a").calm().confluent
    calm = Shopper(address="ann").calm()
    assert (calm.retries, calm["action"].verdict) == ((), "diffluent")


class Reaching(Bloom):
    """Who sends has no column for itself, and goes to one address."""

    buf = table(["n"], ["v"])
    pipe = channel(["@dst", "src", "n"], ["v"])
    ack = channel(["@src", "n"], [])
    timer = periodic(1)

    @bloom
    def rules(self) -> None:
        """The address is a constant of each node."""
        me: Any = self.address
        self.pipe < ~(self.buf * self.timer).pairs(lambda b, t: ("hub", me, b.n, b.v))
        self.ack < ~self.pipe.map(lambda p: (p.src, p.n))
        self.buf < -(self.buf * self.ack).lefts("n")


class Greeter(Bloom):
    """Greets by the delivery that it imports."""

    greet = interface("input", ["name"], ["text"])
    greeted = table(["who", "text"], [])
    post = import_module(Reliable)

    @bloom
    def pass_on(self) -> None:
        """In and out."""
        me = self.address
        self.post.pipe_in <= self.greet.map(lambda g: ("hub", me, g.name, g.text))
        self.greeted <= self.post.pipe_out.map(lambda p: (p.src, p.payload))


class Shouter(Greeter):
    """What it says depends on what has come."""

    @bloom
    def answer(self) -> None:
        """To who was heard."""
        self.post.pipe_in <= self.post.pipe_out.map(lambda p: (p.src, p.dst, p.ident, p.payload))


def test_a_module() -> None:
    """The importer says what is to go, by one rule that copies it."""
    assert Greeter(address="n0").calm()["greeted"].confluent
    calm = Shouter(address="n0").calm()
    assert (calm.retries, calm["greeted"].verdict) == ((), "diffluent")


def test_an_address_that_rows_do_not_have() -> None:
    """It is read from the function."""
    assert Reaching(address="n0").calm().confluent
