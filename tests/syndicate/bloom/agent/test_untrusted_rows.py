"""What untrusted peers send to a program with lattices: it is merged, or waits, or is refused; the program goes on."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import Record, assert_, capture, dataspace, on_asserted, on_message, react, record, send, spawn, stop
from syndicate.bloom import Bloom, agg, bloom, channel, coll_expr, lmax, scratch, stdio, table
from syndicate.bloom.agent.ports import Packet
from syndicate.errors import KeyConflict, RuleFailed
from syndicate.lattice import Lattice
from syndicate.testing import settled
from tests.strategies import examples


@record("bloom-test-bid")
class Bid:
    """What somebody offers."""

    who: str
    offer: Any


class Fussy(Lattice):
    """Takes nothing but text, and says so in its own way."""

    __slots__ = ()
    wrapper_name = "lfussy"

    def __init__(self, content: str = "") -> None:
        """Of text."""
        super().__init__(content.upper())

    def merge(self, other: Fussy) -> Fussy:
        """The longer one."""
        return max(self, other, key=lambda one: (len(one.content), one.content))


class Auction(Bloom):
    """Bids by channel, by message and by assertion."""

    news = channel(["@to", "who"], ["offer", "note"], offer=lmax)
    loose = channel(["@to", "who"], ["offer"])
    text = channel(["@to", "who"], ["said"], said=Fussy)
    asserted = scratch(["who"], ["offer"], offer=lmax)
    last = table(["who"], ["offer"], offer=lmax)
    best = lmax()
    seen = table(["who", "note"], [])
    heard = table(["who"], ["said"], said=Fussy)
    any = table(["who", "kind"], [])

    @bloom
    def rules(self) -> None:
        """The best of all that are well formed."""
        self.best <= self.news.map(lambda n: n.offer)
        self.best <= self.asserted.map(lambda n: n.offer)
        self.seen <= self.news.map(lambda n: (n.who, n.note))
        self.heard <= self.text.map(lambda n: (n.who, n.said))
        self.any <= self.loose.map(lambda n: (n.who, type(n.offer).__name__))


def crowd(*messages: Any, stand: tuple[Any, ...] = ()) -> tuple[Any, Any]:
    """An auction to which each of these was sent by an actor of its own, and its actor."""

    def boot() -> None:
        ds = dataspace()

        def auction() -> None:
            ports: dict[str, Any] = {"inputs": {"asserted": Bid}, "messages": {"last": ["bid", capture(), capture()]}}
            instances.append(Auction(ds, address="me", **ports))

        actors.append(spawn(auction))
        for one in messages:
            spawn(lambda one=one: send(ds, one))
        for one in stand:
            spawn(lambda one=one: assert_(ds, one))

    instances: list[Any] = []
    actors: list[Any] = []
    settled(boot)
    return instances[0], actors[0]


def test_values_of_other_lattices() -> None:
    """Where a column's lattice is declared, any other is refused: by channel, message and assertion."""
    odd = [Record("lset", [[5]]), Record("lmax", ["a", "b"]), Record("lset", [5]), Record("nobody", []), True]
    messages: list[Any] = [Packet("me", "news", ("me", f"w{n}", one, "x")) for n, one in enumerate(odd)]
    messages += [["bid", f"w{n}", one] for n, one in enumerate(odd)]
    p, actor = crowd(*messages, Packet("me", "news", ("me", "good", 7, "y")), stand=(Bid("ann", 9), Bid("bob", odd[0])))
    assert actor.error is None
    assert (p.best.reveal(), sorted(p.seen), len(p.last)) == (9, [("good", "y")], 0)


def test_rows_of_one_key_that_cannot_be_merged() -> None:
    """They come one after the other, in a tick each, and those that can be merged in one."""
    messages = [Packet("me", "news", ("me", "ann", offer, note)) for offer, note in ((1, "x"), (2, "y"), (3, "x"))]
    p, actor = crowd(*messages)
    assert actor.error is None
    assert (p.best.reveal(), sorted(p.seen)) == (3, [("ann", "x"), ("ann", "y")])


