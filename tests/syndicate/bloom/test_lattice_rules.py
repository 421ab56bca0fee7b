"""Lattices in programs: what may be written, what comes of it, and what is refused, with the place."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syndicate.bloom
from syndicate.bloom import (
    Bloom,
    Network,
    agg,
    bloom,
    bootstrap,
    channel,
    durable,
    import_module,
    interface,
    lattice,
    lbag,
    lbool,
    lclock,
    ldom,
    llww,
    lmap,
    lmax,
    lmin,
    loopback,
    lpair,
    lpset,
    lset,
    scratch,
    table,
)
from syndicate.bloom.tick.runtime import runtime_of
from syndicate.errors import (
    BloomDeclaration,
    IllegalRule,
    KeyConflict,
    LatticeAsKey,
    LatticeMismatch,
    LatticeValue,
    LawBroken,
    RuleFailed,
    SyndicateError,
    Unstratifiable,
)
from syndicate.flow.element import natural
from syndicate.lattice import (
    Bag,
    Bool,
    Clock,
    DomPair,
    LastWriter,
    Lattice,
    Map,
    Max,
    Min,
    Pair,
    PosSet,
    Set,
    assert_laws,
    monotone,
    morph,
)
from tests.strategies import examples

Block = Callable[[Any], Any]


def made(block: Block = lambda self: None, **declared: Any) -> Any:
    """A program of one block."""

    def rules(self: Any) -> None:
        block(self)

    return type("P", (Bloom,), {**declared, "rules_": bloom(rules)})()


def ticked(p: Any, **inputs: Any) -> Any:
    """The same after a tick with something from outside."""
    for name, some in inputs.items():
        getattr(p, name).insert(some)
    p.tick()
    return p


# ------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("declaration", "cls"),
    [
        *((lbool, Bool), (lmax, Max), (lmin, Min), (lset, Set), (lpset, PosSet), (lbag, Bag), (lmap, Map)),
        *((lpair, Pair), (ldom, DomPair), (lclock, Clock), (llww, LastWriter)),
    ],
)
def test_each_lattice_starts_at_its_bottom_and_merges_with_itself(declaration: Any, cls: type[Lattice]) -> None:
    """Bottom first; ``<=`` of a lattice of the same kind; the value is immutable."""
    p = made(lambda self: self.b <= self.a, a=declaration(), b=declaration())
    assert p.a.value == cls.bottom()
    p.tick()
    assert p.b.value == cls.bottom()
    with pytest.raises(AttributeError, match="cannot be changed"):
        p.b.value.content = 3


def test_values_live_across_ticks_and_are_shared() -> None:
    """What was merged stays, and an older value that somebody holds is what it was."""
    p = made(s=lset())
    held = []
    for number in range(100):
        ticked(p, s=[number])
        held.append(p.s.value)
    assert [len(value.reveal()) for value in held] == list(range(1, 101))
    assert held[40] == Set(range(41))
    assert p.s.value is held[-1]


class Longest(Lattice):
    """The longest text, of equal lengths the greatest."""

    wrapper_name = "llongest_in_rules"

    def __init__(self, content: str | None = None) -> None:
        if content is not None and type(content) is not str:
            raise self.illegal(content, "a str")
        super().__init__(content)

    def merge(self, other: Longest) -> Longest:
        return max(self, other, key=lambda each: (len(each.content or ""), each.content or ""))

    @monotone
    def length(self) -> Max:
        """How long it is."""
        return Max(len(self.content or ""))

    @morph
    def doubled(self):  # type: ignore[no-untyped-def]  # that the answer is not known is the point
        """Twice."""
        return Longest(None if self.content is None else self.content * 2)


def test_a_users_lattice() -> None:
    """It is declared by class, by keyword, and as what the module has; its methods are marked and found."""
    declared = [lattice(Longest), lattice("llongest_in_rules"), syndicate.bloom.llongest_in_rules()]
    for one in declared:

        def block(self: Any) -> None:
            self.longest <= self.said.map(lambda s: s.text)
            self.length <= self.longest.doubled().length()

        p = ticked(made(block, longest=one, length=lmax(), said=scratch(["text"], [])), said=[("a",), ("abc",)])
        assert (p.longest.reveal(), p.length.reveal()) == ("abc", 6)
    with pytest.raises(AttributeError, match="lnothing"):
        _ = syndicate.bloom.lnothing
    with pytest.raises(BloomDeclaration, match="did you mean 'lset'"):
        lattice("lsett")


def test_the_law_checker_finds_what_users_planted() -> None:
    """A merge that subtracts, and a morphism that is only monotone, are found before a program has them."""
    assert_laws(Longest, [Longest(), Longest("a"), Longest("b"), Longest("abc"), Longest("de")])

    class Subtracting(Lattice):
        wrapper_name = "lsubtracting_in_rules"

        def merge(self, other: Subtracting) -> Subtracting:
            return Subtracting((self.content or 0) - (other.content or 0))

    class Counted(Set):
        wrapper_name = "lcounted_in_rules"

        @morph
        def count(self) -> Max:
            return Max(len(self.content))

    with pytest.raises(LawBroken):
        assert_laws(Subtracting, [Subtracting(1), Subtracting(2), Subtracting(3)])
    with pytest.raises(LawBroken, match="count"):
        assert_laws(Counted, [Counted([1, 2]), Counted([2, 3]), Counted()])


# ------------------------------------------------------------------------------------------------- rules


def test_merged_now_and_in_the_next_tick() -> None:
    """``<=`` now, ``<+`` then."""

    def block(self: Any) -> None:
        self.soon <= self.given
        self.then < +self.given
        self.rows < +self.row.map(lambda r: r.a)

    p = made(block, given=lset(), soon=lset(), then=lset(), rows=lmax(), row=scratch(["a"], []))
    ticked(p, given=[1], row=[(3,)])
    assert (p.soon.value, p.then.value, p.rows.value) == (Set([1]), Set(), Max())
    assert p.waits()
    ticked(p, given=[2])
    assert (p.soon.value, p.then.value, p.rows.value) == (Set([1, 2]), Set([1]), Max(3))
    p.run()
    assert p.then.value == Set([1, 2])
    assert not p.waits()


def test_rows_folded_into_a_lattice() -> None:
    """A row is one element, of one column that column; functions may give values, mappings, or None for none."""

    def block(self: Any) -> None:
        self.rows <= self.t
        self.firsts <= self.t.map(lambda t: t.k)
        self.some <= self.t.map(lambda t: t.v if t.v > 1 else None)
        self.many <= self.t.flat_map(lambda t: range(t.v))
        self.by_key <= self.t.map(lambda t: {t.k: Max(t.v)})
        self.joined <= (self.t * self.u).pairs(("k", "k"), lambda t, u: t.v + u.v)
        self.singles <= self.u.map(lambda u: (u.v,))
        self.combined <= (self.t * self.u).pairs(("k", "k"))
        self.literal <= 3
        self.listed <= [1, 2]
        self.mapped <= {"x": Set([1])}

    p = made(
        block,
        t=table(["k", "v"], []),
        u=scratch(["k"], ["v"]),
        rows=lset(),
        firsts=lset(),
        some=lset(),
        many=lset(),
        by_key=lmap(),
        joined=lmax(),
        literal=lmax(),
        listed=lset(),
        mapped=lmap(),
        singles=lset(),
        combined=lset(),
    )
    ticked(p, t=[("a", 1), ("a", 3), ("b", 2)], u=[("a", 10)])
    assert p.rows.value == Set([("a", 1), ("a", 3), ("b", 2)])
    assert (p.firsts.value, p.some.value, p.many.value) == (Set(["a", "b"]), Set([3, 2]), Set([0, 1, 2]))
    assert (p.by_key.value, p.joined.value) == (Map({"a": Max(3), "b": Max(2)}), Max(13))
    assert (p.literal.value, p.listed.value, p.mapped.value) == (Max(3), Set([1, 2]), Map({"x": Set([1])}))
    assert p.singles.value == Set([10])
    assert p.combined.value == Set([(("a", 1), ("a", 10)), (("a", 3), ("a", 10))])


def test_lattices_as_rows() -> None:
    """Elements of a set, entries of a map, a condition's rows; more of them as the lattice grows, none goes."""

    def block(self: Any) -> None:
        self.plain <= self.s
        self.moved <= self.s.to_collection(lambda e: (e, e * 2) if e != 3 else None)
        self.further <= self.s.to_collection(columns=["n"]).map(lambda r: (r.n + 1,))
        self.entries <= self.m.to_collection(lambda k, v: (k, v))
        self.counts <= self.b.to_collection()
        self.heard <= self.done.when_true(lambda: [("yes",), ("indeed",)])
        self.done <= self.s.contains(3)
        self.out < ~self.done.when_true(lambda: ["there"])
        self.gone < -self.s.to_collection(lambda e: (e,))
        self.shown <= self.n.reveal()

    p = made(
        block,
        s=lset(),
        m=lmap(),
        b=lbag(),
        done=lbool(),
        n=lmax(),
        plain=scratch(["a"], []),
        moved=scratch(["a", "b"], []),
        further=table(["a"], []),
        entries=scratch(["k"], ["v"]),
        counts=scratch(["e"], ["n"]),
        heard=scratch(["a"], []),
        out=channel(["@to"], []),
        gone=table(["a"], []),
        shown=scratch(["n"], []),
    )
    ticked(p, s=[1, 2], m={"k": Max(1)}, b={"x": 1}, n=4, gone=[(1,), (5,)])
    assert (sorted(p.plain), sorted(p.moved), sorted(p.further)) == ([(1,), (2,)], [(1, 2), (2, 4)], [(2,), (3,)])
    assert (list(p.entries), list(p.counts), list(p.heard), list(p.shown)) == ([("k", Max(1))], [("x", 1)], [], [(4,)])
    ticked(p, s=[3], m={"k": Max(2)}, b={"x": 2}, n=7)
    assert (sorted(p.plain), sorted(p.moved), sorted(p.further)) == (
        *([(1,), (2,), (3,)], [(1, 2), (2, 4)]),
        [(2,), (3,), (4,)],
    )
    assert (list(p.entries), list(p.counts)) == ([("k", Max(2))], [("x", 2)])
    assert (sorted(p.heard), list(p.shown), list(p.gone)) == ([("indeed",), ("yes",)], [(7,)], [(5,)])
    assert p.sent == [("there", "out", ("there",))]


