# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syndicate import (
    ANY,
    Record,
    Ref,
    Symbol,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    field,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    prevent_inert_check,
    react,
    send,
    spawn,
    stop,
    stop_actor,
    stop_when,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.errors import PatternError
from syndicate.testing import settled, watch
from tests.inside import within
from tests.strategies import PP, P

pytestmark = pytest.mark.usefixtures("logs")


class Stage:
    """A dataspace, an actor that reacts to it, another that acts on it, and a log."""

    def __init__(self, boot: Callable[[Stage], object]) -> None:
        self.log: list[Any] = []
        self.system: System = settled(self.boot, boot)

    def boot(self, boot: Callable[[Stage], object]) -> None:
        self.ds: Ref = dataspace()
        self.facet = current_facet()
        prevent_inert_check()
        self.actor = spawn(boot, self, name="reacting")

    def act(self, fn: Callable[[Ref], object]) -> Any:
        """Run ``fn(ds)`` in a turn of the acting actor; return what it answered."""
        return within(self.system, self.facet, lambda: fn(self.ds))

    def note(self, *what: Any) -> None:
        """Log it."""
        self.log.append(what[0] if len(what) == 1 else what)

    def logged(self) -> list[Any]:
        """What was logged since the last call."""
        log, self.log = self.log, []
        return log


# ------------------------------------------------------------------------------------------- the three events


def test_handlers_get_the_captures_as_arguments() -> None:
    """Positionally, in pre-order, as values; with no captures there are no arguments."""

    def boot(s: Stage) -> None:
        on_message(s.ds, PP(capture(), capture([capture()])))(s.note)
        on_asserted(s.ds, PP(capture(int), ANY))(s.note)
        on_retracted(s.ds, PP(ANY, ANY))(lambda: s.note("none left"))

    stage = Stage(boot)
    stage.act(lambda ds: send(ds, PP({"k": 1}, [P(2), 3])))
    assert stage.logged() == [({"k": 1}, (P(2), 3), P(2))]
    handles = stage.act(lambda ds: [assert_(ds, PP(1, "x")), assert_(ds, PP(1, "y")), assert_(ds, PP("1", "y"))])
    assert stage.logged() == [1]
    stage.act(lambda ds: [handle.retract() for handle in handles])
    assert stage.logged() == ["none left"]


def test_what_is_there_already_counts_as_just_asserted() -> None:
    """on_asserted and during run for it; on_retracted knows it when it goes; on_message has missed what passed."""
    stage = Stage(lambda s: prevent_inert_check())
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    stage.act(lambda ds: send(ds, P(2)))

    def late() -> None:
        on_asserted(stage.ds, P(capture()))(lambda x: stage.note("+", x))
        on_retracted(stage.ds, P(capture()))(lambda x: stage.note("-", x))
        on_message(stage.ds, P(capture()))(lambda x: stage.note("!", x))
        during(stage.ds, P(capture()))(lambda x: (stage.note("begin", x), lambda: stage.note("end", x))[1])

    stage.actor.root.enter(late)
    stage.system.drain()
    assert stage.logged() == [("+", 1), ("begin", 1)]
    stage.act(lambda ds: handle.retract())
    assert stage.logged() == [("-", 1), ("end", 1)]


def test_the_end_of_interest_is_seen_as_the_end_of_what_it_knew() -> None:
    """When the handler's own facet stops it is called no more, not even with retractions."""
    facets: list[Facet] = []

    def boot(s: Stage) -> None:
        prevent_inert_check()

        @react
        def facet() -> None:
            on_retracted(s.ds, P(capture()))(s.note)
            on_asserted(s.ds, P(capture()))(s.note)

        facets.append(facet)

    stage = Stage(boot)
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    facets[0].enter(stop)
    stage.system.drain()
    stage.act(lambda ds: handle.retract())
    assert stage.logged() == [1]


def test_decorators_answer_the_function() -> None:
    """So that a handler can be used twice, or called."""

    def boot(s: Stage) -> None:
        @on_message(s.ds, P(capture()))
        @on_asserted(s.ds, P(capture()))
        @on_retracted(s.ds, P(capture()))
        @during(s.ds, P(capture()))
        @stop_when(s.ds, P(0))
        def handler(x: object = None) -> None:
            s.note(x)

        handler(5)

    assert Stage(boot).logged() == [5]


