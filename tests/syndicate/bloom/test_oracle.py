"""Random programs with random inputs have, at every tick, the rows that their definition gives."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.errors import KeyConflict, Unstratifiable
from tests.strategies import examples
from tests.syndicate.bloom.naive import Cyclic, KeyClash, Naive, Rows
from tests.syndicate.bloom.programs import KINDS, give, program, random_rules


def random_input(rng: random.Random) -> dict[tuple[str, str], Rows]:
    """Rows given from outside for one tick."""
    inputs: dict[tuple[str, str], Rows] = {}
    for name, kind in KINDS.items():
        for op in {"table": ("<+", "<-"), "keyed": ("<+-", "<-"), "scratch": ("<+",)}[kind]:
            if rng.random() < 0.35:
                some = {(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randrange(1, 3))}
                inputs[name, op] = frozenset({row[0]: row for row in some}.values() if kind == "keyed" else some)
    return inputs


@settings(max_examples=examples(250))
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    """All operators and expressions, with deletions, for eight ticks."""
    rng = random.Random(seed)
    rules = random_rules(rng)
    naive = Naive(KINDS, rules)
    try:
        naive.levels()
    except Cyclic:
        with pytest.raises(Unstratifiable):
            program(rules)()
        return
    p = program(rules)(address="elsewhere")
    for _ in range(8):
        inputs = random_input(rng)
        give(p, inputs)
        p.sent.clear()
        before = {name: set(p.collection(name)) for name in KINDS}
        try:
            wanted = naive.tick(inputs)
        except KeyClash:
            with pytest.raises(KeyConflict):
                p.tick()
            assert {name: set(p.collection(name)) for name in KINDS} == before
            p.discard()
            try:
                wanted = naive.tick({})
            except KeyClash:
                return
        p.tick()
        for name in KINDS:
            assert set(p.collection(name)) == wanted[name], (name, [str(rule) for rule in p.statements])
        assert {row for _, _, row in p.sent} == naive.sent
