"""Worked cases of Bud's behaviour, tick by tick (those without lattices), and the program of the Bloom paper."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import (
    Bloom,
    agg,
    bloom,
    bootstrap,
    channel,
    import_module,
    interface,
    join,
    periodic,
    scratch,
    table,
    temp,
    values,
)
from syndicate.errors import KeyConflict


def test_case_1_recursion() -> None:
    """A path is a link, or a link and a path."""

    class Paths(Bloom):
        link = table(["from", "to"])
        path = table(["from", "to"])

        @bloom
        def closure(self) -> None:
            self.path <= self.link
            self.path <= (self.link * self.path).pairs(self.link.to == self.path.from_, lambda x, y: (x.from_, y.to))

    p = Paths()
    p.link <= [(1, 2), (2, 3), (3, 4), (6, 7), (2, 7)]
    p.tick()
    assert sorted(p.path) == [(1, 2), (1, 3), (1, 4), (1, 7), (2, 3), (2, 4), (2, 7), (3, 4), (6, 7)]


@pytest.mark.parametrize("spelling", ["<+-", "<-+"])
def test_case_2_upsert(spelling: str) -> None:
    """A row replaces that of its key in the next tick."""

    class Upsert(Bloom):
        joe = table(["k"], ["v"])
        d = table(["k"], ["v"])

        @bootstrap
        def start(self) -> None:
            self.joe <= values((1, "a"))
            self.d <= [(1, "b")]

        @bloom
        def replace(self) -> None:
            if spelling == "<+-":
                self.joe < +-self.d
            else:
                self.joe < -+self.d

    p = Upsert()
    p.tick()
    assert list(p.joe) == [(1, "a")]
    p.tick()
    assert list(p.joe) == [(1, "b")]
    p.d.upsert([(1, "c")])
    p.tick(2)
    assert list(p.joe) == [(1, "c")]


def test_case_3_deletion_and_derivation() -> None:
    """A deleted row that is derived is back at once; a table keeps what its premise gave."""

    class Sink(Bloom):
        src = table(["x"], [])
        sink = table(["x"], [])
        event = scratch(["x"], [])
        dummy = scratch(["x"], [])

        @bloom
        def rules(self) -> None:
            self.sink <= self.src
            self.sink <= self.event
            self.dummy <= self.sink

    p = Sink()

    def after() -> list[str]:
        p.tick()
        assert sorted(p.dummy) == sorted(p.sink)
        return [row[0] for row in sorted(p.sink)]

    p.src <= [("v1",), ("v2",)]
    p.event <= [("v3",)]
    assert after() == ["v1", "v2", "v3"]
    p.sink.delete([("v1",), ("v3",)])
    assert after() == ["v1", "v2"]
    p.src.delete([("v1",)])
    assert after() == ["v1", "v2"]
    p.sink.delete([("v1",), ("v2",)])
    assert after() == ["v2"]


def test_case_4_the_tick_in_a_rule() -> None:
    """The tick's number is a row of `now`; what is joined with it is derived in every tick."""

    class Clock(Bloom):
        t1 = table(["x"], [])
        t2 = table(["tick", "x"], [])

        @bloom
        def rules(self) -> None:
            self.t2 <= (self.t1 * self.now).pairs(lambda t, n: (n.tick, t.x))

    p = Clock()
    p.t1 <= [("foo",)]
    sizes = []
    for more in ([], [], [("bar",)]):
        p.t1 <= more
        p.tick()
        sizes.append(len(p.t2))
    assert sizes == [1, 2, 4]


def test_case_5_empty_key() -> None:
    """A table without a key has one row at most."""

    class One(Bloom):
        t1 = table([], ["foo", "bar"])

    p = One()
    p.t1 <= [("xyz", 6)]
    p.tick()
    p.t1 <= [("xyz", 6)]
    p.tick()
    p.t1 <= [("xxx", 2)]
    with pytest.raises(KeyConflict, match=r"t1: two rows have the key \(\)"):
        p.tick()
    assert list(p.t1) == [("xyz", 6)] == [p.t1[()]]
    assert ("xyz", 7) not in p.t1
    assert ("xyz", 6) in p.t1
    assert One().t1[()] is None


