"""From sugar to the core, and between the two forms of time in it.

In the *short* form, which all else works on, a rule has a kind, and its body names its time only where that is data.
In the *explicit* form each atom has a time, related by ``successor``, ``time`` and ``after``, and an asynchronous rule
chooses one:

>>> from syndicate.dedalus.parse import parse
>>> statements = parse("persist[p, 1]; r(A)@async :- e(A); q(T)@later :- s(T); n(count<X>)@next :- p(X);")
>>> print(text_of(explicit(core(statements))), end="")
p(X1)@S :- p(X1)@T, successor(T, S);
r(A)@S :- e(A)@T, time(S), choose((A, T), (S));
q(T)@S :- s(T)@T1, after(T1, S), choose((T, T1), (S));
n_group(count<X>)@T :- p(X)@T;
n(X1)@S :- n_group(X1)@T, successor(T, S);

Contract: ``short`` undoes ``explicit``; a hidden variable never has the name of one of the user's.

Source: Alvaro et al. 2011b, "Asynchronous Rules"; ``docs/design/dedalus.md``, "Conventions where the paper is silent".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from syndicate.dedalus.ast import (
    BUILT_IN,
    WILD,
    Aggregate,
    Atom,
    Choice,
    Goal,
    Kind,
    Persist,
    Rule,
    Statement,
    Variable,
    text_of,
    variables,
)
from syndicate.dedalus.succession import is_clock, with_numbers

__all__ = ["core", "explicit", "fresh", "grouped", "short", "split", "text_of"]


def core(statements: Iterable[Statement]) -> list[Rule]:
    """The rules and facts of a program in short form, with those that ``persist`` means, and without a clock."""
    rules: list[Rule] = []
    for statement in statements:
        if isinstance(statement, Rule):
            rules.append(with_numbers(short(statement)))
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
    return next(candidate for candidate in _numbered(name) if candidate not in taken)


def _numbered(name: str) -> Iterator[str]:
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
