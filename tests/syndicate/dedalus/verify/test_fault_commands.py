"""The commands ``verify`` and ``why``, and the faults of ``run``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from relay.cli.rules import dedalus
from syndicate.dedalus import Program
from syndicate.dedalus.ast import Events
from syndicate.dedalus.verify.verdict import UNASKED
from syndicate.errors import DedalusArithmetic

CASES = Path(__file__).parents[3] / "data" / "dedalus"
VERDICTS = json.loads((CASES / "verdicts" / "expected.json").read_text())
RETRY = CASES / "verdicts" / "retry.ded"
BOUNDS = ["--eot", 6, "--eff", 3, "--crashes", 1, "--nodes", "a,b,c"]


def call(*arguments: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(dedalus, [str(argument) for argument in arguments])


@pytest.mark.parametrize("case", VERDICTS, ids=lambda c: f"{c['program']}-{c['eot']}-{c['eff']}-{c['max_crashes']}")
def test_verify_as_json(case: dict[str, Any]) -> None:
    """The JSON is that of the cases, and more; the exit code says whether it is proven."""
    bounds = ["--eot", case["eot"], "--eff", case["eff"], "--crashes", case["max_crashes"]]
    done = call("verify", CASES / case["program"], *bounds, "--nodes", ",".join(case["nodes"]), "--json")
    assert done.exit_code == int(case["violation_exists"])
    wanted = {name: case[name] for name in ("violation_exists", "min_faults", "min_counterexamples")}
    report = json.loads(done.stdout)
    assert {name: report[name] for name in wanted} == wanted
    assert report["vacuous"] is False


def test_a_counterexample_is_repeated(tmp_path: Path) -> None:
    """What `verify --output` writes, `run --schedule` accepts, and it shows the violation; so does `why`."""
    bad = tmp_path / "bad.json"
    done = call("verify", RETRY, *BOUNDS, "--output", bad)
    assert done.exit_code == 1
    assert "broken by 2 faults; 2 smallest counterexamples" in done.stdout
    assert 'In the first, post("c", "hello") is missing at 6' in done.stdout
    assert f"run {RETRY} --until 6 --schedule {bad}" in done.stdout
    (broken,) = json.loads(bad.read_text())["broken"]
    ran = json.loads(call("run", RETRY, "--until", 6, "--schedule", bad, "--json").stdout)
    assert broken["tuple"] in ran["pre"]["6"]
    assert broken["tuple"] not in ran.get("post", {}).get("6", [])
    drawn = call("run", RETRY, "--until", 6, "--schedule", bad, "--diagram", "text").stdout
    assert drawn.strip() in done.stdout
    asked = call("why", RETRY, "log", "b, hello", "--at", 2, "--not", "--schedule", bad)
    assert 'sent at 1 by "a", and lost by drop("a","b",1)' in asked.stdout


def test_no_counterexample(tmp_path: Path) -> None:
    """Without one, nothing is written, and the exit code says so."""
    bad = tmp_path / "bad.json"
    done = call("verify", RETRY, *BOUNDS[:4], "--nodes", "a,b,c", "--output", bad, "--exit-code")
    assert (done.exit_code, bad.exists()) == (0, False)
    assert "no faults within these bounds break it" in done.stdout
    assert "messages arrive in the next timestep; --delay N" in done.stdout


CHOOSING = """
    peer("a", "b")@1; peer("a", "c")@1; persist[peer, 2]; go("a", 1)@1;
    use(N, M)@next :- go(N, _), peer(N, M), choose((N), (M));
    ask(N, M) :- use(N, M);
    ask(N, M)@next :- ask(N, M), M == "b";
    got(M, 1)@async :- ask(N, M);
    persist[got, 2];
    pre(X) :- go("a", X)@1;
    post(X) :- got(_, X);
