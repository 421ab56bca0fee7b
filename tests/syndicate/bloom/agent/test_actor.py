"""Programs as actors: what reaches them through a dataspace, when they tick, what untrusted peers cannot do, how they
end.
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import (
    ABSENT,
    Record,
    Ref,
    after,
    assert_,
    capture,
    current_facet,
    dataspace,
    on_stop,
    react,
    record,
    send,
    spawn,
    stop,
    stop_actor,
    supervise,
)
from syndicate.actors.system import System
from syndicate.bloom import (
    Bloom,
    Network,
    agg,
    bloom,
    channel,
    durable,
    import_module,
    interface,
    loopback,
    periodic,
    scratch,
    table,
)
from syndicate.bloom.agent.ports import Packet
from syndicate.bloom.state.inbox import FollowingState
from syndicate.bloom.tick.runtime import runtime_of
from syndicate.errors import BloomDeclaration, IllegalRule, NotInTurn, ProgramStopped, RuleFailed, SyndicateError
from syndicate.lattice import Set
from syndicate.testing import Seen, settled, watch
from tests.strategies import examples, values
from tests.syndicate.bloom.test_worked import ReliableDelivery

Settle = Callable[[], Awaitable[None]]


@record("bloom-test-visit")
class Visit:
    """Somebody is in a room."""

    who: str
    room: str


@record("bloom-test-crowd")
class Crowd:
    """So many are in a room."""

    room: str
    count: int


def asserting(ds: Ref, value: Any) -> Any:
    """A facet that asserts a value."""

    def assert_it() -> None:
        assert_(ds, value)

    return react(assert_it)


class Rooms(Bloom):
    """How many are where."""

    visit = interface("input", ["who", "room"], [])
    crowd = interface("output", ["room"], ["count"])

    @bloom
    def counted(self) -> None:
        """By room."""
        self.crowd <= self.visit.group(["room"], agg.count())


class Post(Bloom):
    """Sends what it is given, and keeps what it gets."""

    out = scratch(["to", "text"], [])
    mail = channel(["@to", "text"], [])
    got = table(["text"], [])

    @bloom
    def rules(self) -> None:
        """To whom it may concern."""
        self.mail < ~self.out
        self.got <= self.mail.map(lambda m: (m.text,))


def texts(program: Any) -> list[str]:
    """What a post has got."""
    return sorted(row.text for row in program.got)


# --------------------------------------------------------------------------------------------------- between programs


async def test_a_class_is_a_boot_function(system: System, settle: Settle) -> None:
    """`spawn(Program, ds)` is all it takes, and who has the address is sent what is addressed to it."""

    def boot() -> None:
        ds = dataspace()
        heard.append(watch(ds, Packet("me", "ack_chan", capture())))
        spawn(ReliableDelivery, ds)
        spawn(lambda: send(ds, Packet("localhost", "data_chan", ("localhost", "me", 7, "x"))))

    heard: list[Seen] = []
    system.spawn(boot)
    await settle()
    assert heard == [[("!", ("me", "localhost", 7))]]


class Delivery(Bloom):
    """Reliable delivery without a clock."""

    pipe_in = interface("input", ["dst", "src", "ident"], ["payload"])
    pipe_out = interface("output", ["dst", "src", "ident"], ["payload"])
    data_chan = channel(["@dst", "src", "ident"], ["payload"])
    ack_chan = channel(["@src", "dst", "ident"])
    send_buf = table(["dst", "src", "ident"], ["payload"])
    again = scratch(["n"], [])

    @bloom
    def rules(self) -> None:
        """As in the paper."""
        self.send_buf <= self.pipe_in
        self.data_chan < ~self.pipe_in
        self.data_chan < ~(self.send_buf * self.again).lefts()
        self.ack_chan < ~self.data_chan.map(lambda p: (p.src, p.dst, p.ident))
        got = (self.ack_chan * self.send_buf).rights("ident", "dst", "src")
        self.pipe_out <= got
        self.send_buf < -got


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(0, 9)), max_size=12))
def test_a_dataspace_delivers_as_a_network_does(packets: list[tuple[str, str, int]]) -> None:
    """Programs that exchange packets end in the same state in a dataspace as on a network that loses nothing."""
    rows = {(to, src, n): f"{n} to {to}" for to, src, n in packets}
    ends = []

    def given_to(program: Delivery) -> None:
        me = program.address
        program.pipe_in <= [(to, src, n, p) for (to, src, n), p in rows.items() if src == me]
        program.callback("pipe_out", delivered.setdefault(me, []).extend)

    def boot() -> None:
        ds = dataspace()
        for name in "abc":
            spawn(lambda name=name: programs.update({name: Delivery(ds, address=name)}))

    for local in (True, False):
        programs: dict[str, Delivery] = {}
        delivered: dict[str, list[Any]] = {}
        if local:
            system = settled(boot)
            for program in programs.values():
                given_to(program)
            system.drain()
        else:
            programs = {name: Delivery(address=name) for name in "abc"}
            for program in programs.values():
                given_to(program)
            Network(*programs.values(), seed=len(packets)).run()
        ends.append({name: (sorted(p.send_buf), sorted(delivered[name])) for name, p in programs.items()})
    assert ends[0] == ends[1]
    assert sum(len(got) for _, got in ends[0].values()) == len(rows)


def test_a_turn_is_a_tick() -> None:
    """What one turn brings is one tick, however much it is; deferred rows are a turn of their own."""

    class Deferring(Post):
        again = scratch(["text"], [])
        loop = loopback(["text"], [])

        @bloom
        def more(self) -> None:
            self.again < +self.mail.map(lambda m: (m.text,))
            self.loop < ~self.again

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: instances.append(Deferring(ds, address="me")))

        def sender() -> None:
            for n in range(5):
                send(ds, Packet("me", "mail", ("me", str(n))))

        spawn(sender)

    instances: list[Any] = []
    system = settled(boot)
    (p,) = instances
    assert texts(p) == ["0", "1", "2", "3", "4"]
    assert p.budtime == 1 + 1 + 2
    assert len(p.loop) == 5
    p._agent.facet.enter(lambda: None)
    system.drain()
    assert p.budtime == 4  # nothing waits, and so nothing ticks


def test_rows_from_outside() -> None:
    """Any turn and any callback may give rows; a turn that fails has given none."""

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: instances.append(Post(ds, address="me")))
        spawn(lambda: instances[0].out.insert([("me", "good")]))
        spawn(bad)
        spawn(lambda: instances[0].async_do(lambda: instances[0].out.insert([("me", "late")])))

    def bad() -> None:
        instances[0].out <= [("me", "bad")]
        raise ZeroDivisionError

    instances: list[Any] = []
    system = settled(boot)
    (p,) = instances
    assert texts(p) == ["good", "late"]
    p.callback("got", lambda rows: None if len(rows) > 4 else p.out.insert([("me", f"echo {len(rows)}")]))
    p.out <= [("me", "last")]
    system.drain()
    assert {"good", "late", "last", "echo 2"} < set(texts(p))
    assert "bad" not in texts(p)
    for wait in (p.tick, lambda: p.sync_do(print), lambda: p.ask("out", [], "got")):
        with pytest.raises(IllegalRule, match="runs in this very thread: use async_do"):
            wait()
    with pytest.raises(IllegalRule, match="Post ticks by itself"):
        p.run()


def test_two_dataspaces() -> None:
    """A program is reached where it listens, and sends by the route that it was given, as long as the facet lives."""

    def boot() -> None:
        left, right = dataspace(), dataspace()
        heard.append(watch(left, Packet("b", "mail", capture())))

        def alone() -> None:
            instances.append(Post(left, address="a"))

            @react
            def connected() -> None:
                facets.append(current_facet())
                instances[0].listen_at(right)
                instances[0].send_via(right, "b", "c")

        def other() -> None:
            b = Post(right, address="b")
            instances.append(b)

        spawn(alone)
        spawn(other)

    heard: list[Any] = []
    instances: list[Any] = []
    facets: list[Any] = []
    system = settled(boot)
    a, b = instances
    a.out <= [("b", "hello"), ("a", "note to myself")]
    b.out <= [("a", "hi")]
    system.drain()
    assert (texts(a), texts(b), heard) == (["hi", "note to myself"], ["hello"], [[]])
    facets[0].enter(stop)
    a.out <= [("b", "are you there?")]
    b.out <= [("a", "hello?")]
    system.drain()
    assert (texts(a), texts(b), heard) == (["hi", "note to myself"], ["hello"], [[("!", ("b", "are you there?"))]])
    with pytest.raises(NotInTurn):
        a.listen_at(None)
    with pytest.raises(IllegalRule, match="is for a program in a dataspace"):
        Post().listen_at(None)  # type: ignore[arg-type]


def test_routes_belong_to_the_actor() -> None:
    """Another actor cannot turn the way of a program's rows."""

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: instances.append(Post(ds, address="me")))
        bad.append(spawn(lambda: instances[0].send_via(ds, "you")))

    instances: list[Any] = []
    bad: list[Any] = []
    settled(boot)
    assert isinstance(bad[0].error, SyndicateError)
    assert "call it in the function that makes the program" in str(bad[0].error)


