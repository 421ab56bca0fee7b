"""The inbox of a program: rows that have arrived in channels, and no tick has seen yet.

Two rows of one key that arrive together would break it, and who sent them may be untrusted peers to each other.  But a
message may take as long as it likes: the second waits for the tick after.

The *filter* of a program sees what a tick is about to take, collection by collection, and returns what it accepts and
what it postpones; the rest is lost.  It is where a test loses, delays, reorders and batches messages.

>>> from syndicate.bloom.state.state import KeyedContents
>>> inbox, held = Inbox(), KeyedContents("c", ("k", "v"), 1); inbox.add(held, [("a", 1), ("a", 2), ("b", 1)])
>>> inbox.taken(), inbox.waits()
({'c': {('a', 1): None, ('b', 1): None}}, True)
>>> inbox.taken(), inbox.waits()
({'c': {('a', 2): None}}, False)

Contract: rows of one key keep their order; what a filter postpones is offered again in the next tick, and makes none;
without a filter, a tick costs what it takes, however much waits.

Following: a scratch whose rows are there for as long as something outside is, such as an assertion.

What is given to a scratch is there for one tick.  What is *held* is there in each tick until it is released, and is
given to the circuit once; *wanted* says what is to change with the next tick.

>>> from syndicate.bloom.state.state import Contents
>>> state = FollowingState(Contents("s", ("k",), 1)); seen = []
>>> state.wanted = {("a",): True}; state.inserted = {("b",): None}
>>> for _ in range(3):
...     fed = state.prepare(); state.commit(fed, fed, {}); seen.append(sorted(state.contents.rows))
>>> state.wanted = {("a",): False}; fed = state.prepare(); state.commit(fed, fed, {}); seen, sorted(state.contents.rows)
([[('a',), ('b',)], [('a',)], [('a',)]], [])

What comes from outside with a tick, as data: to be noted, and given again to another program of the same class.

A state has what waits for the next tick in several places, by what is to be done with it.  Everything else that a tick
does follows from the rules.

>>> from syndicate.bloom.state.state import KeyedContents, ScratchState
>>> one, other = (ScratchState(KeyedContents("s", ("k", "v"), 1)) for _ in range(2))
>>> one.inserted[("a", frozenset({1}))] = None; noted = outside({"s": one}); noted
{'s': {'inserted': [['a', {'$': 'kZLHCQJmcm96ZW5zZXSRAQ=='}]]}}
>>> give_again({"s": other}, noted); other.inserted
{('a', frozenset({1})): None}

Rows are lists of columns: None, booleans, numbers and text stand for themselves, a list for a tuple, and whatever else
an element can be (:mod:`syndicate.flow.encoding`) for its bytes, in base 64.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, TypeAlias

from attrs import define, field

from syndicate.bloom.declaration import Row, fitted_all, raised_at, row_type, site_of
from syndicate.bloom.state.state import CellState, Contents, Delta, Merged, ScratchState, SentState, State
from syndicate.errors import RuleFailed, ScheduleError, short
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.flow.encoding import decoded, encoded
from syndicate.values.value import Value

# ----------------------------------------------------------------------------------------------- the inbox of a program


Filter: TypeAlias = "Callable[[str, list[Row]], tuple[Iterable[Sequence[Value]], Iterable[Sequence[Value]]]]"
"""Given a collection's name and its rows, those that are accepted and those that are postponed."""


@define(eq=False)
class Inbox:
    """Rows by collection and by key, in the order in which they came; *choose* is the filter."""

    choose: Filter | None = None
    rows: dict[str, tuple[Contents, dict[Key, dict[Key, None]]]] = field(factory=dict, init=False)
    fresh: bool = field(default=False, init=False)

    def add(self, held: Contents, rows: Iterable[Key]) -> None:
        """Let rows wait for the next tick."""
        _, queues = self.rows.get(held.name, (held, {}))
        self.rows[held.name] = (held, queues)  # which may have been found to hold lattice values since
        for row in rows:
            queues.setdefault(held.key(row), {})[row] = None
        self.fresh = True

    def waits(self) -> bool:
        """Whether another tick would take something in."""
        return self.fresh

    def clear(self) -> None:
        """Forget all."""
        self.rows, self.fresh = {}, False

    def taken(self) -> dict[str, dict[Key, None]]:
        """What the tick that begins sees of each collection; raises :class:`RuleFailed` if the filter does."""
        self.fresh = False
        batches = {}
        for held, queues in list(self.rows.values()):
            batches[held.name] = (
                _firsts(held, queues) if self.choose is None else self._chosen(self.choose, held, queues)
            )
            if not queues:
                del self.rows[held.name]
            elif self.choose is None:
                self.fresh = True
        return batches

    def _chosen(self, choose: Filter, held: Contents, queues: dict[Key, dict[Key, None]]) -> dict[Key, None]:
        kind, where = row_type(held.columns), f"the filter of the channel {held.name}"
        offered = [tuple.__new__(kind, natural(row)) for queue in queues.values() for row in queue]
        try:
            choice = choose(held.name, offered)
            accepted, postponed = ([*map(key_of, fitted_all(rows, held.columns, where))] for rows in choice)
        except Exception as error:
            site = raised_at(error, site_of(choose))
            raise RuleFailed(
                f"{site}: {where} failed: {type(error).__name__}: {error}. It returns two lists of rows, those that "
                "are accepted and those that are postponed",
                sites=[site],
                relations=[held.name],
            ) from error
        fresh = self.fresh
        queues.clear()
        self.add(held, accepted)
        now = _firsts(held, queues)
        self.fresh = fresh or bool(queues)
        for row in postponed:
            if row not in now:
                queues.setdefault(held.key(row), {})[row] = None
        return now


