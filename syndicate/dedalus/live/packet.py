"""What agents of a program send and assert in a dataspace.

An asynchronous row for the location *to* is the message ``<dedalus-message to relation row sent>``, where *sent* is the
sender's time.  Who is at that location observes all that begins so, whichever agent, process or person sent it; a
person writes 0 for a row that is an event.  A row that an agent shows, or is given, while it is there, is the assertion
``<dedalus-fact location relation row>``.

>>> Packet("b", "log", ("b", "hi"), 3)
Packet(to='b', relation='log', row=('b', 'hi'), sent=3)
"""

from __future__ import annotations

from syndicate.values.record import record
from syndicate.values.value import Value


@record("dedalus-message")
class Packet:
    """Sent: a *row* of a *relation* for the location *to*."""

    to: Value
    relation: str
    row: tuple[Value, ...]
    sent: int


@record("dedalus-fact")
class Fact:
    """Asserted: a *row* is in a *relation* at a *location*."""

    location: Value
    relation: str
    row: tuple[Value, ...]
