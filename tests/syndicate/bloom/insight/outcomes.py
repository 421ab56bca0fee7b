"""What programs come to over networks that reorder and repeat, when the same is given in other orders and batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from syndicate.bloom import Bloom, Network
from tests.syndicate.bloom.lattice_programs import merged_rows

Fact = tuple[str, str, Any]
"""What comes from outside: the node, the collection, the row or value."""

NODES = ("n0", "n1")


@frozen
class Names:
    """What is looked at: tables and lattices in the *end*, all rows that others *ever* had, if need be *merging*."""

    end: tuple[str, ...]
    ever: tuple[str, ...]
    timers: tuple[str, ...] = ()
    merging: Mapping[str, Any] = field(factory=dict)
    cells: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = NODES


def outcome(kind: Callable[..., Bloom], facts: Sequence[Fact], seed: int, names: Names) -> dict[tuple[str, str], Any]:
    """What a program on each node comes to."""
    rng = random.Random(seed)
    nodes = {name: kind(address=name) for name in names.nodes}
    ever: dict[tuple[str, str], set[Any]] = {}
    for name, node in nodes.items():
        for one in names.ever:
            node.callback(one, ever.setdefault((name, one), set()).update)
    net = Network(*nodes.values(), seed=seed, repeat=0.3)
    coming = [*facts, *(fact for fact in facts if rng.random() < 0.2)]
    rng.shuffle(coming)
    while coming:
        for _ in range(rng.randint(1, rng.choice((1, 3, len(coming))))):
            if coming:
                name, one, what = coming.pop()
                nodes[name].collection(one).insert(what if one in names.cells else [what])
        for _ in range(rng.randrange(4)):
            if names.timers and rng.random() < 0.4:
                rng.choice([*nodes.values()]).fire(rng.choice(names.timers))
            net.step()
    for _ in range(12):  # all arrive, some times over; timers go on, and whoever sends in each tick never rests
        for node in nodes.values():
            for timer in names.timers:
                node.fire(timer)
        for _ in range(4):
            net.step()
        while net.waiting:
            _, _, address, one, row = net.waiting.pop()
            nodes[address].deliver(one, [row])
        for node in nodes.values():
            node.tick()
    ends: dict[tuple[str, str], Any] = {}
    for name, node in nodes.items():
        for one in names.end:
            collection: Any = node.collection(one)
            ends[name, one] = collection.value if one in names.cells else set(collection)
    for (name, one), rows in ever.items():
        ends[name, one] = rows
        if one in names.merging:
            ends[name, one] = merged_rows(frozenset((row[:-1], row[-1]) for row in rows))
    return ends


def differing(outcomes: Sequence[Mapping[tuple[str, str], Any]]) -> set[str]:
    """The names of what is not the same in all."""
    first, *others = outcomes
    return {name for other in others for node, name in other if first[node, name] != other[node, name]}
