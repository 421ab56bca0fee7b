"""Caveats and attenuated references: against an oracle, the ten pitfalls, and what a peer cannot do with them."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay import attenuate
from relay.capabilities.caveats import NODES, Attenuated, attenuated, compile_caveat, rewrite, written
from relay.capabilities.forwarding import compacted, innermost
from relay.protocol.limits import DEFAULT
from relay.protocol.packets import MINE, YOURS, A, M, R, TurnPacket, WireRef
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
    prevent_inert_check,
    ref,
    send,
    spawn,
    stop,
    sync,
)
from syndicate.actors.actor import actor_of
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import Handle
from syndicate.errors import CaveatError, TextError
from syndicate.index.interest import OBSERVE, compact
from syndicate.testing import Seen, settled, watch
from syndicate.values.pattern import encode
from syndicate.values.text import parse
from syndicate.values.value import MAX_DEPTH, SEQ, freeze, identical, thaw
from tests.inside import index_of, within
from tests.relay.caveat_oracle import Chance, Malformed, check, model, run
from tests.relay.session.test_session import EMPTY, Probe, crossings, send_all
from tests.relay.wire import Wire
from tests.strategies import REFS, examples, patterns, values
from tests.work import calls

ALICE = '<rewrite <rec Says [<_> <bind String>]> <rec Says [<lit "alice"> <ref 0>]>>'


def passed(value: Any, *caveats: str | Any) -> Any:
    """What passes the caveats; None if nothing."""
    forms = [freeze(parse(caveat) if isinstance(caveat, str) else caveat) for caveat in caveats]
    form = rewrite(forms, freeze(parse(value) if isinstance(value, str) else value))
    return None if form is None else thaw(form)


# ---------------------------------------------------------------------------------------------------- the oracle


def test_thousands_of_pairs_agree_with_the_oracle() -> None:
    """What a chain of caveats makes of a value is what the oracle makes of it."""
    chance = Chance(1, REFS)
    let_through = changed = 0
    for _ in range(7_000):
        like = chance.value()
        chain = [chance.caveat(like) for _ in range(chance.rng.choice((1, 1, 1, 2, 2, 3)))]
        forms = [freeze(caveat) for caveat in chain]
        models = [model(caveat) for caveat in chain]
        for i in range(10):
            value = like if i < 5 else chance.spoil(like) if i < 8 else chance.value()
            form = rewrite(forms, freeze(value))
            expected = run(models, model(value))
            assert (None if form is None else model(thaw(form))) == expected, (chain, value)
            let_through += form is not None
            changed += form is not None and expected != model(value)
    assert 14_000 < let_through < 56_000, "or else the test says little"
    assert changed > 3_500


def test_what_is_malformed_agrees_with_the_oracle() -> None:
    """A caveat with one part replaced is refused exactly where the oracle refuses it."""
    chance = Chance(2)
    refused = 0
    for _ in range(10_000):
        caveat = chance.spoil(chance.caveat(chance.value(2)))
        try:
            check(model(caveat))
            good = True
        except Malformed:
            good = False
        try:
            compile_caveat(freeze(caveat))
        except CaveatError:
            assert not good, caveat
            refused += 1
        else:
            assert good, caveat
    assert 1_000 < refused < 9_000


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2**32), values(refs=False, max_leaves=5))
def test_the_newest_runs_first(seed: int, value: Any) -> None:
    """Attenuating twice is to pass the newer caveats and then the older; what the newer drop stays dropped."""
    chance = Chance(seed)
    older, newer = ([chance.caveat(value) for _ in range(chance.rng.randrange(3))] for _ in range(2))
    once = rewrite([freeze(c) for c in newer], freeze(value))
    expected = None if once is None else rewrite([freeze(c) for c in older], once)
    assert rewrite([freeze(c) for c in older + newer], freeze(value)) == expected
    probe = Probe()

    def boot() -> None:
        target = ref(probe)
        first = attenuated(target, [freeze(c) for c in older])
        second = attenuated(first, [freeze(c) for c in newer])
        assert second is attenuated(target, [freeze(c) for c in older + newer])
        send(second, value)
        assert_(second, value)

    settled(boot)
    got = [] if expected is None else [thaw(expected)]
    assert [freeze(v) for v in probe.messages] == [freeze(v) for v in probe.values] == [freeze(v) for v in got]


# ---------------------------------------------------------------------------------------------------- the pitfalls


@pytest.mark.parametrize("n", ["-1", "1", "#t", "#f", "0.0", '"0"', "1000000000000000000000000"])
def test_an_index_that_is_none(n: str) -> None:
    """A template refers to a binding by a place that there is: no negative one, no boolean, no double."""
    with pytest.raises(CaveatError, match="counted from 0"):
        compile_caveat(freeze(parse(f"<rewrite <bind <_>> <ref {n}>>")))


LOOK_ALIKES = [0, 1, 0.0, -0.0, 1.0, float("nan"), True, False, "1", b"1", Symbol("1"), [1], [1.0], [True], {1}, {1: 1}]


@pytest.mark.parametrize("literal", LOOK_ALIKES)
def test_a_literal_is_one_value(literal: Any) -> None:
    """A ``lit`` knows 1, 1.0 and True apart, so that none passes for the other, or slips by a ``reject``."""
    only = Record("rewrite", [Record("bind", [Record("lit", [literal])]), Record("ref", [0])])
    never = Record("reject", [Record("lit", [literal])])
    for value in LOOK_ALIKES:
        assert (
            passed(Record("x", [value]), Record("reject", [Record("rec", [Symbol("x"), [Record("lit", [literal])]])]))
            is None
        ) == identical(value, literal)
        form = freeze(value)
        assert (rewrite([freeze(only)], form) == form) == identical(value, literal)
        assert (rewrite([freeze(never)], form) is None) == identical(value, literal)


def test_the_first_alternative_that_matches_decides() -> None:
    """Even if nothing comes of its template; and no alternatives are no way through."""
    first = "<or [<rewrite <bind Embedded> <attenuate <ref 0> []>> <rewrite <bind <_>> <ref 0>>]>"
    failing = "<or [<rewrite <bind <_>> <attenuate <ref 0> []>> <rewrite <bind <_>> <ref 0>>]>"
    assert passed("5", first) == 5
    assert passed("5", failing) is None
    assert passed("5", "<or []>") is None


def test_records_and_sequences_are_exact_and_dictionaries_open() -> None:
    """A caveat is no pattern of an ``Observe``: a further field is another record."""
    says = "<rewrite <bind <rec Says [<_> <_>]>> <ref 0>>"
    assert passed("<Says 1 2>", says) == Record("Says", [1, 2])
    assert passed("<Says 1>", says) is passed("<Says 1 2 3>", says) is passed('<"Says" 1 2>', says) is None
    pair = "<rewrite <bind <arr [<_> <_>]>> <ref 0>>"
    assert passed("[1 2]", pair) == (1, 2)
    assert passed("[1]", pair) is passed("[1 2 3]", pair) is passed("<arr 1 2>", pair) is passed("#{1 2}", pair) is None
    has_k = "<rewrite <dict {k: <bind <_>> a: <bind <_>>}> <arr [<ref 0> <ref 1>]>>"
    assert passed("{k: 1 a: 2 other: 3}", has_k) == (2, 1)  # bound in the order of the keys
    assert passed("{k: 1}", has_k) is None


def test_attenuate_needs_a_reference() -> None:
    """A template that attenuates what is no reference drops the value."""
    given_away = "<rewrite <rec give [<bind <_>>]> <rec give [<attenuate <ref 0> [<reject String>]>]>>"
    assert passed("<give 5>", given_away) is None
    got = passed(Record("give", [REFS[0]]), given_away)
    assert got.fields[0] is attenuate(REFS[0], "<reject String>")


@pytest.mark.parametrize(
    "caveat",
    ["<expires 2030>", "5", '"reject"', "reject", "[<reject <_>>]", '<"reject" <_>>', "{}", "#t", "<reject_ Boolean>"],
)
def test_what_is_not_understood_drops_everything(caveat: str) -> None:
    """Nothing passes an unknown caveat, wherever in the chain; who writes one down is notified that it is no caveat."""
    for value in (1, "a", [1], Record("x", [1]), {1: 2}, True):
        assert passed([value], caveat) is passed([value], "<reject String>", caveat, "<reject String>") is None
    with pytest.raises(CaveatError, match="not a caveat"):
        written(caveat)


def test_unknown_caveats_drop_whatever_comes() -> None:
    """Of 20,000 random values none passes a random caveat of no known kind."""
    chance = Chance(3)
    for _ in range(7_000):
        unknown = freeze(Record(chance.rng.choice(("expires", "and", "bind", "Or", "rejects")), [chance.value(1)]))
        assert rewrite([unknown], freeze(chance.value(2))) is None


@pytest.mark.parametrize(
    "caveat",
    [
        "<rewrite <_>>",
        "<rewrite <_> <lit 1> <lit 2>>",
        "<or>",
        "<or <rewrite <_> <lit 1>>>",
        "<or [<reject <_>>]>",
        "<or [<or []>]>",
        "<reject>",
        "<reject 5>",
        "<reject Set>",
        '<reject "String">',
        "<reject <__>>",
        "<reject <rec Says>>",
        "<reject <rec Says 5>>",
        "<reject <arr {}>>",
        "<reject <dict []>>",
        "<reject <and <_>>>",
        "<reject <not <bind <_>>>>",
        "<reject <not <not <bind <_>>>>>",
        "<reject <not <and [<not <_>> <bind <_>>]>>>",
        "<reject <and [<not <rec x [<bind <_>>]>>]>>",
        "<rewrite <_> <ref 0>>",
        "<rewrite <bind <_>> <bind <_>>>",
        "<rewrite <bind <_>> <arr <ref 0>>>",
        "<rewrite <bind <_>> <attenuate <ref 0>>>",
        "<rewrite <bind <_>> <attenuate <ref 0> <reject <_>>>>",
        "<rewrite <bind <_>> <attenuate <ref 0> [<rewrite <_> <ref 0>>]>>",
    ],
)
def test_malformed_caveats(caveat: str) -> None:
    """What has the label of a caveat must be one; errors are one line."""
    with pytest.raises(CaveatError) as raised:
        compile_caveat(freeze(parse(caveat)))
    assert "\n" not in str(raised.value)
    with pytest.raises(CaveatError):
        written(caveat)


def test_bindings_are_counted_in_the_order_of_the_text() -> None:
    """An outer binding comes before those inside it, and those in an ``and`` one after the other."""
    pattern = "<bind <and [<arr [<bind <_>> <_>]> <arr [<_> <bind SignedInteger>]>]>>"
    caveat = f"<rewrite {pattern} <arr [<ref 2> <ref 1> <ref 0>]>>"
    assert passed("[1 2]", caveat) == (2, 1, (1, 2))
    assert passed('[1 "2"]', caveat) is None


def test_bounds_on_caveats() -> None:
    """Too many, too large or too deep caveats are refused, also when they are added one by one."""
    deep: Any = Record("_")
    for _ in range(MAX_DEPTH - 2):
        deep = Record("not", [deep])
    wide = Record("reject", [Record("and", [[Record("_")] * NODES])])
    with pytest.raises(CaveatError, match="nested"):
        compile_caveat(freeze(wide))
    compile_caveat(freeze(Record("reject", [deep])))
    form = freeze(deep)
    for _ in range(3):
        form = (Symbol("not"), form)
    with pytest.raises(CaveatError, match="nested"):
        compile_caveat((Symbol("reject"), form))
    narrow = REFS[0]
    for i in range(DEFAULT.caveats):
        narrow = attenuate(narrow, f"<reject <lit {i}>>")
    with pytest.raises(CaveatError, match="at most 32"):
        attenuate(narrow, "<reject <lit 99>>")
    large = Record("reject", [Record("lit", [list(range(NODES // 4))])])
    with pytest.raises(CaveatError, match="nested"):
        attenuate(
            REFS[0],
            *[
                Record("or", [[Record("rewrite", [Record("lit", [[*range(i, i + NODES // 4)]]), Record("lit", [1])])]])
                for i in range(5)
            ],
            large,
        )


@pytest.mark.parametrize(
    "caveat",
    [
        "<rewrite <bind <_>> <arr [<ref 0> <ref 0> <ref 0>]>>",
        "<rewrite <bind <_>> <rec a [<rec a [<rec a [<rec a [<rec a [<rec a [<ref 0>]>]>]>]>]>]>>",
        "<rewrite <bind <_>> <dict {a: <ref 0> b: <ref 0>}>>",
    ],
)
def test_caveats_cannot_make_a_value_grow_without_bound(caveat: str) -> None:
    """A chain of caveats that each double a value, or wrap it, is a short text; what it makes is dropped
    before it is large, and soon.
    """
    assert calls(lambda: passed("[1]", *[caveat] * 32)) < 1_000_000
    assert passed("[1]", *[caveat] * 32) is None
    assert passed("[1]", *[caveat] * 4) is not None


def test_a_large_value_many_times() -> None:
    """Not even the second of two caveats may write a large value down a thousand times."""
    many = Record("rewrite", [Record("bind", [Record("_")]), Record("arr", [[Record("ref", [0])] * 1000])])
    assert calls(lambda: passed(list(range(30_000)), many)) < 200_000  # one for each number, and not a thousand
    assert passed(list(range(30_000)), many) is None
    assert passed([1], many) is not None


# ---------------------------------------------------------------------------------------------------- references


class Place:
    """A system with one facet to act in."""

    def __init__(self) -> None:
        self.system: System = settled(self._boot)

    def _boot(self) -> None:
        self.facet: Facet = current_facet()
        self.probe = Probe()
        self.target = ref(self.probe)
        self.ds = dataspace()
        prevent_inert_check()

    def act(self, fn: Any) -> Any:
        """Run *fn* in the facet, and all that it causes."""
        return within(self.system, self.facet, fn)


@pytest.fixture
def place() -> Place:
    """One."""
    return Place()


def test_the_same_caveats_are_the_same_reference(place: Place) -> None:
    """Equal mentions count as one in a dataspace; and nothing is remembered of what nobody has any more."""
    first, again = attenuate(place.target, ALICE), attenuate(place.target, parse(ALICE))
    assert first is again
    assert first is not attenuate(place.target, ALICE, ALICE)
    assert attenuate(place.target) is place.target
    seen = place.act(lambda: watch(place.ds, capture()))
    handles = place.act(partial(list, map(partial(assert_, place.ds), [["x", first], ["x", again]])))
    place.act(handles[0].retract)
    assert [event[0] for event in seen if isinstance(event[1], tuple)] == ["+"]
    del first, again, handles, seen
    gc.collect()
    before = narrowed_references()
    for i in range(1000):
        attenuate(REFS[1], f"<reject <lit {i}>>")
    gc.collect()
    assert narrowed_references() <= before


def narrowed_references() -> int:
    """How many there are, whoever has them."""
    return sum(1 for thing in gc.get_objects() if type(thing) is Attenuated)


def test_a_reference_goes_that_leads_to_what_was_made_of_it() -> None:
    """As a dataspace does in which its own narrowed reference is asserted, when its system was cut off."""

    class Holder(Entity):
        narrowed: Ref

    gc.collect()
    before = narrowed_references()
    for _ in range(3):
        holder = Holder()
        holder.narrowed = attenuate(Ref.unbound(holder), ALICE)
        again = attenuate(holder.narrowed, ALICE)
    del holder, again
    gc.collect()
    assert narrowed_references() == before


def test_what_is_dropped_is_never_retracted(place: Place) -> None:
    """A dropped assertion does not arrive, and neither does its end; what is rewritten is retracted as rewritten."""
    narrow = attenuate(place.target, ALICE)
    handles = place.act(lambda: [assert_(narrow, "no"), assert_(narrow, Record("Says", ["bob", "hi"]))])
    assert place.probe.values == [Record("Says", ["alice", "hi"])]
    place.act(handles[0].retract)
    assert len(place.probe.values) == 1
    place.act(handles[1].retract)
    assert place.probe.values == []
    assert place.facet.alive


def test_a_rewritten_assertion_in_a_dataspace(place: Place) -> None:
    """What a dataspace has got is what it is rid of: the rewritten value."""
    before = index_of(place.ds).statistics()
    narrow = attenuate(place.ds, ALICE, '<reject <rec Says [<_> <lit "no">]>>')
    seen = place.act(lambda: watch(place.ds, Record("Says", [capture(), capture()])))
    handles: list[Handle] = place.act(
        lambda: [assert_(narrow, Record("Says", [who, what])) for who in ("bob", "eve") for what in ("hi", "no")]
    )
    for handle in handles:
        place.act(handle.retract)
    assert seen == [("+", "alice", "hi"), ("-", "alice", "hi")]
    assert index_of(place.ds).statistics().values == before.values + 1  # the watcher's interest


def test_sync_passes(place: Place) -> None:
    """A sync says nothing, and is answered whatever the caveats."""
    done: list[int] = []
    place.act(lambda: sync(attenuate(place.target, "<reject <_>>"), lambda: done.append(1)))
    assert done == [1]


def test_only_what_came_through_can_be_taken_back(place: Place) -> None:
    """A narrowed reference does nothing to what was asserted through another."""
    narrow = attenuate(place.target, "<reject String>")
    other = attenuate(place.target, "<reject Boolean>")
    handles = place.act(lambda: [assert_(target, n) for n, target in enumerate((place.target, other))])
    for handle in handles:
        place.act(partial(narrow.entity.retract, handle))
    assert place.probe.values == [0, 1]


def test_no_turn_is_spent(place: Place) -> None:
    """What goes through an attenuated reference arrives in one batch with, and in the order of, what does not."""
    narrow = attenuate(place.target, ALICE)

    def talk() -> None:
        send(place.target, 1)
        send(narrow, Record("Says", ["x", "2"]))
        send(place.target, 3)

    place.facet.enter(talk)
    place.system.drain()
    assert place.probe.messages == [1, Record("Says", ["alice", "2"]), 3]


# ---------------------------------------------------------------------------------------------------- interest

WATCH_SAYS = "<or [<rewrite <bind <rec Observe [<rec group [<rec rec [<lit Says>]> <_>]> <_>]>> <ref 0>>]>"


def test_interest_is_seen_as_published(place: Place) -> None:
    """A caveat may allow one interest and drop another; the allowed one works as any other, and ends."""
    narrow = attenuate(place.ds, WATCH_SAYS)
    before = index_of(place.ds).statistics()
    facet = place.act(current_facet)
    seen: list[Seen] = []

    def boot() -> None:
        seen.append(watch(narrow, Record("Says", [capture(), ANY])))
        seen.append(watch(narrow, Record("Secret", [capture()])))
        seen.append(watch(narrow, capture()))
        prevent_inert_check()

    watcher = place.act(lambda: spawn(boot))
    place.act(partial(send_all, place.ds, [Record("Says", ["a", "b"]), Record("Secret", [1])]))
    assert seen == [[("!", "a")], [], []]
    watcher.root.enter(lambda: watcher.root.stop(place.system.turn))
    place.system.drain()
    assert index_of(place.ds).statistics() == before
    assert facet.alive


def test_a_rewritten_interest(place: Place) -> None:
    """A caveat may attenuate an observer: it is then notified only of what that lets pass."""
    quiet = (
        "<rewrite <rec Observe [<bind <_>> <bind Embedded>]>"
        ' <rec Observe [<ref 0> <attenuate <ref 1> [<reject <arr [<lit "secret">]>>]>]>>'
    )
    narrow = attenuate(place.ds, quiet)
    seen = place.act(lambda: watch(narrow, Record("Says", [capture()])))
    handles = place.act(lambda: [assert_(place.ds, Record("Says", [what])) for what in ("secret", "open")])
    for handle in handles:
        place.act(handle.retract)
    assert seen == [("+", "open"), ("-", "open")]


def test_a_dataspace_cannot_be_made_its_own_observer(place: Place) -> None:
    """A caveat that makes a value an interest of the dataspace in itself, or an observer of it attenuated, makes a
    plain assertion: else one packet could make it talk to itself without end.
    """
    doubling = "<rewrite <bind <arr [<_>]>> <arr [<arr [<ref 0> <ref 0>]>]>>"
    group = "<rec group [<lit <arr>> <dict {0: <lit <bind <_>>>}>]>"
    loop = f"<rewrite <arr [<lit loop> <bind Embedded>]> <rec Observe [{group} <ref 0>]>>"
    for observer in (place.ds, attenuate(place.ds, doubling)):
        place.act(partial(assert_, attenuate(place.ds, loop), [Symbol("loop"), observer]))
        place.act(partial(send, place.ds, ["begin"]))
        assert actor_of(place.ds).running
        assert index_of(place.ds).statistics().handlers == 0


# ---------------------------------------------------------------------------------------------------- across a session


@pytest.fixture
def probe() -> Probe:
    """What the right end publishes."""
    return Probe()


@pytest.fixture
def wire(probe: Probe) -> Wire:
    """A wire whose right end publishes the probe."""
    return Wire(lambda: ref(probe))


def inject(wire: Wire, *events: Any) -> None:
    """Let the left end have sent a turn that it never sent."""
    wire.right.inject(TurnPacket([(0, event) for event in events]))
    wire.system.drain()


SAYS = freeze(parse(ALICE))


def test_yours_with_caveats(wire: Wire, probe: Probe) -> None:
    """What the peer gives back narrowed is ours, narrowed; two mentions are one reference; it leaves nothing."""
    mention = WireRef(YOURS, 0, (SAYS,))
    inject(wire, (A, ("x", mention), 1), (A, ("y", mention), 2))
    first, second = (value[0] if isinstance(value, tuple) else value.fields[0] for value in probe.values)
    assert first is second
    assert innermost(first).entity is probe
    wire.act(wire.right, lambda: send(first, Record("Says", ["bob", "hi"])))
    wire.act(wire.right, lambda: send(first, "nonsense"))
    assert probe.messages == [Record("Says", ["alice", "hi"])]
    inject(wire, (R, 1), (R, 2))
    assert crossings(wire) == EMPTY


def test_attenuated_references_come_home_attenuated(wire: Wire, probe: Probe) -> None:
    """What went out narrowed comes back as that very reference, and narrower if the peer says so."""
    here, echo, seen = Probe(), list[Ref](), list[Any]()

    def offer() -> None:
        echo.append(attenuate(ref(here), ALICE))
        assert_(wire.remote, ["here", echo[0]])

    wire.act(wire.left, offer)
    theirs = probe.values[0][1]
    wire.act(wire.right, lambda: send(theirs, Record("Says", ["mallory", "1"])))
    wire.act(wire.right, lambda: send(theirs, 5))
    assert here.messages == [Record("Says", ["alice", "1"])]
    wire.act(wire.right, lambda: assert_(theirs, ["back", theirs]))
    assert here.values == [], "dropped by the caveat"

    class Back(Entity):
        def assert_(self, value: Any, handle: Any) -> None:
            seen.append(value[1])

    wire.act(wire.left, lambda: assert_(wire.remote, ["there", ref(Back())]))
    back = probe.values[1][1]
    wire.act(wire.right, lambda: assert_(back, ["back", theirs]))
    wire.act(wire.right, lambda: assert_(back, ["back", attenuate(theirs, "<reject <lit 1>>")]))
    assert seen[0] is echo[0]
    assert seen[1] is not echo[0]  # the right end keeps what it has narrowed, and forwards


def test_a_narrowed_proxy_is_exported_as_ours(wire: Wire, probe: Probe) -> None:
    """What we narrow of the peer's is not entrusted to the peer: it is a fresh export, and its caveats stay here."""
    narrow = attenuate(wire.remote, ALICE)
    wire.act(wire.left, lambda: assert_(wire.remote, ["take", narrow]))
    mentioned = [item for event in wire.left.events if event[0] is A for item in event[1] if type(item) is WireRef]
    assert mentioned == [WireRef(MINE, 0)]
    taken = probe.values[0][1]
    wire.act(wire.right, partial(send_all, taken, [Record("Says", ["eve", "hi"]), "nonsense"]))
    assert probe.messages == [Record("Says", ["alice", "hi"])]
    wire.act(wire.left, lambda: send(narrow, Record("Says", ["x", "local"])))
    assert probe.messages[1:] == [Record("Says", ["alice", "local"])]


