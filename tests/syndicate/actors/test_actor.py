# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias, cast

import pytest
import trio

from syndicate import (
    Entity,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    during,
    every,
    field,
    link,
    linked_task,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    on_stop_or_crash,
    prevent_inert_check,
    query_set,
    query_value,
    react,
    ref,
    send,
    spawn,
    stop,
    stop_actor,
    stop_when,
    sync,
)
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.system import System, system_of
from syndicate.actors.turn import Handle
from syndicate.errors import ArgumentError, FacetEnded, NotInTurn
from syndicate.testing import Seen, settled, watch
from tests.strategies import PP, P

pytestmark = pytest.mark.usefixtures("logs")

Settle: TypeAlias = Callable[[], Awaitable[None]]


# ------------------------------------------------------------------------------------------------------ turns


def test_an_action_takes_effect_after_its_turn() -> None:
    """Not even a message to oneself arrives within the turn that sends it."""
    log: list[str] = []

    def boot() -> None:
        ds = dataspace()

        @on_message(ds, capture())
        def heard(what: str) -> None:
            log.append(f"begin {what}")
            if what == "first":
                send(ds, "second")
            log.append(f"end {what}")

        spawn(lambda: log.append("child"))
        send(ds, "first")
        log.append("booted")

    settled(boot)
    assert log == ["booted", "child", "begin first", "end first", "begin second", "end second"]


def test_messages_are_first_in_first_out_for_each_pair_of_actors() -> None:
    """From several facets of one actor to several of another, over many turns, directly and through a dataspace."""
    heard: dict[str, list[int]] = {"direct": [], "dataspace": []}

    class Listener(Entity):
        def message(self, value: Any) -> None:
            heard["direct"].append(value)

    def listener(ds: Ref) -> None:
        for _ in range(3):
            react(lambda: assert_(ds, ["listener", ref(Listener())]))

        @on_message(ds, ["n", capture()])
        def through(n: int) -> None:
            heard["dataspace"].append(n)

    def talker(ds: Ref) -> None:
        count = field(0, name="count")

        def say(target: Ref) -> None:
            for _ in range(5):
                count.value += 1
                send(target, count.value)
                send(ds, ["n", count.value])

        @during(ds, ["listener", capture()])
        def talk(target: Ref) -> None:
            say(target)
            sync(ds, lambda: say(target))

    def boot() -> None:
        ds = dataspace()
        spawn(listener, ds)
        spawn(talker, ds)

    settled(boot)
    assert heard["direct"] == heard["dataspace"] == list(range(1, 31))


def test_a_turn_that_raises_has_not_happened() -> None:
    """None of its assertions, messages, replacements, actors, facets, entries elsewhere is seen."""
    seen: list[Seen] = []
    born: list[str] = []
    entered: list[str] = []

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: seen.append(watch(ds, P(capture()))))
        elsewhere: list[Facet] = []
        spawn(lambda: (prevent_inert_check(), elsewhere.append(current_facet())))

        def failing() -> None:
            old = assert_(ds, P("old"))
            older = assert_(ds, P("older"))
            prevent_inert_check()

            @on_message(ds, "fail")
            def fail() -> None:
                assert_(ds, P("never"))
                send(ds, P("never"))
                old.replace(P("never"))
                older.retract()
                spawn(lambda: born.append("never"))
                spawn(lambda: None, assertions=[assert_(ds, P("never"))])
                react(lambda: assert_(ds, P("never")))
                elsewhere[0].enter(lambda: entered.append("never"))
                sync(ds, lambda: born.append("never"))
                raise ZeroDivisionError

        spawn(failing)
        on_message(ds, "go")(lambda: send(ds, "fail"))
        send(ds, "go")

    settled(boot)
    assert seen[0][:2] == [("+", "old"), ("+", "older")]
    assert sorted(seen[0][2:]) == [("-", "old"), ("-", "older")]
    assert born == entered == []


