"""Results: what a method of a lattice returns, as its mark and its annotation say.

Where the class of the receiver is not known, a method counts as what the worst of all lattices that have it says, so
that nothing is taken for monotone that may not be.

>>> from syndicate.lattice import Max, Min, Set
>>> kinds(Max, "lt_eq")[0].value, kinds(Min, "lt_eq")[0].value, kinds(None, "lt_eq")[0].value, kinds(Set, "lt_eq")
('non-monotone', 'morphism', 'non-monotone', None)
>>> result_lattice(Set, "size", ()), result_lattice(Set, "filter", ())
(<class 'syndicate.lattice.extremum.Max'>, <class 'syndicate.lattice.sets.Set'>)

Source: Conway et al. 2012, "Lattice methods"; ``docs/design/lattice.md``, "Marks and laws".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from syndicate.lattice.lattice import LATTICES, Kind, Lattice
from syndicate.values.value import Value

ORDER: Final = (Kind.MORPHISM, Kind.MONOTONE, Kind.NON_MONOTONE)
"""From the best to the worst."""


def kinds(cls: type[Lattice] | None, name: str) -> tuple[Kind, Kind] | None:
    """How a method treats its receiver and its arguments; None if there is none."""
    classes = list(LATTICES.values()) if cls is None else [cls]
    methods = [method for one in classes if (method := one.methods().get(name)) is not None]
    if not methods:
        return None
    return (
        max((method.kind for method in methods), key=ORDER.index),
        max((method.argument for method in methods), key=ORDER.index),
    )


def result_lattice(cls: type[Lattice] | None, name: str, arguments: Sequence[Value]) -> type[Lattice] | None:
    """The lattice of what a method returns, as far as its annotation says."""
    if name == "merge":
        return cls
    function = getattr(cls, name, None) if cls is not None else None
    return None if function is None else annotated_lattice(function, cls, arguments)


def annotated_lattice(
    function: Callable[..., Value], cls: type[Lattice] | None, arguments: Sequence[Value]
) -> type[Lattice] | None:
    """The lattice that the annotation of a function names; *cls* is the receiver's."""
    said = getattr(function, "__annotations__", {}).get("return")
    if said == "Self":
        return cls
    if isinstance(said, str):
        global_value = getattr(function, "__globals__", {}).get(said)
        if isinstance(global_value, type) and issubclass(global_value, Lattice):
            return None if global_value is Lattice else global_value
        lattices = [one for one in arguments if isinstance(one, type) and issubclass(one, Lattice)]
        return lattices[0] if lattices and said == "L" else _named(said)
    return said if isinstance(said, type) and issubclass(said, Lattice) and said is not Lattice else None


def _named(said: str) -> type[Lattice] | None:
    return next((cls for cls in LATTICES.values() if cls.__name__ == said), None)
