"""What is claimed to be the cause is the cause: without it, and only then, the effect does not come."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
import trio.lowlevel

from syndicate import (
    Record,
    Ref,
    Symbol,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    during,
    field,
    linked_task,
    on_message,
    open_system,
    prevent_inert_check,
    record,
    run,
    send,
    spawn,
    sync,
)
from syndicate.actors.actor import Actor
from syndicate.actors.chronicle import Chronicle, EventStep
from syndicate.actors.facet import Facet
from syndicate.actors.system import System, following
from syndicate.actors.turn import Handle
from syndicate.errors import ArgumentError, RecordingError
from syndicate.index.event import Event
from syndicate.introspect import Cause, Story, Why, chronicled, why, why_not, written
from syndicate.introspect.story import FEW, Done, Happening, Writer, followed, text
from syndicate.outside import Outside, replaced


@record("n")
class N:
    """A fact with a number."""

    number: int


Rules = dict[int, tuple[tuple[int, ...], bool]]
"""For each derived number: those that it needs, and whether its handler is in an actor of its own."""


def system(rules: Rules, roots: set[int]) -> Callable[[], None]:
    """A program in which each number is asserted, while all those that it needs are there, by one handler."""

    def boot() -> None:
        ds = dataspace()

        def derived(number: int, needs: tuple[int, ...]) -> None:
            if not needs:
                assert_(ds, N(number))
                return

            @during(ds, N(needs[0]))
            def there() -> None:
                derived(number, needs[1:])

        for number, (needs, alone) in rules.items():
            if alone:
                spawn(derived, number, needs)
            else:
                derived(number, needs)
        for root in sorted(roots):
            assert_(ds, N(root))

    return boot


def random_system(rng: random.Random) -> tuple[Rules, set[int]]:
    """One of up to 6 roots, and 8 numbers that need up to 3 others."""
    roots = rng.randint(2, 6)
    rules: Rules = {}
    for number in range(roots, roots + 8):
        rules[number] = (tuple(rng.sample(range(number), min(number, rng.randint(1, 3)))), rng.random() < 0.3)
    order = list(rules)
    rng.shuffle(order)  # so that some handlers are there before what they wait for, and some after
    return {number: rules[number] for number in order}, set(range(roots))


def numbers_of(rules: Rules, roots: set[int]) -> set[int]:
    """Which numbers are ever asserted: brute force."""
    with chronicled() as chronicles:
        run(system(rules, roots))
    return {act.value.number for _, act in Why(Story.of(*chronicles)).events(N(capture()))}


def claimed(cause: Cause, roots: set[int]) -> set[int]:
    """The roots in an explanation."""
    shown = {one.shown for one in cause.walk() if one.relation == "assert"}
    return {root for root in roots if f"<n {root}>" in shown}


@pytest.mark.parametrize("seed", range(25))
def test_without_a_claimed_cause_the_effect_does_not_come(seed: int) -> None:
    """Without a claimed cause the effect does not come."""
    rules, roots = random_system(random.Random(seed))
    with chronicled() as chronicles:
        run(system(rules, roots))
    gone = {root: set(rules) - numbers_of(rules, roots - {root}) for root in roots}
    for number in rules:
        cause = why(N(number), *chronicles)
        assert cause is not None
        assert claimed(cause, roots) == {root for root in roots if number in gone[root]}, (number, str(cause))


def test_it_says_who_and_where() -> None:
    """It says who and where."""

    def boot() -> None:
        ds = dataspace()
        total = field(0)

        @on_message(ds, N(capture()))
        def add(number: int) -> None:
            total.value += number

        @dataflow
        def shown() -> None:
            if total.value:
                assert_(ds, ["total", total.value])

        after(0.0, lambda: send(ds, N(3)))

    with chronicled() as chronicles:
        run(boot)
    cause = why(["total", 3], *chronicles)
    assert cause is not None
    text = cause.draw()
    assert "test_why.py" in text
    assert "sent <n 3>" in text
    assert "boot" in text
    assert json.loads(cause.draw("json"))[0]["value"] == '["total" 3]'
    assert cause.draw("dot").startswith("digraph")


def test_a_task_is_caused_by_the_turn_that_started_it() -> None:
    """A task is caused by the turn that started it."""

    def boot() -> None:
        ds = dataspace()

        @on_message(ds, N(1))
        def begin() -> None:
            facet = current_facet()

            async def later() -> None:
                await trio.lowlevel.checkpoint()
                facet.enter(lambda: send(ds, N(2)))

            linked_task(later)

        send(ds, N(1))

    with chronicled() as chronicles:
        run(boot)
    cause = why(N(2), *chronicles)
    assert cause is not None
    assert "sent <n 1>" in str(cause)


def test_why_it_is_no_longer_there() -> None:
    """Why it is no longer there."""

    def boot() -> None:
        ds = dataspace()

        @during(ds, N(1))
        def also() -> None:
            assert_(ds, N(2))

        handle = assert_(ds, N(1))
        on_message(ds, "off")(handle.retract)
        send(ds, "off")

    with chronicled() as chronicles:
        run(boot)
    cause = why(N(2), *chronicles, retracted=True)
    assert cause is not None
    assert cause.relation == "retract"
    assert 'sent "off"' in str(cause)


def test_why_not_says_who_waits_and_for_what() -> None:
    """Why not says who waits and for what."""

    def boot() -> None:
        ds = dataspace()

        @during(ds, ["ready", capture()])
        def begin(what: str) -> None:
            assert_(ds, N(len(what)))

    with chronicled() as chronicles:
        run(boot)
    absent = why_not(N(capture()), *chronicles)
    text = str(absent)
    assert "begin" in text
    assert "never ran" in text
    assert "ready" in text


def test_why_not_of_what_was_taken_back_and_of_what_nobody_says() -> None:
    """Why not of what was taken back and of what nobody says."""

    def boot() -> None:
        ds = dataspace()
        handle = assert_(ds, N(1))
        on_message(ds, "off")(handle.retract)
        send(ds, "off")

    with chronicled() as chronicles:
        run(boot)
    assert "retracted <n 1>" in str(why_not(N(1), *chronicles))
    assert "but there was <n 1>" in str(why_not(N(7), *chronicles))
    assert "no handler" in str(why_not(["never"], *chronicles))


@pytest.mark.parametrize("rhythm", [1, 2, 5, 10])
def test_a_sample_follows_one_in_n_from_the_outside(rhythm: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample follows one in n of what comes from outside, also of what comes in a rhythm, and no other turn is taken
    another way than without.
    """
    aside, take = list[Actor](), System._take_aside  # by which turns are looked at

    def noted(system: System, actor: Actor, events: list[Event]) -> int:
        aside.append(actor)
        return take(system, actor, events)

    monkeypatch.setattr(System, "_take_aside", noted)

    async def main() -> int:
        async with open_system() as system:
            chronicle = Chronicle(system, every=10)
            spaces: list[Ref] = []

            def boot() -> None:
                spaces.append(dataspace())
                on_message(spaces[0], N(capture()))(lambda number: None)

            actor = system.spawn(boot)
            await system.settle()
            facet = next(iter(actor.root.children))
            for number in range(2000 * rhythm):
                facet.enter(partial(send, spaces[0], N(number)) if number % rhythm == 0 else int)
            await system.settle()
            with pytest.raises(ArgumentError):
                Chronicle(system)
            chronicle.end()
            assert chronicle.turns == len(aside)
            return len(Why(Story.of(chronicle)).events(N(capture())))

    monkeypatch.setattr("syndicate.actors.chronicle._AROUND", 0.0)
    with replaced(Ticking(0.0)):  # in which following takes no time
        assert 120 < trio.run(main) < 280  # of 2000


