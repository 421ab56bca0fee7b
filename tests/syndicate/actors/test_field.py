# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from syndicate import (
    Dictionary,
    Field,
    Record,
    Ref,
    Symbol,
    ValueSet,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    field,
    on_message,
    on_stop,
    prevent_inert_check,
    query_set,
    react,
    send,
    spawn,
    stop,
    stop_actor,
)
from syndicate.actors.system import System
from syndicate.errors import DataflowLoop, NotInTurn, WrongActor
from syndicate.testing import Seen, settled, watch
from tests.strategies import P


class Stage:
    """An actor with two fields, in which turns can be run; a watcher in another actor."""

    def __init__(self, boot: Callable[[Stage], object]) -> None:
        self.seen: Seen = []
        self.system: System = settled(self.boot, boot)

    def boot(self, boot: Callable[[Stage], object]) -> None:
        self.ds: Ref = dataspace()
        spawn(lambda: setattr(self, "seen", watch(self.ds, P(capture()))))
        self.facet = current_facet()
        self.a: Field[Any] = field(1, name="a")
        self.b: Field[Any] = field(2, name="b")
        prevent_inert_check()
        boot(self)

    def act(self, fn: Callable[[], object]) -> None:
        """Run *fn* in a turn; raise what it raised."""
        self.facet.enter(fn)
        self.system.drain()
        if self.facet.actor.error is not None:
            raise self.facet.actor.error


def test_a_block_runs_at_once_and_after_each_turn_that_changed_what_it_read() -> None:
    """Once a turn, however many fields changed, and however often."""
    runs: list[int] = []
    stage = Stage(lambda s: dataflow(lambda: runs.append(s.a.value + s.b.value)))
    assert runs == [3]

    def change() -> None:
        stage.a.value = 5
        stage.a.value = 10
        stage.b.value = 20
        assert runs == [3]  # at the end of the turn, not within
        assert stage.a.value == 10  # but the writer sees it at once

    stage.act(change)
    assert runs == [3, 30]
    stage.act(lambda: None)
    assert runs == [3, 30]


def test_an_equal_value_changes_nothing_but_a_look_alike_does() -> None:
    """Setting 1 over 1 runs no block; True over 1 does, and so does a list, which may have changed inside."""
    runs: list[Any] = []
    stage = Stage(lambda s: dataflow(lambda: runs.append(s.a.value)))
    for value, count in ((1, 1), (True, 2), (1.0, 3), ("x", 4), ("x", 4), ([], 5), ([], 6)):
        stage.act(lambda value=value: setattr(stage.a, "value", value))
        assert len(runs) == count


@pytest.mark.parametrize(
    ("value", "same", "different"),
    [
        ((1, ("a",)), (1, ("a",)), (True, ("a",))),
        (float("nan"), float("nan"), 0.0),
        (0.0, 0.0, -0.0),
        (P((1, 2)), P((1, 2)), P((1.0, 2))),
        (Record("r", [1]), Record("r", [1]), Record("s", [1])),
        (frozenset([1]), frozenset([1]), frozenset([1.0])),
        (ValueSet([1, True]), ValueSet([True, 1]), ValueSet([1])),
        (Dictionary({1: 2}), Dictionary({1: 2}), Dictionary({1: 2.0})),
        (Symbol("a"), Symbol("a"), "a"),
        (10**30, 10**30, float(10**30)),
    ],
)
def test_an_identical_value_is_no_change(value: Any, same: Any, different: Any) -> None:
    """Identity is that of values, for compounds too."""
    runs: list[Any] = []
    stage = Stage(lambda s: (s.a.set(value), dataflow(lambda: runs.append(s.a.value))))
    stage.act(lambda: stage.a.set(same))
    assert len(runs) == 1
    stage.act(lambda: stage.a.set(different))
    assert len(runs) == 2


def test_what_may_have_changed_inside_is_a_change() -> None:
    """The very same object as well, at whatever depth; a live collection of a query is one."""
    facts: list[Field[Any]] = []

    def boot(s: Stage) -> None:
        facts.append(query_set(s.ds, P(capture())))
        dataflow(lambda: runs.append(1))
        dataflow(lambda: (runs.append(2), s.a.value))

    deep: Any = ()
    for _ in range(100_000):
        deep = (deep,)
    runs: list[int] = []
    stage = Stage(boot)
    for value in ([1], ([1],), P([1]), {"a": 1}, bytearray(b"a"), object(), facts[0].value, (facts[0].value,), deep):
        stage.act(lambda value=value: stage.a.set(value))
        before = len(runs)
        stage.act(lambda value=value: stage.a.set(value))
        assert len(runs) == before + 1, value if value is not deep else "deep"
    while deep:  # to free it level by level
        (deep,) = deep


