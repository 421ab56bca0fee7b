"""The library: what it says of itself, against plain Python, and against faults."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import dataspace, send, spawn
from syndicate.dedalus import Agent, Program, Verdict
from syndicate.dedalus.library import names
from syndicate.dedalus.live import Instance, Packet
from syndicate.dedalus.live.location import Local
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.timeline import Message
from syndicate.errors import DedalusSyntax
from syndicate.testing import settled
from tests.strategies import examples

UNTIL = 9
KEYS, ITEMS = st.sampled_from(["k", "m"]), st.integers(0, 4)


def events(*columns: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[int, set[tuple[Any, ...]]]]:
    """Rows at times, at the location x."""
    rows = st.sets(st.tuples(st.just("x"), *columns), max_size=4)
    return st.dictionaries(st.integers(1, UNTIL - 2), rows, max_size=6)


def ran(name: str, **relations: dict[int, set[tuple[Any, ...]]]) -> Any:
    """A run of a program of the library, with events."""
    merged: dict[int, dict[str, set[tuple[Any, ...]]]] = defaultdict(dict)
    for relation, times in relations.items():
        for time, rows in times.items():
            merged[time][relation] = rows
    return Program.parse(f'include "std/{name}";').run(until=UNTIL, events=merged)


@settings(max_examples=examples(20), deadline=None)
@given(events(KEYS))
def test_sequences(happened: dict[int, Any]) -> None:
    """A sequence has the time of the last event, a counter the number of timesteps with one."""
    model = ran("sequence", seq_event=happened)
    times: dict[str, list[int]] = defaultdict(list)
    for time in range(1, UNTIL + 1):
        assert model.at(time)["seq"] == [("x", key, times[key][-1]) for key in sorted(times)]
        assert model.at(time)["counter"] == [("x", key, len(times[key])) for key in sorted(times)]
        for _place, key in happened.get(time, ()):
            times[key].append(time)


@settings(max_examples=examples(20), deadline=None)
@given(events(KEYS, ITEMS), events(KEYS), st.booleans())
def test_queues(put: dict[int, Any], hold: dict[int, Any], one: bool) -> None:
    """What is put first leaves first, one in a timestep, for each key or of all; and nothing while it is held."""
    if one:
        put = {time: {(place, value) for place, _, value in rows} for time, rows in put.items()}
        hold = {time: {(place,) for place, _ in rows} for time, rows in hold.items()}
        model = ran("queue", queue_put=put, queue_hold=hold)
    else:
        model = ran("fifo", fifo_put=put, fifo_hold=hold)
    waiting: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for time in range(1, UNTIL + 1):
        left = {key: queue for key, queue in waiting.items() if queue and ("x", *key) not in hold.get(time, ())}
        got = [("x", *key, queue.pop(0)[1]) for key, queue in left.items()]
        assert model.at(time)["queue_get" if one else "fifo_get"] == sorted(got)
        for _place, *key, value in sorted(put.get(time, ())):
            waiting[tuple(key)].append((time, value))


@settings(max_examples=examples(20), deadline=None)
@given(events(KEYS, ITEMS, ITEMS))
def test_priorities(put: dict[int, Any]) -> None:
    """Of each key what has the least priority leaves, all at once, and what comes later may overtake."""
    model = ran("priority", priority_put=put)
    waiting: set[tuple[Any, ...]] = set()
    for time in range(1, UNTIL + 1):
        least = {key: min(row[3] for row in waiting if row[1] == key) for _, key, *_ in waiting}
        got = {row for row in waiting if row[3] == least[row[1]]}
        assert model.at(time)["priority_get"] == sorted(got)
        waiting = (waiting - got) | put.get(time, set())


@settings(max_examples=examples(20), deadline=None)
@given(events(KEYS, ITEMS), events(KEYS))
def test_mutable_state(written: dict[int, Any], deleted: dict[int, Any]) -> None:
    """A key has the value that was set last; what is set as it is deleted is there."""
    model = ran("state", state_set=written, state_delete=deleted)
    state: dict[str, int] = {}
    for time in range(1, UNTIL + 1):
        assert model.at(time)["state"] == sorted(("x", *item) for item in state.items())
        for _place, key in deleted.get(time, ()):
            state.pop(key, None)
        state.update({key: value for _, key, value in sorted(written.get(time, ()))})


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(
        st.integers(1, 6),
        st.sets(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), ITEMS), max_size=3),
        max_size=5,
    ),
    st.integers(0, 1000),
    st.sampled_from(["causal", "later"]),
)
def test_lamport_clocks(sent: dict[int, Any], seed: int, delivery: Any) -> None:
    """Whenever messages arrive: numbers grow at each location, and from each cause to its effect."""
    program = Program.parse('include "std/lamport";')
    given_ = {
        time: {"lamport_send": rows, "lamport_event": {(place, f"{time}") for place, *_ in rows}}
        for time, rows in sent.items()
    }
    model = program.run(until=8, events=given_, seed=seed, delivery=delivery)
    stamps: dict[str, list[int]] = defaultdict(list)
    for time in range(1, 9):
        now = model.at(time)
        here: dict[str, set[int]] = defaultdict(set)
        for place, _, number in now["lamport_stamp"]:
            here[str(place)].add(int(number))
        for place, _, _, before, number in now["lamport_received"]:
            assert int(before) < int(number)
            here[str(place)].add(int(number))
        for place, each in here.items():
            assert len(each) == 1
            stamps[place] += each
    assert all(one < other for each in stamps.values() for one, other in pairwise(each))
    first = {time: {(place, str(time)) for place, *_ in rows} for time, rows in sent.items() if rows}
    assert {(p, e) for t in range(1, 9) for p, e, _ in model.at(t)["lamport_stamp"]} == set().union(*first.values())


# ------------------------------------------------------------------------------------------------------------- faults

PLACES = ("a", "b", "c")
MEMBERS = " ".join(f'member("{one}", "{two}")@1;' for one in PLACES for two in PLACES if one != two)


def verified(text: str, **options: Any) -> Verdict:
    """The verdict on a program of three locations."""
    return Program.parse(text).verify(**{"eot": 6, "eff": 3, "crashes": 1, "nodes": PLACES, **options})


def test_broadcast_is_lost() -> None:
    """Without faults all have it, in whatever order; one message lost is enough to break it."""
    text = f"""
        include "std/broadcast"; include "std/agreement"; {MEMBERS}
        broadcast_send("a", "hi")@1;  delivered(L, X) :- broadcast_log(L, X);
    """
    assert Program.parse(text).explore(until=4, mode="confluence", relations=["broadcast_log"]).confluent
    verdict = verified(text, crashes=0)
    assert verdict.violation_exists
    assert verdict.min_faults == 1
    assert sorted(map(list, verdict.min_counterexamples)) == [['drop("a","b",1)'], ['drop("a","c",1)']]


def test_reliable_broadcast_is_reliable() -> None:
    """No loss before the last timesteps, and no crash, breaks it; and when all have it, it rests."""
    text = f"""
        include "std/reliable_broadcast"; include "std/agreement"; {MEMBERS}
        reliable_send("a", "hi")@1;  delivered(L, X) :- reliable_log(L, X);
    """
    for crashes in (0, 1):
        assert not verified(text, crashes=crashes).violation_exists
    assert verified(text, eff=6).violation_exists
    model = Program.parse(text).run(until=1000)
    assert model.visited < 12
    assert max(message.sent for message in model.messages) < 10


COMMIT = """
    include "std/two_phase_commit";
    tpc_member("c", "a")@1; tpc_member("c", "b")@1; tpc_can("a", "x")@1; tpc_begin("c", "x")@1;
    disagree(X) :- tpc_decided(_, X, V), tpc_decided(_, X, W), V != W;
    broken(X) :- tpc_decided(_, X, "commit"), tpc_member(_, A), notin tpc_prepared(A, _, X);
    pre(X) :- tpc_prepared(A, _, X), notin crash(A, A, _);
    post(X) :- tpc_prepared(_, _, X), notin blocked(X);
    blocked(X) :- tpc_prepared(A, _, X), notin tpc_decided(A, X, _), notin crash(A, A, _);
