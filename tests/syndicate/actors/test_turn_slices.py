"""Turns of many events: taken in slices, seen as one."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import (
    ANY,
    Entity,
    Observe,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    on_asserted,
    on_message,
    on_stop,
    on_stop_or_crash,
    open_system,
    prevent_inert_check,
    query_set,
    ref,
    run,
    send,
    spawn,
    stop_actor,
    sync,
)
from syndicate.actors import system as systems
from syndicate.actors import turn_slices
from syndicate.actors.actor import STRETCH
from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of
from syndicate.actors.turn import Handle, Turn, current
from syndicate.actors.turn_slices import LARGE
from syndicate.index.event import ENTER, Event
from syndicate.testing import Seen, settled, watch
from tests.strategies import P, examples

MANY = 5_000


class Counting(Entity):
    """Counts what it is notified of."""

    def __init__(self) -> None:
        self.heard = 0
        self.least: list[int] = []

    def message(self, value: Any) -> None:
        self.heard += 1

    def assert_(self, value: Any, handle: Any) -> None:
        self.heard += 1


class Stage:
    """A dataspace, an actor that observes it, and a facet to act in."""

    def __init__(self, observe: Callable[[Ref], object]) -> None:
        self.facets: list[Facet] = []
        self.system = settled(self.boot, observe)

    def boot(self, observe: Callable[[Ref], object]) -> None:
        self.ds = dataspace()
        prevent_inert_check()
        self.facets.append(current_facet())
        self.observer = spawn(observe, self.ds)

    def act(self, fn: Callable[[Ref], object]) -> None:
        self.facets[0].enter(lambda: fn(self.ds))

    def drain(self, monkeypatch: pytest.MonkeyPatch, look: Callable[[], None]) -> int:
        """Let everything happen, and call *look* whenever other tasks would have their chance; how often that was."""
        times = [0]

        def clock() -> float:  # each look at the clock is the end of a share
            look()
            times[0] += 1
            return float(times[0])

        monkeypatch.setattr(systems, "perf_counter", clock)
        while self.system.queue:
            self.system.drain(1.5)
        monkeypatch.undo()
        return times[0]


@pytest.mark.parametrize(("price", "most"), [(0.00001, 40), (0.001, 16), (0.0, LARGE)])
def test_the_longer_an_event_takes_the_fewer_are_handled_at_once(
    price: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others wait for is a time, and not a number; and an actor that is fast again is soon at the most again."""
    stage = Stage(lambda ds: None)
    spent, costs = 0.0, price
    target: Any = None
    counts: list[int] = []
    heard: list[int] = []

    class Working(Entity):
        def message(self, value: Any) -> None:
            nonlocal spent
            spent += costs
            heard.append(value)

    def act(count: int) -> list[int]:
        counts.clear()
        monkeypatch.setattr(turn_slices, "thread_time", lambda: spent)
        stage.facets[0].enter(lambda: [send(target, n) for n in range(count)])
        stage.drain(monkeypatch, lambda: counts.append(len(heard)))
        return [b - a for a, b in itertools.pairwise(counts) if b > a]

    def boot() -> None:
        nonlocal target
        prevent_inert_check()
        target = ref(Working())

    stage.system.spawn(boot)
    stage.system.drain()
    slices = act(2000)
    assert max(slices[4:-1]) <= most
    assert sum(slices) == 2000
    costs = 0.0
    assert max(act(2000)) == LARGE


