"""Runs: time, messages, choice, and what cannot be run."""

from __future__ import annotations

import gc
import math
import sys
from typing import Any

import pytest

from syndicate import native
from syndicate.dedalus import Program, aggregate, choose, compare, compute, names
from syndicate.dedalus.ast import Events
from syndicate.errors import (
    DedalusArithmetic,
    DedalusEndless,
    DedalusParadox,
    DedalusRejected,
    FactError,
    ScheduleError,
)
from syndicate.garbage_collector import MANY_OBJECTS


def json_of(text: str, until: int = 5, **options: Any) -> Any:
    """What a program's model is."""
    return Program.parse(text).run(1, until, **options).to_json()


def test_aggregates_take_effect_later() -> None:
    """A head with an aggregate may be inductive or asynchronous."""
    result = json_of("p(1)@1; p(3)@1; p(4)@2; n(sum<X>, avg<X>)@next :- p(X); m(count<X>)@async :- p(X);")
    assert result["n"] == {"2": [[4, 2]], "3": [[4, 4]]}
    assert result["m"] == {"2": [[2]], "3": [[1]]}


def test_aggregates_count_bindings() -> None:
    """Each binding of named variables counts once; `_` is projected away before."""
    result = json_of("p(1, 5)@1; p(1, 7)@1; n(count<X>) :- p(X, _); m(count<X>) :- p(X, Y); k(sum<X>) :- p(X, Y);", 1)
    assert (result["n"], result["m"], result["k"]) == ({"1": [[1]]}, {"1": [[2]]}, {"1": [[2]]})


def test_constant_time_ahead() -> None:
    """An atom at a constant time reads that time, also before it has come."""
    result = json_of("p(1)@3; q(X) :- p(X)@3; r(X)@next :- q(X), notin p(X)@2;", 4)
    assert result["q"] == {str(time): [[1]] for time in range(1, 5)}
    assert result["r"] == {str(time): [[1]] for time in range(2, 5)}


def test_paradox() -> None:
    """A message into the past that prevents itself leaves no model, and is refused so."""
    program = Program.parse("s(1)@2; q(X)@async :- s(X), notin p(X); p(X)@next :- q(X);")
    entry = {"rel": "q", "tuple": [1], "sent": 2, "arrive": 1}
    with pytest.raises(DedalusParadox, match=r"no model.*later"):
        program.run(1, 3, schedule={"schedule": [entry]})


def test_quiet_time_is_skipped() -> None:
    """A run to the end of time costs its events alone, and the time between them can be asked for."""
    model = Program.parse("p(1)@1; e(2)@900000000; persist[p, 1]; p(N - 1)@next :- e(_)@N;").run(1, 10**9)
    assert model.visited < 10
    assert (model.at(5)["p"], model.at(10**9)["p"]) == ([(1,)], [(1,), (899999999,)])


def test_unbounded_counter() -> None:
    """What never rests ends at a bound, with words."""
    with pytest.raises(DedalusEndless, match="does not rest"):
        Program.parse("n(1)@1; n(N + 1)@next :- n(N);").run(1, 10**9, limit=100)


def test_unbounded_recursion_is_refused() -> None:
    """A value computed from itself within a timestep needs a comparison."""
    program = Program.parse("n(1)@1; n(N + 1) :- n(N);")
    assert [one.reason_class for one in program.check()] == ["unsafe"]
    assert json_of("n(1)@1; n(N + 1) :- n(N), N < 4;", 1) == {"n": {"1": [[1], [2], [3], [4]]}}


def test_arithmetic_says_what_is_wrong() -> None:
    """Text in a sum, and a division by zero, are reported with the time."""
    with pytest.raises(DedalusArithmetic, match=r"time 2.*needs numbers"):
        json_of('p("x")@2; q(X + 1) :- p(X);')
    with pytest.raises(DedalusArithmetic, match=r"time 2: sum and avg are of numbers"):
        json_of('p("x")@2; q(sum<X>) :- p(X);')
    with pytest.raises(DedalusArithmetic, match="zero"):
        json_of("p(0)@2; q(X) :- p(X), 1 / X > 0;")


def test_computed_columns_of_a_body() -> None:
    """A column of a body atom may be computed of what others bind."""
    result = json_of("p(1)@1; p(2)@1; p(4)@1; q(X) :- p(X), p(X + 1); r(X) :- p(X), notin p(X * 2);", 1)
    assert (result["q"], result["r"]) == ({"1": [[1]]}, {"1": [[4]]})


def test_no_columns() -> None:
    """A relation may have none."""
    assert json_of("go@1; gone@next :- go, notin gone; p(1) :- gone();", 3) == {
        "go": {"1": [[]]},
        "gone": {"2": [[]]},
        "p": {"2": [[1]]},
    }


def test_two_dependencies_are_a_matching() -> None:
    """Two choices in a rule hold together."""
    text = "a(1)@1; a(2)@1; a(3)@1; m(X, Y) :- a(X), a(Y), choose((X), (Y)), choose((Y), (X));"
    for seed in range(5):
        pairs = json_of(text, 1, seed=seed)["m"]["1"]
        assert sorted(x for x, _ in pairs) == sorted({x for x, _ in pairs})
        assert sorted(y for _, y in pairs) == sorted({y for _, y in pairs})


