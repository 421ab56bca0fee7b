"""What a rule with ``choose`` may take at a time, among candidates that faults and other choices may take away.

A choice is a function of its candidates: whenever the same rule chooses at the same time among the same values, it
takes the same.  All such functions are tried, unless a seed says which one; what they are *not* is independent of each
other in the run without faults and in one with faults, as that would call each program broken that chooses at all.

>>> from syndicate.dedalus.ast import Choice, Variable
>>> from syndicate.dedalus.verify.faults import NumberedFaults
>>> faults = NumberedFaults(("a",), 1, 3, 0, 0)
>>> one = Choosing(0, 1, Dependencies([Choice((Variable("S"),), (Variable("P"),))]), [("jim", "ohm"), ("jim", "bell")])
>>> taken, others = one.chosen_rows([("jim", "bell"), ("jim", "ohm")], 0, faults)
>>> taken, one.chosen_rows([("jim", "bell"), ("jim", "ohm")], others, faults)[0]
({('jim', 'ohm')}, {('jim', 'bell')})
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from syndicate.dedalus.ast import Row
from syndicate.dedalus.schedule import Dependencies
from syndicate.dedalus.verify.faults import NumberedFaults


@define(eq=False)
class Choosing:
    """A choice of a rule at a time: *ranked* are all candidates, in the order in which they are taken by default.

    If it is not *open*, a seed has decided.
    """

    rule: int
    time: int
    dependencies: Dependencies
    ranked: Sequence[Row]
    open: bool = True
    rank: dict[Row, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rank = {value: number for number, value in enumerate(self.ranked)}

    def chosen_rows(self, held: Iterable[Row], chosen: int, faults: NumberedFaults) -> tuple[set[Row], int]:
        """What is taken of the candidates that hold, and the preferences with which more than that would be.

        As many preferences as are chosen come first.  Whoever prefers what is taken anyway changes nothing, so that the
        others alone are notified of.
        """
        taken: set[Row] = set()
        others = 0
        for group in self.dependencies.components(sorted(set(held), key=self.rank.__getitem__)):
            values = self.dependencies.first(group)
            if self.open and len(values) < len(group):
                bits = faults.prefer(self.rule, self.time, group, self.dependencies)
                first = [value for value in group if bits[value] & chosen]
                if first:
                    values = self.dependencies.first([*first, *(v for v in group if not bits[v] & chosen)])
                for value in group:
                    others |= bits[value]
                for value in values:
                    others &= ~bits[value]
            taken.update(values)
        return taken, others

    def contested(self, held: Iterable[Row]) -> set[Row]:
        """The candidates of those that hold of which not all can be taken."""
        rows: set[Row] = set()
        for group in self.dependencies.components(list(set(held))):
            if len(self.dependencies.first(group)) < len(group):
                rows.update(group)
        return rows