def test_a_slice_of_few_events_is_not_taken_for_a_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last slice of a turn has what is left: how many the next one has depends on what each event takes."""
    stage = Stage(lambda ds: None)
    spent = 0.0
    targets: list[Ref] = []

    class Working(Entity):
        def message(self, value: Any) -> None:
            nonlocal spent
            spent += 0.000005

    def boot() -> None:
        prevent_inert_check()
        targets.append(ref(Working()))

    worker = stage.system.spawn(boot)
    stage.system.drain()
    monkeypatch.setattr(turn_slices, "thread_time", lambda: spent)
    stretches: list[int] = []
    for rest in (1, 10, 60):
        stage.act(lambda ds, rest=rest: [send(targets[0], n) for n in range(8 * LARGE + rest)])  # type: ignore[misc]
        stage.system.drain()
        stretches.append(worker.stretch)
    assert stretches == [64, 64, 64]


@pytest.mark.parametrize("handlers", [1, 200])
def test_few_events_are_handled_between_two_looks_at_the_clock(handlers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the dataspace that is notified of many values in one turn, and by the observers that it notifies of them."""
    calls = [0]

    def observe(ds: Ref) -> None:
        def heard(value: Any) -> None:
            calls[0] += 1

        for _ in range(handlers):
            on_message(ds, P(capture()))(heard)
            on_asserted(ds, P(capture()))(heard)

    stage = Stage(observe)
    many = MANY // handlers

    def act(ds: Ref) -> None:
        for n in range(many):
            send(ds, P(n))
            assert_(ds, P(n))

    stage.act(act)
    stage.system.drain(0)
    most, last = 0, 0

    def look() -> None:
        nonlocal most, last
        now = stage.system.taken + calls[0]
        most, last = max(most, now - last), now

    last = stage.system.taken + calls[0]
    looks = stage.drain(monkeypatch, look)
    assert calls[0] == 2 * many * handlers
    assert looks > 2
    assert most <= 64 * (turn_slices.LARGE + 2)
    if handlers == 1:
        assert most <= 2 * (turn_slices.LARGE + 16)


def test_others_go_on_while_a_large_turn_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Actors, timers and tasks; and none of them sees a part of it."""
    seen: list[int] = []
    done: list[int] = []
    halves: list[int] = []

    def observe(ds: Ref) -> None:
        query = query_set(ds, P(capture()))
        dataflow(lambda: seen.append(len(query.value)))

    stage = Stage(observe)
    others: list[Facet] = []

    def other() -> None:
        prevent_inert_check()
        others.append(current_facet())
        on_asserted(stage.ds, P(capture()))(halves.append)

    stage.system.spawn(other)

    def bystander() -> None:
        prevent_inert_check()
        others.append(current_facet())

    stage.system.spawn(bystander)
    stage.system.drain()

    def act(ds: Ref) -> None:
        for n in range(MANY):
            assert_(ds, P(n))

    stage.act(act)
    turns = [0]

    def go_on() -> None:
        turns[0] += 1
        if stage.system.queue:
            others[1].enter(lambda: done.append(turns[0]))

    stage.drain(monkeypatch, go_on)
    assert seen == [0, MANY], "dataflow runs at the end of the turn"
    assert halves == list(range(MANY))
    assert len(done) > MANY // turn_slices.LARGE // 2, (
        "an actor that has nothing to do with it has its turns in between"
    )


@pytest.mark.parametrize("waits", [False, True])
def test_a_large_turn_is_set_aside_only_where_something_waits(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor that keeps itself busy has its turn after each slice; where there is none, slices follow each other."""
    pauses: list[None] = []
    heard: list[int] = []
    busy: list[int] = []

    def observe(ds: Ref) -> None:
        on_message(ds, P(capture()))(heard.append)

    stage = Stage(observe)
    ticker: list[Ref] = []

    def other() -> None:
        prevent_inert_check()

        class Ticker(Entity):
            def message(self, value: Any) -> None:
                busy.append(len(heard))
                if len(heard) < MANY:
                    send(ticker[0], value)

        ticker.append(ref(Ticker()))

    stage.system.spawn(other)
    stage.system.drain()

    def act(ds: Ref) -> None:
        for n in range(MANY):
            send(ds, P(n))
        if waits:
            send(ticker[0], "tick")

    stage.act(act)
    suspend = Turn.suspend

    def counted(turn: Turn) -> tuple[Any, ...]:
        pauses.append(None)
        return suspend(turn)

    monkeypatch.setattr(Turn, "suspend", counted)
    monkeypatch.setattr(systems, "perf_counter", lambda: 0.0)
    stage.system.drain(1)
    assert heard == list(range(MANY))
    slices = MANY // STRETCH
    assert len(pauses) == (2 * slices if waits else 0), "that of the dataspace, and that of the observer"
    assert not waits or len(busy) > 2 * slices


