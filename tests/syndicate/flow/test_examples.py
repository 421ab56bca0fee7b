"""The worked examples of PomoFlow, corrected where ``docs/design/flow.md`` says so, and some more: E01 to E25."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from syndicate.flow import Carries, Circuit, IndexedZSet, Stream, TimedZSet, Trace, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.zset import before, glb, lub

Timed = Mapping[tuple[Any, Any], int]


def timed(batch: Timed) -> TimedZSet:
    """The notation of the examples, ``{(element, time): weight}``."""
    return TimedZSet.from_triples([(element, time, weight) for (element, time), weight in batch.items()])


def through(build: Callable[..., Stream], *batches: ZSet) -> Any:
    """What one tick of an operator gives."""
    c = Circuit()
    c.sink("out", build(*[c.source(str(n)) for n in range(len(batches))]))
    return c.step({str(n): batch for n, batch in enumerate(batches)})["out"]


def at_each_time(build: Callable[..., Stream], *batches: Timed) -> list[tuple[Any, Any, int]]:
    """An operator on timed batches: each time is a tick of its own."""
    zsets = [timed(batch) for batch in batches]
    times = sorted({time for zset in zsets for time in zset.at})
    return TimedZSet({time: through(build, *[zset.at.get(time, ZSet()) for zset in zsets]) for time in times}).triples()


def test_e01_product_order() -> None:
    """2.5: times are compared by component."""
    for a, b in [((0, 0), (0, 1)), ((0, 1), (1, 1))]:
        assert before(a, b)
    for a, b in [((0, 2), (1, 1)), ((1, 1), (2, 0))]:
        assert not before(a, b)
        assert not before(b, a)
    assert (lub((0, 2), (1, 1)), glb((0, 2), (1, 1))) == ((1, 2), (0, 1))


def test_e02_aggregate() -> None:
    """2.9.1: count of each key, weight 1."""
    batch = IndexedZSet({(1, "foo"): 1, (1, "bar"): 1, (2, "baz"): 1}).pairs()
    for op in ("aggregate", "aggregate_stream"):
        got = through(lambda s, op=op: getattr(s.index_with(lambda p: p[0]), op)(agg.count), batch)
        assert got == ZSet({(1, 2): 1, (2, 1): 1})


E03 = [
    *((0, 0, 0, 1), (0, 0, 0, -1), (0, 1, 0, 1), (0, 1, 0, 1), (1, 2, 0, 2)),
    *((1, 3, 0, 1), (1, 3, 0, -1), (1, 4, 0, -1), (2, 2, 0, 1), (2, 4, 0, 1)),
]


def test_e03_consolidate() -> None:
    """2.9.2, commas corrected: all times in one, as a trace and as an operator on a stream of traces."""
    wanted = ZSet({(0, 1): 2, (1, 2): 2, (1, 4): -1, (2, 2): 1, (2, 4): 1})
    assert Trace.from_tuples(E03).consolidate() == wanted
    c = Circuit()
    index = c.source("s").index_with(lambda p: p[0], lambda p: p[1])
    c.sink("out", index.trace_append().consolidate())
    for key, value, _, weight in E03:
        out = c.step({"s": ZSet([((key, value), weight)])})["out"]
    assert out == wanted


def test_e04_distinct() -> None:
    """2.9.3: weight 1 for what is above 0; the weight 0 of the input is dropped."""
    batch = {(0, 0): 1, (1, 0): 2, (2, 0): -1, (3, 0): 0}
    assert at_each_time(Stream.distinct_stream, batch) == [(0, 0, 1), (1, 0, 1)]
    assert ZSet({0: 1, 1: 2, 2: -1, 3: 0}).distinct() == ZSet({0: 1, 1: 1})


def test_e05_filter() -> None:
    """2.9.4: weights are kept, negative ones too."""
    batch = {(0, 0): 1, (1, 0): 2, (2, 1): -3}
    assert at_each_time(lambda s: s.filter(lambda x: x >= 1), batch) == [(1, 0, 2), (2, 1, -3)]


def test_e06_index_with() -> None:
    """2.9.5: key and element."""
    batch = {((0, 1, 1), 0): 1, ((1, 2, 1), 1): 1, ((1, 3, 2), 1): -1}
    got = at_each_time(lambda s: s.index_with(lambda edge: edge[0]).pairs(), batch)
    assert got == [((0, (0, 1, 1)), 0, 1), ((1, (1, 2, 1)), 1, 1), ((1, (1, 3, 2)), 1, -1)]


def test_e07_inspect() -> None:
    """2.9.6: the same stream; the callback sees each batch, an empty one too."""
    c = Circuit()
    seen: list[Any] = []
    c.sink("out", c.source("s").inspect(seen.append))
    assert c.step({"s": ZSet({0: 1, 1: 1})})["out"] == ZSet({0: 1, 1: 1})
    c.step()
    assert seen == [ZSet({0: 1, 1: 1}), ZSet()]


def test_e08_map() -> None:
    """2.9.7, with an example of our own, for the document prints that of filter: weights of equal images are added."""
    batch = {(0, 0): 1, (1, 0): 2, (2, 1): -3}
    assert at_each_time(lambda s: s.map(lambda x: x // 2), batch) == [(0, 0, 3), (1, 1, -3)]


def test_e09_negate() -> None:
    """2.9.8."""
    batch = {(0, 0): 1, (1, 0): -1, (2, 0): -2}
    assert at_each_time(Stream.negate, batch) == [(0, 0, -1), (1, 0, 1), (2, 0, 2)]


Steps = Sequence[tuple[tuple[int, int], Mapping[Any, int], Mapping[Any, int]]]
E10_13: Steps = [
    ((0, 0), {0: 1, 2: 1, 3: -1}, {0: 1, 2: 1}),
    ((0, 1), {5: 1}, {5: 1}),
    ((1, 0), {5: 1}, {5: 1}),
    ((1, 1), {0: 1, 1: 1, 2: -1, 3: 1, 4: -1}, {1: 1, 2: -1, 5: -1}),
]
E22: Steps = [
    ((0, 0), {"x": 1}, {"x": 1}),
    ((0, 1), {"x": 1}, {}),
    ((1, 0), {"x": -1}, {"x": -1}),
    ((1, 1), {}, {"x": 1}),
]
E23: Steps = [
    *(((0, 0), {"x": 1}, {"x": 1}), ((0, 1), {"x": -1}, {"x": -1})),
    *(((1, 0), {"x": -1}, {"x": -1}), ((1, 1), {"x": 2}, {"x": 2})),
]
E24: Steps = [
    *(((0, 0), {}, {}), ((0, 1), {"x": 1}, {"x": 1})),
    *(((1, 0), {"x": 1}, {"x": 1}), ((1, 1), {"x": -2}, {"x": -2})),
]


def loop_of(build: Callable[[Stream], Stream]) -> tuple[Circuit, dict[int, ZSet]]:
    """A loop into which a batch can be brought at any iteration, and what an operator in it gave at each.

    The source's elements are ``(element, iteration)``: a counter goes round the loop and lets out what is due.
    """
    c = Circuit()
    outputs: dict[int, ZSet] = {}
    source = c.source("s")
    child = c.child("timed")
    waiting = child.feedback()
    inside = child.bring(source) + waiting.map(lambda e: (e[0], e[1] - 1))
    waiting.connect(inside.filter(lambda e: e[1] > 0))
    due = inside.filter(lambda e: e[1] == 0).map(lambda e: e[0])
    result = build(due)
    turn = {"at": 0}

    def note(batch: ZSet | IndexedZSet) -> None:
        assert isinstance(batch, ZSet)
        at = c.engine.root.children[0].now
        if len(batch):
            outputs[at] = batch
        turn["at"] = at

    c.sink("out", child.export(result.inspect(note)))
    return c, outputs


@pytest.mark.parametrize("steps", [E10_13, E22, E23, E24], ids=["E10-E13", "E22", "E23", "E24"])
@pytest.mark.parametrize("kind", ["distinct", "distinct_trace"])
def test_e10_to_e13_and_e22_to_e24_nested_distinct(kind: str, steps: Steps) -> None:
    """2.9.11 with its corrections: the change over both clocks, with and without an explicit trace."""

    def build(due: Stream) -> Stream:
        if kind == "distinct_trace":
            return due.distinct_trace(due.trace_append().z1_trace())
        return due.minus(due.map(lambda x: x).filter(lambda x: False)).distinct()  # keeps the loop from being monotone

    c, outputs = loop_of(build)
    for epoch in range(2):
        outputs.clear()
        batches = [(time[1], batch) for time, batch, _ in steps if time[0] == epoch]
        c.step({"s": ZSet([((x, i), w) for i, batch in batches for x, w in batch.items()])})
        wanted = {time[1]: ZSet(out) for time, _, out in steps if time[0] == epoch and out}
        assert outputs == wanted


JOIN_A = IndexedZSet({("a", 1): 1, ("b", 2): 2, ("c", 2): 1}).pairs()
JOIN_B = IndexedZSet({("a", 1): 1, ("b", 3): 1, ("b", 4): -1}).pairs()


def both(key: Any, left: Any, right: Any) -> Any:
    """The join function of PomoFlow."""
    return key, (left, right)


def by_key(stream: Stream) -> Stream:
    """Pairs, indexed."""
    return stream.index_with(lambda p: p[0], lambda p: p[1])


@pytest.mark.parametrize("op", ["join_stream", "join"])
def test_e14_join_stream(op: str) -> None:
    """2.9.12: weights are multiplied."""
    got = through(lambda a, b: getattr(by_key(a), op)(by_key(b), both), JOIN_A, JOIN_B)
    assert got == ZSet({("a", (1, 1)): 1, ("b", (2, 3)): 2, ("b", (2, 4)): -2})


def test_e15_join_trace() -> None:
    """2.9.13, shape corrected: a batch with what a trace holds."""
    zset = [(("a", 0), 1), (("a", 0), -1), (("a", 1), 1), (("b", 2), 2), (("c", 2), 1)]
    trace = [("a", 1, 1), ("b", -3, -1), ("b", 3, 1), ("b", 4, -1), ("c", 4, 1)]
    c = Circuit()
    history = by_key(c.source("trace")).trace_append().z1_trace()
    c.sink("out", by_key(c.source("zset")).join_trace(history, both))
    c.step({"trace": ZSet([((key, value), weight) for key, value, weight in trace])})
    wanted = {("a", (1, 1)): 1, ("b", (2, -3)): -2, ("b", (2, 3)): 2, ("b", (2, 4)): -2, ("c", (2, 4)): 1}
    assert c.step({"zset": ZSet(zset)})["out"] == ZSet(wanted)


def test_2_9_13_three_term_join_is_the_join() -> None:
    """2.9.13: the document's wiring, with traces that exclude the current tick, gives what ``join`` gives."""
    c = Circuit()
    a, b = by_key(c.source("a")), by_key(c.source("b"))
    a_trace, b_trace = a.trace_append().z1_trace(), b.trace_append().z1_trace()

    def flipped(key: Any, right: Any, left: Any) -> Any:
        return both(key, left, right)

    c.sink("wired", a.join_stream(b, both) + a.join_trace(b_trace, both) + b.join_trace(a_trace, flipped))
    c.sink("join", a.join(b, both))
    for deltas in ({"a": JOIN_A}, {"b": JOIN_B}, {"a": JOIN_A.negate(), "b": JOIN_A}, {"a": JOIN_B, "b": JOIN_B}):
        out = c.step(deltas)
        assert out["wired"] == out["join"]


