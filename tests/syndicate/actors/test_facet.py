# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from syndicate import (
    Ref,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    during,
    field,
    on_stop,
    on_stop_or_crash,
    prevent_inert_check,
    react,
    send,
    spawn,
    stop,
    stop_actor,
)
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.verbs import current_turn
from syndicate.errors import EndlessStop, WrongActor
from syndicate.testing import Seen, settled, watch
from tests.strategies import P


class Stage:
    """A dataspace with a watcher in an actor of its own, and an actor that runs *boot*."""

    def __init__(self, boot: Callable[[Ref], object]) -> None:
        self.seen: Seen = []
        self.system = settled(self.boot, boot)

    def boot(self, boot: Callable[[Ref], object]) -> None:
        self.ds = dataspace()
        spawn(lambda: setattr(self, "seen", watch(self.ds, P(capture()))))
        self.actor: Actor = spawn(boot, self.ds, name="tested")

    def enter(self, facet: Facet, fn: Callable[[], object]) -> None:
        """Run *fn* in a turn in *facet*."""
        facet.enter(fn)
        self.system.drain()

    @property
    def marks(self) -> str:
        """What was seen, in short: ``+a -a``."""
        return " ".join(f"{mark}{name}" for mark, name in self.seen)


def test_the_order_of_a_stop() -> None:
    """Children, stop handlers in the parent's context, own retractions: a continuation shows before the rest goes."""

    def boot(ds: Ref) -> None:
        @react
        def outer() -> None:
            assert_(ds, P("outer"))
            react(lambda: assert_(ds, P("inner")))

        stop(outer, lambda: assert_(ds, P("continuation")))

    stage = Stage(boot)
    assert stage.marks == "+outer +inner +continuation -inner -outer"
    assert stage.actor.running  # the continuation's assertion is the parent's


def test_stop_handlers_run_in_the_order_of_registration_children_first() -> None:
    """Whether they run on a stop only or on a crash too; the continuation comes last."""
    order: list[str] = []

    def boot(ds: Ref) -> None:
        @react
        def outer() -> None:
            on_stop(lambda: order.append("outer 1"))
            on_stop_or_crash(lambda: order.append("outer 2"))

            @react
            def first() -> None:
                prevent_inert_check()
                on_stop(lambda: order.append("first"))
                react(lambda: (prevent_inert_check(), on_stop(lambda: order.append("deep"))))

            react(lambda: (prevent_inert_check(), on_stop(lambda: order.append("second"))))
            on_stop(lambda: order.append("outer 3"))

        stop(outer, lambda: order.append("then"))

    Stage(boot)
    assert order == ["deep", "first", "second", "outer 1", "outer 2", "outer 3", "then"]


def test_stop_handlers_run_in_the_context_of_the_parent() -> None:
    """A facet made in on_stop survives, as a child of the parent; fields may still be set."""
    places: list[Facet] = []
    survivors: list[Facet] = []

    def boot(ds: Ref) -> None:
        places.append(current_facet())
        count = field(0, name="count")

        @react
        def outer() -> None:
            prevent_inert_check()

            @on_stop
            def again() -> None:
                count.value += 1
                places.append(current_facet())
                survivors.append(react(lambda: assert_(ds, P("survivor"))))

        stop(outer)
        assert count.value == 1

    stage = Stage(boot)
    assert places[0] is places[1] is survivors[0].parent
    assert survivors[0].alive
    assert stage.marks == "+survivor"


def test_what_a_stopped_actor_makes_while_it_stops_goes_with_it() -> None:
    """When the whole actor stops, a facet made by a stop handler of its outermost facet starts, and stops too."""

    def boot(ds: Ref) -> None:
        assert_(ds, P("own"))
        on_stop(lambda: react(lambda: assert_(ds, P("late"))))

    stage = Stage(boot)
    stage.enter(stage.actor.root, stop_actor)
    assert stage.marks == "+own +late -own -late"
    assert not stage.actor.running
    assert stage.actor.error is None


