"""The console in a real Chromium, beside programs that assert, observe and say hostile things."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from subprocess import Popen
from urllib.parse import urlsplit

import pytest
import trio

from relay import connect
from relay.capabilities.sturdy import mint, parse_ref
from relay.tools.recording import read
from syndicate import Record, Ref, after, assert_, capture, every, on_asserted, on_message, on_retracted, open_system
from syndicate.values.text import unparse
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


PICTURES = os.environ.get("SYNDICATE_PICTURES", "")
"""A folder that gets the pictures of the pages, as `docs/images` has them."""


def sensor(ds: Ref) -> None:
    """A program with a large table, hostile values, and interest in what never comes."""
    for number in range(1000):
        assert_(ds, Record("Temperature", [f"room {number}", number]))
    assert_(ds, Record("Hostile", ["<img src=x onerror=alert(1)>"]))
    assert_(ds, Record("Hostile", ["\u202egnp.exe"]))
    assert_(ds, Record("Hostile", ["x" * 1_000_000]))
    on_asserted(ds, Record("Absent", [capture()]))(lambda what: None)
    on_asserted(ds, Record("Temperature", [7, capture()]))(lambda what: None)


def ticking(ds: Ref) -> None:
    """What comes and goes, again and again."""

    def tick() -> None:
        for number in range(10):
            after(0.05, assert_(ds, Record("Tick", [number])).retract)

    every(0.2, tick)


def started(start: Start, config: Path) -> tuple[Popen[str], str, str]:
    """A server with this configuration, its address and that of its console."""
    server = start("server", "--config", str(config))
    assert server.stdout is not None
    said: dict[str, str] = {}
    while "health" not in said:
        line = server.stdout.readline()
        assert line, said
        what, _, text = line.partition("  ")
        said[what.split()[0] if what.startswith("health") else what.strip()] = text.strip()
    return server, said["listening on"], said["console"]


def keep(folder: Path) -> None:
    """Put the pictures where the documents have them, if somebody wants that."""
    if PICTURES:
        for picture in folder.iterdir():
            shutil.copy(picture, PICTURES)


async def test_what_is_shown(start: Start, tmp_path: Path) -> None:
    """Each page, filters, the tail and a recording of it; a capability that was narrowed; a server that is killed and
    comes back; nothing goes wrong in the page.
    """
    config, folder = tmp_path / "server.toml", tmp_path / "pictures"
    folder.mkdir()
    text = 'listen = ["tcp://127.0.0.1:0"]\nkey_file = "{}"\n[admin]\nlisten = "{}"\nwrite = true\n'
    key = tmp_path / "room.key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    cap = mint("syndicate", key.read_bytes())
    config.write_text(text.format(key, "127.0.0.1:0"))
    wait = trio.to_thread.run_sync
    server, address, console = await wait(started, start, config)
    with program(str(NODE), HERE / "console.mjs", str(CHROMIUM), console, str(folder)) as browser:
        written: list[str] = []

        def reading(ds: Ref) -> None:
            on_asserted(ds, Record("Note", [capture(str)]))(lambda text: written.append(f"+ {text}"))
            on_retracted(ds, Record("Note", [capture(str)]))(lambda text: written.append(f"- {text}"))
            on_message(ds, Record("Note", [capture(str)]))(lambda text: written.append(f"! {text}"))

        def boot() -> None:
            connect(address, cap)(sensor)
            connect(address, cap)(reading)

        async with open_system(boot) as system:
            await wait(browser.wait_for, "tail")
            system.spawn(lambda: connect(address, cap)(ticking))
            recording = (await wait(browser.wait_for, "recording")).split()[1]
            events = list(read(recording))
            assert {event.mark for event in events} == {"+", "-"}
            assert all(str(unparse(event.value)).startswith("<Tick") for event in events)
            browser.say("")
            narrowed = (await wait(browser.wait_for, "narrowed")).partition(" ")[2]
            assert written == ["+ hello", "! hello", "+ bye", "- hello", "- bye"]
            written.clear()

            def narrow(ds: Ref) -> None:
                assert_(ds, Record("Note", ["forbidden"]))
                assert_(ds, Record("Note", ["allowed"]))

            system.spawn(lambda: connect(address, parse_ref(narrowed))(narrow))
            while not written:  # noqa: ASYNC110 - what writes has no event
                await trio.sleep(0.05)
            browser.say("")
            await wait(browser.wait_for, "seen")
            assert written == ["+ allowed"]
        server.kill()
        browser.say("")
        await wait(browser.wait_for, "lost")
        config.write_text(text.format(key, urlsplit(console).netloc))
        _, address, _ = await wait(started, start, config)
        async with open_system(lambda: connect(address, cap)(lambda ds: assert_(ds, Record("Again", [1])))):
            browser.say("")
            assert json.loads(await wait(browser.wait_for, r"\[")) == []
    keep(folder)
    assert {path.stem for path in folder.iterdir()} == {
        f"console-{name}"
        for name in (
            "overview", "labels", "assertions", "interests", "sessions", "tail", "replay", "publish", "capabilities",
            "narrow-dark", "dark",
        )
    }  # fmt: skip


async def test_what_an_untrusted_visitor_finds(tmp_path: Path) -> None:
    """By clicks alone: which worker holds a job, and why an alarm is on; and the pages about actors, rules and causes
    of a program that is no broker.
    """
    folder = tmp_path / "pictures"
    folder.mkdir()
    wait = trio.to_thread.run_sync
    with program(sys.executable, HERE / "plant.py") as plant:
        console = await wait(plant.complains_of, "console: ")
        with program(str(NODE), HERE / "plant.mjs", str(CHROMIUM), console.split()[-1], str(folder)) as browser:
            holder = await wait(browser.wait_for, "holder")
            assert holder.split()[1:] == ["2", '"job', '7"', '"worker', '1"', "worker", "1", "2"]
            why = await wait(browser.wait_for, "why")
            assert why.split()[1] == "4"
            assert '<reading "sensor 0" 93.5>' in why
            assert "plant.py" in why
            assert json.loads(await wait(browser.wait_for, r"\[")) == []
    keep(folder)
    assert {path.stem for path in folder.iterdir()} == {
        f"console-{name}" for name in ("why", "actors", "circuit", "rules", "reason", "causes")
    }


async def test_nothing_that_is_hostile_becomes_markup(tmp_path: Path) -> None:
    """On no page, whether it is a value, a label, or the name of an actor, a dataspace, or a row of rules."""
    wait = trio.to_thread.run_sync
    with program(sys.executable, HERE / "hostile.py") as looked_at:
        console = (await wait(looked_at.complains_of, "console: ")).split()[-1]
        with program(str(NODE), HERE / "hostile.mjs", str(CHROMIUM), console, str(tmp_path)) as browser:
            await wait(browser.wait_for, "seen")
            assert json.loads(await wait(browser.wait_for, r"\[")) == []


@pytest.mark.spark
async def test_flights_while_they_fly(tmp_path: Path) -> None:
    """The demo prints a link before anything flies, and the page shows what does."""
    wait = trio.to_thread.run_sync
    day = ROOT / "tests" / "data" / "flights_2013-01-01.csv"
    demo: list[str | Path] = [
        sys.executable,
        "-c",
        "from relay.cli import syndicate_main; syndicate_main()",
        "demo",
        "--data",
        day,
    ]
    with program(*demo) as flying:
        console = (await wait(flying.wait_for, "in a browser: ")).split()[-1]
        with program(str(NODE), HERE / "flights.mjs", str(CHROMIUM), console, str(tmp_path)) as browser:
            await wait(browser.wait_for, "seen")
