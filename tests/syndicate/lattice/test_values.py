"""Lattice values as values: identity, immutability, definitions, in a dataspace, in a snapshot, in a Z-set."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import Record, Symbol, assert_, capture, dataspace, on_asserted, record, run, spawn, stop_actor
from syndicate.errors import LatticeDefinition, LatticeMismatch, LatticeValue
from syndicate.flow import Circuit, ZSet
from syndicate.flow.element import key_of
from syndicate.flow.encoding import decoded, encoded
from syndicate.lattice import (
    LATTICES,
    Bag,
    Bool,
    Clock,
    DomPair,
    LastWriter,
    Lattice,
    Map,
    Max,
    Pair,
    Set,
    join,
    revive,
)
from syndicate.values.value import freeze, identical, thaw
from tests.syndicate.lattice.strategies import STRATEGIES

anything = st.one_of(*STRATEGIES.values())
NAMES = "lbool lmax lmin lset lpset lbag lmap lpair ldom lclock llww"


def test_wrapper_names() -> None:
    """The keywords of the contract, and ours beyond it, name the classes."""
    assert {LATTICES[name].wrapper_name for name in NAMES.split()} == set(NAMES.split())


@given(anything, anything)
def test_equal_values_are_one_value(a: Lattice, b: Lattice) -> None:
    """Equality, hash and identity in Z-sets and dataspaces agree, where the value can be asserted at all."""
    assert (a == b) is (key_of(a) == key_of(b))
    assert a != b or hash(a) == hash(b)
    try:
        same = identical(a, b)
    except TypeError:  # None is an element, but no value
        return
    assert same is (a == b)


@given(anything)
def test_roundtrips(value: Lattice) -> None:
    """A value comes back from pickle, a snapshot and, if it can be asserted, a dataspace; copies are itself."""
    assert pickle.loads(pickle.dumps(value)) == value
    assert decoded(encoded([(1, value)])) == ((1, value),)
    assert copy.deepcopy(value) is copy.copy(value) is value
    try:
        form = freeze(("row", value))
    except TypeError:
        return
    assert revive(thaw(form)) == ("row", value)


def test_frozen_form() -> None:
    """In a dataspace a value is the record of its lattice's name, and a bottom has no field."""
    assert thaw(freeze(Max(3))) == Record("lmax", [3])
    assert thaw(freeze(Max())) == Record("lmax")
    assert thaw(freeze(Set([2, 1]))) == Record("lset", [{1, 2}])
    assert thaw(freeze(Map({"a": Bool(True)}))) == Record("lmap", [{"a": Record("lbool", [True])}])


@pytest.mark.parametrize(
    "made_up", [Record("lbool", ["x"]), Record("lset", [3]), Record("lpset", [{-1}]), Record("lmap", [{1: 2}])]
)
def test_revive_refuses_what_a_peer_made_up(made_up: Record) -> None:
    """A record with the name of a lattice is checked as its constructor checks."""
    with pytest.raises(LatticeValue):
        revive(("row", made_up))


def test_revive_leaves_others_alone() -> None:
    """Unknown labels, other numbers of fields, and plain values stay what they are."""
    for value in (Record("unknown", [1]), Record("lmax", [1, 2]), Record(1, [2]), 5, "lmax", (1, "a")):
        assert revive(value) == value


@record("lattice-test-tally")
class Tally:
    who: str
    votes: Any


def test_through_a_dataspace() -> None:
    """An actor asserts a record that holds a lattice value, and another gets it."""
    seen = []

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: assert_(ds, Tally("ann", Set(["x", "y"]))), name="voter", daemon=True)

        def watcher() -> None:
            @on_asserted(ds, Tally("ann", capture()))
            def tally(votes: Any) -> None:
                seen.append(revive(votes))
                stop_actor()

        spawn(watcher, name="watcher")

    run(boot)
    assert seen == [Set(["x", "y"])]


def test_in_a_circuit() -> None:
    """Rows with lattice columns are elements of Z-sets: equal ones are one, look-alikes are not."""
    c = Circuit()
    c.sink("out", c.source("in").map(lambda row: row).distinct())
    deltas = {"in": [("a", Max(1)), ("a", Max(1)), ("a", Max(1.0))]}
    assert c.step(deltas)["out"] == ZSet([(("a", Max(1)), 1), (("a", Max(1.0)), 1)])


