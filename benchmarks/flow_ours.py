"""Our side of the flow benchmarks: the same workloads as circuits."""

from __future__ import annotations

import cProfile
import ctypes
import gc
import json
import os
import pstats
import sys
from collections import deque
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import psutil

from benchmarks.flow_cases import BY_HAND
from benchmarks.flow_data import Change, Data
from benchmarks.flow_hand import ByHand
from benchmarks.flow_side import Engine, measure
from syndicate.flow import Circuit, Columns, ZSet, aggregates, rearranges
from syndicate.flow.stream import Stream


@rearranges
def joined(key: int, left: int, right: int) -> tuple[int, int, int]:
    """A row of the join."""
    return (key, left, right)


@rearranges
def onwards(key: int, path: int, edge: int) -> tuple[int, int]:
    """A path and an edge that begins where it ends."""
    return (path, edge)


def _indexed(circuit: Circuit, name: str) -> Stream:
    return circuit.source(name).index_with(itemgetter(0), itemgetter(1))


def circuit_of(workload: str) -> Circuit:
    """The circuit of a workload."""
    circuit = Circuit()
    if workload == "join":
        circuit.sink("out", _indexed(circuit, "0").join(_indexed(circuit, "1"), joined))
    elif workload == "group":
        rows = _indexed(circuit, "0")
        circuit.sink("out", rows.aggregate(aggregates.count))
        circuit.sink("sum", rows.aggregate(aggregates.sum))
    elif workload == "distinct":
        circuit.sink("out", circuit.source("0").distinct())
    else:
        edges = circuit.source("0")
        by_start = edges.index_with(itemgetter(0), itemgetter(1))
        circuit.sink(
            "out",
            circuit.recursive(
                lambda paths: edges + paths.index_with(itemgetter(1), itemgetter(0)).join(by_start, onwards)
            ),
        )
    return circuit


class Ours(Engine):
    """A circuit, stepped."""

    def __init__(self, workload: str) -> None:
        super().__init__(workload)
        self.circuit = circuit_of(workload)
        self.given: list[Any] = []
        self.totals: dict[str, dict[Any, int]] = {}

    def ready(self, changes: list[Change]) -> dict[str, dict[Any, int]]:
        """Elements and weights, as a user has them."""
        return {str(side): self._weights(*change) for side, change in enumerate(changes)}

    def _weights(self, inserted: Any, deleted: Any) -> dict[Any, int]:
        if self.workload != "distinct":
            return {**dict.fromkeys(inserted, 1), **dict.fromkeys(deleted, -1)}
        weights: dict[Any, int] = {}
        for rows, weight in ((inserted, 1), (deleted, -1)):
            for key, _ in rows:
                weights[key] = weights.get(key, 0) + weight
        return weights

    def step(self, changes: dict[str, dict[Any, int]]) -> None:
        """One epoch, and all its changes as Python's objects, which large ones only become when they are read."""
        self.given.append(_read(self.circuit.step(changes)))

    def between(self) -> None:
        """Add up what was given, so that it takes no fresh memory from the next delta; the peers do not keep theirs."""
        for outputs in self.given:
            for sink, changed in outputs.items():
                total = self.totals.setdefault(sink, {})
                for row, weight in changed.items():
                    total[row] = total.get(row, 0) + weight
        self.given.clear()

    def _total(self, sink: str) -> ZSet:
        self.between()
        return ZSet(self.totals.get(sink, {}))

    def rows(self) -> Iterator[tuple[int, ...]]:
        """The integral of all outputs."""
        sums = dict(self._total("sum")) if self.workload == "group" else {}
        for row, weight in self._total("out").items():
            shown = (row,) if self.workload == "distinct" else (*row, sums[row[0]]) if sums else row
            yield from [shown] * weight


