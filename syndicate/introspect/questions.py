r"""What a running program can be asked about itself: an entity that answers in windows, with data only.

A question is an assertion to the entity that :func:`introspection` makes, and its last field is a reference to who
asks.  It gets ``<page total matched rows>`` as a message at once, and again when a look each second shows something
else, until the question is retracted:

================================= ==================================================================================
``<labels filter from count o>``  ``[label values interests [[field ..] ..]]`` of each label, with the fields of the
                                  record classes of this process; ``""`` stands for what is no record
``<rows label filter from ..>``   ``[text copies [[actor name times] ..] observers]`` of each assertion of a label
``<interests filter from ..>``    ``[pattern observers matches [[actor name] ..] alike example]``: who observes what;
                                  how many values have its label, and, if it matches none, one of them
``<actors filter from count o>``  ``[id name facets handles tasks waiting daemon turns events ms]``; *waiting* are
                                  events; the last three are counted from the first such question on
``<facets id from count o>``      ``[id parent handles tasks blocks bytes [text ..]]`` of an actor's; the parent of the
                                  root is -1, the texts are of its first assertions
``<hosts filter from count o>``   ``[id actor name what [view ..]]``: circuits and programs of rules at work
``<drawing id view from ..>``     ``["box" name title kind inside note order]``, ``["line" tail head kind why]``
``<loads id view from count o>``  ``[name entries last-ms total-ms given]`` of each box; first, under ``""``, of the
                                  whole, whose entries are steps; measured while it is asserted
``<held id view box filter ..>``  ``[name text]`` of each row that a box holds now, with *from* and *count*
``<reason id view box text o>``   as *why*, of such a row, by the rules
``<health o>``                    ``[name number]``
``<spaces filter from count o>``  ``[id name values interests]`` of each dataspace that may be asked about
``<within id <QUESTION .. o>>``   the answers to that question, about another dataspace than the first of these
``<tail filter credit o>``        ``[time mark text]`` of what happens from now on: ``+``, ``-`` or ``!``
``<happened filter credit o>``    ``[number turn time actor kind text place [cause ..] [[verb actor text] ..]]``: steps
                                  of handlers, from now on
``<followed o>``                  ``[name number]``: how much is kept of what happens; it is kept while this is asserted
``<why text o>``                  ``[title because place [premise ..] [condition ..]]``, the first row for what *text*
                                  writes, premises are numbers of rows: by what happened while it was followed,
                                  or else by what it rests on now
``<why-not pattern o>``           the same of why nothing matches
================================= ==================================================================================

and what else its maker has tables of.  A time is in seconds since 1970.  Pages of a tail are events since the last one,
not all again; *total* is how many there were, *matched* how many of them were left out because more than *credit* came
between two pages: there are ten a second at most, and the next only when the last was taken.

*filter* is a part of the text, *from* and *count* are the window: at most 500 rows.  *total* is how many there are,
*matched* how many of them the filter lets through.  After *count* there may be the number of a column, from 1 on, by
which small tables are sorted, negative for the largest first.  At most 20 actors are named, and all are counted.  A
longer text than 4000 characters ends in ``<cut n>``.  What is no question is answered ``<error text>``.

Contract: an answer holds texts and numbers, never a live reference, so that whoever may ask can reach nobody.  Nothing
is counted or followed but while a question is asserted that needs it.  A search looks at 500 values a
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
<page 2 1 [["<Lit \"attic\">" 1 [[0 "boot" 1]] 0]]>

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final

import trio

from syndicate.actors.actor import Actor
from syndicate.actors.chronicle import EventStep
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.meter import Meter
from syndicate.actors.system import System, system_of
from syndicate.actors.turn import Entity, current
from syndicate.actors.verbs import current_facet, on_stop_or_crash, react, send, stop, trio_task
from syndicate.errors import ArgumentError, FactError, PatternError, TextError
from syndicate.hosting import Host
from syndicate.introspect.answer_pages import STRIDE, TEXT, WINDOW, OpenQuestion, Page, Row, Survey, Table, cut
from syndicate.introspect.contents import DataspaceContents, dataspaces
from syndicate.introspect.grounds import grounds
from syndicate.introspect.memory import held
from syndicate.introspect.reasons import row_text, rows_of, why_row, written
from syndicate.introspect.rules_at_work import drawn, hosts, loaded
from syndicate.introspect.story import Story, Writer
from syndicate.introspect.tail import OURS, Followed, Happenings, Tail
from syndicate.introspect.why import Why
from syndicate.introspect.why_not import why_not
from syndicate.values.pattern import Pattern, pattern_of
from syndicate.values.text import parse, parse_pattern, unparse_form
from syndicate.values.value import (
    Assertion,
    Frozen,
    HomeActor,
    HomeFacet,
    Record,
    Ref,
    Symbol,
    Value,
    freeze,
    thaw,
)

SAMPLE: Final = 20
"""Assertions of one facet that are shown."""


class Introspector(Entity):
    """The entity that answers, about *system* and the dataspaces that *spaces* gives; *tables* answer more."""

    raw = True

    def __init__(self, system: System, spaces: Callable[[], Iterable[Ref]], tables: Mapping[str, Table]) -> None:
        self._system = system
        self._spaces = spaces
        self._contents: dict[HomeFacet, DataspaceContents] = {}
        self._tables = tables
        self._facets: dict[Assertion, Facet] = {}
        self._numbers: dict[HomeActor | Host, int] = {}
        self._next = 0
        self._followed = Followed(system)

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Answer a question, for as long as it is asserted."""
        where, asked = (form[1], form[2]) if _is_within(form) else (None, form)
        observer = asked[-1] if type(asked) is tuple and type(asked[0]) is Symbol else None
        if type(observer) is not Ref:
            return  # nobody could be notified
        begin = self._begin(asked[0].name, [thaw(each) for each in asked[1:-1]], observer, where)
        if begin is None:
            send(observer, Record("error", [f"no question: {unparse_form(form)[:TEXT]}"]))
            return
        self._facets[handle] = react(begin)

    def retract(self, handle: Assertion) -> None:
        """Answer it no more."""
        facet = self._facets.pop(handle, None)
        if facet is not None:
            stop(facet)

    def _begin(self, name: str, fields: list[Value], observer: Ref, where: int | None) -> Callable[[], None] | None:
        """What begins to answer a question with these fields, in a facet, about the dataspace *where*; None if there is
        no such question.
        """
        there = self._there(where)
        match name, fields:
            case "tail", [str(part), int(credit)] if credit > 0:
                return None if there is None else partial(_tail, Tail(observer, part, credit), there)
            case "happened", [str(part), int(credit)] if credit > 0:
                return partial(Happenings(observer, part, credit).begin, self._followed)
            case "why", [str(text)]:
                return partial(self._explain, observer, text, where, negative=False)
            case "reason", [int(number), str(view), str(box), str(text)] if (host := self._host(number)) is not None:
                return partial(_reason, observer, host, rows_of(host, view, box), text)
            case "why-not", [str(text)]:
                return partial(self._explain, observer, text, where, negative=True)
        survey = self._survey(name, fields, where)
        if survey is None:
            return None
        question = OpenQuestion(observer, survey)
        match name, fields:
            case "actors", _:
                return partial(_meanwhile, lambda: Meter.begin(self._system), question)
            case "followed", _:
                return partial(_meanwhile, self._followed.begin, question)
            case "loads", [int(number), *_] if (host := self._host(number)) is not None:
                return partial(_meanwhile, host.measure, question)
        return question.begin

    def _survey(self, name: str, values: list[Value], where: int | None) -> Callable[[], Survey] | None:
        """What answers a question with these fields; None if there is no such question."""
        match name, values:
            case "health", []:
                return lambda: Page("", 0, WINDOW).fill(self._health(self._there(where)))
            case "followed", []:
                return lambda: Page("", 0, WINDOW).fill(self._chronicle_counts())
        for whole in (values, [*values, 0]):  # the column to sort by may be left out
            match whole:
                case [*fields, int(start), int(count), int(order)] if start >= 0 and count >= 0:
                    survey = self._windowed(name, fields, start, count, order) or self._inside(
                        name, fields, start, count, order, where
                    )
                    if survey is not None:
                        return survey
        return None

    def _windowed(
        self, name: str, fields: list[Value], start: int, count: int, order: int
    ) -> Callable[[], Survey] | None:
        match name, fields:
            case "facets", [int(number)]:
                return lambda: self._below(number, Page("", start, count))
            case "held", [int(number), str(view), str(box), str(part)]:
                return lambda: Page(part, start, count, order).fill(self._held(number, view, box), text=1)
            case "drawing", [int(number), str(view)]:
                return lambda: Page("", start, count).fill(self._drawing(number, view))
            case "loads", [int(number), str(view)]:
                return lambda: Page("", start, count, order).fill(self._loads(number, view))
            case "actors", [str(part)]:
                return lambda: Page(part, start, count, order).fill(self._actors(), text=1)
            case "hosts", [str(part)]:
                return lambda: Page(part, start, count, order).fill(self._hosts(), text=2)
            case "spaces", [str(part)]:
                return lambda: Page(part, start, count, order).fill(self._listed(), text=1)
            case _, [str(part)] if name in self._tables:
                return lambda: Page(part, start, count, order).fill(self._tables[name]())
        return None

    def _inside(
        self, name: str, fields: list[Value], start: int, count: int, order: int, where: int | None
    ) -> Callable[[], Survey] | None:
        """The same of what is in a dataspace, which may come later."""

        def page() -> Page:
            return Page(part, start, count, order)

        match name, fields:
            case "rows", [str(label), str(part)]:
                return lambda: (
                    page().fill([])
                    if (there := self._there(where)) is None
                    else there.rows(label, Page(part, start, count), self._system.actors)
                )
            case "labels", [str(part)]:
                return lambda: page().fill([] if (there := self._there(where)) is None else there.labels())
            case "interests", [str(part)]:
                return lambda: page().fill([] if (there := self._there(where)) is None else there.interests())
        return None

    # ------------------------------------------------------------------------------------------------ dataspaces

    def _there(self, where: int | None) -> DataspaceContents | None:
        """What is in the dataspace of that number, or in the first; None if there is none."""
        for ds in self._spaces():
            if where is None or self._number(ds.facet.actor) == where:
                there = self._contents.get(ds.facet)
                if there is None:
                    self._contents = {facet: each for facet, each in self._contents.items() if facet.alive}
                    there = self._contents[ds.facet] = DataspaceContents(ds, self._number)
                return there
        return None

    def _listed(self) -> Iterator[Row]:
        for ds in list(self._spaces()):
            there = self._there(self._number(ds.facet.actor))
            if there is not None:
                yield [self._number(ds.facet.actor), ds.facet.actor.name, *[row[1] for row in there.health()]]

    def _health(self, there: DataspaceContents | None) -> list[Row]:
        return [
            *([["values", 0], ["interests", 0]] if there is None else there.health()),
            ["actors", len(self._system.actors)],
            ["events handled", self._system.taken],
            ["turns waiting", len(self._system.queue)],
        ]

    # ------------------------------------------------------------------------------------------------ actors

    def _actors(self) -> list[Row]:
        waiting: Counter[HomeActor] = Counter()
        for actor, events in self._system.queue:
            waiting[actor] += len(events)
        meter = self._system.meter
        if meter is not None:
            meter.keep(self._system.actors)
        rows: list[Row] = []
        for actor in list(self._system.actors):
            facets = actor.root.below()
            handles, tasks = sum(len(each.handles) for each in facets), sum(len(each.tasks) for each in facets)
            count = None if meter is None else meter.counts.get(actor)
            counts: Row = [0, 0, 0.0] if count is None else [count.turns, count.events, 1e3 * count.seconds]
            number = self._number(actor)
            rows.append([number, actor.name, len(facets), handles, tasks, waiting[actor], actor.daemon, *counts])
        return rows

    def _number(self, one: HomeActor | Host) -> int:
        """The number of an actor or a host, which is never given twice."""
        number = self._numbers.get(one)
        if number is None:
            if len(self._numbers) > 1000 + 2 * len(self._system.actors):
                self._numbers = {each: number for each, number in self._numbers.items() if self._exists(each)}
            number = self._numbers[one] = self._next
            self._next += 1
        return number

    def _exists(self, one: HomeActor | Host) -> bool:
        return one.facet.alive if isinstance(one, Host) else one in self._system.actors

    def _below(self, number: int, page: Page) -> Survey:
        actors = [actor for actor in self._system.actors if self._numbers.get(actor) == number]
        facets = [facet for actor in actors for facet in actor.root.below()[::-1]]
        place = {facet: i for i, facet in enumerate(facets)}
        page.total = page.matched = len(facets)
        seen: set[int] = set()
        for each, i in place.items():
            size = yield from held(each, seen)
            if page.start <= i < page.end:
                forms = [handle.form for handle, _ in zip(each.handles, range(SAMPLE), strict=False)]
                parent = place[each.parent] if each.parent else -1
                numbers = [len(each.handles), len(each.tasks), len(each.blocks), size]
                page.rows.append([i, parent, *numbers, [cut(unparse_form(form)) for form in forms]])
        return page

    # ------------------------------------------------------------------------------------------------ rules

    def _hosts(self) -> list[Row]:
        return [
            [self._number(host), self._number(actor), actor.name, host.what, list[Value](host.drawings())]
            for actor, host in hosts(list(self._system.actors))
        ]

    def _host(self, number: int) -> Host | None:
        return next(
            (
                one
                for one, each in self._numbers.items()
                if each == number and isinstance(one, Host) and self._exists(one)
            ),
            None,
        )

    def _drawing(self, number: int, view: str) -> list[Row]:
        host = self._host(number)
        drawing = None if host is None else host.drawings().get(view)
        return [] if drawing is None else drawn(drawing)

    def _loads(self, number: int, view: str) -> list[Row]:
        host = self._host(number)
        return [] if host is None else loaded(host, view)

    def _held(self, number: int, view: str, box: str) -> Iterable[Row]:
        host = self._host(number)
        return [] if host is None else ([name, row_text(name, row)] for name, row in rows_of(host, view, box))

    # ------------------------------------------------------------------------------------------------ what happened

    def _chronicle_counts(self) -> list[Row]:
        chronicle = self._followed.chronicle
        if chronicle is None:
            return []
        return [["turns", chronicle.turns], ["steps kept", len(chronicle.steps())], ["left out", chronicle.left_out]]

    def _explain(self, observer: Ref, text: str, where: int | None, *, negative: bool) -> None:
        """Say why what *text* writes was asserted or sent, by what was followed or else by what it rests on now; or why
        nothing matches it.
        """
        chronicle = self._followed.chronicle
        try:
            pattern = parse_pattern(text) if negative else pattern_of(parse(text))
        except (TextError, PatternError) as error:
            why = f"{error}: live references, and texts that were cut, cannot be looked for"
            send(observer, Record("error", [why]))
            return
        facet = current_facet()
        facet.lasting = True  # until the question is retracted

        def tell(rows: list[Row]) -> None:
            if rows or chronicle is not None or not negative:
                send(observer, Record("page", [len(rows), len(rows), rows[:WINDOW]]))
            else:
                send(observer, Record("error", ["nothing is followed"]))

        def seen() -> None:
            there = self._there(where)
            if there is None:
                tell([])
                return
            look = grounds(freeze(parse(text)), there.ds, there.index, list(self._system.actors))
            facet.enter(lambda: step(look))

        def step(look: Generator[None, None, list[Row]]) -> None:
            try:
                next(look)
            except StopIteration as end:
                tell(end.value)
            else:
                facet.enter(lambda: step(look))

        if chronicle is None:
            seen() if not negative else tell([])
            return
        name, steps = chronicle.name, chronicle.steps()

        async def look() -> None:
            rows = await trio.to_thread.run_sync(_explained, steps, name, pattern, negative)
            facet.enter(lambda: tell(rows) if rows or negative else seen())

        trio_task(look)


