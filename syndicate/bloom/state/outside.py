"""What comes from outside with a tick, as data: to be noted, and given again to another program of the same class.

A state has what waits for the next tick in several places, by what is to be done with it.  Everything else that a tick
does follows from the rules.

>>> from syndicate.bloom.state.contents import Contents; from syndicate.bloom.state.state import ScratchState
>>> one, other = (ScratchState(Contents("s", ("k", "v"), 1)) for _ in range(2))
>>> one.inserted[("a", frozenset({1}))] = None; noted = outside({"s": one}); noted
{'s': {'inserted': [['a', {'$': 'kZLHCQJmcm96ZW5zZXSRAQ=='}]]}}
>>> give_again({"s": other}, noted); other.inserted
{('a', frozenset({1})): None}

Rows are lists of columns: None, booleans, numbers and text stand for themselves, a list for a tuple, and whatever else
an element can be (:mod:`syndicate.flow.encoding`) for its bytes, in base 64.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final, TypeAlias

from syndicate.bloom.state.following import FollowingState
from syndicate.bloom.state.state import CellState, SentState, State
from syndicate.errors import ScheduleError, short
from syndicate.flow.element import Element, Key, key_of, natural
from syndicate.flow.encoding import decoded, encoded

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
        given = dict(noted.get(name, {}))
        if isinstance(state, CellState):
            state.inserted = [value_of(value) for value in given.pop(MERGED, ())]
        else:
            for pending in _PENDING:
                if hasattr(state, pending):
                    setattr(state, pending, keys_of(given.pop(pending, ())))
            if isinstance(state, FollowingState):
                held, released = (keys_of(given.pop(what, ())) for what in (HELD, RELEASED))
                state.wanted = {**dict.fromkeys(held, True), **dict.fromkeys(released, False)}
        if given:
            raise ScheduleError(f"{name} takes no rows that are {', '.join(given)}: is this the event log of another?")


def is_followed(noted: Mapping[str, Mapping[str, list[Json]]]) -> set[str]:
    """The collections that follow assertions, as far as this says."""
    return {name for name, given in noted.items() if HELD in given or RELEASED in given}


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
