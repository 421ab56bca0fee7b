"""How far a source is: records that are asserted in the dataspace beside the rows; the one of its batches is replaced
with each.

    $ syndicate-console --pattern '<SparkProgress _ _ _ _>'

>>> SparkProgress("Box", 7, 1200, 0.25)
SparkProgress(source='Box', batch=7, rows=1200, lag=0.25)
"""

from __future__ import annotations

from syndicate.values.record import record


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


@record
class SparkSource:
    """There is a source, the name of whose record class is *source*.

    *standing* says that it has asserted what was there when it was started: what its journal says, what its first look
    at a table saw, or all that a stream had until it had to wait for more.  Until then what is missing has not gone: a
    sink waits for it.
    """

    source: str
    standing: bool
