"""The client for browsers and Node: the same meaning as in Python, against a real server."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from relay.capabilities.sturdy import mint, show
from syndicate.values.text import parse, unparse
from syndicate.values.value import Frozen, Record, freeze
from tests.relay.commands import Server, Start
from tests.relay.web.conformance import Case, traces
from tests.work import PATIENCE

HERE = Path(__file__).parent
WEB = HERE.parents[2] / "relay" / "web"
CASES: list[Case] = json.loads((HERE / "cases.json").read_text())
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
PLAYWRIGHT = WEB / "node_modules" / "playwright-core"
node = pytest.mark.skipif(NODE is None, reason="node is not installed: apt install nodejs")


def run_node(script: str, *args: str, stdin: str = "") -> str:
    """What a script prints that reads *stdin*."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, HERE / script, *args], input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout


def values(trace: list[list[Any]]) -> list[tuple[str, str, list[Frozen]]]:
    """A trace with values in place of texts, since there are several ways to write one."""
    return [(name, mark, [freeze(parse(text)) for text in captures]) for name, mark, captures in trace]


def said(process: subprocess.Popen[str], what: str) -> str:
    """What a server prints next about *what*."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(what):
            return line.removeprefix(what).strip()
    raise AssertionError(f"it said nothing about {what}")


@node
@pytest.mark.parametrize("where", ["node", "chromium"])
def test_same_traces_as_python(where: str, server: Server, start: Start, tmp_path: Path) -> None:
    """The shared cases mean the same in both languages, in Node over TCP and in a page over the console's socket."""
    config = tmp_path / "server.toml"
    config.write_text('listen = ["tcp://127.0.0.1:0"]\n[admin]\nlisten = "127.0.0.1:0"\nwrite = true\n')
    process = start("server", "--config", str(config))
    address, page = said(process, "listening on"), said(process, "console")
    browser = []
    if where == "chromium":
        if CHROMIUM is None or not PLAYWRIGHT.exists():
            pytest.skip("needs chromium and playwright-core: apt install chromium, then make web")
        address, browser = page, [CHROMIUM]
    ours = traces(server[1], CASES)
    theirs = json.loads(run_node("conformance.mjs", address, str(HERE / "cases.json"), *browser))
    assert list(theirs) == [case["name"] for case in CASES] == list(ours)
    for name, trace in ours.items():
        assert values(theirs[name]) == values(trace), name
        assert trace, f"nothing was seen in {name!r}"


@node
def test_capabilities_narrowed_as_python_does() -> None:
    """The same signature for names and caveats of any length, so the server takes what a page has narrowed."""
    random = Random(7)
    wanted, asked = [], []
    for size in range(150):
        cap = mint("n" * size, b"a key of some length, so and so")
        lengths = [random.randrange(300) for _ in range(size % 4)]
        caveats = [Record("reject", [Record("lit", ["\u00e9" * length])]) for length in lengths]
        asked.append([show(cap), *map(unparse, caveats)])
        wanted.append(freeze(cap.attenuate(*caveats)))
    report = json.loads(run_node("sturdy.mjs", stdin=json.dumps(asked)))
    assert [freeze(parse(text)) for text in report] == wanted


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
