"""What a narrowed reference reaches: also through the references that one hears of by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from relay.capabilities import caveats as module
from relay.capabilities.caveats import attenuated
from syndicate import Observe, Record, Ref, assert_, capture, dataspace, prevent_inert_check, ref, send, spawn
from syndicate.actors.turn import current
from syndicate.testing import settled
from syndicate.values.text import parse as written
from syndicate.values.value import freeze
from tests.relay.caveat_oracle import Chance, Model, model, run
from tests.relay.session.test_session import Probe

ONLY_OBSERVE = "<rewrite <bind <rec Observe [<_> <_>]>> <ref 0>>"


class World:
    """A dataspace with a program that offers references and observes, and one that has *chain* before the dataspace."""

    def __init__(self, chain: list[Any]) -> None:
        self.chain = chain
        self.offered = [Probe(), Probe()]
        self.listener = Probe()
        self.heard = Probe()
        self.said: list[Any] = []
        self.system = settled(self._boot)

    def _boot(self) -> None:
        self.ds = ds = dataspace()
        prevent_inert_check()

        def victim() -> None:
            prevent_inert_check()
            for probe in self.offered:
                assert_(ds, Record("offer", [ref(probe), {"deep": [ref(probe)]}]))
            assert_(ds, Observe(["private", capture()], ref(self.listener)))

        def attacker() -> None:
            prevent_inert_check()
            self.facet = current("boot").facet
            self.own = ref(self.heard)
            self.narrow = attenuated(ds, [freeze(caveat) for caveat in self.chain])

        spawn(victim, name="victim")
        spawn(attacker, name="attacker")

    def act(self, fn: Callable[[], object]) -> None:
        """Do something as the attacker, and all that it causes."""
        self.facet.enter(fn)
        self.system.drain()

    def say(self, to: Ref, value: Any) -> None:
        """Send and assert something, somewhere."""
        self.said.append(value)
        self.act(partial(send, to, value))
        self.act(partial(assert_, to, value))

    def observe(self, pattern: Any) -> None:
        """Try to observe something."""
        self.act(lambda: assert_(self.narrow, Observe(pattern, self.own)))

    @property
    def references(self) -> list[Ref]:
        """All that the attacker has heard of, but its own."""
        return [each for each in dict.fromkeys(references(self.heard.values)) if each.facet is not self.facet]

    @property
    def effects(self) -> Iterator[Any]:
        """What has reached the other program, by whatever way."""
        for probe in (*self.offered, self.listener):
            yield from probe.messages
            yield from probe.values


def references(value: Any) -> Iterator[Ref]:
    """The references in a value."""
    if isinstance(value, Ref):
        yield value
    elif hasattr(value, "observer"):
        yield from references([value.pattern, value.observer])
    elif isinstance(value, dict) or hasattr(value, "items"):
        for key, item in value.items():
            yield from references([key, item])
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from references(item)
    elif hasattr(value, "fields"):
        yield from references(list(value.fields))


def test_who_only_observes_reaches_no_observer() -> None:
    """The references of others that one hears of, in whatever depth, do no more than observe."""
    world = World([written(ONLY_OBSERVE)])
    world.observe(capture())
    world.observe(Record("Observe", [capture(), capture()]))
    assert len(world.references) >= 3
    for reached in world.references:
        world.say(reached, ["forged"])
    world.say(world.narrow, ["private", "forged"])
    assert list(world.effects) == []


def test_what_is_given_on_keeps_the_caveats() -> None:
    """A reference that was heard of works within the caveats, once and not once more for each way back."""
    world = World([written('<reject <lit "bad">>')])
    world.observe(Record("offer", [capture(), capture()]))
    (first, *_) = world.references
    world.say(first, "good")
    world.say(first, "bad")
    assert world.offered[0].messages == ["good"]
    assert world.offered[0].values == ["good"]
    before = set(world.references)
    world.act(lambda: assert_(world.narrow, ["again", first]))
    world.observe(["again", capture()])
    assert set(world.references) == before


def test_what_is_ones_own_comes_home() -> None:
    """Who observes sees its own references as they were; and equal interests are one."""
    world = World([written('<reject <lit "bad">>')])
    world.act(lambda: assert_(world.narrow, ["mine", world.own]))
    world.observe(["mine", capture()])
    assert world.heard.values == [(world.own,)]
    world.observe(Record("Observe", [capture(), capture()]))
    mine = [item for item in references(world.heard.values) if item.facet is world.facet]
    assert set(mine) == {world.own}
    before = len(world.heard.ever)
    world.observe(["mine", capture()])
    assert len(world.heard.ever) == before


def chains(chance: Chance) -> tuple[Any, list[Any]]:
    """A value, and random caveats for values like it and for interests, without any that make new references."""
    while True:
        like = chance.value()
        chain = [chance.caveat(like) for _ in range(chance.rng.choice((1, 1, 2)))]
        chain = [
            Record("or", [[written(ONLY_OBSERVE), *alternatives(caveat)]]) if chance.rng.randrange(3) else caveat
            for caveat in chain
        ]
        if "attenuate" not in repr(chain) and not any(map(bool, references(chain))):
            return like, chain


def alternatives(caveat: Any) -> list[Any]:
    """Those of an ``<or ..>``, or itself where it could be one."""
    label = getattr(getattr(caveat, "label", None), "name", "")
    return list(caveat.fields[0]) if label == "or" else [caveat] if label == "rewrite" else []


def campaign(seeds: range) -> tuple[int, int]:
    """Random programs behind random caveats; returns how many references were heard of, and how many effects seen."""
    reached = effects = 0
    for seed in seeds:
        chance = Chance(seed)
        like, chain = chains(chance)
        world = World(chain)
        world.observe(capture())
        world.observe(Record("Observe", [capture(), capture()]))
        world.observe(Record("offer", [capture(), chance.rng.choice([capture(), {"deep": [capture()]}])]))
        for _ in range(2):  # what was given may give more
            for target in (world.narrow, *world.references):
                for value in (like, chance.spoil(like), chance.value(), ["private", "forged"]):
                    world.say(target, value)
        reached += len(world.references)
        models = [model(caveat) for caveat in chain]
        possible: list[Model | None] = [run(models, model(value)) for value in world.said]
        for effect in world.effects:
            effects += 1
            form: Model = model(effect)
            heard = form[1][0] if form[0] == "arr" and len(form[1]) == 1 else None  # what an observer captures
            pattern = ("arr", (("String", "private"), heard))
            assert form in possible or pattern in possible, (seed, chain, effect)
    return reached, effects


def test_random_programs_reach_what_the_caveats_let_pass() -> None:
    """Whatever is done with what is heard of, all that others get is what the caveats make of what was said."""
    reached, effects = campaign(range(150))
    assert reached > 100
    assert effects > 100


def test_the_campaign_finds_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """With observers that hear what is there as it is, the test above fails."""
    monkeypatch.setattr(module, "_confined", lambda observer, caveats: observer)
    with pytest.raises(AssertionError):
        campaign(range(150))
