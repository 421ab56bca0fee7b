"""Expressions: what is refused, and how they are compared and shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syndicate.errors import PlanError
from syndicate.flow.comparison import COMPARING
from syndicate.plan import (
    Agg,
    AllOf,
    AntiJoin,
    AnyOf,
    Arith,
    Attr,
    Call,
    Compare,
    Condition,
    Const,
    Difference,
    EquiJoin,
    Expression,
    Fixpoint,
    FlatMap,
    GroupBy,
    Holds,
    Literal,
    NaturalJoin,
    Not,
    Product,
    Projection,
    Relation,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
    Union,
    aggregates,
)

EDGE = Relation("edge", ("src", "dst"))
NODE = Relation("node", ("name",))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Projection(EDGE, ("scr",)), r"Projection of edge: .*'scr' \(did you mean 'src'\?\).*'src', 'dst'"),
        (lambda: Projection(EDGE, ("src", "src")), "the attribute 'src' is there twice"),
        (lambda: Projection(EDGE, [("x", Arith("+", "sr", 1))]), "no attribute 'sr'"),
        (lambda: Selection(EDGE, Compare("dts", "==", 1)), r"Selection of edge by dts == 1: .*did you mean 'dst'"),
        (lambda: Selection(EDGE, "src"), "'src' is no condition: use Compare"),  # type: ignore[arg-type]
        (lambda: Rename(EDGE, {"src": "dst"}), "'dst' is there twice: rename"),
        (lambda: Rename(EDGE, {"x": "y"}), "no attribute 'x'"),
        (lambda: Union(EDGE, NODE), "the same attributes, but one has 'src', 'dst', the other 'name'"),
        (Union, "Union of nothing"),
        (lambda: Difference(EDGE, NODE), "Difference of edge and node"),
        (lambda: Product(EDGE, EDGE), "both sides have 'src', 'dst': rename"),
        (lambda: ThetaJoin(EDGE, NODE, Compare("nam", "==", Attr("src"))), "did you mean 'name'"),
        (lambda: EquiJoin(EDGE, NODE, {"name": "src"}), "EquiJoin of edge and node: there is no attribute 'name'"),
        (lambda: SemiJoin(EDGE, "node"), "SemiJoin is made of expressions, not of 'node'"),  # type: ignore[arg-type]
        (lambda: GroupBy(EDGE, ("source",), {"n": aggregates.count}), "no attribute 'source'"),
        (lambda: GroupBy(EDGE, ("src",), {"n": Agg(aggregates.sum, "cost")}), r"n = sum\(cost\): .* 'cost'"),
        (lambda: GroupBy(EDGE, ("src",), {"n": aggregates.sum}), r"write Agg\(sum, attribute\)"),
        (lambda: GroupBy(EDGE, ("src",), {"src": aggregates.count}), "'src' is there twice"),
        (lambda: GroupBy(EDGE, ("src",), {}), "no aggregate: use Projection"),
        (lambda: Literal(("a", "b"), [(1,)]), r"the row \(1,\) does not fit"),
        (lambda: FlatMap(EDGE, ("x",), None), "needs a function of a row"),  # type: ignore[arg-type]
        (lambda: Fixpoint("p", ("x",), EDGE), "the body has the attributes 'src', 'dst', p has 'x'"),
        (lambda: Relation("edge", ("a", "a")), "'a' is there twice"),
        (lambda: Relation("edge", ("a", 3)), "an attribute's name is a string"),  # type: ignore[arg-type]
        (lambda: Relation("", ("a",)), "a relation's name"),
        (lambda: Compare("src", "=", 1), "no operator '='"),
        (lambda: Call("f", "src"), "needs a function"),  # type: ignore[arg-type]
    ],
)
def test_refused(make: Callable[[], object], says: str) -> None:
    """What makes no sense is refused when it is made, by a message that names the expression and the attribute."""
    with pytest.raises(PlanError, match=says):
        make()


def test_equality_is_of_values() -> None:
    """Equal expressions are equal and hash alike; those that differ in the type of a constant are not."""

    def by(value: object) -> Expression:
        return Selection(EDGE, Compare("src", "==", value))

    assert by(1) == by(1)
    assert hash(by(1)) == hash(by(1))
    assert len({by(1), by(True), by(1.0)}) == 3
    assert Literal(("a",), [(1,)]) != Literal(("a",), [(True,)])
    assert Selection(EDGE, Holds(bool, "src")) == Selection(EDGE, Holds(bool, "src"))
    assert Projection(EDGE, ("src",)) != Rename(EDGE, {})


def test_deep_expressions() -> None:
    """An expression ten thousand deep can be made, compared, hashed and shown."""
    a: Expression = EDGE
    b: Expression = EDGE
    for _ in range(10_000):
        a, b = Rename(a, {"src": "dst", "dst": "src"}), Rename(b, {"src": "dst", "dst": "src"})
    assert hash(a) == hash(b)
    assert a.explain().count("Rename") == 10_000


def test_explain_shows_all() -> None:
    """A line each, with what it does and its attributes."""
    conditions: list[Condition] = [
        AnyOf(Compare("src", "<", 3), Not(Holds(bool, "dst"))),
        AllOf(Compare(Arith("*", Arith("+", "src", 1), 2), "!=", Attr("dst"))),
    ]
    body = Projection(Selection(EDGE, *conditions), ["src", ("one", Const(1)), ("f", Call(abs, "dst"))])
    grouped = GroupBy(body, ("one",), {"n": aggregates.count, "top": Agg(aggregates.max, "f")})
    assert NaturalJoin(grouped, AntiJoin(EDGE, Relation("gone", ("src",)))).explain().splitlines() == [
        "NaturalJoin -> (one, n, top, src, dst)",
        "  GroupBy one; n = count(), top = max(f) -> (one, n, top)",
        "    Projection src, one = 1, f = abs(dst) -> (src, one, f)",
        "      Selection (src < 3 or not (bool(dst))) and (((src + 1) * 2) != dst) -> (src, dst)",
        "        Relation edge -> (src, dst)",
        "  AntiJoin -> (src, dst)",
        "    Relation edge -> (src, dst)",
        "    Relation gone -> (src)",
    ]


def test_comparisons_are_total() -> None:
    """Numbers by size, strings as strings, all else by the order of values: exactly one of <, same size, > holds."""
    values = [1, 1.0, True, 2.5, "a", "b", b"x", (1, "a"), None, ("a",)]
    less, more, at_most = COMPARING["<"], COMPARING[">"], COMPARING["<="]
    for a in values:
        for b in values:
            assert less(a, b) + more(a, b) <= 1
            assert at_most(a, b) != more(a, b)
            assert less(a, b) == more(b, a)
    assert at_most(1, 1.0)
    assert at_most(1.0, 1)
    assert not less(float("nan"), 1)
