"""An order that is carried out twice, and the same one mended.

    syndicate simulate examples/simulated/exactly_once.py:nameless --seeds 200
    syndicate simulate examples/simulated/exactly_once.py:keyed --seeds 200

A customer sends orders, and sends again what was not answered; a shop sends one parcel for each order that it gets.
An order is *nameless* if nothing says that it is the same one again.  If a connection is lost after the work and
before the answer, the customer gets two parcels.  With a *key*, which the customer chooses, the parcel of an order
carries its key: to keep it twice is to keep it once, whoever asks, and however often.
"""

from relay import connect, keep
from relay.capabilities.sturdy import SturdyRef
from relay.simulation import World, scenario
from syndicate import Ref, after, capture, every, field, on_message, query_set, record, send, sync

GOODS = ("tea", "rice", "salt", "soap")


@record
class Order:
    """Sent by the customer."""

    key: int
    goods: str


@record
class Answer:
    """Sent by the shop: the parcel is on its way."""

    goods: str


@record
class Parcel:
    """Is on its way."""

    number: int
    goods: str


def customer(address: str) -> None:
    """Orders one thing after another, until each is answered."""
    wanted = field(0)
    answered: set[str] = set()

    def want() -> None:
        wanted.value += 1

    for second in range(len(GOODS)):
        after(1.0 + 2 * second, want)

    @connect(address)
    def connected(ds: Ref) -> None:
        def order() -> None:
            for key, goods in enumerate(GOODS[: wanted.value]):
                if goods not in answered:
                    send(ds, Order(key, goods))

        on_message(ds, Answer(capture(str)))(answered.add)
        every(6.0, order)  # more than an answer takes, if nothing is lost
        after(0.5, order)


def shop(address: str, durable: SturdyRef, keyed: bool) -> None:
    """Sends a parcel for each order."""

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        parcels = query_set(ds, Parcel(capture(int), capture(str)))

        @on_message(ds, Order(capture(int), capture(str)))
        def ordered(key: int, goods: str) -> None:
            keep(ds, Parcel(key if keyed else len(parcels.value), goods))
            sync(ds, lambda: send(ds, Answer(goods)))


def trade(world: World, *, keyed: bool) -> None:
    """A broker, a customer and a shop."""
    broker = world.broker("b", durable=True)
    world.process("customer", customer, broker.address)
    world.process("shop", shop, broker.address, broker.cap("durable"), keyed)
    parcels = world.observe(broker, Parcel(capture(), capture()))

    def goods() -> list[object]:
        return [goods for _, goods in parcels.value]

    world.faults(cuts=2, until=15.0)
    world.sometimes("a connection is lost", lambda: "cut" in world.fired)
    world.never("two parcels for one order", lambda: len(goods()) > len(set(goods())))
    world.eventually("all orders are carried out", lambda: set(goods()) == set(GOODS), within=90.0)


@scenario(seeds=200, until=150.0)
def nameless(world: World) -> None:
    """With the bug."""
    trade(world, keyed=False)


@scenario(seeds=200, until=150.0)
def keyed(world: World) -> None:
    """Without it."""
    trade(world, keyed=True)
