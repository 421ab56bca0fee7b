"""States: what a collection is between two ticks, and what of it the circuit has not been given yet.

The circuit is fed with changes of *given* rows; what rules derive from them it keeps by itself.  A table keeps its
rows, also when their premise is gone: such rows must be given before that.  There are two methods:

* **eager**: rows derived in one tick are given in the next.  Right for tables that are fed by what lasts one tick.
* **lazy**: rows are given only when the circuit reports them lost, and the tick goes on with a second step.  Right for
  tables whose premises stay, such as a transitive closure: its rows would be given twice otherwise.

Both give the same rows: the least fixed point does not change if rows that it has are given as well.

Deferred rules (``<+ <- <+-``) are relations of the circuit too, of what holds for the next tick.  Of those, only what
changed is looked at: what was inserted once is there, and a deletion matters only for rows that are (*doomed*).

Contract: :meth:`prepare` changes nothing, so that a tick that fails did not happen; :meth:`commit` takes it in.

Contents: the rows of a collection after a tick, found by their key.

>>> held = KeyedContents("t", ("k", "v"), 1); held.commit(held.checked({("a", 1): 1}))
>>> list(held.rows), held.by_key(("a",))
([('a', 1)], ('a', 1))
>>> held.checked({("a", 2): 1})  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.KeyConflict: t: two rows have the key k = 'a': ('a', 1) and ('a', 2). A key has one row: ...

Merged contents: the rows of a collection with lattice values, where rows of one key are one row.

Rows that agree in the key, and in all columns that are no lattice values, are merged column by column.  A difference
in another column is a key conflict, as ever; a lattice value in a key column is refused.

>>> from syndicate.lattice import Min
>>> best = Merged("best", ("a", "b", "cost"), 2, {"cost": Min})
>>> best.absorb([("x", "y", 7), ("x", "y", Min(5))], "rules.py:3"); best.held.rows
{('x', 'y'): ('x', 'y', Min(5))}
>>> best.absorb([("x", "y", "far")], "rules.py:3")  # doctest: +ELLIPSIS
Traceback (most recent call last):
syndicate.errors.LatticeMismatch: rules.py:3: best: ...

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/lattice.md``, "Lattices and rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar, TypeAlias, cast

from attrs import define, field

from syndicate.bloom.declaration import Names, placed
from syndicate.bloom.rules.function import coerced_row, lattice_columns
from syndicate.bloom.state.keyed_rows import KeyedRows, Row, Rows
from syndicate.errors import KeyConflict, SyndicateError
from syndicate.flow.element import ATOMS, Key, in_order, key_of, keys_of, natural
from syndicate.lattice.fold import merge_row
from syndicate.lattice.lattice import Lattice, grew, holds_lattice, join
from syndicate.values.value import Value

# ------------------------------------------------------------------------------------------------------------- contents


@define(eq=False)
class Contents:
    """Rows, by value identity; the first *keys* of their columns are the key: here, all."""

    name: str
    columns: Names
    keys: int
    rows: dict[Key, None] = field(factory=dict, init=False)
    index: dict[Key, Key] = field(factory=dict, init=False)
    """The rows by their key, where that is a part of them."""

    def key(self, row: Key) -> Key:
        """The key of a row."""
        return row

    def by_key(self, key: tuple[Value, ...]) -> Key | None:
        """The row that has a key."""
        row = key_of(key)
        return row if row in self.rows else None

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*, if it leaves each key with one row; raises :class:`KeyConflict`."""
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Take in a change."""
        rows = self.rows
        if not rows and delta and min(delta.values()) > 0:  # as in the first tick of a large program
            rows.update(cast("dict[Key, None]", delta))  # keys alone count, and a copy looks none of them up
            return
        for row, weight in delta.items():
            if weight > 0:
                rows[row] = None
            else:
                rows.pop(row, None)


@define(eq=False)
class KeyedContents(Contents):
    """The same, where other columns follow those of the key: no two rows have the same key."""

    def key(self, row: Key) -> Key:
        """The key of a row."""
        return key_of(natural(row)[: self.keys])

    def by_key(self, key: tuple[Value, ...]) -> Key | None:
        """The row that has a key."""
        return self.index.get(key_of(key))

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*, if it leaves each key with one row; raises :class:`KeyConflict`."""
        fresh: dict[Key, Key] = {}
        for row, weight in delta.items():
            if weight > 0:
                key = self.key(row)
                old = self.index.get(key)
                if old is not None and delta.get(old, 0) >= 0 and old != row:
                    raise self._conflict(old, row)
                other = fresh.setdefault(key, row)
                if other != row:
                    raise self._conflict(other, row)
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Take in a change."""
        rows = self.rows
        for row, weight in delta.items():
            if weight < 0:
                rows.pop(row, None)
                self.index.pop(self.key(row), None)
        for row, weight in delta.items():
            if weight > 0:
                rows[row] = None
                self.index[self.key(row)] = row

    def _conflict(self, old: Key, new: Key) -> KeyConflict:
        key = natural(old)[: self.keys]
        said = ", ".join(f"{name} = {value!r}" for name, value in zip(self.columns, key, strict=False)) or "()"
        return KeyConflict(
            f"{self.name}: two rows have the key {said}: {natural(old)!r} and {natural(new)!r}. A key has one row: "
            "replace it with <+-, or make the column part of the key. The tick did not happen"
        )


# ------------------------------------------------------------------------------------------------------ merged contents


class ShownContents(Mapping[Key, None]):
    """The rows, as other contents show theirs."""

    def __init__(self, merged: Merged) -> None:
        self._merged = merged

    def __len__(self) -> int:
        return len(self._merged.held.rows)

    def __iter__(self) -> Iterator[Key]:
        return iter([key_of(row) for row in self._merged.held.rows.values()])

    def __getitem__(self, row: Key) -> None:
        if row not in self:
            raise KeyError(row)

    def __contains__(self, row: object) -> bool:
        values = natural(row)
        present = self._merged.held.rows.get(self._merged.key(values))
        return present is not None and bool(key_of(present) == key_of(values))


class Merged(Contents):
    """Rows by key, with lattice values that grow."""

    def __init__(self, name: str, columns: Names, keys: int, lattices: Mapping[str, type[Lattice]]) -> None:
        """Empty; *lattices* are those that the declaration names."""
        self.held = KeyedRows()
        super().__init__(name, columns, keys)
        self.index = self.held.rows
        self.rows = ShownContents(self)  # type: ignore[assignment]  # made of what is held, when asked
        self.lattices = dict(lattices)
        self._values = range(keys, len(columns))
        self._classes = [(self.columns.index(column), cls) for column, cls in self.lattices.items()]

    def key(self, row: Key) -> Key:
        """The key of a row."""
        return key_of(natural(row)[: self.keys])

    def by_key(self, key: tuple[Value, ...]) -> Key | None:
        """The row that has a key."""
        return self.held.rows.get(key_of(key))

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*: conflicts were found when rows were merged."""
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Nothing: rows are taken in as they come."""

    def covers(self, row: Key) -> bool:
        """Whether merging a row would change nothing."""
        values = natural(row)
        old = self.held.rows.get(self.key(values))
        if old is None:
            return False
        if self.lattices:
            values = coerced_row(values, self.columns, self.lattices, self.name)
        return self._merge(old, values, "") is old

    def together(self, rows: Iterable[Key]) -> list[Key]:
        """Of rows of one key, the first and those that can be merged with it."""
        rows_together: list[Key] = []
        so_far: Row | None = None
        for one in rows:
            row = natural(one)
            try:
                if self.lattices:
                    row = coerced_row(row, self.columns, self.lattices, self.name)
                so_far = row if so_far is None else self._merge(so_far, row, "")
            except Exception:  # whatever an untrusted peer's value makes a lattice raise: it comes alone, later
                if not rows_together:
                    return [one]
                continue
            rows_together.append(one)
        return rows_together

    def absorb(self, rows: Sequence[Row], where: str) -> None:
        """Merge rows; raises :class:`LatticeAsKey`, :class:`KeyConflict`, :class:`LatticeMismatch` with the place."""
        for at, cls in self._classes:
            if any(type(row[at]) is not cls for row in rows):
                rows = [coerced_row(row, self.columns, self.lattices, f"{where}: {self.name}") for row in rows]
                break
        if len(rows) == 1 and ATOMS.issuperset(map(type, key := rows[0][: self.keys])):
            row, old = rows[0], self.held.rows.get(key)
            merged = row if old is None else self._merge(old, row, where)
            if merged is not old:
                self.held.put_one(key, merged)
            return
        keys: list[Key] = [row[: self.keys] for row in rows]
        if not ATOMS.issuperset(map(type, chain.from_iterable(keys))):
            keys, _ = keys_of(keys)
            self._check_keys(keys, rows, where)
        present, fresh = self.held.rows, Rows()
        for key, row in zip(keys, rows, strict=True):
            old = fresh.get(key) or present.get(key)
            if old is None:
                fresh[key] = row
                continue
            merged = self._merge(old, row, where)
            if merged is not old:
                fresh[key] = merged
        if fresh:
            self.held.put(fresh)

    def _check_keys(self, keys: Sequence[Key], rows: Sequence[Row], where: str) -> None:
        for key, row in zip(keys, rows, strict=True):
            if holds_lattice(key):
                lattice_columns(row, self.columns, self.keys, f"{where}: {self.name}")

    def _merge(self, old: Row, row: Row, where: str) -> Row:
        merged: list[Value] | None = None
        try:
            for at in self._values:
                mine, other = old[at], row[at]
                if mine is other:
                    continue
                if not isinstance(mine, Lattice) or type(mine) is not type(other):
                    return merge_row(old, row, range(self.keys))  # which says what is wrong, if anything is
                both = mine.merge(other)
                if both is not mine and grew(mine, both):
                    merged = list(old) if merged is None else merged
                    merged[at] = both
        except SyndicateError as error:
            raise placed(error, f"{where}: {self.name}") from error
        return old if merged is None else tuple(merged)


class MergedSending(Contents):
    """What is sent in a tick: rows as they are derived, merged where they are looked at."""

    def __init__(self, name: str, columns: Names, keys: int, lattices: Mapping[str, type[Lattice]]) -> None:
        """Empty."""
        self._derived: dict[Key, None] = {}
        self._merged: dict[Key, None] | None = {}
        super().__init__(name, columns, keys)
        self.lattices = dict(lattices)

    @property
    def rows(self) -> dict[Key, None]:
        """The rows, one for each key."""
        if self._merged is None:
            self._merged = dict.fromkeys(map(key_of, self._merged_rows(self._derived)))
        return self._merged

    @rows.setter
    def rows(self, rows: dict[Key, None]) -> None:
        self._derived, self._merged = rows, None

    def _merged_rows(self, rows: Iterable[Key]) -> list[Row]:
        merged = Merged(self.name, self.columns, self.keys, self.lattices)
        merged.absorb([natural(row) for row in rows], "a row to be sent")
        return list(merged.held.rows.values())

    def checked(self, delta: Mapping[Key, int]) -> Mapping[Key, int]:
        """*delta*, if its rows can be merged; raises :class:`KeyConflict`."""
        if delta:
            rows = [row for row in self._derived if delta.get(row, 0) >= 0]
            self._merged_rows([*rows, *(row for row, weight in delta.items() if weight > 0)])
        return delta

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Take in a change."""
        for row, weight in delta.items():
            if weight > 0:
                self._derived[row] = None
            else:
                self._derived.pop(row, None)
        if delta:
            self._merged = None


