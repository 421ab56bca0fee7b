"""Locations of a Dedalus program in processes of their own, by way of a real server; and run again in one place."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from relay import connect
from relay.cli.rules import dedalus
from syndicate import Record, Ref, assert_, capture, on_asserted, react, run, send, stop, stop_actor
from syndicate.dedalus import Agent, EventLog, Program, together
from syndicate.dedalus.ast import Atom, Constant
from syndicate.dedalus.live import Fact, Packet
from tests.relay.commands import Server, Start, command, end
from tests.test_examples import Program as Running
from tests.test_examples import program as running
from tests.work import PATIENCE

GOSSIP = """
    // Each word is sent until it is acknowledged; whoever hears it first passes it on.
    peer("a", "b"); peer("a", "c"); peer("b", "a"); peer("b", "c"); peer("c", "a"); peer("c", "b");
    known(L, X) :- said(L, X);
    known(L, X) :- heard(L, _, X);
    known(L, X)@next :- known(L, X);
    heard(M, L, X)@async :- known(L, X), peer(L, M), notin has(L, M, X);
    ack(L, M, X)@async :- heard(M, L, X);
    has(L, M, X)@next :- ack(L, M, X);
    has(L, M, X)@next :- heard(L, M, X);
    persist[has, 3];
    first(L, min<N>) :- known(L, _)@N;
    words(L, count<X>) :- known(L, X);
    lucky(L, X)@next :- said(L, X), known(L, X), choose((L), (X));
    persist[lucky, 2];
"""

Node = Callable[..., Running]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The program, in a file."""
    path = tmp_path / "gossip.ded"
    path.write_text(GOSSIP)
    return path


@pytest.fixture
def node(file: Path) -> Iterator[Node]:
    """Starts a location in a process of its own, ended with the test."""
    with ExitStack() as stack:

        def node(place: str, address: str, *options: str) -> Running:
            live = ("dedalus", "live", str(file), "--at", place, "--connect", address, "--stdin", *options)
            return stack.enter_context(running(sys.executable, *command("syndicate", *live)[1:]))

        yield node


def by_time(one: Running, until: int) -> dict[int, set[str]]:
    """What was there at each time, by what a location has printed."""
    results: dict[int, set[str]] = {}
    lines = [*one.seen, *one._lines.queue]
    for time in range(1, until + 1):
        results[time] = set(results.get(time - 1, ()))
        for line in lines:
            at, sign, fact = line.split(" ", 2)
            if int(at) == time:
                (results[time].add if sign == "+" else results[time].remove)(fact)
    return results


def words(model: Any, time: int, place: str) -> list[str]:
    """What a location knows in a model."""
    return [word for at, word in model.at(time)["known"] if at == place]