def test_a_choice_at_each_time() -> None:
    """The same key is chosen for again at each timestep."""
    text = "a(1); a(2); a(3); one(X) :- a(X), choose((), (X));"
    result = json_of(text, 30, seed=1)["one"]
    assert all(len(rows) == 1 for rows in result.values())
    assert len({rows[0][0] for rows in result.values()}) == 3


def test_causal_delivery() -> None:
    """A message may arrive at an earlier time of another's clock, but not before its cause."""
    program = Program.parse('e("a", "b")@5; r(To, From)@async :- e(From, To); s(To)@async :- r(From, To);')
    first = {"rel": "r", "tuple": ["b", "a"], "sent": 5, "arrive": 2}
    good = {"schedule": [first, {"rel": "s", "tuple": ["a"], "sent": 2, "arrive": 6}]}
    assert program.run(1, 9, schedule=good, delivery="causal").to_json()["s"] == {"6": [["a"]]}
    bad = {"schedule": [first, {"rel": "s", "tuple": ["a"], "sent": 2, "arrive": 4}]}
    with pytest.raises(ScheduleError, match="before each other"):
        program.run(1, 9, schedule=bad, delivery="causal")


def test_lamport_clocks() -> None:
    """Tuples sent into the past wait: nothing is seen before it was sent, and nothing that arrives is lost."""
    program = Program.parse("e(1)@4; e(2)@5; persist[r, 1]; r(X)@async :- e(X);").with_lamport_clocks()
    seen, early = set(), 0
    for seed in range(40):
        model = program.run(1, 12, seed=seed)
        for message in model.messages:
            value, sent, arrive = message.row[0], message.sent, message.arrive
            early += bool(arrive and arrive[0] <= sent)
            times = [time for time in range(1, 13) if (value,) in model.at(time)["r"]]
            first = max(arrive[0], sent + 1) + 1 if arrive else 99
            assert times == list(range(first, 13))
            seen.add(value)
    assert (seen, early > 5) == ({1, 2}, True)


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ({"schedule": [{"rel": "r", "tuple": ["z"], "sent": 1, "arrive": 3}]}, "no such message is sent"),
        ({"schedule": [{"rel": "l", "tuple": ["x"], "sent": 1, "arrive": 1}]}, "later than it was sent"),
        ({"schedule": [{"rel": "r", "tuple": ["x"], "sent": 1, "arrive": 0}]}, "starts at 1"),
        ({"schedule": [{"rel": "r"}]}, "needs rel, tuple, sent and arrive"),
        ({"schedule": 3}, "is a list"),
        ({"default": 3}, "'default' is"),
        ({"net": {"fixed": {"drop": [1]}}}, "'net' is"),
    ],
)
def test_bad_schedules(schedule: dict[str, Any], says: str) -> None:
    """A schedule that cannot be kept is refused."""
    program = Program.parse('e("x")@1; r(X)@async :- e(X); l(X)@later :- e(X);')
    with pytest.raises(ScheduleError, match=says):
        program.run(1, 5, schedule=schedule)


def test_events_that_are_read_once() -> None:
    """Events may come from an iterator: each pass of the run has them all."""
    program = Program.parse("q(X)@async :- p(X); r(X) :- p(X), q(X)@2;")
    rows = [(number,) for number in range(3)]
    schedule = {"default": {"delay": 1}}
    runs = [program.run(until=3, events={1: {"p": one}}, schedule=schedule) for one in (rows, iter(rows))]
    assert runs[0].at(1)["r"] == runs[1].at(1)["r"] == rows
    assert program.explore(until=1, relations=["p"], events={1: {"p": iter(rows)}}).outcomes[0].rows() == {
        "p": [[0], [1], [2]]
    }


@pytest.mark.usefixtures("thawed")
@pytest.mark.parametrize("frozen", [False, True])
def test_the_collector_is_as_it_was(frozen: bool) -> None:
    """A large run makes its objects old at once; what a user has frozen stays frozen, and nothing else is."""
    program = Program.parse("q(X, Y) :- p(X), p(Y);")
    events = {1: {"p": [(number,) for number in range(150)]}}
    if frozen:
        gc.freeze()
    old = len(gc.get_objects(generation=2))
    model = program.run(until=2, events=events)
    assert len(model.intervals["q"]) == 150**2
    assert gc.isenabled()
    assert bool(gc.get_freeze_count()) is frozen
    if not frozen:
        assert len(gc.get_objects(generation=2)) > old + MANY_OBJECTS


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
def test_derived_rows_are_made_when_somebody_looks() -> None:
    """What is derived at once and not looked at takes no object for each row; how many they are is no look."""
    program = Program.parse("path(X, Y) :- edge(X, Y); path(X, Z) :- edge(X, Y), path(Y, Z);")
    edges = [(number, number + 1) for number in range(300)]
    program.run(until=1, events={1: {"edge": edges}})
    before = sys.getallocatedblocks()
    model = program.run(until=1, events={1: {"edge": edges}})
    wanted = 300 * 301 // 2
    assert len(model.intervals["path"]) == wanted
    assert sys.getallocatedblocks() < before + wanted // 4
    assert model.at(1)["path"] == [(x, y) for x in range(300) for y in range(x + 1, 301)]


