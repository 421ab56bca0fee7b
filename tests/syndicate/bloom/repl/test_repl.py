"""The REPL: rules come and go while tables keep what they have, and no mistake ends a session."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.bloom import Bloom, bloom, bootstrap, const, durable, lmax, scratch, table
from syndicate.bloom.repl.session import HELP, Session
from syndicate.bloom.repl.workbench import Workbench
from syndicate.bloom.tick.runtime import instance_of
from syndicate.errors import IllegalRule, KeyConflict, RuleFailed, Unstratifiable
from tests.strategies import examples


def talk(*lines: str, base: type[Bloom] = Bloom, **options: Any) -> list[str]:
    """What is answered to some lines."""
    said: list[str] = []
    session = Session(Workbench(base, write=said.append, **options), said.append)
    ended = [not session.feed(line) for line in lines]
    said += ["bye"] * sum(ended)
    session.bench.close()
    return said


LINKS = ('link = table(["from", "to"])', 'path = table(["from", "to"])')
CLOSURE = 'path <= (link * path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))'


def test_a_session() -> None:
    """Declarations, rules, rows, ticks, and what there is then."""
    assert talk(*LINKS, "path <= link", CLOSURE, "/insert link (1, 2) (2, 3)", "/run", "/dump path", "/quit") == [
        "rule 1: path <= link",
        f"rule 2: {CLOSURE}",
        "tick 0: link +2, path +3",
        "1 tick: nothing waits",
        "(from=1, to=2)",
        "(from=1, to=3)",
        "(from=2, to=3)",
        "bye",
    ]


def test_rules_come_and_go() -> None:
    """Numbers keep rising, a removed rule takes nothing back, and a new one finds what tables hold."""
    said = talk(
        *LINKS,
        "path <= link",
        "/insert link (1, 2)",
        "/tick",
        "/rmrule 1",
        "/dump path",
        "/insert link (2, 3)",
        "/tick",
        "/dump path",
        CLOSURE,
        "path <= link.map(lambda l: (l.from_, l.to))",
        "/tick 2",
        "/lsrules",
        "/dump path",
        "/rmrule 1",
    )
    assert said[1:] == [
        "tick 0: link +1, path +1",
        "(from=1, to=2)",
        "tick 1: link +1",
        "(from=1, to=2)",
        f"rule 2: {CLOSURE}",
        "rule 3: path <= link.map(lambda l: (l.from_, l.to))",
        "tick 2: path +2",
        "tick 3: no change",
        f"2: {CLOSURE}",
        "3: path <= link.map(lambda l: (l.from_, l.to))",
        "(from=1, to=2)",
        "(from=1, to=3)",
        "(from=2, to=3)",
        "error: rule 1 is not there; there are 2, 3",
    ]


def test_why_knows_rules_and_ticks() -> None:
    """Sites are those of the session's rules; what was kept says since when, across changes of rules."""
    said = "\n".join(
        talk(
            *LINKS,
            "path <= link",
            "/insert link (1, 2)",
            "/tick",
            CLOSURE,
            "/insert link (2, 3)",
            "/tick",
            "/why path (1, 3)",
            "/why path(3, 3)",
        )
    )
    assert said.splitlines()[-7:] == [
        "path(1, 3): rule 2 (<rule 2>:1)",
        "  link(1, 2): kept since tick 0",
        "  path(2, 3): rule 1 (<rule 1>:1)",
        "    link(2, 3): from outside, in tick 1",
        "path(3, 3) is not there after 2 ticks",
        "  rule 1 (<rule 1>:1): no link with from = 3, to = 3",
        "  rule 2 (<rule 2>:1): no link with from = 3",
    ]


def test_runs_end() -> None:
    """At rest, at a breakpoint, after so many ticks, by halt."""
    count = ('n = table(["x"], [])', "n <+ n.map(lambda r: (r.x + 1,))", "/insert n 0")
    assert talk(*count, "breakpoint <= n.filter(lambda r: r.x == 3)", "/run", "/dump breakpoint")[-2:] == [
        "4 ticks: breakpoint has rows",
        "(x=3)",
    ]
    assert talk(*count, "/run 3")[-1] == "3 ticks: more would do something"
    assert talk(*count, "halt <= n.filter(lambda r: r.x == 2)", "/run", "/stop")[-2:] == [
        "3 ticks: halted",
        "nothing is running",
    ]


