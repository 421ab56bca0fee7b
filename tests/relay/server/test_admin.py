"""What a broker says of itself: as assertions in the admin dataspace, and over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from relay import connect
from relay.capabilities.sturdy import SturdyRef, mint
from relay.server.admin import AdminPort
from relay.server.broker import Broker
from relay.server.census import Census, SessionCounts
from relay.server.config import Admin, Overload, configure
from relay.server.metrics import registry
from relay.server.overload import Governor
from relay.server.throttle import Tap
from relay.transport import Stream
from relay.transport.stream import Indirect
from relay.web.assets import client
from syndicate import ANY, Entity, Record, Ref, Symbol, assert_, capture, on_message, open_system, ref, send, sync
from syndicate.actors.system import System
from syndicate.errors import ConnectError, ListenError, ServerMissing
from syndicate.outside import outside
from syndicate.testing import Seen, watch
from syndicate.values.text import unparse
from syndicate.values.value import Value
from tests.inside import index_of
from tests.waiting import until
from tests.work import PATIENCE


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[System, Broker]]:
    """A broker that is open."""
    opened = trio.Event()
    async with open_system() as system:
        broker = Broker(["tcp://127.0.0.1:0"], opened=lambda _: opened.set())
        system.spawn(broker, name="broker")
        await opened.wait()
        yield system, broker


def observer(broker: Broker, pattern: Any, seen: list[Seen]) -> Callable[[], None]:
    """A client that watches the admin dataspace."""

    def boot() -> None:
        @connect(broker.addresses[0], mint("admin", broker.admin_key))
        def on_connected(admin: Ref) -> None:
            seen.append(watch(admin, pattern))

    return boot


def enter(address: str, cap: SturdyRef) -> Callable[[], object]:
    """A client that comes once."""
    return lambda: connect(address, cap, attempts=1)(print)


async def play(boot: Callable[[], object]) -> None:
    """Run a client to its end."""
    async with open_system(boot) as client:
        await until(lambda: not client.actors)


# ---------------------------------------------------------------------------------------------------- assertions


async def test_listeners_and_peers(tmp_path: Path) -> None:
    """Each door and each connection is asserted, for as long as it is there."""
    seen: list[Seen] = []
    async with serving() as (_, broker):
        address = broker.addresses[0]
        async with open_system(observer(broker, Record("listener", [capture()]), seen)):
            await until(lambda: seen)
            async with open_system(observer(broker, Record("peer", [capture(), capture(), ANY]), seen)):
                await until(lambda: len(seen) == 2 and len(seen[1]) == 2)
                assert {mark for mark, *_ in seen[1]} == {"+"}
                async with open_system(lambda: connect(address)(lambda ds: assert_(ds, 1))):
                    await until(lambda: len(seen[1]) == 3)
                await until(lambda: len(seen[1]) == 4)
                assert seen[1][3] == ("-", *seen[1][2][1:]) == ("-", seen[1][2][1], address)
            await broker.reload(configure({"listen": [f"unix://{tmp_path}/s"]}))
            await until(lambda: len(seen[0]) == 3)
            assert seen[0] == [("+", address), ("-", address), ("+", f"unix://{tmp_path}/s")]


async def test_nobody_else_speaks_for_the_server() -> None:
    """The holder of the admin capability observes, ends a session by its name, and cannot say what the server says."""
    seen: list[Seen] = []
    async with serving() as (_, broker):
        address = broker.addresses[0]
        async with open_system(observer(broker, Record("peer", [capture(), ANY, ANY]), seen)):
            await until(lambda: seen and len(seen[0]) == 1)
            done: list[bool] = []

            def forge() -> None:
                @connect(address, mint("admin", broker.admin_key))
                def on_connected(admin: Ref) -> None:
                    assert_(admin, Record("peer", ["mallory", address, "2026-01-01"]))
                    send(admin, Record("limit-hit", ["mallory", "why"]))
                    send(admin, Record("kick", ["nobody"]))
                    sync(admin, lambda: done.append(True))

            async with open_system(forge):
                await until(lambda: done)
                (name,) = {name for _, name in seen[0]} - {seen[0][0][1]}
                async with open_system(kicking(broker, name)):
                    await until(lambda: ("-", name) in seen[0])
            assert "mallory" not in [name for _, name in seen[0]]
            assert broker.census.lost == {"kicked": 1}


def kicking(broker: Broker, name: str) -> Callable[[], None]:
    """An operator who ends the session of *name*."""

    def boot() -> None:
        @connect(broker.addresses[0], mint("admin", broker.admin_key))
        def on_connected(admin: Ref) -> None:
            send(admin, Record("kick", [name]))

    return boot


async def test_who_ends_a_session_learns_whether_there_was_one() -> None:
    """How many of that name end; where there is none, that; and once it has ended, that too."""
    seen: list[Seen] = []
    async with serving() as (_, broker), open_system(observer(broker, Record("peer", [capture(), ANY, ANY]), seen)):
        await until(lambda: seen and len(seen[0]) == 1)
        async with open_system(lambda: connect(broker.addresses[0])(lambda ds: assert_(ds, "here"))):
            await until(lambda: len(seen[0]) == 2)
            name = seen[0][1][1]
            answers = [await asked(broker, each) for each in ("nobody", name)]
            await until(lambda: ("-", name) in seen[0])  # and it comes again, by another name
            answers.append(await asked(broker, name))
        absent = [Record("error", [f"nobody has the name {each}"]) for each in ("nobody", name)]
        assert answers == [absent[0], Record("kicked", [1]), absent[1]]


async def asked(broker: Broker, name: str) -> Value:
    """What is answered to an operator who ends the session of *name*."""
    answers: list[Value] = []

    class Answer(Entity):
        def message(self, value: Value) -> None:
            answers.append(value)

    def ask(admin: Ref) -> None:
        assert_(admin, Record("kick", [name, ref(Answer())]))

    async with open_system(lambda: connect(broker.addresses[0], mint("admin", broker.admin_key))(ask)):
        await until(lambda: answers)
    return answers[0]


async def test_counts_only_while_observed() -> None:
    """The counts of sessions are asserted while somebody is interested, and grow; otherwise they cost nothing."""
    seen: list[Seen] = []
    async with serving() as (system, broker):
        admin = broker.census.admin
        assert admin is not None

        def counted() -> int:
            return len(index_of(admin).bags.get("session", ())) + sum(
                1 for value in index_of(admin) if type(value) is tuple and str(value[0]) == "session"
            )

        async with open_system(observer(broker, Record("peer", [capture(), ANY, ANY]), seen)):
            await until(lambda: seen and seen[0])
            taken = system.taken
            await trio.sleep(1.2)
            assert counted() == 0
            assert system.taken - taken < 5, "nothing is refreshed"
            async with open_system(observer(broker, Record("session", [capture(), capture()]), seen)):
                await until(lambda: len(seen) == 2 and len(seen[1]) >= 5)
                assert counted() == 2
            await until(lambda: counted() == 0)
    counts = [event[2] for event in seen[1] if event[0] == "+" and event[1] == seen[0][0][1]]
    names = {str(name) for name in counts[0]}
    assert {"bytes-in", "bytes-out", "events-in", "events-out", "waiting-bytes", "collapsed", "handles"} <= names
    assert {"bytes-in-rate", "events-out-rate", "held"} <= names
    assert counts
    assert all(list(each[Symbol("capabilities")].values()) == ["admin"] for each in counts)
    assert any(event[2][Symbol("events-out-rate")] > 0 for event in seen[1] if event[0] == "+")
    marks = [event[:2] for event in seen[1]]
    first = marks.index(("+", seen[1][0][1]))
    assert ("-", seen[1][0][1]) not in marks[: first + 2], "the new count comes before the old one goes"


async def test_everything_is_an_interest_in_counts() -> None:
    """A console that shows everything shows the counts too."""
    seen: list[Seen] = []
    async with serving() as (_, broker), open_system(observer(broker, capture(), seen)):
        await until(lambda: seen and any(isinstance(value, SessionCounts) for _, value in seen[0]))


async def test_limit_hits_are_messages() -> None:
    """Who loses its session by a limit is named, with the reason; the metrics count it by kind."""
    seen: list[Seen] = []
    async with serving() as (_, broker), open_system(observer(broker, Record("limit-hit", [ANY, capture()]), seen)):
        await until(lambda: seen)
        await broker.reload(configure({"listen": broker.addresses, "limits": {"handles": 2}}))

        def greedy() -> None:
            @connect(broker.addresses[0], reconnect=False)
            def on_connected(ds: Ref) -> None:
                for i in range(5):
                    assert_(ds, i)

        with pytest.raises(ConnectError, match="handles"):
            await play(greedy)
        await until(lambda: seen[0])
        assert seen[0][0][0] == "!"
        assert "handles" in seen[0][0][1]
        assert broker.census.lost == {"handles": 1}


async def test_overload_and_draining_are_asserted() -> None:
    """Both are there for those who watch, as long as they last."""
    seen: list[Seen] = []
    async with serving() as (_, broker), open_system(observer(broker, capture(), seen)):
        await until(lambda: seen and seen[0])
        broker.governor.marks = Overload(memory=2.0)
        await until(lambda: any(str(event[1]).startswith("Overloaded(what='memory'") for event in seen[0]))
        broker.governor.marks = Overload()
        await until(lambda: any(event[0] == "-" and "Overloaded" in str(event[1]) for event in seen[0]))
        await broker.drain(2.0)
        assert any(event[0] == "+" and "Draining" in str(event[1]) for event in seen[0])


async def test_the_admin_dataspace_has_its_own_key() -> None:
    """The empty key does not lead to it, nor does that of what is served."""
    async with serving() as (_, broker):
        assert len(broker.admin_key) == 32
        for key in (b"", broker.config.key):
            with pytest.raises(ConnectError, match="refuses the capability"):
                await play(enter(broker.addresses[0], mint("admin", key)))


# ---------------------------------------------------------------------------------------------------- HTTP


@asynccontextmanager
async def port(broker: Broker, system: System, token: bytes = b"", **options: Any) -> AsyncIterator[AdminPort]:
    """An admin port that is open."""
    admin = AdminPort(Admin("127.0.0.1", 0, token=token), broker, **options)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admin.serve)
        yield admin
        nursery.cancel_scope.cancel()


async def get(admin: AdminPort, path: str, called: str | None = None, proof: str = "") -> tuple[int, str]:
    """Status and body of a request over a plain socket, which calls the port as *called* says, else by its address;
    *proof* is an Authorization.
    """
    lines = [f"GET {path} HTTP/1.1", f"Host: {called or admin.url.removeprefix('http://').rstrip('/')}"]
    lines += [f"Authorization: {proof}"] * bool(proof) + ["Connection: close", "", ""]
    address = admin.url.removeprefix("http://").rstrip("/")
    host, number = address.split(":")
    answer = b""
    async with await trio.open_tcp_stream(host, int(number)) as stream:
        await stream.send_all("\r\n".join(lines).encode())
        with trio.fail_after(PATIENCE):
            async for data in stream:
                answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


async def test_health(logs: list[MutableMapping[str, Any]]) -> None:
    """A broker that is open lives and is ready; one that drains lives, and says why it is not ready."""
    damage: list[str] = []
    async with serving() as (system, broker), port(broker, system, wrong=lambda: "".join(damage)) as admin:
        assert await get(admin, "/livez") == (200, "ok\n")
        assert await get(admin, "/readyz") == (200, "ok\n")
        assert (await get(admin, "/"))[1].count("\n/") == 5
        assert (await get(admin, "/nothing"))[0] == 404
        damage.append("the journal failed: no space")
        assert await get(admin, "/readyz") == (200, "degraded: the journal failed: no space\n")
        damage.clear()
        await broker.reload(configure({"listen": [*broker.addresses, "unix:///nowhere/s"]}))
        assert await get(admin, "/readyz") == (503, "not open: unix:///nowhere/s\n")
        await broker.drain(1.0)
        assert await get(admin, "/readyz") == (503, "draining\n")
        assert await get(admin, "/livez") == (200, "ok\n")
    assert [entry["event"] for entry in logs if entry["log_level"] != "info"] == ["cannot listen"]


@pytest.mark.parametrize("path", ["/", "/livez", "/metrics", "/syndicate.js", "/console/", "/nothing"])
async def test_who_rebinds_a_name_reads_nothing(path: str) -> None:
    """Whoever calls a port of this machine by a name of their own gets nothing, on any path."""
    async with serving() as (system, broker), port(broker, system) as admin:
        for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil.example", "[", " "):
            status, body = await get(admin, path, name)
            assert status in (400, 421), name
            assert len(body) < 200
        for name in ("localhost", "localhost:1", "[::1]", "127.0.0.1"):
            assert (await get(admin, path, name))[0] in (200, 404), name


async def test_who_has_no_token_reads_nothing() -> None:
    """Where there is one, each page wants it, but for the files that everybody has."""
    token = b"0123456789abcdef"
    async with serving() as (system, broker), port(broker, system, token=token) as admin:
        for path in ("/", "/livez", "/readyz", "/metrics", "/nothing"):
            for shown in ("", "Bearer 0123456789abcdeF", "Basic x", "Bearer ", "Bearer 0123456789abcdef2"):
                status, body = await get(admin, path, proof=shown)
                assert (status, "token_file" in body) == (401, True), (path, shown)
        for path in ("/console/../metrics", "/console/%2e%2e/metrics"):
            assert (await get(admin, path))[0] == 404
        for path in ("/", "/livez", "/readyz", "/metrics"):
            for scheme in ("Bearer", "bearer", "BEARER"):  # of which HTTP says that it does not matter
                assert (await get(admin, path, proof=f"{scheme} 0123456789abcdef"))[0] == 200
        for path in ("/console/", "/syndicate.js"):
            assert (await get(admin, path))[0] == 200
        assert (await get(admin, "/livez", "evil.example", proof="Bearer 0123456789abcdef"))[0] == 421


async def test_the_client_for_browsers() -> None:
    """It is served as it was built."""
    async with serving() as (system, broker), port(broker, system) as admin:
        assert await get(admin, "/syndicate.js") == (200, client().decode())


async def test_who_may_open_a_socket() -> None:
    """Pages of this very origin and programs; on no other path; and at its gatekeeper nothing but questions is had."""
    async with serving() as (system, broker), port(broker, system) as admin:
        here = admin.url.removeprefix("http://").rstrip("/")

        async def upgrade(path: str, host: str, origin: str) -> bytes:
            asked = (f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: Upgrade", "Upgrade: websocket")
            key = ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
            more = (f"Origin: {origin}",) if origin else ()
            async with await trio.open_tcp_stream("127.0.0.1", int(here.split(":")[1])) as stream:
                await stream.send_all("\r\n".join((*asked, *key, *more, "", "")).encode())
                with trio.fail_after(PATIENCE):
                    return bytes(await stream.receive_some())[9:12]

        assert await upgrade("/relay", here, f"http://{here}") == b"101"
        assert await upgrade("/relay", here, "") == b"101"
        for path, host, origin in (
            ("/relay", here, "http://evil.example"),
            ("/relay", here, "http://localhost:1"),
            ("/relay", here, "null"),
            ("/relay", "evil.example", "http://evil.example"),
            ("/other", here, f"http://{here}"),
        ):
            assert await upgrade(path, host, origin) == b"403", (path, host, origin)


async def test_a_process_that_does_not_turn_is_not_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a turn it is not alive: the question goes through the run queue."""
    monkeypatch.setattr("relay.server.admin.TURN", 0.2)
    async with serving() as (system, broker), port(broker, system) as admin:
        monkeypatch.setattr(broker, "enter", lambda fn: None)
        assert await get(admin, "/livez") == (503, "no turn was taken within 0 s\n")
        assert (await get(admin, "/readyz"))[0] == 503


