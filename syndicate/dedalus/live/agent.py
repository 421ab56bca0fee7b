"""Agents: a program in a dataspace, each location an actor.

``spawn(Agent(program, "a"), ds)`` makes an actor of the location "a".  What asynchronous rules derive for other
locations is sent as messages in the dataspace, to whoever is there, in this process or behind the relay.  The same
program runs in one place by ``program.run``.

>>> from syndicate import capture, dataspace, spawn
>>> from syndicate.dedalus import Program
>>> from syndicate.testing import settled, watch
>>> program = Program.parse('''
...     say("a", "hi")@1;  friend("a", "b");
...     heard(F, X)@async :- say(A, X), friend(A, F);
...     persist[heard, 2];
... ''')
>>> def boot():
...     ds = dataspace()
...     seen.append(watch(ds, Fact("b", "heard", capture())))
...     for location in ("b", "a"):
...         spawn(Agent(program, location, outputs=["heard"]), ds)
>>> seen = []
>>> system = settled(boot); seen
[[('+', ('b', 'hi'))]]

**Time.**  Each agent has a clock of its own, which moves on when something waits, one timestep a turn, and is at rest
otherwise; it passes the time of sending of whatever arrives (:mod:`~syndicate.dedalus.live.location`).  With *every*, a
timestep passes each so many seconds: timers of a program are then timers.  A program that never rests needs that.
Timesteps that a process misses because it stands still have passed when it goes on, with what it had before.

**What comes in.**  A message is there in one timestep; an assertion that is an input, from the timestep after it was
made to the timestep in which it goes.  **What goes out**: each row of an output is asserted while it is there.

**What untrusted peers send** is refused, and the log says so, if it does not fit, or if the timestep in which it is
there first fails with it and not without, such as by arithmetic on text; so is the end of an assertion that a timestep
cannot do without.  What fails without it crashes the actor: what a program keeps is its own, so that it should look at
what it keeps of others when that comes.

**A location is a plain first column**: a value, or a variable, and nothing that is computed.  **An
instance begins afresh**: an agent that is started again is at its first timestep, and knows nothing of the one before.

**Event logs.**  A *recorded* agent keeps all that came and went, or hands it over as it happens, as to a
file (:class:`~syndicate.dedalus.live.event_log.writer_of`).  Of the event logs of all agents
:func:`~syndicate.dedalus.live.event_log.together` makes a run of the program in one place that equals what happened.

Contract: what is sent in a timestep goes out with its turn; what arrives in one turn and was not sent later than the
agent's time is there in one timestep.  Timesteps never overlap, and one turn has one at most; what peers send is
refused or there once; an instance that has stopped takes no more, and what it asserted is retracted.  State is kept as
a run keeps it, and without a record nothing of the past.

Source: Alvaro et al. 2011b, "Distribution Model"; ``docs/design/dedalus.md``, "Delivery" and "Event logs".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias, TypedDict

from syndicate.actors.arguments import expect_ref
from syndicate.actors.during import on_message
from syndicate.actors.timer import every as each
from syndicate.actors.timer import now
from syndicate.actors.verbs import on_stop, react
from syndicate.dedalus.ast import Row, Statement, Value, is_value, normal
from syndicate.dedalus.checks import restless
from syndicate.dedalus.explore.influence import NOTHING
from syndicate.dedalus.live.event_log import EventLog
from syndicate.dedalus.live.location import LAST, Local, Recording
from syndicate.dedalus.live.packet import Fact, Packet
from syndicate.dedalus.placement import SPECIFICATION, Placement
from syndicate.dedalus.timeline import Message
from syndicate.drawing import Drawing, Load, Reason
from syndicate.errors import FactError, PatternError, ProgramStopped, RowMisfit
from syndicate.flow.zset import ZSet
from syndicate.hosting import Asserted, Host, Output, Port, Routes, Sent, pattern_for, width
from syndicate.log import logger
from syndicate.values import value as wire
from syndicate.values.pattern import capture
from syndicate.values.value import Ref

_SLACK: Final = 1e-3
"""By so much of a timestep a clock may be early."""
BUSY: Final = 1000
"""After so many timesteps without rest the log says why that may be."""

Inputs: TypeAlias = Mapping[str, object] | Iterable[str]
"""Patterns, or record classes, by relation; names alone stand for ``<dedalus-fact location relation row>``."""
Maker: TypeAlias = Callable[..., wire.Value]
"""A record class, or a function of the columns of a row."""
Outputs: TypeAlias = Mapping[str, Maker] | Iterable[str]
"""Record classes, or functions of the columns, by relation; names alone stand for the same record."""


class AgentOptions(TypedDict, total=False):
    """What :class:`Agent` takes besides what it meets in a dataspace."""

    every: float | None
    start: int
    seed: int | None
    recorded: bool | Recording
    specification: Iterable[str]


class Checked(Protocol):
    """A program, as an agent needs it."""

    @property
    def statements(self) -> Sequence[Statement]:
        """Its statements, in order."""

    def accept(self, *, specification: Iterable[str] = ()) -> object:
        """Raise :class:`DedalusRejected` unless it can run."""


class Agent:
    """A location of a program: a boot function, for ``spawn``, ``react`` and ``connect``."""

    def __init__(
        self,
        program: Checked,
        location: Value,
        *,
        inputs: Inputs = (),
        outputs: Outputs = (),
        messages: Mapping[str, object] | None = None,
        every: float | None = None,
        start: int = 1,
        seed: int | None = None,
        recorded: bool | Recording = False,
        specification: Iterable[str] = SPECIFICATION,
    ) -> None:
        """The agent at *location*, with what it meets in a dataspace.

        Args:
            program: any whose locations can run apart.
            location: a value of first columns; of a program with subprograms, an agent's name.
            inputs: relations that have a row for each assertion that matches a pattern, as long as it is there.
            outputs: relations whose rows are asserted, while they are there.
            messages: relations that have a row, for one timestep, for each message that matches a pattern.
            every: seconds; a timestep passes each time, and only then.
            start: the first timestep; facts of earlier ones are left out, as where a location is started again.
            seed: that of ``choose``.
            recorded: whether the event log is kept; or a function, which is called with each entry when it happens, and
                nothing is kept.
            specification: relations that look at all locations, and are left out.

        A pattern captures the columns, in order, or all but the location; a record class stands for one that captures
        its fields, and has a field for each column as an output, or for each but the location.

        Raises :class:`DedalusRejected`, :class:`FactError`.
        """
        program.accept(specification=specification)
        self.placement = Placement(program.statements, specification)
        self.location = normal(location)
        self.every, self.start, self.seed, self.recorded = every, start, seed, recorded
        owners = sorted(set(self.placement.owner.values()))
        if owners and location not in owners:
            raise FactError(f"{location!r} is no agent of the program: there are {', '.join(owners)}")
        if not is_value(location):
            raise FactError(f"{location!r} is no location: a string or a number")
        if every is not None and not every > 0:
            raise FactError(f"every={every!r} is no time between timesteps: give seconds, more than 0")
        if type(start) is not int or not 0 < start <= LAST:
            raise FactError(f"start={start!r} is no first timestep: an integer, 1 or more")
        self.arities = self.placement.arities
        self.inputs = {name: self._pattern(name, one) for name, one in _named(inputs).items()}
        self.messages = {name: self._pattern(name, one) for name, one in (messages or {}).items()}
        self.outputs = {name: self._maker(name, one) for name, one in _named(outputs).items()}
        self.restless = restless([rule for rule in self.placement.at(self.location) if rule is not NOTHING])
        self.__name__ = f"agent {location}"

    def __call__(self, ds: Ref | None = None) -> Instance:
        """Begin in a new facet of the current one: in a dataspace, or when it joins the first; raises
        :class:`NotInTurn`.
        """
        return Instance(self, ds)

    def arity(self, name: str) -> int:
        """How many columns a relation has; raises :class:`FactError` if there is none."""
        if name not in self.arities:
            raise FactError(f"the program has no relation {name!r}; it has {', '.join(sorted(self.arities))}")
        return self.arities[name]

    def _pattern(self, name: str, written: object) -> tuple[wire.Value, Row | None]:
        """What is observed for a relation, and what comes before the captures in a row; None: a row is captured."""
        arity = self.arity(name)
        located = () if self.placement.owner else (self.location,)
        if written is None:
            return Fact(self.location, name, capture()), None
        try:
            pattern, captures = pattern_for(written, *(located if width(written, 0) == arity else ()))
        except PatternError as error:
            raise FactError(f"{name} needs a pattern, or a record class: {error}") from None
        if captures not in (arity, arity - len(located)):
            raise FactError(f"the pattern of {name} captures {captures} values, but there are {arity} columns")
        return pattern, located if captures < arity else ()

    def _maker(self, name: str, maker: object) -> Maker:
        arity = self.arity(name)
        if maker is None:
            return lambda *row: Fact(self.location, name, row)
        if not callable(maker):
            raise FactError(f"the output {name} takes a record class, or a function of {arity} columns, not {maker!r}")
        make: Maker = maker
        fields = width(make, arity)
        if fields == arity:
            return make
        if fields == arity - 1 and not self.placement.owner:
            return lambda location, *row: make(*row)
        raise FactError(f"the output {name} has {arity} columns, but {make.__name__} has {fields} fields")


def _named(ports: Mapping[str, object] | Iterable[str]) -> dict[str, object]:
    return dict(ports) if isinstance(ports, Mapping) else dict.fromkeys(ports)


class Instance(Host):
    """An agent at work, in a facet, from its first timestep on.

    It begins when it joins a dataspace first, and outlives connections: ``join(ds)`` lets it be reached at a dataspace
    as long as the facet that says so::

        def node():
            instance = Agent(program, "a")()

            @connect("tcp://127.0.0.1:8001")
            def connected(ds):
                instance.join(ds)

    What is sent to others while there is no connection is lost, as on any network.
    """

    port = "location"

    def __init__(self, agent: Agent, ds: Ref | None) -> None:
        """In the current facet."""
        super().__init__("Agent")
        self.agent = agent
        recorded = agent.recorded is True
        record = None if isinstance(agent.recorded, bool) else agent.recorded
        self.local = Local(
            agent.placement, agent.location, seed=agent.seed, start=agent.start, recorded=recorded, record=record
        )
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
        self.ticked = 0.0
        """When the last timestep passed, where they pass by the clock."""
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
        """Retract what is asserted where the facet that joined goes on."""
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

    def event_log(self) -> EventLog:
        """What happened so far; raises :class:`FactError` unless the agent is *recorded*."""
        if not self.local.recorded:
            raise FactError("this agent keeps no event log: make it with recorded=True")
        return self.local.event_log()

    def insert(self, relation: str, *rows: Iterable[Value]) -> None:
        """Let rows be there in the next timestep, as events; in a turn of the actor.  Raises :class:`RowMisfit`."""
        self.expect_inside("insert")
        for row in rows:
            self.local.arrive(relation, tuple(row))
        self.wake()

    def drawings(self) -> dict[str, Drawing]:
        """The rules of this location, with their points of order."""
        # Loaded when somebody looks: a command needs nothing of Bloom.
        from syndicate.bloom.insight.plot import drawing
        from syndicate.dedalus.plot import graph_of

        rules = [rule for rule in self.agent.placement.at(self.agent.location) if rule is not NOTHING]
        return {"rules": drawing(graph_of(rules, str(self.agent.location)), "Dedalus")}

    def loads(self, view: str) -> dict[str, Load]:
        """The rows of each relation."""
        return {name: Load(len(self.local.rows(name))) for name in self.agent.arities}

    def held(self, view: str, box: str) -> dict[str, Iterable[wire.Value]]:
        """The rows of the relations that a box stands for."""
        return {name: self.local.rows(name) for name in box.split(", ") if name in self.agent.arities}

    def showing(self) -> Iterable[Output]:
        """Of each dataspace that it has joined."""
        return self.shown

    def why(self, name: str, row: wire.Value) -> Reason:
        """By which rules, within the last timestep; what was there before it needs no reason."""
        return self.local.why(name, row)

    def join(self, ds: Ref, *locations: Value) -> None:
        """Be reached at a dataspace, with all inputs and outputs, as long as the current facet lives.

        Send there what is for some *locations*, or without any for all others; the last word counts.
        """
        expect_ref("join", ds)
        self.expect_inside("join")
        if not self.facet.alive:
            raise ProgramStopped(f"the agent at {self.agent.location!r} has stopped: a new one begins from nothing")
        self.routes.add(ds, map(normal, locations))
        on_message(ds, Packet(self.agent.location, capture(), capture(), capture()))(self._packet)
        for name, (pattern, before) in self.agent.messages.items():
            RowsSent(self, name, before).observe(ds, pattern)
        for name, (pattern, before) in self.agent.inputs.items():
            port = RowsAsserted(self, name, before)
            port.observe(ds, pattern)
            on_stop(port.forget)
        for name, make in self.agent.outputs.items():
            output = Output(name, lambda row, make=make: make(*row))  # type: ignore[misc]  # of this turn of the loop
            output.works = name in self.working
            output.begin(self.turn.facet, ds)
            rows = dict.fromkeys(self.local.rows(name), 1)
            output.prepare(rows)
            output.show(self.turn, rows)
            self.shown.append(output)
            on_stop(partial(self._leave, output))
        if not self.begun:
            self.begun = True
            if self.agent.every is not None:  # the clock makes the timesteps
                self.ticked = now()
                self.facet.enter(partial(each, self.agent.every, partial(self._pass_by, self.agent.every)))
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

    def _pass_by(self, every: float) -> None:
        """Let the timestep pass that is due by the clock.

        A process that stood still has missed some, which have passed without it: one is missed when half of it is over.
        """
        passed = max(1, int((now() - self.ticked) / every + _SLACK))
        self.ticked += passed * every
        missed = now() - self.ticked > every / 2
        self.local.stand_still(passed if missed else passed - 1)
        if not missed:
            self.changes = {}
            self._publish(self.local.pass_by())

    def _inspect(self, out: Mapping[str, ZSet]) -> None:
        """Make the values of what a timestep changes, before it has happened."""
        self.changes = changes = {}
        for output in self.shown:
            name = output.name
            if name in out:  # it has changed
                changes[name] = delta = dict(out[name].in_order())
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

    def _packet(self, relation: str, row: object, sent: object) -> None:
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


class _Rows(Port[Instance]):
    """Rows of a relation that somebody sends or asserts; those of other locations are not ours."""

    def __init__(self, instance: Instance, name: str, before: Row | None) -> None:
        """Of a relation; *before* is what comes before the captures, None if a row is captured."""
        super().__init__(instance, name)
        self.before = before
        self.located = bool(before or instance.agent.placement.owner)

    def row(self, captures: wire.Value) -> wire.Value:
        """The row that was captured, if it is one."""
        return captures[0] if self.before is None else (*self.before, *captures)

    def ours(self, captures: wire.Value) -> bool:
        """Whether it is no row of another location."""
        row = captures[0] if self.before is None else captures
        return self.located or type(row) is not tuple or row[:1] == (self.host.agent.location,)


class RowsSent(_Rows, Sent[Instance]):
    """Messages: rows of one timestep."""

    def message(self, value: wire.Value) -> None:
        """It is there in one timestep, if it is ours."""
        if self.ours(value):
            super().message(value)

    def take(self, captures: wire.Value, handle: Hashable) -> wire.Value:
        """Let it arrive."""
        row = self.row(captures)
        self.host.local.arrive(self.name, row)
        self.host.wake()
        return row


class RowsAsserted(_Rows, Asserted[Instance]):
    """Assertions: rows that are there while they are."""

    def assert_(self, value: wire.Value, handle: Hashable) -> None:
        """It is there from the next timestep on, if it is ours."""
        if self.ours(value):
            super().assert_(value, handle)

    def take(self, captures: wire.Value, handle: Hashable) -> Row:
        """Let it be there."""
        row = self.host.local.assert_(self.name, self.row(captures))
        self.host.wake()
        return row

    def leave(self, row: Row, handle: Hashable) -> None:
        """Let it be gone."""
        self.host.local.retract(self.name, row)
        self.host.wake()