def test_what_a_failed_turn_handed_over_is_retracted() -> None:
    """The actor that was to own it never comes to be, and the old owner is gone."""
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, P(capture())))

        def failing() -> None:
            handle = assert_(ds, P("mine"))
            on_message(ds, "fail")(lambda: (spawn(prevent_inert_check, assertions=[handle]), 1 / 0))

        spawn(failing)
        on_asserted(ds, P("mine"))(lambda: send(ds, "fail"))

    settled(boot)
    assert seen == [[("+", "mine"), ("-", "mine")]]


def test_an_exception_that_is_caught_is_no_crash() -> None:
    """A handler may catch what its own code raises; the turn goes on with all that it did."""
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, P(capture())))
        try:
            assert_(ds, P(1))
            raise ZeroDivisionError
        except ZeroDivisionError:
            assert_(ds, P(2))

    settled(boot)
    assert seen == [[("+", 1), ("+", 2)]]


def test_entering_another_facet_runs_there_and_not_after_its_death() -> None:
    """``facet.enter`` runs a function in a later turn of the facet's actor; once the facet is dead it does nothing."""
    log: list[Any] = []

    def boot() -> None:
        @react
        def inner() -> None:
            prevent_inert_check()

        inner.enter(lambda: (log.append(current_facet() is inner), stop()))
        inner.enter(lambda: log.append("never"))
        prevent_inert_check()

    settled(boot)
    assert log == [True]


# ---------------------------------------------------------------------------------------------------- crashes

Site: TypeAlias = tuple[Callable[[Ref, Callable[[], object]], object], Callable[[Ref], object] | float | None]
"""How an actor is made to call a function, and what makes it do so: an action elsewhere, some seconds, or nothing."""


class Raw(Entity):
    """An entity whose four methods call *fn*."""

    def __init__(self, fn: Callable[[], object], *methods: str) -> None:
        for method in methods:
            setattr(self, method, lambda *_: fn())


def _in_a_task(keep: object = None) -> Callable[[Ref, Callable[[], object]], object]:
    def install(ds: Ref, fatal: Callable[[], object]) -> None:
        facet = current_facet()

        async def work() -> object:
            await trio.sleep(1)
            facet.enter(fatal)
            await trio.sleep(1)
            return keep

        linked_task(work)

    return install


async def _fail_later() -> None:
    await trio.sleep(1)
    raise ZeroDivisionError


async def _fail_in_a_group() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_fail_later)


def _trigger(ds: Ref) -> None:
    assert_(ds, P("trigger"))


def _flicker(ds: Ref) -> None:
    stop(react(lambda: assert_(ds, P("trigger"))))


def _shout(ds: Ref) -> None:
    send(ds, P("trigger"))


def _call(act: Callable[[Ref, Any], object]) -> Callable[[Ref], object]:
    return lambda ds: on_asserted(ds, PP("entity", capture(Ref)))(lambda target: act(target, "trigger"))


def _when_known(ds: Ref, use: Callable[[Callable[[], Any]], object]) -> None:
    present = query_value(ds, capture(T), None)
    use(lambda: present.value is not None)


T = P("trigger")