def test_a_facet_that_stops_itself_can_finish_what_it_does() -> None:
    """After ``stop()`` messages still go out, but nothing starts in the dead facet."""

    def boot(ds: Ref) -> None:
        prevent_inert_check()

        @react
        def facet() -> None:
            assert_(ds, P("early"))
            stop()
            handle = assert_(ds, P("never"))
            assert not handle.live
            inner = react(lambda: assert_(ds, P("never")))
            assert not inner.alive
            send(ds, P("said"))

    assert Stage(boot).marks == "+early !said -early"


def test_stopping_twice_is_stopping_once() -> None:
    """A second stop, from outside, from inside or from a stop handler, changes nothing."""
    stops: list[int] = []

    def boot(ds: Ref) -> None:
        prevent_inert_check()

        @react
        def facet() -> None:
            prevent_inert_check()
            on_stop(lambda: (stops.append(1), stop(facet)))

        stop(facet)
        stop(facet)

    stage = Stage(boot)
    assert stops == [1]
    assert stage.actor.running


def test_a_facet_of_another_actor_cannot_be_stopped() -> None:
    """The error says how it can be."""

    def boot(ds: Ref) -> None:
        prevent_inert_check()

    stage = Stage(boot)
    other = stage.system.spawn(lambda: stop(stage.actor.root))
    stage.system.drain()
    with pytest.raises(WrongActor, match=r"belongs to another actor: use facet.enter\(stop\)"):
        raise other.error or AssertionError
    assert stage.actor.running
    stage.enter(stage.actor.root, stop)
    assert not stage.actor.running


# -------------------------------------------------------------------------------------------------- inertness


def keeps(boot: Callable[[Ref], Any]) -> bool:
    """Whether an actor with this boot function lives on."""
    return Stage(boot).actor.running


def test_what_keeps_a_facet() -> None:
    """Assertions, interests, children and preventers do; fields, blocks, messages and stop handlers do not."""
    assert keeps(lambda ds: assert_(ds, P(1)))
    assert keeps(lambda ds: during(ds, P(1))(lambda: None))
    assert keeps(lambda ds: react(lambda: assert_(ds, P(1))))
    assert keeps(lambda ds: prevent_inert_check())
    assert not keeps(lambda ds: None)
    assert not keeps(lambda ds: send(ds, P(1)))
    assert not keeps(lambda ds: field(1))
    assert not keeps(lambda ds: on_stop(lambda: None))
    assert not keeps(lambda ds: react(lambda: None))
    assert not keeps(lambda ds: assert_(ds, P(1)).retract())
    assert not keeps(lambda ds: assert_(ds, lambda: None))
    assert not keeps(lambda ds: spawn(lambda: assert_(ds, P(1))))


def test_an_inert_facet_stops_in_order_and_its_parents_after_it() -> None:
    """Inertness runs up the tree; each facet runs its stop handlers; the actor ends without an error."""
    order: list[str] = []

    def boot(ds: Ref) -> None:
        on_stop(lambda: order.append("boot"))

        @react
        def outer() -> None:
            on_stop(lambda: order.append("outer"))
            react(lambda: on_stop(lambda: order.append("inner")))

    stage = Stage(boot)
    assert order == ["inner", "outer", "boot"]
    assert not stage.actor.running
    assert stage.actor.error is None


def test_a_facet_becomes_inert_when_its_last_child_goes() -> None:
    """But not while something else is left."""
    facets: list[Facet] = []

    def boot(ds: Ref) -> None:
        def outer() -> None:
            facets.append(react(lambda: assert_(ds, P(1))))
            facets.append(react(lambda: assert_(ds, P(2))))

        facets.append(react(outer))

    stage = Stage(boot)
    first, second, outer = facets
    stage.enter(first, stop)
    assert outer in outer.actor.root.below()
    stage.enter(second, stop)
    assert not outer.alive
    assert not stage.actor.running


def test_a_preventer_is_disarmed_once() -> None:
    """Disarming twice counts once, and does not itself stop the facet: the next look at it does."""
    disarms: list[Callable[[], None]] = []
    facets: list[Facet] = []

    def boot(ds: Ref) -> None:
        disarms.extend([prevent_inert_check(), prevent_inert_check()])
        facets.append(current_facet())

    stage = Stage(boot)
    stage.enter(facets[0], lambda: (disarms[0](), disarms[0]()))
    stage.enter(facets[0], lambda: react(lambda: None))
    assert stage.actor.running
    stage.enter(facets[0], disarms[1])
    stage.enter(facets[0], lambda: react(lambda: None))
    assert facets[0].actor not in stage.system.actors


