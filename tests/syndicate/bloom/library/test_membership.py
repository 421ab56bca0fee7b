"""Membership: one view in the end, of who is in; who left stays out, who was suspected and lives is back."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random

import pytest

from syndicate.bloom import Network
from syndicate.bloom.library.membership import Membership

NAMES = [f"m{number}" for number in range(5)]


def gossip(net: Network, instances: list[Membership], rounds: int) -> None:
    """Timers fire."""
    for _ in range(rounds):
        for one in instances:
            one.fire("timer")
        net.run()


@pytest.mark.parametrize("seed", range(3))
def test_one_view_in_the_end(seed: int) -> None:
    """Over a bad network; some are suspected wrongly, one leaves, one is dead."""
    rng = random.Random(seed)
    instances = [Membership(address=name) for name in NAMES]
    net = Network(*instances, seed=seed, loss=0.3, repeat=0.3, delay=3)
    for number, one in enumerate(instances):
        one.join <= [(NAMES[max(0, number - 1)],)]
        net.run()
    gossip(net, instances, 8)
    views = {frozenset(row.member for row in one.view) for one in instances}
    assert views == {frozenset(NAMES)}
    leaver, dead, *others = rng.sample(instances, 5)
    leaver.leave <= [(True,)]
    leaver.tick()
    gossip(net, instances, 8)
    net.part([dead.address])
    others[0].suspect <= [(dead.address,), (others[1].address,)]
    others[0].tick()
    gossip(net, [leaver, *others], 8)
    for one in others:
        assert {row.member for row in one.view} == {other.address for other in others}
    net.heal()
    gossip(net, instances, 8)
    for one in instances:
        assert {row.member for row in one.view} == set(NAMES) - {leaver.address}
