"""Several dataspaces and several keys in one server, and their quotas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from relay import connect
from relay.capabilities.guess_limits import FIRST
from relay.capabilities.sturdy import mint, show
from relay.client import ConnectionState
from relay.protocol.codec import Msgpack
from relay.protocol.limits import Limits
from relay.protocol.packets import MINE, A, TurnPacket, WireRef, read, write
from relay.server.broker import Broker
from relay.server.config import Config, configure
from relay.server.durable import durable
from relay.server.journal import Journal
from relay.server.metrics import registry
from relay.server.quotas import Account, Quota
from relay.transport import Address, open_stream
from syndicate import (
    Entity,
    Record,
    Ref,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    on_message,
    open_system,
    ref,
    send,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.introspect import introspection
from syndicate.simulation.disk import SimulatedDisk
from syndicate.values.text import unparse
from syndicate.values.value import Symbol, Value, freeze
from tests.relay.server.test_broker import Server
from tests.waiting import until

KEYS = {name: (name * 16)[:16].encode() for name in ("main", "orders", "older", "other")}


def settings(folder: Path, **more: object) -> Config:
    """A server of three dataspaces."""
    for name, key in KEYS.items():
        (folder / name).write_bytes(key)
    document = {
        "listen": ["tcp://127.0.0.1:0"],
        "key_file": str(folder / "main"),
        "dataspace": [
            {"name": "orders", "key_file": str(folder / "orders"), "old_key_files": [str(folder / "older")], **more},
            {"name": "other", "key_file": str(folder / "other")},
        ],
    }
    return configure(document)


class Client:
    """Says what it is asked to, and keeps what it sees and what became of its connection."""

    def __init__(
        self, address: str, oid: str, key: str, act: Callable[[Ref], object] = lambda ds: None, *caveats: str
    ) -> None:
        self.seen: list[object] = []
        self.states: list[ConnectionState] = []
        self.ds: list[Ref] = []
        self._aim = address, show(mint(oid, KEYS[key]).attenuate(*caveats))
        self._act = act

    def __call__(self) -> None:
        address, cap = self._aim

        @connect(address, cap=cap, told=self.states.append)
        def on_connected(ds: Ref) -> None:
            self.ds.append(ds)

            @during(ds, ["seen", capture()])
            def there(value: object) -> None:
                self.seen.append(value)

            @on_message(ds, ["said", capture()])
            def heard(value: object) -> None:
                self.seen.append(value)

            self._act(ds)

    @property
    def reasons(self) -> str:
        """The states that it had of its connection."""
        return " ".join(map(str, self.states))


async def begin(system: System, config: Config) -> Server:
    """A broker that is open."""
    opened = trio.Event()
    broker = Broker.configured(config, opened=lambda _: opened.set())
    system.spawn(broker, name="broker")
    await opened.wait()
    return Server(system, broker)


async def test_dataspaces_are_apart_and_each_has_its_keys(tmp_path: Path) -> None:
    """What is said in one is not seen in another; the key of one opens no other; an older key opens its own, until the
    configuration has it no more.
    """
    async with open_system() as system:
        server = await begin(system, settings(tmp_path))
        clients = {
            (oid, key): Client(server.address, oid, key, lambda ds, n=f"{oid}/{key}": assert_(ds, ["seen", n]))  # type: ignore[misc]  # a default
            for oid, key in [("orders", "orders"), ("orders", "older"), ("other", "other"), ("syndicate", "main")]
        }
        others = [Client(server.address, *each) for each in [("orders", "main"), ("other", "orders")]]
        async with open_system() as theirs:
            for client in [*clients.values(), *others]:
                theirs.spawn(client)
            both = {"orders/orders", "orders/older"}
            await until(lambda: set(clients["orders", "orders"].seen) == both)
            await until(lambda: set(clients["orders", "older"].seen) == both)
            await until(lambda: clients["other", "other"].seen == ["other/other"])
            await until(lambda: clients["syndicate", "main"].seen == ["syndicate/main"])
            await until(lambda: all("failed-validation" in each.reasons for each in others))
            assert not any(each.ds for each in others)
            fewer = settings(tmp_path, old_key_files=[])
            await server.broker.reload(fewer)
            before = len(clients["orders", "orders"].seen)
            await until(lambda: "withdrawn" in clients["orders", "older"].reasons)
            assert len(clients["orders", "orders"].seen) == before


async def test_events_are_counted_by_kind_and_by_dataspace(tmp_path: Path) -> None:
    """What comes to one is no event of another's; each kind is counted, and goes on to be when its peer has gone."""

    def orders(ds: Ref) -> None:
        for number in range(5):
            assert_(ds, ["seen", number])
        for number in range(7):
            send(ds, ["said", number])

    async with open_system() as system:
        server = await begin(system, settings(tmp_path))

        def counts() -> dict[tuple[str, str], float]:
            return {
                (sample.labels["dataspace"], sample.labels["kind"]): sample.value
                for family in registry(server.broker.census).collect()
                for sample in family.samples
                if sample.name == "syndicate_dataspace_events_total"
            }

        before = counts()
        async with open_system() as theirs:
            client = Client(server.address, "orders", "orders", orders)
            other = Client(server.address, "other", "other", lambda ds: send(ds, ["said", "alone"]))
            theirs.spawn(client)
            theirs.spawn(other)
            await until(lambda: len(client.seen) == 12)
            await until(lambda: other.seen)
        await until(lambda: not server.broker.census.peers)
        more = {key: count - before[key] for key, count in counts().items()}
    assert {key: count for key, count in more.items() if key[0] != "syndicate"} == {
        ("orders", "assert"): 7,  # the two interests as well
        ("orders", "retract"): 7,
        ("orders", "message"): 7,
        ("other", "assert"): 2,
        ("other", "retract"): 2,
        ("other", "message"): 1,
    }
    assert not any(count for key, count in more.items() if key[0] == "syndicate")