def test_facets_without_end_are_an_error_and_not_a_hang() -> None:
    """Stop handlers that always make one more facet are found out, in a stop and in the search for inert facets."""

    def while_stopping(ds: Ref) -> None:
        def again() -> None:
            react(lambda: (prevent_inert_check(), on_stop(again)))

        react(lambda: (prevent_inert_check(), on_stop(again)))
        stop()

    def while_inert(ds: Ref) -> None:
        prevent_inert_check()

        def again() -> None:
            react(lambda: on_stop(again))

        again()

    for boot in (while_stopping, while_inert):
        stage = Stage(boot)
        assert isinstance(stage.actor.error, EndlessStop)
        assert "without end" in str(stage.actor.error)


def test_an_exception_in_a_nested_facet_restores_the_context() -> None:
    """Whoever catches it goes on in the facet in which they were."""

    def boot(ds: Ref) -> None:
        here = current_facet()
        prevent_inert_check()
        with pytest.raises(ZeroDivisionError):
            react(lambda: 1 / 0)
        assert current_facet() is here

    assert keeps(boot)


# ---------------------------------------------------------------------------------------------------- depth

DEPTH = 20_000


def _chain(depth: int, furnish: Callable[[int], object]) -> list[Facet]:
    """A chain of nested facets, each of which runs *furnish* with its number; a facet grows in the one above it."""
    facets: list[Facet] = []
    turn = current_turn(current_facet())
    for number in range(depth):
        parent = facets[-1] if facets else current_facet()
        parent.run(turn, lambda number=number: facets.append(react(lambda: furnish(number))))
    return facets


@pytest.mark.parametrize("end", ["stop", "stop_actor", "crash", "inert", "of its parent", "while it stops"])
def test_facets_may_be_nested_deeper_than_pythons_stack(end: str) -> None:
    """Whatever ends them, all handlers run, innermost first, and nothing is left."""
    stopped: list[int] = []
    facets: list[Facet] = []
    disarm: list[Callable[[], None]] = []

    def furnish(number: int) -> None:
        on_stop_or_crash(lambda: stopped.append(number))
        if end != "inert":
            assert_(stage.ds, P(number))
        elif number == DEPTH - 1:
            disarm.append(prevent_inert_check())

    def grow() -> None:
        facets.extend(_chain(DEPTH, furnish))

    def finish() -> None:
        if end == "stop_actor":
            stop_actor()
        elif end == "crash":
            raise ZeroDivisionError
        elif end == "inert":
            disarm[0]()
            stop(facets[-1])
        elif end == "of its parent":
            stop(facets[0])
        else:
            stop(top[0])

    top: list[Facet] = []

    def boot(ds: Ref) -> None:
        prevent_inert_check()

        @react
        def outer() -> None:
            prevent_inert_check()
            top.append(current_facet())
            if end == "while it stops":  # the handler grows the chain in the root's child, which stops it then
                on_stop(lambda: (react(grow), stop(facets[0])))

    stage = Stage(boot)
    if end != "while it stops":
        stage.enter(top[0], grow)
    stage.enter(top[0], finish)
    error = stage.actor.error
    assert (type(error) if error else None) is (ZeroDivisionError if end == "crash" else None)
    assert stopped == list(range(DEPTH - 1, -1, -1))
    assert not any(facet.alive or facet.handles for facet in facets)
    assert sum(1 if mark == "+" else -1 for mark, *_ in stage.seen) == 0


