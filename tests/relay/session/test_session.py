"""Sessions: two of them face to face, without sockets; and one alone, against a peer that does as it likes."""

from __future__ import annotations

import gc
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import partial
from typing import Any, cast

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.codec import Msgpack
from relay.protocol.limits import DEFAULT
from relay.protocol.observer import Observer
from relay.protocol.packets import MINE, YOURS, A, Error, Event, Extension, M, Nop, R, TurnPacket, WireRef, read, write
from relay.protocol.packets import S as SYNCED
from relay.session.membrane import Crossing
from relay.session.session import PINGS
from syndicate import (
    ANY,
    Entity,
    Observe,
    Record,
    Ref,
    Symbol,
    assert_,
    capture,
    current_facet,
    dataspace,
    on_asserted,
    on_message,
    prevent_inert_check,
    react,
    ref,
    send,
    spawn,
    stop,
    sync,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.turn import Handle
from syndicate.index.interest import interest
from syndicate.testing import Seen, Watcher, watch
from syndicate.values.pattern import encode, match, pattern_of
from syndicate.values.text import parse_pattern
from syndicate.values.value import FALSE, MAX_DEPTH, SEQ, Frozen, freeze
from tests.inside import index_of
from tests.relay.wire import End, Wire
from tests.strategies import examples, patterns, patterns_like, values

EMPTY = ((0, 1, 0, 0), (1, 0, 0, 0))
"""The crossings of both ends of a wire when nothing goes on: the published reference only."""


def send_all(target: Ref, messages: Iterable[Any]) -> None:
    """Send one message after the other."""
    for message in messages:
        send(target, message)


def crossings(wire: Wire) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The crossings of both ends."""
    return wire.left.crossings, wire.right.crossings


class Probe(Entity):
    """An entity that remembers everything."""

    def __init__(self) -> None:
        self.there: dict[Any, Any] = {}
        self.ever: list[Any] = []
        self.messages: list[Any] = []

    def assert_(self, value: Any, handle: Any) -> None:
        self.there[handle] = value
        self.ever.append(value)

    def retract(self, handle: Any) -> None:
        del self.there[handle]

    def message(self, value: Any) -> None:
        self.messages.append(value)

    @property
    def values(self) -> list[Any]:
        return list(self.there.values())


@pytest.fixture
def probe() -> Probe:
    """What the right end publishes."""
    return Probe()


@pytest.fixture
def wire(probe: Probe) -> Wire:
    """A wire whose right end publishes the probe."""
    return Wire(lambda: ref(probe))


# ---------------------------------------------------------------------------------------------------- the protocol


def test_a_ping_alone_is_heard_without_a_turn(wire: Wire) -> None:
    """It leaves what feeding it would leave; what is no ping, or comes in the midst of a packet, is to be fed."""
    session, ping = wire.right.session, Msgpack().encode(write(Nop()))
    assert not session.hear(ping), "the first packet says more"
    wire.act(wire.left, lambda: send(wire.remote, "m"))

    def counts() -> tuple[bool, int, int, int]:
        return session.pings, session.packets_in, session.events_in, session.bytes_in

    _, packets, events, size = counts()
    assert session.hear(ping)
    assert counts() == (True, packets + 1, events, size + 1)
    wire.right.hear(ping)
    wire.system.drain()
    assert counts() == (True, packets + 2, events, size + 2)
    half = Msgpack().encode(write(TurnPacket([(0, (M, "x" * 5000))])))
    assert session.hear(ping * PINGS), "a few are as many packets"
    assert counts() == (True, packets + 2 + PINGS, events, size + 2 + PINGS)
    for data in (b"", ping * (PINGS + 1), ping + half[:1], half[:-1]):
        assert not session.hear(data)
    wire.right.hear(half[:-1])
    wire.system.drain()
    assert not session.hear(ping), "that is a part of a packet"
    wire.right.hear(half[-1:])
    wire.system.drain()
    assert session.hear(ping)


def test_assert_retract_message(wire: Wire, probe: Probe) -> None:
    """What happens to a remote reference happens over there, in order, and one turn is one packet."""
    handles: list[Handle] = []

    def first() -> None:
        handles.append(assert_(wire.remote, ["a", 1]))
        send(wire.remote, "m")
        assert_(wire.remote, ["b", True])

    wire.act(wire.left, first)
    assert probe.values == [("a", 1), ("b", True)]
    assert probe.messages == ["m"]
    assert [
        [event[0] for _, event in packet.entries] for packet in wire.left.sent if isinstance(packet, TurnPacket)
    ] == [[A, M, A]]
    wire.act(wire.left, handles[0].retract)
    assert probe.values == [("b", True)]
    assert wire.left.events[-1] == (R, 1)


@pytest.mark.parametrize("how", ["stop", "end", "crash"])
def test_a_lost_peer_takes_everything_along(wire: Wire, probe: Probe, how: str) -> None:
    """All that a peer had asserted is retracted when its session ends, however it ends."""
    ends = {"stop": stop, "end": lambda: wire.right.session.end("over"), "crash": lambda: 1 / 0}
    wire.act(wire.left, lambda: [assert_(wire.remote, i) for i in range(10)])
    assert len(probe.values) == 10
    wire.act(wire.right, ends[how])
    assert probe.values == []


def test_references_come_home(wire: Wire, probe: Probe) -> None:
    """A reference that goes out and comes back is the reference itself, on both sides."""
    mine: list[Ref] = []
    seen: list[Any] = []

    def offer() -> None:
        class Back(Entity):
            def assert_(self, value: Any, handle: Any) -> None:
                seen.append(value)

        mine.append(ref(Back()))
        assert_(wire.remote, ["here", mine[0], wire.remote])

    wire.act(wire.left, offer)
    (_, theirs, own) = probe.values[0]
    assert own.entity is probe
    wire.act(wire.right, lambda: assert_(theirs, ["back", theirs, own]))
    assert seen == [("back", mine[0], wire.remote)]
    assert seen[0][1] is mine[0]
    assert seen[0][2] is wire.remote


def test_membranes_return_to_empty(wire: Wire, probe: Probe) -> None:
    """What was mentioned is forgotten once all mentions and assertions are retracted, and can be mentioned again."""
    echo = Probe()

    def offer() -> None:
        here = Ref(wire.left.facet, echo)
        assert_(wire.remote, ["a", here])
        assert_(wire.remote, ["b", {"k": here}, {here}])

    for _ in range(3):
        facets: list[Any] = []
        wire.act(wire.left, partial(hold_by, facets, offer))
        wire.act(wire.right, partial(hold, facets, probe.values[0][1], "echo"))
        assert crossings(wire) == ((1, 1, 1, 2), (1, 1, 2, 1))
        assert echo.values == ["echo"]
        wire.act(wire.left, partial(stop, facets[0]))
        wire.act(wire.right, partial(stop, facets[1]))
        assert crossings(wire) == EMPTY
    exported = [item for event in wire.left.events if event[0] is A for item in event[1] if type(item) is WireRef]
    assert [ref_.oid for ref_ in exported] == [0, 1, 2]  # never used again


def test_the_same_reference_is_introduced_again_once_it_was_forgotten(wire: Wire, probe: Probe) -> None:
    """The peer that forgot it can use it again: under a new number, and both for what it gets and for what it has."""
    echo = Probe()
    here: list[Ref] = []
    wire.act(wire.left, lambda: here.append(ref(echo)))
    for n in range(3):
        facets: list[Any] = []
        wire.act(wire.left, partial(hold, facets, wire.remote, here[0]))
        wire.act(wire.right, partial(hold, facets, probe.values[0], [n, probe.values[0]]))
        assert echo.values == [(n, here[0])]
        for end, facet in zip((wire.left, wire.right), facets, strict=True):
            wire.act(end, partial(stop, facet))
        assert crossings(wire) == EMPTY
        assert echo.values == []


def living() -> int:
    """How many crossings anything still holds."""
    gc.collect()
    return sum(type(each) is Crossing for each in gc.get_objects())


def test_nothing_holds_what_was_forgotten(shared: Wire) -> None:
    """Neither a reference that was mentioned, nor an observer's, which the peer has under two names."""
    wire, seen = shared, list[Any]()
    before = living()

    def offer() -> None:
        handler = Probe()
        handler.asked = interest(capture(), ref(handler))[1]
        assert_(wire.remote, ["x", ref(Probe())])
        assert_(wire.remote, ["y", ref(handler)])
        on_asserted(wire.remote, ["x", capture()])(seen.append)
        on_message(wire.remote, capture())(seen.append)

    for _ in range(3):
        facets: list[Any] = []
        wire.act(wire.left, partial(hold_by, facets, offer))
        assert living() > before
        wire.act(wire.left, partial(stop, facets[0]))
        assert living() == before
    assert len(seen) == 3


def test_a_forgotten_proxy_still_works(wire: Wire, probe: Probe) -> None:
    """A reference that somebody kept beyond its last mention is the same number on the wire."""
    echo, handles = Probe(), list[Any]()

    def offer() -> None:
        here = ref(echo)
        handles.append(assert_(wire.remote, here))
        handles.append(assert_(wire.remote, ["also", here]))

    wire.act(wire.left, offer)
    proxy = probe.values[0]
    wire.act(wire.left, handles[0].retract)
    wire.act(wire.right, lambda: assert_(proxy, 1))
    assert echo.values == [1]
    wire.act(wire.left, handles[1].retract)
    wire.act(wire.right, lambda: send(proxy, "still"))
    assert echo.messages == ["still"]  # our assertion on it keeps it exported
    assert crossings(wire) == ((1, 1, 1, 0), (1, 1, 0, 1))


def test_a_forgotten_proxy_takes_assertions(wire: Wire, probe: Probe) -> None:
    """The peer, which has forgotten it as well, ignores them; here they are counted, and leave nothing."""
    facets: list[Any] = []
    echo = Probe()
    wire.act(wire.left, lambda: hold(facets, wire.remote, ref(echo)))
    proxy = probe.values[0]
    wire.act(wire.left, partial(stop, facets[0]))
    assert crossings(wire) == EMPTY
    wire.act(wire.right, lambda: hold(facets, proxy, "late"))
    assert echo.ever == []
    assert crossings(wire) == ((0, 1, 1, 0), (1, 1, 0, 1))
    wire.act(wire.right, partial(stop, facets[1]))
    assert crossings(wire) == EMPTY


def test_sync(wire: Wire, probe: Probe) -> None:
    """A sync is answered after everything before it, and leaves nothing behind."""
    order: list[Any] = []

    def go() -> None:
        assert_(wire.remote, 1)
        sync(wire.remote, lambda: order.append(probe.values))

    wire.act(wire.left, go)
    assert order == [[1]]
    assert wire.right.events == [(M, freeze(True))]
    assert crossings(wire) == ((0, 1, 0, 1), (1, 0, 1, 0))


def test_a_message_introduces_no_reference(wire: Wire, probe: Probe, logs: list[MutableMapping[str, Any]]) -> None:
    """A message with a reference that the peer does not have is not sent, and the log says why; one that it has is."""

    def go() -> None:
        here = ref(Entity())
        send(wire.remote, ["new", here])
        send(wire.remote, "next")
        assert_(wire.remote, here)
        send(wire.remote, ["known", here, wire.remote])

    wire.act(wire.left, go)
    assert [m if m == "next" else m[0] for m in probe.messages] == ["next", "known"]
    assert probe.messages[1][1] is probe.values[0]
    assert "introduce a reference" in logs[0]["reason"]
    assert crossings(wire) == ((1, 1, 0, 1), (1, 1, 1, 0))


# ---------------------------------------------------------------------------------------------------- observing


@pytest.fixture
def shared() -> Wire:
    """A wire whose right end publishes a dataspace."""
    return Wire(dataspace)


def hold(facets: list[Any], target: Ref, value: Any) -> None:
    """Assert *value* in a facet of its own."""
    hold_by(facets, lambda: assert_(target, value))


def hold_by(facets: list[Any], fn: Callable[[], object]) -> None:
    """Run *fn* in a facet of its own."""
    facets.append(react(fn))


def right_ds(wire: Wire) -> Ref:
    """The dataspace itself."""
    return wire.right.session.membrane.exports[0].ref


def test_observe(shared: Wire) -> None:
    """An observer at one end sees what happens at the other, and nothing once it has gone; nothing is left behind."""
    wire, ds = shared, right_ds(shared)
    facets: list[Any] = []
    seen: list[Seen] = []
    wire.act(wire.left, lambda: facets.append(react(lambda: seen.append(watch(wire.remote, ["x", capture()])))))
    wire.act(wire.right, lambda: facets.append(react(lambda: assert_(ds, ["x", {"k": 1}]))))
    wire.act(wire.right, lambda: send(ds, ["x", "message"]))
    wire.act(wire.right, partial(stop, facets[1]))
    assert seen == [[("+", {"k": 1}), ("!", "message"), ("-", {"k": 1})]]
    wire.act(wire.left, partial(stop, facets[0]))
    wire.act(wire.right, lambda: send(ds, ["x", "unseen"]))
    assert len(seen[0]) == 3
    assert crossings(wire) == EMPTY


def test_interest_goes_out_in_the_published_form(shared: Wire) -> None:
    """On the wire an Observe is the record of the published schema, without classes."""
    shared.act(shared.left, lambda: watch(shared.remote, Record("Says", ["alice", capture(int), ANY])))
    (_, observe, _) = shared.left.events[0]
    published = Record(
        "group",
        [
            Record("rec", [Symbol("Says")]),
            {0: Record("lit", ["alice"]), 1: Record("bind", [Record("_")]), 2: Record("_")},
        ],
    )
    assert observe == (Symbol("Observe"), freeze(published), WireRef(MINE, 0))


def test_classes_are_filtered_on_arrival(shared: Wire) -> None:
    """``capture(int)`` sees integers only, though it cannot say so on the wire."""
    wire, ds = shared, right_ds(shared)
    seen: list[Seen] = []
    wire.act(
        wire.left,
        lambda: seen.extend(
            [watch(wire.remote, [capture(int)]), watch(wire.remote, [capture(str)]), watch(wire.remote, [capture()])]
        ),
    )
    facets: list[Any] = []
    wire.act(wire.right, lambda: facets.append(react(lambda: [assert_(ds, [v]) for v in (1, True, 1.0, "1")])))
    wire.act(wire.right, lambda: send(ds, ["message"]))
    wire.act(wire.right, partial(stop, facets[0]))
    ints, texts, everything = seen
    assert ints == [("+", 1), ("-", 1)]
    assert texts == [("+", "1"), ("!", "message"), ("-", "1")]
    assert len(everything) == 9


def test_classes_that_are_not_captured(shared: Wire) -> None:
    """A class that is not captured needs a capture on the wire: several of its values are one to the observer."""
    wire, ds = shared, right_ds(shared)
    seen: list[Seen] = []
    wire.act(wire.left, lambda: seen.append(watch(wire.remote, parse_pattern("[<_ SignedInteger> $]"))))
    facets: list[Any] = []
    for pair in ([1, "a"], [2, "a"], ["x", "a"], [3, "b"]):
        wire.act(wire.right, partial(hold, facets, ds, pair))
    assert seen == [[("+", "a"), ("+", "b")]]
    wire.act(wire.right, partial(stop, facets[0]))
    wire.act(wire.right, partial(stop, facets[2]))
    assert len(seen[0]) == 2
    wire.act(wire.right, partial(stop, facets[1]))
    assert seen == [[("+", "a"), ("+", "b"), ("-", "a")]]


def test_an_observer_is_shielded(shared: Wire) -> None:
    """Whoever gets hold of an observer's reference cannot crash it with what its pattern cannot have captured."""
    wire, ds = shared, right_ds(shared)
    heard: list[Any] = []
    stolen: list[Any] = []
    wire.act(wire.right, lambda: on_asserted_observers(ds, stolen))
    wire.act(
        wire.left, lambda: on_message(wire.remote, ["x", capture(), capture(int)])(lambda a, b: heard.append((a, b)))
    )
    (observer,) = stolen
    nonsense: tuple[Any, ...] = (1, [], ["a"], ["a", "b"], ["a", 1, 2], {"a": 1}, Record("a", ["a", 1]))
    wire.act(wire.right, lambda: send_all(observer, nonsense))
    wire.act(wire.right, lambda: [assert_(observer, value) for value in nonsense])
    wire.act(wire.right, lambda: send(observer, ["fine", 1]))
    assert heard == [("fine", 1)]
    assert wire.left.facet.alive
    assert wire.left.facet.actor.error is None


def on_asserted_observers(ds: Ref, stolen: list[Any]) -> None:
    """Collect the observers of a dataspace, but for this one."""

    class Thief(Watcher):
        def assert_(self, value: Any, handle: Any) -> None:
            _, observer = value
            if not isinstance(getattr(observer.entity, "observer", observer).entity, Thief):
                stolen.append(observer)

    assert_(ds, Observe(Record("Observe", [capture(), capture()]), ref(Thief())))


def test_observers_that_come_home(shared: Wire) -> None:
    """Who sees his own interest in a remote dataspace, and asserts it again, does not add a layer each time."""
    wire = shared
    stolen: list[Any] = []
    wire.act(wire.left, lambda: on_asserted_observers(wire.remote, stolen))
    wire.act(wire.left, lambda: on_message(wire.remote, ["x", capture()])(print))
    assert type(stolen[0].entity) is Observer
    wire.act(wire.left, lambda: assert_(wire.remote, Observe(["y", capture()], stolen[0])))
    assert stolen[1] is stolen[0]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_remote_observer_knows_what_matches(data: st.DataObject) -> None:
    """For any values and patterns, classes included, a remote observer is notified of exactly what matches, once."""
    wire = Wire(dataspace)
    ds = right_ds(wire)
    drawn = data.draw(st.lists(values(refs=False, max_leaves=4), min_size=1, max_size=5))
    wanted = [data.draw(patterns_like(data.draw(st.sampled_from(drawn)))) for _ in range(3)]
    seen: list[Seen] = []
    holders: list[Any] = []
    late = data.draw(st.booleans())

    def observe() -> None:
        seen.extend([watch(wire.remote, Record("v", [pattern])) for pattern in wanted])

    if not late:
        wire.act(wire.left, observe)
    for value in drawn:
        wire.act(wire.right, partial(hold, holders, ds, Record("v", [value])))
    if late:
        wire.act(wire.left, observe)
    gone = data.draw(st.sets(st.sampled_from(range(len(drawn)))))
    for i in gone:
        wire.act(wire.right, partial(stop, holders[i]))
    left = [value for i, value in enumerate(drawn) if i not in gone]
    for pattern, events in zip(wanted, seen, strict=True):
        facts: Counter[Frozen] = Counter()
        for mark, *captures in events:
            facts[freeze(captures)] += 1 if mark == "+" else -1
            assert facts[freeze(captures)] in (0, 1)
        matched = [match(pattern, value) for value in left]
        assert {form for form, count in facts.items() if count} == {
            freeze(captures) for captures in matched if captures is not None
        }


# ---------------------------------------------------------------------------------------------------- bad peers


def turn(*events: Event, oid: int = 0) -> TurnPacket:
    """A packet of events for one target."""
    return TurnPacket([(oid, event) for event in events])


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (turn((A, 1, 7), (A, 2, 7)), "handle 7 is in use"),
        (turn((A, 1, 7), (M, ("x", WireRef(MINE, 3)))), "introduces a reference"),
    ],
)
def test_a_bad_packet_has_no_effect_and_ends_the_session(
    wire: Wire, probe: Probe, packet: TurnPacket, why: str
) -> None:
    """The peer gets to know what was wrong; nothing of its packet was done, and what it had asserted is retracted."""
    wire.right.inject(turn((A, "before", 1)))
    wire.system.drain()
    wire.right.inject(packet)
    wire.system.drain()
    assert probe.ever == ["before"]
    assert probe.values == []
    assert why in str(wire.right.session.reason)
    assert isinstance(wire.right.sent[-1], Error)
    assert why in wire.right.sent[-1].message
    assert "the peer gave up" in str(wire.left.session.reason)
    assert not wire.left.facet.alive


