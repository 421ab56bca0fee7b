# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from syndicate import (
    ANY,
    Entity,
    Observe,
    Ref,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    during,
    field,
    on_asserted,
    on_message,
    prevent_inert_check,
    query_count,
    react,
    record,
    ref,
    send,
    spawn,
    stop,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.testing import settled
from tests.strategies import P
from tests.work import calls, lines

pytestmark = pytest.mark.usefixtures("logs")


@record
class Reading:
    """A sensor's number and what it reads."""

    sensor: int
    value: Any


class Counter(Entity):
    """Counts what it is notified of."""

    def __init__(self) -> None:
        self.count = 0

    def assert_(self, value: Any, handle: Any) -> None:
        self.count += 1

    def retract(self, handle: Any) -> None:
        self.count -= 1

    def message(self, value: Any) -> None:
        self.count += 1


class Stage:
    """A dataspace, and actors that can be made to do things."""

    def __init__(self) -> None:
        self.facets: list[Facet] = []
        self.system: System = settled(self.boot)
        self.counter = Counter()

    def boot(self) -> None:
        self.ds: Ref = dataspace()
        for _ in range(3):
            spawn(lambda: (prevent_inert_check(), self.facets.append(current_facet())))
        prevent_inert_check()

    def act(self, fn: Callable[[], Any], actor: int = 0) -> Any:
        """Run *fn* in a turn of an actor, and all that it causes; return what it answered."""
        answers: list[Any] = []
        self.facets[actor].enter(lambda: answers.append(fn()))
        self.system.drain()
        for each in (*[facet.actor for facet in self.facets], actor_of(self.ds)):
            assert each.error is None
        return answers[0]

    def observe(self, *patterns: Any) -> list[Any]:
        """Let the counter observe."""
        return self.act(lambda: [assert_(self.ds, Observe(pattern, ref(self.counter))) for pattern in patterns], 1)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------- growth

Step = Callable[[Stage, int], Callable[[], object]]
"""Prepares something of size n; what it returns is measured."""


def _asserted(stage: Stage, n: int) -> list[Any]:
    return stage.act(lambda: [assert_(stage.ds, Reading(i, i % 7)) for i in range(n)])  # type: ignore[no-any-return]


def _some_observers(stage: Stage, n: int) -> list[Any]:
    return stage.observe(*[Reading(i, capture()) for i in range(n)])


def _assert_all(s: Stage, n: int) -> Callable[[], object]:
    _some_observers(s, n)
    return lambda: _asserted(s, n)


def _retract_all(s: Stage, n: int) -> Callable[[], object]:
    _some_observers(s, n)
    handles = _asserted(s, n)
    return lambda: s.act(lambda: [handle.retract() for handle in handles])


def _replace_all(s: Stage, n: int) -> Callable[[], object]:
    _some_observers(s, n)
    handles = _asserted(s, n)
    return lambda: s.act(lambda: [handle.replace(Reading(i, "new")) for i, handle in enumerate(handles)])


def _equal_copies(s: Stage, n: int) -> Callable[[], object]:
    def work() -> None:
        handles = s.act(lambda: [assert_(s.ds, Reading(1, 1)) for _ in range(n)])
        s.act(lambda: [handle.retract() for handle in handles])

    return work


def _observe_one_each(s: Stage, n: int) -> Callable[[], object]:
    _asserted(s, n)
    return lambda: _some_observers(s, n)


def _observe_and_unobserve(s: Stage, n: int) -> Callable[[], object]:
    def work() -> None:
        handles = _some_observers(s, n)
        s.act(lambda: [handle.retract() for handle in handles], 1)

    return work


def _a_late_observer_of_all(s: Stage, n: int) -> Callable[[], object]:
    _asserted(s, n)
    return lambda: s.observe(Reading(capture(), ANY))


def _a_late_observer_of_all_goes(s: Stage, n: int) -> Callable[[], object]:
    _asserted(s, n)
    (handle,) = s.observe(Reading(capture(), ANY))
    return lambda: s.act(handle.retract, 1)


def _messages_to_one_of_many(s: Stage, n: int) -> Callable[[], object]:
    _some_observers(s, n)
    return lambda: s.act(lambda: [send(s.ds, Reading(i, 0)) for i in range(n)])


def _messages_one_a_turn(s: Stage, n: int) -> Callable[[], object]:
    _some_observers(s, n)
    return lambda: [s.act(lambda i=i: send(s.ds, Reading(i, 0))) for i in range(n)]


def _one_message_to_many(s: Stage, n: int) -> Callable[[], object]:
    s.act(lambda: [assert_(s.ds, Observe(Reading(1, capture()), ref(Counter()))) for _ in range(n)], 1)
    return lambda: s.act(lambda: [send(s.ds, Reading(1, i)) for i in range(10)])


