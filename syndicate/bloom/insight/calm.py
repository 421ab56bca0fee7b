"""CALM analysis: which outputs are the same whatever order messages come in, and which rules keep others from it.

Consistency as logical monotonicity: a program whose rules only ever add needs no coordination.  Where a rule waits for
*all* of something (negation, an aggregate), takes something away (``<-``, ``<+-``), or joins rows that must meet by
chance (a race), there is a **point of order**; all that depends on it may depend on order.

>>> from syndicate.bloom import Bloom, bloom, channel, scratch, table
>>> class Votes(Bloom):
...     ballot = channel(["@to", "voter"], []); seen = table(["voter"], []); missing = scratch(["voter"], [])
...     voters = table(["voter"], [])
...     @bloom
...     def rules(self):
...         self.seen <= self.ballot.payloads()
...         self.missing <= self.voters.notin(self.seen)
>>> print(analyse(Votes()))  # doctest: +ELLIPSIS
Votes: 2 rules, 1 point of order, 0 of 1 output confluent
points of order
  rule 2 (...), missing <= voters, seen: the negation must see all of seen
outputs
  missing: diffluent [D, N]. What comes first decides: ballot arrives asynchronously, and then
    rule 2 (...) needs all of seen before it is right

**Verdicts.**  *confluent*: no point of order on any path to it.  *ordered*: there are some, but nothing asynchronous
reaches them, so the same input in the same ticks gives the same rows; more input may overturn these.  *diffluent*: the
network, a timer or a terminal reaches one.  *unknown*: there would be none, but nobody sees what a function does with
lattice values that it is given; ``@monotone`` of :mod:`syndicate.lattice`, on that function, says that it is.

**Resending.**  Where a timer says when rows go that stay, and neither which nor what, as in anti-entropy, it decides
nothing: all go in the end.  No rule takes such rows away, or has them only until more comes.  Rows that are merged
change meanwhile, so that it decides which versions pass through the channel, and not what tables and lattices become
that take them in: the last goes again.  Nor does a timer decide that sends rows until they are acknowledged
(:mod:`syndicate.bloom.insight.retry`).

**Labels** of the paths from sources to a collection, as Blazes has them: ``A`` through a channel, ``N`` through a point
of order, ``NA`` first a point of order and then a channel, ``D`` (diffluent) a point of order after a channel.

Contract: what is called confluent has, when all is at rest, the same rows (of a table its contents, of what passes all
rows that it ever had) for all orders, batches and repetitions of the same input.  That supposes that rows come from
outside only into tables, lattices, channels, input interfaces and what no rule writes, and are only inserted; that
functions are pure, and, where they are marked, are what their marks say; that the columns of lattice values that come
from outside are declared as such; that no tick raises; that timers fire again as long as that changes anything; and
that no row is lost on its way, or that it is sent again.

Source: Alvaro et al. 2011a (points of order); Alvaro et al. 2014 (labels); ``docs/design/bloom.md``, "Tools" and
"Verdicts on the library".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from html import escape
from typing import Final

from attrs import evolve, frozen

from syndicate.bloom.declaration import SENT, TABLES, TAKING, Kind, Rule, Seal
from syndicate.bloom.insight.arrival import RACE, ArrivalOrder, Hazard, arrival_of
from syndicate.bloom.insight.resending import says_when
from syndicate.bloom.insight.retry import RetryLoop, declarations_of, retries_of
from syndicate.bloom.rules.abstract_value import Unseen
from syndicate.bloom.rules.symbols import declaration_of, kind_of
from syndicate.bloom.tick.runtime import Instantiated, Runtime, runtime_of
from syndicate.explain.derivation import named
from syndicate.graph import reached

ASYNCHRONOUS: Final = frozenset({*SENT, Kind.PERIODIC})
"""Whose rows come when it pleases somebody else."""

GROWING: Final = frozenset({*TABLES, Kind.LATTICE})

CLOCK: Final = "clock"
RESENDING: Final = "resending"


@frozen
class Point:
    """A point of order: *rule*, what is not monotone about it, and the asynchronous sources that reach it."""

    rule: Rule
    hazard: Hazard
    asynchronous: tuple[str, ...]
    feeds_itself: bool = False
    """Whether what it must see all of depends on what it derives, over time."""

    @property
    def place(self) -> str:
        """The rule's number and site."""
        return f"rule {self.rule.number} ({self.rule.site})"

    @property
    def unseen(self) -> bool:
        """Whether it may not be one: nobody sees what a function does."""
        return isinstance(self.hazard.why, Unseen)

    def __str__(self) -> str:
        read = ", ".join(dict.fromkeys(one.name for one in self.rule.reads())) or "values"
        return f"{self.place}, {self.rule.head} {self.rule.op} {read}: {self._what()}"

    def _what(self) -> str:
        hazard, of = self.hazard, named(self.hazard.of)
        match hazard.why:
            case "race":
                return f"a race: {of} must be there in one tick with {named(hazard.with_ or hazard.of)}"
            case "resending":
                return f"resending: {of} says when rows of {named(hazard.with_)} go, again and again"
            case "deletion":
                return f"a deletion: rows of {self.rule.head} that come later are not deleted"
            case "replacement":
                return f"a replacement: the last row of a key stays in {self.rule.head}"
            case "function of merged rows":
                return f"a function of rows of {of} that were merged if they came in one tick"
            case "clock":
                return "the clock: how many ticks there are, and when, is nobody's input"
            case Unseen(why):
                return f"what {why} does with {of} cannot be seen"
            case why:
                return f"the {why} must see all of {of}"

    @property
    def coordination(self) -> tuple[str, str] | None:
        """What would remove it, by its name in the field, and how; None where nothing needs to be done."""
        hazard, of = self.hazard, named(self.hazard.of)
        match hazard.why:
            case "resending" | Unseen():
                return None
            case "race":
                return "sequencing", f"keep {of} in a table, or give all replicas one order of it: library.paxos"
            case "deletion" | "replacement":
                return (
                    "sequencing",
                    f"one order of what goes into {self.rule.head}: library.paxos; or a lattice",
                )
            case "clock":
                return "sequencing", "a time that comes with the row, in place of the clock"
            case "function of merged rows":
                return "sealing", f"look into rows of {of} when all parts of one are there"
        if self.feeds_itself:
            return "consensus", f"{self.rule.head} decides once among what comes: library.paxos"
        return (
            "sealing",
            f"say when all of {of} is there: seal(), library.sealing; or a quorum: library.voting",
        )

    def needs(self) -> str:
        """What it waits for."""
        hazard, of = self.hazard, named(self.hazard.of)
        match hazard.why:
            case "race":
                return f"{self.place} needs {of} in one tick with {named(hazard.with_ or hazard.of)}"
            case "resending":
                return f"{self.place} sends what is there of {named(hazard.with_)} when {of} fires"
            case "deletion":
                return f"{self.place} deletes from {self.rule.head} only what is there already"
            case "replacement":
                return f"{self.place} keeps what comes last in {self.rule.head}"
            case "function of merged rows":
                return f"{self.place} looks into what was merged of {of} in one tick"
            case "clock":
                return f"{self.place} reads the clock"
            case Unseen(why):
                return f"{self.place} gives {of} to {why}: if it is monotone, mark that function so"
            case _:
                return f"{self.place} needs all of {of} before it is right"


