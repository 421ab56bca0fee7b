"""The tutorial and the how-to pages, executed: each program as its reader would run it, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.test_examples import BIN, ROOT, Program, program, run_to_end
from tests.work import PATIENCE

PAGES = ROOT / "docs"
BROKER = "tcp://127.0.0.1:8001"
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
PLAYWRIGHT = ROOT / "relay" / "web" / "node_modules" / "playwright-core"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


@contextmanager
def broker(*options: str | Path) -> Iterator[tuple[str, Program]]:
    """A broker as the pages start it, but for its port; its address."""
    with program(BIN / "syndicate-server", "--listen", "tcp://127.0.0.1:0", *options) as serving:
        yield serving.wait_for("listening on").split()[-1], serving


@pytest.mark.parametrize("page", ["tutorial/1-facts.md", "tutorial/2-presence.md", "tutorial/6-view.md"])
def test_what_a_program_prints(page: str) -> None:
    """Each program prints what stands below it."""
    (source,), (printed,) = blocks(page, "python"), blocks(page, "text")
    assert run_to_end(source)[0] == printed


@pytest.mark.parametrize("page", ["1-facts", "2-presence"])
def test_a_crash_is_reported(page: str) -> None:
    """What the reader is invited to break: the same lines, and a traceback."""
    (source,) = blocks(f"tutorial/{page}.md", "python")
    (printed,) = blocks(f"tutorial/{page}.md", "text")
    broken = source.replace("after(patience, stop_actor)", "after(patience, lambda: 1 / 0)")
    out, err = run_to_end(broken)
    assert out == printed
    assert "ZeroDivisionError" in err


def test_several_programs() -> None:
    """The board sees the guest come and go, and a guest that is killed, and that the broker is gone and back."""
    board, guest = blocks("tutorial/3-broker.md", "python")
    (printed,) = blocks("tutorial/3-broker.md", "text")
    with broker() as (address, serving), program(sys.executable, "-c", board.replace(BROKER, address)) as shown:
        shown.wait_for("open")
        assert run_to_end(guest.replace(BROKER, address)) == ("", "")
        shown.wait_for("- 1")
        assert shown.seen == printed.splitlines()
        with program(sys.executable, "-c", guest.replace(BROKER, address).replace("after(2,", "after(600,")) as staying:
            shown.wait_for(r"\+ 1")
            staying.process.kill()
            shown.wait_for("- 1")
        serving.process.send_signal(signal.SIGINT)
        shown.wait_for("closed")
        with program(BIN / "syndicate-server", "--listen", address) as again:
            again.wait_for("listening on")
            shown.wait_for("open")
            shown.process.send_signal(signal.SIGINT)
            shown.process.wait(PATIENCE)


def test_what_outlasts_its_author(tmp_path: Path) -> None:
    """The order is there after the broker was killed."""
    (source,), (printed,) = blocks("tutorial/4-durable.md", "python"), blocks("tutorial/4-durable.md", "text")
    guest, barista = source.split("run(guest)\n")
    says = printed.splitlines()
    out = []
    for part in (guest + "run(guest)\n", guest.partition("def guest")[0] + barista):
        with broker("--state", tmp_path / "state") as (address, serving):
            capability = serving.wait_for("durable").split(maxsplit=1)[1]
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", part.replace(BROKER, address)],
                env={**os.environ, "BAR": capability},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
            )
            out += done.stdout.splitlines()
            serving.process.kill()
    assert out == says


def test_work_that_must_not_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A barista is killed in the middle of a drink, then the broker and the guest: each drink is served."""
    barista, guest = blocks("tutorial/5-work.md", "python")
    (served,) = blocks("tutorial/5-work.md", "text")
    state = ("--state", tmp_path / "state")
    with broker(*state) as (address, serving):
        monkeypatch.setenv("BAR", serving.wait_for("durable").split(maxsplit=1)[1])
        slow, able, orders = (
            [sys.executable, "-W", "error", "-c", source.replace(BROKER, address)]
            for source in (barista.replace("sleep(1)", "sleep(600)"), barista, guest)
        )
        with program(*slow) as clumsy, program(*orders) as waiting:
            drink = clumsy.wait_for("making").split()[1].rstrip(",")
            with program(*able) as barista_two:
                clumsy.process.kill()
                barista_two.wait_for(f"making {drink}, attempt 2")
                serving.process.kill()
                with program(BIN / "syndicate-server", "--listen", address, *state):
                    waiting.process.kill()
                    with program(*orders) as again:
                        assert again.wait_for("served") == served.strip()


def test_rules(tmp_path: Path) -> None:
    """The counters agree, and what the reader breaks is a point of order."""
    (source,), (printed,) = blocks("tutorial/7-rules.md", "python"), blocks("tutorial/7-rules.md", "text")
    assert run_to_end(source)[0] == printed
    collection, rule = re.findall(r"add `(.*?)` and the rule `(.*?)`", (PAGES / "tutorial/7-rules.md").read_text())[0]
    ready = '    ready = scratch(["number"])\n'
    lines = source.replace(ready, f"{ready}    {collection}\n").splitlines()
    at = next(number for number, line in enumerate(lines) if "self.ready <=" in line)
    lines.insert(at + 1, f"        {rule}")
    (tmp_path / "counter.py").write_text("\n".join(lines))
    assert "1 point of order, 0 of 1 output confluent" in run_to_end(tmp_path / "counter.py")[0]


