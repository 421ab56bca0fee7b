"""The text of the modules that take part in a conversation: their scopes, and what each name in them stands for.

Nothing is imported and nothing runs: a module that starts a system when it is loaded can be read like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeAlias

from attrs import define, field, frozen

import syndicate as face
from syndicate.errors import ProgramNotFound

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@frozen(eq=False)
class ForeignName:
    """A name of a module that is not read: ``syndicate.send``."""

    name: str


@frozen(eq=False)
class Class:
    """A class of a module that is read, and the scope that it is in."""

    node: ast.ClassDef
    scope: NameScope


@frozen(eq=False)
class Defined:
    """A function that is read."""

    node: Function
    scope: NameScope


@frozen(eq=False)
class Assigned:
    """A value that is assigned; without one, nothing is known of it.  *annotation* is what its owner says of it."""

    value: ast.expr | None
    scope: NameScope
    annotation: ast.expr | None = None


@frozen(eq=False)
class Parameter:
    """A parameter: which of the positional ones (None: another), of which function."""

    arg: ast.arg
    place: int | None
    of: Function
    scope: NameScope


Meaning: TypeAlias = "ForeignName | Class | Defined | Assigned | Parameter | Module"


@define(eq=False)
class NameScope:
    """Names that are bound in a module, a function, a class or a comprehension."""

    module: Module
    node: ast.AST
    above: NameScope | None
    names: dict[str, list[Meaning]] = field(factory=dict)

    def bind(self, name: str, meaning: Meaning) -> None:
        """One more meaning of a name."""
        self.names.setdefault(name, []).append(meaning)

    def look(self, name: str) -> list[Meaning]:
        """What a name may stand for here."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope.names[name]
            scope = scope.above
        return []

    def functions(self) -> Iterator[Function]:
        """The functions that this scope is in, from within."""
        scope: NameScope | None = self
        while scope is not None:
            if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                yield scope.node
            scope = scope.above


@define(eq=False)
class Module:
    """A module: its file, its calls and functions, each with the scope that it is in."""

    path: Path
    name: str
    tree: ast.Module
    top: NameScope = field(init=False)
    calls: list[tuple[ast.Call, NameScope]] = field(factory=list)
    functions: list[tuple[Function, NameScope]] = field(factory=list)
    classes: list[Class] = field(factory=list)
    mentions: list[tuple[ast.Name, NameScope]] = field(factory=list)
    inside: dict[Function, NameScope] = field(factory=dict)
    stars: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.top = NameScope(self, self.tree, None)
        _Reader(self).body(self.tree.body, self.top)


