"""Who decides what rules choose: an adversary, of whose choices each has a cost and all have a bound, or chance."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.solving.solver import Engine
from syndicate.dedalus.verify import chance as drawings
from syndicate.dedalus.verify import verdict as verdicts
from syndicate.dedalus.verify.by_solver import Symbolic
from syndicate.errors import Undecided, Unverifiable
from tests.strategies import examples
from tests.syndicate.dedalus.verify.compared import compared
from tests.syndicate.dedalus.verify.senders import NODES, choosing
from tests.syndicate.dedalus.verify.worlds import deciders, worlds

pytest.importorskip("clingo", reason="needs clingo: pip install clingo")

LIBERAL = [HealthCheck.too_slow, HealthCheck.filter_too_much]
BOUNDS = [(3, 2, 0, 0), (3, 0, 1, 0), (3, 0, 0, 1), (3, 0, 0, 0)]
bounds = st.sampled_from(BOUNDS).map(lambda one: dict(zip(("eot", "eff", "crashes", "late"), one, strict=True)))


SEATS = Program.parse(
    """
    asks("s", "ann")@1; asks("s", "bob")@1; asks("s", "cy")@1; asks("t", "ann")@2; asks("t", "bob")@2;
    seat(S, P) :- asks(S, P), choose((S), (P));
    seat(S, P)@next :- seat(S, P);
    bad(P) :- seat("s", P), seat("t", P);
    """
)
ASKED: dict[str, Any] = {"eot": 3, "eff": 0, "nodes": ["s", "t"], "invariant": "bad"}


@settings(max_examples=12, deadline=None, suppress_health_check=LIBERAL)
@given(choosing(), worlds(most=2), deciders(chance=False), st.sampled_from([None, "bad"]))
def test_an_adversary_with_costs_and_bounds(
    program: Program, world: dict[str, Any], decider: dict[str, Any], invariant: str | None
) -> None:
    """Both engines find what is found by trying all faults and all choices, each by what it costs."""
    assume(not program.check())
    assume(compared(program, world, decider, invariant, event))


@settings(max_examples=8, deadline=None, suppress_health_check=LIBERAL)
@given(choosing(), worlds(most=2), st.sampled_from([None, "bad"]))
def test_the_share_of_all_drawings(program: Program, world: dict[str, Any], invariant: str | None) -> None:
    """The solver's share is that of all orders in which what can be chosen may be taken, each run with each fault."""
    assume(not program.check())
    assume(compared(program, world, {"choose": "chance"}, invariant, event))


CHOSEN = """
w("a", 1)@1; w("a", 2)@1; w("a", 3)@1; to("a", "b");
p(A, X) :- w(A, X), choose((A), (X));
q(B, X)@async :- p(A, X), to(A, B);
q(B, X)@next :- q(B, X);
"""
SHARES = {
    "bad(X) :- p(_, X), X > 1;": "broken by chance",
    "bad(X) :- p(_, X), X > 2;": "broken by chance",
    "bad(X) :- q(_, X), X > 1;": "broken by chance",
    "bad(X) :- q(_, X);": "broken always",
    "bad(X) :- q(X, _), p(X, _);": "broken never",
}


@pytest.mark.parametrize("bad", [*SHARES])
@pytest.mark.parametrize("world", [{"eot": 3, "eff": 0}, {"eot": 3, "eff": 2}, {"eot": 3, "eff": 0, "crashes": 1}])
def test_programs_that_are_compared(bad: str, world: dict[str, Any]) -> None:
    """A share of a third or two is that of all orders; an adversary's choices cost what trying all of them says."""
    program = Program.parse(CHOSEN + bad)
    counted: list[str] = []
    assert compared(program, world, {"choose": "chance"}, "bad", counted.append)
    assert counted[:2] == ["by chance, of all drawings", SHARES[bad]]
    for decider in ({}, {"seed": 3}, {"choices": 1}, {"seed": 0, "costs": {"choice": 2}}):
        assert compared(program, world, decider, "bad", counted.append)


@settings(max_examples=12, deadline=None, suppress_health_check=LIBERAL)
@given(choosing(), bounds, st.sampled_from([None, "bad"]))
def test_each_drawing(program: Program, asked: dict[str, Any], invariant: str | None) -> None:
    """What a seed draws is among the broken drawings where the search finds that faults break it."""
    if program.check():
        return
    looked_at: list[drawings.Drawings] = []

    def kept(asked: Symbolic) -> drawings.Drawings:
        looked_at.append(drawings.Drawings(asked))
        return looked_at[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "Drawings", kept)
        program.verify(**asked, nodes=NODES, invariant=invariant, choose="chance")
    for one in looked_at:
        cases = [case for case, _ in one.broken]
        for seed in range(8 if 0 < sum(case.weight for case in cases) < 1 else 2):
            alone = program.verify(**asked, nodes=NODES, invariant=invariant, seed=seed, engine="search")
            assert alone.violation_exists is any(one.draws(seed, case) for case in cases)


