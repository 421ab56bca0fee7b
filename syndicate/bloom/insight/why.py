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

The reasons are searched on demand in what is there now (:mod:`~syndicate.bloom.insight.witness`); a tick does nothing
for them.  What a table holds from earlier ticks needs no reason any more: the tree says that it was kept, and since
when, if :func:`~syndicate.bloom.insight.memory.remember` has been asked to watch.

**How it is searched.**  Facts are asked, the row first, and each is told all ways in which a rule derives it; a way
waits until all of its premises are proven.  So a tree never goes in a circle, and recursion costs what it reaches.

Source: Buneman et al. 2001; ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import define, frozen

from syndicate.bloom.declaration import Kind
from syndicate.bloom.insight.memory import since
from syndicate.bloom.insight.merging import Merging, merging_of
from syndicate.bloom.insight.witness import Absence, Fact, Grouped, Row, Witness, Witnesses, facts_of
from syndicate.bloom.row import fitted_all
from syndicate.bloom.rule import Rule
from syndicate.bloom.site import here
from syndicate.bloom.state.merged import Merged
from syndicate.bloom.state.state import CellState, SentState, TableState
from syndicate.errors import RowAbsent, RowMisfit
from syndicate.flow.element import Key, key_of, natural
from syndicate.graph import reached

if TYPE_CHECKING:
    from syndicate.bloom.collection import Collection
    from syndicate.bloom.insight.introspection import Looking

_AT_ONCE: Final = 32
"""How many ways of one fact are looked at before the others' turn comes."""
_SHOWN: Final = 10
"""How many rows of a group are printed."""