class InColumns(Ours):
    """A circuit whose deltas come as columns, and whose changes are left so, as those of the peers are."""

    def ready(self, changes: list[Change]) -> dict[str, Any]:
        """Columns and weights."""
        return {side: self._columns(weights) for side, weights in super().ready(changes).items()}

    def _columns(self, weights: dict[Any, int]) -> Columns:
        elements = list(weights)
        counts = np.array(list(weights.values()), np.int64)
        if self.workload == "distinct":
            return Columns(np.array(elements, np.int64), counts)
        return Columns(list(np.array(elements, np.int64).reshape(-1, 2).T.copy()), counts)

    def step(self, changes: dict[str, Any]) -> None:
        """One epoch."""
        self.given.append(self.circuit.step(changes))


def _read(outputs: Any) -> Any:
    for changed in outputs.values():
        deque(changed.items(), maxlen=0)
    return outputs


class Scratch(Ours):
    """Our engine recomputing: its rows take the delta, and a new circuit is given all of them."""

    def __init__(self, workload: str) -> None:
        super().__init__(workload)
        self.whole: dict[str, dict[Any, int]] = {}

    def step(self, changes: dict[str, dict[Any, int]]) -> None:
        """Everything again."""
        for side, change in changes.items():
            whole = self.whole.setdefault(side, {})
            for row, weight in change.items():
                whole[row] = whole.get(row, 0) + weight
                if not whole[row]:
                    del whole[row]
        self.totals.clear()
        self.given = [_read(circuit_of(self.workload).step(self.whole))]


ENGINES = {"ours": Ours, "scratch": Scratch, "columns": InColumns, BY_HAND: ByHand}


class _Heap(ctypes.Structure):
    """What ``mallinfo2`` of the GNU C library returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def _allocated() -> int:
    """Bytes that are allocated, by Python and by kernels alike if ``PYTHONMALLOC=malloc`` is set; those of the process
    where the C library does not count.
    """
    gc.collect()
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return int(psutil.Process().memory_info().rss)
    count = library.mallinfo2
    count.restype = _Heap
    heap = count()
    return int(heap.uordblks + heap.hblkhd)


def memory(workload: str, rows: int, keys: int) -> dict[str, float]:
    """Bytes that a circuit has: with all rows, when as many have come and gone again, and when all are gone.

    By what the C library counts, as native kernels hold what ``tracemalloc`` does not see; the outputs are not kept.
    A circuit gives memory back every few steps, and what steps share at the second time: so some without a change
    follow.
    """
    data = Data(workload, rows, keys)
    ready = Ours(workload).ready
    circuit = circuit_of(workload)
    start = ready([(inserted, []) for inserted in data.start])
    found: dict[str, float] = {}

    def measured(name: str) -> None:
        found[name] = float(_allocated() - before)

    before = _allocated()
    circuit.step(start)
    measured("loaded")
    for _ in range(10):
        gone = data.clear(0.1)
        circuit.step(ready(gone))
        circuit.step(ready([(deleted, []) for _, deleted in gone]))
        for side, (_, deleted) in zip(data.now, gone, strict=True):
            side.extend(deleted)
    measured("churned")
    for share in (0.5, 0.5, 1.0):
        circuit.step(ready(data.clear(share)))
    for _ in range(16):
        circuit.step({})
    measured("emptied")
    return found


def profiled(workload: str, rows: int, keys: int, delta: int, deltas: int, **_: float) -> pstats.Stats:
    """The steps of a case under cProfile, without the preload."""
    data = Data(workload, rows, keys)
    side = Ours(workload)
    side.load(side.ready([(inserted, []) for inserted in data.start]))
    changes = [side.ready(data.delta(delta)) for _ in range(deltas)]
    profiler = cProfile.Profile()
    profiler.enable()
    for change in changes:
        side.step(change)
    profiler.disable()
    return pstats.Stats(profiler)


def main() -> None:
    """Measure what the command line says: an engine, or ``memory``, and the arguments of a case as JSON."""
    engine, arguments = sys.argv[1], json.loads(sys.argv[2])
    if engine == "memory" and os.environ.get("PYTHONMALLOC") != "malloc":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONMALLOC": "malloc"})  # noqa: S606
    sizes = [arguments.pop(name) for name in ("workload", "rows", "keys")]
    figures = memory(*sizes) if engine == "memory" else measure(ENGINES[engine], Data(*sizes), **arguments)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
