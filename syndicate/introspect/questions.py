r"""What a running program can be asked about itself: an entity that answers in windows, with data only.

A question is an assertion to the entity that :func:`introspection` makes, and its last field is a reference to who
asks.  It gets ``<page total matched rows>`` as a message at once, and again when a look each second shows something
else, until the question is retracted:

================================= ==================================================================================
``<labels filter from count o>``  ``[label values interests]`` of each label; ``""`` stands for what is no record
``<rows label filter from ..>``   ``[text copies]`` of each assertion of a label
``<interests filter from ..>``    ``[pattern observers matches [actor ..]]``: who observes what; at most 20 are named
``<actors filter from count o>``  ``[id name facets handles tasks waiting daemon]``; *waiting* are events
``<facets id from count o>``      ``[id parent handles tasks blocks]`` of an actor's; the parent of the root is -1
``<health o>``                    ``[name number]``
``<tail filter credit o>``        ``[time mark text]`` of what happens from now on: ``+``, ``-`` or ``!``
================================= ==================================================================================

and what else its maker has tables of.  A time is in seconds since 1970.  Pages of a tail are events since the last one,
not all anew; *total* is how many there were, *matched* how many of them were left out because more than *credit* came
between two pages: there are ten a second at most, and the next only when the last was taken.

*filter* is a part of the text, *from* and *count* are the window: at most 500 rows.  *total* is how many there are,
*matched* how many of them the filter lets through.  A
longer text than 4000 characters ends in ``<cut n>``.  What is no question is answered ``<error text>``.

Contract: an answer holds texts and numbers, never a live reference, so that whoever may ask can reach nobody.  Nothing
is counted for it elsewhere: a program that nobody asks anything does not work for it.  A search looks at 500 values a
turn; the next page is sent when the last was taken.

>>> from syndicate import assert_, dataspace, record, ref, run, stop_actor
>>> from syndicate.values.text import unparse
>>> @record("Lit")
... class Lit:
...     room: str
>>> class Asker(Entity):
...     def message(self, value):
...         print(unparse(value))
...         stop_actor()
>>> def boot():
...     ds = dataspace()
...     assert_(ds, Lit("hall"))
...     assert_(ds, Lit("attic"))
...     assert_(introspection(ds), Record("rows", ["Lit", "att", 0, 100, ref(Asker())]))
>>> run(boot)
<page 2 1 [["<Lit \"attic\">" 1]]>

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final, TypeAlias

from syndicate.actors.actor import Actor
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.timer import every
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import current_facet, react, ref, send, stop, sync
from syndicate.errors import ArgumentError
from syndicate.index.analysis import Constants, Skeleton, synthesise
from syndicate.index.interest import INTEREST, OBSERVE, interest
from syndicate.index.skeleton import Index
from syndicate.index.trie import Handler
from syndicate.outside import outside
from syndicate.values.pattern import capture, pattern_of
from syndicate.values.text import unparse_form, unparse_pattern
from syndicate.values.value import Assertion, Frozen, Record, Ref, Symbol, Tag, Value

PERIOD: Final = 1.0
"""Seconds between two looks for a question that stands."""

WINDOW: Final = 500
"""Rows of one answer."""

STRIDE: Final = 500
"""Values that are looked at in one turn."""

TEXT: Final = 4000
"""Characters of a value's text that are shown."""

NAMES: Final = 20
"""Actors of one interest that are named; all are counted."""

PAUSE: Final = 0.1
"""Seconds between two pages of a tail."""

CREDIT: Final = 10_000
"""Events of one page of a tail."""

_OBSERVING: Final = (INTEREST, OBSERVE)
"""What interests begin with: compact, or written out."""

Row: TypeAlias = list[Value]
Table: TypeAlias = Callable[[], Iterable[Row]]
"""What makes the rows of one more question, all at once: small ones."""
Survey: TypeAlias = "Generator[None, None, Page]"
"""A look at what there is, a slice at a time; at its end the answer."""


class Page:
    """The window of what a filter lets through, filled by and by."""

    def __init__(self, part: str, start: int, count: int) -> None:
        self.total = 0
        self.matched = 0
        self._part = part
        self._start = start
        self._end = start + min(count, WINDOW)
        self._rows: list[Row] = []

    def fill(self, rows: Iterable[Row], text: int = 0) -> Survey:
        """Take those of *rows* that are in the window, a slice at a time; the filter looks at the field *text*."""
        for row in rows:
            self.total += 1
            if self._part in str(row[text]):
                if self._start <= self.matched < self._end:
                    self._rows.append(row)
                self.matched += 1
            if self.total % STRIDE == 0:
                yield
        return self

    def choose(self, entries: list[tuple[Frozen, int]]) -> Survey:
        """Take those of assertions, with their copies, that are in the window; without a filter only their texts are
        made.
        """
        if self._part:
            return self.fill([unparse_form(form), copies] for form, copies in entries)
        self.total = self.matched = len(entries)
        return self._only([unparse_form(form), copies] for form, copies in entries[self._start : self._end])

    def _only(self, rows: Iterable[Row]) -> Survey:
        self._rows.extend(rows)
        yield
        return self

    def value(self) -> Record:
        """As it is sent."""
        return Record("page", [self.total, self.matched, [[_cut(item) for item in row] for row in self._rows]])


