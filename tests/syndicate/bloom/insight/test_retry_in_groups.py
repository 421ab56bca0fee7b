"""Retries to a group: what members pass on until each has acknowledged it is confluent; not if one rule breaks that."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import astuple, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import Bloom, bloom, channel, const, periodic, scratch, table
from syndicate.bloom.insight.calm import Calm
from syndicate.bloom.library.multicast import CausalMulticast, ReliableMulticast
from syndicate.errors import KeyConflict
from tests.strategies import examples
from tests.syndicate.bloom.insight.outcomes import Fact, Names, differing, outcome
from tests.syndicate.bloom.insight.test_retry import Rules

NODES = ("n0", "n1", "n2")
NAMES = Names(end=("kept", "taken", "log"), ever=("seen", "got", "pipe", "ack"), timers=("timer",), nodes=NODES)

PUT: dict[str, Rules] = {
    "mine": lambda p: [("kept", "<=", p.given.map(lambda g: (p.address, g.n, g.v)))],
    "later": lambda p: [("kept", "<+", p.given.map(lambda g: (p.address, g.n, g.v)))],
    "whole": lambda p: [("kept", "<=", p.whole)],
    "log": lambda p: [("kept", "<=", p.log)],
    "nothing": lambda p: [],
    "valued": lambda p: [("kept", "<=", p.given.map(lambda g: (p.address, g.n, p.parity)))],
    "two": lambda p: [*PUT["mine"](p), ("kept", "<=", p.whole)],
    "grouped": lambda p: [("kept", "<=", (p.given * p.names).pairs(lambda g, m: (p.address, g.n, m.rank)))],
    "some": lambda p: [("kept", "<=", p.given.filter(lambda g: g.v > 1).map(lambda g: (p.address, g.n, g.v)))],
}
ON: dict[str, Rules] = {
    "all": lambda p: [("kept", "<=", p.pipe.map(lambda q: (q.src, q.n, q.v)))],
    "none": lambda p: [],
    "later": lambda p: [("kept", "<+", p.pipe.map(lambda q: (q.src, q.n, q.v)))],
    "changed": lambda p: [("kept", "<=", p.pipe.map(lambda q: (q.src, q.n, q.v + 1)))],
    "mine": lambda p: [("kept", "<=", p.pipe.map(lambda q: (p.address, q.n, q.v)))],
    "via": lambda p: [("kept", "<=", p.pipe.map(lambda q: (q.via, q.n, q.v)))],
    "some": lambda p: [("kept", "<=", p.pipe.filter(lambda q: q.v > 1).map(lambda q: (q.src, q.n, q.v)))],
}
ONCE: dict[str, Rules] = {
    "never": lambda p: [],
    "all": lambda p: [("pipe", "<~", (p.given * p.names).pairs(lambda g, m: (m.name, p.address, p.address, g.n, g.v)))],
    "whole": lambda p: [("pipe", "<~", (p.whole * p.names).pairs(lambda g, m: (m.name, p.address, g.src, g.n, g.v)))],
    "one": lambda p: [("pipe", "<~", p.given.map(lambda g: ("n1", p.address, p.address, g.n, g.v)))],
    "changed": lambda p: [
        ("pipe", "<~", (p.given * p.names).pairs(lambda g, m: (m.name, p.address, p.address, g.n, g.v + 1)))
    ],
    "ranked": lambda p: [
        ("pipe", "<~", (p.given * p.names).pairs(lambda g, m: (m.name, p.address, p.address, g.n, m.rank)))
    ],
}
COLUMNS = ["dst", "via", "src", "n", "v"]
AGAIN: dict[str, Rules] = {
    "all": lambda p: _again(p, _to_all(p), lambda k, m, t: (m.name, p.address, k.src, k.n, k.v)),
    "crossed": lambda p: _again(
        p, (p.names * p.timer * p.kept).combos(), lambda m, t, k: (m.name, p.address, k.src, k.n, k.v)
    ),
    "as from": lambda p: _again(p, _to_all(p), lambda k, m, t: (m.name, k.src, k.src, k.n, k.v)),
    "ranked": lambda p: _again(p, _to_all(p), lambda k, m, t: (m.name, p.address, k.src, k.n, m.rank)),
    "timed": lambda p: _again(p, _to_all(p), lambda k, m, t: (m.name, p.address, k.src, k.n, t.key % 2)),
    "one": lambda p: _again(p, (p.kept * p.timer).pairs(), lambda k, t: ("n1", p.address, k.src, k.n, k.v)),
    "some": lambda p: _again(
        p, _to_all(p).filter(lambda k, m, t: k.v > m.rank), lambda k, m, t: (m.name, p.address, k.src, k.n, k.v)
    ),
    "not to its own": lambda p: _again(
        p, _to_all(p).filter(lambda k, m, t: k.src != m.name), lambda k, m, t: (m.name, p.address, k.src, k.n, k.v)
    ),
}
REPLY: dict[str, Rules] = {
    "me": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.via, p.address, q.src, q.n)))],
    "dst": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.via, q.dst, q.src, q.n)))],
    "to its source": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.src, p.address, q.src, q.n)))],
    "to all": lambda p: [("ack", "<~", (p.pipe * p.names).pairs(lambda q, m: (m.name, p.address, q.src, q.n)))],
    "of all": lambda p: [("ack", "<~", (p.pipe * p.names).pairs(lambda q, m: (q.via, m.name, q.src, q.n)))],
    "of who sent": lambda p: [("ack", "<~", p.pipe.map(lambda q: (q.via, q.via, q.src, q.n)))],
    "some": lambda p: [("ack", "<~", p.pipe.filter(lambda q: q.v > 1).map(lambda q: (q.via, p.address, q.src, q.n)))],
    "also": lambda p: [*REPLY["me"](p), ("ack", "<~", p.whole.map(lambda g: (g.src, "n1", g.src, g.n)))],
}
END: dict[str, Rules] = {
    "noted": lambda p: [("taken", "<=", p.ack.map(lambda a: (a.member, a.src, a.n)))],
    "and who sent": lambda p: [*END["noted"](p), ("taken", "<=", p.pipe.map(lambda q: (q.via, q.src, q.n)))],
    "taken away": lambda p: [("kept", "<-", (p.kept * p.ack).lefts("src", "n"))],
    "said to all": lambda p: [("taken", "<=", (p.ack * p.names).pairs(lambda a, m: (m.name, a.src, a.n)))],
}
PARTS = {"put": PUT, "on": ON, "once": ONCE, "again": AGAIN, "reply": REPLY, "end": END}
KEY = {
    "whole": [("dst", "member"), ("src", "src"), ("n", "n")],
    "wide": [("src", "src"), ("n", "n")],
    "member": [("dst", "member"), ("n", "n")],
}
GROUPS = {
    "given": lambda: table(["name"], ["rank"]),
    "passing": lambda: scratch(["name"], ["rank"]),
    "const": lambda: const(["name"], ["rank"], rows=[(name, rank) for rank, name in enumerate(NODES)]),
    "written": lambda: table(["name"], ["rank"]),
}


def all_of(row: Any) -> Any:
    """A function that moves all columns."""
    return (row.src, row.n, row.v)


def _to_all(p: Any) -> Any:
    return (p.kept * p.names * p.timer).combos()


def _again(p: Any, rows: Any, function: Any) -> list[tuple[str, str, Any]]:
    """What goes again: with all columns of :data:`COLUMNS`, without what is noted."""
    body = rows.map(function, columns=COLUMNS)
    return [("pipe", "<~", body if p.of.end == "taken away" else body.notin(p.taken, *KEY[p.of.key]))]


@frozen
class Choice:
    """Which form each part of a program has."""

    put: str = "mine"
    on: str = "all"
    once: str = "never"
    again: str = "all"
    reply: str = "me"
    end: str = "noted"
    key: str = "whole"
    group: str = "given"

    def __str__(self) -> str:
        return "-".join(astuple(self)).replace(" ", "_")


def random_choice(rng: random.Random) -> Choice:
    """Mostly of what is right."""
    forms: dict[str, Mapping[str, object]] = {**PARTS, "key": KEY, "group": GROUPS}
    return Choice(**{part: rng.choice([*several]) for part, several in forms.items() if rng.random() < 0.25})


def program(choice: Choice) -> type[Bloom]:
    """Rows of *given* go from member to member until each has acknowledged them, in these forms."""

    class Passing(Bloom):
        of = choice
        given = scratch(["n"], ["v"])
        whole = scratch(["src", "n"], ["v"])
        log = table(["src", "n"], ["v"])
        kept = table(["src", "n"], ["v"])
        names: Any = GROUPS[choice.group]()
        taken = table(["member", "src", "n"], [])
        pipe = channel(["@dst", "via", "src", "n", "v"], [])
        ack = channel(["@to", "member", "src", "n"], [])
        seen = scratch(["src", "n", "v"], [])
        got = scratch(["src", "n", "v"], [])
        timer = periodic(1)

        @property
        def parity(self) -> int:
            return NODES.index(self.address) % 2

        @bloom
        def rules(self) -> None:
            self.seen <= self.kept.map(all_of)
            self.got <= self.pipe.map(all_of)
            if choice.group == "written":
                self.names <= self.pipe.map(lambda q: (q.via, NODES.index(q.via)))
            for part, forms in PARTS.items():
                for name, op, body in forms[getattr(choice, part)](self):
                    head = getattr(self, name)
                    match op:
                        case "<=":
                            head <= body
                        case "<+":
                            head < +body
                        case "<-":
                            head < -body
                        case _:
                            head < ~body

    return Passing


def random_facts(rng: random.Random, group: str) -> list[Fact]:
    """Rows of *given* have a key where they are given, others wherever they are."""
    facts: list[Fact] = []
    for _ in range(rng.randrange(2, 8)):
        node, src, n = rng.choice(NODES), rng.choice(NODES), rng.randrange(3)
        name = rng.choice(("given", "given", "given", "whole", "log", "kept"))
        if name == "given":
            facts.append((node, name, (n, (2 * n + NODES.index(node)) % 5)))
        else:
            facts.append((node, name, (src, 5 + n, (n + NODES.index(src)) % 5)))
    if group != "const":
        facts += [
            (node, "names", (name, rank)) for node in NODES for rank, name in enumerate(NODES) if rng.random() < 0.8
        ]
    return facts


def tried(seed: int, runs: int = 3) -> tuple[Calm | None, set[str]]:
    """The verdicts of a random program, and what of it came out differently over some orders; none where one raises."""
    rng = random.Random(seed)
    of = random_choice(rng)
    kind, facts = program(of), random_facts(rng, of.group)
    calm = kind(address="n0").calm()
    try:
        return calm, differing([outcome(kind, facts, rng.randrange(2**32), NAMES) for _ in range(runs)])
    except KeyConflict:
        return None, set()


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32))
def test_what_is_called_confluent_is(seed: int) -> None:
    """Over orders, batches, repetitions and firings of timers, it comes out the same."""
    calm, different = tried(seed)
    if calm is not None:
        assert not {name for name in different if calm[name].confluent}, f"{different}\n{calm}"


RIGHT = [
    Choice(),
    Choice(put="later", on="none"),
    Choice(put="whole", once="whole", again="crossed"),
    Choice(once="all", on="later"),
    Choice(group="const", reply="dst"),
    Choice(put="nothing"),
]


@pytest.mark.parametrize("of", RIGHT, ids=str)
def test_what_is_right_is_seen(of: Choice) -> None:
    """No false alarm: what goes to each member until it has acknowledged it is no point of order."""
    calm = program(of)(address="n0").calm()
    assert [str(point) for point in calm.points] == []
    assert calm.confluent
    (retry,) = calm.retries
    assert (retry.table, retry.channel, retry.ack, retry.taken) == ("kept", "pipe", "ack", False)
    assert set(retry.columns) == {"names.name", "src", "n"}


WRONG = [
    *(Choice(put=one) for one in ("valued", "two", "grouped", "some")),
    *(Choice(on=one) for one in ("changed", "mine", "via", "some")),
    *(Choice(once=one) for one in ("one", "changed", "ranked")),
    *(Choice(again=one) for one in ("as from", "ranked", "timed", "some")),
    *(Choice(reply=one) for one in ("to its source", "to all", "of all", "of who sent", "also")),
    *(Choice(end=one) for one in ("and who sent", "taken away", "said to all")),
    *(Choice(key=one) for one in ("wide", "member")),
    *(Choice(group=one) for one in ("passing", "written")),
]
"""Of these the analysis sees no retry; not all of them differ."""


@pytest.mark.parametrize("of", WRONG, ids=str)
def test_what_is_not_a_retry_is_not_taken_for_one(of: Choice) -> None:
    """A row that is not named, an acknowledgement of somebody else's, or for another."""
    calm = program(of)(address="n0").calm()
    assert calm.retries == ()
    assert calm["pipe"].verdict == "diffluent"


def test_the_random_programs_are_of_all_kinds() -> None:
    """The test above sees groups that are confluent, and programs that a rule breaks, which differ."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        calm, different = tried(seed, 4)
        if calm is not None:
            seen["confluent"] += bool(calm.retries) and calm["pipe"].confluent
            seen["differs"] += bool(different & {"kept", "pipe", "taken"})
        if seen["confluent"] >= 4 and seen["differs"] >= 4:
            return
    raise AssertionError(seen)


def test_the_library() -> None:
    """Reliable multicast is confluent; what a message of causal multicast waits for is a race."""
    assert ReliableMulticast(address="a").calm().confluent
    assert CausalMulticast(address="a").calm()["heard"].verdict == "diffluent"
