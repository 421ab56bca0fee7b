"""Pathway, incremental and streaming: from handing the rows to its connector until the last call that ends their time.

Its licence is BSL: it is run here, in an environment and a process of its own, and never imported elsewhere.  One
connector serves both sides of the join, so that a delta is one commit and has one time.  Each commit ends with a row of
a key below 0, which changes every result by one row, and so tells which time is that of the commit: where nothing
changes, no end of the time is given.
"""

# mypy: ignore-errors
# ruff: noqa: D102  # Engine says what they do

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

import pathway as pw

sys.path.append(str(Path(__file__).parents[1]))
from flow_data import Data
from flow_side import Engine, answer

SECONDS = 300


class Row(pw.Schema):
    """A row of a side."""

    side: int
    k: int
    v: int


class Connector(pw.io.python.ConnectorSubject):
    """Runs while the engine is wanted."""

    _deletions_enabled = True  # else only where run() itself is seen to delete

    def __init__(self):
        super().__init__()
        self.over = threading.Event()

    def run(self):
        self.over.wait(SECONDS)


class Pathway(Engine):
    """A graph that runs in a thread."""

    def __init__(self, workload):
        super().__init__(workload)
        logging.disable(logging.WARNING)
        self.connector = Connector()
        self.changes = []
        self.commits = 0
        self.time = None
        self.done = threading.Event()
        table = pw.io.python.read(self.connector, schema=Row, autocommit_duration_ms=None)
        sides = [table.filter(table.side == number) for number in (0, 1)]
        result = getattr(self, "_" + workload)(*sides)
        self.names = result.column_names()
        pw.io.subscribe(result, self._changed, on_time_end=self._end)
        self.thread = threading.Thread(target=lambda: pw.run(monitoring_level=pw.MonitoringLevel.NONE), daemon=True)
        self.thread.start()

    def _join(self, left, right):
        return left.join(right, left.k == right.k).select(left.k, a=left.v, b=right.v)

    def _group(self, table, _):
        return table.groupby(table.k).reduce(table.k, n=pw.reducers.count(), total=pw.reducers.sum(table.v))

    def _distinct(self, table, _):
        return table.groupby(table.k).reduce(table.k)

    def _closure(self, table, _):
        edges = table.groupby(table.k, table.v).reduce(table.k, table.v)

        def longer(paths, edges):
            further = paths.join(edges, paths.v == edges.k).select(paths.k, edges.v)
            both = pw.Table.concat_reindex(edges, further)
            return {"paths": both.groupby(both.k, both.v).reduce(both.k, both.v), "edges": edges}

        return pw.iterate(longer, paths=pw.iterate_universe(edges), edges=edges)["paths"]

    def _changed(self, key, row, time, is_addition):
        if row["k"] < 0:
            self.time = time
        else:
            self.changes.append((tuple([row[name] for name in self.names]), is_addition))

    def _end(self, time):
        if self.time is not None and time >= self.time:
            self.time = None
            self.done.set()

    def step(self, changes):
        self.done.clear()
        insert, delete = self.connector.next, self.connector.delete
        for side, (inserted, deleted) in enumerate(changes):
            for k, v in inserted:
                insert(side=side, k=k, v=v)
            for k, v in deleted:
                delete(side=side, k=k, v=v)
        self.commits += 1
        for side in range(len(changes)):
            insert(side=side, k=-2 * self.commits, v=-2 * self.commits - 1)
        self.connector.commit()
        if not self.done.wait(SECONDS):
            raise TimeoutError(f"pathway did not end its time within {SECONDS} s")

    def rows(self):
        self.connector.over.set()
        self.thread.join(30)
        total = {}
        for row, added in self.changes:
            total[row] = total.get(row, 0) + (1 if added else -1)
        for row, weight in total.items():
            yield from [row] * weight


answer(Pathway, Data)
