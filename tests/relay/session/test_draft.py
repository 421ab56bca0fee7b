"""A packet that is written in parts: the same as if it were written at once, and within the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.codec import Codec, Limits, Msgpack, Preserves, PreservesText
from relay.protocol.limits import DEFAULT
from relay.protocol.packets import MINE, A, M, R, WireRef, read_entries
from relay.session.draft import Draft, Entry
from syndicate import Symbol
from syndicate.errors import NotAValue, ProtocolError
from syndicate.values.value import SEQ, freeze
from tests.strategies import examples

CODECS = [Msgpack, Preserves, PreservesText]

values = st.one_of(
    st.integers(),
    st.text(max_size=5),
    st.integers(0, 40).map(lambda n: Symbol(f"s{n}")),
    st.frozensets(st.integers(0, 5), max_size=3),
    st.lists(st.integers(0, 300), max_size=5),
    st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=3),
)
bodies = st.one_of(values.map(freeze), st.integers(0, 300).map(lambda n: (SEQ, "at", WireRef(MINE, n))))
events = st.one_of(
    st.tuples(st.just(A), bodies, st.integers(1, 1 << 20)),
    st.tuples(st.just(M), bodies),
    st.tuples(st.just(R), st.integers(1, 1 << 20)),
)
parts = st.lists(st.lists(events.map(lambda event: (SEQ, 0, event)), min_size=1, max_size=20), min_size=1, max_size=8)


def written(codec: Callable[[Limits], Codec], parts: list[list[Entry]], limits: Limits = DEFAULT) -> list[bytes]:
    """The packets that a draft of *parts* becomes."""
    draft = Draft(codec(limits))
    assert all(draft.add(part) for part in parts)
    return draft.packets()


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=examples(40))
@given(parts=parts)
def test_it_is_what_is_written_at_once(codec: Callable[[Limits], Codec], parts: list[list[Entry]]) -> None:
    """Whatever is in it, and wherever it is divided."""
    assert written(codec, parts) == [codec(DEFAULT).encode((SEQ, *[entry for part in parts for entry in part]))]


@pytest.mark.parametrize("bounds", [{"nodes": 200}, {"frame": 600}, {"symbols": 8}, {"keyed": 12}])
@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=examples(40))
@given(parts=parts)
def test_it_is_within_the_limits(
    codec: Callable[[Limits], Codec], bounds: dict[str, Any], parts: list[list[Entry]]
) -> None:
    """Whoever reads it with the same limits takes it; what would be too much goes in its parts."""
    limits = evolve(DEFAULT, **bounds)
    draft, count, said = Draft(codec(limits)), 0, 0
    for part in parts:
        if draft.add(part):
            count += len(part)
        draft.entries.clear()
    for packet in draft.packets():
        (form,) = codec(limits).feed(packet)
        assert isinstance(form, tuple)
        said += len(read_entries(form[1:]))
    assert said == count


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_as_much_as_may_be_is_one_packet(codec: Callable[[Limits], Codec]) -> None:
    """4096 small events, for which the limits are made; in text, a quarter."""
    count = min(DEFAULT.events, codec(DEFAULT).limits.nodes // 12)
    entries: list[Entry] = [(SEQ, 0, (A, (SEQ, 1, 2), 1 + number)) for number in range(count)]
    whole = codec(DEFAULT).encode((SEQ, *entries))
    assert written(codec, [entries[at : at + 128] for at in range(0, len(entries), 128)]) == [whole]


@pytest.mark.parametrize("codec", CODECS)
def test_what_has_no_encoding_is_kept(codec: Callable[[Limits], Codec]) -> None:
    """And all that follows, so that nothing is said before it."""
    draft = Draft(codec(DEFAULT))
    good: Entry = (SEQ, 0, (M, "good"))
    bad: Entry = (SEQ, 0, (M, "\ud800"))
    assert draft.add([good])
    assert not draft.add([good, bad])
    assert not draft.add([good])
    assert draft.entries == [good, bad, good]
    with pytest.raises((NotAValue, ProtocolError)):
        codec(DEFAULT).encode((SEQ, bad))
