"""``lbool``: a condition that, once it holds, holds.

>>> Bool().merge(Bool(True)), Bool(False) == Bool(), Bool(True).when_true(lambda: "go"), Bool().when_true(lambda: "go")
(Bool(True), True, 'go', None)

Source: Conway et al. 2012, "Builtin lattices"; ``docs/design/lattice.md``, "The built-in lattices".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from syndicate.lattice.lattice import Lattice
from syndicate.lattice.method import morph
from syndicate.values.value import Value

R = TypeVar("R")


class Bool(Lattice):
    """False, then true; bottom: false; merge: or."""

    __slots__ = ()

    wrapper_name = "lbool"
    content: bool

    def __init__(self, content: bool | None = None) -> None:
        """Hold *content*; raises :class:`LatticeValue` for what is no bool."""
        if content is not None and type(content) is not bool:
            raise self.illegal(content, "True or False")
        super().__init__(bool(content))

    def merge(self, other: Bool) -> Bool:
        """Whether either holds."""
        self.same_lattice(other)
        return self if self.content or not other.content else other

    def beyond(self, known: Bool) -> Bool:
        """True if *known* is not yet."""
        return Bool(self.content and not known.content)

    @morph(tries=lambda values: [(lambda: frozenset({"so"}),)])
    def when_true(self, then: Callable[[], R]) -> R | None:
        """What *then* returns if the condition holds, else None: nothing.  There is no else, which could not grow."""
        return then() if self.content else None

    def _written(self) -> tuple[Value, ...]:
        return (self.content,)
