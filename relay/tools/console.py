"""The console: what happens in a dataspace, live: whoever shows or keeps it is notified event by event.

It observes whole values: each pattern ``P`` as ``capture(P)``.  A value that several patterns match is shown for the
first of them only, so that it appears once.  When the connection is lost, all that was there is shown as gone; when it
is back, what is there then as come.

Interests (``Observe`` assertions, the console's own among them) are shown only if asked for: they would be half of all
lines in most dataspaces.

A :class:`~relay.tools.printer.Printer` shows events, and may be behind; a :class:`~relay.tools.recording.Recorder`
keeps all of
them.

Source: ``docs/design/commands.md``, "The console".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, Protocol, Unpack

from relay.capabilities.certificate import Capability
from relay.client import ConnectOptions, connect
from relay.session.proxy import Proxy
from relay.tools.printer import Printer
from relay.tools.recording import Mark
from syndicate.actors.system import System, system_of
from syndicate.actors.timer import after
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import assert_, current_facet, on_stop, ref, stop_actor
from syndicate.index.interest import OBSERVE, Observe
from syndicate.values.pattern import ANY, Capture, Group, Pattern, match
from syndicate.values.text import unparse_form
from syndicate.values.value import Assertion, Frozen, Ref, Value, thaw

NO_CAUSES: Final = (
    "no event came with causes: what was before comes without, and else the server follows nothing (--chronicle), "
    "or the programs do not (syndicate.introspect.written)"
)
"""What is said where one asked why, and no reason came."""


class EventSink(Protocol):
    """Who is notified: a mark, the number of the assertion (none for a message), and the value as text."""

    def tell(self, mark: Mark, key: int | None, value: str, why: Sequence[str] = ()) -> None:
        """Within a turn: an event."""


def _reference(ref: Ref) -> str:
    """References by the number that the other side gave them."""
    return f"#:{ref.entity.oid}" if isinstance(ref.entity, Proxy) else "#:console"


def chosen(patterns: Sequence[Pattern], exclude: Sequence[Pattern]) -> Callable[[Value], bool]:
    """Whether a value matches one of *patterns*, or there are none, and none of *exclude*."""

    def wanted(value: Value) -> bool:
        return (not patterns or any(match(pattern, value) is not None for pattern in patterns)) and not any(
            match(pattern, value) is not None for pattern in exclude
        )

    return wanted


class _Listener(Entity):
    """Observes with one pattern, and shows what no earlier pattern matches, and none that is excluded."""

    raw: ClassVar[bool] = True

    def __init__(
        self,
        tell: Callable[[Mark, int | None, Frozen], None],
        numbers: Iterator[int],
        others: Sequence[Pattern],
        interests: bool,
    ) -> None:
        self._tell = tell
        self._numbers = numbers
        self._others = others
        self._interests = interests
        self._shown: dict[Assertion, tuple[int, Frozen]] = {}

    def _wanted(self, form: Frozen) -> bool:
        if not self._interests and type(form) is tuple and form[0] is OBSERVE and len(form) == 3:
            return False
        if not self._others:
            return True
        value = thaw(form)
        return not any(match(pattern, value) is not None for pattern in self._others)

    def assert_(self, captures: Frozen, handle: Assertion) -> None:
        form = captures[1]
        if self._wanted(form):
            number = next(self._numbers)
            self._shown[handle] = number, form
            self._tell("+", number, form)

    def retract(self, handle: Assertion) -> None:
        shown = self._shown.pop(handle, None)
        if shown is not None:
            self._tell("-", *shown)

    def message(self, captures: Frozen) -> None:
        if self._wanted(captures[1]):
            self._tell("!", None, captures[1])

    def lost(self) -> None:
        """The connection is gone, and with it all that was there; unless it is the console that ends."""
        if not current("lost").actor.root.stopping:
            for handle in list(self._shown):
                self.retract(handle)


def console(
    address: str,
    cap: str | Capability,
    printer: Printer,
    *,
    sinks: Sequence[EventSink] = (),
    patterns: Sequence[Pattern] = (),
    exclude: Sequence[Pattern] = (),
    interests: bool = False,
    seconds: float | None = None,
    **connection: Unpack[ConnectOptions],
) -> None:
    """A boot function: show what matches one of *patterns* (default: everything) and none of *exclude*.

    *sinks* are notified as well, whatever the printer misses.  Ends after *seconds*, if that is given, or when the
    printer is done.  *connection* are options of :func:`~relay.client.connect`.
    """
    wanted = [_without_captures(pattern) for pattern in patterns] or [ANY]
    numbers = itertools.count(1)
    if seconds is not None:
        after(seconds, stop_actor)

    def tell(mark: Mark, key: int | None, form: Frozen) -> None:
        value, why = unparse_form(form, _reference), causes_here()
        for sink in (printer, *sinks):
            sink.tell(mark, key, value, why)
        if printer.done:
            stop_actor()

    def catch_up() -> None:
        printer.catch_up()
        if printer.done:
            stop_actor()

    facet = current_facet()
    printer.outlet.wake = lambda: facet.enter(catch_up)  # from the thread that writes
    if printer.outlet.error is not None:
        catch_up()

    @connect(address, cap, **connection)
    def watch(ds: Ref) -> None:
        for i, pattern in enumerate(wanted):
            asks = isinstance(pattern, Group) and pattern.kind == "rec" and pattern.label == OBSERVE
            listener = _Listener(tell, numbers, (*wanted[:i], *exclude), interests or asks)
            assert_(ds, Observe(Capture(pattern), ref(listener)))
            on_stop(listener.lost)


def causes_here() -> list[str]:
    """What led to the turn that runs, the last cause first, if that is followed: handlers of programs elsewhere."""
    return causes_in(system_of(current("show").actor))


def causes_in(system: System) -> list[str]:
    """The same of the turn that runs in *system*."""
    chronicle = system.chronicle
    if chronicle is None:
        return []
    hops = chronicle.path(chronicle.here())[1:]  # the first is that something is shown
    return list(dict.fromkeys([f"{place} in {actor} of {process}" for process, actor, _, place in hops if place]))


def _without_captures(pattern: Pattern) -> Pattern:
    match pattern:
        case Capture(inner):
            return _without_captures(inner)
        case Group(kind, label, entries):
            return Group(kind, label, tuple([(key, _without_captures(entry)) for key, entry in entries]))
    return pattern