def test_closure(wire: Wire, probe: Probe) -> None:
    """Who has a narrowed reference finds no way to the whole one: not by its number, nor by mentioning it."""
    hidden = Probe()
    wire.act(wire.right, lambda: assert_(Ref(wire.left.facet, Entity()), 0))
    wire.act(wire.left, lambda: assert_(wire.remote, ["give", attenuate(ref(hidden), ALICE)]))
    theirs = probe.values[0][1]
    for oid in range(10):  # whatever number the peer tries, only what was exported is found
        wire.left.inject(TurnPacket([(oid, (M, "forged"))]))
        wire.left.inject(TurnPacket([(oid, (A, ("forged", WireRef(YOURS, oid)), 100 + oid))]))
    wire.system.drain()
    wire.act(wire.right, lambda: send(theirs, Record("Says", ["x", "hi"])))
    assert hidden.values == []
    assert hidden.messages == [Record("Says", ["alice", "hi"])]


@pytest.mark.parametrize(
    "caveats",
    [
        [parse("<rewrite <_> <ref 0>>")],
        [parse("<reject 5>")],
        [parse("<reject <not <bind <_>>>>")],
        [parse("<or 5>")],
        [Record("reject", [Record("lit", [[0] * NODES])])],
    ],
)
def test_bad_caveats_end_the_session(wire: Wire, probe: Probe, caveats: list[Any]) -> None:
    """What a peer sends malformed is an error, and nothing of its packet happens."""
    inject(wire, (A, ("x", WireRef(YOURS, 0, tuple(map(freeze, caveats)))), 1), (M, "too"))
    assert probe.ever == probe.messages == []
    assert "caveats" in (wire.right.session.reason or "")


