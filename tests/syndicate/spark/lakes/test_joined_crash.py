"""From a Delta table through a durable broker into another Delta table: whoever is killed, nothing is lost or doubled.

``SYNDICATE_SPARK_CRASHES=n`` kills n times.  The tables are written and read by delta-rs, which is not Spark.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.spark.brokers import Broker
from tests.work import PATIENCE

KILLS = int(os.environ.get("SYNDICATE_SPARK_CRASHES", "3"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A durable one."""
    made = Broker(tmp_path / "state")
    made.start()
    yield made
    made.kill()


def sums(place: Path) -> Counter[int]:
    """What the changes in a table add up to."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    total: Counter[int] = Counter()
    try:
        rows = DeltaTable(str(place)).to_pyarrow_table().to_pydict()
    except TableNotFoundError:
        return total
    for n, weight in zip(rows["n"], rows["weight"], strict=True):
        total[n] += weight
    assert set(total.values()) <= {0, 1}
    return +total


def test_kills(broker: Broker, tmp_path: Path) -> None:
    """Rows come and go all the time; what adds up in the last table is what is in the first."""
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    choices, there, new = random.Random(KILLS), list[int](), iter(range(10**6))
    first = str(tmp_path / "from")
    write_deltalake(
        first, pa.table({"n": pa.array([], pa.int64())}), configuration={"delta.enableChangeDataFeed": "true"}
    )

    def change() -> None:
        if len(there) > 3 and choices.random() < 0.4:
            gone = there.pop(choices.randrange(len(there)))
            DeltaTable(first).delete(f"n = {gone}")
        else:
            come = [next(new) for _ in range(choices.randint(1, 4))]
            write_deltalake(first, pa.table({"n": pa.array(come, pa.int64())}), mode="append")
            there.extend(come)

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.syndicate.spark.lakes.joining", broker.address, str(tmp_path)]
        made = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True)
        assert made.stdout is not None
        assert made.stdout.readline() == "started\n"
        return made

    def end(process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    process = start()
    try:
        for number in range(KILLS):
            for _ in range(choices.randint(1, 5)):
                change()
                time.sleep(choices.random())
            if number % 3 == 2:
                broker.kill()
                broker.start()
            else:
                end(process)
                change()
                process = start()
        until = time.monotonic() + PATIENCE
        while sorted(sums(tmp_path / "to")) != sorted(there):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.5)
    finally:
        end(process)
