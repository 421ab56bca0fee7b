"""Bugs that a review found, each as the smallest program that showed it."""

from __future__ import annotations

import threading
import time
from typing import Any

import attrs
import pytest
import trio

from syndicate import (
    ANY,
    Field,
    Observe,
    Record,
    Symbol,
    after,
    assert_,
    capture,
    dataflow,
    dataspace,
    during,
    field,
    linked_task,
    on_asserted,
    on_message,
    open_system,
    prevent_inert_check,
    query_count,
    react,
    record,
    run,
    spawn,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.verbs import current_facet
from syndicate.errors import NotAValue, PatternError, SyndicateError
from syndicate.values import depth
from syndicate.values.pattern import decode, match
from syndicate.values.value import freeze, identical, thaw
from tests.work import PATIENCE, calls


@record
class P:
    value: object


def test_a_call_from_a_thread_that_has_ended_is_not_lost() -> None:
    """What a thread scheduled before its end is run, although nothing else keeps the system."""
    seen: list[str] = []

    def boot() -> None:
        on_message(dataspace(), P(capture()))(lambda value: None)
        facet = current_facet()
        threading.Thread(target=lambda: facet.enter_from_thread(lambda: seen.append("entered"))).start()
        time.sleep(0.05)

    run(boot)
    assert seen == ["entered"]


def test_a_dataspace_may_observe_another() -> None:
    """Captures asserted in a dataspace are sequences in it, and go again."""
    seen: list[object] = []

    def boot() -> None:
        a, b = dataspace("a"), dataspace("b")
        on_asserted(b, [capture()])(lambda value: seen.append(("+", value)))
        assert_(a, Observe(P(capture()), b))
        handle = assert_(a, P(1))

        def gone() -> None:
            handle.retract()
            sync(a, lambda: sync(b, lambda: seen.append("alive")))

        sync(a, lambda: sync(b, gone))

    run(boot)
    assert seen == [("+", 1), "alive"]


def test_others_cannot_cancel_a_timer_or_retract_a_computed_assertion() -> None:
    """An actor that tries crashes alone, and the owner goes on."""
    seen: list[object] = []

    def boot() -> None:
        ds = dataspace()
        value = field(0)
        computed = assert_(ds, lambda: P(value.value))

        def fired() -> None:
            seen.append("fired")
            stop_actor()

        timer = after(0.05, fired)

        def other() -> None:
            for act in (timer.cancel, computed.retract):
                with pytest.raises(SyndicateError, match="that actor only"):
                    act()
            seen.append("refused")

        spawn(other)

    run(boot)
    assert seen == ["refused", "fired"]


def test_a_crash_in_a_deep_tree_ends_one_actor() -> None:
    """A tree of facets deeper than Python's stack costs its own actor and nothing else."""
    seen: list[str] = []

    def deep() -> None:
        prevent_inert_check()

        def grow(left: int) -> None:
            facet = current_facet()
            if left:
                after(0, lambda: react(lambda: grow(left - 1)))
            else:
                facet.enter(stop_actor)
            prevent_inert_check()

        grow(1500)

    def boot() -> None:
        actor = spawn(deep)
        prevent_inert_check()
        here = current_facet()

        def went_on() -> None:
            seen.append("went on")
            stop_actor()

        actor.watchers.append(lambda _: here.enter(went_on))

    run(boot)
    assert seen == ["went on"]


def test_equal_floats_are_no_change() -> None:
    """A block that writes what it reads converges on floats, and -0.0 is another value than 0.0."""
    runs: list[float] = []

    def boot() -> None:
        x = field(0.0)

        @dataflow
        def clamp() -> None:
            runs.append(x.value)
            x.value = min(x.value, 1.0)

        x.value = -0.0

    run(boot)
    assert [str(x) for x in runs] == ["0.0", "-0.0"]


def test_a_count_goes_by_the_key_it_came_with() -> None:
    """A key function that returns another later leaves no negative count."""
    keys = iter("abc")
    left: list[object] = []

    def boot() -> None:
        ds = dataspace()
        counts = query_count(ds, P(capture()), key=lambda value: next(keys))
        handle = assert_(ds, P(1))

        def then() -> None:
            handle.retract()
            sync(ds, lambda: left.append(dict(counts.value)))

        sync(ds, then)

    run(boot)
    assert left == [{}]


def test_field_names_do_not_clash_with_generated_ones() -> None:
    """A record's fields may be called as the generator's own variables once were."""

    @record
    class Odd:
        set0: int
        nothing: int = 2

    assert (Odd(1).set0, Odd(1).nothing) == (1, 2)
    assert Odd(1) == Odd(set0=1, nothing=2)
    assert Odd(ANY) is not None


# ------------------------------------------------------------------------------------------------ the second review


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["handler", "task", "nursery"])
def test_interrupts_come_bare(error: type[BaseException], where: str) -> None:
    """Wherever Ctrl-C strikes, in a nursery of a linked task too, it is what ``run`` and ``open_system`` raise."""

    async def strike() -> None:
        raise error

    async def nested() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(strike)
            await trio.sleep_forever()

    def raises() -> None:
        raise error

    def boot() -> None:
        prevent_inert_check()
        if where == "handler":
            after(0, raises)
        else:
            linked_task(nested if where == "nursery" else strike)

    async def program() -> None:
        async with open_system(boot):
            await trio.sleep_forever()

    with pytest.raises(error):
        run(boot)
    with pytest.raises(error):
        trio.run(program)


