"""Usual packets: a broker's sessions with the kernels beside the same sessions without, event by event.

The same random packets come in the same random pieces; what goes to the peers, what the sessions count, what is
held, and the turns are the same.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest

from relay.protocol.codec import Msgpack, Preserves
from relay.protocol.limits import Limits
from relay.protocol.packets import MINE, YOURS, A, Event, M, Nop, Packet, R, S, TurnPacket, WireRef, write
from relay.session import membrane as membrane_module
from relay.session import packet_events
from relay.session import session as session_module
from relay.session.backlog import weight
from relay.session.session import Session
from relay.session.state import PART
from relay.session.usual_packets import do_usual, say_usual
from syndicate import Ref, current_facet, dataspace, native, prevent_inert_check
from syndicate.actors.system import System
from syndicate.actors.trace import Trace, Turned
from syndicate.actors.turn import current
from syndicate.values.pattern import encode
from syndicate.values.text import parse_pattern
from syndicate.values.value import Frozen, Symbol, freeze

SEEDS: Final = int(os.environ.get("SYNDICATE_SEEDS", "4"))
CODECS: Final[dict[str, type[Msgpack | Preserves]]] = {"msgpack": Msgpack, "preserves": Preserves}
KERNELS: Final = (
    *[(session_module, name) for name in ("do_usual", "say_usual", "understand_usual", "act_usual", "weight")],
    (membrane_module, "crossed"),
)
LABELS: Final = tuple(map(Symbol, ("a", "b", "c")))
LIMITS: Final = {
    "usual": Limits(),
    "tight": Limits(handles=12, events=6, frame=300, nodes=60, asserted=9000, debt=2048),
}


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others are looked at meanwhile is by the clock, which stands."""
    monkeypatch.setattr(packet_events, "perf_counter", lambda: 0.0)


class Still(System):
    """A system without a clock."""

    def now(self) -> float:
        return 0.0


class Place:
    """A dataspace and some sessions with it, without a socket; ``turns`` is what each turn did."""

    def __init__(self, codec: type[Msgpack | Preserves], peers: int, limits: Limits) -> None:
        self.system = Still()
        self.sessions: list[Session] = []
        self.codecs = [codec() for _ in range(peers)]
        self.turns: list[str] = []
        self.system.listen(self._seen)

        def boot() -> None:
            ds = dataspace()
            for number in range(peers):
                self.system.spawn(partial(self._peer, ds, number, limits), name=f"peer {number}", daemon=True)

        self.system.spawn(boot, daemon=True)
        self.system.drain()

    def _peer(self, ds: Ref, number: int, limits: Limits) -> None:
        prevent_inert_check()
        self.sessions.append(Session(current_facet(), lambda: None, name=f"peer {number}", publish=ds, limits=limits))

    def _seen(self, entry: Trace) -> None:
        if isinstance(entry.item, Turned):
            acts = [type(act).__name__ for act in entry.item.actions]
            self.turns.append(f"{entry.actor}: {' '.join(acts)}")

    def say(self, peer: int, packet: Packet) -> bytes:
        """The bytes by which a peer says it."""
        return self.codecs[peer].encode(write(packet))

    def feed(self, peer: int, data: bytes) -> None:
        """The peer's next bytes have come."""
        session = self.sessions[peer]
        session.debt += len(data)
        session.facet.enter(partial(session.feed, data))

    def state(self) -> list[Any]:
        """What goes to each peer next, and what there is of it."""
        self.system.drain()
        seen: list[Any] = [self.turns[:]]
        self.turns.clear()
        for session in self.sessions:
            crossings = [
                (number, crossing.count)
                for table in (session.membrane.exports, session.membrane.imports)
                for number, crossing in sorted(table.items())
            ]
            handles = [
                (number, assertion.size, weight(assertion.form), len(assertion.pins))
                for number, assertion in session.assertions.oldest(1000)
            ]
            seen.append(
                (
                    session.take(1 << 30),
                    session.statistics(),
                    session.reason,
                    session.partial or session.held,
                    crossings,
                    handles,
                )
            )
        return seen


