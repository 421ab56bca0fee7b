"""What an untrusted peer can do, and what an idle connection costs: counted, on a virtual clock and on sockets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from relay.capabilities.gatekeeper import Gatekeeper
from relay.capabilities.sturdy import DEFAULT as PUBLIC
from relay.capabilities.sturdy import parse_ref
from relay.protocol.codec import Codec, Msgpack, Preserves, PreservesText
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import MINE, A, Error, M, Nop, S, TurnPacket, WireRef, write
from relay.server.broker import Broker
from relay.server.config import configure
from relay.session.deadlines import NEVER, Deadlines
from relay.session.session import Session
from relay.transport import Address, open_stream, poller
from relay.transport.poller import Poller
from syndicate import Entity, Symbol, dataspace, open_system, ref, send
from syndicate.actors.system import System
from syndicate.values.pattern import capture, encode, pattern_of
from syndicate.values.value import SEQ, freeze
from tests.relay.doors import Files
from tests.relay.server.test_broker import serving
from tests.relay.session.test_link import TIMES, Fake, begin, goes_on, published
from tests.relay.wire import Wire as Both
from tests.waiting import until

CODECS: list[Callable[[], Codec]] = [Msgpack, Preserves, PreservesText]


class Wire(Fake):
    """Bytes of a peer, in any codec; what it is sent is not looked at."""

    async def send(self, packets: Sequence[bytes]) -> None:
        while self.stuck:  # noqa: ASYNC110 - a test may change its mind
            await trio.sleep(0.05)

    async def bring(self, data: bytes) -> None:
        """Let the peer send some bytes, and all be done with them."""
        self._say.send_nowait(data)
        await trio.testing.wait_all_tasks_blocked()


def guarded() -> Any:
    """A gatekeeper that has a dataspace to give."""
    return ref(Gatekeeper({"syndicate": (b"", dataspace())}))


RESOLVE = TurnPacket([(0, (A, (Symbol("resolve"), freeze(parse_ref(PUBLIC)), WireRef(MINE, 0)), 1))])
WRONG = TurnPacket(
    [(0, (A, (Symbol("resolve"), freeze(parse_ref(PUBLIC.replace("syndicate", "other"))), WireRef(MINE, 0)), 1))]
)


@pytest.mark.parametrize(
    "said",
    [
        [],
        [Nop()],
        [TurnPacket([])],
        [WRONG],
        [TurnPacket([(0, (M, "hello"))])],
        [TurnPacket([(0, (S, WireRef(MINE, 5)))])],
        [Nop()] * 50,
    ],
    ids=["nothing", "a ping", "an empty turn", "a wrong capability", "a message", "a sync", "many pings"],
)
async def test_only_a_capability_ends_the_opening(system: System, said: list[Any]) -> None:
    """Whatever else an untrusted peer says, and however often, it is cut off after so many seconds."""
    stream, guest = Fake(), Fake()
    sessions = [begin(system, each, publish=guarded) for each in (stream, guest)]
    guest.say(RESOLVE)
    for packet in said:
        stream.say(packet)
        await trio.sleep(1.9 / len(said))
    assert goes_on(sessions[0])
    assert sessions[0].untrusted
    await trio.sleep(2.1)
    assert sessions[0].reason == "opening: no capability within 2 seconds"
    assert goes_on(sessions[1])
    assert not sessions[1].untrusted


@pytest.mark.parametrize("admitted", [False, True])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("pace", [1, 100, 30_000])
async def test_a_packet_that_has_begun_must_end(
    system: System, codec: Callable[[], Codec], pace: int, admitted: bool
) -> None:
    """Who sends too little of it in a while is cut off, wherever it has stopped, and whether it pings or not."""
    stream, writer = Wire(), codec()
    session = begin(system, stream, evolve(TIMES, opening=1e6, idle=1e6), guarded if admitted else dataspace)
    if admitted:
        await stream.bring(writer.encode(write(RESOLVE)))
    await stream.bring(writer.encode(write(Nop())))
    packet = writer.encode(write(TurnPacket([(0, (M, "x" * 900_000))])))
    await trio.sleep(30)
    assert goes_on(session), "no packet has begun"
    sent = 0
    while goes_on(session) and sent < min(300_000, 20 * pace):
        await stream.bring(packet[sent : sent + pace])
        sent += pace
        await trio.sleep(1.01)
    assert goes_on(session) == (pace == 30_000), "30,000 bytes in a second are 64 KiB in four"
    await trio.sleep(4.2)
    assert session.reason == "stall: a packet was begun, and no more than 65536 bytes of it came within 4 seconds"


async def test_a_slow_packet_arrives(system: System) -> None:
    """It may take long as a whole, and what is between packets is no packet."""
    stream = Wire()
    heard: list[Any] = []

    class Ear(Entity):
        def message(self, value: Any) -> None:
            heard.append(len(value))

    target = published(system, Ear())
    session = begin(system, stream, evolve(TIMES, idle=1e6), publish=lambda: target)
    packet = Msgpack().encode(write(TurnPacket([(0, (M, "x" * 900_000))])))
    stream.say(Nop())
    for _ in range(3):
        for start in range(0, len(packet), 30_000):
            await stream.bring(packet[start : start + 30_000])
            await trio.sleep(1.3)
        await trio.sleep(10)
    assert goes_on(session)
    assert heard == [900_000] * 3


def half(codec: Codec, size: int) -> bytes:
    """A packet that is large because of one string, without its end."""
    return codec.encode(write(TurnPacket([(0, (M, "x" * size))])))[: size - 10]


def small(codec: Codec, size: int) -> bytes:
    """A packet of very small values, without its end."""
    return codec.encode(write(TurnPacket([(0, (M, freeze([[]] * (size // 2))))])))[: size - 10]


def many(codec: Codec, size: int) -> bytes:
    """Assertions that nobody answers."""
    return b"".join(codec.encode(write(TurnPacket([(0, (A, "x" * 100, i))]))) for i in range(size // 100))


def references(codec: Codec, size: int) -> bytes:
    """An assertion of many references."""
    forms = tuple(WireRef(MINE, i) for i in range(size // 50))
    return codec.encode(write(TurnPacket([(0, (A, (SEQ, *forms), 1))])))


def questions(codec: Codec, size: int) -> bytes:
    """Things to be answered, to somebody who does not read."""
    return b"".join(codec.encode(write(TurnPacket([(0, (S, WireRef(MINE, 1)))] * 100))) for _ in range(size // 1000))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("attack", [half, small, many, references, questions])
async def test_what_an_untrusted_peer_may_have(
    system: System, codec: Callable[[], Codec], attack: Callable[[Codec, int], bytes]
) -> None:
    """Before it would be more than its budget, the session ends, and nothing of it is held."""
    stream = Wire()
    limits = evolve(TIMES, stranger=30_000, ahead=1 << 18, opening=1e6, stall=1e6)
    session = begin(system, stream, limits, guarded)
    stream.stuck = attack is questions
    data = attack(codec(), 100_000 if attack is not small else 3000)
    most = 0
    for start in range(0, len(data), 1000):
        if goes_on(session):
            await stream.bring(data[start : start + 1000])
            most = max(most, session.held)
    if attack is small and codec is Msgpack:  # it builds nothing before the end
        assert goes_on(session)
        return
    assert session.exceeded == "stranger"
    assert "resolve one first" in str(session.reason)
    assert most <= 30_000 + 64 * 1000


async def test_who_has_a_capability_has_more(system: System) -> None:
    """The budget is only an untrusted peer's."""
    stream = Wire()
    session = begin(system, stream, evolve(TIMES, stranger=30_000), guarded)
    await stream.bring(Msgpack().encode(write(RESOLVE)))
    await stream.bring(half(Msgpack(), 500_000)[:400_000])
    assert goes_on(session)
    assert session.held > 400_000


