# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import copy
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate import (
    ANY,
    Dictionary,
    Field,
    Ref,
    ValueSet,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    on_message,
    on_stop_or_crash,
    prevent_inert_check,
    query_count,
    query_hash,
    query_set,
    query_value,
    react,
    send,
    spawn,
    stop,
)
from syndicate.actors.system import System
from syndicate.errors import NotAValue, NotCallable, PatternError
from syndicate.testing import settled
from syndicate.values.value import freeze, identical
from tests.inside import within
from tests.strategies import ATOMS, PP, P, Q


class Stage:
    """A dataspace, an actor with a query, and one that acts."""

    def __init__(self, query: Callable[[Ref], Field[Any]]) -> None:
        self.log: list[Any] = []
        self.system: System = settled(self.boot, query)

    def boot(self, query: Callable[[Ref], Field[Any]]) -> None:
        self.ds: Ref = dataspace()
        self.facet = current_facet()
        prevent_inert_check()
        spawn(lambda: setattr(self, "field", query(self.ds)))

    def act(self, fn: Callable[[Ref], object]) -> Any:
        """Run ``fn(ds)`` in a turn; return what it answered."""
        return within(self.system, self.facet, lambda: fn(self.ds))

    @property
    def value(self) -> Any:
        """What the query's field holds."""
        return self.field.value

    field: Field[Any]


LOOK_ALIKES = (1, 1.0, True, "1", [1])


def test_query_set() -> None:
    """The set of captures, bare if there is one, tuples otherwise; look-alikes are different members."""
    one, two = Stage(lambda ds: query_set(ds, P(capture()))), Stage(lambda ds: query_set(ds, PP(capture(), capture())))
    handles = one.act(lambda ds: [assert_(ds, P(x)) for x in (*LOOK_ALIKES, 1)])
    two.act(lambda ds: [assert_(ds, PP(x, 0)) for x in LOOK_ALIKES])
    assert identical(one.value, ValueSet(LOOK_ALIKES))
    assert identical(two.value, ValueSet([(x, 0) for x in LOOK_ALIKES]))
    one.act(lambda ds: [handle.retract() for handle in handles[:3]])
    assert identical(one.value, ValueSet(["1", [1], 1]))
    one.act(lambda ds: [handle.retract() for handle in handles[3:]])
    assert identical(one.value, ValueSet())


def test_query_value() -> None:
    """The newest of what matches, and the default while nothing does."""
    stage = Stage(lambda ds: query_value(ds, P(capture()), default="none"))
    assert stage.value == "none"
    first = stage.act(lambda ds: assert_(ds, P(1)))
    second = stage.act(lambda ds: assert_(ds, P(True)))
    assert identical(stage.value, True)
    stage.act(lambda ds: second.retract())
    assert identical(stage.value, 1)
    second = stage.act(lambda ds: assert_(ds, P(2)))
    stage.act(lambda ds: first.retract())
    assert stage.value == 2
    stage.act(lambda ds: second.replace(P(3)))
    assert stage.value == 3
    stage.act(lambda ds: send(ds, P(4)))
    assert stage.value == 3
    assert Stage(lambda ds: query_value(ds, P(capture()))).value is None


def test_query_hash() -> None:
    """From the first capture to the others; keys are values, and the newest value of a key wins."""
    stage = Stage(lambda ds: query_hash(ds, PP(capture(), capture())))
    handles = stage.act(lambda ds: [assert_(ds, PP(x, n)) for n, x in enumerate(LOOK_ALIKES)])
    assert identical(stage.value, Dictionary([(x, n) for n, x in enumerate(LOOK_ALIKES)]))
    newer = stage.act(lambda ds: assert_(ds, PP(1, "newer")))
    assert stage.value[1] == "newer"
    assert stage.value[True] == 2
    stage.act(lambda ds: newer.retract())
    assert stage.value[1] == 0
    stage.act(lambda ds: handles[0].retract())
    assert 1 not in stage.value
    assert True in stage.value
    three = Stage(lambda ds: query_hash(ds, [capture(), capture(), capture()]))
    three.act(lambda ds: assert_(ds, ["k", 1, 2]))
    assert three.value == {"k": (1, 2)}


