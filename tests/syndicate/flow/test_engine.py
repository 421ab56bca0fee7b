"""The local engine: transactions, sharing, memory, termination, what a step touches, and mistakes."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

from syndicate.errors import (
    CircuitError,
    CycleError,
    EndlessLoop,
    StepFailed,
    UnhashableElement,
    UnknownStream,
    WeightError,
)
from syndicate.flow import Carries, Circuit, IndexedZSet, Stream, ZSet, rearranges
from syndicate.flow import aggregates as agg
from syndicate.flow.arrangement import Arrangement, TimedArrangement
from syndicate.flow.loop import Integral
from syndicate.flow.operators.nested_loops import SeenTimes
from syndicate.flow.scope import Cell
from syndicate.flow.trace import Trace
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second, two_sources
from tests.syndicate.flow.oracle import bag_of


def contents(circuit: Circuit) -> Any:
    """All that the nodes of a circuit keep, to be compared."""
    results: list[tuple[Any, Any]] = []
    for node, states in sorted(circuit.engine.states.items()):
        for state in states:
            if isinstance(state, (Arrangement, TimedArrangement)):
                results.append((node, state.index))
            elif isinstance(state, SeenTimes):
                assert not state.now
                results.append((node, state.past))
            elif isinstance(state, Trace):
                results.append((node, state.groups))
            elif isinstance(state, Cell) and type(state.value) is not bool:
                results.append((node, state.value))
            elif isinstance(state, Integral):
                results.append((node, state.total))
            elif isinstance(state, dict):
                results.append((node, state))
    return [(node, _plain(state)) for node, state in results]


def _plain(state: Any) -> Any:
    return {repr(key): _plain(value) for key, value in state.items()} if isinstance(state, dict) else repr(state)


BUILDS: dict[str, Callable[[random.Random], Circuit]] = {
    "flat": circuits.flat,
    "monotone": circuits.monotone,
    "levelled": circuits.levelled,
    "nested": circuits.nested,
    "nested_levelled": circuits.nested_levelled,
}


class Trap:
    """A predicate that raises when it is armed."""

    def __init__(self) -> None:
        self.armed = False

    def __call__(self, element: Any) -> bool:
        if self.armed:
            raise ZeroDivisionError("the trap")
        return True


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("seed", range(6))
def test_a_failed_step_never_was(name: str, seed: int) -> None:
    """After a step that raised at its end, state and later outputs are those of a circuit that never saw it."""

    def build() -> tuple[Circuit, Trap]:
        circuit, trap = BUILDS[name](random.Random(seed)), Trap()
        for node in list(circuit.sinks.values()):
            circuit.sink(f"trapped {node.name}", Stream(circuit, node.inputs[0]).filter(trap))
        return circuit, trap

    (good, _), (bad, trap) = build(), build()
    failures = 0
    for number, deltas in enumerate(circuits.deltas(random.Random(seed), ["a", "b"], 12)):
        if number % 2:
            trap.armed = True
            before = contents(bad)
            try:
                bad.step(deltas)
            except StepFailed:
                failures += 1
                assert contents(bad) == before
            else:
                good.step(deltas)
            trap.armed = False
            continue
        a, b = good.step(deltas), bad.step(deltas)
        assert {key: bag_of(a[key]) for key in good.sinks} == {key: bag_of(b[key]) for key in good.sinks}
    assert failures


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("seed", range(6))
def test_memory_returns(name: str, seed: int) -> None:
    """When all that was inserted is deleted, nothing is kept: no empty bucket, no weight of 0."""
    circuit = BUILDS[name](random.Random(seed))
    sums = {source: ZSet() for source in circuit.sources}
    empty = contents(circuit)
    for deltas in circuits.deltas(random.Random(seed), ["a", "b"], 10):
        circuit.step(deltas)
        sums = {source: sums[source] + deltas.get(source, ZSet()) for source in sums}
    circuit.step({source: -total for source, total in sums.items()})
    circuit.step()
    circuit.step()
    assert contents(circuit) == empty


def test_traces_shrink() -> None:
    """Explicit traces, aggregates of all forms and integrals, too."""
    c, a, _ = two_sources()
    index = a.index_with(first)
    c.sink("t", index.join_trace(index.trace_append().z1_trace(), ends))
    c.sink("d", a.distinct_trace(a.trace_append().z1_trace()))
    c.sink("i", a.integrate().differentiate().z1())
    for number, aggregate in enumerate(circuits.AGGREGATES):
        c.sink(str(number), index.aggregate(aggregate))
    empty = contents(c)
    batch = ZSet({(n % 3, n): 1 for n in range(500)})
    c.step({"a": batch})
    assert contents(c) != empty
    c.step({"a": -batch})
    c.step()
    assert contents(c) == empty


def test_laws_of_time() -> None:
    """D of I and I of D are identities; splitting and reordering a batch changes no sum."""
    c, a, b = two_sources()
    c.sink("di", a.integrate().differentiate())
    c.sink("id", a.differentiate().integrate())
    c.sink("join", a.index_with(first).join(b.index_with(second), ends).distinct())
    split = Circuit()
    x, y = split.source("a"), split.source("b")
    split.sink("join", x.index_with(first).join(y.index_with(second), ends).distinct())
    whole, parts = ZSet(), ZSet()
    for deltas in circuits.deltas(random.Random(1), ["a", "b"], 30, negative=True):
        out = c.step(deltas)
        assert out["di"] == out["id"] == deltas.get("a", ZSet())
        whole += out["join"]
        pieces = [(name, item) for name, delta in deltas.items() for item in delta.items()]
        random.Random(2).shuffle(pieces)
        for name, (element, weight) in pieces:
            parts += split.step({name: {element: weight}})["join"]
        assert whole == parts


def test_joins_share_a_trace() -> None:
    """Two joins on one index keep one arrangement, and so does a join in a loop with an index from outside."""
    c, a, b = two_sources()
    edges = a.index_with(first)
    assert a.index_with(first) == edges
    c.sink("x", edges.join(b.index_with(first)))
    c.sink("y", edges.join(b.index_with(second)))
    c.sink("z", c.recursive(lambda r: a + r.index_with(second).join(edges, ends)))
    c.step({"a": {(1, 2): 1, (2, 3): 1}})
    survivors = [state for states in c.engine.states.values() for state in states]
    assert sum(isinstance(state, Arrangement) for state in survivors) == 3
    assert sum(isinstance(state, TimedArrangement) for state in survivors) == 1


def test_a_step_touches_what_changed() -> None:
    """Of a thousand branches, only the nodes of the one that got something run."""
    c = Circuit()
    for n in range(1000):
        c.sink(f"o{n}", c.source(f"s{n}").map(lambda x: x).distinct())
    c.engine.watch()
    out = c.step({"s7": {1: 1}})
    assert dict(out) == {"o7": ZSet({1: 1})}
    assert out["o8"] == ZSet()
    assert c.engine.measures is not None
    assert len(c.engine.measures) == 3
    assert all(measure.runs == 1 for measure in c.engine.measures.values())


def test_a_quiet_loop_goes_on() -> None:
    """An epoch may be quiet at iterations 0 to 3 and change at 4: the loop does not stop before."""
    c, a, b = two_sources()
    c.sink("r", c.recursive(lambda r: a + r.map(lambda n: n + 1).antijoin(b).filter(lambda n: n < 9)))
    assert len(c.step({"a": {0: 1}})["r"]) == 9
    assert c.step({"b": {5: 1}})["r"] == ZSet(dict.fromkeys(range(5, 9), -1))
    assert c.step({"b": {5: -1}})["r"] == ZSet(dict.fromkeys(range(5, 9), 1))


def test_distances_that_grow() -> None:
    """A cycle whose members lost their support does not keep itself alive."""
    c, a, _ = two_sources()
    c.sink("r", c.recursive(lambda r: a + r.index_with(second).join(a.index_with(first), ends)))
    cycle = ZSet({(1, 2): 1, (2, 3): 1, (3, 1): 1})
    c.step({"a": cycle + ZSet({(0, 1): 1})})
    assert c.step({"a": {(0, 1): -1}})["r"] == ZSet({(0, n): -1 for n in (1, 2, 3)})
    assert len(c.step({"a": {(3, 1): -1}})["r"]) == 6


def test_signed_collections_in_a_loop() -> None:
    """A difference that may be negative makes its loop an exact one."""
    c, a, b = two_sources()
    edges = a - b
    c.sink("r", c.recursive(lambda r: a + r.index_with(second).join(edges.index_with(first), ends)))
    child = c.engine.root.children[0]
    distinct = next(node for node in child.circuit.nodes if node.op == "distinct")
    assert not child.properties.is_monotone(distinct) or child.properties.is_free()


def test_upserts() -> None:
    """A source with a key: a new element replaces the old, None deletes, the same again is no change."""
    c = Circuit()
    c.sink("out", c.source("users", key=first))
    assert c.step({"users": [("u1", "Ann"), ("u2", "Bob")]})["out"] == ZSet({("u1", "Ann"): 1, ("u2", "Bob"): 1})
    assert c.step({"users": [("u1", "Eve")]})["out"] == ZSet({("u1", "Ann"): -1, ("u1", "Eve"): 1})
    assert c.step({"users": {"u1": ("u1", "Eve"), "u2": None}})["out"] == ZSet({("u2", "Bob"): -1})
    assert not c.step({"users": {"u2": None}})
    with pytest.raises(CircuitError, match="not a ZSet"):
        c.step({"users": ZSet()})
    with pytest.raises(CircuitError, match="but its key is 'u3'"):
        c.step({"users": {"u2": ("u3", "Bob")}})


def test_upserts_are_taken_back() -> None:
    """A failed step leaves the current elements as they were."""
    c, trap = Circuit(), Trap()
    c.sink("out", c.source("users", key=first).filter(trap))
    c.step({"users": [("u1", "Ann")]})
    trap.armed = True
    with pytest.raises(StepFailed):
        c.step({"users": [("u1", "Eve")]})
    trap.armed = False
    assert c.step({"users": [("u1", "Zoe")]})["out"] == ZSet({("u1", "Ann"): -1, ("u1", "Zoe"): 1})


def test_keys_that_raise() -> None:
    """The element is named, and nothing is changed."""
    c = Circuit()
    c.sink("out", c.source("users", key=first))
    with pytest.raises(StepFailed, match=r"IndexError.* at \(\)"):
        c.step({"users": [("u1",), ()]})
    assert c.step({"users": [("u1",)]})["out"] == ZSet({("u1",): 1})


def test_constants() -> None:
    """There from the first step on that succeeds, and changed by nothing."""
    c, trap = Circuit(), Trap()
    edges = c.source("edges")
    both = (c.constant({(0, 1): 1}) + edges).filter(trap)
    c.sink("out", c.recursive(lambda r: both + r.index_with(second).join(both.index_with(first), ends)))
    trap.armed = True
    with pytest.raises(StepFailed):
        c.step()
    trap.armed = False
    assert c.step()["out"] == ZSet({(0, 1): 1})
    assert c.step({"edges": {(1, 2): 1}})["out"] == ZSet({(1, 2): 1, (0, 2): 1})


def test_interrupts_and_steps_in_steps() -> None:
    """A circuit that is stepped by one of its own functions says so; one that was interrupted goes on."""
    c = Circuit()

    def again(batch: Any) -> None:
        c.step()

    c.sink("out", c.source("a").inspect(again))
    with pytest.raises(StepFailed, match="must not step it"):
        c.step({"a": {1: 1}})
    c = Circuit()

    def interrupt(element: Any) -> bool:
        if element == 1:
            raise KeyboardInterrupt
        return True

    c.sink("out", c.source("a").filter(interrupt))
    with pytest.raises(KeyboardInterrupt):
        c.step({"a": {1: 1, 2: 1}})
    assert c.step({"a": {3: 1}})["out"] == ZSet({3: 1})


@pytest.mark.parametrize(
    ("build", "delta", "says"),
    [
        (lambda a: a.map(lambda e: 1 // e), {1: 1, 0: 1}, r"map \(node 1, .*ZeroDivisionError.* at 0\."),
        (lambda a: a.filter(lambda e: e < "x").named("small"), {1: 1}, r'filter "small" .*TypeError.* at 1\.'),
        (lambda a: a.flat_map(lambda e: e), {7: 1}, r"flat_map .* at 7\."),
        (lambda a: a.index_with(lambda e: e[1]).keys(), {(1,): 1}, r"index_with .*IndexError.* at \(1,\)"),
        (
            lambda a: a.index_with(lambda e: e % 2).join(a.index_with(lambda e: e % 2), lambda k, x, y: x // y),
            {0: 1, 3: 1},
            r"join .* at 0, 0, 0\.",
        ),
        (lambda a: a.index_with(lambda e: e).aggregate(agg.sum(lambda e: e["x"])), {5: 1}, r"aggregate .* at 5\."),
        (lambda a: a.index_with(lambda e: 0).aggregate(agg.sum), {5: 1, "x": 1}, r"aggregate .* at 'x'\."),
        (
            lambda a: a.index_with(lambda e: 0).aggregate(lambda group: 1 // 0),
            {5: 1},
            r"aggregate .*ZeroDivision.* at 0",
        ),
    ],
)
def test_a_function_that_raises(build: Any, delta: Any, says: str) -> None:
    """The message names the node and the element; the cause is kept; the circuit goes on."""
    c = Circuit()
    c.sink("out", build(c.source("a")))
    with pytest.raises(StepFailed, match=says) as caught:
        c.step({"a": delta})
    assert caught.value.__cause__ is not None
    c.step({"a": {}})


def test_a_join_with_a_trace_that_raises() -> None:
    """It is named with what it was given."""
    c = Circuit()
    index = c.source("a").index_with(first)
    c.sink("out", index.join_trace(index.trace_append().z1_trace(), lambda k, x, y: x[1] // y[1]))
    c.step({"a": {(1, 0): 1}})
    with pytest.raises(StepFailed, match=r"join_trace .*ZeroDivision.* at 1, \(1, 2\), \(1, 0\)\."):
        c.step({"a": {(1, 2): 1}})


@pytest.mark.parametrize("op", ["distinct_trace", "distinct_incremental"])
def test_distinct_by_a_trace_of_an_index(op: str) -> None:
    """Pairs come out as elements, with their parts as they went in, also where those are not plain."""
    c = Circuit()
    index = c.source("a").index_with(first)
    out = getattr(index, op)(index.trace_append().z1_trace())
    c.sink("out", out)
    c.sink("kinds", out.map(lambda pair: type(pair[0]).__name__))
    outputs = c.step({"a": [(True, 1), (1, 1)]})
    assert outputs["out"] == ZSet([((True, (True, 1)), 1), ((1, (1, 1)), 1)])
    assert outputs["kinds"] == ZSet({"bool": 1, "int": 1})


def test_a_body_that_raises() -> None:
    """The loop that was begun is an empty one, and the circuit is good for another try."""
    c = Circuit()
    a = c.source("a")
    with pytest.raises(ZeroDivisionError):
        c.recursive(lambda r: a + r if 1 // 0 else r)
    c.sink("out", c.recursive(lambda r: a + r))
    assert c.step({"a": {1: 1}})["out"] == ZSet({1: 1})


def test_a_loop_without_end() -> None:
    """The bound's error names the loop, and the step is taken back."""
    c = Circuit()
    a = c.source("a")
    c.sink("out", c.recursive(lambda r: a + r.map(lambda n: n + 1), name="counting", limit=50))
    empty = contents(c)
    with pytest.raises(EndlessLoop, match=r'loop "counting".* 50 iterations'):
        c.step({"a": {1: 1}})
    assert c.engine.epoch == 0
    assert contents(c) == empty


