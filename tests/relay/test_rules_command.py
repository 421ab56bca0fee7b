"""The commands ``syndicate rules``: each verb for each language, and the names of one language as its other names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import relay.cli.rules
from relay.cli import syndicate_main
from relay.cli.rules import bloom, dedalus, rules
from relay.cli.rules.verb import Verb

PATHS = """
from syndicate.bloom import Bloom, bloom, table
from syndicate.dedalus import Program

class Paths(Bloom):
    link = table(["x", "y"], [])
    path = table(["x", "y"], [])
    @bloom
    def rules(self):
        self.path <= self.link
        self.path <= (self.link * self.path).pairs((self.link.y, self.path.x), lambda l, p: (l.x, p.y))

lamp = Program.parse("on(X)@next :- press(X), notin on(X); press(1)@1;")
number = 3
"""
LAMP = 'persist[on, 1]; on(X) :- press(X); told(Y, X)@async :- on(X), near(X, Y); press("l")@2; near("l", "m")@2;'
ROWS = '{"into": "link", "rows": [[1, 2], [2, 3]]}\n{"into": "link", "rows": [[3, 4]], "tick": 1}\n'


def commands(group: click.Group) -> dict[str, click.Command]:
    """All that a family has, imported."""
    ctx = click.Context(group)
    results = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
    return {name: command for name, command in results.items() if command is not None}


VERBS = [one for one in commands(rules).values() if isinstance(one, Verb)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with programs in both languages, and we are in it."""
    (tmp_path / "paths.py").write_text(PATHS)
    (tmp_path / "lamp.ded").write_text(LAMP)
    (tmp_path / "rows.jsonl").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("paths", None)


def syndicate(*words: str, lines: str = "") -> Result:
    """Run a command."""
    return CliRunner().invoke(syndicate_main, words, input=lines, prog_name="syndicate")


BLOOM = ["paths.py:Paths"]
FED = [*BLOOM, "--input", "rows.jsonl"]
RUN = ["lamp.ded", "--until", "4"]
CALLS: dict[tuple[str, str], list[list[str]]] = {
    ("bloom", "check"): [BLOOM, [*BLOOM, "--json", "--confluent"], [*BLOOM, "--frob"]],
    ("bloom", "plot"): [BLOOM, [*BLOOM, "--format", "json", "--collapse"], [*BLOOM, "--output", "/no/such/file"]],
    ("bloom", "run"): [FED, [*FED, "--json"], [*FED, "--ticks", "1"], [*BLOOM, "--input", "nothing"]],
    ("bloom", "trace"): [FED, [*FED, "--format", "html"], [*BLOOM, "--frob"]],
    ("bloom", "why"): [
        [BLOOM[0], "path", "1, 3", "--input", "rows.jsonl"],
        [BLOOM[0], "path", "[3, 1]", "--not", "--input", "rows.jsonl"],
        [BLOOM[0], "path", "3, _"],
        [BLOOM[0], "path", "3, 1"],
    ],
    ("bloom", "together"): [[*BLOOM, "nothing.log"], BLOOM],
    ("bloom", "repl"): [BLOOM, []],
    ("dedalus", "check"): [["lamp.ded"], ["lamp.ded", "--strict", "--json"], ["nothing.ded"]],
    ("dedalus", "plot"): [["lamp.ded"], ["lamp.ded", "--format", "json", "--collapse"]],
    ("dedalus", "run"): [RUN, [*RUN, "--json"], [*RUN, "--crash", "x"], [*RUN, "--loss", "1", "--diagram", "text"]],
    ("dedalus", "trace"): [RUN, [*RUN, "--json"], ["lamp.ded", "--until", "0"]],
    ("dedalus", "why"): [["lamp.ded", "on", '"l"', "--at", "3"], ["lamp.ded", "on", "1", "--at", "3", "--not"]],
    ("dedalus", "explore"): [[*RUN, "--delivery", "later"], [*RUN, "--final", "9"]],
    ("dedalus", "verify"): [
        ["lamp.ded", "--eot", "4", "--eff", "2", "--nodes", "l,m", "--invariant", "on", "--json"],
        ["lamp.ded", "--eot", "4", "--eff", "2", "--nodes", "l,m", "--invariant", "on"],
    ],
    ("dedalus", "live"): [["lamp.ded", "--at", "l", "--connect", "frob"], ["nothing.ded", "--at", "l"]],
    ("dedalus", "together"): [["lamp.ded", "nothing.log"]],
}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb.name))
@pytest.mark.parametrize("language", ["bloom", "dedalus"])
def test_each_verb_for_each_language(verb: Verb, language: str) -> None:
    """It does for the one what the language's own name does, byte for byte, or says what to use instead."""
    name = str(verb.name)
    if (language, name) in CALLS:
        for words in CALLS[language, name]:
            sys.modules.pop("paths", None)
            own = syndicate(language, name, *words)
            sys.modules.pop("paths", None)
            shared = syndicate("rules", name, *words)
            assert (shared.exit_code, shared.stdout) == (own.exit_code, own.stdout), words
            assert shared.stderr.replace("syndicate rules ", f"syndicate {language} ") == own.stderr, words
        return
    done = syndicate("rules", name, BLOOM[0] if language == "bloom" else "lamp.ded")
    assert done.exit_code == 2
    assert f"for which there is no {name}: {verb.instead[language]}" in done.stderr
    assert name not in commands(bloom if language == "bloom" else dedalus)