def test_a_lattice_mentioned_in_a_function() -> None:
    """It stands for its value, and rows are made again when that grows."""

    def block(self: Any) -> None:
        self.out <= self.t.map(lambda t: (t.k, self.s.size()))
        self.few <= self.t.filter(lambda t: self.s.contains(t.k))
        self.both <= (self.t * self.s).pairs(lambda t, s: (t.k, s.value))
        self.kept <= self.s.project(lambda e: e if self.other.value.contains(e).content else None)

    p = made(
        block,
        s=lset(),
        other=lset(),
        kept=lset(),
        t=table(["k"], []),
        few=scratch(["k"], []),
        out=scratch(["k"], ["n"]),
        both=table(["k"], ["v"]),
    )
    ticked(p, t=[(1,), (2,)], s=[1])
    assert (sorted(p.out, key=lambda r: r[0]), list(p.few)) == ([(1, Max(1)), (2, Max(1))], [(1,)])
    ticked(p, s=[2])
    assert (sorted(p.out, key=lambda r: r[0]), sorted(p.few)) == ([(1, Max(2)), (2, Max(2))], [(1,), (2,)])
    assert sorted(p.both, key=lambda r: r[0]) == [(1, Set([1, 2])), (2, Set([1, 2]))]
    ticked(p, other=[2, 3])
    assert p.kept.value == Set([2])


