"""A counter by read, modify and write that loses, and the same one mended.

    syndicate simulate examples/simulated/counter.py:overwriting --seeds 200
    syndicate simulate examples/simulated/counter.py:adding --seeds 200

Two turnstiles count visitors in the durable dataspace.  An *overwriting* one reads how many there were, and writes one
more.  If both have read the same number, one visitor is lost; for that nothing has to break, only to take its time.
An *adding* one keeps each visitor, by turnstile and number: the count is how many stand, and nobody overwrites
anything.  To say it again after a lost connection changes nothing, for it is the same value.
"""

from relay import connect, forget, keep
from relay.capabilities.sturdy import SturdyRef
from relay.simulation import World, scenario
from syndicate import Ref, after, capture, every, field, query_set, record

VISITORS = 4
"""At each turnstile."""


@record
class Total:
    """So many have come."""

    count: int


@record
class Visit:
    """One has come."""

    turnstile: str
    number: int


def turnstile(name: str, address: str, durable: SturdyRef, adding: bool) -> None:
    """Counts visitors, who come each second; those who come while it is not connected, later."""
    waiting = field(0)
    count = field(0)

    def come() -> None:
        count.value += 1
        waiting.value += 1

    for second in range(VISITORS):
        after(2.0 + second, come)

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        totals = query_set(ds, Total(capture(int)))

        def write() -> None:
            if adding:
                for number in range(count.value):
                    keep(ds, Visit(name, number))
            elif waiting.value:
                waiting.value -= 1
                before = max(totals.value, default=0)
                keep(ds, Total(before + 1))
                if before:
                    forget(ds, Total(before))

        every(0.5, write)


def entrance(world: World, *, adding: bool) -> None:
    """A broker and two turnstiles."""
    broker = world.broker("b", durable=True)
    for name in ("north", "south"):
        world.process(name, turnstile, name, broker.address, broker.cap("durable"), adding)
    totals = world.observe(broker, Total(capture()))
    visits = world.observe(broker, Visit(capture(), capture()))
    world.eventually(
        "every visitor is counted",
        lambda: (len(visits.value) if adding else max((n for (n,) in totals.value), default=0)) == 2 * VISITORS,
        within=30.0,
    )
    if adding:
        world.faults(cuts=2, until=10.0)


@scenario(seeds=200, until=60.0)
def overwriting(world: World) -> None:
    """With the bug."""
    entrance(world, adding=False)


@scenario(seeds=200, until=120.0)
def adding(world: World) -> None:
    """Without it; connections are cut, too."""
    entrance(world, adding=True)
