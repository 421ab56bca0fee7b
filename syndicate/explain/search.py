"""Searching a derivation: facts are asked for, the wanted one first; each names all ways in which a rule derives it.

A way waits until all of its premises are proven.  So no fact rests on itself, and recursion costs what it reaches.

>>> ways = {"a": [("by b", ["b"]), ("by c", ["c"])], "b": [("by a", ["a"])], "c": [("by d", ["d"])]}
>>> search = Search(
...     base=lambda fact: "given" if fact == "d" else None,
...     ways=lambda fact: (Way(proof, set(premises)) for proof, premises in ways.get(fact, [])),
...     otherwise=lambda fact: None,
... )
>>> search.prove("a"), search.proven["a"], search.prove("x")
(True, 'by c', False)

The facts are whatever can be a key; a language says how one is given, which ways there are, and what a fact rests on
that no rule derives.

Source: ``docs/design/explain.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

from attrs import define, field

F = TypeVar("F", bound=Hashable)
P = TypeVar("P")

AT_ONCE: Final = 32
"""How many ways of one fact are looked at before the others' turn comes."""


@define(eq=False)
class Way(Generic[F, P]):
    """One way in which a fact is derived, and the premises that are still to be proven."""

    proof: P
    missing: set[F]


@define(eq=False)
class Search(Generic[F, P]):
    """The facts that were asked for, and their proofs.

    *base* is the proof of a fact that needs no other, *ways* are the rules' instances that derive one, *otherwise* is
    the proof of one that no instance derives; None if there is none.
    """

    base: Callable[[F], P | None]
    ways: Callable[[F], Iterator[Way[F, P]]]
    otherwise: Callable[[F], P | None]
    proven: dict[F, P] = field(init=False, factory=dict)
    """The proofs, each behind those of its premises."""
    _asked: dict[F, Iterator[Way[F, P]]] = field(init=False, factory=dict)
    _waiting: dict[F, list[tuple[F, Way[F, P]]]] = field(init=False, factory=dict)
    _derived: set[F] = field(init=False, factory=set)
    _pending: deque[F] = field(init=False, factory=deque)

    def prove(self, wanted: F) -> bool:
        """Look for a proof; whether there is one."""
        self._ask(wanted)
        while self._pending and wanted not in self.proven:
            fact = self._pending.popleft()
            if fact in self.proven:
                continue
            ways = list(islice(self._asked[fact], AT_ONCE))
            if not ways and fact not in self._derived and (proof := self.otherwise(fact)) is not None:
                self.settle(fact, proof)
            for way in ways:
                self._derived.add(fact)
                self._try(fact, way)
                if fact in self.proven:
                    break
            if len(ways) == AT_ONCE:
                self._pending.append(fact)
        return wanted in self.proven

    def open(self) -> list[F]:
        """The facts that were asked for and have no proof."""
        return [fact for fact in self._asked if fact not in self.proven]

    def settle(self, fact: F, proof: P) -> None:
        """Take a proof of a fact, and those that waited for it."""
        settling = [(fact, proof)]
        while settling:
            fact, proof = settling.pop()
            if fact not in self.proven:
                self.proven[fact] = proof
                for head, way in self._waiting.pop(fact, ()):
                    way.missing.discard(fact)
                    if not way.missing:
                        settling.append((head, way.proof))

    def _ask(self, fact: F) -> None:
        if fact in self._asked:
            return
        self._asked[fact] = self.ways(fact)
        proof = self.base(fact)
        if proof is not None:
            self.settle(fact, proof)
        else:
            self._pending.append(fact)

    def _try(self, fact: F, way: Way[F, P]) -> None:
        for premise in list(way.missing):
            self._ask(premise)
        way.missing -= self.proven.keys()
        if not way.missing:
            self.settle(fact, way.proof)
        for premise in way.missing:
            self._waiting.setdefault(premise, []).append((fact, way))
