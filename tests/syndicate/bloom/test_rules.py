"""Rules: what Python makes of the operators, what is refused and how, and what is reported of functions that fail."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from syndicate.bloom import (
    Bloom,
    agg,
    bloom,
    channel,
    const,
    file_reader,
    interface,
    join,
    loopback,
    periodic,
    scratch,
    stdio,
    table,
    temp,
    values,
)
from syndicate.errors import (
    BloomDeclaration,
    IllegalRule,
    KeyConflict,
    RowMisfit,
    RuleFailed,
    UnknownColumn,
    Unstratifiable,
)


class Base(Bloom):
    """Some collections."""

    t = table(["a", "b"], [])
    u = table(["a", "b"], [])
    s = scratch(["a", "b"], [])
    keyed = table(["a"], ["b"])
    chan = channel(["@a", "b"], [])
    loop = loopback(["a", "b"], [])
    tick_ = periodic(1)
    inp = interface("input", ["a", "b"], [])
    out = interface("output", ["a", "b"], [])
    fixed = const(["a", "b"], [], rows=[(1, 2)])


def program(rules: Callable[[Any], None]) -> Any:
    """A program with one block."""

    class Made(Base):
        @bloom
        def block(self) -> None:
            rules(self)

    return Made()


@pytest.mark.parametrize(
    ("rule", "ops"),
    [
        (lambda p: p.t <= p.s * p.u, "<="),
        (lambda p: p.keyed < +p.s * p.u, "<+"),
        (lambda p: p.t < -p.s * p.u, "<-"),
        (lambda p: p.chan < ~p.s * p.u, "<~"),
        (lambda p: p.keyed < +-p.s * p.u, "<+-"),
        (lambda p: p.t < +(p.s * p.u).pairs("a", lambda x, y: (x.a, y.b)), "<+"),
        (lambda p: p.t < -p.s.map(lambda r: r), "<-"),
        (lambda p: p.chan < ~join([p.s, p.u], [p.s.a, p.u.a]).map(lambda x, y: x), "<~"),
        (lambda p: p.loop < ~values((1, 2)), "<~"),
        (lambda p: p.s.define(p.t), "="),
    ],
)
def test_operators(rule: Any, ops: str) -> None:
    """Each operator is recorded as what was written, also before a product, which binds weaker than a sign."""
    p = program(rule)
    assert [one.op for one in p.statements] == [ops]
    assert p.statements[0].site.startswith(__file__)


def test_sign_before_product_means_the_product() -> None:
    """`t <+ a * b` inserts the pairs in the next tick."""
    p = program(lambda p: p.keyed < +p.s * p.u)
    p.s <= [(1, 2)]
    p.u <= [(3, 4)]
    p.tick()
    assert len(p.keyed) == 0
    p.tick()
    assert list(p.keyed) == [((1, 2), (3, 4))]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda p: p.chan <= p.s, "chan is a channel, which cannot stand on the left of <=: a channel takes <~"),
        (lambda p: p.chan < +p.s, "a channel takes <~"),
        (lambda p: p.t < ~p.s, r"t is a table, .* left of <~: a table takes <=: in this tick; <\+"),
        (lambda p: p.s < -p.t, "s is a scratch, which cannot stand on the left of <-"),
        (lambda p: p.s < +-p.t, r"cannot stand on the left of <\+-"),
        (lambda p: p.tick_ <= p.s, "no rule may write a periodic"),
        (lambda p: p.fixed <= p.s, "no rule may write a const"),
        (lambda p: p.t.define(p.s), "t is a table, which cannot stand on the left of ="),
        (lambda p: p.t < p.s, "t < is no operator of rules"),
        (lambda p: p.t <= +p.s, "takes no sign"),
        (lambda p: p.t < p.s * +p.u, "stands before the first factor"),
        (lambda p: p.t < ~-p.u, "there is no operator <~-"),
        (lambda p: p.t <= p.s <= p.u, "a rule has no truth"),
        (lambda p: p.t <= (p.s and p.u), "has no truth while a program is made"),
        (lambda p: p.t <= (p.s.a == p.u.a and p.u), "has no truth here"),
        (lambda p: p.t >= p.s, "only a collection can stand on the left"),
        (lambda p: p.s.map(lambda r: r) <= p.t, "only a collection can stand on the left"),
        (lambda p: p.t <= p.s.map(lambda r: (r.a, r.bb)), "s has no column 'bb'"),
        (lambda p: p.t <= p.s.map(lambda r: (r.a, r.b, r.a)), "have 3 columns"),
        (lambda p: p.t <= p.s.map(lambda x, y: x), r"takes \(x, y\), but here it is called with a row of s"),
        (lambda p: p.t <= p.s.map(7), "7 is no function"),
        (lambda p: p.s.bb, "s has no column or method 'bb'"),
        (lambda p: p.t <= (p.s * p.u).lefts(p.t.a == p.u.a), "t.a belongs to nothing that is read here"),
        (lambda p: p.t <= (p.s * p.s).lefts(p.s.a == p.s.b), "s.a may mean any of 2 here"),
        (lambda p: p.t <= (p.s * p.u).lefts(p.s.a == p.s.b), "is about s alone"),
        (lambda p: p.t <= (p.s * p.u).lefts(("a", "zz")), "no column 'zz'"),
        (lambda p: p.t <= (p.s * p.u).lefts((p.s.a, "b")), "name both columns, or qualify both"),
        (lambda p: p.t <= (p.s * p.u).lefts(7), "7 is no predicate"),
        (lambda p: p.t <= (p.s * p.u * p.t).pairs(("a", "b"), lambda x, y, z: x), "'b' is ambiguous"),
        (lambda p: p.t <= (p.s * p.u).group(["a"], agg.count()), "'group'|ambiguous"),
        (lambda p: p.t <= p.s.group(["a"], max), "is no aggregate"),
        (lambda p: p.t <= p.s.argagg(agg.sum, ["a"], "b"), "needs an aggregate that chooses"),
        (lambda p: p.t <= p.s.notin(p.s.map(lambda r: (r.a,))), "differ in width"),
        (lambda p: p.t <= 7, "7 holds no rows"),
        (lambda p: p.t <= values(7), "7 is no row"),
        (lambda p: p.t <= list(p.s), "has no rows while a program is made"),
        (lambda p: p.t.insert([(1, 2)]), "a block makes rules"),
        (lambda p: p.t <= (p.s * p.u * p.t), "do not fit t"),
        (lambda p: p.t <= p.s.map(lambda r: {1: 2}[r.a]).group(["c0"], agg.count()), r"say map|Say map"),
    ],
)
def test_refused_rules(rule: Any, message: str) -> None:
    """A rule that cannot be is refused when the program is made, with its file and line and the remedy."""
    with pytest.raises((IllegalRule, RowMisfit, AttributeError), match=message) as caught:
        program(rule)
    if not isinstance(caught.value, AttributeError) or isinstance(caught.value, UnknownColumn):
        assert __file__ in str(caught.value) or "has no truth here" in str(caught.value)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: table("a"), "columns are lists"),
        (lambda: table(["a", "a"]), "'a' is there twice"),
        (lambda: table(["@a"]), "only a channel's column"),
        (lambda: channel(["a"]), "this has none"),
        (lambda: channel(["@a", "@b"]), "this has 2"),
        (lambda: table(["1x"]), "is an identifier"),
        (lambda: periodic(0), "above 0"),
        (lambda: interface("both", ["a"]), "'input' or 'output'"),
    ],
)
def test_refused_declarations(declare: Any, message: str) -> None:
    """A declaration that cannot be is refused at once."""
    with pytest.raises(BloomDeclaration, match=message):
        declare()


def test_define_is_alone() -> None:
    """A scratch that is defined has no other rule."""

    def rules(p: Any) -> None:
        p.s.define(p.t)
        p.s <= p.u

    with pytest.raises(BloomDeclaration, match=r"define\(\) gives all rows of s"):
        program(rules)


def test_unstratifiable() -> None:
    """A cycle through a negation is refused, with the rules that it consists of."""

    def rules(p: Any) -> None:
        p.t <= p.s.notin(p.u)
        p.u <= p.t

    with pytest.raises(Unstratifiable, match=r"t depends on itself.*test_rules.py:\d+; .*test_rules.py:\d+"):
        program(rules)

    def later(p: Any) -> None:
        p.t < +p.s.notin(p.u)
        p.u <= p.t

    assert program(later).stratum("u") == 0


def test_failing_function() -> None:
    """A function that raises undoes the tick, and is reported with its place and row; the next tick goes on."""
    p = program(lambda p: p.t <= p.s.map(lambda r: (r.a, 10 // r.b)))
    p.tick()
    p.s <= [(1, 5), (2, 0)]
    with pytest.raises(RuleFailed, match=r"test_rules.py:\d+: .*ZeroDivisionError.*\(a=2, b=0\)") as caught:
        p.tick()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert (list(p.t), list(p.s), p.budtime) == ([], [], 1)
    p.discard()
    p.s <= [(1, 5)]
    p.tick()
    assert list(p.t) == [(1, 2)]


def _mapping(function: Any, p: Any) -> None:
    p.t <= p.s.map(function)


def test_misfit_rows() -> None:
    """A function whose rows are too wide, or none at all, is reported with its place."""
    for function, message in ((lambda r: (r.a, r.b, r.a + r.b), "has 3 columns"), (lambda r: r.a + 1, "is no row")):
        p = program(partial(_mapping, function))
        p.s <= [(1, 2)]
        with pytest.raises(RowMisfit, match=message):
            p.tick()
    with pytest.raises(RowMisfit, match="is no row"):
        p.t.insert([7])
    with pytest.raises(RowMisfit, match="has 3 columns"):
        p.t <= [(1, 2, 3)]


def test_looking_into_a_collection_from_a_rule() -> None:
    """A function in a rule cannot read another collection: it would not be asked again."""
    p = program(lambda p: p.t <= p.s.filter(lambda r: len(p.u) > 0))
    p.s <= [(1, 2)]
    with pytest.raises(IllegalRule, match="cannot look into u"):
        p.tick()


def test_key_conflict_in_a_derivation() -> None:
    """Two derived rows of one key are refused; the tick did not happen, and a later one finds things as they were."""
    p = program(lambda p: p.keyed <= p.s)
    p.s <= [(1, 2)]
    p.tick()
    p.s <= [(1, 3), (5, 6)]
    with pytest.raises(KeyConflict, match="keyed: two rows have the key a = 1"):
        p.tick()
    assert sorted(p.keyed) == [(1, 2)]
    p.discard()
    p.s <= [(5, 7)]
    p.tick()
    assert sorted(p.keyed) == [(1, 2), (5, 7)]


def test_values_are_distinguished() -> None:
    """1, 1.0 and True are three rows."""
    p = program(lambda p: p.t <= p.s)
    p.s <= [(1, 0), (True, 0), (1.0, 0)]
    p.tick(3)
    assert len(p.t) == 3
    p.t.delete([(True, 0)])
    p.tick()
    assert sorted(str(row.a) for row in p.t) == ["1", "1.0"]


def test_short_rows_and_dropped_rows() -> None:
    """A short row is filled with None, None is no row, a mapping gives its pairs."""
    p = program(lambda p: p.t <= p.s.map(lambda r: (r.a,) if r.b else None))
    p.s <= {1: True, 2: False}
    p.tick()
    assert list(p.t) == [(1, None)]


def test_files_constants_and_terminals(tmp_path: Any) -> None:
    """A file's lines are read in each tick, constants stay, a terminal is written to."""
    path = tmp_path / "lines"
    path.write_text("one\ntwo\n")
    written: list[str] = []

    class Files(Bloom):
        lines = file_reader(path)
        fixed = const(["n"], [], rows=[(2,)])
        term = stdio()
        kept = temp()

        @bloom
        def rules(self) -> None:
            self.kept <= (self.lines * self.fixed).pairs(lambda x, c: (x.lineno * c.n, x.text))
            self.term < ~self.kept.map(lambda r: (r.c1,))

    p = Files(write=written.append)
    p.tick()
    assert sorted(p.kept) == [(0, "one"), (2, "two")]
    path.write_text("three\n")
    p.tick()
    assert sorted(p.kept) == [(0, "three")]
    assert sorted(written) == ["one", "three", "two"]
    path.unlink()
    with pytest.raises(RuleFailed, match="lines cannot read"):
        p.tick()
    assert p.budtime == 2


