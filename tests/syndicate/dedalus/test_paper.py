"""Every construct and worked example of "Dedalus: Datalog in Time and Space", ordering and asynchrony, one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Row
from tests.strategies import examples


def told(text: str, until: int = 6, start: int = 1, **options: Any) -> dict[str, dict[int, list[Row]]]:
    """What is true, by relation and time."""
    model = Program.parse(text).run(start, until, **options)
    return {
        name: {time: rows for time in range(start, until + 1) if (rows := model.at(time)[name])}
        for name in model.intervals
    }


def outcomes(text: str, relation: str, **options: Any) -> set[tuple[Row, ...]]:
    """What a relation can come to in the end."""
    exploration = Program.parse(text).explore(1, 4, relations=[relation], mode="confluence", **options)
    return {tuple(map(tuple, outcome.rows().get(relation, ()))) for outcome in exploration.outcomes}


# ----------------------------------------------------------------------------------------------------------- aggregates


def test_aggregates_are_grouped_by_the_other_columns() -> None:
    """One row for each group, several aggregates in a head, and `min` is what negation makes of it."""
    facts = 'p("a", 3)@1; p("a", 1)@1; p("b", 2)@1;'
    result = told(f"{facts} all(A, min<B>, max<B>, count<B>, sum<B>) :- p(A, B);", 1)
    assert result["all"] == {1: [("a", 1, 3, 2, 4), ("b", 2, 2, 1, 2)]}
    text = f"{facts} min_p(A, min<B>) ← p(A, B); notmin_p(A, B) ← p(A, B), p(A, C), B > C; "
    result = told(text + "same(A, B) ← p(A, B), ¬notmin_p(A, B);", 1)
    assert result["same"] == result["min_p"] == {1: [("a", 1), ("b", 2)]}


# --------------------------------------------------------------------------------------------------------------- choice


def test_choice_takes_one_for_each_and_each_is_a_model() -> None:
    """`choose((X), (Y))` is a dependency X -> Y; each choice has a model, and once chosen there is one."""
    text = 's("jim")@1; s("ann")@1; p("ohm")@1; p("bell")@1; adv(S, P) :- s(S), p(P), choose((S), (P));'
    exploration = Program.parse(text).explore(1, 1, relations=["adv"])
    wanted = {(("ann", a), ("jim", j)) for a, j in product(("bell", "ohm"), repeat=2)}
    assert {tuple(map(tuple, one.times()["adv"]["1"])) for one in exploration.outcomes} == wanted
    assert {tuple(told(text, 1, seed=seed)["adv"][1]) for seed in range(40)} == wanted
    assert told(text, 1, seed=3) == told(text, 1, seed=3)


def test_a_dependency_of_vectors_and_two_at_once() -> None:
    """Key and choice may have several variables, and a marriage needs two dependencies."""
    facts = 'm("a", 1)@1; m("a", 2)@1; m("b", 1)@1; m("b", 2)@1;'
    both = outcomes(f"{facts} p(X, Y)@next :- m(X, Y), choose((X), (Y)), choose((Y), (X)); persist[p, 2];", "p")
    assert both == {(("a", 1), ("b", 2)), (("a", 2), ("b", 1))}
    one = outcomes(f"{facts} p(X, Y)@next :- m(X, Y), choose((), (X, Y)); persist[p, 2];", "p")
    assert one == {((name, number),) for name in "ab" for number in (1, 2)}


# --------------------------------------------------------------------------------------------------------- distribution


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        ("answer(X)@async :- request(X);", True),  # a communication rule
        ("request(X)@next :- mine(X);", True),
        ("answer(X) :- request(X);", False),
        ("answer(X)@next :- request(X);", False),
        ("answer(X)@async :- request(X), answer(X);", False),
        ("answer(X)@later :- request(X), mine(X);", True),
    ],
)
def test_a_body_is_of_one_subprogram(rule: str, accepted: bool) -> None:
    """Bodies are of one agent; heads of another only if they are asynchronous."""
    result = Program.parse(f"agent client: request, mine; agent server: answer; {rule}").check()
    assert {one.reason_class for one in result} == (set() if accepted else {"location"})


# --------------------------------------------------------------------------------------------------- asynchronous rules


def test_async_is_sugar_for_a_choice_of_a_time() -> None:
    """`time(S), choose((A, B, T), (S))` is `@async`, `after` is `@later`: the sugar and what it stands for are one."""
    sugar = Program.parse("r(A, B)@async :- e(A, B); q(A)@later :- e(A, _); n(A)@next :- e(A, _);").core()
    assert sugar == (
        Program.parse("""
            r(A, B)@S ← e(A, B)@T, time(S), choose((A, B, T), (S));
            q(A)@S ← e(A, _)@T, after(T, S), choose((A, T), (S));
            n(A)@S ← e(A, _)@T, successor(T, S);
        """).core()
    )


def test_a_message_arrives_at_any_time_or_never_and_at_one() -> None:
    """S is any time, also one that is over, or never: no body sees what arrives there; a tuple has one S for each T."""
    text = "e(1)@2; r(X)@async :- e(X); r(X)@async :- e(X), X > 0;"
    exploration = Program.parse(text).explore(1, 3, relations=["r"])
    by_rule = [frozenset({at} if at else ()) for at in (0, 1, 2, 3)]
    assert {tuple(one.times().get("r", {})) for one in exploration.outcomes} == {
        tuple(str(at) for at in sorted(a | b)) for a, b in product(by_rule, repeat=2)
    }
    alike = "e(1, 1)@2; e(1, 2)@2; r(X)@async :- e(X, _);"  # two bindings, one head: one choice
    exploration = Program.parse(alike).explore(1, 3, relations=["r"])
    assert sorted(tuple(one.times().get("r", {})) for one in exploration.outcomes) == [(), ("1",), ("2",), ("3",)]


@pytest.mark.parametrize(("kind", "sure"), [("later", True), ("async", False)])
def test_later_is_sure_where_async_is_not(kind: str, sure: bool) -> None:
    """The example of the paper: r is over before q arrives, unless that may arrive in the past."""
    text = f"r(1)@1; s(1); p(X) ← q(X), r(X); q(X)@{kind} ← s(X);"
    exploration = Program.parse(text).explore(1, 3, relations=["p"])
    assert {tuple(one.times()) for one in exploration.outcomes} == ({()} if sure else {(), ("p",)})


def test_a_discussion_board() -> None:
    """What is said to arrive out of order does so: a reply before its comment; whoever only gathers, ends alike."""
    text = """
        comment("c")@1; reply("r", "c")@2; persist[comments, 1]; persist[replies, 2]; persist[orphan, 1];
        comments(X)@async ← comment(X); replies(X, Y)@async ← reply(X, Y);
        orphan(X)@next ← replies(X, Y), ¬comments(Y);
        thread(Y, X) ← replies(X, Y), comments(Y);
    """
    assert outcomes(text, "orphan") == {(), (("r",),)}
    assert outcomes(text, "replies") == {(("r", "c"),)}
    assert outcomes(text, "thread") == {(("c", "r"),)}


# ------------------------------------------------------------------------------------------------- entanglement, clocks


def test_the_time_of_a_body_is_data() -> None:
    """`p(A, B, N)@async <- q(A, B)@N`: N is when it was sent, whenever it arrives."""
    entry = {"rel": "p", "tuple": ["x", 1, 3], "sent": 3, "arrive": 6}
    result = told('q("x", 1)@3; p(A, B, N)@async <- q(A, B)@N;', schedule={"schedule": [entry]})
    assert result["p"] == {6: [("x", 1, 3)]}
    strict = Program.parse("p(A, N)@next <- q(A)@N;").check(strict=True)
    assert [one.reason_class for one in strict] == ["entangle-strict"]  # the paper's own restriction, in strict mode


def test_a_sequence_grows_with_time() -> None:
    """The pair of inductive rules: without arithmetic, entangled; and with what `successor` gives, as a head's time."""
    events = 'seq("x", 0)@1; event("x")@2; event("x")@5;'
    inertia = "seq(A, X)@next ← seq(A, X), ¬ event(A);"
    result = told(f"{events} {inertia} seq(A, N)@next ← seq(A, _)@N, event(A)@N;", 7)["seq"]
    assert [result[time][0][1] for time in range(1, 8)] == [0, 0, 2, 2, 2, 5, 5]
    for rule in (
        "seq(A, M)@next ← seq(A, _)@N, event(A)@N, successor(N, M);",
        "seq(A, S)@S ← seq(A, _)@N, event(A)@N, successor(N, S);",
        "seq(A, M)@S ← seq(A, _)@N, event(A)@N, successor(N, S), successor(N, M);",
    ):
        result = told(f"{events} {inertia} {rule}", 7)["seq"]
        assert [result[time][0][1] for time in range(1, 8)] == [0, 0, 3, 3, 3, 6, 6]