def test_what_is_ignored(wire: Wire, probe: Probe) -> None:
    """Unknown handles, unknown targets, extensions and nothing at all: no effect, no end, and nothing is kept."""
    wire.right.inject(turn((R, 99)))
    wire.right.inject(turn((M, "lost"), (R, 5), oid=77))
    wire.right.inject(Extension((Symbol("later"), 1)))
    wire.right.inject(Nop())
    wire.right.inject(turn((M, "heard")))
    wire.system.drain()
    assert probe.messages == ["heard"]
    assert wire.right.session.reason is None
    assert crossings(wire) == EMPTY


def test_an_assertion_on_an_unknown_target(wire: Wire, probe: Probe) -> None:
    """It counts its references, as the peer does who cannot know, and releases them."""
    wire.right.inject(turn((A, ("x", WireRef(MINE, 5)), 1), oid=77))
    wire.system.drain()
    assert wire.right.crossings == (1, 1, 1, 0)
    wire.right.inject(turn((M, ("y", WireRef(MINE, 5)))))
    wire.right.inject(turn((R, 1)))
    wire.system.drain()
    assert len(probe.messages) == 1
    assert wire.right.crossings == (1, 0, 0, 0)


def test_unknown_yours_is_one_inert_reference(wire: Wire, probe: Probe) -> None:
    """A reference that we are said to have given out, and have not, does nothing and is not remembered; nor is one
    with caveats.
    """
    for i, wire_ref in enumerate([WireRef(YOURS, 5), WireRef(YOURS, 6), WireRef(YOURS, 7, ("reject",))]):
        wire.right.inject(turn((A, ("x", wire_ref), i)))
    wire.system.drain()
    refs = {value.fields[0] if isinstance(value, Record) else value[0] for value in probe.values}
    assert len(refs) == 1
    assert wire.right.crossings == (1, 0, 3, 0)
    (inert,) = refs
    answered: list[int] = []

    def use() -> None:
        send(inert, 1)
        assert_(inert, 2)
        sync(inert, lambda: answered.append(1))

    wire.act(wire.right, use)
    assert answered == [1]
    assert wire.right.session.reason is None


