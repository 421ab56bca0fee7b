"""The dispatcher of a queue: it alone gives jobs to workers, accepts what comes of them, and says what is dead.

Each program that says ``queue(..)`` has a candidate.  All of them see the candidates come in one order, which is the
dataspace's; who was there first dispatches, and when that one is gone the next does.  What a dispatcher knows is
nothing but the facts of the queue: it reads them, and from then on each of its steps is one turn that keeps and
forgets facts together, so that whoever comes next finds none half done.

A job is at any time in one of five places: ready (in a heap), waiting (for a time), offered, done, dead.

Contract: tokens grow with each offer, over all dispatchers of a queue; of a job at most one outcome is accepted, that
of its latest offer; a job is forgotten only in the step that keeps it as done or dead.

Source: ``docs/design/work.md``.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial

from attrs import define

from syndicate.actors.actor import Timer
from syndicate.actors.during import on_asserted, on_retracted
from syndicate.actors.keep import Forget, Keep, Volatile
from syndicate.actors.timer import after
from syndicate.actors.verbs import assert_, react, send, sync
from syndicate.errors import QueueMisuse
from syndicate.log import logger
from syndicate.outside import outside
from syndicate.values.pattern import ANY, capture
from syndicate.values.value import Ref, Value
from syndicate.work.policy import Retry, next_slot
from syndicate.work.records import (
    ERRORS,
    LENGTH,
    Cancel,
    Claimed,
    Dead,
    Dispatcher,
    Done,
    Issued,
    Job,
    Offer,
    Options,
    Outcome,
    Paused,
    Redrive,
    Schedule,
    Waiting,
    Working,
)

_LATEST = 3600.0
"""Seconds after which a timer looks again at the time of day, which people may have set."""


@define(eq=False)
class Policy:
    """What a queue's dispatcher does with its jobs; see :func:`~syndicate.work.jobs.queue`."""

    retry: Retry
    lease: float
    keep_done: float | None
    rate: float | None


@define(eq=False)
class _Entry:
    """A job that is not yet done, and how far it is."""

    job: Job
    attempt: int = 1
    history: tuple[str, ...] = ()
    offer: Offer | None = None
    waiting: Waiting | None = None
    watch: Timer | None = None  # until when its worker may be silent
    queued: bool = False  # whether it is in the heap of what is ready

    def fail(self, why: str) -> None:
        """An attempt has failed: of the latest the reasons are kept, so far as they fit beside the job."""
        self.history = (*self.history, why[:LENGTH])[-ERRORS:]


def candidate(ds: Ref, queue: str, policy: Policy) -> None:
    """Be there in the current facet, and dispatch while nobody is who came before."""
    me = outside().token(8).hex()
    ahead: set[str] = set()
    asserted = False
    leading = False

    def look() -> None:
        nonlocal leading
        if asserted and not ahead and not leading:
            leading = True
            react(lambda: _Dispatching(ds, queue, policy).begin())

    @on_asserted(ds, Dispatcher(queue, capture(str)))
    def comes(name: str) -> None:
        nonlocal asserted
        if name == me:
            asserted = True
        elif not asserted:
            ahead.add(name)
        look()

    @on_retracted(ds, Dispatcher(queue, capture(str)))
    def goes(name: str) -> None:
        ahead.discard(name)
        look()

    def appear() -> None:  # now that those who were there before have been seen
        assert_(ds, Volatile(Dispatcher(queue, me)))
        sync(ds, check, lambda: None)

    def check() -> None:
        if not asserted:
            raise QueueMisuse(
                f'the queue "{queue}" is in a dataspace that keeps nothing, so that its jobs would be lost: connect '
                "with the capability `durable` of a server that was started with --state"
            )

    sync(ds, appear, lambda: None)


