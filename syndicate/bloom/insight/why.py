"""Provenance: why a row is there, as a tree down to what came from outside or was there before.

>>> from syndicate.bloom import Bloom, bloom, table
>>> class Reach(Bloom):
...     link = table(["from", "to"]); path = table(["from", "to"])
...     @bloom
...     def closure(self):
...         self.path <= self.link
...         self.path <= (self.link * self.path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
>>> p = Reach(); p.link <= [(1, 2), (2, 3)]; p.tick(); print(why(p, "path", (1, 3)))  # doctest: +ELLIPSIS
path(1, 3): rule 2 (...)
  link(1, 2): from outside, in tick 0
  path(2, 3): rule 1 (...)
    link(2, 3): from outside, in tick 0

The reasons are searched on demand in what is there now (:mod:`syndicate.explain`); a tick does nothing for them.  What
a table holds from earlier ticks needs no reason any more: the tree says that it was kept, and since when, if
:func:`~syndicate.bloom.insight.row_age.remember` has been asked to watch.

Source: Buneman et al. 2001; ``docs/design/bloom.md``, "Tools".

Merging: of which rows with lattice values a row is made.

>>> from syndicate.lattice import Set
>>> votes = KeyMerge(("round", "who"), 1, {"who": Set})
>>> votes.bound((1, Set(["ann", "bob"])), ("round", "who")), votes.coerced((1, "ann"))
({'round': 1}, (1, Set(['ann'])))
>>> votes.cover((1, Set(["ann", "bob"])), [(1, Set(["ann"])), (1, Set()), (1, Set(["ann", "bob"]))])
([(1, Set(['ann', 'bob']))], True)

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/lattice.md``, "Lattices and rows".

Why not: what each rule lacked to derive a row that is not there.

>>> from syndicate.bloom import Bloom, bloom, table
>>> class Reach(Bloom):
...     link = table(["from", "to"]); path = table(["from", "to"])
...     @bloom
...     def closure(self):
...         self.path <= self.link
...         self.path <= (self.link * self.path).pairs(("to", "from"), lambda l, p: (l.from_, p.to))
>>> p = Reach(); p.link <= [(1, 2), (2, 3)]; p.tick(); print(why_not(p, "path", (1, 9)))  # doctest: +ELLIPSIS
path(1, 9) is not there after 1 tick
  rule 1 (...): no link with from = 1, to = 9
  rule 2 (...): no path with to = 9

Source: ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from types import SimpleNamespace
from typing import ClassVar

from attrs import frozen

from syndicate import plan
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Kind, Names, Rule, fitted_all, here
from syndicate.bloom.insight.row_age import since_in
from syndicate.bloom.rules.function import coerced_row
from syndicate.bloom.rules.symbols import key_count, kind_of
from syndicate.bloom.rules.term import TermExpression, place_of
from syndicate.bloom.state.state import CellState, Merged, SentState, State, TableState
from syndicate.bloom.tick.lattice_term import TermEvaluation
from syndicate.bloom.tick.runtime import Instance, Instantiated, Runtime, instance_of
from syndicate.errors import RowAbsent, RowMisfit
from syndicate.explain.absence import WhyNot
from syndicate.explain.derivation import Derivation, Row, said
from syndicate.explain.lack import FailedRule, lacks
from syndicate.explain.proof import Proof, Proofs
from syndicate.explain.witness import Bound, Fact, Grouped, Matches, Witnesses, fits
from syndicate.flow.element import Key, key_of, natural
from syndicate.lattice.lattice import Lattice, join
from syndicate.values.value import Value

# ---------------------------------------------------------------------------------------------------- merging, notified


@frozen(eq=False)
class KeyMerge:
    """How rows of a collection are merged: by the first *keys* columns; *lattices* are those that are known."""

    columns: Names
    keys: int
    lattices: Mapping[str, type[Lattice]]

    def bound(self, row: Row, heading: Sequence[str]) -> dict[str, Value]:
        """What a row has in common with those that it is made of."""
        values = dict(zip(self.columns, row, strict=True))
        return {name: values[name] for name in heading if not isinstance(values[name], Lattice)}

    def coerced(self, row: Row) -> Row:
        """A row as it is merged."""
        return coerced_row(row, self.columns, self.lattices, "")

    def cover(self, row: Row, parts: Iterable[Row]) -> tuple[list[Row], bool]:
        """Enough of *parts*, and whether they make all of the row."""
        some = list(parts)
        whole = next((part for part in some if key_of(part) == key_of(row)), None)
        if whole is not None:
            return [whole], True
        used: list[Row] = []
        held: Row | None = None
        for part in some:
            more = part if held is None else self._joined(held, part)
            if held is None or key_of(more) != key_of(held):
                used.append(part)
                held = more
            if key_of(held) == key_of(row):
                return used, True
        return used, False

    def _joined(self, one: Row, other: Row) -> Row:
        pairs = zip(one, other, strict=True)
        return tuple([reduce(join, pair) if isinstance(pair[0], Lattice) else pair[0] for pair in pairs])


def merging_of(state: State | None) -> KeyMerge | None:
    """How the rows that a state holds are merged; None if they are not."""
    if isinstance(state, CellState):
        return KeyMerge(("value",), 0, {"value": state.lattice})
    contents = None if state is None else state.contents
    if isinstance(contents, Merged):
        return KeyMerge(contents.columns, contents.keys, contents.lattices)
    return None


# ----------------------------------------------------------------------------------------------------------- provenance


@frozen(eq=False, repr=False)
class Reason(Derivation):
    """A row and why it is there; *how* is one of ``rule merged outside always deferred kept``.

    By a rule: *rule*, the rows that it used, what it found to be absent, and the groups that it read.  Merged: its
    lattice values are made of those of the premises, each by a rule, and if these are not all, of the *rest*: what came
    from outside or was there before.  From outside: in *tick*.  Deferred: *rules* says which may have done it, in the
    tick before.  Kept: the table has it since *tick*, None if nobody knows.
    """

    premises: tuple[Reason, ...] = ()
    groups: tuple[tuple[Grouped, tuple[Reason, ...]], ...] = ()
    rule: Rule | None = None
    rules: tuple[Rule, ...] = ()
    tick: int | None = None
    rest: bool = False

    once: ClassVar[tuple[str, ...]] = ("rule", "merged")

    @property
    def collection(self) -> str:
        """The collection that has the row; ``"name <~"`` is what a channel sends."""
        return self.relation

    def is_long(self) -> bool:
        """A value may be merged of many."""
        return self.how == "merged"

    def place(self) -> str:
        """Where the rule is written."""
        return "" if self.rule is None else self.rule.site

    def details(self) -> dict[str, Value]:
        """The tick, if it is known, and the numbers of the rules that may have made it."""
        return {"tick": self.tick, "rules": [one.number for one in (*([self.rule] if self.rule else ()), *self.rules)]}

    def because(self) -> str:
        """The reason in a few words."""
        match self.how:
            case "rule":
                assert self.rule is not None
                return f"rule {self.rule.number} ({self.rule.site})"
            case "outside":
                return f"from outside, in tick {self.tick}"
            case "merged" if not self.premises:
                return "from outside, or there before"
            case "merged":
                more = ", and of what came from outside or was there before" if self.rest else ""
                return f"merged of {len(self.premises)} value{'' if len(self.premises) == 1 else 's'}{more}"
            case "always":
                return "always there"
            case "deferred":
                which = " or ".join(f"{rule.number} ({rule.site})" for rule in self.rules)
                return f"by rule {which} of the tick before" if which else "from the tick before"
            case _:
                return "kept from an earlier tick" if self.tick is None else f"kept since tick {self.tick}"


def ticks(number: int) -> str:
    """So many ticks, in words."""
    return f"{number} tick{'' if number == 1 else 's'}"


def why(program: Instantiated, collection: str | Collection, row: Value) -> Reason:
    """Why a collection has a row, given whole or by its key; raises :class:`RowAbsent` if it has no such row.

    ``"name <~"`` is what a channel sends.
    """
    instance = instance_of(program)
    runtime = instance.runtime
    name, key = find(instance, collection, row)
    reasons = Reasons(runtime)
    if key not in reasons.witnesses.contents[name]:
        raise RowAbsent(
            f"{here()}: {said(name, natural(key))} is not there after {ticks(runtime.done)}: ask why_not({name!r}, "
            f"{natural(key)!r})"
        )
    return reasons.prove(Fact(name, key))


def find(instance: Instance, collection: str | Collection, row: Value) -> tuple[str, Key]:
    """The full name and the key of a row that somebody asks for, whether it is there or not."""
    asked = collection if isinstance(collection, str) else collection.tabname[len(instance.prefix) :]
    base, _, sent = asked.partition(" ")
    one = instance.collection(base)
    values = row if isinstance(row, (tuple, list)) else (row,)
    try:
        key = key_of(fitted_all([values], one.cols, f"{here()}: {one.tabname}")[0])
    except IndexError:
        raise RowMisfit(f"{here()}: {row!r} is no row of {one.tabname}: give a tuple") from None
    held = instance.runtime.states[one.tabname].contents
    if not sent and key not in held.rows and len(values) == key_count(one):
        match = held.by_key(tuple(values))
        key = key if match is None else key_of(natural(match))
    return f"{one.tabname} {sent}" if sent else one.tabname, key


class TermWitnesses(Witnesses):
    """Searches terms of lattices too: they are computed again."""

    def other(self, this: plan.Expression, bound: Bound) -> Matches:
        """The rows of a term."""
        if not isinstance(this, TermExpression):
            yield from super().other(this, bound)
            return
        for row, seen in self.of(this.source, {}):
            cells = {
                name.removeprefix("value of "): SimpleNamespace(value=value)
                for name, value in zip(this.source.heading, row, strict=True)
            }
            answer = TermEvaluation(this.term, cells, naive=True).pull(place_of(this.term))
            for result in [(answer,)] if this.rows is None else this.rows(answer):
                if fits(result, this.heading, bound):
                    yield result, seen


class Reasons(Proofs[Rule, Reason]):
    """The reasons of what is there now in a program."""

    def __init__(self, runtime: Runtime) -> None:
        """Over what is there now in a program."""
        self.runtime = runtime
        self.states = runtime.states
        self.kinds = {name: kind_of(one) for name, one in runtime.collections.items()}
        self.tick = runtime.done - 1
        contents: dict[str, Mapping[Key, Value]] = {name: state.contents.rows for name, state in self.states.items()}
        for name, state in self.states.items():
            if isinstance(state, SentState):
                contents[f"{name} <~"] = state.sending.rows
        rules: dict[str, list[Rule]] = {}
        for rule in runtime.wiring.rules:
            rules.setdefault(rule.target, []).append(rule)
        super().__init__(TermWitnesses(contents), rules)

    def prove(self, wanted: Fact) -> Reason:
        """The tree of a row that is there."""
        search = self.search
        if not search.prove(wanted):  # what is left hangs on rows that tables kept, or that were deferred to here
            for fact in search.open():
                if self._is_held(fact):
                    search.settle(fact, self.otherwise(fact))
            if not search.prove(wanted):
                search.settle(wanted, self.otherwise(wanted))
        return self.tree(wanted)

    # --------------------------------------------------------------------------------------------------- by rules

    def bound(self, fact: Fact, rule: Rule) -> Bound:
        """The columns of a collection are those of its rules' bodies, in order; lattice values are merged."""
        row, merging = natural(fact.row), self._merging(fact.name)
        heading = rule.body.heading
        return dict(zip(heading, row, strict=True)) if merging is None else merging.bound(row, heading)

    def proofs(self, fact: Fact) -> Iterator[Proof[Rule]]:
        """By rules, or merged of what these derive."""
        merging = self._merging(fact.name)
        return super().proofs(fact) if merging is None else self._merged(fact, merging)

    def _merging(self, name: str) -> KeyMerge | None:
        return merging_of(self.states.get(name.partition(" ")[0]))

    def _merged(self, fact: Fact, merging: KeyMerge) -> Iterator[Proof[Rule]]:
        """Rules that give the very row; then, if it is no part of one, a merge of what they give."""
        parts: dict[Key, None] = {}
        for rule in self.rules.get(fact.name, ()):
            for row, seen in self.witnesses.of(rule.body, self.bound(fact, rule)):
                key = key_of(merging.coerced(row))
                if key == fact.row:
                    yield Proof("rule", rule, seen)
                parts[key] = None
        if fact.row in self.witnesses.contents[fact.name]:
            used, whole = merging.cover(natural(fact.row), map(natural, parts))
            if used and (len(used) > 1 or not whole):
                yield Proof("merged", seen=tuple(Fact(fact.name, key_of(one)) for one in used), rest=not whole)

    # --------------------------------------------------------------------------------------------------- without a rule

    def base_proof(self, fact: Fact) -> Proof[Rule] | None:
        """The proof of what is always there, or came from outside."""
        if self.kinds.get(fact.name) is Kind.CONST:
            return Proof("always")
        state = self.states.get(fact.name)
        if isinstance(state, TableState):
            outside = self._came(fact) and any(fact.row in rows for rows in state.outside)
        else:
            outside = fact.row in getattr(state, "given", ())
        return Proof("outside", tick=self.tick) if outside else None

    def otherwise(self, fact: Fact) -> Proof[Rule]:
        """The proof of what was there before the tick, or was deferred to it."""
        state = self.states.get(fact.name)
        if isinstance(state, CellState):
            return Proof("merged", rest=True)
        if isinstance(state, TableState) and not self._came(fact):
            return Proof("kept", tick=since_in(self.runtime, fact.name, fact.row))
        if isinstance(state, TableState) and isinstance(state.contents, Merged):
            return Proof("merged", rest=True)
        return Proof("deferred", tick=self.tick)

    def _came(self, fact: Fact) -> bool:
        """Whether it was not there in the tick before."""
        return self.runtime.engine.changes.get(fact.name, {}).get(fact.row, 0) > 0

    def _is_held(self, fact: Fact) -> bool:
        """Whether it needs no reason: a table kept it, or a rule of the tick before gave it."""
        state = self.states.get(fact.name)
        if isinstance(state, CellState) or state is None:
            return state is not None
        if isinstance(state, TableState) and not self._came(fact):
            return fact.row in state.given or isinstance(state.contents, Merged)
        later = (state.next, state.replacing) if isinstance(state, TableState) else (state.next,)
        return any(fact.row in one.gone or (fact.row in one.rows and fact.row not in one.new) for one in later)

    def _deferring(self, name: str) -> tuple[Rule, ...]:
        return tuple(rule for op in ("<+", "<+-") for rule in self.rules.get(f"{name} {op}", ()))

    def derivation(
        self,
        fact: Fact,
        proof: Proof[Rule],
        premises: tuple[Reason, ...],
        groups: tuple[tuple[Grouped, tuple[Reason, ...]], ...],
    ) -> Reason:
        """The reason of a row, from those of what it rests on."""
        return Reason(
            fact.name,
            natural(fact.row),
            proof.how,
            premises=premises,
            conditions=proof.absences,
            groups=groups,
            rule=proof.rule,
            rules=self._deferring(fact.name) if proof.how == "deferred" else (),
            tick=proof.tick,
            rest=proof.rest,
        )


