"""Blocks and modules: what marks a method as rules, and a class attribute as an instance of another program.

A block is a method: a subclass that defines one of the same name overrides it, an empty one removes its rules.  An
imported program keeps its own: nothing of the importer overrides them.

Source: Alvaro et al. 2011a, "Modularity and Encapsulation"; ``docs/design/bloom.md``, "Modules".

Unused: an expression over collections in a block that is part of no rule.

Python has a meaning for what nobody meant: ``t <= a if quick else b`` is ``(t <= a) if quick else b``, of which the
second branch is no rule; ``t <= a, b`` is a pair; ``self.a.map(f)`` alone describes rows that go nowhere.  Nothing
comes of such an expression, so it is refused, with its place.  So is one that is given a name which nobody reads.

Only what is sure is refused.  What an expression means is read off the block's source: an attribute of ``self``
that is a collection, what methods and operators make of one, ``values()`` and ``join()``, and a local name that is
never anything else.  A block whose source is not to be had, or is no longer what runs, is not looked at.

Bodies of programs' classes: a name stands for one thing, as in an enumeration of Python's.

A class keeps what a name was bound to last.  Of two blocks of one name the rules of the first would be gone without a
word, and of two collections the first, whatever wrote to it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from abc import ABCMeta
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

from attrs import frozen

from syndicate.bloom.declaration import Declaration, Namespace, here, run_block, site_of, unmade
from syndicate.bloom.rules.symbols import Head
from syndicate.errors import BloomDeclaration, IllegalRule
from syndicate.values.value import Value

# --------------------------------------------------------------------------------------------------------------- unused


_RULES: Final = (ast.LtE, ast.Lt)
_MAY_ACT: Final = (ast.Call, ast.Compare, ast.Constant, ast.IfExp)
"""What may be beside a rule in a conditional: it does something, or says that nothing is to be done."""

_MAKERS: Final = frozenset({"join_of", "values"})
_examined: WeakKeyDictionary[FunctionType, WeakSet[type]] = WeakKeyDictionary()


def check_used(block: FunctionType, program: Namespace) -> None:
    """Raise :class:`IllegalRule` for an expression in a block of a program's class that is part of no rule."""
    classes = _examined.setdefault(block, WeakSet())
    if type(program) in classes:
        return
    tree = _source(block)
    if tree is not None:
        for node, why in _Block(tree, block, program).unused():
            line = block.__code__.co_firstlineno + node.lineno - 1
            raise IllegalRule(f"{block.__code__.co_filename}:{line}: {why}")
    classes.add(type(program))


def _source(block: FunctionType) -> ast.FunctionDef | None:
    """The tree of a function, if it is that of the code that runs."""
    try:
        text = textwrap.dedent(inspect.getsource(block))
        tree = ast.parse(text).body[0]
        compiled = compile(text, "block", "exec")
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    codes = [one for one in compiled.co_consts if isinstance(one, CodeType) and one.co_name == tree.name]
    return tree if any(_names(one) == _names(block.__code__) for one in codes) else None


def _names(code: CodeType) -> frozenset[str]:
    return frozenset((*code.co_names, *code.co_freevars, *code.co_cellvars, *code.co_varnames))