@frozen
class OutputVerdict:
    """What is known of an output: its *verdict*, the labels of the paths to it, and the points of order on them."""

    name: str
    verdict: str
    labels: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def confluent(self) -> bool:
        """Whether its rows are the same for all orders of input."""
        return self.verdict == "confluent"

    def head(self) -> str:
        """Its name, the verdict, and the labels."""
        return f"{self.name}: {self.verdict}{f' [{shown}]' if (shown := ', '.join(filter(None, self.labels))) else ''}."

    def __str__(self) -> str:
        head = self.head()
        if self.confluent:
            return f"{head} Order, batches and repetition of the input do not change its rows"
        if self.verdict == "unknown":
            said, points = "Nobody sees what functions do with lattice values:", self.points
        elif self.verdict == "ordered":
            said, points = "More input may overturn its rows:", self.points
        else:
            points = tuple(point for point in self.points if point.asynchronous)
            sources = list(dict.fromkeys(name for point in points for name in point.asynchronous))
            comes = f"{named(sources)} arrive{'' if len(sources) > 1 else 's'} asynchronously, and then"
            said = f"What comes first decides: {comes}" if sources else "What comes first decides:"
        return "\n".join([f"{head} {said}", *(f"  {point.needs()}" for point in points)])


@frozen
class Calm:
    """The analysis of a program; ``str`` is a report."""

    program: str
    rules: int
    points: tuple[Point, ...]
    outputs: tuple[OutputVerdict, ...]
    collections: Mapping[str, OutputVerdict]
    """The same of all collections."""
    ending: tuple[str, ...] = ()
    """Where rules write ``halt``: what has not happened by then is not accounted for."""
    seals: tuple[Seal, ...] = ()
    """What the program promises of its input, on which the verdicts rest."""
    retries: tuple[RetryLoop, ...] = ()
    """Rows that go until they are acknowledged, on which they rest as well."""

    @property
    def confluent(self) -> bool:
        """Whether all outputs are."""
        return all(output.confluent for output in self.outputs)

    def __getitem__(self, name: str) -> OutputVerdict:
        return self.collections[name]

    def __str__(self) -> str:
        good = sum(output.confluent for output in self.outputs)
        points, outputs = _counted(len(self.points), "point"), _counted(len(self.outputs), "output")
        lines = [f"{self.program}: {_counted(self.rules, 'rule')}, {points} of order, {good} of {outputs} confluent"]
        if self.points:
            lines += ["points of order", *(f"  {point}" for point in self.points)]
        if self.outputs:
            lines += ["outputs", *(f"  {line}" for output in self.outputs for line in self._said(output))]
        lines += [f"seal: {one}; what changes it later makes its tick fail" for one in self.seals]
        lines += [f"retry: {one}, which must not have come otherwise" for one in self.retries]
        lines += [f"note: {rule} ends the program: what has not happened by then is not seen" for rule in self.ending]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        marks = {True: "&#10003;", False: "&#10007;"}
        rows = "".join(
            f"<tr><td>{marks[one.confluent]} {escape(one.name)}</td><td>{escape(one.verdict)}</td></tr>"
            for one in self.outputs
        )
        return f"<table><tr><th>output</th><th>verdict</th></tr>{rows}</table><pre>{escape(str(self))}</pre>"

    def _said(self, output: OutputVerdict) -> list[str]:
        """The lines of an output; one if all that would be said has been said of another."""
        first = next(one for one in self.outputs if one.points == output.points)
        return str(output).splitlines() if first is output or output.confluent else [f"{output.head()} As {first.name}"]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# ------------------------------------------------------------------------------------------------------- the analysis


