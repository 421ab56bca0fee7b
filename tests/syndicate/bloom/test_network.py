"""Programs that talk: the same result whatever the network does, and the same run for the same seed."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, bloom, channel, scratch, table
from syndicate.errors import BloomDeclaration, IllegalRule
from tests.syndicate.bloom.test_worked import ReliableDelivery


def run(seed: int, delay: int = 0) -> tuple[list[Any], int, int]:
    """Reliable delivery of ten packets over a bad network."""
    one, two = ReliableDelivery(address="one"), ReliableDelivery(address="two")
    net = Network(one, two, seed=seed, loss=0.3, repeat=0.3, delay=delay)
    delivered: list[Any] = []
    one.callback("pipe_out", lambda rows: delivered.extend(row.ident for row in rows))
    one.pipe_in <= [("two", "one", n, "x" * n) for n in range(10)]
    net.run()
    while one.send_buf:
        one.fire("timer")
        net.run()
    return delivered, net.sent, net.lost


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("seed", range(20))
def test_reliable_delivery_is_reliable(seed: int, delay: int) -> None:
    """Each packet comes out once, although packets and acknowledgements are lost, repeated and delayed."""
    delivered, sent, lost = run(seed, delay)
    assert sorted(delivered) == list(range(10))
    assert sent > 20
    assert lost > 0


def test_runs_are_repeatable() -> None:
    """A seed decides everything."""
    assert run(3) == run(3)
    assert run(3) != run(4)
    assert run(3, 7) == run(3, 7)


class Numbered(Bloom):
    """Sends numbers, and notes in which order they come."""

    out = scratch(["n"], [])
    wire = channel(["@to", "n"], [])
    got = table(["n"], ["tick"])

    @bloom
    def rules(self) -> None:
        """To the other."""
        self.wire < ~self.out.map(lambda r: ("b", r.n))
        self.got <= (self.wire * self.now).pairs(lambda m, now: (m.n, now.tick))


def test_rows_overtake_each_other() -> None:
    """What was sent later may arrive earlier, within the delay only; nothing is lost by that."""

    def order(delay: int, seed: int) -> list[int]:
        a, b = Numbered(address="a"), Numbered(address="b")
        net = Network(a, b, seed=seed, delay=delay)
        for n in range(20):
            a.out <= [(n,)]
            net.step()
        net.run()
        assert len(b.got) == 20
        return [row.n for row in sorted(b.got, key=lambda row: (row.tick, row.n))]

    orders = {delay: [order(delay, seed) for seed in range(10)] for delay in (0, 10)}
    assert all(results != sorted(results) for results in orders[10])

    def inversions(results: list[int]) -> int:
        return sum(a > b for at, a in enumerate(results) for b in results[at:])

    assert sum(map(inversions, orders[10])) > 2 * sum(map(inversions, orders[0]))


def test_a_parted_network() -> None:
    """Between parts nothing passes until it is healed; those who are in no part are together."""
    programs = {name: ReliableDelivery(address=name) for name in "abcd"}
    net = Network(*programs.values(), seed=1)
    net.part(["a"], ["b"])
    for to, src in ("ab", "ba", "cd", "ac", "ca"):
        programs[src].pipe_in <= [(to, src, 1, "x")]
    net.run()
    assert {name: len(one.send_buf) for name, one in programs.items()} == {"a": 2, "b": 1, "c": 1, "d": 0}
    net.heal()
    for one in programs.values():
        one.fire("timer")
    net.run()
    assert not any(len(one.send_buf) for one in programs.values())
    with pytest.raises(BloomDeclaration, match=r"no program has the address 'e'; there are 'a', 'b', 'c'"):
        net.part(["e"])


def test_one_address_each() -> None:
    """Two programs with one address, and programs that never rest, are refused."""
    with pytest.raises(BloomDeclaration, match="two programs have the address 'localhost'"):
        Network(ReliableDelivery(), ReliableDelivery())

    class Ping(Bloom):
        ball = channel(["@to", "from"], [])

        @bloom
        def back(self) -> None:
            self.ball < ~self.ball.map(lambda m: (m.from_, m.to))

    one, two = Ping(address="one"), Ping(address="two")
    one.deliver("ball", [("one", "two")])
    with pytest.raises(IllegalRule, match="did not come to rest within 50 steps"):
        Network(one, two).run(50)


class Store(Bloom):
    """A table behind an interface."""

    put = scratch(["k"], ["v"])
    get = scratch(["k"], [])
    answer = scratch(["k"], ["v"])
    kept = table(["k"], ["v"])

    @bloom
    def serve(self) -> None:
        """Replace, and look up."""
        self.kept < +-self.put
        self.answer <= (self.kept * self.get).lefts("k")


def test_ask() -> None:
    """Rows in, and the first rows that come out."""
    p = Store()
    p.put <= {"a": 1}
    p.run()
    assert p.ask("get", [("a",)], "answer") == [("a", 1)]
    p.put <= {"a": 2}
    p.run()
    assert p.ask(p.get, [("a",)], p.answer) == [("a", 2)]
    with pytest.raises(IllegalRule, match="nothing came out of answer"):
        p.ask("get", [("b",)], "answer")


def test_callbacks() -> None:
    """A callback is called after each tick with rows, until it is ended."""
    p = Store()
    seen: list[Any] = []
    end = p.callback("answer", seen.append)
    p.kept.insert([("a", 1)])
    p.tick()
    for _ in range(2):
        p.get.insert([("a",)])
        p.tick()
    assert seen == [[("a", 1)], [("a", 1)]]
    end()
    p.get.insert([("a",)])
    p.tick()
    assert len(seen) == 2
    with pytest.raises(BloomDeclaration, match=r"no collection 'anwser' \(did you mean 'answer'\?\)"):
        p.callback("anwser", seen.append)
