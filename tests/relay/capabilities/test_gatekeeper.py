"""The gatekeeper: who gets in, what the others learn, and what ends when a bind is withdrawn."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pytest
import trio

from relay import connect
from relay.capabilities.gatekeeper import BindSpace, Gatekeeper, answered, bind, resolve
from relay.capabilities.sturdy import CAVEATS, DEFAULT, OID, REF, SIG, SturdyRef, mint, parse_ref, show
from relay.protocol.limits import Limits
from relay.protocol.packets import A, R, TurnPacket, WireRef
from relay.server.broker import Broker
from relay.server.config import Config, Listening
from relay.transport import Address
from syndicate import (
    Dictionary,
    Entity,
    Record,
    Ref,
    Symbol,
    assert_,
    capture,
    current_facet,
    dataspace,
    during,
    on_message,
    open_system,
    prevent_inert_check,
    react,
    ref,
    send,
    spawn,
    sync,
)
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import Handle
from syndicate.errors import NotAValue
from syndicate.testing import Seen, settled, watch
from syndicate.values.value import freeze
from tests.relay.wire import Wire
from tests.strategies import REFS
from tests.waiting import until

KEY = b"sixteen bytes!!!"
FAILED = Record("rejected", [Record("sturdyref-failed-validation")])
INVALID = Record("rejected", [Symbol("invalid")])
UNSUPPORTED = Record("rejected", [Symbol("unsupported")])


def accepted(target: Ref) -> Record:
    """The answer that gives *target*."""
    return Record("accepted", [target])


class Observer(Entity):
    """Notes the answers that stand, and all events in order."""

    def __init__(self) -> None:
        self.answers: dict[Any, Any] = {}
        self.events: list[str] = []

    def assert_(self, value: Any, handle: Any) -> None:
        self.answers[handle] = value
        self.events.append(f"+{value.label}")

    def retract(self, handle: Any) -> None:
        self.events.append(f"-{self.answers.pop(handle).label}")


class Target(Entity):
    """What is bound: remembers all."""

    def __init__(self) -> None:
        self.there: dict[Any, Any] = {}
        self.messages: list[Any] = []

    def assert_(self, value: Any, handle: Any) -> None:
        self.there[handle] = value

    def retract(self, handle: Any) -> None:
        del self.there[handle]

    def message(self, value: Any) -> None:
        self.messages.append(value)


class Gate:
    """A gatekeeper with one name for ever, a bind space, and somebody who asks."""

    def __init__(self, **options: Any) -> None:
        self.observer = Observer()
        self.bound = Target()
        self.options = options
        self.system: System = settled(self._boot)

    def _boot(self) -> None:
        self.target = ref(Entity())
        space = BindSpace({"ds": (KEY, self.target)})
        self.space = ref(space)
        self.keeper = Gatekeeper(space, **self.options)
        self.gatekeeper = ref(self.keeper)
        self.me = ref(self.observer)
        self.facet: Facet = current_facet()
        prevent_inert_check()
        spawn(self._other)

    def _other(self) -> None:
        self.room = ref(self.bound)
        self.there = current_facet()
        prevent_inert_check()

    def act(self, fn: Any) -> Any:
        """Run *fn*, and all that it causes."""
        got: list[Any] = []
        self.facet.enter(lambda: got.append(fn()))
        self.system.drain()
        return got[0] if got else None

    def ask(self, step: Any, observer: Any = None) -> Handle:
        """Ask the gatekeeper."""
        handle: Handle = self.act(
            lambda: assert_(self.gatekeeper, Record("resolve", [step, self.me if observer is None else observer]))
        )
        return handle

    def bind(self, oid: Any = "room", key: bytes = KEY, **options: Any) -> Handle:
        """Bind the room."""
        handle: Handle = self.act(lambda: bind(self.space, oid, key, self.room, **options))
        return handle

    @property
    def answers(self) -> list[Any]:
        return list(self.observer.answers.values())


@pytest.fixture
def gate() -> Gate:
    """A gatekeeper."""
    return Gate()


# ---------------------------------------------------------------------------------------------------- answers


def test_a_valid_reference(gate: Gate) -> None:
    """It is answered by the live reference, for as long as the question is asserted."""
    handle = gate.ask(mint("ds", KEY))
    assert gate.answers == [accepted(gate.target)]
    gate.act(handle.retract)
    assert gate.answers == []


WITHOUT_SIG = SturdyRef(Dictionary([(OID, "ds")]))


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (mint("ds", b""), FAILED),
        (mint("unknown", KEY), FAILED),
        (mint("unknown", b""), FAILED),
        (SturdyRef(Dictionary([(OID, REFS[0]), (SIG, b"x" * 16)])), FAILED),
        (SturdyRef(Dictionary([(OID, "ds"), (SIG, b"x" * 16), (CAVEATS, [Record("expires", [1])])])), FAILED),
        (WITHOUT_SIG, INVALID),
        (SturdyRef(1), INVALID),
        (SturdyRef(Dictionary()), INVALID),
        (SturdyRef(Dictionary([(OID, "ds"), (SIG, b"x" * 15)])), INVALID),
        (SturdyRef(Dictionary([(OID, "ds"), (SIG, b"x" * 16), (CAVEATS, 5)])), INVALID),
        (SturdyRef(Dictionary([(OID, "ds"), (SIG, b"x" * 16), (CAVEATS, [Record("reject", [5])])])), INVALID),
        (SturdyRef(Dictionary([(OID, "ds"), (SIG, b"x" * 16), (Symbol("expires"), 5)])), INVALID),
        (Record("noise", [1]), UNSUPPORTED),
        (Record("ref", [Dictionary(), 1]), UNSUPPORTED),
        (5, UNSUPPORTED),
    ],
)
def test_all_others(gate: Gate, step: Any, answer: Any) -> None:
    """They are refused; whether a name is unknown or a signature wrong looks the same."""
    handle = gate.ask(step)
    assert gate.answers == [answer]
    gate.act(handle.retract)
    assert gate.answers == []


@pytest.mark.parametrize("value", [1, Record("resolve", [mint("ds", KEY), 5]), Record("resolve", [1]), Record("x", [])])
def test_what_is_no_question(gate: Gate, value: Any) -> None:
    """It is ignored, and so is its end."""
    handle = gate.act(lambda: assert_(gate.gatekeeper, value))
    gate.act(handle.retract)
    assert gate.answers == []
    assert gate.facet.alive


def test_a_reference_to_nothing_in_particular(gate: Gate) -> None:
    """The observer may be any reference, the gatekeeper's own included."""
    gate.ask(mint("ds", KEY), gate.gatekeeper)
    gate.ask(mint("ds", KEY), Ref(gate.facet, Entity()))
    assert gate.facet.alive


