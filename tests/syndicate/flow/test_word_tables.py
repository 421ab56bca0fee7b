"""Tables of words, where kernels run: the same results as by rows, the same errors, and steps that leave no trace."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syndicate.flow.local_engine
import syndicate.flow.word_tables
from syndicate import Symbol, native
from syndicate.errors import StepFailed, SyndicateError
from syndicate.flow import Circuit, ZSet, rearranges
from syndicate.flow import aggregates as agg
from syndicate.flow.aggregates import Total
from syndicate.flow.contents import held
from syndicate.flow.element import Typed, key_of
from syndicate.flow.shape import leaf, row_shape
from syndicate.flow.word_circuit import Tabular
from syndicate.flow.word_tables import Texts, words
from tests.strategies import P, examples
from tests.syndicate.flow.circuits import two_sources
from tests.syndicate.flow.oracle import bag_of, check
from tests.syndicate.flow.test_columnar import circuit, first, second

pytestmark = pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first step on, unless a test says otherwise."""
    monkeypatch.setattr(syndicate.flow.local_engine, "SOME_ROWS", -1)


ALIKE = (0, 1, True, 1.0, -0.0, 0.0, float("nan"), 2.5, "a", "b", b"a", Symbol("a"), None, ("a", 1), ("a", True), P(1))
LARGE = (2**61, 2**62 - 1, 2**62, -(2**62), -(2**62) - 1, 2**64, -(2**80), 3)
PLAIN = (0, 1, 2, 3)
TEXTS = ("a", "b", "c", "")
KINDS: tuple[tuple[Any, ...], ...] = (ALIKE, LARGE, PLAIN, TEXTS)
WEIGHTS = (1, 1, 1, 2, -1)
BUDGETS = (-1, -1, 0, 5, 12, 30, inf)
"""How many rows come before there are tables."""

HUGE = (1, -1, 2**31 - 1, 2**31, -(2**40), 2**70)


def changes(rng: random.Random, steps: int, values: tuple[tuple[Any, ...], ...] = KINDS) -> Iterator[dict[str, Any]]:
    """Changes of two sources, of like elements mostly: as mappings, or as Z-sets, which tell 1 from True."""
    kinds = [(rng.choice(values), rng.choice(values)) for _ in range(rng.choice((1, 1, 2)))]
    weights = HUGE if rng.random() < 0.1 else WEIGHTS
    odd = rng.random() < 0.2
    for _ in range(steps):
        out = {}
        for name in "ab":
            left, right = rng.choice(kinds)
            pairs: list[Any] = [
                ((rng.choice(left), rng.choice(right)), rng.choice(weights)) for _ in range(rng.randrange(9))
            ]
            if odd and rng.random() < 0.2:
                pairs.append(((rng.choice(left), rng.choice(right), 7), 1))
            if pairs:
                out[name] = ZSet(pairs)
        yield out


def by_rows(rng: random.Random, make: Callable[[random.Random], Circuit] = circuit) -> Circuit:
    """The circuit of a seed, as it runs where no kernel does."""
    c = make(rng)
    c.engine.row_budget = inf
    return c


def outcome(c: Circuit, step: dict[str, Any]) -> Any:
    """What a step gives, or the class and text of what it raises."""
    try:
        outputs = c.step(step)
    except SyndicateError as error:
        return type(error), str(error)
    return {name: bag_of(changed) for name, changed in outputs.items()}


def copied(state: Any) -> Any:
    """Nested dictionaries, copied; of totals what they hold, and floats by their identity."""
    if isinstance(state, dict):
        return {key: copied(each) for key, each in state.items()}
    if isinstance(state, tuple):
        return tuple(map(copied, state))
    if isinstance(state, Total):
        return [getattr(state, name) for name in Total.__slots__]
    return key_of(state) if isinstance(state, float) else state


def contents(c: Circuit) -> Any:
    """All that a circuit keeps, in dictionaries."""
    with c.engine.settled():
        survivors = {place: getattr(state, "index", state) for place, state in held(c.engine).items()}
        return copied({place: each for place, each in survivors.items() if isinstance(each, dict)})


