"""Packets: a row of a channel on its way through a dataspace.

A row to the address *to* is the message ``<bloom-packet to channel [column ...]>``.  Who has that address observes all
that begins so, whichever program, process or person sent it.  Columns are values as they are, but for two that a
dataspace does not have: None is ``<none>``, and a lattice value is the record that it always becomes there.

>>> from syndicate import Record
>>> outward((None, ("a", 1))), inward((Record("none", []), ("a", 1)))
((Record(Symbol('none'), []), ('a', 1)), (None, ('a', 1)))
>>> arrived(["a", 1], ("k", "v"), 1)
Traceback (most recent call last):
syndicate.errors.RowMisfit: ['a', 1] is no sequence of columns
>>> arrived(("a",), ("k", "v"), 1)
Traceback (most recent call last):
syndicate.errors.RowMisfit: ('a',) has 1 columns, but there are 2: k, v

Contract: what :func:`arrived` answers can be an element of a circuit; whatever else a peer sends raises
:class:`RowMisfit`, and nothing else.

Source: DESIGN 6.5 ("its channels then ride on the relay"), decision 9; reference/bloom.md, 1.2, 3.3.
"""

from __future__ import annotations

from typing import Any, Final

from syndicate.bloom.row import Names
from syndicate.errors import RowMisfit
from syndicate.flow.element import ATOMS, Key, key_of
from syndicate.lattice.lattice import Lattice, revive, short
from syndicate.record import record
from syndicate.values import Record, Symbol, Value, fields_of, is_record, label_of

NOTHING: Final = Record("none", [])
_NONE: Final = Symbol("none")


@record("bloom-packet")
class Packet:
    """Sent: a *row* of the *channel* of the program whose address is *to*."""

    to: Value
    channel: str
    row: tuple[Value, ...]


def outward(part: Any) -> Value:
    """A row, or a part of one, as a value."""
    if part is None:
        return NOTHING
    return tuple([outward(one) for one in part]) if type(part) is tuple else part


def inward(value: Value) -> Any:
    """A value as a part of a row."""
    if type(value) is tuple:
        return tuple([inward(one) for one in value])
    if is_record(value):
        return None if label_of(value) is _NONE and not fields_of(value) else revive(value)
    return value


def arrived(value: Value, columns: Names, keys: int) -> Key:
    """The key of the row that somebody sent, for some columns of which the first *keys* are the key."""
    if type(value) is not tuple:
        raise RowMisfit(f"{short(value)} is no sequence of columns")
    if len(value) != len(columns):
        raise RowMisfit(f"{short(value)} has {len(value)} columns, but there are {len(columns)}: {', '.join(columns)}")
    if ATOMS.issuperset(map(type, value)):
        return value
    try:
        row = inward(value)
        key = key_of(row)
    except Exception as error:  # a constructor of a user's lattice refuses what a stranger has made up, in its own way
        raise RowMisfit(f"{short(value)} holds what no row can: {error}") from error
    for name, part in zip(columns[:keys], row, strict=False):
        if isinstance(part, Lattice):
            raise RowMisfit(f"{short(value)} has a lattice value in the key column {name}")
    return key
