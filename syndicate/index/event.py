"""Events: what can happen to an entity.

An event is a plain tuple ``(kind, reference or references, value, handle)``; several references of one actor share
one event when a dataspace tells many observers the same.  This is the hot path: an object or a closure for each event
would double its cost.

Source: Garnock-Jones 2018 (``EventType ::= "+" | "-" | "!"``); ``docs/design/actors.md``, "Entities and references";
``docs/design/skeleton.md``, "What an event costs".
"""

from __future__ import annotations

from typing import Final, TypeAlias

from syndicate.values.value import Assertion, HomeFacet, Ref, Value

MESSAGE: Final = 0
"""``!``: a value was sent."""

ASSERT: Final = 1
"""``+``: a value was asserted, known by a handle until it is retracted."""

RETRACT: Final = 2
"""``-``: the assertion of this handle is gone."""

SYNC: Final = 3
"""All earlier events were handled: the value is the reference to reply to."""

ENTER: Final = 4
"""A function, in the value's place, is to run in a facet, in the reference's place."""

Event: TypeAlias = tuple[int, Ref | tuple[Ref, ...] | HomeFacet, Value, Assertion | None]
