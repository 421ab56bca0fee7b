"""The mistakes that people make, and what the errors say: each at once, in the line that made it, with the remedy."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import MethodType
from typing import Any, ClassVar

import attrs
import pytest
import trio

from relay import connect
from syndicate import (
    ANY,
    Record,
    Ref,
    SyndicateError,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    during,
    every,
    field,
    linked_task,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    on_stop_or_crash,
    open_system,
    prevent_inert_check,
    query_set,
    react,
    record,
    ref,
    run,
    send,
    spawn,
    stop,
    stop_actor,
    stop_when,
    supervise,
    sync,
)
from syndicate.actors.system import System
from syndicate.errors import (
    AlreadyRunning,
    ArgumentError,
    NotAValue,
    NotCallable,
    NotInTurn,
    PatternError,
    RecordDefinition,
    TextError,
)
from syndicate.testing import settled, watch
from syndicate.values.text import parse
from syndicate.values.value import freeze, thaw


@record
class Says:
    who: str
    what: Any


class Plain:
    def one(self, x: object) -> None:
        pass


def one(x: object) -> None:
    """A function of one argument."""


def two(x: object, y: object = 0) -> None:
    """A function of one argument or two."""


class Later:
    async def method(self) -> None:
        """A method that waits."""


async def later() -> None:
    """A function that waits."""


def yields() -> Any:
    """A function that does nothing when it is called."""
    yield


def cyclic() -> list[Any]:
    """A list that contains itself."""
    items: list[Any] = []
    items.append(items)
    return items


def wrong(fn: Callable[..., Any]) -> Any:
    """*fn* for those who do not look at types, as most people at first."""
    return fn


MISTAKES: dict[str, tuple[Callable[[Ref], object], type[SyndicateError], str]] = {
    # what is no value
    "a function in a value": (lambda ds: assert_(ds, ["x", len]), NotAValue, "assert_(ds, lambda: ...)"),
    "a class": (lambda ds: assert_(ds, Says), NotAValue, "the class Says is not a value (did you mean an instance of"),
    "None": (lambda ds: send(ds, None), NotAValue, "None is not a value: leave the assertion out"),
    "a cyclic list": (lambda ds: send(ds, cyclic()), NotAValue, "or cyclic: flatten it"),
    "an undecorated class": (lambda ds: send(ds, Plain()), NotAValue, "decorate its class with @record"),
    "a date": (lambda ds: send(ds, datetime.now(UTC).replace(tzinfo=None)), NotAValue, "without a time zone"),
    "a field": (lambda ds: send(ds, [field(1)]), NotAValue, "a field, and not a value: give what is in it"),
    "a pattern": (lambda ds: assert_(ds, Says("Ann", capture())), NotAValue, "capture() belongs in a pattern"),
    "a pattern, sent": (lambda ds: send(ds, ANY), NotAValue, "ANY belongs in a pattern: it is not a value"),
    # what is no pattern
    "a set in a pattern": (lambda ds: on_message(ds, Says("Ann", {1}))(one), PatternError, "capture(set)"),  # type: ignore[type-var]
    "a class as a pattern": (lambda ds: on_message(ds, Says)(one), PatternError, "write capture(Says), or an instance"),  # type: ignore[type-var]
    "capture without ()": (lambda ds: during(ds, Says("Ann", capture))(one), PatternError, "pattern: 'capture'. Write"),
    "a test in a pattern": (
        lambda ds: during(ds, [lambda x: x > 3])(one),  # type: ignore[type-var]
        PatternError,
        "look at the value in the hand",
    ),
    "a cyclic pattern": (lambda ds: during(ds, cyclic())(one), PatternError, "cyclic, or nested too deeply"),
    # what is no target
    "not a dataspace": (lambda ds: send(wrong(lambda: ds), "x"), NotAValue, "send(ds, ...), and not <function"),
    "the wrong way round": (
        lambda ds: assert_(wrong(Says)("Ann", 1), ds),
        NotAValue,
        "and not Says(who='Ann', what=1)",
    ),
    # handlers that do not fit
    "forgotten capture()": (
        lambda ds: on_message(ds, Says("Ann", "hi"))(one),  # type: ignore[type-var]
        NotCallable,
        "stands for: 0 in Says(who='Ann', what='hi'), but one(x) takes 1. Give it one parameter for each capture()",
    ),
    "too few parameters": (
        lambda ds: during(ds, Says(capture(), capture()))(one),  # type: ignore[type-var]
        NotCallable,
        "2 in Says(who=capture(), what=capture()), but one(x) takes 1",
    ),
    "too many, of a method": (lambda ds: on_asserted(ds, [ANY])(Plain().one), NotCallable, "but one(x) takes 1"),  # type: ignore[type-var]
    "too many, of stop_when": (lambda ds: stop_when(ds, [ANY])(one), NotCallable, "stop_when() hands over"),  # type: ignore[type-var]
    "too many, of a hook": (lambda ds: query_set(ds, [ANY], on_add=one), NotCallable, "query_set() hands over"),
    "an async handler": (lambda ds: on_retracted(ds, [ANY])(later), NotCallable, "a turn never waits"),
    "an unknown event": (lambda ds: stop_when(ds, [ANY], on=wrong("sent")), ArgumentError, "not 'sent'"),  # type: ignore[arg-type]
    # functions that are called too early, or not at all
    "spawn(f())": (lambda ds: spawn(wrong(one)(1)), NotCallable, "name the function without calling it, f and not f()"),
    "spawn without arguments": (
        lambda ds: spawn(one),
        NotCallable,
        "spawn() gives 0 arguments to one(x), which takes 1",
    ),
    "spawn with too many": (
        lambda ds: spawn(two, 1, 2, 3),
        NotCallable,
        "gives 3 arguments to two(x, y), which takes 2",
    ),
    "spawn an async function": (lambda ds: spawn(later), NotCallable, "let that give what waits to linked_task()"),
    "a partial of an async handler": (lambda ds: during(ds, [ANY])(partial(later)), NotCallable, "cannot call later"),
    "a partial of partials of a generator": (
        lambda ds: on_message(ds, [ANY])(partial(partial(yields))),
        NotCallable,
        "cannot call yields: it is async, or has a yield, and a turn never waits",
    ),
    "a partial of an async method": (lambda ds: after(1, partial(Later().method)), NotCallable, "a turn never waits"),
    "spawn a generator": (lambda ds: spawn(yields), NotCallable, "or has a yield"),
    "supervise(f())": (lambda ds: supervise(wrong(one)(1)), NotCallable, "supervise() needs a function, not None"),
    "react(f())": (lambda ds: react(wrong(one)(1)), NotCallable, "react() needs a function, not None"),
    "on_stop(f())": (lambda ds: on_stop(wrong(one)(1)), NotCallable, "on_stop() needs"),
    "on_stop_or_crash(f())": (lambda ds: on_stop_or_crash(wrong(one)(1)), NotCallable, "on_stop_or_crash() needs"),
    "dataflow(f())": (lambda ds: dataflow(wrong(one)(1)), NotCallable, "dataflow() needs"),
    "sync(ds, f())": (lambda ds: sync(ds, wrong(one)(1)), NotCallable, "sync() needs"),
    "after(1, f())": (lambda ds: after(1, wrong(one)(1)), NotCallable, "after() needs a function, not None"),
    "every(1, async)": (lambda ds: every(1, later), NotCallable, "every() cannot call later"),
    "linked_task(f())": (
        lambda ds: linked_task(wrong(one)(1)),
        NotCallable,
        "linked_task(f, x) and not linked_task(f(x))",
    ),
    "enter(f())": (lambda ds: current_facet().enter(wrong(one)(1)), NotCallable, "enter() needs"),
    "from a thread, f()": (
        lambda ds: current_facet().enter_from_thread(wrong(one)(1)),
        NotCallable,
        "enter_from_thread() needs",
    ),
    "run(f())": (lambda ds: run(wrong(one)(1)), NotCallable, "run() needs a function, not None"),
    # arguments that were mixed up
    "after(f, 1)": (lambda ds: after(wrong(one), wrong(1)), ArgumentError, "takes the seconds first, a number, as in"),  # type: ignore[arg-type]
    "seconds as text": (lambda ds: wrong(after)("1", len), ArgumentError, "as in after(0.5, fn), and not '1'"),
    "an unknown policy": (
        lambda ds: supervise(lambda: None, restart="never"),  # type: ignore[arg-type]
        ArgumentError,
        'supervise() takes restart="always" or restart="on-error", and not \'never\'',
    ),
    "stop(f)": (lambda ds: stop(wrong(one)), ArgumentError, "write stop(then=fn)"),
    "ref of a function": (lambda ds: ref(wrong(one)), ArgumentError, "an instance of a subclass of Entity"),
    "run in an actor": (lambda ds: run(yields), NotCallable, "run() cannot call yields"),
    "run in an actor again": (lambda ds: run(lambda: None), AlreadyRunning, "async with open_system(boot)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_at_once(mistake: str) -> None:
    """It is raised where it was made, says what is wrong and what to do, and is of the class that is documented."""
    make, error, says = MISTAKES[mistake]
    messages: list[SyndicateError] = []

    def boot() -> None:
        with pytest.raises(error, match=re.escape(says)) as raised:
            make(dataspace())
        messages.append(raised.value)

    settled(boot)
    assert type(messages[0]) is error


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_costs_one_actor(mistake: str) -> None:
    """The actor that makes it crashes with it; another one's assertions stay, and are seen by a third."""
    make, _, _ = MISTAKES[mistake]
    views: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: views.append(watch(ds, [capture()])))
        spawn(lambda: assert_(ds, ["kept"]))

        def clumsy() -> None:
            assert_(ds, ["lost"])
            prevent_inert_check()
            current_facet().enter(lambda: make(ds))

        spawn(clumsy)

    settled(boot)
    assert views == [[("+", "kept"), ("+", "lost"), ("-", "lost")]]