@pytest.mark.parametrize("install", [on_message, on_asserted, on_retracted, during, stop_when])
def test_a_bad_pattern_is_refused_where_it_is_written(install: Any) -> None:
    """With PatternError and the remedy; the actor that catches it goes on."""

    def boot(s: Stage) -> None:
        with pytest.raises(PatternError, match=r"capture\(set\)"):
            install(s.ds, [{1, 2}])(s.note)
        s.note("went on")

    assert Stage(boot).logged() == ["went on"]


def test_one_event_goes_to_all_handlers() -> None:
    """Of one facet and of several; also if one of them stops its facet by the event, in whatever order they are."""

    def boot(s: Stage) -> None:
        prevent_inert_check()
        for n in range(2):

            @react
            def facet(n: int = n) -> None:
                if n:
                    stop_when(s.ds, P("end"), on="message")(lambda: s.note("stopped"))
                else:
                    on_message(s.ds, capture(P(ANY)))(lambda x: s.note("before"))
                    stop_when(s.ds, P("end"), on="message")(lambda: s.note("stopped"))
                react(lambda: on_message(s.ds, P(capture()))(lambda x: s.note("inner")))

        on_message(s.ds, P("end"))(lambda: s.note("outer"))

    stage = Stage(boot)
    stage.act(lambda ds: send(ds, P("go")))
    assert sorted(stage.logged()) == ["before", "inner", "inner"]
    stage.act(lambda ds: send(ds, P("end")))
    assert [stage.log.count(what) for what in ("before", "stopped", "outer")] == [1, 2, 1]


# ----------------------------------------------------------------------------------------------------- during


def test_during_runs_a_facet_for_each_distinct_capture() -> None:
    """Look-alikes are distinct; assertions with equal captures share one; it stops with the last of them."""

    def boot(s: Stage) -> None:
        @during(s.ds, PP(capture(), ANY))
        def present(x: object) -> None:
            s.note("+", x, type(x))
            on_stop(lambda: s.note("-", x, type(x)))

    stage = Stage(boot)
    handles = stage.act(lambda ds: [assert_(ds, PP(x, n)) for n in range(2) for x in (1, 1.0, True)])
    assert stage.logged() == [("+", 1, int), ("+", 1.0, float), ("+", True, bool)]
    stage.act(lambda ds: [handle.retract() for handle in handles[:3]])
    assert stage.logged() == []
    stage.act(lambda ds: handles[4].retract())
    assert stage.logged() == [("-", 1.0, float)]
    stage.act(lambda ds: [handles[3].retract(), handles[5].retract()])
    assert stage.logged() == [("-", 1, int), ("-", True, bool)]


def test_during_keeps_a_facet_with_nothing_in_it() -> None:
    """And all that is made in it goes with it: assertions, handlers, facets."""

    def boot(s: Stage) -> None:
        @during(s.ds, P(capture()))
        def present(x: object) -> None:
            if x == "empty":
                react(lambda: None)  # which ends at once, and has its parent looked at
            else:
                assert_(s.ds, ["answer", x])
                on_message(s.ds, ["ask", x])(lambda: s.note("asked", x))
                react(lambda: assert_(s.ds, ["nested", x]))
            on_stop(lambda: s.note("end", x))

    stage = Stage(boot)
    seen = stage.act(lambda ds: watch(ds, [capture(str), capture()]))
    empty = stage.act(lambda ds: assert_(ds, P("empty")))
    full = stage.act(lambda ds: assert_(ds, P("full")))
    stage.act(lambda ds: send(ds, ["ask", "full"]))
    assert stage.logged() == [("asked", "full")]
    stage.act(lambda ds: (full.retract(), empty.retract()))
    stage.act(lambda ds: send(ds, ["ask", "full"]))
    assert stage.logged() == [("end", "full"), ("end", "empty")]
    assert seen == [
        ("+", "answer", "full"),
        ("+", "nested", "full"),
        ("!", "ask", "full"),
        ("-", "nested", "full"),
        ("-", "answer", "full"),
        ("!", "ask", "full"),
    ]