@frozen(eq=False, repr=False)
class Reason:
    """A row and why it is there; *how* is one of ``rule merged outside always deferred kept``.

    By a rule: *rule*, the rows that it used, what it found to be absent, and the groups that it read.  Merged: its
    lattice values are made of those of the premises, each by a rule, and if these are not all, of the *rest*: what came
    from outside or was there before.  From outside: in *tick*.  Deferred: *rules* says which may have done it, in the
    tick before.  Kept: the table has it since *tick*, None if nobody knows.
    """

    collection: str
    row: Row
    how: str
    rule: Rule | None = None
    rules: tuple[Rule, ...] = ()
    tick: int | None = None
    premises: tuple[Reason, ...] = ()
    absences: tuple[Absence, ...] = ()
    groups: tuple[tuple[Grouped, tuple[Reason, ...]], ...] = ()
    rest: bool = False

    def walk(self) -> Iterator[Reason]:
        """This and all below, each once."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            this = pending.pop()
            if id(this) not in seen:
                seen.add(id(this))
                yield this
                pending += [*this.premises, *(one for _, members in this.groups for one in members)]

    def __str__(self) -> str:
        lines: list[str] = []
        told: set[int] = set()
        pending: list[tuple[int, Reason | str]] = [(0, self)]
        while pending:
            depth, this = pending.pop()
            if isinstance(this, str):
                lines.append(f"{'  ' * depth}{this}")
                continue
            again = this.how in ("rule", "merged") and id(this) in told
            told.add(id(this))
            lines.append(f"{'  ' * depth}{said(this.collection, this.row)}: {'see above' if again else this.because()}")
            if not again:
                pending += reversed([(depth + at, one) for at, one in this._below()])
        return "\n".join(lines)

    __repr__ = __str__

    def _below(self) -> Iterator[tuple[int, Reason | str]]:
        for premise in self.premises[: _SHOWN if self.how == "merged" else None]:
            yield 1, premise
        if self.how == "merged" and len(self.premises) > _SHOWN:
            yield 1, f"and {len(self.premises) - _SHOWN:,} more"
        for group, members in self.groups:
            yield 1, f"{group}:"
            for member in members[:_SHOWN]:
                yield 2, member
            if len(members) > _SHOWN:
                yield 2, f"and {len(members) - _SHOWN:,} more"
        for one in self.absences:
            yield 1, str(one)

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


def said(name: str, row: Row) -> str:
    """A row as it is written."""
    return f"{name}({', '.join(map(repr, row))})"


def ticks(number: int) -> str:
    """So many ticks, in words."""
    return f"{number} tick{'' if number == 1 else 's'}"


def why(program: Looking, collection: str | Collection, row: Any) -> Reason:
    """Why a collection has a row, given whole or by its key; raises :class:`RowAbsent` if it has no such row.

    ``"name <~"`` is what a channel sends.
    """
    root = program._root
    name, key = find(program, collection, row)
    search = Search(root)
    if key not in search.witnesses.contents[name]:
        raise RowAbsent(
            f"{here()}: {said(name, natural(key))} is not there after {ticks(root.budtime)}: ask why_not({name!r}, "
            f"{natural(key)!r})"
        )
    return search.prove(Fact(name, key))


def find(program: Looking, collection: str | Collection, row: Any) -> tuple[str, Key]:
    """The full name and the key of a row that somebody asks for, whether it is there or not."""
    asked = collection if isinstance(collection, str) else collection._name[len(program._prefix) :]
    base, _, sent = asked.partition(" ")
    one = program.collection(base)
    given = row if isinstance(row, (tuple, list)) else (row,)
    try:
        key = key_of(fitted_all([given], one._columns, f"{here()}: {one._name}")[0])
    except IndexError:
        raise RowMisfit(f"{here()}: {row!r} is no row of {one._name}: give a tuple") from None
    held = program._root._state_of(one).contents
    if not sent and key not in held.rows and len(given) == one._keys:
        found = held.by_key(tuple(given))
        key = key if found is None else key_of(natural(found))
    return f"{one._name} {sent}" if sent else one._name, key


@frozen(eq=False)
class _Proof:
    how: str
    rule: Rule | None = None
    seen: Witness = ()
    tick: int | None = None
    rest: bool = False


@define(eq=False)
class _Way:
    """One way in which a fact is derived, and the premises that are still to be proven."""

    fact: Fact
    proof: _Proof
    missing: set[Fact]


class Search:
    """The facts that were asked for, and their proofs."""

    def __init__(self, program: Any) -> None:
        """Over what is there now in a program."""
        self.program = program
        self.states = program._states
        self.kinds = {one._name: one._kind for one in program.collections()}
        self.tick = program.budtime - 1
        contents: dict[str, Mapping[Key, Any]] = {name: state.contents.rows for name, state in self.states.items()}
        for name, state in self.states.items():
            if isinstance(state, SentState):
                contents[f"{name} <~"] = state.sending.rows
        self.witnesses = Witnesses(contents)
        self.proven: dict[Fact, _Proof] = {}
        self.waiting: dict[Fact, list[_Way]] = {}
        self.ways: dict[Fact, Iterator[_Way]] = {}
        self.derived: set[Fact] = set()
        self.pending: deque[Fact] = deque()
        self.rules: dict[str, list[Rule]] = {}
        for rule in program.statements:
            self.rules.setdefault(rule.target, []).append(rule)

    def prove(self, wanted: Fact) -> Reason:
        """The tree of a row that is there."""
        self._ask(wanted)
        self._work(wanted)
        if wanted not in self.proven:  # what is left hangs on rows that tables kept, or that were deferred to here
            for fact in [fact for fact in self.ways if fact not in self.proven and self._is_held(fact)]:
                self._settle(fact, self._from_before(fact))
            self._work(wanted)
        if wanted not in self.proven:
            self._settle(wanted, self._from_before(wanted))
        return self._reason(wanted)

    # --------------------------------------------------------------------------------------------------- proving

    def _ask(self, fact: Fact) -> None:
        if fact in self.ways:
            return
        self.ways[fact] = self._ways_of(fact)
        outside = self._outside(fact)
        if outside is not None:
            self._settle(fact, outside)
        else:
            self.pending.append(fact)

    def _ways_of(self, fact: Fact) -> Iterator[_Way]:
        row = natural(fact.row)
        rules = self.rules.get(fact.name, [])
        merging = merging_of(self.states.get(fact.name.partition(" ")[0]))
        if merging is not None:
            proofs = self._merging_proofs(fact, merging, rules)
        else:
            proofs = (
                _Proof("rule", rule, seen)
                for rule in rules
                for _, seen in self.witnesses.of(rule.body, dict(zip(rule.body.heading, row, strict=True)))
            )
        for proof in proofs:
            yield _Way(fact, proof, set(facts_of(proof.seen)))

    def _merging_proofs(self, fact: Fact, merging: Merging, rules: list[Rule]) -> Iterator[_Proof]:
        """Rules that give the very row; then, if it is no part of one, a merge of what they give."""
        row = natural(fact.row)
        parts: dict[Key, None] = {}
        for rule in rules:
            for given, seen in self.witnesses.of(rule.body, merging.bound(row, rule.body.heading)):
                made = key_of(merging.made(given))
                if made == fact.row:
                    yield _Proof("rule", rule, seen)
                parts[made] = None
        if fact.row in self.witnesses.contents[fact.name]:
            used, whole = merging.cover(row, map(natural, parts))
            if used and (len(used) > 1 or not whole):
                yield _Proof("merged", seen=tuple(Fact(fact.name, key_of(one)) for one in used), rest=not whole)

    def _work(self, wanted: Fact) -> None:
        while self.pending and wanted not in self.proven:
            fact = self.pending.popleft()
            if fact in self.proven:
                continue
            ways = list(islice(self.ways[fact], _AT_ONCE))
            if not ways and fact not in self.derived:
                self._settle(fact, self._from_before(fact))
            for way in ways:
                self.derived.add(fact)
                self._try(way)
                if fact in self.proven:
                    break
            if len(ways) == _AT_ONCE:
                self.pending.append(fact)

    def _try(self, way: _Way) -> None:
        for premise in list(way.missing):
            self._ask(premise)
        way.missing -= self.proven.keys()
        if not way.missing:
            self._settle(way.fact, way.proof)
        for premise in way.missing:
            self.waiting.setdefault(premise, []).append(way)

    def _settle(self, fact: Fact, proof: _Proof) -> None:
        settling = [(fact, proof)]
        while settling:
            fact, proof = settling.pop()
            if fact not in self.proven:
                self.proven[fact] = proof
                for way in self.waiting.pop(fact, ()):
                    way.missing.discard(fact)
                    if not way.missing:
                        settling.append((way.fact, way.proof))

    # --------------------------------------------------------------------------------------------------- without a rule

    def _outside(self, fact: Fact) -> _Proof | None:
        if self.kinds.get(fact.name) is Kind.CONST:
            return _Proof("always")
        state = self.states.get(fact.name)
        if isinstance(state, TableState):
            given = self._came(fact) and any(fact.row in rows for rows in state.outside)
        else:
            given = fact.row in getattr(state, "given", ())
        return _Proof("outside", tick=self.tick) if given else None

    def _from_before(self, fact: Fact) -> _Proof:
        state = self.states.get(fact.name)
        if isinstance(state, CellState):
            return _Proof("merged", rest=True)
        if isinstance(state, TableState) and not self._came(fact):
            return _Proof("kept", tick=since(self.program, fact.name, fact.row))
        if isinstance(state, TableState) and isinstance(state.contents, Merged):
            return _Proof("merged", rest=True)
        return _Proof("deferred", tick=self.tick)

    def _came(self, fact: Fact) -> bool:
        """Whether it was not there in the tick before."""
        changes: Mapping[str, Mapping[Key, int]] = self.program._engine.changes
        return changes.get(fact.name, {}).get(fact.row, 0) > 0

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

    # --------------------------------------------------------------------------------------------------- the tree

    def _reason(self, wanted: Fact) -> Reason:
        needed = reached([wanted], lambda fact: facts_of(self.proven[fact].seen))
        made: dict[Fact, Reason] = {}
        for fact, proof in self.proven.items():  # premises were proven before
            if fact in needed:
                made[fact] = self._made(fact, proof, made)
        return made[wanted]

    def _made(self, fact: Fact, proof: _Proof, made: Mapping[Fact, Reason]) -> Reason:
        return Reason(
            fact.name,
            natural(fact.row),
            proof.how,
            proof.rule,
            self._deferring(fact.name) if proof.how == "deferred" else (),
            proof.tick,
            tuple(made[one] for one in _in_order(proof)),
            tuple(one for one in proof.seen if isinstance(one, Absence)),
            tuple((one, tuple(made[f] for f in one.facts)) for one in proof.seen if isinstance(one, Grouped)),
            proof.rest,
        )


def _in_order(proof: _Proof) -> list[Fact]:
    """The premises, in the order in which the rule reads them."""
    facts = [one for one in dict.fromkeys(proof.seen) if isinstance(one, Fact)]
    if proof.rule is not None:
        order = {one.name: place for place, one in reversed(list(enumerate(proof.rule.reads())))}
        facts.sort(key=lambda fact: order.get(fact.name, 0))
    return facts
