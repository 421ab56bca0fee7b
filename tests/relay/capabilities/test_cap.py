"""The command ``cap``: made, narrowed and checked as text, and mistakes reported in a line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click.testing
import pytest

from relay.capabilities.caveats import rewrite
from relay.capabilities.sturdy import DEFAULT, SIG, claim, mint, parse_ref, revocation, valid
from relay.cli import syndicate_main
from relay.cli.cap import cap, describe
from syndicate import Observe, Record, Ref, Symbol, capture
from syndicate.index.interest import expand
from syndicate.values.text import parse
from syndicate.values.value import freeze, thaw
from tests.work import PATIENCE

KEY = "sixteen bytes!!!"


def run(*args: str, stdin: str | None = None, **environment: str) -> click.testing.Result:
    """The command with *args*, and *stdin* on its standard input."""
    return click.testing.CliRunner().invoke(cap, args, input=stdin, env=environment)


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    """A file with a key."""
    file = tmp_path / "room.key"
    file.write_text(f"{KEY}\n")
    return str(file)


def test_mint_attenuate_check(key_file: str) -> None:
    """A reference is made with a key, narrowed without, and found valid with the key, each caveat in words."""
    minted = run("mint", "room", "--key-file", key_file)
    assert minted.exit_code == 0
    assert parse_ref(minted.stdout) == mint("room", KEY.encode())
    narrow = run("attenuate", "-", "<reject <rec Says [<lit 1> <_>]>>", "<reject String>", stdin=minted.stdout)
    assert narrow.exit_code == 0
    assert valid(parse_ref(narrow.stdout), KEY.encode())
    checked = run("check", "-", "--key-file", key_file, stdin=narrow.stdout)
    assert checked.exit_code == 0
    names = [*map(revocation, claim(freeze(parse_ref(narrow.stdout))).lineage(KEY.encode()))]
    assert checked.stdout.splitlines() == [
        'valid: "room"',
        "  caveat 2 drops String",
        "  caveat 1 drops <rec Says [<lit 1> <_>]>",
        f"  caveat 1 and what came after it is revoked as {names[0]}",
        f"  caveat 2 and what came after it is revoked as {names[1]}",
    ]
    again = run("check", narrow.stdout.strip(), "--key-env", "ROOM_KEY", ROOM_KEY=KEY)
    assert again.stdout == checked.stdout


def test_a_wrong_key(key_file: str) -> None:
    """What was made with another key, or changed, is not valid, and the exit code says so."""
    ref = run("mint", "room", "--key-file", key_file).stdout
    for text, options in ((ref, ["--no-key"]), (ref.replace("room", "roof"), ["--key-file", key_file])):
        checked = run("check", "-", *options, stdin=text)
        assert checked.exit_code == 1
        assert checked.stdout.startswith("not valid: ")
        assert "ask for it again" in checked.stderr
    assert run("check", DEFAULT, "--no-key").exit_code == 0


@pytest.mark.parametrize(
    ("oid", "value"),
    [
        ("syndicate", "syndicate"),
        ("a-service", "a-service"),
        ("'a-service'", Symbol("a-service")),
        ('"x y"', "x y"),
        ("[room 5]", [Symbol("room"), 5]),
        ("5", 5),
    ],
)
def test_names(oid: str, value: Any) -> None:
    """A plain word is a string; anything else is Preserves text."""
    assert parse_ref(run("mint", oid, "--no-key").stdout) == mint(value, b"")


def test_a_new_key(tmp_path: Path) -> None:
    """It is random, in a file that only its owner can read, and never overwritten."""
    file = tmp_path / "key"
    ref = run("mint", "room", "--new-key", str(file)).stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text().strip()
    assert len(bytes.fromhex(key)) == 32
    assert valid(parse_ref(ref), key.encode())
    again = run("mint", "room", "--new-key", str(file))
    assert again.exit_code == 1
    assert "there already" in again.stderr
    assert file.read_text().strip() == key
    assert run("mint", "room", "--key-file", str(file)).stdout == ref
    other = tmp_path / "other"
    run("mint", "room", "--new-key", str(other))
    assert other.read_text() != file.read_text()


def passes(caveats: list[Any], value: Any) -> bool:
    """Whether *value* passes unchanged."""
    form = freeze(value)
    form = expand(form) if isinstance(value, Observe) else form
    return bool(rewrite([freeze(caveat) for caveat in caveats], form) == form)


def test_only_and_watch() -> None:
    """The shorthands let pass what they say: exactly such records, and interest in the label, whole or in part."""
    ref = run("attenuate", DEFAULT, "--only", '<Says "alice" _>', "--only", "[$n <_ String>]", "--watch", "Says").stdout
    caveats = [*parse_ref(ref).caveats]
    assert len(caveats) == 1
    observer = Ref.unbound()
    value: Any
    for value in (
        Record("Says", ["alice", 5]),
        [1, "x"],
        Observe(Record("Says", [capture(), capture()]), observer),
        Observe(capture(Record("Says", [capture()])), observer),
    ):
        assert passes(caveats, value), value
    for value in (
        Record("Says", ["bob", 5]),
        Record("Says", ["alice", 5, 6]),
        Record("Says", ["alice"]),
        [1, 2],
        [1, "x", 3],
        Observe(Record("Secret", [capture()]), observer),
        Observe(capture(), observer),
        5,
    ):
        assert rewrite([freeze(caveat) for caveat in caveats], freeze(value)) is None, value
    both = run("attenuate", DEFAULT, "--only", '{k: <_ Boolean> 1: "x"}', "<reject String>").stdout
    caveats = [*parse_ref(both).caveats]
    assert caveats[0] == parse("<reject String>")
    assert passes(caveats, {Symbol("k"): True, 1: "x", 2: 3})
    assert not passes(caveats, {Symbol("k"): 1, 1: "x"})


@pytest.mark.parametrize(
    ("caveat", "lines"),
    [
        ("<reject <_>>", ["drops <_>"]),
        ("<expires 1>", ["drops everything, because it is not understood"]),
        ("<or []>", ["drops all else"]),
        ("<rewrite String <lit 1>>", ["turns String into <lit 1>", "drops all else"]),
    ],
)
def test_in_words(caveat: str, lines: list[str]) -> None:
    """What a caveat does is said in words."""
    assert describe(parse(caveat)) == lines


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["mint", "room"], 2, "--new-key"),
        (["mint", "room", "--no-key", "--key-env", "X"], 2, "one key"),
        (["mint", "<", "--no-key"], 2, "ends too early"),
        (["mint", "room", "--key-file", "/nowhere/key"], 1, "cannot be read"),
        (["mint", "room", "--key-env", "NOT_THERE"], 2, "NOT_THERE"),
        (["mint", "room", "--key-env", "SHORT"], 1, "needs 16"),
        (["mint", "room", "--new-key", "/nowhere/key"], 1, "cannot be written"),
        (["attenuate", DEFAULT], 2, "--only"),
        (["attenuate", "<ref>", "<reject String>"], 2, "not a capability"),
        (["attenuate", DEFAULT, "<rejct String>"], 2, "not a caveat"),
        (["attenuate", DEFAULT, "<reject"], 2, "ends too early"),
        (["attenuate", DEFAULT, "<reject <not <bind <_>>>>"], 2, "leave it out"),
        (["attenuate", DEFAULT, "--only", "<"], 2, "ends too early"),
        (["attenuate", DEFAULT, "--only", "<$x Set>"], 2, "sets"),
        (["attenuate", "-", "<reject String>"], 2, "not a capability"),
        (["check", DEFAULT], 2, "--key-file"),
        (["check", DEFAULT, "--no-key", "--key-env", "SHORT"], 2, "one key"),
        (["check", "nonsense", "--no-key"], 2, "not a capability"),
    ],
)
def test_mistakes(args: list[str], code: int, words: str) -> None:
    """Each gives one line that says what to do, and no traceback."""
    done = run(*args, stdin="", SHORT="short")
    assert done.exit_code == code, done.output
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("args", [[], ["mint"], ["attenuate"], ["check"]])
def test_help_has_examples(args: list[str]) -> None:
    """Each help shows how."""
    done = run(*args, "--help")
    assert done.exit_code == 0
    assert "Examples:" in done.stdout


def test_in_the_family() -> None:
    """``syndicate cap`` is the same command, as a process of its own too; an example of the help works in a shell."""
    assert "cap" in click.testing.CliRunner().invoke(syndicate_main, ["--help"]).stdout
    program = f"""set -e
    cap() {{ {sys.executable} -c 'from relay.cli import syndicate_main; syndicate_main()' cap "$@"; }}
    cap mint room --new-key room.key >room.ref
    cap attenuate - --only '<Says "alice" _>' --watch Says <room.ref >alice.ref
    cap check - --key-file room.key <alice.ref"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        done = subprocess.run(
            ["sh", "-c", program],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    assert done.stdout.splitlines()[:-1] == [
        'valid: "room"',
        '  caveat 1 lets pass <rec Says [<lit "alice"> <_>]>',
        "  caveat 1 lets pass <rec Observe [<rec group [<rec rec [<lit Says>]> <_>]> <_>]>",
        "  caveat 1 lets pass <rec Observe [<rec bind [<rec group [<rec rec [<lit Says>]> <_>]>]> <_>]>",
        "  caveat 1 drops all else",
    ], done.stderr


def test_a_sturdy_reference_of_the_shell_is_the_one_of_the_library() -> None:
    """The same signature, by either way."""
    text = run("attenuate", DEFAULT, "<reject String>").stdout
    assert parse_ref(text).parameters[SIG] == parse_ref(DEFAULT).attenuate("<reject String>").parameters[SIG]
    assert thaw(freeze(parse_ref(text))) == parse_ref(DEFAULT).attenuate("<reject String>")
