"""PomoFlow: collections that change, and circuits that keep what is computed of them up to date.

A collection is a **Z-set**: elements with integer weights.  So is a change of one, and to change is to add.  A
**circuit** is a query as data: nodes joined by streams, built by the methods of a stream.  A **step** gives it the
changes of its sources and returns the changes of its sinks; it costs what changed, not what is stored.

>>> from syndicate.flow import Circuit, aggregates
>>> c = Circuit(); visits = c.source("visits")
>>> c.sink("each", visits.index_with(lambda v: v[0]).aggregate(aggregates.count))
>>> c.step({"visits": {("ann", "mon"): 1, ("ann", "tue"): 1}})["each"]
ZSet({('ann', 2): 1})
>>> c.step({"visits": {("ann", "mon"): -1, ("bob", "tue"): 1}})["each"]
ZSet({('ann', 2): -1, ('ann', 1): 1, ('bob', 1): 1})

The files, in the order of reading:

* data: ``element`` (identity, and what a dictionary is keyed by), ``time`` (product order), ``zset``, ``trace``
* the circuit, without any execution: ``node``, ``aggregates``, ``stream`` (the operators), ``circuit``, and what can
  be known without running: ``properties``; ``incremental`` rewrites a query over whole collections into one over
  changes
* the local engine: ``local`` (a step is a transaction), ``scope`` (what runs when), ``loop`` (to the fixed point),
  ``restart`` (when computing again is cheaper), ``operators/`` (one file a family)

Four ideas carry the engine.

* **Batches, not elements.**  An operator's step takes a whole batch, a dictionary ``{key: weight}`` or a list of rows
  ``(key, value, weight)``, through comprehensions, and tests the types of what a user's function made once a batch.
* **One memory a stream.** All joins on an index share its arrangement, from inside loops too; rows of the running
  step lie beside it until the step has succeeded.  Other state is changed at once, with its inverse in a log.
* **Flat streams need no times.** In a loop, only what depends on the loop itself has any, and then no epoch: past
  epochs are one (``docs/design/flow.md``, "Distinct").
* **Monotone loops are free to choose.** A set closed under joins and unions may derive each element at any iteration,
  so the engine keeps the one it has (``operators.distinct``).

State is in tables of words where native kernels run (``docs/design/native.md``), elsewhere in dictionaries of Python
objects, and in either case, when a change comes as :class:`Columns`, in arrays: then joins, ``distinct``,
``count sum avg min max`` keep runs of sorted arrays beside their dictionary (``columnar/``).  That is for
functions that are known (``itemgetter``, :func:`rearranges`, :class:`where`): what a user's lambda costs a row, no
layout of the state can save.

Source: PomoFlow; Budiu et al. 2023; McSherry et al. 2013; ``docs/design/flow.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.flow import aggregates
from syndicate.on_demand import on_demand

if TYPE_CHECKING:
    from syndicate.flow.circuit import Circuit
    from syndicate.flow.columns import Columns
    from syndicate.flow.comparison import where
    from syndicate.flow.element import rearranges
    from syndicate.flow.local_engine import LocalEngine, Outputs
    from syndicate.flow.node import Carries, Kind, Node, Port
    from syndicate.flow.stream import Stream
    from syndicate.flow.trace import NO_VALUE, Trace
    from syndicate.flow.zset import IndexedZSet, TimedZSet, ZSet

__all__ = [
    "NO_VALUE",
    "Carries",
    "Circuit",
    "Columns",
    "IndexedZSet",
    "Kind",
    "LocalEngine",
    "Node",
    "Outputs",
    "Port",
    "Stream",
    "TimedZSet",
    "Trace",
    "ZSet",
    "aggregates",
    "rearranges",
    "where",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "syndicate.flow.circuit": ["Circuit"],
        "syndicate.flow.columns": ["Columns"],
        "syndicate.flow.comparison": ["where"],
        "syndicate.flow.element": ["rearranges"],
        "syndicate.flow.local_engine": ["LocalEngine", "Outputs"],
        "syndicate.flow.node": ["Carries", "Kind", "Node", "Port"],
        "syndicate.flow.stream": ["Stream"],
        "syndicate.flow.trace": ["NO_VALUE", "Trace"],
        "syndicate.flow.zset": ["IndexedZSet", "TimedZSet", "ZSet"],
    },
)
