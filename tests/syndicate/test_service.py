"""Questions: one answer, or a failure that is reported; services that start in the order of their needs."""

# mypy: disable-error-code="misc, arg-type, func-returns-value"
# (it cannot infer lambdas with defaults; a list in a lambda joins what is done in one turn)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from relay import connect
from syndicate import (
    Ref,
    after,
    capture,
    current_facet,
    dataspace,
    during,
    linked_task,
    on_stop,
    prevent_inert_check,
    react,
    record,
    run,
    spawn,
    stop,
    stop_actor,
)
from syndicate.errors import (
    AnswererCrashed,
    AnswerLate,
    AskFailed,
    NobodyAnswers,
    NotCallable,
    Refused,
    ServiceCycle,
)
from syndicate.service import DependsOn, ServiceState, answer, ask, asked, provide, require
from tests.test_examples import server


@record
class Half:
    """A question."""

    number: int


def play(boot: Callable[..., object], *args: object) -> None:
    """Run it on a clock that waits for nothing."""
    run(boot, *args, clock=MockClock(autojump_threshold=0.02))


def answering(ds: Ref) -> None:
    """A program that answers in all ways there are."""

    @answer(ds, Half(capture(int)))
    def half(number: int) -> int | None:
        if number == 0:
            raise ZeroDivisionError("none")
        if number % 2:
            raise Refused(f"{number} is odd")
        return None if number == 100 else number // 2

    @answer(ds, ["slow", capture(float)])
    async def slow(seconds: float) -> str:
        await trio.sleep(seconds)
        if seconds == 3:
            raise Refused("three")
        if seconds == 4:
            raise ValueError("four")
        return f"after {seconds}"


