# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from syndicate import (
    ANY,
    Entity,
    Observe,
    Record,
    Ref,
    Symbol,
    assert_,
    capture,
    current_facet,
    dataspace,
    on_asserted,
    prevent_inert_check,
    quote,
    react,
    send,
    spawn,
    stop,
    unquote,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Handle
from syndicate.index import compiled
from syndicate.index import interest as interests
from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from syndicate.index.index import Index, IndexSize
from syndicate.index.skeleton import _skeletons as skeletons
from syndicate.index.skeleton import analyse
from syndicate.index.trie import Handler
from syndicate.testing import Seen, settled, watch
from syndicate.values.pattern import Capture, Group, Pattern, match, pattern_of
from syndicate.values.value import Frozen, freeze, thaw
from tests.inside import index_of
from tests.strategies import REFS, P, examples, patterns, patterns_like, values


def heat(monkeypatch: pytest.MonkeyPatch, hot: int) -> None:
    """Let tables be compiled after *hot* uses."""
    for name in [name for name in sys.modules if name.startswith("syndicate.index.")]:
        if hasattr(sys.modules[name], "HOT"):
            monkeypatch.setattr(sys.modules[name], "HOT", hot)


each_temperature = pytest.mark.parametrize("hot", [1, compiled.HOT, sys.maxsize], ids=["hot", "normal", "cold"])


# ---------------------------------------------------------------------------------- against the specification


class Listener:
    """Who is notified by an index: writes down (mark, captures)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def __call__(self, kind: int, handler: Any, captures: Any, values: Any, notice: Any) -> None:
        assert freeze(values)[1:] == captures
        self.heard.append(({ASSERT: "+", RETRACT: "-", MESSAGE: "!"}[kind], captures))


def expected(mark: str, pattern: Pattern, value: Any) -> list[tuple[str, Any]]:
    """What the naive matcher says of one value."""
    captures = match(pattern, value)
    return [] if captures is None else [(mark, freeze(captures)[1:])]


@each_temperature
def test_each_pair_of_value_and_pattern(hot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value, one pattern: the index tells what the naive matcher says, whichever came first, also of a message."""
    heat(monkeypatch, hot)

    @settings(max_examples=examples(60), deadline=None)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        pool = data.draw(st.lists(values(), min_size=1, max_size=4))
        asked = data.draw(st.lists(st.sampled_from(pool).flatmap(patterns_like) | patterns(), min_size=1, max_size=4))
        for pattern in asked:
            skeleton, constants = analyse(pattern)
            for value in pool:
                form = freeze(value)
                listener = Listener()
                index = Index(listener)
                index.observe(skeleton, constants, REFS[0])
                index.send(form)
                index.add(form)
                assert listener.heard == expected("!", pattern, value) + expected("+", pattern, value)
                assert not index.add(form)
                listener.heard.clear()
                notices = index.observe(skeleton, constants, REFS[1])
                assert [("+", t.captures) for t in notices] == expected("+", pattern, value)
                index.unobserve(skeleton, constants, REFS[1])
                assert not index.remove(form)
                assert listener.heard == []
                assert index.remove(form)
                assert listener.heard == expected("-", pattern, value)
                index.unobserve(skeleton, constants, REFS[0])
                assert index.statistics() == EMPTY

    agree()


EMPTY = Index(Listener()).statistics()


# ------------------------------------------------------------------------------------ under random operations


class Observer(Entity):
    """Writes down what a dataspace tells it, and insists that each handle is asserted once, and then retracted once."""

    def __init__(self, raw: bool) -> None:
        self.raw = raw
        self.heard: list[tuple[str, Frozen]] = []
        self.current: dict[Any, Frozen] = {}

    def form(self, value: Any) -> Frozen:
        return freeze(thaw(value) if self.raw else value)

    def assert_(self, value: Any, handle: Any) -> None:
        assert handle not in self.current, "notified twice"
        self.current[handle] = self.form(value)
        self.heard.append(("+", self.form(value)))

    def retract(self, handle: Any) -> None:
        self.heard.append(("-", self.current.pop(handle)))

    def message(self, value: Any) -> None:
        self.heard.append(("!", self.form(value)))