@contextmanager
def specified() -> Iterator[None]:
    """Sessions alone."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in KERNELS:
            patch.setattr(module, name, native.specifications[name])
        yield


def value(rng: random.Random, *whose: int) -> Frozen:
    """Something small, now and then with a reference, or with what no kernel reads."""
    label, some = rng.choice(LABELS), rng.randrange(4)
    other = rng.choice([1, -2, 2**70, 1.5, True, "x" * rng.randrange(40), b"b", ["l", [1]], {"k": 1}, {1, 2}, "é"])
    if rng.random() < 0.05:
        return (label, some, WireRef(rng.choice(whose), rng.randrange(3)))
    return rng.choice([(label, some, freeze(other)), (label, some), freeze([some, "s"]), some, label])


INTERESTS: Final = tuple(
    encode(parse_pattern(text)) for text in ("<a $ _>", "<a 1 $>", "<b $>", "<c $ $>", "[$ _]", "$", "<Observe $ _>")
)


def interest(rng: random.Random, number: int) -> Frozen:
    """An ``Observe`` of the peer's."""
    return (Symbol("Observe"), freeze(rng.choice(INTERESTS)), WireRef(MINE, number))


def event(rng: random.Random, handles: list[int]) -> Event:
    """An event of a peer that has asserted *handles*; a few of them are wrong."""
    kind = rng.random()
    if kind < 0.45:
        return M, value(rng, YOURS)
    if kind < 0.75:
        handles.append(rng.choice(handles) if handles and rng.random() < 0.001 else len(handles) + 1)
        return A, interest(rng, rng.randrange(1, 6)) if rng.random() < 0.15 else value(rng, MINE, YOURS), handles[-1]
    if kind < 0.97:
        return R, rng.choice(handles[-8:]) if handles else 5
    return S, WireRef(MINE, 9)


def script(seed: int, codec: str, peers: int, count: int) -> Iterator[tuple[int, bytes]]:
    """Whose bytes come next, and which."""
    rng = random.Random(seed)
    place = Place(CODECS[codec], peers, LIMITS["usual"])
    handles: list[list[int]] = [[] for _ in range(peers)]
    left = [place.say(peer, Nop()) for peer in range(peers)]
    for _ in range(count):
        peer = rng.randrange(peers)
        for _ in range(rng.choice([1, 1, 1, 5, 40])):
            size = rng.choice([1, 1, 1, 2, 3, 8])
            events = [(0, event(rng, handles[peer])) for _ in range(size)]
            left[peer] += place.say(peer, TurnPacket(events) if rng.random() < 0.98 else Nop())
        cut = len(left[peer]) if rng.random() < 0.6 else rng.randrange(len(left[peer])) + 1
        yield peer, left[peer][:cut]
        left[peer] = left[peer][cut:]


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("codec", CODECS)
def test_kernels_do_what_a_session_does(codec: str, seed: int, limits: str) -> None:
    """Of random packets in random pieces, usual and others, until the end or until a limit is exceeded."""
    peers = 3
    ours = Place(CODECS[codec], peers, LIMITS[limits])
    with specified():
        theirs = Place(CODECS[codec], peers, LIMITS[limits])
    done = 0
    for peer, data in script(seed, codec, peers, 150):
        ours.feed(peer, data)
        before = ours.sessions[peer].packets_in
        seen = ours.state()
        done += ours.sessions[peer].packets_in - before
        with specified():
            theirs.feed(peer, data)
            assert theirs.state() == seen
    assert done > 50 or limits == "tight"


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("codec", CODECS)
def test_what_asserts_much_is_understood_alike(codec: str, seed: int, limits: str) -> None:
    """Packets of hundreds of assertions, and now and then something else among them, or a number that is in use."""
    rng = random.Random(seed)
    ours = Place(CODECS[codec], 2, LIMITS[limits])
    with specified():
        theirs = Place(CODECS[codec], 2, LIMITS[limits])
    for place in (ours, theirs):
        place.feed(1, place.say(1, TurnPacket([(0, (A, interest(random.Random(seed), 1), 1))])))
    number, handles = 0, list[int]()
    for _ in range(8):
        events: list[tuple[int, Event]] = []
        odd = rng.choice([0.0, 0.0, 0.01, 0.2])
        for _ in range(rng.choice([100, 129, 300, 1000])):
            number += 1
            if rng.random() < odd:
                events.append((rng.choice([0, 0, 7]), event(rng, [number, number - 1])))
            else:
                events.append((0, (A, (Symbol("a"), number % 5, number), 10 * number)))
                handles.append(10 * number)
        if rng.random() < 0.2:
            events.append((0, (A, "again", rng.choice(handles))))
        events += [(0, (R, handles.pop())) for _ in range(min(len(handles), rng.choice([0, 50])))]
        data = ours.say(0, TurnPacket(events))
        ours.feed(0, data)
        seen = ours.state()
        with specified():
            theirs.feed(0, data)
            assert theirs.state() == seen


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
@pytest.mark.parametrize("others", [[], ["<a $ _>"] * 70, ["<a 1 $>"] * 200, ["$"], ["<a 2 [$]>"], ["<a 0 [[1]]>"] * 9])
@pytest.mark.parametrize("codec", CODECS)
def test_what_may_reach_many_is_charged_alike(codec: str, others: list[str]) -> None:
    """Of a hundred packets at once each could reach hundreds by its constructor, and reaches one, some or all."""
    rng = random.Random(len(others))
    ours = Place(CODECS[codec], 2, LIMITS["usual"])
    with specified():
        theirs = Place(CODECS[codec], 2, LIMITS["usual"])
    patterns = [*[f"<a {number} $>" for number in range(256)], *others]
    observes = [(Symbol("Observe"), freeze(encode(parse_pattern(pattern)))) for pattern in patterns]
    wanted = [(0, (A, (*observe, WireRef(MINE, at)), at)) for at, observe in enumerate(observes)]
    done = 0
    for place in (ours, theirs):
        place.feed(1, place.say(1, TurnPacket(wanted)))
        place.feed(0, place.say(0, Nop()))
    with pytest.MonkeyPatch.context() as patch:

        def do(*arguments: Any) -> Any:
            nonlocal done
            outcome = do_usual(*arguments)
            done += outcome[3]
            return outcome

        patch.setattr(session_module, "do_usual", do)
        for step in range(6):
            said: list[Event] = [(M, (Symbol("a"), rng.randrange(4) if step % 2 else at, at)) for at in range(100)]
            if rng.random() < 0.3:
                said += [(A, (Symbol("a"), at, "there"), 1000 * step + at) for at in range(20)]
            packets = [ours.say(0, TurnPacket([(0, event)])) for event in said]
            data = b"".join(packets)
            ours.feed(0, data)
            seen = ours.state()
            with specified():
                theirs.feed(0, data)
                assert theirs.state() == seen
    assert done >= 500 or others, "what reaches one each is left to the session"


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
@pytest.mark.parametrize("codec", CODECS)
def test_usual_packets_are_done_by_kernels(codec: str) -> None:
    """Nearly all of what a busy peer says goes the short way."""
    place = Place(CODECS[codec], 2, LIMITS["usual"])
    counts = {"done": 0, "said": 0}
    with pytest.MonkeyPatch.context() as patch:

        def do(*arguments: Any) -> Any:
            done = do_usual(*arguments)
            counts["done"] += done[2]
            return done

        def say(*arguments: Any) -> Any:
            said = say_usual(*arguments)
            counts["said"] += said is not None
            return said

        patch.setattr(session_module, "do_usual", do)
        patch.setattr(session_module, "say_usual", say)
        a_b = encode(parse_pattern("<a $>"))
        place.feed(0, place.say(0, Nop()))
        place.feed(1, place.say(1, TurnPacket([(0, (A, (Symbol("Observe"), freeze(a_b), WireRef(MINE, 1)), 1))])))
        for number in range(100):
            packets = [(A, (Symbol("a"), number), number + 2), (M, (Symbol("a"), "m")), (R, number + 2)]
            for said in packets:
                place.feed(0, place.say(0, TurnPacket([(0, said)])))
                place.state()
    assert counts["done"] > 290
    assert counts["said"] > 290


