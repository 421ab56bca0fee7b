"""The commands ``syndicate bloom``, in processes of their own, on pipes and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from relay.cli import syndicate_main
from tests.work import PATIENCE

CARTS = """
from syndicate.bloom import Bloom, agg, bloom, channel, durable, interface, scratch, table

class Log(Bloom):
    action = channel(["@server", "item", "ident"], ["number"])
    log = table(["item", "ident"], ["number"])
    @bloom
    def act(self):
        self.log <= self.action.payloads()

class Cart(Log):
    total = scratch(["item"], ["number"])
    unwritten = interface("output", ["x"])
    @bloom
    def sums(self):
        self.total <= self.log.group(["item"], agg.sum("number"))

class Kept(Bloom):
    t = durable(["x"], [])

class Wrong(Bloom):
    t = scratch(["x"], [])
    @bloom
    def never(self):
        self.t <= self.t.notin(self.t)

class Unmarked(Log):
    last = table(["item"], ["number"])
    def forgotten(self):
        self.last <= self.log.map(lambda l: (l.item, l.number))
    def give(self, rows):
        self.action.insert(rows)
    @bloom
    def more(self):
        self.helped()
    def helped(self):
        self.last <+- self.action.map(lambda a: (a.item, a.number))

class Bare(Bloom):
    t = table(["x"], [])

class Needy(Bloom):
    def __init__(self, must):
        super().__init__()

