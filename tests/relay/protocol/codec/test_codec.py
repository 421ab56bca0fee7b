"""What holds for all three codecs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.codec import MORE, Codec, Limits, Msgpack, Preserves, PreservesText, codec_for
from relay.protocol.codec.frozen_collection import MEMBERS
from relay.protocol.packets import A, Error, M, Nop, Packet, R, S, TurnPacket, WireRef, read, write
from syndicate import Dictionary, Symbol, ValueSet
from syndicate.errors import NotAValue, ProtocolError
from syndicate.values.value import DOUBLE, SEQ, Frozen, freeze
from tests.strategies import examples, values

CODECS = [Msgpack, Preserves, PreservesText]
each_codec = pytest.mark.parametrize("codec", CODECS)
forms = values(refs=False, wide=True).map(freeze)
wire_refs = st.builds(WireRef, st.sampled_from([0, 1]), st.integers(0, 300)) | st.builds(
    WireRef,
    st.just(1),
    st.integers(0, 9),
    st.lists(values(refs=False, max_leaves=3).map(freeze), max_size=2).map(tuple),
)


def through(codec: Any, form: Frozen) -> Frozen:
    """A packet encoded by one codec and decoded by another of its kind."""
    (packet,) = codec().feed(codec().encode(form))
    return packet


def in_pieces(codec: Codec, pieces: list[bytes]) -> list[Frozen]:
    """The packets in bytes that come in pieces."""
    return [form for piece in pieces for form in codec.feed(piece)]


@each_codec
@given(form=forms, ref=wire_refs)
def test_decode_inverts_encode(codec: Any, form: Frozen, ref: WireRef) -> None:
    """Every value and every reference arrives as it was sent."""
    packet = (SEQ, form, (Symbol("p"), ref, form))
    assert through(codec, packet) == packet


@each_codec
@given(items=st.lists(values(refs=False, wide=True, max_leaves=4), max_size=4), data=st.data())
def test_any_chunking_gives_the_same_packets(codec: Any, items: list[Any], data: st.DataObject) -> None:
    """The bytes may come in pieces of any size, cut anywhere, in characters and lengths too."""
    encoder = codec()
    sent = [freeze([item]) for item in items]
    stream = b"".join([encoder.encode(form) for form in sent])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert in_pieces(codec(), pieces) == sent
    assert in_pieces(codec(), [stream[i : i + 1] for i in range(len(stream))]) == sent


@each_codec
@pytest.mark.parametrize(
    "bits", ["7ff8000000000001", "7ff0000000000001", "fff8000000000000", "8000000000000000", "7ff0000000000000"]
)
def test_doubles_keep_their_bits(codec: Any, bits: str) -> None:
    """A nan keeps its payload, minus zero its sign."""
    form = (SEQ, (DOUBLE, bytes.fromhex(bits)))
    assert through(codec, form) == form


@each_codec
@settings(max_examples=examples(50))
@given(form=values(refs=False, wide=True, max_leaves=30).map(freeze), ref=wire_refs)
def test_what_can_be_sent_can_be_received(codec: Any, form: Frozen, ref: WireRef) -> None:
    """With the same limits, whatever they are, the encoder refuses what the decoder would."""
    packet = (SEQ, (SEQ, (SEQ, (SEQ, (SEQ, form, ref)))))
    for limits in (
        *(Limits(depth=1), Limits(nodes=25), Limits(nodes=100), Limits(entries=3), Limits(bignum=9), Limits(frame=40)),
        *(Limits(symbols=2), Limits(keyed=3), Limits(caveats=1)),
    ):
        encoder, decoder = codec(limits), codec(limits)
        for _ in range(2):
            try:
                data = encoder.encode(packet)
            except NotAValue:
                continue
            assert list(decoder.feed(data)) == [packet]


def _many(count: int) -> list[Symbol]:
    return [Symbol(f"symbol-{i}") for i in range(count)]


@each_codec
@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [
        ({"frame": 1000}, ["x" * 1000], "more than 1000 bytes"),
        ({"depth": 3}, [[[[[[[[[]]]]]]]]], "3 levels of nesting"),
        ({"nodes": 400}, [1] * 401, "(more than|or) (100|400) nested values|402 exceeds"),
        ({"entries": 10}, ValueSet(range(11)), "a set of 11 members"),
        ({"entries": 10}, dict.fromkeys(range(6), 1), "a dictionary of 12 members"),
        ({"bignum": 20}, [2**160], "integer of 21 bytes|49 digits|extension of type 2 and 21 bytes"),
        ({"symbols": 10}, _many(11), "more than 10 new symbols"),
        ({"keyed": 10}, ValueSet([("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]), "more than 10 values inside"),
        ({"keyed": 15}, ValueSet([1, ValueSet([1, ("x", "y", "z")])]), None),
        ({"keyed": 10}, ValueSet([1, ValueSet([1, ("x", "y", "z")])]), "more than 10 values inside"),
    ],
)
def test_limits(codec: Any, limit: dict[str, Any], value: Any, why: str | None) -> None:
    """Each limit stops what is beyond it, wherever it is cut, says what and how much, and stops the encoder too."""
    form, limits = freeze(value), Limits(**limit)
    data = codec(Limits()).encode(form)
    if why is None:
        assert list(codec(limits).feed(codec(limits).encode(form))) == [form]
        return
    for size in (len(data), 1, 7, 100):
        with pytest.raises(ProtocolError, match=why):
            in_pieces(codec(limits), [data[i : i + size] for i in range(0, len(data), size)])
    with pytest.raises(NotAValue):
        codec(limits).encode(form)


@each_codec
def test_caveats_are_bounded(codec: Any) -> None:
    """So are the caveats of one reference."""
    form = (SEQ, WireRef(1, 5, ("c",) * 33))
    data = codec(Limits(caveats=40)).encode(form)
    with pytest.raises(ProtocolError, match="33 caveats: at most 32"):
        list(codec().feed(data))
    with pytest.raises(NotAValue, match="33 caveats"):
        codec().encode(form)


@each_codec
def test_what_cannot_be_sent_leaves_no_trace(codec: Any) -> None:
    """What is refused on its way out counts neither for what comes in nor for what goes out next."""
    limits = Limits(nodes=30, depth=3, entries=5, keyed=5, symbols=5)
    form = (SEQ, "x", (SEQ, 1))
    too_much = ([1] * 31, [[[[[[[[[1]]]]]]]]], dict.fromkeys(range(9), 1), [Symbol(f"{n}") for n in range(9)])
    for value in too_much:
        ours = codec(limits)
        with pytest.raises(NotAValue):
            ours.encode(freeze([value, value]))
        assert list(ours.feed(codec().encode(form))) == [form]
        assert ours.encode(form) == codec().encode(form)


@each_codec
def test_depth(codec: Any) -> None:
    """A value as deep as values may be passes, with references in it; one that is deeper does not."""
    value: Any = 0
    for _ in range(127):
        value = [value]
    packet = write(TurnPacket([(0, (M, (SEQ, freeze(value), WireRef(0, 1))))]))
    assert through(codec, packet) == packet
    opening = {Msgpack: b"\x92\xc0", Preserves: b"\xb5", PreservesText: b"["}[codec]
    for depth in (134, 1000, 5000):
        with pytest.raises(ProtocolError, match=r"levels of nesting|StackError"):
            list(codec().feed(opening * depth + opening))


@each_codec
def test_a_stream_is_not_a_packet(codec: Any) -> None:
    """The limits are of a packet, not of a connection, nor of what is read at a time."""
    limits = Limits(frame=1000, nodes=100, symbols=20, keyed=20)
    form = freeze([Symbol("a"), ValueSet([("x", i) for i in range(2)]), "x" * 500])
    data = codec(limits).encode(form)
    one, all_at_once = codec(limits), codec(limits)
    assert [form for _ in range(100) for form in one.feed(data)] == [form] * 100
    assert list(all_at_once.feed(data * 100)) == [form] * 100
    fresh = codec(limits)
    for i in range(300):
        form = (SEQ, *[Symbol(f"{codec.__name__}-{i}-{k}") for k in range(5)])
        assert list(fresh.feed(codec(limits).encode(form))) == [form]


@each_codec
def test_long_symbols_are_not_kept(codec: Any) -> None:
    """What a codec remembers of a peer is small, whatever names the peer thinks up."""
    encoder, decoder = codec(), codec()
    for i in range(50):
        form = (SEQ, Symbol(str(i) + "x" * 1000), Symbol(f"short-{i}"))
        assert list(decoder.feed(encoder.encode(form))) == [form]
    facts, first = (each._symbols if codec is Msgpack else each._parts.symbols for each in (decoder, codec()))
    assert len(facts) == len(first) + 50
    assert max(map(len, facts)) < 65


@each_codec
def test_what_cannot_be_sent(codec: Any) -> None:
    """The sender is notified of what the receiver would refuse, and can go on."""
    sender = codec()
    for value, why in [
        ("\ud800", "surrogate"),
        (b"x" * (1 << 20), "bytes"),
        ([[1]] * 40_000, "nested"),
        (2**5000, "int"),
    ]:
        with pytest.raises(NotAValue, match=why):
            sender.encode(freeze([value]))
    assert list(codec().feed(sender.encode(freeze([1])))) == [(SEQ, 1)]


PACKETS: list[Packet] = [
    TurnPacket([]),
    TurnPacket([(0, (R, 1)), (3, (A, "x", 2)), (1, (S, WireRef(0, 3)))]),
    Error("why", 1),
    Nop(),
]


@each_codec
@pytest.mark.parametrize("packet", PACKETS)
def test_the_first_byte_chooses_the_codec(codec: Any, packet: Packet) -> None:
    """Every packet of a codec starts with one of its first bytes."""
    data = codec().encode(write(packet))
    chosen = codec_for(data[0])
    assert type(chosen) is codec
    assert list(map(read, chosen.feed(data))) == [packet]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"G", r"HTTP request, as it seems: it begins with 'G'\. For WebSockets listen on ws://"),
        (b"P", "HTTP"),
        (b"O", "HTTP"),
        (b"\x16", "TLS"),
        (b"x", "no codec that we know: its first byte is 0x78"),
        (b"\x00", "no codec"),
        (b"\xff", "no codec"),
    ],
)
def test_other_first_bytes(first: bytes, why: str) -> None:
    """Others are distinguished, and what they may be is said."""
    with pytest.raises(ProtocolError, match=why):
        codec_for(first[0])


@pytest.mark.parametrize("name", ["Msgpack", "Preserves", "PreservesText"])
@pytest.mark.parametrize("cut", [1 << 22, 1 << 16])
def test_small_compounds_stay_small(name: str, cut: int) -> None:
    """Four MiB of empty compounds, with a frame of eight allowed, are refused before they are 300 MiB of memory."""
    program = f"""
