"""Rows that stay columns are, for all who look, the rows as they would be one by one."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syndicate import ANY, Entity, Ref, Symbol, capture, dataspace, open_system, record, ref, spawn
from syndicate.actors.bulk import BulkHandle, Division
from syndicate.actors.dataspace import bulks_of
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import Handle, current
from syndicate.actors.verbs import current_facet, linked_task
from syndicate.errors import NotInTurn, SourceError
from syndicate.index.interest import interest
from syndicate.spark import rows as rows_module
from syndicate.spark.bulk import BulkRows, bulk_of
from syndicate.spark.columns import NULL, records
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.delivery import Delivery, Move, move_of
from syndicate.spark.journal import SourceJournal, described
from syndicate.spark.rows import Step, TableRows
from syndicate.values.value import freeze
from tests.strategies import examples


@record
class Crate:
    """A row."""

    name: str
    size: int


def pattern_of_nulls() -> Any:
    """The crates without a name."""
    nothing: Any = NULL
    return Crate(nothing, capture())


ROW = st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([1, 2, -2, None]))
PATTERNS: dict[str, Callable[[], Any]] = {
    "all": lambda: Crate(capture(), capture()),
    "whole": lambda: capture(Crate(ANY, ANY)),
    "names": lambda: Crate(capture(), ANY),
    "a": lambda: Crate("a", capture()),
    "-2": lambda: Crate(capture(), -2),
    "nulls": pattern_of_nulls,
    "both": lambda: Crate("b", 2),
    "nobody": lambda: Crate("z", capture()),
    "integers": lambda: Crate(capture(), capture(int)),
    "any": capture,
}


def table_of(rows: list[tuple[Any, Any]], weights: list[int] | None = None) -> pa.Table:
    """Rows as Spark hands them over."""
    names, numbers = [name for name, _ in rows], [size for _, size in rows]
    columns: dict[str, Any] = {"name": pa.array(names, pa.string()), "size": pa.array(numbers, pa.int32())}
    return pa.table(columns | ({} if weights is None else {"w": pa.array(weights, pa.int64())}))


class Heard(Entity):
    """An observer that notes what it is notified of, and what it knows to be there."""

    def __init__(self, name: str, heard: list[Any]) -> None:
        self.name = name
        self.heard = heard

    def assert_(self, value: Any, handle: Any) -> None:
        self.heard.append(("+", self.name, repr(value)))

    def retract(self, handle: Any) -> None:
        self.heard.append(("-", self.name, repr(handle.form)))


class RawHeard(Heard):
    """The same, who wants frozen forms."""

    raw = True


class Side:
    """A source without Spark, in a dataspace of its own: its rows come as columns, or one by one."""

    def __init__(self, system: System, many: int, rows: TableRows, table: bool, path: Path | None) -> None:
        self.system = system
        self.many = many
        self.rows = rows
        self.table = table
        self.path = path
        self.heard: list[Any] = []
        self.handles: dict[str, Handle] = {}
        self.number = -1
        self.ds: Ref
        self.watching: Facet
        self.source: Facet

    async def open(self) -> None:
        """Begin."""

        def boot() -> None:
            self.ds = dataspace()
            spawn(self._keep, "watching", name="watching")
            spawn(self._keep, "source", name="source")

        self.system.spawn(boot)
        await self.system.settle()
        self.journal = None if self.path is None else SourceJournal(self.path, described({}))
        self.current = self._current()
        self.delivery = Delivery(self.ds, self.source)

    def _current(self) -> CurrentRows:
        keyed = bool(self.rows.key)
        if self.journal is None:
            return CurrentRows(keyed=keyed, table=self.table)
        bulk = partial(bulk_of, self.rows.to, key=self.rows.key)
        return self.journal.current(keyed, self.table, bulk)

    def _keep(self, name: str) -> None:
        setattr(self, name, current_facet())
        linked_task(trio.sleep_forever)

    async def step(self, table: pa.Table) -> str:
        """A batch; the error that it made, if it did."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows_module, "MANY", self.many)
            try:
                steps = self.rows.steps(table)
                if self.table:
                    steps = [self.current.become(steps)]
                moves = [move_of(self.delivery, self.current, step) for step in steps]
            except SourceError as error:
                return str(error)
        self.number += 1
        if self.journal is not None:
            self.journal.write(self.current, self.number)
            self.journal.commit()
        await self.delivery.batch(moves)
        await self.system.settle()
        return ""

    async def watch(self, name: str, raw: bool) -> None:
        """One more observer, or one less."""

        def begin() -> None:
            heard = (RawHeard if raw else Heard)(f"{name}{raw}", self.heard)
            asked = interest(PATTERNS[name](), ref(heard))
            self.handles[f"{name}{raw}"] = current("watch").assert_form(current_facet(), self.ds, asked)

        def end() -> None:
            self.handles.pop(f"{name}{raw}").retract()

        self.watching.enter(end if f"{name}{raw}" in self.handles else begin)
        await self.system.settle()

    async def restart(self) -> None:
        """Kill the source, and let another one go on with the journal."""
        self.source.enter(lambda: 1 / 0)
        self.system.spawn(self._keep, "source", name="source")
        await self.system.settle()
        if self.journal is not None:
            self.journal.close()
            self.journal = SourceJournal(self.path or "", described({}))
        self.current, self.delivery = self._current(), Delivery(self.ds, self.source)
        there, bulks = self.current.records(), self.current.bulks
        move = Move(there, [], len(there), None, bulks[0] if bulks else None)
        await self.delivery.batch([self.delivery.divided(move)])
        await self.system.settle()

    def step_heard(self) -> Counter[Any]:
        """What observers were notified of since the last time."""
        heard, self.heard[:] = Counter(self.heard), []
        return heard