def test_what_comes_from_outside_waits_for_one_slice_of_a_large_turn() -> None:
    """The sockets are looked at after each slice, and whoever hears something there has its turn after the next."""
    stage = Stage(lambda ds: None)
    bystander: list[Facet] = []

    def other() -> None:
        prevent_inert_check()
        bystander.append(current_facet())

    stage.system.spawn(other)
    stage.system.drain()

    def act(ds: Ref) -> None:
        for n in range(MANY):
            assert_(ds, P(n))

    waited: list[int] = []

    def look() -> None:
        came = stage.system.taken
        if stage.system.lanes:
            bystander[0].enter(lambda: waited.append(stage.system.taken - came))

    stage.act(act)
    stage.system.inlet = look
    stage.system.drain()
    assert len(waited) >= MANY // STRETCH - 1
    assert max(waited) <= STRETCH + 16


def test_what_comes_from_outside_goes_before_the_next_slice_with_all_that_it_causes() -> None:
    """However many actors it goes through, it waits once; and the turn goes on, though something comes each time."""
    stage = Stage(lambda ds: None)
    facets: list[Facet] = []
    waited: list[int] = []

    def other() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    for _ in range(5):
        stage.system.spawn(other)
    stage.system.drain()

    def hop(facets: list[Facet], came: int) -> None:
        if facets:
            facets[0].enter(partial(hop, facets[1:], came))
        else:
            waited.append(stage.system.taken - came)

    def look() -> None:
        if stage.system.lanes:
            hop(facets, stage.system.taken)

    stage.act(lambda ds: [assert_(ds, P(n)) for n in range(MANY)])
    stage.system.inlet = look
    stage.system.drain()
    assert len(waited) >= MANY // STRETCH - 1
    assert max(waited) <= STRETCH + 32


@pytest.mark.parametrize("begun", [False, True])
def test_what_is_there_and_what_that_says_goes_before_a_large_turn(begun: bool) -> None:
    """Before its first slice as before the others: who was first has its turns, and is heard outside."""
    stage = Stage(lambda ds: None)
    facets: list[Facet] = []
    heard: list[int] = []
    at: list[int] = []

    def other() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    class Working(Entity):
        def message(self, value: Any) -> None:
            heard.append(value)

    targets: list[Ref] = []

    def worker() -> None:
        prevent_inert_check()
        targets.append(ref(Working()))

    for boot in (worker, *[other] * 5):
        stage.system.spawn(boot)
    stage.system.drain()

    def hop(facets: list[Facet]) -> None:
        if facets:
            facets[0].enter(partial(hop, facets[1:]))
        else:
            stage.system.after_slice(lambda: at.append(len(heard)))

    def look() -> None:
        if begun and stage.system.lanes and len(heard) == 4 * STRETCH:
            hop(facets)

    stage.system.inlet = look
    stage.act(lambda ds: [send(targets[0], n) for n in range(MANY)])
    if not begun:
        hop(facets)
    stage.system.drain()
    assert at == [4 * STRETCH if begun else 0]
    assert heard == [*range(MANY)]


