"""Limits: how much one peer may make us hold, and how long it may keep us waiting.

A limit on bytes alone is not enough: small compounds take fifty times their bytes in memory.  Whoever breaks a limit is
told so in an Error packet, and loses its own session, nothing else.

Source: the reference on reliability, sections 6 and 8.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.values import MAX_DEPTH


@frozen
class Limits:
    """The bounds of one packet, in both directions, and of one session.

    **A packet.** *frame* is in bytes; *depth* is the nesting of a value, not counting the four levels that a Turn puts
    around it; *nodes* are all values in a packet, the nested ones included; *entries* are the members of one set, or
    the keys and values of one dictionary; *bignum* is in bytes; *caveats* are those of one reference; *events* are
    those of one Turn.

    **A session.** *handles* are the assertions that a peer has standing with us; *oids* the references that it has made
    us know, or that we keep exported for it; *resolves* its requests to the gatekeeper that wait for an answer; *debt*
    the bytes of it that we have read and not yet handled, beyond which it is not read on.

    **A slow peer.** *backlog* are the bytes of messages that may wait for it for *grace* seconds, *outbox* those that
    may never be exceeded; *stall* the seconds in which it takes no byte of what waits for it.

    **A silent peer.** A Nop is sent after *ping* seconds in which nothing was sent.  A peer that pings as well is given
    up after *idle* seconds without a word; *opening* are the seconds for a peer's first packet, and for the server's
    first answer.
    """

    frame: int = 1 << 20
    depth: int = MAX_DEPTH
    nodes: int = 1 << 16
    entries: int = 1 << 15
    bignum: int = 512
    caveats: int = 32
    events: int = 4096

    handles: int = 1 << 20
    oids: int = 1 << 16
    resolves: int = 256
    debt: int = 1 << 20

    backlog: int = 8 << 20
    grace: float = 10.0
    outbox: int = 32 << 20
    stall: float = 20.0

    ping: float = 10.0
    idle: float = 30.0
    opening: float = 10.0


DEFAULT: Final = Limits()

ENVELOPE: Final = 4
"""The levels of nesting between a packet and a value in it: turn, entry, event, captures."""