def test_unknown_caveats_of_a_peer_drop(wire: Wire, probe: Probe) -> None:
    """What we do not know is no error: it is a reference through which nothing passes."""
    inject(wire, (A, ("x", WireRef(YOURS, 0, (freeze(Record("expires", [2030])),))), 1))
    (value,) = probe.values
    dead = value[0] if isinstance(value, tuple) else value.fields[0]
    wire.act(wire.right, lambda: send(dead, 1))
    wire.act(wire.right, lambda: assert_(dead, 2))
    assert probe.messages == []
    assert len(probe.values) == 1
    assert wire.right.session.reason is None


def test_a_peer_cannot_pile_up_caveats(probe: Probe) -> None:
    """Caveats that a peer adds to a reference that is narrowed already end at the bound."""
    added = tuple([freeze(Record("reject", [Record("lit", [i])])) for i in range(20)])
    wire = Wire(lambda: attenuated(ref(probe), added))
    inject(wire, (A, ("x", WireRef(YOURS, 0, added[:12])), 1))
    assert wire.right.session.reason is None
    inject(wire, (A, ("x", WireRef(YOURS, 0, added[:13])), 2))
    assert "at most 32" in str(wire.right.session.reason)


@pytest.mark.parametrize("seed", range(30))
def test_a_peer_may_send_any_caveats(seed: int) -> None:
    """Whatever caveats a peer puts into its interests and facts, the dataspace and the others go on, and all that it
    did goes with it.
    """
    chance, wire = Chance(seed), Wire(dataspace)
    ds = wire.right.published
    assert ds is not None
    others = Probe()
    rng = chance.rng

    def bystander() -> None:
        on_message(ds, ["by", capture()])(others.ever.append)

    wire.act(wire.right, lambda: spawn(bystander))
    before = index_of(ds).statistics()
    for handle in range(1, 41):
        caveats = [chance.caveat(chance.value(2)) for _ in range(rng.randrange(3))]
        if rng.randrange(2):
            caveats.append(Record("rewrite", [Record("bind", [Record("_")]), chance.template(1)]))
        mention = WireRef(YOURS, 0, tuple([freeze(caveat) for caveat in caveats]))
        pattern = rng.choice([Record("bind", [Record("_")]), Record("_"), chance.value(1)])
        body = (
            (Symbol("Observe"), freeze(pattern), mention)
            if rng.randrange(2)
            else (SEQ, freeze(chance.value()), mention)
        )
        inject(wire, (A, body, handle), (M, body))
        if rng.randrange(3) == 0:
            inject(wire, (R, rng.randrange(1, handle + 1)))
    assert wire.right.session.reason is None
    wire.act(wire.right, lambda: spawn(lambda: send(ds, ["by", "still here"])))
    assert others.ever == ["still here"]
    assert actor_of(ds).running
    wire.act(wire.right, stop)
    assert index_of(ds).statistics() == before