"""


@pytest.mark.parametrize("votes", ["", 'tpc_can("b", "x")@1;'])
def test_two_phase_commit(votes: str) -> None:
    """Nobody decides otherwise than another, whatever is lost and whoever crashes; but a coordinator's crash blocks."""
    for invariant in ("disagree", "broken"):
        assert not verified(COMMIT + votes, invariant=invariant, eff=5).violation_exists
    outcome = "commit" if votes else "abort"
    last = Program.parse(COMMIT + votes).run(until=8).at(8)
    assert last["tpc_decided"] == [(place, "x", outcome) for place in PLACES]
    assert not verified(COMMIT + votes, crashes=0, eot=8).violation_exists
    waiting = COMMIT + votes + 'tpc_timeout("c", "x")@5;'
    blocking = verified(waiting, eff=0, eot=9)
    assert blocking.min_faults == 1
    crashes = {one for each in blocking.min_counterexamples for one in each}
    assert crashes
    assert crashes <= {f'crash_at("c",{time})' for time in range(9)}
    patient = COMMIT + votes + 'tpc_timeout("c", "x")@1;'
    assert {row[2] for row in Program.parse(patient).run(until=8).at(8)["tpc_decided"]} == {"abort"}


PAXOS = (
    'include "std/paxos"; split(S) :- paxos_decided(_, S, V), paxos_decided(_, S, W), V != W;'
    'pre(S) :- paxos_propose("b", S, _, _)@3; post(S) :- paxos_decided(_, S, _);'
    'paxos_propose("a", 1, 1, "x")@1; paxos_propose("b", 1, 2, "y")@3; paxos_propose("b", 2, 1, "z")@3;'
    + " ".join(f'paxos_acceptor("{one}", "{other}");' for one in "ab" for other in PLACES)
)
MAJORITY = 'paxos_majority("a", 2); paxos_majority("b", 2);'


