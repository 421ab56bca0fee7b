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

Interface overrides: a class that declares an interface again, and puts its rules before those of an ancestor.

An input interface is written from outside, so that a module which writes its own means another: the interface of the
same name that an ancestor declared.  Likewise an output interface that it reads is the ancestor's.

>>> from syndicate.bloom import Bloom, bloom, interface
>>> class Double(Bloom):
...     inp = interface("input", ["n"], []); out = interface("output", ["n"], [])
...     @bloom
...     def double(self): self.out <= self.inp.map(lambda r: (2 * r.n,))
>>> class OnlyEven(Double):
...     inp = interface("input", ["n"], [])
...     @bloom
...     def choose(self): self.inp <= self.inp.filter(lambda r: r.n % 2 == 0)
>>> p = OnlyEven(); p.inp <= [(1,), (2,)]; p.tick(); sorted(p.out), sorted(p.inp), sorted(p.collection("Double.inp"))
([(n=4)], [(n=1), (n=2)], [(n=2)])

An interface that is declared again without such a rule is the same one.

**How.**  The blocks are run once to find such rules.  If there are any, the ancestor gets a collection of its own,
``Ancestor.name``, and the blocks are run again; each then sees, under the name, what its class means by it.

Source: Alvaro et al. 2011a, "Modularity and Encapsulation"; ``docs/design/bloom.md``, "Modules".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from syndicate import plan
from syndicate.actors.arguments import expect_ref
from syndicate.actors.turn import current
from syndicate.bloom.agent.agent import Agent, write_line
from syndicate.bloom.agent.ports import check_ports
from syndicate.bloom.agent.running import Running
from syndicate.bloom.block import Imported, ProgramClass, blocks_of, definer, is_marked, origin_of
from syndicate.bloom.collection import Collection, loopback, scratch, two_in_one
from syndicate.bloom.declaration import (
    Declaration,
    Kind,
    Namespace,
    Seal,
    SealDeclaration,
    fitted_all,
    here,
    placing,
    raised_at,
)
from syndicate.bloom.event_log import write_log
from syndicate.bloom.insight.plot import plot
from syndicate.bloom.rules.function import watching
from syndicate.bloom.rules.symbols import Head, declaration_of, kind_of
from syndicate.bloom.rules.term import LatticeTerm
from syndicate.bloom.state.inbox import Filter
from syndicate.bloom.state.store import Store
from syndicate.bloom.tick.runtime import Instance, Runtime
from syndicate.bloom.tick.ticking import MakeEngine, Send
from syndicate.drawing import fenced
from syndicate.errors import BloomDeclaration, IllegalRule
from syndicate.flow.element import key_of
from syndicate.outside import time_of_day
from syndicate.plan.algebra import listed, meant
from syndicate.storage.disk import Disk
from syndicate.values.value import Ref, Value

# -------------------------------------------------------------------------------------------------- interface overrides


class InterfaceOverride:
    """The interfaces of one program that several of its classes declare, while its blocks are run."""

    def __init__(self, program: Namespace, instance: Instance) -> None:
        """Find them."""
        self.program, self.instance = program, instance
        self.cls: type | None = None
        self.uses: set[tuple[str, type]] = set()
        self.levels: dict[str, list[type]] = {}
        for name, one in instance.own.items():
            if kind_of(one) in (Kind.INPUT, Kind.OUTPUT):
                declaring = [
                    cls for cls in reversed(type(program).__mro__) if isinstance(vars(cls).get(name), Declaration)
                ]
                if len(declaring) > 1:
                    self.levels[name] = declaring
        self.collections: dict[str, list[Collection]] = {}

    def note(self, head: Head, body: plan.Expression) -> None:
        """See whether a rule that is recorded writes an input of its own, or reads an output."""
        own, prefix = self.instance.own, self.instance.prefix
        name = head.tabname[len(prefix) :]
        if own.get(name) is head and kind_of(head) is Kind.INPUT:
            self._meant(name)
        for read in plan.occurrences(body):
            name = read.name[len(prefix) :]
            one = own.get(name)
            if one is not None and one.tabname == read.name and kind_of(one) is Kind.OUTPUT:
                self._meant(name)

    def _meant(self, name: str) -> None:
        if self.cls is not None and self.cls in self.levels.get(name, ())[1:]:
            self.uses.add((name, self.cls))

    def split(self) -> bool:
        """Make the ancestors' interfaces, if they are needed."""
        instance = self.instance
        for name in {name for name, _ in self.uses}:
            one = instance.own[name]
            chain = [one]
            for cls, below in zip(reversed(self.levels[name]), reversed(self.levels[name][:-1]), strict=False):
                if (name, cls) in self.uses:
                    own = f"{below.__name__}.{name}"
                    full = f"{instance.prefix}{own}"
                    one = instance.own[own] = Collection(full, declaration_of(one), instance.runtime)
                chain.append(one)
            self.collections[name] = chain[::-1]
        return bool(self.collections)

    def run(self, cls: type, block: Callable[[], object]) -> None:
        """Run a block of a class, which may run one of an ancestor."""
        outer, self.cls = self.cls, cls
        self._show()
        try:
            block()
        finally:
            self.cls = outer
            self._show()

    def _show(self) -> None:
        for name, chain in self.collections.items():
            self.program.__dict__[name] = chain[-1] if self.cls is None else self._view(self.cls, name, chain)

    def _view(self, cls: type, name: str, chain: list[Collection]) -> Collection:
        declaring = self.levels[name]
        at = max((at for at, one in enumerate(declaring) if issubclass(cls, one)), default=len(chain) - 1)
        if (name, cls) not in self.uses:
            return chain[at]
        own, below = chain[at], chain[at - 1]
        return two_in_one(own, below) if kind_of(own) is Kind.INPUT else two_in_one(below, own)