async def test_whoever_may_ask_may_ask_about_each(tmp_path: Path) -> None:
    """The console lists the dataspaces, and what is in the one that it asks about."""
    answers: list[str] = []

    class Asker(Entity):
        def message(self, value: Value) -> None:
            answers.append(unparse(value))

    async with open_system() as system:
        server = await begin(system, settings(tmp_path))
        spaces = server.broker.census.spaces
        assert list(spaces) == ["syndicate", "orders", "other"]

        def say() -> None:
            for name, space in spaces.items():
                assert_(space.ref, ["seen", name])
            facets.append(current_facet())

        def ask() -> None:
            target = introspection(None, {}, server.broker.shown)
            assert_(target, Record("spaces", ["", 0, 9, ref(Asker())]))
            for number in range(4):
                assert_(target, Record("within", [number, Record("rows", ["", "orders", 0, 9, ref(Asker())])]))

        facets: list[Facet] = []
        system.spawn(say, name="sayer")
        await system.settle()
        facets[0].enter(ask)
        await until(lambda: len(answers) == 5)
        assert answers[0].count("dataspace") + answers[0].count("orders") + answers[0].count("other") == 3
        assert sorted(answers[1:]) == ["<page 0 0 []>"] + ["<page 1 0 []>"] * 2 + [
            r'<page 1 1 [["[\"seen\" \"orders\"]" 1 [[3 "sayer" 1]] 0]]>'
        ]


BEYOND: list[tuple[dict[str, int], Callable[[Ref], object]]] = [
    ({"assertions": 3}, lambda ds: [assert_(ds, ["seen", n]) for n in range(3)]),
    ({"observers": 2}, lambda ds: during(ds, ["more", capture()])(lambda value: None)),
    ({"bytes": 5000}, lambda ds: assert_(ds, ["seen", "x" * 5000])),
    ({"messages": 2}, lambda ds: [send(ds, ["said", n]) for n in range(3)]),
]


