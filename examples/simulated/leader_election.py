"""A leader election that splits, and the same one mended.

    syndicate simulate examples/simulated/leader_election.py:sure --seeds 200
    syndicate simulate examples/simulated/leader_election.py:leased --seeds 200

Candidates assert their names, and the least name leads, when it has been so for a few seconds.  Who is *sure* leads
until it hears that it does not.  If it stands still for long, or the network parts it from the broker, it hears
nothing; the broker gives it up after 20 seconds and tells the others, and then two lead.  Who is *leased* leads for a
few seconds from when it last asked the broker, not from the answer; and who comes next waits so long before it begins.
Clocks may differ, but they must run at the same rate.
"""

from functools import partial
from math import inf

import trio

from relay import connect
from relay.simulation import World, scenario
from syndicate import Ref, after, assert_, capture, dataflow, on_stop, query_set, record, sync

NAMES = ("ann", "bob", "cyd")
LEASE = 3.0


@record
class Candidate:
    """Somebody would lead."""

    name: str


def candidate(name: str, address: str, leads_until: dict[str, float], leased: bool) -> None:
    """Leads while it has the least name; notes in *leads_until* up to which time."""
    leads_until[name] = 0.0

    @connect(address)
    def connected(ds: Ref) -> None:
        assert_(ds, Candidate(name))
        names = query_set(ds, Candidate(capture(str)))
        turn = [0]  # how often it has come to be the first, or ceased to be

        def is_first() -> bool:
            return bool(names.value) and min(names.value) == name

        @dataflow
        def lead_or_not() -> None:
            turn[0] += 1
            if not is_first():
                leads_until[name] = 0.0
            else:
                after(LEASE, partial(renew, turn[0]))

        def renew(then: int) -> None:
            if turn[0] != then:
                return
            if not leased:
                leads_until[name] = inf
            else:
                sync(ds, partial(extend, then, trio.current_time() + LEASE))

        def extend(then: int, until: float) -> None:
            if turn[0] == then:
                leads_until[name] = until
                after(1.0, partial(renew, then))

        @on_stop
        def lost() -> None:
            leads_until[name] = 0.0


def election(world: World, *, leased: bool) -> None:
    """A broker and three candidates."""
    broker = world.broker("b")
    leads_until: dict[str, float] = {}
    nodes = {name: world.process(name, candidate, name, broker.address, leads_until, leased) for name in NAMES}
    led: set[str] = set()

    def leaders() -> set[str]:
        now = {name for name in NAMES if nodes[name].life and leads_until.get(name, 0.0) > world.now}
        led.update(now)
        return now

    world.faults(partitions=1, pauses=1, kills=1, until=60.0)
    world.never("two lead", lambda: len(leaders()) > 1)
    world.sometimes("the leader changes", lambda: len(led) > 1)
    world.eventually("somebody leads", lambda: len(leaders()) == 1, within=90.0)


@scenario(seeds=200, until=200.0)
def sure(world: World) -> None:
    """With the bug."""
    election(world, leased=False)


@scenario(seeds=200, until=200.0)
def leased(world: World) -> None:
    """Without it."""
    election(world, leased=True)
