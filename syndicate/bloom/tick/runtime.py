"""Runtime: a program that was made, as it ticks: its rules, what they are compiled to, its states, and who runs it.

One is shared by a program, its modules and its collections.  Rules are recorded into it while blocks are run; then it
is wired and opened, and ticks: :meth:`Runtime.take_in` takes what waits, :meth:`Runtime.derive` derives and sends.

Instances: what a program is, inside: its collections and modules under names, and the runtime that they share.

What users see of a program is its attributes, which are their collections.  So all else hangs on one attribute, and the
modules of Bloom ask :func:`instance_of` for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from attrs import define, field

from syndicate import plan
from syndicate.bloom.block import MissingInstance
from syndicate.bloom.collection import Collection, taken_rows
from syndicate.bloom.declaration import SENT, TABLES, Kind, Namespace, Row, Rule, Seal, fitted_all, here
from syndicate.bloom.rules.symbols import Head, declaration_of, key_count, kind_of
from syndicate.bloom.state.inbox import Filter, FollowingState, Inbox, Noted, outside
from syndicate.bloom.state.state import (
    CellState,
    Contents,
    KeyedContents,
    RowState,
    ScratchState,
    SentState,
    State,
    TableState,
)
from syndicate.bloom.state.store import Store
from syndicate.bloom.tick.ticking import MakeEngine, Sealed, Sending, Ticking
from syndicate.bloom.tick.wiring import Wiring, steady, wired
from syndicate.errors import BloomDeclaration, IllegalRule, ProgramStopped, RuleFailed
from syndicate.flow.element import Key, key_of
from syndicate.lattice.lattice import Lattice
from syndicate.plan.algebra import listed, meant
from syndicate.storage.disk import Disk
from syndicate.values.value import Value

T = TypeVar("T")
Callback: TypeAlias = Callable[[list[Row]], object]


class Resident(Protocol):
    """The agent of a program, as its ticks and collections know it: who runs it, perhaps in another thread."""

    ended: bool
    thread: int

    def enter(self, act: Callable[[], object]) -> None:
        """Let something be given to the program in a turn of its own actor."""

    def call(self, fn: Callable[[], T], *, what: str) -> T:
        """What *fn* returns between two ticks."""

    def stopped(self) -> ProgramStopped:
        """The error for who waits for a program that has stopped."""


class Runtime:
    """A program that ticks."""

    wiring: Wiring
    engine: Ticking

    def __init__(
        self,
        name: str,
        *,
        address: Value,
        clock: Callable[[], float],
        write: Callable[[str], None],
        channel_filter: Filter | None,
        semi_naive: bool,
        engine: MakeEngine | None,
    ) -> None:
        """Of a class of this *name*, with nothing in it yet; the others are options of the program."""
        self.name, self.address, self.clock = name, address, clock
        self.semi_naive, self.make_engine = semi_naive, engine
        self.collecting = False
        self.block = ""
        self.note: Callable[[Head, plan.Expression], None] | None = None
        """Notified of each rule that is recorded."""
        self.rules: list[Rule] = []
        self.seals: list[Seal] = []
        self.merged: Mapping[str, frozenset[str]] = {}
        self.collections: dict[str, Collection] = {}
        self.outer: frozenset[str] = frozenset()
        """The names of those that are the program's own, and not a module's."""
        self.states: dict[str, State] = {}
        self.durable: list[Collection] = []
        self.store: Store | None = None
        self.shares_store = False
        self.inbox = Inbox(channel_filter)
        self.arrived: Mapping[str, Mapping[Key, None]] = {}
        self.files: list[Collection] = []
        self.has_read = False
        self.sending = Sending(self.deliver_or_collect, write)
        self.fired = self.done = self.ticking = 0
        self.time: float | None = None
        self.halted = self.stopped = self.calling = False
        self.agent: Resident | None = None
        self.noting: Callable[[Noted], None] | None = None
        """Notified of what came from outside with a tick that has happened, before what it sends is gone."""
        self.closing: list[Callable[[], object]] = []
        """Called when it is closed."""
        self.watchers: list[Callable[[], None]] = []
        """Called after a tick, before what it sends is gone."""
        self.callbacks: list[tuple[str, Callback]] = []
        self.hooks: list[Callable[[], object]] = []
        """Called when the program has stopped."""
        self.todo: list[Callable[[], object]] = []
        """Called before the next tick."""

    # --------------------------------------------------------------------------------------------------- making

    def record(self, head: Head, op: str, body: plan.Expression, site: str) -> Rule:
        """Have one more rule, of the block that is run."""
        if self.note is not None:
            self.note(head, body)
        self.rules.append(Rule(head.tabname, op, body, site, self.block, len(self.rules) + 1))
        return self.rules[-1]

    def wire(self, collections: Iterable[Collection], outer: Iterable[Collection]) -> None:
        """Compile the rules over all collections, of which some are in no module; raises :class:`Unstratifiable`."""
        self.collections = {one.tabname: one for one in collections}
        self.outer = frozenset(one.tabname for one in outer)
        self.wiring = wired(self.collections.values(), self.rules)
        self.merged = self.wiring.merged

    def open(self, place: str | Path | Disk | Store | None, followed: Iterable[str]) -> None:
        """Make the states, read durable tables, and be ready to tick; *followed* collections follow assertions."""
        self.states = self._make_states(frozenset(followed))
        self.durable = [one for one in self.collections.values() if kind_of(one) is Kind.DURABLE]
        if self.durable and place is None:
            one = self.durable[0]
            raise BloomDeclaration(
                f"{declaration_of(one).site}: {one.tabname} is durable: give {self.name}(state=PATH)"
            )
        self.shares_store = isinstance(place, Store)
        self.store = store = Store(place) if place is not None and not isinstance(place, Store) else place
        if store is not None:
            try:
                for one in self.durable:
                    state, rows = self.states[one.tabname], store.load(one.tabname, one.cols)
                    assert isinstance(state, TableState)
                    state.restored.update(dict.fromkeys(map(key_of, rows)))
            except BaseException:
                self._close_store()
                raise
        self.engine = self._make_engine()
        self.files = [one for one in self.collections.values() if kind_of(one) in (Kind.FILE, Kind.CALLED)]
        self.sending.senders = [
            (one, name, declaration_of(one), state)
            for name, one in self.collections.items()
            if isinstance(state := self.states[name], SentState)
        ]

    def row_state(self, name: str) -> RowState:
        """The state of a collection of rows."""
        state = self.states[name]
        assert not isinstance(state, CellState)
        return state

    def follow(self, names: Iterable[str]) -> None:
        """Let scratches follow assertions, before the first tick."""
        for name in names:
            state = self.states[name]
            if type(state) is ScratchState:
                self.states[name] = following = FollowingState(state.contents)
                following.inserted = state.inserted
        self.engine.close()
        self.engine = self._make_engine()

    def _make_states(self, followed: frozenset[str]) -> dict[str, State]:
        calm = steady(self.collections.values(), self.wiring.rules)
        states: dict[str, State] = {}
        for name, one in self.collections.items():
            keys = key_count(one)
            make = KeyedContents if keys < len(one.cols) else Contents
            contents = make(name, one.cols, keys)
            if kind_of(one) is Kind.LATTICE:
                states[name] = CellState(name, declaration_of(one).lattices["value"])
            elif kind_of(one) in (*TABLES, Kind.CONST):
                states[name] = TableState(contents, eager=name in self.wiring.derived and name not in calm)
            elif kind_of(one) in SENT:
                states[name] = SentState(contents, make(name, one.cols, keys))
            else:
                states[name] = FollowingState(contents) if name in followed else ScratchState(contents)
        return states

    def _make_engine(self) -> Ticking:
        return Ticking(
            self.wiring,
            self.states,
            [one.tabname for one in self.durable],
            self.store,
            rewiring=self._rewired,
            naive=not self.semi_naive,
            engine=self.make_engine,
            seals=[Sealed.resolve(one, self.collections) for one in self.seals],
        )

    def _rewired(self, name: str, columns: frozenset[str]) -> Wiring | None:
        """The wiring with one more collection that holds lattice values; None if that was known."""
        if name in self.merged:
            return None
        self.wiring = wired(self.collections.values(), self.rules, {**self.merged, name: columns})
        self.merged = self.wiring.merged
        return self.wiring

    def close(self) -> None:
        """Close the engine, and the files of durable tables and of the event log."""
        self.engine.close()
        self._close_store()
        for close in self.closing:
            close()

    def _close_store(self) -> None:
        if self.store is not None and not self.shares_store:
            self.store.close()

    def shut_down(self) -> None:
        """Close, and call who wants to know, once; raises what these raise."""
        if not self.stopped:
            self.stopped = True
            self.close()
            errors: list[Exception] = []
            for fn in list(self.hooks):
                try:
                    fn()
                except Exception as error:  # which is no reason to leave out the others
                    errors.append(error)
            if errors:
                raise errors[0] if len(errors) == 1 else ExceptionGroup("functions of on_shutdown() raised", errors)

    def over(self) -> ProgramStopped:
        """The error for who wants something of a program that has stopped."""
        if self.agent is not None:
            return self.agent.stopped()
        return ProgramStopped(f"{self.name} has stopped: make a new one")

    # --------------------------------------------------------------------------------------------------- what comes in

    def from_outside(self, act: Callable[[], object]) -> None:
        """Do what gives rows to the next tick, where the program runs."""
        if self.agent is not None:
            self.agent.enter(act)
        elif self.stopped:
            raise self.over()
        else:
            act()

    def give(self, name: str, pending: str, rows: Mapping[Key, None]) -> None:
        """Let rows be *inserted*, *deleted*, *upserted* or *posted* with the next tick."""
        state = self.states[name]
        self.from_outside(lambda: getattr(state, pending).update(rows))

    def merge(self, name: str, value: Lattice) -> None:
        """Let a lattice grow by a value in the next tick."""
        state = self.states[name]
        assert isinstance(state, CellState)
        self.from_outside(lambda: state.insert(value))

    def notice(self, name: str, columns: Iterable[str]) -> None:
        """Know that rows which were given hold lattice values."""
        self.engine.notice(name, columns)

    def deliver(self, one: Collection, rows: object) -> None:
        """Let rows arrive in a channel with the next tick."""
        if kind_of(one) is not Kind.CHANNEL:
            raise IllegalRule(f"{one.tabname} is a {kind_of(one).value}: only channels are delivered to")
        taken = taken_rows(one, rows)
        self.from_outside(lambda: self.arrive(one, taken))

    def arrive(self, one: Collection, rows: Iterable[Key]) -> None:
        """Let rows wait in the inbox, in a turn of the program's own."""
        self.inbox.add(self.states[one.tabname].contents, rows)

    def deliver_or_collect(self, address: Value, channel: str, row: tuple[Value, ...]) -> None:
        """What is done with the rows of channels as long as nobody has set another function."""
        if address == self.address:
            self.deliver(self.collections[channel], [row])
        else:
            self.sending.sent.append((address, channel, row))

    def fire(self, one: Collection) -> None:
        """Let a periodic have one more row in the next tick."""
        if kind_of(one) is not Kind.PERIODIC:
            raise IllegalRule(f"{one.tabname} is a {kind_of(one).value}: only a periodic fires")
        self.fired += 1
        one.insert([(self.fired, self.clock())])

    def waits(self) -> bool:
        """Whether another tick would do something: rows wait that were given, deferred or sent to ourselves."""
        todo = self.done == 0 or self.todo or self.inbox.waits()
        return bool(todo) or any(state.waits() for state in self.states.values())

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        self.inbox.clear()
        self.engine.noticed.clear()
        for state in self.states.values():
            state.discard()

    # --------------------------------------------------------------------------------------------------- ticking

    def tick(self) -> None:
        """Take in what waits, derive, send; raises what makes a tick fail, which then did not happen."""
        self.take_in()
        self.derive()

    def take_in(self) -> None:
        """Let what waits be in the tick that begins."""
        if self.ticking:
            raise IllegalRule(f"{here()}: tick() within a tick: use a callback, or tick afterwards")
        for _ in range(len(self.todo)):
            self.todo.pop(0)()
        self.arrived = self.inbox.taken() if self.inbox.rows else {}
        for name, rows in self.arrived.items():
            state = self.row_state(name)
            getattr(state, state.inlet).update(rows)
        self.has_read = False

    def derive(self) -> None:
        """Derive, and when that has happened, send, and call who wants to know."""
        self.time = None
        if "now" in self.wiring.read:
            self.time = self.clock()
            self.row_state("now").inserted = {key_of((self.done, self.time)): None}
        for one in () if self.has_read else self.files:
            self.row_state(one.tabname).inserted = read(one)
        self.has_read = True  # until a tick has happened: what is called may not give its rows again
        noted = None if self.noting is None else outside(self.states)
        self.ticking = threading.get_ident()
        try:
            self.engine.tick()
        finally:
            self.ticking = 0
        self.has_read = False
        self.done += 1
        if self.noting is not None and noted is not None:
            self.noting(noted)
        try:
            for watch in self.watchers and list(self.watchers):  # before what was sent is gone
                watch()
        finally:
            self.sending.post()
        self.halted = self.halted or bool(self.states["halt"].contents.rows)
        self.calling = True
        try:
            for name, callback in list(self.callbacks):
                if rows := list(self.collections[name]):
                    callback(rows)
        finally:
            self.calling = False

    def in_rule(self) -> bool:
        """Whether a function of a rule is running in this thread: another may look at any time."""
        return self.ticking == threading.get_ident()

    # --------------------------------------------------------------------------------------------------- what is there

    def rows(self, name: str) -> Mapping[Key, None]:
        """The rows of a collection after the last tick; a copy, where another thread runs the program."""
        rows = self.states[name].contents.rows
        return self._looked_at(lambda: rows, lambda: dict(rows))

    def row(self, name: str, key: tuple[Value, ...]) -> Key | None:
        """The one that has a key."""
        return self.states[name].contents.by_key(key)

    def value(self, name: str) -> Lattice:
        """The value of a lattice; a copy, where another thread runs the program: a table is not for two threads."""
        state = self.states[name]
        assert isinstance(state, CellState)
        return self._looked_at(lambda: state.value, lambda: copied(state.value))

    def _looked_at(self, look: Callable[[], T], copy: Callable[[], T]) -> T:
        agent = self.agent
        if agent is None or agent.ended or threading.get_ident() == agent.thread:
            return look()
        try:
            return agent.call(copy, what="looking")
        except ProgramStopped:
            return look()


