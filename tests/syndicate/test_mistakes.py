"""Mistakes that newcomers make with the functions that they import: each is one line, and says what is right."""

from __future__ import annotations

import asyncio as host
from collections.abc import Callable
from typing import Any, cast

import pytest
import trio

import syndicate.work
from syndicate import Ref, asyncio, dataspace, open_system, record, run, stop_actor
from syndicate.errors import ArgumentError, NotCallable, RecordDefinition
from syndicate.work import worker

OPENED: dict[str, Callable[[], object]] = {
    "open_system": open_system,
    "asyncio.open_system": asyncio.open_system,
    "asyncio.connect": lambda: asyncio.connect("tcp://127.0.0.1:1"),
}


@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
def test_a_block_that_is_none(opened: Callable[[], object]) -> None:
    """What is used, awaited or entered without ``async with`` says that it is missing."""

    async def awaits() -> None:
        await cast(Any, opened())

    def enters() -> None:
        with cast(Any, opened()):
            pass

    remedy = r"it opens what is there in a block: async with \w+\(\) as"
    with pytest.raises(AttributeError, match=r"has no attribute 'call': " + remedy):
        cast(Any, opened()).call(dataspace)
    with pytest.raises(ArgumentError, match="is not awaited: " + remedy):
        trio.run(awaits)
    with pytest.raises(ArgumentError, match="is not awaited: " + remedy):
        host.run(awaits())
    with pytest.raises(ArgumentError, match="is no plain block: " + remedy):
        enters()


def test_a_record_that_is_no_class() -> None:
    """However the decorator is written."""

    def person(who: str) -> None: ...

    decorate: Any
    for decorate in (record, record(), record("person")):
        with pytest.raises(RecordDefinition, match="is for a class, which person is not: write `class person:`"):
            decorate(person)


def test_workers() -> None:
    """The decorator works without parentheses too; a function that takes no job is refused where it is written."""
    bare = worker(lambda body: body)
    assert (bare.slots, bare("x")) == (1, "x")
    for fn in (lambda: None, lambda body, claim, more: None):
        with pytest.raises(NotCallable, match=r"of the job's body, or of that and the claim, and not <lambda>\("):
            worker()(fn)
    with pytest.raises(NotCallable, match=r"needs a function, not 3: write @worker\(\) above it"):
        worker(3)  # type: ignore[call-overload]  # the mistake


work: Any = syndicate.work
"""As it is called by who makes mistakes."""

JOBS: dict[str, Callable[[Ref], object]] = {
    r"submit\(\) needs a queue, such as queue\(ds, name\) returns": lambda ds: work.submit(ds, 1),
    r"gather\(\) needs a queue": lambda ds: work.gather(ds, [], lambda done, dead: None),
    r"cancel\(\) needs a queue": lambda ds: work.cancel(ds, "1"),
    r"redrive\(\) needs a queue": lambda ds: work.redrive(ds, "1"),
    r"pause\(\) needs a queue": work.pause,
    r"resume\(\) needs a queue": work.resume,
    r"repeat\(\) needs a queue": lambda ds: work.repeat(ds, "n", "0 3 * * *", 1),
    r"join\(\) needs a queue": lambda ds: work.worker(str).join(ds),
    r"queue\(\) needs text as its name, such as '5', and not 5": lambda ds: work.queue(ds, 5),
    r"submit\(\) needs text as its id, such as '7'": lambda ds: work.submit(work.queue(ds, "q"), 1, id=7),
    r"submit\(\) needs text as its group": lambda ds: work.submit(work.queue(ds, "q"), 1, group=7),
    r"a whole number as its priority, not 'h": lambda ds: work.submit(work.queue(ds, "q"), 1, priority="high"),
    r"seconds from now as its delay and deadline, not '5'": lambda ds: work.submit(work.queue(ds, "q"), 1, delay="5"),
    r"as its delay and deadline, not nan": lambda ds: work.submit(work.queue(ds, "q"), 1, deadline=float("nan")),
    r"submit_many\(\) needs several bodies, such as \['ab'\]": lambda ds: work.submit_many(work.queue(ds, "q"), "ab"),
    r"gather\(\) needs several ids, such as \['ab'\]": lambda ds: work.gather(
        work.queue(ds, "q"), "ab", lambda done, dead: None
    ),
    r"gather\(\) needs text as its id, such as '1'": lambda ds: work.gather(
        work.queue(ds, "q"), [1], lambda done, dead: None
    ),
    r"cancel\(\) needs text as its id": lambda ds: work.cancel(work.queue(ds, "q"), 1),
}


@pytest.mark.parametrize("message", JOBS)
def test_jobs(message: str) -> None:
    """Each is raised by the call; before, most were jobs that nobody does, and nobody knows of."""

    def boot() -> None:
        JOBS[message](dataspace())
        stop_actor()

    with pytest.raises(ArgumentError, match=message):
        run(boot)
