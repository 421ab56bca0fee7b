"""Worked cases with lattices, tick by tick, and the quorum vote of Conway et al. 2012."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, channel, lbag, lbool, lmax, lmin, lset, scratch, table
from syndicate.lattice import Bag, Max, Min, Set


def test_case_17_threshold() -> None:
    """A threshold of a maximum holds from the tick in which it is passed."""

    class Threshold(Bloom):
        in_t = scratch(["v"])
        m = lmax()
        done = lbool()

        @bloom
        def rules(self) -> None:
            self.m <= self.in_t.map(lambda t: t.v)
            self.done <= self.m.gt(12)

    p = Threshold()
    p.in_t <= [(5,), (10,)]
    p.tick()
    assert p.done.reveal() is False
    assert p.m.reveal() == 10
    p.in_t <= [(13,)]
    p.tick()
    assert p.done.reveal() is True
    p.tick()
    assert p.done.reveal() is True
    assert p.m.reveal() == 13
    assert {p.stratum(name) for name in ("m", "done", "in_t")} == {0}


CYCLIC = [
    *(("a", "b", 20), ("a", "b", 21), ("b", "a", 5), ("b", "a", 8), ("b", "c", 10), ("b", "c", 12)),
    *(("a", "c", 35), ("d", "a", 15), ("d", "b", 5)),
]
ACYCLIC = [
    *(("a", "b", 11), ("a", "b", 10), ("a", "c", 15), ("b", "c", 20), ("b", "c", 21), ("b", "d", 30)),
    *(("c", "d", 5), ("d", "e", 10)),
]
HOPS = {
    "direct": {"ab": 20, "ac": 35, "ba": 5, "bc": 10, "da": 15, "db": 5},
    "b": {"aa": 25, "ab": 45, "ac": 30},
    "a": {"ba": 30, "bb": 25, "bc": 35},
}
FROM_D = {"a": {"da": 40, "db": 35, "dc": 45}, "b": {"da": 10, "db": 30, "dc": 15}}


class Shortest(Bloom):
    """Nothing names a lattice: the rows do."""

    link = table(["from", "to"], ["c"])
    path = table(["from", "to", "hop"], ["c"])
    min_cost = table(["from", "to"], ["c"])

    @bloom
    def rules(self) -> None:
        self.path <= self.link.map(lambda link: (link.from_, link.to, "direct", link.c))
        self.path <= (self.link * self.path).pairs(
            ("to", "from"), lambda link, path: (link.from_, path.to, link.to, link.c + path.c)
        )
        self.min_cost <= self.path.map(lambda path: (path.from_, path.to, path.c))


class Declared(Bloom):
    """The same with the lattice in the declarations, so that costs may be plain numbers."""

    link = table(["from", "to", "c"], [])
    path = table(["from", "to", "hop"], ["c"], c=lmin)
    min_cost = table(["from", "to"], ["c"], c=lmin)

    @bloom
    def rules(self) -> None:
        self.path <= self.link.map(lambda link: (link.from_, link.to, "direct", link.c))
        self.path <= (self.link * self.path).pairs(
            ("to", "from"), lambda link, path: (link.from_, path.to, link.to, path.c + link.c)
        )
        self.min_cost <= self.path.map(lambda path: (path.from_, path.to, path.c))


def costs(p: Any) -> dict[str, int]:
    """Of each pair, in two letters, the least."""
    return {row[0] + row[1]: row[2].reveal() for row in p.min_cost}


@pytest.mark.parametrize("cls", [Shortest, Declared])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_case_18_shortest_paths_with_a_lattice_column(cls: type[Bloom], *, one_by_one: bool) -> None:
    """Costs embedded in rows come to their minima, also around cycles, whatever the order of links."""
    links: list[Any] = [(a, b, Min(c)) for a, b, c in CYCLIC] if cls is Shortest else list(CYCLIC)
    p: Any = cls()
    for some in [[link] for link in links] if one_by_one else [links]:
        p.link <= some
        p.tick()
    assert costs(p) == {"aa": 25, "ab": 20, "ac": 30, "ba": 5, "bb": 25, "bc": 10, "da": 10, "db": 5, "dc": 15}
    results = {(row[0] + row[1], row[2]): row[3].reveal() for row in p.path}
    assert len(results) == len(p.path) == 18
    for hop, others in HOPS.items():
        wanted = {**others, **FROM_D.get(hop, {})}
        assert {pair: cost for (pair, by), cost in results.items() if by == hop} == wanted
    assert {p.stratum(name) for name in ("link", "path", "min_cost")} == {0}


def test_case_18_acyclic() -> None:
    """The other input of the case."""
    p = Shortest()
    p.link <= [(a, b, Min(c)) for a, b, c in ACYCLIC]
    p.tick()
    assert costs(p) == {
        **dict.fromkeys(["ab", "de"], 10),
        **dict.fromkeys(["ad", "bc"], 20),
        **dict.fromkeys(["ac", "ce"], 15),
        "ae": 30,
        "bd": 25,
        "be": 35,
        "cd": 5,
    }


@pytest.mark.parametrize("semi_naive", [True, False])
def test_case_19_composed_set_methods(*, semi_naive: bool) -> None:
    """Methods of methods, in any nesting."""

    class Composed(Bloom):
        s1, s2, s3, s4, s5, s6, s7 = lset(), lset(), lset(), lset(), lset(), lset(), lset()
        m1 = lmax()
        done = lbool()

        @bloom
        def rules(self) -> None:
            self.s1 <= self.s2.intersect(self.s3.intersect(self.s4))
            self.s5 <= self.s2.intersect(self.s3.intersect(self.s4))
            self.s6 <= self.s4.intersect(self.s2.intersect(self.s3))
            self.s7 <= self.s2.intersect(self.s3.merge(self.s4))
            size = self.s7.size().merge(self.s3.size() + 1)
            self.m1 <= size + 7
            self.done <= (size + 9).gt_eq(15)

    p = Composed(semi_naive=semi_naive)
    changes: list[tuple[dict[str, list[int]], set[int], set[int], int, bool]] = [
        ({"s4": [4, 5, 6, 7]}, set(), set(), 8, False),
        ({"s2": [4], "s3": [10, 11]}, set(), {4}, 10, False),
        ({"s3": [5, 6], "s4": [10]}, set(), {4}, 12, False),
        ({"s3": [4]}, {4}, {4}, 13, True),
    ]
    for inputs, s1, s7, m1, done in changes:
        for name, elements in inputs.items():
            getattr(p, name).insert(elements)
        p.tick()
        assert p.s1.value == p.s5.value == p.s6.value == Set(s1)
        assert (p.s7.value, p.m1.value, p.done.reveal()) == (Set(s7), Max(m1), done)
    assert {p.stratum(one) for one in p.collections()} == {0}


@pytest.mark.parametrize("semi_naive", [True, False])
def test_case_20_bags(*, semi_naive: bool) -> None:
    """Union, intersection and sum of bags."""

    class Bags(Bloom):
        b1, b2, union, inter, sum = lbag(), lbag(), lbag(), lbag(), lbag()
        size = lmax()
        has, done = lbool(), lbool()

        @bloom
        def rules(self) -> None:
            self.union <= self.b1
            self.union <= self.b2
            self.inter <= self.b1.intersect(self.b2)
            self.inter <= self.b2.intersect(self.b1)
            self.sum <= self.b1 + self.b2
            self.sum <= self.b2 + self.b1
            self.size <= self.sum.size()
            self.has <= self.sum.contains("foo")
            self.done <= self.inter.multiplicity("foo").gt(2)

    p = Bags(semi_naive=semi_naive)
    steps: list[tuple[list[Any], list[Any], dict[str, int], dict[str, int], dict[str, int], int, bool, bool]] = [
        ([{"abc": 2, "def": 1}, {"abc": 1}], [], {"abc": 2, "def": 1}, {}, {"abc": 2, "def": 1}, 3, False, False),
        (
            [],
            [{"foo": 1, "def": 1}],
            {"abc": 2, "def": 1, "foo": 1},
            {"def": 1},
            {"abc": 2, "def": 2, "foo": 1},
            *(5, True, False),
        ),
        (
            [{"foo": 2}, {"abc": 2}],
            [],
            {"abc": 2, "def": 1, "foo": 2},
            {"def": 1, "foo": 1},
            {"abc": 2, "def": 2, "foo": 3},
            *(7, True, False),
        ),
        (
            [{"foo": 3}],
            [{"foo": 4}],
            {"abc": 2, "def": 1, "foo": 4},
            {"def": 1, "foo": 3},
            {"abc": 2, "def": 2, "foo": 7},
            *(11, True, True),
        ),
    ]
    for first, second, union, inter, total, size, has, done in steps:
        for inputs in first:
            p.b1 <= inputs
        for inputs in second:
            p.b2 <= inputs
        p.tick()
        assert (p.union.value, p.inter.value, p.sum.value) == (Bag(union), Bag(inter), Bag(total))
        assert (p.size.reveal(), p.has.reveal(), p.done.reveal()) == (size, has, done)
    assert {p.stratum(one) for one in p.collections()} == {0}


def test_the_seeds_quorum() -> None:
    """The program printed in the paper: a result is sent once enough voters are known, each counted once."""

    class QuorumVote(Bloom):
        vote_chn = channel(["@addr", "voter_id"], [])
        result_chn = channel(["@addr"], [])
        votes = lset()
        cnt = lmax()
        quorum_done = lbool()

        @bloom
        def rules(self) -> None:
            self.votes <= self.vote_chn.map(lambda v: v.voter_id)
            self.cnt <= self.votes.size()
            self.quorum_done <= self.cnt.gt_eq(3)
            self.result_chn < ~self.quorum_done.when_true(lambda: ["example.org"])

    p = QuorumVote(address="here")
    for voter in ("ann", "bob", "ann"):
        p.deliver("vote_chn", [("here", voter)])
        p.tick()
    assert not p.sent
    p.deliver("vote_chn", [("here", "cid")])
    p.tick()
    assert p.sent == [("example.org", "result_chn", ("example.org",))]
    assert p.plan.points_of_order() == []
