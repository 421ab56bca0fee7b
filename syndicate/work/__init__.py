"""Durable work: queues of jobs as facts in a dataspace.

A job that was accepted is run until one attempt of it succeeds or its policy ends; at most one outcome is accepted.
Which worker runs what is a fact, and goes with the worker, so that there is no time-out to guess: a job comes back
when its worker's connection ends.  Two attempts may still *run* at once, for as long as a worker that was cut off has
not noticed it; what they do elsewhere is done once with ``claim.key``, what they do here with ``claim.commit``.

>>> from syndicate import dataspace, run
>>> @worker()
... def double(body):
...     return 2 * body
>>> def boot():
...     jobs = queue(dataspace(), "numbers")
...     double.join(jobs)
...     gather(jobs, submit_many(jobs, {"a": 1, "b": 21}), lambda done, dead: print(sorted(done.items())))
>>> run(boot)
[('a', 2), ('b', 42)]

In several programs ``ds`` is that of a server with ``--state``, through its capability ``durable``, and ``queue`` and
``join`` are said in each connection.

Source: ``docs/design/work.md``.
"""

from __future__ import annotations

from syndicate.work.jobs import Queue, cancel, gather, pause, queue, redrive, repeat, resume, submit, submit_many
from syndicate.work.policy import Retry
from syndicate.work.workers import Claim, Worker, worker

__all__ = [
    "Claim",
    "Queue",
    "Retry",
    "Worker",
    "cancel",
    "gather",
    "pause",
    "queue",
    "redrive",
    "repeat",
    "resume",
    "submit",
    "submit_many",
    "worker",
]
