"""`syndicate why`, and causes in recordings and in simulations."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from relay import connect
from relay.cli import syndicate_main
from relay.protocol.packets import HOPS, Extension, cause, hops_of
from relay.server.broker import Broker
from relay.tools.recording import Recorder, read
from syndicate import Handle, Ref, assert_, capture, current_facet, dataspace, during, open_system, record, run
from syndicate.actors.facet import Facet
from syndicate.introspect import Chronicle, why, written
from syndicate.values.value import SEQ, Symbol
from tests.relay.commands import Start, end
from tests.waiting import until


@record
class Lit:
    """A lamp is on."""

    room: str


@record
class Seen:
    """Somebody has seen it."""

    room: str


def lamps() -> None:
    """Asserts one from the other."""
    ds = dataspace()

    @during(ds, Lit(capture()))
    def see(room: str) -> None:
        assert_(ds, Seen(room))

    assert_(ds, Lit("hall"))


@pytest.fixture
def story(tmp_path: Path) -> str:
    """A file with a chronicle."""
    with written(tmp_path / "story", process="house"):
        run(lamps)
    return str(tmp_path / "story")


def invoke(*args: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(syndicate_main, args)
    return result.exit_code, result.stdout, result.stderr


def test_it_tells_who_caused_what(story: str) -> None:
    """It tells who caused what, as text, as a picture, as JSON."""
    code, out, _ = invoke("why", story, '<Seen "hall">')
    assert code == 0
    assert "lamps.<locals>.see in lamps" in out
    assert '<Lit "hall">' in out
    assert invoke("why", story, "<Seen _>", "--form", "dot")[1].startswith("digraph")
    data = json.loads(invoke("why", story, "<Seen _>", "--json")[1])
    assert data[0]["value"] == '<Seen "hall">'
    assert data[data[0]["premises"][0]]["value"] == '<Lit "hall">'
    assert "test_why_command.py" in data[0]["place"]
    assert "retracted" in invoke("why", story, "<Lit _>", "--retracted")[1]


def test_it_tells_why_not(story: str) -> None:
    """It tells why not."""
    code, out, _ = invoke("why", story, '<Seen "attic">', "--not")
    assert code == 0
    assert "see" in out
    assert '<Seen "hall">' in out


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["<Nothing>"], 1, "ask with --not"),
        (["<Seen _>", "--not", "--retracted"], 2, "leave one of them out"),
        (["<Seen"], 2, "syndicate why: "),
    ],
)
def test_errors_are_of_a_line_or_two(story: str, args: list[str], code: int, said: str) -> None:
    """Errors are of a line or two."""
    got, _, err = invoke("why", story, *args)
    assert got == code
    assert said in err
    assert "Traceback" not in err
    assert invoke("why", "/nowhere", "_")[0] == 1


def test_a_recording_has_causes_if_they_were_sent(tmp_path: Path) -> None:
    """A recording has causes if they were sent, and has none else."""
    path = str(tmp_path / "rec")
    recorder = Recorder(path, address="tcp://127.0.0.1:1")
    recorder.note("+", 1, '<Lit "hall">', ["lamp.py:3 on in lamp of house"])
    recorder.note("-", 1, '<Lit "hall">')
    recorder.close()
    assert [event.why for event in read(path)] == [("lamp.py:3 on in lamp of house",), ()]
    assert invoke("replay", path, "tcp://127.0.0.1:1", "--why")[0] == 2


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A file with what a console has recorded with causes; the last event came without."""
    recorder = Recorder(tmp_path / "rec", address="tcp://127.0.0.1:1")
    recorder.note("+", 1, '<Lit "hall">', ["lamp.py:3 on in lamp of house"])
    recorder.note("+", 2, '<Seen "hall">', ["lamp.py:9 see in lamp of house", "lamp.py:3 on in lamp of house"])
    recorder.note("-", 2, '<Seen "hall">', ["lamp.py:3 on in lamp of house"])
    recorder.note("!", None, "<Bell 1>")
    recorder.close()
    return str(tmp_path / "rec")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["<Lit _>"], ['asserted <Lit "hall">', "turn 1 of rec", "by lamp.py:3 on in lamp of house"]),
        (["<Seen _>"], ["by lamp.py:9 see in lamp of house", "by lamp.py:3 on in lamp of house"]),
        (["<Seen _>", "--retracted"], ['retracted <Seen "hall">', "by lamp.py:3 on in lamp of house"]),
        (["<Seen _>", "--not"], ["nothing matches <Seen _>", 'retracted <Seen "hall">', "lamp.py:3 on in lamp"]),
        (['<Lit "attic">', "--not"], ['but there was <Lit "hall">: said by somebody at ']),
        (["<Bell _>"], ["sent <Bell 1>", "syndicate-console --why"]),
        (["<Litt _>", "--not"], ["there was <Lit ..>"]),
        (['<Lit "hall" 2>', "--not"], ["there was <Lit ..>, with 1 field"]),
    ],
)
def test_a_recording_answers_too(recording: str, args: list[str], words: list[str]) -> None:
    """As far as it says who caused what, and whether something was said at all."""
    code, out, err = invoke("why", recording, *args)
    assert code == 0, err
    for each in words:
        assert each in out


