"""A warehouse table watched by actors: Spark reads its change feed, and what runs low is reported, across a restart.

Each file is a commit of the table, in the words of a Delta table's change feed.  The source follows them with a
journal.  An update is one turn, so the buyer never sees an article without its stock.  At the end of Monday everything
is stopped; on Tuesday what was asserted is asserted again, before Spark has read a row, and the feed goes on behind it:
no commit is lost, and none is taken twice.

    $ python examples/spark_warehouse.py
    Monday
    coffee runs low: 3
    enough coffee again: 43
    tea runs low: 1
    Tuesday
    tea runs low: 1
    enough tea again: 31

It needs Java and the extra ``spark``, which ``make test`` or ``make demo`` has set up.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from syndicate import capture, dataflow, dataspace, query_hash, record, run, spawn, stop_actor
from syndicate.spark import spark_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOW = 5

SCHEMA = "article string, pieces int, _change_type string, _commit_version int, _commit_timestamp timestamp"

FEED = [
    [("coffee", 40, "insert"), ("tea", 12, "insert")],
    [("coffee", 40, "update_preimage"), ("coffee", 3, "update_postimage")],
    [("coffee", 3, "update_preimage"), ("coffee", 43, "update_postimage")],
    [("tea", 12, "update_preimage"), ("tea", 1, "update_postimage")],
    [("tea", 1, "update_preimage"), ("tea", 31, "update_postimage")],
]
"""What was done to the table, commit by commit."""


@record
class Stock:
    """A row of the table."""

    article: str
    pieces: int


def commit(place: Path, version: int) -> None:
    """Do to the table what the feed says of this version."""
    rows = [
        {"article": article, "pieces": pieces, "_change_type": change, "_commit_version": version}
        for article, pieces, change in FEED[version]
    ]
    draft = place / f".{version}"
    draft.write_text("\n".join(map(json.dumps, rows)))
    draft.rename(place / f"{version}.json")


def feed(place: Path, session: SparkSession) -> DataFrame:
    """The change feed of the table, as a stream."""
    return session.readStream.schema(SCHEMA).json(str(place / "*.json"))


def buyer(place: Path, day: str, versions: Sequence[int]) -> None:
    """Say what runs low; once that is said, let the next commit come."""
    print(day)
    ds = dataspace()
    spawn(
        spark_source(ds, partial(feed, place), to=Stock, key=["article"], changes="delta", journal=place / "journal"),
        linked=True,
    )
    stock = query_hash(ds, Stock(capture(), capture()))
    low: set[str] = set()
    to_come = iter(versions)

    @dataflow
    def watch() -> None:
        for article, pieces in stock.value.items():
            if pieces < LOW and article not in low:
                low.add(article)
                print(f"{article} runs low: {pieces}")
            elif pieces >= LOW and article in low:
                low.remove(article)
                print(f"enough {article} again: {pieces}")
        if stock.value or day == "Monday":
            version = next(to_come, None)
            if version is None:
                stop_actor()
            else:
                commit(place, version)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        run(buyer, Path(directory), "Monday", range(4))
        run(buyer, Path(directory), "Tuesday", [4])