def _firsts(held: Contents, queues: dict[Key, dict[Key, None]]) -> dict[Key, None]:
    """The first row of each key, with all that can be merged with it, which are taken out."""
    firsts: dict[Key, None] = {}
    for key, queue in list(queues.items()):
        row = next(iter(queue))
        ready = held.together(queue) if isinstance(held, Merged) and len(queue) > 1 else [row]
        for one in ready:
            del queue[one]
            firsts[one] = None
        if not queue:
            del queues[key]
    return firsts


# ------------------------------------------------------------------------------------------------------------ following


@define(eq=False)
class FollowingState(ScratchState):
    """Of an input that follows assertions."""

    held: dict[Key, None] = field(factory=dict)
    wanted: dict[Key, bool] = field(factory=dict)

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

    def circuit_inputs(self) -> Delta:
        """All that the circuit has been given."""
        weights = super().circuit_inputs()
        weights.update({row: weights.get(row, 0) + 1 for row in self.held if row not in self.given})
        return weights

    def present(self) -> list[Key]:
        """The rows that no rule derives, in the tick that begins."""
        held = [row for row in self.held if self.wanted.get(row, True)]
        return [*super().present(), *held, *(row for row, wanted in self.wanted.items() if wanted)]

    def waits(self) -> bool:
        """Whether another tick would give it rows, or take held ones away."""
        return bool(self.wanted) or super().waits()


# ------------------------------------------------------------------------- what comes from outside with a tick, as data


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, str] | None"
Noted: TypeAlias = dict[str, dict[str, list[Json]]]
"""By collection, and by what is done with them, rows."""

_PENDING: Final = ("inserted", "deleted", "upserted", "posted", "restored")
HELD: Final = "held"
"""Rows that are there from now on, in each tick; *released* are there no more."""
RELEASED: Final = "released"
MERGED: Final = "merged"
"""What a lattice grows by."""
_BYTES: Final = "$"


def outside(states: Mapping[str, State]) -> Noted:
    """What waits for the next tick; raises :class:`~syndicate.errors.UnwritableElement`."""
    noted: Noted = {}
    for name, state in states.items():
        if isinstance(state, CellState):
            waiting = {MERGED: rows_as_json(state.inserted)}
        else:
            waiting = {pending: rows_as_json(map(natural, getattr(state, pending, ()))) for pending in _PENDING}
            if isinstance(state, FollowingState):
                for what, there in ((HELD, True), (RELEASED, False)):
                    waiting[what] = rows_as_json(natural(row) for row, after in state.wanted.items() if after is there)
        some = {pending: rows for pending, rows in waiting.items() if rows}
        if some:
            noted[name] = some
    return noted


def give_again(states: Mapping[str, State], noted: Mapping[str, Mapping[str, list[Json]]]) -> None:
    """Let exactly this be what waits for the next tick; raises :class:`ScheduleError` for what these states lack."""
    unknown = next((name for name in noted if name not in states), None)
    if unknown is not None:
        raise ScheduleError(f"the program has no collection {unknown}: is this the event log of another one?")
    for name, state in states.items():
        batches = dict(noted.get(name, {}))
        if isinstance(state, CellState):
            state.inserted = [value_of(value) for value in batches.pop(MERGED, ())]
        else:
            for pending in _PENDING:
                if hasattr(state, pending):
                    setattr(state, pending, keys_of(batches.pop(pending, ())))
            if isinstance(state, FollowingState):
                held, released = (keys_of(batches.pop(what, ())) for what in (HELD, RELEASED))
                state.wanted = {**dict.fromkeys(held, True), **dict.fromkeys(released, False)}
        if batches:
            raise ScheduleError(
                f"{name} takes no rows that are {', '.join(batches)}: is this the event log of another?"
            )


def is_followed(noted: Mapping[str, Mapping[str, list[Json]]]) -> set[str]:
    """The collections that follow assertions, as far as this says."""
    return {name for name, batches in noted.items() if HELD in batches or RELEASED in batches}


def sent_of(states: Mapping[str, State]) -> dict[str, list[Json]]:
    """What a tick that has happened sends, by channel, loopback and terminal."""
    every = {
        name: {**state.posted, **state.sending.rows} for name, state in states.items() if isinstance(state, SentState)
    }
    return {name: rows_as_json(map(natural, rows)) for name, rows in every.items() if rows}


def rows_as_json(rows: Iterable[Element]) -> list[Json]:
    """Rows, or other elements, as JSON."""
    return [as_json(row) for row in rows]


def as_json(value: Element) -> Json:
    """An element as JSON; raises :class:`~syndicate.errors.UnwritableElement`."""
    kind = type(value)
    if kind in (str, int, bool) or value is None or (kind is float and isfinite(value)):
        return value  # type: ignore[no-any-return]  # as its type says
    if kind is tuple:
        return [as_json(part) for part in value]
    return {_BYTES: b64encode(encoded([value])).decode()}


def value_of(json: Json) -> Element:
    """The element that JSON stands for; raises :class:`ScheduleError`."""
    if isinstance(json, list):
        return tuple([value_of(part) for part in json])
    if not isinstance(json, dict):
        return json
    try:
        (element,) = decoded(b64decode(json[_BYTES], validate=True))
    except (KeyError, TypeError, ValueError) as error:  # a snapshot's errors are among them
        raise ScheduleError(f"{short(json)} stands for no value: {error}") from None
    return element


def keys_of(rows: Iterable[Json]) -> dict[Key, None]:
    """Rows as a state has them."""
    return dict.fromkeys(key_of(value_of(row)) for row in rows)
