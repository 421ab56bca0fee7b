"""Random worlds: faults of all kinds with their bounds and costs, and who decides what rules choose.

What one of them says is what :meth:`Program.verify` is asked, besides the specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define
from hypothesis import strategies as st

from syndicate.dedalus.ast import Value
from syndicate.dedalus.verify.faults import CHOICE, Choices, NumberedFaults
from tests.syndicate.dedalus.verify.senders import NODES

KINDS = {
    "eff": "drop",
    "late": "late",
    "again": "again",
    "crashes": "crash",
    "stops": "stop",
    "restarts": "restart",
    "pauses": "pause",
    "partitions": "partition",
}
"""What bounds the faults of each kind."""


@st.composite
def worlds(draw: st.DrawFn, *, most: int = 3) -> dict[str, Any]:
    """Faults of up to *most* kinds, in a run of three timesteps or four, some of them dearer than others."""
    kinds = draw(st.lists(st.sampled_from([*KINDS]), max_size=most, unique=True))
    highest = 2 if len(kinds) < 2 else 1
    asked: dict[str, Any] = {"eot": 3 if kinds else draw(st.sampled_from([3, 4])), "eff": 0}
    asked |= {kind: draw(st.integers(1, highest)) + (kind == "eff") for kind in kinds}
    dear = draw(st.lists(st.sampled_from(kinds), max_size=2, unique=True)) if kinds else []
    costs = {KINDS[kind]: draw(st.integers(2, 3)) for kind in dear}
    return {**asked, "costs": costs} if costs else asked


@st.composite
def deciders(draw: st.DrawFn, *, chance: bool = True) -> dict[str, Any]:
    """An adversary who is free or pays, or may decide a few choices against those of a seed; a seed alone; *chance*."""
    seed = draw(st.sampled_from([0, 3, 7]))
    some, cost = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    costs = {"costs": {CHOICE: cost}}
    asked: list[dict[str, Any]] = [
        {},
        {"seed": seed},
        {"choices": some},
        {"seed": seed, **costs},
        {"seed": seed, "choices": some, **costs},
        {"choose": "chance"},
    ]
    return draw(st.sampled_from(asked if chance else asked[:-1]))


def joined(world: dict[str, Any], decider: dict[str, Any]) -> dict[str, Any]:
    """The question of both."""
    costs = {**world.get("costs", {}), **decider.get("costs", {})}
    return {"nodes": NODES, **world, **decider, **({"costs": costs} if costs else {})}


@define(eq=False)
class EverySide(NumberedFaults):
    """Faults with a partition for each set of nodes that something can be said to be on the other side of."""

    def sides(self) -> Iterator[tuple[Value, ...]]:
        for mask in range(1, 1 << len(self.nodes)):
            yield tuple(node for place, node in enumerate(self.nodes) if mask >> place & 1)


def numbered(world: dict[str, Any], decider: dict[str, Any]) -> EverySide:
    """The faults and choices of both, for the oracle."""
    costs = {**world.get("costs", {}), **decider.get("costs", {})}
    seed, most, cost = decider.get("seed"), decider.get("choices"), costs.get(CHOICE, 0)
    choices = Choices(seed, 0 if seed is not None and most is None and not cost else most, cost)
    rest = {name: value for name, value in world.items() if name != "costs"}
    return EverySide(NODES, start=1, **{"crashes": 0, **rest}, costs=costs, choices=choices)
