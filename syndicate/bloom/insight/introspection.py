"""Introspection: what a program consists of, by name, and what explains it.

Source: ``docs/design/bloom.md``, "Collections and operators".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syndicate import plan
from syndicate.bloom.collection import Collection
from syndicate.bloom.declaration import Kind, Rule
from syndicate.bloom.insight.calm import Calm, analyse
from syndicate.bloom.insight.why import Lack, Reason, why, why_not
from syndicate.bloom.rules.symbols import kind_of
from syndicate.bloom.tick.runtime import Instantiated
from syndicate.values.value import Value


class Introspection(Instantiated):
    """What a program says of itself."""

    def collections(self) -> Iterator[Collection]:
        """All collections, those of modules too."""
        return self._instance.collections()

    def collection(self, name: str) -> Collection:
        """The collection of a name, ``"module.name"`` for one of a module; raises :class:`BloomDeclaration`."""
        return self._instance.collection(name)

    @property
    def statements(self) -> tuple[Rule, ...]:
        """The rules of all blocks, in the order in which they were recorded."""
        return tuple(self._instance.runtime.wiring.rules)

    @property
    def plan(self) -> plan.Program:
        """What the rules are compiled to: relations are called as collections are, deferred ones ``"name <+"``."""
        return self._instance.runtime.wiring.program

    def stratum(self, collection: str | Collection) -> int:
        """How many points of order lie on the paths to a collection."""
        name = self.collection(collection).tabname if isinstance(collection, str) else collection.tabname
        return next((one.level for one in self.plan.strata() if name in one.relations), 0)

    def underspecified(self) -> list[tuple[str, str]]:
        """Input interfaces that no rule reads, and output interfaces that no rule writes."""
        return lacking(self.collections(), self.statements)

    def calm(self) -> Calm:
        """Which outputs are the same whatever order input comes in, and which rules keep others from it."""
        return analyse(self)

    def why(self, collection: str | Collection, row: Value) -> Reason:
        """Why a collection has a row, given whole or by its key; raises :class:`RowAbsent` if it has no such row."""
        return why(self, collection, row)

    def why_not(self, collection: str | Collection, row: Value) -> Lack:
        """What each rule lacks to derive a row that a collection does not have."""
        return why_not(self, collection, row)


def lacking(collections: Iterable[Collection], rules: Iterable[Rule]) -> list[tuple[str, str]]:
    """Input interfaces that none of the rules reads, and output interfaces that none writes, with that reason."""
    interfaces = list(collections)
    written, read = set[str](), set[str]()
    for rule in rules:
        written.add(rule.head)
        read.update(one.name for one in rule.reads())
    lacks = {Kind.INPUT: (read, "no rule reads it"), Kind.OUTPUT: (written, "no rule writes it")}
    return [
        (one.tabname, why)
        for kind, (used, why) in lacks.items()
        for one in interfaces
        if kind_of(one) is kind and one.tabname not in used
    ]
