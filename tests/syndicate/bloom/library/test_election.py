"""Elections: never two leaders of one term, whatever the network does, and one for all once it is whole again."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import Network
from syndicate.bloom.library.election import Election


class Five(Election):
    """As many as can lose two."""

    members = ("a", "b", "c", "d", "e")


def five(seed: int, **options: Any) -> tuple[dict[str, Five], Network]:
    """The members, connected."""
    instances = {name: Five(address=name) for name in Five.members}
    return instances, Network(*instances.values(), seed=seed, **options)


def rounds(objects: dict[str, Five], net: Network, names: str, count: int) -> None:
    """Let the timers of some fire, one after the other."""
    for _ in range(count):
        for name in names:
            objects[name].fire("timer")
            net.run()


def leaders(objects: dict[str, Five]) -> list[Any]:
    """What each member knows."""
    return [p.leader.reveal() for p in objects.values()]


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_never_two_leaders_of_a_term(seed: int) -> None:
    """Timers fire and the network is parted at random, with loss, delay and repetition; then it heals."""
    rng = random.Random(seed)
    instance, net = five(seed, loss=0.2, repeat=0.2, delay=3)
    for _ in range(30):
        for name in rng.sample(Five.members, rng.randint(0, 3)):
            instance[name].fire("timer")
        if rng.random() < 0.2:
            names = rng.sample(Five.members, 5)
            cut = rng.randint(0, 2)
            net.part(names[:cut], names[cut:])
        for _ in range(rng.randint(0, 6)):
            net.step()
    won = [row.term for p in instance.values() for row in p.won]
    assert len(won) == len(set(won))
    net.heal()
    net.loss, net.delay = 0.0, 0
    net.run()
    rounds(instance, net, "abcde", 4)
    (term, leader) = leaders(instance)[0]
    assert leaders(instance) == [(term, leader)] * 5
    assert [name for name, p in instance.items() if p.leads()] == [leader]
    assert (term,) in instance[leader].won


def test_a_leader_that_is_cut_off() -> None:
    """The majority elects another in a later term, a minority nobody; the old leader follows when it hears of that."""
    instance, net = five(3)
    rounds(instance, net, "cabde", 1)
    assert leaders(instance) == [(1, "c")] * 5
    net.part(["c", "a"], ["b", "d", "e"])
    rounds(instance, net, "adcbe", 3)
    assert instance["c"].leads()
    assert leaders(instance)[0] == (1, "c")
    (new,) = {p.leader.reveal() for name, p in instance.items() if name in "bde"}
    assert (new[0] > 1, new[1] in "bde") == (True, True)
    net.part(["c"], ["a"])
    rounds(instance, net, "a", 5)
    assert not instance["a"].leads()
    net.heal()
    rounds(instance, net, "abcde", 2)
    assert len(set(leaders(instance))) == 1
    assert leaders(instance)[0] >= new
    assert not instance["c"].leads() or instance["c"].leader.reveal()[0] > new[0]


def test_what_is_monotone() -> None:
    """The points of order are the two decisions, and who speaks as the leader; counting and following have none."""
    heads = {point.rule.head for point in Five().calm().points}
    assert heads.isdisjoint({"votes", "won", "leader"})
    assert {"request", "vote"} <= heads
