"""Bloom^L's lattices: values that only grow, so that what is computed of them does not depend on order or repetition.

>>> from syndicate.lattice import Max, Set
>>> votes = Set(["ann"]).merge(Set(["bob", "cid"])).merge(Set(["ann"]))
>>> count = votes.size()
>>> done = count.gt_eq(3)
>>> done.when_true(lambda: [("quorum",)])
[('quorum',)]

=============  ==============  ======================================================================
declared by    class           grows
=============  ==============  ======================================================================
``lbool``      ``Bool``        from false to true
``lmax``       ``Max``         to greater values
``lmin``       ``Min``         to lesser values
``lset``       ``Set``         by elements
``lpset``      ``PosSet``      by non-negative numbers, and so does their sum
``lbag``       ``Bag``         to greater multiplicities
``lmap``       ``Map``         by keys, and in the lattice values under them
``lpair``      ``Pair``        in both components
``ldom``       ``DomPair``     by versions that greater keys replace
``lclock``     ``Clock``       a vector clock
``llww``       ``LastWriter``  to later writes
=============  ==============  ======================================================================

The files, in the order of reading: ``lattice`` (the base, how to define one, and the marks of methods: morphism,
monotone, non-monotone), ``table`` (how to grow without a copy), ``extremum``, ``sets``, ``map``, ``product``,
``vector_clock``, ``fold`` (collections and rows), ``delta`` (semi-naive evaluation) and ``laws`` (the checker).

Source: Conway et al. 2012, "Adding Lattices to Bloom"; ``docs/design/lattice.md``.
"""

from __future__ import annotations

from syndicate.lattice.delta import Accumulator, Grown, combine, increment
from syndicate.lattice.extremum import Bool, Max, Min
from syndicate.lattice.fold import check_key, from_collection, merge_row, merge_rows, to_collection
from syndicate.lattice.lattice import (
    LATTICES,
    Kind,
    Lattice,
    Method,
    grew,
    holds_lattice,
    join,
    monotone,
    morph,
    non_monotone,
    revive,
)
from syndicate.lattice.laws import Report, assert_laws, check
from syndicate.lattice.map import Map
from syndicate.lattice.product import DomPair, Pair
from syndicate.lattice.sets import Bag, PosSet, Set
from syndicate.lattice.vector_clock import Clock, LastWriter

__all__ = [
    "LATTICES",
    "Accumulator",
    "Bag",
    "Bool",
    "Clock",
    "DomPair",
    "Grown",
    "Kind",
    "LastWriter",
    "Lattice",
    "Map",
    "Max",
    "Method",
    "Min",
    "Pair",
    "PosSet",
    "Report",
    "Set",
    "assert_laws",
    "check",
    "check_key",
    "combine",
    "from_collection",
    "grew",
    "holds_lattice",
    "increment",
    "join",
    "merge_row",
    "merge_rows",
    "monotone",
    "morph",
    "non_monotone",
    "revive",
    "to_collection",
]
