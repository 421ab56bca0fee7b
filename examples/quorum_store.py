"""A key-value store with three replicas: quorums, siblings, and repair by those who read.

Versions are kept under vector clocks, so that a write replaces what its writer knew of, and nothing else: two writes
that knew nothing of each other are both kept, until somebody who has read them writes.  A write is done, and a read is
answered, when two of three replicas have said so; so who reads after a write sees it, whichever replica is cut off.

    $ python examples/quorum_store.py
    z is cut off
    ann has written tea, to x and y
    bob has written jam, to x and y
    x is cut off instead
    cid reads jam, tea: ann and bob knew nothing of each other
    z, which had nothing, has been told on the side: jam, tea
    cid has written tea with jam, to y and z
    nobody is cut off
    x has still: jam, tea
    ann reads tea with jam
    x has been told on the side: tea with jam
"""

from typing import Any

from syndicate.bloom import Network
from syndicate.bloom.library.store import Client, Replica
from syndicate.lattice import Set


class Reader(Client):
    """Who reads and writes; where, is known to all."""

    replicas = ("x", "y", "z")


def listed(values: Any) -> str:
    """Values in a line."""
    return ", ".join(sorted(values)) or "nothing"


def main() -> None:
    """A story with two partitions."""
    ann, bob, cid = (Reader(address=name) for name in ("ann", "bob", "cid"))
    replicas = {name: Replica(address=name) for name in Reader.replicas}
    network = Network(ann, bob, cid, *replicas.values(), seed=1)

    def put(who: Client, value: str) -> None:
        write = who.put("breakfast", value)
        network.run()
        stored = who.storing[write]
        assert (write,) in who.written
        assert stored is not None
        print(f"{who.address} has written {value}, to", " and ".join(sorted(stored.at.reveal())))

    def get(who: Client) -> str:
        read = who.get("breakfast")
        network.run()
        return f"{who.address} reads {listed(who.values_of(read))}"

    def kept(name: str) -> str:
        row = replicas[name].kept["breakfast"]
        return listed(row.version.value(Set).reveal() if row is not None else [])

    print("z is cut off")
    network.part(["z"])
    put(ann, "tea")
    put(bob, "jam")

    print("x is cut off instead")
    network.part(["x"])
    print(f"{get(cid)}: ann and bob knew nothing of each other")
    print("z, which had nothing, has been told on the side:", kept("z"))
    put(cid, "tea with jam")

    print("nobody is cut off")
    network.heal()
    print("x has still:", kept("x"))
    print(get(ann))
    print("x has been told on the side:", kept("x"))


if __name__ == "__main__":
    main()