def test_a_sync_on_an_unknown_target_is_answered(wire: Wire) -> None:
    """Nobody waits for ever."""
    wire.right.inject(turn((SYNCED, WireRef(MINE, 4)), oid=9))
    wire.system.drain()
    assert wire.right.sent[-1] == turn((M, freeze(True)), oid=4)
    assert crossings(wire) == EMPTY


def test_a_malformed_interest_is_a_plain_assertion(shared: Wire) -> None:
    """An Observe whose pattern is not one is kept as a value, and observes nothing."""
    wire, ds = shared, right_ds(shared)
    seen: list[Seen] = []
    wire.act(wire.right, lambda: seen.append(watch(ds, Record("Observe", [capture(str), ANY]))))
    wire.right.inject(turn((A, (Symbol("Observe"), "no pattern", WireRef(MINE, 3)), 1)))
    wire.system.drain()
    assert seen == [[("+", "no pattern")]]
    assert wire.right.session.reason is None


def test_a_dataspace_does_not_observe_for_a_peer(shared: Wire) -> None:
    """A peer cannot make a dataspace notify itself of what it was notified of: that would never end, and multiply."""
    wire, ds = shared, right_ds(shared)
    everything = freeze(encode(pattern_of(capture())))
    sequences = freeze(encode(pattern_of([capture()])))
    interest = Symbol("Observe"), everything, WireRef(YOURS, 0)
    wire.right.inject(
        turn((A, interest, 1), (A, (Symbol("Observe"), sequences, WireRef(YOURS, 0)), 2), (M, (SEQ, "x")))
    )
    wire.system.drain()
    wire.act(wire.right, lambda: send(ds, ["y"]))
    assert wire.right.session.reason is None


