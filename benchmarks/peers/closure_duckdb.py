"""DuckDB: a recursive query in memory."""

# mypy: ignore-errors

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
import graphs
from closure_side import answer
from flow_data import closure as oracle

QUERY = """CREATE TABLE path AS WITH RECURSIVE path(a, b) AS
           (SELECT a, b FROM edge UNION SELECT path.a, edge.b FROM path JOIN edge ON path.b = edge.a)
           SELECT a, b FROM path"""


def closed(edges):
    """The count of a table that the query fills; the edges go in as columns."""
    base = duckdb.connect()
    base.execute("CREATE TABLE edge (a BIGINT, b BIGINT)")
    given = dict(zip("ab", np.array(edges, dtype=np.int64).T.copy(), strict=True))
    base.execute("INSERT INTO edge SELECT a, b FROM given")
    del given
    base.execute(QUERY)
    count = base.execute("SELECT count(*) FROM path").fetchone()[0]
    return count, base.execute("SELECT a, b FROM path").fetchall


answer(closed, graphs, oracle)
