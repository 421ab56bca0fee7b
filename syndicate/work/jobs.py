"""Queues: where jobs are put, and asked about.  All functions act in the current turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import isfinite

from attrs import field, frozen

from syndicate.actors.arguments import expect_function, expect_ref
from syndicate.actors.during import on_asserted
from syndicate.actors.keep import Keep, expect_sendable, forget, keep
from syndicate.actors.verbs import react, send, stop, sync, sync_sent
from syndicate.errors import ArgumentError
from syndicate.outside import outside
from syndicate.values.pattern import ANY, capture
from syndicate.values.value import Ref, Value, freeze
from syndicate.work.dispatcher import Policy, candidate
from syndicate.work.policy import Retry, next_slot
from syndicate.work.records import ROOM, Cancel, Dead, Done, Job, Options, Paused, Redrive, Schedule
from syndicate.work.shelf import shelf


@frozen(eq=False)
class Queue:
    """A queue as one program sees it: made by :func:`queue`.

    >>> from syndicate import dataspace, run
    >>> run(lambda: print(queue(dataspace(), "pictures").name))
    pictures
    """

    ds: Ref
    name: str
    lease: float = field(default=3.0)


def expect_queue(what: str, jobs: object) -> Queue:
    """*jobs* if it is a queue; raises :class:`~syndicate.errors.ArgumentError` with the remedy if not."""
    if isinstance(jobs, Queue):
        return jobs
    raise ArgumentError(f"{what}() needs a queue, such as queue(ds, name) returns, and not {jobs!r}")


def _expect_texts(what: str, **texts: object) -> None:
    """Raise :class:`~syndicate.errors.ArgumentError` unless these arguments are text: dispatchers see no others."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ArgumentError(f"{what}() needs text as its {name}, such as {str(text)!r}, and not {text!r}")


def _expect_seconds(seconds: object) -> None:
    if not isinstance(seconds, (int, float)) or not isfinite(seconds):
        raise ArgumentError(f"submit() needs seconds from now as its delay and deadline, not {seconds!r}")


def queue(
    ds: Ref,
    name: str,
    *,
    retry: Retry | None = None,
    lease: float = 3.0,
    keep_done: float | None = None,
    rate: float | None = None,
) -> Queue:
    """The queue of this name in a dataspace: a durable one, or one of this process.

    Whoever says this may be the one who gives out the jobs, and the policy of that program counts, so let all programs
    say the same.  *retry*: how often a job is tried.  *lease*: seconds for which a worker keeps a job although its
    connection is lost.  *keep_done*: seconds after which a job that is done is forgotten, and its id with it (None:
    never).  *rate*: at most so many jobs are given out a second.

    Raises:
        NotInTurn: no turn is running.
        ArgumentError: *lease* or *rate* is not positive, or *name* is no text.
        QueueMisuse: the dataspace keeps nothing (the actor crashes with it, once that is known).
    """
    if lease <= 0 or (rate is not None and rate <= 0):
        raise ArgumentError(f"queue() needs a positive lease and rate, not {lease!r} and {rate!r}")
    _expect_texts("queue", name=name)
    ds = shelf(expect_ref("queue", ds))
    candidate(ds, name, Policy(retry or Retry(), lease, keep_done, rate))
    return Queue(ds, name, lease)


