"""The benchmarks, with tiny sizes: that they run and say what they measured; their figures mean nothing here."""

from __future__ import annotations

import doctest
import json
import re
import socket
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import dataspace, insight, relay
from benchmarks.cases import Case, cases, select
from benchmarks.figure import Broken
from benchmarks.load import Changes, Marks, Messages, Peer, Receiver, Source, codec
from benchmarks.measure import PEER, ROOT, Result
from benchmarks.overview import RESULTS, NoSuchRow, page
from benchmarks.profile import profile
from benchmarks.relay_report import relay_section
from benchmarks.report import Surroundings, exponent, section, write
from relay.protocol.packets import A, M, R
from syndicate import native
from syndicate.values.value import SEQ, Symbol
from tests.work import PATIENCE

AROUND = Surroundings("python -m benchmarks", 3, "today", "0", "CPython", "0.19.3 on Python 3", "a machine")
TINY = {"observers": 3, "count": 200, "assertions": 40, "users": 3, "skeletons": 2}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as its user does."""
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)


def tiny(case: Case) -> dict[str, object]:
    """The arguments of a case, cut down."""
    return {name: TINY.get(name, value) for name, value in case.arguments.items() if name != "passes"}


@pytest.mark.parametrize(
    "module", ["cases", "load", "measure", "overview", "relay_report", "report", "server", "stopwatch", "websocket"]
)
def test_examples(module: str) -> None:
    """The examples in the docstrings hold."""
    outcome = doctest.testmod(import_module(f"benchmarks.{module}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted
    assert not outcome.failed


COMMANDS = [path for path in sorted((ROOT / "benchmarks").glob("*.py")) if "@click.command" in path.read_text()]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_help_measures_nothing(path: Path) -> None:
    """Each benchmark says what it does, and has written nothing by then."""
    results = (ROOT / "benchmarks/RESULTS.md").read_bytes()
    main = import_module(f"benchmarks.{path.stem}").main
    shown = CliRunner().invoke(main, ["--help"])
    assert shown.exit_code == 0
    assert shown.output.startswith("Usage: ")
    assert (ROOT / "benchmarks/RESULTS.md").read_bytes() == results


def test_sections_of_the_results_are_whole() -> None:
    """Between the markers of a section, which are replaced when it is measured, no other section stands."""
    text = (ROOT / "benchmarks/RESULTS.md").read_text()
    for name, inside in re.findall(r"<!-- (\w+): begin -->\n(.*?)<!-- \1: end -->", text, re.DOTALL):
        assert "<!--" not in inside, name
        assert len(re.findall("^## ", inside, re.MULTILINE)) <= 1, name


@pytest.mark.parametrize(
    "case", select("a,b,c,d,e,f,scale,generation,tracing", cases(quick=True)), ids=lambda case: case.key
)
def test_our_side_of_each_workload(case: Case) -> None:
    """Each workload comes to its end and answers positive figures."""
    workload = getattr(insight if case.module == "insight" else dataspace, case.function)
    figure = workload(**tiny(case))
    assert all(value > 0 for value in (figure.values() if isinstance(figure, dict) else [figure]))


@pytest.mark.skipif(not (ROOT / PEER).exists(), reason="syndicate-py is installed by `make bench` only")
def test_both_sides_side_by_side(tmp_path: Path) -> None:
    """A run with the peer measures both sides of a workload, and writes the ratio down."""
    written = tmp_path / "RESULTS.md"
    done = bench("--quick", "--only", "d,e-10", "--json", "--output", str(written))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [result["key"] for result in results] == ["d", "e-10"]
    assert all(len(result["baseline"]) == len(result["ours"]) == 1 for result in results)
    assert "| d: box and client |" in written.read_text()


def test_our_side_alone() -> None:
    """Without the peer, our figures are shown, progress goes to stderr, and no file is written."""
    done = bench("--quick", "--alone", "--only", "e-10")
    assert done.returncode == 0, done.stderr
    assert "| e: presence, U=10 | - |" in done.stdout
    assert done.stderr == "1/1  round 1  e-10  ours\n"


def test_a_missing_peer_is_said_with_the_remedy(tmp_path: Path) -> None:
    """Without syndicate-py the command ends with code 2 and the line that installs it."""
    done = bench("--quick", "--peer-python", str(tmp_path / "python"))
    assert done.returncode == 2
    assert "pip install syndicate-py==0.19.3" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_workload_is_a_usage_error() -> None:
    """A name that no workload has is named, with code 2."""
    done = bench("--only", "d,nothing")
    assert done.returncode == 2
    assert "no workload is called 'nothing'" in done.stderr


def test_what_has_no_profile_says_so() -> None:
    """A workload that compares two things is refused in one line."""
    done = bench("--profile", "tracing")
    assert done.returncode == 2
    assert "tracing cannot be profiled" in done.stderr


def test_names_are_unique() -> None:
    """Each workload can be chosen by its name."""
    keys = [case.key for case in cases()]
    assert len(keys) == len(set(keys))


def test_the_profile_is_of_the_measured_part() -> None:
    """A profile of time names the index's work and leaves out the set-up; one of memory names lines."""
    of_time = profile(Case("x", "", "messages", {"observers": 2, "count": 500, "batched": True, "passes": 2}))
    assert "syndicate/" in of_time
    assert "analysis.py" not in of_time
    assert "syndicate/" in profile(Case("y", "", "memory", {"kind": "assertion", "count": 50}))