number = 3
"""
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from relay.cli import syndicate_main"
)
ROOT = str(Path(__file__).parents[2])
SYNDICATE = [sys.executable, "-c", f"{PROGRAM}; syndicate_main(prog_name='syndicate')", "bloom"]


@pytest.fixture
def carts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with programs, and we are in it."""
    (tmp_path / "carts.py").write_text(CARTS)
    (tmp_path / "one.py").write_text("from carts import Bloom\nclass Only(Bloom):\n    pass\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "unlike.py").write_text("one = 1\nassert one == 2\n")
    (tmp_path / "imports.py").write_text("from carts import Cart, Log\n")
    (tmp_path / "needs.py").write_text("import not_there_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) & {"carts", "one", "broken", "raises", "needs"} - before:
        del sys.modules[name]


def bloom(*words: str, lines: str = "") -> Result:
    """Run a command."""
    return CliRunner().invoke(syndicate_main, ["bloom", *words], input=lines, prog_name="syndicate")


@pytest.mark.usefixtures("carts")
def test_check() -> None:
    """The report, as text and JSON, from a module or a file; the exit code says only what was asked."""
    done = bloom("check", "carts:Cart")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("Cart: 2 rules, 1 point of order, 0 of 1 output confluent\n")
    assert done.stdout.endswith("note: unwritten: no rule writes it\n")
    done = bloom("check", "./carts.py:Cart", "--json", "--confluent")
    assert done.exit_code == 1
    shown = json.loads(done.stdout)
    assert (shown["confluent"], shown["points_of_order"][0]["asynchronous"]) == (False, ["action"])
    assert [(one["name"], one["verdict"]) for one in shown["outputs"]] == [("total", "diffluent")]
    assert bloom("check", "carts.py:Log", "--confluent").exit_code == 0
    assert bloom("check", "one.py").stdout.startswith("Only: 0 rules")
    assert bloom("check", "carts:Kept").exit_code == 0
    done = bloom("check", "carts:Unmarked")
    assert done.stdout.splitlines()[-1] == (
        "note: Unmarked.forgotten: self.last <= ... is no rule here: mark the method @bloom, unless it is to give rows"
    )
    assert json.loads(bloom("check", "carts:Unmarked", "--json").stdout)["unmarked"][0][0] == "Unmarked.forgotten"
    assert "note: Unmarked.forgotten: self.last <= ... is no rule here" in bloom("run", "carts:Unmarked").stderr
    assert bloom("check", "carts:Bare").stdout.splitlines()[-1] == (
        "note: Bare: it has collections and no rules: these stand in methods marked @bloom"
    )


@pytest.mark.usefixtures("carts")
def test_check_prove() -> None:
    """Two orders of the same messages, and what would help; a program without points of order has neither."""
    done = bloom("check", "carts:Cart", "--prove", "--messages", "2", "--seconds", "60")
    assert done.exit_code == 0, done.output
    assert "two orders of the same messages, after which total differs\n  tick 1: action (" in done.stdout
    assert "what would remove points of order\n" in done.stdout
    shown = json.loads(bloom("check", "carts:Cart", "--prove", "--seconds", "60", "--json").stdout)
    one, other = shown["orders"]["total"]["schedules"]
    assert one["end"] != other["end"]
    assert shown["points_of_order"][0]["coordination"] in {"sealing", "sequencing", "consensus"}
    assert json.loads(bloom("check", "carts.py:Log", "--prove", "--json").stdout)["orders"] == {}


def test_plot(carts: Path) -> None:
    """In each form, to standard output or a file."""
    assert bloom("plot", "carts:Cart").stdout.startswith("flowchart LR\n")
    done = bloom("plot", "carts:Cart", "--format", "dot", "--output", "cart.dot", "--collapse")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert (carts / "cart.dot").read_text().startswith("digraph bloom {\n")
    assert json.loads(bloom("plot", "carts:Cart", "--format", "json").stdout)["program"] == "Cart"


@pytest.mark.usefixtures("carts")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["check", "nothing:Cart"], 2, "there is no module nothing, here or installed"),
        (["check", "nothing.at.all:Cart"], 2, "there is no module nothing"),
        (["check", "lamp.ded", "--prove"], 2, "lamp.ded is a program in Dedalus: ask `syndicate dedalus`, or"),
        (["check", "library:Store"], 2, "here or installed: did you mean syndicate.bloom.library?"),
        (["check", "store:Client"], 2, "here or installed: did you mean syndicate.bloom.library.store?"),
        (["check", "syndicate.bloom.library:Store"], 2, "in its modules 'syndicate.bloom.library.cart',"),
        (
            ["check", "syndicate.bloom.library"],
            2,
            "no program in it, but in its modules 'syndicate.bloom.library.cart',",
        ),
        (["check", "nothing.py:Cart"], 2, "there is no file nothing.py"),
        (["check", "/"], 2, "/ is a directory: name a file in it"),
        (["check", "carts:Crat"], 2, "there is no Crat in carts (did you mean 'Cart'?)"),
        (["check", "carts:number"], 2, "number of carts is no program"),
        (["check", "carts"], 2, "which program of carts? Write carts:CLASS; there are 'Log', 'Cart'"),
        (["check", "imports.py"], 2, "which program of imports.py? Write imports.py:CLASS; there are 'Cart', 'Log'"),
        (["check", "imports.py:Crat"], 2, "(did you mean 'Cart'?); there are 'Cart', 'Log'"),
        (["check", "json:Cart"], 2, "there is no program in it"),
        (["check", ":Cart"], 2, "name a program: MODULE:CLASS"),
        (["check", "broken:Cart"], 2, "cannot load broken: SyntaxError"),
        (["check", "raises.py:Cart"], 2, "cannot load raises.py: line 1: ZeroDivisionError: division by zero"),
        (["check", "./unlike.py:Cart"], 2, "cannot load ./unlike.py: line 2: AssertionError: assert one == 2"),
        (["check", "needs:Cart"], 2, "needs needs the module not_there_at_all"),
        (["check", "carts:Needy"], 2, "Needy cannot be made from here"),
        (["check", "carts:Wrong"], 1, "t depends on itself in a way that is not monotone"),
        (["plot", "carts:Wrong"], 1, "t depends on itself"),
        (["repl", "carts:Wrong"], 1, "t depends on itself"),
        (["repl", "carts:Nobody"], 2, "there is no Nobody"),
        (["plot", "carts:Cart", "--output", "no/such/place"], 1, "cannot write no/such/place: No such file"),
        (["repl", "carts:Kept", "--state", "/dev/null/x"], 1, "cannot keep state in /dev/null/x"),
    ],
)
def test_mistakes(words: list[str], code: int, says: str) -> None:
    """One line on standard error, and never a traceback."""
    done = bloom(*words)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith(f"syndicate bloom {words[0]}: ")
    assert says in done.stderr