@pytest.mark.parametrize(("old", "new"), [([1], (1,)), ((1,), [1]), (([1],), ((1,),)), (((1,),), ([1],))])
def test_what_took_the_place_of_what_may_have_changed_inside_is_a_change(old: Any, new: Any) -> None:
    """Be it the old value or the new one that may have: a list and a tuple are otherwise one value."""
    runs: list[Any] = []
    stage = Stage(lambda s: (s.a.set(old), dataflow(lambda: runs.append(s.a.value))))
    stage.act(lambda: stage.a.set(new))
    assert runs == [old, new]


def test_a_list_changed_inside_is_noticed_by_changed() -> None:
    """``changed()`` runs the readers."""
    runs: list[int] = []
    stage = Stage(lambda s: (setattr(s.a, "value", []), dataflow(lambda: runs.append(len(s.a.value)))))
    stage.act(lambda: (stage.a.value.append(1), stage.a.changed()))
    assert runs == [0, 1]


def test_blocks_settle() -> None:
    """A block that changes what others read makes them run again in the same turn, in whatever order they were made."""
    log: list[Any] = []

    def boot(s: Stage) -> None:
        total = field(0, name="total")
        double = field(0, name="double")
        dataflow(lambda: log.append((total.value, double.value)))
        dataflow(lambda: setattr(double, "value", 2 * total.value))
        dataflow(lambda: setattr(total, "value", s.a.value + s.b.value))

    stage = Stage(boot)
    assert log[-1] == (3, 6)
    stage.act(lambda: setattr(stage.a, "value", 10))
    assert log[-1] == (12, 24)


def test_a_block_that_changes_its_own_field_runs_to_a_fixpoint() -> None:
    """No late change is lost."""
    stage = Stage(lambda s: dataflow(lambda: setattr(s.a, "value", min(s.a.value + 1, 50))))
    assert stage.a.value == 50
    stage.act(lambda: setattr(stage.a, "value", 0))
    assert stage.a.value == 50


def test_a_long_chain_of_fields_settles() -> None:
    """A thousand blocks, each reading the field that the next one writes, are no loop."""

    def boot(s: Stage) -> None:
        chain = [s.a, *(field(0, name=f"f{n}") for n in range(1000))]
        for first, second in itertools.pairwise(chain):

            @dataflow
            def copy(first: Field[Any] = first, second: Field[Any] = second) -> None:
                second.value = first.value

        s.b = chain[-1]

    stage = Stage(boot)
    stage.act(lambda: setattr(stage.a, "value", 7))
    assert stage.b.value == 7


@pytest.mark.parametrize("shape", ["one block", "two blocks", "through facets"])
def test_what_never_settles_is_an_error(shape: str) -> None:
    """It names the block and what it reads, ends the actor, and nothing of the turn is seen."""

    def one(s: Stage) -> None:
        @dataflow
        def counts_up() -> None:
            if s.b.value:
                s.a.value += 1

    def two(s: Stage) -> None:
        @dataflow
        def forth() -> None:
            if s.b.value:
                s.a.value = -s.a.value

        @dataflow
        def back() -> None:
            if s.b.value:
                s.a.value = -s.a.value

    def facets(s: Stage) -> None:
        @dataflow
        def starts_a_facet() -> None:
            if s.b.value and s.a.value:
                react(lambda: on_stop(lambda: setattr(s.a, "value", s.a.value + 1)))

    def boot(s: Stage) -> None:
        s.b.value = 0
        {"one block": one, "two blocks": two, "through facets": facets}[shape](s)

    stage = Stage(boot)
    with pytest.raises(DataflowLoop, match=r"(counts_up|forth|back|starts_a_facet).* \(reads a, b\)"):
        stage.act(lambda: (send(stage.ds, P("never")), setattr(stage.b, "value", 1)))
    assert stage.seen == []


def test_a_block_of_a_stopped_facet_never_runs_again() -> None:
    """Its reads are forgotten, also when the facet stops in the very turn that changed the field."""
    runs: list[Any] = []
    stage = Stage(lambda s: None)

    def start() -> None:
        @react
        def facet() -> None:
            prevent_inert_check()
            dataflow(lambda: runs.append(stage.a.value))

        stage.b.value = facet

    stage.act(start)
    stage.act(lambda: (setattr(stage.a, "value", 2), stop(stage.b.value)))
    stage.act(lambda: setattr(stage.a, "value", 3))
    assert runs == [1]
    assert not stage.a.readers


