"""Plots: what is read leads to what is written, marked where order matters; the same in all three forms."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from syndicate.bloom import Bloom, agg, bloom, channel, const, import_module, interface, periodic, scratch, stdio, table
from syndicate.bloom.insight.plot import FORMS, graph_of, plot
from syndicate.errors import IllegalRule
from tests.syndicate.bloom.test_worked import ReliableDelivery


class Shop(Bloom):
    """Most kinds of edges."""

    order = interface("input", ["ident"], ["item"])
    lost = interface("input", ["ident"])
    done = interface("output", ["ident"])
    never = interface("output", ["ident"])
    ship = channel(["@to", "ident"])
    stock = table(["item"], ["number"])
    open = table(["ident"], ["item"])
    prices = const(["item"], ["price"], rows=[("a", 1)])
    clock = periodic(1)
    lines = stdio()
    count = scratch(["n"], [])

    @bloom
    def rules(self) -> None:
        """One of each operator."""
        self.open <= self.order
        self.open < -(self.open * self.ship).lefts("ident")
        self.stock < +-(self.open * self.prices).pairs("item", lambda o, p: (o.item, p.price))
        self.ship < ~(self.open * self.clock).pairs(lambda o, t: ("there", o.ident))
        self.done < +self.ship.payloads()
        self.count <= self.open.group([], agg.count())
        self.lines < ~self.count.inspected()


def edges(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The edges of a JSON plot by the names of their ends."""
    report = json.loads(text)
    name = {node["id"]: ",".join(node["collections"]) for node in report["nodes"]}
    return {(name.get(edge["from"], edge["from"]), name.get(edge["to"], edge["to"])): edge for edge in report["edges"]}


def test_edges() -> None:
    """Deferral, deletion, replacement, sending, points of order, sources, sinks, and what interfaces lack."""
    result = edges(plot(Shop(), "json"))
    said = {ends: (edge["operator"], edge["asynchronous"], edge["points_of_order"]) for ends, edge in result.items()}
    assert said == {
        ("order", "open"): (None, False, []),
        ("open", "open"): ("-", False, ["race", "deletion"]),
        ("ship", "open"): ("-", False, ["race", "deletion"]),
        ("open", "stock"): ("+-", False, ["replacement"]),
        ("prices", "stock"): ("+-", False, ["replacement"]),
        ("open", "ship"): (None, True, ["race"]),
        ("clock", "ship"): (None, True, ["race"]),
        ("ship", "done"): ("+", False, []),
        ("open", "count"): (None, False, ["count()"]),
        ("count", "lines"): (None, True, []),
        ("S", "order"): (None, False, []),
        ("S", "ship"): (None, True, []),
        ("S", "clock"): (None, True, []),
        ("lost", "??"): (None, False, []),
        ("S", "lost"): (None, False, []),
        ("??", "never"): (None, False, []),
        ("ship", "T"): (None, True, []),
        ("stock", "T"): (None, False, []),
        ("done", "T"): (None, False, []),
        ("lines", "T"): (None, True, []),
    }
    assert result["open", "count"]["rules"] == [{"number": 6, "site": Shop().statements[5].site}]


def test_strata_and_labels() -> None:
    """Nodes lie in their stratum and show what reaches them."""
    nodes = {node.names[0]: node for node in graph_of(Shop()).nodes}
    assert (nodes["count"].stratum, nodes["open"].stratum) == (1, 0)
    assert (nodes["count"].verdict, nodes["order"].verdict) == ("diffluent", "confluent")
    assert nodes["clock"].lines == ["clock", "periodic", "A"]


def test_cycles_collapsed() -> None:
    """A cycle is one node, and what is not monotone within it a loop at that node."""
    graph = graph_of(Shop(), collapse=True)
    (cycle,) = [place for place, node in enumerate(graph.nodes) if len(node.names) > 1]
    assert graph.nodes[cycle].names == ("ship", "open")
    assert [(edge.op, edge.why) for edge in graph.edges if edge.tail == edge.head == cycle] == [
        ("-", ("race", "deletion")),
        ("", ("race",)),
    ]


@pytest.mark.parametrize("program", [Shop, ReliableDelivery])
def test_mermaid_and_dot_are_whole(program: type[Bloom]) -> None:
    """Each end of an edge is a node, each node stands once, brackets close, and both forms have the same edges."""
    shop = program()
    mermaid, dot = plot(shop), plot(shop, "dot")
    nodes = re.findall(r"^ +(\w+)(?:\[|\(|>)", mermaid, re.MULTILINE)
    ends = re.findall(r"^ +(\w+) (-->|-\.->)(?:\|\"[^\"|]*\"\|)? (\w+)$", mermaid, re.MULTILINE)
    assert len(set(nodes)) == len(nodes)
    assert {end for tail, _, head in ends for end in (tail, head)} <= set(nodes)
    assert mermaid.count("subgraph") == mermaid.count("\n    end")
    arrows = re.findall(r"^ +(\w+) -> (\w+)(?: \[(.*)\])?;$", dot, re.MULTILINE)
    assert [(tail, head) for tail, _, head in ends] == [(tail, head) for tail, head, _ in arrows]
    assert [arrow == "-.->" for _, arrow, _ in ends] == ["style=dashed" in more for _, _, more in arrows]
    red = {int(at) for at in re.findall(r"\d+", mermaid.rpartition("linkStyle")[2].partition("stroke")[0])}
    assert red == {at for at, (_, _, more) in enumerate(arrows) if "color=red" in more}
    assert dot.count("{") == dot.count("}")
    assert plot(program()) == mermaid


def test_modules() -> None:
    """Collections of modules have their full names, and no text breaks out of its label."""

    class Two(Bloom):
        left = import_module(Shop)
        fed = table(["ident"], ["item"])

        @bloom
        def rules(self) -> None:
            self.left.order <= self.fed

    result = edges(plot(Two(), "json"))
    assert ("fed", "left.order") in result
    assert ("S", "left.order") not in result
    assert '"left.order<br/>input interface"' in plot(Two())


def test_forms() -> None:
    """There are three forms."""
    assert FORMS == ("mermaid", "dot", "json")
    with pytest.raises(IllegalRule, match="not as 'svg'"):
        plot(Shop(), "svg")
