"""A sync across a connection is no success where something that was done before could not go over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from attrs import define
from hypothesis import given, settings
from hypothesis import strategies as st

from relay import attenuate, connect
from relay.protocol.codec import Codec, Msgpack, Preserves, PreservesText
from relay.protocol.limits import Limits
from relay.protocol.packets import A
from relay.remote import open_remote
from syndicate import (
    Facet,
    Ref,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    open_system,
    prevent_inert_check,
    react,
    run,
    send,
    spawn,
    stop_actor,
    sync,
)
from syndicate.actors.keep import Keep, forget, keep
from syndicate.actors.portal import snapshot
from syndicate.actors.turn import Handle
from syndicate.actors.verbs import Computed
from syndicate.errors import NobodyAnswers, NotAValue, NotSent
from syndicate.service import ask
from syndicate.values.value import Value
from tests.relay.wire import Wire
from tests.strategies import examples
from tests.test_examples import server
from tests.waiting import until

ACTORS = 3

LIMITS = Limits(frame=1 << 14, ahead=1 << 13)

VALUES: dict[str, Value] = {
    "small": 1,
    "half": "y" * 6_000,
    "large": "x" * 20_000,
    "no encoding": ["\ud800"],
}

BAD = ("large", "no encoding")

Step = tuple[str, str]

Played = tuple[int, list[Step], bool]
"""Who has a turn, what it does, and whether the peer takes nothing meanwhile."""

STEPS = st.one_of(
    st.tuples(st.sampled_from(["assert", "send"]), st.sampled_from(list(VALUES))),
    st.sampled_from([("retract", ""), ("sync", ""), ("sync", "")]),
)

TURNS = st.lists(st.tuples(st.integers(0, ACTORS - 1), st.lists(STEPS, min_size=1, max_size=5), st.booleans()))


class Author:
    """One of the actors behind the left end: what it asserts, and how its syncs have ended."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.handles: list[tuple[str, Handle | Computed]] = []
        self.replies: list[bool] = []
        wire.act(wire.left, lambda: spawn(self.boot))

    def boot(self) -> None:
        """Be an actor."""
        prevent_inert_check()
        self.facet: Facet = current_facet()

    def play(self, steps: list[Step]) -> None:
        """A turn."""
        self.facet.enter(partial(self._turn, steps))
        self.wire.system.drain()

    def _turn(self, steps: list[Step]) -> None:
        ds = self.wire.remote
        for step, name in steps:
            if step == "assert":
                self.handles.append((name, assert_(ds, VALUES[name])))
            elif step == "send":
                send(ds, VALUES[name])
            elif step == "retract" and self.handles:
                self.handles.pop(0)[1].retract()
            elif step == "sync":
                sync(ds, partial(self.replies.append, True), partial(self.replies.append, False))


@define
class Sync:
    """One that has not gone out for certain: what its actor asserts that could not go, and whether some went since."""

    author: int
    beyond: set[int]
    gone: bool = False

    @property
    def reply(self) -> bool | None:
        """The reply; None is either: what could not go is retracted since, perhaps before the sync went out."""
        return False if self.beyond else None if self.gone else True


class Oracle:
    """What the replies are to be, by what is asserted and said, one event after the other."""

    def __init__(self) -> None:
        self.asserted: list[list[tuple[int, bool]]] = [[] for _ in range(ACTORS)]
        self.replies: list[list[bool | None]] = [[] for _ in range(ACTORS)]
        self._count = 0
        self._syncs: list[Sync] = []

    def play(self, author: int, steps: list[Step]) -> None:
        """A turn: what is retracted, and a sync behind that, comes after all else."""
        late: list[Step] = []
        for step, name in steps:
            if step == "retract" or (step == "sync" and late):
                late.append((step, name))
            else:
                self._event(author, step, name in BAD)
        for step, _ in late:
            self._event(author, step, False)

    def settle(self) -> None:
        """All has gone out."""
        for earlier in self._syncs:
            self.replies[earlier.author].append(earlier.reply)
        self._syncs.clear()

    def _event(self, author: int, step: str, bad: bool) -> None:
        asserted = self.asserted[author]
        if step == "assert":
            self._count += 1
            asserted.append((self._count, bad))
        elif step == "retract":
            number, _ = asserted.pop(0)
            for earlier in self._syncs:
                earlier.gone |= number in earlier.beyond
                earlier.beyond.discard(number)
        elif step == "sync":
            self._syncs.append(Sync(author, {number for number, bad in asserted if bad}))


