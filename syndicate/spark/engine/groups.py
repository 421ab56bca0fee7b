"""Distinct and aggregates on columns, by touched keys only.

What is kept of the touched elements, or groups, is put beside the delta, with the weights before and after; then one
grouping gives both sums, and the change is read off.  What was not touched would give no change either, so leaving out
the choice of the touched is right, too: that is the other side of the cost switch, for deltas that touch much of the
state, where choosing costs more than it saves.

``count sum avg min max`` of typed columns are grouped in the JVM.  All other aggregates get the groups, sorted by key,
in Python.

Source: PomoFlow, 2.9.1, 2.9.3 and 2.9.18; ``docs/design/flow.md``, "Distinct"; ``docs/design/spark.md``, "The second
engine".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from syndicate.flow.element import Key
from syndicate.flow.node import Node
from syndicate.spark.engine.batch import Batch
from syndicate.spark.engine.joins import few
from syndicate.spark.engine.layouts import MeasuredColumn
from syndicate.spark.engine.linear import as_pairs
from syndicate.spark.engine.rows import places, summed
from syndicate.spark.engine.shape import ANY, FALLBACK, Layout, names
from syndicate.spark.engine.sums import measured
from syndicate.spark.engine.workers import Called, Groups

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from syndicate.spark.engine.context import TickContext

SWITCH: Final = 0.2
"""A delta above this part of the state is worked on with all of the state: choosing what it touches is a join, and the
grouping after it is what recomputing costs."""

_CHANGE: Final = "CAST(CASE WHEN o <= 0 AND n > 0 THEN 1 WHEN o > 0 AND n <= 0 THEN -1 END AS BIGINT) AS w"
_EXACT: Final = 1 << 53


def chosen(rows: DataFrame, keys: Batch, columns: list[str], share: float) -> DataFrame:
    """Those of *rows* that have a key of *keys*; all, where that would be most of them."""
    from pyspark.sql.functions import broadcast, expr

    if share > SWITCH:
        return rows
    others = keys.frame.selectExpr(*[f"{name} AS j{name}" for name in columns])
    if keys.table is not None:
        others = broadcast(others)
    return rows.join(others, expr(" AND ".join(f"{name} <=> j{name}" for name in columns)), "left_semi")


def beside(delta: Batch, stored: DataFrame | None, layout: Layout, keys: list[str], rows: int) -> DataFrame:
    """The delta and what is kept of its keys, with the weights before (``o``) and after (``n``)."""
    columns = layout.columns
    new = delta.frame.selectExpr(*columns, "0L AS o", "w AS n")
    if stored is None:
        return new
    share = (delta.rows or 0) / max(1, rows)
    old = chosen(stored, delta, keys, share).selectExpr(*columns, "w AS o", "w AS n")
    return new.unionAll(old)


def beside_here(delta: Batch, rows: pa.Table | None, layout: Layout) -> pa.Table | None:
    """The same in the driver, equal rows added up; None if it cannot be."""
    return None if delta.table is None or rows is None else before_and_after(delta.table, rows, layout)


def before_and_after(delta: pa.Table, rows: pa.Table, layout: Layout) -> pa.Table:
    """The rows of a delta and what was there of them, equal ones added up, with the weights before and after."""
    import pyarrow as pa

    zeros = pa.array([0] * delta.num_rows, pa.int64())
    new = pa.table([*delta.select(layout.columns).columns, zeros, delta.column("w")], names=[*layout.columns, "o", "n"])
    weights = rows.column("w")
    old = pa.table([*rows.select(layout.columns).columns, weights, weights], names=[*layout.columns, "o", "n"])
    return summed(pa.concat_tables([new, old]), layout.columns, ["o", "n"])


def appeared_here(both: pa.Table, layout: Layout, session: SparkSession) -> Batch:
    """Which elements have come and which have gone, in the driver."""
    return Batch(layout, session, table=appeared_rows(both, layout))


def appeared_rows(both: pa.Table, layout: Layout) -> pa.Table:
    """The same as a table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    was, now = pc.greater(both.column("o"), 0), pc.greater(both.column("n"), 0)
    table = both.append_column("w", pc.subtract(now.cast(pa.int64()), was.cast(pa.int64())))
    return table.filter(pc.not_equal(was, now)).select([*layout.columns, "w"])


def grouped_here(
    scope: TickContext, node: Node, both: pa.Table, layout: Layout, measure: MeasuredColumn | None, *, stream: bool
) -> Batch:
    """The changes of the groups, in the driver."""
    assert layout.key is not None
    out = Layout((layout.key, ANY if measure is None else measure.result))
    worker = Groups(Called.of(node), scope.frames.modules, layout, node.params["aggregate"], stream, out)
    return Batch(layout, scope.session, table=by_group(both, layout)).run(worker, out)


def by_group(both: pa.Table, layout: Layout) -> pa.Table:
    """Rows with the weights before and after, those of a group together, as :class:`Groups` takes them."""
    order: dict[Key, list[int]] = {}
    for number, place in enumerate(places(both, layout.keys)):
        order.setdefault(place, []).append(number)
    rows = both.take([number for numbers in order.values() for number in numbers]) if order else both
    return rows.rename_columns([*layout.columns, "o", "w"])


