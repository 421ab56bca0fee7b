"""Rules: a collection, an operator and an expression, and where it was written.

Source: Alvaro et al. 2011a, "Bloom Statements"; ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from attrs import frozen

from syndicate import plan
from syndicate.bloom.declaration import OPERATORS, Kind
from syndicate.errors import IllegalRule

MEANING = {
    "=": "define(): all of it, in this tick",
    "<=": "<=: in this tick",
    "<+": "<+: in the next tick",
    "<-": "<-: deleted in the next tick",
    "<+-": "<+-: replaces the row of its key in the next tick",
    "<~": "<~: sent, at some later time",
}


@frozen(eq=False)
class Rule:
    """``head <op> body``; *block* is the method that has it, *number* its place in the program, from 1."""

    head: str
    op: str
    body: plan.Expression
    site: str
    block: str
    number: int

    @property
    def target(self) -> str:
        """The relation of the plan that it derives: the collection itself, or one of what is to come of it."""
        return self.head if self.op in ("<=", "=") else f"{self.head} {self.op}"

    def reads(self) -> list[plan.Occurrence]:
        """The collections that are read, and what is not monotone about it."""
        return plan.occurrences(self.body)

    def __str__(self) -> str:
        read = ", ".join(dict.fromkeys(one.name for one in self.reads())) or "values"
        return f"{self.site}: {self.head} {self.op} {read}"


def check_operator(op: str, name: str, kind: Kind, site: str) -> None:
    """Raise :class:`IllegalRule` where a collection of this kind takes no such rule."""
    legal = OPERATORS[kind]
    if op in legal:
        return
    if legal:
        remedy = f"a {kind.value} takes {'; '.join(MEANING[one] for one in legal)}"
        if kind is Kind.LATTICE:
            remedy += ". It only grows, and is sent as a column of a channel's row"
    else:
        remedy = f"no rule may write a {kind.value}: write to a table or a scratch, and join it with {name}"
    raise IllegalRule(f"{site}: {name} is a {kind.value}, which cannot stand on the left of {op}: {remedy}")


class Recorded:
    """What an operator gives while a program is made: nothing to go on with."""

    def __init__(self, rule: Rule) -> None:
        """Of the rule that was recorded."""
        self.rule = rule

    def __bool__(self) -> bool:
        raise IllegalRule(
            f"{self.rule.site}: a rule has no truth: write each rule as a statement of its own, not t <= a <= b, "
            "nor with and, or, not"
        )
