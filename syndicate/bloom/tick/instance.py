"""Instances: what a program is, inside: its collections and modules under names, and the runtime that they share.

What users see of a program is its attributes, which are their collections.  So all else hangs on one attribute, and the
modules of Bloom ask :func:`instance_of` for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import define, field

from syndicate.bloom.block import MissingInstance
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Namespace, here
from syndicate.bloom.tick.runtime import Runtime
from syndicate.errors import BloomDeclaration, IllegalRule
from syndicate.plan.algebra import listed, meant


@define(eq=False)
class Instance:
    """A program, or a module of one, whose collections' full names begin with *prefix*."""

    runtime: Runtime
    prefix: str = ""
    own: dict[str, Collection] = field(factory=dict)
    """Its collections, without those of modules; lattices are among them."""
    modules: dict[str, Instance] = field(factory=dict)

    def collections(self) -> Iterator[Collection]:
        """All collections, those of modules too."""
        yield from self.own.values()
        for module in self.modules.values():
            yield from module.collections()

    def collection(self, name: str) -> Collection:
        """The collection of a name, ``"module.name"`` for one of a module; raises :class:`BloomDeclaration`."""
        collections = {one.tabname[len(self.prefix) :]: one for one in self.collections()}
        if name not in collections:
            raise BloomDeclaration(
                f"{here()}: there is no collection {name!r}{meant(name, collections)}; there are {listed(collections)}"
            )
        return collections[name]

    def check_root(self, what: str) -> None:
        """Raise an error for what is asked of a program in the making, or of a module instead of its program."""
        if self.runtime.collecting:
            raise IllegalRule(f"{here()}: {what}() is for a program that is made, and a block says what it is made of")
        if self.prefix:
            raise BloomDeclaration(f"{what}() is for the program, not for its module {self.prefix[:-1]}")


class Instantiated(Namespace):
    """What has an instance: the base of programs."""

    if TYPE_CHECKING:
        _instance: Instance
    else:
        _instance = MissingInstance()


def instance_of(program: Instantiated) -> Instance:
    """What a program is, inside."""
    return program._instance


def runtime_of(program: Instantiated) -> Runtime:
    """What ticks, of a program or the program of a module."""
    return program._instance.runtime
