"""Dedalus: logic in time, with choice and messages.

>>> from syndicate.dedalus import Program
>>> model = Program.parse('''
...     bcast("a", "hi")@1;  node("a", "b");
...     log(M, P)@async :- bcast(N, P), node(N, M);
...     persist[log, 2];
... ''').run(until=3)
>>> model.at(3)["log"]
[('b', 'hi')]

Source: Alvaro et al. 2011b; ``docs/design/dedalus.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syndicate.on_demand import on_demand

if TYPE_CHECKING:
    from syndicate.dedalus.checks import Diagnostic
    from syndicate.dedalus.live import Agent, EventLog, together
    from syndicate.dedalus.net import Net
    from syndicate.dedalus.program import Program, aggregate, choose, compare, compute, names
    from syndicate.dedalus.run import Model
    from syndicate.dedalus.schedule import Schedule
    from syndicate.dedalus.timeline import Message
    from syndicate.dedalus.verify.verdict import Verdict

__all__ = [
    "Agent",
    "Diagnostic",
    "EventLog",
    "Message",
    "Model",
    "Net",
    "Program",
    "Schedule",
    "Verdict",
    "aggregate",
    "choose",
    "compare",
    "compute",
    "names",
    "together",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "syndicate.dedalus.checks": ["Diagnostic"],
        "syndicate.dedalus.live": ["Agent", "EventLog", "together"],
        "syndicate.dedalus.net": ["Net"],
        "syndicate.dedalus.program": ["Program", "aggregate", "choose", "compare", "compute", "names"],
        "syndicate.dedalus.run": ["Model"],
        "syndicate.dedalus.schedule": ["Schedule"],
        "syndicate.dedalus.timeline": ["Message"],
        "syndicate.dedalus.verify.verdict": ["Verdict"],
    },
)