def test_verdicts() -> None:
    """The table says by the ratio of the medians which targets were reached, and by how much."""
    case = Case("d", "d: box", "box", {}, "trips/s", reach=10, stretch=25)
    text = section([Result(case, [10.0, 20.0, 30.0], [200.0, 400.0, 900.0])], AROUND, {})
    assert "| d: box | 20.0 | 400 trips/s | 20.0x (20.0 to 30.0) | 10x | 25x | reach |" in text
    assert "| **below** |" in section([Result(case, [10.0], [99.0])], AROUND, {})
    assert "| stretch |" in section([Result(case, [10.0], [250.0])], AROUND, {})
    assert "| reach, unsure |" in section([Result(case, [10.0, 10.0, 10.0], [90.0, 150.0, 160.0])], AROUND, {})


def test_a_failure_is_shown() -> None:
    """A workload without figures does not spoil the report, and says why."""
    failed = Result(Case("d", "d: box", "box", {}, reach=10), failure="d, baseline: ended with code 1: KeyError")
    growth = [Result(case) for case in select("growth,scale", cases())]
    text = section([failed, *growth], AROUND, {})
    assert "| d: box | - | - | - | 10x | - | - |" in text
    assert "- d, baseline: ended with code 1: KeyError" in text


def test_growth_of_a_linear_search_is_seen() -> None:
    """What takes ten times as long with ten times as many observers is below the target."""
    chosen = select("growth-one", cases())
    text = section([Result(case, [], [1e6 / case.arguments["observers"]]) for case in chosen], AROUND, {})
    assert "| 1.000 (1.000 to 1.000) | **below** |" in text
    assert exponent({10: 5.0, 100: 5.0, 1000: 5.0}) == 0


def test_other_sections_stay(tmp_path: Path) -> None:
    """Writing a section replaces that section alone."""
    path = tmp_path / "RESULTS.md"
    write(path, "dataspace", "old\n")
    write(path, "flow", "flow\n")
    write(path, "dataspace", "new\n")
    text = path.read_text()
    assert text.startswith("# Results\n")
    assert "<!-- dataspace: begin -->\nnew\n<!-- dataspace: end -->\n" in text
    assert text.endswith("<!-- flow: begin -->\nflow\n<!-- flow: end -->\n")
    path.write_text(text.replace("<!-- flow: end -->\n", ""))
    with pytest.raises(ValueError, match="without <!-- flow: end -->"):
        write(path, "flow", "again\n")


@pytest.mark.parametrize(
    "case",
    [case for case in select("relay", cases(quick=True)) if case.key.endswith("-10") or case.key == "relay-fanout-1"],
    ids=lambda case: case.key,
)
def test_load_on_a_broker(case: Case) -> None:
    """Each of the relay's workloads comes to its end, with nothing lost or out of order, and returns its figures."""
    arguments = {**case.arguments, "connections": min(case.arguments["connections"], 3), "seconds": 0.1}
    figure = getattr(relay, case.function)(**arguments)
    assert all(value > 0 for value in figure.values())
    text = relay_section([Result(case, [], [figure])], AROUND, {})
    assert text.count(f"| {case.title} | ") == 1


