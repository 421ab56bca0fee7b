"""Memory: since when tables have had their rows.  Only who asks for it pays for it.

>>> from syndicate.bloom import Bloom, table
>>> class Kept(Bloom):
...     t = table(["x"], [])
>>> p = Kept(); remember(p); p.tick(); p.t <= [(1,)]; p.tick(3); since(p, "t", (1,)), since(p, "t", (2,))
(1, None)

Source: ``docs/design/bloom.md``, "Tools" and "Rows and keys".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from attrs import define, field

from syndicate.bloom.declaration import TABLES
from syndicate.flow.element import Key, key_of

if TYPE_CHECKING:
    from syndicate.bloom.insight.introspection import Looking
    from syndicate.bloom.row import Row


@define(eq=False)
class _Since:
    """The ticks in which the rows of a table came; *seen* is when it was looked at last."""

    seen: int
    ticks: dict[Key, int | None] = field(factory=dict)


_MEMORIES: Final[WeakKeyDictionary[Any, dict[str, _Since]]] = WeakKeyDictionary()


def remember(program: Looking) -> None:
    """From now on, know in which tick each row of a table came: for ``why``, at the cost of a look at all rows a tick.

    Rows that are there already came nobody knows when.
    """
    root = program._root
    if root in _MEMORIES:
        return
    memory = _MEMORIES[root] = {}
    for one in root.collections():
        if one._kind in TABLES:
            since_when = memory[one._name] = _Since(root.budtime - 1, dict.fromkeys(map(key_of, map(tuple, one))))
            root.callback(one, partial(_note, root, since_when))


def _note(root: Any, this: _Since, rows: list[Row]) -> None:
    tick = root.budtime - 1
    before = this.ticks if this.seen == tick - 1 else {}  # an empty table calls nobody
    this.ticks = {key: before.get(key, tick) for key in (key_of(tuple(row)) for row in rows)}
    this.seen = tick


def since(program: Looking, name: str, row: Key) -> int | None:
    """The tick in which a row of a table came, None if nobody watched."""
    memory = _MEMORIES.get(program._root, {}).get(name)
    return None if memory is None else memory.ticks.get(row)


def remember_of(old: Looking, new: Looking) -> None:
    """Let a program that takes the place of another remember what that did, if it did."""
    if old._root in _MEMORIES:
        remember(new)
        for name, this in _MEMORIES[new._root].items():
            before = _MEMORIES[old._root].get(name)
            if before is not None:
                this.ticks, this.seen = dict(before.ticks), before.seen
