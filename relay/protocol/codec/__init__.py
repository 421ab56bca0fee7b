"""Codecs: packets to bytes and back.  Which one a connection speaks shows in the first byte that the other side sends.

==================  ===================  ==============================================================================
first byte          codec                since
==================  ===================  ==============================================================================
90-9f, c2, dc, dd   msgpack, ours        a packet is an array or ``false``
80-8f, b0-bf        Preserves, binary    a packet is a sequence ``b5``, a record ``b4``, ``#f`` ``80``, or annotated
``[ < # @ ,`` space Preserves, text      the same in text
==================  ===================  ==============================================================================

The ranges do not meet, and neither do they meet the letters with which HTTP starts.  Whoever connects speaks first, in
the codec of their choice (here: msgpack); whoever was connected to replies in kind.

A codec is a function of values and nothing else: it knows frozen forms, not packets.  One object serves one connection,
for it holds the bytes of the packet that has not fully arrived.

Source: Syndicate protocol; ``docs/design/protocol.md``, "Framing and codecs".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from relay.protocol.codec.frozen_collection import MORE
from relay.protocol.codec.msgpack import Msgpack
from relay.protocol.codec.preserves import Preserves
from relay.protocol.codec.preserves_encoding import Tables
from relay.protocol.codec.preserves_text import PreservesText
from relay.protocol.limits import DEFAULT, ENVELOPE, Limits
from syndicate.errors import ProtocolError
from syndicate.values.value import Frozen

__all__ = [
    "DEFAULT",
    "ENVELOPE",
    "MORE",
    "Codec",
    "Limits",
    "Msgpack",
    "Preserves",
    "PreservesText",
    "Tables",
    "codec_for",
]


class Codec(Protocol):
    """Packets, in frozen form with wire references, to bytes and back."""

    @property
    def name(self) -> str:
        """What it is called in logs."""

    @property
    def limits(self) -> Limits:
        """What one packet may be."""

    @property
    def tables(self) -> Tables | None:
        """What kernels read and write usual packets by, if there are kernels for it."""

    @property
    def partial(self) -> int:
        """The bytes so far of a packet that has not fully arrived."""

    @property
    def held(self) -> int:
        """Bytes of memory, about, that it takes: :data:`NODE` more for each value that was built of it."""

    def encode(self, form: Frozen) -> bytes:
        """The bytes of a packet; raises :class:`~syndicate.errors.NotAValue` if it is beyond the limits."""

    @property
    def ends(self) -> int:
        """How many of the values that are counted a compound's end is."""

    def part(self, form: Frozen) -> bytes | None:
        """The same, if a kernel does it: then no symbols are new in it.  None if it does not."""

    def joined(self, parts: Sequence[bytes]) -> bytes:
        """One Turn of what several say, each as :meth:`encode` has it."""

    def feed(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes; raises :class:`~syndicate.errors.ProtocolError`."""

    def parts(self, data: bytes) -> Iterator[Frozen]:
        """The same, and :data:`MORE` wherever others are to have their turns: each third of a millisecond, about."""

    def drop(self) -> None:
        """Let go of the packet that has not fully arrived: nothing is fed any more."""


_MSGPACK: Final = frozenset({*range(0x90, 0xA0), 0xC2, 0xDC, 0xDD})
_PRESERVES: Final = frozenset({*range(0x80, 0x90), *range(0xB0, 0xC0)})
_TEXT: Final = frozenset(b"[<#@, \t\r\n")
_HTTP: Final = frozenset(b"ACDGHLMNOPRSTU")
"""The first letters of methods, from ACL to UPDATE."""


def codec_for(first: int, limits: Limits = DEFAULT) -> Codec:
    """The codec of a peer whose first byte is *first*; raises :class:`~syndicate.errors.ProtocolError`.

    >>> codec_for(0x92).name, codec_for(0xB5).name, codec_for(ord("[")).name
    ('msgpack', 'preserves', 'preserves text')
    """
    if first in _MSGPACK:
        return Msgpack(limits)
    if first in _PRESERVES:
        return Preserves(limits)
    if first in _TEXT:
        return PreservesText(limits)
    if first in _HTTP:
        raise ProtocolError(
            f"the peer sends an HTTP request, as it seems: it begins with {chr(first)!r}. For WebSockets listen on ws://"
        )
    if first == 0x16:
        raise ProtocolError("the peer begins with TLS: for that listen on tls://")
    raise ProtocolError(f"the peer speaks no codec that we know: its first byte is {first:#04x}")
