"""What a plan is made of is written alike in each process, so that a snapshot fits the plan that is built there."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest

from syndicate import record
from syndicate.flow.structure import structure
from syndicate.lattice import Max, Set
from syndicate.plan import (
    Agg,
    Call,
    Compare,
    Const,
    Expression,
    FlatMap,
    GroupBy,
    Holds,
    Literal,
    Program,
    Projection,
    Selection,
    Union,
    aggregates,
)
from syndicate.plan import (
    Map as MapRows,
)
from syndicate.values.value import Dictionary, ValueSet
from tests.hashes import printed

WORDS = frozenset({"alpha", "beta", "gamma", "delta", "epsilon"})


@record
class Named:
    """A constant with a set in it."""

    name: str
    words: Any


class Caller:
    """What is called and has no name."""

    def __call__(self, *values: Any) -> Any:
        """The last."""
        return values[-1]

    def called(self, value: Any) -> Any:
        """It."""
        return value


def last(*values: Any) -> Any:
    """A function."""
    return values[-1]


CONSTANTS: tuple[Any, ...] = (
    WORDS, (1, WORDS), Named("a", WORDS), frozenset({WORDS, "zeta"}), ValueSet(WORDS), Dictionary(dict.fromkeys(WORDS)),
    Set(WORDS), 1, 1.0, "a", b"a", None,
)  # fmt: skip
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    last, functools.partial(last, 1), functools.partial(Caller().called, WORDS), Caller(), Caller().called, len,
    operator.itemgetter(0), operator.methodcaller("strip"), functools.lru_cache(last), lambda value: value,
)  # fmt: skip
USES: dict[str, Callable[[Expression, Any], Expression]] = {
    "call": lambda edge, function: Projection(edge, ["a", ("b", Call(function, "b"))]),
    "test": lambda edge, function: Selection(edge, Holds(function, "b")),
    "each": lambda edge, function: MapRows(edge, ("a", "b"), function),
    "several": lambda edge, function: FlatMap(edge, ("a", "b"), function),
    "fold": lambda edge, function: GroupBy(edge, ("a",), {"b": Agg(aggregates.user(function), "b")}),
    "sum": lambda edge, function: GroupBy(edge, ("a",), {"b": Agg(aggregates.linear(function, WORDS), "b")}),
    "measure": lambda edge, function: GroupBy(edge, ("a",), {"b": Agg(aggregates.min(function), "b")}),
    "morphism": lambda edge, function: Projection(
        GroupBy(edge, ("a",), {"s": Agg(Set, "b")}), ["a", ("b", Call(Set.project, "s", Const(function)))]
    ),
    "threshold": lambda edge, function: Selection(
        GroupBy(edge, ("a",), {"b": Agg(Max, Call(function, "b"))}), Holds(Max.gt_eq, "b", Const(3))
    ),
}
HOLDS: dict[str, Callable[[Expression, Any], Expression]] = {
    "value": lambda edge, value: Projection(edge, ["a", ("b", Const(value))]),
    "comparison": lambda edge, value: Selection(edge, Compare("b", "==", Const(value))),
    "rows": lambda edge, value: Union(edge, Literal(("a", "b"), [(1, value)])),
}


def written() -> list[str]:
    """The structure of plans with each function, wherever one may be, and with each constant."""
    lines = []
    for uses, values in ((USES, FUNCTIONS), (HOLDS, CONSTANTS)):
        for use, make in uses.items():
            for value in values:
                program = Program()
                program.rule("out", make(program.edb("edge", "a", "b"), value))
                lines += [f"{use}: {line}" for line in structure(program.plan().circuit)]
    return lines


def test_a_plan_is_written_alike_in_each_process() -> None:
    """Whatever functions and constants are in it: no address, and no order of a set, is in what is written."""
    program = "from tests.syndicate.plan.test_structure import written; print(*written(), sep='\\n')"
    one, other = [printed(hashes, "-c", program).splitlines() for hashes in (1, 2)]
    assert len(one) > 400
    assert one == other


@pytest.mark.parametrize("use", HOLDS)
def test_other_constants_are_other_plans(use: str) -> None:
    """Also where they differ by a type, or within a set."""
    node = {"value": "map", "comparison": "filter", "rows": "constant"}[use]
    lines = [line for line in written() if line.startswith(f"{use}: ") and f" {node}" in line]
    assert len({line.partition(" ")[2] for line in lines}) == len(CONSTANTS)