@pytest.mark.parametrize("mixed", [("lset", "lmax"), ("lmax", "lset")])
def test_lattices_nobody_declared(mixed: tuple[str, str]) -> None:
    """Two kinds of values under one key, in a channel that declares none, come one after the other."""
    content: dict[str, Any] = {"lset": [[5]], "lmax": [5]}
    messages = [
        Packet("me", "loose", ("me", who, Record(name, content[name]))) for who, name in zip("ab", mixed, strict=True)
    ]
    p, actor = crowd(*messages, Packet("me", "news", ("me", "ann", 1, "x")))
    assert actor.error is None
    assert sorted(row.kind for row in p.any) == ["Max", "Set"]


def test_constructors_that_raise_anything() -> None:
    """A user's lattice refuses an untrusted peer's value in its own way, which is a refusal of the row."""
    messages = [Packet("me", "text", ("me", "ann", value)) for value in (5, (1, 2), "hello", b"x")]
    p, actor = crowd(*messages)
    assert actor.error is None
    assert [(row.who, row.said.content) for row in p.heard] == [("ann", "HELLO")]


def test_assertions_stand_when_a_program_is_wired_again() -> None:
    """A lattice value that nobody expected makes a new circuit, which gets what is asserted, and its end."""

    class Present(Bloom):
        here = scratch(["who"], [])
        also = scratch(["who"], [])
        loose = channel(["@to", "who"], ["offer"])
        offers = table(["who"], ["offer"])

        @bloom
        def rules(self) -> None:
            self.also <= self.here
            self.offers <= self.loose.map(lambda n: (n.who, n.offer))

    def boot() -> None:
        ds.append(dataspace())
        spawn(lambda: instances.append(Present(ds[0], address="me", inputs={"here": ["here", capture()]})))
        spawn(lambda: stands.append(react(partial(assert_, ds[0], ["here", "ann"]))))

    ds: list[Any] = []
    instances: list[Any] = []
    stands: list[Any] = []
    system = settled(boot)
    assert sorted(instances[0].also) == [("ann",)]
    system.spawn(lambda: send(ds[0], Packet("me", "loose", ("me", "bob", Record("lmax", [5])))))
    system.drain()
    assert (sorted(instances[0].also), len(instances[0].offers)) == ([("ann",)], 1)
    stands[0].enter(lambda: stop(stands[0]))
    system.drain()
    assert sorted(instances[0].also) == []


