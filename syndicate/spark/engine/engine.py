"""The engine: a circuit on Spark, one epoch a step.

A step has three parts.  *Plan*: the nodes run, tick by tick, and their jobs with them.  *Write*: what the step has
changed goes into new files.  *Commit*: the manifest that names them replaces the old one.  Whatever fails, or ends the
process, before that leaves the last committed epoch, and a new engine on the same directory goes on from there.

The engine works in a session of its own beside the user's, since it relies on arithmetic that raises where it
overflows, and on plans that are not made again while they run, which costs more than it saves on many small jobs.

>>> SparkEngine.step.__name__  # examples that start a JVM are in tests/syndicate/spark/engine
'step'

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from syndicate.errors import CircuitError, EngineError, SnapshotMismatch, StateError, StepFailed, UnknownStream
from syndicate.flow.circuit import Circuit
from syndicate.flow.element import Element
from syndicate.flow.node import Carries, Node, Port
from syndicate.flow.structure import structure
from syndicate.spark.engine.batch import SMALL_BATCH, Batch, FrameStore
from syndicate.spark.engine.context import Shared
from syndicate.spark.engine.directory import Directory, copy
from syndicate.spark.engine.errors import ended, explained, is_inexact, is_stopped, unshippable
from syndicate.spark.engine.groups import chosen, unique_elements
from syndicate.spark.engine.inputs import Change, LatestByKey, batch_of, checked, is_frame, shape_of_given
from syndicate.spark.engine.layouts import Layouts
from syndicate.spark.engine.output import Delta, SinkChanges
from syndicate.spark.engine.rows import table_of
from syndicate.spark.engine.scope import SparkScope
from syndicate.spark.engine.shape import Layout, of_data, shape_of, to_data, widest
from syndicate.spark.spark_connect import is_connect
from syndicate.storage.files import remove
from syndicate.values.value import Value, _classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""What the engine's session differs in."""

Given = Mapping[str, Change]


