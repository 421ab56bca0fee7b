"""Bodies of programs' classes: a name stands for one thing, as in an enumeration of Python's.

A class keeps what a name was bound to last.  Of two blocks of one name the rules of the first would be gone without a
word, and of two collections the first, whatever wrote to it.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import TYPE_CHECKING, Protocol

from syndicate.bloom.block import Imported, is_marked
from syndicate.bloom.declaration import Declaration
from syndicate.bloom.site import here
from syndicate.errors import BloomDeclaration
from syndicate.values.value import Value


class Body(dict[str, object]):
    """The names of a class while it is written."""

    def __setitem__(self, name: str, value: Value) -> None:
        old = self.get(name)
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
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **_: object) -> Body:
        """The body to be filled."""
        return Body()
