"""Paxos: one value for a slot, and one log, over networks that lose, repeat, delay and part."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random

import pytest

from syndicate.bloom import Network
from syndicate.bloom.library.paxos import Log
from syndicate.bloom.library.sealing import Sealing
from syndicate.errors import RowMisfit


class Three(Log):
    """Three voters."""

    voters = ("a", "b", "c")


@pytest.mark.parametrize("seed", range(6))
def test_logs_agree(seed: int) -> None:
    """No slot has two values, at any time; each command is there once, when all is whole again."""
    rng = random.Random(seed)
    nodes = [Three(address=name) for name in Three.voters]
    net = Network(*nodes, seed=seed, loss=0.2, repeat=0.2, delay=3)
    commands = {f"{node.address}0" for node in nodes}
    for node in nodes:
        node.append <= [(f"{node.address}0",)]
    if seed % 2:
        net.part(["a"], ["b", "c"])
    decided: dict[int, str] = {}
    for turn in range(120):
        if turn == 8:
            net.heal()
        for node in nodes:
            if rng.random() < 0.3:
                node.fire("timer")
        for _ in range(rng.randrange(1, 8)):
            net.step()
        for node in nodes:
            for slot, value in map(tuple, node.decided):
                assert decided.setdefault(slot, value) == value
        if all({row.value for row in node.decided} == commands for node in nodes):
            break
    assert sorted(decided.values()) == sorted(commands)


def test_a_minority_decides_nothing() -> None:
    """However often it tries."""
    nodes = [Three(address=name) for name in Three.voters]
    net = Network(*nodes, seed=1)
    net.part(["a"], ["b", "c"])
    nodes[0].append <= [("x",)]
    for _ in range(4):
        nodes[0].fire("timer")
        net.run()
    assert len(nodes[0].decided) == 0


class Till(Sealing):
    """Of one producer."""

    producers = ("shop",)


def test_what_is_sealed_does_not_change() -> None:
    """One item more, or another seal, is an error."""
    for late in [("item", ("localhost", "may", "shop", 2, 1)), ("seal", ("localhost", "may", "shop", 2))]:
        till = Till()
        till.deliver("seal", [("localhost", "may", "shop", 1)])
        till.deliver("item", [("localhost", "may", "shop", 1, 30)])
        till.tick()
        assert [row.part for row in till.complete] == ["may"]
        till.deliver(late[0], [late[1]])
        with pytest.raises(RowMisfit, match="sealed"):
            till.tick()
