"""Tables of Delta and Iceberg: followed by a source from version to version, and kept by a sink.

**As a source** (``spark_source(ds, Lake(..), to=Sensor)``) a table is read as a whole at one version, and then by its
own log of changes: Delta's change data feed from version to version, Iceberg's changelog along the lineage of its
snapshots.  A version that is no ancestor of the current one (the table was rolled back, or its snapshots have expired)
leads to a new look at the whole.

**As a sink** (``spark_sink(ds, Sensor, to=Lake(..), session=..)``) the table is what is asserted: a row for each
distinct tuple of captures, nothing else.  What changed, and when, is the lake's own to tell, for a batch is one commit.

*Exactly once.*  A batch is a MERGE: a row that came is inserted if it is not there, one that went is deleted if it is.
To make the same batch twice changes nothing.  A run of the sink has a name of its own, and numbers its batches; Delta
leaves out a number that it has had from that name (``txnAppId``, ``txnVersion``), and both formats keep name and number
with the commit.  After a restart, however the last run ended, the table itself is read, and the difference from what is
asserted is the next batch; so it is after somebody else's commit.

A commit that fails for a reason that passes (another writer's commit, a store that does not answer) is made again,
after a random time below a bound that doubles.

Source: ``docs/design/spark.md``, "Tables of a lake".
"""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from attrs import field, frozen

from syndicate.errors import SinkError, SourceError
from syndicate.log import logger
from syndicate.spark.arrow import arrow_table
from syndicate.spark.change_feed import DELTA, ICEBERG, Feed
from syndicate.spark.errors import Interrupted, explained
from syndicate.spark.feed_position import PlaceGone
from syndicate.spark.row_origin import Versioned
from syndicate.spark.sink_table import WEIGHT, quoted
from syndicate.spark.spark_connect import own_session
from syndicate.spark.versions import Format, unfit_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

T = TypeVar("T")

ATTEMPTS: Final = 8
"""How often a commit is made: with the pauses between, some 15 seconds at least where the reason stays."""

_FORGOTTEN: Final = re.compile(
    r"\[DELTA_(LOG_FILE|TRUNCATED|VERSION|TIMESTAMP|CHANGE_TABLE)\w*|annot time travel|ould not find any delta files"
)
"""What Delta says of versions whose log is gone."""

_PROPERTY: Final = "spark.sql.iceberg.snapshot-property.syndicate"
_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_TXN: Final = "spark.databricks.delta.write"


