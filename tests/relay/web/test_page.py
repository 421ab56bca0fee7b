"""The chat of `examples/web`, in two windows of a real Chromium, with a program in Python."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE, Popen, run

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


async def test_two_windows_and_a_program(start: Start, files: str, tmp_path: Path) -> None:
    """Presence, hostile values, a server that is killed and comes back, a window that is closed."""
    first = start("server", "--listen", "ws://127.0.0.1:0")
    assert first.stdout is not None
    address = (await trio.to_thread.run_sync(first.stdout.readline)).split()[-1]
    page = f"{files}/examples/web/chat.html"
    browser = Popen(  # noqa: ASYNC220 - it ends in `finally`
        [str(NODE), str(HERE / "chat.mjs"), str(CHROMIUM), page, address, str(tmp_path)],
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    )
    assert browser.stdin is not None
    assert browser.stdout is not None

    async def said() -> str:
        assert browser.stdout is not None
        line = await trio.to_thread.run_sync(browser.stdout.readline)
        assert line, "the browser's script has ended"
        return line.strip()

    def go_on() -> None:
        assert browser.stdin is not None
        browser.stdin.write("\n")
        browser.stdin.flush()

    try:
        async with open_system(lambda: connect(address)(cleo)):
            assert await said() == "open"
            assert await said() == "said"
        first.kill()
        go_on()
        assert await said() == "lost"
        second = start("server", "--listen", address)
        assert second.stdout is not None
        await trio.to_thread.run_sync(second.stdout.readline)
        go_on()
        assert await said() == "back"
        assert json.loads(await said()) == []
        assert set(os.listdir(tmp_path)) == {"chat.png", "chat-narrow-dark.png"}  # noqa: PTH208 - once, at the end
    finally:
        browser.kill()
        browser.wait()
        browser.stdin.close()
        browser.stdout.close()


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
