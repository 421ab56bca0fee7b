# mypy: disable-error-code="misc"
# (it cannot infer lambdas with defaults)
"""Queues of jobs in one process: what is tried, when, how often, and what becomes of it."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from syndicate import (
    ANY,
    Ref,
    after,
    assert_,
    capture,
    dataspace,
    during,
    on_asserted,
    on_retracted,
    run,
    spawn,
    stop_actor,
)
from syndicate.actors.keep import forget, keep
from syndicate.errors import ArgumentError, JobLost, PermanentFailure, QueueMisuse
from syndicate.outside import Outside, replaced
from syndicate.work import (
    Claim,
    Queue,
    Retry,
    Worker,
    cancel,
    gather,
    pause,
    queue,
    redrive,
    repeat,
    resume,
    submit,
    submit_many,
    worker,
)
from syndicate.work.records import Claimed, Dead, Dispatcher, Done, Issued, Job, Offer, Paused, Schedule, Waiting
from syndicate.work.shelf import shelf

START = 1_800_000_000.0


class Clocked(Outside):
    """The time of day goes with trio's clock; there is no chance."""

    def time_of_day(self) -> float:
        """Seconds since 1970, as many as trio has counted."""
        return START + trio.current_time()

    def uniform(self, low: float, high: float) -> float:
        """The later of the two."""
        return high


def play(boot: Callable[[], object]) -> None:
    """Run it on a clock that waits for nothing."""
    with replaced(Clocked()):
        run(boot, clock=MockClock(autojump_threshold=0.02))


def now() -> float:
    """Seconds since the beginning, to the tenth."""
    return round(trio.current_time(), 1)


PLAIN = Retry(times=3, first=1.0, factor=2.0, jitter=False)


def kept(ds: Ref, names: dict[str, Any], seen: list[str]) -> None:
    """What of the queue stands at the end."""
    for name, pattern in names.items():
        during(ds, pattern)(lambda name=name: seen.append(name))


def ends(over: list[Any], *results: object) -> None:
    """The program has these results."""
    over.extend(results)
    stop_actor()


def test_results_and_failures() -> None:
    """A result, a failure that is tried again, one that is not, one that is too often; and what is kept of each."""
    tries: list[tuple[str, int, float]] = []
    over: list[Any] = []

    @worker(slots=10)
    async def work(body: str, claim: Claim) -> str | None:
        tries.append((body, claim.attempt, now()))
        if body == "bad":
            raise ValueError("always")
        if body == "worse":
            raise PermanentFailure("never")
        if body == "lucky" and claim.attempt < 3:
            raise ValueError("not yet")
        return None if body == "nothing" else body.upper()

    def boot() -> None:
        jobs = queue(dataspace(), "q", retry=PLAIN)
        work.join(jobs)
        ids = submit_many(jobs, {body: body for body in ("good", "bad", "worse", "lucky", "nothing")})
        gather(jobs, ids, lambda done, dead: over.extend([done, dead]))
        after(100, stop_actor)

    play(boot)
    done, dead = over
    assert {name: str(value) for name, value in done.items()} == {"good": "GOOD", "lucky": "LUCKY", "nothing": "null"}
    assert dead == {"bad": "3 attempts failed, the last because ValueError: always", "worse": "never"}
    assert [(attempt, time) for body, attempt, time in tries if body == "bad"] == [(1, 0.0), (2, 1.0), (3, 3.0)]
    assert [attempt for body, attempt, _ in tries if body == "worse"] == [1]


def test_what_is_over_leaves_only_what_came_of_it() -> None:
    """No job, offer, retry or claim stands when all are done or dead; the token has grown."""
    current: dict[type, set[Any]] = {kind: set() for kind in (Job, Offer, Waiting, Claimed, Done, Dead, Issued)}

    @worker(slots=2)
    async def work(body: int) -> int:
        if body % 3 == 0:
            raise ValueError("three")
        return body

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q", retry=Retry(times=2, first=0.1))
        for kind, all_of in current.items():
            pattern = kind(*[ANY] * len(attrs.fields(kind)))
            on_asserted(ds, capture(pattern))(all_of.add)
            on_retracted(ds, capture(pattern))(all_of.discard)
        work.join(jobs)
        submit_many(jobs, list(range(20)))
        after(60, stop_actor)

    play(boot)
    assert {kind.__name__: len(all_of) for kind, all_of in current.items()} == {
        "Job": 0,
        "Offer": 0,
        "Waiting": 0,
        "Claimed": 0,
        "Done": 13,
        "Dead": 7,
        "Issued": 1,
    }
    assert current[Issued] == {Issued("q", 27)}