class Stop(Exception):
    """Raised when all of a step is done but for its end."""


def fail(_: Any) -> None:
    """What looks at a step's outputs, and lets it fail."""
    raise Stop


def restore_both(ours: Circuit, rows: Circuit) -> None:
    """Each goes on from the other's snapshot, unless it has an element that no snapshot writes."""
    with suppress(SyndicateError):
        ours.restore(rows.snapshot())
        rows.restore(ours.snapshot())


def step_both(ours: Circuit, rows: Circuit, step: Any, rng: random.Random) -> None:
    """Take a step in both, now and then after one that fails in ours: outputs, errors and what is kept are the same."""
    if rng.random() < 0.3:
        before = contents(ours)
        ours.engine.inspect = fail
        with pytest.raises((StepFailed, SyndicateError)):
            ours.step(step)
        ours.engine.inspect = None
        assert contents(ours) == before
    assert outcome(ours, step) == outcome(rows, step)
    if rng.random() < 0.3:
        assert contents(ours) == contents(rows)


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**6))
def test_the_same_as_by_rows(seed: int) -> None:
    """Outputs, errors and what is kept; a step that fails leaves nothing; a snapshot of one is the other's."""
    ours, rows = circuit(random.Random(seed)), by_rows(random.Random(seed))
    rng = random.Random(seed + 1)
    ours.engine.row_budget = rng.choice(BUDGETS)
    for step in changes(rng, 8):
        step_both(ours, rows, step, rng)
        if rng.random() < 0.2:
            try:
                ours.restore(rows.snapshot())
            except SyndicateError:  # an element that no snapshot writes
                continue


SHAPES = (lambda e: (e[1], e[0]), lambda e: (e[0], e[0]), lambda e: (e[1], (e[0], "x")), lambda e: (e, e[0]))
JOINS = (
    lambda key, left, right: (left, right),
    lambda key, left, right: (key, (right, left)),
    lambda key, *_: (key, 1),
)


SEVERAL = (lambda e: [e, (e[1], "x")], lambda e: (("x", "y"), (e[0], e[0]), e), lambda e: iter([(e[1], e[0])]))


def of_tables(rng: random.Random) -> Circuit:
    """A circuit of nothing but what works on words: rearranged, made several, added, joined, made distinct, aggregated,
    in any order, with constants.
    """
    c, *streams = two_sources()
    both = rearranges(rng.choice(JOINS))
    streams.append(streams[0].index_with(first, second).join(streams[1].index_with(second, first), both))
    if rng.random() < 0.3:
        streams.append(c.constant({(1, 2): 1, ("x", 2): 2, (3, 3): -1}))
    for number in range(rng.randrange(5)):
        pairs = rng.choice(streams)
        keyed = pairs.index_with(*rng.choice(((first,), (first, second), (second, first))))
        match rng.randrange(7):
            case 0:
                streams.append(pairs.map(rearranges(rng.choice(SHAPES))))
            case 5:
                streams.append(pairs.flat_map(rearranges(rng.choice(SEVERAL))))
            case 6:
                streams.append(pairs + rng.choice(streams))
            case 1:
                streams.append(pairs.distinct())
            case 2:
                sums = (agg.sum, agg.avg) if pairs in streams[:2] else ()  # of others, any element may be the first
                streams.append(keyed.aggregate(rng.choice((agg.count, agg.min, agg.max, *sums))))
            case _:
                other = rng.choice(streams).index_with(rng.choice((first, second)))
                streams.append(keyed.join(other, rearranges(rng.choice(JOINS))))
        if rng.random() < 0.3:
            c.sink(f"{number}", streams[-1])
    c.sink("out", streams[-1])
    return c


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 10**6))
def test_a_step_in_one_call(seed: int) -> None:
    """Where all nodes work on words a step is one call, which gives what its nodes give one by one, or changes nothing
    where one of them has to take rows; after failures, between steps by nodes, from each other's snapshots, and while
    a source is silent.
    """
    ours, rows = of_tables(random.Random(seed)), by_rows(random.Random(seed), of_tables)
    rng = random.Random(seed + 1)
    ours.engine.row_budget = rng.choice(BUDGETS)
    begin = {name: rng.choice((0, 0, 4, 8, 12)) for name in "ab"}
    for number, whole in enumerate(changes(rng, 12, (PLAIN, PLAIN, TEXTS, LARGE))):
        step = {name: change for name, change in whole.items() if number >= begin[name]}
        if rng.random() < 0.2:
            ours.watch(on=rng.random() < 0.3)
        step_both(ours, rows, step, rng)
        if rng.random() < 0.1:
            restore_both(ours, rows)