@pytest.mark.parametrize("looks", [False, True])
def test_rows_that_came_at_once_go_one_by_one(looks: bool) -> None:
    """What was derived at once goes and comes as anything else, whether it was looked at before or not."""
    program = Program.parse("""
        p(X, Y)@next :- p(X, Y), notin gone(X);
        q(X, Y) :- p(X, Z), r(Z, Y);
        r(X, Y)@next :- r(X, Y);
    """)
    p = [(number, number % 10) for number in range(200)]
    r = [(number, number + 1) for number in range(10)]
    events: Events = {1: {"p": p, "r": r}, 3: {"gone": [(7,), (8,)]}, 5: {"p": [p[7]]}, 6: {"p": [(200, 0)]}}
    model = program.run(until=7, events=events)
    if looks:
        assert len(model.at(1)["q"]) == len(list(model.at(4).unsorted("q"))) + 2 == 200
    spans = {(x, z + 1): [(1, 8)] for x, z in p}
    spans |= {(7, 8): [(1, 4), (5, 8)], (8, 9): [(1, 4)], (200, 1): [(6, 8)]}
    assert {row: list(held) for row, held in model.intervals["q"].items()} == spans
    assert model.at(4)["q"] == sorted(row for row, held in spans.items() if held[0][0] <= 4 < held[0][1])


def test_what_cannot_run() -> None:
    """A program with findings does not run, nor one with events that do not fit."""
    with pytest.raises(DedalusRejected, match="arity"):
        json_of("p(1)@1; p(1, 2)@1;")
    program = Program.parse("q(X) :- p(X);")
    with pytest.raises(FactError, match="does not have"):
        program.run(events={1: {"z": [(1,)]}})
    with pytest.raises(FactError, match="no row of p"):
        program.run(events={1: {"p": [(1, 2)]}})
    with pytest.raises(FactError, match="did you mean 'p'"):
        program.run().at(1)["pp"]


@pytest.mark.parametrize("join", ["s(X) :- p(X, Y), q(Y);", "s(X)@next :- p(X, Y), q(Y), notin p(Y, X);", ""])
def test_a_run_keeps_given_rows_and_no_copies_of_them(join: str) -> None:
    """What circuits make of rows is equal to them: kept beside them it would take their memory twice."""
    program = Program.parse(f"persist[p, del_p, 2]; persist[q, 1]; q(0)@1; {join}")
    facts = {time: {"p": [(100 * time + n, 1000 + n) for n in range(20)]} for time in (1, 3)}
    facts[4] = {"del_p": facts[1]["p"][:5]}
    model = program.run(until=6, events=facts)
    rest = facts[1]["p"][5:] + facts[3]["p"]
    assert {id(row) for row in model.at(6)["p"]} == {id(row) for row in rest}
    assert model.at(6)["p"] == sorted(rest)


def test_events_have_the_numbers_of_the_program() -> None:
    """A float without a fraction is the integer wherever it comes from, and what is no finite number is no value."""
    program = Program.parse("p(2)@1; p(3)@1; q(X) :- e(X), p(X); r(X)@next :- e(X);")
    for rows in ([(2,), (2.5,)], [(2.0,), (2.5,)], iter([(2.0,), (2,), (2.5,)])):
        assert program.run(until=2, events={1: {"e": rows}}).to_json() == {
            "e": {"1": [[2], [2.5]]},
            "p": {"1": [[2], [3]]},
            "q": {"1": [[2]]},
            "r": {"2": [[2], [2.5]]},
        }
    explored = program.explore(until=2, events={1: {"e": [(3.0,)]}}, relations=["q"])
    assert [outcome.times() for outcome in explored.outcomes] == [{"q": {"1": [[3]]}}]
    for value in (math.nan, math.inf, True, None):
        with pytest.raises(FactError, match="no row of e"):
            program.run(events={1: {"e": [(1,), (value,)]}})  # type: ignore[list-item]
    with pytest.raises(FactError, match="no term"):
        program.rel("e", 1)(math.nan)


def test_python_objects() -> None:
    """Objects make the same program as text."""
    compiled = Program()
    X, N = names("X N")  # noqa: N806  # as in the language
    p, q, r = compiled.rel("p", 2, persist=True, deleted_by="del_p"), compiled.rel("q", 1), compiled.rel("r", 1)
    compiled.rule(r(aggregate("min", N)), p(X, N), q(...), compare(N, "<", 5), ~q(X), choose((X,), (N,)))
    compiled.rule(p(X, compute(N, "+", 1)).later, q(X).at(N))
    written = Program.parse("""
        persist[p, del_p, 2];
        r(min<N>) :- p(X, N), q(_), N < 5, notin q(X), choose((X), (N));
        p(X, N + 1)@later :- q(X)@N;
    """)
    assert compiled.core() == written.core()
