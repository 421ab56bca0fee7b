"""Quarantine: rows of untrusted peers, sent or asserted, as what can be given to the next tick, and taken back.

A tick that raises with such rows is attempted without them, and then with parts of them
(:mod:`~syndicate.hosting`): the rows that it can do with are there in ticks of their own, in their order, as
if they had been longer on the way.

Only the tick in which a row comes can refuse it.  What one that was taken leads to later, by ``<+`` or when a timer
fires, is the program's own; but rows that replace each other by ``<+-`` do so in ticks of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import frozen

from syndicate.bloom.collection import Collection, notice
from syndicate.bloom.state.state import RowState
from syndicate.bloom.tick.runtime import Runtime
from syndicate.flow.element import Key


class Refusing(Protocol):
    """The port of an assertion."""

    def refused(self, row: Key) -> None:
        """Let a row count for nothing as long as it is asserted."""


@frozen(eq=False)
class UntrustedRow:
    """A row for the next tick, in *pending* of its collection's state: ``inserted``, ``upserted``, ``deleted``, or in
    ``wanted``, which says whether it is *there* from now on; *port* is that of its assertion.
    """

    one: Collection
    state: RowState
    pending: str
    row: Key
    there: bool | None = None
    port: Refusing | None = None

    def _waiting(self) -> dict[Key, bool | None]:
        rows: dict[Key, bool | None] = getattr(self.state, self.pending)
        return rows

    def give(self) -> None:
        """Let it be in the next tick."""
        self._waiting()[self.row] = self.there
        notice(self.one, [self.row])

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
    rows: dict[str, dict[Key, int]] = {}
    for sink, delta in sent.items():
        name, _, operator = sink.partition(" ")
        if operator in ("<+", "<+-"):
            rows.setdefault(name, {}).update({row: 1 for row, weight in delta.items() if weight > 0})
    return rows


def take_back(runtime: Runtime, rows: Sequence[UntrustedRow]) -> None:
    """Let rows not be in the next tick."""
    for one in rows:
        one.drop()
    for collection, state in {one.one: one.state for one in rows}.items():
        runtime.engine.noticed.pop(collection.tabname, None)
        notice(collection, [*state.inserted, *getattr(state, "upserted", ())])
