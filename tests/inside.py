"""What tests look at behind a reference: it says of its entity and its actor only what everybody may rely on."""

from __future__ import annotations

from syndicate import Ref
from syndicate.actors.dataspace import Dataspace
from syndicate.index.skeleton import Index


def index_of(ds: Ref) -> Index:
    """The index of a dataspace."""
    assert isinstance(ds.entity, Dataspace)
    return ds.entity.index