def played(steps: list[Step], held: int) -> list[Step]:
    """Without the retractions for which there is nothing to retract when they come."""
    left = []
    for step in steps:
        held += (step[0] == "assert") - (step[0] == "retract")
        if held < 0:
            held = 0
        else:
            left.append(step)
    return left


@pytest.mark.parametrize("codec", [Msgpack, Preserves, PreservesText])
@given(turns=TURNS)
@settings(max_examples=examples(100))
def test_syncs_and_what_was_left_out(
    codec: Callable[[Limits], Codec], turns: list[tuple[int, list[Step], bool]]
) -> None:
    """Each fails whose actor asserts what could not go; all others succeed, whether the peer keeps up or not."""
    wire = Wire(dataspace, LIMITS, codec)
    authors = [Author(wire) for _ in range(ACTORS)]
    oracle = Oracle()
    for index, steps, blocked in turns:
        wire.left.blocked = blocked
        possible = played(steps, len(oracle.asserted[index]))
        authors[index].play(possible)
        oracle.play(index, possible)
        if not blocked:
            wire.act(wire.left, wire.left.wake)
            oracle.settle()
    wire.left.blocked = False
    wire.act(wire.left, wire.left.wake)
    oracle.settle()
    for author, expected in zip(authors, oracle.replies, strict=True):
        assert len(author.replies) == len(expected)
        assert all(theirs in (reply, None) for reply, theirs in zip(author.replies, expected, strict=True))
    assert wire.left.session.reason is wire.right.session.reason is None


def test_what_was_left_out_is_not_what_was_queued_before() -> None:
    """A large packet waits when a message is left out.  That message, said again, is left out again: the packet is not
    remembered as what it says.
    """
    wire = Wire(dataspace)
    message = ["\ud800"]
    wire.left.blocked = True
    wire.act(wire.left, lambda: assert_(wire.remote, "x" * 10_000))
    wire.act(wire.left, lambda: send(wire.remote, message))
    wire.left.blocked = False
    wire.act(wire.left, wire.left.wake)
    wire.act(wire.left, lambda: send(wire.remote, message))
    assert [event[0] for event in wire.left.events] == [A]
    assert wire.right.session.reason is None


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker's."""
    with server() as where:
        yield where


Connect = Callable[[str, Callable[[Ref], None]], None]


def by_connect(address: str, boot: Callable[[Ref], None]) -> None:
    """In the facet of a connection."""
    connect(address)(boot)


def by_remote(address: str, boot: Callable[[Ref], None]) -> None:
    """Through a reference that outlives connections."""
    remote = open_remote(address)

    @dataflow
    def connected() -> None:
        if remote.state.value.connected:
            boot(remote.ds)


@pytest.mark.parametrize("how", [by_connect, by_remote])
@pytest.mark.parametrize("value", ["x" * (2 << 20), "\ud800"], ids=BAD)
def test_over_a_socket(how: Connect, value: str, address: str) -> None:
    """Of what is asserted its actor hears, and no other; when it has gone, all is well.  To ask what is there, or a
    service, is possible meanwhile.
    """
    replies: list[object] = []

    def other(ds: Ref, then: Callable[[], None]) -> None:
        prevent_inert_check()

        def succeeded() -> None:
            replies.append("another's")
            then()
            stop_actor()

        sync(ds, succeeded)

    def boot() -> None:
        how(address, connected)

    def connected(ds: Ref) -> None:
        assert_(ds, "before")
        sync(ds, partial(beyond, ds))

    def beyond(ds: Ref) -> None:
        replies.append("before")
        handle = assert_(ds, value)
        assert_(ds, "behind")
        facet = current_facet()

        def afterwards() -> None:
            handle.retract()
            sync(ds, succeeded)

        def succeeded() -> None:
            replies.append("gone")
            stop_actor()

        def asked(error: Exception) -> None:
            replies.append(type(error))
            react(lambda: snapshot(ds, capture(str), seen))

        def seen(there: list[Value] | None, error: BaseException | None) -> None:
            replies.append(there is not None and sorted(map(str, there)))
            spawn(other, ds, partial(facet.enter, afterwards))

        def failed() -> None:
            replies.append("failed")
            ask(ds, ["question", 1], replies.append, asked)

        sync(ds, lambda: replies.append("wrong"), failed)

    run(boot)
    assert replies == ["before", "failed", NobodyAnswers, ["before", "behind"], "another's", "gone"]