def test_a_tick_costs_what_changed() -> None:
    """Functions of morphisms, and of rows, are called for what is new."""
    calls: list[Any] = []

    def noted(made_of: Any, result: Any) -> Any:
        calls.append(made_of)
        return result

    def block(self: Any) -> None:
        self.doubled <= self.s.project(lambda e: noted(e, e * 2))
        self.best <= self.link.map(lambda row: noted(row, (row.a, row.v)))

    p = made(block, s=lset(), doubled=lset(), link=table(["a"], ["v"]), best=table(["a"], ["v"], v=lmax))
    ticked(p, s=range(1000), link=[(n, Max(n)) for n in range(1000)])
    assert len(calls) == 2000
    calls.clear()
    ticked(p, s=[5, 1000], link=[(7, Max(3)), (8, Max(9)), (1001, Max(1))])
    assert sorted(calls, key=str) == sorted([1000, (8, Max(9)), (1001, Max(1))], key=str)


def test_a_modules_lattice() -> None:
    """Imported programs have their own, interfaces between them hold lattice values."""

    class Counting(Bloom):
        given = interface("input", ["who"], [])
        count = interface("output", ["of"], ["n"])
        seen = lset()

        @bloom
        def counted(self) -> None:
            self.seen <= self.given.map(lambda g: g.who)
            self.count <= (self.given * self.seen.size()).pairs(lambda g, n: ("all", n.value))

    class Both(Bloom):
        one, two = import_module(Counting), import_module(Counting)
        total = lmax()

        @bloom
        def summed(self) -> None:
            self.total <= self.one.count.map(lambda c: c.n)
            self.total <= self.two.count.map(lambda c: c.n)

        @bootstrap
        def first(self) -> None:
            self.one.given <= [("ann",), ("bob",)]
            self.two.seen <= ["cid"]

    p = Both()
    p.tick()
    assert (p.one.seen.value, p.two.seen.value, p.total.value) == (Set(["ann", "bob"]), Set(["cid"]), Max(2))