def _reason(observer: Ref, host: Host, rows: Iterator[tuple[str, Value]], text: str) -> None:
    """Say why that of *rows* is there that is shown as *text*; looks for it a slice at a time."""
    facet = current_facet()
    facet.lasting = True  # until the question is retracted

    def look() -> None:
        some = list(islice(rows, STRIDE))
        entry = next((each for each in some if row_text(*each) == text), None)
        if entry is None and some:
            facet.enter(look)
            return
        try:
            if entry is None:
                raise FactError(f"{text[:TEXT]} is not there any more")
            said = why_row(host, *entry)
        except Exception as error:  # what functions of the rules raise, too, which are called again
            send(observer, Record("error", [str(error) or type(error).__name__]))
        else:
            send(observer, Record("page", [len(said), len(said), said[:WINDOW]]))

    look()


def _is_within(form: Frozen) -> bool:
    """Whether this is a question about a dataspace that it names."""
    return type(form) is tuple and len(form) == 3 and form[0] is Symbol("within") and type(form[1]) is int


def _tail(tail: Tail, there: DataspaceContents) -> None:
    def end() -> None:
        there.tails -= 1

    there.tails += 1
    on_stop_or_crash(end)
    tail.begin(there.ds)


def _meanwhile(begin: Callable[[], Callable[[], None]], question: OpenQuestion) -> None:
    """Let something go on for as long as a question is asserted: *begin* returns what ends it."""
    on_stop_or_crash(begin())
    question.begin()