def test_weights_that_grow_for_ever() -> None:
    """A loop without a distinct in a cycle of data is an endless one, too."""
    c = Circuit()
    child = c.child("no distinct", limit=30)
    loop = child.feedback()
    body = child.bring(c.source("a")) + loop.map(lambda e: e)
    loop.connect(body)
    c.sink("out", child.export(body))
    with pytest.raises(EndlessLoop, match="no distinct"):
        c.step({"a": {1: 1}})


def wired_wrongly() -> dict[str, tuple[Callable[[Circuit, Stream], Any], type[Exception], str]]:
    """Mistakes of building."""

    def cycle(c: Circuit, a: Stream) -> None:
        forward = c.forward()
        forward.connect(a + forward.map(lambda e: e).named("twice"))
        c.order()

    def sibling(c: Circuit, a: Stream) -> None:
        one, two = c.child("one"), c.child("two")
        one.bring(a).plus(two.bring(a))

    def twice(c: Circuit, a: Stream) -> None:
        loop = c.feedback()
        loop.connect(a)
        loop.connect(a)

    def running(c: Circuit, a: Stream) -> None:
        c.step()
        a.map(lambda e: e)

    return {
        "cycle": (cycle, CycleError, r"without feedback: forward .* -> .*map \"twice\".* -> .*z1\(\)"),
        "sibling": (sibling, CircuitError, "another circuit or loop"),
        "twice": (twice, CircuitError, "connected already"),
        "open": (lambda c, a: (c.feedback(), c.step()), CircuitError, "never connected"),
        "running": (running, CircuitError, "is running"),
        "unindexed": (lambda c, a: a.join(a), CircuitError, r"call index_with\(key\) first"),
        "indexed": (lambda c, a: a.index_with(first).map(first), CircuitError, r"pairs\(\) or values\(\)"),
        "trace": (lambda c, a: c.sink("x", a.trace_append()), CircuitError, r"consolidate\(\) first"),
        "no trace": (lambda c, a: a.distinct_trace(a), CircuitError, r"trace_append\(\) first"),
        "no function": (lambda c, a: a.map(3), CircuitError, "needs a function, not 3"),  # type: ignore[arg-type]
        "no stream": (lambda c, a: a.plus(3), CircuitError, "needs a stream, not 3"),  # type: ignore[arg-type]
        "no stream to match": (lambda c, a: a.semijoin(3), CircuitError, "semijoin needs a stream, not 3"),  # type: ignore[arg-type]
        "no aggregate": (lambda c, a: a.index_with(first).aggregate(3), CircuitError, "no aggregate"),  # type: ignore[arg-type]
        "source twice": (lambda c, a: c.source("a"), CircuitError, "a source 'a' already"),
        "sink twice": (lambda c, a: list(map(c.sink, "xx", (a, a))), CircuitError, "a sink 'x' already"),
        "sink of a loop": (lambda c, a: c.child().sink("x", a), CircuitError, "belongs to the root"),
        "bodies": (lambda c, a: c.recursive_many(["p", "q"], lambda r: {"p": a}), CircuitError, "a body for each"),
        "connect": (lambda c, a: a.connect(a), CircuitError, "cannot be connected"),
        "source": (lambda c, a: c.step({"b": {}}), UnknownStream, "no source 'b'; its sources are 'a'"),
        "sink": (lambda c, a: c.step()["b"], UnknownStream, "no sink 'b'"),
        "weight": (lambda c, a: c.step({"a": {1: 0.5}}), WeightError, "0.5 is a float"),
        "element": (lambda c, a: c.step({"a": [[1]]}), UnhashableElement, "a list cannot"),
        "no mapping": (lambda c, a: c.step([("a", 1)]), CircuitError, r"mapping \{'a': \.\.\.\}"),  # type: ignore[arg-type]
        "no delta": (
            lambda c, a: c.step({"a": None}),  # type: ignore[dict-item]  # what is refused
            CircuitError,
            "the source 'a' takes elements in a list.*not None",
        ),
        "no body": (lambda c, a: c.recursive(lambda r: None), CircuitError, "recursive needs a stream, not None"),  # type: ignore[arg-type, return-value]
        "sink of another": (lambda c, a: c.sink("x", Circuit().source("z")), CircuitError, r'source "z".*export\(\)'),
        "sink of nothing": (lambda c, a: c.sink("x", a.map), CircuitError, "needs a stream, not <bound"),  # type: ignore[arg-type]
        "limit": (lambda c, a: c.recursive(lambda r: a + r, limit=0), CircuitError, "1 or more, not 0"),
        "key": (lambda c, a: c.source("x", key="id"), CircuitError, "not 'id'"),  # type: ignore[arg-type]
        "measure": (lambda c, a: agg.sum("x"), CircuitError, "not 'x'"),  # type: ignore[arg-type]
        "no size": (lambda c, a: a.index_with(first).aggregate(agg.top_k), CircuitError, "no aggregate"),
        "an index": (lambda c, a: c.step({"a": IndexedZSet()}), CircuitError, "not an IndexedZSet"),
    }


