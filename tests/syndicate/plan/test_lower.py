"""The circuits that programs become: how many nodes of which kind, and what is shared."""

from __future__ import annotations

from collections import Counter

import pytest

from syndicate.errors import EndlessLoop, StepFailed
from syndicate.flow import Circuit, ZSet
from syndicate.plan import (
    Agg,
    AntiJoin,
    Arith,
    Call,
    Compare,
    Const,
    Difference,
    Expression,
    Fixpoint,
    FlatMap,
    GroupBy,
    Holds,
    Literal,
    Map,
    NaturalJoin,
    Program,
    Projection,
    Relation,
    Rename,
    Selection,
    SemiJoin,
    Union,
    aggregates,
)

R = Relation("r", ("a", "b"))
S = Relation("s", ("b", "c"))
K = Relation("k", ("a", "b", "c"))


def program_of(*bodies: Expression) -> Program:
    """Rules over three relations; `k` has the key `a`."""
    program = Program()
    program.edb("r", "a", "b")
    program.edb("s", "b", "c")
    program.edb("k", "a", "b", "c", key=["a"])
    for n, body in enumerate(bodies):
        program.rule(f"out{n}", body, origin=f"line {n + 1}")
    return program


def ops(circuit: Circuit) -> Counter[str]:
    """How many nodes of each kind, those of loops included."""
    return Counter(node.op for node in circuit.walk())


@pytest.mark.parametrize(
    ("body", "distincts"),
    [
        (R, 0),
        (Rename(R, {"a": "x"}), 0),
        (Selection(R, Compare("a", "<", 3)), 0),
        (Projection(R, ("b", "a")), 0),
        (Projection(R, ("a",)), 1),
        (Projection(Projection(R, ("a",)), ()), 1),
        (Projection(R, ("a", "b", ("n", Arith("+", "a", 1)))), 0),
        (Projection(R, ("a", ("n", Arith("+", "a", 1)))), 1),
        (Projection(K, ("c", "a")), 0),
        (Projection(K, ("b", "c")), 1),
        (Union(R, R), 1),
        (NaturalJoin(R, S), 0),
        (Projection(NaturalJoin(R, S), ("a", "c")), 1),
        (Projection(NaturalJoin(K, Rename(R, {"b": "d"})), ("a", "d")), 0),
        (Projection(NaturalJoin(R, Rename(K, {"a": "b", "b": "d"})), ("a", "b", "d")), 0),
        (Projection(NaturalJoin(S, Rename(K, {"c": "x"})), ("c", "a")), 0),
        (SemiJoin(K, Projection(R, ("a", "b"))), 0),
        (SemiJoin(R, S), 1),
        (NaturalJoin(R, Projection(S, ("b",))), 1),
        (NaturalJoin(R, Projection(K, ("a",))), 0),
        (Difference(R, Rename(S, {"b": "a", "c": "b"})), 1),
        (GroupBy(R, ("a",), {"n": aggregates.count}), 0),
        (GroupBy(Projection(K, ("b",)), (), {"n": aggregates.count}), 1),
        (GroupBy(Union(R, R), (), {"n": aggregates.count}), 1),
        (GroupBy(Union(R, R), (), {"n": Agg(aggregates.min, "a")}), 0),
        (GroupBy(Projection(K, ("a", "c")), ("c",), {"n": aggregates.count}), 0),
        (Projection(GroupBy(K, ("b", "c"), {"n": aggregates.count}), ("c", "b")), 0),
        (Literal(("a",), [(1,), (1,)]), 0),
        (Map(R, ("a",), lambda row: row[:1]), 1),
        (Fixpoint("f", ("a", "b"), Union(R, Relation("f", ("a", "b")))), 1),
    ],
)
def test_distinct_only_where_duplicates_can_arise(body: Expression, distincts: int) -> None:
    """The number of distinct nodes; an antijoin has one of its own for the keys."""
    assert ops(program_of(body).circuit())["distinct"] == distincts


