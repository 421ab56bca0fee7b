"""Bloom: rules over collections, in ticks, compiled to circuits, so that a tick costs what changed.

>>> class Shortest(Bloom):
...     link = table(["from", "to"], ["cost"])
...     path = table(["from", "to", "cost"], [])
...     best = scratch(["from", "to"], ["cost"])
...     @bloom
...     def rules(self):
...         self.path <= self.link
...         self.path <= (self.link * self.path).pairs(
...             ("to", "from"), lambda l, p: (l.from_, p.to, l.cost + p.cost))
...         self.best <= self.path.group(["from", "to"], agg.min("cost"))
>>> p = Shortest(); p.link <= [("a", "b", 3), ("b", "c", 4), ("a", "c", 9)]; p.tick(); p.best["a", "c"]
(from='a', to='c', cost=7)

**How it is built.**  A program is a class; :mod:`declaration` says what its collections are, :mod:`block` which of
its methods are rules and what it imports, :mod:`program` makes an instance.  The blocks run once, on symbols: a
:mod:`collection` is the symbol of itself, what may be on its right comes from :mod:`rules`, and an operator records a
:mod:`rule` with its file and line.  :mod:`tick` makes one :class:`syndicate.plan.Program` of the rules, and of that a
circuit; in a tick it tells the circuit what :mod:`state` says has changed, and takes in what comes out.

**Lattices.**  ``votes = lset()`` is a variable that only grows (:mod:`lattices`); what rules say of it is a term.  A
column may hold lattice values: rows of one key are then one row.  What is no lattice's is left to the circuit; the rest
is evaluated semi-naively beside it (:mod:`tick.lattice_fixpoint`).

**A tick.**  Deletions, then insertions: of what the last tick deferred, of what came from outside, of what arrived.
Then ``<=`` rules to their fixed point, stratum by stratum.  Then ``<~`` rows are sent, callbacks called, ``budtime``
counted.  A tick that raises did not happen.

**Where it runs.**  You tick it; or it runs in a thread (``run_bg``, ``sync_do``, ``ask``); or it is an actor:
``spawn(Program, ds)`` (:mod:`agent`).  There its channels are messages of the dataspace, behind the relay too, its
collections follow and make assertions, and timers fire.  :class:`Network` connects programs in tests, and loses what it
should.  :mod:`insight` explains a program and its rows, :mod:`repl` takes one line by line, :mod:`library` has some.

**Differences to Bud.**  What is from outside may be given with ``<=``.  The tick's number and time are the row of
``now``, to be joined with, since a function of a rule is called only for rows that are new.  ``run()`` ticks until
nothing waits, also for deferred rows.  Column names that are Python keywords get an underscore: ``l.from_``.

Source: Alvaro et al. 2011a, "Bud: Bloom Under Development"; Conway et al. 2012; ``docs/design/bloom.md``.
"""

from __future__ import annotations

from syndicate.bloom.block import bloom, bootstrap, import_module
from syndicate.bloom.collection import (
    Collection,
    Declaring,
    channel,
    coll_expr,
    const,
    declaring,
    durable,
    file_reader,
    interface,
    lattice,
    lbag,
    lbool,
    lclock,
    ldom,
    llww,
    lmap,
    lmax,
    lmin,
    loopback,
    lpair,
    lpset,
    lset,
    periodic,
    scratch,
    stdio,
    table,
    temp,
)
from syndicate.bloom.declaration import Declaration, Kind, Row, Rule, seal
from syndicate.bloom.network import Network
from syndicate.bloom.program import Bloom
from syndicate.bloom.reflection import Reflecting
from syndicate.bloom.rules import aggregate as agg
from syndicate.bloom.rules.expression import Expression, values
from syndicate.bloom.rules.expression import join_of as join
from syndicate.bloom.rules.symbols import Column

__all__ = [
    "Bloom",
    "Collection",
    "Column",
    "Declaration",
    "Expression",
    "Kind",
    "Network",
    "Reflecting",
    "Row",
    "Rule",
    "agg",
    "bloom",
    "bootstrap",
    "channel",
    "coll_expr",
    "const",
    "durable",
    "file_reader",
    "import_module",
    "interface",
    "join",
    "lattice",
    "lbag",
    "lbool",
    "lclock",
    "ldom",
    "llww",
    "lmap",
    "lmax",
    "lmin",
    "loopback",
    "lpair",
    "lpset",
    "lset",
    "periodic",
    "scratch",
    "seal",
    "stdio",
    "table",
    "temp",
    "values",
]


def __getattr__(name: str) -> Declaring:
    """``from syndicate.bloom import lmine``, for a lattice of a user's with this keyword."""
    keyword = declaring(name)
    if keyword is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return keyword
