"""What a packet can cause is charged before it is done: counted in events, turns and bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.capabilities import caveats
from relay.capabilities.caveats import Attenuated, Confined, _copies, attenuate
from relay.capabilities.gatekeeper import Gatekeeper
from relay.capabilities.sturdy import DEFAULT as PUBLIC
from relay.capabilities.sturdy import parse_ref
from relay.protocol.codec import Codec, Msgpack, Preserves, PreservesText
from relay.protocol.limits import DEFAULT, Limits
from relay.protocol.packets import MINE, YOURS, A, M, Nop, Packet, R, TurnPacket, WireRef, write
from relay.protocol.packets import S as SYNCED
from relay.server.durable import durable
from relay.server.journal import Journal
from relay.session import packet_events
from relay.session.fan_out import ENOUGH, Reach
from relay.session.session import Session
from syndicate import ANY, Entity, Ref, Symbol, capture, dataspace, on_asserted, on_retracted, prevent_inert_check, ref
from syndicate.actors.actor import Actor
from syndicate.actors.keep import FORGET, KEEP, VOLATILE
from syndicate.actors.turn import Turn as LocalTurn
from syndicate.actors.turn import current
from syndicate.actors.verbs import sync
from syndicate.errors import NotAValue
from syndicate.index.event import ASSERT, MESSAGE
from syndicate.index.index import Index
from syndicate.index.interest import interest
from syndicate.native import specifications
from syndicate.simulation.disk import SimulatedDisk
from syndicate.testing import settled
from syndicate.values.pattern import encode, pattern_of
from syndicate.values.value import SEQ, TRUE, freeze
from tests.relay.session.test_link import goes_on
from tests.relay.wire import Wire

CODECS: list[Callable[[], Codec]] = [Msgpack, Preserves, PreservesText]
BIG = "x" * 900_000


def observe(pattern: Any, oid: int) -> Any:
    """An ``Observe`` of the peer's."""
    return Symbol("Observe"), freeze(encode(pattern_of(pattern))), WireRef(MINE, oid)


def turn(*events: Any) -> TurnPacket:
    """A packet for what is published."""
    return TurnPacket([(0, event) for event in events])