async def test_metrics() -> None:
    """The figures are those of what has happened, and what has passed stays counted when the peer has gone."""
    async with serving() as (system, broker), port(broker, system, journal=lambda: {"commits": 7}) as admin:
        heard: list[int] = []

        def client() -> None:
            @connect(broker.addresses[0])
            def on_connected(ds: Ref) -> None:
                on_message(ds, ["n", capture(int)])(heard.append)
                assert_(ds, "here")
                sync(ds, partial(count, ds))

            def count(ds: Ref) -> None:
                for i in range(50):
                    send(ds, ["n", i])

        async def figures() -> dict[str, float]:
            status, text = await get(admin, "/metrics")
            assert status == 200
            return {
                sample.name: sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }

        async with open_system(client):
            await until(lambda: len(heard) == 50)
            during = await figures()
            families = text_string_to_metric_families((await get(admin, "/metrics"))[1])
            kinds = {
                (sample.labels["direction"], sample.labels["kind"]): sample.value
                for family in families
                for sample in family.samples
                if sample.name == "syndicate_events_total"
            }
        await until(lambda: not broker.census.peers)
        after = await figures()
    assert (during["syndicate_peers"], after["syndicate_peers"]) == (1, 0)
    assert (during["syndicate_assertions"], after["syndicate_assertions"]) == (2, 0)
    assert (during["syndicate_observers"], after["syndicate_observers"]) == (1, 0)
    assert 54 <= during["syndicate_events_in_total"] < 60  # resolve, observe, assert, sync, and the messages
    assert kinds["in", "message"] == 50
    assert kinds["in", "assert"] >= 2
    assert (
        sum(count for (direction, _), count in kinds.items() if direction == "in")
        == during["syndicate_events_in_total"]
    )
    assert after["syndicate_events_in_total"] >= during["syndicate_events_in_total"]
    assert after["syndicate_bytes_in_total"] >= during["syndicate_bytes_in_total"] > 500
    assert after["syndicate_events_out_total"] >= 50
    assert after["syndicate_handled_total"] > during["syndicate_handled_total"] > 10
    assert after["syndicate_sessions_total"] == 1
    assert after["syndicate_handles"] == after["syndicate_waiting_bytes"] == 0
    assert after["syndicate_journal_commits_total"] == 7
    assert after["process_resident_memory_bytes"] > 10 << 20
    assert 10_000 < after["process_allocated_blocks"] < 10_000_000
    assert after["process_open_fds"] > 5


