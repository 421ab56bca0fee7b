"""Locations that run by themselves: together they do what the program does in one place."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.live.event_log import Entry, EventLog, together, writer_of
from syndicate.dedalus.live.location import FURTHEST, Local
from syndicate.dedalus.placement import Placement
from syndicate.dedalus.run import Model
from syndicate.dedalus.timeline import Message
from syndicate.errors import DedalusArithmetic, DedalusRejected, RowMisfit, ScheduleError
from tests.strategies import examples

PLACES = ("a", "b", "c")

HEADS = [
    "d(L, X) :- r(L, X);",
    "d(L, X) :- r(L, X), notin k(L, X);",
    "d(L, X + 1) :- k(L, X), X < 2;",
    "n(L, count<X>) :- k(L, X);",
    "n(L, max<X>)@next :- r(L, X);",
    "k(L, X)@next :- k(L, X);",
    "k(L, X)@next :- k(L, X), notin d(L, X);",
    "k(L, X)@next :- r(L, X), notin n(L, 2);",
    "k(L, N)@next :- r(L, _)@N, N < 7;",
    "k(L, X) :- w(L, X)@1, r(L, _);",
    "c(L, X)@next :- r(L, X), choose((L), (X));",
    "r(M, X)@async :- d(L, X), peer(L, M);",
    "r(M, X)@later :- k(L, X), peer(L, M), notin d(L, X);",
    "r(M, X)@async :- c(L, X), peer(L, M);",
    "r(M, N)@async :- e(L, _)@N, peer(L, M);",
    "k(M, L)@async :- n(L, X), peer(L, M), X > 1;",
    'r("b", X)@async :- e("a", X);',
    "e(L, X)@next :- r(L, X), notin k(L, _), X != 1;",
]
"""Rules that are stratified in all combinations: d and n follow from what is sent or kept."""


def world(rules: list[str]) -> Program:
    """A program of three locations that know each other."""
    logs = " ".join(f'peer("{one}", "{two}");' for one in PLACES for two in PLACES if (one, two) != ("c", "a"))
    text = 'w("a", 1); w("b", 3); e("a", 0)@1; r("a", 1)@2; r("b", 2)@1; e("c", 3)@4; k("a", 1)@1;'
    mentioned = "k(L, X)@next :- k(L, X), c(L, X), d(L, X), e(L, X), n(L, X), r(L, X), w(L, X);"
    return Program.parse(f"{logs} {text} {mentioned} {' '.join(rules)}")


def live(program: Program, rng: random.Random, steps: int) -> list[EventLog]:
    """Run the locations apart: messages overtake each other, get lost, come twice; rows come and go from outside."""
    placement = Placement(program.statements)
    locals_ = {place: Local(placement, place, recorded=True) for place in PLACES}
    flying: list[Message] = []
    held: list[tuple[str, tuple[str, int]]] = []
    for _ in range(steps):
        place = rng.choice(PLACES)
        one = locals_[place]
        match rng.randrange(6):
            case 0:
                one.arrive("e", (place, rng.randrange(3)))
            case 1:
                row = (place, rng.randrange(4))
                one.assert_("d", row)
                held.append((place, row))
            case 2 if held:
                at, row = held.pop(rng.randrange(len(held)))
                locals_[at].retract("d", row)
            case 3 if flying:
                message = flying[rng.randrange(len(flying))]
                if rng.random() < 0.8:
                    flying.remove(message)
                if rng.random() < 0.8:
                    locals_[str(message.row[0])].arrive(message.relation, message.row, message.sent)
            case 4:
                flying += one.pass_by()
            case _:
                if one.due() is not None:
                    flying += one.step()
    for one in locals_.values():
        if one.time < 1:
            one.step()
    return [one.event_log() for one in locals_.values()]


def differences(program: Program, logs: list[EventLog], model: Model) -> list[Any]:
    """Where a run in one place is not what the event logs tell."""
    placement = Placement(program.statements)
    results = []
    for time in range(model.start, model.until + 1):
        for name, rows in model.at(time).items():
            for log in logs:
                expected = [row for row in rows if placement.of(name, row) in (None, log.location)]
                if sorted(expected, key=repr) != log.at(name, time):
                    results.append((time, name, log.location, expected, log.at(name, time)))
    return results


@settings(max_examples=examples(30), deadline=None)
@given(st.sets(st.sampled_from(HEADS), min_size=2, max_size=8), st.integers(0, 10**6))
def test_apart_and_together(rules: set[str], seed: int) -> None:
    """What happens at locations that run apart is a run of the program in one place, choices and losses included."""
    program = world(sorted(rules))
    logs = live(program, random.Random(seed), 50)
    again = [EventLog.of(log.to_json()) for log in logs]
    assert again == logs
    model = program.run(**together(again))
    assert differences(program, logs, model) == []


def test_the_comparison_can_fail() -> None:
    """The test above notices a message that arrived at another time."""
    program = world(HEADS[:12])
    logs = live(program, random.Random(5), 60)
    recorded = together(logs)
    entries: Any = recorded["schedule"]["schedule"]
    entry = next(e for e in entries if isinstance(e["arrive"], int) and e["tuple"][0] != "c")
    entry["arrive"] = "never"
    assert differences(program, logs, program.run(**recorded)) != []


# ------------------------------------------------------------------------------------------------------ one location


def local(text: str, place: str = "a", **options: Any) -> Local:
    """A location before its first timestep."""
    return Local(Placement(Program.parse(text).statements), place, **options)


def to_rest(one: Local, most: int = 100) -> list[Message]:
    """Step until it rests; what was sent."""
    sent: list[Message] = []
    for _ in range(most):
        if one.due() is None:
            return sent
        sent += one.step()
    raise AssertionError("it does not rest")


def test_what_arrives_arrives_later_than_it_was_sent() -> None:
    """A clock at rest jumps past the time of sending; one that is ahead stays there."""
    one = local('got(L, X, N)@next :- in(L, X)@N; persist[got, 3]; in("a", 0)@2;')
    to_rest(one)
    assert one.arrive("in", ("a", 1), 1000) == 1001
    to_rest(one)
    assert one.arrive("in", ("a", 2), 5) == 1003
    to_rest(one)
    assert one.rows("got") == [("a", 0, 2), ("a", 1, 1001), ("a", 2, 1003)]


def test_a_busy_clock_lets_messages_wait() -> None:
    """A location that counts its timesteps misses none because a message was sent later."""
    one = local("n(L, 0) :- go(L); n(L, X + 1)@next :- n(L, X), X < 9; m(L, X) :- in(L), n(L, X);")
    one.step()
    one.arrive("go", ("a",))
    one.arrive("in", ("a",), 4)
    seen = []
    while one.due() is not None:
        one.step()
        seen.append((one.time, one.rows("n"), one.rows("m")))
    assert seen[:5] == [
        (2, [("a", 0)], []),
        (3, [("a", 1)], []),
        (4, [("a", 2)], []),
        (5, [("a", 3)], [("a", 3)]),
        (6, [("a", 4)], []),
    ]


@pytest.mark.parametrize(
    ("relation", "row", "sent", "why"),
    [
        ("nothing at all", (), 0, "no relation"),
        (7, ("a", 1), 0, "no relation 7"),
        ("q", ("a", 1), 0, "no relation 'q'"),
        ("p", ("a",), 0, "a sequence of 2"),
        ("p", "ab", 0, "a sequence of 2"),
        ("p", ("a", True), 0, "no string and no number"),
        ("p", ("a", ("a",)), 0, "no string and no number"),
        ("p", ("a", float("nan")), 0, "no string and no number"),
        ("p", ("b", 1), 0, "is at 'b', not at 'a'"),
        ("on", (), 0, "the same everywhere"),
        ("p", ("a", 1), -1, "no time of sending"),
        ("p", ("a", 1), True, "no time of sending"),
        ("p", ("a", 1), 1.0, "no time of sending"),
        ("p", ("a", 1), FURTHEST + 2, "no time of sending"),
    ],
)
def test_what_others_make_up_is_refused(relation: Any, row: Any, sent: Any, why: str) -> None:
    """Rows that cannot be at a location do not come in, and change nothing."""
    one = local("persist[p, 2]; r(X) :- p(X, _), on(); on();")
    to_rest(one)
    with pytest.raises(RowMisfit, match=why):
        one.arrive(relation, row, sent)
    if "time of" not in why:
        with pytest.raises(RowMisfit, match=why):
            one.assert_(relation, row)
    assert (one.due(), one.rows("p")) == (None, [])


def test_nothing_is_kept_of_the_past() -> None:
    """An agent is as large after a thousand messages as after a few, even if it hands its log over."""
    text = """
        seen(L, X)@next :- in(L, X); first(L, X) :- in(L, X)@1, seen(L, _); all(L, X)@async :- seen(L, X);
        one(L, X)@next :- in(L, X), choose((L), (X)); out("b", X)@async :- seen(L, X);
    """
    sizes: dict[str, list[int]] = {}
    messages: list[Entry] = []
    options: dict[str, Any] = {"nothing": {}, "told": {"record": messages.append}, "kept": {"recorded": True}}
    for recorded, option in options.items():
        one = local(text, **option)
        sizes[recorded] = []
        for number in range(60):
            one.arrive("in", ("a", number))
            to_rest(one)
            part = one.part
            survivors = [
                part.messages,
                part.events,
                part.arriving,
                one.clock.chosen,
                one.entries,
                one.coming,
                one.fresh,
                part.times,
                *part.intervals.values(),
            ]
            sizes[recorded].append(sum(map(len, survivors)))
    assert max(sizes["nothing"]) == sizes["nothing"][2] < 20
    assert sizes["told"] == sizes["nothing"]
    assert sizes["kept"][-1] > 4 * 60
    assert EventLog.of_entries("a", 1, messages) == one.event_log()


FAILING = [
    "d(L, X + 1) :- r(L, X);",
    "d(L, 6 / X) :- r(L, X), X != 1;",
    "s(L, sum<X>) :- r(L, X);",
    "d(L, X * Y) :- r(L, X), g(L, Y);",
    "c(L, X - N) :- r(L, X), g(L, _)@N, choose((L), (X));",
    "d(L, X + W) :- g(L, X), w(L, W)@1;",
    "k(L, X * 2)@next :- d(L, X), X < 9;",
    "k(L, X)@next :- k(L, X);",
    "r(M, 10 / (X - 3))@async :- k(L, X), s(L, M);",
]


@settings(max_examples=examples(40))
@given(
    st.sets(st.sampled_from(FAILING), min_size=1, max_size=6),
    st.lists(
        st.lists(st.tuples(st.sampled_from("srgt"), st.sampled_from([0, 1, 2, "x", "y"])), max_size=5), max_size=6
    ),
)
def test_what_makes_a_timestep_fail_is_refused(rules: set[str], turns: list[list[tuple[str, Any]]]) -> None:
    """What is taken is a run without it; with anything that was refused, that run fails then.

    ``s`` sends a row of r, ``g`` and ``r`` give one of these relations, and ``t`` takes it away.
    """
    text = 'k("a", 1)@2; w("a", 1)@1; ' + "p(L, X) :- d(L, X), k(L, X), s(L, X), c(L, X), g(L, X), r(L, X); "
    program = Program.parse(f"{text} {' '.join(sorted(rules))}")
    one = Local(Placement(program.statements), "a", recorded=True)
    refused: list[tuple[int, str, Any]] = []
    held: dict[str, Any] = {}
    one.step()
    try:
        for turn in turns:
            for what, value in turn:
                name = "g" if what == "g" else "r"
                if what == "s":
                    one.arrive("r", ("a", value))
                elif what != "t" and what not in held:
                    held[what] = one.assert_(name, ("a", value))
                elif what == "t" and "r" in held:
                    one.retract("r", held.pop("r"))
            one.step()
            while one.due() is not None and one.time < 99:
                one.step()
            for message in one.refused:
                if message.startswith("the end of "):  # the row stays
                    continue
                row, name = re.match(r"(\(.*?\)) of (\w)", message).groups()  # type: ignore[union-attr]  # else it fails
                refused.append((int(re.search(r"at time (\d+)", message)[1]), name, eval(row)))  # type: ignore[index]
            one.refused.clear()
    except DedalusArithmetic:
        assert not one.part.arriving.get(one.due() or 0)
        return
    recorded = together([EventLog.of(one.event_log().to_json())])
    model = program.run(**recorded)
    assert differences(program, [one.event_log()], model) == []
    for time, name, row in refused:
        events = {**recorded["events"], time: {**recorded["events"].get(time, {})}}
        events[time][name] = {*events[time].get(name, ()), row}
        with pytest.raises(DedalusArithmetic, match=f"at time {time}"):
            program.run(1, time, events=events, schedule={**recorded["schedule"], "choices": []})  # chosen as it was


def test_one_of_many_makes_a_timestep_fail() -> None:
    """It is refused by name, what came with it is there, and what the program knows itself still ends it."""
    one = local("d(L, X / 2) :- p(L, X); p(L, X)@next :- q(L, X);")
    one.step()
    for value in (2, "two", 4, "four", 6):
        one.arrive("p", ("a", value))
    one.assert_("p", ("a", "given"))
    one.step()
    assert one.rows("d") == [("a", 1), ("a", 2), ("a", 3)]
    assert [message.partition(":")[0] for message in one.refused] == [
        f"('a', '{value}') of p makes a timestep fail" for value in ("two", "four", "given")
    ]
    assert (
        "program:1:1: at time 2: 'two' / 2 needs numbers, and 'two' is text\n    d(L, X / 2) :- p(L, X);"
        in one.refused[0]
    )
    one.retract("p", ("a", "given"))
    to_rest(one)
    one.arrive("q", ("a", 0))
    one.step()
    one.arrive("p", ("a", 8))
    one.step()
    assert one.rows("d") == [("a", 0), ("a", 4)]
    one.arrive("q", ("a", "kept"))
    with pytest.raises(DedalusArithmetic, match="'kept' / 2"):
        to_rest(one)


def test_an_end_makes_a_timestep_fail() -> None:
    """What a rule cannot do without stays until it is given, and taken, again; what goes along with it goes."""
    one = local('n("a", count<W>) :- here("a", W); share("a", 12 / (N - 1)) :- n("a", N);', recorded=True)
    for who in "xyz":
        one.assert_("here", ("a", who))
    to_rest(one)
    one.retract("here", ("a", "y"))
    one.retract("here", ("a", "z"))
    to_rest(one)
    assert (one.rows("here"), one.rows("share")) == ([("a", "x"), ("a", "z")], [("a", 12)])
    assert [message.partition(":")[0] for message in one.refused] == [
        "the end of ('a', 'z') of here makes a timestep fail"
    ]
    assert {(fact.row[1], fact.until is None) for fact in one.event_log().asserted} == {
        ("x", True), ("y", False), ("z", True),
    }  # fmt: skip
    one.assert_("here", ("a", "z"))
    one.assert_("here", ("a", "w"))
    to_rest(one)
    one.retract("here", ("a", "z"))
    to_rest(one)
    assert (one.rows("here"), one.rows("share")) == ([("a", "w"), ("a", "x")], [("a", 12)])


def test_who_derives_for_ever_is_refused() -> None:
    """A message that would keep a timestep from ending is refused, too."""
    one = local("n(L, X) :- in(L, X); n(L, X + 1) :- n(L, X), X != 9;")
    one.step()
    one.arrive("in", ("a", 10))
    one.arrive("in", ("a", 7))
    one.step()
    assert one.rows("n") == [("a", 7), ("a", 8), ("a", 9)]
    assert "('a', 10) of in makes a timestep fail: the rules derive ever more" in one.refused[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p(X)@next :- q(_, X);", "'_' as a location is all of them"),
        (
            "n(count<X>) :- p(X, _);",
            "the first column of n is no location: that is a value or a variable, not count<X>",
        ),
        (
            'p("a")@1; q(X + 1)@async :- p(X);',
            "the first column of q is no location: that is a value or a variable, not X + 1",
        ),
        ('p("a"); on() :- p(X);', "on has no first column, which would be its location"),
        ('n("b", count<X>)@async :- p(A, X);', "taken over all locations A"),
        ("p(A, X)@next :- q(A, X), choose((X), (A));", "the choice is for all locations A"),
        ("p(A) :- on(), q(A)@3;", "nobody can read ahead"),
        ("p(A) :- q(A), r(B), A == B;", "reads at two locations"),
        ("p(B) :- q(A, B);", "only @async and @later lead elsewhere"),
        ('on(); p("a")@next :- on();', "no atom of the body says where it is"),
        ("agent one: p; p(X)@next :- q(X); q(X)@next :- p(X);", "q belongs to no agent"),
        ("agent one: p; agent two: q; q(X) :- p(X);", "only @async and @later lead elsewhere"),
    ],
)
def test_what_no_location_can_do_alone(text: str, why: str) -> None:
    """Rules that look at several locations are refused, with the reason."""
    with pytest.raises(DedalusRejected, match=re.escape(why)):
        Placement(Program.parse(text).statements)


def test_subprograms() -> None:
    """Where relations belong to agents, each runs its own rules, whatever the first columns say."""
    program = Program.parse(
        """
        agent client: ask, answer, asked;  agent server: request, price;
        price("tea", 3);  ask("tea")@2;
        asked(X)@next :- ask(X);
        request(X)@async :- ask(X);
        answer(X, P)@async :- request(X), price(X, P);
        persist[answer, 2];
        """
    )
    placement = Placement(program.statements)
    client, server = (Local(placement, name, recorded=True) for name in ("client", "server"))
    (request,) = to_rest(client)
    assert to_rest(server) == []
    server.arrive(request.relation, request.row, request.sent)
    (answer,) = to_rest(server)
    client.arrive(answer.relation, answer.row, answer.sent)
    to_rest(client)
    assert client.rows("answer") == [("tea", 3)]
    logs = [client.event_log(), server.event_log()]
    assert differences(program, logs, program.run(**together(logs))) == []


def test_an_event_log_is_what_was_written(tmp_path: Path) -> None:
    """Whatever has happened, and whenever the writing ends, a file has all entries whose lines are whole."""
    path = tmp_path / "a.log"
    writing = writer_of(path, "a")
    rules = 'n("a", count<W>) :- here("a", W); m("b", X)@async :- in("a", X), choose((), (X)); persist[n, 2];'
    one = local(f"{rules} here(L, X)@next :- none(L, X);", recorded=True, record=writing.write)
    whole: dict[int, EventLog] = {path.stat().st_size: EventLog.of_entries("a", 1, [])}
    for number in range(6):
        one.arrive("in", ("a", f"{number} \n ä"), 3 * number)
        if number % 2:
            one.assert_("here", ("a", number))
        elif number:
            one.retract("here", ("a", number - 1))
        while one.due() is not None:
            one.step()
            whole[path.stat().st_size] = EventLog.of_entries("a", 1, one.entries)
    one.retract("here", ("a", 5))
    end = path.stat().st_size
    writing.write(one.last())
    writing.close()
    whole[path.stat().st_size] = one.event_log()
    assert EventLog.load(path) == one.event_log()
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        logs = [log for at, log in whole.items() if at <= size + 1]  # a line is whole but for its end
        if logs:
            assert EventLog.load(path) == logs[-1]
        else:
            with pytest.raises(ScheduleError, match="no event log"):
                EventLog.load(path)
    for at in range(0, end, 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(ScheduleError, match="not what was written"):
            EventLog.load(path)


def test_an_event_log_of_an_earlier_run_is_kept(tmp_path: Path) -> None:
    """A location that is started again begins again, and does not write over what happened before."""
    path = tmp_path / "a.log"
    instances = []
    for instance in range(3):
        writing = writer_of(path, "a")
        writing.write(Entry(instance + 1, True))
        writing.close()
        instances.append(writing.former)
    assert instances == [None, tmp_path / "a.log.1", tmp_path / "a.log.2"]
    assert [EventLog.load(one or path).time for one in [*instances[1:], None]] == [1, 2, 3]


LONELY = """
    friend("a", "b"); friend("a", "c"); friend("b", "a"); say("a", "hi")@2; say("b", "ho")@1; say("b", "later")@9;
    heard(F, X)@async :- say(A, X), friend(A, F); heard(A, X)@next :- heard(A, X);
    said(A, X)@next :- say(A, X); said(A, X)@next :- said(A, X);
