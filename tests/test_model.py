"""A whole system beside a naive model: random programs over dataspaces, nested ones and peers, in every combination.

At each rest every observer knows exactly what matches its pattern; what it is notified of comes and goes in turn; one
turn makes no gap; messages come once each and in order; and what has ended leaves nothing.  A program that fails is
printed as small as it can be made.  For many programs:

    python -m tests.test_model --seeds 5000 [--first 0]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any

import pytest
import structlog
import structlog.testing
from attrs import evolve

from relay.nested import Inbound, nested
from relay.protocol.codec import Codec, Msgpack, Preserves
from relay.protocol.codec.preserves_text import PreservesText
from relay.protocol.limits import DEFAULT, Limits
from syndicate import (
    ANY,
    Entity,
    Ref,
    assert_,
    current_facet,
    dataspace,
    during,
    field,
    on_stop,
    prevent_inert_check,
    query_set,
    react,
    send,
    spawn,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import current
from syndicate.actors.verbs import ref
from syndicate.index.interest import interest
from syndicate.testing import settled
from syndicate.values.value import Frozen, Symbol, freeze, is_record, label_of, thaw
from tests.inside import index_of
from tests.relay.wire import End
from tests.world import Author, Op, Step, Watch, World, core, echo, marker, shown, size, tells_of_interest

CODECS: dict[str, Callable[[Limits], Codec]] = {"msgpack": Msgpack, "preserves": Preserves, "text": PreservesText}


class Planned(Exception):
    """A crash of the program's own."""