class _Block:
    """The source of a block, and the values of its names."""

    def __init__(self, tree: ast.FunctionDef, block: FunctionType, program: Namespace) -> None:
        self.tree, self.program = tree, program
        self.of = tree.args.args[0].arg if tree.args.args else ""
        self.block = block
        self.assignments: dict[str, list[ast.expr | None]] = {}
        self.loaded: set[str] = set()
        for node in ast.walk(tree):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        """See what a name is given, with None for what is not looked into."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.loaded.add(node.id)
        elif isinstance(node, ast.Name):
            self.assignments.setdefault(node.id, [])
        elif isinstance(node, ast.arg):
            self.assignments.setdefault(node.arg, []).append(None)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self.loaded.update(node.names)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._give(target, [node.value])
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            self._give(node.target, [node.value])
        elif isinstance(node, (ast.For, ast.comprehension)):
            several = node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else [None]
            self._give(node.target, several)
        elif isinstance(node, (ast.AugAssign, ast.withitem, ast.ExceptHandler, ast.Import, ast.ImportFrom)):
            for name in ast.walk(node):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    self._give(name, [None])

    def _give(self, target: ast.expr, values: Sequence[ast.expr | None]) -> None:
        if isinstance(target, ast.Name):
            self.assignments.setdefault(target.id, []).extend(values)
        else:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    self.assignments.setdefault(name.id, []).append(None)

    # ------------------------------------------------------------------------------------------------ what it says

    def unused(self) -> Iterator[tuple[ast.expr, str]]:
        """The expressions that are part of no rule, and what is said of each."""
        for node in _statements(self.tree):
            if isinstance(node, ast.Expr):
                yield from self._alone(node.value)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else "_"
                if name not in self.loaded and not name.startswith("_") and self._is_rows(node.value):
                    yield node.value, f"{name} is in no rule: write t <= {name}, or leave it out"

    def _alone(self, node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
        """What is unused of an expression that is a statement."""
        if isinstance(node, ast.IfExp):
            branches = (node.body, node.orelse)
            rules = [one for one in branches if _is_rule(one)]
            for one in branches:
                if rules and (self._is_rows(one) or not isinstance(one, _MAY_ACT)):
                    read = f"({_text(rules[0])}) if ... else ..."
                    remedy = "put the right side of the operator in parentheses, or write an if statement"
                    yield one, f"{_text(one)} is in no rule: Python reads this as {read}: {remedy}"
                else:
                    yield from self._alone(one)
        elif isinstance(node, ast.BoolOp):
            for one in node.values:
                yield from self._alone(one)
        elif isinstance(node, (ast.Tuple, ast.List)):
            for one in node.elts:
                yield from self._alone(one)
        elif isinstance(node, (ast.ListComp, ast.SetComp)):
            yield from self._alone(node.elt)
        elif isinstance(node, ast.GeneratorExp) and _is_rule(node.elt):
            yield node, f"{_text(node)} is never run, so that it makes no rules: write a for statement"
        elif not _is_rule(node) and self._is_rows(node):
            text = _text(node)
            yield (
                node,
                f"{text} is in no rule, so that nothing comes of it: write t <= {text}, or leave it out",
            )

    def _is_rows(self, node: ast.expr | None, within: frozenset[str] = frozenset()) -> bool:
        """Whether its value is surely rows, columns, or the value of a lattice."""
        if isinstance(node, ast.Name):
            values = self.assignments.get(node.id)
            if not values or node.id in within:
                return False
            return all(self._is_rows(one, within | {node.id}) for one in values)
        if isinstance(node, ast.Attribute):
            return self._is_collection(node) or self._is_rows(node.value, within)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                maker = _value_of(node.func.id, self.block)
                is_maker = getattr(maker, "__name__", "") in _MAKERS and node.func.id not in self.assignments
                return is_maker and getattr(maker, "__module__", "") == "syndicate.bloom.rules.expression"
            method = node.func.attr if isinstance(node.func, ast.Attribute) else "define"
            return method != "define" and self._is_rows(node.func, within)
        if isinstance(node, ast.BinOp):
            return self._is_rows(node.left, within) or self._is_rows(node.right, within)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self._is_rows(node.operand, within)
        if isinstance(node, ast.IfExp):
            return self._is_rows(node.body, within) and self._is_rows(node.orelse, within)
        if isinstance(node, ast.Compare):
            return not _is_rule(node) and self._is_rows(node.left, within)
        return False

    def _is_collection(self, node: ast.Attribute) -> bool:
        """Whether it is ``self.name``, or ``self.module.name``, of a collection."""
        path: list[str] = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            path.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name) or value.id != self.of or self.assignments.get(self.of) != [None]:
            return False
        part: object = self.program
        for name in reversed(path):
            if not isinstance(part, Namespace):
                return False
            part = vars(part).get(name)
        return isinstance(part, Head)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a function, those of functions in it left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        yield from _statements(node)


def _is_rule(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], _RULES)


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _value_of(name: str, block: FunctionType) -> object:
    """What a name that a block does not assign stands for, around it or in its module; None for nothing."""
    cells = dict(zip(block.__code__.co_freevars, block.__closure__ or (), strict=True))
    try:
        return cells[name].cell_contents if name in cells else block.__globals__.get(name)
    except ValueError:  # not yet assigned
        return None


# --------------------------------------------------------------------------------------------------- blocks and modules


F = TypeVar("F", bound=Callable[..., object])


def bloom(function: F) -> F:
    """Mark a method as a block of rules.

    >>> from syndicate.bloom import Bloom, table
    >>> class Copy(Bloom):
    ...     source = table(["x"])
    ...     copy = table(["x"])
    ...     @bloom
    ...     def rules(self):
    ...         self.copy <= self.source
    >>> program = Copy()
    >>> program.source.insert([(1,)])
    >>> program.tick(); print(sorted(program.copy))
    [(x=1)]
    """
    _marked(function, "bloom")

    @wraps(function)
    def block(program: Namespace) -> None:
        if not isinstance(program, Namespace):
            raise unmade(type(program), site_of(function))
        run_block(program, definer(type(program), block), partial(function, program))
        check_used(cast("FunctionType", function), program)

    return cast("F", block)


def bootstrap(function: F) -> F:
    """Mark a method that gives rows to the first tick, ancestors' methods first.

    >>> from syndicate.bloom import Bloom, table
    >>> class Seeded(Bloom):
    ...     numbers = table(["n"])
    ...     @bootstrap
    ...     def first(self):
    ...         self.numbers <= [(1,), (2,)]
    >>> program = Seeded()
    >>> program.tick(); print(sorted(program.numbers))
    [(n=1), (n=2)]
    """
    return _marked(function, "bootstrap")


def _marked(function: F, mark: str) -> F:
    if not callable(function):
        raise BloomDeclaration(f"{here()}: @{mark} marks a method, not {function!r}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        _refuse(function, mark, "and is async: leave that out, since rules are recorded and never wait")
    if inspect.isgeneratorfunction(function):
        _refuse(function, mark, "and has a yield, so that a call would not run it: leave that out")
    signature = inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    try:
        signature.bind(None)
    except TypeError:
        _refuse(function, mark, f"and takes {signature}: it takes self, and nothing else")
    function.__bloom__ = mark  # type: ignore[attr-defined]  # a function takes any attribute
    return function


def _refuse(function: Callable[..., Value], mark: str, why: str) -> NoReturn:
    raise BloomDeclaration(f"{site_of(function)}: {function.__name__} is marked @{mark} {why}")


def is_marked(value: Value, mark: str) -> bool:
    """Whether *value* was marked so."""
    return getattr(value, "__bloom__", None) == mark


@frozen(eq=False)
class Imported:
    """A program within a program; in the body of a class, ``module.collection`` is the declaration."""

    _program: type[Namespace]
    _site: str

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):
            raise AttributeError(name)
        member = getattr(self._program, name, None)
        if not isinstance(member, (Declaration, Imported)):
            raise BloomDeclaration(f"{here()}: {self._program.__name__} declares no collection {name}")
        return member

    if TYPE_CHECKING:  # an instance has the module in its place

        def __get__(self, instance: object, owner: type) -> Value: ...


def origin_of(imported: Imported) -> tuple[type[Namespace], str]:
    """The class of the program, and where it is imported."""
    return imported._program, imported._site


class MissingInstance:
    """A placeholder for what a program's constructor has not made."""

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise unmade(owner, "")


