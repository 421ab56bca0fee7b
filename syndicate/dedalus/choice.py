"""What ``choose`` leaves: sets of bindings in which each dependency holds, and to which none can be added.

Two values are in conflict if they agree on a choice's key and not on what is chosen for it.  The largest sets without a
conflict are found in each group of values that are connected by conflicts, and combined.

>>> from syndicate.dedalus.ast import Variable
>>> one = Dependencies([Choice((Variable("S"),), (Variable("P"),))])
>>> [sorted(found) for found in one.maximal([("jim", "bell"), ("jim", "ohm"), ("ann", "ohm")])]
[[('ann', 'ohm'), ('jim', 'bell')], [('ann', 'ohm'), ('jim', 'ohm')]]

Source: Greco and Zaniolo 1998; Alvaro et al. 2011b, "Choice".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from syndicate.dedalus.ast import Choice, Row, Variable
from syndicate.graph import reached


class Dependencies:
    """The dependencies of one rule's choices; a value is made of their variables, in order."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        """Of all choices in the body."""
        self.variables: list[Variable] = []
        self.parts: list[tuple[slice, slice]] = []
        for choice in choices:
            start = len(self.variables)
            middle = start + len(choice.key)
            self.variables += [*choice.key, *choice.chosen]
            self.parts.append((slice(start, middle), slice(middle, len(self.variables))))

    def agree(self, one: Row, other: Row) -> bool:
        """Whether two values can both be chosen."""
        return all(one[key] != other[key] or one[chosen] == other[chosen] for key, chosen in self.parts)

    def components(self, values: Iterable[Row]) -> list[list[Row]]:
        """Values in groups, such that no choice has a key in two of them: each group is chosen from by itself."""
        rows = list(values)
        if len(self.parts) == 1:
            groups: dict[Row, list[Row]] = {}
            for value in rows:
                groups.setdefault(value[self.parts[0][0]], []).append(value)
            return list(groups.values())
        keys: dict[tuple[int, Row], int] = {}
        roots = list(range(len(rows)))

        def root(number: int) -> int:
            while roots[number] != number:
                roots[number] = number = roots[roots[number]]
            return number

        for number, value in enumerate(rows):
            for part, (key, _) in enumerate(self.parts):
                roots[root(number)] = root(keys.setdefault((part, value[key]), number))
        members: dict[int, list[Row]] = {}
        for number, value in enumerate(rows):
            members.setdefault(root(number), []).append(value)
        return list(members.values())

    def first(self, values: Iterable[Row]) -> list[Row]:
        """A maximal set: each value that agrees with those taken before it."""
        taken: list[dict[Row, Row]] = [{} for _ in self.parts]
        rows = []
        for value in values:
            pairs = [(value[key], value[chosen]) for key, chosen in self.parts]
            if all(choices.get(key, chosen) == chosen for choices, (key, chosen) in zip(taken, pairs, strict=True)):
                rows.append(value)
                for choices, (key, chosen) in zip(taken, pairs, strict=True):
                    choices[key] = chosen
        return rows

    def maximal(self, values: Iterable[Row]) -> Iterator[frozenset[Row]]:
        """All maximal sets of values, each once, in an order of their own."""
        candidates = sorted(set(values), key=repr)
        against = {value: {other for other in candidates if not self.agree(value, other)} for value in candidates}
        groups = [list(_cliques(group, against)) for group in _connected(candidates, against)]
        for sets in product(*groups):
            yield frozenset().union(*sets)


def _connected(values: Sequence[Row], against: dict[Row, set[Row]]) -> Iterator[list[Row]]:
    seen: set[Row] = set()
    for value in values:
        if value not in seen:
            group = reached([value], against.__getitem__)
            seen.update(group)
            yield [one for one in values if one in group]


def _cliques(group: list[Row], against: dict[Row, set[Row]]) -> Iterator[frozenset[Row]]:
    """The maximal sets of a group without a conflict (Bron and Kerbosch), without recursion."""
    pending: list[tuple[frozenset[Row], list[Row], list[Row]]] = [(frozenset(), group, [])]
    while pending:
        clique, may, done = pending.pop()
        if not may:
            if not done:
                yield clique
            continue
        pivot = min([*may, *done], key=lambda one: len(against[one].intersection(may)))
        later: list[tuple[frozenset[Row], list[Row], list[Row]]] = []
        for value in [one for one in may if one == pivot or one in against[pivot]]:
            left = [one for one in may if one != value and one not in against[value]]
            later.append((clique | {value}, left, [one for one in done if one not in against[value]]))
            may = [one for one in may if one != value]
            done = [*done, value]
        pending += reversed(later)
