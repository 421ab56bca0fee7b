"""All outcomes of a program within a bound: each arrival, each loss, each choice.

A state is what is kept, what is under way and what was seen of the relations asked for.  From it, a timestep leads to
others: which of the messages under way arrive now, and what is chosen, is decided when it comes up, and a state that
was met before is not looked at again.  What no relation asked for depends on is left out.

*Messages* are one and the same if they have the same content: of those that arrive in a relation that keeps what it
has, one is as good as many.  In the mode ``confluence``, a message that only monotone rules observe, and that stays, is
not moved about at all: it arrives once as soon as it can and once as late as it can, side by side, and if both end
alike so does all that lies between them.

*Arrivals in the past* are assumed first, and must then be sent.  What to assume comes from messages that are met on
the way; where a negation could hide one, from :mod:`syndicate.dedalus.explore.possible_past`.  A model that owes them
to itself is dropped by :mod:`syndicate.dedalus.explore.stability`.

>>> from syndicate.dedalus import Program
>>> late = Program.parse("r(1)@1; s(1)@1; p(X) :- q(X), r(X); q(X)@async :- s(X);")
>>> [outcome.times() for outcome in late.explore(until=2, relations=["p", "q"]).outcomes]
[{}, {'p': {'1': [[1]]}, 'q': {'1': [[1]]}}, {'q': {'2': [[1]]}}]

Source: Alvaro et al. 2011b, "Later" (monotone programs and the past).

Contract: the outcomes are those of trying all schedules and all choices, neither more nor less.
"""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final, TypeAlias, TypedDict

from attrs import define, field

from syndicate.dedalus.ast import Events, Rule
from syndicate.dedalus.explore.arrivals import Arrivals, is_local
from syndicate.dedalus.explore.by_solver import Outcomes, Span
from syndicate.dedalus.explore.influence import NOTHING, Influence, sliced
from syndicate.dedalus.explore.outcome import (
    MODES,
    Decisions,
    Exploration,
    MessageKey,
    Mode,
    Outcome,
    Projection,
    by_rows,
)
from syndicate.dedalus.explore.possible_past import hidden_in
from syndicate.dedalus.explore.replay import facts_of, replayer
from syndicate.dedalus.explore.stability import DecidedRun, Early, StabilityCheck, idling
from syndicate.dedalus.explore.state import InputLane, Met, PathStep, Sent, State, decided, is_causal, steps_of
from syndicate.dedalus.explore.timestep import MOST_REMEMBERED, Fact, Facts, Space, StepResult, at_constant, chosen_of
from syndicate.dedalus.lower import arities
from syndicate.dedalus.net import Send
from syndicate.dedalus.schedule import Clock
from syndicate.dedalus.solving.solver import ENGINES, INSTALL, Engine, Unencodable, is_loaded, is_there
from syndicate.dedalus.timeline import Timeline
from syndicate.errors import ExplorationTooLarge, FactError, ScheduleError

MOST_STEPS: Final = 200_000
MOST_PASSES: Final = 100
FEW_RULES: Final = 32
"""Rules times timesteps: with so many the search is tried before the solver is loaded."""
FEW_STEPS: Final = 64
"""After so many timesteps the solver takes over."""
Progress: TypeAlias = "Callable[[Explorer], None]"
"""Called now and then."""
Assumed: TypeAlias = tuple[frozenset[Early], Facts]
"""Arrivals in the past, and what is read of constant times before they come."""

NONE_ASSUMED: Final[Assumed] = (frozenset(), frozenset())


class _Unsettled(Exception):
    """Arriving as soon and as late as can be makes a difference."""