def test_case_6_reduce() -> None:
    """Of no rows, the initial value, in every tick."""

    class Reduce(Bloom):
        t1 = scratch(["v", "x"], [])
        t2 = scratch(["res"], [])

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.reduce([(True,)], lambda memo, t: memo if t.v else [(False,)])

    p = Reduce()
    seen = []
    for rows in ([], [(True, 1), (True, 2)], [(False, 3), (True, 4)], []):
        p.t1 <= rows
        p.tick()
        seen.append([row.res for row in p.t2])
    assert seen == [[True], [True], [False], [True]]


def test_case_7_aggregates_over_a_semijoin() -> None:
    """A row of the left that matches twice counts once."""

    class Sums(Bloom):
        t1 = table()
        t2 = table()
        sum_tbl = table(["s"], [])
        cnt_tbl = table(["c"], [])

        @bloom
        def rules(self) -> None:
            self.sum_tbl <= (self.t1 * self.t2).lefts().group([], agg.sum("val"))
            self.cnt_tbl <= (self.t1 * self.t2).lefts().group(None, agg.count())

    p = Sums()
    seen = []
    for t1, t2 in (([(10, 20)], [(31, 41)]), ([], []), ([(5, 5)], []), ([], [(11, 13)])):
        p.t1 <= t1
        p.t2 <= t2
        p.tick()
        seen.append(([s for (s,) in sorted(p.sum_tbl)], [c for (c,) in sorted(p.cnt_tbl)]))
    assert seen == [([20], [1]), ([20], [1]), ([20, 25], [1, 2]), ([20, 25], [1, 2])]


@pytest.mark.parametrize(
    ("rows", "t2", "t3"),
    [
        ([(1, 2, 3), (5, 5, 5)], [(1, 2, 3)], [(1, 2, 3)]),
        ([(1, 2, 4), (1, 3, 5)], [(1, 2, 4), (1, 3, 5)], [(1, 2, 4)]),
    ],
)
def test_case_8_argmin(rows: Any, t2: Any, t3: Any) -> None:
    """Ties are kept, and choices can be chained."""

    class Least(Bloom):
        t1 = scratch(["a", "b", "c"], [])
        t2 = scratch(["a", "b", "c"], [])
        t3 = scratch(["a", "b", "c"], [])

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.argmin([], self.t1.a)
            self.t3 <= self.t2.argmin(None, "b")

    p = Least()
    p.t1 <= rows
    p.tick()
    assert (sorted(p.t2), sorted(p.t3)) == (t2, t3)


def test_case_9_accum_pair() -> None:
    """The pairs of each group."""

    class Pairs(Bloom):
        t = scratch(["a", "b", "c"], [])
        out = scratch(["a"], ["pairs"])

        @bloom
        def rules(self) -> None:
            self.out <= self.t.group(["a"], agg.accum_pair("b", "c"))

    p = Pairs()
    p.t <= [(9, 3, 4), (9, 4, 3), (8, 1, 2), (7, 8, 9)]
    p.tick()
    assert {row.a: row.pairs for row in p.out} == {7: {(8, 9)}, 8: {(1, 2)}, 9: {(3, 4), (4, 3)}}


def test_case_10_outer() -> None:
    """A left outer join pads with None, and takes the padding back when a match comes."""

    class Outer(Bloom):
        left = table(["x", "y"], [])
        right = table(["x", "y"], [])
        out = scratch(["lx", "rx", "ly", "ry"], [])

        @bloom
        def rules(self) -> None:
            self.out <= (self.left * self.right).outer(self.left.x == self.right.x, lambda a, b: (a.x, b.x, a.y, b.y))

    p = Outer()
    p.left <= [("a", 1), ("v", 1), ("z", 1)]
    p.right <= [("a", 1), ("b", 2), ("c", 1), ("c", 2)]
    p.tick()
    assert set(p.out) == {("a", "a", 1, 1), ("v", None, 1, None), ("z", None, 1, None)}
    p.right <= [("v", 5)]
    p.tick()
    assert set(p.out) == {("a", "a", 1, 1), ("v", "v", 1, 5), ("z", None, 1, None)}