@pytest.mark.parametrize("mistake", ["a cyclic list", "a set in a pattern", "forgotten capture()", "spawn(f())"])
def test_a_traceback_ends_in_the_line_of_the_mistake(mistake: str) -> None:
    """How we found out is not shown: of a cyclic list that would be hundreds of lines."""
    make, error, _ = MISTAKES[mistake]
    with pytest.raises(error) as raised:
        run(lambda: make(dataspace()))
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert last.filename == __file__


def test_other_tracebacks_are_whole() -> None:
    """Only what is found out about an argument is cut short: not an error in text that came from somewhere."""
    with pytest.raises(TextError) as raised:
        run(lambda: parse("<"))
    assert not traceback.extract_tb(raised.value.__traceback__)[-1].filename.startswith(__file__)


@pytest.mark.parametrize(
    "handler",
    [
        two,
        lambda x, y: None,
        lambda *both: None,
        lambda x, *rest, z=3: None,
        partial(lambda x, y, z: None, 0),
        print,
        MethodType(lambda self, x, y: None, object()),
        type("Callable", (), {"__call__": lambda self, x, y: None})(),
        dict,
    ],
)
def test_handlers_that_fit(handler: Callable[..., object]) -> None:
    """Defaults, starred parameters, partials, methods, objects with __call__, builtins: what can be called is taken."""
    errors: list[BaseException] = []

    def boot() -> None:
        ds = dataspace()
        on_asserted(ds, [capture(), capture()])(handler)
        try:
            on_asserted(ds, [ANY])(lambda: None)
        except NotCallable as e:
            errors.append(e)

    settled(boot)
    assert not errors