def test_the_same_id_is_one_job() -> None:
    """Before, while and after it is done."""
    ran: list[str] = []

    @worker()
    async def work(body: str) -> None:
        ran.append(body)
        await trio.sleep(5)

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q")
        for time in (0, 1, 10, 20):
            after(time, lambda time=time: submit(jobs, f"at {time}", id="one"))
        after(0.5, lambda: work.join(jobs))
        after(60, stop_actor)

    play(boot)
    assert ran == ["at 0"]


def test_order() -> None:
    """By priority, then by age; one of a group at a time; none before its delay; at most so many a second."""
    ran: list[tuple[str, float]] = []

    @worker(slots=2)
    async def work(body: str) -> None:
        ran.append((body, now()))
        await trio.sleep(1)

    def boot() -> None:
        jobs = queue(dataspace(), "q")
        submit(jobs, "later", delay=10)
        for name in "ab":
            submit(jobs, name, group="g")
        submit(jobs, "c")
        submit(jobs, "first", priority=5)
        after(0.1, lambda: work.join(jobs))
        after(60, stop_actor)

    play(boot)
    assert sorted(ran, key=lambda job: job[1:] + job[:1]) == [
        *(("a", 0.1), ("first", 0.1)),
        *(("b", 1.1), ("c", 1.1)),
        ("later", 10.0),
    ]


def test_a_rate() -> None:
    """Of ten jobs at two a second the last is given out after four seconds."""
    ran: list[float] = []

    @worker(slots=10)
    async def work(body: int) -> None:
        ran.append(now())

    def boot() -> None:
        jobs = queue(dataspace(), "q", rate=2)
        work.join(jobs)
        submit_many(jobs, list(range(10)))
        after(60, stop_actor)

    play(boot)
    assert len(ran) == 10
    assert 4.0 <= ran[-1] <= 5.0


def test_cancelled_dead_and_again() -> None:
    """What waits and what runs is cancelled; a deadline ends a job wherever it is; what is dead can be tried again."""
    seen: list[Any] = []
    again: list[str] = []

    @worker(slots=3)
    async def work(body: str, claim: Claim) -> str:
        try:
            await trio.sleep(50 if body not in again else 0)
        except trio.Cancelled:
            with pytest.raises(JobLost, match="not this worker's any more"):
                claim.check()
            seen.append(("stopped", body, now()))
            raise
        return "done"

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q")
        submit(jobs, "runs", id="runs")
        submit(jobs, "waits", id="waits", delay=30)
        submit(jobs, "late", id="late", deadline=3)
        after(0.5, lambda: work.join(jobs))
        on_asserted(ds, Dead("q", capture(str), capture(str), ANY, ANY))(lambda *dead: seen.append((*dead, now())))
        for name in ("runs", "waits", "unknown"):
            after(1, partial(cancel, jobs, name))

        @after(5)
        def redone() -> None:
            again.append("runs")
            redrive(jobs, "runs")
            redrive(jobs, "unknown")

        gather(jobs, ["runs"], lambda done, dead: None)
        on_asserted(ds, Done("q", capture(), capture(), ANY))(lambda *done: seen.append(done))
        after(60, stop_actor)

    play(boot)
    assert sorted(seen, key=str) == sorted(
        [
            ("stopped", "runs", 1.0),
            ("runs", "it was cancelled", 1.0),
            ("waits", "it was cancelled", 1.0),
            ("stopped", "late", 3.0),
            ("late", "its deadline has passed", 3.0),
            ("runs", "done"),
        ],
        key=str,
    )


