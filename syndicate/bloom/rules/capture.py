"""Captures: the lattices that a function in a rule mentions, ``lambda t: (t.key, self.votes)``.

In Bud, the name of a lattice in a block is its current value, and the block runs again when that grows.  Here, the
function's code says which variables it mentions; the rule then reads them as well, and while the function runs, each
stands for the value that the rule was given.  A variable that is reached in another way, through a helper function,
refuses to be read in a tick, since nobody would call the function again.

>>> captured(lambda row: row)
[]

Source: Conway et al. 2012, "Collections with embedded lattice values"; ``docs/design/bloom.md``, "Lattices in
programs".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING

from attrs import evolve

from syndicate import plan
from syndicate.bloom.namespace import Namespace
from syndicate.lattice.lattice import Lattice
from syndicate.values.value import Value

if TYPE_CHECKING:
    from syndicate.bloom.rules.join import Factor


class Mentioned(ABC):
    """What stands for a value while a function runs that mentions it: a cell."""

    _held: Value = None
    _lattice: type[Lattice]

    @property
    @abstractmethod
    def tabname(self) -> str:
        """The name of its relation."""

    @abstractmethod
    def astray(self) -> str:
        """What is said where a function has come by it in a way that nobody saw."""


def held_value(variable: Mentioned) -> Value:
    """What a variable stands for; None while no function runs that mentions it."""
    return variable._held


def hold(variable: Mentioned, value: Value) -> None:
    """Let a variable stand for a value, until it stands for another."""
    variable._held = value


def lattice_of(variable: Mentioned) -> type[Lattice]:
    """The lattice of a variable."""
    return variable._lattice


def captured(function: object) -> list[Mentioned]:
    """The variables that a function mentions."""
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType):
        return []
    names = set(names_in(plain.__code__))
    reachable: list[object] = [cell.cell_contents for cell in plain.__closure__ or () if _is_full(cell)]
    reachable += plain.__defaults__ or ()
    reachable += [plain.__globals__[name] for name in names if name in plain.__globals__]
    found: dict[Mentioned, None] = {}
    seen: set[int] = set()
    while reachable:
        one = reachable.pop()
        if isinstance(one, Mentioned):
            found[one] = None
        elif isinstance(one, Namespace) and id(one) not in seen:
            seen.add(id(one))
            own = vars(one)
            reachable += [own[name] for name in sorted(names) if name in own]
    return list(found)


def mentioning(factor: Factor, function: object) -> tuple[Factor, list[Mentioned]]:
    """The rows with the values of the lattices that a function mentions, which its rows do not show."""
    cells = captured(function)
    values = [
        plan.Rename(plan.Relation(cell.tabname, ("value",)), {"value": f"value of {cell.tabname}"})
        for cell in cells
        if f"value of {cell.tabname}" not in factor.rows.heading
    ]
    return (evolve(factor, rows=plan.NaturalJoin(factor.rows, *values)) if values else factor), cells


def _is_full(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not yet assigned
        return False


def names_in(code: CodeType) -> Iterator[str]:
    """The names of attributes and globals that the code of a function uses, inner functions included."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from names_in(inner)


def bound(
    function: Callable[..., Value], cells: Sequence[Mentioned], places: Sequence[int]
) -> Callable[[Value], Value]:
    """*function*, of a row, while each variable stands for what the row has at its place."""

    def call(row: Value) -> Value:
        held = [cell._held for cell in cells]
        for cell, place in zip(cells, places, strict=True):
            cell._held = row[place]
        try:
            return released(function(row))
        finally:
            for cell, old in zip(cells, held, strict=True):
                cell._held = old

    return call


def released(value: Value) -> Value:
    """The same with values in place of variables, and nothing left to be computed later."""
    if isinstance(value, Mentioned):
        return value._held
    if isinstance(value, (tuple, list)):
        return tuple([released(one) for one in value])
    if isinstance(value, dict):
        return {key: released(one) for key, one in value.items()}
    return [released(one) for one in value] if hasattr(value, "__next__") else value