class Fragile(Bloom):
    """Takes 12 apart by what it gets, by channel, message and assertion."""

    told = channel(["@to", "who"], ["n"])
    last = table(["who"], ["n"])
    stands = scratch(["who", "n"], [])
    own = scratch(["who"], ["n"])
    parts = table(["who", "part"], [])
    now_parts = scratch(["who", "part"], [])
    once = table(["who"], ["n"])

    @bloom
    def rules(self) -> None:
        """All four in the same way; who has said one thing cannot say another."""
        for one in (self.told, self.last, self.own):
            self.parts <= one.map(lambda r: (r.who, 12 // r.n))
        self.now_parts <= self.stands.map(lambda r: (r.who, 12 // r.n))
        self.once <= self.told.map(lambda r: (r.who, r.n))


def fragile(*messages: Any, stand: tuple[Any, ...] = ()) -> tuple[Any, Any, Any, Any]:
    """A program that all of these reach in one turn, its actor, its dataspace and the system."""

    def boot() -> None:
        ds = dataspace()
        spaces.append(ds)

        def program() -> None:
            ports: dict[str, Any] = {
                "inputs": {"stands": ["stands", capture(), capture()]},
                "messages": {"last": ["last", capture(), capture()]},
            }
            instances.append(Fragile(ds, address="me", **ports))

        actors.append(spawn(program))

        def untrusted() -> None:
            for one in messages:
                send(ds, one)
            for one in stand:
                assert_(ds, one)

        spawn(untrusted)

    instances: list[Any] = []
    actors: list[Any] = []
    spaces: list[Any] = []
    system = settled(boot)
    return instances[0], actors[0], spaces[0], system


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-1, 3)), max_size=12),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-1, 3)), max_size=4),
)
def test_rows_that_make_a_rule_raise(rows: list[tuple[str, int]], stand: list[tuple[str, int]]) -> None:
    """Exactly those are refused, whoever comes with them; of two that exclude each other, the first stays."""
    sent = [Packet("me", "told", ("me", *one)) for one in rows]
    p, actor, _, _ = fragile(*sent, stand=tuple(["stands", *one] for one in stand))
    assert actor.error is None
    first: dict[str, int] = {}
    for who, n in rows:
        if n:
            first.setdefault(who, n)
    assert sorted(p.once) == sorted(first.items())
    assert set(p.parts) == {(who, 12 // n) for who, n in first.items()}
    assert set(p.now_parts) == {(who, 12 // n) for who, n in stand if n}


def test_what_is_said_of_them(logs: list[MutableMapping[str, Any]]) -> None:
    """The log has the collection, the row, the rule's place and the exception; retractions are no mistakes."""
    bad = [Packet("me", "told", ("me", "ann", 0)), ["last", "bob", 0]]
    good = [Packet("me", "told", ("me", "cid", 3)), ["last", "dan", 4]]
    p, actor, ds, system = fragile(*bad, *good, stand=(["stands", "eve", 0], ["stands", "fay", 6]))
    assert actor.error is None
    assert (sorted(p.parts), sorted(p.now_parts)) == ([("cid", 4), ("dan", 3)], [("fay", 2)])
    assert {line["collection"] for line in logs} == {"told", "last", "stands"}
    (line,) = [line for line in logs if line["collection"] == "told"]
    assert line["event"] == "a row was refused"
    assert line["reason"].startswith("('me', 'ann', 0) makes a rule raise: ")
    assert f"{__file__}:" in line["reason"]
    assert "ZeroDivisionError" in line["reason"]
    system.spawn(lambda: send(ds, ["last", "dan", 6]))
    system.drain()
    assert (actor.error, sorted(p.last)) == (None, [("dan", 6)])


def test_a_mistake_of_the_program_ends_it() -> None:
    """Rows of its own that raise do so whoever else is there, and untrusted peers' rows are then not to blame."""
    p, actor, ds, system = fragile(Packet("me", "told", ("me", "ann", 3)))

    def both() -> None:
        send(ds, Packet("me", "told", ("me", "bob", 0)))
        p.own.insert([("me", 0)])

    system.spawn(both)
    system.drain()
    assert isinstance(actor.error, RuleFailed)
    assert "(who='me', n=0)" in str(actor.error)


def test_rows_of_the_program_itself_are_kept() -> None:
    """They are there in the tick that is tried without untrusted peers."""
    p, actor, ds, system = fragile()

    def both() -> None:
        for n in range(3):
            send(ds, Packet("me", "told", ("me", f"bob {n}", 0)))
        p.own.insert([("me", 6)])

    system.spawn(both)
    system.drain()
    assert (actor.error, sorted(p.parts)) == (None, [("me", 2)])


@pytest.mark.parametrize("program", [False, True])
def test_rows_that_replace_each_other(*, program: bool) -> None:
    """Two of one key at once replace each other one after the other; two of the program's own still end it."""

    class Latest(Bloom):
        told = channel(["@to", "who", "n"], [])
        own = scratch(["who", "n"], [])
        last = table(["who"], ["n"])

        @bloom
        def rules(self) -> None:
            self.last < +-self.told.payloads()
            self.last < +-self.own

    def boot() -> None:
        ds = dataspace()
        actors.append(spawn(lambda: instances.append(Latest(ds, address="me"))))

        def untrusted() -> None:
            for n in range(5):
                send(ds, Packet("me", "told", ("me", "ann", n)))
            if program:
                instances[0].own.insert([("bob", 1), ("bob", 2)])

        spawn(untrusted)

    instances: list[Any] = []
    actors: list[Any] = []
    settled(boot)
    if program:
        assert isinstance(actors[0].error, KeyConflict)
    else:
        assert (actors[0].error, sorted(instances[0].last)) == (None, [("ann", 4)])


def test_what_a_function_gave_is_kept() -> None:
    """A coll_expr is called once for each tick that happens, and not again for one that is tried without untrusted
    peers.
    """

    class Pulling(Fragile):
        pulled = coll_expr(lambda: [(left.pop(),)] if left else [], ["n"])

        @bloom
        def pull(self) -> None:
            self.parts <= self.pulled.map(lambda r: ("queue", 12 // r.n))

    def boot() -> None:
        spaces.append(dataspace())
        actors.append(spawn(lambda: instances.append(Pulling(spaces[0], address="me"))))

    left: list[int] = []
    instances: list[Any] = []
    actors: list[Any] = []
    spaces: list[Any] = []
    system = settled(boot)
    left += [3, 2, 1]

    def untrusted() -> None:
        for who, n in (("a", 0), ("b", 6)):
            send(spaces[0], Packet("me", "told", ("me", who, n)))

    system.spawn(untrusted)
    system.drain()
    assert (actors[0].error, left) == (None, [3])
    assert sorted(instances[0].parts) == [("b", 2), ("queue", 6), ("queue", 12)]


def test_what_a_terminal_cannot_show(capsys: pytest.CaptureFixture[str]) -> None:
    """It is escaped, and does not end the program when the tick has happened."""

    class Telling(Bloom):
        told = channel(["@to", "text"], [])
        out = stdio()

        @bloom
        def rules(self) -> None:
            self.out < ~self.told.map(lambda t: (t.text,))

    def boot() -> None:
        ds = dataspace()
        actors.append(spawn(lambda: Telling(ds, address="me")))
        for text in ("zwö", "\ud800!"):
            spawn(lambda text=text: send(ds, Packet("me", "told", ("me", text))))

    actors: list[Any] = []
    settled(boot)
    assert actors[0].error is None
    assert sorted(capsys.readouterr().out.splitlines()) == ["\\ud800!", "zwö"]


def test_a_lattice_where_none_can_be() -> None:
    """An untrusted peer's lattice value in a column that nobody declared is refused where a rule makes it a key."""

    class Keys(Bloom):
        loose = channel(["@to", "who"], ["offer"])
        pairs = table(["who", "offer"], [])

        @bloom
        def rules(self) -> None:
            self.pairs <= self.loose.payloads()

    def boot() -> None:
        ds = dataspace()
        actors.append(spawn(lambda: instances.append(Keys(ds, address="me"))))
        for who, offer in (("a", 1), ("b", Record("lmax", [5])), ("c", Record("lset", [[1]])), ("d", 4)):
            spawn(lambda who=who, offer=offer: send(ds, Packet("me", "loose", ("me", who, offer))))

    instances: list[Any] = []
    actors: list[Any] = []
    settled(boot)
    assert (actors[0].error, sorted(instances[0].pairs)) == (None, [("a", 1), ("d", 4)])


def test_an_end_that_makes_a_rule_raise(logs: list[MutableMapping[str, Any]]) -> None:
    """What a rule cannot do without stays, and the log says so."""

    class Share(Bloom):
        here = scratch(["who"], [])
        others = scratch(["n"], [])
        share = scratch(["n"], [])

        @bloom
        def rules(self) -> None:
            self.others <= self.here.group([], agg.count()).map(lambda group: (group[0] - 1,))
            self.share <= self.others.map(lambda o: (12 // o.n,))

    def boot() -> None:
        ds = dataspace()
        stands.update({who: react(partial(assert_, ds, ["here", who])) for who in ("ann", "bob", "cid", "dan")})
        actors.append(spawn(lambda: instances.append(Share(ds, inputs={"here": ["here", capture()]}))))

    instances: list[Any] = []
    actors: list[Any] = []
    stands: dict[str, Any] = {}
    system = settled(boot)
    shares = [[row.n for row in instances[0].share]]
    for who in ("dan", "cid", "bob", "ann"):
        stands[who].enter(partial(stop, stands[who]))
        system.drain()
        shares.append([row.n for row in instances[0].share])
    assert shares == [[4], [6], [12], [12], [12]]
    assert [line["reason"][:19] for line in logs] == ["the end of ('bob',)", "the end of ('ann',)"]
    assert (actors[0].error, sorted(instances[0].here)) == (None, [("ann",), ("bob",)])


def test_rows_of_which_no_value_can_be_made(logs: list[MutableMapping[str, Any]]) -> None:
    """A row is refused, too, if what is to be asserted, or sent, because of it cannot be."""

    class Shares(Bloom):
        told = channel(["@to", "who"], ["n"])
        answer = channel(["@to", "who"], ["n"])
        most = table(["who"], ["n"], n=lmax)
        share = table(["who"], ["n"])
        echo = scratch(["who"], ["n"])

        @bloom
        def rules(self) -> None:
            self.share <= self.told.payloads()
            self.echo <= self.told.payloads()
            self.most <= self.told.payloads()
            self.answer < ~self.told.map(lambda t: ("you", t.who, t.n if t.n != 7 else open))

    def boot() -> None:
        ds = dataspace()
        outputs: dict[str, Any] = {
            "share": lambda who, n: ["share", who, 60 // n],
            "most": lambda who, n: ["most", who, 60 // (n.reveal() - 3)],
        }
        sends: dict[str, Any] = {"echo": lambda who, n: ["echo", who, 60 // (n - 1)]}
        actors.append(spawn(lambda: instances.append(Shares(ds, address="me", outputs=outputs, sends=sends))))
        on_asserted(ds, ["share", capture(), capture()])(lambda *row: seen.append(row))
        on_asserted(ds, ["most", capture(), capture()])(lambda *row: seen.append(row))
        on_message(ds, ["echo", capture(), capture()])(lambda *row: seen.append(row))
        on_message(ds, Packet("you", "answer", capture()))(seen.append)

        def untrusted() -> None:
            for who, n in (("a", 0), ("b", 1), ("c", 7), ("d", 2), ("e", "x"), ("f", 3)):
                send(ds, Packet("me", "told", ("me", who, n)))

        spawn(untrusted)

    instances: list[Any] = []
    actors: list[Any] = []
    seen: list[Any] = []
    settled(boot)
    assert actors[0].error is None
    assert sorted(instances[0].share) == [("d", 2)]
    assert sorted(seen) == [("d", -60), ("d", 30), ("d", 60), ("you", "d", 2)]
    assert sorted(line["reason"][:11] for line in logs) == [f"('me', '{who}'," for who in "abcef"]
    assert sum("answer cannot send" in line["reason"] for line in logs) == 1


@pytest.mark.parametrize("kind", [scratch, table])
def test_a_refused_assertion_leaves_its_key_to_others(kind: Any, logs: list[MutableMapping[str, Any]]) -> None:
    """It counts for nothing while it is there: the next of its key is there, whichever came first; its end is quiet."""

    class Keyed(Bloom):
        setting = kind(["name"], ["value"])
        half = scratch(["name", "value"], [])

        @bloom
        def rules(self) -> None:
            self.half <= self.setting.map(lambda s: (s.name, 12 // s.value))

    def boot() -> None:
        ds = dataspace()
        actors.append(spawn(lambda: instances.append(Keyed(ds, inputs={"setting": ["set", capture(), capture()]}))))
        for name, value in (("a", 0), ("a", 3), ("b", 4), ("b", 0), ("b", 6)):
            facets[name, value] = react(partial(assert_, ds, ["set", name, value]))

    instances: list[Any] = []
    actors: list[Any] = []
    facets: dict[tuple[str, int], Any] = {}
    system = settled(boot)

    def ended(*one: Any) -> list[Any]:
        facets[one].enter(partial(stop, facets[one]))
        system.drain()
        return sorted(instances[0].half)

    assert sorted(instances[0].half) == [("a", 4), ("b", 3)]
    assert ended("a", 0) == [("a", 4), ("b", 3)]
    assert ended("b", 4) == [("a", 4), ("b", 2)]
    assert ended("a", 3) == [("b", 2)]
    assert ended("b", 0) == [("b", 2)]
    assert ended("b", 6) == []
    assert (actors[0].error, len(instances[0].setting)) == (None, 0)
    assert sum("makes a rule raise" in line["reason"] for line in logs) == 2


@record("bloom-test-odd")
class Odd:
    """Made of odd numbers only."""

    n: Any

    def __attrs_post_init__(self) -> None:
        if isinstance(self.n, int) and self.n % 2 == 0:
            raise ValueError("it is even")


def by_zero(n: Any) -> Any:
    """A mistake whatever it is given."""
    return ["out", n // 0]


def nothing(n: Any) -> Any:
    """Gives no value."""
    return open


def odd(n: Any) -> Any:
    """Works for the odd ones."""
    return Odd(n)


class Passing(Bloom):
    """What comes in goes out."""

    told = channel(["@to", "n"], [])
    heard = scratch(["n"], [])
    stands = scratch(["n"], [])
    own = scratch(["n"], [])
    out = scratch(["n"], [])

    @bloom
    def rules(self) -> None:
        """Whoever it is from."""
        self.out <= self.told.payloads()
        for one in (self.heard, self.stands, self.own):
            self.out <= one


def passing(port: str, make: Any, turns: Sequence[Sequence[Any]], *, own: bool = False) -> tuple[Any, list[Any]]:
    """The actor of a program that untrusted peers tell these, in one turn after the other, and what went out."""

    def boot() -> None:
        ds = dataspace()
        ports: dict[str, Any] = {
            "inputs": {"stands": ["stands", capture()]},
            "messages": {"heard": ["sent", capture()]},
            port: {"out": make},
        }

        def program() -> None:
            p = Passing(ds, address="me", **ports)
            if own:
                p.own.insert([(3,)])

        actors.append(spawn(program))
        for pattern in (Odd(capture()), ["out", capture()]):
            on_asserted(ds, pattern)(seen.append)
            on_message(ds, pattern)(seen.append)

        def tell(inputs: Sequence[Any]) -> None:
            for kind, n in inputs:
                offers = {"told": Packet("me", "told", ("me", n)), "sent": ["sent", n], "stands": ["stands", n]}[kind]
                (assert_ if kind == "stands" else send)(ds, offers)

        for some in turns:
            spawn(partial(tell, some))

    actors: list[Any] = []
    seen: list[Any] = []
    settled(boot)
    return actors[0], seen


@pytest.mark.parametrize("kind", ["told", "sent", "stands"])
@pytest.mark.parametrize("make", [by_zero, nothing, odd, Odd], ids=lambda make: make.__name__)
@pytest.mark.parametrize("port", ["outputs", "sends"])
def test_a_function_that_never_makes_a_value(
    port: str, make: Any, kind: str, logs: list[MutableMapping[str, Any]]
) -> None:
    """It is reported as the program's mistake, once and with its place, and nobody's rows are refused; nor does an
    untrusted peer end the program by it.
    """
    actor, seen = passing(port, make, [[(kind, 2)], [(kind, 4), (kind, 6)]])
    assert (actor.error, seen) == (None, [])
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("a function of the program has failed for every row so far", "error")
    assert line["reason"].startswith(f"{__file__}:")
    assert f"{port}= of out cannot make a value of (" in line["reason"]
    assert isinstance(line["exc_info"], Exception)


@pytest.mark.parametrize("kind", ["told", "sent", "stands"])
@pytest.mark.parametrize("make", [odd, Odd], ids=lambda make: make.__name__)
@pytest.mark.parametrize("port", ["outputs", "sends"])
def test_a_function_that_fails_for_some(port: str, make: Any, kind: str, logs: list[MutableMapping[str, Any]]) -> None:
    """Those rows are refused, with the place, wherever among the others they come."""
    actor, seen = passing(port, make, [[(kind, n) for n in (2, 1, 4, 3)], [(kind, 6)]])
    assert (actor.error, sorted(set(seen))) == (None, [1, 3])
    assert [line["event"] for line in logs] == ["a row was refused"] * 3
    assert [f"{__file__}:" in line["reason"] and "it is even" in line["reason"] for line in logs] == [True] * 3


@pytest.mark.parametrize("make", [by_zero, nothing], ids=lambda make: make.__name__)
@pytest.mark.parametrize("port", ["outputs", "sends"])
def test_a_function_that_fails_for_a_row_of_the_program(port: str, make: Any) -> None:
    """The actor crashes, with the function's place, whatever untrusted peers are there."""
    actor, seen = passing(port, make, [[("sent", 1)]], own=True)
    assert isinstance(actor.error, RuleFailed)
    assert str(actor.error).startswith(f"{__file__}:")
    assert seen == []