@pytest.mark.parametrize(
    "act",
    [
        lambda: send(wrong(one), 1),
        dataspace,
        lambda: field(1),
        stop,
        stop_actor,
        lambda: after(1, lambda: None),
        lambda: on_stop(lambda: None),
        lambda: spawn(lambda: None),
        lambda: during(wrong(one), 1)(lambda: None),
        lambda: react(lambda: None),
        lambda: assert_(wrong(one), 1),
        current_facet,
    ],
)
def test_outside_a_turn(act: Callable[[], object]) -> None:
    """The function that was called is named, and the ways to get into a turn from a task and from a thread."""
    with pytest.raises(NotInTurn, match=r"no turn is running here.*facet\.enter\(lambda: \w+.*enter_from_thread"):
        act()


def test_a_field_of_a_record_without_an_annotation() -> None:
    """It would be none, in silence, so it is refused; also where it is to be another default for an inherited field."""
    with pytest.raises(RecordDefinition, match=r"Point\.n has no annotation.*n: int = \.\.\.; or.*ClassVar\[int\]"):
        record(type("Point", (), {"n": 1}))
    with pytest.raises(RecordDefinition, match=r"x: Any = "):
        record(type("Point", (), {"x": attrs.field(), "__annotations__": {"y": int}}))
    with pytest.raises(RecordDefinition, match=r"what: str = "):
        record(type("Shouts", (Says,), {"what": "hey"}))