def test_a_narrowed_dataspace_is_no_observer_either() -> None:
    """One packet cannot make a dataspace its own observer through caveats."""
    wire = Wire(dataspace)
    doubling = freeze(parse("<rewrite <bind <_>> <arr [<ref 0>]>>"))
    everything = freeze(Record("bind", [Record("_")]))
    inject(wire, (A, (Symbol("Observe"), everything, WireRef(YOURS, 0, (doubling,))), 1), (M, "go"))
    ds = wire.right.published
    assert ds is not None
    assert index_of(ds).statistics().handlers == 0
    assert actor_of(ds).running


def test_observing_through_a_narrowed_reference() -> None:
    """A whole conversation through a narrowed dataspace over a session: only the allowed interest works."""
    wire = Wire(lambda: attenuate(dataspace(), "<or [<rewrite <bind <rec Says [<_> <_>]>> <ref 0>> " + WATCH_SAYS[5:]))
    heard: list[Any] = []
    seen: list[Seen] = []

    def listen() -> None:
        during(wire.remote, Record("Says", [capture(str), capture()]))(lambda who, what: heard.append((who, what)))
        seen.append(watch(wire.remote, capture()))
        assert_(wire.remote, Record("Says", ["a", "b"]))
        assert_(wire.remote, Record("Steals", ["a", "b"]))

    wire.act(wire.left, listen)
    assert heard == [("a", "b")]
    assert seen == [[]]