def test_a_counter_without_gaps_by_successor() -> None:
    """What the paper says needs arithmetic: `successor` as data counts."""
    text = 'seq("x", 0)@1; event("x")@2; event("x")@5; seq(A, X)@next ← seq(A, X), ¬ event(A);'
    result = told(f"{text} seq(A, M)@next ← seq(A, N), event(A), successor(N, M);", 7)["seq"]
    assert [result[time][0][1] for time in range(1, 8)] == [0, 0, 1, 1, 1, 2, 2]


# --------------------------------------------------------------------------------------------------------------- queues

JOBS = [("bob", "bash", 200), ("eve", "john", 1), ("alice", "ssh", 204), ("bob", "ssh", 205)]
QUEUE = """
    m_priority_queue(A, B, C)@next ← m_priority_queue(A, B, C), notin del_m_priority_queue(A, B, C);
    {omin} ← m_priority_queue({any}, _, C);
    p(A, B, C)@next ← m_priority_queue(A, B, C), {least};
    del_m_priority_queue(A, B, C) ← m_priority_queue(A, B, C), {least};
"""


@pytest.mark.parametrize("of_each", [True, False])
def test_a_queue_orders_what_came_at_once(of_each: bool) -> None:
    """One job a timestep for each user, the least first; or one of all, if `omin` leaves out the user."""
    facts = "".join(f'm_priority_queue("{a}", "{b}", {c})@123;' for a, b, c in JOBS)
    least = "omin(A, C)" if of_each else "omin(C)"
    omin = "omin(A, min<C>)" if of_each else "omin(min<C>)"
    rules = QUEUE.format(omin=omin, least=least, any="A" if of_each else "_")
    result = told(facts + rules, 130, 123)["p"]
    if of_each:
        assert result == {124: [JOBS[2], JOBS[0], JOBS[1]], 125: [JOBS[3]]}
    else:
        assert result == {124 + at: [job] for at, job in enumerate(sorted(JOBS, key=lambda job: job[2]))}