def test_a_record_class_with_an_initializer_of_its_own() -> None:
    """Is made by it, and by nothing else; one that nobody would call is refused."""

    @record
    class Sorted:
        low: int
        high: int

        def __init__(self, *numbers: int) -> None:
            self.__attrs_init__(min(numbers), max(numbers))  # type: ignore[attr-defined]  # what attrs makes

    made: Any = Sorted
    assert (made(3, 1, 2).low, made(3, 1, 2).high, made(4) == made(4, 4)) == (1, 3, True)
    assert thaw(freeze(made(2, 1))) == made(1, 2)
    with pytest.raises(TypeError, match="low"):
        made(low=1, high=2)
    with pytest.raises(RecordDefinition, match=r"Late\.__post_init__ is never called: .*__attrs_post_init__"):
        record(type("Late", (), {"__annotations__": {"n": int}, "__post_init__": lambda self: None}))


def test_what_attrs_refuses_is_refused_for_a_record() -> None:
    """With the name of the class, as all that is wrong with one."""
    with pytest.raises(RecordDefinition, match=r"More cannot be a record: .*after .* default"):
        record(type("More", (), {"__annotations__": {"n": int, "m": int}, "n": 1}))
    with pytest.raises(RecordDefinition, match=r"Loud cannot be a record: .*__setattr__"):
        record(type("Loud", (), {"__annotations__": {"n": int}, "__setattr__": lambda self, name, value: None}))


def test_what_a_record_class_may_have_besides_fields() -> None:
    """Constants of the class, private names, methods, properties and classes need no annotation to be none."""

    @record
    class Besides:
        n: int
        LIMIT: ClassVar[int] = 3
        _seen = 0

        class Inner:
            pass

        @property
        def twice(self) -> int:
            return 2 * self.n

        @staticmethod
        def three() -> int:
            return 3

        @classmethod
        def four(cls) -> int:
            return 4

    assert repr(Besides(1)).endswith("Besides(n=1)")
    assert (Besides(1).twice, Besides.three(), Besides.four(), Besides.LIMIT) == (2, 3, 4, 3)


async def test_a_linked_task_that_is_not_async(system: System, settle: Callable[[], Any]) -> None:
    """The actor crashes, with an error that says how to run what blocks."""
    actor = system.spawn(lambda: linked_task(wrong(lambda: 3)))
    await settle()
    assert isinstance(actor.error, NotCallable)
    assert "linked_task(trio.to_thread.run_sync, fn)" in str(actor.error)


