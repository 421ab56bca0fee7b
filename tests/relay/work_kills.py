"""Kills of a broker, of workers, of who submits, in real processes: ``python -m tests.relay.work_kills --kills N``.

Each bill is to be paid once in effect, whoever is killed at whatever moment, and none is to be lost.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import trio

from relay import connect
from relay.capabilities.sturdy import mint
from syndicate import Ref, after, capture, every, on_asserted, record, run, stop_actor
from syndicate.work import Claim, Queue, Retry, queue, submit, worker
from tests.work import PATIENCE

ROOT = Path(__file__).parents[2]
DURABLE = mint("durable", b"")


@record
class Payment:
    """Kept: a bill is paid."""

    bill: str
    token: int


def bills(ds: Ref) -> Queue:
    """The queue."""
    return queue(ds, "bills", retry=Retry(times=10**6, first=0.05, most=0.2), lease=1.0)


def shop(address: str, count: int) -> None:
    """Submits *count* bills, each until it is safe; ends when all are."""
    left = set(range(count))

    @connect(address, DURABLE)
    def connected(ds: Ref) -> None:
        jobs = bills(ds)

        def more() -> None:
            for number in sorted(left)[:20]:
                submit(jobs, number, id=f"bill {number}", then=partial(left.discard, number))
            if not left:
                stop_actor()

        every(0.05, more)


def payer(address: str) -> None:
    """Pays, four at once."""

    @worker(slots=4)
    async def pay(number: int, claim: Claim) -> int:
        await trio.sleep(random.uniform(0, 0.05))
        claim.commit(Payment(claim.id, claim.token))
        return number

    @connect(address, DURABLE)
    def connected(ds: Ref) -> None:
        pay.join(bills(ds))


class Process:
    """A program that is started again whenever it is killed."""

    def __init__(self, start: Callable[[], subprocess.Popen[str]]) -> None:
        self.start = start
        self.process = start()

    def kill(self) -> None:
        """End it at once, and start it again."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = self.start()


@contextlib.contextmanager
def campaign(count: int) -> Iterator[tuple[str, dict[str, Process]]]:
    """A broker, two who pay, and who submits *count* bills."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix://{folder}/socket"

        def program(*words: object) -> Callable[[], subprocess.Popen[str]]:
            return lambda: subprocess.Popen(
                [sys.executable, *map(str, words)],
                cwd=ROOT,
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        serve = "from relay.cli import server_main; server_main()"
        server = ["-c", serve, "--listen", address, "--state", f"{folder}/state"]
        me = ["-m", "tests.relay.work_kills", "--address", address, "--jobs", count, "--be"]
        processes = {
            "broker": Process(program(*server)),
            "payer 1": Process(program(*me, "payer")),
            "payer 2": Process(program(*me, "payer")),
            "shop": Process(program(*me, "shop")),
        }
        try:
            yield address, processes
        finally:
            for each in processes.values():
                each.process.kill()
                each.process.wait()


def kills(number: int, jobs: int, seed: int, progress: Callable[[str], object] = lambda text: None) -> str:
    """Kill *number* times while *jobs* jobs are done; returns what is wrong, or nothing."""
    chance = random.Random(seed)
    with campaign(jobs) as (address, processes):
        for each in range(number):
            time.sleep(chance.uniform(0.2, 1.5))
            name = chance.choice(list(processes))
            processes[name].kill()
            progress(f"kill {each + 1} of {number}: {name}")
        paid: Counter[str] = Counter()

        def audit() -> None:
            @connect(address, DURABLE)
            def connected(ds: Ref) -> None:
                paid.clear()

                @on_asserted(ds, Payment(capture(str), capture(int)))
                def comes(bill: str, token: int) -> None:
                    paid[bill] += 1
                    if len(paid) == jobs:
                        after(1.0, stop_actor)

            after(PATIENCE * 2, stop_actor)

        run(audit)
    twice = [bill for bill, times in paid.items() if times > 1]
    lost = [number for number in range(jobs) if f"bill {number}" not in paid]
    return f"lost: {lost}, paid twice: {twice}" if lost or twice else ""


def main() -> None:
    """A campaign, or one of its programs."""
    parser = argparse.ArgumentParser(prog="python -m tests.relay.work_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=0, help="default: twenty for each kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--address")
    parser.add_argument("--be", choices=["payer", "shop"])
    options = parser.parse_args()
    if options.be == "payer":
        run(payer, options.address)
    elif options.be == "shop":
        run(shop, options.address, options.jobs)
    else:
        jobs = options.jobs or 20 * options.kills
        wrong = kills(options.kills, jobs, options.seed, lambda text: print(f"\r{text} ", end="", flush=True))
        print(f"\n{options.kills} kills, {jobs} jobs: {wrong or 'none lost, none done twice'}")
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