def _explained(steps: list[EventStep], process: str, pattern: Pattern, negative: bool) -> list[Row]:
    """The rows of an explanation; in a thread, for it takes some time."""
    writer = Writer(process)
    story = Why(Story([writer.happening(step) for step in steps]))
    cause = why_not(story, pattern) if negative else story.why(pattern)
    if cause is None:
        return []
    return written(cause)


def introspection(
    ds: Ref | None = None,
    tables: Mapping[str, Table] | None = None,
    spaces: Callable[[], Iterable[Ref]] | None = None,
) -> Ref:
    """What answers questions about the dataspace *ds* and its system, in a daemon actor of its own.

    Without *ds* it is those that *spaces* gives at the time of a question, or else all that the system has; the first
    is meant where a question does not say which.
    *tables* answer more: ``<NAME filter from count o>``; the filter looks at the first field of their rows.
    Whatever goes wrong in it ends nothing else.
    It costs nothing while no question is asserted.  Raises :class:`~syndicate.errors.ArgumentError` if *ds* is no
    dataspace of this system.
    """
    turn = current("introspection")
    system = system_of(turn.actor)
    if ds is not None:
        if not isinstance(ds.entity, Dataspace) or ds.entity.turn.system is not system:
            raise ArgumentError(f"introspection() needs a dataspace of this system, and not {ds!r}")
        spaces = partial(tuple, [ds])
    actor = Actor(system, OURS, daemon=True)
    facet = Facet(actor, actor.root)
    facet.preventers = 1
    actor.boot(turn, lambda: None)
    entity = Introspector(system, spaces or (lambda: dataspaces(system.actors)), tables or {})
    return Ref(facet, entity, True)
