from __future__ import annotations

import math
import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.codec import DEFAULT, MORE, Limits, Msgpack
from relay.protocol.codec.frozen_collection import MEMBERS
from relay.protocol.packets import MINE, A, M, TurnPacket, WireRef, read, write
from syndicate import Dictionary, Record, Symbol, ValueSet
from syndicate.errors import NotAValue, ProtocolError
from syndicate.index.interest import expand, interest
from syndicate.values.pattern import pattern_of
from syndicate.values.text import unparse
from syndicate.values.value import DOUBLE, SEQ, Frozen, freeze, thaw
from tests.strategies import REFS, examples, values

wire_refs = st.builds(WireRef, st.just(0), st.integers(0, 9)) | st.builds(
    WireRef,
    st.just(1),
    st.integers(0, 9),
    st.lists(values(refs=False, max_leaves=3).map(freeze), max_size=2).map(tuple),
)


def through(form: Frozen) -> Frozen:
    """A packet encoded by one codec and decoded by another."""
    (packet,) = Msgpack().feed(Msgpack().encode(form))
    return packet


def in_pieces(codec: Msgpack, pieces: list[bytes]) -> list[Frozen]:
    """The packets in bytes that come in pieces."""
    return [form for piece in pieces for form in codec.feed(piece)]


@given(values(refs=False, wide=True))
def test_decode_inverts_encode(value: Any) -> None:
    """Every value arrives as the identical value, in its one frozen form."""
    form = freeze(value)
    assert through(form) == form
    assert freeze(thaw(through(form))) == form


@pytest.mark.parametrize(
    "text", ["1", "1.0", "#t", "0.0", "-0.0", '"a"', "a", '#"a"', "[]", "#{}", "{}", "<a>", "[a]", "#{a}"]
)
def test_look_alikes_stay_apart(text: str) -> None:
    """Values that Python confuses are as different after the wire as before."""
    from syndicate.values.text import parse

    assert unparse(thaw(through(freeze([parse(text)])))) == f"[{text}]"


@pytest.mark.parametrize(
    "bits", ["7ff8000000000001", "7ff0000000000001", "fff8000000000000", "8000000000000000", "7ff0000000000000"]
)
def test_doubles_keep_their_bits(bits: str) -> None:
    """A nan keeps its payload, minus zero its sign."""
    form = (SEQ, (DOUBLE, bytes.fromhex(bits)))
    assert through(form) == form


@given(st.lists(values(refs=False, max_leaves=3), max_size=4), st.data())
def test_any_chunking_gives_the_same_packets(items: list[Any], data: st.DataObject) -> None:
    """The bytes may come in pieces of any size."""
    encoder, decoder = Msgpack(), Msgpack()
    stream = b"".join([encoder.encode(freeze([item])) for item in items])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert in_pieces(decoder, pieces) == [freeze([item]) for item in items]


def texts(count: int) -> list[str]:
    """So many, in no order."""
    return [f"{n * 7919 % 8009}" for n in range(count)]


LARGE = {
    "events": write(TurnPacket([(0, (M, freeze(["v", n]))) for n in range(4000)])),
    "references": write(TurnPacket([(0, (A, (SEQ, WireRef(MINE, n)), n)) for n in range(2000)])),
    "rare at the end": (SEQ, *texts(4000), Symbol("new")),
    "a set": (SEQ, freeze(ValueSet(texts(8000)))),
    "a set of lists": (SEQ, freeze(ValueSet([(text, 1) for text in texts(2000)]))),
    "a dictionary": (SEQ, freeze(Dictionary([(text, 1) for text in texts(4000)]))),
}
"""Packets of thousands of values."""


