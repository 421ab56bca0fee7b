# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import pytest
import trio
import trio.lowlevel
import trio.testing

from syndicate import (
    ANY,
    Entity,
    Observe,
    Record,
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
    open_system,
    prevent_inert_check,
    query_count,
    query_hash,
    query_set,
    query_value,
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
    supervise_group,
    sync,
    timer_driver,
)
from syndicate.actors.actor import Actor
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import here
from syndicate.errors import AlreadyRunning, FacetEnded, NotInTurn, SyndicateError, SystemStopped
from syndicate.testing import Seen, settled, watch
from tests.strategies import P
from tests.work import PATIENCE

pytestmark = pytest.mark.usefixtures("logs")

Settle: TypeAlias = Callable[[], Awaitable[None]]


def jumping() -> trio.testing.MockClock:
    """A clock that jumps to the next deadline."""
    return trio.testing.MockClock(autojump_threshold=0)


# -------------------------------------------------------------------------------------------------------- run


@record("box-state")
class BoxState:
    """What the box holds."""

    value: int


@record("set-box")
class SetBox:
    """What the box is to hold."""

    value: int


def test_the_example_of_the_contract() -> None:
    """Box and client, as newcomers meet them: they count to the limit, then nobody is left and ``run`` returns."""
    shown_values: list[int] = []
    ended: list[str] = []

    def box(ds: Any, limit: int) -> None:
        value = field(0, name="value")
        assert_(ds, lambda: BoxState(value.value))

        @on_message(ds, SetBox(capture()))
        def set_box(new: int) -> None:
            value.value = new

        @dataflow
        def stop_at_limit() -> None:
            if value.value >= limit:
                stop_actor()

        on_stop(lambda: ended.append("box"))

    def client(ds: Any) -> None:
        @during(ds, BoxState(capture()))
        def shown(value: int) -> None:
            shown_values.append(value)
            send(ds, SetBox(value + 1))

        on_stop(lambda: ended.append("client"))

    def boot() -> None:
        ds = dataspace()
        spawn(box, ds, 1000, name="box")
        spawn(client, ds, name="client")

    run(boot)
    assert shown_values[:1000] == list(range(1000))
    assert ended == ["box", "client"]


def test_run_raises_the_very_error_of_its_boot(logs: list[MutableMapping[str, Any]]) -> None:
    """Not wrapped, not logged besides; the other actors are stopped in order."""
    ended: list[str] = []
    error = ValueError("mine")

    def fail() -> None:
        raise error

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: (prevent_inert_check(), on_stop(lambda: ended.append("other"))))
        on_message(ds, "fail")(fail)
        send(ds, "fail")

    with pytest.raises(ValueError, match="mine") as raised:
        run(boot)
    assert raised.value is error
    assert ended == ["other"]
    assert logs == []
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 / 0)


def test_a_crash_elsewhere_is_logged_and_run_goes_on(logs: list[MutableMapping[str, Any]]) -> None:
    """Only the first actor's error is raised."""
    log: list[str] = []

    def boot() -> None:
        spawn(lambda: 1 / 0, name="unlucky")
        after(1, lambda: log.append("went on"))

    run(boot, clock=jumping())
    assert log == ["went on"]
    assert [(entry["actor"], entry["log_level"] if "log_level" in entry else entry["level"]) for entry in logs] == [
        ("unlucky", "error")
    ]


def returns(boot: Callable[[], object], **kwargs: Any) -> bool:
    """Whether ``run(boot)`` comes to an end within some seconds."""
    done = threading.Event()

    def main() -> None:
        run(boot, **kwargs)
        done.set()

    threading.Thread(target=main, daemon=True).start()
    return done.wait(PATIENCE)


def test_run_returns_when_nobody_is_left_or_all_wait_for_each_other() -> None:
    """Interests, assertions, running during-facets, waiting services, supervised or not: nothing can ever wake them."""

    def waiting() -> None:
        ds = dataspace()
        assert_(ds, P(1))
        on_message(ds, P(capture()))(print)
        during(ds, P(capture()))(lambda x: None)
        during(ds, P(capture()), spawn=True)(lambda x: assert_(ds, P(2)))
        supervise(lambda: on_asserted(ds, P("never"))(lambda: None))
        spawn(lambda: link(spawn(lambda: assert_(ds, P(3)))))

    assert returns(lambda: None)
    assert returns(waiting)


