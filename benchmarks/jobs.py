"""``python -m benchmarks.jobs``: jobs a second through a durable queue, beside Celery on Redis and NATS JetStream.

A client submits jobs that do nothing and waits for each outcome; one worker has up to 16 of them at a time; what keeps
them is a ``syndicate-server --state``, a Redis with an append-only file, or a nats-server with streams in files.  All
on one machine, the sides in turn; of three rounds the medians.  The processor time is that of all three processes, a
job; the client's has its start in it.

    $ python -m benchmarks.jobs --worker ADDRESS        # parts of it, for a profile
    $ python -m benchmarks.jobs --client ADDRESS N
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import click
from attrs import frozen

from benchmarks.report import surroundings, write
from benchmarks.server import ROOT, Server, cpu
from relay import connect
from syndicate import Ref, run, stop_actor
from syndicate.work import Claim, gather, queue, submit, worker

COUNT: Final = 4_000
SLOTS: Final = 16
PEERS: Final = ROOT / ".peers"


@worker(slots=SLOTS)
async def job(body: int, claim: Claim) -> int:
    """Gives back what it gets."""
    return body


def work(address: str) -> None:
    """Take jobs until the end; ``CAPABILITY`` is that of a durable dataspace."""

    def boot() -> None:
        @connect(address, os.environ["CAPABILITY"])
        def connected(ds: Ref) -> None:
            job.join(queue(ds, "bench"))
            print("ready", flush=True)

    run(boot)


def order(address: str, count: int) -> None:
    """Submit jobs, wait for all outcomes, print the seconds."""

    def boot() -> None:
        @connect(address, os.environ["CAPABILITY"])
        def connected(ds: Ref) -> None:
            jobs, begin = queue(ds, "bench"), time.perf_counter()

            def over(results: dict[str, object], failures: dict[str, str]) -> None:
                assert len(results) == count
                assert not failures
                print(json.dumps({"wall": time.perf_counter() - begin, "cpu": time.process_time()}))
                stop_actor()

            gather(jobs, [submit(jobs, body) for body in range(count)], over)

    run(boot)


@contextmanager
def process(*command: str | Path, ready: str, **env: str) -> Iterator[int]:
    """A process that has said that it is *ready*; its number."""
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        lines = iter(running.stdout)
        if not any(ready in line for line in lines):
            raise RuntimeError(f"{command[0]} did not start")
        rest = threading.Thread(target=lambda: deque(lines, maxlen=0))  # else it would wait for a reader
        rest.start()
        try:
            yield running.pid
        finally:
            running.send_signal(signal.SIGTERM)
            rest.join()


def measure(pids: list[int], *client: str | Path, **env: str) -> tuple[float, float]:
    """Jobs a second, and milliseconds of processor time a job, of the processes *pids* and the client's."""
    before = sum(map(cpu, pids))
    done = subprocess.run(client, cwd=ROOT, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(done.stdout)
    return COUNT / figures["wall"], (sum(map(cpu, pids)) - before + figures["cpu"]) * 1000 / COUNT


def ours() -> tuple[float, float]:
    """By ``syndicate.work``."""
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(Server("--state", f"{state}/state"))
        address = "tcp://{}:{}".format(*server.address)
        capability = server.said("durable")
        here = (sys.executable, "-m", "benchmarks.jobs")
        pid = stack.enter_context(process(*here, "--worker", address, ready="ready", CAPABILITY=capability))
        return measure([server.process.pid, pid], *here, "--client", address, str(COUNT), CAPABILITY=capability)


def free_port() -> str:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def celery(fsync: str) -> tuple[float, float]:
    """By Celery; Redis writes to the disk as *fsync* says."""
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory())
        port = free_port()
        options = ("--port", port, "--dir", state, "--save", "", "--appendonly", "yes", "--appendfsync", fsync)
        store = stack.enter_context(process("redis-server", *options, ready="Ready to accept"))
        script = ROOT / "benchmarks/peers/jobs_celery.py"
        env = {"REDIS": port, "PYTHONPATH": str(script.parent)}
        command = ("worker", "--pool", "solo", "--loglevel", "info")
        pid = stack.enter_context(
            process(PEERS / "celery/bin/celery", "-A", "jobs_celery", *command, ready="ready.", **env)
        )
        return measure([store, pid], PEERS / "celery/bin/python", script, str(COUNT), **env)