def test_the_other_words() -> None:
    """With ``ok`` the answers are those of the newer schema; who asks here understands both."""
    gate = Gate(replies="ok")
    gate.ask(mint("ds", KEY))
    gate.ask(mint("ds", b""))
    gate.ask(5)
    assert gate.answers == [
        Record("ok", [gate.target]),
        Record("error", [Record("sturdyref-failed-validation")]),
        Record("error", [Symbol("unsupported")]),
    ]
    for word, refusal in (("ok", "error"), ("accepted", "rejected")):
        assert answered(freeze(Record(word, [gate.target]))) == (gate.target, None)
        assert answered(freeze(Record(refusal, ["no"]))) == (None, "no")
        assert answered(freeze(Record(word, [5]))) is answered(freeze(Record(word, [gate.target, 1]))) is None


def test_caveats_are_kept(gate: Gate) -> None:
    """What is given out lets pass only what the reference says; two questions get the same."""
    gate.bind()
    says = '<rewrite <rec Says [<_> <bind String>]> <rec Says [<lit "alice"> <ref 0>]>>'
    for _ in range(2):
        gate.ask(mint("room", KEY).attenuate(says))
    first, second = gate.answers
    assert first.fields[0] is second.fields[0]
    for value in (Record("Says", ["eve", "hi"]), 5):
        gate.act(partial(send, first.fields[0], value))
    assert gate.bound.messages == [Record("Says", ["alice", "hi"])]
    gate.ask(SturdyRef(Dictionary([(OID, "room"), (SIG, mint("room", KEY).parameters[SIG]), (CAVEATS, [])])))
    gate.act(lambda: send(gate.answers[2].fields[0], "whole"))
    assert gate.bound.messages[1:] == ["whole"]