SITES: dict[str, Site] = {
    "boot": (lambda ds, fatal: fatal(), None),
    "react": (lambda ds, fatal: react(fatal), None),
    "on_message": (lambda ds, fatal: on_message(ds, T)(fatal), _shout),
    "on_asserted": (lambda ds, fatal: on_asserted(ds, T)(fatal), _trigger),
    "on_retracted": (lambda ds, fatal: on_retracted(ds, T)(fatal), _flicker),
    "during": (lambda ds, fatal: during(ds, T)(fatal), _trigger),
    "during, its undoing": (lambda ds, fatal: during(ds, T)(lambda: fatal), _flicker),
    "stop_when": (lambda ds, fatal: stop_when(ds, T)(fatal), _trigger),
    "stop_when retracted": (lambda ds, fatal: stop_when(ds, T, on="retracted")(fatal), _flicker),
    "stop_when message": (lambda ds, fatal: stop_when(ds, T, on="message")(fatal), _shout),
    "on_stop": (lambda ds, fatal: (on_stop(fatal), on_asserted(ds, T)(stop)), _trigger),
    "on_stop_or_crash": (lambda ds, fatal: (on_stop_or_crash(fatal), on_asserted(ds, T)(stop)), _trigger),
    "stop, then": (lambda ds, fatal: on_asserted(ds, T)(lambda: stop(then=fatal)), _trigger),
    "on_stop of the actor": (lambda ds, fatal: (on_stop(fatal), on_asserted(ds, T)(stop_actor)), _trigger),
    "dataflow": (lambda ds, fatal: _when_known(ds, lambda present: dataflow(lambda: present() and fatal())), _trigger),
    "computed assertion": (
        lambda ds, fatal: _when_known(ds, lambda present: assert_(ds, lambda: fatal() if present() else None)),
        _trigger,
    ),
    "query, on_add": (lambda ds, fatal: query_set(ds, T, on_add=fatal), _trigger),
    "query, on_remove": (lambda ds, fatal: query_set(ds, T, on_remove=fatal), _flicker),
    "sync": (lambda ds, fatal: (prevent_inert_check(), sync(ds, fatal)), None),
    "entity, assert_": (lambda ds, fatal: assert_(ds, PP("entity", ref(Raw(fatal, "assert_")))), _call(assert_)),
    "entity, retract": (
        lambda ds, fatal: assert_(ds, PP("entity", ref(Raw(fatal, "retract")))),
        _call(lambda target, value: stop(react(lambda: assert_(target, value)))),
    ),
    "entity, message": (lambda ds, fatal: assert_(ds, PP("entity", ref(Raw(fatal, "message")))), _call(send)),
    "entity, sync": (
        lambda ds, fatal: assert_(ds, PP("entity", ref(Raw(fatal, "sync")))),
        _call(lambda target, value: sync(target, print, lambda: None)),
    ),
    "enter": (lambda ds, fatal: (prevent_inert_check(), current_facet().enter(fatal)), None),
    "enter from a task": (_in_a_task(), 1.0),
    "linked task": (lambda ds, fatal: linked_task(_fail_later), 1.0),
    "linked task, a group": (lambda ds, fatal: linked_task(_fail_in_a_group), 1.0),
    "after": (lambda ds, fatal: after(1, fatal), 1.0),
    "every": (lambda ds, fatal: every(1, fatal), 1.0),
}


