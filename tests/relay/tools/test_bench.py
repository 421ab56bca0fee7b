"""The bench: that what it measures has happened, and that it notices when something is wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay import connect
from relay.capabilities.sturdy import DEFAULT, parse_ref, show
from relay.server.broker import Broker
from relay.tools.bench import Bench, LoadGenerator, Route, Tally, percentile
from syndicate import ANY, Ref, capture, dataspace, on_asserted, on_message, run, send, spawn, stop_actor
from tests.relay.commands import Process, Server, Start, end
from tests.work import PATIENCE

PROGRAM = [sys.executable, "-c", "from relay.cli import syndicate_main; syndicate_main()", "bench"]


@given(st.lists(st.integers(), min_size=1), st.floats(0, 1))
def test_percentile(values: list[int], share: float) -> None:
    """It is the least value that has so large a share of them not above it."""
    result = percentile(sorted(values), share)
    enough = [value for value in values if sum(other <= value for other in values) >= share * len(values)]
    assert result == min(enough)


@pytest.mark.parametrize(("clients", "window", "count"), [(1, 1, 3), (2, 5, 40), (7, 3, 100), (3, 4, 2)])
def test_what_is_counted_has_happened(clients: int, window: int, count: int) -> None:
    """An observer in the broker hears as many messages and assertions as were counted, all different, of that size."""
    said: list[tuple[object, ...]] = []
    asserted: list[tuple[object, ...]] = []
    instances: list[LoadGenerator] = []

    def boot() -> None:
        ds = dataspace()
        on_message(ds, Bench(capture(), capture(), capture(), capture()))(lambda *value: said.append(value))
        on_asserted(ds, Bench(capture(), capture(), capture(), capture()))(lambda *value: asserted.append(value))
        Broker(["tcp://127.0.0.1:0"], ds=ds, opened=lambda addresses: start(*addresses))()

    def start(address: str) -> None:
        instances.append(
            LoadGenerator(address, parse_ref(DEFAULT), clients=clients, window=window, count=count, size=10)
        )
        spawn(instances[0], linked=True)

    run(boot)
    (load,) = instances
    assert [(tally.kind, tally.sent, tally.arrived) for tally in load.tallies] == [
        ("messages", count, count),
        ("assertions", count, count),
        ("retractions", count, count),
    ]
    assert (load.right, load.finished, load.stood, load.left) == (True, True, 2 * clients, 0)
    assert len(set(said)) == len(said) == count
    assert len(set(asserted)) == len(asserted) == count + clients
    assert {value[0] for value in said + asserted} == {load.run}
    assert {value[3] for value in said} == {load.payload}
    assert all(len(tally.late) == count and min(tally.late) > 0 for tally in load.tallies)


@given(st.lists(st.integers(0, 9), max_size=30))
def test_order_is_watched(coming: list[int]) -> None:
    """Each counts once; those that come after a later one are counted, and those that come again."""
    tally = Tally("messages")
    route = Route(tally)
    for number in range(10):
        route.sent(number)
    for number in coming:
        route.came(number)
    first = list(dict.fromkeys(coming))
    late = [number for i, number in enumerate(first) if number < max(first[:i], default=0)]
    tally.settled = True
    assert (tally.arrived, tally.repeated, tally.lost) == (len(first), len(coming) - len(first), 10 - len(first))
    assert tally.disordered == len(late)
    assert tally.right == (coming == list(range(10)))


CHANGES = """<or [
    <rewrite <rec Bench [<bind <_>> <bind <_>> <lit 5> <_>]> <rec Bench [<ref 0> <ref 1> <lit 5> <lit "other">]>>
    <rewrite <bind <not <rec Bench [<_> <_> <lit 5> <_>]>>> <ref 0>>
]>"""


@pytest.mark.parametrize(("caveat", "counted"), [(None, "repeated"), (CHANGES, "changed")])
def test_wrong_messages_are_noticed(caveat: str | None, counted: str) -> None:
    """One that comes twice, and one with other bytes, are counted, and then the whole is not right."""
    instances: list[LoadGenerator] = []

    def boot() -> None:
        ds = dataspace()
        done: list[int] = []

        @on_message(ds, Bench(capture(), capture(), 3, capture()))
        def again(run: str, to: int, load: bytes) -> None:
            if caveat is None and not done:
                done.append(to)
                send(ds, Bench(run, to, 3, load))

        Broker(["tcp://127.0.0.1:0"], ds=ds, opened=lambda addresses: start(*addresses))()

    def start(address: str) -> None:
        cap = parse_ref(DEFAULT) if caveat is None else parse_ref(DEFAULT).attenuate(caveat)
        instances.append(LoadGenerator(address, cap, clients=1, count=20, kinds=["messages"]))
        spawn(instances[0], linked=True)

    run(boot)
    (tally,) = instances[0].tallies
    wrong = {"lost": tally.lost, "repeated": tally.repeated, "changed": tally.changed, "disordered": tally.disordered}
    assert tally.arrived == 20
    assert {name: count for name, count in wrong.items() if count} == {counted: 1}
    assert not instances[0].right


def bench(*args: str, **env: str) -> tuple[int, str, str]:
    """The exit code of the command, and what it printed."""
    done = subprocess.run(
        [*PROGRAM, *args], capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ, **env}
    )
    return done.returncode, done.stdout, done.stderr


def test_own_server() -> None:
    """Without an address it starts a server, measures that, and leaves no process behind."""
    code, out, err = bench("--messages", "20", "--clients", "2", "--encoding", "preserves", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert [(row["kind"], row["arrived"], row["lost"]) for row in report["results"]] == [
        ("messages", 20, 0),
        ("assertions", 20, 0),
        ("retractions", 20, 0),
    ]
    assert (report["own_server"], report["finished"], report["left"]) == (True, True, 0)
    for row in report["results"]:
        assert 0 < row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["max_ms"]
        assert row["rate"] == pytest.approx(20 / row["seconds"], rel=0.01)
    assert not Path(report["address"].removeprefix("unix://")).parent.exists()


def test_lost_messages(server: Server) -> None:
    """What a reference drops is lost: the exit code says so, and a line how many."""
    cap = show(parse_ref(DEFAULT).attenuate("<reject <rec Bench [<_> <_> <lit 5> <_>]>>"))
    code, out, err = bench(server[1], "--cap", cap, "--messages", "30", "--clients", "2", "--kind", "messages", "--csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (code, row["lost"], row["right"], row["left"]) == (1, "2", "False", "0")
    assert row["sent"] == "12"  # with one at a time, each client waits for that one
    assert err.startswith("syndicate bench: 2 of 12 messages did not arrive\nsyndicate bench: does the reference")


def test_text(server: Server) -> None:
    """A table for people: what was measured, and that nothing was wrong."""
    code, out, err = bench(server[1], "--for", "0.2", "--clients", "2", "--window", "2", "--kind", "assertions")
    first, _, head, *rows = out.splitlines()
    assert (code, err) == (0, "")
    assert first == f"{server[1]}: 2 clients, 128 bytes each, msgpack, at most 2 of each client on their way"
    assert head.split()[:3] == ["number", "a", "second"]
    assert [row.split()[0] for row in rows[:2]] == ["assertions", "retractions"]
    assert "All arrived, once and in order; the 4 that were left asserted are gone." in rows


def test_ctrl_c(server: Server) -> None:
    """On a terminal there is a bar; Ctrl-C gives what was measured so far."""
    ours, theirs = pty.openpty()
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = [PROGRAM[0], "-c", foreground + PROGRAM[2], "bench", server[1], "--for", "60", "--json"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as going:
        os.close(theirs)
        shown = b""
        while b"messages" not in shown:
            shown += os.read(ours, 1000)
        time.sleep(0.3)
        going.send_signal(signal.SIGINT)
        out, _ = going.communicate(timeout=PATIENCE)
    os.close(ours)
    report = json.loads(out)
    assert (going.returncode, report["finished"], report["left"], report["right"]) == (130, False, None, True)
    assert report["results"][0]["arrived"] > 0
    assert b"Traceback" not in shown


def test_server_goes(start: Start, server: tuple[Process, str]) -> None:
    """When the server goes meanwhile, a line says so, after what was measured."""
    going = subprocess.Popen([*PROGRAM, server[1], "--for", "60"], stdout=-1, stderr=-1, text=True)

    def until_it_sends() -> None:
        @connect(server[1], attempts=1)
        def watch(ds: Ref) -> None:
            on_message(ds, Bench(ANY, ANY, 20, ANY))(stop_actor)

    run(until_it_sends)
    server[0].send_signal(signal.SIGTERM)
    code, out, err = end(going)
    assert code == 1
    assert "Not finished" in out
    assert err.splitlines() == [f"syndicate bench: {server[1]} has closed the connection"]


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["tcp://127.0.0.1:1"], 1, "Connection refused. Is a server running there?"),
        (["127.0.0.1:8001"], 2, "no scheme in '127.0.0.1:8001'"),
        (["--messages", "3", "--for", "3"], 2, "--messages and --for both say how much: leave one of them out"),
        (["--json", "--csv"], 2, "leave one of them out"),
        (["--start", "tcp://127.0.0.1:1"], 2, "--start is for a server of its own"),
        (["--ca", "x"], 2, "are for a server that is there: name its ADDRESS"),
        (["--clients", "0"], 2, "0 is not in the range"),
        (["--size", "10000000"], 2, "10000000 is not in the range"),
    ],
)
def test_mistakes(args: list[str], code: int, why: str) -> None:
    """A line on stderr with the remedy, no traceback, and nothing on standard output."""
    returned, out, err = bench(*args)
    assert (returned, out) == (code, "")
    assert why in err
    assert "Traceback" not in err
