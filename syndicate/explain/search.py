"""Searching a derivation: facts are asked for, the wanted one first; each names the alternatives
by which rules derive it.

An alternative waits until all of its premises are proven.  So no fact rests on itself, and recursion costs what it
reaches.

>>> alternatives = {"a": [("by b", ["b"]), ("by c", ["c"])], "b": [("by a", ["a"])], "c": [("by d", ["d"])]}
>>> search = Search(
...     base=lambda fact: "given" if fact == "d" else None,
...     alternatives=lambda fact: (Alternative(proof, set(premises)) for proof, premises in alternatives.get(fact, [])),
...     otherwise=lambda fact: None,
... )
>>> search.prove("a"), search.proven["a"], search.prove("x")
(True, 'by c', False)

The facts are whatever can be a key; a language says how one is given, which alternatives there are, and what
a fact rests on that no rule derives.

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
"""How many alternatives of one fact are looked at before the others' turn comes."""


@define(eq=False)
class Alternative(Generic[F, P]):
    """One derivation of a fact, and the premises that are still to be proven."""

    proof: P
    missing: set[F]


@define(eq=False)
class Search(Generic[F, P]):
    """The facts that were asked for, and their proofs.

    *base* is the proof of a fact that needs no other, *alternatives* are the rules' instances that derive one,
    *otherwise* is the proof of one that no instance derives; None if there is none.
    """

    base: Callable[[F], P | None]
    alternatives: Callable[[F], Iterator[Alternative[F, P]]]
    otherwise: Callable[[F], P | None]
    proven: dict[F, P] = field(init=False, factory=dict)
    """The proofs, each behind those of its premises."""
    _asked: dict[F, Iterator[Alternative[F, P]]] = field(init=False, factory=dict)
    _waiting: dict[F, list[tuple[F, Alternative[F, P]]]] = field(init=False, factory=dict)
    _derived: set[F] = field(init=False, factory=set)
    _pending: deque[F] = field(init=False, factory=deque)

    def prove(self, wanted: F) -> bool:
        """Look for a proof; whether there is one."""
        self._ask(wanted)
        while self._pending and wanted not in self.proven:
            fact = self._pending.popleft()
            if fact in self.proven:
                continue
            alternatives = list(islice(self._asked[fact], AT_ONCE))
            if not alternatives and fact not in self._derived and (proof := self.otherwise(fact)) is not None:
                self.settle(fact, proof)
            for alternative in alternatives:
                self._derived.add(fact)
                self._try(fact, alternative)
                if fact in self.proven:
                    break
            if len(alternatives) == AT_ONCE:
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
                for head, alternative in self._waiting.pop(fact, ()):
                    alternative.missing.discard(fact)
                    if not alternative.missing:
                        settling.append((head, alternative.proof))

    def _ask(self, fact: F) -> None:
        if fact in self._asked:
            return
        self._asked[fact] = self.alternatives(fact)
        proof = self.base(fact)
        if proof is not None:
            self.settle(fact, proof)
        else:
            self._pending.append(fact)

    def _try(self, fact: F, alternative: Alternative[F, P]) -> None:
        for premise in list(alternative.missing):
            self._ask(premise)
        alternative.missing -= self.proven.keys()
        if not alternative.missing:
            self.settle(fact, alternative.proof)
        for premise in alternative.missing:
            self._waiting.setdefault(premise, []).append((fact, alternative))
