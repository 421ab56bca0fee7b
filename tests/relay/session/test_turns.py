"""A turn is one atomic patch, wherever it is seen: in one dataspace, in nested ones, and across the relay.

Random programs of several actors, turn by turn, beside a model that knows nothing but the rule: of a turn come first
the assertions and the messages, in order, and then the retractions.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import trio
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.client import Encoding, connect
from relay.nested import Inbound, Outbound, nested
from relay.protocol.codec import Codec, Msgpack, Preserves
from relay.protocol.codec.preserves_text import PreservesText
from relay.protocol.limits import DEFAULT
from relay.protocol.packets import MINE, A, M, R, TurnPacket, WireRef
from relay.protocol.packets import S as SYNCED
from relay.server.broker import Broker
from syndicate import (
    ANY,
    Entity,
    Ref,
    assert_,
    capture,
    current_facet,
    dataspace,
    on_asserted,
    open_system,
    prevent_inert_check,
    query_set,
    ref,
    send,
    spawn,
    sync,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import Handle
from syndicate.testing import Seen, settled, watch
from syndicate.values.value import TRUE
from tests.relay.wire import End, Wire
from tests.strategies import P, examples

Step: TypeAlias = tuple[int, list[tuple[str, int, int]]]

ACTORS = 2
steps = st.tuples(
    st.integers(0, ACTORS - 1),
    st.lists(
        st.tuples(
            st.sampled_from(["assert", "assert", "retract", "retract", "replace", "send", "sync"]),
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        max_size=6,
    ),
)

COARSE: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "all": lambda n: (n,),
    "none": lambda n: (),
    "half": lambda n: (n // 2,),
}
"""What observers capture of ``[n // 2, n]``: all that differs, nothing, and something."""


class Model:
    """A bag of values, and what its observers hear of one turn."""

    def __init__(self) -> None:
        self.there: Counter[int] = Counter()

    def turn(self, added: list[tuple[str, int]], gone: list[int]) -> dict[str, list[tuple[str, Any]]]:
        heard: dict[str, list[tuple[str, Any]]] = {name: [] for name in COARSE}
        for mark, n in [*added, *(("-", n) for n in gone)]:
            before = {name: self.seen(of) for name, of in COARSE.items()}
            if mark != "!":
                self.there[n] += 1 if mark == "+" else -1
            for name, of in COARSE.items():
                if mark == "!" or (of(n) in self.seen(of)) != (of(n) in before[name]):
                    heard[name].append((mark, of(n)))
        return heard

    def seen(self, of: Callable[[int], tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        return {of(n) for n, count in self.there.items() if count}


class Party:
    """An actor that takes part in a program."""

    def __init__(self) -> None:
        self.handles: list[tuple[Handle, int]] = []
        self.answered: list[int] = []
        self.asked = 0

    def act(self, ds: Ref, wrap: Callable[[Any], Any], step: Step) -> tuple[list[tuple[str, int]], list[int]]:
        added: list[tuple[str, int]] = []
        gone: list[int] = []
        for what, n, which in step[1]:
            value = wrap([n // 2, n])
            if what == "assert":
                self.handles.append((assert_(ds, value), n))
                added.append(("+", n))
            elif what == "send":
                send(ds, value)
                added.append(("!", n))
            elif what == "sync":
                sync(ds, partial(self.answered.append, self.asked))
                self.asked += 1
            elif self.handles:
                place = which % len(self.handles)
                handle, old = self.handles[place]
                if what == "retract":
                    del self.handles[place]
                    handle.retract()
                    gone.append(old)
                elif n != old:
                    replacement = handle.replace(value)
                    assert replacement is not None
                    self.handles[place] = replacement, n
                    added.append(("+", n))
                    gone.append(old)
        return added, gone


class Stage:
    """Where parties act in one dataspace, and observers look at one: the same, or what shows it."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.seen: dict[str, Seen] = {}
        self.least: list[int] = []
        self.parties = [Party() for _ in range(ACTORS)]
        self.facets: list[Facet] = []
        self.model = Model()

    def observe(self, ds: Ref, wrap: Callable[[Any], Any]) -> None:
        patterns = {"all": [ANY, capture()], "none": [ANY, ANY], "half": [capture(), ANY]}
        for name, pattern in patterns.items():
            self.seen[name] = watch(ds, wrap(pattern))

    def perform(self, ds: Ref, wrap: Callable[[Any], Any], program: list[Step]) -> None:
        """Run a program, comparing after each turn."""
        for step in program:
            party, facet = self.parties[step[0]], self.facets[step[0]]
            for seen in self.seen.values():
                seen.clear()
            done: list[Any] = []
            facet.enter(lambda party=party, step=step, done=done: done.append(party.act(ds, wrap, step)))  # type: ignore[misc]
            self.system.drain()
            expected = self.model.turn(*done[0])
            for name, seen in self.seen.items():
                assert [(mark, tuple(captures)) for mark, *captures in seen] == expected[name], name
            assert all(party.answered == list(range(party.asked)) for party in self.parties)


def plain(value: Any) -> Any:
    """As it is."""
    return value


def party_facets(stage: Stage) -> None:
    """An actor for each party of a program."""

    def boot() -> None:
        prevent_inert_check()
        stage.facets.append(current_facet())

    for _ in range(ACTORS):
        spawn(boot)


@pytest.mark.parametrize("place", ["local", "from inside", "from outside", "two levels"])
@given(st.lists(steps, max_size=12))
def test_a_turn_is_one_patch_here(place: str, program: list[Step]) -> None:
    """In one dataspace, and through nested ones, in both directions."""
    instances: list[Any] = []

    def boot() -> None:
        prevent_inert_check()
        ds = dataspace()
        inner = nested(ds)
        innermost = nested(inner)
        instances.extend([ds, inner, innermost])

    system = settled(boot)
    stage = Stage(system)
    ds, inner, innermost = instances
    look, looked, act, acted = {
        "local": (ds, plain, ds, plain),
        "from inside": (ds, plain, inner, Outbound),
        "from outside": (inner, Inbound, ds, plain),
        "two levels": (inner, Inbound, innermost, lambda value: Outbound(Outbound(value))),
    }[place]
    system.spawn(lambda: stage.observe(look, looked))
    system.spawn(lambda: party_facets(stage))
    system.drain()
    stage.perform(act, acted, program)


class Between:
    """A broker with two peers: parties act at one of them, observers look at the other."""

    def __init__(self, codec: Callable[..., Codec]) -> None:
        self.ends = [End(name, DEFAULT, codec) for name in ("acting", "broker 1", "looking", "broker 2")]
        self.acting, first, self.looking, self.telling = self.ends
        for one, other in ((self.acting, first), (self.looking, self.telling)):
            one.peer, other.peer = other, one
        self.system = settled(self._boot)
        self.stage = Stage(self.system)
        self.there, self.here = (end.session.membrane.expect(0) for end in (self.acting, self.looking))
        self.system.spawn(lambda: self.stage.observe(self.here, plain))
        self.system.spawn(lambda: party_facets(self.stage))
        self.system.drain()

    def _boot(self) -> None:
        prevent_inert_check()
        ds = dataspace()
        for end in self.ends:
            if end.name.startswith("broker"):
                end.published = ds
            spawn(end.boot, name=end.name)


CODECS = [Msgpack, Preserves, PreservesText]


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=examples(40))
@given(program=st.lists(steps, max_size=12))
def test_a_turn_is_one_patch_at_a_peer(codec: Callable[..., Codec], program: list[Step]) -> None:
    """From one peer to another, by way of a broker: what is heard of each turn is what is heard of it here."""
    between = Between(codec)
    between.stage.perform(between.there, plain, program)
    for end in between.ends:
        assert end.session.reason is None
        for packet in end.sent:
            kinds = [event[0] for _, event in packet.entries] if isinstance(packet, TurnPacket) else []
            assert R not in kinds or not {A, M} & set(kinds[kinds.index(R) :]), "a packet is a patch"


@pytest.mark.parametrize("held", ["acting", "broker 2"])
@settings(max_examples=examples(60))
@given(program=st.lists(steps, min_size=2, max_size=12))
def test_turns_that_arrive_together_stay_turns(held: str, program: list[Step]) -> None:
    """However many turns a peer gets to read at once, they are heard one after the other."""
    between = Between(Msgpack)
    stage = between.stage
    end = next(end for end in between.ends if end.name == held)
    end.blocked = True
    for seen in stage.seen.values():
        seen.clear()
    expected: dict[str, list[Any]] = {name: [] for name in COARSE}
    for step in program:
        done: list[Any] = []
        party, facet = stage.parties[step[0]], stage.facets[step[0]]
        facet.enter(lambda party=party, step=step, done=done: done.append(party.act(between.there, plain, step)))  # type: ignore[misc]
        stage.system.drain()
        for name, heard in stage.model.turn(*done[0]).items():
            expected[name] += heard
    end.blocked = False
    end.wake()
    stage.system.drain()
    for name, seen in stage.seen.items():
        assert [(mark, tuple(captures)) for mark, *captures in seen] == expected[name], name
    assert all(party.answered == list(range(party.asked)) for party in stage.parties)


@pytest.mark.parametrize("encoding", ["msgpack", "preserves", "text"])
@pytest.mark.parametrize("where", ["tcp", "unix"])
async def test_a_turn_is_one_patch_at_a_peer_of_a_real_broker(where: str, encoding: Encoding, tmp_path: Path) -> None:
    """Over sockets, however many turns are on their way at once: each is heard as it is heard here, in order."""
    draw = random.Random(f"{where} {encoding}")
    async with open_system() as system:
        stage = Stage(system)
        remotes: dict[str, Ref] = {}
        arrived = trio.Event()

        def begin(addresses: list[str]) -> None:
            for name in ("acting", "looking"):
                spawn(partial(join, addresses[0], name), name=name)

        def join(address: str, name: str) -> None:
            @connect(address, encoding=encoding)
            def connected(ds: Ref) -> None:
                remotes[name] = ds
                if name == "looking":
                    stage.observe(ds, plain)
                else:
                    party_facets(stage)
                sync(ds, lambda: arrived.set() if len(remotes) == 2 else None)

        def take(party: Party, step: Step, done: list[Any]) -> None:
            done.append(party.act(remotes["acting"], plain, step))

        async def reached(name: str) -> None:
            done = trio.Event()
            remotes[name].facet.enter(lambda: sync(remotes[name], done.set))
            await done.wait()

        system.spawn(Broker(["tcp://127.0.0.1:0" if where == "tcp" else f"unix://{tmp_path}/socket"], opened=begin))
        await arrived.wait()
        await reached("looking")
        await system.settle()
        for _ in range(60):
            expected: dict[str, list[Any]] = {name: [] for name in COARSE}
            for seen in stage.seen.values():
                seen.clear()
            for _ in range(draw.choice([1, 1, 2, 5, 20])):
                number, done = draw.randrange(ACTORS), list[Any]()
                party, facet = stage.parties[number], stage.facets[number]
                step = number, [random_act(draw) for _ in range(draw.choice([0, 1, 3, 8]))]
                facet.enter(partial(take, party, step, done))
                while not done:
                    await trio.lowlevel.checkpoint()
                for name, heard in stage.model.turn(*done[0]).items():
                    expected[name] += heard
            await reached("acting")
            await reached("looking")
            await system.settle()
            for name, seen in stage.seen.items():
                assert [(mark, tuple(captures)) for mark, *captures in seen] == expected[name], name
        await reached("acting")
        assert all(party.answered == list(range(party.asked)) for party in stage.parties)


def random_act(draw: random.Random) -> tuple[str, int, int]:
    """One act of a step."""
    what = draw.choice(["assert", "assert", "retract", "retract", "replace", "send", "sync"])
    return what, draw.randrange(4), draw.randrange(4)


# ---------------------------------------------------------------------------------------------- slow peers


def test_what_a_slow_peer_gets_of_several_turns_is_no_single_one() -> None:
    """A message does not overtake what an earlier turn had retracted, when both have waited."""
    wire, seen = slow_wire()
    locks: list[Handle] = []
    wire.act(wire.left, lambda: locks.append(assert_(wire.remote, P("lock"))))
    wire.left.blocked = True
    wire.act(wire.left, lambda: send(wire.remote, P("x" * 100)))  # so that the rest has to wait as state
    wire.act(wire.left, lambda: locks.pop().retract())

    def unlock() -> None:
        send(wire.remote, P("unlocked"))
        assert_(wire.remote, P("next"))

    wire.act(wire.left, unlock)
    assert wire.left.session.backlog.entries
    wire.left.blocked = False
    wire.left.wake()
    wire.system.drain()
    assert seen == [("+", "lock"), ("!", "x" * 100), ("-", "lock"), ("!", "unlocked"), ("+", "next")]


def slow_wire() -> tuple[Wire, Seen]:
    """A wire to a dataspace, whose left end keeps as state what the other does not take."""
    seen: list[Seen] = []

    def publish() -> Ref:
        ds = dataspace()
        spawn(lambda: seen.append(watch(ds, P(capture()))))
        return ds

    return Wire(publish, evolve(DEFAULT, ahead=0)), seen[0]


# ---------------------------------------------------------------------------------------------- other programs


class Recorder(Entity):
    """What an observer hears, by handle."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.there: dict[Any, Any] = {}

    def assert_(self, value: Any, handle: Any) -> None:
        self.there[handle] = value
        self.heard.append(("+", value))

    def retract(self, handle: Any) -> None:
        self.heard.append(("-", self.there.pop(handle)))

    def message(self, value: Any) -> None:
        self.heard.append(("!", value))


@pytest.fixture
def recorder() -> Recorder:
    """What the right end publishes."""
    return Recorder()


@pytest.fixture
def wire(recorder: Recorder) -> Wire:
    """A wire whose left end sends what the test says."""
    return Wire(lambda: ref(recorder))


@pytest.mark.parametrize(
    ("events", "heard"),
    [
        ([(R, 1), (A, "b", 2)], [("+", "b"), ("-", "a")]),
        ([(R, 1), (M, "m"), (A, "b", 2)], [("!", "m"), ("+", "b"), ("-", "a")]),
        ([(R, 1), (A, "a", 2)], []),
        ([(R, 1), (A, "a", 1)], []),
        ([(R, 1), (A, "a", 2), (R, 2)], [("-", "a")]),
        ([(R, 1), (A, "a", 2), (R, 2), (A, "a", 3)], []),
        ([(A, "b", 2), (R, 2), (A, "b", 3), (R, 1)], [("+", "b"), ("-", "a")]),
        ([(A, "b", 2), (R, 2)], [("+", "b"), ("-", "b")]),
        ([(R, 1), (R, 99), (A, "c", 2), (A, "a", 3)], [("+", "c")]),
    ],
)
def test_a_packet_of_another_program_is_a_patch(
    wire: Wire, recorder: Recorder, events: list[Any], heard: list[Any]
) -> None:
    """Those that send a retraction first are put in order; what comes back in the same packet has never gone."""
    wire.right.inject(TurnPacket([(0, (A, "a", 1))]))
    wire.system.drain()
    recorder.heard.clear()
    wire.right.inject(TurnPacket([(0, event) for event in events]))
    wire.system.drain()
    assert recorder.heard == heard
    assert len(wire.right.session.assertions) == len(recorder.there)
    for number in range(1, 4):
        wire.right.inject(TurnPacket([(0, (R, number))]))
    wire.system.drain()
    assert recorder.there == {}
    assert wire.right.crossings == (1, 0, 0, 0)


def test_an_answer_comes_after_the_retractions_of_its_packet(wire: Wire, recorder: Recorder) -> None:
    """Where another program asks between them, too."""
    wire.right.inject(TurnPacket([(0, (A, "a", 1))]))
    wire.system.drain()
    recorder.heard.clear()
    mine = WireRef(MINE, 7)
    wire.right.inject(TurnPacket([(0, (R, 1)), (0, (SYNCED, mine)), (0, (A, "b", 2))]))
    wire.system.drain()
    replies = [event for event in wire.right.events if event[0] is M]
    assert replies == [(M, TRUE)]
    assert recorder.heard == [("+", "b"), ("-", "a")]


# ---------------------------------------------------------------------------------------------- who follows it


def test_fields_and_facets_never_see_a_gap() -> None:
    """A query that lost its last value for a moment would run what reads it with nothing there."""
    looks: list[tuple[int, ...]] = []
    instances: list[Any] = []

    def boot() -> None:
        prevent_inert_check()
        ds = dataspace()
        handle = assert_(ds, P(1))
        instances.extend([ds, handle, current_facet()])

        def look() -> None:
            present = query_set(ds, P(capture()), on_add=lambda x: looks.append(tuple(sorted(present.value))))
            on_asserted(ds, P(ANY))(lambda: looks.append(()))

        spawn(look)

    system = settled(boot)
    ds, handle, facet = instances
    assert looks == [(1,), ()]

    def change() -> None:
        handle.retract()
        send(ds, P("m"))
        assert_(ds, P(2))

    facet.enter(change)
    system.drain()
    assert looks == [(1,), (), (1, 2)], "the interest in any value was not asserted again"