@frozen
class Lake(Versioned):
    """A table of a lake.

    Args:
        kind: ``"delta"`` or ``"iceberg"``.
        table: its name in a catalog; for Delta also a path or a URL, of anything that has a ``/``.
        since: where a source begins when it has no journal yet: a version (of Delta), a snapshot's id (of Iceberg), or
            a time as Spark reads it, ``"2026-11-01 00:00:00"`` in the session's zone.  The table is read as it was
            then, and each later commit is a step.  By default it is read as it is now.
        properties: those of a table that a sink makes.
        evolve: what a sink does if the table lacks columns that it has: ``"add"`` adds them, with nulls in the rows
            that are there, and ``"refuse"`` ends the sink with the difference.

    Raises:
        SourceError, SinkError: (by the actor) the session does not know such tables, the releases of Spark and of the
            lake do not fit, the table is not there, or tells no changes.  Each says what to do.

    Example::

        spawn(spark_source(ds, Lake("iceberg", "warehouse.db.sensors"), to=Sensor, key=["name"], session=session))
        spawn(spark_sink(ds, Sensor, to=Lake("delta", "s3a://bucket/sensors"), session=session))
    """

    kind: Format
    table: str
    since: str | int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    evolve: Literal["add", "refuse"] = "refuse"

    def __attrs_post_init__(self) -> None:
        if self.kind not in ("delta", "iceberg"):
            raise SinkError(f'Lake takes "delta" or "iceberg", not {self.kind!r}')
        if self.evolve not in ("add", "refuse"):
            raise SinkError(f'evolve= takes "add" or "refuse", not {self.evolve!r}')
        if self.kind == "iceberg" and self.table.count(".") < 2:
            raise SinkError(f"a table of Iceberg is named catalog.schema.table, not {self.table!r}")

    def __str__(self) -> str:
        return f"{self.kind}:{self.table}"

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        if self.kind == "delta" and "/" in self.table:
            return f"delta.{quoted(self.table)}"
        return self.table

    @property
    def feed(self) -> Feed:
        """The columns of its changes."""
        return DELTA if self.kind == "delta" else ICEBERG

    # ------------------------------------------------------------------------------------------------ as a source

    def read(self, session: SparkSession) -> DataFrame:
        """No rows, with the columns of the table and of its changes."""
        from pyspark.sql import functions as f

        if (problem := unfit_session(session, self.kind)) is not None:
            raise SourceError(f"{self}: {problem}")
        feed, order = self.feed, "bigint" if self.kind == "delta" else "int"
        frame = session.table(self.sql).where("false").withColumn(feed.kind, f.lit("").cast("string"))
        frame = frame.withColumn(feed.order, f.lit(0).cast(order))
        return frame if feed.commit is None else frame.withColumn(feed.commit, f.lit(0).cast("bigint"))

    def session(self, outer: SparkSession) -> SparkSession:
        """One of its own: each look has Iceberg's catalog load the table again."""
        return own_session(outer)

    def _commits(self, session: SparkSession) -> DataFrame:
        """The version, the time and the parent of each commit that the table still has."""
        from pyspark.sql import functions as f

        if self.kind == "delta":
            frame = session.sql(f"DESCRIBE HISTORY {self.sql}").select("version", "timestamp")
        else:
            frame = session.table(f"{self.sql}.history").where("is_current_ancestor")
            frame = frame.select(f.col("snapshot_id").alias("version"), f.col("made_current_at").alias("timestamp"))
        return frame

    def newest(self, session: SparkSession) -> str | None:
        """The last version."""
        if self.kind == "delta":
            frame = session.sql(f"DESCRIBE HISTORY {self.sql} LIMIT 1").select("version")
        else:
            session.catalog.refreshTable(self.sql)  # a catalog keeps what it knows for half a minute
            frame = session.table(f"{self.sql}.refs").where("name = 'main'").select("snapshot_id")
        return next((str(row[0]) for row in frame.collect()), None)

    def parent(self, session: SparkSession, version: str) -> str | None:
        """The version before, of one that there is."""
        if self.kind == "delta":
            return str(int(version) - 1)
        rows = session.table(f"{self.sql}.history").where(f"snapshot_id = {int(version)}").select("parent_id").collect()
        return next((str(row[0]) for row in rows if row[0] is not None), None)

    def first(self, session: SparkSession) -> str | None:
        """The version to begin with."""
        since = self.since
        if since is None:
            return self.newest(session)
        commits = self._commits(session)
        if isinstance(since, int) or since.isdigit():
            matches = commits.where(f"version = {int(since)}")
        else:
            matches = commits.where(f"timestamp <= TIMESTAMP {_text(since)}").orderBy("timestamp", ascending=False)
        row = matches.select("version").limit(1).collect()
        if not row:
            there = commits.selectExpr("min_by(version, timestamp)", "min(timestamp)").collect()[0]
            raise SourceError(
                f"{self} has no version of since={since!r}: the oldest that it still has is {there[0]}, of {there[1]}"
            )
        return str(row[0][0])

    def whole(self, session: SparkSession, version: str) -> DataFrame:
        """The table as it was."""
        return session.sql(f"SELECT * FROM {self.sql} VERSION AS OF {int(version)}")  # noqa: S608  # a number

    def changes(self, session: SparkSession, after: str, to: str) -> DataFrame:
        """From version to version, or along the lineage of snapshots."""
        return (self._fed if self.kind == "delta" else self._logged)(session, int(after), int(to))

    def _fed(self, session: SparkSession, after: int, to: int) -> DataFrame:
        if to < after:
            raise PlaceGone(f"{self} had come to version {after}, and now its last one is {to}")
        options = {"readChangeFeed": "true", "startingVersion": str(min(after + 1, to)), "endingVersion": str(to)}
        reader = session.read.format("delta").options(**options)
        frame = reader.load(self.table) if "/" in self.table else reader.table(self.table)
        return frame.where(f"_commit_version > {after}")

    def explained(self, error: SourceError) -> SourceError:
        """That the log does not go back so far, or that there is none."""
        reason = str(error)
        if "CHANGE_DATA" in reason:
            return SourceError(
                f"{self} tells no changes: ALTER TABLE {self.sql} SET TBLPROPERTIES (delta.enableChangeDataFeed = "
                f"true), or follow it by a function that makes session.table of it ({reason})"
            )
        return PlaceGone(f"{self} cannot tell what changed: {reason}") if _FORGOTTEN.search(reason) else error

    def _logged(self, session: SparkSession, after: int, to: int) -> DataFrame:
        ancestors = {row[0] for row in self._commits(session).select("version").collect()}
        if after not in ancestors:
            raise PlaceGone(
                f"the snapshot {after} of {self} is no ancestor of the current one: it has expired, or was rolled back"
            )
        catalog, name = self.table.split(".", 1)
        view = f"syndicate_{abs(hash(self.table))}"
        session.sql(
            f"CALL {catalog}.system.create_changelog_view(table => {_text(name)}, changelog_view => '{view}', "
            f"options => map('start-snapshot-id', '{after}', 'end-snapshot-id', '{to}'))"
        )
        return session.table(view)


