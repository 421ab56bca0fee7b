"""Snapshots: what goes on from one is what would have gone on without, here and in another process."""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate.errors import (
    CircuitError,
    SnapshotDamaged,
    SnapshotError,
    SnapshotMismatch,
    StepFailed,
    UnwritableElement,
)
from syndicate.flow import Circuit, Stream, ZSet
from syndicate.flow import aggregates as agg
from syndicate.flow.element import key_of
from syndicate.flow.encoding import decoded, encoded
from syndicate.flow.snapshot import register
from syndicate.values.record import record
from syndicate.values.value import Dictionary, Record, Symbol, ValueSet
from tests.hashes import printed
from tests.strategies import examples
from tests.syndicate.flow import circuits
from tests.syndicate.flow.circuits import AGGREGATES, first, second, two_sources
from tests.syndicate.flow.oracle import form


def mixture(rng: random.Random) -> Circuit:
    """One of every thing that keeps something at the root."""
    c, a, b = two_sources()
    c.sink("late", a.z1(), b.index_with(first).z1())
    c.sink("total", a.integrate())
    c.sink("change", b.index_with(first).differentiate())
    trace = a.trace_append()
    c.sink("trace", trace.consolidate(), b.index_with(second).join_trace(a.index_with(first).untimed_trace_append()))
    c.sink("seen", a.distinct_trace(trace.z1_trace()), a.distinct_incremental(trace.z1_trace()))
    for aggregate in AGGREGATES:
        c.sink(str(aggregate), b.index_with(first).aggregate(aggregate))
    c.sink("few", a.index_with(first, second).distinct().join(b.index_with(second)))
    return c


def by_hand(rng: random.Random) -> Circuit:
    """A loop wired of traces, with integrals and derivatives in it."""
    c, a, _ = two_sources()
    loop = c.child("by hand")
    back = loop.feedback()
    inner = loop.bring(a) + back
    trace = inner.trace_append()
    fresh = inner.distinct_trace(trace.z1_trace())
    back.connect(fresh.map(lambda e: (e[0], e[1] + 1)).filter(lambda e: e[1] < 6))
    c.sink("out", loop.export(fresh), loop.export(fresh.differentiate().integrate()))
    return c


BUILDS: list[Callable[[random.Random], Circuit]] = [
    circuits.flat, circuits.monotone, circuits.levelled, circuits.nested, circuits.nested_levelled, mixture, by_hand
]  # fmt: skip


def shown(out: Any) -> Any:
    """What a step gave, so that 1, 1.0 and True differ."""
    if isinstance(out, tuple):
        return [shown(part) for part in out]
    return {form(element): weight for element, weight in out.items()}


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from(BUILDS), st.integers(0, 10**6), st.integers(0, 9), st.booleans())
def test_restored_goes_on_as_before(build: Any, seed: int, at: int, alike: bool) -> None:
    """Random circuits, restored after a random step into a fresh circuit and into one that has run: nothing differs."""
    if build in (circuits.levelled, circuits.nested_levelled, by_hand, mixture):
        alike = False  # they count with their elements
    steps = list(circuits.deltas(random.Random(seed), ["a", "b"], 10, alike=alike))
    straight, fresh, used = (build(random.Random(seed)) for _ in range(3))
    for deltas in steps[:at]:
        straight.step(deltas)
    for deltas in circuits.deltas(random.Random(seed + 1), ["a", "b"], 3):
        used.step(deltas)
    data = straight.snapshot()
    fresh.restore(data)
    used.restore(data)
    assert fresh.snapshot() == data == used.snapshot()
    for deltas in steps[at:]:
        out = straight.step(deltas)
        for other in (fresh, used):
            again = other.step(deltas)
            assert {name: shown(out[name]) for name in straight.sinks} == {
                name: shown(again[name]) for name in straight.sinks
            }


@pytest.mark.parametrize("seed", range(10))
def test_restored_at_every_step(seed: int) -> None:
    """A circuit that is replaced by its snapshot after each step gives what one gives that is left alone."""
    rng = random.Random(seed)
    build = rng.choice(BUILDS)
    straight, current = build(random.Random(seed)), build(random.Random(seed))
    for deltas in circuits.deltas(rng, ["a", "b"], 8):
        data = current.snapshot()
        current = build(random.Random(seed))
        current.restore(data)
        out, again = straight.step(deltas), current.step(deltas)
        assert {name: shown(out[name]) for name in straight.sinks} == {
            name: shown(again[name]) for name in straight.sinks
        }
    assert current.engine.epoch == straight.engine.epoch == 8


