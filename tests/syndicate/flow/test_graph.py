"""Graphs: golden drawings, a check of the syntax on random circuits, hostile names, and what watching adds."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.errors import CircuitError
from syndicate.flow import Circuit, Kind, ZSet
from syndicate.flow import aggregates as agg
from tests.strategies import examples
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second


def closure() -> Circuit:
    """A circuit with a loop, an import of an index, a table with a key and a delay."""
    c = Circuit()
    edges, names = c.source("edges"), c.source("names", key=first)
    steps = edges.index_with(first)
    paths = c.recursive(lambda r: edges + r.index_with(second).join(steps, ends), name="paths")
    c.sink("counts", paths.index_with(first).aggregate(agg.count))
    c.sink("both", names.distinct(), edges.z1())
    return c


MERMAID = r"""
flowchart TD
    n0[/"source #34;edges#34;<br/>0"/]
    n1[/"source #34;names#34;<br/>first<br/>1"/]
    n2["index#95;with<br/>first<br/>2"]
    subgraph n3["loop #34;paths#34;<br/>3"]
        n3_0(["z1 #34;paths#34;<br/>3.0"])
        n3_1["index#95;with<br/>second<br/>3.1"]
        n3_2>"import<br/>3.2"]
        n3_3["join<br/>ends<br/>3.3"]
        n3_4>"import #34;edges#34;<br/>3.4"]
        n3_5["plus<br/>3.5"]
        n3_6["distinct #34;paths#34;<br/>3.6"]
    end
    n4["index#95;with<br/>first<br/>4"]
    n5["aggregate<br/>count<br/>5"]
    n6[\"sink #34;counts#34;<br/>6"\]
    n7["distinct<br/>7"]
    n8(["z1<br/>8"])
    n9[\"sink #34;both#34;<br/>9"\]
    n0 --> n2
    n3_6 -.-> n3_0
    n3_0 --> n3_1
    n2 --> n3_2
    n3_1 --> n3_3
    n3_2 --> n3_3
    n0 --> n3_4
    n3_4 --> n3_5
    n3_3 --> n3_5
    n3_5 --> n3_6
    n3_6 --> n4
    n4 --> n5
    n5 --> n6
    n1 --> n7
    n0 -.-> n8
    n7 --> n9
    n8 --> n9
