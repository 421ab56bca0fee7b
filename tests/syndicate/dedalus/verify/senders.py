"""Random programs of two nodes that send to each other, with a specification, by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from syndicate.dedalus import Program
from syndicate.dedalus.ast import (
    WILD,
    Aggregate,
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Goal,
    Kind,
    Rule,
    Term,
    Value,
    Variable,
)
from syndicate.dedalus.desugar import core
from syndicate.dedalus.parse import parse

NODES = ("a", "b")
ARITY = {"e": 2, "k": 2, "p": 2, "q": 2, "r": 1, "crash": 3}
VARIABLES = [Variable(name) for name in ("X", "Y", "Z")]
values: list[Value] = ["a", "b", "a", "b", 1, 2]
constants = st.sampled_from(values).map(Constant)


def atom(draw: st.DrawFn, terms: list[Term], *, negated: bool = False) -> Atom:
    """An atom of a body."""
    name = draw(st.sampled_from(["e", "k", "p", "q", "r", "p", "q", "crash"]))
    some: st.SearchStrategy[Term] = st.sampled_from(terms) if terms else constants
    columns = tuple(draw(st.one_of(some, some, constants, st.just(WILD))) for _ in range(ARITY[name]))
    return Atom(name, columns, draw(st.sampled_from([None, None, None, None, 1])), negated=negated)


@st.composite
def rules(draw: st.DrawFn, heads: dict[str, int], kinds: list[Kind]) -> Rule:
    """A rule, of which negation, aggregates, choices, time and arithmetic may be part."""
    time = draw(st.sampled_from([None, None, None, Variable("N")]))
    body: list[Goal] = [atom(draw, [*VARIABLES]) for _ in range(draw(st.integers(1, 2)))]
    if time is not None and isinstance(body[0], Atom):
        body[0] = Atom(body[0].relation, body[0].terms, time)
    variables = list(dict.fromkeys(t for a in body if isinstance(a, Atom) for t in a.terms if isinstance(t, Variable)))
    if draw(st.booleans()):
        body.append(atom(draw, [*variables], negated=True))
    if variables and draw(st.integers(0, 3)) == 0:
        body.append(
            Comparison(draw(st.sampled_from(variables)), draw(st.sampled_from(["==", "!=", "<"])), draw(constants))
        )
    if variables and draw(st.integers(0, 5)) == 0:
        chosen = draw(st.sampled_from(variables))
        key = tuple(variable for variable in variables if variable != chosen and draw(st.booleans()))
        body.append(Choice(key, (chosen,)))
    name = draw(st.sampled_from(sorted(heads)))
    some: st.SearchStrategy[Term] = st.sampled_from([*variables]) if variables else constants
    columns: list[Term | Aggregate] = [draw(st.one_of(some, some, constants)) for _ in range(heads[name])]
    at = draw(st.integers(0, len(columns) - 1))
    if variables and draw(st.integers(0, 3)) == 0:
        columns[at] = Aggregate(draw(st.sampled_from(["count", "min", "max"])), (draw(st.sampled_from(variables)),))
    elif time is not None:
        timed: list[Term] = [time, Arithmetic("%", time, Constant(2))]
        columns[at] = draw(st.sampled_from(timed))
        if draw(st.integers(0, 3)) == 0:
            columns[at] = Aggregate("sum", (time,))
    return Rule(Atom(name, tuple(columns)), draw(st.sampled_from(kinds)), tuple(body))


@st.composite
def programs(draw: st.DrawFn, *, choosing: bool = False) -> Program:
    """Facts, rules that send, and a specification."""
    pair = st.tuples(st.sampled_from(NODES), st.sampled_from(NODES))
    instances = [Rule(Atom("e", tuple(map(Constant, row)), 1)) for row in draw(st.lists(pair, min_size=1, max_size=3))]
    instances += [Rule(Atom("k", tuple(map(Constant, row)))) for row in draw(st.lists(pair, min_size=1, max_size=2))]
    send = Rule(Atom("p", (VARIABLES[1], VARIABLES[0])), "async", (Atom("e", (VARIABLES[0], VARIABLES[1])),))
    survivors = (VARIABLES[0], VARIABLES[1])
    instances += [send, Rule(Atom("p", survivors), "next", (Atom("p", survivors),))]
    kinds: list[Kind] = ["deductive", "deductive", "next", "async", "async", "later"]
    instances += draw(st.lists(rules({"p": 2, "q": 2, "r": 1}, kinds), min_size=1, max_size=4))
    if choosing:
        instances += core(parse('e("a", "b")@1; e("b", "a")@1; k("a", "b"); k("b", "a");'))
        instances += core(parse("".join(draw(st.lists(st.sampled_from(CHOICES), min_size=1, max_size=2, unique=True)))))
    instances += core(
        parse("".join(draw(st.lists(st.sampled_from(SPECIFICATIONS), min_size=2, max_size=4, unique=True))))
    )
    for name in ("pre", "post"):
        instances += draw(st.lists(rules({name: 1}, ["deductive"]), min_size=0 if name == "pre" else 1, max_size=1))
    instances += core(
        parse(draw(st.sampled_from(["pre(X) :- e(_, X)@1;", "pre(X) :- e(X, _)@1;", "pre(X) :- k(X, _);"])))
    )
    instances += core(parse("bad(X) :- pre(X), notin post(X), k(_, _)@N, N > 2;"))
    return Program(instances)


CHOICES = [
    "q(X, Y)@next :- e(X, _), e(_, Y), choose((X), (Y));",
    "q(X, Y) :- e(X, _), p(_, Y), choose((X), (Y)), choose((Y), (X));",
    "q(X, count<Y>) :- p(X, Y), choose((), (Y));",
    "p(X, Y)@async :- q(X, _), k(_, Y), choose((X), (Y));",
    "p(X, Y)@async :- e(Y, _), k(Y, X), choose((), (X));",
    "r(X) :- p(X, _), choose((), (X));",
    "r(X)@later :- p(_, X), choose((), (X));",
    "post(X) :- q(X, Y), choose((), (Y));",
]
SPECIFICATIONS = [
    "post(X) :- p(X, _);",
    "post(X) :- q(X, _);",
    "post(X) :- q(_, X), notin r(X);",
    "post(X) :- e(_, X)@1, notin q(X, _);",
    "post(X) :- r(X);",
    "q(Y, X)@async :- p(X, Y);",
    "q(X, Y)@next :- q(X, Y), notin r(X);",
    "r(X)@next :- r(X);",
    "r(X)@later :- p(Y, X), notin q(Y, X);",
    "p(X, count<Y>) :- q(X, Y);",
    "e(X, Y)@next :- e(X, Y), notin p(X, _);",
    "e(X, Y)@next :- e(X, Y);",
    "e(X, Y)@next :- e(X, Y);",
    "post(X) :- p(_, X);",
    "q(X, Z) :- q(X, Y), p(Y, Z);",
]
MINDING = [
    'bad(Y) :- q("a", Y), Y == "a";',
    'bad(X) :- q(X, "b"), q("a", X);',
    "bad(X) :- r(X), notin p(X, _);",
    'bad(X)@next :- r("b"), p(X, _);',
    "bad(X)@async :- p(Y, X), q(Y, Y);",
    "post(X) :- q(X, X);",
    "pre(X) :- r(X);",
    'r(Y)@async :- q("a", Y); owed(X)@next :- q("a", X)@N, N == 2; bad(X) :- owed(X), notin r(X);',
]


@st.composite
def choosing(draw: st.DrawFn) -> Program:
    """A program that minds what is chosen."""
    more = draw(st.lists(st.sampled_from(MINDING), max_size=3, unique=True))
    return Program([*draw(programs(choosing=True)).statements, *Program.parse("".join(more)).statements])
