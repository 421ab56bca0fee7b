"""Chord: one owner of each key, the one that an oracle names, in few steps; also when some are gone."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random

from syndicate.bloom import Network
from syndicate.bloom.library.chord import BITS, Chord, distance, fingers_of, first_after, next_step, place


def test_ring() -> None:
    """Distances go round; steps come closer, until somebody knows."""
    rng = random.Random(1)
    names = [f"n{number}" for number in range(200)]
    for _ in range(100):
        asker, key = rng.choice(names), rng.randrange(2**BITS)
        owner, steps = "", 0
        while not owner:
            owner, onward = next_step(asker, key, fingers_of(asker, names))
            if not owner:
                assert distance(place(onward), key) < distance(place(asker), key)
                asker = onward
            steps += 1
        assert owner == first_after(key, names)
        assert steps <= 9  # log2(200) is 7.6
    assert next_step("a", 7, []) == ("a", "")
    key = place("n3")
    assert first_after(key, names) == "n3"
    for one in names:
        owner, onward = next_step(one, key, fingers_of(one, names))
        assert owner in ("", "n3")


def test_joining_and_leaving() -> None:
    """All find the same owner as the oracle, over a network that loses; then three are gone."""
    rng = random.Random(2)
    instances = [Chord(address=f"n{number}") for number in range(10)]
    net = Network(*instances, seed=2, loss=0.1, repeat=0.1, delay=2)
    for one in instances[1:]:
        one.join <= [("n0",)]
    stabilise(net, instances)
    keys = [rng.randrange(2**BITS) for _ in range(8)]
    found(net, instances, keys, "before")
    gone = instances[3:6]
    for one in instances[:3] + instances[6:]:
        one.gone <= [(other.address,) for other in gone]
    net.part([one.address for one in gone])
    rest = [one for one in instances if one not in gone]
    stabilise(net, rest)
    found(net, rest, keys, "after")


def stabilise(net: Network, instances: list[Chord]) -> None:
    """Timers fire."""
    for _ in range(10):
        for one in instances:
            one.fire("timer")
        net.run()


def found(net: Network, instances: list[Chord], keys: list[int], word: str) -> None:
    """Each asks for each key until it knows."""
    names = [str(one.address) for one in instances]
    for _ in range(12):
        for one in instances:
            one.find <= [(f"{word} {key}", key) for key in keys if one.owner[f"{word} {key}"] is None]
        net.run()
    for one in instances:
        owners = {row.ident: row.member for row in one.owner}
        assert [owners[f"{word} {key}"] for key in keys] == [first_after(key, names) for key in keys]
