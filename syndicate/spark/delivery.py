"""What a source knows, brought into a dataspace: each step is a turn, additions first, and each batch is awaited.

Contract: after :meth:`Delivery.batch` the dataspace has handled all of the batch; at most ``AHEAD`` rows, and a step
more, are on their way at any time; a step is one turn.

Source: ``docs/design/spark.md``, "The path of a batch".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import trio
from attrs import define, evolve, field, frozen

from syndicate.actors.bulk import BulkHandle, Division
from syndicate.actors.dataspace import bulks_of
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Handle, Turn, current
from syndicate.actors.verbs import SyncReply
from syndicate.garbage_collector import CollectorPause, seldom
from syndicate.index.bulk import Bulk
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.rows import Step
from syndicate.values.value import Frozen, Ref, Value, freeze

AHEAD: Final = 1000
"""How many rows may be on their way to the dataspace: a remote one would else cost a round trip for each step."""

SELDOM: Final = 200_000
"""New objects between two looks of the garbage collector, while a batch is on its way: what it makes lasts, so that to
look through it again and again, as it grows, costs a third of the time (measured)."""


RESTING: Final = 1_000_000
"""Rows for a dataspace of this process during which the collector rests altogether, some seconds: to look once through
what they make, all of which lasts, would cost a quarter of the time (measured).
"""


@frozen
class Move:
    """One step: the records that it brings and takes, how many rows it was, and the record of its clock; *bulk* are
    records that it brings as well, as columns.
    """

    adds: Sequence[Frozen]
    removes: Sequence[Frozen]
    size: int
    clock: Frozen | None = None
    bulk: Bulk | None = None
    division: Division | None = None


@define(eq=False)
class Delivery:
    """The assertions of a source in the dataspace *ds*."""

    ds: Ref
    facet: Facet
    handles: dict[Frozen, Handle] = field(factory=dict)
    clock: Handle | None = None
    shown: dict[type, Handle] = field(factory=dict)
    bulks: list[BulkHandle] = field(factory=list)

    def divided(self, move: Move) -> Move:
        """The step with its bulk divided by what observers look at, which costs too much for a turn: in any thread."""
        bulks = bulks_of(self.ds)
        if move.bulk is None:
            return move
        if bulks is None:
            move.bulk.forms()
            return move
        return evolve(move, division=Division.of(bulks, move.bulk))

    async def batch(self, moves: Sequence[Move]) -> None:
        """Take the steps, a turn each, and wait until the dataspace has handled them."""
        done = trio.Event()
        size = sum([move.size for move in moves])
        short = bulks_of(self.ds) is not None and AHEAD < size <= RESTING
        with CollectorPause(ageing=True) if short else seldom(SELDOM):
            self.facet.enter(lambda: self._take(iter(moves), 0, done))
            await done.wait()

    async def show(self, value: Value) -> None:
        """Assert *value* in the place of what was shown before of its class."""
        await self.in_turn(lambda: self.place(value))

    def place(self, value: Value) -> None:
        """Do so in the turn that is."""
        turn, before = current("spark_source"), self.shown.get(type(value))
        self.shown[type(value)] = turn.assert_form(self.facet, self.ds, freeze(value))
        if before is not None:
            turn.retract(before)

    async def in_turn(self, fn: Callable[[], object]) -> None:
        """Call *fn* in a turn of the actor, and wait until it has ended."""
        done = trio.Event()

        def run() -> None:
            fn()
            done.set()

        self.facet.enter(run)
        await done.wait()

    def _take(self, moves: Iterator[Move], ahead: int, done: trio.Event) -> None:
        """Take one step, in a turn; the next one in another turn."""
        move = next(moves, None)
        turn = current("spark_source")
        if move is not None:
            with CollectorPause():
                self.send(turn, move)
            ahead += move.size
            if ahead < AHEAD:
                self.facet.enter(lambda: self._take(moves, ahead, done))
                return
        then = (lambda: self.acknowledged(done)) if move is None else (lambda: self._take(moves, 0, done))
        turn.sync(self.ds, Ref(self.facet, SyncReply(self.ds, then)))

    def send(self, turn: Turn, move: Move) -> None:
        """Assert and retract what a step says."""
        facet, ds, handles, assert_form = self.facet, self.ds, self.handles, turn.assert_form
        for form in move.adds:
            handles[form] = assert_form(facet, ds, form)
        if move.bulk is not None:
            self._send_bulk(turn, move.bulk, move.division)
        if move.clock is not None and (self.clock is None or self.clock.form != move.clock):
            clock, self.clock = self.clock, assert_form(facet, ds, move.clock)
            if clock is not None:
                turn.retract(clock)
        if move.removes:
            bulks, self.bulks = self.bulks, []
            for bulk in bulks:
                bulk.take_apart(turn, handles)
        for form in move.removes:
            turn.retract(handles.pop(form))

    def _send_bulk(self, turn: Turn, bulk: Bulk, division: Division | None) -> None:
        """Assert many records, as one as far as nobody looks."""
        bulks = bulks_of(self.ds)
        if bulks is None:
            for form in bulk.forms():
                if form not in self.handles:
                    self.handles[form] = turn.assert_form(self.facet, self.ds, form)
            return
        if division is None or not division.counts:
            division = Division.of(bulks, bulk)
        self.bulks.append(BulkHandle.assert_(turn, self.facet, self.ds, division))

    def acknowledged(self, done: trio.Event) -> None:
        """The dataspace has handled the batch."""
        done.set()


def move_of(delivery: Delivery, standing: CurrentRows, step: Step) -> Move:
    """What a step of rows brings and takes, from *standing*, which it changes."""
    bulk = standing.take(step)
    if bulk is not None:
        return delivery.divided(Move([], [], len(bulk), step.clock, bulk))
    return Move(*standing.change(step), len(step.changes), step.clock)
