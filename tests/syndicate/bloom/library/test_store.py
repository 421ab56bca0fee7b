"""The store: siblings, quorums that meet, repair where somebody reads; replicas that agree in the end."""

from __future__ import annotations

import random

import pytest

from syndicate import dataspace, run, stop_actor
from syndicate.bloom import Network, Row
from syndicate.bloom.library.store import Client, Replica
from syndicate.lattice import Clock, DomPair, Set

NAMES = ("x", "y", "z")


class Three(Client):
    replicas = NAMES


class Weak(Three):
    """Quorums that need not meet."""

    @classmethod
    def read_quorum(cls) -> int:
        return 1


def programs(cls: type[Client] = Three) -> tuple[Client, Client, dict[str, Replica]]:
    """Two clients and three replicas."""
    return cls(address="ann"), cls(address="bob"), {name: Replica(address=name) for name in NAMES}


def versions(replica: Replica, key: str = "k") -> DomPair:
    """What a replica has of a key."""
    row = replica.kept[key]
    return DomPair() if row is None else row.version


def read(client: Client, net: Network, key: str = "k") -> set[str]:
    """The values that a read gives."""
    ident = client.get(key)
    net.run()
    assert client.read[ident] is not None
    return set(client.values_of(ident))


def test_concurrent_writes_are_siblings() -> None:
    """Writes that knew nothing of each other stay both; who reads them and writes replaces both."""
    ann, bob, replicas = programs()
    net = Network(ann, bob, *replicas.values(), seed=1)
    ann.put("k", "tea")
    bob.put("k", "jam")
    net.run()
    assert read(ann, net) == {"tea", "jam"}
    assert all(len(versions(one).reveal()) == 2 for one in replicas.values())
    ann.put("k", "tea with jam")
    net.run()
    assert read(bob, net) == {"tea with jam"}
    assert all(versions(one).value(Set) == Set(["tea with jam"]) for one in replicas.values())
    bob.put("k")
    net.run()
    assert read(ann, net) == set()
    assert versions(replicas["x"]).key(Clock) == Clock({"ann": 3, "bob": 3})


def test_an_old_write_that_comes_late_is_nothing() -> None:
    """A write that has been replaced does not come back."""
    ann, _, replicas = programs()
    net = Network(ann, *replicas.values(), seed=1)
    ann.put("k", "old")
    ann.tick()
    ann.put("k", "new")
    net.run()
    assert read(ann, net) == {"new"}
    replicas["x"].deliver("store", [("x", "ann", 1, "k", DomPair((Clock({"ann": 1}), Set(["old"]))))])
    net.run()
    assert versions(replicas["x"]).value(Set) == Set(["new"])


def test_reading_repairs() -> None:
    """A replica that missed a write has it when somebody has read, through another replica."""
    ann, bob, replicas = programs()
    net = Network(ann, bob, *replicas.values(), seed=1)
    net.part(["z"])
    write = ann.put("k", "tea")
    net.run()
    assert (write,) in ann.written
    assert versions(replicas["z"]).is_bottom
    net.part(["x"])
    assert read(bob, net) == {"tea"}
    assert versions(replicas["z"]) == versions(replicas["y"]) == versions(replicas["x"])


def test_without_a_quorum_there_is_no_answer() -> None:
    """A client with one replica waits, and says so; then the timer has it ask again."""
    ann, _, replicas = programs()
    net = Network(ann, *replicas.values(), seed=1)
    net.part(["x", "ann"], ["y", "z"])
    write, ident = ann.put("k", "tea"), ann.get("k")
    net.run()
    assert (len(ann.written), ann.read[ident], ann.values_of(ident)) == (0, None, frozenset())
    net.heal()
    ann.fire("timer")
    net.run()
    assert (write,) in ann.written
    assert ann.values_of(ident) == {"tea"}
    before = net.sent
    ann.fire("timer")
    net.run()
    assert net.sent == before


@pytest.mark.parametrize("cls", [Three, Weak])
def test_quorums_meet(cls: type[Client]) -> None:
    """A read that begins after a write is finished sees it, whoever could be heard: not so with lesser quorums."""
    missed = 0
    for seed in range(25):
        rng = random.Random(seed)
        ann, bob, replicas = programs(cls)
        net = Network(ann, bob, *replicas.values(), seed=seed)
        net.part([rng.choice(NAMES)])
        ann.put("k", "tea")
        net.run()
        assert len(ann.written) == 1
        alone = rng.choice(NAMES)
        net.part([alone, *(["bob"] if cls is Weak else [])])
        missed += read(bob, net) != {"tea"}
    assert missed == 0 if cls is Three else missed > 0


@pytest.mark.parametrize("seed", range(12))
def test_replicas_converge(seed: int) -> None:
    """After random writes and reads over a bad network, each key is the same everywhere once it has been read."""
    rng = random.Random(seed)
    ann, bob, replicas = programs()
    net = Network(ann, bob, *replicas.values(), seed=seed, loss=0.25, repeat=0.2, delay=4)
    for number in range(12):
        client = rng.choice([ann, bob])
        if rng.random() < 0.6:
            client.put(rng.choice("jk"), f"v{number}")
        else:
            client.get(rng.choice("jk"))
        for _ in range(rng.randrange(4)):
            net.step()
        if rng.random() < 0.2:
            ann.fire("timer")
    for client in (ann, bob):
        while len(client.written) < len(client.writes):
            client.fire("timer")
            net.run()
    net.loss = 0.0
    seen = {key: (read(ann, net, key), read(bob, net, key)) for key in "jk"}
    for key in "jk":
        survivors = [versions(one, key) for one in replicas.values()]
        assert survivors[0] == survivors[1] == survivors[2]
        assert seen[key][0] == seen[key][1] == set(survivors[0].value(Set).reveal())


def test_replicas_need_no_coordination() -> None:
    """What a replica keeps is confluent; what it answers is a race between reads and writes."""
    calm = Replica().calm()
    assert [(point.rule.head, point.hazard.why) for point in calm.points] == [("found", "race")]
    assert (calm["kept"].verdict, calm["stored"].verdict, calm["found"].verdict) == (
        "confluent",
        "confluent",
        "diffluent",
    )


def test_the_same_as_actors() -> None:
    """In a dataspace, versions go through it as messages, and come back as they were."""
    answers: list[set[str]] = []

    def boot() -> None:
        ds = dataspace()
        for name in NAMES:
            Replica(ds, address=name)
        ann, bob = Three(ds, address="ann"), Three(ds, address="bob")

        def read(rows: list[Row]) -> None:
            answers.append(set(bob.values_of(1)))
            stop_actor()

        bob.callback("read", read)
        end = ann.callback("written", lambda rows: (end(), bob.get("k")))
        ann.put("k", "tea", "jam")

    run(boot)
    assert answers == [{"tea", "jam"}]