def submit(
    jobs: Queue,
    body: Value,
    *,
    id: str = "",  # noqa: A002
    priority: int = 0,
    delay: float = 0.0,
    deadline: float | None = None,
    group: str = "",
    then: Callable[[], object] | None = None,
) -> str:
    """Let a job be done, and return its id; *then* is called once it is safe, whatever crashes.

    The same *id* twice is one job: after a lost connection, say it again until *then* is called.  Jobs of a higher
    *priority* come first, and of one *group* only one at a time; *delay* and *deadline* are seconds from now.

    >>> from syndicate import dataspace, run, stop_actor
    >>> def boot():
    ...     jobs = queue(dataspace(), "pictures")
    ...     ident = submit(jobs, ["resize", "cat.png"], id="cat", priority=5, then=lambda: print(ident, "is safe"))
    >>> run(boot)
    cat is safe

    Raises:
        NotInTurn: no turn is running.
        NotAValue: *body* is not a value, is too large for the connection, or has no encoding.
        ArgumentError: *jobs* is no queue, or another argument is not of its type.
    """
    expect_queue("submit", jobs)
    _expect_texts("submit", id=id, group=group)
    if not isinstance(priority, int):
        raise ArgumentError(f"submit() needs a whole number as its priority, not {priority!r}")
    _expect_seconds(delay)
    if deadline is not None:
        _expect_seconds(deadline)
    freeze(body)
    now = outside().time_of_day()
    name = id or outside().token(12).hex()
    options = Options(priority, now + delay if delay else 0.0, 0.0 if deadline is None else now + deadline, group, now)
    job = Job(jobs.name, name, body, options)
    _expect_room("submit", jobs, job)
    send(jobs.ds, Keep(job))  # keep() would look once more whether it can go
    if then is not None:
        sync_sent(jobs.ds, then, lambda: None)
    return name


def _expect_room(what: str, jobs: Queue, job: Job) -> None:
    """Raise :class:`NotAValue` if a job could go over the connection, and might not come back from there as dead."""
    expect_sendable(what, jobs.ds, Keep(Dead(job.queue, job.id, ROOM * " ", job, ())))


def submit_many(
    jobs: Queue, bodies: Iterable[Value] | Mapping[str, Value], *, then: Callable[[], object] | None = None
) -> list[str]:
    """Submit each of *bodies*, or of a mapping from ids to bodies, in one step; returns their ids.

    Raises as :func:`submit` does.
    """
    if isinstance(bodies, str):
        raise ArgumentError(f"submit_many() needs several bodies, such as [{bodies!r}], and not {bodies!r}")
    pairs = bodies.items() if isinstance(bodies, Mapping) else (("", body) for body in bodies)
    ids = [submit(jobs, body, id=ident) for ident, body in pairs]
    if then is not None:
        sync_sent(jobs.ds, then, lambda: None)
    return ids


def gather(jobs: Queue, ids: Iterable[str], then: Callable[[dict[str, Value], dict[str, str]], object]) -> None:
    """Call *then* once all of these jobs have ended: with the results of those that are done, and with why the others
    are dead, by their ids.

    Raises:
        NotInTurn: no turn is running.
        ArgumentError: *jobs* is no queue, or *ids* are no ids.
        NotCallable: *then* does not take two arguments.
    """
    expect_queue("gather", jobs)
    expect_function("gather", then, 2)
    if isinstance(ids, str):
        raise ArgumentError(f"gather() needs several ids, such as [{ids!r}], and not {ids!r}")
    left = set(ids)
    for ident in left:
        _expect_texts("gather", id=ident)
    results: dict[str, Value] = {}
    failures: dict[str, str] = {}

    def look() -> None:
        if not left:
            stop(then=partial(then, results, failures))

    def wait() -> None:
        for ident in sorted(left):
            on_asserted(jobs.ds, Done(jobs.name, ident, capture(), ANY))(partial(done, ident))
            on_asserted(jobs.ds, Dead(jobs.name, ident, capture(str), ANY, ANY))(partial(dead, ident))
        look()

    def done(ident: str, result: Value) -> None:
        results[ident] = result
        left.discard(ident)
        look()

    def dead(ident: str, why: str) -> None:
        failures[ident] = why
        left.discard(ident)
        look()

    react(wait)


