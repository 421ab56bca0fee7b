"""Aggregates and choices of rows: what Bud's tc_aggs and tc_wc ask beside the worked cases, renewed at each tick."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from syndicate.bloom import Bloom, agg, bloom, bootstrap, file_reader, scratch, table
from syndicate.errors import IllegalRule, RowMisfit
from tests.syndicate.bloom.bud.renewed import tick

LINKS = [("a", "b", 1), ("a", "b", 4), ("b", "c", 1), ("c", "d", 1), ("d", "e", 1)]


class Paths(Bloom):
    """Paths with their first hop and cost, and what is said of each pair of nodes."""

    link, path = table(["from", "to", "cost"]), table(["from", "to", "next", "cost"])
    shortest = scratch(["from", "to", "next", "cost"])
    once, last = scratch(["from", "to"], ["next", "cost"]), scratch(["from", "to"], ["next", "cost"])
    said = scratch(["from", "to"], ["least", "most", "all", "n", "mean"])
    moved = scratch(["from", "to"], ["mean", "all", "n"])
    named = scratch(*moved.schema)

    @bloom
    def rules(self) -> None:
        """Recursion, then everything of it."""
        path = self.path
        path <= self.link.map(lambda link: (link.from_, link.to, link.to, link.cost))
        path <= (self.link * path).pairs(
            ("to", "from"), lambda link, p: (link.from_, p.to, p.from_, link.cost + p.cost)
        )
        self.shortest <= path.argmin([path.from_, path.to], path.cost)
        least = path.argmin(["from", "to"], "cost")
        self.once <= least.argagg(agg.max, ["from", "to"], "next")
        self.last <= least.argmax(["from", "to"], "next")
        of = (agg.min("cost"), agg.max(path.cost), agg.sum("cost"), agg.count(), agg.avg(path.cost))
        self.said <= path.group([path.from_, "to"], *of)
        self.moved <= path.group(["from", "to"], *of, then=lambda t: (t[0], t[1], t[6], t[4], t[5]))
        grouped = path.group(["from", "to"], *of).map(
            lambda t: t, columns=["from", "to", "lo", "hi", "sum", "n", "avg"]
        )
        self.named <= grouped.map(lambda t: (t.from_, t.to, t.avg, t.sum, t.n))


def test_paths() -> None:
    """All aggregates of all pairs, against the paths themselves; ties; what comes later changes them."""
    p = Paths()
    for links in (LINKS, [("a", "c", 2)], [("a", "e", 1)]):
        tick(p, link=links)
        costs: dict[Any, list[Any]] = defaultdict(list)
        for row in p.path:
            costs[row[:2]].append((row.cost, row.next))
        assert set(p.said) == {
            (*pair, min(c), max(c), sum(c), len(c), sum(c) / len(c))
            for pair, some in costs.items()
            for c in [[cost for cost, _ in some]]
        }
        assert set(p.moved) == set(p.named) == {(s[0], s[1], s[6], s[4], s[5]) for s in p.said}
        assert set(p.shortest) == {
            (*pair, hop, cost) for pair, some in costs.items() for cost, hop in some if cost == min(some)[0]
        }
        assert (
            set(p.once)
            == set(p.last)
            == {
                (*pair, max(hop for cost, hop in some if cost == min(some)[0]), min(some)[0])
                for pair, some in costs.items()
            }
        )
    assert p.stratum("path") < p.stratum("said")


@pytest.mark.parametrize("aggregate", [agg.count, agg.sum, agg.avg, agg.accum])
def test_what_chooses_no_rows(aggregate: Any) -> None:
    """A number that is made of a group is of none of its rows."""

    class Chooses(Paths):
        @bloom
        def wrong(self) -> None:
            self.shortest <= self.path.argagg(aggregate, ["from", "to"], "cost")

    with pytest.raises(IllegalRule, match=r"test_aggs\.py:\d+"):
        Chooses()


class Queue(Bloom):
    """A queue by priority, which is served in each tick."""

    q = table(["item"], ["priority"])
    out, out2 = scratch(["item"], ["priority"]), scratch(["item"], ["priority"])
    least = scratch(["priority"])

    @bootstrap
    def begin(self) -> None:
        """Four wait."""
        self.q <= [("c", 2), ("d", 3), ("a", 1), ("b", 2)]

    @bloom
    def rules(self) -> None:
        """What is served is gone in the next tick."""
        self.out <= self.q.argagg(agg.min, [], self.q.priority)
        self.least <= self.q.group(None, agg.min(self.q.priority))
        self.q < -self.out
        self.out2 <= (self.q * self.least).matches().lefts()


def test_a_queue() -> None:
    """Chosen rows are those that a join with the least gives; all of a priority go together."""
    p = Queue()
    served = []
    for _ in range(4):
        tick(p)
        assert set(p.out) == set(p.out2)
        served.append({row.item for row in p.out})
    assert served == [{"a"}, {"b", "c"}, {"d"}, set()]


class Shoes(Bloom):
    """Salaries, by shop."""

    emp = table(["name", "shop"], ["sal"])
    shoes, shoes2, later = table(["shop"], ["sal"]), table(["shop"], ["sal"]), table(["shop"], ["sal"])
    best = scratch(["sal"])
    rich, chosen = scratch(*emp.schema), scratch(*emp.schema)
    usual = table(["shop"], ["usual"])
    funny = scratch(["shop"], ["most", "usual"])

    @bootstrap
    def begin(self) -> None:
        """Who earns what."""
        self.emp <= [("joe", "shoe", 10), ("joe", "toy", 5), ("bob", "shoe", 11)]
        self.usual <= [("shoe", 9)]

    @bloom
    def rules(self) -> None:
        """Renamed groups, in this tick and the next; joined with groups, groups of joins."""
        mean = self.emp.group(["shop"], agg.avg("sal"))
        self.shoes <= mean.rename(shop="dept").filter(lambda t: t.dept == "shoe")
        named = mean.map(lambda t: t, columns=["dept", "mean"])
        self.shoes2 <= named.map(lambda t: t if t.dept == "shoe" else None)
        self.later < +named.filter(lambda t: t.dept == "shoe")
        self.best <= self.emp.group([], agg.max("sal"))
        self.rich <= (self.best * self.emp).matches().rights()
        self.chosen <= self.emp.argmax([], self.emp.sal)
        self.funny <= (self.emp * self.usual).matches().flatten().group(["shop"], agg.max("sal"), agg.max("usual"))


def test_groups_renamed_and_joined() -> None:
    """What a group is called, when it comes, and with what it is joined."""
    p = Shoes()
    tick(p)
    assert (list(p.shoes), list(p.shoes2), list(p.later)) == ([("shoe", 10.5)], [("shoe", 10.5)], [])
    assert set(p.rich) == set(p.chosen) == {("bob", "shoe", 11)}
    assert set(p.funny) == {("shoe", 11, 9)}
    tick(p)
    assert (list(p.shoes), list(p.later)) == ([("shoe", 10.5)], [("shoe", 10.5)])


def test_choices() -> None:
    """One row, or one value, of many: any, at random too; after a join, in a later stratum."""

    class Choices(Bloom):
        t, r = table(), table()
        any_row, random_row, joined, most = scratch(), scratch(), table(), scratch()
        any_value, random_value = scratch(["v"]), scratch(["v"])

        @bootstrap
        def begin(self) -> None:
            self.t <= [(n, n + 1) for n in range(100)]
            self.r <= [("a", "b")]

        @bloom
        def rules(self) -> None:
            self.any_row <= self.t.argagg(agg.choose, [], "key")
            self.random_row <= self.t.argagg(agg.choose_rand, [], "key")
            self.any_value <= self.t.group([], agg.choose("key"))
            self.random_value <= self.t.group([], agg.choose_rand("key"))
            self.joined <= (self.t * self.r * self.r.alias()).combos(lambda a, b, c: a)
            self.most <= self.joined.argmax([], "key")

    p = Choices()
    assert (p.stratum("joined"), p.stratum("most")) == (0, 1)
    tick(p)
    for one in (p.any_row, p.random_row):
        ((key, val),) = list(one)
        assert (key in range(100), val) == (True, key + 1)
    for one in (p.any_value, p.random_value):
        ((value,),) = list(one)
        assert value in range(100)
    assert list(p.most) == [(99, 100)]
    tick(p, t=[(100, 101)])
    assert list(p.most) == [(100, 101)]


def test_all_and_any() -> None:
    """Of truths, in all, and by group; a table keeps each answer, a scratch has today's."""

    class Truths(Bloom):
        s = scratch(["x", "v"])
        whole, group = scratch(["all", "any"]), scratch(["x"], ["all", "any"])
        kept = table(["x", "all", "any"])

        @bloom
        def rules(self) -> None:
            self.whole <= self.s.group(None, agg.bool_and("v"), agg.bool_or("v"))
            self.group <= self.s.group(["x"], agg.bool_and("v"), agg.bool_or("v"))
            self.kept <= self.s.group(["x"], agg.bool_and("v"), agg.bool_or("v"))

    p = Truths()
    answers: set[Any] = set()
    for rows in ([(1, True), (1, False), (2, False), (3, True)], [], [(1, False), (3, False)]):
        tick(p, s=rows)
        groups = {x: [v for y, v in rows if y == x] for x, _ in rows}
        wanted = {(x, all(some), any(some)) for x, some in groups.items()}
        answers |= wanted
        assert set(p.group) == wanted
        assert set(p.whole) == ({(all(v for _, v in rows), any(v for _, v in rows))} if rows else set())
        assert set(p.kept) == answers
    assert len(answers) == 5


