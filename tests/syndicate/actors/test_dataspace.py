# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import outcome
import pytest

from syndicate import (
    ANY,
    Dictionary,
    Entity,
    Observe,
    Record,
    Ref,
    Symbol,
    SyndicateError,
    ValueSet,
    assert_,
    capture,
    current_facet,
    dataspace,
    on_asserted,
    on_message,
    prevent_inert_check,
    react,
    ref,
    send,
    spawn,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.system import System
from syndicate.actors.turn import Handle
from syndicate.errors import NotAValue
from syndicate.testing import Seen, Watcher, settled, watch
from tests.strategies import PP, REFS, P


class Stage:
    """A dataspace, an actor that watches it, and one that acts, turn by turn."""

    def __init__(self, *patterns: Any) -> None:
        self.seen: list[Seen] = []
        self.system = settled(self.boot, patterns)

    def boot(self, patterns: tuple[Any, ...]) -> None:
        self.ds = dataspace()
        spawn(lambda: self.seen.extend([watch(self.ds, pattern) for pattern in patterns]))
        self.facet = current_facet()
        prevent_inert_check()

    def act(self, fn: Callable[[Ref], object]) -> Any:
        """Run ``fn(ds)`` in a turn; return what it answered, or raise what it raised."""
        answers: list[outcome.Outcome[object]] = []
        self.facet.enter(lambda: answers.append(outcome.capture(fn, self.ds)))
        self.system.drain()
        assert self.facet.actor.running
        assert actor_of(self.ds).error is None
        return answers[0].unwrap()

    def forget(self) -> None:
        """Begin again with what was seen."""
        for seen in self.seen:
            seen.clear()


# ---------------------------------------------------------------------------------------------- 1 and 2: bags


def test_equal_values_count_once() -> None:
    """Asserted n times, notified of once; gone with the last copy (row 1)."""
    stage = Stage(P(capture()))
    handles = [stage.act(lambda ds: assert_(ds, P(5))) for _ in range(3)]
    for handle in handles[:2]:
        stage.act(lambda ds, handle=handle: handle.retract())
    assert stage.seen == [[("+", 5)]]
    stage.act(lambda ds: handles[2].retract())
    assert stage.seen == [[("+", 5), ("-", 5)]]


def test_equal_values_of_several_actors_count_once() -> None:
    """The bag is the dataspace's, not an actor's: the assertion stays while anybody makes it."""
    stage = Stage(P(capture()))
    actors = [stage.act(lambda ds: spawn(lambda: assert_(ds, P(5)))) for _ in range(3)]
    for actor in actors:
        assert stage.seen == [[("+", 5)]]
        actor.root.enter(stop_actor)
        stage.system.drain()
    assert stage.seen == [[("+", 5), ("-", 5)]]


LOOK_ALIKES = (1, 1.0, True, "1", b"1", Symbol("1"), [1], ValueSet([1]), Record("1"), {1: 1})


def test_look_alikes_are_different_values() -> None:
    """What Python finds equal is kept apart; nan is equal to itself; zero has two signs (row 1)."""
    stage = Stage(P(capture()))
    for value in (*LOOK_ALIKES, math.nan, math.nan, 0.0, -0.0, 0, False):
        stage.act(lambda ds, value=value: assert_(ds, P(value)))
    assert len(stage.seen[0]) == len(LOOK_ALIKES) + 5


def test_equality_ignores_how_a_value_was_written() -> None:
    """A list and a tuple, a class and a plain record, dictionaries in any order are the same assertion."""
    stage = Stage(capture())
    stage.seen[0].clear()
    for same in (
        ([1, 2], (1, 2)),
        (P([1]), Record("p", [(1,)])),
        ({"a": 1, "b": 2}, Dictionary([("b", 2), ("a", 1)])),
        ({1, 2}, ValueSet([2, 1])),
    ):
        first, second = [stage.act(lambda ds, value=value: assert_(ds, value)) for value in same]
        assert len(stage.seen[0]) == 1
        stage.act(lambda ds, first=first: first.retract())
        assert len(stage.seen[0]) == 1
        stage.act(lambda ds, second=second: second.retract())
        assert [mark for mark, _ in stage.seen[0]] == ["+", "-"]
        stage.seen[0].clear()


def test_references_are_equal_only_to_themselves() -> None:
    """Two references to one entity are two values (row 1)."""
    stage = Stage(P(capture()))
    entity = Entity()
    for value in (REFS[0], REFS[0], REFS[1], Ref.unbound(entity), Ref.unbound(entity)):
        stage.act(lambda ds, value=value: assert_(ds, P(value)))
    assert len(stage.seen[0]) == 4


def test_different_assertions_with_equal_captures_are_one_to_an_observer() -> None:
    """A second bag counts the captures: one + and one - for all values that project to them (row 2)."""
    stage = Stage(PP(capture(), ANY), PP(ANY, capture()))
    first, second = [stage.act(lambda ds, n=n: assert_(ds, PP("x", n))) for n in (1, 2)]
    assert stage.seen == [[("+", "x")], [("+", 1), ("+", 2)]]
    stage.act(lambda ds: first.retract())
    assert stage.seen == [[("+", "x")], [("+", 1), ("+", 2), ("-", 1)]]
    stage.act(lambda ds: second.retract())
    assert stage.seen[0] == [("+", "x"), ("-", "x")]


# ----------------------------------------------------------------------------------------- 3 and 4: observers


def test_a_late_observer_is_notified_of_what_is_there_once() -> None:
    """It gets each distinct tuple of captures that matches now, and no history (row 3)."""
    stage = Stage()
    stage.act(lambda ds: [assert_(ds, PP(n % 3, n)) for n in range(9)])
    stage.act(lambda ds: assert_(ds, PP("gone", 0))).retract  # noqa: B018
    gone = stage.act(lambda ds: assert_(ds, PP("really gone", 0)))
    stage.act(lambda ds: gone.retract())
    stage.act(lambda ds: send(ds, PP("message", 0)))
    seen = stage.act(lambda ds: watch(ds, PP(capture(), ANY)))
    assert sorted(seen, key=repr) == sorted([("+", 0), ("+", 1), ("+", 2), ("+", "gone")], key=repr)


def test_an_observer_that_goes_is_notified_that_everything_goes() -> None:
    """Retracting an Observe takes back what its observer was notified of, and nothing reaches it afterwards (row 3)."""
    stage = Stage()
    watcher = Watcher()
    stage.act(lambda ds: [assert_(ds, P(n)) for n in range(3)])
    observe = stage.act(lambda ds: assert_(ds, Observe(P(capture()), ref(watcher))))
    other = stage.act(lambda ds: watch(ds, P(capture())))
    watcher.seen.clear()
    stage.act(lambda ds: observe.retract())
    assert sorted(watcher.seen) == [("-", 0), ("-", 1), ("-", 2)]
    assert not watcher.captures
    stage.act(lambda ds: (assert_(ds, P("late")), send(ds, P("late"))))
    assert len(watcher.seen) == 3
    assert other[3:] == [("+", "late"), ("!", "late")]


def test_interest_is_an_assertion_like_any_other() -> None:
    """Observe is observable, counted once, and gone when its facet stops (row 4)."""
    stage = Stage(Observe(capture(), ANY))
    (seen,) = stage.seen
    assert len(seen) == 1  # its own

    def interested() -> None:
        for _ in range(2):
            assert_(stage.ds, Observe(P(1), me))

    me = stage.act(lambda ds: ref(Watcher()))
    facet = stage.act(lambda ds: react(interested))
    assert len(seen) == 2
    stage.act(lambda ds: stop(facet))
    assert [mark for mark, _ in seen] == ["+", "+", "-"]


# ------------------------------------------------------------------------------------------ 5 and 6: messages


def test_a_message_goes_once_to_each_matching_observer() -> None:
    """It is not kept, and where nobody matches nothing happens (row 5)."""
    stage = Stage(P(capture()), P(ANY), P("other"), capture(P(ANY)))
    stage.act(lambda ds: send(ds, P("x")))
    assert stage.seen == [[("!", "x")], [("!",)], [], [("!", P("x"))]]
    stage.act(lambda ds: send(ds, ["nobody", "listens"]))
    assert stage.act(lambda ds: watch(ds, P(capture()))) == []


def test_one_entity_with_two_interests_gets_both() -> None:
    """And with one interest asserted twice there is one event (row 6)."""
    stage = Stage()
    watcher = Watcher()

    def observe_all(ds: Ref) -> list[Any]:
        me = ref(watcher)
        return [assert_(ds, Observe(pattern, me)) for pattern in (P(capture()), capture(P(ANY)), P(capture()))]

    handles = stage.act(observe_all)
    stage.act(lambda ds: assert_(ds, P(1)))
    stage.act(lambda ds: send(ds, P(2)))
    assert sorted(watcher.seen, key=repr) == sorted([("+", 1), ("+", P(1)), ("!", 2), ("!", P(2))], key=repr)
    watcher.seen.clear()
    stage.act(lambda ds: handles[0].retract())
    assert watcher.seen == []
    stage.act(lambda ds: handles[2].retract())
    assert watcher.seen == [("-", 1)]


# --------------------------------------------------------------------------------------------------- 8: order


def test_replace_shows_no_gap() -> None:
    """The new value comes before the old one goes; None only retracts; the same value is no event (row 8)."""
    stage = Stage(P(capture()), P(ANY))
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    same = stage.act(lambda ds: handle.replace(P(1)))
    assert same is handle
    handle = stage.act(lambda ds: handle.replace(P(True)))
    assert stage.seen == [[("+", 1), ("+", True), ("-", 1)], [("+",)]]
    assert stage.act(lambda ds: handle.replace(None)) is None
    assert stage.seen == [[("+", 1), ("+", True), ("-", 1), ("-", True)], [("+",), ("-",)]]
    assert stage.act(lambda ds: handle.replace(P(5))) is None  # what is gone cannot be replaced


def test_a_turn_is_one_patch() -> None:
    """What is asserted and retracted in one turn is seen once; what is retracted and asserted again was always there.

    Messages come before all retractions, whatever the order in which the turn made them.
    """
    stage = Stage(P(capture()), P(ANY))
    stage.act(lambda ds: assert_(ds, P(1)).retract())
    assert stage.seen == [[("+", 1), ("-", 1)], [("+",), ("-",)]]
    handle = stage.act(lambda ds: assert_(ds, P(2)))
    stage.forget()
    handle = stage.act(lambda ds: (handle.retract(), send(ds, P("between")), assert_(ds, P(2)))[2])
    assert stage.seen == [[("!", "between")], [("!",)]]
    stage.forget()
    stage.act(lambda ds: (handle.retract(), send(ds, P("between")), assert_(ds, P(3))))
    assert stage.seen == [[("!", "between"), ("+", 3), ("-", 2)], [("!",)]]


def test_a_sync_is_answered_after_the_retractions_before_it() -> None:
    """Whoever has the answer knows that all of its turn has been notified, however the turn went about it."""
    stage = Stage(P(capture()))
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    stage.forget()
    answered: list[list[Any]] = []
    stage.act(
        lambda ds: (
            handle.retract(),
            sync(ds, lambda: answered.append(list(stage.seen[0]))),
            assert_(ds, P(2)),
            send(ds, P(3)),
        )
    )
    assert answered == [[("+", 2), ("!", 3), ("-", 1)]]


def test_messages_and_assertions_keep_one_order() -> None:
    """FIFO for each pair: what an actor says in order is handled in order, over any number of turns."""
    stage = Stage(P(capture()))
    for n in range(0, 9, 3):
        stage.act(lambda ds, n=n: (send(ds, P(n)), assert_(ds, P(n + 1)), send(ds, P(n + 2))))
    assert [captured for _, captured in stage.seen[0]] == list(range(9))


def test_a_turn_of_the_observer_is_one_for_the_whole_batch() -> None:
    """What one turn said reaches an observing actor as one turn: its dataflow sees no half of it."""
    batches: list[list[int]] = []

    def observer(ds: Ref) -> None:
        here: list[int] = []

        @on_asserted(ds, P(capture()))
        def got(n: int) -> None:
            if not here:
                sync(myself, lambda: (batches.append(list(here)), here.clear()))
            here.append(n)

        myself = ref(Entity())

    stage = Stage()
    stage.act(lambda ds: spawn(observer, ds))
    stage.act(lambda ds: [assert_(ds, P(n)) for n in range(3)])
    stage.act(lambda ds: [assert_(ds, P(n)) for n in range(3, 5)])
    assert batches == [[0, 1, 2], [3, 4]]


# --------------------------------------------------------------------------------------------------- 9 and 10


def test_retracting_what_is_gone_does_nothing() -> None:
    """Twice, after the facet, after the actor: no error, and other copies stay (row 9)."""
    stage = Stage(P(capture()))
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    stage.act(lambda ds: assert_(ds, P(1)))
    stage.act(lambda ds: (handle.retract(), handle.retract()))
    stage.act(lambda ds: handle.retract())
    of_facet: list[Handle] = []
    facet = stage.act(lambda ds: react(lambda: of_facet.append(assert_(ds, P(1)))))
    stage.act(lambda ds: (stop(facet), of_facet[0].retract()))
    stage.act(lambda ds: of_facet[0].retract())
    assert not of_facet[0].live
    assert stage.seen == [[("+", 1)]]


@pytest.mark.parametrize(
    ("pattern", "value", "captures"),
    [
        (Record("r"), Record("r", [1, 2]), ()),
        (Record("r", [capture()]), Record("r", [1, 2]), (1,)),
        (Record("r", [capture(), ANY]), Record("r", [1]), None),
        (Record("r", [capture(), ANY]), Record("r", [1, 2, 3]), (1,)),
        ([capture()], [1, 2], (1,)),
        ([ANY, ANY], [1], None),
        ({"a": capture()}, {"a": 1, "b": 2}, (1,)),
        ({"a": ANY, "c": ANY}, {"a": 1, "b": 2}, None),
    ],
)
def test_arity_is_at_least(pattern: Any, value: Any, captures: Any) -> None:
    """More fields, items and entries than the pattern names do not matter; a trailing ANY demands one (row 10)."""
    stage = Stage(pattern)
    handle = stage.act(lambda ds: assert_(ds, value))
    stage.act(lambda ds: send(ds, value))
    stage.act(lambda ds: handle.retract())
    assert stage.seen == [[] if captures is None else [("+", *captures), ("!", *captures), ("-", *captures)]]


# ----------------------------------------------------------------------------------------------- handing over


def test_responsibility_passes_without_an_event() -> None:
    """``spawn(assertions=...)`` gives assertions to a new actor: observers see neither - nor +."""
    stage = Stage(P(capture()))
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    child = stage.act(lambda ds: spawn(lambda: None, name="child", assertions=[handle]))
    assert child.running  # the assertion keeps it
    for forbidden in (handle.retract, lambda: handle.replace(P(2))):
        with pytest.raises(SyndicateError, match="an assertion of <actor child>, which alone can retract it"):
            stage.act(lambda ds, forbidden=forbidden: forbidden())
    child.root.enter(handle.retract)
    stage.system.drain()
    assert stage.seen == [[("+", 1), ("-", 1)]]
    stage.act(lambda ds: handle.retract())  # it is gone, so that nothing happens


def test_what_was_handed_over_outlives_the_giver_and_goes_with_the_taker() -> None:
    """The assertion stays while the new actor lives."""
    stage = Stage(P(capture()))

    def giver() -> None:
        fresh = assert_(stage.ds, P(2))
        spawn(prevent_inert_check, name="taker", assertions=[assert_(stage.ds, P(1)), fresh])
        stop_actor()

    actor = stage.act(lambda ds: spawn(giver))
    assert not actor.running
    assert stage.seen == [[("+", 2), ("+", 1)]]
    (taker,) = [actor for actor in stage.system.actors if actor.name == "taker"]
    taker.root.enter(lambda: 1 / 0)
    stage.system.drain()
    assert sorted(stage.seen[0][2:]) == [("-", 1), ("-", 2)]


def test_what_was_handed_over_to_an_actor_that_crashes_at_once_is_retracted() -> None:
    """Nobody keeps an assertion that nobody owns."""
    stage = Stage(P(capture()))
    stage.act(lambda ds: spawn(lambda: 1 / 0, assertions=[assert_(ds, P(1))]))
    assert stage.seen == [[("+", 1), ("-", 1)]]


# ---------------------------------------------------------------------------------------------------- further


def test_bad_values_are_refused_and_nothing_else_is_lost() -> None:
    """NotAValue comes from the call itself, so that a handler may catch it; what it said besides stands."""
    stage = Stage(P(capture()))

    def body(ds: Ref) -> None:
        assert_(ds, P(1))
        for bad in (None, print, {"a": {None}}):
            with pytest.raises(NotAValue):
                send(ds, bad)
            with pytest.raises(NotAValue):
                assert_(ds, [bad])
        for target in (None, "ds", Watcher()):
            with pytest.raises(NotAValue, match="needs a reference as its target, such as dataspace"):
                send(target, P(1))  # type: ignore[arg-type]
            with pytest.raises(NotAValue, match=r"assert_\(\) needs a reference"):
                assert_(target, P(1))  # type: ignore[call-overload]
            with pytest.raises(NotAValue, match=r"on_message\(\) needs a reference"):
                on_message(target, P(1))(print)  # type: ignore[arg-type]

    stage.act(body)
    assert stage.seen == [[("+", 1)]]


def test_a_value_changed_after_it_was_delivered_does_not_change_the_dataspace() -> None:
    """Assertions are snapshots."""
    stage = Stage(capture([ANY]))
    mine = [1]
    stage.act(lambda ds: (assert_(ds, mine), send(ds, mine), mine.append(2)))
    assert stage.seen == [[("+", (1,)), ("!", (1,))]]


def test_two_dataspaces_know_nothing_of_each_other() -> None:
    """Each is an entity of its own."""
    stage = Stage(P(capture()))
    other = stage.act(lambda ds: dataspace("other"))
    stage.act(lambda ds: (assert_(other, P(1)), send(other, P(2))))
    assert stage.seen == [[]]
    assert stage.act(lambda ds: watch(other, P(capture()))) == [("+", 1)]


def test_a_dataspace_that_ends_takes_everything_back() -> None:
    """Its observers are notified that all is gone, and what is said to it afterwards is ignored."""
    stage = Stage(P(capture()))
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    stage.ds.facet.enter(stop_actor)
    stage.system.drain()
    assert stage.seen == [[("+", 1), ("-", 1)]]
    stage.act(lambda ds: (handle.retract(), assert_(ds, P(2)), send(ds, P(3)), watch(ds, capture())))
    assert stage.seen == [[("+", 1), ("-", 1)]]


def test_a_raw_entity_gets_frozen_forms() -> None:
    """What relays need: captures as the index holds them."""
    stage = Stage()
    raw = Watcher()
    raw.raw = True
    stage.act(lambda ds: assert_(ds, Observe(capture([ANY]), ref(raw))))
    stage.act(lambda ds: send(ds, [True]))
    ((mark, tag, form),) = raw.seen
    assert (mark, str(tag), str(form)) == ("!", "SEQ", "(SEQ, (BOOL, 't'))")


def test_sync_answers_after_everything_before() -> None:
    """The callback runs in the asking facet, after the dataspace has handled what was said before."""
    order: list[str] = []

    def boot() -> None:
        ds = dataspace()
        prevent_inert_check()
        facet = current_facet()
        on_message(ds, capture())(order.append)
        send(ds, "before")
        sync(ds, lambda: order.append("synced" if current_facet() is facet else "elsewhere"))
        send(ds, "after")

    settled(boot)
    assert order == ["before", "synced", "after"]


def test_a_system_without_anything() -> None:
    """A system that has run nothing has nothing."""
    system = System()
    system.drain()
    assert not system.actors