def jetstream() -> tuple[float, float]:
    """By NATS JetStream, which leaves it to the operating system when its files reach the disk (its default)."""
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory())
        port = free_port()
        options = ("--js", "--store_dir", state, "--addr", "127.0.0.1", "--port", port)
        store = stack.enter_context(process("nats-server", *options, ready="Server is ready"))
        script, python = ROOT / "benchmarks/peers/jobs_jetstream.py", PEERS / "nats/bin/python"
        pid = stack.enter_context(process(python, script, "worker", ready="ready", NATS=port))
        return measure([store, pid], python, script, str(COUNT), NATS=port)


@frozen
class Side:
    """A way to have jobs done: how it is measured, and what it needs of the machine."""

    measure: Callable[[], tuple[float, float]]
    program: str = sys.executable
    peer: str | None = None

    def lacks(self) -> str | None:
        """What is missing here, or None."""
        if shutil.which(self.program) is None:
            return f"{self.program} (Debian has it under this name)"
        if self.peer is not None and not (PEERS / self.peer / "stamp").exists():
            return f"make .peers/{self.peer}/stamp"
        return None


SIDES: Final = {
    "ours: `syndicate.work`, on the disk before it is accepted": Side(ours),
    "Celery, Redis with `appendfsync always`": Side(partial(celery, "always"), "redis-server", "celery"),
    "Celery, Redis with `appendfsync everysec`": Side(partial(celery, "everysec"), "redis-server", "celery"),
    "NATS JetStream, on the disk when the system writes": Side(jetstream, "nats-server", "nats"),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks/RESULTS.md", help="Write there.")
@click.option("--worker", metavar="ADDRESS", help="Be a worker of ours, and stop when asked to: for a profile.")
@click.option("--client", type=(str, int), metavar="ADDRESS N", help="Submit N jobs to ours, and wait for each.")
def main(rounds: int, output: Path, worker: str | None, client: tuple[str, int] | None) -> None:
    """Measure, print a table, and write it; about two minutes."""
    if worker:
        work(worker)
        return
    if client:
        order(*client)
        return
    absent = {name: lack for name, side in SIDES.items() if (lack := side.lacks())}
    sides = {name: side.measure for name, side in SIDES.items() if name not in absent}
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    around = surroundings("python -m benchmarks.jobs", rounds, None)
    for _ in range(rounds):
        for name, side in sides.items():
            figures[name].append(side())
            print(f"{name}: {figures[name][-1][0]:,.0f} jobs/s", file=sys.stderr)
    lines = [
        "## Durable jobs, beside Celery and JetStream",
        "",
        f"- {around.date}, `{around.command}`, rounds: {rounds}, each of {COUNT:,} jobs; the medians",
        f"- ours: {around.ours} on {around.python}; Celery 5.7.0; nats-server 2.9, nats-py 2.16.0; one worker each",
        f"- {around.machine}",
        "",
        "| | jobs a second | processor time a job, all processes |",
        "|---|---:|---:|",
    ]
    for name, rows in figures.items():
        rate, spent = (statistics.median(column) for column in zip(*rows, strict=True))
        lines.append(f"| {name} | {rate:,.0f} ({min(rows)[0]:,.0f} to {max(rows)[0]:,.0f}) | {spent:.2f} ms |")
    lines += [f"| {name} | - | needs {lack} |" for name, lack in absent.items()]
    text = "\n".join(lines) + "\n"
    print(text)
    write(output, "jobs", text)


if __name__ == "__main__":
    main()
