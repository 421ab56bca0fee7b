"""Ticks: pending changes in, one step of the circuit, new rows out.

1. Deletions, then insertions, then what arrived, are given to the circuit as one change.
2. The circuit steps.  Where a table would lose rows that it must keep, these are given and it steps again.
3. Keys are checked; what breaks them takes the steps back: the tick did not happen.
4. What changed is taken in, rows of ``<~`` are sent (:class:`~syndicate.bloom.tick.ticking.Sending`), callbacks are
   called.

Where lattices are in play, the circuit steps as often as these grow (:mod:`~syndicate.bloom.tick.lattice_fixpoint`).
A tick that finds lattice values in rows of a collection where nobody knew of any is taken back, the program is wired
again, and the tick starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field

from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Declaration, Kind, Seal
from syndicate.bloom.rules.function import LatticeFound, coerced_row
from syndicate.bloom.rules.symbols import Head
from syndicate.bloom.state.keyed_rows import TickChanges
from syndicate.bloom.state.state import NOTHING, CellState, Delta, Merged, RowState, SentState, State, TableState
from syndicate.bloom.state.store import Store
from syndicate.bloom.tick.lattice_fixpoint import LatticeFixpoint
from syndicate.bloom.tick.wiring import Wiring
from syndicate.errors import (
    EndlessLoop,
    IllegalRule,
    KeyConflict,
    LatticeAsKey,
    ProgramStopped,
    RowMisfit,
    RuleFailed,
    StepFailed,
    UnhashableElement,
)
from syndicate.flow import Circuit
from syndicate.flow.element import Key, Mixed, Typed, key_of, natural, ordered, plus
from syndicate.flow.zset import ZSet
from syndicate.plan.lowering import Engine
from syndicate.plan.rules import Rule
from syndicate.values.value import Value

Inspect: TypeAlias = Callable[[Mapping[str, Mapping[Value, int]], Mapping[str, Delta]], object]
"""It learns what changed in a tick, and what is deferred and sent."""

OPERATORS = ("<+", "<-", "<+-", "<~")


@define(eq=False)
class Sealed:
    """What has been sealed of a table; *of* and *by* are the places of the columns of a seal."""

    seal: Seal
    of: tuple[int, ...]
    by: tuple[int, ...]
    closed: set[Key] = field(factory=set)

    @classmethod
    def resolve(cls, seal: Seal, collections: Mapping[str, Head]) -> Sealed:
        """Of a seal that is of some of the *collections*."""

        def places(name: str, at: int) -> tuple[int, ...]:
            return tuple(collections[name].cols.index(pair[at]) for pair in seal.columns)

        return cls(seal, places(seal.of, 0), places(seal.by, 1))

    def check(self, changes: Mapping[Value, int]) -> None:
        """Raise :class:`RowMisfit` where a row comes or goes that is of what was sealed before."""
        for row, weight in changes.items() if self.closed else ():
            values = natural(row)
            if key_of(tuple(values[place] for place in self.of)) in self.closed:
                columns = zip(self.seal.columns, self.of, strict=True)
                entry = " and ".join(f"{name} = {values[at]!r}" for (name, _), at in columns)
                raise RowMisfit(
                    f"{self.seal.site}: {self.seal.of} is sealed{f' for {entry}' if entry else ''}, by {self.seal.by}, "
                    f"and {values!r} {'comes' if weight > 0 else 'goes'} after that. The tick did not happen"
                )

    def learn(self, changes: Mapping[Value, int]) -> None:
        """Take note of what has been sealed in a tick."""
        for row, weight in changes.items():
            if weight > 0:
                values = natural(row)
                self.closed.add(key_of(tuple(values[place] for place in self.by)))


MakeEngine: TypeAlias = Callable[[Circuit], Engine]


class Ticking:
    """The circuit of a program, and the states of its collections."""

    def __init__(
        self,
        wiring: Wiring,
        states: Mapping[str, State],
        durable: Sequence[str] = (),
        store: Store | None = None,
        *,
        rewiring: Callable[[str, frozenset[str]], Wiring | None] = lambda name, columns: None,
        naive: bool = False,
        engine: MakeEngine | None = None,
        seals: Sequence[Sealed] = (),
    ) -> None:
        """Of a wired program, whose *durable* tables are kept in a *store*.

        *rewiring* wires it again when a collection turns out to hold lattice values; *naive* applies methods of
        lattices to whole values each time; *engine* makes what runs the circuit, which does it itself otherwise.
        *seals* may not be broken.
        """
        self.seals = seals
        self.engine = engine
        self.runner: Engine | None = None
        self.durable, self.store, self.rewiring, self.naive = durable, store, rewiring, naive
        self.changes: Mapping[str, Mapping[Value, int]] = {}
        self.began = self.broken = False
        self.noticed: dict[str, frozenset[str]] = {}
        self.inspect: Inspect | None = None
        """Notified of what changed, and what is deferred and sent, before a tick is taken for done: it may raise."""
        self._wire(wiring, states)

    def _wire(self, wiring: Wiring, states: Mapping[str, State]) -> None:
        self.wiring = wiring
        self.circuit: Circuit | None = None if wiring.circuit is None else wiring.circuit.circuit
        self.close()
        self.run: Callable[[dict[str, ZSet]], Mapping[str, ZSet]] | None = None  # the circuit, at its first step
        if self.engine is not None and self.circuit is not None:
            self.runner = self.engine(self.circuit)
        self.states = dict(states)
        self.sources = frozenset(self.circuit.sources) if self.circuit is not None else frozenset()
        sinks = wiring.sinks
        self.facts: Mapping[str, Delta] | None = None
        self.sunk = {name: state for name, state in self.states.items() if name in sinks}
        self.of = {f"{name} {op}": name for name in self.states for op in OPERATORS} | {
            name: name for name in self.states
        }
        self.fixpoint: LatticeFixpoint | None = None
        if wiring.partition is not None:
            self._merge(wiring.partition.merged)
            self.fixpoint = LatticeFixpoint(wiring.partition, self.states, self.sources, naive=self.naive)
            self.of |= dict.fromkeys(wiring.partition.parts, "")
        self.deferred = {
            name: [(op, f"{name} {op}") for op in OPERATORS if f"{name} {op}" in sinks] for name in self.states
        }

    def _merge(self, merged: Mapping[str, frozenset[str]]) -> None:
        for name in merged:
            state = self.states[name]
            if not isinstance(state, CellState) and not isinstance(state.contents, Merged):
                state.merge(self.wiring.lattices.get(name, {}))

    def notice(self, name: str, columns: Iterable[str]) -> None:
        """Rows that were given from outside hold lattice values."""
        self.noticed[name] = frozenset(columns)

    def learn(self, name: str, columns: frozenset[str]) -> bool:
        """Wire the program again, now that a collection is known to hold lattice values; whether that changed it."""
        wiring = self.rewiring(name, columns)
        if wiring is None:
            return False
        while wiring is not None:
            try:
                self._rewire(wiring)
            except LatticeFound as more:  # of another collection, when the new circuit was given what there is
                wiring = self.rewiring(more.name, more.columns)
                if wiring is None:
                    raise
            except BaseException:  # neither the old circuit nor the new one
                self.broken = True
                raise
            else:
                break
        return True

    def _rewire(self, wiring: Wiring) -> None:
        inputs = {
            name: state.circuit_inputs()
            for name, state in self.states.items()
            if not isinstance(state, CellState) and name not in wiring.merged
        }
        self._wire(wiring, self.states)
        self.facts = None
        if self.began:  # the new circuit is given what the old one was, and what comes out of it is known
            self.facts = {}
            steps: list[Mapping[str, Delta]] = []
            fixpoint = self.fixpoint
            assert fixpoint is not None
            fixpoint.take_changes(
                self._step({name: rows for name, rows in inputs.items() if name in self.sources and rows}, steps)
            )
            fixpoint.replay(lambda deltas: fixpoint.take_changes(self._step(deltas, steps)))

    def tick(self) -> None:
        """One tick; raises :class:`RuleFailed`, :class:`RowMisfit`, :class:`KeyConflict`, and is then as before."""
        if self.broken:
            raise ProgramStopped(
                "an earlier tick was interrupted half-way, and could not be taken back: make the program again"
            )
        for name, columns in list(self.noticed.items()):  # another thread may notice more meanwhile
            self.learn(name, columns)
            if self.noticed.get(name) is columns:
                del self.noticed[name]
        while True:
            try:
                self._tick()
            except LatticeFound as found:
                if not self.learn(found.name, found.columns):
                    raise
                continue
            return

    def _tick(self) -> None:
        if self.facts is None:
            self.facts = self._step({}, [])
        awake = {name: state for name, state in self.states.items() if not state.still()}
        fed = {name: delta for name, state in awake.items() if (delta := state.prepare())}
        steps: list[Mapping[str, Delta]] = []
        fixpoint = self.fixpoint
        try:
            grown: Mapping[str, Delta] = {}
            if fixpoint is not None:
                grown = fixpoint.begin(fed)
                for name in fixpoint.merged:
                    fed.pop(name, None)
                fixpoint.take_changes({name: delta for name, delta in fed.items() if name not in self.sunk})
                fixpoint.take_changes(self.facts)
            first = {name: fed[name] for name in fed if name in self.sources} | dict(grown)
            out = self._settle(first, dict(self.facts), fed, steps)
            if fixpoint is not None:
                fixpoint.run(lambda deltas: self._settle(deltas, out, fed, steps))
            for sink in out:
                name = self.of[sink]
                if name:
                    awake[name] = self.states[name]
            changes = {name: (out if name in self.sunk else fed).get(name, NOTHING) for name in awake}
            if fixpoint is not None:
                for name in fixpoint.merged:
                    if self._is_followed(name):
                        changes[name] = fixpoint.changes(name)
                        awake[name] = self.states[name]
                awake |= fixpoint.cells
            self._check(awake, changes, out)
            shown: Mapping[str, Mapping[Value, int]] = changes
            if fixpoint is not None:
                shown = TickChanges({name: delta for name, delta in changes.items() if delta}, fixpoint.later())
            if self.inspect is not None:
                self.inspect(shown, out)
            if self.store is not None and (entries := self._to_store(changes)):
                self.store.write(entries)
        except Exception:
            self._undo(steps)
            raise
        except BaseException:  # Ctrl-C, in the midst of a step
            self.broken = True
            raise
        self.changes = shown
        self.facts, self.began = {}, True
        for name, state in awake.items():
            later = {op: out[sink] for op, sink in self.deferred[name] if sink in out}
            state.commit(fed.get(name, NOTHING), changes.get(name, NOTHING), later)
        if fixpoint is not None:
            fixpoint.commit()
        for seal in self.seals:
            seal.learn(changes.get(seal.seal.by, NOTHING))

    def _check(
        self, awake: Mapping[str, State], changes: Mapping[str, Mapping[Value, int]], out: Mapping[str, Delta]
    ) -> None:
        for seal in self.seals:
            seal.check(changes.get(seal.seal.of, NOTHING))
        for name, state in awake.items():
            if isinstance(state, CellState):
                continue
            try:
                state.contents.checked(changes.get(name, NOTHING))
                if isinstance(state, SentState):
                    state.sending.checked(out.get(f"{name} <~", NOTHING))
            except KeyConflict:
                raise self._conflict(name, state, changes, out) from None
            if self.wiring.lattices.get(name):
                self._check_deferred(name, state, out)

    def _conflict(
        self, name: str, state: RowState, changes: Mapping[str, Mapping[Value, int]], out: Mapping[str, Delta]
    ) -> KeyConflict:
        """The same of several conflicts, in whatever order the rows come."""
        try:
            state.contents.checked(ordered(changes.get(name, NOTHING)))
            if isinstance(state, SentState):
                state.sending.checked(ordered(out.get(f"{name} <~", NOTHING)))
        except KeyConflict as error:
            text = str(error)
        sites = self._sites(name)
        return KeyConflict(f"{text}. The rules: {', '.join(sites)}" if sites else text)

    def _to_store(self, changes: Mapping[str, Mapping[Value, int]]) -> dict[str, Mapping[Value, int]]:
        """What is to be stored: the changes of durable tables, and the rows of an earlier run that never came back."""
        entries = {name: changes[name] for name in self.durable if changes.get(name)}
        for name in self.durable:
            state = self.states[name]
            if isinstance(state, TableState) and state.dropped:
                entries[name] = {**dict.fromkeys(state.dropped, -1), **entries.get(name, {})}
        return entries

    def _sites(self, name: str) -> list[str]:
        return [rule.site for rule in self.wiring.rules if rule.head == name]

    def _check_deferred(self, name: str, state: State, out: Mapping[str, Delta]) -> None:
        """What the next tick is to merge must be of the lattices declared: else no tick could happen any more."""
        for _, sink in self.deferred[name]:
            for row, weight in out.get(sink, NOTHING).items():
                if weight > 0:
                    where = f"{', '.join(self._sites(name))}: {name}"
                    coerced_row(natural(row), state.contents.columns, self.wiring.lattices[name], where)

    def _is_followed(self, name: str) -> bool:
        """Whether anybody asks what has changed of a merged collection."""
        state = self.states[name]
        deletes = any(op == "<-" for op, _ in self.deferred[name])
        return name in self.durable or (isinstance(state, TableState) and deletes)

    def _settle(
        self,
        deltas: Mapping[str, Delta],
        out: dict[str, Delta],
        fed: dict[str, Delta],
        steps: list[Mapping[str, Delta]],
    ) -> dict[str, Delta]:
        """Step, and again as long as tables would lose rows; *out* is what has come out in this tick, and grows."""
        while deltas:
            results = self._step(deltas, steps)
            if self.fixpoint is not None:
                self.fixpoint.take_changes(results)
            for name, delta in results.items():
                out[name] = plus(out[name], delta) if name in out else delta
            lost: dict[str, Delta] = {}
            for name, state in self.sunk.items():
                if name in out and isinstance(state, TableState) and (rows := state.lost(out[name])):
                    lost[name] = dict.fromkeys(rows, 1)
                    fed[name] = {**fed.get(name, {}), **lost[name]}
            deltas = lost
        return out

    @staticmethod
    def _sum(one: Mapping[str, Delta], other: Mapping[str, Delta]) -> dict[str, Delta]:
        return {name: plus(one.get(name, {}), other.get(name, {})) for name in {**one, **other}}

    def _step(self, deltas: Mapping[str, Delta], steps: list[Mapping[str, Delta]]) -> dict[str, Delta]:
        if self.circuit is None:
            return {}
        try:
            run = self.run or self._begin(self.circuit)
            out = run({name: zset(delta) for name, delta in deltas.items()})
        except StepFailed as error:
            cause = error.__cause__
            if isinstance(cause, (RuleFailed, RowMisfit, IllegalRule, LatticeFound, LatticeAsKey)):
                raise cause from cause.__cause__
            raise self._failed(error) from cause
        except EndlessLoop as error:
            raise self._restless(error) from error
        except UnhashableElement as error:
            rule = self._rule(error.label)
            where = str(error) if rule is None else f"{rule.origin}: {rule.head}: {error.reason}"
            raise RowMisfit(f"{where} The tick did not happen") from error
        steps.append(deltas)
        return {name: change.batch for name, change in out.items() if change.batch}

    def _rule(self, label: str) -> Rule | None:
        """The rule that a node of the circuit belongs to."""
        return self.wiring.circuit.program.labelled(label) if self.wiring.circuit is not None else None

    def _failed(self, error: StepFailed) -> RuleFailed:
        """The error for a function in the circuit that raised: it names the rule, in place of the node."""
        rule, at = self._rule(error.label), f" at {error.element}" if error.element else ""
        if rule is None:
            node = f'{error.operator} "{error.label}" raised ' if error.operator else ""
            return RuleFailed(f"{node}{error.reason}{at}. The tick did not happen")
        return RuleFailed(
            f"{rule.origin}: {rule.head}: its {error.operator} raised {error.reason}{at}. The tick did not happen",
            sites=[rule.origin],
            relations=[rule.head],
        )

    def _restless(self, error: EndlessLoop) -> RuleFailed:
        """The error for rules that derive rows for ever."""
        circuit = self.wiring.circuit
        strata = circuit.program.strata() if circuit is not None else ()
        names = next((one.relations for one in strata if ", ".join(one.relations) == error.label), ())
        sites = [*dict.fromkeys(site for name in names for site in self._sites(name))]
        return RuleFailed(
            f"{', '.join(sites)}: {' and '.join(names)} did not come to rest within {error.iterations} rounds, since "
            "these rules make new rows of their own: bound them by a filter(), or let each tick take one step, by <+. "
            "The tick did not happen",
            sites=sites,
            relations=names,
        )

    def _begin(self, circuit: Circuit) -> Callable[[dict[str, ZSet]], Mapping[str, ZSet]]:
        """What steps the circuit, from its first step on."""
        runner = self.runner
        if runner is None:
            self.run = circuit.engine.step
        else:
            self.run = lambda deltas: {name: change.to_zset() for name, change in runner.step(deltas).items()}
        return self.run

    def close(self) -> None:
        """Let the engine go."""
        if self.runner is not None:
            self.runner.close()
            self.runner = None

    def _undo(self, steps: Sequence[Mapping[str, Delta]]) -> None:
        """Give the circuit the opposite: what it derives depends on nothing but the sum of what it was given."""
        back: dict[str, Delta] = {}
        for deltas in steps:
            back = self._sum(back, deltas)
        try:
            if self.circuit is not None and back:
                run = self.run or self._begin(self.circuit)
                run({name: -zset(delta) for name, delta in back.items()})
        except BaseException:  # such as a function that no longer gives what it gave
            self.broken = True
            raise
        finally:
            if self.fixpoint is not None:
                self.fixpoint.undo()


def zset(delta: Delta) -> ZSet:
    """A change for the circuit."""
    return ZSet.adopt(Mixed(delta) if Typed in map(type, delta) else dict(delta))


# -------------------------------------------------------------------------------------------------------------- sending


Send: TypeAlias = Callable[[Value, str, tuple[Value, ...]], None]
"""Called with an address, the name of a channel and a row."""


@define(eq=False)
class Sending:
    """What is sent, and where it goes: *send* takes rows of channels until another is set, *write* terminals' lines."""

    send: Send
    write: Callable[[str], None]
    sent: list[tuple[Value, str, tuple[Value, ...]]] = field(factory=list)
    senders: list[tuple[Collection, str, Declaration, SentState]] = field(factory=list)
    """What sends: a collection, its name, declaration and state."""

    def post(self) -> None:
        """Let the rows of a tick go out."""
        for _, name, declared, state in self.senders:
            for row in state.outgoing() if state.posted or state.sending.rows else ():
                if declared.kind is Kind.CHANNEL:
                    assert declared.location is not None
                    self.send(natural(row)[declared.location], name, natural(row))
                elif declared.kind is Kind.LOOPBACK:
                    state.inserted[row] = None
                else:
                    self.write(str(natural(row)[0]))

    def channel(self, name: Value) -> Collection | None:
        """The channel of a name that somebody has sent."""
        channels = (one for one, own, declared, _ in self.senders if own == name and declared.kind is Kind.CHANNEL)
        return next(channels, None)