# ---------------------------------------------------------------------------------------------------- binds


def test_a_question_may_come_first(gate: Gate) -> None:
    """A rejection is what holds now: it is replaced, without a gap, once there is such a name, and comes back when
    that goes; a wrong signature never learns of it.
    """
    gate.ask(mint("room", KEY))
    wrong = Observer()
    gate.ask(mint("room", b"another key 1234"), gate.act(lambda: ref(wrong)))
    other = Observer()
    gate.ask(mint("other", KEY), gate.act(lambda: ref(other)))
    assert gate.answers == [FAILED]
    handle = gate.bind()
    assert [answer.label for answer in gate.answers] == [Symbol("accepted")]
    gate.act(handle.retract)
    assert gate.answers == [FAILED]
    assert gate.observer.events == ["+rejected", "+accepted", "-rejected", "+rejected", "-accepted"]
    assert wrong.events == other.events == ["+rejected"]


def test_what_was_given_out_ends_with_its_bind(gate: Gate) -> None:
    """What was asserted through it is retracted, nothing passes any more, and a sync is still answered; however the
    reference was narrowed, and not where somebody else has bound the same.
    """
    handle, again = gate.bind(), gate.bind("again")
    gate.ask(mint("room", KEY))
    gate.ask(mint("room", KEY).attenuate("<reject <lit 13>>"))
    gate.ask(mint("again", KEY))
    live, narrow, other = (answer.fields[0] for answer in gate.answers)
    held = gate.act(lambda: [assert_(target, n) for n, target in enumerate((live, narrow, other))])
    assert [*gate.bound.there.values()] == [0, 1, 2]
    gate.act(handle.retract)
    assert [*gate.bound.there.values()] == [2]
    done: list[int] = []
    gate.act(lambda: assert_(narrow, "y"))
    for target, value in ((live, "x"), (other, "z")):
        gate.act(partial(send, target, value))
    gate.act(lambda: sync(live, lambda: done.append(1)))
    assert [*gate.bound.there.values()] == [2]
    assert gate.bound.messages == ["z"]
    assert done == [1]
    for asserted in held:
        gate.act(asserted.retract)
    assert gate.bound.there == {}
    gate.act(again.retract)
    assert gate.keeper.space._names.keys() == {"ds"}
    assert gate.bound is not None
    assert gate.there.alive


def test_a_dataspace_that_was_bound() -> None:
    """Facts and interests that came through a bind go with it, and so do those who were notified."""
    gate, seen, inside = Gate(), list[Seen](), list[Seen]()
    gate.room = gate.act(dataspace)
    inside.append(gate.act(lambda: watch(gate.room, ["x", capture()])))
    handle = gate.bind()
    gate.ask(mint("room", KEY))
    ds = gate.answers[0].fields[0]

    def guest() -> None:
        seen.append(watch(ds, ["x", capture()]))
        assert_(ds, ["x", 1])
        prevent_inert_check()

    gate.act(lambda: spawn(guest))
    gate.act(lambda: assert_(gate.room, ["x", 2]))
    gate.act(handle.retract)
    gate.act(lambda: [assert_(ds, ["x", 3]), assert_(gate.room, ["x", 4])])
    assert seen[0][:2] == [("+", 1), ("+", 2)]
    assert sorted(seen[0][2:]) == [("-", 1), ("-", 2)]
    assert inside == [[("+", 1), ("+", 2), ("-", 1), ("+", 4)]]


def test_two_binds_of_a_name(gate: Gate) -> None:
    """Each key finds its own; of two with the same key the first is found, and then the second, without a gap."""
    first, second = gate.bind(), gate.bind()
    third = gate.bind(key=b"a key of another")
    gate.ask(mint("room", KEY))
    gate.ask(mint("room", b"a key of another"))
    one, two = (answer.fields[0] for answer in gate.answers)
    assert one is not two
    gate.act(first.retract)
    assert [answer.label for answer in gate.answers] == [Symbol("accepted")] * 2
    assert one not in [answer.fields[0] for answer in gate.answers]
    gate.act(second.retract)
    gate.act(third.retract)
    assert gate.answers == [FAILED, FAILED]