def test_a_lost_worker() -> None:
    """After the lease its job is given to another, as a further attempt; it dies if each is lost."""
    seen: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q", retry=PLAIN, lease=2.4)

        def weak(number: int) -> None:
            @worker(name=f"weak{number}")
            async def work(body: str, claim: Claim) -> None:
                seen.append((claim.attempt, now()))
                await trio.sleep(1)
                raise SystemError("unreachable")

            work.join(queue(ds, "q", retry=PLAIN, lease=2.4))
            after(0.7, stop_actor)

        submit(jobs, "poison", id="poison")
        for number in range(40):
            after(number, lambda number=number: spawn(weak, number))
        gather(jobs, ["poison"], lambda done, dead: seen.append(dead))
        after(60, stop_actor)

    play(boot)
    *tries, dead = seen
    assert [attempt for attempt, _ in tries] == [1, 2, 3]
    assert dead == {"poison": "3 attempts failed, the last because its worker was lost"}


def test_the_next_dispatcher_goes_on() -> None:
    """When the program that dispatches ends, another finds all as it was: what is offered, waits, is done."""
    ran: list[Any] = []

    def boot() -> None:
        ds = dataspace()

        def program(ends: float) -> None:
            queue(ds, "q", retry=PLAIN)
            after(ends, stop_actor)

        for number in range(8):
            after(number * 1.0, lambda number=number: spawn(program, 1.5 + number % 2))

        def works() -> None:
            @worker(slots=2)
            async def work(body: int, claim: Claim) -> int:
                ran.append((body, claim.attempt, claim.token))
                await trio.sleep(0.7)
                if body == 3 and claim.attempt == 1:
                    raise ValueError("once")
                return body

            jobs = queue(ds, "q", retry=PLAIN)
            work.join(jobs)
            submit_many(jobs, {str(number): number for number in range(10)})
            gather(jobs, [str(number) for number in range(10)], lambda done, dead: ran.append(sorted(done.values())))
            after(60, stop_actor)

        after(0.2, lambda: spawn(works))

    play(boot)
    assert ran[-1] == list(range(10))
    attempts = ran[:-1]
    assert sorted((body, attempt) for body, attempt, _ in attempts) == sorted([*((n, 1) for n in range(10)), (3, 2)])
    assert len({token for *_, token in attempts}) == 11


def test_an_outcome_waits_for_a_dispatcher() -> None:
    """However long there is none: it is asserted, and so it has been sent."""
    results: list[Any] = []

    @worker()
    async def work(body: str) -> str:
        await trio.sleep(2)
        return body.upper()

    def boot() -> None:
        ds = dataspace()

        def program() -> None:
            queue(ds, "q")
            after(1, stop_actor)

        spawn(program)
        jobs = Queue(shelf(ds), "q")
        work.join(jobs)
        submit(jobs, "word", id="1")
        after(20, lambda: queue(ds, "q"))
        gather(jobs, ["1"], lambda done, dead: results.extend([now(), done, dead]))
        after(100, stop_actor)

    play(boot)
    assert results == [20.0, {"1": "WORD"}, {}]


def test_one_dispatches_at_a_time() -> None:
    """However many there are and whenever they come and go."""
    current: set[str] = set()

    def boot() -> None:
        ds = dataspace()

        def program(ends: float) -> None:
            queue(ds, "q")
            after(ends, stop_actor)

        for number in range(20):
            after(number % 3, lambda number=number: spawn(program, 1 + number % 5))
        on_asserted(ds, Dispatcher("q", capture(str)))(current.add)
        on_retracted(ds, Dispatcher("q", capture(str)))(current.discard)

    play(boot)
    assert current == set()


def test_facts_are_kept_with_the_outcome() -> None:
    """What a failed attempt would have kept is not there."""
    facts: list[Any] = []

    @worker()
    async def work(body: str, claim: Claim) -> None:
        claim.commit(["paid", claim.key, claim.attempt])
        if claim.attempt == 1:
            raise ValueError("once")

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q", retry=PLAIN)
        work.join(jobs)
        submit(jobs, "bill", id="7")
        on_asserted(ds, ["paid", capture(), capture()])(lambda *fact: facts.append(fact))
        after(20, stop_actor)

    play(boot)
    assert facts == [("q/7", 2)]


