"""The chat of `examples/web`, in two windows of a real Chromium, with a program in Python."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import run

import pytest
import trio

from relay import connect
from syndicate import Record, Ref, assert_, capture, on_asserted, on_message, on_retracted, open_system, send
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


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@pytest.fixture
def files() -> Iterator[str]:
    """The project's files over HTTP."""
    with served(ROOT) as address:
        yield address


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder over HTTP, as `python -m http.server` serves it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def cleo(ds: Ref) -> None:
    """A program that is here, and answers the greeting with what a page must not take for markup, or be ended by."""
    assert_(ds, Record("Present", ["Cleo"]))

    @on_message(ds, Record("Says", ["Bob", capture(str)]))
    def bob(what: str) -> None:
        send(ds, Record("Says", ["Cleo", "x" * 1_000_000]))
        send(ds, Record("Says", ["Cleo", "\u202egnp.exe"]))
        send(ds, Record("Says", ["Cleo", 7]))


async def test_two_windows_a_terminal_and_a_program(start: Start, files: str, tmp_path: Path) -> None:
    """Presence, what is said, hostile values, a server that is killed and comes back, a window that is closed: the
    windows, the chat in a terminal and a program see the same.
    """
    wait = trio.to_thread.run_sync
    first = start("server", "--listen", "ws://127.0.0.1:0", "--listen", "tcp://127.0.0.1:0")
    assert first.stdout is not None
    address, tcp = [(await wait(first.stdout.readline)).split()[-1] for _ in range(2)]
    page = f"{files}/examples/web/chat.html"
    chat = ROOT / "examples" / "chat.py"
    with program(str(NODE), HERE / "chat.mjs", str(CHROMIUM), page, address, str(tmp_path)) as browser:
        with program(sys.executable, chat, "Dora", tcp) as dora:
            async with open_system(lambda: connect(address)(cleo)):
                await wait(browser.wait_for, "^open$")
                await wait(dora.wait_for, "Ann: Good morning, everybody")
                assert {f"* {name} is here" for name in ("Ann", "Bob", "Cleo", "Dora")} <= set(dora.seen)
                dora.say("Good evening")
                await wait(browser.wait_for, "^said$")
            await wait(dora.wait_for, r"\* Cleo has left")
            await wait(dora.leave)
        first.kill()
        browser.say("")
        await wait(browser.wait_for, "^lost$")
        second = start("server", "--listen", address)
        assert second.stdout is not None
        await wait(second.stdout.readline)
        browser.say("")
        await wait(browser.wait_for, "^back$")
        assert json.loads(await wait(browser.wait_for, r"^\[")) == []
    assert set(os.listdir(tmp_path)) == {"chat.png", "chat-narrow-dark.png"}  # noqa: PTH208 - once, at the end


REACT = ROOT / "relay" / "web" / "node_modules" / "react-dom"


@pytest.mark.skipif(not REACT.exists(), reason="needs react: make web")
async def test_in_react_and_as_an_element(start: Start, files: str, tmp_path: Path) -> None:
    """The examples: two windows and a program see the same; who is taken out of a page is gone; a server that is killed
    and comes back.
    """
    wait = trio.to_thread.run_sync
    first = start("server", "--listen", "ws://127.0.0.1:0")
    assert first.stdout is not None
    address = (await wait(first.stdout.readline)).split()[-1]
    (tmp_path / "index.html").write_text(
        '<!doctype html><title>React</title><link rel="icon" href="data:,"><div id="root"></div>'
        '<script type="module" src="page.js"></script>'
    )
    modules = ROOT / "relay" / "web" / "node_modules"
    bundle: list[str | Path] = [
        modules / ".bin" / "esbuild", HERE / "react_page.mjs", "--bundle", "--format=esm", "--log-level=warning",
        f"--alias:syndicate-dataspace={ROOT / 'relay' / 'web' / 'dist' / 'syndicate.js'}", "--external:node:*",
        f"--define:process.env.NODE_ENV={json.dumps('development')}", f"--outfile={tmp_path / 'page.js'}",
    ]  # fmt: skip
    run(bundle, check=True, env={**os.environ, "NODE_PATH": str(modules)})  # noqa: ASYNC221 - it takes no time
    seen: list[str] = []

    def guest(ds: Ref) -> None:
        assert_(ds, Record("Present", ["<img src=x onerror=alert(1)>"]))
        on_asserted(ds, Record("Present", [capture(str)]))(lambda who: seen.append(f"+ {who}"))
        on_retracted(ds, Record("Present", [capture(str)]))(lambda who: seen.append(f"- {who}"))

    page = f"{files}/tests/relay/web/element.html"
    command: list[str | Path] = [str(NODE), HERE / "frameworks.mjs", str(CHROMIUM), page, str(tmp_path)]
    with served(tmp_path) as react, program(*command, address, f"{react}/") as browser:
        async with open_system(lambda: connect(address)(guest)):
            await wait(browser.wait_for, "gone")
            while "- Ann" not in seen:  # noqa: ASYNC110 - what notes it has no event
                await trio.sleep(0.05)
            assert seen.count("+ Flo") == 2
            assert seen.count("+ Ann") == seen.count("+ Dora") == seen.count("+ Eve") == seen.count("- Flo") == 1
        browser.say("")
        await wait(browser.wait_for, "alone")
        first.kill()
        browser.say("")
        await wait(browser.wait_for, "lost")
        second = start("server", "--listen", address)
        assert second.stdout is not None
        await wait(second.stdout.readline)
        browser.say("")
        assert json.loads(await wait(browser.wait_for, r"\[")) == []