def test_a_key_that_is_found_on_the_other_side_of_a_join() -> None:
    """Two rows of the left with one key value each agree on what is kept of them: they are one row, of weight 1."""
    program = Program()
    left = program.edb("left", "x", "b", key=["b"])
    right = program.edb("right", "b", "c")
    program.rule("out", Projection(NaturalJoin(left, right), ("x", "c")))
    plan = program.plan()
    facts = {"left": [(1, 10), (1, 20)], "right": [(10, 5), (20, 5)]}
    assert plan.step(facts)["out"] == ZSet({(1, 5): 1})
    assert plan.step({"left": {(1, 10): -1}})["out"] == ZSet()


def test_a_key_of_which_a_part_is_joined_on() -> None:
    """The right side's key determines the joined row; its part that is joined on is found on the left."""
    program = Program()
    left = program.edb("left", "x", "b1", "b2", key=["b1"])
    right = program.edb("right", "b1", "b2", "y", key=["b2", "y"])
    joined = NaturalJoin(left, right)
    program.rule("whole", Projection(joined, ("x", "b2", "y")))
    assert ops(program.circuit())["distinct"] == 0
    program.rule("part", Projection(joined, ("x", "y")))
    assert ops(program.circuit())["distinct"] == 1
    facts = {"left": [(1, 10, 20), (1, 11, 21)], "right": [(10, 20, 5), (11, 21, 5)]}
    out = program.plan().step(facts)
    assert (out["whole"], out["part"]) == (ZSet({(1, 20, 5): 1, (1, 21, 5): 1}), ZSet({(1, 5): 1}))


def test_one_distinct_and_one_feedback_for_each_loop_variable() -> None:
    """A recursion over two relations."""
    program = Program()
    edge = program.edb("edge", "a", "b")
    even, odd = program.idb("even", "a", "b"), program.idb("odd", "a", "b")
    further = Rename(edge, {"a": "b", "b": "c"})
    program.rule(odd, edge)
    for head, body in ((even, odd), (odd, even)):
        program.rule(head, Rename(Projection(NaturalJoin(body, further), ("a", "c")), {"c": "b"}))
    circuit = program.circuit()
    assert ops(circuit)["distinct"] == ops(circuit)["z1"] == 2
    # The body makes the pair of ends in the join: nothing else is mapped.
    assert ops(circuit)["map"] == 0


def test_equal_expressions_are_lowered_once() -> None:
    """The same join in two rules is one join; two joins on one key share the index."""
    join = NaturalJoin(R, S)
    circuit = program_of(Projection(join, ("a",)), Selection(NaturalJoin(R, S), Compare("c", "==", 1)), join).circuit()
    assert ops(circuit)["join"] == 2  # once as it is, once with the selection below
    other = NaturalJoin(S, Rename(K, {"a": "x", "c": "y"}))
    circuit = program_of(join, other).circuit()
    assert ops(circuit)["join"] == 2
    assert ops(circuit)["index_with"] == 3


def test_a_join_that_only_filters_is_a_semijoin() -> None:
    """Where one side gives no column but those of the other, it is asked for its keys, whichever side it is."""
    for body in (NaturalJoin(K, S), NaturalJoin(S, K), Projection(NaturalJoin(R, S), ("a", "b"))):
        program = program_of(body)
        joins = [node for node in program.circuit().nodes if node.op == "join"]
        (sides,) = [
            [program_.params["value"] is not None for program_ in (node.circuit.nodes[p.node] for p in node.inputs)]
            for node in joins
        ]
        assert sides == [False, True]  # the first whole, of the second nothing but the keys


def test_what_does_not_depend_on_a_loop_is_lowered_outside() -> None:
    """A join of given relations within a recursive rule, and a loop within a loop that does not depend on it."""
    program = program_of()
    path = program.idb("path", "a", "c")
    x = Relation("x", ("a", "c"))
    inner = Fixpoint("x", ("a", "c"), Union(Projection(NaturalJoin(R, S), ("a", "c")), x))
    program.rule(path, Projection(NaturalJoin(R, S), ("a", "c")))
    program.rule(path, Projection(NaturalJoin(Rename(path, {"c": "m"}), Rename(inner, {"a": "m"})), ("a", "c")))
    circuit = program.circuit()
    loops = [node for node in circuit.nodes if node.child is not None]
    assert len(loops) == 2
    assert [node.op for node in circuit.nodes].count("join") == 1
    assert [sum(node.op == "join" for node in loop.child.nodes) for loop in loops if loop.child] == [0, 1]
    plan = program.plan()
    assert dict(plan.step({"r": [(1, 2), (3, 4)], "s": [(2, 3), (4, 1)]})["path"].items()) == {
        (1, 3): 1,
        (3, 1): 1,
        (1, 1): 1,
        (3, 3): 1,
    }


