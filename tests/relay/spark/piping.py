"""A program of Spark's that is killed: a stream from a durable broker, through Spark, to the same broker.

``python -m tests.relay.spark.piping ADDRESS DIRECTORY``: what is ``<In $n>`` becomes ``<Out $n>``.
"""

from __future__ import annotations

import sys

from relay.spark import register
from syndicate.spark import open_session
from tests.relay.spark.brokers import DURABLE


def main(address: str, directory: str) -> None:
    """Until it is killed."""
    session = open_session("piping", cores=1, memory="512m")
    register(session)
    settings = {"address": address, "cap": DURABLE, "grace": "0"}
    read = session.readStream.format("syndicate").options(**settings, log=f"{directory}/log", pattern="<In $n>")
    stream = read.option("columns", "n bigint").load()
    written = stream.writeStream.format("syndicate").options(**settings, pattern="<Out $n>")
    query = written.option("checkpointLocation", f"{directory}/checkpoint").start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
