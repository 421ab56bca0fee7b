"""A dataspace as tables of Spark SQL: a view for each record class, read again by each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syndicate.errors import SourceError
from syndicate.spark.sink import columns_of
from syndicate.values.record import is_record_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(session: SparkSession) -> None:
    """Let *session*, classic or Connect, know ``format("syndicate")``, and push filters down into what it asks.

    Without this a session whose Python finds this package knows the format, too; it filters what it was notified of.
    """
    from relay.spark.source import NarrowingDataSource

    session.conf.set("spark.sql.python.filterPushdown.enabled", True)
    session.dataSource.register(NarrowingDataSource)


def create_views(
    session: SparkSession, records: Sequence[type], address: str, cap: str | None = None, **options: str | float
) -> list[str]:
    """Make a temporary view of each record class, named as its label, with its fields as columns; return their names.

    A query on a view asks the broker for what is there then; a comparison of a column with a constant becomes part of
    the question.  *options* are further options of the format, such as ``ca`` and ``mode``.

    Raises:
        SourceError: a class is no record class, or has a field that is no column.

    Example::

        create_views(spark, [Sensor, Alarm], "tcp://127.0.0.1:8001")
        spark.sql("SELECT name, value FROM Sensor JOIN Alarm USING (name) WHERE name = 'roof'").show()
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    names = []
    register(session)
    for cls in records:
        if not is_record_class(cls):
            raise SourceError(f"create_views takes classes decorated with @record, not {cls!r}")
        columns = columns_of(cls)
        nested = [name for name, kind in zip(columns.names, columns.schema.types, strict=True) if kind.num_fields]
        if nested:
            raise SourceError(
                f"the field {nested[0]!r} of {cls.__name__} is a compound: read the format with a pattern that "
                "captures its parts, and make a view of that"
            )
        label = str(cls.__label__)  # type: ignore[attr-defined]  # @record gives it
        settings = {"address": address, "label": label, **({"cap": cap} if cap is not None else {}), **options}
        schema = from_arrow_schema(columns.schema)
        session.read.format("syndicate").options(**settings).schema(schema).load().createOrReplaceTempView(f"`{label}`")
        names.append(label)
    return names