# ------------------------------------------------------------------------------------------------------- Lamport clocks

WAITING = """
    persist[p, 2]
    p_wait(A, B, N)@async ← q(A, B)@N;
    p_wait(A, B, N)@next ← p_wait(A, B, N)@M, N ≥ M;
    p(A, B)@next ← p_wait(A, B, N)@M, N < M;
"""


@pytest.mark.parametrize("arrive", [1, 2, 5, 6, 8])
def test_lamport_clocks(arrive: int) -> None:
    """What is sent into the past waits for its time; what is sent into the future is there in the timestep after."""
    entry = {"rel": "p_wait", "tuple": ["x", "y", 5], "sent": 5, "arrive": arrive}
    result = told(f'q("x", "y")@5; {WAITING}', 12, schedule={"schedule": [entry]})
    assert sorted(result["p"]) == list(range(max(arrive, 6) + 1, 13))
    automatic = Program.parse('persist[p, 2]; p(A, B)@async :- q(A, B); q("x", "y")@5;').with_lamport_clocks()
    again = told(automatic.text, 12, schedule={"schedule": [entry]})
    assert again["p"] == result["p"]


def test_quiescent_timesteps_are_skipped() -> None:
    """Waiting costs nothing: a message from far ahead is waited for in few timesteps in all."""
    text = 'n(1)@1; persist[n, 1]; q("x", "y")@90000; p(A, B)@later :- q(A, B); persist[p, 2];'
    model = Program.parse(text).run(1, 100_000)
    assert model.visited < 12
    assert (model.at(50_000)["n"], model.at(99_999)["p"]) == ([(1,)], [("x", "y")])


def test_waiting_by_the_clock_visits_each_timestep() -> None:
    """What the paper hopes for is not so where a rule compares with the time: the wait of `p_wait` is not skipped."""
    entry = {"rel": "p_wait", "tuple": ["x", "y", 500], "sent": 500, "arrive": 3}
    model = Program.parse(f'q("x", "y")@500; {WAITING}').run(1, 100_000, schedule={"schedule": [entry]})
    assert model.at(501)["p"] == []
    assert model.at(502)["p"] == [("x", "y")]
    assert 498 <= model.visited < 510


# --------------------------------------------------------------------------------------- successor, time, after as data

TERMS = st.sampled_from(["X", "Y", "Z", "W", "_", "2", '"u"', "1.5"])
CLOCKS = st.sampled_from(["successor", "successor", "successor", "time", "after"])


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """A body with relations of the clock."""
    goals = ["s(X)", *draw(st.lists(st.sampled_from(["t(X, Y)", "t(Y, _)", "notin s(Y)", "Y > 1"]), max_size=2))]
    for name in draw(st.lists(CLOCKS, min_size=1, max_size=3)):
        goals.insert(draw(st.integers(0, len(goals))), f"{name}({', '.join(draw(TERMS) for _ in _COLUMNS[name])})")
    return ", ".join(goals)


_COLUMNS = {"successor": "12", "time": "1", "after": "12"}
STORED = "".join(f"tm({n}); sc({n}, {n + 1});" for n in range(-6, 12)) + "".join(
    f"af({n}, {m});" for n in range(-6, 12) for m in range(n + 1, 12)
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies(), st.sampled_from(["X", "X, Y", "Z, X", "Z, W"]), st.sampled_from(["", "@next"]))
def test_as_if_the_clock_were_stored(body: str, head: str, kind: str) -> None:
    """What is computed is what a long enough table of all times would give, for any values."""
    facts = 's(0); s(1); s(3); s("u"); s(1.5); t(1, 2); t(3, 2); t("u", 1); t(2, "u"); t(1.5, 2.5);'
    computed = f"{facts} p({head}){kind} :- {body};"
    stored = computed.replace("successor(", "sc(").replace("time(", "tm(").replace("after(", "af(")
    assume(not Program.parse(computed).check())
    assert told(computed, 2)["p"] == told(STORED + stored, 2)["p"]
