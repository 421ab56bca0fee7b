"""Names of a package that are imported when somebody asks for them first.

A program that uses one name of a face need not wait for what all others need: the verdict on a protocol needs no event
loop, and ``syndicate --help`` no dataspace.  Type checkers read the imports under ``TYPE_CHECKING`` instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def on_demand(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Make the ``__getattr__`` of a package: each name is imported from its module, the first time it is asked for.

    *homes* has the names of each module.  No name may be that of a module of the package as well: importing that one
    would put it in the place of the name.  The function raises :class:`AttributeError` for any other name, and what
    the import raises.

    >>> on_demand("syndicate", {"syndicate.graph": ["components"]})("components").__module__
    'syndicate.graph'
    """
    places = {name: module for module, names in homes.items() for name in names}

    def imported(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return imported
