"""Lattices in plans: folds, morphisms, thresholds and recursion, beside a naive evaluator, with deletions."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from syndicate import Handle, assert_, capture, dataspace, record, spawn
from syndicate.errors import EndlessLoop, PlanError, StepFailed, Unstratifiable
from syndicate.flow import ZSet
from syndicate.hosting import host
from syndicate.lattice import Bool, Lattice, Map, Max, Min, Set, monotone, revive
from syndicate.plan import (
    Agg,
    AntiJoin,
    Arith,
    Attr,
    Call,
    Compare,
    Const,
    Expression,
    Fixpoint,
    GroupBy,
    Holds,
    NaturalJoin,
    Program,
    Projection,
    Relation,
    Rename,
    Selection,
    Union,
    aggregates,
)
from syndicate.plan import (
    Map as MapRows,
)
from syndicate.plan.rewrite import Rewriting
from syndicate.testing import Seen, settled, watch
from syndicate.values.value import Value
from tests.syndicate.flow.oracle import form
from tests.syndicate.plan import naive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NODES = 6


def changes(rng: random.Random, steps: int, weight: Callable[[random.Random], Any]) -> Iterator[dict[Any, int]]:
    """Edges that come and go; at the end all go."""
    present: list[Any] = []
    for step in range(steps):
        delta: dict[Any, int] = {}
        for _ in range(rng.randrange(6)):
            if present and rng.random() < 0.45:
                row = present.pop(rng.randrange(len(present)))
                if delta.pop(row, 0) == 0:
                    delta[row] = -1
            else:
                row = (rng.randrange(NODES), rng.randrange(NODES), weight(rng))
                if row not in present and row not in delta:
                    present.append(row)
                    delta[row] = 1
        if step == steps - 1:
            delta = {row: -1 for row in present if row not in delta} | {r: w for r, w in delta.items() if w < 0}
        yield delta


def check(program: Program, steps: Iterable[dict[Any, int]]) -> None:
    """The sum of all changes is, after each step, what the naive evaluator makes of all facts."""
    plan = program.plan()
    totals = {name: ZSet() for name in program.outputs}
    facts: dict[Any, int] = {}
    for delta in steps:
        for row, weight in delta.items():
            facts[row] = facts.get(row, 0) + weight
        out = plan.step({"edge": ZSet(delta)})
        expected = naive.program(program, {"edge": [row for row, weight in facts.items() if weight]})
        for name, rows in expected.items():
            totals[name] = totals[name] + out[name]
            assert {weight for _, weight in totals[name].items()} <= {1}
            assert {form(row) for row in totals[name]} == rows, name
    assert not any(totals.values())


def graph(lattice: type[Lattice]) -> tuple[Program, Relation, Relation]:
    """A program with edges, and a relation from pairs of nodes to a lattice."""
    program = Program()
    return program, program.edb("edge", "a", "b", "w"), program.idb("best", "a", "b", "v", lattices={"v": lattice})


def beyond(best: Relation, edge: Relation) -> Expression:
    """A value and an edge that follows it."""
    return NaturalJoin(Rename(best, {"b": "x"}), Rename(edge, {"a": "x"}))


def shortest() -> Program:
    """The least sum of weights."""
    program, edge, best = graph(Min)
    program.rule(best, Rename(edge, {"w": "v"}))
    program.rule(best, Projection(beyond(best, edge), ["a", "b", ("v", Arith("+", "v", Attr("w")))]))
    return program


def widest() -> Program:
    """The greatest of the least weights."""
    program, edge, best = graph(Max)
    program.rule(best, Rename(edge, {"w": "v"}))
    program.rule(best, Projection(beyond(best, edge), ["a", "b", ("v", Call(Max.min_of, "v", Attr("w")))]))
    return program


def weights_on_the_way() -> Program:
    """All weights on all paths."""
    program, edge, best = graph(Set)
    program.rule(best, Rename(edge, {"w": "v"}))
    step = Projection(beyond(best, edge), ["a", "b", "v"])
    program.rule(best, step)
    program.rule(best, Projection(beyond(best, edge), ["a", "b", ("v", "w")]))
    return program


def reached() -> Program:
    """Whether there is a path with a heavy edge."""
    program, edge, best = graph(Bool)
    program.rule(best, Projection(edge, ["a", "b", ("v", Call(lambda w: w > 4, "w"))]))
    program.rule(best, Projection(beyond(best, edge), ["a", "b", "v"]))
    return program


def from_where() -> Program:
    """A map for each node: from the nodes before it to the greatest weight of a last edge."""
    program = Program()
    edge = program.edb("edge", "a", "b", "w")
    best = program.idb("best", "b", "v", lattices={"v": Map})
    program.rule(best, Projection(edge, ["b", ("v", Call(lambda a, w: Map({a: Max(w)}), "a", Attr("w")))]))
    step = NaturalJoin(Rename(best, {"b": "x"}), Rename(edge, {"a": "x"}))
    program.rule(best, Projection(step, ["b", "v"]))
    return program


def several() -> Program:
    """The least sum of weights, the greatest of the least, and where one comes from; light edges say less."""
    program = Program()
    edge = program.edb("edge", "a", "b", "w")
    lattices: dict[str, type[Lattice]] = {"v": Min, "most": Max, "all": Set}
    best = program.idb("best", "v", "a", "most", "b", "all", lattices=lattices)
    heavy = [("most", Call(lambda w: w if w > 1 else None, "w")), ("all", Call(lambda w: w if w > 2 else None, "w"))]
    program.rule(best, Projection(edge, [("v", "w"), "a", "b", *heavy]))
    program.rule(best, Projection(edge, [("v", Const(9)), "a", "b", ("most", Const(None)), ("all", "a")]))
    sums, least = ("v", Arith("+", "v", Attr("w"))), ("most", Call(Max.min_of, "most", Attr("w")))
    program.rule(best, Projection(beyond(best, edge), ["a", "b", sums, least, ("all", "x")]))
    return program


RECURSIVE = {
    "several": several,
    "shortest": shortest,
    "widest": widest,
    "weights on the way": weights_on_the_way,
    "reached": reached,
    "from where": from_where,
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", RECURSIVE.values(), ids=list(RECURSIVE))
def test_recursion_over_a_lattice_is_what_a_naive_evaluator_gives(make: Callable[[], Program], seed: int) -> None:
    """Cycles, weights of 0, insertions and deletions."""
    check(make(), changes(random.Random(seed), 14, lambda rng: rng.randrange(7)))


@pytest.mark.parametrize("seed", range(4))
def test_what_reads_a_recursive_lattice(seed: int) -> None:
    """Thresholds in the loop itself, methods of the value, folds of it, and what must wait for the last value."""
    program = shortest()
    best, edge = program["best"], program["edge"]
    near = program.idb("near", "a", "b")
    program.rule(near, Projection(Selection(best, Holds(Min.lt, "v", Const(6))), ["a", "b"]))
    hops = NaturalJoin(Rename(near, {"b": "x"}), Rename(near, {"a": "x"}))
    program.rule(best, Projection(hops, ["a", "b", ("v", Const(5))]))  # the threshold feeds what it reads
    program.rule("spread", GroupBy(best, ("a",), {"least": Agg(Min, "v"), "all": Agg(Set, "b")}))
    program.rule("size", Projection(Relation("spread", ("a", "least", "all")), ["a", ("n", Call(Set.size, "all"))]))
    program.rule("exact", Projection(Selection(best, Compare("v", "==", Const(Min(3)))), ["a", "b"]))
    program.rule("unreached", AntiJoin(Projection(edge, ["a", "b"]), Rename(near, {"a": "b", "b": "a"})))
    program.rule("count", GroupBy(best, ("a",), {"n": Agg(aggregates.count)}))
    levels = {name: stratum.level for stratum in program.strata() for name in stratum.relations}
    waiting = {"exact": 1, "unreached": 1, "count": 1, "spread": 1, "size": 1}  # spread keeps values, as they are
    assert levels == {"edge": 0, "best": 0, "near": 0, **waiting}
    check(program, changes(random.Random(seed), 12, lambda rng: rng.randrange(1, 7)))


@pytest.mark.parametrize("seed", range(6))
def test_a_given_relation_may_have_lattices(seed: int) -> None:
    """Rows of one key are one, and a deletion takes back what the row has brought."""
    program = Program()
    edge = program.edb("edge", "a", "b", "w", lattices={"b": Max, "w": Set})
    program.rule("sums", Projection(edge, ["a", ("b", Call(Max.__add__, "b", Const(1)))]))
    program.output("sums", "edge")
    check(program, changes(random.Random(seed), 12, lambda rng: rng.randrange(4)))


@pytest.mark.parametrize("seed", range(6))
def test_a_column_without_a_value_yet_keeps_the_row_back(seed: int) -> None:
    """Each column has its own values, and None is none of them."""

    def said(bit: int) -> Callable[[int], int | None]:
        return lambda w: w if w & bit else None

    columns = [(name, Call(said(bit), "w")) for name, bit in (("v", 1), ("most", 2), ("all", 4))]
    edge = Relation("edge", ("a", "b", "w"))
    folds = {"v": Agg(Min, "v"), "n": Agg(aggregates.count), "most": Agg(Max, "most"), "all": Agg(Set, "all")}
    pairs = {"pairs": Agg(Set, ("v", "most")), "both": Agg(aggregates.product(Min, aggregates.product(Max, Set)), "t")}
    nested = Call(lambda v, most, b: (v, (most, b)), "v", Attr("most"), Attr("b"))
    program = Program()
    program.edb("edge", "a", "b", "w")
    program.rule("folded", GroupBy(Projection(edge, ["a", "b", *columns]), ("a",), folds))
    program.rule("one", GroupBy(Projection(edge, ["a", "b", *columns]), ("a", "b"), {"v": Agg(Min, "v")}))
    program.rule("two", GroupBy(Projection(edge, ["a", *columns]), (), {"v": Agg(Min, "v"), "all": Agg(Set, "all")}))
    read = Projection(Projection(edge, ["a", "b", *columns]), ["a", "b", "v", "most", ("t", nested)])
    program.rule("tuples", GroupBy(read, ("a", "b"), {"v": Agg(Max, "v"), **pairs, "least": Agg(Min, "v")}))
    program.rule(
        program.idb("best", "a", "all", "v", lattices={"v": Min, "all": Set}), Projection(edge, ["a", *columns])
    )
    check(program, changes(random.Random(seed), 16, lambda rng: rng.randrange(8)))


@pytest.mark.parametrize("recursive", [False, True])
def test_several_lattices_of_one_relation_are_one_fold(recursive: bool) -> None:
    """Whatever their number, there is no fold for each, and no join of folds."""
    circuits = []
    for number in range(1, 5):
        program = Program()
        edge = program.edb("edge", "a", "b", "w")
        names = [f"v{n}" for n in range(number)]
        best = program.idb("best", "a", "b", *names, lattices=dict.fromkeys(names, Min))
        program.rule(best, Projection(edge, ["a", "b", *[(name, "w") for name in names]]))
        if recursive:
            sums = [(name, Arith("+", name, Attr("w"))) for name in names]
            program.rule(best, Projection(beyond(best, edge), ["a", "b", *sums]))
        ops = Counter(node.op for node in program.circuit().walk())
        circuits.append((ops["aggregate"], ops["join"], ops["index_with"]))
    assert circuits == [(1, 1, 3) if recursive else (1, 0, 1)] * 4


def test_what_replaced_rows_made_is_not_taken_back_where_there_are_several_lattices() -> None:
    """In a first step a row goes through the loop once, also that of a value which is replaced later."""
    rows: list[Any] = []

    def noted(value: Any, w: int) -> Any:
        rows.append(value)
        return value + w

    program = Program()
    edge = program.edb("edge", "a", "b", "w")
    best = program.idb("best", "a", "b", "v", "u", lattices={"v": Min, "u": Max})
    program.rule(best, Projection(edge, ["a", "b", ("v", "w"), ("u", "w")]))
    marked_sum = Call(monotone(noted), "v", Attr("w"))
    program.rule(best, Projection(beyond(best, edge), ["a", "b", ("v", marked_sum), ("u", Const(0))]))
    nodes, around = 12, 5
    edges = [(n, n + 1, 1) for n in range(nodes)]
    out = program.plan().step({"edge": [*edges, (0, around, 50)]})["best"]
    assert len(out) == nodes * (nodes + 1) // 2
    replaced = nodes - around
    assert len(rows) == nodes * (nodes - 1) // 2 + replaced  # each once: those that were replaced are not taken back


def growing(rng: random.Random) -> Program:
    """Rules that feed each other: greatest values of pairs, sets of nodes, and pairs without a value."""
    program = Program()
    edge = program.edb("edge", "a", "b", "w")
    most = program.idb("most", "a", "b", "v", "all", lattices={"v": Max, "all": Set})
    near = program.idb("near", "a", "s", lattices={"s": Set})
    pair = program.idb("pair", "a", "b")
    sizes = Projection(near, ["a", ("v", Call(Set.size, "s"))])
    onward = NaturalJoin(Rename(most, {"b": "x"}), Rename(pair, {"a": "x"}))
    rules: list[tuple[Relation, Expression]] = [
        (most, Projection(edge, ["a", "b", ("v", "w"), ("all", "a")])),
        (most, Projection(onward, ["a", "b", "v", ("all", "x")])),
        (most, Projection(onward, ["a", "b", ("v", Call(Max.min_of, "v", Const(4))), "all"])),
        (most, Projection(NaturalJoin(sizes, pair), ["a", "b", "v", ("all", Const(0))])),
        (most, Projection(NaturalJoin(near, pair), ["a", "b", ("v", Const(1)), ("all", "s")])),
        (near, GroupBy(pair, ("a",), {"s": Agg(Set, "b")})),
        (near, Projection(most, ["a", ("s", Call(Set.filter, "all", Const(odd)))])),
        (near, Projection(NaturalJoin(Rename(near, {"a": "b"}), pair), ["a", "s"])),
        (pair, Projection(Selection(most, Holds(Max.gt_eq, "v", Const(3))), ["a", "b"])),
        (pair, Projection(Selection(NaturalJoin(near, edge), Holds(Set.contains, "s", Const(2))), ["a", "b"])),
        (pair, Projection(Selection(edge, Compare("w", ">", 4)), ["a", "b"])),
    ]
    for head, body in [rules[0], *rng.sample(rules[1:], rng.randrange(4, len(rules)))]:
        program.rule(head, body)
    program.rule("counted", GroupBy(most, ("a",), {"n": Agg(aggregates.count), "v": Agg(aggregates.max, "b")}))
    program.output("most", "near", "pair", "counted")
    return program


@pytest.mark.parametrize("seed", range(25))
def test_rules_that_feed_each_other(seed: int) -> None:
    """Several lattices, and rows without, in one loop; each reads the others in monotone ways."""
    rng = random.Random(seed)
    program = growing(rng)
    assert {edge.head for edge in program.points_of_order()} == {"counted"}
    check(program, changes(rng, 8, lambda rng: rng.randrange(6)))


def test_none_is_no_value() -> None:
    """As in an aggregate."""
    program = Program()
    edge = program.edb("edge", "a", "w")
    program.rule(program.idb("most", "a", "w", lattices={"w": Max}), edge)
    plan = program.plan()
    assert plan.step({"edge": [("x", None), ("y", None), ("y", 3)]})["most"] == ZSet.of(("y", Max(3)))


def dijkstra(edges: Iterable[tuple[int, int, int]], start: int) -> dict[int, int]:
    """The least costs from a node, by at least one edge."""
    following: dict[int, list[tuple[int, int]]] = {}
    for a, b, w in edges:
        following.setdefault(a, []).append((b, w))
    done: dict[int, int] = {}
    queue = [(w, b) for b, w in following.get(start, ())]
    heapq.heapify(queue)
    while queue:
        cost, node = heapq.heappop(queue)
        if node not in done:
            done[node] = cost
            for b, w in following.get(node, ()):
                heapq.heappush(queue, (cost + w, b))
    return done


def test_shortest_paths_are_dijkstras_under_deletions() -> None:
    """A graph of a hundred edges with cycles, of which a few come and go in each step."""
    rng = random.Random("dijkstra")
    plan = shortest().plan()
    edges = {(rng.randrange(30), rng.randrange(30), rng.randrange(1, 20)) for _ in range(100)}
    best = plan.step({"edge": edges})["best"]
    for _ in range(25):
        gone = rng.sample(sorted(edges), rng.randrange(4))
        come = {(rng.randrange(30), rng.randrange(30), rng.randrange(1, 20)) for _ in range(rng.randrange(4))} - edges
        edges = (edges - set(gone)) | come
        best = best + plan.step({"edge": {**dict.fromkeys(gone, -1), **dict.fromkeys(come, 1)}})["best"]
        assert best == ZSet.of(*[(a, b, Min(c)) for a in range(30) for b, c in dijkstra(edges, a).items()])


def test_a_lattice_without_bound_does_not_come_to_rest() -> None:
    """The longest path on a cycle; the step leaves no trace."""
    program, edge, best = graph(Max)
    program.rule(best, Rename(edge, {"w": "v"}))
    program.rule(best, Projection(beyond(best, edge), ["a", "b", ("v", Arith("+", "v", Attr("w")))]))
    plan = program.plan(limit=50)
    plan.step({"edge": [(1, 2, 3)]})
    with pytest.raises(EndlessLoop, match="best"):
        plan.step({"edge": [(2, 1, 1)]})
    assert plan.step({"edge": [(2, 3, 1)]})["best"] == ZSet.of((1, 3, Max(4)), (2, 3, Max(1)))


def test_a_snapshot_goes_on() -> None:
    """With values in the loop's histories."""
    steps = list(changes(random.Random(1), 12, lambda rng: rng.randrange(5)))
    one, other = shortest().plan(), shortest().plan()
    for delta in steps[:6]:
        one.step({"edge": delta})
    other.circuit.restore(one.circuit.snapshot())
    assert one.circuit.state("best") == other.circuit.state("best") != ZSet()
    for delta in steps[6:]:
        assert one.step({"edge": delta}) == other.step({"edge": delta})