def test_a_run_is_interrupted() -> None:
    """Between two ticks; the session goes on."""
    said: list[str] = []
    session = Session(Workbench(), said.append)

    def stop(text: str) -> None:
        said.append(text)
        if text.startswith("tick 5"):
            session.interrupt()

    session.write = stop
    for line in ('n = table(["x"], [])', "n <+ n.map(lambda r: (r.x + 1,))", "/insert n 0", "/run", "len(n)"):
        assert session.feed(line)
    assert said[-2:] == ["6 ticks: interrupted", "6"]


def test_a_tick_is_interrupted() -> None:
    """The session goes on with what there was before it, and the rule that has no end can go."""

    def endless(row: Any) -> Any:
        if row.x > 100:
            raise KeyboardInterrupt  # somebody's patience has
        return (row.x + 1,) if row.x < 2 or row.x > 9 else None

    said: list[str] = []
    session = Session(Workbench(), said.append)
    session.bench.names["endless"] = endless
    for line in ('n = table(["x"], [])', "n <= n.map(endless)", "/insert n 0", "/tick", "/insert n 10"):
        session.feed(line)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            session.feed("/tick")
    for line in ("len(n)", "/rmrule 1", "/tick", "/dump n"):
        session.feed(line)
    assert said[1:] == ["tick 0: n +3", "3", "tick 1: n +1", "(x=0)", "(x=1)", "(x=2)", "(x=10)"]
    session.bench.close()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/frob", "there is no command /frob"),
        ("/", "there is no command /"),
        ("/l", "/l may be /lscollections or /lsrules"),
        ("/tick x", "/tick takes a number of ticks, not 'x'"),
        ("/rmrule", "/rmrule takes the number of a rule"),
        ("/rmrule 7", "rule 7 is not there; there are 1"),
        ("/insert", "/insert takes a collection and rows"),
        ("/insert link", "which rows? As in /insert link (1, 2) (2, 3)"),
        ("/insert link (1, 2", "'(1, 2' is no row"),
        ("/insert lnk (1, 2)", "did you mean 'link'"),
        ("/why path", "which row?"),
        ("/plot svg", "not as 'svg'"),
        ("path <= ", "this is no Python: invalid syntax"),
        ("found = link", "write COLLECTION <= link"),
        ("path <= lnk", "there is no lnk (did you mean 'link'?)"),
        ("path <= link.map(lambda l: (l.frm,))", "<rule 2>:1: link has no column 'frm'"),
        ("path <= link.notin(path)", "<rule 2>:1"),
        ("link = scratch()", "there is a collection or module link already"),
        ("link = 3", "there is a collection or module link already: choose another name; a rule is link <= ..."),
        ("def link(row): return row", "there is a collection or module link already"),
        ("/insert link 5 6", "(5,) has 1 value, and link has 2 columns: /insert link (from, to)"),
        ("/insert link (5, 6, 7)", "(5, 6, 7) has 3 values, and link has 2 columns: /insert link (from, to)"),
        ("/delete link (5,)", "(5,) has 1 value, and link has 2 columns: /delete link (from, to)"),
        ("u = table([1])", "<u>:1: a column's name"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import nothing_at_all", "ModuleNotFoundError: No module named 'nothing_at_all'"),
        ("for x in path: pass", None),
        ("path < link", "path < is no operator of rules"),
        ("link.delete(3)", "3 holds no rows"),
    ],
)
def test_mistakes(line: str, says: str | None) -> None:
    """Each is one line, and changes nothing."""
    said = talk(*LINKS, "path <= link", line, "/insert link (1, 2)", "/tick", "/lsr", "/dump path")
    wrong = [text for text in said if text.startswith("error: ")]
    assert len(wrong) == (says is not None)
    assert says is None or says in wrong[0]
    assert "\n" not in "".join(wrong)
    assert said[-3:] == ["tick 0: link +1, path +1", "1: path <= link", "(from=1, to=2)"]