def peak(fn: Callable[[], object]) -> int:
    """The bytes that *fn* takes at most, at one time."""
    tracemalloc.start()
    try:
        fn()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Of each turn of any actor, how many events it was given, and how many it has caused."""
    counts: list[tuple[int, int]] = []
    take = Actor.take

    def counting(self: Actor, turn: LocalTurn, events: list[Any], *rest: Any) -> bool:
        before = len(turn.queue)
        goes_on = take(self, turn, events, *rest)
        caused = [event for _, batch in list(turn.queue)[before:] for event in batch]
        counts.append((weigh(events), weigh(caused)))
        return goes_on

    def weigh(events: list[Any]) -> int:
        return sum(len(event[1]) if type(event[1]) is tuple else 1 for event in events)

    monkeypatch.setattr(Actor, "take", counting)
    for kernel in ("take_turns", "take_all"):  # the first calls it, the second is in its place
        monkeypatch.setattr(f"syndicate.actors.system.{kernel}", specifications[kernel])
    return counts


# ---------------------------------------------------------------------------------------------------- encoding


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "value", [BIG, BIG.encode(), freeze([[]] * 5000), freeze([["a", 1, [True, 0.5]]] * 1000)], ids=["s", "b", "n", "m"]
)
def test_an_encoder_stops_when_it_is_too_much(codec: Callable[[], Codec], value: Any) -> None:
    """What it takes is bounded by the limits, and not by what it is given."""
    writer = codec()
    entries = [(SEQ, 5, (M, (SEQ, value)))] * 1000
    writer.encode((SEQ, *entries[:1]))

    def encode_all() -> None:
        with pytest.raises(NotAValue):
            writer.encode((SEQ, *entries))

    assert peak(encode_all) < 64 * DEFAULT.frame


@pytest.mark.parametrize(("value", "alike"), [(BIG, True), (BIG, False), (freeze([[]] * 5000), True)])
def test_a_large_message_to_many_observers_of_one_peer(alike: bool, value: Any) -> None:
    """It waits as what it is, once, and a peer for which too much would have to be sent is cut off."""
    wire = Wire(dataspace)
    wire.right.blocked = True
    patterns = [capture() if alike else [capture() if i >> n & 1 else ANY for n in range(10)] for i in range(300)]
    if not alike:
        value = (SEQ, *[value] * 10)
    wire.right.inject(turn(*[(A, observe(pattern, i), i) for i, pattern in enumerate(patterns)]))
    wire.system.drain()

    def send() -> None:
        wire.act(wire.right, lambda: message(wire.right.published, value))

    assert peak(send) < 2 * DEFAULT.outbox
    assert wire.right.session.exceeded == (
        "slow-consumer" if value is BIG or not alike else wire.right.session.exceeded
    )


def message(target: Ref | None, form: Any) -> None:
    """Send a frozen form."""
    assert target is not None
    current("test").enqueue(target.facet.actor, (MESSAGE, target, form, None))


# ---------------------------------------------------------------------------------------------------- reach

SMALL = st.sampled_from([0, 1, "a", ["a", 0], ["a", 1], ["a", ["b", 1]], ["b", 1], [1]])
PLACE = st.sampled_from([ANY, capture(), capture(int), 0, 1, "a", "b", ["b", capture()]])
PATTERNS = st.one_of(PLACE, st.lists(PLACE, min_size=1, max_size=2))


@given(
    st.lists(PATTERNS, max_size=8),
    st.lists(SMALL, max_size=6),
    st.lists(st.tuples(st.booleans(), PATTERNS | SMALL), max_size=8),
)
def test_no_event_causes_more_than_it_was_charged(patterns: list[Any], there: list[Any], events: list[Any]) -> None:
    """Whatever is there, and whatever came before it in its turn; however precisely it was charged."""
    causes = [0]

    def tell(kind: int, handler: Any, captures: Any, values: Any, notice: Any) -> None:
        causes[0] += handler.audience

    index = Index(tell)

    class Place(Entity):
        raw = True

    entity = Place()
    entity.index = index  # type: ignore[attr-defined]
    target = Ref.unbound(entity)
    observers = iter(range(1000))

    def done(kind: int, form: Any) -> None:
        if kind == MESSAGE:
            index.send(form)
        elif index.add(form) and type(form) is tuple and len(form) == 4 and type(form[3]) is Ref:
            causes[0] += len(index.observe(form[1], form[2], form[3]))

    for pattern in patterns:
        done(ASSERT, interest(pattern, Ref.unbound(next(observers))))
    for value in there:
        done(ASSERT, freeze(value))
    acts = []
    for assertion, value in events:
        try:
            form = freeze(value)
        except NotAValue:
            form = interest(value, Ref.unbound(next(observers)))
        acts.append((ASSERT if assertion else MESSAGE, target, form, None))
    for enough in (10**9, 0):
        reach = Reach(enough)
        reach.fitting(acts)
        if not enough:
            for _, _, form, _ in acts:
                if not (type(form) is tuple and len(form) == 4):
                    before, causes[0] = causes[0], 0
                    index.send(form)
                    assert index.audience(form) >= causes[0]
                    causes[0] = before
    reach = Reach(10**9)
    assert reach.fitting(acts) == len(acts)
    causes[0] = 0
    for kind, _, form, _ in acts:
        done(kind, form)
    assert causes[0] <= reach.total


def observers_of_observers(count: int) -> list[TurnPacket]:
    """Each is notified of all, and all of each."""
    return [turn(*[(A, observe(capture(pattern_of_observe()), i), i) for i in range(count)])]


def pattern_of_observe() -> Any:
    """What any ``Observe`` matches."""
    from syndicate import Record

    return Record("Observe", [capture(), ANY])


def different(i: int) -> Any:
    """A pattern for a list of twelve, each another."""
    return [capture() if i >> n & 1 else ANY for n in range(12)]


def messages(count: int) -> list[TurnPacket]:
    """Many observers with patterns of their own, and many messages in one packet."""
    observers = turn(*[(A, observe(different(i), i), i) for i in range(count)])
    return [observers, turn(*[(M, freeze([0] * 12))] * count)]


def assertions(count: int) -> list[TurnPacket]:
    """The same with assertions."""
    observers = turn(*[(A, observe(different(i), i), i) for i in range(count)])
    return [observers, turn(*[(A, freeze([j, *[0] * 11]), 5000 + j) for j in range(count)])]


def retractions(count: int) -> list[TurnPacket]:
    """And with all of them taken back, the observers first."""
    numbers = [*range(count), *range(5000, 5000 + count)]
    return [*assertions(count), turn(*[(R, number) for number in numbers])]


UNWRAP = '<rewrite <arr [<lit "x"> <bind <_>>]> <ref 0>>'


def wrapped(packet: TurnPacket) -> TurnPacket:
    """The same, for who has a reference that unwraps it."""
    return turn(
        *[event if event[0] is R else (event[0], (SEQ, "x", event[1]), *event[2:]) for _, event in packet.entries]
    )


@pytest.mark.parametrize("narrowed", [False, True])
@pytest.mark.parametrize("attack", [observers_of_observers, messages, assertions, retractions])
def test_no_turn_is_long(
    attack: Callable[[int], list[TurnPacket]], narrowed: bool, turns: list[tuple[int, int]]
) -> None:
    """However much a packet causes, it is done in pieces, and others have their turns between; so it is in the end.
    What it causes is what becomes of it behind the caveats that the peer may have added itself.
    """
    wire = Wire(lambda: attenuate(dataspace(), UNWRAP) if narrowed else dataspace(), Limits(handles=10**6))
    wire.right.blocked = True
    packets = [*map(wrapped, attack(200))] if narrowed else attack(200)
    turns.clear()
    for packet in packets:
        wire.right.inject(packet)
    wire.system.drain()
    assert sum(caused for _, caused in turns) > 20_000, "it is an attack"
    assert max(map(max, turns)) <= ENOUGH + 2500
    wire.act(wire.right, lambda: wire.right.session.end("the test ends"))
    assert not wire.right.facet.alive
    assert max(map(max, turns)) <= ENOUGH + 2500


MANY = " ".join(["<arr []>"] * 300)
GROWING = [
    f"<rewrite <_> <arr [{MANY}]>>",
    f"<rewrite <_> <rec many [<rec many []> {MANY}]>>",
    f"<rewrite <_> <dict {{a: <arr [{MANY}]> b: <dict {{}}>}}>>",
    f"<or [<rewrite String <lit 1>> <rewrite <_> <arr [{MANY}]>>]>",
    f"<rewrite <bind <_>> <arr [{'<ref 0>' * 60}]>>",
]


@pytest.mark.parametrize("caveats", [*[[caveat] for caveat in GROWING], [GROWING[0], GROWING[4]], [GROWING[4]] * 2])
def test_what_caveats_make_is_held_on_account_of_who_has_them(caveats: list[str]) -> None:
    """Whoever narrows a reference has us make values of its own, as large as it likes, of small ones."""
    wire = Wire(lambda: attenuate(dataspace(), *caveats))
    session = wire.right.session

    def say() -> None:
        wire.right.inject(turn(*[(A, number, number) for number in range(500)]))
        wire.system.drain()

    taken = peak(say)
    assert len(session.assertions) == 500
    assert taken < 3 * session.assertions.size


@pytest.mark.parametrize("caveats", [GROWING[:1], [f"<rewrite <_> <lit [{'0 ' * 1300}]>>"], [GROWING[4]] * 2])
def test_what_caveats_make_takes_time_on_account_of_who_has_them(
    caveats: list[str], turns: list[tuple[int, int]]
) -> None:
    """The larger what they make of a message, the fewer are made in a turn."""
    wire = Wire(lambda: attenuate(dataspace(), *caveats))
    turns.clear()
    wire.right.inject(turn(*[(M, number) for number in range(500)]))
    wire.system.drain()
    assert max(map(max, turns)) <= 100


def test_a_neighbour_does_not_wait_for_it(turns: list[tuple[int, int]]) -> None:
    """What comes while an attack is done is done between its pieces."""
    wire = Wire(dataspace, Limits(handles=10**6))
    for packet in messages(200):
        wire.right.inject(packet)
    seen: list[int] = []

    class Answer(Entity):
        def message(self, value: Any) -> None:
            seen.append(len(turns))

    turns.clear()
    wire.left.facet.enter(lambda: LocalTurnSync(wire.right.published, ref(Answer())))
    wire.system.drain()
    before = [max(each) for each in turns[: seen[0]]]
    assert sum(before) < sum(max(each) for each in turns) / 2


@pytest.mark.parametrize("before", [0, 2])
def test_what_has_to_be_answered_is_done_in_pieces(before: int, turns: list[tuple[int, int]]) -> None:
    """No turn has many of a packet's syncs, nor of their answers; all are answered, behind what came before them."""
    wire = Wire(dataspace)
    heard = [(A, observe(["v", capture()], 1), 1), (A, (SEQ, "v", 1), 2)][:before]
    turns.clear()
    wire.right.inject(turn(*heard, *[(SYNCED, WireRef(MINE, 7))] * (4096 - len(heard))))
    wire.system.drain()
    assert max(map(max, turns)) <= ENOUGH // 32
    events = wire.right.events
    assert events[len(events) - 4096 + len(heard) :] == [(M, TRUE)] * (4096 - len(heard))
    assert (A, (SEQ, 1), 1) in events or not heard


