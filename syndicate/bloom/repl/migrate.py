"""Carrying: from a program to another with more rules, or fewer, as if it had always been that one.

What a tick begins with goes over: the rows of tables, less those that were to be deleted, and what waits for the next
tick.  What rules derive in a tick is derived anew, by the rules that there are then.  So a table keeps what a rule gave
that is gone.
"""

from __future__ import annotations

from typing import Any

from syndicate.bloom.insight.memory import remember_of
from syndicate.bloom.state.state import CellState, SentState, TableState


def carry(old: Any, new: Any) -> None:
    """Let the new program, which has not ticked, begin where the old one is."""
    for name, to in new._states.items():
        state = old._states.get(name)
        if state is None:
            continue
        to.discard()
        if isinstance(state, CellState) and isinstance(to, CellState):
            to.inserted += [state.value, *state.taken()]
        elif isinstance(state, TableState) and isinstance(to, TableState):
            state.prepare()  # changes nothing: it says what leaves and what arrives
            to.inserted.update({row: None for row in state.contents.rows if row not in state.leaving})
            to.inserted.update(state.arriving)
            to.restored = {}
            to.dropped = {row: None for row in (*state.dropped, *state.leaving) if row not in to.inserted}
        elif not isinstance(state, (CellState, TableState)) and not isinstance(to, (CellState, TableState)):
            to.inserted.update(state.inserted)
            to.inserted.update(state.next.rows)
            if isinstance(state, SentState) and isinstance(to, SentState):
                to.posted.update(state.posted)
    new._inbox.rows, new._inbox.fresh = dict(old._inbox.rows), old._inbox.fresh
    new._done, new._fired, new.halted = old._done, old._fired, old.halted
    new.address, new.sent = old.address, old.sent
    if old.send != old._nowhere:
        new.send = old.send
    remember_of(old, new)