class Interest:
    """The model of one Observe: what the naive matcher says that its observer knows."""

    def __init__(self, pattern: Pattern, observer: int) -> None:
        self.pattern = pattern
        self.observer = observer
        self.known: Counter[Frozen] = Counter()

    def see(self, value: Any) -> Frozen | None:
        captures = match(self.pattern, value)
        return None if captures is None else freeze(captures)


STEPS: Counter[str] = Counter()

OF_OBSERVERS = (
    pattern_of(Record("Observe", [capture(), ANY])),
    pattern_of(Record("Observe", [capture(), capture()])),
    pattern_of(capture(Record("Observe", [ANY, ANY]))),
    pattern_of(Record("Observe", [Record("bind", [capture()]), capture(Ref)])),
    pattern_of(Observe(quote(Record("p", [unquote(capture())])), ANY)),
    pattern_of(Observe(quote([unquote(capture())]), capture())),
    pattern_of(capture()),
    pattern_of([Record("Observe", [capture(), ANY])]),
)

operations = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "assert",
                "assert",
                "assert",
                "retract",
                "retract",
                "replace",
                "message",
                "observe",
                "observe",
                "unobserve",
                "again",
            )
        ),
        st.integers(0, 999),
        st.integers(0, 999),
    ),
    min_size=1,
    max_size=4,
)