def analyse(program: Instantiated) -> Calm:
    """Which outputs of a program are confluent, and why others are not."""
    return calm_of(runtime_of(program))


def calm_of(runtime: Runtime) -> Calm:
    """The same, of what ticks."""
    rules = runtime.wiring.rules
    kinds = {name: kind_of(one) for name, one in runtime.collections.items()}
    retries = retries_of(rules, declarations_of(runtime.collections), runtime.address)
    arrivals = _arrivals(kinds, rules, runtime.outer, {one.table for one in retries if one.taken})
    merging = frozenset(name for name, one in runtime.collections.items() if declaration_of(one).lattices)
    taken = {rule.head for rule in rules if rule.op in TAKING}
    reach = reach_of(kinds, rules)
    merged = {name for name in kinds if any(one in merging or kinds[one] is Kind.LATTICE for one in reach[name])}
    lasting = {name: name in merged for name in _lasting(kinds, rules, arrivals)}
    seals = [one for one in runtime.seals if not taken.intersection((one.of, one.by))]
    settled = {rule for one in retries for rule in one.settled}
    hazards = {
        rule: [] if rule in settled else _hazards(rule, kinds, arrivals, merging, lasting, seals) for rule in rules
    }
    sources = {name: [one for one in kinds if one in reach[name] and kinds[one] in ASYNCHRONOUS] for name in kinds}
    points = []
    for rule in rules:
        read = dict.fromkeys(one.name for one in rule.reads())
        if rule.op in TAKING:  # what is taken away depends on what is put there
            read[rule.head] = None
        clock = ["now"] if "now" in read else []
        reached = tuple(dict.fromkeys([*clock, *(source for name in read for source in sources[name])]))
        points += [
            Point(rule, hazard, reached, any(rule.head in reach[name] for name in hazard.of))
            for hazard in hazards[rule]
        ]
    labels, at_rest = _labels(kinds, rules, hazards), _labels(kinds, rules, _settled(hazards))
    outputs = {}
    for name in kinds:
        met = [point for point in points if point.rule.head in reach[name]]
        if arrivals[name] is ArrivalOrder.PASSING:
            outputs[name] = _output(name, labels[name], met)
        else:
            outputs[name] = _output(name, at_rest[name], [point for point in met if point.hazard.why != RESENDING])
    verdicts = tuple(outputs[name] for name in kinds if _is_output(name, kinds, rules))
    ending = tuple(f"rule {rule.number} ({rule.site})" for rule in rules if rule.head == "halt")
    return Calm(
        runtime.name, len(rules), tuple(points), verdicts, outputs, ending, tuple(runtime.seals), tuple(retries)
    )