@pytest.mark.parametrize("small", [0, 10_000])
@pytest.mark.parametrize("make", [shortest, several, from_where, weights_on_the_way])
def test_the_same_on_spark(make: Callable[[], Program], small: int, spark: SparkSession) -> None:
    """In Python workers, and where few rows are kept here."""
    from syndicate.spark import SparkEngine

    local, plan = make().plan(), make().plan(engine=lambda circuit: SparkEngine(circuit, spark, small=small))
    for delta in changes(random.Random(2), 4, lambda rng: rng.randrange(5)):
        assert plan.step({"edge": delta})["best"] == local.step({"edge": delta})["best"]
    plan.close()


@record
class Edge:
    """What costs how much."""

    a: Value
    b: Value
    v: Value


@record
class Best:
    """The least cost."""

    a: Value
    b: Value
    v: Value


def test_a_view_of_a_plan_follows_assertions() -> None:
    """A value is a record in a dataspace, and a retraction brings back what it had replaced."""
    seen: list[Seen] = []
    short: list[Handle] = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Best("x", "z", capture())))
        spawn(host(shortest().plan(), ds, inputs={"edge": Edge}, outputs={"best": Best}))
        for edge in (Edge("x", "y", 1), Edge("y", "z", 2), Edge("x", "z", 9)):
            assert_(ds, edge)
        short.append(assert_(ds, Edge("x", "z", 2)))

    system = settled(boot)
    short[0].facet.enter(short[0].retract)
    system.drain()
    assert [(sign, revive(value)) for sign, value in seen[0]] == [("+", Min(2)), ("+", Min(3)), ("-", Min(2))]