@pytest.mark.parametrize("site", SITES)
async def test_a_crash_in_each_kind_of_handler(
    site: str, system: System, settle: Settle, logs: list[MutableMapping[str, Any]]
) -> None:
    """Wherever it raises: the turn is undone, all that the actor had said is taken back, its tasks and timers end, the
    handlers of on_stop_or_crash run and those of on_stop do not, the error is kept and logged, and nobody else notices.
    """
    install, trigger = SITES[site]
    seen: list[Seen] = []
    notes: list[str] = []
    facets: list[Facet] = []
    objects: dict[str, Any] = {}

    def fatal() -> object:
        ds = objects["ds"]
        send(ds, ["ghost"])
        assert_(ds, ["ghost"])
        react(lambda: assert_(ds, ["ghost"]))
        spawn(lambda: assert_(ds, ["ghost"]), name="ghost")
        if "handle" in objects:
            objects["handle"].replace(["ghost"])
        return 1 / 0

    async def forever() -> None:
        try:
            await trio.sleep_forever()
        finally:
            notes.append("task ended")

    def victim(ds: Ref) -> None:
        facets.append(current_facet())
        objects["handle"] = assert_(ds, ["alive"])
        on_stop_or_crash(lambda: (notes.append("cleaned up"), send(ds, ["last words"])))
        on_stop(lambda: notes.append("stopped in order"))

        @react
        def inner() -> None:
            facets.append(current_facet())
            assert_(ds, ["inner"])
            assert_(ds, ["alive"])
            linked_task(forever)
            every(1000, lambda: None)
            on_stop_or_crash(lambda: notes.append("cleaned up inside"))
            on_stop(lambda: notes.append("stopped in order"))

        react(lambda: install(ds, fatal))

    def bystander(ds: Ref) -> None:
        assert_(ds, ["bystander"])

    def boot() -> None:
        objects["ds"] = ds = dataspace()
        objects["facet"] = current_facet()
        seen.append(watch(ds, [capture(str)]))
        objects["bystander"] = spawn(bystander, ds)
        objects["victim"] = spawn(victim, ds, name="victim")

    system.spawn(boot)
    await settle()
    if callable(trigger):
        objects["facet"].enter(lambda: trigger(objects["ds"]))
    elif trigger is not None:
        await trio.sleep(trigger)
    await settle()

    actor: Actor = objects["victim"]
    assert not actor.running
    assert actor not in system.actors
    error = actor.error.exceptions[0] if isinstance(actor.error, ExceptionGroup) else actor.error
    assert isinstance(error, ZeroDivisionError)
    assert [entry["actor"] for entry in logs] == ["victim"]
    assert logs[0]["exc_info"] is actor.error

    assert sorted(seen[0]) == sorted(
        [("+", "bystander"), ("!", "last words")]
        if site in ("boot", "react")
        else [("+", "bystander"), ("+", "alive"), ("+", "inner"), ("!", "last words"), ("-", "inner"), ("-", "alive")]
    )
    started = ["task ended"] if site not in ("boot", "react") else []
    in_order = ["stopped in order"] if site == "on_stop of the actor" else []
    assert sorted(set(notes)) == sorted({"cleaned up inside", "cleaned up", *started, *in_order})
    assert notes.count("cleaned up") == 1
    assert notes.count("cleaned up inside") == 1
    assert notes.count("task ended") == len(started)

    for facet in [*facets, *actor.root.below()]:
        assert not facet.alive
        assert not facet.handles
        assert not facet.blocks
    assert system._tasks == 0
    assert not any(timer.live for _, _, timer in system._timers)
    assert objects["bystander"].running
    assert not any(a.name == "ghost" for a in system.actors)


async def test_a_crash_hook_that_raises_does_not_stop_the_others(
    system: System, settle: Settle, logs: list[MutableMapping[str, Any]]
) -> None:
    """It is logged, and the crash goes on: everything is retracted, the first error is the actor's."""
    seen: list[Seen] = []
    notes: list[str] = []

    def victim(ds: Ref) -> None:
        assert_(ds, P("alive"))
        on_stop_or_crash(lambda: notes.append("first"))
        on_stop_or_crash([].pop)
        on_stop_or_crash(lambda: notes.append("third"))
        on_message(ds, "fail")(lambda: 1 / 0)

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, P(capture())))
        actors.append(spawn(victim, ds))
        on_asserted(ds, P("alive"))(lambda: send(ds, "fail"))

    actors: list[Actor] = []
    system.spawn(boot)
    await settle()
    assert notes == ["first", "third"]
    assert seen == [[("+", "alive"), ("-", "alive")]]
    assert isinstance(actors[0].error, ZeroDivisionError)
    assert [type(entry["exc_info"]) for entry in logs] == [IndexError, ZeroDivisionError]


async def test_hooks_that_had_not_run_when_a_stop_crashed_run_then(system: System, settle: Settle) -> None:
    """Each handler of on_stop_or_crash runs once, whether before the one that raised or after it."""
    notes: list[str] = []

    def victim() -> None:
        @react
        def facet() -> None:
            prevent_inert_check()
            on_stop_or_crash(lambda: notes.append("before"))
            on_stop(lambda: 1 / 0)
            on_stop(lambda: notes.append("never"))
            on_stop_or_crash(lambda: notes.append("after"))

        stop(facet)

    system.spawn(victim)
    await settle()
    assert notes == ["before", "after"]