def test_the_bytes_of_assertions_are_bounded() -> None:
    """However few they are; and what is retracted is given back."""
    wire = Both(lambda: ref(Entity()), Limits(asserted=100_000))
    for i in range(20):
        wire.right.inject(TurnPacket([(0, (A, "x" * 60_000, i))]))
        wire.right.inject(TurnPacket([(0, (Symbol("R"), i))]))
    wire.system.drain()
    assert goes_on(wire.right.session)
    assert wire.right.session.assertions.size == 0
    wire.right.inject(TurnPacket([(0, (A, "x" * 60_000, 1)), (0, (A, "x" * 60_000, 2))]))
    wire.system.drain()
    assert wire.right.session.exceeded == "asserted"
    assert isinstance(wire.right.sent[-1], Error)


# ---------------------------------------------------------------------------------------------------- the lobby


@pytest.mark.parametrize("scheme", ["tcp", "unix", "ws"])
async def test_untrusted_peers_keep_nobody_out(scheme: str, tmp_path: Path) -> None:
    """However many hold their connections: the one that was there longest goes, and who has a capability stays."""
    where = f"unix://{tmp_path}/s" if scheme == "unix" else f"{scheme}://127.0.0.1:0"
    limits = Limits(strangers=8, opening=1e6)
    async with serving(where, limits=limits) as server, trio.open_nursery() as nursery:
        address = Address.parse(server.address)
        guest = await open_stream(address, limits=limits)
        await guest.send([Msgpack().encode(write(RESOLVE))])
        assert await guest.receive()
        gone: list[int] = []

        async def wait(number: int, stream: Any) -> None:
            try:
                while await stream.receive():
                    pass
            except trio.BrokenResourceError:
                pass
            except trio.ClosedResourceError:
                return
            gone.append(number)

        silent = []
        for number in range(40):
            stream = await open_stream(address, limits=limits)
            silent.append(stream)
            nursery.start_soon(wait, number, stream)
            if number % 2:
                await stream.send([Msgpack().encode(write(Nop()))])
        await until(lambda: len(gone) >= 32)
        await until(lambda: len(server.sessions) <= 9)
        assert sorted(gone) == list(range(32))
        assert len(server.broker.lobby) == 8
        late = await open_stream(address, limits=limits)
        await late.send([Msgpack().encode(write(RESOLVE))])
        assert await late.receive()
        assert len(server.broker.lobby) == 7
        await guest.send([Msgpack().encode(write(TurnPacket([(1, (S, WireRef(MINE, 1)))])))])
        assert await guest.receive()
        for stream in [*silent, guest, late]:
            await stream.close()
        await until(lambda: not server.sessions)
        assert len(server.broker.lobby) == 0
        nursery.cancel_scope.cancel()


