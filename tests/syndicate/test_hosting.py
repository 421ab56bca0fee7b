"""The same questions to all hosts of rules: what is refused, what is asserted, and for how long, what a crash does.

Each program has the same rules.  *told* is asserted, *said* and *later* are sent, each ``(who, n)``; of *told* and
*said* it concludes ``Share(who, 12 // n)``, of *later* the same one step after it came, as something of its own.
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import partial
from math import ceil, log2
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syndicate import (
    ABSENT,
    Actor,
    Handle,
    Ref,
    assert_,
    capture,
    dataspace,
    prevent_inert_check,
    react,
    record,
    send,
    spawn,
)
from syndicate.bloom import Bloom, agg, bloom, scratch
from syndicate.dedalus import Program
from syndicate.errors import AlreadyRunning, SyndicateError
from syndicate.flow import Circuit, aggregates
from syndicate.hosting import Host, host, sift
from syndicate.plan import Program as RelationalProgram
from syndicate.plan import Projection
from syndicate.testing import Seen, settled, watch
from tests.strategies import examples


@record("hosting-told")
class Told:
    """A number that somebody asserts."""

    who: Any
    n: Any


@record("hosting-said")
class Said:
    """A number that somebody sends."""

    who: Any
    n: Any


@record("hosting-later")
class Later:
    """A number of which a program thinks a step later."""

    who: Any
    n: Any


@record("hosting-share")
class Share:
    """What a program concludes; it cannot be of a cat."""

    who: Any
    n: Any

    def __attrs_post_init__(self) -> None:
        if self.who == "cat":
            raise ValueError("cats have no share")


def _halved(row: Any) -> Any:
    return (row[0], 12 // row[1])


def circuit() -> Circuit:
    """The rules as a circuit."""
    c = Circuit()
    own = c.source("later").z1().filter(lambda row: bool(row[0]))
    c.sink("share", (c.source("told") + c.source("said") + own).map(_halved))
    return c


class Rules(Bloom):
    """The same in Bloom."""

    told = scratch(["who", "n"], [])
    said = scratch(["who", "n"], [])
    later = scratch(["who", "n"], [])
    own = scratch(["who", "n"], [])
    share = scratch(["who", "n"], [])

    @bloom
    def rules(self) -> None:
        """Of the program's own is what it has put off."""
        self.own < +self.later
        for one in (self.told, self.said, self.own):
            self.share <= one.map(lambda row: (row.who, 12 // row.n))


LOGIC = """
    own(L, W, N)@next :- later(L, W, N);
    share(L, W, 12 / N) :- told(L, W, N);  share(L, W, 12 / N) :- said(L, W, N);  share(L, W, 12 / N) :- own(L, W, N);
"""
"""The same in Dedalus."""


Make = Callable[[], tuple[Any, dict[str, Any]]]
KINDS: dict[str, Make] = {
    "circuit": lambda: (circuit(), {}),
    "bloom": lambda: (Rules, {}),
    "bloom-made": lambda: (Rules(), {}),
    "dedalus": lambda: (Program.parse(LOGIC), {"location": "here"}),
}

each_kind = pytest.mark.parametrize("kind", KINDS)


class Stage:
    """A dataspace with one host, and somebody who asserts and sends."""

    def __init__(self, kind: str | Make, seen: Any = Share(capture(), capture()), **ports: Any) -> None:  # noqa: B008
        self.actors: list[Actor] = []
        self.spaces: list[Ref] = []
        self.seen: list[Seen] = []
        self.starts: list[Callable[[], object]] = []
        program, options = (KINDS[kind] if isinstance(kind, str) else kind)()
        wanted: dict[str, Any] = {
            "inputs": {"told": Told},
            "outputs": {"share": Share},
            "messages": {"said": Said, "later": Later},
        }

        def boot() -> None:
            prevent_inert_check()
            ds = dataspace()
            self.spaces.append(ds)
            self.seen.append(watch(ds, seen))
            self.starts.append(host(program, ds, **(wanted | ports), **options))
            self.actors.append(spawn(self.starts[0]))

        self.system = settled(boot)

    @property
    def error(self) -> BaseException | None:
        """What the host has crashed by."""
        return self.actors[0].error

    def act(self, *acts: Callable[[Ref], Any]) -> list[Any]:
        """Do all of this in one turn; what it gave."""
        inputs: list[Any] = []

        def turn() -> None:
            prevent_inert_check()
            inputs.extend([act(self.spaces[0]) for act in acts])

        self.system.spawn(turn)
        self.system.drain()
        return inputs

    def tell(self, *rows: tuple[Any, Any]) -> list[Handle]:
        """Assert these in one turn."""
        return self.act(*[lambda ds, row=row: assert_(ds, Told(*row)) for row in rows])

    def end(self, *handles: Handle) -> None:
        """Retract these in one turn."""

        def end() -> None:
            for handle in handles:
                handle.retract()

        handles[0].facet.enter(end)
        self.system.drain()

    def say(self, *values: Any) -> None:
        """Send these in one turn."""
        self.act(*[lambda ds, value=value: send(ds, value) for value in values])

    def news(self) -> list[tuple[Any, ...]]:
        """What was seen since this was asked last."""
        news = list(self.seen[0])
        self.seen[0].clear()
        return news


def refused(logs: list[MutableMapping[str, Any]]) -> list[str]:
    """Why rows were refused, as the log has it."""
    return [str(line["reason"]) for line in logs if line["event"] == "a row was refused"]


@each_kind
def test_a_conclusion_is_asserted_while_its_reason_is(kind: str) -> None:
    """All changes of a turn are one step; a conclusion that stays is not asserted again; what is new comes first."""
    stage = Stage(kind)
    (one, two) = stage.tell(("a", 1), ("b", 2))
    assert sorted(stage.news()) == [("+", "a", 12), ("+", "b", 6)]

    def replace() -> None:
        one.retract()
        assert_(stage.spaces[0], Told("a", 3))

    one.facet.enter(replace)
    stage.system.drain()
    assert stage.news() == [("+", "a", 4), ("-", "a", 12)]
    stage.end(two)
    assert stage.news() == [("-", "b", 6)]


@each_kind
def test_a_row_that_the_rules_fail_with_is_refused(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """Sent or asserted, by itself; it counts for nothing while it is there, and its end is quiet."""
    stage = Stage(kind)
    _, bad, good = stage.tell(("a", 1), ("b", "x"), ("c", 3))
    stage.say(Said("d", 2), Said("e", "y"))
    assert sorted(news := stage.news()) == [("+", "a", 12), ("+", "c", 4), ("+", "d", 6), ("-", "d", 6)]
    assert news[2:] == [("+", "d", 6), ("-", "d", 6)]
    assert ["'b'" in why or "'e'" in why for why in refused(logs)] == [True, True]
    stage.tell(("b", 4))
    assert stage.news() == [("+", "b", 3)]
    stage.end(bad)
    assert stage.news() == []
    stage.end(good)
    assert stage.news() == [("-", "c", 4)]
    assert (len(refused(logs)), stage.error) == (2, None)


@each_kind
def test_a_row_of_another_shape_is_not_there(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """A pattern that captures something else than the rules can do with: it is refused, and its end is quiet."""
    stage = Stage(kind)
    (odd,) = stage.tell(("a", [1]))
    stage.say(Said("b", {"n": 1}))
    assert stage.news() == []
    assert len(refused(logs)) == 2
    stage.end(odd)
    assert (len(refused(logs)), stage.error) == (2, None)


@each_kind
def test_a_conclusion_that_no_value_can_be_made_of(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """The row behind it is refused, whatever the record class raises."""
    stage = Stage(kind)
    stage.tell(("a", 1), ("cat", 2), ("b", 3))
    assert sorted(stage.news()) == [("+", "a", 12), ("+", "b", 4)]
    (why,) = refused(logs)
    assert "cats have no share" in why
    assert stage.error is None


@each_kind
def test_a_message_is_there_for_one_step(kind: str) -> None:
    """Also where nothing else happens; and those of one turn are there together."""
    stage = Stage(kind)
    stage.say(Said("a", 1), Said("b", 2))
    news = stage.news()
    assert sorted(news[:2]) == [("+", "a", 12), ("+", "b", 6)]
    assert sorted(news[2:]) == [("-", "a", 12), ("-", "b", 6)]


@each_kind
def test_a_mistake_of_the_program_ends_it(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """What it fails with in a step in which nothing of untrusted peers comes crashes it, and all it concluded goes."""
    stage = Stage(kind)
    stage.tell(("a", 1))
    stage.say(Later("b", 2))
    assert stage.news()[:2] == [("+", "a", 12), ("+", "b", 6)]
    stage.say(Later("c", "x"))
    assert ("-", "a", 12) in stage.news()
    assert isinstance(stage.error, SyndicateError)
    assert refused(logs) == []


@each_kind
@pytest.mark.parametrize(("count", "bad"), [(1, 1), (64, 1), (64, 3), (100, 7)])
def test_a_burst_takes_few_steps(kind: str, count: int, bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of *n* rows of one turn with *k* bad ones, so many attempts are made as the contract says; all others count."""
    attempts = 0

    def counting(items: Any, attempt: Any, refuse: Any) -> None:
        def one(some: Any) -> Any:
            nonlocal attempts
            attempts += 1
            return attempt(some)

        monkeypatch.setattr("syndicate.hosting.sift", sift)  # which calls itself
        sift(items, one, refuse)
        monkeypatch.setattr("syndicate.hosting.sift", counting)

    monkeypatch.setattr("syndicate.hosting.sift", counting)
    stage = Stage(kind)
    step = count // bad
    stage.tell(*[(f"w{n}", "x" if n % step == 0 and n // step < bad else 12) for n in range(count)])
    assert len(stage.news()) == count - bad
    assert 0 < attempts <= 1 + 2 * bad * (1 + ceil(log2(count)))


@each_kind
def test_the_log_is_throttled(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """A thousand bad rows are some twenty lines, and the last says how many."""
    stage = Stage(kind)
    for part in range(10):
        stage.say(*[Said(f"w{part}-{n}", "x") for n in range(100)])
    assert len(refused(logs)) == 10 + 6
    assert [line["refused"] for line in logs][-3:] == [128, 256, 512]
    assert stage.error is None


@each_kind
def test_what_is_absent(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """It is None in rules, and ABSENT again in what they conclude; Dedalus has no null, and refuses it."""
    stage = Stage(kind)
    stage.tell((ABSENT, 1))
    assert stage.news() == ([] if kind == "dedalus" else [("+", ABSENT, 12)])
    assert len(refused(logs)) == (kind == "dedalus")


@pytest.mark.parametrize("kind", ["bloom", "dedalus"])
def test_what_a_function_leaves_out_is_absent(kind: str) -> None:
    """None that a function of outputs= gives is ABSENT, as None in a row is."""
    stage = Stage(kind, outputs={"share": lambda *row: Share(None, row[-1])})
    stage.tell(("a", 1))
    assert stage.news() == [("+", ABSENT, 12)]


@each_kind
def test_nothing_of_a_host_is_left(kind: str) -> None:
    """When its facet stops, its conclusions go, and what comes later is nobody's."""
    stage = Stage(kind)
    stage.tell(("a", 1))
    stage.actors[0].root.enter(lambda: stage.actors[0].root.stop(stage.system.turn))
    stage.system.drain()
    assert stage.news() == [("+", "a", 12), ("-", "a", 12)]
    stage.tell(("b", 1))
    stage.say(Said("c", 1))
    assert (stage.news(), stage.error) == ([], None)


ROWS = [(who, n) for who in ("a", "b", "cat") for n in (1, 2, 24, 25, 0, "x")]


@each_kind
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(st.lists(st.tuples(st.sampled_from("+-!"), st.sampled_from(ROWS)), max_size=6), max_size=6))
def test_all_hosts_conclude_the_same(kind: str, turns: list[list[tuple[str, tuple[str, Any]]]]) -> None:
    """Whatever comes and goes together: what is asserted follows from the good rows that are asserted, and nothing
    else.

    What a message says is there in between, and gone; equal conclusions of several rows are one.
    """
    stage = Stage(kind)
    current: dict[tuple[str, Any], Handle] = {}
    shown: set[tuple[Any, ...]] = set()
    for turn in turns:
        said: set[tuple[Any, ...]] = set()
        ending: list[Handle] = []
        acts: list[Callable[[Ref], Any]] = []
        names: list[tuple[str, Any]] = []
        for what, row in turn:
            if what == "!":
                acts.append(partial(_say, row))
                said |= _share(row)
            elif what == "+" and row not in current and row not in names:
                acts.insert(0, partial(_tell, row))
                names.insert(0, row)
            elif what == "-" and row in current:
                ending.append(current.pop(row))
        if ending:
            stage.end(*ending)
        current |= zip(names, stage.act(*acts), strict=False)
        for mark, *share in stage.news():
            shown = shown | {tuple(share)} if mark == "+" else shown - {tuple(share)}
            assert tuple(share) in {("a", 12), ("b", 12), ("a", 6), ("b", 6), ("a", 0), ("b", 0)}
        assert shown == set().union(*map(_share, current))
    assert stage.error is None


def _say(row: tuple[str, Any], ds: Ref) -> None:
    send(ds, Said(*row))


def _tell(row: tuple[str, Any], ds: Ref) -> Handle:
    return assert_(ds, Told(*row))


def _share(row: tuple[str, Any]) -> set[tuple[Any, ...]]:
    who, n = row
    return {(who, 12 // n)} if who != "cat" and type(n) is int and n else set()


def _fails(*row: Any) -> Any:
    """A mistake whatever it is given."""
    return row[-1] // 0


@pytest.mark.parametrize("kind", ["bloom", "dedalus"])
def test_a_function_that_never_makes_a_value(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """It is the program's mistake, logged once as an error; no untrusted peer is blamed, or ends the program by it."""
    stage = Stage(kind, outputs={"share": _fails})
    stage.tell(("a", 1), ("b", 2))
    stage.say(Said("c", 3))
    assert (stage.news(), stage.error, refused(logs)) == ([], None, [])
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("a function of the program has failed for every row so far", "error")
    assert "ZeroDivisionError" in line["reason"]


@record("hosting-here")
class Here:
    """Somebody is here."""

    who: str


@record("hosting-rest")
class Rest:
    """What is left for each of the others."""

    n: int


def _others() -> Circuit:
    c = Circuit()
    c.sink("rest", c.source("here").index_with(lambda _: "all").aggregate(aggregates.count).map(_rest))
    return c


def _rest(pair: tuple[str, int]) -> int:
    return 12 // (pair[1] - 1)


class Others(Bloom):
    """The same in Bloom."""

    here = scratch(["who"], [])
    count = scratch(["n"], [])
    rest = scratch(["n"], [])

    @bloom
    def rules(self) -> None:
        """As many as there are, but one."""
        self.count <= self.here.group([], agg.count())
        self.rest <= self.count.map(lambda row: (12 // (row.n - 1),))


OTHERS = "count(L, count<W>) :- here(L, W);  rest(L, 12 / (N - 1)) :- count(L, N);"
SHARING: dict[str, Make] = {
    "circuit": lambda: (_others(), {}),
    "bloom": lambda: (Others, {}),
    "dedalus": lambda: (Program.parse(OTHERS), {"location": "here"}),
}


@pytest.mark.parametrize("kind", SHARING)
def test_an_end_that_the_rules_fail_with(kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """The row stays, as nobody's; whoever asserts it again has it, and its end is attempted again."""
    stage = Stage(SHARING[kind], inputs={"here": Here}, outputs={"rest": Rest}, messages={}, seen=Rest(capture()))
    (_, two, three) = stage.act(*[lambda ds, who=who: assert_(ds, Here(who)) for who in "abc"])
    stage.end(three)
    assert stage.news() == [("+", 6), ("+", 12), ("-", 6)]
    stage.end(two)
    assert (stage.news(), len(refused(logs))) == ([], 1)
    assert refused(logs)[0].startswith("the end of ")
    for count in (2, 3):
        (again,) = stage.act(lambda ds: assert_(ds, Here("b")))
        assert (stage.news(), len(refused(logs))) == ([], count - 1)
        stage.end(again)
        assert (stage.news(), len(refused(logs))) == ([], count)
    (other,) = stage.act(lambda ds: assert_(ds, Here("d")))
    assert stage.news() == [("+", 6), ("-", 12)]
    stage.end(other)
    assert (stage.news(), len(refused(logs)), stage.error) == ([("+", 12), ("-", 6)], 3, None)


def test_a_plan_has_tuples() -> None:
    """The facts of a program of rules are tuples, of one field too; it is hosted as its circuit is."""
    p = RelationalProgram()
    here = p.edb("here", "who")
    p.rule("there", Projection(here, ("who",)))
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Gone(capture())))
        spawn(host(p.plan(), ds, inputs={"here": Here}, outputs={"there": Gone}))
        assert_(ds, Here("a"))

    settled(boot)
    assert seen == [[("+", "a")]]


@record("hosting-gone")
class Gone:
    """Somebody else."""

    who: str


@pytest.mark.parametrize("kind", ["circuit", "bloom", "dedalus"])
def test_each_start_begins_again(kind: str) -> None:
    """What host() gives can be started again, as a supervisor does: with what is asserted, and nothing of the past."""
    stage = Stage(kind)
    stage.tell(("a", 1))
    stage.say(Later("b", "x"))
    assert [mark for mark, *_ in stage.news()] == ["+", "-"]
    stage.system.spawn(stage.starts[0])
    stage.system.drain()
    assert stage.news() == [("+", "a", 12)]
    stage.tell(("b", 2))
    assert stage.news() == [("+", "b", 6)]


def test_a_program_is_hosted_once() -> None:
    """One that is made, has ticked or lives already, cannot begin again: give the class."""

    def twice(program: Any) -> None:
        ds = dataspace()
        react(host(program, ds))
        react(host(program, ds))

    with pytest.raises(AlreadyRunning, match="give a new one, or the class"):
        settled(lambda: twice(Rules()))
    ticked = Rules()
    ticked.tick()
    with pytest.raises(AlreadyRunning, match="give a new one, or the class"):
        settled(lambda: react(host(ticked, dataspace())))
    settled(lambda: twice(Rules))


def test_only_programs_are_hosted() -> None:
    """What is no program is refused with what would be."""
    with pytest.raises(SyndicateError, match="takes a circuit, what"):
        settled(lambda: spawn(host("rules", dataspace())))  # type: ignore[arg-type]  # that is the mistake


def test_a_host_says_what_a_step_is() -> None:
    """And what is seen of it from outside; nothing else is abstract."""
    assert sorted(Host.__abstractmethods__) == ["advance", "drawings", "loads", "waits"]