@pytest.mark.parametrize("name", wired_wrongly())
def test_wired_wrongly(name: str) -> None:
    """Each mistake is reported where it is made, with the remedy."""
    build, error, says = wired_wrongly()[name]
    c = Circuit()
    with pytest.raises(error, match=says):
        build(c, c.source("a"))


def test_an_unhashable_result() -> None:
    """A function that makes lists is refused so, with its node."""
    c = Circuit()
    c.sink("out", c.source("a").map(lambda e: [e]))
    with pytest.raises(UnhashableElement, match=r"map \(node 1, .*a list cannot .*write a tuple"):
        c.step({"a": {1: 1}})


def test_nested_recursion_is_built_where_it_is_used() -> None:
    """A recursion in the body of a recursion is a loop in that loop; streams from outside are imported through both."""
    c, a, b = two_sources()
    c.sink("r", c.recursive(lambda r: a + c.recursive(lambda s: r + b + s.map(lambda e: (e[1], e[0])))))
    outer = c.nodes[2].child
    assert outer is not None
    inner = next(node.child for node in outer.nodes if node.child)
    assert (outer.depth, inner.depth) == (1, 2)
    assert c.step({"a": {(1, 2): 1}})["r"] == ZSet({(1, 2): 1, (2, 1): 1})


def test_functions_that_rearrange() -> None:
    """The mark saves the check of the results, and changes nothing else, also where there are typed keys."""
    c, a, _ = two_sources()
    c.sink("out", a.map(rearranges(lambda e: (e[1], e[0]))))
    assert c.step({"a": {(1, 2): 1}})["out"] == ZSet({(2, 1): 1})
    assert c.step({"a": {(True, 2): 1}})["out"] == ZSet({(2, True): 1})
    c, a, _ = two_sources()
    c.sink("out", a.flat_map(rearranges(lambda e: [e, (e[1], e[0]), e])))
    assert c.step({"a": {(1, 2): 1, (2, 1): 1}})["out"] == ZSet({(1, 2): 3, (2, 1): 3})
    mixed = ZSet([((True, 2), 1), ((1, 2), -1)])
    turned = ZSet([((2, True), 1), ((2, 1), -1)])
    assert c.step({"a": mixed})["out"] == mixed + mixed + turned