def test_what_comes_meanwhile_waits_in_order() -> None:
    """Batches of all senders are taken one after the other, each whole."""
    heard: list[int] = []
    stage = Stage(lambda ds: on_message(ds, P(capture()))(heard.append))

    def act(first: int, count: int) -> Callable[[Ref], None]:
        def do(ds: Ref) -> None:
            for n in range(count):
                send(ds, P(first + n))

        return do

    total = 0
    for count in (2000, 1, 600, 3, 1, 2000, 5):
        stage.act(act(total, count))
        total += count
    stage.system.drain()
    assert heard == list(range(total))
    assert not stage.system.lanes


def test_who_has_waited_for_a_turn_goes_before_who_has_come_since() -> None:
    """What comes for an actor in the midst of its turn waits for that, and not for what comes for others meanwhile."""
    heard: list[str] = []
    facets: list[Facet] = []
    targets: list[Ref] = []

    class Hearing(Entity):
        def message(self, value: Any) -> None:
            heard.append("asked")

    def busy() -> None:
        prevent_inert_check()
        targets.append(ref(Hearing()))

    def other() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    stage = Stage(lambda ds: None)
    stage.system.spawn(busy)
    stage.system.spawn(other)
    stage.system.drain()

    def look() -> None:
        if stage.system.lanes:
            heard.append("came")
            facets[0].enter(lambda: heard.append("other"))
            if "asked" not in heard and heard.count("came") == 1:
                stage.act(lambda ds: send(targets[0], 0))

    stage.act(lambda ds: [assert_(targets[0], n) for n in range(MANY)])
    stage.system.inlet = look
    stage.system.drain()
    assert heard.count("other") >= MANY // STRETCH - 1
    after_it = heard[heard.index("asked") :]
    assert after_it.count("other") >= MANY // STRETCH - 3


