"""Absent: the one value for what is not there, and how it crosses the borders.

A dataspace has no None.  What is absent in a row, a column that is null in Spark or in a table, is the value
:data:`ABSENT`, the symbol ``null``, wherever it is asserted or sent.  Rules and circuits are Python, and see None: it
becomes None on the way in (:func:`inward`) and ``ABSENT`` on the way out (:func:`outward`), in rows and in what is
nested in them.

>>> from syndicate.values.value import thaw
>>> inward(("a", ABSENT, (1, ABSENT))), outward(("a", None, [1, None]))
(('a', None, (1, None)), ('a', Symbol('null'), [1, Symbol('null')]))
>>> thaw(form_of({"a": None}))
Dictionary([('a', Symbol('null'))])

Contract: ``form_of(inward(value))`` is the form of *value*, whatever the value.  Dedalus has no null: a row with
``ABSENT`` in it is refused there, as any symbol is.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from syndicate.errors import NotAValue
from syndicate.values.value import (
    Dictionary,
    Frozen,
    Record,
    Symbol,
    Value,
    ValueSet,
    fields_of,
    freeze,
    is_record,
    label_of,
)

ABSENT: Final = Symbol("null")
"""What is absent: ``Reading("hall", ABSENT)``, and in a pattern who has no value: ``Reading(capture(), ABSENT)``."""

_FLAT: Final = frozenset({str, int, float, bool, bytes})


def inward(value: Value) -> Value:
    """A value as rules and circuits see it: None for :data:`ABSENT`, in sequences and dictionaries too.

    What is inside of records and sets stays as it is.  Costs one look at each item of a row of atoms.
    """
    if value is ABSENT:
        return None
    kind = type(value)
    if kind is tuple:
        return value if _FLAT.issuperset(map(type, value)) else tuple([inward(item) for item in value])
    if kind is Dictionary:
        return Dictionary([(key, inward(item)) for key, item in value.items()])
    return value


def outward(value: Value) -> Value:
    """A value for a dataspace: :data:`ABSENT` for None, also within tuples, lists, dictionaries, sets and records."""
    if value is None:
        return ABSENT
    if type(value) is tuple and _FLAT.issuperset(map(type, value)):
        return value
    if isinstance(value, tuple | list):
        return type(value)([outward(item) for item in value]) if type(value) in (tuple, list) else value
    if isinstance(value, Mapping):
        return Dictionary([(outward(key), outward(item)) for key, item in value.items()])
    if isinstance(value, AbstractSet):
        return ValueSet([outward(item) for item in value])
    if is_record(value):
        return Record.labelled(label_of(value), [outward(field) for field in fields_of(value)])
    return value


def form_of(value: Value) -> Frozen:
    """The frozen form of what a rule or a circuit gives; raises :class:`NotAValue`.

    Costs no more than :func:`~syndicate.values.value.freeze` where nothing is absent.
    """
    try:
        return freeze(value)
    except NotAValue:
        return freeze(outward(value))
