"""CALM analysis: what is called confluent is the same over all orders of arrival; of the rest, the rule is named."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import (
    Bloom,
    Network,
    agg,
    bloom,
    channel,
    const,
    import_module,
    interface,
    lbool,
    lmax,
    lset,
    periodic,
    scratch,
    stdio,
    table,
    values,
)
from syndicate.bloom.insight.calm import Calm
from syndicate.errors import IllegalRule, Unstratifiable
from tests.strategies import examples
from tests.syndicate.bloom.insight.outcomes import NODES, Fact, Names, differing, outcome
from tests.syndicate.bloom.naive import Body
from tests.syndicate.bloom.programs import Maker


class DestructiveCart(Bloom):
    """Replaces what a cart holds with each action."""

    action = channel(["@server", "session", "item", "ident"], ["number"])
    checkout = channel(["@server", "session"], [])
    response = channel(["@client", "session", "item"], ["number"])
    cart = table(["session", "item"], ["number"])

    @bloom
    def act(self) -> None:
        """The last action on an item counts."""
        self.cart < +-self.action.map(lambda a: (a.session, a.item, a.number))

    @bloom
    def answer(self) -> None:
        """All items of the session."""
        self.response < ~(self.cart * self.checkout).pairs(
            ("session", "session"), lambda c, k: ("client", c.session, c.item, c.number)
        )


class DisorderlyCart(Bloom):
    """Keeps all actions, and sums them up at the checkout."""

    action = channel(["@server", "session", "item", "ident"], ["number"])
    checkout = channel(["@server", "session"], [])
    response = channel(["@client", "session", "item"], ["number"])
    log = table(["session", "item", "ident"], ["number"])

    @bloom
    def act(self) -> None:
        """A log of actions."""
        self.log <= self.action.payloads()

    @bloom
    def answer(self) -> None:
        """The sums of the session."""
        sums = self.log.group(["session", "item"], agg.sum("number"))
        self.response < ~(sums * self.checkout).pairs(
            ("session", "session"), lambda s, k: ("client", s.session, s.item, s[2])
        )


def test_two_carts() -> None:
    """The paper's: a point of order for each action, or only at the checkout, where messages race in both."""
    destructive, disorderly = DestructiveCart().calm(), DisorderlyCart().calm()
    assert [(point.rule.head, point.hazard.why) for point in destructive.points] == [
        ("cart", "replacement"),
        ("response", "race"),
    ]
    assert [(point.rule.head, point.hazard.why) for point in disorderly.points] == [
        ("response", "sum(number)"),
        ("response", "race"),
    ]
    assert (destructive["cart"].verdict, disorderly["log"].verdict) == ("diffluent", "confluent")
    assert [output.name for output in destructive.outputs] == ["response"]
    assert destructive["response"].verdict == disorderly["response"].verdict == "diffluent"
    assert (destructive.confluent, disorderly["log"].labels) == (False, ("", "A"))


class Kinds(Bloom):
    """One of each."""

    asked = interface("input", ["x"], [])
    told = interface("output", ["x"], [])
    link = channel(["@to", "x"], [])
    known = table(["x"], [])
    gone = table(["x"], [])
    words = const(["x"], [], rows=[("a",)])
    timer = periodic(1)
    lines = stdio()
    first = scratch(["x"], [])
    counted = scratch(["n"], [])
    clocked = scratch(["x", "tick"], [])
    still = scratch(["x"], [])
    racing = scratch(["x"], [])
    ordered = scratch(["x"], [])
    relayed = scratch(["x"], [])

    @bloom
    def rules(self) -> None:
        """Each way of being."""
        self.known <= self.link.payloads()
        self.first <= self.words.notin(self.words, ("x", "x"))
        self.counted <= self.known.group([], agg.count())
        self.clocked <= (self.known * self.now).pairs(lambda k, n: (k.x, n.tick))
        self.still <= (self.known * self.words).lefts("x")
        self.racing <= (self.known * self.timer).pairs(lambda k, t: (k.x,))
        self.gone < -self.asked
        self.ordered <= self.asked.notin(values(("b",))).notin(self.gone)
        self.told <= self.asked
        self.lines < ~self.told


