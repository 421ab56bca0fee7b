"""``make verdicts``: random programs in random worlds, decided by the solver, by the searches, and by brute force.

``python -m tests.verdicts verify --programs 10000``: as many programs are compared with brute force as are asked for;
the first that differs ends it, with its text.  What would take brute force too many runs is compared with the search
alone, and counted apart.

``verify`` draws faults of all kinds with bounds and costs, and who decides what rules choose; its oracle makes a run
for each set of faults and each way to choose, or each order in which chance may draw.  ``explore`` and ``confluence``
have two: the stable models of the definition, one after another, and where no rule chooses a run for each way in which
messages may arrive.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import hypothesis
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import Rule
from syndicate.dedalus.explore.outcome import Exploration, Mode
from syndicate.dedalus.schedule import Delivery
from syndicate.errors import DedalusArithmetic, DedalusEndless, ExplorationTooLarge
from tests.syndicate.dedalus.explore.asp import Truth, stable_models
from tests.syndicate.dedalus.explore.brute import TooMany, projected, runs
from tests.syndicate.dedalus.explore.test_clingo import averaged, placed, small, truths
from tests.syndicate.dedalus.verify.compared import compared
from tests.syndicate.dedalus.verify.senders import choosing, programs
from tests.syndicate.dedalus.verify.worlds import deciders, worlds

Asked: TypeAlias = dict[str, Any]
Count: TypeAlias = Callable[[str], None]
UNTIL = 3
BATCH = 1_000


class Enough(Exception):
    """As many programs were compared as were asked for."""


# ------------------------------------------------------------------------------------------------------------ explore


def by_definition(program: Program, asked: Asked) -> set[Truth] | None:
    """The stable models, as clingo enumerates those of the definition; None where it has no text or no end."""
    rules, free = program.core(), asked["delivery"] == "free"
    totals = [total for rule in rules for total in rule.aggregates]
    if averaged(rules) or (free and any(total.form not in ("min", "max") for total in totals)):
        return None
    relations, lossless = asked["relations"], asked["lossless"]
    return stable_models(rules, 1, UNTIL, relations, later=not free, lossless=lossless, most=2000)


def by_runs(program: Program, asked: Asked) -> set[Truth] | None:
    """What is true in some run, of all ways in which messages may arrive; None where there are too many."""
    rules = program.core()
    ahead = any(isinstance(atom.time, int) and atom.time > 1 for rule in rules for atom in rule.atoms)
    if asked["delivery"] == "free" or ahead or any(rule.choices for rule in rules):
        return None
    try:
        return {
            projected(states, asked["relations"])
            for states in runs(rules, 1, UNTIL, lossless=asked["lossless"], most=300)
        }
    except TooMany:
        return None


def seen(exploration: Exploration, mode: Mode) -> set[Truth]:
    """What the outcomes are, each once."""
    models = truths(exploration)
    assert set(models.values()) <= {1}
    return set(models) if mode == "all-models" else {ends(model) for model in models}


def ends(model: Truth) -> Truth:
    """What is true at last."""
    return frozenset(one for one in model if one[1] == UNTIL)


def explored(program: Program, asked: Asked, mode: Mode, count: Count) -> bool:
    """Compare the outcomes; whether with brute force as well."""
    try:
        searched = program.explore(1, UNTIL, **asked, mode=mode, engine="search", limit=5000)
        if len(searched.outcomes) > 500:
            count("not compared: too many outcomes")
            return False
        solved = program.explore(1, UNTIL, **asked, mode=mode)
    except (ExplorationTooLarge, DedalusArithmetic, DedalusEndless) as error:
        count(f"not compared: {type(error).__name__}")
        return False
    assert truths(solved) == truths(searched)
    for outcome in solved.outcomes[:2]:
        assert solved.project(outcome.model) == outcome.projection
    count(f"{'one outcome' if len(solved.outcomes) == 1 else 'several'}, by {solved.engine}")
    compared = False
    for name, oracle in (("the definition", by_definition), ("all runs", by_runs)):
        models = oracle(program, asked)
        if models is not None:
            wanted = models if mode == "all-models" else {ends(model) for model in models}
            assert seen(solved, mode) == wanted
            count(f"beside {name}")
            compared = True
    return compared


# --------------------------------------------------------------------------------------------------------------- main


def main() -> None:
    """Compare, and tell the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["verify", "explore", "confluence"])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    figures: Counter[str] = Counter()
    begun = time.process_time()

    def count(what: str) -> None:
        figures[what] += 1

    def tell(forced: bool) -> None:
        if figures["compared with brute force"] >= arguments.programs:
            raise Enough
        if forced:
            count("compared with brute force")

    def compare_verdicts(program: Program, world: Asked, decider: Asked, invariant: str | None) -> None:
        if program.check():
            return
        note(program.text)
        forced = compared(program, world, decider, invariant, count)
        if forced:
            for name in (
                *(name for name in world if world[name] and name != "eot"),
                *(decider or ["a free adversary"]),
            ):
                count(f"with {name}")
        tell(forced)

    def compare_outcomes(rules: list[Rule], delivery: Delivery, lossless: bool, relations: set[str]) -> None:
        program = Program(rules)
        some = sorted(relations & {atom.relation for rule in rules for atom in (rule.head, *rule.atoms)})
        if some and not program.check():
            note(program.text)
            mode: Mode = "confluence" if arguments.what == "confluence" else "all-models"
            asked = {"relations": some, "delivery": delivery, "lossless": lossless}
            tell(explored(program, asked, mode, count))

    some = settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    verdicts = given(
        programs() | programs(choosing=True) | choosing(), worlds(), deciders(), st.sampled_from([None, "bad"])
    )
    deliveries: list[Delivery] = ["later", "later", "free"]
    relations = st.sets(st.sampled_from(["p", "q", "r", "s", "a"]), min_size=1)
    outcomes = given(small | placed(), st.sampled_from(deliveries), st.booleans(), relations)
    try:
        for batch in itertools.count():  # hypothesis keeps what it has drawn, until its run is over
            compare = verdicts(compare_verdicts) if arguments.what == "verify" else outcomes(compare_outcomes)
            hypothesis.seed(f"{arguments.seed} {batch}")(some(compare))()
    except (Enough, KeyboardInterrupt):
        pass  # and tell how many there were
    seconds = time.process_time() - begun
    print(
        f"{arguments.what}: {figures['compared with brute force']} programs, none differs, {seconds:.0f} s: "
        f"{dict(figures)}"
    )


if __name__ == "__main__":
    main()
