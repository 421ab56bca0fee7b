"""A saga that compensates twice, and the same one mended.

    syndicate simulate examples/simulated/saga.py:noting --seeds 200
    syndicate simulate examples/simulated/saga.py:stating --seeds 200

A trip is a flight, which is paid, and then a hotel, which is full: so the flight is to be paid back.  A *noting* agent
tells the bank to pay back, and notes that it has done so when the bank has answered.  If the agent dies between the
two, its next instance finds no note and tells the bank again.  A *stating* agent states once and for all that the trip
has failed; from that the bank derives one entry, named by what it undoes.  Fact and compensation cannot come apart.
"""

from relay import connect, keep
from relay.capabilities.sturdy import SturdyRef
from relay.simulation import World, scenario
from syndicate import Ref, after, capture, during, on_message, query_set, record, send

TRIPS = 3
PRICE = 100


@record
class PayBack:
    """Sent to the bank."""

    trip: int


@record
class Failed:
    """The trip does not take place."""

    trip: int


@record
class PaidBack:
    """The agent's note, or its bank's answer, if it is sent."""

    trip: int


@record
class Entry:
    """In the books: so much was paid, or paid back."""

    trip: int
    number: int
    amount: int


def agent(address: str, durable: SturdyRef, stating: bool) -> None:
    """Books trips, and what it finds neither paid nor failed in an earlier instance."""

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        notes = query_set(ds, PaidBack(capture(int)))

        def book(trip: int) -> None:
            keep(ds, Entry(trip, 0, -PRICE))
            after(2.0, lambda: fail(trip))

        def fail(trip: int) -> None:
            if stating:
                keep(ds, Failed(trip))
            elif trip not in notes.value:
                send(ds, PayBack(trip))

        def plan(trip: int) -> None:
            after(1.0 + 2 * trip, lambda: book(trip))

        for trip in range(TRIPS):
            plan(trip)

        @on_message(ds, PaidBack(capture(int)))
        def note(trip: int) -> None:
            after(0.5, lambda: keep(ds, PaidBack(trip)))


def bank(address: str, durable: SturdyRef) -> None:
    """Keeps the books."""

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        entries = query_set(ds, Entry(capture(int), capture(int), capture(int)))

        @on_message(ds, PayBack(capture(int)))
        def pay_back(trip: int) -> None:
            keep(ds, Entry(trip, len(entries.value), PRICE))
            send(ds, PaidBack(trip))

        @during(ds, Failed(capture(int)))
        def failed(trip: int) -> None:
            keep(ds, Entry(trip, 1, PRICE))


def travel(world: World, *, stating: bool) -> None:
    """A broker, an agent and a bank."""
    broker = world.broker("b", durable=True)
    world.process("agent", agent, broker.address, broker.cap("durable"), stating)
    world.process("bank", bank, broker.address, broker.cap("durable"))
    entries = world.observe(broker, Entry(capture(), capture(), capture()))

    def paid(trip: int) -> int:
        return sum(amount for one, _, amount in entries.value if one == trip and isinstance(amount, int))

    world.faults(kills=1, until=12.0)
    world.never("more is paid back than was paid", lambda: any(paid(trip) > 0 for trip in range(TRIPS)))
    world.eventually(
        "all is paid back",
        lambda: len(entries.value) >= 2 * TRIPS and all(paid(trip) == 0 for trip in range(TRIPS)),
        within=90.0,
    )


@scenario(seeds=200, until=150.0)
def noting(world: World) -> None:
    """With the bug."""
    travel(world, stating=False)


@scenario(seeds=200, until=150.0)
def stating(world: World) -> None:
    """Without it."""
    travel(world, stating=True)