def test_upserts_and_large_groups() -> None:
    """A table by key, and a group that is large enough to be ranked, go on."""

    def build() -> Circuit:
        c = Circuit()
        rows = c.source("rows", key=first)
        c.sink("best", rows.index_with(lambda row: 0).aggregate(agg.max(second)))
        c.sink("three", rows.index_with(lambda row: row[0] % 2).aggregate(agg.top_k(3, second)))
        return c

    rng = random.Random(1)
    one, two = build(), build()
    one.step({"rows": [(n, rng.randrange(1000)) for n in range(300)]})
    two.step({"rows": [(n, n) for n in range(200)]})
    two.restore(one.snapshot())
    for _ in range(50):
        change = {rng.randrange(300): None if rng.random() < 0.7 else (rng.randrange(300), rng.randrange(1000))}
        change = {key: None if row is None else (key, row[1]) for key, row in change.items()}
        out, again = one.step({"rows": change}), two.step({"rows": change})
        assert dict(out) == dict(again)
    assert one.snapshot() == two.snapshot()


# ------------------------------------------------------------------------------------------------------------- elements


@record("snapshot-point")
class Point:
    """A record class."""

    x: Any
    y: Any


class Colour(enum.Enum):
    """Something that snapshots do not know."""

    RED = 1
    BLUE = 2


KINDS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**63, 2**64, -(2**200), 1.0, 0.0, -0.0, 1.5, float("nan"), float("inf")),
    *("", "ä\ud800", b"", b"\x00\xff", (), ((),), (1, (True, 1.0)), Symbol("s"), Record("r", [1, Symbol("x")])),
    Point(1, Point(2, ())),
    *(Point([1, {"a": {2}}], bytearray(b"x")), frozenset({1, "a"}), ValueSet([1, True]), Record.labelled("text", [1])),
    *(Dictionary([(1, "a"), (True, 2)]), (frozenset(), (Symbol("deep"), 2**70)), Decimal("1.10"), Decimal("NaN")),
    *(Fraction(1, 3), UUID(int=7), dt.date(2026, 11, 21), dt.time(1, 2, 3, 4), dt.timedelta(-1, 2, 3)),
    *(dt.datetime(2026, 1, 1, fold=1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),  # noqa: DTZ001  # a naive one, too
    dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"), fold=1),
]  # fmt: skip


@pytest.mark.parametrize("element", KINDS)
def test_each_kind_of_element(element: Any) -> None:
    """An element comes back as the same value of the same type, alone and within a tuple."""
    for whole in (element, (element, "in", (element,))):
        (back,) = decoded(encoded([whole]))
        assert type(back) is type(whole)
        assert repr(back) == repr(whole)
        if not isinstance(element, Decimal) or not element.is_nan():
            assert key_of(back) == key_of(whole)


def test_look_alikes_stay_apart() -> None:
    """1, 1.0, True, the zeros and nan are as many elements after as before, in sets, groups and indices."""

    def build() -> Circuit:
        c = Circuit()
        s = c.source("s")
        c.sink("set", s.distinct())
        c.sink("counts", s.index_with(first).aggregate(agg.count))
        c.sink("joined", s.index_with(first).join(s.index_with(second)))
        c.sink("latest", s.index_with(lambda e: 0, first).aggregate(agg.user(tuple)))
        return c

    one, two = build(), build()
    one.step({"s": ZSet.of(*[(x, y) for x in circuits.ALIKE for y in circuits.ALIKE])})
    two.restore(one.snapshot())
    delta = {"s": ZSet(dict.fromkeys([(1, True), (1.0, -0.0), (True, 1), (float("nan"), 0.0)], -1))}
    out, again = one.step(delta), two.step(delta)
    assert {name: repr(shown(out[name])) for name in out} == {name: repr(shown(again[name])) for name in again}