def test_paxos() -> None:
    """One value is decided in a slot, whatever is lost or late and whoever crashes; and what protects it is needed."""
    for faults in (
        {"eot": 10, "eff": 4},
        {"eot": 10, "eff": 0, "crashes": 0, "late": 1},
        {"eot": 9, "eff": 0, "stops": 1},
    ):
        assert not verified(PAXOS + MAJORITY, invariant="split", **faults).violation_exists
    decided = Program.parse(PAXOS + MAJORITY).run(until=10).at(10)["paxos_decided"]
    assert decided == [(place, slot, value) for place in PLACES for slot, value in ((1, "y"), (2, "z"))]
    assert not verified(PAXOS + MAJORITY, eot=12, eff=4, crashes=0).violation_exists  # what is lost is sent again
    too_few = MAJORITY.replace("2", "1")
    assert verified(PAXOS + too_few, invariant="split", eot=10, eff=10, crashes=0).violation_exists
    library = (Path(__file__).parents[3] / "syndicate" / "dedalus" / "library" / "paxos.ded").read_text()
    forgetful = library.replace("paxos_best(P, S, B, 0), paxos_try", "paxos_try").replace("L > 0", "L > 9")
    assert forgetful != library
    text = PAXOS.replace('include "std/paxos";', forgetful) + MAJORITY
    assert verified(text, invariant="split", eot=12, eff=12, crashes=0).violation_exists


def library(name: str) -> str:
    """The text of a program of the library."""
    folder = Path(__file__).parents[3] / "syndicate" / "dedalus" / "library"
    return (folder / f"{name}.ded").read_text()


LOSING = {"eot": 8, "eff": 4, "crashes": 1}
LATE = {"eot": 8, "eff": 0, "crashes": 0, "late": 1}

