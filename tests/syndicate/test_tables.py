"""Tables out and in, beside pandas, Polars and Arrow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

import syndicate.asyncio
from syndicate import ABSENT, ANY, Ref, after, assert_, capture, dataspace, record, run, thread
from syndicate.errors import ArgumentError, NotAValue
from syndicate.tables import Kind, Table, follow, from_frame, to_frame


@record
class Reading:
    """A row."""

    name: str
    value: float
    at: datetime


COLUMNS: dict[str, list[Any]] = {
    "value": [20.5, 18.0, 20.5],
    "name": ["hall", "attic", "hall"],
    "other": [None, 1, "x"],
    "at": [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 1)],
}
FRAMES: dict[str, Callable[[], Any]] = {
    "mapping": lambda: COLUMNS,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame({name: COLUMNS[name] for name in ("at", "value", "name")}),
    "arrow": lambda: pa.table({name: COLUMNS[name] for name in ("value", "name", "at")}),
    "numpy": lambda: {**COLUMNS, "value": np.array(COLUMNS["value"])},
}


def settled(boot: Callable[[Ref], Callable[[], object]]) -> list[Any]:
    """What the function that *boot* returns gives, once all is known."""
    results: list[Any] = []

    def main() -> None:
        look = boot(dataspace())
        after(1000, lambda: results.append(look()))

    run(main, clock=MockClock(autojump_threshold=0))
    return results


@pytest.mark.parametrize("kind", FRAMES)
def test_in_and_out(kind: str) -> None:
    """The rows of any frame, equal ones once, come out of each kind of frame as they went in."""

    def boot(ds: Ref) -> Callable[[], object]:
        table = follow(ds, Reading)
        from_frame(ds, FRAMES[kind](), to=Reading)
        return lambda: (table, table.to_pandas(), table.to_polars(), table.to_arrow())

    ((table, pandas, polars, arrow),) = settled(boot)
    expected = {("hall", 20.5, COLUMNS["at"][0]), ("attic", 18.0, COLUMNS["at"][1])}
    assert table.columns == ("name", "value", "at")
    assert set(table) == expected
    assert set(pandas.itertuples(index=False, name=None)) == expected
    assert set(polars.iter_rows()) == expected
    assert {tuple(row.values()) for row in arrow.to_pylist()} == expected


@given(st.lists(st.lists(st.tuples(st.text(max_size=2), st.integers(0, 3)), max_size=6), min_size=1, max_size=5))
def test_replace_is_the_difference(versions: list[list[tuple[str, int]]]) -> None:
    """After each replacement there stands what the newest frame has, and what is in both has never gone."""

    def frame(rows: list[tuple[str, int]]) -> dict[str, list[Any]]:
        return {"name": [name for name, _ in rows], "value": [value for _, value in rows], "at": ["x"] * len(rows)}

    seen: list[set[Any]] = []

    def boot(ds: Ref) -> Callable[[], object]:
        table = follow(ds, Reading(capture(), capture(), ANY))
        rows = from_frame(ds, frame([]), to=Reading)
        before: list[tuple[str, int]] = []
        for number, version in enumerate(versions):

            def change(version: list[tuple[str, int]] = version) -> None:
                nonlocal before
                assert rows.replace(frame(version)) == (
                    len(set(version) - set(before)),
                    len(set(before) - set(version)),
                )
                before = version

            after(number, change)
            after(number + 0.5, lambda: seen.append(set(table)))
        return lambda: None

    settled(boot)
    assert seen == [set(version) for version in versions]


def test_what_is_missing() -> None:
    """None, NaT and NA are absent; NaN among floats is a number."""

    def boot(ds: Ref) -> Callable[[], object]:
        table = follow(ds, Reading)
        frame = pd.DataFrame(
            {
                "name": ["a", None, "c"],
                "value": [1.0, float("nan"), 3.0],
                "at": pd.to_datetime(pd.Series(["2026-01-01T00:00:00Z", None, None])),
            }
        )
        from_frame(ds, frame, to=Reading)
        return lambda: (sorted(table, key=str), table.to_arrow())

    (((first, last, nameless), arrow),) = settled(boot)
    assert first == ("a", 1.0, datetime(2026, 1, 1, tzinfo=UTC))
    assert last == ("c", 3.0, ABSENT)
    assert nameless[0] is ABSENT
    assert nameless[1] != nameless[1]
    assert arrow.column("at").null_count == 2


def test_notebooks_show_it() -> None:
    """Twenty rows of text, whatever is in it."""
    (html,) = settled(_shown)
    assert html.count("<tr>") == 21
    assert "&lt;img onerror=1&gt;" in html
    assert "<img" not in html
    assert "31 rows, the first 20 of which are shown" in html


def _shown(ds: Ref) -> Callable[[], object]:
    table = follow(ds, ["row", capture()], ["<b>"])
    assert_(ds, ["row", "<img onerror=1>"])
    for number in range(30):
        assert_(ds, ["row", number])
    return table._repr_html_


def test_retracted() -> None:
    """All rows go; as they do with the facet."""

    def boot(ds: Ref) -> Callable[[], object]:
        table = follow(ds, Reading)
        rows = from_frame(ds, COLUMNS, to=Reading)
        after(1, rows.retract)
        return lambda: (len(table), len(rows))

    assert settled(boot) == [(0, 0)]


@pytest.mark.parametrize(
    ("mistake", "error", "says"),
    [
        (lambda ds: from_frame(ds, {"name": []}, to=Reading), ArgumentError, "no column value, at, which Reading"),
        (lambda ds: from_frame(ds, COLUMNS, to=dict), ArgumentError, "a class of records"),
        (lambda ds: from_frame(ds, {**COLUMNS, "at": []}, to=Reading), ArgumentError, "not of one length"),
        (lambda ds: from_frame(ds, {**COLUMNS, "at": [object()] * 3}, to=Reading), NotAValue, "row 0: .*object"),
        (lambda ds: follow(ds, Reading, ["a"]), ArgumentError, "1 columns for 3 captures"),
        (lambda ds: follow(ds, ["row"]), ArgumentError, "a pattern with a capture"),
    ],
)
def test_mistakes(mistake: Callable[[Ref], object], error: type[Exception], says: str) -> None:
    """Each is reported where it is made."""
    with pytest.raises(error, match=says):
        run(lambda: mistake(dataspace()))


def test_it_is_a_table() -> None:
    """With no rows, it is empty in all forms."""
    table = Table(("a",))
    assert len(table) == len(table.to_pandas()) == len(table.to_polars()) == len(table.to_arrow()) == 0


def test_a_frame_once_has_what_was_asserted_before() -> None:
    """In an actor: everything of its own that was before is in the frame, nothing that came later; then it is over."""
    frames: list[pd.DataFrame] = []

    def main() -> None:
        ds = dataspace()
        from_frame(ds, {"name": ["hall", "attic"], "value": [1.0, 2.0], "at": [COLUMNS["at"][0]] * 2}, to=Reading)
        to_frame(ds, Reading(capture(), capture(), ANY), frames.append, columns=["name", "value"])
        after(1, lambda: assert_(ds, Reading("late", 3.0, COLUMNS["at"][0])))

    run(main, clock=MockClock(autojump_threshold=0))
    (frame,) = frames
    assert sorted(frame.itertuples(index=False, name=None)) == [("attic", 2.0), ("hall", 1.0)]
    assert list(frame.columns) == ["name", "value"]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_frame_once_from_outside(kind: Kind) -> None:
    """From a thread and beside asyncio, in each library; a mistake is reported, and the system lives."""
    readings = [Reading(name, 1.5, COLUMNS["at"][0]) for name in ("hall", "attic")]
    table = Table(("name", "value", "at"))
    expected = type(table.to(kind))

    def say(ds: Ref) -> None:
        for each in readings:
            assert_(ds, each)

    with thread.System() as system:
        ds = system.call(dataspace)
        system.call(say, ds)
        frame = system.to_frame(ds, Reading, kind=kind)
        assert isinstance(frame, expected)
        names: Any = frame.column_names if isinstance(frame, pa.Table) else frame.columns
        assert tuple(names) == table.columns
        assert len(frame) == 2
        with pytest.raises(ArgumentError, match="pandas, polars, arrow, not of 'excel'"):
            system.to_frame(ds, Reading, kind="excel")  # type: ignore[call-overload]
        with pytest.raises(ArgumentError, match="a pattern with a capture"):
            system.to_frame(ds, "hall")
        assert len(system.to_frame(ds, Reading)) == 2

    async def main() -> int:
        async with syndicate.asyncio.open_system() as system:
            ds = await system.call(dataspace)
            await system.call(say, ds)
            return len(await system.to_frame(ds, Reading, kind=kind))

    assert asyncio.run(main()) == 2