class Ear(Entity):
    """Writes down what it is notified of."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.events: list[tuple[str, Any]] = []

    def assert_(self, value: Any, handle: Any) -> None:
        self.known[handle] = value
        self.events.append(("+", value))

    def retract(self, handle: Any) -> None:
        self.events.append(("-", self.known.pop(handle)))

    def message(self, value: Any) -> None:
        self.events.append(("!", value))


class Real:
    """The system that a program runs in."""

    def __init__(self, author: Author) -> None:
        self.author = author
        self.refs: dict[int, Ref] = {}
        self.ends: dict[int, tuple[End, End]] = {}
        self.facets: dict[int, Facet] = {}
        self.handles: dict[int, Any] = {}
        self.fields: dict[int, Any] = {}
        self.ears: dict[int, Ear] = {}
        self.queries: dict[int, Any] = {}
        self.answers: dict[int, list[int]] = {}
        self.homes: list[Facet] = []
        self.system: System = settled(self.boot)
        for number, place in enumerate(author.places):
            if place.kind == "nested":
                self.at_home(partial(self.nest, number, place.of))
            elif place.kind == "peer":
                self.at_home(partial(self.join, number, place.of))
                self.refs[number] = self.ends[number][0].session.membrane.expect(0)
        self.bare = self.asserted()
        self.bare_crossings = self.crossings()
        for name, where in author.starts:
            self.begin(name, where)

    def boot(self) -> None:
        prevent_inert_check()
        self.homes.append(current_facet())
        self.refs[0] = dataspace("root")

    def at_home(self, fn: Callable[[], object]) -> None:
        self.homes[0].enter(fn)
        self.system.drain()

    def nest(self, number: int, of: int) -> None:
        self.refs[number] = nested(self.refs[of], name=f"place {number}")

    def join(self, number: int, of: int) -> None:
        limits = evolve(DEFAULT, ahead=0) if self.author.slow[number] else DEFAULT
        ends = [End(f"{side} {number}", limits, CODECS[self.author.codecs[number]]) for side in ("left", "right")]
        left, right = ends
        left.peer, right.peer = right, left
        right.published = self.refs[of]
        self.ends[number] = left, right
        for end in ends:
            spawn(end.boot, name=end.name)

    def asserted(self) -> dict[int, set[Frozen]]:
        """What is in each dataspace."""
        return {
            number: set(index_of(self.refs[number]))
            for number, place in enumerate(self.author.places)
            if place.kind != "peer"
        }

    def crossings(self) -> dict[int, Any]:
        """What each session has in its tables."""
        return {number: [end.crossings for end in ends] for number, ends in self.ends.items()}

    # ------------------------------------------------------------------------------------------------ steps

    def begin(self, name: int, place: int) -> None:
        self.system.spawn(self.born, name, place, [])
        self.system.drain()

    def born(self, name: int, place: int, ops: list[Op]) -> None:
        prevent_inert_check()
        self.facets[name] = current_facet()
        self.perform(name, place, ops)

    def act(self, name: int, place: int, ops: list[Op]) -> None:
        if name not in self.facets:  # its turn is still to come
            self.system.drain()
        self.facets[name].enter(partial(self.perform, name, place, ops))

    def perform(self, facet: int, place: int, ops: list[Op]) -> None:
        for op in ops:
            getattr(self, f"do_{op[0]}")(facet, place, *op[1:])

    def do_assert(self, facet: int, place: int, name: int, value: Any) -> None:
        self.handles[name] = assert_(self.refs[place], value)

    def do_computed(self, facet: int, place: int, name: int, number: int, wrap: int) -> None:
        if number in self.fields:
            followed = self.fields[number]
            self.handles[name] = assert_(self.refs[place], lambda: shown(followed.value, wrap))

    def do_field(self, facet: int, place: int, name: int, number: int) -> None:
        self.fields[name] = field(number)

    def do_set(self, facet: int, place: int, name: int, number: int) -> None:
        self.fields[name].value = number

    def do_retract(self, facet: int, place: int, name: int) -> None:
        self.handles[name].retract()

    def do_replace(self, facet: int, place: int, name: int, value: Any) -> None:
        self.handles[name] = self.handles[name].replace(value) or self.handles[name]  # None where the target has ended

    def do_send(self, facet: int, place: int, value: Any) -> None:
        send(self.refs[place], value)

    def do_sync(self, facet: int, place: int, name: int) -> None:
        before = self.handles.get(-facet)
        if before is not None:
            before.retract()
        self.handles[-facet] = assert_(self.refs[place], marker(facet, name))
        sync(self.refs[place], partial(self.answered, facet, self.author.places[place].space, name), self.missed)

    def missed(self) -> None:
        """The connection was lost before an answer came, or there was none any more."""

    def answered(self, facet: int, space: int, name: int) -> None:
        """All that the facet did before is in the dataspace, and all that it took back is not."""
        self.answers.setdefault(facet, []).append(name)
        ds = next(self.refs[n] for n, place in enumerate(self.author.places) if place.space == space)
        markers = [form[2] for form in index_of(ds) if form[:2] == (Symbol("marker"), facet)]
        assert min(markers) >= name, "an answer came too early"

    def do_observe(self, facet: int, place: int, name: int, kind: str, pattern: Any, wrap: int) -> None:
        ds = self.refs[place]
        if kind == "during":
            during(ds, pattern)(lambda *captures: assert_(ds, echo(name, captures, wrap)) and None)
        elif kind == "query":
            self.queries[name] = query_set(ds, pattern)
            followed = self.queries[name]
            assert_(ds, lambda: size(name, len(followed.value), wrap))
        else:
            ear = self.ears[name] = Ear()
            asked = interest(pattern, ref(ear))
            ear.asked = asked[1]
            current("observe").assert_form(current_facet(), ds, asked)

    def do_on_stop(self, facet: int, place: int, name: int, value: Any) -> None:
        on_stop(lambda: self.do_assert(facet, place, name, value))

    def do_react(self, facet: int, place: int, name: int, ops: list[Op]) -> None:
        def inner() -> None:
            prevent_inert_check()
            self.facets[name] = current_facet()
            self.perform(name, place, ops)

        react(inner)

    def do_stop(self, facet: int, place: int, name: int, then: tuple[int, Any] | None) -> None:
        stop(self.facets[name], None if then is None else partial(self.do_assert, facet, place, *then))

    def do_stop_actor(self, facet: int, place: int) -> None:
        stop_actor()

    def do_spawn(
        self, facet: int, place: int, name: int, where: int, inputs: list[int], linked: bool, ops: list[Op]
    ) -> None:
        spawn(self.born, name, where, ops, linked=linked, assertions=[self.handles[each] for each in inputs])

    def do_crash(self, facet: int, place: int) -> None:
        raise Planned

    def hold(self, number: int, side: str) -> None:
        """Let nothing of one end reach the other for a while."""
        left, right = self.ends[number]
        (left if side == "left" else right).blocked = True

    def cut(self, number: int) -> None:
        """Let a connection be lost."""
        for end in self.ends[number]:
            end.facet.enter(stop)

    def rest(self) -> None:
        """Let everything happen that is to."""
        self.system.drain()
        for ends in self.ends.values():
            for end in ends:
                if end.blocked:
                    end.blocked = False
                    end.wake()
        self.system.drain()


def derived(watch: Watch, captures: Any) -> bool:
    """Whether somebody asserts that in turns of his own, because of what he has seen."""
    labels = {core(watch.pattern), *map(core, captures)}
    return bool(labels & {Symbol("echo"), Symbol("size")})


class Trial:
    """A program, run in both."""

    def __init__(self, seed: int, logs: list[MutableMapping[str, Any]]) -> None:
        self.author = Author(seed)
        self.logs = logs

    def run(self, program: list[Step]) -> None:
        """Raises AssertionError where the two differ."""
        self.logs.clear()
        author = self.author
        self.world = World(author.places)
        self.real = Real(author)
        for name, place in author.starts:
            self.world.begin(name, place)
        self.read: dict[int, int] = {}
        self.begin_interval()
        for step in program:
            self.take(step)
        self.compare()
        self.finish()

    def begin_interval(self) -> None:
        self.before = self.world.known()
        self.world.sent.clear()
        self.world.touched.clear()
        self.world.turns = 0
        self.upset = False

    def take(self, step: Step) -> None:
        real, world = self.real, self.world
        match step:
            case ("begin", name, place):
                world.begin(name, place)
                real.begin(name, place)
            case ("hold", place, side):
                if place not in world.lost:
                    real.hold(place, side)
            case ("cut", place):
                if place not in world.lost:
                    world.cut(place)
                    real.cut(place)
                    self.upset = True
                    self.compare()
            case ("act", name, ops, settle):
                crash = any(op[0] == "crash" for op in ops)
                cell, turns = world.cells.get(name), world.turns
                done = world.act(name, ops)
                if done is not None and cell is not None:
                    if crash:
                        real.system.drain()
                    real.act(name, cell.actor.place, done)
                    if crash or world.turns > turns + 1:
                        real.system.drain()
                if settle:
                    self.compare()

    # ------------------------------------------------------------------------------------------------ comparing

    def compare(self) -> None:
        """Let both rest, and see whether they agree."""
        real, world = self.real, self.world
        real.rest()
        after, watches = world.known(), world.watches()
        errors = [entry for entry in self.logs if entry["log_level"] in ("error", "critical")]
        failures = [entry for entry in errors if "Planned" not in repr(entry)]
        assert not failures, failures
        for player in world.players:
            for cell in player.cells():
                assert real.facets[cell.name].alive, f"facet {cell.name} has ended"
                if player.place not in world.lost:
                    assert real.answers.get(cell.name, []) == cell.asked, f"facet {cell.name} has had other answers"
        for name, facet in real.facets.items():
            assert facet.alive == (name in {cell.name for player in world.players for cell in player.cells()}), name
        for number, ends in real.ends.items():
            if number not in world.lost:
                assert [end.session.reason for end in ends] == [None, None]
        for name, watch in watches.items():
            if name in real.queries:
                captures = [c[0] if len(c) == 1 else c for c in after[name].values()]
                assert {freeze(value) for value in real.queries[name].value} == set(map(freeze, captures)), watch
            if name in real.ears:
                self.compare_ear(name, watch, after[name])
        for name, ear in real.ears.items():
            if name not in watches and name not in self.before:  # had ended before
                self.read.setdefault(name, len(ear.events))
                assert len(ear.events) == self.read[name] or self.lost(name), f"{name} has ended, and is notified"
        for name, ear in real.ears.items():
            self.read[name] = len(ear.events)
        self.begin_interval()

    def lost(self, name: int) -> bool:
        return any(name in cell.watches for player in self.world.players for cell in player.cells())

    def compare_ear(self, name: int, watch: Watch, after: dict[Frozen, Any]) -> None:
        ear, before = self.real.ears[name], self.before.get(name)
        values = {freeze(value) for value in ear.known.values() if not tells_of_interest(value)}
        assert values == set(after), (
            f"{watch} knows {sorted(map(thaw, values - set(after)), key=repr)} too much and lacks "
            f"{sorted(map(thaw, set(after) - values), key=repr)}"
        )
        events = [(mark, freeze(value), value) for mark, value in ear.events[self.read.get(name, 0) :]]
        events = [each for each in events if not tells_of_interest(each[2])]
        there = set() if before is None else set(before)
        seen: dict[Frozen, list[str]] = {}
        for mark, form, value in events:
            if mark == "!":
                continue
            marks = seen.setdefault(form, [])
            assert (mark == "+") == (marks[-1] == "-" if marks else form not in there), (watch, mark, value)
            marks.append(mark)
        if before is None or self.upset:
            return
        world = self.world
        if world.turns == 1 and len(world.touched) == 1:
            for form, marks in seen.items():
                if not derived(watch, thaw(form)):
                    assert marks in ([], ["+"], ["-"], ["+", "-"]), (watch, thaw(form), marks)
                    assert form not in there or form not in after, f"{watch} sees a gap: {thaw(form)} {marks}"
            plain = [mark for mark, form, value in events if not derived(watch, value) and not incidental(form)]
            assert sorted(plain, key="-".__eq__) == plain, f"{watch} sees a retraction too early: {events}"
        self.compare_messages(watch, [value for mark, _, value in events if mark == "!"])

    def compare_messages(self, watch: Watch, events: list[Any]) -> None:
        world = self.world
        inside = world.places[watch.place].outer is not None
        pattern, depth = watch.pattern, 0
        while isinstance(pattern, Inbound):
            pattern, depth = pattern.value, depth + 1
        if pattern == ANY and inside:
            return  # hears what others have asked for, too
        expected: dict[Any, list[Frozen]] = {}
        for player, place, value in world.sent:
            if place not in world.lost:
                heard = [freeze(c) for c in world.heard(watch, world.places[place].space, value)]
                expected.setdefault(player, []).extend(form for form in heard if not incidental(form))
        forms = [form for value in events if not incidental(form := freeze(value))]
        assert Counter(forms) == Counter(form for each in expected.values() for form in each), (
            f"{watch} hears {[thaw(f) for f in forms]} of {world.sent}"
        )
        for each in expected.values():
            rest = iter(forms)
            assert all(form in rest for form in each), f"{watch} hears in another order: {events}"

    # ------------------------------------------------------------------------------------------------ the end

    def finish(self) -> None:
        """Stop all actors, and cut all connections, in some order: nothing stays."""
        real, world = self.real, self.world
        rng = random.Random(self.author.count)
        peers = [number for number in real.ends if number not in world.lost]
        acts: list[Step] = [("act", p.top.name, [("stop_actor",)], rng.random() < 0.5) for p in world.players if p.top]
        cuts: list[Step] = [("cut", number) for number in peers]
        if rng.random() < 0.5:
            for step in acts:
                self.take(step)
            self.compare()
            if not world.lost:
                assert real.crossings() == real.bare_crossings
                assert real.asserted() == real.bare
            acts = []
        steps = [*acts, *cuts]
        rng.shuffle(steps)
        for step in steps:
            self.take(step)
        self.compare()
        assert not [player for player in world.players if player.alive]
        assert real.asserted() == real.bare, "something stays"


def incidental(form: Frozen) -> bool:
    """Whether a wildcard has caught what came inside because others had asked."""
    captures = thaw(form)
    return len(captures) == 1 and is_record(captures[0]) and label_of(captures[0]) == Symbol("inbound")


# ---------------------------------------------------------------------------------------------------- shrinking


def fault(seed: int, program: list[Step], logs: list[MutableMapping[str, Any]]) -> Exception | None:
    """How the two differ, if they do."""
    try:
        Trial(seed, logs).run(program)
    except Exception as e:
        return e
    return None


def smaller(program: list[Step], fails: Callable[[list[Step]], object]) -> list[Step]:
    """A program that still fails, of which no step and no action can be left out."""
    width = len(program)
    while width:
        place = 0
        while place < len(program):
            shorter = program[:place] + program[place + width :]
            if fails(shorter):
                program = shorter
            else:
                place += width
        width //= 2
    for place, step in enumerate(program):
        if step[0] == "act":
            for n in range(len(step[2]) - 1, -1, -1):
                ops = step[2]
                shorter = [*program[:place], (*step[:2], ops[:n] + ops[n + 1 :], step[3]), *program[place + 1 :]]
                if fails(shorter):
                    program = shorter
    return program


def story(seed: int, program: list[Step], error: Exception) -> str:
    """A program that fails, for people."""
    author = Author(seed)
    lines = [f"seed {seed}: {type(error).__name__}: {error}", "places:"]
    lines += [f"  {n}: {place.kind} of {place.of}, {author.codecs[n]}" for n, place in enumerate(author.places)]
    lines += [f"actor {name} at {place}" for name, place in author.starts]
    return "\n".join([*lines, *map(repr, program)])


def attempt(seed: int, logs: list[MutableMapping[str, Any]]) -> str | None:
    """What is wrong with the program of a seed, as small as can be."""
    program = Author(seed).program(40)
    error = fault(seed, program, logs)
    if error is None:
        return None
    kind = type(error)
    program = smaller(program, lambda shorter: isinstance(fault(seed, shorter, logs), kind))
    return story(seed, program, fault(seed, program, logs) or error)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, logs: list[MutableMapping[str, Any]]) -> None:
    """Of several actors, with facets, fields, links, crashes and cuts, at places of all kinds."""
    wrong = attempt(seed, logs)
    assert wrong is None, wrong


def main(arguments: list[str]) -> int:
    """Try many; the answer is 1 if one of them fails."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.test_model", description="Random programs of a whole system."
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    chosen = parser.parse_args(arguments)
    captured = structlog.testing.LogCapture()
    structlog.configure(processors=[captured])
    failed = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        wrong = attempt(seed, captured.entries)
        if wrong is not None:
            failed += 1
            print(wrong, flush=True)
    print(f"{chosen.seeds} programs, {failed} of which differ from the model")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
