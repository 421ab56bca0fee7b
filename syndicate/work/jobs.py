"""Queues: where jobs are put, and asked about.  All functions act in the current turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from attrs import field, frozen

from syndicate.actors.arguments import expect_ref
from syndicate.actors.during import on_asserted
from syndicate.actors.keep import forget, keep
from syndicate.actors.verbs import react, stop, sync
from syndicate.errors import ArgumentError
from syndicate.outside import outside
from syndicate.values.pattern import ANY, capture
from syndicate.values.value import Ref, Value, freeze
from syndicate.work.dispatcher import Policy, candidate
from syndicate.work.policy import Retry, next_slot
from syndicate.work.records import Cancel, Dead, Done, Job, Options, Paused, Redrive, Schedule
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
        ArgumentError: *lease* or *rate* is not positive.
        QueueMisuse: the dataspace keeps nothing (the actor crashes with it, once that is known).
    """
    if lease <= 0 or (rate is not None and rate <= 0):
        raise ArgumentError(f"queue() needs a positive lease and rate, not {lease!r} and {rate!r}")
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
        NotAValue: *body* is not a value.
    """
    freeze(body)
    now = outside().time_of_day()
    name = id or outside().token(12).hex()
    options = Options(priority, now + delay if delay else 0.0, 0.0 if deadline is None else now + deadline, group, now)
    keep(jobs.ds, Job(jobs.name, name, body, options))
    if then is not None:
        sync(jobs.ds, then, lambda: None)
    return name


def submit_many(
    jobs: Queue, bodies: Iterable[Value] | Mapping[str, Value], *, then: Callable[[], object] | None = None
) -> list[str]:
    """Submit each of *bodies*, or of a mapping from ids to bodies, in one step; returns their ids."""
    pairs = bodies.items() if isinstance(bodies, Mapping) else (("", body) for body in bodies)
    ids = [submit(jobs, body, id=ident) for ident, body in pairs]
    if then is not None:
        sync(jobs.ds, then, lambda: None)
    return ids


def gather(jobs: Queue, ids: Iterable[str], then: Callable[[dict[str, Value], dict[str, str]], object]) -> None:
    """Call *then* once all of these jobs have ended: with the results of those that are done, and with why the others
    are dead, by their ids.
    """
    left = set(ids)
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
    """
    next_slot(cron)

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