def test_run_waits_for_tasks_and_timers() -> None:
    """Whatever may still wake an actor keeps ``run`` running until it has."""
    log: list[str] = []

    async def work() -> None:
        await trio.sleep(5)
        log.append("task")

    def boot() -> None:
        react(lambda: linked_task(work))
        react(lambda: after(7, lambda: log.append("timer")))

    run(boot, clock=jumping())
    assert log == ["task", "timer"]


@pytest.mark.parametrize("announced", ["preventer", "task"])
def test_run_waits_for_threads_that_are_announced(announced: str) -> None:
    """By a preventer, or as a linked task; whether they are daemons does not matter."""
    log: list[str] = []

    def boot() -> None:
        ds = dataspace()
        facet = current_facet()
        assert_(ds, P(1))

        def work() -> None:
            time.sleep(0.02)
            facet.enter_from_thread(lambda: (log.append("thread"), stop()))

        if announced == "preventer":
            prevent_inert_check()
            threading.Thread(target=work, daemon=True).start()
        else:
            linked_task(trio.to_thread.run_sync, work)

    run(boot)
    assert log == ["thread"]


def test_run_ends_when_a_thread_takes_its_preventer_back() -> None:
    """Although nothing else happens then."""

    def boot() -> None:
        assert_(dataspace(), P(1))
        disarm = prevent_inert_check()

        def work() -> None:
            time.sleep(0.02)
            disarm()

        threading.Thread(target=work).start()

    assert returns(boot)


