"""Binary Preserves against the independent library, and against the bytes that existing programs send."""

from __future__ import annotations

from typing import Any

import preserves
import pytest
from hypothesis import given

from relay.protocol.codec import Limits, Preserves
from relay.protocol.packets import A, M, R, S, TurnPacket, WireRef, read, write
from syndicate import Dictionary, Record, Symbol, ValueSet
from syndicate.errors import ProtocolError
from syndicate.values.value import BIG, DOUBLE, FALSE, SEQ, TRUE, Frozen, Value, freeze, is_record, thaw
from tests.relay.protocol.codec.test_codec import forms, in_pieces, wire_refs


def theirs(form: Frozen) -> Any:
    """The form in the library's classes; raises ValueError for what those cannot hold."""
    if type(form) is Symbol:
        return preserves.Symbol(form.name)
    if type(form) is WireRef:
        return preserves.Embedded((form.whose, form.oid, *map(theirs, form.caveats)))
    if type(form) is not tuple:
        return form
    if type(form[0]) is not type(SEQ):
        return preserves.Record(theirs(form[0]), [theirs(field) for field in form[1:]])
    value = thaw(form)
    if isinstance(value, Dictionary):
        pairs = [(theirs(key), theirs(item)) for key, item in zip(form[1], form[2], strict=True)]
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("1 and True are one key for it")
        return preserves.ImmutableDict(pairs)
    if isinstance(value, ValueSet):
        members = [theirs(member) for member in form[1:]]
        if len({*members}) < len(members):
            raise ValueError("1 and True are one member for it")
        return frozenset(members)
    return tuple([theirs(item) for item in form[1:]]) if isinstance(value, tuple) else value


def ours(value: Any) -> Value:
    """A value of the library's as ours."""
    if isinstance(value, preserves.Symbol):
        return Symbol(value.name)
    if isinstance(value, preserves.Record):
        return Record.labelled(ours(value.key), map(ours, value.fields))
    if isinstance(value, tuple):
        return tuple(map(ours, value))
    if isinstance(value, frozenset):
        return ValueSet(map(ours, value))
    if isinstance(value, dict):
        return Dictionary([(ours(key), ours(item)) for key, item in value.items()])
    assert not is_record(value)
    return value


def one(data: bytes, limits: Limits | None = None) -> Frozen:
    """The packet that these bytes are."""
    (form,) = Preserves(limits or Limits()).feed(data)
    return form


def holds_nan(form: Frozen) -> bool:
    """Whether a nan is in it, of which the library makes another one."""
    return "nan" in repr(thaw(form))


@given(forms)
def test_the_library_reads_what_we_write(form: Frozen) -> None:
    """And gets the same value, as far as it can hold it."""
    try:
        value = theirs(form)
    except ValueError:
        return
    read_by_them = preserves.decode(Preserves().encode(form))
    if not holds_nan(form):
        assert preserves.preserve(read_by_them) == preserves.preserve(value)
        assert freeze(ours(read_by_them)) == form


@given(forms)
def test_we_read_what_the_library_writes(form: Frozen) -> None:
    """In its own order, and canonically."""
    try:
        value = theirs(form)
    except ValueError:
        return
    if not holds_nan(form):
        assert one(preserves.encode(value)) == form
        assert one(preserves.canonicalize(value)) == form


@given(wire_refs)
def test_references_as_the_library_has_them(ref: WireRef) -> None:
    """An embedded value is a sequence of numbers and caveats."""
    try:
        value = theirs((SEQ, ref))
    except ValueError:
        return
    if holds_nan((SEQ, *ref.caveats)):
        return
    encoded = preserves.encode(value, encode_embedded=lambda content: content)
    assert one(encoded) == (SEQ, ref)
    assert preserves.decode(Preserves().encode((SEQ, ref)))[0].embeddedValue == value[0].embeddedValue


FIRST = bytes.fromhex(
    "b5 b5 b000 b4 b30141 b4 b3077265736f6c7665 b4 b303726566 b7 b3036f6964 b10973796e646963617465 b303736967"
    "b210 69ca300c1dbfa08fba692102dd82311a 84 84 86 b5b000b00084 84 b00101 84 84 84"
)
"""The first packet that syndicate-py 0.19.3 sends, as it was recorded."""


