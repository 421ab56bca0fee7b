"""Sessions whose peer does not keep up, or asks for too much: state instead of history, bounds, debt, ends."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.codec import Msgpack, Preserves, PreservesText
from relay.protocol.codec.msgpack import VALUES
from relay.protocol.codec.preserves_encoding import SHORT
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import MINE, YOURS, A, Error, Event, M, Nop, R, TurnPacket, WireRef, read, write
from relay.protocol.packets import S as SYNCED
from relay.session import packet_events
from relay.session.fan_out import Reach
from relay.session.membrane import Crossing, Membrane
from relay.session.packet_events import Understood
from relay.session.proxy import Proxy
from relay.session.session import Session
from relay.session.state import PART
from syndicate import (
    Entity,
    Observe,
    Ref,
    Symbol,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    native,
    on_message,
    on_stop,
    prevent_inert_check,
    react,
    ref,
    send,
    spawn,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Handle
from syndicate.actors.turn_slices import FREED
from syndicate.index.event import ENTER
from syndicate.testing import Seen, watch
from syndicate.values.pattern import encode, pattern_of
from syndicate.values.value import MAX_DEPTH, SEQ, Frozen, freeze
from tests.relay.protocol.codec.test_frozen_collection import colliding
from tests.relay.wire import End, Wire
from tests.strategies import examples

AT_ONCE = evolve(DEFAULT, ahead=0)
"""Limits by which whatever one does not take at once waits as state."""


class Probe(Entity):
    """An entity that remembers what it was notified of, and how little there ever was."""

    def __init__(self) -> None:
        self.there: dict[Any, Any] = {}
        self.ever: list[Any] = []
        self.messages: list[Any] = []
        self.least: int | None = None

    def assert_(self, value: Any, handle: Any) -> None:
        self.there[handle] = value
        self.ever.append(value)

    def retract(self, handle: Any) -> None:
        del self.there[handle]
        if self.least is not None:
            self.least = min(self.least, len(self.there))

    def message(self, value: Any) -> None:
        self.messages.append((value, sorted(self.there.values())))


@pytest.fixture
def probe() -> Probe:
    """What the right end publishes."""
    return Probe()


@pytest.fixture
def wire(probe: Probe) -> Wire:
    """A wire whose right end publishes the probe, and whose ends keep state if the other does not take it."""
    return Wire(lambda: ref(probe), AT_ONCE)


def goes_on(session: Session) -> bool:
    """Whether it has not been ended."""
    return session.reason is None and session.facet.alive


def retract(handles: Iterable[Handle]) -> None:
    """Take assertions back, in one turn."""
    for handle in handles:
        handle.retract()


def send_all(target: Ref, messages: Iterable[Any]) -> None:
    """Send messages in one turn."""
    for message in messages:
        send(target, message)


def unblock(wire: Wire, end: End, most: int = 1 << 16) -> None:
    """The other end takes all there is, in steps of *most* bytes."""
    while end.step(most):
        wire.system.drain()
    end.blocked = False


def turn(*events: Event, oid: int = 0) -> TurnPacket:
    """A packet of events for one target."""
    return TurnPacket([(oid, event) for event in events])


# ---------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("most", [1, 1000, 1 << 16])
def test_a_peer_that_was_away_gets_what_is_asserted(wire: Wire, probe: Probe, most: int) -> None:
    """However often values change meanwhile, it is notified of the last ones, and never sees too few."""
    handles: list[Handle] = []
    wire.act(wire.left, lambda: handles.extend(assert_(wire.remote, i) for i in range(100)))
    wire.left.blocked = True

    def change(by: int) -> None:
        handles[:] = [instance for i, handle in enumerate(handles) if (instance := handle.replace(i + by)) is not None]

    for by in range(1, 50):
        wire.act(wire.left, partial(change, 1000 * by))
        assert wire.left.session.statistics().waiting_entries <= 200
    assert wire.left.session.burden < 10_000, "one turn in bytes, and no history"
    probe.least = 100
    unblock(wire, wire.left, most)
    assert sorted(probe.there.values()) == [i + 49_000 for i in range(100)]
    assert probe.least == 100, "the new before the old"
    assert len(probe.ever) == 300, "what was there, what was being sent, and the last"
    assert wire.left.session.statistics().collapsed == 4700
    wire.act(wire.left, partial(retract, handles))
    assert probe.there == {}
    assert wire.left.crossings == (0, 1, 0, 0)


def test_a_message_comes_after_what_was_before_it(wire: Wire, probe: Probe) -> None:
    """Messages and syncs are barriers, however much waits: who hears one has seen everything before it."""
    wire.left.blocked = True
    order: list[Any] = []

    def step(i: int) -> None:
        assert_(wire.remote, i)
        handle = assert_(wire.remote, 1000 + i)
        send(wire.remote, i)
        handle.retract()
        sync(wire.remote, partial(order.append, i))

    for i in range(20):
        wire.act(wire.left, partial(step, i))
    assert order == []
    unblock(wire, wire.left, 100)
    assert probe.messages == [(i, [*range(i + 1), 1000 + i]) for i in range(20)]
    assert order == list(range(20))
    assert sorted(probe.there.values()) == list(range(20))
    assert wire.left.crossings == (0, 1, 0, 20)
    assert wire.right.crossings == (1, 0, 20, 0)


def test_references_cross_when_they_are_sent(wire: Wire, probe: Probe) -> None:
    """What waits holds nothing in place; what vanishes while it waits never crosses."""
    wire.act(wire.left, lambda: assert_(wire.remote, 0))
    wire.left.blocked = True
    wire.act(wire.left, lambda: send(wire.remote, "in between"))
    handles: list[Handle] = []
    for _ in range(10):
        wire.act(wire.left, lambda: handles.append(assert_(wire.remote, ["here", ref(Entity())])))
    assert wire.left.crossings == (0, 1, 0, 1)
    wire.act(wire.left, partial(retract, handles[:9]))
    unblock(wire, wire.left)
    assert wire.left.crossings == (1, 1, 0, 2)
    exported = [item for event in wire.left.events if event[0] is A for item in freeze_parts(event[1])]
    assert [each.oid for each in exported] == [0]
    wire.act(wire.left, handles[9].retract)
    assert wire.left.crossings == (0, 1, 0, 1)
    assert wire.right.crossings == (1, 0, 1, 0)


def freeze_parts(form: Any) -> list[WireRef]:
    """The references in a form, one level deep."""
    return [item for item in form if type(item) is WireRef] if type(form) is tuple else []


def test_a_large_turn_waits_as_state(wire: Wire, probe: Probe) -> None:
    """Of a large turn that much is encoded as may be; the rest of it collapses like anything else."""
    handles: list[Handle] = []
    wire.left.blocked = True
    wire.act(wire.left, lambda: handles.extend(assert_(wire.remote, i) for i in range(20_000)))
    statistics = wire.left.session.statistics()
    encoded = 20_000 - statistics.waiting_entries
    assert encoded <= 4096
    wire.act(wire.left, partial(retract, handles[1:]))
    unblock(wire, wire.left)
    assert list(probe.there.values()) == [0]
    assert len(probe.ever) == encoded


@pytest.mark.parametrize("size", [1, 300])
def test_no_packet_of_a_turn_that_is_too_much_is_large(wire: Wire, probe: Probe, size: int) -> None:
    """A turn goes out as one packet if it fits into one, else in packets that nobody has to wait for."""
    most = DEFAULT.events if size == 1 else 2000

    def packets() -> int:
        return wire.left.session.statistics().packets_out

    wire.act(wire.left, lambda: send(wire.remote, "first"))
    before = packets()
    wire.act(wire.left, lambda: [assert_(wire.remote, (i, "x" * size)) for i in range(most)])
    assert packets() == before + 1
    wire.act(wire.left, lambda: [assert_(wire.remote, (i, "y" * size)) for i in range(3 * most)])
    assert len(probe.ever) == 4 * most
    assert packets() >= before + 1 + 3 * 8 * most // DEFAULT.events


@pytest.mark.parametrize("blocked", [False, True])
def test_what_cannot_be_sent_is_not_retracted(wire: Wire, blocked: bool, logs: list[MutableMapping[str, Any]]) -> None:
    """The retraction of what was too large is never sent, be it of the same turn, or of one that waits."""
    wire.act(wire.left, lambda: send(wire.remote, "first"))
    wire.left.blocked = blocked
    handles: list[Handle] = []

    def pulse() -> None:
        assert_(wire.remote, 1)
        handles.append(assert_(wire.remote, b"x" * 2_000_000))
        send(wire.remote, "barrier")
        handles.pop().retract()
        handles.append(assert_(wire.remote, "\ud800"))
        send(wire.remote, "barrier")
        send(wire.remote, "\ud800")

    wire.act(wire.left, pulse)
    unblock(wire, wire.left)
    wire.act(wire.left, handles.pop().retract)
    assert [event[0] for event in wire.left.events] == [M, A, M, M]
    assert wire.left.session.outbox.unsent == set()
    assert wire.left.crossings == (0, 1, 0, 1)
    assert len(logs) == 3


class Scene:
    """A dataspace behind the right end, and an observer behind the left one."""

    def __init__(self, limits: Limits) -> None:
        self.wire = Wire(dataspace, limits)
        self.ds: Ref = self.wire.right.session.membrane.exports[0].ref
        self.seen: list[Seen] = []
        self.handles: dict[int, Handle] = {}
        self.wire.act(self.wire.left, lambda: self.seen.append(watch(self.wire.remote, ["v", capture(), capture()])))
        self.act = partial(self.wire.act, self.wire.right)

    def play(self, step: tuple[str, int, int]) -> None:
        """Change a place, or say something, or let some of it cross."""
        what, place, value = step
        if what == "put":
            old = self.handles.get(place)
            self.act(lambda: self.put(place, ["v", place, value], old))
        elif what == "clear" and place in self.handles:
            self.act(self.handles.pop(place).retract)
        elif what == "say":
            self.act(lambda: send(self.ds, ["v", "message", value]))
        elif what == "take":
            self.wire.right.blocked = True
            self.wire.right.step(50 * value + 1)
            self.wire.system.drain()

    def put(self, place: int, value: Any, old: Handle | None) -> None:
        """The new before the old."""
        handle = assert_(self.ds, value) if old is None else old.replace(value)
        assert handle is not None
        self.handles[place] = handle

    @property
    def known(self) -> set[Any]:
        """What the observer takes to be there; each was asserted once, and taken back at most once."""
        counts: Counter[Any] = Counter()
        for mark, *captures in self.seen[0]:
            if mark != "!":
                counts[tuple(captures)] += 1 if mark == "+" else -1
                assert counts[tuple(captures)] in (0, 1)
        return {captures for captures, count in counts.items() if count}

    @property
    def said(self) -> list[Any]:
        return [captures for mark, *captures in self.seen[0] if mark == "!"]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "put", "clear", "say", "take"]), st.integers(0, 3), st.integers(0, 5)),
        max_size=40,
    ),
    st.sampled_from([0, 100]),
)
def test_a_slow_observer_knows_the_same_in_the_end(steps: list[tuple[str, int, int]], ahead: int) -> None:
    """An observer whose link is slow and one whose link is not know the same, whenever nothing is on its way."""
    fast, slow = Scene(DEFAULT), Scene(evolve(DEFAULT, ahead=ahead))
    for step in steps:
        for scene in (fast, slow):
            scene.play(step)
        if step[0] == "take":
            fast.wire.right.blocked = False
            fast.wire.right.wake()
            fast.wire.system.drain()
    unblock(slow.wire, slow.wire.right)
    assert slow.known == fast.known
    assert slow.said == fast.said
    assert len(slow.seen[0]) <= len(fast.seen[0])
    assert slow.wire.right.crossings == fast.wire.right.crossings
    assert slow.wire.left.crossings == fast.wire.left.crossings


# ---------------------------------------------------------------------------------------------------- bounds


def test_messages_are_bounded(wire: Wire, probe: Probe) -> None:
    """Too many messages that wait end the session, which says so as its last words; nothing else is kept."""
    wire.left.session.limits = wire.left.limits = evolve(AT_ONCE, outbox=100_000)
    wire.left.blocked = True
    for _ in range(9):
        wire.act(wire.left, lambda: send(wire.remote, "x" * 10_000))
    assert wire.left.session.reason is None
    wire.act(wire.left, lambda: send_all(wire.remote, ["x" * 10_000] * 2))
    session = wire.left.session
    assert session.reason == "slow-consumer: more than 100000 bytes waited for the peer"
    assert not wire.left.facet.alive
    assert session.statistics().exceeded == "slow-consumer"
    assert session.burden < 100
    unblock(wire, wire.left)
    last = wire.left.sent[-1]
    assert isinstance(last, Error)
    assert last.detail == Symbol("slow-consumer")
    assert wire.right.session.reason == f"the peer gave up: {session.reason}"
    wire.right.session.forget()
    assert wire.right.crossings == (0, 0, 0, 0)


def test_state_is_not_a_burden(wire: Wire, probe: Probe) -> None:
    """However many assertions wait, the session goes on: they are there once anyway."""
    wire.left.session.limits = evolve(AT_ONCE, outbox=10_000)
    wire.left.blocked = True
    wire.act(wire.left, lambda: [assert_(wire.remote, "x" * 1000) for _ in range(1000)])
    wire.act(wire.left, lambda: send(wire.remote, "even if a message"))
    wire.act(wire.left, lambda: assert_(wire.remote, "comes between"))
    unblock(wire, wire.left)
    assert len(probe.there) == 1001
    assert len(probe.messages) == 1


@pytest.mark.parametrize(
    ("limits", "packet", "why"),
    [
        ({"handles": 3}, turn(*[(A, i, i) for i in range(4)]), "a peer may have 3 (handles)"),
        ({"oids": 3}, turn(*[(A, (SEQ, WireRef(MINE, i)), i) for i in range(3)]), "a peer may have 3 (oids)"),
        ({"oids": 3}, turn(*[(SYNCED, WireRef(MINE, i)) for i in range(3)], oid=9), "a peer may have 3 (oids)"),
        ({"events": 3}, turn(*[(R, i) for i in range(4)]), "a peer may have 3 (events)"),
    ],
)
def test_what_a_peer_may_have(probe: Probe, limits: dict[str, Any], packet: TurnPacket, why: str) -> None:
    """One more than that ends its session, with an error that says what there was too much of."""
    wire = Wire(lambda: ref(probe), Limits(**limits))
    within = TurnPacket(packet.entries[:-1])
    wire.right.inject(within)
    wire.system.drain()
    assert wire.right.session.reason is None
    wire.act(wire.right, stop)
    wire = Wire(lambda: ref(probe), Limits(**limits))
    wire.right.inject(packet)
    wire.system.drain()
    assert why in str(wire.right.session.reason)
    assert wire.right.session.statistics().exceeded == next(iter(limits))
    last = wire.right.sent[-1]
    assert isinstance(last, Error)
    assert why in last.message
    assert probe.there == {}


def test_references_that_we_give_are_bounded(probe: Probe) -> None:
    """A peer whose interests make us export too much loses its session too."""
    wire = Wire(lambda: ref(probe), Limits(oids=10))
    wire.act(wire.left, lambda: [assert_(wire.remote, ref(Entity())) for _ in range(9)])
    assert goes_on(wire.left.session)
    wire.act(wire.left, lambda: assert_(wire.remote, ref(Entity())))
    assert wire.left.session.reason == "oids: more than 10 references are known to both sides"
    assert isinstance(wire.left.sent[-1], Error)


def test_prepared_collisions(wire: Wire, probe: Probe) -> None:
    """Values that all have one hash, which a peer can make, end its session before they slow anybody down."""
    forms = colliding(2048)
    assert len({hash(form) for form in forms}) == 1, "a fact of CPython"
    wire.right.inject(turn(*[(A, form, i) for i, form in enumerate(forms)]))
    wire.system.drain()
    assert "have one hash" in str(wire.right.session.reason)
    assert probe.ever == []


# ---------------------------------------------------------------------------------------------------- debt


def test_debt_is_repaid_when_observers_were_notified() -> None:
    """What was read is owed until those who observe it have had their turns; and no longer."""
    wire = Wire(dataspace, Limits(debt=1))
    wire.left.blocked = True  # it says nothing itself
    ds = wire.right.session.membrane.exports[0].ref
    debts: list[int] = []
    session = wire.right.session

    class Watcher(Entity):
        def message(self, value: Any) -> None:
            debts.append(session.debt)

    def observe() -> None:
        for _ in range(3):
            spawn(lambda: (prevent_inert_check(), assert_(ds, Observe(["x", capture()], ref(Watcher())))))

    wire.act(wire.right, observe)
    data = Msgpack().encode(write(turn((M, (SEQ, "x", 1)))))
    assert session.debt == 0
    wire.right.hear(data)
    wire.right.hear(data)
    assert session.debt == 2 * len(data)
    wire.system.drain()
    assert len(debts) == 6
    assert debts[:3] == [2 * len(data)] * 3
    assert all(debt >= len(data) for debt in debts)
    assert session.debt == 0


# ---------------------------------------------------------------------------------------------------- bytes


def _script() -> list[TurnPacket | Nop]:
    observe = Symbol("Observe")
    pattern = freeze(encode(pattern_of(["present", capture()])))
    return [
        turn((A, (observe, pattern, WireRef(MINE, 2)), 1), (A, (SEQ, "present", WireRef(MINE, 1)), 2)),
        Nop(),
        turn((M, (SEQ, "present", "message")), (SYNCED, WireRef(MINE, 3)), (R, 2)),
        turn((A, freeze(["present", "é" * 40, b"\x00" * 100, 2**80, 1.5, True]), 4), (R, 99)),
        turn((A, (SEQ, "present", (Symbol("r"), 1)), 2), (R, 4), (R, 1)),
    ]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1))
def test_any_chunking_of_the_bytes_is_the_same(sizes: list[int]) -> None:
    """However the bytes of a peer are cut up on their way, the same happens."""
    data = b"".join(Msgpack().encode(write(packet)) for packet in _script())

    def outcome(chunks: list[bytes]) -> Any:
        wire = Wire(dataspace)
        wire.left.blocked = True  # it says nothing itself, in the middle of a packet
        ds = wire.right.session.membrane.exports[0].ref
        seen: list[Seen] = []

        def observe() -> None:
            prevent_inert_check()
            seen.append(watch(ds, ["present", capture(str)]))

        wire.act(wire.right, lambda: spawn(observe))
        for chunk in chunks:
            wire.right.hear(chunk)
            wire.system.drain()
        said = [event for packet in wire.right.sent if isinstance(packet, TurnPacket) for event in packet.entries]
        session = wire.right.session
        counts = (session.packets_in, session.events_in, session.bytes_in, session.debt, session.pings, session.reason)
        said.sort(key=lambda entry: entry[0])  # in order for each reference; several answer each in its time
        return seen, said, wire.right.crossings, counts

    edges = [0, *itertools.accumulate(sizes)]
    chunks = [data[a:b] for a, b in itertools.pairwise(edges)] + [data[edges[-1] :]]
    assert outcome([chunk for chunk in chunks if chunk]) == outcome([data])


def test_statistics(wire: Wire, probe: Probe) -> None:
    """What has passed is counted, at both ends."""
    wire.act(wire.left, lambda: [assert_(wire.remote, ["x", ref(Entity())]) for _ in range(3)])
    wire.act(wire.left, lambda: send(wire.remote, 1))
    wire.left.session.say(Nop())
    wire.left.wake()
    wire.system.drain()
    sent, got = wire.left.session.statistics(), wire.right.session.statistics()
    assert (sent.packets_out, sent.events_out) == (got.packets_in, got.events_in) == (4, 4)
    assert sent.bytes_out == got.bytes_in > 0
    assert (sent.exports, got.imports, got.handles) == (3, 3, 3)
    assert sent.waiting_bytes == sent.waiting_entries == got.debt == 0
    assert (sent.asserts_out, sent.messages_out) == (got.asserts_in, got.messages_in) == (3, 1)
    assert wire.right.session.pings
    assert read(write(Nop())) == Nop()


@pytest.mark.parametrize("behind", [False, True])
@given(st.lists(st.lists(st.sampled_from("+-!?"), min_size=1, max_size=5), max_size=12))
def test_each_kind_of_event_is_counted(behind: bool, turns: list[list[str]]) -> None:
    """At both ends as many as there were in the packets, whatever was collapsed on the way; by kernels and without."""
    wire = Wire(lambda: ref(Entity()), AT_ONCE if behind else DEFAULT)
    handles: list[Handle] = []

    def act(kinds: list[str]) -> None:
        for kind in kinds:
            if kind == "+":
                handles.append(assert_(wire.remote, ["n", len(handles)]))
            elif kind == "-" and handles:
                handles.pop().retract()
            elif kind == "!":
                send(wire.remote, "message")
            elif kind == "?":
                sync(wire.remote, lambda: None)

    wire.left.blocked = behind
    for kinds in turns:
        wire.act(wire.left, partial(act, kinds))
    wire.left.blocked = False
    wire.left.wake()
    wire.system.drain()
    there = Counter(event[0] for event in wire.left.events)
    sent, got = wire.left.session.statistics(), wire.right.session.statistics()
    counts = [there[kind] for kind in (A, R, M, SYNCED)]
    assert [sent.asserts_out, sent.retracts_out, sent.messages_out, sent.syncs_out] == counts
    assert [got.asserts_in, got.retracts_in, got.messages_in, got.syncs_in] == counts
    assert sent.events_out == got.events_in == sum(counts)


def test_forget(wire: Wire, probe: Probe) -> None:
    """Who keeps a reference of a peer's beyond its session keeps nothing else."""
    wire.act(wire.left, lambda: react(lambda: [assert_(wire.remote, ["x", ref(Entity())]) for _ in range(3)]))
    wire.left.blocked = True
    wire.act(wire.left, lambda: assert_(wire.remote, 1))
    session = wire.left.session
    session.forget()
    assert wire.left.crossings == (0, 0, 0, 0)
    assert isinstance(wire.remote.entity, Proxy)
    assert wire.remote.entity.sent == {}
    assert session.take(100) == []
    wire.act(wire.left, lambda: send(wire.remote, 2))
    assert session.take(100) == []
    wire.act(wire.left, stop)
    assert session.burden == 0


