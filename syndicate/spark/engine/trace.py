"""A trace: the sum of all batches that a stream has carried, in runs that are merged as they grow.

A step adds one run at most. Small runs stay in the driver as well, as one table; large ones are files, and the largest
are divided by key, so that a delta of ten keys reads some buckets and not the whole.  Runs are merged when there are
too many, the small with the small: a base is written again only when what lies upon it is a quarter of it, so that an
entry is written some log(n) times.

Within a step there are three parts: what was there before, what this step's earlier ticks have added (in a loop), and
the batch of this tick, which a join must be able to leave out.

Contract: nothing that is committed changes before :meth:`StoredTrace.adopt`, and :meth:`StoredTrace.discard` forgets
the step.

Source: ``docs/design/spark.md``, "The second engine"; ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from syndicate.flow.element import Element
from syndicate.spark.engine.batch import Batch, FrameStore, added, buckets_of
from syndicate.spark.engine.key_lookup import near, of_keys
from syndicate.spark.engine.rows import table_of
from syndicate.spark.engine.shape import Layout, joined, of_data, to_data

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MANY_RUNS: Final = 8
"""So many runs are merged: each costs a plan some 10 ms, merging small ones as much as a run."""
SHARE: Final = 4
"""A base is merged with what lies upon it when that is a quarter of it."""

_PATIENCE: Final = 7
"""Where the rows of some keys turned out to be many, they are not looked for in the driver so many times."""
_CHOOSING: Final = 4_000
"""More keys are in all buckets, so much the same."""


class StoredTrace:
    """One collection that an engine keeps."""

    def __init__(self, frames: FrameStore, name: str, *, keyed: bool = False, lasting: bool = True) -> None:
        """*keyed*: it is searched by the key of its layout, else by the whole element; *lasting*: beyond the step.

        *sought*: the rows of some keys are wanted of it, so that large runs are divided.
        """
        self.frames = frames
        self.name = name
        self.keyed = keyed
        self.lasting = lasting
        self.layout: Layout | None = None
        self.runs: list[Batch] = []
        self.pending: list[Batch] = []
        self.current: Batch | None = None
        self.fresh = False
        self.hidden = False
        self.version = 0
        self.sought = True
        self._staged: list[Batch] | None = None
        self._patience = 0
        self._together: tuple[list[Batch], Batch] | None = None

    # ----------------------------------------------------------------------------------------------------- a step

    def take(self, batch: Batch | None) -> None:
        """The batch of this tick, settled."""
        if batch is not None:
            self.layout = joined(self.layout, batch.layout)
            self.version += 1
        self.current = batch

    def tick(self) -> None:
        """The tick is over."""
        if self.current is None:
            return
        last = self.pending[-1] if self.pending else None
        if last is not None and last.table is not None and self.current.table is not None:
            self.pending.pop()
            merged = self._in_driver([last, self.current])
            self.pending += [] if merged is None else [merged]
        else:
            self.pending.append(self.current)
        self.current = None

    def replace(self, batch: Batch | None) -> None:
        """Be exactly this batch from the end of the step on."""
        self.version += 1
        self.fresh = True
        self.pending = [] if batch is None else [batch]
        self.current = None
        self.layout = None if batch is None else batch.layout

    def reset(self) -> None:
        """Be empty, as at the start of a loop that is run again."""
        self.replace(None)

    def _in_driver(self, batches: Sequence[Batch]) -> Batch | None:
        import pyarrow as pa

        layout = self.layout
        assert layout is not None
        tables = [self.frames.aligned(batch, layout).table for batch in batches]
        return self.frames.local(pa.concat_tables(tables), layout)

    # ----------------------------------------------------------------------------------------------------- reading

    def parts(self, *, old: bool = False, before: bool = False) -> list[Batch]:
        """The batches it is the sum of: with *old* without this tick's, with *before* without this step's."""
        if before:
            return list(self.runs)
        if old and self.hidden:
            return []
        batches = [] if self.fresh else list(self.runs)
        batches += self.pending
        if self.current is not None and not old:
            batches.append(self.current)
        return batches

    def rows(self) -> int:
        """About how many there are."""
        return sum(batch.rows or 0 for batch in self.parts())

    def is_small(self) -> bool:
        """Whether all of it is in the driver."""
        return all(part.table is not None for part in self.parts())

    def read(
        self, layout: Layout, keys: Batch | None = None, *, old: bool = False, before: bool = False
    ) -> DataFrame | None:
        """A frame of the rows in a layout, not added up; None if there are none.

        With *keys*, a small batch of such keys, rows of other keys may be left out.
        """
        parts = self.parts(old=old, before=before)
        wanted: set[int] | None = None
        self.sought |= keys is not None and any(part.table is None for part in parts)
        if keys is not None and any(part.buckets and part.layout == layout for part in parts):
            wanted = self._buckets(keys, layout)
        total: DataFrame | None = None
        for part in self._gathered(parts):
            if part.layout != layout:
                frame = self.frames.aligned(part, layout).frame
            elif part.buckets:
                frame = part.only(wanted)
            else:
                frame = part.frame
            total = frame if total is None else total.unionAll(frame)
        return total

    def _buckets(self, keys: Batch, layout: Layout) -> set[int] | None:
        """The buckets that some keys fall into; None for all."""
        if keys.table is None or keys.table.num_rows > _CHOOSING:
            return None
        return buckets_of(keys.table, layout, layout.keys if self.keyed else layout.columns)

    def near(self, layout: Layout, keys: Batch | None, *, old: bool = False) -> pa.Table | None:
        """The rows of some keys as a table in the driver, not added up; None if they, or the keys, are many."""
        import pyarrow as pa

        if keys is None or keys.table is None:
            return None
        parts = self.parts(old=old)
        columns = layout.keys if self.keyed else layout.columns
        large = [part for part in parts if part.table is None]
        self.sought |= bool(large)
        if large and self._patience:
            self._patience -= 1
            return None
        tables = [of_keys(self.frames.aligned(part, layout).table, keys.table, columns)
                 for part in parts if part.table is not None]  # fmt: skip
        if large:
            table = near(self.frames, large, layout, columns, keys, self._buckets(keys, layout))
            if table is None:
                self._patience = _PATIENCE
                return None
            tables.append(table)
        return pa.concat_tables(tables) if tables else table_of([], [], layout)

    def _gathered(self, parts: list[Batch]) -> list[Batch]:
        """The parts, the small ones as one: each part of its own costs a plan some milliseconds."""
        import pyarrow as pa

        small = [part for part in parts if part.table is not None and part.layout == self.layout]
        if len(small) < 2:
            return parts
        if self._together is None or self._together[0] != small:
            table = pa.concat_tables([part.table for part in small])
            self._together = (small, Batch(small[0].layout, self.frames.session, table=table, rows=table.num_rows))
        return [*(part for part in parts if part not in small), self._together[1]]

    def whole(self, *, old: bool = False, before: bool = False) -> Batch | None:
        """All of it, not added up."""
        parts = self.parts(old=old, before=before)
        if not parts:
            return None
        layout = self.layout
        if before and self.fresh:
            layout = None
            for part in parts:
                layout = joined(layout, part.layout)
        assert layout is not None
        if len(parts) == 1 and parts[0].layout == layout:
            return parts[0]
        if all(part.table is not None for part in parts):
            import pyarrow as pa

            tables = [self.frames.aligned(part, layout).table for part in parts]
            return Batch(layout, self.frames.session, table=pa.concat_tables(tables))
        return Batch(layout, self.frames.session, plan=self.read(layout, old=old, before=before))

    # ----------------------------------------------------------------------------------------------------- the commit

    def stage(self) -> bool:
        """Write what the step has changed; whether anything has."""
        self.tick()
        if not self.lasting or not (self.fresh or self.pending or self._is_mixed()):
            return False
        runs = [] if self.fresh else list(self.runs)
        runs += [batch if batch.paths else self._written(batch) for batch in self.pending]
        self._staged = self._merged(runs)
        return True

    def _is_mixed(self) -> bool:
        return any(run.layout != self.layout for run in self.runs)

    def _written(self, batch: Batch) -> Batch:
        """A small batch in a file, and still in the driver."""
        written = self.frames.in_file(batch)
        return evolve(batch, paths=written.paths)

    def _merged(self, runs: list[Batch]) -> list[Batch]:
        layout = self.layout
        if layout is None or not runs:
            return runs
        keys = layout.keys if self.keyed else layout.columns
        if any(run.layout != layout for run in runs):
            return self._rewritten(runs, layout, keys)
        largest = max(run.rows or 0 for run in runs)
        above = sum(run.rows or 0 for run in runs[1:])
        undivided = (
            self.sought
            and largest > 4 * self.frames.bucket
            and not all(run.buckets for run in runs if (run.rows or 0) > 4 * self.frames.bucket)
        )
        if undivided or (len(runs) > 1 and above * SHARE > (runs[0].rows or 0) and len(runs) > MANY_RUNS):
            return self._rewritten(runs, layout, keys)
        if len(runs) > MANY_RUNS or _rows([run for run in runs if run.table is not None]) > self.frames.small:
            some = (i for i in range(len(runs) - 1) if (runs[i].rows or 0) <= SHARE * _rows(runs[i + 1 :]))
            start = next(some, len(runs) - 2)
            return [*runs[:start], *self._rewritten(runs[start:], layout, keys)]
        return runs

    def _rewritten(self, runs: list[Batch], layout: Layout, keys: list[str]) -> list[Batch]:
        """Runs as one."""
        if all(run.table is not None for run in runs):
            merged = self._in_driver(runs)
            return [] if merged is None else [merged if merged.paths else self._written(merged)]
        total: DataFrame | None = None
        for run in runs:
            frame = self.frames.aligned(run, layout).frame
            total = frame if total is None else total.unionAll(frame)
        merged = Batch(layout, self.frames.session, plan=total)
        batch = self.frames.in_files(merged if len(runs) == 1 else added(merged), keys=keys, rows=_rows(runs))
        return [] if batch is None else [batch]

    def adopt(self) -> None:
        """What was staged is committed."""
        if self._staged is not None:
            self.runs = self._staged
        self._over()

    def discard(self) -> None:
        """The step has failed."""
        self.version += 1
        self._over()
        self.layout = None
        for run in self.runs:
            self.layout = joined(self.layout, run.layout)

    def _over(self) -> None:
        self.pending, self.current, self._staged, self._together = [], None, None, None
        self.fresh = self.hidden = False

    # ----------------------------------------------------------------------------------------------------- on disk

    def data(self) -> list[Element]:
        """The runs, staged ones if there are, as the manifest names them."""
        runs = self.runs if self._staged is None else self._staged
        return [[to_data(run.layout), [path.name for path in run.paths], run.rows, run.buckets] for run in runs]

    def load(self, data: Sequence[Element]) -> None:
        """The runs that a manifest names."""
        for layout, names, rows, buckets in data:
            assert self.frames.directory is not None
            paths = tuple(self.frames.directory.path(name) for name in names)
            run = Batch(of_data(layout), self.frames.session, paths=paths, rows=rows, buckets=buckets)
            self.runs.append(self.frames.brought(run) or run)
            self.layout = joined(self.layout, run.layout)


def _rows(runs: Sequence[Batch]) -> int:
    return sum(run.rows or 0 for run in runs)


@frozen(eq=False)
class StoredTraceView:
    """A trace, and batches added to it that it does not hold yet, each with whether it has a time."""

    trace: StoredTrace
    added: tuple[tuple[Batch, bool], ...] = ()

    def read(self, layout: Layout, keys: Batch | None = None, *, without: Sequence[Batch] = ()) -> DataFrame | None:
        """A frame of all rows but those of some batches; None if there are none."""
        total = self.trace.read(layout, keys)
        for batch, _ in self.added:
            if batch not in without:
                frame = self.trace.frames.aligned(batch, layout).frame
                total = frame if total is None else total.unionAll(frame)
        return total

    def whole(self, layout: Layout) -> Batch | None:
        """All rows in a layout, not added up."""
        frames = self.trace.frames
        total: Batch | None = None
        for part in (self.trace.whole(), *[batch for batch, _ in self.added]):
            if part is not None:
                aligned = frames.aligned(part, layout)
                total = aligned if total is None else total.plus(aligned)
        return total

    def near(self, layout: Layout, keys: Batch, *, without: Sequence[Batch] = ()) -> pa.Table | None:
        """The rows of some keys, but for those of some batches, in the driver; None if they are many."""
        import pyarrow as pa

        added = [batch for batch, _ in self.added if batch not in without]
        rows = self.trace.near(layout, keys)
        if rows is None or any(batch.table is None for batch in added):
            return None
        tables = [self.trace.frames.aligned(batch, layout).table for batch in added]
        columns = layout.keys if self.trace.keyed else layout.columns
        return pa.concat_tables([rows, *[of_keys(table, keys.table, columns) for table in tables]])
