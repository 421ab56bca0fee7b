"""Expressions: what all of the algebra has in common, and the two that are made of nothing else.

An expression is a frozen value with a heading.  Equality and hash are of what it is made of; the hash is computed once,
when it is made, so that deep expressions cost no more than flat ones.

>>> edge = Relation("edge", ("a", "b")); edge == Relation("edge", ("a", "b")), edge.heading
(True, ('a', 'b'))
>>> Literal(("n",), [(1,), (1,), (True,)]).rows
[(1,), (True,)]

Source: PomoRA, section 1.1; ``docs/design/plan.md``, "Relations and rules".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from attrs import field, fields, frozen

from syndicate.errors import PlanError
from syndicate.flow.element import Element, Key, key_of, naturals
from syndicate.plan.heading import Heading, heading_of, listed

Row: TypeAlias = tuple[Element, ...]


def to_names(names: Iterable[str]) -> Heading:
    """Attributes as a tuple."""
    return tuple(names)


def _to_keys(rows: Iterable[Iterable[Element]]) -> tuple[Key, ...]:
    return tuple(dict.fromkeys(key_of(tuple(row)) for row in rows))


@frozen(eq=False, repr=False)
class Expression:
    """What all expressions have: a heading, and parts."""

    heading: Heading = field(init=False, default=())
    _identity: tuple[Element, ...] = field(init=False, default=())
    _hash: int = field(init=False, default=0)

    def parts(self) -> tuple[Expression, ...]:
        """The expressions that this one is made of."""
        return tuple(
            part
            for name in ("source", "left", "right", "body")
            if isinstance(part := getattr(self, name, None), Expression)
        )

    def detail(self) -> str:
        """What it does, without its parts."""
        return ""

    def _has(self, heading: Iterable[str]) -> None:
        """Set the heading, and the hash while those of the parts are at hand: so no depth is walked later."""
        object.__setattr__(self, "heading", heading_of(self.title(), heading))
        identity = (type(self), *(getattr(self, part.name) for part in fields(type(self)) if part.init))
        object.__setattr__(self, "_identity", identity)
        object.__setattr__(self, "_hash", hash(identity))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expression):
            return NotImplemented
        return self._hash == other._hash and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    def title(self) -> str:
        """The expression in a message: its kind and what it is of."""
        below = " and ".join(map(_short, self.parts()))
        return f"{type(self).__name__} of {below}" if below else f"{type(self).__name__} {self.detail()}".rstrip()

    def explain(self) -> str:
        """The expression as a tree, one line each."""
        lines: list[str] = []
        pending: list[tuple[int, Expression]] = [(0, self)]
        while pending:
            depth, expression = pending.pop()
            detail = expression.detail()
            name = f"{type(expression).__name__} {detail}" if detail else type(expression).__name__
            lines.append(f"{'  ' * depth}{name} -> ({', '.join(expression.heading)})")
            pending += [(depth + 1, part) for part in reversed(expression.parts())]
        return "\n".join(lines)

    def __repr__(self) -> str:
        inner = [repr(part) for part in self.parts()]
        return f"{type(self).__name__}({', '.join(filter(None, [self.detail(), *inner]))})"


def _short(expression: Expression) -> str:
    return expression.name if isinstance(expression, Relation) else type(expression).__name__


def is_expression(what: str, *expressions: object) -> None:
    """Raise :class:`PlanError` for what is not an expression."""
    for one in expressions:
        if not isinstance(one, Expression):
            raise PlanError(f"{what} is made of expressions, not of {one!r}: use Relation(name, heading), or Literal")


@frozen(eq=False, repr=False)
class Relation(Expression):
    """A relation of the program, or the variable of a :class:`Fixpoint`, by name."""

    name: str
    attributes: Heading = field(converter=to_names)

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise PlanError(f"a relation's name is a string with something in it, not {self.name!r}")
        self._has(self.attributes)

    def detail(self) -> str:
        """The name."""
        return self.name


@frozen(eq=False, repr=False)
class Literal(Expression):
    """Rows that are always there: facts of a program."""

    attributes: Heading = field(converter=to_names)
    keys: tuple[Key, ...] = field(converter=_to_keys)

    @property
    def rows(self) -> list[Row]:
        """The rows, each once."""
        return naturals(self.keys)

    def __attrs_post_init__(self) -> None:
        self._has(self.attributes)
        for row in self.rows:
            if len(row) != len(self.heading):
                raise PlanError(f"Literal: the row {row!r} does not fit the attributes {listed(self.heading)}")

    def detail(self) -> str:
        """The first rows."""
        more = f", and {len(self.keys) - 3} more" if len(self.keys) > 3 else ""
        return ", ".join(map(repr, self.rows[:3])) + more or "nothing"


def walk(*roots: Expression) -> Iterator[Expression]:
    """Each expression in *roots* once, the parts after what is made of them, in no particular order otherwise."""
    seen: set[Expression] = set()
    pending = list(roots)
    while pending:
        expression = pending.pop()
        if expression not in seen:
            seen.add(expression)
            yield expression
            pending += expression.parts()
