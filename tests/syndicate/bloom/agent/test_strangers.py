"""What strangers send to a program with lattices: it is merged, or waits, or is refused; the program goes on."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from syndicate import Record, assert_, capture, dataspace, react, record, send, spawn, stop
from syndicate.bloom import Bloom, bloom, channel, lmax, scratch, table
from syndicate.bloom.agent.packet import Packet
from syndicate.lattice import Lattice
from syndicate.testing import settled


@record("bloom-test-bid")
class Bid:
    """What somebody offers."""

    who: str
    offer: Any


class Fussy(Lattice):
    """Takes nothing but text, and says so in its own way."""

    __slots__ = ()
    wrapper_name = "lfussy"

    def __init__(self, content: str = "") -> None:
        """Of text."""
        super().__init__(content.upper())

    def merge(self, other: Fussy) -> Fussy:
        """The longer one."""
        return max(self, other, key=lambda one: (len(one.content), one.content))


class Auction(Bloom):
    """Bids by channel, by message and by assertion."""

    news = channel(["@to", "who"], ["offer", "note"], offer=lmax)
    loose = channel(["@to", "who"], ["offer"])
    text = channel(["@to", "who"], ["said"], said=Fussy)
    asserted = scratch(["who"], ["offer"], offer=lmax)
    last = table(["who"], ["offer"], offer=lmax)
    best = lmax()
    seen = table(["who", "note"], [])
    heard = table(["who"], ["said"], said=Fussy)
    any = table(["who", "kind"], [])

    @bloom
    def rules(self) -> None:
        """The best of all that are well formed."""
        self.best <= self.news.map(lambda n: n.offer)
        self.best <= self.asserted.map(lambda n: n.offer)
        self.seen <= self.news.map(lambda n: (n.who, n.note))
        self.heard <= self.text.map(lambda n: (n.who, n.said))
        self.any <= self.loose.map(lambda n: (n.who, type(n.offer).__name__))


def crowd(*told: Any, stand: tuple[Any, ...] = ()) -> tuple[Any, Any]:
    """An auction to which each of these was sent by an actor of its own, and its actor."""

    def boot() -> None:
        ds = dataspace()

        def auction() -> None:
            ports: dict[str, Any] = {"inputs": {"asserted": Bid}, "messages": {"last": ["bid", capture(), capture()]}}
            made.append(Auction(ds, address="me", **ports))

        actors.append(spawn(auction))
        for one in told:
            spawn(lambda one=one: send(ds, one))
        for one in stand:
            spawn(lambda one=one: assert_(ds, one))

    made: list[Any] = []
    actors: list[Any] = []
    settled(boot)
    return made[0], actors[0]


def test_values_of_other_lattices() -> None:
    """Where a column's lattice is declared, any other is refused: by channel, message and assertion."""
    odd = [Record("lset", [[5]]), Record("lmax", ["a", "b"]), Record("lset", [5]), Record("nobody", []), True]
    told: list[Any] = [Packet("me", "news", ("me", f"w{n}", one, "x")) for n, one in enumerate(odd)]
    told += [["bid", f"w{n}", one] for n, one in enumerate(odd)]
    p, actor = crowd(*told, Packet("me", "news", ("me", "good", 7, "y")), stand=(Bid("ann", 9), Bid("bob", odd[0])))
    assert actor.error is None
    assert (p.best.reveal(), sorted(p.seen), len(p.last)) == (9, [("good", "y")], 0)


def test_rows_of_one_key_that_cannot_be_merged() -> None:
    """They come one after the other, in a tick each, and those that can be merged in one."""
    told = [Packet("me", "news", ("me", "ann", offer, note)) for offer, note in ((1, "x"), (2, "y"), (3, "x"))]
    p, actor = crowd(*told)
    assert actor.error is None
    assert (p.best.reveal(), sorted(p.seen)) == (3, [("ann", "x"), ("ann", "y")])


@pytest.mark.parametrize("mixed", [("lset", "lmax"), ("lmax", "lset")])
def test_lattices_nobody_declared(mixed: tuple[str, str]) -> None:
    """Two kinds of values under one key, in a channel that declares none, come one after the other."""
    content: dict[str, Any] = {"lset": [[5]], "lmax": [5]}
    told = [
        Packet("me", "loose", ("me", who, Record(name, content[name]))) for who, name in zip("ab", mixed, strict=True)
    ]
    p, actor = crowd(*told, Packet("me", "news", ("me", "ann", 1, "x")))
    assert actor.error is None
    assert sorted(row.kind for row in p.any) == ["Max", "Set"]


def test_constructors_that_raise_anything() -> None:
    """A user's lattice refuses a stranger's value in its own way, which is a refusal of the row."""
    told = [Packet("me", "text", ("me", "ann", value)) for value in (5, (1, 2), "hello", b"x")]
    p, actor = crowd(*told)
    assert actor.error is None
    assert [(row.who, row.said.content) for row in p.heard] == [("ann", "HELLO")]


def test_assertions_stand_when_a_program_is_wired_anew() -> None:
    """A lattice value that nobody expected makes a new circuit, which is told what stands, and of its end."""

    class Present(Bloom):
        here = scratch(["who"], [])
        also = scratch(["who"], [])
        loose = channel(["@to", "who"], ["offer"])
        offers = table(["who"], ["offer"])

        @bloom
        def rules(self) -> None:
            self.also <= self.here
            self.offers <= self.loose.map(lambda n: (n.who, n.offer))

    def boot() -> None:
        ds.append(dataspace())
        spawn(lambda: made.append(Present(ds[0], address="me", inputs={"here": ["here", capture()]})))
        spawn(lambda: stands.append(react(partial(assert_, ds[0], ["here", "ann"]))))

    ds: list[Any] = []
    made: list[Any] = []
    stands: list[Any] = []
    system = settled(boot)
    assert sorted(made[0].also) == [("ann",)]
    system.spawn(lambda: send(ds[0], Packet("me", "loose", ("me", "bob", Record("lmax", [5])))))
    system.drain()
    assert (sorted(made[0].also), len(made[0].offers)) == ([("ann",)], 1)
    stands[0].enter(lambda: stop(stands[0]))
    system.drain()
    assert sorted(made[0].also) == []
