"""Programs: named relations, the rules that derive them, and which of them are asked for.

A relation is *given* (its rows, a set, come from outside as changes), *derived* by rules, or both: then the union.

>>> from syndicate.plan import NaturalJoin, Program, Rename
>>> p = Program()
>>> edge = p.edb("edge", "a", "b"); path = p.idb("path", "a", "b")
>>> _ = p.rule(path, edge)
>>> longer = NaturalJoin(Rename(path, {"b": "c"}), Rename(edge, {"a": "c"}))
>>> _ = p.rule(path, longer, origin="paths.ded:2")
>>> plan = p.plan()
>>> plan.step({"edge": {("x", "y"): 1, ("y", "z"): 1}})["path"]
ZSet({('x', 'y'): 1, ('y', 'z'): 1, ('x', 'z'): 1})

A relation is a set.  A rule's body has the attributes of its head, in any order; others are projected away.

Facts are tuples in the order of the heading, or records, whose fields are the attributes.

>>> from syndicate.plan import Projection, evaluate
>>> p = Program(); likes = p.edb("likes", "name", "food")
>>> _ = p.rule("food", Projection(likes, ("food",)))
>>> plan = p.plan()
>>> plan.step({"likes": [("ann", "ramen"), ("bob", "ramen")]})["food"]
ZSet({('ramen',): 1})
>>> plan.step({"likes": {("ann", "ramen"): -1}})["food"]
ZSet({})
>>> evaluate(p, {"likes": [("ann", "ramen")]})
{'food': frozenset({('ramen',)})}

Columns may hold lattice values: rows that agree on the other columns are then one row, whose values are merged.  A
relation of that kind may depend on itself, as the least costs of paths do; deletions are followed.

>>> from syndicate.lattice import Min
>>> from syndicate.plan import Arith, Attr
>>> p = Program(); edge = p.edb("edge", "a", "b", "cost")
>>> path = p.idb("path", "a", "b", "cost", lattices={"cost": Min})
>>> _ = p.rule(path, edge)
>>> longer = NaturalJoin(Rename(path, {"b": "x"}), Rename(edge, {"a": "x", "cost": "more"}))
>>> _ = p.rule(path, Projection(longer, ("a", "b", ("cost", Arith("+", "cost", Attr("more"))))))
>>> plan = p.plan(); _ = plan.step({"edge": [("x", "y", 1), ("y", "x", 1), ("y", "z", 2), ("x", "z", 7)]})
>>> plan.step({"edge": {("y", "z", 2): -1}})["path"]
ZSet({('x', 'z', Min(7)): 1, ('x', 'z', Min(3)): -1, ('y', 'z', Min(8)): 1, ('y', 'z', Min(2)): -1})

Source: PomoLogic; ``docs/design/plan.md``, "Relations and rules".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from attrs import define

from syndicate.errors import CircuitError, FactError, PlanError
from syndicate.flow import Circuit, ZSet
from syndicate.flow.circuit import MAX_ITERATIONS
from syndicate.flow.element import Element
from syndicate.flow.zset import Given, delta_of, elements_of
from syndicate.plan.algebra import (
    Heading,
    listed,
    meant,
)
from syndicate.plan.lowering import Lowering
from syndicate.plan.rules import Rules
from syndicate.values.value import Ref, fields_of, is_record

Facts = Given
"""Changes of a relation: facts with weights (1 inserts, -1 deletes), or facts alone, which are inserted."""

_ONLY_TUPLES: Final = frozenset({tuple})


class Change(Protocol):
    """What changed of an output, in an engine's own form."""

    def to_zset(self) -> ZSet:
        """As a Z-set in memory."""


class Engine(Protocol):
    """What runs a circuit in place of the local engine, such as :class:`syndicate.spark.SparkEngine`."""

    def step(self, deltas: Mapping[str, ZSet]) -> Mapping[str, Change]:
        """One epoch."""

    def close(self) -> None:
        """Let it go."""