def appeared(both: DataFrame, layout: Layout) -> Batch:
    """Which elements have come and which have gone."""
    from pyspark.sql.functions import expr

    sums = both.groupBy(*layout.columns).agg(expr("sum(o) AS o"), expr("sum(n) AS n"))
    frame = sums.where("(o <= 0) <> (n <= 0)").selectExpr(*layout.columns, _CHANGE)
    return Batch(layout, both.sparkSession, plan=frame)


_SET_CHANGE: Final = "CASE WHEN o <= 0 AND n > o THEN 1L WHEN o > 0 AND n < o THEN -1L END AS w"


def unique_elements(scope: TickContext, node: Node, batch: Batch | None) -> Batch | None:
    """What a source is given that is a set: only what was not there comes, only what was there goes; that is kept."""
    delta = scope.frames.settled(batch, (node.global_id, "given"))
    if delta is None:
        return None
    held, layout = scope.trace(node, "held"), delta.layout
    here = beside_here(delta, held.near(layout, few(delta)), layout)
    if here is not None:
        changed = set_changes_here(here, layout, scope.session)
    else:
        rows = held.read(layout, few(delta))
        both = beside(delta, rows, layout, layout.columns, held.rows())
        changed = set_changes(both, layout)
    settled = scope.frames.settled(changed, (node.global_id, "held"))
    held.take(settled)
    return settled


def set_changes_here(both: pa.Table, layout: Layout, session: SparkSession) -> Batch:
    """What comes and what goes of a set that is given what to hold, in the driver."""
    import pyarrow as pa
    import pyarrow.compute as pc

    was, change = pc.greater(both.column("o"), 0), pc.subtract(both.column("n"), both.column("o"))
    table = both.append_column("w", pc.sign(change).cast(pa.int64()))
    moves = pc.or_(pc.and_(pc.greater(change, 0), pc.invert(was)), pc.and_(pc.less(change, 0), was))
    return Batch(layout, session, table=table.filter(moves).select([*layout.columns, "w"]))


def set_changes(both: DataFrame, layout: Layout) -> Batch:
    """The same on Spark."""
    from pyspark.sql.functions import expr

    sums = both.groupBy(*layout.columns).agg(expr("sum(o) AS o"), expr("sum(n) AS n"))
    frame = sums.selectExpr(*layout.columns, _SET_CHANGE).where("w IS NOT NULL")
    return Batch(layout, both.sparkSession, plan=frame)


def run_distinct(scope: TickContext, node: Node) -> Batch | None:
    """``distinct``, incremental."""
    delta = scope.settled(node.inputs[0])
    if delta is None:
        return None
    totals = scope.trace(node, "totals")
    here = beside_here(delta, totals.near(delta.layout, few(delta)), delta.layout)
    if here is not None:
        totals.take(delta)
        return appeared_here(here, delta.layout, scope.session)
    rows = totals.read(delta.layout, few(delta))
    both = beside(delta, rows, delta.layout, delta.layout.columns, totals.rows())
    totals.take(delta)
    return appeared(both, delta.layout)


def run_distinct_stream(scope: TickContext, node: Node) -> Batch | None:
    """``distinct_stream``: of this tick's batch."""
    delta = scope.settled(node.inputs[0])
    if delta is None:
        return None
    if delta.table is not None:
        here = beside_here(delta, delta.table.slice(0, 0), delta.layout)
        return appeared_here(here, delta.layout, scope.session)
    frame = delta.frame.where("w > 0").selectExpr(*delta.layout.columns, "1L AS w")
    return Batch(delta.layout, scope.session, plan=frame)


def run_distinct_trace(scope: TickContext, node: Node) -> Batch | None:
    """``distinct_trace`` and ``distinct_incremental``: against a trace that does not hold the batch yet."""
    delta, view = scope.settled(node.inputs[0]), scope.view(node.inputs[1])
    exact = node.op == "distinct_trace"
    now = [batch for batch, timed in view.added if exact and (timed or scope.is_first())]
    layout = scope.layouts.of(scope.circuit, node.inputs[0])
    if layout is None or (delta is None and not now):
        return None
    trace_layout = scope.layouts.of(scope.circuit, node.inputs[1])
    if trace_layout is not None:
        from syndicate.spark.engine.shape import joined

        layout = joined(layout, trace_layout) or layout
    parts = [scope.frames.aligned(batch, layout) for batch in [*([delta] if delta else []), *now]]
    news = parts[0]
    for part in parts[1:]:
        news = news.plus(part)
    settled = scope.frames.settled(news, (node.global_id, "news"))
    if settled is None:
        return None
    here = None
    if settled.table is not None:
        here = beside_here(settled, view.near(layout, settled, without=now), layout)
    if here is not None:
        return as_pairs(appeared_here(here, layout, scope.session))
    rows = view.read(layout, few(settled), without=now)
    both = beside(settled, rows, layout, layout.columns, view.trace.rows())
    return as_pairs(appeared(both, layout))


