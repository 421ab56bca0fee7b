"""Programs: a class with collections and blocks of rules; each instance ticks by itself.

>>> from syndicate.bloom import Bloom, bloom, scratch, table
>>> class Reach(Bloom):
...     link = table(["from", "to"]); path = table(["from", "to"])
...     @bloom
...     def closure(self):
...         self.path <= self.link
...         self.path <= (self.link * self.path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
>>> p = Reach(); p.link <= [(1, 2), (2, 3)]; p.tick(); sorted(p.path)
[(from=1, to=2), (from=1, to=3), (from=2, to=3)]

Source: Alvaro et al. 2011a, "Bud: Bloom Under Development"; ``docs/design/bloom.md``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syndicate import plan
from syndicate.actors.turn import current, expect_ref
from syndicate.bloom.agent.agent import Agent
from syndicate.bloom.agent.console import write_line
from syndicate.bloom.agent.ports import check
from syndicate.bloom.agent.running import Running
from syndicate.bloom.block import Imported, Unmade, blocks_of, definer, is_marked
from syndicate.bloom.body import ProgramClass
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import SENT, TABLES, Declaration, Kind
from syndicate.bloom.insight.introspection import Looking
from syndicate.bloom.interface_override import Interposing
from syndicate.bloom.row import fitted_all
from syndicate.bloom.rule import Rule
from syndicate.bloom.rules.cell import Cell
from syndicate.bloom.rules.closure import watching
from syndicate.bloom.rules.head import declaration_of, key_count, kind_of
from syndicate.bloom.schema import loopback, scratch
from syndicate.bloom.site import here, placing, raised_at
from syndicate.bloom.state.contents import Contents
from syndicate.bloom.state.following import FollowingState
from syndicate.bloom.state.inbox import Filter, Inbox
from syndicate.bloom.state.state import CellState, ScratchState, SentState, TableState
from syndicate.bloom.state.store import Store
from syndicate.bloom.tick.ticking import State, Ticking
from syndicate.bloom.tick.wiring import Wiring, steady, wired
from syndicate.errors import AlreadyRunning, BloomDeclaration, IllegalRule, RuleFailed
from syndicate.flow.circuit import Circuit
from syndicate.flow.element import key_of, natural
from syndicate.plan.heading import listed, meant
from syndicate.storage.disk import Disk
from syndicate.values.value import Ref, Value

_NONE: Mapping[str, Any] = {}
Send = Callable[[Any, str, tuple[Value, ...]], None]

_TAKEN = frozenset({"address", "bud_clock", "budtime", "halted", "plan", "send", "sent", "statements"})


class Bloom(Running, Looking, metaclass=ProgramClass):
    """The base of programs.

    With a dataspace *ds*, in a turn, it is an actor's: see :mod:`syndicate.bloom.agent.agent`, and
    :mod:`syndicate.bloom.agent.ports` for *inputs*, *messages*, *outputs* and *sends*, each a mapping from names of
    collections.  Without one it is ticked by hand, or run by :meth:`run_bg`.

    *address* is what channels' locations are compared with; *clock* gives the time in seconds, *write* takes the lines
    of terminals, *state* is the file of durable tables (``":memory:"`` for none), *channel_filter* a
    :data:`~syndicate.bloom.state.inbox.Filter`.
    Without *semi_naive*, methods of lattices are applied to whole values each time, which is for comparison.
    *engine* makes what runs the circuit: ``lambda circuit: SparkEngine(circuit, session)``; the local engine otherwise.
    ``send(address, channel, row)`` takes what channels send; as long as nobody has set it, rows to ourselves are
    delivered, and others collected in ``sent``.
    """

    if TYPE_CHECKING:
        _root: Bloom
    else:
        _root = Unmade()
    _collecting: bool = False
    _collector: Interposing

    halt = scratch(["key"], [])
    localtick = loopback(["col1"], [])
    now = scratch(["tick"], ["time"])

    def __init__(
        self,
        ds: Ref | None = None,
        *,
        address: Any = "localhost",
        clock: Callable[[], float] = time.time,
        write: Callable[[str], None] = write_line,
        state: str | Path | Disk | Store | None = None,
        channel_filter: Filter | None = None,
        semi_naive: bool = True,
        engine: Callable[[Circuit], Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        messages: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        sends: Mapping[str, Any] | None = None,
        _above: Any = None,
        _name: str = "",
    ) -> None:
        """Make the collections, record the rules and compile them.

        Raises :class:`BloomDeclaration`, :class:`IllegalRule`, :class:`syndicate.errors.Unstratifiable`, and with a
        dataspace :class:`syndicate.errors.NotInTurn`.
        """
        if ds is not None:  # before anything is opened
            current(type(self).__name__)
            expect_ref(type(self).__name__, ds)
        self._root = self if _above is None else _above._root
        self._prefix: str = "" if _above is None else f"{_above._prefix}{_name}."
        self._own: dict[str, Collection] = {}
        self._modules: dict[str, Bloom] = {}
        self._ticking = 0
        self._block = ""
        self.address: Any = address if _above is None else self._root.address
        self._set_running()
        if _above is None:
            self._clock = clock
            self._write = write
            self._semi_naive = semi_naive
            self._run_by = engine
            self._merged: Mapping[str, frozenset[str]] = {}
            self._rules: list[Rule] = []
            self._states: dict[str, State] = {}
            self._inbox = Inbox(channel_filter)
            self._arrived: Mapping[str, Mapping[Any, None]] = {}
            self._fired = 0
            self._done = 0
            self._watchers: list[Callable[[], None]] = []
            self._time: float | None = None
            self.halted = False
            self.send: Send = self._nowhere
            self.sent: list[tuple[Any, str, tuple[Value, ...]]] = []
        self._declare()
        if _above is None:
            self._collect()
            self._wiring: Wiring = wired(self.collections(), self._rules)
            self._merged = self._wiring.merged
            declared_ports = {"inputs": inputs, "messages": messages, "outputs": outputs, "sends": sends}
            ports = self._checked(ds, declared_ports)
            self._states = self._make_states(ports["inputs"])
            self._open(state)
            self._files = [one for one in self.collections() if kind_of(one) in (Kind.FILE, Kind.CALLED)]
            self._senders = [
                (one, held) for one in self.collections() if isinstance(held := self._states[one.tabname], SentState)
            ]
            try:
                self._boot()
                if ds is not None:
                    self._agent = Agent(self, ds, ports)
            except BaseException:
                self.close()
                raise

    # --------------------------------------------------------------------------------------------------- making

    def _declare(self) -> None:
        declarations: dict[str, tuple[Declaration, type]] = {}
        modules: dict[str, Imported] = {}
        for cls in reversed(type(self).__mro__):
            for name, value in vars(cls).items():
                if isinstance(value, Imported):
                    if name in modules or name in declarations:
                        raise BloomDeclaration(
                            f"{value._site}: the module {name} has a name that is taken: choose another"
                        )
                    modules[name] = value
                elif isinstance(value, Declaration):
                    old = declarations.get(name)
                    if old is not None and old[1] is Bloom:
                        raise BloomDeclaration(
                            f"{value.site}: {name} is a collection of every program, which says what it holds: give "
                            "yours another name"
                        )
                    if old is not None and old[0].shape() != value.shape():
                        raise BloomDeclaration(
                            f"{value.site}: {name} is declared by {old[1].__name__} already ({old[0].site}), as "
                            f"another {old[0].kind.value}: give one of the two another name"
                        )
                    declarations[name] = (value, cls)
                elif name in declarations and not name.startswith("__"):
                    raise BloomDeclaration(f"{cls.__name__}.{name} hides the collection {name}: give it another name")
        for name, (declaration, cls) in declarations.items():
            if cls is Bloom and self._root is not self:  # one clock, one end
                self.__dict__[name] = self._root._own[name]
                continue
            if name.startswith("_") or name in _TAKEN or callable(getattr(Bloom, name, None)):
                raise BloomDeclaration(
                    f"{declaration.site}: a collection cannot be called {name}, as "
                    "something of every program is: choose another name"
                )
            kind: Any = Cell if declaration.kind is Kind.LATTICE else Collection
            self._own[name] = self.__dict__[name] = kind(f"{self._prefix}{name}", declaration, self)
        for name, imported in modules.items():
            self._modules[name] = self.__dict__[name] = imported._program(_above=self, _name=name)

    def _collect(self) -> None:
        for module in self._modules.values():
            module._collect()
        root, start = self._root, len(self._root._rules)
        self._between = Interposing(self)
        self._run_blocks()
        if self._between.split():
            del root._rules[start:]
            self._run_blocks()

    def _run_blocks(self) -> None:
        root, between = self._root, self._between
        for name in blocks_of(type(self), "bloom"):
            if hasattr(Bloom, name) or name in _TAKEN:
                raise BloomDeclaration(
                    f"{type(self).__name__}: a block cannot be called {name}, as something of every program is: choose "
                    "another name"
                )
            root._block = f"{self._prefix}{name}"
            root._collecting, root._collector = True, between
            try:
                with placing(), watching():
                    between.run(definer(type(self), name), getattr(self, name))
            except NameError as error:
                raise self._unnamed(error, f"self.{error.name}" if error.name in self._own else "") from error
            except AttributeError as error:
                if error.obj is not self:
                    raise
                raise self._unnamed(error, "") from error
            except TypeError as error:
                if "bad operand type for unary" not in str(error):
                    raise
                raise IllegalRule(
                    f"{raised_at(error)}: {error}: the sign of an operator stands before rows, as in "
                    "t <+ values((1, 2), ...)"
                ) from error
            finally:
                root._collecting = False

    def _unnamed(self, error: NameError | AttributeError, remedy: str) -> IllegalRule:
        """The error for a name in a block that means nothing."""
        known = [*self._own, *self._modules]
        said = f"write {remedy}" if remedy else "declare it first"
        return IllegalRule(f"{raised_at(error)}: there is no {error.name}{meant(error.name, known)}: {said}")

    def __setattr__(self, name: str, value: Value) -> None:
        if name in self.__dict__.get("_own", _NONE):
            raise IllegalRule(
                f"{here()}: {name} = ... would put something else in the collection's place: write {name} <= ... for a "
                f"rule, {name}.define(...) for all of a scratch, {name}.insert(rows) for rows from outside"
            )
        object.__setattr__(self, name, value)

    def _record(self, head: Collection, op: str, body: plan.Expression, site: str) -> Rule:
        rules = self._root._rules
        self._root._collector.note(head, body)
        rules.append(Rule(head.tabname, op, body, site, self._root._block, len(rules) + 1))
        return rules[-1]

    def _open(self, place: str | Path | Disk | Store | None) -> None:
        durable = [one for one in self.collections() if kind_of(one) is Kind.DURABLE]
        if durable and place is None:
            raise BloomDeclaration(
                f"{declaration_of(durable[0]).site}: {durable[0].tabname} is durable: "
                f"give {type(self).__name__}(state=PATH)"
            )
        self._shares_store = isinstance(place, Store)
        self._store = store = Store(place) if place is not None and not isinstance(place, Store) else place
        if store is not None:
            try:
                for one in durable:
                    rows = store.load(one.tabname, one.cols)
                    self._state_of(one).restored.update(dict.fromkeys(map(key_of, rows)))
            except BaseException:
                self._close_store()
                raise
        self._engine = self._make_engine()

    def _make_engine(self) -> Ticking:
        return Ticking(
            self._wiring,
            self._states,
            [one.tabname for one in self.collections() if kind_of(one) is Kind.DURABLE],
            self._store,
            found=self._rewired,
            naive=not self._semi_naive,
            engine=self._run_by,
        )

    def _live_in(
        self,
        ds: Ref,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        messages: Mapping[str, Any],
        sends: Mapping[str, Any] = _NONE,
    ) -> None:
        """Be an actor's from now on, in a turn; raises :class:`AlreadyRunning`, :class:`BloomDeclaration`."""
        self._at_root("host")
        if self._agent is not None or self._done or self._stopped:
            raise AlreadyRunning(
                f"host(): this {type(self).__name__} runs already, or has ticked: give a new one, or the class, of "
                "which each start makes one"
            )
        ports = self._checked(ds, {"inputs": inputs, "messages": messages, "outputs": outputs, "sends": sends})
        for name in ports["inputs"]:
            state = self._states[name]
            if type(state) is ScratchState:
                self._states[name] = following = FollowingState(state.contents)
                following.inserted = state.inserted
        self._engine.close()
        self._engine = self._make_engine()
        self._agent = Agent(self, ds, ports)

    def _rewired(self, name: str, columns: frozenset[str]) -> Wiring | None:
        """The wiring with one more collection that holds lattice values; None if that was known."""
        if name in self._merged:
            return None
        self._wiring = wired(self.collections(), self._rules, {**self._merged, name: columns})
        self._merged = self._wiring.merged
        return self._wiring

    def close(self) -> None:
        """Close the file of durable tables, and the engine."""
        self._root._engine.close()
        self._root._close_store()

    def _close_store(self) -> None:
        if self._store is not None and not self._shares_store:
            self._store.close()

    def _boot(self) -> None:
        for module in self._modules.values():
            module._boot()
        for cls in reversed(type(self).__mro__):
            for value in list(vars(cls).values()):
                if is_marked(value, "bootstrap"):
                    with placing():
                        value(self)
        for one in self._own.values():
            if kind_of(one) is Kind.CONST:
                rows = fitted_all(declaration_of(one).rows, one.cols, f"{declaration_of(one).site}: {one.tabname}")
                self._state_of(one).inserted.update(dict.fromkeys(map(key_of, rows)))

    def _checked(
        self, ds: Ref | None, declared_ports: Mapping[str, Mapping[str, Any] | None]
    ) -> dict[str, dict[str, Any]]:
        site = here()
        name = next((name for name, ports in declared_ports.items() if ports), None)
        if ds is None and name is not None:
            raise BloomDeclaration(f"{site}: {name}= needs a dataspace: {type(self).__name__}(ds, {name}=...)")
        ports = {
            what: {name: check(what, self.collection(name), written, site) for name, written in (some or {}).items()}
            for what, some in declared_ports.items()
        }
        twice = sorted(ports["inputs"].keys() & ports["messages"].keys())
        if twice:
            raise BloomDeclaration(f"{site}: {twice[0]} is in inputs= and in messages=: make two collections of it")
        return ports

    def _make_states(self, held: Mapping[str, Any]) -> dict[str, State]:
        calm = steady(self.collections(), self._wiring.rules)
        states: dict[str, State] = {}
        for one in self.collections():
            name = one.tabname
            contents = Contents(name, one.cols, key_count(one))
            if kind_of(one) is Kind.LATTICE:
                states[name] = CellState(name, declaration_of(one).lattices["value"])
            elif kind_of(one) in (*TABLES, Kind.CONST):
                states[name] = TableState(contents, eager=name in self._wiring.derived and name not in calm)
            elif kind_of(one) in SENT:
                states[name] = SentState(contents)
            else:
                states[name] = FollowingState(contents) if name in held else ScratchState(contents)
        return states

    def _state_of(self, collection: Collection) -> Any:
        return self._root._states[collection.tabname]

    # --------------------------------------------------------------------------------------------------- ticking

    def tick(self, times: int = 1) -> None:
        """Take in what waits, derive, send; *times* over.

        Raises :class:`RuleFailed`, :class:`RowMisfit`, :class:`KeyConflict`: the tick then did not happen, and what
        waits still does; :meth:`discard` drops what came from outside.  Where the program runs, it ends by that.
        """
        self._at_root("tick")
        for _ in range(times):
            if self._agent is not None:
                self._agent.call(lambda: None, what="tick", tick=True)
            elif self._stopped:
                raise self._over()
            else:
                self._tick()

    def _tick(self) -> None:
        self._take_in()
        self._derive()

    def _take_in(self) -> None:
        if self._ticking:
            raise IllegalRule(f"{here()}: tick() within a tick: use a callback, or tick afterwards")
        for _ in range(len(self._todo)):
            self._todo.pop(0)()
        self._arrived = self._inbox.taken()
        for name, rows in self._arrived.items():
            state: Any = self._states[name]
            getattr(state, state.inlet).update(rows)
        self._has_read = False

    def _derive(self) -> None:
        self._time = None
        if "now" in self._wiring.read:
            self._time = self._clock()
            self._states["now"].inserted = {key_of((self._done, self._time)): None}
        for one in () if self._has_read else self._files:
            self._read_file(one)
        self._has_read = True  # until a tick has happened: what is called may not give its rows again
        self._ticking = threading.get_ident()
        try:
            self._engine.tick()
        finally:
            self._ticking = 0
        self._has_read = False
        self._done += 1
        try:
            for watch in self._watchers and list(self._watchers):  # before what was sent is gone
                watch()
        finally:
            self._post()
        self.halted = self.halted or bool(self._states["halt"].contents.rows)
        self._calling = True
        try:
            for name, callback in list(self._callbacks):
                if rows := list(self.collection(name)):
                    callback(rows)
        finally:
            self._calling = False

    @property
    def budtime(self) -> int:
        """How many ticks there have been; raises :class:`IllegalRule` in a rule, which must be joined with ``now``."""
        self._not_in_rule("budtime", "tick")
        return self._root._done

    @property
    def bud_clock(self) -> float:
        """The time of this tick, in seconds, for callbacks; the same in all of them.

        Raises :class:`IllegalRule` outside of a tick, and in a rule, which must be joined with ``now``.
        """
        self._not_in_rule("bud_clock", "time")
        root = self._root
        if not root._calling:
            raise IllegalRule(f"{here()}: bud_clock is the time of a tick, and there is none now: use it in a callback")
        if root._time is None:
            root._time = root._clock()
        return root._time

    def _not_in_rule(self, what: str, column: str) -> None:
        if self._root._collecting or self._root._in_rule():
            raise IllegalRule(
                f"{here()}: {what} cannot be used in a rule: its functions are called for new rows only, and not in "
                f"each tick. Join with now, as in (self.t * self.now).pairs(lambda row, now: (row.k, now.{column}))"
            )

    def _in_rule(self) -> bool:
        """Whether a function of a rule is running here: another thread may look at any time."""
        return self._ticking == threading.get_ident()

    def _post(self) -> None:
        for one, state in self._senders:
            name, declared = one.tabname, declaration_of(one)
            for row in state.outgoing():
                if declared.kind is Kind.CHANNEL:
                    assert declared.location is not None
                    self.send(natural(row)[declared.location], name, natural(row))
                elif declared.kind is Kind.LOOPBACK:
                    state.inserted[row] = None
                else:
                    self._write(str(natural(row)[0]))

    def _read_file(self, one: Collection) -> None:
        declared = declaration_of(one)
        where = f"{declared.site}: {one.tabname}"
        if declared.call is not None:
            try:
                lines = declared.call()
            except Exception as error:
                raise RuleFailed(
                    f"{where} raised {type(error).__name__}: {error}. The tick did not happen",
                    sites=[declared.site],
                    relations=[one.tabname],
                ) from error
            self._state_of(one).inserted = dict.fromkeys(map(key_of, fitted_all(lines, one.cols, where)))
            return
        assert declared.path is not None
        try:
            text = declared.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RuleFailed(
                f"{where} cannot read {declared.path}: {error}. The tick did not happen",
                sites=[declared.site],
                relations=[one.tabname],
            ) from error
        self._state_of(one).inserted = dict.fromkeys(enumerate(text.splitlines()))

    def _nowhere(self, address: Any, channel: str, row: tuple[Value, ...]) -> None:
        if address == self.address:
            self.deliver(channel, [row])
        else:
            self.sent.append((address, channel, row))

    def deliver(self, channel: str, rows: Any) -> None:
        """Let rows arrive in a channel with the next tick."""
        one = self.collection(channel)
        if kind_of(one) is not Kind.CHANNEL:
            raise IllegalRule(f"{channel} is a {kind_of(one).value}: only channels are delivered to")
        root, taken, held = self._root, one._taken(rows), self._state_of(one).contents
        root._from_outside(lambda: root._inbox.add(held, taken))

    def _channel(self, name: Any) -> Collection | None:
        """The channel of a name that somebody has sent."""
        return next((one for one, _ in self._senders if one.tabname == name and kind_of(one) is Kind.CHANNEL), None)

    def fire(self, timer: str | Collection) -> None:
        """Let a periodic fire: it has one more row in the next tick."""
        one = timer if isinstance(timer, Collection) else self.collection(timer)
        if kind_of(one) is not Kind.PERIODIC:
            raise IllegalRule(f"{one.tabname} is a {kind_of(one).value}: only a periodic fires")
        self._root._fired += 1
        one.insert([(self._root._fired, self._root._clock())])

    def waits(self) -> bool:
        """Whether another tick would do something: rows wait that were given, deferred or sent to ourselves."""
        root = self._root
        todo = root._done == 0 or root._todo or root._inbox.waits()
        return bool(todo) or any(state.waits() for state in root._states.values())

    def run(self, limit: int = 1000) -> int:
        """Tick until nothing waits; how many ticks it took.  Raises :class:`IllegalRule` after *limit*."""
        self._at_root("run")
        if self._agent is not None:
            raise IllegalRule(f"{here()}: {type(self).__name__} ticks by itself: use sync_do(fn), or callbacks")
        for done in range(limit):
            if not self.waits() or self.halted:
                return done
            self._tick()
        if not self.waits():
            return limit
        busy = [name for name, state in self._states.items() if state.waits()]
        raise IllegalRule(
            f"{type(self).__name__} did not come to rest within {limit} ticks: {listed(busy)} still wait; give run() a "
            "greater limit, or see whether a rule feeds itself"
        )

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        self._root._inbox.clear()
        self._root._engine.noticed.clear()
        for state in self._root._states.values():
            state.discard()

    def _at_root(self, what: str) -> None:
        if self._root._collecting:
            raise IllegalRule(f"{here()}: {what}() is for a program that is made, and a block says what it is made of")
        if self._root is not self:
            raise BloomDeclaration(f"{what}() is for the program, not for its module {self._prefix[:-1]}")
