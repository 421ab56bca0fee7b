"""clingo: the program is grounded and solved, and the atoms of its one model are counted."""

# mypy: ignore-errors

from __future__ import annotations

import sys
from pathlib import Path

import clingo

sys.path.append(str(Path(__file__).parents[1]))
import graphs
from closure_side import answer
from flow_data import closure as oracle

RULES = "path(X, Y) :- edge(X, Y). path(X, Z) :- path(X, Y), edge(Y, Z)."


def closed(edges):
    """The symbolic atoms of ``path`` after grounding: all are facts."""
    control = clingo.Control()
    control.add("base", [], RULES + " ".join(f"edge({a},{b})." for a, b in edges))
    control.ground([("base", [])])
    control.solve()
    count = sum(1 for _ in control.symbolic_atoms.by_signature("path", 2))

    def rows():
        for atom in control.symbolic_atoms.by_signature("path", 2):
            a, b = atom.symbol.arguments
            yield a.number, b.number

    return count, rows


answer(closed, graphs, oracle)
