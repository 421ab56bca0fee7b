# mypy: disable-error-code="func-returns-value, misc"

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from syndicate import (
    Field,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    field,
    on_message,
    on_stop,
    prevent_inert_check,
    query_set,
    react,
    send,
    stop,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import system_of
from syndicate.testing import Seen, settled, watch
from tests.strategies import P


class Graph:
    """Fields and the blocks that set them: field *n* follows from *sources[n]*, or is set from outside if it has none.

    If its first source is odd, a block reads the others too, and else only the first.  Besides, some fields are shown
    by messages, some by assertions.  All is declared in the order *declared*.
    """

    def __init__(self, sources: list[list[int]], declared: list[int], nested: set[int]) -> None:
        self.sources = sources
        self.declared = declared
        self.nested = nested
        self.runs: Counter[int] = Counter()
        self.sent: Seen = []
        self.shown: Seen = []
        self.checking = False
        self.system = settled(self.boot)
        self.checking = True

    def boot(self) -> None:
        prevent_inert_check()
        self.ds = dataspace()
        self.facet = current_facet()
        system_of(self.facet.actor).spawn(self.listen)
        self.fields: list[Field[int]] = [field(0, name=f"f{n}") for n in range(len(self.sources))]
        for number in self.declared:
            if self.sources[number]:
                if number in self.nested:  # a block made in a block
                    dataflow(lambda number=number: react(lambda: (prevent_inert_check(), self.declare(number))))
                else:
                    self.declare(number)

    def declare(self, number: int) -> None:
        dataflow(lambda: self.follow(number))

    def listen(self) -> None:
        prevent_inert_check()
        watch_messages(self.ds, self.sent)
        self.shown = watch(self.ds, ["shown", capture(), capture()])

    def value(self, number: int, read: Callable[[int], int]) -> int:
        """What field *number* must be, by what *read* says of its sources."""
        first, *others = self.sources[number]
        value = read(first)
        return value + 1 + (sum(map(read, others)) if value % 2 else 0)

    def oracle(self) -> list[int]:
        """All fields, computed again from those that are set from outside."""
        values: list[int] = []
        for number, sources in enumerate(self.sources):
            values.append(self.value(number, values.__getitem__) if sources else self.fields[number]._value)
        return values

    def follow(self, number: int) -> None:
        self.runs[number] += 1
        right = self.oracle() if self.checking else None

        def read(source: int) -> int:
            value = self.fields[source].value
            assert right is None or value == right[source], "a block sees what does not follow from the rest"
            return value

        self.fields[number].value = self.value(number, read)

    def act(self, changes: dict[int, int], then: Callable[[], object] = int) -> None:
        """Set fields in one turn."""
        self.runs.clear()
        self.facet.enter(lambda: ([self.fields[n].set(value) for n, value in changes.items()], then()))
        self.system.drain()
        if self.facet.actor.error is not None:
            raise self.facet.actor.error
        assert [each._value for each in self.fields] == self.oracle()
        assert max(self.runs.values(), default=1) == 1, f"blocks ran more than once: {self.runs}"


def watch_messages(ds: Ref, seen: Seen) -> None:
    """Note the messages that blocks send."""
    on_message(ds, ["sent", capture(), capture()])(lambda number, value: seen.append((number, value)))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to twelve fields, each of which follows from some before it."""
    count = draw(st.integers(2, 12))
    sources = [
        draw(st.lists(st.integers(0, n - 1), max_size=4, unique=True)) if n else []  # the sources come before
        for n in range(count)
    ]
    declared = draw(st.permutations(range(count)))
    return Graph(sources, declared, draw(st.sets(st.integers(0, count - 1), max_size=3)))


@given(graphs(), st.lists(st.dictionaries(st.integers(0, 11), st.integers(0, 9), max_size=4), max_size=8), st.data())
def test_every_block_sees_one_moment_and_runs_once(
    graph: Graph, turns: list[dict[int, int]], data: st.DataObject
) -> None:
    """Graphs at random, in any order of declaration, whose edges come and go: no block sees a mixed state, each runs
    at most once in a turn, and what leaves the actor is settled; new blocks in the middle of a turn, too.
    """
    moments: list[list[int]] = []
    for turn in turns:
        changes = {n: value for n, value in turn.items() if n < len(graph.sources) and not graph.sources[n]}
        number = data.draw(st.integers(0, len(graph.sources) - 1))
        kind = data.draw(st.sampled_from(["none", "send", "assert"]))
        pair = data.draw(st.integers(0, len(graph.sources) - 1))

        def more(number: int = number, kind: str = kind, pair: int = pair) -> None:
            if kind == "send":
                dataflow(
                    lambda: send(
                        graph.ds, ["sent", number, (pair, graph.fields[pair].value, graph.fields[number].value)]
                    )
                )
            elif kind == "assert":
                assert_(
                    graph.ds, lambda: ["shown", number, (pair, graph.fields[pair].value, graph.fields[number].value)]
                )

        graph.act(changes, more)
        moments.append(graph.oracle())
    for number, (pair, *values) in [*graph.sent, *[tuple(captures) for _, *captures in graph.shown]]:
        assert any(values == [moment[pair], moment[number]] for moment in moments)


def test_a_long_chain_in_the_wrong_order_settles_in_one_run_of_each() -> None:
    """A thousand blocks, each declared before the one that sets what it reads."""
    size = 1000
    graph = Graph([[], *[[n] for n in range(size)]], list(range(size, -1, -1)), set())
    graph.act({0: 7})
    assert graph.fields[-1]._value == 7 + size
    assert sum(graph.runs.values()) == size


def test_a_wide_graph_settles_in_one_run_of_each() -> None:
    """Layers of blocks, each of which reads the whole layer below it."""
    chance = random.Random(1)
    sources: list[list[int]] = [[] for _ in range(20)]
    for layer in range(10):
        sources += [list(range(20 * layer, 20 * layer + 20)) for _ in range(20)]
    graph = Graph(sources, chance.sample(range(len(sources)), len(sources)), set())
    for turn in range(5):
        graph.checking = False
        graph.act({n: 2 * n + turn for n in range(20)})


def cells(*values: Any) -> tuple[Ref, list[Field[Any]]]:
    """A dataspace and fields in a facet that stays."""
    prevent_inert_check()
    return dataspace(), [field(value) for value in values]


def test_queries_are_read_in_one_moment_with_what_follows_from_them() -> None:
    """A field that a block computes from a query, and the query itself."""
    seen: list[Any] = []

    def boot() -> None:
        ds, (size,) = cells(0)
        present = query_set(ds, P(capture()))
        dataflow(lambda: seen.append((len(present.value), size.value)))
        dataflow(lambda: size.set(len(present.value)))
        here = current_facet()
        handles = [assert_(ds, P(n)) for n in range(3)]
        here.enter(lambda: here.enter(lambda: here.enter(handles[0].retract)))

    settled(boot)
    assert seen[0] == (0, 0)
    assert seen[1:] == [(3, 3), (2, 2)]


def test_what_a_facet_in_a_block_sets_is_set_by_that_block() -> None:
    """Setting in ``react`` and in stop handlers orders blocks as well."""
    seen: list[Any] = []
    act: list[Callable[[], None]] = []

    def boot() -> None:
        _, (a, b, c) = cells(1, 2, 3)
        dataflow(lambda: seen.append((a.value, b.value, c.value)))

        @dataflow
        def derive() -> None:
            value = a.value
            stop(react(lambda: (b.set(value + 1), on_stop(lambda: c.set(value + 2)))))

        here = current_facet()
        act.append(lambda: here.enter(lambda: a.set(10)))

    system = settled(boot)
    act[0]()
    system.drain()
    assert seen == [(1, 2, 3), (10, 11, 12)]


def test_a_cycle_settles_before_what_depends_on_it() -> None:
    """Two blocks that keep two fields together, and one that looks at both."""
    seen: list[Any] = []
    fields: list[Field[Any]] = []
    here: list[Any] = []

    def boot() -> None:
        _, handles = cells(0, 0)
        fields.extend(handles)
        one, two = handles
        dataflow(lambda: one.set(max(one.value, two.value)))
        dataflow(lambda: two.set(max(one.value, two.value)))
        dataflow(lambda: seen.append((one.value, two.value)))
        here.append(current_facet())

    system = settled(boot)
    for index, value in ((0, 5), (1, 7), (0, 9)):
        here[0].enter(lambda index=index, value=value: fields[index].set(value))
        system.drain()
    assert seen[-1] == (9, 9)
    assert here[0].actor.error is None


def test_heights_do_not_keep_fields_or_blocks() -> None:
    """A block that makes and sets a field at each run, and blocks over fields that are gone, leave nothing."""
    here: list[Any] = []

    def boot() -> None:
        _, (tick,) = cells(0)
        here.extend([current_facet(), tick])

        @dataflow
        def churn() -> None:
            passing = field(tick.value)
            passing.value = tick.value + 1
            react(lambda: dataflow(lambda: passing.value))
            dataflow(lambda: passing.value)

    system = settled(boot)

    def round_() -> int:
        for _ in range(100):
            here[0].enter(lambda: here[1].set(here[1].value + 1))
        system.drain()
        gc.collect()
        return len(gc.get_objects())

    round_()
    before = round_()
    assert round_() - before < 50


LEAVERS: dict[str, Callable[[Ref, Field[int]], object]] = {
    "computed assertion": lambda ds, a: assert_(ds, lambda: P(a.value)).retract(),
    "computed assertion of nothing": lambda ds, a: assert_(ds, lambda: P(a.value) if a.value < 0 else None).retract(),
    "replaced computed assertion": lambda ds, a: assert_(ds, lambda: P(a.value)).replace(lambda: P(1)).retract(),
    "assertion": lambda ds, a: assert_(ds, P(1)).retract(),
    "facet with a block": lambda ds, a: stop(react(lambda: dataflow(lambda: a.value))),
    "block that reads nothing": lambda ds, a: dataflow(lambda: None),
    "block over a field that is gone": lambda ds, a: (f := field(1), dataflow(lambda: f.value)),
    "facet with a query": lambda ds, a: stop(react(lambda: query_set(ds, P(capture())))),
    "facet with a handler": lambda ds, a: stop(react(lambda: on_message(ds, P(capture()))(print))),
    "cancelled timer": lambda ds, a: after(3600, lambda: None).cancel(),
    "preventer": lambda ds, a: prevent_inert_check()(),
    "field": lambda ds, a: field([1]),
}


@pytest.mark.parametrize("kind", LEAVERS)
def test_what_has_ended_leaves_nothing_in_a_long_lived_facet(kind: str) -> None:
    """Again and again, and there are as many objects as before."""
    here: list[Any] = []

    def boot() -> None:
        ds, (a,) = cells(1)
        dataflow(lambda: a.value)
        here.extend([current_facet(), lambda: LEAVERS[kind](ds, a)])

    async def main() -> list[int]:
        from syndicate import open_system

        counts = []
        async with open_system(boot) as system:
            await system.settle()
            for _ in range(4):
                for _ in range(300):
                    here[0].enter(here[1])
                await system.settle()
                gc.collect()
                counts.append(len(gc.get_objects()))
        return counts

    import trio

    counts = trio.run(main)
    assert counts[-1] - counts[-2] < 100, counts
    assert not here[0].children


@pytest.mark.parametrize("first", ["assertion", "block"])
def test_a_block_that_stops_its_facet_lets_the_last_be_seen(first: str) -> None:
    """What the fields say when a dataflow block stops the facet is asserted, and goes with it."""
    facets: list[Facet] = []
    seen: list[Any] = []
    objects: dict[str, Any] = {}

    def counter(ds: Ref) -> None:
        value, double = field(0), field(0)
        objects["value"] = value

        def shown() -> None:
            assert_(ds, lambda: ["at", value.value, double.value])

        def stopping() -> None:
            dataflow(lambda: stop() if value.value >= 3 else None)

        for install in (shown, stopping) if first == "assertion" else (stopping, shown):
            install()
        dataflow(lambda: double.set(2 * value.value))
        prevent_inert_check()

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, ["at", capture(), capture()]))
        facets.append(react(lambda: counter(ds)))
        prevent_inert_check()

    system = settled(boot)
    for n in (1, 2, 3):
        facets[0].enter(lambda n=n: objects["value"].set(n))
        system.drain()
    values = [(mark, value, double) for mark, value, double in seen[0]]
    assert [value for mark, value, _ in values if mark == "+"] == [0, 1, 2, 3]
    assert [value for mark, value, _ in values if mark == "-"] == [0, 1, 2, 3]
    assert all(double == 2 * value for _, value, double in values)