CAUSAL = f"""
    {MEMBERS} causal_send("a", "x")@1; causal_send("b", "y")@4;
    early(M, X, Y) :- causal_log(M, X), causal_dep(_, X, Y), notin causal_log(M, Y);
    pre(X) :- causal_log(_, X);
    post(X) :- causal_log("a", X), causal_log("b", X), causal_log("c", X);
"""


def test_causal_broadcast() -> None:
    """Nobody delivers an answer before the question, whatever is lost or late; and what waits is needed for that."""
    text = library("causal_broadcast")
    for faults in (LOSING, LATE):
        assert not verified(text + CAUSAL, invariant="early", **faults).violation_exists
    assert not verified(text + CAUSAL, eot=10, eff=4, crashes=0).violation_exists  # what is lost is sent again
    ends = Program.parse(text + CAUSAL).run(until=10).at(10)
    assert len(ends["causal_log"]) == 6
    assert ("c", "y", "x") in ends["causal_dep"]
    passed = "causal_msg(M, X, N) :- causal_pass(M, _, X, N);"
    hasty = text.replace(passed, "causal_ready(M, X) :- causal_pass(M, _, X, _);")
    assert hasty != text
    assert verified(hasty + CAUSAL, invariant="early", eot=8, eff=5, crashes=0).violation_exists


QUORUM = """
    quorum_replica("a", "a")@1; quorum_replica("a", "b")@1; quorum_replica("a", "c")@1;
    quorum_replica("b", "a")@1; quorum_replica("b", "b")@1; quorum_replica("b", "c")@1;
    quorum_write("a", "k", 1, "tea")@1; quorum_read("b", 1, "k")@4; quorum_read("b", 2, "k")@5;
    begun(C, I, N) :- quorum_read(C, I, K), quorum_written(_, K, N); persist[begun, 3];
    stale(I) :- begun(C, I, N), quorum_got(C, I, M, _), M < N;
    pre(I) :- quorum_read(_, I, _)@4; post(I) :- quorum_got(_, I, _, "tea");
"""


def test_a_quorum_store() -> None:
    """A read that begins when a write is done sees it; with quorums that do not meet it may not."""
    text, quorum = library("quorum_store"), 'quorum_majority("a", {0}); quorum_majority("b", {0});'
    for faults in (LOSING, LATE):
        assert not verified(text + QUORUM + quorum.format(2), invariant="stale", **faults).violation_exists
    assert not verified(text + QUORUM + quorum.format(2), eot=9, eff=4, crashes=0).violation_exists
    assert Program.parse(text + QUORUM + quorum.format(2)).run(until=8).at(8)["quorum_got"] == [
        ("b", 1, 1, "tea"), ("b", 2, 1, "tea")
    ]  # fmt: skip
    assert verified(text + QUORUM + quorum.format(1), invariant="stale", **LOSING).violation_exists


SESSION = """
    session_replica("a", "b")@1; session_replica("a", "c")@1;
    session_write("a", "k", 1, "tea")@1; session_read("a", "b", "k")@3; session_read("a", "c", "k")@5;
    less(K) :- session_got(C, K, N, _), session_known(C, K, M, _), N < M;
    read(K) :- session_got(_, K, _, _); persist[read, 1];
    pre(K) :- session_read(_, _, K)@3; post(K) :- read(K);
"""


def test_a_session() -> None:
    """Nobody reads less than it knows, whatever its replicas have heard of; without its memory it does."""
    text = library("session")
    for faults in (LOSING, LATE):
        assert not verified(text + SESSION, invariant="less", **faults).violation_exists
    assert verified(text + SESSION, eot=8, eff=6, crashes=0).violation_exists  # a read is asked once
    once = text.replace(
        ":- session_known(C, K, N, V), session_replica", ":- session_write(C, K, N, V), session_replica"
    )
    assert once != text
    assert not verified(once + SESSION, invariant="less", **LOSING).violation_exists
    remembered = "session_choice(C, K, N, V) :- session_answer(C, K, _, _), session_known(C, K, N, V);"
    forgetful = once.replace(remembered, "")
    assert forgetful != once
    assert verified(forgetful + SESSION, invariant="less", **LOSING).violation_exists


