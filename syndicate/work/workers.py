"""Workers: what runs the jobs of a queue, in any process.

A worker outlives its connections.  ``join`` is said in each of them: it asserts that the worker is there, a claim for
each job that it is at, and what has come of those that have ended, until the queue has seen that.  When the connection
is lost, jobs go on, and are claimed again in the next; but not for longer than two thirds of the lease, so that a job
is stopped here before it is given to somebody else.

Source: ``docs/design/work.md``, "Leases".
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import Final, overload

import trio

from syndicate.actors.actor import Timer
from syndicate.actors.during import during, on_asserted
from syndicate.actors.facet import Facet
from syndicate.actors.field import Field, dataflow, field
from syndicate.actors.keep import Volatile
from syndicate.actors.timer import after
from syndicate.actors.turn import current
from syndicate.actors.verbs import assert_, current_facet, linked_task, on_stop, react, stop, sync
from syndicate.errors import ArgumentError, JobLost, NotAValue, NotCallable, PermanentFailure, shown
from syndicate.log import logger
from syndicate.outside import outside
from syndicate.values.absent import ABSENT
from syndicate.values.pattern import ANY, capture
from syndicate.values.value import Ref, Value, freeze, identical, thaw
from syndicate.work.jobs import Queue, expect_queue
from syndicate.work.records import Claimed, Offer, Outcome, Working

_MARGIN: Final = 2 / 3
"""The part of a lease for which a job goes on without a connection."""

_PATIENCE: Final = 1.0
"""Seconds after which an outcome that no dispatcher has accepted may be one that was not sent."""

_LONGEST: Final = 10_000
"""Characters of an error's text that are sent."""


class Claim:
    """What a job's function knows of its attempt, and may say: from a thread as well.

    ``id``, ``attempt`` (from 1) and ``token`` are the job's; ``key`` is the same in each attempt, and so what makes an
    effect elsewhere happen once: a unique key in the transaction that has the effect.

    >>> from syndicate import dataspace, run
    >>> from syndicate.work import gather, queue, submit
    >>> @worker()
    ... def pay(body, claim):
    ...     claim.progress("asking the bank")
    ...     claim.check()          # raises where the job is no longer this worker's
    ...     claim.commit(["paid", body, claim.key])
    ...     return "paid"
    >>> def boot():
    ...     jobs = queue(dataspace(), "bills")
    ...     pay.join(jobs)
    ...     gather(jobs, [submit(jobs, 100, id="rent")], lambda done, dead: print(done))
    >>> run(boot)
    {'rent': 'paid'}
    """

    def __init__(self, queue: str, ident: str, attempt: int, token: int, facet: Facet, progress: Field[Value]) -> None:
        self.queue = queue
        self.id = ident
        self.attempt = attempt
        self.token = token
        self.key = f"{queue}/{ident}"
        self.facts: tuple[Value, ...] = ()
        self._facet = facet
        self._progress = progress
        self.lost = ""

    def progress(self, value: Value) -> None:
        """Show how far the job is: a value, for whoever observes ``Claimed``.  One that is too large for the connection
        is not shown, as the log says; the one before it stays.

        Raises :class:`JobLost` as :meth:`check` does, and :class:`~syndicate.errors.NotAValue`.
        """
        self.check()
        self._facet.enter_from_thread(partial(setattr, self._progress, "value", thaw(freeze(value))))

    def check(self) -> None:
        """Raises :class:`~syndicate.errors.JobLost` if the job is no longer this worker's: it was cancelled, has passed
        its deadline, or the connection was lost for too long.  A function in a thread is not stopped otherwise.
        """
        if self.lost:
            raise JobLost(f"the job {self.id!r} of the queue {self.queue!r} is not this worker's any more: {self.lost}")

    def commit(self, *facts: Value) -> None:
        """Let these be kept in the dataspace by the very step that accepts the job as done: all of it happens, or
        nothing.  Raises :class:`~syndicate.errors.NotAValue`.
        """
        self.facts += tuple(thaw(freeze(fact)) for fact in facts)