def test_strata_of_what_is_not_monotone() -> None:
    """Only a method that is not monotone makes a stratum, and its reader sees the complete value."""

    def block(self: Any) -> None:
        self.count <= self.s.size()
        self.small <= self.count.lt_eq(2)
        self.at_end <= self.small.when_true(lambda: [("few",)])
        self.s <= self.t.map(lambda t: t.a)
        self.t <= self.s.to_collection(lambda e: (e - 1,) if e else None)

    p = made(block, s=lset(), count=lmax(), small=lbool(), at_end=scratch(["a"], []), t=scratch(["a"], []))
    ticked(p, s=[3])
    assert (p.s.value, p.count.value, p.small.value, list(p.at_end)) == (Set([0, 1, 2, 3]), Max(4), Bool(False), [])
    assert [p.stratum(name) for name in ("s", "t", "count", "small", "at_end")] == [0, 0, 0, 1, 1]
    assert [(edge.head, edge.body, edge.why) for edge in p.plan.points_of_order()] == [("small", "count", "lt_eq()")]


# ------------------------------------------------------------------------------------------------- rows with lattices


def test_lattice_values_in_channels_and_networks() -> None:
    """Rows of equal keys are merged before they are sent, and when they arrive together."""

    class Node(Bloom):
        out = scratch(["to", "key", "v"], [])
        sent_on = channel(["@to", "key"], ["v"])
        known = table(["key"], ["v"])
        best = lmax()
        again = loopback(["key"], ["v"])
        looped = table(["key"], ["v"])

        @bloom
        def rules(self) -> None:
            self.sent_on < ~self.out.map(lambda o: (o.to, o.key, Max(o.v)))
            self.known <= self.sent_on.map(lambda c: (c.key, c.v))
            self.best <= self.known.map(lambda k: k.v)
            self.again < ~self.sent_on.map(lambda c: (c.key, c.v))
            self.looped <= self.again

    a, b = Node(address="a"), Node(address="b")
    net = Network(a, b, seed=3, repeat=0.4)
    a.out <= [("b", "x", 1), ("b", "x", 5), ("b", "y", 2)]
    a.tick()
    assert net.sent == 2
    net.run()
    b.sent_on.insert([("b", "x", Max(7)), ("b", "x", Max(6))])
    b.run()
    assert sorted(b.known, key=str) == sorted(b.looped, key=str) == [("x", Max(7)), ("y", Max(2))]
    assert b.best.value == Max(7)


