"""Strangers: rows that others sent or assert, as what can be given to the next tick, and taken back.

A tick that strangers' rows make raise is attempted without them, and then with parts of them
(:mod:`~syndicate.hosting.refusals`): the rows that it can do with are there in ticks of their own, in their order, as
if they had been longer on the way.

Only the tick in which a row comes can refuse it.  What one that was taken leads to later, by ``<+`` or when a timer
fires, is the program's own; but rows that replace each other by ``<+-`` do so in ticks of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from syndicate.flow.element import Key

if TYPE_CHECKING:
    from syndicate.bloom.agent.ports import RowsAsserted
    from syndicate.bloom.collection import Collection


@frozen(eq=False)
class Stranger:
    """A row for the next tick, in *pending* of its collection's state: ``inserted``, ``upserted``, ``deleted``, or in
    ``wanted``, which says whether it is *there* from now on; *port* is that of its assertion.
    """

    one: Collection
    pending: str
    row: Key
    there: bool | None = None
    port: RowsAsserted | None = None

    def _waiting(self) -> dict[Key, Any]:
        found: dict[Key, Any] = getattr(self.one._program._state_of(self.one), self.pending)
        return found

    def give(self) -> None:
        """Let it be in the next tick."""
        self._waiting()[self.row] = self.there
        self.one._notice([self.row])

    def drop(self) -> None:
        """Let it not be."""
        self._waiting().pop(self.row, None)

    def ends(self) -> bool:
        """Whether it is about a row that goes."""
        return self.pending == "deleted" or self.there is False


def deferred(sent: Mapping[str, Mapping[Key, int]]) -> dict[str, dict[Key, int]]:
    """The new rows of ``<+`` and ``<+-``, by collection.

    >>> deferred({"t <+": {("a",): 1}, "t <+-": {("b",): 1, ("c",): -1}, "t <-": {("d",): 1}})
    {'t': {('a',): 1, ('b',): 1}}
    """
    found: dict[str, dict[Key, int]] = {}
    for sink, delta in sent.items():
        name, _, operator = sink.partition(" ")
        if operator in ("<+", "<+-"):
            found.setdefault(name, {}).update({row: 1 for row, weight in delta.items() if weight > 0})
    return found


def take_back(strangers: Sequence[Stranger]) -> None:
    """Let rows not be in the next tick."""
    for one in strangers:
        one.drop()
    for collection in {one.one: None for one in strangers}:
        state = collection._program._state_of(collection)
        collection._program._root._engine.noticed.pop(collection._name, None)
        collection._notice([*state.inserted, *getattr(state, "upserted", ())])