# ------------------------------------------------------------------------------------------------------ what is refused


def doubled(value: Any) -> Any:
    """A function that nobody marked."""
    return value


@monotone
def marked(value: Any) -> Any:
    """One that its author calls monotone."""
    return value


LOOKS: dict[str, tuple[Callable[[Relation], Expression], str]] = {
    "a comparison": (lambda best: Selection(best, Compare("v", "<", Const(3))), "v < 3, and v may grow"),
    "a test that nobody marked": (lambda best: Selection(best, Holds(doubled, "v")), "doubled(v), and v may grow"),
    "a function that nobody marked": (
        lambda best: Projection(best, ["a", "b", ("v", Call(doubled, "v"))]),
        "doubled(v), and v may grow",
    ),
    "a method that is not monotone": (
        lambda best: Projection(best, ["a", "b", ("v", Call(Min.reveal, "v"))]),
        "reveal(v), and v may grow",
    ),
    "a second operand": (
        lambda best: Projection(best, ["a", "b", ("v", Arith("-", Const(Min(3)), Attr("v")))]),
        "v may grow",
    ),
    "a join by the value": (lambda best: NaturalJoin(best, Rename(best, {"a": "b", "b": "a"})), "join, and v may grow"),
    "a group by the value": (
        lambda best: Projection(
            GroupBy(best, ("a", "v"), {"m": Agg(Max, "b")}), ["a", ("b", Const(0)), ("v", Const(1))]
        ),
        "group, and v may grow",
    ),
    "another aggregate": (
        lambda best: GroupBy(best, ("a", "b"), {"v": Agg(aggregates.min, "v")}),
        "min(v)",
    ),
    "a function of the row": (lambda best: MapRows(best, ("a", "b", "v"), doubled), "doubled, and v may grow"),
    "a negation": (
        lambda best: AntiJoin(Relation("edge", ("a", "b", "v")), Projection(best, ["a", "b"])),
        "negation",
    ),
}


