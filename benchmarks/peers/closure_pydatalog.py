"""pyDatalog: facts are asserted, and one question is asked."""

# mypy: ignore-errors
# ruff: noqa: B015, F821  # create_terms makes the names; a rule is a comparison to Python

from __future__ import annotations

import sys
from pathlib import Path

from pyDatalog import pyDatalog

sys.path.append(str(Path(__file__).parents[1]))
import graphs
from closure_side import answer
from flow_data import closure as oracle

sys.setrecursionlimit(100_000)
pyDatalog.create_terms("edge, path, X, Y, Z")


def closed(edges):
    """The answer to ``path(X, Y)``, which is a list."""
    for a, b in edges:
        +edge(a, b)
    path(X, Y) <= edge(X, Y)
    path(X, Y) <= path(X, Z) & edge(Z, Y)
    found = path(X, Y).data
    return len(found), lambda: found


answer(closed, graphs, oracle)
