"""The public cases: models, checks, and what is known of the verdicts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from syndicate.dedalus import Program

CASES = Path(__file__).parents[2] / "data" / "dedalus"
MODELS = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.expected.json"))]
CHECKS = json.loads((CASES / "checks" / "expected.json").read_text())
VERDICTS = json.loads((CASES / "verdicts" / "expected.json").read_text())


def of(case: dict[str, Any]) -> list[str] | None:
    """The relations to compare."""
    return None if case["relations"] == "all" else case["relations"]


@pytest.mark.parametrize("case", [c for c in MODELS if c["mode"] == "single"], ids=lambda c: c["name"])
def test_single_model(case: dict[str, Any]) -> None:
    """The one model, at each time."""
    program = Program.load(CASES / case["program"])
    assert program.check() == []
    assert program.run(case["start"], case["horizon"], schedule=case).to_json(of(case)) == case["expected"]


@pytest.mark.parametrize("case", [c for c in MODELS if c["mode"] == "single"], ids=lambda c: c["name"])
def test_desugared_has_the_same_model(case: dict[str, Any]) -> None:
    """The text of the desugared form is a program with the same model."""
    program = Program.parse(Program.load(CASES / case["program"]).desugared())
    assert program.run(case["start"], case["horizon"], schedule=case).to_json(of(case)) == case["expected"]


@pytest.mark.parametrize("case", [c for c in MODELS if c["mode"] == "all-models"], ids=lambda c: c["name"])
def test_some_model(case: dict[str, Any]) -> None:
    """Seeds find all the models, and nothing else."""
    program = Program.load(CASES / case["program"])
    results = []
    for seed in range(60):
        model = program.run(case["start"], case["horizon"], seed=seed, schedule={"default": case["default"]})
        projected = model.to_json(of(case))
        assert projected in case["models"]
        if projected not in results:
            results.append(projected)
    assert len(results) == len(case["models"])


@pytest.mark.parametrize("case", [c for c in MODELS if c["mode"] == "confluence"], ids=lambda c: c["name"])
def test_confluent(case: dict[str, Any]) -> None:
    """Runs in which everything arrives end alike."""
    program = Program.load(CASES / case["program"])
    complete = 0
    for seed in range(40):
        model = program.run(case["start"], case["horizon"], seed=seed)
        if all(message.arrive for message in model.messages):
            complete += 1
            final = {name: [list(row) for row in model.at(case["final"])[name]] for name in case["relations"]}
            assert final in case["finals"]
    assert complete


@pytest.mark.parametrize("case", CHECKS, ids=lambda c: c["program"])
def test_check(case: dict[str, Any]) -> None:
    """Each program is accepted or rejected, for the reason that is given."""
    program = Program.load(CASES / case["program"])
    special = case.get("reason_class") in ("entangle-strict", "location")
    results = {one.reason_class for one in program.check(strict=special)}
    assert results == ({case["reason_class"]} if case["verdict"] == "reject" else set())
    if special:
        assert program.check() == []


def faults(case: dict[str, Any], chosen: list[str]) -> dict[str, Any]:
    """A network with the faults of a counterexample."""
    drop, crash = [], []
    for fault in chosen:
        name, *args = re.findall(r"\w+", fault)
        if name == "drop":
            drop.append([args[0], args[1], int(args[2])])
        else:
            crash.append([args[0], int(args[1])])
    return {"net": {"nodes": case["nodes"], "fixed": {"drop": drop, "crash": crash}}}


@pytest.mark.parametrize("case", VERDICTS, ids=lambda c: f"{c['program']}-{c['eff']}-{c['max_crashes']}")
def test_counterexamples(case: dict[str, Any]) -> None:
    """Without faults `post` is what must hold; each known counterexample violates the specification."""
    program = Program.load(CASES / case["program"])
    good = program.run(1, case["eot"], schedule=faults(case, [])).at(case["eot"])
    assert sorted(map(list, good["post"])) == sorted(case["ff_post"])
    for chosen in (case["min_counterexamples"] or [])[:20]:
        end = program.run(1, case["eot"], schedule=faults(case, chosen)).at(case["eot"])
        assert any(row in end["pre"] and row not in end["post"] for row in good["post"]), chosen