PINGS = [Nop()] * 2000
EMPTY = [TurnPacket([])] * 2000
GUESS = Symbol("resolve"), freeze(parse_ref(PUBLIC.replace("syndicate", "other"))), WireRef(MINE, 0)
GUESSES = [turn(*[(A, GUESS, number) for number in range(50)])]


@pytest.mark.parametrize("packets", [PINGS, EMPTY, GUESSES], ids=["pings", "empty turns", "guesses"])
def test_what_tells_nobody_is_done_in_pieces_as_well(packets: list[Packet], turns: list[tuple[int, int]]) -> None:
    """A packet costs something though it has no event, and so does a signature: between them others have turns."""
    wire = Wire(lambda: ref(Gatekeeper({"syndicate": (b"", dataspace())})), Limits(resolves=100))
    codec = Msgpack()
    wire.right.blocked = True
    turns.clear()
    wire.right.hear(b"".join(codec.encode(write(packet)) for packet in packets))
    wire.system.drain()
    assert goes_on(wire.right.session)
    assert wire.right.session.packets_in == len(packets)
    assert len(turns) >= 25


def LocalTurnSync(target: Ref | None, peer: Ref) -> None:  # noqa: N802 - stands for a verb
    """A sync, in the current turn."""
    assert target is not None
    current("test").sync(target, peer)


