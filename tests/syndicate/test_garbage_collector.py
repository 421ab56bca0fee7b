"""The garbage collector rests and looks rarely for as long as somebody asks, and is as it was afterwards."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

import relay
import syndicate
from syndicate.garbage_collector import CollectorPause, ready, seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Whatever a test leaves."""
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.set_threshold(*thresholds)


def test_one_module_switches_it() -> None:
    """No other module of the two packages does; to look at what it holds is another matter."""
    switch = re.compile(
        r"\bgc\.(enable|disable|set_threshold|freeze|unfreeze|collect|callbacks)\b|^\s*from gc\b", re.MULTILINE
    )
    users = {
        path.name
        for package in (syndicate, relay)
        for path in Path(package.__file__ or "").parent.rglob("*.py")
        if switch.search(path.read_text())
    }
    assert users == {"garbage_collector.py"}


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize("ends", list(permutations(range(3))))
def test_pauses_end_in_any_order(works: bool, ends: tuple[int, ...]) -> None:
    """They overlap; after the last the collector works if it did before the first, and one end more does nothing."""
    if not works:
        gc.disable()
    pauses = [CollectorPause() for _ in range(3)]
    for pause in pauses:
        pause.__enter__()
        assert not gc.isenabled()
    for count, number in enumerate(ends, 1):
        pauses[number].end()
        pauses[number].end()
        assert gc.isenabled() is (works and count == 3)
    assert gc.isenabled() is works
    with CollectorPause():
        assert not gc.isenabled()
    assert gc.isenabled() is works


def test_a_pause_ends_with_an_error() -> None:
    """As with anything else."""
    pause = CollectorPause()
    for _ in range(2):
        with pytest.raises(KeyError), pause:
            raise KeyError
        assert gc.isenabled()


def test_pauses_of_threads() -> None:
    """Many threads pause it again and again; then it works."""

    def work() -> None:
        for _ in range(2000):
            with CollectorPause():
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()


@pytest.mark.usefixtures("thawed")
@pytest.mark.parametrize("ageing", [False, True])
def test_what_is_much_is_old(ageing: bool) -> None:
    """With ageing, what a block made is in the oldest generation; else it waits to be walked."""
    with CollectorPause(ageing=ageing):
        survivors = [[number] for number in range(50_000)]
    old = {id(one) for one in gc.get_objects(generation=2)}
    assert (sum(id(one) in old for one in survivors) == len(survivors)) is ageing
    assert not gc.get_freeze_count()


@pytest.mark.parametrize("sweeping", [False, True])
def test_what_is_left_is_swept(sweeping: bool) -> None:
    """With sweeping, cycles that a block has left are gone at its end, and with a collector at rest they stay."""

    class Node:
        """One of a cycle."""

    def leave() -> weakref.ref[Node]:
        node = Node()
        node.__dict__["itself"] = node
        return weakref.ref(node)

    gc.collect()
    with CollectorPause(sweeping=sweeping):
        left = [leave() for _ in range(10)]
    assert all(each() is None for each in left) is sweeping
    gc.disable()
    with CollectorPause(sweeping=True):
        left = [leave() for _ in range(10)]
    assert all(each() is not None for each in left)


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.myself = self


def test_what_outlasts_its_sweep_is_swept_later() -> None:
    """Work that is done again and again, and of which each time the last is still in use when it is swept: what is left
    of all of it has a bound.
    """
    last: list[Cycle] = []
    left: weakref.WeakSet[Cycle] = weakref.WeakSet()
    most = 0
    for _ in range(500):
        with CollectorPause(sweeping=True):
            last[:] = [Cycle()]
            left.add(last[0])
        most = max(most, len(left))
    assert most < 200


@pytest.mark.parametrize("first", [True, False])
def test_the_most_that_is_asked_for_counts(first: bool) -> None:
    """Systems and batches overlap in any order."""
    gc.set_threshold(700, 11, 12)
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(seldom(10_000))
        assert gc.get_threshold() == (10_000, 11, 12)
        other.enter_context(seldom(200_000))
        assert gc.get_threshold() == (200_000, 11, 12)
        (one if first else other).close()
        assert gc.get_threshold() == (200_000 if first else 10_000, 11, 12)
    assert gc.get_threshold() == (700, 11, 12)


def test_what_the_program_has_set_holds() -> None:
    """Off stays off, more stays more, and what it sets meanwhile is what it finds afterwards."""
    for thresholds in ((0, 11, 12), (50_000, 11, 12)):
        gc.set_threshold(*thresholds)
        with seldom(10_000):
            assert gc.get_threshold() == thresholds
        assert gc.get_threshold() == thresholds
    with seldom(10_000):
        gc.set_threshold(300, 1, 2)
        with seldom(20_000):
            assert gc.get_threshold() == (20_000, 1, 2)
        assert gc.get_threshold() == (10_000, 1, 2)
    assert gc.get_threshold() == (300, 1, 2)


@pytest.mark.usefixtures("thawed")
def test_who_is_ready_does_not_wait_for_the_collector() -> None:
    """However much comes and stays, each look walks twice as many objects at most, but for one in a thousand."""
    looks: list[tuple[int, int]] = []

    def look(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            generation = about["generation"]
            looks.append((generation, sum(len(gc.get_objects(each)) for each in range(generation + 1))))

    ready(500)
    gc.callbacks.append(look)
    try:
        stays = [[number] for number in range(200_000)]
    finally:
        gc.callbacks.remove(look)
    assert len(stays) == 200_000
    assert len(looks) > 300
    assert {generation for generation, _ in looks} == {0, 1}
    assert max(count for _, count in looks) < 2.2 * 500
