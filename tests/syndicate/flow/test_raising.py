"""User code that raises in the middle of an operator: the circuit stays at the last good step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from syndicate.errors import StepFailed, SyndicateError
from syndicate.flow import Circuit, Stream
from syndicate.flow import aggregates as agg
from tests.syndicate.flow.circuits import two_sources
from tests.syndicate.flow.oracle import bag_of


class Touchy:
    """A value whose comparison raises at one number, while it is armed."""

    armed: ClassVar[int | None] = None

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return hash(("Touchy", self.number))

    def __eq__(self, other: object) -> bool:
        if Touchy.armed == self.number:
            raise ZeroDivisionError("touched")
        return isinstance(other, Touchy) and other.number == self.number

    def __repr__(self) -> str:
        return f"Touchy({self.number})"


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """No test leaves it armed."""
    yield
    Touchy.armed = None


def first(pair: Any) -> Any:
    """The key."""
    return pair[0]


def second(pair: Any) -> Any:
    """The value."""
    return pair[1]


def ends(key: Any, left: Any, right: Any) -> Any:
    """A path of two edges."""
    return (left[0], right[1])


OPERATORS: dict[str, Callable[[Circuit, Stream, Stream], Stream]] = {
    "distinct": lambda c, a, b: (a + b).distinct(),
    "distinct indexed": lambda c, a, b: a.index_with(first).distinct().pairs(),
    "count": lambda c, a, b: a.index_with(first).aggregate(agg.count),
    "sum": lambda c, a, b: a.index_with(first).aggregate(agg.sum(lambda pair: pair[1].number)),
    "min": lambda c, a, b: a.index_with(first).aggregate(agg.min(lambda pair: pair[1].number)).map(second),
    "user": lambda c, a, b: a.index_with(first).aggregate(agg.user(len)),
    "join": lambda c, a, b: a.index_with(second).join(b.index_with(first), ends),
    "antijoin": lambda c, a, b: a.index_with(first).antijoin(b.index_with(second)),
    "integrate": lambda c, a, b: a.integrate(),
    "loop": lambda c, a, b: c.recursive(lambda r: a + r.index_with(second).join(b.index_with(first), ends)),
    "unsteady loop": lambda c, a, b: c.recursive(lambda r: a + r.antijoin(b)),
    "aggregate in a loop": lambda c, a, b: c.recursive(
        lambda r: a + r.index_with(first).aggregate(agg.count).filter(lambda pair: False)
    ),
}


def pairs(numbers: Iterator[int] | range, weight: int = 1) -> dict[Any, int]:
    """New elements, equal to those of the same numbers."""
    return {(Touchy(number), Touchy(number % 3)): weight for number in numbers}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("at", range(4))
def test_a_comparison_that_raises(name: str, at: int) -> None:
    """Whichever element it is at, and whether there is a change of one side or of both."""
    for names in (["a"], ["a", "b"]):
        tried, spared = ((*two_sources(),) for _ in range(2))
        built = []
        for c, a, b in (tried, spared):
            c.sink("out", OPERATORS[name](c, a, b))
            built.append(c)
            c.step({"a": pairs(range(5)), "b": pairs(range(3))})
        bad = [{side: pairs(range(1, 7)) for side in names}, {side: pairs(range(3), -1) for side in names}]
        for delta in bad:
            Touchy.armed = at
            try:
                built[0].step(delta)
            except SyndicateError:
                Touchy.armed = None
            else:
                Touchy.armed = None
                built[1].step(delta)
        for delta in ({"a": pairs(range(2, 9)), "b": pairs(range(1, 4))}, {"a": pairs(range(9), -1)}):
            out = [c.step(delta)["out"] for c in built]
            assert bag_of(out[0]) == bag_of(out[1]), (name, at, names)


def strict(row: Any) -> Any:
    """The row, if its value is a number."""
    if isinstance(row[1], str):
        raise ValueError(row)
    return row


def added(key: Any, left: Any, right: Any) -> Any:
    """The sum of two rows' values."""
    return (key, strict(left)[1] + strict(right)[1])


NAMING: dict[str, Callable[[Stream], Stream]] = {
    "map": lambda a: a.distinct().map(strict),
    "filter": lambda a: a.distinct().filter(strict),
    "flat_map": lambda a: a.distinct().flat_map(lambda row: [strict(row)]),
    "index_with": lambda a: a.distinct().index_with(first, strict).pairs(),
    "sum": lambda a: a.distinct().index_with(first, second).aggregate(agg.sum),
    "join": lambda a: a.index_with(first).join(a.distinct().index_with(first), added),
    "join_stream": lambda a: a.index_with(first).join_stream(a.index_with(first), added),
}


@pytest.mark.parametrize("name", NAMING)
def test_which_element_is_named(name: str) -> None:
    """Of several for which a function raises it is the same one, in whatever order they come, in tables or by rows."""
    good = [(f"k{number}", number) for number in range(20)]
    bad = [("k7", "x"), ("k3", "y"), ("k3", "x"), ("k12", "z")]
    named = set()
    for seed in range(6):
        rows = [*good[10:], *bad]
        random.Random(seed).shuffle(rows)
        c = Circuit()
        c.sink("out", NAMING[name](c.source("a")))
        if seed % 2 and c.engine.tables is not None:
            c.engine.tables.end()
            c.engine.tables = None
        c.step({"a": good[:10]})
        with pytest.raises(StepFailed) as caught:
            c.step({"a": rows})
        assert caught.value.element
        named.add((caught.value.element, caught.value.reason, str(caught.value.__cause__)))
    assert len(named) == 1