def test_a_read_of_many_events_lets_others_have_their_turns(wire: Wire, probe: Probe) -> None:
    """A thousand events in one read are done in several turns, between which others have theirs; in order, and all."""
    codec, session = Msgpack(), wire.right.session
    wire.right.hear(b"".join([codec.encode(write(TurnPacket([(0, (M, i))]))) for i in range(1000)]))
    seen: list[int] = []
    wire.right.facet.enter(lambda: seen.append(session.events_in))
    wire.system.drain()
    assert 0 < seen[0] < 100
    assert session.events_in == 1000
    assert session.debt == 0
    assert not session.busy


@pytest.mark.parametrize("seconds", [-1, inf], ids=["slow", "fast"])
def test_packets_of_many_assertions_are_done_in_small_steps(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Between two looks at the sockets a packet is decoded, or some of it is understood, or some of it is done; not two
    of these.  How much is understood in plain Python is a matter of time: one event if that is over at once.
    """
    monkeypatch.setattr(packet_events, "WHILE", seconds)
    wire = Wire(dataspace)
    codec, session = Msgpack(), wire.right.session
    wire.right.hear(codec.encode(write(turn((M, "one before")))))
    wire.system.drain()
    count, packets = 1000, 3
    before = session.packets_in
    looks = [(before, 0, 0)]

    def look() -> None:
        looks.append((session.packets_in, len(session.assertions), len(session.facet.handles)))

    wire.system.inlet = look
    for first in range(1, packets * count, count):
        asserted = [(A, freeze(["mine", n]), n) for n in range(first, first + count)]
        wire.right.hear(codec.encode(write(turn(*asserted))))
    wire.system.drain()
    look()
    steps = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(looks)]
    assert looks[-1] == (before + packets, packets * count, packets * count)
    assert max(sum(map(bool, step)) for step in steps) == 1
    understood = PART if seconds > 0 or native.library else 1
    assert [max(step[place] for step in steps) for place in range(3)] == [1, understood, PART]
    assert not session.busy
    assert session.debt == 0


@pytest.mark.parametrize("codec", [Preserves, PreservesText])
def test_what_is_read_in_python_is_read_in_small_steps(codec: type[Preserves | PreservesText]) -> None:
    """Between two looks at the sockets some kilobytes; all of it comes, in order, also what is small and behind it."""
    wire = Wire(dataspace, codec=codec)
    ds = wire.right.session.membrane.exports[0].ref
    seen: list[Seen] = []
    wire.act(wire.right, lambda: seen.append(watch(ds, capture())))
    session = wire.right.session
    large = [tuple(range(4000)), "x" * 9000]
    data = b"".join([codec().encode(write(turn((M, freeze(value))))) for value in [*large, 1, 2]])
    looks = [0]

    def look() -> None:
        assert session.codec is not None
        looks.append(session.codec.partial)

    wire.system.inlet = look
    wire.right.hear(data)
    wire.system.drain()
    assert [event for event in seen[0] if event[0] == "!"] == [("!", value) for value in [*large, 1, 2]]
    assert len(looks) > len(data) // codec.stretch
    assert max(b - a for a, b in pairwise(looks)) <= codec.stretch
    assert not session.busy
    assert session.debt == 0


@pytest.mark.parametrize(("size", "most"), [(10, 10), (200, 10), (400, 4), (1100, 1)])
def test_few_long_lists_are_understood_at_a_stretch(size: int, most: int) -> None:
    """Between two looks at the sockets so many of 10, that it takes about as long whatever is in them."""
    wire = Wire(dataspace, codec=PreservesText)
    session = wire.right.session
    looks: list[int] = []
    wire.system.inlet = lambda: looks.append(len(session.assertions))
    events = [(A, (SEQ, *range(n, n + size)), n) for n in range(10)]
    wire.right.hear(PreservesText().encode(write(turn(*events, (M, "last")))))
    wire.system.drain()
    looks.append(len(session.assertions))
    assert max(b - a for a, b in pairwise([0, *looks])) == most
    assert looks[-1] == len(session.facet.handles) == 10
    assert not session.busy


@pytest.mark.parametrize(
    "events",
    [
        [event for n in range(1000) for event in ((A, ("flicker", n), 7), (R, 7))],
        [event for n in range(1000) for event in ((A, "the same", n + 7), (R, n + 7))],
        [*[(R, n) for n in range(500)], *[(A, n, n) for n in range(500)]],
        [(SYNCED, WireRef(MINE, 5))] * 2000,
    ],
    ids=["flicker", "replaced", "renewed", "syncs"],
)
def test_a_packet_of_many_events_is_put_in_order_and_charged_in_small_steps(
    events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks at the sockets a part is charged, or what is held twice is given back for a part."""
    wire = Wire(dataspace)
    session = wire.right.session
    wire.right.blocked = True
    charged, released = [0], [0]
    fitting, release = Reach.fitting, Membrane.release

    def counted(reach: Reach, acts: Sequence[Understood]) -> int:
        charged[-1] += len(acts)
        return fitting(reach, acts)

    def returned(membrane: Membrane, pins: Iterable[Crossing]) -> None:
        released[-1] += 1
        release(membrane, pins)

    def look() -> None:
        charged.append(0)
        released.append(0)

    monkeypatch.setattr(Reach, "fitting", counted)
    monkeypatch.setattr(Membrane, "release", returned)
    wire.system.inlet = look
    wire.right.hear(Msgpack().encode(write(turn(*events))))
    wire.system.drain()
    assert max(charged) <= PART
    assert max(released) <= PART
    assert sum(charged) + sum(released) > 4 * PART
    assert session.events_in == len(events)
    assert len(session.assertions) == len(session.facet.handles) == (500 if events[0][0] is R else 0)
    assert not session.busy


def words(number: int) -> Frozen:
    """Symbols that are new, and others each time."""
    return (SEQ, *[Symbol(f"{number} {n}") for n in range(30)])


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        [Symbol(f"new {n}") for n in range(1000)],
        {Symbol(f"new {n}"): [frozenset({n})] for n in range(1000)},
        [[[Symbol(f"new {n}"), 2**64 + n, 0.5], {n}] for n in range(500)],
        WireRef(YOURS, 0, tuple([(Symbol("reject"), (Symbol("lit"), words(n))) for n in range(30)])),
    ],
    ids=["flat", "dictionary", "records", "caveats"],
)
def test_what_a_kernel_leaves_of_msgpack_is_read_in_small_steps(value: Any, cut: bool) -> None:
    """Between two looks at the sockets some values, wherever they are; all of it is done, and what is behind it."""
    wire = Wire(dataspace)
    session = wire.right.session
    form = value if type(value) is WireRef else freeze(value)
    data = Msgpack().encode(write(turn((A, (SEQ, form), 1)))) + Msgpack().encode(write(turn((A, "last", 2))))
    looks: list[int] = []

    def look() -> None:
        assert session.codec is not None
        assert session.codec.tables is not None
        looks.append(len(session.codec.tables[1]))

    look()

    wire.system.inlet = look
    for part in (data[:100], data[100:]) if cut else (data,):
        wire.right.hear(part)
    wire.system.drain()
    assert len(session.assertions) == len(session.facet.handles) == 2
    assert max(b - a for a, b in pairwise(looks)) <= VALUES
    assert looks[-1] > VALUES
    assert not session.busy
    assert session.debt == 0
    assert session.codec is not None
    assert session.codec.held == 0