"""


def test_what_is_chosen_is_reported(tmp_path: Path) -> None:
    """All choices are tried, or those of one seed: the answer says which; a counterexample repeats what it chose."""
    program, bad = tmp_path / "p.ded", tmp_path / "bad.json"
    program.write_text(CHOOSING)
    bounds = ["--eot", 6, "--nodes", "a,b,c"]
    done = call("verify", program, *bounds, "--eff", 4, "--output", bad)
    assert done.exit_code == 1
    assert 'drop("a","c",2), where use chooses ("a", "c") at 1' in done.stdout
    ran = json.loads(call("run", program, "--until", 6, "--schedule", bad, "--json").stdout)
    assert ran["use"] == {"2": [["a", "c"]]}
    assert "post" not in ran
    assert "break it, whatever is chosen (" in call("verify", program, *bounds, "--eff", 0).stdout
    by_seed = [call("verify", program, *bounds, "--eff", 4, "--seed", seed) for seed in range(8)]
    assert {one.exit_code for one in by_seed} == {0, 1}
    for seed, one in enumerate(by_seed):
        assert f"under the choices of seed {seed} alone" in one.stdout
    report = json.loads(call("verify", program, *bounds, "--eff", 4, "--json").stdout)
    assert report["choices_tried"] == "all"
    assert [[(one["rel"], one["time"], one["chosen"]) for one in each] for each in report["choices"]] == [
        [("use", 1, [["a", "c"]])]
    ]


def test_who_decides_what_is_chosen(tmp_path: Path) -> None:
    """The answer says how many choices were against the seed, or in which share of all drawings faults break it."""
    program, bad = tmp_path / "p.ded", tmp_path / "bad.json"
    program.write_text(CHOOSING)
    bounds = ["--eot", 6, "--nodes", "a,b,c", "--eff", 4]
    holds = next(seed for seed in range(9) if call("verify", program, *bounds, "--seed", seed).exit_code == 0)
    bounded = call("verify", program, *bounds, "--seed", holds, "--choices", 1)
    assert (bounded.exit_code, f"up to 1 choice against those of seed {holds}" in bounded.stdout) == (1, True)
    priced = call("verify", program, *bounds, "--seed", holds, "--cost", "choice=3")
    assert "broken by 1 fault and choices that cost 4" in priced.stdout
    likely = call("verify", program, *bounds, "--choose", "chance", "--output", bad)
    assert (likely.exit_code, "in 1/2 of all drawings (0.5, exactly)" in likely.stdout) == (1, True)
    assert "post" not in json.loads(call("run", program, "--until", 6, "--schedule", bad, "--json").stdout)
    report = json.loads(call("verify", program, *bounds, "--choose", "chance", "--json").stdout)
    assert report["chance"] == {"share": "1/2", "exact": True, "low": 0.5, "high": 0.5, "seeds": None}
    for options, says in [
        (["--eff", 0], "in 0 of all drawings (0, exactly)"),
        (["--eff", 0], "no faults within these bounds break it, in any drawing"),
        (["--eff", 0, "--engine", "search", "--drawings", 9], "nothing is proven of other drawings"),
    ]:
        done = call("verify", program, *bounds[:4], *options, "--choose", "chance")
        assert says in done.stdout
        assert done.exit_code == int("--drawings" in options)
        assert "not in the model: an adversary that chooses" in done.stdout


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ('pre(X) :- got("b", X), notin got("c", X); post(X) :- nothing(X);', [], "post is empty"),
        ("pre(X) :- nothing(X); post(X) :- go(_, X)@1;", [], "is ever in pre"),
        ("pre(2) :- go(_, 1)@1; post(1) :- go(_, 1)@1;", [], "is ever in pre"),
        ("pre(X) :- go(_, X); post(X) :- go(_, X)@1, nothing(X);", [], "post is empty"),
        ("ok(X) :- bad(X);", ["--invariant", "bad"], "no rule and no fact makes a row of bad"),
        ("bad(X) :- gto(_, X);", ["--invariant", "bad"], "no rule and no fact makes a row of gto"),
        ("bad(X) :- ok(X), go(_, X); ok(X) :- gto(X, _);", ["--invariant", "bad"], "no rule can make a row of bad, as"),
        ("bad(X)@async :- ok(X); ok(X)@next :- bad(X);", ["--invariant", "bad"], "makes a row of bad"),
        ("bad(X) :- crash(_, X, _);", ["--invariant", "bad"], "no rule and no fact makes a row of crash"),
    ],
)
def test_a_specification_that_promises_nothing(tmp_path: Path, text: str, options: list[str], why: str) -> None:
    """It is vacuous, and no proof: the text, the JSON and the exit code say so."""
    program = tmp_path / "p.ded"
    program.write_text(f"""
        node("a", "b"); node("a", "c"); go("a", 1)@1; persist[got, 2];
        got(M, X)@async :- go(N, X), node(N, M);
        {text}
    """)
    bounds = ["--eot", 5, "--eff", 3, "--nodes", "a,b,c", *options]
    done = call("verify", program, *bounds)
    assert (done.exit_code, "vacuous" in done.stdout, why in done.stdout) == (1, True, True)
    report = json.loads(call("verify", program, *bounds, "--json").stdout)
    assert (report["violation_exists"], report["vacuous"]) == (False, True)


def test_a_premise_that_faults_alone_make_true_is_not_vacuous(tmp_path: Path) -> None:
    """What obliges after a crash only, and holds then, is proven."""
    program = tmp_path / "p.ded"
    program.write_text('go("b", 1)@1; post(X) :- go(_, X)@1; pre(X) :- go(N, X)@1, crash(N, "a", _);')
    done = call("verify", program, "--eot", 4, "--eff", 2, "--crashes", 1, "--nodes", "a,b")
    assert (done.exit_code, "no faults within these bounds break it" in done.stdout) == (0, True)
    done = call("verify", program, "--eot", 4, "--eff", 2, "--crashes", 0, "--nodes", "a,b")
    assert (done.exit_code, "vacuous" in done.stdout) == (1, True)


def test_an_invariant_of_crashes_is_vacuous_without_them() -> None:
    """It is broken where nodes may stop sending, or stop."""
    program = Program.parse('go("b", 1)@1; bad(X) :- go(_, X)@1, crash(_, "a", N), N > 9;')
    for kind, vacuous in (("crashes", False), ("stops", False), ("restarts", True), ("late", True)):
        bounds: dict[str, Any] = {"eot": 4, "eff": 2, "nodes": ["a", "b"], kind: 1}
        verdict = program.verify(invariant="bad", **bounds)
        assert (verdict.violation_exists, bool(verdict.vacuous)) == (False, vacuous), kind
    program = Program.parse('go("b", 1)@1; bad(X) :- go(_, X), crash(X);')
    assert program.verify(invariant="bad", eot=4, eff=2, crashes=1, nodes=["a", "b"]).vacuous, "it is another relation"


@pytest.mark.parametrize(
    ("events", "vacuous"), [(None, True), ({2: {"q": [("a",)]}}, False), ({2: {"p": [("a", "b")]}}, True)]
)
def test_an_invariant_of_what_comes_from_outside(events: Events | None, vacuous: bool) -> None:
    """It is vacuous without what it reads."""
    program = Program.parse('p("a", "b")@1; bad(X) :- q(X), p(X, X);')
    verdict = program.verify(invariant="bad", eot=4, eff=2, nodes=["a", "b"], events=events)
    assert (verdict.violation_exists, bool(verdict.vacuous)) == (False, vacuous)


def test_a_late_message_splits_three_phase_commit(tmp_path: Path) -> None:
    """It is whole while messages take one timestep; one that takes two is found, drawn, and repeated."""
    program, bad = CASES / "three_phase.ded", tmp_path / "bad.json"
    bounds = ["--eot", 12, "--eff", 0, "--nodes", "a,b,C,d", "--invariant", "split"]
    assert call("verify", program, *bounds).exit_code == 0
    done = call("verify", program, *bounds, "--late", 1, "--output", bad)
    assert done.exit_code == 1
    assert "broken by 1 fault; 9 smallest counterexamples" in done.stdout
    assert '\n  late("C","a",3,1)\n' in done.stdout
    assert 'three_ask("a", "C", "t"), arrives at 3, late("C","a",1,1)' in done.stdout
    assert json.loads(bad.read_text())["net"]["fixed"]["late"] == [["C", "a", 1, 1]]
    drawn = call("run", program, "--until", 12, "--schedule", bad, "--diagram", "text").stdout
    assert drawn.strip() in done.stdout
    assert "split" in json.loads(call("run", program, "--until", 12, "--schedule", bad, "--json").stdout)


def test_run_with_faults(tmp_path: Path) -> None:
    """The faults of a run are drawn by its seed, and recorded."""
    record = tmp_path / "s.json"
    faults = ["--delay", "1-3", "--loss", 0.4, "--duplicate", 0.4, "--crash", "a@4", "--nodes", "a,b,c"]
    first = call("run", RETRY, "--until", 8, "--seed", 5, *faults, "--record", record, "--json")
    assert first.exit_code == 0
    assert first.stdout != call("run", RETRY, "--until", 8, "--seed", 6, *faults, "--json").stdout
    assert first.stdout == call("run", RETRY, "--until", 8, "--schedule", record, "--json").stdout
    assert ["a", "a", 4] in json.loads(first.stdout)["crash"]["1"]
    stopped = json.loads(call("run", RETRY, "--until", 8, "--crash", "a@4", "--stop", "all", "--json").stdout)
    assert "8" not in [time for time, rows in stopped["log"].items() if ["a", "hello"] in rows]
    mermaid = call("run", RETRY, "--until", 2, "--crash", "a@2", "--diagram", "mermaid").stdout.splitlines()
    assert mermaid == [
        "sequenceDiagram",
        "    participant n0 as a",
        "    participant n1 as b",
        "    participant n2 as c",
        "    Note over n0,n2: 1",
        "    n0->>n1: log(#quot;b#quot;, #quot;hello#quot;), arrives at 2",
        "    n0->>n2: log(#quot;c#quot;, #quot;hello#quot;), arrives at 2",
        "    Note over n0,n2: 2",
        "    Note over n0: #quot;a#quot; crashes",
    ]


def test_why() -> None:
    """A row is written as in a program, with `_` for any value, or as JSON."""
    output = call("why", RETRY, "log", '"b", "hello"', "--at", 4).stdout
    assert output.splitlines() == [
        'log("b", "hello")@4, kept since 2 by log(X1, X2)@next :- log(X1, X2);',
        '  sent at 1 by "a": log(M, P)@async :- bcast(N, P), node(N, M);',
        '    bcast("a", "hello")@1: a fact',
        '    node("a", "b")@1: a fact',
    ]
    assert call("why", RETRY, "log", '["b", "hello"]', "--at", 4).stdout == output
    assert call("why", RETRY, "log", "b, _", "--at", 4).stdout == output
    assert 'log("b", "hello")@4' in call("why", RETRY, "log", "b, _", "--at", 4, "--depth", 1).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["verify", RETRY, *BOUNDS[:6]], 2, "--nodes"),
        (["verify", RETRY, *BOUNDS, "--eff", "-1"], 2, "--eff"),
        (["verify", RETRY, *BOUNDS[:6], "--nodes", "a,,b"], 2, "a node without a name"),
        (["verify", RETRY, *BOUNDS, "--post", "pots"], 2, "no relation 'pots'"),
        (["verify", RETRY, *BOUNDS, "--cost", "late"], 2, "is no cost"),
        (["verify", RETRY, *BOUNDS, "--cost", "fire=2"], 2, "no fault 'fire'"),
        (["verify", RETRY, *BOUNDS, "--cost", "late=0"], 2, "costs from 1"),
        (["verify", RETRY, *BOUNDS, "--limit", 3, "--engine", "search"], 1, "after 3 runs there is no verdict"),
        (["verify", RETRY, *BOUNDS, "--output", "/nowhere/s.json"], 1, "cannot write /nowhere/s.json"),
        (["verify", "none.ded", *BOUNDS], 1, "cannot read none.ded"),
        (["run", RETRY, "--until", 3, "--delay", "3-1"], 2, "is no delay"),
        (["run", RETRY, "--until", 3, "--delay", "soon"], 2, "is no delay"),
        (["run", RETRY, "--until", 3, "--loss", "2"], 2, "--loss"),
        (["run", RETRY, "--until", 3, "--crash", "a"], 2, "is no crash"),
        (["run", RETRY, "--until", 3, "--crash", "a@1", "--crash", "a@2"], 2, "named twice"),
        (["verify", RETRY, *BOUNDS[:6], "--nodes", "a,bb"], 2, "names no node 'bb'"),
        (["run", RETRY, "--until", 3, "--crash", "z@1"], 2, "names no node 'z'"),
        (["why", RETRY, "log", "X", "--at", 3], 2, "is no row"),
        (["why", RETRY, "log", "[1, true]", "--at", 3], 2, "is no row"),
        (["why", RETRY, "log", "[1", "--at", 3], 2, "is no row"),
        (["why", RETRY, "log", "a, hello", "--at", 0], 2, "before --start"),
        (["why", RETRY, "log", "z, hello", "--at", 3], 1, "ask with --not"),
        (["why", RETRY, "log", "z, _", "--at", 3], 1, "ask with --not"),
        (["why", RETRY, "log", "a, hello", "--at", 3, "--not"], 1, "ask why"),
        (["why", RETRY, "log", "a", "--at", 3], 1, "has 2 columns"),
        (["why", RETRY, "logs", "a", "--at", 3], 1, "did you mean 'log'"),
    ],
)
def test_mistakes(arguments: list[object], code: int, says: str) -> None:
    """A mistake is reported in a few lines, never by a traceback."""
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in " ".join(done.stderr.split())
    assert len(done.stderr.splitlines()) <= 6


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        (["--delay", 1], 'late("C","a",3,1)'),
        (["--pauses", 1], 'pause("C",5,6)'),
        (["--partitions", 1], 'parted("a","b","d";4,7)'),
        (["--delay", 1, "--pauses", 1, "--cost", "late=3", "--cost", "pause=2"], 'pause("C",5,6)'),
    ],
)
def test_three_phases_split(tmp_path: Path, bounds: list[object], says: str) -> None:
    """What splits three-phase commit is found, and its schedule repeats it."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    file, output = CASES / "three_phase.ded", tmp_path / "bad.json"
    done = call("verify", file, "--eot", 9, "--eff", 0, "--nodes", "C,a,b,d", *bounds, "--output", output)
    assert done.exit_code == 1
    assert says in done.stdout
    run = call("run", file, "--until", 9, "--schedule", output, "--json")
    assert '["t"]' in json.dumps(json.loads(run.stdout)["split"]["9"])