def test_ticks_that_fail() -> None:
    """A tick that fails did not happen, with a new rule too: what there was is there, and the rule can go."""
    said = talk(
        *LINKS,
        "/insert link (1, 2)",
        "/tick",
        "path <= link.map(lambda l: (1 // (l.to - 2), 0))",
        "/insert link (2, 3)",
        "/tick",
        "/dump",
        "/rmrule 1",
        "/tick",
        "/dump link",
    )
    assert said[2].startswith("error: <rule 1>:1: a function in this rule raised ZeroDivisionError")
    assert said[3:5] == ["link:", "  (from=1, to=2)"]
    assert said[5:] == ["tick 1: link +1", "(from=1, to=2)", "(from=2, to=3)"]
    said = talk('k = table(["a"], ["b"])', "/insert k (1, 1) (1, 2)", "/tick", "/discard", "/insert k (1, 2)", "/tick")
    assert "two rows have the key a = 1" in said[0]
    assert said[1] == "tick 0: k +1"


class Base(Bloom):
    """A program to begin with."""

    start = table(["x"], [])
    fixed = const(["x"], [], rows=[(7,)])
    seen = scratch(["x"], [])
    most = lmax()

    @bootstrap
    def begin(self) -> None:
        """One row."""
        self.start <= [(1,)]

    @bloom
    def rules(self) -> None:
        """Copy."""
        self.seen <= self.start
        self.most <= self.start.map(lambda r: r.x)


def test_a_program_to_begin_with() -> None:
    """Its rules have the first numbers and stay; its bootstrap happens once; constants stay."""
    said = talk(
        "/lsc",
        "/rmrule 1",
        "seen <= fixed",
        "/tick",
        "/delete start (1,)",
        "/tick",
        "other = table(['x'], [])",
        "other <= seen",
        "/tick",
        "/dump",
        base=Base,
    )
    assert "start(x): table, 0 rows" in said
    assert "error: rule 1 belongs to the class: override its block; none has been added" in said
    assert "rule 3: seen <= fixed" in said
    at = said.index("rule 4: other <= seen")
    assert said[at + 1] == "tick 2: other +1"
    dumped = said[at + 2 :]
    assert "start:" not in dumped
    assert dumped[dumped.index("seen:") + 1] == "  (x=7)"
    assert dumped[dumped.index("most:") + 1] == "  (value=Max(1))"


def test_names_and_definitions() -> None:
    """Functions and modules of Python may be used in rules; expressions see what there is."""
    said = talk(
        "from math import gcd",
        "def twice(r):\n    return (r.x * 2,)",
        "limit = 5",
        "a, b = 1, 2",
        't = table(["x"], [])',
        "u = scratch(['x'], [])",
        "u <= t.map(twice)",
        "u <= t.map(lambda r: (gcd(r.x, 4),)).filter(lambda r: r[0] < limit); len(u)",
        "/insert t 3 (6,)",
        "/tick",
        "sorted(u)",
        "self.u <= self.t",
        "/tick",
        "len(u)",
        "# nothing",
    )
    assert (
        said[0]
        == "error: <line>: neither a declaration (t = table(['a'], ['b'])), nor a rule (t <= u), nor a definition"
    )
    assert said[-6:] == [
        "0",
        "tick 0: t +2, u +4",
        "[(x=1), (x=2), (x=6), (x=12)]",
        "rule 3: self.u <= self.t",
        "tick 1: u +1",
        "5",
    ]


def test_channels_and_terminals() -> None:
    """What is sent is shown; what is for ourselves arrives; what a terminal is written comes out."""
    said = talk(
        'mail = channel(["@to", "text"], [])',
        'out = scratch(["to", "text"], [])',
        "screen = stdio()",
        "mail <~ out",
        "screen <~ mail.map(lambda m: (m.text,))",
        "/insert out ('localhost', 'hi') ('afar', 'ho')",
        "/run",
        "/why mail ('localhost', 'hi')",
    )
    assert "sent to 'afar': mail('afar', 'ho')" in said
    assert "hi" in said
    assert said[-1] == "mail('localhost', 'hi'): from outside, in tick 1"


def test_lattices() -> None:
    """Are declared, grown, shown and explained as tables are, and keep their value when rules change."""
    said = "\n".join(
        talk(
            "votes = lset()",
            "count = lmax()",
            'vote = scratch(["who"], [])',
            "votes <= vote.map(lambda v: v.who)",
            "/insert vote 'ann' 'bob'",
            "/tick",
            "count <= votes.size()",
            "/tick",
            "/dump count",
            "/why count",
        )
    )
    assert said.splitlines()[-3:] == [
        "(value=Max(2))",
        "count(Max(2)): rule 2 (<rule 2>:1)",
        "  votes(Set(['ann', 'bob'])): from outside, or there before",
    ]


