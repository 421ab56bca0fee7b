"""Plots: the dataflow of a program, from what comes from outside to what goes there, with its points of order.

>>> from syndicate.bloom import Bloom, agg, bloom, scratch, table
>>> class Count(Bloom):
...     word = scratch(["text"], []); words = table(["text"], []); number = scratch(["n"], [])
...     @bloom
...     def rules(self):
...         self.words <= self.word
...         self.number <= self.words.group([], agg.count())
>>> print(plot(Count()))
flowchart LR
    classDef order stroke:#c00,stroke-width:2px
    S(("S"))
    T(("T"))
    subgraph stratum0["stratum 0"]
        n0["word<br/>scratch"]
        n1[("words<br/>table")]
    end
    subgraph stratum1["stratum 1"]
        n2["number<br/>scratch<br/>N"]:::order
    end
    n0 --> n1
    n1 -->|"N: count()"| n2
    S --> n0
    n2 --> T
    linkStyle 1 stroke:#c00

An edge leads from what a rule reads to what it writes: dashed if it is sent, ``+`` in the next tick, ``-`` deleted
then, ``+-`` replaced then, red with ``N`` where order matters (:mod:`~syndicate.bloom.insight.calm`).  A collection
shows the labels of the paths to it.  ``S`` is what comes from outside, ``T`` what somebody there sees, ``??`` what an
interface lacks.

Contract: the text is the same for the same program; names cannot break out of their label.

Source: Bud (``budplot``); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from attrs import frozen

from syndicate.bloom.declaration import TABLES, Kind, Rule
from syndicate.bloom.insight.calm import ASYNCHRONOUS, Calm, Point, calm_of
from syndicate.bloom.insight.introspection import lacking
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.tick.runtime import Instantiated, Runtime, runtime_of
from syndicate.drawing import Box, Drawing, Line, dot_text, mermaid_text
from syndicate.errors import IllegalRule
from syndicate.graph import components

FORMS: Final = ("mermaid", "dot", "json")
_OPERATORS: Final = {"<+": "+", "<-": "-", "<+-": "+-"}
_SHAPES: Final = {
    Kind.CHANNEL: (">", "]", "cds"),
    Kind.LOOPBACK: (">", "]", "cds"),
    Kind.INPUT: ("[/", "/]", "house"),
    Kind.OUTPUT: ("[\\", "\\]", "invhouse"),
    Kind.PERIODIC: ("([", "])", "ellipse"),
    **dict.fromkeys(TABLES, ("[(", ")]", "cylinder")),
}


@frozen
class PlotNode:
    """A collection, or several of a cycle that was collapsed."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    stratum: int
    labels: tuple[str, ...]
    verdict: str

    @property
    def lines(self) -> list[str]:
        """What is written in it."""
        kinds = ", ".join(dict.fromkeys(kind.value for kind in self.kinds))
        return [", ".join(self.names), kinds, *([", ".join(self.labels)] if self.labels else [])]


class PlotRule(Protocol):
    """A rule, as a drawing names it."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def site(self) -> str:
        """Where it is written."""


@frozen
class PlotEdge:
    """From a node to another by some rules; *why* says where order matters, if it does."""

    tail: int | str
    head: int | str
    op: str = ""
    rules: tuple[PlotRule, ...] = ()
    asynchronous: bool = False
    why: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What is written at it."""
        said = [self.op] if self.op else []
        return "; ".join([*said, *([f"N: {', '.join(self.why)}"] if self.why else [])])


@frozen
class Plot:
    """A program as a graph; ends of edges are indexes of nodes, ``S``, ``T`` or ``??``."""

    name: str
    nodes: tuple[PlotNode, ...]
    edges: tuple[PlotEdge, ...]

    def ends(self) -> list[str]:
        """The ends that are no collections."""
        return list(dict.fromkeys(end for edge in self.edges for end in (edge.tail, edge.head) if isinstance(end, str)))


def plot(program: Instantiated, form: str = "mermaid", *, collapse: bool = False) -> str:
    """A drawing, as ``mermaid``, ``dot`` or ``json``; with *collapse*, each cycle is one node."""
    return draw(graph_of(program, collapse=collapse), form)


def draw(graph: Plot, form: str = FORMS[0]) -> str:
    """A graph as ``mermaid``, ``dot`` or ``json``."""
    if form not in _DRAW:
        raise IllegalRule(f"plot() draws as {', '.join(FORMS)}, not as {form!r}")
    return _DRAW[form](graph)


