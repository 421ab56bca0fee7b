"""Rules say the same in the same order: whichever kernels run, whatever the hashes, in any process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syndicate import native
from syndicate.flow.element import key_of, naturals, ordered, rank
from syndicate.values.value import Ref, Symbol
from tests.hashes import printed
from tests.orders import SYSTEMS

ROOT = Path(__file__).parents[1]
SEEDS = int(os.environ.get("SYNDICATE_ORDERS", "12"))


def said(hashes: int, **variables: str) -> list[str]:
    """What another process hears of random systems, a line for each."""
    return printed(hashes, "-m", "tests.orders", "0", str(SEEDS), **variables).splitlines()


@pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)
def test_the_same_is_said_in_the_same_order() -> None:
    """With kernels and without, with other hashes: Bloom, lattices, Dedalus and views, by many seeds."""
    one = said(1, SYNDICATE_NATIVE="require")
    assert len(one) == len(SYSTEMS) * SEEDS
    assert len({line.split(" ", 2)[2] for line in one}) > len(one) // 3  # most of them say something of their own
    assert said(2, SYNDICATE_NATIVE="require") == one
    assert said(3, SYNDICATE_PURE="1") == one


def test_the_order_is_that_of_elements() -> None:
    """The short way, by Python's own comparisons, is taken only where it comes to the same."""
    early, late = Ref.unbound(), Ref.unbound()
    for elements in (
        [3, -1, 2**70, 0],
        ["b", "", "\U0001f600", "a\uffff"],
        [b"b", b"", "a"],
        [(2, "a"), (1, "b"), (1, "a")],
        [(1, "a"), (1, 2), (1, None)],
        [(1,), (0, 5), ()],
        [True, 1, 1.0, 0.0, -0.0, float("nan"), 2.5, Symbol("a"), "a", None],
        [(1, 2.5), (1, 2), (1, -3.5)],
        [late, early],
        [(late, 1), (early, 2)],
    ):
        keys = [key_of(each) for each in elements]
        for inputs in (keys, keys[::-1]):
            batch = ordered(dict.fromkeys(inputs, 1))
            assert list(batch) == sorted(keys, key=rank)
    assert naturals(ordered({late: 1, early: 1})) == [early, late]
