"""Merging, told: of which rows with lattice values a row is made.

>>> from syndicate.lattice import Set
>>> votes = Merging(("round", "who"), 1, {"who": Set})
>>> votes.bound((1, Set(["ann", "bob"])), ("round", "who")), votes.made((1, "ann"))
({'round': 1}, (1, Set(['ann'])))
>>> votes.cover((1, Set(["ann", "bob"])), [(1, Set(["ann"])), (1, Set()), (1, Set(["ann", "bob"]))])
([(1, Set(['ann', 'bob']))], True)

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/lattice.md``, "Lattices and rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from attrs import frozen

from syndicate.bloom.declaration import Names
from syndicate.bloom.rules.function import made_lattices
from syndicate.bloom.state.state import CellState, Merged, State
from syndicate.explain.derivation import Row
from syndicate.flow.element import key_of
from syndicate.lattice.lattice import Lattice, join
from syndicate.values.value import Value


@frozen(eq=False)
class Merging:
    """How rows of a collection are merged: by the first *keys* columns; *lattices* are those that are known."""

    columns: Names
    keys: int
    lattices: Mapping[str, type[Lattice]]

    def bound(self, row: Row, heading: Sequence[str]) -> dict[str, Value]:
        """What a row has in common with those that it is made of."""
        known = dict(zip(self.columns, row, strict=True))
        return {name: known[name] for name in heading if not isinstance(known[name], Lattice)}

    def made(self, row: Row) -> Row:
        """A row as it is merged."""
        return made_lattices(row, self.columns, self.lattices, "")

    def cover(self, row: Row, parts: Iterable[Row]) -> tuple[list[Row], bool]:
        """Enough of *parts*, and whether they make all of the row."""
        some = list(parts)
        whole = next((part for part in some if key_of(part) == key_of(row)), None)
        if whole is not None:
            return [whole], True
        used: list[Row] = []
        held: Row | None = None
        for part in some:
            more = part if held is None else self._joined(held, part)
            if held is None or key_of(more) != key_of(held):
                used.append(part)
                held = more
            if key_of(held) == key_of(row):
                return used, True
        return used, False

    def _joined(self, one: Row, other: Row) -> Row:
        pairs = zip(one, other, strict=True)
        return tuple([reduce(join, pair) if isinstance(pair[0], Lattice) else pair[0] for pair in pairs])


def merging_of(state: State | None) -> Merging | None:
    """How the rows that a state holds are merged; None if they are not."""
    if isinstance(state, CellState):
        return Merging(("value",), 0, {"value": state.lattice})
    contents = None if state is None else state.contents
    if isinstance(contents, Merged):
        return Merging(contents.columns, contents.keys, contents.lattices)
    return None
