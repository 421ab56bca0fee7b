"""Verdicts: against the public cases, and against all sets of faults of small random programs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.solving.solver import Engine
from syndicate.dedalus.verify.counterexample import Progress
from syndicate.errors import DedalusArithmetic, DedalusRejected, FactError, Undecided, Unverifiable
from tests.syndicate.dedalus.verify.brute import brute
from tests.syndicate.dedalus.verify.compared import compared, the_same
from tests.syndicate.dedalus.verify.senders import NODES, programs
from tests.syndicate.dedalus.verify.worlds import KINDS, EverySide

CASES = Path(__file__).parents[3] / "data" / "dedalus"
VERDICTS = json.loads((CASES / "verdicts" / "expected.json").read_text())
PLAIN = {"vacuous": False, "choices_tried": None}
"""What is reported of a program that has a specification and no choices."""
MOST_RUNS = 2_500
"""Of the search for one of the known verdicts; there are 2 ** 60 sets of faults within the widest bounds."""


@pytest.mark.parametrize("engine", ["clingo", "search"])
@pytest.mark.parametrize("case", VERDICTS, ids=lambda c: f"{c['program']}-{c['eot']}-{c['eff']}-{c['max_crashes']}")
def test_verdict(case: dict[str, Any], engine: Engine) -> None:
    """The verdict, and all smallest counterexamples, are those that are known, and few runs give them."""
    if engine == "clingo":
        pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    verdict = Program.load(CASES / case["program"]).verify(
        eot=case["eot"], eff=case["eff"], crashes=case["max_crashes"], nodes=case["nodes"], engine=engine
    )
    assert verdict.runs <= MOST_RUNS
    assert (verdict.runs > 0) is (engine == "search")
    wanted = {name: case[name] for name in ("violation_exists", "min_faults", "min_counterexamples")}
    more = {"choices": [[]] * case["n_min"] or None, "engine": engine, "cost": case["min_faults"]}
    assert verdict.to_json() == {**wanted, **PLAIN, **more, "outside": list(verdict.outside)}
    assert len(verdict.min_counterexamples) == case["n_min"]
    assert sorted(map(list, verdict.ff_post)) == sorted(case["ff_post"])


# ----------------------------------------------------------------------------------------------------- all fault sets

LIBERAL = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@settings(max_examples=6, deadline=None, suppress_health_check=LIBERAL)
@given(
    programs(),
    st.sampled_from([(3, 2, 1, 0), (3, 3, 0, 0), (4, 2, 1, 0), (3, 0, 2, 0), (3, 0, 0, 2), (4, 2, 0, 1), (3, 0, 1, 1)]),
    st.sampled_from([None, "bad"]),
)
def test_as_all_sets_of_faults(program: Program, bounds: tuple[int, int, int, int], invariant: str | None) -> None:
    """The search finds what trying every set of faults finds, under every way to choose; and what promises nothing."""
    agrees(program, bounds, invariant)


@settings(max_examples=6, deadline=None, suppress_health_check=LIBERAL)
@given(
    programs(),
    st.sampled_from(
        [
            {"eff": 2, "again": 1},
            {"eff": 0, "again": 1, "late": 1},
            {"eff": 2, "stops": 1},
            {"eff": 0, "restarts": 1},
            {"eff": 2, "pauses": 1},
            {"eff": 0, "pauses": 2},
            {"eff": 0, "restarts": 1, "crashes": 1},
            {"eff": 0, "partitions": 1, "late": 1},
            {"eff": 0, "partitions": 2},
        ]
    ),
    st.sampled_from([None, "bad"]),
)
def test_as_live_faults(program: Program, asked: dict[str, int], invariant: str | None) -> None:
    """The same for what arrives twice, for nodes that are down, and for partitions."""
    same(program, {"eot": 3, **asked}, invariant)


@settings(max_examples=6, deadline=None, suppress_health_check=LIBERAL)
@given(
    programs(choosing=True), st.sampled_from([(3, 2, 0, 0), (3, 0, 1, 0), (3, 0, 0, 1)]), st.sampled_from([None, "bad"])
)
def test_as_all_choices(program: Program, bounds: tuple[int, int, int, int], invariant: str | None) -> None:
    """The same for programs that choose more."""
    agrees(program, bounds, invariant)


def agrees(program: Program, bounds: tuple[int, int, int, int], invariant: str | None) -> None:
    """Hold a verdict within plain bounds against the oracle."""
    eot, eff, crashes, late = bounds
    same(program, {"eot": eot, "eff": eff, "crashes": crashes, "late": late}, invariant)


PARTED = {
    "to no node": 'e("a","b"); persist[s,2]; s("z",X)@async :- e(X,_)@1; pre(X) :- e(X,_); post(X) :- s("z",X);',
    "from no node": 'e("z","a"); persist[s,2]; s(Y,X)@async :- e(X,Y)@1; pre(X) :- e(X,_); post(X) :- s("a",X);',
    "to nobody": 'e("a","b"); on@next :- on; on@async :- e(X,_)@1; pre(X) :- e(X,_); post(X) :- on, e(X,_);',
    "from nobody": 'go@1; persist[s,1]; e("a","b"); s("a")@async :- go; pre("a") :- e(_,_); post(X) :- s(X);',
    "among nodes": 'e("a","b"); persist[s,2]; s(Y,X)@async :- e(X,Y)@1; pre(X) :- e(X,_); post(X) :- s("b",X);',
}


@pytest.mark.parametrize("engine", ["auto", "search"])
@pytest.mark.parametrize("parted", [*PARTED])
def test_partitions_whatever_the_order_of_nodes(parted: str, engine: Engine) -> None:
    """A verdict is the same for nodes in any order; one node is parted from what is no node; sides are said once."""
    program = Program.parse(PARTED[parted])
    asked: dict[str, Any] = {"eot": 3, "eff": 0, "partitions": 2, "engine": engine}
    one, other = (program.verify(**asked, nodes=nodes) for nodes in (["a", "b"], ["b", "a"]))
    assert (one.violation_exists, one.cost, one.proven) == (other.violation_exists, other.cost, other.proven)
    assert one.violation_exists
    assert len(one.min_counterexamples) == len(other.min_counterexamples) == (1 if parted == "among nodes" else 2)
    alone = program.verify(**asked, nodes=["a"])
    assert alone.violation_exists
    assert alone.min_counterexamples[0][0].startswith('parted("a";1,')


def same(program: Program, bounds: dict[str, int], invariant: str | None) -> None:
    """Hold the verdicts of both engines against the oracle, and their schedules against a run."""
    if program.check():
        return
    asked: dict[str, Any] = {"crashes": 0, **bounds, "nodes": NODES}
    faults = EverySide(start=1, **asked)
    asked["invariant"] = invariant
    verdict = program.verify(**asked, engine="search")
    least, sets, promising = brute(program, faults, invariant=invariant)
    assert verdict.min_faults == least
    the_same(list(verdict.min_counterexamples), sets)
    assert (verdict.vacuous == "") is promising
    if importlib.util.find_spec("clingo"):
        solved = program.verify(**asked)
        assert solved.engine == "clingo"
        assert {**solved.to_json(), "choices": None, "engine": ""} == {
            **verdict.to_json(),
            "choices": None,
            "engine": "",
        }
        assert (solved.vacuous, solved.ff_post, solved.open) == (verdict.vacuous, verdict.ff_post, verdict.open)
        verdict = solved
    if verdict.violation_exists:
        again = program.run(1, bounds["eot"], schedule=json.loads(json.dumps(verdict.schedule())))
        assert again.to_json() == verdict.model.to_json()
        for one in verdict.broken:
            assert (one.row in again.at(one.time)[one.relation]) is one.never


ELSEWHERE = {
    "to a place that is no node": 's(X, Y)@async :- e(X, Y); s("z", X)@async :- e(X, _); pre(X) :- e(X, _);'
    'post(X) :- s("z", X);',
    "from a place that is no node": 's(Y, X)@async :- e(X, Y), f(X); e("z", "b"); f("z");'
    "pre(Y) :- e(_, Y); post(Y) :- s(Y, _);",
    "from nobody": "s(Y, 1)@async :- e(_, Y); t(Y)@async :- s(1, _), e(Y, _); t(Y)@async :- f, e(_, Y); f;"
    "pre(Y) :- e(_, Y); post(Y) :- t(Y), s(Y, _);",
    "to nobody": 'on@async :- e(X, _), X == "b"; pre(X) :- e(X, _); post(X) :- on, e(X, _);',
}


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("where", [*ELSEWHERE])
def test_messages_elsewhere(where: str, kind: str) -> None:
    """What goes to a place that is no node, or comes from one, fares in both engines as in a run."""
    program = Program.parse(f'e("a", "b"); e("b", "a"); persist[s, 2]; {ELSEWHERE[where]}')
    messages: list[str] = []
    assert compared(program, {"eot": 3, "eff": 0, kind: 2}, {}, None, messages.append)
    assert "by clingo" in messages


# ------------------------------------------------------------------------------------------------------ other questions


@pytest.mark.parametrize("engine", ["search", "clingo"])
def test_which_choices_were_tried_is_of_the_rules_alone(engine: Engine) -> None:
    """All, or a seed's, where a rule chooses, though no run gives it two to choose from; none where no rule does."""
    if engine == "clingo":
        pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    one = 'p("a", 1)@1; q(X, Y)@next :- p(X, Y), choose((X), (Y)); bad(X) :- q(X, 2);'
    unseen = 'p("a", 1)@1; p("a", 2)@1; q(X, Y)@next :- p(X, Y), choose((X), (Y)); bad(X) :- p(X, 3);'
    plain = 'p("a", 1)@1; q(X, Y)@next :- p(X, Y); bad(X) :- q(X, 2);'
    for text, seed, tried in [
        (one, None, "all"),
        (unseen, None, "all"),
        (one, 3, 3),
        (plain, None, None),
        (plain, 3, None),
    ]:
        verdict = Program.parse(text).verify(eot=3, eff=2, nodes=["a"], invariant="bad", seed=seed, engine=engine)
        assert verdict.engine == engine
        assert verdict.to_json()["choices_tried"] == tried