class _Reader:
    """Fills in the scopes of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def body(self, nodes: Iterable[ast.AST], scope: NameScope) -> None:
        for node in nodes:
            self.read(node, scope)

    def read(self, node: ast.AST, scope: NameScope) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            self.function(node, scope)
        elif isinstance(node, ast.ClassDef):
            cls = Class(node, scope)
            scope.bind(node.name, cls)
            self.module.classes.append(cls)
            self.body([*node.decorator_list, *node.bases], scope)
            self.body(node.body, NameScope(self.module, node, scope))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node, scope)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            inner = NameScope(self.module, node, scope)
            for each in node.generators:
                self.target(each.target, None, inner)
            self.body(ast.iter_child_nodes(node), inner)
        else:
            self.bindings(node, scope)
            if isinstance(node, ast.Call):
                self.module.calls.append((node, scope))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.module.mentions.append((node, scope))
            self.body(ast.iter_child_nodes(node), scope)

    def bindings(self, node: ast.AST, scope: NameScope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.target(target, node.value, scope)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name):
                scope.bind(node.target.id, Assigned(node.value, scope, node.annotation))
        elif isinstance(node, ast.NamedExpr):
            self.target(node.target, node.value, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.AugAssign)):
            self.target(node.target, None, scope)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.target(node.optional_vars, None, scope)
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
        ):
            scope.bind(node.name, Assigned(None, scope))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:  # what is assigned here is assigned there
                for meaning in scope.above.look(name) if scope.above else ():
                    scope.bind(name, meaning)

    def target(self, target: ast.expr, value: ast.expr | None, scope: NameScope) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, Assigned(value, scope))
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for at, each in enumerate(target.elts):
                self.target(each, value.elts[at] if same else None, scope)  # type: ignore[union-attr]  # same says so
        elif isinstance(target, ast.Starred):
            self.target(target.value, None, scope)

    def function(self, node: Function, scope: NameScope) -> None:
        if not isinstance(node, ast.Lambda):
            scope.bind(node.name, Defined(node, scope))
            self.body(node.decorator_list, scope)
        self.module.functions.append((node, scope))
        inner = self.module.inside[node] = NameScope(self.module, node, scope)
        args = node.args
        self.body([*args.defaults, *[each for each in args.kw_defaults if each is not None]], scope)
        for at, arg in enumerate([*args.posonlyargs, *args.args]):
            inner.bind(arg.arg, Parameter(arg, at, node, scope))
        for arg in [*args.kwonlyargs, *[each for each in (args.vararg, args.kwarg) if each is not None]]:
            inner.bind(arg.arg, Parameter(arg, None, node, scope))
        self.body([node.body] if isinstance(node, ast.Lambda) else node.body, inner)

    def imports(self, node: ast.Import | ast.ImportFrom, scope: NameScope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                scope.bind(bound, ForeignName(alias.name if alias.asname else bound))
            return
        package = self.module.name.split(".")
        if self.module.path.name != "__init__.py":
            package = package[:-1]
        base = (
            ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            if node.level
            else (node.module or "")
        )
        if node.names[0].name == "*":
            self.module.stars.append(base)
            return
        for alias in node.names:
            scope.bind(alias.asname or alias.name, ForeignName(f"{base}.{alias.name}" if base else alias.name))


class Project:
    """The modules that are read: those that are named, and what they import from beside them."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self.modules: dict[str, Module] = {}
        self._roots: set[Path] = set()
        for where in wanted:
            self._begin(where)

    def _begin(self, where: str) -> None:
        path = Path(where)
        if where.endswith(".py") or "/" in where or path.is_dir():
            if not path.exists():
                raise ProgramNotFound(f"there is no file {where}")
            top = path.resolve()
            while (top.parent / "__init__.py").exists():  # the package that it is in
                top = top.parent
            self._roots.add(top.parent)
            for file in sorted(path.resolve().rglob("*.py")) if path.is_dir() else [path.resolve()]:
                parts = file.relative_to(top.parent).with_suffix("").parts
                self._add(".".join(parts[:-1] if parts[-1] == "__init__" else parts), file)
            return
        home = self._file(where, [str(Path.cwd()), *sys.path])
        if home is None:
            raise ProgramNotFound(f"there is no module {where}, here or installed")
        self._roots.add(home.parents[len(where.split(".")) - (home.name != "__init__.py")])
        self._add(where, home)
        if home.name == "__init__.py":
            self._begin(str(home.parent))

    @staticmethod
    def _file(name: str, path: list[str] | None) -> Path | None:
        spec = None
        for at in range(len(parts := name.split("."))):
            spec = PathFinder.find_spec(".".join(parts[: at + 1]), path)
            if spec is None:
                return None
            path = list(spec.submodule_search_locations or [])
        return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None

    def _add(self, name: str, file: Path) -> None:
        if name in self.modules:
            return
        try:
            tree = ast.parse(file.read_bytes(), str(file))
        except (OSError, SyntaxError, ValueError) as error:
            raise ProgramNotFound(f"cannot read {file}: {error}") from None
        module = self.modules[name] = Module(file, name, tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._follow(alias.name)
        for meanings in module.top.names.values():
            for meaning in meanings:
                if isinstance(meaning, ForeignName):
                    self._follow(meaning.name)
                    self._follow(meaning.name.rpartition(".")[0])
        for star in module.stars:
            self._follow(star)

    def _follow(self, name: str) -> None:
        if name and name not in self.modules:
            for root in sorted(self._roots):
                file = self._file(name, [str(root)])
                if file is not None and "site-packages" not in file.parts:
                    self._add(name, file)
                    return

    # ------------------------------------------------------------------------------------------------ names

    def meanings(self, written: ast.expr, scope: NameScope) -> list[Meaning]:
        """What a name, or a name of a module (``shop.Order``), may stand for."""
        if isinstance(written, ast.Name):
            meanings = scope.look(written.id) or self._starred(written.id, scope.module)
            return [each for meaning in meanings for each in self._home(meaning)]
        if isinstance(written, ast.Attribute):
            out: list[Meaning] = []
            for base in self.meanings(written.value, scope):
                if isinstance(base, ForeignName):
                    out += self._home(ForeignName(f"{base.name}.{written.attr}"))
                elif isinstance(base, Module):
                    out += [each for one in base.top.look(written.attr) for each in self._home(one)]
            return out
        return []

    def _starred(self, name: str, module: Module) -> list[Meaning]:
        """What ``from .. import *`` brings under a name."""
        for star in module.stars:
            if star == "syndicate" and name in face.__all__:
                return [ForeignName(f"syndicate.{name}")]
            if star in self.modules and name in self.modules[star].top.names:
                return self.modules[star].top.names[name]
        return []

    def _home(self, meaning: Meaning, depth: int = 0) -> list[Meaning]:
        """Where an imported name is defined, if that is read."""
        if not isinstance(meaning, ForeignName) or depth > 8:
            return [meaning]
        if meaning.name in self.modules:
            return [self.modules[meaning.name]]
        module, _, name = meaning.name.rpartition(".")
        if module in self.modules and name in self.modules[module].top.names:
            return [each for one in self.modules[module].top.names[name] for each in self._home(one, depth + 1)]
        return [meaning]

    def ours(self, written: ast.expr, scope: NameScope) -> str:
        """The last part of the name if it is one of this library (``send``), or nothing."""
        for meaning in self.meanings(written, scope):
            if isinstance(meaning, ForeignName) and meaning.name.partition(".")[0] in ("syndicate", "relay"):
                return meaning.name.rpartition(".")[2]
        return ""