@pytest.mark.parametrize("cut", [0, 1000])
@pytest.mark.parametrize("form", LARGE.values(), ids=LARGE)
def test_a_large_packet_is_read_in_parts(form: Frozen, cut: int) -> None:
    """Others may have their turns between them, however its bytes come and whoever reads it; it is what was sent."""
    data = Msgpack().encode(form)
    decoder = Msgpack()
    read_before = [*decoder.parts(data[:cut])] if cut else []
    assert set(read_before) <= {MORE}
    *between, packet = decoder.parts(data[cut:])
    assert packet == form
    assert {*between} == {MORE}
    assert len(between) >= 8000 // MEMBERS
    assert decoder.held == 0
    assert [*decoder.parts(data)][-1] == form, "and the next"


@pytest.mark.parametrize("value", [b"\xc1", b"\xd4\x07\x00", b"\xc0", b"\x90"])
def test_what_is_wrong_in_a_large_packet_is_found(value: bytes) -> None:
    """Also behind parts that have been read."""
    data = b"\xdc\x0f\xa0\xc0" + b"\x01" * 3998 + value
    with pytest.raises(ProtocolError):
        [*Msgpack().parts(data)]


@given(wire_refs)
def test_references(ref: WireRef) -> None:
    """References arrive as they were sent, caveats included."""
    assert through((SEQ, ref)) == (SEQ, ref)


def test_observe_goes_in_the_published_form() -> None:
    """An Observe of the core, expanded, is a record that any codec can send; a reference of the process is not."""
    form = expand(interest(pattern_of(["a", Record("b", [1])]), REFS[0]))
    with pytest.raises(NotAValue, match="cannot go over a connection"):
        Msgpack().encode(form)
    sendable = (*form[:2], WireRef(0, 7))
    assert through(sendable) == sendable


@settings(max_examples=examples(300))
@given(st.binary(max_size=200))
def test_noise_gives_protocol_errors_only(data: bytes) -> None:
    """So does plain noise."""
    try:
        for form in Msgpack().feed(data):
            read(form)
    except ProtocolError:
        pass


E = msgpack.ExtType


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ([], "empty array"),
        ([1, None], "stand first"),
        ([None, E(4, b"")], "stand first"),
        ([E(4, b""), 1, 1], "duplicate"),
        ([E(5, b""), 1], "key without a value"),
        ([E(5, b""), 1, 2, 1, 3], "duplicate"),
        ([None, E(4, b"x")], "extension of type 4"),
        ([None, E(9, b"")], "extension of type 9"),
        ([None, E(2, b"")], "extension of type 2"),
        ([None, E(2, b"\x01" * 513)], "extension of type 2"),
        ([None, E(1, b"\xff")], "utf-8"),
        ([None, E(3, msgpack.packb([0]))], "a reference is"),
        ([None, E(3, msgpack.packb([0, 1, 1]))], "a reference is"),
        ([None, E(3, msgpack.packb([1, 1, None]))], "stand first"),
        ([None, E(3, msgpack.packb(1))], "a reference is"),
        ([None, E(3, msgpack.packb([1, 1]) + b"\xc0")], "a reference that is cut"),
        ([None, E(3, msgpack.packb([2, 1]))], "a reference is"),
        ([None, E(3, msgpack.packb([True, 1]))], "a reference is"),
        ([None, E(3, msgpack.packb([1, -1]))], "a reference is"),
        ([None, E(3, msgpack.packb([1, 1, E(3, msgpack.packb([1, 1]))]))], "inside the caveats"),
        ([None, E(3, msgpack.packb([1, 1, *["c"] * 33]))], "33 caveats"),
        ([None, {}], "no value begins with 0x80"),
        ([None, {"a": 1}], "no value begins with 0x81"),
        ([None, msgpack.Timestamp(1)], "an extension of type 255"),
        ([None] * 70_000, "nested values"),
        ([None, *[[None, *[1] * 1000] for _ in range(100)]], "nested values"),
        ([E(4, b""), *range(40_000)], "a set of 40000 members, keys and values: at most 16384"),
        (None, "stand first"),
    ],
)
def test_what_is_refused(raw: Any, why: str) -> None:
    """What is msgpack but none of our values is refused, with the reason."""
    with pytest.raises(ProtocolError, match=why):
        list(Msgpack().feed(msgpack.packb(raw)))