MEMBERSHIP = """
    missed(L, M) :- crash(L, M, T)@N, member(L, M), N > T + 4, notin membership_suspect(L, M);
    wrong(L, M) :- membership_suspect(L, M), notin crash(L, M, _);
"""


def test_membership() -> None:
    """Who crashes is suspected, whatever is lost or late; and some that do not are, by three messages lost."""
    text = library("membership") + MEMBERS + MEMBERSHIP
    assert not verified(text, invariant="missed", eot=9, eff=3).violation_exists
    assert not verified(text, invariant="missed", eot=9, eff=0, late=1).min_counterexamples
    assert not verified(text, invariant="wrong", eot=8, eff=0).violation_exists
    assert verified(text, invariant="wrong", eot=8, eff=8, crashes=0).min_faults == 3


THREE_PHASE = (Path(__file__).parents[2] / "data" / "dedalus" / "three_phase.ded").read_text()


def test_three_phase_commit() -> None:
    """It is whole where nodes crash and no message is late; one late message splits it."""
    asked: dict[str, Any] = {"nodes": ["C", "a", "b", "d"], "invariant": "split", "eot": 12, "eff": 0}
    assert not verified(THREE_PHASE, **asked, crashes=0).violation_exists
    assert verified(THREE_PHASE, **asked, crashes=0, late=1).min_faults == 1


ELECTION = (
    'include "std/election"; election_stand("a")@1; election_stand("b")@1;'
    "split(T) :- election_leader(_, T, A), election_leader(_, T, B), A != B;"
    "pre(L) :- election_member(L, _); post(L) :- election_leader(L, T, M), election_leader(M, T, M);"
    + " ".join(f'election_member("{one}", "{other}")@1;' for one in PLACES for other in PLACES)
)


def elected(majority: int, **asked: Any) -> Verdict:
    """The verdict on an election that so many votes decide."""
    enough = " ".join(f'election_majority("{place}", {majority})@1;' for place in PLACES)
    return verified(ELECTION + enough, **{"eot": 9, "eff": 4, "crashes": 0, **asked})


def test_an_election() -> None:
    """A term has one leader, whatever is lost or late; but not if votes are forgotten, or too few are enough."""
    faults: list[dict[str, Any]] = [{"crashes": 1}, {"eff": 0, "late": 2}, {"pauses": 1}]
    for some in faults:
        assert not elected(2, invariant="split", **some).violation_exists
    assert elected(2, eot=10).proven  # what is lost is sent again
    assert elected(2, invariant="split", restarts=1).min_faults == 2
    assert elected(1, invariant="split").min_faults == 1


RING_OF_FOUR = """
    include "std/chord"; key("q", 7); persist[key, 2];
    far(Q, N, (I - K + 16) % 16) :- key(Q, K), chord_at(N, I); least(Q, min<D>) :- far(Q, _, D);
    wrong(Q, M) :- chord_owner(_, Q, M), far(Q, M, D), least(Q, L), D > L;
    pre(Q) :- key(Q, _); post(Q) :- chord_owner(_, Q, _);
    chord_join("b", "a", 1)@1; chord_join("c", "a", 1)@1; chord_join("d", "a", 1)@1;
""" + " ".join(
    f'chord_ring("{name}", 16); chord_at("{name}", {place});'
    + " ".join(f'chord_power("{name}", {power});' for power in (1, 2, 4, 8))
    for name, place in zip("abcd", (1, 5, 9, 13), strict=True)
)


def test_chord() -> None:
    """Once all have heard of their neighbours, answers are right; before, or where that is lost, they may be wrong."""
    asked: dict[str, Any] = {"eot": 10, "eff": 0, "crashes": 0, "nodes": "abcd"}
    early, late = (f'{RING_OF_FOUR} chord_find("b", "q", 7)@{time};' for time in (2, 6))
    assert Program.parse(early).run(until=9).at(9)["wrong"] == [("q", "a")]
    assert Program.parse(late).run(until=9).at(9)["chord_owner"] == [("b", "q", "c")]
    for some in ({"late": 1}, {"eff": 3}):
        assert not verified(late, invariant="wrong", **{**asked, **some}).violation_exists
    assert verified(late, invariant="wrong", **{**asked, "eff": 10}).min_faults == 4
    assert verified(late, **{**asked, "eot": 13, "eff": 7}).proven  # what is lost is asked again