E16_A = {(0, 0): 1, (1, 0): 1, (2, 0): 2, (3, 0): 1}
E16_B = {(0, 0): 1, (1, 0): -1, (2, 0): 1}


def test_e16_minus() -> None:
    """2.9.14: only equal times combine; zeros are dropped."""
    wanted = [(1, 0, 2), (2, 0, 1), (3, 0, 1)]
    assert at_each_time(Stream.minus, E16_A, E16_B) == wanted
    assert (timed(E16_A) - timed(E16_B)).triples() == wanted


def test_e17_plus() -> None:
    """2.9.15."""
    wanted = [(0, 0, 2), (2, 0, 3), (3, 0, 1)]
    assert at_each_time(Stream.plus, E16_A, E16_B) == wanted
    assert (timed(E16_A) + timed(E16_B)).triples() == wanted


def test_plus_and_minus_on_indexed() -> None:
    """2.9.14 and 2.9.15, both TODOs answered with yes."""
    a, b = IndexedZSet({("k", 1): 1, ("k", 2): 1}), IndexedZSet({("k", 2): 1})
    assert through(lambda x, y: by_key(x) - by_key(y), a.pairs(), b.pairs()) == a - b == IndexedZSet({("k", 1): 1})
    assert through(lambda x, y: by_key(x) + by_key(y), a.pairs(), b.pairs()) == a + b