def test_pause_resume_and_progress() -> None:
    """Nothing is given out meanwhile; progress shows, also from a function in a thread."""
    seen: list[Any] = []

    @worker()
    def work(body: str, claim: Claim) -> str:
        claim.progress(0.5)
        return body

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q")
        work.join(jobs)
        pause(jobs)
        submit(jobs, "x", id="x", then=lambda: seen.append("safe"))
        on_asserted(ds, Claimed("q", "x", ANY, capture(float)))(seen.append)
        on_asserted(ds, Done("q", "x", capture(), ANY))(lambda result: seen.append((result, now() >= 5)))
        during(ds, Paused("q"))(lambda: seen.append("paused"))
        after(5, lambda: resume(jobs))
        gather(jobs, ["x"], lambda done, dead: stop_actor())

    with replaced(Outside()):
        run(boot, clock=MockClock(rate=50))
    assert seen == ["paused", "safe", 0.5, ("x", True)]


def test_progress_is_a_snapshot() -> None:
    """What is changed after it was shown is shown by the next call; and what is no value is raised by the call."""
    seen: list[Any] = []

    @worker()
    async def work(body: str, claim: Claim) -> None:
        state = {"pages": 0}
        for _ in range(3):
            state["pages"] += 1
            claim.progress(state)
            await trio.sleep(1)
        for progress in (1, True, 1.0):
            claim.progress(progress)
            await trio.sleep(1)
        claim.progress(object())

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q")
        work.join(jobs)
        submit(jobs, "x", id="x")
        on_asserted(ds, Claimed("q", "x", ANY, capture()))(seen.append)
        gather(jobs, ["x"], lambda done, dead: ends(seen, dead["x"]))

    play(boot)
    pages = [["pages", number] for number in (1, 2, 3)]
    assert [list(*value.items()) if isinstance(value, Mapping) else repr(value) for value in seen[1:-1]] == [
        *pages,
        "1",
        "True",
        "1.0",
    ]
    assert seen[-1].startswith("object is not a value: <object")


def _asyncio_cancelled() -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    asyncio.run(main())


def _unusual() -> None:
    class Unusual(BaseException):
        pass

    raise Unusual


def _interrupted() -> None:
    raise KeyboardInterrupt


ENDS: dict[str, Callable[[], object]] = {
    "exit": lambda: sys.exit(3),
    "asyncio": _asyncio_cancelled,
    "other": _unusual,
}


