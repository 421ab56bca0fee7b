"""Mutants: errors planted in the relay, the durable dataspace and the journal, each in a system that is to show it.

``python -m tests.relay.simulation.mutants [--seeds N]`` looks, for each, for the first seed by which something is
broken, and prints a line of the table in ``docs/design/simulation.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest
import trio
from attrs import frozen

from relay.capabilities import forwarding, gatekeeper
from relay.client import _Arrivals
from relay.server.broker import Broker
from relay.server.durable import Durable
from relay.server.journal import Journal
from relay.session import packet_events
from relay.session.backlog import Addressee, Backlog
from relay.session.intake import Debt
from relay.session.link import Link
from relay.session.membrane import Crossing, Membrane
from relay.session.peer_assertions import PeerAssertion, PeerAssertions
from relay.session.proxy import Proxy
from relay.session.session import Session
from relay.simulation import Scenario
from syndicate.actors.actor import Task
from syndicate.actors.dataspace import Telling
from syndicate.actors.keep import FORGET
from syndicate.actors.turn import Handle, Turn
from syndicate.errors import JournalError
from syndicate.index.event import MESSAGE, RETRACT
from syndicate.index.trie import Captures, Handler, Notice
from syndicate.simulation.disk import SimulatedDisk
from syndicate.simulation.process import SimulatedOutside
from syndicate.storage.disk import Commit
from syndicate.values.value import Assertion, Frozen, Value
from tests.relay.simulation import crowd
from tests.relay.simulation.systems import moving, stormy

if TYPE_CHECKING:
    from relay.session.backlog import Note

Patch = pytest.MonkeyPatch


def acknowledged_before_the_commit(patch: Patch) -> None:
    """The journal says at once that all is on the disk."""
    patch.setattr(Journal, "settled", lambda journal, asker: True)


def lost_is_retracted(patch: Patch) -> None:
    """A lost connection takes along what was to be kept."""
    real = Durable.retract

    def retract(self: Durable, handle: Assertion) -> None:
        real(self, handle)
        self.message((FORGET, handle.form))

    patch.setattr(Durable, "retract", retract)


def never_removed(patch: Patch) -> None:
    """What was taken back stays in the journal."""
    patch.setattr(Journal, "forget", lambda journal, number: None)


def one_of_two_is_enough(patch: Patch) -> None:
    """A value that two assert is forgotten when one of them retracts it."""
    real = Durable.retract

    def retract(self: Durable, handle: Assertion) -> None:
        entry = self._asserted.get(handle)
        if entry is not None and not isinstance(entry, Handle):
            entry.count = 1
        real(self, handle)

    patch.setattr(Durable, "retract", retract)


def recovered_and_not_known(patch: Patch) -> None:
    """What is recovered stays asserted, and whoever takes it back is not understood."""
    real = Durable.recover

    def recover(self: Durable) -> None:
        real(self)
        self._entries.clear()

    patch.setattr(Durable, "recover", recover)


def a_commit_for_each_event(patch: Patch) -> None:
    """What a turn has changed is written in several commits."""
    real = Journal.take

    def take(self: Journal) -> Commit | None:
        rest = dict(list(self._added.items())[1:])
        for number in rest:
            del self._added[number]
        changes = real(self)
        if rest:
            self._added = rest
            self.turn += 1
            self._ready.set()
        return changes

    patch.setattr(Journal, "take", take)


def torn_is_whole(patch: Patch) -> None:
    """Half of a commit is on the disk, and is taken for all of it."""
    patch.setattr(SimulatedDisk, "has_end", lambda disk, torn: True)


def acknowledged_after_a_failed_commit(patch: Patch) -> None:
    """A commit that fails is passed over, and whoever waits for it gets to know that all is well."""
    real = Journal.commit

    def commit(self: Journal, changes: Commit) -> None:
        try:
            real(self, changes)
        except JournalError:
            self.error = None

    patch.setattr(Journal, "commit", commit)


def a_session_does_not_stop_its_facet(patch: Patch) -> None:
    """What ends a session leaves its facet as it is."""

    async def run(self: Link) -> None:
        self._begin_to_write()
        await self._read()
        await trio.sleep_forever()

    patch.setattr(Link, "run", run)


def removals_before_additions(patch: Patch) -> None:
    """Of what has waited for a slow peer, the removals come first."""
    real = Backlog._close

    def close(self: Backlog) -> None:
        before = len(self._closed)
        real(self)
        segment = [self._closed.pop() for _ in range(len(self._closed) - before)][::-1]
        self._closed.extend(sorted(segment, key=lambda note: note[0] != RETRACT))

    patch.setattr(Backlog, "_close", close)


def cancelled_in_a_closed_segment(patch: Patch) -> None:
    """An addition that is about to leave is taken out again."""
    real = Backlog._retract

    def retract(self: Backlog, proxy: Addressee, handle: Assertion) -> None:
        leaving = self._leaving.pop((proxy, handle), None)
        if leaving is None:
            real(self, proxy, handle)
        else:
            self._closed.remove(leaving)

    patch.setattr(Backlog, "_retract", retract)


def debt_is_never_repaid(patch: Patch) -> None:
    """What was read of a peer counts for ever."""
    patch.setattr(Debt, "done", lambda debt, size: None)


def read_on(patch: Patch) -> None:
    """A link reads on while what it has read is yet to be handled."""

    async def read(self: Link) -> None:
        while data := await self._stream.receive():
            self.session.debt += len(data)
            self.session.facet.enter(partial(self.session.feed, data))

    patch.setattr(Link, "_read", read)


def silence_is_not_noticed(patch: Patch) -> None:
    """Nobody looks whether a peer is heard."""
    patch.setattr(Link, "look", lambda link, now: now + 1e9)


def a_pin_is_forgotten(patch: Patch) -> None:
    """Of the references that are released, the last stays."""
    real = Membrane.release

    def release(self: Membrane, pins: list[Crossing]) -> None:
        real(self, [*pins][:-1])

    patch.setattr(Membrane, "release", release)


def a_pin_too_many(patch: Patch) -> None:
    """Of the references that are released, the last is so twice."""
    real = Membrane.release

    def release(self: Membrane, pins: list[Crossing]) -> None:
        pins = [*pins]
        real(self, [*pins, pins[-1]] if pins and pins[-1].count > 2 else pins)

    patch.setattr(Membrane, "release", release)


def everything_is_heard(patch: Patch) -> None:
    """A peer may tell a handler what that has not asked for."""
    patch.setattr(packet_events, "heard", lambda target, form: True)
    patch.setattr(forwarding, "heard", lambda target, form: True)


def withdrawn_without_an_end(patch: Patch) -> None:
    """What was given for a bind that is withdrawn goes on."""
    patch.setattr(gatekeeper._Revocable, "revoke", lambda revocable: None)


def the_lost_stay(patch: Patch) -> None:
    """What was made for a connection goes on when that is lost, beside what is made for the next."""
    patch.setattr(_Arrivals, "retract", lambda arrivals, handle: None)


def a_storm_of_dials(patch: Patch) -> None:
    """A client does not wait longer and longer."""
    real = SimulatedOutside.uniform
    patch.setattr(SimulatedOutside, "uniform", lambda outside, low, high: real(outside, low, min(high, 0.2)))


def the_last_goes_first(patch: Patch) -> None:
    """What a turn says goes out before the rest of an earlier one, which was too much for a packet."""
    real = Session._flush

    def flush(self: Session) -> None:
        waiting = len(self._turns)
        real(self)
        if waiting and len(self._turns) > waiting:
            self._turns.insert(0, self._turns.pop())

    patch.setattr(Session, "_flush", flush)


def ended_without_a_flush(patch: Patch) -> None:
    """A broker that ends does not wait for what is being written, and lets nobody wait for that either."""
    real = Broker.drain

    async def drain(self: Broker, seconds: float, flush: object = None) -> None:
        for peer in list(self.census.peers.values()):
            await peer.tap.close()
        await real(self, seconds)

    patch.setattr(Broker, "drain", drain)


def the_turn_is_not_restored(patch: Patch) -> None:
    """After a restart the journal counts its turns from the beginning."""
    real = Journal.open

    def opened(self: Journal, *, salvage: bool = False) -> None:
        real(self, salvage=salvage)
        self.turn = 0

    patch.setattr(Journal, "open", opened)


def a_number_twice(patch: Patch) -> None:
    """A peer may give two assertions one number."""
    real = PeerAssertions.add

    def add(self: PeerAssertions, number: int, form: Frozen, pins: list[Crossing], size: int) -> PeerAssertion | None:
        self._assertions.pop(number, None)
        return real(self, number, form, pins, size)

    patch.setattr(PeerAssertions, "add", add)


# ------------------------------------------------------------------------------------------------ of our own


def nothing_recovered(patch: Patch) -> None:
    """What the disk held is not asserted again."""
    patch.setattr(Durable, "recover", lambda durable: None)


def a_ghost_is_recovered(patch: Patch) -> None:
    """Something is there after a restart that nobody has kept."""
    real = Journal.open

    def opened(self: Journal, *, salvage: bool = False) -> None:
        real(self, salvage=salvage)
        if self.epoch > 1:
            self.recovered.append((10_000, "ghost"))

    patch.setattr(Journal, "open", opened)


def retractions_are_not_sent(patch: Patch) -> None:
    """A session forgets to tell its peer that something has gone."""
    real = Session._encode

    def encode(self: Session, notes: list[Note]) -> None:
        real(self, [note for note in notes if note[0] != RETRACT or self.dials])

    patch.setattr(Session, "_encode", encode)
    patch.setattr(Session, "_say_usual", lambda self, notes: False)  # no kernel does it instead


def _telling(tell: Callable[[Telling, int, tuple[object, ...]], None]) -> Callable[[Turn], SimpleNamespace]:
    def telling(turn: Turn) -> SimpleNamespace:
        real = Telling(turn)

        def notify(
            kind: int, handler: Handler, captures: Captures, values: tuple[Value, ...], notice: Notice | None
        ) -> None:
            tell(real, kind, (handler, captures, values, notice))

        return SimpleNamespace(tell=notify)

    return telling


def ends_are_not_sent(patch: Patch) -> None:
    """A dataspace keeps to itself that something has gone."""

    def tell(real: Telling, kind: int, rest: tuple[object, ...]) -> None:
        if kind != RETRACT:
            real.tell(kind, *rest)  # type: ignore[arg-type]  # as they came

    patch.setattr("syndicate.actors.dataspace.Telling", _telling(tell))


def notified_twice(patch: Patch) -> None:
    """A dataspace tells an observer everything two times."""

    def tell(real: Telling, kind: int, rest: tuple[object, ...]) -> None:
        for _ in range(2):
            real.tell(kind, *rest)  # type: ignore[arg-type]  # as they came

    patch.setattr("syndicate.actors.dataspace.Telling", _telling(tell))


def out_of_order(patch: Patch) -> None:
    """Messages of one turn go out in the opposite order."""
    real = Session._encode

    def encode(self: Session, notes: list[Note]) -> None:
        if len(notes) > 1 and all(note[0] == MESSAGE for note in notes):
            notes = [*notes][::-1]
        real(self, notes)

    patch.setattr(Session, "_encode", encode)


def sent_again_over_the_next(patch: Patch) -> None:
    """What a client said last before its connection was lost, it says again over the next one."""
    real = Session._encode
    lost: dict[str, tuple[Session, list[Note]]] = {}

    def encode(self: Session, notes: list[Note]) -> None:
        said = [note for note in notes if note[0] == MESSAGE and note[1].oid]
        before = lost.get(self.connection.partition(":")[0])
        if self.dials and said:
            again = []
            if before is not None and not before[0].facet.alive:
                again = [(MESSAGE, said[0][1], note[2], None) for note in before[1]]
            lost[self.connection.partition(":")[0]] = self, said
            notes = [*again, *notes]
        real(self, notes)

    patch.setattr(Session, "_encode", encode)


def synced_too_early(patch: Patch) -> None:
    """A sync is answered by who should pass it on."""
    patch.setattr(Proxy, "sync", lambda proxy, peer: Turn.send(proxy.session.facet.actor.system.turn, peer, True))


def one_hears_less(patch: Patch) -> None:
    """Of those who have a narrowed capability, one is not notified of what goes."""
    real = Session._encode

    def encode(self: Session, notes: list[Note]) -> None:
        narrowed = not self.dials and self.connection.startswith("t3:")
        real(self, [note for note in notes if not (narrowed and note[0] == RETRACT)])

    patch.setattr(Session, "_encode", encode)


def tasks_outlive_their_facets(patch: Patch) -> None:
    """Whoever stops a facet leaves its tasks alone."""
    patch.setattr(Task, "cancel", lambda task: None)


@frozen
class Mutant:
    """An error, the system that shows it, what is to break there, and the first seed by which it does."""

    plant: Callable[[Patch], None]
    system: Scenario
    breaks: frozenset[str]
    seed: int = 0
    number: int | None = None
    """Its place in the list that the note has, if it is not one of our own."""

    @property
    def name(self) -> str:
        """Its function's."""
        return self.plant.__name__