def test_values_within_values() -> None:
    """Lists in columns have an order, and ties of them are kept."""

    class Nested(Bloom):
        t = scratch(["a", "b", "n"])
        least_a, least_b, most_a, most_b = (scratch(["a", "b", "n"]) for _ in range(4))

        @bloom
        def rules(self) -> None:
            self.least_a <= self.t.argmin([], "a")
            self.least_b <= self.t.argmin([], "b")
            self.most_a <= self.t.argmax([], "a")
            self.most_b <= self.t.argmax([], "b")

    p = Nested()
    tick(p, t=[((123, 456), ("a", ("b",)), 1), ((123, 455), ("b", ("b",)), 2), ((123, 456), ("a", ("a",)), 3)])
    results = [sorted(row.n for row in one) for one in (p.least_a, p.least_b, p.most_a, p.most_b)]
    assert results == [[2], [3], [1, 3], [2]]


def test_one_after_the_other() -> None:
    """What comes is kept, and leaves in the order of when it came, and then of its columns: one a tick."""

    class Serial(Bloom):
        buf = table(["a", "b", "when"])
        given, later, out = scratch(["a", "b"]), scratch(["a", "b"]), scratch(["a", "b"])
        first, least_a, least_b = scratch(*buf.schema), scratch(*buf.schema), scratch(*buf.schema)

        @bloom
        def rules(self) -> None:
            self.given < +self.later
            self.buf <= (self.given * self.now).pairs(lambda row, now: (row.a, row.b, now.tick))
            self.first <= self.buf.argmin([], "when")
            self.least_a <= self.first.argmin([], "a")
            self.least_b <= self.least_a.argmin([], "b")
            self.buf < -self.least_b
            self.out <= self.least_b.map(lambda r: (r.a, r.b))

    p = Serial()
    seen: list[Any] = []
    p.callback("out", seen.extend)
    tick(p, given=[(5, 10)])
    tick(p, given=[(3, 2)])
    tick(p, given=[(7, 1), (6, 6), (6, 7), (3, 3), (7, 2), (9, 1)], later=[(0, 0), (0, 1)])
    for _ in range(8):
        tick(p)
    assert seen == [(5, 10), (3, 2), (3, 3), (6, 6), (6, 7), (7, 1), (7, 2), (9, 1), (0, 0), (0, 1)]