@pytest.mark.skipif(not native.library, reason="without kernels a session reads all itself")
@pytest.mark.parametrize("asserting", [100, 129, 1000])
def test_what_asserts_much_is_not_read_twice(asserting: int) -> None:
    """A kernel that reads a packet finds where it is cut.  What asserts more than it does it leaves unread, whatever
    else that says first: the session reads it in parts.
    """
    place = Place(Msgpack, 1, Limits())
    place.feed(0, place.say(0, TurnPacket([(0, (M, "first"))])))
    place.system.drain()
    session = place.sessions[0]
    said: list[tuple[int, Event]] = [(0, (M, freeze(["says", [["a"], {1: "b"}, 2.5, b"c"]])))] * 20
    said += [(0, (A, freeze(["has", number]), number)) for number in range(asserting)]
    packet = place.say(0, TurnPacket(said))
    seen: list[bool] = []

    def ask(data: bytes) -> None:
        tables = session.codec.tables if session.codec else None
        assert tables is not None
        arguments = session.facet, session.membrane, session.assertions, tables, data, 0, 1024, 64, 4096
        seen.append(do_usual(current("ask"), *arguments)[1])

    for size in (len(packet) - 1, len(packet) // 2, 40):
        session.facet.enter(partial(ask, packet[:size]))
    place.system.drain()
    unread = asserting > PART
    assert seen == [not unread, asserting < 1000, True]
