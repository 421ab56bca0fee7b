"""What programs know of themselves: dependencies, strata, interfaces, drawings (Bud's tc_meta)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import json

import pytest

from syndicate.bloom import Bloom, Reflecting, agg, bloom, bootstrap, channel, interface, scratch, table, temp
from syndicate.bloom.insight.plot import plot
from syndicate.bloom.reflection import reflection
from syndicate.errors import IllegalRule, Unstratifiable


class Paths(Bloom):
    """Shortest paths, with one of each thing that is not monotone."""

    link, link2, link3 = (table(["from", "to", "cost"]) for _ in range(3))
    empty = table(["ident"])
    path = table(["from", "to", "nxt", "cost"])
    shortest = table(["from", "to"], ["nxt", "cost"])
    least = table(["cost"])
    figures = table(["from", "to"], ["least", "most", "sum", "count", "mean"])

    @bloom
    def rules(self) -> None:
        """Seven rules."""
        self.link2 <= self.link.notin(self.empty, ("cost", "ident"))
        self.path <= self.link2.map(lambda e: (e.from_, e.to, e.to, e.cost))
        self.path <= (self.link2 * self.path).pairs(
            ("to", "from"), lambda e, p: (e.from_, p.to, p.from_, e.cost + p.cost)
        )
        self.shortest <= self.path.argmin(["from", "to"], "cost")
        c = self.path.cost
        self.figures <= self.path.group(["from", "to"], agg.min(c), agg.max(c), agg.sum(c), agg.count(), agg.avg(c))
        self.least <= self.shortest.group([], agg.min("cost"))
        self.link3 <= self.path.map(lambda p: (p.from_, p.to, p.cost))
        self.link3 < -(self.link3 * self.shortest).lefts("from", "to")


def test_dependencies() -> None:
    """What each rule reads, and where it must see all of it.

    Bud calls a deletion not monotone in itself, so that ``link3 <- link3`` counts there; here it is CALM's affair.
    """
    depends = reflection(Paths())["t_depends"]
    assert {(head, body) for _, body, head, _, nonmonotone in depends if nonmonotone} == {
        ("link2", "empty"), ("shortest", "path"), ("figures", "path"), ("least", "shortest"),
    }  # fmt: skip
    assert {(head, body) for _, body, head, op, _ in depends if op == "<-"} == {
        ("link3", "link3"), ("link3", "shortest"),
    }  # fmt: skip
    assert {(p.rule.head, p.hazard.why) for p in Paths().calm().points if p.rule.op == "<-"} == {("link3", "deletion")}
    strata = {name: Paths().stratum(name) for name in ("link", "link2", "path", "shortest", "least")}
    assert strata == {"link": 0, "link2": 1, "path": 1, "shortest": 2, "least": 3}


class Kept(Bloom):
    """State that is replaced, behind interfaces."""

    sinkhole = interface("input")
    upd = interface("input", ["data"])
    req = interface("input", ["ident"])
    resp = interface("output", ["ident", "data"])
    state = table(["data"])

    @bloom
    def update(self) -> None:
        """Replace all."""
        self.state < +self.upd
        self.state < -(self.upd * self.state).rights()

    @bloom
    def respond(self) -> None:
        """Tell all."""
        self.resp <= (self.req * self.state).pairs(lambda r, s: (r.ident, s.data))


def test_an_overridden_block() -> None:
    """Its rules are gone; what it does now may be refused: a cycle through a negation, a look in a function."""

    class Cyclic(Kept):
        @bloom
        def update(self) -> None:
            self.state <= self.upd.notin(self.state)

    with pytest.raises(Unstratifiable, match="state"):
        Cyclic()

    class Looking(Kept):
        @bloom
        def update(self) -> None:
            self.state <= self.upd.map(lambda u: None if u in self.state else u)

    p = Looking()
    p.upd <= [(1,)]
    with pytest.raises(IllegalRule, match="cannot look into state"):
        p.tick()


class Renewed(Kept):
    """With a temp between."""

    noted = scratch(["data"])
    between = temp()

    @bloom
    def update(self) -> None:
        """As before, through a temp."""
        self.state <= self.upd
        self.noted <= self.upd
        self.between <= self.state
        self.state < -(self.upd * self.between).rights()


def test_a_drawing() -> None:
    """Collections, and what leads where; the interface that nobody reads has ``??``."""
    p = Renewed()
    drawn = json.loads(plot(p, "json"))
    of = {node["id"]: node["collections"][0] for node in drawn["nodes"]} | {name: name for name in ("S", "T", "??")}
    edges = {(of[e["from"]], of[e["to"]], e["operator"]) for e in drawn["edges"]}
    assert {
        ("upd", "state", None), ("upd", "noted", None), ("state", "between", None), ("between", "state", "-"),
        ("req", "resp", None), ("state", "resp", None), ("S", "upd", None), ("resp", "T", None),
        ("sinkhole", "??", None),
    } <= edges  # fmt: skip
    for form in ("dot", "mermaid"):
        assert all(name in plot(p, form) for name in ("noted", "between", "resp"))


def test_labels_of_a_drawing() -> None:
    """Channels are dashed and asynchronous, what counts after one is diffluent and red."""

    class Diverging(Bloom):
        cli = interface("input", ["data"])
        chan, outs = channel(["@loc", "data"]), channel(["@loc", "data", "cnt"])
        serv = table(["loc", "data"])
        count = scratch(["data", "cnt"])
        gone = interface("output", ["loc", "data", "cnt"])

        @bloom
        def rules(self) -> None:
            self.chan < ~self.cli.map(lambda c: ("there", c.data))
            self.serv <= self.chan
            self.count <= self.serv.group(["data"], agg.count())
            self.outs < ~self.count.map(lambda a: ("there", a.data, a.cnt))
            self.gone <= self.outs

    drawn = json.loads(plot(Diverging(), "json"))
    nodes = {node["collections"][0]: node for node in drawn["nodes"]}
    assert nodes["serv"]["labels"] == nodes["chan"]["labels"] == ["A"]
    assert all("D" in nodes[name]["labels"] for name in ("count", "outs", "gone"))
    assert (nodes["serv"]["verdict"], nodes["count"]["verdict"]) == ("confluent", "diffluent")
    edges = {(e["from"], e["to"]): e for e in drawn["edges"]}
    assert edges[nodes["cli"]["id"], nodes["chan"]["id"]]["asynchronous"]
    assert edges[nodes["serv"]["id"], nodes["count"]["id"]]["points_of_order"]


def test_interfaces() -> None:
    """Which there are, and which nobody serves."""

    class Bare(Bloom):
        inp, out = interface("input"), interface("output")

    result = reflection(Bare())
    assert sorted(result["t_provides"]) == [("inp", True), ("out", False)]
    assert dict(result["t_underspecified"]).keys() == {"inp", "out"}


def test_a_count_decides_over_a_deletion() -> None:
    """When all are there, all go, in the next tick; the strata are those of the count and of what waits for it."""

    class Batch(Reflecting):
        come, kept = scratch(["loc", "n"]), table(["loc", "n"])
        count = scratch(["loc"], ["cnt"])

        @bootstrap
        def begin(self) -> None:
            self.come <= [("xyz", 1), ("xyz", 2), ("xyz", 3)]

        @bloom
        def rules(self) -> None:
            self.kept <= self.come
            self.count <= self.kept.group(["loc"], agg.count())
            full = self.count.filter(lambda c: c.loc == "xyz" and c.cnt == 3)
            self.kept < -(self.kept * full).lefts("loc")

    p = Batch()
    p.tick()
    assert sorted(p.kept) == [("xyz", 1), ("xyz", 2), ("xyz", 3)]
    assert {row.number: row.stratum for row in p.t_rule_stratum} == {1: 0, 2: 1, 3: 1}
    p.tick()
    assert list(p.kept) == []


def test_a_join_is_monotone() -> None:
    """On whatever columns."""

    class Theta(Bloom):
        a, b, c = table(), table(), table()

        @bloom
        def rules(self) -> None:
            self.c <= (self.a * self.b).pairs(self.a.key == self.b.key)

    assert not any(row[-1] for row in reflection(Theta())["t_depends"])


def test_strata_of_rules() -> None:
    """Bud's stratum is of what a rule reads, here it is of what it writes: rules of one head come together."""

    class Three(Bloom):
        t1, t2, t3, t4 = (table() for _ in range(4))

        @bloom
        def rules(self) -> None:
            self.t1 <= self.t2.map(lambda t: (t.key + 1, t.val + 1))
            self.t1 <= self.t3.group(["key"], agg.max("val"))
            self.t2 <= self.t4.map(lambda t: (t.key + 2, t.val + 2))

    assert sorted(reflection(Three())["t_rule_stratum"]) == [(1, 1), (2, 1), (3, 0)]