def _mutant(
    plant: Callable[[Patch], None], system: Scenario, breaks: str, seed: int, number: int | None = None
) -> Mutant:
    return Mutant(plant, system, frozenset(breaks.split("|")), seed, number)


MUTANTS: Final = [
    _mutant(acknowledged_before_the_commit, stormy, "S2|S3", 21, 1),
    _mutant(lost_is_retracted, moving, "S2|S3", 0, 2),
    _mutant(never_removed, moving, "S2|S3|S4", 1, 3),
    _mutant(a_commit_for_each_event, crowd.ending, "S2|S3", 6, 4),
    _mutant(acknowledged_after_a_failed_commit, crowd.ending, "S2|S3|crash", 1, 5),
    _mutant(a_session_does_not_stop_its_facet, moving, "S1", 0, 6),
    _mutant(removals_before_additions, crowd.behind, "a state is missed", 0, 7),
    _mutant(cancelled_in_a_closed_segment, crowd.behind, "a state is missed|S5|S6", 0, 8),
    _mutant(debt_is_never_repaid, crowd.flooding, "S12", 0, 9),
    _mutant(read_on, crowd.flooding, "S12", 0, 10),
    _mutant(silence_is_not_noticed, crowd.unheard, "S1", 0, 11),
    _mutant(a_pin_is_forgotten, crowd.talking, "S11", 0, 12),
    _mutant(a_pin_too_many, crowd.talking, "S11|S6", 0, 13),
    _mutant(everything_is_heard, crowd.intruding, "S10", 0, 14),
    _mutant(withdrawn_without_an_end, crowd.lending, "S10", 11, 15),
    _mutant(the_lost_stay, moving, "S5|S17|crash", 0, 16),
    _mutant(a_storm_of_dials, crowd.outage, "S15", 0, 17),
    _mutant(ended_without_a_flush, crowd.ending, "S13", 6, 18),
    _mutant(the_turn_is_not_restored, crowd.ending, "S3|crash", 0, 19),
    _mutant(a_number_twice, crowd.cheating, "S11|S6|S1", 0, 20),
    _mutant(nothing_recovered, moving, "S2|S3", 1),
    _mutant(one_of_two_is_enough, moving, "S2", 7),
    _mutant(recovered_and_not_known, crowd.ending, "S2", 0),
    _mutant(torn_is_whole, crowd.ending, "S2|S3", 58),
    _mutant(a_ghost_is_recovered, stormy, "S4", 1),
    _mutant(retractions_are_not_sent, moving, "S5", 0),
    _mutant(ends_are_not_sent, moving, "S5", 0),
    _mutant(notified_twice, stormy, "S5|S6", 0),
    _mutant(out_of_order, crowd.flooding, "S7", 0),
    _mutant(the_last_goes_first, crowd.crying, "S7", 0),
    _mutant(sent_again_over_the_next, crowd.talking, "S8", 0),
    _mutant(synced_too_early, crowd.talking, "S14", 0),
    _mutant(one_hears_less, crowd.talking, "S16", 24),
    _mutant(tasks_outlive_their_facets, crowd.talking, "S17", 0),
]


def broken_by(mutant: Mutant, seed: int) -> str | None:
    """What breaks with this seed: a law's name, a property's, or ``crash`` of some actor."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        violation = mutant.system.run(seed).violation
    return None if violation is None else "crash" if violation.kind == "crash" else violation.name


def main() -> None:
    """Search."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    missing = 0
    for mutant in MUTANTS:
        if arguments.names and mutant.name not in arguments.names:
            continue
        law, seed = None, 0
        for seed in range(arguments.seeds):
            law = broken_by(mutant, seed)
            if law is not None:
                break
        others = "" if law in mutant.breaks else f"  (not {', '.join(sorted(mutant.breaks))})"
        missing += bool(others)
        what = f"seed {seed}, {seed + 1} runs" if law else f"not found in {arguments.seeds} runs"
        print(f"| {mutant.number or ''} | {mutant.name} | {mutant.system.name} | {law} | {what} |{others}", flush=True)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