class Leaving(Bloom):
    """A timer sends what is there for a time: until more is known, or until it is taken away."""

    wanted = table(["x"], [])
    known = table(["x"], [])
    done = scratch(["x"], [])
    missing = scratch(["x"], [])
    open = scratch(["x"], [])
    timer = periodic(1)
    asked = channel(["@to", "x"], [])
    told = channel(["@to", "x"], [])
    posted = channel(["@to", "x"], [])
    came = table(["x"], [])

    @bloom
    def rules(self) -> None:
        """Each goes through a scratch, which does not say that of itself."""
        self.missing <= self.wanted.notin(self.known, ("x", "x"))
        self.known < -self.done
        self.open <= self.known
        self.asked < ~(self.timer * self.missing).pairs(lambda t, m: ("a", m.x))
        self.told < ~(self.timer * self.open).pairs(lambda t, o: ("a", o.x))
        self.posted < ~(self.timer * self.wanted).pairs(lambda t, w: ("a", w.x))
        self.came <= self.told.payloads()


def test_a_timer_that_sends_what_leaves() -> None:
    """It decides what goes, though nothing else is asynchronous; of what stays it does not."""
    calm = Leaving(address="a").calm()
    verdicts = {name: calm[name].verdict for name in ("missing", "open", "asked", "told", "posted", "came")}
    assert verdicts == {
        "missing": "ordered",
        "open": "ordered",
        "asked": "diffluent",
        "told": "diffluent",
        "posted": "confluent",
        "came": "diffluent",
    }


def test_verdicts() -> None:
    """Negation of what is constant is harmless; aggregates, clocks, deletions and races are not."""
    calm = Kinds().calm()
    assert {output.name: output.verdict for output in calm.outputs} == {
        "told": "confluent",
        "lines": "confluent",
        "first": "confluent",
        "counted": "diffluent",
        "clocked": "diffluent",
        "still": "confluent",
        "racing": "diffluent",
        "ordered": "ordered",
    }
    assert calm["gone"].verdict == "ordered"
    assert [point.hazard.why for point in calm["ordered"].points] == ["deletion", "negation"]
    assert (calm["counted"].labels, calm["told"].labels, calm["still"].labels) == (("D", "N"), ("",), ("", "A"))
    assert not calm.confluent
    said = str(calm)
    sites = {rule.head: f"rule {rule.number} ({rule.site})" for rule in Kinds().statements}
    assert said.splitlines()[0] == "Kinds: 10 rules, 6 points of order, 4 of 8 outputs confluent"
    assert f"  {sites['counted']}, counted <= known: the count() must see all of known" in said
    assert f"{sites['racing']}, racing <= known, timer: a race: timer must be there in one tick with known" in said
    assert f"{sites['gone']} deletes from gone only what is there already" in said
    assert "counted: diffluent [D, N]. What comes first decides: link arrives asynchronously, and then" in said
    assert "told: confluent. Order, batches and repetition of the input do not change its rows" in said


def test_sequences_of_labels() -> None:
    """A point of order, then a channel: a sequence, until another point of order comes."""

    class Steps(Bloom):
        given = scratch(["x"], [])
        last = scratch(["x"], [])
        mail = channel(["@to", "x"], [])
        kept = table(["x"], [])
        out = scratch(["n"], [])

        @bloom
        def rules(self) -> None:
            self.last <= self.given.argmax([], "x")
            self.mail < ~self.last.map(lambda r: ("you", r.x))
            self.kept <= self.mail.payloads()
            self.out <= self.kept.group([], agg.count())

    calm = Steps().calm()
    assert [calm[name].labels for name in ("last", "mail", "kept", "out")] == [
        ("N",),
        ("A", "NA"),
        ("", "A", "NA"),
        ("D", "N"),
    ]
    assert [calm[name].verdict for name in ("last", "mail", "kept", "out")] == ["ordered"] * 3 + ["diffluent"]


def test_modules_and_halt() -> None:
    """An interface of a module is what the importer makes of it; what ends a program is noted."""

    class Copy(Bloom):
        came = interface("input", ["x"], [])
        went = interface("output", ["x"], [])

        @bloom
        def rules(self) -> None:
            self.went <= self.came

    class Uses(Bloom):
        one = import_module(Copy)
        fed = table(["x"], [])
        both = scratch(["x"], [])

        @bloom
        def rules(self) -> None:
            self.one.came <= self.fed
            self.both <= (self.one.went * self.fed).lefts("x")
            self.halt <= self.both.map(lambda r: (r.x,))

    calm = Uses().calm()
    assert calm.points == ()
    assert [(output.name, output.verdict) for output in calm.outputs] == []
    assert calm["both"].confluent
    assert str(calm).splitlines()[-1].startswith("note: rule 4 (")
    p = Copy().calm()
    assert [output.name for output in p.outputs] == ["went"]