""".strip().replace("#95;", "_")

DOT = """
digraph circuit {
    node [shape=box, fontname="sans-serif"];
    n0 [label="source \\"s\\"\\n0", shape=house];
    subgraph cluster_n1 {
        label="loop \\"r\\"\\n1";
        n1_0 [label="z1 \\"r\\"\\n1.0", shape=ellipse];
        n1_1 [label="import \\"s\\"\\n1.1", shape=cds];
        n1_2 [label="plus\\n1.2"];
        n1_3 [label="distinct \\"r\\"\\n1.3"];
    }
    n2 [label="sink \\"out\\"\\n2", shape=invhouse];
    n1_3 -> n1_0 [style=dashed, constraint=false];
    n0 -> n1_1;
    n1_1 -> n1_2;
    n1_0 -> n1_2;
    n1_2 -> n1_3;
    n1_3 -> n2;
}
""".strip()


def small() -> Circuit:
    """The smallest circuit with a loop."""
    c = Circuit()
    s = c.source("s")
    c.sink("out", c.recursive(lambda r: s + r, name="r"))
    return c


def test_mermaid() -> None:
    """The golden drawing, the same for two circuits that are built alike."""
    assert closure().graph() == closure().graph("mermaid") == MERMAID


def test_dot() -> None:
    """The golden drawing for Graphviz."""
    assert small().graph("dot") == DOT


def test_json() -> None:
    """Nodes with their parents and edges with their kinds, as data."""
    report = json.loads(small().graph("json"))
    assert report["nodes"][0] == {
        "id": "0", "parent": None, "kind": "source", "operator": "source", "name": "s", "carries": ["ZSet"],
        "parameters": {},
    }  # fmt: skip
    assert report["nodes"][1]["exports"] == [{"node": "1.3", "output": 0}]
    assert [(node["id"], node["parent"]) for node in report["nodes"]][2:4] == [("1.0", "1"), ("1.1", "1")]
    assert [(edge["kind"], edge["from"], edge["to"]) for edge in report["edges"]] == [
        ("feedback", "1.3", "1.0"), ("import", "0", "1.1"), ("data", "1.1", "1.2"), ("data", "1.0", "1.2"),
        ("data", "1.2", "1.3"), ("export", "1", "2"),
    ]  # fmt: skip


def test_an_unknown_form() -> None:
    """The message names what there is."""
    with pytest.raises(CircuitError, match="mermaid, dot, json, not as 'svg'"):
        small().graph("svg")


# --------------------------------------------------------------------------------------------------------------- syntax

TEXT = r'"(?:[^"#<`%{}\\]|#\d+;|<br/>)*"'
IDENTIFIER = r"n\d+(?:_\d+)*"
NODE = re.compile(rf"({IDENTIFIER})(?:\[{TEXT}\]|\(\[{TEXT}\]\)|>{TEXT}\]|\[/{TEXT}/\]|\[\\{TEXT}\\\])")
OPENING = re.compile(rf"subgraph ({IDENTIFIER})\[{TEXT}\]")
EDGE = re.compile(rf'({IDENTIFIER}) (?:-->|-\.->)(?:\|"[\d,]+ rows?"\|)? ({IDENTIFIER})')


def check_mermaid(text: str) -> tuple[set[str], list[tuple[str, ...]], int]:
    """The nodes, edges and boxes of a drawing, if it has the grammar of a flowchart."""
    head, *lines = text.split("\n")
    assert head == "flowchart TD"
    nodes: set[str] = set()
    edges: list[tuple[str, ...]] = []
    depth = boxes = 0
    for line in map(str.strip, lines):
        if match := OPENING.fullmatch(line):
            depth, boxes = depth + 1, boxes + 1
        elif line == "end":
            depth -= 1
            assert depth >= 0
        elif match := NODE.fullmatch(line):
            assert match[1] not in nodes
            assert not edges
            nodes.add(match[1])
        else:
            match = EDGE.fullmatch(line)
            assert match, line
            edges.append(match.groups())
    assert depth == 0
    assert {end for edge in edges for end in edge} <= nodes
    return nodes, edges, boxes


def check_dot(text: str) -> int:
    """How many nodes there are, if the text is what Graphviz reads: strings closed, braces balanced."""
    bare = re.sub(r'"(?:[^"\\\n\r]|\\.)*"', "STRING", text)
    assert '"' not in bare
    assert bare.count("{") == bare.count("}")
    for line in map(str.strip, bare.split("\n")):
        assert re.fullmatch(
            r"digraph circuit \{|\}|subgraph cluster_\w+ \{|label=STRING;|node \[.*\];"
            r"|n\w+ \[label=STRING(, shape=\w+)?\];|n\w+ -> n\w+( \[.*\])?;",
            line,
        ), line
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=text, text=True, capture_output=True, check=True)
    return len(re.findall(r"^ *n[\d_]+ \[label", bare, re.MULTILINE))


@pytest.mark.parametrize("build", [circuits.flat, circuits.monotone, circuits.nested, circuits.nested_levelled])
@pytest.mark.parametrize("watched", [False, True])
def test_syntax_of_random_circuits(build: Callable[[random.Random], Circuit], watched: bool) -> None:
    """All three forms hold the same nodes and edges, each node once, each edge between nodes that there are."""
    for seed in range(10):
        c = build(random.Random(seed))
        if watched:
            c.watch()
            for deltas in circuits.deltas(random.Random(seed), ["a", "b"], 3):
                c.step(deltas)
        nodes, edges, boxes = check_mermaid(c.graph())
        data = json.loads(c.graph("json"))
        every = list(c.walk())
        loops = [node for node in every if node.kind is Kind.CHILD]
        assert len(nodes) == len(every) - len(loops) == check_dot(c.graph("dot"))
        assert boxes == len(loops)
        assert len(edges) == sum(len(node.inputs) for node in every) == len(data["edges"])
        assert len(data["nodes"]) == len(every)
        assert c.graph("json") == c.graph("json")


@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(max_size=20)
    | st.sampled_from(['"]\nend\n', "%%{init: {}}%%", "`**x**`", "<script>", "#quot;", "\\", '\\"'])
)
def test_names_stay_within_their_labels(name: str) -> None:
    """Whatever a node is called, the drawing has the same nodes."""
    c = Circuit()
    s = c.source(name).map(second).named(name)
    c.sink(name, c.recursive(lambda r: s + r, name=name))
    nodes, edges, boxes = check_mermaid(c.graph())
    assert (len(nodes), len(edges), boxes) == (7, 7, 1)
    assert check_dot(c.graph("dot")) == 7
    assert json.loads(c.graph("json"))["nodes"][0]["name"] == (name or None)
    assert len(c.explain().split("\n")) == 9


# -------------------------------------------------------------------------------------------------------------- watched


def test_watching_adds_sizes_and_times() -> None:
    """Entries and times on nodes and rows on edges, of the last step; nothing of it when watching is off."""
    c = closure()
    c.watch()
    c.step({"edges": ZSet({(n, n + 1): 1 for n in range(10)}), "names": [(1, "one"), (2, "two")]})
    c.step({"edges": {(10, 11): 1}})
    text = c.graph()
    check_mermaid(text)
    assert 'n0 -->|"1 row"| n2' in text
    assert 'n3_6 -->|"11 rows"| n4' in text
    assert 'n1 -->|"0 rows"| n7' in text
    assert 'n8 -->|"10 rows"| n9' in text
    assert re.search(r'n2\["index_with<br/>first<br/>2<br/>11 entries<br/>\d+\.\d{3} ms, 1 run"\]', text)
    assert re.search(r'n7\["distinct<br/>7<br/>2 entries"\]', text)
    assert re.search(r'subgraph n3\["loop #34;paths#34;<br/>3<br/>\d+\.\d{3} ms, 1 run"\]', text)
    assert '[label="11 rows"]' in c.graph("dot")
    data = json.loads(c.graph("json"))
    last = {node["id"]: node["last"] for node in data["nodes"]}
    assert last["3.6"]["rows_out"] == [11] == last["3"]["rows_out"]
    assert last["7"]["runs"] == 0
    assert 0 < last["3.3"]["milliseconds"] < 1000
    assert {edge["rows"] for edge in data["edges"] if edge["to"] == "9"} == {0, 10}
    c.watch(on=False)
    assert c.graph() == MERMAID


def test_a_failed_step_is_not_the_next_ones() -> None:
    """What a step that failed has cost is not shown as the cost of the next."""
    c = Circuit()

    def touchy(element: Any) -> Any:
        return 1 // element

    c.sink("out", c.source("s").map(touchy))
    c.watch()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        c.step({"s": {1: 1, 2: 1, 0: 1}})
    c.step({"s": {5: 1}})
    assert 'n0 -->|"1 row"| n1' in c.graph()


def test_explain() -> None:
    """A line for each node in the order of running, inner nodes under their loop."""
    lines = closure().explain().split("\n")
    assert lines[0].split() == ["node", "operator", "reads", "gives", "changes", "functions"]
    assert [line.split("  ")[0] or line.split()[0] for line in lines[1:5]] == ["0", "1", "2", "3"]
    assert lines[5].startswith("  3.0")
    grows = next(line for line in lines if "3.6" in line)
    assert grows.split() == ["3.6", "distinct", '"paths"', "5", "set", "grows"]
    assert next(line for line in lines if line.startswith("2 ")).split() == [
        "2",
        "index_with",
        "0",
        "index",
        "once",
        "first",
    ]
