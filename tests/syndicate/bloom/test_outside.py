"""Operators outside of blocks, in ``@bootstrap`` and from the program's users: they mean what they mean in a rule."""

# ruff: noqa: B015  # operators are comparisons

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from syndicate import dataspace, spawn
from syndicate.bloom import (
    Bloom,
    Network,
    bloom,
    bootstrap,
    channel,
    const,
    loopback,
    periodic,
    scratch,
    stdio,
    table,
    values,
)
from syndicate.errors import IllegalRule
from syndicate.testing import settled


class Talker(Bloom):
    """Keeps what arrives, and sends what it is asked to, by each kind of collection that sends."""

    wire = channel(["@to", "text"], [])
    plain = channel()
    keyed = channel(["@to"], ["text"])
    back = channel(["text", "@to"], [])
    again = loopback(["text"], [])
    screen = stdio()
    heard = table(["by", "text"], [])

    @bootstrap
    def begin(self) -> None:
        """The first thing that one of them does."""
        if self.address == "a":
            self.say("first")

    def say(self, text: str) -> None:
        """To the other, to itself, and to whoever looks at the screen."""
        self.wire < ~values(("b", text))
        self.plain < ~values(("b", text), ("b", f"{text}!"))
        self.keyed < ~values(("b", text))
        self.keyed < ~values(("b", f"{text}!"))
        self.back < ~values((text, "b"))
        self.again < ~values((text,))
        self.screen < ~values((text,))

    @bloom
    def rules(self) -> None:
        """Who has heard what by what."""
        self.heard <= self.wire.map(lambda m: ("wire", m.text))
        self.heard <= self.plain.map(lambda m: ("plain", m.val))
        self.heard <= self.keyed.map(lambda m: ("keyed", m.text))
        self.heard <= self.back.map(lambda m: ("back", m.text))
        self.heard <= self.again.map(lambda m: ("again", m.text))


def by_hand() -> None:
    """On a network in one process."""
    shown: list[str] = []
    a, b = Talker(address="a", write=shown.append), Talker(address="b")
    net = Network(a, b)
    net.run()
    a.say("second")
    net.run()
    expect(a, b, shown)


def in_a_dataspace() -> None:
    """As actors, notified by one of their own turns."""
    shown: list[str] = []
    objects: dict[str, Talker] = {}

    def boot() -> None:
        ds = dataspace()

        def talker(name: str) -> None:
            objects[name] = Talker(ds, address=name, write=shown.append)

        def a() -> None:
            talker("a")
            objects["a"].say("second")

        spawn(talker, "b")
        spawn(a)

    settled(boot)
    expect(objects["a"], objects["b"], shown)


def in_the_background() -> None:
    """In a thread, notified by another, with the network's part played by the test."""
    shown: list[str] = []
    a, b = Talker(address="a", write=shown.append), Talker(address="b")
    a.send = lambda address, name, row: b.deliver(name, [row])
    a.run_bg()
    b.run_bg()
    a.sync_do(lambda: a.say("second"))
    a.sync_do(lambda: None)
    b.sync_do(lambda: None)
    while b.sync_do(b.waits):
        pass
    expect(a, b, shown)
    a.stop()
    b.stop()


def expect(a: Talker, b: Talker, shown: list[str]) -> None:
    """Nobody gets what is for the other."""
    texts = [f"{text}{mark}" for text in ("first", "second") for mark in ("", "!")]
    assert sorted(a.heard) == [("again", "first"), ("again", "second")]
    assert sorted(b.heard) == sorted(
        [(by, text) for by in ("wire", "back") for text in texts if "!" not in text]
        + [(by, text) for by in ("plain", "keyed") for text in texts]
    )
    assert shown == ["first", "second"]


@pytest.mark.parametrize("host", [by_hand, in_a_dataspace, in_the_background])
def test_what_is_sent_goes_to_its_address(host: Callable[[], None]) -> None:
    """Not into the program's own inbox; two messages of one key are two messages."""
    host()


def test_what_waits_to_be_sent() -> None:
    """It goes out with the next tick, and is dropped by ``discard``."""
    p = Talker(address="c")
    p.wire < ~values(("d", "one"))
    assert (p.waits(), p.sent) == (True, [])
    p.tick()
    assert p.sent == [("d", "wire", ("d", "one"))]
    assert not p.waits()
    p.wire < ~values(("d", "two"))
    p.discard()
    assert not p.waits()
    p.tick()
    assert len(p.sent) == 1


