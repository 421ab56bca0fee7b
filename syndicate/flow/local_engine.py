"""The local engine: a circuit executed in process, one epoch a step.

A step is a transaction.  Inputs are checked first; then the nodes that have something to do run (see
:mod:`syndicate.flow.scope`).  Whatever ends it, a function's error, Ctrl-C, a cancellation, the lack of memory, at
whatever instruction: each change of state is taken back from a log (:mod:`syndicate.flow.undo`), and the circuit is as
it was.  If that is ended, too, the next call goes on with it.  A step has happened when the log is emptied, which is
one instruction; what ends it from there on ends what comes after the step.

Large changes by rows: worked on as columns, while what is kept stays in dictionaries.

A row costs Python a microsecond or two at each join and aggregate, and a database that is given everything again a
fraction of that; so from a third of the state on, following a change would lose against recomputing.  Arrays follow it
at a database's speed: a large change becomes a table (:mod:`syndicate.flow.columnar`), each node looks up what it has
of the table's keys, all at once, makes its result as arrays, and puts the change into its dictionaries.  That costs
what the change brings and finds, as by rows, whatever the size of the state; and small changes cost after it what they
cost before.

It is only tried where it pays: where a source's rows come to a join or an aggregate through functions that only
rearrange (:func:`~syndicate.flow.element.rearranges`), and are integers, or tuples of such.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from sys import getsizeof
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeAlias

from syndicate.errors import CircuitError, StepFailed, SyndicateError, UnknownStream
from syndicate.flow.columns import SMALL_COLUMNS, Columns
from syndicate.flow.comparison import where
from syndicate.flow.element import Batch, Element, Key, Mixed, add_up, is_rearranging, key_of
from syndicate.flow.loop import Loop, Outgrown
from syndicate.flow.measure import Measures
from syndicate.flow.node import AS_BEFORE, LINEAR, GlobalId, Kind, Netlist, Node, Port
from syndicate.flow.operators import LOOP_MAKERS, MAKERS
from syndicate.flow.operators.error_location import failing_element
from syndicate.flow.scope import AbstractEngine, Committable, Scope
from syndicate.flow.undo import Log, note_attribute, note_whole, take_back
from syndicate.flow.word_circuit import Tabular, tabular
from syndicate.flow.word_tables import WordTable
from syndicate.flow.zset import Given, IndexedZSet, ZSet, batch_of, delta_of, elements_of
from syndicate.garbage_collector import CollectorPause
from syndicate.graph import reached
from syndicate.native import library
from syndicate.outside import stacks

if TYPE_CHECKING:
    from syndicate.flow.aggregates import Aggregate
    from syndicate.flow.columnar.steps import Readied
    from syndicate.flow.columnar.table import ColumnTable


# ------------------------------------------------------------------------------------------------ large changes by rows


LARGE_CHANGE: Final = 1000
"""A change of so many rows is large: from here on arrays save more than they cost (measured: they are even at 500)."""

ARRAYED: Final = frozenset({"count", "sum", "avg", "min", "max"})
PASSING: Final = frozenset({"pairs", "keys", "values", "forward", "negate", "plus", "minus"})


def takers(circuit: Netlist) -> frozenset[str]:
    """The sources whose large changes are worth to become tables.

    >>> from operator import itemgetter
    >>> from syndicate.flow import Circuit, aggregates
    >>> c = Circuit(); sizes, words = c.source("sizes"), c.source("words")
    >>> c.sink("counts", sizes.index_with(itemgetter(0)).aggregate(aggregates.count)); c.sink("set", words.distinct())
    >>> takers(c)
    frozenset({'sizes'})
    """
    starts = [port.node for node in circuit.nodes if _gains(node) for port in node.inputs]
    nodes = circuit.nodes

    def before(number: int) -> list[int]:
        return [port.node for port in nodes[number].inputs] if _passes_on(nodes[number]) else []

    return frozenset(nodes[number].name for number in reached(starts, before) if nodes[number].kind is Kind.SOURCE)


def _gains(node: Node) -> bool:
    if node.op == "join":
        return is_rearranging(node.params["function"])
    if node.op != "aggregate":
        return False
    aggregate: Aggregate = node.params["aggregate"]
    return aggregate.form in ARRAYED and (aggregate.by is None or is_rearranging(aggregate.by))


def _passes_on(node: Node) -> bool:
    params = node.params
    if node.op == "map":
        return is_rearranging(params["function"])
    if node.op == "filter":
        return isinstance(params["function"], where)
    if node.op == "index_with":
        return is_rearranging(params["key"]) and (params["value"] is None or is_rearranging(params["value"]))
    return node.op in PASSING


# ----------------------------------------------------------------------------------------------------- the local engine


FEW_GIVEN: Final = 64
"""A step that is given so many rows, or fewer, costs less in dictionaries than tables of words cost to be made."""

SOME_ROWS: Final = 8 * FEW_GIVEN
"""A circuit that has been given more rows than this, by however few, goes on for long: then tables pay."""

READABLE_AGAIN: Final = (dict, list, set, frozenset, ZSet, Columns)
"""What gives the same when a step is taken again; nobody knows it of what else has a length and can be read."""

_SELDOM: Final = 8
"""Memory is looked after every so many steps."""

SMALL_CHANGE: Final = 100
"""Fewer rows than this leave fewer objects than the garbage collector waits for."""

BOUNDED: Final = (LINEAR - {"flat_map"}) | {"source", "sink", "distinct", "aggregate"}
"""Operators that give about as many rows as they take: a step of no others is as large as what it is given."""


class Outputs(dict[str, Element]):
    """What changed in a step, by sink: only what changed is iterated over; any other sink gives an empty ZSet."""

    def __init__(self, empties: Mapping[str, Element]) -> None:
        self._empties = empties  # an empty dictionary needs no more to begin with

    def __missing__(self, name: str) -> Element:
        if name not in self._empties:
            raise UnknownStream(f"the circuit has no sink {name!r}; its sinks are {sorted(self._empties)}")
        return self._empties[name]

    def get(self, name: str, default: Element = None) -> Element:
        """The same; *default* for what is no sink."""
        return self[name] if name in self._empties else default


_NO_OUTPUTS: Final = Outputs({})
"""Those of an engine between its steps."""

Entries: TypeAlias = list[tuple[Key, Key | None]]
"""Primary keys with their elements, or None for none."""


class Upserts:
    """The elements of a source with a primary key, so that a new one replaces the old."""

    __slots__ = ("current", "key")

    def __init__(self, key: Callable[[Element], Element]) -> None:
        self.key = key
        self.current: dict[Key, Key] = {}

    def delta(self, changes: object) -> tuple[dict[Key, int], Entries, Entries]:
        """The batch that makes what is given current, the entries that it changes, and what they become."""
        wanted = {key_of(key): None if element is None else key_of(element) for key, element in self.pairs(changes)}
        weights: list[tuple[Key, int]] = []
        saved: list[tuple[Key, Key | None]] = []
        for key, new in wanted.items():
            old = self.current.get(key)
            if old == new:
                continue
            saved.append((key, old))
            weights += [(element, weight) for element, weight in ((old, -1), (new, 1)) if element is not None]
        return add_up(Mixed(), weights), saved, [(key, wanted[key]) for key, _ in saved]

    def pairs(self, changes: object) -> Iterator[tuple[Element, Element]]:
        """Changes as keys with their new elements or None; raises :class:`CircuitError`."""
        if isinstance(changes, ZSet):
            raise CircuitError(
                f"a source with a key takes {{key: element or None}} or elements, not a ZSet: {changes!r}"
            )
        if isinstance(changes, Mapping):
            return map(self.agreed, changes.items())
        return map(self.keyed, elements_of(changes, "a source with a key"))

    def keyed(self, element: Element) -> tuple[Element, Element]:
        """An element with its key."""
        try:
            return self.key(element), element
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            shown = repr(element)
            raise StepFailed(
                f"the key of a source raised {text} at {shown}. Nothing was changed.", element=shown, reason=text
            ) from error

    def agreed(self, pair: tuple[Element, Element]) -> tuple[Element, Element]:
        """A key with its element, or with None."""
        key, element = pair
        if element is not None and key_of(self.keyed(element)[0]) != key_of(key):
            raise CircuitError(
                f"a source with a key got {element!r} under {key!r}, but its key is {self.key(element)!r}: "
                "a step gives elements, or {key: element}, where None deletes"
            )
        return pair

    def put(self, key: Key, element: Key | None) -> None:
        """Let an element be current under a key."""
        if element is None:
            self.current.pop(key, None)
        else:
            self.current[key] = element

    def write(self, entries: Entries) -> None:
        """Let elements be current."""
        for key, element in entries:
            self.put(key, element)


class Unique:
    """What a source holds that is a set, so that only what was not there comes, and only what was there goes."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: dict[Key, int] = {}

    def delta(self, batch: dict[Key, int]) -> dict[Key, int]:
        """What a batch changes."""
        held = self.held
        change: dict[Key, int] = Mixed() if type(batch) is Mixed else {}
        change.update(
            (key, 1 if weight > 0 else -1) for key, weight in batch.items() if (weight > 0) is (key not in held)
        )
        return change

    def take(self, change: dict[Key, int]) -> None:
        """Hold what comes, and no longer what goes."""
        for key, weight in change.items():
            if weight > 0:
                self.held[key] = 1
            else:
                self.held.pop(key, None)

    def take_back(self, change: dict[Key, int]) -> None:
        """Take a step back."""
        self.take({key: -weight for key, weight in change.items()})