@pytest.mark.parametrize("engine", ["search", "clingo"])
@pytest.mark.parametrize("total", ["count<X>", "sum<X>", "max<X>"])
def test_a_total_is_of_bindings_and_not_of_rows(engine: Engine, total: str) -> None:
    """What ``_`` stands for is not counted: rows that differ in nothing else are one."""
    if engine == "clingo":
        pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    program = Program.parse(f'p("a", 5, 1)@1; p("a", 5, 2)@1; n(A, {total}) :- p(A, X, _); bad(A, N) :- n(A, N);')
    (broken,) = program.verify(eot=2, eff=0, nodes=["a"], invariant="bad", engine=engine).broken
    assert broken.row == ("a", 1 if total.startswith("count") else 5)
    assert [broken.row] == list(program.run(1, 2).at(1)["bad"])


def test_what_no_answer_depends_on_is_not_asked_of_clingo() -> None:
    """A fraction, or an average, that the specification does not read leaves the question to the solver."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    text = 'p("a")@1; bad(X) :- p(X), notin p(X); w(1.5)@1; n(X, Y)@next :- p(X), w(Y); m(avg<Y>) :- n(_, Y);'
    program = Program.parse(text)
    assert program.verify(eot=3, eff=2, nodes=["a"], invariant="bad").engine == "clingo"
    read = Program.parse(text.replace("notin p(X)", "m(_)"))
    assert "clingo cannot" in read.verify(eot=3, eff=2, nodes=["a"], invariant="bad").engine


def test_an_invariant_broken_without_faults() -> None:
    """An invariant may be broken by no fault at all: one counterexample, the empty set."""
    verdict = Program.parse("p(1)@2; bad(X) :- p(X);").verify(
        eot=3, eff=0, nodes=["a"], invariant="bad", engine="search"
    )
    assert verdict.to_json() == {
        "violation_exists": True,
        "min_faults": 0,
        "min_counterexamples": [[]],
        **PLAIN,
        "choices": [[]],
        "engine": "search",
        "cost": 0,
        "outside": list(verdict.outside),
    }
    assert [(one.row, one.time, one.never) for one in verdict.broken] == [((1,), 2, True)]


def test_events_and_numbers() -> None:
    """Events from outside are part of the run, and nodes may be numbers."""
    events = {1: {"s": [(1, 2)]}, 2: {"s": [(1, 2)]}}
    program = Program.parse(
        "r(Y, X)@async :- s(X, Y); persist[r, 2]; pre(X) :- k(X); k(2); post(Y) :- r(Y, _); s(1, 1);"
    )
    verdict = program.verify(eot=4, eff=3, nodes=[1, 2], events=events)
    assert verdict.min_counterexamples == (("drop(1,2,1)", "drop(1,2,2)"),)


def test_sums_of_few_rows_are_tried_of_many_refused() -> None:
    """A sum of what may be lost is decided for few rows; for many the remedy is reported."""

    def program(rows: int) -> Program:
        sent = "".join(f's("a", "b", {n})@1;' for n in range(1, rows + 1))
        return Program.parse(
            f"{sent} r(Y, N)@async :- s(X, Y, N); persist[r, 2]; t(sum<N>) :- r(_, N);"
            f"pre(1); post(1) :- t({rows * (rows + 1) // 2});"
        )

    assert program(5).verify(eot=3, eff=2, nodes="ab").min_counterexamples == (('drop("a","b",1)',),)
    with pytest.raises(Unverifiable, match="sums up 13 rows"):
        program(13).verify(eot=3, eff=2, nodes="ab", engine="search")


@pytest.mark.parametrize("number", [1_000_000, -1_000_000])
def test_a_sum_beyond_32_bits(number: int) -> None:
    """What the solver cannot add up is left to the search, in verdicts and outcomes; so is what may not come."""
    rows = "".join(f'w("a", {place}, {number});' for place in range(2200))
    program = Program.parse(
        f'{rows} go("b")@1; on("a")@async :- go("b");'
        f"t(N, sum<V>) :- w(N, P, V), P > -1;"
        f"s(N, sum<V>) :- w(N, P, V), P > -1, on(N);"
        f"bad(N) :- t(N, T), T {'>' if number > 0 else '<'} 0;"
    )
    for invariant in ("bad", "t"):
        assert program.verify(eot=2, eff=2, nodes=["a", "b"], invariant=invariant).min_counterexamples == ((),)
    ends = {tuple(row) for one in program.explore(1, 2, relations=["s"]).outcomes for row in one.model.at(2)["s"]}
    assert ends == {("a", 2200 * number)}


def test_the_first_counterexample_is_shown_and_repeated() -> None:
    """The schedule of a verdict shows the violation, and the model and its diagram are of that run."""
    program = Program.load(CASES / "verdicts" / "retry.ded")
    verdict = program.verify(eot=6, eff=3, crashes=1, nodes="abc")
    again = program.run(1, 6, schedule=json.loads(json.dumps(verdict.schedule())))
    assert again.to_json() == verdict.model.to_json()
    assert [one.row for one in verdict.broken] == [("c", "hello")]
    assert ("c", "hello") in set(again.at(6)["pre"]) - set(again.at(6)["post"])
    assert verdict.model.diagram().splitlines() == [
        "time  a           b           c",
        '   1  o----------x|           |  log("b", "hello"), lost by drop("a","b",1)',
        '   1  o---------------------->|  log("c", "hello"), arrives at 2',
        '   2  #           |           |  "a" crashes',
    ]


def test_progress_is_reported() -> None:
    """Each size of sets is reported once, when the smaller ones are done."""
    messages: list[Progress] = []
    program = Program.load(CASES / "verdicts" / "retry.ded")
    verdict = program.verify(eot=6, eff=3, crashes=1, nodes="abc", progress=messages.append, engine="search")
    assert [one.size for one in messages] == [0, 1, 2]
    assert messages[-1].runs < verdict.runs


BROKEN = "p(1) :- q(1)@3; q(1)@3; pre(X) :- p(X); post(X) :- p(X); bad(X, Y) :- p(X), p(Y);"


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"post": "pots"}, Unverifiable, "no relation 'pots'"),
        ({"invariant": "never"}, Unverifiable, "no relation 'never'"),
        ({"pre": "bad"}, Unverifiable, "bad has 2 columns and post 1"),
        ({"eot": 0}, Unverifiable, "before the start"),
        ({"nodes": []}, Unverifiable, "need nodes"),
        ({"nodes": "aba"}, Unverifiable, "named twice"),
        ({"crashes": -1}, Unverifiable, "0 or more"),
        ({"invariant": "bad"}, Unverifiable, "not ahead"),
        ({"events": {1: {"z": [(1,)]}}}, FactError, "does not have"),
    ],
)
def test_questions_without_answer(options: dict[str, Any], error: type[Exception], says: str) -> None:
    """What cannot be verified is reported, with its reason."""
    with pytest.raises(error, match=says):
        Program.parse(BROKEN).verify(**{"eot": 4, "eff": 2, "nodes": "ab", **options})


def test_the_limit_is_no_verdict() -> None:
    """A search that reaches its limit says what it knows instead of a verdict."""
    program = Program.load(CASES / "verdicts" / "relay_forever.ded")
    with pytest.raises(Undecided, match="after 50 runs there is no verdict; none of fewer than 4 faults"):
        program.verify(eot=6, eff=3, crashes=1, nodes="abc", limit=50, engine="search")
    with pytest.raises(DedalusRejected, match="unsafe"):
        Program.parse("p(X) :- q(Y);").verify(eot=6, eff=3, nodes="abc")


def test_a_specification_sees_all_locations() -> None:
    """Rules of a specification may look at several locations, those of the program not."""
    program = Program.load(CASES / "verdicts" / "retry.ded")
    bounds: dict[str, Any] = {"eot": 4, "eff": 2, "crashes": 1, "nodes": "abc"}
    assert {one.reason_class for one in program.check(strict=True)} == {"location"}
    assert program.verify(**bounds, strict=True).min_faults == 2
    with pytest.raises(DedalusRejected, match="location"):
        Program.parse(f"{program.text} log(X, P) :- log(Y, P), node(X, Y);").verify(**bounds, strict=True)


@pytest.mark.parametrize("engine", ["auto", "search"])
@pytest.mark.parametrize(
    "rule", ["q(8 / S) :- p(S);", "q(8 % (S + T))@next :- p(S), p(T);", "q(sum<S>) :- r(S);", "q(avg<S>) :- r(S);"]
)
def test_a_program_that_fails_without_faults_has_no_verdict(rule: str, engine: Engine) -> None:
    """Though what is promised at last depends on nothing that fails."""
    program = Program.parse('e(0)@1; e("a")@1; p(S)@next :- e(S), S == 0; r(S)@next :- e(S); ok(1); ' + rule)
    program = Program([*program.statements, *Program.parse("pre(X) :- ok(X); post(X) :- ok(X);").statements])
    with pytest.raises(DedalusArithmetic):
        program.run(1, 5)
    with pytest.raises(DedalusArithmetic):
        program.verify(eot=5, eff=2, nodes=["a"], engine=engine)
