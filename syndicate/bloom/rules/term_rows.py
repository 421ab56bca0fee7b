"""Rows of terms, as rules make them, ``coll <= self.votes.to_collection(f)``, ``done.when_true(lambda: [row])``.

>>> from syndicate.lattice import Map, Max, Set
>>> rows_of(Set(["ann", ("bob", 2)])), rows_of(Map({"k": Max(1)})), rows_of(Max(3)), rows_of(None)
([('ann',), ('bob', 2)], [('k', Max(1))], [(Max(3),)], [])

A list of rows is those rows; a tuple is one row, and so is a list that holds no row (the paper's
``when_true { [ADDR] }``); any other single value is a row of one column.

Source: Conway et al. 2012, figure 1 (``when_true``); ``docs/design/bloom.md``, "Lattices in programs".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from syndicate.bloom.row import is_row
from syndicate.bloom.rules.cell import CompletedTerm
from syndicate.bloom.rules.expression import ComputedRows, Expression, computed_rows, made
from syndicate.bloom.rules.function import failure, takes
from syndicate.bloom.rules.reading import of_elements
from syndicate.bloom.rules.term import Term, TermExpression, called, conversions, has_entries, lattice_of, plan_of
from syndicate.lattice import Map, Set, to_collection
from syndicate.lattice.lattice import Lattice
from syndicate.values.value import Value


def rows_of(value: Value) -> list[Value]:
    """What a term returns, as rows."""
    if value is None:
        return []
    if isinstance(value, (Set, Map)):
        return to_collection(value)
    if isinstance(value, Mapping):
        return list(value.items())
    if type(value) is tuple or isinstance(value, (Lattice, str, bytes)) or not hasattr(value, "__iter__"):
        return [value if type(value) is tuple else (value,)]
    items = list(value)
    if type(value) is list and items and not any(map(is_row, items)):
        return [tuple(items)]
    return [item if is_row(item) else (item,) for item in items]


def lifted_rows(
    term: Term, function: Callable[..., Value] | None, columns: Iterable[str] | None, site: str
) -> Expression:
    """The rows of a term, which *function* makes of each of its elements."""
    cls = lattice_of(term)
    pairs = has_entries(term)
    counted = cls is not None and not issubclass(cls, (Set, Map)) and hasattr(cls, "_missing")
    if counted:  # how often something is there may change, so that the rows are no set that only grows
        term, pairs = called(term, "reveal", (), {}), True
    if function is not None:
        takes(function, 1 + pairs, "a key and a value" if pairs else "an element", site)
        why = next(iter(of_elements(function, cls, rows=True).values()), "")
        term = CompletedTerm(term, why) if why else term

    def rows(value: Value) -> list[Value]:
        lifted = rows_of(value)
        if function is None:
            return [(row,) for row in lifted]
        try:
            if pairs:
                made_of = [function(*row) for row in lifted]
            else:
                made_of = [function(row[0] if type(row) is tuple and len(row) == 1 else row) for row in lifted]
        except Exception as error:
            raise failure(site, error, value) from error
        return [(row,) for row in made_of if row is not None]

    factor = made(TermExpression(plan_of(term), term, ("row",), rows), str(term))
    return computed_rows(factor, ComputedRows(lambda row: row[0], False, None), site, columns)


conversions.rows = lifted_rows