def cancel(jobs: Queue, ident: str) -> None:
    """Let a job not be done: it is dead, and where it runs its claim is lost.

    >>> from syndicate import dataspace, run
    >>> def boot():
    ...     jobs = queue(dataspace(), "pictures")
    ...     ident = submit(jobs, ["resize", "cat.png"], id="cat")
    ...     cancel(jobs, ident)
    ...     gather(jobs, [ident], lambda done, dead: print(dead))
    >>> run(boot)
    {'cat': 'it was cancelled'}
    """
    expect_queue("cancel", jobs)
    _expect_texts("cancel", id=ident)
    keep(jobs.ds, Cancel(jobs.name, ident))


def redrive(jobs: Queue, ident: str) -> None:
    """Try a dead job again, from its first attempt.

    >>> from syndicate import dataspace, run
    >>> from syndicate.work import worker
    >>> @worker()
    ... def resize(body):
    ...     print(body)
    >>> def boot():
    ...     jobs = queue(dataspace(), "pictures")
    ...     resize.join(jobs)
    ...     cancel(jobs, submit(jobs, "cat.png", id="cat"))
    ...     gather(jobs, ["cat"], lambda done, dead: redrive(jobs, "cat"))
    >>> run(boot)
    cat.png
    """
    expect_queue("redrive", jobs)
    _expect_texts("redrive", id=ident)
    keep(jobs.ds, Redrive(jobs.name, ident))


def pause(jobs: Queue) -> None:
    """Let nothing be given out, whatever restarts, until :func:`resume`; what runs goes on.

    >>> from syndicate import after, dataspace, run
    >>> from syndicate.work import worker
    >>> @worker()
    ... def resize(body):
    ...     print(body)
    >>> def boot():
    ...     jobs = queue(dataspace(), "pictures")
    ...     resize.join(jobs)
    ...     pause(jobs)
    ...     submit(jobs, "cat.png", id="cat")
    ...     @after(0.05)
    ...     def go_on():
    ...         print("resumed")
    ...         resume(jobs)
    ...     gather(jobs, ["cat"], lambda done, dead: None)
    >>> run(boot)
    resumed
    cat.png
    """
    expect_queue("pause", jobs)
    keep(jobs.ds, Paused(jobs.name))


def resume(jobs: Queue) -> None:
    """Give out jobs again.

    >>> from syndicate import dataspace, run
    >>> def boot():
    ...     jobs = queue(dataspace(), "pictures")
    ...     pause(jobs)
    ...     resume(jobs)
    >>> run(boot)
    """
    expect_queue("resume", jobs)
    forget(jobs.ds, Paused(jobs.name))


def repeat(jobs: Queue, name: str, cron: str, body: Value) -> None:
    """Submit *body* whenever the clock, in UTC, fits *cron*; one job for each such time.

    The same name again replaces the schedule.  Times at which no program of the queue runs are left out.

    >>> from syndicate import after, dataspace, run, stop_actor
    >>> def boot():
    ...     jobs = queue(dataspace(), "reports")
    ...     repeat(jobs, "nightly", "0 3 * * *", ["report", "yesterday"])
    ...     after(0.01, stop_actor)               # else it would go on for ever
    >>> run(boot)

    Raises:
        QueueMisuse: *cron* is no time.
        NotAValue: *body* is not a value, is too large for the connection, or has no encoding.
        ArgumentError: *jobs* is no queue, or *name* or *cron* no text.
    """
    expect_queue("repeat", jobs)
    _expect_texts("repeat", name=name, cron=cron)
    next_slot(cron)
    _expect_room("repeat", jobs, Job(jobs.name, name, body, Options(0, 0.0, 0.0, "", 0.0)))

    def replace() -> None:
        before: list[Schedule] = []
        on_asserted(jobs.ds, Schedule(jobs.name, name, capture(str), capture()))(
            lambda cron, body: before.append(Schedule(jobs.name, name, cron, body))
        )

        def replace() -> None:
            schedule = Schedule(jobs.name, name, cron, body)
            keep(jobs.ds, schedule)
            for old in before:
                if old != schedule:
                    forget(jobs.ds, old)
            stop()

        sync(jobs.ds, replace, stop)

    react(replace)
