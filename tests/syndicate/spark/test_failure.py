from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from syndicate.errors import SourceError, SparkMissing
from syndicate.spark.failure import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fail(error: Exception) -> NoReturn:
    """Raise it."""
    raise error


def test_what_works_passes() -> None:
    """An answer passes, with arguments of all kinds on the way."""
    assert explained("Box", sorted, [1, 2], reverse=True) == [2, 1]


@pytest.mark.parametrize("error", [ValueError("mine"), SparkMissing("not installed"), SourceError("known")])
def test_other_errors_pass(error: Exception) -> None:
    """What is not Spark's error is left as it is."""
    with pytest.raises(type(error)) as caught:
        explained("Box", fail, error)
    assert caught.value is error


def test_a_lost_session() -> None:
    """When nobody answers at the other end, that is said, and no more."""
    lost = pytest.importorskip("py4j.protocol").Py4JNetworkError("Answer from Java side is empty")
    with pytest.raises(
        SourceError, match=r"^Spark could not deliver the rows of Box: its session has ended$"
    ) as caught:
        explained("Box", fail, lost)
    assert caught.value.__context__ is None


def test_an_error_of_python_side() -> None:
    """What pyspark itself refuses is told in its first line."""
    from pyspark.errors import PySparkTypeError

    with pytest.raises(SourceError, match=r"rows of Box: first$"):
        explained("Box", fail, PySparkTypeError("first.\nsecond"))


def test_the_error_within(spark: SparkSession) -> None:
    """Of the errors that Spark wraps in one another, the one that names the cause is told."""
    from pyspark.sql import functions as f

    frame = spark.range(3).select((f.col("id") / f.lit(0)).alias("x"))
    with pytest.raises(SourceError, match=r"rows of Box: \[DIVIDE_BY_ZERO\] Division by zero") as caught:
        explained("Box", frame.toArrow)
    assert "\n" not in str(caught.value)
