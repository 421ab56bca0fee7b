"""A session that knows real Iceberg and Delta tables: `make lakes` sets up the Spark and the jars for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.work import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = os.environ.get("SYNDICATE_LAKES", "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The newest Spark has no Iceberg and no Delta yet, so these have an environment of their own.

    A test here is many commits, each of some seconds of the processor, and at a load of 30 of minutes: each wait has
    its patience, and the test as a whole that of many.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(20 * PATIENCE))
            if not JARS:
                reason = "needs Iceberg, Delta and a Spark for them: `make lakes` runs it"
                item.add_marker(pytest.mark.skip(reason=reason))


def settings(warehouse: str | Path) -> dict[str, Any]:
    """Those of Spark: Iceberg's tables are in the catalog `warehouse`, Delta's in directories."""
    return {
        "spark.jars": ",".join(str(jar.absolute()) for jar in sorted(Path(JARS).glob("*.jar"))),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
        "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.warehouse": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.warehouse.type": "hadoop",
        "spark.sql.catalog.warehouse.warehouse": str(warehouse),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": 1,  # 50 by default, for each version
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": 1,  # 10,000 by default: VACUUM has so many tasks
        "spark.databricks.delta.retentionDurationCheck.enabled": False,
    }


def opened(warehouse: str | Path, **more: Any) -> SparkSession:
    """A session with these settings and *more*."""
    from syndicate.spark import open_session

    return open_session("lakes", cores=1, memory="1g", **settings(warehouse) | more)


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests."""
    session = opened(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()