def import_module(program: object, as_name: str = "") -> Imported:
    """An instance of another program of its own, whose collections are ``name.collection``.

    In a class body: ``left = import_module(Delivery)``, or ``import_module(Delivery, as_name="left")``.

    >>> from syndicate.bloom import Bloom, bloom, interface, table
    >>> class Doubler(Bloom):
    ...     number = interface("input", ["n"])
    ...     double = interface("output", ["n"])
    ...     @bloom
    ...     def rules(self):
    ...         self.double <= self.number.map(lambda row: (2 * row.n,))
    >>> class Sums(Bloom):
    ...     twice = import_module(Doubler)
    ...     numbers = table(["n"])
    ...     results = table(["n"])
    ...     @bloom
    ...     def rules(self):
    ...         self.twice.number <= self.numbers
    ...         self.results <= self.twice.double
    >>> program = Sums()
    >>> program.numbers.insert([(21,)])
    >>> program.tick(); print(sorted(program.results))
    [(n=42)]
    """
    site = here()
    if not isinstance(program, type) or not issubclass(program, Namespace):
        raise BloomDeclaration(f"{site}: import_module takes a class of rules (class M(Bloom)), not {program!r}")
    imported = Imported(program, site)
    if as_name:
        if not as_name.isidentifier():
            raise BloomDeclaration(f"{site}: {as_name!r} cannot be the name of a module: it is no identifier")
        sys._getframe(1).f_locals[as_name] = imported
    return imported


def definer(cls: type, block: object) -> type:
    """The class that a block, a name or a function, is of."""
    if isinstance(block, str):
        return next(one for one in cls.__mro__ if block in vars(one))
    return next((one for one in cls.__mro__ if any(value is block for value in vars(one).values())), cls)


def blocks_of(cls: type, mark: str) -> Iterator[str]:
    """The names of marked methods, those of ancestors first, each once."""
    seen: dict[str, None] = {}
    for one in reversed(cls.__mro__):
        for name, value in vars(one).items():
            if is_marked(value, mark):
                seen[name] = None
    return iter(seen)


# ------------------------------------------------------------------------------------------ bodies of programs' classes


class ClassBody(dict[str, object]):
    """The names of a class while it is written; and the classes that it is derived from."""

    bases: tuple[type, ...] = ()

    def __setitem__(self, name: str, value: Value) -> None:
        old = self.get(name)
        if isinstance(value, str) and any(isinstance(getattr(base, name, None), tuple) for base in self.bases):
            raise BloomDeclaration(
                f"{here()}: {name} is one text, of which each letter would count: write ({value!r},)"
            )
        if old is not None and old is not value and (_declares(old) or _declares(value)):
            raise BloomDeclaration(f"{here()}: {name} is there already in this class: give one of the two another name")
        super().__setitem__(name, value)


def _declares(value: Value) -> bool:
    """Whether a name in a class stands for a part of the program: a collection, a module, a block."""
    return isinstance(value, (Declaration, Imported)) or is_marked(value, "bloom") or is_marked(value, "bootstrap")


if TYPE_CHECKING:
    _Abstract = ABCMeta
else:
    _Abstract = type(Protocol)  # an ABCMeta; any other could not be mixed with a protocol


class ProgramClass(_Abstract):
    """The class of programs' classes, which may be abstract, and name protocols that they follow."""

    __instancecheck__ = ABCMeta.__instancecheck__
    __subclasscheck__ = ABCMeta.__subclasscheck__

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **_: object) -> ClassBody:
        """The body to be filled."""
        body = ClassBody()
        body.bases = bases
        return body
