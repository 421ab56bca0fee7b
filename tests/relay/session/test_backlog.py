"""The backlog against a link that loses nothing: the same at every quiet point, in order, without gaps, and bounded."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.packets import YOURS, WireRef
from relay.session.backlog import ENTRY, Backlog, Note, pieces, weight
from syndicate import Symbol
from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from tests.strategies import examples

Form = tuple[str, int, int]


class Peer:
    """A reference of the peer's: all that a backlog knows of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: dict[int, tuple[int, Form]] = {}


class Model:
    """A publisher with places, each empty or with a value in it, and a peer that takes from the backlog."""

    def __init__(self) -> None:
        self.backlog = Backlog()
        self.peers = {name: Peer(name) for name in "ab"}
        self.places: dict[tuple[str, int], tuple[int, Form]] = {}
        self.count = self.asserted = self.notified = 0
        self.history: list[frozenset[Form]] = [frozenset()]
        self.messages: list[tuple[int, frozenset[Form]]] = []
        self.turn: list[Note] = []
        self.had: set[Form] = set()
        self.heard: list[int] = []
        self.seen = 0
        self.most = 0

    @property
    def forms(self) -> frozenset[Form]:
        """What is asserted."""
        return frozenset(form for _, form in self.places.values())

    def act(self, name: str, place: int, what: int) -> None:
        """One action of a turn: put something in a place (the new before the old), clear it, or say something."""
        self.count += 1
        peer = self.peers[name]
        if what == SAY:
            self.turn.append((MESSAGE, peer, self.count, None))
            self.messages.append((self.count, self.forms))
            return
        old = self.places.get((name, place))
        form = name, place, what
        if old is not None and old[1] == form:
            return
        self.places.pop((name, place), None)
        if what != CLEAR:
            self.asserted += 1
            self.turn.append((ASSERT, peer, form, self.count))
            self.places[name, place] = self.count, form
        if old is not None:
            self.turn.append((RETRACT, peer, None, old[0]))
        self.history.append(self.forms)
        self.most = max(self.most, len(self.places))

    def commit(self) -> None:
        """The turn ends."""
        self.backlog.put(self.turn)
        self.turn = []

    def take(self, most: int, size: int) -> None:
        """The peer takes some, and everything that it sees is as it may be."""
        notes = self.backlog.take(most, size)
        assert len(notes) <= most
        assert len(notes) <= 1 or sum(16 + (weight(note[2]) if note[0] != RETRACT else 0) for note in notes) <= size
        for kind, peer, value, handle in notes:
            if kind == ASSERT:
                self.notified += 1
                assert value not in self.had, "never twice"
                assert handle not in peer.sent
                self.had.add(value)
                peer.sent[handle] = 0, value
            elif kind == RETRACT:
                self.had.remove(peer.sent.pop(handle)[-1])  # it was there
            else:
                said, expected = self.messages[len(self.heard)]
                assert value == said, "messages keep their order"
                assert self.had == expected, "and come after all that was before them"
                self.heard.append(value)
            while not self.history[self.seen] <= self.had:  # it has at least all of a later and later state
                self.seen += 1

    def check(self) -> None:
        """What waits is bounded by what is there, and counted."""
        backlog = self.backlog
        to_come = len(self.messages) - len(self.heard)
        gone = len(self.had - self.forms)
        assert backlog.burden >= (16 + ENTRY) * to_come
        survivors = (backlog.burden - (16 + ENTRY) * to_come) // ENTRY
        assert backlog.entries <= len(self.forms) + gone + to_come + 2 * self.most + 2 * survivors
        assert backlog.size >= backlog.burden - ENTRY * survivors


SAY, CLEAR = 3, 4
actions = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from([0, 1, 2, 0, 1, 2, CLEAR, SAY])), max_size=6
)
steps = st.lists(st.one_of(actions, actions, st.tuples(st.integers(1, 6), st.integers(1, 200))), max_size=40)


@settings(max_examples=examples(400), deadline=None)
@given(steps)
def test_it_equals_a_link_that_loses_nothing(steps: list[Any]) -> None:
    """Whatever is done and taken, in whatever pieces: the peer never sees too little, and in the end what is
    asserted.
    """
    model = Model()
    for step in steps:
        if isinstance(step, list):
            for action in step:
                model.act(*action)
            model.commit()
        else:
            model.take(*step)
        model.check()
    while model.backlog.entries:
        model.take(3, 1000)
        model.check()
    assert model.had == model.forms
    assert len(model.heard) == len(model.messages)
    assert model.backlog.burden == model.backlog.size == 0
    assert not model.backlog._leaving
    assert model.notified + model.backlog.collapsed == model.asserted
    handles = {(name, handle) for name, peer in model.peers.items() for handle in peer.sent}
    assert handles == {(name, handle) for (name, _), (handle, _) in model.places.items()}