def test_each_verb_is_where_it_is_said_to_be() -> None:
    """The table by which verbs are imported says which languages have each; no module has one that is not there."""
    assert {str(verb.name): set(verb.languages) for verb in VERBS} == {
        name: {str(group.name) for group in (bloom, dedalus) if name in commands(group)} for name in commands(rules)
    }
    folder = Path(relay.cli.rules.__file__).parent
    modules = [import_module(f"relay.cli.rules.{path.stem}") for path in folder.glob("*.py")]
    assert {one for module in modules for one in vars(module).values() if isinstance(one, Verb)} == set(VERBS)


def test_a_program_in_dedalus_loads_nothing_of_bloom() -> None:
    """What it takes to begin is half of what a small question takes."""
    asked = "import sys, relay.cli.rules.verify; print([name for name in sys.modules if 'syndicate.bloom' in name])"
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_names_of_one_language_are_the_family() -> None:
    """Each has the same options, in the same order, and examples under its own name."""
    for group in (bloom, dedalus):
        for name, alias in commands(group).items():
            verb = commands(rules)[name]
            assert isinstance(verb, Verb)
            shared = verb.languages[str(group.name)]
            assert alias.params == shared.params
            assert f"  syndicate {group.name} {name}" in (alias.epilog or "")
            assert (alias.epilog or "").replace(f"syndicate {group.name} ", "syndicate rules ") == shared.epilog


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb.name))
def test_help(verb: Verb) -> None:
    """It has all options, examples in each language, and what to use in the other."""
    done = syndicate("rules", str(verb.name), "--help")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.count("Examples:") == len(verb.languages)
    words = " ".join(done.stdout.split())
    for command in verb.languages.values():
        for param in command.params:
            assert all(option in words for option in param.opts if option.startswith("--"))
    for instead in verb.instead.values():
        assert " ".join(instead.split()) in words


def test_what_is_for_the_other_language() -> None:
    """An option of it is named as that; one of neither is nobody's."""
    done = syndicate("rules", "check", *BLOOM, "--strict")
    assert done.exit_code == 2
    assert "--strict is for programs in Dedalus, and paths.py:Paths is one in Bloom" in done.stderr
    done = syndicate("rules", "check", "--confluent", "lamp.ded")
    assert "--confluent is for programs in Bloom, and lamp.ded is one in Dedalus" in done.stderr
    for words in (["check", "lamp.ded", "--frob"], ["check", "--frob", "lamp.ded"], ["check", "--frob"]):
        assert "No such option" in syndicate("rules", *words).stderr
    assert "Missing argument 'PROGRAM'" in syndicate("rules", "plot").stderr
    assert "Missing argument 'PROGRAM'" in syndicate("rules", "plot", "--format", "dot").stderr