class _Run:
    """An attempt that runs, or whose outcome the queue has not yet seen."""

    def __init__(self, worker: Worker, queue: str, ident: str, attempt: int, token: int, body: Value) -> None:
        self.worker = worker
        self.key = queue, ident, token
        self.progress: Field[Value] = field(ABSENT)
        self.shown: Field[Value] = field(ABSENT)  # the latest progress that is known to have arrived
        self.outcome: Field[Outcome | None] = field(None)
        self.timer: Timer | None = None
        self.body = body
        self.facet = current_facet()
        self.claim = Claim(queue, ident, attempt, token, self.facet, self.progress)
        self.facet.lasting = True
        self.scope = trio.CancelScope()
        linked_task(self._work)

    async def _work(self) -> bool:
        result: object = None
        kind = "done"
        value: Value = ABSENT
        try:
            with self.scope:
                result = await self.worker.call(self.body, self.claim)
        except JobLost:
            return True
        except (PermanentFailure, NotAValue) as error:
            kind, value = "permanent", _text(error)
        except BaseException as error:
            if _ends_program(error, self.worker.is_async):
                raise
            logger(actor=self.worker.name).warning("a job failed", job=self.claim.id, exc_info=error)
            kind, value = "failed", f"{type(error).__name__}: {_text(error)}"
        if self.claim.lost:
            return True
        if kind == "done" and result is not None:
            try:
                value = thaw(freeze(result))
            except NotAValue as error:
                kind, value = "permanent", f"its result is no value: {_text(error)}"
        facts = self.claim.facts if kind == "done" else ()
        self.facet.enter(partial(setattr, self.outcome, "value", Outcome(*self.key, kind, value, facts)))
        return True

    def fail(self) -> None:
        """Its outcome cannot be sent."""
        why = "its result, or what is to be kept with it, is too large for the connection, or text without an encoding"
        self.outcome.value = Outcome(*self.key, "permanent", why, ())

    def give_up(self, why: str) -> None:
        """It is not ours any more."""
        self.claim.lost = self.claim.lost or why
        self.worker.runs.pop(self.key, None)
        self.scope.cancel()
        self.facet.stop(current("work"))


class Worker:
    """Made by :func:`worker`.

    >>> from syndicate import dataspace, run
    >>> from syndicate.work import gather, queue, submit
    >>> @worker(slots=4)
    ... async def shout(body):
    ...     return body.upper()
    >>> def boot():
    ...     jobs = queue(dataspace(), "words")
    ...     shout.join(jobs)
    ...     gather(jobs, [submit(jobs, "hello", id="1")], lambda done, dead: print(done))
    >>> run(boot)
    {'1': 'HELLO'}
    """

    def __init__(self, fn: Callable[..., object], slots: int, name: str) -> None:
        self.fn = fn
        self.slots = slots
        self.name = name
        self.runs: dict[tuple[str, str, int], _Run] = {}
        self._me = ""
        self._limiter: trio.CapacityLimiter | None = None
        self.is_async = inspect.iscoroutinefunction(fn)
        self._takes_claim = _takes_two(fn)
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: object) -> object:
        """The function itself."""
        return self.fn(*args)

    async def call(self, body: Value, claim: Claim) -> object:
        """Run the function: here if it is async, else in a thread."""
        args = (body, claim) if self._takes_claim else (body,)
        if self.is_async:
            return await self.fn(*args)  # type: ignore[misc]
        if self._limiter is None:
            self._limiter = trio.CapacityLimiter(self.slots)
        return await outside().blocking(partial(self.fn, *args), self._limiter)

    def join(self, jobs: Queue) -> None:
        """Work for a queue, in the current facet: say so in each connection.

        Raises:
            NotInTurn: no turn is running.
            ArgumentError: *jobs* is no queue.
        """
        expect_queue("join", jobs)
        ds, queue, here = jobs.ds, jobs.name, current_facet()
        me = self._me = self._me or f"{self.name}-{outside().token(4).hex()}"
        assert_(ds, Volatile(Working(queue, me, self.slots)))

        @during(ds, Offer(queue, capture(str), capture(int), capture(int), me, capture(), ANY))
        def offered(ident: str, attempt: int, token: int, body: Value) -> None:
            key = (queue, ident, token)
            run = self.runs.get(key)
            if run is None:

                def start() -> None:
                    self.runs[key] = _Run(self, queue, ident, attempt, token, body)

                here.actor.root.run(current("work"), lambda: react(start))
                run = self.runs[key]
            elif run.timer is not None:
                run.timer.cancel()
                run.timer = None
            at = run
            _claim(ds, at)
            assert_(ds, lambda: None if at.outcome.value is None else Volatile(at.outcome.value))

            @dataflow
            def over() -> None:
                if at.outcome.value is not None:
                    after(_PATIENCE, lambda: react(lambda: _confirm(ds, at)))

            @on_stop
            def ends() -> None:
                if not here.stopping:
                    at.give_up("the queue has taken it back")
                elif at.facet.alive:
                    at.facet.run(current("work"), lambda: self._wait(at, jobs.lease))

    def _wait(self, run: _Run, lease: float) -> None:
        run.timer = after(lease * _MARGIN, lambda: run.give_up("the connection was lost"))