def _captures_that_coincide(s: Stage, n: int) -> Callable[[], object]:
    s.observe(Reading(ANY, capture()))
    return lambda: _asserted(s, n)


def _during_each(s: Stage, n: int) -> Callable[[], object]:
    s.act(lambda: during(s.ds, Reading(capture(), ANY))(lambda i: assert_(s.ds, P(i))), 1)

    def work() -> None:
        handles = _asserted(s, n)
        s.act(lambda: [handle.retract() for handle in handles])

    return work


def _a_facet_with_many_children(s: Stage, n: int) -> Callable[[], object]:
    def parent() -> None:
        for i in range(n):
            react(lambda i=i: assert_(s.ds, P(i)))

    facet = s.act(lambda: react(parent))
    return lambda: s.act(lambda: stop(facet))


def _during_of_an_actor_that_stops(s: Stage, n: int) -> Callable[[], object]:
    facet = s.act(lambda: react(lambda: during(s.ds, Reading(capture(), ANY))(lambda i: assert_(s.ds, P(i)))), 1)
    _asserted(s, n)
    return lambda: s.act(lambda: stop(facet), 1)


def _a_crash_with_many_assertions(s: Stage, n: int) -> Callable[[], object]:
    s.observe(Reading(ANY, capture()))

    def victim() -> None:
        for i in range(n):
            react(lambda i=i: assert_(s.ds, Reading(i, i)))
        on_message(s.ds, "fail")(lambda: 1 / 0)

    s.act(lambda: spawn(victim))
    return lambda: s.act(lambda: send(s.ds, "fail"))


def _many_actors(s: Stage, n: int) -> Callable[[], object]:
    def member(i: int) -> None:
        assert_(s.ds, Reading(i, i))
        on_asserted(s.ds, P(i))(stop)

    def work() -> None:
        s.act(lambda: [spawn(member, i) for i in range(n)])
        s.act(lambda: [assert_(s.ds, P(i)) for i in range(n)])

    return work


def _a_query(s: Stage, n: int) -> Callable[[], object]:
    s.act(lambda: query_count(s.ds, Reading(ANY, capture())), 1)
    return lambda: _asserted(s, n)


def _fields_with_many_readers(s: Stage, n: int) -> Callable[[], object]:
    instances: list[Any] = []

    def boot() -> None:
        shared = field(0)
        instances.append(shared)
        for _ in range(n):
            dataflow(lambda: shared.value)

    s.act(boot)
    return lambda: s.act(lambda: setattr(instances[0], "value", 1))


def _a_nest_of_shapes(s: Stage, n: int) -> Callable[[], object]:
    def work() -> None:
        handles = s.observe(*[[i, [i, {"k": capture()}]] for i in range(n)])
        nest = s.act(lambda: [assert_(s.ds, [i, [i, {"k": i, "l": 0}]]) for i in range(n)])
        s.act(lambda: [handle.retract() for handle in nest])
        s.act(lambda: [handle.retract() for handle in handles], 1)

    return work


STEPS: list[Step] = [
    _assert_all,
    _retract_all,
    _replace_all,
    _equal_copies,
    _observe_one_each,
    _observe_and_unobserve,
    _a_late_observer_of_all,
    _a_late_observer_of_all_goes,
    _messages_to_one_of_many,
    _messages_one_a_turn,
    _one_message_to_many,
    _captures_that_coincide,
    _during_each,
    _a_facet_with_many_children,
    _during_of_an_actor_that_stops,
    _a_crash_with_many_assertions,
    _many_actors,
    _a_query,
    _fields_with_many_readers,
    _a_nest_of_shapes,
]


