"""A DataFrame as a source of assertions: each row that is there is a record that is asserted.

A streaming DataFrame is followed: each micro-batch is a delta of rows, and takes effect as one turn, additions before
removals.  A change feed is one too, or, as a batch DataFrame, is asked again and again for later commits.  Every other
DataFrame is polled: it is read again and again, and what differs from the last time is the delta
(:mod:`syndicate.spark.difference`).

The path of a micro-batch: Spark calls us back in a thread of its own; there the rows become frozen forms, and these
the steps that bring and take assertions (*plan*); the journal, if there is one, takes down what is asserted then,
together with the batch's number (*write*, *commit*); they go over a channel of capacity zero to a task of the actor,
which applies them (*send*) and waits until the dataspace says that it has handled them (*ack*).  Only then the callback
returns, and Spark begins the next micro-batch.  So a slow dataspace slows Spark down, and nothing piles up in between.

With a journal a restart goes on where the last one was, whatever moment that ended at: first all that was asserted is
asserted again, and *then* the query starts.  The other way round, a batch could be in both.

To stop, the channel is closed *first*, so that a callback that waits fails at once; then the query is stopped, which
would otherwise wait for that callback.

Source: Spark, on Structured Streaming; ``docs/design/spark.md``, "The path of a batch".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import attrs
import trio
from attrs import Factory, define, field, frozen

from syndicate.actors.arguments import expect_ref
from syndicate.actors.verbs import current_facet, react, trio_task
from syndicate.errors import SourceError
from syndicate.garbage_collector import CollectorPause
from syndicate.outside import outside
from syndicate.spark.arrow import arrow_schema, arrow_table
from syndicate.spark.bulk import bulk_of
from syndicate.spark.change_feed import WORDS, Feed, Named, feed_of
from syndicate.spark.columns import described
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.delivery import Delivery, Move, move_of
from syndicate.spark.difference import SnapshotDifference
from syndicate.spark.errors import Interrupted, explained
from syndicate.spark.feed_position import Overtaken, Place, PlaceGone, later, newest
from syndicate.spark.follower import Follower, MicroBatch, check_call
from syndicate.spark.journal import SourceJournal
from syndicate.spark.journal import described as properties
from syndicate.spark.outage import Outage
from syndicate.spark.row_origin import RowOrigin, Versioned
from syndicate.spark.rows import Step, TableRows
from syndicate.spark.schema_evolution import evolved, later_fields
from syndicate.spark.spark_connect import refuse_stream
from syndicate.spark.streaming_query import Query, trigger_of
from syndicate.values.value import Frozen, Ref

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

UNREAD: Final = 5
"""How often a look at a feed fails, which takes some 3 seconds, before the table is read in its place."""


def spark_source(
    ds: Ref,
    frame: Callable[[SparkSession], DataFrame] | RowOrigin,
    to: type,
    key: Sequence[str] = (),
    *,
    weight: str | None = None,
    sequence: str | None = None,
    changes: Feed | Named | None = None,
    whole: Callable[[SparkSession], DataFrame] | None = None,
    ignore: Sequence[str] = (),
    evolve: Literal["add", "refuse"] = "refuse",
    clock: type | None = None,
    journal: str | Path | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
    every: float = 1.0,
    trigger: Mapping[str, str | bool] | None = None,
    mode: str | None = None,
    session: SparkSession | None = None,
    keep: bool = False,
    on_end: Callable[[], object] | None = None,
) -> Callable[[], None]:
    """A boot function for ``spawn``: assert in *ds*, for each row of a DataFrame, a record, for as long as the row is
    there.

    Rows become records by column name; the table in :mod:`syndicate.spark.columns` says which value a column's type
    gives.
    Converters and validators of the record class are not run.  Equal rows are one assertion, which goes with the last
    of them. All is retracted when the stream ends, and when the actor does.  (Called in a turn instead of spawned, it
    works in a facet of the caller's.)

    Args:
        ds: the dataspace.
        frame: makes the DataFrame from a session, in a worker thread.  A streaming one is followed; another one is
            polled, and made again each time, so that it sees new files.  Or where rows come from, which knows how they
            are followed: :class:`~syndicate.spark.lake.Lake`, :class:`~syndicate.spark.jdbc.Jdbc`,
            :class:`~syndicate.spark.kafka.Kafka`.  A table, and a micro-batch, is held in memory
            as a whole: how much a micro-batch may be is an option of the stream's reader, such as
            ``maxFilesPerTrigger`` or ``maxOffsetsPerTrigger``.
        to: the ``@record`` class of the assertions.  Its fields are columns of the DataFrame.  A field that is
            annotated with a record class takes a struct as one.
        key: columns that identify a row: a new row takes the place of the one with its key, in one turn.  In a polled
            DataFrame, two rows with one key are an error.
        weight: the column that says how often a row is added, or, below zero, removed: an integer, or one of the words
            of a change feed.  Without it, each row counts +1.  With *key*, any negative weight removes what has the
            key, unless the same step has a new row with it.  Without, weights are sums: a row that was removed before
            it was added is not there after either.
        sequence: the column by which the rows of a micro-batch are ordered: numbers, strings or times.  Rows with the
            same value in it are one step, and one turn; without it, the whole micro-batch is.  What comes in a later
            micro-batch is later.
        changes: the rows are those of a change feed: ``"delta"`` and ``"iceberg"`` name the conventional columns, and a
            :class:`~syndicate.spark.change_feed.Feed` others; they stand for *weight* and *sequence*.  A batch
            DataFrame of this kind is asked for later commits each time; one commit must be there as a whole.  When the
            feed no longer goes back to the last commit that took effect (snapshots have expired, a log was cleaned up),
            so that nobody can tell what is missing, the source ends with an error, unless it has *whole*.
        whole: makes a DataFrame of the table itself, whose changes a batch DataFrame of *changes* has.  It is read at
            the first start, and when the place in the feed has gone, which the log tells; what differs from what is
            asserted is one step, and the source goes on behind the feed's last commit.  A commit during that is an
            interrupted look: it is read again.  While the feed cannot be read, for files that it needs have been
            removed, the table is looked at in its place; the log tells when that begins and ends.
        ignore: columns that no record takes.  Others that are not used are refused at the first start; those that are
            added later, while the rows are followed or beside a journal, are left out, and the log says so once.
        evolve: ``"add"`` lets fields that may be None go ahead of the table: one without a column is
            :data:`~syndicate.values.absent.ABSENT` in each record until the column is added, and then has its values;
            a stream sees new columns when the source is started again.  Integers and floats of such fields may be
            narrower in the table.  ``"refuse"`` ends the source where a field has no column.
        clock: a ``@record`` class whose fields are columns that the sequence determines.  While a step is the latest
            one, the record of it is asserted, in the same turn as the step takes effect.
        journal: a file that keeps what is asserted and which batch was the last, so that after a crash nothing is lost
        or
            doubled.  There is one source to a journal, and one checkpoint.
        checkpoint: where Spark keeps the place in a followed stream, beside a *journal*; a path, or a URL that Spark
            knows.  By default the journal's path with ``.checkpoint``.
        progress: assert :class:`~syndicate.spark.progress.SparkProgress`, too.
        every: seconds from one look at a polled DataFrame to the next.
        trigger: when a followed DataFrame makes a micro-batch: keyword arguments of Spark's
            ``DataStreamWriter.trigger``, such as ``{"processingTime": "5 seconds"}``, or ``{"availableNow": True}``
            to end once all that is there was read.
        mode: Spark's output mode of a followed DataFrame: ``"append"``, the default, means that its rows are deltas;
            ``"update"``, the default with *key*, that they replace earlier ones; ``"complete"`` that each micro-batch
            is the whole table.
        session: an open session, instead of the one of this process (:func:`~syndicate.spark.session.open_session`).
        keep: when a stream that was to end (``availableNow``) has ended, let the assertions stay until the actor is
            stopped.
        on_end: called in a turn of the actor when such a stream has ended, after the last step.

    Once a table was read, a look at it that fails for a reason that passes (its files are being replaced, a disk or a
    database does not answer, an executor was lost) is repeated, first after 0.1 and at most after 30 seconds; the log
    says when that begins and ends, and what was asserted stays.  So is a stream with a journal started again.

    Raises:
        SourceError: (by the actor, which crashes with it) the DataFrame does not fit, or its query failed or ended by
            itself.
        SourceJournalError: (by the actor) the journal is not this source's, in use, damaged, or cannot be written.
        SparkMissing, JavaMissing: (by the actor) Spark cannot run here.

    Example::

        @record
        class Sensor:
            name: str
            celsius: float

        def sensors(session):
            return session.readStream.schema("name string, celsius double").json("readings/")

        spawn(spark_source(ds, sensors, to=Sensor, key=["name"]))
    """
    expect_ref("spark_source", ds)
    origin, make, feed = _followed(frame, changes, weight, sequence, whole)
    check_call(make, session)
    key = tuple(key) if not isinstance(key, str) else key
    if isinstance(frame, RowOrigin):
        frame.check(key)
    if feed is not None and weight is not None:
        raise SourceError(f"changes= says that {feed.kind!r} holds the weights: leave weight= out")
    if whole is not None:
        if feed is None:
            raise SourceError(
                "whole= is the table whose changes a feed has: name its columns with changes=, or leave it out"
            )
        check_call(whole, None, "whole")
    if evolve not in ("add", "refuse"):
        raise SourceError(f'evolve= takes "add" or "refuse", not {evolve!r}')
    rows = TableRows(
        to,
        key,
        feed.kind if feed else weight,
        sequence or (feed.order if feed else None),
        clock,
        ignore if isinstance(ignore, str) or feed is None else (*ignore, *feed.ignore, feed.order),
        feed.words if feed else WORDS,
        "changes" if feed else None,
        feed.commit if feed else None,
    )
    if feed is not None and sequence is not None and sequence != feed.order:
        feed = attrs.evolve(feed, order=sequence, consecutive=False)
    if not (hasattr(every, "__float__") and every > 0):
        raise SourceError(f"every= takes a positive number of seconds, not {every!r}")
    if mode not in (None, "append", "update", "complete"):
        raise SourceError(f'mode= takes "append", "update" or "complete", not {mode!r}')
    if mode == "update" and not key:
        raise SourceError(
            'mode="update" gives the new rows only: name the columns that say which rows they replace, with key='
        )
    if mode == "complete" and rows.sequence is not None:
        raise SourceError('mode="complete" gives whole tables, whose rows have no order: leave sequence= out')
    if checkpoint is not None and journal is None:
        raise SourceError("checkpoint= alone would lose what is asserted when the process ends: give journal= as well")
    options = _Options(
        every,
        trigger_of(trigger),
        mode or ("update" if key else "append"),
        feed,
        origin,
        whole,
        None if journal is None else Path(journal),
        str(checkpoint or f"{journal}.checkpoint"),
        keep,
        on_end,
        [name for name, setting in (("trigger", trigger), ("mode", mode), ("checkpoint", checkpoint)) if setting],
        later_fields(to) if evolve == "add" else {},
    )

    def start() -> None:
        source = _Source(Delivery(ds, current_facet()), rows.name, progress, rows, options)
        source.begin()
        trio_task(source.run, make, session)

    def boot() -> None:
        react(start)  # a facet of its own, so that its end is not that of the caller's

    boot.__name__ = f"spark_source({rows.name})"
    return boot


def _followed(
    frame: Callable[[SparkSession], DataFrame] | RowOrigin,
    changes: Feed | Named | None,
    weight: str | None,
    sequence: str | None,
    whole: object,
) -> tuple[Versioned | None, Callable[[SparkSession], DataFrame], Feed | None]:
    """What has versions, what makes the frame, and the feed."""
    if not isinstance(frame, RowOrigin):
        return None, frame, feed_of(changes)
    options = {"changes": changes, "weight": weight, "sequence": sequence, "whole": whole}
    if spare := [name for name, value in options.items() if value is not None]:
        raise SourceError(f"{frame} says itself what its changes are: leave {spare[0]}= out")
    versioned = frame if isinstance(frame, Versioned) and frame.has_versions else None
    return versioned, frame.read, frame.feed


@frozen
class _Options:
    every: float
    trigger: Mapping[str, str | bool]
    mode: str
    feed: Feed | None
    origin: Versioned | None
    whole: Callable[[SparkSession], DataFrame] | None
    journal: Path | None
    checkpoint: str
    keep: bool
    on_end: Callable[[], object] | None
    of_streams: Sequence[str]
    """Those that were given and mean something for a stream only."""
    later: Mapping[str, pa.DataType]
    """The fields that may have no column yet, and their types."""


@define(eq=False)
class _Source(Follower):
    """One source at work: what is asserted, and where that is kept and sent."""

    rows: TableRows
    options: _Options
    current: CurrentRows = field(factory=CurrentRows)
    journal: SourceJournal | None = None
    difference: SnapshotDifference = field(factory=SnapshotDifference)
    shape: dict[str, str] | None = None
    added: set[str] = field(factory=set)
    place: Place | None = None
    last: int = -1
    looked: bool = False
    outage: Outage = field(default=Factory(lambda self: Outage(self.name, self.log), takes_self=True))
    planned: MicroBatch | None = None  # of a stream: in the journal, and not delivered yet
    unread: bool = False  # the table is looked at, in the place of the feed

    async def run(self, make: Callable[[SparkSession], DataFrame], session: SparkSession | None) -> bool:
        """Follow the rows; return whether the assertions stay when that has ended."""
        try:
            opened = await self.opened(session)
            if self.options.origin is not None:
                opened = await self.in_thread(self.options.origin.session, opened)
            again = functools.partial(self._make, make, opened)
            frame = await self.in_thread(again)
            if self.options.of_streams and not frame.isStreaming:
                raise SourceError(
                    f"{self.options.of_streams[0]}= is for a stream, but the frame of {self.rows.name} is a table, "
                    "which is looked at again and again: make it with readStream, or leave that out"
                )
            if self.options.whole is not None and frame.isStreaming:
                raise SourceError(
                    f"whole= is for a feed that is asked again and again, but the frame of {self.rows.name} is a "
                    "stream, whose place Spark keeps: make it with read, or leave that out"
                )
            if frame.isStreaming:
                refuse_stream(opened, self.rows.name)
            await self._recall(streams := frame.isStreaming)
            if streams:
                await self._stream(frame, again)
            elif self.options.origin is not None:
                await self._advance(self.options.origin, opened, frame, again)
            elif self.options.feed is not None:
                await self._ask(self.options.feed, opened, frame, again)
            else:
                await self._poll(frame, again)
        finally:
            if self.journal is not None:
                with trio.CancelScope(shield=True):
                    await outside().blocking(self.journal.close, self.limiter)
        if self.options.on_end is not None:
            await self.delivery.in_turn(self.options.on_end)
        return self.options.keep

    async def _recall(self, streams: bool) -> None:
        """Assert what the journal says, before anything new is looked at."""
        feed, origin = None if streams else self.options.feed, self.options.origin
        keyed, whole = bool(self.rows.key), not streams and feed is None and origin is None
        self.current = CurrentRows(keyed=keyed, table=whole or self.options.mode == "complete")
        if self.options.journal is None:
            return
        about = properties(
            {
                "record": ", ".join(described(self.rows.to)),
                "key": list(self.rows.key),
                "kind": "table" if whole else "stream" if streams else "feed",
                "columns": dict(sorted((self.shape or {}).items())),
                "weight": self.rows.weight,
                "mode": self.options.mode if streams else None,
                "commits": None if feed is None else [feed.order, feed.commit],
                **({} if origin is None else {"origin": str(origin)}),
            }
        )
        self.journal = journal = await self.in_thread(SourceJournal, self.options.journal, about, abandon=False)
        bulk = functools.partial(bulk_of, self.rows.to, key=self.rows.key)
        self.current = await self.in_thread(journal.current, keyed, self.current.table, bulk, abandon=False)
        self.last, self.place = journal.last, None if journal.place is None else Place.of(journal.place)
        self.looked = self.last >= 0
        if self.looked:
            move = await self.in_thread(self._there, journal.clock)
            await self.deliver(MicroBatch([move], self.last, 0, outside().elapsed()))
            await self.caught_up()

    # ------------------------------------------------------------------------------------------------ where rows come
    # from

    async def _stream(self, frame: DataFrame, again: Callable[[], DataFrame]) -> None:
        """Follow a stream to its end.  One that fails for a reason that passes goes on from its checkpoint, if there is
        a journal beside it, which knows what came again.
        """
        checkpoint = self.options.checkpoint if self.journal is not None else None
        while True:
            query: Query[MicroBatch] = Query(self.rows.name, self.options.trigger, self.options.mode, checkpoint)
            try:
                return await query.follow(frame, self._received, self.deliver, self.caught_up)
            except Interrupted as error:
                if self.journal is None or not self.looked:
                    raise
                await trio.sleep(self.outage.delay(error))
            if self.planned is not None:  # it is in the journal, and the query failed before it was asserted
                await self.deliver(self.planned)
            frame = await self.in_thread(again)

    def _received(self, frame: DataFrame, number: int) -> MicroBatch | None:
        """What a micro-batch, or a table in complete mode, changes: called in Spark's thread."""
        began, query = outside().elapsed(), ""
        if self.journal is not None:
            query = str(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
            if not self.journal.expects(number, query):
                return None
        self.describe(frame, number)
        table = arrow_table(self.rows.name, frame)
        steps = self._differing(table) if self.options.mode == "complete" else self.rows.steps(table)
        self.planned = self._planned(steps, number, query, began)
        return self.planned

    async def _poll(self, frame: DataFrame, again: Callable[[], DataFrame]) -> None:
        """Never ends by itself."""
        if self.rows.sequence is not None:
            raise SourceError(
                f"sequence= orders the changes of a stream, but the frame of {self.rows.name} is a table: leave it out"
            )

        def look(make: Callable[[], DataFrame]) -> MicroBatch | None:
            began = outside().elapsed()
            steps = self._differing(arrow_table(self.rows.name, make()))
            return self._planned(steps, self.last + 1, "", began) if any(step.changes for step in steps) else None

        await self._repeat(look, frame, again)

    async def _ask(self, feed: Feed, session: SparkSession, frame: DataFrame, again: Callable[[], DataFrame]) -> None:
        """Ask a feed for the commits after the last one; never ends by itself."""
        whole = self.options.whole

        def look(make: Callable[[], DataFrame]) -> MicroBatch | None:
            began = outside().elapsed()
            try:
                steps = explained(self.name, self._asked, feed, make, again)
            except Interrupted as error:
                passes = isinstance(error, Overtaken) or (self.looked and self.outage.count < UNREAD)
                if whole is None or (passes and not self.unread):
                    raise
                steps = self._instead(whole, session)
                if not self.unread:
                    self.log.warning(
                        "the feed cannot be read, and the table is in its place", source=self.name, reason=str(error)
                    )
                self.unread = True
            else:
                if self.unread:
                    self.log.warning("the feed can be read again", source=self.name)
                self.unread = False
            return self._planned(steps, self.last + 1, "", began) if steps else None

        await self._repeat(look, frame, again)

    async def _advance(
        self, origin: Versioned, session: SparkSession, frame: DataFrame, again: Callable[[], DataFrame]
    ) -> None:
        """Follow a table from version to version; never ends by itself."""

        def look(make: Callable[[], DataFrame]) -> MicroBatch | None:
            began = outside().elapsed()
            steps = explained(self.name, self._advanced, origin, session, make)
            return self._planned(steps, self.last + 1, "", began) if steps else None

        await self._repeat(look, frame, again)

    def _advanced(self, origin: Versioned, session: SparkSession, make: Callable[[], DataFrame]) -> list[Step]:
        """What changed from the last version to the newest; all of it, if that cannot be determined."""
        newest = origin.newest(session) if self.place is not None else origin.first(session)
        if newest is None or (self.place is not None and self.place.order == newest and origin.feed is not None):
            return []
        make()
        place = Place(newest)
        if self.place is not None:
            try:
                steps = self._between(origin, session, self.place.order, newest)
            except (PlaceGone, Interrupted) as error:
                if isinstance(error, Interrupted) and self.outage.count < UNREAD:
                    raise
                self.log.warning("the table was read as a whole", source=self.name, reason=str(error))
            else:
                if not any(step.changes for step in steps) and self.place == place:
                    return []
                return [*steps[:-1], attrs.evolve(steps[-1] if steps else Step([]), place=place)]
        step = self._whole(lambda session: origin.whole(session, newest), session)
        return [attrs.evolve(step, place=place)]

    def _between(self, origin: Versioned, session: SparkSession, after: str, to: str) -> list[Step]:
        """The changes from one version to another."""
        try:
            frame = evolved(explained(self.name, origin.changes, session, after, to), self.options.later)
            table = arrow_table(self.rows.name, frame.drop(*self.rows.spare(frame.columns)))
        except SourceError as error:
            raise origin.explained(error) from None
        steps = self.rows.steps(table)
        return steps if origin.feed is not None else [self.current.news(step) for step in steps]

    def _asked(self, feed: Feed, make: Callable[[], DataFrame], again: Callable[[], DataFrame]) -> list[Step]:
        """What the feed says, or else the table if the place has gone."""
        frame, whole = make(), self.options.whole
        try:
            if self.place is None and whole is not None:
                return self._renewed(feed, whole, frame, again)
            return self._later(feed, frame)
        except PlaceGone as gone:
            if whole is None:
                raise SourceError(
                    f"{gone}: what was committed in between is unknown; give whole= a function that makes a "
                    "DataFrame of the table, or remove the journal to begin again, and keep the commits for longer"
                ) from None
            steps = self._renewed(feed, whole, frame, again)
            self.log.warning("the table was read as a whole", source=self.name, reason=str(gone))
            return steps

    def _later(self, feed: Feed, frame: DataFrame) -> list[Step]:
        """The commits of the feed behind the place, a step each."""
        if self.place is None:
            if self.last >= 0:
                raise PlaceGone(f"{self.name} was read as a whole while its feed was empty, and has no place in it")
            return self.rows.steps(arrow_table(self.rows.name, frame))
        commits = later(self.rows.name, frame, feed, self.place)
        if commits is None:
            return []
        rows, names = commits
        steps = self.rows.steps(arrow_table(self.rows.name, rows))
        if missing := names - {step.place.name for step in steps if step.place is not None}:
            raise Overtaken(f"commits of {self.name} went while they were read: {', '.join(sorted(missing))}")
        return steps

    def _renewed(
        self,
        feed: Feed,
        whole: Callable[[SparkSession], DataFrame],
        frame: DataFrame,
        again: Callable[[], DataFrame],
    ) -> list[Step]:
        """The step that makes of what is asserted the whole table, as it is at the feed's last commit."""
        before = self._newest(feed, frame)
        step = self._whole(whole, frame.sparkSession)
        after = self._newest(feed, again())
        place = None if after is None else after.place
        if place != (None if before is None else before.place):
            raise Overtaken(f"{self.name} was changed while its whole table was read")
        if not step.changes and place == self.place:
            return []
        self.place = place
        return [attrs.evolve(step, place=place, clock=None if after is None else after.clock)]

    def _instead(self, whole: Callable[[SparkSession], DataFrame], session: SparkSession) -> list[Step]:
        """The same without a feed that could say which commit it is: from there no place leads on."""
        step = self._whole(whole, session)
        if not step.changes:
            return []
        self.place = None
        return [step]

    def _whole(self, whole: Callable[[SparkSession], DataFrame], session: SparkSession) -> Step:
        """The step that makes of what is asserted the whole table."""
        table = self.frame_of(whole, session)
        rows = attrs.evolve(self.rows, weight=None, sequence=None, clock=None, commit=None)
        table = table.drop(*rows.spare(table.columns))
        shape = rows.shape(arrow_schema(table.schema))
        if other := [name for name in shape if shape[name] != (self.shape or shape)[name]]:
            raise SourceError(
                f"the table of whole= and the feed of {self.name} have columns of different types: {', '.join(other)}; "
                "cast them in the frame"
            )
        with CollectorPause():
            return self.current.become(rows.steps(arrow_table(self.rows.name, table)))

    def _newest(self, feed: Feed, frame: DataFrame) -> Step | None:
        """The last commit of the feed."""
        rows = newest(self.rows.name, frame, feed)
        steps = [] if rows is None else self.rows.steps(arrow_table(self.rows.name, rows))
        return steps[-1] if steps else None

    async def _repeat(
        self,
        look: Callable[[Callable[[], DataFrame]], MicroBatch | None],
        frame: DataFrame,
        again: Callable[[], DataFrame],
    ) -> None:
        """Look again and again: first at *frame*, which was made already."""
        outage = self.outage

        def first() -> DataFrame:
            return frame

        make = first
        while True:
            due = trio.current_time() + self.options.every
            try:
                batch = await self.in_thread(look, make)
            except (Interrupted, OSError) as error:
                if not self.looked and not isinstance(error, Overtaken):
                    raise
                make = again
                await trio.sleep(outage.delay(error))
                continue
            outage.over()
            self.looked, make = True, again
            if batch is not None:
                await self.deliver(batch)
            await self.caught_up()
            await trio.sleep_until(due)

    def frame_of(self, make: Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
        """The frame, with a column for each field that may have none yet."""
        return evolved(super().frame_of(make, session), self.options.later)

    def _make(self, make: Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
        """Make the frame, and see that its rows fit, and that they are as they were before."""
        frame = self.frame_of(make, session)
        unknown = self.rows.unknown(frame.columns)
        if self.shape is None and not (self.options.journal is not None and self.options.journal.exists()):
            self.rows.check(frame.columns)
        elif news := sorted({*unknown} - self.added):
            self.added.update(news)
            self.log.warning("columns were added, which no field takes", source=self.name, columns=news)
        if spare := self.rows.spare(frame.columns):
            frame = frame.drop(*spare)
        shape = self.rows.shape(arrow_schema(frame.schema))
        before, self.shape = self.shape, shape
        if before is not None and before != shape:
            changed = [
                f"{name} was {before[name]} and is {shape[name]}" for name in before if before[name] != shape[name]
            ]
            raise SourceError(
                f"the columns of the rows of {self.rows.name} have changed while they were followed: "
                f"{', '.join(changed)}; cast them in the frame, or start the source again"
            )
        return frame

    # ------------------------------------------------------------------------------------------------ what they change

    def _differing(self, table: pa.Table) -> list[Step]:
        """The step by which the whole *table* differs from what is asserted."""
        self.rows.check(table.column_names)
        differing = self.difference.of(table)
        with CollectorPause():
            if differing is None:
                return [self.current.become(self.rows.steps(table))]
            return self.rows.steps(*differing)

    def _planned(self, steps: Sequence[Step], number: int, query: str, began: float) -> MicroBatch:
        """The batch of these steps, in the journal if there is one."""
        moves = self._plan(steps)
        if steps and steps[-1].place is not None:
            self.place = steps[-1].place
        if self.journal is not None:
            clock = next((move.clock for move in reversed(moves) if move.clock is not None), self.journal.clock)
            place = None if self.place is None else self.place.text
            self.journal.write(self.current, number, query, place=place, clock=clock)
            self.journal.commit()
        return MicroBatch(moves, number, sum(len(step.changes) for step in steps), began)

    def _plan(self, steps: Sequence[Step]) -> list[Move]:
        """What the steps bring and take; from now on it is asserted."""
        with CollectorPause():
            return [move_of(self.delivery, self.current, step) for step in steps]

    def _there(self, clock: Frozen | None) -> Move:
        """What brings all that is there."""
        there, bulks = self.current.records(), self.current.bulks
        bulk = bulks[0] if bulks else None  # a journal gives one
        return self.delivery.divided(Move(there, [], len(there) + len(bulk or ()), clock, bulk))

    async def deliver(self, batch: MicroBatch) -> None:
        """Bring the batch into the dataspace, and go on behind it."""
        self.planned = None
        self.outage.over()
        self.looked = True
        await super().deliver(batch)
        self.last = batch.number