class _Dispatching:
    """The state of a dispatcher while it is one."""

    def __init__(self, ds: Ref, queue: str, policy: Policy) -> None:
        self.ds = ds
        self.queue = queue
        self.policy = policy
        self.ready = False  # whether all that was kept is known
        self.entries: dict[str, _Entry] = {}
        self.done: dict[str, Done] = {}
        self.dead: dict[str, Dead] = {}
        self.workers: dict[str, int] = {}
        self.busy: dict[str, int] = {}
        self.claims: set[tuple[str, int]] = set()
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.schedules: dict[str, Schedule] = {}
        self.jobs: dict[str, list[Job]] = {}  # as they come before all is known
        self.offers: dict[str, Offer] = {}
        self.waits: dict[str, Waiting] = {}
        self.groups: dict[str, deque[str]] = {}  # those of which a job is offered, and who waits for its end
        self.paused = False
        self.issued: Issued | None = None
        self.heap: list[tuple[int, float, int, str]] = []  # priority (the highest first), submitted, number, id
        self.alarms: list[tuple[float, int, Callable[[], None]]] = []
        self.alarm: Timer | None = None
        self.number = 0
        self.allowance = 1.0
        self.counted = outside().time_of_day()

    # ------------------------------------------------------------------------------------------------ what it reads

    def begin(self) -> None:
        """Read what is there, and then go on."""
        ds, queue = self.ds, self.queue
        on_asserted(ds, Job(queue, capture(str), capture(), capture(Options)))(self._job)
        on_retracted(ds, Job(queue, capture(str), ANY, ANY))(self._withdrawn)
        on_asserted(ds, Offer(queue, *[capture()] * 6))(self._before(lambda *f: self._put(self.offers, Offer, f)))
        on_asserted(ds, Waiting(queue, *[capture()] * 4))(self._before(lambda *f: self._put(self.waits, Waiting, f)))
        on_asserted(ds, Done(queue, *[capture()] * 3))(self._before(lambda *f: self._put(self.done, Done, f)))
        on_asserted(ds, Dead(queue, *[capture()] * 4))(self._before(lambda *f: self._put(self.dead, Dead, f)))
        on_asserted(ds, Issued(queue, capture(int)))(self._issues)
        on_asserted(ds, Working(queue, capture(str), capture(int)))(self._worker)
        on_retracted(ds, Working(queue, capture(str), ANY))(lambda name: self.workers.pop(name, None))
        on_asserted(ds, Claimed(queue, capture(str), capture(int), ANY))(self._claimed)
        on_retracted(ds, Claimed(queue, capture(str), capture(int), ANY))(self._unclaimed)
        on_asserted(ds, Outcome(queue, *[capture()] * 5))(self._outcome)
        on_retracted(ds, Outcome(queue, capture(str), capture(int), ANY, ANY, ANY))(
            lambda ident, token: self.outcomes.pop((ident, token), None)
        )
        on_asserted(ds, Cancel(queue, capture(str)))(self._when_ready(self._cancel))
        on_asserted(ds, Redrive(queue, capture(str)))(self._when_ready(self._redrive))
        on_asserted(ds, Paused(queue))(lambda: self._pause(True))
        on_retracted(ds, Paused(queue))(lambda: self._pause(False))
        on_asserted(ds, Schedule(queue, capture(str), capture(str), capture()))(self._schedule)
        on_retracted(ds, Schedule(queue, capture(str), ANY, ANY))(lambda name: self.schedules.pop(name, None))
        self._later: list[Callable[[], None]] = []
        sync(ds, self._on_synced, lambda: None)

    def _put(self, table: dict[str, Value], kind: Callable[..., Value], fields: tuple[Value, ...]) -> None:
        table[fields[0]] = kind(self.queue, *fields)

    def _before(self, read: Callable[..., None]) -> Callable[..., None]:
        """Only what was kept by dispatchers before this one: what it keeps itself it knows."""

        def handle(*fields: Value) -> None:
            if not self.ready:
                read(*fields)

        return handle

    def _when_ready(self, act: Callable[[str], None]) -> Callable[[str], None]:
        def handle(ident: str) -> None:
            if self.ready:
                act(ident)
            else:
                self._later.append(partial(act, ident))

        return handle

    def _issues(self, token: int) -> None:
        if self.issued is None or token > self.issued.token:
            self.issued = Issued(self.queue, token)

    def _on_synced(self) -> None:
        """All that was kept has been read."""
        if self.issued is None:
            self.issued = Issued(self.queue, 0)
            send(self.ds, Keep(self.issued))
        self.ready = True
        for ident, jobs in self.jobs.items():
            for job in jobs:
                self._admit(ident, job)
        for ident, offer in self.offers.items():
            if ident not in self.entries:
                send(self.ds, Forget(offer))
        for ident, done in self.done.items():
            self._prune(ident, done)
        for schedule in self.schedules.values():
            self._next_slot(schedule)
        for act in self._later:
            act()
        for key in list(self.outcomes):
            self._accept(key)
        self.jobs, self.offers, self.waits, self._later = {}, {}, {}, []
        self._dispatch()

    # ------------------------------------------------------------------------------------------------ jobs

    def _job(self, ident: str, body: Value, options: Options) -> None:
        job = Job(self.queue, ident, body, options)
        if not self.ready:
            self.jobs.setdefault(ident, []).append(job)
            return
        self._admit(ident, job)
        self._dispatch()

    def _admit(self, ident: str, job: Job) -> None:
        """A job whose id is there, or was done, is the same job once more."""
        entry = self.entries.get(ident)
        if entry is not None and entry.job == job:
            return
        if entry is not None or ident in self.done or ident in self.dead:
            send(self.ds, Forget(job))
            return
        entry = self.entries[ident] = _Entry(job)
        offer, waiting = self.offers.get(ident), self.waits.get(ident)
        if job.options.deadline:
            self._at(job.options.deadline, partial(self._overdue, ident, job))
        if offer is not None:
            entry.offer, entry.attempt, entry.history = offer, offer.attempt, offer.history
            self._take(entry, offer)
        elif waiting is not None:
            entry.waiting, entry.attempt, entry.history = waiting, waiting.attempt, waiting.history
            self._at(waiting.at, partial(self._due, ident, entry))
        elif job.options.due > outside().time_of_day():
            self._at(job.options.due, partial(self._due, ident, entry))
        else:
            self._queue(entry)

    def _withdrawn(self, ident: str) -> None:
        """Somebody else has forgotten a job: it is as if it had been cancelled."""
        entry = self.entries.get(ident)
        if self.ready and entry is not None:
            self._bury(entry, "it was forgotten")
            self._dispatch()

    def _due(self, ident: str, entry: _Entry) -> None:
        if self.entries.get(ident) is entry and entry.offer is None:
            self._queue(entry)

    def _overdue(self, ident: str, job: Job) -> None:
        entry = self.entries.get(ident)
        if entry is not None and entry.job is job:
            self._bury(entry, "its deadline has passed")

    def _queue(self, entry: _Entry) -> None:
        if not entry.queued:
            entry.queued = True
            options = entry.job.options
            self.number += 1
            heapq.heappush(self.heap, (-options.priority, options.submitted, self.number, entry.job.id))

    # ------------------------------------------------------------------------------------------------ offers

    def _dispatch(self) -> None:
        """Give out what can be given out."""
        if not self.ready or self.paused:
            return
        token = first = self.issued.token if self.issued is not None else 0
        while self.heap:
            worker = self._free()
            if worker is None or not self._allowed():
                break
            *_, ident = heapq.heappop(self.heap)
            entry = self.entries.get(ident)
            if entry is None or not entry.queued:
                continue
            entry.queued = False
            group = entry.job.options.group
            if group in self.groups:
                self.groups[group].append(ident)
                continue
            token += 1
            offer = Offer(self.queue, ident, entry.attempt, token, worker, entry.job.body, entry.history)
            send(self.ds, Keep(offer))
            if entry.waiting is not None:
                send(self.ds, Forget(entry.waiting))
                entry.waiting = None
            entry.offer = offer
            self._take(entry, offer)
        if token != first:
            before, self.issued = self.issued, Issued(self.queue, token)
            send(self.ds, Keep(self.issued))
            send(self.ds, Forget(before))

    def _free(self) -> str | None:
        """The worker with the most free slots, if one has any."""
        best, most = None, 0
        for name, slots in self.workers.items():
            free = slots - self.busy.get(name, 0)
            if free > most:
                best, most = name, free
        return best

    def _allowed(self) -> bool:
        rate = self.policy.rate
        if rate is None:
            return True
        now = outside().time_of_day()
        self.allowance = min(max(1.0, rate), self.allowance + max(0.0, now - self.counted) * rate)
        self.counted = now
        if self.allowance < 1.0:
            self._at(now + (1.0 - self.allowance) / rate, lambda: None)
            return False
        self.allowance -= 1.0
        return True

    def _take(self, entry: _Entry, offer: Offer) -> None:
        """The offer is asserted: its worker is busy, its group too, and the worker has a lease to claim it."""
        self.busy[offer.worker] = self.busy.get(offer.worker, 0) + 1
        if entry.job.options.group:
            self.groups.setdefault(entry.job.options.group, deque())
        if (offer.id, offer.token) not in self.claims:
            self._watch(entry)

    def _watch(self, entry: _Entry) -> None:
        offer = entry.offer
        if entry.watch is not None:
            entry.watch.cancel()
        entry.watch = after(self.policy.lease, lambda: self._lost(entry, offer))

    def _lost(self, entry: _Entry, offer: Offer | None) -> None:
        if entry.offer is offer and offer is not None:
            self._failed(entry, "its worker was lost")
            self._dispatch()

    def _worker(self, name: str, slots: int) -> None:
        self.workers[name] = slots
        self._dispatch()

    def _claimed(self, ident: str, token: int) -> None:
        self.claims.add((ident, token))
        entry = self.entries.get(ident)
        if entry is not None and entry.watch is not None and entry.offer is not None and entry.offer.token == token:
            entry.watch.cancel()
            entry.watch = None

    def _unclaimed(self, ident: str, token: int) -> None:
        self.claims.discard((ident, token))
        entry = self.entries.get(ident)
        if entry is not None and entry.offer is not None and entry.offer.token == token:
            self._watch(entry)

    # ------------------------------------------------------------------------------------------------ outcomes

    def _outcome(self, ident: str, token: int, kind: str, value: Value, facts: Value) -> None:
        self.outcomes[ident, token] = Outcome(self.queue, ident, token, kind, value, facts)
        if self.ready:
            self._accept((ident, token))
            self._dispatch()

    def _accept(self, key: tuple[str, int]) -> None:
        """Take an outcome, if it is of the latest offer; its worker drops any other."""
        entry, outcome = self.entries.get(key[0]), self.outcomes[key]
        if entry is None or entry.offer is None or entry.offer.token != key[1]:
            return
        if outcome.kind == "done":
            done = self.done[outcome.id] = Done(self.queue, outcome.id, outcome.value, outside().time_of_day())
            for fact in outcome.facts:
                send(self.ds, Keep(fact))
            send(self.ds, Keep(done))
            self._end(entry)
            self._prune(outcome.id, done)
        elif outcome.kind == "permanent":
            entry.fail(str(outcome.value))
            self._bury(entry, str(outcome.value))
        else:
            self._failed(entry, str(outcome.value))

    def _failed(self, entry: _Entry, why: str) -> None:
        """An attempt has failed: wait for the next, or give up."""
        entry.fail(why)
        if entry.attempt >= self.policy.retry.times:
            self._bury(entry, f"{entry.attempt} attempts failed, the last because {why}")
            return
        at = outside().time_of_day() + self.policy.retry.delay(entry.attempt)
        entry.attempt += 1
        entry.waiting = Waiting(self.queue, entry.job.id, entry.attempt, at, entry.history)
        send(self.ds, Keep(entry.waiting))
        self._release(entry)
        self._at(at, partial(self._due, entry.job.id, entry))

    def _bury(self, entry: _Entry, why: str) -> None:
        dead = self.dead[entry.job.id] = Dead(self.queue, entry.job.id, why, entry.job, entry.history)
        send(self.ds, Keep(dead))
        self._end(entry)

    def _end(self, entry: _Entry) -> None:
        """The job is forgotten."""
        del self.entries[entry.job.id]
        send(self.ds, Forget(entry.job))
        if entry.waiting is not None:
            send(self.ds, Forget(entry.waiting))
        self._release(entry)

    def _release(self, entry: _Entry) -> None:
        """Its offer is asserted no more."""
        offer, entry.offer = entry.offer, None
        if offer is None:
            return
        send(self.ds, Forget(offer))
        if entry.watch is not None:
            entry.watch.cancel()
            entry.watch = None
        self.busy[offer.worker] -= 1
        if not self.busy[offer.worker]:
            del self.busy[offer.worker]
        for ident in self.groups.pop(entry.job.options.group, ()):
            other = self.entries.get(ident)
            if other is not None and other.offer is None:
                self._queue(other)

    def _prune(self, ident: str, done: Done) -> None:
        if self.policy.keep_done is not None:
            self._at(done.at + self.policy.keep_done, partial(self._forget_done, ident, done))

    def _forget_done(self, ident: str, done: Done) -> None:
        if self.done.get(ident) is done:
            del self.done[ident]
            send(self.ds, Forget(done))

    # ------------------------------------------------------------------------------------------------ requests

    def _cancel(self, ident: str) -> None:
        entry = self.entries.get(ident)
        if entry is not None:
            self._bury(entry, "it was cancelled")
        send(self.ds, Forget(Cancel(self.queue, ident)))
        self._dispatch()

    def _redrive(self, ident: str) -> None:
        dead = self.dead.pop(ident, None)
        if dead is not None:
            body, options = dead.job.body, dead.job.options
            again = Options(options.priority, 0.0, 0.0, options.group, options.submitted)
            send(self.ds, Keep(Job(self.queue, ident, body, again)))
            send(self.ds, Forget(dead))
        send(self.ds, Forget(Redrive(self.queue, ident)))

    def _pause(self, paused: bool) -> None:
        self.paused = paused
        self._dispatch()

    def _schedule(self, name: str, cron: str, body: Value) -> None:
        schedule = self.schedules[name] = Schedule(self.queue, name, cron, body)
        if self.ready:
            self._next_slot(schedule)

    def _next_slot(self, schedule: Schedule) -> None:
        try:
            slot = next_slot(schedule.cron)
        except QueueMisuse as error:  # it was written by a program that did not ask us
            logger(actor="queue").error(
                "a schedule is left out", queue=self.queue, name=schedule.name, reason=str(error)
            )
            return
        self._at(slot, partial(self._fire, schedule, slot))

    def _fire(self, schedule: Schedule, slot: float) -> None:
        if self.schedules.get(schedule.name) == schedule:
            options = Options(0, 0.0, 0.0, "", slot)
            send(self.ds, Keep(Job(self.queue, f"{schedule.name}@{int(slot)}", schedule.body, options)))
            self._next_slot(schedule)

    # ------------------------------------------------------------------------------------------------ time

    def _at(self, time: float, act: Callable[[], None]) -> None:
        """Call *act* when the time of day is past *time*."""
        self.number += 1
        heapq.heappush(self.alarms, (time, self.number, act))
        if self.alarms[0][1] == self.number:
            self._set()

    def _set(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        wait = self.alarms[0][0] - outside().time_of_day()
        self.alarm = after(min(max(0.0, wait), _LATEST), self._ring)

    def _ring(self) -> None:
        self.alarm = None
        now = outside().time_of_day()
        while self.alarms and self.alarms[0][0] <= now:
            heapq.heappop(self.alarms)[2]()
        if self.alarms:
            self._set()
        self._dispatch()