# ---------------------------------------------------------------------------------------------------- limits


def test_the_deepest_values_pass(shared: Wire) -> None:
    """A value as deep as values may be is observed, whole, by a peer; one level more would end its session."""
    wire, ds = shared, right_ds(shared)
    value: Any = True
    for _ in range(MAX_DEPTH):
        value = [value]
    seen: list[Seen] = []
    wire.act(wire.left, lambda: seen.append(watch(wire.remote, capture())))
    wire.act(wire.right, lambda: assert_(ds, value))
    assert freeze(seen[0][-1][1]) == freeze(value)
    wire.act(wire.left, lambda: assert_(wire.remote, value))
    assert wire.right.session.reason is wire.left.session.reason is None


def test_a_large_turn_goes_in_several_packets(wire: Wire, probe: Probe) -> None:
    """More events than fit into a packet are sent in several, in order."""
    wire.act(wire.left, lambda: send_all(wire.remote, range(10_000)))
    assert probe.messages == list(range(10_000))
    assert len(wire.left.sent) > 2
    wire.act(wire.left, lambda: send_all(wire.remote, [b"x" * 300_000] * 5))
    assert len(probe.messages) == 10_005


def test_what_is_too_large_is_not_sent(wire: Wire, probe: Probe, logs: list[MutableMapping[str, Any]]) -> None:
    """A value beyond the limits is left out, with a line in the log, and so is its retraction; the rest goes on."""
    handles: list[Any] = []

    def go() -> None:
        assert_(wire.remote, 1)
        handles.append(assert_(wire.remote, b"x" * 2_000_000))
        handles.append(assert_(wire.remote, "\ud800"))
        send(wire.remote, [[1]] * 70_000)
        assert_(wire.remote, 2)

    wire.act(wire.left, go)
    assert probe.values == [1, 2]
    assert [entry["log_level"] for entry in logs] == ["error"] * 3
    sent = len(wire.left.events)
    wire.act(wire.left, lambda: [handle.retract() for handle in handles])
    assert len(wire.left.events) == sent
    assert wire.left.session.outbox.unsent == set()
    assert wire.left.crossings == (0, 1, 0, 2)