# --------------------------------------------------------------------------------------------------------------- states


Delta: TypeAlias = dict[Key, int]
NOTHING: Mapping[Key, int] = {}


@define(eq=False)
class DeferredRows:
    """The rows of a deferred rule's relation, and how they changed in the last tick."""

    rows: dict[Key, None] = field(factory=dict)
    new: dict[Key, None] = field(factory=dict)
    gone: dict[Key, None] = field(factory=dict)

    def commit(self, delta: Mapping[Key, int]) -> None:
        """Take in a change."""
        if not delta:
            if self.new or self.gone:
                self.new, self.gone = {}, {}
            return
        self.new, self.gone = {}, {}
        for row, weight in delta.items():
            if weight > 0:
                self.rows[row] = self.new[row] = None
            else:
                self.rows.pop(row, None)
                self.gone[row] = None


@define(eq=False)
class TableState:
    """Of a table."""

    inlet: ClassVar = "upserted"
    """Where rows arrive that others sent: a table keeps the last of each key."""

    contents: Contents
    eager: bool
    inserted: dict[Key, None] = field(factory=dict)
    deleted: dict[Key, None] = field(factory=dict)
    upserted: dict[Key, None] = field(factory=dict)
    given: dict[Key, None] = field(factory=dict)
    unfed: dict[Key, None] = field(factory=dict)
    doomed: dict[Key, None] = field(factory=dict)
    next: DeferredRows = field(factory=DeferredRows)
    never: DeferredRows = field(factory=DeferredRows)
    replacing: DeferredRows = field(factory=DeferredRows)
    restored: dict[Key, None] = field(factory=dict)
    """Rows of an earlier run, which the first tick finds; *dropped* are those that it is to delete or replace."""
    dropped: dict[Key, None] = field(factory=dict)
    leaving: dict[Key, None] = field(factory=dict)
    arriving: dict[Key, None] = field(factory=dict)
    outside: tuple[dict[Key, None], ...] = ()

    def still(self) -> bool:
        """Whether it has nothing to tell the circuit, and nothing to forget."""
        return not (
            self.inserted
            or self.deleted
            or self.upserted
            or self.unfed
            or self.doomed
            or self.leaving
            or self.restored
            or self.next.new
            or self.next.gone
            or self.replacing.new
            or self.replacing.gone
            or self.never.new
            or self.never.gone
            or (self.replacing.rows and isinstance(self.contents, Merged))
        )

    def prepare(self) -> Delta:
        """What to tell the circuit at the start of a tick: deletions first, then insertions."""
        arriving = {**self.next.new, **self.replacing.new, **self.inserted, **self.upserted}
        if self.restored:
            arriving = self._with_restored(arriving)
        leaving = {**self.doomed, **self.deleted}
        # A plain row that replaces stays as it is; a merged one may have grown since.
        replacing = self.replacing.rows if isinstance(self.contents, Merged) else self.replacing.new
        for row in (*replacing, *self.upserted):
            old = self.contents.index.get(self.contents.key(row))
            if old is not None:
                leaving[old] = None
        for row in [row for row in leaving if row in self.next.rows or row in self.replacing.rows or row in arriving]:
            del leaving[row]
        self.leaving, self.arriving = leaving, arriving
        self.outside = (self.inserted, self.upserted, self.restored)
        present = self.given
        delta = {row: -1 for row in leaving if row in present}
        delta.update({row: 1 for row in self.unfed if row not in leaving and row not in present})
        delta.update({row: 1 for row in arriving if row not in present})
        return delta

    def _with_restored(self, arriving: dict[Key, None]) -> dict[Key, None]:
        """What arrives in the first tick, and the rows of an earlier run, less those deleted or replaced since."""
        key = self.contents.key
        replaced = {key(row) for row in self.upserted}
        self.dropped = {
            row: None for row in self.restored if row not in arriving and (row in self.deleted or key(row) in replaced)
        }
        return {**{row: None for row in self.restored if row not in self.dropped}, **arriving}

    def lost(self, out: Mapping[Key, int]) -> list[Key]:
        """The rows that a table has and no rule derives any more."""
        leaving = self.leaving
        if not out or min(out.values()) > 0:
            return []
        return [row for row, weight in out.items() if weight < 0 and row not in leaving]

    def commit(self, fed: Mapping[Key, int], out: Mapping[Key, int], deferred: Mapping[str, Mapping[Key, int]]) -> None:
        """Take in a tick."""
        present = self.given
        for row, weight in {} if isinstance(self.contents, Merged) else fed.items():
            if weight > 0:
                present[row] = None
            else:
                del present[row]
        self.contents.commit(out)
        rows = self.contents.rows
        if self.eager:
            self.unfed = {row: None for row, weight in out.items() if weight > 0 and row not in present}
            self.unfed.update({row: None for row in self.leaving if row in rows and row not in present})
        self.next.commit(deferred.get("<+", NOTHING))
        self.replacing.commit(deferred.get("<+-", NOTHING))
        self.never.commit(deferred.get("<-", NOTHING))
        for row in self.never.gone:
            self.doomed.pop(row, None)
        self.doomed.update({row: None for row in self.never.new if row in rows})
        if self.never.rows:
            for row, weight in out.items():
                if weight < 0:
                    self.doomed.pop(row, None)
                elif row in self.never.rows:
                    self.doomed[row] = None
        elif self.doomed:
            self.doomed = {}
        if self.inserted or self.deleted or self.upserted:
            self.discard()
        if self.restored or self.dropped:
            self.restored, self.dropped = {}, {}

    def waits(self) -> bool:
        """Whether another tick would change something."""
        due = any(not self._has(row) for row in (*self.next.new, *self.replacing.new))
        doomed = any(row not in self.next.rows and row not in self.replacing.rows for row in self.doomed)
        return bool(self.inserted or self.deleted or self.upserted) or due or doomed

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        self.inserted, self.deleted, self.upserted = {}, {}, {}

    def _has(self, row: Key) -> bool:
        """Whether inserting a row would change nothing."""
        contents = self.contents
        return contents.covers(row) if isinstance(contents, Merged) else row in contents.rows

    def circuit_inputs(self) -> Delta:
        """All that the circuit has been given."""
        return dict.fromkeys(self.given, 1)

    def merge(self, lattices: Mapping[str, type[Lattice]]) -> None:
        """Hold lattice values from now on: rows of one key are one row, and the circuit is given what there is."""
        self.contents = merged(self.contents, lattices, [natural(row) for row in self.contents.rows])
        self.eager, self.given, self.unfed = False, {}, {}