@pytest.mark.spark
def test_a_table(tmp_path: Path) -> None:
    """The price changes without a gap."""
    (source,), (printed,) = blocks("tutorial/8-spark.md", "python"), blocks("tutorial/8-spark.md", "text")
    assert run_to_end(source, cwd=tmp_path)[0] == printed


@pytest.mark.skipif(
    not (NODE and CHROMIUM and PLAYWRIGHT.exists()),
    reason="needs node, chromium and playwright-core: apt install nodejs npm chromium, then make web",
)
def test_a_page(tmp_path: Path) -> None:
    """The page shows who orders elsewhere, orders itself, and shows nothing when it is cut off."""
    (page,) = blocks("tutorial/9-browser.md", "html")
    broker = ["--listen", "ws://127.0.0.1:0", "--listen", "tcp://127.0.0.1:0", "--admin", "127.0.0.1:0"]
    with program(BIN / "syndicate-server", *broker) as serving:
        browsers = serving.wait_for("listening on").split()[-1]
        programs = serving.wait_for("listening on").split()[-1]
        pages = serving.wait_for("health").split()[-1]
        (tmp_path / "syndicate.js").write_bytes(urllib.request.urlopen(f"{pages}syndicate.js").read())
        (tmp_path / "bar.html").write_text(page.replace("ws://127.0.0.1:8080", browsers))
        guest = blocks("tutorial/3-broker.md", "python")[1].replace(BROKER, programs).replace("after(2,", "after(600,")
        files = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
        with program(*files, cwd=tmp_path) as served, program(sys.executable, "-c", guest):
            port = re.findall(r"port (\d+)", served.wait_for("Serving"))[0]
            script = ROOT / "tests/relay/web/bar.mjs"
            with program(str(NODE), script, str(CHROMIUM), f"http://127.0.0.1:{port}/bar.html") as window:
                assert json.loads(window.wait_for(r"\[")) == ["1: espresso"]
                assert len(json.loads(window.wait_for(r"\["))) == 2
                serving.process.kill()
                window.say("")
                assert json.loads(window.wait_for(r"\[")) == []


def test_a_shop_that_fails(tmp_path: Path) -> None:
    """The commands of the page say what stands below them."""
    (source,) = blocks("tutorial/10-simulation.md", "python")
    (tmp_path / "shop.py").write_text(source)
    commands = blocks("tutorial/10-simulation.md", "sh")
    printed = blocks("tutorial/10-simulation.md", "text")
    assert len(commands) == len(printed) == 3
    for command, lines in zip(commands, printed, strict=True):
        words = command.split()
        done = subprocess.run([BIN / words[0], *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
        for line in lines.splitlines():
            assert re.sub(r" \(.* runs a second\)", "", line) in re.sub(r" \(.* runs a second\)", "", done.stdout)


@pytest.mark.parametrize(
    "page",
    [
        "howto/backend.md",
        "howto/data.md",
        "howto/jobs.md",
        "howto/services.md",
        pytest.param("howto/spark.md", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
        "tutorial/11-questions.md",
    ],
)
def test_how_to(page: str, tmp_path: Path) -> None:
    """Each program prints what stands below it."""
    programs, printed = blocks(page, "python"), blocks(page, "text")
    assert [run_to_end(source, cwd=tmp_path)[0] for source in programs] == printed


def test_how_to_break_a_system(tmp_path: Path) -> None:
    """The marked test holds; each command shows, or writes, the run that breaks, and the test that is written fails."""
    (source,), (commands,) = blocks("howto/simulation.md", "python"), blocks("howto/simulation.md", "sh")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["relay.simulation.testing"]\n')
    (tmp_path / "test_bell.py").write_text(source)
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    def tested(name: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    bell = tested("test_bell.py")
    assert bell.returncode == 0, bell.stdout
    for command in commands.splitlines():
        words = command.split()
        done = subprocess.run([BIN / words[0], *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == (1 if words[1] == "simulate" else 0), done.stderr
        assert done.stdout
    pasted = tested("test_cache.py")
    assert pasted.returncode == 1
    assert "the window shows what is offered" in pasted.stdout


def test_how_to_break_a_protocol(tmp_path: Path) -> None:
    """The program for Dedalus, and what `verify` says of it."""
    (source,), command = blocks("howto/research.md", "dedalus"), blocks("howto/research.md", "sh")[0].split()
    (printed,) = blocks("howto/research.md", "text")
    (tmp_path / command[3]).write_text(source)
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith(printed)


def test_links() -> None:
    """What a page links to is there."""
    pages = [*PAGES.rglob("*.md")]
    assert len(pages) > 40
    for page in pages:
        for link in re.findall(
            r"\]\(([^)#\s]+)", re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        ):
            assert "://" in link or (page.parent / link).exists(), f"{page} links to {link}"


def test_every_page_is_in_a_list() -> None:
    """No page of the tutorial or the how-to is left out of its table of contents."""
    for folder in ("tutorial", "howto", "api"):
        listed = re.findall(r"^([\w-]+)$", blocks(f"{folder}/index.md", r"\{toctree\}")[0], re.MULTILINE)
        pages = sorted(page.stem for page in (PAGES / folder).glob("*.md") if page.stem != "index")
        assert sorted(listed) == pages
