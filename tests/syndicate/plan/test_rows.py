"""Generated row functions: they mean what the definitions say, whatever is written out for speed."""

from __future__ import annotations

import itertools

import pytest

from syndicate.flow.comparison import COMPARING
from syndicate.plan import AllOf, AnyOf, Arith, Attr, Call, Compare, Const, Holds, Not
from syndicate.plan.scalar import RowFunctions

VALUES = [0, 1, -1, True, 1.0, 2.5, 10**30, "1", "a", b"a", None, (1,), (True,), float("nan")]
PLACES = {"a": "r[0]", "b": "r[1]"}


@pytest.mark.parametrize("op", COMPARING)
def test_comparisons_written_out(op: str) -> None:
    """With a constant of any type on the right, and with two attributes: the same as the function of the table."""
    rows = RowFunctions()
    for value, constant in itertools.product(VALUES, VALUES):
        wanted = COMPARING[op](value, constant)
        assert rows.test([Compare("a", op, constant)], PLACES)((value, None)) is wanted, (value, constant)
        assert rows.test([Compare("a", op, Attr("b"))], PLACES)((value, constant)) is wanted
        assert rows.test([Compare(Const(value), op, constant)], PLACES)((None, None)) is wanted


def test_constants_of_another_type_make_another_function() -> None:
    """The same request gives the same function; 1, True and 1.0 are three constants."""
    rows = RowFunctions()
    instances = [rows.row((Attr("a"), Const(value)), PLACES) for value in (1, True, 1.0, 1, True, 1.0)]
    assert instances[:3] == instances[3:]
    assert len(set(map(id, instances))) == 3
    assert [type(function((0, 0))[1]) for function in instances] == [int, bool, float] * 2
    assert [getattr(function, "rearranges", False) for function in instances[:3]] == [True, False, False]


def test_functions_are_distinguished() -> None:
    """Two functions of one name are two."""
    rows = RowFunctions()
    one, other = (rows.row((Call(function, "a"),), PLACES) for function in (lambda a: a + 1, lambda a: a + 2))
    assert (one((1, 0)), other((1, 0))) == ((2,), (3,))


def test_combined_conditions_and_arithmetic() -> None:
    """And, or, not, of none and of several, in order; arithmetic with its parentheses."""
    rows = RowFunctions()

    def holds(*conditions: object, row: tuple[int, int] = (2, 3)) -> bool:
        return bool(rows.test(conditions, PLACES)(row))  # type: ignore[arg-type]

    yes, no = Compare("a", "<", Attr("b")), Compare("a", ">", Attr("b"))
    assert holds()
    assert holds(AllOf())
    assert not holds(AnyOf())
    assert holds(AnyOf(no, yes), Not(no), AllOf(yes, yes))
    assert not holds(AnyOf(no, AllOf(yes, no)))
    assert not holds(no, Holds(lambda a: 1 // 0, "a"))
    assert holds(Compare(Arith("*", Arith("-", "a", -4), Attr("b")), "==", 18))
    assert holds(Compare(Arith("-", "a", Arith("-", "b", 1)), "==", 0))


def test_keys() -> None:
    """One attribute bare, several as a tuple, all in order as the row itself, none as the empty tuple."""
    rows = RowFunctions()
    row = ("x", "y")
    assert rows.key([Attr("b")], PLACES, 2)(row) == "y"
    assert rows.key([Attr("b"), Attr("a")], PLACES, 2)(row) == ("y", "x")
    assert rows.key([Attr("a"), Attr("b")], PLACES, 2)(row) is row
    assert rows.key([], PLACES, 2)(row) == ()