"""


@pytest.mark.parametrize("agents", [False, True])
def test_of_a_place_without_an_event_log_nothing_is_known(agents: bool) -> None:
    """Its rows and messages are not made up, what it sent has arrived, and what went there is unknown, not lost."""
    text = LONELY
    if agents:  # the same as subprograms: b's relations are those of an agent
        text = """
            agent a: say, heard, said; agent b: ask, got;
            say("a", "hi")@2; ask("b", "ho")@1; ask("b", "later")@9;
            got("b", X)@async :- say("a", X); heard("a", X)@async :- ask("b", X); heard(A, X)@next :- heard(A, X);
            said(A, X)@next :- say(A, X); said(A, X)@next :- said(A, X); got(B, X)@next :- got(B, X);
        """
    program = Program.parse(text)
    one = Local(Placement(program.statements), "a", recorded=True)
    to_rest(one)
    one.arrive("heard", ("a", "ho"), 6)
    to_rest(one)
    again = json.loads(json.dumps(together([one.event_log()]) | {"events": None}))
    events = together([one.event_log()])["events"]
    model = program.run(**{**again, "events": events})
    assert differences(program, [one.event_log()], model) == []
    assert model.at(model.until)["heard"] == [("a", "ho")]
    assert model.at(model.until)["said"] == [("a", "hi")]
    assert all(not rows for name in ("ask", "got") if agents for rows in model.intervals[name].values())
    assert [row[0] for rows in model.intervals.values() for row in rows if row[0] == "b"] == []
    sent = [(message.row[0], message.arrive, message.unknown) for message in model.messages]
    assert sent == ([("b", (), True)] if agents else [("b", (), True), ("c", (), True)])
    drawn = model.diagram()
    assert "nobody knows when it arrives" in drawn
    assert "lost" not in drawn
    relation = "got" if agents else "heard"
    assert "nobody knows when it arrived" in str(model.why_not(relation, ("b", "hi"), model.until))
    repeated = program.run(1, model.until, schedule={**again["schedule"], **model.schedule()}, events=events)
    assert repeated.to_json() == model.to_json()
    assert [message.unknown for message in repeated.messages] == [message.unknown for message in model.messages]


def test_event_logs_that_do_not_belong_together() -> None:
    """Two instances of one location make no run, nor do none, nor different beginnings; nor is anything an event
    log.
    """
    one, other = local("p(X)@next :- p(X);", recorded=True).event_log(), EventLog("b", 3, 3, True)
    for wrong, why in (([one, one], "two event logs"), ([one, other], "begin at the same time"), ([], "none")):
        with pytest.raises(ScheduleError, match=why):
            together(wrong)
    wrong_ones: tuple[Any, ...] = (
        {},
        [],
        None,
        {**one.to_json(), "arrivals": [{"row": 3}]},
        {**one.to_json(), "messages": 3},
    )
    for each in wrong_ones:
        with pytest.raises(ScheduleError, match="no event log"):
            EventLog.of(each)
