"""Polars, which recomputes: the frames take the delta, and the result is made again; the closure semi-naively."""

# mypy: ignore-errors
# ruff: noqa: D102  # Engine says what they do

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

sys.path.append(str(Path(__file__).parents[1]))
from flow_data import Data
from flow_side import Engine, answer

SCHEMA = {"k": pl.Int64, "v": pl.Int64}


class Polars(Engine):
    """Frames."""

    def __init__(self, workload):
        super().__init__(workload)
        self.tables = [pl.DataFrame(schema=SCHEMA), pl.DataFrame(schema=SCHEMA)]

    def ready(self, changes):
        return [tuple(pl.DataFrame(rows, schema=SCHEMA, orient="row") for rows in change) for change in changes]

    def step(self, changes):
        for number, (inserted, deleted) in enumerate(changes):
            table = self.tables[number]
            if len(deleted):
                table = table.join(deleted, on=["k", "v"], how="anti")
            if len(inserted):
                table = pl.concat([table, inserted])
            self.tables[number] = table
        self.found = getattr(self, self.workload)(*self.tables)

    def join(self, left, right):
        return left.join(right, on="k")

    def group(self, table, _):
        return table.group_by("k").agg(pl.len(), pl.col("v").sum())

    def distinct(self, table, _):
        return table.select("k").unique()

    def closure(self, edges, _):
        paths = new = edges
        while len(new):
            longer = new.join(edges, left_on="v", right_on="k").select("k", pl.col("v_right").alias("v")).unique()
            new = longer.join(paths, on=["k", "v"], how="anti")
            paths = pl.concat([paths, new])
        return paths

    def rows(self):
        return self.found.rows()


answer(Polars, Data)