def test_the_first_packet_of_syndicate_py() -> None:
    """Its bytes are the packet that syndicate-py sends, and the packet is its bytes."""
    key = bytes.fromhex("69ca300c1dbfa08fba692102dd82311a")
    ref = Record("ref", [{Symbol("oid"): "syndicate", Symbol("sig"): key}])
    resolve = (Symbol("resolve"), freeze(ref), WireRef(0, 0))
    packet = TurnPacket([(0, (A, resolve, 1))])
    assert read(one(FIRST)) == packet
    assert Preserves().encode(write(packet)) == FIRST


@pytest.mark.parametrize(
    ("data", "form"),
    [
        ("80", FALSE),
        ("81", TRUE),
        ("b000", 0),
        ("b00101", 1),
        ("b001ff", -1),
        ("b0020080", 128),
        ("b10161", "a"),
        ("b30141", A),
        ("b20100", b"\0"),
        ("87083ff0000000000000", freeze(1.0)),
        ("b584", (SEQ,)),
        ("b684", freeze(frozenset())),
        ("b784", freeze({})),
        ("b4b30141b0010184", (A, 1)),
        ("86b5b000b0010584", WireRef(0, 5)),
        ("86b5b00101b0010584", WireRef(1, 5)),
        ("86b5b00101b00105b3016384", WireRef(1, 5, (Symbol("c"),))),
    ],
)
def test_published_tags(data: str, form: Frozen) -> None:
    """Each tag of the table, both ways."""
    assert one(bytes.fromhex(data)) == form
    assert Preserves().encode(form).hex() == data


def test_the_doubly_embedded_sync() -> None:
    """`<S #:#:[0 3]>`, as syndicate-py sends it, is the sync that it means; three times is too much."""
    entry = "b5 b5 b00102 b4 b30153 {} 84 84 84"
    for peer in (
        "86b5b000b0010384",
        "8686b5b000b0010384",
        "8685b3016186b5b000b0010384",
        "868585b3016180b5b000b0010384",
    ):
        assert read(one(bytes.fromhex(entry.format(peer)))) == TurnPacket([(2, (S, WireRef(0, 3)))])
    with pytest.raises(ProtocolError, match="three times"):
        one(bytes.fromhex(entry.format("868686b5b000b0010384")))


@pytest.mark.parametrize(
    ("data", "form"),
    [
        ("b0020001", 1),
        ("b003ffffff", -1),
        ("b00100", 0),
        ("b00a" + "00" * 8 + "0102", 258),
        ("b00a" + "ff" * 9 + "80", -128),
        ("b00a" + "00" * 2 + "7f" + "ff" * 7, freeze(2**63 - 1)),
        ("b008" + "80" + "00" * 7, freeze(-(2**63))),
        ("b0081fffffffffffffff", freeze(2**61 - 1)),
        ("b0081ffffffffffffffe", 2**61 - 2),
    ],
)
def test_integers_with_more_bytes_than_they_need(data: str, form: Frozen) -> None:
    """Are the same integers, in their one frozen form."""
    assert one(bytes.fromhex(data)) == form
    shortest = Preserves().encode(form)
    assert shortest == preserves.encode(thaw(form))
    assert type(form) is int or form[0] is BIG


@pytest.mark.parametrize(
    ("data", "form"),
    [
        ("85 b30161 b00101", 1),
        ("85 b30161 85 b30162 b00101", 1),
        ("85 85 b30161 b30162 b00101", 1),
        ("b5 85 b584 b00101 84", (SEQ, 1)),
        ("b4 85 80 b30141 b00101 84", (A, 1)),
        ("b7 85 80 b00101 85 81 b00102 84", freeze({1: 2})),
        ("b5 85 86b5b000b0010584 b00101 84", (SEQ, 1)),
        ("85 b5 85 80 81 84 b584", (SEQ,)),
    ],
)
def test_annotations_are_dropped(data: str, form: Frozen) -> None:
    """Wherever they stand, in each other too; nodes and depth are counted."""
    assert one(bytes.fromhex(data)) == form
    with pytest.raises(ProtocolError, match="nested values"):
        one(b"\x85\x80" * 40 + b"\x80", Limits(nodes=60))
    with pytest.raises(ProtocolError, match="levels of nesting"):
        one(b"\x85" * 200)


