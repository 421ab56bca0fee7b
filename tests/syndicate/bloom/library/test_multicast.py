"""Multicast: what one member hears all hear, over a bad network, and causes first."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from typing import Any

import pytest

from syndicate.bloom import Network, bloom
from syndicate.bloom.library.multicast import CausalMulticast, ReliableMulticast
from syndicate.lattice import Clock

NAMES = ("p", "q", "r", "s")


class Reliable(ReliableMulticast):
    members = NAMES


class Causes(CausalMulticast):
    members = NAMES


class Careless(Causes):
    @bloom
    def hear(self) -> None:
        """As it comes."""
        self.heard <= self.kept.map(lambda k: (k.src, k.ident, k.payload[0]))
        self.past < +self.kept.map(lambda k: Clock(dict(k.payload[1])))


def received(one: ReliableMulticast) -> frozenset[tuple[Any, Any]]:
    """What a member has heard."""
    return frozenset((row.src, row.ident) for row in one.heard)


def talk(cls: type[ReliableMulticast], seed: int, count: int = 20) -> int:
    """All talk at random and one stops; who lives hears the same.  How often a message had causes not heard yet."""
    rng, early = random.Random(seed), 0
    alive = [cls(address=name) for name in NAMES]
    net = Network(*alive, seed=seed, loss=0.3, repeat=0.3, delay=4)
    causes: dict[tuple[Any, Any], frozenset[tuple[Any, Any]]] = {}
    heard = dict.fromkeys(NAMES, frozenset[tuple[Any, Any]]())
    said = dict.fromkeys(NAMES, 0)

    def look() -> None:
        nonlocal early
        for one in alive:
            for message in received(one) - heard[one.address]:
                early += not causes[message] <= received(one)
            heard[one.address] = received(one)

    for number in range(count):
        one = rng.choice(alive)
        name = str(one.address)
        said[name] += 1
        before = received(one) | {(name, ident) for ident in range(1, said[name])}
        causes[name, said[name]] = frozenset(before)
        one.say <= [(said[name], number)]
        one.tick()
        look()
        if number == count // 2:
            alive.remove(one)
            net.part([one.address])
        for _ in range(rng.randrange(6)):
            net.step()
            look()
        rng.choice(alive).fire("timer")
    for _ in range(20):
        for one in alive:
            one.fire("timer")
        net.run()
        look()
    assert len({received(one) for one in alive}) == 1
    assert {one for one in causes if one[0] in {each.address for each in alive}} <= received(alive[0])
    return early


@pytest.mark.parametrize("seed", range(4))
def test_all_who_live_hear_the_same(seed: int) -> None:
    """Of who stopped half way, all or nothing; of causal multicast, nothing before its causes."""
    assert talk(Causes, seed) == 0
    talk(Reliable, seed)


def test_without_waiting_causes_come_late() -> None:
    """The test above sees it."""
    assert sum(talk(Careless, seed) for seed in range(4)) > 0


def test_it_falls_silent() -> None:
    """When all have acknowledged, a timer sends nothing."""
    instances = [Reliable(address=name) for name in NAMES]
    net = Network(*instances, seed=1)
    instances[0].say <= [(1, "hello")]
    net.run()
    for _ in range(3):
        for one in instances:
            one.fire("timer")
        net.run()
    sent = net.sent
    for one in instances:
        one.fire("timer")
    net.run()
    assert net.sent == sent
    assert all(one.is_settled() for one in instances)


def test_what_is_said_again_is_said_once() -> None:
    """Though its clock would be another one by now."""
    net = Network(*(instances := [Causes(address=name) for name in NAMES]), seed=1)
    for _ in range(2):
        for number, one in enumerate(instances):
            one.say <= [(1, number)]
            net.run()
    assert {len(one.heard) for one in instances} == {len(NAMES)}