def test_case_11_a_column_used_twice() -> None:
    """One column in two predicates makes three columns equal."""

    class Twice(Bloom):
        h = scratch(["from", "to"], [])
        tie = scratch(["from", "to"], [])
        tc = scratch(["from", "to"], [])
        res = scratch(["a", "b"], [])

        @bloom
        def rules(self) -> None:
            h, tie, tc = self.h, self.tie, self.tc
            on = (h.from_ == tie.from_, tc.from_ == h.to, tc.to == h.from_)
            self.res <= (h * tie * tc).combos(*on, lambda h, t, c: (h.to, t.to))

    p = Twice()
    p.tc <= [(1, 10000)]
    p.h <= [(10000, 1)]
    p.tie <= [(1, 2)]
    p.tick()
    assert list(p.res) == []
    p.tc <= [(1, 10000)]
    p.h <= [(10000, 1)]
    p.tie <= [(10000, 2)]
    p.tick()
    assert list(p.res) == [(1, 2)]


def test_case_12_forms_of_notin() -> None:
    """By predicate, by function, by both."""

    class Emp(Bloom):
        emp = table()
        mgrs = scratch(["name"], [])
        res1 = scratch()
        res2 = scratch()
        res3 = scratch()

        @bloom
        def rules(self) -> None:
            emp, mgrs = self.emp, self.mgrs
            mgrs <= emp.filter(lambda e: e.val > 0).map(lambda e: (e.key,))
            self.res1 <= emp.notin(mgrs, emp.key == mgrs.name)
            self.res2 <= emp.notin(mgrs, lambda e, m: e.key == m.name)
            self.res3 <= emp.notin(mgrs, (emp.key, mgrs.name), lambda e, m: e.key == "bob")

    p = Emp()
    p.emp <= {"bob": 1, "betsy": 1, "caitlin": 0}
    p.tick()
    assert sorted(p.res1) == sorted(p.res2) == [("caitlin", 0)]
    assert sorted(p.res3) == [("betsy", 1), ("caitlin", 0)]
    assert [p.stratum(one) for one in ("emp", "mgrs", "res1", "res2", "res3")] == [0, 0, 1, 1, 1]


def test_case_13_deduplication() -> None:
    """What was delivered once is delivered no more."""

    class Once(Bloom):
        inp = scratch(["x"], [])
        delivered = table(["x"], [])
        outp = scratch(["x"], [])

        @bloom
        def rules(self) -> None:
            self.outp <= self.inp.notin(self.delivered)
            self.delivered < +self.inp

    p = Once()
    seen = []
    for rows in (["foo"], ["foo"], ["foo"], ["foo"], ["bar", "foo"], ["bar", "foo"]):
        p.inp <= [(row,) for row in rows]
        p.tick()
        seen.append([row.x for row in p.outp])
    assert seen == [["foo"], [], [], [], ["bar"], []]


def test_case_14_a_chain_of_notin() -> None:
    """One antijoin after another."""

    class Chain(Bloom):
        t1 = scratch(["a", "b"], [])
        t2 = table(["a", "b"], [])
        t3 = table(["a", "b"], [])
        t4 = table(["a", "b"], [])

        @bloom
        def rules(self) -> None:
            self.t1 <= self.t2.notin(self.t3, (self.t2.b, self.t3.b)).notin(self.t4, (self.t2.a, self.t4.a))

    p = Chain()
    p.t2 <= [(4, 9), (5, 10), (6, 11), (8, 10), (12, 9)]
    p.t3 <= [(20, 5), (21, 6), (22, 7)]
    p.t4 <= [(8, 8), (9, 9)]
    p.tick()
    assert sorted(p.t1) == [(4, 9), (5, 10), (6, 11), (12, 9)]


def test_case_15_a_module_imported_twice() -> None:
    """Each import is an instance of its own, with its own bootstrap."""

    class M(Bloom):
        t1 = table()
        t2 = table()

        @bootstrap
        def start(self) -> None:
            self.t1 <= [(5, 10)]

        @bloom
        def copy(self) -> None:
            self.t2 <= self.t1

    class Importer(Bloom):
        import_module(M, as_name="xx")
        yy = import_module(M)
        xx: Any
        t4 = table()
        t5 = table()

        @bootstrap
        def start(self) -> None:
            self.yy.t1 <= [(50, 100)]

        @bloom
        def copy(self) -> None:
            self.t4 <= self.yy.t2.map(lambda r: (r.key + 10, r.val + 10))
            self.t5 <= self.xx.t2

    p = Importer()
    p.tick()
    assert sorted(p.t4) == [(15, 20), (60, 110)]
    assert sorted(p.t5) == [(5, 10)]
    assert sorted(one.tabname for one in p.collections() if "." in one.tabname and one.tabname[3] == "t") == [
        "xx.t1", "xx.t2", "yy.t1", "yy.t2",
    ]  # fmt: skip


