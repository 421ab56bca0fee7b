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
from typing import Final
from weakref import WeakKeyDictionary

from attrs import define, field

from syndicate.bloom.declaration import TABLES, Row
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.tick.runtime import Instantiated, Runtime, runtime_of
from syndicate.flow.element import Key, key_of


@define(eq=False)
class _Since:
    """The ticks in which the rows of a table came; *seen* is when it was looked at last."""

    seen: int
    ticks: dict[Key, int | None] = field(factory=dict)


_MEMORIES: Final[WeakKeyDictionary[Runtime, dict[str, _Since]]] = WeakKeyDictionary()


def remember(program: Instantiated) -> None:
    """From now on, know in which tick each row of a table came: for ``why``, at the cost of a look at all rows a tick.

    Rows that are there already came nobody knows when.
    """
    runtime = runtime_of(program)
    if runtime in _MEMORIES:
        return
    memory = _MEMORIES[runtime] = {}
    for name, one in runtime.collections.items():
        if kind_of(one) in TABLES:
            since_when = memory[name] = _Since(runtime.done - 1, dict.fromkeys(map(key_of, map(tuple, one))))
            runtime.callbacks.append((name, partial(_note, runtime, since_when)))


def _note(runtime: Runtime, this: _Since, rows: list[Row]) -> None:
    tick = runtime.done - 1
    before = this.ticks if this.seen == tick - 1 else {}  # an empty table calls nobody
    this.ticks = {key: before.get(key, tick) for key in (key_of(tuple(row)) for row in rows)}
    this.seen = tick


def since(program: Instantiated, name: str, row: Key) -> int | None:
    """The tick in which a row of a table came, None if nobody watched."""
    return since_in(runtime_of(program), name, row)


def since_in(runtime: Runtime, name: str, row: Key) -> int | None:
    """The same of what ticks."""
    memory = _MEMORIES.get(runtime, {}).get(name)
    return None if memory is None else memory.ticks.get(row)


def remember_of(old: Instantiated, new: Instantiated) -> None:
    """Let a program that takes the place of another remember what that did, if it did."""
    memories = _MEMORIES.get(runtime_of(old))
    if memories is not None:
        remember(new)
        for name, this in _MEMORIES[runtime_of(new)].items():
            before = memories.get(name)
            if before is not None:
                this.ticks, this.seen = dict(before.ticks), before.seen
