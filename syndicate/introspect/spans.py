"""Spans: a trace in OpenTelemetry's form, of turns, through as many programs as they lead to.

A span is a turn, and its parent is the turn by which it came.  A packet that a connection brings is a span of its own,
whose parent is the turn of the other program that said it, where both follow (:mod:`relay.session.causes`); so one
journey over three programs is one trace.  Where a turn comes of several, one of them is its parent, and the others are
links.

Nobody pays for it unless somebody follows; and of what comes from outside (a timer, a task, a packet that nobody
follows) only one in *every* is, with all that it leads to, *reach* turns deep.  No more than *most* spans begin in a
second, whatever others ask for.  A span has the names of actors and the labels of what was said, and no values.

>>> from opentelemetry.sdk.trace import TracerProvider
>>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
>>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
>>> from syndicate import dataspace, on_message, capture, run, send, spawn, stop_actor
>>> memory, provider = InMemorySpanExporter(), TracerProvider()
>>> provider.add_span_processor(SimpleSpanProcessor(memory))
>>> def boot():
...     ds = dataspace()
...     on_message(ds, ["say", capture()])(lambda what: stop_actor())
...     send(ds, ["say", "hello"])
>>> with traced(provider=provider):
...     run(boot)
>>> spans = memory.get_finished_spans()
>>> [(span.name, len({span.context.trace_id for span in spans})) for span in spans][:2]
[('boot', 1), ('dataspace', 1)]

Cost: some 30 us for a turn that is followed; a look into a dictionary for one that is not; nothing without.

Source: OpenTelemetry, on traces; W3C Trace Context; Sigelman et al. 2010 (sampling at the root);
``docs/design/introspect.md``, "Spans".
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from attrs import define

from syndicate.actors.actor import Actor
from syndicate.actors.facet import AbstractActor, AbstractTimer
from syndicate.actors.system import System
from syndicate.actors.turn import Turn
from syndicate.actors.turn_follower import Hop
from syndicate.errors import ArgumentError, TracingMissing
from syndicate.index.event import ASSERT, ENTER, MESSAGE, RETRACT, SYNC, Event
from syndicate.introspect.story import followed
from syndicate.outside import outside
from syndicate.values.value import HomeActor, Symbol

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer, TracerProvider

KINDS: Final = {MESSAGE: "message", ASSERT: "assert", RETRACT: "retract", SYNC: "sync", ENTER: "enter"}

LASTING: Final = 10.0
"""Seconds for which what a task does counts as caused by the turn that began it."""

TIMERS: Final = 10_000
"""Timers whose causes are kept."""

_PARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@define(frozen=True)
class Origin:
    """What something is caused by: a span, here or elsewhere, and how many turns deep it may still lead."""

    context: SpanContext
    left: int

    def written(self) -> tuple[str, int]:
        """As a packet has it: a ``traceparent``, and the depth.

        >>> parse(*parse("00-" + "1" * 32 + "-" + "2" * 16 + "-01", 7).written()).left
        7
        """
        from opentelemetry.trace import format_span_id, format_trace_id

        context = self.context
        ids = f"{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}"
        return f"00-{ids}-{int(context.trace_flags):02x}", self.left


def parse(parent: str, left: int) -> Origin | None:
    """What :meth:`Origin.written` has written; None for what it has not."""
    from opentelemetry.trace import SpanContext, TraceFlags

    match = _PARENT.fullmatch(parent)
    if match is None or left < 0:
        return None
    trace, span, flags = (int(part, 16) for part in match.groups())
    context = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(flags & 1))
    return Origin(context, left) if context.is_valid and flags & 1 else None


_task: ContextVar[tuple[tuple[Origin, ...], float]] = ContextVar("task", default=((), 0.0))
"""What began the task that runs, and until when that counts."""


@define(eq=False)
class _Part:
    """A turn, or a packet within one: what it is caused by, and its span, once that is wanted."""

    origins: tuple[Origin, ...]
    name: str
    began: int
    events: Sequence[Event] = ()
    packet: bool = False
    span: Span | None = None
    origin: Origin | None = None


class Spans:
    """Follows the turns of *system* and begins spans with *tracer*.  Made by :func:`traced`; see the module's text.

    Raises :class:`~syndicate.errors.ArgumentError` for a system that somebody follows already.
    """

    def __init__(self, system: System, tracer: Tracer, *, every: int = 1, most: int = 1000, reach: int = 100) -> None:
        if system.chronicle is not None:
            raise ArgumentError("this system has a chronicle already: follow it by that, or by spans")
        if every < 1 or most < 1 or reach < 1:
            raise ArgumentError("spans take every=, most= and reach= of at least 1")
        self.turns = 0
        self.left_out = 0
        """Turns that were not followed because too many were."""
        self._system, self._tracer = system, tracer
        self._every, self._most, self._reach = every, most, reach
        self._chance = Random(every)
        self._skipped = 0
        self._credit, self._since = float(most), outside().elapsed()
        self._batches: dict[int, tuple[Origin, ...]] = {}
        self._timers: OrderedDict[AbstractTimer, tuple[Origin, ...]] = OrderedDict()
        self._part: _Part | None = None  # of the turn that runs
        self._parts: list[_Part] = []
        self._owed: dict[HomeActor, tuple[int, list[_Part]]] = {}
        self._outer: Callable[[Turn, list[Event]], None] | None = None
        system.chronicle = self

    def end(self) -> None:
        """Follow no more."""
        if self._system.chronicle is self:
            self._system.chronicle = None

    @property
    def only(self) -> Container[int]:
        """The identities of the batches that are followed."""
        return self._batches

    # ------------------------------------------------------------------------------------------------ what is queued

    def comes(self, events: list[Event]) -> None:
        """Something was queued that is not of a turn's commit."""
        if self._part is not None:
            self._follow(events, (self._here(self._part),))
            return
        running: object = self._system.turn.actor
        if running is None:
            origins, until = _task.get()
            self._from_outside(events, origins if outside().elapsed() < until else ())

    def _from_outside(self, events: list[Event], origins: tuple[Origin, ...]) -> None:
        """Follow it if it has a cause that is followed, or if it is the turn of one that has none."""
        if not origins:
            self._skipped -= 1
            if self._skipped > 0:
                return
            self._skipped = self._chance.randrange(1, 2 * self._every)  # so that no rhythm is always met, or missed
        self._batches[id(events)] = origins

    def _follow(self, events: list[Event], origins: tuple[Origin | None, ...]) -> None:
        parents = tuple([origin for origin in origins if origin is not None and origin.left > 0])
        if parents:
            self._batches[id(events)] = parents

    def set_timer(self, timer: AbstractTimer) -> None:
        """A timer was set."""
        origin = None if self._part is None else self._here(self._part)
        if origin is not None and origin.left > 0:
            self._timers[timer] = (origin,)
            if len(self._timers) > TIMERS:
                self._timers.popitem(last=False)

    def fires(self, timer: AbstractTimer, events: list[Event]) -> None:
        """It fires."""
        self._from_outside(events, self._timers.pop(timer, ()))

    def starting(self, start: Callable[[], None]) -> None:
        """Start a task in such a way that what it does soon is known to be caused by this turn."""
        origin = None if self._part is None else self._here(self._part)
        token = _task.set(((), 0.0) if origin is None else ((origin,), outside().elapsed() + LASTING))
        try:
            start()
        finally:
            _task.reset(token)

    # ------------------------------------------------------------------------------------------------ turns

    def skip(self, events: list[Event]) -> None:
        """A turn is not followed."""
        self.left_out += self._batches.pop(id(events), None) is not None

    def take(self, actor: Actor, turn: Turn, events: list[Event]) -> None:
        """Let *actor* take its turn, and follow it if it is to be followed."""
        origins = self._batches.pop(id(events), None)
        if origins is None or not self._may():
            actor.take(turn, events)
            return
        self._begin(turn, _Part(origins, actor.name, _now(), events))
        try:
            actor.take(turn, events)
        finally:
            self._finish(turn, actor)

    def packet(self, hops: tuple[Hop, ...], trace: tuple[str, int] | None = None) -> None:
        """What follows in this turn was said by a peer, because of the span that *trace* has written."""
        turn = self._system.turn
        origin = None if trace is None else parse(*trace)
        if origin is None or (self._part is None and not self._may()):
            if self._part is not None and self._part.packet:  # it was that of the packet before
                self._count(turn)
                self._part = self._parts[0]
            return
        origin = Origin(origin.context, min(origin.left, self._reach))
        part = _Part((origin,), turn.actor.name, _now(), packet=True)
        if not self._parts:
            self._begin(turn, part)
            turn.afterwards.append(partial(self._finish, turn, turn.actor))
        else:
            self._count(turn)
            self._part = part
            self._parts.append(part)

    def _begin(self, turn: Turn, part: _Part) -> None:
        self.turns += 1
        self._part, self._parts = part, [part]
        self._owed = {actor: (len(batch), []) for actor, batch in turn.pending.items()}
        if turn.tracing != self._commit:
            self._outer, turn.tracing = turn.tracing, self._commit

    def _finish(self, turn: Turn, actor: AbstractActor) -> None:
        """The turn has ended: so do its spans."""
        if not self._parts:
            return
        turn.tracing, self._outer = self._outer, None
        parts, self._parts, self._part = self._parts, [], None
        self._owed = {}
        end = _now()
        for part in parts:
            if part.span is None and not part.packet and self._tells_nothing(part, parts):
                continue
            self._here(part)
            if part.span is not None:
                if actor.error is not None:
                    from opentelemetry.trace import StatusCode

                    part.span.set_status(StatusCode.ERROR, type(actor.error).__name__)
                part.span.end(end)

    @staticmethod
    def _tells_nothing(part: _Part, parts: list[_Part]) -> bool:
        """Whether it is only how a packet came."""
        return len(parts) > 1 and all(event[0] == ENTER for event in part.events)

    def _commit(self, turn: Turn, events: list[Event]) -> None:
        """What the turn has noted is about to be queued: note what each batch is caused by."""
        self._count(turn)
        owed, self._owed = self._owed, {}
        for actor, batch in turn.pending.items():
            makers = owed.get(actor, (0, []))[1]
            self._follow(batch, tuple([self._here(part) for part in makers]))
        if self._outer is not None:
            self._outer(turn, events)
        if turn.actor.error is not None:  # what was to happen afterwards does not
            self._finish(turn, turn.actor)

    def _count(self, turn: Turn) -> None:
        """Note that what is new was made by the part that has run until now."""
        part = self._part
        for actor, batch in turn.pending.items():
            count, makers = self._owed.get(actor, (0, []))
            late = len(turn.late.get(actor, ()))
            if len(batch) + late > count and part is not None:
                makers.append(part)
            self._owed[actor] = len(batch) + late, makers

    # ------------------------------------------------------------------------------------------------ spans

    def carried(self) -> tuple[str, int] | None:
        """What to tell a peer of the turn that runs; None if it is not followed."""
        origin = None if self._part is None else self._here(self._part)
        return None if origin is None or origin.left <= 0 else origin.written()

    def _here(self, part: _Part) -> Origin | None:
        """The span of a part as a cause, which begins with that if it has not; None if nobody records it."""
        if part.span is None:
            part.span = self._span(part)
            context = part.span.get_span_context()
            left = min([origin.left for origin in part.origins], default=self._reach)
            part.origin = Origin(context, left - 1) if context.is_valid and context.trace_flags.sampled else None
        return part.origin

    def _span(self, part: _Part) -> Span:
        from opentelemetry import context, trace

        parents = [trace.set_span_in_context(trace.NonRecordingSpan(each.context)) for each in part.origins[:1]]
        attributes: dict[str, str | int] = {"syndicate.actor": part.name}
        if part.events:
            attributes["syndicate.events"] = len(part.events)
            attributes["syndicate.first"] = _label(part.events[0])
        name = part.name.partition(" ")[0] if part.name.startswith("session ") else part.name
        return self._tracer.start_span(
            f"{name} receive" if part.packet else name,
            parents[0] if parents else context.Context(),
            trace.SpanKind.CONSUMER if part.packet else trace.SpanKind.INTERNAL,
            attributes,
            [trace.Link(each.context) for each in part.origins[1:8]],
            part.began,
        )

    def _may(self) -> bool:
        """Whether one more may begin."""
        now = outside().elapsed()
        self._credit = min(self._most, self._credit + (now - self._since) * self._most)
        self._since = now
        if self._credit < 1:
            self.left_out += 1
            return False
        self._credit -= 1
        return True

    # ------------------------------------------------------------------------------------------------ as a chronicle

    def here(self) -> tuple[int, ...]:
        """No steps."""
        return ()

    def path(self, causes: Sequence[int]) -> tuple[Hop, ...]:
        """What led to steps: nothing, as there are none."""
        return ()