def test_a_port_in_use() -> None:
    """One line, with another address to try."""
    broker = Broker()
    first = AdminPort(Admin("127.0.0.1", 0), broker)
    number = int(first.url.rstrip("/").rsplit(":", 1)[1])
    with pytest.raises(ListenError, match=r"cannot serve health and metrics on 127.0.0.1:\d+: Address already in use"):
        AdminPort(Admin("127.0.0.1", number), broker)
    first.close()


@pytest.mark.parametrize(
    ("missing", "what"), [("prometheus_client", "prometheus-client"), ("hypercorn.trio", "hypercorn")]
)
def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch, missing: str, what: str) -> None:
    """One line, with what to install."""
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(ServerMissing, match=rf"{what}.*pip install \"syndicate-dataspace\[server\]\""):
        AdminPort(Admin("127.0.0.1", 0), Broker())


# ---------------------------------------------------------------------------------------------------- the parts


class Fountain(Indirect):
    """A stream that always has something to give."""

    name = "fountain"
    connection = "fountain"

    def __init__(self) -> None:
        self.ended = False

    async def receive(self, most: int = 0) -> bytes:
        await trio.sleep(0.01)
        return b"" if self.ended else b"xxxx"

    async def send(self, packets: Any) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        self.ended = True
        await trio.lowlevel.checkpoint()

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_tap(autojump_clock: Any) -> None:
    """Shut, it lets a little through; open, everything; after the end is said, it does not hold up the other end."""
    stream: Stream = Fountain()
    tap = Tap(stream)
    assert await tap.receive() == b"xxxx"
    assert trio.current_time() < 1
    tap.shut()
    began = trio.current_time()
    await tap.receive()
    assert 4 < trio.current_time() - began < 6
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tap.receive)
        await trio.sleep(1)
        began = trio.current_time()
        tap.open()
    assert trio.current_time() - began < 1
    assert tap.received == 12
    tap.shut()
    await tap.send_eof()
    tap.shut()
    assert await tap.receive() == b""
    assert trio.current_time() - began < 1
    await tap.close()
    with trio.fail_after(5):
        await tap.wait_closed()