@settings(max_examples=examples(25), deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 31), min_size=1), st.integers(0, 31), st.data())
def test_the_owner_of_a_key(places: dict[str, int], key: int, data: Any) -> None:
    """However many there are and wherever they are, after some rounds it is the first at the key or after it."""
    places = {name: place for place, name in {place: name for name, place in places.items()}.items()}
    events: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for name, place in places.items():
        events["chord_ring"].add((name, 32))
        events["chord_power"].update((name, 1 << bit) for bit in range(5))
        events["chord_at"].add((name, place))
        if name != min(places):
            events["chord_join"].add((name, min(places), places[min(places)]))
    asking = data.draw(st.sampled_from(sorted(places)))
    happened = {1: events, 12: {"chord_find": {(asking, "q", key)}}}
    program = Program.parse('include "std/chord";')
    owner = min(places, key=lambda name: (places[name] - key) % 32)
    assert program.run(until=22, events=happened).at(22)["chord_owner"] == [(asking, "q", owner)]


LOG = (
    'include "std/log"; log_of("a", 1, 2); log_of("b", 2, 2); log_append("a", "x")@1; log_append("b", "y")@1;'
    'log_try("a")@1; log_try("b")@3; log_try("a")@9;'
    "differ(S) :- log_entry(_, S, A), log_entry(_, S, B), A != B;"
    "twice(X) :- log_entry(_, S, X), log_entry(_, T, X), S != T;"
    "pre(X) :- log_append(_, X)@1; post(X) :- log_entry(_, _, X);"
    + " ".join(f'paxos_acceptor("{one}", "{other}");' for one in "ab" for other in PLACES)
)


def test_a_log() -> None:
    """Two append at once: both entries are there, in one order for all, whatever is lost or late."""
    ends = Program.parse(LOG + MAJORITY).run(until=16).at(16)["log_entry"]
    assert ends == [(place, slot, value) for place in PLACES for slot, value in ((1, "y"), (2, "x"))]
    for invariant in ("differ", "twice"):
        for some in ({"eff": 4, "crashes": 1}, {"eff": 0, "crashes": 0, "late": 1}):
            assert not verified(LOG + MAJORITY, invariant=invariant, eot=14, **some).violation_exists
    assert verified(LOG + MAJORITY, eot=16, eff=2, crashes=0).proven
    assert verified(LOG + MAJORITY.replace("2", "1"), invariant="differ", eot=12, eff=8, crashes=0).violation_exists


RING = """
    include "std/token_ring";
    ring_next("a", "b")@1; ring_next("b", "c")@1; ring_next("c", "a")@1; ring_start("a")@1;
    clash(L) :- ring_hold(L, X), ring_hold(M, Y), L != M;
    clash(L) :- ring_hold(L, X), ring_hold(L, Y), X != Y;
"""


def test_a_token_is_one() -> None:
    """Never have two the token, whatever is lost; twice the same message makes two of it."""
    wants = " ".join(f'ring_want("{p}", {n})@{t};' for p in PLACES for n in (1, 2) for t in range(2, 8))
    assert not verified(RING + wants, invariant="clash", eot=8, eff=7).violation_exists
    wants = 'ring_want("b", 1)@2; ring_want("b", 1)@5; ' + " ".join(f'ring_want("c", 1)@{t};' for t in range(3, 8))
    for arrive, clash in ([2], []), ([2, 5], [("b",), ("c",)]):
        schedule = {"schedule": [{"rel": "ring_pass", "tuple": ["b", "a"], "sent": 1, "arrive": arrive}]}
        model = Program.parse(RING + wants).run(until=8, schedule=schedule)
        assert (model.at(5)["clash"], model.at(4)["ring_hold"]) == (clash, [("c", 1)])