def test_nodes_that_are_not_named() -> None:
    """At who sends and receives, and is not among the nodes, no fault is tried: the verdict says so."""
    bounds = ("--eot", 9, "--eff", 0, "--late", 1, "--invariant", "split")
    left_out = call("verify", CASES / "three_phase.ded", *bounds, "--nodes", "C,1")
    assert (left_out.exit_code, 'faults at "a", "b" and "d", not among --nodes' in left_out.stdout) == (0, True)
    named = call("verify", CASES / "three_phase.ded", *bounds, "--nodes", "C,a,b,d")
    assert (named.exit_code, "not among --nodes" in named.stdout) == (1, False)


def test_what_is_not_asked_for_may_fail(tmp_path: Path) -> None:
    """The verdict does not depend on it."""
    pytest.importorskip("clingo", reason="needs clingo: pip install clingo")
    program = tmp_path / "far.ded"
    program.write_text(
        'p("a", 1)@1; q("b", X)@async :- p("a", X); half(X / 0) :- q("b", X); bad(X) :- q("b", X), X > 5;'
        'p("a", X)@next :- p("a", X);'
    )
    done = call("verify", program, "--eot", 4, "--eff", 0, "--nodes", "a,b", "--late", 1, "--invariant", "bad")
    assert (done.exit_code, "the question does not depend on" in done.stdout) == (0, True)