RETURNS: dict[str, tuple[Callable[[Handle], object], Seen]] = {
    "retract": (lambda handle: handle.retract(), []),
    "replace": (lambda handle: handle.replace("bye"), [("+", "bye"), ("-", "bye")]),
    "replace by nothing": (lambda handle: handle.replace(None), []),
    "replace twice": (
        lambda handle: cast("Handle", handle.replace("bye")).replace("again"),
        [("+", "bye"), ("+", "again"), ("-", "bye"), ("-", "again")],
    ),
}


@pytest.mark.parametrize("ending", RETURNS)
@pytest.mark.parametrize("asserted", ["by the turn", "by a handler that raised"])
def test_what_nobody_saw_is_not_retracted_by_a_crash_hook(ending: str, asserted: str) -> None:
    """A handler of on_stop_or_crash may hold a handle of what was undone: its target hears of it neither way."""
    give_up, expected = RETURNS[ending]
    log: Seen = []
    handles: list[Handle] = []

    class Target(Entity):
        def __init__(self) -> None:
            self.values: dict[Any, Any] = {}

        def assert_(self, value: Any, handle: Any) -> None:
            self.values[handle] = value
            log.append(("+", value))

        def retract(self, handle: Any) -> None:
            log.append(("-", self.values.pop(handle, "what was never asserted")))

    def boot() -> None:
        target = ref(Target())

        def failing() -> None:
            handles.append(assert_(target, "never"))
            raise ZeroDivisionError

        def victim() -> None:
            facet = current_facet()
            prevent_inert_check()
            if asserted == "by the turn":
                facet.enter(failing)
            else:
                on_stop_or_crash(failing)
                facet.enter(lambda: 1 / 0)
            on_stop_or_crash(lambda: give_up(handles[0]))

        prevent_inert_check()
        spawn(victim)

    settled(boot)
    assert log == expected


@pytest.mark.parametrize("ending", [lambda facets: stop(), lambda facets: stop_actor(), lambda facets: stop(facets[1])])
def test_a_crash_hook_cannot_make_an_end_in_order_of_it(ending: Callable[[list[Facet]], object]) -> None:
    """In a crash all facets are ending already: to stop them does nothing, and no handler of on_stop runs."""
    notes: list[str] = []
    facets: list[Facet] = []

    def victim() -> None:
        def outer() -> None:
            facets.append(current_facet())
            react(inner)
            on_stop(lambda: notes.append("stopped in order"))
            on_stop_or_crash(lambda: (notes.append("outer"), ending(facets)))

        def inner() -> None:
            facets.append(current_facet())
            prevent_inert_check()
            on_stop(lambda: notes.append("stopped in order"))
            on_stop_or_crash(lambda: (notes.append("inner"), ending(facets)))

        react(outer)
        facets[1].enter(lambda: 1 / 0)

    settled(lambda: (prevent_inert_check(), spawn(victim)))
    assert notes == ["inner", "outer"]


async def test_tasks_of_a_crash_hook_do_not_start(system: System, settle: Settle) -> None:
    """What a handler of on_stop_or_crash sends goes out; what it starts in the dead actor does not live."""
    seen: list[Seen] = []
    notes: list[str] = []

    async def work() -> None:
        notes.append("never")

    def victim(ds: Ref) -> None:
        @on_stop_or_crash
        def clean_up() -> None:
            send(ds, P("bye"))
            assert_(ds, P("short"))
            linked_task(work)
            after(1, lambda: notes.append("never"))
            react(lambda: every(1, lambda: notes.append("never")))
            spawn(lambda: send(ds, P("heir")))

        raise ZeroDivisionError

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, P(capture())))
        spawn(victim, ds)

    system.spawn(boot)
    await settle()
    await trio.sleep(10)
    await settle()
    assert notes == []
    assert seen == [[("!", "bye"), ("+", "short"), ("-", "short"), ("!", "heir")]]


# --------------------------------------------------------------------------------------------------- spawning


