"""Plans: facts in, changes out."""

from __future__ import annotations

from typing import Any

import pytest

from syndicate import record
from syndicate.errors import FactError, PlanError, SnapshotError, UnhashableElement
from syndicate.flow import ZSet
from syndicate.plan import (
    AntiJoin,
    Compare,
    Expression,
    GroupBy,
    Literal,
    NaturalJoin,
    Program,
    Projection,
    Relation,
    Rename,
    Selection,
    Union,
    aggregates,
    evaluate,
)


@record
class Likes:
    """A record class whose fields are attributes."""

    name: str
    food: str


def test_records_are_facts() -> None:
    """A relation declared by a record class takes its records, and tuples."""
    program = Program()
    likes = program.edb("likes", Likes)
    assert likes.heading == ("name", "food")
    program.rule("food", Projection(likes, ("food",)))
    plan = program.plan()
    assert plan.step({"likes": [Likes("ann", "ramen"), ("bob", "tofu")]})["food"] == ZSet({("ramen",): 1, ("tofu",): 1})
    assert plan.step({"likes": {Likes("ann", "ramen"): -1}})["food"] == ZSet({("ramen",): -1})
    with pytest.raises(PlanError, match="str is no record class"):
        program.edb("other", str)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"like": []}, r"'like' is not known \(did you mean 'likes'\?\); given are 'likes'"),
        ({"food": []}, "'food' is derived by rules, not given"),
        ({"likes": [("ann",)]}, r"\('ann',\) is no fact of likes: a tuple of 2 is needed.*name, food"),
        ({"likes": ZSet({"ann": 1})}, "'ann' is no fact of likes"),
        ({"likes": "ann"}, "likes takes facts"),
        ({"likes": 3}, "likes takes facts"),
    ],
)
def test_facts_that_do_not_fit(facts: Any, says: str) -> None:
    """The relation, the fact and what is needed are named; nothing has happened."""
    program = Program()
    program.rule("food", Projection(program.edb("likes", "name", "food"), ("food",)))
    plan = program.plan()
    with pytest.raises(FactError, match=says):
        plan.step(facts)
    assert plan.step({"likes": [("ann", "ramen")]})["food"] == ZSet({("ramen",): 1})


def test_given_and_derived() -> None:
    """A relation with rules that is also given is the union of both."""
    program = Program()
    p, q = program.edb("p", "x"), program.edb("q", "x")
    program.rule(p, Selection(q, Compare("x", "<", 5)))
    plan = program.plan()
    assert plan.step({"p": [(1,), (2,)], "q": [(2,), (7,)]})["p"] == ZSet({(1,): 1, (2,): 1})
    assert plan.step({"p": {(2,): -1}})["p"] == ZSet()
    assert plan.step({"q": {(2,): -1}})["p"] == ZSet({(2,): -1})


def test_facts_of_the_program() -> None:
    """Literal rows are there from the first step on, also if that step failed at first, and only once."""
    program = Program()
    n = program.edb("n", "x")
    program.rule("out", Literal(("x",), [(1,), (True,), (1,)]))
    program.rule("out", Selection(n, Compare("x", "!=", 0)))
    program.rule("none", AntiJoin(Literal(("x",), [(3,)]), Relation("out", ("x",))))
    program.idb("empty", "x")
    program.output("out", "none", "empty")
    plan = program.plan()
    with pytest.raises(FactError):
        plan.step({"n": [3]})
    out = plan.step()
    assert out["out"] == ZSet([((1,), 1), ((True,), 1)])
    assert out["none"] == ZSet({(3,): 1})
    assert out["empty"] == ZSet()
    out = plan.step({"n": [(1,), (3,)]})
    assert (out["out"], out["none"]) == (ZSet({(3,): 1}), ZSet({(3,): -1}))
    assert evaluate(program)["out"] == {(1,)}  # Python's sets: True is 1


def test_a_bag_as_input() -> None:
    """With bag=True a row given twice is there until it is taken away twice; else changes are those of a set."""
    program = Program()
    program.rule("out", program.edb("n", "x", bag=True))
    plan = program.plan()
    assert plan.step({"n": {(1,): 2}})["out"] == ZSet({(1,): 1})
    assert plan.step({"n": {(1,): -1}})["out"] == ZSet()
    assert plan.step({"n": {(1,): -1}})["out"] == ZSet({(1,): -1})