@pytest.mark.parametrize("look", LOOKS)
def test_what_must_wait_for_the_last_value_is_refused_in_a_cycle(look: str) -> None:
    """With the reason; and it is a point of order where there is none."""
    make, why = LOOKS[look]
    program = Program()
    edge = program.edb("edge", "a", "b", "v")
    best = program.idb("best", "a", "b", "v", lattices={"v": Min})
    program.rule(best, edge)
    body = make(best)
    program.rule(program.idb("other", "a", "b", "v", lattices={"v": Min}), body)
    assert [why in edge.why for edge in program.points_of_order() if edge.body == "best"] == [True]
    program.rule(best, body)
    with pytest.raises(Unstratifiable) as caught:
        program.strata()
    assert why in str(caught.value)


def test_what_is_marked_may_be_in_a_cycle() -> None:
    """A user's function as well."""
    program = Program()
    edge = program.edb("edge", "a", "b", "v")
    best = program.idb("best", "a", "b", "v", lattices={"v": Min})
    program.rule(best, edge)
    program.rule(best, Projection(Rename(best, {"a": "b", "b": "a"}), ["a", "b", ("v", Call(marked, "v"))]))
    assert not program.points_of_order()
    assert program.plan().step({"edge": [(1, 2, 5)]})["best"] == ZSet.of((1, 2, Min(5)), (2, 1, Min(5)))


