"""What is asserted and observed in one dataspace, as rows of answers; and which dataspaces a system has.

>>> from syndicate import assert_, dataspace, record
>>> from syndicate.testing import settled
>>> @record
... class Lit:
...     room: str
>>> (room,) = dataspaces(settled(lambda: assert_(dataspace("hotel"), Lit("hall"))).actors)
>>> room.facet.actor.name, DataspaceContents(room, lambda actor: 0).labels()
('hotel', [['Lit', 1, 0, [['room']]]])

Owners: who asserts a value, found by a look through the handles of all actors, a slice at a time.  Nobody keeps a table
of it, so that asserting costs nothing more; the look is made for the few values that are shown.

>>> from syndicate import assert_, dataspace, spawn, stop_actor, run
>>> from syndicate.values.value import freeze
>>> from syndicate.actors.turn import current
>>> def boot():
...     ds = dataspace()
...     assert_(ds, ["lit", "hall"])
...     system = current("boot").actor.system
...     try:
...         next(owners([freeze(["lit", "hall"])], ds, system.actors))
...     except StopIteration as end:
...         print([(actor.name, times) for actor, times in end.value[freeze(["lit", "hall"])].items()])
...     stop_actor()
>>> run(boot)
[('boot', 1)]

Source: ``docs/design/introspect.md``, "Questions to a running program".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, TypeAlias

from syndicate.actors.actor import Actor
from syndicate.actors.bulk import BulkHandle
from syndicate.actors.dataspace import Dataspace
from syndicate.index.bag import Bag
from syndicate.index.index import Index
from syndicate.index.interest import INTEREST, OBSERVE
from syndicate.index.skeleton import synthesise
from syndicate.introspect.answer_pages import STRIDE, Page, Row, Survey
from syndicate.introspect.tail import OURS
from syndicate.values.text import unparse_form, unparse_pattern
from syndicate.values.value import Frozen, HomeActor, Ref, Symbol, Tag, record_fields

NAMES: Final = 20
"""Actors of one interest, or of one assertion, that are named; all are counted."""


def dataspaces(actors: Iterable[Actor]) -> Iterator[Ref]:
    """Those that live in these actors: found by a look, for nobody keeps a list of them."""
    for actor in list(actors):
        for facet in list(actor.root.children) if actor.daemon else ():
            for hook, _ in facet.hooks:
                entity = getattr(hook, "__self__", None)
                if isinstance(entity, Dataspace):
                    yield Ref(facet, entity, True)


Owners: TypeAlias = "dict[Frozen, Counter[Actor]]"
"""By value: the actors that assert it, and how often; 0 if it is among the many that one asserted at once."""


def owners(forms: Iterable[Frozen], ds: Ref, actors: Iterable[Actor]) -> Generator[None, None, Owners]:
    """Look for who asserts *forms* in the dataspace *ds*, and return it; yields between slices.

    What came through a capability that rewrites values is not found, for what its holder asserts is another value.
    """
    wanted: Owners = {form: Counter() for form in forms}
    labels = {form[0] if type(form) is tuple else None for form in wanted}
    seen = 0
    if not wanted:
        return wanted
    for actor in list(actors):
        for facet in actor.root.below():
            for handle in list(facet.handles):
                seen += 1
                if seen % STRIDE == 0:
                    yield
                if handle.target.facet is not ds.facet:
                    continue
                if isinstance(handle, BulkHandle):
                    if handle.label in labels:
                        for form, count in wanted.items():
                            if type(form) is tuple and form[0] == handle.label:
                                count.setdefault(actor, 0)
                    continue
                counts = wanted.get(handle.form)
                if counts is not None:
                    counts[actor] += 1
    return wanted


class DataspaceContents:
    """What there is in the dataspace *ds*; *number* gives actors their numbers, and *tails* observe everything."""

    def __init__(self, ds: Ref, number: Callable[[HomeActor], int]) -> None:
        assert isinstance(ds.entity, Dataspace)
        self.ds = ds
        self.index: Index = ds.entity.index
        self.tails = 0
        self._number = number

    def health(self) -> list[Row]:
        """``[name number]``."""
        size = self.index.statistics()
        return [["values", size.values], ["interests", size.handlers - self.tails]]

    def labels(self) -> list[Row]:
        """``[label values interests [[field ..] ..]]``."""
        values: Counter[str] = Counter()
        for head, bag in self.index.bags.items():
            values[_label(head)] += len(bag)
        for head, count in self.index.bulks.waiting().items():
            values[_label(head)] += count
        observed: Counter[str] = Counter()
        everywhere = -self.tails
        for skeleton, _, handler in self.index.interests():
            if skeleton.shape:
                observed[_label(skeleton.shape[0][1])] += handler.audience
            elif skeleton.places or any(kind for _, kind in skeleton.checks):
                observed[""] += handler.audience  # one atom, or a class of them
            else:
                everywhere += handler.audience
        return [
            [name, values[name], observed[name] + everywhere, [list(names) for names in record_fields(Symbol(name))]]
            for name in sorted({*values, *observed})
        ]

    def _entries(self, label: str) -> list[tuple[Frozen, int]]:
        for head in [head for head in self.index.bulks.waiting() if _label(head) == label]:
            self.index.bulks.open(head)
        bags = self.index.bags.items()
        return [entry for head, bag in bags if _label(head) == label for entry in bag.items()]

    def rows(self, label: str, page: Page, actors: Iterable[Actor]) -> Survey:
        """Take the assertions of a label that are in the window; without a filter only their texts are made."""
        entries = self._entries(label)
        page.total = len(entries)
        window = entries[page.start : page.end]
        page.matched = page.total
        if page.part:
            window, page.matched = [], 0
            for at, entry in enumerate(entries, 1):
                if page.part in unparse_form(entry[0]):
                    if page.start <= page.matched < page.end:
                        window.append(entry)
                    page.matched += 1
                if at % STRIDE == 0:
                    yield
        asserters = yield from owners([form for form, _ in window], self.ds, actors)
        for form, copies in window:
            who = [[self._number(actor), actor.name, times] for actor, times in asserters[form].items()]
            page.rows.append([unparse_form(form), copies, who[:NAMES], self.index.audience(form) - self.tails])
        return page

    def interests(self) -> Iterator[Row]:
        """``[pattern observers matches [[actor name] ..] alike example]``."""
        for skeleton, constants, handler in list(self.index.interests()):
            observers = handler.observers
            refs = [observers] if isinstance(observers, Ref) else list(observers or ())
            actors = {ref.facet.actor for ref in refs}
            ours = sum(1 for ref in refs if ref.facet.actor.name == OURS)
            if ours and ours == len(refs):
                continue
            who = [[self._number(actor), actor.name] for actor in sorted(actors, key=lambda one: one.name)[:NAMES]]
            matches, alike, example = len(handler.notices or ()), 0, ""
            if skeleton.shape:
                bag = self.index.bags.get(skeleton.shape[0][1]) or Bag()
                alike = len(bag)
                example = unparse_form(next(iter(bag))) if bag and not matches else ""
            pattern = unparse_pattern(synthesise(skeleton, constants))
            yield [pattern, handler.audience - ours, matches, who, alike, example]


def _label(head: Frozen) -> str:
    """What values of a constructor are listed under."""
    if head is INTEREST:
        return OBSERVE.name
    if head is None or type(head) is Tag:
        return ""
    return head.name if type(head) is Symbol else unparse_form(head)