COLUMNS = {
    pa.int8(): st.integers(-3, 3),
    pa.int64(): st.sampled_from([-2, 2**62, -(2**63), 0]),
    pa.uint64(): st.sampled_from([0, 2**64 - 1, 2**62]),
    pa.string(): st.sampled_from(["", "a", "null"]),
    pa.large_string(): st.sampled_from(["", "a"]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.just(dt.date(2026, 1, 2)),
    pa.binary(): st.just(b"a"),
    pa.list_(pa.int64()): st.lists(st.integers(0, 1), max_size=2),
}


@pytest.mark.parametrize("kind", COLUMNS, ids=str)
@given(st.data())
def test_a_split_leaves_no_match(kind: pa.DataType, data: st.DataObject) -> None:
    """Of every type of column: what holds a constant is among what may, and what may not is all else."""
    items = data.draw(st.lists(st.none() | COLUMNS[kind], max_size=5))
    table = pa.table({"name": pa.array(items, kind), "size": pa.array([1] * len(items), pa.int64())})
    bulk = bulk_of(Crate, table)
    assert list(bulk.forms()) == records(Crate, table)
    others = [freeze(value) for value in (True, 1, "a", "\ud800", 1.0, 2**62, 2**70, -2, Symbol("a"), b"a")]
    held = [form[1] for form in bulk.forms()] or [NULL]
    drawn = data.draw(st.lists(st.sampled_from([*others, *held]), max_size=4))
    for asked in (drawn, *([each] for each in others)):
        looked, rest = bulk.split(0, asked)
        assert Counter([*looked.forms(), *rest.forms()]) == Counter(bulk.forms())
        assert [form for form in rest.forms() if form[1] in asked] == []
    assert bulk.split(7, drawn)[0].forms() == []


def test_what_is_no_value_is_reported_at_once() -> None:
    """A time beyond the years 1 to 9999, and text that is no UTF-8, are errors when the bulk is made, and not later."""
    times = pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("us", "UTC"))
    text = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
    for name, column in (("size", times), ("name", text)):
        other = {"size": "name", "name": "size"}[name]
        with pytest.raises(SourceError, match=f"the column '{name}' of type .* holds what has no value here"):
            bulk_of(Crate, pa.table({name: column, other: ["a"] * len(column)}))
    good = pa.array([None, 0, 1_000_000], pa.timestamp("s"))
    assert len(bulk_of(Crate, pa.table({"size": good, "name": good})).forms()) == 3


async def test_a_handle_of_many() -> None:
    """A bulk has one handle, which is refused outside of turns, and gone like any other, once."""
    instances: list[Any] = []
    async with open_system() as system:

        def boot() -> None:
            ds = dataspace()
            bulks = bulks_of(ds)
            assert bulks is not None
            bulk = bulk_of(Crate, table_of([("a", 1), ("b", 2), ("a", 1)]))
            handle = BulkHandle.assert_(current("boot"), current_facet(), ds, Division.of(bulks, bulk))
            instances.extend([ds, handle])
            linked_task(trio.sleep_forever)

        actor = system.spawn(boot)
        await system.settle()
        ds, handle = instances
        assert len(handle.value) == 3
        assert handle.live
        with pytest.raises(NotInTurn):
            handle.retract()
        index = ds.entity.index
        assert (index.values(), len(list(index))) == (3, 2)
        for _ in range(2):
            actor.root.enter(handle.retract)
            await system.settle()
            assert (index.values(), handle.live) == (0, False)

        def late() -> None:
            stopped = handle.facet
            stopped.stop(current("late"))
            bulk = bulk_of(Crate, table_of([("a", 1)]))
            instances.append(BulkHandle.assert_(current("late"), stopped, ds, Division.of(index.bulks, bulk)))

        actor.root.enter(late)
        await system.settle()
        assert (index.values(), instances[-1].live) == (0, False)