def test_what_the_peer_is_notified_of_is_bounded() -> None:
    """As what it tells is: its interests make us hold it."""
    limits = Limits(handles=1000)
    wire = Wire(dataspace, limits)
    wire.right.blocked = True
    wire.right.session.most_notified = limits.handles
    wire.right.inject(turn(*[(A, observe(capture(pattern_of_observe()), i), i) for i in range(31)]))
    wire.system.drain()
    assert goes_on(wire.right.session)
    notes = wire.right.session.notified
    assert notes <= 31 * 31
    wire.right.inject(turn((R, 5)))
    wire.right.inject(turn((A, observe(capture(pattern_of_observe()), 50), 50)))
    wire.system.drain()
    assert goes_on(wire.right.session)
    wire.right.inject(turn((A, observe(capture(pattern_of_observe()), 51), 51)))
    wire.system.drain()
    assert wire.right.session.reason == "handles: more than 1000 assertions would be sent to the peer"


def test_a_packet_that_is_divided_shows_no_gap() -> None:
    """Its retractions come after all else, whatever their place in it."""
    seen: list[tuple[str, Any]] = []

    def publish() -> Ref:
        ds = dataspace()
        on_asserted(ds, ["v", capture(int)])(lambda n: seen.append(("+", n)))
        on_retracted(ds, ["v", capture(int)])(lambda n: seen.append(("-", n)))
        return ds

    wire = Wire(publish, Limits(handles=10**6))
    wire.right.inject(turn(*[(A, observe(["v", capture()], i), i) for i in range(100)]))
    wire.right.inject(turn(*[(A, (SEQ, "v", i), 1000 + i) for i in range(100)]))
    wire.system.drain()
    seen.clear()
    new = [(A, (SEQ, "v", 1000 + i), 2000 + i) for i in range(100)]
    wire.right.inject(turn(*[(R, 1000 + i) for i in range(100)], *new, (SYNCED, WireRef(MINE, 7))))
    wire.system.drain()
    assert [kind for kind, _ in seen] == ["+"] * 100 + ["-"] * 100