def test_a_relation_without_lattices_keeps_what_may_grow() -> None:
    """It would hold the values of all rounds, and go round with them: in a cycle that is refused."""
    program = shortest()
    best = program["best"]
    relation = program.idb("kept", "a", "b", "v")
    program.rule(relation, best)
    assert [edge.why for edge in program.points_of_order()] == ["v may grow"]
    program.rule(best, relation)
    with pytest.raises(Unstratifiable, match="v may grow"):
        program.strata()


def test_a_fixpoint_keeps_what_may_grow() -> None:
    """It has no columns that are merged."""
    loop = Relation("loop", ("a", "v"))
    program = Program()
    edge = program.edb("edge", "a", "v")
    folded = GroupBy(Union(edge, loop), ("a",), {"v": Agg(Max, "v")})
    program.rule("out", Fixpoint("loop", ("a", "v"), folded))
    with pytest.raises(Unstratifiable, match="v may grow"):
        program.strata()


def test_declarations_are_checked() -> None:
    """When they are made."""
    program = Program()
    with pytest.raises(PlanError, match="no attribute"):
        program.idb("best", "a", "cost", lattices={"cst": Min})
    with pytest.raises(PlanError, match="needs a lattice"):
        program.idb("best", "a", "cost", lattices={"cost": min})  # type: ignore[dict-item]  # what is no lattice
    program.idb("best", "a", "cost", lattices={"cost": Min})
    with pytest.raises(PlanError, match="other lattices"):
        program.idb("best", "a", "cost", lattices={"cost": Max})
    assert program.idb("best", "a", "cost").name == "best"


