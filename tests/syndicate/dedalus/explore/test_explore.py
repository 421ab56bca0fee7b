"""The explorer: the cases, brute force, replays, bounds, and the command."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program, Schedule
from syndicate.dedalus.ast import Choice as Choose
from syndicate.dedalus.ast import Rule, Variable
from syndicate.dedalus.explore.explorer import Explorer
from syndicate.dedalus.schedule import Dependencies
from syndicate.errors import DedalusParadox, DedalusRejected, ExplorationTooLarge, FactError, ScheduleError
from tests.strategies import examples
from tests.syndicate.dedalus.explore.brute import TooMany, projected, runs
from tests.syndicate.dedalus.programs import lively
from tests.syndicate.dedalus.test_command import dedalus, words
from tests.work import PATIENCE

CASES = Path(__file__).parents[3] / "data" / "dedalus"
MODELS = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.expected.json"))]
EXPLORED = [case for case in MODELS if case["mode"] != "single"]
RANDOM = settings(
    deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
RACE = """
bid("ann", 3)@1; bid("bob", 5)@1; close()@2; persist[seen, 2]; persist[closed, 0]; persist[sold, 2];
seen(X, N)@later :- bid(X, N);  closed()@later :- close();
best(max<N>) :- seen(_, N);
sold(X, N)@next :- seen(X, N), best(N), closed(), notin sold(_, _);
"""
ENDLESS = "n(1)@1; n(2)@1; persist[n, 1]; m(X, Y)@async :- n(X), n(Y); n(X + Y)@next :- m(X, Y), X + Y < 40;"

STRAY = {"rel": "seen", "tuple": ["x", 1], "sent": 1, "arrive": 2}


def options(case: dict[str, Any]) -> dict[str, Any]:
    """How a case is explored."""
    relations = None if case["relations"] == "all" else case["relations"]
    return {"relations": relations, "mode": case["mode"], "final": case.get("final"), "schedule": case}


def wanted(case: dict[str, Any]) -> dict[str, Any]:
    """What is to be found."""
    if case["mode"] == "all-models":
        return {"models": case["models"]}
    return {"finals": case["finals"], "confluent": len(case["finals"]) == 1}


@pytest.mark.parametrize("case", EXPLORED, ids=lambda c: c["name"])
def test_cases(case: dict[str, Any]) -> None:
    """Exactly the outcomes of the case, each with a schedule under which it comes about."""
    program = Program.load(CASES / case["program"])
    exploration = program.explore(case["start"], case["horizon"], **options(case))
    assert exploration.to_json() == wanted(case)
    for outcome in exploration.outcomes:
        again = program.run(case["start"], case["horizon"], schedule=outcome.schedule())
        assert exploration.project(again) == outcome.projection


@pytest.mark.parametrize("case", EXPLORED, ids=lambda c: c["name"])
def test_cases_by_command(case: dict[str, Any]) -> None:
    """The same from the command line, where the case file serves as the schedule."""
    final = ["--final", case["final"]] if "final" in case else []
    file = CASES / f"{case['name']}.expected.json"
    bounds = ["--start", case["start"], "--until", case["horizon"], "--relations", ",".join(case["relations"])]
    arguments = [*bounds, "--mode", case["mode"], *final, "--schedule", file, "--json"]
    done = dedalus("explore", CASES / case["program"], *map(str, arguments))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == wanted(case)


@pytest.mark.parametrize("case", [c for c in MODELS if c["mode"] == "single"], ids=lambda c: c["name"])
def test_a_fixed_schedule_has_one_model(case: dict[str, Any]) -> None:
    """Where nothing is left to be tried, exploring is running."""
    program = Program.load(CASES / case["program"])
    schedule = Schedule.of(case)
    if case["name"] == "27_same_tuple_two_sends":
        schedule = Schedule({**schedule.arrive, ("r", ("m",), 5): ()})
    relations = None if case["relations"] == "all" else case["relations"]
    exploration = program.explore(case["start"], case["horizon"], relations=relations, schedule=schedule)
    assert exploration.to_json() == {"models": [case["expected"]]}


@RANDOM
@given(lively(choices=False, most=3), st.booleans(), st.sets(st.sampled_from(["p", "q", "r"]), min_size=1))
def test_brute_force(program: list[Rule], lossless: bool, asked: set[str]) -> None:
    """The reductions lose nothing and add nothing, in both modes."""
    assume(not Program(program).check())
    start, until, final = 2, 5, 4  # the oracle does not look ahead
    signature = {atom.relation for rule in program for atom in (rule.head, *rule.atoms)}
    relations = sorted(asked & signature)
    assume(relations)
    compiled = Program(program)
    try:
        states = list(runs(compiled.core(), start, until, lossless=lossless, most=300))
    except TooMany:
        assume(False)
        raise
    exploration = compiled.explore(start, until, relations=relations, delivery="later", lossless=lossless)
    models = [frozenset((n, at, row) for at, rows in one.projection for n, row in rows) for one in exploration.outcomes]
    assert len(models) == len(set(models))
    assert set(models) == {projected(one, relations) for one in states}
    ends = compiled.explore(
        start, until, relations=relations, delivery="later", lossless=lossless, mode="confluence", final=final
    )
    finals = {
        frozenset((n, row) for n, row in facts) for one in ends.outcomes for _, facts in one.projection or ((0, ()),)
    }
    assert finals == {frozenset((n, row) for n in relations for row in one[final].get(n, ())) for one in states}
    assert len(ends.outcomes) == len(finals)
    for outcome in [*exploration.outcomes[:4], *ends.outcomes[:4]]:
        again = compiled.run(start, until, schedule=outcome.schedule()).to_json(relations)
        assert again == outcome.model.to_json(relations)
    for outcome in ends.outcomes[:4]:
        assert ends.project(outcome.model) == outcome.projection


@RANDOM
@given(lively(), st.integers(0, 9))
def test_recorded_choices_are_replayed(program: list[Rule], seed: int) -> None:
    """What a seed chose and delivered is in the schedule of its model."""
    assume(not Program(program).check())
    compiled = Program(program)
    try:
        first = compiled.run(1, 6, seed=seed, delivery="later")
    except DedalusParadox:  # it reads at a constant time what it makes of that
        return
    again = compiled.run(1, 6, schedule=json.loads(json.dumps(first.schedule())))
    assert again.to_json() == first.to_json()
    assert again.schedule() == first.schedule()


@given(st.sets(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=7))
def test_maximal_choices(pairs: set[tuple[int, int]]) -> None:
    """Those sets, of all there are, in which the dependencies hold and to which nothing can be added."""
    x, y = Variable("X"), Variable("Y")
    both = Dependencies([Choose((x,), (y,)), Choose((y,), (x,))])
    rows = [(a, b, b, a) for a, b in pairs]
    good = []
    for bits in range(2 ** len(rows)):
        some = [row for n, row in enumerate(rows) if bits >> n & 1]
        if all(both.agree(one, other) for one in some for other in some):
            good.append(frozenset(some))
    results = list(both.maximal(rows))
    assert len(results) == len(set(results))
    assert set(results) == {one for one in good if not any(one < other for other in good)}


def test_all_choices() -> None:
    """Each maximal choice is an outcome; what a schedule chooses is fixed."""
    text = "a(1)@1; a(2)@1; m(X, Y) :- a(X), a(Y), choose((X), (Y)), choose((Y), (X));"
    program = Program.parse(text)
    exploration = program.explore(until=1, relations=["m"]).to_json()["models"]
    assert exploration == [{"m": {"1": [[1, 1], [2, 2]]}}, {"m": {"1": [[1, 2], [2, 1]]}}]
    fixed = {"choices": [{"rule": 2, "time": 1, "chosen": [[1, 2, 2, 1]]}]}
    assert program.explore(until=1, relations=["m"], schedule=fixed).to_json()["models"] == exploration[1:]
    assert program.run(until=1, schedule=fixed).to_json(["m"]) == exploration[1]


def test_two_runs_that_end_differently() -> None:
    """A verdict against confluence comes with two schedules that differ in one message."""
    program = Program.parse(RACE)
    exploration = program.explore(until=6, relations=["sold"], mode="confluence")
    assert (exploration.confluent, len(exploration.outcomes)) == (False, 3)
    difference = exploration.difference()
    assert difference is not None
    assert len(difference.entries()) == 1
    ends = [program.run(until=6, schedule=o.schedule()).at(6)["sold"] for o in (difference.one, difference.other)]
    assert ends[0] != ends[1]


def test_a_monotone_program_is_not_permuted() -> None:
    """Where messages are only ever added up, the work grows with time and not with the number of schedules."""
    facts = " ".join(f"in({n})@1;" for n in range(30))
    text = facts + "persist[s, 1]; s(X)@{} :- in(X); both(X, Y) :- s(X), s(Y), X < Y;"
    for kind in ("later", "async"):
        exploration = Program.parse(text.format(kind)).explore(until=6, relations=["both"], mode="confluence")
        assert (exploration.confluent, len(exploration.outcomes[0].rows()["both"])) == (True, 435)
        assert exploration.steps < 50
        assert len(exploration.outcomes[0].model.at(6)["s"]) == 30


def test_what_nobody_asked_for_is_left_out() -> None:
    """Messages that cannot influence what is asked for are not tried."""
    program = Program.parse("e(1); e(2); e(3); noise(X)@async :- e(X); n(count<X>) :- noise(X); q(X)@next :- e(X);")
    assert program.explore(until=9, relations=["q"], engine="search").steps == 9


def protocol(name: str, until: int, **options: Any) -> Explorer:
    """How a protocol is explored."""
    schedule = {"net": {"nodes": ["a", "b", "c", "d", "C"]}, "default": "any"}
    program = Program.load(CASES / "verdicts" / f"{name}.ded")
    asked: dict[str, Any] = {"relations": ["post"], "mode": "confluence", "delivery": "later"}
    return program.explorer(until=until, schedule=schedule, **asked, **options)


@pytest.mark.parametrize("name", ["two_pc_optimist", "retry", "relay_forever", "two_pc_timeout_optimist"])
def test_protocols(name: str) -> None:
    """A verdict on a protocol takes a few thousand steps, not one for each order of its messages."""
    space = protocol(name, 8).run()
    assert space.confluent is (name.startswith("re"))
    assert space.steps < 20_000


def test_a_space_that_is_too_large_ends_at_its_limit() -> None:
    """And the error says what to do."""
    with pytest.raises(ExplorationTooLarge, match="end earlier"):
        protocol("ack_relay", 8, limit=30_000, engine="search").run()


def test_events_are_given() -> None:
    """Events from outside count, also of relations that no rule derives."""
    program = Program.parse("q(X)@later :- e(X); p(X) :- e(X);")
    exploration = program.explore(until=2, relations=["e", "q"], events={1: {"e": [(7,)]}})
    assert [one.rows() for one in exploration.outcomes] == [{"e": [[7]]}, {"e": [[7]], "q": [[7]]}]


def test_causal_delivery() -> None:
    """Arrivals at an earlier time of another's clock are tried, unless something would come before its cause."""
    program = Program.parse('e("a", "b")@2; r(To, From)@async :- e(From, To); s(To)@async :- r(From, To);')
    survivors = {
        delivery: program.explore(until=2, relations=["s"], delivery=delivery) for delivery in ("free", "causal")
    }
    free, causal = ([one.times() for one in survivors[delivery].outcomes] for delivery in ("free", "causal"))
    assert {"s": {"1": [["a"]]}} not in [{"s": one.get("s")} for one in causal]
    assert len(causal) <= len(free)
    for outcome in survivors["causal"].outcomes:
        program.run(until=2, schedule=outcome.schedule(), delivery="causal")