def test_any_order_and_no_duplicates() -> None:
    """Keys and members in any order are one value; the same twice, by value identity, is an error."""
    assert one(bytes.fromhex("b7 b00102 80 b00101 80 84")) == freeze({1: False, 2: False})
    assert one(bytes.fromhex("b7 81 80 b00101 80 87083ff0000000000000 80 84")) == freeze(
        Dictionary([(1, False), (True, False), (1.0, False)])
    )
    for data in ("b6 b00101 b0020001 84", "b7 b30161 80 b30161 81 84", "b6 b584 b584 84"):
        with pytest.raises(ProtocolError, match="duplicate"):
            one(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("84", "an end where a value should be"),
        ("b5 85 84", "an end where"),
        ("86 84", "an end where"),
        ("b484", "without a label"),
        ("b7 80 84", "key without a value"),
        ("82", "there is no tag 0x82"),
        ("b8", "0xb8"),
        ("00", "0x00"),
        ("87043f800000", "a float of 4 bytes"),
        ("b101ff", "not UTF-8"),
        ("b302c328", "not UTF-8"),
        ("b103eda080", "not UTF-8"),
        ("b1808080808001", "more bytes than it needs"),
        ("b18100" + "00", "more bytes than it needs"),
        ("b1ffffff7f", "more than 1048576 bytes"),
        ("b082" + "04" + "7f" * 514, "an integer of 514 bytes: at most 512"),
        ("86 80", "a reference is"),
        ("86 b584", "a reference is"),
        ("86 b5 b000 84", "a reference is"),
        ("86 b5 b00102 b000 84", "a reference is"),
        ("86 b5 b000 b001ff 84", "a reference is"),
        ("86 b5 80 b000 84", "a reference is"),
        ("86 b5 b000 b000 80 84", "a reference is"),
        ("86 b5 b000 b008 7fffffffffffffff 84", "a reference is"),
        ("86 b5 b00101 b000 86b5b000b00084 84", "inside the caveats"),
        ("86 b5 86b5b000b00084 b000 84", "inside the caveats"),
    ],
)
def test_what_is_refused(data: str, why: str) -> None:
    """What is no Preserves, or no value of ours, is refused with the reason, however it is cut."""
    with pytest.raises(ProtocolError, match=why):
        list(Preserves().feed(bytes.fromhex(data)))
    with pytest.raises(ProtocolError, match=why):
        in_pieces(Preserves(), [bytes([byte]) for byte in bytes.fromhex(data)])


def test_nops_between_packets() -> None:
    """Padding with `#f`, which is a Nop, is packets that say nothing."""
    assert list(Preserves().feed(b"\x80\x80" + Preserves().encode((SEQ,)) + b"\x80")) == [FALSE, FALSE, (SEQ,), FALSE]


def test_a_big_packet_is_looked_at_once() -> None:
    """A long string, and many values, in pieces of a few bytes, take processor time in proportion to their bytes."""
    import time

    def cost(form: Frozen) -> float:
        data, times = Preserves().encode(form), []
        for _ in range(3):
            codec, began = Preserves(), time.thread_time()
            got = [packet for i in range(0, len(data), 16) for packet in codec.feed(data[i : i + 16])]
            times.append(time.thread_time() - began)
            assert got == [form]
        return min(times)

    # Quadratic they would be 900.
    assert cost((SEQ, "x" * 900_000)) < 200 * cost((SEQ, "x" * 30_000))
    assert cost((SEQ, *[(SEQ, i) for i in range(12_000)])) < 200 * cost((SEQ, *[(SEQ, i) for i in range(400)]))


def test_messages_and_retractions() -> None:
    """A longer turn, both ways."""
    packet = TurnPacket([(1, (M, freeze({"k": [2**70, 1.5]}))), (2, (R, 300)), (3, (S, WireRef(1, 70_000)))])
    assert read(one(Preserves().encode(write(packet)))) == packet
    assert DOUBLE in packet.entries[0][1][1][2][0][2]