def nested(parts: list[Any]) -> Any:
    """Sequences in each other, nearly as deep as a value may be, each with some of the *parts*."""
    value, most = list[Any](), MAX_DEPTH - 4
    for place in range(most):
        value = [value, *parts[place::most]]
    return value


@pytest.mark.parametrize("codec", [Msgpack, Preserves, PreservesText])
@pytest.mark.parametrize("shape", [list, nested], ids=["flat", "deep"])
@pytest.mark.parametrize("references", [(), (WireRef(YOURS, 0),)], ids=["as it came", "as it crossed"])
def test_what_is_read_in_small_steps_goes_in_small_steps(
    codec: type[Msgpack | Preserves | PreservesText],
    shape: Callable[[list[Any]], Any],
    references: tuple[WireRef, ...],
) -> None:
    """Between two looks at the sockets some of the values of a packet that is done are freed, and in the end all are.
    Symbols show it, which are known as long as somebody has them.
    """
    wire = Wire(dataspace, codec=codec)
    session, count = wire.right.session, 3000
    form = (SEQ, *references, freeze(shape([Symbol(f"goes {n} {'x' * SHORT}") for n in range(count)])))
    data = codec().encode(write(turn((M, form))))
    del form
    table = Symbol._known
    before, looks = len(table), list[int]()
    wire.system.inlet = lambda: looks.append(len(table))
    wire.right.hear(data)
    wire.system.drain()
    looks.append(len(table))
    assert session.events_in == 1
    assert max(looks) >= before + count
    assert looks[-1] == before
    assert max(a - b for a, b in pairwise(looks)) <= FREED


