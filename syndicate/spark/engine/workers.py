"""What runs in Spark's Python workers: functions of circuits over Arrow batches.

Each is an object that Spark ships: it takes an iterator of record batches and gives one.  A function that raises is
described by its node and the element, in a mark that the driver finds in whatever Spark wraps around it.

Source: ``docs/design/spark.md``, "The second engine".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import asdict, define, frozen

from syndicate.errors import NotAValue, StepFailed, SyndicateError, UnhashableElement, UnwritableElement
from syndicate.flow.aggregates import Aggregate
from syndicate.flow.element import Element, Key, Mixed, add_up, key_of
from syndicate.flow.node import AS_BEFORE, Node
from syndicate.flow.operators.groups import GroupView
from syndicate.spark.engine.canonical import remember
from syndicate.spark.engine.rows import arrays_of, elements_of, table_of
from syndicate.spark.engine.shape import ANY, FALLBACK, Layout, Shape
from syndicate.spark.engine.worker_process import worker

if TYPE_CHECKING:
    import pyarrow as pa

MARK = "syndicate-worker:"
ANYTHING: Final = Layout(ANY)
PAIRS: Final = Layout(ANY, ANY)
_ROWS = 10_000


class Called(NamedTuple):
    """What errors call a node: in full, its operation, and the name that it was given."""

    text: str
    operator: str = ""
    label: str = ""

    @classmethod
    def of(cls, node: Node) -> Called:
        """The names of a node, for workers, which do not get the circuit."""
        return cls(str(node), node.op, node.name)


@frozen
class Failure:
    """The fields of an error of a worker: that of a function that raised, or of an element without identity."""

    text: str
    operator: str
    label: str
    reason: str
    element: str
    unhashable: bool

    def error(self) -> SyndicateError:
        """The error, as the local engine raises it."""
        if self.unhashable:
            return UnhashableElement(
                f"{self.text}: {self.reason}", operator=self.operator, label=self.label, reason=self.reason
            )
        return StepFailed(
            f"{self.text} raised {self.reason} at {self.element}. {AS_BEFORE}",
            operator=self.operator,
            label=self.label,
            element=self.element,
            reason=self.reason,
        )


class WorkerFailed(Exception):
    """A function of the circuit failed in a worker.

    Spark hands nothing but the text of a worker's exception to the driver, so the text is the failure as JSON, in
    hexadecimal digits behind a mark; see :func:`failure_in`.
    """


def failure_in(text: str) -> Failure | None:
    """The failure of a worker that Spark wrapped into a text, if there is one."""
    match = re.search(rf"{MARK}([0-9a-f]+);", text)
    return None if match is None else Failure(**json.loads(bytes.fromhex(match[1])))


def failed(node: Called, error: Exception, arguments: Sequence[object]) -> WorkerFailed:
    """The failure of *node* at some arguments."""
    shown = ", ".join(map(repr, arguments))
    failure = Failure(
        *node,
        reason=str(error) if isinstance(error, SyndicateError) else f"{type(error).__name__}: {error}",
        element=shown if len(shown) <= 300 else shown[:297] + "...",
        unhashable=isinstance(error, (UnhashableElement, UnwritableElement, NotAValue)),
    )
    return WorkerFailed(f"{MARK}{json.dumps(asdict(failure)).encode().hex()};")


@define
class PythonWorker:
    """The base: *node* is what messages call the node, *modules* are those that record classes may be in."""

    node: Called
    modules: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All batches, one by one."""
        worker.begin()
        remember(self.modules)
        yield from self.run(batches)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the worker is for: batch by batch."""
        for batch in batches:
            yield from self.one(batch).to_batches()

    def one(self, batch: pa.RecordBatch) -> pa.Table:
        """One batch."""
        raise NotImplementedError

    def each(self, function: Callable[..., Element], arguments: Iterable[tuple[Element, ...]]) -> list[Element]:
        """The results, with blame."""
        results = []
        for arguments_ in arguments:
            try:
                results.append(function(*arguments_))
            except Exception as error:
                raise failed(self.node, error, arguments_) from error
        return results

    def table(self, elements: Sequence[Element], weights: Sequence[int], layout: Layout) -> pa.Table:
        """Results as a table; raises where one has a type that cannot be written."""
        import pyarrow as pa

        try:
            for element in elements:
                key_of(element)
            return table_of(elements, weights, layout)
        except (OverflowError, pa.ArrowInvalid) as error:
            raise WorkerFailed(FALLBACK) from error  # a column of integers was expected, and one leaves 64 bits
        except SyndicateError:
            for element in elements:
                try:
                    key_of(element)
                    table_of([element], [1], layout)
                except SyndicateError as error:
                    raise failed(self.node, error, [element]) from error
            raise


@define
class Recode(PythonWorker):
    """The same elements in another layout."""

    old: Layout
    new: Layout

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        import pyarrow as pa

        arrays: list[Element] = []
        if self.new.key is not None and self.old.key is not None:
            arrays += arrays_of(elements_of(batch, "k", self.old.key), self.new.key)
        arrays += arrays_of(elements_of(batch, "e", self.old.value), self.new.value)
        return pa.table([*arrays, batch.column("w")], names=[*self.new.columns, "w"])


@define
class Read(PythonWorker):
    """The rows of a user's table as elements: what Spark has no comparable column for goes by Python."""

    width: int

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        columns = [batch.column(i).to_pylist() for i in range(self.width)]
        rows = list(zip(*columns, strict=True))
        return self.table(rows, batch.column("w").to_pylist(), Layout(("any",) * self.width))


