"""Programs that talk: the same result whatever the network does, and the same run for the same seed."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, Network, bloom, channel, scratch, table
from syndicate.errors import BloomDeclaration, IllegalRule
from tests.syndicate.bloom.test_worked import ReliableDelivery


def run(seed: int) -> tuple[list[Any], int, int]:
    """Reliable delivery of ten packets over a bad network."""
    one, two = ReliableDelivery(address="one"), ReliableDelivery(address="two")
    net = Network(one, two, seed=seed, loss=0.3, repeat=0.3)
    delivered: list[Any] = []
    one.callback("pipe_out", lambda rows: delivered.extend(row.ident for row in rows))
    one.pipe_in <= [("two", "one", n, "x" * n) for n in range(10)]
    net.run()
    while one.send_buf:
        one.fire("timer")
        net.run()
    return delivered, net.sent, net.lost


@pytest.mark.parametrize("seed", range(20))
def test_reliable_delivery_is_reliable(seed: int) -> None:
    """Each packet comes out once, although packets and acknowledgements are lost and repeated."""
    delivered, sent, lost = run(seed)
    assert sorted(delivered) == list(range(10))
    assert sent > 20
    assert lost > 0


def test_runs_are_repeatable() -> None:
    """A seed decides everything."""
    assert run(3) == run(3)
    assert run(3) != run(4)


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