TOKENS = Placement(Program.parse(RING).statements, ["clash"])


@settings(max_examples=15, deadline=None)
@given(st.sets(st.tuples(st.sampled_from(PLACES), st.integers(1, 3)), max_size=5), st.integers(1, 3))
def test_all_who_want_the_token_get_it(wanting: set[tuple[str, int]], how_long: int) -> None:
    """Each has it once, as long as it wants, and then the next."""
    had: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    locations = {place: Local(TOKENS, place) for place in PLACES}
    flying: list[Message] = []
    for who in wanting:
        locations[who[0]].assert_("ring_want", who)
    for time in range(1, 12 + len(wanting) * (how_long + 4)):
        arriving, flying = flying, []
        for message in arriving:
            locations[str(message.row[0])].arrive(message.relation, message.row, message.sent)
        for one in locations.values():
            flying += one.pass_by()
            for row in one.rows("ring_hold"):
                had[row].append(time)
                if len(had[row]) == how_long:
                    one.retract("ring_want", row)
    assert {who: len(times) for who, times in had.items()} == dict.fromkeys(wanting, how_long)
    spans = sorted(tuple(times) for times in had.values())
    assert all(list(times) == list(range(times[0], times[0] + how_long)) for times in spans)
    assert all(one[-1] < other[0] for one, other in pairwise(spans))


# ------------------------------------------------------------------------------------------------------------- as text


def test_includes(tmp_path: Path) -> None:
    """The library is there for text and for files, once; a file of that name comes first; others are refused."""
    path, own = tmp_path / "own.ded", tmp_path / "std" / "queue.ded"
    path.write_text('include "std/queue"; include "std/queue.ded"; include "std/fifo";')
    twice = Program.parse('include "std/queue"; include "std/queue"; include "std/fifo";')
    assert Program.load(path).core() == twice.core()
    own.parent.mkdir()
    own.write_text("mine(1);")
    path.write_text('include "std/queue.ded"; include "std/fifo";')
    assert str(Program.load(path).core()[0]) == "mine(1);"
    with pytest.raises(DedalusSyntax, match=r"program:1:1: the library has no std/quueue; it has std/agreement, "):
        Program.parse('include "std/quueue";')
    with pytest.raises(DedalusSyntax, match="relative to a file"):
        Program.parse('include "own.ded";')


@pytest.mark.parametrize("name", names())
def test_all_run_live(name: str) -> None:
    """Each program of the library is accepted, alone and with all others, says what it has, and can run live."""
    text = f'include "std/{name}";'
    program = Program.parse(text)
    assert program.check() == []
    Program.parse(" ".join(f'include "std/{one}";' for one in names())).accept()
    head = (Path(__file__).parents[3] / "syndicate" / "dedalus" / "library" / f"{name}.ded").read_text()
    opening = head.partition("\n\n")[0]
    derived = {rule.head.relation for rule in program.core() if not rule.fact}
    read = {atom.relation for rule in program.core() for atom in rule.atoms} - derived - {"crash"}
    assert all(f"{relation}(" in opening for relation in read)
    Agent(program, "x")


def test_commit_live() -> None:
    """Two-phase commit among actors in a dataspace: all come to one decision, and to rest."""
    program = Program.parse(COMMIT + 'tpc_can("b", "x")@1;')
    instances: dict[str, Instance] = {}

    def boot() -> None:
        ds = dataspace()
        for place in PLACES:
            spawn(lambda place=place: instances.update({place: Agent(program, place)(ds)}))
        spaces.append(ds)

    spaces: list[Any] = []
    system = settled(boot)
    system.spawn(send, spaces[0], Packet("c", "tpc_begin", ("c", "y"), 0))
    system.drain()
    for place, instance in instances.items():
        assert instance.rows("tpc_decided") == [(place, "x", "commit"), (place, "y", "abort")]
