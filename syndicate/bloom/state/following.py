"""Following: a scratch whose rows are there for as long as something outside is, such as an assertion.

What is given to a scratch is there for one tick.  What is *held* is there in each tick until it is released, and is
given to the circuit once; *wanted* says what is to change with the next tick.

>>> from syndicate.bloom.state.contents import Contents
>>> state = FollowingState(Contents("s", ("k",), 1)); seen = []
>>> state.wanted = {("a",): True}; state.inserted = {("b",): None}
>>> for _ in range(3):
...     fed = state.prepare(); state.commit(fed, fed, {}); seen.append(sorted(state.contents.rows))
>>> state.wanted = {("a",): False}; fed = state.prepare(); state.commit(fed, fed, {}); seen, sorted(state.contents.rows)
([[('a',), ('b',)], [('a',)], [('a',)]], [])
"""

from __future__ import annotations

from collections.abc import Mapping

from syndicate.bloom.state.contents import Contents
from syndicate.bloom.state.state import Delta, ScratchState
from syndicate.flow.element import Key


class FollowingState(ScratchState):
    """Of an input that follows assertions."""

    def __init__(self, contents: Contents) -> None:
        """Empty."""
        super().__init__(contents)
        self.held: dict[Key, None] = {}
        self.wanted: dict[Key, bool] = {}

    def still(self) -> bool:
        """Whether it has nothing to tell the circuit, and nothing to forget."""
        return not self.wanted and super().still()

    def prepare(self) -> Delta:
        """What to tell the circuit."""
        delta = super().prepare()
        for row in {**self.wanted, **self.given, **self.inserted}:
            before, after = row in self.held, self.wanted.get(row, row in self.held)
            was_given, inserted = row in self.given, row in self.inserted
            # a row that is held and given as well is there once
            more = int(after or inserted) - int(before or was_given) - (int(inserted) - int(was_given))
            if more:
                delta[row] = delta.get(row, 0) + more
        return {row: weight for row, weight in delta.items() if weight}

    def commit(self, fed: Mapping[Key, int], out: Mapping[Key, int], deferred: Mapping[str, Mapping[Key, int]]) -> None:
        """Take in a tick."""
        super().commit(fed, out, deferred)
        for row, wanted in self.wanted.items():
            if wanted:
                self.held[row] = None
            else:
                self.held.pop(row, None)
        self.wanted = {}

    def standing(self) -> Delta:
        """All that the circuit has been given."""
        found = super().standing()
        found.update({row: found.get(row, 0) + 1 for row in self.held if row not in self.given})
        return found

    def present(self) -> list[Key]:
        """The rows that no rule derives, in the tick that begins."""
        held = [row for row in self.held if self.wanted.get(row, True)]
        return [*super().present(), *held, *(row for row, wanted in self.wanted.items() if wanted)]

    def waits(self) -> bool:
        """Whether another tick would give it rows, or take held ones away."""
        return bool(self.wanted) or super().waits()
