"""The console in a real Chromium, beside programs that assert, observe and say hostile things."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import trio

from relay import connect
from syndicate import Record, Ref, after, assert_, capture, every, on_asserted, on_message, on_retracted, open_system
from tests.relay.commands import Start
from tests.test_examples import program

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
PLAYWRIGHT = ROOT / "relay" / "web" / "node_modules" / "playwright-core"
pytestmark = pytest.mark.skipif(
    not (NODE and CHROMIUM and PLAYWRIGHT.exists()),
    reason="needs node, chromium and playwright-core: apt install nodejs npm chromium, then make web",
)


def sensor(ds: Ref) -> None:
    """A program with a large table, hostile values, and interest in what never comes."""
    for number in range(1000):
        assert_(ds, Record("Temperature", [f"room {number}", number]))
    assert_(ds, Record("Hostile", ["<img src=x onerror=alert(1)>"]))
    assert_(ds, Record("Hostile", ["\u202egnp.exe"]))
    assert_(ds, Record("Hostile", ["x" * 1_000_000]))
    on_asserted(ds, Record("Absent", [capture()]))(lambda what: None)


def ticking(ds: Ref) -> None:
    """What comes and goes, again and again."""

    def tick() -> None:
        for number in range(10):
            after(0.05, assert_(ds, Record("Tick", [number])).retract)

    every(0.2, tick)


async def test_what_is_shown(start: Start, tmp_path: Path) -> None:
    """Each page, filters, the tail and a recording of it; a server that is killed; nothing goes wrong in the page."""
    config = tmp_path / "server.toml"
    config.write_text('listen = ["tcp://127.0.0.1:0"]\n[admin]\nlisten = "127.0.0.1:0"\nwrite = true\n')
    folder = tmp_path / "pictures"
    folder.mkdir()
    server = start("server", "--config", str(config))
    assert server.stdout is not None
    said = ""
    while "health" not in said:
        line = await trio.to_thread.run_sync(server.stdout.readline)
        assert line, said
        said += line
    address = re.findall(r"listening on +(\S+)", said)[0]
    console = re.findall(r"^console +(\S+)", said, re.MULTILINE)[0]
    script = HERE / "console.mjs"
    with program(str(NODE), script, str(CHROMIUM), console, str(folder)) as browser:
        wait = trio.to_thread.run_sync
        written: list[str] = []

        def reading(ds: Ref) -> None:
            on_asserted(ds, Record("Note", [capture(str)]))(lambda text: written.append(f"+ {text}"))
            on_retracted(ds, Record("Note", [capture(str)]))(lambda text: written.append(f"- {text}"))
            on_message(ds, Record("Note", [capture(str)]))(lambda text: written.append(f"! {text}"))

        def boot() -> None:
            connect(address)(sensor)
            connect(address)(reading)

        async with open_system(boot) as system:
            await wait(browser.wait_for, "tail")
            system.spawn(lambda: connect(address)(ticking))
            await wait(browser.wait_for, "seen")
            assert written == ["+ hello", "! hello", "- hello"]
        server.kill()
        browser.say("")
        assert json.loads(await wait(browser.wait_for, r"\[")) == []
    assert set(os.listdir(folder)) == {  # noqa: PTH208 - once, at the end
        f"console-{name}.png"
        for name in (
            "overview", "labels", "assertions", "interests", "sessions", "actors", "tail", "replay",
            "publish", "narrow-dark",
        )
    }  # fmt: skip
