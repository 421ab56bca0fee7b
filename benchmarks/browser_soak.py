"""``python -m benchmarks.browser_soak [SECONDS] [RATE]``: the console's page open for an hour, by default, while a
program sends messages and asserts and retracts, by default 500 events a second in all.

One tab shows the tail all the time, another goes through all pages.  A line each minute says what the heaps hold after
a collection, and what memory the browser's renderers have for themselves.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import count, islice

import click

from benchmarks.server import ROOT, Server
from relay import connect
from syndicate import Record, Ref, after, assert_, every, run, send


def load(address: str, rate: int) -> None:
    """A third messages, a third assertions, a third their ends, twenty times a second; 1,000 assertions stand."""

    def boot() -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            for number in range(1000):
                assert_(ds, Record("Lit", [f"room {number}", number]))

            guests = count()

            def tick() -> None:
                for number in islice(guests, max(1, rate // 60)):
                    send(ds, Record("Bell", [f"door {number}"]))
                    after(1, assert_(ds, Record("Visit", [f"guest {number}", number])).retract)

            every(0.05, tick)

    run(boot)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("seconds", type=click.IntRange(1), default=3600)
@click.argument("rate", type=click.IntRange(1), default=500)
@click.option("--load", "loaded", type=(str, int), metavar="ADDRESS RATE", hidden=True)
def main(seconds: int, rate: int, loaded: tuple[str, int] | None) -> None:
    """Look at RATE messages a second for so many SECONDS, and pass on what the browser says."""
    if loaded:
        load(*loaded)
        return
    with Server("--admin", "127.0.0.1:0") as server:
        console = server.said("console")
        address = "tcp://{}:{}".format(*server.address)
        command = (sys.executable, "-m", "benchmarks.browser_soak", "--load", address, str(rate))
        with subprocess.Popen(command, cwd=ROOT) as program:
            try:
                script = ROOT / "benchmarks/peers/browser_soak.mjs"
                browser = (shutil.which("node") or "node", script, shutil.which("chromium") or "chromium")
                subprocess.run([*browser, console, str(seconds)], check=True)
                print(f"the server: {server.cpu():.0f} s of the processor, {server.resident() >> 20} MiB")
            finally:
                program.terminate()


if __name__ == "__main__":
    main()
