"""Rows of Spark as Arrow tables, in the types that they are promised in.

Spark says of a member of a struct that it is never null although the struct may be: an outer join makes such columns,
and so do the schemas of Avro and Protobuf.  Arrow refuses the null struct then.  So what is within a column may always
be null here; a frame whose columns say so already is read as it is.

Contract: nothing but the nullability of what is nested changes, and all rows of this package cross over here, but for
those in the engine's own layouts, which have no structs.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from syndicate.errors import SourceError
from syndicate.spark.errors import explained

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


def arrow_table(name: str, frame: DataFrame) -> pa.Table:
    """The rows of *frame*, those of *name* in messages; raises :class:`SourceError` if they cannot be had."""
    import pyarrow as pa

    loose = explained(name, loosened, frame)
    try:
        table: pa.Table = explained(name, loose.toArrow)
    except pa.ArrowException as error:
        nested = [f"{each.name!r} ({each.dataType.simpleString()})" for each in frame.schema if _nests(each.dataType)]
        raise SourceError(
            f"the rows of {name} cannot be had from Spark as Arrow tables: {error}; their nested columns are "
            f"{', '.join(nested) or 'none'}: select the parts that are needed, or cast them in the frame"
        ) from None
    return table


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark hands over rows of *schema*.

    Raises:
        SourceError: Spark has no such type in Arrow: an interval of months is one.
    """
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructField, StructType

    named = inspect.signature(to_arrow_schema).parameters
    zone = {"timezone": "UTC"} if "timezone" in named else {}
    fields = []
    for member in schema:
        loose = StructField(member.name, loose_type(member.dataType), member.nullable, member.metadata)
        try:
            fields += to_arrow_schema(StructType([loose]), **zone)  # type: ignore[arg-type]  # of some releases of Spark
        except PySparkException:
            raise SourceError(
                f"the column {member.name!r} is of type {member.dataType.simpleString()}, which has no value: "
                "cast it in the frame, to string for instance"
            ) from None
    return pa.schema(fields)


def loose_type(kind: DataType) -> DataType:
    """The type with members of structs that may be null, at any depth."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(each.name, loose_type(each.dataType), True, each.metadata) for each in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(loose_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(loose_type(kind.keyType), loose_type(kind.valueType), kind.valueContainsNull)
    return kind


def loosened(frame: DataFrame) -> DataFrame:
    """The frame with columns of such types; by place, since two columns may have one name."""
    from pyspark.sql import functions as f

    kinds = {place: loose_type(each.dataType) for place, each in enumerate(frame.schema)}
    if all(kinds[place] == each.dataType for place, each in enumerate(frame.schema)):
        return frame
    names = [f"c{place}" for place in kinds]
    cast = [
        f.col(name) if kinds[place] == each.dataType else f.col(name).cast(kinds[place])
        for place, (name, each) in enumerate(zip(names, frame.schema, strict=True))
    ]
    return frame.toDF(*names).select(*cast).toDF(*frame.columns)


def _nests(kind: DataType) -> bool:
    return kind.typeName() in ("struct", "array", "map", "variant")
