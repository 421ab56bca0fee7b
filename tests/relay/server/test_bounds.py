"""What a broker bounds for all sessions together: what is held, how many there are, and who may come any longer."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from relay import connect
from relay.capabilities.sturdy import DEFAULT, claim, parse_ref, revocation, show
from relay.protocol.limits import Limits
from relay.protocol.packets import MINE, A, M, R, WireRef
from relay.server.broker import DEPARTING
from relay.server.census import Census, Peer
from relay.server.config import Overload, configure
from relay.server.overload import Governor
from syndicate import Ref, Symbol, assert_, capture, open_system
from syndicate.values.value import SEQ, SET, freeze
from tests.relay.commands import present
from tests.relay.hostile import OBSERVE
from tests.relay.hostile import Peer as Wire
from tests.relay.server.test_broker import serving
from tests.waiting import until


async def test_what_has_gone_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is what is held for those who are there, and not the memory of the process, which may never fall."""
    monkeypatch.setattr("relay.server.overload.PATIENCE", 60.0)
    monkeypatch.setattr("syndicate.outside.Outside.resident", lambda self: 1 << 50)
    async with serving("tcp://127.0.0.1:0") as server:
        census = server.broker.census
        server.broker.governor.marks = Overload(memory=1e6)

        def heavy() -> None:
            @connect(server.address)
            def on_connected(ds: Ref) -> None:
                for number in range(40):
                    assert_(ds, ["heavy", number, "x" * 50_000])

        late: list[tuple[str, str]] = []
        async with open_system(heavy):
            await until(lambda: census.overload)
            assert [each.what for each in census.overload] == ["memory"]
            async with open_system(present, server.address, "late", late):
                await trio.sleep(0.3)
                assert not late
        async with open_system(present, server.address, "late", late):
            await until(lambda: late)
            await until(lambda: not census.overload)
            await until(lambda: census.account() == sum(peer.held for peer in census.peers.values()) > 0)
        await until(lambda: not census.peers)
        assert census.account() == 0


async def test_who_holds_most_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing else helps, the peer for which most is held loses its session; nobody else."""
    monkeypatch.setattr("relay.server.overload.PATIENCE", 0.2)
    async with serving("tcp://127.0.0.1:0") as server:
        census = server.broker.census
        bystander: list[tuple[str, str]] = []

        def heavy() -> None:
            @connect(server.address)
            def on_connected(ds: Ref) -> None:
                if not census.lost:
                    for number in range(60):
                        assert_(ds, ["heavy", number, "x" * 50_000])

        async with open_system(present, server.address, "alice", bystander):
            await until(lambda: bystander)
            server.broker.governor.marks = Overload(memory=1e6)
            async with open_system(heavy):
                await until(lambda: census.lost == {"overload": 1})
                await until(lambda: not census.overload)
                assert bystander == [("+", "alice")]


async def test_nobody_looks_while_nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are idle do not wake the governor, however many they are."""
    looks = [0]
    look = Governor.look

    def counted(self: Governor) -> None:
        looks[0] += 1
        look(self)

    monkeypatch.setattr(Governor, "look", counted)
    async with serving("tcp://127.0.0.1:0") as server:
        seen: list[list[tuple[str, str]]] = [[] for _ in range(5)]
        async with open_system() as system:
            for number, each in enumerate(seen):
                system.spawn(present, server.address, str(number), each)
            await until(lambda: all(len(each) == 5 for each in seen))
            await until(lambda: not server.broker.census.traffic.heard)
            assert looks[0]
            before = looks[0]
            await trio.sleep(20 * server.broker.governor.period)
            assert looks[0] <= before + 1


async def test_who_comes_does_not_outrun_those_who_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast untrusted peers come, there are no more sessions than places, and those few that have yet to end."""
    places, numbers = 10, list[int]()
    arrived = Census.arrived

    def counted(self: Census, peer: Peer) -> None:
        arrived(self, peer)
        numbers.append(len(self.peers))

    monkeypatch.setattr(Census, "arrived", counted)
    async with serving("tcp://127.0.0.1:0") as server:
        server.broker.lobby.places = places
        host, _, port = server.address.removeprefix("tcp://").partition(":")

        crowd = f"""
import socket
peers = []
for _ in range(2000):
    peers.append(socket.create_connection(({host!r}, {port})))
    peers[-1].setblocking(False)
    peers[-1].send(b"\\x93\\x01\\x02\\xdb\\x00\\x0f\\x00\\x00" + b"x" * 100_000)