def test_channels_of_modules() -> None:
    """A module's channel is called by the module's name too."""

    class Outer(Bloom):
        inner = import_module(Post)

    def boot() -> None:
        ds = dataspace()
        for name in "ab":
            spawn(lambda name=name: instances.append(Outer(ds, address=name)))

    instances: list[Any] = []
    system = settled(boot)
    instances[0].inner.out <= [("b", "hello")]
    system.drain()
    assert texts(instances[1].inner) == ["hello"]


# --------------------------------------------------------------------------------------------------- untrusted peers


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.one_of(values(), st.tuples(values(), values()), st.tuples(st.text(), values())), max_size=6))
def test_untrusted_peers_cannot_crash_a_program(rows: list[Any]) -> None:
    """Whatever is sent, the program goes on; what fits is there, and None and sets come as they were sent."""

    def boot() -> None:
        ds = dataspace()
        actors.append(spawn(lambda: instances.append(Post(ds, address="me"))))
        for name in ("mail", "nail", 7):
            for row in rows:
                spawn(lambda name=name, row=row: send(ds, Record("bloom-packet", ["me", name, row])))
        spawn(lambda: send(ds, Packet("me", "mail", ("me", ABSENT))))

    instances: list[Any] = []
    actors: list[Any] = []
    settled(boot)
    assert actors[0].error is None
    assert (None,) in instances[0].got


