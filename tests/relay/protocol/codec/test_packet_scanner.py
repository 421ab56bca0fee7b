from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.codec.packet_scanner import PacketScanner
from relay.protocol.limits import Limits
from syndicate.errors import ProtocolError

ATOMS = [
    *(None, True, False, 5, -3, 200, 300, 70_000, 2**40, 2**63, -100, -200, -40_000, -(2**40), 1.5),
    *("", "a", "b" * 31, "b" * 40, "c" * 300, "d" * 70_000, b"x", b"y" * 300, b"z" * 70_000),
    *[msgpack.ExtType(1, b"a" * size) for size in (0, 1, 2, 3, 4, 8, 16, 17, 300, 70_000)],
]
raws = st.recursive(
    st.sampled_from(ATOMS), lambda inner: st.lists(inner, max_size=4) | st.lists(inner, min_size=14, max_size=17)
)


@given(raws, st.booleans(), st.data())
def test_the_end_is_that_of_the_library(raw: Any, single: bool, data: st.DataObject) -> None:
    """Every head, however the bytes are cut: what the packer wrote is measured to the byte."""
    packed = msgpack.packb(raw, use_single_float=single)
    assert PacketScanner(Limits()).feed(b"\xc0\xc0" + packed + b"\xc0", 2) == 2 + len(packed)
    cuts = sorted({0, len(packed), *data.draw(st.lists(st.integers(0, min(len(packed), 80)), max_size=6))})
    measure = PacketScanner(Limits())
    *begun, last = [measure.feed(packed[a:b], 0) for a, b in pairwise(cuts)]
    assert begun == [-1] * len(begun)
    assert last == cuts[-1] - cuts[-2]
    assert measure.feed(b"\xc0", 0) == 1


def test_byte_by_byte() -> None:
    """The smallest pieces."""
    rng = random.Random(1)
    for _ in range(200):
        packed = msgpack.packb([rng.choice(ATOMS[:20]) for _ in range(rng.randrange(20))])
        measure = PacketScanner(Limits())
        assert [measure.feed(packed[i : i + 1], 0) for i in range(len(packed))] == [-1] * (len(packed) - 1) + [1]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80", "no value begins with 0x80"),
        (b"\x91\xde", "0xde"),
        (b"\xc1", "0xc1"),
        (b"\xdd\xff\xff\xff\xff", "nested values"),
        (b"\x92" * 200, "levels of nesting"),
    ],
)
def test_what_is_refused(data: bytes, why: str) -> None:
    """Maps, and too much, at their first bytes."""
    with pytest.raises(ProtocolError, match=why):
        PacketScanner(Limits()).feed(data + b"\xc0" * 9, 0)
