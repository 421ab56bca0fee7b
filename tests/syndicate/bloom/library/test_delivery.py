"""Delivery: once, at least once, exactly once, over a network that loses and repeats; also behind a module."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections import Counter

import pytest

from syndicate.bloom import Bloom, Network, bloom, import_module, interface
from syndicate.bloom.library.delivery import BestEffort, ExactlyOnce, Reliable

PACKETS = 12


def arrivals(cls: type[BestEffort], seed: int) -> tuple[Counter[int], Counter[int]]:
    """How often each packet came out, and was noted as sent, over a bad network."""
    a, b = cls(address="a"), cls(address="b")
    net = Network(a, b, seed=seed, loss=0.3, repeat=0.3, delay=3)
    out: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    b.callback("pipe_out", lambda rows: out.update(row.ident for row in rows))
    a.callback("pipe_sent", lambda rows: sent.update(row.ident for row in rows))
    a.pipe_in <= [("b", "a", n, "x") for n in range(PACKETS)]
    net.run()
    while isinstance(a, Reliable) and a.send_buf:
        a.fire("timer")
        net.run()
    return out, sent


@pytest.mark.parametrize("cls", [BestEffort, Reliable, ExactlyOnce])
def test_how_often_it_comes(cls: type[BestEffort]) -> None:
    """Sometimes never; always; always, and never twice."""
    runs = [arrivals(cls, seed) for seed in range(15)]
    least = min(out[n] for out, _ in runs for n in range(PACKETS))
    most = max(out[n] for out, _ in runs for n in range(PACKETS))
    assert (least, most > 1) == {BestEffort: (0, True), Reliable: (1, True), ExactlyOnce: (1, False)}[cls]
    assert all(set(sent.values()) == {1} and len(sent) == PACKETS for _, sent in runs)


def test_what_the_analysis_says() -> None:
    """Dropping what has come before is a point of order, which the other two do without."""
    assert BestEffort().calm().confluent
    points = [[point.rule.head for point in cls(address="a").calm().points] for cls in (Reliable, ExactlyOnce)]
    assert points == [[], ["pipe_out"]]


class Greeter(Bloom):
    """Greets by the delivery that it imports."""

    greet = interface("input", ["name"], [])
    greeted = interface("output", ["who", "text"], [])
    post = import_module(ExactlyOnce)

    @bloom
    def pass_on(self) -> None:
        """In and out."""
        me = self.address
        self.post.pipe_in <= self.greet.map(lambda g: (g.name, me, f"to {g.name}", "hello"))
        self.greeted <= self.post.pipe_out.map(lambda p: (p.src, p.payload))


def test_as_a_module() -> None:
    """What is imported sends for its importer."""
    a, b = Greeter(address="a"), Greeter(address="b")
    net = Network(a, b, repeat=1.0)
    got: list[tuple[str, str]] = []
    b.callback("greeted", lambda rows: got.extend(map(tuple, rows)))
    a.greet <= [("b",)]
    net.run()
    assert got == [("a", "hello")]
    assert len(a.post.send_buf) == 0
