"""clingo: the rules are grounded and solved, and the atoms of the one model are counted."""

# mypy: ignore-errors

from __future__ import annotations

import sys
from pathlib import Path

import clingo

sys.path.append(str(Path(__file__).parents[1]))
from closure_side import measured
from recursion import RULES, side


def derived(kind, facts):
    """The symbolic atoms of the relation after grounding: all are facts."""
    control = clingo.Control()
    rows = (f"{name}{row}." for name, rows in facts.items() for row in rows)
    control.add("base", [], RULES[kind].replace(";", ".") + " ".join(rows))
    control.ground([("base", [])])
    control.solve()
    count = sum(1 for _ in control.symbolic_atoms.by_signature(kind, 2))

    def pairs():
        for atom in control.symbolic_atoms.by_signature(kind, 2):
            a, b = atom.symbol.arguments
            yield a.number, b.number

    return count, pairs


side(derived, measured)
