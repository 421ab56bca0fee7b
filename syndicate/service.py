"""Services: questions that are answered once or fail with a reason, and programs that need one another.

A question is an assertion, ``<ask REQUEST REPLY>``, so that to withdraw it is to give it up, and an answer that comes
too late goes nowhere.  Who answers asserts that it does, and, while it is at a question, that it is at it: so nobody
waits for a deadline to learn that nobody is there, or that who was asked has crashed.

>>> from syndicate import capture, dataspace, on_asserted, record, run, stop_actor
>>> @record
... class Half:
...     number: int
>>> def boot():
...     ds = dataspace()
...     @answer(ds, Half(capture(int)))
...     def half(number):
...         if number % 2:
...             raise Refused(f"{number} is odd")
...         return number // 2
...     ask(ds, Half(42), print)
...     ask(ds, Half(7), print, otherwise=print)
...     ask(ds, ["third", 9], print, otherwise=lambda failure: print(type(failure).__name__))
>>> run(boot)
NobodyAnswers
21
7 is odd

Programs start in the order in which they need one another: ``provide`` says what there is and what it needs, and it
begins when somebody requires it and all that it needs is there; ``require`` is notified of it, for as long as it is.

All of it is facts, which others may watch, such as who waits for what:

>>> def boot():
...     ds = dataspace()
...     on_asserted(ds, RequireService(capture()))(lambda name: print("needed:", name))
...     on_asserted(ds, ServiceState(capture(), capture()))(print)
...     provide(ds, "clock", start=lambda: "a clock")
...     require(ds, "clock")(lambda clock: stop_actor())
>>> run(boot)
needed: clock
clock started

Source: ``docs/design/actors.md``, "Services"; Syndicate schemas, ``service`` (``<require-service N>`` and the rest).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, TypeVar, cast

import trio

from syndicate.actors.arguments import expect_function, expect_ref
from syndicate.actors.during import during, on_asserted, on_retracted
from syndicate.actors.facet import Facet
from syndicate.actors.field import dataflow
from syndicate.actors.query import query_set
from syndicate.actors.timer import after
from syndicate.actors.turn import Entity, current, decorator
from syndicate.actors.verbs import assert_, current_facet, linked_task, react, ref, sync_sent
from syndicate.errors import AnswererCrashed, AnswerLate, AskFailed, NobodyAnswers, Refused, ServiceCycle
from syndicate.log import logger
from syndicate.values.pattern import Group, capture, capture_names, pattern_of
from syndicate.values.record import record
from syndicate.values.value import Assertion, Ref, Symbol, Value, freeze, is_record, label_of, plain

F = TypeVar("F", bound=Callable[..., object])

_PATIENCE: Final = 5.0
"""Seconds after which a need that is not met is worth a warning."""


@record("ask")
class Ask:
    """Asserted by who asks: *reply* is a reference that takes ``Taken`` and one ``Reply`` or ``Refusal``."""

    request: Value
    reply: Ref


@record("answers")
class Answers:
    """Asserted by who answers requests with this label (a list's is ``list``)."""

    label: Value


@record("taken")
class Taken:
    """Asserted to a reply reference while somebody is at the question."""


@record("reply")
class Reply:
    """Sent to a reply reference."""

    value: Value


@record("refusal")
class Refusal:
    """Sent to a reply reference: there is no answer, and why."""

    reason: str


@record("require-service")
class RequireService:
    """Asserted by who needs it."""

    name: Value


@record("service-object")
class ServiceObject:
    """Asserted by a service that is ready: what it is used by."""

    name: Value
    object: Value


@record("service-state")
class ServiceState:
    """Asserted by a service: *state* is ``started``, ``ready`` or ``failed``."""

    name: Value
    state: Symbol


@record("depends-on")
class DependsOn:
    """Asserted by a service: what it needs."""

    name: Value
    need: Value


# ---------------------------------------------------------------------------------------------------- questions


def _label(request: Value) -> Value:
    request = plain(request)
    if isinstance(request, Group):
        return Symbol("list") if request.label is None else request.label
    return label_of(request) if is_record(request) else Symbol("list")


class _Reply(Entity):
    """Waits for the answer to one question."""

    def __init__(
        self,
        end: Callable[[Callable[[], object]], None],
        failed: Callable[[AskFailed], object],
        then: Callable[[Value], object],
    ) -> None:
        self.end = end
        self.failed = failed
        self.then = then
        self.taken = 0

    def assert_(self, value: Value, handle: Assertion) -> None:
        """Somebody is at it."""
        self.taken += 1

    def retract(self, handle: Assertion) -> None:
        """And is not any more, before it has answered."""
        self.taken -= 1
        if not self.taken:
            self.end(partial(self.failed, AnswererCrashed("who was asked has ended before it answered")))

    def message(self, value: Value) -> None:
        """The answer."""
        if isinstance(value, Reply):
            self.end(partial(self.then, value.value))
        elif isinstance(value, Refusal):
            self.end(partial(self.failed, Refused(value.reason)))


def ask(
    ds: Ref,
    request: Value,
    then: Callable[[Value], object],
    otherwise: Callable[[AskFailed], object] | None = None,
    *,
    deadline: float = 10.0,
) -> None:
    """Ask whoever answers *request*, a record or a list, and call *then* with one answer; or *otherwise* with why there
    is none: :class:`~syndicate.errors.NobodyAnswers`, :class:`~syndicate.errors.AnswererCrashed`,
    :class:`~syndicate.errors.AnswerLate` after *deadline* seconds, :class:`~syndicate.errors.Refused`.  Without
    *otherwise* the actor crashes by it.  What is not answered when the current facet ends is given up.

    Raises:
        NotInTurn: no turn is running.
        NotAValue: *request* is not a value.
    """
    expect_ref("ask", ds)
    expect_function("ask", then, 1)
    freeze(request)
    label = _label(request)

    def failed(failure: AskFailed) -> None:
        if otherwise is None:
            raise failure
        otherwise(failure)

    def begin() -> None:
        facet = current_facet()

        def end(outcome: Callable[[], object]) -> None:
            if facet.alive and not facet.stopping:
                facet.stop(current("ask"), outcome)

        reply = _Reply(end, failed, then)
        there: set[int] = set()

        def look() -> None:
            if not there and not reply.taken:
                end(partial(failed, NobodyAnswers(f"nobody answers {label!s}: {request!r}")))

        on_asserted(ds, Answers(label))(lambda: there.add(0))
        assert_(ds, Ask(request, ref(reply)))

        def looked() -> None:
            on_retracted(ds, Answers(label))(gone)
            look()

        def gone() -> None:
            there.clear()
            look()

        sync_sent(ds, looked, partial(end, partial(failed, NobodyAnswers("the dataspace has ended"))))
        after(
            deadline, partial(end, partial(failed, AnswerLate(f"no answer within {deadline:g} seconds: {request!r}")))
        )

    react(begin)


async def asked(facet: Facet, ds: Ref, request: Value, *, deadline: float = 10.0) -> Value:
    """The same in a task: the answer, or raises what :func:`ask` tells.  *facet* is where the question is asked: what
    ``current_facet()`` gives where the task is started.

    >>> from syndicate import dataspace, linked_task, run, stop_actor
    >>> def boot():
    ...     ds = dataspace()
    ...     answer(ds, ["double", capture()])(lambda number: 2 * number)
    ...     facet = current_facet()
    ...     async def work():
    ...         print(await asked(facet, ds, ["double", 21]))
    ...         facet.enter(stop_actor)
    ...     linked_task(work)
    >>> run(boot)
    42
    """
    answers: list[Value] = []
    failures: list[AskFailed] = []
    over = trio.Event()

    def on_answer(kind: list[Value], value: Value) -> None:
        kind.append(value)
        over.set()

    facet.enter(partial(ask, ds, request, partial(on_answer, answers), partial(on_answer, failures), deadline=deadline))
    await over.wait()
    if failures:
        raise failures[0]
    return answers[0]


def answer(ds: Ref, pattern: Value) -> Callable[[F], F]:
    """Let the decorated function answer requests that match *pattern*, with what it captures, as long as the current
    facet lives; it may be async.  What it returns is the answer (None: ``True``); if it raises
    :class:`~syndicate.errors.Refused` the one who asks gets this error, and any other error is a crash of this actor,
    as in any handler.  Where several answer, the first answer counts.
    """
    expect_ref("answer", ds)
    written = pattern_of(pattern)
    assert_(ds, Answers(_label(written)))

    def install(fn: F) -> F:
        expect_function(
            "answer", (lambda *_: None) if inspect.iscoroutinefunction(fn) else fn, len(capture_names(written))
        )

        @during(ds, Ask(pattern, capture()))
        def question(*captures: Value) -> None:
            *parts, reply = captures
            if not isinstance(reply, Ref):
                return
            assert_(reply, Taken())
            facet = current_facet()

            def work() -> None:
                try:
                    value = fn(*parts)
                except Refused as refusal:
                    value = refusal
                _say(reply, value)

            async def wait() -> bool:
                try:
                    value = await cast(Callable[..., Awaitable[Value]], fn)(*parts)
                except Refused as refusal:
                    value = refusal
                facet.enter(partial(_say, reply, value))
                return True

            if inspect.iscoroutinefunction(fn):
                linked_task(wait)
            else:
                facet.enter(work)  # in a turn to come: that it is taken is known by then, whatever this raises

        return fn

    return decorator("answer", install)


def _say(reply: Ref, value: Value) -> None:
    said = Refusal(str(value)) if isinstance(value, Refused) else Reply(True if value is None else value)
    current("answer").send(reply, said)


# ---------------------------------------------------------------------------------------------------- services


def require(ds: Ref, name: Value) -> Callable[[F], F]:
    """Need a service, and run the decorated function with its object in a facet of its own, for as long as it is there;
    a warning says so where it is not after five seconds.

    >>> from syndicate import dataspace, run, stop_actor
    >>> def boot():
    ...     ds = dataspace()
    ...     provide(ds, "clock", start=lambda: "a clock")
    ...     @require(ds, "clock")
    ...     def ready(clock):
    ...         print(clock)
    ...         stop_actor()
    >>> run(boot)
    a clock
    """
    assert_(ds, RequireService(name))
    there: list[bool] = []

    def warn() -> None:
        if not there:
            logger(actor=current("require").actor.name).warning("a service is not there", service=str(name))

    after(_PATIENCE, warn)

    def install(fn: F) -> F:
        @during(ds, ServiceObject(name, capture()))
        def present(thing: Value) -> object:
            there.append(True)
            return fn(thing)

        return fn

    return decorator("require", install)


def provide(
    ds: Ref, name: Value, needs: Iterable[Value] = (), *, start: Callable[..., Value], always: bool = False
) -> None:
    """Offer a service: ``start(*objects)`` is called in a facet of its own, with the objects of what it *needs*, in
    their order, once somebody requires it (or *always*) and all of these are there.  It returns the object by which it
    is used.  When one of its needs goes, the facet stops, and starts again when that is back.

    >>> from syndicate import dataspace, run, stop_actor
    >>> def boot():
    ...     ds = dataspace()
    ...     provide(ds, "engine", start=lambda: "an engine")
    ...     provide(ds, "search", ["engine"], start=lambda engine: f"a search by {engine}")
    ...     @require(ds, "search")
    ...     def ready(search):
    ...         print(search)
    ...         stop_actor()
    >>> run(boot)
    a search by an engine

    Raises:
        NotInTurn: no turn is running.
        ServiceCycle: it needs itself by way of what it needs (the actor crashes with it, once that is known).
    """
    expect_ref("provide", ds)
    wanted = list(needs)
    for need in wanted:
        assert_(ds, DependsOn(name, need))
    edges: dict[Value, set[Value]] = {}

    def needed(one: Value, need: Value) -> None:
        edges.setdefault(freeze(one), set()).add(freeze(need))

    def free(one: Value, need: Value) -> None:
        edges[freeze(one)].discard(freeze(need))

    needs_there = query_set(ds, DependsOn(capture(), capture()), needed, free)

    @dataflow  # at the end of a turn: what takes the place of another comes before that goes
    def look() -> None:
        cycle = _cycle(edges, freeze(name)) if needs_there.value else []
        if cycle:
            raise ServiceCycle(f"services need one another in a circle: {' needs '.join(map(str, cycle))}")

    def run(objects: list[Value]) -> None:
        if len(objects) < len(wanted):
            assert_(ds, RequireService(wanted[len(objects)]))
            during(ds, ServiceObject(wanted[len(objects)], capture()))(lambda thing: run([*objects, thing]))
            return
        assert_(ds, ServiceState(name, Symbol("started")))
        thing = start(*objects)
        assert_(ds, ServiceObject(name, thing))
        assert_(ds, ServiceState(name, Symbol("ready")))

    if always:
        react(partial(run, []))
    else:
        during(ds, RequireService(name))(partial(run, []))


def _cycle(edges: dict[Value, set[Value]], start: Value) -> list[Value]:
    """A cycle from *start* back to it, or nothing."""
    paths = [[start]]
    seen: set[Value] = set()
    while paths:
        path = paths.pop()
        for need in sorted(edges.get(path[-1], ()), key=str):
            if need == start:
                return [*path, need]
            if need not in seen:
                seen.add(need)
                paths.append([*path, need])
    return []
