"""Packets: a row of a channel on its way through a dataspace.

A row to the address *to* is the message ``<bloom-packet to channel [column ...]>``.  Who has that address observes all
that begins so, whichever program, process or person sent it.  Columns are values as they are, but for two that a
dataspace does not have: None is :data:`~syndicate.values.absent.ABSENT`, and a lattice value is the record that it
always
becomes there.

>>> revived((ABSENT, ("a", 1)))
(None, ('a', 1))
>>> arrived(["a", 1], ("k", "v"), 1)
Traceback (most recent call last):
syndicate.errors.RowMisfit: ['a', 1] is no sequence of columns
>>> arrived(("a",), ("k", "v"), 1)
Traceback (most recent call last):
syndicate.errors.RowMisfit: ('a',) has 1 columns, but there are 2: k, v

Contract: what :func:`arrived` answers can be an element of a circuit; whatever else a peer sends raises
:class:`RowMisfit`, and nothing else.
"""

from __future__ import annotations

from syndicate.bloom.row import Names
from syndicate.errors import RowMisfit, short
from syndicate.flow.element import ATOMS, Key, key_of
from syndicate.lattice.lattice import Lattice, revive
from syndicate.values.absent import ABSENT, inward
from syndicate.values.record import record
from syndicate.values.value import Value, is_record


@record("bloom-packet")
class Packet:
    """Sent: a *row* of the *channel* of the program whose address is *to*."""

    to: Value
    channel: str
    row: tuple[Value, ...]


def revived(value: Value) -> Value:
    """A value as a part of a row, as :func:`~syndicate.values.absent.inward` has it, with lattice values."""
    if type(value) is tuple:
        return tuple([revived(part) for part in value])
    return revive(value) if is_record(value) else inward(value)


def arrived(value: Value, columns: Names, keys: int) -> Key:
    """The key of the row that somebody sent, for some columns of which the first *keys* are the key."""
    if type(value) is not tuple:
        raise RowMisfit(f"{short(value)} is no sequence of columns")
    if len(value) != len(columns):
        raise RowMisfit(f"{short(value)} has {len(value)} columns, but there are {len(columns)}: {', '.join(columns)}")
    if ATOMS.issuperset(map(type, value)) and ABSENT not in value:
        return value
    try:
        row = revived(value)
        key = key_of(row)
    except Exception as error:  # a constructor of a user's lattice refuses what a stranger has made up, in its own way
        raise RowMisfit(f"{short(value)} holds what no row can: {error}") from error
    for name, part in zip(columns[:keys], row, strict=False):
        if isinstance(part, Lattice):
            raise RowMisfit(f"{short(value)} has a lattice value in the key column {name}")
    return key
