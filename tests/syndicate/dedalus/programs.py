"""Random programs, by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

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
    Variable,
)

ARITY = {"a": 1, "b": 2, "p": 1, "q": 2, "r": 1, "s": 2}
VARIABLES = [Variable(name) for name in ("X", "Y", "T", "S")]
constants = st.one_of(st.integers(-1, 3), st.sampled_from(["u", 'say "\\"', "2"])).map(Constant)
names = st.sampled_from(sorted(ARITY))


@st.composite
def facts(draw: st.DrawFn) -> Rule:
    """A fact, at a time or always."""
    name = draw(names)
    terms = tuple(draw(constants) for _ in range(ARITY[name]))
    return Rule(Atom(name, terms, draw(st.sampled_from([1, 1, 2, 4, None]))))


def terms_of(draw: st.DrawFn, variables: list[Variable], arity: int, *, loose: bool) -> tuple[Term, ...]:
    """Terms for an atom: variables that are known, or if *loose* any, ``_`` and constants."""
    some: list[Term] = [*VARIABLES, WILD] if loose else [*variables]
    which: st.SearchStrategy[Term] = st.one_of(st.sampled_from(some), constants) if some else constants
    return tuple(draw(which) for _ in range(arity))


@st.composite
def rules(draw: st.DrawFn, *, choices: bool = False) -> Rule:
    """A rule that is safe, if perhaps not stratifiable."""
    body: list[Goal] = []
    time = draw(st.sampled_from([None, None, None, Variable("N")]))
    for number in range(draw(st.integers(1, 3))):
        name = draw(names)
        at = draw(st.sampled_from([None, None, None, 2])) if number else time
        body.append(Atom(name, terms_of(draw, [], ARITY[name], loose=True), at))
    variables = [t for atom in body if isinstance(atom, Atom) for t in atom.terms if isinstance(t, Variable)]
    variables = list(dict.fromkeys([*variables, *([time] if time is not None else [])]))
    if draw(st.booleans()):
        name = draw(names)
        some: list[Term] = [*variables, WILD]
        columns = tuple(draw(st.sampled_from(some)) for _ in range(ARITY[name]))
        body.insert(draw(st.integers(0, len(body))), Atom(name, columns, negated=True))
    if draw(st.booleans()) and variables:
        either: st.SearchStrategy[Term] = st.one_of(st.sampled_from(variables), constants)
        left, right = draw(st.sampled_from(variables)), draw(either)
        body.append(Comparison(left, draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="])), right))
    if choices and draw(st.booleans()) and variables:
        chosen = draw(st.sampled_from(variables))
        body.append(Choice(tuple(v for v in variables if v != chosen and draw(st.booleans())), (chosen,)))
    name = draw(st.sampled_from(["p", "q", "r", "s"]))
    kind: Kind = draw(st.sampled_from(["deductive", "deductive", "next", "async", "later"]))
    head: list[Term | Aggregate] = [*terms_of(draw, variables, ARITY[name], loose=False)]
    column = draw(st.integers(0, len(head) - 1))
    if variables and draw(st.integers(0, 3)) == 0:
        variable = draw(st.sampled_from(variables))
        form = draw(st.sampled_from(["sum", "avg"] if variable == time else ["count", "min", "max"]))
        head[column] = Aggregate(form, (variable,))
    elif time is not None and draw(st.booleans()):
        head[column] = Arithmetic("%", Arithmetic("+", time, Constant(1)), Constant(3))
    return Rule(Atom(name, tuple(head)), kind, tuple(body))


@st.composite
def programs(draw: st.DrawFn, *, choices: bool = False) -> list[Rule]:
    """Facts and rules."""
    return [
        *draw(st.lists(facts(), min_size=2, max_size=8)),
        *draw(st.lists(rules(choices=choices), min_size=1, max_size=6)),
    ]


@st.composite
def lively(draw: st.DrawFn, *, choices: bool = True, most: int = 4) -> list[Rule]:
    """A small program in which messages are sent, and looked at by others."""
    one, names_ = Variable("X"), st.sampled_from(["a", "p", "q", "r"])
    results = [Rule(Atom("a", (Constant(draw(st.integers(1, 2))),), draw(st.sampled_from([2, 2, 1, None]))))]
    results += [
        Rule(Atom(draw(names_), (Constant(1),), draw(st.integers(1, 3)))) for _ in range(draw(st.integers(0, 2)))
    ]
    for number in range(draw(st.integers(1, most))):
        first = draw(st.sampled_from(["a", "a", "p", "q"])) if number else "a"
        body: list[Goal] = [Atom(first, (one,))]
        if draw(st.integers(0, 2)) == 0:
            body.append(
                Atom(draw(names_), (one,), draw(st.sampled_from([None, None, 1, 2])), negated=draw(st.booleans()))
            )
        if choices and draw(st.integers(0, 5)) == 0:
            body.append(Choice((), (one,)))
        kind: Kind = draw(st.sampled_from(["async", "later", "next", "deductive"] if number else ["async", "later"]))
        head: Term | Aggregate = one
        if draw(st.integers(0, 7)) == 0:
            head = Aggregate(draw(st.sampled_from(["min", "max"])), (one,))
        results.append(Rule(Atom(draw(st.sampled_from(["p", "q", "r"])), (head,)), kind, tuple(body)))
    for name in ("p", "q"):
        if draw(st.integers(0, 2)) == 0:
            results.append(Rule(Atom(name, (one,)), "next", (Atom(name, (one,)),)))
    return results