def test_depth() -> None:
    """A value as deep as values may be passes; a deeper packet is refused, far below the depth that harms Python."""
    value: Any = 0
    for _ in range(128):
        value = [value]
    packet = write(TurnPacket([(0, (M, freeze(value)))]))
    assert through(packet) == packet
    for depth in (134, 1000, 5000):
        with pytest.raises(ProtocolError, match="levels of nesting"):
            list(Msgpack().feed(b"\x92\xc0" * depth + b"\x91\xc0"))


def test_nested_array_heads_reserve_nothing() -> None:
    """An array says how many it holds before any of it has come: heads without contents do not get far."""
    for head in (b"\xdd\x00\x00\x80\x00", b"\xdc\x80\x00"):
        codec = Msgpack()
        with pytest.raises(ProtocolError, match="nested values"):
            in_pieces(codec, [head * 10] * 100)
    codec = Msgpack()
    assert in_pieces(codec, [b"\xdd\x00\x00\x80\x00", b"\xc0"]) == []


def test_a_cut_packet_counts_once() -> None:
    """What there is of a packet that was cut is counted when it is whole, and only then."""
    form = freeze([*[Symbol("s" * 70 + str(i)) for i in range(60)], *[Symbol(str(i)) for i in range(30)]])
    limits = Limits(symbols=90, nodes=20_000)
    data = Msgpack().encode(form)
    for cut in range(0, len(data), 97):
        assert in_pieces(Msgpack(limits), [data[:cut], data[cut:]]) == [form]


def test_frame_limit() -> None:
    """A packet beyond the limit is refused, whether it is complete or not, and what is within passes."""
    small = Limits(frame=1000)
    assert list(Msgpack(small).feed(msgpack.packb([None, b"x" * 900]))) == [(SEQ, b"x" * 900)]
    for size in (1000, 1500, 100_000):
        data = msgpack.packb([None, b"x" * size])
        with pytest.raises(ProtocolError):
            list(Msgpack(small).feed(data))
        with pytest.raises(ProtocolError):
            in_pieces(Msgpack(small), [data[i : i + 100] for i in range(0, len(data), 100)])
    with pytest.raises(ProtocolError, match="more than 1000 bytes"):
        in_pieces(Msgpack(small), [b"\xdc\x10\x00" + b"\xc0" * 97] * 20)


def test_a_long_stream_is_not_a_long_packet() -> None:
    """The limit is of a packet, not of a connection."""
    codec, data = Msgpack(Limits(frame=1000)), msgpack.packb([None, b"x" * 500])
    assert sum(len(list(codec.feed(data))) for _ in range(100)) == 100


def test_what_cannot_be_sent() -> None:
    """The sender is notified of what the receiver would refuse, and can go on."""
    codec = Msgpack()
    for value, why in [
        ("\ud800", "surrogate"),
        (b"x" * DEFAULT.frame, "bytes"),
        ([[1]] * 40_000, "nested"),
        (2**5000, "integer"),
    ]:
        with pytest.raises(NotAValue, match=why):
            codec.encode(freeze([value]))
    assert list(codec.feed(codec.encode(freeze([1])))) == [(SEQ, 1)]


def test_integers_of_other_encoders() -> None:
    """Integers between ours and 64 bits may come as msgpack integers: they are the same values."""
    for number in (2**61 - 1, 2**63 - 1, 2**64 - 1, -(2**63)):
        assert list(Msgpack().feed(msgpack.packb([None, number]))) == [freeze([number])]
    assert list(Msgpack().feed(b"\x92\xc0\xca" + struct.pack(">f", 1.5))) == [freeze([1.5])]
    assert math.isnan(thaw(through(freeze([math.nan])))[0])
