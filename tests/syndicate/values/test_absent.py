"""One form of absent in all hosts: the null of a table is None to every rule, and the other way round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import ABSENT, Ref, assert_, capture, dataspace, record, run, spawn
from syndicate.bloom import Bloom, bloom, scratch
from syndicate.flow import Circuit
from syndicate.spark.columns import forms
from syndicate.spark.to_arrow import array_of
from syndicate.testing import settled, watch
from syndicate.values.absent import form_of, inward, outward
from syndicate.values.value import Dictionary, Record, ValueSet, freeze, identical, thaw
from syndicate.views import view
from tests.strategies import examples, values


@record
class Given:
    """What goes in."""

    name: str
    value: object


@record
class Seen:
    """What comes out."""

    name: str
    value: object


def bloom_host(fn: Callable[[Any], Any]) -> Callable[[Ref], object]:
    """A Bloom program of one rule."""

    class Through(Bloom):
        inp = scratch(["name"], ["value"])
        out = scratch(["name"], ["value"])

        @bloom
        def rule(self) -> None:
            self.out <= self.inp.map(lambda t: (t.name, fn(t.value)))  # noqa: B015

    return lambda ds: spawn(lambda: Through(ds, inputs={"inp": Given}, outputs={"out": Seen}))


def view_host(fn: Callable[[Any], Any]) -> Callable[[Ref], object]:
    """A circuit of one node."""
    c = Circuit()
    c.sink("out", c.source("in").map(lambda e: (e[0], fn(e[1]))))
    return lambda ds: spawn(view(ds, c, inputs={"in": Given}, outputs={"out": Seen}))


HOSTS = [bloom_host, view_host]


def through(
    host: Callable[[Callable[[Any], Any]], Callable[[Ref], object]], fn: Callable[[Any], Any], value: Any
) -> Any:
    """What a host asserts for one asserted value."""
    heard: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        heard.append(watch(ds, Seen(capture(), capture())))
        host(fn)(ds)
        spawn(lambda: assert_(ds, Given("a", value)))

    settled(boot)
    ((mark, _, out),) = heard[0][:1]
    assert mark == "+"
    return out


@pytest.mark.parametrize("host", HOSTS)
def test_a_rule_sees_none_and_gives_absent(host: Any) -> None:
    """Also within a sequence; what is there stays what it is."""
    assert through(host, lambda value: value is None, ABSENT) is True
    assert through(host, lambda value: None, 1) is ABSENT
    assert through(host, lambda value: value, ABSENT) is ABSENT
    assert through(host, lambda value: value[1] is None, (1, ABSENT)) is True
    assert through(host, lambda value: (value, None), 1) == (1, ABSENT)


ATOMS = st.sampled_from([ABSENT, 0, 1, True, 1.0, -0.0, 0.0, float("nan"), "a", b"a", -2, 2**70])
WITH_ABSENT = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(Dictionary)
        | st.lists(inner, max_size=2).map(ValueSet)
        | st.lists(inner, max_size=2).map(lambda items: Record("r", items))
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=examples(20), deadline=None)
@given(value=WITH_ABSENT)
def test_what_is_absent_within_a_value_comes_through(host: Any, value: Any) -> None:
    """Whatever holds it: no such value of an untrusted peer is refused, or ends a host, and it comes out as it went
    in.
    """
    assert identical(through(host, lambda inputs: inputs, value), thaw(freeze(value)))


def test_a_null_of_a_table_is_absent_both_ways() -> None:
    """Spark's and Arrow's null."""
    assert [thaw(form) for form in forms(pa.array([1, None]), "size")] == [1, ABSENT]
    assert array_of([1, freeze(ABSENT)], pa.int32(), "size").to_pylist() == [1, None]


@given(values(refs=False))
def test_the_way_in_and_out_changes_no_value(value: Any) -> None:
    """Whatever it holds."""
    assert identical(thaw(form_of(inward(thaw(freeze(value))))), value)
    assert identical(outward(value), value)


def test_none_by_itself_is_still_no_value() -> None:
    """A program that asserts None gets to know what to say."""
    from syndicate.errors import NotAValue

    def boot() -> None:
        assert_(dataspace(), None)

    with pytest.raises(NotAValue, match="ABSENT"):
        run(boot)