def test_the_random_programs_have_shares_of_all_kinds() -> None:
    """The two tests before ask something: shares between none and all, and choices that have to be paid for."""
    shares: set[str] = set()
    paid: set[int] = set()

    @settings(max_examples=70, deadline=None, database=None, derandomize=True, suppress_health_check=LIBERAL)
    @given(choosing())
    def look(program: Program) -> None:
        if not program.check():
            asked: dict[str, Any] = {"eot": 3, "eff": 2, "nodes": NODES, "invariant": "bad"}
            likely = program.verify(**asked, choose="chance").chance
            shares.add("none" if likely is None or not likely.share else "all" if likely.share == 1 else "some")
            verdict = program.verify(**asked, costs={"choice": 1})
            paid.add((verdict.cost or 0) - (verdict.min_faults or 0))

    look()
    assert shares == {"none", "some", "all"}
    assert {0, 1} <= paid


def test_a_third_of_seats() -> None:
    """Two of six ways to seat them are bad, of which each is as likely as another."""
    verdict = SEATS.verify(**ASKED, choose="chance")
    assert verdict.chance is not None
    assert (verdict.chance.share, verdict.chance.exact, verdict.violation_exists) == (Fraction(1, 3), True, True)
    assert verdict.to_json()["choices_tried"] == "chance"
    assert not verdict.proven
    assert "an adversary that chooses" in verdict.outside