async def test_settle_after_the_end() -> None:
    """Once the system has ended nothing is runnable, and whoever waits for that goes on."""
    async with trio.open_nursery() as nursery:
        async with open_system() as system:
            root = system.spawn(prevent_inert_check).root
            nursery.start_soon(system.settle)
        root.enter(lambda: None)  # too late
        with trio.fail_after(PATIENCE):
            await system.settle()


@pytest.mark.parametrize("spawns", [False, True])
def test_during_runs_what_its_function_answers(spawns: bool) -> None:
    """With an actor of its own, too."""
    seen: list[object] = []

    def boot() -> None:
        ds = dataspace()
        during(ds, P(capture()), spawn=spawns)(lambda value: lambda: seen.append(value))
        handle = assert_(ds, P(1))
        after(0.01, handle.retract)
        after(0.02, stop_actor)

    run(boot)
    assert seen == [1]


def test_a_group_is_headed_by_symbols() -> None:
    """A string that reads like one is not one."""
    with pytest.raises(PatternError, match="a group is of"):
        decode(Record("group", [Record.labelled("rec", [Symbol("P")]), {}]))


def test_a_class_with_keyword_only_fields_can_be_captured() -> None:
    """And one that checks its fields, which a pattern's are not."""

    @record
    class Picky:
        name: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))

    assert match(capture(Picky), Picky(name="x")) == (Picky(name="x"),)
    assert match(capture(Picky), Record("Picky", [])) is None


def test_a_stopped_facet_has_no_dataflow() -> None:
    """A block of a facet that has stopped, or that stops its own, is not run by fields any more."""
    runs: list[str] = []
    fields: list[Field[int]] = []

    def boot() -> None:
        value = field(0)
        fields.append(value)

        def late() -> None:
            stop()
            dataflow(lambda: runs.append(f"late {value.value}"))
            assert_(dataspace(), lambda: P(value.value))

        def last() -> None:
            @dataflow
            def own() -> None:
                if not runs:
                    stop()
                runs.append(f"own {value.value}")

        prevent_inert_check()
        react(last)
        react(late)
        after(0.01, lambda: value.set(1))
        after(0.02, stop_actor)

    run(boot)
    assert runs == ["own 0"]
    assert fields[0].readers == {}


def test_doubled_values_are_refused_after_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty doublings have a billion billion leaves; twelve are a value like others.  The work is in proportion to the
    bound, of which a fiftieth is tried.
    """

    def doubled(times: int, wide: int = 2) -> object:
        value: object = [0]
        for _ in range(times):
            value = [value] * wide
        return value

    assert len(freeze(doubled(12))) == 3

    def refused(value: object) -> None:
        with pytest.raises(NotAValue, match="again and again"):
            freeze(value)

    bound = depth.MAX_NODES // 50
    assert bound <= 20_000
    monkeypatch.setattr(depth, "MAX_NODES", bound)
    for value in ({"a": doubled(60)}, P(doubled(4, 1000))):
        assert calls(lambda value=value: refused(value)) < 20 * bound  # type: ignore[misc]


def test_none_in_a_record_names_the_field() -> None:
    """The one that is None."""
    with pytest.raises(NotAValue, match="the field 'value' of P is None"):
        freeze(P(None))
    with pytest.raises(NotAValue, match="the field 'value' of P is None"):
        freeze([P(P(None))])


def test_a_class_that_replaces_another_says_so() -> None:
    """Where two record classes share label and arity the newest is made, and explains the other's names."""

    @record("clash")
    class Old:
        name: str

    @record("clash")
    class New:
        number: int

    value: Any = thaw(freeze(Old("x")))
    assert type(value) is New
    assert identical(value, Old("x"))
    with pytest.raises(AttributeError, match=r"'New' object has no attribute 'name'.*Old\(name\)"):
        _ = value.name  # type: ignore[attr-defined]
    assert not hasattr(New(1), "other")