def _is_output(name: str, kinds: Mapping[str, Kind], rules: Sequence[Rule]) -> bool:
    """What somebody outside looks at: interfaces, what is sent, and what is written and that no rule reads."""
    read = any(one.name == name for rule in rules for one in rule.reads())
    written = any(rule.head == name for rule in rules)
    if name == "halt" or not written:
        return False
    return kinds[name] in SENT or not read or (kinds[name] is Kind.OUTPUT and "." not in name)


def _arrivals(
    kinds: Mapping[str, Kind], rules: Sequence[Rule], own: Iterable[str], leaving: AbstractSet[str]
) -> dict[str, ArrivalOrder]:
    """How the rows of each collection come: the least solution; those of some tables are *leaving* them again."""
    written = {rule.head for rule in rules}
    outer = set(own)
    arrivals: dict[str, ArrivalOrder] = {}
    for name, kind in kinds.items():
        external = name not in written or (kind is Kind.INPUT and name in outer)
        if kind is Kind.CONST:
            arrivals[name] = ArrivalOrder.CONSTANT
        elif name in leaving:
            arrivals[name] = ArrivalOrder.PASSING
        elif kind in GROWING:
            arrivals[name] = ArrivalOrder.GROWING
        else:
            passing = external or kind in ASYNCHRONOUS or name == "now"
            arrivals[name] = ArrivalOrder.PASSING if passing else ArrivalOrder.CONSTANT
    while True:
        before = dict(arrivals)
        for rule in rules:
            coming = arrival_of(rule.body, arrivals).arrival
            if rule.op == "<+" and coming is ArrivalOrder.CONSTANT:  # not in the first tick
                coming = ArrivalOrder.GROWING
            if kinds[rule.head] not in GROWING:
                arrivals[rule.head] = max(arrivals[rule.head], coming)
        if arrivals == before:
            return arrivals


def _lasting(kinds: Mapping[str, Kind], rules: Sequence[Rule], arrivals: Mapping[str, ArrivalOrder]) -> list[str]:
    """The collections whose rows stay: a store that none are taken from, and what adds rows as long as such grow."""
    leaving = {name for name in kinds if arrivals[name] is ArrivalOrder.PASSING}
    leaving.update(rule.head for rule in rules if rule.op in TAKING)
    others = [rule for rule in rules if kinds[rule.head] not in GROWING]
    while True:
        names = {
            rule.head for rule in others if not _adds(rule, arrivals) or leaving & {one.name for one in rule.reads()}
        }
        if names <= leaving:
            return [name for name in kinds if name not in leaving]
        leaving |= names


def _adds(rule: Rule, arrivals: Mapping[str, ArrivalOrder]) -> bool:
    """Whether a rule is monotone, as far as is seen."""
    return all(isinstance(one.why, Unseen) for one in arrival_of(rule.body, arrivals).hazards)


