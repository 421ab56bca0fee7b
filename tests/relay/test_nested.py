"""Nested dataspaces: both directions, several levels, exact visibility, and ends of every kind.

*Differential*: random doings outside and inside against the naive matcher.  *Cases*: the paper's TODO and what follows
from it, each by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.nested import Inbound, Outbound, nested
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
    during,
    on_message,
    on_stop,
    prevent_inert_check,
    quote,
    react,
    record,
    ref,
    send,
    spawn,
    stop,
    stop_actor,
    unquote,
)
from syndicate.actors.turn import current
from syndicate.errors import NotAValue, NotInTurn
from syndicate.testing import Seen, Watcher, settled, watch
from syndicate.values.pattern import Group, Kind, match
from syndicate.values.value import MAX_DEPTH, freeze
from tests.inside import index_of
from tests.strategies import examples


@record
class Says:
    who: Any
    what: Any


Act: TypeAlias = Callable[[Ref], object]
"""Something that an actor does with a dataspace."""


def asserting(*values: Any) -> Act:
    """To assert `values`."""
    return lambda ds: list(map(partial(assert_, ds), values))


def sending(*values: Any) -> Act:
    """To send `values`."""
    return lambda ds: list(map(partial(send, ds), values))


def watching(pattern: Any) -> Act:
    """To be interested in `pattern`."""
    return partial(watch, pattern=pattern)


class Scene:
    """An outer dataspace (level 0), dataspaces nested in it, and an actor at each level."""

    def __init__(self, levels: int = 1) -> None:
        self.spaces: list[Ref] = []
        self.homes: list[Any] = []
        self.system = settled(lambda: self.settle_in(dataspace("outer"), levels))

    def settle_in(self, space: Ref, levels: int) -> None:
        prevent_inert_check()
        self.spaces.append(space)
        self.homes.append(current_facet())
        if levels:
            nested(space, self.settle_in, levels - 1)

    def later(self, level: int, act: Act) -> list[Any]:
        """Let `act(dataspace)` happen, once the system runs, in a facet of that level's actor; a list for it."""
        instances: list[Any] = []
        self.homes[level].enter(lambda: instances.append(react(lambda: act(self.spaces[level]))))
        return instances

    def at(self, level: int, act: Act) -> Any:
        """Let it happen now, and all that follows from it; the facet."""
        handle = self.later(level, act)
        self.system.drain()
        return handle[0]

    def watch(self, level: int, pattern: Any) -> Seen:
        """What an observer at `level` is notified of."""
        lists: list[Seen] = []
        self.at(level, lambda ds: lists.append(watch(ds, pattern)))
        return lists[0]

    def stop(self, *facets: Any) -> None:
        for facet in facets:
            facet.enter(stop)
        self.system.drain()

    def interests(self) -> int:
        """How many interests stand in the outer dataspace."""
        return sum(1 for form in index_of(self.spaces[0]) if type(form) is tuple and str(form[0]) == "INTEREST")

    @property
    def sound(self) -> bool:
        """Whether all actors are there."""
        return all(home.alive for home in self.homes)


def taken(seen: Seen) -> Seen:
    """What happened since the last time."""
    events = seen[:]
    seen.clear()
    return events


# ------------------------------------------------------------------------------------------------ both directions


def test_outbound() -> None:
    """What is asserted or sent as outbound is asserted or sent outside, and retracted with the inner assertion."""
    scene = Scene()
    outside = scene.watch(0, Says(capture(), capture()))
    inside = scene.watch(1, Outbound(Says(capture(), ANY)))
    facet = scene.at(1, asserting(Outbound(Says("Alice", 1))))
    scene.at(1, sending(Outbound(Says("Bob", 2))))
    scene.at(1, asserting(Says("Carol", 3)))
    scene.stop(facet)
    assert outside == [("+", "Alice", 1), ("!", "Bob", 2), ("-", "Alice", 1)]
    assert inside == [("+", "Alice"), ("!", "Bob"), ("-", "Alice")]


def test_outbound_copies_count_once() -> None:
    """Two inner actors with the same outbound assertion, and one outside, are three copies of one value."""
    scene = Scene()
    outside = scene.watch(0, capture(Says))
    says = Says("Alice", 1)
    facets = [scene.at(1, asserting(Outbound(says))) for _ in range(2)]
    facets.append(scene.at(0, asserting(says)))
    for facet in facets:
        assert outside == [("+", says)]
        scene.stop(facet)
    assert outside == [("+", says), ("-", says)]