def test_an_actor_exists_once_the_turn_that_spawned_it_has_committed() -> None:
    """Its boot runs later, with its arguments, in a facet below its root; its name is given or its function's."""
    log: list[Any] = []

    def child(*args: int) -> None:
        log.append((args, current_facet().actor.name, current_facet().parent is current_facet().actor.root))

    def boot() -> None:
        actor = spawn(child, 1, 2)
        assert actor.running
        assert actor not in system_of(current_facet().actor).actors
        spawn(child, name="named")
        log.append("booted")

    settled(boot)
    assert log == ["booted", ((1, 2), "child", True), ((), "named", True)]


def test_an_actor_prints_its_name_and_state() -> None:
    """For logs and error messages."""
    system = settled(lambda: None)
    crashed, living = system.spawn(lambda: 1 / 0, name="a"), system.spawn(prevent_inert_check, name="b")
    system.drain()
    assert (repr(system.first), repr(crashed), repr(living)) == (
        "<actor <lambda> (ended)>",
        "<actor a (crashed)>",
        "<actor b>",
    )
    assert repr(living.root) == "<facet at depth 0 of b>"


@pytest.mark.parametrize(
    ("give", "says"),
    [
        (lambda ds, h: [h, _retracted(ds)], "is not a live assertion of this actor"),
        (lambda ds, h: [h, _of_another(ds)], "is not a live assertion of this actor"),
        (lambda ds, h: [h, assert_(ds, lambda: P("computed"))], "not the handle of a value asserted once"),
        (lambda ds, h: [h, 5], "not the handle of a value"),
    ],
)
def test_what_cannot_be_handed_over(give: Callable[[Ref, Any], list[Any]], says: str) -> None:
    """A refused hand-over changes nothing, also if the caller goes on."""

    def boot() -> None:
        ds = dataspace()
        handle = assert_(ds, P("mine"))
        seen.append(watch(ds, P("mine")))
        with pytest.raises(ArgumentError, match=says):
            spawn(prevent_inert_check, assertions=give(ds, handle))
        assert handle.live
        handle.retract()

    seen: list[Seen] = []
    settled(boot)
    assert seen == [[("+",), ("-",)]]


def _retracted(ds: Ref) -> Any:
    handle = assert_(ds, P("gone"))
    handle.retract()
    return handle


def _of_another(ds: Ref) -> Any:
    other = Actor(current_facet().actor.system, "other")
    return Handle(other.root, ds, 1)


# ------------------------------------------------------------------------------------------------------ links

Ending: TypeAlias = Literal["stop", "crash", "crash in boot", "inert in boot"]


def _end(how: Ending) -> None:
    if how == "stop":
        stop_actor()
    else:
        raise ZeroDivisionError


@pytest.mark.parametrize("how", ["stop", "crash", "crash in boot", "inert in boot"])
@pytest.mark.parametrize("ending", ["linked=True", "link()"])
def test_the_end_of_a_linked_actor_stops_the_linking_facet(how: Ending, ending: str) -> None:
    """In whatever way it ends, and whenever; in order, and only the facet."""
    log: list[str] = []
    actors: list[Actor] = []

    def child() -> None:
        if how == "crash in boot":
            raise ZeroDivisionError
        if how != "inert in boot":
            prevent_inert_check()

    def parent() -> None:
        prevent_inert_check()

        @react
        def facet() -> None:
            on_stop(lambda: log.append("facet stopped"))
            actors.append(spawn(child, linked=ending == "linked=True"))
            if ending == "link()":
                link(actors[0])

    system = settled(parent)
    if how in ("stop", "crash"):
        assert log == []
        actors[0].root.enter(lambda: _end(how))
        system.drain()
    assert log == ["facet stopped"]
    assert system.first is not None
    assert system.first.running
    assert not actors[0].running


