"""DuckDB: a recursive query where one relation is recursive, linearly; else new rows, round after round, in tables."""

# mypy: ignore-errors

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from closure_side import measured
from recursion import side

SAME = """CREATE TABLE same AS WITH RECURSIVE same(a, b) AS
          (SELECT x.b, y.b FROM parent x JOIN parent y ON x.a = y.a WHERE x.b <> y.b
           UNION SELECT x.b, y.b FROM same JOIN parent x ON x.a = same.a JOIN parent y ON y.a = same.b)
          SELECT a, b FROM same"""

BEGIN = """
    CREATE TABLE points (a BIGINT, b BIGINT); CREATE TABLE field (a BIGINT, b BIGINT, c BIGINT);
    CREATE TABLE recent AS SELECT DISTINCT a, b FROM new;
    INSERT INTO points SELECT a, b FROM recent;
"""
ROUND = """
    CREATE OR REPLACE TABLE filled AS
        (SELECT base.b AS a, store.b AS b, source.b AS c FROM recent base JOIN store ON store.a = base.a
             JOIN points source ON source.a = store.c
         UNION SELECT base.b, store.b, source.b FROM recent source JOIN store ON store.c = source.a
             JOIN points base ON base.a = store.a)
        EXCEPT SELECT a, b, c FROM field;
    INSERT INTO field SELECT a, b, c FROM filled;
    CREATE OR REPLACE TABLE recent AS
        (SELECT copy.a AS a, recent.b AS b FROM recent JOIN copy ON copy.b = recent.a
         UNION SELECT load.a, field.c FROM recent JOIN load ON load.b = recent.a
             JOIN field ON field.a = recent.b AND field.b = load.c
         UNION SELECT load.a, filled.c FROM filled JOIN points ON points.b = filled.a
             JOIN load ON load.b = points.a AND load.c = filled.b)
        EXCEPT SELECT a, b FROM points;
    INSERT INTO points SELECT a, b FROM recent;
"""
COUNT = {"same": "SELECT count(*) FROM same", "points": "SELECT count(*) FROM points"}
ROWS = {"same": "SELECT a, b FROM same", "points": "SELECT a, b FROM points"}


def derived(kind, facts):
    """The count of a table that is filled; the facts go in as columns."""
    base = duckdb.connect()
    for name, rows in facts.items():
        columns = "abc"[: len(rows[0])]
        given = dict(zip(columns, np.array(rows, dtype=np.int64).T.copy(), strict=True))
        base.from_query("SELECT * FROM given").create(name)
        del given
    if kind == "same":
        base.execute(SAME)
    else:
        base.execute(BEGIN)
        while base.execute("SELECT count(*) FROM recent").fetchone()[0]:
            base.execute(ROUND)
    count = base.execute(COUNT[kind]).fetchone()[0]
    return count, base.execute(ROWS[kind]).fetchall


side(derived, measured)
