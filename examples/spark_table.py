"""A Spark table in a dataspace: what is in the table is asserted, what leaves it is retracted.

The table is a file, which Spark reads again and again.  All that has changed from one time to the next takes effect as
one turn: the sums below are right for one state of the table or the other, and a row that only has a new number was
never gone.

    $ python examples/spark_table.py
    tea 40, coffee 25: 65 in all
    tea 38, coffee 25, cocoa 10: 73 in all
    coffee is sold out
    tea 38, cocoa 10: 48 in all

It needs Java and the extra ``spark``, which ``make test`` or ``make demo`` has set up.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from syndicate import ANY, Ref, capture, dataflow, dataspace, on_retracted, query_hash, record, run, spawn, stop_actor
from syndicate.spark import spark_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAYS = ["tea,40\ncoffee,25\n", "tea,38\ncoffee,25\ncocoa,10\n", "tea,38\ncocoa,10\n"]
"""What is in the file, day by day."""


@record
class Stock:
    """A row of the table."""

    article: str
    pieces: int


def table(path: Path, session: SparkSession) -> DataFrame:
    """The table as it is now."""
    return session.read.csv(str(path), schema="article string, pieces int")


def shop(ds: Ref, path: Path) -> None:
    """Show what there is, and once it is shown let the next day begin."""
    days = iter(DAYS)

    def next_day() -> None:
        today = next(days, None)
        if today is None:
            stop_actor()
        else:
            path.with_suffix(".new").write_text(today)
            path.with_suffix(".new").replace(path)

    next_day()
    spawn(spark_source(ds, partial(table, path), to=Stock, key=["article"], every=0.1), linked=True)
    stock = query_hash(ds, Stock(capture(), capture()))

    @on_retracted(ds, Stock(capture(), ANY))
    def sold_out(article: str) -> None:
        print(article, "is sold out")

    @dataflow
    def show() -> None:
        if stock.value:
            each = ", ".join(f"{article} {pieces}" for article, pieces in stock.value.items())
            print(f"{each}: {sum(stock.value.values())} in all")
            next_day()


def boot(path: Path) -> None:
    """Open the shop."""
    spawn(shop, dataspace(), path, linked=True)  # what ends the shop, ends the program


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        run(boot, Path(place, "stock.csv"))