def graph_of(program: Instantiated, *, collapse: bool = False) -> Plot:
    """The graph of a program."""
    return graph_of_runtime(runtime_of(program), collapse=collapse)


def graph_of_runtime(runtime: Runtime, *, collapse: bool = False) -> Plot:
    """The graph of what ticks."""
    rules, calm = runtime.wiring.rules, calm_of(runtime)
    kinds = {name: kind_of(one) for name, one in runtime.collections.items()}
    used = {rule.head for rule in rules} | {one.name for rule in rules for one in rule.reads()}
    names = [name for name in kinds if name in used or name not in ("halt", "localtick", "now")]
    groups = _cycles(names, rules) if collapse else [[name] for name in names]
    at = {name: place for place, group in enumerate(groups) for name in group}
    levels = {name: one.level for one in runtime.wiring.program.strata() for name in one.relations}
    nodes = tuple(_node(group, kinds, calm, levels) for group in groups)
    edges = [
        *_edges(rules, calm, at),
        *_outer(rules, dict(lacking(runtime.collections.values(), rules)), kinds, calm, at),
    ]
    return Plot(runtime.name, nodes, tuple(edges))


def _node(group: list[str], kinds: dict[str, Kind], calm: Calm, levels: dict[str, int]) -> PlotNode:
    labels = dict.fromkeys(label for name in group for label in calm[name].labels if label)
    verdicts = [calm[name].verdict for name in group]
    worst = next((v for v in ("diffluent", "unknown", "ordered") if v in verdicts), "confluent")
    level = max(levels.get(name, 0) for name in group)
    return PlotNode(tuple(group), tuple(kinds[name] for name in group), level, tuple(sorted(labels)), worst)


def _cycles(names: list[str], rules: Iterable[Rule]) -> list[list[str]]:
    """The names, those together that depend on each other."""
    below: dict[str, list[str]] = {name: [] for name in names}
    for rule in rules:
        below[rule.head] += [one.name for one in rule.reads()]
    place = {name: number for number, name in enumerate(names)}
    groups = [sorted(group, key=place.__getitem__) for group in components(names, below.__getitem__)]
    return sorted(groups, key=lambda group: place[group[0]])


def _edges(rules: Iterable[Rule], calm: Calm, at: dict[str, int]) -> Iterator[PlotEdge]:
    points: dict[Rule, list[Point]] = {}
    for point in calm.points:
        points.setdefault(point.rule, []).append(point)
    groups: dict[tuple[int, int, str, tuple[str, ...]], list[Rule]] = {}
    for rule in rules:
        for name in dict.fromkeys(one.name for one in rule.reads()):
            why = tuple(
                point.hazard.why
                for point in points.get(rule, ())
                if name in point.hazard.of or name in point.hazard.with_
            )
            op = _OPERATORS.get(rule.op, "~" if rule.op == "<~" else "")
            if at[name] != at[rule.head] or op or why or len([n for n in at if at[n] == at[name]]) == 1:
                groups.setdefault((at[name], at[rule.head], op, why), []).append(rule)
    for (tail, head, op, why), some in groups.items():
        yield PlotEdge(tail, head, "" if op == "~" else op, tuple(some), op == "~", tuple(dict.fromkeys(why)))


def _outer(
    rules: Sequence[Rule], lacks: Mapping[str, str], kinds: dict[str, Kind], calm: Calm, at: dict[str, int]
) -> Iterator[PlotEdge]:
    """What comes from outside, what goes there, and what is lacking."""
    read = {one.name for rule in rules for one in rule.reads()}
    written = {rule.head for rule in rules}
    for name, place in at.items():
        kind = kinds[name]
        if name in lacks:
            yield PlotEdge(place, "??") if kind is Kind.INPUT else PlotEdge("??", place)
        external = name not in written or kind in ASYNCHRONOUS or (kind is Kind.INPUT and "." not in name)
        if external and (name in read or kind is Kind.INPUT) and kind is not Kind.CONST:
            yield PlotEdge("S", place, asynchronous=kind in ASYNCHRONOUS)
    for output in calm.outputs:
        if output.name in at:
            yield PlotEdge(at[output.name], "T", asynchronous=kinds[output.name] in ASYNCHRONOUS)


