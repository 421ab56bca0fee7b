"""The facts of a queue: all that is known of its jobs is asserted in a dataspace, for the console, views and rules too.

What is *kept* is there until the queue forgets it, whoever ends; the rest is asserted by the worker that it speaks of,
and goes with it.

>>> from syndicate import ANY, capture, dataspace, on_asserted, run
>>> from syndicate.work import cancel, gather, queue, submit
>>> def boot():
...     ds = dataspace()
...     jobs = queue(ds, "bills")
...     on_asserted(ds, Dead("bills", capture(), capture(), ANY, ANY))(lambda ident, why: print(ident, why))
...     cancel(jobs, submit(jobs, ["pay", 100], id="rent"))
...     gather(jobs, ["rent"], lambda done, dead: None)
>>> run(boot)
rent it was cancelled

Source: ``docs/design/work.md``, "Facts".
"""

from __future__ import annotations

from typing import Final

from syndicate.values.record import record
from syndicate.values.value import Value


@record("job-options")
class Options:
    """How a job is to be done; times are seconds since 1970, and 0 means none."""

    priority: int
    due: float
    deadline: float
    group: str
    submitted: float


ROOM: Final = 96 << 10
"""Bytes of a packet that are left beside a job: for why its attempts have failed."""

ERRORS: Final = 10
"""Why attempts have failed is kept of so many, the latest."""

LENGTH: Final = 1000
"""Characters of each reason that are kept."""


@record("job")
class Job:
    """Kept: it is to be done."""

    queue: str
    id: str
    body: Value
    options: Options


@record("job-dispatcher")
class Dispatcher:
    """Asserted by each program that could give out jobs: who came first does."""

    queue: str
    name: str


@record("job-worker")
class Working:
    """Asserted by a worker: it does so many jobs at once."""

    queue: str
    name: str
    slots: int


@record("job-issued")
class Issued:
    """Kept: the token of the latest offer.  Tokens only grow."""

    queue: str
    token: int


@record("job-offer")
class Offer:
    """Kept: the job is given to this worker, and to nobody else while this token is its latest."""

    queue: str
    id: str
    attempt: int
    token: int
    worker: str
    body: Value
    history: tuple[str, ...]


@record("job-claim")
class Claimed:
    """Asserted by the worker: it is at it."""

    queue: str
    id: str
    token: int
    progress: Value


@record("job-outcome")
class Outcome:
    """Asserted by the worker until its offer goes: what came of it, one of ``done failed permanent``.

    *value* is the result, or why it failed; *facts* are to be kept in the very step that accepts it.
    """

    queue: str
    id: str
    token: int
    kind: str
    value: Value
    facts: tuple[Value, ...]


@record("job-retry")
class Waiting:
    """Kept: the next attempt is this one, not before *at*."""

    queue: str
    id: str
    attempt: int
    at: float
    history: tuple[str, ...]


@record("job-done")
class Done:
    """Kept: it was done, once."""

    queue: str
    id: str
    result: Value
    at: float


@record("job-dead")
class Dead:
    """Kept: it is given up, until somebody says ``redrive``."""

    queue: str
    id: str
    why: str
    job: Job
    history: tuple[str, ...]


@record("job-cancel")
class Cancel:
    """Kept until the queue has seen it: the job is not to be done."""

    queue: str
    id: str


@record("job-redrive")
class Redrive:
    """Kept until the queue has seen it: what is dead is to be tried again."""

    queue: str
    id: str


@record("job-paused")
class Paused:
    """Kept: nothing is given out."""

    queue: str


@record("job-schedule")
class Schedule:
    """Kept: a job is to be done whenever the clock fits *cron*."""

    queue: str
    name: str
    cron: str
    body: Value