def test_what_is_not_sent_is_said_to_be_missing(recording: str, tmp_path: Path, start: Start) -> None:
    """Causes that were not recorded, and files in the place of a pattern."""
    assert "no event came with causes" not in end(start("syndicate", "replay", recording, "--why"))[2]
    plain = Recorder(tmp_path / "plain", address="tcp://127.0.0.1:1")
    plain.note("+", 1, '<Lit "hall">')
    plain.close()
    code, out, err = end(start("syndicate", "replay", str(tmp_path / "plain"), "--why"))
    assert (code, out.count("Lit")) == (0, 1)
    assert "no event came with causes" in err
    code, _, err = invoke("why", "<Lit _>", recording)
    assert (code, "the pattern comes last" in err) == (2, True)


def test_causes_of_peers_are_bounded_and_can_be_printed() -> None:
    """Causes of peers are bounded and can be printed."""
    hop = ("p", "a", 1, "f.py:1 g")
    assert hops_of(cause([hop] * 50)) == (hop,) * HOPS
    bad = [(SEQ, "p", "a", 1, "\x1b[2J"), (SEQ, "p", "a", "1", ""), "x", (SEQ, "p", "a", 1, "x" * 1000)]
    for each in bad:
        assert hops_of(Extension((Symbol("cause"), each))) is None


def test_faults_are_aimed_by_the_command() -> None:
    """Faults are aimed by the command: found, or all tried, and what was assumed."""
    code, out, _ = invoke("simulate", "examples/simulated/saga.py:noting", "--lineage", "--json")
    data = json.loads(out)
    assert code == 1
    assert data["faults"]
    assert data["runs"] <= 20
    code, out, _ = invoke("simulate", "examples/simulated/cache.py:observing", "--lineage", "--runs", "2")
    assert code == 1
    assert "not all sets" in out
    assert invoke("simulate", "examples/simulated/saga.py:noting", "--most", "2")[0] == 2


async def test_across_the_relay_the_end_of_one_is_not_the_beginning_of_another() -> None:
    """Who lights one lamp as he puts out another says both in one packet: each has its own cause at the other side."""
    async with open_system() as middle, open_system() as lighting, open_system() as seeing:
        systems = {"server": middle, "lighter": lighting, "seer": seeing}
        chronicles = [Chronicle(system, name=name) for name, system in systems.items()]
        opened, seen = trio.Event(), list[str]()
        lamps_of: list[tuple[Ref, Facet]] = []
        middle.spawn(broker := Broker(["tcp://127.0.0.1:0"], opened=lambda _: opened.set()))
        await opened.wait()

        def lighter() -> None:
            @connect(broker.addresses[0])
            def connected(ds: Ref) -> None:
                lamps_of.append((ds, current_facet()))
                during(ds, Seen(capture()))(seen.append)

        def seer() -> None:
            @connect(broker.addresses[0])
            def connected(ds: Ref) -> None:
                during(ds, Lit(capture()))(lambda room: assert_(ds, Seen(room)))

        lighting.spawn(lighter)
        seeing.spawn(seer)
        await until(lambda: lamps_of)
        ds, facet = lamps_of[0]
        handles: list[Handle] = []

        def light(room: str) -> None:
            handles.append(assert_(ds, Lit(room)))
            if len(handles) > 1:
                handles.pop(0).retract()

        for number in range(4):
            facet.enter(partial(light, f"room {number}"))
            await until(lambda: len(seen) > number)  # noqa: B023  # it is asked before the next
        for number in range(3):
            text = str(why(Seen(f"room {number}"), *chronicles, retracted=True))
            assert f'retracted <Lit "room {number}">' in text
            assert f'asserted <Lit "room {number + 1}">' not in text
        text = str(why(Seen("room 3"), *chronicles))
        assert 'asserted <Lit "room 3">' in text
        assert "retracted" not in text