@pytest.mark.parametrize(("quota", "act"), BEYOND)
async def test_who_is_beyond_a_quota_gets_to_know_which_and_others_go_on(
    tmp_path: Path, quota: dict[str, int], act: Callable[[Ref], object]
) -> None:
    """Its session ends with the name of the quota and the remedy; it is counted; what it held is free again."""
    (name,) = quota
    async with open_system() as system:
        server = await begin(system, settings(tmp_path, quota=quota))
        account = server.broker.census.spaces["orders"].account
        outside = Client(server.address, "other", "other", act)
        greedy = Client(server.address, "orders", "orders", act)
        async with open_system() as theirs:
            theirs.spawn(outside)
            await until(lambda: outside.ds)
            async with open_system() as bad:
                bad.spawn(greedy)
                await until(lambda: f"quota-{name}" in greedy.reasons)
                assert "together" in greedy.reasons
            await until(lambda: not account.connections)
            assert (account.assertions, account.observers, account.bytes) == (0, 0, 0)
            assert account.refused[name] >= 1
            assert server.broker.census.lost[f"quota-{name}"] >= 1
            results = {
                (sample.labels["dataspace"], sample.labels["quota"])
                for family in registry(server.broker.census).collect()
                if family.name == "syndicate_quota_refused"
                for sample in family.samples
            }
            assert results == {("orders", name)}
            assert len(outside.states) == 1, "it was connected all the time"


@pytest.mark.parametrize(("quota", "act"), BEYOND)
@pytest.mark.parametrize("name", ["durable", "bound"])
async def test_a_quota_holds_by_whatever_name_they_come(
    tmp_path: Path, name: str, quota: dict[str, int], act: Callable[[Ref], object]
) -> None:
    """What leads to a dataspace is charged to it: what is kept as well, and what a program has bound."""
    journal = Journal(SimulatedDisk())
    journal.open()
    (tmp_path / "main").write_bytes(KEYS["main"])
    document = {"listen": ["tcp://127.0.0.1:0"], "key_file": str(tmp_path / "main"), "quota": quota}
    opened = trio.Event()
    broker = Broker.configured(configure(document), opened=lambda _: opened.set())

    def boot() -> None:
        broker.ds = ds = dataspace()
        face = durable(ds, journal, ready=lambda: broker({"durable": face, "bound": ds}))

    async with open_system() as system:
        system.spawn(boot, name="broker")
        await opened.wait()
        greedy = Client(Server(system, broker).address, name, "main", act)
        async with open_system() as theirs:
            theirs.spawn(greedy)
            await until(lambda: f"quota-{next(iter(quota))}" in greedy.reasons)
        account = broker.census.spaces["syndicate"].account
        await until(lambda: not account.connections)
        assert (account.assertions, account.observers, account.bytes) == (0, 0, 0)


UNWRAP = '<or [<rewrite <arr [<lit "x"> <bind <_>>]> <ref 0>> <rewrite <bind <_>> <ref 0>>]>'


@pytest.mark.parametrize(
    ("quota", "caveat", "act"),
    [
        ({"assertions": 8}, '<rewrite <_> <lit "the same">>', lambda ds: [assert_(ds, n) for n in range(9)]),
        ({"bytes": 4000}, f"<rewrite Boolean <lit {'x' * 5000}>>", lambda ds: assert_(ds, True)),
        ({"bytes": 1500}, f"<rewrite <bind SignedInteger> <arr [{'<ref 0>' * 100}]>>", lambda ds: assert_(ds, 1)),
        ({"observers": 5}, UNWRAP, lambda ds: [assert_(ds, ["x", observed(n)]) for n in range(9)]),
    ],
    ids=["assertions", "written", "copied", "observers"],
)
async def test_a_quota_is_of_what_arrives(
    tmp_path: Path, quota: dict[str, int], caveat: str, act: Callable[[Ref], object]
) -> None:
    """Whoever narrows what they have, and so has other values made of what they say, gets no more by that; and what is
    dropped counts for nothing.
    """
    (name,) = quota
    async with open_system() as system:
        server = await begin(system, settings(tmp_path, quota=quota))
        modest = Client(
            server.address, "orders", "orders", lambda ds: [assert_(ds, n) for n in range(100)], "<reject <_>>"
        )
        greedy = Client(server.address, "orders", "orders", act, caveat)
        async with open_system() as theirs:
            theirs.spawn(modest)
            theirs.spawn(greedy)
            await until(lambda: f"quota-{name}" in greedy.reasons)
            await until(lambda: modest.ds)
            assert "quota" not in modest.reasons


