"""Programs and claims of the papers on Bloom and its lattices that the other tests do not run as they are printed."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import itertools
from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, agg, bloom, channel, lbool, lmax, lset, scratch, table
from syndicate.errors import BloomDeclaration, RuleFailed
from syndicate.lattice import Bag, Bool, Lattice, Map, Max, Min, PosSet, Set

QUORUM_SIZE = 5


class QuorumVoteL(Bloom):
    """The figure of "Logic and Lattices for Distributed Programming": waits for a quorum of votes."""

    vote_chn = channel(["@addr", "voter_id"], [])
    result_chn = channel(["@addr"], [])
    votes = lset()
    cnt = lmax()
    quorum_done = lbool()

    @bloom
    def rules(self) -> None:
        """As printed."""
        self.votes <= self.vote_chn.map(lambda v: v.voter_id)
        self.cnt <= self.votes.size()
        self.quorum_done <= self.cnt.gt_eq(QUORUM_SIZE)
        self.result_chn < ~self.quorum_done.when_true(lambda: ["result"])


class Voter(Bloom):
    """Sends its vote, and hears of the result."""

    vote_chn = channel(["@addr", "voter_id"], [])
    result_chn = channel(["@addr"], [])
    mine = scratch(["voter_id"], [])
    heard = table(["addr"], [])

    @bloom
    def rules(self) -> None:
        """Vote once."""
        self.vote_chn < ~self.mine.map(lambda v: ("server", v.voter_id))
        self.heard <= self.result_chn


@pytest.mark.parametrize("seed", range(8))
def test_a_quorum_is_there_with_the_fifth_voter(seed: int) -> None:
    """On a network that delays, reorders and duplicates: five voters in, one result out; four, however often, none."""
    for voters, done in ((4, False), (5, True), (6, True)):
        server, result = QuorumVoteL(address="server"), Voter(address="result")
        electorate = [Voter(address=f"voter{number}") for number in range(voters)]
        net = Network(server, result, *electorate, seed=seed, delay=4, repeat=0.5)
        for voter in electorate:
            voter.mine <= [(voter.address,)]
        net.run()
        assert (server.cnt.value, server.quorum_done.value) == (Max(voters), Bool(done))
        assert [row.addr for row in result.heard] == ["result"] * done


def test_lattices_as_attributes_keep_the_key() -> None:
    """`t1 <= t2 {|t| [t.x, lat_foo]}` while `lat_foo` grows within the tick: one row for a key, with the last value."""

    class Embedding(Bloom):
        t1 = table(["x"], ["foo"])
        t2 = table(["x"], [])
        lat_foo = lmax()
        given = scratch(["n"], [])

        @bloom
        def rules(self) -> None:
            self.t1 <= self.t2.map(lambda t: (t.x, self.lat_foo))
            self.lat_foo <= self.given.map(lambda g: g.n)
            self.given <= self.given.filter(lambda g: g.n < 9).map(lambda g: (g.n + 1,))

    p = Embedding()
    assert p.plan.points_of_order() == []
    assert len(set(map(p.stratum, ("t1", "lat_foo", "given")))) == 1  # no stratum between the growing and the embedding
    p.t2 <= [("a",), ("b",)]
    p.given <= [(3,)]
    p.tick()
    assert {row.x: row.foo.reveal() for row in p.t1} == {"a": 9, "b": 9}
    p.given <= [(20,)]
    p.tick()
    assert {row.x: row.foo.reveal() for row in p.t1} == {"a": 20, "b": 20}


def test_the_order_of_statements_is_immaterial() -> None:
    """Every order of the rules of a block gives the same, a recursion and a negation among them."""
    rules = {
        "link": lambda s: s.path <= s.link,
        "longer": lambda s: s.path <= (s.link * s.path).pairs(s.link.b == s.path.a, lambda x, y: (x.a, y.b)),
        "ends": lambda s: s.ends <= s.path.notin(s.link, s.path.b == s.link.a),
        "later": lambda s: s.seen < +s.ends,
    }

    def outcome(order: tuple[str, ...]) -> list[Any]:
        class Ordered(Bloom):
            link = table(["a", "b"], [])
            path = scratch(["a", "b"], [])
            ends = scratch(["a", "b"], [])
            seen = table(["a", "b"], [])

            @bloom
            def block(self) -> None:
                for name in order:
                    rules[name](self)

        p = Ordered()
        p.link <= [(1, 2), (2, 3), (4, 2)]
        p.tick(2)
        return [sorted(one) for one in (p.path, p.ends, p.seen)]

    outcomes = [outcome(order) for order in itertools.permutations(rules)]
    assert outcomes[0] == [[(1, 2), (1, 3), (2, 3), (4, 2), (4, 3)], [(1, 3), (2, 3), (4, 3)], [(1, 3), (2, 3), (4, 3)]]
    assert all(one == outcomes[0] for one in outcomes)


def test_persistence_is_of_the_kind() -> None:
    """A scratch is emptied before each tick, a table is not; ``<-`` and ``<+`` act between ticks; nothing is twice."""

    class Kinds(Bloom):
        seen = scratch(["x"], [])
        kept = table(["x"], [])
        gone = scratch(["x"], [])
        after = scratch(["x"], [])

        @bloom
        def rules(self) -> None:
            self.kept <= self.seen
            self.kept < -self.gone
            self.after < +self.seen

    p = Kinds()
    p.seen <= [(1,), (1,), (2,)]
    states = []
    for gone in ([], [(1,)], [], []):
        p.gone <= gone
        p.tick()
        states.append([sorted(row.x for row in one) for one in (p.seen, p.kept, p.after)])
    assert states == [[[1, 2], [1, 2], []], [[], [1, 2], [1, 2]], [[], [2], []], [[], [2], []]]


def test_counting_requests() -> None:
    """The `group` that the paper describes: the number of request ids for each session, item and action."""

    class Cart(Bloom):
        cart_action = table(["session", "reqid"], ["item", "action"])
        action_cnt = scratch(["session", "item", "action"], ["cnt"])

        @bloom
        def rules(self) -> None:
            self.action_cnt <= self.cart_action.group(["session", "item", "action"], agg.count("reqid"))

    p = Cart()
    p.cart_action <= [(1, 1, "beer", "add"), (1, 2, "beer", "add"), (1, 3, "beer", "del"), (2, 1, "beer", "add")]
    p.tick()
    assert sorted(p.action_cnt) == [(1, "beer", "add", 2), (1, "beer", "del", 1), (2, "beer", "add", 1)]


@pytest.mark.parametrize("name", ["now", "halt", "localtick"])
def test_the_collections_of_every_program_are_its_own(name: str) -> None:
    """The clock that the paper speaks of is a collection; one of a user's with its name is refused, and not filled."""
    program = type("Mine", (Bloom,), {name: scratch(["x"], [])})
    with pytest.raises(BloomDeclaration, match=f"{name} is a collection of every program"):
        program()