@pytest.mark.usefixtures("carts")
def test_what_is_reported_has_the_place_that_the_user_knows() -> None:
    """A file as it was named, and of rows the line of theirs: never one of the command's own."""
    output = bloom("check", "carts.py:Cart").stdout
    assert "(carts.py:" in output
    Path("rows.jsonl").write_text('{"into": "log", "rows": [["a", 1, 4]]}\n{"into": "lgo", "rows": [[1]]}\n')
    assert bloom("run", "carts.py:Cart", "--input", "rows.jsonl").stderr.startswith(
        "syndicate bloom run: rows.jsonl:2: there is no collection 'lgo' (did you mean 'log'?)"
    )
    for rows in ('"a"', '["a", 1, 4, 5]'):
        done = bloom("run", "carts.py:Cart", "--input", "-", lines=f'{{"into": "log", "rows": [{rows}]}}')
        assert done.exit_code == 1
        assert done.stderr.startswith("syndicate bloom run: <stdin>:1: log")


@pytest.mark.usefixtures("carts")
def test_usage() -> None:
    """Click's own mistakes are usage, and each command has examples."""
    assert bloom("plot", "carts:Cart", "--format", "svg").exit_code == 2
    assert bloom("check").exit_code == 2
    for words in ([], ["check"], ["plot"], ["repl"]):
        done = bloom(*words, "--help")
        assert (done.exit_code, done.stderr) == (0, "")
        assert "Examples:" in done.stdout


@pytest.mark.usefixtures("carts")
def test_repl_on_a_pipe() -> None:
    """Lines are answered one by one; who made mistakes is notified on standard error and by the exit code."""
    lines = 'def half(r):\n    return (r.number // 2,)\n\nsmall = table(["n"], [])\nsmall <= total.map(half)\n'
    done = bloom("repl", "carts:Cart", lines=f"{lines}log.insert([('a', 1, 4), ('a', 2, 3)])\n/run\n/dump small\n")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "rule 3: small <= total.map(half)",
        "tick 0: log +2, total +1, small +1",
        "1 tick: nothing waits",
        "(n=3)",
    ]
    done = bloom("repl", lines='/frob\nt = table(["x"], [])\nt <= [(1,)]\n/tick\n/quit\n/never\n')
    assert done.exit_code == 1
    assert done.stderr == "error: there is no command /frob: /help says which there are\n"
    assert done.stdout.splitlines() == ["rule 1: t <= [(1,)]", "tick 0: t +1"]


@pytest.mark.usefixtures("carts")
def test_state_is_kept() -> None:
    """Durable tables lie in the file that was given."""
    bloom("repl", "carts:Kept", "--state", "kept.db", lines="/insert t 1\n/tick\n")
    done = bloom("repl", "carts:Kept", "--state", "kept.db", lines="/tick\n/dump t\n")
    assert done.stdout.splitlines() == ["tick 0: t +1", "(x=1)"]