def _text(value: str) -> str:
    """As a literal of SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def persistent(to: str, act: Callable[[], T]) -> T:
    """Call it; again if the reason for a failure passes; raises :class:`SinkError`."""
    bound = 0.5
    for left in range(ATTEMPTS - 1, -1, -1):
        try:
            return explained(to, act)
        except Interrupted as error:
            if not left:
                raise SinkError(f"{to}: {error}; it was tried {ATTEMPTS} times") from None
            logger(actor="sink").warning("a commit is made again", to=to, reason=str(error))
        except SourceError as error:
            raise SinkError(f"{to}: {error}") from None
        time.sleep(random.uniform(bound / 2, bound))
        bound = min(8.0, 2 * bound)
    raise AssertionError


class LakeTable:
    """The table, open for writing: what :class:`~syndicate.spark.sink_table.SinkTable` is for a directory."""

    def __init__(self, lake: Lake, schema: pa.Schema, session: SparkSession) -> None:
        self.lake = lake
        self.schema = schema
        self.given = session
        self.batch = -1
        self.run = f"syndicate-{uuid.uuid4()}"
        if (problem := unfit_session(session, lake.kind)) is not None:
            raise SinkError(f"{lake}: {problem}")
        if unequal := [each.name for each in schema if "map" in str(each.type)]:
            raise SinkError(f"the column {unequal[0]!r} is a map, by which no lake compares rows: make a list of it")
        # A MERGE takes its options from its session: two sinks, and what else a program writes, cannot share one.
        self.session = self._explained(lambda: own_session(session))
        self._explained(self._make)
        self._tell()
        self.version: str | None = None

    def _explained(self, act: Callable[[], T]) -> T:
        return persistent(str(self.lake), act)

    def _columns(self) -> StructType:
        """The sink's, in types that the lake has."""
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructField, StructType

        columns = from_arrow_schema(self.schema)
        return StructType([StructField(each.name, self._stored(each.dataType)) for each in columns])

    def _stored(self, kind: DataType) -> DataType:
        from pyspark.sql.types import ByteType, IntegerType, ShortType

        return IntegerType() if self.lake.kind == "iceberg" and isinstance(kind, (ByteType, ShortType)) else kind

    def _make(self) -> None:
        lake, columns = self.lake, self._columns()
        declared = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in columns)
        properties = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in lake.properties.items())
        self.session.sql(
            f"CREATE TABLE IF NOT EXISTS {lake.sql} ({declared}) USING {lake.kind}"
            + (f" TBLPROPERTIES ({properties})" if properties else "")
        ).collect()
        there = {each.name: each.dataType.simpleString() for each in self._stored_columns(columns)}
        added = [each for each in columns if each.name not in there]
        other = [
            each.name
            for each in columns
            if there.get(each.name, each.dataType.simpleString()) != each.dataType.simpleString()
        ]
        spare = [name for name in there if name not in columns.names]
        if other or spare or (added and lake.evolve != "add"):
            shown = ", ".join(f"{name} {kind}" for name, kind in there.items())
            raise SinkError(
                f"{lake} has the columns {shown}, and the sink {declared.replace('`', '')}: give schema= those of the "
                'table, another table, or, where only columns are new, Lake(..., evolve="add")'
            )
        if added:
            news = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in added)
            self.session.sql(f"ALTER TABLE {lake.sql} ADD COLUMNS ({news})").collect()
            logger(actor="sink").info("columns were added", to=str(lake), columns=[each.name for each in added])

    def _stored_columns(self, columns: StructType) -> StructType:
        """The table's.  A process that was killed while it made the table may have left a log without a commit, which
        CREATE TABLE takes for a table and no reader does: it is begun by a commit without rows, which replaces nothing.
        """
        from pyspark.errors import AnalysisException

        lake = self.lake
        try:
            return self.session.table(lake.sql).schema
        except AnalysisException as error:
            if error.getCondition() != "DELTA_TABLE_NOT_FOUND" or "/" not in lake.table:
                raise
        nothing = self.session.createDataFrame([], columns).write.format("delta").options(**lake.properties)
        nothing.mode("append").save(lake.table)
        return self.session.table(lake.sql).schema

    def contents(self) -> pa.Table:
        """What is in the table, each row once, with the weight 1."""
        import pyarrow as pa

        def read() -> pa.Table:
            self.version = self.lake.newest(self.session)
            now = self.session.table(self.lake.sql)
            return arrow_table(str(self.lake), now.select(*[quoted(name) for name in self.schema.names]))

        table = self._explained(read).cast(self.schema)
        return table.append_column(WEIGHT, pa.array([1] * table.num_rows, pa.int64()))

    def overtaken(self) -> bool:
        """Whether somebody else has committed since we last looked."""
        return self._explained(lambda: self.lake.newest(self.session)) != self.version

    def append(self, changes: pa.Table, batch: int) -> None:
        """Commit a batch; raises :class:`SinkError`."""
        self._explained(lambda: self._merge(changes, batch))
        self.batch = batch
        newest = self._explained(lambda: self.lake.newest(self.session))
        if newest is not None and self._explained(lambda: self.lake.parent(self.session, newest)) == self.version:
            self.version = newest  # otherwise somebody has committed beside us, whom the next batch looks at
        self._tell()

    def _tell(self) -> None:
        """Let the session that was given see the table as it is now."""
        if self.lake.kind == "iceberg":  # whose catalog keeps what it knows
            self._explained(lambda: self.given.catalog.refreshTable(self.lake.sql))

    def _merge(self, changes: pa.Table, batch: int) -> None:
        note = json.dumps({"run": self.run, "batch": batch})
        settings = {
            "delta": {_METADATA: note, f"{_TXN}.txnAppId": self.run, f"{_TXN}.txnVersion": str(batch)},
            "iceberg": {f"{_PROPERTY}.run": self.run, f"{_PROPERTY}.batch": str(batch)},
        }[self.lake.kind]
        view = f"{self.run.replace('-', '_')}"
        names = [quoted(name) for name in self.schema.names]
        self.session.createDataFrame(changes).createOrReplaceTempView(view)
        for name, value in settings.items():
            self.session.conf.set(name, value)
        try:
            self.session.sql(
                f"MERGE INTO {self.lake.sql} AS t USING {view} AS c ON "  # noqa: S608  # quoted names
                + " AND ".join(f"t.{name} <=> c.{name}" for name in names)
                + f" WHEN MATCHED AND c.{WEIGHT} < 0 THEN DELETE"
                + f" WHEN NOT MATCHED AND c.{WEIGHT} > 0 THEN INSERT ({', '.join(names)})"
                + f" VALUES ({', '.join(f'c.{name}' for name in names)})"
            ).collect()
        finally:
            for name in settings:
                self.session.conf.unset(name)
            self.session.catalog.dropTempView(view)

    def close(self) -> None:
        """Nothing is held."""