# --------------------------------------------------------------------------------------------------------- morphisms


@pytest.mark.parametrize("seed", range(6))
def test_a_morphism_below_a_fold_gives_the_same(seed: int) -> None:
    """Moved where that can be done, left where the value is read twice, or by what is only monotone."""
    program = Program()
    edge = program.edb("edge", "a", "b", "w")
    sets = GroupBy(edge, ("a",), {"all": Agg(Set, "w"), "most": Agg(Max, "b")})
    moved: list[Any] = [
        ["a", ("v", Call(Set.contains, "all", Const(3)))],
        [("v", Call(Set.intersect, "all", Const(Set([1, 2])))), ("w", Call(Max.gt, "most", Attr("a")))],
        [("v", Call(Set.filter, "all", Const(odd)))],
    ]
    left: list[Any] = [
        ["a", ("v", Call(Set.size, "all"))],
        ["a", "all", ("v", Call(Set.contains, "all", Const(3)))],
        [("v", Call(Max.merge, "most", Attr("most")))],
        [("v", Call(Set.intersect, "all", Attr("all")))],
    ]
    for number, columns in enumerate([*moved, *left]):
        body = Projection(sets, columns)
        assert ("lattice(" in Rewriting().push(body).explain()) == (columns in moved)
        program.rule(f"r{number}", body)
    check(program, changes(random.Random(seed), 12, lambda rng: rng.randrange(5)))


