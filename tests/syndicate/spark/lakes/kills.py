"""``python -m tests.syndicate.spark.lakes.kills --kills N``: kills of all that there is, at random instants.

Rows come into a Delta table and go, and programs follow it (:mod:`tests.syndicate.spark.lakes.flowing`), on a cluster
of one executor; now and then the program's Python, its JVM, its executor, a worker of Spark's or the broker is killed.
Whatever a program keeps is read by others than Spark: by delta-rs, pyiceberg and pyarrow.  After each kill it has to be
what a state of the table makes, computed here, and none before that which it was seen in; and in the
end it has to come to what the last state makes.

A *chain* is some kills of one program in one directory, chosen by one number; ``--log`` has a line for each chain, and
goes on behind the last that it has.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyspark
from attrs import define, field, frozen

from syndicate import ANY, Record
from tests.relay.spark.brokers import Broker
from tests.work import PATIENCE

Row: TypeAlias = tuple[int, int]
Rows: TypeAlias = "Counter[Row]"
Look: TypeAlias = Callable[[], Rows]

MOST_KILLS: Final = 12
"""How many kills of a chain strike processes around a program that goes on; three more are of the program itself."""

PROCESSES: Final = {
    "JVM": "org.apache.spark.deploy.SparkSubmit",
    "executor": "CoarseGrainedExecutorBackend",
    "worker": "pyspark.daemon",
}
"""What is in the command line of each."""


@frozen
class Setting:
    """A program, what it is made of, what is killed beside it, and what its tables should hold."""

    program: str
    parts: str
    targets: tuple[str, ...]
    expected: Callable[[Iterable[Row]], Rows]


def totals(rows: Iterable[Row]) -> Rows:
    """What the numbers of a key add up to."""
    sums: dict[int, int] = {}
    for n, k in rows:
        sums[k] = sums.get(k, 0) + n
    return Counter(sums.items())


SETTINGS: Final = (
    Setting("edges", "source, sink", ("executor",), Counter),
    Setting("rules", "view, engine, stream", ("executor", "worker"), totals),
    Setting("exchange", "Data Source", ("executor", "worker", "broker"), Counter),
)


# ------------------------------------------------------------------------------------------------- what others read


def delta(place: Path) -> Rows:
    """The rows of a Delta table, by delta-rs: added up, if they have weights."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(str(place)).to_pyarrow_table().to_pydict()
    except TableNotFoundError:
        return Counter()
    weights = table.pop("weight", itertools.repeat(1))
    return added(zip(zip(*table.values(), strict=True), weights, strict=False))


def iceberg(place: Path) -> Rows:
    """The rows of a table of Iceberg's, by pyiceberg."""
    from pyiceberg.table import StaticTable

    files = [*place.glob("metadata/v*.metadata.json")]
    if not files:
        return Counter()
    newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]))
    return Counter(zip(*StaticTable.from_metadata(str(newest)).scan().to_arrow().to_pydict().values(), strict=True))


def parquet(place: Path) -> Rows:
    """The rows of a sink's directory, by pyarrow: the changes, added up."""
    import pyarrow.parquet as pq

    from syndicate.spark.sink_table import MANIFEST

    if not (place / MANIFEST).exists():
        return Counter()
    tables = [pq.read_table(place / one["file"]) for one in json.loads((place / MANIFEST).read_text())["changes"]]
    rows = [row for table in tables for row in table.to_pylist()]
    return added(((row["k"], row["total"]), row["weight"]) for row in rows)


def added(rows: Iterable[tuple[Any, int]]) -> Rows:
    """The sums of weights, of those that have any."""
    sums: Rows = Counter()
    for row, weight in rows:
        sums[row] += weight
    return Counter({row: weight for row, weight in sums.items() if weight})


def looks(setting: Setting, place: Path, broker: Broker) -> Mapping[str, Look]:
    """What a program keeps."""
    survivors = {
        "edges": {
            "Iceberg": lambda: iceberg(place / "warehouse/db/middle"),
            "Delta": lambda: delta(place / "to"),
        },
        "rules": {
            "the view's table": lambda: parquet(place / "table"),
            "Delta from the view": lambda: delta(place / "viewed"),
            "Delta from the stream": lambda: delta(place / "streamed"),
        },
        "exchange": {
            "the broker": lambda: Counter(row.fields for row in broker.there(Record("Row", [ANY, ANY]))),
            "Delta": lambda: delta(place / "out"),
        },
    }
    return survivors[setting.program]