def test_lattices() -> None:
    """Thresholds of what grows are monotone; revealing is not; a function may see what was merged by chance."""

    class Votes(Bloom):
        vote = channel(["@to", "voter"], [])
        batch = channel(["@to", "round"], ["voters"], voters=lset)
        voters = lset()
        count = lmax()
        done = lbool()
        won = scratch(["x"], [])
        number = table(["n"], [])
        all_of = table(["round"], ["voters"], voters=lset)
        large = table(["round"], [])
        later = table(["round"], [])

        @bloom
        def rules(self) -> None:
            self.voters <= self.vote.map(lambda v: v.voter)
            self.count <= self.voters.size()
            self.done <= self.count.gt_eq(2)
            self.won <= self.done.when_true(lambda: [("won",)])
            self.number <= self.count.reveal()
            self.all_of <= self.batch.payloads()
            self.large <= self.batch.filter(lambda b: b.voters.size().gt_eq(2).reveal()).map(lambda b: (b.round,))
            self.later <= self.all_of.filter(lambda b: b.voters.size().gt_eq(2).reveal()).map(lambda b: (b.round,))

    calm = Votes().calm()
    assert {output.name: output.verdict for output in calm.outputs} == {
        "won": "confluent",
        "number": "diffluent",
        "large": "diffluent",
        "later": "confluent",
    }
    assert calm["number"].points[0].hazard.why.startswith("reveal()")
    assert calm["all_of"].confluent
    assert calm["done"].confluent
    assert "looks into what was merged of batch in one tick" in str(calm["large"])
    sizes = set()
    for together in (True, False):
        p = Votes(address="me")
        p.deliver("batch", [("me", 1, ["ann"])])
        if not together:
            p.tick()
        p.deliver("batch", [("me", 1, ["bob"])])
        p.run()
        sizes.add((len(p.large), len(p.later)))
    assert sizes == {(1, 1), (0, 1)}


# ------------------------------------------------------------------------------------------------------------- random

TABLES, SCRATCHES, CHANNELS, GIVEN = ("t0", "t1"), ("s0", "s1"), ("c0", "c1"), ("in0", "t0", "t1")
NAMES = Names(end=TABLES, ever=(*SCRATCHES, *CHANNELS))
READ = (*TABLES, *SCRATCHES, *CHANNELS, "in0")


class Sources(Maker):
    """Bodies that also read channels and an input; mostly monotone ones."""

    def source(self) -> Body:
        """A collection."""
        name = self.rng.choice(READ)
        if name in CHANNELS:
            return Body(lambda p: getattr(p, name).payloads(), lambda env: frozenset(), frozenset([name]))
        return Body(lambda p: getattr(p, name), lambda env: frozenset(), frozenset([name]))


def random_program(rng: random.Random) -> type[Bloom]:
    """Rules of some operators; what they read, in ways that are monotone more often than not."""
    maker = Sources(rng)
    rules = []
    for _ in range(rng.randrange(2, 7)):
        head = rng.choice([*TABLES, *SCRATCHES, *CHANNELS])
        ops = {"t": ("<=", "<=", "<+", "<-"), "s": ("<=", "<=", "<+"), "c": ("<~",)}[head[0]]
        depth = rng.choice((0, 0, 1, 1, 2))
        rules.append((head, rng.choice(ops), maker.body(depth)))

    class Random(Bloom):
        t0 = table(["a", "b"])
        t1 = table(["a", "b"])
        s0 = scratch(["a", "b"])
        s1 = scratch(["a", "b"])
        in0 = scratch(["a", "b"])
        c0 = channel(["@to", "a", "b"])
        c1 = channel(["@to", "a", "b"])

        @bloom
        def rules(self) -> None:
            self.c0 < ~self.in0.map(lambda r: (f"n{(r[0] + r[1]) % 2}", r[0], r[1]), columns=["to", "a", "b"])
            for name, op, one in rules:
                head, body = getattr(self, name), one.build(self)
                match op:
                    case "<=":
                        head <= body
                    case "<+":
                        head < +body
                    case "<-":
                        head < -body
                    case _:
                        head < ~body.map(lambda r: (f"n{(r[0] + r[1]) % 2}", r[0], r[1]), columns=["to", "a", "b"])

    return Random


def random_facts(rng: random.Random) -> list[Fact]:
    """What comes from outside: the node, the collection, the row."""
    return [
        (rng.choice(NODES), rng.choice(GIVEN), (rng.randrange(3), rng.randrange(2)))
        for _ in range(rng.randrange(4, 14))
    ]


