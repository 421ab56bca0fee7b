"""The flow benchmarks: that the oracle, the engines' answers and the tables can be trusted."""

from __future__ import annotations

import pytest

from benchmarks.flow_cases import REACH, WORKLOADS, Case, cases
from benchmarks.flow_data import Data
from benchmarks.flow_ours import Ours, Scratch, circuit_of, memory
from benchmarks.flow_report import flow_section, verdict_of
from benchmarks.flow_side import measure
from benchmarks.report import surroundings
from benchmarks.sides import Measured, select

SIZES = {"closure": (40, 25, 1)}
"""Rows, keys, and rows a delta."""


@pytest.mark.parametrize("engine", [Ours, Scratch])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_our_engines_give_the_oracles_answer(workload: str, engine: type) -> None:
    """Incrementally and from scratch, the result after some deltas is right; measure() raises otherwise."""
    rows, keys, delta = SIZES.get(workload, (300, 150, 20))
    figures = measure(engine, Data(workload, rows, keys), delta, 12, 30.0)
    assert figures["deltas"] == 12
    assert figures["ms"] > 0


def test_a_wrong_answer_has_no_figures() -> None:
    """An engine that forgets a delta is found out."""

    class Forgetful(Ours):
        steps = 0

        def step(self, changes: dict[str, dict[object, int]]) -> None:
            self.steps += 1
            if self.steps != 3:
                super().step(changes)

    with pytest.raises(SystemExit, match="wrong"):
        measure(Forgetful, Data("join", 300, 150), 20, 12, 30.0)


def test_the_oracle_of_the_closure_is_reachability() -> None:
    """The bit sets agree with walking the graph, on graphs with cycles."""
    data = Data("closure", 60, 40)
    onwards: dict[int, set[int]] = {}
    for a, b in data.now[0]:
        onwards.setdefault(a, set()).add(b)

    def reached(start: int) -> set[int]:
        results: set[int] = set()
        ahead = list(onwards.get(start, ()))
        while ahead:
            node = ahead.pop()
            if node not in results:
                results.add(node)
                ahead += onwards.get(node, ())
        return results

    assert data.is_right((a, b) for a in range(40) for b in reached(a))


def test_all_sides_get_the_same_data() -> None:
    """The data depend on the seed and the sizes alone, and a deleted row was there."""
    one, other = Data("join", 100, 50), Data("join", 100, 50)
    for _ in range(20):
        before = [set(side) for side in one.now]
        changes = one.delta(10)
        assert changes == other.delta(10)
        assert all(set(gone) <= side for (_, gone), side in zip(changes, before, strict=True))


def test_memory_is_measured_in_three_states() -> None:
    """Loaded, churned and emptied; a loaded circuit holds something."""
    result = memory("join", 50_000, 25_000)
    assert list(result) == ["loaded", "churned", "emptied"]
    assert result["loaded"] > 0


def test_every_main_case_has_a_target_and_a_name_of_its_own() -> None:
    """The tables have a verdict for each row, and --only can name each case."""
    for quick in (True, False):
        every = cases(quick=quick)
        assert len({case.key for case in every}) == len(every)
        assert {(c.workload, c.arguments["delta"]) for c in every if c.kind == "main"} == set(REACH)
    with pytest.raises(ValueError, match="no workload"):
        select("nonsense", cases())


def test_the_section_names_what_is_missing_and_what_is_below() -> None:
    """A peer that is not there is said with its reason, in a line and by dashes; so is a failure."""
    case = Case("main", "join", {"delta": 10, "deltas": 100}, ("ours", "pathway", "pydbsp"))
    slow = {"ms": 99.0, "preload": 1.0, "worst": 99.0, "deltas": 7}
    result = Measured(case, {"ours": [slow], "pathway": [{**slow, "ms": 49.5}]}, {"polars": "ended with code 1: x"})
    text = flow_section([result], surroundings("x", 1, None), {"pathway": "1"}, {"pydbsp": "needs Python 3.12"}, {})
    assert "pydbsp is not measured: needs Python 3.12" in text
    assert "**below**" in verdict_of(result)
    assert "0.500x, 7 deltas" in text
    assert "main-join-10, polars: ended with code 1: x" in text


def test_the_verdict_is_unsure_where_rounds_disagree() -> None:
    """One round below the target and one above it."""
    case = Case("main", "distinct", {"delta": 10, "deltas": 100})
    rounds = [{"ms": ms, "preload": 0.0, "deltas": 100.0} for ms in (0.07, 0.09, 0.07)]
    assert verdict_of(Measured(case, {"ours": rounds})) == "reach, unsure"


def test_the_circuits_share_their_index() -> None:
    """Both aggregates of the group-by read one indexed stream."""
    indexed = [node for node in circuit_of("group").nodes if node.op == "index_with"]
    assert len(indexed) == 1
