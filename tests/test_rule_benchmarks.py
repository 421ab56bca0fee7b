"""The benchmarks of Bloom and Dedalus, with tiny sizes: that their oracles, answers and tables can be trusted."""

from __future__ import annotations

import doctest
import json
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import bloom, bloom_ours, closure_side, dedalus, dedalus_cases, dedalus_ours, recursion, verdicts
from benchmarks.flow_data import closure
from benchmarks.graphs import graph, more, size
from benchmarks.protocols import Protocol
from benchmarks.report import Surroundings
from benchmarks.sides import Bench, Case, Measured, installed, take_turns

AROUND = Surroundings("python -m benchmarks.bloom", 3, "today", "0", "CPython", None, "a machine")
BENCHES = pytest.mark.parametrize("bench", [bloom.BENCH, dedalus.BENCH], ids=lambda bench: bench.name)


@pytest.mark.parametrize("module", ["graphs", "recursion", "sides"])
def test_examples(module: str) -> None:
    """The examples in the docstrings hold."""
    outcome = doctest.testmod(import_module(f"benchmarks.{module}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted
    assert not outcome.failed


def test_graphs_are_the_same_for_all_sides() -> None:
    """The same edges each time, as many as asked for, no loops; a directed acyclic graph has no cycle."""
    for kind, edges, nodes in (("chain", 30, 0), ("random", 60, 30), ("dag", 480, 0)):
        result = graph(kind, edges, nodes)
        assert result == graph(kind, edges, nodes)
        assert len(set(result)) == edges
        assert all(a != b for a, b in result)
    assert all(a < b for a, b in graph("dag", 480, 0))
    first = graph("random", 60, 30)
    assert not set(more(first, 5)) & set(first)


@pytest.mark.parametrize("workload", ["closure", "shortest"])
@pytest.mark.parametrize("kind", ["chain", "random"])
def test_paths(workload: str, kind: str) -> None:
    """The first tick, and ticks with one more edge, are right, or there would be no figure."""
    result = bloom_ours.paths(workload, kind, 24)
    assert result["facts"] >= 24
    assert all(value > 0 for value in result.values())
    assert {"end", "front"} <= set(result) if kind == "chain" else "more" in result


@pytest.mark.parametrize("semi_naive", [True, False])
@pytest.mark.parametrize("kind", ["chain", "dag"])
def test_sets(kind: str, *, semi_naive: bool) -> None:
    """Semi-naive and naive."""
    assert bloom_ours.sets(kind, 30, semi_naive=semi_naive)["facts"] > 30


@pytest.mark.parametrize("workload", bloom_ours.TICKED)
def test_ticks(workload: str) -> None:
    """Each program, for some ticks."""
    assert bloom_ours.ticks(workload, 120)["ticks"] > 0


@pytest.mark.parametrize("lattice", ["set", "map", "clock"])
def test_merges(lattice: str) -> None:
    """Each lattice."""
    assert bloom_ours.merges(lattice, 30, 40)["us"] > 0


def test_a_wrong_answer_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the oracle says something else, the process ends without figures."""
    for module, name in ((bloom_ours, "closure"), (bloom_ours, "least"), (dedalus_ours, "joined")):
        monkeypatch.setattr(module, name, lambda *_: [])
    with pytest.raises(SystemExit, match="closure of 24 edges"):
        bloom_ours.paths("closure", "chain", 24)
    with pytest.raises(SystemExit, match="shortest of 24 edges"):
        bloom_ours.paths("shortest", "chain", 24)
    with pytest.raises(SystemExit, match="lset"):
        bloom_ours.sets("chain", 24, semi_naive=True)
    with pytest.raises(SystemExit, match="join is wrong at 1"):
        dedalus_ours.frames("ours", 1_000, 20, 10)
    with pytest.raises(SystemExit, match="1 pairs, said to be 2"):
        closure_side.measured(lambda edges: (2, lambda: edges), [(0, 1)], closure, 2)


def test_the_oracle_of_the_shortest_paths_is_that_of_all_paths() -> None:
    """Dijkstra agrees with relaxing all pairs until nothing changes."""
    edges = graph("random", 40, 15)
    best: dict[Any, int] = {edge: bloom_ours.cost(edge) for edge in edges}
    for middle, a, b in product(range(size(edges)), repeat=3):
        if (a, middle) in best and (middle, b) in best:
            best[a, b] = min(best.get((a, b), 10**9), best[a, middle] + best[middle, b])
    assert sorted(bloom_ours.least(edges)) == sorted((a, b, total) for (a, b), total in best.items())


@pytest.mark.parametrize("engine", ["ours", dedalus_cases.COPYING])
def test_frames(engine: str) -> None:
    """By the program and by copying, the join is what the oracle says at each time that is looked at."""
    result = dedalus_ours.frames(engine, 1_000, 100, 10)
    assert result["joined"] == len(dedalus_ours.joined(dedalus_ours.events(1_000, 100, 10), 100))
    assert dedalus_ours.joined(dedalus_ours.events(1_000, 100, 10), 11) != dedalus_ours.joined(
        dedalus_ours.events(1_000, 100, 10), 10
    )


@pytest.mark.parametrize("engine", ["ours", dedalus_cases.PLAIN])
@pytest.mark.parametrize("kind", ["chain", "random"])
def test_closure(engine: str, kind: str) -> None:
    """By the program and by hand."""
    assert dedalus_ours.closure(engine, kind, 40, 20)["pairs"] > 40


@pytest.mark.parametrize("engine", ["ours", dedalus_cases.PLAIN])
@pytest.mark.parametrize("kind", recursion.RULES)
def test_recursion(engine: str, kind: str) -> None:
    """By the program and by hand, beside an oracle that is neither; a wrong one has no figure."""
    assert dedalus_ours.recursion(engine, kind, 120)["pairs"] > 120
    rows = recursion.facts(kind, 120)
    wrong = recursion.oracle(kind, rows) - {min(recursion.oracle(kind, rows))}
    with pytest.raises(SystemExit, match="the result is wrong"):
        closure_side.measured(lambda _: (len(wrong), lambda: wrong), rows, lambda *_: recursion.oracle(kind, rows), 0)


def test_public_cases() -> None:
    """All explorations and a verdict are as the cases say."""
    chosen = [case for case in dedalus_cases.cases(True) if case.function in ("verdict", "exploration")]
    assert {case.function for case in chosen[-3:]} == {"exploration"}
    for case in [chosen[0], *chosen[-3:]]:
        assert dedalus_ours.FUNCTIONS[case.function]("ours", **case.arguments)["s"] > 0
    with pytest.raises(SystemExit, match="verdict is wrong"):
        dedalus_ours.verdict("ours", **{**chosen[0].arguments, "violation_exists": True})


def test_a_text_by_hand_has_the_same_answers() -> None:
    """What verdicts are compared with is the same question."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    small = [verdicts.verify(3, 6, 3, 1), verdicts.verify(2, 4, 4, 0), verdicts.explore(3, 5)]
    split = [sides for name, sides in verdicts.CASES.items() if "enough" in name or "3PC" in name]
    assert len(split) == 4
    for parsed, ours, hand in (*small, *split):
        assert ours(parsed())[0] == hand()


@BENCHES
def test_every_case_has_a_name_and_is_in_the_tables(bench: Bench) -> None:
    """Each case, fast or slow, has a row, a command for each side, and a peer's program if the side is one."""
    for quick in (True, False):
        every = bench.cases(quick)
        assert len({case.key for case in every}) == len(every)
        figures = dict.fromkeys(["facts", "first", "end", "more", "us", "ticks", "s", "joined", "pairs"], 1.0)
        figures |= {"end worst": 2.0, "more worst": 2.0}
        results = [Measured(case, {engine: [figures] for engine in case.engines}) for case in every]
        text = bench.section(results, AROUND, {}, {})
        assert text.count("\n| ") >= sum(case.function != "merges" for case in every)
        for case in every:
            for engine in case.engines:
                command = bench.command(engine, case)
                assert json.loads(command[-1]).items() >= case.arguments.items()
                assert all(Path(part).exists() for part in command if part.endswith(".py"))


def test_the_section_says_what_is_below_and_what_failed() -> None:
    """A tick too slow, rounds that disagree, a peer that is not there, a failure."""
    case = Case("ticks-join", "ticks", {"workload": "join", "count": 10})
    slow = Measured(case, {"ours": [{"ticks": 9_000.0}, {"ticks": 9_500.0}, {"ticks": 11_000.0}]})
    text = bloom.section([slow], AROUND, {}, {})
    assert "| 9,500 | **below**, unsure |" in text
    closure = Case("closure-chain-500", "closure", {"kind": "chain", "edges": 500, "nodes": 250})
    result = Measured(closure, {"ours": [{"s": 0.5, "pairs": 7.0}], "python": [{"s": 0.25, "pairs": 7.0}]})
    result.failures["clingo"] = "ended with code 1: x"
    text = dedalus.section([result], AROUND, {}, {"pydatalog": "pip could not install it"})
    assert "pydatalog is not measured: pip could not install it" in text
    assert "| chain | 500 | 7 | 0.500 | 0.8 | reach | 0.250 (0.500x) | failed | - | - |" in text
    assert "closure-chain-500, clingo: ended with code 1: x" in text


def test_sides_take_turns() -> None:
    """Round after round; who failed is not tried again, who is slow or absent not measured again or at all."""
    cases = [Case(key, "", {}, ("ours", "bad", "slow", "gone")) for key in "ab"]
    messages: list[str] = []

    def command(engine: str, case: Any) -> list[str]:
        return [sys.executable, "-c", "1 / 0" if engine == "bad" else "print('{\"s\": 1}')"]

    results = take_turns(cases, 2, command, messages.append, absent=frozenset({"gone"}), once=frozenset({"slow"}))
    assert [line.split()[2:] for line in messages] == [
        [key, engine]
        for engines in (("ours", "bad", "slow"), ("ours",))
        for key in "ab"
        for engine in engines
    ]  # fmt: skip
    assert [result.figures["ours"] for result in results] == [[{"s": 1}, {"s": 1}]] * 2
    assert "ZeroDivisionError" in results[0].failures["bad"]


@BENCHES
def test_command(bench: Bench, tmp_path: Path) -> None:
    """It lists, refuses what it does not know, and writes its section."""
    main = bench.as_command()
    listed = CliRunner().invoke(main, ["--list", "--quick"])
    assert listed.output.split() == [case.key for case in bench.cases(True)]
    refused = CliRunner().invoke(main, ["--only", "nonsense"])
    assert (refused.exit_code, "no workload is called 'nonsense'" in refused.output) == (2, True)
    only = "merge-clock-3" if bench.name == "bloom" else "explore-15_choice_advisor"
    ran = CliRunner().invoke(main, ["--quick", "--only", only, "--output", str(tmp_path / "r.md")])
    assert ran.exit_code == 0
    assert (tmp_path / "r.md").read_text().count(f"<!-- {bench.name}: ") == 2


@pytest.mark.parametrize("peer", dedalus_cases.PEERS)
def test_peers_give_the_same_closure(peer: str) -> None:
    """Each that is installed passes its own check."""
    if peer not in installed([peer])[0]:
        pytest.skip(f"{peer} is installed by `make bench` only")
    case = Case("x", "closure", {"kind": "random", "edges": 40, "nodes": 20}, (peer,))
    (result,) = take_turns([case], 1, dedalus.BENCH.command, lambda _: None)
    assert not result.failures
    assert result.figures[peer][0]["pairs"] > 40


@pytest.mark.parametrize(("protocol", "states"), [(Protocol("2pc", 2), 56), (Protocol("paxos", 1), 41)], ids=str)
def test_the_bound_has_the_states_of_the_explicit_search(protocol: Protocol, states: int) -> None:
    """As many as stateright walks through, no timestep less will do, none more has another; ``verify`` has each."""
    before, then, later = (
        {frozenset(row for _, rows in one.projection for row in rows) for one in protocol.states(until).outcomes}
        for until in (protocol.until - 1, protocol.until, protocol.until + 1)
    )
    assert before < then == later
    assert len(then) == states
    rows = frozenset().union(*then)

    def goal(relation: str, row: tuple[object, ...]) -> str:
        return f"{relation}({', '.join(json.dumps(value) for value in row)})"

    for state in then:
        goals = [f"{'' if row in state else 'notin '}{goal(*row)}" for row in sorted(rows, key=str)]
        positive = sorted(goals, key=lambda text: text.startswith("notin"))
        program = protocol.program(f'there("x") :- {", ".join(positive)};')
        assert protocol.bounded(program, "there").violation_exists, state


def test_protocols_are_safe_and_their_faults_are_found() -> None:
    """Within the bound, for all times where induction can say so, and not if somebody does not wait for all."""
    commit, paxos = Protocol("2pc", 5), Protocol("paxos", 2)
    assert commit.program().prove(invariant="split").verdict == "proved"
    assert not commit.bounded(commit.program()).violation_exists
    assert not paxos.bounded(paxos.program()).violation_exists
    hasty, few = 'decided(C, "commit")@next :- plan(C, "commit");', 'quorum("a", "a");'
    assert commit.bounded(commit.program(hasty)).violation_exists
    assert paxos.bounded(paxos.program(few)).violation_exists
