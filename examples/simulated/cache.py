"""A cache that shows what was withdrawn, and the same one mended.

    syndicate simulate examples/simulated/cache.py:told --seeds 200
    syndicate simulate examples/simulated/cache.py:observing --seeds 200

A shop asserts offers and withdraws them; a shop window shows them.  A window that is *told* adds an offer when it
appears and removes it when a message says that it was withdrawn.  If a connection is lost then, nobody says it again,
and the window shows the offer for ever.  An *observing* window shows an offer while it is asserted: whoever loses the
connection loses the assertions with it, and hears of those that are still there when it is back.
"""

from relay import connect
from relay.simulation import World, scenario
from syndicate import Field, Ref, after, assert_, capture, during, field, on_message, on_stop, record, send

OFFERS = 8


@record
class Offer:
    """Can be bought."""

    number: int


@record
class Withdrawn:
    """Sent: it cannot be bought any more."""

    number: int


def shop(address: str) -> None:
    """Makes an offer each second, and withdraws all but the last after two more."""
    line: Field[Ref | None] = field(None)
    offers = [field(False) for _ in range(OFFERS)]

    def make(number: int) -> None:
        offers[number].value = True
        if number < OFFERS - 1:
            after(2.0, lambda: withdraw(number))

    def withdraw(number: int) -> None:
        offers[number].value = False
        if line.value is not None:
            send(line.value, Withdrawn(number))

    def plan(number: int) -> None:
        after(1.0 + number, lambda: make(number))

    for number in range(OFFERS):
        plan(number)

    @connect(address)
    def connected(ds: Ref) -> None:
        line.value = ds

        def show(number: int) -> None:
            assert_(ds, lambda: Offer(number) if offers[number].value else None)

        for number in range(OFFERS):
            show(number)

        @on_stop
        def lost() -> None:
            line.value = None


def window(address: str, shown: set[int], observing: bool) -> None:
    """Shows offers: *shown* is what a passer-by sees."""

    @connect(address)
    def connected(ds: Ref) -> None:
        @during(ds, Offer(capture(int)))
        def offered(number: int) -> None:
            shown.add(number)
            if observing:
                on_stop(lambda: shown.discard(number))

        on_message(ds, Withdrawn(capture(int)))(shown.discard)


def street(world: World, *, observing: bool) -> None:
    """A broker, a shop and its window."""
    broker = world.broker("b")
    shown: set[int] = set()
    world.process("shop", shop, broker.address, restart=None)
    world.process("window", window, broker.address, shown, observing, restart=None)
    offers = world.observe(broker, Offer(capture()))
    world.faults(cuts=2, until=12.0)
    world.sometimes("a connection is lost", lambda: "cut" in world.fired)
    world.eventually(
        "the window shows what is offered",
        lambda: world.now > OFFERS + 2 and offers.value and shown == {number for (number,) in offers.value},
        within=90.0,
    )


@scenario(seeds=200, until=150.0)
def told(world: World) -> None:
    """With the bug."""
    street(world, observing=False)


@scenario(seeds=200, until=150.0)
def observing(world: World) -> None:
    """Without it."""
    street(world, observing=True)
