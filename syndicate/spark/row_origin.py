"""Where rows come from that :func:`~syndicate.spark.source.spark_source` knows how to follow.

A :class:`RowOrigin` is given in the place of the function that makes a DataFrame, and knows which columns say what
changed.  A :class:`Versioned` one tells its *versions* (commits, snapshots, watermarks): it is read once as a whole, at
one of them, and from there on only what changed from one version to the next is read.  So nothing is read twice or left
out, whatever happens to the table meanwhile.  If what changed after the last version cannot be determined any more, the
table is read as a whole again, and the difference takes effect.

Contract: a version is text that a journal keeps; :meth:`Versioned.changes` gives all that changed after one version up
to another, or raises :class:`~syndicate.spark.feed_position.PlaceGone`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syndicate.errors import SourceError
from syndicate.spark.change_feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RowOrigin(ABC):
    """A table or a stream; ``feed`` names the columns of its changes, and is None where a row is just there."""

    @property
    def feed(self) -> Feed | None:
        """The columns of its changes."""
        return None

    def check(self, key: Sequence[str]) -> None:  # noqa: B027  # most can
        """Raise :class:`~syndicate.errors.SourceError` if its rows cannot be followed by this *key*."""

    @abstractmethod
    def read(self, session: SparkSession) -> DataFrame:
        """The DataFrame that is polled, if it is a table, or followed, if it is a stream.

        Raises:
            SourceError: the session cannot read it.
        """


class Versioned(RowOrigin):
    """A table with versions: of what :meth:`read` gives only the columns count, unless it has none after all."""

    @property
    def has_versions(self) -> bool:
        """Whether it is followed by them, and not polled."""
        return True

    def session(self, outer: SparkSession) -> SparkSession:
        """The session in which it is read."""
        return outer

    @abstractmethod
    def first(self, session: SparkSession) -> str | None:
        """The version to begin with; None if there is none yet."""

    @abstractmethod
    def newest(self, session: SparkSession) -> str | None:
        """The last version; None if there is none yet."""

    @abstractmethod
    def whole(self, session: SparkSession, version: str) -> DataFrame:
        """All rows of a version."""

    @abstractmethod
    def changes(self, session: SparkSession, after: str, to: str) -> DataFrame:
        """What changed *after* one version, up to another one, with the columns of the feed."""

    def explained(self, error: SourceError) -> SourceError:
        """What it means that the changes could not be read, if this knows better."""
        return error
