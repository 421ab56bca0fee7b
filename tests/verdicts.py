"""``make verdicts``: random programs, decided by the solver, by the searches, and now and then by brute force.

``python -m tests.verdicts verify --programs 10000``: as many programs are compared as are asked for; the first that
differs ends it, with its text.  What is compared with brute force is every hundredth program.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Rule
from syndicate.dedalus.explore.outcome import Mode
from syndicate.dedalus.schedule import Delivery
from syndicate.dedalus.verify.faults import NumberedFaults
from syndicate.errors import DedalusArithmetic, DedalusEndless, ExplorationTooLarge, Undecided, Unverifiable
from tests.syndicate.dedalus.explore.test_clingo import placed, small, truths
from tests.syndicate.dedalus.verify.brute import brute
from tests.syndicate.dedalus.verify.senders import NODES, programs

EVERY = 100
PLAIN = [(3, 2, 1, 0), (3, 3, 0, 0), (4, 2, 1, 0), (3, 0, 2, 0), (3, 0, 0, 2), (4, 2, 0, 1), (3, 0, 1, 1), (4, 3, 2, 1)]
BOUNDS: list[dict[str, int]] = [
    *({"eot": eot, "eff": eff, "crashes": crashes, "late": late} for eot, eff, crashes, late in PLAIN),
    *(
        {"eot": 3, "crashes": 0, **more}
        for more in (
            {"eff": 2, "again": 1},
            {"eff": 0, "again": 2, "late": 1},
            {"eff": 2, "stops": 1},
            {"eff": 0, "restarts": 1},
            {"eff": 2, "pauses": 1},
            {"eff": 0, "restarts": 1, "pauses": 1, "crashes": 1},
            {"eff": 0, "partitions": 1},
            {"eff": 0, "partitions": 2, "stops": 1},
        )
    ),
]


class Enough(Exception):
    """As many programs were compared as were asked for."""


def verified(program: Program, bounds: dict[str, int], invariant: str | None, seed: int | None) -> str:
    """Compare a verdict; what it is, or why there is none."""
    if program.check():
        return ""
    asked: dict[str, Any] = {**bounds, "nodes": NODES, "invariant": invariant, "seed": seed}
    try:
        searched = program.verify(**asked, engine="search", limit=3000)
    except (Undecided, Unverifiable, DedalusArithmetic):
        return ""
    solved = program.verify(**asked)
    aside = {"choices": 0, "engine": 0}
    assert {**solved.to_json(), **aside} == {**searched.to_json(), **aside}
    assert (solved.vacuous, solved.ff_post, solved.seed) == (searched.vacuous, searched.ff_post, searched.seed)
    if not solved.violation_exists:
        return f"not broken, by {solved.engine}"
    kinds = sorted({word.partition("(")[0] for word in solved.min_counterexamples[0]})
    return f"broken by {'+'.join(kinds) or 'nothing'}, by {solved.engine}"


def by_force(program: Program, bounds: dict[str, int], invariant: str | None) -> None:
    """Compare a verdict with all sets of faults and all choices."""
    asked: dict[str, Any] = {**bounds, "nodes": NODES}
    solved = program.verify(**asked, invariant=invariant)
    least, sets, promising = brute(program, NumberedFaults(start=1, **asked), invariant=invariant)
    assert (solved.min_faults, list(solved.min_counterexamples)) == (least, sets)
    assert (solved.vacuous == "") is promising


def explored(rules: list[Rule], until: int, delivery: Delivery, lossless: bool, relations: set[str], mode: Mode) -> str:
    """Compare the outcomes; how many there are, or why that is not known."""
    program = Program(rules)
    known = {atom.relation for rule in rules for atom in (rule.head, *rule.atoms)}
    asked: dict[str, Any] = {"relations": sorted(relations & known), "delivery": delivery, "lossless": lossless}
    if program.check() or not asked["relations"]:
        return ""
    try:
        searched = program.explore(1, until, **asked, mode=mode, engine="search", limit=5000)
        if len(searched.outcomes) > 500:
            return ""
        solved = program.explore(1, until, **asked, mode=mode)
    except (ExplorationTooLarge, DedalusArithmetic, DedalusEndless):
        return ""
    assert truths(solved) == truths(searched)
    for outcome in solved.outcomes[:2]:
        assert solved.project(outcome.model) == outcome.projection
    return f"{'one outcome' if len(solved.outcomes) == 1 else 'several'}, by {solved.engine}"


def main() -> None:
    """Compare, and tell the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["verify", "explore", "confluence"])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    figures: Counter[str] = Counter()
    begun = time.process_time()

    def count(found: str) -> None:
        figures[found or "not compared"] += 1
        if found:
            figures["compared"] += 1
        if figures["compared"] >= told.programs:
            raise Enough

    def compare_verdicts(program: Program, bounds: dict[str, int], invariant: str | None, seed: int | None) -> None:
        found = verified(program, bounds, invariant, seed)
        if found and seed is None and figures["compared"] % EVERY == 0 and bounds["crashes"] < 2:
            figures["with brute force"] += 1
            by_force(program, bounds, invariant)
        count(found)

    def compare_outcomes(
        rules: list[Rule], until: int, delivery: Delivery, lossless: bool, relations: set[str]
    ) -> None:
        mode: Mode = "confluence" if told.what == "confluence" else "all-models"
        count(explored(rules, until, delivery, lossless, relations, mode))

    some = settings(
        max_examples=1_000_000,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    verdicts = given(
        programs() | programs(choosing=True),
        st.sampled_from(BOUNDS),
        st.sampled_from([None, "bad"]),
        st.sampled_from([None, None, None, 3]),
    )
    deliveries: list[Delivery] = ["later", "later", "free"]
    relations = st.sets(st.sampled_from(["p", "q", "r", "s", "a"]), min_size=1)
    outcomes = given(small | placed(), st.just(3), st.sampled_from(deliveries), st.booleans(), relations)
    try:
        if told.what == "verify":
            hypothesis.seed(told.seed)(some(verdicts(compare_verdicts)))()
        else:
            hypothesis.seed(told.seed)(some(outcomes(compare_outcomes)))()
    except (Enough, KeyboardInterrupt):
        pass  # and tell how many there were
    seconds = time.process_time() - begun
    print(f"{told.what}: {figures['compared']} programs, none differs, {seconds:.0f} s: {dict(figures)}")


if __name__ == "__main__":
    main()
