"""Counterexamples by a solver: runs with faults as stable models, of which the cheapest are asked for.

Two runs are in one program: the one without faults says what is promised, the other has the faults.  Where both choose
among the same, they choose the same.

Contract: as :mod:`syndicate.dedalus.verify.lineage` decides it, the smallest counterexamples and the rest.

Source: Gebser et al. 2019; ``docs/design/dedalus.md``, "The solver".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from attrs import define, evolve, field

from syndicate.dedalus.ast import Constant, Row, Rule, Variable
from syndicate.dedalus.lower import arities, sender_of
from syndicate.dedalus.net import Outage, Partition
from syndicate.dedalus.schedule import Clock, Dependencies
from syndicate.dedalus.solving.encoding import Encoding, call, constant
from syndicate.dedalus.solving.solver import Answer, Solver, row_of
from syndicate.dedalus.timeline import order
from syndicate.dedalus.verify.cone import Cone
from syndicate.dedalus.verify.counterexample import Broken, Counterexample, Progress, contested
from syndicate.dedalus.verify.faults import UNIT, Again, Crash, Drop, Fault, Faults, Late

Facts: TypeAlias = Mapping[int, Mapping[str, Iterable[Row]]]


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
    events: Facts
    seed: int | None = None
    outages: tuple[str, str] | None = None
    deadline: float | None = None
    progress: Callable[[Progress], object] = lambda progress: None
    best: Counterexample | None = field(init=False, default=None)
    solver: Solver = field(init=False)
    bad: Encoding = field(init=False)
    good: Encoding = field(init=False)
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
        self.bad, self.good = Encoding(self.rules), Encoding(self.rules, "good_")
        self.solver = Solver(self.deadline, self._rank)

    def _rank(self, number: int, time: int, value: Row) -> str:
        clock_ = Clock(self.faults.start, self.faults.eot, self.seed)
        return f"{clock_.number('choose', number, value, time):016x}{value!r}"

    # ------------------------------------------------------------------------------------------------------- asking

    @property
    def open(self) -> bool:
        """Whether something is chosen that could be chosen otherwise, and no seed says it."""
        return self.seed is None and any(
            contested(rule, values)
            for number, rule in enumerate(self.rules)
            if rule.choices
            for world in (self.bad, self.good)
            for values in self._candidates(world, number, rule).values()
        )

    def _candidates(self, world: Encoding, number: int, rule: Rule) -> dict[int, frozenset[Row]]:
        """All that could be chosen, by time."""
        found: dict[int, set[Row]] = {}
        name = world.candidate(number, (), 0).partition("(")[0]
        columns = len(Dependencies(rule.choices).variables) + 1
        for atom in self.solver.control.symbolic_atoms.by_signature(name, columns):
            *value, time = row_of(atom.symbol.arguments)
            found.setdefault(int(time), set()).add(tuple(value))
        return {time: frozenset(rows) for time, rows in found.items()}

    @property
    def chooses(self) -> bool:
        """Whether any rule that matters chooses."""
        times = range(self.faults.start, self.faults.eot + 1)
        return any(rule.choices and any(self.cone.matters(rule, at) for at in times) for rule in self.rules)

    def promised(self) -> list[Row] | None:
        """The rows of ``post`` without faults, where no choice decides about them."""
        if self.chooses:
            return None
        name, end = self.good.names[self.post], self.faults.eot
        return sorted(
            (row[:-1] for row in self.solver.true(name, self.columns[self.post] + 1) if row[-1] == end), key=order
        )

    def obliges(self) -> bool:
        """Whether anything is ever promised, under any faults and choices."""
        return any(True for _ in self.solver.solve(*_ANY, assuming=["obliges"]))

    def smallest(self) -> list[Counterexample]:
        """The counterexamples of least cost; raises :class:`OutOfTime`."""
        first = next(self.solver.solve(*_ANY, assuming=["breaks"]), None)
        if first is None:
            return []
        self.best = self._read(first)
        self.progress(Progress(0, best=self.best))
        self.solver.add(":- not breaks.")
        for better in self.solver.improving() if self.best.faults else ():
            self.best = self._read(better)
            self.progress(Progress(0, best=self.best))
        self.solver.bounded = lambda least: self.progress(Progress(least // UNIT, best=self.best))
        return [self._read(answer) for answer in self.solver.smallest()]

    def _read(self, answer: Answer) -> Counterexample:
        faults: list[Fault] = []
        broken: list[Broken] = []
        chosen: dict[tuple[int, int], set[Row]] = {}
        candidates: dict[tuple[int, int], set[Row]] = {}
        for symbol in answer.shown:
            if symbol.name in _FAULTS:
                faults.append(self._fault(symbol.name, row_of(symbol.arguments)))
            elif symbol.name == "broken":
                *columns, time = row_of(symbol.arguments)
                name = self.post if self.invariant is None else self.invariant
                broken.append(Broken(name, tuple(columns), int(time), self.invariant is not None))
            elif symbol.name in ("chosen", "candidate"):
                number, at, value = symbol.arguments
                where = chosen if symbol.name == "chosen" else candidates
                where.setdefault((number.number, at.number), set()).add(row_of(value.arguments))
        return Counterexample(
            tuple(faults),
            tuple(sorted(broken, key=lambda one: (one.time, order(one.row)))),
            {at: frozenset(rows) for at, rows in chosen.items()},
            {at: frozenset(rows) for at, rows in candidates.items()},
        )

    def _fault(self, name: str, row: Row) -> Fault:
        if name == "parted":
            side, since, to = row
            return Partition(list(self.faults.sides())[int(side)], int(since), int(to))
        made = _FAULTS[name](*row)
        return evolve(made, keeps=True) if name == "pause" and isinstance(made, Outage) else made

    # ---------------------------------------------------------------------------------------------------- the program

    def begin(self) -> None:
        """Ground it; raises :class:`Unencodable`, :class:`OutOfTime`."""
        text = "\n".join(self._before())
        for time in range(self.faults.start, self.faults.eot + 1):
            self.progress(Progress(0, time=time))
            text = "\n".join([text, *self._timestep(time)])
            if len(text) > PART:
                self.solver.add(text)
                text = ""
        self.solver.add(text)
        self.solver.add("\n".join(self._after()))

    def _before(self) -> Iterator[str]:
        faults = self.faults
        yield from (f"node({constant(node)})." for node in faults.nodes)
        first, end = faults.start, faults.eot
        span = f"A = {first}..{end - 1}, B = A+1..{end}"
        failing = [("crash", faults.crashes), ("stop", faults.stops)]
        for name, most in failing:
            if most > 0:
                yield f"{{ {name}(N,{first}..{end}) : node(N) }} {most}."
        for name, most in (("restart", faults.restarts), ("pause", faults.pauses)):
            if most > 0:
                yield f"{{ {name}(N,A,B) : node(N), {span} }} {most}."
        yield ":- node(N), 2 { crash(N,_); stop(N,_); restart(N,_,_); pause(N,_,_) }."
        if faults.partitions > 0:
            for number, side in enumerate(faults.sides()):
                there = set(side)
                for one in side:
                    for other in faults.nodes:
                        if other not in there:
                            pair = f"{constant(one)},{constant(other)}"
                            yield f"apart({number},{pair}). apart({number},{constant(other)},{constant(one)})."
            yield f"{{ parted(P,A,B) : apart(P,_,_), {span} }} {faults.partitions}."
        for name, arity in _ARITIES.items():
            yield f"#defined {name}/{arity}. #show {name}/{arity}."
        yield "#defined mute/2. #defined slow/3. #defined cut/3. #defined apart/3. #show."

    def _nodes(self, time: int) -> Iterator[str]:
        """Which nodes are silent or down at a time, and which ways are cut."""
        faults = self.faults
        if faults.crashes:
            yield f"mute(N,{time}) :- crash(N,T), T <= {time}."
        if faults.partitions:
            yield f"cut(S,R,{time}) :- parted(P,A,B), A <= {time}, {time} < B, apart(P,S,R)."
        if ("crash", time) in self.cone.needed and self.columns.get("crash") == 3:
            told = self.bad.atom("crash", ["A", "N", "T"], time)
            yield f"{told} :- node(A), crash(N,T). {told} :- node(A), stop(N,T)."
        if self.outages is None:
            return
        yield f"off(N,{time}) :- stop(N,T), T <= {time}. off(N,{time}) :- restart(N,A,B), A <= {time}, {time} < B."
        yield f"rest(N,{time}) :- pause(N,A,B), A <= {time}, {time} < B. off(N,T) :- rest(N,T), T = {time}."
        for name, cause in zip(self.outages, ("off", "rest"), strict=True):
            if (name, time) in self.cone.needed:
                yield f"{self.bad.atom(name, ['N'], time)} :- {cause}(N,{time})."

    def _timestep(self, time: int) -> Iterator[str]:
        """All that is at a time: given, kept, arrived, deduced; and what is sent then."""
        faults = self.faults
        yield from self._given(self.bad, time)
        yield from self._nodes(time)
        worlds = [self.bad] if self.invariant is not None else [self.bad, self.good]
        for world in worlds:
            if world is self.good:
                yield from self._given(world, time)
            for number, rule in enumerate(self.rules):
                if rule.fact:
                    continue
                if (rule.head.relation, time) in self.cone.needed:
                    if rule.kind == "deductive":
                        yield from self._derived(world, number, rule, time, time)
                    elif rule.kind == "next" and time > faults.start:
                        yield from self._derived(world, number, rule, time - 1, time)
                    elif rule.kind != "next" and time > faults.start:
                        if world is self.good:
                            yield from self._derived(world, number, rule, time - 1, time)
                        else:
                            yield from self._arrivals(number, rule, time)
                if rule.choices and self.cone.matters(rule, time):
                    yield from world.choosing(number, rule, time, ranked=self.seed is not None)
                if rule.kind in ("async", "later") and world is self.bad and self.cone.matters(rule, time):
                    yield from self._sent(number, rule, time)

    def _given(self, world: Encoding, time: int) -> Iterator[str]:
        for rule in self.rules:
            if rule.fact and rule.head.time in (None, time) and (rule.head.relation, time) in self.cone.needed:
                yield f"{world.atom(rule.head.relation, [world.term(t, {}) for t in rule.head.terms], time)}."
        for name, rows in self.events.get(time, {}).items():
            if (name, time) in self.cone.needed:
                yield from (f"{world.atom(name, map(constant, row), time)}." for row in rows)

    def _derived(self, world: Encoding, number: int, rule: Rule, since: int, time: int) -> Iterator[str]:
        lines, head, goals = world.derivation(number, rule, since)
        yield from lines
        yield f"{world.atom(rule.head.relation, head, time)} :- {', '.join(goals)}."

    def _sent(self, number: int, rule: Rule, time: int) -> Iterator[str]:
        """What is sent at a time, and by whom; and what may be wrong with the way."""
        faults = self.faults
        lines, head, goals = self.bad.derivation(number, rule, time)
        yield from lines
        now = {name.name: str(time) for name in rule.times}
        sender = self.bad.sender(rule, head, now)
        yield f"{call(f'sent{number}', [*head, sender, str(time)])} :- {', '.join(goals)}."
        losing = time < faults.eff
        if not head or time >= faults.eot or not (losing or self.slowest):
            return
        columns = [f"C{place}" for place in range(len(head))]
        sent = call(f"sent{number}", [*columns, "S", str(time)])
        way = f"{sent}, S != C0, node(S), node(C0)"
        rivals = []
        if losing:
            rivals.append(f"drop(S,C0,{time})")
            yield f"{{ drop(S,C0,{time}) }} :- {way}."
            yield f"slow(S,R,{time}) :- drop(S,R,{time})."
        if faults.late:
            rivals.append(f"late(S,C0,{time},1..{faults.late})")
            yield f"{{ late(S,C0,{time},1..{faults.late}) }} :- {way}."
            yield f"slow(S,R,{time}) :- late(S,R,{time},_)."
        if faults.again:
            rivals.append(f"again(S,C0,{time},1..{faults.again})")
            yield f"{{ again(S,C0,{time},1..{faults.again}) }} :- {way}."
        if self.slowest:
            yield f":- {way}, 2 {{ {'; '.join(rivals)} }}."

    def _arrivals(self, number: int, rule: Rule, time: int) -> Iterator[str]:
        """What arrives at a time."""
        faults = self.faults
        columns = [f"C{place}" for place in range(len(rule.head.terms))]
        head = self.bad.atom(rule.head.relation, columns, time)
        reach = f", not off(C0,{time})" if columns and self.outages is not None else ""
        for by in range(min(self.slowest, time - 1 - faults.start) + 1):
            since = time - 1 - by
            sent = call(f"sent{number}", [*columns, "S", str(since)])
            quiet = f", not mute(S,{since})" if faults.crashes else ""
            if columns and faults.partitions:
                quiet += f", not cut(S,C0,{since})"
            if by:
                if columns and by <= faults.late:
                    yield f"{head} :- {sent}, late(S,C0,{since},{by}){quiet}{reach}."
                if columns and by <= faults.again:
                    yield f"{head} :- {sent}, again(S,C0,{since},{by}){quiet}{reach}."
                continue
            if not columns:
                yield f"{head} :- {sent}{quiet}."
                continue
            if rule.head.terms[0] == sender_of(rule) and isinstance(sender_of(rule), Variable | Constant):
                yield f"{head} :- {sent}{reach}."
                continue
            slow = f", not slow(S,C0,{since})" if since < faults.eff or faults.late else ""
            if quiet:
                yield f"{head} :- {sent}, S != C0{slow}{quiet}{reach}."
                yield f"{head} :- {sent}, S = C0{reach}."
            else:
                yield f"{head} :- {sent}{slow}{reach}."

    def _after(self) -> Iterator[str]:
        faults, end = self.faults, self.faults.eot
        for name, arity in _ARITIES.items():
            columns = [f"A{n}" for n in range(arity)]
            lasting = f"+A{arity - 1}-A{arity - 2}" if arity == 3 and name != "drop" else ""
            weight = faults.costs.get({"parted": "partition"}.get(name, name), 1) * UNIT
            yield f"#minimize {{ {weight}{lasting},{name},{','.join(columns)} : {call(name, columns)} }}."
            yield f"#project {name}/{arity}."
        yield "breaks :- broken_row. #defined broken_row/0. #defined obliged_row/0. obliges :- obliged_row."
        if self.invariant is not None:
            columns = [f"C{place}" for place in range(self.columns[self.invariant])]
            for time in range(faults.start, end + 1):
                row = self.bad.atom(self.invariant, columns, time)
                yield f"broken_row :- {row}."
                yield f"#show {call('broken', [*columns, str(time)])} : {row}."
        else:
            columns = [f"C{place}" for place in range(self.columns[self.pre])]
            pre, post = self.bad.atom(self.pre, columns, end), self.bad.atom(self.post, columns, end)
            promised = self.good.atom(self.post, columns, end)
            yield f"broken_row :- {promised}, {pre}, not {post}."
            yield f"obliged_row :- {promised}, {pre}."
            yield f"#show {call('broken', [*columns, str(end)])} : {promised}, {pre}, not {post}."
        for number, rule in enumerate(self.rules):
            if rule.choices:
                for time in range(faults.start, end + 1):
                    if self.cone.matters(rule, time):
                        yield from self._alike(number, rule, time)

    def _alike(self, number: int, rule: Rule, time: int) -> Iterator[str]:
        """What is chosen is shown; and both runs choose alike among the same."""
        rules = Dependencies(rule.choices)
        one = [f"A{n}" for n in range(len(rules.variables))]
        value = f"({','.join(one)},)" if one else "()"
        bad, good = self.bad, self.good
        yield f"#show chosen({number},{time},{value}) : {bad.chosen(number, one, time)}."
        yield f"#show candidate({number},{time},{value}) : {bad.candidate(number, one, time)}."
        if self.invariant is not None or self.seed is not None:
            return
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


PART: Final = 8_000
"""Of so many characters at least are the parts in which timesteps are grounded: each part costs something."""
_ANY: Final = ("models=1", "opt_mode=ignore")
_FAULTS: Final[dict[str, Callable[..., Fault]]] = {
    "drop": Drop,
    "late": Late,
    "again": Again,
    "crash": Crash,
    "stop": Outage,
    "restart": Outage,
    "pause": Outage,
    "parted": Partition,
}
_ARITIES: Final = {
    "drop": 3, "late": 4, "again": 4, "crash": 2, "stop": 2, "restart": 3, "pause": 3, "parted": 3
}  # fmt: skip
