"""Queues in a real broker: each job is done once in effect, whoever is killed; one that keeps nothing is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from relay import connect
from relay.capabilities.sturdy import mint
from syndicate import ANY, Ref, capture, on_asserted, on_retracted, run, stop_actor
from syndicate.errors import NotAValue, QueueMisuse
from syndicate.work import Claim, Retry, gather, queue, submit, worker
from syndicate.work.records import Claimed
from tests.relay.work_kills import kills
from tests.test_examples import BIN, program, server

KILLS = int(os.environ.get("SYNDICATE_WORK_KILLS", "8"))

UNSENDABLE = {"large": "x" * (2 << 20), "no encoding": "\ud800"}


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


@pytest.mark.parametrize("value", UNSENDABLE.values(), ids=UNSENDABLE)
def test_outcomes_that_cannot_be_sent(value: str, tmp_path: Path) -> None:
    """A result, or an error's text: the job is dead, with why, and is not at work for ever."""
    ends: list[dict[str, object]] = []

    def work(body: str) -> str:
        if body == "result":
            return value
        raise ValueError(value)

    def boot(address: str) -> None:
        @connect(address, mint("durable", b""))
        def connected(ds: Ref) -> None:
            jobs = queue(ds, "q", retry=Retry(times=2, first=0.05))
            worker(slots=2)(work).join(jobs)
            with pytest.raises(NotAValue):
                submit(jobs, value)
            ids = [submit(jobs, body, id=body) for body in ("result", "error")]

            def over(done: dict[str, object], dead: dict[str, str]) -> None:
                ends.extend([done, {**dead}])
                stop_actor()

            gather(jobs, ids, over)

    with program(BIN / "syndicate-server", "--listen", "tcp://127.0.0.1:0", "--state", str(tmp_path)) as serving:
        run(boot, serving.wait_for("listening on").split()[-1])
    done, dead = ends
    assert (done, sorted(dead)) == ({}, ["error", "result"])
    assert "too large for the connection" in str(dead["result"])
    assert "ValueError: " in str(dead["error"])


@pytest.mark.parametrize("value", [*UNSENDABLE.values(), 1 << 5000], ids=[*UNSENDABLE, "number"])
def test_progress_that_cannot_be_sent(value: object, tmp_path: Path) -> None:
    """It is not shown, and the job's claim stays."""
    seen: list[object] = []
    results: list[object] = []

    async def work(body: str, claim: Claim) -> int:
        for progress in ("begun", value, "half", value):
            claim.progress(progress)
            await trio.sleep(0.05)
        return claim.attempt

    def boot(address: str) -> None:
        @connect(address, mint("durable", b""))
        def connected(ds: Ref) -> None:
            jobs = queue(ds, "q")
            worker()(work).join(jobs)
            on_asserted(ds, Claimed("q", "x", ANY, capture(str)))(seen.append)
            on_retracted(ds, Claimed("q", "x", ANY, ANY))(lambda: seen.append("unclaimed"))

            def over(done: dict[str, object], dead: dict[str, str]) -> None:
                results.extend([done, dead, *seen])
                stop_actor()

            gather(jobs, [submit(jobs, "x", id="x")], over)

    with program(BIN / "syndicate-server", "--listen", "tcp://127.0.0.1:0", "--state", str(tmp_path)) as serving:
        run(boot, serving.wait_for("listening on").split()[-1])
    assert results == [{"x": 1}, {}, "begun", "half"]


def test_the_largest_job_can_fail(tmp_path: Path) -> None:
    """Whatever is taken can come back as dead, however often and with however much text it has failed."""
    ends: list[dict[str, object]] = []

    def work(body: str) -> None:
        raise ValueError("\U0001f600" * 20_000)

    def boot(address: str) -> None:
        @connect(address, mint("durable", b""))
        def connected(ds: Ref) -> None:
            jobs = queue(ds, "q", retry=Retry(times=12, first=0.001, most=0.001))
            worker(slots=1)(work).join(jobs)
            size = 1 << 20
            while True:  # the largest that is taken, but for some bytes
                try:
                    submit(jobs, "x" * size, id="large")
                    break
                except NotAValue:
                    size -= 1000

            def over(done: dict[str, object], dead: dict[str, str]) -> None:
                ends.extend([done, {**dead}])
                stop_actor()

            gather(jobs, ["large"], over)

    with program(BIN / "syndicate-server", "--listen", "tcp://127.0.0.1:0", "--state", str(tmp_path)) as serving:
        run(boot, serving.wait_for("listening on").split()[-1])
    done, dead = ends
    assert done == {}
    assert str(dead["large"]).startswith("12 attempts failed, the last because ValueError: ")