@pytest.mark.parametrize("count", [1, 40])
def test_a_packet_that_is_not_too_much_is_one_turn(count: int, turns: list[tuple[int, int]]) -> None:
    """As the peer has said it."""
    wire = Wire(dataspace)
    wire.right.inject(turn(*[(A, observe(["v", capture()], i), i) for i in range(count)]))
    wire.system.drain()
    turns.clear()
    wire.right.inject(turn(*[(A, (SEQ, "v", i), 1000 + i) for i in range(100)]))
    wire.system.drain()
    assert (100, 100 * count) in turns


def asked(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[Any]:
    """The forms for which a function is called from now on, its last arguments."""
    forms: list[Any] = []
    function = getattr(owner, name)

    def noting(*arguments: Any) -> Any:
        forms.append(arguments[-1])
        return function(*arguments)

    monkeypatch.setattr(owner, name, noting)
    return forms


def test_what_observers_hear_is_narrowed_once_for_all_of_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many observe through a narrowed reference, and however large what they hear is."""
    forms = asked(monkeypatch, Confined, "pass_on")
    inner: list[Ref] = []

    def publish() -> Ref:
        inner.append(dataspace())
        return attenuate(inner[0], "<reject <lit 1>>")

    wire = Wire(publish)
    for first in range(0, 200, 50):
        wire.right.inject(turn(*[(A, observe([capture()], i), i) for i in range(first, first + 50)]))
        wire.system.drain()
    value = freeze([[[n, [n]] for n in range(300)]])
    wire.act(wire.right, lambda: message(inner[0], value))
    events = [event for event in wire.right.events if event[0] is M]
    assert events == [(M, value)] * 200
    assert len(forms) < 200 * 3 + 8 * 300
    assert not _copies


def test_what_observers_hear_is_forgotten_once_in_a_turn() -> None:
    """However much was narrowed for them; and also behind a turn that has crashed."""
    noted: list[int] = []

    def hear() -> None:
        observer = Confined(ref(Entity()), ((freeze("a caveat"), lambda form: form),))
        for n in range(100):
            observer.pass_on(freeze([[[n, [n]]]]))
        noted.append(len(current("test").afterwards))
        prevent_inert_check()

    def crash() -> None:
        hear()
        raise ZeroDivisionError

    wire = Wire(dataspace)
    for act in (hear, crash, hear):
        wire.system.spawn(act, name="hears")
        wire.system.drain()
    assert len(set(noted)) == 1
    assert noted[0] < 5
    assert not _copies


@pytest.mark.parametrize("narrowed", [1, 2])
@pytest.mark.parametrize("count", [40, 400, 4000])
def test_what_caveats_make_is_made_once(narrowed: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for when an event is charged, and when it passes; nothing is kept of it, whether it does or not."""
    forms = asked(monkeypatch, caveats, "_rewritten")
    wire = Wire(lambda: attenuate(attenuate(dataspace(), "<reject <lit 1>>"), *["<reject <lit 2>>"] * (narrowed - 1)))
    passage = wire.right.published.entity  # type: ignore[union-attr]  # it is published
    assert isinstance(passage, Attenuated)
    wire.right.inject(turn(*[(A, (SEQ, "v", n), n) for n in range(count)]))
    wire.system.drain()
    assert len(forms) == count
    wire.right.inject(turn(*[(R, n) for n in range(count)]))
    wire.system.drain()
    assert len(forms) == count
    wire.right.inject(turn(*[(M, (SEQ, "v", n)) for n in range(count)]))
    wire.system.drain()
    assert len(forms) == 2 * count
    assert not passage._foreseen
    wire.right.inject(turn(*[(M, (SEQ, "v", n)) for n in range(count)]))
    wire.right.session.facet.enter(lambda: wire.right.session.end("it has gone"))
    wire.system.drain()
    assert not passage._foreseen


def test_what_is_over_in_time_is_looked_at_when_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caveat that ends lets nothing pass afterwards that was charged before."""
    now = [5.0]
    monkeypatch.setattr(caveats, "time_of_day", lambda: now[0])
    wire = Wire(lambda: attenuate(dataspace(), "<not-after 10>"))
    target = wire.right.published
    assert target is not None
    assert Reach().fitting([(MESSAGE, target, "v", None)]) == 1
    now[0] = 11.0
    assert isinstance(target.entity, Attenuated)
    assert target.entity.pass_on("v") is None


@pytest.mark.parametrize(
    ("kind", "word"), [(ASSERT, VOLATILE), (MESSAGE, KEEP), (MESSAGE, FORGET)], ids=["volatile", "keep", "forget"]
)
def test_what_is_kept_is_charged_as_what_it_is(kind: int, word: Symbol) -> None:
    """Whoever observes V hears of what is in one of the words of a durable dataspace, and does not know the word."""
    totals: list[int] = []

    def boot() -> None:
        ds = dataspace()
        for _ in range(50):
            on_asserted(ds, ["v", capture()])(lambda value: None)
        journal = Journal(SimulatedDisk())
        journal.open()
        face = durable(ds, journal)
        value = freeze(["v", 1])
        watching = interest(["v", capture()], ref(Entity()))

        def count() -> None:
            for target, first in ((face, (kind, face, (word, value), None)), (ds, (ASSERT, ds, value, None))):
                reach = Reach()
                reach.fitting([first, (ASSERT, target, watching, None)])
                totals.append(reach.total)

        sync(ds, count)

    settled(boot)
    assert totals[0] >= 50
    assert totals[0] == totals[1] - (word is FORGET)  # what is asserted is heard by who observes behind it


def test_what_takes_long_to_understand_is_understood_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few events it has: others are looked at when time is over.  It is one turn all the same."""
    pieces: list[int] = []
    understand = Session._understand

    def counting(self: Session) -> None:
        understand(self)
        pieces.append(len(self._events or self._acts))

    monkeypatch.setattr(Session, "_understand", counting)
    monkeypatch.setattr(packet_events, "perf_counter", count(step=packet_events.WHILE / 8).__next__)
    seen: list[int] = []

    def publish() -> Ref:
        ds = dataspace()
        on_asserted(ds, ["v", capture(), capture()])(lambda n, narrowed: seen.append(n))
        return ds

    wire = Wire(publish)
    narrowed = WireRef(YOURS, 0, ((Symbol("reject"), (Symbol("lit"), 1)),))
    wire.right.inject(turn(*[(A, (SEQ, "v", n, narrowed), n) for n in range(100)]))
    wire.system.drain()
    assert seen == [*range(100)]
    assert pieces[-1] == 100
    assert max(after - before for before, after in pairwise([0, *pieces])) <= 9