def test_what_takes_one_call() -> None:
    """A circuit whose nodes all work on words, once all have begun; none with a function that does more."""
    c, a, b = two_sources()
    pairs = a.index_with(first, second).join(b.index_with(first, second), rearranges(lambda key, *both: both))
    c.sink("out", pairs.distinct())
    c.sink("counts", pairs.index_with(first, second).aggregate(agg.count))
    for step in ({"a": {(1, 2): 1}}, {"b": {(1, 3): 1, (2, 3): 1}}):
        c.step(step)
        assert not takes_one_call(c)
    changed = c.step({"a": {(1, 2): -1, (1, 5): 1, (2, 2): 1}})
    assert changed["out"] == ZSet({(2, 3): 0, (5, 3): 1})
    assert changed["counts"] == ZSet({(5, 1): 1, (2, 1): 0})
    assert takes_one_call(c)
    c.step({"b": {(1, 3): 2**40}})  # as rows
    assert not takes_one_call(c)
    c, a, _ = two_sources()
    c.sink("out", a.filter(lambda pair: pair[0] > 1).distinct())
    c.step()
    assert tables_of(c).pipeline is None


def test_a_source_that_is_silent_is_left_out() -> None:
    """What was read beside it takes one call; from when it says something it is there, also from a snapshot."""
    c, a, b = two_sources()
    c.sink("one", (a + b).distinct())
    c.sink("both", a.index_with(first, second).join(b.index_with(first, second), rearranges(lambda k, x, y: (x, y))))
    for number in range(3):
        assert c.step({"a": [(1, number)]})["one"] == ZSet({(1, number): 1})
    assert takes_one_call(c)
    copy, *sources = two_sources()
    copy.sink("one", (sources[0] + sources[1]).distinct())
    keyed = [each.index_with(first, second) for each in sources]
    copy.sink("both", keyed[0].join(keyed[1], rearranges(lambda k, x, y: (x, y))))
    copy.restore(c.snapshot())
    for each in (c, copy):
        assert each.step({"b": [(1, 2), (1, 3)]})["one"] == ZSet({(1, 3): 1})
        each.step({"b": [(2, 2)]})
        assert each.step({"a": [(2, 1)]})["both"] == ZSet({(1, 2): 1})
        assert takes_one_call(each)
        assert each.step({"b": [(1, 2)]})["both"] == ZSet({(number, 2): 1 for number in range(3)})


def test_what_gives_several_beside_constants_and_what_passes() -> None:
    """It takes one call, with sources that sinks alone read."""
    c, a, b = two_sources()
    places = a.flat_map(rearranges(lambda row: [("all", "rows"), ("first", row[0])])) + c.constant({("all", "rows"): 1})
    c.sink("counts", places.index_with(rearranges(lambda place: place)).aggregate(agg.count))
    c.sink("as of", b)
    c.sink("too", b)
    first = c.step({"a": {("x", 1): 1}, "b": {"monday": 1}})
    assert first["counts"] == ZSet({(("all", "rows"), 2): 1, (("first", "x"), 1): 1})
    later = c.step({"a": {("x", 2): 1, ("y", 3): 1}, "b": {"monday": -1, "tuesday": 1}})
    assert takes_one_call(c)
    assert later["counts"].batch.items() >= {(("all", "rows"), 2): -1, (("all", "rows"), 4): 1}.items()
    assert later["as of"] == later["too"] == ZSet({"monday": -1, "tuesday": 1})
    assert c.step({"b": {"tuesday": -1}})["as of"] == ZSet({"tuesday": -1})
    assert takes_one_call(c)