def test_votes() -> None:
    """How many, and what they said, of each answer; one more comes to a program that runs by itself."""

    class Votes(Bloom):
        received = table(["master", "peer", "id"], ["answer", "content"])
        count = scratch(["id", "answer", "n", "contents"])

        @bloom
        def rules(self) -> None:
            r = self.received
            self.count <= r.group([r.id, r.answer], agg.count(r.peer), agg.accum(r.content))

    p = Votes()
    p.run_bg()
    p.sync_do(lambda: p.received <= [("m", "p1", 1, "yes", "from one")])
    p.sync_do(lambda: p.received <= [("m", "p2", 1, "yes", "from two"), ("m", "p3", 1, "no", "never")])
    assert p.sync_do(lambda: set(p.count)) == {
        (1, "yes", 2, frozenset({"from one", "from two"})), (1, "no", 1, frozenset({"never"})),
    }  # fmt: skip
    p.stop()


@pytest.mark.parametrize("wrong", [True, 7, "text", [1, 2]])
def test_a_reduction_to_no_rows(wrong: Any) -> None:
    """It is refused, with the place: the first memo when the program is made, the last in the tick."""

    class Reduces(Bloom):
        t1, t2 = table(), table()

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.reduce([], lambda memo, row: wrong)

    class Begins(Bloom):
        t1, t2 = table(), table()

        @bloom
        def rules(self) -> None:
            self.t2 <= self.t1.reduce(wrong, lambda memo, row: memo)

    with pytest.raises(RowMisfit, match=r"test_aggs\.py:\d+"):
        Begins().tick()
    p = Reduces()
    with pytest.raises(RowMisfit, match=r"test_aggs\.py:\d+"):
        tick(p, t1=[(5, 10)])
    assert list(p.t1) == []


