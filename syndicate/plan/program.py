"""Programs: named relations, the rules that derive them, and which of them are asked for.

A relation is *given* (its rows come from outside, as changes), *derived* by rules, or both: then it is the union.

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

Source: PomoLogic; ``docs/design/plan.md``, "Relations and rules".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syndicate.flow import Circuit
from syndicate.flow.circuit import MAX_ITERATIONS
from syndicate.plan.rules import Rules
from syndicate.plan.running import Plan


class Program(Rules):
    """Relations, rules and outputs, which a circuit can be made of."""

    def plan(
        self,
        *,
        bag: bool = False,
        limit: int = MAX_ITERATIONS,
        engine: Callable[[Circuit], Any] | None = None,
    ) -> Plan:
        """The program as a circuit that can be stepped; see :class:`syndicate.plan.running.Plan`.

        With *bag*, weights are kept: a row has the weight that says how many derivations it has.  Loops give sets
        nevertheless, and a difference or an antijoin takes away a row with all of its weight.  No loop may take more
        than *limit* iterations in a step.  *engine* makes what runs the circuit:
        ``lambda circuit: SparkEngine(circuit, session)``; it is the local engine otherwise.
        """
        return Plan.of(self, bag=bag, limit=limit, engine=engine)

    def circuit(self, *, bag: bool = False) -> Circuit:
        """The circuit alone: its sources are the given relations, its sinks the outputs, its elements tuples."""
        return self.plan(bag=bag).circuit
