"""Projections as Python functions: interpreted while they are cold, generated once they are hot.

What a table or a handler asks of a value is a projection: "if these places exist and hold such atoms, give me what is at those".
The interpreter walks paths; a generated function reads ``v[2][1]`` behind one length check and is about five times faster.  Compiling
costs about half a millisecond, so it waits until a projection has run ``HOT`` times; equal projections share one function.

A projection is only asked of values that passed its skeleton's shape, so that the compounds along its paths are known to be there;
their lengths are not, because arity is "at least".

Source: seed 004 leaves this open under "Potential future optimizations: JIT compilation of shapes, constant checks, captures".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from syndicate.skeleton.analysis import Check, is_of_class
from syndicate.skeleton.path import MISSING, Path, Step, child, project
from syndicate.values import Frozen

Projection: TypeAlias = Callable[[Frozen], Any]
"""From a frozen form to what is at some places (bare, or a tuple), or MISSING."""

HOT: Final = 128


class Interpreted:
    """A cold projection.  Calls *when_hot* with its compiled successor after ``HOT`` uses.

    >>> from syndicate.values import freeze
    >>> f = Interpreted(((1,),), (((2,), None),), True, lambda compiled: None)
    >>> f(freeze(["a", "b", "c"])), f(freeze(["a", "b"]))
    ('b', MISSING)
    """

    __slots__ = ("bare", "checks", "paths", "uses", "when_hot")

    def __init__(self, paths: tuple[Path, ...], checks: tuple[Check, ...], bare: bool, when_hot: Callable[[Projection], None]) -> None:
        self.paths = paths
        self.checks = checks
        self.bare = bare
        self.when_hot = when_hot
        self.uses = 0

    def __call__(self, form: Frozen) -> Any:
        self.uses += 1
        if self.uses == HOT:
            self.when_hot(compiled(self.paths, self.checks, self.bare))
        for path, kind in self.checks:
            found = project(form, path)
            if found is MISSING or (kind is not None and not is_of_class(found, kind)):
                return MISSING
        found = tuple([project(form, path) for path in self.paths])
        if MISSING in found:
            return MISSING
        return found[0] if self.bare else found


@lru_cache(maxsize=2048)
def compiled(paths: tuple[Path, ...], checks: tuple[Check, ...], bare: bool) -> Projection:
    """The generated function of a projection.

    >>> from syndicate.values import freeze
    >>> f = compiled(((0,), (1, 0)), (((2,), "String"),), False)
    >>> f(freeze([7, ["x"], "s"])), f(freeze([7, ["x"], 0])), f(freeze([7, []]))
    ((7, 'x'), MISSING, MISSING)
    """
    writer = _Writer()
    kinds = {path: kind for path, kind in checks if kind is not None}
    for path in sorted({*paths, *(path for path, _ in checks)}, key=len):
        writer.reach(path)
    for path, kind in kinds.items():
        writer.demand(path, kind)
    for path, kind in checks:
        if kind is None and path and type(path[-1]) is not int:
            writer.name(path)  # a length check covers numbered places only
    places = [writer.name(path) for path in paths]
    result = places[0] if bare else f"({', '.join(places)}{',' if len(places) == 1 else ''})"
    return writer.function(result)


class _Writer:
    """Writes the body of one projection: a variable for each compound, one length check for each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"MISSING": MISSING, "child": child, "is_of_class": is_of_class}
        self.names: dict[Path, str] = {(): "v"}
        self.longest: dict[Path, int] = {}

    def reach(self, path: Path) -> None:
        """Note that *path* is needed, so that the length of each compound above it is checked once, for its largest step."""
        for i, step in enumerate(path):
            if type(step) is int:
                self.longest[path[:i]] = max(step, self.longest.get(path[:i], -1))

    def constant(self, value: object) -> str:
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def compound(self, path: Path) -> str:
        """The variable that holds the compound at *path*, its length checked."""
        if path not in self.names:
            self.names[path] = name = f"x{len(self.names)}"
            self.lines.append(f"{name} = {self.step(path[:-1], path[-1])}")
        if path in self.longest:
            self.lines.append(f"if len({self.names[path]}) < {self.longest.pop(path) + 2}: return MISSING")
        return self.names[path]

    def step(self, parent: Path, step: Step) -> str:
        compound = self.compound(parent)
        if type(step) is int:
            return f"{compound}[{step + 1}]"
        self.names[(*parent, step)] = name = f"x{len(self.names)}"
        self.lines.append(f"{name} = child({compound}, {self.constant(step)})")
        self.lines.append(f"if {name} is MISSING: return MISSING")
        return name

    def name(self, path: Path) -> str:
        """An expression for what is at *path*."""
        if path in self.names:
            return self.names[path]
        return self.step(path[:-1], path[-1])

    def demand(self, path: Path, kind: str) -> None:
        self.lines.append(f"if not is_of_class({self.name(path)}, {kind!r}): return MISSING")

    def function(self, result: str) -> Projection:
        for path in sorted(self.longest, key=len):
            self.compound(path)
        body = "".join(f" {line}\n" for line in [*self.lines, f"return {result}"])
        exec(compile(f"def projection(v):\n{body}", "<projection>", "exec"), self.scope)
        projection: Projection = self.scope["projection"]
        return projection
