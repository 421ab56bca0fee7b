"""Queues in a real broker: each job is done once in effect, whoever is killed; one that keeps nothing is refused."""

from __future__ import annotations

import os

import pytest

from relay import connect
from syndicate import Ref, run
from syndicate.errors import QueueMisuse
from syndicate.work import queue
from tests.relay.work_kills import kills
from tests.test_examples import server

KILLS = int(os.environ.get("SYNDICATE_WORK_KILLS", "8"))


def test_kills() -> None:
    """Of the broker, of workers in the middle of a job, of who submits."""
    assert kills(KILLS, 20 * KILLS, seed=1) == ""


def test_a_broker_that_keeps_nothing() -> None:
    """The program fails with what to do, and does not wait for ever."""

    def boot(address: str) -> None:
        @connect(address)
        def connected(ds: Ref) -> None:
            queue(ds, "q")

    with server() as address, pytest.raises(QueueMisuse, match="connect with the capability `durable`"):
        run(boot, address)
