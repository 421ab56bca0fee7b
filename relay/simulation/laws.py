"""The laws of dataspaces, checked in each run without being asked, by one who sees everything and is no peer.

What each dataspace of a broker handles is counted here a second time, and what each observer is notified of is kept.

=====  ====================================================================================================
S1     at rest: whatever is asserted is so by a facet that lives; no session remains of a process that died,
       nor, at any time, one over which nothing was heard for twice the time that its limits allow
S2     what was acknowledged by a sync through the durable dataspace is there after each restart, and what
       was acknowledged to be gone is not; at rest, what is to be kept is asserted
S3     what is recovered is the state after some turn, so that no turn is there by half (S9); and nothing is
       recovered that was asserted through the volatile dataspace alone (S4)
S5     at rest: what each observer was notified of is what is asserted and matches its pattern, there and in the clients
S6     for each observer: no retraction without its assertion, and no assertion twice
S7     the messages of a connection arrive in the order in which they were said, none twice, and none is left
       out unless nobody is there for it
S8     no message arrives over a connection that was said over another one
S10    no handler is notified of what it has not asked for, and nothing comes through a capability after it was
       withdrawn
S11    at rest: each reference that both sides of a connection know counts what mentions it, no more and no
       less, each import is exported; nothing waits for a peer that takes it, nothing is held for one that has gone
S12    what of a peer is read and not handled, and what waits for it, stays below the limits, and is done in the end
S13    a broker that ends in order does so in its time; who had asked whether something is kept is answered
S14    when a sync is answered, all messages that were sent there before have arrived
S15    nobody dials 24 times in five seconds
S16    at rest: observers with one pattern at one reference have one view, whatever they speak
S17    no task runs on when its facet has ended
=====  ====================================================================================================

Limits of this: caveats are taken as :mod:`relay.capabilities.caveats` reads them; that turns do not run at once follows
from there being one thread; how long a peer delays others (of S12) is a matter of real time, which does not pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from relay.capabilities.forwarding import Passage
from relay.capabilities.gatekeeper import BindSpace
from relay.protocol.observer import Observer, heard
from relay.server.durable import Durable
from relay.session.proxy import Proxy
from relay.session.session import Session, session_of
from relay.simulation.process import BrokerProcess, Process, Stage
from relay.simulation.session_laws import Sessions, shape
from relay.simulation.view import View
from syndicate.actors.actor import Task, actor_of
from syndicate.actors.facet import Facet
from syndicate.actors.keep import FORGET, KEEP, VOLATILE
from syndicate.actors.turn import Handle, Turn
from syndicate.index.bag import Bag
from syndicate.index.event import ASSERT, ENTER, MESSAGE, RETRACT, SYNC, Event
from syndicate.index.interest import INTEREST
from syndicate.index.skeleton import synthesise
from syndicate.values.pattern import match
from syndicate.values.text import unparse_form
from syndicate.values.value import SEQ, Assertion, Frozen, Ref, Value, freeze, thaw

_SLACK: Final = 1.5
"""Seconds that the last words of a session may take beyond the time that a drain has."""


@define(eq=False)
class CurrentAssertions:
    """What the dataspace of one run of a broker holds, counted by us."""

    forms: Bag = field(factory=Bag)
    values: list[Value] = field(factory=list)
    """The forms as values, made again at rest, where each is compared with each interest."""


@define(eq=False)
class DurableAssertions:
    """What a durable dataspace should keep: the state after each turn, by what it changed."""

    forms: dict[Frozen, None] = field(factory=dict)
    owners: dict[Assertion, Frozen] = field(factory=dict)
    changes: list[tuple[Frozen, bool]] = field(factory=list)
    """A form, and whether it came."""
    turns: list[int] = field(factory=list)
    """For each turn that changed something, how many changes there were after it."""
    first: frozenset[Frozen] = frozenset()
    asked: dict[int, tuple[Ref, int]] = field(factory=dict)
    """Who waits for a sync, and how many changes there were when it asked."""
    acknowledged: int = 0
    """How many of the changes were acknowledged."""

    def states(self) -> Iterator[tuple[int, set[Frozen]]]:
        """The state after each turn, with the number of changes up to it."""
        state, at = set(self.first), 0
        yield 0, state
        for end in self.turns:
            for form, came in self.changes[at:end]:
                if came:
                    state.add(form)
                else:
                    state.discard(form)
            at = end
            yield end, state

    def set(self, form: Frozen, there: bool) -> None:
        """Note a change, if it is one."""
        if (form in self.forms) is not there:
            if there:
                self.forms[form] = None
            else:
                del self.forms[form]
            self.changes.append((form, there))


class Laws:
    """Those of one world."""

    def __init__(self, world: Stage) -> None:
        self.views: list[View] = []
        self._world = world
        self._current: dict[BrokerProcess, CurrentAssertions] = {}
        self._durable: dict[BrokerProcess, DurableAssertions] = {}
        self._passed: dict[Assertion, tuple[Handle, list[Passage]]] = {}
        self._withdrawn: dict[int, tuple[Passage, float]] = {}
        self.sessions = Sessions(world, self._broken)
        self._notified: dict[int, tuple[Ref, dict[Assertion, Frozen]]] = {}

    # ------------------------------------------------------------------------------------------------ recovery

    def begin(self, broker: BrokerProcess, recovered: Sequence[Frozen] | None) -> None:
        """A life of a broker begins, with what its disk held."""
        self._current[broker] = CurrentAssertions()
        for view in self.views:
            if view.broker is broker:
                view.clear()
        if recovered is not None:
            before = self._durable.get(broker)
            if before is not None:
                self._compare(broker, before, set(recovered))
            durable = self._durable[broker] = DurableAssertions()
            durable.forms = dict.fromkeys(recovered)
            durable.first = frozenset(recovered)

    def _compare(self, broker: BrokerProcess, durable: DurableAssertions, recovered: set[Frozen]) -> None:
        whole = any(state == recovered for at, state in durable.states() if at >= durable.acknowledged)
        if whole:
            return
        last: dict[Frozen, bool] = dict.fromkeys(durable.first, True)
        last.update(dict(durable.changes[: durable.acknowledged]))
        later = {form for form, _ in durable.changes[durable.acknowledged :]}
        for form, there in last.items():
            if form not in later and (form in recovered) is not there:
                what = "is lost" if there else "is back"
                self._broken("S2", f"{unparse_form(form)} {what} after a restart of {broker.name}: it was acknowledged")
                return
        strange = [form for form in recovered if form not in durable.first and form not in dict(durable.changes)]
        if strange:
            self._broken("S4", f"{unparse_form(strange[0])} is there after a restart of {broker.name}: it was volatile")
        else:
            self._broken("S3", f"what {broker.name} has recovered is the state after no turn since then")

    # ------------------------------------------------------------------------------------------------ each turn

    def look(self, process: Process, turn: Turn, events: list[Event]) -> None:
        """A turn has been taken, and is about to commit."""
        broker = process if isinstance(process, BrokerProcess) else None
        main = broker.ds.entity if broker is not None and broker.ds is not None else None
        durable = None
        sessions = self.sessions
        if not events:  # in the midst of a turn in which others speak
            sessions.enter(process, turn.facet)
        for kind, target, value, handle in events:
            if kind == ENTER:
                if isinstance(target, Facet):
                    self._enter(process, target, getattr(value, "__self__", None))
                continue
            for ref in target if isinstance(target, tuple) else (target,):
                if type(ref) is not Ref:
                    continue
                entity = ref.entity
                if entity is main and broker is not None:
                    self._hear(broker, kind, value, handle)
                elif type(entity) is Durable and broker is not None:
                    durable = self._durable[broker]
                    self._keep(durable, kind, value, handle)
                if kind < RETRACT:
                    self._confine(process, ref, kind, value)
                elif kind == RETRACT and type(entity) is BindSpace and handle is not None:
                    self._withdraw(process, handle)
                if kind == ASSERT and handle is not None:
                    self._assert(process, ref, value, handle)
                elif kind == RETRACT and handle is not None:
                    self._retract(process, ref, handle)
                elif kind == MESSAGE:
                    if broker is not None and broker in self._durable:
                        self._acknowledge(self._durable[broker], ref)
                    sessions.answered(process, ref, value)
                if broker is not None and isinstance(entity, Passage):
                    self._pass(broker, ref, kind, value, handle)
                if kind in (MESSAGE, SYNC):
                    self._say(process, ref, kind, value)
        sessions.look(turn)
        if durable is not None and (not durable.turns or durable.turns[-1] != len(durable.changes)):
            durable.turns.append(len(durable.changes))

    def _enter(self, process: Process, facet: Facet, owner: object) -> None:
        """A function of *owner*'s runs in a facet."""
        self.sessions.enter(process, facet)
        if isinstance(owner, Passage) and isinstance(process, BrokerProcess):
            self._end(process, owner)

    def _pass(self, broker: BrokerProcess, ref: Ref, kind: int, form: Frozen, handle: Assertion | None) -> None:
        """Something is asserted in a dataspace, or ends, past what is before that."""
        if kind == RETRACT and handle is not None:
            own, _ = self._passed.pop(handle, (None, ()))
            if own is not None:
                self._hear(broker, RETRACT, None, own)
        elif kind == ASSERT and handle is not None:
            passages = [*_passages(ref)]
            for passage in passages:
                if type(passage) is Durable or (form := passage.pass_on(form)) is None:
                    return
            target = passages[-1].target
            facet = target.facet
            if broker.ds is not None and target.entity is broker.ds.entity and isinstance(facet, Facet):
                own = Handle(facet, target, form)
                self._passed[handle] = own, passages
                self._hear(broker, ASSERT, form, own)

    def _end(self, broker: BrokerProcess, passage: Passage) -> None:
        """What was passed on by it ends, if that is what is done with it."""
        for handle, (own, passages) in list(self._passed.items()):
            if passage in passages:
                del self._passed[handle]
                self._hear(broker, RETRACT, None, own)

    def _say(self, process: Process, ref: Ref, kind: int, form: Frozen) -> None:
        """Something is said, past what is before that, to a peer perhaps."""
        while isinstance(ref.entity, Passage):
            passed = form if kind == SYNC else ref.entity.pass_on(form)
            if passed is None:
                return
            ref, form = ref.entity.target, passed
        if type(ref.entity) is Proxy:
            self.sessions.say(process, ref.entity, kind, form)

    def _hear(self, broker: BrokerProcess, kind: int, form: Frozen, handle: Assertion | None) -> None:
        forms = self._current[broker].forms
        if kind == ASSERT:
            if forms.add(form):
                for view in self.views:
                    if view.broker is broker:
                        view.add(form)
        elif kind == RETRACT and handle is not None:
            form = handle.form
            if form not in forms:
                self._broken("S6", f"{unparse_form(form)} is retracted in {broker.name}, where it is not asserted")
            elif forms.remove(form):
                for view in self.views:
                    if view.broker is broker:
                        view.remove(form)
        elif kind == MESSAGE:
            for view in self.views:
                if view.broker is broker:
                    view.hear(form)

    def _keep(self, durable: DurableAssertions, kind: int, form: Frozen, handle: Assertion | None) -> None:
        if kind == ASSERT and handle is not None:
            passes = type(form) is tuple and len(form) == 2 and form[0] is VOLATILE
            if not passes and not _has_reference(form):
                durable.owners[handle] = form
                durable.set(form, True)
        elif kind == RETRACT and handle is not None:
            gone = durable.owners.pop(handle, None)
            lost = type(handle) is Handle and not handle.facet.alive
            if gone is not None and not lost and gone not in durable.owners.values():
                durable.set(gone, False)
        elif kind == MESSAGE and type(form) is tuple and len(form) == 2 and form[0] in (KEEP, FORGET):
            durable.set(form[1], form[0] is KEEP and not _has_reference(form[1]))
        elif kind == SYNC and type(form) is Ref:
            durable.asked[id(form.entity)] = form, len(durable.changes)

    def _acknowledge(self, durable: DurableAssertions, ref: Ref) -> None:
        asked = durable.asked.pop(id(ref.entity), None)
        if asked is not None:
            durable.acknowledged = max(durable.acknowledged, asked[1])

    def _assert(self, process: Process, ref: Ref, value: Frozen, handle: Assertion) -> None:
        _, current = self._notified.setdefault(id(ref.entity), (ref, {}))
        if handle in current:
            self._broken("S6", f"{_name(ref)} in {process.name} is notified of an assertion twice")
        current[handle] = value
        if type(ref.entity) is Observer:  # what came over a connection is handed on by it, in the same turn
            inner, captures = ref.entity.observer, ref.entity.passes(value)
            if captures is not None:
                _, current = self._notified.setdefault(id(inner.entity), (inner, {}))
                current[handle] = captures if inner.raw else thaw(captures)

    def _retract(self, process: Process, ref: Ref, handle: Assertion) -> None:
        entry = self._notified.get(id(ref.entity))
        if entry is not None and handle in entry[1]:
            del entry[1][handle]
            if type(ref.entity) is Observer:
                inner = self._notified.get(id(ref.entity.observer.entity))
                if inner is not None:
                    inner[1].pop(handle, None)
        elif _alive(ref):
            self._broken("S6", f"{_name(ref)} in {process.name} is notified of an end of what never began there")

    def _confine(self, process: Process, ref: Ref, kind: int, value: Value) -> None:
        """Nobody is notified of what it has not asked for, nor hears through what was withdrawn."""
        entity = ref.entity
        if isinstance(entity, Passage):
            if self._withdrawn and kind != SYNC:
                self._withdrawn_hears(process, ref, value)
        elif type(entity) is BindSpace:
            return
        elif getattr(entity, "asked", None) is not None:
            form = value if ref.raw else freeze(list(value) if isinstance(value, tuple) else value)
            if not heard(ref, form):
                self._broken("S10", f"{_name(ref)} in {process.name} gets {unparse_form(form, str)}: it did not ask")

    def _withdraw(self, process: Process, handle: Assertion) -> None:
        """A bind is withdrawn: what was given for it ends."""
        form = handle.form
        if type(form) is tuple and len(form) == 4 and type(form[2]) is Ref:
            for end in self.sessions.ends.values():
                if end.there and end.process is process:
                    for crossing in end.session.membrane.exports.values():
                        for passage in _passages(crossing.ref):
                            if passage.target is form[2]:
                                self._withdrawn.setdefault(id(passage), (passage, self._world.now))

    def _withdrawn_hears(self, process: Process, ref: Ref, form: Frozen) -> None:
        for passage in _passages(ref):
            since = self._withdrawn.get(id(passage), (passage, math.inf))[1]
            passed = passage.pass_on(form)
            if passed is None:
                return
            if self._world.now > since:
                what = f"{process.name} is notified of {unparse_form(form, str)}"
                self._broken("S10", f"{what} by a capability that was withdrawn")
                return
            form = passed

    def inspect(self) -> None:
        """Check what must come about by time alone: who is silent is given up."""
        now = self._world.now
        pairs = {pair.name: pair for pair in self._world.network.connections if pair.whole}
        for end in self.sessions.ends.values():
            session, pair = end.session, pairs.get(end.session.connection)
            if pair is None or not end.lives or not session.pings or end.process.paused_at > now - session.limits.idle:
                continue
            silence = now - (pair.theirs if session.dials else pair.ours).out.delivered
            if silence > 2 * session.limits.idle:
                text = f"nothing was heard over {session.connection} for {silence:.0f} s, and the session goes on"
                self._broken("S1", f"{end.process.name}: {text}")

    # ------------------------------------------------------------------------------------------------ in order

    def ends(self, broker: BrokerProcess) -> list[Ref]:
        """A broker is to end in order: who waits for an answer of its durable dataspace, and is to have it."""
        durable = self._durable.get(broker)
        return [] if durable is None else [ref for ref, _ in durable.asked.values() if _alive(ref)]

    def has_ended(self, broker: BrokerProcess, waited: list[Ref], seconds: float, most: float) -> None:
        """It has, after so many *seconds*, where *most* were allowed."""
        durable = self._durable.get(broker)
        if seconds > most + _SLACK:
            self._broken("S13", f"{broker.name} has taken {seconds:.2f} s to end, and {most:g} were allowed")
        elif seconds < most / 2 and durable is not None and not broker.full:
            for ref in waited:
                session = getattr(ref.entity, "session", None)
                if id(ref.entity) in durable.asked and isinstance(session, Session) and self._whole(session):
                    text = f"{session.connection} had asked before, and was not answered"
                    self._broken("S13", f"{broker.name} has ended in order: {text}")

    def _whole(self, session: Session) -> bool:
        return any(pair.name == session.connection and pair.whole for pair in self._world.network.connections)

    # ------------------------------------------------------------------------------------------------ at rest

    def lingering(self) -> Task | None:
        """A task that runs though its facet has ended."""
        for process in self._world.processes.values():
            if process.life is not None and process.system is not None:
                for run in process.system.running:
                    task = getattr(run, "__self__", None)
                    if isinstance(task, Task) and not task.facet.alive:
                        return task
        return None

    def at_last(self) -> None:
        """Check what holds when there was time for all that ends to end."""
        task = self.lingering()
        if task is not None:
            name = getattr(task.fn, "__qualname__", "a task")
            self._broken("S17", f"{name} of {task.facet.actor.name} runs, and its facet has ended")

    def at_rest(self) -> None:
        """Check what holds when nothing is on its way."""
        for broker, current in self._current.items():
            current.values = [thaw(form) for form in current.forms]
            if broker.life is not None and broker.ds is not None and broker.broker is not None:
                self._owned(broker, current)
                self._informed(broker, current)
                self._present(broker)
                self._is_kept(broker, current)
        for process in self._world.processes.values():
            if process.life is not None:
                self._agree(process)
        self._alike()
        self.sessions.at_rest()

    def _owned(self, broker: BrokerProcess, current: CurrentAssertions) -> None:
        assert broker.system is not None
        assert broker.ds is not None
        entity = broker.ds.entity
        owned = Bag()
        for actor in broker.system.actors:
            for facet in actor.root.below():
                for handle in facet.handles:
                    if handle.target.entity is entity:
                        owned.add(handle.form)
                    elif handle in self._passed:
                        owned.add(self._passed[handle][0].form)
        if owned != current.forms:
            more = [form for form, count in current.forms.items() if count > owned.get(form, 0)]
            what = unparse_form(more[0]) if more else "something"
            self._broken("S1", f"{what} is asserted in {broker.name}, and nobody who lives asserts it")

    def _is_kept(self, broker: BrokerProcess, current: CurrentAssertions) -> None:
        durable = self._durable.get(broker)
        missing = [form for form in durable.forms if form not in current.forms] if durable is not None else []
        if missing:
            self._broken("S2", f"{unparse_form(missing[0])} is to be kept, and is not asserted in {broker.name}")

    def _present(self, broker: BrokerProcess) -> None:
        assert broker.broker is not None
        for peer in broker.broker.census.peers.values():
            name = peer.name.rpartition(":")[0]
            process = self._world.processes.get(name)
            if process is None or peer.session is None or peer.session.reason is not None:
                continue
            pair = next((each for each in self._world.network.connections if each.name == peer.name), None)
            if pair is not None and pair.ours.life.dead and not pair.whole:
                self._broken("S1", f"the session {peer.name} is there in {broker.name}, and its process has died")

    def _informed(self, broker: BrokerProcess, current: CurrentAssertions) -> None:
        """Each observer of the dataspace was notified of what is asserted."""
        expected: dict[int, tuple[Ref, Counter[Frozen]]] = {}
        for form in current.forms:
            if type(form) is tuple and form[0] is INTEREST and type(form[3]) is Ref:
                _, views = expected.setdefault(id(form[3].entity), (form[3], Counter()))
                views.update(_captures(current, form))
        for ref, views in expected.values():
            if _alive(ref) and self._views_of(ref) != views:
                self._broken("S5", f"{_name(ref)}, an observer in {broker.name}, {self._difference(ref, views)}")

    def _agree(self, process: Process) -> None:
        """What the observers of a client were notified of is what is asserted in the broker."""
        expected: dict[int, tuple[Ref, Counter[Frozen], bool]] = {}
        proxies = [
            (ref.entity, notified)
            for ref, notified in self._notified.values()
            if type(ref.entity) is Proxy and actor_of(ref).system is process.system and _lives(session_of(ref.entity))
        ]
        for proxy, notified in proxies:
            current = self._behind(proxy)
            for handle, form in notified.items():
                if type(form) is tuple and form[0] is INTEREST and type(form[3]) is Ref and type(handle) is Handle:
                    entry = expected.get(id(form[3].entity), (form[3], Counter(), True))
                    visible = entry[2] and current is not None
                    if current is not None:
                        entry[1].update(_captures(current, form))
                    expected[id(form[3].entity)] = entry[0], entry[1], visible
        for ref, views, visible in expected.values():
            if visible and _alive(ref) and _shapes(self._views_of(ref)) != _shapes(views):
                self._broken("S5", f"{_name(ref)}, an observer in {process.name}, {self._difference(ref, views)}")

    def _behind(self, proxy: Proxy) -> CurrentAssertions | None:
        """What the reference that *proxy* stands for leads to, if that is a broker's dataspace."""
        end = self.sessions.ends.get(session_of(proxy))
        if end is None or end.other is None or not end.other.lives:
            return None
        broker, crossing = end.other.process, end.other.session.membrane.exports.get(proxy.oid)
        if crossing is None or not isinstance(broker, BrokerProcess) or broker.ds is None:
            return None
        entity = crossing.ref.entity
        return self._current[broker] if entity is broker.ds.entity or type(entity) is Durable else None

    def _alike(self) -> None:
        """Observers at one reference, with equal patterns, have equal views, whoever they are."""
        views: dict[tuple[int, str], tuple[str, Counter[Frozen]]] = {}
        for ref, notified in self._notified.values():
            proxy = ref.entity
            if type(proxy) is not Proxy:
                continue
            end = self.sessions.ends.get(session_of(proxy))
            if end is None or end.other is None or not (end.lives and end.other.lives):
                continue
            crossing = end.other.session.membrane.exports.get(proxy.oid)
            if crossing is None:
                continue
            for form in notified.values():
                if type(form) is tuple and form[0] is INTEREST and type(form[3]) is Ref and _alive(form[3]):
                    view = Counter({shape(each): 1 for each in self._views_of(form[3])})
                    key = id(crossing.ref.entity), str(synthesise(form[1], form[2]))
                    name, before = views.setdefault(key, (end.process.name, view))
                    if before != view:
                        some = next(iter((before - view) or (view - before)))
                        text = f"{name} and {end.process.name} observe {key[1]}, and one of them alone has"
                        self._broken("S16", f"{text} {unparse_form(some, str)}")

    def _views_of(self, ref: Ref) -> Counter[Frozen]:
        entry = self._notified.get(id(ref.entity))
        if entry is None:
            return Counter()
        return Counter(value if ref.raw else freeze(list(value)) for value in entry[1].values())

    def _difference(self, ref: Ref, views: Counter[Frozen]) -> str:
        notified = self._views_of(ref)
        missing, surplus = views - notified, notified - views
        some = next(iter(missing or surplus))
        return f"{'was not notified of' if missing else 'was not notified that there is no more'} {unparse_form(some)}"

    def _broken(self, name: str, text: str) -> None:
        self._world.broken("law", name, text)