def test_proofs_for_all_times(tmp_path: Path) -> None:
    """Proved, broken, unknown: only the first is a success; bounds are not asked for, but an invariant is."""
    program = tmp_path / "switch.ded"
    text = "on(1)@1; off(L)@next :- on(L); on(L)@next :- off(L); both(L) :- on(L), off(L);"
    program.write_text(text)
    done = call("verify", program, "--prove", "--invariant", "both")
    assert (done.exit_code, "proved for all times: both never has a row" in done.stdout) == (0, True)
    program.write_text(text + "off(1)@3;")
    done = call("verify", program, "--prove", "--invariant", "both", "--json")
    report = json.loads(done.stdout)
    assert (done.exit_code, report["verdict"], report["time"], report["row"]) == (1, "broken", 3, [1])
    program.write_text("p(1)@1; p(X+1)@next :- p(X); bad() :- p(0);")
    done = call("verify", program, "--prove", "--invariant", "bad")
    assert (done.exit_code, "unknown: " in done.stdout) == (1, True)
    done = call("verify", program, "--prove")
    assert (done.exit_code, "--invariant REL" in done.stderr) == (2, True)
    done = call("verify", program, "--eff", 1, "--nodes", "a")
    assert (done.exit_code, "'--eot'" in done.stderr) == (2, True)


