"""``python -m tests.syndicate.spark.lakes.jars PACKAGES DIRECTORY``: let Spark fetch them into DIRECTORY/jars."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from syndicate.spark import open_session

SPARKS_OWN = [
    "com.google.code.findbugs:jsr305",
    "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "org.slf4j:slf4j-api",
]


def main(packages: str, directory: str) -> None:
    """Ivy, which Spark brings along, looks for them in Maven's repositories, the one on this disk first."""
    ivy = Path(directory, "ivy").absolute()
    config: dict[str, Any] = {
        "spark.jars.packages": packages,
        "spark.jars.ivy": str(ivy),
        "spark.jars.excludes": ",".join(SPARKS_OWN),
    }
    open_session("jars", cores=1, **config).stop()
    there = Path(directory, "jars")
    there.mkdir(exist_ok=True)
    for jar in (ivy / "jars").glob("*.jar"):
        jar.rename(there / jar.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
