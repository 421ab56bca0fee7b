"""The rows of a few keys out of large runs, brought to the driver.

A small delta meets few rows of a large state.  Those few are fetched, and the operator does the rest in the driver: a
job of Spark's costs 0.1 to 0.3 s whatever it does (measured), Python a millisecond for a thousand
rows.  If the buckets of the keys hold up to :data:`SCANNED` rows the driver reads their files itself; else Spark does,
on all cores.  If more than a batch may have is found nothing is fetched: then all is left to Spark.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from syndicate.spark.engine.batch import Batch, FrameStore, as_declared, files
from syndicate.spark.engine.rows import arrow_type, places, table_of
from syndicate.spark.engine.shape import Layout

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SCANNED: Final = 1_000_000
"""So many rows are searched by the driver within some 20 ms."""


def of_keys(table: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows of a table with one of some keys; both have the columns in the same types."""
    return table.filter(_is_of(table, keys, columns))


def _is_of(table: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Which rows of a table have one of some keys."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow tells of each column by itself, but of floats, and rows are looked at where that does not say all.
    exact = [name for name in columns if not pa.types.is_floating(table.schema.field(name).type)]
    which = pa.array([True] * table.num_rows, pa.bool_()) if not exact else None
    for name in exact:
        one = pc.is_in(table.column(name), value_set=keys.column(name)).combine_chunks()
        which = one if which is None else pc.and_(which, one)
    if exact and len(columns) == 1:
        return which
    wanted = set(places(keys, columns))
    members = [place in wanted for place in places(table.filter(which), columns)]
    return pc.replace_with_mask(which, which, pa.array(members, pa.bool_()))


def near(
    frames: FrameStore, runs: Sequence[Batch], layout: Layout, columns: list[str], keys: Batch, buckets: set[int] | None
) -> pa.Table | None:
    """The rows of *runs* that have one of some keys, which fall into *buckets* (None: any); None if they are many."""
    import pyarrow as pa

    assert keys.table is not None
    scanned = sum((run.rows or 0) * share(run, buckets) for run in runs)
    read, others = [], list(runs)
    if scanned <= SCANNED:
        read = [run for run in runs if run.paths and run.layout == layout]
        others = [run for run in runs if run not in read]
    tables = []
    left = frames.small
    for run in read:
        table = scan(run, columns, keys.table, buckets, left)
        if table is None:
            return None
        left -= table.num_rows
        tables.append(table)
    if others:
        table = asked(frames, others, layout, columns, keys, buckets, left)
        if table is None:
            return None
        tables.append(table)
    return pa.concat_tables(tables) if tables else table_of([], [], layout)


def share(run: Batch, buckets: set[int] | None) -> float:
    """The part of a run that some buckets are."""
    if buckets is None or not run.buckets:
        return 1.0
    return len({number % run.buckets for number in buckets}) / run.buckets


def scan(run: Batch, columns: Sequence[str], keys: pa.Table, buckets: set[int] | None, most: int) -> pa.Table | None:
    """The rows of one run, read from its files here; None if they are more than *most*."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    kinds = run.layout.kinds
    schema = pa.schema([*[(name, arrow_type(kind)) for name, kind in kinds.items()], ("w", pa.int64())])
    named = files(run.places(buckets))
    if not named:
        return table_of([], [], run.layout)
    test = None
    for name in columns:
        if kinds[name] in ("long", "string", "binary", "any"):
            wanted = keys.column(name)
            one = pc.field(name).isin(wanted.drop_null().combine_chunks())
            if wanted.null_count:
                one = one | pc.field(name).is_null()
            test = one if test is None else test & one
    tables = []
    for batch in ds.dataset(named, schema=schema, format="parquet").to_batches(filter=test):
        table = of_keys(pa.Table.from_batches([batch]), keys, columns)
        most -= table.num_rows
        if most < 0:
            return None
        tables.append(table)
    return pa.concat_tables(tables) if tables else table_of([], [], run.layout)


def asked(
    frames: FrameStore,
    runs: Sequence[Batch],
    layout: Layout,
    columns: list[str],
    keys: Batch,
    buckets: set[int] | None,
    most: int,
) -> pa.Table | None:
    """The rows of some runs, as Spark finds them."""
    from pyspark.sql.functions import broadcast, expr

    total: DataFrame | None = None
    for run in runs:
        frame = run.only(buckets) if run.layout == layout else frames.aligned(run, layout).frame
        total = frame if total is None else total.unionAll(frame)
    wanted = broadcast(keys.frame.selectExpr(*[f"{name} AS j{name}" for name in columns]))
    assert total is not None
    met = total.join(wanted, expr(" AND ".join(f"{name} <=> j{name}" for name in columns)), "left_semi")
    frames.asked += 1
    table = met.limit(most + 1).toArrow()
    return as_declared(table, layout) if table.num_rows <= most else None