@define(eq=False)
class ScratchState:
    """Of a collection whose rows last one tick: given from outside, from the network or by the last tick's ``<+``."""

    inlet: ClassVar = "inserted"

    contents: Contents
    inserted: dict[Key, None] = field(factory=dict, kw_only=True)
    given: dict[Key, None] = field(factory=dict, kw_only=True)
    next: DeferredRows = field(factory=DeferredRows, kw_only=True)

    def still(self) -> bool:
        """Whether it has nothing to tell the circuit, and nothing to forget."""
        return not (self.inserted or self.given or self.next.new or self.next.gone)

    def prepare(self) -> Delta:
        """What to tell the circuit."""
        delta: Delta = {row: -1 for row in self.given if row not in self.inserted}
        delta.update({row: 1 for row in self.inserted if row not in self.given})
        for row in self.next.new:
            delta[row] = delta.get(row, 0) + 1
        for row in self.next.gone:
            delta[row] = delta.get(row, 0) - 1
        return {row: weight for row, weight in delta.items() if weight}

    def commit(self, fed: Mapping[Key, int], out: Mapping[Key, int], deferred: Mapping[str, Mapping[Key, int]]) -> None:
        """Take in a tick."""
        self.contents.commit(out)
        self.given, self.inserted = self.inserted, {}
        self.next.commit(deferred.get("<+", NOTHING))

    def waits(self) -> bool:
        """Whether another tick would give it rows, or leave it without those that it was given."""
        return bool(self.inserted or self.next.new)

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        self.inserted = {}

    def circuit_inputs(self) -> Delta:
        """All that the circuit has been given."""
        weights = dict.fromkeys(self.given, 1)
        for row in self.next.rows:
            if row not in self.next.new:
                weights[row] = weights.get(row, 0) + 1
        for row in self.next.gone:
            weights[row] = weights.get(row, 0) + 1
        return weights

    def present(self) -> list[Key]:
        """The rows that no rule derives, in the tick that begins."""
        return [*self.inserted, *self.next.rows]

    def merge(self, lattices: Mapping[str, type[Lattice]]) -> None:
        """Hold lattice values from now on."""
        self.contents = merged(self.contents, lattices, [natural(row) for row in self.contents.rows])