@define(eq=False)
class Plan:
    """A program and its circuit, made by :meth:`Program.plan`.

    ``circuit`` is an ordinary circuit: its sources are the given relations, its sinks the outputs, its elements tuples.
    ``engine`` is what runs it, None for the local one.
    """

    program: Rules
    circuit: Circuit
    engine: Engine | None = None

    def step(self, changes: Mapping[str, Facts] | None = None) -> Mapping[str, ZSet]:
        """One epoch: changes of given relations in, changes of outputs out, as ZSets by name.

        Raises :class:`FactError` for what fits no given relation; what
        :meth:`syndicate.flow.circuit.Circuit.step` raises, where a user's function does.
        """
        deltas = {name: self.delta(name, facts) for name, facts in (changes or {}).items()}
        if self.engine is None:
            return self.circuit.step(deltas)
        changed = self.engine.step(deltas)
        return {name: change.to_zset() for name, change in changed.items()}

    def __host__(
        self,
        ds: Ref,
        *,
        inputs: Mapping[str, object],
        outputs: Mapping[str, type | None],
        messages: Mapping[str, object],
    ) -> Callable[[], None]:
        """A view of its circuit, whose elements are tuples: see :func:`syndicate.hosting.host`."""
        return self.circuit.__host__(ds, inputs=inputs, outputs=outputs, messages=messages, tuples=True, plan=self)

    def close(self) -> None:
        """Let the engine go."""
        if self.engine is not None:
            self.engine.close()

    def delta(self, name: str, facts: Facts) -> ZSet:
        """Facts as changes of a given relation; raises :class:`FactError` for what is no fact of it."""
        declared = self.program.declared.get(name)
        if declared is None or not declared.given:
            inputs = [each for each, one in self.program.declared.items() if one.given]
            what = "is derived by rules, not given" if declared is not None else "is not known"
            raise FactError(f"relation {name!r} {what}{meant(name, inputs)}; given are {listed(inputs)}")
        heading = declared.relation.heading
        try:
            rows = facts if isinstance(facts, (ZSet, Mapping)) else list(elements_of(facts, f"relation {name!r}"))
        except CircuitError as error:
            raise FactError(f"{name} takes facts: {error}") from None
        if not set(map(type, rows)) <= _ONLY_TUPLES:
            pairs = rows.items() if isinstance(rows, (ZSet, Mapping)) else [(row, 1) for row in rows]
            facts = [(fields_of(fact) if is_record(fact) else fact, weight) for fact, weight in pairs]
            _fit(name, heading, [fact for fact, _ in facts])
            return ZSet(facts)
        _fit(name, heading, rows)
        return delta_of(rows)


class Program(Rules):
    """Relations, rules and outputs, which a circuit can be made of."""

    def plan(
        self,
        *,
        bag: bool = False,
        limit: int = MAX_ITERATIONS,
        engine: Callable[[Circuit], Engine] | None = None,
    ) -> Plan:
        """The program as a circuit that can be stepped; see :class:`Plan`.

        With *bag*, weights are kept: a row has the weight that says how many derivations it has.  Loops give sets
        nevertheless, and a difference or an antijoin takes away a row with all of its weight.  No loop may take more
        than *limit* iterations in a step.  *engine* makes what runs the circuit:
        ``lambda circuit: SparkEngine(circuit, session)``; it is the local engine otherwise.
        """
        try:
            circuit = Lowering(self, bag=bag, limit=limit).run()
        except RecursionError:
            raise PlanError(
                "a rule's expression is nested too deeply to be compiled: give parts of it relations of their own "
                "(a NaturalJoin or Union takes any number of sources, and counts once)"
            ) from None
        return Plan(self, circuit, None if engine is None else engine(circuit))

    def circuit(self, *, bag: bool = False) -> Circuit:
        """The circuit alone: its sources are the given relations, its sinks the outputs, its elements tuples."""
        return self.plan(bag=bag).circuit


def _fit(name: str, heading: Heading, facts: Collection[Element]) -> None:
    if set(map(type, facts)) <= _ONLY_TUPLES and set(map(len, facts)) <= {len(heading)}:
        return
    for fact in facts:
        if type(fact) is not tuple or len(fact) != len(heading):
            raise FactError(
                f"{fact!r} is no fact of {name}: a tuple of {len(heading)} is needed, or a record of as many fields: "
                f"{', '.join(heading)}"
            )


def evaluate(program: Program, facts: Mapping[str, Facts] | None = None) -> dict[str, frozenset[tuple[Element, ...]]]:
    """The outputs of a program for some facts, once: rows by relation.  A fact that is given twice is there once.

    The sets of the result are Python's own, which confuse ``1`` and ``True``; a :class:`Plan` does not.
    """
    plan = program.plan()
    changed = plan.step(facts)
    return {name: frozenset(changed[name]) for name in program.outputs}
