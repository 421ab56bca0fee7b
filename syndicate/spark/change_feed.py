"""Change feeds: rows that say which change they are, in the words of who wrote the table's log.

A feed has a column with the kind of the change and one that orders the changes: what has the same value in it was
committed together, and takes effect as one turn.  Delta and Iceberg have conventional names for both; another feed is
described by a :class:`Feed` of its own.  Where the order begins again when old commits expire, a third column names the
commits.

>>> feed_of("iceberg").words["UPDATE_BEFORE"]
-1
>>> feed_of(Feed("op", "lsn", {"c": 1, "u": 1, "d": -1})).order
'lsn'

What is committed after a place in a feed is found by :mod:`syndicate.spark.feed_position`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from attrs import field, frozen

from syndicate.errors import SourceError

WORDS: Final[Mapping[str, int]] = {
    "insert": 1,
    "update_postimage": 1,
    "update_preimage": -1,
    "delete": -1,
    "INSERT": 1,
    "UPDATE_AFTER": 1,
    "UPDATE_BEFORE": -1,
    "DELETE": -1,
}
"""What the words of Delta's and Iceberg's feeds do to a row: add it, or remove it."""


@frozen
class Feed:
    """The columns of a change feed: ``kind`` holds one of ``words``, each +1 or -1, and ``order`` counts the commits.

    ``commit`` is the column whose value names a commit for good, if ``order`` only says where it is among those that
    the feed has now.  ``consecutive`` says that ``order`` counts by one, so that missing commits are noticed.
    ``ignore`` are columns that tell more about the commit, and are in no record.
    """

    kind: str
    order: str
    words: Mapping[str, int] = field(default=WORDS)
    ignore: Sequence[str] = ()
    commit: str | None = None
    consecutive: bool = False

    @words.validator
    def _are_weights(self, attribute: object, words: Mapping[str, int]) -> None:
        wrong = [word for word, weight in words.items() if weight not in (1, -1)]
        if wrong or not words:
            raise SourceError(
                f"the words of a Feed are +1 (the row is added) or -1 (it is removed), not {dict(words)!r}"
            )


DELTA: Final = Feed("_change_type", "_commit_version", ignore=("_commit_timestamp",), consecutive=True)
"""The feed of a Delta table (``readChangeFeed``), and of Spark's own ``changes(table)``."""

ICEBERG: Final = Feed("_change_type", "_change_ordinal", commit="_commit_snapshot_id")
"""The changelog view of an Iceberg table, with updates as pairs of images; its ordinals begin again at each expiry."""

Named: TypeAlias = Literal["delta", "iceberg"]

_NAMED: Final[Mapping[str, Feed]] = {"delta": DELTA, "iceberg": ICEBERG}


def feed_of(changes: Feed | Named | None) -> Feed | None:
    """The feed that ``changes=`` means; raises :class:`SourceError` if it means none."""
    if changes is None or isinstance(changes, Feed):
        return changes
    if changes in _NAMED:
        return _NAMED[changes]
    raise SourceError(f'changes= takes "delta", "iceberg" or a Feed that names the columns, not {changes!r}')