@pytest.mark.parametrize("engine", ["search", "clingo"])
def test_what_is_drawn_is_sampled_where_there_is_too_much(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many seeds are tried, of which the bounds tell; none broken of few proves nothing."""
    monkeypatch.setattr(drawings, "MOST_CASES", 0)
    verdict = SEATS.verify(**ASKED, choose="chance", drawings=60, engine=engine)
    assert verdict.chance is not None
    assert (verdict.chance.drawings, verdict.chance.exact) == (60, False)
    alone = [SEATS.verify(**ASKED, seed=seed, engine=engine).violation_exists for seed in range(60)]
    assert verdict.chance.share == Fraction(sum(alone), 60)
    assert verdict.chance.low < 1 / 3 < verdict.chance.high
    promise = {**ASKED, "invariant": None, "pre": "seat", "post": "seat", "engine": engine}
    never = SEATS.verify(**promise, choose="chance", drawings=5)
    assert never.chance is not None
    assert (never.violation_exists, never.vacuous, never.proven) == (False, "", False)
    assert never.chance.share == 0


def test_drawings_that_no_seed_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is broken but rare is shown all the same."""
    monkeypatch.setattr(drawings, "SEEDS", 0)
    verdict = SEATS.verify(**ASKED, choose="chance")
    assert (verdict.violation_exists, verdict.min_faults) == (True, 0)
    assert verdict.model.at(3)["bad"]


@pytest.mark.parametrize("engine", ["auto", "search"])
def test_an_invariant_that_nothing_makes_proves_nothing_by_chance(engine: Engine) -> None:
    """As it proves nothing for an adversary."""
    program = Program.parse(
        'asks("s","ann")@1; asks("s","bob")@1; seat(S,P) :- asks(S,P), choose((S),(P)); bad(P) :- q(P);'
    )
    for choose in ("adversary", "chance"):
        verdict = program.verify(invariant="q", eot=3, eff=2, nodes=["s"], choose=choose, engine=engine)
        assert "no rule and no fact makes a row of q" in (verdict.vacuous or ""), choose
        assert not verdict.proven


def test_the_least_faults_of_drawings_that_no_seed_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what breaks it is rare, the counterexamples are those of least cost all the same."""
    monkeypatch.setattr(drawings, "SEEDS", 0)
    program = Program.parse(
        """
        k("a", 1, 0)@1; k("a", 1, 1)@1; k("a", 2, 0)@1; k("a", 2, 1)@1; node("a", "b"); node("a", "c");
        taken(S, I, J) :- k(S, I, J), choose((S, I), (J));
        go("a", 1) :- taken("a", 1, 0), taken("a", 2, 0);
        log(M, P)@async :- go(N, P), node(N, M);
        persist[log, 2]; pre(P) :- go(_, P); pre(P)@next :- pre(P); post(P) :- log("b", P);
        """
    )
    nodes = ["a", "b", "c"]
    for costs, least in (({"crash": 5}, 1), ({"drop": 5}, 1), ({"crash": 5, "drop": 4}, 4)):
        verdict = program.verify(eot=4, eff=3, crashes=1, nodes=nodes, choose="chance", costs=costs)
        assert verdict.chance is not None
        assert verdict.chance.share == Fraction(1, 4)
        assert verdict.cost == least, costs


@pytest.mark.parametrize(("broken", "of"), [(0, 10), (1, 10), (5, 10), (10, 10), (3, 500)])
def test_bounds_of_a_share(broken: int, of: int) -> None:
    """With the bounds as the truth, so few or so many have a chance of one in forty."""

    def likely(some: range, share: float) -> float:
        return sum(comb(of, n) * share**n * (1 - share) ** (of - n) for n in some)

    one = drawings.sampled(broken, of, 0)
    assert one.low <= broken / of <= one.high
    if broken:
        assert likely(range(broken, of + 1), one.low) == pytest.approx(0.025)
    if broken < of:
        assert likely(range(broken + 1), one.high) == pytest.approx(0.025)


@given(st.data(), st.integers(1, 300))
@settings(max_examples=examples(40), deadline=None)
def test_bounds_hold_whatever_the_undecided_are(data: st.DataObject, of: int) -> None:
    """They are no narrower than those of the same drawings with all of them decided, in whatever way."""
    broken = data.draw(st.integers(0, of - 1))
    undecided = data.draw(st.integers(0, of - broken - 1))
    more = data.draw(st.integers(0, undecided))
    some, whole = drawings.sampled(broken, of, 0, undecided), drawings.sampled(broken + more, of, 0)
    assert some.low <= whole.low <= whole.high <= some.high
    assert some.low == (whole.low if more == 0 else drawings.sampled(broken, of, 0).low)
    assert some.share == Fraction(broken, of - undecided)


@pytest.mark.parametrize("slow", [{1}, {0, 2, 3, 5}, set(range(1, 8))])
def test_drawings_that_take_too_long_are_not_left_out(slow: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are not decided are reported, and the others have their verdicts all the same, also those after
    them.
    """
    monkeypatch.setattr(drawings, "MOST_CASES", 0)
    decide = verdicts._Question.drawn

    def drawn(question: verdicts._Question, seed: int, seconds: float | None, engine: Engine) -> verdicts.Verdict:
        if seed in slow:
            raise Undecided(f"seed {seed} is slow")
        return decide(question, seed, seconds, engine)

    alone = [SEATS.verify(**ASKED, seed=seed).violation_exists for seed in range(8)]
    broken = sum(alone[seed] for seed in range(8) if seed not in slow)
    monkeypatch.setattr(verdicts._Question, "drawn", drawn)
    for seconds in (None, 600):
        verdict = SEATS.verify(**ASKED, choose="chance", drawings=8, seconds=seconds)
        assert verdict.chance == drawings.sampled(broken, 8, 0, len(slow))
        assert verdict.chance is not None
        assert f"{len(slow)} more were not decided in time" in verdict.chance.words
        assert verdict.to_json()["chance"]["seeds"]["undecided"] == len(slow)  # type: ignore[index]
    slow |= set(range(8))
    with pytest.raises(Undecided, match="seed 0 is slow"):
        SEATS.verify(**ASKED, choose="chance", drawings=8)


def test_drawings_for_which_there_was_no_time_count_for_both_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they were begun or not; and a slow one leaves time for the others."""
    decide, now, asked = verdicts._Question.drawn, [0.0], list[int]()

    def drawn(question: verdicts._Question, seed: int, seconds: float | None, engine: Engine) -> verdicts.Verdict:
        assert seconds is not None
        asked.append(seed)
        needed = {3: 1000.0, 4: 10.0}.get(seed, 1.0)
        now[0] += min(needed, seconds)
        if needed > seconds:
            raise Undecided(f"seed {seed} is slow")
        return decide(question, seed, None, engine)

    monkeypatch.setattr(verdicts._Question, "drawn", drawn)
    monkeypatch.setattr("syndicate.dedalus.verify.verdict.monotonic", lambda: now[0])
    many = SEATS.verify(**ASKED, choose="chance", drawings=6, seconds=150.0, engine="search").chance
    assert many is not None
    assert (many.drawings, many.undecided) == (6, 1)
    assert asked == [0, 1, 2, 3, 4, 5]
    few = SEATS.verify(**ASKED, choose="chance", drawings=400, seconds=100.0, engine="search").chance
    assert few is not None
    assert 300 < few.undecided < 400
    assert few.high - few.low > few.undecided / 400


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"choose": "chance", "choices": 1}, "leave out the bound"),
        ({"choose": "chance", "costs": {"choice": 1}}, "leave out the bound"),
        ({"choose": "chance", "drawings": 0}, "a drawing or more"),
        ({"choices": -1}, "0 or more"),
        ({"costs": {"choice": 101}}, "costs from"),
        ({"costs": {"chance": 1}}, "no fault 'chance'"),
    ],
)
def test_questions_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    """They are refused."""
    with pytest.raises(Unverifiable, match=says):
        SEATS.verify(**ASKED, **options)