def test_as_a_process(carts: Path) -> None:
    """A real pipe, and a reader who has seen enough."""
    env = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run(
        [*SYNDICATE, "repl", "carts:Cart"], cwd=carts, input="/frob\n/lsrules\n", capture_output=True, text=True,
        check=False, timeout=PATIENCE, env=env,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: there is no command /frob: /help says which there are\n")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["1", "2"]


class Terminal:
    """A session on a terminal of its own."""

    def __init__(self, at: Path, **env: str) -> None:
        self.ours, theirs = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [*SYNDICATE, "repl"],
            cwd=at,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "PYTHONPATH": ROOT, "XDG_STATE_HOME": str(at), **env},
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.ours, text.encode())

    def until(self, wanted: str, seconds: float = PATIENCE) -> str:
        """Wait for text, and give what came before it."""
        end = time.monotonic() + seconds
        while wanted not in self.text:
            ready, _, _ = select.select([self.ours], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.text!r}"
            self.text += os.read(self.ours, 4096).decode()
        before, _, self.text = self.text.partition(wanted)
        return before

    def interrupt(self, wanted: str) -> None:
        """Press Ctrl-C until there is text: Python's input() misses a signal that comes just before it waits."""
        for _ in range(30):
            os.kill(self.process.pid, signal.SIGINT)
            try:
                self.until(wanted, seconds=1)
            except AssertionError:
                continue
            return
        self.until(wanted, seconds=0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A session."""
    one = Terminal(tmp_path)
    one.until("bloom> ")
    yield one
    one.process.kill()
    one.process.wait()
    os.close(one.ours)


def test_repl_on_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    """Tab completes, errors are red, Ctrl-C ends a run and not the session, Ctrl-D leaves, the history stays."""
    terminal.type('numbers = table(["x"], [])\n')
    terminal.until("bloom> ")
    terminal.type("numb\t <+ num\t.map(lambda r: (r.x + 1,))\n")
    terminal.until("rule 1: numbers <+ numbers.map(lambda r: (r.x + 1,))")
    terminal.until("bloom> ")
    terminal.type("/ins\tnum\t 0\n")
    terminal.until("bloom> ")
    terminal.type("/frob\n")
    terminal.until("\x1b[31merror: there is no command /frob")
    terminal.type("/run\n")
    terminal.until("tick 5:")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.until("ticks: interrupted")
    terminal.until("bloom> ")
    terminal.type("half a li")
    terminal.until("half a li")
    terminal.interrupt("bloom> ")
    terminal.type("numbers <= numbers.map(lambda r: __import__('time').sleep(999))\n")
    terminal.until("rule 2: ")
    terminal.until("bloom> ")
    terminal.type("/tick\n")
    terminal.until("/tick")
    time.sleep(0.2)  # it says nothing, and may have begun
    terminal.interrupt("bloom> ")
    terminal.type("/rmrule 2\n")
    terminal.until("bloom> ")
    terminal.type("/tick\n")
    terminal.until("tick ")
    terminal.until("bloom> ")
    terminal.type("numbers.map(\n")
    terminal.until("...... ")
    terminal.type("1)\n")
    terminal.until("bloom> ")
    terminal.type("\x04")
    assert terminal.process.wait(PATIENCE) == 0
    assert re.search(r"^/frob$", (tmp_path / "syndicate" / "bloom_history").read_text(), re.MULTILINE)


def test_no_colour(tmp_path: Path) -> None:
    """NO_COLOR is respected."""
    one = Terminal(tmp_path, NO_COLOR="1")
    one.until("bloom> ")
    one.type("/frob\n")
    assert "\x1b[31m" not in one.until("error: there is no command /frob")
    one.type("/quit\n")
    assert one.process.wait(PATIENCE) == 0
    os.close(one.ours)


PATHS = """
from syndicate.bloom import Bloom, bloom, channel, lset, table
class Paths(Bloom):
    link = table(["from", "to"]); path = table(["from", "to"]); more = channel(["@to", "end"]); some = lset()
    @bloom
    def rules(self):
        self.path <= self.link
        self.path <= (self.link * self.path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
        self.link <= self.more.map(lambda m: (3, m.end))
class Endless(Bloom):
    n = table(["n"])
    @bloom
    def rules(self):
        self.n < +self.n.map(lambda r: (r.n + 1,))
"""


def test_trace(carts: Path) -> None:
    """Rows of the input come in their ticks; the run ends at rest; text, a page, JSON; mistakes name the line."""
    (carts / "paths.py").write_text(PATHS)
    lines = '{"into": "link", "rows": [[1, 2], [2, 3]]}\n\n{"into": "more", "rows": [["me", 4]], "tick": 2}\n'
    lines += '{"into": "some", "rows": [7]}\n'
    done = bloom("trace", "paths.py:Paths", "--input", "-", lines=lines)
    assert (done.exit_code, done.stderr) == (0, "")
    output = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in output if line.startswith("tick")] == ["tick 0", "tick 1", "tick 2"]
    assert [line.partition(":")[0] for line in output if line.startswith("  + path")] == [
        "  + path(1, 2)", "  + path(1, 3)", "  + path(2, 3)", "  + path(1, 4)", "  + path(2, 4)", "  + path(3, 4)",
    ]  # fmt: skip
    done = bloom("trace", "paths.py:Paths", "--input", "-", "--format", "html", "--output", "run.html", lines=lines)
    assert (done.exit_code, done.stdout) == (0, "")
    assert (carts / "run.html").read_text().startswith("<!doctype html>")
    text_line = '{"into": "n", "rows": [[1]]}'
    done = bloom("trace", "paths.py:Endless", "--input", "-", "--ticks", "3", "--format", "json", lines=text_line)
    assert len(json.loads(done.stdout)["ticks"]) == 3
    assert done.stderr == "note: more to come after 3 ticks; give a greater --ticks\n"
    for wrong in ("[1]", "{", '{"into": "n"}', '{"into": "n", "rows": [[1]], "tick": -1}', '{"into": 3, "rows": []}'):
        done = bloom("trace", "paths.py:Endless", "--input", "-", lines=f"{text_line}\n{wrong}\n")
        assert done.exit_code == 2
        assert "line 2 of the input says no rows" in done.stderr
