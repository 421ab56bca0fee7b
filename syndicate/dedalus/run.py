"""Runs: a program timestep by timestep, each at the cost of what changed.

What an inductive rule derives is there in the next timestep as long as a rule derives it; only changes travel, so that
a frame rule costs nothing for what stays.  A timestep in which nothing can change is not visited.

A message into the past, and a look at a constant time that is still to come, change what was computed before: the run
is repeated with them until it asks for nothing new.  If it never settles, or on what owes itself to itself, there is no
model, as :class:`DedalusParadox` says.

Contract: the result depends on the program, the seed and the schedule alone.

Source: Alvaro et al. 2011b; ``docs/design/dedalus.md``, "Delivery".

Nodes that are down: none of their rules fires, so that they forget even what they kept; unless they keep it.

A node is where the first atom of a rule's body is: its first column.  Such a rule gets one more condition, that its
node is not *down*; which nodes are, and since when, are facts.  What is *resting* keeps what inductive rules have made.
Rules for *observers*, which look on from outside, are as they were.

>>> from syndicate.dedalus.ast import text_of; from syndicate.dedalus.parse import parse
>>> print(text_of(with_crashes(parse("p(X)@next :- p(X);"), Net(crash={"a": 3}, stop="all"), 1)), end="")
p(X)@next :- p(X), notin down(X);
down("a")@3;
down(X)@next :- down(X), notin up(X);
>>> pause = Net(down=[Outage("a", 3, 5, keeps=True)])
>>> print(text_of(with_crashes(parse("p(X)@next :- p(X);"), pause, 1)), end="")
p(X)@next :- p(X), notin down(X);
p(X1)@next :- p(X1), resting(X1);
down("a")@3;
up("a")@4;
pausing("a");
down(X)@next :- down(X), notin up(X);
resting(X) :- down(X), pausing(X);

Contract: rules keep their numbers, by which what is drawn is drawn.

Models: a run that explains itself.

>>> model = Model({"p": {("a",): ((1, 4),)}}, start=1, until=5, messages=[])
>>> print(model.why_not("p", ("b",), 2))
p("b") is not there at 2
  no rule makes it, and it is not given
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final, TypeAlias

from attrs import define, evolve, field, frozen

from syndicate.dedalus.ast import Atom, Constant, Events, Row, Rule, Value, Variable
from syndicate.dedalus.binding import Pattern
from syndicate.dedalus.desugar import fresh
from syndicate.dedalus.lower import NOW, Lowered, arities, lower, sender_of
from syndicate.dedalus.net import Net, Outage, Send
from syndicate.dedalus.schedule import Clock
from syndicate.dedalus.timeline import (
    Chosen,
    Intervals,
    Message,
    Moment,
    RowsAtOnce,
    Spans,
    Timeline,
    check_causality,
    order,
    writable,
)
from syndicate.dedalus.why.absence import WhyNot, suits, why_not
from syndicate.dedalus.why.derivation import DEPTH, RuleInstances, Why, shown, why
from syndicate.dedalus.why.spacetime import diagram
from syndicate.errors import (
    DedalusArithmetic,
    DedalusEndless,
    DedalusParadox,
    EndlessLoop,
    FactError,
    ScheduleError,
    StepFailed,
)
from syndicate.explain.absence import DEPTH_NOT
from syndicate.explain.spacetime import Form
from syndicate.flow.circuit import Circuit
from syndicate.flow.word_tables import TableZSet
from syndicate.flow.zset import ZSet
from syndicate.garbage_collector import CollectorPause
from syndicate.plan import Plan
from syndicate.plan.lowering import Engine

# -------------------------------------------------------------------------------------------------- nodes that are down


@frozen
class Guarded:
    """Rules that heed the relations *down* and *resting*, of which nothing is said yet."""

    rules: list[Rule]
    down: str
    resting: str

    @classmethod
    def of(cls, rules: Sequence[Rule], *, keeping: bool, observers: Collection[str] = ()) -> Guarded:
        """Rules but those for *observers*, which look on; *keeping* says whether anything ever rests."""
        columns = arities(rules)
        down, resting = fresh("down", columns), fresh("resting", columns)
        result = []
        names: dict[str, None] = {}
        for rule in rules:
            place = sender_of(rule)
            alive = () if place is None else (Atom(down, (place,), negated=True),)
            outside = rule.fact or rule.head.relation in observers
            result.append(rule if outside else evolve(rule, body=(*rule.body, *alive)))
            if rule.kind == "next" and rule.head.terms and not outside:
                names[rule.head.relation] = None
        for name in names if keeping else ():
            atom = Atom(name, tuple(Variable(f"X{number}") for number in range(1, columns[name] + 1)))
            result.append(Rule(atom, "next", (atom, Atom(resting, atom.terms[:1]))))
        return cls(result, down, resting)


def with_crashes(rules: Sequence[Rule], net: Net | None, start: int) -> list[Rule]:
    """Rules that heed what a net says of nodes that are down; the same ones if it says nothing of it."""
    outages = list(net.down) if net is not None else []
    if net is not None and net.stop == "all":
        outages += [Outage(node, at) for node, at in net.crash.items()]
    if net is None or not outages:
        return list(rules)
    keeping = any(one.keeps for one in outages)
    guarded = Guarded.of(rules, keeping=keeping, observers=net.observers)
    columns, node = arities(guarded.rules), Variable("X")
    up, pausing = fresh("up", columns), fresh("pausing", columns)
    down, resting = Atom(guarded.down, (node,)), Atom(guarded.resting, (node,))
    result = list(guarded.rules)
    for outage in sorted(outages, key=repr):
        place, since = (Constant(outage.node),), max(outage.since, start)
        if outage.to is not None and outage.to <= since:
            continue
        result.append(Rule(Atom(guarded.down, place, since)))
        if outage.to is not None:
            result.append(Rule(Atom(up, place, outage.to - 1)))
        if outage.keeps:
            result.append(Rule(Atom(pausing, place)))
    result.append(Rule(down, "next", (down, Atom(up, (node,), negated=True))))
    if keeping:
        result.append(Rule(resting, "deductive", (down, Atom(pausing, (node,)))))
    return result


# --------------------------------------------------------------------------------------------------------------- models


@define(eq=False)
class Model(Timeline):
    """What was true in a run, when, and why."""

    def why(self, relation: str, row: Row, time: int, *, depth: int = DEPTH) -> Why:
        """How a row came to be there: its derivation, *depth* levels of it; raises :class:`FactError` if it is not."""
        if not self._fitting(relation, row, time).holds(relation, tuple(row)):
            raise FactError(f"{shown(relation, row)} is not there at {time}: ask why_not")
        return why(RuleInstances(self), relation, row, time, depth)

    def why_not(self, relation: str, row: Pattern, time: int, *, depth: int = DEPTH_NOT) -> WhyNot:
        """What kept a row from being there, *depth* levels of it; ``ast.WILD`` in it is any value.

        Raises :class:`FactError` if it is there.
        """
        there = [one for one in self._fitting(relation, row, time).unsorted(relation) if suits(row, one)]
        if there:
            first: Row = min(there, key=order)
            raise FactError(f"{shown(relation, first)} is there at {time}: ask why")
        return why_not(RuleInstances(self), relation, row, time, depth)

    def _fitting(self, relation: str, row: Pattern, time: int) -> Moment:
        """What is true at a time; raises :class:`FactError` if *row* cannot be one of the relation's rows."""
        moment, arity = self.at(time), arities(self.rules).get(relation, len(row))
        if len(row) != arity:
            raise FactError(f"{relation} has {arity} column{'s' * (arity != 1)}, and {shown(relation, row)} {len(row)}")
        return moment

    def _repr_svg_(self) -> str:
        return self.diagram("svg")

    def diagram(self, form: Form = "text") -> str:
        """Nodes, messages and crashes in space and time, as text, ``dot``, or a ``mermaid`` sequence diagram."""
        return diagram(self, form)


