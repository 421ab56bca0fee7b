from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.codec import Limits, Msgpack, Preserves, PreservesText, frozen_collection
from relay.protocol.codec.frozen_collection import FEW, Collections, flooded, ordered, weight, whole
from relay.protocol.packets import WireRef
from syndicate.errors import ProtocolError
from syndicate.values.value import DICT, SET, SMALL, Frozen, freeze, order
from tests.relay.protocol.codec.fuzz import quick
from tests.strategies import values

forms = values(refs=False, wide=True).map(freeze)


@given(st.lists(forms, unique=True, max_size=30))
def test_the_order_is_that_of_values(members: list[Frozen]) -> None:
    """Sorted by kind, they stand as in one sort by the total order."""
    assert ordered(members) == sorted(members, key=order)


@given(st.lists(forms, unique=True, max_size=30), st.integers(1, 8))
def test_what_is_sorted_in_parts_is_in_the_same_order(members: list[Frozen], stretch: int) -> None:
    """However long they are; no look is at more than two runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frozen_collection, "MEMBERS", stretch)
        assert ordered(members) == sorted(members, key=order)
        assert whole(Collections(Limits()).parts([SET, *members])) == (SET, *sorted(members, key=order))


@given(st.lists(forms, max_size=6))
def test_sets_and_dictionaries_are_those_of_freeze(members: list[Frozen]) -> None:
    """The forms of distinct members are those of the same values frozen here; duplicates are refused."""
    from syndicate import Dictionary, ValueSet
    from syndicate.values.value import thaw

    collections = Collections(Limits())
    if len({*members}) < len(members):
        with pytest.raises(ProtocolError, match="duplicate"):
            whole(collections.parts([SET, *members]))
        with pytest.raises(ProtocolError, match="duplicate"):
            whole(collections.parts([DICT, *[item for member in members for item in (member, 1)]]))
    else:
        assert whole(collections.parts([SET, *members])) == freeze(ValueSet(map(thaw, members)))
        pairs = [(thaw(member), i) for i, member in enumerate(members)]
        items = [item for i, member in enumerate(members) for item in (member, i)]
        assert whole(collections.parts([DICT, *items])) == freeze(Dictionary(pairs))


def test_weight() -> None:
    """What is inside of compounds counts, at every level, that of references too, and counting ends at the most."""
    assert weight(["a", ("p", 1, ("q", 2)), WireRef(1, 0, (("c", 1),))], 100) == 3 + 2 + 3 + 2
    assert 50 < weight([("p", *range(40)), ("q", *range(40))] * 1000, 50) < 100


P1, P2, P5, ROUND = 11400714785074694791, 14029467366897019727, 2870177450012600261, 2**64


def colliding(count: int) -> list[Frozen]:
    """Forms of records ``<5 a b>`` with one hash: only what is public went into making them."""

    def turned(acc: int, by: int) -> int:
        return (acc << by | acc >> 64 - by) % ROUND

    def after(*lanes: int) -> int:
        acc = P5
        for lane in lanes:
            acc = turned((acc + lane * P2) % ROUND, 31) * P1 % ROUND
        return acc

    wanted = turned(after(5, 1, 1) * pow(P1, -1, ROUND) % ROUND, 33)
    results: list[Frozen] = []
    a = 0
    while len(results) < count:
        a += 1
        b = (wanted - after(5, a)) * pow(P2, -1, ROUND) % ROUND
        b -= ROUND if b >> 63 else 0
        if -SMALL < b < SMALL and b != -1:
            results.append((5, a, b))
    return results


def test_colliding_tuples_are_found() -> None:
    """Thousands of real collisions: distinct values of one hash, which take quadratic time in a set."""
    attack = colliding(3000)
    assert len({*map(hash, attack)}) == 1
    assert len({(a, b) for _, a, b in attack}) == 3000
    assert flooded(attack)
    assert not flooded(attack[:FEW])
    honest = [(5, i, i * i) for i in range(2900)]
    assert not flooded(honest)
    assert flooded(honest + attack[: FEW + 1])


@pytest.mark.parametrize("codec", [Msgpack, Preserves, PreservesText])
@pytest.mark.parametrize("kind", ["set", "dictionary"])
def test_a_flooding_frame_is_refused_quickly(codec: Any, kind: str) -> None:
    """In less time than any frame may take, in every codec, members or keys."""
    from syndicate.values.value import DICT, SEQ, SET

    attack = colliding(2000)
    collection = (SET, *attack) if kind == "set" else (DICT, tuple(attack), (1,) * len(attack))
    frame = codec().encode((SEQ, collection))

    def attempt() -> None:
        with pytest.raises(ProtocolError, match="hashes collide"):
            list(codec().feed(frame))

    assert quick(attempt)


def test_points_around_zero_are_no_attack() -> None:
    """hash(-1) is hash(-2), and honest values have such coordinates: no two forms of them have one hash."""
    points = [freeze([x, y, z]) for x in range(-9, 9) for y in range(-9, 9) for z in range(-9, 9)]
    assert len({*map(hash, points)}) == len(points)
    assert not flooded(points)


def test_minus_two_stands_between_its_neighbours() -> None:
    """Its form is that of large integers."""
    numbers = [2**70, -(2**70), 3, -3, -2, -1, 0, True, "x"]
    assert ordered([*map(freeze, numbers)]) == sorted(map(freeze, numbers), key=order)


def test_integers_do_not_flood() -> None:
    """Integers below 2**61 - 1 are their own hash; even those chosen for the same places cost a few times more, not
    thousands of times.
    """
    chosen = [(n << 45) % SMALL for n in range(1, 20_000)]
    plain = random.Random(1).sample(range(SMALL), len(chosen))
    cost = []
    for numbers in (plain, chosen):
        times = []
        for _ in range(5):
            began = time.thread_time()
            assert len({*numbers}) == len(numbers)
            times.append(time.thread_time() - began)
        cost.append(min(times))
    assert cost[1] < 100 * cost[0]
