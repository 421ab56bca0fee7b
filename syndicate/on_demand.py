"""Names of a package that are imported when somebody asks for them first.

A program that uses one name of a face need not wait for what all others need: the verdict on a protocol needs no event
loop, and ``syndicate --help`` no dataspace.  Type checkers read the imports under ``TYPE_CHECKING`` instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def on_demand(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package: each name is imported the first time it is asked for.

    *homes* has the names of each module.  No name may be that of a module of the package as well: importing that one
    would put it in the place of the name.  The first function raises :class:`AttributeError` for any other name, and
    what the import raises.

    >>> found, listed = on_demand("syndicate", {"syndicate.graph": ["components"]})
    >>> found("components").__module__, "components" in listed()
    ('syndicate.graph', True)
    """
    places = {name: module for module, names in homes.items() for name in names}

    def imported(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return imported, lambda: sorted({*vars(sys.modules[package]), *places})
