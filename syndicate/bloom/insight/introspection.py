"""Looking: what a program consists of, by name.

Source: ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from syndicate import plan
from syndicate.bloom.declaration import Kind
from syndicate.bloom.insight.calm import Calm, analyse
from syndicate.bloom.insight.why import Reason, why
from syndicate.bloom.insight.why_not import Lack, why_not
from syndicate.bloom.rule import Rule
from syndicate.bloom.rules.head import kind_of
from syndicate.bloom.site import here
from syndicate.errors import BloomDeclaration
from syndicate.plan.heading import listed, meant

if TYPE_CHECKING:
    from syndicate.bloom.collection import Collection


class Looking:
    """What a program shows of itself."""

    if TYPE_CHECKING:
        _root: Any
        _prefix: str
        _own: dict[str, Collection]
        _modules: dict[str, Any]

    def collections(self) -> Iterator[Collection]:
        """All collections, those of modules too."""
        yield from self._own.values()
        for module in self._modules.values():
            yield from module.collections()

    def collection(self, name: str) -> Collection:
        """The collection of a name, ``"module.name"`` for one of a module; raises :class:`BloomDeclaration`."""
        found = {one.tabname[len(self._prefix) :]: one for one in self.collections()}
        if name not in found:
            raise BloomDeclaration(
                f"{here()}: there is no collection {name!r}{meant(name, found)}; there are {listed(found)}"
            )
        return found[name]

    @property
    def statements(self) -> tuple[Rule, ...]:
        """The rules of all blocks, in the order in which they were recorded."""
        return tuple(self._root._wiring.rules)

    @property
    def plan(self) -> plan.Program:
        """What the rules are compiled to: relations are called as collections are, deferred ones ``"name <+"``."""
        made: plan.Program = self._root._wiring.program
        return made

    def stratum(self, collection: str | Collection) -> int:
        """How many points of order lie on the way to a collection."""
        name = self.collection(collection).tabname if isinstance(collection, str) else collection.tabname
        return next((one.level for one in self.plan.strata() if name in one.relations), 0)

    def underspecified(self) -> list[tuple[str, str]]:
        """Input interfaces that no rule reads, and output interfaces that no rule writes."""
        read = {found.name for rule in self.statements for found in rule.reads()}
        written = {rule.head for rule in self.statements}
        found = [
            (c.tabname, "no rule reads it")
            for c in self.collections()
            if kind_of(c) is Kind.INPUT and c.tabname not in read
        ]
        return found + [
            (c.tabname, "no rule writes it")
            for c in self.collections()
            if kind_of(c) is Kind.OUTPUT and c.tabname not in written
        ]

    def calm(self) -> Calm:
        """Which outputs are the same whatever order input comes in, and which rules keep others from it."""
        return analyse(self._root)

    def why(self, collection: str | Collection, row: Any) -> Reason:
        """Why a collection has a row, given whole or by its key; raises :class:`RowAbsent` if it has no such row."""
        return why(self, collection, row)

    def why_not(self, collection: str | Collection, row: Any) -> Lack:
        """What each rule lacks to derive a row that a collection does not have."""
        return why_not(self, collection, row)
