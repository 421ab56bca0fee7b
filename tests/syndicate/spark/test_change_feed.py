from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from syndicate import dataspace, record, run
from syndicate.errors import SourceError
from syndicate.spark import Feed, spark_source
from syndicate.spark.change_feed import DELTA, ICEBERG, feed_of
from syndicate.spark.current_rows import CurrentRows
from syndicate.spark.rows import TableRows
from syndicate.values.value import thaw


@record
class Account:
    number: int
    owner: str


WORDS = {
    "delta": ("insert", "delete", "update_preimage", "update_postimage"),
    "iceberg": ("INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"),
}
COLUMNS = {
    "delta": ("_change_type", "_commit_version", "_commit_timestamp"),
    "iceberg": ("_change_type", "_change_ordinal", "_commit_snapshot_id"),
}


@pytest.mark.parametrize("name", ["delta", "iceberg"])
@pytest.mark.parametrize("key", [[], ["number"]])
def test_conventional_feeds(name: str, key: list[str]) -> None:
    """The words of both conventions, in any order of the rows, replay to the same table, a turn for each commit."""
    insert, delete, before, after = WORDS[name]
    kind, order, more = COLUMNS[name]
    feed = feed_of(name)  # type: ignore[arg-type]  # a string
    assert feed is not None
    table = pa.table(
        {
            "number": [2, 1, 1, 1, 2],
            "owner": ["Bo", "Al", "Al", "Alma", "Bo"],
            kind: [delete, before, insert, after, insert],
            order: [3, 2, 1, 2, 1],
            more: [0, 0, 0, 0, 0],
        }
    )
    rows = TableRows(Account, key, feed.kind, feed.order, ignore=feed.ignore, words=feed.words, commit=feed.commit)
    current = CurrentRows(keyed=bool(key))
    changes = [current.change(step) for step in rows.steps(table)]
    assert [(sorted(map(str, map(thaw, adds))), list(map(thaw, removes))) for adds, removes in changes] == [
        (["Account(number=1, owner='Al')", "Account(number=2, owner='Bo')"], []),
        (["Account(number=1, owner='Alma')"], [Account(1, "Al")]),
        ([], [Account(2, "Bo")]),
    ]


def test_an_unknown_word() -> None:
    """A word that the feed does not know is named with those that it does."""
    rows = TableRows(Account, (), "op", "lsn", words={"c": 1, "d": -1})
    with pytest.raises(SourceError, match="holds 'u', which is no weight: weights are integers or one of c, d"):
        rows.steps(pa.table({"number": [1], "owner": ["Al"], "op": ["u"], "lsn": [1]}))


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ("hudi", {}, 'changes= takes "delta", "iceberg" or a Feed that names the columns, not \'hudi\''),
        ("delta", {"weight": "w"}, "changes= says that '_change_type' holds the weights: leave weight= out"),
        (None, {"whole": len}, "whole= is the table whose changes a feed has: name its columns with changes="),
        ("delta", {"whole": "t"}, "whole= takes a function from a session to a DataFrame, not the str itself"),
        ("delta", {"mode": "complete"}, 'mode="complete" gives whole tables'),
    ],
)
def test_bad_options(changes: object, options: dict[str, Any], message: str) -> None:
    """A mistake in the call is reported at the call."""

    def boot() -> None:
        with pytest.raises(SourceError, match=message):
            spark_source(dataspace(), lambda session: session.range(1), Account, changes=changes, **options)  # type: ignore[arg-type]  # of any type

    run(boot)


def test_words_are_weights() -> None:
    """A feed whose words are neither +1 nor -1 is a mistake, and so is one without words."""
    for words in ({"upsert": 0}, {}):
        with pytest.raises(SourceError, match=r"the words of a Feed are \+1 .* or -1"):
            Feed("op", "lsn", words)
    assert feed_of(None) is None
    assert (feed_of("delta"), feed_of(ICEBERG)) == (DELTA, ICEBERG)
