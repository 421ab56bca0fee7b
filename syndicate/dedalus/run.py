"""Runs: a program timestep by timestep, each at the cost of what changed.

What an inductive rule derives is there in the next timestep as long as a rule derives it; only changes travel, so that
a frame rule costs nothing for what stays.  A timestep in which nothing can change is not visited.

A message into the past, and a look at a constant time that is still to come, change what was computed before: the run
is repeated with them until it asks for nothing new.  If it never settles, or on what owes itself to itself, there is no
model, as :class:`DedalusParadox` says.

Contract: the result depends on the program, the seed and the schedule alone.

Source: reference/dedalus.md, sections 1.1, 5.3 and 5.4; seed 002.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import repeat
from typing import Any, Final, TypeAlias

from attrs import define, field

from syndicate.dedalus.ast import Atom, Constant, Row, Rule, Value
from syndicate.dedalus.causality import check_causality
from syndicate.dedalus.crash import with_crashes
from syndicate.dedalus.lower import NOW, Lowered, lower
from syndicate.dedalus.model import Chosen, Intervals, Message, Model, order
from syndicate.dedalus.schedule import Clock, Send
from syndicate.errors import DedalusArithmetic, DedalusEndless, DedalusParadox, EndlessLoop, ScheduleError, StepFailed
from syndicate.flow.circuit import Circuit
from syndicate.plan import Plan

Facts: TypeAlias = Mapping[int, Mapping[str, Iterable[Row]]]
"""Events from outside: by time and relation."""

MAX_STEPS: Final = 1_000_000
MAX_PASSES: Final = 1_000
Early: TypeAlias = frozenset[tuple[int, str, Row]]
Assumed: TypeAlias = tuple[Early, Early]
"""Arrivals in the past, and what is true at constant times ahead."""

Founded: TypeAlias = Callable[[Sequence[Rule], Clock, Facts, Model, Assumed], bool]
"""Whether a model does not owe what it assumed to itself."""


def run(
    rules: Sequence[Rule],
    clock: Clock,
    events: Facts | None = None,
    *,
    limit: int = MAX_STEPS,
    assumed: Assumed | None = None,
    founded: Founded | None = None,
    engine: Callable[[Circuit], Any] | None = None,
) -> Model:
    """The model of checked rules in short form under *clock*; *limit* bounds the timesteps that are evaluated.

    *assumed* are the arrivals in the past, and what is true at constant times ahead, of the first try: from nothing, if
    it is not given, and if that leads nowhere from what a schedule says of arrivals in the past.  *founded* says
    whether a model does not owe them to itself.  *engine* makes what runs the circuit of each pass.

    Raises :class:`DedalusParadox`, :class:`DedalusEndless`, :class:`DedalusArithmetic`, :class:`ScheduleError`.
    """
    rules = with_crashes(rules, clock.schedule.net if clock.schedule is not None else None, clock.start)
    tries = [assumed or (frozenset(), frozenset())]
    if assumed is None and (said := clock.into_the_past()):
        tries.append((said, frozenset()))
    refused: list[Exception] = []
    for one in tries:
        try:
            return _model(rules, clock, events or {}, limit, one, founded, engine)
        except (DedalusParadox, ScheduleError) as error:
            refused.append(error)
    raise refused[0]


def _model(
    rules: Sequence[Rule],
    clock: Clock,
    events: Facts,
    limit: int,
    assumed: Assumed,
    founded: Founded | None,
    engine: Callable[[Circuit], Any] | None,
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
            once.lowered.plan.close()
        if (once.early, once.ahead) == assumed:
            model = once.model()
            if founded is not None and not founded(rules, clock, events, model, assumed):
                raise DedalusParadox(
                    _paradox(assumed, "what arrives in the past, or is read of a time to come, is its own only cause")
                )
            _all_used(clock)
            if clock.delivery == "causal":
                check_causality(once.messages)
            return model
        assumed = once.early, once.ahead
    raise DedalusParadox(_paradox(assumed, "what arrives in the past, or is read of a time to come, prevents itself"))


def _paradox(assumed: Assumed, why: str) -> str:
    early, ahead = assumed
    facts = [Atom(name, tuple(map(Constant, row)), time) for time, name, row in sorted(early | ahead, key=repr)]
    told = ", ".join(map(str, facts[:3]))
    return f"there is no model: {why} ({told or 'nothing any more'}). Use @later, or the delivery 'later'"


def _all_used(clock: Clock) -> None:
    unused = clock.unused()
    if unused:
        name, row, sent = unused[0]
        more = f" (and {len(unused) - 1} more entries)" if len(unused) > 1 else ""
        told = Atom(name, tuple(map(Constant, row)))
        raise ScheduleError(f"the schedule names {told} sent at {sent}, but no such message is sent{more}")


def stepped(plan: Plan, time: int, given: Mapping[str, Mapping[Row, int]]) -> Mapping[str, Any]:
    """A step of a plan at a time; raises :class:`DedalusArithmetic`, :class:`DedalusEndless`."""
    try:
        return plan.step(given)
    except StepFailed as error:
        if isinstance(error.__cause__, DedalusArithmetic):
            raise DedalusArithmetic(f"at time {time}: {error.__cause__}") from None
        if isinstance(error.__cause__, TypeError):  # the only functions left that can raise it
            raise DedalusArithmetic(f"at time {time}: sum and avg are of numbers: {error}") from None
        raise
    except EndlessLoop:
        raise DedalusEndless(
            f"the rules derive ever more within the timestep {time}: limit what is computed by a comparison"
        ) from None


@define(eq=False)
class Pass:
    """A run once over, from the start: what it takes for granted of the future is given."""

    rules: Sequence[Rule]
    clock: Clock
    given: Facts
    early_given: Early
    ahead_given: Early
    limit: int
    engine: Callable[[Circuit], Any] | None = None
    lowered: Lowered = field(init=False)
    events: dict[int, set[tuple[str, Row]]] = field(factory=lambda: defaultdict(set))
    times: list[int] = field(factory=list)
    always: set[tuple[str, Row]] = field(factory=set)
    support: dict[tuple[str, Row], int] = field(factory=dict)
    present: set[tuple[str, Row]] = field(factory=set)
    intervals: Intervals = field(factory=dict)
    sending: dict[int, dict[Row, set[Value]]] = field(factory=lambda: defaultdict(lambda: defaultdict(set)))
    awake: dict[str, int] = field(factory=lambda: defaultdict(int))
    messages: list[Message] = field(factory=list)
    arrived: set[tuple[int, str, Row]] = field(factory=set)
    visited: int = 0
    told: int | None = None
    phases: dict[tuple[str, int], int] = field(factory=dict)
    assumed: dict[tuple[str, int], set[Row]] = field(factory=lambda: defaultdict(set))

    def __attrs_post_init__(self) -> None:
        self.clock.chosen.clear()
        self.clock.used.clear()
        self.lowered = lower(self.rules, self.clock.choose, self.engine)
        self.intervals = {name: {} for name in self.lowered.arities}
        for rule in self.rules:
            if rule.fact:
                row = tuple(term.value for term in rule.head.terms if isinstance(term, Constant))
                if rule.head.time is None:
                    self.always.add((rule.head.relation, row))
                elif isinstance(rule.head.time, int):
                    self.event(rule.head.time, rule.head.relation, row)
        for time, relations in self.given.items():
            for name, rows in relations.items():
                if rows:
                    self.visit(time)
                    self.events[time].update(zip(repeat(name), rows))
        for time, name, row in self.early_given:
            self.event(time, name, row)
        net = self.clock.schedule.net if self.clock.schedule is not None else None
        if net is not None and self.lowered.arities.get("crash") == 3:
            self.always |= {("crash", row) for row in net.crashes()}
        for constants in self.lowered.constants.values():
            for time in constants:
                self.visit(time)
                self.visit(time + 1)

    @property
    def early(self) -> Early:
        """The messages that arrive when they are sent, or before."""
        return frozenset(self.arrived)

    @property
    def ahead(self) -> Early:
        """What is true at constant times that are read before they have come."""
        return frozenset(
            (time, name, row)
            for name, times in self.lowered.constants.items()
            for time in times
            if self.clock.start < time <= self.clock.until
            for row, spans in self.intervals[name].items()
            if any(since <= time < to for since, to in spans)
        )

    def event(self, time: int, name: str, row: Row) -> None:
        """Let a row be there at one time."""
        if time not in self.events:
            self.visit(time)
        self.events[time].add((name, row))

    def visit(self, time: int) -> None:
        """Let a timestep be evaluated."""
        if self.clock.start <= time <= self.clock.until:
            heappush(self.times, time)

    # -------------------------------------------------------------------------------------------------- timesteps

    def run(self) -> None:
        """Evaluate all timesteps in which anything can change."""
        time: int | None = self.clock.start
        touched = set(self.always)
        while time is not None and time <= self.clock.until:
            self.visited += 1
            if self.visited > self.limit:
                raise DedalusEndless(
                    f"{self.limit} timesteps were evaluated, and at {time} the program still does not rest: "
                    "see which rules keep it busy (restless), or end the run earlier"
                )
            collecting = gc.isenabled()
            gc.disable()  # as a step of a circuit does: what it makes stays; walking it takes a third of a large one
            try:
                touched = self.step(time, touched)
            finally:
                if collecting:
                    gc.enable()
            time = self.next(time, touched)

    def next(self, time: int, touched: set[tuple[str, Row]]) -> int | None:
        """The next timestep in which anything can change."""
        busy = any(self.sending.values()) or any(self.awake.values())
        if busy or any(self.changing(time + 1, touched)):
            return time + 1
        while self.times and self.times[0] <= time:
            heappop(self.times)
        return self.times[0] if self.times else None

    def missing(self, facts: set[tuple[str, Row]], time: int) -> set[tuple[str, Row]]:
        """Those of the facts that are not given to the plan at a time."""
        rest = facts.difference(self.support)  # one by one: each is at the cost of what is asked, not of what is there
        return rest.difference(self.always).difference(self.events.get(time, frozenset()))

    def changing(self, time: int, touched: set[tuple[str, Row]]) -> tuple[set[tuple[str, Row]], set[tuple[str, Row]]]:
        """The touched facts that come at a time, and those that go."""
        missing = self.missing(touched, time)
        return (touched - self.present).difference(missing), missing & self.present

    def step(self, time: int, touched: set[tuple[str, Row]]) -> set[tuple[str, Row]]:
        """Evaluate a timestep; the result is which facts may change in the next."""
        here = self.events.get(time, set())
        changes: dict[str, dict[Row, int]] = defaultdict(dict)
        coming, going = self.changing(time, touched | here)
        for facts, weight in ((coming, 1), (going, -1)):
            for name, row in facts:
                changes[name][row] = weight
        self.present |= coming
        self.present -= going
        given = {f"+{name}": rows for name, rows in changes.items()}
        self.tell_time(time, given)
        out = stepped(self.lowered.plan, time, given)
        self.note(time, out)
        after = set(here)
        for name in self.lowered.live:
            self.awake[name] += sum(weight for _, weight in out[name].items())
        for number, rule in self.lowered.heads.items():
            if rule.kind == "next":
                after.update(self.lean(rule.head.relation, out[f"next {number}"].items()))
            else:
                self.send(time, number, rule, out[f"send {number}"].items())
        return set().union(*self.changing(time + 1, after))

    def lean(self, name: str, changed: Iterable[tuple[Row, int]]) -> Iterable[tuple[str, Row]]:
        """Count by how many inductive rules facts are derived; the result is which facts."""
        facts = {(name, row): weight for row, weight in changed}
        support = self.support
        if support.keys().isdisjoint(facts):  # all is new, as in the first timestep of a large program
            support.update(facts)
            return facts
        for fact, weight in facts.items():
            count = support.get(fact, 0) + weight
            if count:
                support[fact] = count
            else:
                del support[fact]
        return facts

    def note(self, time: int, out: Mapping[str, Any]) -> None:
        """Take down what is true from a time on, and what no longer is."""
        begun = ((time, self.clock.until + 1),)
        for name, rows in self.intervals.items():
            if not rows:
                rows.update(dict.fromkeys(out[name], begun))
                continue
            for row, weight in out[name].items():
                known = rows.get(row)
                if known is None:
                    rows[row] = begun
                    continue
                spans = known if isinstance(known, list) else list(known)  # a tuple is shared by all that came with it
                rows[row] = spans
                if weight < 0:
                    spans[-1] = (spans[-1][0], time)
                else:
                    spans += begun

    def tell_time(self, time: int, changes: dict[str, dict[Row, int]]) -> None:
        """Set the clock, and what is read of constant times: found if they are over, assumed if they are to come."""
        if not self.lowered.timed:
            return
        if self.told is not None:
            changes[NOW] = {(self.told,): -1, (time,): 1}
        else:
            changes[NOW] = {(time,): 1}
        self.told = time
        for name, times in self.lowered.constants.items():
            for constant in times:
                phase = (time > constant) - (time < constant)
                if self.phases.get((name, constant)) == phase:
                    continue
                self.phases[name, constant] = phase
                known = self.assumed[name, constant]
                if phase < 0:
                    rows = {row for at, of, row in self.ahead_given if (of, at) == (name, constant)}
                elif phase > 0:
                    held = self.intervals[name].items()
                    rows = {row for row, spans in held if any(since <= constant < to for since, to in spans)}
                else:
                    rows = set()
                changes[f"+{name}@{constant}"] = {row: 1 if row in rows else -1 for row in rows ^ known}
                self.assumed[name, constant] = rows

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
            arrive = self.clock.arrivals(Send(number, name, row, time, senders, rule.kind == "later"))
            self.messages.append(Message(name, row, time, arrive, number, senders))
            for at in arrive:
                if at <= time:
                    self.arrived.add((at, name, row))
                elif at <= self.clock.until:
                    self.event(at, name, row)

    def model(self) -> Model:
        """What was found."""
        choices = [
            Chosen(number, self.rules[number].head.relation, time, tuple(sorted(rows, key=order)))
            for (number, time), groups in sorted(self.clock.chosen.items(), key=lambda item: (item[0][1], item[0][0]))
            if (rows := [row for group in groups.values() for row in group])
        ]
        net = self.clock.schedule.net if self.clock.schedule is not None else None
        start, until, messages = self.clock.start, self.clock.until, self.messages
        return Model(self.intervals, start, until, messages, self.visited, choices, self.rules, self.given, net)