def test_what_comes_and_goes_costs_nothing() -> None:
    """However often a thousand values change while the peer takes nothing, what waits is a thousand of them."""
    backlog, ds, handles = Backlog(), Peer("ds"), itertools.count()

    def change(old: list[int]) -> list[int]:
        new = [next(handles) for _ in range(1000)]
        backlog.put([(ASSERT, ds, i, i) for i in new] + [(RETRACT, ds, None, i) for i in old])
        return new

    there = change([])
    for _ in range(50):
        there = change(there)
        assert backlog.entries == 1000
    assert backlog.collapsed == 50_000
    (note,) = backlog.take(1, 1000)  # now the segment is closed
    ds.sent[note[3]] = 0, note[2]
    for _ in range(50):
        there = change(there)
        assert backlog.entries == 2999
    assert backlog.collapsed == 99_000
    assert backlog.burden == 0


def test_what_goes_and_comes_again_costs_nothing() -> None:
    """A value that goes and comes again, and that the peer has, is not sent: that one serves for the new handle."""
    for leaving in (False, True):
        backlog, ds = Backlog(), Peer("ds")
        backlog.put([(ASSERT, ds, ("a", 0, 0), 1), (ASSERT, ds, ("b", 0, 0), 2)])
        assert len(backlog.take(1, 999)) == 1
        if not leaving:
            backlog.take(1, 999)
            ds.sent = {1: (0, ("a", 0, 0)), 2: (0, ("b", 0, 0))}
        for i in range(2, 10):
            backlog.put([(RETRACT, ds, None, i), (ASSERT, ds, ("b", 0, 0), i + 1)])
        assert backlog.entries == (1 if leaving else 0)
        if leaving:
            assert [[*note] for note in backlog.take(9, 999)] == [[ASSERT, ds, ("b", 0, 0), 10]]
        else:
            assert ds.sent.keys() == {1, 10}
        assert backlog.burden == 0


def test_removals_are_not_held_up() -> None:
    """Ever new assertions do not keep an old one from being retracted."""
    backlog, ds = Backlog(), Peer("ds")
    ds.sent[0] = 0, ("a", 0, 0)
    backlog.put([(ASSERT, ds, i, i) for i in range(1, 11)] + [(RETRACT, ds, None, 0)])
    for i in range(11):
        (note,) = backlog.take(1, 999)
        backlog.put([(ASSERT, ds, j, j) for j in range(100 + 10 * i, 110 + 10 * i)])
    assert note == (RETRACT, ds, None, 0)


def test_messages_are_a_burden() -> None:
    """Messages count until they are taken, and so does what they force to be kept."""
    backlog, ds = Backlog(), Peer("ds")
    backlog.put([(MESSAGE, ds, "x" * 1000, None)])
    assert backlog.burden == 1016 + ENTRY, "also what it costs beside its bytes"
    for i in range(10):
        backlog.put([(ASSERT, ds, "v", i), (MESSAGE, ds, "", None), (RETRACT, ds, None, i), (MESSAGE, ds, "", None)])
    assert backlog.burden == 1016 + 320 + (1 + 20 + 10) * ENTRY
    while backlog.take(1, 1):
        pass
    assert backlog.burden == 0
    backlog.put([(MESSAGE, ds, "x" * 1000, None)])
    backlog.clear()
    assert backlog.burden == backlog.entries == backlog.size == 0
    assert backlog.take(9, 999) == []


def test_weight_bounds_bytes() -> None:
    """What is heavy on the wire is heavy here."""
    assert weight(Symbol("x" * 100)) == weight(b"x" * 100) == weight("x" * 100) == 116
    assert weight(WireRef(YOURS, 1)) == weight(1.0) == weight(None) == 16
    assert weight(WireRef(YOURS, 1, (("x" * 100,),))) > 116


@given(st.lists(st.integers(0, 50).map(lambda n: ("x" * n,))), st.integers(1, 5), st.integers(1, 300))
def test_pieces_are_all_there_is(items: list[tuple[str]], most: int, size: int) -> None:
    """Together they are the whole, in order; each is within the bounds, or a single one."""
    results = [list(piece) for piece in pieces(items, most, size)]
    assert [item for piece in results for item in piece] == items
    assert all(len(piece) <= most for piece in results)
    assert all(len(piece) <= 1 or sum(map(weight, piece)) <= size for piece in results)