@pytest.mark.parametrize("others", ["systems", "idle pool", "waiting thread"])
def test_run_does_not_wait_for_threads_that_hold_nothing_of_it(others: str) -> None:
    """Other systems, idle pools, threads that wait for something else: whatever has not been announced."""
    over = threading.Event()

    def boot() -> None:
        ds, facet = dataspace(), current_facet()  # which is handed to nobody
        on_message(ds, "never")(lambda: facet.enter(stop_actor))
        if others == "idle pool":
            pool.submit(lambda: None).result()

    with ThreadPoolExecutor(1) as pool:
        if others == "systems":
            threads = [threading.Thread(target=run, args=[boot]) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elif others == "waiting thread":
            threading.Thread(target=over.wait).start()
        assert returns(boot)
        over.set()


def test_a_daemon_keeps_nobody_waiting() -> None:
    """Daemons run as long as others do; then they are stopped in order, last of all."""
    log: list[str] = []

    def daemon() -> None:
        every(1, lambda: log.append("tick"))
        on_stop(lambda: log.append("daemon stopped"))

    def boot() -> None:
        spawn(daemon, daemon=True)
        after(2.5, lambda: log.append("done"))
        on_stop(lambda: log.append("boot stopped"))

    run(boot, clock=jumping())
    assert log == ["tick", "tick", "done", "boot stopped", "daemon stopped"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_leaves_in_order(error: type[BaseException], logs: list[MutableMapping[str, Any]]) -> None:
    """Ctrl-C in the middle of a turn: the turn is undone, everybody is stopped, tasks end, the interrupt comes out."""
    log: list[str] = []
    seen: list[Seen] = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append("task ended")

    def interrupted(ds: Any) -> None:
        handle = assert_(ds, P("alive"))
        linked_task(work)
        on_stop_or_crash(lambda: log.append("cleaned up"))

        @after(1)
        def in_the_middle() -> None:
            assert_(ds, P("half"))
            send(ds, P("half"))
            handle.replace(P("half"))
            raise error

    def other(ds: Any) -> None:
        seen.append(watch(ds, P(capture())))
        linked_task(work)
        on_stop(lambda: log.append("other stopped"))

    def boot() -> None:
        ds = dataspace()
        spawn(other, ds)
        spawn(interrupted, ds)

    with pytest.raises(error):
        run(boot, clock=jumping())
    assert sorted(log) == ["cleaned up", "other stopped", "task ended", "task ended"]
    assert log.index("cleaned up") < log.index("other stopped")
    assert seen[0][0] == ("+", "alive")
    assert "half" not in str(seen)
    assert logs == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_task_leaves_in_order(error: type[BaseException]) -> None:
    """It comes out as itself, not in an ExceptionGroup."""
    log: list[str] = []

    async def interrupted() -> None:
        await trio.sleep(1)
        raise error

    def boot() -> None:
        on_stop(lambda: log.append("stopped"))
        linked_task(interrupted)

    with pytest.raises(error):
        run(boot, clock=jumping())
    assert log == ["stopped"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["on_stop", "on_stop_or_crash", "crash", "commit"])
def test_an_exit_in_the_midst_of_an_end_keeps_nobody_from_stopping(error: type[BaseException], where: str) -> None:
    """In a stop handler, in the clean-up of a crash, in a commit: what the actor asserted goes, the others stop, and
    then it comes out.
    """
    log: list[str] = []
    places: list[Any] = []

    def leave() -> None:
        log.append("leaving")
        raise error

    def leaving(ds: Any) -> None:
        assert_(ds, P("alive"))
        if where == "commit":
            after(1, lambda: here.turn and here.turn.afterwards.append(leave))
        elif where == "crash":
            on_stop_or_crash(leave)
            after(1, lambda: 1 / 0)
        else:
            (on_stop if where == "on_stop" else on_stop_or_crash)(leave)
            after(1, stop_actor)

    def other(ds: Any) -> None:
        during(ds, P(capture()))(lambda value: assert_(ds, ["seen", value]))
        prevent_inert_check()
        on_stop(lambda: log.append("other stopped"))

    def boot() -> None:
        places.append(dataspace())
        spawn(other, places[0])
        spawn(leaving, places[0])
        spawn(other, places[0])

    with pytest.raises(error):
        run(boot, clock=jumping())
    assert log == ["leaving", "other stopped", "other stopped"]
    assert list(places[0].entity.index) == []
    assert places[0].entity.index.statistics().tables == 0


@pytest.mark.parametrize("stops", [1, 3])
def test_exits_in_stop_handlers_while_all_stop(stops: int) -> None:
    """However many raise: all are called, once each."""
    log: list[int] = []

    def member(n: int) -> None:
        prevent_inert_check()

        @on_stop
        def stopped() -> None:
            log.append(n)
            if n < stops:
                sys.exit(n)

    def boot() -> None:
        for n in range(4):
            spawn(member, n)
        after(1, lambda: sys.exit(9))

    with pytest.raises(SystemExit) as raised:
        run(boot, clock=jumping())
    assert sorted(log) == [0, 1, 2, 3]
    assert raised.value.code in range(10)


def test_run_leaves_the_garbage_collector_as_it_was() -> None:
    """Whatever it sets for its own speed."""
    before = gc.get_threshold()
    run(lambda: None)
    assert gc.get_threshold() == before


# ------------------------------------------------------------------------------------------------ open_system


async def test_a_system_inside_a_trio_program() -> None:
    """Actors run beside other tasks, and are stopped in order when the block ends, those that others spawn then too."""
    log: list[str] = []

    def member(name: str) -> None:
        prevent_inert_check()
        on_stop(lambda: log.append(name))
        on_stop(lambda: spawn(member, "heir") if name == "boot" else None)

    async with open_system(member, "boot") as system:
        system.spawn(member, "other")
        await system.settle()
        assert log == []
        assert len(system.actors) == 2
    assert log == ["boot", "other", "heir"]
    assert not system.actors


async def test_the_end_of_a_system() -> None:
    """Nothing can be started in it; entering what is dead has no effect from within, and raises in a thread."""
    facets: list[Facet] = []
    async with open_system() as system:
        system.spawn(lambda: (prevent_inert_check(), facets.append(current_facet())))
        await system.settle()
    with pytest.raises(SystemStopped, match="open another one"):
        system.spawn(lambda: None)
    facets[0].enter(lambda: 1 / 0)
    with pytest.raises(FacetEnded):
        facets[0].enter_from_thread(lambda: 1 / 0)
    await trio.testing.wait_all_tasks_blocked()


async def test_errors_inside_the_block_come_out_as_they_are(logs: list[MutableMapping[str, Any]]) -> None:
    """After all actors were stopped; the first actor's crash is reported at once, and ends the block."""
    log: list[str] = []

    async def failing_block() -> None:
        async with open_system() as system:
            system.spawn(lambda: (prevent_inert_check(), on_stop(lambda: log.append("stopped"))))
            await system.settle()
            raise ValueError("mine")

    async def failing_actor() -> None:
        async with open_system(lambda: 1 / 0):
            try:
                await trio.sleep_forever()
            finally:
                log.append("block ends")

    with pytest.raises(ValueError, match="mine"):
        await failing_block()
    assert log == ["stopped"]
    with pytest.raises(ZeroDivisionError):
        await failing_actor()
    assert log == ["stopped", "block ends"]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("an actor crashed", "error")]


async def test_the_block_has_the_last_word_on_a_failure() -> None:
    """What the block itself raises while it is cancelled comes out: the failure has been reported."""

    async def block(then: BaseException | None) -> None:
        async with open_system(lambda: 1 / 0):
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                if then is not None:
                    raise then from None
                raise

    with pytest.raises(ValueError, match="mine"):
        await block(ValueError("mine"))
    with pytest.raises(SystemExit):
        await block(SystemExit(3))


async def test_a_host_outlives_its_actors() -> None:
    """Without a first actor nothing that fails ends the block."""
    async with open_system() as system:
        actor = system.spawn(lambda: 1 / 0)
        await system.settle()
        assert isinstance(actor.error, ZeroDivisionError)
        await trio.lowlevel.checkpoint()


async def test_cancelling_the_block_stops_the_actors() -> None:
    """A cancel scope around a system ends it in order, with its tasks."""
    log: list[str] = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append("task ended")

    with trio.CancelScope() as scope:
        async with open_system() as system:
            system.spawn(lambda: (linked_task(work), on_stop(lambda: log.append("stopped"))))
            await system.settle()
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert sorted(log) == ["stopped", "task ended"]


async def test_two_systems_side_by_side() -> None:
    """They share nothing but the thread."""
    seen: list[Seen] = []
    async with open_system() as one, open_system() as two:
        for system in (one, two):

            def boot() -> None:
                ds = dataspace()
                seen.append(watch(ds, P(capture())))
                assert_(ds, P(len(seen)))

            system.spawn(boot)
            await system.settle()
    assert [events[0] for events in seen] == [("+", 1), ("+", 2)]


async def test_settle_waits_for_all_that_is_runnable(system: System, settle: Settle) -> None:
    """A long chain of turns, over many time slices, is done when ``system.settle()`` returns."""
    log: list[int] = []

    def boot() -> None:
        ds = dataspace()
        on_message(ds, capture(int))(lambda n: send(ds, n + 1) if n < 20_000 else log.append(n))
        send(ds, 0)

    system.spawn(boot)
    await system.settle()
    assert log == [20_000]
    await system.settle()


async def test_other_tasks_get_their_turn(system: System) -> None:
    """An actor that never rests does not starve the rest of the trio program."""
    facets: list[Facet] = []

    def boot() -> None:
        ds = dataspace()
        facets.append(current_facet())
        on_message(ds, "again")(lambda: send(ds, "again"))
        send(ds, "again")

    system.spawn(boot)
    for _ in range(10):
        await trio.lowlevel.checkpoint()
    assert facets
    facets[0].enter(stop_actor)
    await system.settle()


# --------------------------------------------------------------------------------------------- outside a turn

DS = settled(lambda: None).spawn(prevent_inert_check).root  # a facet of some system, for references that lead nowhere


def _ref() -> Any:
    from syndicate import Ref

    return Ref(DS, Entity())


async def _nothing() -> None:
    """A task."""


IN_TURN: dict[str, Callable[[], object]] = {
    "after": lambda: after(1, print),
    "assert_": lambda: assert_(_ref(), 1),
    "current_facet": current_facet,
    "dataflow": lambda: dataflow(print),
    "dataspace": dataspace,
    "during": lambda: during(_ref(), 1)(print),
    "every": lambda: every(1, print),
    "field": lambda: field(1),
    "link": lambda: link(DS.actor),
    "linked_task": lambda: linked_task(_nothing),
    "on_asserted": lambda: on_asserted(_ref(), 1)(print),
    "on_message": lambda: on_message(_ref(), 1)(print),
    "on_retracted": lambda: on_retracted(_ref(), 1)(print),
    "on_stop": lambda: on_stop(print),
    "on_stop_or_crash": lambda: on_stop_or_crash(print),
    "prevent_inert_check": prevent_inert_check,
    "query_count": lambda: query_count(_ref(), [capture()]),
    "query_hash": lambda: query_hash(_ref(), [capture(), capture()]),
    "query_set": lambda: query_set(_ref(), [capture()]),
    "query_value": lambda: query_value(_ref(), [capture()]),
    "react": lambda: react(print),
    "ref": lambda: ref(Entity()),
    "send": lambda: send(_ref(), 1),
    "spawn": lambda: spawn(print),
    "stop": stop,
    "stop_actor": stop_actor,
    "stop_when": lambda: stop_when(_ref(), 1)(print),
    "supervise": lambda: supervise(print),
    "supervise_group": lambda: supervise_group([print]),
    "sync": lambda: sync(_ref(), print),
    "timer_driver": lambda: timer_driver(_ref()),
}
ANYWHERE = {"capture", "convert", "host", "open_system", "quote", "record", "run", "unquote"}


def test_all_functions_of_the_surface_are_tried_outside_a_turn() -> None:
    """The table above is complete."""
    import syndicate

    functions = {name for name in syndicate.__all__ if callable(getattr(syndicate, name))}
    classes = {name for name in functions if isinstance(getattr(syndicate, name), type)}
    assert set(IN_TURN) == functions - classes - ANYWHERE


@pytest.mark.parametrize("name", IN_TURN)
@pytest.mark.parametrize("where", ["nowhere", "another thread", "a task"])
async def test_outside_a_turn(name: str, where: str, system: System, settle: Settle) -> None:
    """Each function says which one it is and what to use instead; nothing happens by it, and the system goes on."""
    errors: list[BaseException] = []

    def attempt() -> None:
        with pytest.raises(NotInTurn) as raised:
            IN_TURN[name]()
        errors.append(raised.value)

    async def in_a_task() -> None:
        attempt()

    log: list[str] = []
    if where == "nowhere":
        attempt()
    elif where == "another thread":

        def in_a_turn() -> None:  # a turn of this thread is none of the other's
            thread = threading.Thread(target=attempt)
            thread.start()
            thread.join()

        system.spawn(in_a_turn)
    else:
        system.spawn(lambda: linked_task(in_a_task))
    await settle()
    assert f"{name}() acts on the current turn" in str(errors[0])
    assert "facet.enter(" in str(errors[0])
    assert "facet.enter_from_thread(" in str(errors[0])
    system.spawn(lambda: log.append("goes on"))
    await settle()
    assert log == ["goes on"]


def test_handles_need_a_turn_too() -> None:
    """Retracting, replacing, cancelling and disarming outside a turn."""
    objects: dict[str, Any] = {}

    def boot() -> None:
        ds = dataspace()
        objects["handle"] = assert_(ds, P(1))
        objects["computed"] = assert_(ds, lambda: P(2))

    settled(boot)
    for handle in (objects["handle"], objects["computed"]):
        with pytest.raises(NotInTurn, match=r"^retract\(\)"):
            handle.retract()
        with pytest.raises(NotInTurn, match=r"^replace\(\)"):
            handle.replace(P(3))
        assert handle.live


def test_a_nested_run_is_refused() -> None:
    """``run`` inside an actor would block it: only that actor crashes, with the remedy."""
    errors: list[BaseException | None] = []

    def boot() -> None:
        actor: Actor = spawn(lambda: run(lambda: None), name="nested")
        after(1, lambda: errors.append(actor.error))

    run(boot, clock=jumping())
    assert isinstance(errors[0], SyndicateError)
    assert "open_system" in str(errors[0])


async def _open() -> None:
    async with open_system():
        pass


async def _run() -> None:
    run(lambda: None)


@pytest.mark.parametrize("start", [_open, _run])
def test_under_asyncio_an_error_says_what_to_do(start: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a notebook, in FastAPI: which host, which call."""
    with pytest.raises(AlreadyRunning, match="asyncio runs here") as raised:
        asyncio.run(start())
    for remedy in ("syndicate.asyncio.open_system()", "syndicate.thread.System()"):
        assert remedy in str(raised.value)


def test_nowhere_at_all() -> None:
    """Without any event loop, as when somebody drives a coroutine by hand."""
    with pytest.raises(AlreadyRunning, match=r"trio\.run"):
        _open().send(None)


@pytest.mark.parametrize("signalled", [False, True])
def test_a_guest_of_asyncio(signalled: bool) -> None:
    """What that error recommends: trio beside asyncio's tasks, with actors in it, which Ctrl-C ends in order."""
    log: list[str] = []
    heard, heard_outside = trio.Event(), asyncio.Event()

    def speak() -> None:
        log.append("actor")
        heard.set()
        heard_outside.set()

    def boot() -> None:
        prevent_inert_check()
        on_stop(lambda: log.append("stopped"))
        after(0.01, speak)

    async def guest() -> str:
        async with open_system(boot):
            await (trio.Event() if signalled else heard).wait()
        return "guest"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str] = loop.create_future()

        def over(outcome: Any) -> None:
            try:
                done.set_result(outcome.unwrap())
            except BaseException as error:
                done.set_result(type(error).__name__)

        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=over,
            host_uses_signal_set_wakeup_fd=True,
        )
        await heard_outside.wait()
        if signalled:
            signal.raise_signal(signal.SIGTERM)
        log.append(await done)

    asyncio.run(main())
    assert log == ["actor", "stopped", "SystemExit" if signalled else "guest"]


