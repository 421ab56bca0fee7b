"""What tests look at behind a reference: it says of its entity and its actor only what everybody may rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syndicate import Ref
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.index.index import Index


def index_of(ds: Ref) -> Index:
    """The index of a dataspace."""
    assert isinstance(ds.entity, Dataspace)
    return ds.entity.index


def within(system: System, facet: Facet, fn: Callable[[], object]) -> Any:
    """What *fn* returns in a turn of a facet, when all that it causes has happened."""
    results: list[Any] = []
    facet.enter(lambda: results.append(fn()))
    system.drain()
    return results[0]
