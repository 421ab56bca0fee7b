"""The examples of PomoRA and PomoLogic, corrected as ``docs/design/plan.md`` says."""

from __future__ import annotations

from typing import Any

from syndicate.plan import (
    Agg,
    AntiJoin,
    Arith,
    Attr,
    Compare,
    Const,
    Difference,
    EquiJoin,
    Expression,
    GroupBy,
    NaturalJoin,
    Product,
    Program,
    Projection,
    Relation,
    Rename,
    Selection,
    SemiJoin,
    ThetaJoin,
    Union,
    aggregates,
    evaluate,
)

FRAMEWORKS = Relation("frameworks", ("name", "language"))
LANGUAGES = Relation("languages", ("language", "year"))
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "frameworks": [("Rails", "Ruby"), ("Phoenix", "Elixir"), ("Yesod", "Haskell"), ("Sinatra", "Ruby")],
    "languages": [("Ruby", 1995), ("Elixir", 2012), ("Haskell", 1990), ("C", 1972)],
}


def rows(expression: Expression) -> frozenset[tuple[object, ...]]:
    """The rows of an expression over the two relations."""
    program = Program()
    program.edb("frameworks", "name", "language")
    program.edb("languages", "language", "year")
    program.rule("out", expression)
    return evaluate(program, FACTS)["out"]


def test_selection_projection_rename() -> None:
    """Rows by a condition, columns by name, other names."""
    old = Selection(LANGUAGES, Compare("year", "<", 1995))
    assert rows(old) == {("Haskell", 1990), ("C", 1972)}
    assert rows(Projection(FRAMEWORKS, ("language",))) == {("Ruby",), ("Elixir",), ("Haskell",)}
    assert Rename(LANGUAGES, {"language": "name"}).heading == ("name", "year")


def test_natural_join() -> None:
    """Yesod is of Haskell and 1990, where PomoRA prints Ruby and 1990."""
    assert rows(NaturalJoin(FRAMEWORKS, LANGUAGES)) == {
        ("Rails", "Ruby", 1995),
        ("Sinatra", "Ruby", 1995),
        ("Phoenix", "Elixir", 2012),
        ("Yesod", "Haskell", 1990),
    }


def test_theta_join_and_equijoin_take_two_operands() -> None:
    """PomoRA's examples leave the first one out; both columns are kept."""
    languages = Rename(LANGUAGES, {"language": "of"})
    joined = rows(EquiJoin(FRAMEWORKS, languages, {"language": "of"}))
    assert ("Yesod", "Haskell", "Haskell", 1990) in joined
    assert len(joined) == 4
    assert joined == rows(ThetaJoin(FRAMEWORKS, languages, Compare("language", "==", Attr("of"))))
    other = ThetaJoin(FRAMEWORKS, languages, Compare("of", "!=", Attr("language")), Compare("year", "<", 1980))
    assert rows(Projection(other, ("name", "of"))) == {(name, "C") for name, _ in FACTS["frameworks"]}


def test_semijoin_antijoin_difference_union_product() -> None:
    """Difference takes two operands, though PomoRA lists one."""
    ruby = Selection(FRAMEWORKS, Compare("language", "==", "Ruby"))
    assert rows(SemiJoin(LANGUAGES, FRAMEWORKS)) == {("Ruby", 1995), ("Elixir", 2012), ("Haskell", 1990)}
    assert rows(AntiJoin(LANGUAGES, FRAMEWORKS)) == {("C", 1972)}
    assert rows(Difference(FRAMEWORKS, ruby)) == {("Phoenix", "Elixir"), ("Yesod", "Haskell")}
    assert rows(Union(ruby, Difference(FRAMEWORKS, ruby))) == frozenset(FACTS["frameworks"])
    assert len(rows(Product(FRAMEWORKS, Rename(LANGUAGES, {"language": "of"})))) == 16