BATCH = {0: 2, 2: 1, 3: -1}


@pytest.mark.parametrize(
    ("trace", "batch", "wanted"),
    [
        ({0: 1}, BATCH, {2: 1}),
        ({2: 1, 3: 1}, BATCH, {0: 1, 3: -1}),
        ({0: -1}, BATCH, {0: 1, 2: 1}),
        ({"x": 3}, {"x": -1}, {}),
        ({}, {2: 1}, {2: 1}),
    ],
    ids=["E18", "E19", "E20", "E21a", "E21b"],
)
@pytest.mark.parametrize("append", ["trace_append", "untimed_trace_append"])
def test_e18_to_e21_distinct_incremental(trace: Any, batch: Any, wanted: Any, append: str) -> None:
    """2.9.18 by ``H``, not by the document's rule of signs; on both traces, and as ``distinct``."""
    c = Circuit()
    s = c.source("s")
    c.sink("wired", s.distinct_incremental(getattr(s, append)().z1_trace()))
    c.sink("distinct", s.distinct())
    c.step({"s": trace})
    out = c.step({"s": batch})
    assert out["wired"] == out["distinct"] == ZSet(wanted)


def test_e25_nested_join() -> None:
    """Section 6: the only pair meets at the least upper bound of its times."""
    c, outputs = loop_of(
        lambda due: by_key(due.filter(lambda e: e[0] == "a").map(lambda e: e[1])).join(
            by_key(due.filter(lambda e: e[0] == "b").map(lambda e: e[1])), both
        )
    )
    c.step({"s": {(("a", ("k", "x")), 1): 1}})
    assert outputs == {}
    c.step({"s": {(("b", ("k", "y")), 0): 1}})
    assert outputs == {1: ZSet({("k", ("x", "y")): 1})}