@pytest.mark.parametrize("seed", range(60))
def test_the_same_as_from_scratch(seed: int) -> None:
    """After each step, the outputs add up to a batch recomputation."""
    rng = random.Random(seed)
    steps = [step for step in changes(rng, 8) if all(abs(w) < 3 for zset in step.values() for _, w in zset.items())]
    check(circuit(rng), [{n: z for n, z in step.items() if all(len(e) == 2 for e in z)} for step in steps])


def takes_one_call(c: Circuit) -> bool:
    """Whether a circuit has taken its last step in one call."""
    pipeline = tables_of(c).pipeline
    return pipeline is not None and pipeline.stages is not None


def tables_of(c: Circuit) -> Tabular:
    """The tables of a circuit that takes such."""
    assert c.engine.tables is not None
    return c.engine.tables


def join() -> Circuit:
    """A join of two sources on their first parts."""
    c, a, b = two_sources()
    joined = rearranges(lambda key, left, right: (key, left, right))
    c.sink("out", a.index_with(first, second).join(b.index_with(first, second), joined))
    return c


def test_what_a_small_step_enters() -> None:
    """A change of both sides of a join, and all it gives: a dozen functions of Python, whatever comes."""
    c = join()
    for value in range(3):
        c.step({"a": {(1, value): 1}, "b": {(1, value): 1}})
    assert takes_one_call(c)
    entered: list[str] = []
    delta = {"a": {(1, 7): 1, (2, 7): 1}, "b": {(1, 8): 1, (2, 8): 1}}
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        results = dict(c.step(delta)["out"].items())
    finally:
        sys.setprofile(None)
    assert len(results) == 8
    assert len(entered) <= 12, entered


