"""Large changes by rows: worked on as columns, while what is kept stays in dictionaries.

A row costs Python a microsecond or two at each join and aggregate, and a database that is given everything again a
fraction of that; so from a third of the state on, following a change would lose against recomputing.  Arrays follow it
at a database's speed: a large change becomes a table (:mod:`syndicate.flow.columnar`), each node looks up what it has
of the table's keys, all at once, makes its result as arrays, and puts the change into its dictionaries.  That costs
what the change brings and finds, as by rows, whatever the size of the state; and small changes cost after it what they
cost before.

It is only tried where it pays: where a source's rows come to a join or an aggregate through functions that only
rearrange (:func:`~syndicate.flow.element.rearranges`), and are integers, or tuples of such.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from syndicate.flow.element import is_rearranging
from syndicate.flow.node import Kind, Netlist, Node
from syndicate.flow.predicate import where
from syndicate.graph import reached

if TYPE_CHECKING:
    from syndicate.flow.aggregates import Aggregate

LARGE_CHANGE: Final = 1000
"""A change of so many rows is large: from here on arrays save more than they cost (measured: they are even at 500)."""

ARRAYED: Final = frozenset({"count", "sum", "avg", "min", "max"})
PASSING: Final = frozenset({"pairs", "keys", "values", "forward", "negate", "plus", "minus"})


def takers(circuit: Netlist) -> frozenset[str]:
    """The sources whose large changes are worth to become tables.

    >>> from operator import itemgetter
    >>> from syndicate.flow import Circuit, aggregates
    >>> c = Circuit(); sizes, words = c.source("sizes"), c.source("words")
    >>> c.sink("counts", sizes.index_with(itemgetter(0)).aggregate(aggregates.count)); c.sink("set", words.distinct())
    >>> takers(c)
    frozenset({'sizes'})
    """
    starts = [port.node for node in circuit.nodes if _gains(node) for port in node.inputs]
    nodes = circuit.nodes

    def before(number: int) -> list[int]:
        return [port.node for port in nodes[number].inputs] if _passes_on(nodes[number]) else []

    return frozenset(nodes[number].name for number in reached(starts, before) if nodes[number].kind is Kind.SOURCE)


def _gains(node: Node) -> bool:
    if node.op == "join":
        return is_rearranging(node.params["function"])
    if node.op != "aggregate":
        return False
    aggregate: Aggregate = node.params["aggregate"]
    return aggregate.form in ARRAYED and (aggregate.by is None or is_rearranging(aggregate.by))


def _passes_on(node: Node) -> bool:
    params = node.params
    if node.op == "map":
        return is_rearranging(params["function"])
    if node.op == "filter":
        return isinstance(params["function"], where)
    if node.op == "index_with":
        return is_rearranging(params["key"]) and (params["value"] is None or is_rearranging(params["value"]))
    return node.op in PASSING
