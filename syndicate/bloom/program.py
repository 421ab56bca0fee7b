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

Source: seed 001; DESIGN 6.5; reference/bloom.md, 1.6, 1.7.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from syndicate import plan
from syndicate.bloom.block import Imported, blocks_of, is_marked
from syndicate.bloom.collection import Collection
from syndicate.bloom.contents import Contents
from syndicate.bloom.declaration import SENT, TABLES, Declaration, Kind, loopback, scratch
from syndicate.bloom.row import Row, fitted_all
from syndicate.bloom.rule import Rule
from syndicate.bloom.site import here
from syndicate.bloom.state import ScratchState, SentState, TableState
from syndicate.bloom.store import Store
from syndicate.bloom.ticking import State, Ticking
from syndicate.bloom.wiring import Wiring, steady, wired
from syndicate.errors import BloomDeclaration, IllegalRule, RuleFailed
from syndicate.flow.element import key_of, natural
from syndicate.plan.heading import listed, meant

Send = Callable[[Any, str, tuple[Any, ...]], None]
Callback = Callable[[list[Row]], None]


_TAKEN = frozenset({"address", "budtime", "halted", "plan", "send", "sent"})


class Bloom:
    """The base of programs.

    *address* is what channels' locations are compared with; *clock* gives the time in seconds, *write* takes the lines
    of terminals, *state* is the file of durable tables.  ``send(address, channel, row)`` takes what channels send; as
    long as nobody has set it, rows to ourselves are delivered, and others collected in ``sent``.
    """

    _collecting: bool = False

    halt = scratch(["key"], [])
    localtick = loopback(["col1"], [])
    now = scratch(["tick"], ["time"])

    def __init__(
        self,
        *,
        address: Any = "localhost",
        clock: Callable[[], float] = time.time,
        write: Callable[[str], None] = print,
        state: str | Path | None = None,
        _above: Any = None,
        _name: str = "",
    ) -> None:
        """Make the collections, record the rules and compile them.

        Raises :class:`BloomDeclaration`, :class:`IllegalRule`, :class:`syndicate.errors.Unstratifiable`.
        """
        self._root: Bloom = self if _above is None else _above._root
        self._prefix: str = "" if _above is None else f"{_above._prefix}{_name}."
        self._own: dict[str, Collection] = {}
        self._modules: dict[str, Bloom] = {}
        self._ticking = False
        self._block = ""
        self.address: Any = address if _above is None else self._root.address
        if _above is None:
            self._clock = clock
            self._write = write
            self._rules: list[Rule] = []
            self._states: dict[str, State] = {}
            self._callbacks: list[tuple[str, Callback]] = []
            self._fired = 0
            self.budtime = 0
            self.halted = False
            self.send: Send = self._nowhere
            self.sent: list[tuple[Any, str, tuple[Any, ...]]] = []
        self._declare()
        if _above is None:
            self._collect()
            self._wiring: Wiring = wired(self.collections(), self._rules)
            self._states = self._make_states()
            self._open(state)
            self._files = [one for one in self.collections() if one._kind is Kind.FILE]
            self._senders = [
                (one, held) for one in self.collections() if isinstance(held := self._states[one._name], SentState)
            ]
            self._boot()

    # --------------------------------------------------------------------------------------------------- making

    def _declare(self) -> None:
        found: dict[str, tuple[Declaration, type]] = {}
        modules: dict[str, Imported] = {}
        for cls in reversed(type(self).__mro__):
            for name, value in vars(cls).items():
                if isinstance(value, Imported):
                    if name in modules or name in found:
                        raise BloomDeclaration(
                            f"{value.site}: the module {name} has a name that is taken: choose another"
                        )
                    modules[name] = value
                elif isinstance(value, Declaration):
                    old = found.get(name)
                    if old is not None and old[0].schema() != value.schema() and old[1] is not Bloom:
                        raise BloomDeclaration(
                            f"{value.site}: {name} is declared by {old[1].__name__} already ({old[0].site}), as "
                            f"another {old[0].kind.value}: give one of the two another name"
                        )
                    found[name] = (value, cls)
                elif name in found and not name.startswith("__"):
                    raise BloomDeclaration(f"{cls.__name__}.{name} hides the collection {name}: give it another name")
        for name, (declaration, cls) in found.items():
            if cls is Bloom and self._root is not self:  # one clock, one end
                self.__dict__[name] = self._root._own[name]
                continue
            if name.startswith("_") or name in _TAKEN or callable(getattr(Bloom, name, None)):
                raise BloomDeclaration(f"{declaration.site}: a collection cannot be called {name}: choose another name")
            self._own[name] = self.__dict__[name] = Collection(f"{self._prefix}{name}", declaration, self)
        for name, imported in modules.items():
            self._modules[name] = self.__dict__[name] = imported.program(_above=self, _name=name)

    def _collect(self) -> None:
        for module in self._modules.values():
            module._collect()
        for name in blocks_of(type(self), "bloom"):
            if hasattr(Bloom, name):
                raise BloomDeclaration(f"{type(self).__name__}: a block cannot be called {name}: choose another name")
            self._root._block = f"{self._prefix}{name}"
            self._root._collecting = True
            try:
                getattr(self, name)()
            finally:
                self._root._collecting = False

    def _record(self, head: Collection, op: str, body: plan.Expression, site: str) -> Rule:
        rules = self._root._rules
        rules.append(Rule(head._name, op, body, site, self._root._block, len(rules) + 1))
        return rules[-1]

    def _open(self, path: str | Path | None) -> None:
        kept = [one for one in self.collections() if one._kind is Kind.DURABLE]
        if kept and path is None:
            raise BloomDeclaration(
                f"{kept[0]._declaration.site}: {kept[0]._name} is durable: give {type(self).__name__}(state=PATH)"
            )
        self._store = None if path is None else Store(path)
        for one in kept if self._store is not None else ():
            rows = self._store.load(one._name, one._columns) if self._store is not None else []
            self._states[one._name].inserted.update(dict.fromkeys(map(key_of, rows)))
        self._engine = Ticking(self._wiring, self._states, [one._name for one in kept], self._store)

    def close(self) -> None:
        """Close the file of durable tables."""
        if self._root._store is not None:
            self._root._store.close()

    def _boot(self) -> None:
        for module in self._modules.values():
            module._boot()
        for cls in reversed(type(self).__mro__):
            for value in list(vars(cls).values()):
                if is_marked(value, "bootstrap"):
                    value(self)
        for one in self._own.values():
            if one._kind is Kind.CONST:
                rows = fitted_all(one._declaration.rows, one._columns, f"{one._declaration.site}: {one._name}")
                self._state_of(one).inserted.update(dict.fromkeys(map(key_of, rows)))

    def _make_states(self) -> dict[str, State]:
        calm = steady(self.collections(), self._rules)
        states: dict[str, State] = {}
        for one in self.collections():
            name = one._name
            contents = Contents(name, one._columns, one._keys)
            if one._kind in (*TABLES, Kind.CONST):
                states[name] = TableState(contents, eager=name in self._wiring.derived and name not in calm)
            elif one._kind in SENT:
                states[name] = SentState(contents)
            else:
                states[name] = ScratchState(contents)
        return states

    def _state_of(self, collection: Collection) -> Any:
        return self._root._states[collection._name]

    # --------------------------------------------------------------------------------------------------- ticking

    def tick(self, times: int = 1) -> None:
        """Take in what waits, derive, send; *times* over.

        Raises :class:`RuleFailed`, :class:`RowMisfit`, :class:`KeyConflict`: the tick then did not happen, and what
        waits still does; :meth:`discard` drops what came from outside.
        """
        self._at_root("tick")
        for _ in range(times):
            self._tick()

    def _tick(self) -> None:
        if self._ticking:
            raise IllegalRule(f"{here()}: tick() within a tick: use a callback, or tick afterwards")
        if "now" in self._wiring.read:
            self._states["now"].inserted = {key_of((self.budtime, self._clock())): None}
        for one in self._files:
            self._read_file(one)
        self._ticking = True
        try:
            self._engine.tick()
        finally:
            self._ticking = False
        self.budtime += 1
        self._post()
        self.halted = self.halted or bool(self._states["halt"].contents.rows)
        for name, callback in list(self._callbacks):
            rows = list(self.collection(name))
            if rows:
                callback(rows)

    def _post(self) -> None:
        for one, state in self._senders:
            if state.sending.rows:
                for row in list(state.sending.rows):
                    if one._kind is Kind.CHANNEL:
                        assert one._location is not None
                        self.send(natural(row)[one._location], one._name, natural(row))
                    elif one._kind is Kind.LOOPBACK:
                        state.inserted[row] = None
                    else:
                        self._write(str(natural(row)[0]))

    def _read_file(self, one: Collection) -> None:
        assert one._declaration.path is not None
        try:
            text = one._declaration.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RuleFailed(
                f"{one._declaration.site}: {one._name} cannot read {one._declaration.path}: {error}. The tick "
                "did not happen"
            ) from error
        self._state_of(one).inserted = dict.fromkeys(enumerate(text.splitlines()))

    def _nowhere(self, address: Any, channel: str, row: tuple[Any, ...]) -> None:
        if address == self.address:
            self.deliver(channel, [row])
        else:
            self.sent.append((address, channel, row))

    def deliver(self, channel: str, rows: Any) -> None:
        """Let rows arrive in a channel with the next tick."""
        one = self.collection(channel)
        if one._kind is not Kind.CHANNEL:
            raise IllegalRule(f"{channel} is a {one._kind.value}: only channels are delivered to")
        one.insert(rows)

    def fire(self, timer: str | Collection) -> None:
        """Let a periodic fire: it has one more row in the next tick."""
        one = timer if isinstance(timer, Collection) else self.collection(timer)
        if one._kind is not Kind.PERIODIC:
            raise IllegalRule(f"{one._name} is a {one._kind.value}: only a periodic fires")
        self._root._fired += 1
        one.insert([(self._root._fired, self._root._clock())])

    def waits(self) -> bool:
        """Whether another tick would do something: rows wait that were given, deferred or sent to ourselves."""
        return self.budtime == 0 or any(state.waits() for state in self._root._states.values())

    def run(self, limit: int = 1000) -> int:
        """Tick until nothing waits; how many ticks it took.  Raises :class:`IllegalRule` after *limit*."""
        self._at_root("run")
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

    def ask(self, into: str | Collection, rows: Any, out_of: str | Collection, *, limit: int = 1000) -> list[Row]:
        """Insert rows, and tick until another collection has some, which are returned (Bud's ``sync_callback``).

        Raises :class:`IllegalRule` if all comes to rest without any.
        """
        given, wanted = (one if isinstance(one, Collection) else self.collection(one) for one in (into, out_of))
        given.insert(rows)
        for _ in range(limit):
            self.tick()
            if len(wanted):
                return list(wanted)
            if not self.waits():
                break
        raise IllegalRule(
            f"nothing came out of {wanted._name}: everything is at rest, or {limit} ticks were not enough"
        )

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        for state in self._root._states.values():
            state.discard()

    def callback(self, collection: str | Collection, function: Callback) -> Callable[[], None]:
        """Call *function* with the rows at the end of each tick in which there are any; what is returned ends it."""
        one = collection if isinstance(collection, Collection) else self.collection(collection)
        entry = (one._name, function)
        self._root._callbacks.append(entry)
        return lambda: self._root._callbacks.remove(entry)

    def _at_root(self, what: str) -> None:
        if self._root is not self:
            raise BloomDeclaration(f"{what}() is for the program, not for its module {self._prefix[:-1]}")

    # --------------------------------------------------------------------------------------------------- looking

    def collections(self) -> Iterator[Collection]:
        """All collections, those of modules too."""
        yield from self._own.values()
        for module in self._modules.values():
            yield from module.collections()

    def collection(self, name: str) -> Collection:
        """The collection of a name, ``"module.name"`` for one of a module; raises :class:`BloomDeclaration`."""
        found = {one._name[len(self._prefix) :]: one for one in self.collections()}
        if name not in found:
            raise BloomDeclaration(
                f"{here()}: there is no collection {name!r}{meant(name, found)}; there are {listed(found)}"
            )
        return found[name]

    @property
    def statements(self) -> tuple[Rule, ...]:
        """The rules of all blocks, in the order in which they were recorded."""
        return tuple(self._root._rules)

    @property
    def plan(self) -> plan.Program:
        """What the rules are compiled to: relations are called as collections are, deferred ones ``"name <+"``."""
        return self._root._wiring.program

    def stratum(self, collection: str | Collection) -> int:
        """How many points of order lie on the way to a collection."""
        name = collection._name if isinstance(collection, Collection) else self.collection(collection)._name
        return next((one.level for one in self.plan.strata() if name in one.relations), 0)

    def underspecified(self) -> list[tuple[str, str]]:
        """Input interfaces that no rule reads, and output interfaces that no rule writes."""
        read = {found.name for rule in self.statements for found in rule.reads()}
        written = {rule.head for rule in self.statements}
        found = [
            (c._name, "no rule reads it") for c in self.collections() if c._kind is Kind.INPUT and c._name not in read
        ]
        return found + [
            (c._name, "no rule writes it")
            for c in self.collections()
            if c._kind is Kind.OUTPUT and c._name not in written
        ]