def test_during_may_stop_its_own_facet_early() -> None:
    """Then it is not started again while the assertion stays, and the later retraction does no harm."""

    def boot(s: Stage) -> None:
        @during(s.ds, P(capture()))
        def once(x: object) -> None:
            s.note("begin")
            on_stop(lambda: s.note("end"))
            on_message(s.ds, "enough")(stop)

    stage = Stage(boot)
    handle = stage.act(lambda ds: assert_(ds, P(1)))
    stage.act(lambda ds: send(ds, "enough"))
    assert stage.logged() == ["begin", "end"]
    stage.act(lambda ds: handle.retract())
    stage.act(lambda ds: assert_(ds, P(1)))
    assert stage.logged() == ["begin"]


def test_flickering_demand_starts_and_stops() -> None:
    """Assert and retract in one turn are seen by during and by during-spawn; what one turn takes back and asserts again
    has never gone, and what comes back in a later one has.
    """

    def boot(s: Stage) -> None:
        @during(s.ds, P(capture()))
        def facet(x: object) -> None:
            s.note("facet", x)
            on_stop(lambda: s.note("facet ends", x))

        @during(s.ds, P(capture()), spawn=True)
        def actor(x: object) -> None:
            prevent_inert_check()
            s.note("actor", x)
            on_stop(lambda: s.note("actor ends", x))

    stage = Stage(boot)
    stage.act(lambda ds: assert_(ds, P(1)).retract())
    assert stage.logged() == [("facet", 1), ("facet ends", 1), ("actor", 1), ("actor ends", 1)]
    handle = stage.act(lambda ds: assert_(ds, P(2)))
    stage.logged()
    handle = stage.act(lambda ds: (handle.retract(), assert_(ds, P(2)))[1])
    assert stage.logged() == []
    stage.act(lambda ds: handle.retract())
    stage.act(lambda ds: assert_(ds, P(2)))
    assert sorted(stage.logged()) == [("actor", 2), ("actor ends", 2), ("facet", 2), ("facet ends", 2)]


def test_a_replaced_value_does_not_restart_what_is_the_same() -> None:
    """During sees a replace as the new beginning before the old ends, and not at all where the captures stay."""

    def boot(s: Stage) -> None:
        for place, pattern in enumerate((PP(capture(), ANY), PP(ANY, capture()))):

            @during(s.ds, pattern)
            def present(x: object, place: int = place) -> Callable[[], None]:
                s.note("+", place, x)
                return lambda: s.note("-", place, x)

    stage = Stage(boot)
    handle = stage.act(lambda ds: assert_(ds, PP("same", 1)))
    stage.act(lambda ds: handle.replace(PP("same", 2)))
    assert stage.logged() == [("+", 0, "same"), ("+", 1, 1), ("+", 1, 2), ("-", 1, 1)]


def test_during_spawn_isolates_its_instances() -> None:
    """Each is an actor: one that crashes leaves the others, is not restarted, and ends with its assertion."""

    def boot(s: Stage) -> None:
        @during(s.ds, P(capture()), spawn=True, name="instance")
        def instance(x: int) -> None:
            s.note("begin", x, current_facet().actor.name)
            assert_(s.ds, ["instance", x])
            on_stop(lambda: s.note("end", x))
            on_message(s.ds, ["crash", x])(lambda: 1 / 0)

    stage = Stage(boot)
    seen = stage.act(lambda ds: watch(ds, ["instance", capture()]))
    handles = stage.act(lambda ds: [assert_(ds, P(x)) for x in range(3)])
    assert stage.logged() == [("begin", x, "instance") for x in range(3)]
    stage.act(lambda ds: send(ds, ["crash", 1]))
    assert stage.logged() == []
    assert stage.actor.running
    stage.act(lambda ds: [handle.retract() for handle in handles])
    assert stage.logged() == [("end", 0), ("end", 2)]
    assert seen == [("+", 0), ("+", 1), ("+", 2), ("-", 1), ("-", 0), ("-", 2)]
    assert not [actor for actor in stage.system.actors if actor.name == "instance"]


def test_during_spawn_ends_with_its_owner() -> None:
    """Whether the owner stops or crashes, all instances stop in order."""

    def boot(s: Stage) -> None:
        @during(s.ds, P(capture()), spawn=True)
        def instance(x: int) -> None:
            prevent_inert_check()
            on_stop(lambda: s.note("end", x))

    for end in (stop_actor, lambda: 1 / 0):
        stage = Stage(boot)
        stage.act(lambda ds: [assert_(ds, P(x)) for x in range(3)])
        stage.actor.root.enter(end)
        stage.system.drain()
        assert stage.logged() == [("end", x) for x in range(3)]


