"""Pages of a state in a store of this process, beside the local engine: of many micro-batches few write a page."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from syndicate.flow import Circuit, aggregates
from syndicate.flow.zset import IndexedZSet, ZSet
from syndicate.spark.engine import worker_process
from syndicate.spark.engine.rows import items_of, table_of
from syndicate.spark.engine.shape import ANY, Layout
from syndicate.spark.engine.state_pages import (
    SUMS,
    PagedDistinct,
    PagedGroups,
    PagedInput,
    PagedJoin,
    PagedOperator,
    PagedState,
    PagedSums,
    from_bytes,
    to_bytes,
)
from syndicate.spark.engine.workers import Called, Groups

first, second = itemgetter(0), itemgetter(1)
KEYED = Layout("long", "long")


class Stored:
    """A value of a store."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None
        self.writes = 0

    def get(self) -> tuple[bytes] | None:
        """The value."""
        return self.value

    def update(self, value: tuple[bytes]) -> None:
        """Another."""
        self.value, self.writes = value, self.writes + 1

    def clear(self) -> None:
        """None."""
        self.value = None


class Handle:
    """What gives values of a store."""

    def __init__(self) -> None:
        self.values: dict[str, Stored] = {}

    def getValueState(self, name: str, schema: str) -> Stored:  # noqa: N802  # Spark's name
        """A value."""
        return self.values.setdefault(name, Stored())


class Given:
    """A row as Spark gives it."""

    def __init__(self, side: int, rows: bytes) -> None:
        self.side, self.rows = side, rows


def distinct(c: Circuit) -> tuple[PagedOperator, list[PagedInput], Layout]:
    """Each pair once."""
    layout = Layout(("long", "long"))
    c.sink("out", c.source("a").distinct())
    return PagedDistinct(layout), [PagedInput(layout)], layout


def aggregate(c: Circuit, form: str) -> tuple[PagedOperator, list[PagedInput], Layout]:
    """An aggregate of values by key."""
    stream = c.source("a").index_with(first, second).aggregate(getattr(aggregates, form))
    c.sink("out", stream)
    (node,) = (node for node in c.walk() if node.op == "aggregate")
    out = Layout(("long", {"count": "long", "sum": "long", "avg": "double"}.get(form, ANY)))
    groups = Groups(Called.of(node), (), KEYED, node.params["aggregate"], False, out)
    if form in ("count", "sum", "avg"):
        return PagedSums(KEYED, groups, form), [PagedInput(KEYED, SUMS)], out
    return PagedGroups(KEYED, groups), [PagedInput(KEYED)], out


def join(c: Circuit) -> tuple[PagedOperator, list[PagedInput], Layout]:
    """Two inputs by key."""
    a, b = (c.source(name).index_with(first, second) for name in "ab")
    c.sink("out", a.join(b, lambda key, x, y: (key, x, y)))
    return PagedJoin(KEYED, KEYED), [PagedInput(KEYED), PagedInput(KEYED)], Layout(("long", "long", "long"))


OPERATORS: dict[str, Callable[[Circuit], tuple[PagedOperator, list[PagedInput], Layout]]] = {
    "distinct": distinct,
    "join": join,
    **{form: partial(aggregate, form=form) for form in ("count", "sum", "avg", "min", "max")},
}


def table(rows: dict[tuple[int, int], int], side: PagedInput) -> Any:
    """What is packed of some rows."""
    import pyarrow as pa

    weights = list(rows.values())
    if side.weights == ("w",):
        return table_of(list(rows), weights, side.layout)
    keys = [key for key, _ in rows]
    sums = [value * weight for (_, value), weight in rows.items()]
    return side.added(pa.table({"k0": pa.array(keys), "w": pa.array(weights), "s": pa.array(sums)}))


@pytest.fixture
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process.worker, "tasks", 2)  # what was imported here is not set aside


@pytest.mark.usefixtures("_no_worker")
@pytest.mark.parametrize("name", OPERATORS)
def test_pages_change_as_the_local_engine_does(name: str) -> None:
    """Rows come and go, also such as are not there; what is recent and the page are one state."""
    chance, circuit = random.Random(name), Circuit()
    paged, sides, out = OPERATORS[name](circuit)
    state = PagedState(paged, sides, "mark", ())
    handle = Handle()
    state.init(handle)  # type: ignore[arg-type]  # as much of one as is asked
    for number in range(60):
        size = 2000 if number == 0 else chance.choice((1, 3, 10, 60))
        deltas: dict[str, dict[tuple[int, int], int]] = {}
        for source in circuit.sources:
            if chance.random() < 0.8 or number == 0:
                pairs = ((chance.randrange(300), chance.randrange(12)) for _ in range(size))
                deltas[source] = {pair: chance.choice((1, 1, 1, 2, -1, -1)) for pair in pairs}
        rows = [
            Given(side, to_bytes(table(deltas[source], sides[side])))
            for side, source in enumerate(circuit.sources)
            if source in deltas
        ]
        tables = [from_bytes(row.rows) for row in state.handleInputRows((0,), rows, None)]  # type: ignore[arg-type]
        changes = [items_of(table.rename_columns([*out.columns, "w"]), out) for table in tables]
        wanted = circuit.step(deltas)["out"]
        total = ZSet(pair for items in changes for pair in items)
        assert total == (ZSet(wanted.items()) if isinstance(wanted, IndexedZSet) else wanted), number
    for side in range(len(sides)):
        assert 0 < handle.values[f"side{side}"].writes < handle.values[f"recent{side}"].writes