@pytest.mark.parametrize("how", [by_connect, by_remote])
def test_who_says_nothing_crashes(how: Connect, address: str) -> None:
    """With the reason."""

    def connected(ds: Ref) -> None:
        assert_(ds, "x" * (2 << 20))
        sync(ds, lambda: None)

    with pytest.raises(NotSent, match="too large"):
        run(lambda: how(address, connected))


@pytest.mark.parametrize("how", [by_connect, by_remote])
@pytest.mark.parametrize("verb", [keep, forget])
@pytest.mark.parametrize("value", ["x" * (2 << 20), "\ud800"], ids=BAD)
def test_what_cannot_be_kept_is_refused(
    how: Connect, verb: Callable[[Ref, str], None], value: str, address: str
) -> None:
    """Where it is said, and so it never is safe."""

    def connected(ds: Ref) -> None:
        verb(ds, "y" * 100_000)
        with pytest.raises(NotAValue):
            verb(ds, value)
        stop_actor()

    run(lambda: how(address, connected))


@pytest.mark.parametrize("verb", [keep, forget])
def test_what_cannot_be_kept_is_refused_through_a_narrowed_reference(
    verb: Callable[[Ref, list[str]], None], address: str
) -> None:
    """What is looked at is what would go: a caveat may make another value of it, or drop it."""

    def connected(ds: Ref) -> None:
        first = attenuate(ds, f"<rewrite <rec {verb.__name__} [<arr [<bind <_>> <_>]>]> <ref 0>>")
        verb(first, ["y", "x" * (2 << 20)])
        with pytest.raises(NotAValue):
            verb(first, ["x" * (2 << 20), "y"])
        with pytest.raises(NotAValue):
            verb(attenuate(first, "<rewrite <bind <_>> <ref 0>>"), ["\ud800", "y"])
        stop_actor()

    run(lambda: by_remote(address, connected))


@pytest.mark.parametrize("oid", [0, 300])
def test_what_is_refused_is_what_does_not_go(oid: int) -> None:
    """To the byte: the number of its target is a part of the packet."""
    wire = Wire(dataspace, LIMITS)
    ds = wire.left.session.membrane.expect(oid)
    refused: list[int] = []
    lost: list[int] = []

    def say(size: int) -> None:
        try:
            keep(ds, "x" * size)
        except NotAValue:
            refused.append(size)
        send(ds, Keep("x" * size))

    sizes = range(LIMITS.frame - 64, LIMITS.frame)
    for size in sizes:
        before = len(wire.left.events)
        wire.act(wire.left, partial(say, size))
        if len(wire.left.events) == before:
            lost.append(size)
    assert lost == refused
    assert 0 < len(lost) < len(sizes)


@pytest.mark.parametrize("crashes", [False, True])
async def test_who_asks_is_answered_when_the_connection_ends_with_its_actor(crashes: bool, address: str) -> None:
    """Though it is another's actor, which opened it, and the peer has not answered yet."""
    replies: list[bool] = []

    def owner() -> None:
        facet = current_facet()

        def connected(ds: Ref) -> None:
            spawn(asker, ds, lambda: facet.enter(end))

        by_remote(address, connected)

    def end() -> None:
        if crashes:
            raise ValueError
        stop_actor()

    def asker(ds: Ref, then: Callable[[], None]) -> None:
        prevent_inert_check()
        sync(ds, partial(replies.append, True), partial(replies.append, False))
        then()

    async with open_system() as system:
        system.spawn(owner)
        await until(lambda: replies)
    assert replies == [False]


async def test_what_is_asserted_after_a_sync_is_no_matter_of_it(address: str) -> None:
    """Though something of another's could not go over the same connection before."""
    replies: list[bool] = []

    def other(ds: Ref, then: Callable[[], None]) -> None:
        prevent_inert_check()
        assert_(ds, "x" * (2 << 20))

        def failed() -> None:
            replies.append(False)
            then()

        sync(ds, partial(replies.append, True), failed)

    def asker(ds: Ref) -> None:
        prevent_inert_check()
        spawn(other, ds, partial(current_facet().enter, partial(ask_first, ds)))

    def ask_first(ds: Ref) -> None:
        sync(ds, partial(replies.append, True), partial(replies.append, False))
        assert_(ds, "z" * (2 << 20))
        sync(ds, partial(replies.append, True), partial(replies.append, False))

    def connected(ds: Ref) -> None:
        spawn(asker, ds)

    async with open_system() as system:
        system.spawn(lambda: by_remote(address, connected))
        await until(lambda: len(replies) == 3)
    assert replies == [False, True, False]