# ----------------------------------------------------------------------------------------------------------------- runs


MAX_STEPS: Final = 1_000_000
MAX_PASSES: Final = 1_000

Rows: TypeAlias = dict[str, set[Row]]
"""Rows by relation."""

Early: TypeAlias = frozenset[tuple[int, str, Row]]
Assumed: TypeAlias = tuple[Early, Early]
"""Arrivals in the past, and what is true at constant times ahead."""

NOTHING_ASSUMED: Final[Assumed] = (frozenset(), frozenset())

StabilityTest: TypeAlias = Callable[[Sequence[Rule], Clock, Events, Model, Assumed], bool]
"""Whether a model does not owe what it assumed to itself; not asked where nothing is assumed."""


def run(
    rules: Sequence[Rule],
    clock: Clock,
    events: Events | None = None,
    *,
    limit: int = MAX_STEPS,
    assumed: Assumed | None = None,
    stable: StabilityTest | None = None,
    engine: Callable[[Circuit], Engine] | None = None,
) -> Model:
    """The model of checked rules in short form under *clock*; *limit* bounds the timesteps that are evaluated.

    *assumed* are the arrivals in the past, and what is true at constant times ahead, of the first try: from nothing, if
    it is not given, and if that leads nowhere from what a schedule says of arrivals in the past.  *stable* says
    whether a model does not owe them to itself.  *engine* makes what runs the circuit of each pass.

    Raises :class:`DedalusParadox`, :class:`DedalusEndless`, :class:`DedalusArithmetic`, :class:`ScheduleError`.
    """
    if clock.schedule is not None:
        rules = with_crashes(rules, clock.schedule.net, clock.start)
    tries = [assumed or NOTHING_ASSUMED]
    if assumed is None and clock.schedule is not None and (said := clock.into_the_past()):
        tries.append((said, frozenset()))
    refused: list[Exception] = []
    for one in tries:
        try:
            return _model(rules, clock, events or {}, limit, one, stable, engine)
        except (DedalusParadox, ScheduleError) as error:
            refused.append(error)
    raise refused[0]