def test_query_count() -> None:
    """How many distinct captures there are for each key; a key goes when there is none."""
    stage = Stage(lambda ds: query_count(ds, PP(capture(), capture())))
    handles = stage.act(lambda ds: [assert_(ds, PP(x, n)) for x in LOOK_ALIKES for n in range(2)])
    stage.act(lambda ds: assert_(ds, PP(1, 0)))  # the same captures again
    assert identical(stage.value, Dictionary([(x, 2) for x in LOOK_ALIKES]))
    stage.act(lambda ds: [handle.retract() for handle in handles[2:]])
    assert identical(stage.value, {1: 2})
    by_parity = Stage(lambda ds: query_count(ds, P(capture()), key=lambda n: "even" if n % 2 == 0 else "odd"))
    by_parity.act(lambda ds: [assert_(ds, P(n)) for n in range(5)])
    assert by_parity.value == {"even": 3, "odd": 2}
    whether = Stage(lambda ds: query_count(ds, P(ANY)))
    whether.act(lambda ds: assert_(ds, P(5)))
    assert whether.value == {(): 1}


def test_a_query_that_lacks_captures_is_refused_at_once() -> None:
    """And not when the first assertion comes."""
    with pytest.raises(PatternError, match=r"query_hash\(\) needs a pattern with at least 2 captures, not 1"):
        settled(lambda: query_hash(dataspace(), P(capture())))


@pytest.mark.parametrize(("key", "error"), [(lambda n: 1 // n, ZeroDivisionError), (lambda n: object(), NotAValue)])
def test_a_key_that_cannot_be_made_crashes_its_actor(
    key: Callable[[int], Any], error: type[Exception], logs: list[MutableMapping[str, object]]
) -> None:
    """By its own error, and no other actor; what had come before is forgotten like all that was known."""
    stage = Stage(lambda ds: query_count(ds, P(capture()), key=lambda n: n or key(n)))
    counts = stage.act(lambda ds: [query_count(ds, P(capture())), *(assert_(ds, P(n)) for n in (1, 0, 2))])[0]
    assert [(entry["event"], type(entry["exc_info"])) for entry in logs] == [("an actor crashed", error)]
    assert identical(stage.value, {})
    assert identical(counts.value, Dictionary([(n, 1) for n in (1, 0, 2)]))


def test_a_function_that_cannot_take_what_is_captured_is_refused_at_once() -> None:
    """A key as well as a hook."""
    for name in ("key", "on_add", "on_remove"):
        with pytest.raises(NotCallable, match=r"query_count\(\) hands over .*: 2 in .* takes 1"):
            settled(lambda name=name: query_count(dataspace(), PP(capture(), capture()), **{name: lambda n: n}))


def test_hooks_are_called_with_the_captures_after_the_change() -> None:
    """on_add and on_remove see the field as it is then."""
    for make in (query_set, query_value, query_hash, query_count):
        calls: list[Any] = []

        def query(ds: Ref, make: Any = make, calls: list[Any] = calls) -> Field[Any]:
            instance: Field[Any] = make(
                ds,
                PP(capture(), capture()),
                on_add=lambda x, y: calls.append(("+", x, y, bool(instance.value))),
                on_remove=lambda x, y: calls.append(("-", x, y, bool(instance.value))),
            )
            return instance

        stage = Stage(query)
        handle = stage.act(lambda ds: assert_(ds, PP("a", 1)))
        stage.act(lambda ds, handle=handle: handle.retract())
        assert calls == [("+", "a", 1, True), ("-", "a", 1, False)]


def test_what_reads_a_query_runs_when_it_changes() -> None:
    """Blocks and computed assertions follow, once a turn."""
    runs: list[int] = []

    def query(ds: Ref) -> Field[Any]:
        present = query_set(ds, P(capture()))
        dataflow(lambda: runs.append(len(present.value)))
        assert_(ds, lambda: ["count", len(present.value)])
        return present

    stage = Stage(query)
    counts: list[int] = []
    stage.act(lambda ds: spawn(lambda: query_value(ds, ["count", capture()], on_add=counts.append)))
    stage.act(lambda ds: [assert_(ds, P(n)) for n in range(5)])
    stage.act(lambda ds: send(ds, P("no assertion")))
    assert runs == counts == [0, 5]


def test_queries_are_current_in_handlers_of_the_same_turn() -> None:
    """A query made before a handler knows what the handler is notified of."""
    log: list[Any] = []

    def query(ds: Ref) -> Field[Any]:
        present = query_set(ds, P(capture()))
        on_message(ds, capture(str))(lambda name: log.append((name, 1 in present.value)))
        return present

    stage = Stage(query)
    stage.act(lambda ds: (send(ds, "before"), assert_(ds, P(1)), send(ds, "after")))
    assert log == [("before", False), ("after", True)]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(ATOMS[:12]), st.sampled_from(ATOMS[10:]))))
