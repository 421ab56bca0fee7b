"""What a peer asserts with us: numbers, their bound, and the guard against prepared collisions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.session.packet_events import Understood, patched
from relay.session.peer_assertions import ALIKE, PeerAssertion, PeerAssertions
from syndicate.errors import ProtocolError
from syndicate.index.event import ASSERT, RETRACT


class Colliding:
    """A value whose hash somebody has chosen."""

    def __init__(self, value: int, key: int) -> None:
        self.value = value
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colliding) and (self.value, self.key) == (other.value, other.key)

    def __hash__(self) -> int:
        return self.key


def test_numbers() -> None:
    """One assertion for each number; a number can be used again when it is free; there may be only so many."""
    assertions = PeerAssertions(2, 1 << 30)
    first = assertions.add(1, "a", [], 300)
    with pytest.raises(ProtocolError, match="handle 1 is in use"):
        assertions.add(1, "b", [], 300)
    assert assertions.add(2, "b", [], 300) is not None
    assert assertions.add(3, "c", [], 300) is None
    assert assertions.remove(1) is first
    assert assertions.remove(1) is None
    assert assertions.add(1, "c", [], 300) is not None
    assert len(assertions) == 2


def test_too_many_of_one_hash() -> None:
    """Different values of one hash are bounded; equal ones are not, nor are those that are gone."""
    assertions = PeerAssertions(10 * ALIKE, 1 << 30)
    for number in range(ALIKE):
        assertions.add(number, Colliding(number, 7), [], 300)
    for number in range(ALIKE, 3 * ALIKE):
        assertions.add(number, Colliding(5, 7), [], 300)
    with pytest.raises(ProtocolError, match="have one hash"):
        assertions.add(9 * ALIKE, Colliding(9 * ALIKE, 7), [], 300)
    assert len(assertions) == 3 * ALIKE
    assertions.remove(5)  # of which there are copies
    with pytest.raises(ProtocolError, match="have one hash"):
        assertions.add(9 * ALIKE, Colliding(9 * ALIKE, 7), [], 300)
    assertions.remove(6)
    assertions.add(9 * ALIKE, Colliding(9 * ALIKE, 7), [], 300)


def test_lists_of_minus_one_and_minus_two() -> None:
    """An honest peer may have lists that differ in nothing but where they have -1 and where -2: they all have one hash
    in CPython.
    """
    assertions = PeerAssertions(10 * ALIKE, 1 << 30)
    for number, form in enumerate(itertools.product([-1, -2], repeat=9)):
        assert assertions.add(number, form, [], 300) is not None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 1))))
def test_it_is_a_dictionary(steps: list[tuple[int, int, int]]) -> None:
    """Whatever comes and goes, it knows what is there, and in the end nothing is left."""
    assertions, there = PeerAssertions(100, 1 << 30), dict[int, PeerAssertion]()
    for number, value, key in steps:
        if number in there:
            assert assertions.remove(number) is there.pop(number)
        else:
            assertion = assertions.add(number, Colliding(value, key), [], 300)
            assert assertion is not None
            there[number] = assertion
        chains: dict[Any, int] = {}
        for alike in assertions._alike.values():
            chains.update({alike.form: 1} if isinstance(alike, PeerAssertion) else alike)
        assert sum(chains.values()) == len(there) == len(assertions)
        assert chains.keys() == {assertion.form for assertion in there.values()}
    for number in there:
        assertions.remove(number)
    assert not assertions._alike


@pytest.mark.parametrize("count", [100, 1000])
def test_a_packet_is_put_in_order_in_parts(count: int) -> None:
    """Also what goes at its end: no part is of more than so many events, and the order is that of one go."""
    said: list[Understood] = []
    for number in range(count):
        assertion = PeerAssertion(("here", number), [], 1)
        said += [(ASSERT, None, assertion.form, assertion), (RETRACT, None, None, assertion)]
    (whole,) = [each for each in patched(said, lambda pins: None, 1 << 20) if each is not None]
    *parts, last = patched(said, lambda pins: None, 128)
    assert last == whole
    assert [kind for kind, *_ in whole] == [ASSERT] * count + [RETRACT] * count
    assert len(parts) >= 3 * count // 128  # each event, and each that goes once more


class Kind(int):
    """The kind of an event, which counts how often it is looked at."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Kind.looks += 1
        return int(self) == other

    __hash__ = int.__hash__


def most_looks(shape: str, count: int) -> int:
    """How often kinds of events are looked at between two parts, at most, while so many are put in order."""
    assertions = [PeerAssertion(("here", number), [], 1) for number in range(count)]
    coming: list[Understood] = [(Kind(ASSERT), None, each.form, each) for each in assertions]
    going: list[Understood] = [(Kind(RETRACT), None, None, each) for each in assertions]
    said = {
        "assertions": coming,
        "first what comes": coming + going,
        "first what goes": going + coming,
        "in turns": [event for both in zip(coming, going, strict=True) for event in both],
    }[shape]
    Kind.looks, most = 0, 0
    for _ in patched(said, lambda pins: None, 128):
        most, Kind.looks = max(most, Kind.looks), 0
    return most


@pytest.mark.parametrize("shape", ["assertions", "first what comes", "first what goes", "in turns"])
def test_what_is_looked_at_at_a_stretch_does_not_grow_with_the_packet(shape: str) -> None:
    """Whether something replaces another thing, what is spoken of, and which of them it is."""
    assert 0 < most_looks(shape, 8000) == most_looks(shape, 4000)