import resource
from relay.protocol.codec import {name}, Limits
from syndicate.errors import ProtocolError
frames = {{
    "Msgpack": [b"\\xdd\\x00\\x3f\\xff\\x00" + b"\\x90" * (1 << 22), b"\\x92\\xc0" * (1 << 21),
                (b"\\x9f" + b"\\x90" * 15) * (1 << 18), b"\\xdd\\x00\\x00\\xc0\\x00" * (1 << 19)],
    "Preserves": [b"\\xb5" + b"\\xb5\\x84" * (1 << 21), b"\\xb7" + b"\\x80" * (1 << 22), b"\\x85" * (1 << 22)],
    "PreservesText": [b"[" + b"[]" * (1 << 21), b"#{{" + b"#t " * (1 << 20), b"@" * (1 << 22), b"#\\n" * (1 << 21)],
}}["{name}"]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for frame in frames:
    codec = {name}(Limits(frame=8 << 20))
    try:
        for at in range(0, len(frame), {cut}):
            for form in codec.feed(frame[at : at + {cut}]):
                pass
    except ProtocolError:
        pass
    else:
        raise SystemExit("not refused: " + repr(frame[:20]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 30 * 1024


@each_codec
@pytest.mark.parametrize("what", [ValueSet, lambda texts: Dictionary([(text, 1) for text in texts])])
def test_large_collections_are_made_in_parts(codec: Any, what: Any) -> None:
    """Others may have their turns while members or keys are hashed and sorted, and not only while they are read."""
    texts = [f"{n * 7919 % 8009}" for n in range(3000)]

    def parts(form: Frozen) -> int:
        *between, packet = codec().parts(codec().encode(form))
        assert packet == form
        assert {*between} <= {MORE}
        return len(between)

    collection = what(texts)
    items = [item for pair in collection.items() for item in pair] if isinstance(collection, Dictionary) else texts
    assert parts((SEQ, freeze(collection))) - parts((SEQ, freeze(items))) >= 2 * len(texts) // MEMBERS


@each_codec
def test_a_large_set_goes_on_behind_a_cut(codec: Any) -> None:
    """Wherever its bytes are cut, with what comes behind it."""
    form, other = (SEQ, freeze(ValueSet(range(1000, 2200)))), (SEQ, "other")
    data = codec().encode(form) + codec().encode(other)
    for cut in range(1, len(data), 997):
        decoder = codec()
        read = [*decoder.parts(data[:cut]), *decoder.parts(data[cut:])]
        assert [packet for packet in read if packet is not MORE] == [form, other]
        assert decoder.held == 0