class Kinds(Bloom):
    """One of each."""

    t = table(["x"], [])
    s = scratch(["x"], [])
    wire = channel(["@x"], [])
    again = loopback(["x"], [])
    screen = stdio()
    timer = periodic(1)
    fixed = const(["x"], [], rows=[(1,)])


GIVE: dict[str, Callable[[Any], object]] = {
    "<=": lambda one: one <= [(1,)],
    "<+": lambda one: one < +values((1,)),
    "<-": lambda one: one < -values((1,)),
    "<+-": lambda one: one < +-values((1,)),
    "<~": lambda one: one < ~values((1,)),
}
LEGAL = {
    "t": ("<=", "<+", "<-", "<+-"),
    "s": ("<=", "<+"),
    "wire": ("<~",),
    "again": ("<~",),
    "screen": ("<~",),
    "timer": (),
    "fixed": (),
}


@pytest.mark.parametrize("op", GIVE)
@pytest.mark.parametrize("name", LEGAL)
def test_the_operators_of_a_rule_and_no_others(name: str, op: str) -> None:
    """What a rule may not write with an operator, nobody else may."""
    p = Kinds()
    if op in LEGAL[name]:
        GIVE[op](getattr(p, name))
    else:
        with pytest.raises(
            IllegalRule, match=rf"test_outside\.py:\d+: {name} is a .* cannot stand on the left of {re.escape(op)}:"
        ):
            GIVE[op](getattr(p, name))


class Forms(Bloom):
    """Channels of each form, and what is made of them."""

    first = channel(["@to", "k"], ["v"])
    last = channel(["k"], ["v", "@to"])
    only = channel(["@to"], [])
    plain = channel()
    again = loopback(["k"], ["v"])
    default = loopback()
    screen = stdio()
    none = table(["to"], [])
    got = table(["by", "columns", "row"], [])

    @bloom
    def rules(self) -> None:
        """All of them, also where something has been done to the channel first."""
        for name in ("first", "last", "only", "plain", "again", "default", "screen"):
            one = getattr(self, name)
            for how, rows in (
                ("itself", one),
                ("filtered", one.filter(lambda row: True)),
                ("renamed", one.rename()),
                ("alias", one.alias()),
                ("notin", one.notin(self.none, lambda row, none: False)),
                ("lefts", (one * self.now).lefts()),
            ):
                paid = rows.payloads()
                names = paid._resolved().sides[0].columns
                self.got <= paid.map(lambda row, name=name, how=how, names=names: ((name, how), names, row[:]))


def test_payloads_of_each_form() -> None:
    """The columns that are not the address, wherever that stands; of what has none, all."""
    p = Forms(address="me")
    for name, row in {
        "first": ("me", "k", "v"),
        "last": ("k", "v", "me"),
        "only": ("me",),
        "plain": ("me", "v"),
        "again": ("k", "v"),
        "default": ("k", "v"),
        "screen": ("line",),
    }.items():
        getattr(p, name).insert([row])
    p.tick()
    expected = {
        "first": (("k", "v"), ("k", "v")),
        "last": (("k", "v"), ("k", "v")),
        "only": ((), ()),
        "plain": (("val",), ("v",)),
        "again": (("k", "v"), ("k", "v")),
        "default": (("key", "val"), ("k", "v")),
        "screen": (("line",), ("line",)),
    }
    hows = ("itself", "filtered", "renamed", "alias", "notin", "lefts")
    assert {row.by: (row.columns, row.row) for row in p.got} == {
        (name, how): one for name, one in expected.items() for how in hows
    }


@pytest.mark.parametrize("inner", [False, True])
def test_messages_of_a_channel_without_columns(*, inner: bool) -> None:
    """They neither overwrite nor contradict each other, within a tick of the sender and on arrival."""

    class Sender(Bloom):
        wire = channel()
        todo = scratch(["to", "text"], [])
        heard = table(["to", "text"], [])

        @bloom
        def rules(self) -> None:
            self.wire < ~self.todo
            self.heard <= self.wire

    a, b = Sender(address="a"), Sender(address="b")
    net = Network(a, b)
    to = "a" if inner else "b"
    a.todo <= [(to, "one"), (to, "two")]
    net.run()
    assert sorted(row.text for row in (a if inner else b).heard) == ["one", "two"]
    assert a.wire.schema == (("address", "val"), ())
