"""What a packet both asserts and retracts: a dataspace does not keep it, if it reaches nobody."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.packets import A, M, R
from relay.session import packet_events, session
from relay.session.packet_events import Understood
from relay.session.peer_assertions import PeerAssertion
from syndicate import ANY, Ref, capture, dataspace, send, spawn
from syndicate.actors.dataspace import Dataspace
from syndicate.index.event import RETRACT
from syndicate.testing import Seen, watch
from syndicate.values.value import freeze
from tests.relay.session.test_charges import observe, turn
from tests.relay.wire import Wire
from tests.strategies import examples

Act: TypeAlias = tuple[str, int, int]
PATTERNS: list[Any] = [["v", capture()], ["v", ANY], ["v", 1], ["other", capture()], capture()]


class Stage:
    """A dataspace that a peer talks to, and local observers of some patterns; ``["v", 0]`` is there already."""

    def __init__(self, watched: list[int]) -> None:
        self.seen: list[Seen] = []
        self.watched = watched
        self.wire = Wire(self._publish)
        self.say((A, freeze(["v", 0]), 1))

    def _publish(self) -> Ref:
        self.ds = dataspace()
        for number in self.watched:
            spawn(lambda number=number: self.seen.append(watch(self.ds, PATTERNS[number])))
        return self.ds

    @property
    def dataspace(self) -> Dataspace:
        """The entity."""
        entity = self.ds.entity
        assert isinstance(entity, Dataspace)
        return entity

    def say(self, *events: Any) -> None:
        """Do a packet."""
        self.wire.right.inject(turn(*events))
        self.wire.system.drain()

    def outcome(self) -> str:
        """All that anybody can see, written: the references of two stages are not the same.  In which order who begins
        to observe is notified of what is there does not count.
        """
        gate, right = self.dataspace.gate, self.wire.right
        bags = {head: dict(bag) for head, bag in gate.bags.items() if bag}
        counts = [sorted(map(repr, bag.items())) for bag in bags.values()]
        heard = [*self.seen, notices(right.events)]
        return repr([[*map(in_bursts, heard)], counts, gate.counts, len(right.session.assertions)])


def notices(events: list[Any]) -> list[Any]:
    """What a peer is notified of, with values in place of numbers."""
    values: dict[int, Any] = {}
    for event in events:
        if event[0] is A:
            values[event[2]] = event[1]
    return [(event[0], values[event[1]] if event[0] is R else event[1]) for event in events]


def in_bursts(heard: list[Any]) -> list[list[str]]:
    """What is heard of one kind without another between, sorted."""
    return [sorted(map(repr, burst)) for _, burst in groupby(heard, lambda event: event[0])]


def one_handle(count: int) -> list[Any]:
    """Another value each, one after the other."""
    return [event for n in range(count) for event in ((A, freeze(["v", n]), 7), (R, 7))]


def many_handles(count: int) -> list[Any]:
    """As a turn of our own says it."""
    return [(A, freeze(["v", n]), 7 + n) for n in range(count)] + [(R, 7 + n) for n in range(count)]


@pytest.mark.parametrize("events", [one_handle, many_handles])
@pytest.mark.parametrize("count", [2, 100, 2000])
def test_what_passes_within_a_packet_is_not_put_in_the_index(events: Any, count: int) -> None:
    """What others wait for grows with what anybody is notified of, and not with what passes."""
    stage = Stage([3])
    gate, index = stage.dataspace.gate, stage.dataspace.index
    held: list[int] = []
    stage.wire.system.inlet = lambda: held.append(sum(map(len, gate.bags.values())))
    before, (added, removed, _) = index.values(), gate.counts
    stage.say(*events(count))
    assert max(held, default=before) == before
    assert index.values() == before
    assert gate.counts[:2] == (added + count, removed + count)
    assert stage.dataspace.passing == {}


@pytest.mark.parametrize("events", [one_handle, many_handles])
def test_who_observes_is_notified_of_what_passes(events: Any) -> None:
    """It comes, and goes when the turn is over."""
    stage = Stage([0])
    stage.seen[0].clear()
    stage.say(*events(300))
    assert stage.seen[0] == [("+", n) for n in range(1, 300)] + [("-", n) for n in range(1, 300)]


acts = st.lists(st.tuples(st.sampled_from("AAARRRIM"), st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=14)


def events_of(packets: list[list[Act]]) -> list[list[Any]]:
    """What a peer may say: a number is asserted once, and retracted as often as one likes."""
    live, said = {1}, list[list[Any]]()
    for packet in packets:
        said.append([])
        for what, value, which in packet:
            number = 2 + which
            if what == "M":
                said[-1].append((M, freeze(["v", value])))
            elif what == "R" or number in live:
                live.discard(number)
                said[-1].append((R, number))
            else:
                live.add(number)
                form = observe(PATTERNS[value], 20 + which) if what == "I" else freeze(["v", value])
                said[-1].append((A, form, number))
    return said


@settings(max_examples=examples(300))
@given(st.lists(st.integers(0, 4), max_size=2), st.lists(acts, min_size=1, max_size=4))
def test_nobody_can_tell(watched: list[int], packets: list[list[Act]]) -> None:
    """Here, at the peer, in the index and in what is counted: all is as if each value had been put there and taken out,
    also for those who begin to observe in the same packet.
    """

    def kept(assertion: PeerAssertion | None) -> Understood:
        return RETRACT, None, None, assertion

    said, outcomes = events_of(packets), list[str]()
    for usual in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not usual:
                patch.setattr(packet_events, "retraction", kept)
                patch.setattr(session, "retraction", kept)
            stage = Stage(watched)
            for packet in said:
                stage.say(*packet)
            stage.wire.act(stage.wire.right, partial(send, stage.ds, ["v", 9]))
            outcomes.append(stage.outcome())
    assert outcomes[0] == outcomes[1]