@define(eq=False)
class SentState(ScratchState):
    """Of a channel, a loopback or a terminal: what arrives is a scratch; what rules send in each tick is *sending*.

    What was given from outside to be sent with the next tick is *posted*.
    """

    sending: Contents
    posted: dict[Key, None] = field(factory=dict, kw_only=True)

    def waits(self) -> bool:
        """Whether another tick would give it rows, or send some."""
        return bool(self.posted) or super().waits()

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        super().discard()
        self.posted = {}

    def outgoing(self) -> list[Key]:
        """What goes out with the tick that has happened, each row once: what was given as it was given, then what rules
        derived, in the total order.
        """
        posted, self.posted = self.posted, {}
        return [*posted, *in_order(row for row in self.sending.rows if row not in posted)]

    def commit(self, fed: Mapping[Key, int], out: Mapping[Key, int], deferred: Mapping[str, Mapping[Key, int]]) -> None:
        """Take in a tick."""
        super().commit(fed, out, deferred)
        self.sending.commit(deferred.get("<~", NOTHING))

    def merge(self, lattices: Mapping[str, type[Lattice]]) -> None:
        """Hold lattice values from now on."""
        super().merge(lattices)
        sending = MergedSending(self.contents.name, self.contents.columns, self.contents.keys, lattices)
        sending.commit(dict.fromkeys(self.sending.rows, 1))
        self.sending = sending


