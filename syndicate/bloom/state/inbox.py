"""The inbox of a program: rows that have arrived in channels, and no tick has seen yet.

Two rows of one key that arrive together would break it, and who sent them may be untrusted peers to each other.  But a
message may take as long as it likes: the second waits for the tick after.

The *filter* of a program sees what a tick is about to take, collection by collection, and returns what it accepts and
what it postpones; the rest is lost.  It is where a test loses, delays, reorders and batches messages.

>>> from syndicate.bloom.state.contents import Contents
>>> inbox, held = Inbox(), Contents("c", ("k", "v"), 1); inbox.add(held, [("a", 1), ("a", 2), ("b", 1)])
>>> inbox.taken(), inbox.waits()
({'c': {('a', 1): None, ('b', 1): None}}, True)
>>> inbox.taken(), inbox.waits()
({'c': {('a', 2): None}}, False)

Contract: rows of one key keep their order; what a filter postpones is offered again in the next tick, and makes none;
without a filter, a tick costs what it takes, however much waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from syndicate.bloom.row import Row, fitted_all, row_type
from syndicate.bloom.site import raised_at, site_of
from syndicate.bloom.state.contents import Contents
from syndicate.bloom.state.merged import Merged
from syndicate.errors import RuleFailed
from syndicate.flow.element import Key, key_of, natural
from syndicate.values.value import Value

Filter: TypeAlias = "Callable[[str, list[Row]], tuple[Iterable[Sequence[Value]], Iterable[Sequence[Value]]]]"
"""Given a collection's name and its rows, those that are accepted and those that are postponed."""


class Inbox:
    """Rows by collection and by key, in the order in which they came."""

    def __init__(self, choose: Filter | None = None) -> None:
        """Empty; *choose* is the filter."""
        self.choose = choose
        self.rows: dict[str, tuple[Contents, dict[Key, dict[Key, None]]]] = {}
        self.fresh = False

    def add(self, held: Contents, rows: Iterable[Key]) -> None:
        """Let rows wait for the next tick."""
        _, queues = self.rows.get(held.name, (held, {}))
        self.rows[held.name] = (held, queues)  # which may have been found to hold lattice values since
        for row in rows:
            queues.setdefault(_key(held, row), {})[row] = None
        self.fresh = True

    def waits(self) -> bool:
        """Whether another tick would take something in."""
        return self.fresh

    def clear(self) -> None:
        """Forget all."""
        self.rows, self.fresh = {}, False

    def taken(self) -> dict[str, dict[Key, None]]:
        """What the tick that begins sees of each collection; raises :class:`RuleFailed` if the filter does."""
        self.fresh = False
        batches = {}
        for held, queues in list(self.rows.values()):
            batches[held.name] = (
                _firsts(held, queues) if self.choose is None else self._chosen(self.choose, held, queues)
            )
            if not queues:
                del self.rows[held.name]
            elif self.choose is None:
                self.fresh = True
        return batches

    def _chosen(self, choose: Filter, held: Contents, queues: dict[Key, dict[Key, None]]) -> dict[Key, None]:
        kind, where = row_type(held.columns), f"the filter of the channel {held.name}"
        offered = [tuple.__new__(kind, natural(row)) for queue in queues.values() for row in queue]
        try:
            choice = choose(held.name, offered)
            accepted, postponed = ([*map(key_of, fitted_all(rows, held.columns, where))] for rows in choice)
        except Exception as error:
            site = raised_at(error, site_of(choose))
            raise RuleFailed(
                f"{site}: {where} failed: {type(error).__name__}: {error}. It returns two lists of rows, those that "
                "are accepted and those that are postponed",
                sites=[site],
                relations=[held.name],
            ) from error
        fresh = self.fresh
        queues.clear()
        self.add(held, accepted)
        now = _firsts(held, queues)
        self.fresh = fresh or bool(queues)
        for row in postponed:
            if row not in now:
                queues.setdefault(_key(held, row), {})[row] = None
        return now


def _key(held: Contents, row: Key) -> Key:
    return held.key(row) if held.keyed or isinstance(held, Merged) else row


def _firsts(held: Contents, queues: dict[Key, dict[Key, None]]) -> dict[Key, None]:
    """The first row of each key, with all that can be merged with it, which are taken out."""
    firsts: dict[Key, None] = {}
    for key, queue in list(queues.items()):
        row = next(iter(queue))
        ready = held.together(queue) if isinstance(held, Merged) and len(queue) > 1 else [row]
        for one in ready:
            del queue[one]
            firsts[one] = None
        if not queue:
            del queues[key]
    return firsts
