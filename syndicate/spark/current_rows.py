"""What is asserted: how often each record is there by the rows seen so far, and which records a step brings and takes.

Rows come as a Z-set delta: records with weights.  A record is asserted while the sum of its weights is above zero, so
that duplicates count and a deletion that comes before its insertion does no harm.  With keys, a row of positive
weight takes the place of the row with its key, and a row of negative weight removes that.

Many rows that are only added stay columns: *bulks*, which are in no sum until a step comes that changes something else.
So each row is made into a record at most once, and for tables that only grow never.

Contract: the results of :meth:`CurrentRows.change` are exactly the crossings of zero by the sums of the weights; a step
whose weights cancel out returns nothing.  ``touched`` has every key (without keys: every record) whose entry may have
changed since it was last cleared, so that a journal need write no others; ``fresh`` are the bulks since then, and
``opened`` says that those of before are records now.  ``below`` counts the sums below zero.

Source: PomoFlow, 2.1 (Z-sets); Budiu et al. 2023 (integrate, distinct); ``docs/design/spark.md``, "The path of a
batch".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, evolve, field

from syndicate.errors import SourceError
from syndicate.spark.bulk import ArrowBulk, BulkRows
from syndicate.spark.rows import Step
from syndicate.values.value import Frozen, thaw


@define(eq=False)
class CurrentRows:
    """The sums of the weights, and the record of each key.

    ``keyed`` says that steps have keys, and ``table`` that the rows are those of a table, in which a key is that of
    one row only.

    >>> current = CurrentRows()
    >>> current.change(Step([("a", 1), ("a", 1), ("b", 1), ("b", -1)]))
    (['a'], [])
    >>> current.change(Step([("a", -1), ("c", 1)])), current.change(Step([("a", -1)]))
    ((['c'], []), ([], ['a']))
    >>> keyed = CurrentRows(keyed=True)
    >>> keyed.change(Step([("old", 1)], [1])), keyed.change(Step([("new", 1)], [1]))
    ((['old'], []), (['new'], ['old']))
    """

    weights: dict[Frozen, int] = field(factory=dict)
    of_key: dict[Frozen, Frozen] = field(factory=dict)
    keyed: bool = False
    table: bool = False
    touched: dict[Frozen, None] | None = None
    bulks: list[ArrowBulk] = field(factory=list)
    fresh: list[ArrowBulk] = field(factory=list)
    opened: bool = False
    below: int = 0

    def take(self, step: Step) -> ArrowBulk | None:
        """Add a step whose rows are columns, and let them be columns; None, and no effect, if that cannot be.

        It cannot where a row may stand for another one (with keys that are not new and all different), or meet a sum
        below zero.  What is returned may repeat records that are there: it counts as often as it is there.
        """
        if not isinstance(step.changes, BulkRows):
            return None
        bulk = step.changes.bulk
        if self.keyed:
            if self.weights or self.of_key or self.bulks or not bulk.keys_differ():
                return None
        elif self.below:
            return None
        self.bulks.append(bulk)
        if self.touched is not None:
            self.fresh.append(bulk)
        return bulk

    def open(self) -> None:
        """Let what are columns be records, each with its sum."""
        bulks, self.bulks = self.bulks, []
        if bulks:
            self.opened = True
            self.fresh.clear()
        weights = self.weights
        for bulk in bulks:
            forms = bulk.forms()
            if self.keyed:
                self.of_key.update(zip(bulk.keys(), forms, strict=True))
            if self.touched is not None:
                self.touched.update(dict.fromkeys(self.of_key if self.keyed else forms))
            if not weights:
                weights.update(dict.fromkeys(forms, 1))
                if len(weights) == len(forms):
                    continue
                weights.clear()
            for form in forms:
                weights[form] = weights.get(form, 0) + 1

    def there(self) -> list[Frozen]:
        """The records that are there."""
        self.open()
        return self.records()

    def records(self) -> list[Frozen]:
        """Those that are no columns."""
        return [form for form, weight in self.weights.items() if weight > 0]

    def change(self, step: Step) -> tuple[list[Frozen], list[Frozen]]:
        """Add a step; return the records that are there now and were not, and those that were and are not.

        Raises:
            SourceError: the step has two different records for one key.
        """
        self.open()
        changes = self._replace(step) if self.keyed else step.changes
        net = dict(changes)  # to hash a record is what costs here: once, where no two rows are equal
        if len(net) < len(changes):
            net = {}
            for form, weight in changes:
                net[form] = net.get(form, 0) + weight
        if self.touched is not None and not self.keyed:
            self.touched.update(dict.fromkeys(net))  # from dictionary to dictionary, no record is hashed again
        weights = self.weights
        if not weights and net and min(net.values()) > 0:
            weights.update(net)
            return list(net), []
        adds, removes = [], []
        for form, weight in net.items():
            before = weights.get(form, 0)
            after = before + weight
            if after:
                weights[form] = after
            elif before:
                del weights[form]
            self.below += (after < 0) - (before < 0)
            if before <= 0 < after:
                adds.append(form)
            elif after <= 0 < before:
                removes.append(form)
        return adds, removes

    def _replace(self, step: Step) -> list[tuple[Frozen, int]]:
        """The weights by which a step with keys changes the records."""
        new: dict[Frozen, Frozen] = {}
        gone: dict[Frozen, None] = {}
        for key, (form, weight) in zip(_keys(step), step.changes, strict=True):
            if weight < 0:
                gone[key] = None
            elif weight > 0 and (new.setdefault(key, form) != form or (self.table and weight > 1)):
                remedy = _OF_TABLE if self.table else "name the column that tells which one is later: sequence="
                raise _ambiguous(key, new[key], form, remedy)
        if self.table:
            for key, form in new.items():
                if key in self.of_key and key not in gone:
                    raise _ambiguous(key, self.of_key[key], form, _OF_TABLE)
        if self.touched is not None:
            self.touched.update(gone)
            self.touched.update(dict.fromkeys(new))
        changes = [(self.of_key.pop(key), -1) for key in gone if key not in new and key in self.of_key]
        for key, form in new.items():
            old = self.of_key.get(key)
            if old != form:
                changes.append((form, 1))
                if old is not None:
                    changes.append((old, -1))
                self.of_key[key] = form
        return changes

    def become(self, steps: Iterable[Step]) -> Step:
        """The step that makes of what is asserted the table whose rows these are; nothing changes yet.

        Raises:
            SourceError: two rows of the table have the same key.
        """
        if not (self.weights or self.bulks):
            steps = list(steps)
            if len(steps) == 1:
                return steps[0]
        self.open()
        if self.keyed:
            return self._become_keyed(steps)
        net: dict[Frozen, int] = {}
        for step in steps:
            for form, weight in step.changes:
                net[form] = net.get(form, 0) + weight
        changes = [(form, change) for form, weight in net.items() if (change := weight - self.weights.get(form, 0))]
        changes += [(form, -weight) for form, weight in self.weights.items() if form not in net]
        return Step(changes)

    def news(self, step: Step) -> Step:
        """The rows of a step with keys, all of them added, that do not stand yet."""
        self.open()
        pairs = zip(_keys(step), step.changes, strict=True)
        fresh = [(key, change) for key, change in pairs if self.of_key.get(key) != change[0]]
        return evolve(step, changes=[change for _, change in fresh], keys=[key for key, _ in fresh])

    def _become_keyed(self, steps: Iterable[Step]) -> Step:
        new: dict[Frozen, Frozen] = {}
        for step in steps:
            for key, (form, weight) in zip(_keys(step), step.changes, strict=True):
                if weight <= 0:
                    continue
                if key in new or weight > 1:
                    raise _ambiguous(key, new.get(key, form), form, _OF_TABLE)
                new[key] = form
        gone = [(key, form) for key, form in self.of_key.items() if new.get(key) != form]
        come = [(key, form) for key, form in new.items() if self.of_key.get(key) != form]
        return Step([(form, -1) for _, form in gone] + [(form, 1) for _, form in come], [key for key, _ in gone + come])


def _keys(step: Step) -> Sequence[Frozen]:
    return step.changes.bulk.keys() if isinstance(step.changes, BulkRows) else step.keys or ()


_OF_TABLE = "give key= the columns that tell all rows of the table apart"


def _ambiguous(key: Frozen, one: Frozen, other: Frozen, remedy: str) -> SourceError:
    shown = ", ".join(repr(thaw(part)) for part in key)
    return SourceError(f"two rows have the key {shown}: {thaw(one)!r} and {thaw(other)!r}; {remedy}")
