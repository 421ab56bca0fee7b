"""The library: rules that other programs include, by ``include "std/NAME";``.

Each file says at its head which relations it is given, and which it has; the first column is the location, so that all
of them run live (:mod:`syndicate.dedalus.live`).  Relations begin with one word of their own.

>>> print(*names())
agreement broadcast causal_broadcast chord election fifo lamport log membership paxos priority queue quorum_store \
reliable_broadcast sequence session state three_phase_commit token_ring two_phase_commit
>>> from syndicate.dedalus import Program
>>> Program.parse('include "std/fifo"; fifo_put("x", "k", 1)@1; fifo_put("x", "k", 2)@1;').run(until=4).to_json()[
...     "fifo_get"
... ]
{'2': [['x', 'k', 1]], '3': [['x', 'k', 2]]}

Source: Alvaro et al. 2011b, "Sequences" and "Queues"; Lamport 1998 (``paxos``, ``log``); Stoica et al. 2001
(``chord``); Ongaro and Ousterhout 2014 (terms, in ``election``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LIBRARY: Final = Path(__file__).parent
STANDARD: Final = "std/"
"""With what the names of the library begin, in an include."""


def names() -> list[str]:
    """What can be included."""
    return sorted(path.stem for path in LIBRARY.glob("*.ded"))
