"""Sessions: whichever replica replies, a client reads what it has written and never goes back."""

from __future__ import annotations

import random

import pytest

from syndicate.bloom import Network
from syndicate.bloom.library.session import Session
from syndicate.bloom.library.store import Client, Replica


class Ann(Session):
    replicas = ("x", "y", "z")


class Forgetful(Client):
    """Quorums of one, and no memory of the session."""

    replicas = ("x", "y", "z")

    @classmethod
    def write_quorum(cls) -> int:
        """Any one."""
        return 1

    @classmethod
    def read_quorum(cls) -> int:
        """Any one."""
        return 1


def stale(cls: type[Client], seed: int) -> int:
    """How many reads lack the session's last write, or what an earlier read had; replicas come and go."""
    rng, last, result = random.Random(seed), -1, 0
    ann = cls(address="ann")
    net = Network(ann, *(Replica(address=name) for name in "xyz"), seed=seed)
    for number in range(20):
        net.part([name for name in "xyz" if name != rng.choice("xyz")])
        if rng.random() < 0.4:
            ann.put("k", number)
            last = number
            net.run()
        else:
            read = ann.get("k")
            net.run()
            if ann.read[read] is not None:
                result += last >= 0 and last not in ann.values_of(read)
        net.heal()
        ann.fire("timer")
        net.run()
    return result


@pytest.mark.parametrize("seed", range(4))
def test_reads_have_the_writes_of_the_session(seed: int) -> None:
    """With one replica at a time."""
    assert stale(Ann, seed) == 0


def test_without_the_session_reads_are_stale() -> None:
    """The test above sees it."""
    assert sum(stale(Forgetful, seed) for seed in range(8)) > 0


def test_two_sessions_may_differ_and_merge() -> None:
    """What one wrote knowing the other's replaces it; what neither knew are siblings."""

    class Bob(Session):
        replicas = Ann.replicas

    ann, bob = Ann(address="ann"), Bob(address="bob")
    net = Network(ann, bob, *(Replica(address=name) for name in "xyz"), seed=1)
    ann.put("k", "tea")
    net.run()
    bob.put("k", "milk")
    net.run()
    read = bob.get("k")
    net.run()
    assert bob.values_of(read) == {"tea", "milk"}
    bob.put("k", "water")
    net.run()
    read = ann.get("k")
    net.run()
    assert ann.values_of(read) == {"water"}