def test_bounds() -> None:
    """What is too large says so, how far it came, and what to do."""
    program = Program.parse(ENDLESS)
    with pytest.raises(
        ExplorationTooLarge, match=r"500 timesteps were tried.*delivery 'later'.*raise the limit"
    ) as messages:
        program.explore(until=8, limit=500, engine="search")
    partial = messages.value.partial
    assert partial.to_json()["complete"] is False  # type: ignore[attr-defined]
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    with pytest.raises(ExplorationTooLarge, match=r"50 answers were looked at.*raise the limit"):
        program.explore(until=4, limit=50)


def test_an_interruption_keeps_what_was_found() -> None:
    """After an interruption there are outcomes, marked as not complete."""

    def stop(explorer: Explorer) -> None:
        if explorer.outcomes:
            raise KeyboardInterrupt

    explorer = Program.parse(ENDLESS).explorer(until=4, delivery="later", progress=stop)
    with pytest.raises(KeyboardInterrupt):
        explorer.run()
    exploration = explorer.found(complete=False)
    assert exploration.outcomes
    assert exploration.to_json()["complete"] is False
    assert exploration.confluent in (None, False)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"relations": ["solt"]}, FactError, "did you mean 'sold'"),
        ({"mode": "some"}, ScheduleError, "there is no mode"),
        ({"final": 99}, ScheduleError, "not within the run"),
        ({"until": 0}, ScheduleError, "no timestep"),
        ({"delivery": "soon"}, ScheduleError, "no delivery"),
        ({"schedule": {"choices": [3]}}, ScheduleError, "choices.0. needs"),
        ({"schedule": {"choices": [{"rule": 0, "time": 1, "chosen": []}]}}, ScheduleError, "has no choose"),
        (
            {"schedule": {"schedule": [{"rel": "seen", "tuple": ["x", 1], "sent": 1, "arrive": 2}]}},
            ScheduleError,
            "no run",
        ),
        ({"schedule": {"net": {"fixed": {"crash": [["a", 1]]}, "stop": "all"}}}, ScheduleError, "stop sending"),
    ],
)
def test_mistakes(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    """What makes no sense is refused."""
    with pytest.raises(error, match=says):
        Program.parse(RACE).explore(**{"until": 4, **arguments})
    with pytest.raises(DedalusRejected):
        Program.parse("p(1); p(1, 2);").explore()


def test_command_for_people(tmp_path: Path) -> None:
    """The text says the verdict, the outcomes and two runs; the schedules that are recorded can be run."""
    file = tmp_path / "race.ded"
    file.write_text(RACE)
    shown = dedalus(
        "explore", file, "--until", "6", "--relations", "sold", "--mode", "confluence", "--record", tmp_path / "o.json"
    )
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("not confluent at 6 (3 outcomes")
    assert lines[1:4] == ["  1: (nothing)", '  2: sold("ann", 3);', '  3: sold("bob", 5);']
    assert " sent at " in lines[5]
    assert " arrives at " in lines[5]
    again = dedalus("run", file, "--until", "6", "--schedule", tmp_path / "o.2.json", "--json")
    assert json.loads(again.stdout)["sold"]["6"] == [["ann", 3]]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--until", "0"], 2, "before --start"),
        (["--until", "4", "--final", "9"], 2, "--final 9"),
        (["--until", "4", "--relations", "solt"], 2, "did you mean"),
        (["--until", "4", "--relations", ""], 2, "a relation without a name: give p,q"),
    ],
)
def test_command_mistakes(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    """A mistake is reported in a few lines."""
    file = tmp_path / "race.ded"
    file.write_text(RACE)
    done = dedalus("explore", file, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--limit", "60", "--engine", "search"], "raise the limit"),
        (["--seconds", "0.000001"], "give more time (--seconds"),
    ],
)
def test_a_bound_shows_what_was_found(tmp_path: Path, arguments: list[str], says: str) -> None:
    """Where a bound ends it, the outcomes so far are shown, marked, and recorded; the exit code says that it failed."""
    file = tmp_path / "race.ded"
    file.write_text(RACE)
    asked: list[str | Path] = ["explore", file, "--until", "9", "--relations", "sold", *arguments]
    done = dedalus(*asked, "--record", tmp_path / "o")
    count = len(list(tmp_path.glob("o.*.json")))
    shown = done.stdout.splitlines()
    assert done.returncode == 1
    assert shown[0].startswith(f"not complete, there may be more: {count} model")
    assert len(shown) == count + 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    result = dedalus(*asked, "--json")
    assert (result.returncode, json.loads(result.stdout)["complete"]) == (1, False)
    if "--limit" in arguments:
        assert count == len(json.loads(result.stdout)["models"]) > 0


def test_interrupted_command(tmp_path: Path) -> None:
    """Ctrl-C shows what was found, and exits with 130."""
    file = tmp_path / "endless.ded"
    file.write_text(ENDLESS)
    bounds = ["--until", "8", "--delivery", "later", "--limit", "100000000", "--seconds", "0"]
    command = words("explore", file, *bounds, "--json")
    for wait in (2, 6, 18, 54, 162):  # until the command has shown an outcome, however busy the machine is
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=PATIENCE)
        if out and json.loads(out)["models"]:
            break
    assert process.returncode == 130
    report = json.loads(out)
    assert report["complete"] is False
    assert report["models"]