"""
        await trio.run_process([sys.executable, "-c", crowd])
        await until(lambda: len(numbers) == 2000 and not server.broker.census.peers)
        assert max(numbers) <= places + 2 * DEPARTING


NARROW = parse_ref(DEFAULT).attenuate("<reject <lit 1>>")


@pytest.mark.parametrize(
    ("most", "cap", "other", "why"),
    [
        ("total", DEFAULT, DEFAULT, "too-many-sessions"),
        ("address", DEFAULT, show(NARROW), "too-many-of-this-address"),
        ("capability", show(NARROW), show(NARROW.attenuate("<reject <lit 2>>")), "too-many-of-this-capability"),
    ],
)
async def test_connections_are_bounded(
    most: str, cap: str, other: str, why: str, logs: list[MutableMapping[str, Any]]
) -> None:
    """In all, by address and by capability: who is one too many gets to know which, and comes in when another has
    gone.
    """
    async with serving("tcp://127.0.0.1:0") as server:
        setattr(server.broker.turnstile, most, 1)
        here: list[str] = []

        def come(cap: str, name: str) -> None:
            connect(server.address, cap)(lambda ds: here.append(name))

        async with open_system() as late:
            async with open_system(come, cap, "first"):
                await until(lambda: here == ["first"])
                late.spawn(come, other, "second")
                await until(lambda: server.broker.census.lost[why])
                assert here == ["first"]
                if most == "capability":  # what is not narrowed is another one
                    late.spawn(come, DEFAULT, "owner")
                    await until(lambda: here == ["first", "owner"])
            await until(lambda: "second" in here)
        await until(lambda: not server.sessions)
        assert len(server.broker.turnstile) == 0
    assert any(why in str(entry.get("reason")) and entry["event"].startswith("no connection") for entry in logs)


async def test_the_capabilities_that_a_session_shows_are_bounded(tmp_path: Path) -> None:
    """Whoever narrows what they have again and again is remembered with only so many; what they have stays."""
    answers: list[Any] = []

    def ask() -> Wire:
        peer = Wire(f"{tmp_path}/s")
        for n in range(6):
            narrow = freeze(parse_ref(DEFAULT).attenuate(f"<reject <lit {n}>>"))
            for again in (0, 1):
                number = 100 + 2 * n + again
                peer.send(0, (A, (Symbol("resolve"), narrow, WireRef(MINE, number)), number))
                while not (said := [event[1] for _, event in peer.receive() if event[0] is A]):
                    pass
                answers.extend(said)
                peer.send(0, (R, number))
        peer.send(peer.ds, peer.observe(["probe", capture(int)], 7))
        peer.send(peer.ds, (M, freeze(["probe", 1])))
        while not any(event[0] is M for _, event in peer.receive()):
            pass
        return peer

    async with serving(f"unix://{tmp_path}/s", limits=Limits(resolves=4)) as server:
        wire = await trio.to_thread.run_sync(ask)
        (peer,) = server.broker.census.peers.values()
        assert len(peer.capabilities) == 4
        assert server.broker.census.lost["too-many-capabilities"] == 6
        wire.socket.close()
    assert [answer[0] for answer in answers] == [Symbol("accepted")] * 6 + [Symbol("rejected")] * 6
    assert {answer[1] for answer in answers[6:]} == {Symbol("too-many-capabilities")}


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_an_interest_in_no_pattern_ends_nobody(depth: int, tmp_path: Path) -> None:
    """What looks like an interest, and has in its pattern what looks like one, is data to the server, at any depth."""
    value: Any = (SET,)
    for _ in range(depth):
        value = (SEQ, (OBSERVE, value, WireRef(MINE, 6)))

    def say() -> None:
        peer = Wire(f"{tmp_path}/s")
        peer.send(peer.ds, (A, (OBSERVE, value, WireRef(MINE, 6)), 9))
        peer.send(peer.ds, peer.observe(["probe", capture(int)], 7))
        peer.send(peer.ds, (M, freeze(["probe", 1])))
        while not any(event[0] is M for _, event in peer.receive()):
            pass
        peer.socket.close()

    async with serving(f"unix://{tmp_path}/s") as server:
        await trio.to_thread.run_sync(say)
        await until(lambda: not server.sessions)


async def test_reload_revokes(tmp_path: Path) -> None:
    """Who holds what the new configuration revokes gets to know, and what it had said is gone; and back, once it is
    not.
    """
    here = f"unix://{tmp_path}/s"
    narrow = parse_ref(DEFAULT).attenuate("<reject <lit 1>>")
    name = revocation(claim(freeze(narrow)).sig)
    async with serving(here) as server:
        seen = server.watch(["said", capture()])
        async with open_system(lambda: connect(here, show(narrow))(lambda ds: assert_(ds, ["said", "this"]))):
            await until(lambda: seen == [("+", "this")])
            await server.broker.reload(configure({"listen": [here], "revoked": [name]}))
            await until(lambda: seen == [("+", "this"), ("-", "this")])
            await server.broker.reload(configure({"listen": [here]}))
            await until(lambda: seen[2:] == [("+", "this")])


async def test_who_does_not_care_that_it_is_revoked(tmp_path: Path) -> None:
    """A program that goes on with what it has been given, whatever the gatekeeper answers, reaches nothing by it."""
    here = f"unix://{tmp_path}/s"
    name = revocation(claim(freeze(parse_ref(DEFAULT))).sig)
    async with serving(here) as server:
        seen = server.watch(["said", capture()])

        def say(peer: Wire, what: str, number: int) -> None:
            with suppress(OSError):
                peer.send(peer.ds, (A, freeze(["said", what]), number))
                peer.send(peer.ds, (M, freeze(["said", what])))

        peer = await trio.to_thread.run_sync(Wire, f"{tmp_path}/s")
        await trio.to_thread.run_sync(say, peer, "before", 50)
        await until(lambda: len(seen) == 2)
        await server.broker.reload(configure({"listen": [here], "revoked": [name]}))
        await trio.to_thread.run_sync(say, peer, "after", 51)
        await until(lambda: not server.broker.census.peers)
        assert seen[2:] == [("-", "before")]
        assert server.broker.census.lost == {"revoked": 1}
        peer.socket.close()
