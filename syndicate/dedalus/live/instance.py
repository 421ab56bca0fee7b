"""Lives of agents: one location of a program, stepping in the turns of an actor, in dataspaces that come and go.

Contract: timesteps never overlap, and one turn has one at most; what strangers send is refused or there once, and
never more than that; a life that has stopped takes no more, and what it showed is retracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from syndicate.actors.during import observe, on_message
from syndicate.actors.timer import every
from syndicate.actors.turn import Entity, Handle, Turn, current, expect_ref, here
from syndicate.actors.verbs import on_stop, react
from syndicate.dedalus.ast import Row, Value, normal
from syndicate.dedalus.live.event_log import Diary
from syndicate.dedalus.live.local import Local
from syndicate.dedalus.live.packet import Packet
from syndicate.dedalus.model import Message
from syndicate.errors import FactError, NotAValue, ProgramStopped, RowMisfit, WrongActor
from syndicate.hosting.refusals import Refusals
from syndicate.log import logger
from syndicate.values.pattern import capture
from syndicate.values.value import Frozen, Ref, freeze

if TYPE_CHECKING:
    from syndicate.dedalus.live.agent import Agent


BUSY: Final = 1000
"""After so many timesteps without rest the log says why that may be."""


class Life:
    """One life of an agent, in a facet, from its first timestep on.

    It begins when it joins a dataspace first, and outlives connections: ``join(ds)`` lets it be reached at a dataspace
    as long as the facet that says so::

        def node():
            life = Agent(program, "a")()

            @connect("tcp://127.0.0.1:8001")
            def connected(ds):
                life.join(ds)

    What is sent to others while there is no connection is lost, as on any network.
    """

    def __init__(self, agent: Agent, ds: Ref | None) -> None:
        """In the current facet."""
        self.agent = agent
        self.turn: Turn = current("Agent")
        kept = agent.recorded is True
        record = None if isinstance(agent.recorded, bool) else agent.recorded
        self.local = Local(agent.placement, agent.location, seed=agent.seed, recorded=kept, record=record)
        self.joined: list[_Joined] = []
        self.busy = 0
        self.refusals = Refusals(self.turn.actor.name)
        self.begun = False
        self.watchers: list[Callable[[], object]] = []
        self.facet = react(partial(self._begin, ds))

    def _begin(self, ds: Ref | None) -> None:
        self.facet = self.turn.facet
        self.facet.lasting = True  # messages may come at any time
        self.block = self.facet.block(self._step)
        on_stop(self._end)
        if ds is not None:
            self.join(ds)

    def _end(self) -> None:
        """What is shown where the facet that joined goes on is shown no longer."""
        for joined in self.joined:
            for handle in joined.handles.values():
                if handle.live:
                    self.turn.retract(handle)

    @property
    def time(self) -> int:
        """The last timestep; 0 before the first."""
        return self.local.time

    @property
    def resting(self) -> bool:
        """Whether it has begun, and nothing is due."""
        return self.begun and self.local.due() is None

    def rows(self, relation: str) -> list[Row]:
        """What is there now; raises :class:`FactError`."""
        self.agent.arity(relation)
        return self.local.rows(relation)

    def diary(self) -> Diary:
        """What happened so far; raises :class:`FactError` unless the agent is *recorded*."""
        if not self.local.recorded:
            raise FactError("this agent keeps no diary: make it with recorded=True")
        return self.local.diary()

    def insert(self, relation: str, *rows: Iterable[Value]) -> None:
        """Let rows be there in the next timestep, as events; in a turn of the actor.  Raises :class:`RowMisfit`."""
        self._expect_inside("insert")
        for row in rows:
            self.local.arrive(relation, tuple(row))
        self._wake()

    def join(self, ds: Ref, *locations: Value) -> None:
        """Be reached at a dataspace, with all inputs and outputs, as long as the current facet lives.

        Send there what is for some *locations*, or without any for all others; the last word counts.
        """
        expect_ref("join", ds)
        self._expect_inside("join")
        if not self.facet.alive:
            raise ProgramStopped(f"the agent at {self.agent.location!r} has stopped: a new one begins anew")
        joined = _Joined(self, ds, frozenset(map(normal, locations)))
        self.joined.append(joined)
        on_stop(joined.leave)
        on_message(ds, Packet(self.agent.location, capture(), capture(), capture()))(self._packet)
        for name, (pattern, before) in self.agent.messages.items():
            observe("Agent", ds, pattern, _Sent(self, name, before))
        for name, (pattern, before) in self.agent.inputs.items():
            given = _Given(self, name, before)
            observe("Agent", ds, pattern, given)
            on_stop(given.forget)
        for name in self.agent.outputs:
            joined.show(name, ((row, 1) for row in self.local.rows(name)))
        if not self.begun:
            self.begun = True
            if self.agent.every is not None:
                self.facet.enter(partial(every, self.agent.every, self._pass_by))
            self._wake()

    def on_timestep(self, fn: Callable[[], object]) -> None:
        """Call a function after each timestep, in its turn; ``changed`` says what is new then."""
        self.watchers.append(fn)

    def changed(self, relation: str) -> Iterable[tuple[Row, int]]:
        """What the last timestep changed: rows that are there now (1), or no longer (-1); raises :class:`FactError`."""
        self.agent.arity(relation)
        return self.local.changed(relation)

    def _expect_inside(self, what: str) -> None:
        turn = here.turn
        if turn is None or turn.actor is not self.facet.actor:
            raise WrongActor(f"{what}() is for turns of {self.facet.actor!r}, in which the agent lives")

    # -------------------------------------------------------------------------------------------------------- steps

    def _wake(self) -> None:
        if self.begun and self.agent.every is None:
            self.turn.damaged[self.block] = None

    def _step(self) -> None:
        """A timestep at the end of this turn, if one is due; the next is a turn of its own."""
        if self.local.due() is None:
            return
        self._tell(self.local.step())
        if self.local.due() is None:
            self.busy = 0
            return
        self.facet.enter(self._wake)
        self.busy += 1
        if self.busy == BUSY and self.agent.restless:
            logger(actor=self.facet.actor.name).warning(
                f"this agent has not been at rest for {BUSY} timesteps: with every= time passes by the clock",
                location=str(self.agent.location),
                why=self.agent.restless[0].message,
            )

    def _pass_by(self) -> None:
        self._tell(self.local.pass_by())

    def _tell(self, sent: Iterable[Message]) -> None:
        for why in self.local.refused:
            self._refuse(why)
        self.local.refused.clear()
        for joined in self.joined:
            for name in self.agent.outputs:
                joined.show(name, self.local.changed(name))
        for message in sent:
            to = self.agent.placement.of(message.relation, message.row)
            way = self._way(to)
            if way is not None and to is not None:
                self.turn.send(way, Packet(to, message.relation, message.row, message.sent))
        for watcher in self.watchers:
            watcher()

    def _way(self, to: Value | None) -> Ref | None:
        named = [one.ds for one in self.joined if to in one.locations]
        rest = [one.ds for one in self.joined if not one.locations]
        ways = named or rest
        return ways[-1] if ways else None

    # ------------------------------------------------------------------------------------------------ what comes in

    def _packet(self, relation: Any, row: Any, sent: Any) -> None:
        if not self.facet.alive:
            return
        try:
            self.local.arrive(relation, row, sent)
        except RowMisfit as error:
            self._refuse(error)
        else:
            self._wake()

    def _refuse(self, why: object) -> None:
        self.refusals.log(why, location=str(self.agent.location))


class _Port(Entity):
    """Rows of a relation that somebody sends or asserts; those of other locations are not ours."""

    def __init__(self, life: Life, name: str, before: Row | None) -> None:
        self.life, self.name, self.before = life, name, before

    def row(self, value: Any) -> Any:
        return value[0] if self.before is None else (*self.before, *value)

    def ours(self, row: Any) -> bool:
        owned = self.life.agent.placement.owner
        return bool(owned) or type(row) is not tuple or row[:1] == (self.life.agent.location,)


class _Sent(_Port):
    """Messages: rows of one timestep."""

    def message(self, value: Any) -> None:
        row = self.row(value)
        if self.ours(row):
            self.life._packet(self.name, row, 0)


class _Given(_Port):
    """Assertions: rows that are there while they stand."""

    def __init__(self, life: Life, name: str, before: Row | None) -> None:
        super().__init__(life, name, before)
        self.known: dict[Any, Row] = {}

    def assert_(self, value: Any, handle: Any) -> None:
        life, row = self.life, self.row(value)
        if not self.ours(row) or not life.facet.alive:
            return
        try:
            self.known[handle] = life.local.give(self.name, row)
        except RowMisfit as error:
            life._refuse(error)
        else:
            life._wake()

    def retract(self, handle: Any) -> None:
        row = self.known.pop(handle, None)
        if row is not None and self.life.facet.alive:
            self.life.local.take(self.name, row)
            self.life._wake()

    def forget(self) -> None:
        """The dataspace is gone, and with it all that was asserted there."""
        for handle in list(self.known):
            self.retract(handle)


class _Joined:
    """A dataspace that an agent has joined, and what it shows there."""

    def __init__(self, life: Life, ds: Ref, locations: frozenset[Value]) -> None:
        self.life, self.ds, self.locations = life, ds, locations
        self.facet = life.turn.facet
        self.handles: dict[tuple[str, Row], Handle] = {}

    def leave(self) -> None:
        self.life.joined.remove(self)

    def show(self, name: str, changed: Iterable[tuple[Row, int]]) -> None:
        """Assert what is new, and retract what is gone."""
        for row, weight in changed:
            if weight > 0 and (name, row) not in self.handles:
                self.handles[name, row] = self.life.turn.assert_form(self.facet, self.ds, self.form(name, row))
            elif weight < 0 and (name, row) in self.handles:
                self.life.turn.retract(self.handles.pop((name, row)))

    def form(self, name: str, row: Row) -> Frozen:
        """The frozen form of a row's value; raises :class:`NotAValue`."""
        try:
            return freeze(self.life.agent.outputs[name](*row))
        except NotAValue as error:
            raise NotAValue(f"no value can be made of {row!r} of {name}: {error}") from None
