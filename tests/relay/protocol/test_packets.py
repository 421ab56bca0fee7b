"""Packets as values."""

from __future__ import annotations

import pytest

from relay.protocol.packets import MINE, A, Error, Extension, M, Nop, Packet, R, S, TurnPacket, WireRef, read, write
from syndicate import Symbol
from syndicate.errors import ProtocolError
from syndicate.values.value import FALSE, SEQ, TRUE, Frozen, freeze


@pytest.mark.parametrize(
    "packet",
    [
        TurnPacket([]),
        TurnPacket([(0, (A, freeze({"k": [1]}), 5)), (7, (R, 5)), (0, (M, FALSE)), (2, (S, WireRef(MINE, 3)))]),
        Error("why", freeze(["detail"])),
        Extension((Symbol("later"), 1)),
        Extension((Symbol("error"), 1)),
        Extension(("error", "why", 1)),
        Nop(),
    ],
)
def test_read_inverts_write(packet: Packet) -> None:
    """Each packet is a value and can be had back from it."""
    assert read(write(packet)) == packet


@pytest.mark.parametrize(
    "entry",
    [
        1,
        (SEQ,),
        (SEQ, 0),
        (SEQ, -1, (R, 1)),
        (SEQ, TRUE, (R, 1)),
        (SEQ, 0, "R"),
        (SEQ, 0, (R,)),
        (SEQ, 0, (R, "1")),
        (SEQ, 0, (R, 1, 2)),
        (SEQ, 0, (A, "value")),
        (SEQ, 0, (A, "value", "handle")),
        (SEQ, 0, (A, "value", TRUE)),
        (SEQ, 0, (A, "value", -1)),
        (SEQ, 0, (A, "value", freeze(2**61 - 1))),
        (SEQ, 0, (R, -1)),
        (SEQ, freeze(2**61 - 1), (R, 1)),
        (SEQ, 0, (M,)),
        (SEQ, 0, (S, 1)),
        (SEQ, 0, (Symbol("X"), 1)),
        (SEQ, 0, ("R", 1)),
        (SEQ, 0, (SEQ, R, 1)),
        (SEQ, 0, (R, 1), "more"),
        (R, 0, (R, 1)),
    ],
)
def test_what_is_no_entry(entry: Frozen) -> None:
    """A turn with anything else in it is refused."""
    with pytest.raises(ProtocolError, match="an entry of a turn is"):
        read((SEQ, (SEQ, 0, (R, 1)), entry))


@pytest.mark.parametrize("form", [1, "text", TRUE, Symbol("nop"), freeze({}), freeze({1}), freeze(1.5)])
def test_what_is_no_packet(form: Frozen) -> None:
    """A packet is a sequence, a record or false."""
    with pytest.raises(ProtocolError, match="not a packet"):
        read(form)
