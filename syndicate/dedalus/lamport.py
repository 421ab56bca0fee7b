"""Lamport clocks as a rewriting: ``@async`` that is never seen before its time.

A tuple carries the time of its sending and waits in ``p_wait`` until the local time has passed it; one that was sent
into the future passes at once.  So its consumers see what ``@later`` lets them see, and no clock is global.

>>> from syndicate.dedalus.ast import text_of
>>> from syndicate.dedalus.desugar import core
>>> from syndicate.dedalus.parse import parse
>>> print(text_of(lamport(core(parse("p(A, B)@async :- q(A, B);")))), end="")
p_wait(A, B, N)@async :- q(A, B)@N;
p_wait(X1, X2, N)@next :- p_wait(X1, X2, N)@M, N >= M;
p(X1, X2)@next :- p_wait(X1, X2, N)@M, N < M;

The paper's ``persist[p, 2]`` belongs to the program, where that is meant.

Source: Alvaro et al. 2011b, "Lamport Clocks"; Lamport 1978.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from syndicate.dedalus.ast import Atom, Comparison, Rule, Variable, variables
from syndicate.dedalus.desugar import fresh, short, split


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
