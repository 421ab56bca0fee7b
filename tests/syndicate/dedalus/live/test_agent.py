"""Agents: locations of a program as actors, what reaches them through a dataspace, and what they show there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import pytest
import trio

from syndicate import (
    ANY,
    Record,
    Ref,
    assert_,
    capture,
    dataspace,
    react,
    record,
    send,
    spawn,
    stop,
    supervise,
)
from syndicate.actors.system import System
from syndicate.dedalus import Agent, Program, together
from syndicate.dedalus.live import Fact, Instance, Packet
from syndicate.dedalus.live.agent import BUSY
from syndicate.errors import DedalusArithmetic, DedalusRejected, FactError, ProgramStopped, SyndicateError
from syndicate.testing import Seen, settled, watch

Settle = Callable[[], Awaitable[None]]

GOSSIP = """
    heard(L, X) :- said(L, X);
    heard(M, X)@async :- fresh(L, X), friend(L, M);
    fresh(L, X) :- heard(L, X), notin known(L, X);
    known(L, X)@next :- heard(L, X);
    persist[known, 2];  persist[friend, 2];
    friend("a", "b")@1; friend("b", "c")@1; friend("c", "a")@1;
"""


@record("dedalus-test-lamp")
class Lamp:
    """A lamp is on."""

    place: str
    name: str


def test_locations_talk_in_a_dataspace() -> None:
    """What one location learns, all learn; and all of it is a run in one place."""
    program = Program.parse(GOSSIP)
    instances: list[Instance] = []
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Fact(capture(), "known", capture())))
        for place in ("a", "b", "c"):
            spawn(lambda place=place: instances.append(Agent(program, place, outputs=["known"], recorded=True)(ds)))
        reasons.append(ds)

    reasons: list[Ref] = []
    system = settled(boot)
    for packet in (Packet("b", "said", ("b", "hi"), 0), Packet("c", "said", ("c", "ho"), 70)):
        system.spawn(send, reasons[0], packet)
        system.drain()
    assert sorted(seen[0]) == sorted(("+", place, (place, word)) for place in ("a", "b", "c") for word in ("hi", "ho"))
    logs = [instance.event_log() for instance in instances]
    model = program.run(**together(logs))
    assert model.until > 71
    last = model.at(model.until)["known"]
    assert last == sorted(row for instance in instances for row in instance.rows("known"))
    assert len(last) == 6
    for log in logs:
        for time in range(1, model.until + 1):
            for name in ("heard", "fresh", "known"):
                there = [row for row in model.at(time)[name] if row[0] == log.location]
                assert there == log.at(name, time)


def test_assertions_are_inputs_and_outputs() -> None:
    """A row is there while its assertion is there, and so is what follows; what is at other locations is theirs."""
    program = Program.parse("dark(L, X) :- lamp(L, X), notin power(L); persist[other, 2];")
    agent = Agent(
        program,
        "hall",
        inputs={"lamp": Lamp, "power": Record("power", ["hall"])},
        outputs={"dark": lambda place, name: Record("dark", [place, name])},
    )
    seen: list[Seen] = []
    facets: dict[str, Any] = {}
    instances: list[Instance] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, capture(Record("dark", [ANY, ANY]))))
        instances.append(agent(ds))
        for key, value in (
            ("one", Lamp("hall", "one")),
            ("cellar", Lamp("cellar", "two")),
            ("power", Record("power", ["hall"])),
        ):
            facets[key] = react(partial(assert_, ds, value))

    system = settled(boot)
    dark = Record("dark", ["hall", "one"])
    assert instances[0].rows("lamp") == [("hall", "one")]
    del seen[0][:]
    for key in ("power", "one"):
        facets[key].enter(stop)
        system.drain()
    assert seen == [[("+", dark), ("-", dark)]]
    assert instances[0].rows("lamp") == []


def test_messages_are_there_for_one_timestep() -> None:
    """Messages that match a pattern are events, as are rows that are inserted."""
    program = Program.parse('got(L, X, N)@next :- in(L, X)@N; persist[got, 3]; in("a", 0)@1;')
    instances: list[Instance] = []
    survivors: list[Ref] = []

    def boot() -> None:
        survivors.append(dataspace())
        instances.append(Agent(program, "a", messages={"in": Record("tell", [capture()])})(survivors[0]))

    system = settled(boot)
    instance = instances[0]
    for act in (lambda: send(survivors[0], Record("tell", [7])), lambda: instance.insert("in", ("a", 8), ["a", 9])):
        instance.facet.enter(act)
        system.drain()
    assert instance.rows("got") == [("a", 0, 1), ("a", 7, 3), ("a", 8, 5), ("a", 9, 5)]
    with pytest.raises(SyndicateError, match="is for turns of"):
        instance.insert("in", ("a", 1))


def test_untrusted_peers_are_refused(logs: list[MutableMapping[str, Any]]) -> None:
    """Whatever somebody sends or asserts, an agent goes on, and the log says what was refused; not a thousand times."""
    program = Program.parse("persist[p, 2]; q(X) :- p(X, 1);")
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Fact("a", "q", capture())))
        spawn(Agent(program, "a", inputs=["q"], outputs=["q"], messages={"p": Record("in", [ANY, capture()])}), ds)
        spaces.append(ds)

    def strange(ds: Ref) -> None:
        wrong: list[Any] = [
            Packet("a", "p", ("a", 1, 2), 0),
            Packet("a", "nobody", (), 0),
            Packet("a", "p", ("b", 1), 0),
            Packet("a", "p", ("a", 1), 10**30),
            Record("dedalus-message", ["a", Record("p", []), {"a": 1}, "x"]),
            Record("dedalus-message", ["a"]),
            Record("in", [1, [1]]),
        ]
        for value in wrong:
            send(ds, value)
        assert_(ds, Record("dedalus-fact", ["a", "q", ["a", "b"]]))
        assert_(ds, Record("dedalus-fact", ["a", "q", "q"]))
        for number in range(100):
            send(ds, Packet("a", "p", (number,), 0))
        send(ds, Packet("a", "p", ("a", 1), 0))

    spaces: list[Ref] = []
    system = settled(boot)
    system.spawn(strange, spaces[0])
    system.drain()
    assert ("+", ("a",)) in seen[0]
    refused = [entry for entry in logs if entry["event"] == "a row was refused"]
    assert 10 < len(refused) < 16
    assert any("sequence of 2" in entry["reason"] for entry in refused)
    assert not any("nothing" in str(entry) for entry in logs if entry not in refused)


def test_arithmetic_on_what_untrusted_peers_send(logs: list[MutableMapping[str, Any]]) -> None:
    """Text where a number is needed is refused, sent or asserted: relation, row, rule and error are reported; no
    more.
    """
    program = Program.parse("d(L, X / 2) :- p(L, X); d(L, sum<X>) :- q(L, X); persist[p, 2];")
    seen: list[Seen] = []
    facets: list[Any] = []
    spaces: list[Ref] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Fact("a", "d", capture())))
        spawn(Agent(program, "a", inputs=["q"], outputs=["d"]), ds)
        spaces.append(ds)

    def strange(ds: Ref) -> None:
        for value in (2, "two", 4):
            send(ds, Packet("a", "p", ("a", value), 0))
            facets.append(react(partial(assert_, ds, Fact("a", "q", ("a", value)))))

    system = settled(boot)
    for step in (partial(strange, spaces[0]), lambda: facets[1].enter(stop), lambda: facets[0].enter(stop)):
        system.spawn(step)
        system.drain()
    assert sorted(seen[0][:3]) == [("+", ("a", 1)), ("+", ("a", 2)), ("+", ("a", 6))]
    assert sorted(seen[0][3:]) == [("+", ("a", 4)), ("-", ("a", 6))]
    reasons = [entry["reason"] for entry in logs if entry["event"] == "a row was refused"]
    row, places = "('a', 'two') of {} makes a timestep fail: program:1:{}: at time 2: ", (("p", 1), ("q", 25))
    why = (
        "'two' / 2 needs numbers, and 'two' is text\n    d(L, X / 2) :- p(L, X);",
        "sum and avg are of numbers, and 'two' is not one\n    d(L, sum<X>) :- q(L, X);",
    )
    assert reasons == [row.format(*place) + reason for place, reason in zip(places, why, strict=True)]
    assert not any("crashed" in entry["event"] for entry in logs)


@pytest.mark.trio
async def test_a_crash_takes_what_was_shown(
    system: System, settle: Settle, logs: list[MutableMapping[str, Any]]
) -> None:
    """Arithmetic on what the program has kept itself ends the actor, with the time; a new instance begins again."""
    program = Program.parse('d(L, X / 2) :- p(L, X); p(L, X)@next :- in(L, X); p("a", 8)@1;')
    seen: list[Seen] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Fact("a", "d", capture())))
        supervise(Agent(program, "a", outputs=["d"]), ds)
        spaces.append(ds)

    spaces: list[Ref] = []
    system.spawn(boot)
    await settle()
    system.spawn(send, spaces[0], Packet("a", "in", ("a", "eight"), 0))
    await settle()
    await trio.sleep(10)
    assert [sign for sign, _ in seen[0]] == ["+", "-", "+", "-"]
    (crashed,) = [entry["exc_info"] for entry in logs if "crashed" in entry["event"]]
    assert isinstance(crashed, DedalusArithmetic)
    assert str(crashed).startswith("program:1:1: at time 4: 'eight' / 2 needs numbers, and 'eight' is text")


@pytest.mark.trio
async def test_time_by_the_clock(system: System, settle: Settle, clock: trio.testing.MockClock) -> None:
    """With every=, a timestep passes each so many seconds and never else; the clock still passes what arrives."""
    program = Program.parse(
        """
        left(L, X - 1)@next :- left(L, X), X > 0;  left(L, X) :- egg(L, X);
        ready(L, N) :- left(L, 0)@N;
        """
    )
    instances: list[Instance] = []
    spaces: list[Ref] = []

    def boot() -> None:
        spaces.append(dataspace())
        instances.append(Agent(program, "pan", every=0.5, outputs=["ready"])(spaces[0]))
        seen.append(watch(spaces[0], Fact("pan", "ready", capture())))

    seen: list[Seen] = []
    system.spawn(boot)
    await settle()
    await trio.sleep(10.1)
    instance = instances[0]
    assert instance.time == 20
    instance.facet.enter(lambda: instance.insert("egg", ("pan", 4)))
    await settle()
    assert instance.time == 20
    await trio.sleep(2)
    assert (instance.time, instance.rows("left"), seen[0]) == (24, [("pan", 1)], [])
    await trio.sleep(0.5)
    assert seen == [[("+", ("pan", 25))]]
    instance.facet.enter(lambda: send(spaces[0], Packet("pan", "egg", ("pan", 1), 1000)))
    await trio.sleep(0.5)
    await trio.sleep(0.5)
    assert instance.time in (1001, 1002)
    assert instance.rows("egg") == ([("pan", 1)] if instance.time == 1001 else [])


def test_who_does_not_rest_is_reported(logs: list[MutableMapping[str, Any]]) -> None:
    """The log says once that an agent goes on and on, and which rule may be why; a long path to rest is not logged."""
    program = Program.parse(
        f"""
        n(L, X)@next :- go(L, X);  n(L, X + 1)@next :- n(L, X), X < {3 * BUSY};
        m(L, X)@async :- mine(L, X), n(L, {BUSY // 2});  mine("a", 7)@1;  persist[mine, 2];
        """
    )
    instances: dict[str, Instance] = {}

    def boot() -> None:
        for place in ("a", "b"):
            instances[place] = Agent(program, place)(dataspace())
        instances["a"].insert("go", ("a", 0))
        instances["b"].insert("go", ("b", 2 * BUSY + 100))

    settled(boot)
    (reasons,) = [entry for entry in logs if "not been at rest" in entry["event"]]
    assert (reasons["location"], reasons["why"]) == (
        "a",
        "n may change at every timestep: no atom of the body is an event that ends",
    )
    assert instances["a"].time > 3 * BUSY


def test_dataspaces_come_and_go() -> None:
    """An instance joins dataspaces and leaves them: its state stays, its outputs and inputs come and go with each."""
    program = Program.parse(
        'both(L) :- one(L), two(L); persist[kept, 2]; kept(L, 1)@next :- both(L); go("b", X)@async :- tell(L, X);'
    )
    one, two = Record("one", []), Record("two", [])
    there: list[Seen] = []
    seen: list[Seen] = []
    parts: dict[str, Any] = {}

    def boot() -> None:
        first, second = dataspace(), dataspace()
        instance = parts["instance"] = Agent(program, "a", inputs={"one": one, "two": two}, outputs=["both", "kept"])()
        seen.extend(watch(ds, Fact("a", capture(), ANY)) for ds in (first, second))
        there.extend(watch(ds, Packet("b", "go", capture(), ANY)) for ds in (first, second))
        assert_(first, one)
        assert_(second, two)
        parts["first"] = react(lambda: instance.join(first))
        parts["second"] = react(lambda: instance.join(second, "b"))

    system = settled(boot)
    instance: Instance = parts["instance"]
    assert (instance.rows("both"), [len(each) for each in seen]) == ([("a",)], [2, 2])
    for number, leaving in enumerate(("second", "first", None)):
        instance.facet.enter(partial(instance.insert, "tell", ("a", number)))
        system.drain()
        if leaving is not None:
            parts[leaving].enter(stop)
            system.drain()
    assert there == [[("!", ("b", 1))], [("!", ("b", 0))]]
    assert (instance.rows("both"), instance.rows("kept"), instance.rows("one")) == ([], [("a", 1)], [])
    assert [sorted(sign for sign, _ in each) for each in seen] == [["+", "+", "-", "-"]] * 2


def test_a_function_that_has_worked_is_not_to_blame(logs: list[MutableMapping[str, Any]]) -> None:
    """What an output's function has made in one dataspace counts in the next: whoever comes first there is refused."""
    program = Program.parse("out(L, N) :- in(L, N);")
    instances: list[Instance] = []
    spaces: list[Ref] = []

    def boot() -> None:
        instances.append(Agent(program, "a", outputs={"out": lambda _, n: ["out", 12 // n]})())
        spaces.append(dataspace())

    system = settled(boot)
    facets: list[Any] = []
    for n in (3, 0):
        instances[0].facet.enter(lambda: facets.append(react(partial(instances[0].join, spaces[0]))))
        system.drain()
        system.spawn(send, spaces[0], Packet("a", "in", ("a", n), 0))
        system.drain()
        facets.pop().enter(stop)
        system.drain()
    (line,) = logs
    assert (line["event"], line["location"]) == ("a row was refused", "a")
    assert "no value can be made of ('a', 0) of out: ZeroDivisionError" in line["reason"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"inputs": ["q"]}, "no relation 'q'; it has p, r"),
        ({"outputs": ["q"]}, "no relation 'q'"),
        ({"inputs": {"p": Record("x", [capture(), capture(), capture()])}}, "captures 3 values, but there are 2"),
        ({"messages": {"p": len}}, "needs a pattern"),
        ({"outputs": {"p": 7}}, "takes a record class, or a function"),
        ({"outputs": {"r": Lamp}}, "has 1 columns, but Lamp has 2 fields"),
        ({"every": 0}, "more than 0"),
        ({"location": True}, "no location"),
        ({"location": None}, "no location"),
    ],
)
def test_what_an_agent_cannot_be(options: dict[str, Any], why: str) -> None:
    """A mistake in how an agent meets the dataspace is reported when it is made."""
    program = Program.parse("persist[p, 2]; r(X) :- p(X, 1);")
    with pytest.raises(FactError, match=why):
        Agent(program, options.pop("location", "a"), **options)
    with pytest.raises(DedalusRejected, match="two locations"):
        Agent(Program.parse("p(A) :- q(A), r(B, A);"), "a")
    with pytest.raises(FactError, match="no agent of the program: there are one, two"):
        Agent(Program.parse("agent one: p; agent two: q; p(X)@next :- p(X);"), "a")


def test_specifications_are_nobodys() -> None:
    """What a program is verified against looks at all locations, and runs at none."""
    text = GOSSIP + "pre(X) :- known(_, X); post(X) :- known(L, X), notin missing(X); missing(X) :- known(L, X), "
    program = Program.parse(text + "friend(M, L), notin known(M, X);")
    assert "missing" not in Agent(program, "a").arities
    with pytest.raises(DedalusRejected):
        Agent(program, "a", specification=())
    with pytest.raises(FactError, match="no event log"):
        settled(lambda: Agent(program, "a")(dataspace()).event_log())


def test_an_instance_that_is_over() -> None:
    """After its facet has stopped, an agent takes nothing, shows nothing, and joins nothing."""
    program = Program.parse("persist[p, 2];")
    instances: list[Instance] = []
    spaces: list[Ref] = []
    seen: list[Seen] = []

    def boot() -> None:
        spaces.append(dataspace())
        seen.append(watch(spaces[0], Fact("a", "p", capture())))
        instances.append(Agent(program, "a", outputs=["p"], inputs=["p"])())
        react(lambda: instances[0].join(spaces[0]))

    system = settled(boot)
    actor = instances[0].facet.actor
    for number in (1, 2):
        system.spawn(send, spaces[0], Packet("a", "p", ("a", number), 0))
        system.drain()
        instances[0].facet.enter(stop)
        system.drain()
    assert seen == [[("+", ("a", 1)), ("-", ("a", 1))]]
    errors: list[str] = []

    def late() -> None:
        try:
            instances[0].join(spaces[0])
        except ProgramStopped as error:
            errors.append(str(error))

    actor.root.enter(late)
    system.drain()
    assert errors == ["the agent at 'a' has stopped: a new one begins from nothing"]
    assert actor.error is None
