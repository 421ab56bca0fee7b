"""Limits: how much one peer may make us hold, and how long it may keep us waiting.

A limit on bytes alone is not enough: small compounds take fifty times their bytes in memory.  Whoever breaks a limit is
notified of it in an Error packet, and loses its own session, nothing else.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.values.value import MAX_DEPTH


@frozen
class Limits:
    """The bounds of one packet, in both directions, and of one session.

    **A packet.** *frame* is in bytes; *depth* is the nesting of a value, not counting the four levels that a Turn puts
    around it; *nodes* are all values in a packet, the nested ones included; *entries* are the members of one set, or
    the keys and values of one dictionary; *bignum* is in bytes; *caveats* are those of one reference; *events* are
    those of one Turn.  *symbols* are those of a packet that the codec does not know yet, each of which costs ten times
    what a string does; *keyed* are the nodes inside of compound members of sets and compound keys of dictionaries,
    counted once for each set that they are in, for they are hashed and sorted each time.  With these, no packet takes
    longer than 50 ms to decode.  *nodes* is what a Turn of 4096 small events needs, at twelve each, and no more: nodes
    are what a packet's time and memory go to.

    **A session.** *handles* are the assertions that a peer makes with us, and, if it has come to us, those that
    its interests have us make with it; *asserted* are the first ones' bytes of memory,
    about, with 256 for each; *oids* the references that it has made us know, or that we keep exported for it;
    *resolves* its requests to the gatekeeper that wait for an answer; *guesses* those
    whose reference does not hold; *debt* the bytes of it that we have read and not
    yet handled, beyond which it is not read on.

    **A durable dataspace.** *kept* are the values that it keeps, whoever asserts them.

    **A slow peer.** *ahead* are the bytes that are encoded before it takes them: beyond, assertions wait as what they
    are, so that those which come and go meanwhile need never be sent.  *backlog* are the bytes of messages that may
    wait for it for *grace* seconds, *outbox* those that may never be exceeded; *stall* the seconds in which it takes
    nothing of what waits for it (64 KiB at once; for a larger packet accordingly longer), or in which no more than
    64 KiB come of a packet that it has begun, and not its end.

    **A silent peer.** A Nop is sent after *ping* seconds in which nothing was sent.  Who connects tells the other side
    *ping* and *idle*, and gets the same in answer; such a peer is given up after *idle* seconds without a word,
    whatever came before, and is pinged three times as often as its own *idle* asks.  Of a peer that does not know of
    this that holds once it has sent a Nop; until then it is asked by a sync after *idle* seconds without a word, and
    given up after as many more.  One that has given us no reference cannot be asked: only its operating system is (TCP
    keep-alive), which replies for a program that hangs, too.  With *liveness* who does not know of this is refused,
    after *opening* seconds.

    **An untrusted peer**, that is a peer to which the gatekeeper has given nothing yet: *opening* are the seconds until
    it has shown a capability (where there is no gatekeeper, until its first packet), and those for a server's first
    answer; *stranger* the bytes, about, that we hold of it meanwhile: its assertions, and a packet that has not fully
    arrived, 64 for each value in it.  A broker has at most *strangers* of them at a time: whoever comes then takes the
    place of the one that has been there longest.
    """

    frame: int = 1 << 20
    depth: int = MAX_DEPTH
    nodes: int = 50_000
    entries: int = 1 << 14
    bignum: int = 512
    caveats: int = 32
    symbols: int = 1 << 12
    keyed: int = 1 << 14
    events: int = 4096

    handles: int = 1 << 16
    asserted: int = 64 << 20
    oids: int = 1 << 15
    resolves: int = 256
    guesses: int = 16
    debt: int = 1 << 20

    kept: int = 1 << 20

    ahead: int = 1 << 18
    backlog: int = 8 << 20
    grace: float = 10.0
    outbox: int = 32 << 20
    stall: float = 20.0

    ping: float = 10.0
    idle: float = 30.0
    liveness: bool = False
    opening: float = 10.0
    stranger: int = 1 << 16
    strangers: int = 64


DEFAULT: Final = Limits()

ENVELOPE: Final = 4
"""The levels of nesting between a packet and a value in it: turn, entry, event, captures."""