CASES: dict[str, tuple[Any, Any]] = {
    "an answer": (Half(42), 21),
    "None is True": (Half(100), True),
    "refused": (Half(7), (Refused, "7 is odd")),
    "crashed": (Half(0), (AnswererCrashed, "ended before it answered")),
    "nobody": (["third", 1], (NobodyAnswers, None)),
    "another label": (Half("x"), (AnswerLate, "no answer within 10 seconds")),
    "slow": (["slow", 2.0], "after 2.0"),
    "slowly refused": (["slow", 3.0], (Refused, "three")),
    "slowly crashed": (["slow", 4.0], (AnswererCrashed, "ended before it answered")),
    "late": (["slow", 20.0], (AnswerLate, "no answer within 10 seconds")),
}
CASES["nobody"] = (["third", 1], (AnswerLate, "no answer within 10 seconds"))  # lists have one label
CASES["nobody there"] = ("text", (AnswerLate, "no answer"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["callback", "task"])
def test_outcomes(name: str, how: str) -> None:
    """Each is distinguished, by a function and in a task."""
    request, expected = CASES[name]
    seen: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        spawn(answering, ds)

        def asks() -> None:
            if how == "callback":
                ask(ds, request, seen.append, seen.append)
                return
            facet = current_facet()

            async def work() -> None:
                try:
                    seen.append(await asked(facet, ds, request))
                except AskFailed as failure:
                    seen.append(failure)

            linked_task(work)

        after(1, asks)

    play(boot)
    (outcome,) = seen
    if isinstance(expected, tuple):
        kind, says = expected
        assert type(outcome) is kind
        assert says in str(outcome)
    else:
        assert outcome == expected


def test_nobody_is_known_at_once() -> None:
    """Without a wait for the deadline; and so is that the last who answered has gone."""
    seen: list[Any] = []

    def boot() -> None:
        ds = dataspace()

        def note(failure: AskFailed) -> None:
            seen.append((type(failure), trio.current_time()))

        ask(ds, Half(1), seen.append, note)

        def leaves() -> None:
            @answer(ds, Half(capture(float)))
            def never(number: float) -> None: ...

            after(2, stop_actor)

        after(3, lambda: spawn(leaves))
        after(4, lambda: ask(ds, Half(1), seen.append, note))

    play(boot)
    assert [(kind, round(time)) for kind, time in seen] == [(NobodyAnswers, 0), (NobodyAnswers, 5)]


def test_an_answer_nobody_waits_for() -> None:
    """Who asks and ends gives its question up: who is at it stops."""
    seen: list[str] = []

    def boot() -> None:
        ds = dataspace()

        @answer(ds, ["long"])
        async def long() -> None:
            try:
                await trio.sleep(100)
            except trio.Cancelled:
                seen.append("given up")
                raise

        @react
        def asks() -> None:
            ask(ds, ["long"], print)
            facet = current_facet()
            after(1, lambda: stop(facet))

    play(boot)
    assert seen == ["given up"]


def test_without_otherwise_it_is_a_crash() -> None:
    """Which names the question."""
    with pytest.raises(NobodyAnswers, match="nobody answers Half"):
        play(lambda: ask(dataspace(), Half(1), print))


def test_several_answer() -> None:
    """The first answer counts, and one of two that crashes is not the end."""
    seen: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        for delay in (1, 2, 3):

            def one(delay: int = delay) -> None:
                @answer(ds, ["who"])
                async def who() -> int:
                    await trio.sleep(delay)
                    if delay == 1:
                        raise ValueError("the first crashes")
                    return delay

            spawn(one)
        after(1, lambda: ask(ds, ["who"], seen.append))

    play(boot)
    assert seen == [2]


def test_over_a_broker() -> None:
    """The same outcomes where each is a program of its own; a lost connection is a crash to who asked."""
    seen: list[Any] = []

    def boot(address: str) -> None:
        @connect(address)
        def answers(ds: Ref) -> None:
            answering(ds)

        @connect(address)
        def asks(ds: Ref) -> None:
            def first() -> None:
                ask(ds, Half(42), seen.append, seen.append)
                ask(ds, Half(7), seen.append, lambda failure: [seen.append(str(failure)), stop_actor()])

            after(0.5, first)

    with server() as address:
        run(boot, address)
    assert sorted(map(str, seen)) == ["21", "7 is odd"]


def test_mistakes() -> None:
    """A function that takes other things than the pattern captures is reported where it is given."""
    with pytest.raises(NotCallable):
        play(lambda: answer(dataspace(), Half(capture()))(lambda: 1))


# ---------------------------------------------------------------------------------------------------- services


def test_start_in_order_and_on_demand() -> None:
    """What is needed starts first, what nobody needs not at all; all stop when nobody needs them any more."""
    seen: list[str] = []

    def boot() -> None:
        ds = dataspace()

        def starting(name: str) -> Callable[..., str]:
            def start(*objects: str) -> str:
                seen.append(f"{name}({', '.join(objects)})")
                on_stop(lambda: seen.append(f"-{name}"))
                return name

            return start

        def programs() -> None:
            provide(ds, "site", ["search", "db"], start=starting("site"))
            provide(ds, "search", ["db"], start=starting("search"))
            provide(ds, "db", start=starting("db"))
            provide(ds, "idle", start=starting("idle"))
            prevent_inert_check()
            after(20, stop_actor)

        spawn(programs)

        def user() -> None:
            @require(ds, "site")
            def site(thing: str) -> None:
                seen.append(f"use {thing}")

            after(5, stop_actor)

        after(1, lambda: spawn(user))

    play(boot)
    assert seen[:4] == ["db()", "search(db)", "site(search, db)", "use site"]
    assert sorted(seen[4:]) == ["-db", "-search", "-site"]


def test_a_need_that_goes_and_comes() -> None:
    """Those who need it stop, and start again with it; their state can be seen."""
    seen: list[str] = []

    def boot() -> None:
        ds = dataspace()
        during(ds, ServiceState("site", capture()))(lambda state: seen.append(str(state)))

        def db(seconds: float) -> None:
            provide(ds, "db", start=lambda: "db")
            after(seconds, stop_actor)

        spawn(lambda: [provide(ds, "site", ["db"], start=lambda db: "site", always=True), after(9, stop_actor)])
        spawn(db, 2)
        after(4, lambda: spawn(db, 2))

    play(boot)
    assert seen == ["started", "ready", "started", "ready"]


def test_a_circle_is_named() -> None:
    """Whoever closes it."""

    def boot() -> None:
        ds = dataspace()
        for name, need in (("a", "b"), ("b", "c"), ("c", "a")):
            provide(ds, name, [need], start=lambda thing: thing)
        during(ds, DependsOn("a", "b"))(lambda: None)

    with pytest.raises(ServiceCycle, match="a needs b needs c needs a"):
        play(boot)


@pytest.mark.parametrize("together", [False, True])
def test_needs_that_have_gone_close_no_circle(together: bool) -> None:
    """Whoever provides a service, in the same turn or later, may need what the one before did not."""
    got: list[object] = []

    def boot() -> None:
        ds = dataspace()
        provide(ds, "a", ["b"], start=lambda b: f"a on {b}")

        @react
        def before() -> None:
            provide(ds, "b", ["c"], start=lambda c: f"b on {c}")

        def instead() -> None:
            provide(ds, "b", start=lambda: "b")
            provide(ds, "c", ["a"], start=lambda a: f"c on {a}")
            require(ds, "c")(got.append)

        after(1, lambda: stop(before, instead if together else None))
        after(2, int if together else instead)
        after(3, stop_actor)

    play(boot)
    assert got == ["c on a on b"]


def test_what_is_not_there_is_said(logs: list[Any]) -> None:
    """After five seconds, once, by name."""

    def boot() -> None:
        require(dataspace(), "nowhere")(print)
        after(20, stop_actor)

    play(boot)
    assert [(entry["event"], entry["service"]) for entry in logs] == [("a service is not there", "nowhere")]
