"""Channels, loopbacks, what is sent from outside, payloads, filters (Bud's tc_channel)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, bloom, bootstrap, channel, loopback, scratch, table, values
from syndicate.bloom.reflection import reflection
from syndicate.errors import BloomDeclaration, IllegalRule, KeyConflict


class Counting(Bloom):
    """Counts to five by a loopback, and tells itself by a channel."""

    loop = loopback(["n"])
    wire = channel(["@to", "n"])
    loop_done, wire_done = scratch(["n"]), scratch(["n"])

    @bootstrap
    def begin(self) -> None:
        """From nought."""
        self.loop < ~values((0,))

    @bloom
    def rules(self) -> None:
        """One more in each tick."""
        here = self.address
        self.loop < ~self.loop.filter(lambda m: m.n < 6).map(lambda m: (m.n + 1,))
        self.loop_done <= self.loop.filter(lambda m: m.n == 5)
        self.wire < ~self.loop.filter(lambda m: m.n < 6).map(lambda m: (here, m.n))
        self.wire_done <= self.wire.filter(lambda m: m.n == 5).payloads()


@pytest.mark.parametrize("mode", ["background", "by hand"])
def test_to_oneself(mode: str) -> None:
    """A program goes on as long as something is on its way to itself; each message is there in one tick."""
    p = Counting()
    assert not any(row[-1] for row in reflection(p)["t_depends"])
    results: SimpleQueue[Any] = SimpleQueue()
    p.callback("loop_done", lambda rows: results.put(("loop", rows)))
    p.callback("wire_done", lambda rows: results.put(("wire", rows)))
    if mode == "background":
        p.run_bg()
    else:
        p.tick(5)
        assert results.empty()
        p.run()
    assert sorted(results.get() for _ in range(2)) == [("loop", [(5,)]), ("wire", [(5,)])]
    p.stop()
    assert results.empty()


def test_a_ring() -> None:
    """A number goes round and is counted at each; a replaced row leaves one."""

    class Member(Bloom):
        pipe = channel(["@to", "n"])
        start, following, last, done = scratch(["n"]), table(["to"]), table(["n"]), scratch(["n"])

        @bloom
        def pass_on(self) -> None:
            here = self.address
            self.pipe < ~self.start.map(lambda k: (here, k.n))
            self.pipe < ~(self.pipe * self.following).pairs(lambda m, f: (f.to, m.n + 1) if m.n < 39 else None)
            self.done <= self.pipe.filter(lambda m: m.n == 39).payloads()

        @bloom
        def note(self) -> None:
            self.last < +self.pipe.payloads()
            self.last < -(self.pipe * self.last).rights()

    ring = [Member(address=n) for n in range(10)]
    ends: list[Any] = []
    for n, member in enumerate(ring):
        member.following <= [((n + 1) % 10,)]
        member.callback("done", lambda rows, n=n: ends.append((n, *rows)))  # type: ignore[misc]  # bound now
    ring[0].start <= [(0,)]
    Network(*ring).run()
    assert ends == [(9, (39,))]
    assert [list(member.last) for member in ring] == [[(30 + n,)] for n in range(10)]


class Keyed(Bloom):
    """A channel with a key and a value."""

    wire = channel(["@to", "k"], ["v"])
    out = scratch(["to", "k", "v"])
    got = table(["to", "k"], ["v"])
    loads, mapped, placed = (table(["k"], ["v"]) for _ in range(3))

    @bloom
    def rules(self) -> None:
        """All forms of payloads."""
        self.wire < ~self.out
        self.got <= self.wire
        self.loads <= self.wire.payloads()
        self.mapped <= self.wire.payloads().map(lambda m: (m.k + 1, m.v + 1))
        self.placed <= self.wire.payloads().map(lambda m: (m[0] + 2, m[1] + 2))


def test_payloads_of_a_channel_with_a_key() -> None:
    """The address is left out, and columns keep their names; what is sent from outside arrives as well."""
    a, b = Keyed(address="a"), Keyed(address="b")
    a.out <= [("b", 10, 20)]
    a.wire < ~values(("b", 50, 100))
    Network(a, b).run()
    assert sorted(b.got) == [("b", 10, 20), ("b", 50, 100)]
    assert [sorted(t) for t in (b.loads, b.mapped, b.placed)] == [
        [(10 + n, 20 + n), (50 + n, 100 + n)] if n != 1 else [(11, 21), (51, 101)] for n in range(3)
    ]
    assert not list(a.got)


def test_a_key_of_a_channel() -> None:
    """Two rows of one key that rules send in one tick are refused; ``<=`` sends nothing, and is refused in a rule."""
    p = Keyed()
    p.out <= [("b", 70, 120), ("b", 70, 130)]
    with pytest.raises(KeyConflict, match="wire"):
        p.tick()

    class Instant(Keyed):
        @bloom
        def more(self) -> None:
            self.wire <= self.out

    with pytest.raises(IllegalRule, match=r"test_channel\.py:\d+: <= cannot .* wire|wire .* channel"):
        Instant()


def test_payloads_of_a_channel_without_columns() -> None:
    """``channel()`` has an address and a value."""

    class Plain(Bloom):
        wire = channel()
        out, got = scratch(["to", "v"]), table(["v"])

        @bloom
        def rules(self) -> None:
            self.wire < ~self.out
            self.got <= self.wire.payloads()

    p = Plain()
    assert p.ask("out", [(p.address, 5)], "wire") == [(p.address, 5)]
    assert list(p.got) == [(5,)]


def test_the_address_is_a_value() -> None:
    """The mark may stand in the second list."""

    class Second(Bloom):
        wire = channel(["k"], ["@to", "v"])
        out = scratch(["k", "to", "v"])
        got, loads = table(["k"], ["to", "v"]), table(["k"], ["v"])

        @bloom
        def rules(self) -> None:
            self.wire < ~self.out
            self.got <= self.wire
            self.loads <= self.wire.payloads()

    a, b = Second(address="a"), Second(address="b")
    a.out <= [(10, "b", 20)]
    a.wire < ~values((50, "b", 100))
    Network(a, b).run()
    assert sorted(b.got) == [(10, "b", 20), (50, "b", 100)]
    assert sorted(b.loads) == [(10, 20), (50, 100)]


def test_in_bootstrap() -> None:
    """A loopback may be sent to, and the address is known."""

    class Booted(Bloom):
        loop, mine, got = loopback(["n"]), table(["address"]), table(["n"])

        @bootstrap
        def begin(self) -> None:
            self.loop < ~values((1000,))
            self.mine <= [(self.address,)]

        @bloom
        def rules(self) -> None:
            self.got <= self.loop

    p = Booted(address="here:1")
    p.tick()
    assert (list(p.mine), list(p.got)) == ([("here:1",)], [])
    p.run()
    assert list(p.got) == [(1000,)]


@pytest.mark.parametrize("columns", [(["a", "b"], []), (["@a"], ["b", "@c"])])
def test_one_location(columns: tuple[list[str], list[str]]) -> None:
    """None and two are refused, where it is declared."""
    with pytest.raises(BloomDeclaration, match=r"test_channel\.py:\d+: a channel has one column marked @"):
        channel(*columns)


def test_payloads_of_a_loopback() -> None:
    """All of it."""

    class Me(Bloom):
        me, copy = loopback(), scratch()

        @bootstrap
        def begin(self) -> None:
            self.me < ~values(("hello", "world"))

        @bloom
        def rules(self) -> None:
            self.copy <= self.me.payloads()

    assert Me().delta("copy") == [("hello", "world")]


def test_a_loopback_is_never_of_the_same_tick() -> None:
    """One step a tick by hand, and then by itself to the end."""

    class Steps(Bloom):
        me, done = loopback(), scratch()

        @bootstrap
        def begin(self) -> None:
            self.me < ~values(("foo", 1))

        @bloom
        def rules(self) -> None:
            self.me < ~self.me.map(lambda t: (t.key, t.val + 1) if t.val <= 60 else None)
            self.done <= self.me.filter(lambda t: t.val > 60)

    p = Steps()
    for wanted in ([], [("foo", 1)], [("foo", 2)]):
        p.tick()
        assert list(p.me) == wanted
    results: SimpleQueue[Any] = SimpleQueue()
    p.callback("done", results.put)
    p.run_bg()
    assert results.get() == [("foo", 61)]
    p.stop()


Chosen = tuple[list[Any], list[Any]]


class Sending(Bloom):
    """Sends what it is given."""

    wire, out = channel(["@to", "n"]), scratch(["to", "n"])

    @bloom
    def rules(self) -> None:
        """All of it."""
        self.wire < ~self.out


def _only_three(name: str, rows: list[Any]) -> Chosen:
    return [row for row in rows if row.n == 3], []


def _a_dozen(name: str, rows: list[Any]) -> Chosen:
    return (rows, []) if len(rows) >= 12 else ([], rows)


@pytest.mark.parametrize(
    ("choose", "count", "wanted"), [(_only_three, 26, [[3]]), (_a_dozen, 12, [[*range(12)]]), (_a_dozen, 11, [])]
)
def test_filters(choose: Callable[[str, list[Any]], Chosen], count: int, wanted: list[Any]) -> None:
    """What is neither accepted nor postponed is lost; what is postponed comes with what comes later."""
    a, b = Sending(address="a"), Sending(address="b", channel_filter=choose)
    seen: list[Any] = []
    b.callback("wire", lambda rows: seen.append(sorted(row.n for row in rows)))
    net = Network(a, b)
    for n in range(count):
        a.out <= [("b", n)]
        net.run()
    assert seen == wanted


@pytest.fixture(autouse=True)
def _no_output(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nothing of this is written on the screen."""
    yield
    assert capsys.readouterr().out == ""
