"""A Syndicate-style dataspace actor runtime: actors assert values in a dataspace and observe what matches.

>>> from syndicate import after, assert_, capture, dataspace, during, on_stop, record, run, spawn, stop_actor
>>> @record("lamp-of-the-docs")
... class Lamp:
...     room: str
>>> def lamp(ds, room):
...     assert_(ds, Lamp(room))  # for as long as this actor lives
...     after(0.01, stop_actor)
>>> def boot():
...     ds = dataspace()
...     @during(ds, Lamp(capture()))
...     def lit(room):
...         print(room, "is lit")
...         on_stop(lambda: print(room, "is dark"))
...     spawn(lamp, ds, "hall")
>>> run(boot)
hall is lit
hall is dark

The names below are the whole surface for writing actors.  :mod:`relay` joins dataspaces of several processes,
:mod:`syndicate.spark` those and tables; :mod:`syndicate.bloom` and :mod:`syndicate.dedalus` are languages of rules,
over :mod:`syndicate.flow`, :mod:`syndicate.plan` and :mod:`syndicate.lattice`, and ``spawn(host(program, ds, ...))``
lets rules of each live in a dataspace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from syndicate.errors import SyndicateError
from syndicate.foreign_files import expect_alone as _expect_alone
from syndicate.on_demand import on_demand as _on_demand

_expect_alone()

if _TYPE_CHECKING:
    from syndicate.actors.actor import Actor, Timer
    from syndicate.actors.dataspace import dataspace
    from syndicate.actors.during import during, on_asserted, on_message, on_retracted, stop_when
    from syndicate.actors.facet import Facet
    from syndicate.actors.field import Field, dataflow, field
    from syndicate.actors.link import link
    from syndicate.actors.query import query_count, query_hash, query_set, query_value
    from syndicate.actors.running import open_system, run
    from syndicate.actors.supervise import supervise, supervise_group
    from syndicate.actors.timer import LaterThan, after, every, timer_driver
    from syndicate.actors.turn import Entity, Handle
    from syndicate.actors.verbs import (
        assert_,
        current_facet,
        linked_task,
        on_stop,
        on_stop_or_crash,
        prevent_inert_check,
        react,
        ref,
        send,
        spawn,
        stop,
        stop_actor,
        sync,
    )
    from syndicate.hosting import host
    from syndicate.index.interest import Observe
    from syndicate.values.absent import ABSENT
    from syndicate.values.conversion import convert
    from syndicate.values.pattern import ANY, capture, quote, unquote
    from syndicate.values.record import record
    from syndicate.values.value import Dictionary, Record, Ref, Symbol, ValueSet

__all__ = [
    "ABSENT",
    "ANY",
    "Actor",
    "Dictionary",
    "Entity",
    "Facet",
    "Field",
    "Handle",
    "LaterThan",
    "Observe",
    "Record",
    "Ref",
    "Symbol",
    "SyndicateError",
    "Timer",
    "ValueSet",
    "after",
    "assert_",
    "capture",
    "convert",
    "current_facet",
    "dataflow",
    "dataspace",
    "during",
    "every",
    "field",
    "host",
    "link",
    "linked_task",
    "on_asserted",
    "on_message",
    "on_retracted",
    "on_stop",
    "on_stop_or_crash",
    "open_system",
    "prevent_inert_check",
    "query_count",
    "query_hash",
    "query_set",
    "query_value",
    "quote",
    "react",
    "record",
    "ref",
    "run",
    "send",
    "spawn",
    "stop",
    "stop_actor",
    "stop_when",
    "supervise",
    "supervise_group",
    "sync",
    "timer_driver",
    "unquote",
]

__getattr__, __dir__ = _on_demand(
    __name__,
    {
        "syndicate.actors.actor": ["Actor", "Timer"],
        "syndicate.actors.dataspace": ["dataspace"],
        "syndicate.actors.during": ["during", "on_asserted", "on_message", "on_retracted", "stop_when"],
        "syndicate.actors.facet": ["Facet"],
        "syndicate.actors.field": ["Field", "dataflow", "field"],
        "syndicate.actors.link": ["link"],
        "syndicate.actors.query": ["query_count", "query_hash", "query_set", "query_value"],
        "syndicate.actors.running": ["open_system", "run"],
        "syndicate.actors.supervise": ["supervise", "supervise_group"],
        "syndicate.actors.timer": ["LaterThan", "after", "every", "timer_driver"],
        "syndicate.actors.turn": ["Entity", "Handle"],
        "syndicate.actors.verbs": [
            "assert_",
            "current_facet",
            "linked_task",
            "on_stop",
            "on_stop_or_crash",
            "prevent_inert_check",
            "react",
            "ref",
            "send",
            "spawn",
            "stop",
            "stop_actor",
            "sync",
        ],
        "syndicate.hosting": ["host"],
        "syndicate.index.interest": ["Observe"],
        "syndicate.values.absent": ["ABSENT"],
        "syndicate.values.conversion": ["convert"],
        "syndicate.values.pattern": ["ANY", "capture", "quote", "unquote"],
        "syndicate.values.record": ["record"],
        "syndicate.values.value": ["Dictionary", "Record", "Ref", "Symbol", "ValueSet"],
    },
)
