"""Lives of agents: one location of a program, stepping in the turns of an actor, in dataspaces that come and go.

Contract: timesteps never overlap, and one turn has one at most; what strangers send is refused or there once, and
never more than that; a life that has stopped takes no more, and what it showed is retracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from syndicate.actors.during import on_message
from syndicate.actors.timer import every
from syndicate.actors.turn import expect_ref
from syndicate.actors.verbs import on_stop, react
from syndicate.dedalus.ast import Row, Value, normal
from syndicate.dedalus.live.event_log import Diary
from syndicate.dedalus.live.local import Local
from syndicate.dedalus.live.packet import Packet
from syndicate.dedalus.timeline import Message
from syndicate.errors import FactError, ProgramStopped, RowMisfit
from syndicate.hosting.host import Host
from syndicate.hosting.outputs import Output
from syndicate.hosting.ports import Asserted, Port, Sent
from syndicate.hosting.routes import Routes
from syndicate.log import logger
from syndicate.values.pattern import capture
from syndicate.values.value import Ref

if TYPE_CHECKING:
    from syndicate.dedalus.live.agent import Agent


BUSY: Final = 1000
"""After so many timesteps without rest the log says why that may be."""


class Life(Host):
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

    port = "location"

    def __init__(self, agent: Agent, ds: Ref | None) -> None:
        """In the current facet."""
        super().__init__("Agent")
        self.agent = agent
        kept = agent.recorded is True
        record = None if isinstance(agent.recorded, bool) else agent.recorded
        self.local = Local(agent.placement, agent.location, seed=agent.seed, recorded=kept, record=record)
        self.local.blame = self._blame
        self.local.part.inspect = self._inspect
        self.routes = Routes()
        self.shown: list[Output] = []
        """The outputs, of each dataspace that it has joined."""
        self.changes: dict[str, dict[Row, int]] = {}
        """Of the outputs, by the timestep that is made."""
        self.working: set[str] = set()
        """The outputs of dataspaces that it has left whose functions have made values."""
        self.busy = 0
        self.begun = False
        self.paused = True
        self.watchers: list[Callable[[], object]] = []
        self.facet = react(partial(self._begin, ds))

    def _begin(self, ds: Ref | None) -> None:
        self.settle()
        self.facet.lasting = True  # messages may come at any time
        on_stop(self._end)
        if ds is not None:
            self.join(ds)

    def _end(self) -> None:
        """What is shown where the facet that joined goes on is shown no longer."""
        for output in self.shown:
            output.end(self.turn)

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
        self.expect_inside("insert")
        for row in rows:
            self.local.arrive(relation, tuple(row))
        self.wake()

    def join(self, ds: Ref, *locations: Value) -> None:
        """Be reached at a dataspace, with all inputs and outputs, as long as the current facet lives.

        Send there what is for some *locations*, or without any for all others; the last word counts.
        """
        expect_ref("join", ds)
        self.expect_inside("join")
        if not self.facet.alive:
            raise ProgramStopped(f"the agent at {self.agent.location!r} has stopped: a new one begins anew")
        self.routes.add(ds, map(normal, locations))
        on_message(ds, Packet(self.agent.location, capture(), capture(), capture()))(self._packet)
        for name, (pattern, before) in self.agent.messages.items():
            RowsSent(self, name, before).observe(ds, pattern)
        for name, (pattern, before) in self.agent.inputs.items():
            given = RowsAsserted(self, name, before)
            given.observe(ds, pattern)
            on_stop(given.forget)
        for name, make in self.agent.outputs.items():
            output = Output(name, lambda row, make=make: make(*row))  # type: ignore[misc]  # of this turn of the loop
            output.works = name in self.working
            output.begin(self.turn.facet, ds)
            now = dict.fromkeys(self.local.rows(name), 1)
            output.prepare(now)
            output.show(self.turn, now)
            self.shown.append(output)
            on_stop(partial(self._leave, output))
        if not self.begun:
            self.begun = True
            if self.agent.every is not None:  # the clock makes the timesteps
                self.facet.enter(partial(every, self.agent.every, self._pass_by))
            else:
                self.paused = False
                self.wake()

    def _leave(self, output: Output) -> None:
        self.shown.remove(output)
        if output.works:
            self.working.add(output.name)

    def on_timestep(self, fn: Callable[[], object]) -> None:
        """Call a function after each timestep, in its turn; ``changed`` says what is new then."""
        self.watchers.append(fn)

    def changed(self, relation: str) -> Iterable[tuple[Row, int]]:
        """What the last timestep changed: rows that are there now (1), or no longer (-1); raises :class:`FactError`."""
        self.agent.arity(relation)
        return self.local.changed(relation)

    # -------------------------------------------------------------------------------------------------------- steps

    def advance(self) -> None:
        """Make the timestep that is due, if any is."""
        time = self.local.due()
        if time is None:
            return
        self._publish(self.local.step(time))
        self.busy += 1
        if self.busy == BUSY and self.agent.restless:
            logger(actor=self.facet.actor.name).warning(
                f"this agent has not been at rest for {BUSY} timesteps: with every= time passes by the clock",
                location=str(self.agent.location),
                why=self.agent.restless[0].message,
            )

    def waits(self) -> bool:
        """Whether a timestep is due."""
        due = self.local.due() is not None
        if not due:
            self.busy = 0
        return due

    def _pass_by(self) -> None:
        self.changes = {}
        self._publish(self.local.pass_by())

    def _inspect(self, out: Mapping[str, Mapping[Row, int]]) -> None:
        """Make the values of what a timestep changes, before it has happened."""
        self.changes = changes = {}
        for output in self.shown:
            name = output.name
            if name in out:  # it has changed
                changes[name] = delta = dict(out[name].items())
                output.prepare(delta)

    def _publish(self, sent: Iterable[Message]) -> None:
        changes = self.changes
        for output in self.shown:
            if output.name in changes:
                output.show(self.turn, changes[output.name])
        for message in sent:
            to = self.agent.placement.of(message.relation, message.row)
            ds = self.routes.to(to)
            if ds is not None and to is not None:
                self.turn.send(ds, Packet(to, message.relation, message.row, message.sent))
        for watcher in self.watchers:
            watcher()

    # ------------------------------------------------------------------------------------------------ what comes in

    def _packet(self, relation: Any, row: Any, sent: Any) -> None:
        if not self.facet.alive:
            return
        try:
            self.local.arrive(relation, row, sent)
        except RowMisfit as error:
            self.refuse(relation, error)
        else:
            self.wake()

    def refuse(self, port: object, reason: object) -> None:
        """Log that something was refused, which says of what relation it was."""
        super().refuse(self.agent.location, reason)

    def _blame(self, text: str, error: Exception) -> None:
        self.blame("", text, error, "makes a timestep fail")


class _Rows(Port[Life]):
    """Rows of a relation that somebody sends or asserts; those of other locations are not ours."""

    def __init__(self, life: Life, name: str, before: Row | None) -> None:
        """Of a relation; *before* is what comes before the captures, None if a row is captured."""
        super().__init__(life, name)
        self.before = before
        self.located = bool(before or life.agent.placement.owner)

    def row(self, captures: Any) -> Any:
        """The row that was captured, if it is one."""
        return captures[0] if self.before is None else (*self.before, *captures)

    def ours(self, captures: Any) -> bool:
        """Whether it is no row of another location."""
        row = captures[0] if self.before is None else captures
        return self.located or type(row) is not tuple or row[:1] == (self.host.agent.location,)


class RowsSent(_Rows, Sent[Life]):
    """Messages: rows of one timestep."""

    def message(self, value: Any) -> None:
        """It is there in one timestep, if it is ours."""
        if self.ours(value):
            super().message(value)

    def take(self, captures: Any, handle: Any) -> Any:
        """Let it arrive."""
        row = self.row(captures)
        self.host.local.arrive(self.name, row)
        self.host.wake()
        return row


class RowsAsserted(_Rows, Asserted[Life]):
    """Assertions: rows that are there while they stand."""

    def assert_(self, value: Any, handle: Any) -> None:
        """It is there from the next timestep on, if it is ours."""
        if self.ours(value):
            super().assert_(value, handle)

    def take(self, captures: Any, handle: Any) -> Row:
        """Let it be there."""
        row = self.host.local.give(self.name, self.row(captures))
        self.host.wake()
        return row

    def leave(self, row: Row, handle: Any) -> None:
        """Let it be gone."""
        self.host.local.take(self.name, row)
        self.host.wake()