def test_inbound() -> None:
    """An inner observer is notified of what is outside already, what comes, what goes, and messages; nothing of the
    rest.
    """
    scene = Scene()
    there = scene.at(0, asserting(Says("Alice", 1)))
    inside = scene.watch(1, Inbound(Says(capture(), capture())))
    assert taken(inside) == [("+", "Alice", 1)]
    scene.at(0, asserting(Says("Bob", 2)))
    scene.at(0, sending(Says("Carol", 3), ["other"]))
    scene.at(0, asserting(["other"]))
    scene.stop(there)
    assert taken(inside) == [("+", "Bob", 2), ("!", "Carol", 3), ("-", "Alice", 1)]
    late = scene.watch(1, Inbound(Says(capture(), capture())))
    assert late == [("+", "Bob", 2)]
    assert inside == []


def test_the_order_of_assertions_and_messages_is_kept() -> None:
    """Across the relay, too, one actor's doings arrive in order and as one turn."""
    scene = Scene()
    inside = scene.watch(1, Inbound(capture()))
    outside = scene.watch(0, capture(list))
    taken(inside)

    def act(wrap: Callable[[Any], Any]) -> Callable[[Ref], None]:
        def do(ds: Ref) -> None:
            first = assert_(ds, wrap([1]))
            send(ds, wrap([2]))
            assert_(ds, wrap([3]))
            first.retract()
            send(ds, wrap([4]))

        return do

    expected = [("+", (1,)), ("!", (2,)), ("+", (3,)), ("!", (4,)), ("-", (1,))]
    scene.stop(scene.at(0, act(lambda value: value)))
    assert [taken(inside), taken(outside)] == [[*expected, ("-", (3,))]] * 2
    scene.stop(scene.at(1, act(Outbound)))
    assert [taken(inside), taken(outside)] == [[*expected, ("-", (3,))]] * 2


def test_an_interest_is_outside_before_the_request_that_follows_it() -> None:
    """An inner actor that listens outside, and asks there in the same turn, hears the answer."""
    scene = Scene()
    heard: list[Any] = []

    def answer(ds: Ref) -> None:
        on_message(ds, ["ask", capture()])(lambda what: send(ds, ["answer", what]))

    def ask(ds: Ref) -> None:
        send(ds, Outbound(["something", "else"]))
        on_message(ds, Inbound(["answer", capture()]))(heard.append)
        send(ds, Outbound(["ask", "me"]))

    scene.at(0, answer)
    scene.at(1, ask)
    assert heard == ["me"]


def test_from_the_first_turn() -> None:
    """What the caller says inside in the very turn that makes the dataspace goes out; nothing is lost."""
    heard: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        on_message(ds, ["hello", capture()])(heard.append)
        inner = nested(ds, lambda inner: send(inner, Outbound(["hello", "boot"])))
        send(inner, Outbound(["hello", "caller"]))

    settled(boot)
    assert heard == ["caller", "boot"]


def test_outbound_interest() -> None:
    """An outbound `Observe` is the inner actor's own interest outside: captures come without a wrapper."""
    scene = Scene()
    scene.at(0, asserting(Says("Alice", 1)))
    watcher = Watcher()
    facet = scene.at(1, lambda ds: assert_(ds, Outbound(Observe(Says(capture(), ANY), ref(watcher)))))
    scene.at(0, sending(Says("Bob", 2)))
    assert taken(watcher.seen) == [("+", "Alice"), ("!", "Bob")]
    asserted = scene.interests()
    scene.stop(facet)
    assert scene.interests() == asserted - 1