def test_refused_rows_are_logged(logs: list[MutableMapping[str, Any]]) -> None:
    """A refused row is a line in the log that says why; of very many, each doubling is."""

    def boot() -> None:
        ds = dataspace()
        spawn(Post, ds, name="post")
        spawn(lambda: send(ds, Record("bloom-packet", ["localhost", "mail", ["a", "b", "c"]])))
        for n in range(99):
            spawn(lambda n=n: send(ds, Record("bloom-packet", ["localhost", "nail", n])))

    settled(boot)
    assert [(line["actor"], line["collection"], line["refused"]) for line in logs] == [
        ("post", "mail", 1),
        *[("post", "nail", n) for n in (*range(2, 11), 16, 32, 64)],
    ]
    assert logs[0]["reason"] == "('a', 'b', 'c') has 3 columns, but there are 2: to, text"
    assert logs[1]["reason"] == "Post has no such channel"


def test_rows_of_one_key_come_one_after_the_other() -> None:
    """Untrusted peers who send different rows of one key in one turn break nothing: the second is there one tick
    later.
    """

    class Last(Bloom):
        news = channel(["@to", "topic"], ["text"])
        seen = table(["tick"], ["text"])

        @bloom
        def rules(self) -> None:
            self.seen <= (self.news * self.now).pairs(lambda n, now: (now.tick, n.text))

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: instances.append(Last(ds, address="me")))

        def sender() -> None:
            for text in ("one", "two", "two", "three"):
                send(ds, Packet("me", "news", ("me", "weather", text)))

        spawn(sender)

    instances: list[Any] = []
    settled(boot)
    assert sorted(instances[0].seen) == [(1, "one"), (2, "two"), (3, "three")]


