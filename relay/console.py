"""The console: what happens in a dataspace, live, one line for each event.

It observes whole values: each pattern ``P`` as ``capture(P)``.  A value that several patterns match is shown for the
first of them only, so that it appears once.  When the connection is lost, all that was there is shown as gone; when it
is back, what is there then as come.

Interests (``Observe`` assertions, the console's own among them) are shown only if asked for: they would be half of all
lines in most dataspaces.

Source: the project's contract (commands); the reference, section 7, opening 7.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, TextIO

from relay.client import connect
from relay.session import Proxy
from relay.sturdy import SturdyRef
from syndicate.pattern import ANY, Capture, Group, Pattern, match
from syndicate.skeleton.interest import OBSERVE, Observe
from syndicate.text import unparse_form
from syndicate.timer import after
from syndicate.turn import Entity, current
from syndicate.values import Frozen, Ref, thaw
from syndicate.verbs import assert_, on_stop, ref, stop_actor

_COLOURS: Final = {"+": "\x1b[32m", "-": "\x1b[31m", "!": "\x1b[33m"}
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


class Printer:
    """Writes events as lines of text, or of JSON: all those of one turn at once.

    ``done`` says that *count* events were shown, or that nobody reads them any more (``broken``).
    """

    def __init__(self, out: TextIO, *, as_json: bool = False, colours: bool = False, count: int | None = None) -> None:
        self.done = False
        self.broken = False
        self._out = out
        self._as_json = as_json
        self._colours = colours
        self._left = count
        self._lines: list[str] = []

    def show(self, mark: str, form: Frozen) -> None:
        """Note an event: its line is written when the running turn commits."""
        if self.done:
            return
        if not self._lines:
            current("show").afterwards.append(self._write)
        self._lines.append(self._line(mark, form))
        if self._left is not None:
            self._left -= 1
            self.done = self._left <= 0

    def _line(self, mark: str, form: Frozen) -> str:
        value, now = unparse_form(form, _reference), datetime.now(UTC)
        if self._as_json:
            return json.dumps(
                {"time": now.isoformat(timespec="milliseconds"), "event": mark, "value": value}, ensure_ascii=False
            )
        time = now.astimezone().strftime("%H:%M:%S.%f")[:-3]
        if self._colours:
            return f"{_DIM}{time}{_PLAIN} {_COLOURS[mark]}{mark} {value}{_PLAIN}"
        return f"{time} {mark} {value}"

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        try:
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()
        except BrokenPipeError:
            self.done = self.broken = True


def _reference(ref: Ref) -> str:
    """References by the number that the other side gave them."""
    return f"#:{ref.entity.oid}" if isinstance(ref.entity, Proxy) else "#:console"


class _Tail(Entity):
    """Observes with one pattern, and shows what no earlier pattern matches, and none that is excluded."""

    raw: ClassVar[bool] = True

    def __init__(
        self, printer: Printer, earlier: Sequence[Pattern], exclude: Sequence[Pattern], interests: bool
    ) -> None:
        self._printer = printer
        self._others = (*earlier, *exclude)
        self._interests = interests
        self._shown: dict[Any, Frozen] = {}

    def _wanted(self, form: Frozen) -> bool:
        if not self._interests and type(form) is tuple and form[0] is OBSERVE and len(form) == 3:
            return False
        if not self._others:
            return True
        value = thaw(form)
        return not any(match(pattern, value) is not None for pattern in self._others)

    def assert_(self, captures: Frozen, handle: Any) -> None:
        form = captures[1]
        if self._wanted(form):
            self._shown[handle] = form
            self._show("+", form)

    def retract(self, handle: Any) -> None:
        form = self._shown.pop(handle, None)
        if form is not None:
            self._show("-", form)

    def message(self, captures: Frozen) -> None:
        if self._wanted(captures[1]):
            self._show("!", captures[1])

    def lost(self) -> None:
        """The connection is gone, and with it all that was there; unless it is the console that ends."""
        if not current("lost").actor.root.stopping:
            for handle in list(self._shown):
                self.retract(handle)

    def _show(self, mark: str, form: Frozen) -> None:
        self._printer.show(mark, form)
        if self._printer.done:
            stop_actor()


def console(
    address: str,
    cap: str | SturdyRef,
    printer: Printer,
    *,
    patterns: Sequence[Pattern] = (),
    exclude: Sequence[Pattern] = (),
    interests: bool = False,
    seconds: float | None = None,
    attempts: int | None = None,
    reconnect: bool = True,
) -> None:
    """A boot function: show what matches one of *patterns* (default: everything) and none of *exclude*.

    Ends after *seconds*, if that is given, or when the printer is done.  *attempts* and *reconnect* are those of
    :func:`~relay.client.connect`.
    """
    wanted = [_without_captures(pattern) for pattern in patterns] or [ANY]
    if seconds is not None:
        after(seconds, stop_actor)

    @connect(address, cap, attempts=attempts, reconnect=reconnect)
    def watch(ds: Ref) -> None:
        for i, pattern in enumerate(wanted):
            asks = isinstance(pattern, Group) and pattern.kind == "rec" and pattern.label == OBSERVE
            tail = _Tail(printer, wanted[:i], exclude, interests or asks)
            assert_(ds, Observe(Capture(pattern), ref(tail)))
            on_stop(tail.lost)


def _without_captures(pattern: Pattern) -> Pattern:
    match pattern:
        case Capture(inner):
            return _without_captures(inner)
        case Group(kind, label, entries):
            return Group(kind, label, tuple([(key, _without_captures(entry)) for key, entry in entries]))
    return pattern
