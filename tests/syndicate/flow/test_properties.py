"""Static properties of streams: what the engine concludes from it must hold whatever has happened before."""

from __future__ import annotations

from typing import Any

from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow.node import StaticProperties
from tests.syndicate.flow.circuits import first, second, two_sources
from tests.syndicate.flow.oracle import check


def impatient() -> Circuit:
    """Reachability, and beside it candidates that are taken for good unless they were reached two iterations in."""
    c = Circuit()
    start, edges, candidates = c.source("start"), c.source("edges"), c.source("candidates")

    def bodies(r: dict[str, Stream]) -> dict[str, Stream]:
        following = r["reached"].index_with(lambda n: n).join(edges.index_with(first), lambda k, n, edge: edge[1])
        waiting = r["waiting"].map(lambda e: (e[0] + 1, e[1])).filter(lambda e: e[0] < 3)
        late = waiting.filter(lambda e: e[0] == 2).map(second)
        return {
            "reached": start + following,
            "waiting": candidates.map(lambda n: (0, n)) + waiting,
            "taken": r["taken"] + late.antijoin(r["reached"]),
        }

    for name, stream in c.recursive_many(["reached", "waiting", "taken"], bodies).items():
        c.sink(name, stream)
    return c


def test_a_negation_in_the_loop_sees_no_history() -> None:
    """An element that got a shorter way stands for the shorter way, where something in the loop can tell."""
    steps: list[dict[str, Any]] = [
        {"start": {0: 1}, "edges": {(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 4): 1}},
        {"edges": {(0, 4): 1}},
        {"candidates": {4: 1}},
        {"edges": {(0, 4): -1}},
    ]
    check(impatient(), steps)
    loop = impatient().engine.root.children[0]
    reached = next(node for node in loop.circuit.nodes if node.op == "distinct" and node.name == "reached")
    assert loop.properties.is_monotone(reached)
    assert not loop.properties.is_steady()


def test_positive_is_what_no_inverse_says_otherwise() -> None:
    """Of a cycle, each stream is positive or none is, whichever is asked first."""
    c, a, b = two_sources()
    loop = c.feedback()
    signed = (a - b) + loop
    loop.connect(signed.map(lambda e: e))
    for streams in ((signed, loop), (loop, signed)):
        properties = StaticProperties(c)
        assert [properties.is_positive(stream.port) for stream in streams] == [False, False]
    assert StaticProperties(c).is_positive((a + b).port)
    assert StaticProperties(c).is_positive(c.constant({1: 2}).port)
    assert not StaticProperties(c).is_positive(c.constant({1: -2}).port)


def test_a_long_path_through_a_loop() -> None:
    """A thousand operators one after the other in a loop: no question about a stream goes that deep."""
    c = Circuit()
    numbers = c.source("numbers")

    def body(r: Stream) -> Stream:
        for _ in range(1000):
            r = r.map(lambda n: n)
        return numbers + r

    c.sink("out", c.recursive(body))
    assert c.step({"numbers": {7: 1}})["out"] == ZSet({7: 1})
