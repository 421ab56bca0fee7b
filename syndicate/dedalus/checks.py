r"""What is wrong with a program, before it runs: each finding with its rule, its place and its cause.

>>> from syndicate.dedalus.parse import parse
>>> for found in check(parse("p(X) :- d(X), notin q(X); q(X) :- d(X), notin p(X);")):
...     print(found)
program:1:1: unstratifiable: p depends on its own absence within one timestep: p -[not q]-> q -[not p]-> p. Let one
of these rules take effect @next
    p(X) :- d(X), notin q(X);

Reason classes: ``reserved``, ``time``, ``arity``, ``unsafe``, ``unstratifiable``, ``location``, ``entangle-strict``.
A body is read within one timestep, so that only deductive rules can make a cycle; a relation at a constant time counts
as the relation itself, which it is at that time.

Source: Alvaro et al. 2011b, on safety, stratification and "Distribution Model"; ``docs/design/dedalus.md``,
"Conventions where the paper is silent".

Temporal safety: whether a program comes to rest once its events are over.

A sufficient test, and a report rather than a verdict, since a counter is legal: each rule takes effect at once, or
keeps what is there, or has a positive *event* atom, which dies out.

>>> from syndicate.dedalus.parse import parse
>>> print(*restless(parse("n(1)@1; n(N + 1)@next :- n(N); p(X)@next :- p(X), notin q(X);")), sep="\n")
program:1:9: n may change at every timestep: no atom of the body is an event that ends
    n(N + 1)@next :- n(N);

Source: Alvaro et al. 2011b, on temporal safety; ``docs/design/dedalus.md``, "Conventions where the paper is silent".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from attrs import frozen

from syndicate.dedalus.ast import (
    BUILT_IN,
    Agent,
    Aggregate,
    Arithmetic,
    Atom,
    Choice,
    Comparison,
    Constant,
    Persist,
    Position,
    Rule,
    Statement,
    Term,
    Variable,
    Wildcard,
    terms,
    variables,
)
from syndicate.dedalus.desugar import core, is_clock, limits
from syndicate.dedalus.desugar import wrong as no_number
from syndicate.graph import levels, shortest

# ------------------------------------------------------------------------- what is wrong with a program, before it runs


RESERVED: Final = frozenset({*BUILT_IN, "choose"})


@frozen
class Diagnostic:
    """A finding: *reason_class* names its cause, *rule* is the text of the rule.  Made by :meth:`Program.check`."""

    reason_class: str
    message: str
    place: Position
    rule: str = ""

    @property
    def line(self) -> int:
        """The line, from 1; 0 where the program was not written as text."""
        return self.place.line

    @property
    def column(self) -> int:
        """The column, from 1."""
        return self.place.column

    def __str__(self) -> str:
        rule = f"\n    {self.rule}" if self.rule else ""
        return f"{self.place}: {self.reason_class}: {self.message}{rule}"


def check(
    statements: Sequence[Statement],
    *,
    strict: bool = False,
    locations: bool | None = None,
    rules: Sequence[Rule] | None = None,
) -> list[Diagnostic]:
    """All findings in the order of the text; none means that the program can run.

    *strict* limits entanglement to asynchronous rules.  *locations* says that the first column of each relation is a
    location; unless it is said, that is so in strict mode, and where the program marks locations (``p(#L, X)``).
    *rules* are those of the statements in short form, where somebody has them already.
    """
    rules = core(statements) if rules is None else rules
    marked = any(atom.located for rule in rules for atom in (rule.head, *rule.atoms))
    diagnostics = [*_reserved(statements), *_arity(rules)]
    special = [rule for rule in rules if not _is_plain(rule)]
    for rule in special:
        timed = list(_times(rule, strict))
        diagnostics += timed or _safety(rule)
    if special or any(atom.negated for rule in rules for atom in rule.atoms):
        diagnostics += _stratification(rules)
    if locations or (locations is None and (strict or marked)):
        diagnostics += _locations(rules)
    if any(isinstance(statement, Agent) for statement in statements):
        diagnostics += _agents(statements, rules)
    return sorted(diagnostics, key=lambda one: (one.place.file, one.place.line, one.place.column))


def _reserved(statements: Iterable[Statement]) -> Iterator[Diagnostic]:
    for statement in statements:
        name = statement.head.relation if isinstance(statement, Rule) else ""
        if isinstance(statement, Persist):
            name = statement.relation
        if name in RESERVED:
            message = f"{name} is built in and cannot be defined: choose another name"
            yield Diagnostic("reserved", message, statement.place, str(statement))


def _arity(rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    first_atoms: dict[str, Atom] = {}
    for rule in rules:
        for atom in (rule.head, *rule.atoms):
            first = first_atoms.setdefault(atom.relation, atom)
            wanted = BUILT_IN.get(atom.relation, len(first.terms))
            if len(atom.terms) != wanted:
                where = "it is built in with" if atom.relation in BUILT_IN else f"at {first.place} it has"
                message = f"{atom.relation} has {_columns(len(atom.terms))} here, but {where} {wanted}"
                yield Diagnostic("arity", message, atom.place, str(rule))


def _columns(number: int) -> str:
    return f"{number} column{'s' * (number != 1)}"


def _is_plain(rule: Rule) -> bool:
    """Whether nothing can be wrong with a rule: all is bound, without times, calculations and choices; as most are."""
    bound: set[str] = set()
    demanded = list(rule.head.terms)
    for part in rule.body:
        if isinstance(part, Comparison):
            demanded += (part.left, part.right)
        elif not isinstance(part, Atom) or part.time is not None or part.relation in BUILT_IN:
            return False
        elif part.negated:
            demanded += [term for term in part.terms if not isinstance(term, Wildcard)]
        else:
            for term in part.terms:
                if isinstance(term, Variable):
                    bound.add(term.name)
                elif not isinstance(term, (Constant, Wildcard)):
                    return False
    timeless = rule.head.time is None or (rule.fact and isinstance(rule.head.time, int))
    if not timeless or (rule.fact and rule.kind != "deductive"):
        return False
    for term in demanded:
        if not isinstance(term, Constant) and not (isinstance(term, Variable) and term.name in bound):
            return False
    return True


def _times(rule: Rule, strict: bool) -> Iterator[Diagnostic]:
    def wrong(message: str, place: Position = rule.place, why: str = "time") -> Diagnostic:
        return Diagnostic(why, message, place, str(rule))

    time = rule.head.time
    if rule.fact and rule.kind != "deductive":
        yield wrong(f"a fact is true at a time, or always: write {rule.head.relation}(..)@1 instead of @{rule.kind}")
    if rule.fact and isinstance(time, Variable):
        yield wrong(f"a fact is true at a time that is a number, not at {time}")
    elif isinstance(time, Variable):
        yield wrong(
            f"nothing relates the head's time {time} to the body's: write @next, @async or @later, or one of "
            f"successor(T, {time}), time({time}) and after(T, {time}), the last two with choose((.., T), ({time}))"
        )
    elif time is not None and not rule.fact:
        yield wrong(f"only a fact is true at a constant time, as {time}: a rule's head has none, or @next and its like")
    elif rule.head.relation not in RESERVED:
        for atom in rule.atoms:
            if is_clock(atom) and len(atom.terms) == BUILT_IN[atom.relation]:
                yield wrong(no_number(rule, atom), atom.place, "time" if atom.negated or atom.time else "unsafe")
    if len(rule.times) > 1:
        names = " and ".join(map(str, rule.times))
        yield wrong(f"a body has one time, but here are {names}: use one of them for all atoms")
    elif strict and rule.times and rule.kind in ("deductive", "next"):
        yield wrong(
            f"{rule.times[0]} entangles the time in a rule that is not asynchronous, which strict mode does not allow",
            why="entangle-strict",
        )


# ------------------------------------------------------------------------------------------------------------- safety


def bound(rule: Rule) -> set[Variable]:
    """The variables that positive atoms bind, and that of the time."""
    names = {term for atom in rule.atoms if not atom.negated for term in atom.terms if isinstance(term, Variable)}
    return names | set(rule.times)


def _safety(rule: Rule) -> Iterator[Diagnostic]:
    def wrong(message: str, place: Position = rule.place) -> Diagnostic:
        return Diagnostic("unsafe", message, place, str(rule))

    if rule.fact:
        loose = [t for t in terms(rule.head) if isinstance(t, (Variable, Wildcard))]
        if loose or rule.aggregates:
            yield wrong(f"a fact has values only, and {loose[0] if loose else rule.aggregates[0]} is not one")
        return
    bound_names = bound(rule)
    if any(isinstance(term, Wildcard) for term in terms(rule.head)):
        yield wrong("'_' in a head could be anything: name a variable that the body binds")
    for name in _unbound(bound_names, *rule.head.terms):
        yield wrong(f"{name} in the head is bound by no positive atom of the body{_assigned(name, rule)}")
    for goal in rule.body:
        match goal:
            case Atom() if goal.negated or any(isinstance(term, Arithmetic) for term in goal.terms):
                place = "only under negation (use _ if any will do)" if goal.negated else "only within a calculation"
                for name in _unbound(bound_names, *goal.terms):
                    remedy = _assigned(name, rule) or ": a positive atom must bind it"
                    yield wrong(f"{name} occurs {place}{remedy}", goal.place)
                if any(isinstance(t, Arithmetic) and _wild(t) for t in goal.terms):
                    yield wrong("'_' cannot be calculated with", goal.place)
            case Comparison():
                for name in _unbound(bound_names, goal):
                    remedy = _assigned(name, rule) or ": a positive atom must bind it"
                    yield wrong(f"{name} occurs only in a comparison{remedy}", goal.place)
                if _wild(goal):
                    yield wrong("'_' cannot be compared: name a variable", goal.place)
            case Choice():
                for name in _unbound(bound_names, goal):
                    yield wrong(f"{name} in choose is bound by no positive atom", goal.place)


def _wild(part: Comparison | Arithmetic) -> bool:
    return any(isinstance(term, Wildcard) for term in terms(part))


def _assigned(name: Variable, rule: Rule) -> str:
    """What to write for a variable that ``Z = Y + 1`` was to bind."""
    for goal in rule.body:
        if isinstance(goal, Comparison) and goal.op == "==" and name in (goal.left, goal.right):
            other = goal.right if goal.left == name else goal.left
            if name not in variables(other):
                return f": '=' compares, and binds nothing; write {other} where {name} stands"
    return ""


def _unbound(bound: set[Variable], *parts: Term | Aggregate | Comparison | Choice) -> list[Variable]:
    return [name for name in dict.fromkeys(variables(*parts)) if name not in bound]


# ---------------------------------------------------------------------------------------------------- stratification


class _Edge(NamedTuple):
    head: str
    body: str
    why: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.head} -[{self.why} {self.body}]->" if self.why else f"{self.head} ->"


def _edges(rules: Iterable[Rule]) -> Iterator[_Edge]:
    for rule in rules:
        if rule.kind != "deductive":
            continue
        of_all = str(rule.aggregates[0].form) if rule.aggregates else "choose" if rule.choices else ""
        for atom in rule.atoms:
            yield _Edge(rule.head.relation, atom.relation, "not" if atom.negated else of_all, rule)


def _stratification(rules: Sequence[Rule]) -> Iterator[Diagnostic]:
    edges = list(_edges(rules))
    below: dict[str, list[_Edge]] = {name: [] for edge in edges for name in (edge.head, edge.body)}
    for edge in edges:
        below[edge.head].append(edge)
    steps = levels({name: [(edge.body, 1) for edge in there] for name, there in below.items()})
    reported: set[str] = set()
    for edge in edges:
        computing = [term for term in edge.rule.head.terms if isinstance(term, Arithmetic)]
        if edge.head in reported or not (edge.why or computing) or steps[edge.head] != steps[edge.body]:
            continue  # a step down: no circle
        route = shortest(edge.body, edge.head, lambda name: ((each.body, each) for each in below[name]))
        if route is None:
            continue
        cycle = [edge, *route]
        if edge.why:
            reported |= {step.head for step in cycle}
            path = " ".join(map(str, cycle))
            what = {"not": "its own absence", "choose": "a choice from itself"}.get(edge.why, f"{edge.why} of itself")
            message = f"{edge.head} depends on {what} within one timestep: {path} {edge.head}"
            text = f"{message}. Let one of these rules take effect @next"
            yield Diagnostic("unstratifiable", text, edge.rule.place, str(edge.rule))
        elif not _limited(edge.rule, computing):
            reported.add(edge.head)
            yield Diagnostic(
                "unsafe",
                f"{edge.head} computes {computing[0]} from itself without bound within one timestep: limit it by a "
                "comparison, or let it take effect @next",
                edge.rule.place,
                str(edge.rule),
            )


def _limited(rule: Rule, computing: Iterable[Arithmetic]) -> bool:
    compared = {name for goal in rule.body if limits(goal) for name in variables(goal)}
    return all(not (used := set(variables(term))) or used & compared for term in computing)


# ----------------------------------------------------------------------------------------------------------- location


def _locations(rules: Sequence[Rule]) -> Iterator[Diagnostic]:
    """A relation whose first column is nowhere a plain term, or that has none, has no location."""
    placeless = {
        rule.head.relation
        for rule in rules
        if not rule.head.terms or isinstance(rule.head.terms[0], (Aggregate, Arithmetic))
    }
    for rule in rules:
        at: Term | Aggregate | None = None
        for atom in rule.atoms:
            if atom.relation in placeless or not atom.terms or isinstance(atom.terms[0], Wildcard):
                continue
            if at is not None and atom.terms[0] != at:
                message = f"the body reads at two locations, {at} and {atom.terms[0]}: send one of them over first"
                yield Diagnostic("location", message, atom.place, str(rule))
                break
            at = atom.terms[0]
        else:
            head = rule.head
            remote = at is not None and head.relation not in placeless and head.terms[0] != at
            if remote and rule.kind in ("deductive", "next"):
                message = f"the head is at {head.terms[0]}, the body at {at}: only @async and @later lead elsewhere"
                yield Diagnostic("location", message, rule.place, str(rule))


def _agents(statements: Iterable[Statement], rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    owner: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, Agent):
            for name in statement.relations:
                if owner.setdefault(name, statement.name) != statement.name:
                    message = f"{name} belongs to {owner[name]} already: a relation belongs to one agent"
                    yield Diagnostic("location", message, statement.place, str(statement))
    for rule in rules:
        here: str | None = None
        for atom in rule.atoms:
            agent = owner.get(atom.relation)
            if here is not None and agent is not None and agent != here:
                message = f"the body reads relations of two agents, {here} and {agent}: send one of them over first"
                yield Diagnostic("location", message, atom.place, str(rule))
                break
            here = here or agent
        else:
            agent = owner.get(rule.head.relation)
            if None not in (here, agent) and agent != here and rule.kind in ("deductive", "next"):
                message = f"{rule.head.relation} is {agent}'s, the body {here}'s: only @async and @later lead elsewhere"
                yield Diagnostic("location", message, rule.place, str(rule))


# ------------------------------------------------------------------------------------------------------ temporal safety


@frozen
class Restless:
    """A rule that may keep the program from coming to rest."""

    rule: Rule
    message: str

    @property
    def place(self) -> Position:
        """Where the rule is."""
        return self.rule.place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}\n    {self.rule}"


def restless(statements: Sequence[Statement]) -> list[Restless]:
    """The rules for which the test fails; none means that the program is temporally safe."""
    rules = core(statements)
    ending = events(rules)
    result = []
    for rule in rules:
        head = rule.head
        persistent = any((a.relation, a.terms, a.negated) == (head.relation, head.terms, False) for a in rule.atoms)
        harmless = (rule.kind == "deductive" and not rule.times) or (rule.kind == "next" and persistent)
        if rule.fact or harmless or _ends(rule, ending):
            continue
        what = "is sent again" if rule.kind in ("async", "later") else "may change"
        message = f"{head.relation} {what} at every timestep: no atom of the body is an event that ends"
        result.append(Restless(rule, message))
    return result


def events(rules: Sequence[Rule]) -> set[str]:
    """The relations that are empty once given facts are over: no bare fact, and each rule has an event atom."""
    heads: dict[str, list[Rule]] = {}
    for rule in rules:
        for atom in (rule.head, *rule.atoms):
            heads.setdefault(atom.relation, [])
        heads[rule.head.relation].append(rule)
    ending: set[str] = set()
    while True:
        more = {
            name
            for name, defining in heads.items()
            if name not in ending
            and all(rule.head.time is not None if rule.fact else _ends(rule, ending) for rule in defining)
        }
        if not more:
            return ending
        ending |= more


def _ends(rule: Rule, ending: set[str]) -> bool:
    return any(atom.relation in ending and not atom.negated and not isinstance(atom.time, int) for atom in rule.atoms)


def observing(rules: Sequence[Rule], names: Iterable[str]) -> set[str]:
    """The relations of a specification: *names*, and what follows at once and is read for them only.

    Takes time in proportion to the rules.

    >>> from syndicate.dedalus.parse import parse
    >>> sorted(observing(parse("post(X) :- all(X); all(X) :- p(X), q(X); r(X)@next :- q(X); q(X) :- s(X);"), ["post"]))
    ['all', 'post']
    """
    below: dict[str, set[str]] = {atom.relation: set() for rule in rules for atom in (rule.head, *rule.atoms)}
    derived = {rule.head.relation for rule in rules if not rule.fact}
    for rule in rules:
        if rule.kind != "deductive":
            derived.discard(rule.head.relation)
        below[rule.head.relation].update(atom.relation for atom in rule.atoms)
    others = Counter(name for read in below.values() for name in read)  # who reads it, and is no observer yet
    observers = {name for name in names if name in below}
    pending = list(observers)
    while pending:
        for name in below[pending.pop()]:
            others[name] -= 1
            if not others[name] and name in derived and name not in observers:
                observers.add(name)
                pending.append(name)
    return observers
