"""The laws catch what they are there for: errors that are planted in the broker, the durable dataspace, the client."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import trio

from relay.keep import FORGET
from relay.server.durable import Durable
from relay.server.journal import Journal
from relay.session.link import Link
from relay.session.session import Session
from relay.simulation import Scenario
from syndicate.actors.dataspace import Telling
from syndicate.actors.turn import Turn
from syndicate.index.event import RETRACT
from syndicate.index.trie import Captures, Handler, Notice
from syndicate.values.value import Assertion, Value
from tests.relay.simulation.systems import moving, stormy

if TYPE_CHECKING:
    from relay.session.backlog import Note

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledged_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """The journal says at once that all is on the disk."""
    patch.setattr(Journal, "settled", lambda journal, asker: True)


def lost_is_retracted(patch: pytest.MonkeyPatch) -> None:
    """A lost connection takes along what was to be kept."""
    real = Durable.retract

    def retract(self: Durable, handle: Assertion) -> None:
        real(self, handle)
        self.message((FORGET, handle.form))

    patch.setattr(Durable, "retract", retract)


def never_removed(patch: pytest.MonkeyPatch) -> None:
    """What was taken back stays in the journal."""
    patch.setattr(Journal, "forget", lambda journal, number: None)


def nothing_recovered(patch: pytest.MonkeyPatch) -> None:
    """What the disk held is not asserted again."""
    patch.setattr(Durable, "recover", lambda durable: None)


def a_ghost_is_recovered(patch: pytest.MonkeyPatch) -> None:
    """Something is there after a restart that nobody has kept."""
    real = Journal.open

    def opened(self: Journal, *, salvage: bool = False) -> None:
        real(self, salvage=salvage)
        if self.epoch > 1:
            self.recovered.append((10_000, "ghost"))

    patch.setattr(Journal, "open", opened)


def retractions_are_not_sent(patch: pytest.MonkeyPatch) -> None:
    """A session forgets to tell its peer that something has gone."""
    real = Session._encode

    def encode(self: Session, notes: list[Note]) -> None:
        real(self, [note for note in notes if note[0] != RETRACT or self._connects])

    patch.setattr(Session, "_encode", encode)


def ends_are_not_told(patch: pytest.MonkeyPatch) -> None:
    """A dataspace keeps to itself that something has gone."""

    def telling(turn: Turn) -> SimpleNamespace:
        real = Telling(turn).tell

        def tell(
            kind: int, handler: Handler, captures: Captures, values: tuple[Value, ...], notice: Notice | None
        ) -> None:
            if kind != RETRACT:
                real(kind, handler, captures, values, notice)

        return SimpleNamespace(tell=tell)

    patch.setattr("syndicate.actors.dataspace.Telling", telling)


def told_twice(patch: pytest.MonkeyPatch) -> None:
    """A dataspace tells an observer everything two times."""

    def telling(turn: Turn) -> SimpleNamespace:
        real = Telling(turn).tell

        def tell(
            kind: int, handler: Handler, captures: Captures, values: tuple[Value, ...], notice: Notice | None
        ) -> None:
            real(kind, handler, captures, values, notice)
            real(kind, handler, captures, values, notice)

        return SimpleNamespace(tell=tell)

    patch.setattr("syndicate.actors.dataspace.Telling", telling)


def sessions_outlive_their_peers(patch: pytest.MonkeyPatch) -> None:
    """What a lost peer had asserted is not retracted, nor is its facet stopped."""

    async def run(self: Link) -> None:
        self._watch()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, trio.CancelScope())
            await self._read()
            await trio.sleep_forever()

    patch.setattr(Link, "run", run)


PLANTED: list[tuple[Plant, Scenario, set[str]]] = [
    (acknowledged_before_the_commit, stormy, {"S2", "S3"}),
    (lost_is_retracted, moving, {"S2", "S3"}),
    (never_removed, moving, {"S2", "S3", "S4"}),
    (nothing_recovered, moving, {"S2", "S3"}),
    (a_ghost_is_recovered, stormy, {"S4"}),
    (retractions_are_not_sent, moving, {"S5"}),
    (ends_are_not_told, moving, {"S5"}),
    (told_twice, stormy, {"S5", "S6"}),
    (sessions_outlive_their_peers, moving, {"S1"}),
]


@pytest.mark.parametrize(("plant", "system", "laws"), PLANTED, ids=lambda each: getattr(each, "__name__", None))
def test_a_planted_error_breaks_a_law(
    plant: Plant, system: Scenario, laws: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 300 seeds, by a law that is about it."""
    plant(monkeypatch)
    for seed in range(300):
        violation = system.run(seed).violation
        if violation is not None and violation.kind == "law":
            print(plant.__name__, "is found by", violation.name, "with seed", seed)
            assert violation.name in laws, violation
            return
    pytest.fail("no law was broken")


def test_nothing_is_broken_as_it_is() -> None:
    """The same systems without a planted error; and with them every law had something to look at."""
    for seed in range(40):
        outcome = moving.run(seed)
        assert outcome.held, outcome
    assert any(moving.run(seed).at_rest for seed in range(5))
