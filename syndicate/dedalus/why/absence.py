"""Why something is not there: how far each rule that could have made it gets, and what stops it.

A rule is followed to the first part of its body that fails, for the binding that gets furthest; an atom that is missing
there is explained in turn, to a depth.  What would be kept, had it ever been there, is asked for at the time at which a
rule gets furthest.  A message that was sent may have been lost, or arrive at another time.

>>> from syndicate.dedalus import Net, Program
>>> program = Program.parse('''
...     bcast("a", "hi")@1;  node("a", "b");
...     log(M, P)@async :- bcast(N, P), node(N, M);
... ''')
>>> print(program.run(until=3, net=Net(drop=[("a", "b", 1)])).why_not("log", ("b", "hi"), 2))
log("b", "hi") is not there at 2
  log(M, P)@async :- bcast(N, P), node(N, M);
    sent at 1 by "a", and lost by drop("a","b",1)
>>> print(program.run(until=3).why_not("log", ("b", "ho"), 2))
log("b", "ho") is not there at 2
  log(M, P)@async :- bcast(N, P), node(N, M);
    not sent at 1: no bcast(N, "ho")@1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from attrs import define, evolve, field, frozen

from syndicate.dedalus.ast import Aggregate, Atom, Comparison, Constant, Row, Rule, Value, Variable, Wildcard, variables
from syndicate.dedalus.binding import (
    Binding,
    Body,
    Pattern,
    compared,
    is_grouped,
    matching,
    unified,
    value_of,
)
from syndicate.dedalus.timeline import Message
from syndicate.dedalus.why.derivation import Holding, RuleInstances, Why, filled, is_frame, shown, why
from syndicate.explain import absence as explain
from syndicate.explain.absence import DEPTH_NOT

Stop: TypeAlias = Literal["missing", "present", "compared", "lost", "elsewhen", "early", "head", "choice", "total"]


def suits(pattern: Pattern, row: Row) -> bool:
    """Whether a row is one of a pattern.

    >>> from syndicate.dedalus.ast import WILD
    >>> suits((WILD, 1), ("a", 1)), suits((WILD, 2), ("a", 1))
    (True, False)
    """
    return all(isinstance(one, Wildcard) or one == value for one, value in zip(pattern, row, strict=True))


@frozen(eq=False)
class Attempt(explain.Attempt):
    """What a *rule* came to: *stop* says what failed *at* a time, for the *binding* that got furthest.

    ``missing``: *row* of *relation* is not there, or nothing like *goal*; ``present``: it is, and must not;
    ``compared``: a comparison does not hold; ``lost`` and ``elsewhen``: the *messages* were sent, and did not arrive
    then; ``early``: the body would be before the start; ``head``: the rule makes other rows; ``choice``, ``total``: so
    do the bindings that hold.
    """

    because: WhyNot | Why | None = None
    rule: Rule = field(kw_only=True)
    at: int = field(kw_only=True)
    binding: tuple[tuple[str, Value], ...] = ()
    relation: str = ""
    row: Pattern = ()
    goal: Atom | Comparison | None = None
    messages: tuple[Message, ...] = ()
    losses: tuple[str, ...] = ()

    def heading(self) -> Iterator[str]:
        """The rule, and what it came to."""
        yield str(self.rule)
        sending = f"not sent at {self.at}: " if self.rule.kind in ("async", "later") else ""
        match self.stop:
            case "missing":
                yield f"  {sending}no {self.goal}"
            case "present":
                yield f"  {sending}{shown(self.relation, self.row, self.at)} is there"
            case "compared":
                assert isinstance(self.goal, Comparison)
                yield f"  {sending}{Holding(self.goal, self.binding)} does not hold at {self.at}"
            case "early":
                yield f"  time does not begin before {self.at + 1}"
            case "head":
                yield f"  {sending}its body holds at {self.at} for other rows only"
            case "choice":
                yield f"  {sending}another was chosen at {self.at}"
            case "total":
                yield f"  {sending}the total is another at {self.at}"
            case _:
                for message, loss in zip(self.messages, self.losses, strict=True):
                    by = " or ".join(str(Constant(sender)) for sender in message.senders if sender != "")
                    times = " and ".join(map(str, message.arrive))
                    gone = "and nobody knows when it arrived" if message.unknown else f"and lost{loss}"
                    fate = f"arriving at {times}" if times else gone
                    yield f"  sent at {message.sent}{by and f' by {by}'}, {fate}"

    def place(self) -> str:
        """Where the rule is written."""
        return str(self.rule.place)

    def details(self) -> dict[str, object]:
        """The time, and the binding that got furthest."""
        return {"at": self.at, "binding": dict(self.binding)}


@frozen(eq=False, repr=False)
class WhyNot(explain.WhyNot):
    """Why no *row*, in which ``_`` is any value, is in *relation* at *time*: what each rule came to.

    *stated* are the times at which facts or events give it; with *deeper*, nobody asked further.
    """

    attempts: tuple[Attempt, ...] = ()
    time: int = 0
    stated: tuple[int, ...] = ()
    deeper: bool = False

    def title(self) -> str:
        """That it is not there at the time."""
        return f"{shown(self.relation, self.row)} is not there at {self.time}"

    def notes(self) -> list[str]:
        """When it is given, and whether there is more."""
        lines = [f"it is given at {', '.join(map(str, self.stated))}"] if self.stated else []
        return ["..."] * self.deeper + lines

    def nothing(self) -> str:
        """If there is no rule."""
        return "no rule makes it, and it is not given"


def why_not(history: RuleInstances, relation: str, row: Pattern, time: int, depth: int = DEPTH_NOT) -> WhyNot:
    """Why a row is not there, *depth* levels of it."""
    return _Asking(history, set()).explain(relation, row, time, depth)


@frozen
class Reached:
    """How far a binding got: *done* parts of the body, and what failed then."""

    done: int
    binding: Binding
    failed: Atom | Comparison | None
    hit: Row | None = None


@define(eq=False)
class _Asking:
    history: RuleInstances
    asked: set[tuple[str, Pattern, int]]

    def explain(self, relation: str, row: Pattern, time: int, depth: int) -> WhyNot:
        model = self.history.model
        times = {
            rule.head.time
            for rule in model.rules
            if rule.fact and rule.head.relation == relation and isinstance(rule.head.time, int)
            if suits(row, tuple(term.value for term in rule.head.terms if isinstance(term, Constant)))
        }
        times |= {at for at, rows in model.events.items() if any(suits(row, one) for one in rows.get(relation, ()))}
        if depth <= 0 or (relation, row, time) in self.asked:
            return WhyNot(relation, row, time=time, deeper=True)
        self.asked.add((relation, row, time))
        attempts = [
            attempt
            for number, rule in enumerate(model.rules)
            if rule.head.relation == relation and not rule.fact
            if (attempt := self.attempt(number, rule, row, time, depth)) is not None
        ]
        return WhyNot(relation, row, attempts=tuple(attempts), time=time, stated=tuple(sorted(times)))

    def attempt(self, number: int, rule: Rule, row: Pattern, time: int, depth: int) -> Attempt | None:
        """What a rule came to; None if it makes no such row."""
        start = unified(rule.head, row)
        if start is None:
            return None
        model, at = self.history.model, time - (rule.kind != "deductive")
        if rule.kind in ("async", "later"):
            sent = tuple(m for m in model.messages if m.rule == number and m.sent < time and suits(row, m.row))
            if sent:
                stop: Stop = "elsewhen" if any(m.arrive for m in sent) else "lost"
                return Attempt(stop, rule=rule, at=at, messages=sent, losses=tuple(map(self.loss, sent)))
        if at < model.start:
            return Attempt("early", rule=rule, at=at)
        reached: list[tuple[int, int, Reached]] = []
        for when in self.times(rule, at):
            binding_then = {**{name.name: when for name in rule.times}, **start}
            if all(binding_then[name.name] == when for name in rule.times):
                best = self.furthest(number, binding_then, row, when)
                if when == at or best.failed is not None:  # else it was there then, and has gone since
                    reached.append((best.done, when, best))
        if not reached:
            return Attempt("head", rule=rule, at=at)
        _, at, best = max(reached, key=lambda one: one[:2])
        if isinstance(best.failed, Atom) and best.hit is None and is_frame(self.history.bodies[number]):
            return None  # it was never there to be kept
        return self.failure(rule, at, best, depth)

    def failure(self, rule: Rule, at: int, best: Reached, depth: int) -> Attempt:
        """What stops the binding that got furthest."""
        binding = tuple(sorted(pair for pair in best.binding.items() if not pair[0].startswith("=")))
        goal = best.failed
        if goal is None:
            stop: Stop = "head" if not is_grouped(rule) else "total" if rule.aggregates else "choice"
            return Attempt(stop, rule=rule, at=at, binding=binding)
        if isinstance(goal, Comparison):
            if isinstance(goal.left, Variable) and goal.left.name.startswith("="):  # a column that is computed
                goal = evolve(goal, left=Constant(best.binding[goal.left.name]))
            names = {v.name for v in variables(goal)}
            used = tuple(pair for pair in binding if pair[0] in names)
            return Attempt("compared", rule=rule, at=at, binding=used, goal=goal)
        when = goal.time if isinstance(goal.time, int) else at
        if best.hit is not None:
            reason = why(self.history, goal.relation, best.hit, when, depth - 1)
            return Attempt("present", reason, rule=rule, at=when, binding=binding, relation=goal.relation, row=best.hit)
        missing, because = filled(goal, best.binding), None
        if not any(suits(missing, one) for one in self.history.table(goal.relation, when).rows):
            deeper = self.explain(goal.relation, missing, when, depth - 1)
            if deeper.attempts or deeper.stated or deeper.deeper:
                because = deeper
        lacking = evolve(_substituted(goal, best.binding), time=when)
        return Attempt(
            "missing", because, rule=rule, at=when, binding=binding, relation=goal.relation, row=missing, goal=lacking
        )

    def times(self, rule: Rule, at: int) -> list[int]:
        """When to look at a body: of what is kept, at all times at which something in it begins, up to the last."""
        lasting = any(body.rule.head.relation == rule.head.relation and is_frame(body) for body in self.history.bodies)
        if not lasting:
            return [at]
        model = self.history.model
        begun = {
            time
            for atom in rule.atoms
            for spans in model.intervals.get(atom.relation, {}).values()
            for span in spans
            for time in (span[0], span[1] - 1)  # its last moment may be the one at which it was deleted
        }
        return sorted({at, *(time for time in begun if model.start <= time <= at)})

    def loss(self, message: Message) -> str:
        """What a message was lost by."""
        net = self.history.model.net
        if net is None or message.arrive:
            return ""
        to = message.row[0] if message.row else None
        causes = dict.fromkeys(filter(None, (net.cause(sender, to, message.sent) for sender in message.senders)))
        return " by " + " and ".join(causes) if causes else ""

    def furthest(self, number: int, start: Binding, row: Pattern, at: int) -> Reached:
        """The binding that gets furthest, and what it fails at."""
        body, read = self.history.bodies[number], self.history.read(at)
        plan = body.plan(tuple(start))
        best = Reached(-1, start, None)
        waiting = [(0, plan.start(tuple(start.values())), plan.first)]
        while waiting:
            step, bound, asked = waiting.pop()
            wrong = next((goal for goal in asked if not plan.compared([goal], [bound])), None)
            if wrong is not None:
                best = max(best, Reached(2 * step + 1, plan.binding(bound), wrong), key=_done)
            elif step == len(plan.steps):
                best = max(best, self.last(body, plan.binding(bound), row, at, 2 * step + 2), key=_done)
            else:
                next_step = plan.steps[step]
                longer = next_step.longer(read(next_step.atom), [bound])
                if not longer:
                    best = max(best, Reached(2 * step + 2, plan.binding(bound), next_step.atom), key=_done)
                waiting += [(step + 1, one, next_step.asked) for one in reversed(longer)]
        return best

    def last(self, body: Body, binding: Binding, row: Pattern, at: int, done: int) -> Reached:
        """What fails behind the positive atoms."""
        read = self.history.read(at)
        for goal in body.late:
            if not compared(goal, binding):
                return Reached(done, binding, goal)
            done += 1
        for atom in body.negative:
            matches = matching(atom, read(atom), binding)
            if matches:
                return Reached(done, binding, atom, matches[0])
            done += 1
        terms = [(n, term) for n, term in enumerate(body.rule.head.terms) if not isinstance(term, Aggregate)]
        fits = all(isinstance(row[n], Wildcard) or value_of(term, binding) == row[n] for n, term in terms)
        return Reached(done + fits, binding, None)


def _done(reached: Reached) -> int:
    return reached.done


def _substituted(atom: Atom, binding: Binding) -> Atom:
    """An atom with the values that are known."""
    pairs = zip(atom.terms, filled(atom, binding), strict=True)
    return evolve(atom, terms=tuple(term if isinstance(v, Wildcard) else Constant(v) for term, v in pairs))