def test_who_binds_gets_the_reference(gate: Gate) -> None:
    """``<bound ..>`` holds the reference, for as long as the bind is in force."""
    listener = Observer()
    observer = gate.act(lambda: ref(listener))
    handle = gate.bind(observer=observer)
    assert [*listener.answers.values()] == [Record("bound", [mint("room", KEY)])]
    gate.act(handle.retract)
    assert listener.events == ["+bound", "-bound"]


def test_binds_that_are_none(gate: Gate) -> None:
    """They are ignored; :func:`bind` itself refuses what has no value."""
    for value in (
        5,
        Record("bind", [1, 2, 3]),
        Record("bind", [Record("ref", [1]), gate.target, False]),
        Record("bind", [Record("ref", [Dictionary([(OID, 1)])]), gate.target, False]),
        Record("bind", [Record("ref", [Dictionary([(OID, 1), (Symbol("key"), "text")])]), gate.target, False]),
        Record("bind", [Record("ref", [Dictionary([(OID, REFS[0]), (Symbol("key"), KEY)])]), gate.target, False]),
        Record("bind", [Record("ref", [Dictionary([(OID, 1), (Symbol("key"), KEY)])]), 5, False]),
    ):
        handle = gate.act(partial(assert_, gate.space, value))
        gate.act(handle.retract)
    assert gate.facet.alive
    assert gate.keeper.space._names.keys() == {"ds"}
    refused: list[bool] = []

    def wrong() -> None:
        with pytest.raises(NotAValue):
            bind(gate.space, lambda: 1, KEY, gate.target)
        refused.append(True)

    gate.act(wrong)
    assert refused


def test_nothing_is_left(gate: Gate) -> None:
    """When all binds and questions have gone, nothing is kept of them."""
    handles = [gate.bind(i) for i in range(5)] + [gate.ask(mint(i, KEY)) for i in range(7)] + [gate.ask(WITHOUT_SIG)]
    for handle in handles:
        gate.act(handle.retract)
    space, keeper = gate.keeper.space, gate.keeper
    assert space._names.keys() == {"ds"}
    left = [space._binds, space._waiting, keeper._questions, keeper._refusals, keeper._askers]
    assert not any(left)
    assert gate.answers == []


# ---------------------------------------------------------------------------------------------------- peers


def test_a_peer_cannot_bind() -> None:
    """A ``<bind ..>`` at number 0 does nothing: only who has the bind space can bind."""
    keepers: list[Gatekeeper] = []

    def publish() -> Ref:
        keepers.append(Gatekeeper(BindSpace()))
        return ref(keepers[0])

    wire = Wire(publish)
    description = freeze(Record(REF, [Dictionary([(OID, "mine"), (Symbol("key"), KEY)])]))
    bound = (Symbol("bind"), description, WireRef(0, 5), freeze(False))
    wire.right.inject(TurnPacket([(0, (A, bound, 1))]))
    wire.right.inject(TurnPacket([(0, (A, freeze(Record("x", [Record("bind", [1])])), 2)), (0, (R, 2))]))
    wire.system.drain()
    assert keepers[0].space._names == {}
    assert wire.right.session.reason is None


def test_askers_a_session_are_bounded() -> None:
    """A session may have so many open questions; further ones are refused for good, and other sessions are not."""
    gate = Gate(limits=Limits(resolves=3))
    gate.bind()
    handles = [gate.ask(mint("room", KEY)) for _ in range(5)]
    assert [answer.label.name for answer in gate.answers] == ["accepted"] * 3 + ["rejected"] * 2
    assert gate.answers[-1] == Record("rejected", [Symbol("too-many-resolves")])
    gate.act(lambda: react(lambda: assert_(gate.gatekeeper, resolve(mint("room", KEY), gate.me))))
    assert gate.answers[-1].label == Symbol("accepted")
    gate.act(handles[0].retract)
    gate.ask(mint("room", KEY))
    assert gate.answers[-1].label == Symbol("accepted")