def test_messages_cannot_break_a_key() -> None:
    """A table keeps the last message of a key; many of one key cost what they are, not their square."""

    class Latest(Bloom):
        latest = table(["who"], ["n"])

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: instances.append(Latest(ds, messages={"latest": ["now", capture(), capture()]})))

        def sender() -> None:
            for n in range(3000):
                send(ds, ["now", "me", n])
            send(ds, ["now", "you", 1])

        spawn(sender)
        spawn(lambda: send(ds, ["now", "you", 2]))

    instances: list[Any] = []
    settled(boot)
    assert sorted(instances[0].latest) == [("me", 2999), ("you", 2)]
    assert instances[0].budtime >= 3000


def test_lattices_travel() -> None:
    """A lattice value that is sent arrives as one, and is merged; what is not one, or in a key, is refused."""

    class Votes(Bloom):
        out = scratch(["to"], ["votes"])
        vote = channel(["@to"], ["votes"])
        all = table(["to"], ["votes"])

        @bloom
        def rules(self) -> None:
            self.vote < ~self.out
            self.all <= self.vote

    def boot() -> None:
        ds = dataspace()
        for name in "ab":
            spawn(lambda name=name: instances.append(Votes(ds, address=name)))
        spawn(lambda: send(ds, Packet("b", "vote", ("b", Record("lset", [5])))))
        spawn(lambda: send(ds, Packet("b", "vote", (Record("lset", [[5]]), 1))))

    instances: list[Any] = []
    system = settled(boot)
    a, b = instances
    for votes in ({1, 2}, {2, 3}):
        a.out <= [("b", Set(votes))]
    a.out <= [("a", Set({9}))]
    system.drain()
    assert [(row.to, row.votes.reveal()) for row in b.all] == [("b", {1, 2, 3})]
    assert [(row.to, row.votes.reveal()) for row in a.all] == [("a", {9})]


def test_the_filter() -> None:
    """What a filter accepts is there, what it postpones is offered again, the rest is lost."""

    def choose(name: str, rows: list[Any]) -> tuple[list[Any], list[Any]]:
        offered.append((name, sorted(row.text for row in rows)))
        return [row for row in rows if row.text < "d"], [row for row in rows if row.text > "m"]

    offered: list[Any] = []
    p = Post(address="me", channel_filter=choose)
    p.deliver("mail", [("me", "b"), ("me", "e"), ("me", "x")])
    assert p.run() == 1
    assert texts(p) == ["b"]
    p.deliver("mail", [("me", "a")])
    p.tick()
    assert texts(p) == ["a", "b"]
    assert offered == [("mail", ["b", "e", "x"]), ("mail", ["a", "x"])]
    p.discard()
    p.tick()
    assert len(offered) == 2
    p = Post(address="me", channel_filter=lambda name, rows: rows)  # type: ignore[arg-type, return-value]
    p.deliver("mail", [("me", "b")])
    with pytest.raises(RuleFailed, match=r"the filter of the channel mail failed: .* It returns two lists of rows"):
        p.tick()


# --------------------------------------------------------------------------------------------------- ports


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32))
def test_assertions_in_and_out(seed: int) -> None:
    """After each turn, what is asserted is what follows from the assertions that are there."""

    def boot() -> None:
        ds = spaces[0] = dataspace()
        heard.append(watch(ds, capture(Crowd)))
        spawn(lambda: Rooms(ds, inputs={"visit": Visit}, outputs={"crowd": Crowd}))

    rng = random.Random(seed)
    heard: list[Seen] = []
    spaces: Any = [None]
    system = settled(boot)
    facet = next(actor for actor in system.actors if actor is system.first).root
    here: dict[Visit, Any] = {}

    def come(visit: Visit) -> None:
        here[visit] = asserting(spaces[0], visit)

    for _ in range(12):
        for _ in range(rng.randrange(3)):
            visit = Visit(rng.choice("abc"), rng.choice(["hall", "bar"]))
            if visit in here:
                here.pop(visit).enter(stop)
                system.drain()
            else:
                facet.enter(partial(come, visit))
                system.drain()
        shown: dict[Any, int] = {}
        for mark, crowd in heard[0]:
            shown[crowd] = shown.get(crowd, 0) + (1 if mark == "+" else -1)
        rooms = [visit.room for visit in here]
        assert {crowd for crowd, n in shown.items() if n} == {Crowd(room, rooms.count(room)) for room in rooms}