def _model(
    rules: Sequence[Rule],
    clock: Clock,
    events: Events,
    limit: int,
    assumed: Assumed,
    stable: StabilityTest | None,
    engine: Callable[[Circuit], Engine] | None,
) -> Model:
    """The model to which passes lead from what is assumed at first."""
    seen: set[Assumed] = set()
    while assumed not in seen:
        if len(seen) >= MAX_PASSES:
            raise DedalusParadox(f"messages into the past have not settled after {MAX_PASSES} runs: use @later")
        seen.add(assumed)
        once = Pass(rules, clock, events, *assumed, limit, engine)
        try:
            once.run()
        finally:
            if engine is not None:
                once.lowered.plan.close()
        demands = once.demands()
        if demands == assumed:
            model = once.model()
            if stable is not None and assumed != NOTHING_ASSUMED and not stable(rules, clock, events, model, assumed):
                raise DedalusParadox(
                    _paradox(assumed, "what arrives in the past, or is read of a time to come, is its own only cause")
                )
            if clock.schedule is not None:
                _all_used(clock)
            if clock.delivery == "causal":
                check_causality(once.messages)
            return model
        assumed = demands
    raise DedalusParadox(_paradox(assumed, "what arrives in the past, or is read of a time to come, prevents itself"))


def _paradox(assumed: Assumed, why: str) -> str:
    early, ahead = assumed
    facts = [Atom(name, tuple(map(Constant, row)), time) for time, name, row in sorted(early | ahead, key=repr)]
    shown = ", ".join(map(str, facts[:3]))
    return f"there is no model: {why} ({shown or 'nothing any more'}). Use @later, or the delivery 'later'"


def _all_used(clock: Clock) -> None:
    unused = clock.unused()
    if unused:
        name, row, sent = unused[0]
        more = f" (and {len(unused) - 1} more entries)" if len(unused) > 1 else ""
        atom = Atom(name, tuple(map(Constant, row)))
        raise ScheduleError(f"the schedule names {atom} sent at {sent}, but no such message is sent{more}")