@pytest.mark.parametrize("in_thread", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_program_ends_a_job(end: str, in_thread: bool) -> None:
    """It is a failed attempt, and the worker goes on."""
    over: list[Any] = []

    def work(body: str) -> str:
        if body == "bad":
            ENDS[end]()
        return body

    async def work_here(body: str) -> str:
        await trio.lowlevel.checkpoint()
        if body == "bad" and end != "asyncio":
            ENDS[end]()
        async with trio.open_nursery() as nursery:
            if body == "bad":
                nursery.start_soon(_raise, asyncio.CancelledError())
        return body

    def boot() -> None:
        jobs = queue(dataspace(), "q", retry=PLAIN)
        worker()(work if in_thread else work_here).join(jobs)
        submit_many(jobs, {"bad": "bad", "good": "good"})
        gather(jobs, ["bad", "good"], lambda done, dead: ends(over, done, dead))

    play(boot)
    done, dead = over
    assert (done, list(dead)) == ({"good": "good"}, ["bad"])
    assert dead["bad"].startswith("3 attempts failed, the last because ")


async def _raise(error: BaseException) -> None:
    raise error


def test_ctrl_c_in_a_job() -> None:
    """It strikes async functions where it comes, and ends the program; in a thread there is none, but for a job's."""
    over: list[Any] = []

    @worker()
    async def work(body: str) -> None:
        await trio.sleep(1)
        _interrupted()

    @worker()
    def work_in_thread(body: str) -> None:
        _interrupted()

    def boot(work: Worker) -> None:
        jobs = queue(dataspace(), "q", retry=Retry(times=1))
        work.join(jobs)
        submit(jobs, "x", id="x")
        gather(jobs, ["x"], lambda done, dead: ends(over, dead["x"]))

    with pytest.raises(KeyboardInterrupt):
        play(partial(boot, work))
    play(partial(boot, work_in_thread))
    assert over == ["1 attempts failed, the last because KeyboardInterrupt: "]


def test_schedules() -> None:
    """Each slot is one job; the same name again replaces; a time that never comes is refused."""
    ids: list[str] = []

    @worker()
    async def work(body: str, claim: Claim) -> None:
        ids.append(f"{body} {(int(claim.id.partition('@')[2]) - START) / 60:.0f}")

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q")
        work.join(jobs)
        repeat(jobs, "tick", "*/10 * * * *", "old")
        after(25 * 60, lambda: repeat(jobs, "tick", "*/20 * * * *", "new"))
        during(ds, Schedule("q", "tick", capture(str), ANY))(ids.append)
        with pytest.raises(QueueMisuse, match="is no time that comes"):
            repeat(jobs, "never", "61 * * * *", "x")
        after(65 * 60, stop_actor)

    play(boot)
    assert ids == ["*/10 * * * *", "old 10", "old 20", "*/20 * * * *", "new 40", "new 60"]


def test_keep_done() -> None:
    """What is done is forgotten after that time, and its id with it."""
    seen: list[Any] = []

    @worker()
    async def work(body: str) -> None:
        seen.append(now())

    def boot() -> None:
        ds = dataspace()
        jobs = queue(ds, "q", keep_done=5)
        work.join(jobs)
        for time in (0, 2, 10):
            after(time, lambda: submit(jobs, "x", id="x"))
        on_retracted(ds, Done("q", "x", ANY, ANY))(lambda: seen.append(("forgotten", now())))
        after(12, stop_actor)

    play(boot)
    assert seen == [0.0, ("forgotten", 5.0), 10.0]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda ds: queue(ds, "q", lease=0), "a positive lease"),
        (lambda ds: queue(ds, "q", rate=-1), "a positive lease and rate"),
        (lambda ds: Retry(times=0), "times of at least 1"),
        (lambda ds: worker(slots=0), "slots of at least 1"),
        (lambda ds: queue("ds", "q"), "reference"),  # type: ignore[arg-type]
        (lambda ds: submit(queue(ds, "q"), object()), "not a value"),
    ],
)
def test_mistakes(mistake: Callable[[Ref], object], message: str) -> None:
    """Each is raised where it is made, and says what is right."""
    errors: list[str] = []

    def boot() -> None:
        try:
            mistake(dataspace())
        except (ArgumentError, TypeError) as error:
            errors.append(str(error))
        stop_actor()

    run(boot)
    assert len(errors) == 1
    assert message in errors[0]


def test_a_shelf() -> None:
    """It is one for a dataspace, keeps each value once, forgets what it keeps, and lets the rest through."""
    seen: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        kept_there = shelf(ds)
        assert shelf(ds) is kept_there
        on_asserted(ds, ["fact", capture()])(lambda what: seen.append(("+", what)))
        on_retracted(kept_there, ["fact", capture()])(lambda what: seen.append(("-", what)))

        def author() -> None:
            keep(kept_there, ["fact", 1])
            keep(kept_there, ["fact", 1])
            assert_(kept_there, ["fact", 2])
            after(1, stop_actor)

        spawn(author)
        after(2, lambda: forget(kept_there, ["fact", 1]))
        after(3, stop_actor)

    play(boot)
    assert seen == [("+", 1), ("+", 2), ("-", 2), ("-", 1)]


def test_delays_grow_to_a_bound() -> None:
    """For any number of attempts."""
    policy = Retry(times=1000, first=0.5, factor=3.0, most=60.0, jitter=False)
    delays = [policy.delay(attempt) for attempt in range(1, 1000)]
    assert delays == sorted(delays)
    assert delays[0] == 0.5
    assert delays[-1] == 60.0
    assert all(math.isfinite(delay) for delay in delays)
