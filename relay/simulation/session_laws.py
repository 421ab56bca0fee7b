"""The laws of sessions: what is said over connections, counted by one who sees both ends of each.

Part of :mod:`relay.simulation.laws`, whose text says what they are.  A session is noticed with the first event for one
of its proxies, or the first turn of its facet; its two ends are one connection because both call it the same.

What was said is compared without its references, which are others on the other side.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator

from attrs import define, field

from relay.protocol.observer import heard
from relay.session.link import Link
from relay.session.membrane import Crossing
from relay.session.proxy import Proxy
from relay.session.session import Session, session_of
from relay.simulation.process import Process, Stage
from relay.transport import CHUNK
from syndicate.actors.actor import Task
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Turn
from syndicate.index.event import MESSAGE
from syndicate.index.interest import INTEREST
from syndicate.values.text import unparse_form
from syndicate.values.value import TRUE, Frozen, HomeActor, Ref, freeze

ATTEMPTS = 24
STORM = 5.0
"""So many attempts of one life to connect within so many seconds are a storm.  A client makes two an attempt while it
does not know what its peer speaks; by chance alone that is less than one run in 10^8, for waits double.
"""


@define(eq=False)
class Direction:
    """One direction of a connection: what was said, which of it was heard, and who waits for an answer there."""

    said: list[tuple[int, Frozen]] = field(factory=list)
    """For each message the number of whom it is for, and its shape."""
    heard: int = 0
    """How many of them have arrived, or are known to be for nobody."""
    asked: dict[int, tuple[Ref, int]] = field(factory=dict)
    """Who waits for the answer to a sync, and how many had been said before."""


@define(eq=False)
class End:
    """One side's session."""

    process: Process
    session: Session
    out: Direction
    inward: Direction
    other: End | None = None

    @property
    def lives(self) -> bool:
        """Whether it goes on, in a process that does."""
        session = self.session
        return self.there and session.reason is None and session.facet.alive

    @property
    def there(self) -> bool:
        """Whether its process still lives the life that it was made in."""
        return self.process.life is not None and self.session.facet.actor.system is self.process.system


