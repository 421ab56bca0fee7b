"""What happens from now on, in pages, as fast as the asker takes them; what is beyond its credit is counted.

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from syndicate.actors.chronicle import Chronicle, EventStep
from syndicate.actors.system import System
from syndicate.actors.timer import every
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import current_facet, on_stop_or_crash, ref, send, sync
from syndicate.index.interest import INTEREST, OBSERVE, interest
from syndicate.introspect.answer_pages import Row, cut
from syndicate.introspect.story import Writer, text
from syndicate.outside import outside
from syndicate.values.pattern import capture, pattern_of
from syndicate.values.text import unparse_form
from syndicate.values.value import Assertion, Frozen, Record, Ref, Value

PAUSE: Final = 0.1
"""Seconds between two pages."""

CREDIT: Final = 10_000
"""Events of one page."""

STEPS: Final = 5_000
"""Steps that are kept of a program that was not followed before somebody asked."""

_OBSERVING: Final = (INTEREST, OBSERVE)
"""What interests begin with: compact, or written out."""

OURS: Final = "introspection"
"""The name of the actor that answers."""

T = TypeVar("T")


class EventPages(Generic[T]):
    """Events as they happen, sent in pages of at most *credit* of them."""

    def __init__(self, observer: Ref, part: str, credit: int) -> None:
        self._observer = observer
        self._part = part
        self._credit = min(credit, CREDIT)
        self._events: list[T] = []
        self._total = 0
        self._missed = 0
        self._busy = False

    def start(self) -> None:
        """Tell what comes, in the current facet; the first page, which is empty, says that it has begun."""
        self._events.clear()
        self._total = self._missed = 0
        send(self._observer, Record("page", [0, 0, []]))
        every(PAUSE, self._tell)

    def note(self, event: T) -> None:
        """One more."""
        self._total += 1
        if len(self._events) < self._credit:
            self._events.append(event)
        else:
            self._missed += 1

    @abstractmethod
    def row(self, event: T) -> Row:
        """An event as texts and numbers; the filter looks at the last but one text, *text_at*."""

    text_at = 2

    def _tell(self) -> None:
        if self._busy or not self._total:
            return
        self._busy = True
        rows: list[Value] = []
        for event in self._events:
            row = self.row(event)
            if self._part in str(row[self.text_at]):
                rows.append([cut(item) for item in row])
        send(self._observer, Record("page", [self._total, self._missed, rows]))
        self._events.clear()
        self._total = self._missed = 0
        sync(self._observer, self._taken, self._taken)

    def _taken(self) -> None:
        self._busy = False


class Tail(EventPages[tuple[float, str, Frozen]], Entity):
    """What happens in a dataspace, as texts: an observer of everything, but of who observes."""

    raw = True

    def begin(self, ds: Ref) -> None:
        """Observe."""
        self._forms: dict[Assertion, Frozen] = {}
        facet = current_facet()
        self._now = facet.actor.system.now
        self._begun = outside().wall().timestamp() - self._now()
        current("introspection").assert_form(facet, ds, interest(pattern_of(capture()), ref(self)))
        sync(ds, self.start)  # what was there already is no event

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Something has come."""
        self._forms[handle] = form
        self._happened("+", form)

    def retract(self, handle: Assertion) -> None:
        """Something has gone."""
        self._happened("-", self._forms.pop(handle))

    def message(self, form: Frozen) -> None:
        """Something was said."""
        self._happened("!", form)

    def _happened(self, mark: str, captures: Frozen) -> None:
        form = captures[-1]
        if not (type(form) is tuple and form and form[0] in _OBSERVING):
            self.note((self._begun + self._now(), mark, form))

    def row(self, event: tuple[float, str, Frozen]) -> Row:
        """``[time mark text]``."""
        seconds, mark, form = event
        return [seconds, mark, unparse_form(form)]


class Followed:
    """The chronicle of a system while somebody wants one: its own, if the program has one, or else one for us."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._own: Chronicle | None = None
        self._users = 0

    @property
    def chronicle(self) -> Chronicle | None:
        """The one there is."""
        there = self._system.chronicle
        return there if isinstance(there, Chronicle) else None

    def begin(self) -> Callable[[], None]:
        """Follow from now on; call the result, once, to end that, unless others still look."""
        if self.chronicle is None:
            self._own = Chronicle(self._system, most=STEPS)
        self._users += 1
        return self._end

    def _end(self) -> None:
        self._users -= 1
        if not self._users and self._own is not None:
            self._own.end()
            self._own = None


class Happenings(EventPages[EventStep]):
    """Steps of handlers as they happen: ``[number turn time actor kind text place [cause ..] [[verb actor text] ..]]``.

    Those of who asks are left out, and ours.
    """

    text_at = 5

    def begin(self, followed: Followed) -> None:
        """Listen, in the current facet."""
        on_stop_or_crash(followed.begin())
        chronicle = followed.chronicle
        assert chronicle is not None
        self._begun = outside().wall().timestamp() - current_facet().actor.system.now()
        self._left_out = {OURS, self._observer.facet.actor.name}
        self._name = chronicle.name
        listeners = chronicle.listeners
        listeners.append(self._listen)
        on_stop_or_crash(lambda: listeners.remove(self._listen))
        self.start()

    def _listen(self, steps: Sequence[EventStep]) -> None:
        for step in steps:
            if step.actor not in self._left_out:
                self.note(step)

    def row(self, event: EventStep) -> Row:
        """As a row."""
        one = Writer(self._name).happening(event)
        acts: list[Value] = [
            [act.kind, act.actor, cut(text(act.value))] for act in one.acts if act.actor not in self._left_out
        ]
        causes = list(dict.fromkeys((*one.causes, *one.rests)))
        return [
            one.number, one.turn, self._begun + one.at, one.actor, one.kind, text(one.value), one.place,
            list[Value](causes), acts[:100],
        ]  # fmt: skip