def test_false_is_a_packet() -> None:
    """The empty packet is the value false."""
    assert read(FALSE) == Nop()
    assert write(Nop()) == FALSE


def test_facets_of_the_current_turn() -> None:
    """A session that is made in a turn lives in that turn's facet."""
    wire = Wire(dataspace)
    facets: list[Any] = []
    wire.act(wire.left, lambda: facets.append(current_facet()))
    assert wire.left.session.facet is facets[0]


def test_spawned_actors_share_a_session(wire: Wire, probe: Probe) -> None:
    """Many actors may use one remote reference; what one of them had asserted goes with it."""
    actors: list[Any] = []
    wire.act(wire.left, lambda: actors.extend([spawn(lambda i=i: assert_(wire.remote, i)) for i in range(3)]))
    assert sorted(probe.values) == [0, 1, 2]
    actors[1].root.enter(lambda: stop(actors[1].root))
    wire.system.drain()
    assert sorted(probe.values) == [0, 2]


# ---------------------------------------------------------------------------------------------------- anything


def with_refs(form: Frozen, wire_refs: Iterator[WireRef]) -> Frozen:
    """*form* with its local references replaced, as a peer may send it."""
    if type(form) is tuple:
        return tuple([with_refs(item, wire_refs) for item in form])
    return next(wire_refs) if type(form) is Ref else form


