"""Random circuits and random changes, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow import aggregates as agg
from syndicate.lattice import Max, Set
from tests.syndicate.flow.oracle import form

ALIKE = (0, 1, True, 1.0, -0.0, 0.0, float("nan"), 2)


def deltas(
    rng: random.Random, names: list[str], steps: int, *, negative: bool = False, alike: bool = False
) -> Iterator[dict[str, ZSet]]:
    """Inserts and deletes of pairs.

    With *negative*, also of what is not there; with *alike*, of values that ``==`` mixes up.
    """
    present: dict[str, dict[Any, tuple[Any, int]]] = {name: {} for name in names}
    values = ALIKE if alike else range(4)
    for _ in range(steps):
        out = {}
        for name in names:
            facts, delta = present[name], []
            for _ in range(0 if rng.random() < 0.3 else rng.randrange(5)):
                if facts and rng.random() < 0.45:
                    element, weight = facts.pop(rng.choice(list(facts)))
                    delta.append((element, -1))
                    if weight > 1:
                        facts[form(element)] = (element, weight - 1)
                    continue
                element = (rng.choice(values), rng.choice(values))
                if negative and rng.random() < 0.3:
                    delta.append((element, -1))
                    continue
                facts[form(element)] = (element, facts.get(form(element), (element, 0))[1] + 1)
                delta.append((element, 1))
            if delta:
                out[name] = ZSet(delta)
        yield out


def first(pair: Any) -> Any:
    """A key."""
    return pair[0]


def second(pair: Any) -> Any:
    """Another key."""
    return pair[1]


def ends(key: Any, left: Any, right: Any) -> Any:
    """A path of two edges."""
    return (left[0], right[1])


def others(key: Any, left: Any, right: Any) -> Any:
    """What a join may also make."""
    return (left[1], right[0])


def weighed(total: Any, value: Any, weight: int) -> Any:
    """Two sums that any value has: of the lengths of its text, and of their squares."""
    size = len(repr(value))
    return (total[0] + size * weight, total[1] + size * size * weight)


def odd_total(total: Any) -> Any:
    """A total as it is shown: not at all, for some."""
    return None if total[0] % 5 == 4 else total


def written(value: Any) -> Any:
    """A text of any value, None for some."""
    return None if value == (0, 0) else repr(value)


LINEAR = agg.linear(weighed, (0, 0), odd_total)
AGGREGATES = (
    agg.count, agg.sum(second), agg.avg(second), agg.min(second), agg.max(second), agg.top_k(2), agg.user(len), LINEAR,
    agg.lattice(Max)(written), agg.lattice(Set),
)  # fmt: skip
KEYS: tuple[Callable[[Any], Any], ...] = (first, second)

UNARY: tuple[Callable[[Stream], Stream], ...] = (
    lambda s: s.map(lambda e: (e[1], e[0])),
    lambda s: s.map(lambda e: (e[0], e[0])),
    lambda s: s.filter(lambda e: e[0] != e[1]),
    lambda s: s.flat_map(lambda e: [e, (e[1], e[0])]),
    Stream.distinct,
    Stream.distinct,
    lambda s: s.index_with(first).pairs().map(second),
    lambda s: s.index_with(first, second).distinct().pairs(),
    lambda s: s.index_with(second).values(),
)
BINARY: tuple[Callable[[Stream, Stream, random.Random], Stream], ...] = (
    lambda a, b, rng: a.index_with(rng.choice(KEYS)).join(b.index_with(rng.choice(KEYS)), rng.choice((ends, others))),
    lambda a, b, rng: a.index_with(second).join(b.index_with(first), ends),
    lambda a, b, rng: a + b,
    lambda a, b, rng: a.index_with(rng.choice(KEYS)).semijoin(b.index_with(rng.choice(KEYS))),
    lambda a, b, rng: (a + b).distinct(),
)
SIGNED: tuple[Callable[[Stream, Stream, random.Random], Stream], ...] = (
    lambda a, b, rng: a - b,
    lambda a, b, rng: a.index_with(first).antijoin(b.index_with(second)),
    lambda a, b, rng: -a,
    lambda a, b, rng: a.distinct().antijoin(b),
    lambda a, b, rng: a.index_with(first).aggregate(agg.count),
    lambda a, b, rng: a.index_with(first).left_join(b.index_with(first), lambda k, x, y: (k, 0 if y is None else y[1])),
    lambda a, b, rng: a.index_with(first).full_join(b.index_with(second), lambda k, x, y: (k, (x or y)[1])),
)


def grown(rng: random.Random, streams: list[Stream], count: int, *, signed: bool) -> list[Stream]:
    """More streams of the given ones."""
    pool = list(streams)
    for _ in range(count):
        kind = rng.random()
        if kind < 0.4:
            pool.append(rng.choice(UNARY)(rng.choice(pool)))
        elif kind < 0.75 or not signed:
            pool.append(rng.choice(BINARY)(rng.choice(pool), rng.choice(pool), rng))
        else:
            pool.append(rng.choice(SIGNED)(rng.choice(pool), rng.choice(pool), rng))
    return pool


def two_sources() -> tuple[Circuit, Stream, Stream]:
    """A circuit with the sources a and b."""
    c = Circuit()
    return c, c.source("a"), c.source("b")


def flat(rng: random.Random) -> Circuit:
    """No loop."""
    c, a, b = two_sources()
    pool = grown(rng, [a, b], 6, signed=True)
    if rng.random() < 0.5:
        pool.append(pool[-1].z1() + pool[2])
    for number, stream in enumerate(pool[-4:]):
        c.sink(str(number), stream)
    return c


def monotone(rng: random.Random) -> Circuit:
    """Two collections that depend on each other by joins, unions and set operators."""
    c, a, b = two_sources()
    fixed = a.antijoin(b) if rng.random() < 0.5 else b

    def bodies(r: dict[str, Stream]) -> dict[str, Stream]:
        pool = grown(rng, [a, fixed, r["p"], r["q"]], 5, signed=False)
        blocked = pool[-1].index_with(first).antijoin(b.index_with(second)) if rng.random() < 0.3 else pool[-1]
        return {"p": blocked + a, "q": pool[-2] + b}

    for name, stream in c.recursive_many(["p", "q"], bodies).items():
        c.sink(name, stream)
    return c


def up(stream: Stream, limit: int = 6) -> Stream:
    """A counter that ends a loop, whatever is in it."""
    return stream.map(lambda e: (e[0] + 1, e[1])).filter(lambda e: e[0] < limit)


def turned(stream: Stream) -> Stream:
    """Other elements of the same level."""
    return stream.map(lambda e: (e[0], (e[1] + 1) % 4))


def unsteady(rng: random.Random, r: Stream, other: Stream) -> Stream:
    """Something in a loop that may shrink while the loop grows."""
    aggregate = rng.choice(AGGREGATES[:5])
    return rng.choice(
        (
            lambda: r.antijoin(other),
            lambda: r.antijoin(turned(r)),
            lambda: r - turned(r) + other,
            lambda: r.index_with(first).aggregate(aggregate).map(lambda e: (e[0], int(e[1]) % 4)) + other,
            lambda: r.index_with(first).join(other.index_with(first), ends),
        )
    )()


def levelled(rng: random.Random) -> Circuit:
    """A loop with negation and aggregates in it, which ends since each turn goes a level up."""
    c, a, b = two_sources()
    c.sink("r", c.recursive(lambda r: a + up(unsteady(rng, r, b))))
    return c


def nested(rng: random.Random) -> Circuit:
    """A loop in a loop."""
    c, a, b = two_sources()

    def body(r: Stream) -> Stream:
        pool = grown(rng, [a, b, r, r], 2, signed=False)
        inner = c.recursive(lambda s: grown(rng, [b, r, s, s, pool[-1]], 3, signed=False)[-1] + pool[-1] + a)
        return inner + pool[-1]

    c.sink("r", c.recursive(body))
    return c


def nested_levelled(rng: random.Random) -> Circuit:
    """A loop in a loop, with negation and aggregates in both."""
    c, a, b = two_sources()

    def body(r: Stream) -> Stream:
        inner = c.recursive(lambda s: a + up(unsteady(rng, s, up(r))) + up(r))
        return b + up(unsteady(rng, inner, up(turned(r))))

    c.sink("r", c.recursive(body))
    return c