def test_interest_is_data_within_other_values() -> None:
    """Patterns look into an `Observe` that is outbound or inbound, as they do into one that stands by itself."""
    scene = Scene()
    pattern = Observe(quote(Says(unquote(capture()), ANY)), ANY)
    seen = [scene.watch(1, Outbound(pattern)), scene.watch(1, Inbound(pattern)), scene.watch(0, pattern)]
    scene.at(1, lambda ds: assert_(ds, Outbound(Observe(Says("Alice", ANY), ref(Watcher())))))
    assert seen == [[("+", Record("lit", ["Alice"]))]] * 3


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_levels(levels: int) -> None:
    """Each level takes off one `Outbound` and puts on one `Inbound`, for assertions and messages."""
    scene = Scene(levels)

    def wrapped(wrapper: Callable[[Any], Any], value: Any, times: int = levels) -> Any:
        return value if times == 0 else wrapper(wrapped(wrapper, value, times - 1))

    outside = scene.watch(0, Says(capture(), capture()))
    inside = scene.watch(levels, wrapped(Inbound, Says(capture(), capture(int))))
    whole = scene.watch(levels, capture(wrapped(Inbound, Says("Alice", ANY))))
    facets = [
        scene.at(levels, asserting(wrapped(Outbound, Says("Alice", 1)))),
        scene.at(levels, asserting(wrapped(Outbound, Says("Alice", "one")))),
    ]
    scene.at(levels, sending(wrapped(Outbound, Says("Bob", 2))))
    scene.stop(*facets)
    assert outside == [
        ("+", "Alice", 1),
        ("+", "Alice", "one"),
        ("!", "Bob", 2),
        ("-", "Alice", 1),
        ("-", "Alice", "one"),
    ]
    assert inside == [("+", "Alice", 1), ("!", "Bob", 2), ("-", "Alice", 1)]
    one, two = (wrapped(Inbound, Says("Alice", what)) for what in (1, "one"))
    assert whole == [("+", one), ("+", two), ("-", one), ("-", two)]


def test_only_as_far_as_asked() -> None:
    """An interest in what is one level out sees that level alone."""
    scene = Scene(2)
    inside = scene.watch(2, Inbound(Says(capture(), ANY)))
    for level in (0, 1, 2):
        scene.at(level, asserting(Says(level, "here")))
    assert inside == [("+", 1)]


# ------------------------------------------------------------------------------------------------ visibility


def test_overlapping_patterns() -> None:
    """Two interests in different parts of the same assertions: each has exactly its captures, each once."""
    scene = Scene()
    who = scene.watch(1, Inbound(Says(capture(), ANY)))
    what = scene.watch(1, Inbound(Says(ANY, capture())))
    both = scene.watch(1, Inbound(Says(capture(), capture())))
    alice = [scene.at(0, asserting(Says("Alice", i))) for i in (1, True)]
    bob = scene.at(0, asserting(Says("Bob", 1)))
    scene.at(0, sending(Says("Bob", 1)))
    assert taken(who) == [("+", "Alice"), ("+", "Bob"), ("!", "Bob")]
    assert [(mark, freeze(v)) for mark, v in taken(what)] == [("+", 1), ("+", freeze(True)), ("!", 1)]
    assert taken(both) == [("+", "Alice", 1), ("+", "Alice", True), ("+", "Bob", 1), ("!", "Bob", 1)]
    scene.stop(alice[0], bob)
    assert taken(who) == [("-", "Bob")]
    assert what == [("-", 1)]


def test_a_discard_is_not_a_literal() -> None:
    """A pattern that demands a discard as data does not match for the sake of a neighbour that discards."""
    scene = Scene()
    discard = Record("discard")
    literal = scene.watch(1, Inbound(Says(capture(), discard)))
    anything = scene.watch(1, Inbound(Says(capture(), ANY)))
    scene.at(0, asserting(Says("Alice", 1)))
    assert (literal, anything) == ([], [("+", "Alice")])
    scene.at(0, asserting(Says("Bob", discard)))
    assert literal == [("+", "Bob")]


def test_one_of_two_interests_goes() -> None:
    """The other one, overlapping, is notified of nothing: no assertion flickers when responsibility passes on."""
    scene = Scene()
    scene.at(0, asserting(Says("Alice", 1)))
    for keep, drop in [
        (Says("Alice", capture()), Says(capture(), 1)),
        (Says(capture(), ANY), Says(capture(), ANY)),
    ]:
        first = scene.at(1, watching(Inbound(drop)))
        seen = scene.watch(1, Inbound(keep))
        assert len(taken(seen)) == 1
        scene.stop(first)
        assert seen == []


@pytest.mark.parametrize("order", ["new first", "old first"])
def test_an_interest_is_replaced(order: str) -> None:
    """One interest follows another in one turn, in either order: the assertion stays inside throughout."""
    scene = Scene()
    says = Says("Alice", 1)
    scene.at(0, asserting(says))
    wild = scene.watch(1, capture())
    old = scene.at(1, watching(Inbound(Says("Alice", capture()))))
    new: list[Seen] = []

    def replace(ds: Ref) -> None:
        if order == "old first":
            stop(old)
        react(lambda: new.append(watch(ds, Inbound(Says(capture(), 1)))))
        stop(old)

    scene.at(1, replace)
    assert new == [[("+", "Alice")]]
    assert [event for event in wild if isinstance(event[1], Inbound)] == [("+", Inbound(says))]