def observed(number: int) -> Record:
    """An interest, in its published form."""
    return Record("Observe", [Record("lit", [number]), ref(Entity())])


async def test_connections_of_a_dataspace_are_bounded(tmp_path: Path) -> None:
    """The one too many is refused with a reason, and let in when there is a place."""
    async with open_system() as system:
        server = await begin(system, settings(tmp_path, quota={"connections": 1}))
        first, second = (Client(server.address, "orders", "orders") for _ in range(2))
        async with open_system() as theirs:
            async with open_system() as before:
                before.spawn(first)
                await until(lambda: first.ds)
                theirs.spawn(second)
                await until(lambda: "too-many-of-this-dataspace" in second.reasons)
                assert "use one that" not in second.reasons, "no other capability helps"
                assert not second.ds
            await until(lambda: second.ds)
        await until(lambda: server.broker.census.spaces["orders"].account.connections == 0)


@given(
    quota=st.builds(Quota, *[st.integers(0, 4)] * 2, st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)),
    steps=st.lists(st.tuples(st.sampled_from(["hold", "observe", "release", "say", "wait"]), st.integers(0, 3))),
)
def test_an_account_is_what_is_held(quota: Quota, steps: list[tuple[str, int]]) -> None:
    """Whatever is held and released, no bound is passed, and all is refused that would pass one, and nothing else."""
    now = 0.0
    account = Account(quota, lambda: now)
    held: list[tuple[int, bool]] = []
    said: list[float] = []
    for step, size in steps:
        if step in ("hold", "observe"):
            more = size, step == "observe"
            after = [*held, more]
            fits = (
                (not quota.assertions or len(after) <= quota.assertions)
                and (not quota.observers or not more[1] or sum(each for _, each in after) <= quota.observers)
                and (not quota.bytes or sum(each for each, _ in after) <= quota.bytes)
            )
            assert (account.hold(*more) == "") == fits
            held = after if fits else held
        elif step == "release" and held:
            account.release(*held.pop(size % len(held)))
        elif step == "say":
            said += [now] * (account.say() == "")
        else:
            now += size / 2
        assert account.assertions == len(held)
        assert account.bytes == sum(each for each, _ in held)
        assert account.observers == sum(each for _, each in held)
        if quota.messages:
            for since in said:
                assert sum(since <= each for each in said) <= quota.messages * (1 + now - since) + 1e-6


async def test_guesses_are_counted_and_slowed_and_end_the_session(tmp_path: Path) -> None:
    """The first ones of an address are answered at once, the next ones later and later; one session has so many."""
    async with open_system() as system:
        server = await begin(system, evolve(settings(tmp_path), limits=Limits(guesses=6)))
        guess = [
            (A, (Symbol("resolve"), freeze(mint("orders", KEYS["main"])), WireRef(MINE, n)), n + 1) for n in range(5)
        ]
        stream = await open_stream(Address.parse(server.address))
        await stream.send([Msgpack().encode(write(TurnPacket([(0, each) for each in guess])))])
        codec, answers = Msgpack(), 0
        began = trio.current_time()
        while answers < 5:
            for packet in map(read, codec.feed(await stream.receive())):
                if isinstance(packet, TurnPacket):
                    answers += len(packet.entries)
            assert answers <= 3 or trio.current_time() - began >= FIRST
        assert trio.current_time() - began >= 2 * FIRST
        peer = next(iter(server.broker.census.peers.values()))
        assert (peer.guesses, server.broker.census.guesses.count) == (5, 5)
        more = [(A, guess[0][1], n) for n in range(10, 13)]
        await stream.send([Msgpack().encode(write(TurnPacket([(0, each) for each in more])))])
        await until(lambda: server.broker.census.lost["guesses"] == 1)
        await stream.close()
        valid = Client(server.address, "orders", "orders")
        async with open_system() as theirs:
            theirs.spawn(valid)
            await until(lambda: valid.ds)