def test_options_may_come_first() -> None:
    """The program is found behind options and what they take."""
    assert json.loads(syndicate("rules", "plot", "--format", "json", *BLOOM).stdout)["program"] == "Paths"
    assert syndicate("rules", "run", "--until", "4", "lamp.ded").stdout == syndicate("rules", "run", *RUN).stdout


def test_programs_made_in_python() -> None:
    """A Dedalus program in a module is one; its file is run once; what is neither is refused with what would be."""
    Path("counted.py").write_text(f"print('loaded')\n{PATHS}")
    done = syndicate("rules", "check", "counted.py:lamp")
    sys.modules.pop("counted", None)
    assert done.exit_code == 0
    assert done.stdout.startswith("loaded\ncounted.py:lamp: accepted")
    assert syndicate("rules", "run", "paths.py:lamp", "--until", "3").stdout == "press(1)@1;\non(1)@2;\n"
    assert "a class that inherits from Bloom is, and so is what is made as a dedalus.Program" in (
        syndicate("rules", "check", "paths.py:number").stderr
    )
    assert "which program of paths.py?" in syndicate("rules", "check", "paths.py").stderr
    for word in ("nothing.py:Paths", "rows.jsonl", "nothing"):
        done = syndicate("rules", "check", word)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("syndicate rules check: ")
    assert syndicate("rules", "check", "nothing", "--debug").exception.__class__.__name__ == "ProgramNotFound"


def test_run_and_why_of_bloom() -> None:
    """What is there at rest; why it is, and why something else is not."""
    assert json.loads(syndicate("rules", "run", *FED, "--json").stdout) == {
        "link": [[1, 2], [2, 3], [3, 4]],
        "path": [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]],
    }
    assert "path(x=1, y=4)\n" in syndicate("rules", "run", *FED).stdout
    assert "greater --ticks" in syndicate("rules", "run", *FED, "--ticks", "1").stderr
    done = syndicate("rules", "why", BLOOM[0], "path", "1, 3", "--input", "rows.jsonl")
    assert done.stdout.startswith("path(1, 3): ")
    assert "link(2, 3)" in done.stdout
    assert syndicate("rules", "why", BLOOM[0], "path", "3, 1", "--input", "rows.jsonl").exit_code == 1
    assert syndicate("rules", "why", BLOOM[0], "path", "3, _").exit_code == 2


def test_plot_and_trace_of_dedalus() -> None:
    """Relations with strata and what is not monotone; what comes and goes, and messages."""
    drawn = json.loads(syndicate("rules", "plot", "paths.py:lamp", "--format", "json").stdout)
    kinds = {node["collections"][0]: (node["kinds"], node["verdict"]) for node in drawn["nodes"]}
    assert kinds == {"on": (["scratch"], "unknown"), "press": (["scratch"], "confluent")}
    places = {node["id"]: node["collections"][0] for node in drawn["nodes"]}
    edges = {}
    for one in drawn["edges"]:
        tail, head = (places.get(end, end) for end in (one["from"], one["to"]))
        edges[tail, head] = (one["operator"], one["points_of_order"])
    assert edges == {
        ("press", "on"): ("+", []),
        ("on", "on"): ("+", ["not"]),
        ("S", "press"): (None, []),
        ("on", "T"): (None, []),
    }
    assert '[("on<br/>table")]' in syndicate("rules", "plot", "lamp.ded").stdout
    lines = syndicate("rules", "trace", *RUN).stdout.splitlines()
    assert lines[:2] == ['2 + on("l")', '3 + told("m", "l")']
    assert len(lines) > 4
    first = json.loads(syndicate("rules", "trace", *RUN, "--json").stdout.splitlines()[0])
    assert first == {"time": 2, "rel": "on", "tuple": ["l"], "there": True}
