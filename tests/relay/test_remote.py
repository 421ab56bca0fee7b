"""A dataspace of a broker under one reference: brokers are killed and come back, as threads and asyncio see them."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from relay.remote import Connection, ConnectionState, open_remote
from syndicate import assert_, capture, dataspace, on_message, prevent_inert_check, query_set, send
from syndicate import asyncio as hosted
from syndicate.errors import CallTimeout, ConnectError, TargetEnded
from syndicate.thread import System
from tests.relay.commands import Process, Server, Start
from tests.work import PATIENCE


def _again(start: Start, address: str) -> Process:
    process = start("server", "--listen", address)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _free() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def test_killed_and_restarted_seen_from_threads(start: Start) -> None:
    """Nothing of a lost connection is shown as current; what was asserted is asserted again, and all goes on."""
    address = _free()
    server = _again(start, address)
    with System() as system:
        ds = system.connect(address, timeout=PATIENCE)
        view = system.query(ds, ["present", capture()])
        names = system.query(ds, ["present", capture()], stale="keep")
        with system.asserted(ds, ["present", "ann"]):
            assert names.wait(lambda value: value == ["ann"], PATIENCE)
            assert view.wait(lambda value: value == ["ann"], PATIENCE)
            assert view.connected is True
            assert system.snapshot(ds, ["present", capture()]) == ["ann"]
            server.kill()
            server.wait()
            view.wait(lambda value: not value, PATIENCE)
            assert [view.connected] == [False]
            assert view.as_of <= time.time()
            assert (names.value, names.connected) == (["ann"], False)
            with pytest.raises(CallTimeout, match="there is no connection"):
                names.wait(lambda value: len(value) == 2, 0.01)
            with pytest.raises(TargetEnded):
                system.snapshot(ds, ["present", capture()])
            state = system.state(ds)
            assert isinstance(state, ConnectionState)
            assert state.name in {"lost", "connecting"}
            assert state.reason
            _again(start, address)
            view.wait(lambda value: value == ["ann"], PATIENCE)
            assert view.connected is True
        names.wait(lambda value: not value, PATIENCE)
        view.wait(lambda value: not value, PATIENCE)
        assert view.connected


def test_state_and_data_go_in_one_turn(start: Start) -> None:
    """No turn sees what came over a connection that is not there: a block looks at both."""
    address = _free()
    server = _again(start, address)
    with System() as system:
        seen: list[tuple[bool, int]] = []

        def begin() -> None:
            from syndicate import dataflow

            prevent_inert_check()
            remote = open_remote(address)
            present = query_set(remote.ds, ["present", capture()])
            assert_(remote.ds, ["present", "ann"])
            dataflow(lambda: seen.append((remote.state.value.connected, len(present.value))))

        system.call(begin)
        for _ in range(3):
            _until(lambda: seen[-1] == (True, 1))
            server.kill()
            server.wait()
            _until(lambda: seen[-1] == (False, 0))
            server = _again(start, address)
        assert set(seen) == {(False, 0), (True, 0), (True, 1)}
        changes = [one for one, before in zip(seen[1:], seen, strict=False) if one != before]
        after = [one for one, before in zip(changes[1:], changes, strict=False) if before == (True, 1)]
        assert after == [(False, 0)] * 3


def _until(holds: object) -> None:
    assert callable(holds)
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_state_as_an_assertion(start: Start) -> None:
    """In a dataspace of one's own: connecting, refused, connected, lost."""
    address = _free()
    with System() as system:
        here = system.call(dataspace)
        with system.events(here, Connection(address, capture())) as events:
            system.call(lambda: (open_remote(address, report=here), None)[1])
            first = events.take(PATIENCE)
            assert first is not None
            assert first.captures[0].name == "connecting"
            server = _again(start, address)
            names = ["connecting"]
            while names[-1] != "connected":
                event = events.take(PATIENCE)
                assert event is not None
                names.append(event.captures[0].name)
            server.kill()
            while names[-1] != "lost":
                event = events.take(PATIENCE)
                assert event is not None
                if event.kind == "+":
                    names.append(event.captures[0].name)


def test_a_refused_capability_says_so(server: Server) -> None:
    """The state names it, and why."""
    _, address = server
    wrong = '<ref {oid: "syndicate" sig: #x"00000000000000000000000000000000"}>'
    with System() as system:
        here = system.call(dataspace)
        with system.events(here, Connection(address, capture())) as events:
            system.call(lambda: (open_remote(address, wrong, report=here), None)[1])
            while True:
                event = events.take(PATIENCE)
                assert event is not None
                if event.captures[0].name == "refused":
                    assert "capability" in event.captures[0].reason
                    break
        with pytest.raises(ConnectError, match="no connection"):
            system.connect(address, wrong, timeout=0.5)


def test_messages_and_peers(server: Server) -> None:
    """Others see what is said, and are heard."""
    _, address = server
    with System() as system:
        ds = system.connect(address, timeout=PATIENCE)
        heard: list[int] = []
        system.call(lambda: [on_message(ds, ["to us", capture()])(heard.append)])
        system.snapshot(ds, ["nothing"])
        with System() as other:
            theirs = other.connect(address, timeout=PATIENCE)
            other.call(send, theirs, ["to us", 5])
            other.snapshot(theirs, ["nothing"])
        _until(lambda: heard == [5])
        with system.events(ds, ["from us", capture()]) as events:
            system.snapshot(ds, ["nothing"])
            system.call(send, ds, ["from us", 6])
            event = events.take(PATIENCE)
            assert event is not None
            assert event.captures == (6,)


def test_asyncio(start: Start) -> None:
    """The same from asyncio, with the relay in the trio that is its guest."""
    address = _free()
    server = _again(start, address)

    async def main() -> None:
        nonlocal server
        async with hosted.open_system() as system:
            async with hosted.connect(address, timeout=PATIENCE) as ds:
                async with system.asserted(ds, ["present", "ann"]):
                    assert await system.snapshot(ds, ["present", capture()]) == ["ann"]
                    server.kill()
                    server.wait()
                    while (await system.state(ds)).connected:  # noqa: ASYNC110  # as a user would
                        await asyncio.sleep(0.01)
                    with pytest.raises(TargetEnded):
                        await system.snapshot(ds, ["present", capture()])
                    server = _again(start, address)
                    while not (await system.state(ds)).connected:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                    assert await system.snapshot(ds, ["present", capture()]) == ["ann"]
                assert await system.snapshot(ds, ["present", capture()]) == []
            with pytest.raises(ConnectError):
                async with hosted.connect(_free(), timeout=0.3):
                    pass

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
