"""Many values at once: a bulk, which becomes single values where an observer looks, and stays as it is elsewhere.

A table that nobody observes need not become a million values, as many entries of a bag, and as many events.  A bulk is
such a table, of one constructor.  The index keeps it beside the bag of that constructor, and asks it by column: which
of its records could a handler match?  Those are *opened*: they become values, and go the way of all values.  The others
wait, for a later observer perhaps.

Contract: observers see what they would see if each record had come by itself.  So no record that waits is one that a
handler of the index matches.  A bulk may hold a record that is there already, or twice: the copies count.

Source: ``docs/design/skeleton.md``, "Many values at once".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from syndicate.index.skeleton import Constants, Skeleton
from syndicate.index.trie import Node
from syndicate.values.value import Frozen


class Bulk(Protocol):
    """Records of one constructor, in whatever form; it does not change."""

    @property
    def label(self) -> Frozen:
        """The constructor of all of them."""

    def __len__(self) -> int: ...

    def forms(self) -> Sequence[Frozen]:
        """The records as frozen forms, each as often as it is there."""

    def split(self, field: int, constants: Collection[Frozen]) -> tuple[Bulk, Bulk]:
        """Those whose field at this place may be one of *constants*, and those whose field certainly is not."""


Share: TypeAlias = Hashable
"""Whoever asserts a bulk: the index knows by it what it has of that."""


class FormsBulk:
    """A bulk of frozen forms that are there already: at least one.

    >>> bulk = FormsBulk([("size", "a", 1), ("size", "b", 2)])
    >>> [part.forms() for part in bulk.split(1, [2, 3])]
    [[('size', 'b', 2)], [('size', 'a', 1)]]
    """

    __slots__ = ("_forms", "label")

    def __init__(self, forms: Sequence[Frozen], label: Frozen = None) -> None:
        self._forms = forms
        self.label: Frozen = label if label is not None else forms[0][0]

    def __len__(self) -> int:
        return len(self._forms)

    def forms(self) -> Sequence[Frozen]:
        """Them."""
        return self._forms

    def split(self, field: int, constants: Collection[Frozen]) -> tuple[FormsBulk, FormsBulk]:
        """As :meth:`Bulk.split`; a record that is too short has no such field."""
        parts: tuple[list[Frozen], list[Frozen]] = ([], [])
        for form in self._forms:
            parts[not (len(form) > field + 1 and form[field + 1] in constants)].append(form)
        return FormsBulk(parts[0], self.label), FormsBulk(parts[1], self.label)


class Held:
    """What an index has of a bulk: the records that wait, and those that were opened."""

    __slots__ = ("opened", "waiting")

    def __init__(self, waiting: Bulk | None) -> None:
        self.waiting = waiting
        self.opened: list[Frozen] = []


class Bulks:
    """The bulks of one index, whose values come and go by *add* and *remove*.

    ``observers`` counts how often somebody has begun to observe: while it stays the same, so does what a bulk is
    divided into.
    """

    def __init__(
        self,
        root: Node,
        classes: dict[Frozen, Node],
        add: Callable[[Frozen], object],
        remove: Callable[[Frozen], object],
    ) -> None:
        self.observers = 0
        self._root = root
        self._classes = classes
        self._add = add
        self._remove = remove
        self._held: dict[Frozen, dict[Share, Held]] = {}

    def divide(self, bulk: Bulk) -> tuple[Sequence[Frozen], Bulk | None]:
        """The records that a handler could match, as values, and the others.

        Costs a look at a column for each skeleton.  Every thread may ask, since ``observers`` tells whether the answer
        still counts.
        """
        node = self._classes.get(bulk.label)
        if self._root.tables or (node is not None and node.moves):
            return bulk.forms(), None
        forms: list[Frozen] = []
        for table in node.tables if node is not None else ():
            number, place = _field(table.skeleton)
            if number < 0:
                return bulk.forms(), None
            keys = list(table.handlers)
            looked, bulk = bulk.split(number, {key[place] for key in keys} if len(table.skeleton.places) > 1 else keys)
            forms += looked.forms()
        return forms, bulk if len(bulk) else None

    def hold(self, share: Share, label: Frozen, waiting: Bulk | None, observers: int) -> None:
        """Take what was left of a bulk when it was divided, and ``observers`` were so many."""
        held = self._held.setdefault(label, {})[share] = Held(waiting)
        if waiting is not None and observers != self.observers:
            forms, held.waiting = self.divide(waiting)
            self._open(held, forms)

    def let_go(self, share: Share, label: Frozen, gone: int) -> None:
        """Give up the bulk of *share*; of what was opened, the first *gone* have been removed singly."""
        shares = self._held[label]
        opened = shares.pop(share).opened[gone:]
        if not shares:
            del self._held[label]
        for form in opened:
            self._remove(form)

    def opened(self, share: Share, label: Frozen) -> list[Frozen]:
        """What was opened of the bulk of *share*."""
        held = self._held.get(label, {}).get(share)
        return [] if held is None else held.opened[:]

    def observed(self, skeleton: Skeleton, constants: Constants) -> None:
        """Open, before an observer of this pattern comes, all that it could match."""
        self.observers += 1
        if not self._held:
            return
        number, place = _field(skeleton)
        for held in self._all(skeleton.shape[0][1]) if skeleton.shape else self._all():
            if held.waiting is None:
                continue
            looked: Bulk | None = held.waiting
            if number < 0:
                held.waiting = None
            else:
                constant = constants[place] if len(skeleton.places) > 1 else constants
                looked, held.waiting = held.waiting.split(number, [constant])
            self._open(held, looked.forms() if looked is not None else ())

    def open(self, label: Frozen | None = None) -> None:
        """Open all, or all with this label, for somebody who looks at each value."""
        for held in self._all() if label is None else self._all(label):
            if held.waiting is not None:
                forms, held.waiting = held.waiting.forms(), None
                self._open(held, forms)

    def waiting(self) -> dict[Frozen, int]:
        """How many records wait, by constructor; equal ones count each."""
        return {
            head: sum([len(held.waiting) for held in shares.values() if held.waiting is not None])
            for head, shares in self._held.items()
        }

    def _open(self, held: Held, forms: Iterable[Frozen]) -> None:
        for form in forms:
            self._add(form)
            held.opened.append(form)

    def _all(self, *labels: Frozen) -> Iterator[Held]:
        for label in labels or list(self._held):
            yield from list(self._held.get(label, {}).values())


def _field(skeleton: Skeleton) -> tuple[int, int]:
    """A field of the outermost record that must hold a constant, and which of the constants; -1 if there is none."""
    for place, path in enumerate(skeleton.places):
        if len(path) == 1 and type(path[0]) is int:
            return path[0], place
    return -1, 0