def test_case_16_temp_with_a_next_operator() -> None:
    """A temporary collection takes its columns from its first rule, also from a deferred one."""

    class Temps(Bloom):
        inski = scratch(["a", "b"], ["c", "d"])
        wait = scratch(["a", "b"], ["c", "d"])
        out = scratch(["a", "b"], ["c", "d"])
        t1 = temp()
        t2 = temp()

        @bloom
        def rules(self) -> None:
            self.t1 <= self.inski
            self.t2 < +self.wait
            self.out <= self.t1
            self.out <= self.t2

    p = Temps()
    inski, wait = [(1, 1, 2, 2), (2, 2, 3, 3), (3, 3, 4, 4)], [(5, 5, 6, 6), (7, 7, 8, 8), (9, 9, 9, 9)]
    p.inski <= inski
    p.wait <= wait
    p.tick()
    assert sorted(p.out) == inski
    p.tick()
    assert sorted(p.out) == wait
    p.tick()
    assert list(p.out) == []


class DeliveryProtocol(Bloom):
    """The interfaces of the paper."""

    pipe_in = interface("input", ["dst", "src", "ident"], ["payload"])
    pipe_out = interface("output", ["dst", "src", "ident"], ["payload"])


class ReliableDelivery(DeliveryProtocol):
    """The program of the paper."""

    data_chan = channel(["@dst", "src", "ident"], ["payload"])
    ack_chan = channel(["@src", "dst", "ident"])
    send_buf = table(["dst", "src", "ident"], ["payload"])
    timer = periodic(10)

    @bloom
    def send_packet(self) -> None:
        """Keep and send."""
        self.send_buf <= self.pipe_in
        self.data_chan < ~self.pipe_in

    @bloom
    def timer_retry(self) -> None:
        """Send again what was not acknowledged."""
        self.data_chan < ~join([self.send_buf, self.timer]).map(lambda p, t: p)

    @bloom
    def send_ack(self) -> None:
        """Acknowledge."""
        self.ack_chan < ~self.data_chan.map(lambda p: (p.src, p.dst, p.ident))

    @bloom
    def recv_ack(self) -> None:
        """Forget what was acknowledged."""
        got = join([self.ack_chan, self.send_buf], [self.ack_chan.ident, self.send_buf.ident])
        self.pipe_out <= got.map(lambda ack, buf: buf)
        self.send_buf < -got.map(lambda ack, buf: buf)


def test_reliable_delivery_over_loopback() -> None:
    """A packet to ourselves arrives, is acknowledged and forgotten, one tick each."""
    p = ReliableDelivery(address="here")
    packet = ("here", "here", 1, "hello")
    p.pipe_in.insert([packet])
    seen = []
    for _ in range(4):
        p.tick()
        seen.append([sorted(one) for one in (p.send_buf, p.data_chan, p.ack_chan, p.pipe_out)])
    ack = ("here", "here", 1)
    assert seen == [
        [[packet], [], [], []],
        [[packet], [packet], [], []],
        [[packet], [], [ack], [packet]],
        [[], [], [], []],
    ]
    assert p.run() == 0


def test_reliable_delivery_loses_packets() -> None:
    """Between two programs, with the first packets lost, each firing of the timer sends what is not acknowledged."""
    one, two = ReliableDelivery(address="one"), ReliableDelivery(address="two")
    lost = 3

    def send(address: Any, name: str, row: Any) -> None:
        nonlocal lost
        if lost:
            lost -= 1
            return
        {"one": one, "two": two}[address].deliver(name, [row])

    one.send = two.send = send
    one.pipe_in <= [("two", "one", n, f"packet {n}") for n in range(5)]
    delivered: set[Any] = set()
    one.callback("pipe_out", delivered.update)
    one.run()
    for _ in range(5):
        one.run()
        two.run()
    assert (len(one.send_buf), len(delivered)) == (3, 2)
    one.fire(one.timer)
    for _ in range(5):
        one.run()
        two.run()
    assert (len(one.send_buf), len(delivered)) == (0, 5)
