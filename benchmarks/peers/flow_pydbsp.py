"""pydbsp, incremental: its join, group-by and reachability, with integrals of its own, compacted between deltas.

It is MIT; it needs Python 3.12, so it has an environment of its own.  Join and distinct are wired by hand with one axis
of time, which is faster than the library's own of two axes, and gives the same at the root.
"""

# mypy: ignore-errors
# ruff: noqa: D102  # Engine says what they do

from __future__ import annotations

import sys
from operator import itemgetter
from pathlib import Path

from pydbsp.circuit import Circuit
from pydbsp.compute import ComputeCtx
from pydbsp.core import Antichain, dbsp_time
from pydbsp.evaluate import Evaluator
from pydbsp.indexed_relational_operators import (
    DeltaLiftedDeltaLiftedGroupBy,
    IndexedIncrementalReachabilityBody,
    LiftIndex,
    LiftLiftIndex,
)
from pydbsp.indexed_zset import IndexedZSetAddition, sort_merge_join
from pydbsp.operator import Delay, Input, Integrate, Lift2, LiftStreamIntroduction
from pydbsp.storage import DictStorage
from pydbsp.zset import ZSet, ZSetAddition
from pydbsp.zset.functions.binary import H

sys.path.append(str(Path(__file__).parents[1]))
from flow_data import Data
from flow_side import Engine, answer


class PyDBSP(Engine):
    """A circuit with its evaluator."""

    def __init__(self, workload):
        super().__init__(workload)
        self.group = ZSetAddition()
        self.tick = -1
        self.given = []
        axes = 2 if workload in ("group", "closure") else 1
        self.evaluator = Evaluator(
            circuit=Circuit(), storage=DictStorage(), ctx=ComputeCtx(lattice=dbsp_time(axes)), group=self.group
        )
        self.circuit = self.evaluator.circuit
        self.sources = [self._source(1) for _ in range(2 if workload == "join" else 1)]
        getattr(self, "_" + workload)()

    def _source(self, axes):
        return Input(frontier=Antichain(dbsp_time(axes))).connect(self.circuit, ())

    def _add(self, operator, *inputs):
        return operator.connect(self.circuit, inputs)

    def _join(self):
        """The three terms of the join, at one axis: a with the old B, the old A with b, a with b."""
        group = IndexedZSetAddition(self.group, itemgetter(0))
        a, b = (self._add(LiftIndex(indexer=itemgetter(0)), source) for source in self.sources)
        whole, past = self._add(Integrate(group=group), a), self._add(Integrate(group=group), b)
        past = self._add(Delay(group=group), past)
        term = Lift2(op=lambda x, y: sort_merge_join(x, y, lambda k, left, right: (k, left[1], right[1])))
        self.out = self._add(Lift2(op=self.group.add), self._add(term, a, past), self._add(term, whole, b))

    def _group(self):
        lifted = self._add(LiftStreamIntroduction(group=self.group), self.sources[0])
        self.out = self._add(
            DeltaLiftedDeltaLiftedGroupBy(
                aggregate=lambda items: (sum(w for _, w in items), sum(row[1] * w for row, w in items)),
                group=IndexedZSetAddition(self.group, itemgetter(0)),
                out_group=ZSetAddition(),
            ),
            self._add(LiftLiftIndex(indexer=itemgetter(0)), lifted),
        )

    def _distinct(self):
        past = self._add(Delay(group=self.group), self._add(Integrate(group=self.group), self.sources[0]))
        self.out = self._add(Lift2(op=H), past, self.sources[0])

    def _closure(self):
        self.state = self._source(2)
        self.deepest = -1
        self.out = self._add(IndexedIncrementalReachabilityBody(edge_group=self.group), self.sources[0], self.state)

    def ready(self, changes):
        found = []
        for inserted, deleted in changes:
            if self.workload == "distinct":
                weights = {}
                for rows, weight in ((inserted, 1), (deleted, -1)):
                    for key, _ in rows:
                        weights[key] = weights.get(key, 0) + weight
                found.append(ZSet({key: weight for key, weight in weights.items() if weight}))
            else:
                found.append(ZSet({**dict.fromkeys(inserted, 1), **dict.fromkeys(deleted, -1)}))
        return found

    def step(self, changes):
        self.tick += 1
        for source, delta in zip(self.sources, changes, strict=True):
            self.evaluator.push(source, delta, (self.tick,))
        if self.workload == "closure":
            self._saturate()
        else:
            time = (self.tick, 0) if self.workload == "group" else (self.tick,)
            self.given.append(self.evaluator.read(self.out, time))

    def _saturate(self):
        """Each iteration's change is the state of the next, until nothing changes, nor did in any earlier epoch."""
        iteration = 0
        while True:
            change = self.evaluator.read(self.out, (self.tick, iteration))
            self.evaluator.push(self.state, change, (self.tick, iteration))
            self.given.append(change)
            if change.is_identity() and iteration > self.deepest:
                break
            iteration += 1
        self.deepest = max(self.deepest, iteration)

    def between(self):
        if self.workload != "closure":
            self.evaluator.compact()

    def rows(self):
        total = {}
        for change in self.given:
            for row, weight in change.inner.items():
                total[row] = total.get(row, 0) + weight
        for row, weight in total.items():
            shown = (row[0], *row[1]) if self.workload == "group" else (row,) if self.workload == "distinct" else row
            yield from [shown] * weight


answer(PyDBSP, Data)
