"""Lineage: what is true under a set of faults and preferences, and which more of them could change that.

Each atom is decided together with its *support*: a set of such decisions so that, as long as none of them is added, and
those chosen stay, the atom stays as it is.  Supports are small rather than smallest: for a true atom that of one of its
derivations, for a false one that of one failing part in each of them.

>>> from syndicate.dedalus.parse import parse
>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.verify.faults import NumberedFaults
>>> from syndicate.dedalus.verify.ground import ground
>>> rules = core(parse('s("a", "b")@1; s("a", "b")@2; r(Y)@async :- s(X, Y); persist[r, 1];'))
>>> made = ground(rules, NumberedFaults(("a", "b"), 1, 3, 3, 0), [("r", 3)])
>>> lineage, number = Lineage(made, 0), made.numbers["r", ("b",), 3]
>>> lineage.true[number], made.faults.words(lineage.support[number])
(True, ['drop("a","b",1)'])

Contract: under any decisions that contain those chosen and nothing of an atom's support, the atom has the same truth.

Source: Alvaro et al. 2015, with absence explained as well as presence; ``docs/design/dedalus.md``, "Verdicts
(`verify`)".
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from syndicate.dedalus.binding import Sent
from syndicate.dedalus.verify.ground import BindingGroup, Component, Ground, GroundRule


def smallest(support: int) -> tuple[int, int]:
    """A sort key for supports: of two that are alike the same is taken everywhere, so that their union stays small."""
    return support.bit_count(), support


@define(eq=False)
class Lineage:
    """The truth and the support of each atom under *chosen* decisions; *spared* are never added.

    With *blocks*, those of a cone, only their atoms are decided.
    """

    ground: Ground
    chosen: int
    spared: int = 0
    blocks: list[Component] | None = None
    true: list[bool] = field(init=False)
    support: list[int] = field(init=False)
    free: int = field(init=False)
    outcomes: dict[int, tuple[set[Sent], int]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        ground = self.ground
        self.free = ground.faults.free(self.chosen) & ~self.spared
        self.true = [number in ground.certain for number in range(len(ground.facts))]
        self.support = [0] * len(ground.facts)
        for block in ground.blocks if self.blocks is None else self.blocks:
            if block.loop:
                self.loop(block)
            else:
                for atom in block.atoms:
                    self.decide(atom)

    def decide(self, atom: int) -> None:
        """Decide an atom, of which all that it depends on is decided.

        This is what a search spends its time in, and so does not call what follows for each derivation.
        """
        true, support, chosen = self.true, self.support, self.chosen
        instances = self.ground.instances[atom]
        best = -1
        for one in instances:
            if one.lost & chosen or (one.needs and not one.needs & chosen):
                continue
            support_ = one.lost & self.free
            for n in one.true:
                if not true[n]:
                    break
                support_ |= support[n]
            else:
                for n in one.false:
                    if true[n]:
                        break
                    support_ |= support[n]
                else:
                    if one.group is not None:
                        if not self.holds(one):
                            continue
                        support_ = self.holding(one)
                    if best < 0 or smallest(support_) < smallest(best):
                        best = support_
                    if not best:
                        break
        true[atom] = best >= 0
        if best < 0:
            best = 0
            for one in instances:
                if not one.lost & chosen:  # else it stays lost
                    best |= self.failing(one, best)
        support[atom] = best

    def loop(self, block: Component) -> None:
        """Decide atoms that depend on each other: true if that can be derived step by step."""
        ground, open_ = self.ground, set(block.atoms)
        changed = True
        while changed:
            changed = False
            for atom in block.atoms:
                for one in ground.instances[atom]:
                    if self.holds(one):
                        holding = self.holding(one)
                        if atom in open_ or smallest(holding) < smallest(self.support[atom]):
                            open_.discard(atom)
                            self.true[atom], self.support[atom] = True, holding
                            changed = True
        for atom in sorted(open_):
            self.support[atom] = self.unfounded(atom, open_)

    def unfounded(self, atom: int, false: set[int]) -> int:
        """The support of an atom that is false together with others, each of which lacks another or something else."""
        faults, seen, waiting = 0, {atom}, [atom]
        while waiting:
            for one in self.ground.instances[waiting.pop()]:
                inside = [n for n in one.true if n in false]
                outside = list(self.reasons(one, false))
                if seen.isdisjoint(inside) and not any(support & ~faults == 0 for support in outside):
                    if inside:
                        seen.add(inside[0])
                        waiting.append(inside[0])
                    else:
                        faults |= min(outside, key=lambda support: smallest(support | faults))
        return faults

    # ---------------------------------------------------------------------------------------------------- instances

    def holds(self, one: GroundRule) -> bool:
        """Whether a derivation is there."""
        return not (
            one.lost & self.chosen
            or (one.needs and not one.needs & self.chosen)
            or not all(self.true[n] for n in one.true)
            or any(self.true[n] for n in one.false)
            or (one.group is not None and one.group[1] not in self.rows(one.group[0])[0])
        )

    def holding(self, one: GroundRule) -> int:
        """The support of a derivation that is there."""
        breaking = one.lost & self.free
        for n in (*one.true, *one.false):
            breaking |= self.support[n]
        return breaking if one.group is None else breaking | self.deciding(one.group[0])

    def failing(self, one: GroundRule, beside: int) -> int:
        """The support of a derivation's failing, the one that adds least to another; the simple case fast."""
        best, size = -1, 0
        if one.needs or one.lost or one.group is not None:
            return min(self.reasons(one), key=lambda support: smallest(support | beside))
        for atoms, wrong in ((one.true, False), (one.false, True)):
            for n in atoms:
                if self.true[n] is wrong:
                    faults = self.support[n] | beside
                    if faults == beside:
                        return 0
                    count = faults.bit_count()
                    if best < 0 or (count, faults) < (size, best):
                        best, size = faults, count
        return best

    def reasons(self, one: GroundRule, but: Iterable[int] = ()) -> Iterable[int]:
        """The supports of all that fails in a derivation, *but* some atoms."""
        if one.lost & self.chosen:
            yield 0
        if one.needs and not one.needs & self.chosen:
            yield one.needs & self.free
        yield from (self.support[n] for n in one.true if not self.true[n] and n not in but)
        yield from (self.support[n] for n in one.false if self.true[n])
        if one.group is not None and one.group[1] not in self.rows(one.group[0])[0]:
            yield self.deciding(one.group[0])

    def deciding(self, group: BindingGroup) -> int:
        """The support of what a group makes."""
        breaking = self.rows(group)[1] & self.free
        for n in group.members:
            breaking |= self.support[n]
        return breaking

    def rows(self, group: BindingGroup) -> tuple[set[Sent], int]:
        """What the bindings that hold make, and the preferences with which it might be something else."""
        outcome = self.outcomes.get(id(group))
        if outcome is None:
            held = group.held(self.true.__getitem__)
            outcome = self.outcomes[id(group)] = group.outcome(held, self.chosen, self.ground.faults)
        return outcome
