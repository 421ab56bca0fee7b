"""``python -m syndicate.spark.archive``: an archive of Java's classes, so that Spark sessions start for less.

A JVM reads, checks and links thousands of classes until Spark has its first result.  With the archive they are
mapped as they were after that: start and first query take half of the processor time.  It costs some 20 seconds of
the processor and 190 MB, once, beside the stand-in of Java in the virtual environment;
:func:`~.session.open_session` uses it from then on.  Java looks itself whether an archive is of its own release and
of Spark's very files, and starts without one that is not: after an upgrade of either make it again.

Source: ``docs/design/spark.md``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from syndicate.errors import JavaMissing, SparkMissing
from syndicate.spark.java import Java, archive, find_java, stand_in
from syndicate.spark.session import java_gateway, java_options, java_runs, open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def make_archive() -> Path:
    """Make the archive for the Java that sessions run on, in a session that ends; no other may be open.

    Raises:
        JavaMissing: there is no Java, no virtual environment or none that may be written to, Spark's Java runs in this
            process already, or this Java makes no archives, as one that was cut down to size without an archive of
            its own.
        SparkMissing: the extra ``spark`` is not installed.
    """
    java = find_java()
    place = archive(java.home)
    if place is None:
        raise JavaMissing("An archive of Java's classes lies in a virtual environment, and this Python is in none.")
    if "pyspark" in sys.modules and java_runs():
        raise JavaMissing("Spark's Java runs in this process already: make the archive in a process of its own.")
    home = stand_in(java.home)
    if home != place.parent:
        raise JavaMissing(f"The archive of Java's classes would lie in {place.parent}, which cannot be written to.")
    draft = home / f"spark.{os.getpid()}.jsa"
    try:
        _record(java, draft)
        if not draft.is_file():
            raise JavaMissing(f"Java {java.version} in {java.home} made no archive of its classes.")
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
    return place


def _record(java: Java, draft: Path) -> None:
    """Run a session whose Java writes its classes to *draft* when it ends, and wait for that end."""
    options = f'{java_options(java, archived=False)} "-XX:ArchiveClassesAtExit={draft}"'
    config = {"spark.driver.extraJavaOptions": options}
    try:
        session = open_session("archive", cores=2, memory="512m", **config)
        with tempfile.TemporaryDirectory() as directory:
            try:
                _use(session, directory)
            finally:
                session.stop()
    finally:
        if java_runs():
            gateway = java_gateway()
            gateway.shutdown()
            gateway.proc.stdin.close()  # Spark's Java ends with its standard input, and writes the archive then
            gateway.proc.wait()


def _use(session: SparkSession, directory: str) -> None:
    """What most sessions do: rows here and there, a shuffle, files, Python's workers, a stream."""
    from pyspark.sql.functions import udf

    rows = session.createDataFrame([(n % 7, n) for n in range(100)], "key long, value long")
    rows.write.parquet(f"{directory}/rows")
    files = session.read.parquet(f"{directory}/rows").where("value > 1")
    files.groupBy("key").sum("value").join(files, "key").toArrow()
    files.select(udf(lambda value: value + 1, "long")("value")).collect()
    stream = session.readStream.schema(rows.schema).parquet(f"{directory}/rows").writeStream
    stream.foreachBatch(_count).trigger(availableNow=True).start().awaitTermination()


def _count(frame: DataFrame, _: int) -> None:
    frame.count()


if __name__ == "__main__":
    try:
        print(make_archive())
    except (JavaMissing, SparkMissing) as error:
        sys.exit(str(error))
