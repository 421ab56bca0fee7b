"""Where kernels run, a circuit begins in dictionaries, and goes over to tables of words when that pays."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, cast

import pytest

import syndicate.flow.local_engine
import syndicate.flow.loop
from syndicate import native
from syndicate.flow import Circuit, Stream, rearranges
from syndicate.flow.local_engine import FEW_GIVEN, SOME_ROWS
from syndicate.flow.loop import FEW_DERIVED
from syndicate.flow.row_expression import RowExpression, expressed
from syndicate.flow.word_circuit import tabular
from tests.syndicate.flow.circuits import two_sources
from tests.syndicate.flow.test_columnar import first, second
from tests.syndicate.flow.test_word_tables import join, takes_one_call

pytestmark = pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """When they are made for users."""
    monkeypatch.setattr(syndicate.flow.local_engine, "SOME_ROWS", SOME_ROWS)
    monkeypatch.setattr(syndicate.flow.loop, "FEW_DERIVED", FEW_DERIVED)


def in_tables(c: Circuit) -> bool:
    """Whether a circuit has gone over."""
    return c.engine.tables is not None


def pairs(count: int, start: int = 0) -> dict[tuple[int, int], int]:
    """So many pairs."""
    return {(number % 7, number): 1 for number in range(start, start + count)}


def test_a_large_change_makes_tables_at_once() -> None:
    """Of several sources together; a small one does not."""
    for left, right in ((FEW_GIVEN, 0), (FEW_GIVEN // 2, FEW_GIVEN // 2), (FEW_GIVEN + 1, 0), (FEW_GIVEN, 1)):
        c = join()
        c.step({"a": pairs(left), "b": pairs(right)})
        assert in_tables(c) is (left + right > FEW_GIVEN)


def test_many_small_changes_make_tables_in_the_end() -> None:
    """What was kept before is joined as before, and a step is one call where it can be."""
    c, by_rows = join(), join()
    by_rows.engine.row_budget = inf
    steps = [{"ab"[n % 2]: pairs(10, n * 10)} for n in range(SOME_ROWS // 10 + 3)]
    gone = 0
    for step in steps:
        assert dict(c.step(step)["out"].items()) == dict(by_rows.step(step)["out"].items())
        gone += in_tables(c)
    assert gone == 3
    assert takes_one_call(c)
    assert not in_tables(by_rows)


def test_a_source_that_has_given_all_before_is_known() -> None:
    """A few rows that never change, behind a set, beside a stream that goes on: a step is one call in the end."""
    c, a, b = two_sources()
    names = a.distinct().index_with(first, second)
    c.sink("out", names.join(b.index_with(first, second), rearranges(lambda _, name, value: (name, value))))
    c.step({"a": {(1, "one"): 1, (2, "two"): 1}})
    for number in range(2 * SOME_ROWS):
        out = c.step({"b": {(1 + number % 2, number): 1}})["out"]
        assert dict(out.items()) == {(("one", "two")[number % 2], number): 1}
    assert takes_one_call(c)


def same(stream: Stream) -> Stream:
    """The stream."""
    return stream


def numbers(
    limit: int, *, before: Callable[[Stream], Stream] = same, after: Callable[[Stream], Stream] = same
) -> Circuit:
    """From one number, all up to a limit; with something *before* and *after* the loop."""
    c = Circuit()
    start = before(c.source("a"))
    more = expressed(lambda row: (row[0] + 1,), RowExpression("row", (("+", ("part", 0), [1]),)))
    small = expressed(lambda row: row[0] < limit, RowExpression("test", (("<", ("part", 0), [limit]),)))
    c.sink("out", after(c.recursive(lambda r: start + r.filter(small).map(more))))
    return c


class ReadOnce:
    """Elements that know their number, and are gone when they have been read."""

    def __init__(self, elements: list[Any]) -> None:
        self.count = len(elements)
        self.left = iter(elements)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return self.left


@pytest.mark.parametrize("kind", [list, set, deque, dict.fromkeys, iter, ReadOnce])
def test_whatever_a_step_is_given_counts_when_it_is_taken_again(kind: Callable[[list[Any]], Any]) -> None:
    """In a mapping each element has a weight."""
    c = numbers(2000)
    change = kind([(0,), (1000,)])
    if isinstance(change, dict):
        change = dict.fromkeys(change, 1)
    assert len(c.step({"a": change})["out"]) == 2001
    assert in_tables(c)


@pytest.mark.parametrize("place", ["before", "after", "in a loop before"])
def test_who_inspects_sees_each_tick_once(place: str) -> None:
    """Also if the step outgrows dictionaries: it is for what it does that a callback is there."""
    seen: list[int] = []

    def inspected(stream: Stream) -> Stream:
        return stream.inspect(lambda batch: seen.append(len(batch)))

    def looped(stream: Stream) -> Stream:
        loop = cast(Circuit, stream.circuit)
        return loop.recursive(lambda r: stream + inspected(r))

    c = {
        "before": lambda: numbers(2000, before=inspected),
        "after": lambda: numbers(2000, after=inspected),
        "in a loop before": lambda: numbers(2000, before=looped),
    }[place]()
    for number in (1990, 0, 5):
        c.step({"a": {(number,): 1}})
    assert seen == {"before": [1, 1, 1], "after": [11, 1990, 0], "in a loop before": [0, 1] * 3}[place]


def test_a_loop_that_grows_makes_tables_in_its_step() -> None:
    """From one row: the step begins again, and gives what it gives by rows; a small loop makes none."""
    for limit in (10, 2000):
        c = numbers(limit)
        asked: list[int] = []
        c.engine.inspect = lambda _, asked=asked: asked.append(1)
        assert dict(c.step({"a": {(0,): 1}})["out"].items()) == {(number,): 1 for number in range(limit + 1)}
        assert in_tables(c) is (limit > 10)
        assert asked == [1]
        assert c.engine.epoch == 1


def test_an_iterator_is_read_once() -> None:
    """Nobody knows how much it gives, so there are tables at once, and the step never begins again."""
    c = numbers(2000)
    assert len(c.step({"a": iter([(0,)])})["out"]) == 2001
    assert in_tables(c)


def test_a_step_that_fails_has_made_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends the making of them; the next step makes them."""
    c = join()
    c.step({"a": pairs(9), "b": pairs(9)})
    steps = list(c.engine.root.steps)

    def ended(*arguments: Any) -> Any:
        tabular(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(syndicate.flow.local_engine, "tabular", ended)
        with pytest.raises(KeyboardInterrupt):
            c.step({"a": pairs(FEW_GIVEN + 1, 100)})
    c.engine.recover()
    assert not in_tables(c)
    assert c.engine.root.steps == steps
    assert len(c.step({"a": {(7, 7): 1}, "b": {(7, 8): 1}})["out"]) == 1
    c.step({"a": pairs(FEW_GIVEN + 1, 100)})
    assert in_tables(c)


def test_where_tables_gain_nothing_there_are_none() -> None:
    """Nor is it asked again."""
    c = Circuit()
    c.sink("out", c.source("a").map(lambda pair: pair[1]))
    c.step({"a": pairs(FEW_GIVEN + 1)})
    assert not in_tables(c)
    assert c.engine.row_budget == inf