def copied(value: Lattice) -> Lattice:
    """The same value in tables of its own."""
    make, form = value.__reduce__()
    return make(*form)


def read(one: Collection) -> dict[Key, None]:
    """The lines of a file, or what a function gives; raises :class:`RuleFailed`."""
    declared = declaration_of(one)
    where = f"{declared.site}: {one.tabname}"

    def failed(why: str) -> RuleFailed:
        return RuleFailed(f"{where} {why}. The tick did not happen", sites=[declared.site], relations=[one.tabname])

    if declared.call is not None:
        try:
            rows = declared.call()
        except Exception as error:
            raise failed(f"raised {type(error).__name__}: {error}") from error
        return dict.fromkeys(map(key_of, fitted_all(rows, one.cols, where)))
    assert declared.path is not None
    try:
        text = declared.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failed(f"cannot read {declared.path}: {error}") from error
    return dict.fromkeys(enumerate(text.splitlines()))


# ------------------------------------------------------------------------------------------------------------ instances


@define(eq=False)
class Instance:
    """A program, or a module of one, whose collections' full names begin with *prefix*."""

    runtime: Runtime
    prefix: str = ""
    own: dict[str, Collection] = field(factory=dict)
    """Its collections, without those of modules; lattices are among them."""
    modules: dict[str, Instance] = field(factory=dict)

    def collections(self) -> Iterator[Collection]:
        """All collections, those of modules too."""
        yield from self.own.values()
        for module in self.modules.values():
            yield from module.collections()

    def collection(self, name: str) -> Collection:
        """The collection of a name, ``"module.name"`` for one of a module; raises :class:`BloomDeclaration`."""
        collections = {one.tabname[len(self.prefix) :]: one for one in self.collections()}
        if name not in collections:
            raise BloomDeclaration(
                f"{here()}: there is no collection {name!r}{meant(name, collections)}; there are {listed(collections)}"
            )
        return collections[name]

    def check_root(self, what: str) -> None:
        """Raise an error for what is asked of a program in the making, or of a module instead of its program."""
        if self.runtime.collecting:
            raise IllegalRule(f"{here()}: {what}() is for a program that is made, and a block says what it is made of")
        if self.prefix:
            raise BloomDeclaration(f"{what}() is for the program, not for its module {self.prefix[:-1]}")


class Instantiated(Namespace):
    """What has an instance: the base of programs."""

    if TYPE_CHECKING:
        _instance: Instance
    else:
        _instance = MissingInstance()


def instance_of(program: Instantiated) -> Instance:
    """What a program is, inside."""
    return program._instance


def runtime_of(program: Instantiated) -> Runtime:
    """What ticks, of a program or the program of a module."""
    return program._instance.runtime
