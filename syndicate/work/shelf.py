"""A shelf: a dataspace of this process that understands ``keep`` and ``forget``, as a durable one does.

What is kept is asserted while the system runs.  So a queue needs no broker to be tried, and none of its parts asks
which of the two it has.

>>> from syndicate import capture, dataspace, during, run
>>> from syndicate.actors.keep import forget, keep
>>> def boot():
...     ds = shelf(dataspace())
...     @during(ds, ["order", capture()])
...     def order(what):
...         print(what, "is ordered")
...         forget(ds, ["order", what])
...         return lambda: print(what, "is not any more")
...     keep(ds, ["order", "tea"])
>>> run(boot)
tea is ordered
tea is not any more
"""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from syndicate.actors.actor import Actor
from syndicate.actors.dataspace import Dataspace
from syndicate.actors.facet import Facet
from syndicate.actors.keep import FORGET, KEEP, VOLATILE
from syndicate.actors.turn import Entity, Handle, current
from syndicate.index.event import ASSERT, MESSAGE, RETRACT
from syndicate.values.value import Assertion, Frozen, Ref, Value

_shelves: Final[WeakKeyDictionary[Dataspace, Ref]] = WeakKeyDictionary()


class _Shelf(Entity):
    raw = True

    def __init__(self, facet: Facet, ds: Ref) -> None:
        self._facet = facet
        self._ds = ds
        self._kept: dict[Frozen, Handle] = {}
        self._volatile: dict[Assertion, Handle] = {}

    def assert_(self, form: Value, handle: Assertion) -> None:
        """Pass it on, out of its wrapper."""
        if type(form) is tuple and len(form) == 2 and form[0] is VOLATILE:
            self._volatile[handle] = current("assert").assert_form(self._facet, self._ds, form[1])
            return
        current("assert").enqueue(self._ds.facet.actor, (ASSERT, self._ds, form, handle))

    def retract(self, handle: Assertion) -> None:
        """Pass it on."""
        if handle in self._volatile:
            current("retract").retract(self._volatile.pop(handle))
            return
        current("retract").defer(self._ds.facet.actor, (RETRACT, self._ds, None, handle))

    def message(self, form: Value) -> None:
        """Keep and forget; pass on what is neither."""
        turn = current("send")
        if type(form) is tuple and len(form) == 2 and form[0] is KEEP:
            if form[1] not in self._kept:
                self._kept[form[1]] = turn.assert_form(self._facet, self._ds, form[1])
        elif type(form) is tuple and len(form) == 2 and form[0] is FORGET:
            handle = self._kept.pop(form[1], None)
            if handle is not None:
                turn.retract(handle)
        else:
            turn.enqueue(self._ds.facet.actor, (MESSAGE, self._ds, form, None))

    def sync(self, peer: Ref) -> None:
        """The dataspace's own answer, when it has handled what went through here before."""
        current("sync").sync(self._ds, peer)


def shelf(ds: Ref) -> Ref:
    """*ds* itself if it is of another process, which is then taken to be durable; else what stands before it here, the
    same for the same dataspace.
    """
    entity = ds.entity
    if not isinstance(entity, Dataspace):
        return ds
    there = _shelves.get(entity)
    if there is None:
        turn = current("shelf")
        actor = Actor(turn.actor.system, "shelf", daemon=True)
        facet = Facet(actor, actor.root)
        facet.preventers = 1
        actor.boot(turn, lambda: None)
        there = _shelves[entity] = Ref(facet, _Shelf(facet, ds), True)
    return there