def _cut(item: Value) -> Value:
    """A text as it is shown: its beginning, and how much more there is."""
    if isinstance(item, str) and len(item) > TEXT:
        return f"{item[:TEXT]}<cut {len(item) - TEXT}>"
    return item


class _Standing:
    """One question that stands, in a facet of its own."""

    def __init__(self, observer: Ref, survey: Callable[[], Survey]) -> None:
        self._observer = observer
        self._survey = survey
        self._busy = False
        self._last: Record | None = None

    def begin(self) -> None:
        """Look now, and each period."""
        self._facet = current_facet()
        every(PERIOD, self._look)
        self._look()

    def _look(self) -> None:
        if not self._busy:
            self._busy = True
            self._step(self._survey())

    def _step(self, survey: Survey) -> None:
        try:
            next(survey)
        except StopIteration as end:
            self._tell(end.value.value())
        else:
            self._facet.enter(lambda: self._step(survey))

    def _tell(self, page: Record) -> None:
        if page == self._last:
            self._busy = False
            return
        self._last = page
        send(self._observer, page)
        sync(self._observer, self._taken, self._taken)

    def _taken(self) -> None:
        self._busy = False


class _Tail(Entity):
    """What happens in a dataspace, as texts in pages: an observer of everything, but of who observes."""

    raw = True

    def __init__(self, observer: Ref, part: str, credit: int) -> None:
        self._observer = observer
        self._part = part
        self._credit = min(credit, CREDIT)
        self._events: list[tuple[float, str, Frozen]] = []
        self._forms: dict[Assertion, Frozen] = {}
        self._total = 0
        self._missed = 0
        self._busy = False

    def begin(self, ds: Ref) -> None:
        """Observe."""
        self._facet = current_facet()
        self._now = self._facet.actor.system.now
        self._begun = outside().wall().timestamp() - self._now()
        me = ref(self)
        current("introspection").assert_form(self._facet, ds, interest(pattern_of(capture()), me))
        every(PAUSE, self._tell)
        sync(ds, self._current)

    def _current(self) -> None:
        """What stood already is no event."""
        self._events.clear()
        self._total = self._missed = 0
        send(self._observer, Record("page", [0, 0, []]))

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Something has come."""
        self._forms[handle] = form
        self._note("+", form)

    def retract(self, handle: Assertion) -> None:
        """Something has gone."""
        self._note("-", self._forms.pop(handle))

    def message(self, form: Frozen) -> None:
        """Something was said."""
        self._note("!", form)

    def _note(self, mark: str, captures: Frozen) -> None:
        assert isinstance(captures, tuple)
        form = captures[-1]
        if type(form) is tuple and form and form[0] in _OBSERVING:
            return
        self._total += 1
        if len(self._events) < self._credit:
            self._events.append((self._begun + self._now(), mark, form))
        else:
            self._missed += 1

    def _tell(self) -> None:
        if self._busy or not self._total:
            return
        self._busy = True
        rows: list[Value] = []
        for seconds, mark, form in self._events:
            text = unparse_form(form)
            if self._part in text:
                rows.append([seconds, mark, _cut(text)])
        send(self._observer, Record("page", [self._total, self._missed, rows]))
        self._events.clear()
        self._total = self._missed = 0
        sync(self._observer, self._taken, self._taken)

    def _taken(self) -> None:
        self._busy = False


class Introspection(Entity):
    """The entity that answers, about *system* and the dataspace *ds*; *tables* answer more."""

    raw = True

    def __init__(self, system: System, ds: Ref, index: Index, tables: Mapping[str, Table]) -> None:
        self._system = system
        self._ds = ds
        self._index = index
        self._tables = tables
        self._facets: dict[Assertion, Facet] = {}
        self._numbers: dict[Actor, int] = {}
        self._next = 0

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Answer a question, for as long as it stands."""
        observer = form[-1] if type(form) is tuple and type(form[0]) is Symbol else None
        if type(observer) is not Ref:
            return  # nobody could be told
        match form[1:-1]:
            case (str(part), int(credit)) if form[0].name == "tail" and credit > 0:
                tail = _Tail(observer, part, credit)
                self._facets[handle] = react(lambda: tail.begin(self._ds))
                return
        survey = self._survey(form[0].name, list(form[1:-1]))
        if survey is None:
            send(observer, Record("error", [f"no question: {unparse_form(form)[:TEXT]}"]))
            return
        self._facets[handle] = react(_Standing(observer, survey).begin)

    def retract(self, handle: Assertion) -> None:
        """Answer it no more."""
        facet = self._facets.pop(handle, None)
        if facet is not None:
            stop(facet)

    def _survey(self, name: str, given: list[Frozen]) -> Callable[[], Survey] | None:
        """What answers a question with these fields; None if there is no such question."""
        match name, given:
            case "health", []:
                return lambda: Page("", 0, WINDOW).fill(self._health())
            case "rows", [str(label), str(part), int(start), int(count)] if start >= 0 and count >= 0:
                return lambda: Page(part, start, count).choose(self._entries(label))
            case "facets", [int(number), int(start), int(count)] if start >= 0 and count >= 0:
                return lambda: Page("", start, count).fill(self._below(number))
            case "labels", [str(part), int(start), int(count)] if start >= 0 and count >= 0:
                return lambda: Page(part, start, count).fill(self._labels())
            case "interests", [str(part), int(start), int(count)] if start >= 0 and count >= 0:
                return lambda: Page(part, start, count).fill(self._interests(list(self._index.interests())))
            case "actors", [str(part), int(start), int(count)] if start >= 0 and count >= 0:
                return lambda: Page(part, start, count).fill(self._actors(), text=1)
            case _, [str(part), int(start), int(count)] if name in self._tables and start >= 0 and count >= 0:
                return lambda: Page(part, start, count).fill(self._tables[name]())
        return None

    def _labels(self) -> list[Row]:
        values: Counter[str] = Counter()
        for head, bag in self._index.bags.items():
            values[_label(head)] += len(bag)
        for head, count in self._index.bulks.waiting().items():
            values[_label(head)] += count
        observed: Counter[str] = Counter()
        everywhere = 0
        for skeleton, _, handler in self._index.interests():
            if skeleton.shape:
                observed[_label(skeleton.shape[0][1])] += handler.audience
            elif skeleton.places or any(kind for _, kind in skeleton.checks):
                observed[""] += handler.audience  # one atom, or a class of them
            else:
                everywhere += handler.audience
        return [[name, values[name], observed[name] + everywhere] for name in sorted({*values, *observed})]

    def _entries(self, label: str) -> list[tuple[Frozen, int]]:
        for head in [head for head in self._index.bulks.waiting() if _label(head) == label]:
            self._index.bulks.open(head)
        bags = self._index.bags.items()
        return [entry for head, bag in bags if _label(head) == label for entry in bag.items()]

    def _interests(self, interests: list[tuple[Skeleton, Constants, Handler]]) -> Iterable[Row]:
        for skeleton, constants, handler in interests:
            observers = handler.observers
            refs = [observers] if isinstance(observers, Ref) else list(observers or ())
            names = sorted({ref.facet.actor.name for ref in refs})[:NAMES]
            pattern = unparse_pattern(synthesise(skeleton, constants))
            yield [pattern, handler.audience, len(handler.notices or ()), list[Value](names)]

    def _actors(self) -> list[Row]:
        waiting: Counter[Actor] = Counter()
        for actor, events in self._system.queue:
            waiting[actor] += len(events)
        rows: list[Row] = []
        for actor, number in self._numbered().items():
            facets = actor.root.below()
            handles, tasks = sum(len(each.handles) for each in facets), sum(len(each.tasks) for each in facets)
            rows.append([number, actor.name, len(facets), handles, tasks, waiting[actor], actor.daemon])
        return rows

    def _numbered(self) -> dict[Actor, int]:
        """The actors that there are, by numbers which are never given twice."""
        actors = self._system.actors
        for actor in actors:
            if actor not in self._numbers:
                self._numbers[actor] = self._next
                self._next += 1
        self._numbers = {actor: number for actor, number in self._numbers.items() if actor in actors}
        return self._numbers

    def _below(self, number: int) -> list[Row]:
        roots = [actor.root for actor, each in self._numbered().items() if each == number]
        facets = [facet for root in roots for facet in root.below()[::-1]]
        place = {facet: i for i, facet in enumerate(facets)}
        return [
            [i, place[each.parent] if each.parent else -1, len(each.handles), len(each.tasks), len(each.blocks)]
            for each, i in place.items()
        ]

    def _health(self) -> list[Row]:
        size = self._index.statistics()
        return [
            ["values", size.values],
            ["interests", size.handlers],
            ["actors", len(self._system.actors)],
            ["events handled", self._system.taken],
            ["turns waiting", len(self._system.queue)],
        ]


def _label(head: Frozen) -> str:
    """What values of a constructor are listed under."""
    if head is INTEREST:
        return OBSERVE.name
    if head is None or type(head) is Tag:
        return ""
    return head.name if type(head) is Symbol else unparse_form(head)


def introspection(ds: Ref, tables: Mapping[str, Table] | None = None) -> Ref:
    """What answers questions about the dataspace *ds* and its system, in a daemon actor of its own.

    *tables* answer more: ``<NAME filter from count o>``; the filter looks at the first field of their rows.
    Whatever goes wrong in it ends nothing else.
    It costs nothing while no question stands.  Raises :class:`~syndicate.errors.ArgumentError` if *ds* is no dataspace
    of this system.
    """
    turn = current("introspection")
    system = turn.actor.system
    entity = ds.entity
    if not isinstance(entity, Dataspace) or entity.turn.system is not system:
        raise ArgumentError(f"introspection() needs a dataspace of this system, and not {ds!r}")
    actor = Actor(system, "introspection", daemon=True)
    facet = Facet(actor, actor.root)
    facet.preventers = 1
    actor.boot(turn, lambda: None)
    return Ref(facet, Introspection(system, ds, entity.index, tables or {}), True)