def test_oids_cannot_be_probed_by_time(gate: Gate) -> None:
    """As many links of the chain are computed for a name that there is as for one that there is not."""
    import relay.capabilities.sturdy

    counts: list[int] = []
    original = relay.capabilities.sturdy.sign

    def counting(key: bytes, data: bytes) -> bytes:
        counts[-1] += 1
        return original(key, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay.capabilities.sturdy, "sign", counting)
        for oid in ("ds", "no"):
            counts.append(0)
            step = SturdyRef(Dictionary([(OID, oid), (SIG, b"x" * 16), (CAVEATS, [Record("expires", [1])] * 3)]))
            gate.ask(step)
    assert counts == [3, 3], "one for each caveat"


# ---------------------------------------------------------------------------------------------------- end to end

SAYS = Symbol("Says")


async def test_a_holder_narrows_offline_and_the_guest_is_held_to_it() -> None:
    """Over a real socket: who has the chat's reference gives a guest one that speaks as alice only; what the guest says
    otherwise is alice's, what is no speech is dropped, and the connection goes on.
    """
    # The holder has no key, and no connection.
    guests = parse_ref(show(mint("syndicate", KEY))).attenuate(
        """<or [<rewrite <rec Present [<_>]> <rec Present [<lit "alice">]>>
                <rewrite <rec Says [<_> <bind String>]> <rec Says [<lit "alice"> <ref 0>]>>
                <rewrite <bind <rec Observe [<rec group [<rec rec [<lit Says>]> <_>]> <_>]>> <ref 0>>]>"""
    )
    seen: list[Seen] = []
    addresses: list[str] = []
    heard: list[tuple[str, str]] = []
    spied: list[Any] = []

    def chat() -> None:
        ds = dataspace()
        seen.append(watch(ds, Record("Present", [capture()])))
        seen.append(watch(ds, Record("Says", [capture(), capture()])))
        seen.append(watch(ds, Record("Secret", [capture()])))
        assert_(ds, Record("Secret", ["of the house"]))
        Broker(["tcp://127.0.0.1:0"], ds=ds, key=KEY, opened=addresses.extend)()

    def guest() -> None:
        @connect(addresses[0], show(guests))
        def on_connected(ds: Ref) -> None:
            assert_(ds, Record("Present", ["root"]))
            assert_(ds, Record("Secret", ["made up"]))
            during(ds, Record("Secret", [capture()]))(spied.append)
            during(ds, capture())(spied.append)

            @on_message(ds, Record("Says", [capture(), capture()]))
            def hear(who: str, what: str) -> None:
                heard.append((who, what))

            send(ds, "nonsense")
            send(ds, Record("Says", ["root", 5]))
            send(ds, Record("Says", ["root", "hello"]))
            send(ds, Record("Says", ["alice", "bye"]))

    async with open_system(chat):
        await until(lambda: addresses)
        async with open_system(guest):
            await until(lambda: len(heard) == 2)
            assert seen[0] == [("+", "alice")]
        await until(lambda: len(seen[0]) == 2)
    assert heard == [("alice", "hello"), ("alice", "bye")]
    assert seen[1] == [("!", "alice", "hello"), ("!", "alice", "bye")]
    assert seen[0] == [("+", "alice"), ("-", "alice")]
    assert seen[2] == [("+", "of the house")]
    assert spied == []


@pytest.mark.parametrize("replies", ["accepted", "ok"])
async def test_the_client_understands_both_answers(replies: Literal["accepted", "ok"]) -> None:
    """A server with the newer words is as good."""
    opened, got = trio.Event(), list[Ref]()
    config = Config(listen=(Listening(Address.parse("tcp://127.0.0.1:0"), replies=replies),))
    broker = Broker.configured(config, opened=lambda _: opened.set())
    async with open_system(broker):
        await opened.wait()
        async with open_system(lambda: connect(broker.addresses[0], DEFAULT)(got.append)):
            await until(lambda: got)


def test_a_question_that_is_handed_over(gate: Gate) -> None:
    """Who asked may give the question to another actor; it counts for who asked, and nothing is left of it."""
    handle = gate.ask(mint("room", KEY))

    def heir() -> None:
        prevent_inert_check()

    actor = gate.act(lambda: spawn(heir, assertions=[handle]))
    assert gate.answers == [FAILED]
    actor.root.enter(lambda: actor.root.stop(gate.system.turn))
    gate.system.drain()
    assert gate.answers == []
    assert not gate.keeper._askers