def test_lattice_values_in_durable_tables(tmp_path: Path) -> None:
    """They are there again in the next run, merged."""

    class Kept(Bloom):
        kept = durable(["k"], ["v"])

    p = Kept(state=tmp_path / "db")
    ticked(p, kept=[("a", Set([1])), ("b", Set())])
    ticked(p, kept=[("a", Set([2])), ("b", Set())])
    p.close()
    p = Kept(state=tmp_path / "db")
    p.tick()
    assert sorted(p.kept) == [("a", Set([1, 2])), ("b", Set())]
    p.kept.delete([("a", Set([1]))])
    p.kept.delete([("b", Set())])
    p.tick()
    p.close()
    p = Kept(state=tmp_path / "db")
    p.tick()
    assert list(p.kept) == [("a", Set([1, 2]))]
    p.close()


def test_replaced_and_deleted_rows() -> None:
    """``<+-`` replaces what had grown, ``<-`` needs the whole row, and what is derived comes back."""

    def block(self: Any) -> None:
        self.t <= self.base.map(lambda b: (b.k, Set([b.v])))
        self.t < +-self.reset.map(lambda r: (r.k, Set()))
        self.t < -self.drop.map(lambda d: (d.k, Set([1, 2])))

    p = made(
        block,
        t=table(["k"], ["v"]),
        base=table(["k", "v"], []),
        reset=scratch(["k"], []),
        drop=scratch(["k"], []),
    )
    ticked(p, t=[("a", Set([1])), ("b", Set([1]))], base=[("b", 9)])
    ticked(p, t=[("a", Set([2]))], reset=[("b",)])
    assert sorted(p.t) == [("a", Set([1, 2])), ("b", Set([1, 9]))]
    ticked(p, drop=[("a",), ("b",)])
    assert sorted(p.t) == [("a", Set([1, 2])), ("b", Set([9]))]
    p.tick()
    assert list(p.t) == [("b", Set([9]))]
    assert p.t["b"] == ("b", Set([9]))
    assert ("b", Set([9])) in p.t
    assert ("b", Set()) not in p.t


def test_groups_and_negation_over_merged_rows() -> None:
    """They see the merged row alone, and count it once."""

    def block(self: Any) -> None:
        self.best <= self.offer.map(lambda o: (o.item, Min(o.price)))
        self.best <= (self.best * self.same).pairs(("item", "a"), lambda b, s: (s.b, b.price))
        self.count <= self.best.group([], agg.count())
        self.sold_out <= self.wanted.notin(self.best, ("item", "item"))
        self.cheap <= self.best.filter(lambda b: b.price.lt(5)).map(lambda b: (b.item,))

    p = made(
        block,
        offer=scratch(["item", "price"], []),
        best=scratch(["item"], ["price"]),
        count=scratch(["n"], []),
        same=table(["a", "b"], []),
        wanted=table(["item"], []),
        sold_out=scratch(["item"], []),
        cheap=scratch(["item"], []),
    )
    ticked(p, offer=[("tea", 7), ("tea", 4)], same=[("tea", "chai"), ("chai", "tea")], wanted=[("tea",), ("jam",)])
    assert sorted(p.best, key=str) == [("chai", Min(4)), ("tea", Min(4))]
    assert (list(p.count), list(p.sold_out), sorted(p.cheap)) == ([(2,)], [("jam",)], [("chai",), ("tea",)])
    p.tick()
    assert (list(p.best), list(p.count), sorted(p.sold_out)) == ([], [], [("jam",), ("tea",)])