async def test_others_are_looked_at_between_the_ends_of_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are sent away at once: of whom the sockets are not looked at meanwhile is one."""
    ends = looked = most = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **options: Any) -> Any:
            nonlocal ends, most
            ends += 1
            most = max(most, ends - looked)
            return method(*arguments, **options)

        return count

    look = Poller.look

    def looks(self: Poller, *, crowd: bool = True) -> bool:
        nonlocal looked
        looked = ends
        return look(self, crowd=crowd)

    monkeypatch.setattr(Session, "withdraw", counted(Session.withdraw))
    monkeypatch.setattr(Broker, "_gone", counted(Broker._gone))
    monkeypatch.setattr(Poller, "look", looks)
    monkeypatch.setattr(poller, "AWHILE", -1.0)  # after each step of a task, however fast the machine is
    monkeypatch.setattr(poller, "make_rounds", lambda *arguments: False)  # kernels call no method for a look
    limits = Limits(strangers=40, opening=1e6)
    async with serving(f"unix://{tmp_path}/s", limits=limits) as server:
        address = Address.parse(server.address)
        silent = [await open_stream(address, limits=limits) for _ in range(40)]
        for stream in silent:
            await stream.send([Msgpack().encode(write(Nop()))])
        peers = server.broker.census.peers
        await until(lambda: sum(peer.session is not None and peer.session.pings for peer in peers.values()) == 40)
        assert ends == 0
        while server.broker.lobby.evict():
            pass
        await until(lambda: not server.sessions)
        assert ends == 80
        assert most == 1
        for stream in silent:
            await stream.close()


@pytest.mark.parametrize("scheme", ["ws", "tls"])
async def test_handshakes_that_never_end_keep_nobody_out(scheme: str, tmp_path: Path) -> None:
    """They wait in the same lobby."""
    files = Files(tmp_path)
    listen: Any = "ws://127.0.0.1:0"
    if scheme == "tls":
        cert, key = files.server.certificate, files.server.key
        listen = {"address": "tls://127.0.0.1:0", "cert": str(cert), "key": str(key)}
    config = configure({"listen": [listen], "limits": {"strangers": 8, "opening": 1e6}})
    opened = trio.Event()
    async with open_system() as system:
        broker = Broker.configured(config, opened=lambda _: opened.set())
        system.spawn(broker, name="broker")
        await opened.wait()
        address = Address.parse(broker.addresses[0])
        silent = [await trio.open_tcp_stream(address.host, address.port) for _ in range(40)]
        stream = await open_stream(address, tls=files.client if scheme == "tls" else None)
        await stream.send([Msgpack().encode(write(RESOLVE))])
        assert await stream.receive()
        await until(lambda: broker.lobby.evicted >= 33)
        assert len(broker.lobby) <= 8
        await stream.close()
        for each in silent:
            await each.aclose()


@pytest.mark.parametrize("how", ["evicted", "kicked"])
async def test_who_is_sent_away_and_does_not_read_leaves_no_task(how: str, tmp_path: Path) -> None:
    """Over TLS a task reads and another writes, which waits for something to write, or for the peer to take it."""
    files = Files(tmp_path)
    cert, key = str(files.server.certificate), str(files.server.key)
    opened = trio.Event()
    async with open_system() as system:
        config = configure({"listen": [{"address": "tls://127.0.0.1:0", "cert": cert, "key": key}]})
        broker = Broker.configured(config, opened=lambda _: opened.set())
        system.spawn(broker, name="broker")
        await opened.wait()
        await trio.testing.wait_all_tasks_blocked()
        before = system._tasks
        address = Address.parse(broker.addresses[0])
        stream = await open_stream(address, tls=files.client)
        await stream.send([Msgpack().encode(write(Nop() if how == "evicted" else RESOLVE))])
        await until(lambda: any(peer.session and peer.session.packets_in for peer in broker.census.peers.values()))
        ((name, session),) = [(peer.name, peer.session) for peer in broker.census.peers.values()]
        assert session is not None
        writing = session._wake.__self__._writing  # type: ignore[attr-defined]  # the scope of the task that writes
        if how == "evicted":
            assert broker.lobby.evict()
        else:
            await until(lambda: not session.untrusted)
            observe = A, (Symbol("Observe"), freeze(encode(pattern_of(capture(bytes)))), WireRef(MINE, 1)), 2
            await stream.send([Msgpack().encode(write(TurnPacket([(1, observe)])))])
            await until(lambda: session.asserts_in == 2)
            ds = broker.ds
            assert ds is not None
            while not session.outbox.waiting or session.outbox.waiting < session.limits.ahead:
                session.facet.enter(lambda: send(ds, b"x" * 100_000))
                await trio.testing.wait_all_tasks_blocked(0.01)
            session.facet.enter(lambda: broker._kick(name))
        await until(lambda: not session.facet.alive)
        try:
            await until(lambda: system._tasks == before, 10.0)
        finally:
            writing.cancel()  # else what is left of it keeps the system from its end, and the test as well
        assert not broker.census.peers
        await stream.close()


async def test_all_untrusted_peers_share_what_is_held_of_them() -> None:
    """However many come, each with a packet that it never ends: together they have so many bytes, those who have most
    go first, and who has a capability comes in among them.
    """
    async with (
        serving("tcp://127.0.0.1:0", limits=Limits(opening=1e6, stranger=1 << 17)) as server,
        trio.open_nursery() as nursery,
    ):
        lobby = server.broker.lobby
        lobby.room = 500_000
        most, charge = 0, lobby.charge

        def watched(guest: Any, size: int) -> bool:
            nonlocal most
            stays = charge(guest, size)
            most = max(most, lobby.held)
            return stays

        lobby.charge = watched  # type: ignore[method-assign]  # to see it at each moment
        address = Address.parse(server.address)
        unfinished = Msgpack().encode(write(TurnPacket([(0, (M, "x" * 200_000))])))

        async def hold() -> None:
            stream = await open_stream(address)
            try:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await stream.send([unfinished[:90_000]])
                    while await stream.receive():
                        pass
            finally:
                with trio.CancelScope(shield=True):
                    await stream.close()

        for _ in range(40):
            nursery.start_soon(hold)
        await until(lambda: lobby.evicted >= 34)
        assert 300_000 < most <= 500_000
        late = await open_stream(address)
        await late.send([Msgpack().encode(write(RESOLVE))])
        assert await late.receive()
        await late.close()
        nursery.cancel_scope.cancel()
        await until(lambda: not server.sessions)
        assert lobby.held == 0


async def test_an_overload_sends_untrusted_peers_away() -> None:
    """First of all, for nothing is lost with them."""
    from relay.server.config import Overload

    async with serving("tcp://127.0.0.1:0", limits=Limits(opening=1e6)) as server:
        address = Address.parse(server.address)
        guest, silent = await open_stream(address), await open_stream(address)
        await guest.send([Msgpack().encode(write(RESOLVE))])
        assert await guest.receive()
        await until(lambda: len(server.sessions) == 2)
        server.broker.governor.marks = Overload(memory=2)
        await until(lambda: len(server.sessions) == 1)
        assert server.broker.census.lost == {"strangers": 1}
        with pytest.raises((trio.BrokenResourceError, AssertionError)):
            assert await silent.receive()
        await silent.close()
        await guest.send([Msgpack().encode(write(TurnPacket([(1, (S, WireRef(MINE, 1)))])))])
        assert await guest.receive()
        await guest.close()


# ---------------------------------------------------------------------------------------------------- the clock


async def test_the_clock_asks_in_time_and_seldom(autojump_clock: Any) -> None:
    """Each in its time, whatever moves; a thousand together, and once a step."""
    clock, asked = Deadlines(), dict[int, list[float]]()
    dues = dict.fromkeys(range(1000), NEVER)

    class Asked:
        def __init__(self, i: int) -> None:
            self.step, self.due, self.i = 10.0, NEVER, i

        def look(self, now: float) -> float:
            asked.setdefault(self.i, []).append(now)
            if now >= dues[self.i]:
                dues[self.i] = NEVER
            return dues[self.i]

    began = trio.current_time()
    watches = [Asked(i) for i in range(1000)]
    for watch in watches:
        clock.add(watch, NEVER, began)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clock.run)
        await trio.sleep(60)
        assert clock.asked <= 1000 * 6
        assert clock.woken <= 7, "they are asked together"
        now = trio.current_time()
        due = {i: now + 10 + i % 37 for i in range(0, 1000, 7)}
        dues.update(due)
        asked.clear()
        await trio.sleep(60)
        for i, when in due.items():
            assert dues[i] == NEVER, "it was asked when it was due"
            first = next(time for time in asked[i] if time >= when)
            assert first - when <= 10 / 64 + 1e-9
        for watch in watches:
            clock.remove(watch)
        assert not len(clock), "whoever has gone is held no more, before its time comes"
        asked.clear()
        await trio.sleep(60)
        assert not asked
    assert trio.current_time() - began > 100
    assert math.isinf(NEVER)


async def test_idle_connections_cost_next_to_nothing(autojump_clock: Any) -> None:
    """In a minute, each is asked six times and pinged six times, and all of them together wake one task."""
    from relay.session.deadlines import deadlines

    async with open_system() as system:
        streams = [Fake() for _ in range(200)]
        sessions: list[Session] = []
        for stream in streams:
            sessions.append(begin(system, stream, DEFAULT))
            stream.say(TurnPacket([]))
        await trio.sleep(11)
        asked, woken = deadlines().asked, deadlines().woken
        reads = sum(stream.reads for stream in streams)
        await trio.sleep(60)
        assert all(map(goes_on, sessions))
        assert deadlines().asked - asked <= 200 * 12
        assert deadlines().woken - woken <= 12
        assert sum(stream.reads for stream in streams) == reads
        assert sum(len(stream.sent) for stream in streams) <= 200 * 7
