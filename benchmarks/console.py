"""``python -m benchmarks.console``: the console's page under load, in a real Chromium.

A broker with 100,000 assertions and a program that sends 20,000 messages a second; the page opens the table, filters
it, and then shows the tail for ten seconds.  Server, program, browser and its driver share the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from typing import Final

from benchmarks.report import surroundings, write
from benchmarks.server import ROOT, Server
from relay import connect
from syndicate import Record, Ref, assert_, every, run, send, sync

ROWS: Final = 100_000
RATE: Final = 20_000
SECONDS: Final = 10


def load(address: str) -> None:
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
                every(0.05, lambda: [send(ds, Record("Bell", [number])) for number in range(RATE // 20)] and None)

            sync(ds, ready)

    run(boot)


def measure() -> dict[str, float]:
    """One page, from its first look to the end of ten seconds of tail."""
    with Server("--admin", "127.0.0.1:0") as server:
        console = server.said("console")
        address = "tcp://{}:{}".format(*server.address)
        command = (sys.executable, "-m", "benchmarks.console", "--load", address)
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
            try:
                assert program.stdout is not None
                program.stdout.readline()
                before, begin = server.cpu(), time.perf_counter()
                script = ROOT / "benchmarks/peers/console_page.mjs"
                browser = (shutil.which("node") or "node", script, shutil.which("chromium") or "chromium")
                done = subprocess.run([*browser, console, str(SECONDS)], stdout=subprocess.PIPE, text=True, check=True)
                figures: dict[str, float] = json.loads(done.stdout)
                figures["server"] = (server.cpu() - before) / (time.perf_counter() - begin)
            finally:
                program.terminate()
    return figures


def main() -> None:
    """Measure once, print, and write into ``benchmarks/RESULTS.md``."""
    if sys.argv[1:2] == ["--load"]:
        load(sys.argv[2])
        return
    around = surroundings("python -m benchmarks.console", 1, None)
    figures = measure()
    rows = {
        "first view of a table of 100,000 assertions": f"{figures['first']:.0f} ms",
        "a filter that lets one of them through": f"{figures['filtered']:.0f} ms",
        "events a second into the tail": f"{figures['events']:,.0f}",
        "of them left out, and counted, in all": f"{figures['missed']:,.0f}",
        f"frames in {SECONDS} s; later than 34 ms; the longest gap": (
            f"{figures['frames']:.0f}; {figures['late']:.0f}; {figures['longest']:.0f} ms"
        ),
        "memory of the page's heap": f"{figures['heap'] / 1e6:.0f} MB",
        "processor time of the server meanwhile": f"{100 * figures['server']:.0f} % of a core",
    }
    head = f"- {around.date}, `{around.command}`\n- {around.ours} on {around.python}\n- {around.machine}"
    table = "\n".join(f"| {name} | {figure} |" for name, figure in rows.items())
    text = f"## The console in a browser, under load\n\n{head}\n\n| | |\n|---|---:|\n{table}\n"
    print(text)
    write(ROOT / "benchmarks/RESULTS.md", "console", text)


if __name__ == "__main__":
    main()