# ------------------------------------------------------------------------------------------------------------- programs


_TAKEN: Final = frozenset({"address", "bud_clock", "budtime", "halted", "plan", "send", "sent", "statements"})


class Bloom(Running, metaclass=ProgramClass):
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
    *record* is a file to which each tick is written as it happens: see :mod:`syndicate.bloom.event_log`.

    >>> from syndicate.bloom import bloom, table
    >>> class Reachable(Bloom):
    ...     links = table(["a", "b"])
    ...     paths = table(["a", "b"])
    ...     @bloom
    ...     def rules(self):
    ...         self.paths <= self.links
    ...         self.paths <= (self.links * self.paths).pairs({"b": "a"}).map(lambda link, path: (link.a, path.b))
    >>> program = Reachable()
    >>> program.links.insert([(1, 2), (2, 3)])
    >>> program.tick(); print(sorted(program.paths))
    [(a=1, b=2), (a=1, b=3), (a=2, b=3)]
    """

    halt = scratch(["key"], [])
    localtick = loopback(["col1"], [])
    now = scratch(["tick"], ["time"])

    def __init__(
        self,
        ds: Ref | None = None,
        *,
        address: Value = "localhost",
        clock: Callable[[], float] = time_of_day,
        write: Callable[[str], None] = write_line,
        state: str | Path | Disk | Store | None = None,
        channel_filter: Filter | None = None,
        semi_naive: bool = True,
        engine: MakeEngine | None = None,
        record: str | Path | None = None,
        inputs: Mapping[str, Value] | None = None,
        messages: Mapping[str, Value] | None = None,
        outputs: Mapping[str, Value] | None = None,
        sends: Mapping[str, Value] | None = None,
        _above: Bloom | None = None,
        _name: str = "",
    ) -> None:
        """Make the collections, record the rules and compile them.

        Raises :class:`BloomDeclaration`, :class:`IllegalRule`, :class:`syndicate.errors.Unstratifiable`, with a
        dataspace :class:`syndicate.errors.NotInTurn`, and :class:`syndicate.errors.ScheduleError` if *record* cannot
        be written.
        """
        if ds is not None:  # before anything is opened
            current(type(self).__name__)
            expect_ref(type(self).__name__, ds)
        if _above is not None:
            self._instance = Instance(_above._instance.runtime, f"{_above._instance.prefix}{_name}.")
            self._declare(_above)
            return
        runtime = Runtime(
            type(self).__name__,
            address=address,
            clock=clock,
            write=write,
            channel_filter=channel_filter,
            semi_naive=semi_naive,
            engine=engine,
        )
        self._instance = Instance(runtime)
        self._declare(None)
        self._collect()
        runtime.wire(self._instance.collections(), self._instance.own.values())
        written = {"inputs": inputs, "messages": messages, "outputs": outputs, "sends": sends}
        ports: dict[str, dict[str, Value]] = {what: {} for what in written}
        if any(written.values()):
            ports = check_ports(self._instance, ds, written)
        runtime.open(state, ports["inputs"])
        try:
            if record is not None:
                write_log(runtime, record)
            self._boot()
            if ds is not None:
                runtime.agent = Agent(runtime, ds, ports)
        except BaseException:
            self.close()
            raise

    # --------------------------------------------------------------------------------------------------- making

    def _declare(self, above: Bloom | None) -> None:
        """Make the collections and modules that the classes declare; of a module, *above* has the clock and the end."""
        own, prefix, runtime = self._instance.own, self._instance.prefix, self._instance.runtime
        declarations, modules, seals = _declared(type(self))
        for name, (declaration, cls) in declarations.items():
            if cls is Bloom and above is not None:  # one clock, one end
                self.__dict__[name] = above.__dict__[name]
                continue
            if name.startswith("_") or name in _TAKEN or callable(getattr(Bloom, name, None)):
                raise BloomDeclaration(
                    f"{declaration.site}: a collection cannot be called {name}, as "
                    "something of every program is: choose another name"
                )
            make = LatticeTerm if declaration.kind is Kind.LATTICE else Collection
            collection = cast(Collection, make(f"{prefix}{name}", declaration, runtime))  # a lattice has its methods
            own[name] = self.__dict__[name] = collection
        self._modules: list[Bloom] = []
        for name, imported in modules.items():
            program, _ = origin_of(imported)
            assert issubclass(program, Bloom)
            module = self.__dict__[name] = program(_above=self, _name=name)
            self._modules.append(module)
            self._instance.modules[name] = module._instance
        names = {id(declaration): f"{prefix}{name}" for name, (declaration, _) in declarations.items()}
        for seal in seals:
            if id(seal.of) not in names or id(seal.by) not in names:
                raise BloomDeclaration(f"{seal.site}: a seal is about collections of its own class")
            runtime.seals.append(Seal(names[id(seal.of)], names[id(seal.by)], seal.columns, seal.site))

    def _collect(self) -> None:
        for module in self._modules:
            module._collect()
        rules = self._instance.runtime.rules
        start = len(rules)
        self._blocks = override = InterfaceOverride(self, self._instance)
        self._run_blocks(override)
        if override.uses and override.split():
            del rules[start:]
            self._run_blocks(override)

    def _run_blocks(self, override: InterfaceOverride) -> None:
        runtime = self._instance.runtime
        for name in blocks_of(type(self), "bloom"):
            if hasattr(Bloom, name) or name in _TAKEN:
                raise BloomDeclaration(
                    f"{type(self).__name__}: a block cannot be called {name}, as something of every program is: choose "
                    "another name"
                )
            runtime.block = f"{self._instance.prefix}{name}"
            runtime.collecting, runtime.note = True, override.note if override.levels else None
            try:
                with placing(), watching():
                    override.run(definer(type(self), name), getattr(self, name))
            except NameError as error:
                raise self._unnamed(error, f"self.{error.name}" if error.name in self._instance.own else "") from error
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
                runtime.collecting = False

    def _unnamed(self, error: NameError | AttributeError, remedy: str) -> IllegalRule:
        """The error for a name in a block that means nothing."""
        names = [*self._instance.own, *self._instance.modules]
        said = f"write {remedy}" if remedy else "declare it first"
        return IllegalRule(f"{raised_at(error)}: there is no {error.name}{meant(error.name, names)}: {said}")

    def __setattr__(self, name: str, value: Value) -> None:
        if name in self.__dict__ and name in self._instance.own:
            raise IllegalRule(
                f"{here()}: {name} = ... would put something else in the collection's place: write {name} <= ... for a "
                f"rule, {name}.define(...) for all of a scratch, {name}.insert(rows) for rows from outside"
            )
        object.__setattr__(self, name, value)

    def _boot(self) -> None:
        for module in self._modules:
            module._boot()
        for cls in reversed(type(self).__mro__):
            for value in list(vars(cls).values()):
                if is_marked(value, "bootstrap"):
                    with placing():
                        value(self)
        for one in self._instance.own.values():
            if kind_of(one) is Kind.CONST:
                rows = fitted_all(declaration_of(one).rows, one.cols, f"{declaration_of(one).site}: {one.tabname}")
                self._instance.runtime.row_state(one.tabname).inserted.update(dict.fromkeys(map(key_of, rows)))

    def close(self) -> None:
        """Close the file of durable tables, and the engine."""
        self._instance.runtime.close()

    # --------------------------------------------------------------------------------------------------- ticking

    def tick(self, times: int = 1) -> None:
        """Take in what waits, derive, send; *times* over.

        Raises :class:`RuleFailed`, :class:`RowMisfit`, :class:`KeyConflict`: the tick then did not happen, and what
        waits still does; :meth:`discard` drops what came from outside.  Where the program runs, it ends by that.
        """
        self._instance.check_root("tick")
        runtime = self._instance.runtime
        agent = None if runtime.agent is None else self._agent
        for _ in range(times):
            if agent is not None:
                agent.call(lambda: None, what="tick", tick=True)
            elif runtime.stopped:
                raise runtime.over()
            else:
                runtime.tick()

    @property
    def budtime(self) -> int:
        """How many ticks there have been; raises :class:`IllegalRule` in a rule, which must be joined with ``now``."""
        self._not_in_rule("budtime", "tick")
        return self._instance.runtime.done

    @property
    def bud_clock(self) -> float:
        """The time of this tick, in seconds, for callbacks; the same in all of them.

        Raises :class:`IllegalRule` outside of a tick, and in a rule, which must be joined with ``now``.
        """
        self._not_in_rule("bud_clock", "time")
        runtime = self._instance.runtime
        if not runtime.calling:
            raise IllegalRule(f"{here()}: bud_clock is the time of a tick, and there is none now: use it in a callback")
        if runtime.time is None:
            runtime.time = runtime.clock()
        return runtime.time

    def _not_in_rule(self, what: str, column: str) -> None:
        runtime = self._instance.runtime
        if runtime.collecting or runtime.in_rule():
            raise IllegalRule(
                f"{here()}: {what} cannot be used in a rule: its functions are called for new rows only, and not in "
                f"each tick. Join with now, as in (self.t * self.now).pairs(lambda row, now: (row.k, now.{column}))"
            )

    @property
    def address(self) -> Value:
        """What channels' locations are compared with."""
        return self._instance.runtime.address

    @address.setter
    def address(self, address: Value) -> None:
        self._instance.runtime.address = address

    @property
    def halted(self) -> bool:
        """Whether a rule has ended it."""
        return self._instance.runtime.halted

    @halted.setter
    def halted(self, halted: bool) -> None:
        self._instance.runtime.halted = halted

    @property
    def send(self) -> Send:
        """What takes the rows that channels send."""
        return self._instance.runtime.sending.send

    @send.setter
    def send(self, send: Send) -> None:
        self._instance.runtime.sending.send = send

    @property
    def sent(self) -> list[tuple[Value, str, tuple[Value, ...]]]:
        """What channels have sent to others, as long as nothing else takes it."""
        return self._instance.runtime.sending.sent

    @sent.setter
    def sent(self, sent: list[tuple[Value, str, tuple[Value, ...]]]) -> None:
        self._instance.runtime.sending.sent = sent

    def deliver(self, channel: str, rows: object) -> None:
        """Let rows arrive in a channel with the next tick."""
        self._instance.runtime.deliver(self.collection(channel), rows)

    def fire(self, timer: str | Collection) -> None:
        """Let a periodic fire: it has one more row in the next tick."""
        self._instance.runtime.fire(timer if isinstance(timer, Collection) else self.collection(timer))

    def waits(self) -> bool:
        """Whether another tick would do something: rows wait that were given, deferred or sent to ourselves."""
        return self._instance.runtime.waits()

    def run(self, limit: int = 1000) -> int:
        """Tick until nothing waits; how many ticks it took.  Raises :class:`IllegalRule` after *limit*."""
        self._instance.check_root("run")
        runtime = self._instance.runtime
        if runtime.agent is not None:
            raise IllegalRule(f"{here()}: {type(self).__name__} ticks by itself: use sync_do(fn), or callbacks")
        for done in range(limit):
            if not runtime.waits() or runtime.halted:
                return done
            runtime.tick()
        if not runtime.waits():
            return limit
        busy = [name for name, state in runtime.states.items() if state.waits()]
        raise IllegalRule(
            f"{type(self).__name__} did not come to rest within {limit} ticks: {listed(busy)} still wait; give run() a "
            "greater limit, or see whether a rule feeds itself"
        )

    def discard(self) -> None:
        """Drop what was given from outside for the next tick."""
        self._instance.runtime.discard()

    def _repr_markdown_(self) -> str:
        return fenced(plot(self))


def _declared(
    program: type[Bloom],
) -> tuple[dict[str, tuple[Declaration, type]], dict[str, Imported], list[SealDeclaration]]:
    """What a class and its ancestors declare: collections, each with the class that does, modules, and seals."""
    declarations: dict[str, tuple[Declaration, type]] = {}
    modules: dict[str, Imported] = {}
    seals: list[SealDeclaration] = []
    for cls in reversed(program.__mro__):
        for name, value in vars(cls).items():
            if isinstance(value, Imported):
                if name in modules or name in declarations:
                    raise BloomDeclaration(
                        f"{origin_of(value)[1]}: the module {name} has a name that is taken: choose another"
                    )
                modules[name] = value
            elif isinstance(value, SealDeclaration):
                seals.append(value)
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
    return declarations, modules, seals