def test_sinks_of_several_streams() -> None:
    """N inputs give a tuple of N; an indexed one an IndexedZSet."""
    c, a, b = two_sources()
    c.sink("both", a, b.index_with(first))
    assert c.step({"a": {(1, 1): 1}})["both"] == (ZSet({(1, 1): 1}), IndexedZSet())
    assert c.step({"b": {(1, 2): 1}})["both"] == (ZSet(), IndexedZSet({(1, (1, 2)): 1}))


def test_nothing_of_an_engine_is_in_the_nodes() -> None:
    """The circuit is data: two engines run the same one side by side; a graph can be read off it."""
    from syndicate.flow import LocalEngine

    c, a, b = two_sources()
    c.sink("out", a.index_with(first).join(b.index_with(first), ends))
    one, two = LocalEngine(c), LocalEngine(c)
    one.step({"a": {(1, 2): 1}})
    assert one.step({"b": {(1, 5): 1}})["out"] == ZSet({(1, 5): 1})
    assert two.step({"b": {(1, 5): 1}})["out"] == ZSet()
    edges = {(port.node, node.id) for node in c.walk() for port in node.inputs}
    assert edges == {(0, 2), (1, 3), (2, 4), (3, 4), (4, 5)}
    assert pickle.dumps([node.global_id for node in c.walk()])
    assert {node.carries[0] for node in c.nodes if node.carries} == {Carries.ZSET, Carries.INDEXED}


def test_a_mistaken_first_step_does_not_close_the_circuit() -> None:
    """Who gets to know that there is no such source, or that a function fails, can add it, or another, and go on."""
    c = Circuit()
    with pytest.raises(UnknownStream):
        c.step({"x": {1: 1}})
    c.sink("out", c.source("x").map(lambda x: 1 // x))
    with pytest.raises(StepFailed):
        c.step({"x": {0: 1}})
    c.sink("all", c.source("y"))
    assert c.step({"x": {1: 1}, "y": {2: 1}}) == {"out": ZSet({1: 1}), "all": ZSet({2: 1})}
    with pytest.raises(CircuitError, match="the circuit is running"):
        c.source("z")
