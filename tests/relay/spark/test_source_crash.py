"""Kills at random instants of all that Spark is, and of the broker: from one pattern to another nothing is lost, and
nothing comes back that went.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from syndicate import ANY, Record
from tests.relay.spark.brokers import Broker
from tests.work import PATIENCE

KILLS = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "2"))


@pytest.fixture
def running(broker: Broker, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes; all of them end with the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Python, its JVM and their workers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def there(broker: Broker, label: str) -> set[int]:
    """The numbers that stand with a label."""
    return {value.fields[0] for value in broker.there(Record(label, [ANY]))}


@pytest.mark.xdist_group("spark")
@pytest.mark.spark
def test_kills(broker: Broker, tmp_path: Path, running: list[subprocess.Popen[bytes]]) -> None:
    """Numbers come and go all the time; now and then one of both is killed, in whatever it does."""
    choices = random.Random(11)
    command = [sys.executable, "-m", "tests.relay.spark.piping", broker.address, str(tmp_path)]
    inputs: set[int] = set()

    def start() -> None:
        running.append(subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL))

    def feed() -> None:
        changed = set(choices.sample(range(50), 5))
        broker.keep(*[f"<In {n}>" for n in changed - inputs])
        broker.forget(*[f"<In {n}>" for n in changed & inputs])
        inputs.symmetric_difference_update(changed)

    def until(done: set[int] | None) -> None:
        began = time.monotonic()
        while True:
            now = there(broker, "Out")
            if (now == done) if done is not None else now:
                return
            assert time.monotonic() < began + 5 * PATIENCE, (sorted(now ^ (done or set())), running[-1].poll())
            assert running[-1].poll() is None
            time.sleep(0.3)

    start()
    feed()
    until(None)
    for number in range(KILLS):
        for _ in range(choices.randrange(6)):
            feed()
            time.sleep(choices.random())
        if number % 2:
            broker.kill()
            broker.start()
        else:
            end(running.pop())
            feed()
            start()
    until(set(inputs))
    assert {mark.fields[0] for mark in broker.there(Record("spark-batch", [ANY, ANY]))}.__len__() == 1