def test_a_proof_leaves_nothing_aside_that_was_asked(tmp_path: Path) -> None:
    """Bounds, a seed, another engine or a file of schedules have no meaning for a proof; a depth has none without."""
    program = tmp_path / "switch.ded"
    program.write_text("on(1)@1; both(L) :- on(L), off(L); off(2)@1;")
    call_ = ("verify", program, "--invariant", "both")
    values: dict[str, object] = {"engine": "search", "cost": "drop=2", "pre": "on", "post": "on", "output": "x.json"}
    numbers = ("eot", "eff", "crashes", "delay", "again", "stops", "restarts", "pauses", "partitions", "seed", "limit")
    for name in (*values, *numbers):
        done = call(*call_, "--prove", f"--{name}", values.get(name, 1))
        assert (done.exit_code, "leave out --" in done.stderr) == (2, True), name
    assert call(*call_, "--prove", "--seconds", 9, "--depth", 2, "--nodes", "1", "--strict", "--json").exit_code == 0
    done = call(*call_, "--eot", 2, "--eff", 0, "--nodes", "1", "--depth", 2)
    assert (done.exit_code, "--depth is for --prove" in done.stderr) == (2, True)


def test_around_what_is_no_recorded_run(tmp_path: Path) -> None:
    """A file that does not say what came from outside is refused: the verdict would be one about another run."""
    program, run = tmp_path / "hi.ded", tmp_path / "run.json"
    program.write_text('known(M, X)@async :- said(L, X), peer(L, M); peer("a", "b"); persist[known, 2]; persist[p, 1];'
                       "p(X)@next :- said(_, X); pre(X) :- p(X); post(X) :- known(_, X);")  # fmt: skip
    asked = ["verify", program, "--eff", 4, "--nodes", "a,b", "--around", run]
    run.write_text(json.dumps({"schedule": [], "start": 1, "until": 6, "events": {"2": {"said": [["a", "hi"]]}}}))
    done = call(*asked)
    assert (done.exit_code, 'drop("a","b",2)' in done.stdout) == (1, True)
    assert "no event log" not in done.stdout
    schedule = {"schedule": [], "start": 1, "until": 6, "events": {"2": {"said": [["b", "hi"]]}}}
    run.write_text(json.dumps({**schedule, "locations": ["b"]}))
    for more in ([], ["--json"]):
        assert "what came from outside to" in (said := call(*asked, *more).stdout)
        assert said.count("no event log") == 1
    run.write_text(json.dumps({**schedule, "locations": ["a", "b"]}))
    assert "no event log" not in call(*asked).stdout
    done = call(*asked, "--prove", "--invariant", "p")
    assert (done.exit_code, "leave out --eff, --around" in done.stderr) == (2, True)
    others: list[dict[str, object]] = [{}, {"until": 6}, {"schedule": [], "events": {}}, {"programs": []}]
    for wrong in others:
        run.write_text(json.dumps(wrong))
        for eot in ([], ["--eot", 6]):
            done = call(*asked, *eot)
            assert (done.exit_code, str(run) in done.stderr, done.stdout) == (1, True, ""), wrong


