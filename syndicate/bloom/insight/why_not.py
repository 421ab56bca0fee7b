"""Why not: what each rule lacked to derive a row that is not there.

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

from attrs import frozen

from syndicate.bloom.collection import Collection
from syndicate.bloom.insight.why import Reasons, find, ticks
from syndicate.bloom.state.state import CellState
from syndicate.bloom.tick.runtime import Instantiated, instance_of
from syndicate.explain.absence import WhyNot
from syndicate.explain.lack import Failed, lacks
from syndicate.explain.witness import Fact
from syndicate.flow.element import natural
from syndicate.values.value import Value


@frozen(eq=False, repr=False)
class Lack(WhyNot):
    """A row that is not there, what each rule lacks, and whether it *waits* for the next tick."""

    attempts: tuple[Failed, ...] = ()
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
        for attempt in Failed.of(
            rule,
            f"rule {rule.number} ({rule.site})",
            rule.site,
            lacks(reasons.witnesses, rule.body, reasons.bound(fact, rule)),
        )
    ]
    state = runtime.states.get(name)
    waits = state is not None and not isinstance(state, CellState) and key in state.inserted
    return Lack(name, natural(key), attempts=tuple(attempts), ticks=runtime.done, waits=waits)