@pytest.mark.parametrize("when", range(26))
def test_a_packet_is_done_as_a_whole_or_not_at_all_whenever_its_session_ends(when: int) -> None:
    """Also between the parts in which it is read, understood and done."""
    wire = Wire(dataspace)
    codec, session, count = Msgpack(), wire.right.session, 1000
    ds = session.membrane.exports[0].ref
    heard = [0, 0]

    def observe() -> None:
        prevent_inert_check()

        @during(ds, ["mine", capture()])
        def there(_: int) -> None:
            heard[0] += 1
            on_stop(lambda: heard.__setitem__(1, heard[1] + 1))

    wire.system.spawn(observe)
    wire.system.drain()
    looks = itertools.count()

    def look() -> None:
        if next(looks) == when:
            session.cut("kicked", "somebody ends it")

    wire.system.inlet = look
    wire.right.hear(codec.encode(write(turn(*[(A, freeze(["mine", n]), n) for n in range(1, count + 1)]))))
    wire.system.drain()
    assert not session.facet.alive
    assert heard in ([0, 0], [count, count])
    assert not session.facet.handles


def test_a_peer_is_free_again_soon_after_its_packet_is_done() -> None:
    """A packet is charged once, piece by piece: who waits for others has nothing more to pay when it is done."""
    wire = Wire(dataspace)
    codec, session, system, count = Msgpack(), wire.right.session, wire.system, 1000
    wire.right.hear(codec.encode(write(turn((M, "one before")))))
    system.drain()
    steps: list[tuple[bool, bool]] = []
    facet = wire.left.facet

    def other() -> None:
        """Somebody else's work, a piece of the cost of one packet's share at a time."""
        steps.append((len(session.facet.handles) >= count, not session.busy))
        if not steps[-1][1]:
            system.postpone(facet.actor, (ENTER, facet, other, None), 1)

    wire.right.hear(codec.encode(write(turn(*[(A, freeze(["mine", n]), n) for n in range(1, count + 1)]))))
    facet.enter(lambda: system.postpone(facet.actor, (ENTER, facet, other, None), 1))
    system.drain()
    assert steps[-1] == (True, True)
    assert sum(handled for handled, _ in steps) <= 3