@pytest.mark.parametrize("how", ["stop", "crash", "facet"])
def test_the_end_of_the_linking_side_stops_the_linked_actor(how: str) -> None:
    """In order, with its stop handlers, whether the facet stops or its actor crashes."""
    log: list[str] = []
    facets: list[Facet] = []
    actors: list[Actor] = []

    def child() -> None:
        prevent_inert_check()
        on_stop(lambda: log.append("child stopped"))

    def parent() -> None:
        prevent_inert_check()
        facets.append(react(lambda: actors.append(spawn(child, linked=True))))

    system = System()
    actor = system.spawn(parent)
    system.drain()
    assert actors[0].running
    facets[0].enter(stop if how == "facet" else lambda: _end(how))  # type: ignore[arg-type]
    system.drain()
    assert log == ["child stopped"]
    assert actors[0] not in system.actors
    assert actor.running is (how == "facet")


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_a_link_to_an_actor_that_has_ended(how: Ending) -> None:
    """The linking facet stops at once, as if the other had ended just now."""
    log: list[str] = []
    system = settled(lambda: None)
    dead = system.spawn(lambda: _end(how))
    system.drain()
    assert not dead.running

    def late() -> None:
        prevent_inert_check()
        react(lambda: (on_stop(lambda: log.append("facet stopped")), link(dead)))

    actor = system.spawn(late)
    system.drain()
    assert log == ["facet stopped"]
    assert actor.running


def test_a_link_from_a_facet_that_has_stopped() -> None:
    """The linked actor boots, and is stopped at once: nobody holds it."""
    log: list[str] = []

    def child() -> None:
        prevent_inert_check()
        log.append("started")
        on_stop(lambda: log.append("stopped"))

    def boot() -> None:
        stop()
        spawn(child, linked=True)

    system = settled(boot)
    assert log == ["started", "stopped"]
    assert not system.actors


def test_a_ring_of_links_ends_as_one() -> None:
    """Three actors, each linked to the next: when one crashes, all end, and only one of them by a crash."""
    actors: list[Actor] = []

    def member(n: int) -> None:
        prevent_inert_check()
        link(actors[(n + 1) % 3])

    def boot() -> None:
        actors.extend([spawn(member, n) for n in range(3)])

    system = settled(boot)
    actors[1].root.enter(lambda: 1 / 0)
    system.drain()
    assert [type(actor.error) for actor in actors] == [type(None), ZeroDivisionError, type(None)]
    assert not any(actor.running for actor in actors)


# ----------------------------------------------------------------------------------------------- linked tasks


async def test_a_linked_task_ends_with_its_facet(system: System, settle: Settle) -> None:
    """A task is cancelled when its facet stops, however that comes, and not before."""
    log: list[str] = []

    async def work(name: str) -> None:
        log.append(f"{name} begins")
        try:
            await trio.sleep_forever()
        finally:
            log.append(f"{name} ends")

    def boot() -> None:
        prevent_inert_check()

        @react
        def outer() -> None:
            linked_task(work, "outer")
            react(lambda: linked_task(work, "inner"))
            after(1, stop)

    system.spawn(boot)
    await settle()
    assert sorted(log) == ["inner begins", "outer begins"]
    await trio.sleep(1)
    await settle()
    assert sorted(log[2:]) == ["inner ends", "outer ends"]
    assert system._tasks == 0


@pytest.mark.parametrize(("answer", "stays"), [(True, True), (None, False), (1, False), ("yes", False)])
async def test_the_end_of_a_linked_task_stops_its_facet_unless_it_answers_true(
    answer: object, stays: bool, system: System, settle: Settle
) -> None:
    """True keeps the facet, if something else is in it; anything else lets it stop in order."""
    log: list[str] = []

    async def work() -> object:
        await trio.sleep(1)
        return answer

    def boot(ds: Ref) -> None:
        prevent_inert_check()

        @react
        def facet() -> None:
            assert_(ds, P("here"))
            on_stop(lambda: log.append("stopped"))
            linked_task(work)

    seen: list[Seen] = []
    system.spawn(lambda: spawn(boot, _watched(seen)))
    await settle()
    assert seen == [[("+", "here")]]
    await trio.sleep(1)
    await settle()
    assert seen == [[("+", "here")] if stays else [("+", "here"), ("-", "here")]]
    assert log == ([] if stays else ["stopped"])