def test_immutable() -> None:
    """No attribute can be set or deleted, from outside or in a method."""
    value = Max(1)
    for name in ("content", "new"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(value, name, 2)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del value.content
    assert value == Max(1)


def test_no_truth() -> None:
    """An ``if`` would read a value before it is complete: it is an error that says what to write instead."""
    with pytest.raises(LatticeValue, match=r"Use when_true\(\), a threshold"):
        bool(Bool(True))


def test_order_across_lattices() -> None:
    """Values of two lattices are different, and have no order."""
    assert Max(1) != Set([1])
    assert Max(1) != 1
    with pytest.raises(LatticeMismatch, match="cannot compare"):
        assert Max(1) <= Bool()  # type: ignore[operator]


def merge_first(self: Any, other: Any) -> Any:
    """A merge for classes that are about other things."""
    return self


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"merge": merge_first}, 'needs a keyword of its own, an identifier: wrapper_name = "lmine"'),
        ({"merge": merge_first, "wrapper_name": "not one"}, "an identifier"),
        ({"wrapper_name": "tnomerge"}, r"needs merge\(self, other\)"),
        (
            {"merge": merge_first, "wrapper_name": "lset"},
            'wrapper_name "lset" of .*Mine is taken by syndicate.lattice.sets.Set',
        ),
    ],
)
def test_definitions_that_are_refused(body: dict[str, Any], says: str) -> None:
    """A class that is no lattice is refused where it is defined."""
    with pytest.raises(LatticeDefinition, match=says):
        type("Mine", (Lattice,), body)
    assert LATTICES["lset"] is Set


def test_defined_again() -> None:
    """A class may be defined again under its own name, as a reload does."""

    def define() -> type[Lattice]:
        class Again(Lattice):
            wrapper_name = "tagain"
            merge = merge_first

        return Again

    first, second = define(), define()
    assert LATTICES["tagain"] is second
    assert type(decoded(encoded([second("x")]))[0]) is second
    assert first("x") != second("x")


def test_mutable_content_is_refused() -> None:
    """Content that could change under the value is refused: write a tuple."""

    class Careless(Lattice):
        wrapper_name = "tcareless"
        merge = merge_first

    with pytest.raises(LatticeValue, match="something immutable: write a tuple"):
        Careless([1])


def test_merge_that_leaves_the_lattice() -> None:
    """The engine's merge notices a merge that answers something else."""

    class Wild(Lattice):
        wrapper_name = "twild"

        def merge(self, other: Any) -> Any:
            return 5

    with pytest.raises(LatticeMismatch, match=r"Wild.merge must return a Wild, and returned 5"):
        join(Wild(1), Wild(2))


def test_hash_outlives_symbols() -> None:
    """Symbols are interned weakly, so a label made again would have another hash than the one that was kept."""

    class Holds(Lattice):
        wrapper_name = "tholds"
        merge = merge_first

    first = Holds(frozenset({Clock(), Max(3)}))
    code = hash(first)
    others = [Symbol(f"in the way {i}") for i in range(100)]
    assert hash(Holds(frozenset({Max(3), Clock()}))) == code
    assert len(others) == 100


@given(anything)
def test_merge_answers_itself_if_nothing_is_new(value: Lattice) -> None:
    """Built-in lattices say by identity that nothing was added: what the engine's fixed point asks."""
    assert value.merge(value) is value
    assert value.merge(value.bottom()) is value
    assert value.merge(type(value)._rebuilt(*value._written())) is value


def test_repr() -> None:
    """A value prints as what makes it."""
    for value in (Max(3), Max(), Bool(True), Set(["a"]), Set(), Bag({"a": 1}), Map({"a": Max(1)}), Clock({"a": 1})):
        assert eval(repr(value)) == value
    for other in (Pair((Max(1), Set())), DomPair((Max(1), Set())), LastWriter((1, "a")), Max((Symbol("a").name, 1))):
        assert eval(repr(other)) == other