def odd(value: Any) -> bool:
    """A test of elements."""
    return bool(value % 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [shortest, widest, from_where])
def test_a_step_that_fails_in_the_loop_leaves_no_trace(make: Callable[[], Program], seed: int) -> None:
    """It has changed what the loop keeps of many rounds when a function raises; the next steps know nothing of it."""

    def safe(weight: int) -> int:
        if weight == 99:
            raise ValueError(weight)
        return weight

    rng = random.Random(seed)
    whole, tried = make(), make()
    far = NaturalJoin(Rename(tried["best"], {"v": "old"}), Rename(tried["edge"], {"a": "b", "b": "c"}))
    poison = Selection(far, Compare("w", ">", Const(50)))
    heading = [name for name in tried["best"].heading if name != "v"]
    tried.rule("best", Projection(poison, [*heading, ("v", Call(lambda w: Min(safe(w)), "w"))]))
    plan, one = whole.plan(), tried.plan()
    for delta in changes(rng, 12, lambda rng: rng.randrange(7)):
        with pytest.raises(StepFailed, match="99"):
            one.step({"edge": {**delta, (0, 1, 0): 1, (1, 2, 1): 1, (2, 3, 99): 1}})
        assert one.step({"edge": delta})["best"] == plan.step({"edge": delta})["best"]
        assert one.circuit.state("best") == plan.circuit.state("best")