def _watched(seen: list[Seen]) -> Ref:
    ds = dataspace()
    seen.append(watch(ds, P(capture())))
    return ds


async def test_a_facet_with_nothing_but_a_task_that_keeps_it_becomes_inert(system: System, settle: Settle) -> None:
    """Answering True is no preventer."""
    log: list[str] = []

    async def work() -> bool:
        await trio.sleep(1)
        return True

    actor = system.spawn(lambda: (linked_task(work), on_stop(lambda: log.append("stopped"))))
    await settle()
    assert actor.running
    await trio.sleep(1)
    await settle()
    assert log == ["stopped"]
    assert not actor.running


async def test_a_task_whose_facet_stops_in_the_turn_that_asked_for_it_never_starts(
    system: System, settle: Settle
) -> None:
    """Nor does one of a turn that fails."""
    log: list[str] = []

    async def work() -> None:
        log.append("never")

    system.spawn(lambda: (linked_task(work), stop()))
    system.spawn(lambda: (linked_task(work), 1 / 0))
    await settle()
    assert log == []
    assert system._tasks == 0


async def test_a_failure_after_the_facet_has_stopped_is_logged(
    system: System, settle: Settle, logs: list[MutableMapping[str, Any]]
) -> None:
    """A task that raises while it is being cancelled crashes nobody, but does not go unnoticed."""

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ZeroDivisionError

    def boot() -> None:
        prevent_inert_check()
        stop_later.append(react(lambda: linked_task(work)))

    stop_later: list[Facet] = []
    actor = system.spawn(boot, name="boot")
    await settle()
    stop_later[0].enter(stop)
    await settle()
    assert actor.running
    assert [(entry["actor"], type(entry["exc_info"])) for entry in logs] == [("boot", ZeroDivisionError)]


async def test_a_task_acts_through_its_facet(system: System, settle: Settle) -> None:
    """Inside a task no turn runs; ``facet.enter`` starts one."""
    seen: list[Seen] = []

    async def work(facet: Facet, ds: Ref) -> None:
        with pytest.raises(NotInTurn, match=r"facet.enter\("):
            send(ds, P(1))
        for n in range(3):
            await trio.sleep(1)
            facet.enter(lambda n=n: send(ds, P(n)))

    def boot() -> None:
        ds = _watched(seen)
        prevent_inert_check()
        react(lambda: linked_task(work, current_facet(), ds))

    system.spawn(boot)
    await trio.sleep(3.5)
    await settle()
    assert seen == [[("!", 0), ("!", 1), ("!", 2)]]


async def test_a_thread_acts_through_its_facet(system: System, settle: Settle) -> None:
    """``enter_from_thread`` works from any thread, in the order of calls, and raises once the facet is dead."""
    seen: list[Seen] = []
    instances: list[Any] = []

    def boot() -> None:
        instances.extend([_watched(seen), react(prevent_inert_check)])
        prevent_inert_check()

    system.spawn(boot)
    await settle()
    ds, facet = instances

    def work() -> None:
        with pytest.raises(NotInTurn, match="no turn is running here"):
            send(ds, P("never"))
        for n in range(100):
            facet.enter_from_thread(lambda n=n: send(ds, P(n)))
        facet.enter_from_thread(stop)
        with suppress(FacetEnded):  # it may have stopped already
            facet.enter_from_thread(lambda: send(ds, P("never")))
        facet.enter(lambda: send(ds, P("never")))  # which notices that it is in another thread

    def late() -> None:
        with pytest.raises(FacetEnded, match="has ended, so that nothing runs in it any more"):
            facet.enter_from_thread(lambda: send(ds, P("never")))

    await trio.to_thread.run_sync(work)
    await settle()
    await trio.to_thread.run_sync(late)
    await settle()
    assert seen == [[("!", n) for n in range(100)]]