async def test_run_in_a_trio_program() -> None:
    """It cannot be: there is open_system for that."""
    with pytest.raises(AlreadyRunning, match="open_system"):
        run(lambda: None)
    async with open_system(lambda: None) as system:
        await system.settle()
    await trio.lowlevel.checkpoint()


def test_stop_actor_in_a_stop_handler() -> None:
    """A facet that stops may stop its actor with it, at any depth."""
    ended: list[Any] = []

    def boot() -> None:
        ds = dataspace()

        def tested() -> None:
            assert_(ds, ["own"])
            on_stop(lambda: ended.append("root"))

            @react
            def middle() -> None:
                on_stop(lambda: ended.append("middle"))

                @during(ds, Record("go", []))
                def going() -> None:
                    on_stop(lambda: ended.append("inner"))
                    on_stop(stop_actor)

        actor = spawn(tested)
        spawn(lambda: ended.append(watch(ds, [capture()])))
        go = react(lambda: assert_(ds, Record("go", [])))

        done = prevent_inert_check()

        def look() -> None:
            ended.append((actor.running, actor.error))
            done()

        def end() -> None:
            stop(go)
            sync(ds, lambda: sync(ds, look))  # by the second reply the actor has heard of the end

        after(0.01, end)

    run(boot)
    assert ended == [[("+", "own"), ("-", "own")], "inner", "middle", "root", (False, None)]


DECORATORS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "on_message": lambda ds: on_message(ds, ["x", capture()]),
    "on_asserted": lambda ds: on_asserted(ds, ["x", capture()]),
    "on_retracted": lambda ds: on_retracted(ds, ["x", capture()]),
    "during": lambda ds: during(ds, ["x", capture()]),
    "during(spawn)": lambda ds: during(ds, ["x", capture()], spawn=True),
    "stop_when": lambda ds: stop_when(ds, ["x", capture()]),
    "after": lambda ds: after(1),
    "every": lambda ds: every(1),
    "connect": lambda ds: connect("tcp://127.0.0.1:1"),
}


@pytest.mark.parametrize("where", ["boot", "a later turn", "a facet", "a stop handler", "a block"])
@pytest.mark.parametrize("what", DECORATORS)
def test_a_decorator_without_a_function(what: str, where: str) -> None:
    """It is reported when the turn ends, with file and line; the actor crashes, and nothing else."""
    seen: list[Any] = []

    def forgets(ds: Ref) -> None:
        prevent_inert_check()
        seen.append(current_facet())
        forget = partial(DECORATORS[what], ds)
        if where == "boot":
            forget()
        elif where == "a facet":
            react(lambda: (forget(), None)[1])
        elif where == "a stop handler":
            stop(react(lambda: (on_stop(forget), None)[1]))
        elif where == "a block":
            dataflow(forget)

    system = settled(lambda: spawn(forgets, dataspace(), name="forgets"))
    if where == "a later turn":
        seen[-1].enter(lambda: (DECORATORS[what](dataspace()), None)[1])
        system.drain()
    (error,) = [facet.actor.error for facet in seen]
    assert type(error) is NotCallable
    assert f"{what.removesuffix('(spawn)')}() in {__file__}, line " in str(error)
    assert "has got no function in the turn that called it" in str(error)


@pytest.mark.parametrize("what", [what for what in DECORATORS if what != "connect"])
def test_a_decorator_that_is_applied_later_in_its_turn(what: str) -> None:
    """Kept in a variable, and applied once or twice; also one whose turn raises is no matter of ours."""
    seen: list[Any] = []

    def handler(*captures: Any) -> None:
        """It does nothing."""

    def keeps(ds: Ref) -> None:
        prevent_inert_check()
        decorate = DECORATORS[what](ds)
        seen.append(current_facet())
        react(lambda: (decorate(handler), None)[1])
        decorate(handler)

    settled(lambda: spawn(keeps, dataspace()))
    assert type(seen[0].actor.error) is not NotCallable  # timers say that there is no trio here
    assert seen[0].actor.error is None or what in ("after", "every")