class Ticking(Outside):
    """Each look at the time takes some."""

    def __init__(self, seconds: float) -> None:
        self.time = 0.0
        self._seconds = seconds

    def elapsed(self) -> float:
        """The time."""
        self.time += self._seconds
        return self.time


def test_a_sample_takes_a_twentieth_of_the_time() -> None:
    """However long a turn takes that is followed, the share of such turns is bounded, and what is due is counted."""
    spent = [0.0]

    async def main(clock: Ticking) -> Chronicle:
        async with open_system() as system:
            chronicle = Chronicle(system, every=2)

            def work() -> None:
                if chronicle.here():
                    clock.time += 0.01
                    spent[0] += 0.01

            actor = system.spawn(lambda: None)
            await system.settle()
            actor = system.spawn(partial(after, 1e9, int))
            for _ in range(5000):
                actor.root.enter(work)
            await system.settle()
            return chronicle

    clock = Ticking(0.001)
    with replaced(clock):
        chronicle = trio.run(main, clock)
    assert 0.02 * clock.time < spent[0] < 0.05 * clock.time + 0.1
    assert chronicle.passed_over > 1000


@pytest.mark.parametrize("seed", range(10))
def test_each_line_says_what_its_step_says(seed: int, tmp_path: Path) -> None:
    """Whatever is said, to whom, and how it ends: a file has the happenings that the chronicle has."""

    def boot() -> None:
        ds = dataspace()
        every_kind = [N(1), ["a", 'quo"ted\\ \n\u2028'], {"key": {1, 2}}, 1.5, True, b"raw", Symbol("s"), 10**30, ds]
        for value in every_kind:
            handle = assert_(ds, value)
            send(ds, value)
        handle.retract()
        sync(ds, lambda: None)
        during(ds, ["x", capture()])(lambda result: send(ds, N(result)))
        assert_(ds, Record("ref", [Symbol("sturdy"), {Symbol("sig"): b"secret"}]))
        spawn(system(*random_system(random.Random(seed))))

    def line_of(one: Happening) -> object:
        acts = [[*attrs.astuple(each, recurse=False)] for each in one.acts]
        for act, each in zip(acts, one.acts, strict=True):
            act[4] = text(each.value)
        said = {**attrs.asdict(one, recurse=False), "value": text(one.value), "at": round(one.at, 6), "acts": acts}
        del said["process"]
        return json.loads(json.dumps(said))

    with written(tmp_path / "story"), chronicles_too() as chronicles:
        run(boot)
    whole = (tmp_path / "story").read_text()
    assert [json.loads(line) for line in whole.split("\n")[1:-1]] == [line_of(one) for one in Story.of(*chronicles)]
    assert "secret" not in whole
    assert len(Story.read(tmp_path / "story")) > 100