def test_nobody_asks_any_more() -> None:
    """The paper's cleanup function: with the last interest, what it brought in goes, and the interest outside too."""
    scene = Scene()
    asserted = scene.interests()
    scene.at(0, asserting(Says("Alice", 1)))
    wild = scene.watch(1, capture(Symbol))  # no interest in what is inbound
    whole = scene.watch(1, capture())
    facets = [
        scene.at(1, watching(Inbound(p))) for p in (Says(capture(), ANY), Says(ANY, capture()), Says("Alice", ANY))
    ]
    assert scene.interests() == asserted + 2  # the first two are one interest in the same assertions
    inbound = ("+", Inbound(Says("Alice", 1)))
    assert [event for event in taken(whole) if isinstance(event[1], Inbound)] == [inbound]
    scene.stop(*facets[:2])
    assert not [event for event in taken(whole) if isinstance(event[1], Inbound)]
    scene.stop(facets[2])
    assert [event for event in whole if isinstance(event[1], Inbound)] == [("-", inbound[1])]
    assert scene.interests() == asserted
    assert wild == []


def test_interest_in_everything_inside() -> None:
    """`capture()` inside is no interest in the outside; it sees what others have asked for."""
    scene = Scene()
    scene.at(0, asserting(Says("Alice", 1), ["other"]))
    asserted = scene.interests()
    wild = scene.watch(1, capture())
    scene.watch(1, ANY)
    assert scene.interests() == asserted
    scene.watch(1, Inbound(Says("Alice", ANY)))
    inbound = [value for mark, value in wild if isinstance(value, Inbound)]
    assert inbound == [Inbound(Says("Alice", 1))]


def test_interest_in_everything_outside() -> None:
    """`Inbound(capture())` sees all of the outer dataspace, interests included, and comes to rest."""
    scene = Scene(2)
    inside = scene.watch(1, Inbound(capture()))
    scene.watch(2, Inbound(capture()))
    scene.at(0, asserting(Says("Alice", 1)))
    assert ("+", Says("Alice", 1)) in inside
    assert sum(isinstance(value, Observe) for mark, value in inside) == scene.interests() > 0
    assert scene.sound


@pytest.mark.parametrize(
    ("pattern", "events"),
    [
        (capture(Inbound), [Inbound(3), Inbound("x")]),
        (capture(Inbound(capture(int))), [Inbound(3)]),
        (capture(capture(Inbound(3))), [Inbound(3)]),
        (Inbound(capture(str)), ["x"]),
        (Inbound("x"), []),
        (Group("rec", Symbol("inbound"), ()), []),
    ],
)
def test_patterns_that_ask(pattern: Any, events: list[Any]) -> None:
    """However an interest in inbound values is written, it asks, and gets its own captures."""
    scene = Scene()
    scene.at(0, asserting(3, "x"))
    seen = scene.watch(1, pattern)
    got = [event[1] for event in seen if len(event) > 1 and not isinstance(getattr(event[1], "value", 0), Observe)]
    assert sorted(map(str, got)) == sorted(map(str, events))
    assert seen[0][0] == "+"


def test_interest_of_nobody() -> None:
    """An `Observe` for something that is no reference asks for nothing."""
    scene = Scene()
    asserted = scene.interests()
    scene.at(1, asserting(Record("Observe", [quote(Inbound(capture())), "nobody"])))
    assert scene.interests() == asserted


@pytest.mark.parametrize(
    "value",
    [
        Record("Observe", [Record("group", [Record("rec", [Symbol("inbound")]), "no entries"]), "no ref"]),
        Record("Observe", [Record("group", [Record("rec", [Symbol("inbound")]), {0: "no pattern"}])]),
        Record("Observe", [Record("bind", ["no pattern"])]),
        Record("Observe", [Record("bind", [Record("lit", [["no atom"]])])]),
        Record("Observe", [quote(Record("inbound", [ANY, ANY]))]),
        Record("Observe", [Record("group", [Record("rec", [Symbol("inbound")]), {False: Record("_")}])]),
    ],
)
def test_malformed_interest(value: Record) -> None:
    """An `Observe` that is not one, or can match no `Inbound`, is a plain assertion and harms nobody."""
    scene = Scene()
    asserted = scene.interests()

    def act(ds: Ref) -> None:
        watcher = ref(Watcher())
        assert_(ds, value)
        assert_(ds, Record("Observe", [value.fields[0], watcher]))
        assert_(ds, Record("Observe", [value.fields[0], watcher, "and more"]))
        send(ds, Record("Observe", [value.fields[0], watcher]))

    facet = scene.at(1, act)
    scene.at(1, lambda ds: send(ds, Observe(Inbound(capture()), ref(Watcher()))))
    assert scene.interests() == asserted
    scene.stop(facet)
    assert scene.sound


