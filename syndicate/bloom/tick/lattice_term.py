"""Terms of lattices, evaluated semi-naively: a morphism is applied to what is new alone.

What is new in a variable goes up the tree of a term through morphisms, as a delta.  A method that is only monotone sees
its whole receiver, which the node below then keeps; so does one of which several operands grow.  What is not monotone
is evaluated whole, when all that it reads is complete.

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Semi-naive evaluation".

Joins over lattices: the body of a rule whose head merges, evaluated directly and semi-naively.

A circuit would tell rows apart by their lattice values, and take each back when it grows.  Rules whose heads merge need
none of that: what is new of one of the relations joined goes along all others by index, and what comes out is merged.
Rows that grew come again, whole.

A body here is a join of relations, with projections, selections and functions behind it.  Any other part of a body, a
negation or a group, is a relation of the circuit's (:mod:`syndicate.bloom.tick.wiring`).

Contract: what goes is not followed: the heads keep what they have, or are made again.

Source: Conway et al. 2012, on evaluation; ``docs/design/lattice.md``, "Semi-naive evaluation".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final, Protocol

from attrs import field, frozen

from syndicate import plan
from syndicate.bloom.declaration import Names, placed
from syndicate.bloom.rules.abstract_value import Mentioned, held_value, hold
from syndicate.bloom.rules.function import failure
from syndicate.bloom.rules.term import (
    CalledMethod,
    CallTerm,
    CompletedTerm,
    LatticeTerm,
    Term,
    TermExpression,
    completed_term,
    is_nonmonotone,
    method_of,
)
from syndicate.bloom.state.keyed_rows import ColumnIndex, KeyedRows, Row, Rows, columns_of
from syndicate.errors import RuleFailed, SyndicateError
from syndicate.lattice.delta import Grown, increment
from syndicate.lattice.lattice import Kind, Lattice, join
from syndicate.plan.scalar import RowFunctions
from syndicate.values.value import Value

# -------------------------------------------------------------------------------------------------- joins over lattices


NO_ROWS: Final[Rows] = {}
FUNCTIONS: Final = RowFunctions()


@frozen
class Input:
    """A relation that is joined: its name, and which of its columns has which attribute."""

    name: str
    places: Mapping[str, int]


@frozen
class TermBody:
    """A body: a join of *inputs* over *heading*, then *stages*, each from rows to rows."""

    inputs: tuple[Input, ...]
    heading: Names
    stages: tuple[Callable[[list[Value]], list[Value]], ...] = field(factory=tuple)


def body_of(body: plan.Expression, named: Callable[[plan.Expression], str]) -> TermBody:
    """The body of a rule; *named* gives the name of a relation for an expression that can be no part of it."""
    stages: list[Callable[[list[Value]], list[Value]]] = []
    while True:
        match body:
            case plan.FlatMap():
                stages.append(_flat(body.function))
            case plan.Projection():
                stages.append(_mapped(FUNCTIONS.row([scalar for _, scalar in body.columns], _places(body.source))))
            case plan.Selection():
                stages.append(_filtered(FUNCTIONS.test(body.conditions, _places(body.source))))
            case plan.Rename():
                pass
            case _:
                break
        body = body.source
    inputs = [_input(part, named) for part in _joined(body)]
    return TermBody(tuple(inputs), body.heading, tuple(reversed(stages)))


def _places(source: plan.Expression) -> dict[str, str]:
    return {name: f"r[{at}]" for at, name in enumerate(source.heading)}


def _flat(function: Callable[[Value], Value]) -> Callable[[list[Value]], list[Value]]:
    return lambda rows: list(chain.from_iterable(map(function, rows)))


def _mapped(function: Callable[[Value], Value]) -> Callable[[list[Value]], list[Value]]:
    return lambda rows: list(map(function, rows))


def _filtered(function: Callable[[Value], Value]) -> Callable[[list[Value]], list[Value]]:
    return lambda rows: list(filter(function, rows))


def _joined(body: plan.Expression) -> list[plan.Expression]:
    if isinstance(body, plan.NaturalJoin):
        return [part for source in body.sources for part in _joined(source)]
    return [body]


def _input(part: plan.Expression, named: Callable[[plan.Expression], str]) -> Input:
    whole, renamed = part, {name: name for name in part.heading}
    while True:
        match part:
            case plan.Rename():
                old = {new: old for old, new in part.renaming}
                renamed = {attribute: old.get(name, name) for attribute, name in renamed.items()}
            case plan.Projection() if all(isinstance(scalar, plan.Attr) for _, scalar in part.columns):
                columns = {name: str(scalar) for name, scalar in part.columns}
                renamed = {attribute: columns[name] for attribute, name in renamed.items()}
            case plan.Relation():
                return Input(part.name, {a: part.heading.index(name) for a, name in renamed.items()})
            case plan.NonMonotone():  # at its level, all that is read is complete
                pass
            case TermExpression():
                return Input(named(part), {a: part.heading.index(name) for a, name in renamed.items()})
            case _:
                return Input(named(whole), {name: at for at, name in enumerate(whole.heading)})
        part = part.source


class JoinedRelation:
    """One more relation joined to the rows so far."""

    __slots__ = ("combine", "index", "keys")

    def __init__(self, places: tuple[int, ...], index: ColumnIndex, combine: Callable[[Value, Value], Value]) -> None:
        self.keys, self.index, self.combine = columns_of(places), index, combine

    def __call__(self, rows: list[Value]) -> list[Value]:
        """The rows with those that match."""
        get, combine = self.index.buckets.get, self.combine
        return [
            combine(row, other)
            for key, row in zip(self.keys(rows), rows, strict=True)
            for other in get(key, NO_ROWS).values()
        ]


class BodyEvaluation:
    """A body in a program that runs."""

    def __init__(self, body: TermBody, held: Mapping[str, KeyedRows]) -> None:
        """*held* gives, by name, the rows of a relation."""
        self.body = body
        self.held = [held[one.name] for one in body.inputs]
        self.new = [one.reader() for one in self.held]
        routes = [(*self._route(at), *body.stages) for at in range(len(body.inputs))]
        self.both = list(zip(self.new, routes, strict=True))

    def _route(self, first: int) -> list[Callable[[list[Value]], list[Value]]]:
        """From what is new of one input to joined rows over the heading."""
        body = self.body
        order: list[Callable[[list[Value]], list[Value]]] = []
        waiting = [at for at in range(len(body.inputs)) if at != first]
        at_row = dict(body.inputs[first].places)
        width = max(at_row.values(), default=-1) + 1
        while waiting:
            following = max(waiting, key=lambda at: len(at_row.keys() & body.inputs[at].places.keys()))
            waiting.remove(following)
            places = body.inputs[following].places
            shared = sorted(at_row.keys() & places.keys())
            theirs = tuple(places[name] for name in shared)
            index = self.held[following].index(theirs)
            texts = [f"l[{at}]" for at in at_row.values()]
            combined = {name: place for place, name in enumerate(at_row)}
            for name, place in places.items():
                if name not in combined:
                    combined[name] = len(texts)
                    texts.append(f"r[{place}]")
            function = FUNCTIONS.rearranging("l, r", f"({', '.join(texts)}{',' if len(texts) == 1 else ''})")
            order.append(JoinedRelation(tuple(at_row[name] for name in shared), index, function))
            at_row, width = combined, len(texts)
        wanted = [at_row[name] for name in body.heading]
        if wanted != list(range(width)) or (len(body.inputs) == 1 and len(body.heading) != self._width(first)):
            items = ", ".join(f"r[{at}]" for at in wanted)
            order.append(_mapped(FUNCTIONS.rearranging("r", f"({items}{',' if len(wanted) == 1 else ''})")))
        return order

    def _width(self, at: int) -> int:
        rows = self.held[at].rows
        return len(next(iter(rows.values()))) if rows else -1

    def moved(self) -> bool:
        """Whether there is anything new."""
        return any(self.new)

    def restart(self) -> None:
        """Take all for new; to see what can be joined, it is enough to go through one of the relations."""
        least = min(range(len(self.held)), key=lambda at: len(self.held[at].rows))
        self.new[least].update(self.held[least].rows)

    def pull(self) -> list[Row]:
        """The rows of the body that are new, some of them more than once."""
        rows_: list[Value] = []
        for new, route in self.both:
            if new:
                rows: list[Value] = list(new.values())
                new.clear()
                for step in route:
                    rows = step(rows)
                rows_ = rows if not rows_ else rows_ + rows
        return rows_


# ---------------------------------------------------------------------------- terms of lattices, evaluated semi-naively


NOTHING: Final = object()


class HasValue(Protocol):
    """What holds the value of a variable."""

    @property
    def value(self) -> Value:
        """The value."""


class TermLeaf:
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
        """All of it, again."""
        return self.now()


class TermCall:
    """A method call; with *keep*, all that it has answered is kept as one value."""

    def __init__(self, method: CalledMethod, parts: list[Value]) -> None:
        """*parts* are the receiver and the arguments: nodes, leaves, or plain."""
        self.name = method.name
        self.parts = parts
        self.value: Value = NOTHING
        self.keep = False
        grows = [part for part in parts if isinstance(part, (TermCall, TermLeaf))]
        whole = len(grows) > 1 or method.kind is not Kind.MORPHISM
        for part in grows:
            if isinstance(part, TermCall):
                part.keep = whole

    def pull(self, *, naive: bool = False) -> Value:
        """What is new of the answer; None if nothing."""
        pulled = [
            part.pull(naive=naive)
            if isinstance(part, TermCall)
            else part.pull()
            if isinstance(part, TermLeaf)
            else NOTHING
            for part in self.parts
        ]
        if not any(one is not None and one is not NOTHING for one in pulled):
            return None
        values: list[Value] = [
            part if one is NOTHING else self._value(part) if one is None else one
            for part, one in zip(self.parts, pulled, strict=True)
        ]
        answer = increment(self.name, values[0], *values[1:], naive=naive)
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
        first, *others = [part.whole() if isinstance(part, (TermCall, TermLeaf)) else part for part in self.parts]
        return getattr(first, self.name)(*others)


class TermEvaluation:
    """A term in a program that runs."""

    def __init__(self, term: Term, cells: Mapping[str, HasValue], *, naive: bool) -> None:
        """*cells* gives, by name, the state of a variable."""
        self.term, self.naive = term, naive
        self.leaves: dict[str, list[TermLeaf]] = {}
        self.captured: dict[str, TermLeaf] = {}
        self._cells = cells
        self.top = self._evaluated(term)
        self.nonmonotone = is_nonmonotone(term)
        self.fresh = True

    def _evaluated(self, term: Value) -> Value:
        if isinstance(term, LatticeTerm):
            return self._leaf(term)
        if isinstance(term, CompletedTerm):
            return self._evaluated(completed_term(term))
        if not isinstance(term, CallTerm):
            return term
        method = method_of(term)
        for cell in method.captured:
            self.captured[cell.tabname] = self._leaf(cell)
        return TermCall(method, [self._evaluated(part) for part in (method.receiver, *method.arguments)])

    def _leaf(self, cell: Mentioned) -> TermLeaf:
        state = self._cells[cell.tabname]
        leaf = TermLeaf(cell, lambda: state.value)
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
        """What is new of the term's value; raises what a method raised, with the place."""
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
        result = self.top.pull(naive=self.naive) if isinstance(self.top, TermCall) else self.top.pull()
        return result.delta if isinstance(result, Grown) else result


def _forget(node: object) -> None:
    if isinstance(node, TermCall):
        node.value = NOTHING
        for part in node.parts:
            _forget(part)
