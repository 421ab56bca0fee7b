"""How far a source is: a record that stands in the dataspace beside the rows, and is replaced with each batch.

    $ syndicate-console --pattern '<SparkProgress _ _ _ _>'

>>> SparkProgress("Box", 7, 1200, 0.25)
SparkProgress(source='Box', batch=7, rows=1200, lag=0.25)

Source: the project's design, 6.7.
"""

from __future__ import annotations

from syndicate.record import record


@record
class SparkProgress:
    """A source has come to *batch*.

    *source* is the name of its record class; *rows* counts the rows of all batches since the source was started; *lag*
    is the seconds from the moment when Spark handed the batch over, or a table was looked at, until the dataspace had
    handled all of it.
    """

    source: str
    batch: int
    rows: int
    lag: float
