"""The command ``syndicate dedalus``: in a process of its own, but for what is said before anything is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from relay.cli import syndicate_main
from relay.cli.rules import dedalus as group
from tests.relay.commands import within

CASES = Path(__file__).parents[2] / "data" / "dedalus"
LAMP = CASES / "13_toggle_temporal_strat.ded"


def words(*arguments: str | Path) -> list[str]:
    """The command with arguments, as it is started."""
    program = "from relay.cli import syndicate_main; syndicate_main(prog_name='syndicate')"
    return [sys.executable, "-c", program, "dedalus", *map(str, arguments)]


def dedalus(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(words(*arguments), capture_output=True, text=True, check=False)


def here(*arguments: str | Path) -> tuple[int, str, str]:
    """The same in this process: its exit code, and what it printed."""
    return within(syndicate_main, "dedalus", *map(str, arguments), program="syndicate")


def test_run_as_text_and_json() -> None:
    """A model is shown as facts, or as the JSON of the cases; a case file serves as a schedule."""
    shown = dedalus("run", LAMP, "--until", "2")
    assert shown.stdout.splitlines() == ['lamp("l")@1;', 'tick("l")@1;', 'tick("l")@2;']
    case = CASES / "19_retry_one_loss.expected.json"
    wanted = json.loads(case.read_text())
    done = dedalus("run", CASES / wanted["program"], "--until", wanted["horizon"], "--schedule", case, "--json")
    report = json.loads(done.stdout)
    assert {name: report.get(name) for name in wanted["relations"]} == wanted["expected"]


def test_check_says_verdict() -> None:
    """The exit code is that of the verdict; syntax errors are findings too."""
    good = dedalus("check", LAMP, "--json")
    assert (good.returncode, json.loads(good.stdout)) == (0, {"verdict": "accept", "diagnostics": []})
    bad = dedalus("check", CASES / "checks" / "reject_entangle_deductive.ded", "--strict", "--json")
    assert bad.returncode == 1
    (result,) = json.loads(bad.stdout)["diagnostics"]
    assert (result["reason_class"], result["line"], result["column"]) == ("entangle-strict", 2, 1)


def test_help_has_examples() -> None:
    """Each command shows how it is used, with its own name."""
    for name, one in group.commands.items():
        assert f"  syndicate dedalus {name} " in (one.epilog or "")


def test_a_recorded_run_is_repeated(tmp_path: Path) -> None:
    """What `--record` writes is a schedule under which the run is the same."""
    program, record = CASES / "17_ping_pong.ded", tmp_path / "s.json"
    first = dedalus("run", program, "--until", "9", "--seed", "4", "--delivery", "later", "--record", record, "--json")
    again = dedalus("run", program, "--until", "9", "--schedule", record, "--json")
    assert first.returncode == 0
    assert json.loads(first.stdout) == json.loads(again.stdout)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run", LAMP, "--until", "0"], 2, "before --start"),
        (["run", LAMP], 2, "--until"),
        (["run", LAMP, "--until", "3", "--delivery", "soon"], 2, "free"),
        (["run", LAMP, "--until", "3", "--nodes", ""], 2, "give a,b,c"),
        (["verify", LAMP, "--eot", "3", "--eff", "1", "--nodes", ""], 2, "give a,b,c"),
        (["verify", LAMP, "--eot", "3", "--eff", "1", "--nodes", "nobody"], 2, "names no node 'nobody'"),
        (["verify", LAMP, "--eot", "3", "--eff", "1", "--nodes", "l", "--pre", "none"], 2, "no relation 'none'"),
        (["run", "none.ded", "--until", "3"], 1, "cannot read none.ded"),
        (["check", "none.ded"], 1, "cannot read none.ded"),
        (["run", LAMP, "--until", "3", "--schedule", "none.json"], 1, "cannot read the schedule none.json"),
        (["run", LAMP, "--until", "3", "--schedule", LAMP], 1, "is no JSON"),
        (["run", CASES / "01_persistence.ded", "--until", "1000000000"], 1, "end the run earlier"),
        (["run", CASES / "checks" / "reject_arity.ded", "--until", "3"], 1, "arity"),
    ],
)
def test_mistakes(arguments: list[str | Path], code: int, says: str) -> None:
    """A mistake is reported in a few lines, never by a traceback."""
    returned, out, err = here(*arguments)
    assert (returned, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", LAMP, "--until", "0"],
        ["run", LAMP],
        ["check", "none.ded"],
        ["verify", LAMP, "--eot", "3", "--nodes", ""],
    ],
)
def test_mistakes_as_a_process(arguments: list[str | Path]) -> None:
    """It says the same, and ends with the same code."""
    done = dedalus(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == here(*arguments)


@pytest.mark.parametrize(("kind", "code"), [("later", 1), ("next", 0)])
def test_explore_says_confluence_if_asked(tmp_path: Path, kind: str, code: int) -> None:
    """Several outcomes are no failure, but for who asks for one."""
    program = tmp_path / "race.ded"
    program.write_text(
        'a(1)@1; b(X)@later :- a(X); c(X)@KIND :- a(X); won("b") :- b(_), notin c(_); persist[c, 1]; persist[won, 1];'
        .replace("KIND", kind)
    )  # fmt: skip
    asked: list[str | Path] = ["explore", program, "--until", "3", "--relations", "won", "--mode", "confluence"]
    assert dedalus(*asked).returncode == 0
    done = dedalus(*asked, "--confluent")
    assert (done.returncode, "not confluent" in done.stdout) == (code, code == 1)
    assert dedalus(*asked[:-2], "--confluent").returncode == 2
