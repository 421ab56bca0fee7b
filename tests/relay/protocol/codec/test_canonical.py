"""Canonical bytes against the library's."""

from __future__ import annotations

from typing import Any

import preserves
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.codec.canonical import canonical
from syndicate import Dictionary, Observe, Record, Symbol, capture
from syndicate.errors import NotAValue
from syndicate.values.value import freeze
from tests.strategies import REFS

text = st.text(st.characters(exclude_categories=["Cs"]))
# No booleans and no doubles: the library cannot have them beside equal integers in one set or dictionary.
atoms = st.integers() | st.integers(-(2**200), 2**200) | text | st.binary() | text.map(Symbol)
hashable = st.recursive(atoms, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    atoms | st.booleans() | st.floats(width=64),
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple)
        | st.sets(hashable, max_size=4)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.builds(Record.labelled, atoms, st.lists(inner, max_size=3))
    ),
)


def theirs(value: Any) -> Any:
    """The value in the library's classes."""
    if isinstance(value, Symbol):
        return preserves.Symbol(value.name)
    if isinstance(value, Record):
        return preserves.Record(theirs(value.label), [theirs(field) for field in value.fields])
    if isinstance(value, tuple):
        return tuple([theirs(item) for item in value])
    if isinstance(value, set):
        return frozenset(theirs(item) for item in value)
    if isinstance(value, dict):
        return preserves.ImmutableDict.from_kvs([theirs(item) for pair in value.items() for item in pair])
    return value


@given(values)
def test_as_the_library(value: Any) -> None:
    """The same bytes, for values that the library can hold."""
    assert canonical(freeze(value)) == preserves.canonicalize(theirs(value))


def test_look_alikes() -> None:
    """And for those that it cannot: keys that Python takes for equal."""
    value = Dictionary([(True, 1), (1, 2), (1.0, 3)])
    assert canonical(freeze(value)).hex() == "b7" + "81b00101" + "87083ff0000000000000b00103" + "b00101b00102" + "84"


@pytest.mark.parametrize("value", [REFS[0], [REFS[0]], Observe([capture()], REFS[0])])
def test_references_have_none(value: Any) -> None:
    """A live reference cannot be signed."""
    with pytest.raises(NotAValue, match="only values without references"):
        canonical(freeze(value))


@pytest.mark.parametrize("bits", [7, 8, 15, 63, 64, 71, 127, 4087])
def test_integers_at_the_edges(bits: int) -> None:
    """The shortest encoding, also of negative powers of two, which have one bit less than it seems."""
    for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
        assert canonical(freeze(number)) == preserves.canonicalize(number)