EACH_KIND = {
    "loss": {"eff": 2},
    "lateness": {"late": 1},
    "duplication": {"again": 1},
    "crashes that stop sending": {"crashes": 1},
    "nodes that stop altogether": {"stops": 1},
    "restarts with nothing": {"restarts": 1},
    "restarts with what was kept": {"pauses": 1},
    "partitions": {"partitions": 1},
}
ONCE = """
    bcast("a", "hi")@1; node("a", "b");
    heard(M, P)@async :- bcast(N, P), node(N, M);
    pre(P) :- bcast(_, P)@1;
"""


@pytest.mark.parametrize("engine", ["clingo", "search"])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_what_only_an_unasked_kind_of_fault_breaks_is_said_not_to_be_in_the_model(kind: str, engine: Any) -> None:
    """Who does not ask for a kind of fault is notified that it is not in the model; who does sees what it breaks."""
    program = Program.parse(ONCE + 'post(P) :- heard("b", P)@2, notin heard("b", P)@3;')
    bounds: dict[str, Any] = {"eot": 4, "eff": 0, "nodes": ["a", "b"], "engine": engine}
    verdict = program.verify(**bounds)
    assert (verdict.proven, set(EACH_KIND) <= set(verdict.outside)) == (True, True)
    asked = program.verify(**{**bounds, **EACH_KIND[kind]})
    assert (asked.violation_exists, set(verdict.outside) - set(asked.outside)) == (True, {kind})


