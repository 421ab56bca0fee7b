"""Who asserts a value: found by a look through the handles of all actors, a slice at a time.

Nobody keeps a table of it, so that asserting costs nothing more; the look is made for the few values that are shown.

>>> from syndicate import assert_, dataspace, spawn, stop_actor, run
>>> from syndicate.values.value import freeze
>>> from syndicate.actors.turn import current
>>> def boot():
...     ds = dataspace()
...     assert_(ds, ["lit", "hall"])
...     system = current("boot").actor.system
...     try:
...         next(owners([freeze(["lit", "hall"])], ds, system.actors))
...     except StopIteration as end:
...         print([(actor.name, times) for actor, times in end.value[freeze(["lit", "hall"])].items()])
...     stop_actor()
>>> run(boot)
[('boot', 1)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from typing import TypeAlias

from syndicate.actors.actor import Actor
from syndicate.actors.bulk import BulkHandle
from syndicate.introspect.survey import STRIDE
from syndicate.values.value import Frozen, Ref

Owners: TypeAlias = "dict[Frozen, Counter[Actor]]"
"""By value: the actors that assert it, and how often; 0 if it is among the many that one asserted at once."""


def owners(forms: Iterable[Frozen], ds: Ref, actors: Iterable[Actor]) -> Generator[None, None, Owners]:
    """Look for who asserts *forms* in the dataspace *ds*, and return it; yields between slices.

    What came through a capability that rewrites values is not found, for what its holder asserts is another value.
    """
    wanted: Owners = {form: Counter() for form in forms}
    labels = {form[0] if type(form) is tuple else None for form in wanted}
    seen = 0
    if not wanted:
        return wanted
    for actor in list(actors):
        for facet in actor.root.below():
            for handle in list(facet.handles):
                seen += 1
                if seen % STRIDE == 0:
                    yield
                if handle.target.facet is not ds.facet:
                    continue
                if isinstance(handle, BulkHandle):
                    if handle.label in labels:
                        for form, count in wanted.items():
                            if type(form) is tuple and form[0] == handle.label:
                                count.setdefault(actor, 0)
                    continue
                counts = wanted.get(handle.form)
                if counts is not None:
                    counts[actor] += 1
    return wanted
