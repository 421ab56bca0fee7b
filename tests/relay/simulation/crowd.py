"""Systems that strain what the smaller ones do not: slow peers, floods, narrowed and withdrawn capabilities, long
outages, ends in order, and a peer that breaks the protocol.
"""

from __future__ import annotations

from functools import partial

import trio

from relay import connect
from relay.capabilities.gatekeeper import bind
from relay.capabilities.sturdy import SturdyRef, mint
from relay.protocol.limits import Limits
from relay.server.config import Config
from relay.session.proxy import Proxy
from relay.session.session import session_of
from relay.simulation import BrokerProcess, World, scenario
from syndicate import (
    ANY,
    Observe,
    Ref,
    after,
    assert_,
    capture,
    dataspace,
    during,
    every,
    field,
    linked_task,
    on_asserted,
    on_message,
    on_retracted,
    record,
    send,
    sync,
)
from syndicate.actors.keep import forget, keep
from syndicate.values.value import Value

SMALL = Limits(ahead=2048, debt=4096)
"""So that a peer is slow, and owes too much, after a few messages."""
IMPATIENT = Limits(ahead=2048, debt=4096, ping=3.0, idle=10.0, stall=60.0)
"""Those of who gives up a peer that it does not hear for ten seconds."""
FEW = Limits(events=32)
"""So that a turn is more than a packet after a few messages."""
KEY = b"sixteen bytes or more"


@record
class Says:
    """A message."""

    who: str
    number: int
    text: str


@record
class State:
    """What each shows of itself: always one."""

    who: str
    number: int


def talker(broker: BrokerProcess, name: str, cap: SturdyRef, glitches: list[str]) -> None:
    """Says much at once, changes its state often, and hears everybody."""
    number = field(0)
    every(0.7, lambda: setattr(number, "value", number.value + 1))
    said = [0]

    @connect(broker.address, cap, limits=SMALL)
    def connected(ds: Ref) -> None:
        linked_task(trio.sleep_forever)
        assert_(ds, lambda: State(name, number.value))
        there: dict[str, int] = {}

        @on_message(ds, Says(capture(), capture(int), ANY))
        def says(who: str, number: int) -> None:
            pass

        @on_asserted(ds, State(capture(), ANY))
        def comes(who: str) -> None:
            there[who] = there.get(who, 0) + 1

        @during(ds, State(capture(), capture(int)))
        def shows(who: str, number: int) -> None:
            pass

        def burst() -> None:
            for _ in range(12):
                said[0] += 1
                send(ds, Says(name, said[0], "x" * 400))
                number.value += 1
            sync(ds, lambda: None)

        every(1.3, burst)


def quick(broker: BrokerProcess, name: str) -> None:
    """Changes its state many times, with messages in between, which keep what waits from collapsing."""
    number = field(0)

    @connect(broker.address, limits=SMALL)
    def connected(ds: Ref) -> None:
        assert_(ds, lambda: State(name, number.value))

        def more() -> None:
            number.value += 1
            send(ds, Says(name, number.value, "y" * 300))

        every(0.05, more)


def watcher(broker: BrokerProcess, glitches: list[str]) -> None:
    """Sees each of the others in one state at least, at each moment from the first on."""

    @connect(broker.address, limits=SMALL)
    def connected(ds: Ref) -> None:
        shown: dict[str, set[int]] = {}

        @on_message(ds, Says(capture(), capture(int), ANY))
        def says(who: str, number: int) -> None:
            pass

        @on_asserted(ds, State(capture(), capture(int)))
        def comes(who: str, number: int) -> None:
            shown.setdefault(who, set()).add(number)

        @on_retracted(ds, State(capture(), capture(int)))
        def goes(who: str, number: int) -> None:
            shown[who].discard(number)
            if not shown[who]:
                glitches.append(who)


@scenario(seeds=100, until=90.0)
def talking(world: World) -> None:
    """Three that talk, of whom two have a narrowed capability, through all that can happen to connections."""
    broker = world.broker("b", config=Config(limits=SMALL))
    narrow = broker.cap().attenuate("<reject <rec jump []>>")
    for name, cap in (("t1", broker.cap()), ("t2", narrow), ("t3", narrow)):
        world.process(name, talker, broker, name, cap, [])
    world.faults(cuts=2, kills=1, partitions=2, pauses=1, until=10.0)
    world.eventually("it goes on", lambda: world.now > 20.0, within=60.0)


@scenario(seeds=100, until=60.0)
def behind(world: World) -> None:
    """A slow consumer, which is not to see what was never so."""
    glitches: list[str] = []
    broker = world.broker("b", config=Config(limits=SMALL))
    world.process("q", quick, broker, "q")
    world.process("w", watcher, broker, glitches)
    world.faults(partitions=3, pauses=2, until=12.0)
    world.never("a state is missed", lambda: glitches)
    world.eventually("it goes on", lambda: world.now > 16.0, within=40.0)


def flooder(broker: BrokerProcess) -> None:
    """Sends more at once than a broker is to have unhandled."""

    @connect(broker.address)
    def connected(ds: Ref) -> None:
        def flood() -> None:
            for number in range(12):
                send(ds, Says("f", number, "x" * 30_000))

        every(2.0, flood)


@scenario(seeds=50, until=20.0)
def flooding(world: World) -> None:
    """One sends megabytes, another hears them."""
    broker = world.broker("b", config=Config(limits=SMALL))
    world.process("f", flooder, broker)
    world.process("t", talker, broker, "t", broker.cap(), [])
    world.at(9.0, lambda: None)


