"""From sugar to the core, and between the two forms of time in it.

In the *short* form, which all else works on, a rule has a kind, and its body names its time only where that is data.
In the *explicit* form each atom has a time, related by ``successor``, ``time`` and ``after``, and an asynchronous rule
chooses one:

>>> from syndicate.dedalus.ast import text_of; from syndicate.dedalus.parse import parse
>>> statements = parse("persist[p, 1]; r(A)@async :- e(A); q(T)@later :- s(T); n(count<X>)@next :- p(X);")
>>> print(text_of(explicit(core(statements))), end="")
p(X1)@S :- p(X1)@T, successor(T, S);
r(A)@S :- e(A)@T, time(S), choose((A, T), (S));
q(T)@S :- s(T)@T1, after(T1, S), choose((T, T1), (S));
n_group(count<X>)@T :- p(X)@T;
n(X1)@S :- n_group(X1)@T, successor(T, S);

Contract: ``short`` undoes ``explicit``; a hidden variable never has the name of one of the user's.

Source: Alvaro et al. 2011b, "Asynchronous Rules"; ``docs/design/dedalus.md``, "Conventions where the paper is silent".

The relations of the clock as data: ``successor``, ``time`` and ``after`` in bodies, about any numbers.

They are infinite, and so are not stored but computed: the successor of what is bound is one more, what it succeeds one
less.  A value that is no time, as text or a fraction, is in none of them.

>>> from syndicate.dedalus.ast import text_of; from syndicate.dedalus.parse import parse
>>> (rule,) = parse("next_of(X, N) :- seq(X), successor(X, N);")
>>> print(with_numbers(rule))
next_of(X, X + 1) :- X < "", X % 1 == 0, seq(X);

Contract: what cannot be computed stays, and :func:`wrong` says why.

Source: Alvaro et al. 2011b, "Asynchronous Rules" and "Sequences" (``successor``, ``time``, ``after``);
``docs/design/dedalus.md``, "The clock's relations as data".

Lamport clocks as a rewriting: ``@async`` that is never seen before its time.

A tuple carries the time of its sending and waits in ``p_wait`` until the local time has passed it; one that was sent
into the future passes at once.  So its consumers see what ``@later`` lets them see, and no clock is global.

>>> from syndicate.dedalus.ast import text_of
>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.ast import text_of; from syndicate.dedalus.parse import parse
>>> print(text_of(lamport(core(parse("p(A, B)@async :- q(A, B);")))), end="")
p_wait(A, B, N)@async :- q(A, B)@N;
p_wait(X1, X2, N)@next :- p_wait(X1, X2, N)@M, N >= M;
p(X1, X2)@next :- p_wait(X1, X2, N)@M, N < M;

The paper's ``persist[p, 2]`` belongs to the program, where that is meant.

Source: Alvaro et al. 2011b, "Lamport Clocks"; Lamport 1978.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from syndicate.dedalus.ast import (
    BUILT_IN,
    WILD,
    Aggregate,
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Goal,
    Kind,
    Persist,
    Rule,
    Statement,
    Term,
    Variable,
    Wildcard,
    variables,
)

# ----------------------------------------------------------------------------------- the relations of the clock as data


TEXT: Final = Constant("")
"""The first of all texts, which follow all numbers."""


def is_clock(goal: Goal) -> bool:
    """Whether a goal is of a relation of the clock."""
    return isinstance(goal, Atom) and goal.relation in BUILT_IN


def with_numbers(rule: Rule) -> Rule:
    """The rule with arithmetic for each relation of the clock in its body, as far as that can be."""
    while True:
        for goal in rule.body:
            if isinstance(goal, Atom) and is_clock(goal):
                replaced = _replaced(rule, goal)
                if replaced is not None:
                    rule = replaced
                    break
        else:
            return rule


def wrong(rule: Rule, atom: Atom) -> str:
    """Why the atom of a relation of the clock cannot be computed."""
    if atom.negated:
        return f"{atom.relation} is computed, and not under negation: compare, as in N != T + 1"
    if atom.time is not None:
        return f"{atom.relation} is the same at all times: leave out @{atom.time}"
    loose = [term for term in atom.terms if isinstance(term, Variable) and term not in _bound(rule)]
    whole = {v for t in rule.head.terms if isinstance(t, Aggregate) for v in t.of} | {
        v for choice in rule.choices for v in variables(choice)
    }
    for name in loose:
        if name in whole:
            return f"{name} is computed, and neither chosen nor aggregated: let a rule before bind it"
    names = " and ".join(map(str, loose))
    if atom.relation == "after":
        return f"there is no end of times: a positive atom must bind {names}, too"
    return f"{atom.relation} goes on without end: a positive atom must bind {'one of ' * (len(loose) > 1)}{names}"


def _bound(rule: Rule) -> set[Variable]:
    """The variables that stored relations, and the time of the body, bind."""
    atoms = [atom for atom in rule.atoms if not atom.negated and not is_clock(atom)]
    bound = {term for atom in atoms for term in atom.terms if isinstance(term, Variable)}
    return bound | {atom.time for atom in atoms if isinstance(atom.time, Variable)}


def _replaced(rule: Rule, atom: Atom) -> Rule | None:
    """The rule without an atom of the clock; None if it cannot be computed."""
    terms = [term for term in atom.terms if not isinstance(term, Aggregate)]
    if atom.negated or atom.time is not None or len(terms) != BUILT_IN[atom.relation]:
        return None
    bound = _bound(rule)
    loose = [term for term in terms if any(name not in bound for name in variables(term))]
    rest = [goal for goal in rule.body if goal is not atom]
    conditions = [goal for term in terms if term not in loose for goal in _is_time(term, rule)]
    if not loose:
        if len(terms) == 2 and not any(isinstance(term, Wildcard) for term in terms):
            first, second = terms
            conditions.append(
                Comparison(second, "==", _moved(first, 1))
                if atom.relation == "successor"
                else Comparison(first, "<", second)
            )
        return evolve(rule, body=(*conditions, *rest))
    if atom.relation != "successor" or len(loose) > 1 or not isinstance(loose[0], Variable):
        return None
    at = terms.index(loose[0])
    other = terms[1 - at]
    if isinstance(other, Wildcard):
        return None
    value = {loose[0]: _moved(other, 1 if at else -1)}
    parts = [_with(part, value) for part in (rule.head, *rest)]
    if any(part is None for part in parts):
        return None
    return evolve(rule, head=parts[0], body=(*conditions, *parts[1:]))


def _is_time(term: Term, rule: Rule) -> list[Comparison]:
    """What holds of a term if it is a time: numbers are before all text, and a time has no fraction."""
    if isinstance(term, Wildcard) or term in rule.times:
        return []
    return [Comparison(term, "<", TEXT), Comparison(Arithmetic("%", term, Constant(1)), "==", Constant(0))]


def limits(goal: Goal) -> bool:
    """Whether a goal is a comparison that could keep numbers from growing: one that says what a number is does not."""
    if not isinstance(goal, Comparison):
        return False
    whole = isinstance(goal.left, Arithmetic) and (goal.left.op, goal.left.right) == ("%", Constant(1))
    return not whole and TEXT not in (goal.left, goal.right)


def _moved(term: Term, by: int) -> Term:
    if isinstance(term, Constant) and isinstance(term.value, int):
        return Constant(term.value + by)
    return Arithmetic("+" if by > 0 else "-", term, Constant(abs(by)))


def _with(part: Any, value: Mapping[Variable, Term]) -> Any:
    """A part of a rule with values for variables; None if a variable must stand there."""
    match part:
        case Variable():
            return value.get(part, part)
        case Arithmetic() | Comparison():
            return evolve(part, left=_with(part.left, value), right=_with(part.right, value))
        case Aggregate() | Choice():
            return None if any(name in value for name in _names(part)) else part
        case Atom():
            terms = [_with(term, value) for term in part.terms]
            return None if part.time in value or None in terms else evolve(part, terms=tuple(terms))
    return part


def _names(part: Aggregate | Choice) -> tuple[Variable, ...]:
    return part.of if isinstance(part, Aggregate) else (*part.key, *part.chosen)


# --------------------------------------------------------- from sugar to the core, and between the two forms of time in


def core(statements: Iterable[Statement]) -> list[Rule]:
    """The rules and facts of a program in short form, with those that ``persist`` means, and without a clock."""
    rules: list[Rule] = []
    for statement in statements:
        if isinstance(statement, Rule):
            clocked = statement.times or any(atom.relation in BUILT_IN for atom in statement.atoms)
            timed = clocked or isinstance(statement.head.time, Variable)
            rules.append(with_numbers(short(statement)) if timed else statement)
        elif isinstance(statement, Persist):
            rules.append(_frame(statement))
    return rules


def _frame(persist: Persist) -> Rule:
    terms = tuple(Variable(f"X{number}") for number in range(1, persist.arity + 1))
    atom = Atom(persist.relation, terms, place=persist.place)
    body = (atom, Atom(persist.deleting, terms, negated=True, place=persist.place)) if persist.deleting else (atom,)
    return Rule(atom, "next", body)


# ---------------------------------------------------------------------------------------------------------- explicit


def explicit(rules: Iterable[Rule]) -> list[Rule]:
    """Rules with all times written out; heads with aggregates that take effect later are split in two."""
    return [_timed(rule) for rule in split(rules)]


def split(rules: Iterable[Rule]) -> list[Rule]:
    """Rules in which only deductive heads have aggregates."""
    rules = list(rules)
    names = {atom.relation for rule in rules for atom in (rule.head, *rule.atoms)}
    result = []
    for rule in rules:
        if rule.kind == "deductive" or not rule.aggregates:
            result.append(rule)
            continue
        name = fresh(f"{rule.head.relation}_group", names)
        names.add(name)
        terms = tuple(Variable(f"X{number}") for number in range(1, len(rule.head.terms) + 1))
        group = evolve(rule.head, relation=name)
        result += [
            Rule(group, "deductive", rule.body),
            Rule(evolve(rule.head, terms=terms), rule.kind, (Atom(name, terms, place=rule.place),)),
        ]
    return result


def _timed(rule: Rule) -> Rule:
    if rule.head.time is not None or any(atom.relation in BUILT_IN for atom in rule.atoms):
        return rule
    used = {variable.name for part in (rule.head, *rule.body) for variable in variables(part)}
    now = rule.times[0] if rule.times else Variable(fresh("T", used))
    body: list[Goal] = [
        evolve(goal, time=now) if isinstance(goal, Atom) and goal.time is None else goal for goal in rule.body
    ]
    if not any(isinstance(goal, Atom) and goal.time == now and not goal.negated for goal in body):
        body.append(Atom("successor", (now, WILD), place=rule.place))
    if rule.kind == "deductive":
        return Rule(evolve(rule.head, time=now), "deductive", tuple(body))
    then = Variable(fresh("S", used | {now.name}))
    if rule.kind == "next":
        body.append(Atom("successor", (now, then), place=rule.place))
    else:
        clock = Atom("time", (then,)) if rule.kind == "async" else Atom("after", (now, then))
        key = tuple(dict.fromkeys([*variables(*rule.head.terms), now]))
        body += [evolve(clock, place=rule.place), Choice(key, (then,), place=rule.place)]
    return Rule(evolve(rule.head, time=then), "deductive", tuple(body))


def fresh(name: str, used: Iterable[str]) -> str:
    """A name like *name* that is not used."""
    taken = set(used)
    return next(candidate for candidate in _candidates(name) if candidate not in taken)


def _candidates(name: str) -> Iterator[str]:
    yield name
    number = 0
    while True:
        number += 1
        yield f"{name}{number}"


# ------------------------------------------------------------------------------------------------------------- short


def short(rule: Rule) -> Rule:
    """The rule in short form; as it was, where it is not well-formed.  Time variables stay where they are data."""
    if isinstance(rule.head.time, Variable):
        rule = _untimed(rule, rule.head.time)
    if len(rule.times) != 1 or rule.head.time is not None:
        return rule
    now = rule.times[0]
    data = [variable for goal in rule.body for variable in _data(goal)] + list(variables(*rule.head.terms))
    when = now if now in data else None
    body = tuple(
        evolve(goal, time=when)
        if isinstance(goal, Atom) and not isinstance(goal.time, int) and not is_clock(goal)
        else goal
        for goal in rule.body
    )
    return evolve(rule, body=body)


def _data(goal: Goal) -> Iterator[Variable]:
    yield from variables(evolve(goal, time=None) if isinstance(goal, Atom) else goal)


def _untimed(rule: Rule, then: Variable) -> Rule:
    """The rule without the time of its head; other relations of the clock are data, and stay."""
    clocks = [atom for atom in rule.atoms if is_clock(atom) and not atom.negated]
    now = next(iter(rule.times), None)
    for clock in clocks:
        if clock.relation == "successor" and clock.terms[1:] == (WILD,) and isinstance(clock.terms[0], Variable):
            now = now or clock.terms[0]
    anchors = [clock for clock in clocks if clock.terms == (now, WILD)]
    links = [clock for clock in clocks if clock.terms in ((now, then), (then,)) and then != now]
    chosen = [choice for choice in rule.choices if choice.chosen == (then,)]
    kind: Kind
    gone: list[Goal] = [*anchors, *links]
    match [clock.relation for clock in links], len(chosen):
        case [], _ if then == now:
            kind = "deductive"
        case ["successor"], 0:
            kind = "next"
            if then in variables(*rule.head.terms, *(goal for goal in rule.body if goal not in links)):
                gone = list(anchors)  # which the time of the head is, too
        case ["time" | "after" as only], 1:
            kind = "async" if only == "time" else "later"
            gone += chosen
        case _:
            return rule
    body = tuple(goal for goal in rule.body if goal not in gone)
    fact = not body and kind == "deductive"
    untimed = Rule(evolve(rule.head, time=None), kind, body)
    return untimed if fact or body else rule


def grouped(rule: Rule) -> tuple[list[int], list[tuple[int, Aggregate]]]:
    """The columns of a head that make the group, and those of aggregates."""
    plain = [number for number, term in enumerate(rule.head.terms) if not isinstance(term, Aggregate)]
    return plain, [(number, term) for number, term in enumerate(rule.head.terms) if isinstance(term, Aggregate)]


# ---------------------------------------------------------------------------------------- lamport clocks as a rewriting


def lamport(rules: Iterable[Rule]) -> list[Rule]:
    """Rules in short form in which all asynchronous tuples wait for their time; ``@later`` is left as it is."""
    rules = split(rules)
    taken = {atom.relation for rule in rules for atom in (rule.head, *rule.atoms)}
    waiting: dict[str, str] = {}
    result: list[Rule] = []
    for rule in rules:
        if rule.kind != "async":
            result.append(rule)
            continue
        head = rule.head
        if head.relation not in waiting:
            waiting[head.relation] = fresh(f"{head.relation}_wait", taken)
            taken.add(waiting[head.relation])
        used = {variable.name for part in (head, *rule.body) for variable in variables(part)}
        now = rule.times[0] if rule.times else Variable(fresh("N", used))
        body = tuple(
            evolve(goal, time=now) if isinstance(goal, Atom) and goal.time is None else goal for goal in rule.body
        )
        sent = evolve(head, relation=waiting[head.relation], terms=(*head.terms, now))
        result.append(short(Rule(sent, "async", body)))
    arities = {rule.head.relation: len(rule.head.terms) for rule in rules if rule.kind == "async"}
    for name, wait in waiting.items():
        result += _pair(name, wait, arities[name])
    return result


def _pair(name: str, wait: str, arity: int) -> list[Rule]:
    terms = tuple(Variable(f"X{number}") for number in range(1, arity + 1))
    sent, now = Variable("N"), Variable("M")
    waits = Atom(wait, (*terms, sent))
    here = evolve(waits, time=now)
    return [
        Rule(waits, "next", (here, Comparison(sent, ">=", now))),
        Rule(Atom(name, terms), "next", (here, Comparison(sent, "<", now))),
    ]
