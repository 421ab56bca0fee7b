"""An expression that stands in no rule is refused with its place; what may be meant is let be."""

# ruff: noqa: B015, B018, F841  # the mistakes are the point
# mypy: ignore-errors

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from syndicate.bloom import Bloom, bloom, import_module, join, lmax, scratch, table, values
from syndicate.errors import IllegalRule

quick = False


class Inner(Bloom):
    """To be imported."""

    kept = table(["x"], [])


class Collections(Bloom):
    """Some of each kind."""

    a = table(["x"], [])
    b = table(["x"], [])
    out = table(["x"], [])
    s = scratch(["x"], [])
    top = lmax()
    inner = import_module(Inner)

    def helped(self, rows: Any) -> Any:
        """What a block may do in a function of its own."""
        return rows.filter(lambda r: r.x)


class Mistakes:
    """Each is refused, with the line that says so."""

    def a_branch_that_is_no_rule(self: Any) -> None:
        self.out <= self.a if quick else self.b  # here

    def the_branch_that_was_not_taken(self: Any) -> None:
        self.out <= self.a if not quick else self.b  # here

    def a_branch_of_a_local(self: Any) -> None:
        got = self.b.map(lambda r: (r.x,))
        self.out <= self.a if quick else got  # here

    def a_branch_that_is_made(self: Any) -> None:
        self.out <= self.a if quick else self.b.map(lambda r: (r.x,))  # here

    def a_pair(self: Any) -> None:
        self.out <= self.a, self.b  # here

    def a_product(self: Any) -> None:
        self.a * self.b  # here

    def mapped(self: Any) -> None:
        self.out <= self.a
        self.a.map(lambda r: r)  # here

    def over_lines(self: Any) -> None:
        (
            self.a.filter(lambda r: True)  # here
            .notin(self.b)
            .map(lambda r: r)
        )

    def a_collection(self: Any) -> None:
        self.a  # here

    def a_column(self: Any) -> None:
        self.a.x  # here

    def an_equality(self: Any) -> None:
        self.out <= self.a
        self.a.x == self.b.x  # here

    def of_a_module(self: Any) -> None:
        self.inner.kept.map(lambda r: r)  # here

    def a_lattice(self: Any) -> None:
        self.top.gt(3)  # here

    def a_sign(self: Any) -> None:
        -self.a  # here

    def given_rows(self: Any) -> None:
        values((1,), (2,))  # here

    def joined(self: Any) -> None:
        join([self.a, self.b], [self.a.x, self.b.x])  # here

    def a_local(self: Any) -> None:
        got = self.a.map(lambda r: r)
        got.filter(lambda r: r.x)  # here

    def nobody_reads_it(self: Any) -> None:
        got = join([self.a, self.b], [self.a.x, self.b.x])  # here

    def nobody_reads_it_though_it_has_a_type(self: Any) -> None:
        got: Any = self.a.map(lambda r: r)  # here

    def in_a_branch(self: Any) -> None:
        for one in (self.a, self.b):
            if not quick:
                one.map(lambda r: r)  # here
            else:
                self.out <= one

    def in_a_list(self: Any) -> None:
        [one.map(lambda r: r) for one in (self.a, self.b)]  # here

    def never_run(self: Any) -> None:
        (self.out <= one for one in (self.a, self.b))  # here


class Meant:
    """None is refused."""

    def used_later(self: Any) -> None:
        got = join([self.a, self.b], [self.a.x, self.b.x])
        more = got.map(lambda a, b: a)
        self.out <= more

    def one_of_two(self: Any) -> None:
        fast, slow = self.a.map(lambda r: r), self.b.map(lambda r: r)
        self.out <= (fast if quick else slow)

    def one_of_two_names(self: Any) -> None:
        fast = self.a.map(lambda r: r)
        slow = self.b.map(lambda r: r)
        self.out <= (fast if quick else slow)

    def two_rules(self: Any) -> None:
        self.out <= self.a if quick else self.out <= self.b

    def a_rule_or_nothing(self: Any) -> None:
        self.out <= self.a if quick else None
        quick and self.out <= self.b

    def in_a_list(self: Any) -> None:
        [self.out <= one for one in (self.a, self.b)]

    def a_definition(self: Any) -> None:
        self.s.define(self.a)

    def a_helper(self: Any) -> None:
        got = self.helped(self.a)
        self.helped(self.a)
        self.out <= got

    def in_a_function(self: Any) -> None:
        def rows() -> Any:
            return self.a.map(lambda r: r)

        self.out <= rows()

    def for_nobody(self: Any) -> None:
        _ = self.a.map(lambda r: r)

    def something_else(self: Any) -> None:
        one = self.a
        one = [1]
        one.append(2)
        print(end="")

    def a_trailing_comma(self: Any) -> None:
        (self.out <= self.a,)


def functions(cls: type) -> list[Callable[[Any], None]]:
    """Its methods."""
    return [one for name, one in vars(cls).items() if not name.startswith("_")]


@pytest.mark.parametrize("block", functions(Mistakes), ids=lambda one: one.__name__)
def test_what_is_refused(block: Any) -> None:
    """With the line, whichever branch is taken, in an inherited and in an imported program alike."""
    lines = inspect.getsource(block).splitlines()
    marked = next(at for at, line in enumerate(lines) if line.endswith("# here"))
    place = f"{__file__}:{block.__code__.co_firstlineno + marked}: "
    subclass = type("Made", (Collections,), {"rules": bloom(block)})
    importing = type("Importing", (Bloom,), {"one": import_module(subclass)})
    for program in (subclass, type("Below", (subclass,), {}), importing, subclass):
        with pytest.raises(IllegalRule) as caught:
            program()
        assert str(caught.value).startswith(place)


@pytest.mark.parametrize("block", functions(Meant), ids=lambda one: one.__name__)
def test_what_is_not(block: Any) -> None:
    """Neither by what is written nor by what is run."""
    type("Made", (Collections,), {"rules": bloom(block)})()


@pytest.mark.parametrize("source", [inspect.getsource(Mistakes.joined).replace("joined", "mapped"), "def mapped(", ""])
def test_a_source_that_is_not_what_runs(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has been edited since, or that is not there, says nothing of the block."""
    monkeypatch.setattr(inspect, "getsource", lambda one: source)
    type("Made", (Collections,), {"rules": bloom(Mistakes.mapped)})()