def crier(broker: BrokerProcess, name: str) -> None:
    """Says more in a turn than goes into a packet, and more before all of that has gone; hears everybody."""
    said = [0]

    @connect(broker.address, limits=FEW)
    def connected(ds: Ref) -> None:
        @on_message(ds, Says(capture(), capture(int), ANY))
        def says(who: str, number: int) -> None:
            pass

        def cry() -> None:
            for _ in range(100):
                said[0] += 1
                send(ds, Says(name, said[0], "x"))

        def twice() -> None:
            cry()
            after(0, cry)

        every(2.0, twice)


@scenario(seeds=50, until=30.0)
def crying(world: World) -> None:
    """Turns that are more than a packet, one behind the other."""
    broker = world.broker("b", config=Config(limits=FEW))
    for name in ("c1", "c2"):
        world.process(name, crier, broker, name)
    world.faults(cuts=1, pauses=1, until=6.0)
    world.at(9.0, lambda: None)


def keeper(broker: BrokerProcess, pair: bool) -> None:
    """Keeps two values in each turn, forgets two others, and asks whether it is done, again and again."""
    count = [0]

    @connect(broker.address, broker.cap("durable"))
    def connected(ds: Ref) -> None:
        def more() -> None:
            number = count[0]
            count[0] += 1
            for side in ("left", "right"):
                keep(ds, State(side, number))
                if number >= 3:
                    forget(ds, State(side, number - 3))
            sync(ds, lambda: None)

        every(0.04, more)


@scenario(seeds=100, until=60.0)
def ending(world: World) -> None:
    """A durable broker that dies, or is ended in order, again and again, while two keep and ask."""
    broker = world.broker("b", durable=True)
    for name in ("k1", "k2"):
        world.process(name, keeper, broker, True)
    for _ in range(4):
        world.at(1.0 + world.draw("end", 12_000) / 1000, broker.end)
    world.faults(kills=2, disk=True, until=12.0)
    world.eventually("it goes on", lambda: world.now > 16.0, within=40.0)


@scenario(seeds=20, until=60.0)
def outage(world: World) -> None:
    """A server that is away for long, and two who dial."""
    broker = world.broker("b", restart=6.0)
    for name in ("t1", "t2"):
        world.process(name, talker, broker, name, broker.cap(), [])
    world.at(2.0 + world.draw("kill", 1000) / 1000, broker.kill)
    world.at(16.0, lambda: None)


@scenario(seeds=20, until=70.0)
def unheard(world: World) -> None:
    """A client that nothing is heard of for long, over a connection that is whole."""
    broker = world.broker("b", config=Config(limits=IMPATIENT))
    for name in ("t1", "t2"):
        world.process(name, talker, broker, name, broker.cap(), [])
    world.at(4.0, lambda: world.network.partition("t1", "b"))
    world.at(4.0 + 45.0, world.network.heal)


def exposed(broker: BrokerProcess) -> None:
    """Lets others have the reference of a handler itself."""
    local = dataspace()
    on_message(local, ["number", capture(int)])(lambda number: None)

    @connect(broker.address)
    def connected(ds: Ref) -> None:
        @during(local, Observe(ANY, capture()))
        def handler(observer: Value) -> None:
            assert_(ds, ["handler", observer])


def rude(broker: BrokerProcess) -> None:
    """Tells a handler what it has not asked for."""

    @connect(broker.address)
    def connected(ds: Ref) -> None:
        @during(ds, ["handler", capture(Ref)])
        def handler(observer: Ref) -> None:
            every(1.0, lambda: send(observer, ["nonsense", 1, 2, 3]))


@scenario(seeds=10, until=20.0)
def intruding(world: World) -> None:
    """One has a handler's reference, and sends it nonsense."""
    broker = world.broker("b")
    world.process("e", exposed, broker)
    world.process("r", rude, broker)
    world.at(8.0, lambda: None)


def lent(ds_of: BrokerProcess) -> None:
    """Is bound to a name for a while."""


def borrower(broker: BrokerProcess) -> None:
    """Goes on using what was lent, to the end and beyond."""
    survivors: list[Ref] = []

    @connect(broker.address, mint("lent", KEY))
    def connected(ds: Ref) -> None:
        survivors[:] = [ds]
        assert_(ds, State("borrower", 1))

    @connect(broker.address)
    def plainly(ds: Ref) -> None:
        every(0.5, lambda: [send(each, Says("borrower", 1, "still here")) for each in survivors])


@scenario(seeds=10, until=20.0)
def lending(world: World) -> None:
    """A capability that is withdrawn while somebody uses it."""
    broker = world.broker("b")
    world.process("w", borrower, broker)

    def lend() -> None:
        space, ds, server = broker.space, broker.ds, broker.broker
        if space is not None and ds is not None and server is not None:

            def begin() -> None:
                handle = bind(space, "lent", KEY, ds)
                after(3.0, handle.retract)

            server.enter(begin)

    world.at(1.0, lend)
    world.at(9.0, lambda: None)


def cheat(broker: BrokerProcess) -> None:
    """Gives two assertions one number, which is against the protocol."""

    @connect(broker.address)
    def connected(ds: Ref) -> None:
        def twice() -> None:
            entity = ds.entity
            assert isinstance(entity, Proxy)
            assert_(ds, State("cheat", 1))
            after(0.2, partial(again, entity))

        def again(proxy: Proxy) -> None:
            session_of(proxy).last_handle -= 1
            assert_(ds, State("cheat", 2))

        after(1.0, twice)


@scenario(seeds=10, until=20.0)
def cheating(world: World) -> None:
    """A peer that breaks the protocol is let go, and nothing of it stays."""
    broker = world.broker("b")
    world.process("c", cheat, broker)
    world.process("t", talker, broker, "t", broker.cap(), [])
    world.at(8.0, lambda: None)