def test_natural_elements_reach_the_functions() -> None:
    """A function of the restored circuit sees a frozenset, not another kind of set."""
    seen: list[Any] = []

    def look(key: Any, left: Any, right: Any) -> Any:
        seen.append((left, right))
        return key

    def build() -> Circuit:
        c = Circuit()
        s = c.source("s")
        c.sink("out", s.index_with(lambda e: 1).join(s.index_with(lambda e: 1), look))
        return c

    one, two = build(), build()
    one.step({"s": {(frozenset({1}), Point(1, [2])): 1}})
    two.restore(one.snapshot())
    seen.clear()
    two.step({"s": {("new", Decimal("1.0")): 1}})
    kinds = {type(part) for pair in seen for element in pair for part in element}
    assert kinds == {frozenset, Point, str, Decimal}
    assert Point(1, [2]).y == next(e[1] for pair in seen for e in pair if isinstance(e[1], Point)).y == [2]


def set_of(name: str = "") -> Circuit:
    """A small circuit."""
    c = Circuit()
    c.sink("out", c.source("s").distinct().named(name))
    return c


def test_an_unknown_type_is_named_with_its_node() -> None:
    """What cannot be written is an error that says of what type it is and which node keeps it; registering mends it."""
    one, two = set_of("colours"), set_of("colours")
    one.step({"s": {(1, Colour.RED): 1}})
    with pytest.raises(
        UnwritableElement, match=r'distinct "colours" \(node 1\): .* cannot hold a Colour: .*RED.*register'
    ):
        one.snapshot()
    register(Colour, "test colour", lambda colour: colour.name, lambda name: Colour[name])
    two.restore(one.snapshot())
    assert dict(two.step({"s": {(1, Colour.RED): 1, (1, Colour.BLUE): 1}})) == {"out": ZSet({(1, Colour.BLUE): 1})}


class Level(enum.IntEnum):
    """Something that is an integer and more."""

    LOW = 1


class Pair(NamedTuple):
    """Something that is a tuple and more."""

    left: int
    right: int


@pytest.mark.parametrize("element", [Level.LOW, Pair(1, 2), (1, (Pair(1, 2),)), object()])
def test_nothing_is_taken_for_its_base_class(element: Any) -> None:
    """Instances of subclasses would come back as something else, so they are refused like other unknown types."""
    with pytest.raises(UnwritableElement, match=r"cannot hold a (Level|Pair|object)"):
        encoded([element])


def test_registering_wrongly() -> None:
    """A name that is taken, a type that is known."""
    with pytest.raises(UnwritableElement, match="'Decimal' is taken"):
        register(Point, "Decimal", str, str)
    with pytest.raises(UnwritableElement, match="know int already"):
        register(int, "number", str, int)
    with pytest.raises(UnwritableElement, match="needs a class"):
        register("Point", "point", str, str)  # type: ignore[arg-type]  # the mistake


def test_a_name_that_nobody_registered() -> None:
    """A snapshot with a type that only the writing process knew says so."""
    data = encoded([(Decimal(1),)]).replace(b"Decimal", b"Unheard")
    with pytest.raises(SnapshotMismatch, match="'Unheard': register it"):
        decoded(data)


def test_a_record_class_that_is_another() -> None:
    """A record's class must be the one that was written."""
    data = encoded([Point(1, 2)])
    with pytest.raises(SnapshotMismatch, match="of the class Paint, but here that is the class Point"):
        decoded(data.replace(b"\xa5Point", b"\xa5Paint"))
    with pytest.raises(SnapshotMismatch, match="no such class here"):
        decoded(data.replace(b"snapshot-point", b"snapshot-paint"))


# --------------------------------------------------------------------------------------------------- what does not fit


def grown(name: str = "") -> Circuit:
    """The small circuit with something in it."""
    c = set_of(name)
    c.step({"s": ZSet.of(*range(100))})
    return c


def sealed(frames: list[Any], version: int = 1) -> bytes:
    """A snapshot with any frames, as who means ill would make it."""
    packed = [msgpack.packb(frame) for frame in frames]
    body = b"".join(struct.pack(">I", len(frame)) + frame for frame in packed)
    head = struct.pack(">8sHQ", b"PomoFlow", version, len(body))
    return head + hashlib.blake2b(head + body, digest_size=16).digest() + body


