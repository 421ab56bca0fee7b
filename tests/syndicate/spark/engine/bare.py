"""``python -m tests.syndicate.spark.engine.bare DIRECTORY``: two worker processes whose Python has what this package
needs, and not the package; it comes as an archive, by ``addPyFile``.

Prints what a step says without the archive, and what it gives with it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import pyspark

import syndicate
from syndicate.errors import SyndicateError
from syndicate.flow import Circuit
from syndicate.flow.operators.groups import GroupView
from syndicate.spark import SparkEngine, find_java, open_session

ROOT = Path(syndicate.__file__).parents[1]
PACKAGES = ("syndicate", "relay", "pyspark_syndicate")


def archive(place: Path) -> Path:
    """What a wheel has: packages, as a zip, which is what Spark's workers import from."""
    path = place / "syndicate_dataspace.zip"
    with zipfile.ZipFile(path, "w") as instance:
        for package in PACKAGES:
            for file in sorted((ROOT / package).rglob("*.py")):
                instance.write(file, file.relative_to(ROOT))
    return path


def bare(place: Path) -> Path:
    """A Python of its own that sees the packages installed here, and not this one: links to it are not followed."""
    venv.create(place, with_pip=False, symlinks=True)
    purelib = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (purelib / "installed.pth").write_text(sysconfig.get_path("purelib"))
    return place / "bin" / "python"


def total(group: GroupView) -> object:
    """A sum, in Python."""
    return sum(value[1] * weight for value, weight in group.items())


def main(directory: str) -> None:
    """See the module."""
    place = Path(directory)
    python = bare(place / "bare")
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # executors are started by its scripts
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.pop("PYTHONPATH", None)
    options: dict[str, Any] = {
        "spark.master": "local-cluster[2,1,512]",
        "spark.executor.memory": "512m",
    }
    session = open_session("bare", memory="512m", **options)
    session.sparkContext.pythonExec = str(python)  # what workers run, in place of this Python

    def build() -> Circuit:
        c = Circuit()
        c.sink("out", c.source("a").index_with(lambda e: e[0] % 4).aggregate(total))
        return c

    deltas = {"a": {(number, number): 1 for number in range(40)}}
    try:
        with SparkEngine(build(), session, small=0) as engine:
            engine.step(deltas)
    except SyndicateError as error:
        print(error)
    session.addArtifact(str(archive(place)), pyfile=True)
    with SparkEngine(build(), session, small=0) as engine:
        print(sorted(element for element, _ in engine.step(deltas)["out"].to_zset().items()))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
