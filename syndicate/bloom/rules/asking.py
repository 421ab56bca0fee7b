"""Asking: how many rows there are, and whether some, all, none or one of them pass a test.

In a rule the answer is rows too: one row if it holds, and none if it does not, to be joined with or mapped.

>>> from syndicate.bloom import Bloom, bloom, scratch, table
>>> class Report(Bloom):
...     t = table(["n"], []); many = scratch(["n"], []); quiet = scratch(["said"], []); big = scratch(["said"], [])
...     @bloom
...     def rules(self):
...         self.many <= self.t.length()
...         self.quiet <= self.t.empty().map(lambda _: ("nothing",))
...         self.big <= self.t.all(lambda r: r.n > 2).map(lambda _: ("all",))
>>> p = Report(); p.tick(); list(p.many), list(p.quiet), list(p.big)
([(n=0)], [(said='nothing')], [(said='all')])
>>> p.t <= [(3,), (5,)]; p.tick(); list(p.many), list(p.quiet), list(p.big)
([(n=2)], [], [(said='all')])

All but ``any`` are points of order.

Source: Bud; ``docs/design/bloom.md``, "Methods of rows".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from syndicate import plan
from syndicate.flow import aggregates

if TYPE_CHECKING:
    from syndicate.bloom.rules.expression import Expression
    from syndicate.bloom.rules.join import Factor

Test = Callable[..., Any]


class Asking:
    """What can be asked of rows."""

    if TYPE_CHECKING:
        _known: Callable[[], Factor]
        filter: Callable[[Test], Expression]
        include: Callable[..., Expression]
        _column_of: Callable[[plan.Expression, str], Expression]

    def _rows(self, test: Test | None = None) -> plan.Expression:
        factor = self._known() if test is None else self.filter(test)._known()
        return plan.Projection(factor.rows, tuple(dict.fromkeys(a for side in factor.sides for a in side.attributes)))

    def length(self) -> Expression:
        """One row, of how many rows there are: 0 if none."""
        rows = self._rows()
        counted = plan.GroupBy(rows, (), [("length", plan.Agg(aggregates.count))])
        none = plan.AntiJoin(plan.Literal(("length",), [(0,)]), plan.Projection(rows, ()))
        return self._column_of(plan.Union(counted, none), "length")

    def empty(self) -> Expression:
        """One row, ``(True,)``, if there is none."""
        return self.none()

    def any(self, test: Test | None = None) -> Expression:
        """One row, ``(True,)``, if there is a row that passes."""
        return self._column_of(plan.SemiJoin(_TRUE, plan.Projection(self._rows(test), ())), "holds")

    def none(self, test: Test | None = None) -> Expression:
        """One row, ``(True,)``, if no row passes."""
        return self._column_of(plan.AntiJoin(_TRUE, plan.Projection(self._rows(test), ())), "holds")

    def all(self, test: Test) -> Expression:
        """One row, ``(True,)``, if no row fails to pass."""
        passed, rows = self._rows(test), self._rows()
        failed = plan.Difference(rows, passed)
        return self._column_of(plan.AntiJoin(_TRUE, plan.Projection(failed, ())), "holds")

    def one(self, test: Test | None = None) -> Expression:
        """One row, ``(True,)``, if exactly one row passes."""
        counted = plan.GroupBy(self._rows(test), (), [("length", plan.Agg(aggregates.count))])
        single = plan.Selection(counted, plan.Compare("length", "==", 1))
        return self._column_of(plan.SemiJoin(_TRUE, plan.Projection(single, ())), "holds")

    def member(self, *row: Any) -> Expression:
        """The same as ``include``."""
        return self.include(*row)

    def on_include(self, row: Any, function: Test) -> Expression:
        """What *function* makes of a row, if it is there."""
        return self.include(*row).map(function)


_TRUE = plan.Literal(("holds",), [(True,)])
