"""Space and time: what is drawn of the rows between programs is what the network carried."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, bloom, channel, table
from syndicate.bloom.insight.spacetime import spacetime
from syndicate.errors import IllegalRule


class Ring(Bloom):
    """Hands a number on, round and round, and keeps what it has seen."""

    ball = channel(["@to", "n"])
    following, seen = table(["at"]), table(["n"])

    @bloom
    def rules(self) -> None:
        """One less each time."""
        self.seen <= self.ball.payloads()
        self.ball < ~(self.ball * self.following).pairs(lambda b, f: (f.at, b.n - 1) if b.n else None)


def ring(*names: str, **options: Any) -> Network:
    """A network of some, each of which knows the next."""
    programs = [Ring(address=name) for name in names]
    for program, after in zip(programs, names[1:] + names[:1], strict=True):
        program.following <= [(after,)]
    return Network(*programs, record=True, **options)


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_a_ball(names: str) -> None:
    """It goes from each to the next, and leaves in the tick in which it came."""
    net = ring(*names)
    net.programs["a"].deliver("ball", [("a", 6)])
    net.run()
    assert [one.row[1] for one in net.passages] == [5, 4, 3, 2, 1, 0]
    for before, after in zip(net.passages, net.passages[1:], strict=False):
        assert (before.receiver, before.arrived) == (after.sender, after.left)
    assert len(spacetime(net).splitlines()) == 6


@pytest.mark.parametrize("seed", range(8))
def test_what_is_lost_and_comes_twice(seed: int) -> None:
    """Each row that arrived, and each that was lost, is one arrow between ticks that are there."""
    net = ring("a", "b", "c", seed=seed, loss=0.2, repeat=0.3, delay=2)
    for n in (4, 5, 6):
        net.programs["a"].deliver("ball", [("a", n)])
    net.run()
    came = Counter((one.receiver, one.row[1]) for one in net.passages if one.arrived is not None)
    assert {(name, row.n) for name, p in net.programs.items() for row in p.collection("seen")} >= set(came)
    assert sum(one.arrived is None for one in net.passages) == net.lost
    assert all(one.left < net.programs[one.sender].budtime for one in net.passages)
    drawn = spacetime(net, "dot")
    assert drawn.count("style=dashed") == net.lost
    assert drawn.count("constraint=false") == len(net.passages)
    nodes = re.findall(r"^    (p\w+) \[", drawn, re.MULTILINE)
    assert len(nodes) == len(set(nodes))
    ends = {end for pair in re.findall(r"(p\w+) -> (\w+)", drawn) for end in pair}
    assert {end for end in ends if not end.startswith("lost")} <= set(nodes)


def test_refused() -> None:
    """Another form, and a network that records nothing."""
    with pytest.raises(IllegalRule, match="text, dot"):
        spacetime(ring("a", "b"), "gif")
    with pytest.raises(IllegalRule, match="record=True"):
        spacetime(Network(Ring(address="a")))


def test_rows_to_nobody() -> None:
    """What was sent to an address that nobody has is drawn as well, as lost."""
    alone = Ring(address="a")
    alone.following <= [("nobody",)]
    net = Network(alone, record=True)
    alone.deliver("ball", [("a", 1)])
    net.run()
    assert "'a' in tick 0 -> 'nobody' lost: ball('nobody', 0)" in spacetime(net).splitlines()
    assert all("nobody" in spacetime(net, form) for form in ("dot", "mermaid"))