wire_refs = st.builds(WireRef, st.sampled_from([MINE, YOURS]), st.integers(0, 3))
bodies = st.builds(
    lambda value, refs: with_refs(freeze(value), itertools.cycle(refs)),
    values(max_leaves=4),
    st.lists(wire_refs, min_size=1),
)
interests = st.builds(
    lambda pattern, observer: (
        Symbol("Observe"),
        with_refs(freeze(encode(pattern)), itertools.repeat(observer)),
        observer,
    ),
    patterns(max_leaves=4),
    wire_refs,
)
handles = st.integers(0, 6)
events = st.one_of(
    st.tuples(st.just(A), bodies | interests, handles),
    st.tuples(st.just(R), handles),
    st.tuples(st.just(M), bodies | interests),
    st.tuples(st.just(SYNCED), wire_refs),
)
packets = st.builds(TurnPacket, st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 9]), events), max_size=6))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(packets, max_size=6))
def test_a_peer_may_send_anything(sent: list[TurnPacket]) -> None:
    """Whatever a peer sends, nothing crashes, others are served, and nothing is left when it has gone."""
    wire = Wire(dataspace)
    ds = right_ds(wire)
    seen: list[Seen] = []

    def bystander() -> None:
        seen.append(watch(ds, ["by", capture()]))
        prevent_inert_check()

    wire.act(wire.right, lambda: spawn(bystander))
    index = index_of(ds)
    values_before = index.statistics()
    for packet in sent:
        wire.right.inject(packet)
        wire.system.drain()
    wire.act(wire.right, lambda: spawn(lambda: send(ds, ["by", "still here"])))
    assert wire.right.facet.actor.error is None
    assert actor_of(ds).running
    if wire.right.facet.alive:
        assert ("!", "still here") in seen[0]
        wire.act(wire.right, stop)
    assert index.statistics() == values_before


