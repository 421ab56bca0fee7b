"""Why a row is not there, as data: what each rule that could have made it came to, and what stops it there.

>>> class Closed(Attempt):
...     def heading(self):
...         yield "rule 1: the shop is closed"
>>> lack = WhyNot("order", (1, ANY), (Closed("compared"),))
>>> print(lack)
order(1, _) is not there
  rule 1: the shop is closed
>>> print(lack.draw("json"))  # doctest: +ELLIPSIS
{
  "relation": "order",
  "row": [
    1,
    "_"
  ],
...

Source: ``docs/design/explain.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from syndicate.errors import PlanError
from syndicate.explain.derivation import Derivation, Row, said

DEPTH_NOT: Final = 5
"""How many levels of missing rows are explained."""


class _Any:
    """Any value."""

    def __repr__(self) -> str:
        return "_"


ANY: Final = _Any()
"""Stands for any value in a row that is asked for."""


@frozen(eq=False)
class Attempt:
    """What a rule came to; *stop* says in a word what failed, *because* why that is there, or is not."""

    stop: str
    because: WhyNot | Derivation | None = None

    def heading(self) -> Iterator[str]:
        """The rule and what failed, line by line."""
        yield self.stop

    def place(self) -> str:
        """Where the rule is written."""
        return ""

    def details(self) -> dict[str, object]:
        """What else is said as JSON."""
        return {}

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        yield from self.heading()
        if self.because is not None:
            below = self.because.body() if isinstance(self.because, WhyNot) else self.because.lines()
            yield from ("    " + line for line in below)

    def to_json(self) -> dict[str, object]:
        """As data that can be written."""
        return {
            "stop": self.stop,
            "text": " ".join(line.strip() for line in self.heading()),
            "place": self.place(),
            **self.details(),
            "because": None if self.because is None else self.because.to_json(),
        }


@frozen(eq=False, repr=False)
class WhyNot:
    """Why no such *row* is in a *relation*: the attempts of its rules, each rule once for everything that fails.

    If it is *there*, there is nothing to explain.
    """

    relation: str
    row: Row
    attempts: tuple[Attempt, ...] = ()
    there: bool = False

    def title(self) -> str:
        """That it is not there."""
        return f"{said(self.relation, self.row)} {'is there: ask why' if self.there else 'is not there'}"

    def notes(self) -> list[str]:
        """What is said before the attempts."""
        return []

    def nothing(self) -> str:
        """What is said if there is neither a note nor an attempt."""
        return "no rule derives it, and it is not given"

    def body(self) -> Iterator[str]:
        """The text without its first line."""
        notes = self.notes()
        yield from notes
        for attempt in self.attempts:
            yield from attempt.lines()
        if not notes and not self.attempts and not self.there:
            yield self.nothing()

    def draw(self, form: str = "text") -> str:
        """All of it as ``text`` or as ``json``."""
        if form == "text":
            return "\n".join([self.title(), *("  " + line for line in self.body())])
        if form == "json":
            return json.dumps(self.to_json(), indent=2, ensure_ascii=False, default=str)
        raise PlanError(f"what is not there is written as text or json, not as {form!r}")

    def to_json(self) -> dict[str, object]:
        """As data that can be written."""
        return {
            "relation": self.relation,
            "row": [*self.row],
            "notes": self.notes(),
            "attempts": [attempt.to_json() for attempt in self.attempts],
        }

    def __str__(self) -> str:
        return self.draw()

    __repr__ = __str__