def test_rows_count_and_values_do_not() -> None:
    """Rows that a function makes alike are one; rows with one value alike are as many as they are."""

    class Sums(Bloom):
        t, projected, plain = table(), scratch(["s"]), scratch(["s"])

        @bloom
        def rules(self) -> None:
            self.projected <= self.t.map(lambda t: (t.key + t.val,), columns=["v"]).group([], agg.sum("v"))
            self.plain <= self.t.group([], agg.sum("val"))

    p = Sums()
    tick(p, t=[(6, 6), (5, 7), (4, 8), (0, 1)])
    assert (list(p.projected), list(p.plain)) == ([(13,)], [(22,)])
    tick(p, t=[(2, 0)])
    assert (list(p.projected), list(p.plain)) == ([(15,)], [(22,)])
    tick(p, t=[(1, 7)])
    assert (list(p.projected), list(p.plain)) == ([(23,)], [(29,)])


def test_the_last_heartbeats() -> None:
    """Of a log that a timer writes: the last of each, by a choice and by a group, changed after it."""

    class Beats(Bloom):
        beat, tock = scratch(["to", "from"]), scratch(["v"])
        buffer, log = table(["from"]), table(["from", "time"])
        chosen, grouped = scratch(["from"], ["time"]), scratch(["from"], ["time"])

        @bloom
        def rules(self) -> None:
            self.buffer <= self.beat.map(lambda h: (h.from_,))
            self.buffer < -(self.tock * self.buffer).rights()
            self.log <= (self.tock * self.buffer).pairs(lambda t, h: (h.from_, float(t.v)))
            self.chosen <= self.log.argagg(agg.max, ["from"], "time", then=lambda t: (t[0], t[1] + 1))
            self.grouped <= self.log.group(["from"], agg.max("time"), then=lambda t: (t[0], t[1] + 2))

    p = Beats()
    tick(p, beat=[("a", "b")])
    assert (list(p.chosen), list(p.grouped)) == ([], [])
    tick(p, tock=[(8,), (7,), (6,)])
    for _ in range(2):
        assert (list(p.chosen), list(p.grouped)) == ([("b", 9.0)], [("b", 10.0)])
        assert len(p.log) == 3
        tick(p)
    assert list(p.buffer) == []
    tick(p, beat=[("a", "b"), ("a", "c")], tock=[(9,)])
    assert (set(p.chosen), set(p.grouped)) == ({("b", 10.0), ("c", 10.0)}, {("b", 11.0), ("c", 11.0)})


TEXT = "Yes and yes\nthe sea the sea\n\nyes I said yes I will Yes\n"


def test_words_of_a_file(tmp_path: Path) -> None:
    """Counted by a group and by a reduction to a mapping, whose entries are rows; again when the file has changed."""
    path = tmp_path / "text"
    path.write_text(TEXT)

    class Words(Bloom):
        text = file_reader(path)
        words = scratch(["line", "n"], ["word"])
        grouped, reduced = scratch(["word"], ["count"]), scratch(["word"], ["count"])

        @bloom
        def rules(self) -> None:
            self.words <= self.text.flat_map(
                lambda t: [(t.lineno, n, word) for n, word in enumerate(t.text.lower().split())]
            )
            self.grouped <= self.words.group(["word"], agg.count())
            self.reduced <= self.words.reduce({}, lambda memo, row: {**memo, row.word: memo.get(row.word, 0) + 1})

    p = Words()
    for text in (TEXT, "yes", ""):
        path.write_text(text)
        tick(p)
        words = text.lower().split()
        assert dict(iter(p.grouped)) == dict(iter(p.reduced)) == {word: words.count(word) for word in words}
