"""Bugs that a review found, each as the smallest program that showed it."""

from __future__ import annotations

import threading
import time

import pytest

from syndicate import (
    ANY,
    Observe,
    after,
    assert_,
    capture,
    dataflow,
    dataspace,
    field,
    on_asserted,
    on_message,
    prevent_inert_check,
    query_count,
    react,
    record,
    run,
    spawn,
    stop_actor,
    sync,
)
from syndicate.errors import SyndicateError
from syndicate.verbs import current_facet


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
    """Captures told to a dataspace are sequences in it, and go again."""
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
    """A key function that answers otherwise later leaves no negative count."""
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