def _hazards(
    rule: Rule,
    kinds: Mapping[str, Kind],
    arrivals: Mapping[str, ArrivalOrder],
    merging: frozenset[str],
    lasting: Mapping[str, bool],
    seals: Sequence[Seal],
) -> list[Hazard]:
    """What is not monotone about a rule; *lasting* says of what stays whether it is merged with what comes later."""
    coming = arrival_of(rule.body, arrivals, merging, seals)
    hazards = []
    for one in coming.hazards:
        if not _resends(rule, one, kinds, lasting.keys()):
            hazards.append(one)
        elif any(lasting.get(name) for name in coming.reads):  # which versions go, the timer says
            hazards.append(evolve(one, why=RESENDING))
    if rule.op in TAKING:
        hazards.append(Hazard(TAKING[rule.op], coming.reads))
    if "now" in coming.reads:
        hazards.append(Hazard(CLOCK, ("now",)))
    return hazards


def _resends(rule: Rule, hazard: Hazard, kinds: Mapping[str, Kind], lasting: AbstractSet[str]) -> bool:
    """Whether what seems to be a race sends lasting rows whenever a timer fires."""
    timers = {name for name, kind in kinds.items() if kind is Kind.PERIODIC}
    return (
        hazard.why == RACE
        and kinds[rule.head] is Kind.CHANNEL
        and lasting | timers >= set(hazard.of)
        and lasting >= set(hazard.with_)
        and says_when(rule.body, timers)
    )


def _settled(hazards: Mapping[Rule, Sequence[Hazard]]) -> dict[Rule, list[Hazard]]:
    """Without what does not matter once all is at rest."""
    return {rule: [one for one in several if one.why != RESENDING] for rule, several in hazards.items()}


def reach_of(names: Iterable[str], rules: Iterable[Rule]) -> dict[str, set[str]]:
    """The collections that each depends on, itself included."""
    below: dict[str, set[str]] = {name: set() for name in names}
    for rule in rules:
        below[rule.head].update(one.name for one in rule.reads())
    return {name: set(reached([name], below.__getitem__)) for name in below}


_THEN: Final = {
    ("", "A"): "A", ("", "N"): "N", ("A", "A"): "A", ("N", "N"): "N", ("N", "A"): "NA", ("NA", "A"): "NA",
    ("A", "N"): "D", ("NA", "N"): "D", ("D", "A"): "D", ("D", "N"): "D",
}  # fmt: skip


def _labels(
    kinds: Mapping[str, Kind], rules: Sequence[Rule], hazards: Mapping[Rule, Sequence[Hazard]]
) -> dict[str, tuple[str, ...]]:
    """The labels of the paths to each collection."""
    written = {rule.head for rule in rules}
    labels: dict[str, set[str]] = {name: set() for name in kinds}
    for name, kind in kinds.items():
        if kind in ASYNCHRONOUS:
            labels[name].add("A")
        elif name not in written or kind in GROWING or kind is Kind.INPUT:
            labels[name].add("")
    while True:
        before = {name: set(some) for name, some in labels.items()}
        for rule in rules:
            ordered = {name for one in hazards[rule] for name in (*one.of, *one.with_)}
            for read in dict.fromkeys(one.name for one in rule.reads()):
                steps = [*(["N"] if read in ordered else []), *(["A"] if kinds[rule.head] in ASYNCHRONOUS else [])]
                for label in before[read]:
                    for step in steps:
                        label = _THEN[label, step]  # noqa: PLW2901  # a path is a sequence of steps
                    labels[rule.head].add(label)
        if labels == before:
            return {name: tuple(sorted(some)) for name, some in labels.items()}


def _output(name: str, labels: tuple[str, ...], points: Sequence[Point]) -> OutputVerdict:
    if not points:
        return OutputVerdict(name, "confluent", labels, ())
    seen = [point for point in points if not point.unseen]
    if any(point.asynchronous for point in seen):
        return OutputVerdict(name, "diffluent", labels, tuple(points))
    return OutputVerdict(name, "unknown" if len(seen) < len(points) else "ordered", labels, tuple(points))
