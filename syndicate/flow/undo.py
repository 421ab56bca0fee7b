"""Undo: how a step that is ended by whatever, at whatever moment, leaves no trace.

Whoever changes what a circuit keeps first notes in the log **what was there**, never what the change is.  So an entry
may be taken back before its change has begun, midway, or after; once, or again and again, if taking back is ended, too:
the outcome is the same.  The newest entry is taken back first, since a later one may note what an earlier one changed.
A log that is empty says that all that is kept belongs to finished steps.

Contract: no value that is kept in a table is None, which means absence here.

>>> log, table = [], {"a": 1, "b": 2}
>>> olds = note(log, table, ["a", "c"]); table["a"] = 5; table["c"] = 6
>>> take_back(log); take_back(log); table
{'a': 1, 'b': 2}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from syndicate.flow.element import Element, Key

Log: TypeAlias = list[tuple[Callable[[Element], None], Element]]
"""Functions with what they put back."""


def take_back(log: Log, start: int = 0) -> None:
    """Put back all that was noted from *start* on; the entries stay."""
    for put_back, what in reversed(log[start:]):
        put_back(what)


def note(log: Log, table: dict[Key, Element], keys: Collection[Key]) -> list[Element]:
    """Note what a table has of some keys, and answer it; None for what it has not."""
    olds = list(map(table.get, keys))
    log.append((put_back, (table, keys, olds)))
    return olds


def put_back(what: tuple[dict[Key, Element], Iterable[Key], list[Element]]) -> None:
    """Let a table have of some keys what it had; of those behind the last old value nothing was changed."""
    table, keys, olds = what
    for key, old in zip(keys, olds, strict=False):  # those that were noted
        if old is None:
            table.pop(key, None)
        else:
            table[key] = old


def note_whole(log: Log, table: dict[Key, Element]) -> None:
    """Note a table that is about to be emptied, or written again."""
    log.append((_refill, (table, dict(table))))


def _refill(what: tuple[dict[Key, Element], dict[Key, Element]]) -> None:
    table, old = what
    table.clear()
    table.update(old)


def note_attribute(log: Log, owner: object, name: str) -> None:
    """Note what an attribute is, which another object is about to replace."""
    log.append((_set, (owner, name, getattr(owner, name))))


def _set(what: tuple[object, str, Element]) -> None:
    setattr(*what)


def note_groups(log: Log, groups: dict[Key, dict[Key, int]], arrived: dict[Key, dict[Key, int]]) -> None:
    """Note, of the groups of some keys, what they have of the values that arrive."""
    saved = []
    for key, change in arrived.items():
        group = groups.get(key)
        saved.append((key, group, change, None if group is None else list(map(group.get, change))))
    log.append((_regroup, (groups, saved)))


def _regroup(what: tuple[dict[Key, Element], list[tuple[Key, Element, dict[Key, int], Element]]]) -> None:
    groups, saved = what
    for key, group, change, olds in saved:
        if group is None:
            groups.pop(key, None)
        else:
            put_back((group, change, olds))
            groups[key] = group