@define
class MapWorker(PythonWorker):
    """``map``."""

    shape: Shape
    function: Callable[..., Element]
    out: Layout = ANYTHING

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        elements = self.each(self.function, zip(elements_of(batch, "e", self.shape)))
        return self.table(elements, batch.column("w").to_pylist(), self.out)


@define
class FlatMapWorker(MapWorker):
    """``flat_map``."""

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        elements = self.each(lambda element: list(self.function(element)), zip(elements_of(batch, "e", self.shape)))
        weights = batch.column("w").to_pylist()
        spread = [weight for some, weight in zip(elements, weights, strict=True) for _ in some]
        return self.table([element for some in elements for element in some], spread, self.out)


@define
class Filter(MapWorker):
    """``filter``: the columns stay as they are."""

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        import pyarrow as pa

        passed = [bool(x) for x in self.each(self.function, zip(elements_of(batch, "e", self.shape)))]
        return pa.Table.from_batches([batch]).filter(pa.array(passed, pa.bool_()))


@define
class IndexWorker(PythonWorker):
    """``index_with``: the element itself keeps its columns where it is the value."""

    shape: Shape
    key: Callable[..., Element]
    value: Callable[..., object] | None
    out: Layout = PAIRS

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        import pyarrow as pa

        elements = elements_of(batch, "e", self.shape)
        weights = batch.column("w").to_pylist()
        assert self.out.key is not None
        keys = self.table(self.each(self.key, zip(elements)), weights, Layout(self.out.key))
        values: pa.Table | pa.RecordBatch = batch
        if self.value is not None:
            values = self.table(self.each(self.value, zip(elements)), weights, Layout(self.out.value))
        columns = [*keys.columns[:-1], *[values.column(name) for name in self.out.values], batch.column("w")]
        return pa.table(columns, names=[*self.out.columns, "w"])


@define
class Join(PythonWorker):
    """The function of a join, on rows that have met: the key, the left value, the right one."""

    key: Shape
    left: Shape
    right: Shape
    function: Callable[..., Element]
    out: Layout = ANYTHING

    def one(self, batch: pa.RecordBatch) -> pa.Table:  # noqa: D102  # the base says it
        sides = [
            elements_of(batch, "k", self.key),
            elements_of(batch, "a", self.left),
            elements_of(batch, "b", self.right),
        ]
        elements = self.each(self.function, zip(*sides, strict=True))
        return self.table(elements, batch.column("w").to_pylist(), self.out)


@define
class Groups(PythonWorker):
    """``aggregate``: rows sorted by key, with the weights before and after; the old result out, the new one in."""

    layout: Layout
    aggregate: Aggregate
    stream: bool
    out: Layout | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Groups may go over from one batch to the next."""
        results = self.results(batches)
        while some := list(islice(results, _ROWS)):
            assert self.layout.key is not None
            layout = self.out or Layout((self.layout.key, ANY))
            table = self.table([pair for pair, _ in some], [weight for _, weight in some], layout)
            yield from table.to_batches()

    def results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Element, int]]:
        """The changes, one by one."""
        assert self.layout.key is not None
        current: Element = None
        key: Key = None
        old: dict[Element, int] = {}
        new: dict[Element, int] = {}
        started = False
        for batch in batches:
            keys = elements_of(batch, "k", self.layout.key)
            values = elements_of(batch, "e", self.layout.value)
            before, after = batch.column("o").to_pylist(), batch.column("w").to_pylist()
            for at, value, was, now in zip(keys, values, before, after, strict=True):
                typed = key_of(at)
                if not started or typed != current:
                    if started:
                        yield from self.change(key, old, new)
                    key, current, old, new, started = at, typed, Mixed(), Mixed(), True
                place = key_of(value)
                add_up(old, [(place, was)])
                add_up(new, [(place, now)])
        if started:
            yield from self.change(key, old, new)

    def change(self, key: Key, old: dict[Element, int], new: dict[Element, int]) -> Iterator[tuple[Element, int]]:
        """Of one group."""
        gone = None if self.stream else self.result(old)
        come = self.result(new)
        if gone is not None and come is not None and key_of(gone) == key_of(come):
            return
        if gone is not None:
            yield (key, gone), -1
        if come is not None:
            yield (key, come), 1

    def result(self, group: dict[Element, int]) -> Element:
        """The aggregate of a group, None for no row."""
        if not group:
            return None
        try:
            return self.aggregate.of(GroupView(group))
        except Exception as error:
            at = self.guilty(group)
            raise failed(self.node, error, [at] if at is not _NOTHING else [dict(GroupView(group))]) from error

    def guilty(self, group: dict[Element, int]) -> Element:
        """The value at which the aggregate fails, if it is one alone."""
        if self.aggregate.function is None:
            for value in GroupView(group):
                try:
                    self.aggregate.of({value: 1})
                except Exception:
                    return value
        return _NOTHING


_NOTHING: Element = object()
