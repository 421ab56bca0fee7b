"""Capabilities that end: at a time, or because they are revoked, and what was given by them with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio

from relay.capabilities.caveats import compile_caveat
from relay.capabilities.gatekeeper import BindSpace, Gatekeeper, answered, resolve
from relay.capabilities.sturdy import SturdyRef, claim, mint, revocation
from syndicate import (
    Entity,
    Ref,
    after,
    assert_,
    current_facet,
    dataspace,
    open_system,
    prevent_inert_check,
    ref,
    send,
)
from syndicate.errors import CaveatError
from syndicate.outside import Outside, replaced
from syndicate.testing import settled, watch
from syndicate.values.pattern import capture
from syndicate.values.text import parse
from syndicate.values.value import freeze

KEY = b"0123456789abcdef"


class Clock(Outside):
    """A machine whose time of day is set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def time_of_day(self) -> float:
        return self.time


class Asker(Entity):
    """Who asks a gatekeeper: what it has been given last, and all reasons why it was not."""

    raw = True

    def __init__(self) -> None:
        self.it: Ref | None = None
        self.reasons: list[str] = []

    def assert_(self, form: Any, handle: Any) -> None:
        answer = answered(form)
        assert answer is not None
        if answer[0] is not None:
            self.it = answer[0]
        else:
            self.reasons.append(str(answer[1]))

    @property
    def given(self) -> Ref:
        """What it has been given last."""
        assert self.it is not None
        return self.it


class Place:
    """A gatekeeper, a dataspace behind it that is watched, and who asks."""

    def __init__(self) -> None:
        self.clock = Clock()
        with replaced(self.clock):
            self.system = settled(self._boot)

    def _boot(self) -> None:
        prevent_inert_check()
        self.facet = current_facet()
        ds = dataspace()
        self.seen = watch(ds, ["by", capture()])
        self.space = BindSpace({"it": (KEY, ds)})
        self.keeper = ref(Gatekeeper(self.space))

    def act(self, fn: Callable[[], object]) -> Any:
        """Do something, and all that it causes."""
        done: list[Any] = []
        with replaced(self.clock):
            self.facet.enter(lambda: done.append(fn()))
            self.system.drain()
        return done[0]

    def ask(self, sturdy: SturdyRef) -> Asker:
        """Ask for what a reference stands for."""
        asker = Asker()
        self.act(lambda: assert_(self.keeper, resolve(sturdy, ref(asker))))
        return asker


ROOT = mint("it", KEY)
NARROW = ROOT.attenuate("<reject <lit 1>>")
NARROWER = NARROW.attenuate("<reject <lit 2>>")


def name(sturdy: SturdyRef) -> str:
    """By which it is revoked."""
    return revocation(claim(freeze(sturdy)).sig)


def test_revoking() -> None:
    """What is revoked ends, with all that it was narrowed to, what was said through it, and nothing else."""
    place = Place()
    askers = root, narrow, narrower, other = [
        place.ask(sturdy) for sturdy in (ROOT, NARROW, NARROWER, ROOT.attenuate("<reject <lit 3>>"))
    ]
    for number, each in enumerate(askers):
        place.act(partial(assert_, each.given, ["by", number]))
    assert place.seen == [("+", number) for number in range(4)]
    place.act(lambda: place.space.revoke([name(NARROW)]))
    assert place.seen[4:] == [("-", 1), ("-", 2)]
    assert [each.reasons for each in askers] == [[], ["revoked"], ["revoked"], []]
    for each in (root, narrow, narrower, other):
        place.act(partial(send, each.given, ["by", "more"]))
    assert place.seen[6:] == [("!", "more")] * 2
    assert place.ask(NARROWER).reasons == ["revoked"]
    place.act(lambda: place.space.revoke([]))
    place.act(partial(send, place.ask(NARROWER).given, ["by", "again"]))
    assert place.seen[8:] == [("!", "again")]


def test_revoking_what_has_no_caveats() -> None:
    """All that it was narrowed to ends, since its holder could narrow it again."""
    place = Place()
    narrow, narrower = place.ask(NARROW), place.ask(NARROWER)
    place.act(partial(assert_, narrower.given, ["by", 1]))
    place.act(lambda: place.space.revoke([name(ROOT)]))
    assert place.seen == [("+", 1), ("-", 1)]
    assert (narrow.reasons, narrower.reasons) == (["revoked"], ["revoked"])
    assert place.ask(ROOT.attenuate("<reject <lit 9>>")).reasons == ["revoked"]


def test_what_is_narrowed_to_is_not_what_it_was_narrowed_from() -> None:
    """To revoke a narrower reference leaves the wider one."""
    place = Place()
    narrow, narrower = place.ask(NARROW), place.ask(NARROWER)
    place.act(lambda: place.space.revoke([name(NARROWER)]))
    assert (narrow.reasons, narrower.reasons) == ([], ["revoked"])


async def test_a_time_comes(autojump_clock: Any) -> None:
    """At its end what was said through a reference is taken back, nothing passes, and the answer says why; nobody need
    do anything for that.
    """
    clock, asker, late, seen = Clock(), Asker(), Asker(), list[Any]()
    brief = ROOT.attenuate("<not-after 1060>").attenuate("<reject <lit 1>>")

    def boot() -> None:
        prevent_inert_check()
        ds = dataspace()
        seen.append(watch(ds, ["by", capture()]))
        keeper = ref(Gatekeeper(BindSpace({"it": (KEY, ds)})))
        assert_(keeper, resolve(brief, ref(asker)))
        after(1, lambda: assert_(asker.given, ["by", "me"]))
        after(59.5, lambda: send(asker.given, ["by", "in time"]))
        after(60.5, lambda: send(asker.given, ["by", "late"]))
        after(63, lambda: assert_(keeper, resolve(brief, ref(late))))

    with replaced(clock):
        async with open_system(boot):
            await trio.sleep(59.9)
            assert asker.reasons == []
            clock.time = 1060.0
            await trio.sleep(5)
    assert seen == [[("+", "me"), ("!", "in time"), ("-", "me")]]
    assert (asker.reasons, late.reasons) == (["expired"], ["expired"])


@pytest.mark.parametrize("wrong", ["<not-after soon>", "<not-after -1>", "<not-after 1.5>"])
def test_what_is_no_time(wrong: str) -> None:
    """It is refused where it is written and where it is read."""
    with pytest.raises(CaveatError, match="seconds since 1970"):
        compile_caveat(freeze(parse(wrong)))
    with pytest.raises(CaveatError, match="seconds since 1970"):
        ROOT.attenuate(wrong)