@pytest.mark.parametrize("engine", ["clingo", "search"])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_failure_that_the_question_does_not_depend_on_is_not_in_the_model(kind: str, engine: Any) -> None:
    """What nobody asks for is not computed under faults: it fails in a run, and the verdict says that."""
    bounds: dict[str, Any] = {"eff": 0, **EACH_KIND[kind], "eot": 4, "nodes": ["a", "b"], "engine": engine}
    fine = 'fine(P) :- end(_), heard("b", P)@2, notin heard("b", P)@3; end("a")@4;'
    net = Program.parse(ONCE + fine + "post(P) :- fine(P);").verify(**bounds).net
    program = Program.parse(ONCE + fine + "wrong(P + 1) :- end(_), bcast(_, P)@1, notin fine(P); post(P) :- pre(P);")
    with pytest.raises(DedalusArithmetic):
        program.run(until=4, net=net)
    verdict = program.verify(**bounds)
    assert (verdict.proven, UNASKED in verdict.outside) == (True, True)


def test_what_is_computed_for_the_question_at_all_times_is_in_the_model() -> None:
    """Then nothing of it is said not to be; what is computed at the end alone, or for nobody, may fail elsewhere."""
    left = "left(N - 1)@next :- left(N), N > 0; left(3)@1; bad(N) :- left(N), N < 0;"
    bounds: dict[str, Any] = {"eot": 6, "eff": 0, "nodes": ["a"]}
    cases: list[tuple[str, dict[str, Any], bool]] = [
        (left, {"invariant": "bad"}, False),
        (left + "more(N + 1) :- left(N);", {"invariant": "bad"}, True),
        (left + "pre(1); post(1); double(N + N) :- left(N); post(N) :- double(N);", {}, True),
        ("pre(1); post(1);", {}, False),
    ]
    for text, options, unseen in cases:
        assert (UNASKED in Program.parse(text).verify(**bounds, **options).outside) is unseen, text
