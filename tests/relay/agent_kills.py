"""Kills of live agents in real processes, at random: ``python -m tests.relay.agent_kills --kills N``.

Three locations gossip by way of a server, each in a process with an event log, and are killed (SIGKILL) at any moment.
Then each event log is to be usable, ``together`` is to run, and at each location that run is to have what it printed,
timestep by timestep, until it was killed; of those that it missed, as its process stood still, the next one tells.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from syndicate.dedalus import EventLog, Program, together
from syndicate.dedalus.ast import Atom, Constant
from tests.relay.commands import command
from tests.relay.test_dedalus_servers import GOSSIP
from tests.work import PATIENCE

PLACES = ("a", "b", "c")
SHOWN = ("words", "known", "has", "lucky")


class Node:
    """A location in a process, and the lines that it has printed."""

    def __init__(self, place: str, file: Path, address: str, log: Path) -> None:
        shown = [word for name in SHOWN for word in ("--show", name)]
        words = ("dedalus", "live", str(file), "--at", place, "--connect", address, "--stdin", "--every", "0.02")
        self.process = subprocess.Popen(
            command("syndicate", *words, "--record", str(log), *shown),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line for line in self.process.stdout if line.endswith("\n"))

    def say(self, text: str) -> None:
        """An event, unless it has ended."""
        assert self.process.stdin is not None
        if self.process.stdin.closed:
            return
        try:
            self.process.stdin.write(f"{text}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return

    def kill(self) -> None:
        """SIGKILL; then all that it had printed is read."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def printed(lines: list[str]) -> tuple[int, dict[int, set[str]]]:
    """The last time that is printed, and what was there at each time before."""
    changes: dict[int, list[tuple[str, str]]] = {}
    for line in lines:
        time_, sign, fact = line.rstrip("\n").split(" ", 2)
        changes.setdefault(int(time_), []).append((sign, fact))
    last, there = max(changes, default=0), set[str]()
    facts: dict[int, set[str]] = {}
    for at in range(1, last):
        for sign, fact in changes.get(at, ()):
            (there.add if sign == "+" else there.remove)(fact)
        facts[at] = set(there)
    return last, facts


def round_(rng: random.Random, figures: Counter[str], place: Path, address: str) -> None:
    """Start three, let them talk, and kill one after the other; then compare, also without the logs of some."""
    program, file = Program.parse(GOSSIP), place / "gossip.ded"
    file.write_text(GOSSIP)
    nodes = {one: Node(one, file, address, place / one) for one in PLACES}
    deadline = time.monotonic() + PATIENCE
    while not all((place / one).exists() and (place / one).stat().st_size for one in PLACES):
        assert time.monotonic() < deadline, "no event log was begun"
        time.sleep(0.05)
    dead: list[str] = []
    order = rng.sample(PLACES, 3)
    for number in range(12):
        one = rng.choice(PLACES)
        nodes[one].say(f'said("{one}", "{number}")')
        time.sleep(rng.random() * 0.25)
        if number % 4 == 3:
            victim = order[len(dead)]
            nodes[victim].kill()
            dead.append(victim)
            figures["kills"] += 1
    logs = {}
    for one in PLACES:
        data = (place / one).read_bytes()
        figures["torn lines"] += not data.endswith(b"\n")
        logs[one] = EventLog.load(place / one)
        figures["timesteps"] += logs[one].time
    places = rng.sample(PLACES, rng.choice([1, 2, 3, 3]))
    figures["rounds with a location unknown"] += len(places) < 3
    recorded = together([logs[one] for one in places])
    assert recorded["schedule"]["locations"] == sorted(places)
    model = program.run(**recorded)
    for one in places:
        last, output = printed(nodes[one].lines)
        assert last <= logs[one].time, f"{one} printed {last}, and its event log ends at {logs[one].time}"
        stood_still = {at for since, to in logs[one].pauses for at in range(since, to)}  # and nothing was printed
        figures["timesteps missed"] += len(stood_still)
        for at in sorted(set(range(1, min(last, model.until + 1))) - stood_still):
            rows = [Atom(name, tuple(map(Constant, row))) for name in SHOWN for row in model.at(at).get(name, ())]
            there = {str(atom) for atom in rows if atom.terms[0] == Constant(one)}
            assert there == output[at], f"at {one}, time {at}: {there ^ output[at]}"
            figures["timesteps compared"] += 1
            figures["facts compared"] += len(there)


def main() -> None:
    """Kill, compare, and tell the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    figures: Counter[str] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix://{folder}/socket"
        server = subprocess.Popen(
            command("server", "--listen", address), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            campaign(asked.kills, asked.seed, address, figures)
        finally:
            server.kill()
            server.wait(PATIENCE)
    print(f"{time.monotonic() - begun:.0f} s: {dict(figures)}")


def campaign(kills: int, first: int, address: str, figures: Counter[str]) -> None:
    """Rounds until there were so many kills; the first round that is wrong ends it, with its seed."""
    while figures["kills"] < kills:
        seed = first + figures["rounds"]
        figures["rounds"] += 1
        with tempfile.TemporaryDirectory() as place:
            try:
                round_(random.Random(seed), figures, Path(place), address)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error}") from error


if __name__ == "__main__":
    main()