def stepped(plan: Plan, time: int, changes: Mapping[str, dict[Row, int]]) -> Mapping[str, ZSet]:
    """A step of a plan at a time; raises :class:`DedalusArithmetic`, :class:`DedalusEndless`.

    The plan is then as it was.  The rows are of values of Dedalus, which are their own keys, and no weight is 0.
    """
    try:
        return plan.run({name: ZSet.adopt(weights) for name, weights in changes.items()})
    except StepFailed as error:
        if isinstance(error.__cause__, DedalusArithmetic):
            why = str(error.__cause__)
        elif isinstance(error.__cause__, TypeError):  # the only functions left that can raise it
            why = f"sum and avg are of numbers{f', and {error.element} is not one' if error.element else ''}"
        else:
            raise
        rule = plan.program.labelled(error.label)
        site, text = (rule.origin, rule.text) if rule is not None and rule.text else ("", "")
        where, what = (f"{site}: ", f"\n    {text}") if text else ("", "")
        raise DedalusArithmetic(f"{where}at time {time}: {why}{what}", rule=text, site=site, time=time) from None
    except EndlessLoop:
        raise DedalusEndless(
            f"the rules derive ever more within the timestep {time}: limit what is computed by a comparison", time=time
        ) from None


def _side(time: int, constant: int) -> int:
    return (time > constant) - (time < constant)