class LocalEngine(AbstractEngine):
    """A circuit with its state.

    >>> from syndicate.flow import Circuit, ZSet
    >>> circuit = Circuit()
    >>> circuit.sink("out", circuit.source("in").distinct())
    >>> engine = LocalEngine(circuit)
    >>> outputs = engine.step({"in": ZSet({"a": 2})})
    >>> isinstance(outputs, Outputs), outputs["out"], engine.epoch
    (True, ZSet({'a': 1}), 1)

    ``states`` maps the global id of each node to what it keeps; ``epoch`` counts the steps done; ``measures``, when
    watching is on, what each node has cost.  ``inspect``, if there is one, sees what a step gives before the step has
    happened: if it raises, the step leaves no trace.  ``row_budget`` is how many rows may yet come before there are
    tables of words.
    """

    measures: Measures | None = None
    makers, loop_makers = MAKERS, LOOP_MAKERS

    def __init__(self, circuit: Netlist) -> None:
        self.circuit = circuit
        self.epoch = 0
        self.undo: Log = []
        self.commits: list[Committable] = []
        self.states: dict[GlobalId, list[Element]] = {}
        self.outputs: Outputs = _NO_OUTPUTS
        self.keeps_columns = False
        self.readied: Readied | None = None  # for columns, at the first
        self._empties: dict[str, Element] = {}
        self.inspect: Callable[[Outputs], object] | None = None
        self._busy = False
        self._pause = CollectorPause()  # of the garbage collector, in the step that runs
        self.root = Scope(self, circuit)
        self._sources = {name: self.root.slots[Port(node.id)] for name, node in circuit.sources.items()}
        self.tables: Tabular | None = None
        self.row_budget = inf if library is None else -1 if self.is_inspected else SOME_ROWS
        self._firsts: dict[int, Key] = {}  # what each source gave first, before there are tables
        self._takers: frozenset[str] | None = None
        self._grows = not all(node.op in BOUNDED for node in circuit.nodes)
        self._constants = [
            (self.root.slots[Port(node.id)], node.params["zset"].batch)
            for node in circuit.nodes
            if node.op == "constant" and len(node.params["zset"])
        ]
        self._upserts = {
            name: self.root.state(node, Upserts(node.params["key"]))
            for name, node in circuit.sources.items()
            if "key" in node.params
        }
        self._unique = {
            name: self.root.state(node, Unique()) for name, node in circuit.sources.items() if "unique" in node.params
        }

    def make_loop(self, circuit: Netlist, above: Scope, position: int) -> Loop:
        """The scope of a child circuit."""
        return Loop(self, circuit, above, position)

    def failing_element(self, scope: Scope, node: Node, error: Exception) -> tuple[str, Exception]:
        """What shows the arguments for which the function of a node raises such an error, and the one raised there."""
        return failing_element(scope, node, error)

    def watch(self, *, on: bool = True) -> None:
        """Measure each node from now on, or stop."""
        self.measures = Measures() if on else None

    @property
    def is_busy(self) -> bool:
        """Whether a step is running."""
        return self._busy and self._is_on_a_stack()

    def _is_on_a_stack(self) -> bool:
        """Whether a thread runs a step of this engine: what ended one may have ended the end of it, too."""
        for frame in [*stacks().values()]:
            at: FrameType | None = frame
            while at is not None:
                if at.f_code is _RUN and at.f_locals.get("self") is self:
                    return True
                at = at.f_back
        return False

    def recover(self) -> None:
        """Finish taking back a step, if that was ended as well."""
        if self._busy or self.undo:
            self._roll_back()

    def step(self, deltas: Mapping[str, Given | Columns]) -> Outputs:
        """One epoch; see :meth:`syndicate.flow.circuit.Circuit.step`."""
        if type(deltas) is not dict and not issubclass(type(deltas), Mapping):
            sources = ", ".join(f"{name!r}: ..." for name in self._sources)
            raise CircuitError(f"a step takes a mapping {{{sources}}} of sources to their changes, not {deltas!r}")
        if self._busy or self.undo:
            if self.is_busy:
                raise StepFailed(
                    "a step of this circuit is running, and called for another: a function of a circuit must not step "
                    "it"
                )
            self.recover()
        if self.row_budget < inf:
            rows = sum(
                [
                    len(each.batch) if type(each) is ZSet
                    else len(each) if isinstance(each, READABLE_AGAIN)
                    else inf
                    for each in deltas.values()
                ]
            )  # fmt: skip
            self.row_budget -= rows
            if rows > FEW_GIVEN or self.row_budget < 0:
                self._make_tables()
        if self.tables is not None:
            for change in deltas.values():
                if isinstance(change, Columns):
                    self.tables.end()
                    self.tables = None
                    break
        self._busy = True
        try:
            outputs = self._run(deltas)
            if self._pause.works:
                self._pause.end()  # it looks when something is made next: when the log has gone
            self._busy = False
            del self.undo[:]  # here the step happens
            return outputs
        except Outgrown:
            self._roll_back()
            self.row_budget = -1
            return self.step(deltas)
        except BaseException as error:
            self._roll_back()
            if isinstance(error, SyndicateError) or not isinstance(error, Exception):
                raise
            reason = (
                f"{type(error).__name__}: {error}, in no node: if no element's __eq__ or __hash__ raises it, "
                "it is a defect of syndicate.flow"
            )
            raise StepFailed(f"{reason}. {AS_BEFORE}", reason=reason) from error

    def _run(self, deltas: Mapping[str, Given | Columns]) -> Outputs:
        """All of a step: each change of what is kept is noted in the log before it is made."""
        root = self.root
        pipeline = None if self.tables is None else self.tables.pipeline
        if pipeline is None and self._grows:
            self._pause.begin()
        if self.tables is not None and self.epoch and not self.epoch % _SELDOM:
            self.tables.give_back()
        if self.measures is not None:
            self.measures.begin()
        outputs = self.outputs = Outputs(self._empties)
        self.keeps_columns = False
        batches = [
            (self._sources[name], batch)
            for name, change in deltas.items()
            if (batch := self._batch(name, change))
        ]  # fmt: skip
        delayed: dict[int, Batch] = {}
        if pipeline is None or not pipeline.run(batches, outputs):
            if not self._pause.works and (self._grows or any(len(batch) >= SMALL_CHANGE for _, batch in batches)):
                self._pause.begin()
            if self.epoch == 0:
                batches += [(slot, self._table_of(slot, batch)) for slot, batch in self._constants]
            for slot, batch in [*batches, *root.delayed.items()]:
                root.put(slot, batch)
            root.run()
            delayed = root.finish()
        if self.inspect is not None:
            self.inspect(outputs)
        for changed in self.commits:
            changed.commit(self.undo)
        self.commits.clear()
        self.outputs = _NO_OUTPUTS  # what a step gave is the caller's alone
        self.undo.append((self._put_back, (root.delayed, self.epoch)))
        root.delayed = delayed
        self.epoch += 1
        if not self.epoch % _SELDOM:
            self._give_back()
        return outputs

    def _make_tables(self) -> None:
        """Keep in words from now on what is in dictionaries, where that gains something; between steps."""
        note_attribute(self.undo, self, "tables")
        note_attribute(self.undo, self, "row_budget")
        self.tables = tabular(self.root, self._firsts)
        self.row_budget = inf
        self.undo.clear()

    def _put_back(self, what: tuple[dict[int, Batch], int]) -> None:
        self.root.delayed, self.epoch = what

    def _give_back(self) -> None:
        """Make tables again, in place, that have lost most of what they held: Python's never shrink by themselves.

        A table takes 36 to 110 bytes an entry; at four times that, as many entries went as stay, so it pays.
        """
        for states in self.states.values():
            for state in states:
                table = getattr(state, "index", state)
                if type(table) is dict and getsizeof(table) > 4096 + 400 * len(table):
                    note_whole(self.undo, table)
                    entries = list(table.items())
                    table.clear()
                    table.update(entries)

    def _roll_back(self) -> None:
        """Be as before the step; to be done again if it is interrupted."""
        self._pause.end()
        take_back(self.undo)
        for states in self.states.values():
            for state in states:
                if hasattr(state, "commit"):
                    state.discard()
        self.commits.clear()
        self.root.reset()
        self.outputs = _NO_OUTPUTS
        self.undo.clear()
        self._busy = False

    def _batch(self, name: str, change: Given | Columns) -> Batch | ColumnTable | WordTable:
        if name not in self._sources:
            sources = ", ".join(map(repr, sorted(self._sources))) or "none"
            raise UnknownStream(f"the circuit has no source {name!r}; its sources are {sources}")
        upserts = self._upserts.get(name)
        if isinstance(change, Columns):
            if upserts is not None:
                raise CircuitError(f"the source {name!r} has a key: it takes elements, not Columns with weights")
            return self._columnar(name, change)
        if upserts is not None:
            batch, saved, entries = upserts.delta(change)
            self.undo.append((upserts.write, saved))
            upserts.write(entries)
            return batch
        rows = (
            change if type(change) is dict
            else change.batch if type(change) is ZSet
            else delta_of(change, f"the source {name!r}").batch
        )  # fmt: skip
        if name in self._unique:
            change = rows = self._changed(name, batch_of(rows) if rows is change else rows)
        if self.row_budget < inf and rows:
            self._firsts.setdefault(self._sources[name], next(iter(rows)))
        if self.tables is not None:
            words = self.tables.taken(self._sources[name], rows)
            if words is not None:
                return words
        elif len(rows) >= LARGE_CHANGE and (table := self._as_table(name, rows)) is not None:
            return table
        return batch_of(rows) if rows is change and name not in self._unique else rows

    def _table_of(self, slot: int, batch: dict[Key, int]) -> Batch | WordTable:
        """What a constant gives."""
        words = None if self.tables is None else self.tables.taken(slot, batch)
        return batch if words is None else words

    def _changed(self, name: str, batch: dict[Key, int]) -> dict[Key, int]:
        """What a batch changes of a source that is a set."""
        unique = self._unique[name]
        change = unique.delta(batch)
        self.undo.append((unique.take_back, change))
        unique.take(change)
        return change

    def _columnar(self, name: str, columns: Columns) -> Batch | ColumnTable:
        self.row_budget = inf  # arrays are there, and stay
        table = columns.table() if len(columns) >= SMALL_COLUMNS else None
        if name in self._unique:
            batch = columns.batch()
            change = self._changed(name, batch)
            table = None if table is None else table.restricted(batch, change)
            if table is None:
                return change
        if table is None:
            return columns.batch()
        self.keeps_columns = True
        return table.rows(indexed=False) if self._sources[name] in self._ready().by_rows else table

    def _ready(self) -> Readied:
        if self.readied is None:
            from syndicate.flow.columnar.steps import Readied

            self.readied = Readied(self.root)
        return self.readied

    def _as_table(self, name: str, rows: dict[Key, int]) -> ColumnTable | None:
        """A large change by rows as a table, where that is worth it and can be."""
        if self._takers is None:
            self._takers = takers(self.circuit)
        if name not in self._takers or type(rows) is not dict or type(next(iter(rows))) not in (int, tuple):
            return None
        try:
            from syndicate.flow.columnar.parts import table_of
        except ImportError:  # numpy is an extra
            self._takers = frozenset()
            return None
        return None if self._sources[name] in self._ready().by_rows else table_of(rows)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """All that is kept is in dictionaries meanwhile, for who reads them between steps; then where it was."""
        if not self.is_busy:
            self.recover()
        start = len(self.undo)
        try:
            if self.tables is not None:
                self.tables.settle()
            if self.readied is not None:
                self.readied.settle()
            yield
        finally:
            take_back(self.undo, start)
            del self.undo[start:]

    def in_columns(self) -> list[tuple[Node, int]]:
        """How many entries of a node are in columns and no dictionary."""
        counts = [] if self.readied is None else [(node, len(runs)) for node, runs in self.readied.sorted_runs]
        return counts if self.tables is None else [(node, len(keeper)) for node, keeper in self.tables.keepers]

    def sink(self, node: Node, cells: Sequence[object], inputs: list[int]) -> Callable[[], None]:
        """The step of a sink."""
        name, first = node.name, inputs[0]
        shows: list[Callable[[Element], Element]] = [
            ZSet.adopt if isinstance(cells[i], dict) else IndexedZSet.adopt for i in inputs
        ]
        show = shows[0]
        empties = tuple([of(cells[i]) for of, i in zip(shows, inputs, strict=True)])
        self._empties[name] = empties[0] if len(inputs) == 1 else empties

        def step() -> None:
            self.outputs[name] = show(cells[first])

        def step_of_several() -> None:
            self.outputs[name] = tuple([of(cells[i]) for of, i in zip(shows, inputs, strict=True)])

        return step if len(inputs) == 1 else step_of_several


_RUN: Final = LocalEngine.step.__code__