async def test_hysteresis(autojump_clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An overload ends well below its mark, so that it does not begin again at once."""
    queued = [0]
    census = Census()
    monkeypatch.setattr(Census, "pressing", lambda self: queued[0])
    changes: list[int] = []
    governor = Governor(
        census, Overload(queued=100, memory=1e15), changed=lambda over: changes.append(len(over)), cut=lambda *_: None
    )
    for amount in (90, 101, 90, 80, 76, 75, 90, 101):
        queued[0] = amount
        governor.look()
    assert changes == [1, 0, 1]
    with trio.move_on_after(1) as waiting:
        await governor.admission()
    assert waiting.cancelled_caught
    queued[0] = 0
    governor.look()
    await governor.admission()


def test_memory() -> None:
    """What this process has is less than what it may have."""
    assert 10 << 20 < outside().resident() < outside().machine()


def test_an_empty_census() -> None:
    """There are figures before anything has begun."""
    from prometheus_client import generate_latest

    assert b"syndicate_peers 0.0" in generate_latest(registry(Census()))


async def test_questions_over_the_relay_are_answered_with_data() -> None:
    """The admin key leads to who answers; others are refused, and nothing can be asserted through it."""
    async with serving() as (_, broker):
        with pytest.raises(ConnectError, match="refuses the capability"):
            await play(enter(broker.addresses[0], mint("introspect", broker.config.key)))
        answers: list[Value] = []

        class Asker(Entity):
            def message(self, value: Value) -> None:
                answers.append(value)

        def boot() -> None:
            @connect(broker.addresses[0])
            def on_connected(ds: Ref) -> None:
                assert_(ds, Record("Lit", ["hall"]))
                watch(ds, Record("Lit", [capture()]))

            @connect(broker.addresses[0], mint("introspect", broker.admin_key))
            def asking(target: Ref) -> None:
                assert_(target, Record("Lit", ["forged"]))
                assert_(target, Record("rows", ["Lit", "", 0, 10, ref(Asker())]))

        async with open_system(boot):
            await until(lambda: any("hall" in str(answer) for answer in answers))
        page = re.sub(r"127.0.0.1:\d+", "ADDRESS", unparse(answers[-1]))
        assert page == r'<page 1 1 [["<Lit \"hall\">" 1 [[0 "session ADDRESS" 1]] 1]]>'


async def test_what_is_counted_is_documented() -> None:
    """Each metric, and each label of it, is in the table for operators; and nothing else is."""
    page = (Path(__file__).parents[3] / "docs/howto/operators.md").read_text(encoding="utf-8")
    table = page.split("## What is counted")[1].split("## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `") and "syndicate_.." not in line]
    written = {name: row[1] if len(row) > 2 else "" for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])}
    async with serving() as (_, broker):
        broker.census.lost["idle"] += 1
        broker.census.spaces["syndicate"].account.refused["bytes"] += 1
        families = list(registry(broker.census, lambda: {"commits": 1, "commit_seconds": 1}).collect())
    counted = {each.name.removeprefix("syndicate_"): each for each in families if each.name.startswith("syndicate_")}
    assert written.keys() == counted.keys()
    for name, family in counted.items():
        assert family.samples, name
        for label in family.samples[0].labels:
            assert f"`{label}`" in written[name], (name, label)
    for family in families:
        assert family.name in page or family.name.removeprefix("syndicate_") in written