def test_the_brokers_profile_is_of_the_broker() -> None:
    """A profile of a broker names what it does with packets, and not that it waits for some."""
    text = profile(Case("relay-turns-2", "", "messages", {"connections": 2, "seconds": 1.0}, module="relay"))
    assert re.search("do_usual|make_round" if native.library else "relay/protocol/codec/msgpack.py", text), text
    assert "method 'poll' of" not in text


def source(number: int, events: int) -> Source:
    """One that was never connected."""
    return Source(Peer.__new__(Peer), [b""] * events, number)


def packets(encoding: str, *turns: list[object]) -> bytes:
    """What a broker sends."""
    spoken = codec(encoding)
    return b"".join(spoken.encode((SEQ, *[(SEQ, 2, event) for event in turn])) for turn in turns)


def test_what_is_lost_is_seen() -> None:
    """The load's receivers refuse an event that is missing, doubled or in the wrong place; a Nop is nothing."""
    messages: list[object] = [(M, (SEQ, number)) for number in (0, 1, 2, 0, 1)]
    heard = Messages([source(0, 3)], 1)
    heard(b"\xc2" + packets("msgpack", messages[:2], messages[2:]), 0.0)
    assert (heard.counts[0], heard.packets) == (5, 2)
    for wrong in (0, 1):
        with pytest.raises(Broken, match="event 5 of source 0 should have come"):
            heard(packets("msgpack", [messages[wrong]]), 0.0)
    changes = Changes([source(0, 3), source(1, 3)], 1)
    first: list[object] = [(A, (SEQ, 1, 0), 7), (R, 7), (A, (SEQ, 0, 0), 8)]
    changes(packets("msgpack", first), 0.0)
    assert changes.current == {8}
    with pytest.raises(KeyError):
        changes(packets("msgpack", [(R, 7)]), 0.0)
    with pytest.raises(Broken, match="the broker said"):
        heard(codec("msgpack").encode((Symbol("error"), "no", 1)), 0.0)


def test_a_broker_that_hangs_up_is_seen() -> None:
    """Whoever is let in and then dropped does not wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def drop() -> None:
            door.accept()[0].close()

        dropping = threading.Thread(target=drop)
        dropping.start()
        with pytest.raises((Broken, ConnectionResetError)):
            Peer(door.getsockname())
        dropping.join()


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_messages_in_preserves_are_counted(cut: int) -> None:
    """They are, wherever what was read ends."""
    heard: Receiver = Marks([source(0, 3)], 1)
    data = packets("preserves", [(M, (SEQ, 1000)), (M, (SEQ, 180))], [(M, (SEQ, 77))])
    heard(data[:cut], 0.0)
    heard(data[cut:], 0.0)
    assert heard.counts[0] == 3


def test_verdicts_on_the_stopped_consumer() -> None:
    """What is below its gate is said to be, and so is a consumer that never came right."""
    (case,) = select("relay-stopped", cases())
    names = ("a second", "a broker's second", "p50 ms", "p99 ms")
    figure = dict.fromkeys([*names, *[f"{name}, hung" for name in names]], 1.0)
    figure |= {"rate kept": 0.89, "rate kept, by processor time": 0.9, "p99 grown": 2.1, "keys": 100}
    figure |= {
        "waiting entries": 400,
        "collapsed": 5,
        "MiB before": 90,
        "MiB more at most": 64,
        "MiB more in the end": 0,
    }
    figure |= {"s until caught up": 0.1, "s until right": 0.2}
    text = relay_section([Result(case, [], [figure])], AROUND, {})
    assert text.count("| **below** |") == 2
    assert text.count("| reach |") == 3
    failed = Result(case, failure="relay-stopped, ours: the stopped consumer: 5 values stand")
    assert "- relay-stopped, ours: the stopped consumer" in relay_section([failed], AROUND, {})


def test_the_first_page_says_what_the_tables_say() -> None:
    """It is made of them, and was made again when they were; a work that is not measured is reported."""
    results = RESULTS.read_text()
    assert page(results) in results
    with pytest.raises(NoSuchRow, match="measure that section first"):
        page("## Brokers\n")


@pytest.mark.parametrize("kind", ["assertion", "assertion-told", "observer"])
def test_the_footprint_of_one_of_many(kind: str) -> None:
    """A number of bytes that such a thing can have, by the pages of a process of its own."""
    command = [sys.executable, "-P", str(ROOT / "benchmarks/footprint_side.py"), kind, "5000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert 50 < float(done.stdout) < 5_000