def drawing(graph: Plot, language: str) -> Drawing:
    """The same as boxes and lines, as all kinds of rules have them; a box is called as what it holds."""
    names = [", ".join(node.names) for node in graph.nodes]
    boxes = [
        Box(
            name,
            name,
            node.kinds[0].value,
            note=", ".join([f"stratum {node.stratum}", *node.labels]),
            order=node.verdict != "confluent",
        )
        for name, node in zip(names, graph.nodes, strict=True)
    ]
    ends = [Box(end, _ENDS[end], "outside") for end in sorted(graph.ends())]
    lines = [
        Line(
            names[edge.tail] if isinstance(edge.tail, int) else edge.tail,
            names[edge.head] if isinstance(edge.head, int) else edge.head,
            "sent" if edge.asynchronous else "later" if edge.op else "now",
            ", ".join(edge.why),
        )
        for edge in graph.edges
    ]
    return Drawing(language, (*boxes, *ends), tuple(lines))


_ENDS: Final = {"S": "from outside", "T": "to outside", "??": "not connected"}


# ------------------------------------------------------------------------------------------------------------- drawing


def _end(end: int | str) -> str:
    return f"n{end}" if isinstance(end, int) else "U" if end == "??" else end


def _strata(graph: Plot) -> Iterator[tuple[int, list[tuple[int, PlotNode]]]]:
    for level in sorted({node.stratum for node in graph.nodes}):
        yield level, [(place, node) for place, node in enumerate(graph.nodes) if node.stratum == level]


def _mermaid(graph: Plot) -> str:
    lines = ["flowchart LR", "    classDef order stroke:#c00,stroke-width:2px"]
    lines += [f'    {_end(end)}(("{mermaid_text(end)}"))' for end in sorted(graph.ends())]
    for level, nodes in _strata(graph):
        lines.append(f'    subgraph stratum{level}["stratum {level}"]')
        for place, node in nodes:
            opening, closing, _ = _SHAPES.get(node.kinds[0], ("[", "]", ""))
            label = "<br/>".join(map(mermaid_text, node.lines))
            order = "" if node.verdict == "confluent" else ":::order"
            lines.append(f'        n{place}{opening}"{label}"{closing}{order}')
        lines.append("    end")
    for edge in graph.edges:
        said = f'|"{mermaid_text(edge.label)}"|' if edge.label else ""
        lines.append(f"    {_end(edge.tail)} {'-.->' if edge.asynchronous else '-->'}{said} {_end(edge.head)}")
    red = ",".join(str(at) for at, edge in enumerate(graph.edges) if edge.why)
    return "\n".join([*lines, *([f"    linkStyle {red} stroke:#c00"] if red else [])])


def _dot(graph: Plot) -> str:
    lines = ["digraph bloom {", "    rankdir=LR;", '    node [shape=box, fontname="sans-serif"];']
    lines += [f'    {_end(end)} [label="{dot_text(end)}", shape=circle];' for end in sorted(graph.ends())]
    for level, nodes in _strata(graph):
        lines += [f"    subgraph cluster_{level} {{", f'        label="stratum {level}";']
        for place, node in nodes:
            label = "\\n".join(map(dot_text, node.lines))
            _, _, shape = _SHAPES.get(node.kinds[0], ("", "", "box"))
            order = "" if node.verdict == "confluent" else ", color=red"
            lines.append(f'        n{place} [label="{label}", shape={shape}{order}];')
        lines.append("    }")
    for edge in graph.edges:
        said = [f'label="{dot_text(edge.label)}"'] if edge.label else []
        style = [*(["style=dashed"] if edge.asynchronous else []), *(["color=red"] if edge.why else [])]
        drawn = f" [{', '.join([*said, *style])}]" if said or style else ""
        lines.append(f"    {_end(edge.tail)} -> {_end(edge.head)}{drawn};")
    return "\n".join([*lines, "}"])


def _json(graph: Plot) -> str:
    nodes = [
        {
            "id": _end(place),
            "collections": list(node.names),
            "kinds": [kind.value for kind in node.kinds],
            "stratum": node.stratum,
            "labels": list(node.labels),
            "verdict": node.verdict,
        }
        for place, node in enumerate(graph.nodes)
    ]
    edges = [
        {
            "from": edge.tail if isinstance(edge.tail, str) else _end(edge.tail),
            "to": edge.head if isinstance(edge.head, str) else _end(edge.head),
            "operator": edge.op or None,
            "asynchronous": edge.asynchronous,
            "points_of_order": list(edge.why),
            "rules": [{"number": rule.number, "site": rule.site} for rule in edge.rules],
        }
        for edge in graph.edges
    ]
    return json.dumps({"program": graph.name, "nodes": nodes, "edges": edges}, indent=2, ensure_ascii=False)


_DRAW: Final[dict[str, Callable[[Plot], str]]] = {"mermaid": _mermaid, "dot": _dot, "json": _json}