@define(eq=False)
class Pass:
    """A run once over, from the start, with the events, and what is assumed of the future."""

    rules: Sequence[Rule]
    clock: Clock
    facts: Events
    assumed_early: Early
    assumed_ahead: Early
    limit: int
    engine: Callable[[Circuit], Engine] | None = None
    lowered: Lowered = field(init=False)
    events: dict[int, Rows] = field(factory=dict)
    times: list[int] = field(factory=list)
    always: Rows = field(factory=dict)
    standing: list[Mapping[str, Collection[Row]]] = field(factory=list)
    """What is there at all times, by relation."""
    support: dict[str, dict[Row, int]] = field(init=False)
    present: Rows = field(init=False)
    intervals: Intervals = field(init=False)
    sending: dict[int, dict[Row, set[Value]]] = field(init=False)
    awake: dict[str, int] = field(init=False)
    messages: list[Message] = field(factory=list)
    arrived: set[tuple[int, str, Row]] = field(factory=set)
    visited: int = 0
    last: int | None = None
    """The last time at which the plan was stepped."""

    def __attrs_post_init__(self) -> None:
        self.clock.chosen.clear()
        self.clock.used.clear()
        self.lowered = lower(self.rules, self.clock.choose, self.engine)
        self.standing.append(self.always)
        self.support = {name: {} for name in self.lowered.arities}
        self.present = {name: set() for name in self.lowered.arities}
        self.intervals = {name: {} for name in self.lowered.arities}
        self.sending = {number: defaultdict(set) for number in self.lowered.heads}
        self.awake = dict.fromkeys(self.lowered.live, 0)
        for rule in self.rules:
            if rule.fact:
                row = tuple(term.value for term in rule.head.terms if isinstance(term, Constant))
                if rule.head.time is None:
                    self.always.setdefault(rule.head.relation, set()).add(row)
                elif isinstance(rule.head.time, int):
                    self.at(rule.head.time, rule.head.relation).add(row)
        for time, relations in self.facts.items():
            for name, rows in relations.items():
                if rows:
                    self.at(time, name).update(rows)
        for time, name, row in self.assumed_early:
            self.at(time, name).add(row)
        net = self.clock.schedule.net if self.clock.schedule is not None else None
        if net is not None and self.lowered.arities.get("crash") == 3:
            self.always.setdefault("crash", set()).update(net.crashes())
        for constants in self.lowered.constants.values():
            for time in constants:
                heappush(self.times, time)
                heappush(self.times, time + 1)

    def demands(self) -> Assumed:
        """What is to be assumed: arrivals when a message is sent, or before, and what is true at constant times that
        are read before they have come.
        """
        ahead = [
            (time, name, row)
            for name, times in self.lowered.constants.items()
            for time in times
            if self.clock.start < time <= self.clock.until
            for row, spans in self.intervals[name].items()
            if any(since <= time < to for since, to in spans)
        ]
        return frozenset(self.arrived), frozenset(ahead)

    def at(self, time: int, name: str) -> set[Row]:
        """The rows of a relation that are there at one time, to be added to."""
        if time not in self.events:
            heappush(self.times, time)
            self.events[time] = {}
        return self.events[time].setdefault(name, set())

    # -------------------------------------------------------------------------------------------------- timesteps

    def run(self) -> None:
        """Evaluate all timesteps in which anything can change."""
        time: int | None = self.clock.start
        touched = self.always
        while time is not None and time <= self.clock.until:
            self.visited += 1
            if self.visited > self.limit:
                raise DedalusEndless(
                    f"{self.limit} timesteps were evaluated, and at {time} the program still does not rest: "
                    "see which rules keep it busy (restless), or end the run earlier",
                    time=time,
                )
            with CollectorPause(ageing=True):
                touched = self.step(time, touched)
            time = self.next(time, touched)

    def next(self, time: int, touched: Rows) -> int | None:
        """The next timestep in which anything can change."""
        busy = any(self.sending.values()) or any(self.awake.values())
        if busy or any(any(self.changing(name, rows, time + 1)) for name, rows in touched.items()):
            return time + 1
        while self.times and self.times[0] <= time:
            heappop(self.times)
        return self.times[0] if self.times else None

    def here(self, time: int) -> Rows:
        """What is there at one time, whatever is there at others."""
        return self.events.get(time, {})

    def changing(self, name: str, rows: set[Row], time: int) -> tuple[set[Row], set[Row]]:
        """The touched rows of a relation that come at a time, and those that go."""
        missing = rows.difference(self.support[name])  # one by one: at the cost of what is asked, not of what is there
        for source in (*self.standing, self.here(time)):
            if missing and name in source:
                missing = missing.difference(source[name])
        present = self.present[name]
        coming = rows - present
        return coming - missing if missing else coming, missing & present

    def moving(self, time: int, touched: Rows) -> dict[str, tuple[set[Row], set[Row]]]:
        """What comes at a time, and what goes."""
        here, moving = self.here(time), {}
        for name, rows in {**touched, **here}.items():
            both = name in touched and name in here
            moving[name] = self.changing(name, touched[name] | rows if both else rows, time)
        return moving

    def changes(self, time: int, moving: Mapping[str, tuple[set[Row], set[Row]]]) -> dict[str, dict[Row, int]]:
        """What a plan is given at a time: what comes, what goes, and the time."""
        changes = {
            f"+{name}": {**dict.fromkeys(coming, 1), **dict.fromkeys(going, -1)}
            for name, (coming, going) in moving.items()
        }
        if self.lowered.timed:
            self.set_time(time, changes)
        return changes

    def evaluate(self, time: int, changes: Mapping[str, dict[Row, int]]) -> Mapping[str, ZSet]:
        """What changes by a timestep in which the plan is given it; where it raises, the plan is as it was."""
        return stepped(self.lowered.plan, time, changes)

    def step(self, time: int, touched: Rows) -> Rows:
        """Evaluate a timestep; the result is which rows change in the next, if nothing else comes."""
        moving = self.moving(time, touched)
        out = self.evaluate(time, self.changes(time, moving))
        self.last = time
        for name, (coming, going) in moving.items():
            self.present[name] |= coming
            self.present[name] -= going
        self.note(time, out, moving)
        after = {name: set(rows) for name, rows in self.here(time).items()}
        for name in self.lowered.live:
            self.awake[name] += sum(weight for _, weight in out[name].items())
        for number, rule in self.lowered.heads.items():
            if rule.kind == "next":
                name = rule.head.relation
                after.setdefault(name, set()).update(self.lean(name, out[f"next {number}"].items()))
            else:
                self.send(time, number, rule, out[f"send {number}"].items())
        return {
            name: coming | going
            for name, rows in after.items()
            for coming, going in [self.changing(name, rows, time + 1)]
        }

    def lean(self, name: str, changed: Iterable[tuple[Row, int]]) -> Iterable[Row]:
        """Count by how many inductive rules rows are derived; the result is which rows."""
        rows, support = dict(changed), self.support[name]
        if support.keys().isdisjoint(rows):  # all is new, as in the first timestep of a large program
            support.update(rows)
            return rows
        for row, weight in rows.items():
            count = support.get(row, 0) + weight
            if count:
                support[row] = count
            else:
                del support[row]
        return rows

    def note(self, time: int, out: Mapping[str, ZSet], moving: Mapping[str, tuple[set[Row], set[Row]]]) -> None:
        """Take down what is true from a time on, and what no longer is; rows that were given, as they were given."""
        begun = ((time, self.clock.until + 1),)
        for name in self.intervals:
            inputs, change = moving[name][0] if name in moving else set[Row](), out[name]
            if not inputs and not self.intervals[name] and isinstance(change, TableZSet):
                self.intervals[name] = RowsAtOnce(change, begun)
                continue
            first, _ = next(change.items(), (None, 0))
            copied = next(iter(inputs), None) is not first  # a kernel makes rows of its own
            held = self.intervals[name]
            rows: dict[Row, Spans] = held if isinstance(held, dict) else writable(self.intervals, name)
            if not rows:
                fresh = {row: begun for row, _ in change.items()}
                if copied:
                    rows.update(dict.fromkeys(filter(fresh.__contains__, inputs), begun))
                if len(rows) < len(fresh):
                    rows.update(fresh)
                continue
            originals: dict[Row, Row] = dict(zip(inputs, inputs, strict=True)) if copied else {}
            for row, weight in change.items():
                entry = rows.get(row)
                if entry is None:
                    rows[originals.get(row) or row] = begun
                    continue
                spans = entry if isinstance(entry, list) else list(entry)  # a tuple is shared by all that came with it
                rows[row] = spans
                if weight < 0:
                    spans[-1] = (spans[-1][0], time)
                else:
                    spans += begun

    def set_time(self, time: int, changes: dict[str, dict[Row, int]]) -> None:
        """Set the clock, and what is read of constant times."""
        before = self.last
        changes[NOW] = {(time,): 1} if before is None else {(before,): -1, (time,): 1}
        for name, times in self.lowered.constants.items():
            for constant in times:
                if before is None or _side(before, constant) != _side(time, constant):
                    rows_before = self.read(name, constant, before) if before is not None else set()
                    rows = self.read(name, constant, time)
                    changes[f"+{name}@{constant}"] = {row: 1 if row in rows else -1 for row in rows ^ rows_before}

    def read(self, name: str, constant: int, time: int) -> set[Row]:
        """What is given at a time about a constant one: what was true if it is over, assumed if it is to come."""
        if time < constant:
            return {row for at, of, row in self.assumed_ahead if (of, at) == (name, constant)}
        held = self.intervals[name].items() if time > constant else ()
        return {row for row, spans in held if any(since <= constant < to for since, to in spans)}

    def inputs(self) -> dict[str, set[Row]]:
        """What the plan is given now: what rules within a timestep do not make."""
        facts = {f"+{name}": set(rows) for name, rows in self.present.items()}
        if self.lowered.timed and self.last is not None:
            facts[NOW] = {(self.last,)}
            for name, times in self.lowered.constants.items():
                facts |= {f"+{name}@{constant}": self.read(name, constant, self.last) for constant in times}
        return facts

    def send(self, time: int, number: int, rule: Rule, changed: Iterable[tuple[Row, int]]) -> None:
        """Send what a rule derives at a time: whether it changed or not."""
        current = self.sending[number]
        for row, weight in changed:
            *head, sender = row
            key = tuple(head)
            if weight > 0:
                current[key].add(sender)
            else:
                current[key].discard(sender)
                if not current[key]:
                    del current[key]
        for row in sorted(current, key=order):
            senders = tuple(sorted(current[row], key=lambda s: order((s,))))
            name = rule.head.relation
            send = Send(number, name, row, time, senders, rule.kind == "later")
            arrive = self.clock.arrivals(send)
            self.messages.append(Message(name, row, time, arrive, number, senders, self.clock.unknown(send)))
            for at in arrive:
                if at <= time:
                    self.arrived.add((at, name, row))
                elif at <= self.clock.until:
                    self.at(at, name).add(row)

    def choices(self) -> list[Chosen]:
        """What was chosen, in order of time."""
        return [
            Chosen(number, self.rules[number].head.relation, time, tuple(sorted(rows, key=order)))
            for (number, time), groups in sorted(self.clock.chosen.items(), key=lambda item: (item[0][1], item[0][0]))
            if (rows := [row for group in groups.values() for row in group])
        ]

    def model(self) -> Model:
        """What was true."""
        choices = self.choices() if self.clock.chosen else []
        net = self.clock.schedule.net if self.clock.schedule is not None else None
        start, until, messages = self.clock.start, self.clock.until, self.messages
        return Model(self.intervals, start, until, messages, self.visited, choices, self.rules, self.facts, net)