def test_2_9_9_and_2_9_10_delays() -> None:
    """z1 gives the previous batch, z1_trace the previous trace; in a loop z1 is emptied, z1_trace is not."""
    c = Circuit()
    s = c.source("s")
    c.sink("z1", s.z1())
    c.sink("trace", s.trace_append().z1_trace().consolidate())
    assert (c.step({"s": {"x": 1}})["z1"], c.step()["trace"]) == (ZSet(), ZSet({"x": 1}))
    c = Circuit()
    child = c.child("loop")
    inside = child.bring(c.source("s"))
    seen: list[Any] = []
    trace = inside.trace_append().z1_trace()
    inside.z1().inspect(lambda batch: seen.append(("z1", c.engine.root.children[0].now, batch)))
    trace.consolidate().inspect(lambda batch: seen.append(("trace", c.engine.root.children[0].now, batch)))
    c.sink("out", child.export(inside))
    c.step({"s": {"x": 1}})
    assert ("z1", 1, ZSet({"x": 1})) in seen
    seen.clear()
    c.step({"s": {"y": 1}})
    assert ("z1", 0, ZSet()) in seen
    assert ("trace", 0, ZSet({"x": 1})) in seen
    assert ("trace", 1, ZSet({"x": 1, "y": 1})) in seen


def test_2_9_16_trace_append() -> None:
    """The current time is added, the epoch at the root; without times it is 0."""
    c = Circuit()
    s = c.source("s")
    timed_trace, untimed = s.trace_append(), s.untimed_trace_append()
    assert (timed_trace.carries, untimed.carries) == (Carries.TRACE, Carries.TRACE)
    c.sink("a", timed_trace.consolidate())
    c.sink("b", untimed.consolidate())
    c.step({"s": {"x": 1}})
    out = c.step({"s": {"x": 2, "y": 1}})
    assert out["a"] == out["b"] == ZSet({"x": 3, "y": 1})
    times = [[entry[2] for entry in trace.tuples()] for states in c.engine.states.values() for trace in states]
    assert times == [[1, 1], [0, 0]]  # the past is merged


def test_2_8_ids() -> None:
    """Local ids are indices, global ids paths; the same program gives the same ids."""

    def build() -> Circuit:
        c = Circuit()
        s = c.source("s")
        c.sink("out", c.recursive(lambda r: s + r.map(lambda n: min(n + 1, 3))))
        return c

    ids = [node.global_id for node in build().walk()]
    assert ids == [node.global_id for node in build().walk()]
    assert ids == [(0,), (1,), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2,)]
    assert {node.kind.value for node in build().walk()} == {"source", "child", "feedback", "operator", "import", "sink"}