@pytest.mark.parametrize("size", [1, 15, 16, 17, 18, 200])
def test_groups_of_any_size(size: int) -> None:
    """Values are added to a key, changed and taken out, in any order."""
    c, rng = join(), random.Random(size)
    values = list(range(size))
    expected: dict[int, int] = {}
    c.step({"b": {(7, "x"): 1}})
    for _ in range(8):
        delta = {(7, value): rng.choice((1, 2, -1)) for value in rng.sample(values, rng.randrange(size) + 1)}
        for _, value in rng.sample(sorted(delta), len(delta) // 2):
            delta[7, value] = -expected.get(value, -1)
        out = dict(c.step({"a": delta})["out"].items())
        assert out == {(7, value, "x"): weight for (_, value), weight in delta.items()}
        for (_, value), weight in delta.items():
            expected[value] = expected.get(value, 0) + weight
        expected = {value: weight for value, weight in expected.items() if weight}
        assert dict(c.step({"b": {(7, "y"): 1}})["out"].items()) == {(7, v, "y"): w for v, w in expected.items()}
        c.step({"b": {(7, "y"): -1}})


def test_what_is_no_table_goes_by_rows() -> None:
    """An element that looks otherwise; from there on the node keeps dictionaries, and loses nothing."""
    c = join()
    c.step({"a": {(1, "x"): 1}, "b": {(1, "y"): 1}})
    assert [len(keeper) for _, keeper in tables_of(c).keepers] == [1, 1]
    out = c.step({"a": {(1, "z", 3): 1}})["out"]
    assert dict(out.items()) == {(1, "z", "y"): 1}
    assert [len(keeper) for _, keeper in tables_of(c).keepers] == [0, 0]
    assert dict(c.step({"b": {(1, "w"): 1}})["out"].items()) == {(1, "x", "w"): 1, (1, "z", "w"): 1}


def test_a_weight_of_more_than_32_bits() -> None:
    """It goes by rows, and is exact."""
    c = join()
    c.step({"a": {(1, "x"): 2**31 - 1}})
    out = c.step({"b": {(1, "y"): 2**31 - 1}})["out"]
    assert dict(out.items()) == {(1, "x", "y"): (2**31 - 1) ** 2}
    assert dict(c.step({"a": {(1, "x"): 2**31 - 1}})["out"].items()) == {(1, "x", "y"): (2**31 - 1) ** 2}


def test_sums_beyond_64_bits() -> None:
    """They go by rows, and are exact."""
    c = Circuit()
    c.sink("sum", c.source("a").index_with(first, second).aggregate(agg.sum))
    c.step({"a": {("k", 2**61): 1}})
    assert dict(c.step({"a": {("k", 2**61 - 1): 3}})["sum"].items()) == {("k", 2**61): -1, ("k", 2**63 - 3): 1}


def test_what_nobody_has_is_forgotten() -> None:
    """Texts that have come and gone take no room, and those that are there, or in what somebody kept, do."""
    c = join()
    out = c.step({"a": {(1, "kept"): 1}, "b": {(1, "there"): 1}})["out"]
    c.step({"a": {(1, "kept"): -1}})
    for at in range(40):
        rows = {(at, f"{at} {number}"): 1 for number in range(500)}
        c.step({"a": rows})
        c.step({"a": dict.fromkeys(rows, -1)})
    assert len(tables_of(c).texts.words) < 16_000
    assert dict(out.items()) == {(1, "kept", "there"): 1}
    assert dict(c.step({"a": {(1, "new"): 1}})["out"].items()) == {(1, "new", "there"): 1}


def test_nothing_is_kept() -> None:
    """Rows that come and go leave neither objects nor memory behind."""
    c = join()

    def once() -> None:
        rows = {(number % 50, f"t{number}"): 1 for number in range(1000)}
        c.step({"a": rows, "b": rows})
        c.step({"a": dict.fromkeys(rows, -1), "b": dict.fromkeys(rows, -1)})

    for _ in range(10):
        once()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20):
        once()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 100_000
    assert [len(keeper) for _, keeper in tables_of(c).keepers] == [0, 0]


