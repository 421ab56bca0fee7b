"""Three shopping carts on a bad network: what the CALM analysis says of them, and what happens.

A shopper sends numbered actions and a checkout to two servers.  Messages are lost, repeated, delayed and reordered,
each run by its seed; what is not acknowledged is sent again, so that everything arrives at some time, somehow.  Counted
are the runs after which the two servers hold different carts, and those with a receipt that is not what was bought.

The analysis knows before: what it calls confluent never differs.  A patient shopper waits, before it pays, until its
actions are acknowledged.  That mends the receipts of the disorderly carts, and nothing of the destructive ones; it
costs rounds, here how often the shopper had to look again for what was not acknowledged.

    $ python examples/carts.py
    100 runs              CALM: cart, receipt    points  carts differ  receipts wrong  messages  rounds
    destructive           diffluent, diffluent        7            73              96        22     1.1
    destructive, patient  diffluent, diffluent        7            73              80        22     2.5
    disorderly            confluent, diffluent        4             0              86        22     1.2
    disorderly, patient   confluent, diffluent        4             0               0        23     2.5
    lattice               confluent, confluent        0             0               0        22     1.2

``python examples/carts.py 1000`` makes more runs.
"""

# ruff: noqa: B015  # rows are given with <=

import random
import sys
from collections.abc import Iterator
from typing import Any

from attrs import define

from syndicate.bloom import Network
from syndicate.bloom.library.carts import Carts, DestructiveCarts, DisorderlyCarts, LatticeCarts
from syndicate.bloom.library.shopper import PatientShopper, Shopper

CASES: list[tuple[str, type[Carts], type[Shopper]]] = [
    ("destructive", DestructiveCarts, Shopper),
    ("destructive, patient", DestructiveCarts, PatientShopper),
    ("disorderly", DisorderlyCarts, Shopper),
    ("disorderly, patient", DisorderlyCarts, PatientShopper),
    ("lattice", LatticeCarts, Shopper),
]
RENEWED = 100
"""Runs after which programs are made again: each run is a session of its own, and that of others are kept."""

Actions = list[tuple[int, str, int]]


@define
class Count:
    """What happened in all runs."""

    runs: int = 0
    carts: int = 0
    receipts: int = 0
    messages: int = 0
    rounds: int = 0


def shopping(rng: random.Random) -> tuple[Actions, tuple[tuple[str, int], ...]]:
    """Numbered actions, which take out nothing that is not there, and what is in the cart after all of them."""
    actions: Actions = []
    held: dict[str, int] = {}
    for number in range(1, rng.randint(3, 6)):
        item = rng.choice(["jam", "tea"])
        change = rng.choice([1, 2, *([-1] if held.get(item) else [])])
        held[item] = held.get(item, 0) + change
        actions.append((number, item, change))
    return actions, tuple(sorted((item, number) for item, number in held.items() if number))


def sessions(carts: type[Carts], shopper: type[Shopper], runs: int) -> Iterator[tuple[int, Shopper, list[Carts]]]:
    """Seeds, and programs that are made again from time to time."""
    for seed in range(runs):
        if seed % RENEWED == 0:
            ann, servers = shopper(address="ann"), [carts(address=name) for name in ("one", "two")]
            ann.server <= [(server.address,) for server in servers]
            ann.tick()
        yield seed, ann, servers


def measure(carts: type[Carts], shopper: type[Shopper], runs: int) -> Count:
    """Let a shopper and two servers meet on a bad network, and count."""
    count = Count(runs)
    for seed, ann, servers in sessions(carts, shopper, runs):
        network = Network(ann, *servers, seed=seed, loss=0.1, repeat=0.2, delay=2)
        actions, bought = shopping(random.Random(seed))
        ann.act <= [(seed, *action) for action in actions]
        ann.pay <= [(seed, len(actions) + 1, 1)]
        network.run()
        while not ann.is_served():
            ann.fire("timer")
            network.run()
            count.rounds += 1
        one, two = (held(server, kept(server), seed) for server in servers)
        receipts = {row.contents for server in servers for row in held(server, "receipt", seed)}
        count.carts += one != two
        count.receipts += receipts != {bought}
        count.messages += network.sent
    return count


def held(server: Carts, collection: str, session: int) -> list[Any]:
    """The rows that a server has of a session."""
    return sorted(row for row in server.collection(collection) if row.session == session)


def kept(server: Carts) -> str:
    """Where a server keeps what it gets."""
    return "log" if isinstance(server, DisorderlyCarts) else "cart"


def main(runs: int) -> None:
    """Print the table."""
    print(f"{f'{runs} runs':22}CALM: cart, receipt    points  carts differ  receipts wrong  messages  rounds")
    for name, carts, shopper in CASES:
        calm = (program := carts()).calm()
        said = f"{calm[kept(program)].verdict}, {calm['receipt'].verdict}"
        count = measure(carts, shopper, runs)
        shown = f"{len(calm.points):6}{count.carts:14}{count.receipts:16}"
        print(f"{name:22}{said:23}{shown}{count.messages / runs:10.0f}{count.rounds / runs:8.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
