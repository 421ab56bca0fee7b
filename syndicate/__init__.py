"""A Syndicate-style dataspace actor runtime: actors assert values in a dataspace and observe what matches.

The names below are the whole surface for writing actors; ``syndicate.flow``, ``syndicate.spark`` and :mod:`relay`
have their own.
"""

from __future__ import annotations

from syndicate.actor import Actor
from syndicate.dataspace import dataspace
from syndicate.during import during, on_asserted, on_message, on_retracted, stop_when
from syndicate.errors import SyndicateError
from syndicate.facet import Facet
from syndicate.field import Field, dataflow, field
from syndicate.pattern import ANY, capture, quote, unquote
from syndicate.query import query_count, query_hash, query_set, query_value
from syndicate.record import record
from syndicate.skeleton.interest import Observe
from syndicate.supervise import supervise
from syndicate.system import open_system, run
from syndicate.timer import LaterThan, Timer, after, every, timer_driver
from syndicate.turn import Entity, Handle
from syndicate.values import Dictionary, Record, Ref, Symbol, ValueSet
from syndicate.verbs import (
    assert_,
    current_facet,
    link,
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

__all__ = [
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
    "current_facet",
    "dataflow",
    "dataspace",
    "during",
    "every",
    "field",
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
    "sync",
    "timer_driver",
    "unquote",
]