def test_only_what_outputs_need() -> None:
    """Relations that no output depends on are not lowered; attributes that nobody reads are not computed."""
    program = program_of(Projection(R, ("a", ("n", Call(lambda b: 1 // 0, "b")))), NaturalJoin(R, S))
    program.rule("small", Projection(Relation("out0", ("a", "n")), ("a",)))
    program.output("small")
    assert ops(program.circuit())["join"] == 0
    program = program_of(Projection(Projection(R, ("a", ("n", Call(lambda b: 1 // 0, "b")))), ("a",)))
    assert program.plan().step({"r": [(1, 2)]})["out0"] == ZSet({(1,): 1})


def test_selections_move_below_joins() -> None:
    """A condition on one side is asked there; what may raise is asked of joined rows only."""
    join = NaturalJoin(R, S)
    circuit = program_of(Selection(join, Compare("a", "==", 1), Compare("b", "<", 5))).circuit()
    filters = [node for node in circuit.nodes if node.op == "filter"]
    assert [circuit.nodes[node.inputs[0].node].op for node in filters] == ["source", "source"]
    program = program_of(Selection(join, Holds(lambda a, c: a // c, "a", "c"), Compare("c", "!=", 0)))
    plan = program.plan()
    assert plan.step({"r": [(4, 1), (4, 2)], "s": [(1, 0), (2, 2), (3, 0)]})["out0"] == ZSet({(4, 2, 2): 1})
    raising = program_of(Selection(join, Compare(Arith("//", "a", 0), "==", 1))).plan()
    assert raising.step({"r": [(4, 1)], "s": [(2, 2)]})["out0"] == ZSet()


def test_functions_that_raise_name_the_rule() -> None:
    """The step fails, the rule and the row are named, and the plan goes on from where it was."""
    plan = program_of(Selection(R, Compare(Arith("/", "a", 0), ">", 1))).plan()
    with pytest.raises(StepFailed, match=r"line 1.*ZeroDivisionError"):
        plan.step({"r": [(4, 1)]})
    assert plan.step({"s": [(4, 1)]})["out0"] == ZSet()
    for wrong in (Map(R, ("x", "y"), lambda row: row[0]), FlatMap(R, ("x", "y"), lambda row: [row[:1]])):
        with pytest.raises(StepFailed, match=r"gave .*, not a tuple of 2: x, y"):
            program_of(wrong).plan().step({"r": [(4, 1)]})


def test_a_rule_that_makes_new_values_for_ever() -> None:
    """The loop is bounded, and the error names the relation."""
    program = Program()
    n = program.edb("n", "x")
    program.rule(n, Projection(n, [("x", Arith("+", "x", 1))]))
    program.output(n)
    with pytest.raises(EndlessLoop, match="n"):
        program.plan(limit=50).step({"n": [(0,)]})


def test_constants_in_columns_cost_nothing() -> None:
    """A constant column is joined on and put out without a node of its own before."""
    tagged = Projection(R, ("a", ("c", Const("x"))))
    circuit = program_of(NaturalJoin(tagged, Projection(K, ("a", "c")))).circuit()
    assert ops(circuit)["map"] == 1  # the output's row


def test_without_shared_attributes_a_semijoin_asks_whether_there_is_any() -> None:
    """Propositions: relations without attributes."""
    program = program_of()
    on = program.edb("on")
    program.rule("lit", SemiJoin(R, on))
    program.rule("dark", AntiJoin(R, on))
    plan = program.plan()
    out = plan.step({"r": [(1, 2)]})
    assert (out["lit"], out["dark"]) == (ZSet(), ZSet({(1, 2): 1}))
    out = plan.step({"on": [()]})
    assert (out["lit"], out["dark"]) == (ZSet({(1, 2): 1}), ZSet({(1, 2): -1}))