KINDS = ("append", "weights", "table", "keyed", "keyed table")


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(KINDS), st.booleans())
def test_traces(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    kind: str,
    journal: bool,
) -> None:
    """Batches, snapshots, restarts and observers in any order: after each, both sources have asserted the same, row by
    row; in the end nothing of either is left.
    """
    key = ["name"] if "keyed" in kind else []
    rows = TableRows(Crate, key, "w" if kind == "weights" else None)
    place = tmp_path_factory.mktemp("traces")

    async def play() -> None:
        async with open_system() as system:
            sides = [
                Side(system, many, rows, "table" in kind, place / str(many) if journal else None) for many in (1, 10**9)
            ]
            for side in sides:
                await side.open()
            for _ in range(data.draw(st.integers(1, 7))):
                what = data.draw(st.sampled_from(["batch", "batch", "batch", "watch", "restart"]))
                if what == "batch":
                    some = data.draw(st.lists(ROW, max_size=6))
                    weights = st.lists(st.integers(-2, 2), min_size=len(some), max_size=len(some))
                    table = table_of(some, data.draw(weights) if kind == "weights" else None)
                    errors = [await side.step(table) for side in sides]
                    assert errors[0] == errors[1]
                    if errors[0]:
                        break  # as a source does
                elif what == "watch":
                    name, raw = data.draw(st.sampled_from(list(PATTERNS))), data.draw(st.booleans())
                    for side in sides:
                        await side.watch(name, raw)
                else:
                    for side in sides:
                        await side.restart()
                one, other = (side.step_heard() for side in sides)
                assert one == other
            for side in sides:
                side.source.enter(lambda: current("end").facet.actor.root.stop(current("end")))
            await system.settle()
            one, other = (side.step_heard() for side in sides)
            assert one == other
            for side in sides:
                left = [each for each in side.ds.entity.index if each[0] is not Symbol("Observe")]  # type: ignore[attr-defined]
                assert [each for each in left if each[0] == Crate.__label__] == []  # type: ignore[attr-defined]
                assert side.ds.entity.index.bulks.waiting() == {}  # type: ignore[attr-defined]
                if side.journal is not None:
                    side.journal.close()
            if journal:
                stood = []
                for side in sides:
                    side.journal = SourceJournal(side.path or "", described({}))
                    stood.append(side._current())
                    stood[-1].open()
                    side.journal.close()
                assert (stood[0].weights, stood[0].of_key) == (stood[1].weights, stood[1].of_key)

    trio.run(play)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(ROW, min_size=1, max_size=3), st.sampled_from([1, -1]), st.booleans()),
        min_size=2,
        max_size=6,
    )
)
def test_sums_and_columns(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, int, bool]]) -> None:
    """Rows that come as columns, among removals, also of what is not there yet: the sums are those of single rows, and
    so is what a journal has, whichever steps it is written after.
    """
    path = tmp_path_factory.mktemp("sums") / "j"
    journal = SourceJournal(path, described({}))
    state, oracle = journal.current(bulk=partial(bulk_of, Crate)), CurrentRows()
    for number, (some, weight, written) in enumerate(steps):
        bulk = bulk_of(Crate, table_of(some))
        single = Step([(form, weight) for form in bulk.forms()])
        if weight < 0 or state.take(Step(BulkRows(bulk))) is None:
            state.change(single)
        oracle.change(single)
        if written:
            journal.write(state, number)
            journal.commit()
    journal.write(state, len(steps))
    journal.commit()
    journal.close()
    journal = SourceJournal(path, described({}))
    again = journal.current(bulk=partial(bulk_of, Crate))
    journal.close()
    for each in (state, again):
        each.open()
        assert each.weights == oracle.weights


def test_columns_do_not_meet_a_sum_below_zero() -> None:
    """A row that was removed before it came is not there after it has come: so it must be counted."""
    state = CurrentRows()
    bulk = bulk_of(Crate, table_of([("a", 1)]))
    state.change(Step([(form, -1) for form in bulk.forms()]))
    assert state.take(Step(BulkRows(bulk))) is None
    assert state.change(Step(BulkRows(bulk))) == ([], [])
    assert state.take(Step(BulkRows(bulk))) is bulk
