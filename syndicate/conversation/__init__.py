"""Conversations: protocols of records with roles, and a check of what programs say and hear, by their text alone.

>>> from syndicate.conversation import check
>>> check(["examples/box_and_client.py"]).findings
[]

A protocol is a class of roles; who plays one is a function:

>>> from syndicate.conversation import Protocol, role
>>> from syndicate import record
>>> @record
... class Greet:
...     name: str
>>> class Greeting(Protocol):
...     guest = role(sends=[Greet])
...     host = role(hears=[Greet])

Command: ``syndicate check``.  Source: ``docs/design/conversation.md``.
"""

from __future__ import annotations

from syndicate.conversation.checking import Finding, Report, check
from syndicate.conversation.protocol import Protocol, Role, role

__all__ = ["Finding", "Protocol", "Report", "Role", "check", "role"]