@define(eq=False, slots=False)
class Explorer:
    """An exploration: :meth:`run` it, or after an interruption ask what it has :meth:`found`.

    *rules* are checked and in short form; those of the *clock*'s schedule are fixed, all else is tried.
    """

    rules: Sequence[Rule]
    clock: Clock
    relations: list[str]
    mode: Mode
    final: int
    lossless: bool
    events: Events = field(factory=dict)
    limit: int = MOST_STEPS
    progress: Progress | None = None
    engine: Engine = "auto"
    steps: int = 0
    time: int = 0
    asking: bool = False
    solved: bool = False
    outcomes: dict[Projection, Callable[[], Decisions]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        clock = self.clock
        influence = Influence(self.rules, forward=clock.delivery == "later", start=clock.start)
        wanted = influence.on(self.relations)
        left_out = {rule.head.relation for rule in self.rules} - wanted
        # What is left out must not keep the rest from having a model: where all messages must arrive, it could.
        fixed = clock.schedule is not None and clock.schedule.delay is None and not clock.schedule.open
        if clock.delivery == "causal" and fixed:  # arrivals that are fixed may come before their causes
            wanted |= left_out
        apart = left_out & influence.entangled()  # what looks ahead may be against itself though all messages are lost
        if (self.lossless and (clock.delivery == "causal" or apart)) or (
            apart and any(e.ahead for e in influence.edges)
        ):
            wanted |= left_out
        self.kept_rules = sliced(self.rules, wanted, self.relations)
        self.influence = Influence(
            [rule for rule in self.kept_rules if rule is not NOTHING],
            forward=clock.delivery == "later",
            start=clock.start,
        )
        self.space = Space(self.kept_rules)
        self.persistent = self.influence.persistent()
        self.stated = facts_of(self.kept_rules, clock, self.events)
        self.constants = [(name, at) for name, at in self.space.constants if clock.start <= at <= clock.until]
        self.ahead = any(at > clock.start for _, at in self.constants)
        self.cyclic = bool(self.influence.cycles())
        self.forward = not self.ahead and not any(self.past(number) for number in self.space.heads)
        self.stability = StabilityCheck(self.kept_rules) if self.cyclic else None
        self.assumed: Assumed = NONE_ASSUMED
        self.exact = self.checked = False
        self.doubtful: set[Projection] = set()
        self.wanted: set[Projection] | None = None
        self.soft: set[str] = set()
        self.open = clock.schedule is None or clock.schedule.open
        self.arrivals = Arrivals(
            self.space, self.persistent, clock.until, self.lossless, is_local(self.kept_rules), self.count
        )
        self.free: dict[tuple[int, int], tuple[StepResult, Sequence[tuple[Fact, Sent]] | None]] = {}
        self.met: set[tuple[frozenset[Early], Facts]] = set()
        self.replay = replayer(self.rules, clock, self.events, lossless=self.lossless)

    def past(self, number: int) -> bool:
        """Whether a rule's messages may arrive in the past."""
        rule = self.space.heads[number]
        return rule.kind == "async" and self.clock.delivery != "later"

    # ---------------------------------------------------------------------------------------------------- searching

    def run(self) -> Exploration:
        """All outcomes; raises :class:`ExplorationTooLarge`, and what a run raises."""
        if not ((self.engine == "auto" and self._soon()) or (self.engine != "search" and self._solved())):
            self._searched()
        return self.found()

    def _searched(self) -> None:
        if not self._settled():
            self._all()
        self._all_used()

    def _soon(self) -> bool:
        """Search, where few timesteps may suffice and the solver is not loaded, which takes longer than they do."""
        if is_loaded() or len(self.kept_rules) * (self.clock.until - self.clock.start + 1) > FEW_RULES:
            return False
        limit, self.limit = self.limit, min(self.limit, FEW_STEPS)
        try:
            self._searched()
        except ExplorationTooLarge:
            self.outcomes.clear()
            self.steps, self.exact, self.wanted = 0, False, None
            return False
        finally:
            self.limit = limit
        return True

    def _solved(self) -> bool:
        """Ask the solver, where it is and can be asked; whether it had the answer."""
        why = "" if is_there() else f"clingo is not installed: {INSTALL}"
        why = why or ("" if self.open and not self._said() else "a schedule fixes what happens")
        endless = {"count", "sum"}
        totals = {r.head.relation for r in self.kept_rules for one in r.aggregates if one.form in endless}
        if any(totals & members for members in self.influence.cycles()):
            why = why or "totals of messages into the past may have no end"
        if not why:
            try:
                self._solve()
                self.solved = True
            except Unencodable as error:
                why = str(error)
        if why and self.engine == "clingo":
            raise ScheduleError(f"clingo cannot explore it: {why}")
        return not why

    def _said(self) -> bool:
        return self.clock.schedule is not None and bool(self.clock.schedule.choices)

    def _solve(self) -> None:
        ends = self.mode == "confluence" and self.forward
        last = self.final if ends else self.clock.until
        seen = self.final if self.mode == "confluence" else self.clock.start
        asked = Outcomes(
            self.kept_rules,
            self.events,
            self.relations,
            Span(self.clock.start, last, self.clock.until, seen),
            [number for number in self.space.heads if self.past(number)],
            self.lossless,
            self.clock.delivery == "causal",
            self.forward,
            self._ticked,
        )
        self.asking = True
        try:
            for projection, decisions in asked.run():
                self.steps += 1
                self.time = last
                if self.steps > self.limit:
                    raise self.too_large("raise the limit")
                self.outcomes[self._ending(projection)] = decisions
        except Unencodable:
            self.outcomes.clear()
            self.steps = 0
            self.asking = False
            raise

    def _ending(self, projection: Projection) -> Projection:
        """What counts of a projection: in the mode ``confluence`` one time alone."""
        return tuple(one for one in projection if self.mode == "all-models" or one[0] == self.final)

    def _ticked(self) -> None:
        if self.progress is not None:
            self.progress(self)

    def found(self, *, complete: bool = True) -> Exploration:
        """The outcomes so far."""
        outcomes = [
            Outcome(projection, decisions, self.replay)
            for projection, decisions in sorted(self.outcomes.items(), key=lambda item: by_rows(item[0]))
        ]
        start, until = self.clock.start, self.clock.until
        return Exploration(
            self.mode,
            self.relations,
            start,
            until,
            self.final,
            outcomes,
            self.steps,
            complete,
            self.project,
            "clingo" if self.asking else "search",
        )

    def project(self, model: Timeline) -> Projection:
        """The outcome that a whole model has."""
        times = [self.final] if self.mode == "confluence" else range(model.start, model.until + 1)
        moments = []
        for time in times:
            moment = model.at(time)
            moments.append((time, frozenset((name, row) for name in self.relations for row in moment.unsorted(name))))
        return tuple((time, facts) for time, facts in moments if facts)

    def _all_used(self) -> None:
        heads = {rule.head.relation for rule in self.space.heads.values()}
        sent = {rule.head.relation for rule in self.rules if rule.kind in ("async", "later")}
        for name, row, at in self.clock.unused():
            if self.mode == "confluence" and self.forward and at >= self.final:
                continue
            if name in heads or name not in sent:
                raise ScheduleError(f"the schedule names {name}{row!r} sent at {at}, but no run sends that message")

    def _all(self) -> None:
        pending = deque([self._certain()])
        seen = set(pending)
        hidden = (
            set()
            if self.forward
            else hidden_in(self.kept_rules, self.influence.entangled(), self.clock, self.stated, self.past)
        )
        while pending:
            self.assumed = pending.popleft()
            self._assuming()
            early, ahead = self.assumed
            more = set(self.met)
            for at, name, row in hidden:
                if "@" in name:
                    more.add((early, ahead | {(name, row)}))
                else:
                    more.add((early | {(at, name, row)}, ahead))
            for one in sorted(more - seen, key=repr):
                seen.add(one)
                pending.append(one)

    def _certain(self) -> Assumed:
        """What is sure to be read ahead: facts."""
        facts = {
            (at_constant(name, at), row)
            for name, at in self.constants
            if at > self.clock.start
            for relation, row in self.stated[at]
            if relation == name
        }
        return frozenset(), frozenset(facts)

    def _assuming(self) -> None:
        """Search with what is assumed; again, if need be, for outcomes that were found but are not stable.

        Messages are alike the first time, and each has a name the second.
        """
        early, _ = self.assumed
        self.met = set()
        self.doubtful = set()
        self.wanted = None
        self.checked = self.cyclic and (bool(early) or self.ahead)
        self.exact = bool(early) and self.clock.delivery == "causal"
        self._search()
        self.doubtful -= self.outcomes.keys()
        if self.doubtful and not self.exact:
            self.exact = True
            self.wanted = {one[:n] for one in self.doubtful for n in range(len(one) + 1)}
            self._search()

    def _search(self, lanes: int = 1) -> None:
        early, _ = self.assumed
        root = State(self.clock.start, (InputLane(),) * lanes, {}, early, (), None)
        met = Met()
        self.free.clear()
        stack: list[Iterator[State]] = [iter([root])]
        while stack:
            state = next(stack[-1], None)
            if state is None:
                stack.pop()
                continue
            if not self.exact:
                copies = state.copies(self.persistent, self.clock.until - state.time + 1)
                if not met.new(state.key(lossless=self.lossless), copies):
                    continue
            stack.append(self._after(state))

    def count(self, time: int) -> None:
        """Take note of a timestep that is tried; raises :class:`ExplorationTooLarge`."""
        self.steps += 1
        self.time = time
        if self.steps > self.limit:
            raise self.too_large("raise the limit")
        if self.progress is not None and self.steps % 64 == 0:
            self.progress(self)

    def too_large(self, remedy: str) -> ExplorationTooLarge:
        """What to raise if there is too much to be tried, with what was found so far; *remedy* is one more."""
        many = len(self.outcomes)
        what = f"{many} {'model' if self.mode == 'all-models' else 'outcome'}{'s' * (many != 1)}"
        alternatives = ["end earlier (until)", "ask for fewer relations"]
        alternatives += ["take the mode 'confluence'"] * (self.mode != "confluence")
        alternatives += ["take the delivery 'later'"] * (self.clock.delivery != "later")
        tried = "answers were looked at" if self.asking else "timesteps were tried"
        text = f"{max(0, self.steps - 1)} {tried}, {what} found, and there is more: {', '.join(alternatives)}"
        return ExplorationTooLarge(f"{text}, fix arrivals by a schedule, or {remedy}", self.found(complete=False))

    # -------------------------------------------------------------------------------------------------- a timestep

    def _after(self, state: State) -> Iterator[State]:
        """The states after the next timestep; outcomes are noted."""
        time = state.time
        early, ahead = self.assumed
        base = self.stated[time] | ahead | {(name, row) for at, name, row in early if at == time}
        held = base.union(*(lane.at(time) for lane in state.lanes[:1]))
        named, watched = self.exact, self._watched(state)
        for arriving, flight, path in self.arrivals.alternatives(state, held, named=named, watched=watched):
            self.count(time)
            inputs = [lane.at(time) | base | arriving for lane in state.lanes]
            for founds, facts, chosen in self._choosing(time, inputs, path, list(self.space.choices)):
                then = State(time, state.lanes, flight, state.owed, state.seen, chosen, state.void)
                yield from self._then(then, founds, facts)

    def _watched(self, state: State) -> Sequence[str] | None:
        """What an outcome is made of now, beside what follows; None where all that arrives counts."""
        plain = self.forward and len(state.lanes) == 1 and not self.space.choices and self.open
        if not plain or state.time >= (self.clock.until if self.mode == "all-models" else self.final):
            return None
        return self.relations if self.mode == "all-models" else ()

    def _choosing(
        self, time: int, inputs: Sequence[Facts], path: PathStep | None, rules: Sequence[int]
    ) -> Iterator[tuple[list[StepResult], Sequence[Facts], PathStep | None]]:
        """All that can be chosen, one rule after the other."""
        founds = [self.space.at(time, facts) for facts in inputs]
        for place, number in enumerate(rules):
            candidates = founds[0].candidates[number]
            if not candidates:
                continue
            said = self.clock.schedule.choices.get((number, time), ()) if self.clock.schedule is not None else ()
            for chosen in self.space.choices[number].maximal(candidates):
                if not candidates.intersection(said) <= chosen:
                    continue
                taken = [facts | {(chosen_of(number), row) for row in chosen} for facts in inputs]
                step = PathStep(path, ("choose", number, time, chosen))
                yield from self._choosing(time, taken, step, rules[place + 1 :])
            return
        yield founds, inputs, path

    def _then(self, state: State, founds: Sequence[StepResult], inputs: Sequence[Facts]) -> Iterator[State]:
        """What follows from a timestep: what is seen, kept and sent."""
        time, until = state.time, self.clock.until
        first = founds[0]
        void = not self._foreseen(time, first) or state.void
        seen = state.seen
        if self.mode == "all-models" or time == self.final:
            facts = [frozenset((n, row) for n in self.relations for row in one.true.get(n, ())) for one in founds]
            if len(set(facts)) > 1:
                raise _Unsettled
            seen = (*seen, (time, facts[0])) if facts[0] else seen
        if self.mode == "confluence" and time == self.final and self.forward and (not self.lossless or time < until):
            self._note(seen, self._at_last(state) if self.lossless else state.path)  # or never
            return
        if self.wanted is not None and seen not in self.wanted:
            return
        path = PathStep(state.path, ("evaluated", time, first)) if self.checked else state.path
        state = State(time, state.lanes, state.flight, state.owed, seen, path, state.void)
        lanes = [
            InputLane(one.next, lane.due, self._first(one) if time == self.clock.start else lane.first)
            for one, lane in zip(founds, state.lanes, strict=True)
        ]
        for flight, owed, lanes_then, path, unforeseen in self._sending(state, founds, lanes):
            if time < until:
                left = {
                    fact: copies
                    for fact, copies in flight.items()
                    if self.exact or fact[0] not in self.persistent or fact[1] not in first.true[fact[0]]
                }
                due = tuple(lane.behind(time) for lane in lanes_then)
                yield State(time + 1, due, left, owed, seen, path, void or unforeseen)
            elif not (owed or void or unforeseen):
                self._note(seen, path)

    def _at_last(self, state: State) -> PathStep | None:
        """The path on which all that is under way arrives in the end."""
        path = state.path
        for (_, row), copies in state.flight.items():
            for rule, sent, senders in copies:
                path = PathStep(path, ("arrive", rule, row, sent, self.clock.until, senders))
        return path

    def _first(self, result: StepResult) -> Facts:
        constants = [name for name, at in self.constants if at == self.clock.start]
        return frozenset((at_constant(name, self.clock.start), row) for name in constants for row in result.true[name])

    def _foreseen(self, time: int, step: StepResult) -> bool:
        """Whether what is true at a constant time is what was assumed of it; what is more is to be assumed, too."""
        early, ahead = self.assumed
        good = True
        for name, at in self.constants:
            if at != time:
                continue
            constant = at_constant(name, at)
            true = {(constant, row) for row in step.true[name]}
            assumed = {fact for fact in ahead if fact[0] == constant}
            if at == self.clock.start:
                continue  # nobody looked ahead
            good &= true == assumed
            self.met |= {(early, ahead | {fact}) for fact in true - assumed}
        return good

    def _sending(
        self, state: State, founds: Sequence[StepResult], lanes: Sequence[InputLane]
    ) -> Iterator[tuple[dict[Fact, tuple[Sent, ...]], frozenset[Early], Sequence[InputLane], PathStep | None, bool]]:
        """What becomes of what is sent: under way, what is owed, what is due, the path, and whether it is void."""
        time, until = state.time, self.clock.until
        if len(founds) == 1 and (free := self._free(time, founds[0])) is not None:
            after = dict(state.flight)
            for fact, sent in free if time < until else ():
                after[fact] = (*after.get(fact, ()), sent)
            yield after, state.owed, lanes, state.path, False
            return
        lanes = list(lanes)
        flying: dict[Fact, tuple[Sent, ...]] = dict(state.flight)
        owed, path, void = state.owed, state.path, False
        alternatives: list[list[tuple[Fact, Sent, int | None]]] = []
        for lane, step in enumerate(founds):
            for number, row, senders in step.sends:
                name = self.space.heads[number].head.relation
                fact, sent = (name, row), (number, time, senders)
                said = self.clock.said(Send(number, name, row, time, senders, not self.past(number)))
                if said is not None:
                    if lane == 0:
                        for at in said:
                            path = PathStep(path, ("arrive", number, row, time, at, senders))
                    void |= not self._sent_before([(at, *fact) for at in said if at <= time])
                    owed -= {(at, *fact) for at in said if at <= time}
                    lanes[lane] = lanes[lane].with_due([(at, fact) for at in said if time < at <= until])
                elif name in self.soft:
                    at = time + 1 if lane else until
                    if time < until and (lane or self.lossless):
                        lanes[lane] = lanes[lane].with_due([(at, fact)])
                elif lane == 0:
                    alternatives.append(self._fates(fact, sent, state.owed))
        for picked in product(*alternatives):
            flight, then_owed, then_path = dict(flying), owed, path
            for fact, sent, fate in picked:
                if fate is None:
                    if time < until:
                        flight[fact] = (*flight.get(fact, ()), sent)
                else:
                    then_owed -= {(fate, *fact)}
                    then_path = PathStep(then_path, ("arrive", sent[0], fact[1], time, fate, sent[2]))
            yield flight, then_owed, lanes, then_path, void

    def _free(self, time: int, step: StepResult) -> Sequence[tuple[Fact, Sent]] | None:
        """What is sent, if all of it may arrive at any later time: in most programs, and always the same."""
        entry = self.free.get((time, id(step)))
        if entry is not None and entry[0] is step:
            return entry[1]
        sends: list[tuple[Fact, Sent]] = []
        good = True
        for number, row, senders in step.sends:
            name = self.space.heads[number].head.relation
            past = self.past(number)
            if past or name in self.soft or self.clock.said(Send(number, name, row, time, senders, True)) is not None:
                good = False
            sends.append(((name, row), (number, time, senders)))
        if len(self.free) >= MOST_REMEMBERED:
            self.free.clear()
        self.free[time, id(step)] = step, sends if good else None
        return self.free[time, id(step)][1]

    def _sent_before(self, arrivals: list[Early]) -> bool:
        """Whether arrivals in the past were all assumed; if not, they are to be."""
        early, ahead = self.assumed
        missing = set(arrivals) - early
        if missing:
            self.met.add((early | missing, ahead))
        return not missing

    def _fates(self, fact: Fact, sent: Sent, owed: frozenset[Early]) -> list[tuple[Fact, Sent, int | None]]:
        """What may become of one message: it is under way (None), or arrives at a time in the past."""
        rule, time, _ = sent
        early, ahead = self.assumed
        fates: list[int | None] = []
        on_time = time < self.clock.until or not self.lossless or not self.past(rule)
        if on_time:
            fates.append(None)
        if self.past(rule):
            past = [(at, *fact) for at in range(self.clock.start, time + 1)]
            here = [one for one in past if one in early]
            fates += [one[0] for one in here if one in owed or self.lossless]
            self.met |= {(early | {one}, ahead) for one in past if one not in early and not self._idle(one)}
        return [(fact, sent, fate) for fate in fates]

    def _idle(self, one: Early) -> bool:
        """Whether an arrival changes nothing, so that the message might as well be lost."""
        at, *fact = one
        early, _ = self.assumed
        if fact[0] in self.persistent and any((t, *fact) in early for t in range(self.clock.start, at)):
            return self.clock.delivery != "causal"
        return not self.lossless and tuple(fact) in self.stated[at]

    # ------------------------------------------------------------------------------------------------------ outcomes

    def _note(self, seen: Projection, path: PathStep | None) -> None:
        """Take down an outcome, unless its model is not one."""
        if seen in self.outcomes:
            return
        steps = steps_of(path)
        early, ahead = self.assumed
        if early and self.clock.delivery == "causal" and not is_causal(steps):
            return
        arrive, choices = decided(steps)
        if self.stability is not None and self.checked:
            results = {step[1]: step[2] for step in steps if step[0] == "evaluated"}
            true = {time: result.true for time, result in results.items()}
            chosen = {key: frozenset(rows) for key, rows in choices.items()}
            arrivals = {**idling(results, arrive, self.persistent, self.space, self.past), **arrive}
            run = DecidedRun(self.clock.start, self.clock.until, self.stated, true, chosen, arrivals, early, ahead)
            if not self.stability.carries(run):
                self.doubtful.add(seen)
                return
        at = frozenset((int(name.rpartition("@")[2]), name.rpartition("@")[0], row) for name, row in ahead)
        self.outcomes[seen] = partial(Decisions, arrive, choices, (early, at))

    # -------------------------------------------------------------------------------------- as soon, and as late

    def _settled(self) -> bool:
        """Try without moving messages about that only monotone rules observe; whether that was enough."""
        soft = self.influence.soft() if self.mode == "confluence" else set()
        heads = {rule.head.relation for rule in self.space.heads.values() if rule.kind in ("async", "later")}
        if not soft or self.ahead:
            return False
        if self.forward:
            self.soft = soft
            try:
                self._search(lanes=2)
            except _Unsettled:
                self.outcomes.clear()
                return False
            finally:
                self.soft = set()
            return True
        if heads - soft or self.space.choices or self.clock.delivery != "free":
            return False
        high, _ = self._extreme(soon=True)
        low, latest = self._extreme(soon=False)
        if low is None or low != high:
            return False
        self.outcomes[low] = partial(Decisions, latest)
        return True

    def _extreme(self, *, soon: bool) -> tuple[Projection | None, dict[MessageKey, tuple[int, ...]]]:
        """The run in which each message arrives as soon as it can, the past included, or as late as it can.

        How it ends, None if ever more arrives in the past; and when the messages arrived.  Where only monotone rules
        observe messages, and what has arrived stays, more is true in the first than in any run, and less in the second:
        if both end alike, all runs do.
        """
        start, until = self.clock.start, self.clock.until
        sent: set[tuple[int, Fact]] = set()
        arrive: dict[MessageKey, tuple[int, ...]] = {}
        for _ in range(MOST_PASSES):
            before = len(sent)
            lasting: Facts = frozenset()
            of_start: Facts = frozenset()
            seen: Projection = ()
            for time in range(start, until + 1):
                self.count(time)
                arrived = {fact for at, fact in sent if at == time}
                step = self.space.at(time, lasting | of_start | self.stated[time] | arrived)
                lasting = step.next
                of_start = self._first(step) if time == start else of_start
                if time == self.final:
                    facts = frozenset((name, row) for name in self.relations for row in step.true.get(name, ()))
                    seen = ((time, facts),) if facts else ()
                for number, row, senders in step.sends:
                    name = self.space.heads[number].head.relation
                    times = self.clock.said(Send(number, name, row, time, senders, not self.past(number)))
                    if times is None:
                        late = self.lossless and (time < until or self.past(number))
                        first = start if self.past(number) else time + 1
                        times = (first,) if soon else (until,) if late else ()
                    arrive[number, row, time] = times
                    sent |= {(at, (name, row)) for at in times}
            if len(sent) == before:
                return seen, arrive
        return None, arrive


class ExploreOptions(TypedDict, total=False):
    """What :meth:`syndicate.dedalus.Program.explore` takes besides what a run takes."""

    relations: Iterable[str] | None
    mode: Mode
    final: int | None
    lossless: bool | None
    limit: int
    progress: Progress | None
    engine: Engine


def explorer(
    rules: Sequence[Rule],
    clock: Clock,
    events: Events,
    *,
    relations: Iterable[str] | None = None,
    mode: Mode = "all-models",
    final: int | None = None,
    lossless: bool | None = None,
    limit: int = MOST_STEPS,
    progress: Progress | None = None,
    engine: Engine = "auto",
) -> Explorer:
    """An exploration that was asked for, if that makes sense; raises :class:`ScheduleError`, :class:`FactError`."""
    columns = arities(rules)
    if mode not in MODES:
        raise ScheduleError(f"there is no mode {mode!r}: there are {', '.join(MODES)}")
    if engine not in ENGINES:
        raise ScheduleError(f"there is no engine {engine!r}: there are {', '.join(ENGINES)}")
    final = clock.until if final is None else final
    if not clock.start <= final <= clock.until:
        raise ScheduleError(f"the final time {final} is not within the run, from {clock.start} to {clock.until}")
    asked = sorted(columns) if relations is None else sorted(set(relations))
    for name in asked:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(columns)) or 'none'}"
            raise FactError(f"the program has no relation {name!r}: {hint}")
    net = clock.schedule.net if clock.schedule is not None else None
    if net is not None and net.crash and net.stop == "all":
        raise ScheduleError("exploring knows crashes that stop sending alone: leave out 'stop', or run by seeds")
    whole = mode == "confluence" if lossless is None else lossless
    return Explorer(rules, clock, asked, mode, final, whole, events, limit, progress, engine)