def test_group_by() -> None:
    """All aggregates of PomoRA; a group without rows has no row."""
    assert rows(GroupBy(FRAMEWORKS, ("language",), {"n": aggregates.count})) == {
        ("Ruby", 2),
        ("Elixir", 1),
        ("Haskell", 1),
    }
    year = {
        "first": Agg(aggregates.min, "year"),
        "last": Agg(aggregates.max, "year"),
        "total": Agg(aggregates.sum, "year"),
        "n": aggregates.count,
    }
    assert rows(GroupBy(LANGUAGES, (), year)) == {(1972, 2012, 1995 + 2012 + 1990 + 1972, 4)}
    assert rows(GroupBy(Selection(LANGUAGES, Compare("year", "<", 0)), (), {"n": aggregates.count})) == frozenset()


def test_meal_suggestion() -> None:
    """One likes it, neither dislikes it: the rule with its variables in upper case, and both dislikes negated."""
    program = Program()
    person = program.edb("person", "name")
    likes = program.edb("likes", "name", "food")
    dislikes = program.edb("dislikes", "name", "food")
    pair = NaturalJoin(
        Rename(person, {"name": "person1"}),
        Rename(person, {"name": "person2"}),
        Rename(likes, {"name": "person1", "food": "meal"}),
    )
    pair_apart = Selection(pair, Compare("person1", "!=", Attr("person2")))
    neither = AntiJoin(
        AntiJoin(pair_apart, Rename(dislikes, {"name": "person1", "food": "meal"})),
        Rename(dislikes, {"name": "person2", "food": "meal"}),
    )
    program.rule(program.idb("suggestedMeal", "person1", "person2", "meal"), neither)
    plan = program.plan()
    first = plan.step(
        {
            "person": [("Quinn",), ("Brooke",)],
            "likes": [("Quinn", "Ramen"), ("Brooke", "Vegan"), ("Brooke", "Schnitzel")],
            "dislikes": [("Quinn", "Vegan"), ("Brooke", "Mushrooms")],
        }
    )
    assert dict(first["suggestedMeal"].items()) == {
        ("Quinn", "Brooke", "Ramen"): 1,
        ("Brooke", "Quinn", "Schnitzel"): 1,
    }
    later = plan.step({"dislikes": {("Quinn", "Vegan"): -1, ("Quinn", "Ramen"): 1}})
    assert dict(later["suggestedMeal"].items()) == {
        ("Brooke", "Quinn", "Vegan"): 1,
        ("Quinn", "Brooke", "Ramen"): -1,
    }


def test_aggregation_in_a_rule() -> None:
    """PomoLogic's popularProfile: the aggregate over the scoped atom, joined with the body, then the constraint."""
    program = Program()
    profile = program.edb("profile", "id")
    follower = program.edb("follower", "who", "follows")
    counted = Rename(GroupBy(follower, ("follows",), {"c": aggregates.count}), {"follows": "id"})
    popular = Selection(NaturalJoin(profile, counted), Compare("c", ">=", 3))
    program.rule("popularProfile", Projection(popular, ("id",)))
    plan = program.plan()
    facts: dict[str, list[tuple[Any, ...]]] = {
        "profile": [("x",), ("y",)],
        "follower": [(n, "x") for n in range(2)] + [(n, "y") for n in range(3)],
    }
    assert dict(plan.step(facts)["popularProfile"].items()) == {("y",): 1}
    out = plan.step({"follower": {(2, "x"): 1, (0, "y"): -1}})["popularProfile"]
    assert dict(out.items()) == {("x",): 1, ("y",): -1}


def test_one_variable_twice_and_constants_in_a_head() -> None:
    """An equality selection before the projection; constants of the head are columns."""
    program = Program()
    edge = program.edb("edge", "a", "b")
    loop = Selection(edge, Compare("a", "==", Attr("b")))
    columns = ("a", ("kind", Const("loop")), ("next", Arith("+", "a", 1)))
    program.rule("tagged", Projection(loop, columns))
    assert evaluate(program, {"edge": [(1, 1), (1, 2), (1, True)]}) == {"tagged": frozenset({(1, "loop", 2)})}