@contextmanager
def chronicles_too() -> Iterator[list[Chronicle]]:
    """Those that something else made of the systems that are opened within."""
    chronicles: list[Chronicle] = []
    make = following.get()

    def follow(system: System) -> None:
        assert make is not None
        make(system)
        assert isinstance(system.chronicle, Chronicle)
        chronicles.append(system.chronicle)

    with followed(follow):
        yield chronicles


def test_files_hold_what_chronicles_hold(tmp_path: Path) -> None:
    """Files hold what chronicles hold."""
    rules, roots = random_system(random.Random(1))
    with written(tmp_path / "story", process="p"):
        run(system(rules, roots))
    story = Story.read(tmp_path / "story")
    for number in rules:
        cause = Why(story).why(N(number))
        assert cause is not None
        assert cause.process == "p"
    with pytest.raises(RecordingError, match="is there already"), written(tmp_path / "story"):
        pass
    whole = (tmp_path / "story").read_text()
    (tmp_path / "story").write_text(whole[:-5])
    assert len(Story.read(tmp_path / "story")) == len(story) - 1
    (tmp_path / "story").write_text("nonsense\n")
    with pytest.raises(RecordingError, match="no chronicle"):
        Story.read(tmp_path / "story")


@pytest.mark.parametrize("every", [1, 3])
def test_who_writes_keeps_what_there_is_and_not_what_there_was(every: int) -> None:
    """However much comes and goes, what a writer can name is bounded; and it names nothing again that is asserted."""

    async def main() -> None:
        async with open_system() as system:
            writer, named, most = Writer("here"), dict[int, int](), 0
            there: list[tuple[Ref, Facet]] = []

            def note(steps: Sequence[EventStep]) -> None:
                nonlocal most
                for step in steps:
                    happening = writer.happening(step)
                    for act, done in zip(step.acts, happening.acts, strict=True):
                        if act.handle is not None and act.handle is current[0]:
                            named[done.id] = named.get(done.id, 0) + 1
                most = max(most, len(writer))

            Chronicle(system, every=every, most=100).listeners.append(note)

            def boot() -> None:
                prevent_inert_check()
                there.append((dataspace(), current_facet()))
                during(there[0][0], N(capture()))(lambda number: assert_(there[0][0], Record("seen", [number])))

            def come(handles: list[Handle], number: int) -> None:
                handles.append(assert_(there[0][0], N(number)))

            def stands() -> None:
                current[:] = [assert_(there[0][0], N(-1))]

            current: list[Handle | None] = [None]
            system.spawn(boot)
            await system.settle()
            facet = there[0][1]
            facet.enter(stands)
            for number in range(3 * FEW // 2):
                handles: list[Handle] = []
                facet.enter(partial(come, handles, number))
                await system.settle()
                facet.enter(handles[0].retract)
                await system.settle()
            facet.enter(current[0].retract)  # type: ignore[union-attr]  # it was made
            await system.settle()
            assert most < FEW + 100
            assert every > 1 or list(named.values()) == [2]  # one number, when it came and when it went

    trio.run(main)


def test_a_handler_ran_as_often_as_something_came() -> None:
    """An end that it is notified of is no run of it."""

    async def main() -> str:
        async with open_system() as system:
            chronicle = Chronicle(system)

            def boot() -> None:
                ds = dataspace()
                during(ds, Record("lit", [capture()]))(lambda number: assert_(ds, N(number)))
                handles = [assert_(ds, Record("lit", [number])) for number in (1, 2)]
                after(0.0, handles[0].retract)

            system.spawn(boot)
            await system.settle()
            await trio.sleep(0.01)
            await system.settle()
            return str(why_not(N(3), chronicle))

    assert "it ran 2 times, and did not" in trio.run(main)


@pytest.mark.parametrize(("kind", "causes"), [("packet", (1,)), ("enter", ())])
def test_a_packet_is_recorded_before_the_start_of_who_got_it(kind: str, causes: tuple[int, ...]) -> None:
    """What is passed on by an actor of the library came from a peer, and not from when that actor began."""
    started = Done("spawn", "durable", 0, False, "", 0)
    keeping, asserted = (
        Done("message", "durable", 2, False, ["keep", 7], 0),
        Done("assert", "dataspace", 3, True, [7], 1),
    )

    def step(number: int, actor: str, kind: str, act: Done, *causes: int, rests: tuple[int, ...] = ()) -> Happening:
        value = keeping.value if kind == "message" else ""
        return Happening("here", number, number, number, actor, kind, value, 2, False, 0, "", causes, rests, (), (act,))

    story = Story(
        [
            step(1, "server", "enter", started),
            step(2, "session a:1", kind, keeping, *causes, rests=(1,)),
            step(3, "durable", "message", asserted, 2, rests=(1,)),
        ]
    )
    for full in (False, True):
        cause = Why(story, full=full).why([7])
        assert cause is not None
        assert "what came to session a:1" in cause.draw() or full
        assert ("a start" in cause.draw()) is full
