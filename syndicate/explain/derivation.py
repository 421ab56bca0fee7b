r"""Derivations as data: a conclusion, the rule, its premises with theirs, what had to be absent, the groups of totals.

All languages of rules give the same tree: what a row is called, when it came and the words for its reason are each
one's own.  A premise that is used twice is in the tree twice, as the same object.

>>> here, there = Derivation("link", (1, 2), "given"), Derivation("link", (2, 3), "given")
>>> absence = Absence(("closed",), (("at", 2),))
>>> path = Derivation("path", (1, 3), "rule", (here, there), (absence,))
>>> print(path)
path(1, 3): rule
  link(1, 2): given
  link(2, 3): given
  no closed with at = 2
>>> print(path.draw("dot"))
digraph derivation {
    node [shape=box, fontname="sans-serif"];
    n0 [label="path(1, 3)\nrule"];
    n1 [label="link(2, 3)\ngiven"];
    n2 [label="link(1, 2)\ngiven"];
    n2 -> n0;
    n1 -> n0;
    n0_0 [label="no closed with at = 2", shape=plaintext];
    n0_0 -> n0 [style=dashed];
}

Contract: no row rests on itself.

Source: Buneman et al. 2001; ``docs/design/explain.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, Self, TypeAlias, cast

from attrs import frozen

from syndicate.drawing import dot_text
from syndicate.errors import PlanError
from syndicate.flow.element import Element

Row: TypeAlias = tuple[Element, ...]
Columns: TypeAlias = tuple[tuple[str, Element], ...]
"""Columns and their values."""

SHOWN: Final = 10
"""How many rows of a group are printed."""


def said(name: str, row: Row) -> str:
    """A row as it is written."""
    return f"{name}({', '.join(map(repr, row))})"


def where(columns: Sequence[tuple[str, Element]]) -> str:
    """Columns and their values in a sentence."""
    return f" with {', '.join(f'{name} = {value!r}' for name, value in columns)}" if columns else ""


def named(names: Iterable[str]) -> str:
    """Names in a sentence."""
    words = list(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nothing"


@frozen(eq=False)
class Absence:
    """That the relations *collections* have no row in which the columns are so."""

    collections: tuple[str, ...]
    where: Columns

    def __str__(self) -> str:
        return f"no {' and '.join(self.collections)}{where(self.where)}"


@frozen
class Holding:
    """A comparison, with the values that were compared."""

    goal: object
    binding: Columns

    def write(self, value: Element) -> str:
        """A value as the language writes it."""
        return repr(value)

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {self.write(value)}" for name, value in self.binding)
        return f"{self.goal} ({values})" if values else str(self.goal)


@frozen(eq=False)
class Group:
    """All rows that a total is of: *what* was made of them."""

    what: str
    where: Columns
    size: int

    def __str__(self) -> str:
        return f"{self.what} of {self.size} row{'' if self.size == 1 else 's'}{where(self.where)}"


@frozen(eq=False, repr=False)
class Derivation:
    """A row of a relation, and *how* it came to be there.

    *premises* are the rows that the rule used, *conditions* what else it asked for: absences and comparisons; *groups*
    are those that it read totals of, each with derivations of its members.  A row that is explained elsewhere in the
    tree, or deeper than was asked for, is cut off: *how* says so.
    """

    relation: str
    row: Row
    how: str
    premises: tuple[Derivation, ...] = ()
    conditions: tuple[Absence | Holding, ...] = ()
    groups: tuple[tuple[Group, tuple[Derivation, ...]], ...] = ()

    once: ClassVar[tuple[str, ...]] = ("rule",)
    """The reasons that are printed once, and referred to where the row comes again."""

    # ------------------------------------------------------------------------------------- each language's own words

    def title(self) -> str:
        """The conclusion."""
        return said(self.relation, self.row)

    def because(self) -> str:
        """The reason in a few words."""
        return self.how

    def heading(self) -> list[str]:
        """The first line of the text, or the first ones, which what it rests on is indented by."""
        return [f"{self.title()}: {self.because()}"]

    def place(self) -> str:
        """Where the rule is written, empty if it is not by a rule."""
        return ""

    def details(self) -> dict[str, object]:
        """What else is said as JSON."""
        return {}

    def is_long(self) -> bool:
        """Whether only the first premises are printed."""
        return False

    # ---------------------------------------------------------------------------------------------------- the tree

    @property
    def absences(self) -> tuple[Absence, ...]:
        """What had to be absent."""
        return tuple(one for one in self.conditions if isinstance(one, Absence))

    def below(self) -> Iterator[Derivation]:
        """The derivations that it rests on, members of groups too."""
        yield from self.premises
        for _, members in self.groups:
            yield from members

    def walk(self) -> Iterator[Self]:
        """This and all below, each once."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            this = pending.pop()
            if id(this) not in seen:
                seen.add(id(this))
                yield this
                pending += cast("Iterator[Self]", this.below())  # each language's are of its own kind

    # --------------------------------------------------------------------------------------------------- the drawings

    def draw(self, form: str = "text") -> str:
        """The tree as ``text``, as ``dot`` for Graphviz, or as ``json``."""
        if form == "text":
            return "\n".join(self.lines())
        if form == "dot":
            return "\n".join(self._dot())
        if form == "json":
            return json.dumps(self.to_json(), indent=2, ensure_ascii=False, default=repr)
        raise PlanError(f"a derivation is drawn as text, dot or json, not as {form!r}")

    def __str__(self) -> str:
        return self.draw()

    __repr__ = __str__

    def lines(self) -> Iterator[str]:
        """The text, line by line, indented by two spaces a level; what is in it twice is explained once."""
        seen: set[int] = set()
        pending: list[tuple[int, Derivation | str]] = [(0, self)]
        while pending:
            depth, this = pending.pop()
            if isinstance(this, str):
                yield f"{'  ' * depth}{this}"
                continue
            if id(this) in seen and this.how in self.once:
                yield f"{'  ' * depth}{this.title()}: see above"
                continue
            seen.add(id(this))
            first, *more = this.heading()
            yield f"{'  ' * depth}{first}"
            depth += len(more)
            for line in more:
                yield f"{'  ' * depth}{line}"
            pending += reversed([(depth + at, one) for at, one in this._parts()])

    def _parts(self) -> Iterator[tuple[int, Derivation | str]]:
        yield from self._first(1, self.premises, SHOWN if self.is_long() else len(self.premises))
        for group, members in self.groups:
            yield 1, f"{group}:"
            yield from self._first(2, members, SHOWN)
        for condition in self.conditions:
            yield 1, str(condition)

    @staticmethod
    def _first(depth: int, some: Sequence[Derivation], most: int) -> Iterator[tuple[int, Derivation | str]]:
        for one in some[:most]:
            yield depth, one
        if len(some) > most:
            yield depth, f"and {len(some) - most:,} more"

    def _dot(self) -> Iterator[str]:
        names = {id(one): f"n{number}" for number, one in enumerate(self.walk())}
        yield "digraph derivation {"
        yield '    node [shape=box, fontname="sans-serif"];'
        for one in self.walk():
            yield f'    {names[id(one)]} [label="{dot_text(one.title())}\\n{dot_text(one.because())}"];'
        for one in self.walk():
            name = names[id(one)]
            for premise in one.premises:
                yield f"    {names[id(premise)]} -> {name};"
            asides = [(str(group), members) for group, members in one.groups]
            for number, (text, members) in enumerate([*asides, *((str(part), ()) for part in one.conditions)]):
                yield f'    {name}_{number} [label="{dot_text(text)}", shape=plaintext];'
                yield f"    {name}_{number} -> {name} [style=dashed];"
                for member in members:
                    yield f"    {names[id(member)]} -> {name}_{number};"
        yield "}"

    def to_json(self) -> list[dict[str, object]]:
        """All conclusions, this one first; premises and members are numbers of others in the list."""
        numbers = {id(one): number for number, one in enumerate(self.walk())}
        return [
            {
                "relation": one.relation,
                "row": [*one.row],
                "how": one.how,
                "because": one.because(),
                "place": one.place(),
                "premises": [numbers[id(premise)] for premise in one.premises],
                "conditions": list(map(str, one.conditions)),
                "groups": [
                    {"of": str(group), "members": [numbers[id(member)] for member in members]}
                    for group, members in one.groups
                ],
                **one.details(),
            }
            for one in self.walk()
        ]