def test_the_deepest_values_cross() -> None:
    """A value as deep as values may be gets a wrapper nevertheless, and two observers of it work as ever."""
    scene = Scene()
    deep: Any = "bottom"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    seen = scene.watch(1, Inbound([capture()]))
    scene.stop(scene.at(0, asserting(deep)))
    scene.at(0, sending(deep))
    assert [mark for mark, _ in seen] == ["+", "-", "!"]
    assert freeze(seen[0][1]) == freeze(deep[0])
    assert scene.sound


# ------------------------------------------------------------------------------------------------ messages


def test_equal_messages_are_several() -> None:
    """However many interests a message matches, each observer hears it once, and equal ones as often as sent."""
    scene = Scene()
    patterns = [Says(capture(), ANY), Says("Alice", capture()), Says(capture(), 1), capture(Says)]
    seen = [scene.watch(1, Inbound(p)) for p in patterns]
    twice = scene.watch(1, Inbound(patterns[0]))
    for value, expected in [(Says("Alice", 1), 5), (Says("Bob", 2), 3)]:
        for times in (1, 3):
            scene.at(0, sending(*[value] * times))
            counts = [len(taken(s)) for s in [*seen, twice]]
            assert sum(counts) == expected * times
            assert set(counts) <= {0, times}


def test_atoms_and_the_same_object_as_messages() -> None:
    """Messages that are one and the same object to Python are as many messages as were sent."""
    scene = Scene()
    seen = [scene.watch(1, Inbound(p)) for p in (capture(bool), True, capture())]
    taken(seen[2])
    scene.at(0, sending(True, True, True))
    assert [len(s) for s in seen] == [3, 3, 3]


def test_messages_while_interests_change() -> None:
    """Interests that come and go between equal messages of one turn change nothing for one that stays."""
    scene = Scene()
    seen = scene.watch(1, Inbound(Says(capture(), ANY)))
    patterns = [Says("Alice", capture()), Says(ANY, 1), capture(Says("Alice", 1))]
    facets: list[Any] = []
    for _ in range(4):
        for pattern in patterns:

            def act(ds: Ref, pattern: Any = pattern) -> None:
                send(ds, Outbound(Says("Alice", 1)))
                send(ds, Outbound(Says("Alice", 1)))
                if len(facets) > 1:
                    stop(facets.pop(0))
                facets.append(react(lambda: watch(ds, Inbound(pattern))))
                send(ds, Outbound(Says("Alice", 1)))

            scene.later(1, act)
            scene.later(0, sending(Says("Alice", 1)))
    scene.system.drain()
    assert seen == [("!", "Alice")] * 4 * 3 * 4


@pytest.mark.parametrize("goes", [0, 1])
def test_a_message_after_an_interest_has_gone(goes: int) -> None:
    """When the interest that notified of a message goes, the other one notifies of the next, though that equals the
    last.
    """
    scene = Scene()
    heard: list[Seen] = []

    def listen(ds: Ref, pattern: Any) -> None:
        heard.append(watch(ds, Inbound(pattern)))

    patterns = [Says(capture(), ANY), Says("Alice", ANY)]
    facets = [scene.at(1, partial(listen, pattern=pattern)) for pattern in patterns]
    scene.at(0, sending(Says("Alice", 1)))
    scene.stop(facets[goes])
    scene.at(0, sending(Says("Alice", 1)))
    assert [len(heard[goes]), len(heard[1 - goes])] == [1, 2]


# ------------------------------------------------------------------------------------------------ loops


def test_loop() -> None:
    """An actor that says something outside and hears it from there comes to rest."""
    scene = Scene()
    heard: list[Any] = []

    def act(ds: Ref) -> None:
        assert_(ds, Outbound(Says("Alice", 1)))
        heard.append(watch(ds, Inbound(Says(capture(), capture()))))
        during(ds, Inbound(Says("Alice", capture())))(lambda n: assert_(ds, Outbound(Says("Echo", n))))

    scene.stop(scene.at(1, act))
    assert heard == [[("+", "Alice", 1), ("+", "Echo", 1)]]
    assert scene.watch(0, capture(Says)) == []


