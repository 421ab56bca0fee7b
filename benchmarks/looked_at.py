"""Nobody pays while nobody looks: turns of a program without a console, with one that nobody has open, and with one.

Run as a process it does the work once, ``python -m benchmarks.looked_at WAY``, and prints processor time a turn.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from functools import partial
from time import process_time
from typing import Final

from benchmarks.server import ROOT
from syndicate import (
    Record,
    Ref,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    on_message,
    ref,
    run,
    send,
    spawn,
)
from syndicate.actors.turn import Entity, Handle
from syndicate.introspect import introspection

MESSAGES: Final = 100_000
CHANGES: Final = 30_000
VIEWS: Final = {
    "without a console": "none",
    "with one that nobody has open": "closed",
    "with the page of actors open": "actors",
    "with the tail open": "tail",
}


class _Asker(Entity):
    """Takes answers and does nothing with them."""


def work(view: str) -> None:
    """Messages of an actor to itself, then facts that come and go under a ``during``; prints us a turn of each."""
    found: list[float] = []
    began = 0.0

    def player(ds: Ref) -> None:
        nonlocal began
        on_message(ds, Record("Ball", [capture(int)]))(lambda number: hit(ds, number))
        began = process_time()
        send(ds, Record("Ball", [0]))

    def hit(ds: Ref, number: int) -> None:
        if number < MESSAGES:
            send(ds, Record("Ball", [number + 1]))
        else:
            found.append(1e6 * (process_time() - began) / (2 * MESSAGES))
            spawn(partial(changing, ds), name="changing")

    def changing(ds: Ref) -> None:
        nonlocal began
        during(ds, Record("Fact", [capture(int)]))(lambda number: assert_(ds, Record("Seen", [number])))
        facet = current_facet()
        began = process_time()

        def change(number: int) -> None:
            if number == CHANGES:
                found.append(1e6 * (process_time() - began) / CHANGES)
                print(*found, flush=True)
                sys.exit()
            fact = assert_(ds, Record("Fact", [number]))
            facet.enter(partial(end, fact, number))

        def end(fact: Handle, number: int) -> None:
            fact.retract()
            facet.enter(partial(change, number + 1))

        facet.lasting = True
        facet.enter(partial(change, 0))

    def boot() -> None:
        ds = dataspace()
        if view in ("actors", "tail"):
            fields = ["", 0, 100] if view == "actors" else ["", 1000]
            assert_(introspection(ds), Record(view, [*fields, ref(_Asker())]))
        spawn(partial(player, ds), name="player")

    with suppress(SystemExit):
        run(boot, console=view == "closed")


def measure(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Microseconds a message's turn and a change, by what is said of the way, in interleaved rounds."""
    found: dict[str, list[tuple[float, float]]] = {said: [] for said in VIEWS}
    for _ in range(rounds):
        for said, view in VIEWS.items():
            command = [sys.executable, "-m", "benchmarks.looked_at", view]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            turn, change = done.stdout.split()
            found[said].append((float(turn), float(change)))
    return found


if __name__ == "__main__":
    work(sys.argv[1])
