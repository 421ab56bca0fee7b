"""How much memory a facet holds: the sizes of what can be reached from it, a slice at a time.

Counted is what its assertions, handlers, tasks and fields reach, up to other facets, modules and classes.  Python has
one heap for all: what several facets share is counted for the first of them, so the figure is a bound from above for
what would be free without the actor, not a measurement.

>>> from syndicate.testing import settled
>>> from syndicate import current_facet, on_message, dataspace
>>> kept = []
>>> def boot():
...     text = "x" * 100_000
...     ds = dataspace()
...     on_message(ds, "ring")(lambda *given, text=text: None)
...     kept.append(current_facet())
>>> system = settled(boot)
>>> try:
...     next(held(kept[0], set()))
... except StopIteration as end:
...     100_000 < end.value < 110_000
True

Cost: about half a microsecond an object; at most ``FURTHEST_OBJECT`` of one facet are looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from sys import getsizeof
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Final

from syndicate.actors.actor import Actor
from syndicate.actors.bulk import BulkHandle
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.system import System
from syndicate.actors.turn import Turn
from syndicate.introspect.answer_pages import STRIDE
from syndicate.values.value import Ref, Symbol

FURTHEST_OBJECT: Final = 100_000
"""Objects of one facet that are looked at."""

_BOUNDARIES: Final = (
    ModuleType, type, Facet, Actor, System, Turn, Dataspace, CodeType, FrameType, BuiltinFunctionType, Symbol,
    GetSetDescriptorType, MemberDescriptorType,
)  # fmt: skip


def held(facet: Facet, seen: set[int]) -> Generator[None, None, int]:
    """Bytes that *facet* reaches, as far as they are counted; yields between slices.

    *seen* are the identities of objects that were counted elsewhere, and gets those of this facet.
    """
    pending: list[object] = [facet.hooks, list(facet.tasks), [each() for each in facet.blocks]]
    pending += [handle for handle in facet.handles if not isinstance(handle, BulkHandle)]
    size = count = 0
    while pending and count < FURTHEST_OBJECT:
        one = pending.pop()
        if id(one) in seen or isinstance(one, _BOUNDARIES):
            continue
        if isinstance(one, Ref) and one.facet is not facet:
            continue  # somebody else's
        if type(one).__module__.partition(".")[0] == "trio":
            continue  # its tasks reach all others
        seen.add(id(one))
        size += getsizeof(one)
        count += 1
        if isinstance(one, FunctionType):
            pending += [one.__closure__, one.__defaults__, one.__kwdefaults__]
        else:
            pending += gc.get_referents(one)
        if count % STRIDE == 0:
            yield
    return size