def _claim(ds: Ref, run: _Run) -> None:
    """Assert that a run's job is being done, and how far it is.

    A progress that cannot be sent must not take the claim with it: the one before it stays until the next has come
    back from the dataspace.
    """
    watched = False

    def differs() -> bool:
        return not identical(run.progress.value, run.shown.value)

    @dataflow
    def watch() -> None:
        nonlocal watched
        if differs() and not watched:
            watched = True
            on_asserted(ds, Claimed(*run.key, capture()))(arrived)

    def arrived(value: Value) -> None:
        if identical(value, run.progress.value):
            run.shown.value = value

    assert_(ds, lambda: Volatile(Claimed(*run.key, run.shown.value)))
    assert_(ds, lambda: Volatile(Claimed(*run.key, run.progress.value)) if differs() else None)


def _confirm(ds: Ref, run: _Run) -> None:
    """Fail a run, in a facet of this, whose outcome no dispatcher has accepted, and which is not asserted either."""
    queue, ident, token = run.key
    missing = True

    @on_asserted(ds, Outcome(queue, ident, token, ANY, ANY, ANY))
    def arrived() -> None:
        nonlocal missing
        missing = False

    def check() -> None:
        if missing:
            run.fail()
        stop()

    sync(ds, check, check)  # a connection that is lost ends this facet


def _text(error: BaseException) -> str:
    """What *error* says, as text that goes over any connection."""
    try:
        text = str(error)
    except Exception:
        text = shown(error)
    return text[:_LONGEST].encode(errors="backslashreplace").decode()


def _ends_program(error: BaseException, is_async: bool) -> bool:
    """Whether it is no failure of a job: it is cancelled, or there was a Ctrl-C, which strikes what runs in trio."""
    if isinstance(error, BaseExceptionGroup):
        return any(_ends_program(each, is_async) for each in error.exceptions)
    return isinstance(error, (trio.Cancelled, GeneratorExit)) or (is_async and isinstance(error, KeyboardInterrupt))


def _takes_two(fn: Callable[..., object]) -> bool:
    """Whether it takes a claim beside the body."""
    if not callable(fn):
        raise NotCallable(f"worker() needs a function, not {fn!r}: write @worker() above it")
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return False
    for count in (2, 1):
        try:
            signature.bind(*[None] * count)
        except TypeError:
            continue
        return count == 2
    takes = f"{getattr(fn, '__name__', 'it')}{signature}"
    raise NotCallable(f"worker() needs a function of the job's body, or of that and the claim, and not {takes}")


@overload
def worker(fn: Callable[..., object], /) -> Worker: ...
@overload
def worker(*, slots: int = 1, name: str = "") -> Callable[[Callable[..., object]], Worker]: ...
def worker(
    fn: Callable[..., object] | None = None, /, *, slots: int = 1, name: str = ""
) -> Worker | Callable[[Callable[..., object]], Worker]:
    """Let the decorated function do jobs, *slots* at once: ``fn(body)`` or ``fn(body, claim)``, in a thread, or async.

    What it returns is the job's result.  What it raises, ``sys.exit()`` too, is a failed attempt, of which the queue's
    policy says when the next one is; :class:`~syndicate.errors.PermanentFailure` is the last.  Ctrl-C ends the program,
    and its jobs are given to other workers.  The function may be run twice for one job,
    where a worker was taken for lost: what it does elsewhere belongs under ``claim.key``, and what it does here into
    ``claim.commit``.

    Raises:
        ArgumentError: *slots* is below 1.
        NotCallable: the function cannot be called with a body.
    """
    if slots < 1:
        raise ArgumentError(f"worker() needs slots of at least 1, not {slots}")

    def decorate(fn: Callable[..., object]) -> Worker:
        return Worker(fn, slots, name or str(getattr(fn, "__name__", "worker")))

    return decorate if fn is None else decorate(fn)