def test_nested_during() -> None:
    """The relational join of the classic examples: facets within facets, torn down from either side."""

    def boot(s: Stage) -> None:
        @during(s.ds, Record("group", [capture()]))
        def group(name: str) -> None:
            @during(s.ds, Record("member", [name, capture()]))
            def member(who: str) -> Callable[[], None]:
                s.note("+", name, who)
                return lambda: s.note("-", name, who)

    stage = Stage(boot)

    def tell(*value: Any) -> Any:
        return stage.act(lambda ds: assert_(ds, Record(Symbol(value[0]), value[1:])))

    handles = [tell("member", "a", 1), tell("group", "a"), tell("member", "a", 2), tell("member", "b", 3)]
    assert stage.logged() == [("+", "a", 1), ("+", "a", 2)]
    handles.append(tell("group", "b"))
    assert stage.logged() == [("+", "b", 3)]
    stage.act(lambda ds: handles[0].retract())
    assert stage.logged() == [("-", "a", 1)]
    stage.act(lambda ds: handles[1].retract())
    assert stage.logged() == [("-", "a", 2)]


# -------------------------------------------------------------------------------------------------- stop_when


@pytest.mark.parametrize("on", ["asserted", "retracted", "message"])
def test_stop_when(on: Any) -> None:
    """The first event of its kind stops the facet; the handler runs last, in the parent's context, and what it makes
    there is seen before the facet's assertions go.
    """

    def boot(s: Stage) -> None:
        outer = current_facet()
        prevent_inert_check()

        @react
        def facet() -> None:
            assert_(s.ds, ["waiting"])
            on_stop(lambda: s.note("on_stop"))

            @stop_when(s.ds, P(capture()), on=on)
            def done(x: object) -> None:
                s.note("done", x, current_facet() is outer)
                react(lambda: assert_(s.ds, ["done"]))

    stage = Stage(boot)
    seen = stage.act(lambda ds: watch(ds, [capture()]))
    other = {"asserted": "message", "retracted": "asserted", "message": "asserted"}[on]

    def cause(kind: str, x: int) -> None:
        if kind == "message":
            stage.act(lambda ds: send(ds, P(x)))
        else:
            handle = stage.act(lambda ds: assert_(ds, P(x)))
            if kind == "retracted":
                stage.act(lambda ds: handle.retract())

    cause(other, 1)
    assert stage.logged() == []
    cause(on, 2)
    assert stage.logged() == ["on_stop", ("done", 2, True)]
    cause(on, 3)
    assert stage.logged() == []
    assert seen == [("+", "waiting"), ("+", "done"), ("-", "waiting")]


def test_stop_when_something_is_there_already() -> None:
    """Then the facet stops as soon as it learns of it."""

    def boot(s: Stage) -> None:
        @react
        def facet() -> None:
            stop_when(s.ds, P(1))(lambda: s.note("stopped"))

    stage = Stage(lambda s: (assert_(s.ds, P(1)), boot(s)))
    assert stage.logged() == ["stopped"]


def test_state_machines_of_facets() -> None:
    """The classic way to write a protocol: each state a facet, left by stop_when, entered by its continuation."""

    def boot(s: Stage) -> None:
        count = field(0, name="count")
        prevent_inert_check()

        def idle() -> None:
            @react
            def state() -> None:
                assert_(s.ds, ["state", "idle", count.value])
                stop_when(s.ds, "start", on="message")(busy)

        def busy() -> None:
            count.value += 1

            @react
            def state() -> None:
                assert_(s.ds, ["state", "busy", count.value])
                stop_when(s.ds, "finish", on="message")(idle)

        idle()

    stage = Stage(boot)
    seen = stage.act(lambda ds: watch(ds, ["state", capture(), capture()]))
    for event in ("finish", "start", "start", "finish"):
        stage.act(lambda ds, event=event: send(ds, event))
    assert seen == [("+", "idle", 0), ("+", "busy", 1), ("-", "idle", 0), ("+", "idle", 1), ("-", "busy", 1)]
