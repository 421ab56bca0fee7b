"""The place in a change feed up to which its commits have taken effect, and what is behind it.

A feed does not go back for ever: snapshots expire and logs are cleaned up.  What was committed after a place can be
known only while the place itself can be found, so each look asks for that first:

- in a feed that names its commits (Iceberg's snapshots), the commit of the place is looked for, and what is later than
  it *now*: the numbers by which such a view orders the commits begin again when the oldest ones expire;
- in one that numbers all commits (Delta's versions), none may be missing behind the place;
- in any other one the order must not have gone back behind it.

>>> Place.of(Place("3", "8072").text) == Place("3", "8072")
True

Contract: a place that has gone raises :class:`PlaceGone`; it never looks like a feed without later commits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import frozen

from syndicate.errors import SourceError
from syndicate.spark.arrow import arrow_table
from syndicate.spark.change_feed import Feed
from syndicate.spark.errors import Interrupted
from syndicate.values.value import Value

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class PlaceGone(SourceError):
    """What was committed after a place is not known any more."""


class Overtaken(Interrupted):
    """The table was changed or expired while it was looked at: the next look sees it as a whole."""


@frozen
class Place:
    """A commit: its value of the column that orders the commits, and its name, if the feed has a column for that."""

    order: str
    commit: str | None = None

    @property
    def name(self) -> str:
        """What tells the commit from others."""
        return self.order if self.commit is None else self.commit

    @property
    def text(self) -> str:
        """The place as a journal keeps it."""
        return json.dumps([self.order, self.commit])

    @classmethod
    def of(cls, text: str) -> Place:
        """The place that a journal has kept."""
        return cls(*json.loads(text))


def later(name: str, frame: DataFrame, feed: Feed, place: Place) -> tuple[DataFrame, set[str]] | None:
    """The rows of the commits after *place*, and names of commits that must be among them; None if there are none.

    Raises:
        PlaceGone: it is not known which commits these are.
    """
    from pyspark.sql import functions as f

    if feed.commit is not None:
        return _later_than_commit(name, frame, feed, place)
    order, at = f.col(feed.order), _value(frame, feed, place.order)
    commits = frame.agg(
        f.min(order).alias("first"),
        f.max(order).alias("last"),
        f.min(f.when(order > at, order)).alias("next"),
        (f.max(order) < at).alias("back"),
        (f.min(order) > at + 1 if feed.consecutive else f.lit(False)).alias("gap"),
        f.max(order.isNull()).alias("unordered"),
    )
    [seen] = arrow_table(name, commits).to_pylist()
    if seen["unordered"]:
        raise SourceError(f"the column {feed.order!r} orders the commits of {name}, but is null in some rows")
    if seen["back"] or seen["gap"]:
        raise PlaceGone(
            f"the place of {name} in its feed has gone: it had come to {feed.order} {place.order}, and now the feed "
            f"goes from {seen['first']} to {seen['last']}"
        )
    return None if seen["next"] is None else (frame.where(order > at), {str(seen["next"]), str(seen["last"])})


def _later_than_commit(name: str, frame: DataFrame, feed: Feed, place: Place) -> tuple[DataFrame, set[str]] | None:
    from pyspark.sql import functions as f

    columns = (feed.order, str(feed.commit))
    named = [f.col(column).alias(f"c{at}") for at, column in enumerate(columns)]
    listed = arrow_table(name, frame.select(*named).distinct())
    for at, column in enumerate(columns):
        if listed.column(at).null_count:
            raise SourceError(f"the column {column!r} names the commits of {name}, but is null in some rows")
    commits = [
        (order, str(commit)) for order, commit in zip(*[each.to_pylist() for each in listed.columns], strict=True)
    ]
    at_order: dict[Value, str] = {}
    for order, commit in commits:
        if at_order.setdefault(order, commit) != commit:
            raise SourceError(
                f"the commits {at_order[order]} and {commit} of {name} are both at {feed.order} {order}: which one is "
                "later must be told; name a column that orders them, as the order of the Feed"
            )
    here = [order for order, commit in commits if commit == place.commit]
    if not here:
        raise PlaceGone(
            f"the place of {name} in its feed has gone: it had come to {feed.commit} {place.commit}, which is not "
            f"among the {len(commits)} commits that the feed still has"
        )
    names = {commit for order, commit in commits if order > max(here)}
    rows = frame.where(f.col(feed.order) > _value(frame, feed, str(max(here))))
    return (rows, names) if names else None


def newest(name: str, frame: DataFrame, feed: Feed) -> DataFrame | None:
    """The rows of the last commit; None if the feed has none."""
    from pyspark.sql import functions as f

    order = f.col(feed.order)
    last: Value = arrow_table(name, frame.agg(f.max(order).alias("last"))).column(0)[0].as_py()
    return None if last is None else frame.where(order == _value(frame, feed, str(last)))


def _value(frame: DataFrame, feed: Feed, text: str) -> Column:
    """The value of the column that orders the commits, whose items as text mean the same to Spark."""
    from pyspark.sql import functions as f

    return f.lit(text).cast(frame.schema[feed.order].dataType)
