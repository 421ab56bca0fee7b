"""A verdict of both engines beside brute force, in any world, whoever decides what rules choose."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis.errors import UnsatisfiedAssumption

from syndicate.dedalus import Program, Verdict
from syndicate.errors import DedalusArithmetic, Undecided, Unverifiable
from tests.syndicate.dedalus.verify.brute import brute, chance
from tests.syndicate.dedalus.verify.worlds import joined, numbered

Asked: TypeAlias = dict[str, Any]


def compared(
    program: Program, world: Asked, decider: Asked, invariant: str | None, count: Callable[[str], object]
) -> bool:
    """Compare a verdict, or the share of drawings; whether with brute force as well, and *count* what it is."""
    return (drawn if "choose" in decider else verified)(program, world, decider, invariant, count)


def repeats(program: Program, verdict: Verdict, until: int) -> None:
    """The schedule of a counterexample is a run in which it is seen."""
    again = program.run(1, until, schedule=json.loads(json.dumps(verdict.schedule())), seed=verdict.seed)
    assert again.to_json() == verdict.model.to_json()


def the_same(results: list[tuple[str, ...]], sets: list[tuple[str, ...]]) -> None:
    """The smallest sets are those of the oracle, that has each way to part nodes by the one side and by the other."""
    if results != sets:
        assert results == [one for one in sets if not any(fault.startswith('parted("a"') for fault in one)]
        assert len(sets) == sum(1 << sum(fault.startswith("parted") for fault in one) for one in results)


def verified(
    program: Program, world: Asked, decider: Asked, invariant: str | None, count: Callable[[str], object]
) -> bool:
    """Compare a verdict; whether with brute force as well."""
    asked = {**joined(world, decider), "invariant": invariant}
    try:
        searched = program.verify(**asked, engine="search", limit=3000)
    except (Undecided, Unverifiable, DedalusArithmetic) as error:
        count(f"not compared: {type(error).__name__}")
        return False
    solved = program.verify(**asked)
    aside = {"choices": 0, "engine": 0}
    assert {**solved.to_json(), **aside} == {**searched.to_json(), **aside}
    assert (solved.vacuous, solved.ff_post, solved.seed) == (searched.vacuous, searched.ff_post, searched.seed)
    count(f"by {solved.engine}")
    try:
        faults = numbered(world, decider)
        least, sets, promising = brute(program, faults, invariant=invariant)
    except UnsatisfiedAssumption:
        return False
    assert solved.min_faults == least
    the_same(list(solved.min_counterexamples), sets)
    assert (solved.vacuous == "") is promising
    count("broken" if solved.violation_exists else "not broken")
    if solved.violation_exists:
        repeats(program, solved, world["eot"])
    return True


def drawn(
    program: Program, world: Asked, decider: Asked, invariant: str | None, count: Callable[[str], object]
) -> bool:
    """Compare the share of drawings that can be broken; whether there is one."""
    try:
        verdict = program.verify(**joined(world, decider), invariant=invariant, drawings=3)
    except (Undecided, Unverifiable, DedalusArithmetic) as error:
        count(f"not compared: {type(error).__name__}")
        return False
    likely = verdict.chance
    if likely is None:
        return verified(program, world, {}, invariant, count)
    count("by chance, of all drawings" if likely.exact else "by chance, sampled")
    try:
        share = chance(program, numbered(world, decider), invariant=invariant)
    except UnsatisfiedAssumption:
        return False
    if likely.exact:
        assert likely.share == share
        assert verdict.violation_exists is (share > 0)
    else:
        assert share < 1 if likely.share == 0 else share > 0
    count(f"broken {'always' if share == 1 else 'by chance' if share else 'never'}")
    if verdict.violation_exists:
        repeats(program, verdict, world["eot"])
    return True
