"""What a notebook shows of circuits, programs, verdicts, runs, tables: pictures, and nobody's markup."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from syndicate.bloom.library.paths import Routes
from syndicate.dedalus import Program
from syndicate.flow import Circuit, ZSet

HOSTILE = '<img src=x onerror="1">'


def broadcast() -> Any:
    """A run of Dedalus with messages."""
    return Program.parse(
        'node("a", "b")@1; bcast("a", "<b>")@1; log(M, P)@async :- bcast(N, P), node(N, M); persist[log, 2];'
    ).run(until=3)


def test_circuits_and_programs_are_drawings() -> None:
    """In Markdown that notebooks and forges draw."""
    circuit = Circuit()
    circuit.sink("seen", circuit.source(HOSTILE).distinct())
    shown = circuit._repr_markdown_()
    assert shown.startswith("```mermaid\nflowchart TD")
    assert shown.endswith("\n```")
    assert "<img" not in shown
    assert Routes()._repr_markdown_().startswith("```mermaid\n")


def test_verdicts_are_tables() -> None:
    """Each output with whether it is confluent, and the whole report."""
    shown = Routes().calm()._repr_html_()
    assert "0 points of order" in shown
    assert shown.startswith("<table>")


def test_collections_are_tables() -> None:
    """With weights, the first twenty, as text."""
    shown = ZSet({HOSTILE: -2, **{str(number): 1 for number in range(30)}})._repr_html_()
    assert shown.count("<tr>") == 21
    assert "<td>-2</td>" in shown
    assert "31 elements, the first 20 of which are shown" in shown
    assert "<img" not in shown


@pytest.mark.parametrize("of", [broadcast, lambda: Program.parse("a(1)@1;").run(until=1)])
def test_runs_are_pictures(of: Any) -> None:
    """An SVG that is one, whatever the values are."""
    picture = of()._repr_svg_()
    root = ET.fromstring(picture)
    assert root.tag.endswith("svg")
    assert "<b>" not in picture
