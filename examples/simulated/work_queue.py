"""Jobs that are done once in effect, whoever is killed.

    syndicate simulate examples/simulated/work_queue.py:bills --seeds 200

A shop submits bills, and says each again until the queue has it; two programs pay them, each of which may dispatch.
What a payment does is kept by the very step that accepts it (``claim.commit``), so that it happens once, although a
bill may be worked at twice.  Everything here may be killed and started again, the broker too.
"""

from functools import partial

import trio

from relay import connect
from relay.capabilities.sturdy import SturdyRef
from relay.simulation import World, scenario
from syndicate import Ref, capture, every, record
from syndicate.work import Claim, Queue, Retry, queue, submit, worker

BILLS = 6
POLICY = Retry(times=100, first=0.5, most=2.0)


@record
class Payment:
    """Kept: a bill is paid."""

    bill: str
    token: int


def payments(ds: Ref) -> Queue:
    """The queue; whoever says this may dispatch."""
    return queue(ds, "bills", retry=POLICY, lease=4.0)


def shop(address: str, durable: SturdyRef) -> None:
    """Submits each bill until it is safe."""
    safe: set[int] = set()

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        jobs = payments(ds)

        def more() -> None:
            for number in range(BILLS):
                if number not in safe:
                    submit(jobs, number, id=f"bill {number}", then=partial(safe.add, number))
                    return

        every(1.0, more)


def payer(address: str, durable: SturdyRef) -> None:
    """Pays bills, two at a time."""

    @worker(slots=2)
    async def pay(number: int, claim: Claim) -> int:
        await trio.sleep(1.5)
        claim.commit(Payment(claim.id, claim.token))
        return number

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        pay.join(payments(ds))


@scenario(seeds=200, until=240.0)
def bills(world: World) -> None:
    """A broker, a shop, and two who pay."""
    broker = world.broker("b", durable=True)
    world.process("shop", shop, broker.address, broker.cap("durable"))
    for name in ("w1", "w2"):
        world.process(name, payer, broker.address, broker.cap("durable"))
    paid = world.observe(broker, Payment(capture(), capture()))
    world.faults(kills=3, cuts=3, until=40.0)
    world.always("each once", lambda: len({bill for bill, _ in paid.value}) == len(paid.value))
    world.eventually("all paid", lambda: len({bill for bill, _ in paid.value}) == BILLS, within=150.0)
