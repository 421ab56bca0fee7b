"""The transitive closure of a graph, from its edges as Python's tuples to the number of its pairs, by one engine.

All sides import this file, ``graphs``, ``flow_data`` and ``recursion``, each from beside it, so they need nothing but
Python.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

Rows = Callable[[], Iterable[Iterable[int]]]
Closed = tuple[int, Rows]
"""How many pairs there are, and what gives them, which is called off the clock."""


def measured(engine: Callable[[Any], Closed], edges: Any, oracle: Any, nodes: int) -> dict[str, float]:
    """Seconds, with all that is to be loaded; a wrong result has none.  *oracle* is ``flow_data.closure``."""
    gc.collect()
    begin = perf_counter()
    count, rows = engine(edges)
    seconds = perf_counter() - begin
    found = sorted(tuple(map(int, row)) for row in rows())
    if found != sorted(oracle([edges], nodes)) or count != len(found):
        raise SystemExit(f"the result is wrong: {len(found)} pairs, said to be {count}")
    return {"s": seconds, "pairs": count}


def answer(engine: Callable[[Any], Closed], graphs: Any, oracle: Any) -> None:
    """Measure what the command line says, and print the figures as JSON; the modules come from the importer."""
    arguments = json.loads(sys.argv[1])
    edges = graphs.graph(arguments["kind"], arguments["edges"], arguments["nodes"])
    print(json.dumps(measured(engine, edges, oracle, graphs.size(edges))), flush=True)