def test_handlers_of_others_are_out_of_reach() -> None:
    """Who observes observers knows their references; none of the ways to have somebody tell them something else, which
    would crash their actors, leads to them: the answer to a sync, an ``Observe`` with another pattern.
    """
    wire = Wire(dataspace)
    ds = right_ds(wire)
    seen: list[Seen] = []

    def bystander() -> None:
        seen.append(watch(ds, ["by", capture(str)]))
        prevent_inert_check()

    wire.act(wire.right, lambda: spawn(bystander))
    everything = (Symbol("Observe"), (Symbol("bind"), (Symbol("_"),)), WireRef(MINE, 1))
    wire.right.inject(TurnPacket([(0, (A, everything, 1))]))
    wire.system.drain()
    (facts,) = [oid for oid in wire.right.session.membrane.exports if oid]
    theirs = WireRef(YOURS, facts)
    wire.right.inject(TurnPacket([(0, (SYNCED, theirs))]))
    wire.right.inject(TurnPacket([(0, (A, (Symbol("Observe"), (Symbol("_"),), theirs), 2))]))
    wire.right.inject(TurnPacket([(0, (A, (Symbol("Observe"), (Symbol("bind"), (Symbol("_"),)), theirs), 3))]))
    wire.right.inject(TurnPacket([(0, (M, 5)), (0, (M, (SEQ, "by", 6)))]))
    wire.right.inject(TurnPacket([(0, (R, 2)), (0, (R, 3))]))
    wire.act(wire.right, lambda: send(ds, ["by", "still here"]))
    assert seen == [[("!", "still here")]]
    wire.right.inject(TurnPacket([(0, (R, 1))]))
    wire.system.drain()
    assert wire.right.session.reason is None
    assert crossings(wire)[1] == EMPTY[1]


def test_the_events_of_a_turn_are_bounded() -> None:
    """By the session's own limit, be it above or below the usual one."""
    for most in (5000, 10):
        wire = Wire(dataspace, evolve(DEFAULT, events=most))
        wire.right.inject(TurnPacket([(0, (M, "x"))] * most))
        wire.system.drain()
        assert wire.right.session.reason is None
        wire.right.inject(TurnPacket([(0, (M, "x"))] * (most + 1)))
        wire.system.drain()
        assert f"a turn of {most + 1} events" in str(wire.right.session.reason)