def test_loopback_and_halt() -> None:
    """A loopback is there in the next tick, and a row in `halt` ends a run."""

    def rules(p: Any) -> None:
        p.loop < ~p.loop.map(lambda r: (r.a + 1, r.b))
        p.halt <= p.loop.filter(lambda r: r.a == 5).map(lambda r: (r.b,))

    p = program(rules)
    p.loop.insert([(0, "x")])
    assert p.run() == 6
    assert p.halted
    endless = program(lambda p: p.loop < ~p.loop.map(lambda r: (r.a, r.b)))
    endless.loop.insert([(0, 0)])
    with pytest.raises(IllegalRule, match=r"did not come to rest within 20 ticks: 'loop'"):
        endless.run(20)


def test_interfaces_that_nobody_serves() -> None:
    """An input that nobody reads and an output that nobody writes are listed."""
    assert program(lambda p: p.t <= p.s).underspecified() == [("inp", "no rule reads it"), ("out", "no rule writes it")]
    assert program(lambda p: p.out <= p.inp).underspecified() == []


def test_groups_count_rows_and_not_matches() -> None:
    """A row that matches several counts once in a group, whichever way it was matched."""

    def rules(p: Any) -> None:
        for matched in (
            p.s.exists(p.u, lambda x, y: x.a < y.b),
            p.s.exists(p.u, (p.s.a, p.u.a)),
            (p.s * p.u).lefts(p.s.a == p.u.a),
            (p.u * p.s).rights(p.s.a == p.u.a),
        ):
            p.t <= matched.group([], agg.count(), agg.sum(p.s.b))
        p.keyed <= (p.s * p.u).pairs("a").group([p.s.a], agg.count())

    p = program(rules)
    p.s <= [(1, 5), (1, 6)]
    p.u <= [(1, 7), (1, 8), (1, 9)]
    p.tick()
    assert list(p.t) == [(2, 11)]
    assert list(p.keyed) == [(1, 6)]