# --------------------------------------------------------------------------------------------------------- processes


def session_of(process: subprocess.Popen[bytes]) -> Iterator[tuple[int, str]]:
    """All processes that one has started, by their session: their numbers and command lines."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == process.pid and state != "Z":
                yield int(stat.parent.name), stat.with_name("cmdline").read_text().replace("\0", " ")


@define(eq=False)
class Chain:
    """Several runs of a program, and the kills in them."""

    setting: Setting
    place: Path
    number: int
    say: Callable[[dict[str, Any]], None]
    kills: int = MOST_KILLS
    broker: Broker = field(init=False)
    choices: random.Random = field(init=False)
    rows: list[Row] = field(factory=list)
    states: list[Rows] = field(factory=lambda: [Counter()])
    reached: dict[str, int] = field(factory=dict)
    """Which of the states each table has reached."""
    killed: list[dict[str, Any]] = field(factory=list)
    torn: list[str] = field(factory=list)
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    numbers: Iterator[int] = field(factory=lambda: itertools.count(1))

    def __attrs_post_init__(self) -> None:
        self.broker = Broker(self.place / "state of the broker")
        self.choices = random.Random(self.number)

    # ------------------------------------------------------------------------------------------------------ the input

    def change(self) -> None:
        """A commit of rows that come, or of one that goes."""
        import pyarrow as pa
        from deltalake import DeltaTable, write_deltalake

        table = str(self.place / "from")
        if len(self.rows) > 5 and self.choices.random() < 0.45:
            gone = self.rows.pop(self.choices.randrange(len(self.rows)))
            DeltaTable(table).delete(f"n = {gone[0]}")
        else:
            come = [(next(self.numbers), self.choices.randrange(4)) for _ in range(self.choices.randint(1, 6))]
            columns = [pa.array([row[at] for row in come], pa.int64()) for at in (0, 1)]
            configuration = {"delta.enableChangeDataFeed": "true"} if len(self.states) == 1 else None
            write_deltalake(table, pa.table(columns, ["n", "k"]), mode="append", configuration=configuration)
            self.rows.extend(come)
        self.states.append(self.setting.expected(self.rows))

    def changes(self) -> None:
        """Some, at random instants."""
        for _ in range(self.choices.randint(1, 4)):
            self.change()
            time.sleep(self.choices.random() * 0.5)

    # ----------------------------------------------------------------------------------------------------- the program

    def start(self) -> None:
        """Wait until its session is there."""
        command = [sys.executable, "-W", "ignore", "-m", "tests.syndicate.spark.lakes.flowing"]
        command += [self.setting.program, str(self.place), self.broker.address]
        self.starts += 1
        with (self.place / f"said {self.starts}").open("wb") as log:
            self.process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"started\n", self.output()

    def output(self) -> str:
        """The end of what the program said last."""
        return (self.place / f"said {self.starts}").read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """Python, its JVM and their workers."""
        if self.process is None:
            return
        for pid, _ in [*session_of(self.process)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()
        self.process = None

    def kill(self, target: str) -> bool:
        """Kill it, if it is there."""
        assert self.process is not None
        if target == "broker":
            self.broker.kill()
            self.broker.start()
            return True
        if target == "Python":
            self.process.kill()
            return True
        struck = [pid for pid, line in session_of(self.process) if PROCESSES[target] in line]
        for pid in struck:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(struck)

    # -------------------------------------------------------------------------------------------------------- the check

    def look(self, names: Iterable[str]) -> tuple[dict[str, Rows], list[str]]:
        """What the program keeps now, and what of it is torn: of no state, or of one before that which it was in."""
        tables, torn = dict[str, Rows](), list[str]()
        for name, look in looks(self.setting, self.place, self.broker).items():
            if name not in names:
                continue
            rows = tables[name] = look()
            states = range(self.reached.get(name, 0), len(self.states))
            state = next((at for at in states if self.states[at] == rows), None)
            if state is None:
                torn.append(f"{name}: {sorted(rows.elements())} after state {self.reached.get(name, 0)}")
            else:
                self.reached[name] = state
        return tables, torn

    def converge(self) -> dict[str, Any]:
        """Wait until all that the program keeps is what the last state makes; until then it goes from state to state.

        ``lost`` are rows that are missing in the end, ``doubled`` those that are too many.  A program that has ended is
        started again, which is counted.
        """
        waited = set(looks(self.setting, self.place, self.broker))
        began, restarts, wrong, last = time.monotonic(), 0, Counter[str](), self.states[-1]
        while waited and not self.torn:
            late = time.monotonic() > began + PATIENCE
            tables, torn = self.look(waited)
            self.torn += torn
            for name, rows in tables.items():
                if late or rows == last:
                    wrong += Counter(lost=(last - rows).total(), doubled=(rows - last).total())
                    waited.remove(name)
            if waited and (self.process is None or self.process.poll() is not None):
                restarts += 1
                assert restarts < 9, self.output()
                self.end()
                self.start()
            time.sleep(0.3)
        seconds = round(time.monotonic() - began, 1)
        report = {"seconds": seconds, "restarts": restarts, "torn": len(self.torn)}
        return report | {"lost": wrong["lost"], "doubled": wrong["doubled"]}

    def kill_while_changing(self, target: str) -> None:
        """Changes, and a kill at a random instant; what is kept is a state at once."""
        if self.process is None or self.process.poll() is not None:
            self.end()
            self.start()
        self.changes()
        time.sleep(self.choices.random() * 4)
        late = time.monotonic() + PATIENCE
        while not self.kill(target):
            assert time.monotonic() < late, f"there is no {target} to kill"
            if self.process is None or self.process.poll() is not None:
                return
            time.sleep(0.2)
        ended = self.ends() if target == "JVM" else None
        if target in ("Python", "JVM"):
            self.end()
        self.killed.append({"target": target, "ended": ended})
        _, torn = self.look(looks(self.setting, self.place, self.broker))
        self.torn += torn

    def ends(self) -> bool:
        """Whether a program whose JVM has gone comes to an end."""
        assert self.process is not None
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            return False
        return True

    def check(self) -> None:
        """Say all kills, and what has come of them."""
        report = {"chain": self.number, "program": self.setting.program, "killed": self.killed, **self.converge()}
        self.say(report)
        if report["torn"] or report["lost"] or report["doubled"]:
            raise AssertionError(f"chain {self.number}, {report}, {self.torn}, in {self.place}: {self.output()}")

    def run(self) -> None:
        """All of it."""
        self.broker.start()
        try:
            self.change()
            self.start()
            targets = [*self.choices.choices(self.setting.targets, k=self.kills), "Python", "JVM", "Python"]
            self.choices.shuffle(targets)
            for target in targets:
                self.kill_while_changing(target)
            self.check()
        finally:
            self.end()
            self.broker.kill()


# ------------------------------------------------------------------------------------------------------- the campaign


def table(reports: list[dict[str, Any]]) -> str:
    """The kills by program and target, and what came of all of a program's, in Markdown."""
    targets = ("Python", "JVM", "executor", "worker", "broker")
    lines = [f"| what runs | {' | '.join(targets)} | kills | chains | lost | doubled | torn |", f"|---|{'---:|' * 10}"]
    for setting in (*SETTINGS, None):
        some = [one for one in reports if setting is None or one["program"] == setting.program]
        kills = Counter(each["target"] for one in some for each in one["killed"])
        sums = [sum(one[what] for one in some) for what in ("lost", "doubled", "torn")]
        cells = [*[kills[target] for target in targets], kills.total(), len(some), *sums]
        lines.append(f"| {'all' if setting is None else setting.parts} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Until there are so many kills, or it is time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first chain")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no chain after so many")
    parser.add_argument("--log", type=Path, help="a line of JSON for each chain; what it has counts")
    arguments = parser.parse_args()
    reports = (
        [json.loads(line) for line in arguments.log.read_text().splitlines()]
        if arguments.log and arguments.log.exists()
        else []
    )

    def kills() -> int:
        return sum(len(one["killed"]) for one in reports)

    def say(one: dict[str, Any]) -> None:
        reports.append(one)
        print(kills(), json.dumps(one), flush=True)
        if arguments.log:
            with arguments.log.open("a") as log:
                print(json.dumps(one), file=log)

    began = time.monotonic()
    number = max([arguments.first, *[one["chain"] + 1 for one in reports]])
    while kills() < arguments.kills and time.monotonic() < began + 60 * arguments.minutes:
        place = Path(tempfile.mkdtemp(prefix="kills-"))  # which stays if something is wrong
        Chain(SETTINGS[number % 3], place, number, say).run()
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)  # what the executors said
        number += 1
    print(table(reports))


if __name__ == "__main__":
    main()