@contextmanager
def no_collection() -> Iterator[None]:
    """Without the cyclic garbage collector, whose full passes cost what is alive, not what is done."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cost(step: Step, n: int) -> int:
    """The work of a step of size n."""
    work = step(Stage(), n)
    with no_collection():
        return lines(work)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__.strip("_"))
def test_growth_is_linear(step: Step) -> None:
    """Ten times as much takes ten times the work, and a little that a first time takes."""
    step(Stage(), 300)()  # what is hot is compiled
    few, many = cost(step, 300), cost(step, 3_000)
    assert many <= 10.5 * few + 1_000


# ------------------------------------------------------------------------------------------ one big dataspace

ASSERTIONS, OBSERVERS = 100_000, 10_000

ASSERTION_BYTES = 420
"""The most that an assertion may take: its value, its handle, its places in the dataspace, in all."""

CACHE_BYTES = 120
"""The most that a skeleton with constants may take for each assertion that it looks at."""

OBSERVER_BYTES, NOTICE_BYTES = 900, 350
"""The most that an observer with a pattern of its own may take, and each thing that it is notified of."""


def single_steps(s: Stage, n: int) -> dict[str, int]:
    """The work of single steps in a dataspace with n sensors."""
    stray = Reading(n + 5, 0)
    costs: dict[str, int] = {}

    def cost(name: str, fn: Callable[[], Any], actor: int = 0) -> Any:
        answers: list[Any] = []
        costs[name] = calls(lambda: answers.append(s.act(fn, actor)))
        return answers[0]

    handle = cost("assert what nobody observes", lambda: assert_(s.ds, stray))
    cost("retract it", handle.retract)
    handle = cost("assert what one observes", lambda: assert_(s.ds, Reading(1, "fresh")))
    handle = cost("replace it", lambda: handle.replace(Reading(1, "fresher")))
    cost("retract what one observes", handle.retract)
    cost("send what one observes", lambda: send(s.ds, Reading(2, "message")))
    cost("send what nobody observes", lambda: send(s.ds, stray))
    handle = cost("assert another copy", lambda: assert_(s.ds, Reading(3, 3)))
    cost("retract it again", handle.retract)
    observe = cost("observe ten", lambda: assert_(s.ds, Observe(Reading(4, capture()), ref(Counter()))), 2)
    cost("observe them no more", observe.retract, 2)
    observe = cost("observe nothing", lambda: assert_(s.ds, Observe(Reading(n + 9, capture()), ref(Counter()))), 2)
    cost("observe it no more", observe.retract, 2)
    observe = cost("observe what has no label yet", lambda: assert_(s.ds, Observe(P(capture()), ref(Counter()))), 2)
    cost("observe it no more again", observe.retract, 2)
    return costs


def crowd(assertions: int, observers: int) -> Stage:
    """A dataspace in which each of so many observers is notified of ten of so many assertions."""
    s = Stage()
    s.act(lambda: [assert_(s.ds, Reading(i % observers, i)) for i in range(assertions)])
    for first in range(0, observers, 100):
        s.act(
            lambda first=first: [
                assert_(s.ds, Observe(Reading(i, capture()), ref(s.counter))) for i in range(first, first + 100)
            ],
            1,
        )
    return s


def test_a_single_step_costs_the_same_in_a_big_dataspace() -> None:
    """100,000 assertions and 10,000 observers: no step makes more calls than among a hundredth of them.

    But for a few that weak dictionaries make when they clean themselves up.
    """
    small, big = crowd(ASSERTIONS // 100, OBSERVERS // 100), crowd(ASSERTIONS, OBSERVERS)
    assert big.counter.count == ASSERTIONS
    for s, n in ((small, OBSERVERS // 100), (big, OBSERVERS)):
        single_steps(s, n)
    with no_collection():
        few, many = single_steps(small, OBSERVERS // 100), single_steps(big, OBSERVERS)
    assert [step for step, number in many.items() if number > few[step] + 20] == []


def test_memory() -> None:
    """What assertions and observers take in a big dataspace, and that all of it comes back."""
    s = Stage()
    facets: list[Facet] = []
    settled(lambda: None)
    crowd(2_000, 200)

    def used() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    def asserting() -> None:
        for i in range(ASSERTIONS):
            assert_(s.ds, Reading(i % OBSERVERS, i))

    def observing(first: int, last: int) -> None:
        for i in range(first, last):
            assert_(s.ds, Observe(Reading(i, capture()), ref(Counter())))

    tracemalloc.start()
    try:
        empty = used()
        facets.append(s.act(lambda: react(asserting)))
        asserted = used()
        facets.append(s.act(lambda: react(lambda: observing(0, 1)), 1))
        memory = used()
        facets.append(s.act(lambda: react(lambda: observing(1, OBSERVERS)), 1))
        observed = used()
        for actor in (1, 1, 0):
            s.act(lambda: stop(facets.pop()), actor)
        left = used() - empty
    finally:
        tracemalloc.stop()
    sizes = [(asserted - empty) / ASSERTIONS, (memory - asserted) / ASSERTIONS, (observed - memory) / OBSERVERS]
    print(
        "bytes: {:.0f} an assertion, {:.0f} more once a skeleton looks at it, {:.0f} an observer of ten".format(*sizes)
    )
    assert sizes[0] < ASSERTION_BYTES
    assert sizes[1] < CACHE_BYTES
    assert sizes[2] < OBSERVER_BYTES + 10 * NOTICE_BYTES
    assert left < 200_000