def _captures(current: CurrentAssertions, interest: Frozen) -> Counter[Frozen]:
    """The distinct captures that an interest is to be notified of."""
    pattern = synthesise(interest[1], interest[2])
    distinct: dict[Frozen, None] = {}
    for value in current.values:
        captures = match(pattern, value)
        if captures is not None:
            distinct[(SEQ, *[freeze(each) for each in captures])] = None
    return Counter(list(distinct))


def _passages(ref: Ref) -> Iterator[Passage]:
    """What is before what a reference leads to, from without."""
    while isinstance(ref.entity, Passage):
        yield ref.entity
        ref = ref.entity.target


def _shapes(views: Counter[Frozen]) -> Counter[Frozen]:
    """The same, with no references, which are others elsewhere."""
    return Counter(map(shape, views.elements()))


def _has_reference(form: Frozen) -> bool:
    if type(form) is tuple:
        return form[0] is INTEREST or any(map(_has_reference, form))
    return type(form) is Ref


def _lives(session: Session) -> bool:
    return session.reason is None and session.facet.alive


def _alive(ref: Ref) -> bool:
    """Whether what happens to it is noticed; an unbound one has no facet."""
    return bool(ref.facet) and ref.facet.alive


def _name(ref: Ref) -> str:
    facet = ref.facet
    return f"{type(ref.entity).__name__} of {facet.actor.name}" if isinstance(facet, Facet) else "an observer"
