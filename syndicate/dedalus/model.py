"""Models: a run that explains itself.

>>> model = Model({"p": {("a",): ((1, 4),)}}, start=1, until=5, messages=[])
>>> print(model.why_not("p", ("b",), 2))
p("b") is not there at 2
  no rule makes it, and it is not given
"""

from __future__ import annotations

from attrs import define

from syndicate.dedalus.ast import Row
from syndicate.dedalus.binding import Pattern
from syndicate.dedalus.lower import arities
from syndicate.dedalus.timeline import Moment, Timeline, order
from syndicate.dedalus.why.absence import WhyNot, suits, why_not
from syndicate.dedalus.why.derivation import DEPTH, History, Why, shown, why
from syndicate.dedalus.why.spacetime import diagram
from syndicate.errors import FactError
from syndicate.explain.absence import DEPTH_NOT
from syndicate.explain.spacetime import Form


@define(eq=False)
class Model(Timeline):
    """What was true in a run, when, and why."""

    def why(self, relation: str, row: Row, time: int, *, depth: int = DEPTH) -> Why:
        """How a row came to be there: its derivation, *depth* levels of it; raises :class:`FactError` if it is not."""
        if not self._fitting(relation, row, time).holds(relation, tuple(row)):
            raise FactError(f"{shown(relation, row)} is not there at {time}: ask why_not")
        return why(History(self), relation, row, time, depth)

    def why_not(self, relation: str, row: Pattern, time: int, *, depth: int = DEPTH_NOT) -> WhyNot:
        """What kept a row from being there, *depth* levels of it; ``ast.WILD`` in it is any value.

        Raises :class:`FactError` if it is there.
        """
        there = [one for one in self._fitting(relation, row, time).unsorted(relation) if suits(row, one)]
        if there:
            first: Row = min(there, key=order)
            raise FactError(f"{shown(relation, first)} is there at {time}: ask why")
        return why_not(History(self), relation, row, time, depth)

    def _fitting(self, relation: str, row: Pattern, time: int) -> Moment:
        """What is true at a time; raises :class:`FactError` if *row* cannot be one of the relation's rows."""
        moment, arity = self.at(time), arities(self.rules).get(relation, len(row))
        if len(row) != arity:
            raise FactError(f"{relation} has {arity} column{'s' * (arity != 1)}, and {shown(relation, row)} {len(row)}")
        return moment

    def _repr_svg_(self) -> str:
        return self.diagram("svg")

    def diagram(self, form: Form = "text") -> str:
        """Nodes, messages and crashes in space and time, as text, ``dot``, or a ``mermaid`` sequence diagram."""
        return diagram(self, form)
