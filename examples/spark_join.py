"""A join that one process should not hold: its state is on disk, and the driver's memory stays flat.

Orders are joined with their customers by a circuit on Spark, and the sum of each region is kept up to date.
Then a few customers move: what is sent to the driver is what changed, however many orders there are.  ``--orders
20000000`` shows the same with a state that no process of this machine could hold as Python objects.

    $ python examples/spark_join.py
    100,000 orders joined: 4 regions, 499,995 pieces
    2 customers have moved: 3 sums have changed
    the driver's memory is flat

It needs Java and the extra ``spark``, which ``make test`` or ``make demo`` has set up.
"""

from __future__ import annotations

import argparse
from operator import itemgetter
from pathlib import Path

from syndicate.flow import Circuit, aggregates, rearranges
from syndicate.spark import SparkEngine, open_session

CUSTOMERS = 1000
FLAT = 200
"""MiB by which the driver may grow: the join as Python objects would take a gigabyte for each two million orders."""


@rearranges
def sold(customer, order, moved):  # type: ignore[no-untyped-def]  # columns in, columns out
    """The region and the pieces of an order."""
    return (moved[1], order[2])


def circuit() -> Circuit:
    """Orders ``(order, customer, pieces)`` and customers ``(customer, region)``: the pieces of each region."""
    c = Circuit()
    orders = c.source("orders").index_with(itemgetter(1))
    customers = c.source("customers").index_with(itemgetter(0))
    joined = orders.join(customers, sold)
    c.sink("regions", joined.index_with(itemgetter(0), itemgetter(1)).aggregate(aggregates.sum))
    return c


def memory() -> int:
    """The resident memory of this process, in MiB; the JVM is another process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


def main(count: int, *, verbose: bool) -> None:
    """Join *count* orders."""
    session = open_session("spark_join")
    orders = session.range(count).selectExpr("id", f"id % {CUSTOMERS} AS customer", "id % 11 AS pieces")
    customers = session.range(CUSTOMERS).selectExpr("id", "CAST(id % 4 AS STRING) AS region")
    with SparkEngine(circuit(), session) as engine:
        engine.step({"customers": {(-1, "nowhere"): 1}, "orders": {(-1, -1, 0): 1}})  # Spark's own code is loaded
        before = memory()
        changes = dict(engine.step({"orders": orders, "customers": customers})["regions"])
        regions = [element for element, weight in changes.items() if weight > 0]
        print(f"{count:,} orders joined: {len(regions)} regions, {sum(pieces for _, pieces in regions):,} pieces")
        moves = {(7, "3"): -1, (7, "0"): 1, (8, "0"): -1, (8, "1"): 1}
        moved = engine.step({"customers": moves})["regions"]
        print(f"2 customers have moved: {sum(weight > 0 for _, weight in moved)} sums have changed")
        grown = memory() - before
        print("the driver's memory is flat" if grown < FLAT else f"the driver has grown by {grown} MiB")
        if verbose:
            print(f"{before} MiB before, {memory()} MiB after")
    session.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Join orders with customers on Spark.")
    parser.add_argument("--orders", type=int, default=100_000, help="how many (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print the memory of the driver")
    given = parser.parse_args()
    main(given.orders, verbose=given.verbose)