@pytest.mark.parametrize("awaited", [False, True])
def test_actors_in_a_thread_beside_asyncio(awaited: bool) -> None:
    """The other thing that it recommends: calls go in by enter_from_thread, and answers out by call_soon_threadsafe."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[Facet] = loop.create_future()
        answer: asyncio.Future[int] = loop.create_future()

        def boot() -> None:
            prevent_inert_check()
            loop.call_soon_threadsafe(ready.set_result, current_facet())

        thread = threading.Thread(target=run, args=[boot])
        thread.start()
        facet = await ready
        if awaited:
            facet.enter_from_thread(lambda: loop.call_soon_threadsafe(answer.set_result, 42))
            assert await answer == 42
        facet.enter_from_thread(stop_actor)
        await asyncio.to_thread(thread.join)
        return 0

    assert asyncio.run(main()) == 0


def test_observing_by_hand() -> None:
    """An entity, its reference and an Observe: what on_message and the others are made of."""
    log: list[Any] = []

    class Listener(Entity):
        def message(self, value: Any) -> None:
            log.append(value)

    def boot() -> None:
        ds = dataspace()
        assert_(ds, Observe(Record("r", [capture(), ANY]), ref(Listener())))
        send(ds, Record("r", [1, 2, 3]))

    settled(boot)
    assert log == [(1,)]


async def test_calls_after_a_slice() -> None:
    """They run once, in the order they were asked for, when the turns before them are over, and in none."""
    trace: list[object] = []
    async with open_system() as system:

        def boot() -> None:
            prevent_inert_check()
            facet = current_facet()

            def turn(left: int) -> None:
                trace.append(left)
                system.after_slice(lambda: trace.append((left, here.turn)))
                if left:
                    facet.enter(partial(turn, left - 1))

            turn(3)

        system.spawn(boot)
        await system.settle()
        assert trace == [3, 2, 1, 0, (3, None), (2, None), (1, None), (0, None)]
        system.after_slice(lambda: trace.append("asked for outside"))
        await system.settle()
        while trace[-1] != "asked for outside":
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("origin", ["a turn", "no turn"])
async def test_a_call_after_a_slice_may_ask_for_another(origin: str) -> None:
    """Whoever asks while such calls are made is called too, though nothing else happens any more."""
    done = trio.Event()
    async with open_system() as system:

        def first() -> None:
            system.after_slice(second)

        def second() -> None:
            system.after_slice(done.set)

        if origin == "a turn":
            system.spawn(lambda: system.after_slice(first))
        else:
            system.after_slice(first)
        await done.wait()