@pytest.mark.parametrize("seed", range(30))
def test_rows_that_are_held(seed: int) -> None:
    """A scratch has what is held, given and deferred, however these coincide, and so has what follows from it."""

    class Held(Bloom):
        s = scratch(["n"], [])
        out = scratch(["n"], [])
        copy = scratch(["n"], [])

        @bloom
        def rules(self) -> None:
            self.s < +self.s.filter(lambda r: r.n % 3 == 0).map(lambda r: (r.n + 1,))
            self.out <= self.s.map(lambda r: (r.n // 2,))

    rng = random.Random(seed)
    p = Held()
    runtime_of(p).follow(["s", "copy"])
    held: set[int] = set()
    before: set[int] = set()
    for _ in range(60):
        for _ in range(rng.randrange(4)):
            n = rng.randrange(6)
            (held.discard if n in held else held.add)(n)
            for one in (p.s, p.copy):
                state = runtime_of(p).states[one.tabname]
                assert isinstance(state, FollowingState)
                state.wanted[n,] = n in held
        rows = {rng.randrange(6) for _ in range(rng.randrange(3))}
        for one in (p.s, p.copy):
            one.insert([(n,) for n in rows])
        p.tick()
        expected = held | rows | {n + 1 for n in before if n % 3 == 0}
        assert {row.n for row in p.s} == expected
        assert {row.n for row in p.copy} == held | rows
        assert {row.n for row in p.out} == {n // 2 for n in expected}
        before = expected


def test_messages_in_and_out() -> None:
    """A message is a row for one tick, and what follows from it is sent, or asserted for no longer."""

    class Doubling(Bloom):
        number = scratch(["n"], [])
        double = scratch(["n"], [])
        sum = scratch(["n"], [])

        @bloom
        def rules(self) -> None:
            self.double <= self.number.map(lambda r: (2 * r.n,))
            self.sum <= self.number.group([], agg.sum("n"))

    def boot() -> None:
        ds = dataspace()
        heard.append(watch(ds, ["double", capture()]))
        heard.append(watch(ds, ["sum", capture()]))
        spawn(
            lambda: Doubling(
                ds,
                messages={"number": ["number", capture(int)]},
                sends={"double": lambda n: ["double", n]},
                outputs={"sum": lambda n: ["sum", n]},
            )
        )

        def sender() -> None:
            for n in (1, 2, 2, "no number"):
                send(ds, ["number", n])

        spawn(sender)

    heard: list[Seen] = []
    settled(boot)
    assert heard == [[("!", 2), ("!", 4)], [("+", 3), ("-", 3)]]


@pytest.mark.parametrize("kind", [table, scratch])
def test_assertions_of_one_key(kind: Any, logs: list[MutableMapping[str, Any]]) -> None:
    """The first assertion of a key counts, and the next when it has gone; those of another length never."""

    class Keyed(Bloom):
        setting = kind(["name"], ["value"])
        shown = scratch(["name", "value"], [])

        @bloom
        def rules(self) -> None:
            self.shown <= self.setting

    def boot() -> None:
        ds = dataspace()
        spawn(lambda: instances.append(Keyed(ds, inputs={"setting": ["set", capture(), capture()]})))
        facets.extend(asserting(ds, ["set", "color", n]) for n in range(3))
        asserting(ds, ["set", "size", 9])

    instances: list[Any] = []
    facets: list[Any] = []
    system = settled(boot)
    (p,) = instances

    def rows() -> list[Any]:
        system.drain()
        return sorted(p.shown)

    first = rows()[0].value
    assert rows() == [("color", first), ("size", 9)]
    assert "has the key of" in logs[0]["reason"]
    facets[first].enter(stop)
    assert [row.value for row in rows() if row.name == "color"] != [first]
    second = rows()[0].value
    (third,) = {0, 1, 2} - {first, second}
    facets[third].enter(stop)
    assert rows() == [("color", second), ("size", 9)]
    facets[second].enter(stop)
    assert rows() == [("size", 9)]
    assert len(p.setting) == 1


def test_refused_ports() -> None:
    """What does not fit is refused when the program is made, with the remedy."""

    class Everlasting(Bloom):
        ever = durable(["n"], [])

    def failure(cls: Any = Rooms, **ports: Any) -> str:
        def boot() -> None:
            ds = dataspace()
            with pytest.raises(BloomDeclaration) as caught:
                cls(ds, **ports)
            results.append(str(caught.value))

        results: list[str] = []
        settled(boot)
        return results[0]

    assert "no collection 'visits' (did you mean 'visit'?)" in failure(inputs={"visits": Visit})
    assert "captures 1 values, but there are 2 columns: who, room" in failure(inputs={"visit": [capture()]})
    assert "takes a pattern" in failure(messages={"visit": {1, 2}})
    assert "Visit has 2 fields, but halt has 1 columns" in failure(sends={"halt": Visit})
    assert "takes a record class, or a function" in failure(outputs={"crowd": 3})
    assert "is in inputs= and in messages=" in failure(inputs={"visit": Visit}, messages={"visit": Visit})
    failed = failure(outputs={"crowd": lambda room: room})
    assert f"{__file__}:" in failed
    assert "takes (room), but here it is called with the columns of crowd, room, count, as outputs=" in failed
    assert "takes (), but here" in failure(sends={"crowd": lambda: 1})
    assert "ever is a durable table" in failure(inputs={"ever": [capture()]}, cls=Everlasting)
    assert "localtick is a loopback" in failure(inputs={"localtick": [capture()]})
    with pytest.raises(BloomDeclaration, match=r"inputs= needs a dataspace: Rooms\(ds, inputs="):
        Rooms(inputs={"visit": Visit})
    with pytest.raises(NotInTurn, match=r"Post\(\) acts on the current turn"):
        Post(object())  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- ends


class Fragile(Rooms):
    """Fails for one room."""

    @bloom
    def broken(self) -> None:
        """Not defined there."""
        self.halt <= self.visit.filter(lambda v: 1 // len(v.room) > 1).map(lambda v: (v.who,))


def test_a_rule_that_raises_is_a_crash() -> None:
    """The actor crashes with the rule's place, what the program had asserted goes, and nobody else is touched."""

    def boot() -> None:
        ds = dataspace()
        heard.append(watch(ds, capture(Crowd)))
        actors.append(spawn(lambda: instances.append(Fragile(ds, inputs={"visit": Visit}, outputs={"crowd": Crowd}))))
        asserting(ds, Visit("a", "hall"))

    heard: list[Seen] = []
    actors: list[Any] = []
    instances: list[Any] = []
    system = settled(boot)
    ended: list[str] = []
    instances[0].on_shutdown(lambda: ended.append("ended"))
    instances[0].visit.insert([("b", "")])
    system.drain()
    assert isinstance(actors[0].error, RuleFailed)
    assert "test_actor.py:" in str(actors[0].error)
    assert "ZeroDivisionError" in str(actors[0].error)
    assert heard == [[("+", Crowd("hall", 1)), ("-", Crowd("hall", 1))]]
    assert ended == ["ended"]
    with pytest.raises(ProgramStopped, match=r"Fragile has stopped by an error: .*ZeroDivisionError"):
        instances[0].visit.insert([("c", "bar")])


async def test_supervision_and_durable_tables(system: System, settle: Settle, tmp_path: Path) -> None:
    """A program that crashed is started again, has its durable rows, and what it asserts is asserted again."""

    class Kept(Fragile):
        ever = durable(["who"], [])
        known = scratch(["who"], [])

        @bloom
        def keep(self) -> None:
            self.ever <= self.visit.map(lambda v: (v.who,))
            self.known <= self.ever

    def boot() -> None:
        ds = dataspace()
        heard.append(watch(ds, ["knows", capture()]))
        outputs: dict[str, Any] = {"known": lambda who: ["knows", who]}
        path = tmp_path / "kept.db"
        supervise(
            lambda: instances.append(Kept(ds, state=path, messages={"visit": Visit}, outputs=outputs)),
            name="kept",
        )
        after(1, lambda: send(ds, Visit("a", "hall")))
        after(2, lambda: instances[-1].visit.insert([("b", "")]))

    heard: list[Seen] = []
    instances: list[Any] = []
    system.spawn(boot)
    await settle()
    await trio.sleep(1.5)
    await settle()
    assert heard == [[("+", "a")]]
    await trio.sleep(5)
    await settle()
    assert heard == [[("+", "a"), ("-", "a"), ("+", "a")]]


def test_halt_and_stop() -> None:
    """`halt` and `stop()` end the facet of the program in order, and then the actor if it does nothing else."""

    class Halting(Post):
        @bloom
        def end(self) -> None:
            self.halt <= self.mail.filter(lambda m: m.text == "end").map(lambda m: (m.text,))

    def boot() -> None:
        ds = dataspace()
        actors.extend(spawn(begin, name, ds) for name in "ab")

    def begin(name: str, ds: Ref) -> None:
        instances.append(Halting(ds, address=name))
        on_stop(lambda: ended.append(name))

    instances: list[Any] = []
    actors: list[Any] = []
    ended: list[str] = []
    system = settled(boot)
    instances[0].out <= [("b", "end")]
    system.drain()
    assert ([actor.running for actor in actors], ended) == ([True, False], ["b"])
    instances[0].stop()
    instances[0].stop()
    system.drain()
    instances[0].stop()
    assert ([actor.running for actor in actors], ended) == ([False, False], ["b", "a"])
    assert not any(actor.error for actor in actors)


# --------------------------------------------------------------------------------------------------- timers


class Clockwork(Bloom):
    """Notes the ticks in which its timers fired."""

    fast = periodic(2)
    slow = periodic(5)
    fired = table(["which", "key"], ["tick", "time"])

    @bloom
    def rules(self) -> None:
        """Which, and when."""
        self.fired <= (self.fast * self.now).pairs(lambda t, now: ("fast", t.key, now.tick, t.val))
        self.fired <= (self.slow * self.now).pairs(lambda t, now: ("slow", t.key, now.tick, t.val))


async def test_timers_fire_by_themselves(system: System, settle: Settle) -> None:
    """Each period, as long as the facet lives, on the clock of trio."""

    def boot() -> None:
        ds = dataspace()
        instances.append(Clockwork(ds, clock=trio.current_time))
        after(21, stop_actor)

    instances: list[Any] = []
    start = trio.current_time()
    system.spawn(boot)
    await settle()
    await trio.sleep(100)
    await settle()
    times = sorted((row.which, round(row.time - start)) for row in instances[0].fired)
    assert times == [("fast", n) for n in range(2, 21, 2)] + [("slow", n) for n in range(5, 21, 5)]


async def test_several_firings_are_rows_of_one_tick(
    system: System, settle: Settle, clock: trio.testing.MockClock
) -> None:
    """What fires while nothing can tick is there in one tick, as so many rows."""

    def boot() -> None:
        instances.append(Clockwork(dataspace(), clock=trio.current_time))

    instances: list[Any] = []
    system.spawn(boot)
    await settle()
    before = instances[0].budtime
    clock.jump(7)
    await settle()
    fired = [(row.which, row.tick) for row in sorted(instances[0].fired)]
    ticks = {tick for which, tick in fired if which == "fast"}
    assert len(ticks) == 1
    assert sorted(which for which, _ in fired) == ["fast", "fast", "fast", "slow"]
    assert instances[0].budtime <= before + 2
    instances[0].pause()
    await trio.sleep(10)
    assert len(instances[0].fired) == 4
    instances[0].run_bg()
    await settle()
    fired = [(row.which, row.tick) for row in sorted(instances[0].fired)][4:]
    assert len(instances[0].fired) == 4 + 5 + 2
    assert len({row.tick for row in instances[0].fired}) <= 3
