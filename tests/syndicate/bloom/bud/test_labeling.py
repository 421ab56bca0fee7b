"""Labels: which outputs order decides over, by which ways (Bud's tc_labeling, which follows Blazes)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from typing import Any

import pytest

from syndicate.bloom import Bloom, agg, bloom, channel, import_module, interface, scratch, table


class Guarded(Bloom):
    """Two inputs, each through a channel into a table."""

    i1, i2 = interface("input"), interface("input")
    c1, c2 = channel(), channel()
    guard1, guard2 = table(["address", "val"]), table(["address", "val"])
    response = interface("output", ["address", "val"])

    @bloom
    def through(self) -> None:
        """As they come."""
        self.c1 < ~self.i1
        self.c2 < ~self.i2
        self.guard1 <= self.c1
        self.guard2 <= self.c2


class Negating(Guarded):
    @bloom
    def respond(self) -> None:
        """Without those of the other."""
        self.response <= self.guard1.notin(self.guard2, "val")


class Grouping(Guarded):
    @bloom
    def respond(self) -> None:
        """How many."""
        self.response <= self.guard1.group(["val"], agg.count())


class Joining(Guarded):
    @bloom
    def respond(self) -> None:
        """Those of both."""
        self.response <= (self.guard1 * self.guard2).lefts("val")


class Deleting(Joining):
    """And some are taken away."""

    dguard = interface("input")
    c3 = channel()

    @bloom
    def delete(self) -> None:
        """By a third channel."""
        self.c3 < ~self.dguard
        self.guard2 < -(self.guard2 * self.c3).lefts("val")


class Nesting(Bloom):
    """The negation as a module."""

    part = import_module(Negating)
    in1, in2 = interface("input"), interface("input")
    response = interface("output", ["address", "val"])

    @bloom
    def wire(self) -> None:
        """Through."""
        self.part.i1 <= self.in1
        self.part.i2 <= self.in2
        self.response <= self.part.response


@pytest.mark.parametrize(
    ("program", "label", "verdict"),
    [
        (Negating, {"", "A", "N", "D"}, "diffluent"),
        (Grouping, {"N", "D"}, "diffluent"),
        (Joining, {"", "A"}, "confluent"),
        (Deleting, {"", "A", "N", "D"}, "diffluent"),
        (Nesting, {"", "A", "N", "D"}, "diffluent"),
    ],
)
def test_labels_of_an_output(program: Any, label: set[str], verdict: str) -> None:
    """Asynchronous, or diffluent: by a negation, an aggregate, a deletion, in a module too.

    Tables are sources here as well, since rows may be inserted into them: their ways have no ``A``.
    """
    result = program().calm()["response"]
    assert (set(result.labels), result.verdict) == (label, verdict)


@pytest.mark.parametrize(
    ("program", "by"), [(Negating, ("c1", "c2")), (Grouping, ("c1",)), (Deleting, ("c2", "c3")), (Joining, ())]
)
def test_what_reaches_the_points_of_order(program: Any, by: tuple[str, ...]) -> None:
    """A point of order names the channels by which order gets in."""
    calm = program().calm()
    assert {name for point in calm.points for name in point.asynchronous} >= set(by)
    assert bool(calm.points) == bool(by)


class Meeting(Bloom):
    """Rows of two channels, as they pass and as they are kept."""

    lchan, rchan = channel(), channel()
    ileft, iright = interface("input", ["address", "val"]), interface("input", ["address", "val"])
    ls, rs = scratch(["address", "val"]), scratch(["address", "val"])
    lt, rt = table(["address", "val"]), table(["address", "val"])
    result = interface("output", ["address", "val"])

    @bloom
    def buffers(self) -> None:
        """Both ways."""
        self.ileft <= self.lchan
        self.iright <= self.rchan
        for passing, one, rows in ((self.ls, self.lt, self.ileft), (self.rs, self.rt, self.iright)):
            passing <= rows
            one <= rows


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [("ls", "rs", "diffluent"), ("lt", "rs", "diffluent"), ("ls", "rt", "diffluent"), ("lt", "rt", "confluent")],
)
def test_rows_that_must_meet(left: str, right: str, verdict: str) -> None:
    """Two channels race for a join unless what comes of both is kept."""

    class Met(Meeting):
        @bloom
        def meet(self) -> None:
            self.result <= (getattr(self, left) * getattr(self, right)).lefts("val")

    calm = Met().calm()
    assert calm["result"].verdict == verdict
    races = [point for point in calm.points if point.rule.head == "result"]
    assert [point.hazard.why for point in races] == (["race"] if verdict == "diffluent" else [])
    assert all({"lchan", "rchan"} & set(point.asynchronous) for point in races)
