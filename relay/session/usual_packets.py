"""Usual packets: Turns of messages, assertions and retractions at dataspaces, of values without references.

Nearly all packets of a busy connection are such.  A kernel does what several of them say, or writes one, in a single
call; a session does all others itself, and here is nothing that it does not do.

Contract: what a kernel leaves it has not touched, not even the counts of a packet that is usual in part.

Source: ``docs/design/native.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relay.protocol.codec import Tables
from relay.protocol.packets import Entry
from relay.session.backlog import Note
from relay.session.membrane import Membrane
from relay.session.packet_events import Understood
from relay.session.peer_assertions import PeerAssertions
from syndicate.actors.facet import Facet
from syndicate.actors.turn import Turn
from syndicate.native import kernel

Done: TypeAlias = tuple[int, bool, int, int, int, int, int, Understood | None]
"""Where the rest begins, whether that is the beginning of a packet, how many packets and events were done, what those
reach, how many of them assert and retract; and the only event so far, if nobody has yet asked what it reaches.
"""


@kernel
def do_usual(
    turn: Turn,
    facet: Facet,
    membrane: Membrane,
    assertions: PeerAssertions,
    tables: Tables,
    data: bytes,
    at: int,
    events: int,
    share: int,
    enough: int,
    /,
) -> Done:
    """Do what the usual packets that begin *at* a place in *data* say, each of at most so many *events*: until another
    packet comes, *share* events are done, or all of them together could reach more than *enough*.

    Nothing, which is always right: the session does it.
    """
    return at, False, 0, 0, 0, 0, 0, None


@kernel
def understand_usual(
    membrane: Membrane, assertions: PeerAssertions, entries: Sequence[Entry], /
) -> Sequence[Understood]:
    """Understand as many of *entries*, from the first, as assert usual values, and add them to *assertions*.

    Nothing, which is always right: the session does it.
    """
    return ()


@kernel
def act_usual(turn: Turn, facet: Facet, acts: Sequence[Understood], /) -> int:
    """Do as many of *acts*, from the first, as assert something at a dataspace; returns how many.

    Nothing, which is always right: the session does it.
    """
    return 0


@kernel
def say_usual(membrane: Membrane, tables: Tables, notes: Sequence[Note], last: int, /) -> tuple[bytes, int] | None:
    """The packet that says *notes*, if it is usual, and the number of its last assertion, where *last* was that before.

    None, which is always right: the session does it.
    """
    return None
