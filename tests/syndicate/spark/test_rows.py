from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from syndicate import record
from syndicate.errors import SourceError
from syndicate.spark.columns import NULL
from syndicate.spark.rows import TableRows
from syndicate.values.value import thaw


@record
class Pair:
    left: Any
    right: Any


@record("at")
class At:
    when: int


def test_by_name() -> None:
    """Fields take their columns by name, whatever the order; columns that are ignored by name do not count."""
    table = pa.table({"more": [0, 0], "right": [1, None], "left": ["a", "b"]})
    (step,) = TableRows(Pair, ignore=["more"]).steps(table)
    assert [(thaw(form), weight) for form, weight in step.changes] == [(Pair("a", 1), 1), (Pair("b", NULL), 1)]
    assert step.keys is None
    assert TableRows(Pair, ignore=["more"]).steps(table[:0]) == []


def test_steps_keys_weights_and_clock() -> None:
    """Rows come in the order of the sequence column, equal ones in one step; each step has its keys and its clock."""
    table = pa.table(
        {"left": ["b", "a", "c"], "right": [1, 1, 1], "when": [20, 10, 10], "change": ["delete", "insert", "insert"]}
    )
    first, second = TableRows(Pair, key=["left"], weight="change", sequence="when", clock=At).steps(table)
    assert sorted(thaw(form).left for form, _ in first.changes) == ["a", "c"]
    assert sorted(first.keys or ()) == [("a",), ("c",)]
    assert [weight for _, weight in first.changes] == [1, 1]
    assert [(thaw(form), weight) for form, weight in second.changes] == [(Pair("b", 1), -1)]
    assert (thaw(first.clock), thaw(second.clock)) == (At(10), At(20))


PAIR = {"left": [1], "right": [1]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"left": [1]}, "no column 'right', which is a field of Pair; their columns are left: select or rename"),
        (PAIR, "no column 'when', which sequence= names"),
        (PAIR | {"when": [1], "w": [1], "b": [1]}, r"a column that no field of Pair takes: b; .* ignore=\['b'\]"),
        (PAIR | {"when": [1], "w": [1], "b": [1], "c": [1]}, "rows have columns that no field of Pair takes: b, c"),
        (PAIR | {"when": pa.nulls(1), "w": [1]}, "'when' orders the rows of Pair, but is null in some"),
        (
            PAIR | {"when": [float("nan")], "w": [1]},
            "'when' orders the rows of Pair, but is null in some of them, or N",
        ),
        (PAIR | {"when": [1]}, "no column 'w', which weight= names"),
        (PAIR | {"when": [1], "w": pa.nulls(1, pa.int8())}, "'w' holds the weights of Pair, but is null in some"),
        (PAIR | {"when": [1], "w": ["upsert"]}, "'w' holds 'upsert', which is no weight"),
        (PAIR | {"when": [1], "w": [0.5]}, "'w' holds 0.5, which is no weight"),
    ],
)
def test_what_does_not_fit(columns: dict[str, Any], message: str) -> None:
    """What a table lacks is named, with what it has and what to do."""
    sequence = "when" if "when" in columns or "right" in columns else None
    weight = "w" if "when" in columns else None
    with pytest.raises(SourceError, match=message):
        TableRows(Pair, sequence=sequence, weight=weight).steps(pa.table(columns))


def test_a_column_twice() -> None:
    """A join may leave two columns of one name; which one is meant is not guessed."""
    with pytest.raises(SourceError, match="2 columns 'left', which is a field of Pair"):
        TableRows(Pair).check(["left", "right", "left"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"to": dict}, "to= takes a class decorated with @record, not <class 'dict'>"),
        ({"to": Pair(1, 2)}, "to= takes a class decorated with @record, not Pair"),
        ({"to": Pair, "clock": int, "sequence": "x"}, "clock= takes a class decorated with @record"),
        ({"to": Pair, "clock": At}, "clock= shows the step that sequence= counts"),
        ({"to": Pair, "ignore": "left"}, r"ignore= takes a list of column names: ignore=\['left'\]"),
        ({"to": Pair, "key": "left"}, r"key= takes a list of column names: key=\['left'\]"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    """A mistake in the call is reported at the call."""
    with pytest.raises(SourceError, match=message):
        TableRows(**parameters)


def test_the_shape() -> None:
    """The types of the columns that become values are known before any row is; weights and order are not among them."""
    schema = pa.schema({"left": pa.string(), "right": pa.list_(pa.int64()), "w": pa.int8(), "at": pa.int64()})
    rows = TableRows(Pair, key=["left"], weight="w", sequence="at")
    assert rows.shape(schema) == {"left": "string", "right": "list<item: int64>"}


@pytest.mark.parametrize(
    ("kind", "weight", "message"),
    [
        (pa.month_day_nano_interval(), pa.int8(), "the column 'right' is of type month_day_nano_interval, which has"),
        (pa.int8(), pa.float64(), "the column 'w' holds the weights of Pair, but is of type double"),
    ],
)
def test_a_shape_that_does_not_fit(kind: pa.DataType, weight: pa.DataType, message: str) -> None:
    """A type without a value is reported by the schema alone."""
    schema = pa.schema({"left": pa.string(), "right": kind, "w": weight})
    with pytest.raises(SourceError, match=message):
        TableRows(Pair, weight="w").shape(schema)


def test_counts() -> None:
    """How often a row is meant multiplies its weight."""
    table = pa.table({"left": ["a", "b"], "right": [1, 1], "w": [1, 3]})
    (step,) = TableRows(Pair, weight="w").steps(table, [-2, 1])
    assert [(thaw(form), weight) for form, weight in step.changes] == [(Pair("a", 1), -2), (Pair("b", 1), 3)]