def test_a_tick_that_fails_did_not_happen() -> None:
    """Lattices, merged rows and what rules kept of them are as before, and the next tick is right."""

    def block(self: Any) -> None:
        self.s <= self.t.map(lambda t: t.a)
        self.big <= self.s.eqjoin(self.s, {}, lambda a, b: (a, b))
        self.best <= self.t.map(lambda t: (0, Max(t.a)))
        self.keyed <= self.t.map(lambda t: (0, t.a))

    p = made(block, s=lset(), big=lset(), t=scratch(["a"], []), best=table(["k"], ["v"]), keyed=scratch(["k"], ["v"]))
    ticked(p, t=[(1,)])
    with pytest.raises(KeyConflict):
        ticked(p, t=[(2,), (3,)])
    assert (p.s.value, p.big.value, list(p.best)) == (Set([1]), Set([(1, 1)]), [(0, Max(1))])
    p.discard()
    ticked(p, t=[(2,)])
    assert (p.s.value, len(p.big.reveal()), list(p.best)) == (Set([1, 2]), 4, [(0, Max(2))])


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=8), st.randoms())
def test_the_order_of_input_does_not_count(rows: list[tuple[int, int]], rng: Any) -> None:
    """Whatever the batches and repetitions, what is monotone comes out the same."""

    def run(batches: list[list[tuple[int, int]]]) -> Any:
        def block(self: Any) -> None:
            self.s <= self.t.map(lambda t: t.b)
            self.best <= self.t.map(lambda t: (t.a, Max(t.b)))
            self.count <= self.s.size()
            self.done <= self.count.gt_eq(3)
            self.by <= self.best.map(lambda b: {b.a: b.v})

        p = made(
            block,
            t=scratch(["a", "b"], []),
            s=lset(),
            best=table(["a"], ["v"]),
            count=lmax(),
            done=lbool(),
            by=lmap(),
        )
        for batch in batches:
            ticked(p, t=batch)
        return p.s.value, set(p.best), p.count.value, p.done.value, p.by.value

    shuffled = [*rows, *rows]
    rng.shuffle(shuffled)
    assert run([rows]) == run([[row] for row in shuffled] or [[]])


# ------------------------------------------------------------------------------------------------- refusals

SCRATCH = scratch(["a"], [])


@pytest.mark.parametrize(
    ("error", "said", "block", "declared"),
    [
        (IllegalRule, "c is a lattice, .* left of <-: a lattice takes <=.*<\\+", lambda s: s.c < -s.t, {"c": lset()}),
        (IllegalRule, "left of <~.*column of a channel's row", lambda s: s.c < ~s.t, {"c": lset()}),
        (IllegalRule, "left of <\\+-", lambda s: s.c < +-s.t, {"c": lset()}),
        (IllegalRule, "takes <=, <\\+", lambda s: s.c < s.d, {"c": lset(), "d": lset()}),
        (IllegalRule, "c <= takes no sign", lambda s: s.c <= +s.d, {"c": lset(), "d": lset()}),
        (IllegalRule, "lset, and d of lmax", lambda s: s.c <= s.d, {"c": lset(), "d": lmax()}),
        (IllegalRule, "lset, and d.size\\(\\) of lmax", lambda s: s.c <= s.d.size(), {"c": lset(), "d": lset()}),
        (IllegalRule, "did you mean 'size'", lambda s: s.c <= s.d.sizes(), {"c": lmax(), "d": lset()}),
        (IllegalRule, "there is no method 'mop' of any", lambda s: s.c <= s.d.at(1).mop(), {"c": lmax(), "d": lmap()}),
        (IllegalRule, "has no truth in a rule", lambda s: s.c <= (s.d and s.d), {"c": lbool(), "d": lbool()}),
        (IllegalRule, "to compare it with 2", lambda s: s.c <= (s.d.size() == 2), {"c": lbool(), "d": lset()}),
        (IllegalRule, "to compare it with 2", lambda s: s.c <= (s.d != 2), {"c": lbool(), "d": lmax()}),
        (IllegalRule, "define\\(\\) is for a scratch", lambda s: s.c.define(s.d), {"c": lbool(), "d": lbool()}),
        (IllegalRule, "no value while", lambda s: s.c <= s.d.value, {"c": lbool(), "d": lbool()}),
        (IllegalRule, "only a collection or a lattice", lambda s: s.c.size() <= 3, {"c": lset()}),
        (IllegalRule, "makes rules", lambda s: s.c.insert(3), {"c": lset()}),
        (LatticeValue, "c: Max \\(lmax\\) cannot hold True", lambda s: s.c <= True, {"c": lmax()}),
        (Unstratifiable, "reveal\\(\\) of c", lambda s: s.c <= s.c.reveal(), {"c": lset()}),
        (LatticeAsKey, "t: the column a belongs to the key", lambda s: s.t <= s.u.map(lambda u: (u.b,)), {}),
    ],
)
def test_refused_when_a_program_is_made(
    error: type[SyndicateError], said: str, block: Block, declared: dict[str, Any]
) -> None:
    """What cannot be, with the line of the rule."""
    with pytest.raises(error, match=said) as caught:
        made(block, **{"t": SCRATCH, "u": scratch(["a"], ["b"], b=lmax), **declared})
    assert re.search(r"test_lattice_rules.py:\d+", str(caught.value))