class Party:
    """What one end does in a random history: things that it asserts, says, observes, and takes back."""

    def __init__(self, wire: Wire, end: End, targets: list[Ref]) -> None:
        self.wire = wire
        self.end = end
        self.targets = targets
        self.facets: list[Any] = []

    def do(self, what: int, which: int) -> None:
        """One step."""
        target = self.targets[which % len(self.targets)]
        if what == 0:
            self.wire.act(
                self.end, partial(hold, self.facets, target, ["x", self.targets[(which + 1) % len(self.targets)]])
            )
        elif what == 1:
            self.wire.act(self.end, partial(hold_by, self.facets, lambda: watch(target, ["x", capture()])))
        elif what == 2:
            self.wire.act(self.end, partial(hold_by, self.facets, lambda: assert_(target, ref(Probe()))))
        elif what == 3:
            self.wire.act(self.end, lambda: sync(target, lambda: None))
        elif what == 4:
            self.wire.act(self.end, lambda: send(target, ["x", which]))
        elif self.facets:
            self.wire.act(self.end, partial(stop, self.facets.pop(which % len(self.facets))))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.integers(0, 5)), max_size=25))
def test_histories_leave_nothing_behind(steps: list[tuple[bool, int, int]]) -> None:
    """After any history in which everything was taken back, both membranes are as they were at the beginning."""
    wire = Wire(dataspace)
    local = []
    wire.act(wire.left, lambda: local.append(dataspace()))
    parties = (Party(wire, wire.left, [wire.remote, local[0]]), Party(wire, wire.right, [right_ds(wire)]))
    for left, what, which in steps:
        parties[not left].do(what, which)
    for party in parties:
        while party.facets:
            party.do(9, 0)
    assert crossings(wire) == EMPTY
    assert wire.left.session.reason is wire.right.session.reason is None


# ---------------------------------------------------------------------------------------------- what has ended


@pytest.mark.parametrize("how", ["end", "crash", "fail", "forget"])
@pytest.mark.parametrize("blocked", [False, True])
def test_what_a_lost_peer_was_asked_fails(how: str, blocked: bool) -> None:
    """A sync that it has not answered, be it on its way or yet to be sent, and one that comes later; each once."""
    wire = Wire(lambda: ref(Entity()), evolve(DEFAULT, ahead=0))
    heard: list[Any] = []
    asking: list[Any] = []

    def boot() -> None:
        prevent_inert_check()
        asking.append(current_facet())

    wire.system.spawn(boot)
    wire.system.drain()
    facet = asking[0]

    def ask(n: int) -> None:
        sync(wire.remote, lambda: heard.append((n, "done")), lambda: heard.append((n, "ended")))

    facet.enter(lambda: ask(0))
    wire.system.drain()
    assert heard == [(0, "done")]
    wire.right.blocked, wire.left.blocked = True, blocked
    handles: list[Handle] = []
    facet.enter(lambda: handles.append(assert_(wire.remote, 1)))
    facet.enter(lambda: ask(1))
    facet.enter(lambda: ask(2))
    wire.system.drain()

    def crash() -> None:
        raise ValueError("on purpose")

    session = wire.left.session

    def forget() -> None:
        session.forget()
        stop(session.facet)

    acts: dict[str, Callable[[], object]] = {
        "end": lambda: session.end("by the test"),
        "crash": crash,
        "fail": lambda: session.cut("test", "by the test"),
        "forget": forget,
    }
    live = handles[0].live
    wire.act(wire.left, acts[how])
    assert live
    facet.enter(lambda: ask(3))
    wire.system.drain()
    assert heard == [(0, "done"), (1, "ended"), (2, "ended"), (3, "ended")]
    assert not handles[0].live
    assert facet.alive


def test_a_peer_learns_that_what_it_asked_has_ended() -> None:
    """Its sync to an entity of ours whose facet has stopped is answered, and not with success."""
    instances: list[Any] = []

    def publish() -> Ref:
        @react
        def short() -> None:
            prevent_inert_check()
            instances.append(dataspace())
            instances.append(ref(Entity()))

        instances.append(short)
        return cast(Ref, instances[1])

    wire = Wire(publish)
    heard: list[str] = []
    instances[2].enter(lambda: stop(instances[2]))
    wire.system.drain()
    wire.act(wire.left, lambda: sync(wire.remote, lambda: heard.append("done"), lambda: heard.append("ended")))
    assert heard == ["ended"]