def test_debt_is_owed_until_large_turns_are_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handled in slices, by the dataspace and by those whom it tells, counts when it is done."""
    wire = Wire(dataspace, Limits(debt=1))
    ds = wire.right.session.membrane.exports[0].ref
    session, heard = wire.right.session, [0]

    def observe() -> None:
        prevent_inert_check()

        @on_message(ds, ["x", capture()])
        def hear(n: int) -> None:
            heard[0] += 1

    for _ in range(2):
        wire.system.spawn(observe)
    wire.system.drain()
    count = 3000
    data = Msgpack().encode(write(turn(*[(M, (SEQ, "x", n)) for n in range(count)])))
    for _ in range(3):
        wire.right.hear(data)
    looks = [0]
    wrong: list[tuple[int, int]] = []

    def clock() -> float:
        looks[0] += 1
        handled = heard[0] // (2 * count) * len(data)
        if session.debt < 3 * len(data) - handled - len(data) or (not session.debt and heard[0] < 6 * count):
            wrong.append((session.debt, heard[0]))
        return float(looks[0])

    monkeypatch.setattr("syndicate.actors.system.perf_counter", clock)
    while wire.system.queue:
        wire.system.drain(1.5)
    assert looks[0] > 20
    assert wrong == []
    assert heard[0] == 6 * count
    assert session.debt == 0


# ---------------------------------------------------------------------------------------------- turns of many events


def longest_stretch(kind: str, events: int, blocked: bool) -> int:
    """The most calls between two turns of another actor, while what a turn of so many events tells a peer goes out."""
    wire = Wire(lambda: ref(Probe()))
    wire.left.blocked = True
    here = Ref(wire.left.facet, Entity())
    handles: list[Handle] = []
    stretches: list[int] = []
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def others() -> None:
        nonlocal count
        stretches.append(count)
        count = 0
        facet = current_facet()
        if wire.system.queue:
            facet.enter(others)

    def act() -> None:
        for i in range(events):
            if kind == "send":
                send(wire.remote, ["row", i])
            elif kind == "assert":
                handles.append(assert_(wire.remote, ["row", i]))
            elif kind == "observe":
                handles.append(assert_(wire.remote, ["row", Observe(["row", i, capture()], here)]))
            else:
                handles[i].retract()

    if kind == "retract":
        wire.left.facet.enter(lambda: handles.extend(assert_(wire.remote, ["row", i]) for i in range(events)))
        wire.system.drain()
    if not blocked:
        wire.left.blocked = False
        wire.left.wake()
        wire.system.drain()
        wire.left.blocked = True  # the writer of a connection takes it between two slices of the queue
    wire.left.facet.enter(act)
    wire.right.facet.enter(others)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        wire.system.drain()
    finally:
        sys.setprofile(before)
    assert wire.left.session.reason is None
    return max(stretches[1:])  # the first is what the program does itself


@pytest.mark.parametrize("kind", ["send", "assert", "retract", "observe"])
def test_a_packet_of_many_events_is_written_in_parts(kind: str) -> None:
    """What is done at a stretch does not grow with the packet that a turn becomes."""
    assert longest_stretch(kind, 1600, False) < 1.2 * longest_stretch(kind, 800, False)


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("kind", ["send", "assert", "retract"])
def test_a_turn_that_tells_a_peer_much_lets_others_have_their_turns(kind: str, blocked: bool) -> None:
    """What is done at a stretch does not grow with the turn: a packet at most, or a piece of what waits."""
    assert longest_stretch(kind, 24_000, blocked) < 1.2 * longest_stretch(kind, 16_000, blocked)


many = st.tuples(
    st.sampled_from(["assert", "retract", "send", "mixed"]), st.sampled_from([1, 3, 64, 65, 150, 400]), st.booleans()
)


@settings(max_examples=examples(60))
@given(steps=st.lists(many, min_size=1, max_size=8), ahead=st.sampled_from([0, 500, 1 << 18]), ends=st.booleans())
def test_whatever_goes_out_in_pieces_arrives_whole_and_in_order(
    steps: list[tuple[str, int, bool]], ahead: int, ends: bool
) -> None:
    """Turns larger than a packet, small ones behind them, a peer that takes a packet now and then, and an actor that
    stops as soon as it has spoken: the peer knows what is asserted, and has heard each message once, in order.
    """
    probe = Probe()
    wire = Wire(lambda: ref(probe), evolve(DEFAULT, ahead=ahead, events=100))
    wire.left.blocked = True
    numbers = itertools.count()
    handles: list[Handle] = []
    there: list[Any] = []
    said: list[Any] = []

    def act(kind: str, size: int) -> None:
        for i in range(size):
            what = kind if kind != "mixed" else ("assert", "send", "retract")[i % 3]
            value = next(numbers)
            if what == "assert":
                handles.append(assert_(wire.remote, value))
                there.append(value)
            elif what == "send":
                send(wire.remote, value)
                said.append(value)
            elif handles:
                place = value % len(handles)
                handles.pop(place).retract()
                there.pop(place)

    def boot() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    facets: list[Facet] = []
    wire.system.spawn(boot)
    wire.system.drain()
    for number, (kind, size, takes) in enumerate(steps):
        facets[0].enter(partial(act, kind, size))
        if ends and number == len(steps) - 1:  # behind what it has sent over its connection, which is in pieces yet
            facets[0].enter(lambda: wire.left.facet.enter(stop_actor))
        if takes:
            wire.system.drain()
            wire.left.step(64)
    wire.system.drain()
    assert wire.left.facet.alive is not ends
    while wire.left.step():
        wire.system.drain()
    assert [value for value, _ in probe.messages] == said
    assert Counter(probe.there.values()) == Counter(there)
    assert len(probe.ever) == len(set(probe.ever)), "each was asserted at most once"
    assert not wire.left.session.statistics().waiting_entries