def run_aggregate(scope: TickContext, node: Node) -> Batch | None:
    """``aggregate``, incremental."""
    delta = scope.settled(node.inputs[0])
    if delta is None:
        return None
    layout = delta.layout
    measure = scope.layouts.measure(node, layout)
    if node.params["aggregate"].form == "count":
        layout = Layout("unit", layout.key)
        delta = scope.frames.settled(counted(delta, layout), (node.global_id, "counts"))
        if delta is None:
            return None
        trace = scope.trace(node, "counts")
    else:
        trace = scope.arrangement(node.inputs[0])
    sums = scope.sums.get(node.id)
    changes = None if sums is None else sums.changes(trace, delta, measure, make=False)
    if changes is not None:
        return changes
    here = beside_here(delta, trace.near(layout, few(delta), old=True), layout)
    if here is None and sums is not None:
        changes = sums.changes(trace, delta, measure, make=True)
        if changes is not None:
            return changes
    rows_before = trace.read(layout, few(delta), old=True) if here is None else None
    rows = trace.rows()
    if node.params["aggregate"].form == "count":
        trace.take(delta)
    if here is not None:
        return grouped_here(scope, node, here, layout, measure, stream=False)
    both = beside(delta, rows_before, layout, layout.keys, rows)
    return grouped(scope, node, both, layout, measure, stream=False)


def counted(delta: Batch, layout: Layout) -> Batch:
    """The rows without their values."""
    import pyarrow as pa

    if delta.table is None:
        return delta.select(layout, [*layout.keys, "true AS e0", "w"])
    units = pa.array([True] * delta.table.num_rows, pa.bool_())
    columns = [*delta.table.select(layout.keys).columns, units, delta.table.column("w")]
    return Batch(layout, delta.session, table=pa.table(columns, names=[*layout.columns, "w"]))


def run_aggregate_stream(scope: TickContext, node: Node) -> Batch | None:
    """``aggregate_stream``: of this tick's batch."""
    delta = scope.settled(node.inputs[0])
    if delta is None:
        return None
    measure = scope.layouts.measure(node, delta.layout)
    if delta.table is not None:
        here = beside_here(delta, delta.table.slice(0, 0), delta.layout)
        return grouped_here(scope, node, here, delta.layout, measure, stream=True)
    both = beside(delta, None, delta.layout, delta.layout.keys, 0)
    return grouped(scope, node, both, delta.layout, measure, stream=True)


def grouped(
    scope: TickContext, node: Node, both: DataFrame, layout: Layout, measure: MeasuredColumn | None, *, stream: bool
) -> Batch:
    """The changes of the groups."""
    from pyspark.sql.functions import expr

    keys = layout.keys
    assert layout.key is not None
    if measure is None or node.params["aggregate"].form in ("min", "max"):
        both = both.groupBy(*layout.columns).agg(expr("sum(o) AS o"), expr("sum(n) AS n"))
    if measure is None:
        rows = both.selectExpr(*layout.columns, "o", "n AS w").repartition(*keys).sortWithinPartitions(*keys)
        worker = Groups(Called.of(node), scope.frames.modules, layout, node.params["aggregate"], stream)
        return Batch(layout, scope.session, plan=rows).run(worker, Layout((layout.key, "any")))
    old, new = (_result(node.params["aggregate"].form, measure, side) for side in ("o", "n"))
    groups = both.groupBy(*keys).agg(*[expr(f"{sql} AS {name}") for name, sql in {**old[0], **new[0]}.items()])
    groups = groups.selectExpr(*keys, f"{old[1]} AS old", f"{new[1]} AS new").where("NOT (old <=> new)")
    out = Layout((layout.key, measure.result))
    changes = "inline(array(named_struct('r', old, 'w', -1L), named_struct('r', new, 'w', 1L))) AS (r, w)"
    elements = names("e", out.value)
    named = [f"{a} AS {b}" for a, b in zip([*keys, "r"], elements, strict=True)]
    frame = groups.selectExpr(*keys, changes).where("r IS NOT NULL").selectExpr(*named, "w")
    return Batch(out, scope.session, plan=frame)


def _result(form: str, measure: MeasuredColumn, side: str) -> tuple[dict[str, str], str]:
    """What is summed up of the weights of one side, and the result as an expression of the sums."""
    of = measured(measure)
    if form in ("min", "max"):
        return {f"m{side}": f"{form}(CASE WHEN {side} > 0 THEN {of} END)"}, f"m{side}"
    number = f"sum({side})"
    if form == "count":
        return {f"c{side}": number}, f"IF(c{side} = 0, NULL, c{side})"
    sums = {f"c{side}": number, f"s{side}": f"sum({of} * {side})"}
    if form == "sum":
        return sums, f"IF(c{side} = 0, NULL, s{side})"
    c, s = f"c{side}", f"s{side}"
    mean = f"CAST(IF({c} < 0, -{s}, {s}) AS DOUBLE) / CAST(abs({c}) AS DOUBLE)"
    refused = f"CAST(raise_error('{FALLBACK}') AS DOUBLE)"
    return sums, f"CASE WHEN {c} = 0 THEN NULL WHEN abs({s}) >= {_EXACT}L THEN {refused} ELSE {mean} END"
