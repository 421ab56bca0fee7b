"""Random programs with lattices have, at every tick, the rows and values that their definition gives."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syndicate.errors import KeyConflict, Unstratifiable
from tests.strategies import examples
from tests.syndicate.bloom.lattice_programs import CELLS, KINDS, MERGED, merged_rows, program, random_rules, value
from tests.syndicate.bloom.naive import Cyclic, KeyClash, Naive
from tests.syndicate.bloom.programs import give


def random_input(rng: random.Random) -> dict[tuple[str, str], Any]:
    """What is given from outside for one tick."""
    inputs: dict[tuple[str, str], Any] = {}
    for name, kind in KINDS.items():
        if rng.random() > 0.3:
            continue
        if kind == "cell":
            inputs[name, "<+"] = value(CELLS[name], rng.randrange(4) if name != "cb" else rng.random() < 0.3)
            continue
        op = rng.choice({"table": ("<+", "<-"), "keyed": ("<+-", "<-"), "scratch": ("<+",)}[kind])
        if name in MERGED:
            op = rng.choice(("<+", "<+", op))
        some: list[tuple[int, Any]] = [(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randrange(1, 3))]
        if name in MERGED:
            some = [(key, value(MERGED[name], one)) for key, one in some]
        inputs[name, op] = frozenset(dict(some).items() if kind == "keyed" else some)
    return inputs


def state(p: Any) -> dict[str, Any]:
    """All rows and values."""
    return {name: p.collection(name).value if name in CELLS else set(p.collection(name)) for name in KINDS}


@settings(max_examples=examples(150))
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
@example(seed=1000678, declared=False, semi_naive=True)  # wiring again for one collection finds lattices in another
def test_random_programs(seed: int, declared: bool, semi_naive: bool) -> None:
    """Joins, negation, groups, deletions, deferred rules, lattices, morphisms and what is not, for eight ticks."""
    rng = random.Random(seed)
    rules = random_rules(rng)
    joins: dict[str, Any] = {name: lambda old, new: merged_rows(frozenset([*old, *new])) for name in MERGED}
    joins |= {name: lambda old, new: old.merge(new) for name in CELLS}
    naive = Naive(KINDS, rules, joins, {name: cls.bottom() for name, cls in CELLS.items()})
    try:
        naive.levels()
    except Cyclic:
        if declared:  # otherwise, only lattice values that turn up in a tick make it so
            with pytest.raises(Unstratifiable):
                program(rules, declared=declared)()
        return
    try:
        p = program(rules, declared=declared)(address="elsewhere", semi_naive=semi_naive)
    except Unstratifiable:  # of a column of which nobody says what it holds, the worst is thought
        assert not declared
        return
    for _ in range(8):
        inputs = random_input(rng)
        give(p, inputs)
        p.sent.clear()
        before = state(p)
        try:
            wanted = naive.tick(inputs)
        except KeyClash:
            with pytest.raises(KeyConflict):
                p.tick()
            assert state(p) == before
            p.discard()
            try:
                wanted = naive.tick({})
            except KeyClash:
                return
        p.tick()
        assert state(p) == {n: one if n in CELLS else set(one) for n, one in wanted.items()}, "\n".join(
            map(str, p.statements)
        )
        assert {row for _, _, row in p.sent} == naive.sent