def test_live_and_in_one_place(server: Server, node: Node, file: Path, tmp_path: Path) -> None:
    """Three processes gossip by way of a server; their event logs together are a run with equal contents."""
    _, address = server
    program = Program.load(file)
    places, shown = ("a", "b", "c"), ("words", "lucky", "heard", "has")
    show = [word for name in shown for word in ("--show", name)]
    nodes = {}
    for place in places:
        options = ("--record", str(tmp_path / place), *show, "--every", "0.05")
        nodes[place] = node(place, address, *options)
        nodes[place].say(f'said("{place}", "{place} is here"). said("{place}", "hello")')
        nodes[place].wait_for(r'\+ words\("\w", 2\)')
    for place in places:
        nodes[place].wait_for(r'\+ words\("\w", 4\)')
    nodes["b"].say('said("b", "good"); said("b", "bye");')
    for place in places:
        nodes[place].wait_for(r'\+ words\("\w", 6\)')
    for place in places:
        nodes[place].leave()

    logs = [EventLog.load(tmp_path / place) for place in places]
    model = program.run(**together(logs))
    assert model.until > 5
    for place, log in zip(places, logs, strict=True):
        rows = by_time(nodes[place], model.until)
        stood_still = {time for since, to in log.pauses for time in range(since, to)}  # and nothing was printed
        for time in sorted({*range(1, model.until + 1)} - stood_still):
            there = [Atom(name, tuple(map(Constant, row))) for name in shown for row in model.at(time)[name]]
            assert rows[time] == {str(atom) for atom in there if atom.terms[0] == Constant(place)}
    assert len(model.messages) > 20

    was, result = str(tmp_path / "was.json"), [str(tmp_path / place) for place in places]
    done = CliRunner().invoke(dedalus, ["together", str(file), *result, "--output", was, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout) == json.loads(json.dumps(model.to_json()))
    again = ["run", str(file), "--schedule", was, "--until", str(model.until), "--json"]
    assert json.loads(CliRunner().invoke(dedalus, again).stdout) == json.loads(done.stdout)
    asked = ["verify", str(file), "--eff", "0", "--nodes", "a,b,c", "--invariant", "lucky", "--json"]
    near = json.loads(CliRunner().invoke(dedalus, [*asked, "--around", was]).stdout)
    bare = json.loads(CliRunner().invoke(dedalus, [*asked, "--eot", "3"]).stdout)
    assert (near["violation_exists"], bare["violation_exists"]) == (True, False)


def test_live_within_and_without(server: Server, node: Node, file: Path, tmp_path: Path) -> None:
    """An agent of ours and one in another process: at each timestep of ours, the run in one place has what we had."""
    _, address = server
    program = Program.load(file)
    other = node("b", address, "--record", str(tmp_path / "b"), "--show", "known", "--every", "0.05")
    other.say('said("b", "one")')
    other.wait_for(r'\+ known\("b", "one"\)')
    agent = Agent(program, "a", every=0.05, recorded=True, outputs=["has"], inputs={"said": Record("say", [capture()])})
    instances: list[Any] = []

    def boot() -> None:
        instances.append(agent())

        @connect(address, attempts=1)
        def connected(ds: Ref) -> None:
            instances[0].join(ds)

        @connect(address, attempts=1)
        def person(ds: Ref) -> None:
            saying = react(lambda: assert_(ds, Record("say", ["two"])))

            @on_asserted(ds, Fact("a", "has", ("a", "b", "two")))
            def has() -> None:
                saying.enter(stop)
                send(ds, Packet("a", "said", ("a", "three"), 0))

            @on_asserted(ds, Fact("a", "has", ("a", "b", "three")))
            def has_more() -> None:
                stop_actor()

    run(boot)
    other.wait_for("three")
    other.leave()
    assert other.process.wait(PATIENCE) == 0
    ours, theirs = instances[0].event_log(), EventLog.load(tmp_path / "b")
    model = program.run(**together([ours, theirs]))
    assert words(model, model.until, "a") == ["one", "three", "two"]
    relations = ("said", "known", "heard", "has", "ack", "first", "words", "lucky")
    for time in range(1, min(model.until, ours.time) + 1):
        for name in relations:
            there = [row for row in model.at(time)[name] if row[0] == "a"]
            assert sorted(there, key=repr) == ours.at(name, time)
    assert any(one.at > one.sent + 1 for one in (*ours.arrivals, *theirs.arrivals) if one.sent)


def test_a_server_that_goes_and_comes(start: Start, node: Node) -> None:
    """A location outlives its connection: with the server back, what could not be sent is sent again."""
    process = start("server", "--listen", "tcp://127.0.0.1:0")
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    one, two = (node(place, address, "--show", "known", "--every", "0.05") for place in ("a", "b"))
    one.say('said("a", "before")')
    two.wait_for("before")
    process.kill()
    end(process)
    one.say('said("a", "meanwhile")')
    one.wait_for("meanwhile")
    with pytest.raises(TimeoutError):
        two.wait_for("meanwhile", seconds=0.3)
    again = start("server", "--listen", address)
    assert again.stdout is not None
    again.stdout.readline()
    assert two.wait_for("meanwhile").endswith('+ known("b", "meanwhile")')


def test_what_untrusted_peers_send_does_not_end_it(server: Server, tmp_path: Path) -> None:
    """Text where a number is needed, and rows that are too long, are reported on stderr; what comes after them is
    there.
    """
    _, address = server
    file = tmp_path / "total.ded"
    rules = "total(L, T + X)@next :- total(L, T), add(L, X);\ntotal(L, T)@next :- total(L, T), notin add(L, _);\n"
    file.write_text(f'{rules} total("a", 0)@1;')
    live = ("dedalus", "live", str(file), "--at", "a", "--connect", address, "--output", "total", "--show", "total")
    with running(sys.executable, *command("syndicate", *live)[1:]) as one:
        one.wait_for(r'\+ total\("a", 0\)')

        def boot() -> None:
            @connect(address, attempts=1)
            def person(ds: Ref) -> None:
                @on_asserted(ds, Fact("a", "total", ("a", 0)))
                def listening() -> None:
                    for row in (("a", "five"), ("a", 1, 2), ("a", 5)):
                        send(ds, Packet("a", "add", row, 0))

                @on_asserted(ds, Fact("a", "total", ("a", 5)))
                def five() -> None:
                    stop_actor()

        run(boot)
        one.wait_for(r'\+ total\("a", 5\)')
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(PATIENCE) == 130
    errors = "".join(one.errors)
    for why in (
        f"('a', 'five') of add makes a timestep fail: {file}:1:1: at time",
        "0 + 'five' needs numbers, and 'five' is text",
        "('a', 1, 2) is no row of add: a sequence of 2",
    ):
        assert why in errors
    assert "Traceback" not in errors


def test_what_is_typed(server: Server, node: Node, tmp_path: Path) -> None:
    """What is no event is reported, and the next line is taken; --until ends the command, --json is for programs."""
    _, address = server
    one = node("a", address, "--json", "--show", "known")
    for line in ('said("a")', "nonsense(", "said(X, Y)", "known(X) :- p(X)", 'said("b", 1)', "", 'said("a", 1)'):
        one.say(line)
    report = json.loads(one.wait_for("known"))
    assert (report["rel"], report["tuple"], report["there"]) == ("known", ["a", 1], True)
    with pytest.raises(AssertionError):
        one.leave()
    assert one.process.wait(PATIENCE) == 0
    errors = "".join(one.errors)
    for why in ("sequence of 2", "expected", "is no event", "is at 'b', not at 'a'"):
        assert why in errors
    assert "Traceback" not in errors
    two = node("b", address, "--until", "3", "--every", "0.01")
    assert two.process.wait(PATIENCE) == 0


def test_ctrl_c(server: Server, node: Node, tmp_path: Path) -> None:
    """Ctrl-C ends it without a word, and what it has seen is written down."""
    _, address = server
    one = node("a", address, "--show", "known", "--record", str(tmp_path / "a"))
    one.say('said("a", "hi")')
    one.wait_for("known")
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(PATIENCE) == 130
    assert "Traceback" not in "".join(one.errors)
    arrived = EventLog.load(tmp_path / "a").arrivals
    assert [(one.relation, one.row) for one in arrived] == [("said", ("a", "hi"))]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_event_log_survives_its_process(
    server: Server, node: Node, file: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Whatever ends the process, the event log has all that was printed; a place without one is named."""
    _, address = server
    show = [word for name in ("known", "heard") for word in ("--show", name)]
    one = node("a", address, *show, "--record", str(tmp_path / "a"), "--every", "0.05")
    for word in ("hi", "ho"):
        one.say(f'said("a", "{word}")')
        one.wait_for(rf'\+ known\("a", "{word}"\)')
    one.process.send_signal(number)
    one.process.wait(PATIENCE)
    log = EventLog.load(tmp_path / "a")
    assert [arrived.row for arrived in log.arrivals] == [("a", "hi"), ("a", "ho")]
    done = CliRunner().invoke(dedalus, ["together", str(file), str(tmp_path / "a")])
    assert done.exit_code == 0
    printed = [line.strip() for line in (*one.seen, *one._lines.queue)]
    assert len(printed) >= 2
    assert set(printed) <= set(done.stdout.splitlines())
    assert "no event log is of b" in done.stderr
    assert "lost" not in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (["--at", "a"], 2, "Missing option '--connect'"),
        (["--at", "a", "--connect", "nowhere"], 2, "nowhere"),
        (["--at", "a", "--connect", "tcp://127.0.0.1:9", "--show", "nothing"], 1, "no relation 'nothing'"),
        (["--at", "a", "--connect", "tcp://127.0.0.1:9", "--every", "0"], 2, "--every"),
        (["--at", "a", "--connect", "tcp://127.0.0.1:9", "--until", "0"], 2, "--until"),
        (["--at", "a", "--connect", "tcp://127.0.0.1:9", "--record", "/no/such/place"], 1, "cannot write"),
    ],
)
def test_mistakes(file: Path, options: list[str], code: int, why: str) -> None:
    """A mistake is reported in a line, with the exit code of its kind."""
    done = CliRunner().invoke(dedalus, ["live", str(file), *options])
    assert done.exit_code == code
    assert why in done.output
    assert "Traceback" not in done.output


def test_event_logs_that_are_none(file: Path, tmp_path: Path) -> None:
    """What is no event log is named."""
    (tmp_path / "x").write_text("[]")
    (tmp_path / "y").write_text("no json")
    for name, why in (("x", "no event log"), ("y", "no event log"), ("z", "cannot read")):
        done = CliRunner().invoke(dedalus, ["together", str(file), str(tmp_path / name)])
        assert done.exit_code == 1
        assert why in done.output
        assert str(tmp_path / name) in done.output
