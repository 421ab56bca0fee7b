"""A circuit as a streaming query of Spark's, with its state in Spark's own store.

The nodes become one plan on streaming DataFrames: linear operators as they are on tables, each of ``distinct``,
``aggregate`` and ``join`` a stateful operator of Spark's over pages (:mod:`syndicate.spark.engine.state_pages`).  So
the checkpoint, on any file system that Spark has, is all that there is, and Spark starts, commits and repeats
micro-batches as for any query.

Source: ``docs/design/spark.md``, "State in Spark's own store".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from syndicate.errors import CircuitError, EngineError, SourceError, UnknownStream
from syndicate.flow.circuit import Circuit
from syndicate.flow.node import Kind, Node, Port
from syndicate.flow.structure import structure
from syndicate.plan import Plan
from syndicate.spark.engine import linear
from syndicate.spark.engine.batch import Batch, FrameStore, mapped
from syndicate.spark.engine.context import Shared, TickContext
from syndicate.spark.engine.engine import modules
from syndicate.spark.engine.errors import unshippable
from syndicate.spark.engine.inputs import Frame, is_frame, planned, shape_of_given
from syndicate.spark.engine.joins import joined_batch
from syndicate.spark.engine.layouts import Layouts, MeasuredColumn
from syndicate.spark.engine.shape import ANY, SQL, Layout, declared
from syndicate.spark.engine.workers import Called, Groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from syndicate.spark.engine.state_pages import PagedOperator

PAGES: Final = 16
"""Into so many parts a state is divided: one costs a millisecond or two to read, and a few more with each ten thousand
rows."""

STORE: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
"""A micro-batch then writes what has changed, and a snapshot is made of that in the background."""


def spark_stream(
    circuit: Circuit | Plan,
    frames: Mapping[str, Frame],
    *,
    pages: int = PAGES,
    arithmetic: Literal["columns", "python"] = "columns",
) -> dict[str, DataFrame]:
    """What a circuit concludes from streaming DataFrames, as streaming DataFrames: one for each sink, of changes.

    A row of *frames* is an element of its source, the tuple of its columns; it is inserted, or has its weight in a
    column (``(frame, "weight")``): -1 takes a row back.  A row of a result is a change: the columns ``e0, e1, ...`` of
    the element, before them ``k0, ...`` of the key of an indexed stream, and ``w``: 1 for what comes, -1 for what goes.
    A column of elements of no common type holds canonical bytes.

    The state is Spark's own (RocksDB, which writes what has changed: the session is set to that, and to the changes
    unless it says otherwise), under the query's ``checkpointLocation``.  The sums of the changes of all micro-batches
    are what the circuit makes of the sums of all rows, whoever is killed, if what writes them leaves out a micro-batch
    that is repeated, as :func:`spark_source`, Delta and ``format("syndicate")`` do.  A query has one result; two
    results of one circuit have a state each.

    A micro-batch of an aggregate costs a quarter of a second of the processors and more, about as much as Spark's own
    in update mode, which gives no retractions, and 1.3 to 2.2 times where that has the same options; where it touches
    100,000 keys, less than half (``benchmarks/RESULTS.md``).  A page of a key that it touches is read as a whole; it is
    written when what came since has grown to an eighth of it.

    Args:
        circuit: a circuit without loops, or what ``program.plan()`` gives.
        frames: for each source its stream.
        pages: into how many parts each state is divided by key, for as long as its checkpoint lasts: about one for
            50,000 rows of the state (of ``count``, ``sum`` and ``avg`` of integers a row is a key), and more where a
            micro-batch touches few keys of a large one.
        arithmetic: of functions that are known as columns, in the JVM: it ends the query where an integer leaves 64
            bits or a number is null.  ``"python"`` computes as Python does, and is slower.

    Raises:
        CircuitError: the circuit has a loop, a source with ``key=`` or ``unique=``, or an operator that knows steps.
        UnknownStream, SourceError: *frames* do not fit the sources.  EngineError: the session is not one of Spark 4
            with ANSI mode.  UnshippableFunction: a function cannot be sent to workers.

    Example::

        c = Circuit()
        c.sink("pieces", c.source("orders").index_with(itemgetter(0)).aggregate(aggregates.sum(itemgetter(1))))
        changes = spark_stream(c, {"orders": (orders, "weight")})["pieces"]
        spawn(spark_source(ds, lambda session: changes.toDF("item", "pieces", "w"), to=Pieces, weight="w"))
    """
    if isinstance(circuit, Plan):
        circuit = circuit.circuit
    if type(circuit) is not Circuit or circuit.above is not None:
        raise CircuitError(f"spark_stream takes a circuit or a plan, not {circuit!r}")
    if arithmetic not in ("columns", "python"):
        raise CircuitError(f'arithmetic= takes "columns" or "python", not {arithmetic!r}')
    if type(pages) is not int or pages < 1:
        raise CircuitError(f"pages= takes a number, 1 or more, not {pages!r}")
    for name in (*frames, *circuit.sources):
        if name not in frames or name not in circuit.sources:
            raise UnknownStream(
                f"each source has a stream: the sources are {sorted(circuit.sources)}, the streams {sorted(frames)}"
            )
    scope = StreamScope(circuit, frames, pages, exact=arithmetic == "columns")
    return {name: scope.result(name).frame for name in circuit.sinks}


class _Streaming(Shared):
    """What a scope computes with: plans alone."""

    def __init__(self, circuit: Circuit, session: SparkSession) -> None:
        self.session = session
        self.frames = FrameStore(session, None, modules(), small=0)
        self.layouts = Layouts(circuit)


class StreamScope(TickContext):
    """A circuit on streaming DataFrames."""

    def __init__(self, circuit: Circuit, frames: Mapping[str, Frame], pages: int, *, exact: bool) -> None:
        session = _session_of(frames)
        super().__init__(_Streaming(circuit, session), circuit)
        self.pages = pages
        self._mark = "\n".join(structure(circuit))
        refused = unshippable(circuit)
        if refused is not None:
            raise refused
        for node in circuit.walk():
            if node.kind is not Kind.SINK and node.op != "source" and node.op not in OPERATORS:
                raise CircuitError(
                    f"{node} cannot be in a streaming query, which has no loops and no steps: run the circuit on "
                    "SparkEngine, or by spark_view()"
                )
            if node.op == "source" and {"key", "unique"} & set(node.params):
                raise CircuitError(f"{node} cannot be in a streaming query: its rows come with weights, without key=")
        for name, frame in frames.items():
            shape = shape_of_given(name, frame)
            assert shape is not None
            self.layouts.bring(name, shape)
        self.layouts.find()
        if not exact:
            self.layouts.slow()
        for node in circuit.order():
            if node.op == "source":
                self._put(Port(node.id), planned(self.frames, node.name, frames[node.name]))
            elif node.kind is Kind.OPERATOR:
                self._put(Port(node.id), OPERATORS[node.op](self, node))

    def _put(self, port: Port, batch: Batch | None) -> None:
        layout = self.layouts.of(self.circuit, port)
        assert batch is not None
        assert layout is not None
        self.cells[port] = self.frames.aligned(batch, layout)

    def settled(self, port: Port) -> Batch | None:
        """Nothing is computed before its micro-batch comes."""
        return self.cells[port]

    def input(self, node: Node, number: int = 0) -> Batch | None:
        """What a node reads."""
        return self.cells[node.inputs[number]]

    def result(self, name: str) -> Batch:
        """The changes of a sink."""
        ports = self.circuit_sinks[name].inputs
        if len(ports) > 1:
            raise CircuitError(f"the sink {name!r} has several streams: make a sink of each")
        batch = self.cells[ports[0]]
        assert batch is not None
        return batch

    @property
    def circuit_sinks(self) -> Mapping[str, Node]:
        """By name."""
        assert isinstance(self.circuit, Circuit)
        return self.circuit.sinks

    def input_batch(self, node: Node, number: int = 0) -> Batch:
        """What a stateful node reads."""
        batch = self.cells[node.inputs[number]]
        assert batch is not None
        return batch

    def paged(
        self, node: Node, operator: PagedOperator, inputs: Sequence[tuple[Batch, tuple[str, ...]]], schema: str
    ) -> DataFrame:
        """A stateful operator: rows of *schema* that come of batches, each with its columns of weights."""
        from syndicate.spark.engine.state_pages import PACKED, ROWS, Packed, PagedInput, PagedState, Unpacked

        called, frames = Called.of(node), self.frames
        layouts = [batch.layout for batch, _ in inputs]
        identity = f"{self._mark}\n{node.global_id} {layouts} {self.pages}"
        packed: DataFrame | None = None
        sides = [PagedInput(batch.layout, weights) for batch, weights in inputs]
        for number, (batch, _) in enumerate(inputs):
            keys = ", ".join(batch.layout.keys or batch.layout.columns)
            if node.op == "distinct":
                keys = ", ".join(batch.layout.columns)
            numbered = batch.frame.selectExpr("*", f"CAST(pmod(hash({keys}), {self.pages}) AS INT) AS p")
            worker = Packed(called, frames.modules, number, sides[number])
            one = mapped(numbered, worker, PACKED)
            packed = one if packed is None else packed.unionAll(one)
        assert packed is not None
        state = PagedState(operator, sides, hashlib.sha256(identity.encode()).hexdigest(), frames.modules)
        changes = packed.groupBy("p").transformWithState(state, ROWS, "Append", "none")  # type: ignore[arg-type]
        return mapped(changes, Unpacked(called, frames.modules), schema)


def _session_of(frames: Mapping[str, Frame]) -> SparkSession:
    """The session of the streams, set to the store that such state needs."""
    session: SparkSession | None = None
    for name, source in frames.items():
        if not is_frame(source):
            raise SourceError(f"the source {name!r} takes a streaming DataFrame, or a pair of one and a column's name")
        frame = source[0] if isinstance(source, tuple) else source
        if not frame.isStreaming:
            raise SourceError(f"the frame of {name!r} is a table, not a stream: make it with readStream")
        session = frame.sparkSession
    if session is None:
        raise SourceError("a circuit without sources has no stream")
    if str(session.conf.get("spark.sql.ansi.enabled")).lower() != "true":
        raise EngineError("spark_stream relies on arithmetic that raises: set spark.sql.ansi.enabled to true")
    session.conf.set(STORE, ROCKSDB)
    if session.conf.get(CHANGELOG, None) is None:
        session.conf.set(CHANGELOG, "true")
    return session


# ------------------------------------------------------------------------------------------------------ the operators


def run_distinct(scope: StreamScope, node: Node) -> Batch:
    """``distinct``."""
    from syndicate.spark.engine.state_pages import PagedDistinct

    batch = scope.input_batch(node)
    rows = scope.paged(node, PagedDistinct(batch.layout), [(batch, ("w",))], batch.layout.schema)
    return Batch(batch.layout, scope.session, plan=rows)


def run_aggregate(scope: StreamScope, node: Node) -> Batch:
    """``aggregate``: by sums where they are enough, else by the groups."""
    from syndicate.spark.engine.state_pages import PagedGroups, PagedSums

    batch, aggregate = scope.input_batch(node), node.params["aggregate"]
    layout = batch.layout
    assert layout.key is not None
    measure = scope.layouts.measure(node, layout)
    out = Layout((layout.key, ANY if measure is None else measure.result))
    groups = Groups(Called.of(node), scope.frames.modules, layout, aggregate, False, out)
    if measure is None or aggregate.form in ("min", "max"):
        operator: PagedOperator = PagedGroups(layout, groups)
        return Batch(out, scope.session, plan=scope.paged(node, operator, [(batch, ("w",))], out.schema))
    sums = batch.select(layout, [*layout.keys, "w", f"{_weighted(node, aggregate.form, measure)} AS s"])
    operator = PagedSums(layout, groups, aggregate.form)
    return Batch(out, scope.session, plan=scope.paged(node, operator, [(sums, ("w", "s"))], out.schema))


def _weighted(node: Node, form: str, measure: MeasuredColumn) -> str:
    """What a row adds to the second sum of its group."""
    if form == "count":
        return "0L"
    refused = f"raise_error('{form} met a number that is null or none of 64 bits')"
    return f"IF(({measure.column}) IS NULL, CAST({refused} AS {SQL[measure.kind]}), {measure.column}) * w"


def run_join(scope: StreamScope, node: Node) -> Batch:
    """``join``."""
    from syndicate.spark.engine.state_pages import PagedJoin

    left, right = scope.input_batch(node, 0), scope.input_batch(node, 1)
    assert left.layout.key is not None
    columns = [*declared("k", left.layout.key), *declared("a", left.layout.value), *declared("b", right.layout.value)]
    sides = [(left, ("w",)), (right, ("w",))]
    rows = scope.paged(node, PagedJoin(left.layout, right.layout), sides, ", ".join([*columns, "w BIGINT"]))
    return joined_batch(scope, node, rows, left.layout, right.layout)


OPERATORS: Final[dict[str, Callable[[StreamScope, Node], Batch | None]]] = {
    **linear.OPERATORS,
    "join": run_join,
    "distinct": run_distinct,
    "aggregate": run_aggregate,
}
"""What a streaming query has; the others know loops or steps."""
