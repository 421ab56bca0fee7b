"""What owes what arrives in the past to itself is no model, however long the run is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Rule
from syndicate.errors import DedalusParadox, ScheduleError
from tests.strategies import examples
from tests.syndicate.dedalus.programs import lively

RUMOUR = "s(1)@2; r(X)@async :- s(X), notin r(X)@1; r(X)@async :- r(X);"


def sent(*times: tuple[int, int]) -> dict[str, Any]:
    """A schedule of the rumour: when it is sent, and when it arrives."""
    return {"schedule": [{"rel": "r", "tuple": [1], "sent": a, "arrive": b} for a, b in times]}


@pytest.mark.parametrize("until", [3, 10**9])
def test_a_rumour_that_tells_itself_is_no_model(until: int) -> None:
    """Passes settle on it, and a schedule may say it: it is refused nevertheless."""
    program = Program.parse(RUMOUR)
    with pytest.raises(DedalusParadox, match="its own only cause"):
        program.run(until=until, schedule=sent((1, 1), (2, 1)))
    good = Program.parse("s(1)@2; persist[r, 1]; r(X)@async :- s(X); r(X)@async :- r(X);")
    schedule = {"schedule": [{"rel": "r", "tuple": [1], "sent": 2, "arrive": 1}], "default": {"delay": 1}}
    assert good.run(until=4, schedule=schedule).at(1)["r"] == [(1,)]


def test_a_send_of_an_earlier_pass_is_none() -> None:
    """An entry for what only a pass sends that is not the model names no send."""
    program = Program.parse("s(1)@2; a(X)@async :- s(X); b(X)@async :- s(X), notin a(X)@1;")
    schedule = [{"rel": name, "tuple": [1], "sent": 2, "arrive": at} for name, at in (("a", 1), ("b", 3))]
    with pytest.raises(ScheduleError, match=r"names b\(1\)@2 sent at 2|names b\(1\) sent at 2"):
        program.run(until=4, schedule={"schedule": schedule})


def test_a_recorded_arrival_in_the_past_is_of_its_rule_alone() -> None:
    """What another rule sends with @later in other runs is not chosen to arrive before it was sent."""
    program = Program.parse(
        """
        a(1)@1; a(2)@2; persist[p, 1];
        p(X)@async :- a(X);
        p(X)@later :- a(X), notin p(1)@2;
        """
    )
    past = {"rel": "p", "tuple": [2], "sent": 2, "arrive": 1, "rule": 3}
    model = program.run(1, 3, schedule={"schedule": [past], "default": {"delay": 1}})
    said = model.schedule()
    assert past in said["schedule"]
    assert program.run(1, 3, schedule=said).to_json() == model.to_json()
    free = {"schedule": [past], "default": "any"}
    exploration = program.explore(1, 3, schedule=free)
    assert exploration.project(model) in [one.projection for one in exploration.outcomes]
    with pytest.raises(ScheduleError, match="it must arrive later than it was sent"):
        program.explore(1, 3, schedule={"schedule": [{**past, "rule": 4}], "default": "any"})


@settings(
    deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(lively(choices=True), st.integers(0, 30))
def test_runs_are_models_that_exploring_finds(program: list[Rule], seed: int) -> None:
    """What a seed makes of a program with messages into the past is one of its models."""
    compiled = Program(program)
    assume(not compiled.check() and any(rule.kind == "async" for rule in program))
    try:
        model = compiled.run(1, 3, seed=seed)
    except DedalusParadox:
        return
    said = model.schedule()
    exploration = compiled.explore(1, 3, schedule={**said, "default": "any"})
    assert exploration.project(model) in [one.projection for one in exploration.outcomes]