class Loud:
    """Equal to its like, of which there may be none when it is asked at the wrong time."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.quiet = True

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        if not self.quiet:
            raise ValueError("asked")
        return isinstance(other, Loud) and self.number == other.number


def test_an_element_that_raises_when_it_is_compared() -> None:
    """The step fails, as by rows, and leaves no trace."""
    c = join()
    one, other = Loud(1), Loud(2)
    c.step({"a": {(one, 1): 1}, "b": {(Loud(1), 2): 1}})
    other.quiet = one.quiet = False
    with pytest.raises(StepFailed, match="asked"):
        c.step({"a": {(other, 3): 1}})
    one.quiet = other.quiet = True
    assert dict(c.step({"b": {(Loud(1), 5): 1}})["out"].items()) == {(one, 1, 5): 1}


@given(st.lists(st.sampled_from(ALIKE + LARGE), max_size=6))
def test_words_are_identity(parts: list[Any]) -> None:
    """Two elements are one if and only if their keys are equal, and come back as they were."""
    kernel = words(key_of, Typed, [Symbol])
    assert kernel is not None
    texts = Texts(kernel)
    parts = [part for part in parts if part is not None]
    table = kernel.table([(part, 1) for part in parts], texts.shape(leaf(0)), leaf(0))
    assert table is not None
    back = texts.elements(table, leaf(0))
    assert list(map(repr, back)) == list(map(repr, parts))
    double = kernel.gathered([(table, [0])] * 2, leaf(0)).consolidated([0], leaf(0))
    assert len(double) == len(set(map(key_of, parts)))
    assert kernel.table([(None, 1)], texts.shape(leaf(0)), leaf(0)) is None
    assert kernel.table([((1, 2, 3), 1)], texts.shape(row_shape(2)), row_shape(2)) is None


@given(st.lists(st.tuples(*[st.sampled_from((*ALIKE[:-3], *LARGE, 9000, 9001))] * 3), max_size=200), st.randoms())
@settings(max_examples=examples(40))
def test_elements_come_back_however_many_parts_recur(rows: list[Any], rng: random.Random) -> None:
    """Whether a part is that of the row before or not, and however they are read; no reference is lost or kept."""
    kernel = words(key_of, Typed, [Symbol])
    assert kernel is not None
    texts = Texts(kernel)
    rows = [row for row in rows for _ in range(rng.choice((1, 1, 2, 70)))][:300]
    weights = [rng.choice((1, -1, 3)) for _ in rows]
    thing = str(["a thing"])
    rows = [(thing, *row) for row in rows if None not in row]
    weights = weights[: len(rows)]
    table = kernel.table(list(zip(rows, weights, strict=True)), texts.shape(row_shape(4)), row_shape(4))
    assert table is not None
    pairs = {(thing, number // 3, number): 1 + number % 2 for number in range(200)}
    once = kernel.table(list(pairs.items()), texts.shape(row_shape(3)), row_shape(3))
    assert once is not None
    expected = [(row[2], "x", (row[0], (row[3],), row[2])) for row in rows]
    before = sys.getrefcount(thing)
    nested = table.shaped((leaf(2), "x", (leaf(0), (leaf(3),), leaf(2))), False)
    assert list(map(repr, texts.each(table))) == list(map(repr, rows))
    assert list(map(repr, texts.words.items(nested, texts.shape(nested.shape)))) == list(
        map(repr, zip(expected, weights, strict=True))
    )
    some = [(pair, repr(pair)) for pair in texts.words.items(nested, texts.shape(nested.shape)) if rng.random() < 0.5]
    assert [repr(pair) for pair, _ in some] == [text for _, text in some]
    assert list(map(repr, list(texts.words.items(nested, texts.shape(nested.shape))))) == list(
        map(repr, zip(expected, weights, strict=True))
    )
    plain = (leaf(1), leaf(2))
    for shaped in (table, nested, table.shaped(plain, False), once):
        elements, count = [], 0
        for element, _weight in texts.words.items(shaped, texts.shape(shaped.shape)):
            assert gc.is_tracked(element) or all(type(part) in (int, str) for part in element)
            count += 1
            if rng.random() < 0.3:
                elements.append((element, repr(element)))
        assert count == len(shaped)
        assert [repr(element) for element, _ in elements] == [text for _, text in elements], "each as it was"
    del some, elements
    element = None  # which else has the thing
    numbered = table.shaped(leaf(0), False)
    assert all(
        hash(pair) == hash((pair[0], pair[1])) for pair in texts.words.items(numbered, texts.shape(numbered.shape))
    ), "none of the one before"
    assert list(map(repr, texts.elements(table, leaf(1)))) == [repr(row[1]) for row in rows]
    assert texts.batch(once) == pairs
    assert sys.getrefcount(thing) == before


def test_the_specification_is_rows() -> None:
    """Where no kernel runs there are no words."""
    assert native.specifications["words"](key_of, Typed, []) is None  # type: ignore[operator]


def test_a_change_of_two_sides_makes_no_row_twice() -> None:
    """Each row of the product comes once, whatever of a key changes on both sides."""
    rng = random.Random(3)
    c = join()
    facts: dict[str, dict[Any, int]] = {"a": {}, "b": {}}
    for _ in range(60):
        step = {}
        for name, there in facts.items():
            delta = {(rng.randrange(3), rng.randrange(6)): rng.choice((1, 2, -1)) for _ in range(rng.randrange(6))}
            step[name] = delta
            for pair, weight in delta.items():
                there[pair] = there.get(pair, 0) + weight
        results = list(c.step(step)["out"].items())
        assert len({row for row, _ in results}) == len(results)
        assert all(weight for _, weight in results)


@pytest.mark.parametrize("keys", [2, 40, 4000])
@pytest.mark.parametrize("seed", range(3))
def test_joins_of_many_rows_in_long_and_short_chains(keys: int, seed: int) -> None:
    """What a step gives is the change of the whole product: from the first load on, until all is gone."""
    rng = random.Random(seed)
    c = join()
    there: dict[str, dict[Any, int]] = {"a": {}, "b": {}}
    shown: dict[Any, int] = {}
    for size in (300, 0, 1, 31, 32, 33, 150, 400, -1):
        step = {}
        for name, rows in there.items():
            fresh = {(rng.randrange(keys), rng.randrange(60)): rng.choice((1, 1, 2, -1)) for _ in range(abs(size))}
            gone = rng.sample(sorted(rows), min(len(rows), size // 3)) if size > 0 else list(rows) if size else []
            step[name] = change = {**({} if size < 0 else fresh), **{row: -rows[row] for row in gone}}
            for row, weight in change.items():
                rows[row] = rows.get(row, 0) + weight
                if not rows[row]:
                    del rows[row]
        for row, weight in c.step(step)["out"].items():
            shown[row] = shown.get(row, 0) + weight
        rights: dict[Any, list[Any]] = {}
        for (key, value), weight in there["b"].items():
            rights.setdefault(key, []).append((value, weight))
        assert {row: weight for row, weight in shown.items() if weight} == {
            (key, one, other): weight * more
            for (key, one), weight in there["a"].items()
            for other, more in rights.get(key, ())
        }
    assert [len(keeper) for _, keeper in tables_of(c).keepers] == [0, 0]


@pytest.mark.parametrize("keys", [3, 100])
@pytest.mark.parametrize("sides", [("a",), ("b",), ("a", "b"), ("b", "a")])
@pytest.mark.parametrize("most", [2, 2**17, 2**31 - 1])
def test_a_first_load_of_either_side(keys: int, sides: tuple[str, ...], most: int) -> None:
    """Stopped, done again, and followed by the other side and by both: what is given and kept is as by rows, also where
    weights, or products of them, are too large for a table.
    """
    rng = random.Random(keys + most)
    ours, rows = selves(), selves()
    rows.engine.row_budget = inf
    for names in (sides, ("a", "b"), ("b",), ("a", "b")):
        step = {
            name: {(rng.randrange(keys), rng.randrange(200)): rng.choice((1, -1, most)) for _ in range(60)}
            for name in names
        }
        before = contents(ours)
        ours.engine.inspect = fail
        with pytest.raises(StepFailed):
            ours.step(step)
        ours.engine.inspect = None
        assert contents(ours) == before
        assert outcome(ours, step) == outcome(rows, step)
        assert contents(ours) == contents(rows)


def selves() -> Circuit:
    """Two sources joined with each other, and one with itself."""
    c, a, b = two_sources()
    joined = rearranges(lambda key, left, right: (key, left, right))
    left, right = a.index_with(first, second), b.index_with(first, second)
    c.sink("both", left.join(right, joined))
    c.sink("self", left.join(left, joined))
    return c


NUMBERS = (0, 1, -1, 2.5, -0.0, 0.0, 1.0, 1e300, -1e300, float("nan"), float("inf"), 2**62, -(2**70), 2**53 + 1)
MEASURES: tuple[Sequence[Any], ...] = (
    range(-40, 40),
    NUMBERS,
    ("a", "", "é", "\U0001f600", "ab"),
    (b"a", b"", b"\xff"),
    ALIKE,
)
RANKINGS = (agg.min, agg.max, agg.min(first), agg.max(second), agg.max(lambda pair: pair[1]))
SUMS = (agg.avg, agg.sum, agg.count, agg.avg(second))


def aggregated(rng: random.Random) -> Circuit:
    """Aggregates of all forms over values that are columns, or pairs of such, also over aggregates."""
    c = Circuit()
    source = c.source("a")
    groups = [source.index_with(first, second), source.index_with(second, first), source.index_with(first)]
    for number in range(4):
        at = rng.randrange(3)
        forms = [form for form in RANKINGS + SUMS if (form.by is None) == (at < 2)]
        results = groups[at].aggregate(rng.choice(forms))
        c.sink(f"{number}", results)
        c.sink(f"{number} over", results.index_with(second, first).aggregate(rng.choice((agg.min, agg.max))))
    return c


def of_some(rng: random.Random, steps: int) -> Iterator[dict[str, Any]]:
    """Changes of a source of pairs, in groups of up to some hundred values, which mostly are of one kind."""
    keys: tuple[Any, ...] = rng.choice(((1,), (1, 2, 3), ("x", 2.5, True)))
    kinds: list[Sequence[Any]] = [rng.choice(MEASURES)]
    if rng.random() < 0.2:
        kinds.append(rng.choice(MEASURES))
    if rng.random() < 0.4:
        kinds.append(range(1000))
    there: dict[Any, int] = {}
    for _ in range(steps):
        delta: list[tuple[Any, int]] = []
        if rng.random() < 0.5:
            gone = sorted(there, key=lambda pair: repr(pair[1]), reverse=rng.random() < 0.5)[: rng.choice((1, 2, 90))]
            delta += [(pair, -there[pair]) for pair in gone]
        values = rng.choice(kinds)
        delta += [
            ((rng.choice(keys), rng.choice(values)), rng.choice(WEIGHTS)) for _ in range(rng.choice((1, 3, 9, 120)))
        ]
        for pair, weight in delta:
            there[pair] = there.get(pair, 0) + weight
        there = {pair: weight for pair, weight in there.items() if weight}
        yield {"a": ZSet(delta)}


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**6))
def test_aggregates_as_by_rows(seed: int) -> None:
    """Outputs, errors and what is kept, in groups of all sizes; after failures, and from each other's snapshots."""
    ours = aggregated(random.Random(seed))
    rows = by_rows(random.Random(seed), aggregated)
    rng = random.Random(seed + 1)
    ours.engine.row_budget = rng.choice(BUDGETS)
    for step in of_some(rng, 12):
        step_both(ours, rows, step, rng)
        if rng.random() < 0.15:
            restore_both(ours, rows)


