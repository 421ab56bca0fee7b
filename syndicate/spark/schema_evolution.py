"""Fields of a record class that go ahead of the table: they are null until the table has a column for them.

Source: ``docs/design/spark.md``, "Columns that are added".
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from syndicate.errors import SinkError, SourceError
from syndicate.spark.columns import ANYTHING, fields_of, hints_of
from syndicate.spark.to_arrow import kind_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WIDER: Final = {"bigint": ("tinyint", "smallint", "int"), "double": ("float",)}


def later_fields(cls: type) -> dict[str, pa.DataType]:
    """The fields that may be None, and their types; raises :class:`SourceError` for one that no column can have."""
    hints = hints_of(cls)
    kinds = {}
    for name in fields_of(cls):
        hint = hints.get(name, ANYTHING)
        if type(None) in typing.get_args(hint):
            try:
                kinds[name] = kind_of(hint, name)
            except SinkError as error:
                raise SourceError(f'{error} (evolve="add" needs the type of a column that is not there yet)') from None
    return kinds


def evolved(frame: DataFrame, fields: Mapping[str, pa.DataType]) -> DataFrame:
    """The frame with a column of these types for each of the fields, of nulls where it has none."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_type

    for name, kind in fields.items():
        declared = from_arrow_type(kind)
        if name not in frame.columns:
            frame = frame.withColumn(name, f.lit(None).cast(declared))
        elif frame.schema[name].dataType.simpleString() in _WIDER.get(declared.simpleString(), ()):
            frame = frame.withColumn(name, f.col(f"`{name}`").cast(declared))
    return frame