def merged(old: Contents, lattices: Mapping[str, type[Lattice]], rows: list[Value]) -> Merged:
    """The same rows, merged by key."""
    contents = Merged(old.name, old.columns, old.keys, lattices)
    contents.absorb(rows, f"a row of {old.name}")
    contents.held.commit()
    return contents


class CellState:
    """Of a lattice: its value, and what is to be merged into it in the next tick."""

    def __init__(self, name: str, lattice: type[Lattice]) -> None:
        """At the bottom."""
        self.name, self.lattice = name, lattice
        self.value: Lattice = lattice.bottom()
        self.inserted: list[Lattice] = []
        self.deferred: Lattice | None = None
        self.deferring: Lattice | None = None
        self.before: Lattice | None = None

    @property
    def contents(self) -> Contents:
        """One row, of the value."""
        contents = KeyedContents(self.name, ("value",), 0)
        contents.commit({key_of((self.value,)): 1})
        return contents

    def insert(self, value: Lattice) -> None:
        """Merge this in the next tick."""
        self.inserted.append(value)

    def prepare(self) -> Delta:
        """Nothing: values are merged, not given to the circuit."""
        return {}

    def still(self) -> bool:
        """Whether there is nothing to merge."""
        return not self.inserted and self.deferred is None

    def taken(self) -> list[Lattice]:
        """What is to be merged at the start of a tick."""
        return [*self.inserted, *([] if self.deferred is None else [self.deferred])]

    def grow(self, value: Lattice) -> None:
        """Be *value*, which is greater."""
        if self.before is None:
            self.before = self.value
        self.value = value

    def defer(self, value: Lattice) -> None:
        """Merge this in the tick after this one."""
        value.same_lattice(self.value)
        self.deferring = value if self.deferring is None else join(self.deferring, value)

    def commit(self, fed: Mapping[Key, int], out: Mapping[Key, int], deferred: Mapping[str, Mapping[Key, int]]) -> None:
        """The tick happened."""
        self.inserted, self.deferred, self.deferring, self.before = [], self.deferring, None, None

    def undo(self) -> None:
        """The tick did not happen."""
        if self.before is not None:
            self.value = self.before
        self.deferring = self.before = None

    def waits(self) -> bool:
        """Whether another tick would change it."""
        return bool(self.inserted) or (self.deferred is not None and not self.deferred <= self.value)

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        self.inserted = []


RowState: TypeAlias = TableState | ScratchState
State: TypeAlias = RowState | CellState