def _now() -> int:
    return round(outside().time_of_day() * 1e9)


def _label(event: Event) -> str:
    """What an event is, without its value."""
    kind, _, value, handle = event
    form = getattr(handle, "form", None) if kind == RETRACT else value
    head = form[0] if type(form) is tuple and form else getattr(form, "label", None)
    label = head.name if isinstance(head, Symbol) else type(form).__name__ if hasattr(form, "__attrs_attrs__") else ""
    return f"{KINDS[kind]} {label}".rstrip()


def find_tracer(provider: TracerProvider | None = None) -> Tracer:
    """The tracer of *provider*, or of that which the program has set; raises
    :class:`~syndicate.errors.TracingMissing`.
    """
    try:
        from opentelemetry import trace
    except ImportError:
        raise TracingMissing(
            'traces need opentelemetry-api: install it with: pip install "syndicate-dataspace[trace]"'
        ) from None
    return trace.get_tracer("syndicate", tracer_provider=provider)


@contextmanager
def traced(
    *, every: int = 1, most: int = 1000, reach: int = 100, provider: TracerProvider | None = None
) -> Iterator[list[Spans]]:
    """Follow each actor system that is opened within; the result has what follows them.

    *provider* is OpenTelemetry's, by default the one that the program has set.  Raises
    :class:`~syndicate.errors.TracingMissing` without the package ``opentelemetry-api``.
    """
    tracer = find_tracer(provider)
    spans: list[Spans] = []
    with followed(lambda system: spans.append(Spans(system, tracer, every=every, most=most, reach=reach))):
        yield spans


__all__ = ["Origin", "Spans", "find_tracer", "parse", "traced"]
