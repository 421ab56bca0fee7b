r"""Graphs: a circuit as a drawing, in the language of Mermaid or of Graphviz, or as data.

A loop is a box with its nodes in it.  An edge into a feedback is dashed, since what it carries arrives one tick
later; an edge to an import or out of a loop crosses the box.  While the circuit is watched, nodes show how many entries
they keep, and the time and runs of the last step; edges show the rows that they carried in it.

Contract: the text is the same in every process that builds the circuit alike; names cannot break out of their label.

>>> from syndicate.flow import Circuit
>>> c = Circuit(); c.sink("seen", c.source("visits").distinct()); print(c.graph())
flowchart TD
    n0[/"source #34;visits#34;<br/>0"/]
    n1["distinct<br/>1"]
    n2[\"sink #34;seen#34;<br/>2"\]
    n0 --> n1
    n1 --> n2

Source: ``docs/design/flow.md``, "Looking in, and snapshots".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from attrs import frozen

from syndicate.drawing import Box, Drawing, Line, Load, dot_text, mermaid_text
from syndicate.errors import CircuitError
from syndicate.flow.measure import ports_of
from syndicate.flow.node import Carries, Kind, Netlist, Node, Port, StaticProperties
from syndicate.flow.profile import Reading, in_columns, readings
from syndicate.flow.structure import described, identity, labelled, shown

if TYPE_CHECKING:
    from syndicate.flow.local_engine import LocalEngine
    from syndicate.flow.node import GlobalId


@frozen
class Edge:
    """From an output of a node to a node; *kind* is ``data``, ``feedback``, ``import``, or ``export`` out of a loop."""

    kind: str
    tail: Node
    output: int
    head: Node
    drawn_from: Node
    """The node within the loop, where *tail* is a loop."""


def edges(circuit: Netlist) -> Iterator[Edge]:
    """All edges of a circuit and of its loops, by the node that they lead to."""
    for node in circuit.nodes:
        for port in node.inputs:
            inside = circuit.above if node.kind is Kind.IMPORT and circuit.above is not None else circuit
            tail = inside.nodes[port.node]
            kind = "import" if node.kind is Kind.IMPORT else "feedback" if node.kind is Kind.FEEDBACK else "data"
            yield Edge(
                "export" if kind == "data" and tail.child is not None else kind,
                tail,
                port.output,
                node,
                _inner(tail, port),
            )
        if node.child is not None:
            yield from edges(node.child)


def _inner(tail: Node, port: Port) -> Node:
    while tail.child is not None:
        port = tail.child.exports[port.output]
        tail = tail.child.nodes[port.node]
    return tail


def graph(circuit: Netlist, form: str, engine: LocalEngine | None) -> str:
    """A drawing of the circuit; *form* is ``mermaid``, ``dot`` or ``json``."""
    draw = _FORMS.get(form)
    if draw is None:
        raise CircuitError(f"graph() draws as {', '.join(_FORMS)}, not as {form!r}")
    return draw(circuit, readings(engine) if engine is not None and engine.measures is not None else {})


Readings = dict["GlobalId", Reading]


def _lines(node: Node, readings: Readings) -> list[str]:
    """The text in a node."""
    params = _parameters(node)
    lines = [labelled(node), *([", ".join(params)] if params else []), identity(node)]
    reading = readings.get(node.global_id)
    if reading is None:
        return lines
    if reading.entries:
        lines.append(_counted(reading.entries, "entry", "entries"))
    if reading.last_runs:
        lines.append(f"{1e3 * reading.last_seconds:.3f} ms, {_counted(reading.last_runs, 'run', 'runs')}")
    return lines


def _parameters(node: Node) -> list[str]:
    return [described(value) for key, value in node.params.items() if value is not None and key not in _UNSHOWN]


_UNSHOWN: Final = frozenset({"grows", "limit", "part", "zset"})


def _rows(edge: Edge, readings: Readings) -> int | None:
    reading = readings.get(edge.tail.global_id)
    return None if reading is None else reading.rows_out[edge.output]


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def drawing(circuit: Netlist) -> Drawing:
    """The circuit as boxes and lines."""
    boxes = tuple(
        Box(
            identity(node),
            labelled(node),
            "loop" if node.child is not None else node.kind.value,
            ".".join(map(str, node.circuit.path)),
            ", ".join(
                described(value) for key, value in node.params.items() if value is not None and key not in _UNSHOWN
            ),
        )
        for node in circuit.walk()
    )
    lines = tuple(
        Line(identity(edge.drawn_from), identity(edge.head), "later" if edge.kind == "feedback" else "now")
        for edge in edges(circuit)
    )
    return Drawing("circuit", boxes, lines)


def loads(engine: LocalEngine) -> dict[str, Load]:
    """What each node of a running circuit keeps, and, while it is watched, has cost."""
    return {
        ".".join(map(str, path)): Load(
            reading.entries, reading.last_seconds, reading.measure.seconds, sum(reading.rows_out)
        )
        for path, reading in readings(engine).items()
    }


# ------------------------------------------------------------------------------------------------------------- mermaid


def _mermaid(circuit: Netlist, readings: Readings) -> str:
    lines = ["flowchart TD", *_mermaid_nodes(circuit, readings, "    ")]
    for edge in edges(circuit):
        rows = _rows(edge, readings)
        label = "" if rows is None else f'|"{_counted(rows, "row", "rows")}"|'
        arrow = "-.->" if edge.kind == "feedback" else "-->"
        lines.append(f"    {_name(edge.drawn_from)} {arrow}{label} {_name(edge.head)}")
    return "\n".join(lines)


def _mermaid_nodes(circuit: Netlist, readings: Readings, indent: str) -> Iterator[str]:
    for node in circuit.nodes:
        label = "<br/>".join(map(mermaid_text, _lines(node, readings)))
        if node.child is None:
            opening, closing = _SHAPES[node.kind]
            yield f'{indent}{_name(node)}{opening}"{label}"{closing}'
        else:
            yield f'{indent}subgraph {_name(node)}["{label}"]'
            yield from _mermaid_nodes(node.child, readings, indent + "    ")
            yield f"{indent}end"


_SHAPES: Final = {
    Kind.OPERATOR: ("[", "]"),
    Kind.FEEDBACK: ("([", "])"),
    Kind.IMPORT: (">", "]"),
    Kind.SINK: ("[\\", "\\]"),
    Kind.SOURCE: ("[/", "/]"),
}


def _name(node: Node) -> str:
    return "n" + "_".join(map(str, node.global_id))


# ----------------------------------------------------------------------------------------------------------------- dot


def _dot(circuit: Netlist, readings: Readings) -> str:
    lines = [
        "digraph circuit {",
        '    node [shape=box, fontname="sans-serif"];',
        *_dot_nodes(circuit, readings, "    "),
    ]
    for edge in edges(circuit):
        rows = _rows(edge, readings)
        label = [] if rows is None else [f'label="{_counted(rows, "row", "rows")}"']
        style = ["style=dashed", "constraint=false"] if edge.kind == "feedback" else []
        attributes = f" [{', '.join([*label, *style])}]" if label or style else ""
        lines.append(f"    {_name(edge.drawn_from)} -> {_name(edge.head)}{attributes};")
    return "\n".join([*lines, "}"])


def _dot_nodes(circuit: Netlist, readings: Readings, indent: str) -> Iterator[str]:
    for node in circuit.nodes:
        label = "\\n".join(map(dot_text, _lines(node, readings)))
        if node.child is None:
            shape = _DOT_SHAPES.get(node.kind)
            yield f'{indent}{_name(node)} [label="{label}"{f", shape={shape}" if shape else ""}];'
        else:
            yield f"{indent}subgraph cluster_{_name(node)} {{"
            yield f'{indent}    label="{label}";'
            yield from _dot_nodes(node.child, readings, indent + "    ")
            yield f"{indent}}}"


_DOT_SHAPES: Final = {
    Kind.FEEDBACK: "ellipse",
    Kind.IMPORT: "cds",
    Kind.SINK: "invhouse",
    Kind.SOURCE: "house",
}


# ---------------------------------------------------------------------------------------------------------------- json


def _json(circuit: Netlist, readings: Readings) -> str:
    nodes = [_json_node(node, readings) for node in circuit.walk()]
    return json.dumps({"nodes": nodes, "edges": _json_edges(circuit, readings)}, indent=2, ensure_ascii=False)


def _json_node(node: Node, readings: Readings) -> dict[str, object]:
    parameters: dict[str, object] = {key: described(value) for key, value in node.params.items() if value is not None}
    entry: dict[str, object] = {
        "id": identity(node),
        "parent": ".".join(map(str, node.circuit.path)) or None,
        "kind": node.kind.value,
        "operator": node.op,
        "name": node.name or None,
        "carries": [kind.value for kind in node.carries],
        "parameters": parameters,
    }
    if node.child is not None:
        entry["exports"] = [
            {"node": identity(node.child.nodes[port.node]), "output": port.output} for port in node.child.exports
        ]
        parameters["limit"] = node.params["limit"]
    reading = readings.get(node.global_id)
    if reading is not None:
        entry["entries"] = reading.entries
        entry["last"] = {
            "runs": reading.last_runs,
            "milliseconds": 1e3 * reading.last_seconds,
            "rows_in": reading.last_rows_in,
            "rows_out": list(reading.rows_out),
        }
    return entry


def _json_edges(circuit: Netlist, readings: Readings) -> list[dict[str, object]]:
    entries = []
    for edge in edges(circuit):
        entry: dict[str, object] = {
            "kind": edge.kind,
            "from": identity(edge.tail),
            "output": edge.output,
            "to": identity(edge.head),
            "carries": edge.tail.carries[edge.output].value,
        }
        rows = _rows(edge, readings)
        entries.append(entry if rows is None else {**entry, "rows": rows})
    return entries


_FORMS: Final[dict[str, Callable[[Netlist, Readings], str]]] = {"mermaid": _mermaid, "dot": _dot, "json": _json}


# ------------------------------------------------------------------------------------------------------------- explain


def explain(circuit: Netlist) -> str:
    """The nodes in the order in which they run: what each reads and gives, how often it can change, and its functions.

    ``once`` is at most once a step, also in a loop; ``grows`` marks a loop's distinct that is computed by the monotone
    method.
    """
    table = [["node", "operator", "reads", "gives", "changes", "functions"]]
    table += _explained(circuit, StaticProperties(circuit), "")
    return "\n".join(in_columns(table, left=6))


def _explained(circuit: Netlist, properties: StaticProperties, indent: str) -> Iterator[list[str]]:
    for node in circuit.order():
        reads = ", ".join(map(shown, dict.fromkeys(ports_of(node) or node.inputs)))
        gives = ", ".join(dict.fromkeys(_GIVES[kind] for kind in node.carries))
        yield [
            indent + identity(node),
            labelled(node),
            reads,
            gives,
            _changes(node, properties),
            ", ".join(_parameters(node)),
        ]
        if node.child is not None:
            yield from _explained(node.child, StaticProperties(node.child, properties), indent + "  ")


_GIVES: Final = {Carries.ZSET: "set", Carries.INDEXED: "index", Carries.TRACE: "trace"}


def _changes(node: Node, properties: StaticProperties) -> str:
    if not node.carries:
        return ""
    if all(properties.is_flat(Port(node.id, output)) for output in range(len(node.carries))):
        return "once"
    grows = node.op == "distinct" and node.circuit.depth == 1 and properties.is_monotone(node)
    return "grows" if grows else "each tick"