class Machine(RuleBasedStateMachine):
    """A dataspace with four observers in two actors, beside a multiset that is searched with the naive matcher."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        pool = data.draw(st.lists(values(max_leaves=6), min_size=2, max_size=8), label="values")
        likely = st.sampled_from(pool).flatmap(patterns_like)
        self.patterns = data.draw(
            st.lists(likely | likely | patterns() | st.sampled_from(OF_OBSERVERS), min_size=2, max_size=6),
            label="patterns",
        )
        self.values = [*pool, [Observe(self.patterns[0], REFS[0])]]
        self.observers = [Observer(raw=n == 3) for n in range(4)]
        self.refs: list[Ref] = []
        self.handles: list[tuple[Handle, Any]] = []
        self.interests: list[tuple[Handle, Any, Interest]] = []
        self.present: dict[Frozen, tuple[Any, int]] = {}
        self.active: dict[Frozen, Interest] = {}
        self.system = settled(self.boot)
        self.baseline = self.statistics()

    def boot(self) -> None:
        self.ds = dataspace()
        self.facet = current_facet()
        prevent_inert_check()
        for pair in (self.observers[:2], self.observers[2:]):
            spawn(self.observe, pair)

    def observe(self, observers: list[Observer]) -> None:
        prevent_inert_check()
        self.refs += [Ref(current_facet(), observer, observer.raw) for observer in observers]

    def statistics(self) -> IndexSize:
        index: Index = index_of(self.ds)
        return index.statistics()

    # ------------------------------------------------------------------------------------------------ the model

    def add(self, value: Any) -> list[tuple[int, str, Frozen]]:
        """A value comes: who is notified of what."""
        form = freeze(value)
        value = thaw(form)
        _, count = self.present.get(form, (value, 0))
        self.present[form] = (value, count + 1)
        notices = []
        if count == 0:
            for interest in self.active.values():
                seen = interest.see(value)
                if seen is not None:
                    interest.known[seen] += 1
                    if interest.known[seen] == 1:
                        notices.append((interest.observer, "+", seen))
        return notices

    def remove(self, value: Any) -> list[tuple[int, str, Frozen]]:
        """A copy of it goes."""
        form = freeze(value)
        value, count = self.present.pop(form)
        if count > 1:
            self.present[form] = (value, count - 1)
            return []
        notices = []
        for interest in self.active.values():
            seen = interest.see(value)
            if seen is not None:
                interest.known[seen] -= 1
                if interest.known[seen] == 0:
                    del interest.known[seen]
                    notices.append((interest.observer, "-", seen))
        return notices

    def join(self, observe: Observe, interest: Interest) -> list[tuple[int, str, Frozen]]:
        """An observer comes: first its Observe is seen, then it is notified of what there is."""
        notices = self.add(observe)
        form = freeze(observe)
        if form not in self.active:
            self.active[form] = interest
            for value, _ in self.present.values():
                seen = interest.see(value)
                if seen is not None:
                    interest.known[seen] += 1
            notices += [(interest.observer, "+", seen) for seen in interest.known]
        return notices

    def leave(self, observe: Observe) -> list[tuple[int, str, Frozen]]:
        """It goes."""
        form = freeze(observe)
        notices = self.remove(observe)
        if form not in self.present:
            interest = self.active.pop(form)
            notices += [(interest.observer, "-", seen) for seen in interest.known]
        return notices

    # ------------------------------------------------------------------------------------------------ the steps

    @rule(ops=operations)
    def turn(self, ops: list[tuple[str, int, int]]) -> None:
        """Some operations in one turn; each observer hears of each in order, and of retractions after all others."""
        groups: list[list[tuple[int, str, Frozen]]] = []
        self.late: list[Callable[[], list[tuple[int, str, Frozen]]]] = []
        self.facet.enter(lambda: [groups.append(self.do(*op)) for op in ops])
        self.system.drain()
        groups += [retracted() for retracted in self.late]
        assert self.system.first is not None
        for actor in (self.system.first, actor_of(self.ds), *(actor_of(ref) for ref in self.refs)):
            if actor.error is not None:
                raise actor.error
        for n, observer in enumerate(self.observers):
            heard, observer.heard = observer.heard, []
            for group in groups:
                wanted = Counter([(mark, seen) for who, mark, seen in group if who == n])
                assert Counter(heard[: wanted.total()]) == wanted
                del heard[: wanted.total()]
            assert not heard
        STEPS[type(self).__name__] += len(ops)

    def do(self, what: str, i: int, j: int) -> list[tuple[int, str, Frozen]]:
        value = self.values[i % len(self.values)]
        if what == "assert":
            self.handles.append((assert_(self.ds, value), value))
            return self.add(value)
        if what == "message":
            send(self.ds, value)
            sent = [(interest.observer, "!", interest.see(thaw(freeze(value)))) for interest in self.active.values()]
            return [(n, mark, seen) for n, mark, seen in sent if seen is not None]
        if what == "observe":
            n = j % len(self.refs)
            pattern = self.patterns[i % len(self.patterns)]
            return self.watch(Observe(pattern, self.refs[n]), Interest(pattern, n))
        if what == "again" and self.interests:
            _, observe, interest = self.interests[i % len(self.interests)]
            return self.watch(observe, Interest(interest.pattern, interest.observer))
        if what == "unobserve" and self.interests:
            handle, observe, _ = self.interests.pop(i % len(self.interests))
            handle.retract()
            self.late.append(partial(self.leave, observe))
        if what == "retract" and self.handles:
            handle, old = self.handles.pop(i % len(self.handles))
            handle.retract()
            self.late.append(partial(self.remove, old))
        if what == "replace" and self.handles:
            j %= len(self.handles)
            handle, old = self.handles[j]
            self.handles[j] = (handle.replace(value), value)  # type: ignore[assignment]
            if freeze(old) != freeze(value):
                self.late.append(partial(self.remove, old))
                return self.add(value)
        return []

    def watch(self, observe: Observe, interest: Interest) -> list[tuple[int, str, Frozen]]:
        self.interests.append((assert_(self.ds, observe), observe, interest))
        return self.join(observe, interest)

    def teardown(self) -> None:
        """Everything is taken back: the observers know nothing, and the index is as it was."""
        if not hasattr(self, "baseline"):
            return

        def all_back() -> None:
            for handle in [entry[0] for entry in self.handles] + [entry[0] for entry in self.interests]:
                handle.retract()

        self.facet.enter(all_back)
        self.system.drain()
        assert self.statistics() == self.baseline
        assert not any(observer.current for observer in self.observers)


@pytest.mark.hypothesis
@pytest.mark.parametrize("hot", [2, compiled.HOT])
def test_random_operations(hot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand random operations, at night 2,500: each observer hears in order what the naive model says, and nothing
    is left.
    """
    heat(monkeypatch, hot)
    STEPS.clear()
    bounds = settings(
        max_examples=examples(55), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(Machine, settings=bounds)
    print(f"{STEPS.total():,} operations with HOT = {hot}")
    assert STEPS.total() >= 46 * bounds.max_examples


@each_temperature
@pytest.mark.parametrize("there", [0, 1, 200])
def test_values_are_kept_from_the_first_observer_that_comes_late(
    hot: int, there: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With constants that nobody had; and each one is notified of what matches, in order, whenever it comes."""
    heat(monkeypatch, hot)
    listener = Listener()
    index = Index(listener)

    def observe(constant: int) -> list[Any]:
        skeleton, constants = analyse(Record("q", [constant, capture()]))
        return [notice.captures for notice in index.observe(skeleton, constants, Ref.unbound())]

    def table() -> Any:
        (only,) = [table for node in index._classes.values() for table in node.tables]
        return only

    assert observe(0) == observe(1) == []
    for n in range(there):
        index.add(freeze(Record("q", [n % 3, n])))
    assert observe(1) == [(n,) for n in range(there) if n % 3 == 1]
    assert table().values is None, "whoever has its constants comes late, too, and needs no more than its handler"
    assert observe(2) == [(n,) for n in range(there) if n % 3 == 2]
    assert (table().values is None) == (there == 0)
    for n in range(0, there, 2):
        index.remove(freeze(Record("q", [n % 3, n])))
    for n in range(there, 2 * there):
        index.add(freeze(Record("q", [n % 5, n])))
    left = [*[n for n in range(there) if n % 2], *range(there, 2 * there)]
    for constant in (3, 4):
        assert observe(constant) == [(n,) for n in left if n >= there and n % 5 == constant]


# ------------------------------------------------------------------------------------------ what is forgotten


def ever_new(ds: Ref, n: int) -> None:
    """Assert, send and observe what nobody has named before, in a shape that nobody has used, and take it all back."""
    label = Symbol(f"ever-new-{n}")
    wanted = [
        Record(label, [capture(), Record(f"part-{n}", [ANY])]),
        Group("rec", label, ((n % 97, Capture(Group("dict", None, ((f"key-{n}", ANY),)))), (n % 89 + 100, ANY))),
        {f"key-{n}": [capture(int), Record(label)]},
        Observe(quote(Record(label, [unquote(capture())])), ANY),
    ]
    notices = [
        Record(label, [n, Record(f"part-{n}", [f"text-{n}"])]),
        {f"key-{n}": [n, Record(label)]},
        [label, {f"key-{n}": n}],
    ]

    def body() -> None:
        handles = [assert_(ds, value) for value in notices[n % 2 :]]
        for pattern in wanted:
            watch(ds, pattern)
        handles += [assert_(ds, value) for value in notices]
        for value in notices:
            send(ds, value)
        if n % 3 == 0:
            for handle in handles:
                handle.retract()

    stop(react(body))


@pytest.mark.parametrize("watched", [False, True], ids=["alone", "watched"])
def test_ever_new_labels_and_shapes_leave_nothing(watched: bool) -> None:
    """A broker fed with 2,000 ever-new labels and patterns is as small afterwards, even if somebody watches it all."""

    def boot() -> tuple[Ref, Facet]:
        ds = dataspace()
        prevent_inert_check()
        assert_(ds, P(1))
        on_asserted(ds, P(capture()))(lambda x: None)
        if watched:
            on_asserted(ds, Observe(capture(), ANY))(lambda x: None)
            on_asserted(ds, capture())(lambda x: None)
            on_asserted(ds, [ANY, {}])(lambda: None)
        return ds, current_facet()

    instances: list[tuple[Ref, Facet]] = []
    system = settled(lambda: instances.append(boot()))
    ((ds, facet),) = instances

    def rounds(numbers: range) -> None:
        for n in numbers:
            facet.enter(lambda n=n: ever_new(ds, n))
            system.drain()

    def size() -> tuple[Any, ...]:
        gc.collect()
        return index_of(ds).statistics(), len(Symbol._known), len(skeletons)

    rounds(range(400))  # what is hot is compiled by now
    before = size()
    blocks = sys.getallocatedblocks()
    rounds(range(400, 2000))
    assert size() == before
    assert sys.getallocatedblocks() - blocks < 500
    assert system.first is not None
    assert system.first.running
    assert actor_of(ds).running


# ---------------------------------------------------------------------------------------- interests as values


def test_an_observer_sees_observers_and_itself() -> None:
    """Observe assertions are seen like any other, in the form of the published schema: its own first of all."""
    seen = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Observe(capture(), ANY)))
        react(lambda: on_asserted(ds, P(capture()))(lambda x: None))

    settled(boot)
    observe = Record("Observe", [capture(), ANY])
    assert seen == [[("+", quote(observe)), ("+", quote(P(capture())))]]


def test_observers_of_one_kind_of_interest() -> None:
    """With quote and unquote one sees who waits for what, and for how long."""
    seen = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Observe(quote(P(unquote(Record("lit", [capture()])))), ANY)))
        stop(react(lambda: on_asserted(ds, P(5))(lambda: None)))
        on_asserted(ds, P(capture()))(lambda x: None)
        on_asserted(ds, P(6))(lambda: None)
        on_asserted(ds, P(6))(lambda: None)  # another observer, the same captures

    settled(boot)
    assert seen == [[("+", 5), ("+", 6), ("-", 5)]]


@pytest.mark.parametrize(
    "malformed",
    [
        lambda me: Record("Observe", [Record("group", [Record("arr"), 5]), me]),
        lambda me: Record("Observe", [5, me]),
        lambda me: Record("Observe", [quote([capture()]), "nobody"]),
        lambda me: Record("Observe", [quote([capture()])]),
        lambda me: Record("Observe", [quote([capture()]), me, 1]),
        lambda me: Record(1, [quote([capture()]), me]),
    ],
)
def test_a_malformed_observe_is_a_plain_assertion(malformed: Callable[[Ref], Any]) -> None:
    """What looks like an Observe and is not one can be asserted, seen and retracted, and observes nothing."""
    seen, nothing = [], []

    def boot() -> None:
        ds = dataspace()
        observer = Observer(raw=False)
        me = Ref(current_facet(), observer)
        value = malformed(me)
        seen.append(watch(ds, Record(value.label, [capture()])))
        nothing.append(observer)
        handle = assert_(ds, value)
        other = dataspace("where nobody has looked yet")
        assert_(other, value)
        late.extend([watch(ds, Record(value.label, [capture()])), watch(other, Record(value.label, [capture()]))])
        assert_(ds, ["hello"])
        handle.retract()

    late: list[Seen] = []
    settled(boot)
    assert seen[0][-1] == late[0][-1]
    for message in late:
        assert ("+", *seen[0][-1][1:]) in message
    assert [mark for mark, *_ in seen[0]][-2:] == ["+", "-"]
    assert not nothing[0].heard


def test_an_observe_within_a_value_is_data() -> None:
    """Patterns look into it as into anything else, and it observes nothing."""
    seen = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, ["box", Observe(quote(P(unquote(capture()))), ANY)]))
        stop(react(lambda: assert_(ds, ["box", Observe(P(5), REFS[0])])))

    settled(boot)
    assert seen == [[("+", Record("lit", [5])), ("-", Record("lit", [5]))]]


def test_the_widest_and_the_deepest_pattern() -> None:
    """Patterns at the limits work, are seen by observers of observers, and match what they should."""
    seen = []
    deep: Any = "bottom"
    for _ in range(39):
        deep = [capture(deep)]
    wide = [[n, capture()] for n in range(255)]

    def boot() -> None:
        ds = dataspace()
        seen.extend([watch(ds, wide), watch(ds, deep), watch(ds, Observe(capture(), ANY)), watch(ds, capture())])
        assert_(ds, [[n, n] for n in range(255)])
        value: Any = "bottom"
        for _ in range(39):
            value = [value]
        assert_(ds, value)

    settled(boot)
    assert seen[0] == [("+", *range(255))]
    assert [(mark, len(captures)) for mark, *captures in seen[1]] == [("+", 39)]
    assert len(seen[2]) == 4
    assert len(seen[3]) == 6


# ------------------------------------------------------------------------------------------ one by one


@each_temperature
@pytest.mark.parametrize(
    "pattern",
    [
        *[capture(kind) for kind in (bool, int, float, str, bytes, Symbol, list, dict, set, Ref)],
        [[capture(), capture()], [capture(int), 2]],
        [[1, [capture(), 3]], ANY],
        Record("r", [[capture(), capture()], {"k": [capture(), capture()]}]),
        {"k": {"a": capture(), "b": 2}, "l": [ANY, capture()]},
    ],
    ids=str,
)
def test_each_class_and_each_shape(pattern: Any, hot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture of each class, and places that share a compound: of each value, what the naive matcher says."""
    heat(monkeypatch, hot)
    pool = [
        *(True, 0, 1.5, "s", b"b", Symbol("s"), [], {}, set(), Record("r", []), REFS[0], [1], {"k": 1}, {1}),
        [[1, 2], [3, 2]], [[1, 2], ["3", 2]], [[1, 2], [3]], [[1, [2, 3]], 4], [[1, [2, 4]], 4], [[1], 4], [1, 2],
        Record("r", [[1, 2], {"k": [3, 4]}]), Record("r", [[1, 2], {"l": [3, 4]}]), Record("r", [[1, 2], {"k": 3}]),
        {"k": {"a": 1, "b": 2}, "l": [1, 2]}, {"k": {"a": 1}, "l": [1, 2]}, {"k": {"a": 1, "b": 2}, "l": 1},
    ]  # fmt: skip
    skeleton, constants = analyse(pattern_of(pattern))
    listener = Listener()
    index = Index(listener)
    index.observe(skeleton, constants, REFS[0])
    for _ in range(3):  # until it is compiled
        for mark, tell in (("!", index.send), ("+", index.add), ("-", index.remove)):
            for value in pool:
                listener.heard.clear()
                tell(freeze(value))
                assert listener.heard == expected(mark, pattern_of(pattern), value)


def test_the_reach_of_a_constructor_bounds_every_audience() -> None:
    """Nobody, those that look at this constructor, or all if one looks at anything."""
    index = Index(Listener())
    seven, one = freeze(Record("p", [7])), freeze([1])
    assert (index.reach(seven[0]), index.audience(seven)) == (0, 0)
    observers = [
        (analyse(pattern_of(pattern)), REFS[n % 2]) for n, pattern in enumerate([P(7), P(7), P(8), [1], P(ANY)])
    ]
    for (skeleton, constants), ref in observers:
        index.observe(skeleton, constants, ref)
    assert (index.reach(seven[0]), index.audience(seven)) == (4, 3)
    assert (index.reach(one[0]), index.audience(one)) == (1, 1)
    anything = analyse(pattern_of(ANY))
    index.observe(*anything, REFS[0])
    assert index.reach(seven[0]) >= index.audience(seven) == 4
    assert index.reach(one[0]) >= index.audience(one) == 2
    for (skeleton, constants), ref in [(anything, REFS[0]), *observers]:
        index.unobserve(skeleton, constants, ref)
    assert (index.reach(seven[0]), index.reach(one[0])) == (0, 0)


def test_the_audience_of_a_nested_value_is_counted_at_each_level() -> None:
    """Those that look at the whole and those that look inside are added up."""
    index = Index(Listener())
    asked = [
        pattern_of(pattern) for pattern in (P(ANY), P([1, ANY]), P([capture(), [2]]), P([1, [capture()]]), P([[1], 2]))
    ]
    for pattern in asked:
        index.observe(*analyse(pattern), REFS[0])
    for value in (P(1), P([1, 2]), P([1, [2]]), P([3, [2]]), P([3, [3]]), P([[1], 2])):
        assert index.audience(freeze(value)) == sum(match(pattern, value) is not None for pattern in asked)


def test_the_population_of_observers_counts_what_only_looks_like_one() -> None:
    """An interest and a malformed Observe are kept apart, and an observer of observers can be notified of both."""
    index = Index(Listener())
    skeleton, _ = analyse(pattern_of(Record("Observe", [capture(), ANY])))
    for n in range(3):
        index.add(freeze(Record("Observe", [n, "nobody"])))
    assert index.population(skeleton) == 3
    index.add(interests.interest(P(capture()), REFS[0]))
    assert index.population(skeleton) == 4


@pytest.mark.parametrize("observers", [1, 63, 64, 65, 128, 129, 200])
def test_each_of_many_observers_in_one_actor_is_notified(observers: int) -> None:
    """They are notified in groups; none is left out, and none is notified twice."""
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: seen.extend([watch(ds, P(capture())) for _ in range(observers)]))
        spawn(lambda: (send(ds, P("m")), stop(react(lambda: assert_(ds, P("a"))))))
        spawn(lambda: (assert_(ds, P("stays")), prevent_inert_check()))

    settled(boot)
    assert seen == [[("!", "m"), ("+", "a"), ("-", "a"), ("+", "stays")]] * observers


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=200))
def test_observers_that_come_and_go_are_grouped_as_if_they_had_always_been_there(steps: list[tuple[int, int]]) -> None:
    """Whoever looks at the groups meanwhile: of each actor all, in their order, those of one kind together."""
    facets = [SimpleNamespace(actor=object()) for _ in range(2)]
    handler, there = Handler(), list[Ref]()
    for verb, number in steps:
        if verb == 0 and there:
            handler.leave(there.pop(number % len(there)))
        elif verb == 1:
            assert list(handler.groups) == list(dict.fromkeys(each.facet.actor for each in there))
        else:
            runs = 70 if number == 0 else 1
            there += [Ref(facets[number % 2], Entity(), number % 3 == 0) for _ in range(runs)]
            for each in there[-runs:]:
                handler.join(each)
    fresh = Handler()
    for each in there:
        fresh.join(each)
    assert handler.groups == fresh.groups
    for actor, audiences in handler.groups.items():
        parts = [each if isinstance(each, tuple) else (each,) for each in audiences]
        assert [each for part in parts for each in part] == [each for each in there if each.facet.actor is actor]
        assert all(len({each.raw for each in part}) == 1 and len(part) <= 64 for part in parts)


@pytest.mark.parametrize("values", [[7], [7, 8], [8, 8, 7], [8]])
def test_an_observer_is_notified_of_what_another_one_of_its_skeleton_has_let_be_kept(values: list[int]) -> None:
    """One value or many for the same constants, which nobody had asked for by then."""
    index = Index(Listener())
    skeleton, constants = analyse(pattern_of([capture(), 1]))
    index.observe(skeleton, constants, REFS[0])
    for n, second in enumerate(values):
        index.add(freeze([n, second]))
    for second in (7, 8):
        same, constants = analyse(pattern_of([capture(), second]))
        assert same is skeleton
        notices = index.observe(skeleton, constants, REFS[1])
        assert [each.captures for each in notices] == [(n,) for n, other in enumerate(values) if other == second]
