"""``python -m tests.syndicate.spark.lakes.joining ADDRESS DIRECTORY``: a table, a durable broker, and another table.

One query brings the changes of the Delta table ``from`` into the dataspace, another one the changes of the dataspace
into the Delta table ``to``: each row with its weight.  Both go on until the program is killed.
"""

from __future__ import annotations

import sys

from relay.spark import register
from tests.relay.spark.brokers import DURABLE
from tests.syndicate.spark.lakes.conftest import opened


def main(address: str, directory: str) -> None:
    """Until it is killed."""
    session = opened(f"{directory}/warehouse")
    register(session)
    broker = {"address": address, "cap": DURABLE, "grace": "0", "pattern": "<Row $n>"}
    fed = session.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", "0")
    weight = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1L ELSE -1L END AS weight"
    changes = fed.load(f"{directory}/from").selectExpr("n", weight)
    said = changes.writeStream.format("syndicate").options(**broker)
    into = said.option("checkpointLocation", f"{directory}/into").start()
    heard = session.readStream.format("syndicate").options(**broker, log=f"{directory}/log")
    rows = heard.option("columns", "n bigint").load().select("n", "weight")
    kept = rows.writeStream.format("delta").option("checkpointLocation", f"{directory}/out")
    out = kept.start(f"{directory}/to")
    print("started", flush=True)
    while into.isActive and out.isActive:
        into.awaitTermination(1)
    print(into.exception(), out.exception(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