def test_two_spaces_side_by_side() -> None:
    """Actors in two dataspaces nested in the same one talk through it."""
    heard: list[Seen] = []

    def child(inner: Ref, name: str) -> None:
        assert_(inner, Outbound(Says(name, "here")))
        heard.append(watch(inner, Inbound(Says(capture(), "here"))))

    def boot() -> None:
        ds = dataspace()
        for name in ("left", "right"):
            nested(ds, child, name)

    settled(boot)
    assert [sorted(seen) for seen in heard] == [[("+", "left"), ("+", "right")]] * 2


class Proxy(Entity):
    """Stands for a dataspace as a peer's would: an entity that wants values, and hands all on."""

    def __init__(self, ds: Ref) -> None:
        self.ds = ds
        self.handles: dict[Any, Any] = {}

    def assert_(self, value: Any, handle: Any) -> None:
        self.handles[handle] = assert_(self.ds, value)

    def retract(self, handle: Any) -> None:
        self.handles.pop(handle).retract()

    def message(self, value: Any) -> None:
        send(self.ds, value)

    def sync(self, peer: Ref) -> None:
        current("sync").sync(self.ds, peer)


def test_any_entity_is_an_outside() -> None:
    """The outer dataspace may be reached through another entity, one that wants values instead of frozen forms."""
    heard: list[Seen] = []

    def child(inner: Ref) -> None:
        heard.append(watch(inner, Inbound(Says(capture(), ANY))))
        heard.append(watch(inner, Inbound(Says(ANY, capture()))))
        assert_(inner, Outbound(Says("Alice", 1)))
        send(inner, Outbound(Says("Bob", 2)))

    def boot() -> None:
        ds = dataspace()
        nested(ref(Proxy(ds)), child)
        assert_(ds, Says("Carol", 3))

    settled(boot)
    assert [sorted(seen) for seen in heard] == [
        [("!", "Bob"), ("+", "Alice"), ("+", "Carol")],
        [("!", 2), ("+", 1), ("+", 3)],
    ]


# ------------------------------------------------------------------------------------------------ ends


class Ends:
    """A host that nests a dataspace in a facet, with an inner actor, a linked and a loose one in it."""

    def __init__(self) -> None:
        self.facets: dict[str, Any] = {}
        self.ended: list[str] = []
        self.inner: Ref
        self.system = settled(self.boot)

    def boot(self) -> None:
        prevent_inert_check()
        self.ds = dataspace("outer")
        self.seen = watch(self.ds, Says(capture(), "here"))
        spawn(self.host, name="host")

    def host(self) -> None:
        prevent_inert_check()
        self.facets["host"] = current_facet()

        @react
        def nest() -> None:
            self.facets["nest"] = current_facet()
            self.inner = nested(self.ds, self.present, "boot", name="inside")

    def present(self, inner: Ref, name: str) -> None:
        self.facets[name] = current_facet()
        prevent_inert_check()
        on_stop(lambda: self.ended.append(name))
        watch(inner, Inbound(Says(capture(), "here")))
        assert_(inner, Outbound(Says(name, "here")))
        if name == "boot":
            spawn(self.present, inner, "linked", linked=True)
            spawn(self.present, inner, "loose")

    def enter(self, name: str, act: Callable[[], object]) -> None:
        self.facets[name].enter(act)
        self.system.drain()

    @property
    def present_now(self) -> set[str]:
        """Who is said to be here, outside."""
        counts = Counter[str]()
        for mark, name in self.seen:
            counts[name] += {"+": 1, "-": -1}[mark]
        return set(+counts)

    @property
    def outside(self) -> list[Any]:
        """All that is in the outer dataspace but the watching interest."""
        return list(index_of(self.ds))[1:]


def fail() -> None:
    """Crash."""
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize("ending", [stop, stop_actor, fail])
@pytest.mark.parametrize("where", ["nest", "host"])
def test_the_end_of_the_surroundings(
    where: str, ending: Callable[[], object], logs: list[MutableMapping[str, Any]]
) -> None:
    """With the facet that made it, or its actor, goes all that was relayed, and who was linked."""
    ends = Ends()
    assert ends.present_now == {"boot", "linked", "loose"}
    ends.enter(where, ending)
    assert ends.present_now == set()
    assert ends.outside == []
    assert sorted(ends.ended) == ["boot", "linked"]
    assert ends.inner.facet.actor not in ends.system.actors
    assert len(logs) == (ending is fail)
    ends.enter("loose", lambda: send(ends.inner, Outbound(Says("ghost", "here"))))
    assert ends.present_now == set()


