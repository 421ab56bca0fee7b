"""Space and time: each form draws each message, whatever the places are called, for Bloom and for Dedalus."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from syndicate.bloom.insight.spacetime import spacetime
from syndicate.dedalus import Net, Program
from syndicate.errors import FactError, IllegalRule, PlanError
from syndicate.explain.spacetime import FORMS, Mark, SpaceTime
from tests.syndicate.bloom.insight.test_spacetime import ring

LABELS = ['a"', "b\\", "<c>", "d;#", "e\nf"]


def some(rng: random.Random, clock: str) -> SpaceTime:
    """Random messages and crashes."""
    places: dict[Hashable, str] = {n: rng.choice(LABELS) for n in range(rng.randrange(1, 5))}
    marks = []
    for _ in range(rng.randrange(12)):
        time, lost = rng.randrange(9), rng.random() < 0.3
        arrive = () if lost else tuple(rng.sample(range(12), rng.randrange(1, 3)))
        marks.append(Mark(time, "message", rng.choice([*places]), rng.choice([*places]), "m\"1\", 'x'", arrive, lost))
    crashes: dict[Hashable, int] = {} if clock else {n: rng.randrange(9) for n in places if rng.random() < 0.3}
    marks += [Mark(at, "crash", n, None, "crashes") for n, at in crashes.items()]
    return SpaceTime(places, sorted(marks, key=lambda mark: mark.time), crashes, 9, clock)


def ends_of(dot: str) -> tuple[set[str], list[tuple[str, str]]]:
    """The nodes that a drawing declares, and its messages."""
    nodes = re.findall(r"^    (\w+) \[", dot, re.MULTILINE)
    assert nodes.count("node") == 1
    assert len(nodes) == len(set(nodes))
    return set(nodes), re.findall(r"(\w+) -> (\w+) \[label", dot)


@pytest.mark.parametrize("clock", ["", "tick"])
@pytest.mark.parametrize("seed", range(30))
def test_each_message_is_drawn(seed: int, clock: str) -> None:
    """Text has a line for each mark, DOT an arrow for each arrival or loss, Mermaid an arrow for each message."""
    diagram = some(random.Random(seed), clock)
    messages = [mark for mark in diagram.marks if mark.what == "message"]
    lines = diagram.draw().splitlines()
    if clock == "tick":
        assert diagram.draw().count("in tick") == sum(1 + len(one.arrive) for one in messages)
    elif not any("\n" in label for label in diagram.places.values()):
        assert len(lines) == 1 + len(diagram.marks)
    nodes, arrows = ends_of(diagram.draw("dot"))
    assert {end for pair in arrows for end in pair if not end.startswith("lost")} <= nodes
    assert len(arrows) == sum(max(1, len(one.arrive)) for one in messages)
    assert sum(end.startswith("lost") for _, end in arrows) == sum(one.lost for one in messages)
    mermaid = diagram.draw("mermaid").splitlines()
    assert sum("->>" in line for line in mermaid) == sum(not one.lost for one in messages)
    assert sum("-x" in line for line in mermaid) == sum(one.lost for one in messages)
    svg = ET.fromstring(diagram.draw("svg"))
    elsewhere = [one for one in messages if one.sender != one.receiver]
    kinds = [line.get("class", "") for line in svg.iterfind(".//{*}line")]
    assert kinds.count("lane") == len(diagram.places)
    assert (kinds.count(""), kinds.count("lost")) == (
        sum(not one.lost for one in elsewhere),
        sum(one.lost for one in elsewhere),
    )
    with pytest.raises(PlanError, match="text, dot, mermaid and svg"):
        diagram.draw("png")


@pytest.mark.parametrize("seed", range(4))
def test_a_dedalus_run_as_dot(seed: int) -> None:
    """Nodes that crash, messages that are lost, late or come twice."""
    program = Program.parse("""
        ping("a", "b")@1;  peer("b", "c");  peer("c", "a");  persist[pong, 2]; persist[peer, 2];
        pong(Y, X)@async :- ping(X, Y);  pong(Z, X)@async :- pong(X, _), peer(X, Z);
    """)
    net = Net(nodes=["a", "b", "c"], loss=0.3, duplicate=0.3, delay=(1, 2), crash={"c": 5})
    model = program.run(until=6, seed=seed, net=net)
    dot: Any = model.diagram("dot")
    nodes, arrows = ends_of(dot)
    assert {end for pair in arrows for end in pair if not end.startswith("lost")} <= nodes
    assert (
        sum(end.startswith("lost") for _, end in arrows) == dot.count("style=dashed") == model.diagram().count("lost")
    )
    assert dot.count("Msquare") == 1


def test_a_bloom_network_as_mermaid() -> None:
    """Each row is an arrow with the ticks of both."""
    net = ring("a", "b")
    net.programs["a"].deliver("ball", [("a", 3)])
    net.run()
    lines = spacetime(net, "mermaid").splitlines()
    assert lines[1:4] == [
        "    participant n0 as 'a'",
        "    participant n1 as 'b'",
        "    n0->>n1: ball('b', 2), tick 0 to 1",
    ]
    assert len(lines) == 3 + len(net.passages)


def test_forms() -> None:
    """All languages have the same."""
    assert FORMS == ("text", "dot", "mermaid", "svg")
    form: Any = "png"
    with pytest.raises(FactError, match="text, dot, mermaid and svg"):
        Program.parse("p(1);").run(1, 2).diagram(form)
    with pytest.raises(IllegalRule, match="text, dot, mermaid"):
        spacetime(ring("a", "b"), "png")
