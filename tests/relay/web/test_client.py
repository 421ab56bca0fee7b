"""The client for browsers and Node: the same meaning as in Python, against a real server."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from syndicate.values.text import parse
from syndicate.values.value import Frozen, freeze
from tests.relay.commands import Server, Start
from tests.relay.web.conformance import Case, traces
from tests.work import PATIENCE

HERE = Path(__file__).parent
WEB = HERE.parents[2] / "relay" / "web"
CASES: list[Case] = json.loads((HERE / "cases.json").read_text())
NODE = shutil.which("node")
node = pytest.mark.skipif(NODE is None, reason="node is not installed: apt install nodejs")


def run_node(script: str, *args: str) -> str:
    """What a script prints."""
    assert NODE is not None
    done = subprocess.run([NODE, HERE / script, *args], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def values(trace: list[list[Any]]) -> list[tuple[str, str, list[Frozen]]]:
    """A trace with values in place of texts, since there are several ways to write one."""
    return [(name, mark, [freeze(parse(text)) for text in captures]) for name, mark, captures in trace]


@pytest.fixture
def other_server(start: Start) -> Server:
    """One more server."""
    process = start("server", "--listen", "tcp://127.0.0.1:0")
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


@node
def test_same_traces_as_python(server: Server, other_server: Server) -> None:
    """The shared cases mean the same in both languages."""
    ours = traces(server[1], CASES)
    theirs = json.loads(run_node("conformance.mjs", other_server[1], str(HERE / "cases.json")))
    assert list(theirs) == [case["name"] for case in CASES] == list(ours)
    for name, trace in ours.items():
        assert values(theirs[name]) == values(trace), name
        assert trace, f"nothing was seen in {name!r}"


def test_the_built_client_is_that_of_the_sources() -> None:
    """`dist` was built from the sources as they are: `make web` builds it."""
    sources = hashlib.sha256()
    for folder in ("client", "console"):
        for path in sorted((WEB / folder).iterdir()):
            sources.update(path.name.encode() + path.read_bytes())
    manifest = json.loads((WEB / "dist" / "manifest.json").read_text())
    assert manifest["sources"] == sources.hexdigest(), "run make web, and commit relay/web/dist"
    assert manifest["gzipped"] <= 15_000
    assert manifest["console"] <= 100_000


@node
def test_units() -> None:
    """Codec, text, patterns and turns by themselves."""
    assert "fail 0" in run_node("unit.mjs")