def test_methods_of_expressions() -> None:
    """The smaller ones, by example."""

    class Small(Base):
        text = scratch(["text"], [])
        one = scratch(["n"], [])
        got = scratch(["a", "b"], [])
        numbered = scratch(["row", "n"], [])
        best = scratch(["a", "b"], [])
        sets = scratch(["a"], ["all", "any", "avg"])

        @bloom
        def small(self) -> None:
            self.text <= self.s.inspected()
            self.one <= self.chan.payloads()
            self.got <= self.s.include(1, 2)
            self.numbered <= self.s.sort().each_with_index(key=lambda r: -r.a)
            self.best <= self.s.argmax(["b"], "a", then=lambda r: (r.b, r.a))
            self.sets <= self.s.group([self.s.column("a")], agg.bool_and("b"), agg.bool_or("b"), agg.avg("b"))

    p = Small()
    p.s <= [(1, 2), (3, 2), (3, 0)]
    p.chan.insert([("here", 7)])
    p.tick()
    assert sorted(row.text for row in p.text) == ["(a=1, b=2)", "(a=3, b=0)", "(a=3, b=2)"]
    assert list(p.one) == [(7,)]
    assert list(p.got) == [(1, 2)]
    assert sorted(p.numbered, key=lambda r: r.n) == [((3, 0), 0), ((3, 2), 1), ((1, 2), 2)]
    assert sorted(p.best) == [(0, 3), (2, 3)]
    assert sorted(p.sets) == [(1, True, True, 2.0), (3, False, True, 1.0)]
