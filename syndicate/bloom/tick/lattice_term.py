"""Terms of lattices, evaluated semi-naively: a morphism is applied to what is new alone.

What is new in a variable goes up the tree of a term through morphisms, as a delta.  A method that is only monotone sees
its whole receiver, which the node below then keeps; so does one of which several operands grow.  What is not monotone
is evaluated whole, when all that it reads is complete.

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Semi-naive evaluation".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from syndicate.bloom.rules.capture import Mentioned, held_value, hold
from syndicate.bloom.rules.cell import Cell, CompletedTerm, completed_term
from syndicate.bloom.rules.function import failure
from syndicate.bloom.rules.term import Call, CalledMethod, Term, is_nonmonotone, method_of
from syndicate.bloom.site import placed
from syndicate.errors import RuleFailed, SyndicateError
from syndicate.lattice.delta import Grown, increment
from syndicate.lattice.lattice import Kind, Lattice, join
from syndicate.values.value import Value

NOTHING: Final = object()


class HasValue(Protocol):
    """What holds the value of a variable."""

    @property
    def value(self) -> Value:
        """The value."""


class Leaf:
    """A variable, as one term reads it."""

    def __init__(self, cell: Mentioned, value: Value) -> None:
        """*value* gives the value of the variable."""
        self.cell, self.now = cell, value
        self.delta: Lattice | None = None

    def grow(self, delta: Lattice) -> None:
        """Something is new."""
        self.delta = delta if self.delta is None else join(self.delta, delta)

    @property
    def value(self) -> Value:
        """All of it."""
        return self.now()

    def pull(self) -> Grown[Lattice] | None:
        """What is new."""
        if self.delta is None:
            return None
        grown, self.delta = Grown(self.now(), self.delta), None
        return grown

    def whole(self) -> Value:
        """All of it, anew."""
        return self.now()


class Node:
    """A method call; with *keep*, all that it has answered is kept as one value."""

    def __init__(self, method: CalledMethod, parts: list[Value]) -> None:
        """*parts* are the receiver and the arguments: nodes, leaves, or plain."""
        self.name = method.name
        self.parts = parts
        self.value: Value = NOTHING
        self.keep = False
        grows = [part for part in parts if isinstance(part, (Node, Leaf))]
        whole = len(grows) > 1 or method.kind is not Kind.MORPHISM
        for part in grows:
            if isinstance(part, Node):
                part.keep = whole

    def pull(self, *, naive: bool = False) -> Value:
        """What is new of the answer; None if nothing."""
        pulled = [
            part.pull(naive=naive) if isinstance(part, Node) else part.pull() if isinstance(part, Leaf) else NOTHING
            for part in self.parts
        ]
        if not any(one is not None and one is not NOTHING for one in pulled):
            return None
        given: list[Value] = [
            part if one is NOTHING else self._value(part) if one is None else one
            for part, one in zip(self.parts, pulled, strict=True)
        ]
        answer = increment(self.name, given[0], *given[1:], naive=naive)
        if not isinstance(answer, Lattice):
            return answer
        if not self.keep and not naive:
            return Grown(answer, answer)
        self.value = answer if self.value is NOTHING else join(self.value, answer)
        return Grown(self.value, answer)

    @staticmethod
    def _value(part: Value) -> Value:
        return part.value if part.value is not NOTHING else part.whole()

    def whole(self) -> Value:
        """The answer to all that there is."""
        first, *others = [part.whole() if isinstance(part, (Node, Leaf)) else part for part in self.parts]
        return getattr(first, self.name)(*others)


class TermEvaluation:
    """A term in a program that runs."""

    def __init__(self, term: Term, cells: Mapping[str, HasValue], *, naive: bool) -> None:
        """*cells* gives, by name, the state of a variable."""
        self.term, self.naive = term, naive
        self.leaves: dict[str, list[Leaf]] = {}
        self.captured: dict[str, Leaf] = {}
        self._cells = cells
        self.top = self._made(term)
        self.nonmonotone = is_nonmonotone(term)
        self.fresh = True

    def _made(self, term: Value) -> Value:
        if isinstance(term, Cell):
            return self._leaf(term)
        if isinstance(term, CompletedTerm):
            return self._made(completed_term(term))
        if not isinstance(term, Call):
            return term
        method = method_of(term)
        for cell in method.captured:
            self.captured[cell.tabname] = self._leaf(cell)
        return Node(method, [self._made(part) for part in (method.receiver, *method.arguments)])

    def _leaf(self, cell: Mentioned) -> Leaf:
        state = self._cells[cell.tabname]
        leaf = Leaf(cell, lambda: state.value)
        self.leaves.setdefault(cell.tabname, []).append(leaf)
        return leaf

    def restart(self) -> None:
        """Take all for new."""
        self.fresh = True
        _forget(self.top)
        for leaves in self.leaves.values():
            for leaf in leaves:
                leaf.delta = None

    def moved(self) -> bool:
        """Whether there is anything new."""
        return self.fresh or any(leaf.delta is not None for leaves in self.leaves.values() for leaf in leaves)

    def pull(self, where: str) -> Value:
        """What is new of what the term answers; raises what a method raised, with the place."""
        held = [(leaf.cell, held_value(leaf.cell)) for leaf in self.captured.values()]
        for leaf in self.captured.values():
            hold(leaf.cell, leaf.now())
        try:
            return self._pull()
        except RuleFailed:
            raise
        except SyndicateError as error:
            raise placed(error, f"{where}: {self.term}") from error
        except Exception as error:
            raise failure(where, error, self.term) from error
        finally:
            for cell, old in held:
                hold(cell, old)

    def _pull(self) -> Value:
        again = self.fresh or self.nonmonotone or any(leaf.delta is not None for leaf in self.captured.values())
        if self.fresh:
            for leaves in self.leaves.values():
                for leaf in leaves:
                    leaf.delta = leaf.now()
            self.fresh = False
        if again and (self.nonmonotone or self.captured):
            for leaves in self.leaves.values():
                for leaf in leaves:
                    leaf.delta = None
            _forget(self.top)
            return self.top.whole()
        found = self.top.pull(naive=self.naive) if isinstance(self.top, Node) else self.top.pull()
        return found.delta if isinstance(found, Grown) else found


def _forget(node: object) -> None:
    if isinstance(node, Node):
        node.value = NOTHING
        for part in node.parts:
            _forget(part)
