"""Messages of a million bytes: of what is done for one, others wait for a part at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from relay.protocol.codec import MORE, Msgpack, Preserves
from relay.protocol.limits import DEFAULT
from relay.protocol.packets import A, Extension, M, Nop, write
from relay.session import session, usual_packets
from relay.session.backlog import weight
from relay.transport.stream import CHUNK
from syndicate import Symbol, capture, dataspace
from syndicate.actors.system import System
from syndicate.values.value import SEQ, Frozen, freeze
from tests.relay.session.test_charges import BIG, message, observe, turn
from tests.relay.session.test_link import Sipping, begin
from tests.relay.wire import Wire
from tests.waiting import until


def test_a_large_packet_is_put_together_read_and_done_in_three_stretches() -> None:
    """All the while it is held, and accounted; a small packet behind it waits for no stretch of its own."""
    form, codec = write(turn((M, freeze(["big", BIG])))), Msgpack()
    data = codec.encode(form)
    pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    pieces[-1] += codec.encode(write(turn((M, "small"))))
    held: list[int] = []
    for piece in pieces[:-1]:
        assert list(codec.parts(piece)) == []
    came: list[Frozen] = []
    for each in codec.parts(pieces[-1]):
        came.append(each)
        held.append(codec.held)
    assert came == [MORE, MORE, form, write(turn((M, "small")))]
    assert held == [len(data), len(data), 0, 0]


@pytest.mark.parametrize("codec", [Msgpack, Preserves])
@pytest.mark.parametrize("count", [2, 20, 60, 200])
def test_of_large_notifications_one_is_written_at_a_stretch(
    codec: type[Msgpack | Preserves], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few they are: what is encoded between two looks at the sockets is no more than a packet may be."""
    wire = Wire(dataspace, codec=codec)
    wire.right.inject(turn(*[(M, "first")], *[_observing(number) for number in range(count)]))
    wire.system.drain()
    written = [0]
    encode = codec.encode

    def counted(writer: Any, form: Frozen) -> bytes:
        written[-1] += weight(form)
        data: bytes = encode(writer, form)
        return data

    say_usual = usual_packets.say_usual

    def counted_usual(*arguments: Any) -> tuple[bytes, int] | None:
        usual = say_usual(*arguments)
        written[-1] += len(usual[0]) if usual else 0
        return usual

    monkeypatch.setattr(codec, "encode", counted)
    monkeypatch.setattr(session, "say_usual", counted_usual)
    wire.system.inlet = lambda: written.append(0)
    wire.right.blocked = True
    wire.act(wire.right, lambda: message(wire.right.published, (SEQ, BIG)))
    assert sum(written) > len(BIG)
    assert max(written) < 2 * DEFAULT.frame


def _observing(number: int) -> Any:
    """An interest of the peer's in whatever is a list of one."""
    return A, observe([capture()], number), number + 1


class Counting(Sipping):
    """A stream that notes how many bytes it is to take at once."""

    def __init__(self) -> None:
        super().__init__([1 << 30])
        self.tried = [0]

    def send_now(self, packets: Sequence[bytes]) -> Sequence[bytes]:
        self.tried.append(sum(map(len, packets)))
        return super().send_now(packets)


async def test_a_large_packet_is_left_to_who_may_wait(system: System) -> None:
    """A socket takes a part of it only, and the rest would be copied; it arrives in its place."""
    stream = Counting()
    peer = begin(system, stream, DEFAULT)
    stream.say(Nop())
    await until(lambda: peer.packets_in == 1)
    for text in ("before", BIG, "behind"):
        peer.say(Extension((Symbol("text"), text)))
    await until(lambda: len(stream.sent) == 3)
    said = [packet.form for _, packet in stream.sent if isinstance(packet, Extension)]
    assert said == [(Symbol("text"), text) for text in ("before", BIG, "behind")]
    assert 0 < max(stream.tried) <= CHUNK
