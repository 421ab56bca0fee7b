"""Event logs of programs: what is in them is the run that was, whenever its process ended."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from relay.cli.rules import rules as rules_command
from syndicate import Ref, assert_, current_facet, dataspace, record, send
from syndicate.actors.system import System
from syndicate.bloom import (
    Bloom,
    Network,
    agg,
    bloom,
    bootstrap,
    channel,
    const,
    durable,
    import_module,
    lmax,
    loopback,
    lset,
    periodic,
    scratch,
    table,
    values,
)
from syndicate.bloom.event_log import EventLog, replay, together, together_to_json
from syndicate.bloom.tick.runtime import Instantiated, runtime_of
from syndicate.errors import KeyConflict, ScheduleError, UnwritableElement
from syndicate.flow.element import key_of
from syndicate.lattice import Max

ROOT = Path(__file__).parents[3]
Settle = Callable[[], Awaitable[None]]
State = dict[str, Any]
ODD = [1, 1.0, True, None, (1, frozenset({"s"})), 2**70]


class Counted(Bloom):
    """A module."""

    seen = table(["word"], [])
    many = scratch(["count"], [])

    @bloom
    def counts(self) -> None:
        """How many words there were."""
        self.many <= self.seen.group([], agg.count("word"))


class Node(Bloom):
    """Something of everything: what waits from tick to tick, what is kept, what is sent, what the clock says."""

    counted = import_module(Counted)
    said = channel(["@to", "from", "text"])
    bumped = channel(["@to", "key"], ["value"])
    best = table(["key"], ["value"])
    kept = durable(["text"], [])
    word = scratch(["text"], [])
    gone = scratch(["text"], [])
    later = scratch(["text"], [])
    again = loopback(["text"], [])
    when = table(["tick"], ["time"])
    beats = table(["ident"], ["time"])
    beat = periodic(1)
    known = const(["text"], [], rows=[("x",)])
    most = lmax()
    texts = lset()
    score = table(["who"], ["best"], best=lmax)

    @bootstrap
    def start(self) -> None:
        """A row at the start, and one that is sent."""
        self.word <= [("begin",)]
        self.said < ~values(("b", "boot", "boot"))

    @bloom
    def rules(self) -> None:
        """What follows."""
        self.kept <= self.word.notin(self.known, ("text", "text"))
        self.kept < -self.gone
        self.later < +self.word
        self.again < ~self.later
        self.counted.seen <= self.again
        self.best < +-self.bumped.payloads()
        self.when <= (self.now * self.word).lefts()
        self.beats <= self.beat
        self.texts <= self.said.map(lambda s: s.text)
        self.most <= self.said.map(lambda s: len(s.text))
        self.score <= self.said.map(lambda s: (s.from_, Max(len(s.text))))
        self.said < ~self.said.map(lambda s: (s.from_, s.to, s.text[1:]) if s.text[1:] else None)


def there(program: Instantiated) -> State:
    """All that a program has."""
    runtime = runtime_of(program)
    return {
        name: runtime.value(name) if hasattr(state, "lattice") else set(state.contents.rows)
        for name, state in runtime.states.items()
    }


def rows(noted: Iterable[Any]) -> list[Any]:
    """Rows as a log has them."""
    return list(noted)


def note(states: list[State], program: Bloom) -> None:
    """Add what a program has."""
    states.append(there(program))


def event_log_of(log: Path, size: int, part: Path) -> EventLog:
    """What a log says of which so many bytes were written."""
    part.write_bytes(log.read_bytes()[:size])
    return EventLog.load(part)


def lived(seed: int, place: Path) -> tuple[dict[str, list[State]], dict[str, list[int]]]:
    """Let two programs talk over a bad network: what they had after each tick, and how long their logs were then."""
    rng = random.Random(seed)
    clock = iter(range(10_000))
    make = partial(Node, state=":memory:", clock=lambda: float(next(clock)), write=lambda line: None)
    programs = {one: make(address=one, record=place / one) for one in "ab"}
    net = Network(*programs.values(), seed=seed, loss=0.2, repeat=0.2, delay=3)
    states: dict[str, list[State]] = {one: [] for one in programs}
    sizes: dict[str, list[int]] = {one: [] for one in programs}

    def look(one: str) -> None:
        states[one].append(there(programs[one]))
        sizes[one].append((place / one).stat().st_size)

    for one, program in programs.items():
        runtime_of(program).watchers.append(partial(look, one))
    for _ in range(12):
        node = programs[rng.choice("ab")]
        match rng.randrange(8):
            case 0:
                node.word <= [(rng.choice(["x", "y", "long"]),)]
            case 1:
                node.gone <= [(rng.choice(["y", "long"]),)]
            case 2:
                node.said < ~values((rng.choice("ab"), node.address, rng.choice(["abc", "défg", "\n"])))
            case 3:
                node.deliver(
                    "bumped", [(node.address, "k", rng.choice([1, 1.0, True, None, (1, frozenset({"s"})), 2**70]))]
                )
            case 4:
                node.fire("beat")
            case 5:
                node.most.insert(Max(rng.randrange(9)))
            case 6:
                node.best <= [("k", rng.randrange(3))]
                try:
                    node.tick()
                except KeyConflict:  # it did not happen, and is not in the log
                    node.discard()
            case _:
                node.best.delete(list(node.best))
        net.run() if rng.random() < 0.5 else net.step()
    for node in programs.values():
        node.close()
    return states, sizes


@pytest.mark.parametrize("seed", range(8))
def test_a_log_is_the_run_that_was(tmp_path: Path, seed: int) -> None:
    """Wherever a log ends, the run that it says has after each tick what the program had."""
    states, sizes = lived(seed, tmp_path)
    rng = random.Random(seed)
    for one, all_states in states.items():
        size = (tmp_path / one).stat().st_size
        for end in [size, *(rng.randrange(sizes[one][0], size) for _ in range(3))]:
            log = event_log_of(tmp_path / one, end, tmp_path / "part")
            assert EventLog.of(json.loads(json.dumps(log.to_json()))) == log
            assert len(log.entries) == sum(whole - 1 <= end for whole in sizes[one])  # but for the end of its line
            seen: list[State] = []
            program = Node(address=one, state=":memory:")
            replay(program, log, partial(note, seen, program))
            assert seen == all_states[: len(seen)]
            assert len(seen) == len(log.entries)


@pytest.mark.parametrize("seed", range(3))
def test_together(tmp_path: Path, seed: int) -> None:
    """Each row that arrived was sent before, as far as there are logs; nothing is lost that arrived."""
    states, _ = lived(seed, tmp_path)
    logs = {one: EventLog.load(tmp_path / one) for one in states}
    run = together(logs.values(), lambda log: Node(address=log.address, state=":memory:"))
    assert {one: there(program) for one, program in run.programs.items()} == {one: states[one][-1] for one in "ab"}
    sent = sum(
        len(rows)
        for log in logs.values()
        for entry in log.entries
        for name, rows in entry.sent.items()
        if name == "said"
    )
    assert len([one for one in run.passages if one.channel == "said"]) == sent
    assert (
        {one.receiver for one in run.passages if one.unknown}
        == set(run.unknown)
        == {one.receiver for one in run.passages} - {"a", "b"}
    )
    alone = together([logs["a"]], lambda log: Node(address=log.address, state=":memory:"))
    assert there(alone.programs["a"]) == states["a"][-1]
    assert all(one.unknown is (one.receiver != "a") for one in alone.passages if one.arrived is None)
    fields = json.loads(json.dumps(together_to_json(logs.values(), run)))
    assert [EventLog.of(one) for one in fields["programs"]] == list(logs.values())
    assert {one["arrive"] for one in fields["schedule"] if one["to"] == "boot"} <= {"unknown"}


def test_an_earlier_run_is_kept(tmp_path: Path) -> None:
    """What durable tables had is in the first tick of the next log; the log before stays."""
    for life in range(3):
        program = Node(address="a", state=tmp_path / "state", record=tmp_path / "log", clock=lambda: 1.0)
        program.word <= [(f"word {life}",)]
        program.run()
        before = there(program)
        program.close()
    log = EventLog.load(tmp_path / "log")
    again = Node(address="a", state=":memory:")
    replay(again, log)
    assert there(again) == before
    assert sorted(again.kept) == [("begin",), *((f"word {life}",) for life in range(3))]
    assert sorted(one.name for one in tmp_path.glob("log*")) == ["log", "log.1", "log.2"]


class Drawn(Bloom):
    """A function that gives something else each time."""

    row = scratch(["n"], [])
    out = channel(["@to", "drawn"])
    draws: Iterator[int] = iter(range(1000))

    @bloom
    def rules(self) -> None:
        """Each row is sent with the next number."""
        self.out < ~self.row.map(lambda r: ("b", next(Drawn.draws)))


def test_what_is_refused(tmp_path: Path) -> None:
    """A program that does something else, a file that is no log, and values that cannot be written."""
    program = Drawn(address="a", record=tmp_path / "log")
    program.row <= [(1,)]
    program.tick()
    program.close()
    log = EventLog.load(tmp_path / "log")
    with pytest.raises(ScheduleError, match="in tick 0 Drawn sends other rows than it did"):
        replay(Drawn(address="a"), log)
    with pytest.raises(ScheduleError, match="no collection row: is this the event log of another"):
        replay(Counted(address="a"), log)
    with pytest.raises(ScheduleError, match="two event logs"):
        together([log, log], lambda log: Drawn(address=log.address))
    ticked = Drawn(address="a")
    ticked.tick()
    with pytest.raises(ScheduleError, match="has ticked"):
        replay(ticked, log)
    with pytest.raises(ScheduleError, match="cannot write"):
        Drawn(record=tmp_path)
    head = {"program": "P", "address": 1}
    wrong: list[Any] = [0, [{}], [{"tick": 0, "given": {"row": [1]}}], [{"tick": 0, "given": {"row": {"inserted": 1}}}]]
    for entries in wrong:
        with pytest.raises(ScheduleError):
            EventLog.of({**head, "entries": entries})
    with pytest.raises(ScheduleError, match="stands for no value"):
        EventLog.of({**head, "address": {"$": "?"}, "entries": []})
    odd = Drawn(address="a", record=tmp_path / "odd")
    odd.row <= [(object(),)]
    with pytest.raises(UnwritableElement):
        odd.tick()
    odd.close()
    assert EventLog.load(tmp_path / "odd").entries == []


@record("bloom-log-word")
class Word:
    """Something that is asserted."""

    text: str


@record("bloom-log-shout")
class Shout:
    """Something that is sent."""

    text: str


class Careful(Bloom):
    """A rule that some rows make raise, and a table that keeps what was there."""

    word = scratch(["text"], [])
    gone = scratch(["text"], [])
    kept = table(["text"], [])
    longest = scratch(["rest"], [])

    @bloom
    def careful(self) -> None:
        """What follows from a word."""
        self.longest <= self.word.map(lambda w: (100 // (3 - len(w.text)),))
        self.kept <= self.word
        self.kept < -self.gone


async def test_an_agent(system: System, settle: Settle, tmp_path: Path) -> None:
    """What assertions, messages and untrusted peers bring an agent is in its log, and what was refused is not."""
    programs: list[Careful] = []
    retractions: list[Any] = []
    refs: list[Ref] = []

    def boot() -> None:
        ds = dataspace()
        refs.append(ds)
        programs.append(
            Careful(
                ds,
                address="a",
                record=tmp_path / "a",
                inputs={"word": Word},
                messages={"gone": Shout},
            )
        )
        retractions.append(assert_(ds, Word("asserted")))
        send(ds, Shout("y"))
        retractions.append(current_facet())

    system.spawn(boot)
    await settle()
    facet = retractions[1]
    for text in ("four", "bad", "y"):
        facet.enter(partial(assert_, refs[0], Word(text)))
        await settle()
    facet.enter(retractions[0].retract)
    await settle()
    last = there(programs[0])
    log = EventLog.load(tmp_path / "a")
    words = {row[0] for entry in log.entries for row in rows(entry.given.get("word", {}).get("held", ()))}
    assert words == {"asserted", "four", "y"}
    again = Careful(address="a")
    replay(again, log)
    assert there(again) == last
    assert key_of(("four",)) in last["kept"]


def chatter(place: str) -> None:
    """Send numbers to an other, and print each once it is sent, until the process is killed."""
    program = Node(address="a", state=":memory:", record=Path(place) / "killed")
    program.send = lambda address, channel, row: print(row[-1], flush=True) if channel == "said" else None
    for number in itertools.count():
        program.said < ~values(("b", "a", str(number)))
        program.tick()


@pytest.mark.parametrize("lines", [1, 7, 60])
def test_a_kill(tmp_path: Path, lines: int) -> None:
    """What anybody has heard of a process that was killed is in its log, and the log can be run."""
    code = f"from {__name__} import chatter; chatter({str(tmp_path)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        heard += process.stdout.readlines()
    log = EventLog.load(tmp_path / "killed")
    said = [str(row[-1]) for entry in log.entries for row in rows(entry.sent.get("said", ()))]
    assert set(map(str.strip, heard)) <= {*said, ""}
    program = Node(address="a", state=":memory:")
    replay(program, log)
    assert program.budtime == len(log.entries) >= lines - 1


def test_the_commands(tmp_path: Path) -> None:
    """`together` writes a run that `run`, `why`, `trace` and `check --prove` take."""
    module = tmp_path / "auction.py"
    module.write_text(AUCTION)
    logs = [str(tmp_path / one) for one in "ab"]
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import auction; auction.live({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    rules, was, kind = CliRunner(), str(tmp_path / "was.json"), f"{module}:Auction"

    def said(*words: str) -> str:
        result = rules.invoke(rules_command, words)
        assert result.exit_code == 0, result.output
        return result.output

    out = said("together", kind, *logs, "--output", was)
    assert "'a' in tick 0 -> 'b' in tick 1: bid('b', 'ann')" in out
    assert "'a' in tick 0 -> 'c' in an unknown tick: bid('c', 'cid')" in out
    assert "no event log is of c" in out
    ends = json.loads(said("run", kind, "--schedule", was, "--at", "b", "--json"))
    assert ends["winner"] == [["ann"], ["bob"]]
    assert "rule 2" in said("why", kind, "winner", '"ann"', "--schedule", was, "--at", "b")
    assert "tick 1: bid 2" in said("trace", kind, "--schedule", was, "--at", "b")
    orders = said("check", kind, "--prove", "--schedule", was, "--at", "b")
    assert "tick 1: bid (b, ann); tick 2: bid (b, bob): winner is (ann)" in orders
    assert rules.invoke(rules_command, ["run", kind, "--schedule", was]).exit_code == 1
    assert rules.invoke(rules_command, ["run", kind, "--at", "b"]).exit_code == 2
    assert rules.invoke(rules_command, ["check", kind, "--schedule", was]).exit_code == 2


AUCTION = """
from pathlib import Path

from syndicate.bloom import Bloom, Network, bloom, channel, scratch, table


class Auction(Bloom):
    say = scratch(["to", "who"], [])
    bid = channel(["@to", "who"], [])
    winner = table(["who"], [])

    @bloom
    def rules(self):
        self.bid < ~self.say
        self.winner < +self.bid.payloads().notin(self.winner, lambda b, w: True)


def live(place):
    a, b = (Auction(address=one, record=Path(place) / one) for one in "ab")
    a.say <= [("b", "ann"), ("b", "bob"), ("c", "cid")]
    a.tick()
    b.tick()
    b.deliver("bid", [row for address, _, row in a.sent if address == "b"])
    b.run()
    a.close()
    b.close()
"""