@pytest.mark.parametrize("ending", [stop_actor, fail])
def test_the_end_of_an_inner_actor(ending: Callable[[], object], logs: list[MutableMapping[str, Any]]) -> None:
    """Its outbound assertions go, in order or by a crash, and nothing else."""
    ends = Ends()
    ends.enter("loose", ending)
    assert ends.present_now == {"boot", "linked"}
    ends.enter("boot", ending)
    assert ends.present_now == set()
    inside: list[Seen] = []
    ends.enter("host", lambda: react(lambda: inside.append(watch(ends.inner, Inbound(Says("new", capture()))))))
    ends.enter("host", lambda: react(lambda: assert_(ends.inner, Outbound(Says("new", "here")))))
    assert ends.present_now == {"new"}
    assert inside == [[("+", "here")]]


def test_the_end_of_the_inner_dataspace() -> None:
    """When it ends by itself, the relay does, and the facet around it goes on."""
    ends = Ends()
    ends.enter("nest", prevent_inert_check)
    ends.inner.facet.enter(stop_actor)
    ends.system.drain()
    assert ends.outside == []
    assert ends.facets["nest"].alive
    assert sorted(ends.ended) == ["boot", "linked"]


def test_the_end_of_the_outer_dataspace() -> None:
    """When that ends, what was inbound goes, and the inside goes on."""
    scene = Scene()
    scene.at(0, asserting(Says("Alice", 1)))
    inside = scene.watch(1, Inbound(Says(capture(), ANY)))
    scene.spaces[0].facet.enter(stop_actor)
    scene.system.drain()
    assert inside == [("+", "Alice"), ("-", "Alice")]
    mine = scene.watch(1, ["mine", capture()])
    scene.at(1, asserting(["mine", 1]))
    assert mine == [("+", 1)]
    assert scene.sound


def test_in_a_facet_that_has_stopped() -> None:
    """Nothing starts there, and no dataspace is left over."""
    instances: list[Ref] = []
    booted: list[Ref] = []

    def boot() -> None:
        ds = dataspace()
        stop_actor()
        instances.append(nested(ds, booted.append))

    system = settled(boot)
    assert booted == []
    assert [actor.name for actor in system.actors] == ["dataspace"]
    assert instances[0].facet.alive is False


def test_misuse() -> None:
    """Outside a turn, or with something else than a reference, the error says what to do."""
    with pytest.raises(NotInTurn, match=r"facet\.enter"):
        nested(Ref.unbound())
    with pytest.raises(NotAValue, match="dataspace"):
        settled(lambda: nested("outer"))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ differential

ATOMS = st.sampled_from([1, True, 1.0, "a", "b", Symbol("a")])
VALUES: st.SearchStrategy[Any] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(Says, inner, inner),
        st.lists(inner, max_size=3),
        st.builds(lambda v: {"k": v, True: 0}, inner),
    ),
    max_leaves=4,
)


def compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Patterns of compounds of `inner` ones."""
    return st.one_of(
        st.builds(Says, inner, inner),
        st.lists(inner, max_size=2),
        st.builds(lambda p: {"k": p}, inner),
    )


PARTS = st.recursive(
    st.one_of(ATOMS, st.sampled_from([ANY, capture(), capture(int), capture(str), capture(Symbol), Kind("Boolean")])),
    lambda inner: st.one_of(compound(inner), st.builds(capture, inner)),
    max_leaves=4,
)
# On its own a discard or a bare capture would match interests too: that case is tested by itself.
WHOLE = st.one_of(compound(PARTS), compound(PARTS).map(capture), ATOMS, st.just(capture(int)))

OUTER = st.one_of(
    st.tuples(st.just("assert"), VALUES),
    st.tuples(st.just("retract"), st.integers(0, 9)),
    st.tuples(st.just("send"), VALUES),
    st.tuples(st.just("send"), st.just(Says("a", 1))),  # equal messages, one behind the other, are the hard ones
)
INNER = st.one_of(
    OUTER,
    st.tuples(st.just("observe"), st.tuples(WHOLE, st.integers(0, 2))),
    st.tuples(st.just("observe"), st.tuples(st.sampled_from([Says(ANY, capture()), Says("a", ANY)]), st.just(0))),
    st.tuples(st.just("unobserve"), st.integers(0, 9)),
)
TURNS = st.one_of(
    st.tuples(st.just(False), st.lists(OUTER, min_size=1, max_size=4)),
    st.tuples(st.just(True), st.lists(INNER, min_size=1, max_size=6)),
)
ROUNDS = st.lists(st.lists(TURNS, min_size=1, max_size=3), min_size=1, max_size=8)


class Observed:
    """An inner observer and what it should know."""

    def __init__(self, pattern: Any, levels: int, wraps: int) -> None:
        for _ in range(levels):
            pattern = Inbound(pattern)
        for _ in range(wraps):
            pattern = capture(pattern)
        self.pattern = pattern
        self.levels = levels
        self.watcher = Watcher()
        self.handle: Any = None

    def captures(self, value: Any) -> Any:
        """What of an outer value it should be notified of, frozen, or None."""
        for _ in range(self.levels):
            value = Inbound(value)
        matched = match(self.pattern, value)
        return None if matched is None else freeze(matched)

    def all_captures(self, values: list[Any]) -> Counter[Any]:
        return Counter(result for value in values if (result := self.captures(value)) is not None)


class Model:
    """The same doings in a scene, and in a list of what is outside."""

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self.scene = Scene(levels)
        self.asserted: dict[bool, list[tuple[Any, Any]]] = {False: [], True: []}
        self.observers: list[Observed] = []
        self.sent: list[Any] = []
        self.touched: list[Any] = []

    @property
    def outside(self) -> list[Any]:
        return [value for asserted in self.asserted.values() for value, _ in asserted]

    def turn(self, inside: bool, steps: list[tuple[str, Any]]) -> None:
        """Do `steps` in one turn of the actor outside or inside."""
        level = self.levels if inside else 0

        def act() -> None:
            for verb, argument in steps:
                self.step(verb, argument, inside, self.scene.spaces[level])

        self.scene.homes[level].enter(act)

    def step(self, verb: str, inputs: Any, inside: bool, ds: Ref) -> None:
        outward = inputs
        for _ in range(self.levels if inside and verb in ("assert", "send") else 0):
            outward = Outbound(outward)
        asserted = self.asserted[inside]
        if verb == "assert":
            asserted.append((inputs, assert_(ds, outward)))
            self.touched.append(inputs)
        elif verb == "send":
            send(ds, outward)
            self.sent.append(inputs)
        elif verb == "retract" and asserted:
            value, handle = asserted.pop(inputs % len(asserted))
            handle.retract()
            self.touched.append(value)
        elif verb == "observe":
            observer = Observed(inputs[0], self.levels, inputs[1])
            observer.handle = assert_(ds, Observe(observer.pattern, ref(observer.watcher)))
            self.observers.append(observer)
        elif verb == "unobserve" and self.observers:
            self.observers.pop(inputs % len(self.observers)).handle.retract()

    def round(self, turns: list[tuple[bool, list[tuple[str, Any]]]]) -> None:
        """Some turns, one behind the other, then rest, then all that must hold."""
        before = list(self.observers)
        self.sent, self.touched = [], []
        for inside, steps in turns:
            self.turn(inside, steps)
        self.scene.system.drain()
        assert self.scene.sound
        for observer in self.observers:
            watcher = observer.watcher
            facts = Counter(freeze(value) for value in watcher.captures.values())
            assert facts == Counter(set(observer.all_captures(self.outside)))
            events = Counter((event[0], freeze(event[1:])) for event in taken(watcher.seen))
            heard = Counter({captures: n for (mark, captures), n in events.items() if mark == "!"})
            expected = observer.all_captures(self.sent)
            if observer in before:
                assert heard == expected
                touched = observer.all_captures(self.touched)
                assert all(captures in touched for mark, captures in events if mark != "!")
            else:
                assert heard <= expected


@pytest.mark.parametrize("levels", [1, 2])
@settings(max_examples=examples(250), deadline=None)
@given(rounds=ROUNDS)
def test_against_the_naive_matcher(levels: int, rounds: list[Any]) -> None:
    """At rest each inner observer knows what its pattern matches outside, and was notified of no more than had to be.

    One that was there before a round hears each matching message once, and is notified only of captures that somebody
    asserted or retracted, whatever other interests came and went.  In the end nothing is left over.
    """
    model = Model(levels)
    empty = model.scene.interests()
    for turns in rounds:
        model.round(turns)
    model.round([(True, [("unobserve", 0)] * len(model.observers))])
    assert model.scene.interests() == empty
    assert not [form for form in index_of(model.scene.spaces[levels]) if form[0] == Symbol("inbound")]