class Sessions:
    """Those of one world."""

    def __init__(self, world: Stage, broken: Callable[[str, str], None]) -> None:
        self.ends: dict[Session, End] = {}
        self._world = world
        self._broken = broken
        self._connections: dict[str, dict[bool, End]] = {}
        self._lines: dict[tuple[str, bool], Direction] = {}
        self._of: dict[HomeActor, list[End]] = {}
        self._facets: set[Facet] = set()
        self._waiting: dict[int, list[Direction]] = {}

    # ------------------------------------------------------------------------------------------------ each turn

    def enter(self, process: Process, facet: Facet) -> None:
        """Something is done in a facet, which may be that of a session."""
        if facet not in self._facets:
            self._facets.add(facet)
            for task in facet.tasks:
                link = getattr(task.fn, "__self__", None) if isinstance(task, Task) else None
                if isinstance(link, Link):
                    self._notice(process, link.session)

    def _notice(self, process: Process, session: Session) -> End:
        end = self.ends.get(session)
        if end is None:
            name, dials = session.connection, session.dials
            out, inward = (self._lines.setdefault((name, direction), Direction()) for direction in (dials, not dials))
            end = self.ends[session] = End(process, session, out, inward)
            ends = self._connections.setdefault(name, {})
            ends[dials] = end
            end.other = ends.get(not dials)
            if end.other is not None:
                end.other.other = end
            ends_here = [each for each in self._of.get(session.facet.actor, ()) if each.session.facet.alive]
            self._of[session.facet.actor] = [*ends_here, end]
        return end

    def say(self, process: Process, proxy: Proxy, kind: int, form: Frozen) -> None:
        """Something is said to a peer."""
        end = self._notice(process, session_of(proxy))
        if kind == MESSAGE:
            end.out.said.append((proxy.oid, shape(form)))
        elif type(form) is Ref:
            end.out.asked[id(form.entity)] = form, len(end.out.said)
            self._waiting.setdefault(id(form.entity), []).append(end.out)

    def answered(self, process: Process, ref: Ref, value: Frozen) -> None:
        """Somebody who may have asked for a sync is notified."""
        for line in self._waiting.pop(id(ref.entity), ()):
            entry = line.asked.pop(id(ref.entity), None)
            if (
                entry is not None
                and entry[0] is ref
                and (value if ref.raw else freeze(value)) == TRUE
                and line.heard < entry[1]
            ):
                text = f"the answer came with {line.heard} of {entry[1]} messages handled that were sent before"
                self._broken("S14", f"a sync of {process.name}: {text}")

    def look(self, turn: Turn) -> None:
        """A turn of an actor that has sessions is about to commit."""
        ends = self._of.get(turn.actor)
        if ends is None:
            return
        for end in ends:
            session = end.session
            if session.debt > session.limits.debt + CHUNK:
                text = (
                    f"{session.debt} bytes of {session.name} are read and not handled, where {session.limits.debt} may"
                )
                self._broken("S12", f"{end.process.name} reads on: {text}")
            elif session.burden > session.limits.outbox and session.reason is None and not session.exceeded:
                text = f"{session.burden} bytes wait for {session.name}, where {session.limits.outbox} may"
                self._broken("S12", f"{end.process.name} holds too much: {text}")
            if turn.pending and session.facet.alive:
                self._hear(end, turn)

    def _hear(self, end: End, turn: Turn) -> None:
        """Compare what a session hands on in a turn, in an order for each actor, with what was said to it."""
        exports: dict[int, int] | None = None
        groups: list[deque[tuple[int, Frozen]]] = []
        for events in turn.pending.values():
            group: deque[tuple[int, Frozen]] = deque()
            for kind, target, value, _ in events:
                if kind != MESSAGE or type(target) is not Ref or type(target.entity) is Proxy:
                    continue
                if exports is None:
                    exports = {id(each.ref): oid for oid, each in end.session.membrane.exports.items()}
                oid = exports.get(id(target))
                if oid is not None:
                    group.append((oid, shape(value if target.raw else freeze(value))))
            if group:
                groups.append(group)
        if groups:
            self._take(end, groups)

    def _take(self, end: End, groups: list[deque[tuple[int, Frozen]]]) -> None:
        """These messages have arrived; those before them that have not must have been for nobody."""
        line, session = end.inward, end.session
        while groups and line.heard < len(line.said):
            said = line.said[line.heard]
            group = next((group for group in groups if group[0] == said), None)
            if group is not None:
                group.popleft()
                groups = [each for each in groups if each]
            else:
                crossing = session.membrane.exports.get(said[0])
                if crossing is not None and heard(crossing.ref, said[1]):
                    break
            line.heard += 1
        if groups:
            self._unsaid(end, groups[0][0])

    def _unsaid(self, end: End, message: tuple[int, Frozen]) -> None:
        line, name = end.inward, end.session.connection
        what = f"{unparse_form(message[1], str)} to {end.process.name} over {name}"
        if message in line.said:
            self._broken("S7", f"{what} does not come in the order in which it was said, or twice")
        else:
            other = any(any(said == message[1] for _, said in each.said) for each in self._lines.values())
            self._broken("S8" if other else "S7", f"{what} was never said there" + ", but elsewhere" * other)

    # ------------------------------------------------------------------------------------------------ at rest

    def at_rest(self) -> None:
        """Check what holds when nothing is on its way."""
        for end in self.ends.values():
            if end.there:
                if end.lives:
                    self._at_ease(end)
                elif not end.session.facet.alive:
                    self._empty(end)
        self._no_storm()

    def _empty(self, end: End) -> None:
        """Nothing is held for a peer that is gone."""
        session = end.session
        held = {name: count for name, count in _holdings(session) if count}
        if held:
            what = ", ".join(f"{count} {name}" for name, count in held.items())
            self._broken("S11", f"{end.process.name} still has {what} of {session.connection}, which has ended")

    def _at_ease(self, end: End) -> None:
        session, other = end.session, end.other
        if other is None or not other.lives:
            return
        if not (session.asked or other.session.asked):  # else answers hold something in place, too
            counts = Counter(map(id, _pins(session)))
            for crossing in [*session.membrane.exports.values(), *session.membrane.imports.values()]:
                if crossing.count != counts[id(crossing)]:
                    text = f"is counted {crossing.count} times, and mentioned {counts[id(crossing)]} times"
                    self._broken("S11", f"{crossing.wire} of {session.connection} in {end.process.name} {text}")
                    return
        dead = [oid for oid in session.membrane.imports if oid not in other.session.membrane.exports]
        if dead:
            self._broken("S11", f"{end.process.name} has {dead[0]} of {session.connection}, where it is not exported")
        elif session.debt or session.busy:
            self._broken("S12", f"{session.debt} bytes of {session.connection} are never handled in {end.process.name}")
        elif session.backlog.entries or session.outbox.waiting:
            text = f"{session.backlog.entries} events and {session.outbox.waiting} bytes"
            self._broken("S11", f"{text} wait in {end.process.name} for {session.connection}, which takes them")

    def _no_storm(self) -> None:
        recent: dict[tuple[str, int], deque[float]] = {}
        for time, name, number in self._world.network.attempts:
            times = recent.setdefault((name, number), deque([-math.inf] * ATTEMPTS, ATTEMPTS))
            times.append(time)
            if time - times[0] <= STORM:
                self._broken("S15", f"{name} has dialled {ATTEMPTS} times in {time - times[0]:.2f} seconds")
                return


def _pins(session: Session) -> Iterator[Crossing]:
    """What holds references in place at both sides: once for each mention, and what is published for ever."""
    membrane = session.membrane
    published = (membrane.imports if session.dials else membrane.exports).get(0)
    if published is not None:
        yield published
    for _, assertion in session.assertions.oldest(len(session.assertions)):
        yield from assertion.pins
    for crossing in membrane.imports.values():
        if type(crossing.ref.entity) is Proxy:
            for _, pins, _ in crossing.ref.entity.sent.values():
                yield from pins


def _holdings(session: Session) -> Iterator[tuple[str, int]]:
    membrane = session.membrane
    yield "exports", len(membrane.exports)
    yield "imports", len(membrane.imports)
    yield "assertions", len(session.assertions)
    yield "events", session.backlog.entries
    yield "bytes", session.outbox.waiting
    yield "bytes of debt", session.debt


def shape(form: Frozen) -> Frozen:
    """A form without its references, and without what an interest becomes on its way."""
    if type(form) is tuple:
        return "interest" if form[0] is INTEREST else tuple([shape(each) for each in form])
    return "reference" if type(form) is Ref else form