@pytest.mark.parametrize("order", list(itertools.permutations(["first", "second", "stop"])))
def test_a_block_that_stops_its_facet_is_the_last_of_it(order: tuple[str, ...]) -> None:
    """The facet's other blocks that the turn damaged run before it, or no more; only computed assertions follow."""
    runs: list[Any] = []
    stage = Stage(lambda s: None)

    def start() -> None:
        for name in order:
            if name == "stop":
                dataflow(lambda: stop() if stage.a.value > 1 else None)
            else:
                dataflow(lambda name=name: runs.append((name, stage.a.value)))
        prevent_inert_check()

    stage.act(lambda: react(start))
    runs.clear()
    stage.act(lambda: setattr(stage.a, "value", 2))
    assert runs == [(name, 2) for name in order[: order.index("stop")]]


def test_a_block_reads_again_each_time() -> None:
    """What it does not read any more does not run it."""
    runs: list[Any] = []
    stage = Stage(lambda s: dataflow(lambda: runs.append(s.b.value if s.a.value else None)))
    stage.act(lambda: setattr(stage.a, "value", 0))
    stage.act(lambda: setattr(stage.b, "value", 3))
    assert runs == [2, None]
    stage.act(lambda: setattr(stage.a, "value", 1))
    stage.act(lambda: setattr(stage.b, "value", 4))
    assert runs == [2, None, 3, 4]


def test_what_a_facet_in_a_block_reads_is_its_own_affair() -> None:
    """Reads inside ``react`` do not make the outer block run again."""
    runs: list[Any] = []

    def boot(s: Stage) -> None:
        @dataflow
        def block() -> None:
            runs.append(s.a.value)
            react(lambda: s.b.value)

    stage = Stage(boot)
    stage.act(lambda: setattr(stage.b, "value", 5))
    assert runs == [1]


# ---------------------------------------------------------------------------------------- computed assertions


def test_a_computed_assertion_follows_its_fields() -> None:
    """New before old, None is absence, an equal value is no event, one change for a turn."""

    def boot(s: Stage) -> None:
        assert_(s.ds, lambda: P(s.a.value) if s.a.value is not None else None)

    stage = Stage(boot)
    for value in (1, 2, True, None, None, 3):
        stage.act(lambda value=value: setattr(stage.a, "value", value))
    stage.act(lambda: (setattr(stage.a, "value", 4), setattr(stage.a, "value", 3)))
    ones = [("+", 1), ("+", 2), ("-", 1), ("+", True), ("-", 2), ("-", True), ("+", 3)]
    assert [(mark, type(value), value) for mark, value in stage.seen] == [(m, type(v), v) for m, v in ones]


def test_a_computed_assertion_shows_only_what_its_turn_has_settled() -> None:
    """Also when it is made before the block that sets what it reads, or in the middle of a turn; in its place."""

    def boot(s: Stage) -> None:
        assert_(s.ds, lambda: P((s.a.value, s.b.value)))
        s.b.value = 0
        dataflow(lambda: setattr(s.b, "value", 2 * s.a.value))

    stage = Stage(boot)
    assert stage.seen == [("+", (1, 2))]
    handles: list[Any] = []

    def middle() -> None:
        stage.a.value = 5
        handles.append(assert_(stage.ds, lambda: P(("made", stage.a.value, stage.b.value))))
        handles[0].replace(lambda: P(("again", stage.a.value, stage.b.value)))
        stage.a.value = 6

    stage.act(middle)
    assert set(stage.seen[1:]) == {("+", ("again", 6, 12)), ("+", (6, 12)), ("-", (1, 2))}
    stage.act(lambda: stage.a.set(7))
    stage.act(handles[0].retract)
    assert stage.seen[-1] == ("-", ("again", 7, 14))
    assert len(stage.seen) == 9


