"""DuckDB, which recomputes: the tables take the delta, and the query is answered again, as columns."""

# mypy: ignore-errors
# ruff: noqa: D102  # Engine says what they do

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from flow_data import Data
from flow_side import Engine, answer

DELETE = [
    "DELETE FROM t0 USING deleted d WHERE t0.k = d.k AND t0.v = d.v",
    "DELETE FROM t1 USING deleted d WHERE t1.k = d.k AND t1.v = d.v",
]
INSERT = ["INSERT INTO t0 SELECT k, v FROM inserted", "INSERT INTO t1 SELECT k, v FROM inserted"]
QUERIES = {
    "join": "SELECT t0.k, t0.v, t1.v FROM t0 JOIN t1 ON t0.k = t1.k",
    "group": "SELECT k, count(*), sum(v)::BIGINT FROM t0 GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM t0",
    "closure": """WITH RECURSIVE paths(a, b) AS (SELECT k, v FROM t0 UNION
                  SELECT paths.a, t0.v FROM paths JOIN t0 ON paths.b = t0.k) SELECT a, b FROM paths""",
}


class DuckDB(Engine):
    """An in-memory database."""

    def __init__(self, workload):
        super().__init__(workload)
        self.base = duckdb.connect()
        for name in ("t0", "t1"):
            self.base.execute(f"CREATE TABLE {name} (k BIGINT, v BIGINT)")

    def ready(self, changes):
        return [(_columns(inserted), _columns(deleted)) for inserted, deleted in changes]

    def step(self, changes):
        for number, (inserted, deleted) in enumerate(changes):
            if deleted is not None:
                self.base.execute(DELETE[number])
            if inserted is not None:
                self.base.execute(INSERT[number])
        self.found = self.base.execute(QUERIES[self.workload]).fetchnumpy()

    def rows(self):
        return zip(*(column.tolist() for column in self.found.values()), strict=True)


def _columns(rows):
    if not rows:
        return None
    table = np.array(rows, dtype=np.int64)
    return {"k": np.ascontiguousarray(table[:, 0]), "v": np.ascontiguousarray(table[:, 1])}


answer(DuckDB, Data)
