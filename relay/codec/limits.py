"""Limits: how much a peer may make us hold for one packet.

A limit on bytes alone is not enough: small compounds take fifty times their bytes in memory.

Source: the reference on reliability, section 6.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from syndicate.values import MAX_DEPTH


@frozen
class Limits:
    """The bounds of one packet, in both directions.

    *frame* is in bytes; *depth* is the nesting of a value, not counting the four levels that a Turn puts around it;
    *nodes* are all values in a packet, the nested ones included; *entries* are the members of one set, or the keys and
    values of one dictionary;
    *bignum* is in bytes; *caveats* are those of one reference.
    """

    frame: int = 1 << 20
    depth: int = MAX_DEPTH
    nodes: int = 1 << 16
    entries: int = 1 << 15
    bignum: int = 512
    caveats: int = 32


DEFAULT: Final = Limits()

ENVELOPE: Final = 4
"""The levels of nesting between a packet and a value in it: turn, entry, event, captures."""
