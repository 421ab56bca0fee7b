"""Blocks and modules: what marks a method as rules, and a class attribute as an instance of another program.

A block is a method: a subclass that defines one of the same name overrides it, an empty one removes its rules.  An
imported program keeps its own: nothing of the importer overrides them.

Source: Alvaro et al. 2011a, "Modularity and Encapsulation"; ``docs/design/bloom.md``, "Modules".
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps
from types import FunctionType
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from attrs import frozen

from syndicate.bloom.declaration import Declaration
from syndicate.bloom.namespace import Namespace, run_block
from syndicate.bloom.rules.unused import check_used
from syndicate.bloom.site import here, site_of
from syndicate.errors import BloomDeclaration
from syndicate.values.value import Value

F = TypeVar("F", bound=Callable[..., object])


def bloom(function: F) -> F:
    """Mark a method as a block of rules."""
    _marked(function, "bloom")

    @wraps(function)
    def block(program: Namespace) -> None:
        run_block(program, definer(type(program), block), partial(function, program))
        check_used(cast("FunctionType", function), program)

    return cast("F", block)


def bootstrap(function: F) -> F:
    """Mark a method that gives rows to the first tick, ancestors' methods first."""
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


class Unmade:
    """A placeholder for what a program's constructor has not made."""

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise BloomDeclaration(f"{owner.__name__} is not made: its __init__ must call super().__init__(**options)")


def import_module(program: object, as_name: str = "") -> Imported:
    """An instance of another program of its own, whose collections are ``name.collection``.

    In a class body: ``left = import_module(Delivery)``, or ``import_module(Delivery, as_name="left")``.
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
