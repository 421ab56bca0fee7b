"""``python -m benchmarks.browser``: the console's page under load, in a real Chromium; what it costs a program that it
could be looked at (:mod:`benchmarks.looked_at`); WebSocket beside TCP (:mod:`benchmarks.websocket`).

A broker with 100,000 assertions and a program that sends messages, 20,000 a second and then 50,000; the page opens the
table, scrolls and filters it, and then shows the tail for ten seconds.  Server, program, browser and its driver share
the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import click

from benchmarks import looked_at, websocket
from benchmarks.report import surroundings, write
from benchmarks.server import ROOT, Server
from relay import connect
from syndicate import Record, Ref, assert_, every, run, send, sync

ROWS: Final = 100_000
RATES: Final = (20_000, 50_000)
ROUNDS: Final = 5

TURNS: Final = (
    "Processor time of a turn of an actor that sends itself messages through a dataspace, and of a fact that comes and "
    f"goes under a `during`; medians of {ROUNDS} interleaved rounds, each a process of its own."
)
PACKETS: Final = (
    f"Processor time of the server for a packet of one event, medians of {ROUNDS} interleaved rounds, and the ratio "
    "with its range: as fast as they are taken, so that hundreds are read at once, and *paced*, each read by itself."
)
SECONDS: Final = 10


def load(address: str, rate: int) -> None:
    """Assert the rows, by two connections; then send messages at the rate, in twenty turns a second."""

    def boot() -> None:
        @connect(address)
        def half(ds: Ref) -> None:
            for number in range(ROWS // 2):
                assert_(ds, Record("Lit", [f"room {number}", number]))

        @connect(address)
        def connected(ds: Ref) -> None:
            for number in range(ROWS // 2, ROWS):
                assert_(ds, Record("Lit", [f"room {number}", number]))

            def ready() -> None:
                print("ready", flush=True)
                every(0.05, lambda: [send(ds, Record("Bell", [number])) for number in range(rate // 20)] and None)

            sync(ds, ready)

    run(boot)


def measure(rate: int) -> dict[str, float]:
    """One page, from its first look to the end of ten seconds of tail; *rate* messages a second come."""
    with Server("--admin", "127.0.0.1:0") as server:
        console = server.said("console")
        address = "tcp://{}:{}".format(*server.address)
        command = (sys.executable, "-m", "benchmarks.browser", "--load", address, str(rate))
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
            try:
                assert program.stdout is not None
                program.stdout.readline()
                before, begin = server.cpu(), time.perf_counter()
                script = ROOT / "benchmarks/peers/browser_page.mjs"
                browser = (shutil.which("node") or "node", script, shutil.which("chromium") or "chromium")
                done = subprocess.run([*browser, console, str(SECONDS)], stdout=subprocess.PIPE, text=True, check=True)
                figures: dict[str, float] = json.loads(done.stdout)
                figures["server"] = (server.cpu() - before) / (time.perf_counter() - begin)
            finally:
                program.terminate()
    return figures


def page_rows(all_figures: list[dict[str, float]]) -> list[tuple[str, list[str]]]:
    """What the page did, a column for each rate."""

    def said(form: Callable[[dict[str, float]], str]) -> list[str]:
        return [form(figures) for figures in all_figures]

    return [
        ("first view of a table of 100,000 assertions", said(lambda f: f"{f['first']:.0f} ms")),
        ("a filter that lets one of them through", said(lambda f: f"{f['filtered']:.0f} ms")),
        (
            "frames a second while it scrolls; later than 34 ms; the longest gap",
            said(lambda f: f"{f['rolled']:.0f}; {f['rolledLate']:.0f}; {f['rolledLongest']:.0f} ms"),
        ),
        ("frames that showed rows meanwhile", said(lambda f: f"{100 * f['filled']:.0f} %")),
        ("events a second into the tail", said(lambda f: f"{f['events']:,.0f}")),
        ("of them left out, and counted, in all", said(lambda f: f"{f['missed']:,.0f}")),
        (
            f"frames in {SECONDS} s; later than 34 ms; the longest gap",
            said(lambda f: f"{f['frames']:.0f}; {f['late']:.0f}; {f['longest']:.0f} ms"),
        ),
        ("memory of the page's heap", said(lambda f: f"{f['heap'] / 1e6:.0f} MB")),
        ("processor time of the server meanwhile", said(lambda f: f"{100 * f['server']:.0f} % of a core")),
    ]


def table(head: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """In Markdown."""
    lines = [f"| {' | '.join(('', *head))} |", f"|---|{'---:|' * len(head)}"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows)])


def sizes() -> str:
    """What a page loads."""
    built = json.loads((ROOT / "relay/web/dist/manifest.json").read_text())
    return (
        f"The client is {built['gzipped'] / 1000:.1f} kB gzipped (at most 15), "
        f"the console {built['console'] / 1000:.1f} kB (at most 100), all of it together; the build holds that."
    )


def looked_at_rows(found: dict[str, list[tuple[float, float]]]) -> list[tuple[str, list[str]]]:
    """Medians, and the median of the ratios to the first way, round by round."""
    (first, *_), rows = found, []
    for name, rounds in found.items():
        cells = []
        for column in (0, 1):
            ratios = [mine[column] / base[column] for mine, base in zip(rounds, found[first], strict=True)]
            cells.append(f"{median(each[column] for each in rounds):.2f} us")
            cells.append(f"{100 * (median(ratios) - 1):+.1f} %")
        rows.append((name, cells))
    return rows


def socket_rows(found: dict[str, list[float]]) -> list[tuple[str, list[str]]]:
    """Medians by TCP and WebSocket, and the median of the ratios, round by round."""
    rows = []
    for name in [key.removesuffix(": tcp") for key in found if key.endswith(": tcp")]:
        tcp, web = found[f"{name}: tcp"], found[f"{name}: ws"]
        ratios = sorted(w / t for w, t in zip(web, tcp, strict=True))
        span = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        rows.append((name, [f"{median(tcp):.2f} us", f"{median(web):.2f} us", span]))
    return rows


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
@click.option("--load", "loaded", type=(str, int), metavar="ADDRESS RATE", hidden=True)
def main(output: Path, loaded: tuple[str, int] | None) -> None:
    """Measure once, print, and write; it needs Chromium, which ``make test`` installs."""
    if loaded:
        load(*loaded)
        return
    around = surroundings("python -m benchmarks.browser", ROUNDS, None)
    pages = [measure(rate) for rate in RATES]
    parts = [
        "## Browser: the console under load, and what a WebSocket costs",
        f"- {around.date}, `{around.command}`\n- {around.ours} on {around.python}\n- {around.machine}",
        table([f"{rate:,} messages a second" for rate in RATES], page_rows(pages)),
        sizes(),
        "### Nobody pays while nobody looks",
        TURNS,
        table(["a turn", "", "a change", ""], looked_at_rows(looked_at.measure(ROUNDS))),
        "### WebSocket beside TCP",
        PACKETS,
        table(["TCP", "WebSocket", "ratio"], socket_rows(websocket.measure(ROUNDS))),
    ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    write(output, "browser", text)


if __name__ == "__main__":
    main()