def _reveal(s: Any) -> None:
    s.bad <= s.t.map(lambda t: _helped(s))


def _helped(s: Any) -> Any:
    return s.good.size()


@pytest.mark.parametrize(
    ("error", "said", "block", "declared"),
    [
        (LatticeValue, "c: PosSet .* cannot hold -1", lambda s: s.c <= s.t.map(lambda t: -t.a), {"c": lpset()}),
        (LatticeMismatch, "c: cannot merge", lambda s: s.c <= s.t.map(lambda t: Max(t.a)), {"c": lset()}),
        (LatticeValue, "\\(c \\+ 'a'\\): cannot add", lambda s: s.d <= s.c + "a", {"c": lmax(), "d": lmax()}),
        (LatticeValue, "m.at\\(3\\).*say what it would be", lambda s: s.c <= s.m.at(3), {"c": lset(), "m": lmap()}),
        (RuleFailed, "ZeroDivisionError", lambda s: s.d <= s.c.filter(lambda e: 1 // 0), {"c": lset(), "d": lset()}),
        (IllegalRule, "good this way", _reveal, {"bad": lmax(), "good": lset()}),
        (LatticeAsKey, "u: the column k", lambda s: s.u <= s.t.map(lambda t: (Max(t.a), 1)), {}),
        (LatticeAsKey, "t: .* all columns are the key", lambda s: s.t <= s.t.map(lambda t: (Max(t.a),)), {}),
        (KeyConflict, "u: two rows .* column 1", lambda s: s.u <= s.t.map(lambda t: (1, t.a, Max(1))), {}),
        (
            LatticeMismatch,
            "w: column v",
            lambda s: s.w <= s.t.map(lambda t: (1, Max(t.a))),
            {"w": table(["k"], ["v"], v=lmin)},
        ),
        (
            LatticeValue,
            "w: column v",
            lambda s: s.w <= s.t.map(lambda t: (1, t.a > 1)),
            {"w": table(["k"], ["v"], v=lmin)},
        ),
        (
            LatticeMismatch,
            "x: ",
            lambda s: s.x <= s.t.map(lambda t: (1, (Max, Min)[t.a % 2](1))),
            {"x": table(["k"], ["v"])},
        ),
    ],
)
def test_refused_in_a_tick(error: type[SyndicateError], said: str, block: Block, declared: dict[str, Any]) -> None:
    """What a value shows only then, with the line of the rule; and the tick did not happen."""
    p = made(block, **{"t": SCRATCH, "u": table(["k"], ["v", "l"]), **declared})
    p.t <= [(1,), (2,)]
    if "c" in declared:
        p.c <= (3 if declared["c"].lattices["value"] is Max else [1])
    with pytest.raises(error, match=said) as caught:
        p.tick()
    assert re.search(r"test_lattice_rules.py:\d+", str(caught.value))
    assert all(not len(one) for one in (p.t, p.u))


@pytest.mark.parametrize(
    ("error", "said", "declare"),
    [
        (BloomDeclaration, "'a' belongs to the key", lambda: table(["a"], ["b"], a=lmax)),
        (BloomDeclaration, "no column 'x'", lambda: table(["a"], ["b"], x=lmax)),
        (BloomDeclaration, "takes a lattice", lambda: table(["a"], ["b"], b=3)),
        (BloomDeclaration, "is no lattice", lambda: lattice(int)),
    ],
)
def test_refused_declarations(error: type[SyndicateError], said: str, declare: Callable[[], Any]) -> None:
    """Columns that cannot hold lattice values, and what is no lattice."""
    with pytest.raises(error, match=said) as caught:
        declare()
    assert "test_lattice_rules.py" in str(caught.value)


def test_refused_from_outside() -> None:
    """What is given between ticks is checked at once."""
    p = made(c=lbool(), t=table(["k"], ["v"]), d=table(["k"], ["v"], v=lmin))
    with pytest.raises(LatticeValue, match=r"test_lattice_rules.py:\d+: c: Bool .* cannot hold 3"):
        p.c <= 3
    with pytest.raises(LatticeAsKey, match=r"test_lattice_rules.py:\d+: t: "):
        p.t <= [(Max(1), 2)]
    with pytest.raises(LatticeMismatch, match=r"test_lattice_rules.py:\d+: d: column v"):
        p.d <= [(1, Max(2))]
    for call in (p.c.delete, p.c.upsert):
        with pytest.raises(IllegalRule, match="for tables"):
            call(True)
    with pytest.raises(LatticeValue, match="no truth"):
        bool(p.c.value)
    p.d <= [(1, 2), (2, None)]
    p.tick()
    assert sorted(p.d, key=str) == [(1, Min(2)), (2, Min())]


def test_lattices_of_a_program_that_runs_in_another_thread() -> None:
    """What is given from here arrives there, and what is seen here is a value of its own."""
    p = made(lambda self: self.size <= self.s.size(), s=lset(), size=lmax())
    p.run_bg()
    try:
        for number in range(50):
            p.s <= [number]
        p.sync_do(lambda: None)
        assert p.s.value == Set(range(50))
        assert p.size.reveal() == 50
    finally:
        p.stop()
    assert len(p.s.reveal()) == 50


def test_lattice_values_found_within_a_recursion() -> None:
    """A cycle of plain costs, of which a function makes minima, ends, though nobody said that there would be any."""

    def block(self: Any) -> None:
        self.path <= self.link.map(lambda row: (row.a, row.b, Min(row.c)))
        self.path <= (self.link * self.path).pairs(("b", "a"), lambda row, p: (row.a, p.b, p.c + row.c))

    p = made(block, link=table(["a", "b", "c"], []), path=table(["a", "b"], ["c"]))
    p.tick()
    ticked(p, link=[(1, 2, 5), (2, 1, 1), (2, 2, 1)])
    assert sorted(p.path, key=str) == [(1, 1, Min(6)), (1, 2, Min(5)), (2, 1, Min(1)), (2, 2, Min(1))]


def test_what_fails_in_a_recursion_is_reported_with_its_rule() -> None:
    """Of plain rows too: the place is that of the function, not of a node of the circuit."""

    def block(self: Any) -> None:
        self.t <= self.t.map(lambda row: (row.a - 1 if 1 // row.a else 0,))

    p = made(block, t=table(["a"], []))
    p.t <= [(3,)]
    with pytest.raises(RuleFailed, match=r"^\S*test_lattice_rules.py:\d+: .* ZeroDivisionError"):
        p.tick()


def test_what_changed_in_a_tick() -> None:
    """Merged rows and values are among the changes that a tick tells: the old one goes, the new one comes."""

    def block(self: Any) -> None:
        self.best <= self.t.map(lambda row: (row.k, Max(row.v)))
        self.s <= self.t.map(lambda row: row.v)

    p = made(block, t=scratch(["k", "v"], []), best=table(["k"], ["v"]), s=lset())

    def changes() -> dict[str, dict[Any, int]]:
        result = runtime_of(p).engine.changes
        return {
            name: {natural(row): weight for row, weight in result[name].items()}
            for name in ("best", "s")
            if name in result
        }

    ticked(p, t=[(1, 3)])
    assert changes() == {"best": {(1, Max(3)): 1}, "s": {(Set(),): -1, (Set([3]),): 1}}
    ticked(p, t=[(1, 2), (2, 2)])
    assert changes() == {"best": {(2, Max(2)): 1}, "s": {(Set([3]),): -1, (Set([2, 3]),): 1}}
    ticked(p, t=[(1, 9)])
    assert changes()["best"] == {(1, Max(3)): -1, (1, Max(9)): 1}
    p.tick()
    assert changes() == {}
