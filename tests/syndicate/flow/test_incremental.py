"""Q on whole collections, D.Q.I, and its simplified form: the same at each step."""

from __future__ import annotations

import random
from typing import Any

import pytest

from syndicate.errors import CircuitError
from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.incremental import incremental
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import ends, first, second, two_sources


def closure(c: Circuit, edges: Stream) -> Stream:
    """A loop over a whole collection."""
    changes = edges.differentiate()
    loop = c.recursive(lambda r: changes + r.index_with(second).join(changes.index_with(first), ends))
    return loop.integrate()


def query(rng: random.Random) -> Circuit:
    """A random query over whole collections."""
    c, a, b = two_sources()
    pool = [a, b]
    for _ in range(7):
        x, y = rng.choice(pool), rng.choice(pool)
        pool.append(
            rng.choice(
                (
                    lambda x=x, y=y: x.map(lambda e: (e[1], e[0])) + y,
                    lambda x=x, y=y: x - y,
                    lambda x=x, y=y: x.distinct_stream(),
                    lambda x=x, y=y: x.index_with(first).join_stream(y.index_with(second), ends),
                    lambda x=x, y=y: x.index_with(first).aggregate_stream(agg.count),
                    lambda x=x, y=y: x.z1(),
                    lambda x=x, y=y: x.inspect(lambda batch: None),
                    lambda x=x, y=y: closure(c, x.distinct_stream()),
                    lambda x=x, y=y: x.distinct(),
                )
            )()
        )
    for number, stream in enumerate(pool[2:]):
        c.sink(str(number), stream)
    return c


@pytest.mark.parametrize("seed", range(40))
def test_random_queries(seed: int) -> None:
    """The sums of the changes are what the query gives for the whole collections."""
    rng = random.Random(seed)
    rewrite = incremental(query(rng))
    inputs = {"a": ZSet(), "b": ZSet()}
    literal, simple = ({name: ZSet() for name in rewrite.whole.sinks} for _ in range(2))
    for deltas in circuits.deltas(rng, ["a", "b"], 6):
        inputs = {name: inputs[name] + deltas.get(name, ZSet()) for name in inputs}
        whole = rewrite.whole.step(inputs)
        for sums, circuit in ((literal, rewrite.literal), (simple, rewrite.circuit)):
            out = circuit.step(deltas)
            for name in sums:
                sums[name] += out[name]
                assert sums[name] == whole[name]


def ops(circuit: Circuit) -> list[str]:
    """The operators, without sources and sinks."""
    return [node.op for node in circuit.nodes if node.op not in ("source", "sink")]


def test_rules() -> None:
    """Linear, bilinear and chain rule leave no integral; the rules used are listed."""
    q, a, b = two_sources()
    q.sink("out", a.filter(bool).index_with(first).join_stream(b.index_with(first), ends).distinct_stream())
    rewrite = incremental(q)
    assert ops(rewrite.circuit) == ["filter", "index_with", "index_with", "join", "distinct"]
    assert ops(rewrite.literal).count("integrate") == 2
    assert ops(rewrite.literal)[-1] == "differentiate"
    assert [rule.partition(":")[0] for rule in rewrite.rules].count("linear rule") == 3
    assert any(rule.startswith("bilinear rule: join_stream") for rule in rewrite.rules)


def test_inverse_rule() -> None:
    """A loop between D and I is left alone."""
    q = Circuit()
    q.sink("out", closure(q, q.source("edges")))
    assert ops(incremental(q).circuit) == ["index_with", "loop"]


def test_inspect_sees_whole_collections() -> None:
    """What no rule knows keeps its integral."""
    q = Circuit()
    seen: list[Any] = []
    q.sink("out", q.source("a").inspect(seen.append).map(lambda e: e))
    circuit = incremental(q).circuit
    circuit.step({"a": {1: 1}})
    circuit.step({"a": {2: 1}})
    assert seen == [ZSet({1: 1}), ZSet({1: 1, 2: 1})]


def test_keyed_sources_are_refused() -> None:
    """They make changes, not collections."""
    q = Circuit()
    q.sink("out", q.source("a", key=first))
    with pytest.raises(CircuitError, match="has a key"):
        incremental(q)
    q = Circuit()
    q.sink("out", q.constant({1: 1}))
    with pytest.raises(CircuitError, match="is constant"):
        incremental(q)