@pytest.mark.parametrize("values", [range(400), [f"{n:03}" for n in range(400)], [n / 8 for n in range(400)]])
def test_a_queue_of_the_best(values: Any) -> None:
    """A large group from which the best is taken again and again, while others come: each time the next one."""
    c = Circuit()
    c.sink("best", c.source("a").index_with(first, second).aggregate(agg.min))
    rng = random.Random(1)
    waiting = rng.sample(list(values), len(values))
    there = {waiting.pop() for _ in range(200)}
    c.step({"a": {("q", value): 1 for value in there}})
    while len(there) > 1:
        best = min(there)
        there.remove(best)
        step = {("q", best): -1}
        if waiting and rng.random() < 0.6:
            there.add(waiting[-1])
            step["q", waiting.pop()] = 1
        expected = {("q", best): -1, ("q", min(there)): 1} if min(there) != best else {}
        assert dict(c.step({"a": step})["best"].items()) == expected
    assert [len(keeper) for _, keeper in tables_of(c).keepers] == [1]


@pytest.mark.parametrize("form", [agg.min, agg.max, agg.avg])
def test_aggregates_keep_words(form: Any) -> None:
    """Integers, and of these forms but the last floats and texts, are aggregated without dictionaries."""
    for values in ((3, 1, 2), *(((2.5, 1, 7.0), ("a", "b", "c")) if form is not agg.avg else ())):
        c = Circuit()
        c.sink("out", c.source("a").index_with(first, second).aggregate(form))
        c.step({"a": {("k", value): 1 for value in values}})
        assert [len(keeper) > 0 for _, keeper in tables_of(c).keepers] == [True]
