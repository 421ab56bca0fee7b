"""Fields and dataflow blocks in kernels beside the Python that specifies them: the same runs, in the same order."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from syndicate import (
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    field,
    native,
    on_asserted,
    on_message,
    on_retracted,
    on_stop,
    prevent_inert_check,
    react,
    run,
    send,
    spawn,
    stop,
    stop_actor,
    sync,
)
from syndicate.actors.field import Field
from syndicate.actors.pending_call import enter
from syndicate.native import specifications
from syndicate.values.value import Ref
from tests.strategies import P

built = pytest.mark.skipif(native.library is None, reason=native.DESCRIPTION)

VALUES: list[Any] = [0, 1, 1.0, True, None, -2, 2**70, "1", b"1", [1], (1,), P("x"), {1}, 2.5, [P([2])]]
"""Values of all kinds: some are equal and not the same, some may have changed inside."""


class Stumbles(Exception):
    """What is raised in blocks and calls."""


class Program:
    """A small random program of fields, blocks and computed assertions, and what is seen in it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seen: list[object] = []
        self.loops = seed % 30 == 7
        self.fields: list[Field[Any]] = []

    def block(self, number: int, reads: list[int], target: int | None) -> None:
        """A block that reads fields, one of them only at times, and sets another."""

        def flow() -> None:
            values = [self.fields[at].value for at in reads if at != 1 or self.fields[0].value]
            self.seen.append(("block", number, repr(values)))
            if target is not None:
                more = 1 + len(self.seen) if self.loops else 0
                self.fields[target].value = (number + more + len(repr(values))) % (10**9 if self.loops else 5)
            if number == 3 and len(values) > 1 and values[0] == 2**70:
                raise Stumbles(number)

        dataflow(flow)

    def shown(self, ds: Ref, number: int, reads: list[int]) -> None:
        """An assertion of what fields hold."""

        def compute() -> Any:
            values = [self.fields[at].value for at in reads]
            return None if values[0] is None else ["shown", number, [repr(value) for value in values]]

        assertion = assert_(ds, compute)
        if self.chance.random() < 0.2:
            on_message(ds, ["leave", number])(assertion.retract)

    def inner(self, ds: Ref) -> None:
        """A facet that a block of its own stops."""
        facet = current_facet()
        on_stop(lambda: self.seen.append(("stops", self.fields[0].value)))
        assert_(ds, lambda: ["shown", 9, [repr(self.fields[0].value)]])
        dataflow(lambda: stop(facet) if self.fields[0].value == "1" else None)

    def change(self, at: int, which: int) -> None:
        """Set one field, or two; or say that one has changed."""
        self.seen.append(("set", at, which))
        self.fields[at % len(self.fields)].value = VALUES[which]
        if which == 5:
            self.fields[(at + 1) % len(self.fields)].value = VALUES[at]
        if which == 9 and at == 2:
            self.fields[0].changed()

    def call(self, at: int, which: int) -> None:
        """Set a field in a call, which is undone if it raises."""

        def called() -> int:
            self.fields[at % len(self.fields)].value = VALUES[which]
            if which % 2:
                raise Stumbles(which)
            return which

        enter(current_facet(), called, lambda result, error: self.seen.append(("called", result, repr(error))))

    def flows(self, ds: Ref) -> None:
        """The actor that all of it is in."""
        chance, count = self.chance, self.chance.randrange(2, 6)
        self.fields = [field(chance.choice(VALUES), f"field {at}") for at in range(count)]
        for number in range(chance.randrange(1, 6)):
            reads = chance.sample(range(count), chance.randrange(1, count + 1))
            others = [at for at in range(count) if self.loops or at not in reads]
            self.block(number, reads, chance.choice([None, *others]))
        for number in range(chance.randrange(1, 4)):
            self.shown(ds, number, chance.sample(range(count), chance.randrange(1, count + 1)))
        react(lambda: self.inner(ds))
        on_message(ds, ["set", capture(), capture()])(self.change)
        on_message(ds, ["call", capture(), capture()])(self.call)

    def looks(self, ds: Ref) -> None:
        """An actor that sees what is shown."""
        for sign, install in (("+", on_asserted), ("-", on_retracted)):
            install(ds, ["shown", capture(), capture()])(partial(self.note, sign))

    def note(self, sign: str, number: int, text: object) -> None:
        """Something has come or gone."""
        self.seen.append((sign, number, text))

    def boot(self) -> None:
        """Begin, and say what happens when."""
        ds = dataspace()
        spawn(self.looks, ds)
        spawn(self.flows, ds, name="flows")
        self.say(ds, 12, prevent_inert_check())

    def say(self, ds: Ref, left: int, end: Callable[[], None]) -> None:
        """Send so many messages, each when all before is handled."""
        if not left:
            end()
        else:
            verb = self.chance.choice(["set", "set", "set", "call", "leave"])
            more = [self.chance.randrange(len(VALUES))] if verb != "leave" else []
            send(ds, [verb, self.chance.randrange(4), *more])
            if self.chance.random() < 0.3:
                send(ds, ["set", self.chance.randrange(4), self.chance.randrange(len(VALUES))])
            sync(ds, lambda: sync(ds, lambda: self.say(ds, left - 1, end)))


def flowing(seed: int) -> list[object]:
    """What is seen in a program until it ends or crashes."""
    program = Program(seed)
    try:
        run(program.boot)
    except BaseException as error:
        program.seen.append(repr(error))
    return program.seen


def as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the specifications run, where kernels do."""
    read, write = specifications["read_field"], specifications["write_field"]
    monkeypatch.setattr(Field, "value", property(read, write))  # type: ignore[arg-type]  # they are functions
    monkeypatch.setattr("syndicate.actors.system.take_turns", specifications["take_turns"])
    monkeypatch.setattr("syndicate.actors.system.take_all", specifications["take_all"])
    for module in ("actor", "pending_call"):
        monkeypatch.setattr(f"syndicate.actors.{module}.settle_facets", specifications["settle_facets"])


@built
@pytest.mark.parametrize("part", range(8))
def test_fields_flow_alike(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks that set fields, blocks that stop facets, calls that are undone, and loops without end."""
    monkeypatch.setattr("syndicate.actors.dataflow.LIMIT", 300)
    seeds = range(part * 15, part * 15 + 15)
    native_side = [flowing(seed) for seed in seeds]
    as_python(monkeypatch)
    assert native_side == [flowing(seed) for seed in seeds]
    assert sum(map(len, native_side)) > 200


@built
def test_kernels_keep_nothing_of_what_flows() -> None:
    """Thousands of changes leave each value with the references that it had."""
    values: list[Any] = ["kept" * 9, 10**9, [1, 2], P("x"), 2.5]
    gc.collect()
    before = [sys.getrefcount(value) for value in values]

    def boot() -> None:
        ds, count = dataspace(), field(0)
        level: Field[Any] = field(0)
        assert_(ds, lambda: ["level", level.value])
        dataflow(lambda: level.value)

        @on_message(ds, "next")
        def change() -> None:
            level.value = values[count.value % len(values)]
            count.value += 1
            if count.value < 5_000:
                send(ds, "next")
            else:
                stop_actor()

        send(ds, "next")

    run(boot)
    gc.collect()
    assert [sys.getrefcount(value) for value in values] == before
