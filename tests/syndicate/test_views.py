# mypy: disable-error-code="func-returns-value, misc"

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping
from itertools import groupby
from typing import Any

import pytest
import structlog
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import (
    ANY,
    Actor,
    Handle,
    Ref,
    SyndicateError,
    after,
    assert_,
    capture,
    current_facet,
    dataflow,
    dataspace,
    prevent_inert_check,
    query_set,
    react,
    record,
    run,
    send,
    spawn,
    stop,
    supervise,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.errors import CircuitError, NotAValue, NotInTurn, PatternError, StepFailed, UnknownStream
from syndicate.flow import Circuit, ZSet, aggregates
from syndicate.plan import Agg, AntiJoin, GroupBy, Literal, Program, Projection, Union
from syndicate.testing import Seen, settled, watch
from syndicate.values.value import Frozen, Symbol, freeze
from syndicate.views import view
from tests.strategies import examples


@record
class Here:
    who: Any
    room: Any


@record
class Topic:
    room: Any
    topic: Any


@record
class Muted:
    who: Any


@record
class Gets:
    who: Any
    topic: Any


@record
class Size:
    room: Any
    number: int


@record
class Known:
    who: Any


@record
class Leads:
    start: Any
    end: Any


@record
class Nobody:
    pass


class Stage:
    """A dataspace, an actor that acts on it, and what observers of it were notified of."""

    def __init__(self, boot: Callable[[Ref], object]) -> None:
        self.system: System = settled(self._boot, boot)

    def _boot(self, boot: Callable[[Ref], object]) -> None:
        self.ds = dataspace()
        self.facet = current_facet()
        prevent_inert_check()
        self.seen: Seen = watch(self.ds, capture())
        self.booted = boot(self.ds)

    def act(self, *fns: Callable[[Ref], object]) -> list[Any]:
        """Run each function in a turn of the acting actor, one right after the other; return what they answered."""
        answers: list[Any] = []
        for fn in fns:
            self.facet.enter(lambda fn=fn: answers.append(fn(self.ds)))
        self.system.drain()
        return answers

    def events(self, *classes: type) -> list[tuple[str, Any]]:
        """What happened to records of these classes since we last asked, in order."""
        events = [(mark, value) for mark, value in self.seen if isinstance(value, classes)]
        self.seen.clear()
        return events


def one(name: str = "out", source: str = "in") -> Circuit:
    """A circuit that says what it hears."""
    circuit = Circuit()
    circuit.sink(name, circuit.source(source))
    return circuit


# --------------------------------------------------------------------------------------------- against recomputation


def talk() -> Circuit:
    """Who gets what, how full rooms are, whom we know, where topics lead: linear, joins, counts, a recursion."""
    c = Circuit()
    here, topics, muted = c.source("here"), c.source("topics"), c.source("muted")
    by_room = topics.index_with(lambda t: t[0])
    heard = here.index_with(lambda h: h[1]).join(by_room, lambda room, h, t: (h[0], t[1]))
    c.sink("gets", heard.index_with(lambda g: g[0]).antijoin(muted))
    c.sink("sizes", here.index_with(lambda h: h[1]).aggregate(aggregates.count))
    c.sink("known", here.map(lambda h: h[0]))
    c.sink(
        "leads",
        c.recursive(lambda r: topics + r.index_with(lambda p: p[1]).join(by_room, lambda k, p, t: (p[0], t[1]))),
    )
    return c


TALK = talk()
INPUTS = {"here": Here, "topics": Topic(capture(), capture()), "muted": Muted(capture())}
OUTPUTS = {"gets": Gets, "sizes": Size, "known": Known, "leads": Leads}


def recomputed(facts: Counter[Frozen]) -> frozenset[Frozen]:
    """What follows from facts, by the definitions, in frozen forms."""
    here, topics, muted = (
        {form[1:] for form, number in facts.items() if number and form[0] is Symbol(label)}
        for label in ("Here", "Topic", "Muted")
    )
    gets = {(who, topic) for who, room in here for r, topic in topics if r == room and (who,) not in muted}
    leads, longer = set(topics), set(topics)
    while longer:
        longer = {(a, d) for a, b in longer for c, d in topics if b == c} - leads
        leads |= longer
    sizes = Counter(room for _, room in here)
    return frozenset(
        [(Symbol("Gets"), *g) for g in gets]
        + [(Symbol("Leads"), *pair) for pair in leads]
        + [(Symbol("Size"), room, number) for room, number in sizes.items()]
        + [(Symbol("Known"), who) for who in {who for who, _ in here}]
    )


atoms = st.sampled_from([1, 1.0, True, "a"])
facts = st.builds(Here, atoms, atoms) | st.builds(Topic, atoms, atoms) | st.builds(Muted, atoms)
programs = st.lists(  # turns of one actor or the other, each of changes; and whether all is at rest before the next
    st.tuples(st.booleans(), st.lists(facts, min_size=1, max_size=5), st.booleans()), max_size=12
)


@given(programs, st.integers(0, 12))
def test_outputs_are_those_of_a_prefix(program: list[tuple[bool, list[Any], bool]], late: int) -> None:
    """What an observer sees, turn by turn, is recomputation after each turn of the inputs, none left out or torn."""
    actors: list[Facet] = []
    snapshots: list[frozenset[Frozen]] = []
    instances: list[Ref] = []

    def acting() -> None:
        actors.append(current_facet())
        prevent_inert_check()

    def recording(ds: Ref) -> None:
        present = [query_set(ds, capture(cls)) for cls in OUTPUTS.values()]

        @dataflow
        def note() -> None:
            snapshots.append(frozenset(freeze(each) for field in present for each in field.value))

    def boot() -> None:
        instances.append(dataspace())
        spawn(acting)
        spawn(acting)
        spawn(recording, instances[0])

    def begin() -> None:
        spawn(view(instances[0], TALK, INPUTS, OUTPUTS))

    system = settled(boot)
    held: list[dict[Frozen, Handle]] = [{}, {}]
    current: Counter[Frozen] = Counter()

    def change(which: int, values: list[Any]) -> None:
        for value in values:
            form = freeze(value)
            if form in held[which]:
                held[which].pop(form).retract()
                current[form] -= 1
            else:
                held[which][form] = assert_(instances[0], value)
                current[form] += 1
        states.append(recomputed(current))

    states: list[frozenset[Frozen]] = [frozenset()]
    for number, (which, values, rest) in enumerate(program):
        if number == late:
            system.drain()
            actors[0].enter(begin)
            system.drain()
            del states[1:-1]
        actors[which].enter(lambda which=which, values=values: change(which, values))
        if rest and number >= late:
            system.drain()
            assert snapshots[-1] == states[-1]
    if late >= len(program):
        system.drain()
        actors[0].enter(begin)
        del states[1:-1]
    system.drain()
    assert [state for state, _ in groupby(snapshots)] == [state for state, _ in groupby(states)]


def test_many_inputs_are_one_step() -> None:
    """10,000 assertions of one turn, of two inputs, are one step of the circuit, and one turn of an observer."""
    steps: list[int] = []
    c = Circuit()
    here, topics = c.source("here"), c.source("topics")
    here.inspect(lambda delta: steps.append(len(delta)))
    joined = here.index_with(lambda h: h[1]).join(topics.index_with(lambda t: t[0]), lambda k, h, t: (h[0], t[1]))
    c.sink("gets", joined)
    turns: list[int] = []

    def observing(ds: Ref) -> None:
        present = query_set(ds, capture(Gets))
        dataflow(lambda: turns.append(len(present.value)))

    stage = Stage(
        lambda ds: (spawn(view(ds, c, {"here": Here, "topics": Topic}, {"gets": Gets})), spawn(observing, ds))
    )

    def many(ds: Ref) -> Facet:
        return react(
            lambda: [assert_(ds, Topic(i, i)) for i in range(5_000)] and [assert_(ds, Here(i, i)) for i in range(5_000)]
        )

    (facet,) = stage.act(many)
    stage.act(lambda _: stop(facet))
    assert steps == [0, 5_000, 5_000]
    assert turns == [0, 5_000, 0]


# --------------------------------------------------------------------------------------------- what is asserted when


@pytest.mark.parametrize("outputs", [{"sizes": Size, "known": Known}, {"known": Known, "sizes": Size}])
def test_new_conclusions_come_before_old_ones_go(outputs: dict[str, type]) -> None:
    """Over all outputs of a step, in their order, assertions come before retractions."""
    c = Circuit()
    here = c.source("here")
    c.sink("sizes", here.index_with(lambda h: h[1]).aggregate(aggregates.count))
    c.sink("known", here.map(lambda h: h[0]))
    stage = Stage(lambda ds: react(view(ds, c, {"here": Here}, outputs)))
    (alice,) = stage.act(lambda ds: assert_(ds, Here("Alice", "hall")))
    stage.events()
    stage.act(lambda ds: (alice.retract(), assert_(ds, Here("Bob", "hall")), assert_(ds, Here("Carol", "hall"))))
    events = stage.events(Size, Known)
    classes = list(outputs.values())
    assert events == sorted(events, key=lambda event: (event[0], event[0] == "+" and classes.index(type(event[1]))))
    assert Counter(events) == Counter(
        [
            ("+", Size("hall", 2)),
            ("-", Size("hall", 1)),
            ("+", Known("Bob")),
            ("+", Known("Carol")),
            ("-", Known("Alice")),
        ]
    )


def test_a_bag_becomes_a_set() -> None:
    """An element is asserted while its weight is above 0, however far; below 0 it is not."""
    c = Circuit()
    c.sink("known", c.source("here").map(lambda h: h[0]) - c.source("muted"))
    stage = Stage(lambda ds: react(view(ds, c, {"here": Here, "muted": Muted(capture())}, {"known": Known})))
    (muted,) = stage.act(lambda ds: assert_(ds, Muted("Al")))
    rooms = stage.act(*[lambda ds, room=room: assert_(ds, Here("Al", room)) for room in range(3)])
    assert stage.events(Known) == [("+", Known("Al"))]  # -1, 0, 1, 2
    stage.act(lambda _: rooms[0].retract(), lambda _: muted.retract(), lambda _: rooms[1].retract())
    assert stage.events(Known) == []  # 1, 2, 1
    stage.act(lambda _: rooms[2].retract())
    assert stage.events(Known) == [("-", Known("Al"))]


def test_values_have_their_types() -> None:
    """1, 1.0 and True are three elements on the way in and on the way out."""
    stage = Stage(lambda ds: react(view(ds, one(), {"in": Muted(capture())}, {"out": Known})))
    stage.act(lambda ds: [assert_(ds, Muted(value)) for value in (1, 1.0, True, 1)])
    assert [freeze(value) for _, value in stage.events(Known)] == [freeze(Known(value)) for value in (True, 1.0, 1)]


@pytest.mark.parametrize(
    ("pattern", "element"),
    [
        (Here, ("Al", "hall")),
        (Here(capture(), capture(str)), ("Al", "hall")),
        (Here(capture(), "hall"), "Al"),
        (Here("Al", "hall"), ()),
        (Muted, (1, (2,))),
        (capture(Muted), Muted([1, [2]])),
        (Muted([capture(int), capture([capture()])]), (1, (2,), 2)),
        (Topic(ANY, {"deep": capture()}), True),
    ],
)
def test_elements(pattern: Any, element: Any) -> None:
    """Several captures are a tuple, one is bare, none the empty tuple; a class stands for all its fields."""
    got: list[Any] = []
    c = one()
    c.sink("got", c.source("more").inspect(got.extend))
    stage = Stage(lambda ds: react(view(ds, c, {"in": Gets, "more": pattern}, {})))
    stage.act(
        lambda ds: [assert_(ds, fact) for fact in (Here("Al", "hall"), Muted([1, [2]]), Topic(1, {"deep": True}))]
    )
    assert [freeze(each) for each in got] == [freeze(element)]


@pytest.mark.parametrize(
    ("element", "cls", "value"),
    [
        (("Al", "hall"), Here, Here("Al", "hall")),
        (Here("Al", "hall"), Here, Here("Al", "hall")),
        ("Al", Known, Known("Al")),
        (("Al",), Known, Known(["Al"])),
        (Here("Al", "hall"), None, Here("Al", "hall")),
        ((1, Symbol("x")), None, [1, Symbol("x")]),
        ((), Nobody, Nobody()),
    ],
)
def test_values(element: Any, cls: type | None, value: Any) -> None:
    """A class makes a record of a tuple or of a bare element, and leaves its own records alone; None leaves all."""
    c = Circuit()
    c.sink("out", c.source("in").map(lambda _: element))
    stage = Stage(lambda ds: react(view(ds, c, {"in": Muted}, {"out": cls})))
    stage.events()
    stage.act(lambda ds: assert_(ds, Muted("x")))
    events = [(mark, freeze(each)) for mark, each in stage.events(object) if freeze(each) != freeze(Muted("x"))]
    assert events == [("+", freeze(value))]


def test_a_view_takes_back_all_when_it_stops() -> None:
    """All conclusions go with the facet of the view, and come again with another view of the same circuit."""
    c = one()
    stage = Stage(lambda ds: react(view(ds, c, {"in": Here}, {"out": Topic})))
    stage.act(lambda ds: [assert_(ds, Here(i, i)) for i in range(3)])
    assert len(stage.events(Topic)) == 3
    stage.act(lambda _: stop(stage.booted))  # type: ignore[arg-type]  # it has booted
    assert stage.events(Topic) == [("-", Topic(i, i)) for i in range(3)]
    (again,) = stage.act(lambda ds: spawn(view(ds, c, {"in": Here}, {"out": Topic})))
    assert again.name == "view"
    assert stage.events(Topic) == [("+", Topic(i, i)) for i in range(3)]


def test_a_view_that_stops_in_the_turn_of_its_inputs() -> None:
    """Inputs that come in the turn in which the view's facet stops have no effect."""

    def boot(ds: Ref) -> None:
        facet = react(view(ds, one(), {"in": Here}, {"out": Topic}))
        query_set(ds, Here(capture(), "end"), on_add=lambda _: stop(facet))

    stage = Stage(boot)
    stage.act(lambda ds: (assert_(ds, Here(1, 1)), assert_(ds, Here(1, "end"))))
    assert stage.events(Topic) == []


# --------------------------------------------------------------------------------------------- messages


def test_a_message_is_there_for_one_step() -> None:
    """What follows from a message is asserted for one turn, joined with what is asserted, and goes by itself."""
    c = Circuit()
    said, here = c.source("said"), c.source("here")
    heard = said.index_with(lambda m: m[0]).join(here.index_with(lambda h: h[1]), lambda k, m, h: (h[0], m[1]))
    c.sink("gets", heard)
    turns: list[set[Any]] = []

    def observing(ds: Ref) -> None:
        present = query_set(ds, Gets(capture(), capture()))
        dataflow(lambda: turns.append(set(present.value)))

    stage = Stage(
        lambda ds: (react(view(ds, c, {"here": Here}, {"gets": Gets}, {"said": Topic})), spawn(observing, ds))
    )
    stage.act(lambda ds: (assert_(ds, Here("Al", "hall")), assert_(ds, Topic("hall", "asserted, not said"))))
    assert turns == [set()]
    stage.act(lambda ds: (send(ds, Topic("hall", "hi")), send(ds, Topic("hall", "hi")), send(ds, Topic("attic", "hi"))))
    assert turns == [set(), {("Al", "hi")}, set()]
    stage.act(lambda ds: assert_(ds, Here("Bo", "hall")))
    assert len(turns) == 3  # who comes later has heard nothing
    del turns[:]
    stage.act(*[lambda ds, number=number: send(ds, Topic("hall", number)) for number in (1, 2, 2, 3)])
    assert [sorted({number for _, number in turn}) for turn in turns] == [[1], [2], [3], []]


def test_a_view_that_stops_with_a_message_in_it() -> None:
    """The step in which a message would have gone is not made in a view that has stopped; what followed goes."""
    stage = Stage(lambda ds: react(view(ds, one(), {}, {"out": Known}, messages={"in": Muted})))
    stage.facet.enter(lambda: send(stage.ds, Muted("Al")))
    stage.facet.enter(lambda: stop(stage.booted))  # type: ignore[arg-type]  # it has booted
    stage.system.drain()
    events = stage.events(Known)
    assert events in ([], [("+", Known("Al")), ("-", Known("Al"))])


# --------------------------------------------------------------------------------------------- several views


def test_views_in_a_chain() -> None:
    """What one view concludes is the input of the next, turn by turn."""
    first, second = Circuit(), Circuit()
    first.sink("sizes", first.source("here").index_with(lambda h: h[1]).aggregate(aggregates.count))
    second.sink("full", second.source("sizes").filter(lambda s: s[1] > 1).map(lambda s: s[0]))

    def boot(ds: Ref) -> None:
        spawn(view(ds, second, {"sizes": Size}, {"full": Known}))
        spawn(view(ds, first, {"here": Here}, {"sizes": Size}))

    stage = Stage(boot)
    handles = stage.act(*[lambda ds, who=who: assert_(ds, Here(who, "hall")) for who in "abc"])
    stage.act(*[lambda _, handle=handle: handle.retract() for handle in handles])
    assert stage.events(Known) == [("+", Known("hall")), ("-", Known("hall"))]


def test_views_in_a_cycle() -> None:
    """Views that conclude from each other come to rest, and remain each other's reason; recursion in a circuit ends
    with its reason.
    """
    events, heard, both = Circuit(), Circuit(), Circuit()
    events.sink("known", events.source("muted") + events.source("heard"))
    heard.sink("heard", heard.source("known").map(lambda who: (who, "heard")))
    reason = both.source("muted")
    both.sink("leads", both.recursive(lambda present: reason + present).map(lambda who: (who, who)))

    def boot(ds: Ref) -> None:
        spawn(view(ds, events, {"muted": Muted, "heard": Gets(capture(), "heard")}, {"known": Known}))
        spawn(view(ds, heard, {"known": Known}, {"heard": Gets}))
        spawn(view(ds, both, {"muted": Muted}, {"leads": Leads}))

    stage = Stage(boot)
    (handle,) = stage.act(lambda ds: assert_(ds, Muted("Al")))
    assert stage.events(Known, Gets) == [("+", Known("Al")), ("+", Gets("Al", "heard"))]
    stage.act(lambda _: handle.retract())
    assert stage.events(Known, Gets, Leads) == [("-", Leads("Al", "Al"))]


def test_a_program_of_rules() -> None:
    """A plan is a view as well: facts of one column are tuples, and literal rows are there from the start."""
    program = Program()
    here, muted = program.edb("here", "who", "room"), program.edb("muted", "who")
    program.rule("known", AntiJoin(Union(Projection(here, ("who",)), Literal(("who",), [("Zoe",)])), muted))

    plan = program.plan()
    inputs = {"here": Here, "muted": Muted}
    facets: list[Facet] = []
    stage = Stage(lambda ds: facets.append(react(view(ds, plan, inputs, {"known": Known}))))
    assert stage.events(Known) == [("+", Known("Zoe"))]
    stage.act(lambda ds: (assert_(ds, Here("Al", 1)), assert_(ds, Here("Bo", 1)), assert_(ds, Muted("Bo"))))
    (zoe,) = stage.act(lambda ds: assert_(ds, Muted("Zoe")))
    stage.act(lambda _: zoe.retract())
    assert stage.events(Known) == [("+", Known("Al")), ("-", Known("Zoe")), ("+", Known("Zoe"))]
    stage.act(lambda _: stop(facets[0]))
    assert stage.events(Known) == [("-", Known("Al")), ("-", Known("Zoe"))]
    stage.act(lambda ds: react(view(ds, plan, inputs, {"known": Known})))
    assert stage.events(Known) == [("+", Known("Zoe")), ("+", Known("Al"))]


def test_a_fact_is_there_while_an_assertion_gives_it() -> None:
    """A relation is a set: assertions that give the same fact give it once, and the last of them takes it away."""
    program = Program()
    program.rule("known", program.edb("here", "who"))
    program.rule("size", GroupBy(program["here"], (), [("n", Agg(aggregates.count))]))
    plan = program.plan()
    inputs, outputs = {"here": Here(capture(), ANY)}, {"known": Known, "size": Muted}
    stage = Stage(lambda ds: react(view(ds, plan, inputs, outputs)))
    rooms = stage.act(*[lambda ds, room=room: assert_(ds, Here("Al", room)) for room in range(3)])
    assert stage.events(Known, Muted) == [("+", Known("Al")), ("+", Muted(1))]
    stage.act(lambda _: rooms[0].retract(), lambda _: rooms[1].retract())
    assert stage.events(Known, Muted) == []
    stage.act(lambda _: rooms[2].retract())
    assert sorted(stage.events(Known, Muted), key=str) == [("-", Known("Al")), ("-", Muted(1))]


# --------------------------------------------------------------------------------------------- mistakes


def crashed(stage: Stage) -> BaseException:
    """The error that the view of a stage ended with."""
    assert isinstance(stage.booted, Actor)
    assert stage.booted.error is not None
    return stage.booted.error


def refused(logs: list[MutableMapping[str, Any]]) -> list[str]:
    """Why rows were refused, as the log has it."""
    return [str(line["reason"]) for line in logs if line["event"] == "a row was refused"]


def test_a_function_that_raises_at_a_row_of_an_untrusted_peer(logs: list[MutableMapping[str, Any]]) -> None:
    """The row is refused, and the log names it, the node and the element; the view goes on with all others."""
    c = Circuit()
    c.sink("out", c.source("in").map(lambda h: (h[0], 6 // h[1])).named("halve"))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Here}, {"out": Topic})))
    stage.act(lambda ds: assert_(ds, Here("a", 2)))
    (handles,) = stage.act(
        lambda ds: [assert_(ds, Here(name, n)) for name, n in (("b", 3), ("c", 0), ("d", "x"), ("e", 1))]
    )
    assert stage.events(Topic) == [("+", Topic("a", 3)), ("+", Topic("b", 2)), ("+", Topic("e", 6))]
    why = refused(logs)
    assert [text.partition(" makes ")[0] for text in why] == ["('c', 0)", "('d', 'x')"]
    assert 'map "halve" (node 1, test_views.py' in why[0]
    assert "ZeroDivisionError" in why[0]
    stage.act(lambda _: [handle.retract() for handle in handles])
    assert stage.events(Topic) == [("-", Topic("b", 2)), ("-", Topic("e", 6))]
    assert stage.events(Topic) == []


def test_a_circuit_that_raises_by_itself(logs: list[MutableMapping[str, Any]]) -> None:
    """Without anything of untrusted peers the mistake is the program's own: the view crashes with it."""
    c = Circuit()
    c.sink("out", (c.source("in") + c.constant(ZSet({("own", 0): 1}))).map(lambda h: (h[0], 6 // h[1])))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Here}, {"out": Topic})))
    assert isinstance(crashed(stage), StepFailed)
    assert "at ('own', 0)" in str(crashed(stage))


def test_a_message_that_is_refused_is_not_taken_away_again(logs: list[MutableMapping[str, Any]]) -> None:
    """And one turn's other messages are there nevertheless."""
    c = Circuit()
    c.sink("out", (c.source("in") + c.source("said")).map(lambda h: (h[0], 6 // h[1])))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Here}, {"out": Topic}, {"said": Here})))
    stage.act(lambda ds: (send(ds, Here("m", 0)), send(ds, Here("n", 2))))
    assert stage.events(Topic) == [("+", Topic("n", 3)), ("-", Topic("n", 3))]
    assert len(refused(logs)) == 1
    stage.act(lambda ds: send(ds, Here("m", 1)))
    assert stage.events(Topic) == [("+", Topic("m", 6)), ("-", Topic("m", 6))]
    assert len(refused(logs)) == 1


def test_the_end_of_an_assertion_that_a_circuit_raises_at(logs: list[MutableMapping[str, Any]]) -> None:
    """It stays in the circuit, and the log says so; what came and went in that turn has never been."""
    c = Circuit()
    c.sink("out", c.source("in").index_with(lambda h: h[0]).aggregate(one_only).map(lambda pair: (pair[0], pair[1])))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Here}, {"out": Topic})))
    ((one, two),) = stage.act(lambda ds: (assert_(ds, Here("a", 1)), assert_(ds, Here("b", 1))))
    stage.act(lambda ds: assert_(ds, Here("a", 2)).retract())
    assert refused(logs) == []
    stage.act(lambda ds: (assert_(ds, Here("a", 2)), two.retract()))
    assert stage.events(Topic) == [("+", Topic("a", 1)), ("+", Topic("b", 1)), ("-", Topic("b", 1))]
    assert [text.partition(" makes ")[0] for text in refused(logs)] == ["('a', 2)"]
    stage.act(lambda _: one.retract())
    assert stage.events(Topic) == [("-", Topic("a", 1))]


def one_only(rows: Any) -> int:
    """The number of a group's only row; raises :class:`ValueError` where there are two."""
    ((_, number),) = dict(rows)
    return int(number)


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1, 2, 3, "x"]), st.booleans()), min_size=1, max_size=30
    ),
    st.integers(1, 6),
)
def test_who_is_refused_changes_nothing_for_others(program: list[tuple[str, Any, bool]], size: int) -> None:
    """Whatever stands among it, in turns of any size: the conclusions are those of the rows that do not raise."""
    c = Circuit()
    c.sink("out", c.source("in").map(lambda h: (h[0], 6 // h[1])))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Here}, {"out": Topic})))
    handles: dict[tuple[str, Any], Handle] = {}

    def turn(ds: Ref, changes: list[tuple[str, Any, bool]]) -> None:
        for name, number, there in changes:
            handle = handles.pop((name, number), None)
            if there and handle is None:
                handles[name, number] = assert_(ds, Here(name, number))
            elif handle is not None:
                handle.retract()

    with structlog.testing.capture_logs():
        shown: set[Any] = set()
        for first in range(0, len(program), size):
            stage.act(lambda ds, first=first: turn(ds, program[first : first + size]))
            for mark, value in stage.events(Topic):
                assert (mark == "-") == (value in shown)
                shown ^= {value}
            assert shown == {Topic(name, 6 // number) for name, number in handles if number in (1, 2, 3)}


async def test_a_supervised_view_begins_afresh(
    system: System, settle: Callable[[], Any], logs: list[MutableMapping[str, Any]]
) -> None:
    """After a crash a new engine sees the inputs as they are then."""
    c, fuse = Circuit(), [0]
    c.sink("out", (c.source("in") + c.constant(ZSet({("own", 6): 1}))).map(lambda h: (h[0], 6 // h[1] // fuse[0])))
    instances: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        instances.extend([ds, current_facet(), watch(ds, Topic(capture(), capture()))])
        supervise(view(ds, c, {"in": Here}, {"out": Topic}))
        assert_(ds, Here("a", 2))

    system.spawn(boot)
    await settle()
    ds, facet, seen = instances
    assert seen == []
    facet.enter(lambda: assert_(ds, Here("b", 1)))
    fuse[0] = 1
    await trio.sleep(1)
    await settle()
    assert sorted(seen) == [("+", "a", 3), ("+", "b", 6), ("+", "own", 1)]


@pytest.mark.parametrize(
    ("element", "cls", "message"),
    [
        (("a", "b", "c"), Topic, "gave ('a', 'b', 'c'), which is no Topic(room, topic): let it give tuples of 2"),
        ("a", Topic, "gave 'a', which is no Topic(room, topic)"),
        (("a", print), Topic, "is not a value"),
        (print, None, "the output 'out' gave <built-in function print>: builtin_function_or_method is not"),
    ],
)
def test_an_element_that_is_no_such_record(
    element: Any, cls: type | None, message: str, logs: list[MutableMapping[str, Any]]
) -> None:
    """The row behind an element that cannot be asserted is refused, and the reason names the output and the element;
    without a row behind it the view crashes.
    """
    c = Circuit()
    c.sink("out", c.source("in").map(lambda _: element))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Muted}, {"out": cls})))
    stage.act(lambda ds: assert_(ds, Muted("x")))
    (why,) = refused(logs)
    assert why.startswith("'x' makes the circuit raise: ")
    assert message in why
    c = Circuit()
    c.source("in")
    c.sink("out", c.constant(ZSet({1: 1})).map(lambda _: element))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Muted}, {"out": cls})))
    assert isinstance(crashed(stage), NotAValue)
    assert message in str(crashed(stage))


def test_an_endless_loop(logs: list[MutableMapping[str, Any]]) -> None:
    """A row with which a recursion does not come to rest is refused."""
    c = Circuit()
    numbers = c.source("in")
    c.sink("out", c.recursive(lambda r: numbers + r.map(lambda n: n + 1), name="up", limit=50))
    stage = Stage(lambda ds: spawn(view(ds, c, {"in": Muted}, {"out": Known})))
    stage.act(lambda ds: assert_(ds, Muted(1)))
    (why,) = refused(logs)
    assert why.startswith("1 makes the circuit raise: ")
    assert "up" in why


def test_wrong_arguments() -> None:
    """What is wired wrongly raises where the view is made, with what to do."""

    def keyed() -> Circuit:
        c = Circuit()
        c.sink("out", c.source("in", key=lambda e: e))
        return c

    def two() -> Circuit:
        c = one()
        c.source("more")
        return c

    def indexed() -> Circuit:
        c = Circuit()
        c.sink("out", c.source("in").index_with(lambda e: e))
        return c

    ins, outs = {"in": Here}, {"out": Here}
    wrong: list[tuple[type[SyndicateError], str, tuple[Any, ...]]] = [
        (UnknownStream, "no source 'on'; its sources are 'in'", (one(), {"on": Here}, outs)),
        (UnknownStream, "no sink 'oat'; its sinks are 'out'", (one(), ins, {"oat": Here})),
        (CircuitError, "'more' would never get anything", (two(), ins, outs)),
        (CircuitError, "both in inputs= and in messages=", (one(), ins, outs, ins)),
        (CircuitError, "has a key, but assertions", (keyed(), ins, outs)),
        (CircuitError, "one stream of ZSets", (indexed(), ins, outs)),
        (CircuitError, "needs a class made by @record", (one(), ins, {"out": int})),
        (CircuitError, "needs a circuit", (one, ins, outs)),
        (PatternError, "the source 'in' of a view: a set cannot be matched", (one(), {"in": {1}}, outs)),
        (PatternError, "class int is not a pattern", (one(), {"in": int}, outs)),
    ]

    def boot(ds: Ref) -> None:
        for kind, message, arguments in wrong:
            with pytest.raises(kind, match=message.replace("(", r"\(")):
                view(ds, *arguments)
        with pytest.raises(NotAValue, match="view"):
            view("ds", one(), ins, outs)  # type: ignore[arg-type]  # the mistake
        started.append(view(ds, one(), ins, outs))

    started: list[Callable[[], None]] = []
    Stage(boot)
    with pytest.raises(NotInTurn):
        started[0]()


def test_a_program_with_a_view_ends() -> None:
    """A view waits for others, and so does not keep a program running when they have ended."""
    ended: list[bool] = []

    def boot() -> None:
        ds = dataspace()
        spawn(view(ds, one(), {"in": Here}, {"out": Topic}), name="talk")
        after(0.01, lambda: ended.append(True))

    run(boot)
    assert ended == [True]