# ---------------------------------------------------------------------------------------------------- for people


def test_what_people_may_write() -> None:
    """Text and values are caveats; mistakes are reported."""
    assert written(ALICE) == written(parse(ALICE)) == SAYS
    with pytest.raises(TextError):
        written("<reject")
    with pytest.raises(CaveatError, match="not a caveat"):
        attenuate(REFS[0], [ALICE])
    with pytest.raises(TypeError, match="needs a reference"):
        attenuate("ds", ALICE)  # type: ignore[arg-type]


def test_an_observer_may_be_narrowed(place: Place) -> None:
    """A narrowed observer is notified of only what its caveats let pass, and of the end of that."""
    seen = Probe()
    observer = place.act(lambda: attenuate(ref(seen), "<rewrite <arr [<bind SignedInteger>]> <arr [<ref 0>]>>"))
    place.act(lambda: assert_(place.ds, Observe(["n", capture()], observer)))
    handles = place.act(lambda: [assert_(place.ds, ["n", n]) for n in (1, "two", 3)])
    assert seen.values == [(1,), (3,)]
    for handle in handles:
        place.act(handle.retract)
    assert seen.values == []


def _long(pattern: Any) -> Any:
    """The long frozen form of an interest in a pattern."""
    return OBSERVE, freeze(encode(pattern)), REFS[0]


@given(patterns().map(_long))
def test_an_interest_in_its_compact_form_is_what_its_record_freezes_to(form: Any) -> None:
    """Of any pattern of the published schema."""
    assert compacted(form) == freeze(Record.labelled(OBSERVE, map(thaw, form[1:])))


@given(st.tuples(st.just(OBSERVE), values().map(freeze), st.sampled_from(REFS)))
def test_an_interest_that_is_none_is_data(form: Any) -> None:
    """As it came, whatever is in it: another one, for example, that is no reference either."""
    observer, (_, pattern, _) = form[2], form
    if compact(form) is None:
        for inner in (form, (SEQ, form), (SEQ, (OBSERVE, pattern))):
            for each in ((OBSERVE, inner, observer), (OBSERVE, inner), (OBSERVE, inner, 1)):
                assert compacted(each) == each
    else:
        assert compacted((OBSERVE, (SEQ, form), observer)) == (OBSERVE, (SEQ, form), observer)