def test_a_call_at_the_end_of_a_turn_comes_though_its_lane_has_gone_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch moves its lane to the front, and a call waits behind both: what is left at the back is for nobody."""
    heard: list[int] = []
    handled: list[int] = []
    stage = Stage(lambda ds: on_message(ds, P(capture()))(heard.append))
    system = stage.system

    def act(count: int) -> Callable[[Ref], None]:
        def do(ds: Ref) -> None:
            for n in range(count):
                send(ds, P(n))

        return do

    def ask() -> None:
        if not handled and any(lane.behind for lane in system.lanes.values()):
            handled.append(0)
            system.when_handled(lambda: handled.append(system.taken))

    stage.act(act(2000))
    stage.act(act(5))
    stage.drain(monkeypatch, ask)
    assert len(heard) == 2005
    assert len(handled) == 2
    assert not system.lanes


@pytest.mark.parametrize("at", [0, 300, MANY - 1])
def test_a_crash_in_a_large_turn_undoes_all_of_it(at: int) -> None:
    """What earlier slices have noted is not seen, either; what waits in the lane is for nobody."""
    seen: list[Seen] = []
    cleaned: list[str] = []

    def observe(ds: Ref) -> None:
        on_stop_or_crash(lambda: cleaned.append("up"))
        assert_(ds, ["there"])

        @on_message(ds, P(capture()))
        def heard(n: int) -> None:
            assert_(ds, ["heard", n])
            if n == at:
                raise ValueError("on purpose")

    stage = Stage(observe)
    stage.system.spawn(lambda: seen.append(watch(stage.ds, capture(list))))
    stage.system.drain()

    def act(ds: Ref) -> None:
        for n in range(MANY):
            send(ds, P(n))

    stage.act(act)
    stage.act(act)
    stage.system.drain()
    assert [event[0] for event in seen[0]] == ["+", "-"]
    assert cleaned == ["up"]
    assert isinstance(stage.observer.error, ValueError)
    assert not stage.system.lanes
    assert stage.system.taken > 0


def test_an_interrupt_in_a_large_turn_leaves_the_rest_in_order() -> None:
    """Ctrl-C ends that actor; others and what waits for them go on."""
    heard: list[int] = []
    struck = [False]

    def observe(ds: Ref) -> None:
        @on_message(ds, P(capture()))
        def strike(n: int) -> None:
            if n == 700:
                struck[0] = True
                raise KeyboardInterrupt

    stage = Stage(observe)
    stage.system.spawn(lambda: on_message(stage.ds, P(capture()))(heard.append))
    stage.system.drain()

    def act(ds: Ref) -> None:
        for n in range(1000):
            send(ds, P(n))

    stage.act(act)
    stage.act(act)
    with pytest.raises(KeyboardInterrupt):
        stage.system.drain()
    stage.system.drain()
    assert heard == [*range(1000), *range(1000)]
    assert not stage.system.lanes


def test_syncs_and_stops_wait_for_the_whole_turn() -> None:
    """The answer to a sync behind a large turn comes after it; an actor that is stopped meanwhile finishes it first."""
    order: list[Any] = []

    def observe(ds: Ref) -> None:
        count = Counting()
        assert_(ds, ["counts"])
        on_message(ds, P(capture()))(count.message)
        on_stop(lambda: order.append(count.heard))

    stage = Stage(observe)

    def act(ds: Ref) -> None:
        for n in range(MANY):
            send(ds, P(n))
        sync(ds, lambda: stage.observer.root.enter(stop_actor))

    stage.act(act)
    stage.system.drain()
    assert order == [MANY]


def test_a_system_ends_after_its_large_turns() -> None:
    """run() hears them to the end, and a timer fires meanwhile."""
    heard: list[int] = []
    fired: list[int] = []

    def boot() -> None:
        ds = dataspace()

        def listen() -> None:
            @on_message(ds, P(capture()))
            def hear(n: int) -> None:
                heard.append(n)
                for _ in range(200):
                    pass

        spawn(listen)
        after(0.001, lambda: fired.append(len(heard)))

        def act() -> None:
            for n in range(30_000):
                send(ds, P(n))

        after(0, act)

    run(boot)
    assert heard == list(range(30_000))
    assert len(fired) == 1


@settings(max_examples=examples(30))
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(1, 5))
def test_slices_change_nothing(sizes: list[int], most: int) -> None:
    """Random turns are heard alike, however small the slices."""

    def heard_with(large: int) -> list[Seen]:
        seen: list[Seen] = []
        patch = pytest.MonkeyPatch()
        patch.setattr(systems, "LARGE", large)
        patch.setattr(turn_slices, "STRETCH", large)
        try:
            stage = Stage(lambda ds: seen.extend([watch(ds, P(capture())), watch(ds, P(ANY))]))
            handles: list[Handle] = []

            def act(ds: Ref, size: int) -> None:
                for n in range(size):
                    handles.append(assert_(ds, P(n % 5)))
                    send(ds, P(n))
                    if n % 3 == 0:
                        handles.pop(0).retract()

            for size in sizes:
                stage.act(lambda ds, size=size: act(ds, size))  # type: ignore[misc]
            stage.system.drain()
        finally:
            patch.undo()
        return seen

    assert heard_with(most) == heard_with(100_000)


def test_who_tells_ever_more_does_not_outrun_a_lane() -> None:
    """A turn of many events that calls for the next one at once: the dataspace is at most a turn behind."""
    waiting: list[int] = []
    heard = Counting()

    def boot() -> None:
        ds, me = dataspace(), current_facet()
        prevent_inert_check()
        assert_(ds, Observe(P(capture()), ref(heard)))

        def step(left: int) -> None:
            for n in range(2 * LARGE):
                send(ds, P(n))
            lanes_ = system_of(me.actor).lanes.values()
            waiting.append(sum(len(lane._waiting) for lane in lanes_))
            if left:
                me.enter(lambda: step(left - 1))

        step(100)

    settled(boot)
    assert heard.heard == 101 * 2 * LARGE
    assert max(waiting) <= 1


def test_long_work_in_pieces_lets_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece waits for all turns, those that it causes included; each slice has one, however busy the others are."""
    order: list[str] = []
    system = systems.System()
    facets: list[Facet] = []

    def boot() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    actor = system.spawn(boot)
    system.drain()

    def piece(left: int) -> None:
        order.append("piece")
        facets[0].enter(lambda: order.append("caused"))
        if left:
            system.postpone(actor, (ENTER, facets[0], partial(piece, left - 1), None))

    for _ in range(2):
        facets[0].enter(partial(piece, 1))
    facets[0].enter(lambda: order.append("other"))
    system.drain()
    assert order == ["piece", "piece", "other", "caused", "caused", "piece", "caused", "piece", "caused"]

    def busy() -> None:
        order.append("busy")
        facets[0].enter(busy)

    order.clear()
    ticks = itertools.count()
    monkeypatch.setattr(systems, "perf_counter", lambda: float(next(ticks)))
    facets[0].enter(partial(piece, 1))
    facets[0].enter(busy)
    for _ in range(4):
        system.drain(1.5)
    assert order.count("piece") == 2