def opened(data: bytes) -> list[Any]:
    """The frames of a snapshot."""
    at, frames = 34, []
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        frames.append(msgpack.unpackb(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return frames


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_damaged_bytes_never_restore(data: st.DataObject) -> None:
    """Bytes flipped, cut, inserted or doubled: an error, and the circuit stays as it is."""
    whole = bytearray(SOUND)
    how = data.draw(st.sampled_from(["flip", "cut", "insert", "double", "zero"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    if how == "flip":
        whole[at] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del whole[at:]
    elif how == "insert":
        whole[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    elif how == "double":
        whole += whole[at:]
    else:
        end = at + data.draw(st.integers(1, 99))
        if not any(whole[at:end]):
            whole[0] = 0
        whole[at:end] = bytes(len(whole[at:end]))
    with pytest.raises(SnapshotError):
        KEPT.restore(bytes(whole))
    assert KEPT.snapshot() == SOUND


KEPT = grown()
SOUND = KEPT.snapshot()
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**63) | st.text(max_size=4) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_forged_frames_never_break_anything(data: st.DataObject) -> None:
    """With a digest that fits, a frame that is not one is still one of the errors, or else a circuit that runs."""
    frames = opened(SOUND)
    number = data.draw(st.integers(0, len(frames) - 1))
    place = frames[number]
    if data.draw(st.booleans()):
        frames[number] = data.draw(junk)
    else:
        place[data.draw(st.integers(0, len(place) - 1))] = data.draw(junk)
    c = grown()
    before = c.snapshot()
    try:
        c.restore(sealed(frames))
    except SnapshotError:
        assert c.snapshot() == before
    else:
        c.snapshot()


def test_promised_sizes_are_not_believed() -> None:
    """Frames that claim billions of entries cost nothing."""
    c = Circuit()
    c.sink("t", c.source("s").untimed_trace_append().consolidate())
    c.step({"s": {1: 1}})
    frames = opened(c.snapshot())
    place = next(n for n, frame in enumerate(frames) if frame[2:3] == ["trace"])
    for content in (
        [[1], [2**40], None, [1], [0], [1]],
        [[1], [1], None, [2**40], [0], [1]],
        [[1], [-1], None, [1], [0], [1]],
    ):
        frames[place + 1] = content
        with pytest.raises(SnapshotDamaged):
            c.restore(sealed(frames))
    frames[place][-1] = 2**60
    with pytest.raises(SnapshotDamaged, match="ends too early"):
        c.restore(sealed(frames[: place + 1]))
    deep: Any = b"\x91" * 400 + b"\xc0"
    data = sealed([])
    body = struct.pack(">I", len(deep)) + deep
    head = data[:10] + struct.pack(">Q", len(body))
    with pytest.raises(SnapshotDamaged):
        c.restore(head + hashlib.blake2b(head + body, digest_size=16).digest() + body)


def test_what_is_no_snapshot() -> None:
    """Other bytes, other things, another version."""
    c = set_of()
    with pytest.raises(SnapshotDamaged, match="no snapshot of a circuit"):
        c.restore(b"PK" + bytes(100))
    with pytest.raises(SnapshotDamaged, match="is bytes, not str"):
        c.restore("text")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(SnapshotMismatch, match="of format 2, and this library reads format 1"):
        c.restore(sealed(opened(SOUND), version=2))


OTHERS: dict[str, tuple[Callable[[Stream], Stream], str]] = {
    "operator": (lambda s: s.index_with(first).distinct().pairs(), r"saved was \[1 distinct\(0\)\]"),
    "name": (
        lambda s: s.distinct().named("mine"),
        r'saved was \[1 distinct\(0\)\], here is \[1 distinct "mine"\(0\)\]',
    ),
    "function": (lambda s: s.map(second), r"here is \[1 map\(0\) function=second\]"),
    "wiring": (lambda s: s.distinct() + s.z1(), r"here is \[3 plus\(1, 2\)\]"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_circuit_is_distinguished(name: str) -> None:
    """The message shows the lines that differ."""
    change, message = OTHERS[name]
    c = Circuit()
    c.sink("out", change(c.source("s")))
    with pytest.raises(SnapshotMismatch, match=message):
        c.restore(SOUND)
    assert c.engine.epoch == 0


def test_another_constant_is_another_circuit() -> None:
    """What a circuit holds of its own belongs to its structure, in whatever order it was written."""

    def build(zset: ZSet) -> Circuit:
        c = Circuit()
        c.sink("out", c.constant(zset).distinct())
        return c

    one = build(ZSet({"a": 1, "b": 2}))
    one.step()
    build(ZSet({"b": 2, "a": 1})).restore(one.snapshot())
    with pytest.raises(SnapshotMismatch, match="2 elements"):
        build(ZSet({"b": 1, "a": 1})).restore(one.snapshot())


def test_only_the_root_is_restored_and_only_between_steps() -> None:
    """A loop has no snapshot of its own, and a callback cannot take one."""
    c = Circuit()
    loop = c.child()
    with pytest.raises(CircuitError, match="belongs to the root"):
        loop.restore(SOUND)
    c.sink("out", c.source("s").inspect(lambda batch: c.snapshot()))
    with pytest.raises(StepFailed, match="within a step"):
        c.step({"s": {1: 1}})


@pytest.mark.parametrize("restored", [False, True])
def test_an_interrupted_circuit_and_snapshots(restored: bool) -> None:
    """An interrupt within a step leaves no trace in a snapshot, and none behind one that is restored."""
    c = Circuit()
    armed = [False]

    def interrupt(element: Any) -> Any:
        if armed[0]:
            raise KeyboardInterrupt
        return element

    s = c.source("s")
    c.sink("out", s.distinct().index_with(first).join(s.index_with(first)).map(interrupt))
    c.step({"s": {(1, 2): 1}})
    data = c.snapshot()
    armed[0] = True
    with pytest.raises(KeyboardInterrupt):
        c.step({"s": {(1, 3): 1}})
    assert c.snapshot() == data
    armed[0] = False
    if restored:
        c.restore(data)
    assert len(c.step({"s": {(1, 3): 1}})["out"]) == 3
    assert c.engine.epoch == 2


# ------------------------------------------------------------------------------------------------------ size, processes


def test_size_is_proportional_to_the_state() -> None:
    """Ten times the state is ten times the bytes; what was deleted leaves none."""
    sizes = []
    for count in (1000, 10_000):
        c = Circuit()
        s = c.source("s")
        c.sink("out", s.index_with(first).join(s.index_with(second)))
        c.sink("set", s.distinct())
        empty = len(c.snapshot())
        c.step({"s": ZSet({(n, n + 1): 1 for n in range(count)})})
        sizes.append(len(c.snapshot()) - empty)
        c.step({"s": ZSet({(n, n + 1): -1 for n in range(count)})})
        assert len(c.snapshot()) <= empty + 10
    assert 9 < sizes[1] / sizes[0] < 12
    assert sizes[1] / 30_000 < 16  # bytes for each entry


CARRIED_ON: dict[str, Callable[[random.Random], Circuit]] = {
    "monotone": circuits.monotone, "levelled": circuits.levelled, "nested": circuits.nested, "mixture": mixture
}  # fmt: skip
PROGRAM = """
import random, sys
from pathlib import Path
from tests.syndicate.flow.test_snapshot import CARRIED_ON, written
c = CARRIED_ON[sys.argv[1]](random.Random(7))
c.restore(Path(sys.argv[2]).read_bytes())
print("\\n".join(written(c)))
"""


def written(c: Circuit) -> list[str]:
    """A line for each of the last six steps of twelve, the same whatever the order of dictionaries."""
    lines = []
    for deltas in list(circuits.deltas(random.Random(7), ["a", "b"], 12))[6:]:
        out = c.step(deltas)
        parts = {sink: out[sink] if isinstance(out[sink], tuple) else (out[sink],) for sink in sorted(c.sinks)}
        lines.append(repr([(sink, [sorted(map(repr, part.items())) for part in parts[sink]]) for sink in parts]))
    return lines


@pytest.mark.parametrize("name", CARRIED_ON)
def test_another_process_goes_on(name: str, tmp_path: Path) -> None:
    """Two processes with other hash seeds restore the same bytes, and give what this one gives."""
    c = CARRIED_ON[name](random.Random(7))
    for deltas in list(circuits.deltas(random.Random(7), ["a", "b"], 12))[:6]:
        c.step(deltas)
    saved = tmp_path / "saved"
    saved.write_bytes(c.snapshot())
    here = written(c)
    assert len(set(here)) > 1
    for hashes in (1, 2):
        assert printed(hashes, "-c", PROGRAM, name, str(saved)).splitlines() == here