@pytest.mark.parametrize("cls", [Bool, Max, Min, Set, PosSet, Bag, Map])
def test_of_nothing_a_lattice_is_its_bottom(cls: type[Lattice]) -> None:
    """`initialize(nil)` returns the least element."""
    assert cls(None) == cls() == cls.bottom()
    assert cls(None).is_bottom


def test_what_grows_for_ever_is_reported() -> None:
    """A fixpoint is certain for what is bounded; a rule without one is reported with its place, and the tick is not."""

    class Counter(Bloom):
        count = lmax()
        best = table(["k"], ["v"])
        start = scratch(["k", "v"], [])

        @bloom
        def rules(self) -> None:
            self.count <= self.count + 1

    class Rows(Counter):
        @bloom
        def rules(self) -> None:
            self.best <= self.start.map(lambda s: (s.k, Max(s.v)))
            self.best <= self.best.map(lambda b: (b.k, b.v + 1))

    class Bounded(Counter):
        @bloom
        def rules(self) -> None:
            self.count <= (self.count + 1).min_of(700)

    one = Counter()
    one.count <= 1
    with pytest.raises(RuleFailed, match=r"test_paper.py:\d+: count did not come to rest .* min_of"):
        one.tick()
    rows = Rows()
    rows.start <= [("a", 1)]
    with pytest.raises(RuleFailed, match=r"test_paper.py:\d+: best did not come to rest"):
        rows.tick()
    assert list(rows.best) == []
    bounded = Bounded()
    bounded.count <= 1
    bounded.tick()
    assert bounded.count.value == Max(700)