def test_durable_tables(tmp_path: Path) -> None:
    """Changes of rules go on with the file."""

    class Kept(Bloom):
        t = durable(["x"], [])

    path = tmp_path / "state.db"
    talk("/insert t 1", "/tick", "u = table(['x'], [])", "u <= t", "/insert t 2", "/tick", base=Kept, state=path)
    assert talk("/tick", "/dump t", base=Kept, state=path) == ["tick 0: t +2", "(x=1)", "(x=2)"]
    gone = ("gone = scratch(['x'], [])", "t < -gone", "/insert gone 1", "/tick")
    said = talk(*gone, "v = table(['x'], [])", "/tick", "/dump t", base=Kept, state=path)  # which another program does
    assert said[-1:] == ["(x=2)"]
    assert talk("/tick", "/dump t", base=Kept, state=path) == ["tick 0: t +1", "(x=2)"]


def test_help_names_each_command() -> None:
    """And completion does."""
    session = Session(Workbench(), print)
    assert all(f"/{name}" in HELP for name in session.commands)
    assert {"/tick", "breakpoint"} <= set(session.words())


def test_plots_and_calm() -> None:
    """Of the program as it will be."""
    said = talk(*LINKS, "path <= link", "/calm", "/plot dot")
    assert said[1].startswith("Bloom: 1 rule, 0 points of order")
    assert said[2].startswith("digraph bloom {")


# ------------------------------------------------------------------------------------------------------------- random

KINDS = {"t0": "table", "t1": "table", "s0": "scratch", "s1": "scratch"}
BODIES = ("{}", "{}.map(lambda r: (r[1], r[0]))", "{}.filter(lambda r: r[0] < 2)", "{}.notin({})",
          "({} * {}).pairs(lambda a, b: (a[0], b[1]))", "{}.argmin(['a'], 'b')")  # fmt: skip


def random_rule(rng: random.Random) -> str:
    """A rule as text."""
    head = rng.choice(list(KINDS))
    op = rng.choice(("<=", "<=", "<+", "<-") if KINDS[head] == "table" else ("<=", "<=", "<+"))
    body = rng.choice(BODIES)
    return f"{head} {op} {body.format(*(rng.choice(list(KINDS)) for _ in range(body.count('{}'))))}"


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32))
def test_a_program_that_was_always_so(seed: int) -> None:
    """Declared step by step, and renewed at every tick, it ticks as a program that was written at once."""
    rng = random.Random(seed)
    bench = Workbench()
    for name, kind in KINDS.items():
        bench.add(f'{name} = {kind}(["a", "b"])')
    texts = [random_rule(rng) for _ in range(rng.randrange(1, 5))]
    try:
        for text in texts:
            bench.add(text)
    except Unstratifiable:
        return

    class Whole(Bloom):
        t0 = table(["a", "b"])
        t1 = table(["a", "b"])
        s0 = scratch(["a", "b"])
        s1 = scratch(["a", "b"])

        @bloom
        def rules(self) -> None:
            for text in texts:
                exec(text, {name: getattr(self, name) for name in KINDS})

    whole = Whole()
    for _ in range(6):
        for name, kind in KINDS.items():
            if rng.random() < 0.5:
                row = (rng.randrange(3), rng.randrange(3))
                remove = kind == "table" and rng.random() < 0.3
                for program in (whole, bench.view):
                    has_it = program if name in instance_of(program).own else bench.newest
                    one = has_it.collection(name)
                    (one.delete if remove else one.insert)([row])
        if rng.random() < 0.6:  # a rule that gives nothing, and so changes nothing
            bench.add("t0 <= t0.filter(lambda r: False)")
        try:
            whole.tick()
        except (KeyConflict, RuleFailed):
            return
        bench.tick()
        for name in KINDS:
            assert set(bench.view.collection(name)) == set(whole.collection(name)), (texts, name)


def test_only_rules_are_added_as_rules() -> None:
    """Values are evaluated, rules are not."""
    bench = Workbench()
    bench.add("t = table(['x'], [])")
    with pytest.raises(IllegalRule, match="this is a rule"):
        bench.evaluate("t <= t")
    assert bench.evaluate("1 < 2") is True