class SparkEngine(Shared):
    """A circuit with its state on Spark; made with a circuit and an open session.

    *state* is a directory that the driver and all workers can reach, and lasts; without it the state is in a temporary
    one.  Batches of up to *small* rows are kept in the driver, larger ones in files.  ``epoch`` counts the steps
    committed, ``batch`` is the number of the last one that had one.  It is a context manager: :meth:`close` gives the
    directory back.

    Raises :class:`StateError` for a directory that cannot be used, :class:`SnapshotMismatch` if it holds the state of
    another circuit, :class:`UnshippableFunction` for a function that Spark's workers cannot get, :class:`CircuitError`
    for a circuit that Spark cannot run: one with an operator of single ticks (``join_stream``, ``distinct_stream``,
    ``aggregate_stream``, ``integrate``, ``differentiate`` and what works on a trace) in a loop.

    Example::

        with SparkEngine(circuit, open_session(), state="state/") as engine:
            changes = engine.step({"edges": {("a", "b"): 1}})
            print(changes["paths"].to_zset())
    """

    def __init__(
        self, circuit: Circuit, session: SparkSession, *, state: str | Path | None = None, small: int = SMALL_BATCH
    ) -> None:
        if type(circuit) is not Circuit or circuit.above is not None:
            raise CircuitError(f"SparkEngine takes a circuit, not {circuit!r}")
        if is_connect(session):
            raise EngineError(
                "SparkEngine needs a classic session, as open_session() gives one: it keeps files of its state beside "
                "the driver and looks into the causes of a failure there, which with Spark Connect is a server"
            )
        if not hasattr(session, "newSession"):
            raise EngineError(f"SparkEngine takes an open session, as open_session() gives one, not {session!r}")
        self.circuit = circuit
        self.durable = state is not None
        self._temporary = None if self.durable else tempfile.TemporaryDirectory(prefix="syndicate-engine-")
        place = str(state) if self._temporary is None else self._temporary.name
        self._directory = Directory(place, synced=self.durable)
        self._busy = False
        self._closed = False
        try:
            with explained(None, session):
                self.session = _beside(session)
            self.frames = FrameStore(self.session, self._directory, modules(), small=small)
            refused = unshippable(circuit)
            if refused is not None:
                raise refused  # now, not when a change is large enough to need workers
            self.layouts = Layouts(circuit)
            self.epoch = 0
            self.batch: int | None = None
            self.iterations = 0
            self.grown: dict[int, bool] = {}
            self.stored: dict[str, Value] = {}
            self._outputs: dict[str, Value] = {}
            self._used: set[str] = set()
            self._structure = structure(circuit)
            self._load()
            self._upserts = {
                name: LatestByKey(node.params["key"]) for name, node in circuit.sources.items() if "key" in node.params
            }
            self.root = SparkScope(self, circuit)
            self._directory.clean(self._used)
        except BaseException:
            self.close()
            raise

    # --------------------------------------------------------------------------------------------------- a step

    def step(self, deltas: Given | None = None, *, epoch: int | None = None) -> SinkChanges:
        """One epoch: changes of sources in, changes of sinks out.

        A change is what a step of the local engine takes, or a DataFrame, whose rows are inserted, or a pair of a
        DataFrame and the name of its column of weights.  With *epoch*, a number that grows from step to step, the step
        is done once: the last number again gives its recorded changes, a smaller one empty changes; both do nothing.

        Raises :class:`UnknownStream`, :class:`CircuitError` and the like for what does not fit the circuit;
        :class:`StepFailed` if a function of it raised, :class:`UnshippableFunction`, :class:`EndlessLoop`,
        :class:`EngineError` if Spark failed.  The engine is then at the last committed epoch.
        """
        self._check(deltas, epoch)
        if epoch is not None and self.batch is not None and epoch <= self.batch:
            return self._repeated(epoch)
        self._busy = True
        before = self.layouts.saved()
        try:
            with explained(self.circuit, self.session):
                changes = {name: _once(change) for name, change in (deltas or {}).items()}
                try:
                    return self._step(changes, epoch)
                except Exception as error:
                    if not (self.layouts.tracer.exact and is_inexact(error)):
                        raise
                self._discard()
                self.layouts.slow()
                return self._step(changes, epoch)
        except BaseException:
            self._discard()
            self.layouts.restore(before)
            raise
        finally:
            self._busy = False

    def _check(self, deltas: object, epoch: object) -> None:
        if self._closed:
            raise EngineError("the engine is closed: make another on the same state directory")
        if is_stopped(self.session):
            raise ended()  # a step of small changes would not notice, and the next one would fail
        if self._busy:
            raise StepFailed("a step of this engine is running: a function of a circuit must not step it")
        if deltas is not None and not isinstance(deltas, Mapping):
            sources = ", ".join(f"{name!r}: ..." for name in self.circuit.sources)
            raise CircuitError(f"a step takes a mapping {{{sources}}} of sources to their changes, not {deltas!r}")
        for name in deltas or ():
            if name not in self.circuit.sources:
                sources = ", ".join(map(repr, sorted(self.circuit.sources))) or "none"
                raise UnknownStream(f"the circuit has no source {name!r}; its sources are {sources}")
        if epoch is not None and (type(epoch) is not int or epoch < 0):
            raise CircuitError(f"the epoch of a step is a number that grows, 0 or more, not {epoch!r}")

    def _step(self, deltas: Given, epoch: int | None) -> SinkChanges:
        outputs = self._plan(deltas)
        manifest, used, records = self._write(outputs, epoch)
        self._commit(manifest, used)
        self.epoch += 1
        self.batch = manifest["batch"]
        self._outputs = records
        for trace in self.root.all_traces():
            trace.adopt()
        gone = (self._used | {path.name for path in self.frames.written}) - used
        self._used = used
        self.frames.written.clear()
        for name in gone:
            remove(self._directory.path(name))
        return self._shown(outputs, self.batch if epoch is not None else self.epoch - 1)

    def _plan(self, deltas: Given) -> dict[str, list[Batch | None]]:
        """Run all nodes; what the sinks get."""
        self.frames.epoch, self.frames.modules = self.epoch, modules()
        changes = {}
        wanted = {}
        for name, change in deltas.items():
            if name in self._upserts:
                wanted[name] = self._upserts[name].wanted(change)
                elements = [element for _, element in wanted[name] if element is not None]
                shape = shape_of(elements) if elements else None
            else:
                changes[name] = checked(name, change)
                shape = shape_of_given(name, changes[name])
            if shape is not None:
                self.layouts.bring(name, shape)
        self.layouts.find()
        root = self.root
        large = any((run.rows or 0) > SMALL_BATCH for trace in root.all_traces() for run in trace.runs)
        self.frames.compiled(on=large or any(map(is_frame, changes.values())))
        batches: dict[Port, Batch | None] = {}
        for name, change in changes.items():
            node = self.circuit.sources[name]
            batches[Port(node.id)] = batch_of(self.frames, self.layouts, node, change)
        self.frames.bulk = any(batch is not None and batch.table is None for batch in batches.values())
        for port, batch in batches.items():
            if "unique" in self.circuit.nodes[port.node].params:
                batches[port] = unique_elements(self.root, self.circuit.nodes[port.node], batch)
        for name, pairs in wanted.items():
            node = self.circuit.sources[name]
            batches[Port(node.id)] = self._upserted(node, pairs)
        for node in self.circuit.nodes:
            if node.op == "constant" and self.epoch == 0 and len(node.params["zset"]):
                layout = self.layouts.of(self.circuit, Port(node.id))
                assert layout is not None
                items = list(node.params["zset"].items())
                table = table_of([element for element, _ in items], [weight for _, weight in items], layout)
                batches[Port(node.id)] = self.frames.local(table, layout)
            elif node.op == "z1":
                batches[Port(node.id)] = root.trace(node, "previous").whole(before=True)
        root.tick(batches)
        outputs = {name: [root.settled(port) for port in node.inputs] for name, node in self.circuit.sinks.items()}
        taken = root.absorb()
        for node in self.circuit.nodes:
            if node.op == "z1":
                previous, batch = root.trace(node, "previous"), taken.get(Port(node.id))
                if batch is not None or previous.runs:
                    previous.replace(batch)
        return outputs

    def _upserted(self, node: Node, pairs: list[tuple[Element, Element]]) -> Batch | None:
        """The change that makes some elements current under their keys."""
        name = node.name
        if not pairs or name not in self.layouts.sources:
            return None
        keys = [key for key, _ in pairs]
        shape = shape_of(keys)
        trace = self.root.trace(node, "current")
        if trace.layout is not None and trace.layout.key is not None:
            shape = widest(trace.layout.key, shape)
        layout, touched = Layout(self.layouts.sources[name], shape), Layout("unit", shape)
        named = self.frames.local(table_of([(key, ()) for key in keys], [1] * len(keys), touched), touched)
        assert named is not None
        new = [pair for pair in pairs if pair[1] is not None]
        change = Batch(layout, self.session, table=table_of(new, [1] * len(new), layout)) if new else None
        near = trace.near(layout, named)
        rows = None if near is not None else trace.read(layout, named if named.table is not None else None)
        if near is not None and near.num_rows:
            less = Batch(layout, self.session, table=near).negated()
            change = less if change is None else change.plus(less)
        elif rows is not None:
            columns = layout.columns
            old = chosen(rows, named, layout.keys, 0.0).selectExpr(*columns, "-w AS w")
            less = Batch(layout, self.session, plan=old)
            change = less if change is None else change.plus(less)
        settled = self.frames.settled(change, (node.global_id, "upserts"))
        trace.take(settled)
        if settled is None:
            return None
        return settled.named(Layout(layout.value), layout.values)

    # --------------------------------------------------------------------------------------------------- the commit

    def _write(
        self, outputs: dict[str, list[Batch | None]], epoch: int | None
    ) -> tuple[dict[str, Value], set[str], dict[str, Value]]:
        """Write what has changed; the manifest that names it, and all files that it names."""
        for trace in self.root.all_traces():
            trace.stage()
        records = {name: [self._recorded(batch) for batch in batches] for name, batches in outputs.items()}
        traces = {**self.stored, **{trace.name: trace.data() for trace in self.root.all_traces() if trace.lasting}}
        traces = {name: data for name, data in traces.items() if data}
        last = sorted({name for record in self._outputs.values() for data in record if data for name in data[1]})
        manifest = {
            "epoch": self.epoch + 1,
            "batch": self.batch if epoch is None else epoch,
            "structure": self._structure,
            "sources": {name: to_data(Layout(shape)) for name, shape in self.layouts.sources.items()},
            "layouts": [
                [list(path), port.node, port.output, to_data(layout)]
                for (path, port), layout in self.layouts.by_port.items()
            ],
            "exact": self.layouts.tracer.exact,
            "grown": {str(number): grows for number, grows in self.grown.items()},
            "traces": traces,
            "outputs": records,
            "last": last,
        }
        used = {name for data in traces.values() for run in data for name in run[1]} | set(last)
        used |= {name for record in records.values() for data in record if data for name in data[1]}
        return manifest, used, records

    def _recorded(self, batch: Batch | None) -> Value:
        """An output as the manifest names it: in a file, if it has to last."""
        if batch is None or not (self.durable or batch.paths):
            return None
        written = batch if batch.paths else self.frames.in_file(batch)
        return [to_data(batch.layout), [path.name for path in written.paths], batch.rows, written.buckets]

    def _commit(self, manifest: dict[str, Value], used: set[str]) -> None:
        """Let the step have happened."""
        self._directory.commit(manifest, used - self._used)

    def _discard(self) -> None:
        """The step has not happened."""
        for trace in self.root.all_traces():
            trace.discard()
        saved = self._directory.manifest
        self.grown = {} if saved is None else {int(number): grows for number, grows in saved["grown"].items()}
        for path in self.frames.written:
            remove(path)
        self.frames.written.clear()

    def _load(self) -> None:
        """Go on from the last committed epoch."""
        saved = self._directory.manifest
        if saved is None:
            return
        try:
            self._compare(saved["structure"])
            self.epoch, self.batch = saved["epoch"], saved["batch"]
            self.layouts.sources = {name: of_data(data).value for name, data in saved["sources"].items()}
            for path, node, output, data in saved["layouts"]:
                self.layouts.by_port[tuple(path), Port(node, output)] = of_data(data)
            if not saved["exact"]:
                self.layouts.slow()
            self.grown = {int(number): grows for number, grows in saved["grown"].items()}
            self.stored = dict(saved["traces"])
            self._outputs = saved["outputs"]
            self._used = {name for data in self.stored.values() for run in data for name in run[1]}
            self._used |= {name for record in self._outputs.values() for data in record if data for name in data[1]}
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, SnapshotMismatch):
                raise
            raise StateError(
                f"{self._directory.root}/manifest.json is damaged ({error!r}): restore the directory from a snapshot, "
                "or remove it"
            ) from error
        missing = sorted(name for name in self._used if not self._directory.path(name).exists())
        if missing:
            raise StateError(
                f"{self._directory.root} has lost {missing[0]}, which its manifest names: restore it from a snapshot"
            )

    def _compare(self, saved: list[str]) -> None:
        different = [(old, new) for old, new in zip(saved, self._structure, strict=False) if old != new]
        if different or len(saved) != len(self._structure):
            old, new = different[0] if different else (f"{len(saved)} nodes", f"{len(self._structure)} nodes")
            raise SnapshotMismatch(
                f"{self._directory.root} is the state of another circuit: saved was [{old}], here is [{new}]. Build "
                "the circuit as it was, or give another state="
            )

    # --------------------------------------------------------------------------------------------------- results

    def _kinds(self, node: Node) -> list[Carries]:
        return [self.circuit.carries(port) for port in node.inputs]

    def _shown(
        self, outputs: dict[str, list[Batch | None]], epoch: int | None, *, repeated: bool = False
    ) -> SinkChanges:
        deltas: dict[str, Delta | tuple[Delta, ...]] = {}
        for name, node in self.circuit.sinks.items():
            batches = outputs.get(name) or [None] * len(node.inputs)
            each = tuple(
                Delta(batch, kind, self.session) for batch, kind in zip(batches, self._kinds(node), strict=True)
            )
            deltas[name] = each[0] if len(each) == 1 else each
        return SinkChanges(deltas, self.epoch - 1 if epoch is None else epoch, repeated=repeated)

    def _repeated(self, epoch: int) -> SinkChanges:
        """The changes of an epoch that was committed before: recorded ones of the last, else empty ones."""
        outputs: dict[str, list[Batch | None]] = {}
        if epoch == self.batch:
            outputs = {name: [self._read(data) for data in record] for name, record in self._outputs.items()}
        return self._shown(outputs, epoch, repeated=True)

    def _read(self, data: Value) -> Batch | None:
        if data is None:
            return None
        paths = tuple(self._directory.path(name) for name in data[1])
        return self.frames.brought(Batch(of_data(data[0]), self.session, paths=paths, rows=data[2], buckets=data[3]))

    # --------------------------------------------------------------------------------------------------- the rest

    def snapshot(self, path: str | Path) -> None:
        """Copy the last committed epoch to another directory, which an engine can be made on with ``state=``.

        Files are linked where the file system allows it.  Raises :class:`StateError`.
        """
        if self._closed or self._directory.manifest is None:
            raise StateError("there is nothing to take a snapshot of: make a step first, on an engine that is open")
        copy(self._directory, Path(path), self._used)

    def close(self) -> None:
        """Give the directory back.  The session stays open: it is the caller's."""
        self._closed = True
        self._directory.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SparkEngine of {self.circuit!r} at epoch {self.epoch}>"


def _beside(session: SparkSession) -> SparkSession:
    """A session of our own in the same Spark."""
    own = session.newSession()
    for name, value in OPTIONS.items():
        own.conf.set(name, value)
    parts = session.conf.get("spark.sql.shuffle.partitions")
    own.conf.set("spark.sql.shuffle.partitions", str(parts))
    return own


def modules() -> tuple[str, ...]:
    """The modules in which record classes are defined: workers import them, to read records."""
    return tuple(sorted({cls.__module__ for cls in _classes.values()} - {"__main__"}))


def _once(change: Change) -> Change:
    """A change that can be read twice."""
    return list(change) if isinstance(change, Iterator) else change