def test_queries_agree_with_a_recount(steps: list[tuple[int, Any, Any]]) -> None:
    """After any assertions and retractions each query holds what a look at everything present would give."""
    objects: dict[str, Field[Any]] = {}

    def queries(ds: Ref) -> Field[Any]:
        objects["set"] = query_set(ds, PP(capture(), ANY))
        objects["count"] = query_count(ds, PP(capture(), capture()))
        objects["hash"] = query_hash(ds, PP(capture(), capture()))
        objects["value"] = query_value(ds, PP(capture(), capture()), default="nothing")
        return objects["set"]

    stage = Stage(queries)
    present: list[tuple[Any, Any, Any]] = []
    for n, x, y in steps:
        if n < 3 and present:
            handle, _, _ = present.pop(n % len(present))
            stage.act(lambda ds, handle=handle: handle.retract())
        else:
            present.append((stage.act(lambda ds, x=x, y=y: assert_(ds, PP(x, y))), x, y))
        distinct = ValueSet([(x, y) for _, x, y in present])
        assert identical(objects["set"].value, ValueSet([x for x, _ in distinct]))
        keys = [freeze(x) for x, _ in distinct]
        assert identical(objects["count"].value, Dictionary([(x, keys.count(freeze(x))) for x, _ in distinct]))
        assert len(objects["hash"].value) == len(set(keys))
        assert all((x, value) in distinct for x, value in objects["hash"].value.items())
        assert objects["value"].value in distinct if distinct else objects["value"].value == "nothing"


@pytest.mark.parametrize("ends", [stop, lambda: 1 / 0], ids=["stop", "crash"])
@pytest.mark.parametrize(
    ("query", "facts", "unknown"),
    [
        (lambda ds: query_set(ds, P(capture())), ValueSet([1, 2]), ValueSet()),
        (lambda ds: query_value(ds, P(capture()), default=0), 2, 0),
        (lambda ds: query_hash(ds, Q(capture(), capture())), Dictionary([("a", 1)]), Dictionary()),
        (lambda ds: query_count(ds, P(capture()), key=lambda n: "all"), Dictionary([("all", 2)]), Dictionary()),
    ],
    ids=["set", "value", "hash", "count"],
)
def test_what_a_facet_knew_ends_with_it(
    query: Any, facts: Any, unknown: Any, ends: Any, logs: list[MutableMapping[str, Any]]
) -> None:
    """The field is empty then, for those who still hold it, in the actor and out; its stop handlers see what it was."""
    objects: dict[str, Any] = {}
    last: list[Any] = []
    seen: list[Any] = []

    def inner(ds: Ref) -> None:
        objects["field"] = query(ds)
        objects["facet"] = current_facet()
        on_stop_or_crash(lambda: last.append(copy.deepcopy(objects["field"].value)))

    def boot() -> None:
        objects["ds"] = ds = dataspace()
        for value in (P(1), P(2), Q("a", 1)):
            assert_(ds, value)

        def follower() -> None:
            prevent_inert_check()
            react(lambda: inner(ds))
            dataflow(lambda: seen.append(copy.deepcopy(objects["field"].value)))

        spawn(follower)
        prevent_inert_check()

    system = settled(boot)
    assert objects["field"].value == facts
    objects["facet"].enter(ends)
    system.drain()
    assert objects["field"].value == unknown
    assert last == [facts]
    if ends is stop:
        assert seen[-1] == unknown
