"""Two orders: each schedule that is reported is one after which a program is as it says, and what is confluent has
none.
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, channel, lmax, table
from syndicate.bloom.insight.orders import Schedule, give, search_orders
from syndicate.errors import Unstratifiable
from syndicate.flow.element import natural
from tests.syndicate.bloom.insight.test_calm import (
    CHANNELS,
    SCRATCHES,
    TABLES,
    DestructiveCart,
    DisorderlyCart,
    FirstCome,
    random_program,
)
from tests.work import PATIENCE


def ends(kind: type[Any], schedule: Schedule, name: str) -> set[str]:
    """A run by hand: the rows that a table has in the end, or that a channel was sent."""
    program = kind(address="localhost")
    for tick in schedule:
        for message in tick:
            give(program, message)
        program.run()
    sent = [row for _, into, row in program.sent if into == name]
    rows = sent if name == "response" else [natural(tuple(row)) for row in program.collection(name)]
    return {f"({', '.join(map(str, row))})" for row in rows}


@pytest.mark.parametrize(
    ("kind", "name", "most"), [(DestructiveCart, "cart", 2), (DisorderlyCart, "response", 2), (FirstCome, "winner", 2)]
)
def test_what_is_reported_happens(kind: type[Any], name: str, most: int) -> None:
    """The schedules have the same messages, few of them, and end as is said, differently."""
    result = search_orders(kind, [name], seconds=PATIENCE)[name]
    one, other = (sorted(str(message) for tick in each for message in tick) for each in (result.first, result.second))
    assert (set(one) == set(other), len(one) <= most) == (True, True)
    assert result.again or one == other
    assert set(result.ends[0]) != set(result.ends[1])
    for schedule, end in zip((result.first, result.second), result.ends, strict=True):
        assert ends(kind, schedule, name) == set(end)


def test_random_programs() -> None:
    """What CALM calls confluent has no two orders; of the rest some have, and what is found is minimal in messages."""
    shown = looked = 0
    for seed in range(14):
        kind = random_program(random.Random(seed))
        try:
            calm = kind(address="n0").calm()
        except Unstratifiable:
            continue
        names = [*TABLES, *SCRATCHES, *CHANNELS]
        result = search_orders(partial(kind, address="n0"), names, messages=2, inputs=12, seconds=PATIENCE).divergences
        assert not [name for name in result if calm[name].confluent], f"{result}\n{calm}"
        shown += any(calm[name].verdict == "diffluent" for name in result)
        looked += 1
    assert (looked > 8, shown > 0) == (True, True)


def test_nothing_is_found_where_all_orders_are_alike() -> None:
    """And it is said how far was looked; inputs that are no input are left out."""

    class Growing(Bloom):
        c = channel(["@to", "k"], ["v"], v=lmax)
        t = table(["k"], ["v"], v=lmax)
        single = table([], ["k"])

        @bloom
        def rules(self) -> None:
            self.t <= self.c.payloads()
            self.single <= self.c.map(lambda c: (c.k,))

    search = search_orders(Growing, ["t"], messages=2, inputs=30)
    assert (search.divergences, search.messages) == ({}, 2)
    assert search.refused > 0
    assert "runs with" in search.effort


def test_coordination() -> None:
    """What would remove a point: an order, a seal, or a decision."""
    coordination = {kind.__name__: [point.coordination for point in kind().calm().points] for kind in (
        DestructiveCart, DisorderlyCart, FirstCome
    )}  # fmt: skip
    names = {name: [one and one[0] for one in points] for name, points in coordination.items()}
    assert names == {
        "DestructiveCart": ["sequencing", "sequencing"],
        "DisorderlyCart": ["sealing", "sequencing"],
        "FirstCome": ["sequencing", "consensus"],
    }