@pytest.mark.parametrize("seed", range(30))
def test_between_two_pieces_of_a_slice_others_are_looked_at(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However soon a slice is over, also before it has begun, and whatever else is queued."""
    random, order = Random(seed), list[str]()
    system = systems.System()
    actor = system.spawn(prevent_inert_check)
    system.drain()
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += random.choice([0.0, systems.PIECES / 3, 2 * systems.SLICE])
        return now

    system.inlet = partial(order.append, "look")
    monkeypatch.setattr(systems, "perf_counter", clock)
    left = 30
    while left or system.queue:
        for _ in range(random.randrange(4)):
            if left and random.random() < 0.5:
                left -= 1
                system.postpone(actor, (ENTER, actor.root, partial(order.append, "piece"), None))
            else:
                actor.root.enter(partial(order.append, "other"))
        order.append("slice")
        system.take_slice()
    what = [each for each in order if each != "other"]
    assert what.count("piece") == 30
    assert ("piece", "piece") not in pairwise(what)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("busy", [False, True])
def test_steps_are_one_turn_and_others_have_theirs_between_them(busy: bool, fails: bool) -> None:
    """Nobody sees what a step has done before the last one is; if one fails, none has done anything."""
    order: list[Any] = []
    system = systems.System()
    facets: list[Facet] = []

    def boot() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    worker, other = system.spawn(boot), system.spawn(boot)
    system.drain()
    seen = Ref(facets[1], Seer(order), True)

    def step(number: int) -> None:
        order.append(number)
        current("step").send(seen, number)
        if fails and number == 2:
            raise ValueError

    def look() -> None:
        if order and order[-1] != "look":
            order.append("look")

    system.inlet = look
    if busy:
        system.enter(other, (ENTER, facets[1], partial(order.append, "before"), None))
    steps: list[Event] = [(ENTER, facets[0], partial(step, number), None) for number in range(3)]
    system.postpone_steps(worker, steps)
    facets[0].enter(partial(order.append, "behind"))
    system.drain()
    first = ["before"] if busy else []
    last = [] if fails else [("seen", 0), ("seen", 1), ("seen", 2)]
    assert [each for each in order if each not in ("look", "behind")] == [*first, 0, 1, 2, *last]
    between = order[order.index(0) : order.index(2) + 1]
    assert [each for each in between if each != "behind"] == [0, "look", 1, "look", 2]
    assert worker.running is not fails
    assert not system.lanes


@pytest.mark.parametrize("steps", [4, 2 * LARGE])
def test_steps_that_have_to_wait_for_others_are_no_stretch(steps: int) -> None:
    """A slice that is over before they begin puts them behind what is there: what comes then is before the last."""
    order: list[Any] = []
    facets: list[Facet] = []

    class Timed(systems.System):
        """One whose clock goes on with each event."""

        stopwatch = staticmethod(lambda: len(order))

    def boot() -> None:
        prevent_inert_check()
        facets.append(current_facet())

    system = Timed()
    worker, other = system.spawn(boot), system.spawn(boot)
    system.drain()
    behind: Event = (ENTER, facets[1], partial(order.append, "behind"), None)
    for number in range(40):
        system.enter(other, (ENTER, facets[1], partial(order.append, f"before {number}"), None))
    events: list[Event] = [(ENTER, facets[0], partial(order.append, number), None) for number in range(steps)]
    system.postpone_steps(worker, events)
    for _ in range(41 + steps):
        system.drain(0.5)
        if order[-1] == 0:
            system.enter(other, behind)
    assert order == [*(f"before {number}" for number in range(40)), 0, 1, "behind", *range(2, steps)]
    assert not system.lanes


@pytest.mark.parametrize("looks", [True, False])
def test_few_events_are_freed_between_two_looks(looks: bool) -> None:
    """What a large turn leaves is freed by as much at once as is handled, where somebody looks meanwhile; all goes."""
    freed = most = last = 0

    class Token(Entity):
        """Counts those that are gone."""

        def __del__(self) -> None:
            nonlocal freed
            freed += 1

    def look() -> None:
        nonlocal most, last
        most, last = max(most, freed - last), freed

    stage = Stage(lambda ds: None)
    seer = Ref(stage.facets[0], Entity(), True)

    def act(ds: Ref) -> None:
        for _ in range(MANY):
            send(seer, ref(Token()))

    stage.system.inlet = look if looks else None
    stage.act(act)
    stage.system.drain()
    look()
    assert freed == MANY
    assert most <= STRETCH if looks else most == MANY
    assert not stage.system.queue
    assert not stage.system.lanes


class Seer(Entity):
    """Writes down what it is sent."""

    raw: ClassVar[bool] = True

    def __init__(self, order: list[Any]) -> None:
        self.order = order

    def message(self, value: Any) -> None:
        self.order.append(("seen", value))


async def test_what_is_postponed_between_turns_is_something_to_do() -> None:
    """Whoever waits until nothing is to be done waits for it, too, though nothing else is there."""
    async with open_system() as system:
        actor = system.spawn(prevent_inert_check)
        await system.settle()
        done: list[int] = []
        for number in range(3):
            system.postpone(actor, (ENTER, actor.root, partial(done.append, number), None))
        await system.settle()
        assert done == [0, 1, 2]


def test_a_turn_that_pauses_keeps_all_that_is_its_own() -> None:
    """Whatever slots there are: what all turns of a system share stays, and all else is set aside and comes back."""
    turn = Turn(deque(), settled(lambda: None))
    shared = {"queue", "settling", "system", "tracing"}
    own = {name: object() for name in Turn.__slots__ if name not in shared}
    before = {name: getattr(turn, name) for name in shared}
    for name, value in own.items():
        setattr(turn, name, value)
    state = turn.suspend()
    assert not any(getattr(turn, name) in own.values() for name in own)
    turn.resume(state)
    assert {name: getattr(turn, name) for name in own} == own
    assert {name: getattr(turn, name) for name in shared} == before


async def test_a_system_is_ended_while_its_pump_waits_and_others_look() -> None:
    """Whoever looks between two pieces of long work takes no turns: the end takes them all, each once, and in order."""
    order: list[int] = []
    roots: list[Facet] = []

    def last() -> None:
        prevent_inert_check()
        roots.append(current_facet())

    def first() -> None:
        prevent_inert_check()

        def end() -> None:
            (root,) = roots
            for number in range(6):
                system_of(root.actor).postpone(root.actor, (ENTER, root, partial(order.append, number), None))

        on_stop(end)

    async with open_system(first) as system:
        system.spawn(last, daemon=True)  # which ends behind the others
        await trio.testing.wait_all_tasks_blocked()
        system.inlet = system.at_once  # as sockets do in which something has come
    assert order == [*range(6)]
