"""Ticks: pending changes in, one step of the circuit, new rows out.

1. Deletions, then insertions, then what arrived, are told to the circuit as one change.
2. The circuit steps.  Where a table would lose rows that it must keep, these are given and it steps again.
3. Keys are checked; what breaks them takes the steps back: the tick did not happen.
4. What changed is taken in, rows of ``<~`` are sent, callbacks are called.

Source: reference/bloom.md, 1.8; DESIGN, decision 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syndicate.bloom.state import NOTHING, Delta, ScratchState, SentState, TableState
from syndicate.bloom.store import Store
from syndicate.bloom.wiring import Wiring
from syndicate.errors import IllegalRule, RowMisfit, RuleFailed, StepFailed, SyndicateError
from syndicate.flow import Circuit
from syndicate.flow.element import Mixed, Typed, plus
from syndicate.flow.zset import ZSet

State = TableState | ScratchState

OPERATORS = ("<+", "<-", "<+-", "<~")


class Ticking:
    """The circuit of a program, and the states of its collections."""

    def __init__(
        self, wiring: Wiring, states: Mapping[str, State], durable: Sequence[str] = (), store: Store | None = None
    ) -> None:
        """Of a wired program, whose *durable* tables are kept in a *store*."""
        self.durable, self.store = durable, store
        self.circuit: Circuit | None = None if wiring.circuit is None else wiring.circuit.circuit
        self.states = dict(states)
        self.sources = frozenset(self.circuit.sources) if self.circuit is not None else frozenset()
        sinks = wiring.sinks
        self.facts: Mapping[str, Delta] | None = None
        self.sunk = {name: state for name, state in self.states.items() if name in sinks}
        self.of = {f"{name} {op}": name for name in self.states for op in OPERATORS} | {
            name: name for name in self.states
        }
        self.deferred = {
            name: [(op, f"{name} {op}") for op in OPERATORS if f"{name} {op}" in sinks] for name in self.states
        }

    def tick(self) -> None:
        """One tick; raises :class:`RuleFailed`, :class:`RowMisfit`, :class:`KeyConflict`, and is then as before."""
        if self.facts is None:
            self.facts = self._step({}, [])
        awake = {name: state for name, state in self.states.items() if not state.still()}
        fed = {name: delta for name, state in awake.items() if (delta := state.prepare())}
        told: list[Mapping[str, Delta]] = []
        try:
            out = self._sum(self.facts, self._step({name: fed[name] for name in fed if name in self.sources}, told))
            while lost := self._lost(out):
                for name, rows in lost.items():
                    fed[name] = {**fed.get(name, {}), **rows}
                out = self._sum(out, self._step(lost, told))
            for sink in out:
                name = self.of[sink]
                awake[name] = self.states[name]
            changes = {name: (out if name in self.sunk else fed).get(name, NOTHING) for name in awake}
            for name, state in awake.items():
                state.contents.checked(changes[name])
                if isinstance(state, SentState):
                    state.sending.checked(out.get(f"{name} <~", NOTHING))
            if self.store is not None and (kept := {n: changes[n] for n in self.durable if changes.get(n)}):
                self.store.write(kept)
        except SyndicateError:
            self._take_back(told)
            raise
        self.facts = {}
        for name, state in awake.items():
            later = {op: out[sink] for op, sink in self.deferred[name] if sink in out}
            state.commit(fed.get(name, NOTHING), changes[name], later)

    @staticmethod
    def _sum(one: Mapping[str, Delta], other: Mapping[str, Delta]) -> dict[str, Delta]:
        return {name: plus(one.get(name, {}), other.get(name, {})) for name in {**one, **other}}

    def _lost(self, out: Mapping[str, Delta]) -> dict[str, Delta]:
        return {
            name: dict.fromkeys(rows, 1)
            for name, state in self.sunk.items()
            if isinstance(state, TableState) and name in out and (rows := state.lost(out[name]))
        }

    def _step(self, deltas: Mapping[str, Delta], told: list[Mapping[str, Delta]]) -> dict[str, Delta]:
        if self.circuit is None:
            return {}
        try:
            out = self.circuit.step({name: zset(delta) for name, delta in deltas.items()})
        except StepFailed as error:
            cause = error.__cause__
            if isinstance(cause, (RuleFailed, RowMisfit, IllegalRule)):
                raise cause from cause.__cause__
            raise
        told.append(deltas)
        return {name: change.batch for name, change in out.items() if len(change)}

    def _take_back(self, told: Sequence[Mapping[str, Delta]]) -> None:
        """Tell the circuit the opposite: what it derives depends on nothing but the sum of what it was told."""
        back: dict[str, Delta] = {}
        for deltas in told:
            back = self._sum(back, deltas)
        if self.circuit is not None and back:
            self.circuit.step({name: -zset(delta) for name, delta in back.items()})


def zset(delta: Delta) -> ZSet:
    """A change for the circuit."""
    return ZSet.adopt(Mixed(delta) if any(type(row) is Typed for row in delta) else dict(delta))