@settings(max_examples=examples(80))
@given(st.integers(0, 2**32))
def test_what_is_called_confluent_is(seed: int) -> None:
    """Over orders, batches and repetitions of the same input, its rows are the same."""
    rng = random.Random(seed)
    kind = random_program(rng)
    try:
        calm = kind(address="n0").calm()
    except Unstratifiable:
        return
    names = [name for name in (*TABLES, *SCRATCHES, *CHANNELS) if calm[name].confluent]
    if not names:
        return
    facts = random_facts(rng)
    different = differing([outcome(kind, facts, rng.randrange(2**32), NAMES) for _ in range(3)])
    assert not different.intersection(names), f"{different}\n{calm}"


def test_the_random_programs_are_of_all_kinds() -> None:
    """The test above sees confluent outputs that are fed by the network, and others do diverge."""
    fed, diverged = 0, 0
    for seed in range(120):
        rng = random.Random(seed)
        kind = random_program(rng)
        try:
            calm: Calm = kind(address="n0").calm()
        except Unstratifiable:
            continue
        names = (*TABLES, *SCRATCHES)
        fed += any(calm[name].confluent and "A" in calm[name].labels for name in names)
        others = [name for name in names if calm[name].verdict == "diffluent"]
        if others and diverged < 4:
            facts = random_facts(rng)
            diverged += bool(differing([outcome(kind, facts, seed, NAMES) for seed in (1, 2)]).intersection(others))
    assert fed >= 20
    assert diverged >= 4


class FirstCome(Bloom):
    """Planted: the first of two messages wins."""

    bid = channel(["@to", "who"], [])
    bids = scratch(["to", "who"], [])
    winner = table(["who"], [])

    @bloom
    def rules(self) -> None:
        """Whoever comes while there is none."""
        self.bid < ~self.bids
        self.winner < +self.bid.payloads().notin(self.winner, lambda b, w: True)


def test_a_planted_divergence() -> None:
    """Is called diffluent, and is."""
    calm = FirstCome().calm()
    assert calm["winner"].verdict == "diffluent"
    results = set()
    for seed in range(20):
        one, two = FirstCome(address="one"), FirstCome(address="two")
        net = Network(one, two, seed=seed)
        two.bids <= [("one", "ann"), ("one", "bob")]
        net.run()
        results.add(frozenset(one.winner))
    assert len(results) > 1


def test_networks_that_never_rest_are_reported() -> None:
    """The random programs' way to an end is needed."""

    class Always(Bloom):
        c = channel(["@to", "x"], [])
        t = table(["to", "x"], [])

        @bloom
        def rules(self) -> None:
            self.c < ~self.t

    p = Always(address="me")
    p.t <= [("me", 1)]
    with pytest.raises(IllegalRule, match="did not come to rest"):
        Network(p).run(20)


def test_outputs_that_depend_on_the_same_are_reported_once() -> None:
    """The second has a line that names the first."""

    class Two(Bloom):
        s = channel(["@to", "x"], [])
        t = table(["x"], [])
        a = scratch(["x"], [])
        b = scratch(["x"], [])
        c = scratch(["x"], [])

        @bloom
        def rules(self) -> None:
            self.t <= self.s.payloads().notin(self.s.map(lambda s: (s.x + 1,)))
            self.a <= self.t
            self.b <= self.t
            self.c <= self.s.payloads()

    said = str(Two().calm()).splitlines()
    assert [line.strip() for line in said[said.index("outputs") + 1 :] if not line.startswith("    ")] == [
        "a: diffluent [D]. What comes first decides: s arrives asynchronously, and then",
        "b: diffluent [D]. As a",
        "c: confluent [A]. Order, batches and repetition of the input do not change its rows",
    ]


def test_functions_that_reveal_are_points_of_order() -> None:
    """In a function as in a term: what it reads must be complete."""

    class Revealing(Bloom):
        m = table(["k"], ["v"], v=lmax)
        g = scratch(["n"], [])
        h = scratch(["k"], [])

        @bloom
        def rules(self) -> None:
            self.g <= self.m.map(lambda r: (r.v.reveal(),))
            self.h <= self.m.map(lambda r: (r.k,))

    report = Revealing().calm()
    assert [(point.rule.head, point.hazard.why, point.hazard.of) for point in report.points] == [
        ("g", "reveal()", ("m",))
    ]
    assert (report["g"].verdict, report["h"].verdict) == ("ordered", "confluent")
