"""Frames that are taken apart here, against wsproto, which knows the whole protocol."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, Message, Ping, TextMessage

from relay.transport.websocket_frames import FRAMES, STRETCH, Foreign, Frames, binary_frame
from tests.strategies import examples

said = st.one_of(
    st.builds(
        lambda size: BytesMessage(data=bytes(range(256)) * (size // 256) + b"x" * (size % 256)),
        st.sampled_from([0, 1, 5, 125, 126, 127, 300, 5000, 70_000]),
    ),
    st.builds(lambda text, last: TextMessage(data=text, message_finished=last), st.text(max_size=9), st.just(True)),
    st.builds(lambda data: Ping(payload=data), st.binary(max_size=9)),
    st.just("in parts"),
)


def apart(frames: Frames, data: bytes) -> list[bytes | Foreign]:
    """All that *data* brings, a stretch at a time."""
    parts = frames.split(data)
    while frames.left:
        more = frames.split(b"")
        assert sum(isinstance(part, Foreign) for part in more) <= STRETCH
        parts += more
    return parts


def whole(events: list[object]) -> list[tuple[str, bytes]]:
    """Messages and pings, each in one; messages that follow one another as one, as packets do."""
    results: list[tuple[str, bytes]] = []

    def add(data: bytes) -> None:
        if results and results[-1][0] == "message":
            data = results.pop()[1] + data
        if data:
            results.append(("message", data))

    begun = b""
    for event in events:
        if isinstance(event, Message):
            begun += event.data.encode() if isinstance(event, TextMessage) else bytes(event.data)
            if event.message_finished:
                add(begun)
                begun = b""
        elif isinstance(event, bytes):
            assert not begun, "a frame of its own inside of a message"
            add(event)
        elif isinstance(event, Ping):
            results.append(("ping", bytes(event.payload)))
    return results


@settings(max_examples=examples(60))
@given(
    events=st.lists(said, max_size=6),
    cuts=st.lists(st.integers(1, 6000), min_size=1, max_size=8),
    serves=st.booleans(),
)
def test_whatever_pieces_come_the_library_would_have_found_the_same(
    events: list[object], cuts: list[int], serves: bool
) -> None:
    """Messages and pings, in order, whichever side speaks, and however its bytes are cut."""
    other, ours = (ConnectionType.CLIENT, ConnectionType.SERVER)[:: 1 if serves else -1]
    speaker, alone, beside = Connection(other), Connection(ours), Connection(ours)
    data = b""
    for event in events:
        if event == "in parts":
            data += speaker.send(BytesMessage(data=b"one", message_finished=False))
            data += speaker.send(Ping(payload=b"between"))
            data += speaker.send(BytesMessage(data=b"two", message_finished=True))
        else:
            data += speaker.send(event)  # type: ignore[arg-type]  # the strategies are of events
    alone.receive_data(data)
    frames, got, at, number = Frames(serves, 1 << 20), list[object](), 0, 0
    while at < len(data):
        size = cuts[number % len(cuts)]
        for part in apart(frames, data[at : at + size]):
            if isinstance(part, Foreign):
                beside.receive_data(part.data)
                got += beside.events()
            else:
                got.append(part)
        at, number = at + size, number + 1
    assert whole(got) == whole([*alone.events()])


def test_a_message_in_too_many_frames_is_excessive() -> None:
    """What is in them does not matter: each costs its time."""
    frames = Frames(masked=False, most=1 << 20)
    parts = apart(frames, b"\x02\x01x" + b"\x00\x01x" * (FRAMES + 1))
    assert all(isinstance(part, Foreign) for part in parts)
    assert [part.excessive for part in parts if isinstance(part, Foreign)][-1]
    assert not any(part.excessive for part in parts[:FRAMES] if isinstance(part, Foreign))


def test_frames_for_the_library_are_few_at_a_stretch() -> None:
    """The library takes long for each, however small it is: others have their turns meanwhile."""
    frames = Frames(masked=False, most=1 << 20)
    assert len(frames.split(b"\x89\x00" * 100)) == STRETCH
    assert frames.left
    assert len(apart(frames, b"\x89\x00" * 10)) == 110 - STRETCH
    assert frames.split(binary_frame(b"x") * 100) == [b"x" * 100]
    assert not frames.left


@given(st.sampled_from([0, 1, 125, 126, 65535, 65536, 70_000]))
def test_a_frame_of_ours_is_read_by_the_library(size: int) -> None:
    """As one binary message."""
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(binary_frame(b"x" * size))
    assert whole([*client.events()]) == ([("message", b"x" * size)] if size else [])
