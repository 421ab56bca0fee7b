"""A rolling restart that drops presence, and the same one mended.

    syndicate simulate examples/simulated/rolling_restart.py:timed --seeds 200
    syndicate simulate examples/simulated/rolling_restart.py:waiting --seeds 200

Two servers assert who is present, both the same: who is there is there while one of the two says so.  For a new
release each is restarted, one after the other.  A *timed* operator restarts the second some seconds after the first.
If the first does not reach the broker in that time, nobody speaks for those who are present, and all seem to leave.
A *waiting* operator restarts the first only while the second is there, and the second when the first has said that it
is ready, and of which release: what is asserted may be of the instance before.
"""

from collections.abc import Callable

from relay import connect
from relay.simulation import World, scenario
from syndicate import Ref, after, assert_, capture, during, record

GUESTS = ("ann", "bob", "cyd")
SERVERS = ("one", "two")


@record
class Present:
    """A guest is there."""

    guest: str


@record
class Ready:
    """A server speaks for the guests."""

    server: str
    release: int


def server(name: str, address: str, releases: dict[str, int]) -> None:
    """Says who is present."""
    release = releases[name]

    @connect(address)
    def connected(ds: Ref) -> None:
        for guest in GUESTS:
            assert_(ds, Present(guest))
        assert_(ds, Ready(name, release))


def operator(address: str, restart: Callable[[str], None], waiting: bool) -> None:
    """Restarts the servers, the first of them after some seconds."""
    first, second = SERVERS
    if not waiting:
        after(5.0, lambda: restart(first))
        after(10.0, lambda: restart(second))
        return

    @connect(address)
    def connected(ds: Ref) -> None:
        @during(ds, Ready(second, 1))
        def the_other_is_there() -> None:
            after(5.0, lambda: restart(first))

        @during(ds, Ready(first, 2))
        def is_ready() -> None:
            restart(second)


def deployment(world: World, *, waiting: bool) -> None:
    """A broker, two servers and an operator."""
    broker = world.broker("b")
    releases = dict.fromkeys(SERVERS, 1)
    servers = {name: world.process(name, server, name, broker.address, releases) for name in SERVERS}

    def restart(name: str) -> None:
        if releases[name] == 1:
            releases[name] = 2
            servers[name].kill()

    world.process("operator", operator, broker.address, restart, waiting, restart=None)
    present = world.observe(broker, Present(capture()))
    ready = world.observe(broker, Ready(capture(), capture()))
    everybody: list[bool] = []

    def missing() -> bool:
        all_there = len(present.value) == len(GUESTS)
        if all_there:
            everybody.append(True)
        return bool(everybody) and not all_there

    world.faults(partitions=1, until=15.0)  # shorter than what a broker bears with: 20 seconds of silence
    world.never("who is there seems to leave", missing)
    world.eventually(
        "both have the new release", lambda: {(name, 2) for name in SERVERS} <= set(ready.value), within=90.0
    )


@scenario(seeds=200, until=150.0)
def timed(world: World) -> None:
    """With the bug."""
    deployment(world, waiting=False)


@scenario(seeds=200, until=150.0)
def waiting(world: World) -> None:
    """Without it."""
    deployment(world, waiting=True)