# -------------------------------------------------------------------------------------------------------------- why not


@frozen(eq=False, repr=False)
class Lack(WhyNot):
    """A row that is not there, what each rule lacks, and whether it *waits* for the next tick."""

    attempts: tuple[FailedRule, ...] = ()
    ticks: int = 0
    waits: bool = False

    def title(self) -> str:
        """That it is not there, and since when."""
        return super().title() if self.there else f"{super().title()} after {ticks(self.ticks)}"

    def notes(self) -> list[str]:
        """Whether it waits."""
        return ["it waits for the next tick"] if self.waits else []

    def nothing(self) -> str:
        """If there is no rule."""
        return "no rule derives such rows within a tick, and nobody gave it"


def why_not(program: Instantiated, collection: str | Collection, row: Value) -> Lack:
    """What each rule lacks to derive a row."""
    instance = instance_of(program)
    runtime = instance.runtime
    name, key = find(instance, collection, row)
    reasons, fact = Reasons(runtime), Fact(name, key)
    if key in reasons.witnesses.contents[name]:
        return Lack(name, natural(key), ticks=runtime.done, there=True)
    attempts = [
        attempt
        for rule in reasons.rules.get(name, ())
        for attempt in FailedRule.of(
            rule,
            f"rule {rule.number} ({rule.site})",
            rule.site,
            lacks(reasons.witnesses, rule.body, reasons.bound(fact, rule)),
        )
    ]
    state = runtime.states.get(name)
    waits = state is not None and not isinstance(state, CellState) and key in state.inserted
    return Lack(name, natural(key), attempts=tuple(attempts), ticks=runtime.done, waits=waits)