def test_a_computed_assertion_can_be_replaced_and_retracted() -> None:
    """By a value, by another function, by nothing; without a gap, and without computing more than needed."""
    computed: list[Any] = []
    runs: list[int] = []

    def show(n: int) -> Callable[[], Any]:
        return lambda: (runs.append(n), P((n, stage.a.value)))[1]

    stage = Stage(lambda s: computed.append(assert_(s.ds, lambda: P((0, s.a.value)))))
    (handle,) = computed
    for n in range(1, 50):
        stage.act(lambda n=n: handle.replace(show(n)))
    assert runs == list(range(1, 50))
    stage.act(lambda: setattr(stage.a, "value", 2))
    assert runs == [*range(1, 50), 49]
    assert stage.seen[-2:] == [("+", (49, 2)), ("-", (49, 1))]
    stage.act(lambda: handle.replace(P("fixed")))
    stage.act(lambda: setattr(stage.a, "value", 3))
    assert stage.seen[-2:] == [("+", "fixed"), ("-", (49, 2))]
    assert handle.live
    stage.act(handle.retract)
    stage.act(lambda: setattr(stage.a, "value", 4))
    assert stage.seen[-1] == ("-", "fixed")
    assert not handle.live
    marks = [mark for mark, _ in stage.seen]
    assert marks == ["+", *["+", "-"] * ((len(marks) - 2) // 2), "-"]


def test_a_computed_assertion_replaced_from_a_passing_facet_stays_computed() -> None:
    """It belongs to the facet that made it, wherever ``replace`` is called."""
    computed: list[Any] = []
    stage = Stage(lambda s: computed.append(assert_(s.ds, lambda: P(s.a.value))))

    def from_a_facet() -> None:
        stop(react(lambda: computed[0].replace(lambda: P(("new", stage.a.value)))))

    stage.act(from_a_facet)
    stage.act(lambda: setattr(stage.a, "value", 2))
    assert stage.seen == [("+", 1), ("+", ("new", 1)), ("-", 1), ("+", ("new", 2)), ("-", ("new", 1))]


def test_a_computed_assertion_goes_with_its_facet() -> None:
    """And is computed no more."""
    runs: list[int] = []
    stage = Stage(lambda s: None)

    def start() -> None:
        stop(react(lambda: assert_(stage.ds, lambda: (runs.append(1), P(stage.a.value))[1])))

    stage.act(start)
    stage.act(lambda: setattr(stage.a, "value", 2))
    assert stage.seen == [("+", 1), ("-", 1)]
    assert runs == [1]


# ------------------------------------------------------------------------------------------------ whose it is


def test_a_field_belongs_to_its_actor() -> None:
    """Another actor can neither set it nor read it; the value stays as it was, and the message says what to do."""
    stage = Stage(lambda s: None)
    attempts: list[Callable[[], object]] = [
        lambda: setattr(stage.a, "value", 7),
        lambda: setattr(stage.a, "value", 1),
        stage.a.changed,
        lambda: stage.a.value,
        lambda: dataflow(lambda: stage.a.value),
    ]
    for attempt in attempts:
        other = stage.system.spawn(attempt, name="other")
        stage.system.drain()
        with pytest.raises(WrongActor, match="the field 'a' belongs to <actor boot>"):
            raise other.error or AssertionError("no error")
    assert stage.a.value == 1
    assert not stage.a.readers


def test_a_field_outside_any_turn() -> None:
    """It can be looked at, as tests do, but not set: not even when its actor has ended, or only to the same value."""
    stage = Stage(lambda s: None)
    assert stage.a.value == 1
    for value in (2, 1):
        with pytest.raises(NotInTurn, match=r"^a\.set\(\) acts on the current turn"):
            stage.a.value = value
    stage.act(stop_actor)
    with pytest.raises(NotInTurn, match=r"facet\.enter\(lambda: a\.set\(\.\.\.\)\)"):
        stage.a.set(2)
    with pytest.raises(NotInTurn, match=r"^a\.changed\(\)"):
        stage.a.changed()
    assert stage.a.value == 1
    assert repr(stage.a) == "<Field a = 1>"


def test_any_object_may_be_in_a_field() -> None:
    """It becomes a value only where it is asserted."""
    stage = Stage(lambda s: None)
    stage.act(lambda: setattr(stage.a, "value", print))
    stage.act(lambda: setattr(stage.a, "value", Record))
    assert stage.a.value is Record


def test_handlers_and_blocks_work_together() -> None:
    """The bank account of the public examples: deposits come as messages, the balance is an assertion."""

    def boot(s: Stage) -> None:
        balance = field(0, name="balance")
        assert_(s.ds, lambda: P(("balance", balance.value)))

        @on_message(s.ds, Record("deposit", [capture(int)]))
        def deposit(amount: int) -> None:
            balance.value += amount

    stage = Stage(boot)
    stage.act(lambda: [send(stage.ds, Record("deposit", [amount])) for amount in (100, -30, 5)])
    assert [captured for mark, captured in stage.seen if mark == "+"] == [("balance", 0), ("balance", 75)]
