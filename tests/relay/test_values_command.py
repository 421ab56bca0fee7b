"""`syndicate assert`, `send`, `query`, `get` and `watch`, as processes beside a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from relay import connect
from relay.cli import syndicate_main
from relay.cli.json_values import from_json, parse_json, to_json
from syndicate import Record, Ref, assert_, run, send, stop_actor, sync
from syndicate.errors import TextError
from syndicate.values.value import freeze
from tests.relay.commands import Process, Server, Start, command, end, within
from tests.relay.hostile import Peer
from tests.strategies import values
from tests.work import PATIENCE

HELD = ['<Present "alice">', "<Present bob>", "<Job 1 {state: failed}>", "<Job 2.5 []>"]


@pytest.fixture
def syndicate(start: Start, server: Server) -> Callable[..., Process]:
    """Starts a command of these at the server."""
    _, address = server
    return lambda verb, *arguments: start("syndicate", verb, *arguments, SYNDICATE_ADDRESS=address)


@pytest.fixture
def held(syndicate: Callable[..., Process]) -> Process:
    """What asserts some values, until it is ended."""
    process = syndicate("assert", *HELD)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("asserted 4 values at tcp://")
    return process


def test_what_is_asserted_is_found_until_its_command_ends(syndicate: Callable[..., Process], held: Process) -> None:
    """Captures with tabs between, or whole values; as JSON by their names; nothing afterwards."""
    assert end(syndicate("query", "<Present $who>")) == (0, '"alice"\nbob\n', "")
    assert end(syndicate("query", "<Job $ $>")) == (0, "1\t{state: failed}\n2.5\t[]\n", "")
    assert end(syndicate("query", "<Present _>")) == (0, '<Present "alice">\n<Present bob>\n', "")
    assert set(end(syndicate("query", "_"))[1].splitlines()) == set(HELD)
    code, out, _ = end(syndicate("query", "<Job $id $>", "--json"))
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"id": 1, "2": {"preserves": "{state: failed}"}},
        {"id": 2.5, "2": []},
    ]
    assert end(syndicate("get", "<Present $who>")) == (0, '"alice"\n', "")
    held.terminate()
    assert end(held)[0] == 143
    assert end(syndicate("query", "<Present $who>")) == (0, "", "")
    assert end(syndicate("get", "<Present $who>")) == (1, "", "syndicate get: nothing matches\n")


def test_a_command_beside_an_assertion(syndicate: Callable[..., Process], server: Server) -> None:
    """It runs while the value is asserted; its exit code is that of both."""
    asked = "subprocess.run(sys.argv[1:], capture_output=True).stdout"
    program = f"import subprocess, sys; sys.exit(4 if b'here' in {asked} else 5)"
    query = command("syndicate", "query", server[1], "<Is $where>")
    code, out, err = end(syndicate("assert", "<Is here>", "--", sys.executable, "-c", program, *query))
    assert (code, out) == (4, "")
    assert err.startswith("asserted 1 value at")
    assert end(syndicate("query", "<Is $where>"))[1] == ""


@pytest.mark.parametrize(
    ("quota", "words", "said"),
    [
        ("assertions = 1", ["assert", "<A 1>", "<A 2>", "<A 3>"], "quota-assertions: "),
        ("bytes = 2000", ["assert", f'<A "{"x" * 3000}">'], "quota-bytes: "),
        ("assertions = 1", ["watch", "<A $x>"], "quota-assertions: "),
    ],
)
def test_what_is_beyond_a_quota_ends_the_command(
    start: Start, tmp_path: Path, quota: str, words: list[str], said: str
) -> None:
    """To say it again would be refused again: a script gets to know which quota it was, by the exit code and in
    words.
    """
    config = tmp_path / "server.toml"
    config.write_text(f"[quota]\n{quota}\n", encoding="utf-8")
    server = start("server", "--listen", "tcp://127.0.0.1:0", "--config", str(config))
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    first = start("syndicate", "assert", address, "<First>")  # who is within it is not notified, and stays
    assert first.stderr is not None
    assert first.stderr.readline().startswith("asserted 1 value at")
    code, out, err = end(start("syndicate", words[0], address, *words[1:]))
    assert (code, out) == (1, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert err.startswith(f"syndicate {words[0]}: ")
    first.terminate()
    assert end(first)[0] == 143


def test_kick_says_whom_it_has_ended(start: Start, tmp_path: Path) -> None:
    """By the name that the server asserts of a peer; nobody has it a second time, and a script gets to know."""
    server = start(
        "server", "--listen", "tcp://127.0.0.1:0", "--listen", f"unix://{tmp_path}/s", "--admin", "127.0.0.1:0"
    )
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    admin = next(line for line in server.stdout if line.startswith("watch itself")).split("'")[1]
    operator = {"SYNDICATE_ADDRESS": address, "SYNDICATE_CAP": admin}
    here = Peer(f"{tmp_path}/s")  # whose name no command has
    names = [json.loads(line) for line in end(start("syndicate", "query", "<peer $ _ _>", **operator))[1].splitlines()]
    (name,) = [name for name in names if name.startswith("unix:")]  # the other is the question's
    assert end(start("syndicate", "kick", name, **operator)) == (0, "", "1 session ended\n")
    with closing(here.socket), pytest.raises(ConnectionError):
        here.receive()
    code, out, err = end(start("syndicate", "kick", name, **operator))
    assert (code, out) == (1, "")
    assert err.startswith(f"syndicate kick: nobody has the name {name}: ")
    assert len(err.splitlines()) == 1


def test_get_waits(syndicate: Callable[..., Process], server: Server) -> None:
    """For what is yet to come, and no longer once it has."""
    waiting = syndicate("get", "<Ready $what>", "--wait", str(PATIENCE), "--json")
    asserting = syndicate("assert", '<Ready "db">')
    assert end(waiting) == (0, '{"what": "db"}\n', "")
    asserting.terminate()
    end(asserting)


def test_messages_are_followed(syndicate: Callable[..., Process], server: Server) -> None:
    """In order, each with its mark, whoever sent or asserted them."""
    watching = syndicate("watch", "<Says $who $what>", "--json", "--count", "5")
    assert end(syndicate("get", "<Observe <group <rec Says> _> _>", "--wait", str(PATIENCE)))[0] == 0

    def boot() -> None:
        @connect(server[1], attempts=1)
        def talk(ds: Ref) -> None:
            assert_(ds, Record("Says", ["bot", 0]))
            send(ds, Record("Says", ["ann", "hi"]))
            sync(ds, stop_actor)

    run(boot)
    assert end(syndicate("send", '<Says "ann" 1>', "<Unheard>", "<Says bob [2]>"))[0] == 0
    code, out, err = end(watching)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["event"], line["who"], line["what"]) for line in lines] == [
        ("+", "bot", 0),
        ("!", "ann", "hi"),
        ("-", "bot", 0),
        ("!", "ann", 1),
        ("!", {"preserves": "bob"}, [2]),
    ]
    assert all(list(line)[:2] == ["time", "event"] for line in lines)
    assert (code, err) == (0, "")


def test_standard_input(syndicate: Callable[..., Process], server: Server) -> None:
    """A value a line, all of them read before one is sent."""
    watching = syndicate("watch", "[$ $]", "--count", "2500")
    observed = end(syndicate("get", "<Observe <group <arr> _> $observer>", "--wait", str(PATIENCE)))
    assert (observed[0], observed[1][:2]) == (0, "#:")
    text = "".join(f'[{number}, "x"]\n' for number in range(2500))
    sending = subprocess.run(
        command("syndicate", "send", server[1], "--json", "-"),
        input=text, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (sending.returncode, sending.stderr) == (0, "")
    _, out, _ = end(watching)
    assert [int(line.split()[2]) for line in out.splitlines()] == list(range(2500))
    bad = subprocess.run(
        command("syndicate", "send", server[1], "-"),
        input="<ok>\n\n<broken\n", capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert bad.returncode == 2
    assert bad.stderr.startswith("syndicate send: line 3: the text ends too early")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["assert"], "Missing argument 'VALUE'"),
        (["query"], "Missing argument 'PATTERN'"),
        (["query", "tcp://127.0.0.1:1"], "Missing argument 'PATTERN'"),
        (["query", "<a>", "<b>"], "one pattern, and got 2"),
        (["query", "<a>", "tcp://127.0.0.1:1"], "the address comes before the pattern: syndicate query tcp:"),
        (["query", "<a $x $x>"], "two captures of it are called x"),
        (["watch", "<a $event>"], '"event" is a key of each line'),
        (["assert", "<a>", "--"], "write it, or leave -- out"),
        (["assert", "<a>", "--", "no-such-command"], "no such command on PATH"),
        (["assert", "<a $x"], "value 1: the text ends too early"),
        (["send", "--json", "<a>"], "value 1: no JSON"),
        (["send", "--json", "null"], "null is no value"),
        (["get", "{a}"], "not Preserves text"),
        (["send", "tcp://127.0.0.1", "<a>"], "127.0.0.1"),
        (["query", "--cap", "bad", "_"], "not a capability"),
        (
            ["assert", '["a"]', "tcp://127.0.0.1:1"],
            "comes before the value: syndicate assert tcp://127.0.0.1:1 '[\"a\"]'",
        ),
        (["send", "<a>", "<b>", "tcp://127.0.0.1:1"], "comes before the value: syndicate send tcp://127.0.0.1:1 '<a>'"),
        (["assert", "tcp://127.0.0.1:1"], "Missing argument 'VALUE'"),
        (["assert", 'Present("alice")'], "records are written <Present"),
        (["query", "localhost:8001", "_"], "no scheme in 'localhost:8001': write tcp://HOST:PORT"),
        (["query", "http://localhost:8001", "_"], "write tcp://HOST:PORT"),
        *[(["get", "_", "--wait", seconds], "is not finite: write a number, such as 30") for seconds in ("nan", "inf")],
        (["get", "_", "--wait", "-1"], "not in the range"),
        (["assert", "<a>", "--for", "nan"], "is not finite"),
        (["send", "<a>", "--rate", "inf"], "is not finite"),
        (["asert", "<a>"], "did you mean assert?"),
    ],
)
def test_mistakes(arguments: list[str], said: str) -> None:
    """One or two lines that name the input and the remedy, and exit code 2, before anything is connected."""
    code, out, err = within(syndicate_main, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["asert", "<a>"], ["query"], ["assert", "<a $x"], ["assert", "<a>", "--"]])
def test_mistakes_as_a_process(start: Start, arguments: list[str]) -> None:
    """It says the same, and ends with the same code: of another command, click, the values, and this command."""
    assert end(start("syndicate", *arguments)) == within(syndicate_main, *arguments)


def test_nobody_is_there(start: Start) -> None:
    """The remedy is named, and the exit code is 1."""
    code, _, err = end(start("syndicate", "query", "tcp://127.0.0.1:1", "_"))
    assert code == 1
    assert "Start one with: syndicate-server" in err


@given(values(refs=False))
def test_json_keeps_each_value(value: Any) -> None:
    """Through a line of JSON and back it is the same value, be it one that JSON does not have."""
    line = json.dumps(to_json(value))
    assert freeze(parse_json(line)) == freeze(value)


@pytest.mark.parametrize(
    "text", ["{", "nul", "null", '[{"a": null}]', '{"preserves": "<"}', "[" * 5000, "[" * 200 + "]" * 200]
)
def test_what_is_no_value_is_refused(text: str) -> None:
    """With a word on what to do, and never with Python's own error."""
    with pytest.raises(TextError):
        parse_json(text)


def test_an_object_that_only_looks_like_text() -> None:
    """A dictionary whose one key is that of texts stays a dictionary."""
    assert from_json(to_json({"preserves": "<a>"})) == {"preserves": "<a>"}
    assert from_json({"preserves": 1}) == {"preserves": 1}