def test_bags_throughout() -> None:
    """In a plan of bags weights say in how many ways a row is derived."""
    program = Program()
    r, s = program.edb("r", "a", "b"), program.edb("s", "b", "c")
    program.rule("ends", Projection(NaturalJoin(r, s), ("a", "c")))
    program.rule("starts", Projection(NaturalJoin(r, s), ("a",)))
    program.rule("both", Union(Projection(r, ("b",)), Projection(s, ("b",))))
    program.rule("count", GroupBy(Projection(r, ("a",)), ("a",), {"n": aggregates.count}))
    program.rule("without", AntiJoin(Projection(r, ("a",)), Rename(Projection(s, ("b",)), {"b": "a"})))
    plan = program.plan(bag=True)
    out = plan.step({"r": [(1, 2), (1, 3)], "s": [(2, 4), (3, 4), (3, 5)]})
    assert out["ends"] == ZSet({(1, 4): 2, (1, 5): 1})
    assert out["starts"] == ZSet({(1,): 3})
    assert out["both"] == ZSet({(2,): 2, (3,): 3})
    assert out["count"] == ZSet({(1, 2): 1})
    assert out["without"] == ZSet({(1,): 2})
    assert plan.step({"s": [(1, 9)]})["without"] == ZSet({(1,): -2})
    assert program.plan().step({"r": [(1, 2), (1, 3)]})["count"] == ZSet({(1, 1): 1})


def test_a_program_compiles_more_than_once() -> None:
    """Each plan has a circuit of its own."""
    program = Program()
    program.rule("out", program.edb("n", "x"))
    first, second = program.plan(), program.plan()
    assert first.step({"n": [(1,)]})["out"] == second.step({"n": [(1,)]})["out"] == ZSet({(1,): 1})
    assert program.circuit().sinks.keys() == {"out"}


def test_large_rules() -> None:
    """A rule of 300 atoms compiles; one nested without end is refused where anything can be moved in it."""
    program = Program()
    edge = program.edb("edge", "a", "b")
    atoms = [Rename(edge, {"a": f"x{n}", "b": f"x{n + 1}"}) for n in range(300)]
    program.rule("far", Projection(NaturalJoin(*reversed(atoms)), ("x0", "x300")))
    assert program.plan().step({"edge": [(n, n + 1) for n in range(300)]})["far"] == ZSet({(0, 300): 1})
    nested: Expression = edge
    for _ in range(3000):
        nested = Rename(nested, {"a": "b", "b": "a"})
    program.rule("nested", nested)
    assert program.plan().step({"edge": [(1, 2)]})["nested"] == ZSet({(1, 2): 1})
    program.rule("selected", Selection(nested, Compare("a", "<", 2)))
    with pytest.raises(PlanError, match="nested too deeply"):
        program.plan()


def test_evaluate_tells_facts_apart_as_a_plan_does() -> None:
    """Facts that are alike to Python count each, a fact that is given twice counts once, and none may be mutable."""
    program = Program()
    relation = program.edb("given", "a", "b")
    program.rule("counted", GroupBy(relation, ("b",), {"n": aggregates.count}))
    for facts in ([(1, "x"), (True, "x"), (1, "x")], {(1, "x"): 2, (2, "x"): 1}):
        assert evaluate(program, {"given": facts})["counted"] == {("x", 2)}
    with pytest.raises(UnhashableElement, match="write a tuple"):
        evaluate(program, {"given": [([], "x")]})


def test_snapshots() -> None:
    """A plan's circuit goes on from a snapshot in a plan made again; another program's snapshot is refused."""

    def program(limit: int) -> Program:
        compiled = Program()
        path, edge = compiled.idb("path", "a", "b"), compiled.edb("edge", "a", "b")
        compiled.rule(path, Union(edge, Literal(("a", "b"), [(0, 1)])))
        further = NaturalJoin(Rename(path, {"b": "m"}), Rename(edge, {"a": "m"}))
        compiled.rule(path, Selection(further, Compare("b", "<", limit)))
        return compiled

    first = program(9).plan()
    first.step({"edge": [(1, 2), (2, 3)]})
    again = program(9).plan()
    again.circuit.restore(first.circuit.snapshot())
    change = {"edge": {(1, 2): -1, (1, 3): 1, (3, 4): 1}}
    assert first.step(change)["path"] == again.step(change)["path"]
    with pytest.raises(SnapshotError):
        program(8).plan().circuit.restore(first.circuit.snapshot())
