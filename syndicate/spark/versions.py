"""Which releases of Spark, Delta and Iceberg go together; looked at before a table is touched.

A jar for another Spark fails late, in the middle of a commit, with the name of a method that is missing.  So the names
of the jars that a session was given are compared with its Spark.

>>> unfit("4.1.4", ["file:/j/iceberg-spark-runtime-4.1_2.13-1.12.0.jar"], "iceberg")
>>> print(unfit("4.1.4", ["file:/j/delta-spark_4.2_2.13-4.4.0.jar"], "delta"))
delta-spark_4.2_2.13-4.4.0.jar is made for Spark 4.2, and this is Spark 4.1.4: take io.delta:delta-spark_4.1_2.13:4.4.0
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Format = Literal["delta", "iceberg"]

ARTIFACTS: Final[Mapping[Format, Mapping[str, str]]] = {
    "delta": {
        "4.0": "io.delta:delta-spark_2.13:4.0.1",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
        "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
    },
    "iceberg": {
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.12.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    },
}
"""By Spark's release; there was none for a later one when this was written."""

EXTENSIONS: Final[Mapping[Format, str]] = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}

_JAR: Final = re.compile(
    r"(?:(delta)-spark|(iceberg)-spark-runtime)(?:[-_](\d+\.\d+))?_2\.13-(\d+\.\d+\.\d+)[^/]*\.jar$"
)
_BROKEN: Final = {("4.1", "delta", "4.1.0"): "it cannot read its own checkpoints there"}


def unfit(spark: str, jars: Iterable[str], kind: Format) -> str | None:
    """Why these jars do not fit Spark's release, with the remedy; None if they do, or nobody can tell."""
    release = _release(spark)
    artifact = ARTIFACTS[kind].get(release)
    remedy = f"take {artifact}" if artifact else f"take Spark {', '.join(ARTIFACTS[kind])}, for which there is one"
    for jar in jars:
        match = _JAR.search(jar)
        if match is None or kind not in (match[1], match[2]):
            continue
        if match[3] is not None and match[3] != release:
            return f"{match[0]} is made for Spark {match[3]}, and this is Spark {spark}: {remedy}"
        broken = _BROKEN.get((release, kind, match[4]))
        if broken is not None:
            return f"{match[0]} does not work with Spark {spark}, {broken}: {remedy}"
    return None


def unfit_session(session: SparkSession, kind: Format) -> str | None:
    """Why *session* cannot have tables of this kind, as far as that can be seen, with the remedy; None if it can."""
    extensions = session.conf.get("spark.sql.extensions", "") or ""
    if EXTENSIONS[kind] not in extensions:
        artifact = ARTIFACTS[kind].get(_release(session.version))
        remedy = (
            f"open it with spark.jars.packages={artifact} and spark.sql.extensions={EXTENSIONS[kind]}"
            if artifact
            else f"there is none for Spark {session.version}: take Spark {', '.join(ARTIFACTS[kind])}"
        )
        return f"this session does not know {kind} tables: {remedy}"
    return unfit(session.version, [str(row[0]) for row in session.sql("LIST JARS").collect()], kind)


def _release(spark: str) -> str:
    return ".".join(spark.split(".")[:2])
