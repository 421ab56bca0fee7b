"""Counterexamples by a solver: runs with faults as stable models, of which the cheapest are asked for.

What is promised a run without faults says.  Where rules choose that is a second one in the same program: where both
choose among the same, they choose the same.

Contract: as :mod:`syndicate.dedalus.verify.lineage` decides it, the smallest counterexamples and the rest.

Source: Gebser et al. 2019; ``docs/design/dedalus.md``, "The solver".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import define, evolve, field

from syndicate.dedalus.ast import Constant, Events, Row, Rule, Variable
from syndicate.dedalus.lower import arities, sender_of
from syndicate.dedalus.net import Outage, Partition
from syndicate.dedalus.schedule import Clock, Dependencies
from syndicate.dedalus.solving.clingo_text import (
    Encoding,
    TimedLines,
    call,
    computes,
    constant,
    exact,
    few,
    fixed,
    sums,
)
from syndicate.dedalus.solving.solver import Assumed, Solver, StableModel, Unencodable, at, row_in, row_of
from syndicate.dedalus.timeline import order
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.counterexample import Broken, Counterexample, Progress
from syndicate.dedalus.verify.faults import UNIT, Again, Crash, Drop, Fault, Faults, Late

if TYPE_CHECKING:
    import clingo

Said: TypeAlias = "Fault | tuple[str, tuple[int, int], Row] | str"
"""What a symbol of an answer says; of what is chosen, or could be: which, the rule and the time, and the values."""


@define(eq=False)
class Symbolic:
    """The question whether *faults* can break a promise, or an *invariant*, put to the solver.

    *outages* are the relations that say which nodes are down, and which of them rest.  *begin* grounds it; all else
    asks.
    """

    rules: Sequence[Rule]
    faults: Faults
    pre: str
    post: str
    invariant: str | None
    events: Events
    outages: tuple[str, str] | None = None
    deadline: float | None = None
    progress: Callable[[Progress], object] | None = None
    answer: StableModel | None = field(init=False, default=None)
    said: dict[clingo.Symbol, Said] = field(init=False, factory=dict)
    forced: dict[clingo.Symbol, str] = field(init=False, factory=dict)
    ways: list[tuple[Collection[int], str, str, str]] = field(init=False, factory=list)
    post_rows: list[Row] = field(init=False, factory=list)
    obliged: bool = field(init=False, default=False)
    solver: Solver = field(init=False)
    fixed: Collection[str] = field(init=False)
    worlds: list[Encoding] = field(init=False)
    cone: Cone = field(init=False)
    columns: dict[str, int] = field(init=False)
    slowest: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        times = range(self.faults.start, self.faults.eot + 1) if self.invariant is not None else [self.faults.eot]
        names = [self.pre, self.post] if self.invariant is None else [self.invariant]
        self.columns = arities(self.rules)
        faults = self.faults
        goals = [(name, time) for name in names for time in times]
        self.slowest = max(faults.late, faults.again)
        self.cone = Cone(self.rules, faults.start, faults.eot, self.slowest, goals)
        inputs = {"crash", *(self.outages or ()), *(name for rows in self.events.values() for name in rows)}
        self.fixed = fixed(self.rules, faults.start, faults.eot, inputs)

    def _rank(self, number: int, time: int, value: Row) -> str:
        clock_ = Clock(self.faults.start, self.faults.eot, self.faults.choices.seed)
        return f"{clock_.number('choose', number, value, time):016x}{value!r}"

    @property
    def bad(self) -> Encoding:
        """The run with faults."""
        return self.worlds[0]

    # ------------------------------------------------------------------------------------------------------- asking

    @property
    def chooses(self) -> bool:
        """Whether any rule that matters chooses."""
        return any(rule.choices and self.cone.matter(rule) for rule in self.rules)

    def promised(self) -> list[Row] | None:
        """The rows of ``post`` without faults, where no choice decides about them."""
        return None if self.chooses else self.post_rows

    def obliges(self) -> bool:
        """Whether anything is ever promised, under any faults and choices."""
        return self.obliged or self.solver.some(assuming=[("obliges", True)]) is not None

    def _promise(self) -> Iterator[str]:
        """What is promised, where one run without faults says it."""
        answer = self.solver.some(assuming=[("faulty", False)])
        rows: dict[str, set[tuple[clingo.Symbol, ...]]] = {"pre": set(), "post": set()}
        for symbol in answer.shown if answer is not None else ():
            if symbol.name in rows:
                rows[symbol.name].add(tuple(symbol.arguments))
        self.post_rows = sorted(map(row_of, rows["post"]), key=order)
        self.obliged = not rows["pre"].isdisjoint(rows["post"])
        yield from (f"{call('promised', list(map(str, row)))}." for row in rows["post"])

    def _tell(self, time: int) -> None:
        if self.progress is not None:
            self.progress(Progress(0, time=time))

    def _better(self, answer: StableModel) -> None:
        self.answer = answer
        if self.progress is not None:
            self.progress(Progress(0, best=self.best))

    @property
    def best(self) -> Counterexample | None:
        """The best counterexample so far."""
        return None if self.answer is None else self.read(self.answer)

    def smallest(self, assuming: Sequence[Assumed] = ()) -> list[Counterexample]:
        """The counterexamples of least cost, of those for which this holds; raises :class:`OutOfTime`."""
        asked: list[Assumed] = [("breaks", True), *assuming]
        first = self.solver.some(assuming=asked)
        if first is None:
            return []
        self._better(first)
        answers = None
        if self.progress is None and self.deadline is None:  # nobody hears of the best so far
            answers = self.solver.short(assuming=asked)
        sets: dict[frozenset[Fault], Counterexample] = {}
        for answer in self._improved(asked) if answers is None else answers:
            one = self.read(answer)
            sets.setdefault(frozenset(one.faults), one)
        return list(sets.values())

    def _improved(self, asked: Sequence[Assumed]) -> Iterator[StableModel]:
        """The answers of least cost, by way of better and better ones."""
        for better in self.solver.improving(assuming=asked):
            self._better(better)
        if (progress := self.progress) is not None:
            self.solver.bounded = lambda least: progress(Progress(least // UNIT, best=self.best))
        yield from self.solver.smallest(assuming=asked)

    def exactly(self, answer: StableModel) -> Iterator[Assumed]:
        """What is assumed for the faults of an answer to happen wherever they can, and no others."""
        there = {symbol for symbol in answer.shown if symbol.name in _FAULTS}
        for name, columns in self._kinds().items():
            for atom in self.solver.control.symbolic_atoms.by_signature(name, columns):
                if atom.symbol not in there:
                    yield atom.symbol, False
        for fault in there:
            if fault not in self.forced:
                name = self.forced[fault] = f"forced{len(self.forced)}"
                sent = self._sent_where(fault) if fault.name in _OF_WAYS else [""]
                self.solver.add("\n".join([f"{{ {name} }}.", *(f":- {name}, {one}not {fault}." for one in sent)]))
            yield self.forced[fault], True

    def _sent_where(self, fault: clingo.Symbol) -> Iterator[str]:
        """What is sent, by each rule, of all that a fault of a way and a time may happen to."""
        sender, to, time, *_ = fault.arguments
        for times, body, one, other in self.ways:
            if time.number in times:
                yield f"{at(body, time.number)}, {one} = {sender}, {other} = {to}, "

    def read(self, answer: StableModel) -> Counterexample:
        """The counterexample that an answer is."""
        faults: list[Fault] = []
        broken: list[clingo.Symbol] = []
        chosen: dict[tuple[int, int], set[Row]] = {}
        candidates: dict[tuple[int, int], set[Row]] = {}
        against = 0
        for symbol in answer.shown:
            said = self.said.get(symbol)
            if said is None:  # most answers say much the same
                said = self.said[symbol] = self._said(symbol)
            if isinstance(said, tuple):
                name, at, row = said
                (chosen if name == "chosen" else candidates).setdefault(at, set()).add(row)
            elif said == "broken":
                broken.append(symbol)
            elif isinstance(said, str):
                against += said == "against"
            else:
                faults.append(said)
        return Counterexample(
            tuple(faults),
            partial(map, self._broken, broken),
            {at: frozenset(rows) for at, rows in chosen.items()},
            {at: frozenset(rows) for at, rows in candidates.items()},
            against,
        )

    def _broken(self, symbol: clingo.Symbol) -> Broken:
        """A row that is broken."""
        *columns, time = row_in(str(symbol).removeprefix("broken"))
        name = self.post if self.invariant is None else self.invariant
        return Broken(name, tuple(columns), int(time), self.invariant is not None)

    def _said(self, symbol: clingo.Symbol) -> Said:
        """What is shown: a fault, a value of a rule's choice at a time, or something else by its name."""
        text = str(symbol)
        name, _, columns = text.partition("(")
        if name in _FAULTS:
            return self._fault(name, row_in(f"({columns}"))
        if name in ("chosen", "candidate"):
            number, at, value = symbol.arguments
            return name, (number.number, at.number), row_of(value.arguments)
        return name

    def _fault(self, name: str, row: Row) -> Fault:
        if name == "partition":
            side, since, to = row
            return Partition(list(self.faults.sides())[int(side)], int(since), int(to))
        fault = _FAULTS[name](*row)
        return evolve(fault, keeps=True) if name == "pause" and isinstance(fault, Outage) else fault

    # ---------------------------------------------------------------------------------------------------- the program

    def begin(self) -> None:
        """Ground it; raises :class:`Unencodable`, :class:`OutOfTime`."""
        rules = [rule for rule in self.rules if rule.fact or self.cone.matter(rule)]
        needed = [rule for rule in rules if not rule.fact]
        plain = exact(rules, self.times[0], self.times[-1], self.events)
        try:
            self._ground(exact=plain, apart=sums(needed))
        except Unencodable:
            if not computes(needed):
                raise
            self._ground(exact=False, apart=True)  # what it fails for may be there in no run
        if self.invariant is None:
            lines = list(self._promise()) if len(self.worlds) == 1 else []
            self.solver.add("\n".join([*lines, *self._promises()]))

    def _ground(self, *, exact: bool, apart: bool) -> None:
        """Ground it, by clingo's own arithmetic if that is exact, one timestep apart from another if that is asked."""
        choices = self.faults.choices
        self.solver = Solver(self.deadline, None if choices.free else self._rank)
        names = ["", "good_"] if self.invariant is None and not choices.drawn and self.chooses else [""]
        best = any(rule.aggregates for rule in self.rules) and few(self.rules, len(self.times), self.events)
        self.worlds = [Encoding(self.rules, name, self.fixed, exact, best) for name in names]
        table = TimedLines()
        table.at(self.times[:1], self._before())
        self._nodes(table)
        self._add_facts(table)
        for world in self.worlds:
            for number, rule in enumerate(self.rules):
                if not rule.fact and rule.head.relation not in self.fixed:
                    self._rule(table, world, number, rule)
        if self.faults.late > 1:
            slow = ["slow(S,R,t) :- drop(S,R,t)."] if self.faults.eff > self.faults.start else []
            table.at(self.times, [*slow, "slow(S,R,t) :- late(S,R,t,_)."])
        if self.invariant is not None:
            columns = [f"C{place}" for place in range(self.columns[self.invariant])]
            row = self.bad.atom(self.invariant, columns, "t")
            table.at(self.times, [f"breaks :- {row}.", f"#show {call('broken', [*columns, 't'])} : {row}."])
        table.at(self.times[-1:], self._after())
        self.solver.add_timesteps(table.parts, apart=apart, tell=self._tell)
        self.solver.define()

    @property
    def times(self) -> range:
        """All timesteps."""
        return range(self.faults.start, self.faults.eot + 1)

    def _before(self) -> Iterator[str]:
        faults = self.faults
        yield from (f"node({constant(node)})." for node in faults.nodes)
        for world in self.worlds:
            for rule in self.rules:
                if rule.fact and rule.head.relation in self.fixed and self.cone.needed(rule.head.relation):
                    yield world.fact(rule, "")
        first, end = faults.start, faults.eot
        span = f"A = {first}..{end - 1}, B = A+1..{end}"
        failing = [("crash", faults.crashes), ("stop", faults.stops)]
        for name, most in failing:
            if most > 0:
                yield f"{{ {name}(N,{first}..{end}) : node(N) }} {most}."
        for name, most in (("restart", faults.restarts), ("pause", faults.pauses)):
            if most > 0:
                yield f"{{ {name}(N,A,B) : node(N), {span} }} {most}."
        down = [
            call(name, ["N", *("_" * (columns - 1))]) for name, columns in self._kinds().items() if name in _OF_NODES
        ]
        if down:
            yield f":- node(N), 2 {{ {'; '.join(down)} }}."
        if faults.partitions > 0:
            for number, side in enumerate(faults.sides()):
                yield " ".join(f"side({number},{constant(one)})." for one in side)
            yield f"{{ partition(P,A,B) : side(P,_), {span} }} {faults.partitions}."
        yield " ".join(["#show.", *(f"#show {name}/{arity}." for name, arity in self._kinds().items())])

    def _kinds(self) -> dict[str, int]:
        """The faults that there may be, as they are called in the text, with their columns."""
        faults = self.faults
        there = {
            "drop": faults.eff > faults.start,
            "late": faults.late,
            "again": faults.again,
            "crash": faults.crashes,
            "stop": faults.stops,
            "restart": faults.restarts,
            "pause": faults.pauses,
            "partition": faults.partitions,
        }
        return {name: columns for name, columns in _ARITIES.items() if there[name]}

    def _nodes(self, table: TimedLines) -> None:
        """Which nodes are silent or down at a time, and which ways are cut."""
        faults = self.faults
        if faults.crashes:
            table.at(self.times, ["mute(N,t) :- crash(N,t).", "mute(N,t) :- mute(N,t-1)."])
        if faults.partitions:
            lines = ["parted(P,t) :- partition(P,A,B), A <= t, t < B."]
            for one, other in (("S", "R"), ("R", "S")):  # of what is no node, too: that is on the other side
                lines.append(f"cut(S,R,t) :- parted(P,t), sends(S,R,t), side(P,{one}), not side(P,{other}).")
            table.at(self.times, lines)
        if self.columns.get("crash") == 3:
            crash = self.bad.atom("crash", ["A", "N", "T"], "t")
            lines = [f"{crash} :- node(A), crash(N,T).", f"{crash} :- node(A), stop(N,T)."]
            table.at(self.cone.needed("crash"), lines)
        if self.outages is None:
            return
        off = "off(N,t) :- stop(N,T), T <= t. off(N,t) :- restart(N,A,B), A <= t, t < B."
        table.at(self.times, [off, "rest(N,t) :- pause(N,A,B), A <= t, t < B.", "off(N,t) :- rest(N,t)."])
        for name, cause in zip(self.outages, ("off", "rest"), strict=True):
            if name in self.columns:
                table.at(self.cone.needed(name), [f"{self.bad.atom(name, ['N'], 't')} :- {cause}(N,t)."])

    def _add_facts(self, table: TimedLines) -> None:
        """What is there without a rule."""
        for rule in self.rules:
            name, needed = rule.head.relation, self.cone.needed(rule.head.relation)
            if rule.fact and name not in self.fixed:
                times = needed if rule.head.time is None else [time for time in needed if time == rule.head.time]
                if times:
                    table.at(times, [world.fact(rule, "t") for world in self.worlds])
        for time, rows_of in self.events.items():
            for name, rows in rows_of.items():
                if self.cone.needs(name, time):
                    columns = [list(map(constant, row)) for row in rows]
                    table.at([time], [f"{world.atom(name, row, 't')}." for world in self.worlds for row in columns])

    def _rule(self, table: TimedLines, world: Encoding, number: int, rule: Rule) -> None:
        """What a rule derives, or sends, and what it chooses."""
        heads, matter = self.cone.needed(rule.head.relation), self.cone.matter(rule)
        if not (heads or matter):
            return
        if rule.choices:
            choices = self.faults.choices
            ranked, preferring = not choices.free, not (choices.free or choices.drawn)
            table.at(matter, world.choosing(number, rule, "t", ranked=ranked, preferring=preferring))
        if rule.kind == "deductive":
            table.at(heads, world.rule(number, rule, "t", "t"))
        elif rule.kind == "next" or world is not self.bad:
            table.at([time for time in heads if time > self.faults.start], world.rule(number, rule, "t-1", "t"))
        elif self.slowest or rule.aggregates or not self.bad.exact:
            self._sent(table, number, rule, matter)
            self._arrivals(table, number, rule, heads)
        else:
            self._sends(table, number, rule, heads, matter)

    def _sends(self, table: TimedLines, number: int, rule: Rule, heads: Iterable[int], matter: Iterable[int]) -> None:
        """What arrives in the next timestep unless it is lost, where nothing is late or comes again."""
        faults = self.faults
        names = {name.name for name in rule.times}
        lossy = [time for time in matter if time < min(faults.eot, faults.eff)] if rule.head.terms else []
        if lossy or faults.partitions:
            _, columns, goals = self.bad.derivation(number, rule, "t")
            sender, to = self.bad.sender(rule, columns, dict.fromkeys(names, "t")), [*columns, NOWHERE][0]
            body = ", ".join(goals) or "#true"
            self._mishaps(table, lossy, body, sender, to)
            table.at(matter, [f"sends({sender},{to},t) :- {body}."] if faults.partitions else [])
        _, columns, goals = self.bad.derivation(number, rule, "t-1")
        sender, to = self.bad.sender(rule, columns, dict.fromkeys(names, "t-1")), [*columns, NOWHERE][0]
        lost = []
        if columns and sender != to and faults.eff > faults.start:
            lost.append(f"not drop({sender},{to},t-1)")
        quiet = [f"not mute({sender},t-1)"] if faults.crashes else []
        quiet += [f"not cut({sender},{to},t-1)"] if faults.partitions else []
        if columns and self.outages is not None:
            goals.append(f"not off({to},t)")
        bodies = [[*goals, *lost, *quiet]]
        if columns and sender == to:
            bodies = [goals]
        elif columns and quiet:  # what one sends to oneself arrives
            bodies = [[*goals, f"{sender} != {to}", *lost, *quiet], [*goals, f"{sender} = {to}"]]
        head = self.bad.atom(rule.head.relation, columns, "t")
        table.at(
            [time for time in heads if time > faults.start],
            [f"{head} :- {', '.join(body) or '#true'}." for body in bodies],
        )

    def _sent(self, table: TimedLines, number: int, rule: Rule, times: Iterable[int]) -> None:
        """What is sent at a time, and by whom; and what may be wrong with the way."""
        faults = self.faults
        lines, head, goals = self.bad.derivation(number, rule, "t")
        sender = self.bad.sender(rule, head, {name.name: "t" for name in rule.times})
        sent = f"{call(f'sent{number}', [*head, sender, 't'])} :- {', '.join(goals) or '#true'}."
        table.at(times, [*lines, sent])
        if faults.partitions:
            to = head[0] if head else NOWHERE
            table.at(times, [f"sends({sender},{to},t) :- {call(f'sent{number}', [*head, sender, 't'])}."])
        if head:
            columns = ["R", *(f"C{place}" for place in range(1, len(head)))]
            self._mishaps(table, times, call(f"sent{number}", [*columns, "S", "t"]), "S", "R")

    def _mishaps(self, table: TimedLines, times: Iterable[int], body: str, sender: str, to: str) -> None:
        """What may happen to all that is sent from one node to another at a time.

        Each rule that sends says so: an atom for what several may send at a time would cost more than it saves.
        """
        faults = self.faults
        slow = [f"late({sender},{to},t,{_until(faults.late)})"] if faults.late else []
        slow += [f"again({sender},{to},t,{_until(faults.again)})"] if faults.again else []
        times = [time for time in times if time < faults.eot]
        for some, kinds in (
            ([time for time in times if time < faults.eff], [f"drop({sender},{to},t)", *slow]),
            ([time for time in times if time >= faults.eff], slow),
        ):
            if some and kinds:
                one = " 1" if len(kinds) > 1 or self.slowest > 1 else ""
                sent = f"{body}, {sender} != {to}, node({sender}), node({to})"
                table.at(some, [f"{{ {'; '.join(kinds)} }}{one} :- {sent}."])
                self.ways.append((some, body, sender, to))

    def _arrivals(self, table: TimedLines, number: int, rule: Rule, times: Iterable[int]) -> None:
        """What arrives at a time."""
        faults = self.faults
        columns = [f"C{place}" for place in range(len(rule.head.terms))]
        head = self.bad.atom(rule.head.relation, columns, "t")
        reach = ", not off(C0,t)" if columns and self.outages is not None else ""
        for by in range(self.slowest + 1 if columns else 1):
            since = f"t-{by + 1}"
            sent = call(f"sent{number}", [*columns, "S", since])
            quiet = f", not mute(S,{since})" if faults.crashes else ""
            if faults.partitions:
                quiet += f", not cut(S,{columns[0] if columns else NOWHERE},{since})"
            lines = []
            if by:
                if by <= faults.late:
                    lines.append(f"{head} :- {sent}, late(S,C0,{since},{by}){quiet}{reach}.")
                if by <= faults.again:
                    lines.append(f"{head} :- {sent}, again(S,C0,{since},{by}){quiet}{reach}.")
            elif not columns:
                lines.append(f"{head} :- {sent}{quiet}.")
            elif rule.head.terms[0] == sender_of(rule) and isinstance(sender_of(rule), Variable | Constant):
                lines.append(f"{head} :- {sent}{reach}.")
            else:
                slow = f", not slow(S,C0,{since})" if faults.late > 1 else ""
                if faults.late <= 1 and faults.eff > faults.start:
                    slow += f", not drop(S,C0,{since})"
                if faults.late == 1:
                    slow += f", not late(S,C0,{since},1)"
                if quiet:
                    lines.append(f"{head} :- {sent}, S != C0{slow}{quiet}{reach}.")
                    lines.append(f"{head} :- {sent}, S = C0{reach}.")
                else:
                    lines.append(f"{head} :- {sent}{slow}{reach}.")
            table.at([time for time in times if time - by > faults.start], lines)

    def _after(self) -> Iterator[str]:
        faults, end = self.faults, self.faults.eot
        for name, arity in self._kinds().items():
            columns = [f"A{n}" for n in range(arity)]
            lasting = f"+A{arity - 1}-A{arity - 2}" if arity == 3 and name != "drop" else ""
            weight = faults.costs.get(name, 1) * UNIT
            yield f"#minimize {{ {weight}{lasting},{name},{','.join(columns)} : {call(name, columns)} }}."
            yield f"#project {name}/{arity}."
            if self.invariant is None:
                yield f"faulty :- {call(name, columns)}."
        if self.invariant is None:
            columns = [f"C{place}" for place in range(self.columns[self.pre])]
            for name, relation in (("pre", self.pre), ("post", self.post)):
                row = call(name, columns)
                yield f"{row} :- {self.bad.atom(relation, columns, end)}. #show {name}/{len(columns)}."
        for number, rule in enumerate(self.rules):
            if rule.choices:
                for time in self.cone.matter(rule):
                    yield from self._same_choices(number, rule, time)
        if self.chooses and not (choices := faults.choices).free and not choices.drawn:
            yield "#show against/4. #defined against/4."
            if choices.most is not None:
                yield f":- {choices.most + 1} {{ against(W,N,T,V) }}."
            if choices.cost:
                yield f"#minimize {{ {choices.cost * UNIT},against,W,N,T,V : against(W,N,T,V) }}."

    def _promises(self) -> Iterator[str]:
        """What breaks a promise."""
        columns = [f"C{place}" for place in range(self.columns[self.pre])]
        pre, post, promised = (call(name, columns) for name in ("pre", "post", "promised"))
        for world in self.worlds[1:]:
            yield f"{promised} :- {world.atom(self.post, columns, self.faults.eot)}."
        yield f"breaks :- {promised}, {pre}, not {post}."
        yield f"obliges :- {promised}, {pre}."
        yield f"#show {call('broken', [*columns, str(self.faults.eot)])} : {promised}, {pre}, not {post}."

    def _same_choices(self, number: int, rule: Rule, time: int) -> Iterator[str]:
        """Rules that show what is chosen, and that make both runs choose the same among the same candidates."""
        rules = Dependencies(rule.choices)
        one = [f"A{n}" for n in range(len(rules.variables))]
        value = f"({','.join(one)},)" if one else "()"
        yield f"#show chosen({number},{time},{value}) : {self.bad.chosen(number, one, time)}."
        yield f"#show candidate({number},{time},{value}) : {self.bad.candidate(number, one, time)}."
        yield from self._against(number, one, time, value)
        if len(self.worlds) == 1:
            return
        (bad, good) = self.worlds
        near = f"near{number}"
        other = [f"B{n}" for n in range(len(one))]
        for world, apart in ((bad, good), (good, bad)):
            name = f"{world.world}{near}"
            mine = world.candidate(number, one, time)
            whole = call(f"differs{number}", [*one, str(time)])
            if len(rules.parts) == 1:
                key, _ = rules.parts[0]
                others = [f"A{n}" if key.start <= n < key.stop else f"B{n}" for n in range(len(one))]
                related = world.candidate(number, others, time)
            else:
                others = other
                for key, _ in rules.parts:
                    with_key = [f"A{n}" if key.start <= n < key.stop else f"B{n}" for n in range(len(one))]
                    link = call(name, [*one, *with_key, str(time)])
                    yield f"{link} :- {mine}, {world.candidate(number, with_key, time)}."
                further = [f"C{n}" for n in range(len(one))]
                yield (
                    f"{call(name, [*one, *further, str(time)])} :- {call(name, [*one, *other, str(time)])}, "
                    f"{call(name, [*other, *further, str(time)])}."
                )
                related = call(name, [*one, *other, str(time)])
            yield f"{whole} :- {mine}, {related}, not {apart.candidate(number, others, time)}."
        both = f"{bad.candidate(number, one, time)}, {good.candidate(number, one, time)}"
        alike = f"not {call(f'differs{number}', [*one, str(time)])}"
        mine, its = bad.chosen(number, one, time), good.chosen(number, one, time)
        yield f":- {both}, {alike}, {mine}, not {its}."
        yield f":- {both}, {alike}, {its}, not {mine}."

    def _against(self, number: int, columns: list[str], time: int, value: str) -> Iterator[str]:
        """Rules for the choices that differ from what the seed draws; among other candidates they count in each run."""
        if self.faults.choices.free or self.faults.choices.drawn:
            return
        for world, apart in zip(
            self.worlds, ("", f", {call(f'differs{number}', [*columns, str(time)])}"), strict=False
        ):
            there = world.preferred(number, columns, time)
            yield f'against("{world.world}",{number},{time},{value}) :- {there}{apart}.'


def _until(most: int) -> str:
    return "1" if most == 1 else f"1..{most}"


_FAULTS: Final[dict[str, Callable[..., Fault]]] = {
    "drop": Drop,
    "late": Late,
    "again": Again,
    "crash": Crash,
    "stop": Outage,
    "restart": Outage,
    "pause": Outage,
    "partition": Partition,
}
NOWHERE: Final = "nowhere"
"""Where a message without columns goes."""
_OF_WAYS: Final = ("drop", "late", "again")
_OF_NODES: Final = ("crash", "stop", "restart", "pause")
_ARITIES: Final = {
    "drop": 3, "late": 4, "again": 4, "crash": 2, "stop": 2, "restart": 3, "pause": 3, "partition": 3
}  # fmt: skip