@pytest.mark.parametrize("depth", [1, 4, 5, 6, 7, 40])
def test_a_chain_that_becomes_inert_is_no_endless_stop(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each facet needs a round of its own; that there are more of them than rounds are allowed makes no error."""
    monkeypatch.setattr("syndicate.actors.turn.ROUNDS", 5)
    disarm: list[Callable[[], None]] = []
    top: list[Facet] = []
    facets: list[Facet] = []

    def furnish(number: int) -> None:
        if number == depth - 1:
            disarm.append(prevent_inert_check())

    def boot(ds: Ref) -> None:
        prevent_inert_check()
        top.append(react(lambda: facets.extend(_chain(depth, furnish))))

    stage = Stage(boot)
    assert all(facet.alive for facet in (*top, *facets))
    stage.enter(top[0], lambda: (disarm[0](), stop(facets[-1])))
    assert stage.actor.error is None
    assert not any(facet.alive for facet in (*top, *facets))


@pytest.mark.parametrize("error", [None, ZeroDivisionError("linked")])
@pytest.mark.parametrize("vital", [False, True])
def test_a_vital_facet_fails_with_its_parent_and_ends_without(vital: bool, error: Exception | None) -> None:
    """What its parent is there for has failed, or has come to its end in order."""
    grown: list[Facet] = []

    def boot(ds: Ref) -> None:
        prevent_inert_check()
        react(lambda: (prevent_inert_check(), grown.append(react(outer))))

    def outer() -> None:
        prevent_inert_check()
        grown.append(react(prevent_inert_check))

    stage = Stage(boot)
    inner, parent = grown
    inner.vital = vital
    stage.enter(inner, lambda: inner.fail(current_turn(inner), error))
    assert not inner.alive
    assert parent.alive == (error is None or not vital)
    assert parent.parent is not None
    assert parent.parent.alive


def test_the_order_of_a_stop_is_that_of_the_recursive_definition() -> None:
    """Trees at random, some of whose handlers make facets: the handlers run in the order that the words say."""
    for seed in range(200):
        chance = random.Random(seed)
        log: list[Any] = []
        tree: dict[Facet, tuple[int, list[Any]]] = {}

        def plant(size: int, chance: random.Random = chance, log: list[Any] = log, tree: Any = tree) -> list[Any]:
            grown = []
            for number in range(size):
                below: list[Any] = []
                name = (size, number)
                late = chance.random() < 0.2

                def furnish(name: Any = name, below: list[Any] = below, late: bool = late, size: int = size) -> None:
                    prevent_inert_check()
                    below.extend(plant(chance.randrange(size)) if size > 1 else [])
                    on_stop(lambda: log.append(("first", name)))
                    if late:  # a facet in the parent, which stops with it, if that is stopping
                        on_stop(
                            lambda: react(lambda: (prevent_inert_check(), on_stop(lambda: log.append(("late", name)))))
                        )
                    on_stop(lambda: log.append(("second", name)))

                grown.append((name, react(furnish), below, late))
            return grown

        def expected(nodes: list[Any]) -> list[Any]:
            """The log of stopping facets whose parent stops: those there, and then those made by handlers."""
            said: list[Any] = []
            for name, _, below, _ in nodes:
                said += expected(below)
                said += [("first", name), ("second", name)]
            return said + [("late", name) for name, _, _, late in nodes if late]

        forest: list[Any] = []
        top: list[Facet] = []

        def boot(ds: Ref, forest: list[Any] = forest, top: list[Facet] = top) -> None:
            prevent_inert_check()
            top.append(react(lambda: (prevent_inert_check(), forest.extend(plant(4)))))

        stage = Stage(boot)
        stage.enter(top[0], stop)
        assert stage.actor.error is None
        assert log == expected(forest), seed


def test_blocks_run_between_the_stops_of_a_deep_chain() -> None:
    """What a stop handler changes is settled before the next facet is looked at, however many there are."""
    counts: list[int] = []
    last: list[Facet] = []

    def boot(ds: Ref) -> None:
        prevent_inert_check()
        count = field(0, name="count")
        dataflow(lambda: counts.append(count.value))
        facets = _chain(
            20_000, lambda number: (on_stop(lambda: count.set(number)), number == 19_999 and prevent_inert_check())
        )
        last.append(facets[-1])

    stage = Stage(boot)
    stage.enter(last[0], stop)
    assert stage.actor.error is None
    assert counts == [0, *range(19_999, -1, -1)]
